//! The bitshuffle filter (id 32008): bits of equal significance side by side, then LZ4, Zstandard
//! or nothing.
//!
//! Elements are taken in blocks whose number of elements is a multiple of eight, the last block
//! being shorter; up to seven elements at the end stay as they are. Bit `k` of byte `b` of the
//! elements of a block fills one row of bits, row `8 b + k`, first element in the lowest bit.
//!
//! Compressed, the data begin with 8 bytes of length and 4 bytes of block size in bytes, both
//! big-endian; each block is preceded by its compressed length in 4 bytes, big-endian.
//!
//! Parameters as the plugin stores them: its version (major, minor), element size, elements of a
//! block (0: about 8 KiB), compressor (0 none, 2 LZ4, 3 Zstandard), level of Zstandard. Callers
//! give the last three.

use crate::shuffle::{shuffle, unshuffle};
use crate::zstandard::Zstandard;
use crate::{DatasetFacts, Filter, FilterError, registry, scratch};
use lz4_flex::block as lz4;
use pumice_bytes::Reader;

const NAME: &str = "bitshuffle";
const VERSION: [u32; 2] = [0, 4];
/// Blocks have a multiple of this many elements.
const MULTIPLE: usize = 8;
const TARGET_BLOCK_BYTES: usize = 8192;
const LEAST_BLOCK: usize = 128;

const PLAIN: u32 = 0;
const LZ4: u32 = 2;
const ZSTD: u32 = 3;

pub(crate) struct Bitshuffle;

impl Filter for Bitshuffle {
    fn id(&self) -> u16 {
        registry::BITSHUFFLE
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
        settings.check_whole(input.len())?;
        match settings.compressor {
            PLAIN => settings.encode_plain(input, out),
            _ => settings.encode_compressed(input, out),
        }
    }

    fn decode(
        &self,
        parameters: &[u32],
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        let settings = Settings::parse(parameters)?;
        match settings.compressor {
            PLAIN => settings.decode_plain(input, limit, out),
            _ => settings.decode_compressed(input, limit, out),
        }
    }

    fn parameters_for(
        &self,
        parameters: &[u32],
        dataset: &DatasetFacts<'_>,
    ) -> Result<Vec<u32>, FilterError> {
        let mut all = vec![VERSION[0], VERSION[1], dataset.element_size()];
        // Those of another dataset begin with version and element size.
        all.extend_from_slice(if parameters.len() > 3 { &parameters[3..] } else { parameters });
        let settings = Settings::parse(&all)?;
        if let (ZSTD, Some(level)) = (settings.compressor, settings.level) {
            Zstandard.parameters_for(&[level], dataset)?;
        }
        Ok(all)
    }

    /// Uncompressed rows of bits are as long as the input.
    fn decoded_bound(&self, len: usize) -> usize {
        // As the better of the codecs.
        Zstandard.decoded_bound(len)
    }

    fn is_gain(&self, input: &[u8], encoded: &[u8]) -> bool {
        encoded.len() <= input.len()
    }
}

struct Settings {
    element: usize,
    /// Elements of a block, a multiple of eight.
    block: usize,
    compressor: u32,
    level: Option<u32>,
}

impl Settings {
    fn parse(parameters: &[u32]) -> Result<Self, FilterError> {
        let wrong = |expected| FilterError::Parameters {
            filter: NAME,
            expected,
            found: format!("{parameters:?}"),
        };
        let element = parameters.get(2).copied().unwrap_or(0) as usize;
        if element == 0 {
            return Err(wrong("an element size as third parameter"));
        }
        let block = parameters.get(3).copied().unwrap_or(0) as usize;
        if !block.is_multiple_of(MULTIPLE) {
            return Err(wrong("a block of a multiple of eight elements"));
        }
        let block = if block == 0 { default_block(element) } else { block };
        let compressor = parameters.get(4).copied().unwrap_or(PLAIN);
        if ![PLAIN, LZ4, ZSTD].contains(&compressor) {
            return Err(wrong("compressor 0 (none), 2 (LZ4) or 3 (Zstandard)"));
        }
        Ok(Self { element, block, compressor, level: parameters.get(5).copied() })
    }

    fn check_whole(&self, len: usize) -> Result<(), FilterError> {
        if len.is_multiple_of(self.element) {
            return Ok(());
        }
        let reason = format!("{len} bytes are not whole elements of {}", self.element);
        Err(FilterError::encode(NAME, reason))
    }

    /// Bytes of a whole block, and the bytes of `len` that are in blocks at all.
    fn blocks(&self, len: usize) -> (usize, usize) {
        let in_blocks = len / self.element / MULTIPLE * MULTIPLE * self.element;
        (self.block.saturating_mul(self.element), in_blocks)
    }

