//! Moving chunks to free space before them, so that the file can be cut.

use super::ChunkTable;
use pumice_format::index::ChunkRecord;
use pumice_medium::Medium;
use pumice_medium::Result;
use pumice_medium::{DataKind, MetadataIo};
use pumice_space::Dims;
use pumice_structures::index::{ChunkIndex, IndexKind};

impl ChunkTable {
    /// Moves chunks to free space before them, as far as there is such, and makes the index anew if it may lie
    /// behind them. Says whether any was moved. Changes are held back, and all is committed.
    pub fn move_down(&self) -> Result<bool> {
        let all = self.all()?;
        let mut index = self.index();
        let (kind, medium) = (index.kind(), &*self.medium);
        let last = all.iter().map(|(_, record)| record.address).max().unwrap_or_default();
        let stays = index.commit(medium)? < last && !medium.has_refused_early();
        if kind != IndexKind::Implicit && stays {
            return self.move_each(&mut index, all);
        }
        // As the layout message says it, which stays.
        let (parameters, format) = (index.parameters(), *index.format());
        let new = ChunkIndex::create_with(kind, parameters, format, index.shape().clone());
        let mut new = new.or_else(|_| ChunkIndex::create(kind, format, index.shape().clone()))?;
        let mut moved = Vec::new();
        let result = match (kind, all.first()) {
            (_, None) => return Ok(false),
            (IndexKind::Implicit, Some((_, first))) => {
                let length = first.size.saturating_mul(all.len() as u64);
                if !medium.has_raw_hole_before(first.address, length) {
                    return Ok(false);
                }
                new.allocate(medium).and_then(|()| copy_slots(medium, &all, &mut new))
            }
            _ => self.copy_chunks(&all, &mut new, &mut moved).map(|()| !moved.is_empty()),
        };
        if !matches!(result, Ok(true)) {
            // What was taken for the copies is given back.
            moved.iter().for_each(|(_, at, size)| medium.free_raw(*at, *size));
            new.delete(medium)?;
            return result;
        }
        let mut old = std::mem::replace(&mut *index, new);
        moved.iter().for_each(|(old, _, size)| medium.free_raw(*old, *size));
        // Nothing names the old index any more: if it cannot be read, its space is lost, and nothing else.
        let _ = old.delete(medium);
        Ok(true)
    }

    /// Moves chunks that were written elsewhere than they had been to free space before them, the last ones
    /// first, as far as there is such. Says whether any was moved. Changes are held back, and all is
    /// committed.
    pub fn move_displaced(&self) -> Result<bool> {
        let keys: Vec<Dims> = std::mem::take(&mut *self.displaced()).into_iter().collect();
        let (mut index, medium) = (self.index(), &*self.medium);
        // Where places follow from coordinates, nothing is written elsewhere.
        let mut found = Vec::with_capacity(keys.len());
        for key in keys {
            found.extend(index.lookup(medium, &key)?.map(|record| (key, record)));
        }
        self.move_each(&mut index, found)
    }

    /// Moves these chunks to free space before them; says whether any was moved.
    fn move_each(
        &self,
        index: &mut ChunkIndex,
        mut found: Vec<(Dims, ChunkRecord)>,
    ) -> Result<bool> {
        let medium = &*self.medium;
        found.sort_unstable_by_key(|(_, record)| std::cmp::Reverse(record.address));
        let mut moved = false;
        for (key, record) in found {
            let Some(address) = self.copy_down(&record)? else { continue };
            let new = ChunkRecord { address, ..record.clone() };
            if let Err(error) = index.insert(medium, &key, new) {
                medium.free_raw(address, record.size);
                return Err(error);
            }
            medium.free_raw(record.address, record.size);
            moved = true;
        }
        Ok(moved)
    }

    /// Copies a chunk to free space before it, if there is such.
    fn copy_down(&self, record: &ChunkRecord) -> Result<Option<u64>> {
        let (old, size, medium) = (record.address, record.size, &*self.medium);
        if !medium.has_raw_hole_before(old, size) {
            return Ok(None);
        }
        let address = medium.allocate_free(DataKind::Raw, size)?;
        // The hole may not be aligned as this has to be.
        let copied = match address < old {
            true => medium.copy(old, address, size).map(|()| Some(address)),
            false => Ok(None),
        };
        if !matches!(copied, Ok(Some(_))) {
            medium.free_raw(address, size);
        }
        copied
    }

    /// Copies chunks to free space before them, the last ones first; the new index names all. Notes old and
    /// new places and sizes of those that were moved.
    fn copy_chunks(
        &self,
        all: &[(Dims, ChunkRecord)],
        new: &mut ChunkIndex,
        moved: &mut Vec<(u64, u64, u64)>,
    ) -> Result<()> {
        let medium = &*self.medium;
        // The index first: the file cannot be cut before what does not find a place.
        for (key, record) in all {
            new.insert(medium, key, record.clone())?;
        }
        new.commit(medium)?;
        let mut all: Vec<_> = all.iter().collect();
        all.sort_unstable_by_key(|(_, record)| std::cmp::Reverse(record.address));
        for (key, record) in all {
            if let Some(address) = self.copy_down(record)? {
                moved.push((record.address, address, record.size));
                new.insert(medium, key, ChunkRecord { address, ..record.clone() })?;
            }
        }
        Ok(())
    }
}

/// Copies chunks to the places that they have in a new index, if these are before the old ones. Says whether
/// they are.
fn copy_slots(medium: &Medium, all: &[(Dims, ChunkRecord)], new: &mut ChunkIndex) -> Result<bool> {
    for (key, record) in all {
        let Some(place) = new.lookup(medium, key)? else { continue };
        if place.address > record.address {
            return Ok(false);
        }
        medium.copy(record.address, place.address, record.size)?;
    }
    Ok(true)
}
