//! What the cache asks of the table of chunks: to find, to store and to remove them.

use super::{ChunkTable, Room};
use crate::{Hdf5, NOWHERE};
use pumice_cache::{
    Announced, ByteStore, ChunkStore, Fetch, Lookups, Placement, Put, StoreId, Stored,
};
use pumice_format::index::ChunkRecord;
use pumice_medium::Result;
use pumice_space::Dims;
use pumice_store::{ReadOp, WriteOp};
use std::ops::Range;

impl ChunkTable {
    /// What the cache needs to know of a stored chunk.
    pub fn stored(&self, record: ChunkRecord) -> Stored<ChunkRecord> {
        let (head, decoded) = match record.sections.as_slice() {
            [] => (record.size, self.geometry.chunk_bytes()),
            [_, values, ..] => (values.offset.min(record.size), structured_bytes(&record)),
            [_] => (record.size, record.size),
        };
        Stored::new(record.address, record.size, record).head(head).decoded(decoded)
    }
}

impl ByteStore<Hdf5> for ChunkTable {
    fn id(&self) -> StoreId {
        // What may have to wait for a commit is not written with what others write.
        match self.refers() && self.medium.is_writable() {
            true => StoreId::of(self),
            false => StoreId::of(&*self.medium),
        }
    }

    fn fetch(&self, reads: &mut [Fetch<'_>]) -> Result<()> {
        self.medium.fetch(&mut read_ops(reads))
    }

    fn is_far(&self) -> bool {
        self.medium.is_far()
    }

    fn announce(&self, ranges: &[Range<u64>]) -> Announced {
        self.medium.announce(ranges)
    }

    fn put(&self, writes: &[Put<'_>]) -> Result<()> {
        self.put(&mut write_ops(writes))
    }
}

/// Extents of the cache as a store takes them.
pub(crate) fn read_ops<'a>(reads: &'a mut [Fetch<'_>]) -> Vec<ReadOp<'a>> {
    let op = |read: &'a mut Fetch<'_>| ReadOp { offset: read.offset, buffer: &mut *read.buffer };
    reads.iter_mut().map(op).collect()
}

/// [`read_ops`] for writes.
pub(crate) fn write_ops<'a>(writes: &[Put<'a>]) -> Vec<WriteOp<'a>> {
    writes.iter().map(|write| WriteOp { offset: write.offset, bytes: write.bytes }).collect()
}

impl ChunkStore<Hdf5> for ChunkTable {
    fn lookup(&self, keys: &[Dims]) -> Result<Lookups<ChunkRecord>> {
        let records = self.lookup(keys)?.into_iter();
        // Where places follow from coordinates, there is one for chunks outside the extent, too. Who
        // reads ahead may ask for them, and must not find what the extent has cut off.
        let counts = self.geometry.chunk_counts();
        let inside = |key: &Dims| key.iter().zip(&counts).all(|(at, count)| at < count);
        let found = records.zip(keys).map(|(record, key)| record.filter(|_| inside(key)));
        Ok(found.map(|record| record.map(|record| self.stored(record))).collect())
    }

    fn insert(&self, placements: &mut [Placement<Dims, ChunkRecord>]) -> Result<()> {
        placements.iter_mut().for_each(|placement| placement.tag.size = placement.len);
        let chunks = placements.iter().map(|placement| (&placement.key, placement.tag.clone()));
        let places = self.reserve_all(chunks, Room::Usual)?;
        for (placement, offset) in placements.iter_mut().zip(places) {
            placement.offset = offset;
            // Of a sparse chunk that keeps its place, only values have changed.
            placement.kept = placement.tag.address != NOWHERE && !self.is_reserved(offset);
        }
        Ok(())
    }

    /// Lets the index name chunks whose bytes are written; all that can be, even if one fails.
    fn settle(&self, placements: &[Placement<Dims, ChunkRecord>], written: bool) -> Result<()> {
        if !written {
            placements.iter().for_each(|placed| self.cancel(placed.offset));
            return Ok(());
        }
        let mut result = Ok(());
        for placed in placements {
            result = result.and(self.enter(placed.offset));
        }
        result
    }

    fn delete(&self, key: &Dims) -> Result<()> {
        self.remove(key)
    }
}

/// About the bytes of a decoded chunk of several sections, by its record: a file says there what it likes.
fn structured_bytes(record: &ChunkRecord) -> u64 {
    let Some((locations, others)) = record.sections.split_first() else { return record.size };
    let cells = locations.unfiltered.min(record.size.saturating_mul(8));
    others.iter().map(|section| section.unfiltered).fold(cells, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::structured_bytes;
    use pumice_format::index::{ChunkRecord, SectionRecord};

    #[test]
    fn sizes_that_a_record_makes_up_have_a_sum() {
        let mut record = ChunkRecord::dense(0x800, 100);
        for offset in [0, 40, 60] {
            let section = SectionRecord { offset, unfiltered: u64::MAX - 1, filter_mask: 0 };
            record.sections.push(section);
        }
        assert_eq!(structured_bytes(&record), u64::MAX);
        record.sections.pop();
        record.sections[1].unfiltered = 12;
        assert_eq!(structured_bytes(&record), 800 + 12);
    }
}
