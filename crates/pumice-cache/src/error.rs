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
}
