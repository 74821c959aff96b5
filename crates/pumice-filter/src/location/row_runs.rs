//! Cells of a matrix that mostly have neighbours, as rows of columns: runs are found while rows come.
//!
//! What comes out are runs as they are, without a difference between rows: for locations that no
//! compressor follows, and that shall be written and read fast.

use super::compact;
use super::plain_length::{Counts, length};
use super::plan::{Kind, choose};
use super::rows::RowCells;
use super::{MOST_RUNS, scratch};
use std::ops::Range;

/// Encodes the cells of a chunk that is a part of a matrix, run by run.
///
/// ```
/// use pumice_filter::location::RunEncoder;
///
/// let mut encoder = RunEncoder::new([100, 1000], 5000).unwrap();
/// for row in 0..100 {
///     let columns: Vec<u32> = (5000 + row..5020 + row).collect();
///     encoder.row(row, &columns, 0..20);
/// }
/// let cells = encoder.finish();
/// assert_eq!(cells.to_set()?.len(), 2000);
/// # Ok::<(), pumice_filter::FilterError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RunEncoder {
    dims: [u64; 2],
    first_column: u32,
    /// Cells before each run, since the one before, and the length of each.
    gaps: Vec<u32>,
    lengths: Vec<u32>,
    /// The cell after the last.
    next: u32,
    /// The last row and its place among all cells.
    before: Option<(u32, Range<usize>)>,
    highest: u32,
    irregular: bool,
    ascends: bool,
    count: u64,
    blocks: u64,
}

impl RunEncoder {
    /// For a chunk of `dims` cells, fewer than 2^32, that begins at `first_column`.
    pub fn new(dims: [u64; 2], first_column: u32) -> Option<Self> {
        u32::try_from(dims[0].checked_mul(dims[1])?).ok()?;
        let [mut gaps, mut lengths] = [(); 2].map(|()| scratch::take_numbers(0));
        gaps.clear();
        lengths.clear();
        Some(Self {
            dims,
            first_column,
            gaps,
            lengths,
            next: 0,
            before: None,
            highest: 0,
            irregular: false,
            ascends: true,
            count: 0,
            blocks: 0,
        })
    }

    /// Takes the cells of a row, counted from the chunk's first: those of `columns` in `range`. Rows come
    /// in order, columns ascend inside the chunk.
    #[inline(always)]
    pub fn row(&mut self, row: u32, columns: &[u32], range: Range<usize>) {
        let Some(line) = columns.get(range.clone()) else { return };
        let Some(&last) = line.last() else { return };
        let base = row.wrapping_mul(self.dims[1] as u32).wrapping_sub(self.first_column);
        self.highest = self.highest.max(row).max(last.wrapping_sub(self.first_column));
        self.count += line.len() as u64;
        let (mut start, mut runs) = (0, 1);
        for at in 1..line.len() {
            if line[at].wrapping_sub(line[at - 1]) != 1 {
                self.put(base.wrapping_add(line[start]), (at - start) as u32);
                (start, runs) = (at, runs + 1);
            }
        }
        self.put(base.wrapping_add(line[start]), (line.len() - start) as u32);
        let before = self.before.replace((row, range));
        let (same, below) = match before {
            Some((above, other)) => {
                (columns.get(other) == Some(line), above.wrapping_add(1) == row)
            }
            None => (true, false),
        };
        self.irregular |= !same;
        // A row like the one above it goes on with its blocks.
        self.blocks += if same && below { 0 } else { runs };
    }

    /// Appends a run; one that begins where the last ended is a part of it.
    #[inline(always)]
    fn put(&mut self, start: u32, len: u32) {
        self.ascends &= start >= self.next;
        let gap = start.wrapping_sub(self.next);
        self.next = start.wrapping_add(len);
        match self.lengths.last_mut() {
            Some(last) if gap == 0 => *last = last.wrapping_add(len),
            Some(_) => {
                self.gaps.push(gap.wrapping_sub(1));
                self.lengths.push(len - 1);
            }
            None => {
                self.gaps.push(gap);
                self.lengths.push(len - 1);
            }
        }
    }

    /// The cells.
    pub fn finish(self) -> RowCells {
        let mut bytes = Vec::with_capacity(2 * self.gaps.len() + 64);
        compact::encode_runs(&self.dims, &self.gaps, &self.lengths, &mut bytes);
        let unfiltered = self.plain_length().filter(|length| (bytes.len() as u64) < *length);
        scratch::give_numbers(self.gaps);
        scratch::give_numbers(self.lengths);
        RowCells { bytes, unfiltered }
    }

    /// The length of the plain form, if these cells are best written as runs.
    fn plain_length(&self) -> Option<u64> {
        let (total, runs) = (self.dims[0] * self.dims[1], self.gaps.len() as u64);
        let inside = self.ascends && u64::from(self.next) <= total;
        if !inside || !self.irregular || runs > MOST_RUNS {
            return None;
        }
        if choose(total, self.count, runs) != (Kind::Runs, false) {
            return None;
        }
        let (blocks, highest) = (self.blocks, u64::from(self.highest));
        length(&self.dims, Counts { blocks, highest })
    }
}
