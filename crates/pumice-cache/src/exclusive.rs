//! Requests of more than one step: sole use of a dataset, for changes of its shape, and writes whose
//! parts come one by one.

use std::sync::atomic::Ordering;

use crate::access::{Reading, Writing};
use crate::batches::take;
use crate::budget::{Concern, Need, Reservation, Saving};
use crate::cache::{ChunkCache, Shared, writes};
use crate::executor::Inline;
use crate::handles::Dataset;
use crate::layout::{Family, Part};
use crate::member::Member;
use crate::order::{Keys, Kind, Place};
use crate::request::Share;
use crate::slot::Slot;
use crate::stats::Reason;
use crate::sync::Arc;

/// Holds back all other requests of one dataset until it is dropped.
///
/// No request of the dataset is running while this lives, but for those made through it. The
/// thread that has it must not use the dataset in another way: that would wait for ever.
pub struct Exclusive<'c, F: Family> {
    shared: &'c Shared<F>,
    member: &'c Arc<Member<F>>,
    _place: Place<'c, F::Key>,
}

impl<'c, F: Family> Exclusive<'c, F> {
    pub(crate) fn new(shared: &'c Shared<F>, member: &'c Arc<Member<F>>) -> Self {
        let place = member.order.enter(Kind::Exclusive, Keys::new());
        // Reads that had no place may still be running: each holds its chunk's lock, and having
        // that lock they have asked whether an exclusive is inside. None can begin after this.
        shared.budget.slots(member).iter().for_each(|slot| drop(slot.write()));
        member.shape.fetch_add(1, Ordering::Relaxed);
        Exclusive { shared, member, _place: place }
    }

    /// Stores a chunk's bytes as they are given, in place of whatever the chunk was.
    pub fn write_stored(&self, key: &F::Key, bytes: &[u8], tag: F::Tag) -> Result<(), F::Error> {
        self.shared.write_stored(self.member, key, bytes, tag)
    }

    /// The dataset's chunks that are in memory, in order.
    pub fn resident_keys(&self) -> Vec<F::Key> {
        let slots = self.shared.budget.slots(self.member);
        let mut keys: Vec<_> = slots.iter().map(|slot| slot.key.clone()).collect();
        keys.sort_unstable();
        keys
    }

    /// Drops a chunk from memory, with its changes if it has any; `false`: it was not there.
    ///
    /// What is stored of it stays.
    pub fn discard(&self, key: &F::Key) -> bool {
        let Exclusive { shared, member, .. } = self;
        let Some(slot) = shared.table.find(member, member.hash(key), key) else { return false };
        self.shared.discard(&slot, Reason::Discard);
        true
    }

    /// Looks at a chunk if all of it is in memory.
    pub fn peek<T>(&self, key: &F::Key, look: impl FnOnce(&F::Chunk) -> T) -> Option<T> {
        let slot = self.shared.table.find(self.member, self.member.hash(key), key)?;
        let body = slot.read();
        body.chunk_with(Part::All).map(look)
    }

    /// Waits for those who write back chunks, as far as these are in memory, and keeps others from it
    /// until what is returned is dropped.
    pub fn hold(&self, keys: &[F::Key]) -> Held<'_, F> {
        let Exclusive { shared, member, .. } = self;
        let find = |key: &F::Key| shared.table.find(member, member.hash(key), key);
        let slots: Vec<_> = keys.iter().filter_map(find).collect();
        let saving = slots.iter().map(|slot| shared.budget.hold_saves(slot)).collect();
        Held { shared, slots, _saving: saving }
    }

    /// Room for work on chunks outside of the cache, which counts for its limits until what is
    /// returned is dropped. To be asked for only by one who has none.
    pub fn room(&self, bytes: u64) -> Result<Room<'_, F>, F::Error> {
        let need = Need::Load { bytes, encoding: 0 };
        let (room, _) = self.shared.reserve(need, &Concern::none())?;
        Ok(Room { _room: room })
    }

    /// Serves a read.
    pub fn read<'a>(
        &self,
        parts: impl IntoIterator<Item = (F::Key, F::Read<'a>)>,
    ) -> Result<(), F::Error> {
        let item = |(key, request)| Share::new(self.member, key, Reading(request));
        self.shared.run_batches(parts.into_iter().map(item))
    }

    /// Applies a write.
    pub fn write<'a>(
        &self,
        parts: impl IntoIterator<Item = (F::Key, F::Write<'a>)>,
    ) -> Result<(), F::Error> {
        let item = |(key, request)| Share::new(self.member, key, Writing(request));
        self.shared.run_batches(parts.into_iter().map(item))
    }

    /// Writes back what was changed; with `evict`, the dataset's chunks also leave the cache.
    pub fn flush(&self, evict: bool) -> Result<(), F::Error> {
        self.shared.flush_members(std::slice::from_ref(self.member), evict)
    }
}

/// A write whose parts come one by one, from any thread; made by [`ChunkCache::begin_write`].
///
/// To others it is one request, until it is dropped: nobody sees some parts and not the others.
pub struct WriteInParts<'c, F: Family> {
    cache: &'c ChunkCache<F>,
    member: &'c Arc<Member<F>>,
    /// Taken only when it ends.
    place: Option<Place<'c, F::Key>>,
}

