//! Threads of the cache's own beside the calling one.
//!
//! A thread of the pool is idle, or has one piece of work: a call to help with, or something that was
//! spawned. Work is given to idle threads only, so that none of it ever waits behind another's. A caller that has
//! done its own part takes back what no thread has begun, waits for the others, and does nothing else
//! meanwhile: whatever thread of the application it is, it runs tasks of its own call only.

use std::cell::Cell;
use std::collections::VecDeque;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::call::{Call, Ticket};
use super::{Executor, Inline};
use crate::perches::Perches;
use crate::sync::{Arc, AtomicUsize, Builder, Condvar, Mutex, Ordering, thread_local, yield_now};

/// How often an idle thread looks for work before it sleeps.
const LOOKS: usize = 32;

thread_local! {
    /// Whether this thread is one of a pool.
    static IN_POOL: Cell<bool> = const { Cell::new(false) };
}

/// Runs tasks on the calling thread and, as far as they are idle, on the threads of a private pool.
///
/// ```
/// use pumice_cache::{Executor, Pool};
/// let pool = Pool::new(2)?;
/// assert_eq!(pool.threads(), 2);
/// pool.run(100, &|_| ());
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Pool {
    common: Arc<Common>,
    threads: usize,
}

/// What the pool's threads share with its owner.
struct Common {
    state: Mutex<State>,
    /// Wakes threads that sleep.
    wake: Condvar,
    /// How much work there is that no thread has begun, to be looked at in passing.
    waiting: AtomicUsize,
    /// Where the pool's threads sleep.
    perches: Perches,
}

struct State {
    /// What no thread has begun: each was idle when it was given.
    work: VecDeque<Work>,
    /// Threads that have nothing to do.
    idle: usize,
    closed: bool,
}

enum Work {
    Help(Ticket),
    Alone(Box<dyn FnOnce() + Send>),
}

impl Pool {
    /// An executor of `threads` threads: the calling one and a pool of `threads - 1`.
    pub fn new(threads: usize) -> std::io::Result<Self> {
        // Dropped, with the threads that have begun, if one of them cannot.
        let (pool, failure) = Self::begin(threads);
        failure.map_or(Ok(pool), Err)
    }

    /// As many threads as the machine runs at once, or as many of them as the system lets begin.
    ///
    /// ```
    /// use pumice_cache::{Executor, Pool};
    /// assert!(Pool::with_available_threads().threads() >= 1);
    /// ```
    pub fn with_available_threads() -> Self {
        Self::begin(std::thread::available_parallelism().map_or(1, NonZero::get)).0
    }

    /// A pool of the threads that can begin, and why the next one could not.
    fn begin(threads: usize) -> (Self, Option<std::io::Error>) {
        let beside = threads.max(1) - 1;
        let state = State { work: VecDeque::new(), idle: 0, closed: false };
        let common = Common {
            state: Mutex::new(state),
            wake: Condvar::new(),
            waiting: AtomicUsize::new(0),
            perches: Perches::new(beside),
        };
        let mut pool = Pool { common: Arc::new(common), threads: 1 };
        for index in 0..beside {
            let common = Arc::clone(&pool.common);
            let thread = Builder::new().name(format!("pumice-{index}"));
            if let Err(failure) = thread.spawn(move || common.serve(index)) {
                return (pool, Some(failure));
            }
            pool.common.state.lock().idle += 1;
            pool.threads += 1;
        }
        (pool, None)
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("threads", &self.threads).finish_non_exhaustive()
    }
}

impl Drop for Pool {
    /// Lets the threads end when they have done what they were given. Nobody waits for that: the last
    /// owner may be one of them.
    fn drop(&mut self) {
        self.common.state.lock().closed = true;
        self.common.wake.notify_all();
    }
}

impl Executor for Pool {
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        // Work beside requests is not to take the threads that requests may need.
        let helpers = match IN_POOL.with(Cell::get) {
            true => 0,
            false => self.common.recruit(count.saturating_sub(1)),
        };
        if helpers == 0 {
            return Inline.run(count, task);
        }
        let common = &*self.common;
        let hand_out = |tickets: Vec<Ticket>| common.give(tickets.into_iter().map(Work::Help));
        Call::run(count, task, helpers, hand_out, |call| common.take_back(call));
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn spawn(&self, task: Box<dyn FnOnce() + Send>) -> bool {
        if self.common.recruit(1) == 0 {
            return false;
        }
        self.common.give([Work::Alone(task)].into_iter());
        true
    }
}

impl Common {
    /// Takes up to `wanted` idle threads, which must then be given work.
    fn recruit(&self, wanted: usize) -> usize {
        if wanted == 0 {
            return 0;
        }
        let mut state = self.state.lock();
        let recruited = wanted.min(state.idle);
        state.idle -= recruited;
        recruited
    }

