//! Chunks of real files that idle threads encode or write before they have to: what is changed
//! afterwards is stored as it was changed, and the rest is not encoded twice.

use pumice::{Context, Dataset, File, FilterSpec, MemoryStore, Points, Stats};
use std::sync::Arc;
use std::thread::{sleep, yield_now};
use std::time::Duration;

const LIMIT: u64 = 1 << 20;
/// Cells of a chunk, and of the whole.
const CHUNK: u64 = 1024;
const CHUNKS: u64 = 400;
/// Cells that the first writes define in a chunk: not all.
const WRITTEN: u64 = 700;
/// Milliseconds, more than any thread needs to begin and end its work.
const PATIENCE: usize = 60_000;

/// How elements are written and read: numbers, or strings that tell them.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Sparse,
    SparseFiltered,
    SparseStrings,
    Strings,
    Dense,
}

impl Kind {
    fn create(self, file: &File) -> Dataset {
        let (shape, chunk) = ([CHUNKS * CHUNK], [CHUNK]);
        let numbers = || file.new_dataset::<i32>().shape(shape).chunk(chunk);
        let strings = || file.new_strings().shape(shape).chunk(chunk);
        let new = match self {
            Kind::Sparse => numbers().sparse(),
            Kind::SparseFiltered => numbers().sparse().shuffle().deflate(1),
            Kind::SparseStrings => strings().sparse(),
            Kind::Strings => strings().variable_length().deflate(1),
            Kind::Dense => numbers().shuffle().deflate(1),
        };
        new.create("data").unwrap()
    }

    fn is_text(self) -> bool {
        matches!(self, Kind::SparseStrings | Kind::Strings)
    }

    fn write(self, dataset: &Dataset, start: u64, values: &[i32]) {
        let cells = start..start + values.len() as u64;
        match self.is_text() {
            true => {
                let texts: Vec<String> = values.iter().map(|&value| text(value)).collect();
                dataset.write_strings(cells, &texts).unwrap();
            }
            false => dataset.write(cells, values).unwrap(),
        }
    }

    /// All elements are as the model says, where 0 is what was never written.
    fn check(self, dataset: &Dataset, model: &[i32]) {
        if !self.is_text() {
            assert!(dataset.read::<i32>(..).unwrap() == model, "{self:?}");
            return;
        }
        let found = dataset.read_strings(..).unwrap();
        for (cell, (found, &value)) in found.iter().zip(model).enumerate() {
            let wanted = if value == 0 { String::new() } else { text(value) };
            assert_eq!(found, wanted.as_bytes(), "{self:?} at {cell}");
        }
    }
}

fn text(value: i32) -> String {
    format!("number {value}").repeat(1 + value as usize % 3)
}

/// A dataset in a small cache and what it is to have.
struct Case {
    kind: Kind,
    dataset: Dataset,
    model: Vec<i32>,
    /// Chunks that have been written to.
    chunks: u64,
}

impl Case {
    fn stats(&self) -> Stats {
        self.dataset.cache_stats()
    }

    fn write(&mut self, start: u64, values: &[i32]) {
        self.kind.write(&self.dataset, start, values);
        self.model[start as usize..][..values.len()].copy_from_slice(values);
    }

    /// Writes to chunk after chunk until much of the cache has changed, but not all of it.
    fn fill(&mut self) {
        let count = if self.kind == Kind::Dense { CHUNK } else { WRITTEN };
        while self.stats().resident < LIMIT / 2 + LIMIT / 16 && self.stats().written_early == 0 {
            assert!(self.chunks < CHUNKS, "{:?}: {:?}", self.kind, self.stats());
            let seed = 1 + self.chunks as i32 * 1000;
            let values: Vec<i32> = (seed..seed + count as i32).collect();
            self.write(self.chunks * CHUNK, &values);
            self.chunks += 1;
        }
    }

    /// Uses the last chunk, so that the others become cold, until an idle thread has done something.
    fn wait_for(&mut self, done: impl Fn(&Stats) -> bool) {
        let last = (self.chunks - 1) * CHUNK;
        for turn in 0..PATIENCE {
            if done(&self.stats()) {
                return;
            }
            self.write(last, &[turn as i32 + 5]);
            match turn < 1000 {
                true => yield_now(),
                false => sleep(Duration::from_millis(1)),
            }
        }
        panic!("{:?}: {:?}", self.kind, self.stats());
    }
}

fn check(kind: Kind, run: impl Fn(&mut Case)) {
    let context = Context::builder().threads(3).cache_bytes(LIMIT).build().unwrap();
    let store = Arc::new(MemoryStore::default());
    let file = File::options().context(&context).create_in(store.clone()).unwrap();
    let dataset = kind.create(&file);
    let model = vec![0; (CHUNKS * CHUNK) as usize];
    let mut case = Case { kind, dataset, model, chunks: 0 };
    case.fill();
    run(&mut case);
    let Case { dataset, model, .. } = case;
    drop(dataset);
    file.close().unwrap();
    let file = File::options().open_in(store).unwrap();
    kind.check(&file.dataset("data").unwrap(), &model);
}

