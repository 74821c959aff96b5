//! The books: what is held, what is dirty, what may leave, and who waits for room.
//!
//! Everything the cache holds is either *resident* (decoded chunks in slots, at their measured
//! size, with what was encoded of them early) or *in flight* (reserved by running operations for bytes being fetched, chunks being
//! decoded, encodings being written). Both together stay within the active limit:
//!
//! - A [`Reservation`] is made before memory is taken. Its holder never waits for room, so those
//!   who wait are always waiting for somebody who works.
//! - A chunk becomes dirty only if there is room for its encoding, and as long as it is, that room
//!   is kept free: loads may not take it. Thus dirty chunks can always leave, one after another.
//! - When nothing can leave and nobody works, a reservation is granted over the limit: that is the
//!   one chunk that alone is larger, or one that passes by others that cannot be written back. Estimates that
//!   prove too low are the other way to exceed it.
//!
//! The resident limit is the business of [`evict`](crate::evict); the policy lives here because
//! what it ranks are the residents. Only integers are handled under the lock.

mod choice;
mod entries;
mod guards;
mod resident;
mod room;
mod saves;
mod stuck;
mod touches;

pub(crate) use choice::{Demand, Dirty};
pub(crate) use entries::Condition;
pub(crate) use guards::{Reservation, Saving, Victims};
pub(crate) use resident::{Visit, bookkeeping, encoding_size};
pub(crate) use room::{LastResort, Need};
pub(crate) use saves::Cold;
pub(crate) use stuck::{Again, Cause, Concern};

use resident::Resident;
use touches::Touches;

use crate::adaptive::{Adaptive, Curve};
use crate::layout::Family;
use crate::list::Links;
use crate::observer::Watch;
use crate::policy::{Policy, Usage};
use crate::slot::Slot;
use crate::stats::Stats;
use crate::sync::{AtomicU64, Condvar, Mutex, MutexGuard, Ordering};

pub(crate) struct Budget<F: Family> {
    state: Apart<Mutex<State<F>>>,
    changed: Condvar,
    touches: Touches<F>,
    /// The limits; they change only under the lock.
    resident_limit: AtomicU64,
    active_limit: AtomicU64,
    /// Who is told of uses, in the order in which the policy is.
    pub(crate) watch: Watch,
}

/// Aligned so that what is written all the time shares no cache line with what is read at every hit.
#[repr(align(128))]
struct Apart<T>(T);

impl<T> std::ops::Deref for Apart<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

struct State<F: Family> {
    policy: Box<dyn Policy>,
    curve: Option<Box<Curve>>,
    residents: Vec<Option<Resident<F>>>,
    free: Vec<u32>,
    /// The residents of each dataset; their ends are with the dataset.
    links: Links,
    active_limit: u64,
    resident_limit: u64,
    resident: u64,
    flight: u64,
    peak: u64,
    /// The part of `resident` that is about to leave.
    doomed: u64,
    /// What chunks take that were loaded ahead and not used yet.
    awaiting: u64,
    dirty: usize,
    /// What the dirty chunks take.
    dirty_bytes: u64,
    /// What was encoded early of chunks and is kept with them.
    encoded: u64,
    /// Room that only encodings may take: the largest to expect of the chunks that are dirty or
    /// may become so.
    spare: u64,
    /// Reservations held: their holders never wait for room.
    operations: usize,
    /// Evictions and saves under way: they may wait for room to encode.
    evictions: usize,
    /// Counts uses.
    clock: u64,
    /// Counts events that those who wait may be waiting for.
    changes: u64,
    waiting: usize,
}

impl<F: Family> State<F> {
    fn held(&self) -> u64 {
        self.resident + self.flight
    }

    fn excess(&self) -> u64 {
        self.resident.saturating_sub(self.doomed).saturating_sub(self.resident_limit)
    }

    /// Whether there were `times` the uses that are enough to look at the size.
    fn due(&self, times: u64) -> bool {
        let chunks = (self.residents.len() - self.free.len()) as u64;
        self.curve.as_ref().is_some_and(|curve| Adaptive::due(curve.accesses() / times, chunks))
    }

    /// By how much the active limit would be exceeded if that much less were held.
    fn beyond(&self, need: Need, less: u64) -> u64 {
        let more = match need {
            Need::Load { bytes: 0, encoding: 0 } => return 0,
            Need::Load { bytes, encoding } => bytes.saturating_add(encoding.max(self.spare)),
            Need::Encode { bytes } => bytes,
        };
        (self.held() - less).saturating_add(more).saturating_sub(self.active_limit)
    }

    fn fits(&self, need: Need) -> bool {
        self.beyond(need, 0) == 0
    }

    fn take(&mut self, need: Need) {
        self.flight += need.bytes();
        self.operations += 1;
        self.note_peak();
        if let Need::Load { encoding, .. } = need {
            self.spare = self.spare.max(encoding);
        }
    }

    /// Gives up the room for encodings when nothing is dirty and nothing can become so.
    fn review_spare(&mut self) {
        if self.dirty == 0 && self.operations == 0 {
            self.spare = 0;
        }
    }

    fn note_peak(&mut self) {
        self.peak = self.peak.max(self.held());
    }

    fn get(&mut self, slot: &Slot<F>) -> Option<&mut Resident<F>> {
        let resident = self.residents.get_mut(slot.id() as usize)?.as_mut();
        resident.filter(|resident| std::ptr::eq(&*resident.slot, slot))
    }

