//! The books: what is held, what is dirty, what may leave, and who waits for room.
//!
//! Everything the cache holds is either *resident* (decoded chunks in slots, at their measured
//! size) or *in flight* (reserved by running operations for bytes being fetched, chunks being
//! decoded, encodings being written). Both together stay within the active limit:
//!
//! - A [`Reservation`] is made before memory is taken. Its holder never waits for room, so those
//!   who wait are always waiting for somebody who works.
//! - A chunk becomes dirty only if there is room for its encoding, and as long as it is, that room
//!   is kept free: loads may not take it. Thus dirty chunks can always leave, one after another.
//! - When nothing can leave and nobody works, a reservation is granted over the limit: that is the
//!   one chunk that alone is larger. Estimates that prove too low are the other way to exceed it.
//!
//! The resident limit is the business of [`evict`](crate::evict); the policy lives here because
//! what it ranks are the residents. Only integers are handled under the lock.

mod choice;
mod guards;
mod resident;
mod saves;
mod touches;

pub(crate) use choice::{Demand, Dirty};
pub(crate) use guards::{Reservation, Saving, Victims};
pub(crate) use resident::{Visit, bookkeeping, encoding_size};

use resident::Resident;
use touches::Touches;

use crate::adaptive::{Adaptive, Curve};
use crate::layout::{Footprint, Layout};
use crate::list::Links;
use crate::member::Member;
use crate::plan::Task;
use crate::policy::{Policy, Usage};
use crate::slot::{NOT_RESIDENT, Slot};
use crate::stats::Stats;
use crate::sync::{Arc, AtomicU64, Condvar, Mutex, MutexGuard, Ordering};
use crate::trace::{Access, Recorder};

/// So many bytes of chunks are encoded at a time, if they are chunks enough for all threads: more would
/// neither keep these busier nor make the writes longer by much.
const ENCODED: u64 = 8 << 20;

pub(crate) struct Budget<L: Layout> {
    state: Apart<Mutex<State<L>>>,
    changed: Condvar,
    touches: Touches<L>,
    /// The limits; they change only under the lock.
    resident_limit: AtomicU64,
    active_limit: AtomicU64,
    /// Records uses, in the order in which the policy is told of them.
    pub(crate) recorder: Recorder,
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

struct State<L: Layout> {
    policy: Box<dyn Policy>,
    curve: Option<Box<Curve>>,
    residents: Vec<Option<Resident<L>>>,
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
    /// Room that only encodings may take: the largest to expect of the chunks that are dirty or
    /// may become so.
    spare: u64,
    /// Reservations held: their holders never wait for room.
    operations: usize,
    /// Evictions under way: they may wait for room to encode.
    evictions: usize,
    /// Counts uses.
    clock: u64,
    /// Counts events that those who wait may be waiting for.
    changes: u64,
    waiting: usize,
}

/// What room is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// To bring chunks in; if one of them may become dirty, its encoding must have room besides.
    Load { bytes: u64, encoding: u64 },
    /// To write chunks back.
    Encode { bytes: u64 },
}

impl Need {
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Need::Load { bytes, .. } | Need::Encode { bytes } => bytes,
        }
    }
}

/// What one is told who has found nothing that could leave.
pub(crate) enum LastResort<'b, L: Layout> {
    /// There was nobody to wait for: room over the limit.
    Granted(Reservation<'b, L>),
    /// Something has changed: it is worth trying again.
    Changed,
    /// There is nobody to wait for, and what is left are chunks that could not be written back.
    Stuck,
}

/// What a resident chunk is like at the moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition {
    pub(crate) footprint: Footprint,
    pub(crate) dirty: bool,
    pub(crate) saving: bool,
}

impl Condition {
    /// Whether it may leave as it is.
    pub(crate) fn clean(&self) -> bool {
        !self.dirty && !self.saving
    }
}

impl<L: Layout> State<L> {
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

    fn get(&mut self, slot: &Slot<L>) -> Option<&mut Resident<L>> {
        let resident = self.residents.get_mut(slot.id() as usize)?.as_mut();
        resident.filter(|resident| std::ptr::eq(&*resident.slot, slot))
    }

    fn touch(&mut self, slot: &Slot<L>, visit: Visit, awaited: bool, recorder: &Recorder) {
        self.clock += 1;
        let clock = self.clock;
        let Some(resident) = self.get(slot) else { return };
        resident.used = clock;
        let usage = resident.usage(visit);
        if recorder.on() {
            record(recorder, slot.hash, resident.weight(), usage);
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
        resident.stuck = false;
        resident.slot.member.counters.dirty.subtract(1);
        self.dirty -= 1;
        self.dirty_bytes -= resident.weight();
        self.policy.clean(id);
        self.review_spare();
    }
}

fn record(recorder: &Recorder, identity: u64, bytes: u64, usage: Usage) {
    let Usage { dataset, write, done, .. } = usage;
    recorder.record(identity, Access { dataset, bytes, write, done, ..Access::default() });
}

impl<L: Layout> Budget<L> {
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
            recorder: Recorder::default(),
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

