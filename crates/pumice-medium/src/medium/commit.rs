//! The one commit: all staged blocks become the file's, or none.
//!
//! 1. Blocks in new space are written; nothing committed refers to them.
//! 2. Blocks that replace others, and the superblock, are written to a journal behind the end of
//!    the file. A commit that fails before this is complete has changed nothing.
//! 3. The blocks are written to their places. Before them the superblock gets the mark of an open
//!    file or, if its version has no mark, an end that the file does not reach; after them it is
//!    written in its final form. The next use or opening of the file finishes a commit that fails
//!    or ends here.
//! 4. The journal is cut off, and space that became free is released.
//!
//! A file of several parts (metadata and raw data) has its journal behind the end of the first one,
//! which has the superblock. The ends of its parts are in a block that is replaced like others, so
//! an end that became free is cut off by the commit after the one that freed it.
//!
//! With one writer and many readers, readers look at blocks while they are replaced;
//! `medium/swmr.rs` has the rules for that. The superblock is the new one from the start of step 3,
//! so everything that a header names is inside the file at any moment.
//!
//! After a failed sync nothing is committed or finished: the next opening does that.
//!
//! Invariant: from a complete journal to its end, no other metadata is written and no space beyond
//! it is handed out.

use super::images::Blocks;
use super::parked::ParkedRange;
use super::swmr;
use super::{Medium, State};
use crate::journal::{self, Durability};
use crate::{Error, Result};
use pumice_bytes::DecodeError;
use pumice_format::superblock::{self, Superblock};
use pumice_store::{ReadOp, WriteOp};
use std::collections::HashSet;
use std::sync::{Arc, TryLockError};

/// The contents of a commit, fixed at one moment.
pub struct Snapshot {
    images: Blocks,
    /// Addresses of blocks that nothing committed refers to.
    new: HashSet<u64>,
    /// Blocks that wait elsewhere in the file; each of them replaces another.
    parked: Vec<(u64, ParkedRange)>,
    /// The ends of the file's parts.
    ends: Vec<u64>,
}

/// A commit with a complete journal.
pub(super) struct Pending {
    images: Blocks,
    replaced: Vec<u64>,
    parked: Vec<(u64, ParkedRange)>,
    ends: Vec<u64>,
    /// The superblock while blocks are replaced, and afterwards.
    superblocks: [Vec<u8>; 2],
}

impl Pending {
    fn replaces_nothing(&self) -> bool {
        self.replaced.is_empty() && self.parked.is_empty()
    }
}

impl Medium {
    /// Fixes the contents of the commit; `None` if there is nothing to write.
    pub fn begin_commit(&self) -> Result<Option<Snapshot>> {
        self.require_writable()?;
        self.require_synced()?;
        let mut state = self.state();
        self.finish_pending(&mut state)?;
        if let Some((address, length)) = state.allocator.damage() {
            return Err(DecodeError::new(
                "file space",
                address,
                "space that one structure has",
                format!(
                    "{length} byte(s) that were given back, but are free or outside the file; the \
                     file is damaged and is left as it was"
                ),
            )
            .into());
        }
        if !state.allocator.fit() {
            return Err(self.full());
        }
        let parked = !state.parking.is_empty();
        if state.images.is_empty() && !parked && !state.allocator.has_changed() {
            return Ok(None);
        }
        self.check_unchanged(&state)?;
        self.stop_looking(&mut state);
        self.reset_pressure();
        let images = state.images.all();
        let new = images.keys().copied().filter(|&at| state.allocator.is_fresh(at)).collect();
        state.allocator.begin_commit();
        let (parked, freed) = state.parking.fix(|address| images.contains_key(&address));
        for place in freed {
            state.allocator.free_with_commit(place.at, place.length as u64);
        }
        // Under the lock: nobody can take, and so write to, space beyond these ends before the
        // file reaches them. Setting the length later could cut off what was written meanwhile.
        state.allocator.extents().into_iter().try_for_each(|part| self.reserve(part))?;
        Ok(Some(Snapshot { images, new, parked, ends: state.allocator.ends() }))
    }

    /// Whether no byte of a range is free, or will be with a commit. `None` if a commit is under
    /// way, for which this does not wait.
    pub fn is_kept(&self, address: u64, length: u64) -> Option<bool> {
        let state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(!state.allocator.overlaps(address, address.saturating_add(length)))
    }

