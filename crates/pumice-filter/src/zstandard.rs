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

    fn must_shrink(&self) -> bool {
        true
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
