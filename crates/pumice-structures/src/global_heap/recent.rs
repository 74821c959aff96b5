//! Objects of a collection that came since the last commit.
//!
//! Nothing committed refers to them. When elements do not either, their room is used again without
//! waiting for a commit, unless one is under way: chunks that it has written may refer to them.

use std::collections::BTreeMap;

/// The new objects of one collection: all from some index on.
#[derive(Default)]
pub(super) struct Recent {
    /// The first index of a new object.
    pub(super) from: u32,
    /// The number of them to which elements refer.
    pub(super) live: usize,
    /// Objects to which no element refers, with the moment when they were given back; `None` for
    /// objects that leave with a commit and stay until then.
    dead: BTreeMap<u32, Option<u64>>,
    /// About the bytes of these objects.
    pub(super) room: usize,
    /// Whether the collection itself is new since the last commit.
    pub(super) whole: bool,
}

impl Recent {
    /// The new objects of a collection whose next object has the index `from`.
    pub(super) fn new(from: u32, whole: bool) -> Self {
        Self { from, whole, ..Self::default() }
    }

    /// Notes that no element refers to an object.
    pub(super) fn give_back(&mut self, index: u32, moment: u64, bytes: usize) {
        // Two writers may have given it back for the same element. An object that leaves with a
        // commit must not leave before: its index would be another object's by then.
        if let std::collections::btree_map::Entry::Vacant(entry) = self.dead.entry(index) {
            entry.insert(Some(moment));
            self.live = self.live.saturating_sub(1);
            self.room += bytes;
        }
    }

    /// Notes that an object leaves with a commit, if it is new.
    pub(super) fn queue(&mut self, index: u32) {
        if index >= self.from {
            self.dead.insert(index, None);
        }
    }

    /// Indexes of objects that can be removed when all readers are done who began before the moment
    /// `done`.
    pub(super) fn removable(&self, done: u64) -> Vec<u16> {
        let gone = self.dead.iter().filter(|&(_, moment)| moment.is_some_and(|it| it <= done));
        gone.filter_map(|(&index, _)| index.try_into().ok()).collect()
    }

    /// Notes that objects have gone.
    pub(super) fn remove(&mut self, gone: &[u16]) {
        gone.iter().for_each(|&index| _ = self.dead.remove(&u32::from(index)));
        // An estimate; the rest is counted again when it goes.
        self.room = 0;
    }

    /// Whether a new collection has no object that is needed.
    pub(super) fn is_empty(&self, done: u64) -> bool {
        let gone = |moment: &Option<u64>| moment.is_some_and(|moment| moment <= done);
        self.whole && self.live == 0 && self.dead.values().all(gone)
    }

    /// Whether so much of a collection of `size` bytes can be removed that it is worth compacting
    /// the rest.
    pub(super) fn is_worth(&self, size: usize) -> bool {
        self.room >= size / 4
    }

    /// All objects to which no element refers, with their moments; from now on they leave with a
    /// commit.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (u32, u64)> {
        self.room = 0;
        self.dead.iter_mut().filter_map(|(&index, moment)| Some((index, moment.take()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaves_with_a_commit_does_not_leave_before() {
        let mut recent = Recent { live: 3, ..Recent::new(1, true) };
        recent.queue(1);
        recent.give_back(1, 5, 100);
        recent.give_back(2, 5, 100);
        assert_eq!((recent.removable(9), recent.live), (vec![2], 2));
        assert_eq!(recent.take().collect::<Vec<_>>(), [(2, 5)]);
        recent.give_back(2, 6, 100);
        recent.give_back(3, 6, 100);
        assert_eq!(recent.removable(9), [3]);
        recent.live = 0;
        assert!(!recent.is_empty(9), "the others are in their places");
        let mut later = Recent::new(4, true);
        later.queue(3);
        assert!(later.is_empty(9), "it came before the last commit");
    }
}