    /// Writes all staged blocks and the superblock, then frees ranges that were given back.
    /// `superblock` encodes it for the end of the file and, while blocks are being replaced, for
    /// the length of the store.
    pub fn commit(
        &self,
        snapshot: Snapshot,
        superblock: impl Fn(u64, Option<u64>) -> Result<Vec<u8>>,
    ) -> Result<()> {
        let Snapshot { images, new, parked, ends } = snapshot;
        let end = ends.first().copied().unwrap_or_default();
        let is_new = |address: &u64| new.contains(address);
        let ops = images.iter().filter(|(address, _)| is_new(address));
        let mut ops: Vec<_> =
            ops.map(|(&offset, bytes)| WriteOp { offset, bytes: bytes.as_slice() }).collect();
        self.put_stored(&mut ops)?;
        self.wait_for_device()?;
        let replaced = images.keys().copied().filter(|address| !is_new(address)).collect();
        let superblocks = [Vec::new(), superblock(end, None)?];
        let mut pending = Pending { images, replaced, parked, ends: ends.clone(), superblocks };
        // From here to the end under the lock: nobody may take space above the new end before the
        // journal is gone and the file is cut.
        let mut state = self.state();
        let length = self.write_journal(&state, &pending)?;
        if !pending.replaces_nothing() {
            // As it is, but for the mark: half of a write must not become something else.
            let committed = state.committed_ends.first().copied().unwrap_or(end);
            pending.superblocks[0] = match self.writes_swmr() {
                true => pending.superblocks[1].clone(),
                false => superblock(committed, Some(length))?,
            };
        }
        state.pending = Some(pending);
        self.finish_pending(&mut state)?;
        let before = state.allocator.end();
        let shorter = state.allocator.finish_commit();
        let [shorter] = shorter.as_slice() else { return self.cut_parts(&state, &ends) };
        if *shorter < before {
            if *shorter < end {
                self.put_superblock(&mut state, superblock(*shorter, None)?)?;
                // The file is never shorter than its superblock says.
                self.wait_for_device()?;
                state.committed_ends = vec![*shorter];
            }
            let length = self.absolute(*shorter)?;
            self.set_store_length(length, "shorten the file")?;
        }
        Ok(())
    }

    /// Cuts parts that are longer than both their used space and the end that the commit states. A
    /// lower end can only be stated by the next commit, because no single small write could do it.
    fn cut_parts(&self, state: &State, ends: &[u64]) -> Result<()> {
        for (part, &committed) in state.allocator.extents().iter().zip(ends) {
            let wanted = self.absolute(part.end.max(committed))?;
            if self.stored_end(part.start)? > wanted {
                self.set_store_length(wanted, "shorten the file")?;
            }
        }
        Ok(())
    }

    /// Writes the journal of a commit that needs one. Gives the bytes of the store with it.
    fn write_journal(&self, state: &State, pending: &Pending) -> Result<u64> {
        // One small write is done or not.
        if pending.replaces_nothing() || self.durability == Durability::None {
            return Ok(0);
        }
        // The committed superblock may state a longer first part: until this commit is done, it is
        // valid.
        let committed = state.committed_ends.first().copied().unwrap_or_default();
        let length = self.absolute(state.allocator.end().max(committed))?;
        // Bytes behind the end belong to nobody; the journal must be the last.
        if self.store_length()? != length {
            self.set_store_length(length, "extend the file")?;
        }
        let mut blocks = Vec::with_capacity(pending.replaced.len() + 1);
        for address in &pending.replaced {
            let image = pending.images.get(address).map_or(&[][..], |image| image.as_slice());
            blocks.push((self.absolute(*address)?, image));
        }
        blocks.push((self.absolute(0)?, pending.superblocks[1].as_slice()));
        let failed = |source| self.failed("write the journal of a commit", source);
        let mut journal = journal::Writing::new(&*self.store, length);
        let written = match pending.parked.is_empty() {
            true => journal.finish(&blocks).map_err(failed),
            false => self
                .for_each_parked(&pending.parked, |some| {
                    let mut blocks = Vec::with_capacity(some.len());
                    for (address, bytes) in some {
                        blocks.push((self.absolute(*address)?, bytes.as_slice()));
                    }
                    journal.add(&blocks).map_err(failed)
                })
                .and_then(|()| journal.finish(&blocks).map_err(failed)),
        };
        if written.is_err() {
            // An incomplete journal must not become a complete one.
            let _ = self.set_store_length(length, "drop the journal");
        }
        written?;
        self.wait_for_device()?;
        Ok(journal.end())
    }

    /// Finishes the commit whose journal is complete, if there is one.
    pub(super) fn finish_pending(&self, state: &mut State) -> Result<()> {
        if state.pending.is_some() {
            self.require_synced()?;
        }
        let Some(pending) = state.pending.take() else { return Ok(()) };
        let done = self.apply(state, &pending);
        if done.is_err() {
            state.pending = Some(pending);
            return done;
        }
        state.spill_at = self.limit;
        state.committed_ends.clone_from(&pending.ends);
        // A block staged again meanwhile is newer than what was written.
        for (address, written) in &pending.images {
            if state.images.get(*address).is_some_and(|image| Arc::ptr_eq(&image, written)) {
                state.drop_image(*address);
            }
        }
        for (address, place) in &pending.parked {
            state.parking.remove_same(*address, *place);
        }
        Ok(())
    }

