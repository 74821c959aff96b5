//! Changing the extent of a dataset.
//!
//! A chunk outside the new extent is deleted. A chunk that the new edge cuts loses its cells
//! outside: cells that come back later must not have old values. Where partial edge chunks are
//! stored without filters, a chunk that becomes whole or partial is stored in its other form. All
//! other chunks stay in the cache and in the file.
//!
//! A resize happens or does not. First every chunk that must change is written in its new form to
//! space that nothing refers to (`resize/rewriting.rs`). Then index, extent and cache change
//! together. Changes in memory outside the new extent are never written. Only removing chunks from
//! the index can fail in the second step: then the extent stays, removed chunks read as the fill
//! value, and the resize can be repeated.
//!
//! A resize that changes very many chunks enters those that the new edge cuts in the index in
//! portions, before the extent changes. If it fails then, cells outside the new extent may be gone. Chunks whose form
//! fits only the new extent are entered when it changes: until then, what is to be known of them waits in the file
//! (`resize/aside.rs`).
//!
//! A resize costs what it changes: growing looks at the chunks along the old edge, shrinking at
//! those that the new edge cuts and those behind it, or at all stored chunks if those are fewer.
//!
//! Other writers leave cells beyond the extent in sparse chunks at the edge. Reads skip them.
//! Before the first growth along an axis, such chunks are stored without them.

mod aside;
mod rewriting;

use super::DatasetState;
use crate::{Error, Result};
use aside::Aside;
use pumice_cache::{ChunkMemory, Exclusive};
use pumice_format::index::ChunkRecord;
use pumice_layout::{ChunkTable, Hdf5, Storage};
use pumice_space::{Dims, Extent, Selection, UNLIMITED};
use rewriting::{Affected, Rewriting};
use std::cmp::Ordering::{Greater, Less};
use std::collections::BTreeSet;
use std::sync::RwLockReadGuard;
use std::sync::atomic::Ordering;

/// Chunks that are looked up at a time.
const TOGETHER: usize = 1 << 12;

/// Chunks along an edge that are looked up one by one.
const LONGEST_BORDER: u64 = 1 << 16;

/// What a resize does with a chunk.
pub(super) enum Fate {
    Same,
    Gone,
    /// Removes these cells, and perhaps changes the form.
    Cut(Selection),
    /// In another form.
    Recoded,
    /// Removes cells beyond the present extent, if it has any.
    Masked,
}

/// Chunks that change, in their new form.
#[derive(Default)]
pub(super) struct Changes {
    gone: Vec<Dims>,
    /// Rewritten chunks with their new addresses.
    pub(super) rewritten: Vec<(Dims, u64)>,
    /// Elements that go and refer to the global heap.
    dropped: Vec<u8>,
    /// Whether there are unlisted chunks behind the new edge.
    sweep: bool,
    /// More of all of these, if they are very many.
    aside: Option<Asides>,
}

/// Chunks that change and elements that go, in the file.
struct Asides {
    rank: usize,
    chunks: Aside,
    dropped: Aside,
}

impl Changes {
    /// Gives back the space of rewritten chunks that are not used.
    pub(super) fn cancel(&self, table: &ChunkTable) {
        self.rewritten.iter().for_each(|(_, address)| table.cancel(*address));
        if let Some(aside) = &self.aside {
            // What cannot be read any more stays taken, and nothing refers to it.
            let _ = aside.chunks.for_each_chunk(aside.rank, |_, record| {
                record.into_iter().for_each(|record| table.cancel_placed(&record));
                Ok(())
            });
        }
    }

    /// Puts all that is known aside.
    fn put_aside(&mut self, table: &ChunkTable, rank: usize) -> Result<()> {
        let aside = || Aside::new(table.medium());
        let new = || Asides { rank, chunks: aside(), dropped: aside() };
        let aside = self.aside.get_or_insert_with(new);
        for (_, address) in &self.rewritten {
            if let Some((key, record)) = table.take_placed(*address) {
                aside.chunks.push_chunk(&key, Some(&record))?;
            }
        }
        self.rewritten.clear();
        self.gone.drain(..).try_for_each(|key| aside.chunks.push_chunk(&key, None))?;
        aside.dropped.push(&std::mem::take(&mut self.dropped))
    }

