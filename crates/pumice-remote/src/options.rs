//! Settings: sizes, numbers, patience.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Settings for reading from object stores.
///
/// ```
/// use pumice_remote::Options;
///
/// let options = Options::new().block_bytes(256 << 10).requests(64);
/// # let _ = options;
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) block: usize,
    pub(crate) first: usize,
    pub(crate) blocks: usize,
    pub(crate) flying: usize,
    pub(crate) ahead: usize,
    pub(crate) requests: usize,
    pub(crate) piece: usize,
    pub(crate) gap: u64,
    pub(crate) retries: u32,
    pub(crate) backoff: Duration,
    pub(crate) disk: Option<Disk>,
}

/// Where blocks are kept on disk, and how many bytes of them.
#[derive(Clone, Debug)]
pub(crate) struct Disk {
    pub(crate) folder: PathBuf,
    pub(crate) most: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            block: 2 << 20,
            first: 2 << 20,
            blocks: 64 << 20,
            flying: 128 << 20,
            ahead: 128 << 20,
            requests: 32,
            piece: 8 << 20,
            gap: 256 << 10,
            retries: 8,
            backoff: Duration::from_millis(100),
            disk: None,
        }
    }
}

/// The least sizes that make sense.
const LEAST: usize = 4 << 10;

impl Options {
    /// The usual settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// The size of the blocks in which metadata is fetched: 2 MiB unless set, more for objects of
    /// up to 16 blocks, of which three are all.
    pub fn block_bytes(mut self, bytes: usize) -> Self {
        self.block = bytes.max(LEAST);
        self
    }

    /// The bytes that the first request asks for: 2 MiB unless set.
    pub fn first_bytes(mut self, bytes: usize) -> Self {
        self.first = bytes.max(LEAST);
        self
    }

    /// The memory for blocks of metadata: 64 MiB unless set.
    pub fn cache_bytes(mut self, bytes: usize) -> Self {
        self.blocks = bytes;
        self
    }

    /// The bytes that may be under way, or wait for the threads that need them, twice: for requests that a
    /// thread waits for, and for chunks that are loaded ahead. 128 MiB unless set.
    pub fn flying_bytes(mut self, bytes: usize) -> Self {
        (self.flying, self.ahead) = (bytes, bytes);
        self
    }

    /// The number of requests that may be under way at once: 32 unless set.
    pub fn requests(mut self, most: usize) -> Self {
        self.requests = most.clamp(1, 1 << 10);
        self
    }

    /// The largest request; more is fetched by several at once. 8 MiB unless set.
    pub fn piece_bytes(mut self, bytes: usize) -> Self {
        self.piece = bytes.max(LEAST);
        self
    }

    /// The largest hole between two ranges that is fetched rather than asked for around: 256 KiB unless set.
    pub fn gap_bytes(mut self, bytes: u64) -> Self {
        self.gap = bytes;
        self
    }

    /// How often a request is repeated when the server is busy (429, 500, 502, 503, 504), does not answer, or cuts its
    /// answer: 8 times unless set.
    pub fn retries(mut self, most: u32) -> Self {
        self.retries = most;
        self
    }

    /// The time before the first repetition: 100 ms unless set. Each later one waits twice as long, up to
    /// five seconds, or as long as the server asks for, up to 30 seconds.
    pub fn backoff(mut self, first: Duration) -> Self {
        self.backoff = first;
        self
    }

    /// Keeps fetched blocks and chunks in a folder, too, up to so many bytes. Other processes may use
    /// it at the same time. They are found by address and ETag: a replaced object is never served from it.
    pub fn disk(mut self, folder: impl AsRef<Path>, most: u64) -> Self {
        self.disk = Some(Disk { folder: folder.as_ref().to_owned(), most });
        self
    }
}
