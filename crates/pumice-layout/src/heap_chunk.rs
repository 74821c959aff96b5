//! A decoded chunk with variable-length data: defined cells, elements with references, and the heap
//! that these refer to.
//!
//! The elements are [heaped]: no value has an allocation of its own. A value
//! that is overwritten or erased leaves its bytes behind as waste, until so much is wasted that the
//! heap is made anew. In a chunk of a dense dataset every cell is defined. Few elements that come or go are
//! [logged](LoggedChunk) like those of any sparse chunk.
//!
//! Of a chunk that was written at once, only the counts of its lists are kept, which is all that is stored
//! of its elements; these are made when somebody asks for them.

use super::logged_chunk::LoggedChunk;
use super::request::{Lists, Piece, Source, Target};
use super::sparse_chunk::{SparseChunk, collect, note_moved};
use pumice_filter::references;
use pumice_medium::{Error, Result};
use pumice_space::{CellSet, Run, Segment, Selection};
use pumice_types::heaped::{self, InMemory, InMemoryOnce};
use pumice_types::{Datatype, Heaped};
use std::sync::OnceLock;

/// A heap is made anew for waste of one in so many bytes of the elements, or more.
const WORTH: u64 = 8;

/// Copies of a fill value take at most so many bytes of a chunk.
const APART: u64 = 1 << 20;

/// Cells, elements and heap.
#[derive(Clone, Debug)]
pub struct HeapChunk {
    /// Cells and elements; not there only as long as there are `counts`.
    entries: OnceLock<Box<LoggedChunk>>,
    /// What the elements refer to; empty while they are not resident.
    pub heap: Vec<u8>,
    /// Bytes of the heap that nothing refers to.
    waste: u64,
    /// Of a chunk that was written at once and not changed since.
    counts: Option<Counts>,
    /// If several elements refer to the same bytes, the length of the heap when it was made: of such a heap,
    /// nobody knows what is waste.
    shared: Option<usize>,
}

/// Lists that follow each other in a heap and fill it.
#[derive(Clone, Debug)]
pub struct Counts {
    /// The cell of each.
    pub cells: CellSet,
    /// One more than the number of values of each.
    pub counts: Vec<u32>,
    /// Bytes of a value.
    pub base: u32,
}

impl Counts {
    /// Cells and elements.
    fn entries(&self) -> LoggedChunk {
        let mut elements = vec![0; self.counts.len() * references::SIZE];
        let mut place = 1u64;
        for (count, element) in self.counts.iter().zip(elements.as_chunks_mut().0) {
            let count = count.saturating_sub(1);
            let reference = u128::from(count) | u128::from(place) << 32;
            *element = reference.to_le_bytes();
            place += u64::from(count) * u64::from(self.base);
        }
        LoggedChunk::new(SparseChunk::new(self.cells.clone(), Some(elements)), references::SIZE)
    }
}

impl HeapChunk {
    /// A chunk of these entries, elements of `size` bytes, all of whose heap is in use.
    pub fn new(entries: SparseChunk, size: usize, heap: Vec<u8>) -> Self {
        let entries = Box::new(LoggedChunk::new(entries, size)).into();
        Self { entries, heap, waste: 0, counts: None, shared: None }
    }

    /// The same, of elements several of which refer to the same bytes, if `shared` says so.
    pub fn sharing(self, shared: bool) -> Self {
        Self { shared: shared.then_some(self.heap.len()), ..self }
    }

    /// Lets `cells` cells that have a fill value share it when they are stored, if copies of it would take much: a copy for
    /// each would take as much memory as the value is long and cells are many. Otherwise each has its own, as with other
    /// writers.
    pub fn share_fill(&mut self, fill: &Heaped, cells: u64) {
        if (fill.heap.len() as u64).saturating_mul(cells) > APART && cells > 1 {
            self.shared.get_or_insert(self.heap.len());
        }
    }

    /// Whether several elements refer to the same bytes of the heap.
    pub fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Cells and elements.
    pub fn entries(&self) -> &SparseChunk {
        self.logged().view()
    }

