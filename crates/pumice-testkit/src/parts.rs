//! A store in memory of several parts, as the files of a split file are.

use pumice_store::{MemoryStore, Store};
use std::io;

/// Bytes in memory, in parts that each begin at an offset and have an end of their own.
///
/// ```
/// use pumice_store::Store;
/// use pumice_testkit::parts::PartedMemory;
///
/// let store = PartedMemory::new(&[0, 1 << 60]);
/// store.write_at((1 << 60) + 1, b"raw")?;
/// assert_eq!((store.len()?, store.room(1 << 60)?), (0, 4));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct PartedMemory {
    /// In order; the first begins at 0.
    parts: Vec<(u64, MemoryStore)>,
}

impl Default for PartedMemory {
    /// A single part.
    fn default() -> Self {
        Self::new(&[0])
    }
}

impl PartedMemory {
    /// Empty parts that begin at these offsets, the first at 0.
    pub fn new(starts: &[u64]) -> Self {
        Self { parts: starts.iter().map(|&start| (start, MemoryStore::default())).collect() }
    }

    /// The bytes of each part.
    pub fn to_vecs(&self) -> Vec<Vec<u8>> {
        self.parts.iter().map(|(_, part)| part.to_vec()).collect()
    }

    /// A copy.
    pub fn copied(&self) -> Self {
        let copy = |(start, part): &(u64, MemoryStore)| (*start, MemoryStore::new(part.to_vec()));
        Self { parts: self.parts.iter().map(copy).collect() }
    }

    /// The part that has the byte at `offset`, and where in it that is.
    fn part(&self, offset: u64) -> (&MemoryStore, u64) {
        let (start, part) = &self.parts[self.parts.partition_point(|part| part.0 <= offset) - 1];
        (part, offset - start)
    }
}

impl Store for PartedMemory {
    fn len(&self) -> io::Result<u64> {
        self.room(0)
    }

    fn room(&self, offset: u64) -> io::Result<u64> {
        let (part, inside) = self.part(offset);
        part.room(inside)
    }

    fn volume(&self) -> io::Result<u64> {
        self.parts.iter().map(|(_, part)| part.len()).sum()
    }

    fn starts(&self) -> Vec<u64> {
        self.parts.iter().map(|part| part.0).collect()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let (part, inside) = self.part(offset);
        part.read_at(inside, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let (part, inside) = self.part(offset);
        part.write_at(inside, bytes)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let (part, inside) = self.part(len);
        part.set_len(inside)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
