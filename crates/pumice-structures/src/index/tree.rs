//! The version 2 B-tree of chunks: records in order of scaled coordinates.

use super::Visit;
use super::shape::{IndexShape, outside};
use crate::btree2::Tree as Records;
use pumice_bytes::{DecodeError, Reader};
use pumice_format::index::tree::TreeParameters;
use pumice_format::index::{ChunkRecord, Coord, RecordFormat};
use pumice_medium::MetadataIo;
use pumice_medium::Result;
use std::cmp::Ordering;
use std::ops::ControlFlow;

#[derive(Debug)]
pub(super) struct Tree {
    format: RecordFormat,
    rank: usize,
    maximum: Box<[Option<u64>]>,
    records: Records,
}

/// Compares the chunk of an encoded record with another chunk.
fn compare(format: &RecordFormat, rank: usize, record: &[u8], coord: &[u64]) -> Ordering {
    let key = record.get(format.key_offset()..).unwrap_or_default();
    let indexes = key.chunks_exact(8).map(|bytes| {
        let mut array = [0; 8];
        array.copy_from_slice(bytes);
        u64::from_le_bytes(array)
    });
    indexes.take(rank).cmp(coord.iter().copied())
}

fn decode(
    format: &RecordFormat,
    rank: usize,
    record: &[u8],
) -> Result<(Coord, Option<ChunkRecord>)> {
    let mut reader = Reader::new("chunk record", 0, record);
    Ok(format.decode_tree_record(rank, &mut reader)?)
}

/// Fails if a chunk does not come behind the one before it: a caller who continues from the last
/// one would see it again, or never finish.
pub(super) fn check_order(last: Option<&Coord>, coord: &Coord) -> Result<()> {
    match last.filter(|last| *last >= coord) {
        Some(last) => {
            let expected = format!("a chunk behind {last:?}");
            Err(DecodeError::new("chunk index", 0, expected, format!("{coord:?}")).into())
        }
        None => Ok(()),
    }
}

impl Tree {
    pub(super) fn create(
        format: RecordFormat,
        shape: &IndexShape,
        parameters: TreeParameters,
    ) -> Result<Self> {
        let (kind, rank) = (format.kind, shape.rank());
        let records = Records::create(
            kind.tree_type(),
            kind.header_version(),
            parameters,
            format.tree_record_size(rank),
            format.offset_size,
        )?;
        records.check_changeable()?;
        Ok(Self { format, rank, maximum: shape.maximum().into(), records })
    }

    pub(super) fn open(
        address: u64,
        format: RecordFormat,
        shape: &IndexShape,
        io: &dyn MetadataIo,
    ) -> Result<Self> {
        let records = Records::open(address, &[format.kind.tree_type()], io)?;
        let rank = shape.rank();
        let format = format.with_tree_record_size(rank, records.record_size(), address)?;
        Ok(Self { format, rank, maximum: shape.maximum().into(), records })
    }

    /// Fails if chunks can be neither added nor taken away.
    pub(super) fn check_changeable(&self) -> Result<()> {
        self.records.check_changeable()
    }

    pub(super) fn parameters(&self) -> TreeParameters {
        self.records.parameters()
    }

    pub(super) fn format(&self) -> &RecordFormat {
        &self.format
    }

    pub(super) fn lookup(
        &mut self,
        io: &dyn MetadataIo,
        coord: &[u64],
    ) -> Result<Option<ChunkRecord>> {
        let Self { format, rank, records, .. } = self;
        let found =
            records.lookup(io, |record: &[u8]| Ok(compare(format, *rank, record, coord)))?;
        let found = found.map(|record| decode(format, *rank, &record)).transpose()?;
        Ok(found.and_then(|(_, record)| record))
    }

    pub(super) fn insert(
        &mut self,
        io: &dyn MetadataIo,
        coord: &[u64],
        record: &ChunkRecord,
    ) -> Result<()> {
        let limits = self.maximum.iter().zip(coord);
        if limits.into_iter().any(|(limit, &index)| limit.is_some_and(|limit| index >= limit)) {
            return Err(outside(coord));
        }
        let Self { format, rank, records, .. } = self;
        let mut encoded = Vec::with_capacity(records.record_size());
        format.encode_tree_record(coord, record, &mut encoded)?;
        records.insert(io, |other: &[u8]| Ok(compare(format, *rank, other, coord)), &encoded)
    }

    pub(super) fn remove(
        &mut self,
        io: &dyn MetadataIo,
        coord: &[u64],
    ) -> Result<Option<ChunkRecord>> {
        let Self { format, rank, records, .. } = self;
        let removed =
            records.remove(io, |record: &[u8]| Ok(compare(format, *rank, record, coord)))?;
        let removed = removed.map(|record| decode(format, *rank, &record)).transpose()?;
        Ok(removed.and_then(|(_, record)| record))
    }

    pub(super) fn for_each(
        &mut self,
        io: &dyn MetadataIo,
        after: Option<&[u64]>,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>> {
        let Self { format, rank, records, .. } = self;
        let mut last = after.map(Coord::from_slice);
        let mut visit = |record: &[u8]| {
            let (coord, record) = decode(format, *rank, record)?;
            check_order(last.as_ref(), &coord)?;
            let Some(record) = record else { return Ok(ControlFlow::Continue(())) };
            let next = visit(&coord, &record);
            last = Some(coord);
            next
        };
        match after {
            None => records.for_each(io, &mut visit),
            Some(after) => {
                let probe = |record: &[u8]| Ok(compare(format, *rank, record, after));
                records.for_each_after(io, probe, &mut visit)
            }
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.records.memory()
    }

    pub(super) fn trim(&mut self) {
        self.records.forget_unchanged();
    }

    pub(super) fn place(&mut self, io: &dyn MetadataIo) -> Result<()> {
        self.records.place(io).map(drop)
    }

    pub(super) fn commit(&mut self, io: &dyn MetadataIo) -> Result<u64> {
        self.records.commit(io)
    }

    pub(super) fn delete(&mut self, io: &dyn MetadataIo) -> Result<()> {
        self.records.delete(io)
    }

    pub(super) fn storage_size(&mut self, io: &dyn MetadataIo) -> Result<u64> {
        self.records.storage_size(io)
    }
}
