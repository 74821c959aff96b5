//! The objects or datasets of a file in memory, by address: each once, for all handles.
//!
//! Invariant: a handle is given out by the list alone, or copied from one that is out, and the
//! list's lock is held whenever it gives one out. So under the lock, an entry that is
//! [unused](Listed::is_used) has no handle, and gets none before the lock is released. Handles are
//! counted here and nowhere else.

use std::collections::BTreeMap;
use std::collections::btree_map::{Entry, Iter, Values};
use std::sync::Arc;

/// Entries in memory, by address.
pub(super) struct Listed<T> {
    by_address: BTreeMap<u64, Arc<T>>,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self { by_address: BTreeMap::new() }
    }
}

impl<T> Listed<T> {
    /// The list's own handle.
    pub(super) fn get(&self, address: u64) -> Option<&Arc<T>> {
        self.by_address.get(&address)
    }

    /// Whether there is an entry at an address.
    pub(super) fn contains(&self, address: u64) -> bool {
        self.by_address.contains_key(&address)
    }

    /// Whether there is a handle besides the list's, and the caller's, of which there are `ours`.
    pub(super) fn is_used(&self, address: u64, ours: usize) -> bool {
        self.by_address.get(&address).is_some_and(|entry| Arc::strong_count(entry) > 1 + ours)
    }

    /// The map's entry for an address.
    pub(super) fn entry(&mut self, address: u64) -> Entry<'_, u64, Arc<T>> {
        self.by_address.entry(address)
    }

    /// Adds an entry; returns the one that was there.
    pub(super) fn insert(&mut self, address: u64, entry: Arc<T>) -> Option<Arc<T>> {
        self.by_address.insert(address, entry)
    }

    /// Removes an entry.
    pub(super) fn remove(&mut self, address: u64) -> Option<Arc<T>> {
        self.by_address.remove(&address)
    }

    /// Removes unused entries that `may_go`, and returns them, because they may have to be dropped
    /// without the lock.
    pub(super) fn remove_unused(&mut self, may_go: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let goes = |_: &u64, entry: &mut Arc<T>| Arc::strong_count(entry) == 1 && may_go(entry);
        self.by_address.extract_if(.., goes).map(|(_, entry)| entry).collect()
    }

    /// Unused entries: addresses, and handles for the caller.
    pub(super) fn unused(&self) -> Vec<(u64, Arc<T>)> {
        let unused = self.by_address.iter().filter(|(_, entry)| Arc::strong_count(entry) == 1);
        unused.map(|(&address, entry)| (address, entry.clone())).collect()
    }

    /// The number of entries.
    pub(super) fn len(&self) -> usize {
        self.by_address.len()
    }

    /// All entries, by address.
    pub(super) fn iter(&self) -> Iter<'_, u64, Arc<T>> {
        self.by_address.iter()
    }

    /// All entries.
    pub(super) fn values(&self) -> Values<'_, u64, Arc<T>> {
        self.by_address.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_uses_goes() {
        let mut list = Listed::default();
        for address in 0..4_u64 {
            list.insert(address, Arc::new(address));
        }
        let held = list.get(1).cloned().unwrap();
        assert!(list.is_used(1, 0) && !list.is_used(1, 1) && !list.is_used(2, 0));
        assert!(!list.is_used(9, 0), "nobody uses what is not there");
        let unused: Vec<u64> = list.unused().into_iter().map(|(address, _)| address).collect();
        assert_eq!(unused, [0, 2, 3]);
        let gone = list.remove_unused(|&number| number != 3);
        assert_eq!(gone.iter().map(|number| **number).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(list.iter().map(|(&address, _)| address).collect::<Vec<_>>(), [1, *held + 2]);
    }
}
