//! Gaps as they come, block by block, where nobody has them all in memory.

use super::bytes::Estimate;
use super::packed::Packer;
use super::{PACKED, bytes_pay};
use crate::location::Aim;

/// One block in so many is looked at for a pattern.
const SAMPLED: usize = 16;

/// Gaps between cells, packed.
#[derive(Clone, Debug)]
pub(in crate::location) struct Gaps {
    aim: Aim,
    packer: Packer,
    /// What they would take as bytes, compressed.
    estimate: Estimate,
    blocks: usize,
    /// All bits that any of them has, and how many do not fit a byte.
    union: u32,
    large: usize,
    count: usize,
    /// The sum of all, and how many are zero.
    sum: u64,
    zeros: u64,
}

/// What a list of gaps has, all in all.
pub(in crate::location) struct Totals {
    pub(in crate::location) count: u64,
    /// The sum of all, and how many are zero.
    pub(in crate::location) sum: u64,
    pub(in crate::location) zeros: u64,
}

impl Gaps {
    /// With room for about `room` of them.
    pub(in crate::location) fn new(room: usize, aim: Aim) -> Self {
        let (packer, estimate) = (Packer::new(room), Estimate::default());
        Self { aim, packer, estimate, blocks: 0, union: 0, large: 0, count: 0, sum: 0, zeros: 0 }
    }

    /// Takes a block: [`BLOCK`](super::BLOCK) gaps, or fewer and then no more.
    #[inline(always)]
    pub(in crate::location) fn block(&mut self, block: &[u32]) {
        if block.is_empty() {
            return;
        }
        let union = block.iter().fold(0, |union, gap| union | gap);
        self.union |= union;
        self.sum += match union >> 24 {
            0 => u64::from(block.iter().sum::<u32>()),
            _ => block.iter().map(|gap| u64::from(*gap)).sum(),
        };
        self.zeros += u64::from(block.iter().map(|gap| u32::from(*gap == 0)).sum::<u32>());
        self.large += block.iter().map(|gap| u32::from(*gap >= 255)).sum::<u32>() as usize;
        self.count += block.len();
        self.packer.block(block);
        if self.aim == Aim::Short && self.blocks.is_multiple_of(SAMPLED) {
            self.estimate.add(block);
        }
        self.blocks += 1;
    }

    /// Whether this is how gaps of a chunk of `cells` cells are written.
    pub(in crate::location) fn is_best(&self, cells: u64) -> bool {
        // Gaps of which none has another bit, and that add up to as many times all bits.
        let constant = self.sum == u64::from(self.union) * self.count as u64;
        if constant {
            return false;
        }
        match self.aim {
            Aim::Fast => !(bytes_pay(cells, self.count, self.large) && self.union >> 16 == 0),
            Aim::Short => self.estimate.bits(self.count) >= 8 * self.packer.len() as u64 / 10 * 9,
        }
    }

    /// Sums and counts.
    pub(in crate::location) fn totals(&self) -> Totals {
        Totals { count: self.count as u64, sum: self.sum, zeros: self.zeros }
    }

    /// How many there are.
    pub(in crate::location) fn count(&self) -> usize {
        self.count
    }

    /// Bytes of the stream, about.
    pub(in crate::location) fn len(&self) -> usize {
        16 + self.packer.len()
    }

    /// Appends the stream.
    #[inline(always)]
    pub(in crate::location) fn put_stream(&self, out: &mut Vec<u8>) {
        out.push(PACKED);
        self.packer.put(out);
    }
}
