//! Making room: chunks leave in the policy's order, dirty ones after they are written back.
//!
//! Between requests, chunks take no more than the resident limit. While requests run they may take
//! what the active limit leaves them; when that is used up, room is made down to the resident limit
//! at once, so that dirty chunks are written back many at a time.
//!
//! Tasks on the executor never wait: [`Shared::try_room`] only lets clean chunks leave, and gives
//! up when the coldest chunk is dirty. The calling thread then waits and writes back, in
//! [`Shared::reserve`].

use crate::budget::{Condition, Demand, Dirty, Need, Reservation, Victims};
use crate::cache::Shared;
use crate::layout::{Footprint, Layout};
use crate::shield::shield;
use crate::slot::{Body, Slot};
use crate::sync::{Arc, RwLockWriteGuard};

impl<L: Layout> Shared<L> {
    /// Room, if it can be had without waiting and without writing.
    pub(crate) fn try_room(&self, need: Need) -> Option<Reservation<'_, L>> {
        loop {
            if let Some(reservation) = self.budget.try_reserve(need) {
                return Some(reservation);
            }
            let demand = Demand { bytes: self.wanted(need), dirty: Dirty::Stop, company: 0 };
            let victims = self.budget.victims(demand)?;
            victims.slots.iter().for_each(|slot| self.leave(slot));
        }
    }

    /// Room. Waits; to be called only by one who holds no room.
    pub(crate) fn reserve(&self, need: Need) -> Result<Reservation<'_, L>, L::Error> {
        loop {
            let seen = self.budget.changes();
            if let Some(reservation) = self.budget.try_reserve(need) {
                return Ok(reservation);
            }
            let demand = Demand { bytes: self.wanted(need), ..self.with_dirty() };
            if let Some(victims) = self.budget.victims(demand) {
                self.evict(victims)?;
                continue;
            }
            if let Some(reservation) = self.budget.force_or_wait(need, seen) {
                return Ok(reservation);
            }
        }
    }

    /// Room for the encodings of as many of `slots` as there can be, at least one. Waits; to be
    /// called only by one who holds no room.
    pub(crate) fn reserve_encodings(&self, slots: &[Arc<Slot<L>>]) -> (Reservation<'_, L>, usize) {
        loop {
            let seen = self.budget.changes();
            if let Some(reserved) = self.budget.try_encodings(slots) {
                return reserved;
            }
            let bytes = slots.first().map_or(0, |slot| self.budget.encoding_size(slot));
            let need = Need::Encode { bytes };
            let demand =
                Demand { bytes: self.budget.shortage(need), dirty: Dirty::Skip, company: 0 };
            if let Some(victims) = self.budget.victims(demand) {
                victims.slots.iter().for_each(|slot| self.leave(slot));
            } else if let Some(room) = self.budget.force_or_wait(need, seen) {
                return (room, 1);
            }
        }
    }

    /// Brings what is resident down to the resident limit.
    pub(crate) fn trim(&self) -> Result<(), L::Error> {
        loop {
            let bytes = self.budget.excess();
            if bytes == 0 {
                return Ok(());
            }
            let Some(victims) = self.budget.victims(Demand { bytes, ..self.with_dirty() }) else {
                return Ok(());
            };
            self.evict(victims)?;
        }
    }

    fn wanted(&self, need: Need) -> u64 {
        self.budget.shortage(need).max(self.budget.excess())
    }

    fn with_dirty(&self) -> Demand {
        let company = match self.executor().threads() {
            1 => 0,
            threads => 2 * threads as u64,
        };
        Demand { bytes: 0, dirty: Dirty::Take, company }
    }

    fn evict(&self, mut victims: Victims<'_, L>) -> Result<(), L::Error> {
        let saved = self.save(victims.dirty.take());
        victims.slots.iter().for_each(|slot| self.leave(slot));
        saved
    }

    /// Lets a chunk go, or a part of it if that frees anything, unless it is not clean.
    fn leave(&self, slot: &Arc<Slot<L>>) {
        let mut body = slot.write();
        let Some(condition) = self.budget.condition(slot).filter(Condition::clean) else { return };
        match shrink(slot, &mut body, condition.footprint) {
            Some(footprint) if body.values => return self.budget.charge(slot, footprint, false),
            Some(footprint) => return self.budget.reduce(slot, footprint),
            None => {}
        }
        slot.member.counters.evictions.add(1);
        self.remove(slot, body, true);
    }

    /// Lets a chunk go, all of it, unless it is not clean or still being loaded.
    pub(crate) fn leave_whole(&self, slot: &Arc<Slot<L>>) {
        let body = slot.write();
        if self.budget.condition(slot).as_ref().is_some_and(Condition::clean) {
            slot.member.counters.evictions.add(1);
            self.remove(slot, body, true);
        }
    }

    /// Takes a chunk from its slot and strikes it off the books.
    pub(crate) fn remove(
        &self,
        slot: &Arc<Slot<L>>,
        mut body: RwLockWriteGuard<'_, Body<L>>,
        evicted: bool,
    ) {
        let chunk = body.chunk.take();
        // Freed before it is struck off; a chunk that panics while dropped is no longer ours.
        let _ = shield::<(), L::Error>(|| {
            drop(chunk);
            Ok(())
        });
        self.budget.strike(slot, evicted);
        drop(body);
        slot.member.table.remove(slot);
    }
}

/// Frees what a clean chunk can spare: unused memory, or its values if its defined cells alone are
/// of use. `None`: nothing.
fn shrink<L: Layout>(slot: &Slot<L>, body: &mut Body<L>, before: Footprint) -> Option<Footprint> {
    let layout = &slot.member.layout;
    let chunk = body.chunk.as_mut()?;
    let spare_values = body.values && slot.member.keeps_defined();
    if !before.wasteful() && !spare_values {
        return None;
    }
    let shrunk = shield::<_, L::Error>(|| {
        if before.wasteful() {
            layout.condense(chunk);
        } else {
            layout.drop_values(chunk);
        }
        Ok((layout.footprint(chunk), layout.has_values(chunk)))
    });
    let (footprint, values) = shrunk.ok()?;
    body.values = values;
    (footprint.allocated < before.allocated).then_some(footprint)
}
