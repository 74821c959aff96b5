//! The Blosc filter (id 32001): blocks that are shuffled by bytes or bits and compressed by one of
//! several codecs, as version 1 of Blosc stores them.
//!
//! A chunk begins with 16 bytes: version of the format, version of the codec, flags, element size,
//! then bytes when decoded, bytes of a block, bytes stored, each in 4 bytes, little-endian. Unless
//! everything is stored as it is, the place of each block follows (4 bytes each), and the blocks. A
//! block is one stream, or as many as an element has bytes; each stream is preceded by its length,
//! which is that of its content if it is not compressed.
//!
//! Parameters as the plugin stores them: its revision, version of the format, element size, bytes of
//! a chunk, level, shuffle (0 none, 1 bytes, 2 bits), codec (0 BloscLZ, 1 LZ4, 2 LZ4HC, 3 Snappy, 4
//! zlib, 5 Zstandard). Callers give the last three. LZ4HC is written by the faster LZ4.
//!
//! This is our own code instead of the C library: no C compiler, and bounds that hold for any bytes.

pub(crate) mod codec;

use self::codec::Codec;
use crate::bitshuffle::{from_rows, spare_for, to_rows};
use crate::shuffle::{shuffle, unshuffle};
use crate::zstandard::Zstandard;
use crate::{DatasetFacts, Filter, FilterError, registry, scratch};
use pumice_bytes::Reader;
use pumice_types::Datatype;

const NAME: &str = "blosc";
const REVISION: u32 = 2;
const FORMAT: u8 = 2;
const HEADER: usize = 16;
/// Elements of more bytes count as single bytes.
const MOST_ELEMENT: usize = 255;
const BLOCK_BYTES: usize = 256 << 10;

const BYTES_SHUFFLED: u8 = 0x01;
const STORED: u8 = 0x02;
const BITS_SHUFFLED: u8 = 0x04;
const ONE_STREAM: u8 = 0x10;
/// Blocks are in one stream, too, if they would fall into too many or too short ones.
const MOST_STREAMS: usize = 16;
const LEAST_STREAM: usize = 128;

pub(crate) struct Blosc;

impl Filter for Blosc {
    fn id(&self) -> u16 {
        registry::BLOSC
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn encode(
        &self,
        parameters: &[u32],
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        let settings = Settings::parse(parameters)?;
        settings.encode(input, out)
    }

    fn decode(
        &self,
        _parameters: &[u32],
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        let header = Header::parse(input)?;
        if header.length > limit {
            return Err(FilterError::too_large(NAME, limit, header.length));
        }
        header.decode(input, out)
    }

    fn parameters_for(
        &self,
        parameters: &[u32],
        dataset: &DatasetFacts<'_>,
    ) -> Result<Vec<u32>, FilterError> {
        let element = match dataset.datatype {
            Datatype::Array(array) => array.base.size(),
            other => other.size(),
        };
        let mut all = parameters.to_vec();
        all.resize(parameters.len().max(4), 0);
        all[0] = REVISION;
        all[1] = u32::from(FORMAT);
        all[2] = if element > MOST_ELEMENT { 1 } else { element as u32 };
        all[3] = dataset.chunk_bytes();
        Settings::parse(&all)?;
        Ok(all)
    }

    fn decoded_bound(&self, len: usize) -> usize {
        // As the best of the codecs.
        Zstandard.decoded_bound(len)
    }

    fn is_gain(&self, input: &[u8], encoded: &[u8]) -> bool {
        encoded.len() < input.len()
    }
}

/// The settings of the encoder.
struct Settings {
    element: usize,
    level: u32,
    flags: u8,
    codec: Codec,
}

impl Settings {
    fn parse(parameters: &[u32]) -> Result<Self, FilterError> {
        let wrong = |expected| FilterError::Parameters {
            filter: NAME,
            expected,
            found: format!("{parameters:?}"),
        };
        let element = parameters.get(2).copied().unwrap_or(1) as usize;
        if !(1..=MOST_ELEMENT).contains(&element) {
            return Err(wrong("elements of 1 to 255 bytes"));
        }
        let level = parameters.get(4).copied().unwrap_or(5);
        if level > 9 {
            return Err(wrong("a level of 0 to 9"));
        }
        let flags = match parameters.get(5).copied().unwrap_or(1) {
            0 => 0,
            1 => BYTES_SHUFFLED,
            2 => BITS_SHUFFLED,
            _ => return Err(wrong("shuffle 0 (none), 1 (bytes) or 2 (bits)")),
        };
        let codec = Codec::of_parameter(parameters.get(6).copied().unwrap_or(0))
            .ok_or_else(|| wrong("a codec of 0 to 5"))?;
        Ok(Self { element, level, flags, codec })
    }

