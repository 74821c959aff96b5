//! What a dataset asks of one chunk: the pieces that the cache hands to a layout.
//!
//! A request names cells of the chunk and places in the caller's memory (a [`ChunkPart`]), or only
//! cells. Erasing and asking for defined cells are requests like any other, so that they keep their
//! order among reads and writes.

use crate::buffer::Output;
use crate::{Error, Result};
use pumice_filter::location::{CellVisitor, RowCells};
use pumice_filter::{stream_copy, stream_fence};
use pumice_space::{CellSet, ChunkPart, Dims, Line, PointBand, PointPart, Segment, Selection};
use pumice_types::{Conversion, Heaped, append_references};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// One chunk's share of a read.
pub enum ReadRequest<'a> {
    /// Places values, and the fill value where there is none, into the caller's buffer.
    Values {
        /// Which cells go where.
        part: ChunkPart,
        /// The buffer.
        target: &'a Target<'a>,
    },
    /// As `Values`, for cells that are named one by one. Sparse chunks only.
    Points {
        /// Which cells go where.
        part: PointPart<'a>,
        /// The buffer.
        target: &'a Target<'a>,
    },
    /// Places the defined cells into columns.
    Cells {
        /// Which cells of the chunk are asked for; `None` for all.
        cells: Option<Selection>,
        /// The coordinates of the chunk's first cell.
        origin: Dims,
        /// The place of the chunk's cells if it has as many, and all are asked for.
        place: Option<Range<usize>>,
        /// Whether values are asked for.
        values: bool,
        /// The columns.
        sink: &'a dyn CellSink,
        /// What became of it.
        taken: &'a mut Taken,
    },
    /// Reports which of the cells are defined.
    Defined {
        /// Which cells of the chunk are asked for.
        cells: Selection,
        /// The answer: cells of the chunk.
        found: &'a mut Option<CellSet>,
    },
    /// Reports which of the cells are defined, and their values in the file's type.
    DefinedValues {
        /// Which cells of the chunk are asked for.
        cells: Selection,
        /// Whether only members of fixed size are wanted, of elements that have others: what these have then is
        /// not to be looked at.
        members: bool,
        /// The answer: cells of the chunk, and the value of each in row-major order.
        found: &'a mut Option<(CellSet, Vec<u8>)>,
    },
    /// As `DefinedValues`, with what the values refer to. Only chunks with variable-length data
    /// have it.
    DefinedHeaped {
        /// Which cells of the chunk are asked for.
        cells: Selection,
        /// The answer: cells of the chunk, and the value of each in row-major order.
        found: &'a mut Option<(CellSet, Heaped)>,
    },
}

/// Columns of coordinates and values that take the cells of a chunk.
pub trait CellSink: Sync {
    /// Puts cells of a chunk of shape `dims` at `origin`, and their values in the file's type, into
    /// `place`, which is theirs alone.
    fn put(
        &self,
        place: Range<usize>,
        dims: &[u64],
        origin: &[u64],
        cells: &CellSet,
        values: &[u8],
    ) -> Result<()>;

    /// Lets `send` show the cells of a chunk to a visitor that puts them into `place`, which is theirs
    /// alone. Whether that has happened: not if there is another number of cells, or if some lie
    /// outside the array, and then what was put means nothing.
    fn receive(
        &self,
        place: Range<usize>,
        dims: &[u64],
        origin: &[u64],
        send: &mut dyn FnMut(&mut dyn CellVisitor) -> Result<bool>,
    ) -> Result<bool>;

    /// Puts the values of cells that have been received, in the file's type.
    fn put_values(&self, place: Range<usize>, values: &[u8]) -> Result<()>;

