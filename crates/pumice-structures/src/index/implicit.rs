//! The implicit index: all chunks of the maximum extent stand one after another, in slot order.
//!
//! The file has only the address of the first chunk. So a chunk can be "inserted" only at its own
//! address, and a chunk that is removed when the extent shrinks keeps its space: it is filled anew
//! when the extent grows. All chunks must lie inside the file, so that listing them ends.

use super::Visit;
use super::shape::{IndexShape, Slots};
use pumice_bytes::DecodeError;
use pumice_format::UNDEFINED;
use pumice_format::index::{ChunkRecord, RecordFormat};
use pumice_medium::MetadataIo;
use pumice_medium::{Error, Result};
use std::ops::ControlFlow;

#[derive(Debug)]
pub(super) struct Implicit {
    format: RecordFormat,
    slots: Slots,
    first: u64,
}

impl Implicit {
    pub(super) fn new(first: u64, format: RecordFormat, shape: &IndexShape) -> Result<Self> {
        Ok(Self { format, slots: Slots::new(shape)?, first })
    }

    /// Takes the space of all chunks, unless it is taken.
    pub(super) fn allocate(&mut self, io: &dyn MetadataIo) -> Result<()> {
        if self.first == UNDEFINED {
            self.first = io.allocate_raw(self.length()?)?;
        }
        Ok(())
    }

    /// Bytes of all chunks.
    fn length(&self) -> Result<u64> {
        let length =
            self.slots.count().and_then(|count| count.checked_mul(self.format.chunk_bytes));
        length.ok_or_else(|| {
            Error::Invalid(
                "an implicit index cannot have so many chunks: use fewer, larger ones".into(),
            )
        })
    }

    pub(super) fn open(
        first: u64,
        format: RecordFormat,
        shape: &IndexShape,
        io: &dyn MetadataIo,
    ) -> Result<Self> {
        let slots = Slots::new(shape)?;
        let Some(count) = slots.count() else {
            return Err(Error::Invalid("an implicit index cannot have an unlimited axis".into()));
        };
        let bytes = count.checked_mul(format.chunk_bytes);
        let end = bytes.and_then(|bytes| first.checked_add(bytes));
        if first != UNDEFINED && bytes != Some(0) {
            let Some(end) = end.filter(|&end| end > first) else {
                let error = DecodeError::new("implicit chunk index", first, "fewer chunks", count);
                return Err(error.into());
            };
            io.read(end - 1, 1)?;
        }
        Ok(Self { format, slots, first })
    }

    pub(super) fn format(&self) -> &RecordFormat {
        &self.format
    }

    fn record(&self, slot: u64) -> Option<ChunkRecord> {
        if self.first == UNDEFINED {
            return None;
        }
        let size = self.format.chunk_bytes;
        let address = self.first.checked_add(slot.checked_mul(size)?)?;
        Some(ChunkRecord::dense(address, size))
    }

    pub(super) fn lookup(
        &mut self,
        _io: &dyn MetadataIo,
        coord: &[u64],
    ) -> Result<Option<ChunkRecord>> {
        Ok(self.slots.slot(coord).and_then(|slot| self.record(slot)))
    }

    pub(super) fn insert(
        &mut self,
        _io: &dyn MetadataIo,
        coord: &[u64],
        record: &ChunkRecord,
    ) -> Result<()> {
        let slot = self.slots.slot_to_set(coord)?;
        if self.record(slot).as_ref() == Some(record) {
            return Ok(());
        }
        Err(Error::Unsupported("moving a chunk of an implicit index".into()))
    }

    /// Does nothing: the chunk keeps its space.
    pub(super) fn remove(
        &mut self,
        _io: &dyn MetadataIo,
        _coord: &[u64],
    ) -> Result<Option<ChunkRecord>> {
        Ok(None)
    }

    pub(super) fn for_each(
        &mut self,
        _io: &dyn MetadataIo,
        after: Option<&[u64]>,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>> {
        for slot in self.slots.behind(after)..self.slots.count().unwrap_or_default() {
            let Some((coord, record)) = self.slots.coord(slot).zip(self.record(slot)) else {
                break;
            };
            if visit(&coord, &record)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    pub(super) fn commit(&mut self, _io: &dyn MetadataIo) -> Result<u64> {
        Ok(self.first)
    }

    /// Gives back the space of all chunks, in one piece as it was taken.
    pub(super) fn delete(&mut self, io: &dyn MetadataIo) -> Result<()> {
        if self.first != UNDEFINED {
            io.free_raw(self.first, self.length()?);
            self.first = UNDEFINED;
        }
        Ok(())
    }

    pub(super) fn storage_size(&mut self, _io: &dyn MetadataIo) -> Result<u64> {
        Ok(0)
    }
}
