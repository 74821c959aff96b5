//! Selections as runs of neighbouring cells in row-major order.
//!
//! Lazy: a run is found when it is asked for. Dimensions that are selected whole are folded into
//! the next slower one first, so a box of whole rows is one run however many rows it has.

use super::axis::Axis;
use super::odometer::Odometer;
use super::spans::{Span, Tree};
use super::{Axes, Kind, Selection};
use crate::extent::product;
use crate::linear::strides;
use crate::{Dims, Run};
use smallvec::SmallVec;
use std::collections::HashSet;
use std::sync::Arc;

/// Iterates over the runs of a [`Selection`]; made by [`Selection::runs`].
#[derive(Clone, Debug)]
pub struct Runs<'a> {
    source: Source<'a>,
    pending: Option<Run>,
}

#[derive(Clone, Debug)]
enum Source<'a> {
    One(Option<Run>),
    Points { coords: std::slice::ChunksExact<'a, u64>, dims: Dims },
    Product(Box<ProductRuns>),
    Tree(Box<TreeRuns<'a>>),
}

impl<'a> Runs<'a> {
    pub(super) fn new(selection: &'a Selection, dims: &[u64]) -> Self {
        let source = Source::new(selection, dims).unwrap_or(Source::One(None));
        Self { source, pending: None }
    }
}

impl Selection {
    /// Whether an array of shape `dims` has more than about `limit` runs of it. Cost: dimensions, or at most
    /// `limit` runs of a union.
    pub(crate) fn has_more_runs(&self, dims: &[u64], limit: u64) -> bool {
        match &self.0 {
            Kind::Product(axes) => product_runs(axes, dims) > limit,
            _ => self.runs(dims).nth(limit.try_into().unwrap_or(usize::MAX)).is_some(),
        }
    }
}

impl Iterator for Runs<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let mut run = match self.pending.take() {
            Some(run) => run,
            None => self.source.next()?,
        };
        // The end of one row and the beginning of the next are neighbours too.
        while let Some(next) = self.source.next() {
            if next.start != run.end() {
                self.pending = Some(next);
                break;
            }
            run.len += next.len;
        }
        Some(run)
    }
}

impl<'a> Source<'a> {
    /// `None` if nothing is selected, or positions would not fit 64 bits.
    fn new(selection: &'a Selection, dims: &[u64]) -> Option<Self> {
        let cells = product(dims).filter(|&cells| cells > 0)?;
        let fits = selection.rank().is_none_or(|rank| rank == dims.len());
        if !fits {
            return None;
        }
        match &selection.0 {
            Kind::None => None,
            Kind::All => Some(Self::One(Some(Run { start: 0, len: cells }))),
            Kind::Points(points) => {
                let coords = points.coords.chunks_exact(points.rank.max(1));
                Some(Self::Points { coords, dims: dims.into() })
            }
            Kind::Product(axes) => ProductRuns::new(axes, dims).map(Box::new).map(Self::Product),
            Kind::Tree { tree, .. } => TreeRuns::new(tree, dims).map(Box::new).map(Self::Tree),
        }
    }

    fn next(&mut self) -> Option<Run> {
        match self {
            Self::One(run) => run.take(),
            Self::Points { coords, dims } => loop {
                let mut start = 0;
                let point = coords.next()?;
                let inside = point.iter().zip(dims.iter()).all(|(&at, &size)| {
                    start = if at < size { start * size + at } else { 0 };
                    at < size
                });
                if inside {
                    return Some(Run { start, len: 1 });
                }
            },
            Self::Product(product) => product.next(),
            Self::Tree(tree) => tree.next(),
        }
    }
}

/// The runs of a product of axes.
#[derive(Clone, Debug)]
struct ProductRuns {
    outer: Odometer,
    inner: Axis,
    spans: super::axis::AxisSpans,
    ended: bool,
}

