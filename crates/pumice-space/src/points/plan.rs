//! Points split by chunk.

use super::Points;
use super::scan::{self, Found, Id};
use crate::{ChunkGrid, Dims, SpaceError};
use std::ops::Range;
use std::sync::OnceLock;

/// With at most this many chunks, a counter for each costs nothing.
const FEW_CHUNKS: u64 = 1 << 12;

/// Fewer points are not worth a second thread.
const WORTH_SHARING: usize = 1 << 15;

/// Runs numbered tasks on some threads, as `pumice_cache::Executor` does.
pub(super) type Run<'r> = &'r dyn Fn(usize, &(dyn Fn(usize) + Sync));

/// Points of an array, split by chunk.
///
/// Within a chunk, points keep the order they were given in.
///
/// ```
/// use pumice_space::{ChunkGrid, PointPlan, Points};
///
/// let grid = ChunkGrid::new(&[8], &[4])?;
/// let points = Points::columns([&[6u32, 1, 7][..]])?;
/// let plan = PointPlan::new(points, 0..3, &grid)?;
/// let part = plan.parts().nth(1).unwrap();
/// assert_eq!(part.chunk().as_slice(), [1]);
/// assert_eq!(part.cells32(), [2, 3]);
/// assert_eq!(part.memory().collect::<Vec<_>>(), [0..1, 2..3]);
/// # Ok::<(), pumice_space::SpaceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PointPlan<'a> {
    points: Points<'a>,
    grid: ChunkGrid,
    /// The number of the first point.
    zero: usize,
    /// The stretches, by chunk and then in order.
    stretches: Vec<Stretch>,
    parts: Vec<Part>,
}

/// Neighbouring points of one chunk.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    first: u32,
    len: u32,
}

#[derive(Clone, Debug)]
struct Part {
    /// The chunk's number.
    number: u64,
    stretches: Range<usize>,
    count: usize,
}

impl<'a> PointPlan<'a> {
    /// The most points of one plan.
    pub const MOST_POINTS: usize = u32::MAX as usize;

    /// Splits the points with numbers `range`, of which there are fewer than 2^32.
    pub fn new(
        points: Points<'a>,
        range: Range<usize>,
        grid: &ChunkGrid,
    ) -> Result<Self, SpaceError> {
        Self::with_threads(points, range, grid, 1, &|count, task| (0..count).for_each(task))
    }

    /// [`new`](Self::new) with `threads` tasks that `run` runs.
    pub fn with_threads(
        points: Points<'a>,
        range: Range<usize>,
        grid: &ChunkGrid,
        threads: usize,
        run: Run<'_>,
    ) -> Result<Self, SpaceError> {
        points.check_rank(grid.dims())?;
        if range.end > points.len() || range.len() > Self::MOST_POINTS {
            return Err(SpaceError::TooComplex { limit: Self::MOST_POINTS as u64 });
        }
        let chunks = grid.chunk_count().ok_or(SpaceError::Overflow("number of chunks"))?;
        let tasks = Tasks { points: &points, range: range.clone(), grid, threads, run };
        let (stretches, parts) = if chunks <= FEW_CHUNKS.max(range.len() as u64) {
            count_out(&tasks.find::<u32>()?, range.len(), chunks as usize)
        } else {
            sort_out(&tasks.find::<u64>()?, range.len())
        };
        Ok(Self { points, grid: grid.clone(), zero: range.start, stretches, parts })
    }

    /// The chunks that have points, in row-major order.
    pub fn parts(&self) -> impl Iterator<Item = PointPart<'_>> {
        self.parts.iter().map(move |part| PointPart { plan: self, part })
    }
}

/// The points of one chunk; made by [`PointPlan::parts`].
#[derive(Clone, Copy, Debug)]
pub struct PointPart<'p> {
    plan: &'p PointPlan<'p>,
    part: &'p Part,
}

