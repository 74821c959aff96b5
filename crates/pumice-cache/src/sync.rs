//! The locks and atomics of the cache: `std`'s, or shuttle's when its models are checked.
//!
//! Locks here do not know poisoning. A panic in a layout's callback is caught, and what it left
//! behind is repaired, by the code that called it; a lock that stayed poisoned would only take the
//! cache away from everybody else.

#[cfg(not(shuttle))]
use std::{sync as primitives, thread};

#[cfg(shuttle)]
use shuttle::{sync as primitives, thread};

pub(crate) use primitives::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
pub(crate) use primitives::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};
pub(crate) use std::sync::Arc;
pub(crate) use thread::{Builder, yield_now};

#[cfg(shuttle)]
pub(crate) use shuttle::thread_local;
#[cfg(not(shuttle))]
pub(crate) use std::thread_local;

use std::sync::{PoisonError, TryLockError};

/// A number of this thread: small, and not soon another's.
#[cfg(not(shuttle))]
pub(crate) fn thread_number() -> usize {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    thread_local!(static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed));
    NUMBER.with(|number| *number)
}

/// All threads of a model share a number, and so whatever numbers divide.
#[cfg(shuttle)]
pub(crate) fn thread_number() -> usize {
    0
}

/// A mutex without poisoning.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(primitives::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Mutex(primitives::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reader-writer lock without poisoning.
#[derive(Debug, Default)]
pub(crate) struct RwLock<T>(primitives::RwLock<T>);

impl<T> RwLock<T> {
    pub(crate) fn new(value: T) -> Self {
        RwLock(primitives::RwLock::new(value))
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A condition variable for [`Mutex`].
#[derive(Debug, Default)]
pub(crate) struct Condvar(primitives::Condvar);

impl Condvar {
    pub(crate) fn new() -> Self {
        Condvar(primitives::Condvar::new())
    }

    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.0.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn notify_one(&self) {
        self.0.notify_one();
    }

    pub(crate) fn notify_all(&self) {
        self.0.notify_all();
    }
}
