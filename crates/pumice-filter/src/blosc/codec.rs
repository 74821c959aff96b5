//! The codecs inside Blosc and Blosc2: BloscLZ and Snappy are our own, the others those of the filters of the
//! same name.

use super::NAME;
use crate::deflate::Deflate;
use crate::matches::{self, Limits, Sink};
use crate::zstandard::Zstandard;
use crate::{Filter, FilterError, scratch};
use lz4_flex::block as lz4;

#[derive(Clone, Copy)]
pub(crate) enum Codec {
    BloscLz,
    Lz4,
    Snappy,
    Zlib,
    Zstd,
}

impl Codec {
    /// The codec of a filter's parameter.
    pub(crate) fn of_parameter(number: u32) -> Option<Self> {
        let all = [Self::BloscLz, Self::Lz4, Self::Lz4, Self::Snappy, Self::Zlib, Self::Zstd];
        all.get(number as usize).copied()
    }

    /// The codec of a chunk's flags.
    pub(crate) fn of_format(number: u8) -> Option<Self> {
        let all = [Self::BloscLz, Self::Lz4, Self::Snappy, Self::Zlib, Self::Zstd];
        all.get(usize::from(number)).copied()
    }

    /// Its number in a chunk's flags.
    pub(crate) fn format(self) -> u8 {
        self as u8
    }

    pub(crate) fn compress(
        self,
        level: u32,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        // The codecs of other filters reserve their own memory.
        if matches!(self, Self::BloscLz | Self::Snappy) {
            scratch::room(NAME, out, input.len() + input.len() / 16 + 64)?;
        }
        match self {
            Self::BloscLz => {
                out.clear();
                let limits =
                    Limits { least: 4, longest: usize::MAX, farthest: FARTHEST, tail: TAIL };
                matches::divide(input, limits, &mut BloscLzItems(out));
            }
            Self::Lz4 => {
                scratch::size(NAME, out, lz4::get_maximum_output_size(input.len()))?;
                let len = lz4::compress_into(input, out)
                    .map_err(|error| FilterError::encode(NAME, error))?;
                out.truncate(len);
            }
            Self::Snappy => snappy_compress(input, out),
            Self::Zlib => Deflate.encode(&[level], input, out)?,
            Self::Zstd => {
                // Blosc's own mapping of its nine levels.
                let level = if level < 9 { level * 2 - 1 } else { 22 };
                Zstandard.encode(&[level], input, out)?;
            }
        }
        Ok(())
    }

    /// Replaces `out` by what `input` encodes, at most `length` bytes.
    pub(crate) fn decompress(
        self,
        filter: &'static str,
        input: &[u8],
        length: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        if matches!(self, Self::BloscLz | Self::Snappy) {
            scratch::room(filter, out, length)?;
        }
        match self {
            Self::BloscLz => {
                blosclz_decompress(input, length, out).ok_or_else(|| damaged(filter, "BloscLZ"))
            }
            Self::Lz4 => {
                scratch::size(filter, out, length)?;
                let len = lz4::decompress_into(input, out)
                    .map_err(|error| FilterError::corrupt(filter, "an LZ4 block", error))?;
                out.truncate(len);
                Ok(())
            }
            Self::Snappy => {
                snappy_decompress(input, length, out).ok_or_else(|| damaged(filter, "Snappy"))
            }
            Self::Zlib => Deflate.decode(&[], input, length, out),
            Self::Zstd => Zstandard.decode(&[], input, length, out),
        }
    }
}

fn damaged(filter: &'static str, codec: &str) -> FilterError {
    FilterError::corrupt(filter, format!("a {codec} stream"), "other bytes")
}

/// Distances that fit the short form; longer ones have two bytes more.
const NEAR: usize = 8191;
const FARTHEST: usize = NEAR + 65535;
/// BloscLZ's decoders rely on literals at the end.
const TAIL: usize = 12;

/// A BloscLZ stream: as LZF's, but lengths go on in bytes of 255, and a distance of all ones is
/// followed by two bytes of distance beyond [`NEAR`].
struct BloscLzItems<'a>(&'a mut Vec<u8>);

impl Sink for BloscLzItems<'_> {
    fn literals(&mut self, bytes: &[u8]) {
        for run in bytes.chunks(32) {
            self.0.push((run.len() - 1) as u8);
            self.0.extend_from_slice(run);
        }
    }

    fn repetition(&mut self, distance: usize, length: usize) {
        let (distance, length) = (distance - 1, length - 2);
        let near = distance.min(NEAR);
        let high = (near >> 8) as u8;
        if length < 7 {
            self.0.push((length as u8) << 5 | high);
        } else {
            self.0.push(7 << 5 | high);
            let more = length - 7;
            self.0.extend(std::iter::repeat_n(255, more / 255));
            self.0.push((more % 255) as u8);
        }
        self.0.push(near as u8);
        if near == NEAR {
            self.0.extend_from_slice(&((distance - NEAR) as u16).to_be_bytes());
        }
    }
}

