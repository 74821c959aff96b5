//! Announced uses: what is needed when, and which resident chunk is needed latest.

use std::collections::{BTreeSet, VecDeque};

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// What is known of a chunk that has just been used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forecast {
    /// It was not announced.
    Unknown,
    /// It will be needed at this place of the list.
    Next(u64),
    /// That was the last use announced.
    Never,
}

/// Lists of uses, one for each dataset, of which those that have happened are taken off.
#[derive(Debug, Default)]
pub(super) struct Foresight {
    /// For each chunk, its places among all uses announced.
    uses: HashMap<u64, VecDeque<u64>, FixedState>,
    /// For each dataset, the chunks announced, and how many of these uses are still to come.
    lists: HashMap<u64, (Vec<u64>, usize), FixedState>,
    announced: u64,
    /// Resident chunks by when they are needed.
    resident: BTreeSet<(u64, u32)>,
}

impl Foresight {
    /// Puts a list in the place of the one that a dataset had.
    pub(super) fn expect(&mut self, dataset: u64, identities: &[u64]) {
        if let Some((before, _)) = self.lists.remove(&dataset) {
            before.iter().for_each(|identity| drop(self.uses.remove(identity)));
        }
        for identity in identities {
            self.uses.entry(*identity).or_default().push_back(self.announced);
            self.announced += 1;
        }
        if !identities.is_empty() {
            self.lists.insert(dataset, (identities.to_vec(), identities.len()));
        }
    }

    /// Whether nothing is expected any more.
    pub(super) fn is_over(&self) -> bool {
        self.lists.is_empty()
    }

    /// Takes a use off the list.
    pub(super) fn use_up(&mut self, dataset: u64, identity: u64) -> Forecast {
        let Some(places) = self.uses.get_mut(&identity) else { return Forecast::Unknown };
        places.pop_front();
        let next = places.front().copied();
        if let Some((_, left)) = self.lists.get_mut(&dataset) {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.lists.remove(&dataset);
            }
        }
        if let Some(next) = next {
            return Forecast::Next(next);
        }
        self.uses.remove(&identity);
        Forecast::Never
    }

    /// When a chunk is needed.
    pub(super) fn next(&self, identity: u64) -> Option<u64> {
        self.uses.get(&identity)?.front().copied()
    }

    pub(super) fn remember(&mut self, next: u64, id: u32) {
        self.resident.insert((next, id));
    }

    pub(super) fn forget(&mut self, next: u64, id: u32) {
        self.resident.remove(&(next, id));
    }

    /// Resident chunks, the one needed latest first.
    pub(super) fn latest_first(&self) -> impl Iterator<Item = u32> + '_ {
        self.resident.iter().rev().map(|&(_, id)| id)
    }
}
