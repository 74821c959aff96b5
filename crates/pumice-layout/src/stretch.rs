//! Elements in one stretch of the file, read into and written from the caller's memory.
//!
//! Cells that lie close together in the file move in one call, whatever their order in memory: a
//! few kilobytes too many cost less than a call more. Cells far apart move one by one. Where types
//! differ, elements are converted in pieces of limited size; where nothing is to be converted and a
//! piece lies in one in file and memory, it goes straight from one to the other.
//!
//! Nothing here is kept from one call to the next. Writing rewrites bytes between close cells with
//! what they were: the caller keeps other writes of these bytes away meanwhile
//! (`Stretch::write_reach`).

use super::request::{Source, Target};
use pumice_bytes::DecodeError;
use pumice_cache::{Direct, Fetch, Put, Reach};
use pumice_filter::scratch;
use pumice_medium::Medium;
use pumice_medium::{Error, Result};
use pumice_space::{Run, Segment};
use pumice_store::{ReadOp, WriteOp};

/// Cells move together if what lies between them is no larger than this.
const GAP: u64 = 4096;
/// The most that moves in one piece through a buffer of our own, unless a request says otherwise.
pub(super) const PIECE: u64 = 1 << 20;
/// The most pieces that are named before any of them moves.
const MOST_PIECES: usize = 4096;
/// Neighbours of this size on average are not worth copying together or apart.
const WORTH_A_PIECE: u64 = 1024;

/// Elements of one size from an address on.
pub(super) struct Stretch<'m> {
    medium: &'m Medium,
    address: u64,
    element: u64,
}

impl<'m> Stretch<'m> {
    pub(super) fn new(medium: &'m Medium, address: u64, element: usize) -> Self {
        Self { medium, address, element: element as u64 }
    }

