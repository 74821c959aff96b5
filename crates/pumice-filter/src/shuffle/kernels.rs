//! The inner loops of shuffle.
//!
//! Those for 2, 4 and 8 bytes move whole groups of elements and return how many elements that were;
//! the caller has the rest moved one by one. They are written as arithmetic on words, which compilers
//! turn into vector instructions or keep in registers; byte-wise loops are four to eight times
//! slower. Inlining them undoes that.

#[cfg(target_arch = "x86_64")]
mod wide;

#[cfg(target_arch = "x86_64")]
pub(super) use wide::unshuffle_4;
#[cfg(not(target_arch = "x86_64"))]
pub(super) use words_4 as unshuffle_4;

/// Elements per group where words are narrowed to bytes.
const GROUP: usize = 16;

const LOW_32: u64 = 0x0000_0000_FFFF_FFFF;
const LOW_16: u64 = 0x0000_FFFF_0000_FFFF;
const LOW_8: u64 = 0x00FF_00FF_00FF_00FF;

#[inline(never)]
pub(super) fn shuffle_2(elements: &[u8], planes: &mut [u8]) -> usize {
    let count = elements.len() / 2;
    let groups = elements.as_chunks::<2>().0.as_chunks::<GROUP>().0;
    let (low, high) = planes.split_at_mut(count);
    let low = low.as_chunks_mut::<GROUP>().0.iter_mut();
    let high = high.as_chunks_mut::<GROUP>().0.iter_mut();
    for ((group, low), high) in groups.iter().zip(low).zip(high) {
        let words = group.map(u16::from_le_bytes);
        *low = words.map(|word| word as u8);
        *high = words.map(|word| (word >> 8) as u8);
    }
    groups.len() * GROUP
}

/// Elements from number `first` on, as many as there is room for.
#[inline(never)]
pub(super) fn unshuffle_2(planes: &[u8], first: usize, elements: &mut [u8]) -> usize {
    let (low, high) = planes.split_at(planes.len() / 2);
    let elements = elements.as_chunks_mut::<2>().0;
    for ((element, low), high) in elements.iter_mut().zip(&low[first..]).zip(&high[first..]) {
        *element = (u16::from(*low) | u16::from(*high) << 8).to_le_bytes();
    }
    elements.len()
}

#[inline(never)]
pub(super) fn shuffle_4(elements: &[u8], planes: &mut [u8]) -> usize {
    let count = elements.len() / 4;
    let groups = elements.as_chunks::<4>().0.as_chunks::<GROUP>().0;
    for (number, group) in groups.iter().enumerate() {
        let words = group.map(u32::from_le_bytes);
        for byte in 0..4 {
            let column = words.map(|word| (word >> (8 * byte)) as u8);
            let at = byte * count + number * GROUP;
            planes[at..at + GROUP].copy_from_slice(&column);
        }
    }
    groups.len() * GROUP
}

/// Elements from number `first` on, where there are no registers of sixteen bytes.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[inline(never)]
pub(super) fn words_4(planes: &[u8], first: usize, elements: &mut [u8]) -> usize {
    let count = planes.len() / 4;
    let groups = elements.as_chunks_mut::<8>().0.as_chunks_mut::<4>().0;
    for (number, group) in groups.iter_mut().enumerate() {
        let at = first + number * 8;
        let [a, b, c, d] = std::array::from_fn(|byte| word(planes, byte * count + at));
        // Pairs of bytes, then whole elements: even ones and odd ones, two to a word.
        let (even_low, odd_low) = weave_8(a, b);
        let (even_high, odd_high) = weave_8(c, d);
        let (zero_four, two_six) = weave_16(even_low, even_high);
        let (one_five, three_seven) = weave_16(odd_low, odd_high);
        let (first, third) = weave_32(zero_four, one_five);
        let (second, fourth) = weave_32(two_six, three_seven);
        *group = [first, second, third, fourth].map(u64::to_le_bytes);
    }
    groups.len() * 8
}

#[inline(never)]
pub(super) fn shuffle_8(elements: &[u8], planes: &mut [u8]) -> usize {
    let count = elements.len() / 8;
    let groups = elements.as_chunks::<8>().0.as_chunks::<8>().0;
    for (number, group) in groups.iter().enumerate() {
        let columns = transpose(group.map(u64::from_le_bytes));
        for (byte, column) in columns.iter().enumerate() {
            let at = byte * count + number * 8;
            planes[at..at + 8].copy_from_slice(&column.to_le_bytes());
        }
    }
    groups.len() * 8
}

