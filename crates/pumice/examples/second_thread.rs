//! The gain of a second thread on a compressed read, and the cost of one more copy of the result.
//!
//! Threads place the cells of their chunks straight into the caller's buffer. The alternative, a
//! buffer for each chunk and a copy into the caller's afterwards, adds the last line to every read.
//!
//! ```sh
//! cargo run --release -p pumice --example second_thread
//! ```

use pumice::{Context, File};
use std::time::{Duration, Instant};

const SIDE: u64 = 4096;
const ROUNDS: usize = 5;

fn main() -> pumice::Result<()> {
    let path = std::env::temp_dir().join(format!("second-thread-{}.h5", std::process::id()));
    let file = File::create(&path)?;
    let builder = file.new_dataset::<f32>().shape([SIDE, SIDE]).chunk([256, 256]);
    let dataset = builder.shuffle().deflate(4).create("waves")?;
    let wave = |i: u64| ((i % SIDE) as f32 * 0.01).sin() + (i / SIDE) as f32 * 0.001;
    let values: Vec<f32> = (0..SIDE * SIDE).map(|i| (wave(i) * 64.0).round() / 64.0).collect();
    dataset.write(.., &values)?;
    drop(dataset);
    file.close()?;

    for threads in [1, 2] {
        let best = best_of(|| {
            let context = Context::builder().threads(threads).build()?;
            let file = File::options().context(&context).open(&path)?;
            file.dataset("waves")?.read::<f32>(..)
        })?;
        println!("read with {threads} thread(s): {best:?}");
    }
    let copy = best_of(|| Ok(values.clone()))?;
    println!("one more copy of the result: {copy:?}");
    // The file is only in the way from here on.
    let _ = std::fs::remove_file(&path);
    Ok(())
}

fn best_of(work: impl Fn() -> pumice::Result<Vec<f32>>) -> pumice::Result<Duration> {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let result = work()?;
        best = best.min(start.elapsed());
        std::hint::black_box(result);
    }
    Ok(best)
}
