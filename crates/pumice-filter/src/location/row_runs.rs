//! Cells of a matrix that mostly have neighbours, as rows of columns: runs are found for many rows
//! at once, before the rows are split by chunk, and a piece of a row then only copies its own.
//!
//! Locations without a compressor behind them, which are to be written and read fast, are written
//! as runs without a difference between rows, unless their plain form would take half the bytes or
//! less. All others are encoded as sets of cells.

use super::breaks::{STEP, breaks, list_breaks};
use super::compact;
use super::plain_length::{Counts, length};
use super::plan::{Kind, choose};
use super::rows::{RowCells, Unchecked};
use super::{Aim, CHECKSUM, MOST_RUNS, pays};
use crate::scratch;
use pumice_bytes::append_some;
use pumice_wide::Wide;
use std::ops::Range;

/// Runs that are copied as a block.
const BLOCK: usize = 16;

/// Columns of rows, and those of them that do not follow a neighbour: the argument of
/// [`RunEncoder::row`], which has an example.
#[derive(Debug)]
pub struct RowBreaks<'a> {
    columns: &'a [u32],
    /// The index of the first column.
    start: usize,
    /// The indices of breaks, and the number of cells between each and the one before.
    places: Vec<u32>,
    gaps: Vec<u32>,
    /// The number of breaks; the lists are longer.
    len: usize,
    /// For each [`STEP`] columns, a bit for each break among them, and the number of breaks before.
    marks: Vec<(u32, u32)>,
}

impl<'a> RowBreaks<'a> {
    /// Finds the breaks of those of `columns` that are in `range`; there must be fewer than 2^32.
    #[inline(always)]
    pub fn new(columns: &'a [u32], range: Range<usize>) -> Self {
        let [mut places, mut gaps] = [(); 2].map(|()| scratch::take_numbers(range.len() + STEP));
        // Room for as many breaks as columns, and for what is written or read beyond the last.
        places.resize(range.len() + STEP, 0);
        gaps.resize(range.len() + STEP, 0);
        let mut len = 0;
        let mut marks = Vec::with_capacity(range.len() / STEP + 1);
        let has = Wide::detect();
        for at in range.clone().step_by(STEP) {
            let mut rest = [0; STEP + 1];
            // One before, as it says whether there is a break.
            let before = at.wrapping_sub(1);
            let line =
                columns.get(before..).and_then(|line| line.first_chunk()).unwrap_or_else(|| {
                    // At the ends of the list.
                    let column = |at: usize| columns.get(at).copied().unwrap_or(0);
                    for (number, to) in rest.iter_mut().enumerate() {
                        *to = column(before.wrapping_add(number));
                    }
                    &rest
                });
            let inside = (range.end - at).min(STEP);
            let found = breaks(has, line) & (u64::MAX >> (64 - inside)) as u32;
            marks.push((found, len as u32));
            if let Some(places) = places.get_mut(len..).and_then(|places| places.first_chunk_mut())
                && let Some(gaps) = gaps.get_mut(len..).and_then(|gaps| gaps.first_chunk_mut())
            {
                len += list_breaks(has, found, line, at as u32, places, gaps);
            }
        }
        Self { columns, start: range.start, places, gaps, len, marks }
    }

    /// The number of breaks before a column.
    #[inline(always)]
    fn before(&self, at: usize) -> usize {
        let at = at.wrapping_sub(self.start);
        match self.marks.get(at / STEP) {
            Some((mark, before)) => {
                let below = mark & ((1u32 << (at % STEP)) - 1);
                (before + below.count_ones()) as usize
            }
            None => self.len,
        }
    }
}

impl Drop for RowBreaks<'_> {
    fn drop(&mut self) {
        scratch::give_numbers(std::mem::take(&mut self.places));
        scratch::give_numbers(std::mem::take(&mut self.gaps));
    }
}

