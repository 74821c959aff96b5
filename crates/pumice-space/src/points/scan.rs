//! One pass over all points: the chunk of each, and its cell in the chunk.
//!
//! The form of the points and their rank are resolved outside the loops, so that each combination
//! gets a loop of its own.

use super::bands::PointBand;
use super::{Column, Form, Points, outside};
use crate::{ChunkGrid, Dims, MAX_RANK, SpaceError};
use std::ops::Range;

/// The first of some neighbouring points that lie in one chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<I> {
    pub(super) chunk: I,
    pub(super) first: u32,
}

/// The number of a chunk: 32 bits where they suffice.
pub(super) trait Id: Copy + Send + Sync {
    fn narrow(number: u64) -> Self;
    fn wide(self) -> u64;
}

impl Id for u32 {
    fn narrow(number: u64) -> Self {
        number as u32
    }

    fn wide(self) -> u64 {
        u64::from(self)
    }
}

impl Id for u64 {
    fn narrow(number: u64) -> Self {
        number
    }

    fn wide(self) -> u64 {
        self
    }
}

/// The coordinates of points, axis by axis. Reading may move a cursor.
trait Coordinates {
    fn at(&mut self, axis: usize, point: usize) -> u64;

    /// The number of points of `range`, from the first on, that lie in a box.
    #[inline(always)]
    fn inside(&mut self, range: Range<usize>, rank: usize, low: &[u64], width: &[u64]) -> usize {
        let count = range.len();
        let (low, width) = (&low[..rank], &width[..rank]);
        for (passed, point) in range.enumerate() {
            let mut inside = true;
            for axis in 0..rank {
                inside &= self.at(axis, point).wrapping_sub(low[axis]) < width[axis];
            }
            if !inside {
                return passed;
            }
        }
        count
    }

    /// Appends the cells that points are in a chunk of shape `sizes`, `base` being the number that
    /// the chunk's first cell would have in a chunk without end.
    #[inline(always)]
    fn append(&mut self, range: Range<usize>, sizes: &[u64], base: u64, out: &mut Vec<u32>) {
        out.extend(range.map(|point| {
            let cell = sizes.iter().enumerate().fold(0u64, |cell, (axis, size)| {
                cell.wrapping_mul(*size).wrapping_add(self.at(axis, point))
            });
            // Both are too large by the same, perhaps beyond 64 bits; the difference is not.
            cell.wrapping_sub(base) as u32
        }));
    }
}

/// The number of leading values that are at least `low` by less than `width`.
#[inline(always)]
fn leading<N: Id>(numbers: &[N], low: u64, width: u64) -> usize {
    let outside = |number: &N| number.wide().wrapping_sub(low) >= width;
    numbers.iter().position(outside).unwrap_or(numbers.len())
}

struct List<'a> {
    rank: usize,
    coords: &'a [u64],
}

impl Coordinates for List<'_> {
    #[inline(always)]
    fn at(&mut self, axis: usize, point: usize) -> u64 {
        self.coords[point * self.rank + axis]
    }
}

struct Mixed<'a>(&'a [Column<'a>]);

impl Coordinates for Mixed<'_> {
    #[inline(always)]
    fn at(&mut self, axis: usize, point: usize) -> u64 {
        match self.0[axis] {
            Column::U32(numbers) => u64::from(numbers[point]),
            Column::U64(numbers) => numbers[point],
        }
    }
}

/// Two columns, the usual case.
struct Pair<'a, A, B>(&'a [A], &'a [B]);

impl<A: Id, B: Id> Coordinates for Pair<'_, A, B> {
    #[inline(always)]
    fn at(&mut self, axis: usize, point: usize) -> u64 {
        if axis == 0 { self.0[point].wide() } else { self.1[point].wide() }
    }

    #[inline(always)]
    fn inside(&mut self, range: Range<usize>, _rank: usize, low: &[u64], width: &[u64]) -> usize {
        let pairs = self.0[range.clone()].iter().zip(&self.1[range.clone()]);
        let outside = |(a, b): (&A, &B)| {
            let (a, b) = (a.wide().wrapping_sub(low[0]), b.wide().wrapping_sub(low[1]));
            (a >= width[0]) | (b >= width[1])
        };
        pairs.map(outside).position(|outside| outside).unwrap_or(range.len())
    }

    #[inline(always)]
    fn append(&mut self, range: Range<usize>, sizes: &[u64], base: u64, out: &mut Vec<u32>) {
        let (width, base) = (sizes[1] as u32, base as u32);
        let pairs = self.0[range.clone()].iter().zip(&self.1[range]);
        // The lower half of a product or difference needs the lower halves only.
        out.extend(pairs.map(|(a, b)| {
            let row = (a.wide() as u32).wrapping_mul(width);
            row.wrapping_add(b.wide() as u32).wrapping_sub(base)
        }));
    }
}

/// Compressed rows or columns: the line that the cursor is in, and its points.
struct Compressed<'a, P, I> {
    axis: usize,
    pointers: &'a [P],
    indices: &'a [I],
    line: usize,
    begin: usize,
    end: usize,
}