    fn announce(&self, mut state: MutexGuard<'_, State<L>>) {
        state.changes += 1;
        if state.waiting > 0 {
            drop(state);
            self.changed.notify_all();
        }
    }

    fn wait<'a>(&self, mut state: MutexGuard<'a, State<L>>) -> MutexGuard<'a, State<L>> {
        state.waiting += 1;
        let mut state = self.changed.wait(state);
        state.waiting -= 1;
        state
    }

    /// A mark to be given to [`force_or_wait`](Self::force_or_wait).
    pub(crate) fn changes(&self) -> u64 {
        self.state.lock().changes
    }

    /// Takes room if there is.
    pub(crate) fn try_reserve(&self, need: Need) -> Option<Reservation<'_, L>> {
        let mut state = self.state.lock();
        state.fits(need).then(|| self.take(&mut state, need))
    }

    fn take(&self, state: &mut State<L>, need: Need) -> Reservation<'_, L> {
        state.take(need);
        Reservation { budget: self, bytes: need.bytes() }
    }

    /// For one who has found nothing that could leave: takes room over the limit if nobody works,
    /// otherwise waits until something has changed since `seen`.
    ///
    /// Evictions count as work, except for who must encode: they may be waiting for room to encode
    /// themselves.
    pub(crate) fn force_or_wait(&self, need: Need, seen: u64) -> LastResort<'_, L> {
        let loads = matches!(need, Need::Load { .. });
        let mut state = self.state.lock();
        loop {
            if state.changes != seen {
                return LastResort::Changed;
            }
            if state.operations == 0 && !(loads && state.evictions > 0) {
                break;
            }
            state = self.wait(state);
        }
        if loads && state.residents.iter().flatten().any(|resident| resident.stuck) {
            return LastResort::Stuck;
        }
        LastResort::Granted(self.take(&mut state, need))
    }

    /// Takes room for the encodings of as many of `slots` as there is room for, if it is any: of no more
    /// than `enough`, once they take much.
    pub(crate) fn try_encodings(
        &self,
        slots: &[Arc<Slot<L>>],
        enough: usize,
    ) -> Option<(Reservation<'_, L>, usize)> {
        let mut state = self.state.lock();
        let (mut bytes, mut count) = (0_u64, 0);
        for slot in slots {
            let size = state.get(slot).map_or(0, |resident| encoding_size(resident.footprint.used));
            let full = count >= enough && bytes + size > ENCODED;
            if full || !state.fits(Need::Encode { bytes: bytes + size }) {
                break;
            }
            bytes += size;
            count += 1;
        }
        (count > 0).then(|| (self.take(&mut state, Need::Encode { bytes }), count))
    }

    /// How many bytes the encoding of a chunk is expected to take.
    pub(crate) fn encoding_size(&self, slot: &Slot<L>) -> u64 {
        let mut state = self.state.lock();
        state.get(slot).map_or(0, |resident| encoding_size(resident.footprint.used))
    }

    /// How many resident bytes must leave for the need to be met, beyond those that are leaving.
    pub(crate) fn shortage(&self, need: Need) -> u64 {
        let state = self.state.lock();
        state.beyond(need, state.doomed)
    }

    /// How many resident bytes there are beyond the resident limit and those that are leaving.
    pub(crate) fn excess(&self) -> u64 {
        self.state.lock().excess()
    }

    /// Whether there were enough uses to look at the size.
    pub(crate) fn due(&self) -> bool {
        self.state.lock().due(1)
    }

    /// Enters a chunk that has just been put into its slot; of the reservation, `estimate` was
    /// meant for it.
    pub(crate) fn admit(
        &self,
        reservation: &mut Reservation<'_, L>,
        estimate: u64,
        slot: &Arc<Slot<L>>,
        footprint: Footprint,
        visit: Visit,
    ) {
        let mut state = self.lock_settled();
        let estimate = estimate.min(reservation.bytes);
        reservation.bytes -= estimate;
        state.flight -= estimate;
        slot.member.counters.resident.add(footprint.allocated);
        state.clock += 1;
        let mut resident = Resident {
            slot: Arc::clone(slot),
            footprint,
            dirty: false,
            saving: false,
            doomed: false,
            reduced: false,
            stuck: false,
            used: state.clock,
            awaited: 0,
            read: 0.0,
            written: 0.0,
            complete: false,
        };
        let usage = resident.usage(visit);
        if self.recorder.on() && !slot.is_ahead() {
            record(&self.recorder, slot.hash, resident.weight(), usage);
        }
        let weight = resident.weight();
        if slot.is_ahead() {
            resident.awaited = weight;
            state.awaiting += weight;
        }
        state.resident += weight;
        state.note_peak();
        let id = state.free.pop().unwrap_or_else(|| {
            state.residents.push(None);
            (state.residents.len() - 1) as u32
        });
        state.residents[id as usize] = Some(resident);
        state.links.push_back(&mut slot.member.residents.lock(), id);
        slot.id.store(id, Ordering::Relaxed);
        state.policy.admit(id, slot.hash, weight, usage);
        if let Some(curve) = &mut state.curve {
            curve.access(slot.member.id, slot.hash, weight, false);
        }
        if visit.write {
            state.set_dirty(id);
        }
    }

    /// Notes that a chunk whose body is locked is about to be changed, and tells whether it was
    /// dirty before. `None`, unless `forced`: there would be no room to encode it.
    pub(crate) fn begin_change(&self, slot: &Slot<L>, forced: bool) -> Option<bool> {
        let mut state = self.state.lock();
        let id = slot.id();
        let Some(resident) = state.get(slot) else { return Some(false) };
        let (was_dirty, encoding) = (resident.dirty, encoding_size(resident.footprint.used));
        let room = state.fits(Need::Load { bytes: 0, encoding });
        if !(was_dirty || forced || room) {
            return None;
        }
        state.set_dirty(id);
        Some(was_dirty)
    }

    /// Notes a chunk's new size, and that it was changed if it was.
    pub(crate) fn charge(&self, slot: &Slot<L>, footprint: Footprint, dirty: bool) {
        let mut state = self.state.lock();
        let id = slot.id();
        let Some(resident) = state.get(slot) else { return };
        let before = std::mem::replace(&mut resident.footprint, footprint).allocated;
        let (doomed, was_dirty) = (resident.doomed, resident.dirty);
        let after = footprint.allocated;
        if was_dirty {
            state.dirty_bytes = state.dirty_bytes - before + after;
        }
        state.resident = state.resident - before + after;
        if doomed {
            state.doomed = state.doomed - before + after;
        }
        state.note_peak();
        slot.member.counters.resident.add(after);
        slot.member.counters.resident.subtract(before);
        if before != after {
            state.policy.reweigh(id, after + bookkeeping::<L>());
        }
        if dirty {
            state.set_dirty(id);
        }
        if after < before {
            self.announce(state);
        }
    }

    /// Notes that a chunk has lost its values and is of use only for its defined cells: it takes a
    /// new place among the chunks, and the policy remembers the old one for the whole chunk.
    pub(crate) fn reduce(&self, slot: &Slot<L>, footprint: Footprint) {
        self.charge(slot, footprint, false);
        let mut state = self.lock_settled();
        let id = slot.id();
        if let Some(resident) = state.get(slot) {
            resident.reduced = true;
            let weight = resident.weight();
            state.policy.evict(id);
            state.policy.admit(id, !slot.hash, weight, slot.member.usage());
        }
    }

    /// Notes a use of a chunk that does not stay.
    pub(crate) fn pass(&self, slot: &Slot<L>, bytes: u64, visit: Visit) {
        if self.recorder.on() {
            let usage =
                Usage { write: visit.write, done: visit.whole(), ..Usage::of(slot.member.id) };
            record(&self.recorder, slot.hash, bytes + bookkeeping::<L>(), usage);
        }
    }

    /// Asks the policy which chunks shall pass, of a read of more than can be kept.
    pub(crate) fn let_pass<'t, 'm: 't, A: 't>(
        &self,
        tasks: impl Iterator<Item = &'t mut Task<'m, L, A>>,
    ) where
        L: 'm,
    {
        let mut state = self.lock_settled();
        for task in tasks {
            let (member, identity) = (task.item.member, task.item.hash);
            task.transient = member.options().preemption.counts() && state.policy.lets_pass(identity);
            if let Some(curve) = state.curve.as_mut().filter(|_| task.transient) {
                curve.access(member.id, identity, task.stays, false);
            }
        }
    }

    /// A dataset's resident chunks.
    pub(crate) fn slots(&self, member: &Member<L>) -> Vec<Arc<Slot<L>>> {
        let state = self.state.lock();
        let ids = state.links.iter(&member.residents.lock()).collect::<Vec<_>>();
        let slot = |id: u32| state.residents[id as usize].as_ref().map(|one| Arc::clone(&one.slot));
        ids.into_iter().filter_map(slot).collect()
    }

    pub(crate) fn condition(&self, slot: &Slot<L>) -> Option<Condition> {
        let mut state = self.state.lock();
        let resident = state.get(slot)?;
        let Resident { footprint, dirty, saving, .. } = *resident;
        Some(Condition { footprint, dirty, saving })
    }

    /// Strikes a chunk off. `evicted`: to make room; otherwise it has ceased to be or is closed.
    pub(crate) fn strike(&self, slot: &Slot<L>, evicted: bool) {
        let mut state = self.state.lock();
        let id = slot.id();
        let Some(resident) = state.get(slot) else { return };
        let (weight, doomed) = (resident.weight(), resident.doomed);
        let bytes = resident.footprint.allocated;
        state.awaiting -= resident.awaited;
        state.set_clean(id);
        if doomed {
            state.doomed -= weight;
        }
        state.resident -= weight;
        slot.member.counters.resident.subtract(bytes);
        match evicted {
            true => state.policy.evict(id),
            false => state.policy.remove(id),
        }
        slot.id.store(NOT_RESIDENT, Ordering::Relaxed);
        state.links.remove(&mut slot.member.residents.lock(), id);
        let gone = state.residents[id as usize].take();
        state.free.push(id);
        self.announce(state);
        drop(gone);
    }
}