    fn encode(&self, input: &[u8], out: &mut Vec<u8>) -> Result<(), FilterError> {
        let length = u32::try_from(input.len())
            .ok()
            .filter(|&length| length <= i32::MAX as u32 - HEADER as u32)
            .ok_or_else(|| FilterError::encode(NAME, "more than 2 GiB cannot be encoded"))?;
        // Whole groups of eight elements, which is what rows of bits need.
        let unit = self.element * 8;
        let block = if input.len() <= BLOCK_BYTES {
            input.len().max(1)
        } else {
            (BLOCK_BYTES / unit).max(1) * unit
        };
        scratch::room(NAME, out, Blosc.encoded_bound(input.len()))?;
        let flags = self.flags | ONE_STREAM | self.codec.format() << 5;
        out.extend_from_slice(&[FORMAT, 1, flags, self.element as u8]);
        for field in [length, block as u32, 0] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        if self.level > 0 && !input.is_empty() {
            self.encode_blocks(input, block, out)?;
        }
        if self.level == 0 || out.len() >= HEADER + input.len() {
            out.truncate(HEADER);
            out[2] = flags | STORED;
            scratch::reserve(NAME, out, input.len())?;
            out.extend_from_slice(input);
        }
        let stored = out.len() as u32;
        out[12..HEADER].copy_from_slice(&stored.to_le_bytes());
        Ok(())
    }

    fn encode_blocks(
        &self,
        input: &[u8],
        block: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        let places = out.len();
        scratch::grow(NAME, out, places + input.len().div_ceil(block) * 4)?;
        let (mut rows, mut spare, mut packed) =
            (spare_for(block)?, spare_for(block)?, scratch::take(block));
        let mut done = Ok(());
        for (number, part) in input.chunks(block).enumerate() {
            let place = places + number * 4;
            let start = out.len() as u32;
            out[place..place + 4].copy_from_slice(&start.to_le_bytes());
            let rearranged = rearrange(self.flags, self.element, part, &mut rows, &mut spare);
            done = self.codec.compress(self.level, rearranged, &mut packed);
            done = done.and_then(|()| scratch::reserve(NAME, out, 4 + part.len()));
            if done.is_err() || out.len() > places + input.len() {
                break;
            }
            let stream = if packed.len() < part.len() { &packed } else { rearranged };
            out.extend_from_slice(&(stream.len() as u32).to_le_bytes());
            out.extend_from_slice(stream);
        }
        [rows, spare, packed].into_iter().for_each(scratch::give);
        done
    }
}

/// Shuffles a block as the flags say; `rows` holds the result where it is not the block itself.
fn rearrange<'a>(
    flags: u8,
    element: usize,
    block: &'a [u8],
    rows: &'a mut Vec<u8>,
    spare: &mut Vec<u8>,
) -> &'a [u8] {
    let count = block.len() / element;
    if flags & BYTES_SHUFFLED != 0 && element > 1 {
        rows.resize(block.len(), 0);
        shuffle(element, block, rows);
        return rows;
    }
    // Only a multiple of eight elements has rows of bits.
    if flags & BITS_SHUFFLED != 0 && count > 0 && count.is_multiple_of(8) {
        rows.resize(block.len(), 0);
        let (inside, rest) = block.split_at(count * element);
        rows[inside.len()..].copy_from_slice(rest);
        to_rows(element, inside, &mut rows[..inside.len()], spare);
        return rows;
    }
    block
}