/// Elements from number `first` on.
#[inline(never)]
pub(super) fn unshuffle_8(planes: &[u8], first: usize, elements: &mut [u8]) -> usize {
    let count = planes.len() / 8;
    let groups = elements.as_chunks_mut::<8>().0.as_chunks_mut::<8>().0;
    for (number, group) in groups.iter_mut().enumerate() {
        let at = first + number * 8;
        let columns = std::array::from_fn(|byte| word(planes, byte * count + at));
        *group = transpose(columns).map(u64::to_le_bytes);
    }
    groups.len() * 8
}

/// Elements of other sizes whose bytes are moved together, so that they stay in the nearest cache.
const STRIPE: usize = 1024;

/// Elements of any size, from number `first` on.
#[inline(never)]
pub(super) fn shuffle_any(size: usize, first: usize, elements: &[u8], planes: &mut [u8]) {
    let count = elements.len() / size;
    for first in (first..count).step_by(STRIPE) {
        let stripe = &elements[first * size..count.min(first + STRIPE) * size];
        for (byte, plane) in planes.chunks_exact_mut(count).enumerate() {
            for (to, element) in plane[first..].iter_mut().zip(stripe.chunks_exact(size)) {
                *to = element[byte];
            }
        }
    }
}

/// Elements from number `first` on, as many as there is room for.
#[inline(never)]
pub(super) fn unshuffle_any(size: usize, first: usize, planes: &[u8], elements: &mut [u8]) {
    let count = planes.len() / size;
    for (number, stripe) in elements.chunks_mut(STRIPE * size).enumerate() {
        let first = first + number * STRIPE;
        for (byte, plane) in planes.chunks_exact(count).enumerate() {
            for (from, element) in plane[first..].iter().zip(stripe.chunks_exact_mut(size)) {
                element[byte] = *from;
            }
        }
    }
}

/// Eight bytes as a word.
#[inline(always)]
fn word(bytes: &[u8], at: usize) -> u64 {
    let mut array = [0; 8];
    array.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(array)
}

/// The 8 x 8 bytes of eight words, rows and columns exchanged.
#[inline(always)]
fn transpose(mut rows: [u64; 8]) -> [u64; 8] {
    for at in [0, 1, 2, 3] {
        (rows[at], rows[at + 4]) = weave_32(rows[at], rows[at + 4]);
    }
    for at in [0, 1, 4, 5] {
        (rows[at], rows[at + 2]) = weave_16(rows[at], rows[at + 2]);
    }
    for at in [0, 2, 4, 6] {
        (rows[at], rows[at + 1]) = weave_8(rows[at], rows[at + 1]);
    }
    rows
}

/// The even lanes of both words, and the odd lanes of both words, in turns.
#[inline(always)]
fn weave_32(a: u64, b: u64) -> (u64, u64) {
    ((a & LOW_32) | (b << 32), (a >> 32) | (b & !LOW_32))
}

#[inline(always)]
fn weave_16(a: u64, b: u64) -> (u64, u64) {
    ((a & LOW_16) | (b & LOW_16) << 16, (a >> 16 & LOW_16) | (b & !LOW_16))
}

#[inline(always)]
fn weave_8(a: u64, b: u64) -> (u64, u64) {
    ((a & LOW_8) | (b & LOW_8) << 8, (a >> 8 & LOW_8) | (b & !LOW_8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_registers_put_elements_of_four_bytes_together_alike() {
        let planes: Vec<u8> = (0..4 * 1000u32).map(|n| (n * n / 7) as u8).collect();
        for (first, count) in [(0, 1000), (0, 16), (3, 64), (17, 983), (990, 10), (0, 0)] {
            let mut by_registers = vec![0; 4 * count];
            let (mut by_words, mut by_bytes) = (by_registers.clone(), by_registers.clone());
            let done = unshuffle_4(&planes, first, &mut by_registers);
            unshuffle_any(4, first + done, &planes, &mut by_registers[4 * done..]);
            let done = words_4(&planes, first, &mut by_words);
            unshuffle_any(4, first + done, &planes, &mut by_words[4 * done..]);
            unshuffle_any(4, first, &planes, &mut by_bytes);
            assert_eq!(by_registers, by_bytes, "{first} {count}");
            assert_eq!(by_words, by_bytes, "{first} {count}");
        }
    }
}
