//! Keeps large requests from thrashing each other.
//!
//! A request that loads more than one group of chunks needs room in flight for several groups to run
//! at full speed. If more such requests ran than there is room for, each would wait for the others'
//! room after every group, and what one has brought would leave before another is done. So they are
//! admitted in the order in which they come, as many as the room between the limits is enough for,
//! and always one. Small requests do not stop here.
//!
//! One who waits here has a place in the order but neither room nor chunks, and one who is admitted
//! never waits for one who is not.

use crate::sync::{Condvar, Mutex};

pub(crate) struct Admission {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Tickets given out, and the one whose turn it is.
    next: u64,
    turn: u64,
    /// The room that those need who are admitted.
    admitted: u64,
}

/// The right to run as a large request, until dropped.
pub(crate) struct Admitted<'a> {
    admission: &'a Admission,
    bytes: u64,
}

impl Admission {
    pub(crate) fn new() -> Self {
        let state = State { next: 0, turn: 0, admitted: 0 };
        Admission { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Waits until there is room for one more who needs `bytes` of `limit`.
    pub(crate) fn enter(&self, bytes: u64, limit: u64) -> Admitted<'_> {
        let mut state = self.state.lock();
        let ticket = state.next;
        state.next += 1;
        let mut fits = state.admitted == 0 || state.admitted.saturating_add(bytes) <= limit;
        while state.turn != ticket || !fits {
            state = self.changed.wait(state);
            fits = state.admitted == 0 || state.admitted.saturating_add(bytes) <= limit;
        }
        state.turn += 1;
        state.admitted += bytes;
        drop(state);
        // The next one may fit as well.
        self.changed.notify_all();
        Admitted { admission: self, bytes }
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        self.admission.state.lock().admitted -= self.bytes;
        self.admission.changed.notify_all();
    }
}
