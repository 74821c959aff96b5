//! Scattered cells of a matrix, as rows of columns: encoded while they come, many chunks at a time.
//!
//! The steps from column to column are computed for many rows at once, before the rows are split by
//! chunk; a piece of a row then only copies its own. The result has the form of
//! [`list`](super::list). Rows also show how many blocks the plain form has.

use super::numbers::{Facts, Number, Wanted, encode};
use super::plain_length::{Counts, length};
use super::plan::{Kind, choose};
use super::{Aim, CHECKSUM, compact};
use crate::scratch;
use pumice_bytes::{Writer, append_some, lookup3_each};
use std::ops::Range;
use std::sync::Arc;

/// Steps that are copied as a block.
const BLOCK: usize = 32;

/// Marks a gap that is not below it.
const LONG: u16 = u16::MAX;

/// One row in this many is compared with the one before it, at this many columns.
const SAMPLED: u32 = 32;
const COLUMNS: usize = 4;

/// Columns of rows, and the cells between each and the one before it: the argument of
/// [`RowEncoder::row`], which has an example.
#[derive(Debug)]
pub struct RowSteps<'a> {
    columns: &'a [u32],
    /// The index of the first step among the columns.
    start: usize,
    /// The steps, followed by a block of others.
    steps: Vec<u16>,
}

impl<'a> RowSteps<'a> {
    /// Finds the steps of those of `columns` that are in `range`.
    #[inline(always)]
    pub fn new(columns: &'a [u32], range: Range<usize>) -> Self {
        let range = range.start..range.end.min(columns.len());
        let mut steps = scratch::take_halves(range.len() + BLOCK);
        steps.clear();
        steps.reserve(range.len() + BLOCK);
        let upper = columns.get(range.clone()).unwrap_or_default();
        // The first column has no neighbour before it.
        steps.extend(upper.first().map(|_| 0));
        let pairs = upper.iter().zip(upper.get(1..).unwrap_or_default());
        let step = |lower: u32, upper: u32| upper.wrapping_sub(lower).wrapping_sub(1);
        steps.extend(pairs.map(|(&lower, &upper)| step(lower, upper).min(LONG.into()) as u16));
        steps.resize(steps.len() + BLOCK, 0);
        Self { columns, start: range.start, steps }
    }
}

impl Drop for RowSteps<'_> {
    fn drop(&mut self) {
        scratch::give_halves(std::mem::take(&mut self.steps));
    }
}

/// Encodes the cells of a chunk that is a part of a matrix.
///
/// ```
/// use pumice_filter::location::{Aim, RowEncoder, RowSteps};
///
/// let mut encoder = RowEncoder::new([100, 1000], 5000, 0, Aim::Short).unwrap();
/// let columns: Vec<u32> = (0..500).map(|at| 5000 + at % 5 * 190 + at % 97).collect();
/// let steps = RowSteps::new(&columns, 0..columns.len());
/// for row in 0..100 {
///     encoder.row(row, &steps, 5 * row as usize..5 * row as usize + 5);
/// }
/// let cells = encoder.finish();
/// assert_eq!(cells.to_set()?.len(), 500);
/// # Ok::<(), pumice_filter::FilterError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RowEncoder {
    dims: [u64; 2],
    first_column: u32,
    aim: Aim,
    /// The gaps before cells, [`LONG`] where one is in the other list.
    gaps: Vec<u16>,
    long: Vec<u32>,
    /// The cell after the last.
    next: u32,
    /// The last row and its place among all cells; none if that is empty.
    before: u32,
    place: Range<usize>,
    /// The highest column.
    highest: u32,
    /// Whether the set is known not to be a regular hyperslab.
    irregular: bool,
    /// Rows that go on where the one before ended, and blocks that go on in the next row.
    touching: u64,
    continued: u64,
    sampled: u32,
    repeated: u32,
}

