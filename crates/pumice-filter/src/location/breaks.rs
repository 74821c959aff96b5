//! Where runs of columns end: thirty-two columns are compared with the ones before them at a time, where the
//! processor can (AVX2).
//!
//! Most runs are short, so that one decision for each column is wrong once for each run: that took two thirds
//! of the time of writing clustered rows.

#![allow(unsafe_code)]

use crate::wide::Wide;

/// Columns that are compared at a time.
pub(super) const STEP: usize = 32;

/// Bit `i` is set if column `i` of `upper` is not the neighbour of column `i` of `lower`.
#[inline(always)]
pub(super) fn breaks(wide: Option<Wide>, lower: &[u32; STEP], upper: &[u32; STEP]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if wide.is_some() {
        // SAFETY: the processor has AVX2, or there would be no `Wide`.
        return unsafe { compare(lower, upper) };
    }
    let _ = wide;
    let pairs = upper.iter().zip(lower).enumerate();
    pairs.fold(0, |mask, (at, (upper, lower))| {
        mask | u32::from(upper.wrapping_sub(*lower) != 1) << at
    })
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn compare(lower: &[u32; STEP], upper: &[u32; STEP]) -> u32 {
    use std::arch::x86_64::*;
    const GROUP: usize = 8;
    let one = _mm256_set1_epi32(1);
    let mut equal = [one; STEP / GROUP];
    let groups = upper.as_chunks::<GROUP>().0.iter().zip(lower.as_chunks::<GROUP>().0);
    for (equal, (upper, lower)) in equal.iter_mut().zip(groups) {
        // SAFETY: 32 bytes are there, and any alignment will do.
        let (upper, lower) = unsafe {
            let upper = _mm256_loadu_si256(upper.as_ptr().cast());
            (upper, _mm256_loadu_si256(lower.as_ptr().cast()))
        };
        *equal = _mm256_cmpeq_epi32(_mm256_sub_epi32(upper, lower), one);
    }
    let [a, b, c, d] = equal;
    let bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    // Packing goes on in each half by itself.
    let bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    !_mm256_movemask_epi8(bytes) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_processor_finds_the_same_ends() {
        for seed in 0..1000u32 {
            let lower: [u32; STEP] = std::array::from_fn(|at| seed.wrapping_mul(at as u32 + 7));
            let step = |at: usize| 1 + (seed >> (at % 13) & 3 & at as u32);
            let upper: [u32; STEP] = std::array::from_fn(|at| lower[at].wrapping_add(step(at)));
            let found = breaks(Wide::detect(), &lower, &upper);
            assert_eq!(found, breaks(None, &lower, &upper));
            (0..STEP).for_each(|at| assert_eq!(found >> at & 1 == 1, step(at) != 1));
        }
    }
}
