//! A fault at every call of recorded workloads, with and without threads of the cache's own: the error
//! reaches the caller, in the call or in the next flush, nothing else is harmed, what was not written
//! stays in the cache, and later everything can be written. Only a write that made room in the cache, failed
//! and succeeded when it was tried again is told to nobody: then the next flush has left nothing unwritten.
//!
//! External data are in files of their own, whose calls are among the others.

use pumice::{
    AllocationTime, CacheOptions, Context, Dataset, File, ReadMany, Selection, WriteMany,
};
use pumice_store::MemoryStore;
use pumice_testkit::faults::{Call, Fault, FaultyStore};
use std::path::Path;
use std::sync::Arc;

/// Bytes of the cache: a few chunks, so that most accesses let one leave.
const CACHE: u64 = 1000;
/// Steps of one workload: few, since it is run once for every fault of every call of it.
const STEPS: usize = 12;
/// Workloads without threads, and with.
const ALONE: u64 = 9;
const THREADED: u64 = 4;
const THREADS: usize = 3;

const NAMES: [&str; 11] = [
    "plain",
    "packed",
    "fixed",
    "sparse",
    "flat",
    "words",
    "direct",
    "early",
    "converted",
    "external",
    "virtual",
];
const PLAIN: usize = 0;
const PACKED: usize = 1;
const SPARSE: usize = 3;
const FLAT: usize = 4;
/// Numbers as strings of variable length, in sparse chunks.
const WORDS: usize = 5;
/// Chunks that go past the cache.
const DIRECT: usize = 6;
/// All chunks have their place from the start.
const EARLY: usize = 7;
/// In files of its own.
const EXTERNAL: usize = 9;
/// All of it is that of another dataset.
const VIRTUAL: usize = 10;

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Write {
        dataset: usize,
        start: [u64; 2],
        count: [u64; 2],
        seed: i32,
    },
    /// To several datasets in one request.
    WriteMany {
        start: [u64; 2],
        count: [u64; 2],
        seed: i32,
    },
    Erase {
        dataset: usize,
        start: [u64; 2],
        count: [u64; 2],
    },
    Read {
        dataset: usize,
        start: [u64; 2],
        count: [u64; 2],
    },
    /// All of several datasets in one request.
    ReadMany,
    /// What fails here is met again by who needs it.
    Prefetch {
        dataset: usize,
    },
    Resize {
        dataset: usize,
        shape: [u64; 2],
    },
    RawChunk {
        dataset: usize,
    },
    FlushDataset {
        dataset: usize,
    },
    Flush,
}

/// The datasets of requests for several.
const MANY: [usize; 5] = [PACKED, SPARSE, FLAT, DIRECT, EARLY];

/// The expected values of a dataset.
#[derive(Clone, PartialEq)]
struct Model {
    shape: [u64; 2],
    cells: Vec<i32>,
}

impl Model {
    fn resized(&self, shape: [u64; 2]) -> Self {
        let mut cells = vec![0; (shape[0] * shape[1]) as usize];
        for row in 0..shape[0].min(self.shape[0]) {
            for column in 0..shape[1].min(self.shape[1]) {
                cells[(row * shape[1] + column) as usize] =
                    self.cells[(row * self.shape[1] + column) as usize];
            }
        }
        Self { shape, cells }
    }

    fn places(&self, start: [u64; 2], count: [u64; 2]) -> Vec<usize> {
        let cell = |row: u64, column: u64| (row * self.shape[1] + column) as usize;
        let rows = start[0]..start[0] + count[0];
        rows.flat_map(|row| (start[1]..start[1] + count[1]).map(move |c| cell(row, c))).collect()
    }
}

/// Numbers that look random and are always the same.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % limit.max(1)
    }
}

fn create(
    store: Arc<FaultyStore>,
    threads: usize,
    outside: &Path,
) -> (File, Vec<Dataset>, Vec<Model>) {
    let context = Context::builder().cache_bytes(CACHE).threads(threads).build().unwrap();
    let file = File::options().context(&context).create_in(store).unwrap();
    let shapes = [
        [24, 20],
        [30, 16],
        [20, 20],
        [40, 40],
        [30, 30],
        [18, 18],
        [24, 20],
        [21, 20],
        [20, 24],
        [16, 16],
        [22, 18],
    ];
    let new = |number: usize| file.new_dataset::<i32>().shape(shapes[number]);
    let datasets = vec![
        new(0).max_shape([None, None]).chunk([7, 6]).create("plain").unwrap(),
        new(1)
            .max_shape([None, Some(16)])
            .chunk([8, 8])
            .shuffle()
            .deflate(3)
            .dont_filter_partial_chunks()
            .create("packed")
            .unwrap(),
        new(2).chunk([6, 6]).deflate(3).fletcher32().create("fixed").unwrap(),
        new(3).max_shape([None, Some(40)]).chunk([10, 10]).sparse().create("sparse").unwrap(),
        new(4).create("flat").unwrap(),
        file.new_strings().shape(shapes[5]).chunk([6, 6]).sparse().create("words").unwrap(),
        new(6).chunk([8, 10]).create("direct").unwrap(),
        new(7)
            .max_shape([Some(60), Some(20)])
            .chunk([7, 10])
            .allocation_time(AllocationTime::Early)
            .create("early")
            .unwrap(),
        file.new_dataset::<i64>().shape(shapes[8]).chunk([8, 8]).create("converted").unwrap(),
        new(9).external(outside.to_str().unwrap(), 0, None).create("external").unwrap(),
        virtual_one(&file, shapes[10]),
    ];
    datasets[DIRECT].set_cache_options(CacheOptions::default().direct(true));
    file.flush().unwrap();
    let model =
        |shape: &[u64; 2]| Model { shape: *shape, cells: vec![0; (shape[0] * shape[1]) as usize] };
    (file, datasets, shapes.iter().map(model).collect())
}

