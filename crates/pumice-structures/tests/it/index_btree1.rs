//! The version 1 B-tree of chunks: built here byte by byte, as other writers leave it.

use crate::memory::Memory;
use pumice_bytes::Writer;
use pumice_format::index::{ChunkRecord, RecordFormat};
use pumice_format::{Sizes, UNDEFINED};
use pumice_medium::MetadataIo;
use pumice_structures::index::{ChunkIndex, IndexKind, IndexShape};
use std::ops::ControlFlow;

const CHUNK: [u64; 2] = [4, 5];
/// Chunks of the test's grid.
const GRID: [u64; 2] = [6, 7];

/// A node of `children`, each with its key, and the key behind them. `room` children are stored.
fn node(level: u8, children: &[([u64; 2], u64)], room: usize) -> Vec<u8> {
    let mut bytes = b"TREE\x01".to_vec();
    bytes.put_u8(level);
    bytes.put_u16(children.len() as u16);
    bytes.put_zeros(16);
    let key = |bytes: &mut Vec<u8>, chunk: [u64; 2]| {
        bytes.put_u32(size(chunk));
        bytes.put_u32((chunk[1] % 2) as u32);
        bytes.put_u64(chunk[0] * CHUNK[0]);
        bytes.put_u64(chunk[1] * CHUNK[1]);
        bytes.put_u64(0);
    };
    for &(chunk, address) in children {
        key(&mut bytes, chunk);
        bytes.put_u64(address);
    }
    // As libhdf5 does it, behind the last chunk by its place inside an element only.
    key(&mut bytes, children.last().map_or([0, 0], |&(chunk, _)| chunk));
    bytes.put_zeros((room - children.len()) * 40);
    bytes
}

fn size([row, column]: [u64; 2]) -> u32 {
    (100 + 10 * row + column) as u32
}

fn expected(chunk: [u64; 2]) -> ChunkRecord {
    let address = 0x10000 + 0x100 * (chunk[0] * GRID[1] + chunk[1]);
    let filter_mask = (chunk[1] % 2) as u32;
    ChunkRecord { filter_mask, ..ChunkRecord::dense(address, u64::from(size(chunk))) }
}

fn store(io: &Memory, bytes: Vec<u8>) -> u64 {
    let address = io.allocate(bytes.len() as u64).unwrap();
    io.stage(address, bytes);
    address
}

/// A tree of all chunks but those whose row and column are equal, a row to a leaf.
fn tree(io: &Memory, room: usize) -> u64 {
    let mut leaves = Vec::new();
    for row in 0..GRID[0] {
        let chunks = (0..GRID[1]).filter(|&column| column != row).map(|column| [row, column]);
        let children: Vec<_> = chunks.map(|chunk| (chunk, expected(chunk).address)).collect();
        leaves.push((children[0].0, store(io, node(0, &children, room))));
    }
    let (left, right) = leaves.split_at(2);
    let left = (left[0].0, store(io, node(1, left, room)));
    let right = (right[0].0, store(io, node(1, right, room)));
    store(io, node(2, &[left, right], room))
}

fn open(io: &Memory, address: u64) -> ChunkIndex {
    io.apply();
    let shape = IndexShape::new(&[24, 35], &[u64::MAX, u64::MAX], &CHUNK).unwrap();
    let format = RecordFormat::filtered(Sizes::default(), 3, 80);
    ChunkIndex::open(IndexKind::BTree1, address, format, shape, io).unwrap()
}

#[test]
fn chunks_are_found_and_listed_in_order() {
    // Nodes of the usual length, and nodes that end where their last key ends.
    for room in [64, 7] {
        let io = Memory::new(Sizes::default(), 64);
        let mut index = open(&io, tree(&io, room));
        let mut all = Vec::new();
        for (row, column) in (0..GRID[0]).flat_map(|row| (0..GRID[1]).map(move |c| (row, c))) {
            let stored = (row != column).then(|| expected([row, column]));
            assert_eq!(index.lookup(&io, &[row, column]).unwrap(), stored, "{row} {column}");
            all.extend(stored.map(|record| (vec![row, column], record)));
        }
        for beyond in [[0, GRID[1]], [GRID[0], 0], [u64::MAX, 0]] {
            assert_eq!(index.lookup(&io, &beyond).unwrap(), None);
        }
        let mut found = Vec::new();
        let mut visit = |coord: &[u64], record: &ChunkRecord| {
            found.push((coord.to_vec(), record.clone()));
            Ok(ControlFlow::Continue(()))
        };
        index.for_each(&io, &mut visit).unwrap();
        assert_eq!(found, all);
    }
}

#[test]
fn an_index_without_address_has_no_chunks() {
    let io = Memory::new(Sizes::default(), 64);
    let mut index = open(&io, UNDEFINED);
    assert_eq!(index.lookup(&io, &[0, 0]).unwrap(), None);
    assert_eq!(index.commit(&io).unwrap(), UNDEFINED);
}

#[test]
fn trees_of_other_writers_are_changed_in_place() {
    let io = Memory::new(Sizes::default(), 64);
    let root = tree(&io, 64);
    let mut index = open(&io, root);
    index.insert(&io, &[0, 1], expected([0, 2])).unwrap();
    index.insert(&io, &[0, 0], expected([0, 0])).unwrap();
    index.insert(&io, &[9, 9], expected([5, 5])).unwrap();
    assert_eq!(index.remove(&io, &[3, 4]).unwrap(), Some(expected([3, 4])));
    assert_eq!(index.remove(&io, &[3, 3]).unwrap(), None);
    assert_eq!(index.commit(&io).unwrap(), root, "the root stays");
    io.apply();
    let mut index = open(&io, root);
    for (coord, record) in [([0, 1], [0, 2]), ([0, 0], [0, 0]), ([9, 9], [5, 5])] {
        assert_eq!(index.lookup(&io, &coord).unwrap(), Some(expected(record)));
    }
    assert_eq!(index.lookup(&io, &[3, 4]).unwrap(), None);
    assert_eq!(index.lookup(&io, &[3, 5]).unwrap(), Some(expected([3, 5])));
}

#[test]
fn nodes_larger_than_the_file_says_are_not_changed() {
    let io = Memory::new(Sizes::default(), 64).with_chunk_node_rank(2);
    let mut index = open(&io, tree(&io, 64));
    assert!(index.insert(&io, &[0, 0], expected([0, 0])).is_err());
}

#[test]
fn trees_that_lead_in_circles_or_to_other_levels_are_refused() {
    let io = Memory::lenient(Sizes::default(), 64);
    let address = io.allocate(4096).unwrap();
    io.stage(address, node(1, &[([0, 0], address)], 64));
    assert!(open(&io, address).lookup(&io, &[0, 0]).is_err());
    let leaf = store(&io, node(0, &[([0, 0], 0x10000)], 64));
    let root = store(&io, node(2, &[([0, 0], leaf)], 64));
    let error = open(&io, root).lookup(&io, &[0, 0]).unwrap_err().to_string();
    assert!(error.contains("a node of level 1, found 0"), "{error}");
    let twice = store(&io, node(1, &[([0, 0], leaf), ([1, 0], leaf)], 64));
    let mut visit = |_: &[u64], _: &ChunkRecord| Ok(ControlFlow::Continue(()));
    assert!(open(&io, twice).for_each(&io, &mut visit).is_err());
}
