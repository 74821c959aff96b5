//! Blocks that the next commit writes, by address, for readers who do not take the medium's lock,
//! which a commit holds while it writes.
//!
//! Invariants:
//! - They change only under the medium's lock. Nobody does I/O or waits for another lock while
//!   holding one of these; a caller who needs two locks [`Images`] of all blocks first.
//! - A block leaves after it is written to its place, and is replaced in one step. A reader who
//!   looks here first and then reads the file finds one or the other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A block as it will be.
pub(super) type Image = Arc<Vec<u8>>;

/// All blocks at one moment.
pub(super) type Blocks = BTreeMap<u64, Image>;

/// Blocks that wait for a commit.
#[derive(Default)]
pub(super) struct Images {
    blocks: RwLock<Blocks>,
    /// The number of blocks. If it is 0, as mostly, reads need not take the lock.
    count: AtomicUsize,
}

impl Images {
    fn read(&self) -> RwLockReadGuard<'_, Blocks> {
        self.blocks.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Blocks> {
        self.blocks.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of blocks.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The one that begins at `address`.
    pub(super) fn get(&self, address: u64) -> Option<Image> {
        if self.is_empty() { None } else { self.read().get(&address).cloned() }
    }

    /// Whether one begins at `address`.
    pub(super) fn contains(&self, address: u64) -> bool {
        !self.is_empty() && self.read().contains_key(&address)
    }

    /// The addresses of blocks that begin in a range.
    pub(super) fn starts(&self, address: u64, length: u64) -> Vec<u64> {
        if self.is_empty() {
            return Vec::new();
        }
        let range = address..address.saturating_add(length);
        self.read().range(range).map(|(&start, _)| start).collect()
    }

    /// All blocks.
    pub(super) fn all(&self) -> Blocks {
        self.read().clone()
    }

    /// Puts one in the place of the one that was there, or of none; gives the old one.
    pub(super) fn replace(&self, address: u64, image: Option<Image>) -> Option<Image> {
        if image.is_none() && self.is_empty() {
            return None;
        }
        let mut blocks = self.write();
        let old = match image {
            Some(image) => blocks.insert(address, image),
            None => blocks.remove(&address),
        };
        self.count.store(blocks.len(), Ordering::Release);
        old
    }

    /// Changes a block that is also among `others`, in one step.
    pub(super) fn change(&self, others: &Self, address: u64, change: impl FnOnce(&mut Vec<u8>)) {
        let (mut blocks, mut others) = (self.write(), others.write());
        let Some(image) = blocks.get_mut(&address) else { return };
        // Mostly no other thread holds the image, and it need not be copied. A commit under way and
        // present readers keep the old bytes; then this is a new image, for the next commit.
        others.remove(&address);
        change(Arc::make_mut(image));
        others.insert(address, image.clone());
    }

    /// The blocks that share a byte with a range, last first, with their addresses. They do not
    /// overlap.
    pub(super) fn within(&self, address: u64, length: u64) -> Vec<(u64, Image)> {
        let blocks = self.read();
        let before = blocks.range(..address.saturating_add(length)).rev();
        let overlapping = before.take_while(move |&(&at, held)| at + held.len() as u64 > address);
        overlapping.map(|(&at, image)| (at, image.clone())).collect()
    }

    /// Whether one block has all of a range.
    pub(super) fn has_all(&self, address: u64, length: u64) -> bool {
        let blocks = self.read();
        let first = blocks.range(..=address).next_back();
        first.is_some_and(|(at, held)| address + length <= at + held.len() as u64)
    }
}
