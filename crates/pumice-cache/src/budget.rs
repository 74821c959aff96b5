//! The books: what is held, what is dirty, what may leave, and who waits for room.
//!
//! Everything the cache holds is either *resident* (decoded chunks in slots, at their measured
//! size) or *in flight* (reserved by running operations for bytes being fetched, chunks being
//! decoded, encodings being written). Both together stay within the active limit:
//!
//! - A [`Reservation`] is made before memory is taken. Its holder never waits for room, so those
//!   who wait are always waiting for somebody who works.
//! - As long as a chunk is dirty, room for its encoding is kept free: loads may not take it. Thus
//!   dirty chunks can always leave, one after another.
//! - When nothing can leave and nobody works, a reservation is granted over the limit: that is the
//!   one chunk that alone is larger. Estimates that prove too low are the other way to exceed it.
//!
//! The resident limit is the business of [`evict`](crate::evict); the policy lives here because
//! what it ranks are the residents. Only integers are handled under the lock.

use crate::layout::{Footprint, Layout};
use crate::policy::Policy;
use crate::slot::{NOT_RESIDENT, Slot};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, Ordering};

pub(crate) struct Budget<L: Layout> {
    state: Mutex<State<L>>,
    changed: Condvar,
}

struct State<L: Layout> {
    policy: Box<dyn Policy>,
    residents: Vec<Option<Resident<L>>>,
    free: Vec<u32>,
    resident_limit: u64,
    active_limit: u64,
    resident: u64,
    flight: u64,
    peak: u64,
    /// The part of `resident` that is about to leave.
    doomed: u64,
    dirty: usize,
    /// The largest encoding to expect of any chunk since the last time none was dirty.
    largest_encoding: u64,
    /// Reservations held: their holders never wait for room.
    operations: usize,
    /// Evictions under way: they may wait for room to encode.
    evictions: usize,
    /// Counts events that those who wait may be waiting for.
    changes: u64,
    waiting: usize,
}

struct Resident<L: Layout> {
    slot: Arc<Slot<L>>,
    footprint: Footprint,
    dirty: bool,
    /// Somebody is writing it back.
    saving: bool,
    /// Somebody is evicting it.
    doomed: bool,
}

/// What room is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Load,
    Encode,
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

/// Room taken for an operation; given back when dropped.
pub(crate) struct Reservation<'b, L: Layout> {
    budget: &'b Budget<L>,
    bytes: u64,
}

/// Chunks chosen to leave. What has not left when this is dropped stays.
pub(crate) struct Victims<'b, L: Layout> {
    budget: &'b Budget<L>,
    pub(crate) slots: Vec<Arc<Slot<L>>>,
    /// Those among them that must be saved first.
    pub(crate) dirty: Saving<'b, L>,
}

/// Dirty chunks that nobody else may write back until this is dropped.
pub(crate) struct Saving<'b, L: Layout> {
    budget: &'b Budget<L>,
    slots: Vec<Arc<Slot<L>>>,
}

/// How many bytes to free, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    pub(crate) bytes: u64,
    /// Without: the search ends at the first dirty chunk, lest warmer clean ones leave before it.
    pub(crate) dirty: bool,
    /// How many more chunks to write back when one must be, so that threads share the work.
    pub(crate) company: u64,
}

impl<L: Layout> State<L> {
    fn held(&self) -> u64 {
        self.resident + self.flight
    }

    fn ceiling(&self, purpose: Purpose) -> u64 {
        match purpose {
            Purpose::Load if self.dirty > 0 => {
                self.active_limit.saturating_sub(self.largest_encoding)
            }
            _ => self.active_limit,
        }
    }

    fn fits(&self, bytes: u64, purpose: Purpose) -> bool {
        bytes == 0 || self.held().saturating_add(bytes) <= self.ceiling(purpose)
    }

    fn take(&mut self, bytes: u64) {
        self.flight += bytes;
        self.operations += 1;
        self.note_peak();
    }

    fn note_peak(&mut self) {
        self.peak = self.peak.max(self.held());
    }

    fn get(&mut self, slot: &Slot<L>) -> Option<&mut Resident<L>> {
        let resident = self.residents.get_mut(slot.id() as usize)?.as_mut();
        resident.filter(|resident| std::ptr::eq(&*resident.slot, slot))
    }

    fn set_dirty(&mut self, id: u32) {
        let Some(resident) = &mut self.residents[id as usize] else { return };
        if !resident.dirty {
            resident.dirty = true;
            self.dirty += 1;
        }
        self.largest_encoding = self.largest_encoding.max(encoding_size(resident.footprint));
    }

