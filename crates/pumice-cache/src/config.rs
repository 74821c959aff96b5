//! What a cache and its datasets are told when they are made.

use std::fmt;
use std::sync::Arc;

use crate::adaptive::{Sizing, Surroundings, System};
use crate::error::CacheError;
use crate::executor::{Executor, Inline, Pool};
use crate::policy::{
    Guarded, Hint, Lirs, Lru, Policy, Random, TinyLfu, TwoStage, Weight, WeightedLru,
};

/// The settings of a [`ChunkCache`](crate::ChunkCache).
///
/// The default keeps 128 MiB when idle: more than a hundred of the largest chunks that HDF5's
/// guides recommend (1 MiB), so that one row or column of chunks of a usual dataset fits, and
/// little for a program that handles arrays. It may hold 192 MiB while requests run: the 64 MiB
/// between let 16 threads each hold a chunk of 2 MiB decoded and encoded. As long as no limit is
/// set, it grows to 512 MiB (what a program may take without being asked) where hits are to be
/// gained, and shrinks to 32 MiB (one row of chunks of an array still fits) when it is idle or
/// memory is short. Replacement is by LIRS, which was measured to suit the loops in which arrays
/// are read. Work is done by the calling thread; a library gives its pool with
/// [`executor`](Config::executor).
///
/// ```
/// use pumice_cache::{Config, PolicyKind};
/// let config = Config::default().resident_limit(1 << 20).policy(PolicyKind::Lru);
/// assert_eq!(config.limits(), (1 << 20, 192 << 20));
/// ```
#[derive(Clone)]
pub struct Config {
    pub(crate) resident_limit: u64,
    pub(crate) active_limit: u64,
    pub(crate) sizing: Sizing,
    pub(crate) surroundings: Arc<dyn Surroundings>,
    pub(crate) policy: Choice,
    pub(crate) background: usize,
    pub(crate) executor: Arc<dyn Executor>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            resident_limit: 128 << 20,
            active_limit: 192 << 20,
            sizing: Sizing::Adaptive { minimum: 32 << 20, maximum: 512 << 20 },
            surroundings: Arc::new(System::new()),
            policy: Choice::Kind(PolicyKind::default()),
            background: usize::MAX,
            executor: Arc::new(Inline),
        }
    }
}

impl Config {
    /// Sets the bytes that chunks may take between requests, once and for all. To let them move,
    /// set the [`sizing`](Config::sizing) afterwards.
    pub fn resident_limit(mut self, bytes: u64) -> Self {
        self.resident_limit = bytes;
        if let Sizing::Adaptive { .. } = self.sizing {
            self.sizing = Sizing::Fixed;
        }
        self
    }

    /// Sets how the resident limit is chosen. The active limit keeps its distance from it.
    pub fn sizing(mut self, sizing: Sizing) -> Self {
        self.sizing = sizing;
        self
    }

    /// Sets who tells the time and the memory that is left.
    pub fn surroundings(mut self, surroundings: Arc<dyn Surroundings>) -> Self {
        self.surroundings = surroundings;
        self
    }

    /// How the resident limit is chosen.
    pub fn sizing_in_force(&self) -> Sizing {
        self.sizing
    }

    /// Sets the bytes that chunks, loads and encodings together may take while requests run.
    ///
    /// Never less than the resident limit counts.
    pub fn active_limit(mut self, bytes: u64) -> Self {
        self.active_limit = bytes;
        self
    }

    /// Sets how chunks are chosen to leave.
    pub fn policy(mut self, policy: PolicyKind) -> Self {
        self.policy = Choice::Kind(policy);
        self
    }

    /// Lets a policy of one's own choose. `make` makes one for a capacity in bytes; it is called when a cache begins
    /// with these settings.
    ///
    /// ```
    /// use pumice_cache::{Config, Lru};
    /// let config = Config::default().own_policy(|_capacity| Box::new(Lru::new()));
    /// ```
    pub fn own_policy(
        mut self,
        make: impl Fn(u64) -> Box<dyn Policy> + Send + Sync + 'static,
    ) -> Self {
        self.policy = Choice::Own(Arc::new(make));
        self
    }

