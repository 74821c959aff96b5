//! Who writes which chunks back.

use super::{Budget, Need, Reservation, Saving, State, encoding_size};
use crate::layout::Family;
use crate::refused::Saved;
use crate::slot::Slot;
use crate::sync::Arc;

/// Of the chunks that are next to leave, so many are looked at for what can be encoded early.
const NEXT: usize = 64;
/// What was encoded early and is kept may take one in so many bytes of the resident limit.
const ENCODED: u64 = 8;

/// A chunk that was not used for long and will have to be written.
pub(crate) enum Cold<'b, F: Family> {
    /// The cache is full: it will be written soon.
    Leaving(Saving<'b, F>),
    /// It may be changed before; there is room to encode it, and to keep what that gives.
    Staying(Saving<'b, F>, Reservation<'b, F>),
}

impl<F: Family> Budget<F> {
    /// Takes those of `slots` that are dirty for saving, waiting for others who save them. All who
    /// call this for the same chunks must name them in the same order.
    pub(crate) fn begin_saving(&self, slots: Vec<Arc<Slot<F>>>) -> Saving<'_, F> {
        self.state.lock().evictions += 1;
        let mut saving = Saving { budget: self, slots: Vec::new(), counted: true };
        saving.slots.extend(slots.into_iter().filter(|slot| self.hold(slot, true)));
        saving
    }

    /// Waits until nobody saves the chunk and keeps others from doing so.
    pub(crate) fn hold_saves(&self, slot: &Arc<Slot<F>>) -> Saving<'_, F> {
        let slots = if self.hold(slot, false) { vec![Arc::clone(slot)] } else { Vec::new() };
        Saving { budget: self, slots, counted: false }
    }

    /// Marks a chunk as being saved; `false`: it is not resident, or clean and only dirty counts.
    fn hold(&self, slot: &Slot<F>, only_dirty: bool) -> bool {
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
    pub(crate) fn clean(&self, slot: &Slot<F>) {
        let mut state = self.state.lock();
        if state.get(slot).is_some() {
            state.set_clean(slot.id());
        }
    }

    /// What chunks take in memory.
    pub(crate) fn footprint_of(&self, slots: &[Arc<Slot<F>>]) -> u64 {
        let mut state = self.state.lock();
        let size = |slot: &Arc<Slot<F>>| state.get(slot).map_or(0, |r| r.footprint.allocated);
        slots.iter().map(size).sum()
    }

    /// Which of `slots` are dirty.
    pub(crate) fn dirty_among(&self, mut slots: Vec<Arc<Slot<F>>>) -> Vec<Arc<Slot<F>>> {
        let mut state = self.state.lock();
        slots.retain(|slot| state.get(slot).is_some_and(|resident| resident.dirty));
        slots
    }

    /// Whether dirty chunks take more than one in `part` bytes of the resident limit.
    pub(crate) fn many_dirty(&self, part: u64) -> bool {
        let state = self.state.lock();
        state.dirty_bytes > state.resident_limit / part
    }

    /// Takes the coldest dirty chunks for saving that were written as a whole, at most `count`, as
    /// long as the dirty ones take more than one in `part` bytes of the resident limit.
    pub(crate) fn cold_dirty(&self, part: u64, count: usize) -> Option<Saving<'_, F>> {
        let mut state = self.lock_settled();
        let mut excess = state.dirty_bytes.saturating_sub(state.resident_limit / part);
        let mut chosen = Vec::new();
        state.policy.coldest(&mut |id| {
            if chosen.len() == count || excess == 0 {
                return false;
            }
            let Some(resident) = &state.residents[id as usize] else { return true };
            if resident.dirty && resident.complete && !resident.busy() {
                excess = excess.saturating_sub(resident.weight());
                chosen.push(id);
            }
            true
        });
        self.save_chosen(&mut state, chosen)
    }

    /// Takes one of the dirty chunks that are next to leave and of which it cannot be known whether
    /// they are complete, if it was not used for as many uses as there are chunks: as long as the dirty ones
    /// take more than one in `part` bytes of the resident limit.
    pub(crate) fn cold_open(&self, part: u64) -> Option<Cold<'_, F>> {
        let mut state = self.lock_settled();
        if state.dirty_bytes <= state.resident_limit / part {
            return None;
        }
        let idle = (state.residents.len() - state.free.len()) as u64;
        let (mut chosen, mut looked) = (None, 0);
        state.policy.coldest(&mut |id| {
            looked += 1;
            let Some(resident) = &state.residents[id as usize] else { return true };
            let open = !resident.complete && resident.written == 0.0 && resident.encoded == 0;
            let cold = state.clock - resident.used >= idle;
            if resident.dirty && open && cold && !resident.busy() {
                chosen = Some((id, encoding_size(resident.footprint.used)));
            }
            chosen.is_none() && looked < NEXT
        });
        let (id, bytes) = chosen?;
        if state.resident.saturating_add(bytes) > state.resident_limit {
            return self.save_chosen(&mut state, vec![id]).map(Cold::Leaving);
        }
        let need = Need::Encode { bytes };
        if state.encoded >= state.resident_limit / ENCODED || !state.fits(need) {
            return None;
        }
        let saving = self.save_chosen(&mut state, vec![id])?;
        Some(Cold::Staying(saving, self.take(&mut state, need)))
    }

    fn save_chosen(&self, state: &mut State<F>, chosen: Vec<u32>) -> Option<Saving<'_, F>> {
        let mut slots = Vec::with_capacity(chosen.len());
        for id in chosen {
            let Some(resident) = &mut state.residents[id as usize] else { continue };
            // A policy that names a chunk twice must not have it written twice.
            if !std::mem::replace(&mut resident.saving, true) {
                slots.push(Arc::clone(&resident.slot));
            }
        }
        if slots.is_empty() {
            return None;
        }
        state.evictions += 1;
        Some(Saving { budget: self, slots, counted: true })
    }

    /// Notes that chunks could not be written back, as far as they are still dirty.
    pub(crate) fn mark_stuck(&self, slots: &[Arc<Slot<F>>], saved: &Saved<F>) {
        let mut state = self.state.lock();
        for slot in slots {
            if let Some(resident) = state.get(slot).filter(|resident| resident.dirty) {
                resident.stuck = saved.failure(slot).or(resident.stuck);
            }
        }
    }
}
