//! A table with text, an enumeration, truth values and arrays: a struct is a row.
//!
//! ```sh
//! cargo run -p pumice --example table -- samples.h5
//! ```

use pumice::{File, H5Type};

#[derive(H5Type, Clone, Debug, PartialEq)]
struct Sample {
    name: String,
    quality: Quality,
    position: [f32; 3],
    valid: bool,
}

#[derive(H5Type, Clone, Copy, Debug, PartialEq)]
#[repr(u8)]
enum Quality {
    Good,
    Doubtful,
}

fn main() -> pumice::Result<()> {
    let path = std::env::args_os().nth(1).unwrap_or("samples.h5".into());
    let rows: Vec<Sample> = (0..100).map(sample).collect();
    // The job.
    let file = File::create(path)?;
    let samples = file.new_dataset::<Sample>().shape([0]).max_shape([None]).create("samples")?;
    samples.append(0, &rows)?;
    for sample in samples.read::<Sample>((0..100).step_by(25))? {
        println!("{} {:?} {:?} {}", sample.name, sample.quality, sample.position, sample.valid);
    }
    let all = samples.read::<Sample>(..)?;
    println!("{} doubtful", all.iter().filter(|row| row.quality == Quality::Doubtful).count());
    file.close()
}

fn sample(number: u32) -> Sample {
    Sample {
        name: format!("sample {number} \u{3b1}"),
        quality: if number.is_multiple_of(3) { Quality::Doubtful } else { Quality::Good },
        position: [number as f32, 0.5, -1.5],
        valid: number.is_multiple_of(2),
    }
}
