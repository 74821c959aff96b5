//! Which chunks leave: the policy's order, bent by what is dirty, what cannot be written and what
//! datasets may keep.

use super::{Again, Budget, Resident, Saving, State, Victims};
use crate::layout::{Family, Footprint};
use crate::slot::Slot;
use crate::sync::Arc;

/// What to do when a dirty chunk's turn to leave comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dirty {
    /// Look no further, lest warmer clean chunks leave before it.
    Stop,
    /// Pass it over.
    Skip,
    /// Let it be saved and leave.
    Take,
}

/// How many bytes to free, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand<'c> {
    pub(crate) bytes: u64,
    pub(crate) dirty: Dirty,
    /// How many more chunks to write back when one must be, so that threads share the work.
    pub(crate) company: u64,
    /// Those that may be tried although they could not be written back before.
    pub(crate) again: Again<'c>,
}

/// So many uses of other chunks, and twice the number of chunks, a chunk loaded ahead has time.
const PATIENCE: u64 = 64;

/// Chunks loaded ahead may push out others, and are kept rather than others, until they take one in
/// so many bytes of the resident limit. Beyond that they only take room that is free.
const AWAITING: u64 = 4;

/// What a chunk gives when it is told to leave: first its unused memory, if that is much.
fn gain<F: Family>(resident: &Resident<F>) -> u64 {
    let Footprint { allocated, used, .. } = resident.footprint;
    if resident.footprint.wasteful() { allocated - used } else { resident.weight() }
}

impl<F: Family> Budget<F> {
    /// How many bytes may be loaded ahead: others must not leave for too much of it.
    pub(crate) fn room_ahead(&self) -> u64 {
        let state = self.lock_settled();
        let free = state.resident_limit.saturating_sub(state.held());
        free.max((state.resident_limit / AWAITING).saturating_sub(state.awaiting))
    }

    /// Chooses what leaves, coldest first.
    pub(crate) fn victims(&self, demand: Demand<'_>) -> Option<Victims<'_, F>> {
        let mut state = self.lock_settled();
        let mut chosen = state.choose(demand, true);
        let found: u64 = chosen.iter().map(|&id| state.gain(id)).sum();
        if found < demand.bytes && demand.dirty != Dirty::Stop {
            // Reservations of datasets, and work ahead, give way to the cache's limits.
            chosen = state.choose(demand, false);
        }
        self.doom(&mut state, chosen)
    }

    /// Chooses among the chunks of one dataset, those first that were not used for longest.
    pub(crate) fn victims_among(
        &self,
        slots: &[Arc<Slot<F>>],
        bytes: u64,
    ) -> Option<Victims<'_, F>> {
        let mut state = self.lock_settled();
        let mut candidates = Vec::with_capacity(slots.len());
        for slot in slots {
            let Some(resident) = state.get(slot) else { continue };
            if !resident.busy() {
                candidates.push((resident.used, slot.id(), resident.footprint.allocated));
            }
        }
        candidates.sort_unstable();
        let mut found = 0;
        let enough = |&(_, _, size): &(u64, u32, u64)| {
            let wanted = found < bytes;
            found += size;
            wanted
        };
        let chosen = candidates.into_iter().take_while(enough).map(|(_, id, _)| id).collect();
        self.doom(&mut state, chosen)
    }

    fn doom(&self, state: &mut State<F>, chosen: Vec<u32>) -> Option<Victims<'_, F>> {
        if chosen.is_empty() {
            return None;
        }
        state.evictions += 1;
        let dirty = Saving { budget: self, slots: Vec::new(), counted: false };
        let mut victims = Victims { budget: self, slots: Vec::new(), dirty };
        for id in chosen {
            let Some(resident) = &mut state.residents[id as usize] else { continue };
            // A policy that names a chunk twice must not have it written twice.
            if std::mem::replace(&mut resident.doomed, true) {
                continue;
            }
            resident.saving = resident.dirty;
            victims.slots.push(Arc::clone(&resident.slot));
            if resident.dirty {
                victims.dirty.slots.push(Arc::clone(&resident.slot));
            }
            let weight = resident.weight();
            state.doomed += weight;
        }
        Some(victims)
    }
}

impl<F: Family> State<F> {
    fn gain(&self, id: u32) -> u64 {
        self.residents[id as usize].as_ref().map_or(0, gain)
    }

    /// Whether it was loaded ahead of a read that may still come.
    fn awaits_use(&self, resident: &Resident<F>) -> bool {
        let patience = PATIENCE + 2 * self.residents.len() as u64;
        resident.slot.is_ahead() && self.clock - resident.used < patience
    }

    fn choose(&self, demand: Demand<'_>, keep_minimum: bool) -> Vec<u32> {
        let mut chosen = Vec::new();
        let (mut found, mut wanted, mut alone) = (0_u64, demand.bytes, true);
        let (mut kept, mut awaiting) = (Kept::default(), 0_u64);
        self.policy.coldest(&mut |id| {
            if found >= wanted {
                return false;
            }
            let Some(resident) = &self.residents[id as usize] else { return true };
            if resident.doomed || resident.saving || !demand.again.may_try(resident) {
                return true;
            }
            if resident.dirty && demand.dirty != Dirty::Take {
                return demand.dirty == Dirty::Skip;
            }
            let weight = gain(resident);
            if keep_minimum && self.awaits_use(resident) {
                awaiting += weight;
                if awaiting <= self.resident_limit / AWAITING {
                    return true;
                }
            }
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
    fn may_lose<F: Family>(&mut self, slot: &Slot<F>, weight: u64) -> bool {
        let member = &slot.member;
        let minimum = member.options().minimum;
        if minimum == 0 {
            return true;
        }
        let known = self.0.iter().position(|(id, _)| *id == member.id);
        let place = known.unwrap_or_else(|| {
            self.0.push((member.id, member.counters.resident.value()));
            self.0.len() - 1
        });
        let left = self.0[place].1.saturating_sub(weight);
        if left < minimum {
            return false;
        }
        self.0[place].1 = left;
        true
    }
}
