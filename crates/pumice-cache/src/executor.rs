//! Who runs the cache's tasks: the calling thread alone, or a pool beside it.
//!
//! The cache's tasks never wait for one that has not begun, so an executor may run them in any order, on any
//! number of threads, also one after another. Work that is spawned beside requests may wait for them,
//! and is done by its thread alone.

use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::perches::Perches;

/// How long the calling thread waits for its helpers without sleeping: waking it takes as long.
const LINGER: Duration = Duration::from_micros(100);

/// Runs numbered tasks to the end.
///
/// ```
/// use pumice_cache::{Executor, Inline};
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// let sum = AtomicUsize::new(0);
/// Inline.run(4, &|i| {
///     sum.fetch_add(i, Ordering::Relaxed);
/// });
/// assert_eq!(sum.into_inner(), 6);
/// ```
pub trait Executor: Send + Sync {
    /// Calls `task` once with each number below `count` and returns when all calls have returned.
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync));

    /// How many tasks run at once at most.
    fn threads(&self) -> usize;

    /// Runs a task beside the caller if a thread is idle; `false`: none is, and the task is dropped.
    fn spawn(&self, task: Box<dyn FnOnce() + Send>) -> bool {
        drop(task);
        false
    }
}

/// Runs every task on the calling thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inline;

impl Executor for Inline {
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(task);
    }

    fn threads(&self) -> usize {
        1
    }
}

/// Runs tasks on the calling thread and, as far as they are idle, on the threads of a private pool.
///
/// ```
/// use pumice_cache::{Executor, Rayon};
/// let pool = Rayon::new(2)?;
/// assert_eq!(pool.threads(), 2);
/// pool.run(100, &|_| ());
/// # Ok::<(), rayon::ThreadPoolBuildError>(())
/// ```
#[derive(Debug)]
pub struct Rayon {
    /// Absent when the calling thread is enough.
    pool: Option<rayon::ThreadPool>,
    threads: usize,
    /// Pool threads that are working or about to. Helpers beyond them would queue behind another
    /// request's work, and the request that called for them would wait for nothing.
    busy: Arc<AtomicUsize>,
    /// Where the pool's threads sleep.
    perches: Arc<Perches>,
}

impl Rayon {
    /// An executor of `threads` threads: the calling one and a pool of `threads - 1`.
    pub fn new(threads: usize) -> Result<Self, rayon::ThreadPoolBuildError> {
        let threads = threads.max(1);
        let pool = match threads {
            1 => None,
            _ => Some(
                rayon::ThreadPoolBuilder::new()
                    .num_threads(threads - 1)
                    .thread_name(|i| format!("pumice-{i}"))
                    .build()?,
            ),
        };
        let perches = Arc::new(Perches::new(threads - 1));
        Ok(Rayon { pool, threads, busy: Arc::default(), perches })
    }

    /// As many threads as the machine runs at once.
    pub fn with_available_threads() -> Result<Self, rayon::ThreadPoolBuildError> {
        Self::new(std::thread::available_parallelism().map_or(1, NonZero::get))
    }

    /// Takes up to `wanted` idle pool threads.
    fn recruit(&self, wanted: usize) -> usize {
        let mut recruited = 0;
        let _ = self.busy.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |busy| {
            recruited = wanted.min((self.threads - 1).saturating_sub(busy));
            Some(busy + recruited)
        });
        recruited
    }
}

impl Executor for Rayon {
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        let Some(pool) = &self.pool else { return Inline.run(count, task) };
        // One of the pool's own threads, waiting here, would take up other work of the pool, which may
        // wait in turn for what this thread holds.
        let helpers = match pool.current_thread_index() {
            Some(_) => 0,
            None => self.recruit(count.saturating_sub(1)),
        };
        if helpers == 0 {
            return Inline.run(count, task);
        }
        let (next, left) = (AtomicUsize::new(0), AtomicUsize::new(helpers));
        let work = &|| {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= count {
                    return;
                }
                task(index);
            }
        };
        self.perches.make_way();
        pool.in_place_scope(|scope| {
            for _ in 0..helpers {
                let release = Release(Arc::clone(&self.busy));
                let left = &left;
                scope.spawn(move |_| {
                    let _release = release;
                    let _awake = self.perches.leave(rayon::current_thread_index());
                    work();
                    left.fetch_sub(1, Ordering::Relaxed);
                });
            }
            work();
            if !linger(&left) {
                self.perches.come_back();
            }
        });
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn spawn(&self, task: Box<dyn FnOnce() + Send>) -> bool {
        let Some(pool) = self.pool.as_ref().filter(|_| self.recruit(1) == 1) else { return false };
        let release = Release(Arc::clone(&self.busy));
        let perches = Arc::clone(&self.perches);
        perches.make_way();
        pool.spawn(move || {
            let _release = release;
            let _awake = perches.leave(rayon::current_thread_index());
            // Nobody is there to whom a panic could be told.
            let _ = catch_unwind(AssertUnwindSafe(task));
        });
        true
    }
}

/// Waits a little for helpers that are about to finish. Who sleeps is woken late, and may be woken
/// where the next helper is to run. Says whether all have finished.
fn linger(left: &AtomicUsize) -> bool {
    let start = Instant::now();
    while left.load(Ordering::Relaxed) > 0 {
        if start.elapsed() >= LINGER {
            return false;
        }
        std::hint::spin_loop();
    }
    true
}

/// Gives a pool thread back, also when its task panics.
struct Release(Arc<AtomicUsize>);

impl Drop for Release {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn every_task_runs_once_on_any_number_of_threads() {
        for threads in 1..5 {
            let executor = Rayon::new(threads).expect("threads start");
            for count in [0, 1, 2, 100] {
                let seen = Mutex::new(vec![0; count]);
                executor.run(count, &|i| seen.lock().unwrap()[i] += 1);
                assert!(seen.into_inner().unwrap().iter().all(|&n| n == 1));
            }
            assert_eq!(executor.busy.load(Ordering::Relaxed), 0);
        }
    }

    #[test]
    fn a_panicking_task_gives_its_thread_back() {
        let executor = Rayon::new(3).expect("threads start");
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            executor.run(8, &|i| assert!(i != 3, "told to"));
        }));
        assert!(outcome.is_err());
        assert_eq!(executor.busy.load(Ordering::Relaxed), 0);
        executor.run(8, &|_| ());
    }
}
