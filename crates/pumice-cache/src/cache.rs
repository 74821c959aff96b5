//! The operations on the cache: register, read, write, flush, hold back.

use crate::config::{Config, DatasetOptions};
use crate::layout::Layout;
use crate::stats::Stats;
use crate::sync::Arc;

/// A cache of decoded chunks, shared by all datasets registered with it.
pub struct ChunkCache<L: Layout> {
    shared: Arc<Shared<L>>,
}

pub(crate) struct Shared<L: Layout> {
    layout: std::marker::PhantomData<L>,
}

impl<L: Layout> Clone for ChunkCache<L> {
    fn clone(&self) -> Self {
        ChunkCache { shared: Arc::clone(&self.shared) }
    }
}

/// A dataset's place in a cache.
pub struct Dataset<L: Layout> {
    cache: ChunkCache<L>,
    layout: Arc<L>,
}

/// Holds back all other requests of one dataset.
pub struct Exclusive<'c, L: Layout> {
    cache: &'c ChunkCache<L>,
}

impl<L: Layout> ChunkCache<L> {
    /// A cache that holds nothing yet.
    pub fn new(config: Config) -> Self {
        let _ = config;
        todo!()
    }

    /// Gives a dataset its place in the cache.
    pub fn register(&self, layout: Arc<L>, options: DatasetOptions) -> Dataset<L> {
        let _ = options;
        Dataset { cache: self.clone(), layout }
    }

    /// Serves a read.
    pub fn read<'a>(
        &self,
        dataset: &Dataset<L>,
        parts: impl IntoIterator<Item = (L::Key, L::Read<'a>)>,
    ) -> Result<(), L::Error> {
        let _ = (dataset, parts.into_iter());
        todo!()
    }

    /// Applies a write.
    pub fn write<'a>(
        &self,
        dataset: &Dataset<L>,
        parts: impl IntoIterator<Item = (L::Key, L::Write<'a>)>,
    ) -> Result<(), L::Error> {
        let _ = (dataset, parts.into_iter());
        todo!()
    }

    /// Writes back what the dataset changed; with `evict`, also empties its part of the cache.
    pub fn flush(&self, dataset: &Dataset<L>, evict: bool) -> Result<(), L::Error> {
        let _ = (dataset, evict);
        todo!()
    }

    /// Writes back what any dataset changed.
    pub fn flush_all(&self) -> Result<(), L::Error> {
        todo!()
    }

    /// Waits for the dataset's running requests and holds back later ones.
    pub fn exclusive<'c>(&'c self, dataset: &'c Dataset<L>) -> Exclusive<'c, L> {
        let _ = dataset;
        todo!()
    }

    /// What all datasets did so far.
    pub fn stats(&self) -> Stats {
        todo!()
    }

    /// What one dataset did so far.
    pub fn dataset_stats(&self, dataset: &Dataset<L>) -> Stats {
        let _ = dataset;
        todo!()
    }

    /// The settings in force.
    pub fn config(&self) -> Config {
        todo!()
    }

    /// Changes the limits; chunks beyond the new resident limit leave at once.
    pub fn set_limits(&self, resident: u64, active: u64) -> Result<(), L::Error> {
        let _ = (resident, active);
        todo!()
    }
}

impl<L: Layout> Dataset<L> {
    /// The cache it is registered with.
    pub fn cache(&self) -> &ChunkCache<L> {
        &self.cache
    }

    /// Its layout.
    pub fn layout(&self) -> &Arc<L> {
        &self.layout
    }

    /// Writes back what it changed and gives its place up.
    pub fn close(self) -> Result<(), L::Error> {
        todo!()
    }
}

impl<L: Layout> Exclusive<'_, L> {
    /// The chunks in the cache, in order.
    pub fn resident_keys(&self) -> Vec<L::Key> {
        let _ = self.cache;
        todo!()
    }

    /// Drops a chunk from the cache, changed or not; `false`: it was not there.
    pub fn discard(&self, key: &L::Key) -> bool {
        let _ = key;
        todo!()
    }

    /// Serves a read.
    pub fn read<'a>(
        &self,
        parts: impl IntoIterator<Item = (L::Key, L::Read<'a>)>,
    ) -> Result<(), L::Error> {
        let _ = parts.into_iter();
        todo!()
    }

    /// Applies a write.
    pub fn write<'a>(
        &self,
        parts: impl IntoIterator<Item = (L::Key, L::Write<'a>)>,
    ) -> Result<(), L::Error> {
        let _ = parts.into_iter();
        todo!()
    }

    /// Writes back what the dataset changed; with `evict`, also empties its part of the cache.
    pub fn flush(&self, evict: bool) -> Result<(), L::Error> {
        let _ = evict;
        todo!()
    }
}
