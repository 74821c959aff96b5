//! Span trees from axes, boxes and points.
//!
//! [`TreeBuilder`] takes boxes in the order in which a span tree lists its own blocks and is linear
//! in them; [`union_of_boxes`] takes them in any order and is n log n: it sorts, lets builders take
//! as many boxes as they can, and merges the results pairwise.

use super::algebra::{Combine, Operation};
use super::axis::Axis;
use super::odometer::Odometer;
use super::spans::{Span, Tree, push_span};
use crate::linear::strides;
use crate::{CellSet, CoordinateWalker, Dims, Run, SpaceError};
use smallvec::SmallVec;
use std::sync::Arc;

/// The most spans that one axis is expanded to. A hyperslab of a few bytes has as many blocks as
/// it likes; as a tree they would have to be in memory.
pub(crate) const MAX_EXPANSION: u64 = 1 << 24;

/// The most spans that an operation may make.
pub(crate) const MAX_SPANS: u64 = 1 << 28;

/// The tree of a product of axes; `None` if it is empty. Rank is at least one, no axis unlimited.
pub(crate) fn tree_of_axes(axes: &[Axis]) -> Result<Option<Arc<Tree>>, SpaceError> {
    if axes.iter().any(Axis::is_empty) {
        return Ok(None);
    }
    let mut below: Option<Arc<Tree>> = None;
    for axis in axes.iter().rev() {
        if axis.span_count() > MAX_EXPANSION {
            return Err(SpaceError::TooComplex { limit: MAX_EXPANSION });
        }
        let spans = axis.spans().map(|(low, high)| Span { low, high, down: below.clone() });
        below = Tree::of(spans.collect());
    }
    Ok(below)
}

/// The tree of a product of spans of each axis: first and last cell, which ascend without overlap.
pub(crate) fn tree_of_spans(axes: &[Vec<(u64, u64)>]) -> Result<Option<Arc<Tree>>, SpaceError> {
    let mut below: Option<Arc<Tree>> = None;
    for axis in axes.iter().rev() {
        if axis.len() as u64 > MAX_EXPANSION {
            return Err(SpaceError::TooComplex { limit: MAX_EXPANSION });
        }
        let mut spans = Vec::with_capacity(axis.len());
        for &(low, high) in axis {
            push_span(&mut spans, Span { low, high, down: below.clone() });
        }
        below = Tree::of(spans);
    }
    Ok(below)
}

/// Builds a tree from boxes that come in the order of its blocks.
pub(crate) struct TreeBuilder {
    /// Finished spans of the node under construction at each dimension.
    open: Vec<Vec<Span>>,
    /// The last box: the node path that is still open. Empty before the first box.
    path: Vec<(u64, u64)>,
    /// Spans made so far, for limits.
    pub(crate) spans: u64,
}

impl TreeBuilder {
    /// A builder of trees of `rank` dimensions, at least one.
    pub(crate) fn new(rank: usize) -> Self {
        Self { open: vec![Vec::new(); rank], path: Vec::with_capacity(rank), spans: 0 }
    }

    /// Adds a box, given as first and last coordinate of each dimension, or gives `false` if it
    /// does not come next: it must equal the box before it up to some dimension, and lie beyond it
    /// there.
    pub(crate) fn push(&mut self, ranges: &[(u64, u64)]) -> bool {
        let mut equal = 0;
        if !self.path.is_empty() {
            equal = self.path.iter().zip(ranges).take_while(|(a, b)| a == b).count();
            let (Some(old), Some(new)) = (self.path.get(equal), ranges.get(equal)) else {
                return true;
            };
            if new.0 <= old.1 {
                return false;
            }
            self.close(equal);
        }
        self.path.truncate(equal);
        self.path.extend_from_slice(&ranges[equal..]);
        self.push_leaf();
        true
    }

    /// Adds one cell, which must come after the box before it.
    pub(crate) fn push_point(&mut self, point: &[u64]) -> bool {
        let ranges: SmallVec<[(u64, u64); 4]> = point.iter().map(|&at| (at, at)).collect();
        self.push(&ranges)
    }

    /// The finished tree; `None` if no box was pushed.
    pub(crate) fn finish(mut self) -> Option<Arc<Tree>> {
        if self.path.is_empty() {
            return None;
        }
        self.close(0);
        Tree::of(std::mem::take(&mut self.open[0]))
    }

