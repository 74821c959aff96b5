//! A count that does not trust the cache's: chunks and encodings enter themselves when they are made and strike
//! themselves off when they are dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many bytes all chunks and encodings in memory take, counted by themselves.
#[derive(Debug, Default)]
pub struct Living {
    now: AtomicU64,
    pub peak: AtomicU64,
}

#[derive(Debug)]
pub struct Alive(Arc<Living>, u64);

impl Alive {
    pub fn new(living: &Arc<Living>, bytes: u64) -> Option<Self> {
        let now = living.now.fetch_add(bytes, Ordering::SeqCst) + bytes;
        living.peak.fetch_max(now, Ordering::SeqCst);
        Some(Alive(Arc::clone(living), bytes))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.now.fetch_sub(self.1, Ordering::SeqCst);
    }
}

/// Marks of what is stored are compared with what they were.
impl PartialEq for Alive {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}
