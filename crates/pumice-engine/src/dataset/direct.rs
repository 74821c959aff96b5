//! Direct chunk I/O: stored chunks looked up, read and written without filters.
//!
//! Each chunk is a request to the cache. A dirty chunk is written back before its stored bytes are
//! read, and a chunk that is replaced is dropped from the cache. Only a list of all chunks holds
//! back other requests of the dataset, and in a file open for reading not even that.

use super::DatasetState;
use crate::{Error, Result};
use pumice_cache::Exclusive;
use pumice_format::index::ChunkRecord;
use pumice_layout::{ChunkTable, Filled, NOWHERE, Pages, Storage};
use pumice_space::{Dims, Selection};

/// The stored chunks of a dataset, some of which are in memory at a time.
pub struct StoredChunks {
    pages: Pages,
    ready: std::vec::IntoIter<(Dims, ChunkRecord)>,
}

impl DatasetState {
    /// The record of the chunk whose first cell is at `offset`, if it is stored.
    pub fn chunk_record(&self, offset: &[u64]) -> Result<Option<ChunkRecord>> {
        let _no_resize = self.gate();
        self.chunks()?;
        let found = self.cache().find_stored(&self.cached, &self.chunk_key(offset)?)?;
        Ok(found.map(|stored| stored.tag))
    }

    /// All stored chunks in row-major order, for [`next_stored`](Self::next_stored).
    pub fn stored_chunks(&self) -> Result<StoredChunks> {
        let _no_resize = self.gate();
        let table = self.chunks()?;
        let _still = self.written_back()?;
        let pages = Pages::new(table, self.grid(&self.dims())?)?;
        Ok(StoredChunks { pages, ready: Vec::new().into_iter() })
    }

    /// The next stored chunk: its first cell and its record. Chunks that are stored or removed
    /// meanwhile may be listed or not.
    pub fn next_stored(&self, chunks: &mut StoredChunks) -> Result<Option<(Dims, ChunkRecord)>> {
        loop {
            if let Some(next) = chunks.ready.next() {
                return Ok(Some(next));
            }
            let _no_resize = self.gate();
            let table = self.chunks()?;
            let _still = self.written_back()?;
            let Some(keys) = chunks.pages.next(table)? else { return Ok(None) };
            let found = keys.iter().zip(table.lookup(&keys)?);
            let found = found.filter_map(|(key, record)| Some((self.origin(key), record?)));
            chunks.ready = found.collect::<Vec<_>>().into_iter();
        }
    }

    /// Calls `visit` with the size and the first cell of every stored chunk, in the order of the index.
    pub fn for_each_chunk(&self, mut visit: impl FnMut(Dims, u64) -> Result<()>) -> Result<()> {
        let _no_resize = self.gate();
        let table = self.chunks()?;
        let _still = self.written_back()?;
        let grid = self.grid(&self.dims())?;
        table.for_each(|some| {
            // In an implicit index, chunks beyond the present extent have an address, too.
            let inside = some.into_iter().filter(|(key, _)| grid.contains_chunk(key));
            inside.into_iter().try_for_each(|(key, record)| visit(self.origin(&key), record.size))
        })
    }

    /// Calls `visit` with the first cell of every stored chunk, in the order of the index, after
    /// dirty chunks are written. The dataset may be read and changed meanwhile.
    pub(super) fn for_each_stored(&self, mut visit: impl FnMut(Dims) -> Result<()>) -> Result<()> {
        let table = self.chunks()?;
        let grid = {
            let _no_resize = self.gate();
            drop(self.written_back()?);
            self.grid(&self.dims())?
        };
        table.for_each(|some| {
            let inside = some.into_iter().filter(|(key, _)| grid.contains_chunk(key));
            inside.into_iter().try_for_each(|(key, _)| visit(self.origin(&key)))
        })
    }

    /// The number of stored chunks, and their bytes.
    pub fn chunk_totals(&self) -> Result<(u64, u64)> {
        let (mut count, mut bytes) = (0, 0u64);
        self.for_each_chunk(|_, size| {
            (count, bytes) = (count + 1, bytes.saturating_add(size));
            Ok(())
        })?;
        Ok((count, bytes))
    }

    /// Calls `visit` with the grid coordinates of the chunks that may have defined cells, in row-major order. Dirty
    /// chunks are not written.
    pub fn for_each_in_use(&self, mut visit: impl FnMut(Dims)) -> Result<()> {
        let _no_resize = self.gate();
        let (table, grid) = (self.chunks()?, self.grid(&self.dims())?);
        let mut filled = Filled::new(table, grid, self.cache().changed_keys(&self.cached)?)?;
        while let Some(some) = filled.next(table)? {
            some.into_iter().for_each(&mut visit);
        }
        Ok(())
    }

