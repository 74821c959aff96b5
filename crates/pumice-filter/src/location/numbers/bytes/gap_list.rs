//! Gaps between the columns of a matrix as bytes, a piece of a row at a time: they go straight from the
//! columns to where they will be stored.

use super::{LARGE, put_large, wide};
use crate::location::numbers::gaps::Totals;
use crate::location::numbers::{BYTES, bytes_pay};
use crate::wide::Wide;
use std::ops::Range;

/// Gaps that are made at a time.
pub(super) const STEP: usize = 32;

/// Gaps as they come.
#[derive(Clone, Debug)]
pub(in crate::location) struct GapList {
    small: Vec<u8>,
    /// The large ones.
    large: Vec<u32>,
    wide: Option<Wide>,
}

impl GapList {
    /// With room for about `room` gaps.
    pub(in crate::location) fn new(room: usize) -> Self {
        let (small, large) = (room + STEP, room / 8 + STEP);
        let (small, large) = (Vec::with_capacity(small), Vec::with_capacity(large));
        Self { small, large, wide: Wide::detect() }
    }

    /// Appends the gaps before the columns in `range`, of which the first is `first`.
    #[inline(always)]
    pub(in crate::location) fn put(&mut self, columns: &[u32], range: Range<usize>, first: u32) {
        let mut at = range.start;
        let mut first = Some(first);
        while at < range.end {
            let len = (range.end - at).min(STEP);
            match neighbours(columns, at) {
                Some((lower, upper)) => {
                    self.put_piece(Piece { lower, upper, first: first.take(), len });
                }
                None => self.put_at_end(columns, at..at + len, first.take()),
            }
            at += len;
        }
    }

    #[inline(always)]
    fn put_piece(&mut self, piece: Piece<'_>) {
        match self.wide {
            Some(has) => wide::put_gaps(has, piece, &mut self.small, &mut self.large),
            None => put_gaps(piece, &mut self.small, &mut self.large),
        }
    }

    /// Where the list of columns has no more of them, before or behind.
    #[cold]
    fn put_at_end(&mut self, columns: &[u32], range: Range<usize>, first: Option<u32>) {
        let (mut lower, mut upper) = ([0; STEP], [0; STEP]);
        let len = range.len();
        for ((at, lower), upper) in range.zip(&mut lower).zip(&mut upper) {
            let column = |at: usize| columns.get(at).copied().unwrap_or(0);
            (*lower, *upper) = (column(at.wrapping_sub(1)), column(at));
        }
        self.put_piece(Piece { lower: &lower, upper: &upper, first, len });
    }

    /// How many there are.
    pub(in crate::location) fn count(&self) -> usize {
        self.small.len()
    }

    /// For how many there is room.
    pub(in crate::location) fn room(&self) -> usize {
        self.small.capacity()
    }

    /// Whether gaps like these shall be bytes, in a chunk of `cells` cells.
    pub(in crate::location) fn pays(&self, cells: u64) -> bool {
        bytes_pay(cells, self.small.len(), self.large.len())
    }

    /// Whether this is how gaps of a chunk of `cells` cells are written.
    pub(in crate::location) fn is_best(&self, cells: u64) -> bool {
        let (first, least) = (self.small.first(), self.large.first());
        // A number repeated has a shorter form.
        let constant = self.small.iter().all(|small| Some(small) == first)
            && self.large.iter().all(|large| Some(large) == least);
        let union = self.large.iter().fold(0, |union, large| union | large);
        !constant && self.pays(cells) && union >> 16 == 0
    }

    /// Sums and counts.
    #[inline(always)]
    pub(in crate::location) fn totals(&self) -> Totals {
        let (mut sum, mut zeros) = (0, 0);
        for part in self.small.chunks(1 << 12) {
            sum += u64::from(part.iter().map(|small| u32::from(*small)).sum::<u32>());
            zeros += u64::from(part.iter().map(|small| u32::from(*small == 0)).sum::<u32>());
        }
        // They are among the small ones as 255.
        let large = self.large.iter().map(|large| u64::from(*large)).sum::<u64>();
        sum += large - LARGE * self.large.len() as u64;
        Totals { count: self.small.len() as u64, sum, zeros }
    }

    /// The gaps.
    pub(in crate::location) fn gaps(&self) -> impl Iterator<Item = u32> {
        let mut large = self.large.iter();
        self.small.iter().map(move |small| match u64::from(*small) {
            LARGE => large.next().copied().unwrap_or(LARGE as u32),
            _ => u32::from(*small),
        })
    }

    /// Bytes of the stream, about.
    pub(in crate::location) fn len(&self) -> usize {
        16 + self.small.len() + 2 * self.large.len()
    }

    /// Appends the stream.
    #[inline(always)]
    pub(in crate::location) fn put_stream(&self, out: &mut Vec<u8>) {
        out.push(BYTES);
        out.extend_from_slice(&self.small);
        put_large(&self.large, LARGE, out);
    }
}

/// Columns, the ones before them, and how many of them are meant.
pub(super) struct Piece<'a> {
    pub(super) lower: &'a [u32; STEP],
    pub(super) upper: &'a [u32; STEP],
    /// The gap before the first, if it is no neighbour of the one before it.
    pub(super) first: Option<u32>,
    /// One at least.
    pub(super) len: usize,
}

/// As many columns from `at` on as are looked at together, and the ones before them.
#[inline(always)]
fn neighbours(columns: &[u32], at: usize) -> Option<(&[u32; STEP], &[u32; STEP])> {
    let (lower, upper) = (columns.get(at.wrapping_sub(1)..)?, columns.get(at..)?);
    Some((lower.first_chunk()?, upper.first_chunk()?))
}

/// Appends the gaps of a piece as bytes, and those that are large.
pub(super) fn put_gaps(piece: Piece<'_>, small: &mut Vec<u8>, large: &mut Vec<u32>) {
    let Piece { lower, upper, mut first, len } = piece;
    for (upper, lower) in upper.iter().zip(lower).take(len) {
        let gap = first.take().unwrap_or_else(|| upper.wrapping_sub(*lower).wrapping_sub(1));
        small.push(gap.min(LARGE as u32) as u8);
        large.extend(Some(gap).filter(|gap| u64::from(*gap) >= LARGE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_processor_makes_the_same_of_columns() {
        let columns: Vec<u32> = (0..400)
            .scan(0, |at, step| {
                *at += 1 + step * 7919 % 400;
                Some(*at)
            })
            .collect();
        for (start, len) in (0..columns.len()).zip((1..90).cycle()) {
            let range = start..columns.len().min(start + len);
            let [mut wide, mut narrow] = [(); 2].map(|()| GapList::new(0));
            narrow.wide = None;
            for list in [&mut wide, &mut narrow] {
                list.put(&columns, range.clone(), 300);
                list.put(&columns, range.clone(), 2);
            }
            assert_eq!((&wide.small, &wide.large), (&narrow.small, &narrow.large));
            let gaps = |first| {
                let pairs = columns[range.clone()].windows(2);
                std::iter::once(first).chain(pairs.map(|pair| pair[1] - pair[0] - 1))
            };
            assert!(wide.gaps().eq(gaps(300).chain(gaps(2))));
            let Totals { count, sum, zeros } = wide.totals();
            assert_eq!(
                (count, zeros),
                (wide.gaps().count() as u64, wide.gaps().filter(|gap| *gap == 0).count() as u64)
            );
            assert_eq!(sum, wide.gaps().map(u64::from).sum());
        }
    }
}
