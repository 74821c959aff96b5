//! Changing the extent of a dataset.
//!
//! A chunk that lies outside the new extent as a whole is deleted. One that the new edge cuts loses
//! its outside cells: cells that come back later must not have old values. Where partial edge chunks
//! are stored unfiltered, a chunk that becomes whole or partial is stored anew in its other form.
//! All other chunks stay as they are, in the cache and in the file.
//!
//! Two steps, so that a resize happens or does not: first every chunk that must change is written
//! in its new form to space that nothing refers to; only when that is done, index, extent and cache
//! change together.

use super::DatasetState;
use crate::layout::{Chunk, ChunkTable, DatasetLayout, Recoder, Storage, WriteRequest};
use crate::{Error, Result};
use pumice_cache::{Exclusive, Layout, Outcome, Part};
use pumice_format::index::ChunkRecord;
use pumice_space::{CellSet, Dims, Extent, UNLIMITED};
use pumice_store::WriteOp;
use std::sync::RwLockReadGuard;

/// What becomes of a chunk.
enum Fate {
    Same,
    Gone,
    /// Without these cells, and perhaps in another form.
    Cut(CellSet),
    /// In another form.
    Recoded,
}

/// Chunks that change, in their new form.
#[derive(Default)]
pub(super) struct Changes {
    gone: Vec<Dims>,
    /// With the address of the new form.
    pub(super) rewritten: Vec<(Dims, u64)>,
    /// Elements that go and refer to the global heap.
    dropped: Vec<u8>,
}

impl Changes {
    /// Gives back what was written for nothing.
    pub(super) fn cancel(&self, table: &ChunkTable) {
        self.rewritten.iter().for_each(|(_, address)| table.cancel(*address));
    }

    /// Lets the index name what was written; as far as it goes even if one fails.
    pub(super) fn enter(&self, table: &ChunkTable, change: &RwLockReadGuard<'_, ()>) -> Result<()> {
        let entered =
            self.rewritten.iter().map(|(_, address)| table.enter_during(change, *address));
        entered.fold(Ok(()), Result::and)
    }
}

impl DatasetState {
    /// Changes the extent to `dims`. On an error the extent is the old one, and no cell has changed.
    pub fn resize(&self, dims: &[u64]) -> Result<()> {
        self.medium().require_writable()?;
        self.check_resize(dims)?;
        let _alone = self.gate_exclusively();
        if self.dims().as_slice() == dims {
            return Ok(());
        }
        let Some(table) = self.layout.table() else { return self.move_end(dims) };
        let grows_only = self.dims().iter().zip(dims).all(|(old, new)| old <= new);
        if grows_only && !self.early && !self.recodes() {
            return self.grow(table, dims);
        }
        let exclusive = self.cache().exclusive(&self.cached);
        let mut changes = Changes::default();
        if let Err(error) = self.prepare(table, &exclusive, dims, &mut changes) {
            changes.cancel(table);
            return Err(error);
        }
        let dropped = std::mem::take(&mut changes.dropped);
        self.apply(table, &exclusive, dims, changes)?;
        if dropped.is_empty() { Ok(()) } else { self.discard(dropped) }
    }

    /// Changes the extent of elements that are elsewhere, which stay as they are.
    fn move_end(&self, dims: &[u64]) -> Result<()> {
        let geometry = &self.layout.geometry;
        let extent = Extent::with_max(dims, geometry.max_dims())?;
        let _change = self.medium().change();
        self.set_extent(&extent)?;
        geometry.set_dims(dims);
        Ok(())
    }

    /// Lets index and header follow an extent that leaves every chunk as it is, in the file and in
    /// the cache: a step of appending, which must not cost more the more chunks there are.
    fn grow(&self, table: &ChunkTable, dims: &[u64]) -> Result<()> {
        let geometry = &self.layout.geometry;
        let extent = Extent::with_max(dims, geometry.max_dims())?;
        let _change = self.medium().change();
        let (old, new) = (counts(&self.dims(), geometry.chunk()), counts(dims, geometry.chunk()));
        if old != new {
            table.index().resize(&new)?;
        }
        self.set_extent(&extent)?;
        geometry.set_dims(dims);
        Ok(())
    }

