//! Numbers as bytes: for numbers with a pattern, so that a compressor finds it, and for small
//! numbers that are to be read fast.
//!
//! | bytes | content |
//! |---|---|
//! | 1 per number | the number, or 255 if it is 255 or more |
//! | 1 | width `w` of large numbers in bytes: what the largest, minus 255, needs, 1 at least; 0 if there are none |
//! | `w` times as many as there are 255s | large numbers minus 255: all lowest bytes, then all next, and so on |

mod cells;
#[cfg(target_arch = "x86_64")]
mod wide;
#[cfg(not(target_arch = "x86_64"))]
#[path = "bytes/narrow.rs"]
mod wide;

use super::{BLOCK, MOST_BITS, Number};
use crate::FilterError;
use crate::location::{NAME, corrupt};
use cells::Places;
use pumice_bytes::Reader;
use pumice_wide::Wide;

/// Marks a number that is not below it.
const LARGE: u64 = super::LARGE as u64;

/// The widest large numbers, in bytes.
const MOST_WIDTH: usize = MOST_BITS as usize / 8;

/// Appends numbers, of which so many are large.
#[inline(always)]
pub(super) fn encode<N: Number>(values: &[N], large: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend(values.iter().map(|value| value.wide().min(LARGE) as u8));
    let small = out.get(start..).unwrap_or_default();
    let mut large: Vec<N> = Vec::with_capacity(large);
    let mut places = [0; BLOCK + 64];
    for (block, small) in values.chunks(BLOCK).zip(small.chunks(BLOCK)) {
        let found = find_large(small, &mut places);
        let value = |place: &u8| block.get(usize::from(*place)).copied().unwrap_or_default();
        large.extend(places[..found].iter().map(value));
    }
    put_large(&large, out);
}

/// Puts the places of large numbers in a block to the beginning of `places`; how many there are.
#[inline(always)]
fn find_large(small: &[u8], places: &mut Places) -> usize {
    match (small.first_chunk(), Wide::detect()) {
        (Some(block), Some(has)) => wide::find_large(has, block, places),
        _ => cells::find_large(small, places),
    }
}

/// Appends the width of large numbers and their planes.
#[inline(always)]
fn put_large<N: Number>(large: &[N], out: &mut Vec<u8>) {
    let less = |value: &N| value.wide() - LARGE;
    let union = large.iter().fold(0, |union, value| union | less(value));
    let width = width(large.len(), union);
    out.push(width as u8);
    for byte in 0..width {
        out.extend(large.iter().map(|value| (less(value) >> (8 * byte)) as u8));
    }
}

/// Bytes that the largest of `count` numbers needs, which have these bits together; at least one, so that 0
/// means that there is none.
#[inline(always)]
fn width(count: usize, union: u64) -> usize {
    match count {
        0 => 0,
        _ => (union.checked_ilog2().unwrap_or(0) / 8 + 1) as usize,
    }
}

/// Estimates look at this many stretches of the stream...
const STRETCHES: usize = 4;

/// ...of this share of all numbers, within these bounds.
const SHARE: usize = 32;
const STRETCH: (usize, usize) = (128, 512);

/// The estimated length of the compressed stream, in bits.
#[inline(always)]
pub(super) fn estimated_bits<N: Number>(values: &[N]) -> u64 {
    let mut estimate = Estimate::default();
    let most = (values.len() / SHARE).clamp(STRETCH.0, STRETCH.1);
    let step = (values.len() / STRETCHES).max(most);
    for stretch in values.chunks(step) {
        estimate.add(&stretch[..stretch.len().min(most)]);
    }
    estimate.bits(values.len())
}

/// An estimate from samples of a stream: the entropy of its bytes, and repetitions.
#[derive(Clone, Debug)]
pub(super) struct Estimate {
    histogram: [u32; 256],
    repeats: usize,
    seen: usize,
}

impl Default for Estimate {
    fn default() -> Self {
        Self { histogram: [0; 256], repeats: 0, seen: 0 }
    }
}

impl Estimate {
    /// Adds a sample.
    #[inline(always)]
    pub(super) fn add<N: Number>(&mut self, stretch: &[N]) {
        count_bytes(stretch, &mut self.histogram);
        self.repeats += repeated(stretch);
        self.seen += stretch.len();
    }

