//! What the cache needs to know of storage: where bytes are ([`ByteStore`]), where chunks are
//! ([`ChunkStore`]), what chunks are ([`Layout`]), and data without chunks ([`Unchunked`]).
//!
//! A layout knows files, filters, indexes and selections; the cache knows none of them. The cache
//! calls a layout from many threads at once and never holds a lock of its own that another chunk
//! could need while it does. In turn a callback must not call the cache, and must not run work on
//! the cache's [`Executor`](crate::Executor): both could wait for the very chunk being handled.
//!
//! A callback may fail or panic. The cache then keeps what it had, reports the failure to the
//! request that needed the callback, and stays usable.

use std::fmt::Debug;
use std::hash::Hash;
use std::ops::Range;

pub use crate::exchange::{
    Direct, Encoded, Fetch, Footprint, Intent, Lookups, Outcome, Part, Placement, Put, ReadPlan,
    StoreId, Stored, Trim, WritePlan,
};
use crate::{CacheError, Reach};

/// The types that all datasets in one cache have in common.
pub trait Family: Sized + 'static {
    /// Names a chunk within its dataset: its coordinates.
    type Key: Clone + Eq + Hash + Ord + Debug + Send + Sync + 'static;
    /// A decoded chunk, as it is kept in memory.
    type Chunk: ChunkMemory + Send + Sync + 'static;
    /// What `lookup` passes to `decode` and `encode` passes to `insert`: filter masks, section sizes.
    type Tag: Clone + Send + Sync + 'static;
    /// One chunk's share of a read: where to scatter to, or which defined cells to report.
    type Read<'a>: Send;
    /// One chunk's share of a write: where to gather from, what to erase or to fill.
    type Write<'a>: Send;
    /// The error that requests return.
    type Error: From<CacheError> + Send + Sync + 'static;
}

