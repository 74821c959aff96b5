//! Requests ask no more of a store than they have to, and opening a file and reading a small dataset
//! no more than `docs/reading.md` says.

use pumice::{Context, File, ReadMany, WriteMany};
use pumice_store::MemoryStore;
use pumice_testkit::faults::{Call, FaultyStore};
use std::sync::Arc;

#[test]
fn opening_and_reading_a_small_dataset_takes_five_calls() {
    let inner = Arc::new(MemoryStore::default());
    let file = File::options().create_in(inner.clone()).unwrap();
    let dataset = file.new_dataset::<i32>().shape([1000]).create("x").unwrap();
    dataset.write(.., &[7i32; 1000]).unwrap();
    drop(dataset);
    file.close().unwrap();

    let store = Arc::new(FaultyStore::new(inner));
    let context = Context::builder().threads(0).build().unwrap();
    let file = File::options().context(&context).open_in(store.clone()).unwrap();
    assert_eq!(file.dataset("x").unwrap().read::<i32>(..).unwrap(), [7; 1000]);
    // The length, superblock, root group, dataset, elements.
    assert_eq!(store.calls().len(), 5);
}

/// Files in one store, used by one thread; the store counts.
fn counted() -> (File, Context, Arc<FaultyStore>) {
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::default())));
    let context = Context::builder().threads(0).build().unwrap();
    let file = File::options().context(&context).create_in(store.clone()).unwrap();
    (file, context, store)
}

/// The number of calls that `work` makes.
fn calls_of(store: &FaultyStore, work: impl FnOnce()) -> usize {
    let before = store.calls().len();
    work();
    store.calls().len() - before
}

#[test]
fn chunks_without_filters_are_read_together_and_kept_nowhere() {
    let (file, context, store) = counted();
    let shape = [256usize, 8192];
    let values: Vec<u8> = (0..shape[0] * shape[1]).map(|n| (n % 251) as u8).collect();
    let new = file.new_dataset::<u8>().shape(shape.map(|n| n as u64)).chunk([32, 1024]);
    let dataset = new.create("x").unwrap();
    dataset.write(.., &values).unwrap();
    file.flush().unwrap();
    context.evict().unwrap();
    let before = context.stats();
    let mut read = Vec::new();
    let calls = calls_of(&store, || read = dataset.read::<u8>(..).unwrap());
    assert!(read == values);
    assert_eq!(calls, 1, "64 chunks that lie side by side");
    let stats = context.stats();
    assert_eq!((stats.direct - before.direct, stats.loads - before.loads), (64, 0));
    assert_eq!(stats.bytes_fetched - before.bytes_fetched, values.len() as u64);
}

#[test]
fn contiguous_datasets_are_read_and_written_together() {
    let (file, context, store) = counted();
    let create = |n: usize| file.new_dataset::<i32>().shape([500]).create(&format!("{n}"));
    let all: Vec<_> = (0..20).map(|n| create(n).unwrap()).collect();
    let values: Vec<Vec<i32>> = (0..20).map(|n| vec![n; 500]).collect();
    all.iter().zip(&values).for_each(|(dataset, values)| dataset.write(.., values).unwrap());
    let mut writes = WriteMany::new();
    for (dataset, values) in all.iter().rev().zip(&values) {
        writes.add(dataset, .., values).unwrap();
    }
    let before = store.calls().len();
    writes.run().unwrap();
    let written = store.calls()[before..].iter().filter(|call| **call == Call::Write).count();
    assert_eq!(written, 1);
    let mut read = vec![vec![0i32; 500]; 20];
    let mut reads = ReadMany::new();
    for (dataset, buffer) in all.iter().rev().zip(&mut read) {
        reads.add(dataset, .., buffer).unwrap();
    }
    let before = context.stats().bytes_fetched;
    assert_eq!(calls_of(&store, || reads.run().unwrap()), 1);
    assert!(read == values);
    assert_eq!(context.stats().bytes_fetched - before, 20 * 2000);
}

#[test]
fn what_a_smaller_extent_cuts_off_is_not_written_first() {
    let (file, context, store) = counted();
    let new = file.new_dataset::<i32>().shape([1000]).max_shape([None]).chunk([10]);
    let dataset = new.deflate(1).create("x").unwrap();
    dataset.write(.., &(0..1000).collect::<Vec<i32>>()).unwrap();
    dataset.resize([500]).unwrap();
    assert_eq!(context.stats().bytes_written, 0, "all of it is in memory");
    assert_eq!(context.stats().discarded, 50);
    // One chunk is cut: it alone is written, from memory.
    let before = context.stats();
    dataset.resize([395]).unwrap();
    let after = context.stats();
    assert_eq!((after.loads - before.loads, after.discarded - before.discarded), (0, 11));
    dataset.resize([500]).unwrap();
    let wanted: Vec<i32> = (0..395).chain(std::iter::repeat_n(0, 105)).collect();
    assert_eq!(dataset.read::<i32>(..).unwrap(), wanted);

    // What is stored is read together: the chunks along an edge.
    let new = file.new_dataset::<i32>().shape([100, 100]).chunk([10, 10]).deflate(1);
    let dataset = new.create("y").unwrap();
    dataset.write(.., &vec![5; 10_000]).unwrap();
    file.flush().unwrap();
    context.evict().unwrap();
    let calls = calls_of(&store, || dataset.resize([100, 95]).unwrap());
    assert!(calls <= 13, "{calls} calls for ten chunks that are cut");
    let read = dataset.read::<i32>(..).unwrap();
    assert!(read.len() == 9500 && read.iter().all(|value| *value == 5));
    dataset.resize([100, 100]).unwrap();
    let read = dataset.read::<i32>(..).unwrap();
    assert!((0..10_000).all(|n| read[n] == if n % 100 < 95 { 5 } else { 0 }));
}

#[test]
fn a_step_back_looks_for_the_chunks_behind_the_edge_alone() {
    let inner = Arc::new(MemoryStore::default());
    let file = File::options().create_in(inner.clone()).unwrap();
    let new = file.new_dataset::<u8>().shape([100, 100]).max_shape([None, None]).chunk([1, 1]);
    new.create("x").unwrap().write(.., &[7u8; 10_000]).unwrap();
    file.close().unwrap();
    let store = Arc::new(FaultyStore::new(inner));
    let context = Context::builder().threads(0).build().unwrap();
    let file = File::options().context(&context).edit_in(store.clone()).unwrap();
    let dataset = file.dataset("x").unwrap();
    let calls = calls_of(&store, || dataset.resize([99, 100]).unwrap());
    // The whole tree has more than a hundred nodes.
    assert!((1..40).contains(&calls), "{calls} call(s)");
    dataset.resize([100, 100]).unwrap();
    let read = dataset.read::<u8>(..).unwrap();
    assert_eq!(read.iter().map(|&value| u32::from(value)).sum::<u32>(), 7 * 9_900);
    assert!(read[9_900..].iter().all(|&value| value == 0));
}
