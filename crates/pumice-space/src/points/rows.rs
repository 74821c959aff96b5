//! Compressed rows whose columns ascend, split by chunk in the order in which they lie in memory.

use super::{Column, Form, Points};
use crate::ChunkGrid;
use std::ops::Range;

/// Columns that are compared at a time.
const BLOCK: usize = 32;

/// Compressed rows of a matrix in chunks.
///
/// ```
/// use pumice_space::{ChunkGrid, Points, RowGrid};
///
/// let grid = ChunkGrid::new(&[2, 6], &[2, 3])?;
/// let points = Points::compressed_rows(&[0u32, 2, 5][..], &[1u32, 4, 0, 2, 5][..])?;
/// let rows = RowGrid::new(&points, &grid).unwrap();
/// let mut pieces = Vec::new();
/// rows.split(0, |chunk, row, cells| pieces.push((chunk, row, cells)));
/// assert_eq!(pieces, [(0, 0, 0..1), (1, 0, 1..2), (0, 1, 2..4), (1, 1, 4..5)]);
/// assert_eq!(rows.neighbours(0), Some(0));
/// # Ok::<(), pumice_space::SpaceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RowGrid<'a> {
    pointers: Column<'a>,
    columns: &'a [u32],
    /// How many rows there are, how many the array has, and the columns that each may have.
    lines: usize,
    rows: u64,
    width: u64,
    /// The sides of a chunk.
    height: usize,
    side: u32,
    /// Chunks side by side.
    across: usize,
}

/// Takes pieces of rows. Closures do; but a long one may not be inlined where loops are compiled for
/// other processors.
pub trait TakeRows {
    /// Takes a piece: the number of the chunk in its band, that of the row in the chunk, and where the
    /// cells are among all.
    fn take(&mut self, chunk: usize, row: u32, cells: Range<usize>);
}

impl<F: FnMut(usize, u32, Range<usize>)> TakeRows for F {
    #[inline(always)]
    fn take(&mut self, chunk: usize, row: u32, cells: Range<usize>) {
        self(chunk, row, cells);
    }
}

impl<'a> RowGrid<'a> {
    /// `None` if the points are not compressed rows of 32-bit columns, or if most rows have no cell in most
    /// chunks.
    pub fn new(points: &Points<'a>, grid: &ChunkGrid) -> Option<Self> {
        let Form::Compressed { axis: 0, pointers, indices: Column::U32(columns) } = points.0 else {
            return None;
        };
        let (&[rows, width], &[height, side]) = (grid.dims(), grid.chunk()) else { return None };
        let lines = pointers.len().checked_sub(1)?;
        let across = usize::try_from(*grid.counts().get(1)?).ok()?;
        let small = u32::try_from(grid.cells_per_chunk()).is_ok() && width <= 1 << 32;
        let fits = small && lines as u64 <= rows && u32::try_from(columns.len()).is_ok();
        let few = lines.checked_mul(across).is_some_and(|places| places <= columns.len());
        if !fits || !few || height == 0 || side == 0 {
            return None;
        }
        let (height, side) = (usize::try_from(height).ok()?, u32::try_from(side).ok()?);
        Some(Self { pointers, columns, lines, rows, width, height, side, across })
    }

    /// How many bands of chunks have rows.
    pub fn bands(&self) -> usize {
        self.lines.div_ceil(self.height)
    }

    /// Whether no rows of a band will come later: all that the array has are here.
    pub fn is_whole(&self, band: usize) -> bool {
        let end = band.saturating_add(1).saturating_mul(self.height) as u64;
        end.min(self.rows) <= self.lines as u64
    }

    /// How many cells of a band follow a neighbour in their row; `None` if the columns of a row do not
    /// ascend inside the array.
    #[inline(always)]
    pub fn neighbours(&self, band: usize) -> Option<usize> {
        let rows = self.rows_of(band);
        let mut start = self.pointer(rows.start);
        let mut neighbours = 0;
        // The largest number there is lies below no limit of a chunk.
        let width = self.width.min(u64::from(u32::MAX));
        for row in rows {
            let end = self.pointer(row + 1);
            let line = self.columns.get(start..end)?;
            if line.last().is_some_and(|&last| u64::from(last) >= width) {
                return None;
            }
            let (ascends, here) = compare(line);
            if !ascends {
                return None;
            }
            neighbours += here as usize;
            start = end;
        }
        Some(neighbours)
    }

    /// The columns of all cells.
    pub fn columns(&self) -> &'a [u32] {
        self.columns
    }

    /// How many cells a band has.
    pub fn count(&self, band: usize) -> usize {
        let rows = self.rows_of(band);
        self.pointer(rows.end).saturating_sub(self.pointer(rows.start))
    }

    fn pointer(&self, row: usize) -> usize {
        self.pointers.at(row).unwrap_or(0) as usize
    }

    fn rows_of(&self, band: usize) -> Range<usize> {
        let first = band.saturating_mul(self.height).min(self.lines);
        first..first.saturating_add(self.height).min(self.lines)
    }

    /// Shows the rows of a band of which [`neighbours`](Self::neighbours) are known, each in as many
    /// pieces as there are chunks that it has cells in.
    #[inline(always)]
    pub fn split(&self, band: usize, mut to: impl TakeRows) {
        let rows = self.rows_of(band);
        let first = rows.start;
        let mut start = self.pointer(first);
        for row in rows {
            let end = self.pointer(row + 1);
            let line = self.columns.get(start..end).unwrap_or_default();
            let (mut at, mut limit) = (0, 0u32);
            for chunk in 0..self.across {
                limit = limit.saturating_add(self.side);
                let here = count_below(&line[at..], limit);
                if here > 0 {
                    to.take(chunk, (row - first) as u32, start + at..start + at + here);
                }
                at += here;
            }
            start = end;
        }
    }
}

/// Whether columns ascend without repetition, and how many follow a neighbour; all are looked at, so
/// that many are compared at once.
#[inline(always)]
fn compare(line: &[u32]) -> (bool, u32) {
    line.windows(2).fold((true, 0), |(all, neighbours), pair| {
        (all & (pair[0] < pair[1]), neighbours + u32::from(pair[1].wrapping_sub(pair[0]) == 1))
    })
}

/// How many of some columns that ascend are below a limit.
#[inline(always)]
fn count_below(line: &[u32], limit: u32) -> usize {
    let mut count = 0;
    while let Some(block) = line.get(count..).and_then(|rest| rest.first_chunk::<BLOCK>()) {
        let here = block.iter().map(|&at| u32::from(at < limit)).sum::<u32>() as usize;
        count += here;
        if here < BLOCK {
            return count;
        }
    }
    let rest = line.get(count..).unwrap_or_default();
    count + rest.iter().map(|&at| u32::from(at < limit)).sum::<u32>() as usize
}