    fn logged(&self) -> &LoggedChunk {
        self.entries.get_or_init(|| {
            Box::new(match &self.counts {
                Some(counts) => counts.entries(),
                None => LoggedChunk::new(SparseChunk::empty(0), 0),
            })
        })
    }

    /// Cells and elements, to be changed.
    fn logged_mut(&mut self) -> &mut LoggedChunk {
        self.logged();
        self.counts = None;
        self.entries.get_mut().expect("entries that were there or have been made")
    }

    /// The counts of a chunk that was written at once and not changed since.
    pub fn counts(&self) -> Option<&Counts> {
        self.counts.as_ref()
    }

    /// The defined cells.
    pub fn cells(&self) -> &CellSet {
        self.counts.as_ref().map_or_else(|| &self.entries().cells, |counts| &counts.cells)
    }

    /// How many cells are defined.
    pub fn len(&self) -> u64 {
        self.counts.as_ref().map_or_else(|| self.logged().len(), |counts| counts.cells.len())
    }

    /// Whether no cell is defined.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether elements are resident.
    pub fn has_values(&self) -> bool {
        self.counts.is_some() || self.logged().has_values()
    }

    /// Bytes in memory, used and allocated; elements that a reader may ask for are counted.
    pub fn footprint(&self) -> (usize, usize) {
        let (used, allocated) = match &self.counts {
            Some(Counts { cells, counts, .. }) => {
                let elements = counts.len() * (size_of::<u32>() + references::SIZE);
                let all = 2 * cells.heap_bytes() + elements + size_of::<Self>();
                (all, all)
            }
            None => self.logged().footprint(),
        };
        (used + self.heap.len(), allocated + self.heap.capacity())
    }

    /// Bytes of the heap that nothing refers to.
    pub fn waste(&self) -> u64 {
        self.waste
    }

    /// Cells of the chunk, defined or not.
    fn total(&self) -> u64 {
        self.counts.as_ref().map_or_else(|| self.logged().cells(), |counts| counts.cells.cells())
    }

    /// Forgets everything but the defined cells.
    pub fn drop_values(&mut self) {
        let cells = SparseChunk::new(self.cells().clone(), None);
        *self = Self::new(cells, self.logged().element(), Vec::new());
    }

    /// Gives back memory that is not used.
    pub fn condense(&mut self) {
        if self.counts.is_none() {
            self.logged_mut().condense();
        }
        self.heap.shrink_to_fit();
    }

    /// Defines the cells of `segments` with values of the source.
    pub fn define(
        &mut self,
        datatype: &Datatype,
        segments: impl Iterator<Item = Segment> + Clone,
        source: &Source<'_>,
    ) -> Result<()> {
        let heap = source.heap().ok_or_else(no_heap)?;
        let total = self.total();
        let mut all = segments.clone();
        // Lists that follow each other move as one, and references to them are made once, if ever.
        if let (Some(lists), Some(segment), None) = (source.as_lists(), all.next(), all.next()) {
            let cells = CellSet::from_runs(total, [Run { start: segment.cell, len: segment.len }])?;
            if (cells.is_full() || self.is_empty()) && lists.size as usize == references::SIZE {
                return self.begin(cells, lists, &segment, heap);
            }
            self.count_waste(datatype, &cells)?;
            let elements = lists.append(&segment, heap, &mut self.heap)?;
            self.logged_mut().define(cells, elements);
            return Ok(());
        }
        let (cells, mut elements) = collect(total, segments, source)?;
        self.count_waste(datatype, &cells)?;
        if heaped::adopt(datatype, &mut elements, &mut self.heap, 0, heap)? {
            self.shared.get_or_insert(self.heap.len());
        }
        self.logged_mut().define(cells, elements);
        Ok(())
    }