    /// Lets `read` write the values of cells to where they belong, if they arrive there as they are in
    /// the file; whether they do.
    fn read_values(
        &self,
        place: Range<usize>,
        read: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<bool>;
}

/// What became of the cells of a chunk.
#[derive(Debug)]
pub enum Taken {
    /// There are none.
    None,
    /// They are in their place.
    Placed,
    /// They had no place: cells and values, in the file's type.
    Kept(CellSet, Vec<u8>),
}

/// One chunk's share of a write.
pub enum WriteRequest<'a> {
    /// Defines cells with values from the caller's buffer.
    Values {
        /// Which cells come from where.
        part: ChunkPart,
        /// The buffer.
        source: &'a Source<'a>,
    },
    /// As `Values`, for cells that are named one by one. Sparse chunks only.
    Points {
        /// Which cells come from where.
        part: PointPart<'a>,
        /// The buffer.
        source: &'a Source<'a>,
    },
    /// As `Points`, with cells and values put together already.
    Band {
        /// The cells and their values in the memory's type; taken by the chunk.
        band: PointBand,
        /// How values are converted.
        source: &'a Source<'a>,
    },
    /// As `Band`, with cells that have been encoded already.
    Rows {
        /// The cells and their values in the memory's type; taken by the chunk.
        part: Option<(RowCells, Vec<u8>)>,
        /// Whether these are all the rows of a chunk, among many: if it is new, it is stored at once.
        whole: bool,
        /// How values are converted.
        source: &'a Source<'a>,
    },
    /// Makes cells undefined that are named one by one. Sparse chunks only.
    ErasePoints {
        /// Which cells.
        part: PointPart<'a>,
    },
    /// Makes cells undefined; where a layout cannot say so, they get the fill value.
    Erase {
        /// Which cells of the chunk.
        cells: CellSet,
    },
}

/// What other layouts answer to points, which reach them as segments.
pub(super) fn points_of_sparse() -> Error {
    Error::Internal("points of a layout that takes segments".into())
}

/// Where a read puts its values.
pub struct Target<'a> {
    output: Output<'a>,
    conversion: Conversion,
    fill: Cow<'a, [u8]>,
    /// Whether places that get the fill value have it already.
    filled: bool,
    /// What the elements refer to: pieces of heap, if these are wanted.
    pieces: Option<Mutex<Vec<Piece>>>,
    /// Whether values are wanted even if a checksum does not match them.
    unverified: bool,
    /// Whether only members of fixed size are wanted, of elements that have others.
    members: bool,
}

/// What some elements refer to.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    /// The first of the elements.
    pub(crate) first: u64,
    /// What they refer to.
    pub(crate) bytes: Vec<u8>,
}

/// A place in a piece of heap: the piece's number, and the byte in it.
const PIECE_SHIFT: u32 = 40;

/// Which piece a place is in, and where in it.
pub(crate) fn piece_of(place: u64) -> (usize, u64) {
    ((place >> PIECE_SHIFT) as usize, place & ((1 << PIECE_SHIFT) - 1))
}

impl<'a> Target<'a> {
    /// A target for `output`. `conversion` goes from the file's type to the memory's; `fill` is one
    /// element of the file's type.
    ///
    /// Not public: who has a target can place values without `unsafe`, so only plans may get one.
    pub(crate) fn new(output: Output<'a>, conversion: Conversion, fill: &'a [u8]) -> Result<Self> {
        let fill = match conversion.is_noop() && fill.len() == conversion.target_size() {
            true => Cow::Borrowed(fill),
            false => {
                let mut converted = vec![0; conversion.target_size()];
                conversion.convert(fill, &mut converted)?;
                Cow::Owned(converted)
            }
        };
        let filled = output.is_zeroed() && fill.iter().all(|&byte| byte == 0);
        let (unverified, members) = (false, false);
        Ok(Self { output, conversion, fill, filled, pieces: None, unverified, members })
    }

    /// A target for elements of one type with variable-length parts, as the file has them, and for
    /// what they refer to.
    pub(crate) fn heaped(
        output: Output<'a>,
        conversion: Conversion,
        fill: &'a [u8],
    ) -> Result<Self> {
        Ok(Self { pieces: Some(Mutex::default()), ..Self::new(output, conversion, fill)? })
    }

    /// The same for values that are wanted even if a checksum does not match them, or not.
    pub(crate) fn unverified(self, unverified: bool) -> Self {
        Self { unverified, ..self }
    }

    /// The same, if only members of fixed size are wanted, of elements that have others, or not.
    pub(crate) fn members(self, members: bool) -> Self {
        Self { members, ..self }
    }

    /// Whether only members of fixed size are wanted, of elements that have others.
    pub(crate) fn takes_members(&self) -> bool {
        self.members
    }

    /// Whether values are wanted even if a checksum does not match them.
    pub(crate) fn is_unverified(&self) -> bool {
        self.unverified
    }

    /// The place at which the piece of heap begins that a chunk will bring, if pieces are wanted.
    pub(crate) fn open_piece(&self) -> Option<u64> {
        let pieces = self.pieces.as_ref()?;
        let mut pieces = pieces.lock().unwrap_or_else(PoisonError::into_inner);
        pieces.push(Piece::default());
        Some((pieces.len() as u64 - 1) << PIECE_SHIFT)
    }

