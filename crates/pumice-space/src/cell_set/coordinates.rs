//! Cells of a chunk as coordinates and as selections, run by run.

use super::CellSet;
use crate::extent::product;
use crate::selection::build::TreeBuilder;
use crate::{CoordinateWalker, Dims, Selection, SpaceError};
use smallvec::SmallVec;

/// First and last coordinate of a box, dimension by dimension.
pub(crate) type Ranges = SmallVec<[(u64, u64); 4]>;

impl CellSet {
    /// The cells of a chunk of shape `dims` that `selection` selects, without cells outside.
    ///
    /// Cost: the runs of the selection (for points: n log n).
    pub fn from_selection(selection: &Selection, dims: &[u64]) -> Result<Self, SpaceError> {
        let cells = product(dims).ok_or(SpaceError::Overflow("number of cells of a chunk"))?;
        crate::extent::same_rank(dims.len(), selection.rank().unwrap_or(dims.len()))?;
        if selection.is_all() {
            return Ok(Self::full(cells));
        }
        if selection.as_points().is_some() {
            let mut collector = Self::collect_runs(cells, selection.count(dims));
            selection.runs(dims).for_each(|run| collector.add(run));
            return Ok(collector.finish());
        }
        Self::from_runs(cells, selection.runs(dims))
    }

    /// The set as a selection of a chunk of shape `dims`, which must have as many cells.
    ///
    /// ```
    /// use pumice_space::{CellSet, Selection};
    ///
    /// let block = Selection::block(&[1, 2], &[3, 2])?;
    /// let set = CellSet::from_selection(&block, &[5, 6])?;
    /// assert!(set.to_selection(&[5, 6])?.as_block(&[5, 6]).is_some());
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn to_selection(&self, dims: &[u64]) -> Result<Selection, SpaceError> {
        self.check_shape(dims)?;
        if self.is_empty() {
            return Ok(Selection::none());
        }
        if self.is_full() {
            return Ok(Selection::all());
        }
        let mut builder = TreeBuilder::new(dims.len());
        self.for_each_box(dims, |ranges, _| {
            let ascends = builder.push(ranges);
            debug_assert!(ascends);
        });
        Ok(Selection::from_tree(dims.len(), builder.finish()))
    }

    pub(crate) fn check_shape(&self, dims: &[u64]) -> Result<(), SpaceError> {
        crate::extent::check_rank(dims.len())?;
        if product(dims) != Some(self.cells) {
            let reason = "the shape has another number of cells than the set";
            return Err(SpaceError::InvalidShape { axis: 0, reason });
        }
        Ok(())
    }

    /// Visits the set row by row: the coordinates of a first cell, and how many cells follow it
    /// along the last dimension, itself included.
    ///
    /// ```
    /// use pumice_space::CellSet;
    ///
    /// let mut rows = Vec::new();
    /// let set = CellSet::from_sorted_cells(20, [3, 4, 5, 6])?;
    /// set.for_each_row(&[4, 5], |at, len| rows.push((at.to_vec(), len)));
    /// assert_eq!(rows, [(vec![0, 3], 2), (vec![1, 0], 2)]);
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn for_each_row(&self, dims: &[u64], mut visit: impl FnMut(&[u64], u64)) {
        let mut walker = CoordinateWalker::new(dims);
        self.for_each_run(|run| walker.for_each_row(run, &mut visit));
    }

    /// Appends the coordinates of every cell, `dims.len()` numbers each, moved by `origin`.
    ///
    /// ```
    /// use pumice_space::CellSet;
    ///
    /// let mut coords = Vec::new();
    /// CellSet::from_sorted_cells(20, [3, 11])?.append_coordinates(&[4, 5], &[8, 0], &mut coords);
    /// assert_eq!(coords, [8, 3, 10, 1]);
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn append_coordinates(&self, dims: &[u64], origin: &[u64], out: &mut Vec<u64>) {
        let room = self.len().saturating_mul(dims.len() as u64);
        out.reserve(usize::try_from(room).unwrap_or(0));
        self.for_each_row(dims, |at, len| append_row(at, origin, len, out));
    }

