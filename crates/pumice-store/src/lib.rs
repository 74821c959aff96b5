//! Stores: positional, vectored reads and writes on files and memory.
//!
//! A [`Store`] is a growable array of bytes that many threads read and write at once, without a
//! shared cursor. Nothing here knows of HDF5.
//!
//! ```
//! use pumice_store::{MemoryStore, ReadOp, Store, WriteOp};
//!
//! let store = MemoryStore::default();
//! store.write_vectored(&[
//!     WriteOp { offset: 0, bytes: b"pu" },
//!     WriteOp { offset: 2, bytes: b"mice" },
//! ])?;
//! let (mut head, mut tail) = ([0; 3], [0; 3]);
//! store.read_vectored(&mut [
//!     ReadOp { offset: 0, buffer: &mut head },
//!     ReadOp { offset: 3, buffer: &mut tail },
//! ])?;
//! assert_eq!((&head, &tail), (b"pum", b"ice"));
//! # Ok::<(), std::io::Error>(())
//! ```

#![forbid(unsafe_code)]

mod family;
mod file;
mod joined;
mod lock;
mod memory;
mod observer;
mod parted;
mod unlocked;

pub use family::FamilyStore;
pub use file::FileStore;
pub use joined::{Gaps, JoinedStore, Part};
pub use lock::Locking;
pub use memory::MemoryStore;
pub use parted::PartedStore;
pub use unlocked::{ChangedMeanwhile, UnlockedStore};

use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Keeps announced reads under way until it is dropped.
pub type Announced = Option<Box<dyn Send + Sync>>;

/// One piece of a vectored read.
#[derive(Debug)]
pub struct ReadOp<'a> {
    /// The offset of the bytes.
    pub offset: u64,
    /// The buffer; its length is the number of wanted bytes.
    pub buffer: &'a mut [u8],
}

/// One piece of a vectored write.
#[derive(Clone, Copy, Debug)]
pub struct WriteOp<'a> {
    /// The offset of the bytes.
    pub offset: u64,
    /// The bytes.
    pub bytes: &'a [u8],
}

/// A step of refreshing a store that other programs may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// Reads fail from now on, because the known state may be out of date.
    Stop,
    /// Reads by this thread see the present state.
    Look,
    /// All reads see the present state.
    Done,
}

/// A growable array of bytes with positional access.
///
/// Calls that touch different bytes may run at the same time from any number of threads. The caller
/// orders calls that touch the same bytes.
pub trait Store: Send + Sync {
    /// The length: the number of bytes from the first one on.
    fn len(&self) -> io::Result<u64>;

    /// Whether there are none.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// The number of bytes from `offset` on without a gap.
    fn room(&self, offset: u64) -> io::Result<u64> {
        Ok(self.len()?.saturating_sub(offset))
    }

    /// The number of all bytes: more than [`len`](Self::len) if there are gaps between them.
    fn volume(&self) -> io::Result<u64> {
        self.len()
    }

    /// Fills `buffer` from `offset` on; `UnexpectedEof` if the store ends before.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`; the store grows as needed and gaps read as zeros.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Does all reads; pieces that follow one another in the list and in the store become one call.
    fn read_vectored(&self, ops: &mut [ReadOp<'_>]) -> io::Result<()> {
        ops.iter_mut().try_for_each(|op| self.read_at(op.offset, op.buffer))
    }

    /// Does all writes; pieces that follow one another in the list and in the store become one call.
    fn write_vectored(&self, ops: &[WriteOp<'_>]) -> io::Result<()> {
        ops.iter().try_for_each(|op| self.write_at(op.offset, op.bytes))
    }

    /// Whether a call takes so long that it is worth to [announce](Self::announce) reads.
    fn is_far(&self) -> bool {
        false
    }

    /// Announces reads of ranges, in their order: the store may begin to load them, and has what it
    /// loads ready for [`read_vectored`](Self::read_vectored) until what is returned is dropped.
    ///
    /// ```
    /// use pumice_store::{MemoryStore, Store};
    /// let store = MemoryStore::new(vec![1; 100]);
    /// let announced = store.announce(&[10..20, 50..60]);
    /// assert!(announced.is_none(), "what is in memory need not be loaded");
    /// ```
    fn announce(&self, ranges: &[Range<u64>]) -> Announced {
        let _ = ranges;
        None
    }

    /// Announces writes of all `len` bytes from `offset` on, each once: the store may make room for
    /// them at once. Nothing else changes.
    fn expect(&self, offset: u64, len: u64) {
        let _ = (offset, len);
    }

    /// The size of a member, if the store is a family of files.
    fn member_size(&self) -> Option<u64> {
        None
    }

    /// The offsets of the parts that have ends of their own, in order and from 0 on: several for
    /// files by kind of data. [`len`](Self::len) is that of the first.
    fn starts(&self) -> Vec<u64> {
        vec![0]
    }

    /// Tells the store its end before the first change: bytes behind it may belong to somebody
    /// else.
    fn settle(&self, end: u64) -> io::Result<()> {
        let _ = end;
        Ok(())
    }

    /// Wraps another store that this one refers to, such as external raw data. A store that counts
    /// its calls, or lets them fail, does so with those, too.
    fn beside(&self, other: Arc<dyn Store>) -> Arc<dyn Store> {
        other
    }

    /// Fails if the store is known not to be the one that was opened: a write would be lost or harm
    /// somebody else.
    fn check(&self) -> io::Result<()> {
        Ok(())
    }

    /// Whether other programs may change the store while it is open, so that reads fail after a
    /// change.
    fn is_unlocked(&self) -> bool {
        false
    }

    /// Takes the present state of a store whose reads [fail](Self::is_unlocked) after a change.
    fn renew(&self, step: Renewal) -> io::Result<()> {
        let _ = step;
        Ok(())
    }

    /// Cuts or extends (with zeros) to `len` bytes; of [several parts](Self::starts), the one that is to
    /// end there.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Returns when everything written before has reached the device.
    fn sync(&self) -> io::Result<()>;
}

/// An error of one of several files, with its path.
fn named(path: &std::path::Path, error: std::io::Error) -> std::io::Error {
    std::io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