    /// Brings the piece of heap that was opened at `base`.
    pub(crate) fn put_piece(&self, base: u64, piece: Piece) {
        if let Some(pieces) = &self.pieces
            && let Some(place) =
                pieces.lock().unwrap_or_else(PoisonError::into_inner).get_mut(piece_of(base).0)
        {
            *place = piece;
        }
    }

    /// All pieces of heap.
    pub(crate) fn into_pieces(self) -> Vec<Piece> {
        let pieces = self.pieces.unwrap_or_default();
        pieces.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of an element in memory.
    pub fn element_size(&self) -> usize {
        self.fill.len()
    }

    /// Bytes of an element in the file.
    pub fn stored_size(&self) -> usize {
        self.conversion.source_size()
    }

    /// Whether values arrive as they are in the file.
    pub fn is_noop(&self) -> bool {
        self.conversion.is_noop()
    }

    /// Puts values of the file's type, one after another, from element `memory` on.
    #[inline]
    pub fn place(&self, memory: u64, values: &[u8]) -> Result<()> {
        let size = self.element_size();
        let start = memory as usize * size;
        if self.conversion.is_noop() {
            // SAFETY: a plan gives each place of the buffer to one segment of one chunk, and one
            // thread places that chunk's segments one after another.
            unsafe { self.output.slice(start, values.len()) }.copy_from_slice(values);
            return Ok(());
        }
        let count = values.len() / self.conversion.source_size();
        // SAFETY: as above.
        let place = unsafe { self.output.slice(start, count * size) };
        Ok(self.conversion.convert(values, place)?)
    }

    /// As [`place`](Self::place), for what is part of a result that no cache holds.
    pub fn stream(&self, memory: u64, values: &[u8]) -> Result<()> {
        if !self.conversion.is_noop() {
            return self.place(memory, values);
        }
        let start = memory as usize * self.element_size();
        // SAFETY: as in `place`; the fence comes before anybody looks.
        unsafe { stream_copy(values, self.output.slice(start, values.len())) };
        stream_fence();
        Ok(())
    }

    /// Lets `read` write `count` elements from element `memory` on, if values arrive as they are in the
    /// file; whether they do.
    pub fn read_into(
        &self,
        memory: u64,
        count: usize,
        read: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<bool> {
        if !self.conversion.is_noop() {
            return Ok(false);
        }
        let size = self.element_size();
        // SAFETY: as in `place`.
        read(unsafe { self.output.slice(memory as usize * size, count * size) }).map(|()| true)
    }

    /// Puts the cells of a line in `chunk`, values of the file's type, to their places.
    pub fn place_line(&self, line: &Line, chunk: &[u8]) -> Result<()> {
        if line.count > 1 && line.first.len == 1 && self.conversion.is_noop() {
            match self.element_size() {
                1 => return self.place_apart::<1>(line, chunk),
                2 => return self.place_apart::<2>(line, chunk),
                4 => return self.place_apart::<4>(line, chunk),
                8 => return self.place_apart::<8>(line, chunk),
                _ => {}
            }
        }
        let element = self.conversion.source_size();
        line.segments().try_for_each(|segment| {
            let start = segment.cell as usize * element;
            let values = chunk.get(start..start + segment.len as usize * element);
            self.place(segment.memory, values.ok_or_else(outside)?)
        })
    }

    /// Elements of `N` bytes at equal distances.
    fn place_apart<const N: usize>(&self, line: &Line, chunk: &[u8]) -> Result<()> {
        for Segment { cell, memory, .. } in line.segments() {
            let value = chunk.get(cell as usize * N..).and_then(|rest| rest.first_chunk::<N>());
            let value = value.ok_or_else(outside)?;
            // SAFETY: as in `place`.
            unsafe { self.output.slice(memory as usize * N, N) }.copy_from_slice(value);
        }
        Ok(())
    }

    /// The memory of `len` elements from `memory` on, for reading straight into it.
    ///
    /// # Safety
    /// As for [`Output::slice`].
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn slice(&self, memory: u64, len: u64) -> &mut [u8] {
        let size = self.element_size();
        // SAFETY: the caller's promise.
        unsafe { self.output.slice(memory as usize * size, len as usize * size) }
    }

    /// Puts the fill value into `len` elements from `memory` on.
    pub fn fill(&self, memory: u64, len: u64) {
        if self.filled {
            return;
        }
        // SAFETY: as in `place`.
        fill_with(unsafe { self.slice(memory, len) }, &self.fill);
    }

    /// Puts the fill value wherever `segments` go.
    pub fn fill_all(&self, segments: impl Iterator<Item = Segment>) {
        if !self.filled {
            segments.for_each(|segment| self.fill(segment.memory, segment.len));
        }
    }
}

/// Where a write takes its values from.
pub struct Source<'a> {
    bytes: &'a [u8],
    conversion: Conversion,
    /// What the elements refer to, if they have variable-length parts.
    heap: Option<&'a [u8]>,
    /// In place of `bytes`: what the elements refer to lies one after another.
    lists: Option<Lists<'a>>,
    /// Whether it has only members of fixed size, of elements that have others.
    members: bool,
}

/// Strings or sequences one after another in a heap.
#[derive(Clone, Copy)]
pub struct Lists<'a> {
    /// Where each begins, counted in values, and where the last ends.
    pub offsets: &'a [u64],
    /// Bytes of a value.
    pub base: usize,
    /// Bytes of a reference.
    pub size: u32,
}