#[test]
fn what_is_encoded_early_and_changed_is_stored_as_changed_and_the_rest_as_it_was_encoded() {
    for kind in [Kind::Sparse, Kind::SparseFiltered, Kind::SparseStrings, Kind::Strings] {
        check(kind, |case| {
            case.wait_for(|stats| stats.encoded_early >= 3);
            let before = case.stats();
            assert_eq!((before.early_used, before.early_dropped), (0, 0), "{kind:?}");
            // Cells in the middle of chunk after chunk, until some encodings have become useless.
            let mut chunk = 0;
            while case.stats().early_dropped < 2 {
                assert!(chunk < case.chunks, "{kind:?}: {:?}", case.stats());
                case.write(chunk * CHUNK + WRITTEN - 3, &[77, 78, 79, 80, 81, 82]);
                chunk += 1;
            }
            case.dataset.flush().unwrap();
            let stats = case.stats();
            assert!(stats.early_used > 0, "{kind:?}: {stats:?}");
            assert!(
                stats.early_used + stats.early_dropped <= stats.encoded_early,
                "{kind:?}: {stats:?}"
            );
            assert_eq!(stats.dirty, 0, "{kind:?}");
            // Once more, of what is stored now.
            case.write(5, &[91]);
        });
    }
}

#[test]
fn what_is_encoded_early_of_a_chunk_that_is_erased_is_not_stored() {
    for kind in [Kind::Sparse, Kind::SparseStrings] {
        check(kind, |case| {
            case.wait_for(|stats| stats.encoded_early >= 2);
            for chunk in (0..case.chunks).step_by(2) {
                let cells = chunk * CHUNK + 10..(chunk + 1) * CHUNK;
                case.dataset.erase(cells.clone()).unwrap();
                case.model[cells.start as usize..cells.end as usize].fill(0);
            }
            assert!(case.stats().early_dropped > 0, "{kind:?}: {:?}", case.stats());
        });
    }
}

#[test]
fn dense_chunks_that_are_written_early_and_changed_are_stored_as_changed() {
    check(Kind::Dense, |case| {
        case.wait_for(|stats| stats.written_early >= 3);
        for chunk in 0..case.chunks {
            case.write(chunk * CHUNK + 3, &[-1, -2, -3]);
        }
        case.dataset.flush().unwrap();
        assert_eq!(case.stats().dirty, 0);
        assert!(case.stats().write_backs > case.chunks, "{:?}", case.stats());
    });
}

#[test]
fn chunks_whose_encoding_is_what_they_are_made_of_are_encoded_early_once() {
    let context = Context::builder().threads(3).cache_bytes(LIMIT).build().unwrap();
    let store = Arc::new(MemoryStore::default());
    let file = File::options().context(&context).create_in(store.clone()).unwrap();
    let pointers: Vec<u32> = (0..=32).map(|row| 60 * row).collect();
    // Scattered but for a few neighbours, so that they are stored as they are split.
    let scattered = |at: u32| 130 * (at % 60) + at * at / 7 % 127;
    let column = |at: u32| if at % 20 == 19 { scattered(at - 1) + 1 } else { scattered(at) };
    let columns: Vec<u32> = (0..32 * 60).map(column).collect();
    let points = Points::compressed_rows(&pointers[..], &columns[..]).unwrap();
    let values: Vec<f32> = (0..32 * 60).map(|at| at as f32).collect();
    let mut datasets = Vec::new();
    while context.stats().resident < LIMIT / 2 + LIMIT / 16 {
        let new = file.new_dataset::<f32>().shape([32, 8000]).chunk([32, 8000]).sparse();
        let new = new.value_filters(vec![]).location_filters(vec![FilterSpec::location()]);
        let dataset = new.create(&format!("d{}", datasets.len())).unwrap();
        dataset.write_at(&points, &values).unwrap();
        datasets.push(dataset);
        assert!(datasets.len() < 1000, "{:?}", context.stats());
    }
    let (last, others) = datasets.split_last().unwrap();
    // Used again and again, so that the others become cold.
    for turn in 0..PATIENCE {
        if context.stats().encoded_early >= 3 {
            break;
        }
        last.write((0, 0..2), &[1.0f32, 2.0]).unwrap();
        sleep(Duration::from_millis(u64::from(turn > 1000)));
    }
    sleep(Duration::from_millis(100));
    let early = context.stats().encoded_early;
    assert!((3..=datasets.len() as u64).contains(&early), "{early} of {}", datasets.len());
    assert_eq!(others[0].read_columns::<u32, f32>(..).unwrap().values, values);
    drop(datasets);
    file.close().unwrap();
    let file = File::options().open_in(store).unwrap();
    let found = file.dataset("d1").unwrap().read_columns::<u32, f32>(..).unwrap();
    assert_eq!((&found.coordinates[1], &found.values), (&columns, &values));
}