    /// Reads cells to their places in memory, or names these if nothing else is to be done.
    pub(super) fn read<'r, S: Iterator<Item = Segment>>(
        &self,
        segments: impl Fn() -> S,
        target: &'r Target<'_>,
        extents: &mut Vec<Fetch<'r>>,
    ) -> Result<Direct> {
        let pieces = self.pieces_to_move(segments(), target.is_noop());
        if let Some(count) = pieces {
            extents.reserve(count);
            for segment in segments() {
                // SAFETY: a plan gives each place of the buffer to one segment.
                let buffer = unsafe { target.slice(segment.memory, segment.len) };
                extents.push(Fetch { offset: self.at(segment.cell)?, buffer });
            }
            return Ok(Direct::Extents);
        }
        self.read_in_windows(segments(), target).map(|bytes| Direct::Done { bytes })
    }

    /// How many pieces would move, if nothing is to be done but to move them and they are few and
    /// large enough.
    fn pieces_to_move(
        &self,
        segments: impl Iterator<Item = Segment>,
        straight: bool,
    ) -> Option<usize> {
        if !straight {
            return None;
        }
        let (mut count, mut cells) = (0, 0);
        for segment in segments {
            count += 1;
            cells += segment.len;
            if count > MOST_PIECES {
                return None;
            }
        }
        (count <= 1 || cells * self.element / count as u64 >= WORTH_A_PIECE).then_some(count)
    }

    /// Reads runs of cells, which ascend, one after another into `values`.
    pub(super) fn gather(&self, runs: impl Iterator<Item = Run>, values: &mut [u8]) -> Result<()> {
        let mut buffer = Buffer::default();
        self.in_windows(packed(runs), true, None, |window| match window {
            [alone] => self.read_bytes(alone.cell, &mut values[self.in_memory(alone)]),
            [first, .., last] => {
                let (start, end) = (first.cell, last.cell + last.len);
                let bytes = buffer.sized(((end - start) * self.element) as usize);
                self.read_bytes(start, bytes)?;
                for segment in window {
                    let found = &bytes[self.within(start, segment)];
                    values[self.in_memory(segment)].copy_from_slice(found);
                }
                Ok(())
            }
            [] => Ok(()),
        })?;
        Ok(())
    }

    /// Writes `values`, one after another, to runs of cells, which ascend.
    pub(super) fn scatter(&self, runs: impl Iterator<Item = Run>, values: &[u8]) -> Result<()> {
        let mut buffer = Buffer::default();
        self.in_windows(packed(runs), true, None, |window| match window {
            [alone] => self.write_bytes(alone.cell, &values[self.in_memory(alone)]),
            [first, .., last] => {
                let (start, end) = (first.cell, last.cell + last.len);
                let bytes = buffer.sized(((end - start) * self.element) as usize);
                self.read_bytes(start, bytes)?;
                for segment in window {
                    let place = &mut bytes[self.within(start, segment)];
                    place.copy_from_slice(&values[self.in_memory(segment)]);
                }
                self.write_bytes(start, bytes)
            }
            [] => Ok(()),
        })?;
        Ok(())
    }

    /// Reads cells to their places in memory, and returns the number of bytes.
    pub(super) fn read_in_windows(
        &self,
        segments: impl Iterator<Item = Segment>,
        target: &Target<'_>,
    ) -> Result<u64> {
        let mut buffer = Buffer::default();
        self.in_windows(segments, target.is_noop(), target.piece(), |window| match window {
            [alone] if target.is_noop() => {
                // SAFETY: a plan gives each place of the buffer to one segment.
                let memory = unsafe { target.slice(alone.memory, alone.len) };
                self.read_bytes(alone.cell, memory)
            }
            [first, .., last] | [first @ last] => {
                let (start, end) = (first.cell, last.cell + last.len);
                let moved: u64 = window.iter().map(|segment| segment.len).sum();
                let piece = moved * self.element / window.len() as u64;
                if target.is_noop() && moved == end - start && piece >= WORTH_A_PIECE {
                    return self.read_neighbours(window, target);
                }
                let bytes = buffer.sized(((end - start) * self.element) as usize);
                self.read_bytes(start, bytes)?;
                for segment in window {
                    target.place(segment.memory, &bytes[self.within(start, segment)])?;
                }
                Ok(())
            }
            [] => Ok(()),
        })
    }

    /// Writes cells from their places in memory, or names these if nothing else is to be done.
    pub(super) fn write<'r, S: Iterator<Item = Segment>>(
        &self,
        segments: impl Fn() -> S,
        source: &'r Source<'_>,
        extents: &mut Vec<Put<'r>>,
    ) -> Result<Direct> {
        if let Some(count) = self.pieces_to_move(segments(), source.is_noop()) {
            extents.reserve(count);
            for segment in segments() {
                let bytes = source.slice(segment.memory, segment.len)?;
                extents.push(Put { offset: self.at(segment.cell)?, bytes });
            }
            return Ok(Direct::Extents);
        }
        self.write_in_windows(segments(), source).map(|bytes| Direct::Done { bytes })
    }

    /// What a [write](Self::write) touches, in cells: it may put back what lies between them as it was.
    pub(super) fn write_reach<S: Iterator<Item = Segment>>(
        &self,
        segments: impl Fn() -> S,
        source: &Source<'_>,
    ) -> Reach {
        let reach = reach(segments());
        let straight = self.pieces_to_move(segments(), source.is_noop()).is_some();
        match straight || !self.has_near_cells(segments()) {
            true => reach,
            false => reach.rewriting(GAP / self.element.max(1)),
        }
    }

    /// Whether something lies between cells that move together.
    fn has_near_cells(&self, mut segments: impl Iterator<Item = Segment>) -> bool {
        let mut end: Option<u64> = None;
        segments.any(|segment| {
            let before = end.replace(segment.cell + segment.len);
            let hole = before.and_then(|before| segment.cell.checked_sub(before));
            hole.is_some_and(|hole| hole > 0 && hole.saturating_mul(self.element) <= GAP)
        })
    }

    /// Writes cells from their places in memory, and returns the number of bytes.
    fn write_in_windows(
        &self,
        segments: impl Iterator<Item = Segment>,
        source: &Source<'_>,
    ) -> Result<u64> {
        let mut buffer = Buffer::default();
        self.in_windows(segments, source.is_noop(), source.piece(), |window| match window {
            [alone] if source.is_noop() => {
                self.write_bytes(alone.cell, source.slice(alone.memory, alone.len)?)
            }
            [first, .., last] | [first @ last] => {
                let (start, span) = (first.cell, last.cell + last.len - first.cell);
                let moved: u64 = window.iter().map(|segment| segment.len).sum();
                let piece = moved * self.element / window.len() as u64;
                if source.is_noop() && moved == span && piece >= WORTH_A_PIECE {
                    return self.write_neighbours(window, source);
                }
                let bytes = buffer.sized((span * self.element) as usize);
                if moved < span || !source.overwrites() {
                    self.read_bytes(start, bytes)?;
                }
                for segment in window {
                    let place = &mut bytes[self.within(start, segment)];
                    source.copy_to(segment.memory, segment.len, place)?;
                }
                self.write_bytes(start, bytes)
            }
            [] => Ok(()),
        })
    }

    /// Reads segments that follow one another in the file.
    fn read_neighbours(&self, window: &[Segment], target: &Target<'_>) -> Result<()> {
        let mut ops = Vec::with_capacity(window.len());
        for segment in window {
            // SAFETY: a plan gives each place of the buffer to one segment.
            let buffer = unsafe { target.slice(segment.memory, segment.len) };
            ops.push(ReadOp { offset: self.at(segment.cell)?, buffer });
        }
        self.medium.fetch(&mut ops)
    }

    /// Writes segments that follow one another in the file.
    fn write_neighbours(&self, window: &[Segment], source: &Source<'_>) -> Result<()> {
        let mut ops = Vec::with_capacity(window.len());
        for segment in window {
            let bytes = source.slice(segment.memory, segment.len)?;
            ops.push(WriteOp { offset: self.at(segment.cell)?, bytes });
        }
        self.medium.put(&mut ops)
    }

    /// Divides segments into windows: cells that move together. Segments that can go straight are
    /// never cut; others are no larger than a piece.
    fn in_windows(
        &self,
        segments: impl Iterator<Item = Segment>,
        straight: bool,
        piece: Option<u64>,
        mut handle: impl FnMut(&[Segment]) -> Result<()>,
    ) -> Result<u64> {
        let piece = piece.unwrap_or(PIECE);
        let mut window: Vec<Segment> = Vec::new();
        let mut cells = 0;
        for segment in segments {
            cells += segment.len;
            if straight && segment.len * self.element >= piece {
                handle(&window)?;
                window.clear();
                handle(&[segment])?;
                continue;
            }
            for segment in self.pieces(segment, piece) {
                if !self.joins(&window, &segment, piece) {
                    handle(&window)?;
                    window.clear();
                }
                window.push(segment);
            }
        }
        handle(&window)?;
        Ok(cells * self.element)
    }

    /// Whether `next` can move together with the segments before it.
    fn joins(&self, window: &[Segment], next: &Segment, piece: u64) -> bool {
        let (Some(first), Some(last)) = (window.first(), window.last()) else { return true };
        let end = last.cell + last.len;
        next.cell >= end
            && (next.cell - end) * self.element <= GAP
            && (next.cell + next.len - first.cell) * self.element <= piece
    }

    /// Cuts a segment into pieces of limited size.
    fn pieces(&self, segment: Segment, piece: u64) -> impl Iterator<Item = Segment> + use<> {
        let most = (piece / self.element.max(1)).max(1);
        (0..segment.len.div_ceil(most)).map(move |i| Segment {
            cell: segment.cell + i * most,
            memory: segment.memory + i * most,
            len: most.min(segment.len - i * most),
        })
    }

    /// The bytes of a segment in a window that begins at cell `start`.
    fn within(&self, start: u64, segment: &Segment) -> std::ops::Range<usize> {
        let from = ((segment.cell - start) * self.element) as usize;
        from..from + (segment.len * self.element) as usize
    }

    /// The bytes of a segment among elements one after another.
    fn in_memory(&self, segment: &Segment) -> std::ops::Range<usize> {
        let start = (segment.memory * self.element) as usize;
        start..start + (segment.len * self.element) as usize
    }

    pub(super) fn read_bytes(&self, cell: u64, buffer: &mut [u8]) -> Result<()> {
        self.medium.fetch(&mut [ReadOp { offset: self.at(cell)?, buffer }])
    }

    pub(super) fn write_bytes(&self, cell: u64, bytes: &[u8]) -> Result<()> {
        self.medium.put(&mut [WriteOp { offset: self.at(cell)?, bytes }])
    }

    /// Where a cell is, in data that a file may have put anywhere.
    fn at(&self, cell: u64) -> Result<u64> {
        let offset = cell.checked_mul(self.element);
        let end = offset.and_then(|offset| self.address.checked_add(offset));
        end.ok_or_else(|| beyond(self.address, u64::MAX))
    }
}

