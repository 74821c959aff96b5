//! HDF5 2.0's chunk caches: one for each dataset, of 8 MiB and 8191 hash slots by default.
//!
//! - A chunk whose hash slot is taken evicts the other chunk.
//! - A chunk that is used moves one place away from the end where chunks leave.
//! - Room is made by two hands that walk from that end. The first takes chunks that were read or
//!   written as a whole. The second, which starts when the first has walked `w0` (0.75) of the way,
//!   takes any.
//! - A chunk larger than the cache is not kept.
//!
//! Chunks are hashed by their numbers in the dataset, in the order in which they first occur. For
//! datasets of one axis HDF5 does the same; for others this is kinder.

use hashbrown::HashMap;

use super::Score;
use crate::trace::{Access, Trace};

/// The size of HDF5's private caches.
///
/// ```
/// use pumice_trace::simulate::PrivateCaches;
/// use pumice_trace::trace::{Access, Trace};
/// let mut trace = Trace::new();
/// for chunk in (0..4).chain(0..4) {
///     trace.push(chunk, Access { bytes: 1 << 20, ..Access::default() });
/// }
/// assert_eq!(PrivateCaches::default().replay(&trace).hits, 4);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PrivateCaches {
    /// Bytes that each dataset's cache may hold.
    pub bytes: u64,
    /// Hash slots of each dataset's cache.
    pub slots: u64,
    /// How far the first hand walks before the second starts, from 0 to 1.
    pub w0: f64,
}

impl Default for PrivateCaches {
    fn default() -> Self {
        PrivateCaches { bytes: 8 << 20, slots: 8191, w0: 0.75 }
    }
}

#[derive(Default)]
struct Cache {
    /// Numbers of the dataset's chunks.
    numbers: HashMap<u64, u64>,
    slots: HashMap<u64, u64>,
    /// The chunks in order of eviction.
    order: Vec<Entry>,
    used: u64,
}

struct Entry {
    chunk: u64,
    slot: u64,
    bytes: u64,
    complete: bool,
}

impl PrivateCaches {
    /// Replays a trace.
    pub fn replay(&self, trace: &Trace) -> Score {
        let mut caches: HashMap<u64, Cache> = HashMap::new();
        let (mut chunks, mut used, mut score) = (0_u64, 0_u64, Score::default());
        for access in trace.accesses() {
            let cache = caches.entry(access.dataset).or_default();
            chunks -= cache.order.len() as u64;
            used -= cache.used;
            score.count(cache.access(self, access), access.bytes);
            chunks += cache.order.len() as u64;
            used += cache.used;
            score.note_peak(chunks, used);
        }
        score
    }
}

impl Cache {
    /// Uses a chunk, and returns whether it was resident.
    fn access(&mut self, size: &PrivateCaches, access: &Access) -> bool {
        let next = self.numbers.len() as u64;
        let number = *self.numbers.entry(access.chunk).or_insert(next);
        let slot = number % size.slots.max(1);
        let found = self.slots.get(&slot) == Some(&access.chunk);
        if found {
            self.touch(access);
            return true;
        }
        if access.bytes > size.bytes {
            return false;
        }
        if let Some(other) = self.slots.get(&slot).copied() {
            self.order.iter().position(|e| e.chunk == other).into_iter().for_each(|i| self.take(i));
        }
        self.make_room(size, access.bytes);
        let Access { chunk, bytes, done, .. } = *access;
        self.order.push(Entry { chunk, slot, bytes, complete: done });
        self.slots.insert(slot, chunk);
        self.used += bytes;
        false
    }

    fn touch(&mut self, access: &Access) {
        let Some(place) = self.order.iter().position(|e| e.chunk == access.chunk) else { return };
        let entry = &mut self.order[place];
        entry.complete |= access.done;
        self.used = self.used - entry.bytes + access.bytes;
        entry.bytes = access.bytes;
        if place + 1 < self.order.len() {
            self.order.swap(place, place + 1);
        }
    }

    fn make_room(&mut self, size: &PrivateCaches, bytes: u64) {
        while !self.order.is_empty() && self.used + bytes > size.bytes {
            let reach = (self.order.len() as f64 * size.w0) as usize;
            let complete = self.order.iter().take(reach + 1).position(|entry| entry.complete);
            self.take(complete.unwrap_or(0));
        }
    }

    fn take(&mut self, place: usize) {
        let entry = self.order.remove(place);
        self.slots.remove(&entry.slot);
        self.used -= entry.bytes;
    }
}
