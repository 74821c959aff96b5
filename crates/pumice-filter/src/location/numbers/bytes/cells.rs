//! Gaps in bytes straight to the cells between which they lie, block by block.
//!
//! Large numbers are found and added to all places where they belong before anything is summed up, so
//! that no number has to be decided about by itself.

use super::{Bytes, LARGE, wide};
use crate::FilterError;
use crate::location::compact::outside;
use crate::location::numbers::{BLOCK, Beside};
use pumice_wide::{Wide, Work, run_widely};

/// Numbers for which a step is taken beside.
pub(super) const GROUP: usize = 8;

/// Room for the places of all large numbers of a block, and for excess entries.
pub(super) type Places = [u8; BLOCK + 64];

/// The next bytes of a plane: as many as a block can have large numbers, and some that are read with them.
pub(super) type Plane = [u8; BLOCK + GROUP];

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

    /// Visits the cells whose gaps the numbers are; the numbers are narrow, and all cells are below
    /// `cells`, which is below 2^32. Works block by block, until `take` returns `false`; returns
    /// whether it never did. Takes a step `beside` for every eight numbers or so.
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
        let (mut list, mut padded) = ([0; BLOCK], [[0; BLOCK + GROUP]; 2]);
        for block in blocks {
            let [low, high] = &mut padded;
            let planes = [plane(self.large[0], low), plane(self.large[1], high)];
            let (sum, found) = match has {
                Some(has) => wide::add_up(has, block, planes, next as u32, &mut list, beside),
                None => add_up(block, planes, next as u32, &mut list, beside),
            };
            self.skip_large(found);
            next += u64::from(sum);
            if next > cells {
                return Err(outside(format!("a cell beyond {cells}")));
            }
            if !take(&list) {
                return Ok(false);
            }
        }
        let [low, high] = &mut padded;
        let planes = [plane(self.large[0], low), plane(self.large[1], high)];
        let list = &mut list[..rest.len()];
        next += u64::from(add_up(rest, planes, next as u32, list, beside).0);
        if next > cells {
            return Err(outside(format!("a cell beyond {cells}")));
        }
        Ok(list.is_empty() || take(list))
    }

    /// Skips large numbers, which are narrow.
    #[inline(always)]
    fn skip_large(&mut self, found: usize) {
        for plane in &mut self.large[..2] {
            *plane = plane.get(found..).unwrap_or_default();
        }
    }
}

/// The next bytes of a plane, with zeros after its end.
#[inline(always)]
fn plane<'a>(rest: &'a [u8], padded: &'a mut Plane) -> &'a Plane {
    match rest.first_chunk() {
        Some(plane) => plane,
        None => {
            padded.fill(0);
            padded.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            padded
        }
    }
}

/// Turns a block of at most [`BLOCK`] gaps into cells, the first of which may be `next`. The planes
/// have the excess of large gaps over 255. Returns the distance from `next` to the cell after the
/// last, and how many gaps were large.
#[inline(always)]
pub(super) fn add_up(
    block: &[u8],
    [low, high]: [&Plane; 2],
    next: u32,
    list: &mut [u32],
    beside: &mut impl Beside,
) -> (u32, usize) {
    let mut places = [0; BLOCK + 64];
    for (number, byte) in list.iter_mut().zip(block) {
        *number = u32::from(*byte);
    }
    let found = find_large(block, &mut places);
    for (place, (low, high)) in places[..found].iter().zip(low.iter().zip(high)) {
        list[usize::from(*place)] += u32::from(*low) | u32::from(*high) << 8;
    }
    (sum(list, next, beside), found)
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
        let mut byte = || {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 24) as u8
        };
        for one_in in [1u8, 2, 5, 20, 255] {
            let block: [u8; BLOCK] =
                std::array::from_fn(|_| if byte().is_multiple_of(one_in) { 255 } else { byte() });
            let (mut a, mut b) = ([0; BLOCK + 64], [0; BLOCK + 64]);
            let found = find_large(&block, &mut a);
            assert_eq!(wide::find_large(has, &block, &mut b), found);
            assert_eq!(a[..found], b[..found]);
            let planes: [Plane; 2] = std::array::from_fn(|_| std::array::from_fn(|_| byte()));
            let [low, high] = &planes;
            for (next, planes) in
                [(0, [low, high]), (1000, [low, &[0; BLOCK + GROUP]]), (u32::MAX - 70, [high, low])]
            {
                let (mut a, mut b) = ([1; BLOCK], [2; BLOCK]);
                let end = add_up(&block, planes, next, &mut a, &mut ());
                assert_eq!(wide::add_up(has, &block, planes, next, &mut b, &mut ()), end);
                assert_eq!((a, end.1), (b, found));
            }
        }
    }

    #[test]
    fn every_large_number_gets_its_own_bytes() {
        let mut block = [3; BLOCK];
        let at = [0, 1, 7, 8, 200, 254, 255];
        at.iter().for_each(|at| block[*at] = 255);
        let low: Plane = std::array::from_fn(|number| (number % 200) as u8 + 1);
        let high: Plane = std::array::from_fn(|number| (number % 100) as u8 * 2);
        let mut list = [0; BLOCK];
        let (_, found) = add_up(&block, [&low, &high], 0, &mut list, &mut ());
        let gap = |number: usize| match at.iter().position(|at| *at == number) {
            Some(large) => 255 + large as u32 + 1 + ((2 * large as u32) << 8),
            None => 3,
        };
        let mut next = 0;
        let cells = std::array::from_fn(|number| {
            next += gap(number) + 1;
            next - 1
        });
        assert_eq!((list, found), (cells, at.len()));
    }
}
