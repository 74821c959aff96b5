//! Least recently used, where complete chunks go first: HDF5's `rdcc_w0`.
//!
//! HDF5 looks for a chunk that was read or written as a whole among the oldest `w0` of a dataset's
//! chunks (0 none, 1 all), and takes the oldest of any kind if it finds none. This is that rule, with
//! the weight that each dataset has ([`Usage::weight`]), in one cache: the oldest chunk leaves that is
//! complete and among the oldest `w0` of its own dataset's, else the oldest of all. HDF5's own caches, one
//! for each dataset, are [`PrivateCaches`](crate::simulate::PrivateCaches).
//!
//! A use takes logarithmic time where complete chunks are concerned, otherwise constant time.

use std::collections::BTreeSet;

use super::datasets::Datasets;
use super::{Policy, Usage, Weight};
use crate::list::{Ends, Links, List};

/// The order of last use, cut at `w0` for each dataset, and the complete chunks before the cuts.
///
/// ```
/// use pumice_cache::{Policy, Usage, Weight, WeightedLru};
/// let mut policy = WeightedLru::new();
/// for id in 0..4 {
///     policy.admit(id, 0, 1, Usage { done: id >= 2, weight: Weight::new(0.75), ..Usage::of(7) });
/// }
/// policy.coldest(&mut |id| {
///     assert_eq!(id, 2, "the oldest complete one");
///     false
/// });
/// ```
#[derive(Debug, Default)]
pub struct WeightedLru {
    datasets: Datasets<Chunks>,
    /// The links of all datasets' chunks.
    links: Links,
    /// All chunks, by last use.
    recency: List,
    /// Complete chunks before the cut of their dataset, by last use.
    first: BTreeSet<(u64, u32)>,
    states: Vec<State>,
    /// Counts uses.
    clock: u64,
}

/// A dataset's chunks.
#[derive(Debug, Default)]
struct Chunks {
    /// Up to the cut, oldest first; then the others.
    old: Ends,
    young: Ends,
    weight: Weight,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// The place of its dataset.
    place: u32,
    old: bool,
    complete: bool,
    /// When it was last used.
    used: u64,
}

impl WeightedLru {
    /// An empty order.
    pub fn new() -> Self {
        WeightedLru::default()
    }

    fn take(&mut self, id: u32) {
        let State { place, old, used, .. } = self.states[id as usize];
        let chunks = &mut self.datasets[place];
        let ends = if old { &mut chunks.old } else { &mut chunks.young };
        self.links.remove(ends, id);
        self.first.remove(&(used, id));
    }

    /// Makes a chunk, which is in no list of its dataset, the youngest of it.
    fn put(&mut self, id: u32, weight: Weight) {
        self.clock += 1;
        let state = &mut self.states[id as usize];
        (state.old, state.used) = (false, self.clock);
        let place = state.place;
        let chunks = &mut self.datasets[place];
        chunks.weight = weight;
        self.links.push_back(&mut chunks.young, id);
        self.recency.push_back(id);
        self.cut(place);
    }

    /// Brings a dataset's cut to its place again.
    fn cut(&mut self, place: u32) {
        let WeightedLru { datasets, links, first, states, .. } = self;
        let Chunks { old, young, weight } = &mut datasets[place];
        let wanted = weight.reach(old.len() + young.len());
        while old.len() < wanted
            && let Some(id) = young.front()
        {
            links.remove(young, id);
            links.push_back(old, id);
            let state = &mut states[id as usize];
            state.old = true;
            if state.complete {
                first.insert((state.used, id));
            }
        }
        while old.len() > wanted
            && let Some(id) = old.back()
        {
            links.remove(old, id);
            links.push_front(young, id);
            let state = &mut states[id as usize];
            state.old = false;
            first.remove(&(state.used, id));
        }
    }
}

impl Policy for WeightedLru {
    fn admit(&mut self, id: u32, _identity: u64, _weight: u64, usage: Usage) {
        if self.states.len() <= id as usize {
            self.states.resize(id as usize + 1, State::default());
        }
        let place = self.datasets.place(usage.dataset);
        self.states[id as usize] = State { place, complete: usage.done, old: false, used: 0 };
        self.put(id, usage.weight);
    }

    fn touch(&mut self, id: u32, usage: Usage) {
        if self.recency.contains(id) {
            self.take(id);
            self.states[id as usize].complete |= usage.done;
            self.put(id, usage.weight);
        }
    }

    fn reweigh(&mut self, _id: u32, _weight: u64) {}

    fn evict(&mut self, id: u32) {
        if !self.recency.remove(id) {
            return;
        }
        self.take(id);
        let place = self.states[id as usize].place;
        let Chunks { old, young, .. } = &self.datasets[place];
        match old.len() + young.len() {
            0 => self.datasets.release(place),
            _ => self.cut(place),
        }
    }

    fn remove(&mut self, id: u32) {
        self.evict(id);
    }

    fn coldest(&self, visit: &mut dyn FnMut(u32) -> bool) {
        if !self.first.iter().all(|(_, id)| visit(*id)) {
            return;
        }
        let first = |id: u32| {
            let State { old, complete, .. } = self.states[id as usize];
            old && complete
        };
        let _ = self.recency.iter().filter(|&id| !first(id)).all(visit);
    }

    fn set_capacity(&mut self, _capacity: u64) {}
}

impl Weight {
    /// How many of so many chunks are looked at for a complete one.
    fn reach(self, chunks: usize) -> usize {
        ((chunks as f64 * self.value()) as usize + 1).min(chunks)
    }
}
