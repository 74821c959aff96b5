//! A selection of cells of an array, and questions about it.
//!
//! | kind | kept as | cost of a question |
//! |---|---|---|
//! | all, none | nothing; they fit any rank | constant |
//! | points | coordinates in the caller's order, repetitions included | points |
//! | hyperslab, box | five numbers per dimension ([`axis`]) | dimensions |
//! | anything else | a tree of spans ([`spans`]) | nodes |
//!
//! Set operations treat points as a set; their order and repetitions matter only to transfers.
//! Coordinates lie below 2^64 - 1. A selection does not know its array: it may reach beyond it until
//! [`Selection::check`] or [`Selection::clip`].

pub(crate) mod algebra;
pub(crate) mod axis;
pub(crate) mod build;
mod cut;
pub(crate) mod odometer;
mod operate;
mod runs;
pub(crate) mod spans;

pub use runs::Runs;

use crate::extent::{check_rank, same_rank};
use crate::{Dims, SpaceError, UNLIMITED};
use axis::Axis;
use smallvec::SmallVec;
use spans::Tree;
use std::sync::Arc;

/// One dimension of a regular hyperslab.
///
/// ```
/// use pumice_space::Selection;
///
/// let slab = Selection::hyperslab(&[1], &[4], &[3], &[2])?;
/// let axis = slab.regular().unwrap()[0];
/// assert_eq!((axis.start, axis.stride, axis.count, axis.block), (1, 4, 3, 2));
/// # Ok::<(), pumice_space::SpaceError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HyperslabAxis {
    /// First cell.
    pub start: u64,
    /// Distance between the starts of blocks.
    pub stride: u64,
    /// Blocks; [`UNLIMITED`] for as many as fit.
    pub count: u64,
    /// Cells of a block; [`UNLIMITED`] for all that follow.
    pub block: u64,
}

/// A regular hyperslab, dimension by dimension.
pub type Hyperslab = SmallVec<[HyperslabAxis; 4]>;

pub(crate) type Axes = SmallVec<[Axis; 4]>;

/// Some cells of an array: all, none, points, a hyperslab, or any union of them. Cheap to clone.
///
/// ```
/// use pumice_space::{Run, Selection};
///
/// let dims = [4, 6];
/// let rows = Selection::block(&[1, 0], &[2, 6])?;
/// let columns = Selection::hyperslab(&[0, 1], &[1, 3], &[4, 2], &[1, 1])?;
/// let both = rows.and(&columns, &dims)?;
/// assert_eq!(both.count(&dims), 4);
///
/// let either = rows.or(&columns, &dims)?;
/// assert_eq!(either.count(&dims), 16);
/// assert_eq!(either.runs(&dims).nth(2), Some(Run { start: 6, len: 12 }));
/// # Ok::<(), pumice_space::SpaceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Selection(pub(crate) Kind);

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    All,
    None,
    Points(Arc<Points>),
    /// A product of axes; empty if one of them is. Without axes: the one cell of a scalar.
    Product(Axes),
    /// Rank is at least one.
    Tree {
        rank: usize,
        tree: Arc<Tree>,
    },
}

/// Points in the caller's order; rank is at least one.
#[derive(Debug)]
pub(crate) struct Points {
    pub(crate) rank: usize,
    pub(crate) coords: Vec<u64>,
}

impl Selection {
    /// Whether it is known to be equal without looking at cells: clones are.
    pub fn is(&self, other: &Selection) -> bool {
        match (&self.0, &other.0) {
            (Kind::All, Kind::All) | (Kind::None, Kind::None) => true,
            (Kind::Points(one), Kind::Points(other)) => Arc::ptr_eq(one, other),
            (Kind::Product(one), Kind::Product(other)) => one == other,
            (Kind::Tree { tree: one, .. }, Kind::Tree { tree: other, .. }) => {
                Arc::ptr_eq(one, other)
            }
            _ => false,
        }
    }

    /// Every cell, whatever the extent.
    pub fn all() -> Self {
        Self(Kind::All)
    }

    /// No cell.
    pub fn none() -> Self {
        Self(Kind::None)
    }

