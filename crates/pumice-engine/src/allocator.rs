//! Space in the file: what is taken, what is free, what becomes free with the next commit.
//!
//! Invariants:
//! - Free ranges are disjoint, never adjacent (they are merged) and lie below the end of the file.
//! - Space that committed metadata may refer to is never handed out: [`Allocator::free`] puts it
//!   aside, [`Allocator::begin_commit`] notes what the commit will make free, and
//!   [`Allocator::finish_commit`] frees it. What is given back in between waits for the next commit.
//!   Space taken since the last commit began has no such reader and is free again at once.
//!
//! Not here: free-space managers stored in the file.

use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Hands out and takes back ranges of the file.
#[derive(Debug)]
pub struct Allocator {
    end: u64,
    by_address: BTreeMap<u64, u64>,
    by_length: BTreeSet<(u64, u64)>,
    /// Taken since the last commit began: address to length.
    fresh: HashMap<u64, u64>,
    /// Given back, but committed metadata may still refer to it.
    waiting: Vec<(u64, u64)>,
    /// What the commit under way makes free.
    committing: Vec<(u64, u64)>,
}

impl Allocator {
    /// An allocator for a file whose used part ends at `end`.
    pub fn new(end: u64) -> Self {
        Self {
            end,
            by_address: BTreeMap::new(),
            by_length: BTreeSet::new(),
            fresh: HashMap::new(),
            waiting: Vec::new(),
            committing: Vec::new(),
        }
    }

    /// Where the used part of the file ends.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// How many bytes below the end could be handed out now.
    pub fn free_bytes(&self) -> u64 {
        self.by_address.values().sum()
    }

    /// Whether anything was taken or given back since the last commit.
    pub fn has_changed(&self) -> bool {
        !(self.fresh.is_empty() && self.waiting.is_empty() && self.committing.is_empty())
    }

    /// The smallest free range that fits, else new space at the end; `None` if addresses run out.
    pub fn allocate(&mut self, length: u64) -> Option<u64> {
        let address = match self.by_length.range((length, 0)..).next().copied() {
            Some((found, address)) => {
                self.remove(address, found);
                if found > length {
                    self.add(address + length, found - length);
                }
                address
            }
            None => self.extend(length)?,
        };
        self.fresh.insert(address, length);
        Some(address)
    }

    /// New space at the end, together with a free range that touches it.
    fn extend(&mut self, length: u64) -> Option<u64> {
        let tail = self.by_address.last_key_value().map(|(&address, &free)| (address, free));
        let address = match tail {
            Some((address, free)) if address + free == self.end => {
                self.end = address.checked_add(length)?;
                self.remove(address, free);
                address
            }
            _ => {
                let address = self.end;
                self.end = address.checked_add(length)?;
                address
            }
        };
        Some(address)
    }

    /// Gives back a range that [`allocate`](Self::allocate) returned or that the file already had.
    pub fn free(&mut self, address: u64, length: u64) {
        if length == 0 {
            return;
        }
        if self.fresh.get(&address) == Some(&length) {
            self.fresh.remove(&address);
            self.release(address, length);
        } else {
            self.waiting.push((address, length));
        }
    }

    /// The metadata that a commit is about to write is fixed: what has been given back so far is
    /// free once it is written, what has been taken so far belongs to it.
    pub fn begin_commit(&mut self) {
        self.fresh.clear();
        self.committing.append(&mut self.waiting);
    }

    /// The commit has replaced all metadata. Returns the new end of the file, which is lower than
    /// before if its last ranges are free. (After a failed commit this is not called; what it
    /// would have freed is freed by the next one.)
    pub fn finish_commit(&mut self) -> u64 {
        for (address, length) in std::mem::take(&mut self.committing) {
            self.release(address, length);
        }
        if let Some((&address, &length)) = self.by_address.last_key_value()
            && address + length == self.end
        {
            self.remove(address, length);
            self.end = address;
        }
        self.end
    }