    fn touch(&mut self, slot: &Slot<F>, visit: Visit, awaited: bool, watch: &Watch) {
        self.clock += 1;
        let clock = self.clock;
        let Some(resident) = self.get(slot) else { return };
        resident.used = clock;
        let usage = resident.usage(visit);
        if watch.on() {
            watch.used(slot.hash, resident.weight(), usage);
        }
        let weight = resident.weight();
        // Loading it ahead counted as the use that this is.
        if awaited {
            self.awaiting -= std::mem::take(&mut resident.awaited);
            return;
        }
        if let Some(curve) = &mut self.curve {
            curve.access(slot.member.id, slot.hash, weight, true);
        }
        self.policy.touch(slot.id(), usage);
    }

    fn set_dirty(&mut self, id: u32) {
        let Some(resident) = &mut self.residents[id as usize] else { return };
        if !resident.dirty {
            resident.dirty = true;
            resident.slot.member.counters.dirty.add(1);
            self.dirty += 1;
            self.dirty_bytes += resident.weight();
        }
        self.spare = self.spare.max(encoding_size(resident.footprint.used));
    }

    fn set_clean(&mut self, id: u32) {
        let Some(resident) = &mut self.residents[id as usize] else { return };
        if !std::mem::take(&mut resident.dirty) {
            return;
        }
        resident.stuck = None;
        resident.slot.member.counters.dirty.subtract(1);
        self.dirty -= 1;
        self.dirty_bytes -= resident.weight();
        self.policy.clean(id);
        self.review_spare();
    }
}

impl<F: Family> Budget<F> {
    pub(crate) fn new(policy: Box<dyn Policy>, resident_limit: u64, active_limit: u64) -> Self {
        let state = State {
            policy,
            curve: None,
            residents: Vec::new(),
            free: Vec::new(),
            links: Links::default(),
            resident_limit,
            active_limit,
            resident: 0,
            flight: 0,
            peak: 0,
            doomed: 0,
            awaiting: 0,
            dirty: 0,
            dirty_bytes: 0,
            encoded: 0,
            spare: 0,
            operations: 0,
            evictions: 0,
            clock: 0,
            changes: 0,
            waiting: 0,
        };
        Budget {
            state: Apart(Mutex::new(state)),
            changed: Condvar::new(),
            touches: Touches::new(),
            resident_limit: AtomicU64::new(resident_limit),
            active_limit: AtomicU64::new(active_limit),
            watch: Watch::default(),
        }
    }

    /// The resident and the active limit.
    pub(crate) fn limits(&self) -> (u64, u64) {
        let resident = self.resident_limit.load(Ordering::Relaxed);
        // Should they be changing at this moment.
        (resident, self.active_limit.load(Ordering::Relaxed).max(resident))
    }

    pub(crate) fn set_limits(&self, resident: u64, active: u64) {
        let mut state = self.lock_settled();
        state.resident_limit = resident;
        state.active_limit = active.max(resident);
        self.resident_limit.store(resident, Ordering::Relaxed);
        self.active_limit.store(state.active_limit, Ordering::Relaxed);
        state.policy.set_capacity(resident);
        self.announce(state);
    }

    /// Measures the miss-ratio curve from now on, or no longer.
    pub(crate) fn set_curve(&self, curve: Option<Box<Curve>>) {
        self.lock_settled().curve = curve;
    }

    /// Works on the curve, if there is one.
    pub(crate) fn with_curve<T>(&self, work: impl FnOnce(&mut Curve) -> T) -> Option<T> {
        self.state.lock().curve.as_deref_mut().map(work)
    }

    /// Lets another policy rank the chunks, beginning with the order of the one before.
    pub(crate) fn set_policy(&self, mut policy: Box<dyn Policy>) {
        let mut state = self.lock_settled();
        let mut order = Vec::with_capacity(state.residents.len());
        state.policy.coldest(&mut |id| {
            order.push(id);
            true
        });
        for id in order {
            let Some(resident) = &state.residents[id as usize] else { continue };
            let Resident { slot, reduced, dirty, written, .. } = resident;
            let partial = *dirty && *written > 0.0;
            let identity = if *reduced { !slot.hash } else { slot.hash };
            let usage = Usage { write: *dirty, partial, ..slot.member.usage() };
            policy.admit(id, identity, resident.weight(), usage);
        }
        state.policy = policy;
    }

    /// Tells the policy what will be used of a dataset.
    pub(crate) fn expect(&self, dataset: u64, identities: &[u64]) {
        self.lock_settled().policy.expect(dataset, identities);
    }

    /// Counts memory that is neither in a chunk nor in flight.
    pub(crate) fn set_aside(&self, more: u64, less: u64) {
        let mut state = self.state.lock();
        state.resident = state.resident + more - less;
        state.note_peak();
    }

    /// What chunks and their bookkeeping take.
    pub(crate) fn resident(&self) -> u64 {
        self.state.lock().resident
    }

    /// How many uses of chunks there have been, and whether anything is being loaded or encoded.
    pub(crate) fn activity(&self) -> (u64, bool) {
        let state = self.lock_settled();
        (state.clock, state.operations > 0)
    }

    /// Adds what is known only here.
    pub(crate) fn complete(&self, stats: &mut Stats) {
        let state = self.lock_settled();
        (stats.peak, stats.in_flight) = (state.peak, state.flight);
        stats.bookkeeping = state.resident.saturating_sub(stats.resident);
    }

    fn announce(&self, mut state: MutexGuard<'_, State<F>>) {
        state.changes += 1;
        if state.waiting > 0 {
            drop(state);
            self.changed.notify_all();
        }
    }

    fn wait<'a>(&self, mut state: MutexGuard<'a, State<F>>) -> MutexGuard<'a, State<F>> {
        state.waiting += 1;
        let mut state = self.changed.wait(state);
        state.waiting -= 1;
        state
    }
}