/// Undoes [`rearrange`].
fn restore(flags: u8, element: usize, rows: &[u8], block: &mut [u8], spare: &mut Vec<u8>) {
    let count = block.len() / element;
    if flags & BYTES_SHUFFLED != 0 && element > 1 {
        unshuffle(element, rows, block);
    } else if flags & BITS_SHUFFLED != 0 && count > 0 && count.is_multiple_of(8) {
        let (inside, rest) = block.split_at_mut(count * element);
        rest.copy_from_slice(&rows[inside.len()..]);
        from_rows(element, &rows[..inside.len()], inside, spare);
    } else {
        block.copy_from_slice(rows);
    }
}

/// The first bytes of a chunk.
struct Header {
    flags: u8,
    element: usize,
    length: usize,
    block: usize,
}

impl Header {
    fn parse(input: &[u8]) -> Result<Self, FilterError> {
        let Some(header) = input.first_chunk::<HEADER>() else {
            return Err(FilterError::corrupt(NAME, "16 bytes of header", input.len()));
        };
        let [version, _, flags, element, ..] = *header;
        if version == 0 || version > FORMAT {
            return Err(FilterError::corrupt(NAME, "version 1 or 2", version));
        }
        let field = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
                as usize
        };
        let (length, block, stored) = (field(4), field(8), field(12));
        if stored > input.len() || element == 0 || (block == 0 && length > 0) {
            let expected = format!("a header that fits {} bytes", input.len());
            return Err(FilterError::corrupt(NAME, expected, format!("{header:?}")));
        }
        Ok(Self { flags, element: usize::from(element), length, block: block.max(1) })
    }

    fn decode(&self, input: &[u8], out: &mut Vec<u8>) -> Result<(), FilterError> {
        let short = || FilterError::corrupt(NAME, "more bytes", input.len());
        if self.flags & STORED != 0 {
            let plain = input.get(HEADER..HEADER + self.length).ok_or_else(short)?;
            return scratch::copy(NAME, plain, out);
        }
        let codec = Codec::of_format(self.flags >> 5)
            .ok_or_else(|| FilterError::corrupt(NAME, "a codec of 0 to 4", self.flags >> 5))?;
        // Every block has a place: checked before memory is taken.
        let blocks = self.length.div_ceil(self.block);
        let mut places = Reader::new(NAME, 0, input);
        places.skip(HEADER).map_err(|_| short())?;
        if places.remaining() / 4 < blocks {
            return Err(short());
        }
        scratch::grow(NAME, out, self.length)?;
        let most = self.block.min(self.length);
        let (mut rows, mut stream, mut spare) =
            (spare_for(most)?, scratch::take(most), spare_for(most)?);
        for block in out.chunks_mut(self.block) {
            let place = places.u32().map_err(|_| short())? as usize;
            let mut reader = Reader::new(NAME, 0, input);
            reader.skip(place).map_err(|_| short())?;
            self.streams(codec, &mut reader, block.len(), &mut stream, &mut rows)?;
            restore(self.flags, self.element, &rows, block, &mut spare);
        }
        [rows, stream, spare].into_iter().for_each(scratch::give);
        Ok(())
    }

    /// Replaces `rows` by the streams of a block of `length` bytes.
    fn streams(
        &self,
        codec: Codec,
        reader: &mut Reader<'_>,
        length: usize,
        stream: &mut Vec<u8>,
        rows: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        let several = self.flags & ONE_STREAM == 0
            && length == self.block
            && self.element <= MOST_STREAMS
            && self.block / self.element >= LEAST_STREAM;
        let count = if several { self.element } else { 1 };
        let each = length / count;
        rows.clear();
        for _ in 0..count {
            let short = |_| FilterError::corrupt(NAME, "whole streams", "the end of the input");
            let stored = reader.u32().map_err(short)? as usize;
            let bytes = reader.take(stored).map_err(short)?;
            if stored == each {
                rows.extend_from_slice(bytes);
                continue;
            }
            codec.decompress(NAME, bytes, each, stream)?;
            if stream.len() != each {
                let expected = format!("a stream of {each} bytes");
                return Err(FilterError::corrupt(NAME, expected, stream.len()));
            }
            rows.extend_from_slice(stream);
        }
        if rows.len() == length {
            return Ok(());
        }
        Err(FilterError::corrupt(NAME, format!("a block of {length} bytes"), rows.len()))
    }
}
