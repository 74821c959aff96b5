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

/// A list of uses, of which the first ones are taken off as they happen.
#[derive(Debug, Default)]
pub(super) struct Foresight {
    /// For each chunk, its places in the list.
    uses: HashMap<u64, VecDeque<u64>, FixedState>,
    announced: u64,
    /// Resident chunks by when they are needed.
    resident: BTreeSet<(u64, u32)>,
}

impl Foresight {
    /// Adds to the list.
    pub(super) fn expect(&mut self, identities: &[u64]) {
        for identity in identities {
            self.uses.entry(*identity).or_default().push_back(self.announced);
            self.announced += 1;
        }
    }

    /// Takes a use off the list.
    pub(super) fn use_up(&mut self, identity: u64) -> Forecast {
        let Some(places) = self.uses.get_mut(&identity) else { return Forecast::Unknown };
        places.pop_front();
        if let Some(&next) = places.front() {
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
