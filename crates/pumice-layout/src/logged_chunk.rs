//! A sparse chunk and a log of small changes to it that have not been merged yet.
//!
//! Merging cells into a chunk takes time by all of its cells, and so does taking some out. A program that
//! writes or erases cell by cell would pay that for every cell, so few cells of a chunk of many go to a log.
//! It is merged when many cells of the chunk are read, when it is encoded, or when it has become long: n cells
//! in any order cost n log n, in one call or in n, and also if each is read before or after it is written.
//!
//! Invariant: the log adds only cells that the chunk below has not, and takes out only cells that it has. So
//! a cell is looked for in one place or the other, the number of defined cells is known, and a value of
//! a cell that is there is replaced where it is.
//!
//! Readers share a chunk, so what they merge is kept beside it; the next change takes it over.

mod log;

use self::log::{Log, remove_range};
use super::request::fill_with;
use super::sparse_chunk::SparseChunk;
use pumice_filter::location::RowCells;
use pumice_medium::Result;
use pumice_space::{CellSet, Run, Selection};
use std::sync::{Arc, OnceLock};

/// A change goes to the log if the chunk has so many times its cells: to move so many costs about what a note of
/// one does.
const FEW: u64 = 256;

/// A log of so many cells, and of this part of the chunk's cells, is not merged for its length.
const SHORT: u64 = 1 << 10;
const SHARE: u64 = 4;

/// A sparse chunk with a log.
#[derive(Clone, Debug)]
pub struct LoggedChunk {
    base: SparseChunk,
    /// Bytes of an element.
    element: usize,
    log: Log,
    /// A chunk that was written whole and has not been changed since: then `base` has nothing, and there is
    /// no log.
    fresh: Option<Fresh>,
    /// Chunk and log together, if somebody has asked for that since the last change.
    merged: OnceLock<Box<SparseChunk>>,
}

/// Cells that have been encoded, and their values.
#[derive(Clone, Debug)]
struct Fresh {
    cells: RowCells,
    values: Arc<Vec<u8>>,
}

impl Fresh {
    fn decoded(&self) -> SparseChunk {
        let cells = self.cells.to_set().expect("cells as they have been encoded");
        SparseChunk { values: Some(self.values.clone()), ..SparseChunk::new(cells, None) }
    }
}

impl LoggedChunk {
    /// A chunk without a log; elements have `element` bytes.
    pub fn new(base: SparseChunk, element: usize) -> Self {
        Self { base, element, log: Log::default(), fresh: None, merged: OnceLock::new() }
    }

    /// Whether the chunk has no cells.
    pub fn is_new(&self) -> bool {
        self.fresh.is_none() && self.log.is_empty() && self.base.cells.is_empty()
    }

    /// Gives cells and their values to a new chunk.
    pub fn begin(&mut self, cells: RowCells, values: Vec<u8>) {
        self.fresh = Some(Fresh { cells, values: Arc::new(values) });
    }

    /// Cells and values of a chunk that was written whole and not looked at since.
    pub fn fresh(&self) -> Option<(&RowCells, &Arc<Vec<u8>>)> {
        self.fresh.as_ref().map(|fresh| (&fresh.cells, &fresh.values))
    }

    /// Bytes of an element.
    pub fn element(&self) -> usize {
        self.element
    }

    /// Cells of the chunk, defined or not.
    pub fn cells(&self) -> u64 {
        self.base.cells.cells()
    }

    /// How many cells are defined.
    pub fn len(&self) -> u64 {
        let fresh = self.fresh.as_ref().map_or(0, |fresh| fresh.values.len() / self.element.max(1));
        let Log { added, removed, .. } = &self.log;
        self.base.cells.len() + (fresh + added.len()) as u64 - removed.len() as u64
    }

    /// Whether no cell is defined.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The chunk as it is after all changes.
    pub fn view(&self) -> &SparseChunk {
        match &self.fresh {
            Some(fresh) => self.merged.get_or_init(|| Box::new(fresh.decoded())),
            None if self.log.is_empty() => &self.base,
            None => self.merged.get_or_init(|| Box::new(self.log.merge(&self.base, self.element))),
        }
    }

    /// The chunk as it is after all changes, to be changed; there is no log any more.
    pub fn settle(&mut self) -> &mut SparseChunk {
        self.take_over();
        if !self.log.is_empty() {
            self.base = std::mem::take(&mut self.log).merge(&self.base, self.element);
        }
        &mut self.base
    }