    fn encode_plain(&self, input: &[u8], out: &mut Vec<u8>) -> Result<(), FilterError> {
        let (block, in_blocks) = self.blocks(input.len());
        let mut spare = spare_for(block.min(in_blocks))?;
        scratch::size(NAME, out, input.len())?;
        let (rows, rest) = out.split_at_mut(in_blocks);
        for (from, to) in input[..in_blocks].chunks(block).zip(rows.chunks_mut(block)) {
            to_rows(self.element, from, to, &mut spare);
        }
        rest.copy_from_slice(&input[in_blocks..]);
        scratch::give(spare);
        Ok(())
    }

    fn decode_plain(
        &self,
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        if input.len() > limit {
            return Err(FilterError::too_large(NAME, limit, input.len()));
        }
        let (block, in_blocks) = self.blocks(input.len());
        let mut spare = spare_for(block.min(in_blocks))?;
        scratch::size(NAME, out, input.len())?;
        let (elements, rest) = out.split_at_mut(in_blocks);
        for (from, to) in input[..in_blocks].chunks(block).zip(elements.chunks_mut(block)) {
            from_rows(self.element, from, to, &mut spare);
        }
        rest.copy_from_slice(&input[in_blocks..]);
        scratch::give(spare);
        Ok(())
    }

    fn encode_compressed(&self, input: &[u8], out: &mut Vec<u8>) -> Result<(), FilterError> {
        let (block, in_blocks) = self.blocks(input.len());
        let block_field = u32::try_from(block)
            .map_err(|_| FilterError::encode(NAME, format!("a block of {block} bytes")))?;
        scratch::room(NAME, out, Bitshuffle.encoded_bound(input.len()))?;
        out.extend_from_slice(&(input.len() as u64).to_be_bytes());
        out.extend_from_slice(&block_field.to_be_bytes());
        let most = block.min(in_blocks);
        let (mut spare, mut rows, mut packed) =
            (spare_for(most)?, spare_for(most)?, scratch::take(most));
        let mut done = Ok(());
        for from in input[..in_blocks].chunks(block) {
            rows.resize(from.len(), 0);
            to_rows(self.element, from, &mut rows, &mut spare);
            done = self.compress(&rows, &mut packed);
            // Behind them, the rest of the input, which is less than eight elements.
            let more = 4 + packed.len() + input.len() - in_blocks;
            done = done.and_then(|()| scratch::reserve(NAME, out, more));
            if done.is_err() {
                break;
            }
            out.extend_from_slice(&(packed.len() as u32).to_be_bytes());
            out.extend_from_slice(&packed);
        }
        if done.is_ok() {
            out.extend_from_slice(&input[in_blocks..]);
        }
        [spare, rows, packed].into_iter().for_each(scratch::give);
        done
    }

    fn compress(&self, rows: &[u8], packed: &mut Vec<u8>) -> Result<(), FilterError> {
        if self.compressor == ZSTD {
            // Level 0 is Zstandard's own default.
            let level = self.level.filter(|&level| level != 0).unwrap_or(3);
            return Zstandard.encode(&[level], rows, packed);
        }
        scratch::size(NAME, packed, lz4::get_maximum_output_size(rows.len()))?;
        let len = lz4::compress_into(rows, packed).map_err(|e| FilterError::encode(NAME, e))?;
        packed.truncate(len);
        Ok(())
    }

    fn decode_compressed(
        &self,
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        let cut = |_| FilterError::corrupt(NAME, "header and whole blocks", input.len());
        let mut reader = Reader::new(NAME, 0, input);
        let total = u64::from_be_bytes(reader.array().map_err(cut)?);
        let block = u32::from_be_bytes(reader.array().map_err(cut)?) as usize;
        if total > limit as u64 {
            return Err(FilterError::too_large(NAME, limit, total));
        }
        let total = total as usize;
        if !total.is_multiple_of(self.element) {
            let expected = format!("whole elements of {} byte(s)", self.element);
            return Err(FilterError::corrupt(NAME, expected, total));
        }
        if block == 0 || !block.is_multiple_of(self.element.saturating_mul(MULTIPLE)) {
            return Err(FilterError::corrupt(NAME, "blocks of a multiple of 8 elements", block));
        }
        let in_blocks = total / self.element / MULTIPLE * MULTIPLE * self.element;
        // Every block has its length, and LZ4 or Zstandard make no more of a byte than this.
        if (in_blocks.div_ceil(block) * 4).max(in_blocks / (32 << 10)) > input.len() {
            return Err(FilterError::corrupt(
                NAME,
                format!("{total} bytes in blocks"),
                input.len(),
            ));
        }
        scratch::grow(NAME, out, total)?;
        let (elements, rest) = out.split_at_mut(in_blocks);
        let most = block.min(in_blocks);
        let (mut spare, mut rows) = (spare_for(most)?, scratch::take(most));
        for to in elements.chunks_mut(block) {
            let len = u32::from_be_bytes(reader.array().map_err(cut)?) as usize;
            let packed = reader.take(len).map_err(cut)?;
            self.decompress(packed, to.len(), &mut rows)?;
            from_rows(self.element, &rows, to, &mut spare);
        }
        rest.copy_from_slice(reader.take(rest.len()).map_err(cut)?);
        scratch::give(spare);
        scratch::give(rows);
        Ok(())
    }

