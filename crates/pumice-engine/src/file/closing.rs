//! Closing a file: the last commit, and moving data so that the file can be cut.
//!
//! Data that is written while committed data is in the way is stored behind it. In a file that does
//! not remember free space, the space of deleted and overwritten data would be lost at the close.
//! So the data that replaced it is moved there, in commits of their own. If one fails, the file
//! stays as the commit before left it.

use super::File;
use super::refused::unless_stored;
use crate::Result;
use pumice_format::messages::kind;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// The free bytes from which on it is worth moving data.
const LEAST_GAIN: u64 = 512;

/// The size from which moving data takes noticeable time.
const MUCH: u64 = 4 << 20;

impl File {
    /// Commits, and closes the file if this is its last user. A caller who opens the file meanwhile
    /// waits, or shares the open file if he came earlier.
    pub fn close(self: Arc<Self>) -> Result<()> {
        let committed = self.commit();
        // From here on no opening can share the file.
        let Some(file) = Arc::into_inner(self) else { return committed };
        file.closes.store(false, Ordering::Relaxed);
        match (committed, file.finish()) {
            // Chunks that could not be stored are lost by now.
            (Err(error), Err(lost)) if error.is_not_stored() => Err(lost),
            (committed, finished) => committed.and(finished),
        }
    }

    /// Commits, and stores free space if the file remembers it. The file has no other user, and
    /// cannot get one.
    pub(super) fn finish(&self) -> Result<()> {
        let committed =
            unless_stored(self.commit_all(true).map_err(|error| self.in_this_file(error)))?;
        if !self.writable() {
            return committed;
        }
        // Readers may be where they would move something to.
        let moved = if self.medium.writes_swmr() { Ok(()) } else { self.move_all() };
        let _one_at_a_time = self.commit.lock().unwrap_or_else(PoisonError::into_inner);
        let mut remembered = Ok(());
        match moved {
            Ok(()) if self.space().remembers() => remembered = self.remember_space(),
            Ok(()) => {}
            // All was committed before: the file is as it was then, and only longer than it might be.
            Err(_) => self.give_up()?,
        }
        if self.store_ends().is_err() {
            // As above: all was committed before.
            self.give_up()?;
        }
        if self.marks.load(Ordering::Relaxed) != 0 {
            // Nothing else is left to do, and a file that keeps it is refused: once more, if need be.
            self.write_marks(0).or_else(|_| self.write_marks(0))?;
        }
        committed.and(remembered)
    }

    /// Stores free space, in a commit of its own. One that fails leaves the file as it was.
    fn remember_space(&self) -> Result<()> {
        let remember = || {
            let _still = self.medium.hold_changes();
            self.space().remember(&self.medium)?;
            self.fix()
        };
        remember().and_then(|snapshot| self.finish_commit(snapshot)).or_else(|error| {
            self.give_up()?;
            Err(error)
        })
    }

    /// Discards changes since the last commit. The file has no other user.
    fn give_up(&self) -> Result<()> {
        if let Some(end) = self.medium.abandon()? {
            let root_is_new = self.superblock.version < 2 && !self.root()?.has(kind::SYMBOL_TABLE);
            let marks = self.marks.load(Ordering::Relaxed);
            self.medium.write_superblock(self.superblock_now(end, root_is_new, marks)?)?;
        }
        Ok(())
    }

    /// Moves data to free space that would be lost, so that the file can be cut.
    fn move_all(&self) -> Result<()> {
        self.move_strings()?;
        let _one_at_a_time = self.commit.lock().unwrap_or_else(PoisonError::into_inner);
        self.move_displaced()?;
        self.move_overwritten()?;
        self.move_down()
    }

    /// Notes the datasets that are new in a commit that also deletes much: the space of the deleted
    /// objects was not free for them.
    pub(super) fn note_displaced(&self) {
        if self.deleted.swap(0, Ordering::Relaxed) < LEAST_GAIN || self.space().info().persist {
            return;
        }
        let mut displaced = self.displaced.lock().unwrap_or_else(PoisonError::into_inner);
        for (&address, _) in self.datasets().iter() {
            if self.medium.is_new(address) {
                displaced.insert(address);
            }
        }
    }

    /// Moves the noted datasets to the space of deleted objects, so that the file can be cut.
    fn move_displaced(&self) -> Result<()> {
        let displaced =
            std::mem::take(&mut *self.displaced.lock().unwrap_or_else(PoisonError::into_inner));
        let snapshot = {
            let _still = self.medium.hold_changes();
            for address in displaced {
                let Some(dataset) = self.datasets().get(address).cloned() else { continue };
                // All is committed. A dataset that could not be moved stays, but other data may
                // have been moved before it.
                if !matches!(dataset.move_down(), Ok(false)) {
                    dataset.stage()?;
                    dataset.object().stage()?;
                }
            }
            self.fix()?
        };
        self.finish_commit(snapshot)
    }

    /// Whether free space would be lost, enough to move data there. Only data that this opening
    /// wrote is moved, which takes no longer than writing it did, so a small gain is worth a
    /// commit.
    ///
    /// An opening that overwrote most of a large file does not move it: the file becomes at most
    /// about twice as long as its contents. The next opening finds a longer file, of which the same
    /// data is no longer most, and moves it.
    fn loses_space(&self) -> bool {
        let free = self.medium.free_bytes();
        let most = free > MUCH && free > self.opened_length / 5 * 3;
        !self.space().info().persist && free >= LEAST_GAIN && !most
    }

    /// Moves chunks that were rewritten elsewhere, because their committed form was in place, to
    /// free space.
    fn move_overwritten(&self) -> Result<()> {
        if !self.loses_space() {
            return Ok(());
        }
        let snapshot = {
            let _still = self.medium.hold_changes();
            for dataset in self.open_datasets() {
                // All is committed. A dataset that could not be moved stays, but other data may
                // have been moved before it.
                if !matches!(dataset.move_displaced(), Ok(false)) {
                    dataset.stage()?;
                    dataset.object().stage()?;
                }
            }
            self.fix()?
        };
        self.finish_commit(snapshot)
    }

    /// Moves strings and sequences of the global heap: writes them once more, with new references.
    fn move_strings(&self) -> Result<()> {
        let mut moved = false;
        for dataset in self.open_datasets() {
            // A failure leaves cells as they are, or with the references that they are to have.
            if self.loses_space() && dataset.move_overwritten(&mut moved).is_err() {
                break;
            }
        }
        // Refused chunks were reported before.
        if moved { unless_stored(self.commit_all(true)).map(drop) } else { Ok(()) }
    }

    /// Moves metadata that the last commit placed behind the space that it freed, so that the file
    /// can be cut.
    fn move_down(&self) -> Result<()> {
        let snapshot = {
            let _still = self.medium.hold_changes();
            let mut moved = false;
            for object in self.objects_in_memory() {
                moved |= object.move_down()?;
            }
            if !moved {
                return Ok(());
            }
            self.fix()?
        };
        self.finish_commit(snapshot)
    }
}
