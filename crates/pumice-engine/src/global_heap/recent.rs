//! Objects of a collection that came since the last commit.
//!
//! Nothing committed refers to them: when elements do not either, their room is used again without waiting
//! for a commit. Not so while one is under way: chunks that it has written already may refer to them.

use std::collections::BTreeMap;

/// Such objects of one collection: all from some index on.
#[derive(Default)]
pub(super) struct Recent {
    /// The first index of such an object.
    pub(super) from: u32,
    /// How many of them elements refer to.
    pub(super) live: usize,
    /// Those to which no element refers, and at which moment they were given back.
    dead: BTreeMap<u32, u64>,
    /// About the bytes of those.
    pub(super) room: usize,
    /// Whether the collection itself came since the last commit.
    pub(super) whole: bool,
}

impl Recent {
    /// Of a collection whose next object has this index.
    pub(super) fn new(from: u32, whole: bool) -> Self {
        Self { from, whole, ..Self::default() }
    }

    /// Takes note that no element refers to an object any more.
    pub(super) fn give_back(&mut self, index: u32, moment: u64, bytes: usize) {
        // Two writers may have found it in the same element.
        if let std::collections::btree_map::Entry::Vacant(entry) = self.dead.entry(index) {
            entry.insert(moment);
            self.live = self.live.saturating_sub(1);
            self.room += bytes;
        }
    }

    /// Indexes of objects that can go when all are done who began before the moment `done`.
    pub(super) fn removable(&self, done: u64) -> Vec<u16> {
        let gone = self.dead.iter().filter(|&(_, &moment)| moment <= done);
        gone.filter_map(|(&index, _)| index.try_into().ok()).collect()
    }

    /// Takes note that objects have gone.
    pub(super) fn remove(&mut self, gone: &[u16]) {
        gone.iter().for_each(|&index| _ = self.dead.remove(&u32::from(index)));
        // As far as is known; what is left is counted again when it goes.
        self.room = 0;
    }

    /// Whether nothing of a new collection is needed any more.
    pub(super) fn is_empty(&self, done: u64) -> bool {
        self.whole && self.live == 0 && self.dead.values().all(|&moment| moment <= done)
    }

    /// Whether so much of a collection of `size` bytes can go that it is worth putting the rest together.
    pub(super) fn is_worth(&self, size: usize) -> bool {
        self.room >= size / 4
    }

    /// All that no element refers to, and since when; they are nobody's any more.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (u32, u64)> {
        self.room = 0;
        std::mem::take(&mut self.dead).into_iter()
    }
}