    fn set_clean(&mut self, id: u32) {
        let Some(resident) = &mut self.residents[id as usize] else { return };
        if !std::mem::take(&mut resident.dirty) {
            return;
        }
        self.dirty -= 1;
        if self.dirty == 0 {
            self.largest_encoding = 0;
        }
    }
}

/// What a chunk gives when it is told to leave: first its unused memory, if that is much.
fn gain(footprint: Footprint) -> u64 {
    if footprint.wasteful() { footprint.allocated - footprint.used } else { footprint.allocated }
}

/// How many bytes the encoding of a chunk is expected to take: filters may add a little.
fn encoding_size(footprint: Footprint) -> u64 {
    footprint.used + footprint.used / 16 + 64
}

impl<L: Layout> Budget<L> {
    pub(crate) fn new(policy: Box<dyn Policy>, resident_limit: u64, active_limit: u64) -> Self {
        let state = State {
            policy,
            residents: Vec::new(),
            free: Vec::new(),
            resident_limit,
            active_limit,
            resident: 0,
            flight: 0,
            peak: 0,
            doomed: 0,
            dirty: 0,
            largest_encoding: 0,
            operations: 0,
            evictions: 0,
            changes: 0,
            waiting: 0,
        };
        Budget { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// The resident and the active limit.
    pub(crate) fn limits(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.resident_limit, state.active_limit)
    }

    pub(crate) fn set_limits(&self, resident: u64, active: u64) {
        let mut state = self.state.lock();
        state.resident_limit = resident;
        state.active_limit = active.max(resident);
        state.policy.set_capacity(resident);
        self.announce(state);
    }

    /// The most that was ever held.
    pub(crate) fn peak(&self) -> u64 {
        self.state.lock().peak
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
    pub(crate) fn try_reserve(&self, bytes: u64) -> Option<Reservation<'_, L>> {
        let mut state = self.state.lock();
        if !state.fits(bytes, Purpose::Load) {
            return None;
        }
        state.take(bytes);
        Some(Reservation { budget: self, bytes })
    }

    /// For one who has found nothing that could leave: takes room over the limit if nobody works,
    /// otherwise waits until something has changed since `seen`.
    pub(crate) fn force_or_wait(&self, bytes: u64, seen: u64) -> Option<Reservation<'_, L>> {
        let mut state = self.state.lock();
        loop {
            if state.changes != seen {
                return None;
            }
            if state.operations == 0 && state.evictions == 0 {
                state.take(bytes);
                return Some(Reservation { budget: self, bytes });
            }
            state = self.wait(state);
        }
    }

    /// Takes room for the encodings of as many of `slots` as fit, at least one; waits for it.
    pub(crate) fn reserve_encodings(&self, slots: &[Arc<Slot<L>>]) -> (Reservation<'_, L>, usize) {
        let mut state = self.state.lock();
        loop {
            let (mut bytes, mut count) = (0_u64, 0);
            for slot in slots {
                let size = state.get(slot).map_or(0, |resident| encoding_size(resident.footprint));
                let forced = count == 0 && state.operations == 0;
                if !forced && !state.fits(bytes + size, Purpose::Encode) {
                    break;
                }
                bytes += size;
                count += 1;
            }
            if count > 0 {
                state.take(bytes);
                return (Reservation { budget: self, bytes }, count);
            }
            state = self.wait(state);
        }
    }

    /// How many resident bytes must leave for `bytes` to fit, beyond those that are leaving.
    pub(crate) fn shortage(&self, bytes: u64) -> u64 {
        let state = self.state.lock();
        let stays = state.held().saturating_sub(state.doomed);
        stays.saturating_add(bytes).saturating_sub(state.ceiling(Purpose::Load))
    }

    /// How many resident bytes there are beyond the resident limit and those that are leaving.
    pub(crate) fn excess(&self) -> u64 {
        let state = self.state.lock();
        state.resident.saturating_sub(state.doomed).saturating_sub(state.resident_limit)
    }

    /// Enters a chunk that has just been put into its slot; of the reservation, `estimate` was
    /// meant for it.
    pub(crate) fn admit(
        &self,
        reservation: &mut Reservation<'_, L>,
        estimate: u64,
        slot: &Arc<Slot<L>>,
        footprint: Footprint,
        dirty: bool,
    ) {
        let mut state = self.state.lock();
        let estimate = estimate.min(reservation.bytes);
        reservation.bytes -= estimate;
        state.flight -= estimate;
        state.resident += footprint.allocated;
        state.note_peak();
        slot.member.counters.resident.add(footprint.allocated);
        let resident = Resident {
            slot: Arc::clone(slot),
            footprint,
            dirty: false,
            saving: false,
            doomed: false,
        };
        let id = state.free.pop().unwrap_or_else(|| {
            state.residents.push(None);
            (state.residents.len() - 1) as u32
        });
        state.residents[id as usize] = Some(resident);
        slot.id.store(id, Ordering::Relaxed);
        state.policy.admit(id, slot.hash, footprint.allocated);
        if dirty {
            state.set_dirty(id);
        }
    }

