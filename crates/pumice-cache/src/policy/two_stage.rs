//! Two-stage least recently used: of the dataset used longest ago, the chunk used longest ago.
//!
//! This is the order that the design of the shared chunk cache sketches: a list of datasets, each
//! with a list of its chunks.

use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::{Policy, Usage};
use crate::list::{Ends, Links, List};

/// A list of datasets, and a list of chunks for each.
///
/// ```
/// use pumice_cache::{Policy, TwoStage, Usage};
/// let mut policy = TwoStage::new();
/// for (id, dataset) in [(0, 7), (1, 8), (2, 7)] {
///     policy.admit(id, 0, 1, Usage::of(dataset));
/// }
/// policy.coldest(&mut |id| {
///     assert_eq!(id, 1, "the other dataset was used since");
///     false
/// });
/// ```
#[derive(Debug, Default)]
pub struct TwoStage {
    /// The place of each dataset that has chunks.
    places: HashMap<u64, u32, FixedState>,
    datasets: Vec<(u64, Ends)>,
    free: Vec<u32>,
    recency: List,
    chunks: Links,
    /// The dataset's place, for each number.
    owners: Vec<u32>,
}

impl TwoStage {
    /// An empty list.
    pub fn new() -> Self {
        TwoStage::default()
    }

    fn place(&mut self, dataset: u64) -> u32 {
        let TwoStage { places, datasets, free, .. } = self;
        *places.entry(dataset).or_insert_with(|| {
            let place = free.pop().unwrap_or(datasets.len() as u32);
            match datasets.get_mut(place as usize) {
                Some(entry) => *entry = (dataset, Ends::NONE),
                None => datasets.push((dataset, Ends::NONE)),
            }
            place
        })
    }
}

impl Policy for TwoStage {
    fn admit(&mut self, id: u32, _identity: u64, _weight: u64, usage: Usage) {
        let place = self.place(usage.dataset);
        if self.owners.len() <= id as usize {
            self.owners.resize(id as usize + 1, 0);
        }
        self.owners[id as usize] = place;
        self.chunks.push_back(&mut self.datasets[place as usize].1, id);
        self.recency.push_back(place);
    }

    fn touch(&mut self, id: u32, _usage: Usage) {
        if !self.chunks.contains(id) {
            return;
        }
        let place = self.owners[id as usize];
        self.chunks.push_back(&mut self.datasets[place as usize].1, id);
        self.recency.push_back(place);
    }

    fn reweigh(&mut self, _id: u32, _weight: u64) {}

    fn evict(&mut self, id: u32) {
        if !self.chunks.contains(id) {
            return;
        }
        let place = self.owners[id as usize];
        let (dataset, ends) = &mut self.datasets[place as usize];
        self.chunks.remove(ends, id);
        if ends.front().is_none() {
            self.places.remove(dataset);
            self.recency.remove(place);
            self.free.push(place);
        }
    }

    fn remove(&mut self, id: u32) {
        self.evict(id);
    }

    fn coldest(&self, visit: &mut dyn FnMut(u32) -> bool) {
        for place in self.recency.iter() {
            if !self.chunks.iter(&self.datasets[place as usize].1).all(&mut *visit) {
                return;
            }
        }
    }

    fn set_capacity(&mut self, _capacity: u64) {}
}