    fn push_leaf(&mut self) {
        let (Some(&(low, high)), Some(leaf)) = (self.path.last(), self.open.last_mut()) else {
            return;
        };
        self.spans += 1;
        push_span(leaf, Span { low, high, down: None });
    }

    /// Ends the nodes of all dimensions after `axis`.
    fn close(&mut self, axis: usize) {
        for depth in (axis + 1..self.open.len()).rev() {
            let (upper, lower) = self.open.split_at_mut(depth);
            let (Some(parent), Some(spans)) = (upper.last_mut(), lower.first_mut()) else { return };
            let before = parent.last().and_then(|span| span.down.as_ref());
            let down = match before.filter(|before| before.has_spans(spans)) {
                Some(before) => {
                    spans.clear();
                    Some(before.clone())
                }
                None => {
                    // Moved to a list of the exact size; the scratch list keeps its room.
                    let mut exact = Vec::with_capacity(spans.len());
                    exact.append(spans);
                    Tree::of(exact)
                }
            };
            let (low, high) = self.path[depth - 1];
            self.spans += 1;
            push_span(parent, Span { low, high, down });
        }
    }
}

/// The tree of points (`rank` coordinates each) in any order.
pub(crate) fn tree_of_points(rank: usize, coords: &[u64]) -> Option<Arc<Tree>> {
    let mut builder = TreeBuilder::new(rank);
    if coords.chunks_exact(rank).is_sorted() {
        for point in coords.chunks_exact(rank) {
            builder.push_point(point);
        }
        return builder.finish();
    }
    match sorted_keys(rank, coords) {
        Some((dims, keys)) => {
            let mut walker = CoordinateWalker::new(&dims);
            for key in keys {
                builder.push_point(walker.seek(key));
            }
        }
        None => {
            let mut order: Vec<&[u64]> = coords.chunks_exact(rank).collect();
            order.sort_unstable();
            for point in order {
                builder.push_point(point);
            }
        }
    }
    builder.finish()
}

/// The points as ascending linear positions in their bounding box, if 64 bits hold them: single
/// numbers sort several times faster than lists of coordinates.
fn sorted_keys(rank: usize, coords: &[u64]) -> Option<(Dims, Vec<u64>)> {
    let mut dims: Dims = smallvec::smallvec![0; rank];
    for point in coords.chunks_exact(rank) {
        dims.iter_mut().zip(point).for_each(|(size, &at)| *size = at.max(*size));
    }
    dims.iter_mut().for_each(|size| *size += 1);
    let steps = strides(&dims)?;
    let key = |point: &[u64]| point.iter().zip(&steps).map(|(at, step)| at * step).sum();
    let mut keys: Vec<u64> = coords.chunks_exact(rank).map(key).collect();
    keys.sort_unstable();
    Some((dims, keys))
}

/// Boxes of one rank in one list: for each, `rank` pairs of first and last coordinate.
pub(crate) struct Boxes {
    rank: usize,
    ranges: Vec<(u64, u64)>,
}

impl Boxes {
    /// No boxes of `rank` dimensions, at least one.
    pub(crate) fn new(rank: usize) -> Self {
        Self { rank, ranges: Vec::new() }
    }

    pub(crate) fn push(&mut self, ranges: impl Iterator<Item = (u64, u64)>) {
        self.ranges.extend(ranges);
    }

    pub(crate) fn len(&self) -> usize {
        self.ranges.len() / self.rank
    }

    pub(crate) fn reserve(&mut self, boxes: usize) {
        self.ranges.reserve(boxes * self.rank);
    }

    /// Adds boxes given as all first, then all last coordinates, `N` bytes each. Returns `false` if
    /// one ends before it begins, or beyond the largest coordinate.
    pub(crate) fn extend_from<const N: usize>(
        &mut self,
        bytes: &[u8],
        number: impl Fn([u8; N]) -> u64,
    ) -> bool {
        let (numbers, _) = bytes.as_chunks::<N>();
        let mut sound = true;
        for corners in numbers.chunks_exact(2 * self.rank) {
            let (low, high) = corners.split_at(self.rank);
            self.ranges.extend(low.iter().zip(high).map(|(&low, &high)| {
                let range = (number(low), number(high));
                sound &= range.0 <= range.1 && range.1 < u64::MAX;
                range
            }));
        }
        sound
    }

