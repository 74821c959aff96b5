//! The cost model of collective writing: constants are measured here, a simulation predicts runs of 1, 2, 4 and 8
//! ranks from them, and real runs, with threads as ranks, stand beside it. Then the simulation goes where no
//! machine is at hand: `cargo run --release -p pumice-collective --example cost [SIDE]`.
//!
//! `docs/collective.md` has the model and the output.

use pumice::{Context, File};
use pumice_collective::{CollectiveFile, CollectiveOptions, Result};
use pumice_comm::{Communicator, ThreadComm, run};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(600);
const CHUNK: u64 = 512;

/// What things cost, in seconds.
#[derive(Clone, Copy, Debug)]
struct Costs {
    /// To make a byte of a new chunk, and to put values there.
    fill: f64,
    /// To encode a byte of a chunk.
    encode: f64,
    /// Encoded bytes of a byte.
    ratio: f64,
    /// To write an encoded byte.
    write: f64,
    /// To pack a byte for another rank, and to take it from there.
    carry: f64,
    /// A chunk, at a rank that has cells of it or owns it.
    chunk: f64,
    /// What each rank does for each chunk that any rank has cells of.
    told: f64,
    /// A chunk, at rank 0: room, index, commit.
    root: f64,
    /// To open, create, commit and close a file.
    file: f64,
    /// A message.
    message: f64,
}

/// A machine.
#[derive(Clone, Copy, Debug)]
struct Machine {
    processors: usize,
    /// Seconds for a message, besides what both ends compute.
    latency: f64,
    /// Seconds for a byte on its way to the disk, of all ranks together.
    disk: f64,
}

/// Bands of rows of a square, each a rank's.
#[derive(Clone, Copy, Debug)]
struct Work {
    side: u64,
    ranks: usize,
    /// Whether bands end where chunks end.
    aligned: bool,
}

impl Work {
    fn rows(&self, rank: usize) -> Range<u64> {
        let unit = if self.aligned { CHUNK } else { 1 };
        let units = self.side.div_ceil(unit);
        let at = |rank: usize| {
            let rows = units * rank as u64 / self.ranks as u64 * unit;
            // Off the borders of chunks, as far as there is room.
            let off = if self.aligned || rank == 0 || rank == self.ranks { 0 } else { 100 };
            (rows + off).min(self.side)
        };
        at(rank)..at(rank + 1)
    }
}

/// Gives each rank's work to a limited number of processors; all wait for the last.
fn together(work: impl IntoIterator<Item = f64>, processors: usize) -> f64 {
    let mut work: Vec<f64> = work.into_iter().collect();
    let longest = work.iter().copied().fold(0.0, f64::max);
    let all: f64 = work.drain(..).sum();
    // Threads share processors in short turns.
    longest.max(all / processors as f64)
}

fn simulate(costs: &Costs, machine: &Machine, work: Work) -> f64 {
    let (n, across) = (work.ranks, work.side.div_ceil(CHUNK));
    let mut shares = vec![0u64; n];
    let (mut owned, mut sent, mut taken) = (vec![0u64; n], vec![0u64; n], vec![0u64; n]);
    let mut all_shares = 0;
    for band in 0..across {
        let rows = band * CHUNK..((band + 1) * CHUNK).min(work.side);
        let overlap = |rank: usize| {
            let own = work.rows(rank);
            own.end.min(rows.end).saturating_sub(own.start.max(rows.start))
        };
        let with: Vec<usize> = (0..n).filter(|&rank| overlap(rank) > 0).collect();
        let Some(&owner) = with.iter().max_by_key(|&&rank| (overlap(rank), usize::MAX - rank))
        else {
            continue;
        };
        owned[owner] += across;
        for &rank in &with {
            shares[rank] += across;
            all_shares += across;
            if rank != owner {
                let bytes = overlap(rank) * work.side * 4;
                sent[rank] += bytes;
                taken[owner] += bytes;
            }
        }
    }
    let chunk_bytes = (CHUNK * CHUNK * 4) as f64;
    let rounds = (n as f64).log2().ceil();
    // Open, create, write (2), flush (5), close (2): gathers of all ranks.
    let gathers = 11.0
        * rounds
        * (machine.latency + costs.message * (n as f64 / machine.processors as f64).max(1.0));
    let plan = together(shares.iter().map(|&own| own as f64 * costs.chunk), machine.processors);
    let told = together((0..n).map(|_| all_shares as f64 * costs.told), machine.processors);
    let move_bytes = |rank: usize| (sent[rank] + taken[rank]) as f64 * costs.carry / 2.0;
    let fill = |rank: usize| owned[rank] as f64 * chunk_bytes * costs.fill;
    let encode = |rank: usize| owned[rank] as f64 * chunk_bytes * costs.encode;
    let write = |rank: usize| owned[rank] as f64 * chunk_bytes * costs.ratio * costs.write;
    let work_time = together(
        (0..n).map(|rank| move_bytes(rank) + fill(rank) + encode(rank) + write(rank)),
        machine.processors,
    );
    let chunks = (across * across) as f64;
    let disk = chunks * chunk_bytes * costs.ratio * machine.disk;
    costs.file + gathers + plan + told + work_time.max(disk) + chunks * costs.root
}

