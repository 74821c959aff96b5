//! Damaged files, made of good ones by a fixed recipe: bytes flipped, ends cut off, parts of one
//! file put into another.

/// The recipe of one damaged file.
pub struct Damage {
    state: u64,
}

impl Damage {
    /// The recipe of a number; equal seeds and numbers make equal files.
    pub fn new(seed: u64, number: u64) -> Self {
        let mut damage = Self { state: seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15) };
        damage.next();
        damage
    }

    /// A damaged file, and a description of the damage.
    pub fn apply(mut self, originals: &[Vec<u8>]) -> (String, Vec<u8>) {
        let which = self.below(originals.len());
        let mut bytes = originals[which].clone();
        let what = match self.below(10) {
            0..=3 => self.flip(&mut bytes),
            4 => self.overwrite_number(&mut bytes),
            5 | 6 => {
                let length = self.below(bytes.len() + 1);
                bytes.truncate(length);
                format!("cut at {length}")
            }
            _ => {
                let other = self.below(originals.len());
                let text = self.splice(&mut bytes, &originals[other]);
                format!("{text} of file {other}")
            }
        };
        (format!("file {which}, {what}"), bytes)
    }

    /// Flips bits of some bytes, most of them near the beginning, in metadata.
    fn flip(&mut self, bytes: &mut [u8]) -> String {
        let count = 1 + self.below(16);
        for _ in 0..count {
            let at = self.place(bytes.len());
            let bit = self.below(8);
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << bit;
            }
        }
        format!("{count} bit(s) flipped")
    }

    /// Puts a telling number where some field may be.
    fn overwrite_number(&mut self, bytes: &mut [u8]) -> String {
        let at = self.place(bytes.len());
        let numbers = [0, 1, 0x7F, 0xFF, 0xFFFF, 0x7FFF_FFFF, u64::MAX / 2, u64::MAX];
        let number = numbers[self.below(numbers.len())];
        let width = [1, 2, 4, 8][self.below(4)];
        for (to, from) in bytes.iter_mut().skip(at).zip(&number.to_le_bytes()[..width]) {
            *to = *from;
        }
        format!("{number:#x} at {at}")
    }

    fn splice(&mut self, bytes: &mut [u8], other: &[u8]) -> String {
        let length = 1 + self.below(4096.min(other.len()).max(1));
        let from = self.place(other.len());
        let to = self.place(bytes.len());
        let piece = other.iter().skip(from).take(length);
        bytes.iter_mut().skip(to).zip(piece).for_each(|(to, from)| *to = *from);
        format!("{length} byte(s) at {to} replaced by those at {from}")
    }

    fn place(&mut self, length: usize) -> usize {
        match self.below(3) {
            0 => self.below(length),
            1 => self.below(length.min(4096)),
            _ => self.below(length.min(512)),
        }
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % (limit.max(1) as u64)) as usize
    }

    /// SplitMix64.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.state ^ self.state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }
}
