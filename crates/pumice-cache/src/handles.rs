//! What the owner of a file or of a dataset has in hand: its place in the cache.

use crate::cache::ChunkCache;
use crate::config::DatasetOptions;
use crate::layout::{Family, Layout, Unchunked};
use crate::member::{Data, Member};
use crate::refused::Refused;
use crate::sync::Arc;

/// A file's place in a cache: a name for the datasets registered with it.
///
/// Dropping it changes nothing; [`close`](CachedFile::close) takes the file's chunks out of the cache.
pub struct CachedFile<F: Family> {
    pub(crate) cache: ChunkCache<F>,
    pub(crate) id: u64,
}

impl<F: Family> CachedFile<F> {
    /// The cache it is registered with.
    pub fn cache(&self) -> &ChunkCache<F> {
        &self.cache
    }

    /// Gives a dataset of the file its place in the cache.
    pub fn register<T: Layout<F>>(&self, layout: Arc<T>, options: DatasetOptions) -> Dataset<F> {
        self.cache.shared.register(&self.cache, Some(self.id), Data::Chunks(layout), options)
    }

    /// Gives a dataset of the file whose data are not in chunks its place in the order of requests.
    pub fn register_unchunked<T: Unchunked<F>>(
        &self,
        data: Arc<T>,
        options: DatasetOptions,
    ) -> Dataset<F> {
        self.cache.shared.register(&self.cache, Some(self.id), Data::Unchunked(data), options)
    }

    /// Writes back what the file's datasets have changed, all of them together, and lets their chunks
    /// leave the cache.
    ///
    /// On an error the place is given back with it, what could not be written is still in the cache,
    /// and closing can be tried again.
    pub fn close(self) -> Result<(), (Self, F::Error)> {
        match self.cache.flush_file(&self, true) {
            Ok(()) => Ok(()),
            Err(error) => Err((self, error)),
        }
    }
}

impl<F: Family> std::fmt::Debug for CachedFile<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CachedFile").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A dataset's place in a cache.
///
/// Dropping it closes the dataset; [`close`](Dataset::close) does the same and tells of errors.
pub struct Dataset<F: Family> {
    pub(crate) cache: ChunkCache<F>,
    pub(crate) member: Arc<Member<F>>,
    pub(crate) open: bool,
}

impl<F: Family> Dataset<F> {
    /// The cache it is registered with.
    pub fn cache(&self) -> &ChunkCache<F> {
        &self.cache
    }

    /// What the cache was told about it.
    pub fn options(&self) -> DatasetOptions {
        self.member.options()
    }

    /// Whether chunks that were refused are of this dataset.
    pub fn has_refused(&self, refused: &Refused<F>) -> bool {
        self.member.id == refused.dataset
    }

    /// Tells the cache something else about it from now on. Chunks beyond a new maximum leave at once.
    pub fn set_options(&self, options: DatasetOptions) {
        self.member.set_options(options);
        self.cache.shared.trim_member(&self.member);
    }

    /// Writes back what was changed and gives the place up.
    ///
    /// The place is given up in any case: on an error, changes that could not be written are lost.
    /// To be able to try again, [`flush`](ChunkCache::flush) first.
    pub fn close(mut self) -> Result<(), F::Error> {
        self.open = false;
        self.cache.shared.close(&self.member)
    }
}

impl<F: Family> Drop for Dataset<F> {
    fn drop(&mut self) {
        if self.open {
            let _ = self.cache.shared.close(&self.member);
        }
    }
}

impl<F: Family> std::fmt::Debug for Dataset<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (id, options) = (self.member.id, self.options());
        let mut f = f.debug_struct("Dataset");
        f.field("id", &id).field("options", &options).finish_non_exhaustive()
    }
}
