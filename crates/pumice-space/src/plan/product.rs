//! Transfers of boxes and hyperslabs: every chunk by arithmetic, when it is asked for.
//!
//! A chunk's part of a product of axes is the product of their cuts to the chunk. Memory positions
//! are a sum over dimensions of "how many selected cells come before" times a stride, because the
//! memory side is a single stretch or evenly spaced in each dimension.

use super::line::Fold;
use super::{ChunkPart, Line, Part, Segment};
use crate::extent::product;
use crate::linear::strides;
use crate::selection::axis::{Axis, AxisSpans};
use crate::selection::odometer::Odometer;
use crate::selection::{Axes, Kind, Selection};
use crate::{ChunkGrid, Dims, Run};
use smallvec::SmallVec;

/// A lazy transfer.
#[derive(Clone, Debug)]
pub(super) struct ProductPlan {
    /// The file side; no axis is empty.
    axes: Axes,
    grid: ChunkGrid,
    /// The memory position of the first selected cell.
    base: u64,
    /// How far one selected cell further along each dimension moves that position.
    strides: Dims,
    /// The next chunk, dimension by dimension; `None` at the end.
    next: Option<SmallVec<[AxisPart; 4]>>,
    given: u64,
}

/// One dimension of a chunk's part.
#[derive(Clone, Copy, Debug)]
struct AxisPart {
    chunk: u64,
    /// The selected cells, relative to the chunk.
    cells: Axis,
    /// The number of selected cells before.
    index: u64,
}

/// The part of one chunk.
#[derive(Clone, Debug)]
pub(super) struct ProductPart {
    /// Always a product.
    pub(super) cells: Selection,
    /// Cells of the chunk that lie inside the array.
    pub(super) inside: u64,
    memory: u64,
    strides: Dims,
}

impl ProductPlan {
    /// `None` if this transfer is not a simple one. Counts are equal and not zero.
    pub(super) fn new(
        file: &Selection,
        grid: &ChunkGrid,
        memory: &Selection,
        memory_dims: &[u64],
    ) -> Option<Self> {
        let axes = file.to_axes(grid.dims())?;
        let counts: Dims = axes.iter().map(Axis::count).collect();
        let (base, strides) = match single_run(memory, memory_dims) {
            Some(run) => (run.start, strides(&counts)?),
            None => even_memory(&counts, memory, memory_dims)?,
        };
        let first = axes
            .iter()
            .zip(grid.chunk())
            .map(|(axis, &size)| AxisPart::new(axis, axis.first / size, size));
        let next = Some(first.collect());
        Some(Self { axes, grid: grid.clone(), base, strides, next, given: 0 })
    }

    pub(super) fn chunk_count_hint(&self) -> u64 {
        if self.next.is_none() {
            return 0;
        }
        let chunks = self
            .axes
            .iter()
            .zip(self.grid.chunk())
            .map(|(axis, size)| (axis.last / size - axis.first / size + 1).min(axis.count()));
        chunks.fold(1, u64::saturating_mul).saturating_sub(self.given)
    }

    pub(super) fn next(&mut self) -> Option<ChunkPart> {
        let parts = self.next.take()?;
        let chunk: Dims = parts.iter().map(|part| part.chunk).collect();
        let extents = self.grid.dims().iter().zip(self.grid.chunk());
        let inside = parts
            .iter()
            .zip(extents)
            .map(|(part, (&extent, &size))| extent.saturating_sub(part.chunk * size).min(size));
        let inside = inside.product();
        let steps = parts.iter().zip(&self.strides);
        let memory = steps.fold(self.base, |sum, (part, stride)| sum + part.index * stride);
        let part = self.line(&parts, memory).map(|line| Part::Line(line.finish(inside)));
        let part = part.unwrap_or_else(|| {
            let cells = Selection(Kind::Product(parts.iter().map(|part| part.cells).collect()));
            let strides = self.strides.clone();
            Part::Product(Box::new(ProductPart { cells, inside, memory, strides }))
        });
        self.next = self.after(parts);
        self.given += 1;
        Some(ChunkPart { chunk, part })
    }