    /// Gives members of fixed size of the cells of `segments` values of the source; the others keep what they
    /// refer to. Cells that were not defined have the rest of `fill`.
    pub fn define_members(
        &mut self,
        datatype: &Datatype,
        segments: impl Iterator<Item = Segment> + Clone,
        source: &Source<'_>,
        fill: &Heaped,
    ) -> Result<()> {
        let (cells, members) = collect(self.total(), segments, source)?;
        let mut rest = fill.elements.clone();
        let undefined = self.defined_among(&cells).len() < cells.len();
        if undefined && !fill.heap.is_empty() {
            // All refer to the same bytes, at least until they are stored.
            heaped::adopt(datatype, &mut rest, &mut self.heap, 0, &fill.heap)?;
            self.share_fill(fill, cells.len());
        }
        let logged = self.logged_mut();
        let elements = source.convert(members, || logged.values_or_fill(&cells, &rest))?;
        logged.define(cells, elements);
        Ok(())
    }

    /// Defines `cells` with the lists of a segment; no others are defined.
    fn begin(
        &mut self,
        cells: CellSet,
        lists: &Lists<'_>,
        segment: &Segment,
        from: &[u8],
    ) -> Result<()> {
        let (ends, bytes) = lists.slice(segment, from)?;
        let mut counts = vec![0; segment.len as usize];
        let mut most = 0;
        for (count, ends) in counts.iter_mut().zip(ends.windows(2)) {
            // Offsets that descend are more than any list has.
            let values = ends[1].checked_sub(ends[0]).unwrap_or(u64::MAX);
            most = values.max(most);
            *count = (values as u32).wrapping_add(1);
        }
        let (true, Ok(base)) = (most < u64::from(u32::MAX), u32::try_from(lists.base)) else {
            return Err(Error::Invalid("a list of 2^32 - 1 values, or more".into()));
        };
        let heap = bytes.to_vec();
        let counts = Some(Counts { cells, counts, base });
        *self = Self { entries: OnceLock::new(), heap, waste: 0, counts, shared: None };
        Ok(())
    }

    /// Makes cells undefined. Returns whether any of them was defined.
    pub fn erase(&mut self, datatype: &Datatype, cells: &CellSet) -> Result<bool> {
        self.count_waste(datatype, cells)?;
        Ok(self.logged_mut().erase(cells))
    }

    /// Gives cells the element `fill`.
    pub fn fill(&mut self, datatype: &Datatype, cells: &CellSet, fill: &Heaped) -> Result<()> {
        self.count_waste(datatype, cells)?;
        let mut elements = fill.elements.repeat(cells.len() as usize);
        if heaped::adopt(datatype, &mut elements, &mut self.heap, 0, &fill.heap)? {
            self.share_fill(fill, cells.len());
        }
        self.logged_mut().define(cells.clone(), elements);
        Ok(())
    }

    /// Counts what the values of `cells`, which are about to go, leave behind.
    fn count_waste(&mut self, datatype: &Datatype, cells: &CellSet) -> Result<()> {
        if self.heap.is_empty() || self.is_shared() {
            return Ok(());
        }
        let (mut waste, mut counted) = (0, Ok(()));
        self.logged().for_each_held(cells, |_, gone| {
            match heaped::payload_bytes(datatype, gone, &self.heap) {
                Ok(bytes) => waste += bytes,
                Err(error) => counted = Err(error),
            }
        });
        counted?;
        self.waste += waste;
        Ok(())
    }

    /// Makes the heap anew, in the order of the cells, if more than `percent` of it is waste.
    pub fn compact(&mut self, datatype: &Datatype, percent: u32) -> Result<()> {
        let elements = self.len() * datatype.size() as u64;
        let worth = match self.shared {
            Some(made) => self.heap.len() as u64 > 2 * made as u64 + elements,
            // All elements are gone through: a few bytes are not worth that.
            None => {
                self.waste.saturating_mul(100) > self.heap.len() as u64 * u64::from(percent)
                    && self.waste.saturating_mul(WORTH) >= elements
            }
        };
        if !worth {
            return Ok(());
        }
        let mut heap = Vec::with_capacity(self.heap.len().saturating_sub(self.waste as usize));
        let (old, shared) = (std::mem::take(&mut self.heap), self.is_shared());
        let elements = self.logged_mut().settle().values_mut();
        let mut once = InMemoryOnce::new(&old);
        let made = elements.map_or(Ok(()), |elements| match shared {
            true => heaped::load(datatype, elements, &mut heap, &mut once),
            false => heaped::load(datatype, elements, &mut heap, &mut InMemory(&old)),
        });
        let shared = once.was_shared();
        if let Err(error) = made {
            self.heap = old;
            return Err(error.into());
        }
        (self.heap, self.waste) = (heap, 0);
        self.shared = shared.then_some(self.heap.len());
        note_moved(self.len());
        Ok(())
    }

