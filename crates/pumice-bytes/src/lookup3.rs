//! Bob Jenkins' lookup3 hash (`hashlittle` with an initial value of zero): the checksum of all
//! HDF5 metadata and of the metadata sections of structured chunks.

/// The checksum of `bytes`.
///
/// ```
/// assert_eq!(pumice_bytes::lookup3(b"Four score and seven years ago"), 0x1777_0551);
/// ```
pub fn lookup3(bytes: &[u8]) -> u32 {
    Lookup3::new(bytes).finish()
}

/// The checksums of several parts. Each step of one waits for the step before, so three parts of
/// the same length take hardly longer than one.
///
/// ```
/// use pumice_bytes::{lookup3, lookup3_each};
///
/// let parts = [&b"Four score"[..], b"and seven years", b"ago"];
/// assert_eq!(lookup3_each(parts), parts.map(lookup3));
/// ```
pub fn lookup3_each<const N: usize>(parts: [&[u8]; N]) -> [u32; N] {
    let mut all = parts.map(Lookup3::new);
    let steps = all.iter().map(|one| one.blocks.len()).min().unwrap_or(0);
    let mut states = all.each_ref().map(|one| one.state);
    for step in 0..steps {
        for (state, one) in states.iter_mut().zip(&all) {
            if let Some(block) = one.blocks.get(step) {
                add(state, block);
                mix(state);
            }
        }
    }
    for (one, state) in all.iter_mut().zip(states) {
        one.state = state;
        one.blocks = one.blocks.get(steps..).unwrap_or_default();
    }
    all.map(Lookup3::finish)
}

/// The checksum of some bytes, computed step by step.
///
/// Each step waits for the one before, so the processor is mostly idle. A caller who goes through
/// the bytes anyway can take a step now and then at next to no cost.
///
/// ```
/// use pumice_bytes::{Lookup3, lookup3};
///
/// let bytes = b"Four score and seven years ago";
/// let mut checksum = Lookup3::new(bytes);
/// checksum.step();
/// assert_eq!(checksum.finish(), lookup3(bytes));
/// ```
#[derive(Clone, Debug)]
pub struct Lookup3<'a> {
    state: [u32; 3],
    blocks: &'a [[u8; 12]],
    tail: &'a [u8],
}

impl<'a> Lookup3<'a> {
    /// The checksum of `bytes`, none of which has been looked at yet.
    pub fn new(bytes: &'a [u8]) -> Self {
        // The last block, even a full one, is mixed in another way, so it is kept apart.
        let whole = bytes.len().saturating_sub(1) / 12 * 12;
        let (head, tail) = bytes.split_at(whole);
        Self { state: [start(bytes.len()); 3], blocks: head.as_chunks().0, tail }
    }

    /// A checksum that begins with a number other than zero, as hashes of shared messages do.
    pub fn seeded(bytes: &'a [u8], seed: u32) -> Self {
        let mut hash = Self::new(bytes);
        hash.state = hash.state.map(|word| word.wrapping_add(seed));
        hash
    }

    /// Takes a few bytes more, if there are any.
    #[inline(always)]
    pub fn step(&mut self) {
        if let Some((block, rest)) = self.blocks.split_first() {
            self.blocks = rest;
            add(&mut self.state, block);
            mix(&mut self.state);
        }
    }

    /// Takes the rest; gives the checksum.
    pub fn finish(self) -> u32 {
        let Self { mut state, blocks, tail } = self;
        for block in blocks {
            add(&mut state, block);
            mix(&mut state);
        }
        if tail.is_empty() {
            return state[0];
        }
        let mut padded = [0; 12];
        for (to, from) in padded.iter_mut().zip(tail) {
            *to = *from;
        }
        add(&mut state, &padded);
        finish(state)
    }