    /// Sets how many threads may work ahead of requests at once: load what will be read, write or encode what will
    /// have to be written. As many as are idle unless set; with 0 there is no work ahead,
    /// [`prefetch`](crate::ChunkCache::prefetch) is done by who calls it, and nobody looks after a cache that rests.
    ///
    /// ```
    /// let config = pumice_cache::Config::default().threads(4)?.background(1);
    /// # Ok::<(), pumice_cache::CacheError>(())
    /// ```
    pub fn background(mut self, threads: usize) -> Self {
        self.background = threads;
        self
    }

    /// Sets how many threads decode and encode: the calling one and a pool beside it. With 0 or 1
    /// the calling thread does everything itself, in an order that is always the same.
    pub fn threads(self, threads: usize) -> Result<Self, CacheError> {
        if threads <= 1 {
            return Ok(self.executor(Arc::new(Inline)));
        }
        let failed =
            |error: std::io::Error| CacheError::Threads { threads, message: error.to_string() };
        Ok(self.executor(Arc::new(Pool::new(threads).map_err(failed)?)))
    }

    /// Sets who decodes and encodes.
    pub fn executor(mut self, executor: Arc<dyn Executor>) -> Self {
        self.executor = executor;
        self
    }

    /// The resident and the active limit in force.
    pub fn limits(&self) -> (u64, u64) {
        (self.resident_limit, self.active_limit.max(self.resident_limit))
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("resident_limit", &self.resident_limit)
            .field("active_limit", &self.active_limit)
            .field("sizing", &self.sizing)
            .field("policy", &self.policy)
            .field("background", &self.background)
            .field("threads", &self.executor.threads())
            .finish()
    }
}

/// Who chooses which chunks leave.
#[derive(Clone)]
pub(crate) enum Choice {
    Kind(PolicyKind),
    Own(Arc<dyn Fn(u64) -> Box<dyn Policy> + Send + Sync>),
}

impl Choice {
    /// A fresh policy for a cache of `capacity` bytes.
    pub(crate) fn build(&self, capacity: u64) -> Box<dyn Policy> {
        match self {
            Choice::Kind(kind) => kind.build(capacity),
            Choice::Own(make) => Box::new(Guarded::new(make(capacity))),
        }
    }
}

impl PartialEq for Choice {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Choice::Kind(one), Choice::Kind(other)) => one == other,
            (Choice::Own(one), Choice::Own(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl fmt::Debug for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Kind(kind) => kind.fmt(f),
            Choice::Own(_) => f.write_str("own"),
        }
    }
}

/// The replacement policies to choose from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PolicyKind {
    /// Low inter-reference recency set: resists loops and scans.
    #[default]
    Lirs,
    /// Least recently used.
    Lru,
    /// Two-stage least recently used: of a dataset that has more than its share, the chunk used longest
    /// ago.
    TwoStage,
    /// Least recently used, complete chunks first, as in HDF5: by each dataset's `rdcc_w0`.
    WeightedLru,
    /// W-TinyLFU: by frequency of use.
    TinyLfu,
    /// Any.
    Random,
}

impl PolicyKind {
    /// All of them.
    pub const ALL: [PolicyKind; 6] = [
        PolicyKind::Lirs,
        PolicyKind::Lru,
        PolicyKind::TwoStage,
        PolicyKind::WeightedLru,
        PolicyKind::TinyLfu,
        PolicyKind::Random,
    ];

    /// A fresh policy of this kind for a cache of `capacity` bytes.
    ///
    /// ```
    /// let mut policy = pumice_cache::PolicyKind::Lru.build(100);
    /// policy.admit(0, 0xfeed, 10, pumice_cache::Usage::default());
    /// ```
    pub fn build(self, capacity: u64) -> Box<dyn Policy> {
        match self {
            PolicyKind::Lirs => Box::new(Lirs::new(capacity)),
            PolicyKind::Lru => Box::new(Lru::new()),
            PolicyKind::TwoStage => Box::new(TwoStage::new(capacity)),
            PolicyKind::WeightedLru => Box::new(WeightedLru::new()),
            PolicyKind::TinyLfu => Box::new(TinyLfu::new(capacity)),
            PolicyKind::Random => Box::new(Random::new()),
        }
    }
}

