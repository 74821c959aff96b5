//! The log of a sparse chunk: cells that came to it and went.

use crate::sparse_chunk::SparseChunk;
use pumice_space::{CellSet, Run};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Cells that came and went.
#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    /// The cells that came, and the number of each one's element among `values`.
    pub(super) added: BTreeMap<u64, usize>,
    /// Elements in the order in which they came; some of them of cells that have gone again.
    pub(super) values: Vec<u8>,
    /// The cells that went.
    pub(super) removed: BTreeSet<u64>,
}

impl Log {
    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }

    /// The length that decides when to merge: elements of cells that have gone again take room, too.
    pub(super) fn len(&self, element: usize) -> u64 {
        (self.values.len() / element.max(1) + self.removed.len()) as u64
    }

    /// Defines cells that the chunk has not.
    pub(super) fn add(&mut self, cells: Range<u64>, mut values: &[u8], element: usize) {
        for cell in cells {
            let value = values.split_off(..element).unwrap_or_default();
            let next = self.values.len() / element.max(1);
            let number = *self.added.entry(cell).or_insert(next);
            if number == next {
                self.values.extend_from_slice(value);
            } else {
                self.values[number * element..(number + 1) * element].copy_from_slice(value);
            }
        }
    }

    /// Takes back cells that the chunk has not.
    pub(super) fn forget(&mut self, run: Run) {
        while let Some((&cell, _)) = self.added.range(run.start..run.end()).next() {
            self.added.remove(&cell);
        }
        if self.added.is_empty() {
            self.values.clear();
        }
    }

    /// The element of a number.
    pub(super) fn value(&self, number: usize, element: usize) -> &[u8] {
        &self.values[number * element..(number + 1) * element]
    }

    /// A chunk after these changes.
    pub(super) fn merge(&self, base: &SparseChunk, element: usize) -> SparseChunk {
        let total = base.cells.cells();
        // They come from sets of this chunk, and ascend.
        let set = |cells: &mut dyn Iterator<Item = u64>| {
            CellSet::from_sorted_cells(total, cells).expect("cells of the chunk")
        };
        let mut chunk = Cow::Borrowed(base);
        if !self.removed.is_empty()
            && let Some(left) = base.without(element, &set(&mut self.removed.iter().copied()))
        {
            chunk = Cow::Owned(left);
        }
        if self.added.is_empty() {
            return chunk.into_owned();
        }
        let mut values = Vec::with_capacity(self.added.len() * element);
        for &number in self.added.values() {
            values.extend_from_slice(self.value(number, element));
        }
        chunk.with(element, &set(&mut self.added.keys().copied()), &values)
    }

    /// Bytes in memory, used and allocated.
    pub(super) fn footprint(&self) -> (usize, usize) {
        // Nodes of the trees are between half full and full.
        let nodes = 24 * self.added.len() + 12 * self.removed.len();
        (nodes + self.values.len(), nodes + self.values.capacity())
    }
}

/// Takes a range out of a set.
pub(super) fn remove_range(set: &mut BTreeSet<u64>, range: Range<u64>) {
    while let Some(&cell) = set.range(range.clone()).next() {
        set.remove(&cell);
    }
}