    /// Defines `cells` with `values` (one element each, in row-major order of `cells`).
    pub fn define(&mut self, cells: CellSet, values: Vec<u8>) {
        self.take_over();
        if !self.are_few(cells.len()) {
            let element = self.element;
            return self.settle().define(element, cells, values);
        }
        let (element, log) = (self.element, &mut self.log);
        let mut cursor = self.base.cells.cursor();
        let held = self.base.values.get_or_insert_default();
        let mut rest = values.as_slice();
        let mut take = |count: u64| rest.split_off(..count as usize * element).unwrap_or_default();
        cells.for_each_run(|run| {
            let mut at = run.start;
            cursor.for_each(run, |piece| {
                log.add(at..piece.cell, take(piece.cell - at), element);
                at = piece.cell + piece.len;
                let start = piece.position as usize * element;
                let place = start..start + piece.len as usize * element;
                // Shared only while they are being written.
                Arc::make_mut(held)[place].copy_from_slice(take(piece.len));
                remove_range(&mut log.removed, piece.cell..at);
            });
            log.add(at..run.end(), take(run.end() - at), element);
        });
        self.settle_if_long();
    }

    /// The cells that `selection` selects in a chunk of shape `dims`, or those of them that are defined, if that
    /// is less work. Then the log is merged.
    pub fn named(&self, selection: &Selection, dims: &[u64]) -> Result<CellSet> {
        match self.base.cells.is_less_than(selection, dims) {
            true => Ok(self.view().cells.among(selection, dims)?),
            false => Ok(CellSet::from_selection(selection, dims)?),
        }
    }

    /// Makes `cells` undefined. Returns whether any of them was defined.
    pub fn erase(&mut self, cells: &CellSet) -> bool {
        self.take_over();
        let held = &self.base.cells;
        let found = |run: Run| held.rank(run.end()) - held.rank(run.start);
        // Whoever names many runs may as well go through all cells.
        if !self.are_few(cells.run_count()) || !self.are_few(cells.runs().map(found).sum()) {
            let element = self.element;
            return self.settle().erase(element, cells);
        }
        let before = self.len();
        let log = &mut self.log;
        let mut cursor = self.base.cells.cursor();
        cells.for_each_run(|run| {
            log.forget(run);
            cursor.for_each(run, |piece| log.removed.extend(piece.cell..piece.cell + piece.len));
        });
        let changed = self.len() != before;
        self.settle_if_long();
        changed
    }

    /// The values of `cells`, the fill value for those that are not defined.
    pub fn values_or_fill(&self, cells: &CellSet, fill: &[u8]) -> Vec<u8> {
        let mut values = vec![0; cells.len() as usize * self.element];
        fill_with(&mut values, fill);
        self.for_each_held(cells, |position, held| {
            let start = position as usize * self.element;
            values[start..start + held.len()].copy_from_slice(held);
        });
        values
    }

    /// Visits the elements of those of `cells` that are defined, without merging the log: the position of the
    /// first among `cells`, and elements of cells that follow each other. Not always in ascending order.
    pub fn for_each_held(&self, cells: &CellSet, visit: impl FnMut(u64, &[u8])) {
        let mut before = 0;
        let runs = cells.runs().map(|run| {
            before += run.len;
            (before - run.len, run)
        });
        self.for_each_held_in(runs, visit);
    }

    /// The same of cells in any order: a run of them and the number of its first.
    pub fn for_each_held_in(
        &self,
        runs: impl Iterator<Item = (u64, Run)>,
        mut visit: impl FnMut(u64, &[u8]),
    ) {
        let none = Log::default();
        let (chunk, log) =
            if self.waits() { (&self.base, &self.log) } else { (self.view(), &none) };
        let (held, mut cursor) = (chunk.values(), chunk.cells.cursor());
        let element = self.element;
        for (before, run) in runs {
            cursor.for_each(run, |piece| {
                let mut at = piece.cell;
                let mut show = |end: u64| {
                    let start = (piece.position + at - piece.cell) as usize * element;
                    let found = &held[start..start + (end - at) as usize * element];
                    if !found.is_empty() {
                        visit(before + at - run.start, found);
                    }
                    at = end + 1;
                };
                let end = piece.cell + piece.len;
                log.removed.range(piece.cell..end).for_each(|&gone| show(gone));
                show(end);
            });
            for (&cell, &number) in log.added.range(run.start..run.end()) {
                visit(before + cell - run.start, log.value(number, element));
            }
        }
    }

