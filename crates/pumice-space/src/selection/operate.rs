//! Set operations on selections of any kind: arithmetic where it suffices, span trees where not.

use super::algebra::{self, Combine, Operation};
use super::axis::Axis;
use super::build::{Boxes, MAX_SPANS, tree_of_axes, tree_of_points, union_of_boxes};
use super::spans::{Tree, same};
use super::{Axes, HyperslabAxis, Kind, Points, Selection, bounded};
use crate::extent::{check_rank, same_rank};
use crate::{SpaceError, UNLIMITED};
use std::sync::Arc;

/// A selection made definite for one extent.
pub(super) enum Operand {
    Empty,
    /// No axis is empty or unlimited.
    Product(Axes),
    Tree(Arc<Tree>),
}

impl Selection {
    /// Cells in either.
    pub fn or(&self, other: &Selection, dims: &[u64]) -> Result<Selection, SpaceError> {
        if self.is_all() || other.is_all() {
            return Ok(Self::all());
        }
        self.operate(other, dims, Operation::Or)
    }

    /// Cells in both.
    pub fn and(&self, other: &Selection, dims: &[u64]) -> Result<Selection, SpaceError> {
        if self.is_all() && other.is_all() {
            return Ok(Self::all());
        }
        self.operate(other, dims, Operation::And)
    }

    /// Cells in exactly one.
    pub fn xor(&self, other: &Selection, dims: &[u64]) -> Result<Selection, SpaceError> {
        self.operate(other, dims, Operation::Xor)
    }

    /// Cells in `self` that are not in `other`.
    pub fn not_b(&self, other: &Selection, dims: &[u64]) -> Result<Selection, SpaceError> {
        self.operate(other, dims, Operation::Minus)
    }

    /// Cells in `other` that are not in `self`.
    pub fn not_a(&self, other: &Selection, dims: &[u64]) -> Result<Selection, SpaceError> {
        other.operate(self, dims, Operation::Minus)
    }

    /// Adds the cells of `other`: [`Selection::or`] in place.
    ///
    /// Takes time for `other` alone if its cells come after all others (later rows, or later in the
    /// last row) and no clone of `self` is alive.
    ///
    /// ```
    /// use pumice_space::Selection;
    ///
    /// let mut rows = Selection::none();
    /// for row in [1, 4, 5] {
    ///     rows.append(&Selection::block(&[row, 0], &[1, 8])?, &[9, 9])?;
    /// }
    /// assert_eq!(rows.count(&[9, 9]), 24);
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn append(&mut self, other: &Selection, dims: &[u64]) -> Result<(), SpaceError> {
        if let Kind::Tree { tree, .. } = &mut self.0 {
            let other = Operand::of(other, dims)?.into_tree()?;
            if other.is_none_or(|other| algebra::append(tree, &other)) {
                return Ok(());
            }
        }
        *self = self.or(other, dims)?;
        Ok(())
    }

    /// The union of many selections, in time n log n.
    ///
    /// ```
    /// use pumice_space::Selection;
    ///
    /// let dims = [1_000, 1_000];
    /// let even = (0..500).map(|row| Selection::block(&[row * 2, 0], &[1, 1_000]).unwrap());
    /// let union = Selection::union_of(2, even, &dims)?;
    /// assert_eq!(union.count(&dims), 500_000);
    /// assert_eq!(union.regular().unwrap()[0].stride, 2);
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn union_of(
        rank: usize,
        selections: impl IntoIterator<Item = Selection>,
        dims: &[u64],
    ) -> Result<Self, SpaceError> {
        check_rank(rank)?;
        same_rank(dims.len(), rank)?;
        if rank == 0 {
            let any = selections.into_iter().any(|selection| !selection.is_none());
            return Ok(if any { Self(Kind::Product(Axes::new())) } else { Self::none() });
        }
        let mut boxes = Boxes::new(rank);
        let mut trees = Vec::new();
        for selection in selections {
            match Operand::of(&selection, dims)? {
                Operand::Product(axes) if axes.iter().all(Axis::is_contiguous) => {
                    boxes.push(axes.iter().map(|axis| (axis.first, axis.last)));
                }
                other => trees.extend(other.into_tree()?),
            }
        }
        Ok(Self::from_tree(rank, union_of_boxes(&boxes, trees, MAX_SPANS)?))
    }

