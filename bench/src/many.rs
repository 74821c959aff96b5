//! Many small datasets, open at once, accessed at random under one limit of memory.

use pumice::{Context, Dataset, File};
use std::time::Instant;

use crate::Outcome;

/// Rows of an access.
const ROWS: u64 = 10;
/// Columns of every dataset.
const COLUMNS: usize = 64;

/// Opens `count` datasets and makes the accesses twice. Answers the seconds for opening and for
/// each pass, the sum of what was read, and kilobytes of memory: at the start, with one dataset open
/// (what the program itself needs is then in memory), with all of them, and at most.
pub fn run(path: &str, accesses: &[u64], count: u64, write: bool, limit: u64) -> Outcome<String> {
    let base = memory("VmRSS:")?;
    let start = Instant::now();
    let context = Context::builder().cache_bytes(limit).build()?;
    let options = File::options().context(&context);
    let file = if write { options.edit(path)? } else { options.open(path)? };
    let mut datasets: Vec<Dataset> = Vec::with_capacity(count as usize);
    datasets.push(file.dataset("d0000")?);
    let one = memory("VmRSS:")?;
    for i in 1..count {
        datasets.push(file.dataset(&format!("d{i:04}"))?);
    }
    let opening = start.elapsed().as_secs_f64();
    let opened = memory("VmRSS:")?;
    let mut sum = 0.0;
    let mut seconds = [0.0; 2];
    let mut buffer = vec![1.0; ROWS as usize * COLUMNS];
    for (pass, seconds) in seconds.iter_mut().enumerate() {
        let start = Instant::now();
        for access in accesses.chunks_exact(2) {
            let (dataset, row) = (&datasets[access[0] as usize], access[1]);
            if write {
                dataset.write((row..row + ROWS, ..), &buffer)?;
            } else {
                dataset.read_into((row..row + ROWS, ..), &mut buffer)?;
                sum += buffer[0];
            }
        }
        if write && pass == 1 {
            file.flush()?;
        }
        *seconds = start.elapsed().as_secs_f64();
    }
    let peak = memory("VmHWM:")?;
    let [first, second] = seconds;
    Ok(format!("{opening:.6} {first:.6} {second:.6} {sum:.6} {base} {one} {opened} {peak}"))
}

/// A figure of this process's memory, in kilobytes.
fn memory(name: &str) -> Outcome<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(name)).ok_or("no such figure")?;
    Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse()?)
}
