//! Storing encoded chunks: room is found, bytes are written, and the index names what is written.
//!
//! The cache does these steps one by one, so that it can write chunks of many datasets in one call
//! (`stored.rs`); whoever stores chunks while no request runs calls [`ChunkTable::place`] and
//! [`ChunkTable::enter_all`].

use super::ChunkTable;
use crate::NOWHERE;
use pumice_cache::Encoded;
use pumice_format::index::ChunkRecord;
use pumice_medium::Result;
use pumice_space::Dims;
use pumice_store::WriteOp;

/// An encoded chunk that is to be stored.
pub struct NewChunk<'c> {
    key: &'c Dims,
    record: ChunkRecord,
    pieces: [&'c [u8]; 2],
}

impl<'c> NewChunk<'c> {
    /// A chunk as a layout has encoded it.
    pub fn new(key: &'c Dims, encoded: &'c Encoded<ChunkRecord>) -> Self {
        let record = ChunkRecord { size: encoded.size(), ..encoded.tag.clone() };
        Self { key, record, pieces: encoded.pieces() }
    }

    /// A chunk as another table has it.
    pub(super) fn copy(key: &'c Dims, record: &ChunkRecord, bytes: &'c [u8]) -> Self {
        let record = ChunkRecord { address: NOWHERE, ..record.clone() };
        Self { key, record, pieces: [bytes, &[]] }
    }
}

/// Where room is found for a chunk that is stored already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// Where it is, if it may stay there.
    Usual,
    /// Never where it is, unless its place follows from its coordinates.
    Elsewhere,
    /// Where it is, if it may stay there, or where nothing committed is: others may write there at once.
    Free,
}

impl ChunkTable {
    /// Finds room for all of these chunks, or for none.
    pub fn reserve_all<'k>(
        &self,
        chunks: impl IntoIterator<Item = (&'k Dims, ChunkRecord)>,
        room: Room,
    ) -> Result<Vec<u64>> {
        let mut places = Vec::new();
        for (key, record) in chunks {
            let place = match room {
                Room::Elsewhere if !self.is_fixed() => self.reserve_new(key, record, room),
                _ => self.reserve_in(key, record, room),
            };
            match place {
                Ok(place) => places.push(place),
                Err(error) => {
                    self.cancel_all(&places);
                    return Err(error);
                }
            }
        }
        Ok(places)
    }

    /// Writes chunks to room that is found for them. Their addresses are to be given to
    /// [`enter_all`](Self::enter_all) or [`cancel_all`](Self::cancel_all).
    pub fn place(&self, chunks: &[NewChunk<'_>], room: Room) -> Result<Vec<u64>> {
        let named = chunks.iter().map(|chunk| (chunk.key, chunk.record.clone()));
        let places = self.reserve_all(named, room)?;
        let mut writes = Vec::with_capacity(chunks.len());
        for (chunk, &place) in chunks.iter().zip(&places) {
            let mut offset = place;
            for bytes in chunk.pieces.into_iter().filter(|piece| !piece.is_empty()) {
                writes.push(WriteOp { offset, bytes });
                offset += bytes.len() as u64;
            }
        }
        writes.sort_by_key(|write| write.offset);
        let written = self.put(&mut writes);
        if written.is_err() {
            self.cancel_all(&places);
        }
        written.map(|()| places)
    }

    /// Lets the index name chunks whose bytes are written, as one change; gives up the room of those that it cannot
    /// name.
    pub fn enter_all(&self, places: &[u64]) -> Result<()> {
        let change = self.medium.change();
        let entered = places.iter().try_for_each(|&place| self.enter_during(&change, place));
        drop(change);
        if entered.is_err() {
            self.cancel_all(places);
        }
        entered
    }

    /// Gives back room that will not be used.
    pub fn cancel_all(&self, places: &[u64]) {
        places.iter().for_each(|&place| self.cancel(place));
    }
}