    /// The stored chunk with number `index` among those that a selection touches, in row-major
    /// order: its first cell and its record. The place in the list of chunks is kept until a chunk changes
    /// or one behind the last is asked for.
    pub fn nth_chunk(
        &self,
        selection: &Selection,
        index: usize,
    ) -> Result<Option<(Dims, ChunkRecord)>> {
        let _no_resize = self.gate();
        let (table, dims) = (self.chunks()?, self.dims());
        let changed = self.medium.writable() && self.cache().dataset_stats(&self.cached).dirty > 0;
        let kept = table.kept_listing().filter(|listing| !changed && listing.is_of(&dims));
        let found = match kept {
            Some(listing) => listing.nth(table, selection, index)?,
            None => {
                let _still = self.written_back()?;
                table.list_and_keep(self.grid(&dims)?)?.nth(table, selection, index)?
            }
        };
        if found.is_none() {
            table.let_listing_go();
        }
        Ok(found.map(|(key, record)| (self.origin(&key), record)))
    }

    /// The first cell of a chunk.
    fn origin(&self, key: &Dims) -> Dims {
        let axes = key.iter().zip(self.layout.geometry.chunk());
        axes.map(|(axis, side)| axis.saturating_mul(*side)).collect()
    }

    /// The stored bytes of a chunk, and its record, if it is stored.
    pub fn read_chunk(&self, offset: &[u64]) -> Result<Option<(Vec<u8>, ChunkRecord)>> {
        let _no_resize = self.gate();
        self.chunks()?;
        let found = self.cache().read_stored(&self.cached, &self.chunk_key(offset)?)?;
        Ok(found.map(|(stored, bytes)| (bytes, stored.tag)))
    }

    /// Stores `bytes` as the chunk at `offset`, which they must decode to with the filters that
    /// `filter_mask` does not skip. Only for dense chunks.
    pub fn write_chunk(&self, offset: &[u64], bytes: &[u8], filter_mask: u32) -> Result<()> {
        self.begin_write()?;
        let _no_resize = self.gate();
        let key = self.chunk_key(offset)?;
        self.check_reach(&Selection::block(offset, &vec![1; offset.len()])?, &self.dims())?;
        let Storage::Dense(dense) = &self.layout.storage else {
            return Err(Error::WrongKind(
                "only dense chunks are stored with one filter mask".into(),
            ));
        };
        dense.check_stored(&key, bytes.len() as u64, filter_mask)?;
        let record = ChunkRecord { filter_mask, ..ChunkRecord::dense(0, bytes.len() as u64) };
        self.cache().write_stored(&self.cached, &key, bytes, record)
    }

    /// Stores sections as the structured chunk at `offset`. The record says how they lie in `bytes`.
    /// They must decode, and define cells inside the extent.
    pub fn write_sections(&self, offset: &[u64], record: ChunkRecord, bytes: &[u8]) -> Result<()> {
        self.begin_write()?;
        let _no_resize = self.gate();
        let key = self.chunk_key(offset)?;
        self.check_reach(&Selection::block(offset, &vec![1; offset.len()])?, &self.dims())?;
        // Whatever chunk the record may have been of, these bytes get a place of their own.
        let record = ChunkRecord { address: NOWHERE, ..record };
        match &self.layout.storage {
            Storage::Sparse(sparse) => sparse.check_stored(&key, bytes, &record)?,
            Storage::VariableLength(layout) => layout.check_stored(&key, bytes, &record)?,
            _ => {
                return Err(Error::WrongKind(
                    "only structured chunks are stored by sections".into(),
                ));
            }
        }
        self.cache().write_stored(&self.cached, &key, bytes, record)
    }

    /// Fails if the record of a structured chunk states another length of the decoded locations
    /// than they have. Reads do not use that length. A chunk that is not stored passes.
    pub fn check_locations(&self, offset: &[u64]) -> Result<()> {
        let Some((bytes, record)) = self.read_chunk(offset)? else { return Ok(()) };
        let key = self.chunk_key(offset)?;
        match &self.layout.storage {
            Storage::Sparse(sparse) => sparse.check_locations(&key, &bytes, &record),
            Storage::VariableLength(layout) => layout.check_locations(&key, &bytes, &record),
            _ => Ok(()),
        }
    }

    /// Writes back dirty chunks, and keeps the dataset clean until the answer is dropped.
    pub(super) fn written_back(&self) -> Result<Option<Exclusive<'_, pumice_layout::Hdf5>>> {
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
        let none = || Error::WrongKind("the dataset is not stored in chunks".into());
        self.layout.table().ok_or_else(none)
    }

    /// The chunk whose first cell is at `offset`.
    fn chunk_key(&self, offset: &[u64]) -> Result<Dims> {
        let (dims, chunk) = (self.dims(), self.layout.geometry.chunk());
        if offset.len() != dims.len() {
            return Err(Error::RankMismatch(format!(
                "{} coordinate(s) of a chunk in a dataset of {} dimension(s)",
                offset.len(),
                dims.len()
            )));
        }
        let mut axes = offset.iter().zip(&dims).zip(chunk);
        if axes.any(|((&at, &extent), &side)| at >= extent || !at.is_multiple_of(side)) {
            return Err(Error::OutOfBounds(format!(
                "no chunk of {chunk:?} begins at {offset:?} in a shape of {dims:?}"
            )));
        }
        Ok(offset.iter().zip(chunk).map(|(at, side)| at / side).collect())
    }
}