impl Lists<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where `len` of them begin, from number `first` on, and where the last ends.
    fn ends(&self, first: u64, len: u64) -> Result<&[u64]> {
        let ends = self.offsets.get(first as usize..=(first + len) as usize);
        ends.ok_or_else(|| {
            let (held, needed) = (self.len(), first + len);
            Error::Invalid(format!("{held} list(s), but the selection needs {needed}"))
        })
    }

    /// Where the lists at a segment's place begin and end, and their values, which lie in `from`.
    pub fn slice<'b>(&self, segment: &Segment, from: &'b [u8]) -> Result<(&[u64], &'b [u8])> {
        let ends = self.ends(segment.memory, segment.len)?;
        let byte = |end: u64| usize::try_from(end).ok()?.checked_mul(self.base);
        let (first, last) = (ends[0], ends[ends.len() - 1]);
        let range = byte(first).zip(byte(last));
        let bytes = range.and_then(|(start, end)| from.get(start..end)).ok_or_else(|| {
            Error::Invalid(format!("{last} value(s) of lists, but {} byte(s)", from.len()))
        })?;
        Ok((ends, bytes))
    }

    /// Adds the lists at a segment's place, which lie in `from`, to `heap`; gives references to them.
    pub fn append(&self, segment: &Segment, from: &[u8], heap: &mut Vec<u8>) -> Result<Vec<u8>> {
        let (ends, bytes) = self.slice(segment, from)?;
        let mut elements = Vec::new();
        append_references(ends, self.base, self.size, heap.len() as u64, &mut elements)?;
        heap.extend_from_slice(bytes);
        Ok(elements)
    }
}

impl<'a> Source<'a> {
    /// A source of `bytes`; `conversion` goes from the memory's type to the file's.
    pub fn new(bytes: &'a [u8], conversion: Conversion) -> Self {
        Self { bytes, conversion, heap: None, lists: None, members: false }
    }

    /// The same, if it has only members of fixed size, of elements that have others, or not.
    pub fn members(self, members: bool) -> Self {
        Self { members, ..self }
    }

    /// Whether it has only members of fixed size, of elements that have others.
    pub fn has_members(&self) -> bool {
        self.members
    }

    /// A source of elements as the file has them, with references into `heap`.
    pub fn heaped(bytes: &'a [u8], conversion: Conversion, heap: &'a [u8]) -> Self {
        Self { bytes, conversion, heap: Some(heap), lists: None, members: false }
    }

    /// A source of references to what lies one after another in `heap`; they are made when they are
    /// asked for. `conversion` goes from the file's type to itself.
    pub fn lists(lists: Lists<'a>, conversion: Conversion, heap: &'a [u8]) -> Self {
        Self { bytes: &[], conversion, heap: Some(heap), lists: Some(lists), members: false }
    }

