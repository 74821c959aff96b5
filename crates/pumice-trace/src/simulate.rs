//! Replays a [`Trace`] against any policy and size, without data.
//!
//! The policies are the very ones of the cache, and get the same calls. After each access chunks
//! leave, coldest first, until the rest fit; the chunk just used may leave too, as in the cache.
//! [`optimum()`] knows the future; [`PrivateCaches`] is HDF5 with a cache for each dataset.
//!
//! ```
//! use pumice_cache::PolicyKind;
//! use pumice_trace::simulate::{optimum, replay};
//! use pumice_trace::trace::{Access, Trace};
//!
//! let mut trace = Trace::new();
//! for _ in 0..100 {
//!     (0..5).for_each(|chunk| trace.push(chunk, Access { bytes: 1, ..Access::default() }));
//! }
//! let (lru, best) = (replay(&trace, PolicyKind::Lru, 4), optimum(&trace, 4));
//! assert_eq!((lru.hits, best.hits), (0, 4 * 99));
//! ```

mod optimum;
mod private;

pub use optimum::optimum;
pub use private::PrivateCaches;

use pumice_cache::{Policy, PolicyKind, Usage};

use crate::trace::{Access, Trace};

/// The result of a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Score {
    /// Accesses to chunks that were there.
    pub hits: u64,
    /// Accesses to chunks that were not.
    pub misses: u64,
    /// The bytes of the chunks that had to come.
    pub bytes_missed: u64,
    /// Changed chunks that left before they were complete: each costs a read and a write more.
    pub partial_evictions: u64,
    /// The most chunks held at once.
    pub peak_chunks: u64,
    /// The most bytes held at once.
    pub peak_bytes: u64,
}

impl Score {
    /// Hits per hundred accesses.
    pub fn hit_percentage(&self) -> f64 {
        100.0 * self.hits as f64 / (self.hits + self.misses).max(1) as f64
    }

    fn count(&mut self, hit: bool, bytes: u64) {
        if hit {
            self.hits += 1;
        } else {
            self.misses += 1;
            self.bytes_missed += bytes;
        }
    }

    fn note_peak(&mut self, chunks: u64, bytes: u64) {
        self.peak_chunks = self.peak_chunks.max(chunks);
        self.peak_bytes = self.peak_bytes.max(bytes);
    }
}

/// Replays a trace with a policy and a cache of `capacity` bytes.
pub fn replay(trace: &Trace, policy: PolicyKind, capacity: u64) -> Score {
    replay_with(trace, policy.build(capacity), capacity)
}

/// Replays a trace with a policy that was made for a cache of `capacity` bytes.
pub fn replay_with(trace: &Trace, policy: Box<dyn Policy>, capacity: u64) -> Score {
    let mut simulation = Simulation::new(policy, capacity, trace.chunks());
    trace.accesses().iter().for_each(|access| simulation.access(access));
    simulation.score
}

/// A cache without data.
struct Simulation {
    policy: Box<dyn Policy>,
    capacity: u64,
    used: u64,
    /// The policy's number for each chunk of the trace.
    ids: Vec<u32>,
    /// The resident chunk of each number.
    residents: Vec<Resident>,
    free: Vec<u32>,
    score: Score,
}

#[derive(Clone, Copy)]
struct Resident {
    chunk: u64,
    bytes: u64,
    /// Changed and not complete.
    partial: bool,
}

const ABSENT: u32 = u32::MAX;

impl Simulation {
    fn new(policy: Box<dyn Policy>, capacity: u64, chunks: usize) -> Self {
        Simulation {
            policy,
            capacity,
            used: 0,
            ids: vec![ABSENT; chunks],
            residents: Vec::new(),
            free: Vec::new(),
            score: Score::default(),
        }
    }

    fn access(&mut self, access: &Access) {
        let Access { dataset, write, done, .. } = *access;
        let usage = Usage { write, done, partial: write && !done, ..Usage::of(dataset) };
        let id = self.ids[access.chunk as usize];
        self.score.count(id != ABSENT, access.bytes);
        let id = match id {
            ABSENT => self.admit(access, usage),
            id => {
                self.policy.touch(id, usage);
                self.weigh(id, access.bytes);
                id
            }
        };
        let resident = &mut self.residents[id as usize];
        resident.partial = !done && (write || resident.partial);
        while self.used > self.capacity {
            self.evict();
        }
        let held = self.residents.len() - self.free.len();
        self.score.note_peak(held as u64, self.used);
    }

    fn admit(&mut self, access: &Access, usage: Usage) -> u32 {
        let resident = Resident { chunk: access.chunk, bytes: access.bytes, partial: false };
        let id = self.free.pop().unwrap_or(self.residents.len() as u32);
        match self.residents.get_mut(id as usize) {
            Some(place) => *place = resident,
            None => self.residents.push(resident),
        }
        self.ids[access.chunk as usize] = id;
        self.used += access.bytes;
        self.policy.admit(id, scramble(access.chunk), access.bytes, usage);
        id
    }

    fn weigh(&mut self, id: u32, bytes: u64) {
        let before = std::mem::replace(&mut self.residents[id as usize].bytes, bytes);
        if before != bytes {
            self.used = self.used - before + bytes;
            self.policy.reweigh(id, bytes);
        }
    }

    fn evict(&mut self) {
        let mut victim = ABSENT;
        self.policy.coldest(&mut |id| {
            victim = id;
            false
        });
        // A policy that names nothing has lost a chunk: better a wrong score than an endless loop.
        let Some(&Resident { chunk, bytes, partial }) = self.residents.get(victim as usize) else {
            self.used = 0;
            return;
        };
        self.score.partial_evictions += u64::from(partial);
        self.used -= bytes;
        self.ids[chunk as usize] = ABSENT;
        self.free.push(victim);
        self.policy.evict(victim);
    }
}

/// Makes of a chunk's number an identity as the cache's are: all bits count.
fn scramble(number: u64) -> u64 {
    let mixed = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ mixed >> 32
}