    /// Writes chunks that must change in their new form.
    fn prepare(
        &self,
        table: &ChunkTable,
        exclusive: &Exclusive<'_, DatasetLayout>,
        dims: &[u64],
        changes: &mut Changes,
    ) -> Result<()> {
        let old = self.dims();
        if self.early {
            self.fill_new(table, &old, dims, changes)?;
        }
        if !self.recodes() && !old.iter().zip(dims).any(|(old, new)| new < old) {
            return Ok(());
        }
        let stays = |key: &Dims| matches!(self.fate(key, dims), Ok(Fate::Same));
        let all_stay = table.all()?.iter().all(|(key, _)| stays(key));
        if all_stay && exclusive.resident_keys().iter().all(stays) {
            return Ok(());
        }
        exclusive.flush(false)?;
        let recoder = Recoder::new(&self.layout, dims)?;
        for (key, record) in table.all()? {
            let cells = match self.fate(&key, dims)? {
                Fate::Same => continue,
                Fate::Gone => {
                    self.drop_values(table, &key, record, dims, &mut changes.dropped)?;
                    changes.gone.push(key);
                    continue;
                }
                Fate::Cut(cells) => {
                    self.drop_values(table, &key, record.clone(), dims, &mut changes.dropped)?;
                    Some(cells)
                }
                Fate::Recoded => None,
            };
            match self.rewrite(table, &recoder, &key, record, cells)? {
                Some(address) => changes.rewritten.push((key, address)),
                None => changes.gone.push(key),
            }
        }
        Ok(())
    }

    /// Lists the elements of a chunk that refer to the global heap and lie outside of `dims`.
    fn drop_values(
        &self,
        table: &ChunkTable,
        key: &Dims,
        record: ChunkRecord,
        dims: &[u64],
        dropped: &mut Vec<u8>,
    ) -> Result<()> {
        if !self.uses_global_heap() {
            return Ok(());
        }
        let bytes = table.read(&record)?;
        let chunk = self.layout.decode(key, bytes, &self.layout.stored(record), Part::All)?;
        let (Chunk::Dense(cells), Some(outside)) =
            (chunk, self.layout.geometry.outside_of(key, dims)?)
        else {
            return Ok(());
        };
        let size = self.layout.geometry.element_size();
        for run in outside.runs() {
            let start = run.start as usize * size;
            let end = start + run.len as usize * size;
            dropped.extend_from_slice(cells.get(start..end).unwrap_or_default());
        }
        Ok(())
    }

    /// Writes a chunk without `cells` in the form for the new extent, to space that the index does
    /// not name yet; `None` if nothing is left of it.
    fn rewrite(
        &self,
        table: &ChunkTable,
        recoder: &Recoder,
        key: &Dims,
        record: ChunkRecord,
        cells: Option<CellSet>,
    ) -> Result<Option<u64>> {
        let bytes = table.read(&record)?;
        let stored = self.layout.stored(record);
        let mut chunk: Chunk = self.layout.decode(key, bytes, &stored, Part::All)?;
        if let Some(cells) = cells
            && let Outcome::Delete =
                self.layout.gather(key, &mut chunk, &mut WriteRequest::Erase { cells })?
        {
            return Ok(None);
        }
        let encoded = recoder.encode(key, &chunk)?;
        let size = encoded.bytes.len() as u64;
        let address = table.reserve_elsewhere(key, ChunkRecord { size, ..encoded.tag })?;
        let write = WriteOp { offset: address, bytes: &encoded.bytes };
        table.medium().put(&mut [write]).inspect_err(|_| table.cancel(address))?;
        Ok(Some(address))
    }

