//! The codes of one line of samples: prediction, and for every block the shortest of five codes.
//!
//! With prediction, a line begins with a reference sample; every other sample is the distance from
//! the one before it, folded into the numbers from zero on, so that small distances of either sign
//! are small numbers.
//!
//! A block is an identifier and its samples:
//!
//! | identifier | samples |
//! |---|---|
//! | all zeros, then 0 | a run of blocks of zeros: its length in unary |
//! | all zeros, then 1 | pairs of samples as one number each, in unary ("second extension") |
//! | k + 1 | of each sample what is above k bits in unary; then of each its k low bits |
//! | all ones | samples as they are |
//!
//! The reference sample stands behind the identifier of the first block of a line.

use crate::bits::{BitReader, BitWriter};

/// In runs of zeros, blocks are counted in groups of this many.
const SEGMENT: usize = 64;
/// The unary code of a run up to the end of its segment; longer lengths are shifted by one.
const REST_OF_SEGMENT: u64 = 4;
/// The largest number that stands for a pair of samples.
const MOST_PAIR: u64 = 90;

/// The form of samples and codes.
#[derive(Clone, Copy)]
struct Shape {
    bits: u32,
    block: usize,
    neighbour: bool,
    /// Bits of an identifier.
    id_bits: u32,
    /// The largest sample.
    most: u32,
}

impl Shape {
    fn new(bits: u32, block: usize, neighbour: bool) -> Self {
        let id_bits = match bits {
            0..=8 => 3,
            9..=16 => 4,
            _ => 5,
        };
        Self { bits, block, neighbour, id_bits, most: u32::MAX >> (32 - bits) }
    }

    fn raw_id(&self) -> u64 {
        (1 << self.id_bits) - 1
    }

    /// The largest number of low bits that an identifier can name.
    fn most_low_bits(&self) -> u32 {
        (1 << self.id_bits) - 3
    }

    /// Blocks from number `at` to the end of their segment, in a line of `blocks` blocks.
    fn rest_of_segment(&self, at: usize, blocks: usize) -> usize {
        (blocks - at).min(SEGMENT - at % SEGMENT)
    }
}

/// Encodes lines.
pub(super) struct Coder {
    shape: Shape,
    /// The number of low bits of the last block that had some: a good first guess.
    low_bits: u32,
}

impl Coder {
    pub(super) fn new(bits: u32, block: usize, neighbour: bool) -> Self {
        Self { shape: Shape::new(bits, block, neighbour), low_bits: 0 }
    }

    /// Encodes a line of whole blocks, which is used up.
    pub(super) fn encode(&mut self, line: &mut [u32], writer: &mut BitWriter<'_>) {
        let shape = self.shape;
        let mut reference = shape.neighbour.then(|| fold(line, shape.most));
        let (blocks, mut at) = (line.len() / shape.block, 0);
        while at < blocks {
            let block = &line[at * shape.block..(at + 1) * shape.block];
            let taken = reference.take();
            if block.iter().any(|&sample| sample != 0) {
                self.encode_block(block, taken, writer);
                at += 1;
                continue;
            }
            let most = shape.rest_of_segment(at, blocks);
            let zeros = line[at * shape.block..(at + most) * shape.block].chunks(shape.block);
            let run = zeros.take_while(|block| block.iter().all(|&sample| sample == 0)).count();
            writer.put(0, shape.id_bits + 1);
            put_reference(taken, shape.bits, writer);
            writer.put_unary(match run as u64 {
                long if long > 4 && run == most => REST_OF_SEGMENT,
                long if long > 4 => long,
                short => short - 1,
            });
            at += run;
        }
    }