    /// The cells of a chunk, if they are a line.
    fn line(&self, parts: &[AxisPart], memory: u64) -> Option<Fold> {
        let mut fold = Fold::new(memory);
        let sizes = self.grid.chunk().iter().zip(&self.strides);
        for (AxisPart { cells, .. }, (&size, &step)) in parts.iter().zip(sizes).rev() {
            let count = cells.count();
            if !cells.is_contiguous() || !fold.add(size, cells.first, count, step) {
                return None;
            }
        }
        Some(fold)
    }

    /// The chunk after `parts`.
    fn after(&self, mut parts: SmallVec<[AxisPart; 4]>) -> Option<SmallVec<[AxisPart; 4]>> {
        for at in (0..parts.len()).rev() {
            let (axis, size) = (&self.axes[at], self.grid.chunk()[at]);
            let end = (parts[at].chunk + 1).saturating_mul(size);
            let rest = axis.cut(end, axis.last);
            if !rest.is_empty() {
                parts[at] = AxisPart::new(axis, rest.first / size, size);
                return Some(parts);
            }
            parts[at] = AxisPart::new(axis, axis.first / size, size);
        }
        None
    }
}

impl AxisPart {
    /// The part of `axis` in a chunk where it has cells.
    fn new(axis: &Axis, chunk: u64, size: u64) -> Self {
        let origin = chunk * size;
        let cells = axis.cut(origin, origin.saturating_add(size - 1));
        Self { chunk, cells: cells.relative_to(origin), index: axis.index_of(cells.first) }
    }
}

/// The memory side, if it is one stretch of the buffer.
fn single_run(memory: &Selection, memory_dims: &[u64]) -> Option<Run> {
    if memory.is_all() {
        return product(memory_dims).map(|len| Run { start: 0, len });
    }
    let mut runs = memory.runs(memory_dims);
    let run = runs.next()?;
    runs.next().is_none().then_some(run)
}

/// Base and strides of a memory side that is evenly spaced in each dimension and has as many cells
/// along each as the file side, leaving out dimensions with one cell.
fn even_memory(counts: &[u64], memory: &Selection, memory_dims: &[u64]) -> Option<(u64, Dims)> {
    let axes = memory.to_axes(memory_dims)?;
    let steps = strides(memory_dims)?;
    let base = axes.iter().zip(&steps).map(|(axis, step)| axis.first * step).sum();
    let mut wide = axes.iter().zip(&steps).filter(|(axis, _)| axis.count() > 1);
    let mut result = Dims::new();
    for &count in counts {
        if count == 1 {
            result.push(0);
            continue;
        }
        let (axis, step) = wide.next().filter(|(axis, _)| axis.count() == count)?;
        result.push(axis.uniform_step()?.checked_mul(*step)?);
    }
    wide.next().is_none().then_some((base, result))
}

impl ProductPart {
    fn axes(&self) -> &[Axis] {
        match &self.cells.0 {
            Kind::Product(axes) => axes,
            _ => &[],
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.axes().iter().map(Axis::count).product()
    }

    pub(super) fn segments(&self, chunk_dims: &[u64]) -> ProductSegments {
        ProductSegments::new(self, chunk_dims)
    }
}

/// The segments of one chunk's part, row by row; rows that continue each other in chunk and memory
/// are joined beforehand.
#[derive(Clone, Debug)]
pub(super) struct ProductSegments {
    /// All but the joined fastest dimensions.
    outer: Odometer,
    /// The joined fastest dimensions.
    inner: Axis,
    /// How far one cell further along `inner` moves the memory position.
    step: u64,
    spans: AxisSpans,
    /// The memory position of the next cell of `inner`.
    memory: u64,
    base: u64,
    /// Whether each row is one segment.
    even: bool,
    /// The rest of a span whose cells are not neighbours in memory.
    apart: Run,
    ended: bool,
}

impl ProductSegments {
    fn new(part: &ProductPart, chunk_dims: &[u64]) -> Self {
        let mut axes: Axes = part.axes().into();
        let (inner, step) = join(&mut axes, &part.strides, chunk_dims);
        // A chunk's cells fit 64 bits, by the invariants of the grid.
        let steps = strides(chunk_dims).unwrap_or_default();
        let wheels = axes.iter().zip(&steps).zip(&part.strides);
        let outer = Odometer::new(wheels.map(|((&axis, &cell), &memory)| (axis, cell, memory)));
        Self {
            outer,
            inner,
            step,
            spans: inner.spans(),
            memory: part.memory,
            base: part.memory,
            even: inner.is_contiguous() && (step == 1 || inner.first == inner.last),
            apart: Run { start: 0, len: 0 },
            ended: false,
        }
    }