    /// Notes a chunk's new size, and that it was changed if it was.
    pub(crate) fn charge(&self, slot: &Slot<L>, footprint: Footprint, dirty: bool) {
        let mut state = self.state.lock();
        let id = slot.id();
        let Some(resident) = state.get(slot) else { return };
        let before = std::mem::replace(&mut resident.footprint, footprint).allocated;
        let doomed = resident.doomed;
        let after = footprint.allocated;
        state.resident = state.resident - before + after;
        if doomed {
            state.doomed = state.doomed - before + after;
        }
        state.note_peak();
        slot.member.counters.resident.add(after);
        slot.member.counters.resident.subtract(before);
        if before != after {
            state.policy.reweigh(id, after);
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
        let mut state = self.state.lock();
        let id = slot.id();
        if state.get(slot).is_some() {
            state.policy.evict(id);
            state.policy.admit(id, !slot.hash, footprint.allocated);
        }
    }

    /// Notes a use; when the books are in use it is not worth waiting, and a use goes uncounted.
    pub(crate) fn touch_or_skip(&self, slot: &Slot<L>) {
        if let Some(mut state) = self.state.try_lock() {
            state.policy.touch(slot.id());
        }
    }

    pub(crate) fn touch(&self, slot: &Slot<L>) {
        self.state.lock().policy.touch(slot.id());
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
        let (weight, doomed) = (resident.footprint.allocated, resident.doomed);
        state.set_clean(id);
        if doomed {
            state.doomed -= weight;
        }
        state.resident -= weight;
        slot.member.counters.resident.subtract(weight);
        match evicted {
            true => state.policy.evict(id),
            false => state.policy.remove(id),
        }
        slot.id.store(NOT_RESIDENT, Ordering::Relaxed);
        let gone = state.residents[id as usize].take();
        state.free.push(id);
        self.announce(state);
        drop(gone);
    }

    /// Chooses what leaves, coldest first.
    pub(crate) fn victims(&self, demand: Demand) -> Option<Victims<'_, L>> {
        let mut state = self.state.lock();
        let mut chosen = state.choose(demand, true);
        let found: u64 = chosen.iter().map(|&id| state.gain(id)).sum();
        if found < demand.bytes && demand.dirty {
            // Reservations of datasets give way to the cache's limits.
            chosen = state.choose(demand, false);
        }
        if chosen.is_empty() {
            return None;
        }
        state.evictions += 1;
        let dirty = Saving { budget: self, slots: Vec::new() };
        let mut victims = Victims { budget: self, slots: Vec::new(), dirty };
        for id in chosen {
            let Some(resident) = &mut state.residents[id as usize] else { continue };
            resident.doomed = true;
            resident.saving = resident.dirty;
            victims.slots.push(Arc::clone(&resident.slot));
            if resident.dirty {
                victims.dirty.slots.push(Arc::clone(&resident.slot));
            }
            let weight = resident.footprint.allocated;
            state.doomed += weight;
        }
        Some(victims)
    }

    /// Takes those of `slots` that are dirty for saving, waiting for others who save them. All who
    /// call this for the same chunks must name them in the same order.
    pub(crate) fn begin_saving(&self, slots: Vec<Arc<Slot<L>>>) -> Saving<'_, L> {
        let mut saving = Saving { budget: self, slots: Vec::with_capacity(slots.len()) };
        saving.slots.extend(slots.into_iter().filter(|slot| self.hold(slot, true)));
        saving
    }

    /// Waits until nobody saves the chunk and keeps others from doing so.
    pub(crate) fn hold_saves(&self, slot: &Arc<Slot<L>>) -> Saving<'_, L> {
        let slots = if self.hold(slot, false) { vec![Arc::clone(slot)] } else { Vec::new() };
        Saving { budget: self, slots }
    }

    /// Marks a chunk as being saved; `false`: it is not resident, or clean and only dirty counts.
    fn hold(&self, slot: &Slot<L>, only_dirty: bool) -> bool {
        let mut state = self.state.lock();
        loop {
            let Some(resident) = state.get(slot) else { return false };
            if !resident.saving {
                let wanted = resident.dirty || !only_dirty;
                resident.saving = wanted;
                return wanted;
            }
            state = self.wait(state);
        }
    }

    /// Notes that what is stored is what is in the slot.
    pub(crate) fn clean(&self, slot: &Slot<L>) {
        let mut state = self.state.lock();
        if state.get(slot).is_some() {
            state.set_clean(slot.id());
        }
    }

    /// Which of `slots` are dirty.
    pub(crate) fn dirty_among(&self, mut slots: Vec<Arc<Slot<L>>>) -> Vec<Arc<Slot<L>>> {
        let mut state = self.state.lock();
        slots.retain(|slot| state.get(slot).is_some_and(|resident| resident.dirty));
        slots
    }
}

