//! Datasets that are read in passes: each chunk the same number of times until it is complete.
//!
//! Columns, slabs, batches and shuffled samples are read like that. Where it is so, it is known how
//! often each chunk will still be read, and who is nearest to the end leaves first. Of those equally
//! near the one read last leaves first: in a loop it is the last to come again.
//!
//! A dataset is trusted to be read in passes when many chunks in a row were complete after the same
//! number of reads, more than one; it is soon no longer trusted when chunks differ.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// Equal chunks that earn trust, and the most that is kept.
const TRUSTED: u8 = 16;
const MOST: u8 = 32;
/// What a chunk that differs costs.
const LOSS: u8 = 4;
/// Datasets known at once; beyond that all is learnt anew.
const DATASETS: usize = 1 << 16;

#[derive(Clone, Copy, Debug)]
struct Pattern {
    /// How many reads make a chunk complete.
    length: u16,
    trust: u8,
}

impl Pattern {
    fn note(&mut self, same: bool) {
        self.trust =
            if same { (self.trust + 1).min(MOST) } else { self.trust.saturating_sub(LOSS) };
    }
}

/// A chunk's place in the order: reads left, and when it was read last.
pub(super) type Rank = (u16, Reverse<u64>);

/// What is known of datasets, and the resident chunks of those that are trusted.
#[derive(Debug, Default)]
pub(super) struct Passes {
    datasets: HashMap<u64, Pattern, FixedState>,
    order: BTreeSet<(Rank, u32)>,
    clock: u64,
}

impl Passes {
    /// Notes the `reads`-th read of a chunk since it was last complete, which may make it so.
    /// Tells how many are to come, if the dataset is trusted.
    pub(super) fn note(&mut self, dataset: u64, reads: u16, done: bool) -> Option<u16> {
        if done {
            if self.datasets.len() >= DATASETS {
                self.datasets.clear();
            }
            let new = Pattern { length: reads, trust: 0 };
            let pattern = self.datasets.entry(dataset).or_insert(new);
            pattern.note(pattern.length == reads);
            if pattern.trust == 0 {
                *pattern = new;
            }
        }
        let pattern = self.datasets.get_mut(&dataset)?;
        if reads > pattern.length {
            pattern.note(false);
        }
        let trusted = pattern.trust >= TRUSTED && pattern.length > 1 && reads <= pattern.length;
        trusted.then(|| pattern.length - reads)
    }

    /// The rank of a chunk that has just been read.
    pub(super) fn rank(&mut self, left: u16) -> Rank {
        self.clock += 1;
        (left, Reverse(self.clock))
    }

    pub(super) fn insert(&mut self, rank: Rank, id: u32) {
        self.order.insert((rank, id));
    }

    pub(super) fn remove(&mut self, rank: Rank, id: u32) {
        self.order.remove(&(rank, id));
    }

    /// Resident chunks, the one to leave first first.
    pub(super) fn coldest(&self) -> impl Iterator<Item = u32> + '_ {
        self.order.iter().map(|&(_, id)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(passes: &mut Passes, reads: u16) -> Vec<Option<u16>> {
        (1..=reads).map(|read| passes.note(7, read, read == reads)).collect()
    }

    #[test]
    fn equal_passes_earn_trust_and_different_ones_lose_it() {
        let mut passes = Passes::default();
        (0..TRUSTED).for_each(|_| drop(pass(&mut passes, 3)));
        assert_eq!(pass(&mut passes, 3), [Some(2), Some(1), Some(0)]);
        assert_eq!(passes.note(8, 1, false), None, "another dataset");
        pass(&mut passes, 3);
        pass(&mut passes, 2);
        assert_eq!(passes.note(7, 1, false), None);
        (0..20).for_each(|_| drop(pass(&mut passes, 2)));
        assert_eq!(passes.note(7, 1, false), Some(1));
    }

    #[test]
    fn chunks_read_once_are_no_pattern() {
        let mut passes = Passes::default();
        (0..100).for_each(|_| assert_eq!(pass(&mut passes, 1), [None]));
    }
}
