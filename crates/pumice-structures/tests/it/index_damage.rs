//! Damaged index files: every answer is right or an error, and nothing panics, runs on for ever or
//! takes memory that the file does not justify.

use crate::memory::Memory;
use proptest::prelude::*;
use pumice_bytes::lookup3;
use pumice_format::Sizes;
use pumice_format::index::{ChunkRecord, RecordFormat};
use pumice_medium::{Error, Result};
use pumice_structures::index::{ChunkIndex, IndexKind, IndexShape};
use std::ops::ControlFlow;

const NO: u64 = u64::MAX;

/// A committed index with a few thousand chunks.
struct Built {
    kind: IndexKind,
    io: Memory,
    header: u64,
    format: RecordFormat,
    shape: IndexShape,
    chunks: u64,
}

fn build(kind: IndexKind) -> Built {
    let sizes = Sizes::default();
    let (maximum, chunks): (&[u64], u64) = match kind {
        IndexKind::FixedArray => (&[40, 60], 2400),
        IndexKind::ExtensibleArray => (&[NO, 60], 2400),
        _ => (&[NO, NO], 1200),
    };
    let shape = IndexShape::new(&[1, 1], maximum, &[1, 1]).unwrap();
    let format = RecordFormat::filtered(sizes, 5, 1 << 20);
    let io = Memory::lenient(sizes, 0x100);
    let mut index = ChunkIndex::create(kind, format, shape.clone()).unwrap();
    for number in 0..chunks {
        index.insert(&io, &coord(number), record(number)).unwrap();
    }
    let header = index.commit(&io).unwrap();
    io.apply();
    Built { kind, io, header, format, shape, chunks }
}

fn coord(number: u64) -> [u64; 2] {
    [number / 60, number % 60]
}

fn record(number: u64) -> ChunkRecord {
    ChunkRecord::dense(0x1_0000 + number * 100, 50 + number % 50)
}

impl Built {
    fn open(&self) -> Result<ChunkIndex> {
        ChunkIndex::open(self.kind, self.header, self.format, self.shape.clone(), &self.io)
    }

    /// Reads everything; with an honest checksum there is no answer but the right one.
    fn read_all(&self) -> Result<()> {
        let mut index = self.open()?;
        for number in (0..self.chunks).step_by(7) {
            assert_eq!(index.lookup(&self.io, &coord(number))?, Some(record(number)));
        }
        let mut seen = 0;
        index.for_each(&self.io, &mut |_: &[u64], _: &ChunkRecord| {
            seen += 1;
            Ok(ControlFlow::Continue(()))
        })?;
        assert_eq!(seen, self.chunks);
        Ok(())
    }

    /// Does everything that can be done, whatever comes of it.
    fn try_everything(&self) -> Result<()> {
        let mut index = self.open()?;
        let mut outcome = Ok(());
        let mut note = |result: Result<()>| {
            if result.is_err() {
                outcome = result;
            }
        };
        let mut seen = 0u64;
        note(index.for_each(&self.io, &mut |_: &[u64], _: &ChunkRecord| {
            seen += 1;
            assert!(seen < 1_000_000, "the file does not have as many");
            Ok(ControlFlow::Continue(()))
        }));
        for number in (0..self.chunks).step_by(5) {
            note(index.lookup(&self.io, &coord(number)).map(drop));
            note(index.insert(&self.io, &coord(number + 3), record(number)));
            note(index.remove(&self.io, &coord(number + 1)).map(drop));
        }
        note(index.storage_size(&self.io).map(drop));
        note(index.commit(&self.io).map(drop));
        note(index.delete(&self.io));
        outcome
    }
}

/// The offset of the checksum of the block at `start`, behind the bytes that it covers.
fn checksum_of(file: &[u8], start: usize, length: usize) -> Option<usize> {
    let block = &file[start..start + length];
    (4..=length - 4).find(|&at| {
        // The first that fits; nothing else fits by chance in so few bytes.
        lookup3(&block[..at]).to_le_bytes() == block[at..at + 4]
    })
}

const KINDS: [IndexKind; 3] =
    [IndexKind::FixedArray, IndexKind::ExtensibleArray, IndexKind::BTree2];

#[test]
fn a_flipped_bit_is_found() {
    for kind in KINDS {
        let built = build(kind);
        built.read_all().unwrap();
        let blocks = built.io.blocks();
        for (number, &(address, length)) in blocks.iter().enumerate() {
            // Spread over the blocks, so that the test stays short.
            for at in (number as u64 % 13..length).step_by(length as usize / 3 + 1) {
                let at = address + at;
                let before = built.io.file()[at as usize];
                built.io.poke(at, &[before ^ 0x10]);
                match built.read_all() {
                    Ok(()) => {} // The unused end of a node.
                    Err(Error::Decode(_)) => {}
                    Err(other) => panic!("{other}"),
                }
                built.io.poke(at, &[before]);
            }
        }
        built.read_all().unwrap();
    }
}

#[test]
fn a_file_that_ends_early_is_an_error() {
    for kind in KINDS {
        let built = build(kind);
        let header = built.io.file()[built.header as usize..][..20].to_vec();
        let short = Memory::lenient(Sizes::default(), built.header + 20);
        short.poke(built.header, &header);
        let built = Built { io: short, ..built };
        assert!(built.read_all().is_err());
    }
}

#[test]
fn a_node_with_two_parents_is_refused() {
    let built = build(IndexKind::BTree2);
    let file = built.io.file();
    // The root is internal: its children's pointers follow its records.
    let root = built
        .io
        .blocks()
        .into_iter()
        .find(|&(address, _)| file[address as usize..].starts_with(b"BTIN"));
    let (root, length) = root.unwrap();
    let checksum = checksum_of(&file, root as usize, length as usize).unwrap();
    let mut block = file[root as usize..][..length as usize].to_vec();
    // A pointer is an address and a one-byte count. Point the last child where the one before it is.
    let last = checksum - 9;
    let (first, count) = (block[last - 9..last].to_vec(), block[last + 8]);
    block[last..last + 8].copy_from_slice(&first[..8]);
    block[last - 1] = count;
    let sum = lookup3(&block[..checksum]);
    block[checksum..checksum + 4].copy_from_slice(&sum.to_le_bytes());
    built.io.poke(root, &block);
    let error = built.read_all().unwrap_err();
    assert!(matches!(error, Error::Decode(_)), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn hostile_numbers_behind_good_checksums_do_no_harm(
        kind in prop::sample::select(&KINDS[..]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>()), 1..4),
        in_header in any::<bool>(),
    ) {
        let built = build(kind);
        let blocks = built.io.blocks();
        for (block, at, value) in changes {
            let (address, length) = if in_header { blocks[0] } else { *block.get(&blocks) };
            let (start, length) = (address as usize, length as usize);
            let file = built.io.file();
            let Some(checksum) = checksum_of(&file, start, length.min(40_000)) else { continue };
            let mut bytes = file[start..start + checksum].to_vec();
            *at.get_mut(&mut bytes) = value;
            let sum = lookup3(&bytes);
            bytes.extend_from_slice(&sum.to_le_bytes());
            built.io.poke(address, &bytes);
        }
        if let Err(error) = built.try_everything() {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
