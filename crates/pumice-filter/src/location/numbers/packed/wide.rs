//! Sums of low bits eight at a time, where the processor can (AVX2).
//!
//! Reading four million scattered cells takes 9 ns of processor time for each without wide
//! registers, a third of it in this loop. Eight numbers depend on each other through additions
//! alone, which a wide register does in three steps.

#![allow(unsafe_code)]

use super::cells::Low;
use super::{GROUP, MOST_WIDE};
use crate::location::numbers::Beside;
use pumice_wide::Wide;
use std::arch::x86_64::*;

/// [`sum_low_any`](super::cells::sum_low_any) for as many whole groups as possible; also returns
/// how many numbers that was. There are at most [`MOST_WIDE`] low bits. Takes a step `beside` for
/// every group.
#[inline]
pub(super) fn sum_low(
    _: Wide,
    list: &mut [u32],
    begin: u32,
    low: Low<'_>,
    next: u64,
    beside: &mut impl Beside,
) -> (usize, u64) {
    debug_assert!(low.bits <= MOST_WIDE);
    // SAFETY: the processor has AVX2, or nobody could have passed a `Wide`.
    unsafe { sum_groups(list, begin, low, next, beside) }
}

/// The places of the low bits of a group's numbers.
struct Places {
    /// For each number the four bytes that its low bits are in.
    bytes: [u8; 32],
    /// The shift of the low bits within those bytes.
    shifts: [u32; GROUP],
}

/// The places for every number of low bits.
static PLACES: [Places; MOST_WIDE as usize + 1] = {
    let mut all = [const { Places { bytes: [0; 32], shifts: [0; GROUP] } }; MOST_WIDE as usize + 1];
    let mut bits = 0;
    while bits < all.len() {
        let mut place = 0;
        while place < 32 {
            let at = place / 4 * bits;
            all[bits].bytes[place] = (at / 8 + place % 4) as u8;
            all[bits].shifts[place / 4] = (at % 8) as u32;
            place += 1;
        }
        bits += 1;
    }
    all
};

#[target_feature(enable = "avx2")]
#[inline]
fn sum_groups(
    list: &mut [u32],
    begin: u32,
    low: Low<'_>,
    next: u64,
    beside: &mut impl Beside,
) -> (usize, u64) {
    let (low_bits, bits) = (low.bits, low.bits as usize);
    // A register has two halves, each of which gets the same sixteen bytes.
    let Places { bytes, shifts } = &PLACES[bits];
    let (bytes, shifts) = (load_bytes(bytes), load(shifts));
    let mask = _mm256_set1_epi32((1 << low_bits) - 1);
    let up = _mm_cvtsi32_si128(low_bits as i32);
    let (all, upper_half) =
        (_mm256_set1_epi32(GROUP as i32), _mm256_setr_epi32(0, 0, 0, 0, -1, -1, -1, -1));
    let numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let mut before = _mm256_add_epi32(_mm256_set1_epi32(begin as i32), numbers);
    let mut sum = _mm256_add_epi32(_mm256_set1_epi32(next as i32), numbers);
    let mut done = 0;
    let mut rest = low.bytes;
    let mut other = beside.clone();
    for group in list.as_chunks_mut::<GROUP>().0 {
        let Some(window) = rest.first_chunk::<16>() else { break };
        other.step();
        let window = _mm256_broadcastsi128_si256(load_half(window));
        let each = _mm256_srlv_epi32(_mm256_shuffle_epi8(window, bytes), shifts);
        let each = _mm256_and_si256(each, mask);
        // Sums within each half, then those of the lower half for the upper.
        let two = _mm256_add_epi32(each, _mm256_slli_si256::<4>(each));
        let four = _mm256_add_epi32(two, _mm256_slli_si256::<8>(two));
        let third = _mm256_permutevar8x32_epi32(four, _mm256_set1_epi32(3));
        let sums = _mm256_add_epi32(four, _mm256_and_si256(third, upper_half));
        let upper = _mm256_sll_epi32(_mm256_sub_epi32(load(group), before), up);
        *group = stored(_mm256_add_epi32(_mm256_add_epi32(upper, sum), sums));
        let last = _mm256_permutevar8x32_epi32(sums, _mm256_set1_epi32(7));
        sum = _mm256_add_epi32(sum, _mm256_add_epi32(last, all));
        before = _mm256_add_epi32(before, all);
        rest = &rest[bits.min(rest.len())..];
        done += GROUP;
    }
    *beside = other;
    // A block has few numbers of few bits: what they add up to is far below 2^32.
    let added = (_mm256_extract_epi32::<0>(sum) as u32).wrapping_sub(next as u32);
    (done, next + u64::from(added))
}

#[target_feature(enable = "avx2")]
fn load(numbers: &[u32; GROUP]) -> __m256i {
    // SAFETY: 32 bytes are there, and any alignment will do.
    unsafe { _mm256_loadu_si256(numbers.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
fn load_bytes(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: as above.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
fn load_half(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: 16 bytes are there, and any alignment will do.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
fn stored(numbers: __m256i) -> [u32; GROUP] {
    let mut to = [0; GROUP];
    // SAFETY: there is room for 32 bytes, and any alignment will do.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), numbers) };
    to
}