/// A dataset that is another one, in compressed chunks.
fn virtual_one(file: &File, shape: [u64; 2]) -> Dataset {
    file.new_dataset::<i32>().shape(shape).chunk([6, 9]).deflate(1).create("source").unwrap();
    let all = || Selection::block(&[0, 0], &shape).unwrap();
    let new = file.new_dataset::<i32>().shape(shape);
    new.virtual_part(all(), ".", "source", all()).create("virtual").unwrap()
}

fn workload(models: &[Model], seed: u64) -> Vec<Step> {
    let mut dice = Dice(seed);
    let mut shapes: Vec<[u64; 2]> = models.iter().map(|model| model.shape).collect();
    let mut steps = Vec::new();
    for _ in 0..STEPS {
        let dataset = dice.below(NAMES.len() as u64) as usize;
        let shape = shapes[dataset];
        let start = [dice.below(shape[0]), dice.below(shape[1])];
        let count = [1 + dice.below(shape[0] - start[0]), 1 + dice.below(shape[1] - start[1])];
        let seed = dice.below(1 << 30) as i32 + 1;
        steps.push(match dice.below(16) {
            0..=4 => Step::Write { dataset, start, count, seed },
            5 | 6 => Step::Read { dataset, start, count },
            7 => Step::ReadMany,
            12 => {
                let start = [dice.below(4), dice.below(10)];
                Step::WriteMany { start, count: [1, 1 + dice.below(6)], seed }
            }
            13 | 14 if matches!(dataset, SPARSE | WORDS) => Step::Erase { dataset, start, count },
            13..=15 if dataset == VIRTUAL => Step::Read { dataset, start, count },
            13..=15 => Step::Prefetch { dataset },
            8 | 9 => {
                let resizable = [PLAIN, PACKED, SPARSE, EARLY];
                let dataset = resizable[dice.below(4) as usize];
                let rows = 5 + dice.below(40);
                let columns =
                    if dataset == PLAIN { 3 + dice.below(25) } else { shapes[dataset][1] };
                shapes[dataset] = [rows, columns];
                Step::Resize { dataset, shape: [rows, columns] }
            }
            10 if matches!(dataset, FLAT | WORDS | EXTERNAL | VIRTUAL) => Step::Flush,
            10 => Step::RawChunk { dataset },
            _ if dice.below(2) == 0 => Step::Flush,
            _ => Step::FlushDataset { dataset },
        });
    }
    steps.push(Step::Flush);
    steps
}

fn write(number: usize, dataset: &Dataset, to: Selection, values: &[i32]) -> pumice::Result<()> {
    if number != WORDS {
        return dataset.write(to, values);
    }
    let words: Vec<String> = values.iter().map(|value| format!("{value:x}").repeat(3)).collect();
    dataset.write_strings(to, &words)
}

fn read(number: usize, dataset: &Dataset, from: Selection) -> pumice::Result<Vec<i32>> {
    if number != WORDS {
        return dataset.read::<i32>(from);
    }
    let number = |word: &[u8]| match word.len() {
        0 => 0,
        len => {
            let digits = str::from_utf8(&word[..len / 3]).expect("digits");
            i32::from_str_radix(digits, 16).expect("a number as it was written")
        }
    };
    Ok(dataset.read_strings(from)?.iter().map(number).collect())
}

/// The change of a step: dataset, place, value.
fn intended(models: &[Model], step: &Step) -> Vec<(usize, usize, i32)> {
    let block = |dataset: usize, start, count, seed: Option<i32>| {
        let places = models[dataset].places(start, count).into_iter().enumerate();
        places.map(move |(i, place)| (dataset, place, seed.map_or(0, |seed| seed ^ i as i32)))
    };
    match *step {
        Step::Write { dataset, start, count, seed } => {
            block(dataset, start, count, Some(seed)).collect()
        }
        Step::Erase { dataset, start, count } => block(dataset, start, count, None).collect(),
        Step::WriteMany { start, count, seed } => {
            MANY.iter().flat_map(|&dataset| block(dataset, start, count, Some(seed))).collect()
        }
        _ => Vec::new(),
    }
}

