//! A chunk of a frame: header, places of blocks, blocks.
//!
//! The first 16 bytes are those of [`blosc`](crate::blosc). If both kinds of shuffle are marked, 16 more follow: six
//! filters, the user's codec, its parameter, a parameter for each filter, and flags. A stream of no bytes is zeros; one of a
//! negative number of bytes is that byte again and again.

use super::{NAME, corrupt, unknown};
use crate::bitshuffle::from_rows;
use crate::blosc::codec::Codec;
use crate::shuffle::unshuffle;
use crate::{FilterError, scratch};
use pumice_bytes::Reader;

const SHORT_HEADER: usize = 16;
const LONG_HEADER: usize = 32;
const FILTERS: usize = 6;

const BYTES_SHUFFLED: u8 = 0x01;
const STORED: u8 = 0x02;
const BITS_SHUFFLED: u8 = 0x04;
const DELTA_MADE: u8 = 0x08;
const ONE_STREAM: u8 = 0x10;

const SHUFFLE: u8 = 1;
const BITSHUFFLE: u8 = 2;
const DELTA: u8 = 3;
const TRUNCATE: u8 = 4;

/// Blocks of this format and older have rows of bits only if their elements are a multiple of eight.
const WHOLE_ROWS: u8 = 2;

/// The contents of a chunk without data.
#[derive(Clone, Copy)]
pub(super) enum Special {
    Zeros,
    NotANumber,
}

impl Special {
    /// The kind with this number; unknown numbers stand for zeros.
    pub(super) fn of(number: u8) -> Option<Self> {
        match number {
            1 | 4 => Some(Self::Zeros),
            2 => Some(Self::NotANumber),
            _ => None,
        }
    }

    pub(super) fn fill(self, element: usize, out: &mut [u8]) -> Result<(), FilterError> {
        match (self, element) {
            (Self::Zeros, _) => out.fill(0),
            (Self::NotANumber, 4) => repeat(&f32::NAN.to_le_bytes(), out),
            (Self::NotANumber, 8) => repeat(&f64::NAN.to_le_bytes(), out),
            (Self::NotANumber, other) => return Err(corrupt("NaN of 4 or 8 bytes", other)),
        }
        Ok(())
    }
}

/// Fills a buffer with a value, again and again.
fn repeat(value: &[u8], out: &mut [u8]) {
    out.chunks_mut(value.len().max(1)).for_each(|to| to.copy_from_slice(&value[..to.len()]));
}

/// Buffers that blocks go through.
#[derive(Default)]
pub(super) struct Work {
    streams: Vec<u8>,
    stream: Vec<u8>,
    other: Vec<u8>,
    spare: Vec<u8>,
}

