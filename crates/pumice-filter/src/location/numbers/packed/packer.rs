//! Packing numbers as they come, block by block, where nobody has them all in memory.

use super::{BLOCK, Ones, best_split, put_low};
use crate::location::varint::put_varint;

/// Numbers that have been packed.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Packer {
    /// `k` of each block.
    low_bits: Vec<u8>,
    /// The unary parts; the bits of the last byte, fewer than eight, are apart.
    unary: Vec<u8>,
    bits: u64,
    filled: u32,
    low: Vec<u8>,
}

impl Packer {
    /// With room for about so many numbers.
    pub(in super::super) fn new(count: usize) -> Self {
        let low_bits = Vec::with_capacity(count.div_ceil(BLOCK));
        let (unary, low) = (Vec::with_capacity(count / 3), Vec::with_capacity(count));
        Self { low_bits, unary, low, ..Self::default() }
    }

    /// Packs a block: [`BLOCK`] numbers, or fewer and then no more.
    #[inline(always)]
    pub(in super::super) fn block(&mut self, block: &[u32]) {
        let (low_bits, unary_bits) = best_split(block);
        self.low_bits.push(low_bits as u8);
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

    /// Bytes of the stream, about.
    pub(in super::super) fn len(&self) -> usize {
        self.low_bits.len() + self.unary.len() + self.low.len()
    }

    /// Appends the stream, without its form.
    pub(in super::super) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.low_bits);
        let last = (self.filled > 0).then_some(self.bits as u8);
        put_varint((self.unary.len() + usize::from(last.is_some())) as u64, out);
        out.extend_from_slice(&self.unary);
        out.extend(last);
        out.extend_from_slice(&self.low);
    }
}