/// Encodes the cells of a chunk that is a part of a matrix, run by run.
///
/// ```
/// use pumice_filter::location::{Aim, RowBreaks, RunEncoder};
///
/// let mut encoder = RunEncoder::new([100, 1000], 5000, Aim::Fast).unwrap();
/// let columns: Vec<u32> = (0..2000).map(|at| 5000 + at / 20 + at % 20).collect();
/// let breaks = RowBreaks::new(&columns, 0..columns.len());
/// for row in 0..100 {
///     encoder.row(row, &breaks, 20 * row as usize..20 * row as usize + 20);
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
    /// An encoder for a chunk of `dims` cells, fewer than 2^32, that begins at `first_column`.
    pub fn new(dims: [u64; 2], first_column: u32, aim: Aim) -> Option<Self> {
        u32::try_from(dims[0].checked_mul(dims[1])?).ok()?;
        let [mut gaps, mut counts] = [(); 2].map(|()| scratch::take_numbers(0));
        gaps.clear();
        counts.clear();
        Some(Self {
            dims,
            first_column,
            aim,
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

    /// Adds the cells of a row, numbered from the chunk's first row: those of the columns in
    /// `range`, whose breaks must be known. Rows come in order, columns ascend inside the chunk.
    #[inline(always)]
    pub fn row(&mut self, row: u32, breaks: &RowBreaks<'_>, range: Range<usize>) {
        let columns = breaks.columns;
        let Some(line) = columns.get(range.clone()) else { return };
        let (Some(&first), Some(&last)) = (line.first(), line.last()) else { return };
        let base = row.wrapping_mul(self.dims[1] as u32).wrapping_sub(self.first_column);
        self.highest = self.highest.max(row).max(last.wrapping_sub(self.first_column));
        let start = base.wrapping_add(first);
        let gap = start.wrapping_sub(self.next);
        self.ascends &= start >= self.next;
        self.next = base.wrapping_add(last).wrapping_add(1);
        // A run that begins where the last ended is a part of it.
        if gap != 0 || self.count == 0 {
            self.gaps.push(gap);
            self.counts.push(self.count);
        }
        let runs = breaks.before(range.start + 1)..breaks.before(range.end);
        self.put(breaks, runs.clone(), range.start);
        self.count = self.count.wrapping_add(line.len() as u32);
        let other = std::mem::replace(&mut self.place, range.clone());
        let above = std::mem::replace(&mut self.before, row);
        // Few rows begin like the one before, and only those are compared.
        let ends = [other.start, other.end.wrapping_sub(1)].map(|at| columns.get(at));
        let alike = other.len() == range.len() && ends == [Some(&first), Some(&last)];
        let same = alike && columns.get(other.clone()) == Some(line);
        self.irregular |= !same & !other.is_empty();
        // A row like the one above it goes on with its blocks.
        let repeated = same & (above.wrapping_add(1) == row);
        self.blocks += if repeated { 0 } else { 1 + runs.len() as u64 };
    }

    /// Appends the runs of a row that begins at `start` but the first.
    #[inline(always)]
    fn put(&mut self, breaks: &RowBreaks<'_>, runs: Range<usize>, start: usize) {
        append_some::<_, BLOCK>(&mut self.gaps, &breaks.gaps, runs.clone());
        let cells = self.count.wrapping_sub(start as u32);
        let len = self.counts.len() + runs.len();
        match breaks.places.get(runs.start..).and_then(|places| places.first_chunk::<BLOCK>()) {
            Some(block) if runs.len() <= BLOCK => {
                self.counts.extend_from_slice(&block.map(|place| place.wrapping_add(cells)));
                self.counts.truncate(len);
            }
            _ => {
                let places = breaks.places.get(runs).unwrap_or_default();
                self.counts.extend(places.iter().map(|place| place.wrapping_add(cells)));
            }
        }
    }

    /// The cells.
    pub fn finish(self) -> RowCells {
        self.finish_unchecked().finish()
    }

    /// The cells of several chunks.
    pub fn finish_all(encoders: impl IntoIterator<Item = Self>) -> Vec<RowCells> {
        Unchecked::finish_all(encoders.into_iter().map(Self::finish_unchecked))
    }

    fn finish_unchecked(mut self) -> Unchecked {
        let lengths = self.lengths();
        // Runs do not touch, so that each but the first has a cell before it, which is not written.
        self.gaps.iter_mut().skip(1).for_each(|gap| *gap = gap.wrapping_sub(1));
        let encoded = self.encode(&lengths);
        [self.gaps, self.counts, lengths].into_iter().for_each(scratch::give_numbers);
        encoded
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

    fn encode(&self, lengths: &[u32]) -> Unchecked {
        let mut bytes = Vec::with_capacity(2 * self.gaps.len() + 64);
        let (total, runs) = (self.dims[0] * self.dims[1], self.gaps.len() as u64);
        // Columns that do not ascend make a gap that is far too large.
        let gaps =
            self.gaps.iter().map(|gap| u64::from(*gap)).sum::<u64>() + runs.saturating_sub(1);
        let ascends = self.ascends && gaps + u64::from(self.count) == u64::from(self.next);
        let inside = ascends && u64::from(self.next) <= total;
        let counts = Counts { blocks: self.blocks, highest: u64::from(self.highest) };
        let plain = match inside && self.irregular && runs <= MOST_RUNS {
            true => length(&self.dims, counts),
            false => None,
        };
        let as_they_are = self.aim == Aim::Fast
            && plain.is_some()
            && choose(total, u64::from(self.count), runs) == (Kind::Runs, false);
        if plain.is_none() || as_they_are {
            compact::encode_runs(&self.dims, &self.gaps, lengths, &mut bytes);
            let len = (bytes.len() + CHECKSUM) as u64;
            // The plain form has few bytes for boxes.
            if plain.is_none_or(|plain| pays(len, plain, Aim::Fast)) {
                return Unchecked { bytes, unfiltered: plain, has_checksum: false };
            }
        } else {
            compact::encode(&self.dims, total, self.toggles(lengths), self.aim, &mut bytes);
        }
        let len = |bytes: &Vec<u8>| bytes.len() as u64;
        let mut unfiltered = plain.filter(|plain| pays(len(&bytes), *plain, self.aim));
        if self.aim == Aim::Fast && (as_they_are || unfiltered.is_none()) {
            compact::encode(&self.dims, total, self.toggles(lengths), Aim::Short, &mut bytes);
            unfiltered = plain.filter(|plain| pays(len(&bytes), *plain, Aim::Short));
        }
        Unchecked { bytes, unfiltered, has_checksum: true }
    }

    /// The beginnings and ends of runs.
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
