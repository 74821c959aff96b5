//! An estimate, without a compressor, of whether searching for repetitions may pay.
//!
//! Compressing a sample twice, with repetitions and without, tells more, but a sample is short, and tables of codes
//! are made for it as for many bytes: four samples of a kilobyte took as long as 64 KB that they are taken
//! from. Most data that a sample is taken of, the bytes of measured numbers, repeats by chance only.
//! That is seen here, and only what promises more is tried.

/// A position in a sample is a number of this many bits at most.
const POSITION_BITS: u32 = 16;

/// Places of phrases, by their hash.
const TABLE_BITS: u32 = 10;

/// Bits are counted in parts of this many to one.
const FINE: u64 = 1 << 8;

/// The bits of a repetition beside its distance, and a little more: only phrases that take as many
/// without one are searched for. In noise, hardly any of these repeat.
const PRICE: u64 = 12 * FINE;

/// Bytes of a phrase.
const PHRASE: (u64, u64) = (4, 16);

/// The least number of bytes whose frequencies are meaningful.
const LEAST_SAMPLE: usize = 256;

/// Repetitions that make a sample shorter by less than one in so many are not worth a try. The try itself
/// asks for one in 64.
const LEAST_SHARE: u64 = 128;

/// The estimate from samples.
#[derive(Debug, Default)]
pub(super) struct Promise {
    /// The bits that repetitions would save, and the length of all samples without them, in
    /// fractions of bits.
    saved: u64,
    all: u64,
}

impl Promise {
    /// Adds a sample; returns the bits of one of its bytes with a code of its own.
    pub(super) fn add(&mut self, sample: &[u8]) -> f64 {
        if sample.len() >> POSITION_BITS != 0 {
            self.saved = u64::MAX;
            return 8.0;
        }
        let literals = literal_bits(sample);
        self.all += literals;
        if sample.len() < LEAST_SAMPLE {
            self.saved = u64::MAX;
            return in_bits(literals, sample.len());
        }
        self.saved = self.saved.saturating_add(saved_bits(sample, literals / sample.len() as u64));
        in_bits(literals, sample.len())
    }

    /// Whether it is worth trying.
    pub(super) fn is_good(&self) -> bool {
        self.saved > self.all / LEAST_SHARE
    }
}

/// The bits that each of `bytes` takes.
fn in_bits(fine: u64, bytes: usize) -> f64 {
    fine as f64 / FINE as f64 / bytes.max(1) as f64
}

/// The bits of bytes with a code of their own: at least one each, unless all are equal.
fn literal_bits(sample: &[u8]) -> u64 {
    // Consecutive bytes are often equal: two counters avoid waiting for the store before.
    let mut counts = [[0u16; 256]; 2];
    let (pairs, rest) = sample.as_chunks::<2>();
    for [even, odd] in pairs {
        counts[0][usize::from(*even)] += 1;
        counts[1][usize::from(*odd)] += 1;
    }
    rest.iter().for_each(|byte| counts[0][usize::from(*byte)] += 1);
    let of_byte = counts[0].iter().zip(&counts[1]).map(|(even, odd)| u64::from(even + odd));
    let saved: u64 = of_byte.map(|count| count * logarithm(count.max(1))).sum();
    let len = sample.len() as u64;
    match (len * logarithm(len.max(1))).saturating_sub(saved) {
        0 => 0,
        bits => bits.max(len * FINE),
    }
}

/// The logarithm to base 2, nearly; of a number above 0.
fn logarithm(number: u64) -> u64 {
    let whole = u64::from(number.ilog2());
    // Between powers of two on a straight line.
    whole * FINE + ((number * FINE) >> whole) - FINE
}

/// About the bits that repetitions save if a byte takes `each`: that much for each phrase that
/// occurred before, as one repetition covers many of them.
fn saved_bits(sample: &[u8], each: u64) -> u64 {
    let (least, most) = PHRASE;
    let price = PRICE + logarithm(sample.len().max(1) as u64);
    let length = price.checked_div(each).unwrap_or(most).clamp(least, most) as usize;
    // Words of eight bytes: of a shorter phrase, the first bytes of one; of a longer one, its first and its last.
    let bits = u64::MAX >> (64 - 8 * length.min(8));
    let word = |at: usize| {
        let bytes = sample.get(at..).and_then(|rest| rest.first_chunk::<8>());
        bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes)) & bits
    };
    let mut table = [0u16; 1 << TABLE_BITS];
    let (last, end) = (length.max(8) - 8, sample.len().saturating_sub(most as usize));
    let mut found = 0;
    for at in 0..end {
        let (first, second) = (word(at), word(at + last));
        let mixed = (first ^ second.rotate_left(29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let slot = &mut table[(mixed >> (64 - TABLE_BITS)) as usize];
        let before = usize::from(std::mem::replace(slot, at as u16));
        // The first place of all is in the table before anything was seen.
        let same = before < at && word(before) == first && word(before + last) == second;
        found += u64::from(same);
    }
    found * each
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promises(sample: &[u8]) -> bool {
        let mut promise = Promise::default();
        promise.add(sample);
        promise.is_good()
    }

    /// Bytes without pattern; each bit of the mask is one in a quarter of them.
    fn noise(count: usize, mask: u32) -> Vec<u8> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as u32
        };
        (0..count).map(|_| (next() & next() & mask) as u8).collect()
    }

    #[test]
    fn noise_promises_nothing() {
        for mask in [0, 7, 0x1F, 0xFF] {
            for count in [300, 1024, 4096] {
                assert!(!promises(&noise(count, mask)), "{count} byte(s) of {mask:#x}");
            }
        }
    }

    #[test]
    fn repetition_promises_much_and_short_samples_are_tried() {
        let phrase = noise(100, 0xFF);
        let repeated: Vec<u8> = phrase.iter().copied().cycle().take(1024).collect();
        assert!(promises(&repeated));
        assert!(promises(
            b"the quick brown fox; the lazy dog; the quick brown dog; ".repeat(9).as_slice()
        ));
        assert!(promises(&(0..1024).map(|at| at as u8).collect::<Vec<_>>()));
        assert!(promises(&noise(LEAST_SAMPLE - 1, 0xFF)));
        // Mostly the same byte, for which a code has a whole bit.
        let mut rare = vec![0; 1024];
        (0..10).for_each(|at| rare[at * at * 10] = 1);
        assert!(promises(&rare));
        // A few phrases among noise.
        let mut mixed = noise(1024, 0xFF);
        (0..10).for_each(|at| mixed.copy_within(0..16, 50 + at * 90));
        assert!(promises(&mixed));
    }

    #[test]
    fn bits_of_bytes_are_near_their_entropy() {
        let bits = |sample: &[u8]| literal_bits(sample) as f64 / FINE as f64 / sample.len() as f64;
        assert!(bits(&[7; 1000]) < 0.01);
        assert!((bits(&[1, 2, 3, 4].repeat(256)) - 2.0).abs() < 0.1);
        // One in four, eight times: 0.811 bits each.
        assert!((bits(&noise(4096, 0xFF)) - 8.0 * 0.811).abs() < 0.3);
    }
}
