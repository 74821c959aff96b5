//! Several datasets written in one request while a commit comes in between: elements that refer to something reach
//! the file with a commit and never by themselves, whoever is written beside them.
//!
//! The cache asks all layouts which bytes have to be written, and then has those of one store written together by the
//! layout of the first. Between the two, a commit may go on that has flushed the cache before. Here the layouts are
//! asked in the same way, with a commit at that very moment.

use pumice_cache::{ByteStore, ChunkCache, Config, Direct, Put, Unchunked};
use pumice_engine::dataset::{DatasetSpec, DatasetState, LayoutSpec};
use pumice_engine::file::File;
use pumice_layout::buffer::Output;
use pumice_layout::{Contiguous, Place, Source, Storage, WriteRequest};
use pumice_space::{ChunkGrid, Extent, Selection, plan_packed};
use pumice_store::{MemoryStore, Store};
use pumice_types::{Conversion, Datatype, Reference, ReferenceKind};
use std::sync::Arc;

const CELLS: u64 = 4;

/// A contiguous dataset with every byte of its elements set.
fn create(file: &File, datatype: &Datatype) -> Arc<DatasetState> {
    let extent = Extent::simple(&[CELLS]).unwrap();
    let spec = DatasetSpec::new(datatype.clone(), extent, LayoutSpec::Contiguous);
    let dataset = file.new_dataset(DatasetState::create(file, spec).unwrap()).unwrap();
    let bytes = vec![1; datatype.size() * CELLS as usize];
    dataset.write(&Selection::all(), datatype, &bytes).unwrap();
    dataset
}

fn contiguous(dataset: &DatasetState) -> &Contiguous {
    let Storage::Contiguous(contiguous) = &dataset.layout().storage else { panic!("chunks") };
    contiguous
}

/// The elements as the file has them.
fn stored(store: &MemoryStore, dataset: &DatasetState) -> Vec<u8> {
    let Place::File(Some(address)) = contiguous(dataset).place() else { panic!("nowhere") };
    let mut bytes = vec![0; dataset.datatype().size() * CELLS as usize];
    store.read_at(address, &mut bytes).unwrap();
    bytes
}

fn read(dataset: &DatasetState) -> Vec<u8> {
    let mut bytes = vec![0; dataset.datatype().size() * CELLS as usize];
    let output = Output::new(&mut bytes);
    dataset.read(&Selection::all(), dataset.datatype(), output).unwrap();
    bytes
}

#[test]
fn elements_that_refer_to_something_wait_for_a_commit_also_beside_others() {
    let store = Arc::new(MemoryStore::default());
    let cache = ChunkCache::new(Config::default());
    let file = File::create(store.clone(), cache, &Default::default()).unwrap();
    let reference = Datatype::Reference(Reference { kind: ReferenceKind::Object, size: 8 });
    let numbers = create(&file, &Datatype::i64_le());
    let references = create(&file, &reference);
    file.commit().unwrap();
    assert_eq!((stored(&store, &numbers), stored(&store, &references)), (vec![1; 32], vec![1; 32]));

    let grid = ChunkGrid::new(&[CELLS], &[CELLS]).unwrap();
    let together = [&numbers, &references];
    let sources = together.map(|dataset| {
        let datatype = dataset.datatype();
        Source::new(&[2; 32], Conversion::new(datatype, datatype).unwrap())
    });
    let mut requests = sources.each_ref().map(|source| {
        let part = plan_packed(&Selection::all(), &grid).unwrap().next().unwrap();
        (part.chunk.clone(), WriteRequest::Values { part, source })
    });
    let mut extents: Vec<Vec<Put<'_>>> = Vec::new();
    for (dataset, (key, request)) in together.into_iter().zip(&mut requests) {
        let mut own = Vec::new();
        let direct = contiguous(dataset).write(key, request, &mut own).unwrap();
        assert!(matches!(direct, Direct::Extents), "bytes that only move");
        extents.push(own);
    }
    file.commit().unwrap();
    let (of_references, of_numbers) = (extents.pop().unwrap(), extents.pop().unwrap());
    let [first, second] = together.map(|dataset| contiguous(dataset));
    if first.id() == second.id() {
        let all: Vec<_> = of_numbers.into_iter().chain(of_references).collect();
        first.put(&all).unwrap();
    } else {
        first.put(&of_numbers).unwrap();
        second.put(&of_references).unwrap();
    }

    assert_eq!(stored(&store, &references), [1; 32], "only a commit writes them");
    assert_eq!(stored(&store, &numbers), [2; 32], "overwritten in place");
    assert_eq!((read(&numbers), read(&references)), (vec![2; 32], vec![2; 32]));
    file.commit().unwrap();
    assert_eq!(stored(&store, &references), [2; 32]);
}