/// Cells behind the location filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowCells {
    pub(crate) bytes: Arc<Vec<u8>>,
    /// The length of the plain form, if the filter would write these cells in this form.
    pub(crate) unfiltered: Option<u64>,
}

/// Encoded cells whose checksum may be missing.
pub(super) struct Unchecked {
    pub(super) bytes: Vec<u8>,
    pub(super) unfiltered: Option<u64>,
    pub(super) has_checksum: bool,
}

impl Unchecked {
    pub(super) fn finish(mut self) -> RowCells {
        if !self.has_checksum {
            self.bytes.put_checksum(0);
        }
        RowCells { bytes: Arc::new(self.bytes), unfiltered: self.unfiltered }
    }

    /// Finishes the cells of several chunks, with checksums computed side by side.
    pub(super) fn finish_all(all: impl Iterator<Item = Self>) -> Vec<RowCells> {
        let mut all: Vec<_> = all.collect();
        let mut missing: Vec<&mut Self> = all.iter_mut().filter(|one| !one.has_checksum).collect();
        let (groups, rest) = missing.as_chunks_mut::<4>();
        groups.iter_mut().for_each(put_checksums);
        rest.as_chunks_mut::<2>().0.iter_mut().for_each(put_checksums);
        all.into_iter().map(Self::finish).collect()
    }
}

impl RowEncoder {
    /// An encoder for a chunk of `dims` cells, fewer than 2^32, that begins at `first_column` and
    /// will have about `count` cells.
    pub fn new(dims: [u64; 2], first_column: u32, count: usize, aim: Aim) -> Option<Self> {
        u32::try_from(dims[0].checked_mul(dims[1])?).ok()?;
        Some(Self {
            dims,
            first_column,
            aim,
            gaps: Vec::with_capacity(count + BLOCK),
            long: Vec::new(),
            next: 0,
            before: 0,
            place: 0..0,
            highest: 0,
            irregular: false,
            touching: 0,
            continued: 0,
            sampled: 0,
            repeated: 0,
        })
    }

    /// Adds the cells of a row, numbered from the chunk's first row: those of the columns in
    /// `range`, for which there must be steps. Rows come in order, columns ascend inside the chunk.
    #[inline(always)]
    pub fn row(&mut self, row: u32, steps: &RowSteps<'_>, range: Range<usize>) {
        let columns = steps.columns;
        let Some(line) = columns.get(range.clone()) else { return };
        let (Some(&first), Some(&last)) = (line.first(), line.last()) else { return };
        let base = row.wrapping_mul(self.dims[1] as u32).wrapping_sub(self.first_column);
        let gap = base.wrapping_add(first).wrapping_sub(self.next);
        self.next = base.wrapping_add(last).wrapping_add(1);
        self.touching += u64::from(gap == 0);
        self.highest = self.highest.max(last);
        self.put(gap, steps, range.clone());
        let other = std::mem::replace(&mut self.place, range.clone());
        let above = std::mem::replace(&mut self.before, row);
        if other.is_empty() {
            return;
        }
        let neighbour = above.wrapping_add(1) == row;
        // Few rows begin like the one before, and only those are compared.
        if columns.get(other.start) == Some(&first) && other.len() == range.len() {
            self.compare(line, columns.get(other.clone()).unwrap_or_default(), neighbour);
        } else {
            self.irregular = true;
        }
        if row % SAMPLED == 1 && neighbour {
            self.sample(line, columns.get(other).unwrap_or_default());
        }
    }

    /// Appends the gaps of a row, of which the first is `gap`.
    #[inline(always)]
    fn put(&mut self, gap: u32, steps: &RowSteps<'_>, range: Range<usize>) {
        let start = self.gaps.len();
        let from = range.start.wrapping_sub(steps.start);
        append_some::<_, BLOCK>(&mut self.gaps, &steps.steps, from..from.wrapping_add(range.len()));
        if let Some(first) = self.gaps.get_mut(start) {
            *first = gap.min(LONG.into()) as u16;
        }
        if gap >= LONG.into() {
            self.long.push(gap);
        }
        if self.dims[1] > LONG.into() {
            self.put_long(steps, range);
        }
    }

