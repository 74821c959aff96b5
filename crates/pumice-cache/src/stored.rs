//! Chunks as they are stored: read and written past filters and conversions, in their turn.
//!
//! A stored chunk is current when its resident image is clean; so reading writes back that one
//! chunk first, with a read's place in the order, which keeps writes of it away. Writing takes a
//! write's place, keeps others from saving the resident image, stores the bytes and only then drops
//! the image: if storing fails, nothing is lost.

use crate::absent::PART;
use crate::cache::{ChunkCache, Shared};
use crate::error::CacheError;
use crate::handles::Dataset;
use crate::layout::{Family, Fetch, Part, Stored};
use crate::load::zeroed;
use crate::member::Member;
use crate::order::{Keys, Kind};
use crate::plan::look_up;
use crate::shield::shield;
use crate::slot::Slot;
use crate::stats::Reason;
use crate::sync::Arc;
use crate::writeback::{Loose, store};

/// Where and how a chunk is stored, and its stored bytes.
pub type StoredChunk<T> = (Stored<T>, Vec<u8>);

impl<F: Family> ChunkCache<F> {
    /// Where and how a chunk is stored, after writing it back if it has changes; `None`: it is not
    /// stored.
    ///
    /// A later write of the chunk may move it: to have its bytes, use
    /// [`read_stored`](Self::read_stored).
    pub fn find_stored(
        &self,
        dataset: &Dataset<F>,
        key: &F::Key,
    ) -> Result<Option<Stored<F::Tag>>, F::Error> {
        let member = self.member(dataset)?;
        let _place = member.order.enter(Kind::Read, only(key));
        self.shared.find_stored(member, key)
    }

    /// The bytes of a chunk as they are stored, after writing it back if it has changes; `None`: it
    /// is not stored.
    pub fn read_stored(
        &self,
        dataset: &Dataset<F>,
        key: &F::Key,
    ) -> Result<Option<StoredChunk<F::Tag>>, F::Error> {
        let member = self.member(dataset)?;
        let _place = member.order.enter(Kind::Read, only(key));
        let (Some(layout), Some(stored)) = (member.layout(), self.shared.find_stored(member, key)?)
        else {
            return Ok(None);
        };
        let mut bytes = zeroed(stored.len)?;
        let mut read = [Fetch { offset: stored.offset, buffer: &mut bytes }];
        shield(|| layout.chunks().fetch(&mut read))?;
        member.counters.bytes_fetched.add(stored.len);
        Ok(Some((stored, bytes)))
    }

    /// Stores a chunk's bytes as they are given, in place of whatever the chunk was, changes that
    /// are not written back included.
    ///
    /// If that fails, the chunk is as it was.
    pub fn write_stored(
        &self,
        dataset: &Dataset<F>,
        key: &F::Key,
        bytes: &[u8],
        tag: F::Tag,
    ) -> Result<(), F::Error> {
        let member = self.member(dataset)?;
        let _place = member.order.enter(Kind::Write, only(key));
        self.shared.write_stored(member, key, bytes, tag)
    }
}

impl<F: Family> Shared<F> {
    fn find_stored(
        &self,
        member: &Arc<Member<F>>,
        key: &F::Key,
    ) -> Result<Option<Stored<F::Tag>>, F::Error> {
        let Some(layout) = member.layout() else { return Ok(None) };
        if let Some(slot) = self.table.find(member, member.hash(key), key) {
            self.save(self.budget.begin_saving(vec![slot])).result()?;
        }
        let found = shield(|| look_up(layout.chunks(), std::slice::from_ref(key)))?;
        Ok(found.into_iter().next().flatten())
    }

    /// To be called before a chunk may come to be stored.
    pub(crate) fn forget_absent(&self, member: &Member<F>, hash: u64, key: &F::Key) {
        let mut known = self.absent.lock();
        if !known.is_empty() {
            known.remove(&member.name(hash, key));
        }
    }

    pub(crate) fn limit_absent(&self, resident_limit: u64) {
        let mut known = self.absent.lock();
        let before = known.bytes();
        known.limit(resident_limit / PART);
        self.budget.set_aside(known.bytes(), before);
    }

    pub(crate) fn write_stored(
        &self,
        member: &Arc<Member<F>>,
        key: &F::Key,
        bytes: &[u8],
        tag: F::Tag,
    ) -> Result<(), F::Error> {
        let layout = member.layout().ok_or(CacheError::NoChunks)?;
        let hash = member.hash(key);
        self.forget_absent(member, hash, key);
        let slot = self.table.find(member, hash, key);
        // A dirty image must not be written back over the new bytes.
        let _held = slot.as_ref().map(|slot| self.budget.hold_saves(slot));
        let chunk = Loose { key, pieces: [bytes, &[]], tag };
        let stored = shield(|| store(member, layout.chunks(), vec![chunk]));
        if let Some(slot) = &slot {
            match stored {
                Ok(()) => self.remove(slot, slot.write(), Reason::Discard),
                Err(_) => self.spoil(slot),
            }
        }
        stored
    }

    /// Notes that what is stored of a chunk may no longer be what is in its slot: a chunk that is
    /// stored in place may be half overwritten.
    fn spoil(&self, slot: &Slot<F>) {
        let mut body = slot.write();
        self.drop_early(slot, &mut body);
        if body.chunk_with(Part::All).is_some() {
            body.version += 1;
            self.budget.begin_change(slot, true);
        }
    }
}

fn only<K: Clone>(key: &K) -> Keys<K> {
    std::iter::once(key.clone()).collect()
}
