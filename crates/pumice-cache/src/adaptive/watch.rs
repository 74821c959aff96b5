//! A thread that looks at the clock and the memory while no request comes.
//!
//! It is there only while a cache with threads, whose size is chosen, holds more than its minimum: it
//! sleeps, looks, and ends when there is nothing left to give back or the cache is gone.

use crate::cache::{ChunkCache, Shared};
use crate::layout::Family;
use crate::sync::{Arc, Ordering};

impl<F: Family> ChunkCache<F> {
    /// Sees to it that somebody looks after the cache when requests no longer come.
    pub(crate) fn watch(&self) {
        let shared = &self.shared;
        // A model's threads have no clock.
        if cfg!(shuttle) || shared.watched.load(Ordering::Relaxed) || !shared.may_rest() {
            return;
        }
        if !shared.works_ahead() || shared.watched.swap(true, Ordering::AcqRel) {
            return;
        }
        let watched = Arc::downgrade(shared);
        let surroundings = shared.surroundings();
        let thread = std::thread::Builder::new().name("pumice-watch".into());
        let begun = thread.spawn(move || {
            loop {
                std::thread::sleep(surroundings.patience());
                let Some(shared) = watched.upgrade() else { return };
                shared.rest();
                if shared.may_rest() {
                    continue;
                }
                shared.watched.store(false, Ordering::Release);
                // A request that ended meanwhile has seen that somebody watches.
                if !shared.may_rest() || shared.watched.swap(true, Ordering::AcqRel) {
                    return;
                }
            }
        });
        if begun.is_err() {
            shared.watched.store(false, Ordering::Release);
        }
    }
}

impl<F: Family> Shared<F> {
    /// Whether the cache holds more than it must be left.
    fn may_rest(&self) -> bool {
        let minimum = self.adaptive.lock().as_ref().map(|adaptive| adaptive.minimum);
        minimum.is_some_and(|minimum| self.budget.resident() > minimum)
    }

    /// Gives back what a cache without requests, or memory that is short, has no place for.
    fn rest(&self) {
        {
            let mut adaptive = self.adaptive.lock();
            let Some(adaptive) = adaptive.as_mut() else { return };
            let (size, _) = self.budget.limits();
            let (uses, busy) = self.budget.activity();
            let wanted = adaptive.rest(size, uses, busy);
            self.resize(size, wanted);
        }
        // What cannot be written back stays; its own dataset's flush tells.
        let _ = self.trim(false);
    }
}
