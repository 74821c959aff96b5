//! The defined cells of one chunk.
use crate::{Run, Segment, Selection, SpaceError};
use std::marker::PhantomData;

/// A set of cells of one chunk, as row-major runs or a bitmap, whichever is smaller. The n-th cell
/// of the set owns the n-th stored value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellSet(());

/// A piece of a request that is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// First cell.
    pub cell: u64,
    /// Position of its value.
    pub position: u64,
    /// How many.
    pub len: u64,
}

/// A piece of a transfer that is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// First cell.
    pub cell: u64,
    /// Position of its value.
    pub position: u64,
    /// First element in memory.
    pub memory: u64,
    /// How many.
    pub len: u64,
}

/// A piece of the union of two sets: at least one of `a` and `b` is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergePiece {
    /// First cell.
    pub cell: u64,
    /// Position of its value in the first set, if there.
    pub a: Option<u64>,
    /// Position of its value in the second set, if there.
    pub b: Option<u64>,
    /// How many.
    pub len: u64,
}

#[allow(unused_variables)]
impl CellSet {
    /// No cell of `cells`.
    pub fn empty(cells: u64) -> Self {
        todo!()
    }
    /// Every cell of `cells`.
    pub fn full(cells: u64) -> Self {
        todo!()
    }
    /// From ascending disjoint runs.
    pub fn from_runs(cells: u64, runs: impl IntoIterator<Item = Run>) -> Result<Self, SpaceError> {
        todo!()
    }
    /// From strictly ascending cells.
    pub fn from_sorted_cells(
        cells: u64,
        sorted: impl IntoIterator<Item = u64>,
    ) -> Result<Self, SpaceError> {
        todo!()
    }
    /// From cells in any order, repetitions allowed.
    pub fn from_unsorted_cells(cells: u64, list: Vec<u64>) -> Result<Self, SpaceError> {
        todo!()
    }
    /// The cells of a chunk of shape `dims` that `selection` selects.
    pub fn from_selection(selection: &Selection, dims: &[u64]) -> Result<Self, SpaceError> {
        todo!()
    }
    /// The same cells as a selection of a chunk of shape `dims`.
    pub fn to_selection(&self, dims: &[u64]) -> Result<Selection, SpaceError> {
        todo!()
    }
    /// Cells of the chunk, in the set or not.
    pub fn cells(&self) -> u64 {
        todo!()
    }
    /// Cells in the set.
    pub fn len(&self) -> u64 {
        todo!()
    }
    /// Whether the set has no cell.
    pub fn is_empty(&self) -> bool {
        todo!()
    }
    /// Whether the set has every cell.
    pub fn is_full(&self) -> bool {
        todo!()
    }
    /// Number of maximal runs (counted word by word in a bitmap).
    pub fn run_count(&self) -> u64 {
        todo!()
    }
    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        todo!()
    }
    /// Whether `cell` is in the set.
    pub fn contains(&self, cell: u64) -> bool {
        todo!()
    }
    /// How many cells of the set come before `cell`.
    pub fn rank(&self, cell: u64) -> u64 {
        todo!()
    }
    /// The position of the value of `cell`, if it is in the set.
    pub fn position(&self, cell: u64) -> Option<u64> {
        todo!()
    }
    /// The cell that owns the value at `position`.
    pub fn select(&self, position: u64) -> Option<u64> {
        todo!()
    }
    /// The maximal runs, ascending.
    pub fn runs(&self) -> CellRuns<'_> {
        todo!()
    }
    /// Visits the maximal runs, ascending; faster than [`CellSet::runs`] on bitmaps.
    pub fn for_each_run(&self, visit: impl FnMut(Run)) {
        todo!()
    }
    /// Cells in either set.
    pub fn union(&self, other: &CellSet) -> CellSet {
        todo!()
    }
    /// Cells in both sets.
    pub fn intersection(&self, other: &CellSet) -> CellSet {
        todo!()
    }
    /// Cells of this set that are not in `other`.
    pub fn difference(&self, other: &CellSet) -> CellSet {
        todo!()
    }
    /// Cells of the chunk that are not in the set.
    pub fn complement(&self) -> CellSet {
        todo!()
    }
    /// The defined pieces of `request`, with the positions of their values.
    pub fn overlaps<I: Iterator<Item = Run>>(&self, request: I) -> Overlaps<'_, I> {
        todo!()
    }
    /// The defined pieces of a chunk's segments, with the positions of their values.
    pub fn placements<I: Iterator<Item = Segment>>(&self, segments: I) -> Placements<'_, I> {
        todo!()
    }
    /// A cursor that answers one request run at a time, fastest when they ascend.
    pub fn cursor(&self) -> Cursor<'_> {
        todo!()
    }
    /// Walks the union of two sets, piece by piece, with positions in both.
    pub fn merge<'a>(&'a self, other: &'a CellSet) -> Merge<'a> {
        todo!()
    }
    /// Appends the coordinates of every cell (`dims.len()` numbers each) plus `origin`.
    pub fn append_coordinates(&self, dims: &[u64], origin: &[u64], out: &mut Vec<u64>) {
        todo!()
    }
    /// Visits the set row by row: coordinates of the first cell, how many follow along the last
    /// dimension (the first included).
    pub fn for_each_row(&self, dims: &[u64], visit: impl FnMut(&[u64], u64)) {
        todo!()
    }
}

macro_rules! stub {
    ($(#[$doc:meta])* $name:ident $(<$g:ident>)?, $item:ty) => {
        $(#[$doc])*
        pub struct $name<'a $(, $g)?>(PhantomData<(&'a () $(, $g)?)>);
        impl<$($g)?> Iterator for $name<'_ $(, $g)?> {
            type Item = $item;
            fn next(&mut self) -> Option<$item> {
                todo!()
            }
        }
    };
}
stub!(/** Iterates over the runs of a [`CellSet`]. */ CellRuns, Run);
stub!(/** Made by [`CellSet::overlaps`]. */ Overlaps<I>, Overlap);
stub!(/** Made by [`CellSet::placements`]. */ Placements<I>, Placement);
stub!(/** Made by [`CellSet::merge`]. */ Merge, MergePiece);

/// Made by [`CellSet::cursor`].
pub struct Cursor<'a>(PhantomData<&'a ()>);
impl Cursor<'_> {
    /// Visits the defined pieces of `request`.
    pub fn for_each(&mut self, _request: Run, _visit: impl FnMut(Overlap)) {
        todo!()
    }
}
