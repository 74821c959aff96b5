//! Removing objects from their collections: with a commit, or before it if new objects need their
//! room.
//!
//! Committed elements refer to these objects until the next commit. The collection without them is
//! staged, which changes nothing in the file before the commit; neither do objects that are added
//! to it. So the room is used again in the same commit, and the file does not grow. Such
//! collections stay in memory, so their number is limited. Nothing is removed early while a commit
//! is under way: chunks that it has written may refer to objects that were given back since.

use super::GlobalHeap;
use super::open::Open;
use super::recent::Recent;
use super::write::{Writing, recent_in};
use pumice_format::global_heap::Collection;
use pumice_medium::MetadataIo;
use pumice_medium::Result;

/// Bytes of collections that objects are taken out of before a commit, at most.
const MOST_EARLY: usize = 4 << 20;

/// A commit under way. If it fails, nothing that it has written is committed: the next one writes
/// changed chunks again and removes the objects that this one did not.
pub struct Committing<'h>(&'h GlobalHeap);

impl Drop for Committing<'_> {
    fn drop(&mut self) {
        let mut writing = self.0.writing();
        (writing.committing, writing.fixing) = (false, false);
    }
}

/// An object to which no element refers: its collection, its index, and the moment it was given back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Gone {
    pub(super) address: u64,
    pub(super) index: u32,
    pub(super) moment: u64,
}

impl Gone {
    fn id(&self) -> (u64, u32) {
        (self.address, self.index)
    }
}