    /// Points in the given order; `coords` holds `rank` numbers a point. Repetitions are kept.
    ///
    /// ```
    /// use pumice_space::Selection;
    ///
    /// let points = Selection::points(2, vec![3, 0, 1, 5, 3, 0])?;
    /// assert_eq!(points.count(&[4, 6]), 3);
    /// assert!(Selection::points(2, vec![1]).is_err());
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn points(rank: usize, coords: Vec<u64>) -> Result<Self, SpaceError> {
        check_rank(rank)?;
        if coords.is_empty() {
            return Ok(Self::none());
        }
        if rank == 0 || !coords.len().is_multiple_of(rank) {
            return Err(SpaceError::RankMismatch { expected: rank, found: coords.len() });
        }
        if coords.contains(&UNLIMITED) {
            return Err(SpaceError::Overflow("coordinate of a point"));
        }
        Ok(Self(Kind::Points(Arc::new(Points { rank, coords }))))
    }

    /// One point; without coordinates, the cell of a scalar.
    pub fn point(coord: &[u64]) -> Result<Self, SpaceError> {
        if coord.is_empty() {
            return Ok(Self(Kind::Product(Axes::new())));
        }
        Self::points(coord.len(), coord.to_vec())
    }

    /// A regular hyperslab: along each dimension `count` blocks of `block` cells, `stride` apart.
    ///
    /// Blocks must not overlap. Count or block may be [`UNLIMITED`]: as far as the extent goes.
    ///
    /// ```
    /// use pumice_space::{Selection, UNLIMITED};
    ///
    /// let odd = Selection::hyperslab(&[1], &[2], &[UNLIMITED], &[1])?;
    /// assert_eq!(odd.count(&[10]), 5);
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn hyperslab(
        start: &[u64],
        stride: &[u64],
        count: &[u64],
        block: &[u64],
    ) -> Result<Self, SpaceError> {
        check_rank(start.len())?;
        for list in [stride, count, block] {
            same_rank(start.len(), list.len())?;
        }
        let axes = (0..start.len()).map(|axis| {
            let (start, stride) = (start[axis], stride[axis]);
            let (count, block) = (count[axis], block[axis]);
            Axis::new(HyperslabAxis { start, stride, count, block }, axis)
        });
        Ok(Self(Kind::Product(axes.collect::<Result<_, _>>()?)))
    }

    /// A box of `count` cells along each dimension.
    ///
    /// ```
    /// use pumice_space::Selection;
    ///
    /// let block = Selection::block(&[2, 3], &[4, 5])?;
    /// assert!(block.contains(&[5, 7]) && !block.contains(&[6, 7]));
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn block(start: &[u64], count: &[u64]) -> Result<Self, SpaceError> {
        check_rank(start.len())?;
        same_rank(start.len(), count.len())?;
        let mut axes = Axes::from_elem(Axis::EMPTY, start.len());
        for (at, axis) in axes.iter_mut().enumerate() {
            let (start, block) = (start[at], count[at]);
            *axis = Axis::new(HyperslabAxis { start, stride: 1, count: 1, block }, at)?;
        }
        Ok(Self(Kind::Product(axes)))
    }

    /// The cells whose index along each axis is in one of its spans: first and last index, which ascend and do not
    /// overlap.
    ///
    /// ```
    /// use pumice_space::Selection;
    ///
    /// let some = Selection::product(&[vec![(0, 0), (5, 6)], vec![(2, 3)]])?;
    /// assert_eq!(some.count(&[9, 9]), 6);
    /// assert!(some.contains(&[6, 3]) && !some.contains(&[4, 3]));
    /// assert!(Selection::product(&[vec![(5, 6), (0, 0)]]).is_err());
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn product(axes: &[Vec<(u64, u64)>]) -> Result<Self, SpaceError> {
        check_rank(axes.len())?;
        for (axis, spans) in axes.iter().enumerate() {
            let ends = spans.iter().any(|&(_, last)| last >= UNLIMITED - 1);
            let ascend = spans.iter().all(|(first, last)| first <= last)
                && spans.is_sorted_by(|(_, last), (next, _)| last < next);
            if ends || !ascend {
                let reason = if ends { "end beyond 64 bits" } else { "indices that do not ascend" };
                return Err(SpaceError::InvalidHyperslab { axis, reason });
            }
        }
        if axes.is_empty() || axes.iter().any(Vec::is_empty) {
            return Ok(if axes.is_empty() { Self::all() } else { Self::none() });
        }
        let single = |spans: &Vec<(u64, u64)>| match spans.as_slice() {
            &[(first, last)] => Some(Axis::span(first, last)),
            _ => None,
        };
        if let Some(axes) = axes.iter().map(single).collect::<Option<Axes>>() {
            return Ok(Self(Kind::Product(axes)));
        }
        match build::tree_of_spans(axes)? {
            Some(tree) => Ok(Self(Kind::Tree { rank: axes.len(), tree })),
            None => Ok(Self::none()),
        }
    }