    #[inline]
    pub(super) fn next(&mut self) -> Option<Segment> {
        if self.apart.len > 0 {
            return Some(self.take_apart());
        }
        if self.even && !self.ended {
            let segment = Segment {
                cell: self.outer.cell + self.inner.first,
                memory: self.base + self.outer.memory,
                len: self.inner.last - self.inner.first + 1,
            };
            self.ended = !self.outer.advance();
            return Some(segment);
        }
        while !self.ended {
            if let Some((low, high)) = self.spans.next() {
                let (cell, len) = (self.outer.cell + low, high - low + 1);
                if self.step != 1 && len > 1 {
                    self.apart = Run { start: cell, len };
                    return Some(self.take_apart());
                }
                let memory = self.memory;
                self.memory += len * self.step;
                return Some(Segment { cell, memory, len });
            }
            self.ended = !self.outer.advance();
            self.spans = self.inner.spans();
            self.memory = self.base + self.outer.memory;
        }
        None
    }

    /// The next segments at equal distances.
    pub(super) fn next_line(&mut self) -> Option<Line> {
        if !self.even || self.ended {
            return self.next().map(Line::of);
        }
        let first = Segment {
            cell: self.outer.cell + self.inner.first,
            memory: self.base + self.outer.memory,
            len: self.inner.last - self.inner.first + 1,
        };
        let (count, cell_step, memory_step) = self.outer.take_run();
        self.ended = !self.outer.advance();
        Some(Line { first, count, cell_step, memory_step })
    }

    fn take_apart(&mut self) -> Segment {
        let segment = Segment { cell: self.apart.start, memory: self.memory, len: 1 };
        self.apart.start += 1;
        self.apart.len -= 1;
        self.memory += self.step;
        segment
    }
}

/// Takes the fastest axis off `axes`, joined with slower ones as long as the rows in between are
/// whole and memory goes on without a gap. Gives the joined axis and its memory stride.
fn join(axes: &mut Axes, memory_strides: &[u64], chunk_dims: &[u64]) -> (Axis, u64) {
    let Some(mut inner) = axes.pop() else { return (Axis::span(0, 0), 1) };
    let mut cells = chunk_dims.get(axes.len()).copied().unwrap_or(1);
    let mut step = match inner.count() {
        1 => 1,
        _ => memory_strides.get(axes.len()).copied().unwrap_or(1),
    };
    while let Some(&axis) = axes.last() {
        let whole = inner.is_contiguous() && inner.first == 0 && inner.last == cells - 1;
        let at = axes.len() - 1;
        let next_step = memory_strides.get(at).copied().unwrap_or(0);
        // One cell each has no neighbour that it could be apart from.
        let (one_here, one_there) = (cells == 1, axis.count() == 1);
        let even = one_there || if one_here { true } else { step == 1 && next_step == cells };
        if !whole || !even || cells > u64::MAX >> 2 {
            break;
        }
        if one_here && !one_there {
            step = next_step;
        }
        inner = axis.scaled(cells);
        cells = cells.saturating_mul(chunk_dims.get(at).copied().unwrap_or(1));
        axes.pop();
    }
    (inner, step)
}