    /// Answers a read of `count` cells; the caller has put the fill value everywhere. The log is merged unless
    /// they are few.
    pub fn scatter(
        &self,
        datatype: &Datatype,
        count: u64,
        segments: impl Iterator<Item = Segment>,
        target: &Target<'_>,
    ) -> Result<()> {
        // Who wants members of fixed size alone does not look at what the others refer to.
        let base = match (target.open_piece(), target.takes_members()) {
            (None, false) => return Err(no_heap()),
            (base, _) => base,
        };
        let logged = self.logged();
        if !logged.spares_merging(count) {
            logged.view();
        }
        let mut piece = Piece { first: u64::MAX, bytes: Vec::new() };
        let (first, heap) = (&mut piece.first, &mut piece.bytes);
        let mut once = self.is_shared().then(|| InMemoryOnce::new(&self.heap));
        let mut adopt = |elements: &mut [u8]| match (base, &mut once) {
            (None, _) => Ok(()),
            (Some(base), Some(once)) => heaped::load_at(datatype, elements, heap, base, once),
            (Some(base), None) => {
                heaped::adopt(datatype, elements, heap, base, &self.heap).map(drop)
            }
        };
        let runs = segments.map(|Segment { cell, memory, len }| {
            *first = memory.min(*first);
            (memory, Run { start: cell, len })
        });
        let mut done = Ok(());
        logged.for_each_held_in(runs, |memory, held| {
            let mut elements = held.to_vec();
            let placed = adopt(&mut elements).map_err(Error::from);
            if let Err(error) = placed.and_then(|()| target.place(memory, &elements)) {
                done = Err(error);
            }
        });
        if let Some(base) = base {
            target.put_piece(base, piece);
        }
        done
    }

    /// The cells that `selection` selects in a chunk of shape `dims`, or those of them that are defined, if that
    /// is less work.
    pub fn named(&self, selection: &Selection, dims: &[u64]) -> Result<CellSet> {
        match &self.counts {
            Some(counts) => Ok(counts.cells.among(selection, dims)?),
            None => self.logged().named(selection, dims),
        }
    }

    /// Those of `wanted` that are defined.
    pub fn defined_among(&self, wanted: &CellSet) -> CellSet {
        match &self.counts {
            Some(counts) => counts.cells.intersection(wanted),
            None => self.logged().defined_among(wanted),
        }
    }

    /// The part of the chunk that lies in `wanted`, for who looks at members of fixed size alone: references
    /// are those of the chunk.
    pub fn extract_members(&self, wanted: &CellSet) -> (CellSet, Vec<u8>) {
        self.logged().extract(wanted)
    }

    /// The part of the chunk that lies in `wanted`. The log is merged unless that is little.
    pub fn extract(&self, datatype: &Datatype, wanted: &CellSet) -> Result<(CellSet, Heaped)> {
        let (cells, mut elements) = self.logged().extract(wanted);
        let mut heap = Vec::new();
        match self.is_shared() {
            true => {
                let mut once = InMemoryOnce::new(&self.heap);
                heaped::load(datatype, &mut elements, &mut heap, &mut once)?;
            }
            false => {
                heaped::adopt(datatype, &mut elements, &mut heap, 0, &self.heap)?;
            }
        }
        Ok((cells, Heaped { elements, heap }))
    }
}

