//! The resources that files share: worker threads and the chunk cache.

use pumice_cache::{
    ChunkCache, Config, Config as CacheConfig, CurvePoint, Inline, PerProcess, Policy, PolicyKind,
    Pool, Sizing, Stats,
};
use pumice_engine::file::Cache;
use pumice_engine::{Error, Result};
use pumice_trace::trace::{self, TraceError};
use std::sync::{Arc, OnceLock};

/// Threads and a chunk cache, shared by all files opened with it.
///
/// A process has one by default, with as many threads as there are processors. Make another where
/// a part of a program shall have memory or threads of its own:
///
/// ```
/// use pumice::{Context, File};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("a.h5");
/// let context = Context::builder().cache_bytes(16 << 20).threads(2).build()?;
/// let file = File::options().context(&context).create(&path)?;
/// assert_eq!(context.stats().misses, 0);
/// # Ok::<(), pumice::Error>(())
/// ```
#[derive(Clone)]
pub struct Context {
    cache: Cache,
}

impl Context {
    /// Begins a context of the program's own.
    pub fn builder() -> ContextBuilder {
        ContextBuilder {
            cache_bytes: None,
            threads: None,
            settings: Config::default(),
            sizing: None,
        }
    }

    /// The context of the process. A child of a fork has one of its own, because the threads of its
    /// parent do not exist there.
    pub fn global() -> Self {
        static GLOBAL: PerProcess<OnceLock<Context>> = PerProcess::new();
        // Without threads, work is done by the caller.
        let new = || {
            let without = |_| Context { cache: ChunkCache::new(Config::default()) };
            Self::builder().build().unwrap_or_else(without)
        };
        GLOBAL.here().get_or_init(new).clone()
    }

    /// The statistics of the cache.
    pub fn stats(&self) -> Stats {
        self.cache.stats()
    }

    /// Sets how many bytes of decoded chunks are kept between calls. Excess chunks leave at once;
    /// dirty ones are written back first.
    pub fn set_cache_bytes(&self, bytes: u64) -> Result<()> {
        self.cache.set_limits(bytes, bytes.saturating_add(bytes / 2))
    }

    /// Writes back dirty chunks and drops all chunks of all files from memory: later reads come
    /// from the files.
    ///
    /// ```
    /// use pumice::{Context, File};
    /// let context = Context::builder().build()?;
    /// let file = File::options().context(&context).create_in(std::sync::Arc::new(pumice::MemoryStore::default()))?;
    /// let dataset = file.new_dataset::<u8>().shape([100]).chunk([10]).create("d")?;
    /// dataset.write(.., &[1u8; 100])?;
    /// context.evict()?;
    /// assert_eq!((context.stats().resident, context.stats().write_backs), (0, 10));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn evict(&self) -> Result<()> {
        self.cache.flush_all(true)
    }

    /// The cache's settings in force.
    pub fn cache_config(&self) -> CacheConfig {
        self.cache.config()
    }

    /// Changes the cache's settings while files are open: size, policy, sizing, threads. Chunks
    /// beyond a new limit leave at once.
    ///
    /// ```
    /// use pumice::{Context, PolicyKind};
    /// let context = Context::builder().build()?;
    /// context.configure(context.cache_config().policy(PolicyKind::Lru))?;
    /// assert!(format!("{:?}", context.cache_config()).contains("Lru"));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn configure(&self, config: CacheConfig) -> Result<()> {
        self.cache.configure(config)
    }

    /// The share of recent chunk requests that would miss at other sizes of the cache, at the sizes
    /// where it changes.
    pub fn miss_ratio_curve(&self) -> Vec<CurvePoint> {
        self.cache.miss_ratio_curve()
    }

    /// Records the use of chunks from now on; `pumice cache replay` and
    /// [`simulate`](crate::simulate) replay the trace with other policies and sizes.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("run.trace");
    /// let context = pumice::Context::builder().build()?;
    /// let file = pumice::File::options().context(&context).create(folder.path().join("a.h5"))?;
    /// let data = file.new_dataset::<u8>().shape([100]).chunk([10]).create("data")?;
    /// context.start_trace(std::fs::File::create(&path)?)?;
    /// data.write(30..50, &[1u8; 20])?;
    /// context.stop_trace()?;
    /// let trace = pumice::trace::Trace::read(std::fs::File::open(&path)?)?;
    /// assert_eq!(trace.len(), 2, "two chunks were used");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn start_trace(
        &self,
        to: impl std::io::Write + Send + 'static,
    ) -> std::result::Result<(), TraceError> {
        trace::start(&self.cache, to)
    }

    /// Ends the recording, if there is one; returns the first error that it met.
    pub fn stop_trace(&self) -> std::result::Result<(), TraceError> {
        trace::stop(&self.cache)
    }

    #[doc(hidden)]
    pub fn cache(&self) -> Cache {
        self.cache.clone()
    }
}

