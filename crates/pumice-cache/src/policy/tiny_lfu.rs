//! W-TinyLFU (Einziger, Friedman and Manes, 2017): a chunk must be used more often than the one it
//! pushes out.
//!
//! New chunks pass through a *window* of one part in a hundred of the capacity, least recently used
//! first. Who leaves the window is compared with who would leave the main part; the one that was
//! used less often leaves the cache. How often is estimated by a sketch of four-bit counters, all
//! of which are halved from time to time, so that what was used long ago does not count for ever.
//! The main part is a segmented LRU: chunks used again there are *protected*, up to 80 parts in a
//! hundred of it.

use super::{Policy, Usage};
use crate::list::{Ends, Links};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Window,
    Probation,
    Protected,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    part: Part,
    identity: u64,
    weight: u64,
}

/// Window, main part and sketch.
///
/// ```
/// use pumice_cache::{Policy, TinyLfu, Usage};
/// let mut policy = TinyLfu::new(100);
/// for id in 0..100 {
///     policy.admit(id, u64::from(id), 1, Usage::default());
/// }
/// (0..100).filter(|id| *id != 7).for_each(|id| policy.touch(id, Usage::default()));
/// policy.coldest(&mut |id| {
///     assert_eq!(id, 7, "used once only");
///     false
/// });
/// ```
#[derive(Debug)]
pub struct TinyLfu {
    links: Links,
    /// Of each part, oldest first.
    ends: [Ends; 3],
    weights: [u64; 3],
    entries: Vec<Entry>,
    sketch: Sketch,
    capacity: u64,
    residents: usize,
}

impl TinyLfu {
    /// An empty policy for a cache of `capacity` bytes.
    pub fn new(capacity: u64) -> Self {
        TinyLfu {
            links: Links::default(),
            ends: [Ends::NONE; 3],
            weights: [0; 3],
            entries: Vec::new(),
            sketch: Sketch::new(64),
            capacity,
            residents: 0,
        }
    }

    fn window_capacity(&self) -> u64 {
        self.capacity.div_ceil(100)
    }

    fn protected_capacity(&self) -> u64 {
        (self.capacity - self.window_capacity()) / 5 * 4
    }

    fn put(&mut self, id: u32, part: Part) {
        let entry = &mut self.entries[id as usize];
        entry.part = part;
        self.weights[part as usize] += entry.weight;
        self.links.push_back(&mut self.ends[part as usize], id);
    }

    fn take(&mut self, id: u32) {
        let Entry { part, weight, .. } = self.entries[id as usize];
        self.weights[part as usize] -= weight;
        self.links.remove(&mut self.ends[part as usize], id);
    }

    /// Moves the oldest of one part to another until the first is within its share. One chunk may
    /// always stay.
    fn shift(&mut self, from: Part, to: Part, share: u64) {
        while self.weights[from as usize] > share && self.ends[from as usize].len() > 1 {
            let Some(oldest) = self.ends[from as usize].front() else { return };
            self.take(oldest);
            self.put(oldest, to);
        }
    }

    fn settle(&mut self) {
        // While there is room, nobody need wait in the window.
        self.shift(Part::Window, Part::Probation, self.window_capacity());
        self.shift(Part::Protected, Part::Probation, self.protected_capacity());
    }

    /// Who leaves first: of the newest and the oldest on probation, the one used less often.
    fn rivals(&self) -> Option<(u32, u32)> {
        let ends = &self.ends[Part::Probation as usize];
        let (oldest, newest) = (ends.front()?, ends.back()?);
        let uses = |id: u32| self.sketch.estimate(self.entries[id as usize].identity);
        match uses(newest) > uses(oldest) {
            true => Some((oldest, newest)),
            false => Some((newest, oldest)),
        }
    }
}