    /// Lets index, cache and header follow the new extent.
    fn apply(
        &self,
        table: &ChunkTable,
        exclusive: &Exclusive<'_, DatasetLayout>,
        dims: &[u64],
        changes: Changes,
    ) -> Result<()> {
        let geometry = &self.layout.geometry;
        let extent = Extent::with_max(dims, geometry.max_dims())?;
        let change = self.medium().change();
        // As far as it goes even if one fails: each chunk is whole in itself.
        for (key, _) in &changes.rewritten {
            exclusive.discard(key);
        }
        let mut result = changes.enter(table, &change);
        for key in changes.gone {
            exclusive.discard(&key);
            result = result.and(table.remove_during(&change, &key));
        }
        // Only in the cache, and unchanged: made by reading where nothing is stored.
        for key in exclusive.resident_keys() {
            if !matches!(self.fate(&key, dims), Ok(Fate::Same)) {
                exclusive.discard(&key);
            }
        }
        table.index().resize(&counts(dims, geometry.chunk()))?;
        self.set_extent(&extent)?;
        geometry.set_dims(dims);
        result
    }

    /// What becomes of a chunk if the extent changes to `dims`.
    fn fate(&self, key: &Dims, dims: &[u64]) -> Result<Fate> {
        let geometry = &self.layout.geometry;
        let Some(outside) = geometry.outside_of(key, dims)? else {
            let was_partial = geometry.is_partial(key);
            return Ok(if was_partial && self.recodes() { Fate::Recoded } else { Fate::Same });
        };
        if outside.is_full() {
            return Ok(Fate::Gone);
        }
        let old = self.dims();
        let grows_only = old.iter().zip(dims).all(|(old, new)| old <= new);
        match geometry.outside_of(key, &old)? {
            // It loses no cell that it had.
            Some(known) if grows_only || known == outside => Ok(Fate::Same),
            _ => Ok(Fate::Cut(outside)),
        }
    }

    /// Whether chunks at the edge have a form of their own.
    fn recodes(&self) -> bool {
        match &self.layout.storage {
            Storage::Dense(dense, _) => dense.dont_filter_partial() && !dense.pipeline().is_empty(),
            Storage::Sparse(sparse, _) => sparse.dont_filter_partial(),
            Storage::VariableLength(layout, _) => layout.dont_filter_partial(),
            Storage::Contiguous(_)
            | Storage::External(_)
            | Storage::Virtual(_)
            | Storage::Unreadable(_) => false,
        }
    }

    fn check_resize(&self, dims: &[u64]) -> Result<()> {
        let max = self.layout.geometry.max_dims();
        if dims.len() != max.len() {
            return Err(Error::Invalid(format!(
                "the dataset has {} dimension(s), but {} were given",
                max.len(),
                dims.len()
            )));
        }
        let too_large = dims.iter().zip(max).any(|(&new, &max)| max != UNLIMITED && new > max);
        if too_large {
            return Err(Error::Invalid(format!("{dims:?} is beyond the maximum of {max:?}")));
        }
        match &self.layout.storage {
            Storage::Contiguous(_) | Storage::Unreadable(_) => {
                Err(Error::Invalid("only chunked datasets can change their extent".into()))
            }
            Storage::Virtual(sources) if sources.has_no_end() => {
                let what = "the extent of a virtual dataset that follows its sources";
                Err(Error::Invalid(what.into()))
            }
            Storage::Virtual(sources) => sources.check_extent(dims),
            Storage::External(_) => Ok(()),
            Storage::Dense(..) | Storage::Sparse(..) | Storage::VariableLength(..) => Ok(()),
        }
    }
}

fn counts(dims: &[u64], chunk: &[u64]) -> Vec<u64> {
    dims.iter().zip(chunk).map(|(&length, &chunk)| length.div_ceil(chunk.max(1))).collect()
}
