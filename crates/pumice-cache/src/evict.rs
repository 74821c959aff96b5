//! Making room: chunks leave in the policy's order, dirty ones after they are written back.
//!
//! Between requests, chunks take no more than the resident limit. While requests run they may take
//! what the active limit leaves them; when that is used up, room is made down to the resident limit
//! at once, so that dirty chunks are written back many at a time.
//!
//! Tasks on the executor never wait: [`Shared::try_room`] only lets clean chunks leave, and gives
//! up when the coldest chunk is dirty. The calling thread then waits and writes back, in
//! [`Shared::reserve`].

use crate::budget::{
    Again, Concern, Condition, Demand, Dirty, LastResort, Need, Reservation, Victims,
};
use crate::cache::Shared;
use crate::layout::{ChunkMemory, Family, Footprint, Part, Trim};
use crate::member::Member;
use crate::refused::Saved;
use crate::shield::shield;
use crate::slot::{Body, Slot};
use crate::stats::Reason;
use crate::sync::{Arc, RwLockWriteGuard};

/// Chunks for each thread in a batch that is written back.
const EACH: usize = 8;

impl<F: Family> Shared<F> {
    /// Room, if it can be had without waiting and without writing.
    pub(crate) fn try_room(&self, need: Need) -> Option<Reservation<'_, F>> {
        loop {
            if let Some(reservation) = self.budget.try_reserve(need) {
                return Some(reservation);
            }
            let bytes = self.wanted(need);
            let demand = Demand { bytes, dirty: Dirty::Stop, company: 0, again: Again::None };
            let victims = self.budget.victims(demand)?;
            victims.slots.iter().for_each(|slot| self.leave(slot, Reason::Room));
        }
    }

    /// Room, and whether what it is for may stay. Waits; to be called only by one who holds no room.
    ///
    /// A chunk that cannot be written back does not matter as long as others can leave: its own
    /// dataset's flush and close tell of it. When nothing else is left, its error is told to those whom it
    /// concerns. Others get room beyond the limit, one at a time, and what they bring leaves at once.
    pub(crate) fn reserve(
        &self,
        need: Need,
        concern: &Concern,
    ) -> Result<(Reservation<'_, F>, bool), F::Error> {
        let mut again = Again::None;
        loop {
            let seen = self.budget.changes();
            if let Some(reservation) = self.budget.try_reserve(need) {
                return Ok((reservation, true));
            }
            let demand = Demand { bytes: self.wanted(need), again, ..self.with_dirty() };
            if let Some(victims) = self.budget.victims(demand) {
                let evicted = self.evict(victims, Reason::Room);
                if let Again::Concerning(concern) = std::mem::replace(&mut again, Again::None) {
                    evicted.concerning(concern)?;
                }
                continue;
            }
            match self.budget.force_or_wait(need, seen, concern) {
                LastResort::Granted(reservation) => return Ok((reservation, true)),
                LastResort::Passing(reservation) => return Ok((reservation, false)),
                LastResort::Changed => {}
                LastResort::Stuck => again = Again::Concerning(concern),
            }
        }
    }

    /// Room for the encodings of as many of `slots` as there can be, at least one. Waits; to be
    /// called only by one who holds no room.
    pub(crate) fn reserve_encodings(&self, slots: &[Arc<Slot<F>>]) -> (Reservation<'_, F>, usize) {
        // At the end of a batch, threads wait for each other: it is worth that only if each had several.
        let enough = match self.executor().threads() {
            1 => 1,
            threads => EACH * threads,
        };
        loop {
            let seen = self.budget.changes();
            if let Some(reserved) = self.budget.try_encodings(slots, enough) {
                return reserved;
            }
            let bytes = slots.first().map_or(0, |slot| self.budget.encoding_size(slot));
            let need = Need::Encode { bytes };
            let bytes = self.budget.shortage(need);
            let demand = Demand { bytes, dirty: Dirty::Skip, company: 0, again: Again::None };
            if let Some(victims) = self.budget.victims(demand) {
                victims.slots.iter().for_each(|slot| self.leave(slot, Reason::Room));
                continue;
            }
            if let LastResort::Granted(room) =
                self.budget.force_or_wait(need, seen, &Concern::none())
            {
                return (room, 1);
            }
        }
    }

    /// Brings what is resident down to the resident limit, as far as it can be written back;
    /// returns the first error. `stuck`: tries once more what could not be written before.
    pub(crate) fn trim(&self, stuck: bool) -> Result<(), F::Error> {
        let mut again = if stuck { Again::All } else { Again::None };
        let mut result = Ok(());
        loop {
            let bytes = self.budget.excess();
            if bytes == 0 {
                return result;
            }
            let demand = Demand { bytes, again, ..self.with_dirty() };
            let Some(victims) = self.budget.victims(demand) else { return result };
            let evicted = self.evict(victims, Reason::Room).result();
            if evicted.is_err() {
                again = Again::None;
            }
            result = result.and(evicted);
        }
    }

    /// Brings what a dataset has in memory down to its own limit, as far as it can be written back.
    pub(crate) fn trim_member(&self, member: &Member<F>) {
        let maximum = member.options().maximum;
        loop {
            let bytes = member.counters.resident.value().saturating_sub(maximum);
            if maximum == u64::MAX || bytes == 0 {
                return;
            }
            let slots = self.budget.slots(member);
            let Some(victims) = self.budget.victims_among(&slots, bytes) else { return };
            // Whoever flushes or closes the dataset learns of it.
            let _ = self.evict(victims, Reason::Maximum);
        }
    }

    fn wanted(&self, need: Need) -> u64 {
        self.budget.shortage(need).max(self.budget.excess())
    }

    fn with_dirty(&self) -> Demand<'static> {
        let company = match self.executor().threads() {
            1 => 0,
            threads => 2 * threads as u64,
        };
        Demand { bytes: 0, dirty: Dirty::Take, company, again: Again::None }
    }

    fn evict(&self, mut victims: Victims<'_, F>, reason: Reason) -> Saved<F> {
        let leave = |slots: &[Arc<Slot<F>>]| slots.iter().for_each(|slot| self.leave(slot, reason));
        let dirty = victims.dirty.take();
        leave(&victims.slots);
        let saved = self.save_in_batches(dirty, leave);
        self.budget.mark_stuck(&victims.slots, &saved);
        saved
    }

    /// Lets a chunk go, or a part of it if that frees anything, unless it is not clean.
    fn leave(&self, slot: &Arc<Slot<F>>, reason: Reason) {
        let mut body = slot.write();
        let Some(condition) = self.budget.condition(slot).filter(Condition::clean) else { return };
        match shrink(slot, &mut body, condition.footprint) {
            Some(footprint) if body.part == Part::All => {
                return self.budget.charge(slot, footprint, false);
            }
            Some(footprint) => return self.budget.reduce(slot, footprint),
            None => {}
        }
        self.remove(slot, body, reason);
    }

    /// Lets a chunk go, all of it, unless it is not clean or still being loaded.
    pub(crate) fn leave_whole(&self, slot: &Arc<Slot<F>>, reason: Reason) {
        let body = slot.write();
        if self.budget.condition(slot).as_ref().is_some_and(Condition::clean) {
            self.remove(slot, body, reason);
        }
    }

    /// Takes a chunk from its slot and strikes it off the books.
    pub(crate) fn remove(
        &self,
        slot: &Arc<Slot<F>>,
        mut body: RwLockWriteGuard<'_, Body<F>>,
        reason: Reason,
    ) {
        let chunk = body.chunk.take();
        body.early = None;
        if chunk.is_some() {
            slot.member.counters.count_eviction(reason);
        }
        slot.count_wasted();
        // Freed before it is struck off; a chunk that panics while dropped is no longer ours.
        let _ = shield::<(), F::Error>(|| {
            drop(chunk);
            Ok(())
        });
        self.budget.strike(slot, reason.evicts());
        drop(body);
        self.table.remove(slot);
    }
}

/// Frees what a clean chunk can spare: unused memory, or its values if its defined cells alone are
/// of use. `None`: nothing.
fn shrink<F: Family>(slot: &Slot<F>, body: &mut Body<F>, before: Footprint) -> Option<Footprint> {
    let chunk = body.chunk.as_mut()?;
    let spare_values = body.part == Part::All && slot.member.keeps_defined();
    if !before.wasteful() && !spare_values {
        return None;
    }
    let what = if before.wasteful() { Trim::Slack } else { Trim::Values };
    let shrunk = shield::<_, F::Error>(|| {
        chunk.trim(what);
        Ok(chunk.footprint())
    });
    let footprint = shrunk.ok()?;
    body.part = footprint.part;
    (footprint.allocated < before.allocated).then_some(footprint)
}