pub(super) fn no_heap() -> Error {
    Error::Invalid(
        "elements of variable length are stored with their chunk: read and write strings, \
         sequences, values, or members of fixed size alone, not references"
            .into(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::sparse_chunk::MOVED;
    use super::*;
    use pumice_types::Conversion;

    const CELLS: u64 = 20_000;

    /// Cells of a chunk in an order that does not ascend.
    fn order() -> impl Iterator<Item = u64> {
        (0..CELLS).map(|step| step * 7919 % (2 * CELLS))
    }

    fn set(cell: u64) -> CellSet {
        CellSet::from_sorted_cells(2 * CELLS, [cell]).unwrap()
    }

    fn write(chunk: &mut HeapChunk, datatype: &Datatype, cell: u64, text: &str) {
        let value = Heaped::strings(16, [text]).unwrap();
        let conversion = Conversion::new(datatype, datatype).unwrap();
        let source = Source::heaped(&value.elements, conversion, &value.heap);
        let segment = Segment { cell, memory: 0, len: 1 };
        chunk.define(datatype, std::iter::once(segment), &source).unwrap();
        chunk.compact(datatype, 25).unwrap();
    }

    fn texts(chunk: &HeapChunk, datatype: &Datatype) -> Vec<String> {
        let (_, found) = chunk.extract(datatype, &CellSet::full(2 * CELLS)).unwrap();
        pumice_types::Strings::from_heaped(datatype, found).unwrap().to_vec()
    }

    #[test]
    fn strings_that_come_change_and_go_one_by_one_move_each_other_a_few_times() {
        let datatype = Datatype::varlen_string(16);
        let mut chunk = HeapChunk::new(SparseChunk::empty(2 * CELLS), 16, Vec::new());
        let before = MOVED.get();
        order().for_each(|cell| write(&mut chunk, &datatype, cell, &cell.to_string()));
        order().for_each(|cell| write(&mut chunk, &datatype, cell, &(cell + 1).to_string()));
        let work = MOVED.get() - before;
        assert!(work < 20 * CELLS, "{work} cells moved for {CELLS}");
        assert_eq!(chunk.defined_among(&set(7919)), set(7919));
        assert!(chunk.defined_among(&set(CELLS * 7919 % (2 * CELLS))).is_empty(), "none of them");
        let mut wanted: Vec<u64> = order().map(|cell| cell + 1).collect();
        wanted.sort_unstable();
        let wanted: Vec<String> = wanted.iter().map(u64::to_string).collect();
        assert_eq!(texts(&chunk, &datatype), wanted);
        let before = MOVED.get();
        for cell in order() {
            assert!(chunk.erase(&datatype, &set(cell)).unwrap());
            chunk.compact(&datatype, 25).unwrap();
        }
        let work = MOVED.get() - before;
        assert!(work < 20 * CELLS, "{work} cells moved for {CELLS} that went");
        assert!(chunk.is_empty());
    }

    #[test]
    fn few_strings_are_read_without_merging_the_log() {
        let datatype = Datatype::varlen_string(16);
        let cells = CellSet::from_sorted_cells(2 * CELLS, 0..CELLS).unwrap();
        let values = vec![0; CELLS as usize * 16];
        let mut chunk = HeapChunk::new(SparseChunk::new(cells, Some(values)), 16, Vec::new());
        write(&mut chunk, &datatype, CELLS + 7, "basalt");
        let before = MOVED.get();
        let (cells, found) = chunk.extract(&datatype, &set(CELLS + 7)).unwrap();
        assert_eq!(MOVED.get() - before, 0, "cells moved");
        assert_eq!(cells, set(CELLS + 7));
        let found = pumice_types::Strings::from_heaped(&datatype, found).unwrap();
        assert_eq!(found, ["basalt"]);
    }

    #[test]
    fn a_heap_of_one_string_is_not_made_anew_for_every_other_one_in_a_chunk_of_many_cells() {
        let datatype = Datatype::varlen_string(16);
        let elements = vec![0; 2 * CELLS as usize * 16];
        let entries = SparseChunk::new(CellSet::full(2 * CELLS), Some(elements));
        let mut chunk = HeapChunk::new(entries, 16, Vec::new());
        let before = MOVED.get();
        for round in 0..CELLS {
            write(&mut chunk, &datatype, 5, &round.to_string());
        }
        let work = MOVED.get() - before;
        assert!(work < 20 * CELLS, "{work} cells moved for {CELLS} writes");
        assert!(chunk.heap.len() < 1 << 20);
        assert_eq!(texts(&chunk, &datatype)[5], (CELLS - 1).to_string());
    }
}