    /// Whether so many cells are looked at without merging a log: who reads a cell and writes it, again and
    /// again, would pay for all cells of the chunk each time.
    pub fn spares_merging(&self, cells: u64) -> bool {
        self.waits() && cells.saturating_mul(FEW) <= self.base.cells.len()
    }

    /// Those of `wanted` that are defined.
    pub fn defined_among(&self, wanted: &CellSet) -> CellSet {
        if !self.spares_merging(wanted.len()) {
            return self.view().cells.intersection(wanted);
        }
        let mut found = Vec::new();
        self.for_each_held_in(wanted.runs().map(|run| (run.start, run)), |cell, held| {
            found.extend(cell..cell + (held.len() / self.element.max(1)) as u64);
        });
        found.sort_unstable();
        CellSet::from_sorted_cells(self.cells(), found).expect("cells of the chunk")
    }

    /// Those of `wanted` that are defined, and their values. The log is merged unless they are few.
    pub fn extract(&self, wanted: &CellSet) -> (CellSet, Vec<u8>) {
        if !self.spares_merging(wanted.len()) {
            return self.view().extract(self.element, wanted);
        }
        let found = self.defined_among(wanted);
        let values = self.values_or_fill(&found, &[]);
        (found, values)
    }

    /// Whether there is a log that nobody has merged.
    fn waits(&self) -> bool {
        self.fresh.is_none() && !self.log.is_empty() && self.merged.get().is_none()
    }

    /// Whether values are resident.
    pub fn has_values(&self) -> bool {
        self.fresh.is_some() || self.base.values.is_some()
    }

    /// Bytes in memory, used and allocated. With a log, what a reader may merge is counted.
    pub fn footprint(&self) -> (usize, usize) {
        let (used, allocated) = self.base.footprint();
        if let Some(Fresh { cells, values }) = &self.fresh {
            // Cells twice, as a reader may decode them.
            let cells = 2 * (used + cells.heap_bytes());
            return (cells + values.len(), cells + values.capacity());
        }
        if self.log.is_empty() {
            return (used, allocated);
        }
        let (log, room) = self.log.footprint();
        (2 * (used + log), 2 * (allocated + room))
    }

    /// Gives back memory that is not used.
    pub fn condense(&mut self) {
        match &mut self.fresh {
            Some(fresh) => Arc::get_mut(&mut fresh.values).into_iter().for_each(Vec::shrink_to_fit),
            None => self.settle().condense(),
        }
    }

    /// Whether a change to so many cells goes to the log.
    fn are_few(&self, cells: u64) -> bool {
        self.base.values.is_some() && cells.saturating_mul(FEW) <= self.base.cells.len()
    }

    fn settle_if_long(&mut self) {
        if self.log.len(self.element) > self.base.cells.len() / SHARE + SHORT {
            self.settle();
        }
    }