    /// Gives work to threads that were recruited.
    fn give(&self, work: impl ExactSizeIterator<Item = Work>) {
        let count = work.len();
        self.perches.make_way();
        let mut state = self.state.lock();
        state.work.extend(work);
        self.waiting.store(state.work.len(), Ordering::Relaxed);
        drop(state);
        (0..count).for_each(|_| self.wake.notify_one());
    }

    /// Lets go of a call's tickets that no thread has taken.
    fn take_back(&self, call: &Call) {
        let is_of = |work: &Work| matches!(work, Work::Help(ticket) if ticket.is_of(call));
        let mut state = self.state.lock();
        let (taken, left): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut state.work).into_iter().partition(is_of);
        state.idle += taken.len();
        state.work = left;
        self.waiting.store(state.work.len(), Ordering::Relaxed);
        drop(state);
        if !taken.is_empty() {
            // The caller is about to leave its processor to others, and may never call again.
            self.perches.come_back();
        }
    }

    /// What a thread of the pool does all its life.
    fn serve(&self, index: usize) {
        IN_POOL.with(|inside| inside.set(true));
        while let Some(work) = self.next() {
            let awake = self.perches.leave(index);
            let ticket = match work {
                Work::Help(ticket) => {
                    ticket.help();
                    Some(ticket)
                }
                Work::Alone(task) => {
                    // Nobody is there to whom a panic could be told.
                    let _ = catch_unwind(AssertUnwindSafe(task));
                    None
                }
            };
            drop(awake);
            self.state.lock().idle += 1;
            // Last: the caller's next call finds this thread idle.
            drop(ticket);
        }
    }

    /// Waits for work; `None`: there will be none.
    fn next(&self) -> Option<Work> {
        for _ in 0..LOOKS {
            if cfg!(shuttle) || self.waiting.load(Ordering::Relaxed) > 0 {
                break;
            }
            yield_now();
        }
        let mut state = self.state.lock();
        loop {
            if let Some(work) = state.work.pop_front() {
                self.waiting.store(state.work.len(), Ordering::Relaxed);
                return Some(work);
            }
            if state.closed {
                return None;
            }
            state = self.wake.wait(state);
        }
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn idle(pool: &Pool) -> usize {
        pool.common.state.lock().idle
    }

    #[test]
    fn every_task_runs_once_on_any_number_of_threads() {
        for threads in 0..5 {
            let pool = Pool::new(threads).expect("threads start");
            assert_eq!(pool.threads(), threads.max(1));
            for count in [0, 1, 2, 100] {
                let seen = Mutex::new(vec![0; count]);
                pool.run(count, &|i| seen.lock()[i] += 1);
                assert!(seen.into_inner().iter().all(|&n| n == 1));
            }
            assert_eq!(idle(&pool), pool.threads() - 1);
        }
    }

    #[test]
    fn a_panicking_task_gives_its_thread_back_and_is_told() {
        for culprit in [0, 3, 7] {
            let pool = Pool::new(3).expect("threads start");
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                pool.run(8, &|i| {
                    yield_now();
                    assert!(i != culprit, "told to");
                });
            }));
            assert!(outcome.is_err());
            assert_eq!(idle(&pool), 2);
            pool.run(8, &|_| ());
        }
    }

    #[test]
    fn a_call_needs_no_thread_that_is_busy_or_has_not_begun() {
        let pool = Pool::new(3).expect("threads start");
        let (tell, told) = channel();
        let gates = [channel::<()>(), channel()];
        let mut held = Vec::new();
        for (hold, gate) in gates {
            held.push(hold);
            let tell = tell.clone();
            let task = move || {
                tell.send(()).expect("the test listens");
                let _ = gate.recv();
            };
            assert!(pool.spawn(Box::new(task)));
            told.recv().expect("it has begun");
            pool.run(10, &|_| ());
        }
        assert!(!pool.spawn(Box::new(|| ())), "both are busy");
        drop(held);
        while idle(&pool) < 2 {
            yield_now();
        }
    }

    #[test]
    fn a_thread_of_the_pool_makes_calls_by_itself() {
        let pool = Arc::new(Pool::new(2).expect("threads start"));
        let (tell, told) = channel();
        let inner = Arc::clone(&pool);
        assert!(pool.spawn(Box::new(move || {
            let own = std::thread::current().id();
            inner.run(10, &|_| assert_eq!(std::thread::current().id(), own));
            tell.send(()).expect("the test listens");
        })));
        told.recv().expect("no task was run elsewhere");
    }

    #[test]
    fn the_threads_end_with_the_pool() {
        let pool = Pool::new(4).expect("threads start");
        pool.run(10, &|_| ());
        let common = Arc::downgrade(&pool.common);
        drop(pool);
        while common.strong_count() > 0 {
            yield_now();
        }
    }
}
