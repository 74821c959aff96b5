//! A sparse chunk and a log of small writes to it that have not been merged yet.
//!
//! Merging cells into a chunk takes time by all of its cells. A program that writes point by point
//! would pay that for every point, so few cells for a chunk of many go to a log. It is merged when the
//! chunk is read, encoded or changed otherwise, and when it has become long: n points in any order cost
//! n log n, in one call or in n.
//!
//! Readers share a chunk, so what they merge is kept beside it; the next write takes it over.

use super::sparse_chunk::SparseChunk;
use pumice_space::CellSet;
use std::sync::OnceLock;

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
    /// Chunk and log together, if somebody has asked for that since the last write.
    merged: OnceLock<Box<SparseChunk>>,
}

impl LoggedChunk {
    /// A chunk without a log.
    pub fn new(base: SparseChunk) -> Self {
        Self { base, cells: Vec::new(), values: Vec::new(), merged: OnceLock::new() }
    }

    /// The chunk as it is after all writes; elements have `element` bytes.
    pub fn view(&self, element: usize) -> &SparseChunk {
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
        self.base.values.is_some()
    }

    /// Bytes in memory, used and allocated. With a log, what a reader may merge is counted.
    pub fn footprint(&self) -> (usize, usize) {
        let (used, allocated) = self.base.footprint();
        if self.cells.is_empty() {
            return (used, allocated);
        }
        let log = 8 * self.cells.len() + self.values.len();
        let room = 8 * self.cells.capacity() + self.values.capacity();
        (2 * (used + log), 2 * (allocated + room))
    }

    /// Takes over what a reader has merged.
    fn take_over(&mut self) {
        if let Some(merged) = self.merged.take() {
            self.base = *merged;
            self.cells.clear();
            self.values.clear();
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
    use std::collections::BTreeMap;

    fn chunk(cells: impl Iterator<Item = u64>) -> SparseChunk {
        let set = CellSet::from_sorted_cells(100_000, cells).unwrap();
        let values = (0..set.len()).flat_map(|at| (at as u16).to_le_bytes()).collect();
        SparseChunk::new(set, Some(values))
    }

    /// Cells and values as a dictionary has them.
    fn listed(chunk: &SparseChunk) -> BTreeMap<u64, u16> {
        let values = chunk.values.as_deref().unwrap().as_chunks::<2>().0;
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
}