    /// The probable length of a stream of `count` numbers.
    pub(super) fn bits(&self, count: usize) -> u64 {
        let used = self.histogram.iter().filter(|count| **count > 0);
        let used = used.map(|count| f64::from(*count));
        let total: f64 = used.clone().sum();
        let entropy: f64 = used.clone().map(|count| count * (total / count).log2()).sum();
        let scale = count as f64 / self.seen.max(1) as f64;
        let fresh = 1.0 - 0.9 * self.repeats as f64 / self.seen.max(1) as f64;
        // A compressor has to describe its codes, too.
        let codes = 100.0 + 5.0 * used.count() as f64;
        ((entropy * scale * fresh + codes).min(8.0 * total * scale + 8.0)) as u64
    }
}

/// Counts the bytes of these numbers' encoding.
#[inline(always)]
fn count_bytes<N: Number>(values: &[N], histogram: &mut [u32; 256]) {
    for value in values.iter().map(|value| value.wide()) {
        histogram[value.min(LARGE) as usize] += 1;
        if let Some(large) = value.checked_sub(LARGE) {
            for byte in &large.to_le_bytes()[..width(1, large)] {
                histogram[usize::from(*byte)] += 1;
            }
        }
    }
}

/// Numbers that must repeat together to count as a repetition: fewer repeat by chance.
const PHRASE: usize = 12;

/// The number of these values that begin a phrase that occurred before.
#[inline(always)]
fn repeated<N: Number>(values: &[N]) -> usize {
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut last_seen = [u16::MAX; 1 << 10];
    let mut repeats = 0;
    for (at, phrase) in values.windows(PHRASE).enumerate() {
        let [a, b, c] = [phrase[0], phrase[4], phrase[11]].map(N::wide);
        let some = a ^ b.rotate_left(20) ^ c.rotate_left(40);
        let slot = &mut last_seen[(some.wrapping_mul(SPREAD) >> 54) as usize];
        let before = usize::from(std::mem::replace(slot, at as u16));
        if values.get(before) == Some(&phrase[0]) {
            repeats += usize::from(values[before..before + PHRASE] == *phrase);
        }
    }
    repeats
}

/// A stream of bytes that is being read.
pub(super) struct Bytes<'a> {
    small: &'a [u8],
    /// The planes of the large numbers, lowest bytes first.
    large: [&'a [u8]; MOST_WIDTH],
}

impl<'a> Bytes<'a> {
    pub(super) fn open(reader: &mut Reader<'a>, count: usize) -> Result<Self, FilterError> {
        let small = reader.take(count).map_err(corrupt)?;
        let number = count_large(small);
        let width = usize::from(reader.u8().map_err(corrupt)?);
        if width > MOST_WIDTH || (width > 0) != (number > 0) {
            let expected = format!("a width fit for {number} large number(s)");
            return Err(FilterError::corrupt(NAME, expected, width));
        }
        let mut large = [&[][..]; MOST_WIDTH];
        for plane in large.iter_mut().take(width) {
            *plane = reader.take(number).map_err(corrupt)?;
        }
        if width > 1 && large[width - 1].iter().all(|byte| *byte == 0) {
            return Err(FilterError::corrupt(NAME, "the least width of large numbers", width));
        }
        Ok(Self { small, large })
    }

    pub(super) fn block(&mut self, values: &mut [u64]) -> Result<(), FilterError> {
        let Some((small, rest)) = self.small.split_at_checked(values.len()) else {
            return Ok(());
        };
        self.small = rest;
        for (value, small) in values.iter_mut().zip(small) {
            *value = u64::from(*small);
        }
        let mut places = [0; BLOCK + 64];
        let found = find_large(small, &mut places);
        for (byte, plane) in self.large.iter_mut().enumerate() {
            for (place, more) in places[..found].iter().zip(*plane) {
                if let Some(value) = values.get_mut(usize::from(*place)) {
                    *value += u64::from(*more) << (8 * byte);
                }
            }
            *plane = plane.get(found..).unwrap_or_default();
        }
        Ok(())
    }
}

/// The number of these bytes that mark large numbers.
fn count_large(small: &[u8]) -> usize {
    // As many as a byte can count at a time, so that a register holds many counters.
    let counts = small.chunks(128).map(|part| {
        let count: u8 = part.iter().map(|byte| u8::from(u64::from(*byte) == LARGE)).sum();
        usize::from(count)
    });
    counts.sum()
}