impl<'a, P: Id, I: Id> Compressed<'a, P, I> {
    fn new(axis: usize, pointers: &'a [P], indices: &'a [I]) -> Self {
        let end = pointers.get(1).map_or(0, |end| end.wide() as usize);
        Self { axis, pointers, indices, line: 0, begin: 0, end }
    }

    /// Moves to the line of a point.
    #[cold]
    fn seek(&mut self, point: usize) {
        let pointer = |line: usize| self.pointers.get(line).map(|at| at.wide() as usize);
        let mut line = self.line;
        // Usually it is the next one, or one soon after.
        let near = point >= self.end
            && (0..8).any(|_| {
                line += 1;
                pointer(line + 1).is_some_and(|end| point < end)
            });
        if !near {
            line = self.pointers.partition_point(|at| at.wide() as usize <= point) - 1;
        }
        self.line = line;
        self.begin = pointer(line).unwrap_or(0);
        self.end = pointer(line + 1).unwrap_or(usize::MAX);
    }
}

impl<P: Id, I: Id> Coordinates for Compressed<'_, P, I> {
    #[inline(always)]
    fn at(&mut self, axis: usize, point: usize) -> u64 {
        if axis != self.axis {
            return self.indices[point].wide();
        }
        if point < self.begin || point >= self.end {
            self.seek(point);
        }
        self.line as u64
    }

    #[inline(always)]
    fn inside(&mut self, range: Range<usize>, _rank: usize, low: &[u64], width: &[u64]) -> usize {
        let (along, across) = (self.axis, 1 - self.axis);
        let mut at = range.start;
        // Line by line.
        while at < range.end && self.at(along, at).wrapping_sub(low[along]) < width[along] {
            let end = self.end.min(range.end);
            let passed = leading(&self.indices[at..end], low[across], width[across]);
            at += passed;
            if at < end {
                break;
            }
        }
        at - range.start
    }

    #[inline(always)]
    fn append(&mut self, range: Range<usize>, sizes: &[u64], base: u64, out: &mut Vec<u32>) {
        let mut at = range.start;
        while at < range.end {
            let line = self.at(self.axis, at);
            let end = self.end.min(range.end);
            let indices = self.indices[at..end].iter();
            if self.axis == 0 {
                let first = line.wrapping_mul(sizes[1]).wrapping_sub(base) as u32;
                out.extend(indices.map(|index| first.wrapping_add(index.wide() as u32)));
            } else {
                let (first, width) = (line.wrapping_sub(base) as u32, sizes[1] as u32);
                let row = |index: &I| (index.wide() as u32).wrapping_mul(width);
                out.extend(indices.map(|index| first.wrapping_add(row(index))));
            }
            at = end;
        }
    }
}

/// Work on points, whatever their form.
trait Work {
    type Output;
    fn run(self, coordinates: impl Coordinates, rank: usize) -> Self::Output;
}

fn dispatch<W: Work>(points: &Points<'_>, work: W) -> W::Output {
    match &points.0 {
        Form::List { rank: 1, coords } => work.run(List { rank: 1, coords }, 1),
        Form::List { rank: 2, coords } => work.run(List { rank: 2, coords }, 2),
        Form::List { rank: 3, coords } => work.run(List { rank: 3, coords }, 3),
        Form::List { rank, coords } => work.run(List { rank: *rank, coords }, *rank),
        Form::Columns(columns) => match columns.as_slice() {
            [Column::U32(a), Column::U32(b)] => work.run(Pair(a, b), 2),
            [Column::U64(a), Column::U64(b)] => work.run(Pair(a, b), 2),
            all => work.run(Mixed(all), all.len()),
        },
        Form::Compressed { axis, pointers, indices } => match (*pointers, *indices) {
            (Column::U32(p), Column::U32(i)) => work.run(Compressed::new(*axis, p, i), 2),
            (Column::U32(p), Column::U64(i)) => work.run(Compressed::new(*axis, p, i), 2),
            (Column::U64(p), Column::U32(i)) => work.run(Compressed::new(*axis, p, i), 2),
            (Column::U64(p), Column::U64(i)) => work.run(Compressed::new(*axis, p, i), 2),
        },
    }
}

/// Finds the stretches of the points `range`, whose numbers are counted from `zero` on.
pub(super) fn find<I: Id>(
    points: &Points<'_>,
    range: Range<usize>,
    zero: usize,
    grid: &ChunkGrid,
) -> Result<Vec<Found<I>>, SpaceError> {
    let mut found = Vec::new();
    let end = dispatch(points, Find { range, zero, grid, found: &mut found });
    end.map(|()| found)
}

struct Find<'a, I> {
    range: Range<usize>,
    zero: usize,
    grid: &'a ChunkGrid,
    found: &'a mut Vec<Found<I>>,
}

