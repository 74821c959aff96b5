//! What a policy knows of each dataset that has chunks in the cache.
//!
//! Datasets get small numbers, their *places*, so that chunks can name them cheaply. A place is free
//! again when its dataset has no chunk left.

use std::ops::{Index, IndexMut};

use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// A `T` for each dataset.
#[derive(Debug)]
pub(super) struct Datasets<T> {
    places: HashMap<u64, u32, FixedState>,
    entries: Vec<(u64, T)>,
    free: Vec<u32>,
}

impl<T> Default for Datasets<T> {
    fn default() -> Self {
        Datasets { places: HashMap::default(), entries: Vec::new(), free: Vec::new() }
    }
}

impl<T: Default> Datasets<T> {
    /// The place of a dataset, which it is given if it has none.
    pub(super) fn place(&mut self, dataset: u64) -> u32 {
        let Datasets { places, entries, free } = self;
        *places.entry(dataset).or_insert_with(|| {
            let place = free.pop().unwrap_or(entries.len() as u32);
            match entries.get_mut(place as usize) {
                Some(entry) => *entry = (dataset, T::default()),
                None => entries.push((dataset, T::default())),
            }
            place
        })
    }

    /// Takes its place from a dataset.
    pub(super) fn release(&mut self, place: u32) {
        self.places.remove(&self.entries[place as usize].0);
        self.free.push(place);
    }
}

impl<T> Index<u32> for Datasets<T> {
    type Output = T;

    fn index(&self, place: u32) -> &T {
        &self.entries[place as usize].1
    }
}

impl<T> IndexMut<u32> for Datasets<T> {
    fn index_mut(&mut self, place: u32) -> &mut T {
        &mut self.entries[place as usize].1
    }
}