    /// Appends the long steps of a row.
    #[cold]
    fn put_long(&mut self, steps: &RowSteps<'_>, range: Range<usize>) {
        let line = steps.columns.get(range).unwrap_or_default();
        let steps = line.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]).wrapping_sub(1));
        self.long.extend(steps.filter(|step| *step >= LONG.into()));
    }

    /// Compares a row with the one before.
    #[inline(always)]
    fn compare(&mut self, line: &[u32], other: &[u32], neighbour: bool) {
        if line != other {
            self.irregular = true;
        } else if neighbour {
            let apart = |pair: &&[u32]| pair[1].wrapping_sub(pair[0]) != 1;
            self.continued += 1 + line.windows(2).filter(apart).count() as u64;
        }
    }

    /// Checks whether some cells of a row are in the next one, too.
    fn sample(&mut self, line: &[u32], above: &[u32]) {
        for column in above.iter().step_by(above.len().div_ceil(COLUMNS).max(1)) {
            self.sampled += 1;
            self.repeated += u32::from(line.contains(column));
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

    /// The cells, without a checksum.
    fn finish_unchecked(self) -> Unchecked {
        if self.long.is_empty() {
            return self.encode(&self.gaps);
        }
        let mut long = self.long.iter().copied();
        let gap = |gap: &u16| match *gap {
            LONG => long.next().unwrap_or(LONG.into()),
            gap => gap.into(),
        };
        self.encode(&self.gaps.iter().map(gap).collect::<Vec<u32>>())
    }

    fn encode<N: Number>(&self, gaps: &[N]) -> Unchecked {
        let (facts, total) = (Facts::of(gaps), self.dims[0] * self.dims[1]);
        let mut bytes = Vec::with_capacity(gaps.len() + 2 * facts.large + 64);
        compact::put_cells_header(&self.dims, gaps.len(), &mut bytes);
        encode(gaps, &facts, Wanted::of_cells(self.aim, total, &facts), &mut bytes);
        let len = (bytes.len() + CHECKSUM) as u64;
        let from_zero = gaps.first().is_some_and(|gap| gap.wide() == 0);
        let unfiltered = self.plain_length(total, &facts, from_zero).filter(|plain| len < *plain);
        Unchecked { bytes, unfiltered, has_checksum: false }
    }

    /// The length of the plain form, if these are scattered cells, best written as a list.
    fn plain_length(&self, total: u64, gaps: &Facts, from_zero: bool) -> Option<u64> {
        let (count, zeros, sum) = (gaps.count as u64, gaps.zeros as u64, gaps.sum);
        // Cells that do not ascend make a gap that is far too large.
        let ascend = sum + count == u64::from(self.next) && u64::from(self.next) <= total;
        let alike = 3 * self.repeated >= self.sampled.max(1);
        let runs = count - zeros + u64::from(from_zero);
        let scattered = count <= 2 * runs && runs > 1;
        if !ascend || !self.irregular || alike || !scattered {
            return None;
        }
        if choose(total, count, runs) != (Kind::Cells, false) {
            return None;
        }
        let blocks = count - (zeros - self.touching) - self.continued;
        // Rows ascend, so that the last is the highest.
        let highest = self.before.max(self.highest.wrapping_sub(self.first_column));
        length(&self.dims, Counts { blocks, highest: u64::from(highest) })
    }
}

/// Appends the checksums of some cells.
fn put_checksums<const N: usize>(group: &mut [&mut Unchecked; N]) {
    let checksums = lookup3_each(group.each_ref().map(|cells| cells.bytes.as_slice()));
    for (cells, checksum) in group.iter_mut().zip(checksums) {
        cells.bytes.put_u32(checksum);
        cells.has_checksum = true;
    }
}
