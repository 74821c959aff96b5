//! Gaps in bytes straight to the cells between which they lie, block by block.
//!
//! Large numbers are found and added to all places where they belong before anything is summed up, so
//! that no number has to be decided about by itself.

use super::{Bytes, LARGE, wide};
use crate::FilterError;
use crate::location::compact::outside;
use crate::location::numbers::{BLOCK, Beside};
use crate::wide::{Wide, Work, run_widely};

/// Numbers for which a step is taken beside.
pub(super) const GROUP: usize = 8;

/// Room for the places of all large numbers of a block, and for what is written beside them.
pub(super) type Places = [u8; BLOCK + 64];

struct EachCell<'a, T, B> {
    bytes: Bytes<'a>,
    cells: u64,
    take: T,
    beside: &'a mut B,
}

impl<T: FnMut(&[u32]) -> bool, B: Beside> Work for EachCell<'_, T, B> {
    type Output = Result<bool, FilterError>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        self.bytes.each_cell(self.cells, self.take, self.beside)
    }
}

impl Bytes<'_> {
    /// Whether no number is far from the least that is large, so that a block of them has a small sum.
    pub(in super::super) fn are_narrow(&self) -> bool {
        self.large[2].is_empty()
    }

    /// Shows the cells that the numbers, which are narrow, are the gaps between, all of them below `cells`,
    /// which is below 2^32, block by block, until `take` says `false`; whether it never did. Takes a step
    /// `beside` for every eight numbers or so.
    pub(in super::super) fn for_each_cell(
        self,
        cells: u64,
        take: impl FnMut(&[u32]) -> bool,
        beside: &mut impl Beside,
    ) -> Result<bool, FilterError> {
        run_widely(EachCell { bytes: self, cells, take, beside })
    }

    #[inline(always)]
    fn each_cell(
        mut self,
        cells: u64,
        mut take: impl FnMut(&[u32]) -> bool,
        beside: &mut impl Beside,
    ) -> Result<bool, FilterError> {
        let (blocks, rest) = self.small.as_chunks::<BLOCK>();
        let (has, mut next) = (Wide::detect(), 0u64);
        let (mut list, mut places) = ([0; BLOCK], [0; BLOCK + 64]);
        for block in blocks {
            for (number, byte) in list.iter_mut().zip(block) {
                *number = u32::from(*byte);
            }
            let found = match has {
                Some(has) => wide::find_large(has, block, &mut places),
                None => find_large(block, &mut places),
            };
            self.add_narrow(&mut list, &places[..found]);
            let sum = match has {
                Some(has) => wide::sum(has, &mut list, next as u32, beside),
                None => sum(&mut list, next as u32, beside),
            };
            next += u64::from(sum);
            if next > cells {
                return Err(outside(format!("a cell beyond {cells}")));
            }
            if !take(&list) {
                return Ok(false);
            }
        }
        for (number, byte) in list.iter_mut().zip(rest) {
            *number = u32::from(*byte);
        }
        let found = find_large(rest, &mut places);
        self.add_narrow(&mut list, &places[..found]);
        let list = &mut list[..rest.len()];
        next += u64::from(sum(list, next as u32, beside));
        if next > cells {
            return Err(outside(format!("a cell beyond {cells}")));
        }
        Ok(list.is_empty() || take(list))
    }

    /// Adds what is beyond 255 to the large numbers at these places.
    #[inline(always)]
    fn add_narrow(&mut self, list: &mut [u32; BLOCK], places: &[u8]) {
        let [low, high, ..] = &mut self.large;
        for (place, more) in places.iter().zip(*low) {
            list[usize::from(*place)] += u32::from(*more);
        }
        for (place, more) in places.iter().zip(*high) {
            list[usize::from(*place)] += u32::from(*more) << 8;
        }
        *low = low.get(places.len()..).unwrap_or_default();
        *high = high.get(places.len()..).unwrap_or_default();
    }
}

/// Finds the large numbers among those of a block; says how many there are.
#[inline(always)]
pub(super) fn find_large(block: &[u8], places: &mut Places) -> usize {
    let mut found = 0;
    for (number, byte) in block.iter().take(BLOCK).enumerate() {
        places[found] = number as u8;
        found += usize::from(u64::from(*byte) == LARGE);
    }
    found
}

/// Turns gaps into cells, the first of which may be `next`; returns how far the cell after the last is from
/// there. Cells that do not fit are cut off.
#[inline(always)]
pub(super) fn sum(list: &mut [u32], next: u32, beside: &mut impl Beside) -> u32 {
    let (mut at, mut other) = (next, beside.clone());
    for group in list.chunks_mut(GROUP) {
        other.step();
        for cell in group {
            *cell = cell.wrapping_add(at);
            at = cell.wrapping_add(1);
        }
    }
    *beside = other;
    at.wrapping_sub(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_registers_find_and_add_up_the_same() {
        let Some(has) = Wide::detect() else { return };
        let mut random = 7u32;
        for one_in in [1u32, 2, 5, 20, 1000, u32::MAX] {
            let block: [u8; BLOCK] = std::array::from_fn(|_| {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if (random >> 8).is_multiple_of(one_in) { 255 } else { (random >> 24) as u8 }
            });
            let (mut a, mut b) = ([0; BLOCK + 64], [0; BLOCK + 64]);
            let found = find_large(&block, &mut a);
            assert_eq!(wide::find_large(has, &block, &mut b), found);
            assert_eq!(a[..found], b[..found]);
            for next in [0, 1000, u32::MAX - 70] {
                let (mut a, mut b) = (block.map(u32::from), block.map(u32::from));
                let end = sum(&mut a, next, &mut ());
                assert_eq!(wide::sum(has, &mut b, next, &mut ()), end);
                assert_eq!(a, b);
            }
        }
    }
}