    /// Moved by `offset`; an error if a coordinate would leave 0..2^64 - 1.
    ///
    /// ```
    /// use pumice_space::Selection;
    ///
    /// let moved = Selection::block(&[5, 5], &[2, 2])?.translate(&[-5, 1])?;
    /// assert!(moved.contains(&[0, 6]));
    /// assert!(moved.translate(&[-1, 0]).is_err());
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn translate(&self, offset: &[i64]) -> Result<Selection, SpaceError> {
        same_rank(self.rank().unwrap_or(offset.len()), offset.len())?;
        let overflow = SpaceError::Overflow("translated coordinate");
        let kind = match &self.0 {
            Kind::All => Some(Kind::All),
            Kind::None => Some(Kind::None),
            Kind::Points(points) => {
                let steps = points.coords.iter().zip(offset.iter().cycle());
                let moved =
                    steps.map(|(at, by)| at.checked_add_signed(*by).filter(|&at| at != UNLIMITED));
                let coords: Option<Vec<u64>> = moved.collect();
                coords.map(|coords| Kind::Points(Arc::new(Points { rank: points.rank, coords })))
            }
            Kind::Product(axes) => {
                let moved = axes.iter().zip(offset).map(|(axis, &by)| axis.translate(by));
                moved.collect::<Option<_>>().map(Kind::Product)
            }
            Kind::Tree { rank, tree } => {
                tree.translate(offset).map(|tree| Kind::Tree { rank: *rank, tree })
            }
        };
        kind.map(Self).ok_or(overflow)
    }

    /// The selection without cells outside `dims`. Points keep their order.
    ///
    /// ```
    /// use pumice_space::Selection;
    ///
    /// let cut = Selection::points(1, vec![9, 2, 7])?.clip(&[8])?;
    /// assert_eq!(cut.as_points().unwrap().1, [2, 7]);
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn clip(&self, dims: &[u64]) -> Result<Selection, SpaceError> {
        check_rank(dims.len())?;
        same_rank(dims.len(), self.rank().unwrap_or(dims.len()))?;
        if let Kind::Points(points) = &self.0 {
            let inside = |point: &&[u64]| point.iter().zip(dims).all(|(at, size)| at < size);
            let kept = points.coords.chunks_exact(points.rank).filter(inside);
            return Self::points(points.rank, kept.flatten().copied().collect());
        }
        if self.check(dims).is_ok() && !self.is_unlimited() {
            return Ok(self.clone());
        }
        self.and(&Self::all(), dims)
    }

    /// Whether both select the same cells of `dims`, points taken as a set.
    pub fn same_cells(&self, other: &Selection, dims: &[u64]) -> Result<bool, SpaceError> {
        let (a, b) = (Operand::of(self, dims)?, Operand::of(other, dims)?);
        if let (Operand::Product(a), Operand::Product(b)) = (&a, &b)
            && a == b
        {
            return Ok(true);
        }
        Ok(combine(a, b, Operation::Xor, dims.len())?.is_none())
    }

    /// A selection of `rank` dimensions, at least one; a hyperslab where the tree is one.
    pub(crate) fn from_tree(rank: usize, tree: Option<Arc<Tree>>) -> Self {
        match tree {
            None => Self::none(),
            Some(tree) => match axes_of_tree(&tree) {
                Some(axes) => Self(Kind::Product(axes)),
                None => Self(Kind::Tree { rank, tree }),
            },
        }
    }

    /// The tree of the selected cells; `None` if there are none. Rank is at least one.
    pub(crate) fn to_tree(&self, dims: &[u64]) -> Result<Option<Arc<Tree>>, SpaceError> {
        Operand::of(self, dims)?.into_tree()
    }

    /// The axes, if the cells of `dims` are a product of them and their order is row-major.
    pub(crate) fn to_axes(&self, dims: &[u64]) -> Option<Axes> {
        match &self.0 {
            Kind::All => {
                let last = dims.iter().map(|size| size.checked_sub(1));
                Some(
                    last.map(|last| last.map_or(Axis::EMPTY, |last| Axis::span(0, last))).collect(),
                )
            }
            Kind::Product(axes) => Some(bounded(axes, dims).collect()),
            Kind::Points(points) if points.coords.len() == points.rank => {
                Some(points.coords.iter().map(|&at| Axis::span(at, at)).collect())
            }
            _ => None,
        }
    }

    fn operate(
        &self,
        other: &Selection,
        dims: &[u64],
        operation: Operation,
    ) -> Result<Selection, SpaceError> {
        combine(Operand::of(self, dims)?, Operand::of(other, dims)?, operation, dims.len())
    }
}

impl Operand {
    pub(super) fn of(selection: &Selection, dims: &[u64]) -> Result<Self, SpaceError> {
        check_rank(dims.len())?;
        same_rank(dims.len(), selection.rank().unwrap_or(dims.len()))?;
        let Some(axes) = selection.to_axes(dims) else {
            let tree = match &selection.0 {
                Kind::Tree { tree, .. } => Some(tree.clone()),
                Kind::Points(points) => tree_of_points(points.rank, &points.coords),
                _ => None,
            };
            return Ok(tree.map_or(Self::Empty, Self::Tree));
        };
        let empty = axes.iter().any(Axis::is_empty);
        Ok(if empty { Self::Empty } else { Self::Product(axes) })
    }

