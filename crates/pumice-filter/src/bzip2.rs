//! The bzip2 filter (id 307), as PyTables and the registered plugin write it: one stream, one
//! parameter, the block size in units of 100,000 bytes (1 to 9).

use crate::{Filter, FilterError, registry};
use ::bzip2::read::{BzEncoder, MultiBzDecoder};
use std::io::Read;

const NAME: &str = "bzip2";
const DEFAULT_BLOCK: u32 = 9;
/// A block has at most 900,000 bytes, of which five stand for 255 in a row, and takes more than 20.
const MOST_RATIO: usize = 900_000 / 5 * 255 / 20;

pub(crate) struct Bzip2;

impl Filter for Bzip2 {
    fn id(&self) -> u16 {
        registry::BZIP2
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
        let block = parameters.first().copied().unwrap_or(DEFAULT_BLOCK);
        if !(1..=9).contains(&block) {
            return Err(FilterError::Parameters {
                filter: NAME,
                expected: "a block size of 1 to 9",
                found: block.to_string(),
            });
        }
        out.clear();
        BzEncoder::new(input, ::bzip2::Compression::new(block))
            .read_to_end(out)
            .map(drop)
            .map_err(|error| FilterError::encode(NAME, error))
    }

    fn decode(
        &self,
        _parameters: &[u32],
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        out.clear();
        // One byte more than is allowed tells a stream that is too long from one that just fits.
        let most = (limit as u64).saturating_add(1);
        MultiBzDecoder::new(input)
            .take(most)
            .read_to_end(out)
            .map_err(|error| FilterError::corrupt(NAME, "a bzip2 stream", error))?;
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
