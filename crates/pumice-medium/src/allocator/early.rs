//! Early allocation of space that was given back and is not free yet. Committed metadata may still
//! refer to the old bytes, so they stay until a commit. That commit writes the new bytes and drops
//! all references to the old ones in one step. So a caller who takes such space hands its bytes to
//! the commit, as a block that replaces another and goes through the journal.
//!
//! A file in which something is deleted and created again before a commit thus keeps its length.

use super::{Allocator, PAGES, Purpose, Rules};
use std::collections::BTreeSet;

/// The most ranges that are taken early and remembered as they were given back; others are found by
/// size alone.
const MOST_RANGES: usize = 1 << 16;

/// The most ranges of a length that are tried.
const MOST_TRIED: usize = 16;

/// Ranges that were taken so since the last commit began.
#[derive(Debug, Default)]
pub(super) struct Early {
    pub(super) taken: BTreeSet<u64>,
    /// Ranges as they were given back since the last commit, by set, length and address. Some of
    /// their bytes may have been taken.
    given_back: BTreeSet<(usize, u64, u64)>,
    /// Bytes taken early, and their limit.
    bytes: u64,
    most: u64,
    /// Whether metadata was ever refused because of the limit.
    refused: bool,
}

impl Early {
    /// Notes that a range is given back, if it was taken early.
    pub(super) fn remove(&mut self, address: u64, length: u64) {
        if self.taken.remove(&address) {
            self.bytes = self.bytes.saturating_sub(length);
        }
    }

    /// Remembers a range as it was given back.
    pub(super) fn give_back(&mut self, set: usize, length: u64, address: u64) {
        if self.given_back.len() < MOST_RANGES {
            self.given_back.insert((set, length, address));
        }
    }

    /// Forgets all ranges: a commit writes them.
    pub(super) fn clear(&mut self) {
        self.taken.clear();
        self.given_back.clear();
        self.bytes = 0;
    }

    /// The number of remembered ranges.
    pub(super) fn len(&self) -> usize {
        self.taken.len() + self.given_back.len()
    }
}

impl Allocator {
    /// Limits the bytes taken early, which their callers keep in memory.
    pub fn take_early_at_most(&mut self, bytes: u64) {
        self.early.most = bytes;
    }

    /// [`allocate`](Self::allocate), but takes the smallest suitable range that was given back
    /// before the file grows. Only a commit may write there, unless the range [is
    /// fresh](Self::is_fresh).
    pub fn allocate_early(&mut self, length: u64, purpose: Purpose) -> Option<u64> {
        let set = self.set(length, purpose);
        let allowed = self.early.bytes.saturating_add(length) <= self.early.most
            && self.early.taken.len() < MOST_RANGES;
        self.early.refused |= !allowed && purpose == Purpose::Metadata;
        if allowed
            && !self.has_free(length, set)
            && let Some(address) = self.take_waiting(length, self.early_set(length, purpose))
        {
            self.early.taken.insert(address);
            self.early.bytes += length;
            return Some(address);
        }
        self.allocate(length, purpose)
    }

    /// Whether metadata did not get such a range because of the limit, so that it may lie behind
    /// free space.
    pub fn has_refused_early(&self) -> bool {
        self.early.refused
    }

    /// Whether the range at `address` was taken since the last commit began, early or not.
    pub fn is_new(&self, address: u64) -> bool {
        self.is_fresh(address) || self.early.taken.contains(&address)
    }

    /// The set for ranges that wait for a commit.
    pub(super) fn early_set(&self, length: u64, purpose: Purpose) -> usize {
        match (self.rules, purpose) {
            (Rules::Plain, Purpose::Metadata) => 0,
            (Rules::Plain, Purpose::Raw) => 1,
            _ => self.set(length, purpose),
        }
    }

    /// Whether free space has room for a range. Space at the end does not count, as the file would
    /// be cut there.
    fn has_free(&self, length: u64, set: usize) -> bool {
        let fits = |set: usize| self.free[set].fits_before(length, self.end);
        match self.rules {
            Rules::ByPurpose if self.blocks.is_none() => fits(0) || fits(1),
            _ => fits(set),
        }
    }

    /// Takes a range of the same length as one that was given back, in its place, so that each
    /// replacement leaves the others their places. Otherwise takes the smallest range that is long
    /// enough.
    fn take_waiting(&mut self, length: u64, set: usize) -> Option<u64> {
        let same = self.early.given_back.range((set, length, 0)..(set, length + 1, 0));
        // Of some, bytes may be taken just now.
        let places: Vec<u64> = same.take(MOST_TRIED).map(|&(_, _, address)| address).collect();
        if let Some(&address) =
            places.iter().find(|&&address| self.carve_waiting(address, length, set))
        {
            self.early.given_back.remove(&(set, length, address));
            return Some(address);
        }
        let aligned = self.alignment.filter(|(alignment, _)| length >= alignment.threshold);
        match self.rules {
            Rules::Plain | Rules::ByPurpose if let Some((alignment, phase)) = aligned => {
                self.waiting[set].take_aligned(length, alignment.bytes, phase)
            }
            Rules::Plain | Rules::ByPurpose => self.waiting[set].take(length),
            Rules::Paged(page) if set == PAGES => self.waiting[PAGES].take_aligned(length, page, 0),
            Rules::Paged(page) => self.waiting[set].take(length).or_else(|| {
                if self.free[PAGES].smallest(page).is_some() {
                    return None;
                }
                let address = self.waiting[PAGES].take_aligned(page, page, 0)?;
                self.waiting[set].add(address + length, page - length);
                Some(address)
            }),
        }
    }

    fn carve_waiting(&mut self, address: u64, length: u64, set: usize) -> bool {
        if self.waiting[set].carve(address, length) {
            return true;
        }
        // A page of which all was given back.
        let Rules::Paged(page) = self.rules else { return false };
        let start = address / page * page;
        if set == PAGES || !self.waiting[PAGES].carve(start, page) {
            return false;
        }
        self.waiting[set].add(start, page);
        self.waiting[set].carve(address, length)
    }
}
