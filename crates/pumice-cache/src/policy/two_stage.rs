//! Two-stage least recently used: first a dataset is chosen, then of it the chunk used longest ago.
//!
//! The design of the shared chunk cache wants its first policy to do what a private cache for each
//! dataset did, by allocations: a dataset that brings much pushes out its own chunks, and not those of
//! others. So each dataset that has chunks in the cache is allotted an equal share of it. The dataset chosen
//! is, of those that hold more than their share, the one used longest ago; if there is none, the one used
//! longest ago of all. One chunk is no more than a share, however large it is.
//!
//! A use moves its chunk in its dataset's list, which takes constant time, and its dataset in the order
//! of all, which takes logarithmic time, and none if the dataset was the last one used.

use hashbrown::HashMap;

use super::datasets::Datasets;
use super::timeline::Timeline;
use super::{Policy, Usage};
use crate::list::{Ends, Links};

/// An order of datasets, and a list of chunks for each.
///
/// ```
/// use pumice_cache::{Policy, TwoStage, Usage};
/// let mut policy = TwoStage::new(4);
/// for (id, dataset) in [(0, 7), (1, 8), (2, 8), (3, 8)] {
///     policy.admit(id, 0, 1, Usage::of(dataset));
/// }
/// policy.coldest(&mut |id| {
///     assert_eq!(id, 1, "dataset 8 has more than half, though 7 was used longer ago");
///     false
/// });
/// ```
#[derive(Debug)]
pub struct TwoStage {
    datasets: Datasets<Holder>,
    /// All datasets that have chunks, by last use; those weigh nothing that have only one.
    order: Timeline,
    chunks: Links,
    residents: Vec<Resident>,
    capacity: u64,
    last: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Holder {
    /// Its chunks, by last use.
    chunks: Ends,
    weight: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Resident {
    /// The place of its dataset.
    place: u32,
    weight: u64,
}

impl Holder {
    /// What of it can be more than its share.
    fn divisible(&self) -> u64 {
        if self.chunks.len() > 1 { self.weight } else { 0 }
    }
}

impl TwoStage {
    /// An empty order for a cache of `capacity` bytes.
    pub fn new(capacity: u64) -> Self {
        TwoStage {
            datasets: Datasets::default(),
            order: Timeline::default(),
            chunks: Links::default(),
            residents: Vec::new(),
            capacity,
            last: None,
        }
    }

    /// What each dataset is allotted.
    fn share(&self) -> u64 {
        self.capacity / (self.order.len() as u64).max(1)
    }

    /// Changes what a dataset holds, and lets the order know.
    fn change(&mut self, place: u32, change: impl FnOnce(&mut Holder)) {
        let holder = &mut self.datasets[place];
        change(holder);
        if holder.chunks.len() > 0 {
            return self.order.weigh(place, holder.divisible());
        }
        self.order.remove(place);
        self.datasets.release(place);
        self.last = self.last.filter(|last| *last != place);
    }

    /// Names chunks of datasets that hold more than their share; says of which datasets, and where each
    /// of them goes on. `None`: nobody wants to know more.
    fn visit_excess(&self, visit: &mut dyn FnMut(u32) -> bool) -> Option<HashMap<u32, u32>> {
        let (share, mut from, mut rest) = (self.share(), 0, HashMap::new());
        while let Some((place, behind)) = self.order.first_above(share, from) {
            from = behind;
            let Holder { chunks, mut weight } = self.datasets[place];
            let Some(mut next) = chunks.front() else { continue };
            // As long as there is another one.
            while weight > share
                && let Some(after) = self.chunks.after(next)
            {
                if !visit(next) {
                    return None;
                }
                weight = weight.saturating_sub(self.residents[next as usize].weight);
                next = after;
            }
            rest.insert(place, next);
        }
        Some(rest)
    }
}

impl Policy for TwoStage {
    fn admit(&mut self, id: u32, _identity: u64, weight: u64, usage: Usage) {
        let place = self.datasets.place(usage.dataset);
        if self.residents.len() <= id as usize {
            self.residents.resize(id as usize + 1, Resident::default());
        }
        self.residents[id as usize] = Resident { place, weight };
        let holder = &mut self.datasets[place];
        self.chunks.push_back(&mut holder.chunks, id);
        holder.weight = holder.weight.saturating_add(weight);
        self.order.push(place, holder.divisible());
        self.last = Some(place);
    }

    fn touch(&mut self, id: u32, _usage: Usage) {
        if !self.chunks.contains(id) {
            return;
        }
        let place = self.residents[id as usize].place;
        let holder = &mut self.datasets[place];
        self.chunks.push_back(&mut holder.chunks, id);
        if self.last != Some(place) {
            self.order.push(place, holder.divisible());
            self.last = Some(place);
        }
    }

    fn reweigh(&mut self, id: u32, weight: u64) {
        if !self.chunks.contains(id) {
            return;
        }
        let resident = &mut self.residents[id as usize];
        let (place, before) = (resident.place, std::mem::replace(&mut resident.weight, weight));
        self.change(place, |holder| {
            holder.weight = holder.weight.saturating_sub(before).saturating_add(weight);
        });
    }

    fn evict(&mut self, id: u32) {
        if !self.chunks.contains(id) {
            return;
        }
        let Resident { place, weight } = self.residents[id as usize];
        self.chunks.remove(&mut self.datasets[place].chunks, id);
        self.change(place, |holder| holder.weight = holder.weight.saturating_sub(weight));
    }

    fn remove(&mut self, id: u32) {
        self.evict(id);
    }

    /// Each chunk is taken to leave when it is named: so those of which datasets have too much come
    /// first, and then datasets one after another.
    fn coldest(&self, visit: &mut dyn FnMut(u32) -> bool) {
        let Some(rest) = self.visit_excess(visit) else { return };
        for place in self.order.iter() {
            let first = rest.get(&place).copied().or(self.datasets[place].chunks.front());
            if !std::iter::successors(first, |&id| self.chunks.after(id)).all(&mut *visit) {
                return;
            }
        }
    }

    fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
    }
}
