//! The search for space that nothing refers to, in a file that does not store its free space. It
//! runs when the file would grow, before the first commit of an opening.
//!
//! Until then the committed file is as it was when it was opened, and all ranges taken since lie
//! behind its end or in space that it refers to. So unused space of the committed file belongs to
//! nobody. The search takes no lock of this medium; a caller who allocates meanwhile gets space at
//! the end.

use super::Medium;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes that a search may read, beside twice the bytes by which the file grows.
const ALLOWED: u64 = 1 << 20;
const MOST_ALLOWED: u64 = 64 << 20;

/// A search that would have read too much is tried again when the file grows by this many times as
/// much.
const AGAIN: u64 = 16;

/// The result of a search.
pub enum SearchResult {
    /// Addresses and lengths of unused ranges.
    Unused(Vec<(u64, u64)>),
    /// More would have to be read than is allowed.
    TooMuch,
    /// Nothing is known for sure.
    Nothing,
}

/// A search of the committed file with a limit of bytes to read.
pub(super) type Look = Arc<dyn Fn(u64) -> SearchResult + Send + Sync>;

/// The state of the search.
pub(super) struct Looking {
    look: Look,
    /// The end of the file when it was opened.
    end: u64,
    /// The growth at which the next search is due.
    due: u64,
}

impl Medium {
    /// Sets the search to run when the file would grow. Nothing may have been allocated yet.
    pub fn look_with(&self, look: Look) {
        let mut state = self.state();
        let end = state.allocator.end();
        state.looking = Some(Looking { look, end, due: 0 });
        self.looks.store(true, Ordering::Relaxed);
    }

    /// Ends searching: the committed file is about to change.
    pub(super) fn stop_looking(&self, state: &mut super::State) {
        state.looking = None;
        self.looks.store(false, Ordering::Relaxed);
    }

    /// Searches for unused space if there is no room for `length` bytes.
    pub(super) fn look_for_room(&self, length: u64) {
        // Readers of SWMR may be on their way to what was deleted.
        if !self.looks.load(Ordering::Relaxed) || length == 0 || self.writes_swmr() {
            return;
        }
        let mut state = self.state();
        let room = state.allocator.has_room(length);
        let grown = state.allocator.end();
        let Some(looking) = state.looking.as_mut().filter(|_| !room) else { return };
        let growth = grown.saturating_sub(looking.end).saturating_add(length);
        if growth < looking.due {
            return;
        }
        // Prevents a second search meanwhile.
        looking.due = u64::MAX;
        let look = looking.look.clone();
        drop(state);
        let found = look(growth.saturating_mul(2).saturating_add(ALLOWED).min(MOST_ALLOWED));
        let mut state = self.state();
        let Some(looking) = &mut state.looking else { return };
        match found {
            SearchResult::TooMuch if growth < MOST_ALLOWED => {
                looking.due = growth.saturating_mul(AGAIN).max(ALLOWED);
                return;
            }
            SearchResult::Unused(ranges) => state.allocator.discover(&ranges),
            SearchResult::TooMuch | SearchResult::Nothing => {}
        }
        self.stop_looking(&mut state);
    }
}
