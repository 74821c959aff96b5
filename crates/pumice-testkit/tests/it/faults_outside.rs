//! A fault at every call of the files that external raw data is in, and of the file that names them: read
//! errors, short reads, writes that are half done, a full disk. The error reaches the caller; cells that
//! were not to be written stay as they are, in these files and in the cache; the same step succeeds
//! afterwards, and so does a flush.

use pumice::{Context, Dataset, File, Selection};
use pumice_store::MemoryStore;
use pumice_testkit::faults::{Call, Fault, FaultyStore};
use std::path::Path;
use std::sync::Arc;

const SHAPE: [u64; 2] = [12, 10];
/// Bytes of the first of two files: rows of either type lie across.
const FIRST: u64 = 210;
const NAMES: [&str; 3] = ["numbers", "converted", "inside"];

#[derive(Clone, Copy, Debug)]
enum Step {
    Write { dataset: usize, start: [u64; 2], count: [u64; 2], seed: i32 },
    Read { dataset: usize, start: [u64; 2], count: [u64; 2] },
    Flush,
}

/// Whole datasets, rows, columns and cells.
fn steps() -> Vec<Step> {
    let blocks = [([0, 0], SHAPE), ([4, 0], [3, 10]), ([0, 3], [12, 2]), ([5, 5], [1, 1])];
    let mut steps = Vec::new();
    for (number, (start, count)) in blocks.into_iter().enumerate() {
        for dataset in 0..NAMES.len() {
            let seed = (number * 1000 + dataset * 300 + 7) as i32;
            steps.push(Step::Write { dataset, start, count, seed });
            let (start, count) = blocks[(number + 1) % blocks.len()];
            steps.push(Step::Read { dataset, start, count });
        }
        steps.push(Step::Flush);
    }
    steps
}

struct Case {
    file: File,
    datasets: Vec<Dataset>,
    models: Vec<Vec<i32>>,
}

impl Case {
    fn create(store: Arc<FaultyStore>, folder: &Path) -> Self {
        let context = Context::builder().cache_bytes(1000).threads(1).build().unwrap();
        let file = File::options().context(&context).create_in(store).unwrap();
        let path = |name: &str| {
            // What is missing cannot be read.
            std::fs::write(folder.join(name), []).unwrap();
            folder.join(name).to_str().unwrap().to_owned()
        };
        let numbers = file.new_dataset::<i32>().shape(SHAPE).external(&path("a"), 8, Some(FIRST));
        let converted = file.new_dataset::<i64>().shape(SHAPE).external(&path("c"), 0, Some(FIRST));
        let datasets = vec![
            numbers.external(&path("b"), 0, None).create(NAMES[0]).unwrap(),
            converted.external(&path("d"), 3, None).create(NAMES[1]).unwrap(),
            file.new_dataset::<i32>()
                .shape(SHAPE)
                .chunk([5, 4])
                .deflate(1)
                .create(NAMES[2])
                .unwrap(),
        ];
        file.flush().unwrap();
        let models = vec![vec![0; (SHAPE[0] * SHAPE[1]) as usize]; NAMES.len()];
        Self { file, datasets, models }
    }

    fn apply(&mut self, step: Step) -> pumice::Result<()> {
        match step {
            Step::Write { dataset, start, count, seed } => {
                let values: Vec<i32> = (seed..).take((count[0] * count[1]) as usize).collect();
                self.datasets[dataset].write(Selection::block(&start, &count)?, &values)?;
                for (_, place, value) in intended(step) {
                    self.models[dataset][place] = value;
                }
            }
            Step::Read { dataset, start, count } => {
                let found =
                    self.datasets[dataset].read::<i32>(Selection::block(&start, &count)?)?;
                let model = &self.models[dataset];
                let wanted: Vec<i32> = places(start, count).map(|place| model[place]).collect();
                assert_eq!(found, wanted, "{step:?}");
            }
            Step::Flush => self.file.flush()?,
        }
        Ok(())
    }

