//! Collects runs that come in any order, in memory proportional to the result.

use super::CellSet;
use super::bitmap::{Bitmap, set_run};
use super::builder::{Builder, is_small, most_runs};
use super::operate::from_words;
use super::run_list::Entry;
use crate::Run;

/// Collects runs in any order, overlapping or not.
///
/// Runs that ascend are taken as they come. When one does not, the rest goes to a bitmap if that is
/// quicker than sorting, else to a list.
pub(crate) struct RunCollector {
    cells: u64,
    /// About how many runs there will be.
    runs: u64,
    store: Store,
}

enum Store {
    Ascending(Builder),
    List(Vec<Run>),
    Bits(Vec<u64>),
}

impl CellSet {
    /// A collector that will be given about `runs` runs of a chunk of `cells`.
    pub(crate) fn collect_runs(cells: u64, runs: u64) -> RunCollector {
        if is_small(cells) && runs > most_runs(cells) as u64 {
            return RunCollector { cells, runs, store: Store::Bits(no_bits(cells)) };
        }
        let mut builder = Builder::new(cells);
        builder.reserve(usize::try_from(runs).unwrap_or(0));
        RunCollector { cells, runs, store: Store::Ascending(builder) }
    }

    /// The most bytes that collecting `runs` runs and the set made of them take.
    pub(crate) fn most_bytes(cells: u64, runs: u64) -> u64 {
        let entry = if is_small(cells) { size_of::<Entry<u32>>() } else { size_of::<Entry<u64>>() };
        let each = (size_of::<Run>() + entry) as u64;
        let listed = runs.saturating_mul(each);
        if is_small(cells) { listed.min(2 * Bitmap::bytes(cells)) } else { listed }
    }
}

fn no_bits(cells: u64) -> Vec<u64> {
    vec![0; cells.div_ceil(64) as usize]
}

impl RunCollector {
    /// Adds a run that lies inside the chunk.
    #[inline]
    pub(crate) fn add(&mut self, run: Run) {
        match &mut self.store {
            Store::Ascending(builder) if builder.takes(run) => builder.add(run),
            Store::Ascending(_) => self.add_unsorted(run),
            Store::List(list) => list.push(run),
            Store::Bits(words) => set_run(words, run),
        }
    }

    #[cold]
    fn add_unsorted(&mut self, run: Run) {
        let cells = self.cells;
        // Going through all words costs about as much as sorting a quarter as many runs.
        let store = if is_small(cells) && cells / 256 <= self.runs {
            Store::Bits(no_bits(cells))
        } else {
            Store::List(Vec::new())
        };
        if let Store::Ascending(builder) = std::mem::replace(&mut self.store, store) {
            builder.finish().for_each_run(|run| self.add(run));
        }
        self.add(run);
    }

    pub(crate) fn finish(self) -> CellSet {
        match self.store {
            Store::Ascending(builder) => builder.finish(),
            Store::Bits(words) => from_words(self.cells, words),
            Store::List(mut list) => {
                list.sort_unstable();
                let mut builder = Builder::new(self.cells);
                builder.reserve(list.len());
                list.into_iter().for_each(|run| builder.add(run));
                builder.finish()
            }
        }
    }
}
