//! A sparse chunk and a log of small writes to it that have not been merged yet.
//!
//! Merging cells into a chunk takes time by all of its cells. A program that writes point by point
//! would pay that for every point, so few cells for a chunk of many go to a log. It is merged when the
//! chunk is read, encoded or changed otherwise, and when it has become long: n points in any order cost
//! n log n, in one call or in n.
//!
//! Readers share a chunk, so what they merge is kept beside it; the next write takes it over.

use super::sparse_chunk::SparseChunk;
use pumice_filter::location::RowCells;
use pumice_space::CellSet;
use std::sync::{Arc, OnceLock};

/// A write goes to the log if the chunk has so many times its cells.
const FEW: u64 = 8;

/// A log of so many cells, and of this part of the chunk's cells, is not merged for its length.
const SHORT: u64 = 1 << 10;
const SHARE: u64 = 4;

/// A sparse chunk with a log.
#[derive(Clone, Debug)]
pub struct LoggedChunk {
    base: SparseChunk,
    /// The cells of the log, in the order in which they were written, and the value of each.
    cells: Vec<u64>,
    values: Vec<u8>,
    /// A chunk that was written whole and has not been changed since: then `base` has nothing, and there is
    /// no log.
    fresh: Option<Fresh>,
    /// Chunk and log together, if somebody has asked for that since the last write.
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
    /// A chunk without a log.
    pub fn new(base: SparseChunk) -> Self {
        let merged = OnceLock::new();
        Self { base, cells: Vec::new(), values: Vec::new(), fresh: None, merged }
    }

    /// Whether the chunk has no cells.
    pub fn is_new(&self) -> bool {
        self.fresh.is_none() && self.cells.is_empty() && self.base.cells.is_empty()
    }

    /// Gives cells and their values to a new chunk.
    pub fn begin(&mut self, cells: RowCells, values: Vec<u8>) {
        self.fresh = Some(Fresh { cells, values: Arc::new(values) });
    }

    /// Cells and values of a chunk that was written whole and not looked at since.
    pub fn fresh(&self) -> Option<(&RowCells, &Arc<Vec<u8>>)> {
        self.fresh.as_ref().map(|fresh| (&fresh.cells, &fresh.values))
    }

    /// The chunk as it is after all writes; elements have `element` bytes.
    pub fn view(&self, element: usize) -> &SparseChunk {
        if let Some(fresh) = &self.fresh {
            return self.merged.get_or_init(|| Box::new(fresh.decoded()));
        }
        if self.cells.is_empty() {
            return &self.base;
        }
        self.merged.get_or_init(|| {
            let mut chunk = self.base.clone();
            merge(&mut chunk, element, &self.cells, &self.values);
            Box::new(chunk)
        })
    }

    /// The chunk as it is after all writes, to be changed; there is no log any more.
    pub fn settle(&mut self, element: usize) -> &mut SparseChunk {
        self.take_over();
        if !self.cells.is_empty() {
            merge(&mut self.base, element, &self.cells, &self.values);
            (self.cells, self.values) = (Vec::new(), Vec::new());
        }
        &mut self.base
    }

    /// Defines `cells` with `values` (one element each, in row-major order of `cells`).
    pub fn define(&mut self, element: usize, cells: CellSet, values: Vec<u8>) {
        self.take_over();
        let few = cells.len().saturating_mul(FEW) <= self.base.cells.len();
        if !few || self.base.values.is_none() {
            return self.settle(element).define(element, cells, values);
        }
        if self.cells.is_empty() && self.base.overwrite(element, &cells, &values) {
            return;
        }
        cells.for_each_run(|run| self.cells.extend(run.start..run.end()));
        self.values.extend_from_slice(&values);
        if self.cells.len() as u64 > self.base.cells.len() / SHARE + SHORT {
            self.settle(element);
        }
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
        if self.cells.is_empty() {
            return (used, allocated);
        }
        let log = 8 * self.cells.len() + self.values.len();
        let room = 8 * self.cells.capacity() + self.values.capacity();
        (2 * (used + log), 2 * (allocated + room))
    }