    /// Replaces the blocks of a commit and cuts its journal off.
    fn apply(&self, state: &mut State, pending: &Pending) -> Result<()> {
        let [marked, last] = &pending.superblocks;
        if !pending.replaces_nothing() {
            self.put_stored(&mut [WriteOp { offset: 0, bytes: marked }])?;
            self.wait_for_device()?;
            let image = |address: &u64| {
                let bytes = pending.images.get(address)?.as_slice();
                Some(WriteOp { offset: *address, bytes })
            };
            let mut ops: Vec<_> = pending.replaced.iter().filter_map(image).collect();
            if self.writes_swmr() {
                swmr::order(&mut ops);
            }
            self.put_stored(&mut ops)?;
            self.for_each_parked(&pending.parked, |some| {
                let ops = some.iter().map(|(offset, bytes)| WriteOp { offset: *offset, bytes });
                self.put_stored(&mut ops.collect::<Vec<_>>())
            })?;
            self.wait_for_device()?;
        }
        let last = last.clone();
        self.put_superblock(state, last)?;
        self.wait_for_device()?;
        let length = self.absolute(
            state.allocator.end().max(pending.ends.first().copied().unwrap_or_default()),
        )?;
        if self.store_length()? != length {
            self.set_store_length(length, "drop the journal")?;
        }
        Ok(())
    }

    /// Discards changes since the last commit, when the file is given up; finishes a commit with a
    /// complete journal first. Returns the end of the file if the superblock may be half written
    /// and must be written again.
    pub fn abandon(&self) -> Result<Option<u64>> {
        self.require_synced()?;
        let mut state = self.state();
        self.finish_pending(&mut state)?;
        state.images.all().into_keys().for_each(|address| state.drop_image(address));
        state.parking.clear();
        let ends = state.committed_ends.clone();
        state.allocator.forget(&ends);
        for part in state.allocator.extents() {
            // Bytes behind that belong to nobody and disturb nobody.
            let wanted = self.absolute(part.end)?;
            if self.stored_end(part.start).is_ok_and(|end| end > wanted) {
                let _ = self.set_store_length(wanted, "shorten the file");
            }
        }
        let end = ends.first().copied().unwrap_or_default();
        Ok(state.superblock.is_none().then_some(end))
    }

    /// Writes the superblock outside of a commit, when nothing else has changed.
    pub fn write_superblock(&self, bytes: Vec<u8>) -> Result<()> {
        self.require_synced()?;
        let mut state = self.state();
        self.finish_pending(&mut state)?;
        self.check_unchanged(&state)?;
        self.put_superblock(&mut state, bytes)
    }

    fn put_superblock(&self, state: &mut State, bytes: Vec<u8>) -> Result<()> {
        // Half of it may be written.
        state.superblock = None;
        self.put_stored(&mut [WriteOp { offset: 0, bytes: &bytes }])?;
        state.superblock = Some(bytes);
        Ok(())
    }

    /// The superblock that the file has now.
    pub fn superblock(&self) -> Result<Superblock> {
        let bytes = self.read_up_to(0, superblock::MAX_LENGTH)?;
        Ok(Superblock::decode(&bytes, self.base())?)
    }

    /// Remembers the superblock of the file, of `length` bytes.
    pub fn note_superblock(&self, length: usize) -> Result<()> {
        let bytes = self.read_superblock(length)?;
        self.state().superblock = Some(bytes);
        Ok(())
    }

    fn read_superblock(&self, length: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        // The caller may have the lock.
        self.fetch_stored(&mut [ReadOp { offset: 0, buffer: &mut bytes }])?;
        Ok(bytes)
    }

    /// Before anything is written: the file is still the one that was opened, as long as it was
    /// after the last commit, with the superblock that it had.
    fn check_unchanged(&self, state: &State) -> Result<()> {
        self.store.check().map_err(|source| self.failed("write", source))?;
        let Some(known) = &state.superblock else { return Ok(()) };
        for (part, &end) in state.allocator.extents().iter().zip(&state.committed_ends) {
            let (end, found) = (self.absolute(end)?, self.stored_end(part.start)?);
            if found < end {
                let start = if part.start == 0 { 0 } else { self.absolute(part.start)? };
                let (found, end) = (found - start, end.saturating_sub(start));
                let what = format!("it has {found} byte(s) instead of {end} or more");
                return Err(Error::Changed(what));
            }
        }
        if self.read_superblock(known.len())? != *known {
            let what = "another program wrote its superblock".to_owned();
            return Err(Error::Changed(what));
        }
        Ok(())
    }

    fn wait_for_device(&self) -> Result<()> {
        match self.durability {
            Durability::Power => self.store.sync().map_err(|source| {
                let _ = self.unsynced.set(source.to_string());
                self.failed("wait for the device", source)
            }),
            _ => Ok(()),
        }
    }

    /// Fails once a sync has failed. Systems may drop pages that they could not write and call the
    /// next sync a success: a commit that relies on it would state that something is on the device
    /// which nobody can read again.
    fn require_synced(&self) -> Result<()> {
        self.unsynced.get().map_or(Ok(()), |cause| Err(Error::NotSynced(cause.clone())))
    }
}
