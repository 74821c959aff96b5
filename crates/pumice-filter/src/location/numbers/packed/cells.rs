//! Packed gaps straight to the cells between which they lie, block by block.
//!
//! The sum of the upper parts of the first numbers is the place of a one bit, less the ones before
//! it: no number has to be known by itself.

use super::{BLOCK, GROUP, MOST_WIDE, Packed, wide, word_at};
use crate::FilterError;
use crate::location::NAME;
use crate::location::compact::outside;
use crate::location::numbers::Beside;
use pumice_wide::{Wide, Work, run_widely};

struct EachCell<'a, T, B> {
    packed: Packed<'a>,
    count: usize,
    cells: u64,
    take: T,
    beside: &'a mut B,
}

impl<T: FnMut(&[u32]) -> bool, B: Beside> Work for EachCell<'_, T, B> {
    type Output = Result<bool, FilterError>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        self.packed.each_cell(self.count, self.cells, self.take, self.beside)
    }
}

impl Packed<'_> {
    /// Visits the `count` cells whose gaps the numbers are, all of them below `cells`, which is
    /// below 2^32. Works block by block, until `take` returns `false`; returns whether it never
    /// did. Takes a step `beside` for every eight numbers or so.
    pub(in super::super) fn for_each_cell(
        self,
        count: usize,
        cells: u64,
        take: impl FnMut(&[u32]) -> bool,
        beside: &mut impl Beside,
    ) -> Result<bool, FilterError> {
        run_widely(EachCell { packed: self, count, cells, take, beside })
    }

    #[inline(always)]
    fn each_cell(
        mut self,
        count: usize,
        cells: u64,
        mut take: impl FnMut(&[u32]) -> bool,
        beside: &mut impl Beside,
    ) -> Result<bool, FilterError> {
        let mut ones = Ones::new(self.unary.bytes, count)?;
        let (mut left, mut begin, mut next) = (count, 0, 0);
        let has = Wide::detect();
        for low_bits in self.low_bits {
            let (low_bits, block) = (u32::from(*low_bits), ones.find(BLOCK.min(left))?);
            let end = block.last().map_or(0, |last| u64::from(*last) + 1);
            let (upper, bits) = (end - begin - block.len() as u64, block.len() * low_bits as usize);
            if upper <= cells >> low_bits {
                // The low bits of later blocks may be read, too; they are masked out.
                let low = Low { bits: low_bits, bytes: self.low };
                next = match has.filter(|_| low_bits <= MOST_WIDE) {
                    Some(has) => sum_wide(has, block, begin as u32, low, next, beside),
                    None => sum_low(block, begin as u32, low, next, beside),
                };
                next += upper << low_bits;
            }
            if upper > cells >> low_bits || next > cells {
                return Err(outside(format!("a cell beyond {cells}")));
            }
            if !take(block) {
                return Ok(false);
            }
            left -= block.len();
            self.low = &self.low[bits.div_ceil(8)..];
            begin = end;
        }
        ones.finish().map(|()| true)
    }
}

/// The low bits of numbers, one after another.
#[derive(Clone, Copy)]
pub(super) struct Low<'a> {
    pub(super) bits: u32,
    pub(super) bytes: &'a [u8],
}

/// For every byte, the places of its ones; other entries have no meaning.
static ONES: [[u32; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut found) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                table[byte][found] = bit;
                found += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    table
};

/// Room for the ones of a word, and for excess entries.
const ROOM: usize = 64 + 8;

/// Finds the places of the ones of a unary part.
struct Ones<'a> {
    bytes: &'a [u8],
    /// The number of the next word's first bit.
    base: u32,
    /// Places that were found: those that were returned, then `held` others.
    places: [u32; BLOCK + ROOM],
    given: usize,
    held: usize,
}

impl<'a> Ones<'a> {
    fn new(bytes: &'a [u8], count: usize) -> Result<Self, FilterError> {
        if bytes.len() > u32::MAX as usize / 8 {
            return Err(outside("a unary part that is longer than any chunk"));
        }
        if count > 8 * bytes.len() {
            return Err(wrong("fewer"));
        }
        Ok(Self { bytes, base: 0, places: [0; BLOCK + ROOM], given: 0, held: 0 })
    }

