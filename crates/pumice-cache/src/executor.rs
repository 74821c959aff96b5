//! Who runs the cache's tasks: the calling thread alone, or a pool beside it.
//!
//! The cache's tasks never wait for one that has not begun, so an executor may run them in any order, on any
//! number of threads, also one after another. Work that is spawned beside requests may wait for them,
//! and is done by its thread alone.
//!
//! A thread that waits in an executor must not run anything else meanwhile, least of all tasks of the
//! application: such a task may make a request of its own, which waits for the one below it on the same
//! stack. That is why the pool is none of a library that lets waiting threads take up other work.

mod call;
mod pool;

pub use pool::Pool;

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
    /// Calls `task` once with each number below `count` and returns when all calls have returned. The
    /// calling thread runs nothing but these meanwhile.
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