    /// The tree; `None` if it is empty. Rank is at least one.
    fn into_tree(self) -> Result<Option<Arc<Tree>>, SpaceError> {
        match self {
            Self::Tree(tree) => Ok(Some(tree)),
            Self::Product(axes) => tree_of_axes(&axes),
            Self::Empty => Ok(None),
        }
    }

    fn into_selection(self, rank: usize) -> Selection {
        match self {
            Self::Empty => Selection::none(),
            Self::Product(axes) => Selection(Kind::Product(axes)),
            Self::Tree(tree) => Selection::from_tree(rank, Some(tree)),
        }
    }

    /// Cuts a product to the box around `other`, before it is expanded.
    fn cut_to(self, other: &Operand, rank: usize) -> Operand {
        let Self::Product(axes) = self else { return self };
        let window: Axes = match other {
            Self::Empty => return Self::Empty,
            Self::Product(other) => other.clone(),
            // A box is small as it is, and to find the other's bounds takes all of its nodes.
            Self::Tree(_) if axes.iter().all(Axis::is_contiguous) => return Self::Product(axes),
            Self::Tree(tree) => {
                let (low, high) = tree.bounds(rank);
                low.iter().zip(&high).map(|(&low, &high)| Axis::span(low, high)).collect()
            }
        };
        let cut = axes.iter().zip(&window).map(|(axis, by)| axis.cut(by.first, by.last));
        let axes: Axes = cut.collect();
        if axes.iter().any(Axis::is_empty) { Self::Empty } else { Self::Product(axes) }
    }
}

fn combine(
    a: Operand,
    b: Operand,
    operation: Operation,
    rank: usize,
) -> Result<Selection, SpaceError> {
    let (a, b) = match operation {
        Operation::And => {
            let a = a.cut_to(&b, rank);
            let b = b.cut_to(&a, rank);
            (a, b)
        }
        Operation::Minus => {
            let b = b.cut_to(&a, rank);
            (a, b)
        }
        Operation::Or | Operation::Xor => (a, b),
    };
    if let (Operand::Product(first), Operand::Product(second)) = (&a, &b)
        && let Some(known) = combine_products(first, second, operation)
    {
        return Ok(known);
    }
    match (a, b) {
        (Operand::Empty, b) if operation.keeps_second() => Ok(b.into_selection(rank)),
        (a, Operand::Empty) if operation.keeps_first() => Ok(a.into_selection(rank)),
        (a, b) => {
            let (Some(a), Some(b)) = (a.into_tree()?, b.into_tree()?) else {
                return Ok(Selection::none());
            };
            let combined = Combine::new(operation, MAX_SPANS).apply(&a, &b)?;
            Ok(Selection::from_tree(rank, combined))
        }
    }
}

/// The combination of two products where arithmetic is enough.
fn combine_products(a: &Axes, b: &Axes, operation: Operation) -> Option<Selection> {
    let product = |axes: &Axes| Selection(Kind::Product(axes.clone()));
    if operation == Operation::And {
        let both: Option<Axes> = a.iter().zip(b).map(|(a, b)| a.intersect(b)).collect();
        return both.map(|both| {
            if both.iter().any(Axis::is_empty) { Selection::none() } else { product(&both) }
        });
    }
    if a == b {
        return Some(if operation.keeps_both() { product(a) } else { Selection::none() });
    }
    if contains_box(b, a) {
        match operation {
            Operation::Or => return Some(product(b)),
            Operation::Minus => return Some(Selection::none()),
            _ => {}
        }
    }
    (operation == Operation::Or && contains_box(a, b)).then(|| product(a))
}

/// Whether `outer` is a box that contains the box around `inner`.
fn contains_box(outer: &Axes, inner: &Axes) -> bool {
    outer.iter().zip(inner).all(|(outer, inner)| {
        outer.is_contiguous() && outer.first <= inner.first && inner.last <= outer.last
    })
}

/// The axes of a tree that is a regular hyperslab.
fn axes_of_tree(tree: &Arc<Tree>) -> Option<Axes> {
    let mut axes = Axes::new();
    let mut node = tree;
    loop {
        let first = node.spans.first()?;
        axes.push(axis_of_spans(node)?);
        if !node.spans.iter().all(|span| same(&span.down, &first.down)) {
            return None;
        }
        match &first.down {
            Some(down) => node = down,
            None => return Some(axes),
        }
    }
}

/// The axis of spans of equal length at equal distance.
fn axis_of_spans(node: &Tree) -> Option<Axis> {
    let [first, rest @ ..] = node.spans.as_slice() else { return None };
    let Some(second) = rest.first() else { return Some(Axis::span(first.low, first.high)) };
    let (length, stride) = (first.high - first.low, second.low - first.low);
    let mut low = first.low;
    for span in rest {
        if span.high - span.low != length || span.low - low != stride {
            return None;
        }
        low = span.low;
    }
    let count = node.spans.len() as u64;
    Axis::new(HyperslabAxis { start: first.low, stride, count, block: length + 1 }, 0).ok()
}
