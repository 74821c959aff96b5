//! The memory limit of changed metadata.
//!
//! Above the limit, blocks in new space are written to their places and dropped from memory:
//! nothing committed refers to them, so nobody sees them before their commit. Blocks that replace
//! others wait for a commit; those of chunk indexes wait elsewhere in the file (`parked.rs`). If
//! the others alone are too many, `File::relieve` of the engine makes a commit between two changes.

use super::{Medium, State};
use pumice_store::WriteOp;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The default memory for changed metadata: the most that libhdf5's metadata cache has.
pub const METADATA_LIMIT: usize = 32 << 20;

/// The memory for the blocks of a chunk index, whatever the limit is.
const LEAST_OF_INDEX: usize = 16 << 10;

/// The most bytes of changed metadata in space taken early, which cannot be written before the
/// commit.
pub(super) fn early(limit: usize) -> u64 {
    limit as u64 / 4
}

impl Medium {
    /// The medium with changed metadata limited to about `limit` bytes of memory.
    pub fn with_metadata_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self.press_at = AtomicUsize::new(limit);
        self.state().spill_at = limit;
        self.state().allocator.take_early_at_most(early(limit));
        self
    }

    /// The memory for the blocks of a chunk index.
    pub fn index_limit(&self) -> usize {
        (self.limit / 4).max(LEAST_OF_INDEX)
    }

    /// Notes that up to `bytes` of metadata changed and are not staged yet.
    pub fn note_change(&self, bytes: usize) {
        self.unstaged.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Whether changed metadata exceeds its memory, so that it is to be staged.
    pub fn is_pressed(&self) -> bool {
        self.writable && self.waiting_bytes() > self.press_at.load(Ordering::Relaxed)
    }

    /// A commit is under way: all that changed is staged.
    pub(super) fn reset_pressure(&self) {
        self.unstaged.store(0, Ordering::Relaxed);
        self.press_at.store(self.limit, Ordering::Relaxed);
    }

    /// Bytes of memory of changes that wait for a commit, staged or not.
    pub fn waiting_bytes(&self) -> usize {
        let state = self.state();
        let known = state.staged + state.parking.bytes + state.allocator.footprint();
        known.saturating_add(self.unstaged.load(Ordering::Relaxed))
    }

    /// Writes staged blocks in new space; all but `waiting` bytes are staged. Returns whether only
    /// a commit can free more memory.
    pub fn relieve(&self, waiting: usize) -> bool {
        self.unstaged.store(waiting, Ordering::Relaxed);
        let mut state = self.state();
        self.spill(&mut state);
        let left = state.staged + state.parking.bytes + state.allocator.footprint() + waiting;
        // Within a long change there is no commit, and staging everything each time would be slow.
        self.press_at.store(self.limit.max(left.saturating_mul(2)), Ordering::Relaxed);
        left > self.limit / 2
    }

    /// Writes staged blocks in new space and drops them. Blocks that cannot be written stay; the
    /// commit will report the error.
    pub(super) fn spill(&self, state: &mut State) {
        // From a complete journal to its end, nothing else is written.
        if state.pending.is_none() {
            let all = state.images.all();
            let new = all.iter().filter(|(at, _)| state.allocator.is_fresh(**at));
            let mut ops: Vec<_> =
                new.map(|(&offset, bytes)| WriteOp { offset, bytes: bytes.as_slice() }).collect();
            let addresses: Vec<u64> = ops.iter().map(|op| op.offset).collect();
            if self.put_stored(&mut ops).is_ok() {
                addresses.iter().for_each(|&address| state.drop_image(address));
            }
            if state.staged > self.limit {
                self.park(state);
            }
        }
        // The other blocks are not searched again for every following one.
        state.spill_at = self.limit.max(state.staged.saturating_mul(2));
    }
}
