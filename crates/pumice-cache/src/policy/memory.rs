//! What is remembered of chunks that have left, besides what [`RecencySet`] remembers.
//!
//! [`RecencySet`]: super::recency_set::RecencySet

use std::collections::VecDeque;

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// About the memory that one chunk takes.
const BYTES: u64 = 80;
/// How many are remembered however small the cache is.
const FEWEST: usize = 4096;

/// What is remembered of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trait {
    /// It was complete when it left.
    pub(super) complete: bool,
    /// How often it was read since it was last complete.
    pub(super) reads: u16,
}

/// Identities in the order in which they left.
#[derive(Debug)]
pub(super) struct Memory {
    /// With the time at which each left. Those of another time than in `traits` came back.
    order: VecDeque<(u64, u64)>,
    traits: HashMap<u64, (u64, Trait), FixedState>,
    now: u64,
    most: usize,
}

impl Memory {
    pub(super) fn new() -> Self {
        Memory { order: VecDeque::new(), traits: HashMap::default(), now: 0, most: FEWEST }
    }

    /// Remembers no more than fits in 1/32 of the capacity.
    pub(super) fn set_capacity(&mut self, capacity: u64) {
        self.most = ((capacity / 32 / BYTES) as usize).max(FEWEST);
        self.limit();
    }

    pub(super) fn remember(&mut self, identity: u64, what: Trait) {
        self.now += 1;
        self.order.push_back((identity, self.now));
        self.traits.insert(identity, (self.now, what));
        self.limit();
    }

    /// Whether anything is remembered of a chunk.
    pub(super) fn knows(&self, identity: u64) -> bool {
        self.traits.contains_key(&identity)
    }

    /// Forgets a chunk, and tells what was remembered.
    pub(super) fn recall(&mut self, identity: u64) -> Option<Trait> {
        self.traits.remove(&identity).map(|(_, what)| what)
    }

    fn limit(&mut self) {
        let Memory { order, traits, most, .. } = self;
        let current = |traits: &HashMap<u64, (u64, Trait), FixedState>, (identity, time)| {
            traits.get(&identity).is_some_and(|(last, _)| *last == time)
        };
        while traits.len() > *most {
            let Some(oldest) = order.pop_front() else { return };
            if current(traits, oldest) {
                traits.remove(&oldest.0);
            }
        }
        // Those that came back take room until there are as many as may be remembered.
        if order.len() > 2 * *most {
            order.retain(|&left| current(traits, left));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_remembered_once_each() {
        let mut memory = Memory::new();
        let what = Trait { complete: true, reads: 3 };
        for identity in 0..5000 {
            memory.remember(identity, what);
        }
        assert_eq!(memory.recall(4999), Some(what));
        assert_eq!((memory.recall(4999), memory.recall(3)), (None, None));
        assert_eq!((memory.order.len(), memory.traits.len()), (FEWEST, FEWEST - 1));
        for _ in 0..10 {
            (0..2000).for_each(|identity| memory.remember(identity, what));
        }
        assert!(memory.order.len() <= 2 * FEWEST);
        assert!((0..2000).all(|identity| memory.recall(identity).is_some()));
    }
}
