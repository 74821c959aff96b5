//! The LZ4 filter (id 32004), as the registered plugin writes it.
//!
//! All numbers are big-endian: 8 bytes of length, 4 bytes of block size, then for each block 4 bytes
//! of stored length and the block, which is plain where the stored length is the block's own. The
//! only parameter is the block size; without it, or if it is zero, a block has up to 1 GiB.

use crate::{DatasetFacts, Filter, FilterError, registry, scratch};
use lz4_flex::block;
use pumice_bytes::Reader;

const NAME: &str = "lz4";
const DEFAULT_BLOCK: usize = 1 << 30;
/// The most that LZ4 takes at once.
const MOST_BLOCK: usize = 0x7E00_0000;

pub(crate) struct Lz4;

impl Filter for Lz4 {
    fn id(&self) -> u16 {
        registry::LZ4
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn parameters_for(
        &self,
        parameters: &[u32],
        _dataset: &DatasetFacts<'_>,
    ) -> Result<Vec<u32>, FilterError> {
        block_size(parameters)?;
        Ok(parameters.to_vec())
    }

    fn encode(
        &self,
        parameters: &[u32],
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        let block = block_size(parameters)?.min(input.len());
        scratch::room(NAME, out, self.encoded_bound(input.len()))?;
        out.extend_from_slice(&(input.len() as u64).to_be_bytes());
        out.extend_from_slice(&(block as u32).to_be_bytes());
        for part in input.chunks(block.max(1)) {
            let length_at = out.len();
            out.extend_from_slice(&(part.len() as u32).to_be_bytes());
            let stored = compress_onto(part, out)?;
            out[length_at..length_at + 4].copy_from_slice(&(stored as u32).to_be_bytes());
        }
        Ok(())
    }

    fn decode(
        &self,
        _parameters: &[u32],
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        let mut reader = Reader::new("lz4 stream", 0, input);
        let header = || FilterError::corrupt(NAME, "12 bytes of header", input.len());
        let total = reader.array::<8>().map_err(|_| header())?;
        let total = u64::from_be_bytes(total);
        let block = reader.array::<4>().map_err(|_| header())?;
        let block = u32::from_be_bytes(block) as usize;
        let total = bounded(total, input.len(), limit)?;
        if block == 0 && total > 0 {
            return Err(FilterError::corrupt(NAME, "a block size", 0));
        }
        scratch::grow(NAME, out, total)?;
        for place in out.chunks_mut(block.max(1)) {
            decode_block(&mut reader, place)?;
        }
        Ok(())
    }

    fn decoded_bound(&self, len: usize) -> usize {
        // A byte of LZ4 stands for 255 at most.
        len.saturating_mul(256)
    }

    fn is_gain(&self, input: &[u8], encoded: &[u8]) -> bool {
        encoded.len() < input.len()
    }
}

fn block_size(parameters: &[u32]) -> Result<usize, FilterError> {
    match parameters.first().copied().unwrap_or(0) as usize {
        0 => Ok(DEFAULT_BLOCK),
        size if size <= MOST_BLOCK => Ok(size),
        size => Err(FilterError::Parameters {
            filter: NAME,
            expected: "a block of at most 2,113,929,216 bytes",
            found: size.to_string(),
        }),
    }
}

/// Appends one block, compressed or plain; gives its length.
fn compress_onto(part: &[u8], out: &mut Vec<u8>) -> Result<usize, FilterError> {
    let start = out.len();
    let most = start.saturating_add(block::get_maximum_output_size(part.len()));
    scratch::grow(NAME, out, most)?;
    let stored = block::compress_into(part, &mut out[start..])
        .map_err(|error| FilterError::encode(NAME, error))?;
    if stored < part.len() {
        out.truncate(start + stored);
        return Ok(stored);
    }
    out.truncate(start);
    out.extend_from_slice(part);
    Ok(part.len())
}

/// The announced length, if it is within the limit and what LZ4 could make of so few bytes.
fn bounded(total: u64, stored: usize, limit: usize) -> Result<usize, FilterError> {
    if total > limit as u64 {
        return Err(FilterError::too_large(NAME, limit, total));
    }
    // A byte of LZ4 stands for 255 at most.
    if total / 256 > stored as u64 {
        let expected = format!("at most {} bytes in {stored}", stored as u64 * 256);
        return Err(FilterError::corrupt(NAME, expected, total));
    }
    Ok(total as usize)
}

fn decode_block(reader: &mut Reader<'_>, place: &mut [u8]) -> Result<(), FilterError> {
    let cut = |_| FilterError::corrupt(NAME, "whole blocks", "the end of the input");
    let length = u32::from_be_bytes(reader.array::<4>().map_err(cut)?) as usize;
    let stored = reader.take(length).map_err(cut)?;
    if length == place.len() {
        place.copy_from_slice(stored);
        return Ok(());
    }
    match block::decompress_into(stored, place) {
        Ok(written) if written == place.len() => Ok(()),
        Ok(written) => {
            let expected = format!("a block of {} bytes", place.len());
            Err(FilterError::corrupt(NAME, expected, written))
        }
        Err(error) => Err(FilterError::corrupt(NAME, "an LZ4 block", error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_do_not_shrink_are_stored_plain() {
        let noise: Vec<u8> =
            (0..100u32).map(|n| (n.wrapping_mul(0x9E37_79B1) >> 13) as u8).collect();
        let mut encoded = Vec::new();
        Lz4.encode(&[40], &noise, &mut encoded).unwrap();
        assert_eq!(encoded.len(), 12 + 3 * 4 + 100);
        let mut decoded = Vec::new();
        Lz4.decode(&[], &encoded, 100, &mut decoded).unwrap();
        assert_eq!(decoded, noise);
    }

    #[test]
    fn a_length_that_so_few_bytes_cannot_hold_is_not_allocated() {
        let mut stream = (1u64 << 40).to_be_bytes().to_vec();
        stream.extend_from_slice(&(1u32 << 30).to_be_bytes());
        let mut out = Vec::new();
        assert!(Lz4.decode(&[], &stream, usize::MAX, &mut out).is_err());
        assert!(out.capacity() < 1 << 20);
    }
}
