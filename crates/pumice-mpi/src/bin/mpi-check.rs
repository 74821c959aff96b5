//! The tests of collective files over MPI: `mpirun -n N mpi-check FOLDER`.
//!
//! Every number of ranks must leave the file that one process leaves, which rank 0 writes for comparison.

use anyhow::{Result, ensure};
use pumice::{File, Selection};
use pumice_collective::CollectiveFile;
use pumice_comm::{CommError, Communicator};
use pumice_mpi::MpiComm;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const ROWS: u64 = 101;
const COLUMNS: u64 = 64;

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    let (universe, _) = mpi::initialize_with_threading(mpi::Threading::Serialized)
        .ok_or_else(|| anyhow::anyhow!("MPI is initialised already"))?;
    let comm: Arc<dyn Communicator> =
        Arc::new(MpiComm::with_limit(&universe, Duration::from_secs(60))?);
    messages(&*comm)?;
    files(comm.clone(), Path::new(&folder))?;
    if comm.rank() == 0 {
        println!("{} rank(s): messages and files are right", comm.size());
    }
    comm.barrier()?;
    Ok(())
}

fn messages(comm: &dyn Communicator) -> Result<(), CommError> {
    let (rank, size) = (comm.rank(), comm.size());
    for round in 0..20usize {
        let own = vec![rank as u8; rank * 1000 + round * 100];
        for (from, bytes) in comm.all_gather(&own)?.iter().enumerate() {
            assert_eq!(*bytes, vec![from as u8; from * 1000 + round * 100]);
        }
        assert_eq!(comm.exclusive_scan(rank as u64)?, (0..rank as u64).sum::<u64>());
        assert_eq!(
            comm.broadcast(round % size, format!("{rank}").as_bytes())?,
            format!("{}", round % size).as_bytes()
        );
        comm.barrier()?;
    }
    comm.send((rank + 1) % size, vec![7; 5 << 20])?;
    assert_eq!(comm.receive((rank + size - 1) % size)?, vec![7; 5 << 20]);
    Ok(())
}

fn share(rank: usize, size: usize) -> Range<u64> {
    let at = |rank: usize| ROWS * rank as u64 / size as u64;
    at(rank)..at(rank + 1)
}

fn values(rows: &Range<u64>) -> Vec<f32> {
    (rows.start * COLUMNS..rows.end * COLUMNS).map(|cell| (cell % 97) as f32 / 3.0).collect()
}

fn text(rows: &Range<u64>) -> Vec<String> {
    rows.clone().map(|row| "stone".repeat(row as usize % 4)).collect()
}

fn files(comm: Arc<dyn Communicator>, folder: &Path) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    let (together, alone) = (folder.join("together.h5"), folder.join("alone.h5"));
    let dense = |file: &File| {
        file.new_dataset::<f64>().shape([ROWS, COLUMNS]).chunk([7, 30]).shuffle().deflate(4)
    };
    let sparse =
        |file: &File| file.new_dataset::<f32>().shape([ROWS, COLUMNS]).chunk([10, 64]).sparse();
    let strings = |file: &File| file.new_strings().shape([ROWS]).chunk([8]).sparse();
    if rank == 0 {
        let file = File::create(&alone)?;
        let (one, two, three) = (
            dense(&file).create("dense")?,
            sparse(&file).create("sparse")?,
            strings(&file).create("text")?,
        );
        one.write(.., &values(&(0..ROWS)))?;
        two.write((0..ROWS, 0..3), &vec![1.5f32; 3 * ROWS as usize])?;
        three.write(.., &text(&(0..ROWS)))?;
        file.flush()?;
        two.erase((20..50, ..))?;
        file.close()?;
    }
    let file = CollectiveFile::create(comm.clone(), &together)?;
    let one = file.create_dataset("dense", dense)?;
    let two = file.create_dataset("sparse", sparse)?;
    let three = file.create_dataset("text", strings)?;
    let rows = share(rank, size);
    one.write((rows.clone(), ..), &values(&rows))?;
    two.write((rows.clone(), 0..3), &vec![1.5f32; 3 * (rows.end - rows.start) as usize])?;
    three.write(rows.clone(), &text(&rows))?;
    let sum: f64 = one.read::<f64>(..)?.iter().sum();
    ensure!(
        (sum - values(&(0..ROWS)).iter().map(|&value| f64::from(value)).sum::<f64>()).abs() < 1e-3
    );
    let erased = Selection::block(&[20, 0], &[30, COLUMNS])?;
    two.erase(if rank + 1 == size { erased } else { Selection::none() })?;
    file.close()?;
    if rank == 0 {
        let (found, expected) = (std::fs::read(&together)?, std::fs::read(&alone)?);
        ensure!(found == expected, "{size} ranks: {} byte(s), not {}", found.len(), expected.len());
    }
    Ok(())
}