    /// All is as the model says, but for cells that a step was about to write: those are old or new.
    fn check(&self, step: Step, at: &str) {
        for (number, dataset) in self.datasets.iter().enumerate() {
            let found = dataset.read::<i32>(..).unwrap();
            let mut wanted = self.models[number].clone();
            for (_, place, value) in intended(step).filter(|(of, ..)| *of == number) {
                if found[place] == value {
                    wanted[place] = value;
                }
            }
            assert_eq!(found, wanted, "{at}: {} was harmed", NAMES[number]);
        }
    }
}

fn places(start: [u64; 2], count: [u64; 2]) -> impl Iterator<Item = usize> {
    let rows = start[0]..start[0] + count[0];
    let columns = start[1]..start[1] + count[1];
    rows.flat_map(move |row| columns.clone().map(move |column| (row * SHAPE[1] + column) as usize))
}

/// The change of a step: dataset, place, value.
fn intended(step: Step) -> impl Iterator<Item = (usize, usize, i32)> {
    let (dataset, start, count, seed) = match step {
        Step::Write { dataset, start, count, seed } => (dataset, start, count, seed),
        _ => (0, [0, 0], [0, 0], 0),
    };
    places(start, count).zip(seed..).map(move |(place, value)| (dataset, place, value))
}

/// Runs all steps with a fault, if one is given; gives the calls, and the steps that failed.
fn run(fault: Option<(usize, Fault)>) -> (Vec<Call>, Vec<Step>) {
    let folder = tempfile::tempdir().unwrap();
    let memory = Arc::new(MemoryStore::default());
    let store = Arc::new(FaultyStore::new(memory.clone()));
    let mut case = Case::create(store.clone(), folder.path());
    match fault {
        Some((call, fault)) => store.fail_at(call, fault),
        None => store.forget(),
    }
    let mut failed = Vec::new();
    for step in steps() {
        let at = format!("{fault:?} in {step:?}");
        let Err(error) = case.apply(step) else { continue };
        assert!(format!("{error} {error:?}").contains("injected"), "{at} became {error}");
        failed.push(step);
        store.heal();
        case.check(step, &at);
        case.apply(step).unwrap_or_else(|error| panic!("{at}, again: {error}"));
    }
    let calls = store.calls();
    store.heal();
    case.file.flush().unwrap();
    case.check(Step::Flush, &format!("{fault:?}, at the end"));
    let Case { file, datasets, models } = case;
    drop(datasets);
    file.close().unwrap();
    let file = File::options().open_bytes(memory.to_vec()).unwrap();
    for (name, model) in NAMES.iter().zip(&models) {
        assert_eq!(
            file.dataset(name).unwrap().read::<i32>(..).unwrap(),
            *model,
            "{fault:?}: {name}"
        );
    }
    (calls, failed)
}

#[test]
fn a_fault_at_any_call_of_external_files_is_told_and_harms_nothing() {
    let (calls, failed) = run(None);
    assert!(failed.is_empty());
    // Reads and writes of each dataset that failed.
    let mut seen = [[0; 2]; NAMES.len()];
    for (at, call) in calls.iter().enumerate() {
        for fault in call.faults() {
            let (_, failed) = run(Some((at, fault)));
            // What failed while another chunk made room is tried again; nobody else is left untold.
            let retried = fault == Fault::WriteError && failed.is_empty();
            assert!(failed.len() == 1 || retried, "{fault:?} at call {at}: {failed:?}");
            match failed.first() {
                Some(Step::Read { dataset, .. }) => seen[*dataset][0] += 1,
                Some(Step::Write { dataset, .. }) => seen[*dataset][1] += 1,
                _ => {}
            }
        }
    }
    assert!(seen[..2].iter().flatten().all(|&count| count >= 8), "{seen:?}");
}
