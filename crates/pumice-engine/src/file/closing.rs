//! Closing a file: the last commit, and what makes the file no longer than it need be.
//!
//! What is written while committed data is in the way lies behind it. Where free space is not remembered, the
//! space of what was deleted or overwritten would be lost when the file is closed: what came in its place is moved
//! there, in commits of its own. These may fail: then the file stays as the commit before has left it.

use super::File;
use super::refused::unless_stored;
use crate::Result;
use pumice_format::messages::kind;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// From how many bytes of free space on it is worth moving data there.
const LEAST_GAIN: u64 = 512;

/// From how many bytes on moving takes time that somebody notices.
const MUCH: u64 = 4 << 20;

impl File {
    /// Commits, and closes the file if nobody else has it open. Who opens it meanwhile waits, or has
    /// come before and shares it as it is.
    pub fn close(self: Arc<Self>) -> Result<()> {
        let committed = self.commit();
        // From here on nobody can share it.
        let Some(file) = Arc::into_inner(self) else { return committed };
        file.closes.store(false, Ordering::Relaxed);
        match (committed, file.finish()) {
            // What could not be stored is lost by now.
            (Err(error), Err(lost)) if error.is_not_stored() => Err(lost),
            (committed, finished) => committed.and(finished),
        }
    }

    /// Commits, and stores what the file remembers when nobody has it open. Nobody has, or can come to.
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
            // As before.
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

    /// Gives up what changed since the last commit: nobody uses the file any more.
    fn give_up(&self) -> Result<()> {
        if let Some(end) = self.medium.abandon()? {
            let root_is_new = self.superblock.version < 2 && !self.root()?.has(kind::SYMBOL_TABLE);
            let marks = self.marks.load(Ordering::Relaxed);
            self.medium.write_superblock(self.superblock_now(end, root_is_new, marks)?)?;
        }
        Ok(())
    }

    /// Moves what makes the file longer than it need be to free space that nobody will know of any more.
    fn move_all(&self) -> Result<()> {
        self.move_strings()?;
        let _one_at_a_time = self.commit.lock().unwrap_or_else(PoisonError::into_inner);
        self.move_displaced()?;
        self.move_overwritten()?;
        self.move_down()
    }

    /// Notes the datasets that are new in a commit that also deletes much: they could not have the space of
    /// what is deleted.
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

    /// Moves such datasets to the space of what was deleted, which nobody will know of any more, so that
    /// the file is cut where they were.
    fn move_displaced(&self) -> Result<()> {
        let displaced =
            std::mem::take(&mut *self.displaced.lock().unwrap_or_else(PoisonError::into_inner));
        let snapshot = {
            let _still = self.medium.hold_changes();
            for address in displaced {
                let Some(dataset) = self.datasets().get(address).cloned() else { continue };
                // All is committed where it is. What could not be moved stays there, but others may
                // have been before it.
                if !matches!(dataset.move_down(), Ok(false)) {
                    dataset.stage()?;
                    dataset.object().stage()?;
                }
            }
            self.fix()?
        };
        self.finish_commit(snapshot)
    }

    /// Whether there is free space that nobody will know of any more, enough to move data there. What is
    /// moved was written in this opening, and so takes no more time than writing it did, however large
    /// the file is: the least gain is one that is worth a commit.
    ///
    /// Who has overwritten most of a large file once does not pay that: little of what it had can have
    /// been lost before, so that it becomes no more than about twice as long as what is in it. The next
    /// one finds a longer file, of which that is no longer most, and pays.
    fn loses_space(&self) -> bool {
        let free = self.medium.free_bytes();
        let most = free > MUCH && free > self.opened_length / 5 * 3;
        !self.space().info().persist && free >= LEAST_GAIN && !most
    }

    /// Moves chunks that were written elsewhere, because what was in their places was committed, to where
    /// others were.
    fn move_overwritten(&self) -> Result<()> {
        if !self.loses_space() {
            return Ok(());
        }
        let snapshot = {
            let _still = self.medium.hold_changes();
            for dataset in self.open_datasets() {
                // All is committed where it is. What could not be moved stays there, but others may
                // have been before it.
                if !matches!(dataset.move_displaced(), Ok(false)) {
                    dataset.stage()?;
                    dataset.object().stage()?;
                }
            }
            self.fix()?
        };
        self.finish_commit(snapshot)
    }

    /// The same with strings and sequences that are in the global heap: they are written once more, and with
    /// them references.
    fn move_strings(&self) -> Result<()> {
        let mut moved = false;
        for dataset in self.open_datasets() {
            // As above: what fails leaves cells as they are, or with what they are to refer to.
            if self.loses_space() && dataset.move_overwritten(&mut moved).is_err() {
                break;
            }
        }
        // What cannot be stored has been told of.
        if moved { unless_stored(self.commit_all(true)).map(drop) } else { Ok(()) }
    }

    /// Moves what the last commit had to put behind space that it has made free, so that the file is
    /// cut before that.
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
