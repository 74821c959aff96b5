//! Writes a file by several ranks, which are threads: `ranks FILE COUNT`.
//!
//! Each rank has a band of rows of a matrix, which share chunks, and a name in a list.

use pumice_collective::{CollectiveError, CollectiveFile, Result};
use pumice_comm::{Communicator, ThreadComm, run};
use std::sync::Arc;
use std::time::Duration;

const ROWS: u64 = 50;
const COLUMNS: u64 = 30;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, path, count] = arguments.as_slice() else { panic!("ranks FILE COUNT") };
    let count = count.parse().expect("a number of ranks");
    for done in run(count, Duration::from_secs(60), |comm| write(comm, path)) {
        done.unwrap_or_else(|_| Err(CollectiveError::Broken("a rank panicked".into())))?;
    }
    Ok(())
}

fn write(comm: ThreadComm, path: &str) -> Result<()> {
    let (rank, size) = (comm.rank() as u64, comm.size() as u64);
    let file = CollectiveFile::create(Arc::new(comm), path)?;
    let matrix = file.create_dataset("runs/matrix", |file| {
        file.new_dataset::<f32>().shape([ROWS, COLUMNS]).chunk([8, 7]).shuffle().deflate(4)
    })?;
    let names =
        file.create_dataset("names", |file| file.new_strings().shape([size]).chunk([size.min(2)]))?;
    let rows = ROWS * rank / size..ROWS * (rank + 1) / size;
    let values: Vec<u32> =
        (rows.start * COLUMNS..rows.end * COLUMNS).map(|cell| cell as u32).collect();
    matrix.write((rows, ..), &values)?;
    names.write(rank, &[format!("rank {rank}")])?;
    file.change(|file| file.set_attribute("ranks", size))?;
    file.close()
}
