//! One writer, many readers: whatever a writer has done when a reader looks, between any two of its writes, the
//! reader finds a state that was, or one on the way from it to the next with all that it promises. One that is ended there leaves a file
//! that is as good as its last commit.

use pumice::{Dataset, DatasetBuilder, File, FileOptions};
use pumice_store::MemoryStore;
use pumice_testkit::moments::torn;
use pumice_testkit::recording::RecordingStore;
use std::sync::Arc;

const APPENDS: u64 = 40;
/// The number of readers that have the file open at a time.
const READERS: usize = 5;

/// Ways to make a dataset that grows along its first axis.
type Make = fn(&File) -> DatasetBuilder;

fn kinds() -> Vec<(&'static str, Make)> {
    let rows: Make = |file| file.new_dataset::<i64>().shape([0]).max_shape([None]).chunk([3]);
    vec![
        ("extensible array", rows),
        ("extensible array, deflate", |file| {
            file.new_dataset::<i64>()
                .shape([0, 4])
                .max_shape([None, Some(4)])
                .chunk([5, 3])
                .deflate(6)
        }),
        ("fixed array", |file| {
            let dataset = file.new_dataset::<i64>().shape([0, 4]).max_shape([Some(500), Some(4)]);
            dataset.chunk([2, 3])
        }),
        ("fixed array, deflate", |file| {
            let dataset = file.new_dataset::<i64>().shape([0, 4]).max_shape([Some(500), Some(4)]);
            dataset.chunk([7, 3]).deflate(1)
        }),
        ("version 2 B-tree", |file| {
            file.new_dataset::<i64>().shape([0, 4]).max_shape([None, None]).chunk([1, 1])
        }),
        ("version 2 B-tree, deflate", |file| {
            file.new_dataset::<i64>().shape([0, 4]).max_shape([None, None]).chunk([2, 3]).deflate(6)
        }),
        ("sparse, extensible array", |file| {
            file.new_dataset::<i64>()
                .shape([0, 4])
                .max_shape([None, Some(4)])
                .chunk([5, 3])
                .sparse()
        }),
        ("sparse, version 2 B-tree", |file| {
            file.new_dataset::<i64>().shape([0, 4]).max_shape([None, None]).chunk([2, 2]).sparse()
        }),
    ]
}

fn cells(rows: std::ops::Range<u64>, shape: &[u64]) -> Vec<i64> {
    let columns = shape.get(1).copied().unwrap_or(1);
    rows.flat_map(|row| (0..columns).map(move |column| (1000 * row + column) as i64)).collect()
}

fn append(dataset: &Dataset, rows: u64) {
    let mut shape = dataset.shape();
    let first = shape[0];
    shape[0] += rows;
    dataset.resize(&shape).unwrap();
    let values = cells(first..shape[0], &shape);
    match shape.len() {
        1 => dataset.write(first..shape[0], &values).unwrap(),
        _ => dataset.write((first..shape[0], ..), &values).unwrap(),
    }
}

/// All writes of a session, how many there were when it began, and after each flush, with the rows of then.
struct Session {
    store: Arc<RecordingStore>,
    begun: usize,
    flushed: Vec<(usize, u64)>,
}

fn session(make: Make, options: FileOptions) -> Session {
    let store = Arc::new(RecordingStore::default());
    let file = options.create_in(store.clone()).unwrap();
    let dataset = make(&file).create("d").unwrap();
    file.start_swmr_write().unwrap();
    let begun = store.count();
    let mut flushed = Vec::new();
    for number in 0..APPENDS {
        append(&dataset, 1 + number % 4);
        if number % 7 == 3 {
            // What a reader does not see yet, and what is let go of early.
            dataset.evict().unwrap();
            append(&dataset, 1);
        }
        file.flush().unwrap();
        flushed.push((store.count(), dataset.shape()[0]));
    }
    drop(dataset);
    file.close().unwrap();
    Session { store, begun, flushed }
}

/// Rows that a reader must find after so many writes.
fn promised(session: &Session, writes: usize) -> u64 {
    session.flushed.iter().rev().find(|(count, _)| *count <= writes).map_or(0, |(_, rows)| *rows)
}

/// A reader with a dataset open, and the rows that it knows of.
struct Reader {
    file: File,
    dataset: Dataset,
}

