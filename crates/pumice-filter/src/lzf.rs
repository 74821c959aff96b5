//! The LZF filter (id 32000) of h5py and PyTables: a fast, simple dictionary compressor.
//!
//! A stream is a series of two kinds of items. A control byte below 32 is followed by that many
//! plus one literal bytes. Any other holds a length in its top three bits (7: the next byte is
//! added) and the high bits of a distance in its low five, whose low byte follows: copy length plus
//! two bytes from distance plus one bytes before.
//!
//! Parameters as h5py stores them: revision of the filter, version of LZF, bytes of a chunk. The
//! last is not needed for decoding here.

use crate::{DatasetFacts, Filter, FilterError, registry};

const NAME: &str = "lzf";
/// h5py's revision of its filter and the version of LZF that it contains.
const REVISION: u32 = 4;
const LZF_VERSION: u32 = 0x0105;

const MOST_LITERALS: usize = 32;
const MOST_DISTANCE: usize = 1 << 13;
const LEAST_MATCH: usize = 3;
const MOST_MATCH: usize = 264;
const HASH_BITS: u32 = 14;

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
            check_room(out.len(), count, limit)?;
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
        check_room(out.len(), length + 2, limit)?;
        repeat(out, distance, length + 2)?;
        rest = after;
    }
    Ok(())
}

fn check_room(len: usize, more: usize, limit: usize) -> Result<(), FilterError> {
    if more > limit - len {
        return Err(FilterError::too_large(NAME, limit, format!("{} or more", len + more)));
    }
    Ok(())
}

/// Appends `count` bytes from `distance` bytes before the end, which may overlap what is appended.
fn repeat(out: &mut Vec<u8>, distance: usize, count: usize) -> Result<(), FilterError> {
    let Some(start) = out.len().checked_sub(distance) else {
        let expected = format!("a distance of at most {}", out.len());
        return Err(FilterError::corrupt(NAME, expected, distance));
    };
    let mut left = count;
    while left > 0 {
        // What is there to copy doubles with every step.
        let now = left.min(out.len() - start);
        out.extend_from_within(start..start + now);
        left -= now;
    }
    Ok(())
}

fn compress(input: &[u8], out: &mut Vec<u8>) {
    out.clear();
    // Positions plus one, so that zero is none.
    let mut table = vec![0u32; 1 << HASH_BITS];
    let (mut at, mut literals) = (0, 0);
    while let Some(window) = input.get(at..at + LEAST_MATCH) {
        let hash = hash(window);
        let earlier = table[hash] as usize;
        table[hash] = (at + 1).min(u32::MAX as usize) as u32;
        let length = match earlier {
            0 => 0,
            _ if at + 1 - earlier > MOST_DISTANCE => 0,
            _ => common(&input[earlier - 1..], &input[at..]),
        };
        if length < LEAST_MATCH {
            at += 1;
            continue;
        }
        put_literals(&input[literals..at], out);
        put_match(at - earlier, length, out);
        // Some of the positions inside the match, so that the next match is found sooner.
        for inside in at + 1..(at + length).min(at + 3) {
            if let Some(window) = input.get(inside..inside + LEAST_MATCH) {
                table[self::hash(window)] = (inside + 1).min(u32::MAX as usize) as u32;
            }
        }
        at += length;
        literals = at;
    }
    put_literals(&input[literals..], out);
}

fn hash(window: &[u8]) -> usize {
    let value = u32::from_le_bytes([window[0], window[1], window[2], 0]);
    (value.wrapping_mul(0x9E37_79B1) >> (32 - HASH_BITS)) as usize
}

/// How many bytes two slices have in common, as far as a match can reach.
fn common(earlier: &[u8], now: &[u8]) -> usize {
    earlier.iter().zip(now).take(MOST_MATCH).take_while(|(a, b)| a == b).count()
}

fn put_literals(literals: &[u8], out: &mut Vec<u8>) {
    for run in literals.chunks(MOST_LITERALS) {
        out.push((run.len() - 1) as u8);
        out.extend_from_slice(run);
    }
}

/// `distance` counts from zero.
fn put_match(distance: usize, length: usize, out: &mut Vec<u8>) {
    let (length, high) = (length - 2, (distance >> 8) as u8);
    if length < 7 {
        out.push((length as u8) << 5 | high);
    } else {
        out.push(7 << 5 | high);
        out.push((length - 7) as u8);
    }
    out.push(distance as u8);
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