    /// Calls `visit` with the chunks that were put aside.
    fn for_each_aside(
        &self,
        visit: impl FnMut(Dims, Option<ChunkRecord>) -> Result<()>,
    ) -> Result<()> {
        match &self.aside {
            Some(aside) => aside.chunks.for_each_chunk(aside.rank, visit),
            None => Ok(()),
        }
    }

    /// Enters rewritten chunks in the index, all that it can. Returns the first error with the
    /// chunks that were not entered.
    pub(super) fn enter(
        &self,
        table: &ChunkTable,
        change: &RwLockReadGuard<'_, ()>,
    ) -> (Result<()>, Vec<Dims>) {
        let (mut result, mut left) = (Ok(()), Vec::new());
        for (key, address) in &self.rewritten {
            if let Err(error) = table.enter_during(change, *address) {
                result = result.and(Err(error));
                left.push(key.clone());
            }
        }
        let read = self.for_each_aside(|key, record| {
            let Some(record) = record else { return Ok(()) };
            if let Err(error) = table.enter_placed(change, key.clone(), record) {
                if result.is_ok() {
                    result = Err(error);
                }
                left.push(key);
            }
            Ok(())
        });
        (result.and(read), left)
    }
}

impl DatasetState {
    /// Changes the extent to `dims`. On an error the extent is the old one, no cell of the new extent has
    /// changed, and the call can be repeated. Cells that were to go may be gone: where the places of
    /// chunks follow from their coordinates, since a chunk has no other place there, and where the index
    /// failed half way.
    pub fn resize(&self, dims: &[u64]) -> Result<()> {
        self.medium().require_writable()?;
        self.check_resize(dims)?;
        self.holds.wait();
        let _reading = self.heap.reading();
        let _alone = self.gate_exclusively();
        if self.dims().as_slice() == dims {
            return Ok(());
        }
        if self.dims().iter().zip(dims).any(|(old, new)| new < old) {
            self.medium().refuse_in_swmr("no dataset can become smaller")?;
        }
        let resized = self.resize_alone(dims);
        // After the extent: who counted before and took the old one finds another number.
        self.resizes.fetch_add(1, Ordering::Release);
        resized
    }

    /// Resizes while no request of the dataset runs.
    fn resize_alone(&self, dims: &[u64]) -> Result<()> {
        if self.dims().iter().zip(dims).any(|(old, new)| new < old) {
            self.forget_overwritten();
        }
        let Some(table) = self.layout.table() else { return self.move_end(dims) };
        table.check_changeable()?;
        let grown = self.grown(dims);
        let grows_only = self.dims().iter().zip(dims).all(|(old, new)| old <= new);
        if grows_only && !self.early && !self.recodes() && !self.has_stale(grown) {
            return self.grow(table, dims);
        }
        let border = self.border(dims);
        let exclusive = self.cache().exclusive(&self.cached);
        let mut changes = Changes::default();
        let old = self.dims();
        let prepared = self.prepare(table, &exclusive, dims, border.as_deref(), &mut changes);
        if prepared.is_err() {
            changes.cancel(table);
        }
        let dropped = std::mem::take(&mut changes.dropped);
        let aside = changes
            .aside
            .as_mut()
            .map(|aside| std::mem::replace(&mut aside.dropped, Aside::new(table.medium())));
        let resized = prepared.and_then(|()| self.apply(table, &exclusive, dims, border, changes));
        if resized.is_err() && self.early && self.dims() == old {
            self.take_back_new(table, &old, dims, u64::MAX);
        }
        resized?;
        self.masked.fetch_or(grown, Ordering::Relaxed);
        let discard = |dropped: &[u8]| match dropped {
            [] => Ok(()),
            dropped => self.discard(dropped.to_vec()).map(drop),
        };
        discard(&dropped)?;
        aside.map_or(Ok(()), |aside| aside.for_each(discard))
    }

    /// Changes the extent of a dataset whose elements are elsewhere and stay.
    fn move_end(&self, dims: &[u64]) -> Result<()> {
        let geometry = &self.layout.geometry;
        let extent = Extent::with_max(dims, geometry.max_dims())?;
        let _change = self.medium().change();
        self.set_extent(&extent)?;
        geometry.set_dims(dims);
        Ok(())
    }

