//! Numbers without pattern as Rice codes: the low `k` bits of a number as bits, the rest in unary.
//!
//! The gaps of cells that are scattered at random follow a geometric law, for which these codes are
//! within one or two per cent of the entropy. `k` is chosen anew for every block of numbers, so that
//! the density may vary. Unary parts and low bits are kept apart, so that both are read in tight loops:
//!
//! | bytes | content |
//! |---|---|
//! | 1 per block | `k`, at most 48 |
//! | varint | length of the unary part, in bytes |
//! | that many | for each number `number >> k` zero bits and a one, from the lowest bit of the first byte on; then zero bits up to a whole byte |
//! | per block | `number mod 2^k` in `k` bits each, lowest first; then zero bits up to a whole byte |
//!
//! Nothing follows: the unary part has a one for every number, the last of them in its last byte.

mod cells;
#[cfg(target_arch = "x86_64")]
mod wide;
#[cfg(not(target_arch = "x86_64"))]
#[path = "packed/narrow.rs"]
mod wide;

use super::{BLOCK, MOST_BITS, Number};
use crate::FilterError;
use crate::location::varint::{put_varint, varint};
use crate::location::{NAME, corrupt};
use pumice_bytes::Reader;

/// The parameters of packing a stream.
pub(super) struct Parameters {
    /// `k` of each block.
    low_bits: Vec<u8>,
    /// Bits of the unary part.
    unary_bits: u64,
    /// Bits in all.
    pub(super) bits: u64,
}

/// The best `k` for each block.
#[inline(always)]
pub(super) fn parameters<N: Number>(values: &[N]) -> Parameters {
    let mut all = Parameters { low_bits: Vec::new(), unary_bits: 0, bits: 0 };
    for block in values.chunks(BLOCK) {
        let (low_bits, unary_bits) = best_split(block);
        all.low_bits.push(low_bits as u8);
        all.unary_bits += unary_bits;
        all.bits += 8 + unary_bits + (block.len() * low_bits as usize) as u64;
    }
    all
}

/// The `k` that makes a block shortest, and the length of its unary part.
#[inline(always)]
fn best_split<N: Number>(block: &[N]) -> (u32, u64) {
    let count = block.len() as u64;
    let sums = Sums { block, small: N::union(block) < SMALL };
    let cost = |low_bits: u32, unary: u64| u64::from(low_bits) * count + unary;
    // Near the logarithm of the mean, and from there downhill. Three at a time cost as much as one.
    let mean = sums.shifted(0) / count;
    let middle = mean.checked_ilog2().unwrap_or(0).clamp(1, MOST_BITS - 1);
    let [below, at, above] = sums.three(middle - 1).map(|sum| sum + count);
    // Of equally short ones, the one nearest to the mean.
    let mut all = [(middle, at), (middle - 1, below), (middle + 1, above)];
    if mean < 2 {
        all.swap(0, 1);
    }
    let best = all.into_iter().min_by_key(|&(low_bits, unary)| cost(low_bits, unary));
    let (mut best, mut best_unary) = best.unwrap_or((middle, at));
    let step = best as i32 - middle as i32;
    while step != 0
        && let Some(next) = best.checked_add_signed(step).filter(|next| *next <= MOST_BITS)
    {
        let next_unary = sums.shifted(next) + count;
        if cost(next, next_unary) >= cost(best, best_unary) {
            break;
        }
        (best, best_unary) = (next, next_unary);
    }
    (best, best_unary)
}

/// A block of numbers below this has sums of 32 bits, of which twice as many are made at once.
const SMALL: u64 = 1 << 22;

/// Sums of the numbers of a block without their low bits.
struct Sums<'b, N> {
    block: &'b [N],
    small: bool,
}

impl<N: Number> Sums<'_, N> {
    /// Without `low_bits` bits.
    #[inline(always)]
    fn shifted(&self, low_bits: u32) -> u64 {
        match self.small {
            // None has more bits than that.
            true if low_bits > 31 => 0,
            true => u64::from(self.block.iter().map(|at| at.narrow() >> low_bits).sum::<u32>()),
            false => self.block.iter().map(|at| at.wide() >> low_bits).sum(),
        }
    }

    /// Without `low_bits` bits, one bit more, and two bits more.
    #[inline(always)]
    fn three(&self, low_bits: u32) -> [u64; 3] {
        if self.small && low_bits < 29 {
            let mut sums = [0u32; 3];
            for value in self.block {
                let value = value.narrow() >> low_bits;
                sums[0] += value;
                sums[1] += value >> 1;
                sums[2] += value >> 2;
            }
            return sums.map(u64::from);
        }
        let mut sums = [0u64; 3];
        for value in self.block {
            let value = value.wide() >> low_bits;
            sums[0] += value;
            sums[1] += value >> 1;
            sums[2] += value >> 2;
        }
        sums
    }
}

