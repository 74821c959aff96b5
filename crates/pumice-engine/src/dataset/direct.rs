//! Stored chunks as they are in the file: looked up, read and written without filters.
//!
//! Order with cached data: what the cache has changed of a chunk is written back before its stored
//! bytes are read, and a chunk that is replaced leaves the cache before the index names the new
//! bytes. The dataset's other requests are held back meanwhile; in a file that is only read nothing
//! can move, and nobody waits.

use super::DatasetState;
use crate::layout::{ChunkTable, Storage};
use crate::{Error, Result};
use pumice_cache::Exclusive;
use pumice_format::index::ChunkRecord;
use pumice_space::Dims;
use pumice_store::WriteOp;

impl DatasetState {
    /// The record of the chunk whose first cell is at `offset`, if it is stored.
    pub fn chunk_record(&self, offset: &[u64]) -> Result<Option<ChunkRecord>> {
        let _no_resize = self.gate();
        let (table, key) = (self.chunks()?, self.chunk_key(offset)?);
        let _still = self.written_back()?;
        Ok(table.lookup(&[key])?.pop().flatten())
    }

    /// All stored chunks in row-major order: the first cell of each, and its record.
    pub fn chunk_records(&self) -> Result<Vec<(Dims, ChunkRecord)>> {
        let _no_resize = self.gate();
        let table = self.chunks()?;
        let _still = self.written_back()?;
        let chunk = self.layout.geometry.chunk();
        let mut all = table.all()?;
        all.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        for (key, _) in &mut all {
            key.iter_mut().zip(chunk).for_each(|(axis, side)| *axis = axis.saturating_mul(*side));
        }
        Ok(all)
    }

    /// The stored bytes of a chunk, and its record, if it is stored.
    pub fn read_chunk(&self, offset: &[u64]) -> Result<Option<(Vec<u8>, ChunkRecord)>> {
        let _no_resize = self.gate();
        let (table, key) = (self.chunks()?, self.chunk_key(offset)?);
        let _still = self.written_back()?;
        let Some(record) = table.lookup(&[key])?.pop().flatten() else { return Ok(None) };
        Ok(Some((table.read(&record)?, record)))
    }

    /// Stores `bytes` as the chunk at `offset`, which they must decode to with the filters that
    /// `filter_mask` does not skip. Only for dense chunks.
    pub fn write_chunk(&self, offset: &[u64], bytes: &[u8], filter_mask: u32) -> Result<()> {
        self.medium().require_writable()?;
        let _no_resize = self.gate();
        let key = self.chunk_key(offset)?;
        let Storage::Dense(dense, table) = &self.layout.storage else {
            return Err(Error::Invalid("only dense chunks are stored with one filter mask".into()));
        };
        dense.check_stored(&key, bytes.len() as u64, filter_mask)?;
        let record = ChunkRecord { filter_mask, ..ChunkRecord::dense(0, bytes.len() as u64) };
        self.store(table, &key, record, bytes)
    }

    /// Stores sections as the structured chunk at `offset`. The record says how they lie in `bytes`.
    /// They must decode, and define cells inside the extent.
    pub fn write_sections(&self, offset: &[u64], record: ChunkRecord, bytes: &[u8]) -> Result<()> {
        self.medium().require_writable()?;
        let _no_resize = self.gate();
        let key = self.chunk_key(offset)?;
        let table = match &self.layout.storage {
            Storage::Sparse(sparse, table) => {
                sparse.check_stored(&key, bytes, &record)?;
                table
            }
            Storage::VariableLength(layout, table) => {
                layout.check_stored(&key, bytes, &record)?;
                table
            }
            _ => {
                return Err(Error::Invalid("only structured chunks are stored by sections".into()));
            }
        };
        self.store(table, &key, record, bytes)
    }

    /// Puts bytes in the place of a chunk, in file and cache.
    fn store(
        &self,
        table: &ChunkTable,
        key: &Dims,
        record: ChunkRecord,
        bytes: &[u8],
    ) -> Result<()> {
        let exclusive = self.cache().exclusive(&self.cached);
        // In place the old bytes are gone with the first new one; elsewhere they count until then.
        if table.is_in_place() {
            exclusive.discard(key);
        }
        let address = table.reserve(key, record)?;
        let write = WriteOp { offset: address, bytes };
        if let Err(error) = table.medium().put(&mut [write]) {
            table.cancel(address);
            return Err(error);
        }
        exclusive.discard(key);
        table.enter(address)
    }

    /// Writes back what the cache has changed, and keeps it so until the answer is dropped.
    pub(super) fn written_back(
        &self,
    ) -> Result<Option<Exclusive<'_, crate::layout::DatasetLayout>>> {
        if !self.medium.writable() {
            return Ok(None);
        }
        let exclusive = self.cache().exclusive(&self.cached);
        exclusive.flush(false)?;
        Ok(Some(exclusive))
    }

    fn chunks(&self) -> Result<&ChunkTable> {
        if let Storage::Unreadable(reason) = &self.layout.storage {
            return Err(Error::Unsupported(reason.clone()));
        }
        let none = || Error::Invalid("the dataset is not stored in chunks".into());
        self.layout.table().ok_or_else(none)
    }

    /// The chunk whose first cell is at `offset`.
    fn chunk_key(&self, offset: &[u64]) -> Result<Dims> {
        let (dims, chunk) = (self.dims(), self.layout.geometry.chunk());
        if offset.len() != dims.len() {
            return Err(Error::Invalid(format!(
                "{} coordinate(s) of a chunk in a dataset of {} dimension(s)",
                offset.len(),
                dims.len()
            )));
        }
        let mut axes = offset.iter().zip(&dims).zip(chunk);
        if axes.any(|((&at, &extent), &side)| at >= extent || !at.is_multiple_of(side)) {
            return Err(Error::Invalid(format!(
                "no chunk of {chunk:?} begins at {offset:?} in a shape of {dims:?}"
            )));
        }
        Ok(offset.iter().zip(chunk).map(|(at, side)| at / side).collect())
    }
}