impl fmt::Display for PolicyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PolicyKind::Lirs => "LIRS",
            PolicyKind::Lru => "LRU",
            PolicyKind::TwoStage => "two-stage LRU",
            PolicyKind::WeightedLru => "w0-weighted LRU",
            PolicyKind::TinyLfu => "W-TinyLFU",
            PolicyKind::Random => "random",
        })
    }
}

/// What the cache is told about one dataset.
///
/// ```
/// let options = pumice_cache::DatasetOptions::default().minimum(1 << 20);
/// assert_eq!(options, options.direct(false));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatasetOptions {
    pub(crate) minimum: u64,
    pub(crate) maximum: u64,
    pub(crate) direct: bool,
    pub(crate) write_through: bool,
    pub(crate) hint: Hint,
    pub(crate) preemption: Weight,
}

impl Default for DatasetOptions {
    fn default() -> Self {
        let (hint, preemption) = (Hint::Normal, Weight::default());
        DatasetOptions {
            minimum: 0,
            maximum: u64::MAX,
            direct: false,
            write_through: false,
            hint,
            preemption,
        }
    }
}

impl DatasetOptions {
    /// Keeps this many bytes of the dataset's chunks from being pushed out by other datasets, as
    /// long as the cache's own limits allow it.
    pub fn minimum(mut self, bytes: u64) -> Self {
        self.minimum = bytes;
        self
    }

    /// Lets the dataset's chunks take this many bytes between requests at most: beyond it, its own
    /// chunks leave, those first that were not used for longest.
    pub fn maximum(mut self, bytes: u64) -> Self {
        self.maximum = bytes;
        self
    }

    /// Asks not to keep this dataset's chunks: go direct where the layout can, and let chunks leave
    /// as soon as their request is served.
    pub fn direct(mut self, direct: bool) -> Self {
        self.direct = direct;
        self
    }

    /// Stores what a write changes before the write returns. The chunks stay in memory, as far as there is room.
    ///
    /// What cannot be stored is the write's error then; the change stays in memory, and later flushes try again.
    pub fn write_through(mut self, write_through: bool) -> Self {
        self.write_through = write_through;
        self
    }

    /// Tells how the dataset's chunks are going to be used.
    pub fn hint(mut self, hint: Hint) -> Self {
        self.hint = hint;
        self
    }

    /// Says how much it counts that a chunk was read or written as a whole: HDF5's `rdcc_w0`, from 0 to 1,
    /// 0.75 unless said otherwise.
    ///
    /// To [`PolicyKind::WeightedLru`] it is what it is to HDF5: complete chunks leave first as long as
    /// they are among the oldest part of this size of the dataset's chunks. To [`PolicyKind::Lirs`], which
    /// lets complete chunks go until they have come back once, it only matters whether it is 0: then
    /// they stay like others, and large reads leave what they bring in the cache. The other policies do not ask
    /// whether chunks are complete.
    pub fn preemption(mut self, weight: f64) -> Self {
        self.preemption = Weight::new(weight);
        self
    }

    /// Takes over what `H5Pset_chunk_cache` says for one dataset.
    ///
    /// `rdcc_nbytes` was the memory that a dataset had for itself: it becomes its
    /// [`minimum`](Self::minimum), and the dataset may use more as long as nobody else needs it. A
    /// size of zero meant that nothing is kept: the dataset then goes
    /// [`direct`](Self::direct). `rdcc_w0` is the [`preemption`](Self::preemption) weight.
    /// `rdcc_nslots` has no meaning here, since tables grow with what they hold.
    ///
    /// ```
    /// use pumice_cache::DatasetOptions;
    /// let options = DatasetOptions::default().chunk_cache(8 << 20, 0.5);
    /// assert_eq!(options, DatasetOptions::default().minimum(8 << 20).preemption(0.5));
    /// ```
    pub fn chunk_cache(self, rdcc_nbytes: u64, rdcc_w0: f64) -> Self {
        self.minimum(rdcc_nbytes).direct(rdcc_nbytes == 0).preemption(rdcc_w0)
    }
}
