//! Large numbers found thirty-two at a time, spread and added up eight at a time, where the processor can
//! (AVX2).
//!
//! Of four million gaps, of which one in thirteen is large, a simple loop spends a third of its
//! time on finding the large ones, and another on adding up. With all of that in registers, the
//! checksum beside it takes longest.

#![allow(unsafe_code)]

use super::LARGE;
use super::cells::{GROUP, Places, Plane};
use crate::location::numbers::{BLOCK, Beside};
use pumice_wide::Wide;
use std::arch::x86_64::*;

/// [`find_large`](super::cells::find_large) in wide registers.
#[inline(always)]
pub(super) fn find_large(_: Wide, block: &[u8; BLOCK], places: &mut Places) -> usize {
    // SAFETY: the processor has AVX2 and BMI, or nobody could have passed a `Wide`.
    unsafe { find(block, places) }
}

/// [`add_up`](super::cells::add_up) in wide registers.
#[inline(always)]
pub(super) fn add_up(
    _: Wide,
    block: &[u8; BLOCK],
    planes: [&Plane; 2],
    next: u32,
    list: &mut [u32; BLOCK],
    beside: &mut impl Beside,
) -> (u32, usize) {
    // SAFETY: as above.
    unsafe { sum_groups(block, planes, next, list, beside) }
}

/// Places that are written at once, without a look at how many there are.
const STEP: usize = 8;

#[target_feature(enable = "avx2,bmi1,popcnt")]
#[inline]
fn find(block: &[u8; BLOCK], places: &mut Places) -> usize {
    let mut found = 0;
    for (number, bytes) in block.as_chunks::<64>().0.iter().enumerate() {
        let (low, high) = bytes.split_at(32);
        let (Some(low), Some(high)) = (low.first_chunk(), high.first_chunk()) else { continue };
        let mut mask = u64::from(large(low)) | u64::from(large(high)) << 32;
        let end = found + mask.count_ones() as usize;
        while mask != 0 {
            let Some(to) = places.get_mut(found..).and_then(|to| to.first_chunk_mut::<STEP>())
            else {
                break;
            };
            for place in to {
                *place = (64 * number as u32 + mask.trailing_zeros()) as u8;
                mask &= mask.wrapping_sub(1);
            }
            found += STEP;
        }
        found = end;
    }
    found
}

/// Which of these bytes stand for large numbers.
#[target_feature(enable = "avx2")]
#[inline]
fn large(bytes: &[u8; 32]) -> u32 {
    // SAFETY: 32 bytes are there, and any alignment will do.
    let bytes = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
    let equal = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(LARGE as u8 as i8));
    _mm256_movemask_epi8(equal) as u32
}

/// For every set of places among eight, the byte in a row that belongs to each place; places
/// outside the set get none.
static SPREAD: [[u8; GROUP]; 256] = spread();

const fn spread() -> [[u8; GROUP]; 256] {
    let mut table = [[0x80; GROUP]; 256];
    let mut set = 0;
    while set < table.len() {
        let (mut place, mut byte) = (0, 0);
        while place < GROUP {
            if set >> place & 1 == 1 {
                table[set][place] = byte;
                byte += 1;
            }
            place += 1;
        }
        set += 1;
    }
    table
}

/// Eight bytes in the lower half of a register.
#[target_feature(enable = "avx2")]
#[inline]
fn eight(bytes: &[u8; GROUP]) -> __m128i {
    _mm_cvtsi64_si128(i64::from_le_bytes(*bytes))
}

/// The bytes of a plane from `at` on.
#[inline(always)]
fn part(plane: &Plane, at: usize) -> &[u8; GROUP] {
    plane.get(at..).and_then(|rest| rest.first_chunk()).unwrap_or(&[0; GROUP])
}

#[target_feature(enable = "avx2,bmi1,popcnt")]
#[inline]
fn sum_groups(
    block: &[u8; BLOCK],
    [low, high]: [&Plane; 2],
    next: u32,
    list: &mut [u32; BLOCK],
    beside: &mut impl Beside,
) -> (u32, usize) {
    let (all, upper_half) =
        (_mm256_set1_epi32(GROUP as i32), _mm256_setr_epi32(0, 0, 0, 0, -1, -1, -1, -1));
    let numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let mut before = _mm256_add_epi32(_mm256_set1_epi32(next as i32), numbers);
    let (mut other, mut found) = (beside.clone(), 0);
    for (bytes, list) in block.as_chunks::<32>().0.iter().zip(list.as_chunks_mut::<32>().0) {
        let mut mask = large(bytes);
        let groups = bytes.as_chunks::<GROUP>().0.iter().zip(list.as_chunks_mut::<GROUP>().0);
        for (number, (small, group)) in groups.enumerate() {
            // Twelve bytes each, while 32 numbers are hardly more than 36.
            if number < 3 {
                other.step();
            }
            // The excess of large numbers over 255 is in a row: each goes to its place.
            let (which, order) = (mask as u8, eight(&SPREAD[usize::from(mask as u8)]));
            mask >>= GROUP;
            let lower = _mm_shuffle_epi8(eight(part(low, found)), order);
            let upper = _mm_shuffle_epi8(eight(part(high, found)), order);
            found += which.count_ones() as usize;
            let beyond = _mm256_cvtepu16_epi32(_mm_unpacklo_epi8(lower, upper));
            let each = _mm256_add_epi32(_mm256_cvtepu8_epi32(eight(small)), beyond);
            // Sums within each half, then those of the lower half for the upper.
            let two = _mm256_add_epi32(each, _mm256_slli_si256::<4>(each));
            let four = _mm256_add_epi32(two, _mm256_slli_si256::<8>(two));
            let third = _mm256_permutevar8x32_epi32(four, _mm256_set1_epi32(3));
            let sums = _mm256_add_epi32(four, _mm256_and_si256(third, upper_half));
            let cells = _mm256_add_epi32(before, sums);
            // SAFETY: there is room for 32 bytes, and any alignment will do.
            unsafe { _mm256_storeu_si256(group.as_mut_ptr().cast(), cells) };
            let last = _mm256_permutevar8x32_epi32(sums, _mm256_set1_epi32(7));
            before = _mm256_add_epi32(before, _mm256_add_epi32(last, all));
        }
    }
    *beside = other;
    ((_mm256_extract_epi32::<0>(before) as u32).wrapping_sub(next), found)
}