    /// Gives back memory that is not used.
    pub fn condense(&mut self, element: usize) {
        match &mut self.fresh {
            Some(fresh) => Arc::get_mut(&mut fresh.values).into_iter().for_each(Vec::shrink_to_fit),
            None => self.settle(element).condense(),
        }
    }

    /// Takes over what a reader has merged.
    fn take_over(&mut self) {
        let fresh = self.fresh.take();
        if let Some(merged) = self.merged.take() {
            self.base = *merged;
            self.cells.clear();
            self.values.clear();
        } else if let Some(fresh) = fresh {
            self.base = fresh.decoded();
        }
    }
}

/// Merges a log into a chunk; of several values for a cell, the last stays.
fn merge(chunk: &mut SparseChunk, element: usize, cells: &[u64], values: &[u8]) {
    let mut order: Vec<usize> = (0..cells.len()).collect();
    // Stable, so that of equal cells the one that was written last stays last.
    order.sort_by_key(|&at| cells[at]);
    let mut found = Vec::with_capacity(cells.len());
    let mut sorted = Vec::with_capacity(values.len());
    for (at, &number) in order.iter().enumerate() {
        if order.get(at + 1).is_some_and(|&next| cells[next] == cells[number]) {
            continue;
        }
        found.push(cells[number]);
        sorted.extend_from_slice(&values[number * element..(number + 1) * element]);
    }
    // They come from sets of this chunk, and ascend now.
    let set = CellSet::from_sorted_cells(chunk.cells.cells(), found).expect("cells of the chunk");
    chunk.define(element, set, sorted);
}

#[cfg(test)]
mod tests {
    use super::*;
    use pumice_filter::location::{Aim, RowEncoder};
    use std::collections::BTreeMap;

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
        let mut logged = LoggedChunk::new(base);
        for step in 0..20_000u64 {
            let cell = step * 7919 % 100_000;
            let set = CellSet::from_sorted_cells(100_000, [cell]).unwrap();
            logged.define(2, set, (step as u16).to_le_bytes().to_vec());
            model.insert(cell, step as u16);
            if step % 3000 == 17 {
                assert_eq!(listed(logged.view(2)), model);
                assert_eq!(listed(logged.clone().settle(2)), model);
            }
        }
        assert!(logged.footprint().0 > logged.base.footprint().0, "a log is counted");
        assert_eq!(listed(logged.settle(2)), model);
    }

    #[test]
    fn many_cells_at_once_and_known_cells_need_no_log() {
        let mut logged = LoggedChunk::new(chunk(0..100));
        let known = CellSet::from_sorted_cells(100_000, [5]).unwrap();
        logged.define(2, known, vec![1, 2]);
        assert!(logged.cells.is_empty());
        let many = CellSet::from_sorted_cells(100_000, 500..600).unwrap();
        logged.define(2, many, vec![0; 200]);
        assert!(logged.cells.is_empty());
        assert_eq!(logged.view(2).cells.len(), 200);
        assert_eq!(listed(logged.view(2))[&5], 0x201);
    }

    #[test]
    fn a_chunk_that_was_written_whole_is_decoded_when_it_is_looked_at_or_changed() {
        let mut columns: Vec<u32> = (0..200u32).map(|at| at * at * 7919 % 199).collect();
        columns.chunks_mut(4).for_each(|row| row.sort_unstable());
        columns.chunks_mut(4).for_each(|row| (0..4).for_each(|at| row[at] += at as u32));
        let mut encoder = RowEncoder::new([400, 250], 0, 200, Aim::Short).unwrap();
        (0..50).for_each(|row| encoder.row(row as u32, &columns, 4 * row..4 * row + 4));
        let located = encoder.finish();
        let mut logged = LoggedChunk::new(SparseChunk::empty(100_000));
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
                assert_eq!(listed(logged.view(2)), model);
            }
            let set = CellSet::from_sorted_cells(100_000, [99_999]).unwrap();
            logged.define(2, set, vec![3, 0]);
            model.insert(99_999, 3);
            assert!(logged.fresh().is_none());
            assert_eq!(listed(logged.settle(2)), model);
        }
    }
}