impl ProductRuns {
    fn new(axes: &[Axis], dims: &[u64]) -> Option<Self> {
        let steps = strides(dims)?;
        let cut = axes.iter().zip(dims).map(|(axis, &size)| axis.cut(0, size.wrapping_sub(1)));
        let mut axes: Axes = cut.collect();
        if axes.iter().any(Axis::is_empty) {
            return None;
        }
        let inner = fold(&mut axes, dims);
        let outer = axes.iter().zip(&steps).map(|(&axis, &step)| (axis, step, 0));
        let spans = inner.spans();
        Some(Self { outer: Odometer::new(outer), inner, spans, ended: false })
    }

    fn next(&mut self) -> Option<Run> {
        while !self.ended {
            if let Some((low, high)) = self.spans.next() {
                return Some(Run { start: self.outer.cell + low, len: high - low + 1 });
            }
            self.ended = !self.outer.advance();
            self.spans = self.inner.spans();
        }
        None
    }
}

/// The number of runs of a product; runs that meet at the end of a row count apart.
fn product_runs(axes: &[Axis], dims: &[u64]) -> u64 {
    let cut = axes.iter().zip(dims).map(|(axis, &size)| axis.cut(0, size.wrapping_sub(1)));
    let mut axes: Axes = cut.collect();
    let inner = fold(&mut axes, dims);
    axes.iter().map(Axis::count).fold(inner.span_count(), u64::saturating_mul)
}

/// Takes the fastest axis off, together with all slower ones that it can be joined with because
/// the axes after them are selected whole. A product of no axes is one cell.
fn fold(axes: &mut Axes, dims: &[u64]) -> Axis {
    let mut cells = 1u64;
    let mut inner = Axis::span(0, 0);
    while let Some(axis) = axes.pop() {
        inner = axis.scaled(cells);
        let size = dims.get(axes.len()).copied().unwrap_or(1);
        cells = cells.saturating_mul(size);
        let whole = inner.is_contiguous() && inner.first == 0 && inner.last == cells - 1;
        // Scaling a cut pattern needs one bit more than its positions.
        if !whole || cells > u64::MAX >> 2 {
            break;
        }
    }
    inner
}

/// The runs of a span tree.
#[derive(Clone, Debug)]
struct TreeRuns<'a> {
    dims: Dims,
    steps: Dims,
    levels: SmallVec<[Level<'a>; 4]>,
    /// Nodes without a cell inside `dims`. They are skipped, because endless rows would yield
    /// nothing. Kept by address, and only compared.
    outside: HashSet<usize>,
}

/// A node on the path to the current run.
#[derive(Clone, Debug)]
struct Level<'a> {
    spans: &'a [Span],
    index: usize,
    /// The next coordinate of the current span.
    at: u64,
    /// The linear position of this node's first cell.
    base: u64,
}

impl<'a> TreeRuns<'a> {
    fn new(tree: &'a Arc<Tree>, dims: &[u64]) -> Option<Self> {
        let top = Level { spans: &tree.spans, index: 0, at: 0, base: 0 };
        let levels = smallvec::smallvec![top];
        let (_, high) = tree.bounds(dims.len());
        let mut outside = HashSet::new();
        if high.iter().zip(dims).any(|(high, size)| high >= size) {
            outside = tree.nodes_outside(dims);
        }
        Some(Self { dims: dims.into(), steps: strides(dims)?, levels, outside })
    }

    fn next(&mut self) -> Option<Run> {
        loop {
            let depth = self.levels.len().checked_sub(1)?;
            let level = self.levels.last_mut()?;
            let (size, step) = (self.dims[depth], self.steps[depth]);
            let Some(span) = level.spans.get(level.index).filter(|span| span.low < size) else {
                self.levels.pop();
                continue;
            };
            let high = span.high.min(size - 1);
            let at = level.at.max(span.low);
            if at > high {
                level.index += 1;
                continue;
            }
            let base = level.base + at * step;
            match &span.down {
                Some(down)
                    if !self.outside.is_empty()
                        && self.outside.contains(&Arc::as_ptr(down).addr()) =>
                {
                    level.index += 1;
                }
                Some(down) if !down.covers(&self.dims[depth + 1..]) => {
                    level.at = at + 1;
                    self.levels.push(Level { spans: &down.spans, index: 0, at: 0, base });
                }
                _ => {
                    level.index += 1;
                    return Some(Run { start: base, len: (high - at + 1) * step });
                }
            }
        }
    }
}
