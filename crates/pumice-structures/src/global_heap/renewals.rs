//! Counters of changes to collections, for their readers.
//!
//! Collections share counters by address, so no list of them is kept. A change of another
//! collection with the same counter costs a reader some work; a change of its own is never missed.
//! A writer adds to one collection at a time, and so disturbs few readers of others.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of counters.
const COUNTERS: usize = 32;

/// Counters.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts([u64; COUNTERS]);

/// Counters that are read and raised without a lock.
#[derive(Default)]
pub(super) struct Renewals([AtomicU64; COUNTERS]);

/// The counter of an address: neighbours, which are often read together, have different ones.
fn counter(address: u64) -> usize {
    let mixed = (address >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 32) as usize % COUNTERS
}

impl Counts {
    /// The counter of the collection at `address`.
    pub(super) fn of(&self, address: u64) -> u64 {
        self.0[counter(address)]
    }

    /// Counts a change.
    pub(super) fn add(&mut self, address: u64) {
        self.0[counter(address)] += 1;
    }
}

impl Renewals {
    /// As [`Counts::of`].
    pub(super) fn of(&self, address: u64) -> u64 {
        self.0[counter(address)].load(Ordering::Acquire)
    }

    /// Counts a change.
    pub(super) fn add(&self, address: u64) {
        self.0[counter(address)].fetch_add(1, Ordering::AcqRel);
    }

    /// All counters as they are now.
    pub(super) fn now(&self) -> Counts {
        Counts(std::array::from_fn(|number| self.0[number].load(Ordering::Acquire)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collection_that_changes_is_noticed_and_is_in_the_way_of_few_others() {
        let (renewals, changed) = (Renewals::default(), 0x1_0000);
        let before = renewals.now();
        renewals.add(changed);
        assert_ne!(renewals.of(changed), before.of(changed));
        let others = (0..1000).map(|number| 0x20_0000 + number * 0x1_0000);
        let noticed = others.filter(|&other| renewals.of(other) != before.of(other)).count();
        assert!(noticed < 100, "{noticed} of 1000");
    }
}