    /// Appends `bytes` to `out` and takes the first steps of their checksum. `more` bytes, at least
    /// one, will be appended behind them; [`Begun::finish`] takes the other steps.
    ///
    /// ```
    /// use pumice_bytes::{Lookup3, lookup3};
    ///
    /// let mut out = b"before".to_vec();
    /// let begun = Lookup3::append(b"Four score and seven ", 9, &mut out);
    /// out.extend(b"years ago");
    /// assert_eq!(begun.finish(&out), lookup3(b"Four score and seven years ago"));
    /// ```
    pub fn append(bytes: &[u8], more: usize, out: &mut Vec<u8>) -> Begun {
        // Copied by blocks of blocks: the processor does that while a step waits for the one before.
        const TOGETHER: usize = 8;
        let mut state = [start(bytes.len() + more); 3];
        let from = out.len();
        out.reserve(bytes.len() + more);
        let (large, rest) = bytes.as_chunks::<{ 12 * TOGETHER }>();
        for large in large {
            out.extend_from_slice(large);
            for block in large.as_chunks().0 {
                add(&mut state, block);
                mix(&mut state);
            }
        }
        out.extend_from_slice(rest);
        Begun { state, next: from + bytes.len() - rest.len() }
    }
}

/// A checksum whose first steps [`Lookup3::append`] has taken.
#[derive(Clone, Debug)]
pub struct Begun {
    state: [u32; 3],
    /// The position of the next step.
    next: usize,
}

impl Begun {
    /// Takes the rest, up to the end of `out`; gives the checksum.
    pub fn finish(self, out: &[u8]) -> u32 {
        let rest = Lookup3::new(out.get(self.next..).unwrap_or_default());
        Lookup3 { state: self.state, ..rest }.finish()
    }
}

/// The start value, which has the length folded in; HDF5's seed is zero.
fn start(len: usize) -> u32 {
    0xDEAD_BEEFu32.wrapping_add(len as u32)
}

#[inline(always)]
fn add(state: &mut [u32; 3], block: &[u8; 12]) {
    for (word, bytes) in state.iter_mut().zip(block.as_chunks().0) {
        *word = word.wrapping_add(u32::from_le_bytes(*bytes));
    }
}

#[inline(always)]
fn mix(state: &mut [u32; 3]) {
    let [mut a, mut b, mut c] = *state;
    a = a.wrapping_sub(c) ^ c.rotate_left(4);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(6);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(8);
    b = b.wrapping_add(a);
    a = a.wrapping_sub(c) ^ c.rotate_left(16);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(19);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(4);
    b = b.wrapping_add(a);
    *state = [a, b, c];
}

fn finish([mut a, mut b, mut c]: [u32; 3]) -> u32 {
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

#[cfg(test)]
mod tests {
    use super::{lookup3, lookup3_each};

    #[test]
    fn parts_of_different_lengths_have_the_checksums_that_they_have_alone() {
        let bytes: Vec<u8> = (0..200u8).collect();
        for len in 0..100 {
            let parts = [&bytes[..len], &bytes[len..2 * len], &bytes[30..150]];
            assert_eq!(lookup3_each(parts), parts.map(lookup3));
        }
        assert_eq!(lookup3_each([]), []);
    }

    #[test]
    fn published_vectors() {
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
        let seeded = super::Lookup3::seeded(b"Four score and seven years ago", 1);
        assert_eq!(seeded.finish(), 0xcd62_8161);
    }

    #[test]
    fn a_checksum_taken_while_bytes_are_copied_is_that_of_all() {
        let bytes: Vec<u8> = (0..1000u32).map(|at| (at * at % 251) as u8).collect();
        for (len, more) in (0..300).step_by(7).flat_map(|len| [(len, 1), (len, 11), (len, 300)]) {
            let mut out = vec![9; 5];
            let begun = super::Lookup3::append(&bytes[..len], more, &mut out);
            out.extend_from_slice(&bytes[len..len + more]);
            assert_eq!(out[5..], bytes[..len + more]);
            assert_eq!(begun.finish(&out), lookup3(&bytes[..len + more]), "{len} and {more}");
        }
    }

    #[test]
    fn a_fully_defined_chunk_of_ten_has_the_documented_checksum() {
        // docs/format: the 39-byte encoding of "all" over an extent of 10.
        let mut bytes = vec![1, 0, 8, 16, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend_from_slice(&[3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(lookup3(&bytes), 0xC84C_82FC);
    }
}
