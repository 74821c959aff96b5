//! Random replacement: any chunk may be the next to leave.
//!
//! Needs no memory of use, and what it loses on a loop it loses evenly. The order is drawn anew
//! after each departure, from a sequence that is always the same: replays can be repeated.

use super::{Policy, Usage};

/// Draws lots.
///
/// ```
/// use pumice_cache::{Policy, Random, Usage};
/// let mut policy = Random::new();
/// (0..3).for_each(|id| policy.admit(id, 0, 1, Usage::default()));
/// let mut order = Vec::new();
/// policy.coldest(&mut |id| {
///     order.push(id);
///     true
/// });
/// order.sort_unstable();
/// assert_eq!(order, [0, 1, 2]);
/// ```
#[derive(Debug)]
pub struct Random {
    residents: Vec<u32>,
    /// For each number, its place among the residents.
    places: Vec<u32>,
    seed: u64,
}

const OUT: u32 = u32::MAX;

impl Random {
    /// Nobody to draw from.
    pub fn new() -> Self {
        Random { residents: Vec::new(), places: Vec::new(), seed: 0x9e37_79b9_7f4a_7c15 }
    }

    fn place(&self, id: u32) -> Option<u32> {
        self.places.get(id as usize).copied().filter(|&place| place != OUT)
    }
}

impl Default for Random {
    fn default() -> Self {
        Random::new()
    }
}

impl Policy for Random {
    fn admit(&mut self, id: u32, _identity: u64, _weight: u64, _usage: Usage) {
        if self.places.len() <= id as usize {
            self.places.resize(id as usize + 1, OUT);
        }
        self.places[id as usize] = self.residents.len() as u32;
        self.residents.push(id);
    }

    fn touch(&mut self, _id: u32, _usage: Usage) {}

    fn reweigh(&mut self, _id: u32, _weight: u64) {}

    fn evict(&mut self, id: u32) {
        let Some(place) = self.place(id) else { return };
        self.residents.swap_remove(place as usize);
        if let Some(&moved) = self.residents.get(place as usize) {
            self.places[moved as usize] = place;
        }
        self.places[id as usize] = OUT;
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
    }

    fn remove(&mut self, id: u32) {
        self.evict(id);
    }

    fn coldest(&self, visit: &mut dyn FnMut(u32) -> bool) {
        let count = self.residents.len();
        let start = ((u128::from(self.seed) * count as u128) >> 64) as usize;
        for id in self.residents[start..].iter().chain(&self.residents[..start]) {
            if !visit(*id) {
                return;
            }
        }
    }

    fn set_capacity(&mut self, _capacity: u64) {}
}
