//! A fault at every call of a write of strings that are in the global heap, which is tried again, and of a
//! commit after it: no string is lost, neither then nor when room is used again after that.

use pumice::{Context, Dataset, File};
use pumice_store::MemoryStore;
use pumice_testkit::faults::{Fault, FaultyStore};
use std::sync::Arc;

/// How many strings there are, and how many of them have a chunk.
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

fn check(strings: &Dataset, expected: &[String], when: &str) {
    let found = strings.read_strings(..).unwrap_or_else(|error| panic!("{when}: {error}"));
    assert!(found.iter().eq(expected.iter().map(String::as_bytes)), "{when}");
}

fn created(store: Arc<FaultyStore>) -> File {
    let context = Context::builder().cache_bytes(CACHE).threads(0).build().unwrap();
    File::options().context(&context).create_in(store).unwrap()
}

/// Strings that are committed, and a fault at a call from there on. Says whether it came.
fn run(fault: Fault, call: usize) -> bool {
    let memory = Arc::new(MemoryStore::new(Vec::new()));
    let store = Arc::new(FaultyStore::new(memory.clone()));
    let file = created(store.clone());
    let builder = file.new_strings().shape([COUNT as u64]).chunk([CHUNK]);
    let strings = builder.create("strings").unwrap();
    strings.write_strings(.., &texts(0)).unwrap();
    file.flush().unwrap();
    let when = format!("{fault:?} at call {call}");
    store.fail_at(call, fault);
    let write = || strings.write_strings(.., &texts(1)).and_then(|()| file.flush());
    if write().is_err() {
        store.heal();
        // What a commit that failed has begun is still to do, and more comes meanwhile.
        (2..ROUNDS).for_each(|round| strings.write_strings(.., &texts(round)).unwrap());
    }
    let came = !store.is_waiting();
    store.heal();
    strings.write_strings(.., &texts(1)).unwrap();
    check(&strings, &texts(1), &when);
    file.flush().unwrap();
    check(&strings, &texts(1), &format!("{when}, after a flush"));
    (2..ROUNDS).for_each(|round| strings.write_strings(.., &texts(round)).unwrap());
    strings.write_strings(.., &texts(2)).unwrap();
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
