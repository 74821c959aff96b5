//! The benchmark of collective writing: `mpirun -n N mpi-bench FILE [SIDE]`.
//!
//! All ranks write bands of rows of a square of 32-bit floating-point numbers in chunks of 512 x 512, shuffle and
//! deflate 4. Rank 0 prints the time from opening to the end of closing, and the processor time of all ranks.

use anyhow::Result;
use pumice::Context;
use pumice_collective::{CollectiveFile, CollectiveOptions};
use pumice_comm::Communicator;
use pumice_mpi::MpiComm;
use std::sync::Arc;
use std::time::Instant;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let path = &arguments[1];
    let side: u64 = arguments.get(2).map_or(Ok(8192), |side| side.parse())?;
    let (universe, _) = mpi::initialize_with_threading(mpi::Threading::Serialized)
        .ok_or_else(|| anyhow::anyhow!("MPI is initialised already"))?;
    let comm: Arc<dyn Communicator> = Arc::new(MpiComm::world(&universe)?);
    let (rank, size) = (comm.rank() as u64, comm.size() as u64);
    let rows = side * rank / size..side * (rank + 1) / size;
    let cell = |at: u64| ((at % 1000) as f32).sin() * 100.0 + (at / side) as f32;
    let values: Vec<f32> = (rows.start * side..rows.end * side).map(cell).collect();
    comm.barrier()?;
    let (begin, cpu) = (Instant::now(), processor_time());
    let context = Context::builder().threads(1).build()?;
    let options = CollectiveOptions::new().context(&context);
    let file = CollectiveFile::create_with(comm.clone(), path, options)?;
    let dataset = file.create_dataset("d", |file| {
        file.new_dataset::<f32>().shape([side, side]).chunk([512, 512]).shuffle().deflate(4)
    })?;
    dataset.write((rows, ..), &values)?;
    file.close()?;
    let wall = begin.elapsed().as_secs_f64();
    let mine = ((processor_time() - cpu) * 1e6) as u64;
    let all = comm.all_gather(&mine.to_le_bytes())?;
    let all = all.iter().filter_map(|one| one.first_chunk()).map(|one| u64::from_le_bytes(*one));
    let (all, length) = (all.sum::<u64>() as f64 / 1e6, std::fs::metadata(path)?.len());
    if rank == 0 {
        println!("pumice ranks={size} wall={wall:.3} cpu={all:.3} bytes={length}");
    }
    comm.barrier()?;
    Ok(())
}

/// The processor time of this process so far, in seconds.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks =
        |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    // User and system time, in hundredths of a second.
    (ticks(11) + ticks(12)) / 100.0
}