    fn decompress(&self, packed: &[u8], len: usize, rows: &mut Vec<u8>) -> Result<(), FilterError> {
        if self.compressor == ZSTD {
            Zstandard.decode(&[], packed, len, rows)?;
        } else {
            scratch::size(NAME, rows, len)?;
            let found = lz4::decompress_into(packed, rows)
                .map_err(|error| FilterError::corrupt(NAME, "an LZ4 block", error))?;
            rows.truncate(found);
        }
        if rows.len() == len {
            return Ok(());
        }
        Err(FilterError::corrupt(NAME, format!("a block of {len} bytes"), rows.len()))
    }
}

/// A buffer for one block, which needs no more memory later.
pub(crate) fn spare_for(bytes: usize) -> Result<Vec<u8>, FilterError> {
    let mut spare = scratch::take(bytes);
    let more = bytes.saturating_sub(spare.len());
    scratch::reserve(NAME, &mut spare, more)?;
    Ok(spare)
}

/// The default number of elements of a block: the plugin's own rule, which is part of the format.
fn default_block(element: usize) -> usize {
    (TARGET_BLOCK_BYTES / element / MULTIPLE * MULTIPLE).max(LEAST_BLOCK)
}

/// Rows of bits from a multiple of eight elements. `spare` gets as long as they are.
pub(crate) fn to_rows(element: usize, elements: &[u8], rows: &mut [u8], spare: &mut Vec<u8>) {
    let count = elements.len() / element;
    let planes = if element == 1 {
        elements
    } else {
        spare.resize(elements.len(), 0);
        shuffle(element, elements, spare);
        spare
    };
    let width = count / 8;
    for (plane, rows) in planes.chunks_exact(count).zip(rows.chunks_exact_mut(count)) {
        for (at, group) in plane.as_chunks::<8>().0.iter().enumerate() {
            let bits = transpose(u64::from_le_bytes(*group)).to_le_bytes();
            for (bit, byte) in bits.into_iter().enumerate() {
                rows[bit * width + at] = byte;
            }
        }
    }
}

/// Elements from rows of bits.
pub(crate) fn from_rows(element: usize, rows: &[u8], elements: &mut [u8], spare: &mut Vec<u8>) {
    if element == 1 {
        return planes_from_rows(rows.len(), rows, elements);
    }
    spare.resize(rows.len(), 0);
    planes_from_rows(rows.len() / element, rows, spare);
    unshuffle(element, spare, elements);
}

/// Planes of `count` bytes from eight rows of bits each.
fn planes_from_rows(count: usize, rows: &[u8], planes: &mut [u8]) {
    let width = count / 8;
    for (rows, plane) in rows.chunks_exact(count).zip(planes.chunks_exact_mut(count)) {
        for (at, group) in plane.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let bits = std::array::from_fn(|bit| rows[bit * width + at]);
            *group = transpose(u64::from_le_bytes(bits)).to_le_bytes();
        }
    }
}

/// Exchanges bit `j` of byte `i` with bit `i` of byte `j`.
#[inline]
fn transpose(mut bits: u64) -> u64 {
    for (shift, mask) in
        [(7, 0x00AA_00AA_00AA_00AA), (14, 0x0000_CCCC_0000_CCCC), (28, 0x0000_0000_F0F0_F0F0)]
    {
        let moved = (bits ^ (bits >> shift)) & mask;
        bits ^= moved ^ (moved << shift);
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, bit by bit.
    fn naive(element: usize, elements: &[u8]) -> Vec<u8> {
        let count = elements.len() / element;
        let mut rows = vec![0; elements.len()];
        for (at, chunk) in elements.chunks(element).enumerate() {
            for (byte, value) in chunk.iter().enumerate() {
                for bit in (0..8).filter(|bit| value & (1 << bit) != 0) {
                    rows[(8 * byte + bit) * (count / 8) + at / 8] |= 1 << (at % 8);
                }
            }
        }
        rows
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn rows_are_those_of_the_definition(
            element in 1usize..13,
            eights in 1usize..9,
            seed in any::<u64>(),
        ) {
            let len = (element * eights * 8) as u64;
            let elements: Vec<u8> =
                (0..len).map(|at| ((seed ^ at).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect();
            let mut rows = vec![0; elements.len()];
            to_rows(element, &elements, &mut rows, &mut Vec::new());
            prop_assert_eq!(&rows, &naive(element, &elements));
            let mut back = vec![0; elements.len()];
            from_rows(element, &rows, &mut back, &mut Vec::new());
            prop_assert_eq!(back, elements);
        }
    }

    #[test]
    fn blocks_have_the_plugins_size() {
        assert_eq!(default_block(1), 8192);
        assert_eq!(default_block(3), 2728);
        assert_eq!(default_block(1000), 128);
    }
}
