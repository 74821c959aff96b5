//! Packing numbers as they come, block by block, where nobody has them all in memory.

use super::{BLOCK, Ones, best_split, put_low};
use crate::location::numbers::bytes::Estimate;
use crate::location::varint::put_varint;

/// One block in so many is looked at for a pattern.
const SAMPLED: usize = 16;

/// Numbers that have been packed.
#[derive(Clone, Debug, Default)]
pub(in crate::location) struct Packer {
    /// `k` of each block.
    low_bits: Vec<u8>,
    /// The unary parts; the bits of the last byte, fewer than eight, are apart.
    unary: Vec<u8>,
    bits: u64,
    filled: u32,
    low: Vec<u8>,
    /// What numbers would take as bytes, compressed.
    estimate: Estimate,
    /// All bits that any number has.
    union: u32,
    count: usize,
    /// The sum of all numbers, and how many of them are zero.
    pub(in crate::location) sum: u64,
    pub(in crate::location) zeros: u64,
}

impl Packer {
    /// With room for about so many numbers.
    pub(in crate::location) fn new(count: usize) -> Self {
        let low_bits = Vec::with_capacity(count.div_ceil(BLOCK));
        let (unary, low) = (Vec::with_capacity(count / 3), Vec::with_capacity(count));
        Self { low_bits, unary, low, ..Self::default() }
    }

    /// Packs a block: [`BLOCK`] numbers, or fewer and then no more.
    #[inline(always)]
    pub(in crate::location) fn block(&mut self, block: &[u32]) {
        if block.is_empty() {
            return;
        }
        let (low_bits, unary_bits) = best_split(block);
        if self.low_bits.len().is_multiple_of(SAMPLED) {
            self.estimate.add(block);
        }
        self.low_bits.push(low_bits as u8);
        let union = block.iter().fold(0, |union, number| union | number);
        self.union |= union;
        self.sum += match union >> 24 {
            0 => u64::from(block.iter().sum::<u32>()),
            _ => block.iter().map(|number| u64::from(*number)).sum(),
        };
        self.zeros += u64::from(block.iter().map(|number| u32::from(*number == 0)).sum::<u32>());
        self.count += block.len();
        let start = self.unary.len();
        // Every write is of a whole word; what lies beyond the end is cut off again.
        let whole = (unary_bits + u64::from(self.filled)) as usize / 8;
        self.unary.resize(start + whole + 9, 0);
        let place = &mut self.unary[start..];
        // A number may go beyond the byte that it begins in.
        place[0] = self.bits as u8;
        let mut ones = Ones { place, bits: self.bits, filled: self.filled };
        ones.put_block(block, low_bits);
        (self.bits, self.filled) = (ones.bits, ones.filled);
        self.unary.truncate(start + whole);
        put_low(block, low_bits, &mut self.low);
    }

    /// Whether other forms would take more in the end.
    pub(in crate::location) fn is_shortest(&self) -> bool {
        let bytes = self.low_bits.len() + self.unary.len() + self.low.len();
        // Numbers of which none has another bit, and that add up to as many times all bits.
        let constant = self.sum == u64::from(self.union) * self.count as u64;
        !constant && self.estimate.bits(self.count) >= 8 * bytes as u64 / 10 * 9
    }

    /// How many numbers there are.
    pub(in crate::location) fn count(&self) -> usize {
        self.count
    }

    /// Bytes of the stream, about.
    pub(in crate::location) fn len(&self) -> usize {
        self.low_bits.len() + self.unary.len() + self.low.len() + 16
    }

    /// Appends the stream, without its form.
    pub(in crate::location) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.low_bits);
        let last = (self.filled > 0).then_some(self.bits as u8);
        put_varint((self.unary.len() + usize::from(last.is_some())) as u64, out);
        out.extend_from_slice(&self.unary);
        out.extend(last);
        out.extend_from_slice(&self.low);
    }
}
