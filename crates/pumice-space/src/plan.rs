//! Splits a transfer between file and memory by chunk.
//!
//! | file selection | memory selection | how |
//! |---|---|---|
//! | a box in one chunk that is a line there | the selected cells one after another | at once ([`line`]) |
//! | all, box, hyperslab, one point | one stretch of the buffer, or a box or single-cell hyperslab of the same shape (dimensions of size one aside) | lazily: each chunk by arithmetic when it is asked for ([`product`]) |
//! | anything | anything of the same count | both sides run by run, sorted by chunk ([`listed`]) |
//!
//! Cells pair up in order: row-major, except points, which keep the order they were given in. Where
//! the file selection repeats a point, its segments come in the caller's order too, so that of
//! several values written to one cell the last one stays.

mod line;
mod listed;
mod product;

use crate::extent::{check_rank, same_rank};
use crate::{CellSet, ChunkGrid, Dims, Run, Selection, SpaceError};
use line::LinePart;
use listed::{ListedPart, ListedPlan};
use product::{ProductPart, ProductPlan, ProductSegments};

/// Cells that are neighbours both in the chunk and in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Segment {
    /// The first cell, linear in the chunk.
    pub cell: u64,
    /// The first element, linear in the memory buffer.
    pub memory: u64,
    /// Its length.
    pub len: u64,
}

/// Segments of one length at equal distances, both in the chunk and in memory: a part of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// The first of them.
    pub first: Segment,
    /// The number of segments.
    pub count: u64,
    /// Cells from one to the next.
    pub cell_step: u64,
    /// Elements from one to the next in memory.
    pub memory_step: u64,
}

impl Line {
    /// One segment.
    pub fn of(first: Segment) -> Self {
        Self { first, count: 1, cell_step: 0, memory_step: 0 }
    }

    /// Takes the first segment off.
    #[inline]
    fn take(&mut self) -> Option<Segment> {
        self.count = self.count.checked_sub(1)?;
        let first = self.first;
        self.first.cell = first.cell.wrapping_add(self.cell_step);
        self.first.memory = first.memory.wrapping_add(self.memory_step);
        Some(first)
    }

    /// The segments one by one.
    pub fn segments(self) -> impl Iterator<Item = Segment> {
        (0..self.count).map(move |i| Segment {
            cell: self.first.cell + i * self.cell_step,
            memory: self.first.memory + i * self.memory_step,
            len: self.first.len,
        })
    }
}

/// Splits a transfer between `file` (cells of an array of shape `extent`, cut by `grid`) and
/// `memory` (cells of a buffer of shape `memory_dims`) by chunk.
///
/// Both selections must lie inside their shapes and select equally many cells.
///
/// ```
/// use pumice_space::{ChunkGrid, Segment, Selection, plan};
///
/// let grid = ChunkGrid::new(&[8], &[4])?;
/// let points = Selection::points(1, vec![6, 1, 7])?;
/// let parts: Vec<_> = plan(&points, &[8], &grid, &Selection::all(), &[3])?.collect();
/// assert_eq!(parts.len(), 2);
/// assert_eq!(parts[1].chunk.as_slice(), [1]);
///
/// let segments: Vec<Segment> = parts[1].segments(grid.chunk()).collect();
/// assert_eq!(segments[0], Segment { cell: 2, memory: 0, len: 1 });
/// assert_eq!(segments[1], Segment { cell: 3, memory: 2, len: 1 });
/// # Ok::<(), pumice_space::SpaceError>(())
/// ```
pub fn plan(
    file: &Selection,
    extent: &[u64],
    grid: &ChunkGrid,
    memory: &Selection,
    memory_dims: &[u64],
) -> Result<Plan, SpaceError> {
    same_rank(grid.rank(), extent.len())?;
    if let Some(axis) = extent.iter().zip(grid.dims()).position(|(a, b)| a != b) {
        return Err(SpaceError::InvalidShape { axis, reason: "grid of another extent" });
    }
    check_rank(memory_dims.len())?;
    file.check(extent)?;
    memory.check(memory_dims)?;
    let (in_file, in_memory) = (file.count(extent), memory.count(memory_dims));
    if in_file != in_memory {
        return Err(SpaceError::CountMismatch { file: in_file, memory: in_memory });
    }
    if in_file == 0 {
        return Ok(Plan(Source::Listed(ListedPlan::empty(grid))));
    }
    split(file, grid, memory, memory_dims)
}