    /// Its rank; `None` for all and none, which fit any.
    pub fn rank(&self) -> Option<usize> {
        match &self.0 {
            Kind::All | Kind::None => None,
            Kind::Points(points) => Some(points.rank),
            Kind::Product(axes) => Some(axes.len()),
            Kind::Tree { rank, .. } => Some(*rank),
        }
    }

    /// Whether it was made as "all", whatever the extent.
    pub fn is_all(&self) -> bool {
        matches!(self.0, Kind::All)
    }

    /// Whether no cell is selected, whatever the extent.
    pub fn is_none(&self) -> bool {
        match &self.0 {
            Kind::None => true,
            Kind::Product(axes) => axes.iter().any(Axis::is_empty),
            _ => false,
        }
    }

    /// Whether every cell of an array of shape `dims` is selected.
    ///
    /// ```
    /// use pumice_space::Selection;
    ///
    /// assert!(Selection::block(&[0], &[5])?.covers(&[4]));
    /// assert!(!Selection::block(&[1], &[5])?.covers(&[4]));
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn covers(&self, dims: &[u64]) -> bool {
        if dims.contains(&0) || self.is_all() {
            return true;
        }
        if self.rank().is_some_and(|rank| rank != dims.len()) {
            return false;
        }
        match &self.0 {
            Kind::All => true,
            Kind::None => false,
            Kind::Product(axes) => axes.iter().zip(dims).all(|(axis, &size)| {
                axis.is_contiguous() && axis.first == 0 && size - 1 <= axis.last
            }),
            Kind::Tree { tree, .. } => tree.covers(dims),
            Kind::Points(points) => build::tree_of_points(points.rank, &points.coords)
                .is_some_and(|tree| tree.covers(dims)),
        }
    }

    /// Number of selected cells, saturating. Points count each time they occur; cells outside
    /// `dims` count too, except in unlimited hyperslabs.
    pub fn count(&self, dims: &[u64]) -> u64 {
        match &self.0 {
            Kind::All => saturating_product(dims.iter().copied()),
            Kind::None => 0,
            Kind::Points(points) => (points.coords.len() / points.rank) as u64,
            Kind::Product(axes) => saturating_product(bounded(axes, dims).map(|axis| axis.count())),
            Kind::Tree { tree, .. } => tree.cells,
        }
    }

    /// The smallest box around the selection, both corners inclusive; `None` if it is empty.
    ///
    /// ```
    /// use pumice_space::Selection;
    ///
    /// let points = Selection::points(2, vec![3, 1, 0, 5])?;
    /// let (low, high) = points.bounds(&[9, 9]).unwrap();
    /// assert_eq!((low.as_slice(), high.as_slice()), ([0, 1].as_slice(), [3, 5].as_slice()));
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn bounds(&self, dims: &[u64]) -> Option<(Dims, Dims)> {
        match &self.0 {
            Kind::None => None,
            Kind::All => {
                let last: Option<Dims> = dims.iter().map(|size| size.checked_sub(1)).collect();
                last.map(|last| (smallvec::smallvec![0; dims.len()], last))
            }
            Kind::Points(points) => {
                let mut corners: Option<(Dims, Dims)> = None;
                for point in points.coords.chunks_exact(points.rank) {
                    let (low, high) = corners.get_or_insert_with(|| (point.into(), point.into()));
                    low.iter_mut().zip(point).for_each(|(low, &at)| *low = at.min(*low));
                    high.iter_mut().zip(point).for_each(|(high, &at)| *high = at.max(*high));
                }
                corners
            }
            Kind::Product(axes) => {
                let axes: Axes = bounded(axes, dims).collect();
                let some = !axes.iter().any(Axis::is_empty);
                let ends = axes.iter().map(|axis| (axis.first, axis.last));
                some.then(|| ends.unzip())
            }
            Kind::Tree { rank, tree } => Some(tree.bounds(*rank)),
        }
    }

