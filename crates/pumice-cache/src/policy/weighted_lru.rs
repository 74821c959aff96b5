//! Least recently used, where complete chunks go first: HDF5's `rdcc_w0`.
//!
//! HDF5 looks for a chunk that was read or written as a whole among the oldest `w0` of all chunks
//! (0 none, 1 all), and takes the oldest of any kind if it finds none. This is that rule, over all
//! datasets; HDF5's own caches, one for each dataset, are
//! [`PrivateCaches`](crate::simulate::PrivateCaches).

use super::{Policy, Usage};
use crate::list::{Ends, Links, List};

/// HDF5's default.
const W0: f64 = 0.75;

/// The order of last use, cut at `w0`, and the complete chunks before the cut.
///
/// ```
/// use pumice_cache::{Policy, Usage, WeightedLru};
/// let mut policy = WeightedLru::new(0.75);
/// for id in 0..4 {
///     policy.admit(id, 0, 1, Usage { done: id >= 2, ..Usage::default() });
/// }
/// policy.coldest(&mut |id| {
///     assert_eq!(id, 2, "the oldest complete one");
///     false
/// });
/// ```
#[derive(Debug)]
pub struct WeightedLru {
    links: Links,
    /// Up to the cut, oldest first; then the others.
    old: Ends,
    young: Ends,
    /// Complete chunks in `old`, in its order.
    first: List,
    states: Vec<State>,
    w0: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    old: bool,
    complete: bool,
}

impl WeightedLru {
    /// An empty order; `w0` is from 0 to 1.
    pub fn new(w0: f64) -> Self {
        WeightedLru {
            links: Links::default(),
            old: Ends::NONE,
            young: Ends::NONE,
            first: List::new(),
            states: Vec::new(),
            w0,
        }
    }

    fn take(&mut self, id: u32) {
        match self.states[id as usize].old {
            true => self.links.remove(&mut self.old, id),
            false => self.links.remove(&mut self.young, id),
        };
        self.first.remove(id);
    }

    fn put(&mut self, id: u32) {
        self.states[id as usize].old = false;
        self.links.push_back(&mut self.young, id);
        self.cut();
    }

    /// Brings the cut to its place again.
    fn cut(&mut self) {
        let all = self.old.len() + self.young.len();
        let wanted = ((all as f64 * self.w0) as usize + 1).min(all);
        while self.old.len() < wanted
            && let Some(id) = self.young.front()
        {
            self.links.remove(&mut self.young, id);
            self.links.push_back(&mut self.old, id);
            self.states[id as usize].old = true;
            if self.states[id as usize].complete {
                self.first.push_back(id);
            }
        }
        while self.old.len() > wanted
            && let Some(id) = self.old.back()
        {
            self.links.remove(&mut self.old, id);
            self.first.remove(id);
            self.links.push_front(&mut self.young, id);
            self.states[id as usize].old = false;
        }
    }
}

impl Default for WeightedLru {
    fn default() -> Self {
        WeightedLru::new(W0)
    }
}

impl Policy for WeightedLru {
    fn admit(&mut self, id: u32, _identity: u64, _weight: u64, usage: Usage) {
        if self.states.len() <= id as usize {
            self.states.resize(id as usize + 1, State::default());
        }
        self.states[id as usize].complete = usage.done;
        self.put(id);
    }

    fn touch(&mut self, id: u32, usage: Usage) {
        if self.links.contains(id) {
            self.take(id);
            self.states[id as usize].complete |= usage.done;
            self.put(id);
        }
    }

    fn reweigh(&mut self, _id: u32, _weight: u64) {}

    fn evict(&mut self, id: u32) {
        if self.links.contains(id) {
            self.take(id);
            self.cut();
        }
    }

    fn remove(&mut self, id: u32) {
        self.evict(id);
    }

    fn coldest(&self, visit: &mut dyn FnMut(u32) -> bool) {
        if !self.first.iter().all(&mut *visit) {
            return;
        }
        let others = self.links.iter(&self.old).filter(|&id| !self.first.contains(id));
        let _ = others.chain(self.links.iter(&self.young)).all(visit);
    }

    fn set_capacity(&mut self, _capacity: u64) {}
}