    /// Takes over what a reader has merged.
    fn take_over(&mut self) {
        let fresh = self.fresh.take();
        if let Some(merged) = self.merged.take() {
            self.base = *merged;
            self.log = Log::default();
        } else if let Some(fresh) = fresh {
            self.base = fresh.decoded();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::geometry::Geometry;
    use super::super::request::{ReadRequest, RowPart, SparseRead};
    use super::super::sparse::Sparse;
    use super::super::sparse_chunk::MOVED;
    use super::super::table::ChunkTable;
    use super::*;
    use proptest::prelude::*;
    use pumice_filter::Pipeline;
    use pumice_filter::location::{Aim, RowEncoder, RowSteps};
    use pumice_space::Selection;
    use pumice_structures::index::IndexKind;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    /// A layout without filters.
    fn unfiltered(geometry: Geometry) -> Sparse {
        let (geometry, none) = (Arc::new(geometry), Pipeline::default);
        let table = ChunkTable::empty(geometry.clone(), IndexKind::FixedArray);
        Sparse::new(geometry, none(), none(), false, table)
    }

    fn chunk(cells: impl Iterator<Item = u64>) -> SparseChunk {
        let set = CellSet::from_sorted_cells(100_000, cells).unwrap();
        let values = (0..set.len()).flat_map(|at| (at as u16).to_le_bytes()).collect();
        SparseChunk::new(set, Some(values))
    }

    /// Cells and values as a dictionary has them.
    fn listed(chunk: &SparseChunk) -> BTreeMap<u64, u16> {
        let values = chunk.values().as_chunks::<2>().0;
        let cells = chunk.cells.runs().flat_map(|run| run.start..run.end());
        cells.zip(values.iter().map(|value| u16::from_le_bytes(*value))).collect()
    }

    #[test]
    fn single_writes_in_any_order_are_seen_by_readers_and_merged_in_the_end() {
        let base = chunk((0..10_000).map(|at| at * 7));
        let mut model = listed(&base);
        let mut logged = LoggedChunk::new(base, 2);
        for step in 0..20_000u64 {
            let cell = step * 7919 % 100_000;
            let set = CellSet::from_sorted_cells(100_000, [cell]).unwrap();
            logged.define(set, (step as u16).to_le_bytes().to_vec());
            model.insert(cell, step as u16);
            if step % 3000 == 17 {
                assert_eq!(listed(logged.view()), model);
                assert_eq!(listed(logged.clone().settle()), model);
            }
        }
        assert!(logged.footprint().0 > logged.base.footprint().0, "a log is counted");
        assert_eq!(listed(logged.settle()), model);
    }

    #[test]
    fn many_cells_at_once_and_known_cells_need_no_log() {
        let mut logged = LoggedChunk::new(chunk(0..100), 2);
        let known = CellSet::from_sorted_cells(100_000, [5]).unwrap();
        logged.define(known, vec![1, 2]);
        assert!(logged.log.is_empty());
        let many = CellSet::from_sorted_cells(100_000, 500..600).unwrap();
        logged.define(many, vec![0; 200]);
        assert!(logged.log.is_empty());
        assert_eq!(logged.view().cells.len(), 200);
        assert_eq!(listed(logged.view())[&5], 0x201);
    }

    #[test]
    fn a_chunk_that_was_written_whole_is_decoded_when_it_is_looked_at_or_changed() {
        let mut columns: Vec<u32> = (0..200u32).map(|at| at * at * 7919 % 199).collect();
        columns.chunks_mut(4).for_each(|row| row.sort_unstable());
        columns.chunks_mut(4).for_each(|row| (0..4).for_each(|at| row[at] += at as u32));
        let mut encoder = RowEncoder::new([400, 250], 0, 200, Aim::Short).unwrap();
        let steps = RowSteps::new(&columns, 0..200);
        (0..50).for_each(|row| encoder.row(row as u32, &steps, 4 * row..4 * row + 4));
        let located = encoder.finish();
        let mut logged = LoggedChunk::new(SparseChunk::empty(100_000), 2);
        assert!(logged.is_new());
        logged.begin(located, (0..200).flat_map(|at: u16| at.to_le_bytes()).collect());
        assert!(!logged.is_new() && logged.fresh().is_some() && logged.footprint().0 > 800);
        let model: BTreeMap<u64, u16> = columns
            .iter()
            .enumerate()
            .map(|(at, column)| (at as u64 / 4 * 250 + u64::from(*column), at as u16))
            .collect();
        for looked_at in [false, true] {
            let mut logged = logged.clone();
            let mut model = model.clone();
            if looked_at {
                assert_eq!(listed(logged.view()), model);
            }
            let set = CellSet::from_sorted_cells(100_000, [99_999]).unwrap();
            logged.define(set, vec![3, 0]);
            model.insert(99_999, 3);
            assert!(logged.fresh().is_none());
            assert_eq!(listed(logged.settle()), model);
        }
    }

    fn set(cells: impl IntoIterator<Item = u64>) -> CellSet {
        CellSet::from_sorted_cells(100_000, cells).unwrap()
    }

    /// A change to `len` cells from `start` on, `step` apart, or a look at them.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Define,
        DefineHalf,
        Erase,
        Look,
        View,
        Settle,
    }

    fn steps() -> impl Strategy<Value = Vec<(Step, u64, u64, u64)>> {
        let step = prop_oneof![
            8 => Just(Step::Define),
            4 => Just(Step::DefineHalf),
            8 => Just(Step::Erase),
            8 => Just(Step::Look),
            1 => Just(Step::View),
            1 => Just(Step::Settle),
        ];
        let len = prop_oneof![10 => 1..4u64, 4 => 1..60u64, 1 => 1..900u64];
        proptest::collection::vec((step, 0..20_000u64, len, 1..9u64), 1..300)
    }

    proptest! {
        #[test]
        fn changes_in_any_order_are_those_of_a_dictionary(
            every in 1..30u64,
            steps in steps(),
        ) {
            let base = chunk((0..3000).map(|at| at * every));
            let mut model = listed(&base);
            let mut logged = LoggedChunk::new(base, 2);
            for (number, (step, start, len, apart)) in steps.into_iter().enumerate() {
                let cells = (0..len).map(|at| start + at * apart);
                let named = set(cells.clone());
                let old = |cell: u64| model.get(&cell).copied().unwrap_or(0x707).to_le_bytes();
                let held: Vec<u8> = cells.clone().flat_map(old).collect();
                match step {
                    Step::Define => {
                        logged.define(named, (number as u16).to_le_bytes().repeat(len as usize));
                        model.extend(cells.map(|cell| (cell, number as u16)));
                    }
                    Step::DefineHalf => {
                        // As a member of a compound is written: the rest stays as it is.
                        let mut values = logged.values_or_fill(&named, &[7, 7]);
                        prop_assert_eq!(&values, &held);
                        values.iter_mut().step_by(2).for_each(|byte| *byte = number as u8);
                        let halves = values.as_chunks::<2>().0.iter().copied();
                        model.extend(cells.zip(halves.map(u16::from_le_bytes)));
                        logged.define(named, values);
                    }
                    Step::Erase => {
                        let before = model.len();
                        cells.for_each(|cell| {
                            model.remove(&cell);
                        });
                        prop_assert_eq!(logged.erase(&named), model.len() < before);
                    }
                    Step::Look => {
                        // From the last to the first, as no order is asked for.
                        let runs = cells.clone().rev().map(|start| (start, Run { start, len: 1 }));
                        let mut found = BTreeMap::new();
                        logged.for_each_held_in(runs, |cell, value| {
                            let value = u16::from_le_bytes(value.try_into().unwrap());
                            assert_eq!(found.insert(cell, value), None);
                        });
                        let known = cells.filter_map(|cell| Some((cell, *model.get(&cell)?)));
                        let known: BTreeMap<u64, u16> = known.collect();
                        prop_assert_eq!(&found, &known);
                        let values = known.values().flat_map(|value| value.to_le_bytes());
                        let values = values.collect();
                        let defined = set(known.into_keys());
                        prop_assert_eq!(logged.defined_among(&named), defined.clone());
                        prop_assert_eq!(logged.extract(&named), (defined, values));
                    }
                    Step::View => prop_assert_eq!(&listed(logged.view()), &model),
                    Step::Settle => prop_assert_eq!(&listed(logged.settle()), &model),
                }
                prop_assert_eq!(logged.len(), model.len() as u64);
            }
            prop_assert_eq!(&listed(logged.clone().settle()), &model);
            prop_assert_eq!(&listed(logged.view()), &model);
        }
    }

    /// Cells that are moved by what `work` does.
    fn moved(work: impl FnOnce()) -> u64 {
        let before = MOVED.get();
        work();
        MOVED.get() - before
    }

    #[test]
    fn cells_that_come_and_go_one_by_one_move_each_other_a_few_times_and_not_each_time() {
        const CELLS: u64 = 30_000;
        let order = || (0..CELLS).map(|step| step * 7919 % 100_000);
        let mut logged = LoggedChunk::new(SparseChunk::empty(100_000), 2);
        let work = moved(|| order().for_each(|cell| logged.define(set([cell]), vec![1, 2])));
        assert!((CELLS..10 * CELLS).contains(&work), "{work} cells moved for {CELLS} that came");
        // A member of each: the cells are there, so nothing moves.
        let work = moved(|| {
            for cell in order() {
                let mut value = logged.values_or_fill(&set([cell]), &[0, 0]);
                value[0] += 1;
                logged.define(set([cell]), value);
            }
        });
        assert!(work <= CELLS, "{work} cells moved for {CELLS} that stayed");
        assert_eq!(logged.view().values().as_chunks::<2>().0, vec![[2, 2]; CELLS as usize]);
        let work = moved(|| {
            for cell in order() {
                assert!(logged.erase(&set([cell])));
                assert!(!logged.erase(&set([cell])));
            }
        });
        assert!(logged.is_empty());
        assert!(work < 10 * CELLS, "{work} cells moved for {CELLS} that went");
    }

    #[test]
    fn cells_that_are_looked_at_each_time_do_not_have_the_log_merged_each_time() {
        const CELLS: u64 = 30_000;
        let mut logged = LoggedChunk::new(SparseChunk::empty(100_000), 2);
        let work = moved(|| {
            for step in 0..CELLS {
                let cell = step * 7919 % 100_000;
                assert!(logged.defined_among(&set([cell])).is_empty());
                logged.define(set([cell]), (step as u16).to_le_bytes().to_vec());
                let mut found = Vec::new();
                let run = (7, Run { start: cell, len: 1 });
                logged.for_each_held_in([run].into_iter(), |number, value| {
                    found.push((number, value.to_vec()));
                });
                assert_eq!(found, [(7, (step as u16).to_le_bytes().to_vec())]);
                assert_eq!(logged.defined_among(&set([cell])), set([cell]));
            }
        });
        assert!(work < 20 * CELLS, "{work} cells moved for {CELLS} that came");
        assert!(!logged.spares_merging(CELLS / 2), "many cells are worth a merge");
    }

    #[test]
    fn values_of_few_cells_are_read_without_merging_the_log() {
        let mut logged = LoggedChunk::new(chunk((0..10_000).map(|at| at * 7)), 2);
        logged.define(set([5]), vec![1, 2]);
        assert!(logged.erase(&set([14])));
        let geometry = Geometry::new(&[100_000], &[100_000], &[100_000], vec![0; 2]).unwrap();
        let sparse = unfiltered(geometry);
        let mut found = None;
        let cells = Selection::points(1, vec![21, 5, 6, 14]).unwrap();
        let work = moved(|| {
            let mut request =
                ReadRequest::DefinedValues { cells: &cells, members: false, found: &mut found };
            sparse.scatter_logged(&logged, &mut request).unwrap();
        });
        let (cells, values) = found.unwrap();
        assert_eq!(cells.into_set(100_000).unwrap(), set([5, 21]));
        assert_eq!(values, [1, 2, 3, 0]);
        assert_eq!(work, 0, "cells moved");
    }

    #[test]
    fn rows_of_few_cells_are_read_without_merging_the_log() {
        let mut logged = LoggedChunk::new(chunk((0..10_000).map(|at| at * 7)), 2);
        logged.define(set([5, 1004]), vec![1, 2, 3, 4]);
        assert!(logged.erase(&set([14])));
        let dims = [100, 1000];
        let geometry = Geometry::new(&dims, &dims, &dims, vec![0; 2]).unwrap();
        let sparse = unfiltered(geometry);
        for rows in [RowPart::Range(0..2), RowPart::Listed(&[0, 1])] {
            let mut found = None;
            let work = moved(|| {
                let mut request = ReadRequest::Sparse(SparseRead::Rows {
                    rows,
                    columns: 4..16,
                    starts: true,
                    found: &mut found,
                });
                sparse.scatter_logged(&logged, &mut request).unwrap();
            });
            let found = found.unwrap();
            assert_eq!(found.cells, [5, 7, 1004, 1008, 1015]);
            assert_eq!(found.starts, [0, 2, 5]);
            assert_eq!(found.values, [1, 2, 1, 0, 3, 4, 144, 0, 145, 0]);
            assert_eq!(work, 0, "cells moved");
        }
    }

    #[test]
    fn one_cell_that_comes_and_goes_does_not_make_the_log_longer_and_longer() {
        let mut logged = LoggedChunk::new(chunk(0..1000), 2);
        logged.define(set([5000]), vec![1, 2]);
        let work = moved(|| {
            for _ in 0..50_000 {
                logged.define(set([4000]), vec![1, 2]);
                assert!(logged.erase(&set([4000])));
            }
        });
        assert!(logged.log.footprint().0 < 1 << 14, "{:?}", logged.log.footprint());
        assert!(work < 100_000, "{work} cells moved");
    }
}
