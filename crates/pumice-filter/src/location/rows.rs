//! Scattered cells of a matrix, as rows of columns: encoded while they come, many chunks at a time.
//!
//! The gaps of a chunk are packed block by block, so that they never leave the processor's cache. What
//! comes out is the form of [`list`](super::list). Rows tell without a further look how many blocks the
//! plain form has.

use super::numbers::{BLOCK, GapList, Gaps, Totals};
use super::plain_length::{Counts, length};
use super::plan::{Kind, choose};
use super::{Aim, CHECKSUM, compact};
use pumice_bytes::{Writer, lookup3_each};
use std::ops::Range;

/// Gaps that are made at a time.
const STEP: usize = 16;

/// One row in so many is compared with the one before it, at so many columns.
const SAMPLED: u32 = 32;
const COLUMNS: usize = 4;

/// So many checksums are computed side by side.
const TOGETHER: usize = 3;

/// Encodes the cells of a chunk that is a part of a matrix.
///
/// ```
/// use pumice_filter::location::{Aim, RowEncoder};
///
/// let mut encoder = RowEncoder::new([100, 1000], 5000, 0, Aim::Short).unwrap();
/// let columns: Vec<u32> = (0..500).map(|at| 5000 + at % 5 * 190 + at % 97).collect();
/// for row in 0..100 {
///     encoder.row(row, &columns, 5 * row as usize..5 * row as usize + 5);
/// }
/// let cells = encoder.finish();
/// assert_eq!(cells.to_set()?.len(), 500);
/// # Ok::<(), pumice_filter::FilterError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RowEncoder {
    dims: [u64; 2],
    first_column: u32,
    gaps: Form,
    /// Whether it is known what form gaps have.
    settled: bool,
    /// The cell after the last.
    next: u32,
    /// Whether the first cell is the chunk's first.
    from_zero: bool,
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

/// The form that gaps will be stored in.
#[derive(Clone, Debug)]
enum Form {
    Bytes(GapList),
    Packed(Box<Blocks>),
}

/// Gaps that are packed in blocks.
#[derive(Clone, Debug)]
struct Blocks {
    /// Gaps that have not been packed, and as many again as are made at a time.
    gaps: [u32; BLOCK + STEP],
    filled: usize,
    packed: Gaps,
}

/// Cells behind the location filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowCells {
    pub(crate) bytes: Vec<u8>,
    /// The length of the plain form, if this is how the filter would write these cells.
    pub(crate) unfiltered: Option<u64>,
}

