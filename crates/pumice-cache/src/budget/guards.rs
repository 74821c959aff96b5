//! Room, saves and evictions in progress: what their holders give back by dropping them.

use super::Budget;
use crate::layout::Family;
use crate::slot::Slot;
use crate::sync::Arc;

/// Room taken for an operation; given back when dropped.
pub(crate) struct Reservation<'b, F: Family> {
    pub(super) budget: &'b Budget<F>,
    pub(super) bytes: u64,
}

/// Chunks chosen to leave. What has not left when this is dropped stays.
pub(crate) struct Victims<'b, F: Family> {
    pub(super) budget: &'b Budget<F>,
    pub(crate) slots: Vec<Arc<Slot<F>>>,
    /// Those among them that must be saved first.
    pub(crate) dirty: Saving<'b, F>,
}

/// Dirty chunks that nobody else may write back until this is dropped.
pub(crate) struct Saving<'b, F: Family> {
    pub(super) budget: &'b Budget<F>,
    pub(super) slots: Vec<Arc<Slot<F>>>,
    /// Whether it counts as work under way, for which others wait rather than exceed the limits.
    pub(super) counted: bool,
}

impl<F: Family> Drop for Reservation<'_, F> {
    fn drop(&mut self) {
        let mut state = self.budget.state.lock();
        state.flight -= self.bytes;
        state.operations -= 1;
        state.review_spare();
        self.budget.announce(state);
    }
}

impl<F: Family> Drop for Victims<'_, F> {
    fn drop(&mut self) {
        let mut state = self.budget.state.lock();
        state.evictions -= 1;
        for slot in &self.slots {
            let Some(resident) = state.get(slot) else { continue };
            resident.doomed = false;
            let weight = resident.weight();
            state.doomed -= weight;
        }
        self.budget.announce(state);
    }
}

impl<F: Family> Saving<'_, F> {
    pub(crate) fn slots(&self) -> &[Arc<Slot<F>>] {
        &self.slots
    }

    /// Brings the chunks of each store and dataset together, in the order of their keys.
    pub(crate) fn sort(&mut self) {
        let place = |slot: &Slot<F>| (slot.layout.chunks().id(), slot.member.id);
        self.slots.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| a.key.cmp(&b.key)));
    }

    /// Takes the first `count` out.
    pub(crate) fn split_front(&mut self, count: usize) -> Self {
        let rest = self.slots.split_off(count);
        let slots = std::mem::replace(&mut self.slots, rest);
        Saving { budget: self.budget, slots, counted: false }
    }

    /// Takes all out.
    pub(crate) fn take(&mut self) -> Self {
        self.split_front(self.slots.len())
    }
}

impl<F: Family> Drop for Saving<'_, F> {
    fn drop(&mut self) {
        if self.slots.is_empty() && !self.counted {
            return;
        }
        let mut state = self.budget.state.lock();
        state.evictions -= usize::from(self.counted);
        for slot in &self.slots {
            if let Some(resident) = state.get(slot) {
                resident.saving = false;
            }
        }
        self.budget.announce(state);
    }
}