/// The contents behind the header.
enum Content<'a> {
    /// A value, again and again.
    Value(&'a [u8]),
    Special(Special),
    Plain(&'a [u8]),
    /// The place of each block.
    Blocks(&'a [[u8; 4]], Codec),
}

pub(super) struct Chunk<'a> {
    bytes: &'a [u8],
    version: u8,
    one_stream: bool,
    element: usize,
    /// Bytes of the content.
    pub(super) length: usize,
    /// Bytes of a block's content, but for the last.
    pub(super) block: usize,
    filters: [(u8, u8); FILTERS],
    content: Content<'a>,
}

impl<'a> Chunk<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, FilterError> {
        let short = || corrupt("a whole chunk", format!("{} bytes", bytes.len()));
        let [version, _, flags, element, rest @ ..] =
            *bytes.first_chunk::<SHORT_HEADER>().ok_or_else(short)?;
        let field = |at: usize| {
            u32::from_le_bytes([rest[at], rest[at + 1], rest[at + 2], rest[at + 3]]) as usize
        };
        let (length, block, stored) = (field(0), field(4), field(8));
        let bytes = bytes.get(..stored).ok_or_else(short)?;
        let extended = flags & BYTES_SHUFFLED != 0 && flags & BITS_SHUFFLED != 0;
        let header = if extended { LONG_HEADER } else { SHORT_HEADER };
        let body = bytes.get(header..).ok_or_else(short)?;
        if element == 0 || block == 0 || length > i32::MAX as usize {
            return Err(corrupt(
                "elements and blocks of some bytes",
                format!("{:02x?}", &bytes[..16]),
            ));
        }
        let (mut filters, mut special) = (old_filters(flags), 0);
        if extended {
            let more = &bytes[SHORT_HEADER..LONG_HEADER];
            filters = std::array::from_fn(|at| (more[at], more[8 + at]));
            special = more[15] >> 4 & 7;
            check_flags(more[14], more[15])?;
        }
        let mut chunk = Self {
            bytes,
            version,
            one_stream: flags & ONE_STREAM != 0,
            element: usize::from(element),
            length,
            block: block.min(length.max(1)),
            filters,
            content: Content::Plain(body),
        };
        chunk.content = match special {
            3 if !body.is_empty() => Content::Value(body),
            0 if flags & STORED != 0 && body.len() == length => Content::Plain(body),
            0 if flags & STORED == 0 => chunk.places(body, flags >> 5)?,
            number => {
                Content::Special(Special::of(number).ok_or_else(|| corrupt("a known run", number))?)
            }
        };
        Ok(chunk)
    }

    fn places(&self, body: &'a [u8], codec: u8) -> Result<Content<'a>, FilterError> {
        if codec > 4 {
            return Err(unknown("a codec that is not built into Blosc2"));
        }
        let codec = Codec::of_format(codec).ok_or_else(|| corrupt("a codec of 0 to 4", codec))?;
        let places = body.as_chunks::<4>().0.get(..self.length.div_ceil(self.block));
        let places = places.ok_or_else(|| corrupt("a place for every block", body.len()))?;
        self.check_filters()?;
        Ok(Content::Blocks(places, codec))
    }

    /// Fails if filters are not built in, or if differences are not the first.
    fn check_filters(&self) -> Result<(), FilterError> {
        let mut before = false;
        for &(filter, _) in &self.filters {
            match filter {
                0 | TRUNCATE => {}
                DELTA if before => return Err(unknown("differences behind another filter")),
                SHUFFLE | BITSHUFFLE | DELTA => before = true,
                other => {
                    return Err(unknown(format!("filter {other}, which is not built into Blosc2")));
                }
            }
        }
        Ok(())
    }

    /// Whether blocks are differences from the first.
    pub(super) fn has_delta(&self) -> bool {
        self.filters.iter().any(|(filter, _)| *filter == DELTA)
    }

    /// Fills `out` with the content, which must be as long.
    pub(super) fn decode(&self, out: &mut [u8], work: &mut Work) -> Result<(), FilterError> {
        if out.len() != self.length {
            return Err(corrupt(format!("a chunk of {} bytes", out.len()), self.length));
        }
        let (first, rest) = out.split_at_mut(self.block.min(self.length));
        if !first.is_empty() {
            self.decode_block(0, &[], first, work)?;
        }
        for (number, block) in (1..).zip(rest.chunks_mut(self.block)) {
            self.decode_block(number, first, block, work)?;
        }
        Ok(())
    }

    /// Fills `out` with a block; `first` is the first one's content.
    pub(super) fn decode_block(
        &self,
        number: usize,
        first: &[u8],
        out: &mut [u8],
        work: &mut Work,
    ) -> Result<(), FilterError> {
        let start = number.saturating_mul(self.block);
        match self.content {
            Content::Special(special) => special.fill(self.element, out),
            Content::Value(value) => {
                // A block may begin inside a value.
                let turned = start % value.len();
                let values = value[turned..].iter().chain(&value[..turned]).cycle();
                out.iter_mut().zip(values).for_each(|(to, byte)| *to = *byte);
                Ok(())
            }
            Content::Plain(bytes) => {
                let block = bytes.get(start..).and_then(|bytes| bytes.get(..out.len()));
                out.copy_from_slice(
                    block.ok_or_else(|| corrupt("a block", "the end of the chunk"))?,
                );
                Ok(())
            }
            Content::Blocks(places, codec) => {
                let place =
                    places.get(number).ok_or_else(|| corrupt("a place of the block", number))?;
                let mut reader = Reader::new(NAME, 0, self.bytes);
                let outside = |_| corrupt("a block inside the chunk", format!("{place:02x?}"));
                reader.skip(u32::from_le_bytes(*place) as usize).map_err(outside)?;
                self.read_streams(codec, &mut reader, out.len(), work)?;
                self.undo_filters(first, out, work)
            }
        }
    }

    /// Replaces `work.streams` by the streams of a block of `length` bytes.
    fn read_streams(
        &self,
        codec: Codec,
        reader: &mut Reader<'_>,
        length: usize,
        work: &mut Work,
    ) -> Result<(), FilterError> {
        let several = !self.one_stream && length == self.block;
        let count = if several { self.element } else { 1 };
        let each = length / count;
        if each * count != length {
            return Err(corrupt(format!("blocks that {count} streams make"), length));
        }
        scratch::room(NAME, &mut work.streams, length)?;
        let cut = |_| corrupt("whole streams", "the end of the chunk");
        for _ in 0..count {
            let end = work.streams.len() + each;
            let stored = reader.u32().map_err(cut)? as i32;
            if stored <= 0 {
                work.streams.resize(end, repeated(stored, reader)?);
                continue;
            }
            let bytes = reader.take(stored as usize).map_err(cut)?;
            if bytes.len() == each {
                work.streams.extend_from_slice(bytes);
                continue;
            }
            codec.decompress(NAME, bytes, each, &mut work.stream)?;
            work.streams.extend_from_slice(&work.stream);
            if work.streams.len() != end {
                return Err(corrupt(format!("a stream of {each} bytes"), work.stream.len()));
            }
        }
        Ok(())
    }

    /// Undoes the filters, last to first, from `work.streams` to `out`.
    fn undo_filters(
        &self,
        first: &[u8],
        out: &mut [u8],
        work: &mut Work,
    ) -> Result<(), FilterError> {
        let Work { streams, other, spare, .. } = work;
        for &(filter, parameter) in self.filters.iter().rev() {
            let element = match parameter {
                0 => self.element,
                grouped => usize::from(grouped),
            };
            match filter {
                SHUFFLE => {
                    scratch::size(NAME, other, streams.len())?;
                    unshuffle(element, streams, other);
                    std::mem::swap(streams, other);
                }
                BITSHUFFLE => {
                    scratch::size(NAME, other, streams.len())?;
                    scratch::size(NAME, spare, streams.len())?;
                    self.undo_bitshuffle(streams, other, spare);
                    std::mem::swap(streams, other);
                }
                DELTA => undo_delta(self.element, first, streams),
                _ => {}
            }
        }
        out.copy_from_slice(streams);
        Ok(())
    }

    fn undo_bitshuffle(&self, rows: &[u8], out: &mut [u8], spare: &mut Vec<u8>) {
        let count = rows.len() / self.element;
        let whole = match self.version {
            ..=WHOLE_ROWS if !count.is_multiple_of(8) => 0,
            _ => count / 8 * 8,
        };
        let (inside, rest) = out.split_at_mut(whole * self.element);
        rest.copy_from_slice(&rows[inside.len()..]);
        if !inside.is_empty() {
            from_rows(self.element, &rows[..inside.len()], inside, spare);
        }
    }
}

