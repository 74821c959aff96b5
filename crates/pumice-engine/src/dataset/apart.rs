//! Chunks that others encode and write: room for them, and their names in the index.
//!
//! Three steps: [`DatasetState::reserve_chunks`] finds room, whoever has the bytes writes them there, and
//! [`DatasetState::enter_chunks`] lets the index name them. The next commit brings them. Chunks of the
//! dataset leave the cache first.

use super::DatasetState;
use crate::{Error, Result};
use pumice_format::index::ChunkRecord;
use pumice_layout::{ChunkTable, NOWHERE, Room, Storage};
use pumice_space::Dims;

/// A chunk that somebody else has encoded.
#[derive(Clone, Debug)]
pub struct ApartChunk {
    /// Its coordinates in the grid.
    pub key: Dims,
    /// Its size, and its mask or sections.
    pub record: ChunkRecord,
    /// Whether it may be written where it is stored: only values differ, which are stored without filters.
    pub keeps: bool,
}

impl DatasetState {
    /// Whether the stored bytes of its chunks say all about their values: nothing is elsewhere in the file.
    pub fn is_self_contained(&self) -> bool {
        match &self.layout.storage {
            Storage::Dense(dense) => !dense.table().refers(),
            Storage::Sparse(_) | Storage::VariableLength(_) => true,
            _ => false,
        }
    }

    /// Finds room for chunks, or for none; gives the addresses, as offsets in the file, at which their bytes are
    /// to be written.
    ///
    /// A dense chunk without filters that is stored already keeps its place.
    pub fn reserve_chunks(&self, chunks: &[ApartChunk]) -> Result<Vec<u64>> {
        self.begin_write()?;
        let _no_resize = self.gate();
        let (table, grid) = (self.own_table()?, self.grid(&self.dims())?);
        if let Some(ApartChunk { key, .. }) =
            chunks.iter().find(|chunk| !grid.contains_chunk(&chunk.key))
        {
            let shape = self.dims();
            return Err(Error::OutOfBounds(format!("chunk {key:?} in a shape of {shape:?}")));
        }
        self.cache().exclusive(&self.cached).flush(true)?;
        let mut named = Vec::with_capacity(chunks.len());
        for chunk in chunks {
            let old = match chunk.keeps {
                true => table.lookup(std::slice::from_ref(&chunk.key))?.pop().flatten(),
                false => None,
            };
            let record = &chunk.record;
            let same =
                |old: &ChunkRecord| old.size == record.size && old.sections == record.sections;
            let new = || ChunkRecord { address: NOWHERE, ..record.clone() };
            named.push((&chunk.key, old.filter(same).unwrap_or_else(new)));
        }
        let places = table.reserve_all(named, Room::Free)?;
        Ok(places.into_iter().map(|place| place + self.medium.base()).collect())
    }

    /// Lets the index name chunks whose bytes are written, by the addresses that
    /// [`reserve_chunks`](Self::reserve_chunks) gave.
    pub fn enter_chunks(&self, addresses: &[u64]) -> Result<()> {
        let _no_resize = self.gate();
        let _alone = self.cache().exclusive(&self.cached);
        self.own_table()?.enter_all(&self.relative(addresses))
    }

    /// Gives up room that will not be used.
    pub fn cancel_chunks(&self, addresses: &[u64]) -> Result<()> {
        self.own_table()?.cancel_all(&self.relative(addresses));
        Ok(())
    }

    /// Removes chunks, given by their coordinates in the grid, and gives their space back.
    pub fn remove_chunks(&self, keys: &[Dims]) -> Result<()> {
        self.begin_write()?;
        let _no_resize = self.gate();
        let alone = self.cache().exclusive(&self.cached);
        alone.flush(true)?;
        keys.iter().try_for_each(|key| self.own_table()?.remove(key))
    }

    fn relative(&self, addresses: &[u64]) -> Vec<u64> {
        addresses.iter().map(|address| address.saturating_sub(self.medium.base())).collect()
    }

    fn own_table(&self) -> Result<&ChunkTable> {
        let table = self.layout.table().filter(|_| self.is_self_contained());
        table.ok_or_else(|| {
            Error::WrongKind("the dataset has no chunks that others could write".into())
        })
    }
}
