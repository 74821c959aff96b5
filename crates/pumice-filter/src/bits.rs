//! Streams of bits, most significant first, as nbit, scaleoffset and szip have them.

use crate::{FilterError, scratch};

/// Appends bits to bytes.
pub(crate) struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Bits that do not fill a byte yet, in the low end.
    pending: u64,
    count: u32,
}

impl<'a> BitWriter<'a> {
    pub(crate) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, pending: 0, count: 0 }
    }

    /// Makes room for `bytes` more, or fails; a plain allocation would end the program.
    pub(crate) fn reserve(
        &mut self,
        filter: &'static str,
        bytes: usize,
    ) -> Result<(), FilterError> {
        scratch::reserve(filter, self.out, bytes)
    }

    /// Appends the low `bits` bits of `value`, at most 64.
    #[inline]
    pub(crate) fn put(&mut self, value: u64, bits: u32) {
        if bits > 32 {
            self.put_few(value >> 32, bits - 32);
            return self.put_few(value, 32);
        }
        self.put_few(value, bits);
    }

    #[inline]
    fn put_few(&mut self, value: u64, bits: u32) {
        // At most 7 pending bits and 32 new ones.
        self.pending = self.pending << bits | value & ((1 << bits) - 1);
        self.count += bits;
        while self.count >= 8 {
            self.count -= 8;
            self.out.push((self.pending >> self.count) as u8);
        }
    }

    /// Appends `zeros` zeros and a one.
    #[inline]
    pub(crate) fn put_unary(&mut self, zeros: u64) {
        let mut left = zeros;
        while left >= 32 {
            self.put_few(0, 32);
            left -= 32;
        }
        self.put(1, left as u32 + 1);
    }

    /// Fills the last byte with zeros. Gives how many bits it had.
    pub(crate) fn finish(mut self) -> u32 {
        let used = self.count;
        if used > 0 {
            self.put_few(0, 8 - used);
        }
        used
    }
}

/// Takes bits from bytes.
#[derive(Clone)]
pub(crate) struct BitReader<'a> {
    bytes: &'a [u8],
    /// The next byte to load.
    at: usize,
    /// Loaded bits, in the low end.
    loaded: u64,
    count: u32,
}

impl<'a> BitReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, loaded: 0, count: 0 }
    }

    /// The next `bits` bits, at most 64; `None` if there are fewer.
    #[inline]
    pub(crate) fn take(&mut self, bits: u32) -> Option<u64> {
        if bits > 32 {
            let high = self.take_few(bits - 32)?;
            return Some(high << 32 | self.take_few(32)?);
        }
        self.take_few(bits)
    }

    #[inline]
    fn take_few(&mut self, bits: u32) -> Option<u64> {
        if self.count < bits {
            self.load();
            if self.count < bits {
                return None;
            }
        }
        self.count -= bits;
        Some(self.loaded >> self.count & ((1 << bits) - 1))
    }

    /// The number of zeros before the next one, which is taken, too. `None` if there is no one, or
    /// if there are more than `most` zeros.
    #[inline]
    pub(crate) fn take_unary(&mut self, most: u64) -> Option<u64> {
        let mut zeros = 0;
        loop {
            let bits = self.loaded & ((1u64 << self.count) - 1);
            if bits != 0 {
                let leading = bits.leading_zeros() - (64 - self.count);
                self.count -= leading + 1;
                zeros += u64::from(leading);
                return (zeros <= most).then_some(zeros);
            }
            zeros += u64::from(self.count);
            self.count = 0;
            if zeros > most {
                return None;
            }
            self.load();
            if self.count == 0 {
                return None;
            }
        }
    }

    /// Loads bytes until there are 56 bits or more, or the input ends.
    #[inline]
    fn load(&mut self) {
        if let Some(four) = self.bytes.get(self.at..self.at + 4)
            && self.count < 32
        {
            let word = u32::from_be_bytes([four[0], four[1], four[2], four[3]]);
            // The top bit stays free, so that `1 << count` never overflows.
            if self.count < 31 {
                self.loaded = self.loaded << 32 | u64::from(word);
                self.count += 32;
                self.at += 4;
                return;
            }
        }
        while self.count < 48 {
            let Some(&byte) = self.bytes.get(self.at) else { return };
            self.loaded = self.loaded << 8 | u64::from(byte);
            self.count += 8;
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn what_was_put_is_taken(
            items in prop::collection::vec((any::<bool>(), any::<u64>(), 0u32..65), 0..60),
        ) {
            let mut bytes = Vec::new();
            let mut writer = BitWriter::new(&mut bytes);
            let low = |value: u64, bits: u32| if bits == 64 { value } else { value & ((1 << bits) - 1) };
            for &(unary, value, bits) in &items {
                if unary { writer.put_unary(value % 150) } else { writer.put(value, bits) }
            }
            let used = writer.finish();
            let total: u64 = items
                .iter()
                .map(|&(unary, value, bits)| if unary { value % 150 + 1 } else { u64::from(bits) })
                .sum();
            prop_assert_eq!(used, (total % 8) as u32);
            prop_assert_eq!(bytes.len() as u64, total.div_ceil(8));
            let mut reader = BitReader::new(&bytes);
            for &(unary, value, bits) in &items {
                if unary {
                    prop_assert_eq!(reader.clone().take_unary((value % 150).wrapping_sub(1)),
                        if value % 150 == 0 { Some(0) } else { None });
                    prop_assert_eq!(reader.take_unary(150), Some(value % 150));
                } else {
                    prop_assert_eq!(reader.take(bits), Some(low(value, bits)));
                }
            }
            prop_assert_eq!(reader.take(8), None);
            prop_assert_eq!(reader.take_unary(1000), None);
        }
    }
}
