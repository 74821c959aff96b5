//! A store that records every change, to replay a program's end after any of them.

use crate::parts::PartedMemory;
use pumice_store::Store;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One change of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Bytes written at an offset.
    Write(u64, Vec<u8>),
    /// Another length.
    Length(u64),
    /// Everything before has reached the device.
    Sync,
}

/// Bytes in memory and all changes that led to them.
///
/// ```
/// use pumice_store::{MemoryStore, Store};
/// use pumice_testkit::recording::RecordingStore;
///
/// let store = RecordingStore::default();
/// store.write_at(0, b"ab")?;
/// store.write_at(1, b"xyz")?;
/// let half = MemoryStore::default();
/// store.play(1, true, &half)?;
/// assert_eq!(half.to_vec(), b"ax");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Default)]
pub struct RecordingStore {
    inner: PartedMemory,
    changes: Mutex<Vec<Change>>,
}

impl RecordingStore {
    /// A store of several parts, which begin at these offsets.
    pub fn of_parts(starts: &[u64]) -> Self {
        Self { inner: PartedMemory::new(starts), changes: Mutex::default() }
    }

    /// An empty store of the same parts.
    pub fn blank(&self) -> PartedMemory {
        PartedMemory::new(&self.inner.starts())
    }

    /// The number of changes.
    pub fn count(&self) -> usize {
        self.changes().len()
    }

    /// Makes the first `count` changes to an empty store and, if `torn`, a part of the next.
    pub fn play(&self, count: usize, torn: bool, to: &dyn Store) -> io::Result<()> {
        let changes = self.changes();
        changes.iter().take(count).try_for_each(|change| apply(change, usize::MAX, to))?;
        match changes.get(count).filter(|_| torn) {
            Some(change @ Change::Write(_, bytes)) => apply(change, bytes.len() / 2, to),
            _ => Ok(()),
        }
    }

    /// Makes the change of a number to a store that has had all before it.
    pub fn step(&self, number: usize, to: &dyn Store) -> io::Result<()> {
        self.changes().get(number).map_or(Ok(()), |change| apply(change, usize::MAX, to))
    }

    /// Makes the first `count` changes to an empty store as if power failed after them: of those
    /// that nothing waited for to reach the device, only the ones that `kept` accepts, by number.
    pub fn play_power_loss(
        &self,
        count: usize,
        mut kept: impl FnMut(usize) -> bool,
        to: &dyn Store,
    ) -> io::Result<()> {
        let changes = self.changes();
        let made = &changes[..count.min(changes.len())];
        let safe = made.iter().rposition(|change| *change == Change::Sync).unwrap_or(0);
        let mut numbered = made.iter().enumerate();
        numbered.try_for_each(|(number, change)| match number < safe || kept(number) {
            true => apply(change, usize::MAX, to),
            false => Ok(()),
        })
    }

    fn changes(&self) -> MutexGuard<'_, Vec<Change>> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn apply(change: &Change, most: usize, to: &dyn Store) -> io::Result<()> {
    match change {
        Change::Write(offset, bytes) => to.write_at(*offset, &bytes[..most.min(bytes.len())]),
        Change::Length(length) => to.set_len(*length),
        Change::Sync => Ok(()),
    }
}

impl Store for RecordingStore {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn room(&self, offset: u64) -> io::Result<u64> {
        self.inner.room(offset)
    }

    fn volume(&self) -> io::Result<u64> {
        self.inner.volume()
    }

    fn starts(&self) -> Vec<u64> {
        self.inner.starts()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.inner.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.changes().push(Change::Write(offset, bytes.to_vec()));
        self.inner.write_at(offset, bytes)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.changes().push(Change::Length(len));
        self.inner.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.changes().push(Change::Sync);
        Ok(())
    }
}