    /// The next `wanted` places, [`BLOCK`] of them at most.
    #[inline(always)]
    fn find(&mut self, wanted: usize) -> Result<&mut [u32], FilterError> {
        self.places.copy_within(self.given..self.given + self.held, 0);
        while self.held < wanted {
            let word = match self.bytes.split_first_chunk::<8>() {
                Some((word, rest)) => {
                    self.bytes = rest;
                    *word
                }
                None if self.bytes.is_empty() => return Err(wrong("fewer")),
                None => word_at(std::mem::take(&mut self.bytes), 0).to_le_bytes(),
            };
            // Fewer than a block are held.
            if let Some(room) = self.places[self.held..].first_chunk_mut::<ROOM>() {
                self.held += spread(word, self.base, room);
            }
            self.base += 64;
        }
        (self.given, self.held) = (wanted, self.held - wanted);
        Ok(&mut self.places[..wanted])
    }

    /// Checks that no ones are left. The last byte is not zero, so unread bytes have some.
    fn finish(&self) -> Result<(), FilterError> {
        match self.held == 0 && self.bytes.is_empty() {
            true => Ok(()),
            false => Err(wrong("more")),
        }
    }
}

fn wrong(found: &str) -> FilterError {
    FilterError::corrupt(NAME, "a one bit for every number", found)
}

/// Writes the places of a word's ones, `base` being that of its first bit, and says how many there
/// are. A byte at a time without any decision, however many ones it has; and no byte has to wait for
/// the one before it to be counted.
#[inline(always)]
fn spread(word: [u8; 8], base: u32, room: &mut [u32; ROOM]) -> usize {
    let ends = ones_up_to(u64::from_le_bytes(word)).to_le_bytes();
    let mut start = 0;
    for (number, byte) in word.into_iter().enumerate() {
        let ones = &ONES[usize::from(byte)];
        let first = base + 8 * number as u32;
        let places: [u32; 8] = std::array::from_fn(|at| first + ones[at]);
        // There are at most 56 ones before the last byte; the mask tells the compiler as much.
        let start_here = start & 63;
        room[start_here..start_here + 8].copy_from_slice(&places);
        start = usize::from(ends[number]);
    }
    start
}

/// In every byte, how many ones it and the lower bytes have.
#[inline(always)]
fn ones_up_to(word: u64) -> u64 {
    let pairs = word - (word >> 1 & 0x5555_5555_5555_5555);
    let fours = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
    let bytes = (fours + (fours >> 4)) & 0x0F0F_0F0F_0F0F_0F0F;
    bytes.wrapping_mul(0x0101_0101_0101_0101)
}

/// Turns the places of a block's ones into cells: the upper parts so far, which are the place less
/// `begin` and the ones between, shifted up by the low bits; `next`; the low bits so far; and one for each
/// number before. Returns the cell after the last, less its upper part. Cells that do not fit are cut
/// off.
fn sum_low(list: &mut [u32], begin: u32, low: Low<'_>, next: u64, beside: &mut impl Beside) -> u64 {
    match low.bits {
        1 => sum_low_fixed::<1>(list, begin, low.bytes, next, beside),
        2 => sum_low_fixed::<2>(list, begin, low.bytes, next, beside),
        3 => sum_low_fixed::<3>(list, begin, low.bytes, next, beside),
        4 => sum_low_fixed::<4>(list, begin, low.bytes, next, beside),
        5 => sum_low_fixed::<5>(list, begin, low.bytes, next, beside),
        6 => sum_low_fixed::<6>(list, begin, low.bytes, next, beside),
        7 => sum_low_fixed::<7>(list, begin, low.bytes, next, beside),
        8 => sum_low_fixed::<8>(list, begin, low.bytes, next, beside),
        9 => sum_low_fixed::<9>(list, begin, low.bytes, next, beside),
        10 => sum_low_fixed::<10>(list, begin, low.bytes, next, beside),
        11 => sum_low_fixed::<11>(list, begin, low.bytes, next, beside),
        12 => sum_low_fixed::<12>(list, begin, low.bytes, next, beside),
        _ => sum_low_any(list, begin, low, next),
    }
}

/// [`sum_low`] in wide registers as far as possible.
#[inline(always)]
fn sum_wide(
    has: Wide,
    list: &mut [u32],
    begin: u32,
    low: Low<'_>,
    next: u64,
    beside: &mut impl Beside,
) -> u64 {
    let (done, next) = wide::sum_low(has, list, begin, low, next, beside);
    let rest = Low { bytes: &low.bytes[done / GROUP * low.bits as usize..], ..low };
    sum_low_any(&mut list[done..], begin + done as u32, rest, next)
}