impl Reader {
    fn new(store: Arc<MemoryStore>) -> Self {
        let file = File::options().swmr(true).open_in(store).unwrap();
        let dataset = file.dataset("d").unwrap();
        Self { file, dataset }
    }

    /// Reads all that it knows of. Gives the rows.
    fn check(&self, told: &str) -> u64 {
        let shape = self.dataset.shape();
        let found: Vec<i64> =
            self.dataset.read(..).unwrap_or_else(|error| panic!("{told}: {error}"));
        assert_eq!(found, cells(0..shape[0], &shape), "{told}: {shape:?}");
        shape[0]
    }
}

#[test]
fn readers_find_what_was_promised_between_any_two_writes() {
    for (name, make) in kinds() {
        let session = session(make, File::options());
        let now = Arc::new(MemoryStore::default());
        session.store.play(session.begun, false, &*now).unwrap();
        let mut readers: Vec<Reader> = Vec::new();
        for writes in session.begun..=session.store.count() {
            let (told, rows) = (format!("{name}, {writes} writes"), promised(&session, writes));
            let reader = Reader::new(now.clone());
            assert!(reader.check(&told) >= rows, "{told}: new reader");
            // Others have it open from earlier on: some have read all, some nothing yet, some have read again.
            if writes % 11 == 0 {
                if readers.len() == READERS {
                    readers.remove(0);
                }
                readers.push(Reader::new(now.clone()));
            }
            for (number, reader) in readers.iter().enumerate() {
                if (writes + number) % 3 == 0 {
                    reader.check(&told);
                }
                if (writes + number) % 13 == 5 {
                    match number % 2 {
                        0 => reader.dataset.refresh().unwrap(),
                        _ => reader.file.refresh().unwrap(),
                    }
                    assert!(reader.check(&told) >= rows, "{told}: refreshed");
                }
            }
            session.store.step(writes, &*now).unwrap();
        }
        let last = session.flushed.last().unwrap().1;
        assert_eq!(Reader::new(now.clone()).check(name), last);
        let file = File::options().open_in(now).unwrap();
        assert_eq!(file.dataset("d").unwrap().shape()[0], last, "{name}: an ordinary file again");
    }
}

#[test]
fn writers_that_are_ended_leave_what_can_be_edited() {
    for (name, make) in kinds() {
        let session = session(make, File::options());
        for writes in (session.begun..session.store.count()).step_by(3) {
            // The last write removes the mark. It is small, and done or not.
            let most = writes + 1 < session.store.count();
            for torn in torn(writes).filter(|torn| most || !torn) {
                let told = format!("{name}, {writes} writes, {torn}");
                let left = Arc::new(MemoryStore::default());
                session.store.play(writes, torn, &*left).unwrap();
                let refused = File::options().edit_in(left.clone());
                let marked = left.to_vec()[11] != 0;
                assert_eq!(refused.is_err(), marked, "{told}");
                drop(refused);
                let file = File::options().ignore_mark(true).edit_in(left.clone()).unwrap();
                let dataset = file.dataset("d").unwrap();
                let shape = dataset.shape();
                assert!(shape[0] >= promised(&session, writes), "{told}: {shape:?}");
                assert_eq!(dataset.read::<i64>(..).unwrap(), cells(0..shape[0], &shape), "{told}");
                append(&dataset, 9);
                file.create_group("later").unwrap();
                drop(dataset);
                file.close().unwrap();
                let file = File::options().open_in(left).unwrap();
                let dataset = file.dataset("d").unwrap();
                let shape = dataset.shape();
                assert_eq!(dataset.read::<i64>(..).unwrap(), cells(0..shape[0], &shape), "{told}");
            }
        }
    }
}

#[test]
fn nothing_that_readers_may_use_is_written_over() {
    for (name, make) in kinds() {
        let store = Arc::new(MemoryStore::default());
        let file = File::options().create_in(store.clone()).unwrap();
        let dataset = make(&file).create("d").unwrap();
        file.start_swmr_write().unwrap();
        append(&dataset, 6);
        file.flush().unwrap();
        let old = Reader::new(store.clone());
        // Known, and not read yet.
        assert_eq!(old.dataset.shape()[0], 6);
        for _ in 0..50 {
            append(&dataset, 2);
            file.flush().unwrap();
        }
        assert_eq!(old.check(name), 6, "{name}");
        old.dataset.refresh().unwrap();
        assert_eq!(old.check(name), 106, "{name}");
    }
}
