//! Holds off changes of the extent, for work that each change would undo.
//!
//! A holder waits for nobody; a resize waits until nobody holds. A resize that has begun goes on,
//! so work under a hold may be disturbed by resizes that were under way, and by no later one.

use super::DatasetState;
use std::sync::{Condvar, Mutex, PoisonError};

/// The number of holds on the extent.
#[derive(Debug, Default)]
pub(super) struct Holds {
    count: Mutex<usize>,
    none: Condvar,
}

impl Holds {
    /// Waits until nobody holds.
    pub(super) fn wait(&self) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        while *count > 0 {
            count = self.none.wait(count).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn add(&self, change: impl FnOnce(usize) -> usize) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        *count = change(*count);
        if *count == 0 {
            self.none.notify_all();
        }
    }
}

/// Holds off changes of a dataset's extent, until dropped.
#[must_use]
pub struct Steady<'d>(&'d DatasetState);

impl Drop for Steady<'_> {
    fn drop(&mut self) {
        self.0.holds.add(|count| count - 1);
    }
}

impl DatasetState {
    /// Holds off [`resize`](Self::resize) until the result is dropped. One that is under way goes on.
    pub fn hold_extent(&self) -> Steady<'_> {
        self.holds.add(|count| count + 1);
        Steady(self)
    }
}
