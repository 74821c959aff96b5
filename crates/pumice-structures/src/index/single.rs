//! The single-chunk index: the layout message itself describes the only chunk.
//!
//! Nothing is staged here: the caller of the commit puts [`record`](Single::record) into the layout
//! message.

use super::Visit;
use super::shape::{IndexShape, outside};
use pumice_bytes::Reader;
use pumice_format::UNDEFINED;
use pumice_format::index::{ChunkRecord, Coord, RecordFormat, RecordKind};
use pumice_medium::MetadataIo;
use pumice_medium::Result;
use std::ops::ControlFlow;

#[derive(Debug)]
pub(super) struct Single {
    format: RecordFormat,
    rank: usize,
    record: Option<ChunkRecord>,
}

impl Single {
    pub(super) fn new(mut format: RecordFormat, shape: &IndexShape) -> Self {
        // The layout message has room for the size of anything in the file.
        if format.kind == RecordKind::Filtered {
            format.size_width = format.size_width.max(format.offset_size);
        }
        Self { format, rank: shape.rank(), record: None }
    }

    pub(super) fn format(&self) -> &RecordFormat {
        &self.format
    }

    pub(super) fn record(&self) -> Option<&ChunkRecord> {
        self.record.as_ref()
    }

    /// Takes a record if it can be expressed, in the form that reading it back will give.
    pub(super) fn set(&mut self, record: ChunkRecord) -> Result<()> {
        let mut bytes = Vec::new();
        self.format.encode_body(&record, &mut bytes)?;
        let mut reader = Reader::new("chunk record", record.address, &bytes);
        self.record = Some(self.format.decode_body(record.address, &mut reader)?);
        Ok(())
    }

    pub(super) fn lookup(
        &mut self,
        _io: &dyn MetadataIo,
        coord: &[u64],
    ) -> Result<Option<ChunkRecord>> {
        Ok(self.record.clone().filter(|_| is_origin(coord)))
    }

    pub(super) fn insert(
        &mut self,
        _io: &dyn MetadataIo,
        coord: &[u64],
        record: &ChunkRecord,
    ) -> Result<()> {
        if !is_origin(coord) {
            return Err(outside(coord));
        }
        self.set(record.clone())
    }

    pub(super) fn remove(
        &mut self,
        _io: &dyn MetadataIo,
        coord: &[u64],
    ) -> Result<Option<ChunkRecord>> {
        Ok(if is_origin(coord) { self.record.take() } else { None })
    }

    pub(super) fn for_each(
        &mut self,
        _io: &dyn MetadataIo,
        after: Option<&[u64]>,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>> {
        let origin: Coord = smallvec::smallvec![0; self.rank];
        match &self.record {
            Some(record) if after.is_none() => visit(&origin, record),
            _ => Ok(ControlFlow::Continue(())),
        }
    }

    pub(super) fn commit(&mut self, _io: &dyn MetadataIo) -> Result<u64> {
        Ok(self.record.as_ref().map_or(UNDEFINED, |record| record.address))
    }

    pub(super) fn delete(&mut self, _io: &dyn MetadataIo) -> Result<()> {
        self.record = None;
        Ok(())
    }

    pub(super) fn storage_size(&mut self, _io: &dyn MetadataIo) -> Result<u64> {
        Ok(0)
    }
}

fn is_origin(coord: &[u64]) -> bool {
    coord.iter().all(|&index| index == 0)
}