fn next(input: &mut &[u8]) -> Option<usize> {
    let (&first, rest) = input.split_first()?;
    *input = rest;
    Some(usize::from(first))
}

fn blosclz_decompress(input: &[u8], length: usize, out: &mut Vec<u8>) -> Option<()> {
    out.clear();
    let mut rest = input;
    // The first item is always literals; its high bits say something else.
    let mut control = next(&mut rest)? & 31;
    loop {
        if control < 32 {
            let (literals, after) = rest.split_at_checked(control + 1)?;
            (out.len() + literals.len() <= length).then_some(())?;
            out.extend_from_slice(literals);
            rest = after;
        } else {
            let mut count = (control >> 5) + 2;
            if control >> 5 == 7 {
                loop {
                    let more = next(&mut rest)?;
                    count += more;
                    if more != 255 {
                        break;
                    }
                }
            }
            let mut distance = (control & 31) << 8 | next(&mut rest)?;
            if distance == NEAR {
                distance += next(&mut rest)? << 8 | next(&mut rest)?;
            }
            (out.len() + count <= length).then_some(())?;
            matches::repeat(out, distance + 1, count)?;
        }
        match next(&mut rest) {
            Some(following) => control = following,
            None => return Some(()),
        }
    }
}

/// Snappy: the length as a number of 7 bits a byte, then items whose kind is in their lowest two
/// bits.
fn snappy_compress(input: &[u8], out: &mut Vec<u8>) {
    out.clear();
    let mut length = input.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    let limits = Limits { least: 4, longest: 64, farthest: 65535, tail: 0 };
    matches::divide(input, limits, &mut SnappyItems(out));
}

struct SnappyItems<'a>(&'a mut Vec<u8>);

impl Sink for SnappyItems<'_> {
    fn literals(&mut self, bytes: &[u8]) {
        for run in bytes.chunks(1 << 16) {
            let length = run.len() - 1;
            if length < 60 {
                self.0.push((length as u8) << 2);
            } else {
                self.0.push(61 << 2);
                self.0.extend_from_slice(&(length as u16).to_le_bytes());
            }
            self.0.extend_from_slice(run);
        }
    }

    fn repetition(&mut self, distance: usize, length: usize) {
        self.0.push(((length - 1) as u8) << 2 | 2);
        self.0.extend_from_slice(&(distance as u16).to_le_bytes());
    }
}

fn snappy_decompress(input: &[u8], length: usize, out: &mut Vec<u8>) -> Option<()> {
    out.clear();
    let mut rest = input;
    let (mut announced, mut shift) = (0, 0);
    loop {
        let byte = next(&mut rest)?;
        announced |= (byte & 0x7F) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            break;
        }
        (shift <= 28).then_some(())?;
    }
    (announced <= length).then_some(())?;
    while let Some(tag) = next(&mut rest) {
        let mut number = |bytes: usize| -> Option<usize> {
            let (field, after) = rest.split_at_checked(bytes)?;
            rest = after;
            Some(field.iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte)))
        };
        let (count, distance) = match tag & 3 {
            0 if tag >> 2 < 60 => ((tag >> 2) + 1, None),
            0 => (number((tag >> 2) - 59)?.checked_add(1)?, None),
            1 => ((tag >> 2 & 7) + 4, Some((tag >> 5) << 8 | number(1)?)),
            2 => ((tag >> 2) + 1, Some(number(2)?)),
            _ => ((tag >> 2) + 1, Some(number(4)?)),
        };
        (count <= announced - out.len()).then_some(())?;
        match distance {
            Some(distance) => matches::repeat(out, distance, count)?,
            None => {
                let (literals, after) = rest.split_at_checked(count)?;
                out.extend_from_slice(literals);
                rest = after;
            }
        }
    }
    (out.len() == announced).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_far_repetitions_come_back() {
        let noise: Vec<u8> =
            (0..20_000u32).map(|n| (n.wrapping_mul(0x9E37_79B1) >> 11) as u8).collect();
        let data = [&noise[..], &[7; 3000], &noise[..9000], &noise[..50]].concat();
        for number in 0..6 {
            let codec = Codec::of_parameter(number).unwrap();
            let (mut packed, mut back) = (Vec::new(), Vec::new());
            codec.compress(5, &data, &mut packed).unwrap();
            assert!(packed.len() < 24_000, "{number}: {}", packed.len());
            codec.decompress(NAME, &packed, data.len(), &mut back).unwrap();
            assert!(back == data, "{number}");
            assert!(codec.decompress(NAME, &packed, data.len() - 1, &mut back).is_err());
        }
    }
}