/// Settings of a new [`Context`].
#[derive(Clone, Debug)]
pub struct ContextBuilder {
    cache_bytes: Option<u64>,
    threads: Option<usize>,
    /// The other settings.
    settings: Config,
    sizing: Option<Sizing>,
}

impl ContextBuilder {
    /// Sets how many bytes of decoded chunks are kept between calls. By default the size adapts to
    /// the use, see [`sizing`](Self::sizing).
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.cache_bytes = Some(bytes);
        self
    }

    /// Sets the number of threads that decode and encode; with 0 or 1 the caller does it.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Sets the replacement policy.
    pub fn policy(mut self, policy: PolicyKind) -> Self {
        self.settings = self.settings.policy(policy);
        self
    }

    /// Sets a policy of the program's own that chooses which chunks leave first; `make` makes one
    /// for a capacity in bytes. The example `own_policy` has one.
    ///
    /// ```
    /// let context = pumice::Context::builder().own_policy(|_| Box::new(pumice::policy::Lru::new())).build()?;
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn own_policy(
        mut self,
        make: impl Fn(u64) -> Box<dyn Policy> + Send + Sync + 'static,
    ) -> Self {
        self.settings = self.settings.own_policy(make);
        self
    }

    /// Limits how many threads work ahead of requests: they load chunks that will be read, and
    /// write or encode dirty ones. The default is all idle threads. With 0 nothing is done ahead,
    /// except that [`Dataset::prefetch`](crate::Dataset::prefetch) loads chunks on the calling
    /// thread.
    ///
    /// ```
    /// let context = pumice::Context::builder().threads(4).background(1).build()?;
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn background(mut self, threads: usize) -> Self {
        self.settings = self.settings.background(threads);
        self
    }

    /// Sets how the size of the cache is chosen: by default it moves between 32 and 512 MiB, or
    /// stays at [`cache_bytes`](Self::cache_bytes) if they are set.
    pub fn sizing(mut self, sizing: Sizing) -> Self {
        self.sizing = Some(sizing);
        self
    }

    /// Makes the context.
    pub fn build(self) -> Result<Context> {
        let mut config = self.settings;
        if let Some(bytes) = self.cache_bytes {
            let room = bytes / 2;
            config = config.resident_limit(bytes).active_limit(bytes.saturating_add(room));
        }
        if let Some(sizing) = self.sizing {
            config = config.sizing(sizing);
        }
        config = match self.threads {
            Some(0 | 1) => config.executor(Arc::new(Inline)),
            Some(threads) => {
                let pool = Pool::new(threads).map_err(|source| Error::Io {
                    action: format!("start {threads} threads"),
                    source,
                })?;
                config.executor(Arc::new(pool))
            }
            None => config.executor(Arc::new(Pool::with_available_threads())),
        };
        Ok(Context { cache: ChunkCache::new(config) })
    }
}
