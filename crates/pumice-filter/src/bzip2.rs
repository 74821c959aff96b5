//! The bzip2 filter (id 307), as PyTables and the registered plugin write it: one stream, one
//! parameter, the block size in units of 100,000 bytes (1 to 9).

use crate::{DatasetFacts, Filter, FilterError, registry, scratch};
use ::bzip2::read::{BzEncoder, MultiBzDecoder};
use pumice_bytes::memory;
use std::io::{ErrorKind, Read};

const NAME: &str = "bzip2";
const DEFAULT_BLOCK: u32 = 9;
/// A block has at most 900,000 bytes, of which five stand for 255 in a row, and takes more than 20.
const MOST_RATIO: usize = 900_000 / 5 * 255 / 20;

/// Bytes of a coder's tables: eight for each of a block, and some more.
const TABLES: usize = 9 << 20;

pub(crate) struct Bzip2;

impl Filter for Bzip2 {
    fn id(&self) -> u16 {
        registry::BZIP2
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
        let block = block_size(parameters)?;
        scratch::room(NAME, out, input.len() / 2)?;
        ask_for_tables()?;
        BzEncoder::new(input, ::bzip2::Compression::new(block)).read_to_end(out).map(drop).map_err(
            |error| match error.kind() {
                ErrorKind::OutOfMemory => no_memory(out),
                _ => FilterError::encode(NAME, error),
            },
        )
    }

    fn decode(
        &self,
        _parameters: &[u32],
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        ask_for_tables()?;
        out.clear();
        // One byte more than is allowed tells a stream that is too long from one that just fits.
        let most = (limit as u64).saturating_add(1);
        MultiBzDecoder::new(input).take(most).read_to_end(out).map_err(|error| {
            match error.kind() {
                ErrorKind::OutOfMemory => no_memory(out),
                _ => FilterError::corrupt(NAME, "a bzip2 stream", error),
            }
        })?;
        if out.len() > limit {
            return Err(FilterError::too_large(NAME, limit, "more"));
        }
        Ok(())
    }

    fn decoded_bound(&self, len: usize) -> usize {
        len.saturating_mul(MOST_RATIO)
    }

    fn is_gain(&self, input: &[u8], encoded: &[u8]) -> bool {
        encoded.len() < input.len()
    }
}

/// The block size, in hundred thousand bytes.
fn block_size(parameters: &[u32]) -> Result<u32, FilterError> {
    match parameters.first().copied().unwrap_or(DEFAULT_BLOCK) {
        block @ 1..=9 => Ok(block),
        block => Err(FilterError::Parameters {
            filter: NAME,
            expected: "a block size of 1 to 9",
            found: block.to_string(),
        }),
    }
}

/// Fails if there is no memory for the tables of a coder, which panics without.
fn ask_for_tables() -> Result<(), FilterError> {
    let there = memory::is_there(TABLES as u64);
    there.then_some(()).ok_or(FilterError::Memory { filter: NAME, bytes: TABLES })
}

/// The error when a buffer of this length cannot grow; decoding doubles it.
fn no_memory(out: &[u8]) -> FilterError {
    FilterError::Memory { filter: NAME, bytes: out.len().saturating_mul(2) }
}