    /// Extends index and header where no chunk changes, in the file or in the cache. This is the
    /// step of appending, whose cost must not depend on the number of chunks.
    fn grow(&self, table: &ChunkTable, dims: &[u64]) -> Result<()> {
        let geometry = &self.layout.geometry;
        let extent = Extent::with_max(dims, geometry.max_dims())?;
        let _change = self.medium().change();
        let (old, new) = (counts(&self.dims(), geometry.chunk()), counts(dims, geometry.chunk()));
        self.set_extent(&extent)?;
        if old != new {
            table.index().resize(&new)?;
        }
        geometry.set_dims(dims);
        Ok(())
    }

    /// The axes that grow, a bit each.
    fn grown(&self, dims: &[u64]) -> u32 {
        let old = self.dims();
        let grows = old.iter().zip(dims).map(|(old, new)| u32::from(old < new));
        grows
            .enumerate()
            .fold(0, |all, (axis, grows)| all | grows.checked_shl(axis as u32).unwrap_or(0))
    }

    /// Whether chunks may have cells beyond the edge along one of these axes.
    fn has_stale(&self, axes: u32) -> bool {
        self.layout.is_sparse() && axes & !self.masked.load(Ordering::Relaxed) != 0
    }

    /// The chunks that may change with the extent `dims`: those that the old edge cuts along
    /// growing axes, those that the new edge cuts along others, and those behind it. `None` if
    /// listing the stored chunks is cheaper.
    fn border(&self, dims: &[u64]) -> Option<Vec<Dims>> {
        let (old, chunk) = (self.dims(), self.layout.geometry.chunk());
        let counts = counts(&old, chunk);
        let mut keys = Vec::new();
        for axis in 0..dims.len() {
            let (side, last) = (chunk[axis].max(1), counts[axis]);
            let first = match dims[axis].cmp(&old[axis]) {
                Less => dims[axis] / side,
                Greater if self.changes_when_grown(axis) => old[axis] / side,
                _ => continue,
            };
            let others = counts.iter().enumerate().filter(|(other, _)| *other != axis);
            let beside = others.map(|(_, &count)| count).try_fold(1, u64::checked_mul)?;
            let number = beside.checked_mul(last.saturating_sub(first))?;
            if number == 0 {
                continue;
            }
            if number.saturating_add(keys.len() as u64) > LONGEST_BORDER {
                return None;
            }
            for place in first..last {
                let mut key: Dims = counts.iter().map(|_| 0).collect();
                key[axis] = place;
                for _ in 0..beside {
                    keys.push(key.clone());
                    next_beside(&mut key, &counts, axis);
                }
            }
        }
        keys.sort_unstable();
        keys.dedup();
        Some(keys)
    }

    /// Whether chunks that the edge cuts along an axis may change when it moves outwards.
    fn changes_when_grown(&self, axis: usize) -> bool {
        self.recodes() || self.has_stale(1_u32.checked_shl(axis as u32).unwrap_or(0))
    }

    /// Writes chunks that must change in their new form.
    fn prepare(
        &self,
        table: &ChunkTable,
        exclusive: &Exclusive<'_, Hdf5>,
        dims: &[u64],
        border: Option<&[Dims]>,
        changes: &mut Changes,
    ) -> Result<()> {
        let old = self.dims();
        if self.early {
            self.fill_new(table, exclusive, &old, dims)?;
        }
        let shrinks = old.iter().zip(dims).any(|(old, new)| new < old);
        if !self.recodes() && !shrinks && !self.has_stale(self.grown(dims)) {
            return Ok(());
        }
        let rewriting = Rewriting::new(self, table, exclusive, dims)?;
        if let Some(border) = border {
            let affected = self.affected_of(table, exclusive, dims, border)?;
            return rewriting.run(affected, changes);
        }
        changes.sweep = true;
        // Resident chunks first: a chunk that is stored for the first time meanwhile is among them.
        let resident = exclusive.resident_keys();
        for keys in resident.chunks(TOGETHER) {
            self.prepare_some(&rewriting, keys, changes)?;
        }
        table.for_each(|some| {
            let keys = some.into_iter().map(|(key, _)| key);
            let keys: Vec<Dims> = keys.filter(|key| resident.binary_search(key).is_err()).collect();
            self.prepare_some(&rewriting, &keys, changes)
        })
    }