#[inline(always)]
pub(super) fn encode<N: Number>(values: &[N], parameters: &Parameters, out: &mut Vec<u8>) {
    out.extend_from_slice(&parameters.low_bits);
    let unary_bytes = parameters.unary_bits.div_ceil(8) as usize;
    put_varint(unary_bytes as u64, out);
    put_unary(values, parameters, unary_bytes, out);
    for (block, low_bits) in values.chunks(BLOCK).zip(&parameters.low_bits) {
        put_low(block, u32::from(*low_bits), out);
    }
}

#[inline(always)]
fn put_unary<N: Number>(values: &[N], parameters: &Parameters, bytes: usize, out: &mut Vec<u8>) {
    let start = out.len();
    // Every write is a whole word; bytes beyond the end are cut off again.
    out.resize(start + bytes + 8, 0);
    let mut ones = Ones { place: &mut out[start..], bits: 0, filled: 0 };
    for (block, low_bits) in values.chunks(BLOCK).zip(&parameters.low_bits) {
        ones.put_block(block, u32::from(*low_bits));
    }
    out.truncate(start + bytes);
}

/// Writes unary numbers to bytes that are zero.
struct Ones<'a> {
    /// The bytes from the one on that gets the next bit.
    place: &'a mut [u8],
    /// The bits of that byte that are known, and how many they are; fewer than eight.
    bits: u64,
    filled: u32,
}

impl Ones<'_> {
    /// The numbers of a block without their low bits.
    #[inline(always)]
    fn put_block<N: Number>(&mut self, block: &[N], low_bits: u32) {
        let (fours, rest) = block.as_chunks::<4>();
        for four in fours {
            self.put_four(four.map(|value| value.wide() >> low_bits));
        }
        rest.iter().for_each(|value| self.put(value.wide() >> low_bits));
    }

    /// Four numbers, without a decision for each: mostly they are few bits.
    #[inline(always)]
    fn put_four(&mut self, [a, b, c, d]: [u64; 4]) {
        // Zeros before the last one; too many if any number alone has too many.
        let zeros = a.saturating_add(b).saturating_add(c).saturating_add(d);
        if zeros > 48 {
            return [a, b, c, d].into_iter().for_each(|zeros| self.put(zeros));
        }
        let second = a + b + 1;
        let third = second + c + 1;
        let last = third + d + 1;
        let ones = 1u64 << a | 1 << second | 1 << third | 1 << last;
        self.append(ones, last as u32 + 1);
    }

    /// Appends at most 56 bits.
    #[inline(always)]
    fn append(&mut self, bits: u64, count: u32) {
        let word = self.bits | bits << self.filled;
        if let Some(to) = self.place.first_chunk_mut::<8>() {
            *to = word.to_le_bytes();
        }
        let filled = self.filled + count;
        self.skip(filled as usize / 8);
        (self.bits, self.filled) = (word.checked_shr(filled & !7).unwrap_or(0), filled % 8);
    }

    /// Appends one number of any size.
    fn put(&mut self, zeros: u64) {
        let end = zeros.saturating_add(u64::from(self.filled));
        if end >= 8 {
            // The bytes that are left behind are written already, or zero.
            self.skip(usize::try_from(end / 8).unwrap_or(usize::MAX));
            self.bits = 0;
        }
        self.filled = (end % 8) as u32;
        self.append(1, 1);
    }

    #[inline(always)]
    fn skip(&mut self, bytes: usize) {
        self.place = std::mem::take(&mut self.place).get_mut(bytes..).unwrap_or_default();
    }
}

#[inline(always)]
fn put_low<N: Number>(block: &[N], low_bits: u32, out: &mut Vec<u8>) {
    // The common widths get loops of their own, in which all shifts are constants.
    match low_bits {
        0 => {}
        1 => put_low_fixed::<N, 1>(block, out),
        2 => put_low_fixed::<N, 2>(block, out),
        3 => put_low_fixed::<N, 3>(block, out),
        4 => put_low_fixed::<N, 4>(block, out),
        5 => put_low_fixed::<N, 5>(block, out),
        6 => put_low_fixed::<N, 6>(block, out),
        7 => put_low_fixed::<N, 7>(block, out),
        8 => put_low_fixed::<N, 8>(block, out),
        9 => put_low_fixed::<N, 9>(block, out),
        10 => put_low_fixed::<N, 10>(block, out),
        11 => put_low_fixed::<N, 11>(block, out),
        12 => put_low_fixed::<N, 12>(block, out),
        _ => put_low_any(block, low_bits, out),
    }
}

