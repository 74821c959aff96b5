//! Gaps as they come, block by block, where nobody has them all in memory: packed, or as bytes.

use super::bytes::{ByteList, Estimate};
use super::packed::Packer;
use super::{BYTES, PACKED, bytes_pay};
use crate::location::Aim;

/// One block in so many is looked at for a pattern.
const SAMPLED: usize = 16;

/// Gaps between cells, in the form in which they will be stored.
#[derive(Clone, Debug)]
pub(in crate::location) struct Gaps {
    aim: Aim,
    form: Form,
    /// What they would take as bytes, compressed.
    estimate: Estimate,
    blocks: usize,
    /// All bits that any of them has, and how many do not fit a byte.
    union: u32,
    large: usize,
    count: usize,
    /// The sum of all, and how many are zero.
    pub(in crate::location) sum: u64,
    pub(in crate::location) zeros: u64,
}

#[derive(Clone, Debug)]
enum Form {
    Packed(Packer),
    Bytes(ByteList),
}

impl Gaps {
    /// With room for about `room` of them.
    pub(in crate::location) fn new(room: usize, aim: Aim) -> Self {
        let form = match aim {
            Aim::Short => Form::Packed(Packer::new(room)),
            Aim::Fast => Form::Bytes(ByteList::new(room)),
        };
        let (estimate, blocks) = (Estimate::default(), 0);
        Self { aim, form, estimate, blocks, union: 0, large: 0, count: 0, sum: 0, zeros: 0 }
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
        let large = block.iter().map(|gap| u32::from(*gap >= 255)).sum::<u32>() as usize;
        // The first block tells what all are like; whether that was right is seen in the end.
        if let Form::Bytes(list) = &self.form
            && self.count == 0
            && !bytes_pay(self.sum + block.len() as u64, block.len(), large)
        {
            self.form = Form::Packed(Packer::new(list.room()));
        }
        self.count += block.len();
        self.large += large;
        match &mut self.form {
            Form::Packed(packer) => packer.block(block),
            Form::Bytes(list) => list.block(block),
        }
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
        let as_bytes = bytes_pay(cells, self.count, self.large) && self.union >> 16 == 0;
        match (&self.form, self.aim) {
            (Form::Bytes(_), _) => as_bytes,
            (Form::Packed(_), Aim::Fast) => !as_bytes,
            (Form::Packed(packer), Aim::Short) => {
                self.estimate.bits(self.count) >= 8 * packer.len() as u64 / 10 * 9
            }
        }
    }

    /// How many there are.
    pub(in crate::location) fn count(&self) -> usize {
        self.count
    }

    /// Bytes of the stream, about.
    pub(in crate::location) fn len(&self) -> usize {
        16 + match &self.form {
            Form::Packed(packer) => packer.len(),
            Form::Bytes(list) => list.len(),
        }
    }

    /// Appends the stream.
    pub(in crate::location) fn put(&self, out: &mut Vec<u8>) {
        match &self.form {
            Form::Packed(packer) => {
                out.push(PACKED);
                packer.put(out);
            }
            Form::Bytes(list) => {
                out.push(BYTES);
                list.put(out);
            }
        }
    }
}
