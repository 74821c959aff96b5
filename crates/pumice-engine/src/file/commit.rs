//! The commit of a file: which structures stage their blocks, and when.

use super::File;
use super::refused::{unless_stored, worse};
use crate::dataset::DatasetState;
use crate::members::multi;
use crate::object::Object;
use crate::{Error, Result};
use pumice_cache::Refused;
use pumice_format::driver_info::DriverInfo;
use pumice_format::messages::kind;
use pumice_format::superblock::{OPEN_FOR_WRITING, Superblock};
use pumice_format::symbol_table_node::Scratch;
use pumice_layout::DatasetLayout;
use pumice_medium::MetadataIo;
use pumice_medium::Snapshot;
use pumice_medium::journal::Durability;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

impl File {
    /// Writes back dirty chunks, then all changed metadata in one commit. First commits the open
    /// files that links of this one have led to.
    ///
    /// Chunks that a filter refuses stay as they are, in the file and in memory. All else is
    /// committed, then the error names them ([`Error::NotStored`]).
    pub fn commit(&self) -> Result<()> {
        let others = self.commit_others();
        worse(self.commit_all(false).map_err(|error| self.in_this_file(error)), others)
    }

    /// A failure of the operating system, with the name of this file.
    pub(super) fn in_this_file(&self, error: Error) -> Error {
        let Some(path) = self.path() else { return error };
        match error.cause() {
            Error::Io { .. } | Error::Cache(_) => error.in_file(&path.display().to_string()),
            _ => error,
        }
    }

    /// Commits this file alone. The `last` commit gives up space that was set aside.
    pub(super) fn commit_all(&self, last: bool) -> Result<()> {
        if !self.writable() {
            return Ok(());
        }
        let mut sources = Ok(());
        for dataset in self.open_datasets() {
            sources = sources.and(unless_stored(dataset.commit_sources())?);
        }
        let refused = self.commit_stored(last)?;
        self.told(refused, last).and(sources)
    }

    /// Commits all that can be stored, and gives the chunks that cannot.
    fn commit_stored(&self, last: bool) -> Result<Vec<Refused<DatasetLayout>>> {
        let _one_at_a_time = self.commit.lock().unwrap_or_else(PoisonError::into_inner);
        self.delete_orphans()?;
        let _committing = self.heap.begin_commit();
        let refused = self.cache.flush_file_apart(&self.cached)?;
        let refused = self.still_valid(refused)?;
        let snapshot = self.stage(last)?;
        self.finish_commit(snapshot)?;
        Ok(refused)
    }

    /// Bounds the memory of changed metadata. Called between two changes: writes blocks in new
    /// space, and commits if that is not enough.
    pub fn relieve(&self) -> Result<()> {
        if self.spill()? {
            // Refused chunks are not the matter of this change: flush and close report them.
            let _ = unless_stored(self.commit_all(false))?;
        }
        Ok(())
    }

    /// Writes staged blocks in new space, within a long change. Returns whether a commit is needed.
    /// The caller holds no object's lock.
    pub(crate) fn spill(&self) -> Result<bool> {
        if !self.medium.is_pressed() {
            return Ok(false);
        }
        let _one_at_a_time = self.commit.lock().unwrap_or_else(PoisonError::into_inner);
        let needs_commit = {
            let _still = self.medium.hold_changes();
            let waiting = self.spill_metadata()?;
            self.medium.relieve(waiting)
        };
        self.objects().forget_idle();
        self.objects_in_memory().iter().for_each(|object| object.trim());
        Ok(needs_commit)
    }

    pub(super) fn finish_commit(&self, snapshot: Option<Snapshot>) -> Result<()> {
        let Some(snapshot) = snapshot else { return Ok(()) };
        // The superblock must not name a symbol table that a root group of today no longer has.
        let root_is_new = self.superblock.version < 2 && !self.root()?.has(kind::SYMBOL_TABLE);
        self.medium.commit(snapshot, |end, replacing| {
            let mark = if replacing.is_some() { OPEN_FOR_WRITING } else { 0 };
            let marks = self.marks.load(Ordering::Relaxed) | mark;
            let mut superblock = self.superblock_at(end, root_is_new, marks);
            if let Some(length) = replacing
                && superblock.version < 3
                && self.options.durability != Durability::None
            {
                superblock.end_of_file = self.unreached_end(superblock.end_of_file, length);
            }
            encoded(&superblock)
        })
    }

