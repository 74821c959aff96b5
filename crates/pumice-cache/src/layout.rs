//! What the cache needs to know of a dataset's storage: the [`Layout`] trait and the plain types
//! that pass through it.
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
use std::sync::Arc;

use crate::{CacheError, Reach};

/// How one kind of storage looks up, reads, decodes, changes, encodes and stores its chunks.
///
/// What becomes of a request is asked once: [`plan_read`](Layout::plan_read) and
/// [`plan_write`](Layout::plan_write) say what it needs and which ways it can take.
///
/// [`WritePlan::growth`] and [`Stored::decoded`] have a say in how well the limits are kept: they are
/// estimates made before memory is taken. The true sizes, by [`footprint`](Layout::footprint),
/// replace them afterwards.
///
/// `tests/support/toy.rs` holds a complete layout over an in-memory disk.
pub trait Layout: Send + Sync + 'static {
    /// Names a chunk within its dataset: its coordinates.
    type Key: Clone + Eq + Hash + Ord + Debug + Send + Sync + 'static;
    /// A decoded chunk, as it is kept in memory.
    type Chunk: Send + Sync + 'static;
    /// What `lookup` passes to `decode` and `encode` passes to `insert`: filter masks, section sizes.
    type Tag: Clone + Send + Sync + 'static;
    /// One chunk's share of a read: where to scatter to, or which defined cells to report.
    type Read<'a>: Send;
    /// One chunk's share of a write: where to gather from, what to erase or to fill.
    type Write<'a>: Send;
    /// The error that requests return.
    type Error: From<CacheError> + Send + Sync + 'static;

    /// Where each of `keys` is stored, in the same order; `None` for a chunk that is not.
    fn lookup(&self, keys: &[Self::Key]) -> Result<Lookups<Self::Tag>, Self::Error>;

    /// Names the store that [`fetch`](Layout::fetch) and [`put`](Layout::put) go to. Layouts that
    /// give the same name read and write for each other, so that one call serves many datasets.
    fn store(&self) -> StoreId {
        StoreId::of(self)
    }

    /// What to call the dataset in messages.
    fn label(&self) -> String {
        "a dataset".to_owned()
    }

    /// Fills all buffers, which are ordered by offset.
    ///
    /// Some may lie between chunks: reading through a small hole is cheaper than stopping at it.
    fn fetch(&self, reads: &mut [Fetch<'_>]) -> Result<(), Self::Error>;

    /// Turns stored bytes into a chunk: all of it, or only its defined cells from the first
    /// [`Stored::head`] bytes.
    fn decode(
        &self,
        key: &Self::Key,
        bytes: Vec<u8>,
        stored: &Stored<Self::Tag>,
        part: Part,
    ) -> Result<Self::Chunk, Self::Error>;

    /// A chunk that is not stored yet. Without `fill` every cell is about to be overwritten.
    fn new_chunk(&self, key: &Self::Key, fill: bool) -> Result<Self::Chunk, Self::Error>;

    /// The bytes to store for a chunk.
    fn encode(
        &self,
        key: &Self::Key,
        chunk: &Self::Chunk,
    ) -> Result<Encoded<Self::Tag>, Self::Error>;

    /// Finds room for all placements and fills in their `offset`. They are entered in the index
    /// here, or by [`settle`](Layout::settle) once their bytes are written.
    ///
    /// A chunk that is already stored moves or stays, as the layout likes.
    fn insert(&self, placements: &mut [Placement<Self::Key, Self::Tag>])
    -> Result<(), Self::Error>;

    /// Writes encoded chunks to the places that `insert` gave them; they are ordered by offset and
    /// may belong to other datasets in the same [`store`](Layout::store).
    fn put(&self, writes: &[Put<'_>]) -> Result<(), Self::Error>;

    /// Ends what `insert` began: the bytes of these placements are `written`, or could not be, and
    /// then their room is free again.
    fn settle(
        &self,
        placements: &[Placement<Self::Key, Self::Tag>],
        written: bool,
    ) -> Result<(), Self::Error> {
        let _ = (placements, written);
        Ok(())
    }

    /// Removes a chunk from the index and frees its space; a chunk that is not stored is no error.
    fn delete(&self, key: &Self::Key) -> Result<(), Self::Error>;

    /// What a read of a chunk needs, and which ways it can take.
    ///
    /// `stored` says where the chunk is, if that matters: only then [`ReadPlan::direct`] is looked at.
    fn plan_read(
        &self,
        key: &Self::Key,
        stored: Option<&Stored<Self::Tag>>,
        request: &Self::Read<'_>,
    ) -> ReadPlan {
        let _ = (key, stored, request);
        ReadPlan::default()
    }

    /// What a write of a chunk needs, and which ways it can take; `stored` as for
    /// [`plan_read`](Layout::plan_read).
    fn plan_write(
        &self,
        key: &Self::Key,
        stored: Option<&Stored<Self::Tag>>,
        request: &Self::Write<'_>,
    ) -> WritePlan {
        let _ = (key, stored, request);
        WritePlan::default()
    }

    /// Serves a read from a chunk; `None`: it is not stored, and its cells have the fill value, or
    /// none is defined.
    fn scatter(
        &self,
        key: &Self::Key,
        chunk: Option<&Self::Chunk>,
        request: &mut Self::Read<'_>,
    ) -> Result<(), Self::Error>;

    /// Applies a write to a chunk.
    ///
    /// A chunk for which [`Outcome::Delete`] is answered may still be read, and even be encoded and
    /// stored, before it is deleted.
    fn gather(
        &self,
        key: &Self::Key,
        chunk: &mut Self::Chunk,
        request: &mut Self::Write<'_>,
    ) -> Result<Outcome, Self::Error>;

    /// The bytes of memory a chunk takes, and how much of it is there.
    fn footprint(&self, chunk: &Self::Chunk) -> Footprint;

    /// Frees memory of a chunk, as far as that is possible.
    fn trim(&self, chunk: &mut Self::Chunk, what: Trim) {
        let _ = (chunk, what);
    }

    /// Serves a read from the stored bytes of a chunk that will not be kept, without making a chunk of
    /// them; `false`: not possible, and the chunk has to be decoded.
    ///
    /// `bytes` are those that the read's [`part`](ReadPlan::part) needs.
    fn scatter_stored(
        &self,
        key: &Self::Key,
        bytes: &[u8],
        stored: &Stored<Self::Tag>,
        request: &mut Self::Read<'_>,
    ) -> Result<bool, Self::Error> {
        let _ = (key, bytes, stored, request);
        Ok(false)
    }

    /// Reads straight into the caller's buffer, if the [plan](ReadPlan::direct) said that it may.
    ///
    /// Where stored bytes only have to be put in their places, a layout names these in `extents`: the
    /// cache reads them together with those of other chunks. Otherwise it serves the read itself.
    ///
    /// Called only for a chunk that is not in the cache, so what is stored is current. `stored` is
    /// absent if the layout [bypasses](Layout::bypass) the cache: nothing is looked up then.
    fn direct_read<'r>(
        &self,
        key: &Self::Key,
        stored: Option<&Stored<Self::Tag>>,
        request: &'r mut Self::Read<'_>,
        extents: &mut Vec<Fetch<'r>>,
    ) -> Result<Direct, Self::Error> {
        let _ = (key, stored, request, extents);
        Ok(Direct::Impossible)
    }

    /// Writes straight from the caller's buffer to where the chunk is stored, as
    /// [`direct_read`](Layout::direct_read) reads.
    fn direct_write<'r>(
        &self,
        key: &Self::Key,
        stored: Option<&Stored<Self::Tag>>,
        request: &'r mut Self::Write<'_>,
        extents: &mut Vec<Put<'r>>,
    ) -> Result<Direct, Self::Error> {
        let _ = (key, stored, request, extents);
        Ok(Direct::Impossible)
    }

    /// The chunks that will be read next, at most `count`, nearest first: `now` is what is read now,
    /// `recent` the first chunks of the last requests before, oldest first. None of those: the
    /// program says that chunks are read in the order of storage.
    fn successors(&self, recent: &[Self::Key], now: &[Self::Key], count: usize) -> Vec<Self::Key> {
        let _ = (recent, now, count);
        Vec::new()
    }

    /// Memory at hand of which `len` bytes, whatever they are, can take a stored chunk.
    fn spare(&self, len: usize) -> Option<Vec<u8>> {
        let _ = len;
        None
    }

    /// Gives back a buffer of stored bytes that [`spare`](Layout::spare) may have given.
    fn give_back(&self, bytes: Vec<u8>) {
        drop(bytes);
    }

    /// Whether every request should first try to go direct (contiguous storage): the cache then
    /// only keeps the order of requests.
    fn bypass(&self) -> bool {
        false
    }

    /// What a read touches of a chunk, if the layout [bypasses](Layout::bypass) the cache: it waits only
    /// for writes that it meets there. `None`: for all of the chunk.
    ///
    /// A read or write that says so must not be refused by [`direct_read`](Layout::direct_read) or
    /// [`direct_write`](Layout::direct_write).
    fn read_reach(&self, key: &Self::Key, request: &Self::Read<'_>) -> Option<Reach> {
        let _ = (key, request);
        None
    }

    /// What a write touches of a chunk, likewise: it waits only for reads and writes that it meets.
    fn write_reach(&self, key: &Self::Key, request: &Self::Write<'_>) -> Option<Reach> {
        let _ = (key, request);
        None
    }
}

/// What a read of one chunk needs, and which ways it can take.
///
/// ```
/// use pumice_cache::{Part, ReadPlan};
/// let plan = ReadPlan { share: 0.25, ..ReadPlan::default() };
/// assert!(plan.part == Part::All && plan.keep && plan.direct.is_none());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadPlan {
    /// How much of the chunk it needs.
    pub part: Part,
    /// The share of the chunk's cells that it takes, from 0 to 1; 0 if that is not known.
    ///
    /// A chunk whose cells have all been read or written is likely not to be wanted again soon.
    pub share: f32,
    /// Whether the chunk may be of use later. If not, the read goes direct if it can, and the chunk
    /// leaves as soon as it is served.
    pub keep: bool,
    /// Whether [`direct_read`](Layout::direct_read) may serve it where the chunk is stored: then about
    /// how many bytes of memory of its own that takes.
    pub direct: Option<u64>,
}