    /// Adds a range to the free ones and merges it with its neighbours.
    ///
    /// Damaged files can name a range twice; what overlaps a free range or the end is left alone,
    /// so that no byte is ever handed out twice.
    fn release(&mut self, address: u64, length: u64) {
        let Some(range_end) = address.checked_add(length).filter(|&end| end <= self.end) else {
            return;
        };
        let before = self.by_address.range(..range_end).next_back().map(|(&a, &l)| (a, l));
        let after = self.by_address.get(&range_end).copied();
        let (mut start, mut total) = (address, length);
        if let Some((previous, free)) = before {
            if previous + free > address {
                return;
            }
            if previous + free == address {
                self.remove(previous, free);
                start = previous;
                total += free;
            }
        }
        if let Some(free) = after {
            self.remove(range_end, free);
            total += free;
        }
        self.add(start, total);
    }

    fn add(&mut self, address: u64, length: u64) {
        self.by_address.insert(address, length);
        self.by_length.insert((length, address));
    }

    fn remove(&mut self, address: u64, length: u64) {
        self.by_address.remove(&address);
        self.by_length.remove(&(length, address));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn commit(allocator: &mut Allocator) -> u64 {
        allocator.begin_commit();
        allocator.finish_commit()
    }

    #[test]
    fn what_is_given_back_during_a_commit_waits_for_the_next() {
        let mut allocator = Allocator::new(0);
        let (a, _) = (allocator.allocate(10).unwrap(), allocator.allocate(10).unwrap());
        allocator.begin_commit();
        allocator.free(a, 10);
        allocator.finish_commit();
        assert_eq!(allocator.free_bytes(), 0);
        commit(&mut allocator);
        assert_eq!(allocator.free_bytes(), 10);
    }

    #[test]
    fn committed_space_is_reused_only_after_a_commit() {
        let mut allocator = Allocator::new(100);
        let old = allocator.allocate(50).unwrap();
        allocator.allocate(10).unwrap();
        commit(&mut allocator);
        allocator.free(old, 50);
        assert_eq!(allocator.allocate(50), Some(160), "the old place is still referred to");
        commit(&mut allocator);
        assert_eq!(allocator.allocate(50), Some(old));
    }

    #[test]
    fn space_taken_since_the_commit_is_reused_at_once() {
        let mut allocator = Allocator::new(0);
        let first = allocator.allocate(64).unwrap();
        allocator.allocate(1).unwrap();
        allocator.free(first, 64);
        assert_eq!(allocator.allocate(64), Some(first));
    }

    #[test]
    fn a_free_tail_gives_the_file_back() {
        let mut allocator = Allocator::new(0);
        let keep = allocator.allocate(10).unwrap();
        let (a, b) = (allocator.allocate(20).unwrap(), allocator.allocate(30).unwrap());
        commit(&mut allocator);
        allocator.free(a, 20);
        allocator.free(b, 30);
        assert_eq!(commit(&mut allocator), keep + 10);
    }

    #[test]
    fn a_range_given_back_twice_is_handed_out_once() {
        let mut allocator = Allocator::new(100);
        allocator.free(10, 20);
        allocator.free(10, 20);
        allocator.free(15, 30);
        allocator.free(90, 50);
        commit(&mut allocator);
        assert_eq!(allocator.free_bytes(), 20);
    }

    #[test]
    fn no_byte_is_ever_handed_out_twice() {
        let mut allocator = Allocator::new(0);
        let mut held: BTreeMap<u64, u64> = BTreeMap::new();
        let mut random = 1u64;
        for step in 0..20_000u64 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let draw = random >> 33;
            if draw % 3 < 2 || held.is_empty() {
                let length = draw % 97 + 1;
                let address = allocator.allocate(length).unwrap();
                let previous = held.range(..address + length).next_back();
                assert!(previous.is_none_or(|(&a, &l)| a + l <= address), "step {step}");
                assert!(address + length <= allocator.end());
                held.insert(address, length);
            } else {
                let nth = draw as usize % held.len();
                let (&address, &length) = held.iter().nth(nth).unwrap();
                held.remove(&address);
                allocator.free(address, length);
            }
            if draw.is_multiple_of(50) {
                commit(&mut allocator);
            }
        }
        let used: u64 = held.values().sum();
        commit(&mut allocator);
        assert_eq!(used + allocator.free_bytes(), allocator.end());
    }
}
