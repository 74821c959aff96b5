//! The failures that are the cache's own; all others are the layout's.

use thiserror::Error;

/// A failure of the cache itself, or of a layout that broke its contract.
///
/// ```
/// let error = pumice_cache::CacheError::OutOfMemory { bytes: 1 << 60 };
/// assert!(error.to_string().contains("1152921504606846976"));
/// ```
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheError {
    /// A callback of the layout panicked; the cache is intact.
    #[error("a storage layout panicked: {message}")]
    Panicked {
        /// What the panic said.
        message: String,
    },
    /// There is no memory for a chunk's stored bytes.
    #[error("no memory for a chunk of {bytes} stored bytes")]
    OutOfMemory {
        /// The bytes asked for.
        bytes: u64,
    },
    /// `lookup` did not answer for each key.
    #[error("a storage layout answered {found} of {expected} look-ups")]
    Lookup {
        /// The number of keys.
        expected: usize,
        /// The number of answers.
        found: usize,
    },
    /// The dataset is registered with another cache.
    #[error("the dataset is registered with another cache")]
    ForeignDataset,
    /// The cache was to be destroyed with changes in it that are not written back, of one dataset or more.
    #[error("a dataset has {bytes} byte(s) in {chunks} chunk(s) that are not written back")]
    Dirty {
        /// How many of a dataset's chunks are dirty.
        chunks: usize,
        /// What they take in memory.
        bytes: u64,
    },
    /// A chunk was to be stored of a dataset that has no chunks.
    #[error("the dataset is not stored in chunks")]
    NoChunks,
    /// The cache has been destroyed.
    #[error("the cache has been destroyed")]
    Destroyed,
    /// Worker threads could not be started.
    #[error("{threads} worker threads could not be started: {message}")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// What the system said.
        message: String,
    },
}
