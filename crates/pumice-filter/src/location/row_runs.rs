//! Cells of a matrix that mostly have neighbours, as rows of columns: runs are found while rows come.
//!
//! Locations that no compressor follows, and that shall be written and read fast, are runs as they are,
//! without a difference between rows, unless their plain form would take half the bytes or less. All others go the
//! way of sets of cells, from runs on.

#![allow(unsafe_code)]

use super::breaks::{STEP, breaks, differences};
use super::compact;
use super::plain_length::{Counts, length};
use super::plan::{Kind, choose};
use super::rows::RowCells;
use super::{Aim, MOST_RUNS, pays, scratch};
use crate::wide::Wide;
use std::ops::Range;

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
    /// Cells before each run, since the one before, and cells of all runs before it.
    gaps: Vec<u32>,
    counts: Vec<u32>,
    /// The cell after the last, and how many there are.
    next: u32,
    count: u32,
    /// The last row and its place among all cells, which is empty before the first.
    before: u32,
    place: Range<usize>,
    highest: u32,
    irregular: bool,
    ascends: bool,
    blocks: u64,
}

impl RunEncoder {
    /// For a chunk of `dims` cells, fewer than 2^32, that begins at `first_column`.
    pub fn new(dims: [u64; 2], first_column: u32, aim: Aim) -> Option<Self> {
        u32::try_from(dims[0].checked_mul(dims[1])?).ok()?;
        let [mut gaps, mut counts] = [(); 2].map(|()| scratch::take_numbers(0));
        gaps.clear();
        counts.clear();
        Some(Self {
            dims,
            first_column,
            aim,
            wide: Wide::detect(),
            gaps,
            counts,
            next: 0,
            count: 0,
            before: 0,
            place: 0..0,
            highest: 0,
            irregular: false,
            ascends: true,
            blocks: 0,
        })
    }

    /// Takes the cells of a row, counted from the chunk's first: those of `columns` in `range`. Rows come
    /// in order, columns ascend inside the chunk.
    pub fn row(&mut self, row: u32, columns: &[u32], range: Range<usize>) {
        #[cfg(target_arch = "x86_64")]
        if self.wide.is_some() {
            // SAFETY: the processor has what the function is compiled for, or there would be no `Wide`.
            return unsafe { self.row_wide(row, columns, range) };
        }
        self.put_row(row, columns, range);
    }

    /// As [`row`](Self::row). Apart from those who call it, which have so much to remember that little is left in
    /// registers.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    #[inline(never)]
    fn row_wide(&mut self, row: u32, columns: &[u32], range: Range<usize>) {
        self.put_row(row, columns, range);
    }

    #[inline(always)]
    fn put_row(&mut self, row: u32, columns: &[u32], range: Range<usize>) {
        let Some(line) = columns.get(range.clone()) else { return };
        let (Some(&first), Some(&last)) = (line.first(), line.last()) else { return };
        let base = row.wrapping_mul(self.dims[1] as u32).wrapping_sub(self.first_column);
        self.highest = self.highest.max(row).max(last.wrapping_sub(self.first_column));
        let start = base.wrapping_add(first);
        let gap = start.wrapping_sub(self.next);
        self.ascends &= start >= self.next;
        self.next = base.wrapping_add(last).wrapping_add(1);
        // A run that begins where the last ended is a part of it.
        let apart = gap != 0 || self.count == 0;
        let other = std::mem::replace(&mut self.place, range.clone());
        let above = std::mem::replace(&mut self.before, row);
        if apart {
            self.gaps.push(gap);
            self.counts.push(self.count);
        }
        let (runs, same) = match (window(columns, range.start), window(columns, other.start)) {
            (Some(line), Some(before)) if range.len() <= STEP => {
                self.put_few(line, before, range.len())
            }
            _ => (self.put_many(columns, range.clone()), columns.get(other.clone()) == Some(line)),
        };
        self.count = self.count.wrapping_add(line.len() as u32);
        let same = same & (other.len() == range.len());
        self.irregular |= !same & !other.is_empty();
        // A row like the one above it goes on with its blocks.
        let repeated = same & (above.wrapping_add(1) == row);
        self.blocks += if repeated { 0 } else { u64::from(runs) };
    }

    /// Appends the runs of a row of `len` columns but the first; how many there are with it, and whether as many columns
    /// of the row before are the same.
    #[inline(always)]
    fn put_few(
        &mut self,
        line: &[u32; STEP + 1],
        before: &[u32; STEP + 1],
        len: usize,
    ) -> (u32, bool) {
        let all = (u64::MAX >> (64 - len)) as u32;
        let ends = breaks(self.wide, line) & all >> 1;
        self.put(ends, line, self.count);
        let (Some(line), Some(before)) = (line.first_chunk(), before.first_chunk()) else {
            return (0, false);
        };
        (1 + ends.count_ones(), differences(self.wide, line, before) & all == 0)
    }

