//! A detector's stream: dense frames arrive one by one, and only hits take space.
//!
//! ```sh
//! cargo run -p pumice --example detector_stream -- hits.h5
//! ```

use pumice::File;

fn main() -> pumice::Result<()> {
    let path = std::env::args_os().nth(1).unwrap_or("hits.h5".into());
    // The job.
    let file = File::create(path)?;
    let frames = file.new_dataset::<u16>().shape([0, 64, 64]).max_shape([None, Some(64), Some(64)]);
    let frames = frames.sparse().create("frames")?;
    for number in 0..500 {
        frames.append_except(0, &exposure(number), 0)?;
    }
    println!("{} hits in {} frames", frames.count_defined(..)?, frames.shape()[0]);
    let corner: Vec<u64> = frames.read((.., ..8, ..8))?;
    println!("{} counts in the corner", corner.iter().sum::<u64>());
    println!("frame 400: {:?}", frames.read_defined::<u16>((400, .., ..))?.values);
    file.close()
}

/// A frame of the camera, of which at most 20 cells are hit.
fn exposure(number: usize) -> Vec<u16> {
    let mut frame = vec![0; 64 * 64];
    for hit in 0..20 {
        frame[(number * 7919 + hit * 104_729) % (64 * 64)] = ((number + hit) % 100 + 1) as u16;
    }
    frame
}