fn values(rows: &Range<u64>, side: u64) -> Vec<f32> {
    let cell = |at: u64| ((at % 1000) as f32).sin() * 100.0 + (at / side) as f32;
    (rows.start * side..rows.end * side).map(cell).collect()
}

fn context() -> Context {
    Context::builder().threads(1).build().expect("a context of one thread")
}

/// A real run; gives the seconds from opening to the end of closing.
fn real(path: &Path, work: Work) -> f64 {
    let data: Vec<_> = (0..work.ranks).map(|rank| values(&work.rows(rank), work.side)).collect();
    let begin = Instant::now();
    let done = run(work.ranks, LIMIT, |comm: ThreadComm| -> Result<()> {
        let rank = comm.rank();
        let options = CollectiveOptions::new().context(&context());
        let file = CollectiveFile::create_with(Arc::new(comm), path, options)?;
        let dataset =
            file.create_dataset("d", |file| square(file, work.side).shuffle().deflate(4))?;
        dataset.write((work.rows(rank), ..), &data[rank])?;
        file.close()
    });
    let seconds = begin.elapsed().as_secs_f64();
    for done in done {
        done.expect("a rank panicked").expect("a rank failed");
    }
    seconds
}

fn square(file: &File, side: u64) -> pumice::DatasetBuilder {
    file.new_dataset::<f32>().shape([side, side]).chunk([CHUNK, CHUNK])
}

fn timed<T>(mut what: impl FnMut() -> T) -> f64 {
    // The best of some: what else runs only adds.
    let once = |_| {
        let begin = Instant::now();
        std::hint::black_box(what());
        begin.elapsed().as_secs_f64()
    };
    (0..3).map(once).fold(f64::INFINITY, f64::min)
}

fn measure(folder: &Path) -> pumice::Result<Costs> {
    let side = 2048;
    let bytes = (side * side * 4) as f64;
    let data = values(&(0..side), side);
    let in_memory = |filters: bool| {
        let context = context();
        let file = File::options()
            .context(&context)
            .create_in(Arc::new(pumice::MemoryStore::default()))?;
        let builder = square(&file, side);
        let dataset = if filters { builder.shuffle().deflate(4) } else { builder }.create("d")?;
        dataset.write(.., &data)?;
        dataset.flush()?;
        dataset.storage_size()
    };
    let ratio = in_memory(true)? as f64 / bytes;
    let plain = timed(|| in_memory(false));
    let encoded = timed(|| in_memory(true));
    let block = vec![1u8; 32 << 20];
    let target = folder.join("bytes");
    let write = timed(|| std::fs::write(&target, &block)) / block.len() as f64;
    let (chunk, told, root, file) = small_chunks(folder);
    let (message, carry) = messages();
    let (fill, encode) = (plain / bytes, (encoded - plain).max(0.0) / bytes);
    Ok(Costs { fill, encode, ratio, write, carry, chunk, told, root, file, message })
}

