//! The szip filter (id 4): Rice coding with a choice of code for every few samples, as in CCSDS
//! 121.0-B, with and without prediction (nearest neighbour, NN, and entropy coding, EC).
//!
//! A chunk is its length in 4 bytes, little-endian, and a stream of bits. Samples of 32 and 64 bits
//! are taken apart into planes of bytes, which are then samples of 8 bits; others are samples as
//! they are. Samples are taken in lines, each padded to whole blocks (NN: with its last sample, EC:
//! with zeros); so is the last line, if it is not whole. [`code`] does the coding of a line.
//!
//! Parameters: options (4 EC, 32 NN, 8 little-endian, 16 big-endian), samples of a block, bits of a
//! sample, samples of a line. Callers give the first two.

mod code;

use self::code::{Coder, Decoder};
use crate::bits::{BitReader, BitWriter};
use crate::shuffle::{shuffle, unshuffle};
use crate::{DatasetFacts, Filter, FilterError, registry, scratch};
use pumice_types::{ByteOrder, Datatype};

const NAME: &str = "szip";
const LITTLE: u32 = 8;
const BIG: u32 = 16;
const NEIGHBOUR: u32 = 32;
const MOST_BLOCKS: u64 = 128;
const MOST_LINE: u64 = 4096;
/// The shortest code, of 7 bits or more, stands for 64 blocks of 64 samples, each of 4 bytes at most.
const MOST_RATIO: usize = 64 * 64 * 4 * 8 / 7;

pub(crate) struct Szip;

impl Filter for Szip {
    fn id(&self) -> u16 {
        registry::SZIP
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
        let length = u32::try_from(input.len())
            .map_err(|_| FilterError::encode(NAME, "chunks of 4 GiB and more cannot be coded"))?;
        if !input.len().is_multiple_of(settings.word) {
            let reason = format!("{} bytes are not whole samples", input.len());
            return Err(FilterError::encode(NAME, reason));
        }
        scratch::room(NAME, out, self.encoded_bound(input.len()))?;
        out.extend_from_slice(&length.to_le_bytes());
        if settings.planes == 1 {
            return settings.encode_lines(input, out);
        }
        let mut planes = scratch::take(input.len());
        scratch::size(NAME, &mut planes, input.len())?;
        shuffle(settings.planes, input, &mut planes);
        let done = settings.encode_lines(&planes, out);
        scratch::give(planes);
        done
    }

    fn decode(
        &self,
        parameters: &[u32],
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        let settings = Settings::parse(parameters)?;
        let Some((length, stream)) = input.split_first_chunk::<4>() else {
            return Err(FilterError::corrupt(NAME, "4 bytes of length", input.len()));
        };
        let length = u32::from_le_bytes(*length) as usize;
        if length > limit {
            return Err(FilterError::too_large(NAME, limit, length));
        }
        if !length.is_multiple_of(settings.word) {
            return Err(FilterError::corrupt(NAME, "a length of whole samples", length));
        }
        scratch::grow(NAME, out, length)?;
        if settings.planes == 1 {
            return settings.decode_lines(stream, out);
        }
        let mut planes = scratch::take(length);
        scratch::size(NAME, &mut planes, length)?;
        let done = settings.decode_lines(stream, &mut planes);
        unshuffle(settings.planes, &planes, out);
        scratch::give(planes);
        done
    }

    fn can_apply(&self, dataset: &DatasetFacts<'_>) -> bool {
        sample(dataset.datatype).is_some()
    }

    fn parameters_for(
        &self,
        parameters: &[u32],
        dataset: &DatasetFacts<'_>,
    ) -> Result<Vec<u32>, FilterError> {
        let wrong =
            |expected, found: String| FilterError::Parameters { filter: NAME, expected, found };
        let [options, block, ..] = *parameters else {
            return Err(wrong("options and samples of a block", format!("{parameters:?}")));
        };
        let (order, bits) = sample(dataset.datatype).ok_or_else(|| {
            wrong("numbers of up to 32 or of 64 bits", dataset.datatype.to_string())
        })?;
        let order = if order == ByteOrder::Big { BIG } else { LITTLE };
        let line = line(u64::from(block), dataset)?;
        let all = vec![options & !(LITTLE | BIG) | order, block, bits, line];
        Settings::parse(&all)?;
        Ok(all)
    }

    fn decoded_bound(&self, len: usize) -> usize {
        len.saturating_mul(MOST_RATIO)
    }

    fn is_gain(&self, input: &[u8], encoded: &[u8]) -> bool {
        encoded.len() < input.len()
    }
}

/// Byte order of a sample, and the bits it counts as having.
fn sample(datatype: &Datatype) -> Option<(ByteOrder, u32)> {
    let (order, precision, offset) = match datatype {
        Datatype::Integer(number) => (number.order, number.precision, number.bit_offset),
        Datatype::Float(number) => (number.order, number.precision, number.bit_offset),
        Datatype::Bitfield(number) => (number.order, number.precision, number.bit_offset),
        Datatype::Enum(names) => (names.base.order, names.base.precision, names.base.bit_offset),
        _ => return None,
    };
    let full = u32::try_from(datatype.size()).ok()?.checked_mul(8)?;
    if order == ByteOrder::Vax || (full > 32 && full != 64) {
        return None;
    }
    let bits = if offset == 0 { u32::from(precision) } else { full };
    Some((
        order,
        match bits {
            0..=24 => bits,
            25..=32 => 32,
            _ => 64,
        },
    ))
}

