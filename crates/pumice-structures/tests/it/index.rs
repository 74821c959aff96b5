//! One suite for all chunk indexes: whatever is inserted, replaced and removed, committed or not,
//! an index answers like a map; it writes only what changed; and it gives every byte back.

use crate::memory::Memory;
use proptest::prelude::*;
use pumice_format::index::{ChunkRecord, RecordFormat, SectionRecord};
use pumice_format::{Sizes, UNDEFINED};
use pumice_structures::index::{ChunkIndex, IndexKind, IndexShape};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

const NO: u64 = u64::MAX;
const CHUNK_BYTES: u64 = 4096;

/// Every kind of record.
fn formats(sizes: Sizes) -> Vec<RecordFormat> {
    vec![
        RecordFormat::plain(sizes, CHUNK_BYTES),
        RecordFormat::filtered(sizes, 4, CHUNK_BYTES),
        RecordFormat::filtered(sizes, 5, CHUNK_BYTES),
        RecordFormat::structured(sizes, 2, false, CHUNK_BYTES),
        RecordFormat::structured(sizes, 2, true, CHUNK_BYTES),
        RecordFormat::structured(sizes, 3, true, CHUNK_BYTES),
    ]
}

/// A dataset shape for every kind of index, and chunks worth asking for.
struct Case {
    kind: IndexKind,
    maximum: &'static [u64],
    /// The coordinates where runs of chunks begin.
    starts: &'static [&'static [u64]],
    /// The number of chunks along each axis that this test uses.
    counts: &'static [u64],
}

const CASES: &[Case] = &[
    Case { kind: IndexKind::Single, maximum: &[1, 1], starts: &[&[0, 0]], counts: &[1, 1] },
    Case { kind: IndexKind::FixedArray, maximum: &[50], starts: &[&[0], &[40]], counts: &[50] },
    Case {
        kind: IndexKind::FixedArray,
        maximum: &[3, 40, 25],
        starts: &[&[0, 0, 0], &[1, 20, 3], &[2, 30, 24]],
        counts: &[3, 40, 25],
    },
    Case {
        kind: IndexKind::ExtensibleArray,
        maximum: &[NO],
        starts: &[&[0], &[200], &[131_000], &[132_100], &[1_000_000]],
        counts: &[2_000_000],
    },
    Case {
        kind: IndexKind::ExtensibleArray,
        maximum: &[3, NO, 5],
        starts: &[&[0, 0, 0], &[2, 13, 1], &[0, 8_735, 0], &[1, 8_800, 4]],
        counts: &[3, 10_000, 5],
    },
    Case {
        kind: IndexKind::BTree2,
        maximum: &[NO, NO],
        starts: &[&[0, 0], &[5, 3], &[1 << 40, 0]],
        counts: &[1 << 50, 30],
    },
    Case {
        kind: IndexKind::BTree2,
        maximum: &[NO, 7, NO],
        starts: &[&[0, 0, 0], &[9, 2, 0]],
        counts: &[1000, 7, 30],
    },
    Case {
        kind: IndexKind::BTree1,
        maximum: &[NO],
        starts: &[&[0], &[200], &[1_000_000]],
        counts: &[2_000_000],
    },
    Case {
        kind: IndexKind::BTree1,
        maximum: &[NO, 7, NO],
        starts: &[&[0, 0, 0], &[9, 2, 0], &[1 << 40, 0, 0]],
        counts: &[1 << 50, 7, 30],
    },
];

impl Case {
    /// Version 1 B-trees are older than structured chunks.
    fn formats(&self, sizes: Sizes) -> Vec<RecordFormat> {
        let mut formats = formats(sizes);
        if self.kind == IndexKind::BTree1 {
            formats.retain(|format| format.kind.sections() == 0);
        }
        formats
    }
}