impl Default for ReadPlan {
    fn default() -> Self {
        ReadPlan { part: Part::All, share: 0.0, keep: true, direct: None }
    }
}

/// What a write of one chunk needs, and which ways it can take.
///
/// ```
/// use pumice_cache::{Intent, WritePlan};
/// let plan = WritePlan { intent: Intent::Replace, share: 1.0, ..WritePlan::default() };
/// assert!(plan.keep && plan.direct.is_none() && plan.growth == 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WritePlan {
    /// What it needs of the chunk as it was.
    pub intent: Intent,
    /// The share of the chunk's cells that it changes, from 0 to 1; 0 if that is not known.
    pub share: f32,
    /// About how many bytes of memory it may add to a chunk that exists; 0: no idea, and none.
    pub growth: u64,
    /// About how many bytes of memory a chunk takes that it makes; 0: no idea.
    pub fresh: u64,
    /// Whether a chunk that it makes may be of use later. If not, the chunk is stored at once and
    /// leaves.
    pub keep: bool,
    /// Whether [`direct_write`](Layout::direct_write) may apply it where the chunk is stored: then
    /// about how many bytes of memory of its own that takes.
    pub direct: Option<u64>,
}

impl Default for WritePlan {
    fn default() -> Self {
        let intent = Intent::Update;
        WritePlan { intent, share: 0.0, growth: 0, fresh: 0, keep: true, direct: None }
    }
}

