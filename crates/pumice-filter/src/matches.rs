//! Finding repetitions, for the compressors that are our own (LZF, BloscLZ, Snappy): a table of
//! where three or four bytes were last seen, and a greedy walk.

const HASH_BITS: u32 = 14;

/// The limits of a format.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// The shortest match that is worth its code: 3 or 4.
    pub(crate) least: usize,
    pub(crate) longest: usize,
    pub(crate) farthest: usize,
    /// Bytes at the end that must be literals.
    pub(crate) tail: usize,
}

/// Takes the pieces of an input, in order.
pub(crate) trait Sink {
    /// Bytes that are no repetition.
    fn literals(&mut self, bytes: &[u8]);
    /// `length` bytes that were there `distance` bytes before.
    fn repetition(&mut self, distance: usize, length: usize);
}

/// Divides `input` into literals and repetitions.
pub(crate) fn divide(input: &[u8], limits: Limits, sink: &mut impl Sink) {
    // Positions plus one, so that zero is none. Beyond 4 GiB nothing is found any more.
    let mut table = vec![0u32; 1 << HASH_BITS];
    let end = input.len().saturating_sub(limits.tail);
    let (mut at, mut literals) = (0, 0);
    while let Some(hash) = hash(&input[..end], at, limits.least) {
        let earlier = table[hash] as usize;
        table[hash] = u32::try_from(at + 1).unwrap_or(0);
        let length = match earlier {
            0 => 0,
            _ if at + 1 - earlier > limits.farthest => 0,
            _ => common(&input[earlier - 1..end], &input[at..end], limits.longest),
        };
        if length < limits.least {
            at += 1;
            continue;
        }
        if literals < at {
            sink.literals(&input[literals..at]);
        }
        sink.repetition(at + 1 - earlier, length);
        // A position inside, so that the next repetition is found sooner.
        if let Some(inside) = self::hash(&input[..end], at + 1, limits.least) {
            table[inside] = u32::try_from(at + 2).unwrap_or(0);
        }
        at += length;
        literals = at;
    }
    if literals < input.len() {
        sink.literals(&input[literals..]);
    }
}

fn hash(input: &[u8], at: usize, least: usize) -> Option<usize> {
    let mut window = [0; 4];
    window[..least].copy_from_slice(input.get(at..at + least)?);
    let value = u32::from_le_bytes(window);
    Some((value.wrapping_mul(0x9E37_79B1) >> (32 - HASH_BITS)) as usize)
}

/// The length of the common beginning of two slices.
fn common(earlier: &[u8], now: &[u8], longest: usize) -> usize {
    let longest = longest.min(now.len()).min(earlier.len());
    let (earlier, now) = (&earlier[..longest], &now[..longest]);
    let words = earlier.as_chunks::<8>().0.iter().zip(now.as_chunks::<8>().0);
    let same = words.take_while(|(a, b)| a == b).count() * 8;
    same + earlier[same..].iter().zip(&now[same..]).take_while(|(a, b)| a == b).count()
}

/// Appends `count` bytes from `distance` bytes before the end, which may overlap the appended ones;
/// `None` if there are fewer bytes.
pub(crate) fn repeat(out: &mut Vec<u8>, distance: usize, count: usize) -> Option<()> {
    let start = out.len().checked_sub(distance).filter(|_| distance > 0)?;
    let mut left = count;
    while left > 0 {
        // The source of the copy grows with every step.
        let now = left.min(out.len() - start);
        out.extend_from_within(start..start + now);
        left -= now;
    }
    Some(())
}