/// Samples of a line: those of the chunk's last axis, within bounds.
fn line(block: u64, dataset: &DatasetFacts<'_>) -> Result<u32, FilterError> {
    let last = dataset.chunk.last().copied().unwrap_or(1);
    let most = block.saturating_mul(MOST_BLOCKS);
    let line = if last < block {
        let cells = dataset.cells();
        if cells < block {
            return Err(FilterError::Parameters {
                filter: NAME,
                expected: "blocks of at most as many samples as a chunk has",
                found: format!("blocks of {block} in chunks of {cells}"),
            });
        }
        cells.min(most)
    } else if last <= MOST_LINE {
        last.min(most)
    } else {
        most
    };
    Ok(line.min(u64::from(u32::MAX)) as u32)
}

/// The settings in the parameters.
struct Settings {
    /// Bytes of an element that is split into planes; 1 if it is not.
    planes: usize,
    /// Bits of a sample.
    bits: u32,
    /// Bytes of a sample.
    bytes: usize,
    /// Bytes that cannot be divided: an element or a sample.
    word: usize,
    big: bool,
    neighbour: bool,
    /// Samples of a block.
    block: usize,
    /// Samples of a line, without padding.
    line: usize,
}

impl Settings {
    fn parse(parameters: &[u32]) -> Result<Self, FilterError> {
        let wrong = |expected| FilterError::Parameters {
            filter: NAME,
            expected,
            found: format!("{parameters:?}"),
        };
        let [options, block, bits, line] = *parameters else {
            return Err(wrong("four parameters"));
        };
        let (planes, bits) = match bits {
            1..=24 => (1, bits),
            32 | 64 => (bits as usize / 8, 8),
            _ => return Err(wrong("samples of 1 to 24, 32 or 64 bits")),
        };
        if !(2..=64).contains(&block) || !block.is_multiple_of(2) {
            return Err(wrong("blocks of an even number of 2 to 64 samples"));
        }
        // As many blocks as the coding allows between two reference samples.
        if line == 0 || line.div_ceil(block) > 4096 {
            return Err(wrong("lines of 1 to 4096 blocks"));
        }
        let bytes = match bits {
            0..=8 => 1,
            9..=16 => 2,
            _ => 4,
        };
        Ok(Self {
            planes,
            bits,
            bytes,
            word: planes.max(bytes),
            big: options & BIG != 0,
            neighbour: options & NEIGHBOUR != 0,
            block: block as usize,
            line: line as usize,
        })
    }

    /// Samples of a line with its padding.
    fn padded(&self) -> usize {
        self.line.next_multiple_of(self.block)
    }

    fn encode_lines(&self, samples: &[u8], out: &mut Vec<u8>) -> Result<(), FilterError> {
        let mut coder = Coder::new(self.bits, self.block, self.neighbour);
        let mut writer = BitWriter::new(out);
        let mut padded = Vec::with_capacity(self.padded());
        // A block that is not compressed has a code and its samples; a reference is one of them.
        let most = padded.capacity() * (self.bits as usize + 8) / 8 + 16;
        for line in samples.chunks(self.line * self.bytes) {
            padded.clear();
            padded.extend(line.chunks_exact(self.bytes).map(|bytes| self.load(bytes)));
            let padding = if self.neighbour { padded.last().copied().unwrap_or(0) } else { 0 };
            padded.resize(self.padded(), padding);
            writer.reserve(NAME, most)?;
            coder.encode(&mut padded, &mut writer);
        }
        writer.finish();
        Ok(())
    }

    fn decode_lines(&self, stream: &[u8], samples: &mut [u8]) -> Result<(), FilterError> {
        let mut decoder = Decoder::new(self.bits, self.block, self.neighbour);
        let mut reader = BitReader::new(stream);
        let mut padded = vec![0; self.padded()];
        let mut left = samples.len() / self.bytes;
        for line in samples.chunks_mut(self.line * self.bytes) {
            // Of the last line only the needed samples: writers may have left out the padding.
            let needed = if left > self.line { padded.len() } else { left };
            left = left.saturating_sub(self.line);
            decoder.decode(&mut reader, &mut padded, needed).ok_or_else(|| {
                FilterError::corrupt(NAME, "codes of samples", "others, or the end of the input")
            })?;
            for (to, &sample) in line.chunks_exact_mut(self.bytes).zip(&padded) {
                self.store(sample, to);
            }
        }
        Ok(())
    }

    #[inline]
    fn load(&self, bytes: &[u8]) -> u32 {
        let mut wide = [0; 4];
        wide[..bytes.len()].copy_from_slice(bytes);
        if self.big {
            wide[..bytes.len()].reverse();
        }
        u32::from_le_bytes(wide) & (u32::MAX >> (32 - self.bits))
    }

    #[inline]
    fn store(&self, sample: u32, to: &mut [u8]) {
        to.copy_from_slice(&sample.to_le_bytes()[..to.len()]);
        if self.big {
            to.reverse();
        }
    }
}