/// What of a chunk in memory is to be freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trim {
    /// Memory that it has allocated and does not use.
    Slack,
    /// The values of a clean chunk; its defined cells stay.
    Values,
}

/// Names a store: where it is in memory.
///
/// ```
/// use pumice_cache::StoreId;
/// let (one, two) = (Box::new(1), Box::new(1));
/// assert!(StoreId::of(&*one) == StoreId::of(&*one) && StoreId::of(&*one) != StoreId::of(&*two));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreId(usize);

impl StoreId {
    /// The name of the store that `store` is, as long as it stays there.
    pub fn of<T: ?Sized>(store: &T) -> Self {
        StoreId(std::ptr::from_ref(store).cast::<()>() as usize)
    }
}

/// For each chunk looked up, where and how it is stored, or that it is not.
pub type Lookups<T> = Vec<Option<Stored<T>>>;

/// Where and how a chunk is stored.
///
/// The cache allocates `len` (or `head`) bytes to fetch the chunk. A layout must have checked them
/// against the size of the file.
///
/// ```
/// use pumice_cache::Stored;
/// let stored = Stored::new(4096, 100, ()).head(20).decoded(800);
/// assert_eq!((stored.len, stored.head, stored.decoded), (100, 20, 800));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored<T> {
    /// The offset of its first byte.
    pub offset: u64,
    /// The number of bytes stored.
    pub len: u64,
    /// The number of bytes from the first that suffice to decode [`Part::Defined`].
    pub head: u64,
    /// About how many bytes the decoded chunk takes in memory, rather more than fewer.
    pub decoded: u64,
    /// What `decode` needs to know besides.
    pub tag: T,
}