impl RowEncoder {
    /// For a chunk of `dims` cells, fewer than 2^32, that begins at `first_column` and will have about
    /// `count` cells.
    pub fn new(dims: [u64; 2], first_column: u32, count: usize, aim: Aim) -> Option<Self> {
        let total = dims[0].checked_mul(dims[1])?;
        u32::try_from(total).ok()?;
        let gaps = match aim {
            Aim::Fast => Form::Bytes(GapList::new(count)),
            Aim::Short => Form::Packed(Box::new(Blocks::new(count, aim))),
        };
        Some(Self {
            dims,
            first_column,
            gaps,
            settled: aim == Aim::Short,
            next: 0,
            from_zero: false,
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

    /// Takes the cells of a row, counted from the chunk's first: those of `columns` in `range`. Rows come
    /// in order, columns ascend inside the chunk.
    #[inline(always)]
    pub fn row(&mut self, row: u32, columns: &[u32], range: Range<usize>) {
        let Some(line) = columns.get(range.clone()) else { return };
        let (Some(&first), Some(&last)) = (line.first(), line.last()) else { return };
        let base = row.wrapping_mul(self.dims[1] as u32).wrapping_sub(self.first_column);
        let gap = base.wrapping_add(first).wrapping_sub(self.next);
        self.next = base.wrapping_add(last).wrapping_add(1);
        self.touching += u64::from(gap == 0);
        self.highest = self.highest.max(last);
        match &mut self.gaps {
            Form::Bytes(list) => list.put(columns, range.clone(), gap),
            Form::Packed(blocks) => blocks.put(columns, range.clone(), gap),
        }
        if !self.settled {
            self.settle(BLOCK);
        }
        let other = std::mem::replace(&mut self.place, range.clone());
        let above = std::mem::replace(&mut self.before, row);
        if other.is_empty() {
            self.from_zero = gap == 0;
            return;
        }
        let neighbour = above.wrapping_add(1) == row;
        // Few rows begin like the one before, and only those are compared.
        if columns.get(other.start) == Some(&first) && other.len() == range.len() {
            self.compare(line, columns.get(other.clone()).unwrap_or_default(), neighbour);
        } else {
            self.irregular = true;
        }
        if row.is_multiple_of(SAMPLED) && neighbour {
            self.sample(line, columns.get(other).unwrap_or_default());
        }
    }

    /// Decides on the form of gaps once there are so many: the first tell what all are like. Whether that was
    /// right is seen in the end.
    fn settle(&mut self, enough: usize) {
        let Form::Bytes(list) = &self.gaps else { return };
        if list.count() < enough {
            return;
        }
        self.settled = true;
        if !list.pays(u64::from(self.next)) {
            let mut blocks = Box::new(Blocks::new(list.room(), Aim::Fast));
            list.gaps().for_each(|gap| blocks.push(gap));
            self.gaps = Form::Packed(blocks);
        }
    }

    /// Looks whether a row is the same as the one before.
    #[inline(always)]
    fn compare(&mut self, line: &[u32], other: &[u32], neighbour: bool) {
        if line != other {
            self.irregular = true;
        } else if neighbour {
            let apart = |pair: &&[u32]| pair[1].wrapping_sub(pair[0]) != 1;
            self.continued += 1 + line.windows(2).filter(apart).count() as u64;
        }
    }

    /// Looks whether some cells of a row are in the next one, too.
    fn sample(&mut self, line: &[u32], above: &[u32]) {
        for column in above.iter().step_by(above.len().div_ceil(COLUMNS).max(1)) {
            self.sampled += 1;
            self.repeated += u32::from(line.contains(column));
        }
    }

    /// The cells.
    #[inline(always)]
    pub fn finish(self) -> RowCells {
        let mut cells = self.finish_unchecked();
        cells.bytes.put_checksum(0);
        cells
    }

    /// The cells of several chunks.
    #[inline(always)]
    pub fn finish_all(encoders: impl IntoIterator<Item = Self>) -> Vec<RowCells> {
        let mut all = Vec::new();
        // Not as an iterator, which would be compiled apart, for any processor.
        for encoder in encoders {
            all.push(encoder.finish_unchecked());
        }
        let (groups, rest) = all.as_chunks_mut::<TOGETHER>();
        for group in groups {
            let checksums = lookup3_each(group.each_ref().map(|cells| cells.bytes.as_slice()));
            for (cells, checksum) in group.iter_mut().zip(checksums) {
                cells.bytes.put_u32(checksum);
            }
        }
        rest.iter_mut().for_each(|cells| cells.bytes.put_checksum(0));
        all
    }

    /// The cells, without a checksum.
    #[inline(always)]
    fn finish_unchecked(mut self) -> RowCells {
        if !self.settled {
            self.settle(0);
        }
        let mut bytes;
        match &mut self.gaps {
            Form::Bytes(list) => {
                bytes = Vec::with_capacity(list.len() + 64);
                compact::put_cells_header(&self.dims, list.count(), &mut bytes);
                list.put_stream(&mut bytes);
            }
            Form::Packed(blocks) => {
                blocks.finish();
                let packed = &blocks.packed;
                bytes = Vec::with_capacity(packed.len() + 64);
                compact::put_cells_header(&self.dims, packed.count(), &mut bytes);
                packed.put_stream(&mut bytes);
            }
        }
        let length = (bytes.len() + CHECKSUM) as u64;
        let unfiltered = self.plain_length().filter(|plain| length < *plain);
        RowCells { bytes, unfiltered }
    }

    /// The length of the plain form, if these are scattered cells, best written as they are.
    #[inline(always)]
    fn plain_length(&self) -> Option<u64> {
        let total = self.dims[0] * self.dims[1];
        let (Totals { count, sum, zeros }, best) = match &self.gaps {
            Form::Bytes(list) => (list.totals(), list.is_best(total)),
            Form::Packed(blocks) => (blocks.packed.totals(), blocks.packed.is_best(total)),
        };
        // Cells that do not ascend make a gap that is far too large.
        let ascend = sum + count == u64::from(self.next) && u64::from(self.next) <= total;
        let alike = 3 * self.repeated >= self.sampled.max(1);
        let runs = count - zeros + u64::from(self.from_zero);
        let scattered = count <= 2 * runs && runs > 1;
        if !ascend || !self.irregular || alike || !scattered || !best {
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

impl Blocks {
    fn new(room: usize, aim: Aim) -> Self {
        Self { gaps: [0; BLOCK + STEP], filled: 0, packed: Gaps::new(room, aim) }
    }

    /// Appends the gaps of a row.
    #[inline(always)]
    fn put(&mut self, columns: &[u32], mut range: Range<usize>, gap: u32) {
        let mut first = Some(gap);
        loop {
            let len = range.len().min(BLOCK - self.filled).min(STEP);
            let place = &mut self.gaps[self.filled..self.filled + STEP];
            put_gaps(place, columns, range.start, len);
            if let Some(gap) = first.take() {
                place[0] = gap;
            }
            range.start += len;
            self.advance(len);
            if range.is_empty() {
                break;
            }
        }
    }

    /// Appends a gap.
    fn push(&mut self, gap: u32) {
        self.gaps[self.filled] = gap;
        self.advance(1);
    }

    /// Takes note of gaps that have been made; there is room for them in the block.
    #[inline(always)]
    fn advance(&mut self, len: usize) {
        self.filled += len;
        if self.filled == BLOCK {
            self.packed.block(&self.gaps[..BLOCK]);
            self.filled = 0;
        }
    }

    #[inline(always)]
    fn finish(&mut self) {
        self.packed.block(&self.gaps[..self.filled]);
        self.filled = 0;
    }
}

/// The gaps before `len` columns from `start` on, and others behind them.
#[inline(always)]
fn put_gaps(gaps: &mut [u32], columns: &[u32], start: usize, len: usize) {
    let before = start.wrapping_sub(1);
    if let (Some(lower), Some(upper)) = (columns.get(before..), columns.get(start..))
        && let (Some(lower), Some(upper)) =
            (lower.first_chunk::<STEP>(), upper.first_chunk::<STEP>())
        && let Some(to) = gaps.first_chunk_mut::<STEP>()
    {
        // Made apart: the compiler cannot know that nothing is written to the columns.
        let made: [u32; STEP] = std::array::from_fn(|at| upper[at].wrapping_sub(lower[at]));
        *to = made.map(|step| step.wrapping_sub(1));
        return;
    }
    // At the ends of the list.
    for (to, at) in gaps.iter_mut().zip(start..start + len) {
        let column = |at: usize| columns.get(at).copied().unwrap_or(0);
        *to = column(at).wrapping_sub(column(at.wrapping_sub(1))).wrapping_sub(1);
    }
}
