//! A fault at every call of a write of strings that are in the global heap, which is tried again, and of a
//! commit after it: no string is lost, neither then nor when room is used again after that.

use pumice::{Context, Dataset, File, Result};
use pumice_store::MemoryStore;
use pumice_testkit::faults::{Fault, FaultyStore};
use std::sync::Arc;

/// The number of strings in each of two columns, and the rows of a chunk.
const COUNT: usize = 120;
const CHUNK: u64 = 10;
/// Bytes of the cache: a few chunks.
const CACHE: u64 = 800;
/// How often all are overwritten after the fault: enough that room is used again.
const ROUNDS: usize = 6;

/// Those of one round are in several collections.
fn texts(round: usize) -> Vec<String> {
    (0..COUNT).map(|number| format!("string {number:6} of round {round:1000}")).collect()
}

/// Writes one of two columns: every chunk is read, if it is not in the cache.
fn write(strings: &Dataset, round: usize) -> Result<()> {
    strings.write_strings((.., 0..1), &texts(round))
}

fn check(strings: &Dataset, expected: &[String], when: &str) {
    let found = strings.read_strings((.., 0..1)).unwrap_or_else(|error| panic!("{when}: {error}"));
    assert!(found.iter().eq(expected.iter().map(String::as_bytes)), "{when}");
}

fn created(store: Arc<FaultyStore>, cache: u64) -> File {
    let context = Context::builder().cache_bytes(cache).threads(0).build().unwrap();
    File::options().context(&context).create_in(store).unwrap()
}

/// Strings that are committed, and a fault at a call from there on. Says whether it came.
fn run(fault: Fault, call: usize) -> bool {
    let memory = Arc::new(MemoryStore::new(Vec::new()));
    let store = Arc::new(FaultyStore::new(memory.clone()));
    let file = created(store.clone(), CACHE);
    let builder = file.new_strings().shape([COUNT as u64, 2]).chunk([CHUNK, 2]);
    let strings = builder.create("strings").unwrap();
    write(&strings, 0).unwrap();
    file.flush().unwrap();
    let when = format!("{fault:?} at call {call}");
    store.fail_at(call, fault);
    if write(&strings, 1).and_then(|()| file.flush()).is_err() {
        store.heal();
        // What a commit that failed has begun is still to do, and more comes meanwhile.
        (2..ROUNDS).for_each(|round| write(&strings, round).unwrap());
    }
    let came = !store.is_waiting();
    store.heal();
    write(&strings, 1).unwrap();
    check(&strings, &texts(1), &when);
    file.flush().unwrap();
    check(&strings, &texts(1), &format!("{when}, after a flush"));
    (2..ROUNDS).for_each(|round| write(&strings, round).unwrap());
    write(&strings, 2).unwrap();
    drop(strings);
    file.close().unwrap();
    let file = File::options().open_bytes(memory.to_vec()).unwrap();
    check(&file.dataset("strings").unwrap(), &texts(2), &format!("{when}, after closing"));
    came
}

#[test]
fn strings_survive_a_fault_at_every_call() {
    for fault in [Fault::ReadError, Fault::WriteError, Fault::DiskFull] {
        let calls = (0..).take_while(|&call| run(fault, call)).count();
        assert!(calls > 10, "{calls} call(s) with {fault:?}");
    }
}

/// The length of a file whose strings are overwritten again and again, after a commit that fails or does not.
fn length(fails: bool) -> usize {
    let memory = Arc::new(MemoryStore::new(Vec::new()));
    let store = Arc::new(FaultyStore::new(memory.clone()));
    // All chunks are in the cache: writing them is what fails.
    let file = created(store.clone(), 1 << 20);
    let builder = file.new_strings().shape([COUNT as u64, 2]).chunk([CHUNK, 2]);
    let strings = builder.create("strings").unwrap();
    write(&strings, 0).unwrap();
    if fails {
        store.fail_at(0, Fault::DiskFull);
    }
    assert_eq!(file.flush().is_err(), fails);
    store.heal();
    (1..40).for_each(|round| write(&strings, round).unwrap());
    check(&strings, &texts(39), "after a commit that fails or not");
    memory.to_vec().len()
}

#[test]
fn strings_take_the_room_of_those_before_after_a_commit_that_failed() {
    let (failed, usual) = (length(true), length(false));
    assert!(failed < 2 * usual, "{failed} instead of {usual}");
}
