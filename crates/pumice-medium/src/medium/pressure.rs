//! What happens when much metadata was changed since the last commit.
//!
//! Blocks in new space are written to their places and forgotten: nothing that is committed refers
//! to them, so that nobody sees them before the commit that does. Blocks that replace others have to
//! wait for a commit, those of chunk indexes elsewhere in the file (`parked.rs`); [`File::relieve`](crate::file::File::relieve) makes one, between two changes,
//! when they alone are too many.

use super::{Medium, State};
use pumice_store::WriteOp;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How much memory changed metadata may take unless it is said: as much as libhdf5's cache of
/// metadata has at most.
pub const METADATA_LIMIT: usize = 32 << 20;

/// The blocks of a chunk index have as much memory whatever the limit is.
const LEAST_OF_INDEX: usize = 16 << 10;

/// How many bytes of them may be in space that only a commit can write to, so that they cannot be written before.
pub(super) fn early(limit: usize) -> u64 {
    limit as u64 / 4
}

impl Medium {
    /// The same, whose changed metadata takes at most about `limit` bytes of memory.
    pub fn with_metadata_limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self.press_at = AtomicUsize::new(limit);
        self.state().spill_at = limit;
        self.state().allocator.take_early_at_most(early(limit));
        self
    }

    /// How many bytes the blocks of a chunk index may take in memory.
    pub fn index_limit(&self) -> usize {
        (self.limit / 4).max(LEAST_OF_INDEX)
    }

    /// Takes note that up to `bytes` of metadata changed that is not staged yet.
    pub fn note_change(&self, bytes: usize) {
        self.unstaged.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Whether changed metadata takes more memory than it may: it is to be staged.
    pub fn is_pressed(&self) -> bool {
        self.writable && self.waiting_bytes() > self.press_at.load(Ordering::Relaxed)
    }

    /// A commit is under way: all that changed is staged.
    pub(super) fn reset_pressure(&self) {
        self.unstaged.store(0, Ordering::Relaxed);
        self.press_at.store(self.limit, Ordering::Relaxed);
    }

    /// Bytes of memory that changes take which wait for a commit, staged or not.
    pub fn waiting_bytes(&self) -> usize {
        let state = self.state();
        let known = state.staged + state.parking.bytes + state.allocator.footprint();
        known.saturating_add(self.unstaged.load(Ordering::Relaxed))
    }

    /// When everything is staged but `waiting` bytes, which wait for a commit: writes what is in new
    /// space. Says whether so much is left that only a commit helps.
    pub fn relieve(&self, waiting: usize) -> bool {
        self.unstaged.store(waiting, Ordering::Relaxed);
        let mut state = self.state();
        self.spill(&mut state);
        let left = state.staged + state.parking.bytes + state.allocator.footprint() + waiting;
        // In the middle of a long change nobody commits, and all of it is not staged every time.
        self.press_at.store(self.limit.max(left.saturating_mul(2)), Ordering::Relaxed);
        left > self.limit / 2
    }

    /// Writes staged blocks that are in new space, and forgets them. Those that cannot be written
    /// stay; a commit will say why.
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
        // What is left is not looked through again for every block that follows.
        state.spill_at = self.limit.max(state.staged.saturating_mul(2));
    }
}