    /// Appends the runs of any row but the first; how many there are with it.
    #[inline(always)]
    fn put_many(&mut self, columns: &[u32], range: Range<usize>) -> u32 {
        let (mut count, mut runs) = (self.count, 1);
        for at in range.clone().step_by(STEP) {
            let mut rest = [0; STEP + 1];
            let line = window(columns, at).unwrap_or_else(|| {
                // At the end of the list.
                let left = columns.get(at..).unwrap_or_default();
                rest.iter_mut().zip(left).for_each(|(to, from)| *to = *from);
                &rest
            });
            // The last column of a row has none behind it.
            let pairs = (range.end - at - 1).min(STEP);
            let ends = breaks(self.wide, line) & ((1u64 << pairs) - 1) as u32;
            runs += ends.count_ones();
            self.put(ends, line, count);
            count = count.wrapping_add(STEP as u32);
        }
        runs
    }

    /// Appends the runs that begin after `ends`, which have a bit for each column of a row; `count` cells come before
    /// the first of these.
    #[inline(always)]
    fn put(&mut self, mut ends: u32, line: &[u32; STEP + 1], count: u32) {
        // Without a decision for each: some are written always, and those that are none are cut off again.
        const FEW: usize = 4;
        loop {
            let runs = self.gaps.len() + (ends.count_ones() as usize).min(FEW);
            let (mut gaps, mut counts) = ([0; FEW], [0; FEW]);
            for (gap, before) in gaps.iter_mut().zip(&mut counts) {
                let at = ends.trailing_zeros() as usize % STEP;
                *gap = line[at + 1].wrapping_sub(line[at]).wrapping_sub(1);
                *before = count.wrapping_add(at as u32 + 1);
                ends &= ends.wrapping_sub(1);
            }
            self.gaps.extend_from_slice(&gaps);
            self.gaps.truncate(runs);
            self.counts.extend_from_slice(&counts);
            self.counts.truncate(runs);
            if ends == 0 {
                break;
            }
        }
    }

    /// The cells.
    pub fn finish(mut self) -> RowCells {
        let lengths = self.lengths();
        // Runs do not touch, so that each but the first has a cell before it, which is not written.
        self.gaps.iter_mut().skip(1).for_each(|gap| *gap = gap.wrapping_sub(1));
        let mut bytes = Vec::with_capacity(2 * self.gaps.len() + 64);
        let unfiltered = self.encode(&lengths, &mut bytes);
        [self.gaps, self.counts, lengths].into_iter().for_each(scratch::give_numbers);
        RowCells { bytes, unfiltered }
    }

    /// Lengths of runs, less 1 as they are written.
    fn lengths(&self) -> Vec<u32> {
        let mut lengths = scratch::take_numbers(self.counts.len());
        lengths.clear();
        let ends = self.counts.get(1..).unwrap_or_default();
        let length = |(start, end): (&u32, &u32)| end.wrapping_sub(*start).wrapping_sub(1);
        lengths.extend(self.counts.iter().zip(ends).map(length));
        lengths.extend(self.counts.last().map(|start| length((start, &self.count))));
        lengths
    }

    /// Replaces `out` by the encoded cells; the length of the plain form, if this is how they are written.
    fn encode(&self, lengths: &[u32], out: &mut Vec<u8>) -> Option<u64> {
        let (total, runs) = (self.dims[0] * self.dims[1], self.gaps.len() as u64);
        // Columns that do not ascend make a gap that is far too large.
        let gaps =
            self.gaps.iter().map(|gap| u64::from(*gap)).sum::<u64>() + runs.saturating_sub(1);
        let ascends = self.ascends && gaps + u64::from(self.count) == u64::from(self.next);
        let inside = ascends && u64::from(self.next) <= total;
        if !inside || !self.irregular || runs > MOST_RUNS {
            compact::encode_runs(&self.dims, &self.gaps, lengths, out);
            return None;
        }
        let (blocks, highest) = (self.blocks, u64::from(self.highest));
        let plain = length(&self.dims, Counts { blocks, highest })?;
        let as_they_are = self.aim == Aim::Fast
            && choose(total, u64::from(self.count), runs) == (Kind::Runs, false);
        match as_they_are {
            true => compact::encode_runs(&self.dims, &self.gaps, lengths, out),
            false => compact::encode(&self.dims, total, self.toggles(lengths), self.aim, out),
        }
        // The plain form has few bytes for boxes.
        let mut aim = self.aim;
        if aim == Aim::Fast && !pays(out, plain, aim) {
            aim = Aim::Short;
            compact::encode(&self.dims, total, self.toggles(lengths), aim, out);
        }
        pays(out, plain, aim).then_some(plain)
    }

    /// Where runs begin and end.
    fn toggles(&self, lengths: &[u32]) -> Vec<u64> {
        let mut toggles = scratch::take_words(2 * self.gaps.len());
        toggles.clear();
        let mut next = 0;
        for (gap, len) in self.gaps.iter().zip(lengths) {
            let start = next + u64::from(*gap);
            let end = start + u64::from(*len) + 1;
            toggles.extend_from_slice(&[start, end]);
            next = end + 1;
        }
        toggles
    }
}

/// Columns from `start` on, and one more.
#[inline(always)]
fn window(columns: &[u32], start: usize) -> Option<&[u32; STEP + 1]> {
    columns.get(start..)?.first_chunk()
}
