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
        let (first, last) = (self.pointer(rows.start), self.pointer(rows.end));
        let all = self.columns.get(first..last)?;
        // The largest number there is lies below no limit of a chunk.
        let width = self.width.min(u64::from(u32::MAX));
        if all.iter().fold(0, |highest, &at| highest.max(at)) as u64 >= width && !all.is_empty() {
            return None;
        }
        // All cells at once, as rows may be short; then what is so between two rows is taken off.
        let Pairs { mut descents, mut neighbours } = compare(all);
        let mut start = first;
        for row in rows {
            let end = self.pointer(row + 1);
            if end < start {
                return None;
            }
            if start > first && end > start {
                let between = compare(all.get(start - first - 1..=start - first)?);
                descents -= between.descents;
                neighbours -= between.neighbours;
            }
            start = end;
        }
        (descents == 0).then_some(neighbours as usize)
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
        let by_side = Divisor::new(self.side);
        for row in rows {
            let end = self.pointer(row + 1);
            // From cell to cell, not from chunk to chunk: whether a chunk has cells cannot be foreseen.
            while let Some(&column) = self.columns.get(start).filter(|_| start < end) {
                let chunk = by_side.divide(column);
                let limit = chunk.saturating_add(1).saturating_mul(self.side);
                let here = count_below(self.columns, start..end, limit);
                if chunk as usize >= self.across || here == 0 {
                    break;
                }
                to.take(chunk as usize, (row - first) as u32, start..start + here);
                start += here;
            }
            start = end;
        }
    }
}

/// Divides by a number that is known before, with a multiplication.
#[derive(Clone, Copy)]
struct Divisor {
    reciprocal: u64,
    divisor: u32,
}

impl Divisor {
    /// `divisor` is not zero.
    fn new(divisor: u32) -> Self {
        // Rounded up: exact for all numbers of 32 bits. That of one does not fit.
        Self { reciprocal: (u64::MAX / u64::from(divisor)).wrapping_add(1), divisor }
    }

    #[inline(always)]
    fn divide(self, number: u32) -> u32 {
        match self.divisor {
            1 => number,
            _ => ((u128::from(number) * u128::from(self.reciprocal)) >> 64) as u32,
        }
    }
}

/// How many columns do not lie behind the one before them, and how many follow a neighbour.
struct Pairs {
    descents: u32,
    neighbours: u32,
}

/// All are looked at, so that many are compared at once. There are fewer than 2^32.
#[inline(always)]
fn compare(line: &[u32]) -> Pairs {
    let mut pairs = Pairs { descents: 0, neighbours: 0 };
    for pair in line.windows(2) {
        pairs.descents += u32::from(pair[0] >= pair[1]);
        pairs.neighbours += u32::from(pair[1].wrapping_sub(pair[0]) == 1);
    }
    pairs
}

/// As many zeros as columns of a block, then as many numbers that are below no limit.
const BEYOND: [u32; 2 * BLOCK] = {
    let mut beyond = [0; 2 * BLOCK];
    let mut at = BLOCK;
    while at < 2 * BLOCK {
        beyond[at] = u32::MAX;
        at += 1;
    }
    beyond
};

/// How many columns in `range`, which ascend, are below a limit.
///
/// A block may reach beyond the range: few cells cost no loop of as many steps, which is hard to foresee.
#[inline(always)]
fn count_below(columns: &[u32], range: Range<usize>, limit: u32) -> usize {
    let mut at = range.start;
    while let Some(block) = columns.get(at..).and_then(|rest| rest.first_chunk::<BLOCK>()) {
        let left = (range.end - at).min(BLOCK);
        let Some(beyond) = BEYOND[BLOCK - left..].first_chunk::<BLOCK>() else { break };
        let below = |(column, beyond): (&u32, &u32)| u32::from((column | beyond) < limit);
        let here = block.iter().zip(beyond).map(below).sum::<u32>() as usize;
        at += here;
        if here < BLOCK {
            return at - range.start;
        }
    }
    let rest = columns.get(at..range.end).unwrap_or_default();
    at - range.start + rest.iter().map(|&at| u32::from(at < limit)).sum::<u32>() as usize
}
