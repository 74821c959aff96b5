//! Collects runs that come in any order, in memory proportional to the result.

use super::CellSet;
use super::bitmap::{Bitmap, set_run};
use super::builder::{Builder, is_small, most_runs};
use super::operate::from_words;
use super::run_list::Entry;
use crate::Run;

/// Takes runs in any order, overlapping or not.
pub(crate) enum RunCollector {
    Runs { cells: u64, list: Vec<Run> },
    Bits { cells: u64, words: Vec<u64> },
}

impl CellSet {
    /// A collector that will be given about `runs` runs of a chunk of `cells`.
    pub(crate) fn collect_runs(cells: u64, runs: u64) -> RunCollector {
        if is_small(cells) && runs > most_runs(cells) as u64 {
            return RunCollector::Bits { cells, words: vec![0; cells.div_ceil(64) as usize] };
        }
        RunCollector::Runs { cells, list: Vec::with_capacity(runs as usize) }
    }

    /// The most bytes that collecting `runs` runs and the set made of them take.
    pub(crate) fn most_bytes(cells: u64, runs: u64) -> u64 {
        let entry = if is_small(cells) { size_of::<Entry<u32>>() } else { size_of::<Entry<u64>>() };
        let each = (size_of::<Run>() + entry) as u64;
        let listed = runs.saturating_mul(each);
        if is_small(cells) { listed.min(2 * Bitmap::bytes(cells)) } else { listed }
    }
}

impl RunCollector {
    /// Adds a run that lies inside the chunk.
    #[inline]
    pub(crate) fn add(&mut self, run: Run) {
        match self {
            Self::Runs { list, .. } => list.push(run),
            Self::Bits { words, .. } => set_run(words, run),
        }
    }

    pub(crate) fn finish(self) -> CellSet {
        match self {
            Self::Bits { cells, words } => from_words(cells, words),
            Self::Runs { cells, mut list } => {
                if !list.is_sorted() {
                    list.sort_unstable();
                }
                let mut builder = Builder::new(cells);
                builder.reserve(list.len());
                list.into_iter().for_each(|run| builder.add(run));
                builder.finish()
            }
        }
    }
}
