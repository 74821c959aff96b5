//! Where a read puts its values: the caller's buffer, in the type that the caller wants, and pieces of heap.

use super::{fill_with, outside};
use crate::buffer::Output;
use pumice_filter::{stream_copy, stream_fence};
use pumice_medium::Result;
use pumice_medium::zeroed;
use pumice_space::{Line, Segment};
use pumice_types::Conversion;
use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

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
    /// Whether only the members of fixed size are wanted of elements with other members.
    members: bool,
    /// How many bytes go through a buffer at a time, if not as many as usual.
    piece: Option<u64>,
}

/// What some elements refer to.
#[derive(Debug, Default)]
pub struct Piece {
    /// The first of the elements.
    pub first: u64,
    /// What they refer to.
    pub bytes: Vec<u8>,
}

/// A place in a piece of heap: the piece's number, and the byte in it.
const PIECE_SHIFT: u32 = 40;

/// Which piece a place is in, and where in it.
pub fn piece_of(place: u64) -> (usize, u64) {
    ((place >> PIECE_SHIFT) as usize, place & ((1 << PIECE_SHIFT) - 1))
}

impl<'a> Target<'a> {
    /// A target for `output`. `conversion` goes from the file's type to the memory's; `fill` is one
    /// element of the file's type.
    ///
    /// # Safety
    /// Who has a target can place values without `unsafe`. So as long as the target lives, no two threads may place
    /// anything at the same elements at the same time, and nobody may have a slice of elements where another
    /// places something. A plan sees to that: it gives each element to one segment of one chunk, and one thread
    /// places the segments of a chunk, one after another.
    pub unsafe fn new(output: Output<'a>, conversion: Conversion, fill: &'a [u8]) -> Result<Self> {
        let fill = match conversion.is_noop() && fill.len() == conversion.target_size() {
            true => Cow::Borrowed(fill),
            false => {
                let mut converted = zeroed(conversion.target_size())?;
                conversion.convert(fill, &mut converted)?;
                Cow::Owned(converted)
            }
        };
        let filled = output.is_zeroed() && fill.iter().all(|&byte| byte == 0);
        let (unverified, members) = (false, false);
        let (pieces, piece) = (None, None);
        Ok(Self { output, conversion, fill, filled, pieces, unverified, members, piece })
    }

    /// A target for elements of one type with variable-length parts, as the file has them, and for
    /// what they refer to.
    ///
    /// # Safety
    /// As for [`new`](Self::new).
    pub unsafe fn heaped(
        output: Output<'a>,
        conversion: Conversion,
        fill: &'a [u8],
    ) -> Result<Self> {
        // SAFETY: the caller's promise.
        let target = unsafe { Self::new(output, conversion, fill)? };
        Ok(Self { pieces: Some(Mutex::default()), ..target })
    }

    /// Says whether values are wanted even if a checksum does not match them.
    pub fn unverified(self, unverified: bool) -> Self {
        Self { unverified, ..self }
    }

    /// Sets the size of the conversion buffer in bytes; `None`: the usual size.
    pub fn in_pieces(self, piece: Option<u64>) -> Self {
        Self { piece, ..self }
    }

    /// How many bytes go through a buffer at a time, if not as many as usual.
    pub fn piece(&self) -> Option<u64> {
        self.piece
    }

    /// Says whether only the members of fixed size are wanted of elements with other members.
    pub fn members(self, members: bool) -> Self {
        Self { members, ..self }
    }

    /// Whether only the members of fixed size are wanted of elements with other members.
    pub fn takes_members(&self) -> bool {
        self.members
    }

    /// Whether values are wanted even if a checksum does not match them.
    pub fn is_unverified(&self) -> bool {
        self.unverified
    }

    /// The place at which the piece of heap begins that a chunk will bring, if pieces are wanted.
    pub fn open_piece(&self) -> Option<u64> {
        let pieces = self.pieces.as_ref()?;
        let mut pieces = pieces.lock().unwrap_or_else(PoisonError::into_inner);
        pieces.push(Piece::default());
        Some((pieces.len() as u64 - 1) << PIECE_SHIFT)
    }

    /// Brings the piece of heap that was opened at `base`.
    pub fn put_piece(&self, base: u64, piece: Piece) {
        if let Some(pieces) = &self.pieces
            && let Some(place) =
                pieces.lock().unwrap_or_else(PoisonError::into_inner).get_mut(piece_of(base).0)
        {
            *place = piece;
        }
    }

    /// All pieces of heap.
    pub fn into_pieces(self) -> Vec<Piece> {
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
            // SAFETY: whoever made the target has promised that nobody else places anything here now.
            unsafe { self.output.write(start, values) };
            return Ok(());
        }
        let count = values.len() / self.conversion.source_size();
        // SAFETY: as above.
        let place = unsafe { self.output.written(start, count * size) };
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
        read(unsafe { self.output.written(memory as usize * size, count * size) }).map(|()| true)
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
        let (element, noop) = (self.conversion.source_size(), self.conversion.is_noop());
        for segment in line.segments() {
            let start = segment.cell as usize * element;
            let values = chunk.get(start..start + segment.len as usize * element);
            let values = values.ok_or_else(outside)?;
            if noop {
                // SAFETY: as in `place`.
                unsafe { self.output.write(segment.memory as usize * element, values) };
            } else {
                self.place(segment.memory, values)?;
            }
        }
        Ok(())
    }

    /// Elements of `N` bytes at equal distances.
    fn place_apart<const N: usize>(&self, line: &Line, chunk: &[u8]) -> Result<()> {
        for Segment { cell, memory, .. } in line.segments() {
            let value = chunk.get(cell as usize * N..).and_then(|rest| rest.first_chunk::<N>());
            let value = value.ok_or_else(outside)?;
            // SAFETY: as in `place`.
            unsafe { self.output.write(memory as usize * N, value) };
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
        unsafe { self.output.written(memory as usize * size, len as usize * size) }
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
