//! Some cells of an array.
use crate::{Dims, Run, SpaceError};
use std::marker::PhantomData;

/// One dimension of a regular hyperslab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HyperslabAxis {
    /// First cell.
    pub start: u64,
    /// Distance between the starts of blocks.
    pub stride: u64,
    /// Blocks; [`UNLIMITED`](crate::UNLIMITED) for as many as fit.
    pub count: u64,
    /// Cells of a block; [`UNLIMITED`](crate::UNLIMITED) for all that follow.
    pub block: u64,
}

/// A regular hyperslab, dimension by dimension.
pub type Hyperslab = smallvec::SmallVec<[HyperslabAxis; 4]>;

/// Some cells of an array: all, none, points, a hyperslab, or any union of them. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Selection(());

impl Selection {
    /// Every cell, whatever the extent.
    pub fn all() -> Self {
        todo!()
    }
    /// No cell.
    pub fn none() -> Self {
        todo!()
    }
    /// Points in the given order; `coords` holds `rank` numbers a point. Repetitions are kept.
    pub fn points(_rank: usize, _coords: Vec<u64>) -> Result<Self, SpaceError> {
        todo!()
    }
    /// One point.
    pub fn point(_coord: &[u64]) -> Result<Self, SpaceError> {
        todo!()
    }
    /// A regular hyperslab.
    pub fn hyperslab(
        _start: &[u64],
        _stride: &[u64],
        _count: &[u64],
        _block: &[u64],
    ) -> Result<Self, SpaceError> {
        todo!()
    }
    /// A box of `count` cells along each dimension.
    pub fn block(_start: &[u64], _count: &[u64]) -> Result<Self, SpaceError> {
        todo!()
    }
    /// The union of many selections, n log n.
    pub fn union_of(
        _rank: usize,
        _selections: impl IntoIterator<Item = Selection>,
        _dims: &[u64],
    ) -> Result<Self, SpaceError> {
        todo!()
    }
    /// Its rank; `None` for all and none, which fit any.
    pub fn rank(&self) -> Option<usize> {
        todo!()
    }
    /// Whether it was made as "all" (whatever the extent).
    pub fn is_all(&self) -> bool {
        todo!()
    }
    /// Whether no cell is selected.
    pub fn is_none(&self) -> bool {
        todo!()
    }
    /// Whether every cell of an array of shape `dims` is selected.
    pub fn covers(&self, _dims: &[u64]) -> bool {
        todo!()
    }
    /// Cells in either.
    pub fn or(&self, _other: &Selection, _dims: &[u64]) -> Result<Selection, SpaceError> {
        todo!()
    }
    /// Cells in both.
    pub fn and(&self, _other: &Selection, _dims: &[u64]) -> Result<Selection, SpaceError> {
        todo!()
    }
    /// Cells in exactly one.
    pub fn xor(&self, _other: &Selection, _dims: &[u64]) -> Result<Selection, SpaceError> {
        todo!()
    }
    /// Cells in `self` that are not in `other`.
    pub fn not_b(&self, _other: &Selection, _dims: &[u64]) -> Result<Selection, SpaceError> {
        todo!()
    }
    /// Cells in `other` that are not in `self`.
    pub fn not_a(&self, _other: &Selection, _dims: &[u64]) -> Result<Selection, SpaceError> {
        todo!()
    }
    /// Number of selected cells (points count each time they occur), saturating.
    pub fn count(&self, _dims: &[u64]) -> u64 {
        todo!()
    }
    /// The smallest box around the selection, both corners inclusive; `None` if empty.
    pub fn bounds(&self, _dims: &[u64]) -> Option<(Dims, Dims)> {
        todo!()
    }
    /// Errors unless every selected cell lies inside `dims`.
    pub fn check(&self, _dims: &[u64]) -> Result<(), SpaceError> {
        todo!()
    }
    /// Row-major runs, ascending; points in the caller's order. Cells outside `dims` are left out.
    pub fn runs(&self, _dims: &[u64]) -> Runs<'_> {
        todo!()
    }
    /// Whether `coord` is selected.
    pub fn contains(&self, _coord: &[u64]) -> bool {
        todo!()
    }
    /// Moved by `offset`; an error if a coordinate leaves 0..2^64.
    pub fn translate(&self, _offset: &[i64]) -> Result<Selection, SpaceError> {
        todo!()
    }
    /// Without what lies outside `dims`.
    pub fn clip(&self, _dims: &[u64]) -> Result<Selection, SpaceError> {
        todo!()
    }
    /// Start and size, if the selection is one box.
    pub fn as_block(&self, _dims: &[u64]) -> Option<(Dims, Dims)> {
        todo!()
    }
    /// Start, stride, count and block of each dimension, if it is a regular hyperslab.
    pub fn regular(&self) -> Option<Hyperslab> {
        todo!()
    }
    /// Rank and flat coordinates, if it is a list of points.
    pub fn as_points(&self) -> Option<(usize, &[u64])> {
        todo!()
    }
    /// Disjoint blocks (first and last corner, inclusive) in the order that HDF5 lists them.
    pub fn for_each_block(&self, _dims: &[u64], _visit: impl FnMut(&[u64], &[u64])) {
        todo!()
    }
    /// The shape of a buffer that takes the selection: cells per dimension for boxes and
    /// hyperslabs, else `[count]`.
    pub fn shape(&self, _dims: &[u64]) -> Dims {
        todo!()
    }
    /// Whether both select the same cells of `dims`.
    pub fn same_cells(&self, _other: &Selection, _dims: &[u64]) -> Result<bool, SpaceError> {
        todo!()
    }
}

/// Iterates over the runs of a [`Selection`].
pub struct Runs<'a>(PhantomData<&'a ()>);
impl Iterator for Runs<'_> {
    type Item = Run;
    fn next(&mut self) -> Option<Run> {
        todo!()
    }
}
