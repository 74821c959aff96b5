//! Early and late allocation: all space is taken, and filled, when a dataset is made or grows, or by
//! the first write.

use super::DatasetState;
use crate::{Error, Result};
use pumice_cache::{Encoded, Exclusive, Layout};
use pumice_format::index::ChunkRecord;
use pumice_layout::{ChunkTable, Hdf5, NewChunk, Room, Storage};
use pumice_space::Dims;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::{Arc, PoisonError};

/// Chunks that are written in one call and entered in the index together.
const TOGETHER: usize = 256;

impl DatasetState {
    /// Takes the space of a new dataset, if it shall have it from the start.
    pub(super) fn allocate_early(&self) -> Result<()> {
        if self.early { self.allocate_all() } else { Ok(()) }
    }

    /// Before a write: takes all space if this is when it is taken.
    pub(super) fn begin_write(&self) -> Result<()> {
        self.medium.require_writable()?;
        let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        if *late {
            // A shrinking extent must not leave chunks outside.
            let _no_resize = self.gate();
            self.allocate_all()?;
            *late = false;
        }
        Ok(())
    }

    pub(super) fn allocate_all(&self) -> Result<()> {
        if self.null {
            return Ok(());
        }
        let table = match &self.layout.storage {
            Storage::Contiguous(contiguous) => return contiguous.allocate(true),
            Storage::Dense(dense) => dense.table(),
            _ => {
                // Undefined cells take no space, but the index exists.
                let Some(table) = self.layout.table() else { return Ok(()) };
                return table.index().place(&*self.medium);
            }
        };
        let exclusive = self.cache().exclusive(&self.cached);
        table.index().allocate(&*self.medium)?;
        let dims = self.dims();
        let none = Dims::from_elem(0, dims.len());
        self.fill_new(table, &exclusive, &none, &dims)
    }

    /// Stores chunks of the fill value where the grid `dims` has chunks and `old` has none, in
    /// portions: all of them or none. The cache counts the memory and keeps none of the chunks.
    pub(super) fn fill_new(
        &self,
        table: &ChunkTable,
        exclusive: &Exclusive<'_, Hdf5>,
        old: &[u64],
        dims: &[u64],
    ) -> Result<()> {
        let mut entered = 0;
        let filled = self.fill_each(table, exclusive, old, dims, &mut entered);
        if filled.is_err() {
            self.take_back_new(table, old, dims, entered);
        }
        filled
    }

    /// Takes back the first `count` of the chunks that [`fill_new`](Self::fill_new) has stored, as far as it can be.
    pub(super) fn take_back_new(&self, table: &ChunkTable, old: &[u64], dims: &[u64], count: u64) {
        let (chunk, mut left) = (self.layout.geometry.chunk(), count);
        // It ends with the last one, by an error that tells nothing.
        let _ = for_each_new(&counts(old, chunk), &counts(dims, chunk), &mut |key| {
            left = left.checked_sub(1).ok_or_else(|| Error::Internal("all are gone".into()))?;
            let _ = table.remove(key);
            Ok(())
        });
    }

    fn fill_each(
        &self,
        table: &ChunkTable,
        exclusive: &Exclusive<'_, Hdf5>,
        old: &[u64],
        dims: &[u64],
        entered: &mut u64,
    ) -> Result<()> {
        let Storage::Dense(dense) = &self.layout.storage else { return Ok(()) };
        let geometry = Arc::new(self.layout.geometry.with_dims(dims));
        let dense = dense.with_geometry(geometry.clone());
        // One chunk, and its two forms.
        let _room = exclusive.room(geometry.chunk_bytes().saturating_mul(3))?;
        let empty = dense.new_chunk(&Dims::from_elem(0, dims.len()), true)?;
        // Chunks at the edge can have another form: one of each.
        let mut forms = [None, None];
        let chunk = geometry.chunk();
        let mut keys = [Vec::new(), Vec::new()];
        for_each_new(&counts(old, chunk), &counts(dims, chunk), &mut |key| {
            let which = usize::from(geometry.is_partial(key));
            if forms[which].is_none() {
                forms[which] = Some(dense.encode(key, &empty)?);
            }
            keys[which].push(key.clone());
            if keys.iter().map(Vec::len).sum::<usize>() < TOGETHER {
                return Ok(());
            }
            store_forms(table, &forms, &mut keys, entered)
        })?;
        store_forms(table, &forms, &mut keys, entered)
    }
}

/// Stores each of two forms as the chunks that have it, and forgets these.
fn store_forms(
    table: &ChunkTable,
    forms: &[Option<Encoded<ChunkRecord>>; 2],
    keys: &mut [Vec<Dims>; 2],
    entered: &mut u64,
) -> Result<()> {
    let pairs = forms.iter().zip(&*keys);
    let pairs = pairs.filter_map(|(form, keys)| Some((form.as_ref()?, keys)));
    let chunks: Vec<_> = pairs
        .flat_map(|(form, keys)| keys.iter().map(move |key| NewChunk::new(key, form)))
        .collect();
    let places = table.place(&chunks, Room::Usual)?;
    *entered += places.len() as u64;
    table.enter_all(&places)?;
    keys.iter_mut().for_each(Vec::clear);
    Ok(())
}

fn counts(dims: &[u64], chunk: &[u64]) -> Dims {
    dims.iter().zip(chunk).map(|(&length, &side)| length.div_ceil(side.max(1))).collect()
}

/// Calls `visit` for every chunk that the grid `new` has and `old` has not: for each axis, new
/// coordinates along it and old ones along the axes before it.
fn for_each_new(old: &Dims, new: &Dims, visit: &mut impl FnMut(&Dims) -> Result<()>) -> Result<()> {
    for axis in 0..new.len() {
        let range = |(at, (&new, &old)): (usize, (&u64, &u64))| match at.cmp(&axis) {
            Ordering::Less => 0..old.min(new),
            Ordering::Equal => old..new,
            Ordering::Greater => 0..new,
        };
        let ranges: Vec<Range<u64>> = new.iter().zip(old).enumerate().map(range).collect();
        if ranges.iter().any(Range::is_empty) {
            continue;
        }
        let mut key: Dims = ranges.iter().map(|range| range.start).collect();
        loop {
            visit(&key)?;
            let Some(at) = (0..key.len()).rev().find(|&at| key[at] + 1 < ranges[at].end) else {
                break;
            };
            key[at] += 1;
            key.iter_mut().zip(&ranges).skip(at + 1).for_each(|(at, range)| *at = range.start);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_new_chunk_is_visited_once() {
        for (old, new) in [([0, 0], [2, 3]), ([2, 3], [3, 4]), ([1, 5], [3, 2]), ([2, 2], [2, 2])] {
            let mut seen = Vec::new();
            let (old, new) = (Dims::from_slice(&old), Dims::from_slice(&new));
            for_each_new(&old, &new, &mut |key| {
                seen.push(key.to_vec());
                Ok(())
            })
            .unwrap();
            seen.sort();
            let all = (0..new[0]).flat_map(|row| (0..new[1]).map(move |column| vec![row, column]));
            let expected: Vec<_> = all.filter(|key| key[0] >= old[0] || key[1] >= old[1]).collect();
            assert_eq!(seen, expected);
        }
    }
}