/// Where bytes are: reads and writes of extents of a file.
pub trait ByteStore<F: Family>: Send + Sync + 'static {
    /// Names the store that [`fetch`](ByteStore::fetch) and [`put`](ByteStore::put) go to. Those that
    /// give the same name read and write for each other, so that one call serves many datasets.
    fn id(&self) -> StoreId {
        StoreId::of(self)
    }

    /// Fills all buffers, which are ordered by offset.
    ///
    /// Some may lie between chunks: reading through a small hole is cheaper than stopping at it.
    fn fetch(&self, reads: &mut [Fetch<'_>]) -> Result<(), F::Error>;

    /// Whether a call takes so long that it is worth to [announce](Self::announce) reads.
    fn is_far(&self) -> bool {
        false
    }

    /// Announces [fetches](Self::fetch) of ranges, in their order: they may be loaded from now on, until what is
    /// returned is dropped.
    fn announce(&self, ranges: &[Range<u64>]) -> Announced {
        let _ = ranges;
        None
    }

    /// Writes bytes to their places, which are ordered by offset and may belong to other datasets in
    /// the same store.
    fn put(&self, writes: &[Put<'_>]) -> Result<(), F::Error>;
}

/// Keeps announced reads under way until it is dropped.
pub type Announced = Option<Box<dyn Send + Sync>>;

/// Where the chunks of a dataset are stored: its chunk index, and the space behind it.
///
/// Storing takes three steps: `insert` finds room, `put` writes, `settle` names what is written.
pub trait ChunkStore<F: Family>: ByteStore<F> {
    /// Where each of `keys` is stored, in the same order; `None` for a chunk that is not.
    fn lookup(&self, keys: &[F::Key]) -> Result<Lookups<F::Tag>, F::Error>;

    /// Finds room for all placements and fills in their `offset`. They are entered in the index
    /// here, or by [`settle`](ChunkStore::settle) once their bytes are written.
    ///
    /// A chunk that is already stored moves or stays, as the store likes.
    fn insert(&self, placements: &mut [Placement<F::Key, F::Tag>]) -> Result<(), F::Error>;

    /// Ends what `insert` began: the bytes of these placements are `written`, or could not be, and
    /// then their room is free again.
    fn settle(
        &self,
        placements: &[Placement<F::Key, F::Tag>],
        written: bool,
    ) -> Result<(), F::Error> {
        let _ = (placements, written);
        Ok(())
    }

    /// Removes a chunk from the index and frees its space; a chunk that is not stored is no error.
    fn delete(&self, key: &F::Key) -> Result<(), F::Error>;
}

/// The memory that a chunk takes.
pub trait ChunkMemory {
    /// The bytes of memory the chunk takes, and how much of it is there.
    fn footprint(&self) -> Footprint;

    /// Frees memory, as far as that is possible.
    fn trim(&mut self, what: Trim) {
        let _ = what;
    }
}

impl ChunkMemory for Vec<u8> {
    fn footprint(&self) -> Footprint {
        Footprint::new(self.len() as u64, self.capacity() as u64)
    }
}

impl<const N: usize> ChunkMemory for [u8; N] {
    fn footprint(&self) -> Footprint {
        Footprint::new(N as u64, N as u64)
    }
}

/// What the chunks of a dataset are: how they are decoded, read, changed and encoded.
///
/// What becomes of a request is asked once: [`plan_read`](Layout::plan_read) and
/// [`plan_write`](Layout::plan_write) say what it needs and which ways it can take.
///
/// [`WritePlan::growth`] and [`Stored::decoded`] have a say in how well the limits are kept: they are
/// estimates made before memory is taken. The true sizes, by [`ChunkMemory::footprint`],
/// replace them afterwards.
///
/// `tests/support/toy.rs` holds a complete layout over an in-memory disk.
pub trait Layout<F: Family>: Send + Sync + 'static {
    /// Where the chunks are stored.
    fn chunks(&self) -> &dyn ChunkStore<F>;

    /// Turns stored bytes into a chunk: all of it, or only its defined cells from the first
    /// [`Stored::head`] bytes.
    fn decode(
        &self,
        key: &F::Key,
        bytes: Vec<u8>,
        stored: &Stored<F::Tag>,
        part: Part,
    ) -> Result<F::Chunk, F::Error>;

    /// A chunk that is not stored yet. Without `fill` every cell is about to be overwritten.
    fn new_chunk(&self, key: &F::Key, fill: bool) -> Result<F::Chunk, F::Error>;

    /// The bytes to store for a chunk.
    fn encode(&self, key: &F::Key, chunk: &F::Chunk) -> Result<Encoded<F::Tag>, F::Error>;

    /// What a read of a chunk needs, and which ways it can take.
    ///
    /// `stored` says where the chunk is, if that matters: only then [`ReadPlan::direct`] is looked at.
    fn plan_read(
        &self,
        key: &F::Key,
        stored: Option<&Stored<F::Tag>>,
        request: &F::Read<'_>,
    ) -> ReadPlan {
        let _ = (key, stored, request);
        ReadPlan::default()
    }

    /// What a write of a chunk needs, and which ways it can take; `stored` as for
    /// [`plan_read`](Layout::plan_read).
    fn plan_write(
        &self,
        key: &F::Key,
        stored: Option<&Stored<F::Tag>>,
        request: &F::Write<'_>,
    ) -> WritePlan {
        let _ = (key, stored, request);
        WritePlan::default()
    }

    /// Serves a read from a chunk; `None`: it is not stored, and its cells have the fill value, or
    /// none is defined.
    fn scatter(
        &self,
        key: &F::Key,
        chunk: Option<&F::Chunk>,
        request: &mut F::Read<'_>,
    ) -> Result<(), F::Error>;

    /// Applies a write to a chunk.
    ///
    /// A chunk for which [`Outcome::Delete`] is answered may still be read, and even be encoded and
    /// stored, before it is deleted.
    fn gather(
        &self,
        key: &F::Key,
        chunk: &mut F::Chunk,
        request: &mut F::Write<'_>,
    ) -> Result<Outcome, F::Error>;

    /// Serves a read from the stored bytes of a chunk that will not be kept, without making a chunk of
    /// them; `false`: not possible, and the chunk has to be decoded.
    ///
    /// `bytes` are those that the read's [`part`](ReadPlan::part) needs; their memory may be taken
    /// once the read is served.
    fn scatter_stored(
        &self,
        key: &F::Key,
        bytes: &mut Vec<u8>,
        stored: &Stored<F::Tag>,
        request: &mut F::Read<'_>,
    ) -> Result<bool, F::Error> {
        let _ = (key, bytes, stored, request);
        Ok(false)
    }

    /// Reads straight into the caller's buffer, if the [plan](ReadPlan::direct) said that it may;
    /// `None`: it cannot after all, has named no extents, and the chunk has to be decoded.
    ///
    /// Where stored bytes only have to be put in their places, a layout names these in `extents`: the
    /// cache reads them together with those of other chunks. Otherwise it serves the read itself.
    ///
    /// Called only for a chunk that is not in the cache, so what is stored is current.
    fn direct_read<'r>(
        &self,
        key: &F::Key,
        stored: &Stored<F::Tag>,
        request: &'r mut F::Read<'_>,
        extents: &mut Vec<Fetch<'r>>,
    ) -> Result<Option<Direct>, F::Error> {
        let _ = (key, stored, request, extents);
        Ok(None)
    }

    /// Writes straight from the caller's buffer to where the chunk is stored, as
    /// [`direct_read`](Layout::direct_read) reads.
    fn direct_write<'r>(
        &self,
        key: &F::Key,
        stored: &Stored<F::Tag>,
        request: &'r mut F::Write<'_>,
        extents: &mut Vec<Put<'r>>,
    ) -> Result<Option<Direct>, F::Error> {
        let _ = (key, stored, request, extents);
        Ok(None)
    }

    /// The chunks that will be read next, at most `count`, nearest first: `now` is what is read now,
    /// `recent` the first chunks of the last requests before, oldest first. None of those: the
    /// program says that chunks are read in the order of storage.
    fn successors(&self, recent: &[F::Key], now: &[F::Key], count: usize) -> Vec<F::Key> {
        let _ = (recent, now, count);
        Vec::new()
    }

    /// Memory at hand of which `len` bytes, whatever they are, can take a stored chunk.
    fn spare(&self, len: usize) -> Option<Vec<u8>> {
        let _ = len;
        None
    }
}

/// Data that is not in chunks (contiguous, compact, external): the cache keeps nothing of it, only
/// the order of its requests.
///
/// A request may have a key nonetheless: requests of different keys do not wait for each other.
pub trait Unchunked<F: Family>: ByteStore<F> {
    /// Reads into the caller's buffer, or names the extents that have to be read for it.
    fn read<'r>(
        &self,
        key: &F::Key,
        request: &'r mut F::Read<'_>,
        extents: &mut Vec<Fetch<'r>>,
    ) -> Result<Direct, F::Error>;

    /// Writes from the caller's buffer, or names the extents that have to be written for it.
    fn write<'r>(
        &self,
        key: &F::Key,
        request: &'r mut F::Write<'_>,
        extents: &mut Vec<Put<'r>>,
    ) -> Result<Direct, F::Error>;

    /// What a read touches: it waits only for writes that it meets there. `None`: all.
    fn read_reach(&self, key: &F::Key, request: &F::Read<'_>) -> Option<Reach> {
        let _ = (key, request);
        None
    }

    /// What a write touches, likewise: it waits only for reads and writes that it meets.
    fn write_reach(&self, key: &F::Key, request: &F::Write<'_>) -> Option<Reach> {
        let _ = (key, request);
        None
    }
}