    /// Visits boxes that together are the set, in the order of a span tree: each run consists of
    /// the rest of its first row (plane, ...), of whole rows, and of the beginning of its last row.
    /// Rank is at least one.
    ///
    /// The flag tells that only the last dimension differs from the box before.
    pub(crate) fn for_each_box(&self, dims: &[u64], mut visit: impl FnMut(&[(u64, u64)], bool)) {
        let mut first = CoordinateWalker::new(dims);
        let mut last = CoordinateWalker::new(dims);
        let width = dims.last().copied().unwrap_or(1);
        let mut ranges: Ranges = dims.iter().map(|_| (0, 0)).collect();
        // The linear range of the row that `ranges` stands in.
        let (mut row, mut row_end) = (0, 0);
        self.for_each_run(|run| {
            let again = run.end() <= row_end;
            if !again {
                let low = first.seek(run.start);
                row = run.start - low.last().copied().unwrap_or(0);
                if run.end() > row + width {
                    row_end = 0;
                    let high = last.seek(run.start + (run.len - 1));
                    return split_run(dims, low, high, &mut visit);
                }
                row_end = row + width;
                ranges.iter_mut().zip(low).for_each(|(range, &at)| *range = (at, at));
            }
            if let Some(range) = ranges.last_mut() {
                *range = (run.start - row, run.end() - 1 - row);
            }
            visit(&ranges, again);
        });
    }
}

fn append_row(at: &[u64], origin: &[u64], len: u64, out: &mut Vec<u64>) {
    match (at, origin) {
        ([x], [from]) => out.extend((0..len).map(|step| from + x + step)),
        ([y, x], [top, left]) => {
            let (y, x) = (top + y, left + x);
            (x..x + len).for_each(|x| out.extend_from_slice(&[y, x]));
        }
        _ => {
            let moved = at.iter().zip(origin).map(|(at, from)| at + from);
            let mut cell: Dims = moved.collect();
            for _ in 0..len {
                out.extend_from_slice(&cell);
                if let Some(x) = cell.last_mut() {
                    *x += 1;
                }
            }
        }
    }
}

/// Splits the cells from `low` to `high` (row-major, both included, not in one row) into boxes.
fn split_run(dims: &[u64], low: &[u64], high: &[u64], visit: &mut impl FnMut(&[(u64, u64)], bool)) {
    let rank = dims.len();
    let mut ranges: Ranges = dims.iter().map(|&size| (0, size - 1)).collect();
    let fork = low.iter().zip(high).take_while(|(a, b)| a == b).count().min(rank - 1);
    let mut emit = |coord: &[u64], axis: usize, from: u64, to: u64| {
        if from > to {
            return;
        }
        for (range, &at) in ranges.iter_mut().zip(&coord[..axis]) {
            *range = (at, at);
        }
        ranges[axis] = (from, to);
        for (range, &size) in ranges.iter_mut().zip(dims).skip(axis + 1) {
            *range = (0, size - 1);
        }
        visit(&ranges, false);
    };
    // From the fastest dimension up to the fork: the rest of the row, of the plane, and so on.
    let mut begun = 0;
    for axis in (fork + 1..rank).rev() {
        let from = low[axis] + begun;
        begun = u64::from(from > 0);
        if begun > 0 {
            emit(low, axis, from, dims[axis] - 1);
        }
    }
    // Dimensions after `full` end at their last coordinate: they belong to the whole part.
    let trailing = high.iter().zip(dims).rev().take_while(|(at, size)| **at == **size - 1).count();
    let full = (rank - trailing).saturating_sub(1).max(fork);
    let ended = u64::from(full > fork);
    if let Some(to) = high[fork].checked_sub(ended) {
        emit(low, fork, low[fork] + begun, to);
    }
    for axis in fork + 1..=full {
        let part = u64::from(axis < full);
        if let Some(to) = high[axis].checked_sub(part) {
            emit(high, axis, 0, to);
        }
    }
}