impl GlobalHeap {
    /// Lets objects that were queued so far leave with the commit that now begins; its chunks are
    /// not written yet. To be held until the commit has succeeded or failed.
    pub fn begin_commit(&self) -> Committing<'_> {
        let mut writing = self.writing();
        let mut leaving = std::mem::take(&mut writing.queued);
        leaving.append(&mut writing.leaving);
        leaving.extend(std::mem::take(&mut writing.staying).into_iter().map(Gone::from));
        writing.take_dead(&mut leaving);
        writing.leaving = leaving;
        (writing.committing, writing.fixing) = (true, true);
        Committing(self)
    }

    /// Hands changed collections to the commit.
    pub fn stage(&self) -> Result<()> {
        let mut writing = self.writing();
        let leaving = self.leaving_now(&mut writing);
        for same in leaving.chunk_by(|one, other| one.address == other.address) {
            // An object that is not there, in a damaged file, leaves nothing.
            let _ = self.take_out(&mut writing, same[0].address, same);
        }
        if let Some(open) = writing.open.as_mut().filter(|open| open.dirty) {
            self.note_renewed(open.address);
            self.medium.stage(open.address, open.bytes.clone());
            (open.committed, open.dirty) = (true, false);
        }
        // From now on, nothing that there is came since the last commit.
        writing.recent.clear();
        writing.empty.clear();
        writing.early = 0;
        if let Some(open) = &mut writing.open {
            open.recent = Recent::new(open.next, false);
        }
        writing.committing = false;
        Ok(())
    }

    /// The objects that can leave now, in order. Objects to which a reader may have a reference
    /// leave with a later commit.
    fn leaving_now(&self, writing: &mut Writing) -> Vec<Gone> {
        let mut leaving = std::mem::take(&mut writing.leaving);
        // Given back by two, an object is gone since the first.
        leaving.sort_unstable();
        leaving.dedup_by_key(|gone| (gone.address, gone.index));
        let done = self.readers.done();
        if leaving.iter().any(|gone| gone.moment > done) {
            let (now, later) = leaving.into_iter().partition(|gone| gone.moment <= done);
            leaving = now;
            writing.queued.extend::<Vec<Gone>>(later);
        }
        writing.forget(&leaving);
        leaving
    }

    /// Removes objects from their collections before the commit, as far as that is allowed. The
    /// others stay until then.
    pub(super) fn take_out_early(&self, writing: &mut Writing, done: u64) {
        if writing.fixing || writing.moving.is_some() || !writing.leaving.is_empty() {
            return;
        }
        let mut queued = std::mem::take(&mut writing.queued);
        queued.sort_unstable();
        for same in queued.chunk_by(|one, other| one.address == other.address) {
            let before = writing.first_recent(same[0].address);
            let goes = |gone: &Gone| gone.moment <= done && gone.index < before;
            let mut now: Vec<Gone> = same.iter().copied().filter(goes).collect();
            // Given back by two, an object is gone since the first.
            now.dedup_by_key(|gone| gone.id());
            if writing.early >= MOST_EARLY {
                now.clear();
            }
            let stays = |gone: &&Gone| now.binary_search_by_key(&gone.id(), Gone::id).is_err();
            writing.staying.extend(same.iter().filter(stays).map(|gone| (gone.id(), gone.moment)));
            if !now.is_empty() {
                writing.forget(&now);
                // As in a commit.
                let _ = self.take_out(writing, same[0].address, &now);
            }
        }
    }

    /// Gives back new collections to which no element refers.
    pub(super) fn free_empty(&self, writing: &mut Writing, done: u64) {
        // A commit under way removes their objects.
        if writing.committing {
            return;
        }
        let Writing { recent, roomy, empty, freed, .. } = writing;
        empty.retain(|address| {
            let Some(closed) = recent.get(address) else { return false };
            if !closed.recent.is_empty(done) {
                return true;
            }
            self.note_renewed(*address);
            self.medium.free_raw(*address, closed.size as u64);
            freed.insert(*address);
            recent.remove(address);
            roomy.remove(address);
            false
        });
    }

    /// Takes objects out of a collection.
    fn take_out(&self, writing: &mut Writing, address: u64, ids: &[Gone]) -> Result<()> {
        if writing.freed.contains(&address) {
            return Ok(());
        }
        let is_open = writing.open.as_ref().is_some_and(|open| open.address == address);
        let bytes = match &writing.open {
            Some(open) if is_open => open.bytes.clone(),
            _ => self.closed_bytes(address)?,
        };
        let gone: Vec<u16> = ids.iter().filter_map(|gone| gone.index.try_into().ok()).collect();
        let mut left = Open::without(address, &bytes, &gone, &self.context().at(address))?;
        self.note_renewed(address);
        writing.roomy.remove(&address);
        let open = writing.open.take_if(|_| is_open);
        if left.used == Collection::header_length(&self.context()) {
            self.medium.free_raw(address, left.bytes.len() as u64);
            writing.freed.insert(address);
            writing.recent.remove(&address);
            return Ok(());
        }
        if let Some(Open { committed, recent, .. }) = open {
            left.next = left.next.max(recent.from);
            (left.committed, left.recent) = (committed, recent);
            writing.open = Some(left);
            return Ok(());
        }
        let free = left.bytes.len() - left.used;
        if let Some(closed) = writing.recent.get_mut(&address) {
            closed.free = free;
        }
        writing.remember(address, free, left.next);
        writing.early += left.bytes.len();
        self.medium.stage(address, left.bytes);
        Ok(())
    }
}

impl Writing {
    /// Adds objects that can be removed at once to those that leave with the commit.
    fn take_dead(&mut self, leaving: &mut Vec<Gone>) {
        let open = self.open.iter_mut().map(|open| (open.address, &mut open.recent));
        let closed = self.recent.iter_mut().map(|(&at, closed)| (at, &mut closed.recent));
        for (address, recent) in open.chain(closed) {
            let dead = recent.take();
            leaving.extend(dead.map(|(index, moment)| Gone { address, index, moment }));
        }
    }

    /// Forgets objects that were removed; giving one back a second time has happened before that.
    fn forget(&mut self, gone: &[Gone]) {
        self.queued.retain(|other| gone.binary_search_by_key(&other.id(), Gone::id).is_err());
        if !self.staying.is_empty() {
            gone.iter().for_each(|gone| _ = self.staying.remove(&gone.id()));
        }
    }

    /// The first index of a collection that an object can have that came since the last commit.
    fn first_recent(&mut self, address: u64) -> u32 {
        let recent = recent_in(&mut self.open, &mut self.recent, address);
        recent.map_or(u32::MAX, |recent| recent.from)
    }
}

impl From<((u64, u32), u64)> for Gone {
    fn from(((address, index), moment): ((u64, u32), u64)) -> Self {
        Self { address, index, moment }
    }
}