    /// Encodes a block by the shortest code. With a reference sample, the first of the block is zero
    /// and stands for it.
    fn encode_block(&mut self, block: &[u32], reference: Option<u32>, writer: &mut BitWriter<'_>) {
        let shape = self.shape;
        let coded = &block[usize::from(reference.is_some())..];
        let (low_bits, split) = self.best_split(coded);
        let reference_bits = reference.map_or(0, |_| u64::from(shape.bits));
        let raw = block.len() as u64 * u64::from(shape.bits);
        let pairs = pair_bits(block).map_or(u64::MAX, |bits| bits + 1 + reference_bits);
        if pairs < raw.min(split + reference_bits) {
            writer.put(1, shape.id_bits + 1);
            put_reference(reference, shape.bits, writer);
            block.as_chunks::<2>().0.iter().for_each(|&pair| writer.put_unary(pair_number(pair)));
        } else if split + reference_bits < raw {
            self.low_bits = low_bits;
            writer.put(u64::from(low_bits) + 1, shape.id_bits);
            put_reference(reference, shape.bits, writer);
            coded.iter().for_each(|&sample| writer.put_unary(u64::from(sample >> low_bits)));
            coded.iter().for_each(|&sample| writer.put(u64::from(sample), low_bits));
        } else {
            writer.put(shape.raw_id(), shape.id_bits);
            put_reference(reference, shape.bits, writer);
            coded.iter().for_each(|&sample| writer.put(u64::from(sample), shape.bits));
        }
    }

    /// The number of low bits with the shortest code, and its bits.
    fn best_split(&self, coded: &[u32]) -> (u32, u64) {
        let bits = |low: u32| {
            let high: u64 = coded.iter().map(|&sample| u64::from(sample >> low)).sum();
            high + coded.len() as u64 * u64::from(low + 1)
        };
        let most = self.shape.most_low_bits().min(self.shape.bits - 1);
        let mut best = (self.low_bits.min(most), bits(self.low_bits.min(most)));
        while best.0 < most && bits(best.0 + 1) < best.1 {
            best = (best.0 + 1, bits(best.0 + 1));
        }
        while best.0 > 0 && bits(best.0 - 1) < best.1 {
            best = (best.0 - 1, bits(best.0 - 1));
        }
        best
    }
}

fn put_reference(reference: Option<u32>, bits: u32, writer: &mut BitWriter<'_>) {
    if let Some(sample) = reference {
        writer.put(u64::from(sample), bits);
    }
}

/// Bits of a block as pairs; `None` if a pair has no code.
fn pair_bits(block: &[u32]) -> Option<u64> {
    block.as_chunks::<2>().0.iter().try_fold(0, |bits, pair| {
        let small = u64::from(pair[0]) + u64::from(pair[1]) <= 12;
        small.then(|| bits + pair_number(*pair) + 1)
    })
}

fn pair_number([first, second]: [u32; 2]) -> u64 {
    let sum = u64::from(first) + u64::from(second);
    sum * (sum + 1) / 2 + u64::from(second)
}

/// The pair that a number stands for.
fn pair_of(number: u64) -> [u32; 2] {
    let mut sum = 0;
    while (sum + 1) * (sum + 2) / 2 <= number {
        sum += 1;
    }
    let second = number - sum * (sum + 1) / 2;
    [(sum - second) as u32, second as u32]
}

/// Replaces samples by folded distances, the first by zero; gives the first.
fn fold(line: &mut [u32], most: u32) -> u32 {
    let mut before = line[0];
    let reference = before;
    for sample in line.iter_mut() {
        let now = *sample;
        // As far as both signs are possible, they take turns; beyond, only one is.
        let room = before.min(most - before);
        let distance = now.abs_diff(before);
        *sample = if distance > room {
            room + distance
        } else if now >= before {
            2 * distance
        } else {
            2 * distance - 1
        };
        before = now;
    }
    reference
}

/// Undoes [`fold`], except that the first sample is in its place.
fn unfold(line: &mut [u32], most: u32) {
    let Some((first, rest)) = line.split_first_mut() else { return };
    let mut before = *first;
    for sample in rest {
        let folded = *sample;
        let room = before.min(most - before);
        let distance = folded.div_ceil(2);
        before = if distance <= room {
            if folded % 2 == 0 { before + distance } else { before - distance }
        } else if before <= most / 2 {
            folded.min(most)
        } else {
            most - folded.min(most)
        };
        *sample = before;
    }
}

/// Decodes lines.
pub(super) struct Decoder {
    shape: Shape,
}

impl Decoder {
    pub(super) fn new(bits: u32, block: usize, neighbour: bool) -> Self {
        Self { shape: Shape::new(bits, block, neighbour) }
    }

    /// Decodes at least the first `needed` samples of a line of whole blocks; `None` if the bits
    /// are no codes.
    pub(super) fn decode(
        &mut self,
        reader: &mut BitReader<'_>,
        line: &mut [u32],
        needed: usize,
    ) -> Option<()> {
        let shape = self.shape;
        let (blocks, mut at) = (line.len() / shape.block, 0);
        while at * shape.block < needed {
            let reference = shape.neighbour && at == 0;
            at +=
                self.decode_block(reader, &mut line[at * shape.block..], at, blocks, reference)?;
        }
        if shape.neighbour {
            unfold(&mut line[..needed], shape.most);
        }
        Some(())
    }

