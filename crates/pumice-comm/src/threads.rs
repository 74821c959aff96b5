//! Ranks that are threads of one process.
//!
//! Each rank has a box of messages by sender. A rank that ends leaves a note in every box, behind the
//! messages that it has sent; one that panics or aborts ends all waits of the group.

use crate::{CommError, Communicator};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One of several ranks in this process.
///
/// ```
/// use pumice_comm::{Communicator, ThreadComm};
/// use std::time::Duration;
///
/// let mut ranks = ThreadComm::group(2, Duration::from_secs(10));
/// let (one, zero) = (ranks.pop().unwrap(), ranks.pop().unwrap());
/// zero.send(1, b"tuff".to_vec())?;
/// drop(zero);
/// assert_eq!(one.receive(0)?, b"tuff");
/// assert!(one.receive(0).is_err(), "it is gone");
/// # Ok::<(), pumice_comm::CommError>(())
/// ```
#[derive(Debug)]
pub struct ThreadComm {
    group: Arc<Group>,
    rank: usize,
}

#[derive(Debug)]
struct Group {
    state: Mutex<State>,
    changed: Vec<Condvar>,
    limit: Duration,
}

#[derive(Debug)]
struct State {
    /// Messages by receiver, then sender.
    boxes: Vec<Vec<VecDeque<Vec<u8>>>>,
    left: Vec<bool>,
    aborted: Option<(usize, String)>,
}

impl Group {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        self.changed.iter().for_each(Condvar::notify_all);
    }
}

impl ThreadComm {
    /// The ranks of a new group, in order; each is for one thread.
    pub fn group(size: usize, limit: Duration) -> Vec<ThreadComm> {
        let boxes = vec![vec![VecDeque::new(); size]; size];
        let state = Mutex::new(State { boxes, left: vec![false; size], aborted: None });
        let changed = (0..size).map(|_| Condvar::new()).collect();
        let group = Arc::new(Group { state, changed, limit });
        (0..size).map(|rank| ThreadComm { group: group.clone(), rank }).collect()
    }
}

impl Communicator for ThreadComm {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.group.changed.len()
    }

    fn time_limit(&self) -> Duration {
        self.group.limit
    }

    fn send(&self, to: usize, message: Vec<u8>) -> Result<(), CommError> {
        let mut state = self.group.state();
        if let Some((rank, reason)) = state.aborted.clone() {
            return Err(CommError::Aborted { rank, reason });
        }
        match state.left.get(to) {
            None => return Err(CommError::NoRank(to)),
            Some(true) => return Err(CommError::Left(to)),
            Some(false) => {}
        }
        state.boxes[to][self.rank].push_back(message);
        drop(state);
        self.group.changed[to].notify_all();
        Ok(())
    }

    fn receive(&self, from: usize) -> Result<Vec<u8>, CommError> {
        let until = Instant::now() + self.group.limit;
        let mut state = self.group.state();
        loop {
            let queue = state.boxes[self.rank].get_mut(from).ok_or(CommError::NoRank(from))?;
            if let Some(message) = queue.pop_front() {
                return Ok(message);
            }
            if let Some((rank, reason)) = state.aborted.clone() {
                return Err(CommError::Aborted { rank, reason });
            }
            if state.left[from] {
                return Err(CommError::Left(from));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(CommError::Silent { rank: from, limit: self.group.limit });
            }
            let waited = self.group.changed[self.rank].wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn abort(&self, reason: &str) {
        let mut state = self.group.state();
        state.aborted.get_or_insert_with(|| (self.rank, reason.to_owned()));
        drop(state);
        self.group.wake();
    }
}

impl Drop for ThreadComm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.abort("it panicked");
        }
        self.group.state().left[self.rank] = true;
        self.group.wake();
    }
}

/// Runs `program` as `size` ranks, each in a thread of its own. `Err` for a rank that panicked.
pub fn run<T: Send>(
    size: usize,
    limit: Duration,
    program: impl Fn(ThreadComm) -> T + Sync,
) -> Vec<std::thread::Result<T>> {
    let (ranks, program) = (ThreadComm::group(size, limit), &program);
    std::thread::scope(|scope| {
        let one = |comm| scope.spawn(move || catch_unwind(AssertUnwindSafe(|| program(comm))));
        let threads: Vec<_> = ranks.into_iter().map(one).collect();
        threads.into_iter().map(|thread| thread.join().and_then(|inner| inner)).collect()
    })
}
