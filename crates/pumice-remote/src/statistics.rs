//! Counts of requests, bytes and what was spared.

use std::sync::atomic::{AtomicU64, Ordering};

/// What reading an object has taken so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Requests that were sent, with repeated ones.
    pub requests: u64,
    /// Bytes of answers that arrived.
    pub bytes: u64,
    /// Requests that were sent again, because the server was busy or the answer was cut.
    pub retries: u64,
    /// Reads that blocks in memory have answered.
    pub block_hits: u64,
    /// Bytes that were announced and loaded before they were read.
    pub bytes_ahead: u64,
    /// Ranges that the folder on disk has answered.
    pub disk_hits: u64,
}

/// The counters behind [`Statistics`].
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) requests: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) block_hits: AtomicU64,
    pub(crate) bytes_ahead: AtomicU64,
    pub(crate) disk_hits: AtomicU64,
}

pub(crate) fn add(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

impl Counts {
    pub(crate) fn now(&self) -> Statistics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Statistics {
            requests: read(&self.requests),
            bytes: read(&self.bytes),
            retries: read(&self.retries),
            block_hits: read(&self.block_hits),
            bytes_ahead: read(&self.bytes_ahead),
            disk_hits: read(&self.disk_hits),
        }
    }
}
