//! One pass over scattered cells of a matrix: the gaps between them, and the counts for the length
//! of their plain form.
//!
//! Rows of scattered cells have a few cells each, so a branch for each row, or for each cell that
//! may be the first of its row, is often mispredicted. Thirty-two cells are divided and compared at
//! a time; then only the first cells of rows are looked at, with branches that are hardly ever
//! taken.

use super::breaks::{STEP, differences};
use pumice_space::Division;
use pumice_wide::{Wide, Work};

/// Cells to be looked at, and where the gap before each is appended.
pub(super) struct Scan<'a> {
    pub(super) rows: Rows<'a>,
    pub(super) gaps: &'a mut Vec<u32>,
}

/// Cells of a matrix, which ascend.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a> {
    pub(super) list: &'a [u32],
    /// The cells of a row, and the division by that.
    pub(super) width: u32,
    pub(super) division: Division,
}

/// The result of the pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Scanned {
    /// Rows that go on where the one before ended.
    pub(super) touching: u64,
    /// Blocks that go on in the next row, of rows that equal the one before.
    pub(super) continued: u64,
    /// Whether two different rows were seen, so that the set is no regular hyperslab. There may be
    /// such rows all the same.
    pub(super) irregular: bool,
}

impl Work for Scan<'_> {
    type Output = Scanned;

    #[inline(always)]
    fn run(self) -> Scanned {
        let Self { rows, gaps } = self;
        let Rows { list, width, division } = rows;
        let wide = Wide::detect();
        let Some((&first, rest)) = list.split_first() else { return Scanned::default() };
        gaps.push(first);
        let mut seen = Seen { first, start: 0, all: Scanned::default() };
        let mut at = 1;
        let pairs = list.as_chunks::<STEP>().0.iter().zip(rest.as_chunks::<STEP>().0);
        for (lower, upper) in pairs {
            // A loop, as closures would be compiled apart, for any processor.
            let (mut steps, mut columns, mut least) = ([0; STEP], [0; STEP], [0; STEP]);
            for at in 0..STEP {
                steps[at] = upper[at].wrapping_sub(lower[at]).wrapping_sub(1);
                let row = division.of(upper[at]).0 as u32;
                columns[at] = upper[at].wrapping_sub(row.wrapping_mul(width));
                least[at] = columns[at].min(steps[at]);
            }
            gaps.extend_from_slice(&steps);
            // The first of a row has no more cells of its row before it than lie between it and the last.
            let mut firsts = !differences(wide, &columns, &least);
            while firsts != 0 {
                let here = firsts.trailing_zeros() as usize;
                seen = seen.begin(rows, at + here, upper[here], lower[here]);
                firsts &= firsts - 1;
            }
            at += STEP;
        }
        for (at, pair) in (at..).zip(list[at - 1..].windows(2)) {
            gaps.push(pair[1].wrapping_sub(pair[0]).wrapping_sub(1));
            if division.of(pair[0]).0 != division.of(pair[1]).0 {
                seen = seen.begin(rows, at, pair[1], pair[0]);
            }
        }
        seen.all
    }
}

impl Rows<'_> {
    /// The number of blocks of the row at `above` that go on in the row at `below`.
    #[cold]
    fn compare(self, above: usize, below: usize) -> u64 {
        let (above, rest) = (&self.list[above..below], &self.list[below..]);
        let row = |cell: &u32| self.division.of(*cell).0;
        let moved = |(above, below): (&u32, &u32)| below.wrapping_sub(*above) == self.width;
        let same = rest.len() >= above.len() && above.iter().zip(rest).all(moved);
        let longer =
            rest.get(above.len()).is_some_and(|next| rest.first().map(row) == Some(row(next)));
        if !same || longer {
            return 0;
        }
        1 + above.windows(2).filter(|pair| pair[1] - pair[0] != 1).count() as u64
    }
}

/// The rows that were seen; as a value, which stays in registers.
#[derive(Clone, Copy)]
struct Seen {
    /// The first cell of the last row, and its place.
    first: u32,
    start: usize,
    all: Scanned,
}

impl Seen {
    /// The result for a row that begins at a place with `cell`, where the one before ended with
    /// `last`.
    #[inline(always)]
    fn begin(mut self, rows: Rows<'_>, at: usize, cell: u32, last: u32) -> Self {
        let step = cell.wrapping_sub(self.first);
        self.all.touching += u64::from(last.wrapping_add(1) == cell);
        // Less than a row further, and not in the same row: in another column.
        self.all.irregular |= step < rows.width;
        if step == rows.width {
            self.all.continued += rows.compare(self.start, at);
        }
        (self.first, self.start) = (cell, at);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use pumice_wide::run_widely;

    /// The result computed row by row from a matrix.
    fn model(matrix: &[Vec<bool>]) -> Scanned {
        let mut seen = Scanned::default();
        let flat: Vec<bool> = matrix.concat();
        let width = flat.len() / matrix.len().max(1);
        for (number, row) in matrix.iter().enumerate() {
            let starts = flat[number * width] && number > 0 && flat[number * width - 1];
            seen.touching += u64::from(starts);
            if number > 0 && *row == matrix[number - 1] {
                let blocks = row.chunk_by(|a, b| a == b).filter(|same| same[0]);
                seen.continued += blocks.count() as u64;
            }
        }
        seen
    }

    proptest! {
        #[test]
        fn rows_are_found_and_compared_in_any_matrix(
            width in 1usize..90,
            patterns in proptest::collection::vec(any::<u64>(), 1..4),
            choices in proptest::collection::vec((0usize..8, 0u32..4), 1..60),
        ) {
            let matrix: Vec<Vec<bool>> = choices.iter().map(|&(choice, thin)| {
                let pattern = patterns.get(choice).copied().unwrap_or(0);
                let bit = |at: usize| {
                    let spread = (at as u64 + 1).wrapping_mul(pattern | 1) ^ pattern;
                    pattern != 0 && spread >> 17 & ((1 << thin) - 1) == 0
                };
                (0..width).map(bit).collect()
            }).collect();
            let flat: Vec<bool> = matrix.concat();
            let list: Vec<u32> = (0..flat.len() as u32).filter(|at| flat[*at as usize]).collect();
            let rows = Rows { list: &list, width: width as u32, division: Division::by(width as u64) };
            let mut gaps = Vec::new();
            let found = run_widely(Scan { rows, gaps: &mut gaps });
            let mut narrow = Vec::new();
            prop_assert_eq!(Scan { rows, gaps: &mut narrow }.run(), found);
            prop_assert_eq!(&gaps, &narrow);
            let wanted = model(&matrix);
            prop_assert_eq!((found.touching, found.continued), (wanted.touching, wanted.continued));
            let defined: Vec<&Vec<bool>> = matrix.iter().filter(|row| row.contains(&true)).collect();
            prop_assert!(!found.irregular || defined.windows(2).any(|pair| pair[0] != pair[1]));
            let mut next = 0;
            for (gap, cell) in gaps.iter().zip(&list) {
                prop_assert_eq!(next + gap, *cell);
                next = cell + 1;
            }
            prop_assert_eq!(gaps.len(), list.len());
        }
    }
}
