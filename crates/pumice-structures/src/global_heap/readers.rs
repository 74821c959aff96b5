//! Readers of references: an object is removed only when nobody has read a reference to it and not
//! followed it yet.
//!
//! A reader who follows references later, or gives their objects back, does so while it holds the
//! guard of [`GlobalHeap::reading`](super::GlobalHeap::reading). Moments are numbered. An object is
//! given back at a moment that begins when elements no longer refer to it, and it stays until all
//! readers are done who began before that moment; later readers find other elements. Nobody waits
//! for readers: an object that cannot go now goes later.
//!
//! So an object that two writers of one element give back, because both found it there, is given back twice
//! before it goes, never after its place has become another's.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The readers that hold references, and the moments when they began.
#[derive(Default)]
pub(super) struct Readers(Mutex<Moments>);

#[derive(Default)]
struct Moments {
    now: u64,
    /// The number of readers that began at a moment and are not done.
    begun: BTreeMap<u64, usize>,
}

/// While this lives, references that are read lead to their objects.
pub struct Reading<'h> {
    readers: &'h Readers,
    since: u64,
}

impl Readers {
    /// Begins reading.
    pub(super) fn begin(&self) -> Reading<'_> {
        let mut moments = self.moments();
        let since = moments.now;
        *moments.begun.entry(since).or_default() += 1;
        Reading { readers: self, since }
    }

    /// Begins a new moment: readers that begin from now on have no reference to objects that are
    /// given back now.
    pub(super) fn next(&self) -> u64 {
        let mut moments = self.moments();
        moments.now += 1;
        moments.now
    }

    /// The last moment whose objects can be removed.
    pub(super) fn done(&self) -> u64 {
        self.moments().begun.first_key_value().map_or(u64::MAX, |(&since, _)| since)
    }

    fn moments(&self) -> MutexGuard<'_, Moments> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let mut moments = self.readers.moments();
        if let Some(count) = moments.begun.get_mut(&self.since) {
            *count -= 1;
            if *count == 0 {
                moments.begun.remove(&self.since);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_goes_when_all_are_done_who_began_before() {
        let readers = Readers::default();
        let early = readers.begin();
        let gone = readers.next();
        assert!(readers.done() < gone);
        let late = readers.begin();
        drop(early);
        assert!(readers.done() >= gone, "who began later does not know of it");
        let other = readers.next();
        assert!(readers.done() < other);
        drop(late);
        assert!(readers.done() >= other);
    }
}
