//! A policy of somebody else, kept from doing harm.
//!
//! Whatever it does, limits hold and requests are served: it is believed only about chunks that are resident, and
//! about each once in a walk; what it leaves out leaves last; and one that has panicked is asked no more.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Policy, Usage};

/// It may name so many chunks in vain for each that is resident before it is no longer listened to.
const PATIENCE: usize = 4;

/// A policy that may be wrong.
pub(crate) struct Guarded {
    policy: Box<dyn Policy>,
    /// The numbers of resident chunks.
    resident: Numbers,
    count: usize,
    broken: AtomicBool,
}

impl Guarded {
    pub(crate) fn new(policy: Box<dyn Policy>) -> Self {
        let resident = Numbers::default();
        Guarded { policy, resident, count: 0, broken: AtomicBool::new(false) }
    }

    /// Tells the policy something, unless it is broken.
    fn tell<R>(&mut self, news: impl FnOnce(&mut dyn Policy) -> R) -> Option<R> {
        if self.broken.load(Ordering::Relaxed) {
            return None;
        }
        let told = catch_unwind(AssertUnwindSafe(|| news(&mut *self.policy)));
        told.inspect_err(|_| self.broken.store(true, Ordering::Relaxed)).ok()
    }

    fn leave(&mut self, id: u32) {
        self.count -= usize::from(self.resident.remove(id));
    }
}

impl Policy for Guarded {
    fn admit(&mut self, id: u32, identity: u64, weight: u64, usage: Usage) {
        self.count += usize::from(self.resident.insert(id));
        self.tell(|policy| policy.admit(id, identity, weight, usage));
    }

    fn touch(&mut self, id: u32, usage: Usage) {
        self.tell(|policy| policy.touch(id, usage));
    }

    fn clean(&mut self, id: u32) {
        self.tell(|policy| policy.clean(id));
    }

    fn reweigh(&mut self, id: u32, weight: u64) {
        self.tell(|policy| policy.reweigh(id, weight));
    }

    fn evict(&mut self, id: u32) {
        self.leave(id);
        self.tell(|policy| policy.evict(id));
    }

    fn remove(&mut self, id: u32) {
        self.leave(id);
        self.tell(|policy| policy.remove(id));
    }

    fn coldest(&self, visit: &mut dyn FnMut(u32) -> bool) {
        let (mut named, mut wanted) = (Numbers::default(), true);
        let mut patience = PATIENCE * (self.count + 1);
        if !self.broken.load(Ordering::Relaxed) {
            let walk = catch_unwind(AssertUnwindSafe(|| {
                self.policy.coldest(&mut |id| {
                    if !self.resident.contains(id) || !named.insert(id) {
                        patience = patience.saturating_sub(1);
                        return wanted && patience > 0;
                    }
                    // Also if it does not stop when told to.
                    wanted = wanted && visit(id);
                    wanted
                });
            }));
            self.broken.fetch_or(walk.is_err(), Ordering::Relaxed);
        }
        let mut rest = self.resident.iter().filter(|id| !named.contains(*id));
        while wanted && let Some(id) = rest.next() {
            wanted = visit(id);
        }
    }

    fn set_capacity(&mut self, capacity: u64) {
        self.tell(|policy| policy.set_capacity(capacity));
    }

    fn lets_pass(&mut self, identity: u64) -> bool {
        self.tell(|policy| policy.lets_pass(identity)).unwrap_or(false)
    }

    fn expect(&mut self, dataset: u64, identities: &[u64]) {
        self.tell(|policy| policy.expect(dataset, identities));
    }
}

/// A set of small numbers.
#[derive(Default)]
struct Numbers(Vec<u64>);

impl Numbers {
    fn place(id: u32) -> (usize, u64) {
        (id as usize / 64, 1 << (id % 64))
    }

    fn contains(&self, id: u32) -> bool {
        let (word, bit) = Self::place(id);
        self.0.get(word).is_some_and(|bits| bits & bit != 0)
    }

    /// Whether it is new.
    fn insert(&mut self, id: u32) -> bool {
        let (word, bit) = Self::place(id);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }

    /// Whether it was there.
    fn remove(&mut self, id: u32) -> bool {
        let there = self.contains(id);
        if there {
            let (word, bit) = Self::place(id);
            self.0[word] &= !bit;
        }
        there
    }

    fn iter(&self) -> impl Iterator<Item = u32> {
        let numbers = |(word, bits): (usize, &u64)| {
            let bits = *bits;
            (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| (word as u32) * 64 + bit)
        };
        self.0.iter().enumerate().flat_map(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names chunks to leave, in some order.
    type Way = fn(&mut dyn FnMut(u32) -> bool);

    /// Does as it is told.
    struct Odd(Way);

    impl Policy for Odd {
        fn admit(&mut self, _: u32, _: u64, _: u64, _: Usage) {}
        fn touch(&mut self, id: u32, _: Usage) {
            assert!(id != 3, "told to panic");
        }
        fn reweigh(&mut self, _: u32, _: u64) {}
        fn evict(&mut self, _: u32) {}
        fn remove(&mut self, _: u32) {}
        fn coldest(&self, visit: &mut dyn FnMut(u32) -> bool) {
            (self.0)(visit);
        }
        fn set_capacity(&mut self, _: u64) {}
    }

    fn order(policy: &Guarded, most: usize) -> Vec<u32> {
        let mut order = Vec::new();
        policy.coldest(&mut |id| {
            order.push(id);
            order.len() < most
        });
        order
    }

    #[test]
    fn every_resident_chunk_is_named_once_whatever_a_policy_says() {
        let ways: [Way; 6] = [
            |_| (),
            |visit| [2, 2, 900, 2].into_iter().for_each(|id| _ = visit(id)),
            |visit| while visit(2) {},
            |visit| {
                for id in (0..).step_by(2) {
                    if !visit(id) {
                        return;
                    }
                }
            },
            |_| panic!("told to"),
            |visit| {
                visit(2);
                panic!("told to")
            },
        ];
        for way in ways {
            let mut policy = Guarded::new(Box::new(Odd(way)));
            (0..100).for_each(|id| policy.admit(id, 0, 1, Usage::default()));
            (50..100).for_each(|id| policy.evict(id));
            for _ in 0..2 {
                let mut all = order(&policy, usize::MAX);
                all.sort_unstable();
                assert_eq!(all, Vec::from_iter(0..50));
                assert_eq!(order(&policy, 3).len(), 3);
            }
        }
    }

    #[test]
    fn a_policy_that_has_panicked_is_asked_no_more() {
        let mut policy =
            Guarded::new(Box::new(Odd(|visit| (0..4).rev().for_each(|id| _ = visit(id)))));
        (0..4).for_each(|id| policy.admit(id, 0, 1, Usage::default()));
        assert_eq!(order(&policy, 9), [3, 2, 1, 0]);
        policy.touch(3, Usage::default());
        assert_eq!(order(&policy, 9), [0, 1, 2, 3]);
        policy.remove(1);
        assert_eq!(order(&policy, 9), [0, 2, 3]);
    }
}
