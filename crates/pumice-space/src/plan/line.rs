//! Parts that are one [`Line`]: boxes with at most two dimensions, after dimensions that continue
//! each other are joined.
//!
//! Nearly all parts of nearly all transfers are lines. A line is small and needs no list of
//! segments, and for a box in one chunk it is found without a plan.

use super::{Line, Segment};
use crate::selection::axis::Axis;
use crate::selection::{Kind, Selection};
use crate::{ChunkGrid, CoordinateWalker, Dims, Run};

/// The part of one chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinePart {
    pub(super) line: Line,
    /// Cells of the chunk that lie inside the array.
    pub(super) inside: u64,
}

impl LinePart {
    pub(super) fn count(&self) -> u64 {
        self.line.count * self.line.first.len
    }

    /// The cells, relative to a chunk of shape `chunk_dims`.
    pub(super) fn cells(&self, chunk_dims: &[u64]) -> Selection {
        let Line { first, count, cell_step, .. } = self.line;
        // It is a box: its corners are its first and its last cell.
        let mut walker = CoordinateWalker::new(chunk_dims);
        let low = Dims::from_slice(walker.seek(first.cell));
        let high = walker.seek(first.cell + (count - 1) * cell_step + first.len - 1);
        let axes = low.iter().zip(high).map(|(&low, &high)| Axis::span(low, high));
        Selection(Kind::Product(axes.collect()))
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = Run> {
        self.line.segments().map(|Segment { cell, len, .. }| Run { start: cell, len })
    }
}

/// A line under construction, from the fastest dimension to the slowest.
pub(super) struct Fold {
    line: Line,
    /// Cells of the chunk along the dimensions so far.
    cells: u64,
}

impl Fold {
    /// One cell, which goes to `memory`.
    pub(super) fn new(memory: u64) -> Self {
        Self { line: Line::of(Segment { cell: 0, memory, len: 1 }), cells: 1 }
    }

    /// Adds a dimension of `size` cells, of which `count` from `first` on are selected, `step`
    /// apart in memory. Returns whether the result is still a line.
    pub(super) fn add(&mut self, size: u64, first: u64, count: u64, step: u64) -> bool {
        let (line, cells) = (&mut self.line, self.cells);
        line.first.cell += first * cells;
        // No chunk has more cells than fit 64 bits.
        self.cells = cells.wrapping_mul(size);
        if count == 1 {
            return true;
        }
        if line.count == 1 && line.first.len == cells && step == cells {
            line.first.len *= count;
        } else if line.count == 1 {
            *line = Line { count, cell_step: cells, memory_step: step, ..*line };
        } else {
            let next = (line.count * line.cell_step, line.count.wrapping_mul(line.memory_step));
            if next != (cells, step) {
                return false;
            }
            line.count *= count;
        }
        true
    }

    pub(super) fn finish(self, inside: u64) -> LinePart {
        LinePart { line: self.line, inside }
    }
}

/// The chunk and its part of a transfer between `file`, which lies inside the grid's array, and a
/// buffer of as many cells, if that is a line in one chunk.
pub(super) fn single(file: &Selection, grid: &ChunkGrid) -> Option<(Dims, LinePart)> {
    let Kind::Product(axes) = &file.0 else { return None };
    let mut chunk = Dims::from_elem(0, axes.len());
    let (mut fold, mut selected, mut inside) = (Fold::new(0), 1, 1);
    for (at, axis) in axes.iter().enumerate().rev() {
        let (size, extent) = (grid.chunk()[at], grid.dims()[at]);
        if axis.is_empty() || !axis.is_contiguous() || axis.last >= extent {
            return None;
        }
        chunk[at] = axis.first / size;
        let origin = chunk[at] * size;
        if axis.last - origin >= size {
            return None;
        }
        let count = axis.last - axis.first + 1;
        if !fold.add(size, axis.first - origin, count, selected) {
            return None;
        }
        selected *= count;
        inside *= size.min(extent - origin);
    }
    Some((chunk, fold.finish(inside)))
}
