//! Ten traces of how arrays are used, by which replacement policies are judged.
//!
//! All chunks have the same size, [`CHUNK`]: of HDF5's private caches, 8 MiB each, eight fit. The
//! access that completes a chunk is marked as such. `docs/cache-policies.md` describes each trace;
//! `table.rs` makes the table.

pub mod table;

use pumice_trace::trace::{Access, Trace};

/// The size of every chunk: the largest that HDF5's guides recommend.
pub const CHUNK: u64 = 1 << 20;

/// A trace, and the size of cache for which it is interesting.
#[derive(Debug)]
pub struct Sample {
    /// A letter, and a digit where two differ in size only.
    pub name: &'static str,
    /// The use case.
    pub title: &'static str,
    /// The chunks that the cache holds; a quarter, half and half as many again are tried as well.
    pub cache: u64,
    /// The accesses.
    pub trace: Trace,
}

/// The ten traces; `seed` decides what is random in them.
///
/// ```
/// let samples = pumice_testkit::traces::all(1);
/// assert_eq!(samples.len(), 10);
/// assert!(samples[0].trace.len() == 8 * 64 * 400);
/// ```
pub fn all(seed: u64) -> Vec<Sample> {
    let sample = |name, title, cache, trace| Sample { name, title, cache, trace };
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    vec![
        sample("A", "column loop", 256, columns(8, 400)),
        sample("B", "sequential epochs", 256, sequential_epochs()),
        sample("C", "shuffled epochs", 256, shuffled_epochs(&mut random)),
        sample("D", "Zipf and scan", 256, zipf_and_scan(&mut random, 200_000)),
        sample("E", "many datasets", 64, many_datasets(&mut random)),
        sample("F", "round-robin appends", 256, round_robin_appends()),
        sample("G", "random appends, reads", 256, random_appends(&mut random)),
        sample("H", "slabs", 48, slabs()),
        sample("H2", "slabs that fit", 80, slabs()),
        sample("I", "phases", 256, phases(&mut random)),
    ]
}

/// Random numbers by xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }
}

/// Ranks that occur with Zipf's frequencies, exponent 0.9.
struct Zipf(Vec<f64>);

impl Zipf {
    fn new(ranks: u64) -> Self {
        let mut sum = 0.0;
        let sums = (1..=ranks).map(|rank| {
            sum += (rank as f64).powf(-0.9);
            sum
        });
        Zipf(sums.collect())
    }

    fn pick(&self, random: &mut Random) -> u64 {
        let all = self.0.last().copied().unwrap_or(1.0);
        let point = (random.next() >> 11) as f64 / (1_u64 << 53) as f64 * all;
        self.0.partition_point(|&sum| sum < point) as u64
    }
}

/// Accesses by (dataset, chunk).
#[derive(Default)]
struct Builder(Trace);

impl Builder {
    fn access(&mut self, dataset: u64, chunk: u64, write: bool, done: bool) {
        let access = Access { dataset, bytes: CHUNK, write, done, ..Access::default() };
        self.0.push(dataset << 32 | chunk, access);
    }

    fn read(&mut self, dataset: u64, chunk: u64, done: bool) {
        self.access(dataset, chunk, false, done);
    }

    fn write(&mut self, dataset: u64, chunk: u64, done: bool) {
        self.access(dataset, chunk, true, done);
    }
}

/// Single columns of an array whose chunks are 64 columns wide, `rows` chunks one above the other.
fn columns(blocks: u64, rows: u64) -> Trace {
    let mut builder = Builder::default();
    add_columns(&mut builder, blocks, rows);
    builder.0
}

fn add_columns(builder: &mut Builder, blocks: u64, rows: u64) {
    for block in 0..blocks {
        for column in 0..64 {
            (0..rows).for_each(|row| builder.read(0, block * rows + row, column == 63));
        }
    }
}

/// Six epochs over 1000 chunks, each read in four batches.
fn sequential_epochs() -> Trace {
    let mut builder = Builder::default();
    for _ in 0..6 {
        (0..4000).for_each(|batch| builder.read(0, batch / 4, batch % 4 == 3));
    }
    builder.0
}

/// Four epochs over 32,000 samples in random order, 32 to a chunk.
fn shuffled_epochs(random: &mut Random) -> Trace {
    let mut builder = Builder::default();
    let mut samples: Vec<u64> = (0..32_000).collect();
    for _ in 0..4 {
        for i in (1..samples.len()).rev() {
            samples.swap(i, random.below(i as u64 + 1) as usize);
        }
        let mut left = vec![32; 1000];
        for sample in &samples {
            let chunk = sample / 32;
            left[chunk as usize] -= 1;
            builder.read(0, chunk, left[chunk as usize] == 0);
        }
    }
    builder.0
}

/// Look-ups over 2000 chunks, by turns with a scan of another dataset.
fn zipf_and_scan(random: &mut Random, accesses: u64) -> Trace {
    let mut builder = Builder::default();
    add_zipf_and_scan(&mut builder, random, accesses);
    builder.0
}

fn add_zipf_and_scan(builder: &mut Builder, random: &mut Random, accesses: u64) {
    let zipf = Zipf::new(2000);
    for turn in 0..accesses / 2 {
        builder.read(1, zipf.pick(random), false);
        builder.read(2, turn, true);
    }
}

/// 6000 visits to one of 1000 datasets, 60 accesses to its one chunk, and a hot chunk now and then.
fn many_datasets(random: &mut Random) -> Trace {
    let mut builder = Builder::default();
    for _ in 0..6000 {
        let dataset = random.below(1000);
        for access in 0..60 {
            builder.read(dataset, 0, false);
            if access % 6 == 5 {
                builder.read(1000, random.below(16), false);
            }
        }
    }
    builder.0
}

/// One append to each of 300 datasets in turn, 500 times; 50 appends fill a chunk.
fn round_robin_appends() -> Trace {
    let mut builder = Builder::default();
    for round in 0..500 {
        (0..300).for_each(|dataset| builder.write(dataset, round / 50, round % 50 == 49));
    }
    builder.0
}

/// Appends to random ones of 200 datasets, 50 fill a chunk, and look-ups in another.
fn random_appends(random: &mut Random) -> Trace {
    let mut builder = Builder::default();
    let zipf = Zipf::new(2000);
    let mut appended = [0; 200];
    for append in 0..150_000 {
        let dataset = random.below(200);
        let count = appended[dataset as usize];
        builder.write(dataset, count / 50, count % 50 == 49);
        appended[dataset as usize] += 1;
        if append % 3 == 2 {
            builder.read(200, zipf.pick(random), false);
        }
    }
    builder.0
}

/// 400 slabs of 6 rows over chunks of 256 rows, 64 chunks wide.
fn slabs() -> Trace {
    let mut builder = Builder::default();
    for first in (0..400).map(|slab| slab * 6) {
        let last = first + 5;
        for row in first / 256..=last / 256 {
            let done = last >= row * 256 + 255;
            (0..64).for_each(|column| builder.read(0, row * 64 + column, done));
        }
    }
    builder.0
}

/// Columns, then look-ups and a scan.
fn phases(random: &mut Random) -> Trace {
    let mut builder = Builder::default();
    add_columns(&mut builder, 3, 300);
    add_zipf_and_scan(&mut builder, random, 60_000);
    builder.0
}