impl PointPart<'_> {
    /// The chunk's coordinates in the grid.
    pub fn chunk(&self) -> Dims {
        self.plan.grid.chunk_at(self.part.number).unwrap_or_default()
    }

    /// The number of points, repeated ones counted each time.
    pub fn count(&self) -> usize {
        self.part.count
    }

    /// Cells of a chunk.
    pub fn cells_per_chunk(&self) -> u64 {
        self.plan.grid.cells_per_chunk()
    }

    /// The numbers of the points: where they are in the caller's memory.
    pub fn memory(&self) -> impl Iterator<Item = Range<usize>> + Clone + '_ {
        let stretches = self.plan.stretches[self.part.stretches.clone()].iter();
        stretches.map(move |stretch| {
            let first = self.plan.zero + stretch.first as usize;
            first..first + stretch.len as usize
        })
    }

    /// The cell in the chunk of each point, for chunks of fewer than 2^32 cells.
    pub fn cells32(&self) -> Vec<u32> {
        self.cells()
    }

    /// The cell in the chunk of each point.
    pub fn cells64(&self) -> Vec<u64> {
        self.cells()
    }

    fn cells<I: Id>(&self) -> Vec<I> {
        let plan = self.plan;
        let origin = plan.grid.origin(&self.chunk());
        let mut cells = Vec::with_capacity(self.part.count);
        scan::append_cells(&plan.points, self.memory(), &origin, plan.grid.chunk(), &mut cells);
        cells
    }
}

/// The search for stretches, divided into tasks.
struct Tasks<'t, 'a> {
    points: &'t Points<'a>,
    range: Range<usize>,
    grid: &'t ChunkGrid,
    threads: usize,
    run: Run<'t>,
}

impl Tasks<'_, '_> {
    /// Lists of stretches, one after another.
    fn find<I: Id>(&self) -> Result<Vec<Vec<Found<I>>>, SpaceError> {
        let (range, zero) = (&self.range, self.range.start);
        let count = self.threads.min(range.len() / WORTH_SHARING).max(1);
        let size = range.len().div_ceil(count);
        let results: Vec<OnceLock<_>> = (0..count).map(|_| OnceLock::new()).collect();
        (self.run)(count, &|task| {
            let start = range.start + task * size;
            let part = start..(start + size).min(range.end);
            let _ = results[task].set(scan::find::<I>(self.points, part, zero, self.grid));
        });
        let all = results.into_iter().filter_map(OnceLock::into_inner);
        all.collect::<Result<Vec<_>, _>>()
    }
}

/// Visits all stretches with their chunk, in order.
fn for_each<I: Id>(found: &[Vec<Found<I>>], points: usize, mut visit: impl FnMut(u64, Stretch)) {
    for (at, list) in found.iter().enumerate() {
        let after = found[at + 1..].iter().find_map(|list| list.first());
        let end = after.map_or(points as u32, |next| next.first);
        for (at, stretch) in list.iter().enumerate() {
            let next = list.get(at + 1).map_or(end, |next| next.first);
            let len = next - stretch.first;
            visit(stretch.chunk.wide(), Stretch { first: stretch.first, len });
        }
    }
}

/// Puts stretches in order with a counter per chunk.
fn count_out(found: &[Vec<Found<u32>>], points: usize, chunks: usize) -> (Vec<Stretch>, Vec<Part>) {
    let mut next = vec![0u32; chunks];
    found.iter().flatten().for_each(|stretch| next[stretch.chunk as usize] += 1);
    let mut parts = Vec::new();
    let mut sum = 0;
    for (number, next) in next.iter_mut().enumerate() {
        let here = *next as usize;
        *next = sum as u32;
        if here > 0 {
            parts.push(Part { number: number as u64, stretches: sum..sum + here, count: 0 });
            sum += here;
        }
    }
    let mut stretches = vec![Stretch { first: 0, len: 0 }; sum];
    for_each(found, points, |chunk, stretch| {
        let place = &mut next[chunk as usize];
        stretches[*place as usize] = stretch;
        *place += 1;
    });
    count_points(&stretches, &mut parts);
    (stretches, parts)
}

/// Puts stretches in order by sorting them.
fn sort_out(found: &[Vec<Found<u64>>], points: usize) -> (Vec<Stretch>, Vec<Part>) {
    let mut all = Vec::with_capacity(found.iter().map(Vec::len).sum());
    for_each(found, points, |chunk, stretch| all.push((chunk, stretch)));
    // Stable: within a chunk, the order of the points stays.
    all.sort_by_key(|(chunk, _)| *chunk);
    let mut parts: Vec<Part> = Vec::new();
    for (at, (number, _)) in all.iter().enumerate() {
        match parts.last_mut() {
            Some(part) if part.number == *number => part.stretches.end = at + 1,
            _ => parts.push(Part { number: *number, stretches: at..at + 1, count: 0 }),
        }
    }
    let stretches: Vec<Stretch> = all.into_iter().map(|(_, stretch)| stretch).collect();
    count_points(&stretches, &mut parts);
    (stretches, parts)
}

fn count_points(stretches: &[Stretch], parts: &mut [Part]) {
    for part in parts {
        let here = &stretches[part.stretches.clone()];
        part.count = here.iter().map(|stretch| stretch.len as usize).sum();
    }
}