impl<T> Stored<T> {
    /// A chunk of `len` bytes at `offset`, of which all are needed and which decode to as many.
    pub fn new(offset: u64, len: u64, tag: T) -> Self {
        Stored { offset, len, head: len, decoded: len, tag }
    }

    /// Sets the number of leading bytes that hold the defined cells.
    pub fn head(mut self, head: u64) -> Self {
        self.head = head;
        self
    }

    /// Sets the expected size in memory.
    pub fn decoded(mut self, decoded: u64) -> Self {
        self.decoded = decoded;
        self
    }
}

/// How much of a chunk is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// Only which cells are defined.
    Defined,
    /// The defined cells and their values.
    All,
}

/// One extent to read into a buffer.
#[derive(Debug)]
pub struct Fetch<'a> {
    /// The offset of the first byte.
    pub offset: u64,
    /// Takes the bytes; its length is the number of bytes.
    pub buffer: &'a mut [u8],
}

/// One extent to write.
#[derive(Clone, Copy, Debug)]
pub struct Put<'a> {
    /// The offset of the first byte.
    pub offset: u64,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// A chunk as it will be stored.
#[derive(Clone, Debug)]
pub struct Encoded<T> {
    /// The bytes to store, which the chunk may have, too.
    pub bytes: Arc<Vec<u8>>,
    /// More bytes that follow them, shared with the chunk so that they need not be copied.
    pub rest: Option<Arc<Vec<u8>>>,
    /// What `insert` needs to know besides.
    pub tag: T,
}

impl<T> Encoded<T> {
    /// A chunk that is stored as these bytes.
    pub fn new(bytes: Vec<u8>, tag: T) -> Self {
        Encoded { bytes: Arc::new(bytes), rest: None, tag }
    }

    /// All bytes to store, in two pieces.
    pub fn pieces(&self) -> [&[u8]; 2] {
        [&self.bytes, self.rest.as_ref().map_or(&[], |rest| rest.as_slice())]
    }

    /// How many bytes there are to store.
    pub fn size(&self) -> u64 {
        self.pieces().iter().map(|piece| piece.len() as u64).sum()
    }
}

/// A chunk to find room for.
#[derive(Clone, Debug)]
pub struct Placement<K, T> {
    /// Which chunk.
    pub key: K,
    /// The number of bytes to store.
    pub len: u64,
    /// What `encode` had to say about them.
    pub tag: T,
    /// How many of them are the first of the two pieces.
    pub head: u64,
    /// Where they shall go: filled in by [`Layout::insert`].
    pub offset: u64,
    /// Whether the first piece is there already, and need not be written: likewise.
    pub kept: bool,
}

impl<K, T> Placement<K, T> {
    /// How many bytes are written.
    pub fn written(&self) -> u64 {
        if self.kept { self.len - self.head } else { self.len }
    }
}

/// What has come of a request that shall go past the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direct {
    /// The layout cannot do that for this request, and has named no extents.
    Impossible,
    /// The request is served.
    Done {
        /// The stored bytes that were read or written.
        bytes: u64,
    },
    /// The request is served as soon as the extents named for it are read or written.
    Extents,
}

/// What becomes of a chunk after a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It stays, changed.
    Keep,
    /// It is as it was: a chunk that was loaded for the write need not be stored again.
    Unchanged,
    /// Nothing is left in it: it leaves the cache and the file.
    Delete,
}

/// What a write needs of the chunk as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Load the chunk if it is stored, otherwise create it filled.
    Update,
    /// Overwrite every cell: create the chunk anew and never load it.
    Replace,
    /// Change the chunk if it is stored, otherwise do nothing.
    UpdateExisting,
}

/// The bytes of memory a chunk takes, and how much of the chunk is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Bytes in use: what [`Trim::Slack`] could bring `allocated` down to.
    pub used: u64,
    /// Bytes allocated: what the cache accounts for.
    pub allocated: u64,
    /// Whether the values are there, or only the defined cells.
    pub part: Part,
}

impl Footprint {
    /// All of a chunk, in `used` of `allocated` bytes.
    ///
    /// ```
    /// use pumice_cache::{Footprint, Part};
    /// let part = Part::All;
    /// assert_eq!(Footprint::new(10, 12), Footprint { used: 10, allocated: 12, part });
    /// ```
    pub fn new(used: u64, allocated: u64) -> Self {
        Footprint { used, allocated, part: Part::All }
    }

    /// Whether so much is unused that it is worth condensing.
    pub(crate) fn wasteful(&self) -> bool {
        self.allocated.saturating_sub(self.used) > self.allocated / 4
    }
}