    /// An end of file beyond a store of `length` bytes, for a superblock without a mark. A program
    /// that does not know journals takes the file for truncated and leaves it alone.
    fn unreached_end(&self, end: u64, length: u64) -> u64 {
        let behind = length.saturating_add(1);
        if self.medium.is_family() {
            // libhdf5 makes members up to there.
            return behind;
        }
        // One byte more or less cannot be half written, and it is the last of the field.
        let bits = 8 * u32::from(self.superblock.sizes.offset).clamp(1, 8);
        let low = (1 << (bits - 8)) - 1;
        (end & low | 0xfe << (bits - 8)).max(behind).min((u64::MAX >> (64 - bits)) - 1)
    }

    /// The encoded superblock of a file that ends at `end`, with these marks if its version has
    /// them.
    pub(super) fn superblock_now(&self, end: u64, root_is_new: bool, marks: u8) -> Result<Vec<u8>> {
        encoded(&self.superblock_at(end, root_is_new, marks))
    }

    fn superblock_at(&self, end: u64, root_is_new: bool, marks: u8) -> Superblock {
        let mut superblock = self.superblock.clone();
        if superblock.version >= 3 {
            superblock.consistency_flags |= marks;
        }
        superblock.end_of_file = superblock.base_address.saturating_add(end);
        if let Some(old) = superblock.old.as_mut().filter(|_| root_is_new) {
            old.root.scratch = Scratch::None;
        }
        superblock
    }

    /// Writes these marks to the superblock. Nothing may have changed since the last commit.
    pub(super) fn write_marks(&self, marks: u8) -> Result<()> {
        self.marks.store(marks, Ordering::Relaxed);
        if self.superblock.version < 3 {
            return Ok(());
        }
        let end = self.medium.superblock_end();
        let bytes = self.superblock_now(end, false, marks)?;
        self.medium.write_superblock(bytes)
    }

    /// Stages all changed metadata and fixes the list of blocks to write, while changes are held
    /// back.
    fn stage(&self, last: bool) -> Result<Option<Snapshot>> {
        let _still = self.medium.hold_changes();
        self.note_displaced();
        self.stage_metadata()?;
        self.heap.stage()?;
        if self.medium.has_changed() {
            self.space().forget(&self.medium)?;
        }
        if last {
            self.medium.release_blocks();
        }
        self.fix()
    }

    /// Fixes the blocks of a commit when all else is staged, with the ends of the members of a
    /// split or multi file.
    pub(super) fn fix(&self) -> Result<Option<Snapshot>> {
        if self.medium.has_changed() {
            self.stage_ends()?;
        }
        self.medium.begin_commit()
    }

    /// Stages the ends of the members of a split or multi file. Committed metadata refers to
    /// nothing beyond them.
    fn stage_ends(&self) -> Result<()> {
        let Some(DriverInfo::Multi(members)) = &self.extension.driver else { return Ok(()) };
        let (ends, _) = self.medium.ends();
        let info = multi::with_ends(members, self.medium.base(), &ends);
        match self.extension.driver_place {
            Some((address, _)) => {
                self.medium.stage(address, info.to_block());
                Ok(())
            }
            None => self.space().set_driver(info.to_message()),
        }
    }

    /// The last commit of a split or multi file made space at the ends of its members free: says so, and
    /// cuts them.
    pub(super) fn store_ends(&self) -> Result<()> {
        let (ends, same) = self.medium.ends();
        if same || ends.len() < 2 {
            return Ok(());
        }
        let snapshot = {
            let _still = self.medium.hold_changes();
            self.stage_ends()?;
            self.medium.begin_commit()?
        };
        self.finish_commit(snapshot)
    }

    /// Stages changed indexes and headers; changes are held back.
    fn stage_metadata(&self) -> Result<()> {
        self.stage_datasets()?;
        self.objects_in_memory().iter().try_for_each(|object| object.stage())
    }

    /// Stages metadata before a commit. Returns about how many bytes of memory it keeps for it.
    fn spill_metadata(&self) -> Result<usize> {
        self.stage_datasets()?;
        let mut waiting = 0;
        for object in self.objects_in_memory() {
            // An object with a handle is in memory anyway; one handle is ours.
            let held = self.objects().list.is_used(object.address(), 1);
            let bytes = object.spill(held)?;
            waiting += if held { 0 } else { bytes };
        }
        Ok(waiting)
    }

    fn stage_datasets(&self) -> Result<()> {
        self.open_datasets().iter().try_for_each(|dataset| dataset.stage())
    }

    pub(super) fn objects_in_memory(&self) -> Vec<Arc<Object>> {
        self.objects().list.values().cloned().collect()
    }

    pub(super) fn open_datasets(&self) -> Vec<Arc<DatasetState>> {
        self.datasets().values().cloned().collect()
    }
}

fn encoded(superblock: &Superblock) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    superblock.encode(&mut bytes)?;
    Ok(bytes)
}
