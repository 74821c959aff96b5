//! Which chunks of a dataset are stored, and where: the chunk index and the space behind it.
//!
//! A chunk whose stored size can vary (filters, sparse) is written to fresh space each time, and
//! its old space is given back: committed metadata never names bytes that are being replaced. A
//! dense chunk without filters keeps its place.

use crate::index::ChunkIndex;
use crate::medium::Medium;
use crate::metadata::MetadataIo;
use crate::{Error, Result};
use pumice_bytes::DecodeError;
use pumice_format::index::ChunkRecord;
use pumice_space::Dims;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The stored chunks of a dataset.
pub struct ChunkTable {
    medium: Arc<Medium>,
    index: Mutex<ChunkIndex>,
    /// Whether a chunk that is stored keeps its place when it is written again.
    in_place: bool,
}

impl ChunkTable {
    /// A table over an index.
    pub fn new(medium: Arc<Medium>, index: ChunkIndex, in_place: bool) -> Self {
        Self { medium, index: Mutex::new(index), in_place }
    }

    /// Where chunks are stored.
    pub fn medium(&self) -> &Arc<Medium> {
        &self.medium
    }

    /// Exclusive access to the index.
    pub fn index(&self) -> MutexGuard<'_, ChunkIndex> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The records of many chunks.
    pub fn lookup(&self, keys: &[Dims]) -> Result<Vec<Option<ChunkRecord>>> {
        let length = self.medium.length()?;
        let mut index = self.index();
        keys.iter()
            .map(|key| {
                let record = index.lookup(&*self.medium, key)?;
                record.map(|record| check(record, length)).transpose()
            })
            .collect()
    }

    /// Finds room for a chunk of `record.size` bytes and enters it in the index. Returns its place.
    pub fn place(&self, key: &Dims, mut record: ChunkRecord) -> Result<u64> {
        let mut index = self.index();
        let old = index.lookup(&*self.medium, key)?;
        if let Some(old) = &old
            && self.in_place
            && old.size == record.size
        {
            return Ok(old.address);
        }
        let (address, size) = (self.medium.allocate(record.size)?, record.size);
        record.address = address;
        if let Err(error) = index.insert(&*self.medium, key, record) {
            self.medium.free(address, size);
            return Err(error);
        }
        // Only now: as long as the index names the old place, it must not become free.
        if let Some(old) = old {
            self.medium.free(old.address, old.size);
        }
        Ok(address)
    }

    /// Removes a chunk, if it is stored, and gives its space back.
    pub fn remove(&self, key: &Dims) -> Result<()> {
        if let Some(record) = self.index().remove(&*self.medium, key)? {
            self.medium.free(record.address, record.size);
        }
        Ok(())
    }

    /// All stored chunks, in the index's order.
    pub fn all(&self) -> Result<Vec<(Dims, ChunkRecord)>> {
        let mut all = Vec::new();
        self.index().for_each(&*self.medium, &mut |coord, record| {
            all.push((Dims::from_slice(coord), record.clone()));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    /// Gives back all chunks and the index.
    pub fn free(&self) -> Result<()> {
        for (_, record) in self.all()? {
            self.medium.free(record.address, record.size);
        }
        self.index().delete(&*self.medium)
    }
}

/// A record that lies inside the file.
fn check(record: ChunkRecord, length: u64) -> Result<ChunkRecord, Error> {
    let end = record.address.checked_add(record.size);
    if end.is_some_and(|end| end <= length) {
        return Ok(record);
    }
    let expected = format!("a chunk that ends before {length:#x}");
    Err(DecodeError::new("chunk", record.address, expected, format!("{} byte(s)", record.size))
        .into())
}