impl<F: Family> WriteInParts<'_, F> {
    /// Applies a part; its chunks are among those that were named, and in no other part.
    pub fn write<'a>(
        &self,
        parts: impl IntoIterator<Item = (F::Key, F::Write<'a>)>,
    ) -> Result<(), F::Error> {
        self.cache.shared.run(writes(self.member, parts))
    }

    /// As [`write`](Self::write), by the calling thread alone: for threads that write parts beside each
    /// other. What does not stay in the cache is stored in few calls.
    pub fn write_alone<'a>(
        &self,
        parts: impl IntoIterator<Item = (F::Key, F::Write<'a>)>,
    ) -> Result<(), F::Error> {
        self.cache.shared.run_on(Arc::new(Inline), writes(self.member, parts))
    }
}

impl<F: Family> Drop for WriteInParts<'_, F> {
    fn drop(&mut self) {
        drop(self.place.take());
        self.cache.after_write();
    }
}

impl<F: Family> std::fmt::Debug for WriteInParts<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteInParts").field("dataset", &self.member.id).finish_non_exhaustive()
    }
}

impl<F: Family> ChunkCache<F> {
    /// Begins a write of these chunks whose parts come one by one. The thread that has it must not use
    /// the chunks in another way: that would wait for ever.
    pub fn begin_write<'c>(
        &'c self,
        dataset: &'c Dataset<F>,
        chunks: impl IntoIterator<Item = F::Key>,
    ) -> Result<WriteInParts<'c, F>, F::Error> {
        let member = self.member(dataset)?;
        let mut chunks = chunks.into_iter();
        let place = match take(&mut chunks) {
            (some, None) => member.order.enter(Kind::Write, some.into_iter().collect()),
            (_, Some(_)) => member.order.enter(Kind::Exclusive, Keys::new()),
        };
        let place = Some(place);
        Ok(WriteInParts { cache: self, member, place })
    }
}

/// A read whose parts come one after another; made by [`ChunkCache::begin_read`].
///
/// To others it is one request, until it is dropped: nobody changes the dataset between its parts.
pub struct ReadInParts<'c, F: Family> {
    cache: &'c ChunkCache<F>,
    member: &'c Arc<Member<F>>,
    /// Taken only when it ends.
    place: Option<Place<'c, F::Key>>,
}

impl<F: Family> ReadInParts<'_, F> {
    /// Serves a part.
    pub fn read<'a>(
        &self,
        parts: impl IntoIterator<Item = (F::Key, F::Read<'a>)>,
    ) -> Result<(), F::Error> {
        let item = |(key, request)| Share::new(self.member, key, Reading(request));
        self.cache.shared.run_batches(parts.into_iter().map(item))
    }
}

impl<F: Family> Drop for ReadInParts<'_, F> {
    fn drop(&mut self) {
        drop(self.place.take());
        self.cache.watch();
    }
}

impl<F: Family> std::fmt::Debug for ReadInParts<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadInParts").field("dataset", &self.member.id).finish_non_exhaustive()
    }
}

impl<F: Family> ChunkCache<F> {
    /// Begins a read of any chunks of a dataset whose parts come one after another, so that not all of what it
    /// needs, or finds, is in memory at the same time. Other reads go on. The thread that has it must not use the
    /// dataset in another way: that would wait for ever.
    pub fn begin_read<'c>(
        &'c self,
        dataset: &'c Dataset<F>,
    ) -> Result<ReadInParts<'c, F>, F::Error> {
        let member = self.member(dataset)?;
        let place = Some(member.order.enter(Kind::Flush, Keys::new()));
        Ok(ReadInParts { cache: self, member, place })
    }
}

/// Room in the cache's budget, see [`Exclusive::room`].
pub struct Room<'c, F: Family> {
    _room: Reservation<'c, F>,
}

impl<F: Family> std::fmt::Debug for Room<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Room").finish_non_exhaustive()
    }
}

/// Chunks that nobody writes back, see [`Exclusive::hold`].
pub struct Held<'c, F: Family> {
    shared: &'c Shared<F>,
    slots: Vec<Arc<Slot<F>>>,
    _saving: Vec<Saving<'c, F>>,
}

impl<F: Family> Held<'_, F> {
    /// Drops those of the chunks from memory that `which` accepts, with their changes if they have
    /// any. What is stored of them stays.
    pub fn discard(self, which: impl Fn(&F::Key) -> bool) {
        for slot in self.slots.iter().filter(|slot| which(&slot.key)) {
            self.shared.remove(slot, slot.write(), Reason::Discard);
        }
    }
}

impl<F: Family> std::fmt::Debug for Held<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Held").field("chunks", &self.slots.len()).finish_non_exhaustive()
    }
}

impl<F: Family> Drop for Exclusive<'_, F> {
    fn drop(&mut self) {
        // What was noted meanwhile need not hold after further changes of the layout.
        self.member.shape.fetch_add(1, Ordering::Relaxed);
    }
}

impl<F: Family> std::fmt::Debug for Exclusive<'_, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exclusive").field("dataset", &self.member.id).finish_non_exhaustive()
    }
}
