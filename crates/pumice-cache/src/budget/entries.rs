//! What the books note of chunks: that they come, are changed, weigh more or less, and leave.

use super::resident::Resident;
use super::{Budget, Need, Reservation, Visit, bookkeeping, encoding_size};
use crate::layout::{Family, Footprint};
use crate::member::Member;
use crate::plan::{Task, Way};
use crate::policy::Usage;
use crate::slot::{NOT_RESIDENT, Slot};
use crate::sync::{Arc, Ordering};

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

impl<F: Family> Budget<F> {
    /// Enters a chunk that has just been put into its slot; of the reservation, `estimate` was
    /// meant for it.
    pub(crate) fn admit(
        &self,
        reservation: &mut Reservation<'_, F>,
        estimate: u64,
        slot: &Arc<Slot<F>>,
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
            encoded: 0,
            dirty: false,
            saving: false,
            doomed: false,
            reduced: false,
            stuck: None,
            used: state.clock,
            awaited: 0,
            read: 0.0,
            written: 0.0,
            complete: false,
        };
        let usage = resident.usage(visit);
        if self.watch.on() && !slot.is_ahead() {
            self.watch.used(slot.hash, resident.weight(), usage);
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
    pub(crate) fn begin_change(&self, slot: &Slot<F>, forced: bool) -> Option<bool> {
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
    pub(crate) fn charge(&self, slot: &Slot<F>, footprint: Footprint, dirty: bool) {
        let mut state = self.state.lock();
        let id = slot.id();
        let Some(resident) = state.get(slot) else { return };
        let before = std::mem::replace(&mut resident.footprint, footprint).allocated;
        let (doomed, was_dirty) = (resident.doomed, resident.dirty);
        let (after, weight) = (footprint.allocated, resident.weight());
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
            state.policy.reweigh(id, weight);
        }
        if dirty {
            state.set_dirty(id);
        }
        if after < before {
            self.announce(state);
        }
    }

    /// Takes what was encoded early of a chunk, whose body is locked, into the books; of the
    /// reservation, it was made with. `false`: it cannot be kept, since it is larger than was thought
    /// or there would be too much between requests.
    pub(crate) fn keep_encoding(
        &self,
        reservation: &mut Reservation<'_, F>,
        slot: &Slot<F>,
        size: u64,
    ) -> bool {
        let mut state = self.state.lock();
        let id = slot.id();
        let room = state.resident_limit.saturating_sub(state.resident);
        let Some(resident) = state.get(slot) else { return false };
        if !resident.dirty || size > room || size > reservation.bytes {
            return false;
        }
        resident.encoded = size;
        let (doomed, weight) = (resident.doomed, resident.weight());
        reservation.bytes -= size;
        state.flight -= size;
        state.resident += size;
        state.encoded += size;
        state.dirty_bytes += size;
        if doomed {
            state.doomed += size;
        }
        slot.member.counters.resident.add(size);
        state.policy.reweigh(id, weight);
        true
    }

    /// Notes that what was encoded early of a chunk is gone.
    pub(crate) fn drop_encoding(&self, slot: &Slot<F>) {
        let mut state = self.state.lock();
        let id = slot.id();
        let Some(resident) = state.get(slot) else { return };
        let size = std::mem::take(&mut resident.encoded);
        let (doomed, dirty, weight) = (resident.doomed, resident.dirty, resident.weight());
        state.resident -= size;
        state.encoded -= size;
        if dirty {
            state.dirty_bytes -= size;
        }
        if doomed {
            state.doomed -= size;
        }
        slot.member.counters.resident.subtract(size);
        state.policy.reweigh(id, weight);
        self.announce(state);
    }

    /// Notes that a chunk has lost its values and is of use only for its defined cells: it takes a
    /// new place among the chunks, and the policy remembers the old one for the whole chunk.
    pub(crate) fn reduce(&self, slot: &Slot<F>, footprint: Footprint) {
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
    pub(crate) fn pass(&self, slot: &Slot<F>, bytes: u64, visit: Visit) {
        if self.watch.on() {
            let usage =
                Usage { write: visit.write, done: visit.whole(), ..Usage::of(slot.member.id) };
            self.watch.used(slot.hash, bytes + bookkeeping::<F>(), usage);
        }
    }

    /// Asks the policy which chunks shall pass, of a read of more than can be kept.
    pub(crate) fn let_pass<'t, 'm: 't, A: 't>(
        &self,
        tasks: impl Iterator<Item = &'t mut Task<'m, F, A>>,
    ) where
        F: 'm,
    {
        let mut state = self.lock_settled();
        for task in tasks {
            let (member, identity) = (task.item.member, task.item.hash);
            if !member.options().preemption.counts() || !state.policy.lets_pass(identity) {
                continue;
            }
            task.way = Way::Pass;
            if let Some(curve) = state.curve.as_mut() {
                curve.access(member.id, identity, task.stays, false);
            }
        }
    }

    /// A dataset's resident chunks.
    pub(crate) fn slots(&self, member: &Member<F>) -> Vec<Arc<Slot<F>>> {
        let state = self.state.lock();
        let ids = state.links.iter(&member.residents.lock()).collect::<Vec<_>>();
        let slot = |id: u32| state.residents[id as usize].as_ref().map(|one| Arc::clone(&one.slot));
        ids.into_iter().filter_map(slot).collect()
    }

    pub(crate) fn condition(&self, slot: &Slot<F>) -> Option<Condition> {
        let mut state = self.state.lock();
        let resident = state.get(slot)?;
        let Resident { footprint, dirty, saving, .. } = *resident;
        Some(Condition { footprint, dirty, saving })
    }

    /// Strikes a chunk off. `evicted`: to make room; otherwise it has ceased to be or is closed.
    pub(crate) fn strike(&self, slot: &Slot<F>, evicted: bool) {
        let mut state = self.state.lock();
        let id = slot.id();
        let Some(resident) = state.get(slot) else { return };
        let (weight, doomed) = (resident.weight(), resident.doomed);
        let (encoded, bytes) = (resident.encoded, resident.footprint.allocated + resident.encoded);
        state.awaiting -= resident.awaited;
        state.encoded -= encoded;
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
