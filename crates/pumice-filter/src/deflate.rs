//! The deflate filter (id 1): zlib streams, through libdeflate.
//!
//! libdeflate works on whole buffers and keeps tables of some hundred kilobytes, so each thread keeps
//! one compressor per level it has used and one decompressor. The only parameter is the level, 0
//! to 9; the decoder does not need it.
//!
//! A stream that did not get shorter is kept, as libhdf5 keeps it. Should it store that chunk again
//! with the same length, its version 1 B-tree would stay with the mask of before: a chunk that skips
//! deflate must not be there.

use crate::{DatasetFacts, Filter, FilterError, registry, scratch};
use libdeflater::{CompressionLvl, Compressor, DecompressionError, Decompressor};
use std::cell::RefCell;

const NAME: &str = "deflate";

/// zlib's own default, used when the file names no level.
const DEFAULT_LEVEL: u32 = 6;

/// No deflate stream expands to more than this many times its length.
const MOST_RATIO: usize = 1032;

thread_local! {
    static COMPRESSORS: RefCell<[Option<Compressor>; 10]> = const { RefCell::new([const { None }; 10]) };
    static DECOMPRESSOR: RefCell<Decompressor> = RefCell::new(Decompressor::new());
}

pub(crate) struct Deflate;

impl Filter for Deflate {
    fn id(&self) -> u16 {
        registry::DEFLATE
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn parameters_for(
        &self,
        parameters: &[u32],
        _dataset: &DatasetFacts<'_>,
    ) -> Result<Vec<u32>, FilterError> {
        level(parameters)?;
        // libhdf5 decodes nothing without a level.
        Ok(if parameters.is_empty() { vec![DEFAULT_LEVEL] } else { parameters.to_vec() })
    }

    fn encode(
        &self,
        parameters: &[u32],
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        let level = level(parameters)?;
        COMPRESSORS.with_borrow_mut(|compressors| {
            let compressor = compressors[level].get_or_insert_with(|| {
                let level = CompressionLvl::new(level as i32).unwrap_or_default();
                Compressor::new(level)
            });
            scratch::size(NAME, out, compressor.zlib_compress_bound(input.len()))?;
            match compressor.zlib_compress(input, out) {
                Ok(len) => {
                    out.truncate(len);
                    Ok(())
                }
                Err(error) => Err(FilterError::encode(NAME, error)),
            }
        })
    }

    fn decode(
        &self,
        _parameters: &[u32],
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        let most = self.decoded_bound(input.len()).min(limit);
        scratch::size(NAME, out, most)?;
        let decoded = DECOMPRESSOR.with_borrow_mut(|it| it.zlib_decompress(input, out));
        match decoded {
            Ok(len) => {
                out.truncate(len);
                Ok(())
            }
            Err(DecompressionError::BadData) => {
                Err(FilterError::corrupt(NAME, "a zlib stream", summary(input)))
            }
            Err(DecompressionError::InsufficientSpace) => {
                Err(FilterError::too_large(NAME, limit, "more"))
            }
        }
    }

    fn decoded_bound(&self, len: usize) -> usize {
        len.saturating_mul(MOST_RATIO)
    }
}

fn level(parameters: &[u32]) -> Result<usize, FilterError> {
    match parameters.first().copied().unwrap_or(DEFAULT_LEVEL) {
        level @ 0..=9 => Ok(level as usize),
        level => Err(FilterError::Parameters {
            filter: NAME,
            expected: "a level of 0 to 9",
            found: level.to_string(),
        }),
    }
}

/// The beginning of a damaged stream, for the error.
fn summary(input: &[u8]) -> String {
    let start = &input[..input.len().min(4)];
    format!("{} byte(s) beginning with {start:02x?}", input.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn data_come_back_at_every_level(
            data in proptest::collection::vec(0u8..20, 0..4000),
            level in 0u32..10,
            slack in 0usize..3000,
        ) {
            let (mut encoded, mut decoded) = (Vec::new(), Vec::new());
            Deflate.encode(&[level], &data, &mut encoded).unwrap();
            prop_assert!(encoded.len() <= Deflate.encoded_bound(data.len()));
            Deflate.decode(&[level], &encoded, data.len() + slack, &mut decoded).unwrap();
            prop_assert_eq!(&decoded, &data);
            if let Some(less) = data.len().checked_sub(1) {
                prop_assert!(Deflate.decode(&[level], &encoded, less, &mut decoded).is_err());
            }
        }

        #[test]
        fn damaged_streams_never_panic(
            data in proptest::collection::vec(0u8..20, 1..400),
            at in any::<proptest::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let mut encoded = Vec::new();
            Deflate.encode(&[6], &data, &mut encoded).unwrap();
            let at = at.index(encoded.len());
            encoded[at] = byte;
            let mut decoded = Vec::new();
            if Deflate.decode(&[], &encoded, data.len(), &mut decoded).is_ok() {
                prop_assert!(decoded.len() <= data.len());
            }
        }
    }

    #[test]
    fn a_small_stream_does_not_allocate_a_large_limit() {
        let mut out = Vec::new();
        assert!(Deflate.decode(&[], &[0x78, 0x9C, 1], usize::MAX, &mut out).is_err());
        assert!(out.capacity() < 10_000);
    }

    #[test]
    fn a_level_above_nine_is_refused() {
        assert!(Deflate.encode(&[10], b"x", &mut Vec::new()).is_err());
    }
}
