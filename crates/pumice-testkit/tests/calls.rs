//! Opening a file and reading a small dataset asks no more of a store than `docs/reading.md` says.

use pumice::{Context, File};
use pumice_store::MemoryStore;
use pumice_testkit::faults::FaultyStore;
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