/// The chunk `steps` after `start`, row-major within `counts`.
fn advance(start: &[u64], steps: u64, counts: &[u64]) -> Option<Vec<u64>> {
    let mut coord = start.to_vec();
    let mut carry = steps;
    for axis in (0..coord.len()).rev() {
        let sum = coord[axis] + carry;
        coord[axis] = sum % counts[axis];
        carry = sum / counts[axis];
    }
    (carry == 0).then_some(coord)
}

/// Some record that `format` can express.
fn record(format: &RecordFormat, seed: u64) -> ChunkRecord {
    let mut record = ChunkRecord::dense(0x1000 + seed * 64, CHUNK_BYTES);
    let sections = format.kind.sections() as u64;
    if format.size_width > 0 {
        record.size = 100 + seed % 900;
    }
    if sections == 0 && format.size_width > 0 {
        record.filter_mask = seed as u32 % 3;
    }
    let filtered = format.kind.client_id() == 3;
    for section in 0..sections {
        let (offset, next) =
            (section * record.size / sections, (section + 1) * record.size / sections);
        let unfiltered = if filtered { seed + section } else { next - offset };
        let filter_mask = if filtered { seed as u32 % 5 } else { 0 };
        record.sections.push(SectionRecord { offset, unfiltered, filter_mask });
    }
    record
}

#[derive(Clone, Debug)]
enum Step {
    Insert {
        start: usize,
        skip: u64,
        every: u64,
        count: u64,
        seed: u64,
    },
    Remove {
        start: usize,
        skip: u64,
        every: u64,
        count: u64,
    },
    Commit,
    Reopen,
    List,
    /// Forgets blocks, those that changed as well if they are staged first.
    Trim {
        staged: bool,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let run = (0usize..8, 0u64..300, 1u64..5, 1u64..400);
    let step = prop_oneof![
        5 => (run.clone(), 0u64..1_000_000).prop_map(|((start, skip, every, count), seed)| {
            Step::Insert { start, skip, every, count, seed }
        }),
        3 => run.prop_map(|(start, skip, every, count)| Step::Remove { start, skip, every, count }),
        1 => Just(Step::Commit),
        2 => Just(Step::Reopen),
        1 => Just(Step::List),
        2 => any::<bool>().prop_map(|staged| Step::Trim { staged }),
    ];
    prop::collection::vec(step, 1..12)
}

/// An index beside the map that it must be equal to.
struct Pair<'a> {
    case: &'a Case,
    format: RecordFormat,
    shape: IndexShape,
    io: Memory,
    index: ChunkIndex,
    model: BTreeMap<Vec<u64>, ChunkRecord>,
}

impl<'a> Pair<'a> {
    fn new(case: &'a Case, format: RecordFormat, sizes: Sizes) -> Self {
        let ones = vec![1; case.maximum.len()];
        let shape = IndexShape::new(&ones, case.maximum, &ones).unwrap();
        let index = ChunkIndex::create(case.kind, format, shape.clone()).unwrap();
        // Small nodes, so that trees get deep.
        let io = Memory::new(sizes, 0x700).with_chunk_node_rank(2);
        Self { case, format, shape, io, index, model: BTreeMap::new() }
    }

