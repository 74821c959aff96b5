//! Least recently used: the chunk whose last use is longest ago leaves first.
//!
//! Simple and fast, and useless on a loop that is a little longer than the cache.

use super::{Policy, Usage};
use crate::list::List;

/// The order of last use.
///
/// ```
/// use pumice_cache::{Lru, Policy, Usage};
/// let mut policy = Lru::new();
/// policy.admit(7, 0, 1, Usage::default());
/// policy.evict(7);
/// policy.coldest(&mut |_| unreachable!());
/// ```
#[derive(Debug)]
pub struct Lru {
    recency: List,
}

impl Lru {
    /// An empty order.
    pub fn new() -> Self {
        Lru { recency: List::new() }
    }
}

impl Default for Lru {
    fn default() -> Self {
        Lru::new()
    }
}

impl Policy for Lru {
    fn admit(&mut self, id: u32, _identity: u64, _weight: u64, _usage: Usage) {
        self.recency.push_back(id);
    }

    fn touch(&mut self, id: u32, _usage: Usage) {
        if self.recency.contains(id) {
            self.recency.push_back(id);
        }
    }

    fn reweigh(&mut self, _id: u32, _weight: u64) {}

    fn evict(&mut self, id: u32) {
        self.recency.remove(id);
    }

    fn remove(&mut self, id: u32) {
        self.recency.remove(id);
    }

    fn coldest(&self, visit: &mut dyn FnMut(u32) -> bool) {
        for id in self.recency.iter() {
            if !visit(id) {
                return;
            }
        }
    }

    fn set_capacity(&mut self, _capacity: u64) {}
}
