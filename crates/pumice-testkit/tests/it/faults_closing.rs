//! Closing a file moves data to where others were, which nobody needs: a fault there, at whatever call, neither
//! lets closing fail nor harms the file.

use pumice::{File, FileSpaceStrategy, LibraryVersion};
use pumice_store::MemoryStore;
use pumice_testkit::faults::{Fault, FaultyStore};
use std::sync::Arc;

/// More than a cluster of everything, so that all is worth moving.
const COUNT: u32 = 3000;

fn numbers(round: u32) -> Vec<u32> {
    (0..COUNT).map(|number| (number + round).wrapping_mul(2_654_435_761)).collect()
}

fn texts(round: u32) -> Vec<String> {
    (0..COUNT / 6).map(|number| format!("string {number:6} of round {round:6}")).collect()
}

fn make(file: &File) {
    let strings = file.new_strings().shape([u64::from(COUNT) / 6]);
    strings.create("strings").unwrap().write_strings(.., &texts(0)).unwrap();
    let chunks = file.new_dataset::<u32>().shape([u64::from(COUNT)]).chunk([300]).deflate(1);
    chunks.create("chunks").unwrap().write(.., &numbers(0)).unwrap();
    let beside = file.new_dataset::<u32>().shape([u64::from(COUNT)]);
    beside.create("beside").unwrap().write(.., &numbers(9)).unwrap();
}

fn check(bytes: Vec<u8>, when: &str) {
    let file = File::options().open_bytes(bytes).unwrap_or_else(|error| panic!("{when}: {error}"));
    assert_eq!(file.dataset("strings").unwrap().read_strings(..).unwrap(), texts(1), "{when}");
    assert_eq!(file.dataset("chunks").unwrap().read::<u32>(..).unwrap(), numbers(1), "{when}");
    assert_eq!(file.dataset("beside").unwrap().read::<u32>(..).unwrap(), numbers(9), "{when}");
}

/// A file of which much was overwritten and committed, closed with a fault at a call. Says whether it came, and
/// how long the file is.
fn run(version: LibraryVersion, fault: Option<(Fault, usize)>) -> (bool, usize) {
    let memory = Arc::new(MemoryStore::new(Vec::new()));
    let options = File::options().space_strategy(FileSpaceStrategy::FreeSpaceManagers);
    make(&options.library_version(version).create_in(memory.clone()).unwrap());
    let store = Arc::new(FaultyStore::new(memory.clone()));
    let file = File::options().mark_open(true).edit_in(store.clone()).unwrap();
    file.dataset("strings").unwrap().write_strings(.., &texts(1)).unwrap();
    file.dataset("chunks").unwrap().write(.., &numbers(1)).unwrap();
    file.flush().unwrap();
    let when = format!("{version:?}, {fault:?}");
    if let Some((fault, call)) = fault {
        store.fail_at(call, fault);
    }
    let closed = file.close();
    let came = !store.is_waiting();
    store.heal();
    let bytes = memory.to_vec();
    match (&closed, fault) {
        (Ok(()), _) => {
            // It has no mark, and can be changed.
            let again = Arc::new(MemoryStore::new(bytes.clone()));
            let file =
                File::options().edit_in(again).unwrap_or_else(|error| panic!("{when}: {error}"));
            file.set_attribute("round", 1).unwrap();
            file.close().unwrap();
        }
        // A commit was begun that no write can finish: whoever opens the file does.
        (Err(_), Some((Fault::DiskFull, _))) => {}
        (Err(error), _) => panic!("{when}: {error}"),
    }
    check(bytes.clone(), &when);
    (came && fault.is_some(), bytes.len())
}

#[test]
fn a_fault_while_data_is_moved_lets_closing_succeed_and_harms_nothing() {
    for version in [LibraryVersion::Earliest, LibraryVersion::V110] {
        let (_, moved) = run(version, None);
        for fault in [Fault::ReadError, Fault::ShortRead, Fault::WriteError, Fault::DiskFull] {
            let mut longer = 0;
            let calls = (0..).take_while(|&call| {
                let (came, length) = run(version, Some((fault, call)));
                longer += usize::from(length > moved);
                came
            });
            let calls = calls.count();
            assert!(calls > 10, "{calls} call(s) with {fault:?}");
            assert!(longer > 2, "something was to be moved: {version:?}, {fault:?}");
        }
    }
}