/// The filters of a header without a filter list.
fn old_filters(flags: u8) -> [(u8, u8); FILTERS] {
    let mut filters = [(0, 0); FILTERS];
    if flags & BYTES_SHUFFLED != 0 {
        filters[FILTERS - 1].0 = SHUFFLE;
    } else if flags & BITS_SHUFFLED != 0 {
        filters[FILTERS - 1].0 = BITSHUFFLE;
    }
    if flags & DELTA_MADE != 0 {
        filters[FILTERS - 2].0 = DELTA;
    }
    filters
}

/// Fails for features that HDF5's chunks do not use.
fn check_flags(second: u8, first: u8) -> Result<(), FilterError> {
    let unusual = [
        (second & 1 != 0, "blocks of varying length"),
        (first & 0x01 != 0, "a dictionary"),
        (first & 0x08 != 0, "blocks that are elsewhere"),
        (first & 0x80 != 0, "an instrumented codec"),
    ];
    match unusual.into_iter().find(|(is, _)| *is) {
        Some((_, what)) => Err(unknown(what)),
        None => Ok(()),
    }
}

/// The byte that a stream of a number of bytes below one consists of.
fn repeated(stored: i32, reader: &mut Reader<'_>) -> Result<u8, FilterError> {
    if stored == 0 {
        return Ok(0);
    }
    let token = reader.u8().map_err(|_| corrupt("a kind of stream", "the end of the chunk"))?;
    let byte = u8::try_from(stored.unsigned_abs()).ok().filter(|_| token & 1 != 0);
    byte.ok_or_else(|| corrupt("a repeated byte", format!("{stored}, kind {token}")))
}

/// Undoes differences: of the first block, from the element before; of others, from the first block.
fn undo_delta(element: usize, first: &[u8], block: &mut [u8]) {
    let width = match element {
        1 | 2 | 4 | 8 => element,
        other if other.is_multiple_of(8) => 8,
        _ => 1,
    };
    let whole = block.len() / width * width;
    if first.is_empty() {
        for at in width..whole {
            block[at] ^= block[at - width];
        }
        return;
    }
    block[..whole].iter_mut().zip(first).for_each(|(byte, before)| *byte ^= before);
}
