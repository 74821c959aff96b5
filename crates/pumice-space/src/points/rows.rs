//! Compressed rows with ascending columns, split by chunk in the order in which they lie in memory.

use super::{Column, Form, Points};
use crate::ChunkGrid;
use smallvec::SmallVec;
use std::ops::Range;

/// Columns that are looked at together: as many as a word has bits.
const BLOCK: usize = 64;

/// Blocks whose chunks are found before any of them is used: a processor stalls when it reads what
/// it has just written.
const TOGETHER: usize = 16;

/// About the cells that are split at a time, and the most rows of them.
const STRETCH: usize = 16384;
const MOST_LINES: usize = 128;

/// Cells for each chunk, of rows far from one another, that are sampled to see how cells are spread
/// over chunks.
const SAMPLED: usize = 128;

/// Columns are below this, so that [`Divisor`] is exact.
const MOST_COLUMNS: u64 = 1 << 30;

/// Compressed rows of a matrix in chunks.
///
/// ```
/// use pumice_space::{ChunkGrid, Points, RowGrid};
///
/// let grid = ChunkGrid::new(&[2, 6], &[2, 3])?;
/// let points = Points::compressed_rows(&[0u32, 2, 5][..], &[1u32, 4, 0, 2, 5][..])?;
/// let rows = RowGrid::new(&points, &grid).unwrap();
/// let mut pieces = Vec::new();
/// for lines in rows.stretches(0) {
///     rows.split(lines, |chunk, row, cells| pieces.push((chunk, row, cells)));
/// }
/// assert_eq!(pieces, [(0, 0, 0..1), (1, 0, 1..2), (0, 1, 2..4), (1, 1, 4..5)]);
/// assert_eq!(rows.neighbours(0), Some(0));
/// # Ok::<(), pumice_space::SpaceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RowGrid<'a> {
    pointers: Column<'a>,
    columns: &'a [u32],
    /// The number of given rows, of the array's rows, and of the columns that each may have.
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
        let small = u32::try_from(grid.cells_per_chunk()).is_ok() && width <= MOST_COLUMNS;
        let fits = small && lines as u64 <= rows && u32::try_from(columns.len()).is_ok();
        let few = lines.checked_mul(across).is_some_and(|places| places <= columns.len());
        if !fits || !few || height == 0 || side == 0 {
            return None;
        }
        let (height, side) = (usize::try_from(height).ok()?, u32::try_from(side).ok()?);
        Some(Self { pointers, columns, lines, rows, width, height, side, across })
    }

    /// The number of bands with rows.
    pub fn bands(&self) -> usize {
        self.lines.div_ceil(self.height)
    }

    /// Whether all rows of a band are among these.
    pub fn is_whole(&self, band: usize) -> bool {
        let end = band.saturating_add(1).saturating_mul(self.height) as u64;
        end.min(self.rows) <= self.lines as u64
    }

    /// The number of cells of a band that follow a neighbour in their row; `None` if the columns of
    /// a row do not ascend inside the array.
    #[inline(always)]
    pub fn neighbours(&self, band: usize) -> Option<usize> {
        let rows = self.lines(band);
        let (first, last) = (self.pointer(rows.start), self.pointer(rows.end));
        let all = self.columns.get(first..last)?;
        // All cells at once, as rows may be short; pairs across two rows are subtracted then.
        let Pairs { mut descents, mut neighbours, highest } = compare(all);
        if u64::from(highest) >= self.width && !all.is_empty() {
            return None;
        }
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

    /// The rows of a band, counted from the first of all.
    pub fn lines(&self, band: usize) -> Range<usize> {
        let first = band.saturating_mul(self.height).min(self.lines);
        first..first.saturating_add(self.height).min(self.lines)
    }

    /// The rows of a band, some at a time: so few that all that is known of their columns stays near the processor.
    pub fn stretches(&self, band: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let lines = self.lines(band);
        let mean = self.cells(lines.clone()).len() / lines.len().max(1);
        let few = (STRETCH / mean.max(1)).clamp(1, MOST_LINES);
        let end = lines.end;
        lines.step_by(few).map(move |first| first..end.min(first + few))
    }

    /// The positions of rows' cells among all.
    pub fn cells(&self, lines: Range<usize>) -> Range<usize> {
        self.pointer(lines.start)..self.pointer(lines.end)
    }

    /// About how many cells each chunk of a band has, from a sample of its rows.
    #[inline(always)]
    pub fn counts(&self, band: usize) -> Vec<usize> {
        let mut counts = vec![0; self.across];
        let by_side = Divisor::new(self.side);
        let lines = self.lines(band);
        let all = self.cells(lines.clone()).len();
        let step = (all / self.across.max(1) / SAMPLED).clamp(1, lines.len().max(1));
        let mut sampled = 0;
        for line in lines.step_by(step) {
            let cells = self.columns.get(self.cells(line..line + 1)).unwrap_or_default();
            sampled += cells.len() as u64;
            for column in cells {
                if let Some(count) = counts.get_mut(by_side.divide(*column) as usize) {
                    *count += 1;
                }
            }
        }
        counts
            .into_iter()
            .map(|count: u64| (count * all as u64 / sampled.max(1)) as usize)
            .collect()
    }

    fn pointer(&self, row: usize) -> usize {
        self.pointers.at(row).unwrap_or(0) as usize
    }

    /// Shows some rows of a band of which [`neighbours`](Self::neighbours) are known, each in as many
    /// pieces as there are chunks that it has cells in.
    ///
    /// Where pieces begin is found for many cells at once, before any piece is shown: the next one need not
    /// wait for the end of the one before.
    #[inline(always)]
    pub fn split(&self, lines: Range<usize>, mut to: impl TakeRows) {
        let Range { start: first, end: last } = self.cells(lines.clone());
        let first_row = lines.start % self.height;
        let ends: SmallVec<[usize; MOST_LINES]> = lines.map(|row| self.pointer(row + 1)).collect();
        let by_side = Divisor::new(self.side);
        let end = |row: usize| ends.get(row).copied().unwrap_or(usize::MAX);
        // The row whose end is to be marked next, that of the open piece, its chunk and its first cell.
        let (mut marked, mut row, mut chunk, mut start) = (0, 0, 0, first);
        // The chunk of the last cell of the block before, then those of some blocks.
        let mut all = [u32::MAX; TOGETHER * BLOCK + 1];
        for base in (first..last).step_by(BLOCK) {
            let len = (last - base).min(BLOCK);
            let block = (base - first) / BLOCK % TOGETHER * BLOCK;
            if block == 0 {
                all[0] = all[TOGETHER * BLOCK];
                let columns = self.columns.get(base..last).unwrap_or_default();
                by_side.divide_all(columns, &mut all[1..]);
            }
            let Some(chunks) = all[block..].first_chunk() else { break };
            let mut begins = changes(chunks) & (u64::MAX >> (BLOCK - len));
            while end(marked) < base + len {
                begins |= 1u64.checked_shl(end(marked).wrapping_sub(base) as u32).unwrap_or(0);
                marked += 1;
            }
            while begins != 0 {
                let bit = begins.trailing_zeros() as usize;
                if base + bit > start && (chunk as usize) < self.across {
                    to.take(chunk as usize, (first_row + row) as u32, start..base + bit);
                }
                (start, chunk) = (base + bit, chunks[bit + 1]);
                // A step without a decision, as it cannot be foreseen where rows end. Few rows are empty.
                row += usize::from(end(row) <= start);
                while end(row) <= start {
                    row += 1;
                }
                begins &= begins - 1;
            }
        }
        if last > start && (chunk as usize) < self.across {
            to.take(chunk as usize, (first_row + row) as u32, start..last);
        }
    }
}

