//! Races with opening a dataset, between reading its header and listing it. The opener calls back
//! in between, so no test depends on luck.

use super::*;
use crate::dataset::{DatasetSpec, LayoutSpec};
use crate::version::CreateOptions;
use crate::{delete, group};
use pumice_cache::{ChunkCache, Config};
use pumice_format::messages::{Link, LinkTarget};
use pumice_layout::buffer::Output;
use pumice_space::{Extent, Selection};
use pumice_store::MemoryStore;
use pumice_types::H5Type;
use std::cell::Cell;

fn file() -> Arc<File> {
    let cache = ChunkCache::new(Config::default());
    File::create(Arc::new(MemoryStore::default()), cache, &CreateOptions::default()).unwrap()
}

/// A dataset of four cells that can grow, listed and linked, without handles.
fn made(file: &File, name: &str) -> u64 {
    let layout =
        LayoutSpec::Chunked { chunk: vec![2], filters: Vec::new(), dont_filter_partial: false };
    let extent =
        Extent::Simple { dims: [4].as_slice().into(), max: Some([u64::MAX].as_slice().into()) };
    let state =
        DatasetState::create(file, DatasetSpec::new(i32::datatype(), extent, layout)).unwrap();
    let address = file.new_dataset(state).unwrap().object().address();
    let link = Link::new(name, LinkTarget::Hard { address });
    group::insert(file, &file.root().unwrap(), link).unwrap();
    address
}

fn open(file: &File, address: u64) -> Result<Arc<DatasetState>> {
    file.dataset(address, || DatasetState::open(file, &file.object(address)?))
}

fn write(dataset: &DatasetState, from: u64, values: &[i32]) {
    let cells = Selection::block(&[from], &[values.len() as u64]).unwrap();
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    dataset.write(&cells, &i32::datatype(), &bytes).unwrap();
}

fn read(dataset: &DatasetState) -> Vec<i32> {
    let mut bytes = vec![0; dataset.dims()[0] as usize * 4];
    dataset.read(&Selection::all(), &i32::datatype(), Output::new(&mut bytes)).unwrap();
    bytes.chunks(4).map(|value| i32::from_le_bytes(value.try_into().unwrap())).collect()
}

/// Forgets a dataset if possible; returns whether it did.
fn forget(file: &File, address: u64) -> bool {
    let idle = file.datasets().get(address).cloned().unwrap();
    file.forget_datasets(&[(address, idle)]).unwrap();
    !file.datasets().contains(address)
}

#[test]
fn a_dataset_that_is_opened_while_another_opens_it_is_the_others() {
    let file = file();
    let address = made(&file, "d");
    assert!(forget(&file, address));
    let (other, count) = (Cell::new(None), Cell::new(0));
    let opened = file.dataset(address, || {
        count.set(count.get() + 1);
        let opened = DatasetState::open(&file, &file.object(address)?)?;
        other.set(Some(open(&file, address)?));
        Ok(opened)
    });
    assert!(Arc::ptr_eq(&opened.unwrap(), &other.take().unwrap()));
    assert_eq!(count.get(), 1);
}

#[test]
fn a_dataset_that_was_changed_and_forgotten_while_another_opened_it_is_opened_again() {
    let file = file();
    let address = made(&file, "d");
    assert!(forget(&file, address));
    let count = Cell::new(0);
    let opened = file.dataset(address, || {
        let opened = DatasetState::open(&file, &file.object(address)?)?;
        count.set(count.get() + 1);
        if count.get() == 1 {
            // Another handle uses it meanwhile, and so many others that it is forgotten.
            let other = open(&file, address)?;
            other.resize(&[6])?;
            write(&other, 3, &[4, 5, 6]);
            drop(other);
            assert!(forget(&file, address));
        }
        Ok(opened)
    });
    let opened = opened.unwrap();
    assert_eq!(count.get(), 2, "what was opened first knows nothing of the change");
    assert_eq!(read(&opened), [0, 0, 0, 4, 5, 6]);
    write(&opened, 0, &[1]);
    file.commit().unwrap();
    assert_eq!(read(&open(&file, address).unwrap()), [1, 0, 0, 4, 5, 6]);
}

#[test]
fn a_dataset_that_was_deleted_while_another_opened_it_is_never_listed_again() {
    let file = file();
    let address = made(&file, "d");
    assert!(forget(&file, address));
    let opened = file.dataset(address, || {
        let opened = DatasetState::open(&file, &file.object(address)?)?;
        group::remove(&file, &*file.root()?, "d")?;
        delete::discard(&file, address)?;
        Ok(opened)
    });
    let message = opened.err().unwrap().to_string();
    assert!(message.contains("has been deleted"), "{message}");
    assert!(!file.datasets().contains(address), "another may come to be at its address");
    file.commit().unwrap();
    // Its space is free, and the next dataset there is the one that is found.
    let next = made(&file, "next");
    assert_eq!(next, address, "this test would see the old one in its place");
    let next = open(&file, next).unwrap();
    write(&next, 0, &[7, 8, 9, 10]);
    file.commit().unwrap();
    assert_eq!(read(&next), [7, 8, 9, 10]);
}

#[test]
fn what_was_listed_at_the_address_of_a_new_dataset_gives_way() {
    let file = file();
    let address = made(&file, "d");
    let stale = file.datasets().get(address).cloned().unwrap();
    group::remove(&file, &file.root().unwrap(), "d").unwrap();
    delete::discard(&file, address).unwrap();
    file.commit().unwrap();
    file.datasets().insert(address, stale.clone());
    assert_eq!(made(&file, "next"), address);
    let found = open(&file, address).unwrap();
    assert!(!Arc::ptr_eq(&found, &stale) && !found.object().is_deleted());
}

#[test]
fn a_dataset_that_somebody_holds_is_not_forgotten() {
    let file = file();
    let address = made(&file, "d");
    let held = open(&file, address).unwrap();
    assert!(!forget(&file, address));
    drop(held);
    assert!(forget(&file, address));
}
