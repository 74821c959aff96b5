//! The cells of a set that a selection selects, at the cost of the smaller of the two.
//!
//! A selection may have as many runs as a chunk has rows, 2^32 and more, where the chunk has a few
//! defined cells. Then the cells are tested one by one, and the rows of the selection are never
//! listed.

use super::CellSet;
use super::builder::Builder;
use crate::selection::axis::Axis;
use crate::selection::{Axes, Kind};
use crate::{Selection, SpaceError};

/// A selection of at most this many runs is small, whatever the set.
const FEW: u64 = 1024;

impl CellSet {
    /// The cells of the set that `selection` selects in a chunk of shape `dims`, which has as many cells.
    ///
    /// Cost: the runs of the set or those of the selection, whichever are fewer, and the result
    /// (for points: n log n of these).
    ///
    /// ```
    /// use pumice_space::{CellSet, Selection};
    ///
    /// let dims = [1 << 40, 3];
    /// let set = CellSet::from_sorted_cells(3 << 40, [1, 3 << 30, (3 << 30) + 2])?;
    /// let columns = Selection::block(&[0, 1], &[1 << 40, 2])?;
    /// let found = CellSet::from_sorted_cells(3 << 40, [1, (3 << 30) + 2])?;
    /// assert_eq!(set.among(&columns, &dims)?, found);
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn among(&self, selection: &Selection, dims: &[u64]) -> Result<CellSet, SpaceError> {
        self.check_shape(dims)?;
        crate::extent::same_rank(dims.len(), selection.rank().unwrap_or(dims.len()))?;
        if self.is_empty() || selection.covers(dims) {
            return Ok(self.clone());
        }
        if self.is_full() {
            return Self::from_selection(selection, dims);
        }
        if !self.is_less_than(selection, dims) {
            return Ok(self.intersection(&Self::from_selection(selection, dims)?));
        }
        self.looked_at(selection, dims)
    }

    /// Selects by testing the runs of the set.
    fn looked_at(&self, selection: &Selection, dims: &[u64]) -> Result<CellSet, SpaceError> {
        match &selection.0 {
            Kind::Product(axes) => Ok(self.among_axes(axes, dims)),
            _ => Self::from_selection(&selection.and(&self.to_selection(dims)?, dims)?, dims),
        }
    }

    /// Whether a selection has so many runs in a chunk of shape `dims` that testing the cells of
    /// the set is less work. Never true for points, which are listed anyway.
    pub fn is_less_than(&self, selection: &Selection, dims: &[u64]) -> bool {
        // About the number of cells or runs, whatever the form, as often as it pays.
        let limit = FEW.max(self.heap_bytes() as u64);
        selection.as_points().is_none() && selection.has_more_runs(dims, limit)
    }

    /// [`looked_at`](Self::looked_at) for a product of axes.
    fn among_axes(&self, axes: &[Axis], dims: &[u64]) -> CellSet {
        let mut found = Builder::new(self.cells);
        self.for_each_box(dims, |ranges, _| {
            let cut = axes.iter().zip(ranges).map(|(axis, &(low, high))| axis.cut(low, high));
            let cut: Axes = cut.collect();
            if cut.iter().any(Axis::is_empty) {
                return;
            }
            // Boxes ascend, and each is all that lies between its ends.
            Selection(Kind::Product(cut)).runs(dims).for_each(|run| found.add(run));
        });
        found.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Shape, cells of the set, and start, stride, count and block of hyperslabs along each axis.
    type Case = (Vec<u64>, Vec<u64>, Vec<Vec<(u64, u64, u64, u64)>>);

    fn case() -> impl Strategy<Value = Case> {
        prop::collection::vec(1u64..9, 1..=4).prop_flat_map(|dims| {
            let cells: u64 = dims.iter().product();
            let axis = (0u64..8, 1u64..5, 1u64..8, 1u64..5);
            let slab = prop::collection::vec(axis, dims.len());
            let set = prop_oneof![
                prop::collection::vec(0..cells, 0..12),
                prop::collection::vec(0..cells, 0..=cells as usize),
                (0..cells, 0..=cells).prop_map(move |(start, end)| (start..end).collect()),
            ];
            (Just(dims), set, prop::collection::vec(slab, 1..4))
        })
    }

    fn slab(axes: &[(u64, u64, u64, u64)]) -> Selection {
        let part = |pick: fn(&(u64, u64, u64, u64)) -> u64| -> Vec<u64> {
            axes.iter().map(pick).collect()
        };
        let strides = part(|axis| axis.1.max(axis.3));
        Selection::hyperslab(&part(|a| a.0), &strides, &part(|a| a.2), &part(|a| a.3)).unwrap()
    }

    proptest! {
        #[test]
        fn cells_that_are_looked_at_are_those_of_the_selection((dims, list, slabs) in case()) {
            let cells = dims.iter().product();
            let set = CellSet::from_unsorted_cells(cells, list).unwrap();
            let mut union = Selection::none();
            for axes in &slabs {
                let one = slab(axes);
                let expected = set.intersection(&CellSet::from_selection(&one, &dims).unwrap());
                prop_assert_eq!(set.looked_at(&one, &dims).unwrap(), expected.clone());
                prop_assert_eq!(set.among(&one, &dims).unwrap(), expected);
                prop_assert!(one.has_more_runs(&dims, 0) == (one.runs(&dims).count() > 0));
                union = union.or(&one, &dims).unwrap();
            }
            for other in [union.clone(), Selection::all().not_b(&union, &dims).unwrap()] {
                let expected = set.intersection(&CellSet::from_selection(&other, &dims).unwrap());
                prop_assert_eq!(set.looked_at(&other, &dims).unwrap(), expected.clone());
                prop_assert_eq!(set.among(&other, &dims).unwrap(), expected);
                let runs = other.runs(&dims).count() as u64;
                let product = matches!(other.0, Kind::Product(_));
                prop_assert!(!other.has_more_runs(&dims, runs) || product);
                prop_assert!(runs == 0 || other.has_more_runs(&dims, runs - 1));
            }
        }
    }

    #[test]
    fn rows_without_end_are_not_gone_through() {
        let rows = 1 << 60;
        let dims = [rows, 5];
        let list = [0, 3, 5, 6, 7, 8, 9, 10 * rows / 4, 10 * rows / 4 + 4];
        let set = CellSet::from_sorted_cells(5 * rows, list).unwrap();
        let columns = Selection::block(&[0, 1], &[rows - 1, 3]).unwrap();
        let strided = Selection::hyperslab(&[1, 0], &[2, 2], &[rows / 2, 2], &[1, 1]).unwrap();
        let edge = Selection::all().not_b(&columns, &dims).unwrap();
        let found = |selection: &Selection| -> Vec<u64> {
            let found = set.among(selection, &dims).unwrap();
            found.runs().flat_map(|run| run.start..run.end()).collect()
        };
        assert_eq!(found(&columns), [3, 6, 7, 8]);
        assert_eq!(found(&strided), [5, 7]);
        assert_eq!(found(&edge), [0, 5, 9, 10 * rows / 4, 10 * rows / 4 + 4]);
    }
}
