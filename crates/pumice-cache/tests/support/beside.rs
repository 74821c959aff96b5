//! Work beside a test: whether it is held back is seen in what its thread does, not in how long it takes.

#![allow(dead_code, reason = "each program uses a part of it")]

use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::thread::{self, Builder, Scope};
use std::time::Duration;

/// Longer than anything takes that is in nobody's way. A test that waits so long fails.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// How often a thread is looked at, and between two looks, before it counts as held back.
const LOOKS: usize = 8;
const BETWEEN: Duration = Duration::from_micros(500);

/// Work on a thread of its own.
pub(crate) struct Beside<T> {
    result: Receiver<T>,
    /// The number that the system gives the thread.
    thread: Option<u64>,
}

/// Begins work beside the test.
pub(crate) fn beside<'s, T: Send + 's>(
    scope: &'s Scope<'s, '_>,
    work: impl FnOnce() -> T + Send + 's,
) -> Beside<T> {
    beside_as(scope, "beside", work)
}

/// Begins work beside the test, on a thread of this name.
pub(crate) fn beside_as<'s, T: Send + 's>(
    scope: &'s Scope<'s, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 's,
) -> Beside<T> {
    let (done, result) = channel();
    let (tell, told) = channel();
    let run = move || {
        tell.send(own_number()).unwrap();
        drop(done.send(work()));
    };
    Builder::new().name(name.into()).spawn_scoped(scope, run).unwrap();
    Beside { result, thread: told.recv().unwrap() }
}

impl<T> Beside<T> {
    /// Waits for the result.
    pub(crate) fn recv(&self) -> Result<T, RecvTimeoutError> {
        self.result.recv_timeout(LONG)
    }

    /// The result of work that nothing holds back.
    #[track_caller]
    pub(crate) fn soon(&self, why: &str) -> T {
        self.recv().expect(why)
    }

    /// Whether the work has not ended yet.
    pub(crate) fn has_not_ended(&self) -> bool {
        self.result.try_recv().is_err_and(|error| error == TryRecvError::Empty)
    }

    /// Whether the work stands still without having ended: its thread sleeps, and has not been awake from one look to
    /// the next. Work that goes on is waited for.
    pub(crate) fn is_held_back(&self) -> bool {
        let (mut before, mut same) = (None, 0);
        while same < LOOKS {
            if !self.has_not_ended() {
                return false;
            }
            let now = self.thread.and_then(sleeps_since);
            // A system that does not tell is asked as often as a sleeping thread.
            let still = now == before && (now.is_some() || self.thread.is_none());
            same = if still { same + 1 } else { 0 };
            before = now;
            thread::sleep(BETWEEN);
        }
        self.has_not_ended()
    }
}

/// The number of this thread, where the system tells it.
fn own_number() -> Option<u64> {
    let link = std::fs::read_link("/proc/thread-self").ok()?;
    link.file_name()?.to_str()?.parse().ok()
}

/// How often a thread has gone to sleep, if it sleeps now.
fn sleeps_since(thread: u64) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/self/task/{thread}/status")).ok()?;
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
    let sleeps = field("State:")?.trim().starts_with('S');
    sleeps.then(|| field("voluntary_ctxt_switches:")?.trim().parse().ok()).flatten()
}