    /// What the elements refer to, if they have variable-length parts.
    pub fn heap(&self) -> Option<&'a [u8]> {
        self.heap
    }

    /// The lists, if what the elements refer to lies one after another.
    pub fn as_lists(&self) -> Option<&Lists<'a>> {
        self.lists.as_ref()
    }

    /// Bytes of heap that `count` elements refer to, on average.
    pub fn heap_share(&self, count: u64) -> u64 {
        let all = match &self.lists {
            Some(lists) => lists.len(),
            None => self.bytes.len() / self.conversion.source_size(),
        };
        let all = all.max(1) as u128;
        let heap = self.heap.map_or(0, <[u8]>::len) as u128;
        u64::try_from(heap * u128::from(count) / all).unwrap_or(u64::MAX)
    }

    /// Whether values go to the file as they are.
    pub fn is_noop(&self) -> bool {
        self.conversion.is_noop()
    }

    /// Bytes of `count` elements in memory.
    pub fn bytes_of(&self, count: u64) -> usize {
        let all = match &self.lists {
            Some(lists) => lists.len().saturating_mul(lists.size as usize),
            None => self.bytes.len(),
        };
        (count as usize).saturating_mul(self.conversion.source_size()).min(all)
    }

    /// The bytes that values are taken from.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether every byte of an element is written: not so if a compound lacks members.
    pub fn overwrites(&self) -> bool {
        self.conversion.overwrites_target()
    }

    /// Bytes of an element in memory.
    pub fn element_size(&self) -> usize {
        self.conversion.source_size()
    }

    /// The elements of the memory's type at a segment's place.
    #[inline]
    pub fn slice(&self, memory: u64, len: u64) -> Result<&'a [u8]> {
        let size = self.conversion.source_size();
        let start = memory as usize * size;
        self.bytes.get(start..start + len as usize * size).ok_or_else(|| {
            Error::Invalid(format!(
                "the buffer has {} byte(s), but the selection needs element {}",
                self.bytes.len(),
                memory + len
            ))
        })
    }

    /// Appends the elements of the memory's type at a segment's place to `to`.
    #[inline]
    pub fn append(&self, memory: u64, len: u64, to: &mut Vec<u8>) -> Result<()> {
        let Some(lists) = &self.lists else {
            to.extend_from_slice(self.slice(memory, len)?);
            return Ok(());
        };
        let ends = lists.ends(memory, len)?;
        let place = ends[0].saturating_mul(lists.base as u64);
        Ok(append_references(ends, lists.base, lists.size, place, to)?)
    }

    /// Writes the values of a line, converted, to its cells in `chunk`.
    pub fn copy_line(&self, line: &Line, chunk: &mut [u8]) -> Result<()> {
        if line.count > 1 && line.first.len == 1 && self.conversion.is_noop() {
            match self.conversion.source_size() {
                1 => return self.copy_apart::<1>(line, chunk),
                2 => return self.copy_apart::<2>(line, chunk),
                4 => return self.copy_apart::<4>(line, chunk),
                8 => return self.copy_apart::<8>(line, chunk),
                _ => {}
            }
        }
        let element = self.conversion.target_size();
        line.segments().try_for_each(|segment| {
            let start = segment.cell as usize * element;
            let place = chunk.get_mut(start..start + segment.len as usize * element);
            self.copy_to(segment.memory, segment.len, place.ok_or_else(outside)?)
        })
    }

    /// Elements of `N` bytes at equal distances.
    fn copy_apart<const N: usize>(&self, line: &Line, chunk: &mut [u8]) -> Result<()> {
        for Segment { cell, memory, .. } in line.segments() {
            let place = chunk.get_mut(cell as usize * N..);
            let place = place.and_then(|rest| rest.first_chunk_mut::<N>()).ok_or_else(outside)?;
            place.copy_from_slice(self.slice(memory, 1)?);
        }
        Ok(())
    }

    /// Writes a segment's values, converted, into `place`.
    #[inline]
    pub fn copy_to(&self, memory: u64, len: u64, place: &mut [u8]) -> Result<()> {
        let from = self.slice(memory, len)?;
        if self.conversion.is_noop() {
            place.copy_from_slice(from);
            return Ok(());
        }
        Ok(self.conversion.convert(from, place)?)
    }

    /// Converts elements that were collected from [`slice`](Self::slice)s. Bytes that the
    /// conversion leaves alone are those of `old`, which is made only if there are any.
    pub fn convert(&self, collected: Vec<u8>, old: impl FnOnce() -> Vec<u8>) -> Result<Vec<u8>> {
        if self.conversion.is_noop() {
            return Ok(collected);
        }
        let count = collected.len() / self.conversion.source_size();
        let mut converted = match self.overwrites() {
            true => vec![0; count * self.conversion.target_size()],
            false => old(),
        };
        self.conversion.convert(&collected, &mut converted)?;
        Ok(converted)
    }
}

fn outside() -> Error {
    Error::Internal("a cell outside its chunk".into())
}

/// Repeats `element` over `place`.
pub fn fill_with(place: &mut [u8], element: &[u8]) {
    match element {
        [] => {}
        [first, rest @ ..] if rest.iter().all(|byte| byte == first) => place.fill(*first),
        _ => place.chunks_exact_mut(element.len()).for_each(|to| to.copy_from_slice(element)),
    }
}
