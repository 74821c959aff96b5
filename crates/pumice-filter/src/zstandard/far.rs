//! Repetitions further back than a sample reaches: equal rows, alternating labels.
//!
//! Two phrases are searched for in the data behind them. Each is so long that it does not repeat by
//! chance. A phrase that repeats nearby does not count: samples show that, too.

/// The bits of a phrase without repetitions; its length in bytes is within these bounds.
const PHRASE_BITS: f64 = 48.0;
const PHRASE_BYTES: (usize, usize) = (8, 64);

/// A compressor looks no further behind.
const WINDOW: usize = 1 << 21;

/// Places that are compared at a time, and bytes of a phrase that are compared in all of them.
const STEP: usize = 64;
const PROBES: usize = 8;

/// A plane that has been sampled.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sampled<'a> {
    pub(super) plane: &'a [u8],
    pub(super) sample: usize,
    /// The bits of a byte with a code of its own.
    pub(super) bits: f64,
}

/// Whether phrases of these planes repeat further back than their samples are long. Two phrases are
/// searched for, in the planes that take the most bits.
#[inline(always)]
pub(super) fn repeats(planes: &[Sampled<'_>]) -> bool {
    let takes = |plane: &Sampled<'_>| plane.bits * plane.plane.len() as f64;
    let [mut most, mut next] = [Sampled::default(); 2];
    for plane in planes {
        if takes(plane) > takes(&most) {
            next = std::mem::replace(&mut most, *plane);
        } else if takes(plane) > takes(&next) {
            next = *plane;
        }
    }
    if next.bits == 0.0 {
        next = most;
    }
    // A phrase that repeats mostly occurs in the first half for the first time.
    comes_again(most, most.plane.len() / 8) || comes_again(next, next.plane.len() / 8 * 3)
}

/// Whether the phrase at `start` repeats further on, but not nearby.
#[inline(always)]
fn comes_again(plane: Sampled<'_>, start: usize) -> bool {
    let Sampled { plane, sample, bits } = plane;
    if bits == 0.0 || plane.len() <= sample {
        return false;
    }
    let len = ((PHRASE_BITS / bits) as usize).clamp(PHRASE_BYTES.0, PHRASE_BYTES.1);
    let part = |from: usize, to: usize| plane.get(from..to.min(plane.len())).unwrap_or_default();
    let phrase = part(start, start + len);
    // A later occurrence may begin inside the phrase itself.
    let (before, near) = (start.saturating_sub(sample / 2), start + sample / 2);
    if occurs(phrase, part(before, start + len - 1)) || occurs(phrase, part(start + 1, near + len))
    {
        return false;
    }
    phrase.len() == len && occurs(phrase, part(near, start.saturating_add(WINDOW)))
}

/// Whether a phrase of eight bytes or more is anywhere in some bytes.
#[inline(always)]
fn occurs(phrase: &[u8], bytes: &[u8]) -> bool {
    let Some(places) = (bytes.len() + 1).checked_sub(phrase.len()) else { return false };
    let apart = phrase.len() / PROBES;
    let probes: [u8; PROBES] =
        std::array::from_fn(|number| phrase.get(number * apart).copied().unwrap_or(0));
    let is_here = |at: usize| bytes.get(at..).is_some_and(|rest| rest.starts_with(phrase));
    let mut start = 0;
    while let Some(window) = bytes.get(start..start + STEP + (PROBES - 1) * apart) {
        let part = |number: usize| window[number * apart..].first_chunk::<STEP>();
        let [Some(a), Some(b), Some(c), Some(d), Some(e), Some(f), Some(g), Some(h)] =
            std::array::from_fn(part)
        else {
            break;
        };
        let parts: [&[u8; STEP]; PROBES] = [a, b, c, d, e, f, g, h];
        // Without a decision for each place.
        let mut any = false;
        for at in 0..STEP {
            let mut same = true;
            for (part, probe) in parts.iter().zip(probes) {
                same &= part[at] == probe;
            }
            any |= same;
        }
        if any && (start..start + STEP).any(is_here) {
            return true;
        }
        start += STEP;
    }
    (start..places).any(is_here)
}

#[cfg(test)]
mod tests {
    use super::super::promise::Promise;
    use super::*;

    /// Bytes without pattern, of so many kinds.
    fn noise(count: usize, kinds: u64) -> Vec<u8> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % kinds
        };
        (0..count).map(|_| next() as u8).collect()
    }

    fn sampled(plane: &[u8]) -> Sampled<'_> {
        let sample = plane.len().min(1024);
        let bits = Promise::default().add(&plane[..sample]);
        Sampled { plane, sample, bits }
    }

    fn one_plane(plane: &[u8]) -> bool {
        repeats(&[sampled(plane)])
    }

    #[test]
    fn noise_and_what_repeats_nearby_are_left_to_samples() {
        for kinds in [1, 2, 3, 16, 250] {
            assert!(!one_plane(&noise(100_000, kinds)), "{kinds}");
        }
        let nearby: Vec<u8> = noise(300, 250).into_iter().cycle().take(50_000).collect();
        assert!(!one_plane(&nearby));
        assert!(!one_plane(&noise(1024, 250)));
        assert!(!one_plane(&[]));
        assert!(!repeats(&[]));
    }

    #[test]
    fn rows_that_come_again_are_found_at_any_distance() {
        for kinds in [2, 3, 16, 250] {
            for distance in [700, 1600, 5000, 40_001] {
                let row = noise(distance, kinds);
                let rows: Vec<u8> = row.into_iter().cycle().take(100_000).collect();
                assert!(one_plane(&rows), "{kinds} {distance}");
            }
        }
    }

    #[test]
    fn the_planes_that_take_most_are_looked_at() {
        let (row, zeros) = (noise(5000, 200), vec![0; 50_000]);
        let rows: Vec<u8> = row.iter().copied().cycle().take(50_000).collect();
        let other = noise(50_000, 8);
        assert!(repeats(&[sampled(&zeros), sampled(&rows), sampled(&zeros)]));
        assert!(repeats(&[sampled(&other), sampled(&rows)]));
        assert!(!repeats(&[sampled(&zeros), sampled(&other), sampled(&zeros)]));
    }

    #[test]
    fn phrases_are_found_where_they_are() {
        let bytes = noise(1000, 250);
        for len in [8, 13, 48, 64] {
            for start in 0..1000 - len {
                let phrase = &bytes[start..start + len];
                assert!(occurs(phrase, &bytes));
                assert!(!occurs(phrase, &bytes[..start + len - 1]));
                assert!(!occurs(phrase, &bytes[start + 1..]));
            }
        }
    }
}