/// [`plan`] for a buffer that holds the selected cells one after another.
///
/// ```
/// use pumice_space::{ChunkGrid, Segment, Selection, plan_packed};
///
/// let grid = ChunkGrid::new(&[8, 8], &[4, 4])?;
/// let block = Selection::block(&[1, 4], &[2, 4])?;
/// let part = plan_packed(&block, &grid)?.next().unwrap();
/// assert_eq!(part.chunk.as_slice(), [0, 1]);
/// assert_eq!(part.segments(grid.chunk()).next(), Some(Segment { cell: 4, memory: 0, len: 8 }));
/// # Ok::<(), pumice_space::SpaceError>(())
/// ```
pub fn plan_packed(file: &Selection, grid: &ChunkGrid) -> Result<Plan, SpaceError> {
    file.check(grid.dims())?;
    if let Some((chunk, part)) = line::single(file, grid) {
        return Ok(Plan(Source::One(Some(ChunkPart { chunk, part: Part::Line(part) }))));
    }
    if file.count(grid.dims()) == 0 {
        return Ok(Plan(Source::Listed(ListedPlan::empty(grid))));
    }
    split(file, grid, &Selection::all(), &file.shape(grid.dims()))
}

/// Both selections lie inside their shapes and have equally many cells, at least one.
fn split(
    file: &Selection,
    grid: &ChunkGrid,
    memory: &Selection,
    memory_dims: &[u64],
) -> Result<Plan, SpaceError> {
    if let Some(plan) = ProductPlan::new(file, grid, memory, memory_dims) {
        return Ok(Plan(Source::Product(Box::new(plan))));
    }
    ListedPlan::new(file, grid, memory, memory_dims).map(Source::Listed).map(Plan)
}

/// The chunks of a transfer, each once, in row-major order; made by [`plan`].
#[derive(Clone, Debug)]
pub struct Plan(Source);

#[derive(Clone, Debug)]
enum Source {
    One(Option<ChunkPart>),
    Product(Box<ProductPlan>),
    Listed(ListedPlan),
}

impl Plan {
    /// The number of chunks that are left: exact, or too large where a stride skips chunks.
    pub fn chunk_count_hint(&self) -> u64 {
        match &self.0 {
            Source::One(part) => u64::from(part.is_some()),
            Source::Product(plan) => plan.chunk_count_hint(),
            Source::Listed(plan) => plan.chunk_count(),
        }
    }
}

impl Iterator for Plan {
    type Item = ChunkPart;

    fn next(&mut self) -> Option<ChunkPart> {
        match &mut self.0 {
            Source::One(part) => part.take(),
            Source::Product(plan) => plan.next(),
            Source::Listed(plan) => {
                let (chunk, part) = plan.next()?;
                Some(ChunkPart { chunk, part: Part::Listed(Box::new(part)) })
            }
        }
    }
}

/// The part of a transfer that concerns one chunk.
#[derive(Clone, Debug)]
pub struct ChunkPart {
    /// The chunk's coordinates in the grid.
    pub chunk: Dims,
    part: Part,
}

#[derive(Clone, Debug)]
enum Part {
    Line(LinePart),
    Product(Box<ProductPart>),
    Listed(Box<ListedPart>),
}

impl ChunkPart {
    /// The selected cells, relative to a chunk of shape `chunk_dims`. Repeated points are there
    /// once.
    pub fn cells(&self, chunk_dims: &[u64]) -> Selection {
        match &self.part {
            Part::Line(part) => part.cells(chunk_dims),
            Part::Product(part) => part.cells.clone(),
            Part::Listed(part) => part.cells().clone(),
        }
    }