    /// The number of runs of the boxes one by one, saturating; `None` if one lies outside `dims`.
    pub(crate) fn run_count(&self, dims: &[u64]) -> Option<u64> {
        let mut runs = 0u64;
        for ranges in self.ranges.chunks_exact(self.rank) {
            let mut inside = true;
            let mut rows = false;
            for (range, &size) in ranges.iter().zip(dims) {
                inside &= range.1 < size;
                rows |= range.0 != range.1;
            }
            if !inside {
                return None;
            }
            runs = runs.saturating_add(if rows { rows_of(ranges, dims) } else { 1 });
        }
        Some(runs)
    }

    /// The set of all cells. The boxes lie inside `dims`, a chunk of `cells`, and have `runs` runs.
    pub(crate) fn to_cells(
        &self,
        dims: &[u64],
        cells: u64,
        runs: u64,
    ) -> Result<CellSet, SpaceError> {
        let steps = strides(dims).ok_or(SpaceError::Overflow("number of cells of a chunk"))?;
        let mut collector = CellSet::collect_runs(cells, runs);
        for ranges in self.ranges.chunks_exact(self.rank) {
            let (mut start, mut end) = (0, 0);
            let mut rows = false;
            for (range, step) in ranges.iter().zip(&steps) {
                // So far one row: the last range alone may be wider than one cell.
                rows |= start != end;
                start += range.0 * step;
                end += range.1 * step;
            }
            if rows {
                for_each_row(ranges, dims, &steps, |run| collector.add(run));
            } else {
                collector.add(Run { start, len: end - start + 1 });
            }
        }
        Ok(collector.finish())
    }

    /// The trees of the boxes, few where the boxes do not overlap.
    fn chains(&self) -> Vec<Arc<Tree>> {
        let boxes = self.ranges.chunks_exact(self.rank);
        let mut sorted: Vec<(u64, &[(u64, u64)])> =
            boxes.map(|ranges| (ranges.first().map_or(0, |range| range.0), ranges)).collect();
        if !sorted.is_sorted() {
            // Most are told apart by their first coordinate, which is at hand.
            sorted.sort_unstable();
        }
        let mut trees = Vec::new();
        let mut builder = TreeBuilder::new(self.rank);
        for (_, ranges) in sorted {
            if !builder.push(ranges) {
                let full = std::mem::replace(&mut builder, TreeBuilder::new(self.rank));
                trees.extend(full.finish());
                builder.push(ranges);
            }
        }
        trees.extend(builder.finish());
        trees
    }
}

/// The union of boxes and trees, making at most `limit` spans on the way.
pub(crate) fn union_of_boxes(
    boxes: &Boxes,
    mut trees: Vec<Arc<Tree>>,
    limit: u64,
) -> Result<Option<Arc<Tree>>, SpaceError> {
    trees.extend(boxes.chains());
    let mut combine = Combine::new(Operation::Or, limit);
    while trees.len() > 1 {
        let mut merged = Vec::with_capacity(trees.len().div_ceil(2));
        for pair in trees.chunks(2) {
            match pair {
                [a, b] => merged.extend(combine.apply(a, b)?),
                rest => merged.extend(rest.iter().cloned()),
            }
        }
        trees = merged;
    }
    Ok(trees.pop())
}

/// The dimension after which a box is as wide as the array: below it, rows join to one run.
fn joined_from(ranges: &[(u64, u64)], dims: &[u64]) -> usize {
    let whole = |(range, size): (&(u64, u64), &u64)| range.0 == 0 && range.1 + 1 == *size;
    let full = ranges.iter().zip(dims).rev().take_while(|pair| whole(*pair)).count();
    (ranges.len() - full).saturating_sub(1)
}

/// The number of runs of a box, saturating.
fn rows_of(ranges: &[(u64, u64)], dims: &[u64]) -> u64 {
    let slower = &ranges[..joined_from(ranges, dims)];
    slower.iter().fold(1, |rows, range| rows.saturating_mul(range.1 - range.0 + 1))
}

/// Visits the runs of a box, ascending.
fn for_each_row(ranges: &[(u64, u64)], dims: &[u64], steps: &[u64], mut visit: impl FnMut(Run)) {
    let axis = joined_from(ranges, dims);
    let (slower, joined) = ranges.split_at(axis);
    let Some(&(low, high)) = joined.first() else { return };
    let (start, len) = (low * steps[axis], (high - low + 1) * steps[axis]);
    let wheels = slower.iter().zip(steps);
    let wheels = wheels.map(|(range, &step)| (Axis::span(range.0, range.1), step, 0));
    let mut rows = Odometer::new(wheels);
    loop {
        visit(Run { start: rows.cell + start, len });
        if !rows.advance() {
            return;
        }
    }
}