fn follow(models: &mut [Model], step: &Step) {
    for (dataset, place, value) in intended(models, step) {
        models[dataset].cells[place] = value;
    }
}

/// Carries out a step; the model follows only if all goes well.
fn apply(file: &File, all: &[Dataset], models: &mut [Model], step: &Step) -> pumice::Result<()> {
    match *step {
        Step::Write { dataset, start, count, seed } => {
            let values: Vec<i32> = (0..(count[0] * count[1]) as i32).map(|i| seed ^ i).collect();
            write(dataset, &all[dataset], Selection::block(&start, &count)?, &values)?;
            follow(models, step);
        }
        Step::WriteMany { start, count, seed } => {
            let values: Vec<i32> = (0..(count[0] * count[1]) as i32).map(|i| seed ^ i).collect();
            let mut writes = WriteMany::new();
            for dataset in MANY {
                writes.add(&all[dataset], Selection::block(&start, &count)?, &values)?;
            }
            writes.run()?;
            follow(models, step);
        }
        Step::Erase { dataset, start, count } => {
            all[dataset].erase(Selection::block(&start, &count)?)?;
            follow(models, step);
        }
        Step::ReadMany => {
            let sizes = MANY.map(|dataset| models[dataset].cells.len());
            let mut buffers = sizes.map(|size| vec![0; size]);
            let mut reads = ReadMany::new();
            for (dataset, buffer) in MANY.into_iter().zip(&mut buffers) {
                reads.add(&all[dataset], .., buffer)?;
            }
            reads.run()?;
            assert!(
                MANY.iter().zip(&buffers).all(|(&dataset, found)| *found == models[dataset].cells)
            );
        }
        Step::Prefetch { dataset } => drop(all[dataset].prefetch(..)?),
        Step::Read { dataset, start, count } => {
            let found = read(dataset, &all[dataset], Selection::block(&start, &count)?)?;
            let model = &models[dataset];
            let wanted: Vec<i32> =
                model.places(start, count).into_iter().map(|place| model.cells[place]).collect();
            assert_eq!(found, wanted, "{step:?}");
        }
        Step::Resize { dataset, shape } => {
            all[dataset].resize(shape)?;
            models[dataset] = models[dataset].resized(shape);
        }
        Step::RawChunk { dataset } => {
            // Structured chunks have sections, and functions of their own.
            if dataset == SPARSE {
                return Ok(());
            }
            let chunks = all[dataset].chunks()?.list()?;
            let Some(chunk) = chunks.get(chunks.len() / 2) else { return Ok(()) };
            let found = all[dataset].read_chunk(&chunk.offset)?;
            let (bytes, mask) = found.expect("it was listed");
            // The same bytes again: a change that changes nothing.
            all[dataset].write_chunk(&chunk.offset, &bytes, mask)?;
        }
        Step::FlushDataset { dataset } => all[dataset].flush()?,
        Step::Flush => file.flush()?,
    }
    Ok(())
}

/// Everything is as the model says, but for cells that `step` was about to write: those are old or
/// new.
fn check(all: &[Dataset], models: &[Model], step: &Step) {
    let changed = intended(models, step);
    for (number, (dataset, model)) in all.iter().zip(models).enumerate() {
        let name = NAMES[number];
        assert_eq!(dataset.shape(), model.shape, "{name} after a failed {step:?}");
        let found = read_all(number, dataset);
        let mut wanted = model.cells.clone();
        for &(_, place, value) in changed.iter().filter(|(of, ..)| *of == number) {
            if found[place] == value {
                wanted[place] = value;
            }
        }
        assert!(found == wanted, "{name} was harmed by a failed {step:?}");
    }
}

fn read_all(number: usize, dataset: &Dataset) -> Vec<i32> {
    let all = Selection::block(&[0, 0], &dataset.shape()).unwrap();
    read(number, dataset, all).unwrap()
}

fn check_file(bytes: Vec<u8>, models: &[Model]) {
    let context = Context::builder().threads(1).build().unwrap();
    let file = File::options().context(&context).open_bytes(bytes).unwrap();
    for (number, (model, name)) in models.iter().zip(NAMES).enumerate() {
        let dataset = file.dataset(name).unwrap();
        assert_eq!(dataset.shape(), model.shape, "{name}");
        assert!(read_all(number, &dataset) == model.cells, "{name} as it was written");
    }
}