/// For `BITS` of at most 16: the low bits of half a group fit a word.
#[inline(always)]
fn put_low_fixed<N: Number, const BITS: usize>(block: &[N], out: &mut Vec<u8>) {
    let start = out.len();
    let end = start + (block.len() * BITS).div_ceil(8);
    // The last words may go beyond the end.
    out.resize(end + 16, 0);
    let mut place = &mut out[start..];
    let word = |half: &[N]| {
        let bits = half.iter().map(|value| value.wide() & ((1 << BITS) - 1));
        bits.enumerate().fold(0u64, |word, (number, bits)| word | bits << (number * BITS))
    };
    let mut put = |group: &[N]| {
        let Some(to) = place.first_chunk_mut::<16>() else { return };
        let (low, high) = group.split_at(group.len().min(GROUP / 2));
        let words = u128::from(word(low)) | u128::from(word(high)) << (GROUP / 2 * BITS);
        *to = words.to_le_bytes();
        place = std::mem::take(&mut place).get_mut(BITS..).unwrap_or_default();
    };
    let (groups, rest) = block.as_chunks::<GROUP>();
    // Of a length that is known, so that all shifts are.
    groups.iter().for_each(|group| put(group.as_slice()));
    put(rest);
    out.truncate(end);
}

#[inline]
fn put_low_any<N: Number>(block: &[N], low_bits: u32, out: &mut Vec<u8>) {
    let end = out.len() + (block.len() * low_bits as usize).div_ceil(8);
    let mask = (1u64 << low_bits) - 1;
    let (mut word, mut filled) = (0u64, 0);
    for value in block {
        let value = value.wide() & mask;
        word |= value << filled;
        filled += low_bits;
        if filled >= 64 {
            out.extend_from_slice(&word.to_le_bytes());
            filled -= 64;
            // The rest that did not fit; all of it if the number began at the word's end.
            word = value.checked_shr(low_bits - filled).unwrap_or(0);
        }
    }
    out.extend_from_slice(&word.to_le_bytes());
    out.truncate(end);
}

/// A packed stream that is being read.
pub(super) struct Packed<'a> {
    low_bits: &'a [u8],
    unary: Unary<'a>,
    low: &'a [u8],
}

impl<'a> Packed<'a> {
    pub(super) fn open(reader: &mut Reader<'a>, count: usize) -> Result<Self, FilterError> {
        let low_bits = reader.take(count.div_ceil(BLOCK)).map_err(corrupt)?;
        let unary_bytes = varint(reader)?;
        let unary_bytes = reader.count(unary_bytes, 1).map_err(corrupt)?;
        let unary = reader.take(unary_bytes).map_err(corrupt)?;
        if unary.last() == Some(&0) || (count == 0 && !unary.is_empty()) {
            return Err(FilterError::corrupt(NAME, "the end of the unary part", "spare bytes"));
        }
        let mut low_bytes = 0usize;
        for (number, low_bits) in low_bits.iter().enumerate() {
            if u32::from(*low_bits) > MOST_BITS {
                let expected = format!("at most {MOST_BITS} low bits");
                return Err(FilterError::corrupt(NAME, expected, low_bits));
            }
            let numbers = BLOCK.min(count - number * BLOCK);
            low_bytes += (numbers * usize::from(*low_bits)).div_ceil(8);
        }
        let low = reader.take(low_bytes).map_err(corrupt)?;
        check_padding(low_bits, count, low)?;
        Ok(Self { low_bits, unary: Unary::new(unary), low })
    }

    /// Fills `values`, a whole block or the last.
    pub(super) fn block(&mut self, values: &mut [u64]) -> Result<(), FilterError> {
        let Some((low_bits, rest)) = self.low_bits.split_first() else {
            return Ok(());
        };
        self.low_bits = rest;
        let low_bits = u32::from(*low_bits);
        self.unary.read(values)?;
        if rest.is_empty() {
            self.unary.finish()?;
        }
        let union = values.iter().fold(0, |union, value| union | value);
        if union >> (MOST_BITS - low_bits) != 0 {
            let expected = format!("numbers below 2^{MOST_BITS}");
            return Err(FilterError::corrupt(NAME, expected, "a larger one"));
        }
        let (low, rest) = self.low.split_at((values.len() * low_bits as usize).div_ceil(8));
        self.low = rest;
        add_low(values, low_bits, low);
        Ok(())
    }
}

/// Refuses ones after the low bits of the last block. All other blocks fill whole bytes.
fn check_padding(low_bits: &[u8], count: usize, low: &[u8]) -> Result<(), FilterError> {
    let (Some(low_bits), Some(last)) = (low_bits.last(), low.last()) else {
        return Ok(());
    };
    // The bits that are used in the last byte: none means all.
    let used = (count % BLOCK) * usize::from(*low_bits) % 8;
    if used == 0 || last >> used == 0 {
        return Ok(());
    }
    Err(FilterError::corrupt(NAME, "zero bits after the low bits", format!("{last:#04x}")))
}