fn sum_low_fixed<const BITS: usize>(
    list: &mut [u32],
    mut begin: u32,
    low: &[u8],
    mut next: u64,
    beside: &mut impl Beside,
) -> u64 {
    // As in `add_low_fixed`.
    let groups = (low.len().saturating_sub(8) / BITS).min(list.len() / GROUP);
    let (groups, rest) = list.split_at_mut(groups * GROUP);
    let mut bytes = low;
    let mut other = beside.clone();
    for group in groups.as_chunks_mut::<GROUP>().0 {
        other.step();
        let window = &bytes[..BITS + 8];
        for (number, cell) in group.iter_mut().enumerate() {
            let (bit, number) = (number * BITS, number as u32);
            // The low bits of a group may fit one word.
            let (at, shift) = if BITS <= 8 { (0, bit) } else { (bit / 8, bit % 8) };
            next += word_at(window, at) >> shift & ((1 << BITS) - 1);
            let upper = cell.wrapping_sub(begin.wrapping_add(number));
            *cell = (upper << BITS).wrapping_add(next as u32).wrapping_add(number);
        }
        next += GROUP as u64;
        begin = begin.wrapping_add(GROUP as u32);
        bytes = &bytes[BITS..];
    }
    *beside = other;
    sum_low_any(rest, begin, Low { bits: BITS as u32, bytes }, next)
}

pub(super) fn sum_low_any(list: &mut [u32], begin: u32, low: Low<'_>, mut next: u64) -> u64 {
    let mask = (1u64 << low.bits) - 1;
    let mut bit = 0;
    for (number, cell) in (begin..).zip(list) {
        next += word_at(low.bytes, bit / 8) >> (bit % 8) & mask;
        let upper = u64::from(*cell - number) << low.bits;
        *cell = upper.wrapping_add(next) as u32;
        next += 1;
        bit += low.bits as usize;
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ones_of_any_word_are_found() {
        let words = [0, 1, u64::MAX, 1 << 63, 0x8000_0000_0000_0001, 0x0123_4567_89AB_CDEF];
        for word in words {
            let mut room = [7; ROOM];
            let count = spread(u64::to_le_bytes(word), 640, &mut room);
            let expected = (0..64u32).filter(|bit| word >> bit & 1 == 1).map(|bit| 640 + bit);
            assert_eq!(room[..count], expected.collect::<Vec<_>>(), "{word:#x}");
        }
    }

    #[test]
    fn wide_sums_are_those_of_one_number_after_another() {
        let Some(has) = Wide::detect() else { return };
        let low: Vec<u8> =
            (0u32..500).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for low_bits in 0..=MOST_WIDE {
            for (count, bytes) in
                [(256, 500), (256, 256 * low_bits as usize / 8), (100, 200), (7, 20)]
            {
                let ones: Vec<u32> = (0..count).map(|at| 1000 + 3 * at).collect();
                let low = Low { bits: low_bits, bytes: &low[..bytes] };
                for next in [0, 77, u64::from(u32::MAX) - 50] {
                    let (mut a, mut b) = (ones.clone(), ones.clone());
                    let wide = sum_wide(has, &mut a, 1000, low, next, &mut ());
                    assert_eq!(wide, sum_low_any(&mut b, 1000, low, next));
                    assert_eq!(a, b, "{low_bits} {count}");
                }
            }
        }
    }

    #[test]
    fn more_or_fewer_ones_than_numbers_are_refused() {
        let bytes = [0xFF; 40];
        let find = |count: usize| {
            let mut ones = Ones::new(&bytes, count)?;
            let (first, rest) = (count.min(BLOCK), count.saturating_sub(BLOCK));
            assert!(ones.find(first)?.is_sorted());
            assert_eq!(ones.find(rest)?.len(), rest);
            ones.finish()
        };
        assert!(find(320).is_ok());
        assert!(find(319).is_err() && find(256).is_err() && find(321).is_err());
        assert!(Ones::new(&[0, 0, 1], 2).and_then(|mut ones| ones.find(2).map(drop)).is_err());
    }
}