/// A bit for each number but the first: whether it differs from the one before.
#[inline(always)]
fn changes(numbers: &[u32; BLOCK + 1]) -> u64 {
    let differ: [u8; BLOCK] = std::array::from_fn(|at| u8::from(numbers[at] != numbers[at + 1]));
    // Multiplied like this, the lowest bits of eight bytes stand side by side in the highest.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let (eights, _) = differ.as_chunks::<8>();
    let bits = eights.iter().map(|eight| u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56);
    bits.rev().fold(0, |all, bits| all << 8 | bits)
}

/// Divides numbers below [`MOST_COLUMNS`] by one that is known before, with a multiplication.
#[derive(Clone, Copy)]
struct Divisor {
    reciprocal: u32,
    shift: u32,
}

impl Divisor {
    /// `divisor` is not zero.
    fn new(divisor: u32) -> Self {
        // A multiplier of 31 bits, rounded up by less than one: the error of a quotient is less
        // than its distance to the next whole number.
        let shift = 31 + divisor.ilog2();
        Self { reciprocal: (1u64 << shift).div_ceil(u64::from(divisor)) as u32, shift }
    }

    #[inline(always)]
    fn divide(self, number: u32) -> u32 {
        ((u64::from(number) * u64::from(self.reciprocal)) >> self.shift) as u32
    }

    #[inline(always)]
    fn divide_all(self, numbers: &[u32], quotients: &mut [u32]) {
        for (quotient, number) in quotients.iter_mut().zip(numbers) {
            *quotient = self.divide(*number);
        }
    }
}

/// How many columns do not ascend, how many follow a neighbour, and the highest column.
struct Pairs {
    descents: u32,
    neighbours: u32,
    highest: u32,
}

/// Compares all columns, many at once. There are fewer than 2^32.
#[inline(always)]
fn compare(line: &[u32]) -> Pairs {
    let first = line.first().copied().unwrap_or(0);
    let mut pairs = Pairs { descents: 0, neighbours: 0, highest: first };
    for (lower, &upper) in line.iter().zip(line.get(1..).unwrap_or_default()) {
        pairs.descents += u32::from(*lower >= upper);
        pairs.neighbours += u32::from(upper.wrapping_sub(*lower) == 1);
        pairs.highest = pairs.highest.max(upper);
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_exact() {
        let most = MOST_COLUMNS as u32 - 1;
        let near = |at: u32| [at.saturating_sub(1), at, at.saturating_add(1)];
        let powers = (0..30).flat_map(|bits| near(1 << bits));
        for divisor in powers.chain([3, 7, 10, 641, 1_000, 715_827_883, most]).filter(|&by| by > 0)
        {
            let by = Divisor::new(divisor);
            let multiples = [1, 2, 3, most / divisor / 2, most / divisor];
            let numbers = multiples.map(|times| near(times.saturating_mul(divisor)));
            let mut block = [most; BLOCK];
            for (to, number) in block.iter_mut().zip(numbers.into_iter().flatten()) {
                *to = number.min(most);
            }
            let mut quotients = [0; BLOCK];
            by.divide_all(&block, &mut quotients);
            assert_eq!(quotients, block.map(|number| number / divisor), "by {divisor}");
        }
    }

    #[test]
    fn every_change_has_a_bit() {
        for bit in 0..BLOCK {
            let numbers = std::array::from_fn(|at| u32::from(at > bit));
            assert_eq!(changes(&numbers), 1 << bit);
        }
        assert_eq!(changes(&std::array::from_fn(|at| at as u32)), u64::MAX);
    }
}