/// Numbers whose low bits fill whole bytes, whatever their width.
const GROUP: usize = 8;

/// The most low bits of which a group's are within sixteen bytes, each number's within four.
const MOST_WIDE: u32 = 13;

/// Shifts `values` up by `low_bits` and fills in the bits that became free.
fn add_low(values: &mut [u64], low_bits: u32, low: &[u8]) {
    // The common widths get loops of their own, in which all shifts are constants.
    match low_bits {
        0 => {}
        1 => add_low_fixed::<1>(values, low),
        2 => add_low_fixed::<2>(values, low),
        3 => add_low_fixed::<3>(values, low),
        4 => add_low_fixed::<4>(values, low),
        5 => add_low_fixed::<5>(values, low),
        6 => add_low_fixed::<6>(values, low),
        7 => add_low_fixed::<7>(values, low),
        8 => add_low_fixed::<8>(values, low),
        9 => add_low_fixed::<9>(values, low),
        10 => add_low_fixed::<10>(values, low),
        11 => add_low_fixed::<11>(values, low),
        12 => add_low_fixed::<12>(values, low),
        _ => add_low_any(values, low_bits, low),
    }
}

fn add_low_fixed<const BITS: usize>(values: &mut [u64], low: &[u8]) {
    // A group reads eight bytes from its last number's first byte on, which may go beyond its end.
    let groups = (low.len().saturating_sub(8) / BITS).min(values.len() / GROUP);
    let (groups, rest) = values.split_at_mut(groups * GROUP);
    let mut bytes = low;
    for group in groups.as_chunks_mut::<GROUP>().0 {
        let window = &bytes[..BITS + 8];
        for (number, value) in group.iter_mut().enumerate() {
            let bit = number * BITS;
            let word = word_at(window, bit / 8);
            *value = *value << BITS | (word >> (bit % 8) & ((1 << BITS) - 1));
        }
        bytes = &bytes[BITS..];
    }
    add_low_any(rest, BITS as u32, bytes);
}

fn add_low_any(values: &mut [u64], low_bits: u32, low: &[u8]) {
    let mask = (1u64 << low_bits) - 1;
    let mut bit = 0;
    for value in values {
        let word = word_at(low, bit / 8);
        *value = *value << low_bits | (word >> (bit % 8) & mask);
        bit += low_bits as usize;
    }
}

/// The eight bytes from `at` on, zeros beyond the end.
#[inline(always)]
fn word_at(bytes: &[u8], at: usize) -> u64 {
    if let Some(array) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        return u64::from_le_bytes(*array);
    }
    let mut array = [0; 8];
    let rest = bytes.get(at..).unwrap_or_default();
    array[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(array)
}

/// Reads unary numbers.
struct Unary<'a> {
    bytes: &'a [u8],
    /// The unread ones of the current word.
    word: u64,
    /// The number of the current word's first bit.
    base: u64,
    /// The number of the bit after the last one that was read.
    at: u64,
}

impl<'a> Unary<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, word: 0, base: 0u64.wrapping_sub(64), at: 0 }
    }

    /// Fills `values`.
    fn read(&mut self, mut values: &mut [u64]) -> Result<(), FilterError> {
        while !values.is_empty() {
            if self.word == 0 {
                self.load()?;
            }
            let ones = self.word.count_ones() as usize;
            let (now, later) = values.split_at_mut(ones.min(values.len()));
            let (mut word, mut at) = (self.word, self.at.wrapping_sub(self.base));
            for value in now {
                let one = u64::from(word.trailing_zeros());
                word &= word.wrapping_sub(1);
                *value = one.wrapping_sub(at);
                at = one + 1;
            }
            (self.word, self.at) = (word, at.wrapping_add(self.base));
            values = later;
        }
        Ok(())
    }

    /// Checks that no ones are left. The last byte is not zero, so unloaded bytes have some.
    fn finish(&self) -> Result<(), FilterError> {
        if self.word == 0 && self.bytes.is_empty() {
            return Ok(());
        }
        Err(FilterError::corrupt(NAME, "a one bit for every number", "more"))
    }

    /// Moves on to the next word.
    fn load(&mut self) -> Result<(), FilterError> {
        if self.bytes.is_empty() {
            return Err(FilterError::corrupt(NAME, "a one bit for every number", "fewer"));
        }
        self.word = word_at(self.bytes, 0);
        self.base = self.base.wrapping_add(64);
        self.bytes = self.bytes.get(8..).unwrap_or_default();
        Ok(())
    }
}
