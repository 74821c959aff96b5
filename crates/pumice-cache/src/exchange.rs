//! The plain types that pass between the cache and layouts.

use std::sync::Arc;

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
    /// Whether [`direct_read`](crate::Layout::direct_read) may serve it where the chunk is stored: then about
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
    /// Whether [`direct_write`](crate::Layout::direct_write) may apply it where the chunk is stored: then
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
    /// Where they shall go: filled in by [`ChunkStore::insert`](crate::ChunkStore::insert).
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

/// What has come of a request that goes past the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direct {
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
