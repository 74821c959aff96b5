//! A store in memory: for tests, for files that are never on disk, and as the model of other
//! stores.

use crate::Store;
use std::io;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Bytes in memory behind a lock; each call sees and leaves whole writes.
#[derive(Debug, Default)]
pub struct MemoryStore {
    bytes: RwLock<Vec<u8>>,
}

impl MemoryStore {
    /// A store that begins with these bytes.
    ///
    /// ```
    /// use pumice_store::{MemoryStore, Store};
    /// assert_eq!(MemoryStore::new(vec![1, 2, 3]).len()?, 3);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes: RwLock::new(bytes) }
    }

    /// A copy of its bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        self.shared().clone()
    }

    // No code runs under the lock that could panic half-way through a change, so a poisoned lock
    // still guards consistent bytes.
    fn shared(&self) -> RwLockReadGuard<'_, Vec<u8>> {
        self.bytes.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn exclusive(&self) -> RwLockWriteGuard<'_, Vec<u8>> {
        self.bytes.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn range(offset: u64, len: usize) -> io::Result<std::ops::Range<usize>> {
    let start = usize::try_from(offset).ok();
    let end = start.and_then(|start| start.checked_add(len));
    match (start, end) {
        (Some(start), Some(end)) => Ok(start..end),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "beyond addressable memory")),
    }
}

impl Store for MemoryStore {
    fn len(&self) -> io::Result<u64> {
        Ok(self.shared().len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        match self.shared().get(range(offset, buffer.len())?) {
            Some(bytes) => {
                buffer.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let range = range(offset, bytes.len())?;
        let mut held = self.exclusive();
        if held.len() < range.end {
            let missing = range.end - held.len();
            held.try_reserve(missing).map_err(|_| io::ErrorKind::OutOfMemory)?;
            held.resize(range.end, 0);
        }
        held[range].copy_from_slice(bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let len = range(len, 0)?.start;
        let mut held = self.exclusive();
        let missing = len.saturating_sub(held.len());
        held.try_reserve(missing).map_err(|_| io::ErrorKind::OutOfMemory)?;
        held.resize(len, 0);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