    /// Rewrites a portion of very many chunks. Those behind the new edge go when the extent
    /// changes. A rewritten chunk is entered in the index at once, unless its form fits only the
    /// new extent.
    fn prepare_some(
        &self,
        rewriting: &Rewriting<'_>,
        keys: &[Dims],
        changes: &mut Changes,
    ) -> Result<()> {
        let Rewriting { table, exclusive, dims, .. } = rewriting;
        let mut affected = self.affected_of(table, exclusive, dims, keys)?;
        affected.retain(|chunk| !matches!(chunk.fate, Fate::Gone) || self.uses_global_heap());
        rewriting.run(affected, changes)?;
        if self.recodes() {
            return changes.put_aside(table, dims.len());
        }
        let rewritten = changes.rewritten.iter().map(|(key, _)| key);
        let concerned: Vec<Dims> = rewritten.chain(&changes.gone).cloned().collect();
        let held = exclusive.hold(&concerned);
        let change = self.medium().change();
        for key in std::mem::take(&mut changes.gone) {
            table.remove_during(&change, &key)?;
        }
        let (entered, left) = changes.enter(table, &change);
        changes.rewritten.clear();
        held.discard(|key| !left.contains(key));
        drop(change);
        entered?;
        // No chunk refers to it any more.
        match std::mem::take(&mut changes.dropped) {
            dropped if dropped.is_empty() => Ok(()),
            dropped => self.discard(dropped).map(drop),
        }
    }

    /// The chunks among these that must change, stored or only in memory.
    fn affected_of(
        &self,
        table: &ChunkTable,
        exclusive: &Exclusive<'_, Hdf5>,
        dims: &[u64],
        keys: &[Dims],
    ) -> Result<Vec<Affected>> {
        let mut affected = Vec::new();
        for (key, record) in keys.iter().zip(table.lookup(keys)?) {
            let fate = self.fate(key, dims)?;
            let in_memory = exclusive.peek(key, |chunk| chunk.footprint().allocated);
            let bytes = match (record, in_memory) {
                (Some(record), _) => {
                    let stored = table.stored(record);
                    stored.len.saturating_mul(2).saturating_add(stored.decoded)
                }
                (None, Some(bytes)) => bytes.saturating_mul(2),
                (None, None) => continue,
            };
            if !matches!(fate, Fate::Same) {
                affected.push(Affected { key: key.clone(), fate, bytes });
            }
        }
        Ok(affected)
    }

    /// Applies the new extent to index, cache and header.
    fn apply(
        &self,
        table: &ChunkTable,
        exclusive: &Exclusive<'_, Hdf5>,
        dims: &[u64],
        border: Option<Vec<Dims>>,
        changes: Changes,
    ) -> Result<()> {
        let geometry = &self.layout.geometry;
        let (old, extent) = (self.dims(), Extent::with_max(dims, geometry.max_dims())?);
        // All that are concerned and in memory, whether changed or not.
        let mut keys = border.unwrap_or_else(|| exclusive.resident_keys());
        keys.retain(|key| !matches!(self.fate(key, dims), Ok(Fate::Same)));
        // A write-back of one of them must end before index and space change.
        let held = exclusive.hold(&keys);
        let change = self.medium().change();
        if let Err(error) = self.set_extent(&extent) {
            changes.cancel(table);
            return Err(error);
        }
        // Removed chunks first: if that fails half way, all others have their old form.
        let mut removed = BTreeSet::new();
        let mut going = self.remove_each(table, &change, &changes.gone, &keys, &mut removed);
        going = going.and_then(|()| {
            changes.for_each_aside(|key, record| match record {
                None => self.remove_each(table, &change, &[key], &keys, &mut removed),
                Some(_) => Ok(()),
            })
        });
        if going.is_ok() && changes.sweep {
            going = table.for_each(|some| {
                let gone = |key: &Dims| matches!(self.fate(key, dims), Ok(Fate::Gone));
                let some = some.into_iter().map(|(key, _)| key).filter(gone);
                let some: Vec<Dims> = some.collect();
                self.remove_each(table, &change, &some, &keys, &mut removed)
            });
        }
        if let Err(error) = going {
            held.discard(|key| removed.contains(key));
            changes.cancel(table);
            self.set_extent(&Extent::with_max(&old, geometry.max_dims())?)?;
            return Err(error);
        }
        // As far as it goes even if one fails: each chunk is whole in itself.
        let (result, left) = changes.enter(table, &change);
        // A chunk that could not be stored anew exists in memory only.
        held.discard(|key| !left.contains(key));
        table.index().resize(&counts(dims, geometry.chunk()))?;
        geometry.set_dims(dims);
        result
    }