impl<I: Id> Work for Find<'_, I> {
    type Output = Result<(), SpaceError>;

    #[inline(always)]
    fn run(self, mut points: impl Coordinates, rank: usize) -> Self::Output {
        let mut chunk = Within::new(self.grid);
        let mut point = self.range.start;
        loop {
            point += points.inside(point..self.range.end, rank, &chunk.low, &chunk.width);
            if point == self.range.end {
                return Ok(());
            }
            let number = chunk.enter(&mut points, point, rank)?;
            let first = (point - self.zero) as u32;
            self.found.push(Found { chunk: I::narrow(number), first });
        }
    }
}

/// The part of a chunk that lies inside the array; no cell to begin with.
struct Within<'a> {
    grid: &'a ChunkGrid,
    counts: Dims,
    low: [u64; MAX_RANK],
    width: [u64; MAX_RANK],
}

impl<'a> Within<'a> {
    fn new(grid: &'a ChunkGrid) -> Self {
        Self { grid, counts: grid.counts(), low: [0; MAX_RANK], width: [0; MAX_RANK] }
    }

    /// Moves to the chunk of a point, and gives its number.
    #[inline(always)]
    fn enter(
        &mut self,
        points: &mut impl Coordinates,
        point: usize,
        rank: usize,
    ) -> Result<u64, SpaceError> {
        let (dims, sizes) = (self.grid.dims(), self.grid.chunk());
        let mut chunk = 0;
        for axis in 0..rank {
            let at = points.at(axis, point);
            if at >= dims[axis] {
                let coord: Dims = (0..rank).map(|axis| points.at(axis, point)).collect();
                return Err(outside(&coord, dims));
            }
            let number = divide(at, sizes[axis]);
            chunk = chunk * self.counts[axis] + number;
            self.low[axis] = number * sizes[axis];
            self.width[axis] = sizes[axis].min(dims[axis] - self.low[axis]);
        }
        Ok(chunk)
    }
}

/// A division of 32 bits takes half as long.
#[inline(always)]
fn divide(at: u64, size: u64) -> u64 {
    match (u32::try_from(at), u32::try_from(size)) {
        (Ok(at), Ok(size)) => u64::from(at / size),
        _ => at / size,
    }
}

/// Appends the cells that points are in their chunk, which begins at `origin`.
pub(super) fn append_cells<I: Id>(
    points: &Points<'_>,
    stretches: impl Iterator<Item = Range<usize>>,
    origin: &[u64],
    chunk: &[u64],
    out: &mut Vec<I>,
) {
    dispatch(points, Locate { stretches, origin, chunk, out });
}

struct Locate<'a, S, I> {
    stretches: S,
    origin: &'a [u64],
    chunk: &'a [u64],
    out: &'a mut Vec<I>,
}

impl<S: Iterator<Item = Range<usize>>, I: Id> Work for Locate<'_, S, I> {
    type Output = ();

    #[inline(always)]
    fn run(self, mut points: impl Coordinates, rank: usize) {
        let (mut low, mut sizes) = ([0u64; MAX_RANK], [0u64; MAX_RANK]);
        low[..rank].copy_from_slice(&self.origin[..rank]);
        sizes[..rank].copy_from_slice(&self.chunk[..rank]);
        for stretch in self.stretches {
            self.out.extend(stretch.map(|point| {
                let mut cell = 0u64;
                for axis in 0..rank {
                    let at = points.at(axis, point) - low[axis];
                    cell = cell * sizes[axis] + at;
                }
                I::narrow(cell)
            }));
        }
    }
}

/// Hands out points and their values to chunks.
pub(super) struct HandOut<'a> {
    pub(super) range: Range<usize>,
    pub(super) grid: &'a ChunkGrid,
    /// The values of all points, and the bytes of one.
    pub(super) values: &'a [u8],
    pub(super) element: usize,
    /// The number of the first chunk.
    pub(super) first: u64,
    /// For each chunk, the number that its first cell would have in an endless chunk.
    pub(super) bases: &'a [u64],
    pub(super) parts: &'a mut [PointBand],
}

impl HandOut<'_> {
    pub(super) fn of(self, points: &Points<'_>) -> Result<(), SpaceError> {
        dispatch(points, self)
    }
}

impl Work for HandOut<'_> {
    type Output = Result<(), SpaceError>;

    #[inline(always)]
    fn run(self, mut points: impl Coordinates, rank: usize) -> Self::Output {
        let Self { range, grid, values, element, first, bases, parts } = self;
        let sizes = &grid.chunk()[..rank];
        let mut chunk = Within::new(grid);
        let mut point = range.start;
        while point < range.end {
            let number = (chunk.enter(&mut points, point, rank)? - first) as usize;
            let count = points.inside(point..range.end, rank, &chunk.low, &chunk.width);
            let stretch = point..point + count;
            let bytes = values.get(stretch.start * element..stretch.end * element);
            let part = &mut parts[number];
            part.values.extend_from_slice(bytes.unwrap_or_default());
            point = stretch.end;
            points.append(stretch, sizes, bases[number], &mut part.cells);
        }
        Ok(())
    }
}
