//! The Zstandard filter (id 32015), as the registered plugin writes it: one frame, one parameter,
//! the level.
//!
//! Each thread keeps one compressor and one decompressor. Frames that do not record their content
//! size, and several frames in a row, are accepted on reading.

use crate::{Filter, FilterError, registry};
use std::cell::RefCell;
use std::io;
use zstd::bulk::{Compressor, Decompressor};

const NAME: &str = "zstd";

/// Zstandard's own default.
const DEFAULT_LEVEL: u32 = 3;

/// A block of a frame has at least 4 bytes and at most 128 KiB of content.
const BLOCK_CONTENT: usize = 128 << 10;
const BLOCK_SIZE: usize = 4;

thread_local! {
    static COMPRESSOR: RefCell<Option<(i32, Compressor<'static>)>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

pub(crate) struct Zstandard;

impl Filter for Zstandard {
    fn id(&self) -> u16 {
        registry::ZSTD
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
        let level = level(parameters)?;
        out.clear();
        out.reserve(zstd::zstd_safe::compress_bound(input.len()));
        let encoded = COMPRESSOR.with_borrow_mut(|kept| {
            let compressor = match kept {
                Some((at, compressor)) if *at == level => compressor,
                _ => &mut kept.insert((level, Compressor::new(level)?)).1,
            };
            compressor.compress_to_buffer(input, out)
        });
        encoded.map(drop).map_err(|error| FilterError::encode(NAME, error))
    }

    fn decode(
        &self,
        _parameters: &[u32],
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        let most = most_content(input, limit)?;
        let decoded = DECOMPRESSOR.with_borrow_mut(|kept| {
            let decompressor = match kept {
                Some(decompressor) => decompressor,
                None => kept.insert(Decompressor::new()?),
            };
            decompress(decompressor, input, most, out)
        });
        match decoded {
            Ok(()) if out.len() <= limit => Ok(()),
            Ok(()) => Err(FilterError::too_large(NAME, limit, out.len())),
            Err(error) => Err(FilterError::corrupt(
                NAME,
                format!("Zstandard frames of at most {limit} byte(s) of content"),
                error,
            )),
        }
    }

    fn is_gain(&self, input: &[u8], encoded: &[u8]) -> bool {
        encoded.len() < input.len()
    }
}

/// How many bytes to make room for: what the frames announce, or else the most they could hold.
fn most_content(input: &[u8], limit: usize) -> Result<usize, FilterError> {
    let possible = (input.len() / BLOCK_SIZE + 1).saturating_mul(BLOCK_CONTENT);
    match Decompressor::upper_bound(input) {
        Some(announced) if announced > limit => Err(FilterError::too_large(NAME, limit, announced)),
        Some(announced) => Ok(announced.min(possible)),
        None => Ok(possible.min(limit)),
    }
}

/// Into initialised bytes of `out` if there are enough, else into its spare capacity.
fn decompress(
    decompressor: &mut Decompressor<'_>,
    input: &[u8],
    most: usize,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    if let Some(ready) = out.get_mut(..most) {
        let len = decompressor.decompress_to_buffer(input, ready)?;
        out.truncate(len);
        return Ok(());
    }
    out.clear();
    out.reserve_exact(most);
    decompressor.decompress_to_buffer(input, out).map(drop)
}

fn level(parameters: &[u32]) -> Result<i32, FilterError> {
    // The plugin stores negative (faster) levels as two's complement.
    let level = parameters.first().copied().unwrap_or(DEFAULT_LEVEL) as i32;
    if zstd::compression_level_range().contains(&level) {
        return Ok(level);
    }
    Err(FilterError::Parameters {
        filter: NAME,
        expected: "a level of at most 22",
        found: level.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode(input: &[u8], limit: usize) -> Result<Vec<u8>, FilterError> {
        let mut out = Vec::new();
        Zstandard.decode(&[], input, limit, &mut out).map(|()| out)
    }

    fn encode(level: u32, data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        Zstandard.encode(&[level], data, &mut out).unwrap();
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn data_come_back_within_any_limit_that_is_large_enough(
            data in proptest::collection::vec(0u8..9, 0..4000),
            level in prop_oneof![1u32..8, Just((-3i32) as u32)],
            slack in 0usize..3000,
            ready in 0usize..8000,
        ) {
            let encoded = encode(level, &data);
            prop_assert!(encoded.len() <= Zstandard.encoded_bound(data.len()));
            let mut out = vec![7; ready];
            Zstandard.decode(&[level], &encoded, data.len() + slack, &mut out).unwrap();
            prop_assert_eq!(&out, &data);
            if let Some(less) = data.len().checked_sub(1) {
                prop_assert!(decode(&encoded, less).is_err());
            }
        }

        #[test]
        fn frames_without_content_size_keep_the_limit(
            data in proptest::collection::vec(0u8..9, 1..4000),
        ) {
            let encoded = zstd::stream::encode_all(&data[..], 3).unwrap();
            prop_assert_eq!(Decompressor::upper_bound(&encoded), None);
            prop_assert_eq!(&decode(&encoded, data.len()).unwrap(), &data);
            prop_assert_eq!(&decode(&encoded, usize::MAX).unwrap(), &data);
            prop_assert!(decode(&encoded, data.len() - 1).is_err());
        }
    }

    #[test]
    fn several_frames_follow_each_other() {
        let frames = [encode(3, b"pumice "), encode(1, b"floats")].concat();
        assert_eq!(decode(&frames, 13).unwrap(), b"pumice floats");
        assert!(decode(&frames, 12).is_err());
    }

    #[test]
    fn a_frame_that_announces_more_than_it_can_hold_does_not_allocate_it() {
        // A single segment of 2^50 bytes in one empty block.
        let mut frame = vec![0x28, 0xB5, 0x2F, 0xFD, 0xE0];
        frame.extend_from_slice(&(1u64 << 50).to_le_bytes());
        frame.extend_from_slice(&[1, 0, 0]);
        let mut out = Vec::new();
        assert!(Zstandard.decode(&[], &frame, usize::MAX, &mut out).is_err());
        assert!(out.capacity() <= 1 << 20);
    }

    #[test]
    fn a_level_beyond_zstandards_own_is_refused() {
        assert!(Zstandard.encode(&[23], b"x", &mut Vec::new()).is_err());
        assert!(Zstandard.encode(&[22], b"x", &mut Vec::new()).is_ok());
    }
}