/// What chunks cost that have hardly any bytes: at a rank, told by each rank, at rank 0, and none at all.
fn small_chunks(folder: &Path) -> (f64, f64, f64, f64) {
    let path = folder.join("small.h5");
    let once = |ranks: usize, chunks: u64| {
        let done = run(ranks, LIMIT, |comm: ThreadComm| -> Result<(f64, f64)> {
            let rank = comm.rank();
            let options = CollectiveOptions::new().context(&context());
            let begin = Instant::now();
            let file = CollectiveFile::create_with(Arc::new(comm), &path, options)?;
            let count = chunks.max(1) * 4;
            let dataset = file.create_dataset("d", |file| {
                file.new_dataset::<u8>().shape([count]).chunk([4]).deflate(1)
            })?;
            let all = if rank == 0 { 0..chunks * 4 } else { 0..0 };
            let length = (all.end - all.start) as usize;
            let before = begin.elapsed();
            dataset.write(all, &vec![1u8; length])?;
            let written = begin.elapsed();
            file.close()?;
            let rest = begin.elapsed() - written + before;
            Ok(((written - before).as_secs_f64(), rest.as_secs_f64()))
        });
        let first = done.into_iter().next().and_then(|done| done.ok()).and_then(|done| done.ok());
        first.expect("no rank fails")
    };
    let best = |ranks, chunks| {
        let runs: Vec<(f64, f64)> = (0..3).map(|_| once(ranks, chunks)).collect();
        let least =
            |pick: fn(&(f64, f64)) -> f64| runs.iter().map(pick).fold(f64::INFINITY, f64::min);
        (least(|run| run.0), least(|run| run.1))
    };
    let chunks = 20_000;
    let (none, one, two) = (best(1, 0), best(1, chunks), best(2, chunks));
    let per_chunk = |seconds: f64| seconds.max(0.0) / chunks as f64;
    // With a second rank half of the chunks are encoded there, but both hear of all of them.
    let told = per_chunk(two.0 - one.0).min(per_chunk(one.0));
    (per_chunk(one.0 - none.0), told, per_chunk(one.1 - none.1), none.0 + none.1)
}

/// A message, and a byte of one.
fn messages() -> (f64, f64) {
    let rounds = 2000;
    let barrier = timed(|| run(2, LIMIT, |comm| (0..rounds).try_for_each(|_| comm.barrier())));
    let bytes = 64 << 20;
    let carried = timed(|| {
        run(2, LIMIT, |comm| match comm.rank() {
            0 => comm.send(1, vec![1; bytes]).map(|()| 0),
            _ => comm.receive(0).map(|found| found.to_vec().len()),
        })
    });
    (barrier / f64::from(rounds), carried / bytes as f64)
}

fn main() -> pumice::Result<()> {
    let side: u64 = std::env::args().nth(1).and_then(|side| side.parse().ok()).unwrap_or(4096);
    let folder = std::env::temp_dir().join(format!("pumice-cost-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for measurements");
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let costs = measure(&folder)?;
    println!("{costs:#?}");
    let here = Machine { processors, latency: 0.0, disk: 0.0 };
    println!(
        "\n{side} x {side} float32, chunks of {CHUNK} x {CHUNK}, {processors} processors, seconds"
    );
    println!("| ranks | bands | simulated | measured | ratio |\n|---|---|---|---|---|");
    for ranks in [1, 2, 4, 8] {
        for aligned in [true, false] {
            let work = Work { side, ranks, aligned };
            let simulated = simulate(&costs, &here, work);
            let path = folder.join("real.h5");
            let measured = (0..3).map(|_| real(&path, work)).fold(f64::INFINITY, f64::min);
            let bands = if aligned { "of chunks" } else { "off chunks" };
            println!(
                "| {ranks} | {bands} | {simulated:.3} | {measured:.3} | {:.2} |",
                measured / simulated
            );
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
    far(&costs);
    Ok(())
}

/// A cluster whose network has a latency of 2 us and whose file system writes 20 GB/s.
fn far(costs: &Costs) {
    println!("\nOne processor for each rank, 2 us, 20 GB/s, 1 MiB chunks, seconds");
    println!(
        "| ranks | 10^4 chunks | 10^5 chunks | 10^6 chunks | 10^7 chunks |\n|---|---|---|---|---|"
    );
    for ranks in [1usize, 10, 100, 1_000, 10_000] {
        let machine = Machine { processors: ranks, latency: 2e-6, disk: 1.0 / 20e9 };
        let cell = |chunks: f64| {
            let side = chunks.sqrt() as u64 * CHUNK;
            format!("{:.1}", simulate(costs, &machine, Work { side, ranks, aligned: true }))
        };
        let cells: Vec<String> = [1e4, 1e5, 1e6, 1e7].into_iter().map(cell).collect();
        println!("| {ranks} | {} |", cells.join(" | "));
    }
}