    /// Removes chunks from the index, and notes which of them are in memory, in order.
    fn remove_each(
        &self,
        table: &ChunkTable,
        change: &RwLockReadGuard<'_, ()>,
        gone: &[Dims],
        in_memory: &[Dims],
        removed: &mut BTreeSet<Dims>,
    ) -> Result<()> {
        for key in gone {
            table.remove_during(change, key)?;
            if in_memory.binary_search(key).is_ok() {
                removed.insert(key.clone());
            }
        }
        Ok(())
    }

    /// What happens to a chunk when the extent becomes `dims`.
    fn fate(&self, key: &Dims, dims: &[u64]) -> Result<Fate> {
        let geometry = &self.layout.geometry;
        let stays = || match geometry.is_partial(key) {
            true if self.has_stale(self.grown(dims)) => Fate::Masked,
            _ => Fate::Same,
        };
        let Some(outside) = geometry.outside_of(key, dims)? else {
            let recoded = geometry.is_partial(key) && self.recodes();
            return Ok(if recoded { Fate::Recoded } else { stays() });
        };
        if outside.is_all() {
            return Ok(Fate::Gone);
        }
        let old = self.dims();
        let grows_only = old.iter().zip(dims).all(|(old, new)| old <= new);
        let (before, after) = (geometry.inside(key, &old), geometry.inside(key, dims));
        // Whether it loses no cell that it had.
        let keeps = geometry.is_partial(key) && (grows_only || before == after);
        Ok(if keeps { stays() } else { Fate::Cut(outside) })
    }

    /// Whether chunks at the edge are stored in another form.
    fn recodes(&self) -> bool {
        match &self.layout.storage {
            Storage::Dense(dense) => dense.dont_filter_partial() && !dense.pipeline().is_empty(),
            Storage::Sparse(sparse) => sparse.dont_filter_partial(),
            Storage::VariableLength(layout) => layout.dont_filter_partial(),
            Storage::Contiguous(_)
            | Storage::External(_)
            | Storage::Virtual
            | Storage::Unreadable(_) => false,
        }
    }

    fn check_resize(&self, dims: &[u64]) -> Result<()> {
        let max = self.layout.geometry.max_dims();
        if dims.len() != max.len() {
            return Err(Error::RankMismatch(format!(
                "the dataset has {} dimension(s), but {} were given",
                max.len(),
                dims.len()
            )));
        }
        let too_large = dims.iter().zip(max).any(|(&new, &max)| max != UNLIMITED && new > max);
        if too_large {
            return Err(Error::OutOfBounds(format!("{dims:?} is beyond the maximum of {max:?}")));
        }
        if let Some(sources) = &self.sources {
            if sources.has_no_end() {
                let what = "the extent of a virtual dataset with an unlimited mapping follows its sources and cannot be set";
                return Err(Error::Invalid(what.into()));
            }
            return sources.check_extent(dims);
        }
        match &self.layout.storage {
            Storage::Contiguous(_) | Storage::Virtual | Storage::Unreadable(_) => {
                Err(Error::WrongKind("only chunked datasets can change their extent".into()))
            }
            Storage::External(_) => Ok(()),
            Storage::Dense(..) | Storage::Sparse(..) | Storage::VariableLength(..) => Ok(()),
        }
    }
}

/// The next chunk in row-major order with the same coordinate along `axis`.
fn next_beside(key: &mut Dims, counts: &[u64], axis: usize) {
    for other in (0..counts.len()).rev().filter(|other| *other != axis) {
        key[other] += 1;
        if key[other] < counts[other] {
            return;
        }
        key[other] = 0;
    }
}

fn counts(dims: &[u64], chunk: &[u64]) -> Vec<u64> {
    dims.iter().zip(chunk).map(|(&length, &chunk)| length.div_ceil(chunk.max(1))).collect()
}
