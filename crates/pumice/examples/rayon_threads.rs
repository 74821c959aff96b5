//! Threads of a rayon pool share a dataset: they fill it together, then add up its columns together.
//!
//! ```sh
//! cargo run -p pumice --example rayon_threads -- grid.h5
//! ```

use pumice::File;
use rayon::prelude::*;

fn main() -> pumice::Result<()> {
    let path = std::env::args_os().nth(1).unwrap_or("grid.h5".into());
    // The job.
    let file = File::create(path)?;
    let grid = file.new_dataset::<u32>().shape([1000, 1000]).chunk([100, 100]).deflate(4);
    let grid = grid.create("grid")?;
    (0..1000u64).into_par_iter().try_for_each(|row| grid.write((row, ..), &line(row)))?;
    let add_up = |column| Ok(grid.read::<u64>((.., column))?.iter().sum());
    let sums: Vec<u64> = (0..1000u64).into_par_iter().map(add_up).collect::<pumice::Result<_>>()?;
    println!("{:?} {}", &sums[..3], sums.iter().sum::<u64>());
    file.close()
}

fn line(row: u64) -> Vec<u32> {
    (0..1000).map(|column| (row * column % 1009) as u32).collect()
}
