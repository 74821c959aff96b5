//! Cells of a matrix that mostly have neighbours, as rows of columns: runs are found while rows come.
//!
//! Locations that no compressor follows, and that shall be written and read fast, are runs as they are,
//! without a difference between rows, unless their plain form would be shorter. All others go the way of sets
//! of cells, from runs on.

use super::breaks::{STEP, breaks};
use super::compact;
use super::plain_length::{Counts, length};
use super::plan::{Kind, choose};
use super::rows::RowCells;
use super::{Aim, MOST_RUNS, scratch};
use crate::wide::Wide;
use std::ops::Range;

/// Cells for each run from which on a gap, in the mean, takes more than a byte.
const WIDE_GAP: u64 = 512;

/// Encodes the cells of a chunk that is a part of a matrix, run by run.
///
/// ```
/// use pumice_filter::location::{Aim, RunEncoder};
///
/// let mut encoder = RunEncoder::new([100, 1000], 5000, Aim::Fast).unwrap();
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
    aim: Aim,
    wide: Option<Wide>,
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
    pub fn new(dims: [u64; 2], first_column: u32, aim: Aim) -> Option<Self> {
        u32::try_from(dims[0].checked_mul(dims[1])?).ok()?;
        let [mut gaps, mut lengths] = [(); 2].map(|()| scratch::take_numbers(0));
        gaps.clear();
        lengths.clear();
        Some(Self {
            dims,
            first_column,
            aim,
            wide: Wide::detect(),
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
        let runs = self.put_runs(base, columns, range.clone());
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

    /// Appends the runs of a row of at least one column; how many there are.
    #[inline(always)]
    fn put_runs(&mut self, base: u32, columns: &[u32], range: Range<usize>) -> u64 {
        let (mut start, mut runs, mut at) = (range.start, 1, range.start + 1);
        let column = |at: usize| columns.get(at).copied().unwrap_or(0);
        while at < range.end {
            let len = (range.end - at).min(STEP);
            let lower = columns.get(at - 1..).and_then(|lower| lower.first_chunk());
            let upper = columns.get(at..).and_then(|upper| upper.first_chunk());
            let mut ends = match lower.zip(upper) {
                Some((lower, upper)) => breaks(self.wide, lower, upper),
                // At the end of the list.
                None => (0..len).fold(0, |ends, i| {
                    let step = column(at + i).wrapping_sub(column(at + i - 1));
                    ends | u32::from(step != 1) << i
                }),
            };
            ends &= (u64::MAX >> (64 - len)) as u32;
            runs += u64::from(ends.count_ones());
            while ends != 0 {
                let end = at + ends.trailing_zeros() as usize;
                self.put(base.wrapping_add(column(start)), (end - start) as u32);
                start = end;
                ends &= ends - 1;
            }
            at += len;
        }
        self.put(base.wrapping_add(column(start)), (range.end - start) as u32);
        runs
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
        let unfiltered = self.encode(&mut bytes);
        scratch::give_numbers(self.gaps);
        scratch::give_numbers(self.lengths);
        RowCells { bytes, unfiltered }
    }

    /// Replaces `out` by the encoded cells; the length of the plain form, if this is how they are written.
    fn encode(&self, out: &mut Vec<u8>) -> Option<u64> {
        let (total, runs) = (self.dims[0] * self.dims[1], self.gaps.len() as u64);
        let inside = self.ascends && u64::from(self.next) <= total;
        if !inside || !self.irregular || runs > MOST_RUNS {
            compact::encode_runs(&self.dims, &self.gaps, &self.lengths, out);
            return None;
        }
        let (blocks, highest) = (self.blocks, u64::from(self.highest));
        let plain = length(&self.dims, Counts { blocks, highest })?;
        // The plain form has few bytes for boxes, and is slow to read: they had better be as short.
        let boxes = plain <= runs * if total / runs.max(1) >= WIDE_GAP { 3 } else { 2 };
        let aim = if boxes { Aim::Short } else { self.aim };
        let as_they_are =
            aim == Aim::Fast && choose(total, self.count, runs) == (Kind::Runs, false);
        match as_they_are {
            true => compact::encode_runs(&self.dims, &self.gaps, &self.lengths, out),
            false => compact::encode(&self.dims, total, self.toggles(), aim, out),
        }
        if out.len() as u64 >= plain && aim == Aim::Fast {
            compact::encode(&self.dims, total, self.toggles(), Aim::Short, out);
        }
        Some(plain).filter(|plain| (out.len() as u64) < *plain)
    }

    /// Where runs begin and end.
    fn toggles(&self) -> Vec<u64> {
        let mut toggles = scratch::take_words(2 * self.gaps.len());
        toggles.clear();
        let mut next = 0;
        for (gap, len) in self.gaps.iter().zip(&self.lengths) {
            let start = next + u64::from(*gap);
            let end = start + u64::from(*len) + 1;
            toggles.extend_from_slice(&[start, end]);
            next = end + 1;
        }
        toggles
    }
}