    /// Refuses a selection of another rank, or with a cell outside `dims`.
    ///
    /// ```
    /// use pumice_space::Selection;
    ///
    /// assert!(Selection::block(&[0], &[5])?.check(&[5]).is_ok());
    /// assert!(Selection::block(&[0], &[5])?.check(&[4]).is_err());
    /// assert!(Selection::block(&[0], &[5])?.check(&[5, 5]).is_err());
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn check(&self, dims: &[u64]) -> Result<(), SpaceError> {
        check_rank(dims.len())?;
        same_rank(dims.len(), self.rank().unwrap_or(dims.len()))?;
        // Most requests are of these kinds, and each is checked.
        match &self.0 {
            Kind::All | Kind::None => return Ok(()),
            Kind::Product(axes)
                if bounded(axes, dims).zip(dims).all(|(axis, &n)| axis.last < n) =>
            {
                return Ok(());
            }
            _ => {}
        }
        let Some((_, high)) = self.bounds(dims) else { return Ok(()) };
        match high.iter().zip(dims).position(|(high, size)| high >= size) {
            None => Ok(()),
            Some(axis) => {
                Err(SpaceError::OutOfBounds { axis, coordinate: high[axis], size: dims[axis] })
            }
        }
    }

    /// The selected cells of an array of shape `dims` as row-major runs, ascending; points in the
    /// caller's order, neighbours joined.
    ///
    /// Cells outside `dims` are left out. An array of more than 2^64 cells has no linear positions,
    /// hence no runs.
    pub fn runs(&self, dims: &[u64]) -> Runs<'_> {
        Runs::new(self, dims)
    }

    /// Whether the cell at `coord` is selected.
    pub fn contains(&self, coord: &[u64]) -> bool {
        if self.rank().is_some_and(|rank| rank != coord.len()) {
            return false;
        }
        match &self.0 {
            Kind::All => true,
            Kind::None => false,
            Kind::Points(points) => {
                points.coords.chunks_exact(points.rank).any(|point| point == coord)
            }
            Kind::Product(axes) => axes.iter().zip(coord).all(|(axis, &at)| axis.contains(at)),
            Kind::Tree { tree, .. } => tree.contains(coord),
        }
    }

    /// Start and size, if the selection is one box.
    pub fn as_block(&self, dims: &[u64]) -> Option<(Dims, Dims)> {
        match &self.0 {
            Kind::All => Some((smallvec::smallvec![0; dims.len()], dims.into())),
            Kind::Product(axes) if !self.is_none() => {
                let axes: Axes = bounded(axes, dims).collect();
                let contiguous = axes.iter().all(|axis| axis.is_contiguous() && !axis.is_empty());
                let ends = axes.iter().map(|axis| (axis.first, axis.count()));
                contiguous.then(|| ends.unzip())
            }
            Kind::Points(points) if points.coords.len() == points.rank => {
                let start: Dims = points.coords.as_slice().into();
                Some((start, smallvec::smallvec![1; points.rank]))
            }
            _ => None,
        }
    }

    /// Start, stride, count and block of each dimension, if it is a regular hyperslab.
    ///
    /// Blocks that touch are given as one.
    pub fn regular(&self) -> Option<Hyperslab> {
        match &self.0 {
            Kind::Product(axes) => axes.iter().map(Axis::parameters).collect(),
            _ => None,
        }
    }

    /// Whether a dimension of it is unlimited.
    pub fn is_unlimited(&self) -> bool {
        matches!(&self.0, Kind::Product(axes) if axes.iter().any(Axis::is_unlimited))
    }

    /// Rank and flat coordinates, if it is a list of points.
    pub fn as_points(&self) -> Option<(usize, &[u64])> {
        match &self.0 {
            Kind::Points(points) => Some((points.rank, &points.coords)),
            _ => None,
        }
    }

    /// Visits disjoint blocks (first and last corner, inclusive) in the order in which HDF5 lists
    /// them; points one by one. There may be very many in a hyperslab.
    ///
    /// ```
    /// use pumice_space::Selection;
    ///
    /// let mut blocks = Vec::new();
    /// let slab = Selection::hyperslab(&[1, 0], &[3, 1], &[2, 1], &[2, 4])?;
    /// slab.for_each_block(&[9, 9], |low, high| blocks.push((low.to_vec(), high.to_vec())));
    /// assert_eq!(blocks, [(vec![1, 0], vec![2, 3]), (vec![4, 0], vec![5, 3])]);
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn for_each_block(&self, dims: &[u64], mut visit: impl FnMut(&[u64], &[u64])) {
        match &self.0 {
            Kind::None => {}
            Kind::All => {
                if let Some((low, high)) = self.bounds(dims) {
                    visit(&low, &high);
                }
            }
            Kind::Points(points) => {
                points.coords.chunks_exact(points.rank).for_each(|point| visit(point, point));
            }
            Kind::Product(axes) => {
                product_blocks(&bounded(axes, dims).collect::<Axes>(), &mut visit);
            }
            Kind::Tree { rank, tree } => tree.for_each_block(*rank, &mut visit),
        }
    }

    /// The shape of a buffer that takes the selection: cells per dimension for boxes and
    /// hyperslabs, else the count alone.
    ///
    /// ```
    /// use pumice_space::Selection;
    ///
    /// let slab = Selection::hyperslab(&[0, 1], &[2, 5], &[3, 2], &[1, 2])?;
    /// assert_eq!(slab.shape(&[9, 9]).as_slice(), [3, 4]);
    /// assert_eq!(Selection::points(2, vec![1, 2, 5, 6])?.shape(&[9, 9]).as_slice(), [2]);
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn shape(&self, dims: &[u64]) -> Dims {
        match &self.0 {
            Kind::All => dims.into(),
            Kind::Product(axes) => bounded(axes, dims).map(|axis| axis.count()).collect(),
            _ => smallvec::smallvec![self.count(dims)],
        }
    }
}