impl Policy for TinyLfu {
    fn admit(&mut self, id: u32, identity: u64, weight: u64, _usage: Usage) {
        let entry = Entry { part: Part::Window, identity, weight };
        if self.entries.len() <= id as usize {
            self.entries.resize(id as usize + 1, entry);
        }
        self.entries[id as usize] = entry;
        self.residents += 1;
        self.sketch.grow(self.residents);
        self.sketch.add(identity);
        self.put(id, Part::Window);
        self.settle();
    }

    fn touch(&mut self, id: u32, _usage: Usage) {
        if !self.links.contains(id) {
            return;
        }
        let Entry { part, identity, .. } = self.entries[id as usize];
        self.sketch.add(identity);
        self.take(id);
        self.put(id, if part == Part::Probation { Part::Protected } else { part });
        self.settle();
    }

    fn reweigh(&mut self, id: u32, weight: u64) {
        if self.links.contains(id) {
            let entry = &mut self.entries[id as usize];
            let before = std::mem::replace(&mut entry.weight, weight);
            let sum = &mut self.weights[entry.part as usize];
            *sum = *sum - before + weight;
            self.settle();
        }
    }

    fn evict(&mut self, id: u32) {
        if self.links.contains(id) {
            self.take(id);
            self.residents -= 1;
        }
    }

    fn remove(&mut self, id: u32) {
        self.evict(id);
    }

    fn coldest(&self, visit: &mut dyn FnMut(u32) -> bool) {
        let first = self.rivals().map(|(first, _)| first);
        if first.is_some_and(|id| !visit(id)) {
            return;
        }
        let part = |part: Part| self.links.iter(&self.ends[part as usize]);
        let rest = part(Part::Probation).chain(part(Part::Protected)).chain(part(Part::Window));
        let _ = rest.filter(|&id| Some(id) != first).all(visit);
    }

    fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.settle();
    }
}

/// Counts how often identities occur, roughly and never too low: four counters of four bits each.
#[derive(Debug)]
struct Sketch {
    /// Sixteen counters in each; their number is a power of two.
    table: Vec<u64>,
    added: usize,
    /// After so many all counters are halved.
    period: usize,
}

impl Sketch {
    /// For about `keys` resident chunks.
    fn new(keys: usize) -> Self {
        let keys = keys.next_power_of_two();
        Sketch { table: vec![0; keys], added: 0, period: keys * 10 }
    }

    /// Starts anew, larger, when there are more chunks than it was made for.
    fn grow(&mut self, keys: usize) {
        if keys > self.table.len() {
            *self = Sketch::new(keys * 2);
        }
    }

    /// The word and the shift of each of an identity's four counters.
    fn counters(&self, identity: u64) -> [(usize, u32); 4] {
        let mixed = (identity ^ identity >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        std::array::from_fn(|row| {
            let hash = mixed.rotate_left(16 * row as u32).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let word = (hash >> 20) as usize & (self.table.len() - 1);
            (word, (hash >> 60) as u32 / 4 * 16 + 4 * row as u32)
        })
    }

    fn estimate(&self, identity: u64) -> u64 {
        let counts = self.counters(identity).map(|(word, shift)| self.table[word] >> shift & 15);
        counts.into_iter().min().unwrap_or(0)
    }

    fn add(&mut self, identity: u64) {
        for (word, shift) in self.counters(identity) {
            if self.table[word] >> shift & 15 < 15 {
                self.table[word] += 1 << shift;
            }
        }
        self.added += 1;
        if self.added == self.period {
            self.table.iter_mut().for_each(|word| *word = *word >> 1 & 0x7777_7777_7777_7777);
            self.added /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sketch_never_counts_too_few_and_forgets_by_halves() {
        let mut sketch = Sketch::new(64);
        for identity in 0..30_u64 {
            (0..identity % 7).for_each(|_| sketch.add(identity));
        }
        assert!((0..30).all(|identity| sketch.estimate(identity) >= identity % 7));
        let before = sketch.estimate(6);
        (0..sketch.period - sketch.added).for_each(|_| sketch.add(1 << 40));
        assert!(sketch.estimate(6) <= before / 2 + 1);
    }
}