/// Runs of cells that are one after another in memory.
fn packed(runs: impl Iterator<Item = Run>) -> impl Iterator<Item = Segment> {
    runs.scan(0, |next, run| {
        let memory = *next;
        *next += run.len;
        Some(Segment { cell: run.start, memory, len: run.len })
    })
}

/// The cells of segments.
pub(super) fn reach(segments: impl Iterator<Item = Segment>) -> Reach {
    Reach::of(segments.map(|segment| segment.cell..segment.cell.saturating_add(segment.len)))
}

/// The error for data that reaches beyond the end of its file.
pub fn beyond(address: u64, length: u64) -> Error {
    let expected = format!("data that ends before {length:#x}");
    DecodeError::new("contiguous data", address, expected, "more").into()
}

/// A buffer that is used again and again, by this call and by later ones of the thread.
#[derive(Default)]
struct Buffer(Vec<u8>);

impl Buffer {
    /// Its first `len` bytes, of whatever content.
    fn sized(&mut self, len: usize) -> &mut [u8] {
        if self.0.len() < len {
            scratch::give(std::mem::replace(&mut self.0, scratch::take(len)));
            if self.0.len() < len {
                self.0.resize(len, 0);
            }
        }
        &mut self.0[..len]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        scratch::give(std::mem::take(&mut self.0));
    }
}
