//! The LZF filter (id 32000) of h5py and PyTables: a fast, simple dictionary compressor.
//!
//! A stream is a series of two kinds of items. A control byte below 32 is followed by that many
//! plus one literal bytes. Any other holds a length in its top three bits (7: the next byte is
//! added) and the high bits of a distance in its low five, whose low byte follows: copy length plus
//! two bytes from distance plus one bytes before.
//!
//! Parameters as h5py stores them: revision of the filter, version of LZF, bytes of a chunk. The
//! last is not needed for decoding here.

use crate::matches::{self, Limits, Sink};
use crate::{DatasetFacts, Filter, FilterError, registry, scratch};

const NAME: &str = "lzf";
/// h5py's revision of its filter and the version of LZF that it contains.
const REVISION: u32 = 4;
const LZF_VERSION: u32 = 0x0105;

const MOST_LITERALS: usize = 32;

pub(crate) struct Lzf;

impl Filter for Lzf {
    fn id(&self) -> u16 {
        registry::LZF
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn encode(
        &self,
        _parameters: &[u32],
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        scratch::room(NAME, out, self.encoded_bound(input.len()))?;
        compress(input, out);
        Ok(())
    }

    fn decode(
        &self,
        _parameters: &[u32],
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        decompress(input, limit, out)
    }

    fn parameters_for(
        &self,
        _parameters: &[u32],
        dataset: &DatasetFacts<'_>,
    ) -> Result<Vec<u32>, FilterError> {
        Ok(vec![REVISION, LZF_VERSION, dataset.chunk_bytes()])
    }

    fn decoded_bound(&self, len: usize) -> usize {
        // Three bytes stand for 264 at most.
        len.saturating_mul(88)
    }

    fn is_gain(&self, input: &[u8], encoded: &[u8]) -> bool {
        encoded.len() < input.len()
    }
}

fn decompress(input: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), FilterError> {
    out.clear();
    let cut = || FilterError::corrupt(NAME, "whole items", "the end of the input");
    let mut rest = input;
    while let Some((&control, after)) = rest.split_first() {
        if usize::from(control) < MOST_LITERALS {
            let count = usize::from(control) + 1;
            let (literals, after) = after.split_at_checked(count).ok_or_else(cut)?;
            make_room(out, count, limit)?;
            out.extend_from_slice(literals);
            rest = after;
            continue;
        }
        let mut length = usize::from(control >> 5);
        let mut after = after;
        if length == 7 {
            let (&more, next) = after.split_first().ok_or_else(cut)?;
            length += usize::from(more);
            after = next;
        }
        let (&low, after) = after.split_first().ok_or_else(cut)?;
        let distance = (usize::from(control & 0x1F) << 8 | usize::from(low)) + 1;
        make_room(out, length + 2, limit)?;
        let before = out.len();
        matches::repeat(out, distance, length + 2).ok_or_else(|| {
            FilterError::corrupt(NAME, format!("a distance of at most {before}"), distance)
        })?;
        rest = after;
    }
    Ok(())
}

fn make_room(out: &mut Vec<u8>, more: usize, limit: usize) -> Result<(), FilterError> {
    let len = out.len();
    if more > limit - len {
        return Err(FilterError::too_large(NAME, limit, format!("{} or more", len + more)));
    }
    scratch::reserve(NAME, out, more)
}

fn compress(input: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let limits = Limits { least: 3, longest: 264, farthest: 1 << 13, tail: 0 };
    matches::divide(input, limits, &mut Items(out));
}

/// Writes items.
struct Items<'a>(&'a mut Vec<u8>);

impl Sink for Items<'_> {
    fn literals(&mut self, bytes: &[u8]) {
        for run in bytes.chunks(MOST_LITERALS) {
            self.0.push((run.len() - 1) as u8);
            self.0.extend_from_slice(run);
        }
    }

    fn repetition(&mut self, distance: usize, length: usize) {
        let (distance, length) = (distance - 1, length - 2);
        let high = (distance >> 8) as u8;
        if length < 7 {
            self.0.push((length as u8) << 5 | high);
        } else {
            self.0.push(7 << 5 | high);
            self.0.push((length - 7) as u8);
        }
        self.0.push(distance as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_may_overlap_itself() {
        let mut out = Vec::new();
        decompress(&[0, b'x', 0xE0, 3, 0], 100, &mut out).unwrap();
        assert_eq!(out, [b'x'; 13]);
        assert!(decompress(&[0, b'x', 0xE0, 3, 0], 12, &mut out).is_err(), "more than the limit");
        assert!(decompress(&[0, b'x', 0x20, 1], 100, &mut out).is_err(), "before the beginning");
    }

    #[test]
    fn long_runs_take_few_bytes() {
        let mut out = Vec::new();
        compress(&[7; 10_000], &mut out);
        assert!(out.len() < 130, "{}", out.len());
    }
}