    fn coords(&self, start: usize, skip: u64, every: u64, count: u64) -> Vec<Vec<u64>> {
        let start = self.case.starts[start % self.case.starts.len()];
        let step = |number| advance(start, skip + number * every, self.case.counts);
        (0..count).map_while(step).collect()
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::Insert { start, skip, every, count, seed } => {
                for (number, coord) in
                    self.coords(start, skip, every, count).into_iter().enumerate()
                {
                    let record = record(&self.format, seed + number as u64);
                    self.index.insert(&self.io, &coord, record.clone()).unwrap();
                    self.model.insert(coord, record);
                }
            }
            Step::Remove { start, skip, every, count } => {
                for coord in self.coords(start, skip, every, count) {
                    let removed = self.index.remove(&self.io, &coord).unwrap();
                    assert_eq!(removed, self.model.remove(&coord), "{coord:?}");
                }
            }
            Step::Commit => {
                self.commit();
            }
            Step::Reopen => self.reopen(),
            Step::List => self.check_list(),
            Step::Trim { staged } => self.trim(staged),
        }
    }

    fn commit(&mut self) -> u64 {
        let address = self.index.commit(&self.io).unwrap();
        self.io.apply();
        if self.case.kind != IndexKind::Single {
            assert_eq!(self.io.live_bytes(), self.index.storage_size(&self.io).unwrap());
        }
        address
    }

    fn reopen(&mut self) {
        let address = self.commit();
        let (format, shape) = (self.format, self.shape.clone());
        self.index = match self.case.kind {
            IndexKind::Single => {
                ChunkIndex::open_single(self.index.single().cloned(), format, shape)
            }
            kind => ChunkIndex::open(kind, address, format, shape, &self.io),
        }
        .unwrap();
    }

    fn trim(&mut self, staged: bool) {
        if staged {
            self.index.commit(&self.io).unwrap();
        }
        self.index.trim();
        if staged {
            let block = 8 << 10;
            assert!(self.index.memory() <= block, "{} bytes left", self.index.memory());
        }
    }

    /// Lists chunks some at a time, each time from the last one on.
    fn list_by_and_by(&mut self) -> Vec<(Vec<u64>, ChunkRecord)> {
        let mut listed: Vec<(Vec<u64>, ChunkRecord)> = Vec::new();
        loop {
            let (before, after) = (listed.len(), listed.last().map(|(coord, _)| coord.clone()));
            let mut collect = |coord: &[u64], record: &ChunkRecord| {
                listed.push((coord.to_vec(), record.clone()));
                let more = listed.len() < before + 37;
                Ok(if more { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
            };
            self.index.for_each_after(&self.io, after.as_deref(), &mut collect).unwrap();
            if listed.len() == before {
                return listed;
            }
            self.index.trim();
        }
    }

    fn check_list(&mut self) {
        let mut listed = Vec::new();
        let mut collect = |coord: &[u64], record: &ChunkRecord| {
            listed.push((coord.to_vec(), record.clone()));
            Ok(ControlFlow::Continue(()))
        };
        self.index.for_each(&self.io, &mut collect).unwrap();
        if self.case.kind != IndexKind::ExtensibleArray {
            assert!(listed.is_sorted_by(|a, b| a.0 < b.0));
        }
        assert_eq!(self.list_by_and_by(), listed);
        listed.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(listed, self.model.clone().into_iter().collect::<Vec<_>>());
    }

    fn check_lookups(&mut self) {
        let coords: Vec<_> = self.model.keys().cloned().collect();
        let found = self.index.lookup_many(&self.io, &coords).unwrap();
        for (coord, found) in coords.iter().zip(found) {
            assert_eq!(found.as_ref(), self.model.get(coord), "{coord:?}");
        }
        for start in 0..self.case.starts.len() {
            for coord in self.coords(start, 7, 11, 40) {
                let found = self.index.lookup(&self.io, &coord).unwrap();
                assert_eq!(found.as_ref(), self.model.get(&coord), "{coord:?}");
            }
        }
    }

    fn finish(&mut self) {
        self.check_lookups();
        self.reopen();
        self.check_lookups();
        self.check_list();
        self.reopen();
        self.index.delete(&self.io).unwrap();
        assert_eq!(self.io.live_bytes(), 0, "everything is given back");
        assert_eq!(self.index.commit(&self.io).unwrap(), UNDEFINED);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn every_index_answers_like_a_map(steps in steps(), narrow in any::<bool>()) {
        let width = if narrow { 4 } else { 8 };
        let sizes = Sizes { offset: width, length: width };
        for case in CASES {
            for format in case.formats(sizes) {
                let mut pair = Pair::new(case, format, sizes);
                for step in &steps {
                    pair.run(step);
                }
                pair.finish();
            }
        }
    }
}

#[test]
fn an_index_without_chunks_takes_no_space() {
    for case in CASES {
        let mut pair = Pair::new(case, formats(Sizes::default())[0], Sizes::default());
        assert_eq!(pair.index.lookup(&pair.io, case.starts[0]).unwrap(), None);
        assert_eq!(pair.index.remove(&pair.io, case.starts[0]).unwrap(), None);
        assert_eq!(pair.commit(), UNDEFINED);
        assert_eq!(pair.index.storage_size(&pair.io).unwrap(), 0);
    }
}

#[test]
fn chunks_outside_of_the_maximum_extent_are_refused() {
    for case in CASES {
        let mut pair = Pair::new(case, formats(Sizes::default())[0], Sizes::default());
        let record = record(&pair.format, 1);
        let outside: Vec<u64> =
            case.maximum.iter().map(|&limit| limit.min(5_000_000_000)).collect();
        let limited = case.maximum.iter().any(|&limit| limit != NO);
        if limited || case.kind == IndexKind::ExtensibleArray {
            assert!(pair.index.insert(&pair.io, &outside, record.clone()).is_err());
            assert_eq!(pair.index.lookup(&pair.io, &outside).unwrap(), None);
        }
        assert!(pair.index.insert(&pair.io, &[], record).is_err());
        assert!(pair.index.lookup(&pair.io, &[0; 9]).is_err());
    }
}

#[test]
fn a_record_that_does_not_fit_is_refused_and_changes_nothing() {
    for case in CASES {
        let format = RecordFormat::filtered(Sizes::default(), 4, 100);
        let mut pair = Pair::new(case, format, Sizes::default());
        let coord = case.starts[0];
        let good = ChunkRecord::dense(0x1000, 99);
        pair.index.insert(&pair.io, coord, good.clone()).unwrap();
        if case.kind != IndexKind::Single {
            // The layout message has room for any size.
            let large = ChunkRecord::dense(0x2000, 1 << 32);
            assert!(pair.index.insert(&pair.io, coord, large).is_err());
        }
        assert!(pair.index.insert(&pair.io, coord, ChunkRecord::dense(UNDEFINED, 1)).is_err());
        assert_eq!(pair.index.lookup(&pair.io, coord).unwrap(), Some(good));
    }
}

#[test]
fn replacing_one_chunk_stages_one_block() {
    for case in CASES.iter().filter(|case| case.kind != IndexKind::Single) {
        let formats = case.formats(Sizes::default());
        let format = formats.get(4).unwrap_or(&formats[1]);
        let mut pair = Pair::new(case, *format, Sizes::default());
        for start in 0..case.starts.len() {
            pair.run(&Step::Insert { start, skip: 0, every: 1, count: 600, seed: 0 });
        }
        pair.reopen();
        let before = pair.io.reads();
        let coord = pair.coords(0, 9, 1, 1).remove(0);
        let changed = record(&pair.format, 777);
        pair.index.insert(&pair.io, &coord, changed).unwrap();
        let most = if case.kind == IndexKind::BTree1 { 12 } else { 4 };
        assert!(pair.io.reads() - before <= most, "a lookup reads one path");
        pair.index.commit(&pair.io).unwrap();
        assert_eq!(pair.io.apply().len(), 1, "{:?}", case.kind);
        pair.index.commit(&pair.io).unwrap();
        assert_eq!(pair.io.apply().len(), 0, "a second commit has nothing to do");
    }
}

#[test]
fn listing_stops_when_told() {
    for case in CASES {
        let mut pair = Pair::new(case, formats(Sizes::default())[0], Sizes::default());
        pair.run(&Step::Insert { start: 0, skip: 0, every: 1, count: 300, seed: 0 });
        let mut seen = 0;
        let mut stop = |_: &[u64], _: &ChunkRecord| {
            seen += 1;
            Ok(ControlFlow::Break(()))
        };
        pair.index.for_each(&pair.io, &mut stop).unwrap();
        assert_eq!(seen, 1);
    }
}

#[test]
fn index_sizes_are_those_of_the_format() {
    let sizes = Sizes::default();
    let expect =
        [(IndexKind::FixedArray, 50, 226, 466), (IndexKind::ExtensibleArray, NO, 410, 506)];
    for (kind, maximum, plain, filtered) in expect {
        for (is_filtered, size) in [(false, plain), (true, filtered)] {
            let shape = IndexShape::new(&[50], &[maximum], &[5]).unwrap();
            let format = RecordFormat::structured(sizes, 2, is_filtered, 20);
            let io = Memory::new(sizes, 0x700);
            let mut index = ChunkIndex::create(kind, format, shape).unwrap();
            index.insert(&io, &[0], record(&format, 1)).unwrap();
            assert_eq!(index.storage_size(&io).unwrap(), size);
            index.commit(&io).unwrap();
            assert_eq!(io.live_bytes(), size);
        }
    }
    let shape = IndexShape::new(&[10, 10], &[NO, NO], &[5, 5]).unwrap();
    let format = RecordFormat::structured(sizes, 2, false, 100);
    let io = Memory::new(sizes, 0x700);
    let mut index = ChunkIndex::create(IndexKind::BTree2, format, shape).unwrap();
    index.insert(&io, &[0, 0], record(&format, 1)).unwrap();
    assert_eq!(index.storage_size(&io).unwrap(), 2086);
}

#[test]
fn the_worked_example_of_a_fixed_array_is_written_byte_for_byte() {
    let sizes = Sizes::default();
    let shape = IndexShape::new(&[20], &[20], &[10]).unwrap();
    let format = RecordFormat::structured(sizes, 2, false, 40);
    let io = Memory::new(sizes, 0x700);
    let mut index = ChunkIndex::create(IndexKind::FixedArray, format, shape).unwrap();
    let mut record = ChunkRecord::dense(0x800, 0x57);
    record.sections.push(SectionRecord { offset: 0, unfiltered: 0x4b, filter_mask: 0 });
    record.sections.push(SectionRecord { offset: 0x4b, unfiltered: 12, filter_mask: 0 });
    index.insert(&io, &[0], record).unwrap();
    assert_eq!(index.commit(&io).unwrap(), 0x700);
    io.apply();
    let expected = "
        46 41 48 44 01 02 12 0a  02 00 00 00 00 00 00 00  1c 07 00 00 00 00 00 00  16 88 bb 9a
        46 41 44 42 01 02  00 07 00 00 00 00 00 00
        00 08 00 00 00 00 00 00  57 00  4b 00 00 00 00 00 00 00
        ff ff ff ff ff ff ff ff  00 00  00 00 00 00 00 00 00 00
        73 96 04 d7";
    let expected: Vec<u8> =
        expected.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    assert_eq!(io.file()[0x700..], expected);
}

#[test]
fn an_implicit_index_computes_addresses() {
    let io = Memory::new(Sizes::default(), 0x1000 + 8 * 16);
    let shape = IndexShape::new(&[4, 6], &[4, 8], &[2, 2]).unwrap();
    let format = RecordFormat::plain(Sizes::default(), 16);
    for beyond in [0x1001, u64::MAX - 1] {
        assert!(ChunkIndex::open(IndexKind::Implicit, beyond, format, shape.clone(), &io).is_err());
    }
    let mut index = ChunkIndex::open(IndexKind::Implicit, 0x1000, format, shape, &io).unwrap();
    let expected = ChunkRecord::dense(0x1000 + 6 * 16, 16);
    assert_eq!(index.lookup(&io, &[1, 2]).unwrap(), Some(expected.clone()));
    assert_eq!(index.lookup(&io, &[2, 0]).unwrap(), None);
    index.insert(&io, &[1, 2], expected).unwrap();
    assert!(index.insert(&io, &[1, 2], ChunkRecord::dense(0x10, 16)).is_err());
    assert_eq!(index.remove(&io, &[1, 2]).unwrap(), None, "its space stays");
    assert_eq!(index.commit(&io).unwrap(), 0x1000);
}