impl<L: Layout> State<L> {
    fn gain(&self, id: u32) -> u64 {
        self.residents[id as usize].as_ref().map_or(0, |resident| gain(resident.footprint))
    }

    fn choose(&self, demand: Demand, keep_minimum: bool) -> Vec<u32> {
        let mut chosen = Vec::new();
        let (mut found, mut wanted, mut alone) = (0_u64, demand.bytes, true);
        let mut kept = Kept::default();
        self.policy.coldest(&mut |id| {
            if found >= wanted {
                return false;
            }
            let Some(resident) = &self.residents[id as usize] else { return true };
            if resident.doomed || resident.saving {
                return true;
            }
            if resident.dirty && !demand.dirty {
                return false;
            }
            let weight = gain(resident.footprint);
            if keep_minimum && !kept.may_lose(&resident.slot, weight) {
                return true;
            }
            if resident.dirty && std::mem::take(&mut alone) {
                let company = weight.saturating_mul(demand.company);
                wanted = wanted.saturating_add(company.min(self.resident_limit / 8));
            }
            found += weight;
            chosen.push(id);
            true
        });
        chosen
    }
}

/// What datasets with a minimum would have left.
#[derive(Default)]
struct Kept(Vec<(u64, u64)>);

impl Kept {
    fn may_lose<L: Layout>(&mut self, slot: &Slot<L>, weight: u64) -> bool {
        let member = &slot.member;
        if member.options.minimum == 0 {
            return true;
        }
        let known = self.0.iter().position(|(id, _)| *id == member.id);
        let place = known.unwrap_or_else(|| {
            self.0.push((member.id, member.counters.resident.value()));
            self.0.len() - 1
        });
        let left = self.0[place].1.saturating_sub(weight);
        if left < member.options.minimum {
            return false;
        }
        self.0[place].1 = left;
        true
    }
}

impl<L: Layout> Reservation<'_, L> {
    /// Corrects the estimate once the true size is known.
    pub(crate) fn resize(&mut self, bytes: u64) {
        let mut state = self.budget.state.lock();
        state.flight = state.flight - self.bytes + bytes;
        state.note_peak();
        self.bytes = bytes;
    }
}

impl<L: Layout> Drop for Reservation<'_, L> {
    fn drop(&mut self) {
        let mut state = self.budget.state.lock();
        state.flight -= self.bytes;
        state.operations -= 1;
        self.budget.announce(state);
    }
}

impl<L: Layout> Drop for Victims<'_, L> {
    fn drop(&mut self) {
        let mut state = self.budget.state.lock();
        state.evictions -= 1;
        for slot in &self.slots {
            let Some(resident) = state.get(slot) else { continue };
            resident.doomed = false;
            let weight = resident.footprint.allocated;
            state.doomed -= weight;
        }
        self.budget.announce(state);
    }
}

impl<L: Layout> Saving<'_, L> {
    pub(crate) fn slots(&self) -> &[Arc<Slot<L>>] {
        &self.slots
    }

    /// Brings the chunks of each dataset together, in the order of their keys.
    pub(crate) fn sort(&mut self) {
        self.slots.sort_by(|a, b| (a.member.id, &a.key).cmp(&(b.member.id, &b.key)));
    }

    /// Takes the first `count` out.
    pub(crate) fn split_front(&mut self, count: usize) -> Self {
        let rest = self.slots.split_off(count);
        Saving { budget: self.budget, slots: std::mem::replace(&mut self.slots, rest) }
    }

    /// Takes all out.
    pub(crate) fn take(&mut self) -> Self {
        self.split_front(self.slots.len())
    }
}

impl<L: Layout> Drop for Saving<'_, L> {
    fn drop(&mut self) {
        if self.slots.is_empty() {
            return;
        }
        let mut state = self.budget.state.lock();
        for slot in &self.slots {
            if let Some(resident) = state.get(slot) {
                resident.saving = false;
            }
        }
        self.budget.announce(state);
    }
}