    /// The selected cells as a set, relative to a chunk of shape `chunk_dims`.
    ///
    /// Faster than going through [`ChunkPart::cells`].
    pub fn cell_set(&self, chunk_dims: &[u64]) -> CellSet {
        let cells = crate::extent::product(chunk_dims).unwrap_or(0);
        let mut collector = match &self.part {
            Part::Line(_) | Part::Product(_) => CellSet::collect_runs(cells, 0),
            Part::Listed(part) => CellSet::collect_runs(cells, part.segments().len() as u64),
        };
        match &self.part {
            Part::Line(part) => part.runs().for_each(|run| collector.add(run)),
            Part::Product(part) => {
                part.cells.runs(chunk_dims).for_each(|run| collector.add(run));
            }
            Part::Listed(part) => {
                let runs = part.segments().iter();
                let runs = runs.map(|segment| Run { start: segment.cell, len: segment.len });
                runs.filter(|run| run.end() <= cells).for_each(|run| collector.add(run));
            }
        }
        collector.finish()
    }

    /// The pieces to copy: ascending in cell, unless the file selection is points, which come in
    /// the caller's order and may repeat. `chunk_dims` is the shape of a whole chunk.
    pub fn segments(&self, chunk_dims: &[u64]) -> Segments<'_> {
        Segments(match &self.part {
            Part::Line(part) => Steps::Line(part.line),
            Part::Product(part) => Steps::Product(Box::new(part.segments(chunk_dims))),
            Part::Listed(part) => Steps::Listed(part.segments().iter()),
        })
    }

    /// The number of cells that move; points that repeat count each time.
    pub fn count(&self) -> u64 {
        match &self.part {
            Part::Line(part) => part.count(),
            Part::Product(part) => part.count(),
            Part::Listed(part) => part.segments().iter().map(|segment| segment.len).sum(),
        }
    }

    /// Whether every cell of the chunk that lies inside the array is selected.
    pub fn is_whole(&self) -> bool {
        match &self.part {
            Part::Line(part) => part.count() == part.inside,
            Part::Product(part) => part.count() == part.inside,
            Part::Listed(part) => part.is_whole(),
        }
    }

    /// The cells that move, per cell of the chunk that lies inside the array.
    pub fn share(&self) -> f32 {
        let inside = match &self.part {
            Part::Line(part) => part.inside,
            Part::Product(part) => part.inside,
            Part::Listed(part) => part.inside,
        };
        self.count() as f32 / inside.max(1) as f32
    }

    /// Whether the segments ascend in cell without repetition; `false` only for points.
    pub fn is_ascending(&self) -> bool {
        match &self.part {
            Part::Line(_) | Part::Product(_) => true,
            Part::Listed(part) => part.ascending,
        }
    }
}

/// Iterates over the [`Segment`]s of a [`ChunkPart`].
#[derive(Clone, Debug)]
pub struct Segments<'a>(Steps<'a>);

#[derive(Clone, Debug)]
enum Steps<'a> {
    /// The rest of a line; its count may be zero.
    Line(Line),
    Product(Box<ProductSegments>),
    Listed(std::slice::Iter<'a, Segment>),
}

impl Segments<'_> {
    /// The next segments at equal distances: a column's are one line for each chunk.
    ///
    /// ```
    /// use pumice_space::{ChunkGrid, Selection, plan};
    ///
    /// let grid = ChunkGrid::new(&[8, 8], &[4, 4])?;
    /// let column = Selection::block(&[0, 2], &[8, 1])?;
    /// let part = plan(&column, &[8, 8], &grid, &Selection::all(), &[8, 1])?.next().unwrap();
    /// let line = part.segments(grid.chunk()).next_line().unwrap();
    /// assert_eq!((line.first.cell, line.count, line.cell_step), (2, 4, 4));
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn next_line(&mut self) -> Option<Line> {
        match &mut self.0 {
            Steps::Line(line) => {
                let rest = std::mem::replace(line, Line { count: 0, ..*line });
                (rest.count > 0).then_some(rest)
            }
            Steps::Product(steps) => steps.next_line(),
            Steps::Listed(steps) => steps.next().copied().map(Line::of),
        }
    }
}

impl Iterator for Segments<'_> {
    type Item = Segment;

    #[inline]
    fn next(&mut self) -> Option<Segment> {
        match &mut self.0 {
            Steps::Line(line) => line.take(),
            Steps::Product(steps) => steps.next(),
            Steps::Listed(steps) => steps.next().copied(),
        }
    }
}
