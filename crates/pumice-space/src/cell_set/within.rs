//! The cells of a set that lie in given stretches, one after another: a window of a chunk.

use super::{CellSet, Form};
use crate::Run;
use std::ops::Range;

/// A run that is expected to have fewer defined cells than that is no longer than a few cells of the list.
const FEW: u64 = 4;

/// Cells of a run whose bits are counted one word after another.
const NARROW: u64 = 192;

impl CellSet {
    /// An empty list with room for about as many cells as the set has among `among` cells of its
    /// chunk.
    pub fn list_for(&self, among: u64) -> Vec<u32> {
        // A few more, as bits are written some at a time.
        Vec::with_capacity(self.expected_among(among) + 64)
    }

    /// About how many cells the set has among `among` cells of its chunk, and some more, as they are scattered unevenly.
    ///
    /// ```
    /// use pumice_space::CellSet;
    ///
    /// let set = CellSet::from_list(1000, (0..500).map(|at| 2 * at).collect())?;
    /// assert_eq!(set.expected_among(80), 45);
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn expected_among(&self, among: u64) -> usize {
        let share = u128::from(self.len) * u128::from(among) / u128::from(self.cells.max(1));
        (share + share / 8).min(u128::from(self.len)) as usize
    }

    /// Appends the cells that lie in `runs`, which ascend and do not overlap, to a list, and shows the positions of
    /// the values of each run; an empty range if it has none. The chunk has fewer than 2^32 cells.
    ///
    /// Cost: a seek for each stretch, and the result.
    ///
    /// ```
    /// use pumice_space::{CellSet, Run};
    ///
    /// let set = CellSet::from_list(100, vec![3, 50, 52, 90])?;
    /// let runs = [Run { start: 0, len: 3 }, Run { start: 10, len: 45 }, Run { start: 80, len: 20 }];
    /// let (mut cells, mut positions) = (Vec::new(), Vec::new());
    /// set.list_within(runs, &mut cells, |range| positions.push(range));
    /// assert_eq!(cells, [50, 52, 90]);
    /// assert_eq!(positions[1..], [1..3, 3..4]);
    /// assert!(positions[0].is_empty());
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    #[inline(always)]
    pub fn list_within(
        &self,
        runs: impl IntoIterator<Item = Run>,
        list: &mut Vec<u32>,
        mut visit: impl FnMut(Range<usize>),
    ) {
        // Cells beyond the chunk are in no set.
        let inside = |at: u64| at.min(self.cells);
        let runs = runs.into_iter().map(|run| (inside(run.start), inside(run.end())));
        let mut hint = 0;
        match &self.form {
            Form::Full => runs.for_each(|(start, end)| {
                list.extend(start as u32..end as u32);
                visit(start as usize..end as usize);
            }),
            Form::Cells(cells) => {
                let mut found = list.len();
                for (start, end) in runs {
                    // Chunks have fewer than 2^32 cells: no overflow.
                    let few = (end - start) * self.len < self.cells * FEW;
                    let range = match few {
                        true => cells.seek_few(start, end, hint),
                        false => cells.seek_run(start, end, hint),
                    };
                    // The next run is sought from there on; where this one ends need not be known by then.
                    hint = if few { range.start } else { range.end };
                    cells.put(range.clone(), found, list);
                    found += range.len();
                    visit(range);
                }
                list.truncate(found);
            }
            Form::Bitmap(bits) => {
                // Where the run before has ended, its rank is known.
                let (mut at, mut before) = (0, 0);
                let mut found = list.len();
                for (start, end) in runs {
                    let narrow = (end - start <= NARROW).then(|| bits.count_between(start, end));
                    // Of a narrow window, most rows have nothing.
                    if narrow == Some(0) {
                        visit(0..0);
                        continue;
                    }
                    let from = if start == at { before } else { bits.rank(start) as usize };
                    let to = match narrow {
                        Some(count) => from + count,
                        None => bits.rank(end) as usize,
                    };
                    bits.list_between(start, end, found, to - from, list);
                    found += to - from;
                    (at, before) = (end, to);
                    visit(from..to);
                }
                list.truncate(found);
            }
            Form::Small(held) => runs.for_each(|(start, end)| {
                let from = held.rank_near(start, hint).0 as usize;
                let mut to = from;
                hint = held.for_each_within(start, end, hint, |run, _| {
                    to += run.len as usize;
                    list.extend(run.start as u32..run.end() as u32);
                });
                visit(from..to);
            }),
            Form::Large(held) => runs.for_each(|(start, end)| {
                let from = held.rank_near(start, hint).0 as usize;
                let mut to = from;
                hint = held.for_each_within(start, end, hint, |run, _| {
                    to += run.len as usize;
                    list.extend(run.start as u32..run.end() as u32);
                });
                visit(from..to);
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Sets of every form: lists, runs, bitmaps, all cells and none.
        #[test]
        fn cells_in_runs_are_those_that_a_look_at_each_finds(
            cells in 1u64..3000,
            share in prop::sample::select(vec![0u64, 1, 20, 300, 700, 1000]),
            length in 1u64..40,
            seed in any::<u64>(),
            cuts in prop::collection::vec(0u64..3100, 0..24),
        ) {
            let drawn = |at: u64| (at / length).wrapping_add(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54;
            let defined: Vec<u64> = (0..cells).filter(|at| drawn(*at) < share * 1024 / 1000).collect();
            let set = CellSet::from_sorted_cells(cells, defined.iter().copied()).unwrap();
            let mut cuts = cuts;
            cuts.sort_unstable();
            let runs: Vec<Run> = cuts
                .chunks_exact(2)
                .map(|pair| Run { start: pair[0], len: pair[1] - pair[0] })
                .collect();
            let mut list = vec![7];
            let mut positions = Vec::new();
            set.list_within(runs.iter().copied(), &mut list, |range| positions.push(range));
            let mut expected = vec![7];
            for (run, range) in runs.iter().zip(&positions) {
                let inside: Vec<u64> =
                    defined.iter().copied().filter(|at| (run.start..run.end()).contains(at)).collect();
                prop_assert_eq!(range.len(), inside.len());
                let named: Vec<u64> = range.clone().filter_map(|at| set.select(at as u64)).collect();
                prop_assert_eq!(&named, &inside);
                expected.extend(inside.iter().map(|&at| at as u32));
            }
            prop_assert_eq!(positions.len(), runs.len());
            prop_assert_eq!(list, expected);
        }
    }
}
