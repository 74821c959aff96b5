//! A contiguous frame: the places of its chunks, and its metalayers.
//!
//! ```text
//! header:  9E | A8 "b2frame\0" | D2 header bytes i32 | CF frame bytes u64 | A4 flags: form, kind, codec, other
//!          D3 bytes of content i64 | D3 bytes of chunks i64 | D2 bytes of an element | D2 of a block | D2 of a chunk
//!          D1 threads | D1 threads | C2 or C3 | D8 filters, 17 bytes
//!          93 | CD metalayers' bytes u16 | DE count u16 | A0+n name, D2 offset i32 | ... | contents, each C6 length u32, bytes
//! chunks, one after another | index: a chunk of offsets of 8 bytes each, behind the header | trailer
//! ```
//!
//! Numbers of the header are big-endian, as msgpack has them; everything else is little-endian.

use super::array::Array;
use super::chunk::{Chunk, Special, Work};
use super::{NAME, corrupt, unknown};
use crate::{FilterError, scratch};
use pumice_bytes::Reader;

const MAGIC: &[u8; 8] = b"b2frame\0";
/// The offsets of the header's fields.
const MAGIC_AT: usize = 2;
const HEADER_LENGTH: usize = 11;
const FRAME_LENGTH: usize = 16;
const FLAGS: usize = 25;
const KIND: usize = 26;
const CONTENT: usize = 30;
const CHUNKS: usize = 39;
const ELEMENT: usize = 48;
const CHUNK: usize = 58;
const METALAYERS: usize = 87;
/// Flags of frames whose chunks or blocks have lengths of their own.
const VARIABLE: u8 = 0xC0;

/// A frame that was looked at.
pub(super) struct Frame<'a> {
    header: &'a [u8],
    /// Chunks and index.
    body: &'a [u8],
    /// Bytes of the chunks, in front of the index.
    stored: usize,
    /// Bytes of the content, padding included.
    pub(super) length: u64,
    /// Bytes of a chunk's content.
    pub(super) chunk_length: usize,
    pub(super) element: usize,
}

/// The place of a chunk, or its constant contents.
pub(super) enum Place<'a> {
    At(&'a [u8]),
    Special(Special),
}

impl<'a> Frame<'a> {
    pub(super) fn parse(input: &'a [u8]) -> Result<Self, FilterError> {
        let fixed = input.get(..METALAYERS).ok_or_else(|| corrupt("a frame", input.len()))?;
        if !fixed[MAGIC_AT..].starts_with(MAGIC) {
            return Err(corrupt("a frame of Blosc2", format!("{:02x?}", &fixed[..16])));
        }
        let length = |at: usize, bytes: usize| {
            let field = fixed[at..at + bytes].iter();
            let value = field.fold(0u64, |value, &byte| value << 8 | u64::from(byte));
            usize::try_from(value).map_err(|_| corrupt("fewer bytes", value))
        };
        let (header, frame) = (length(HEADER_LENGTH, 4)?, length(FRAME_LENGTH, 8)?);
        let (content, stored) = (length(CONTENT, 8)?, length(CHUNKS, 8)?);
        let wrong =
            || corrupt("lengths that fit the frame", format!("{header}, {stored} of {frame}"));
        if fixed[KIND] & 0x0F != 0 || fixed[FLAGS] & VARIABLE != 0 {
            return Err(unknown("a frame in several files, or with chunks of varying length"));
        }
        let header =
            input.get(..header).filter(|header| header.len() >= METALAYERS).ok_or_else(wrong)?;
        let body =
            input.get(header.len()..frame).filter(|body| body.len() >= stored).ok_or_else(wrong)?;
        let (element, chunk_length) = (length(ELEMENT, 4)?, length(CHUNK, 4)?);
        if element == 0 || (chunk_length == 0 && content > 0) {
            return Err(corrupt(
                "elements and chunks of some bytes",
                format!("{element}, {chunk_length}"),
            ));
        }
        Ok(Self { header, body, stored, length: content as u64, chunk_length, element })
    }

    /// The array that the elements are, if a metalayer says so.
    pub(super) fn array(&self) -> Result<Option<Array>, FilterError> {
        let cut = |_| corrupt("whole metalayers", self.header.len());
        let mut reader = Reader::new(NAME, 0, &self.header[METALAYERS..]);
        reader.skip(4).map_err(cut)?;
        let [mark, high, low] = reader.array().map_err(cut)?;
        if mark != 0xDE {
            return Err(corrupt("a list of metalayers", mark));
        }
        for _ in 0..u16::from_be_bytes([high, low]) {
            let length = reader.u8().map_err(cut)? & 0x1F;
            let name = reader.take(usize::from(length)).map_err(cut)?;
            reader.skip(1).map_err(cut)?;
            let at = u32::from_be_bytes(reader.array().map_err(cut)?) as usize;
            if name == b"b2nd" || name == b"caterva" {
                let content = self
                    .header
                    .get(at..)
                    .ok_or_else(|| corrupt("a metalayer in the header", at))?;
                return Array::parse(content, self.element).map(Some);
            }
        }
        Ok(None)
    }

    /// The number of chunks.
    pub(super) fn count(&self) -> u64 {
        self.length.div_ceil(self.chunk_length.max(1) as u64)
    }

    /// The places of the chunks; a chunk has at least eight bytes of `limit`.
    pub(super) fn places(&self, limit: usize) -> Result<Vec<Place<'a>>, FilterError> {
        let Some(count) =
            usize::try_from(self.count()).ok().filter(|count| *count <= limit / 8 + 1)
        else {
            return Err(FilterError::too_large(NAME, limit, format!("{} chunks", self.count())));
        };
        let (chunks, index) = self.body.split_at(self.stored);
        let mut offsets = Vec::new();
        if count > 0 {
            scratch::grow(NAME, &mut offsets, 8 * count)?;
            Chunk::parse(index)?.decode(&mut offsets, &mut Work::default())?;
        }
        let mut places = Vec::new();
        scratch::reserve(NAME, &mut places, count)?;
        for offset in offsets.as_chunks::<8>().0 {
            places.push(place(chunks, u64::from_le_bytes(*offset))?);
        }
        Ok(places)
    }
}

/// The chunk at an offset, whose highest byte may state constant contents.
fn place(chunks: &[u8], offset: u64) -> Result<Place<'_>, FilterError> {
    let kind = (offset >> 56) as u8;
    if kind & 0x80 != 0 {
        return Special::of(kind & 7)
            .map(Place::Special)
            .ok_or_else(|| corrupt("a run of zeros or NaN", kind));
    }
    let found = usize::try_from(offset).ok().and_then(|offset| chunks.get(offset..));
    found
        .map(Place::At)
        .ok_or_else(|| corrupt(format!("a chunk in {} bytes", chunks.len()), offset))
}