/// Runs a workload with a fault, if one is given; returns the calls of the store.
fn run(seed: u64, threads: usize, fault: Option<(usize, Fault)>) -> Vec<Call> {
    let folder = tempfile::tempdir().unwrap();
    let memory = Arc::new(MemoryStore::default());
    let store = Arc::new(FaultyStore::new(memory.clone()));
    let outside = folder.path().join("data");
    std::fs::write(&outside, []).unwrap();
    let (file, all, mut models) = create(store.clone(), threads, &outside);
    let steps = workload(&models, seed);
    match fault {
        Some((call, fault)) => store.fail_at(call, fault),
        None => store.forget(),
    }
    let (mut errors, mut ahead, mut untold) = (0, false, 0);
    for step in &steps {
        let waiting = store.is_waiting();
        let outcome = apply(&file, &all, &mut models, step);
        ahead |= waiting && !store.is_waiting() && matches!(step, Step::Prefetch { .. });
        if let Err(error) = outcome {
            let text = error.to_string() + &format!("{error:?}");
            assert!(text.contains("injected"), "{fault:?} in {step:?} became {error}");
            errors += 1;
            store.heal();
            check(&all, &models, step);
            apply(&file, &all, &mut models, step)
                .unwrap_or_else(|error| panic!("{fault:?}: again {step:?}: {error}"));
        } else if fault.is_some()
            && !store.is_waiting()
            && errors + untold == 0
            && *step == Step::Flush
        {
            // A write that failed once was tried again before anybody had to be told. Nobody was told,
            // so all must be written.
            check_file(memory.to_vec(), &models);
            untold = 1;
        }
    }
    if let Some((at, kind)) = fault {
        // Calls may come in another order than they were recorded in: the last may not come.
        let can_have = |call: &&Call| call.faults().contains(&kind);
        let missed = store.is_waiting() && !store.calls().iter().skip(at).any(|c| can_have(&c));
        let told = errors == 1 || ahead || (kind == Fault::WriteError && untold == 1);
        let what = format!("workload {seed}, {threads} thread(s): {fault:?}");
        assert!(missed || (told && !store.is_waiting()), "{what} must reach the caller: {errors}");
    }
    let calls = store.calls();
    store.heal();
    check(&all, &models, &Step::Flush);
    file.flush().unwrap();
    check_file(memory.to_vec(), &models);
    calls
}

fn every_fault_of(workloads: u64, threads: usize) {
    let mut tried = 0;
    for seed in 1..=workloads {
        let calls = run(seed, threads, None);
        assert!(calls.len() > 20, "only {} calls", calls.len());
        for (at, call) in calls.iter().enumerate() {
            call.faults().into_iter().for_each(|fault| drop(run(seed, threads, Some((at, fault)))));
            tried += 2;
        }
    }
    println!("{tried} faults");
}

#[test]
fn a_fault_at_any_call_is_told_and_harms_nothing() {
    every_fault_of(ALONE, 1);
}

#[test]
fn with_threads_a_fault_at_any_call_is_told_and_harms_nothing() {
    every_fault_of(THREADED, THREADS);
}

/// Rows of external data that are on a good disk, and all of them.
const GOOD_ROWS: u64 = 4;
const ROWS: u64 = 8;

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_behind_external_data_is_told_and_harms_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (good, full) = (folder.path().join("good"), folder.path().join("full"));
    // Whatever is written there, the disk is full.
    std::os::unix::fs::symlink("/dev/full", &full).unwrap();
    let path = folder.path().join("file.h5");
    let values: Vec<i32> = (1..=(ROWS * 4) as i32).collect();
    {
        let file = File::create(&path).unwrap();
        let new = file.new_dataset::<i32>().shape([ROWS, 4]);
        let new = new.external(good.to_str().unwrap(), 0, Some(16 * GOOD_ROWS));
        let outside = new.external(full.to_str().unwrap(), 0, None).create("outside").unwrap();
        let inside = file.new_dataset::<i32>().shape([ROWS, 4]).chunk([2, 4]).deflate(1);
        let inside = inside.create("inside").unwrap();
        inside.write(.., &values).unwrap();
        outside.write((0..GOOD_ROWS, ..), &values[..16]).unwrap();
        let error = outside.write(.., &values).unwrap_err();
        assert!(format!("{error:?}").contains("StorageFull"), "{error:?}");
        assert_eq!(outside.read::<i32>((0..GOOD_ROWS, ..)).unwrap(), values[..16]);
        assert_eq!(inside.read::<i32>(..).unwrap(), values);
        file.close().unwrap();
    }
    std::fs::remove_file(&full).unwrap();
    let file = File::open_rw(&path).unwrap();
    assert_eq!(file.dataset("inside").unwrap().read::<i32>(..).unwrap(), values);
    let outside = file.dataset("outside").unwrap();
    outside.write(.., &values).unwrap();
    assert_eq!(outside.read::<i32>(..).unwrap(), values);
}