/// The axes with unlimited ones cut to `dims`.
fn bounded<'a>(axes: &'a [Axis], dims: &'a [u64]) -> impl Iterator<Item = Axis> + 'a {
    axes.iter().enumerate().map(|(at, axis)| {
        let size = dims.get(at).copied().unwrap_or(0);
        match (axis.is_unlimited(), size) {
            (true, 0) => Axis::EMPTY,
            (true, size) => axis.cut(0, size - 1),
            (false, _) => *axis,
        }
    })
}

fn saturating_product(sizes: impl Iterator<Item = u64>) -> u64 {
    let (mut cells, mut empty) = (1u64, false);
    for size in sizes {
        empty |= size == 0;
        cells = cells.saturating_mul(size);
    }
    if empty { 0 } else { cells }
}

fn product_blocks(axes: &[Axis], visit: &mut impl FnMut(&[u64], &[u64])) {
    fn walk(
        axes: &[Axis],
        depth: usize,
        low: &mut Dims,
        high: &mut Dims,
        visit: &mut impl FnMut(&[u64], &[u64]),
    ) {
        let Some(axis) = axes.get(depth) else { return visit(low, high) };
        for span in axis.spans() {
            (low[depth], high[depth]) = span;
            walk(axes, depth + 1, low, high, visit);
        }
    }
    if axes.iter().any(Axis::is_empty) {
        return;
    }
    let mut low: Dims = smallvec::smallvec![0; axes.len()];
    let mut high = low.clone();
    walk(axes, 0, &mut low, &mut high, visit);
}
