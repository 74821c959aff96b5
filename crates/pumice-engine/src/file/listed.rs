//! What a file has in memory, by address: each once, for all who use it.
//!
//! Invariant: a handle is given out only by the list, or copied from one that is out. The lock around the list is held
//! whenever it gives one out. So who holds the lock and finds an entry [unused](Listed::is_used) knows that nobody has
//! it, and that nobody gets it before the lock is released. This is the one place that counts handles.

use std::collections::BTreeMap;
use std::collections::btree_map::{Entry, Iter, Values};
use std::sync::Arc;

/// Things that are in memory, by address.
pub(super) struct Listed<T> {
    by_address: BTreeMap<u64, Arc<T>>,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self { by_address: BTreeMap::new() }
    }
}

impl<T> Listed<T> {
    /// A handle of the list's own.
    pub(super) fn get(&self, address: u64) -> Option<&Arc<T>> {
        self.by_address.get(&address)
    }

    /// Whether there is something at an address.
    pub(super) fn contains(&self, address: u64) -> bool {
        self.by_address.contains_key(&address)
    }

    /// Whether somebody has a handle besides the list, which has one, and the caller, who has `ours`.
    pub(super) fn is_used(&self, address: u64, ours: usize) -> bool {
        self.by_address.get(&address).is_some_and(|entry| Arc::strong_count(entry) > 1 + ours)
    }

    /// The place of an address.
    pub(super) fn entry(&mut self, address: u64) -> Entry<'_, u64, Arc<T>> {
        self.by_address.entry(address)
    }

    /// Takes something in; gives back what was there.
    pub(super) fn insert(&mut self, address: u64, entry: Arc<T>) -> Option<Arc<T>> {
        self.by_address.insert(address, entry)
    }

    /// Takes something out.
    pub(super) fn remove(&mut self, address: u64) -> Option<Arc<T>> {
        self.by_address.remove(&address)
    }

    /// Takes out all that nobody uses and that `may_go`; gives it back, for it may have to be dropped without the lock.
    pub(super) fn remove_unused(&mut self, may_go: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let goes = |_: &u64, entry: &mut Arc<T>| Arc::strong_count(entry) == 1 && may_go(entry);
        self.by_address.extract_if(.., goes).map(|(_, entry)| entry).collect()
    }

    /// What nobody uses: addresses, and handles for the caller.
    pub(super) fn unused(&self) -> Vec<(u64, Arc<T>)> {
        let unused = self.by_address.iter().filter(|(_, entry)| Arc::strong_count(entry) == 1);
        unused.map(|(&address, entry)| (address, entry.clone())).collect()
    }

    /// How many things there are.
    pub(super) fn len(&self) -> usize {
        self.by_address.len()
    }

    /// All of them, by address.
    pub(super) fn iter(&self) -> Iter<'_, u64, Arc<T>> {
        self.by_address.iter()
    }

    /// All of them.
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