    /// Decodes the block number `at`, or a run of them; gives how many.
    fn decode_block(
        &self,
        reader: &mut BitReader<'_>,
        line: &mut [u32],
        at: usize,
        blocks: usize,
        reference: bool,
    ) -> Option<usize> {
        let shape = self.shape;
        let id = reader.take(shape.id_bits)?;
        let pairs = id == 0 && reader.take(1)? == 1;
        let first = if reference { Some(reader.take(shape.bits)? as u32) } else { None };
        let start = usize::from(reference);
        let mut run = 1;
        if id == shape.raw_id() {
            for sample in &mut line[start..shape.block] {
                *sample = reader.take(shape.bits)? as u32;
            }
        } else if id > 0 {
            self.decode_split(reader, &mut line[start..shape.block], id as u32 - 1)?;
        } else if pairs {
            for pair in line[..shape.block].as_chunks_mut::<2>().0 {
                *pair = pair_of(reader.take_unary(MOST_PAIR)?);
            }
        } else {
            run = match reader.take_unary(SEGMENT as u64)? {
                REST_OF_SEGMENT => shape.rest_of_segment(at, blocks),
                long if long > REST_OF_SEGMENT => long as usize,
                short => short as usize + 1,
            };
            line.get_mut(..run * shape.block)?.fill(0);
        }
        if let Some(first) = first {
            line[0] = first;
        }
        Some(run)
    }

    fn decode_split(
        &self,
        reader: &mut BitReader<'_>,
        samples: &mut [u32],
        low_bits: u32,
    ) -> Option<()> {
        let most = u64::from(self.shape.most.checked_shr(low_bits).unwrap_or(0));
        for sample in samples.iter_mut() {
            *sample = reader.take_unary(most)? as u32;
        }
        if low_bits > 0 {
            for sample in samples {
                *sample = *sample << low_bits | reader.take(low_bits)? as u32;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn lines_come_back(
            bits in 1u32..25,
            block in 1usize..33,
            neighbour in any::<bool>(),
            pieces in prop::collection::vec((any::<u32>(), 0u32..25, 1usize..90), 1..8),
        ) {
            let (most, block) = (u32::MAX >> (32 - bits), block * 2);
            let mut line = Vec::new();
            for (seed, width, count) in pieces {
                let noise = (0..count as u32).map(|n| (seed ^ n).wrapping_mul(0x9E37_79B1) >> 7);
                line.extend(noise.map(|noise| (noise & ((1 << width) - 1)).min(most)));
            }
            line.resize(line.len().next_multiple_of(block), 0);
            let mut bytes = Vec::new();
            let mut writer = BitWriter::new(&mut bytes);
            let mut coder = Coder::new(bits, block, neighbour);
            coder.encode(&mut line.clone(), &mut writer);
            coder.encode(&mut line.clone(), &mut writer);
            writer.finish();
            let mut reader = BitReader::new(&bytes);
            let mut decoder = Decoder::new(bits, block, neighbour);
            for _ in 0..2 {
                let mut found = vec![7; line.len()];
                prop_assert!(decoder.decode(&mut reader, &mut found, line.len()).is_some());
                prop_assert_eq!(&found, &line);
            }
        }
    }

    #[test]
    fn distances_of_either_sign_take_turns_as_far_as_there_is_room() {
        let mut line = [3, 4, 2, 0, 9, 15, 0];
        assert_eq!(fold(&mut line, 15), 3);
        assert_eq!(line, [0, 2, 3, 3, 9, 12, 15]);
        line[0] = 3;
        unfold(&mut line, 15);
        assert_eq!(line, [3, 4, 2, 0, 9, 15, 0]);
    }

    #[test]
    fn every_pair_has_a_number_of_its_own() {
        let pairs: Vec<_> = (0..=MOST_PAIR).map(pair_of).collect();
        assert!(pairs.iter().enumerate().all(|(at, &pair)| pair_number(pair) == at as u64));
        assert_eq!(pairs[..4], [[0, 0], [1, 0], [0, 1], [2, 0]]);
    }
}
