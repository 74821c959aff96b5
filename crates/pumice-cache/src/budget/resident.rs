//! What the books say of one resident chunk.

use super::Cause;
use crate::layout::{Family, Footprint};
use crate::policy::Usage;
use crate::slot::Slot;
use crate::sync::Arc;

pub(super) struct Resident<F: Family> {
    pub(super) slot: Arc<Slot<F>>,
    pub(super) footprint: Footprint,
    /// What was encoded of it early.
    pub(super) encoded: u64,
    pub(super) dirty: bool,
    /// Somebody is writing it back.
    pub(super) saving: bool,
    /// Somebody is evicting it.
    pub(super) doomed: bool,
    /// It has lost its values, and the policy knows it by another identity.
    pub(super) reduced: bool,
    /// It could not be written back: others leave rather than this.
    pub(super) stuck: Option<Cause>,
    /// When it was last used.
    pub(super) used: u64,
    /// What it took when it was loaded ahead, until it is used.
    pub(super) awaited: u64,
    /// The shares of the chunk that were read and written since each was last whole.
    pub(super) read: f32,
    pub(super) written: f32,
    /// Whether all of it has been written at least once.
    pub(super) complete: bool,
}

/// A use of a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visit {
    pub(crate) write: bool,
    /// The share of the chunk that is used, from 0 to 1; 0 if it is not known.
    pub(crate) share: f32,
    /// Whether it is to be counted as a hit.
    pub(crate) hit: bool,
}

impl Visit {
    /// Whether it uses all of the chunk.
    pub(crate) fn whole(&self) -> bool {
        self.share >= WHOLE
    }
}

impl<F: Family> Resident<F> {
    /// What it counts for in the limits: its memory, what was encoded of it, and what the cache needs
    /// to keep it.
    pub(super) fn weight(&self) -> u64 {
        self.footprint.allocated + self.encoded + bookkeeping::<F>()
    }

    /// Whether somebody writes it back or lets it leave, or it could not be written back.
    pub(super) fn busy(&self) -> bool {
        self.saving || self.doomed || self.stuck.is_some()
    }

    /// Adds a use to what is known of the chunk.
    pub(super) fn usage(&mut self, visit: Visit) -> Usage {
        let Visit { write, share, .. } = visit;
        let sum = if write { &mut self.written } else { &mut self.read };
        *sum += share;
        let done = *sum >= WHOLE;
        if done {
            *sum = 0.0;
            self.complete |= write;
        }
        let options = self.slot.member.options();
        // Of a sparse chunk it is never known what is to come.
        let partial = write && !done && share > 0.0;
        let (hint, weight) = (options.hint, options.preemption);
        let done = done && weight.counts();
        Usage { dataset: self.slot.member.id, write, done, partial, hint, weight }
    }
}

/// What the cache needs to keep one chunk: the slot and its counts, its entries in the dataset's
/// table, in the books and with the policy.
pub(crate) const fn bookkeeping<F: Family>() -> u64 {
    // The counts of its users come before the slot, and keep its alignment.
    let slot = size_of::<Slot<F>>() + align_of::<Slot<F>>();
    let table = 2 * size_of::<usize>();
    let books = size_of::<Option<Resident<F>>>();
    (slot + table + books + POLICY_ENTRY + BLOCKS) as u64
}

/// About what the system's memory adds to the blocks of one chunk and its slot, by heads and by rounding.
const BLOCKS: usize = 112;

/// About what a policy needs for one resident chunk.
const POLICY_ENTRY: usize = 64;

/// Shares that sum to this make the whole chunk: they are rounded.
const WHOLE: f32 = 0.9999;

/// How many bytes the encoding of a chunk that uses so many is expected to take: filters may add a
/// little.
pub(crate) fn encoding_size(used: u64) -> u64 {
    used.saturating_add(used / 16).saturating_add(64)
}
