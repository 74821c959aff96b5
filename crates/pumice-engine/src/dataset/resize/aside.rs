//! What a resize must know of very many chunks until the extent changes. It waits in new space of the file, which nothing
//! refers to, since it would not fit into memory.

use crate::Result;
use pumice_bytes::{Reader, Writer};
use pumice_format::index::{ChunkRecord, SectionRecord};
use pumice_medium::{Medium, MetadataIo};
use pumice_space::Dims;
use pumice_store::{ReadOp, WriteOp};
use std::sync::Arc;

/// Bytes that are written, and read, at a time.
const PIECE: usize = 1 << 20;

/// A list of bytes in the file. Its space is given back when it is dropped.
pub(super) struct Aside {
    medium: Arc<Medium>,
    /// Ranges that are written.
    ranges: Vec<(u64, usize)>,
    /// What is not written yet.
    waiting: Vec<u8>,
}

impl Aside {
    pub(super) fn new(medium: &Arc<Medium>) -> Self {
        Self { medium: Arc::clone(medium), ranges: Vec::new(), waiting: Vec::new() }
    }

    /// Adds bytes, which stay together. They are in the list even if it cannot be written.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() < PIECE {
            return Ok(());
        }
        let length = self.waiting.len();
        let offset = self.medium.allocate_raw(length as u64)?;
        let written = self.medium.put(&mut [WriteOp { offset, bytes: &self.waiting }]);
        if let Err(error) = written {
            self.medium.free_raw(offset, length as u64);
            return Err(error);
        }
        self.ranges.push((offset, length));
        self.waiting.clear();
        Ok(())
    }

    /// Adds a chunk, with its new record if it has one.
    pub(super) fn push_chunk(&mut self, key: &Dims, record: Option<&ChunkRecord>) -> Result<()> {
        let mut bytes = Vec::new();
        key.iter().for_each(|&axis| bytes.put_u64(axis));
        bytes.put_u8(u8::from(record.is_some()));
        if let Some(record) = record {
            bytes.put_u64(record.address);
            bytes.put_u64(record.size);
            bytes.put_u32(record.filter_mask);
            bytes.put_u8(record.sections.len() as u8);
            for section in &record.sections {
                bytes.put_u64(section.offset);
                bytes.put_u64(section.unfiltered);
                bytes.put_u32(section.filter_mask);
            }
        }
        self.push(&bytes)
    }

    /// Calls `visit` with all bytes, some at a time.
    pub(super) fn for_each(&self, mut visit: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        for &(offset, length) in &self.ranges {
            let mut buffer = pumice_medium::zeroed(length)?;
            self.medium.fetch(&mut [ReadOp { offset, buffer: &mut buffer }])?;
            visit(&buffer)?;
        }
        visit(&self.waiting)
    }

    /// Calls `visit` with all chunks of a list that has nothing else.
    pub(super) fn for_each_chunk(
        &self,
        rank: usize,
        mut visit: impl FnMut(Dims, Option<ChunkRecord>) -> Result<()>,
    ) -> Result<()> {
        self.for_each(|bytes| {
            let mut reader = Reader::new("chunks of a resize", 0, bytes);
            while reader.remaining() > 0 {
                let key = (0..rank).map(|_| reader.u64()).collect::<std::result::Result<_, _>>()?;
                let record = if reader.u8()? > 0 { Some(record(&mut reader)?) } else { None };
                visit(key, record)?;
            }
            Ok(())
        })
    }
}

fn record(reader: &mut Reader<'_>) -> Result<ChunkRecord> {
    let (address, size, filter_mask) = (reader.u64()?, reader.u64()?, reader.u32()?);
    let mut record = ChunkRecord { filter_mask, ..ChunkRecord::dense(address, size) };
    for _ in 0..reader.u8()? {
        let (offset, unfiltered, filter_mask) = (reader.u64()?, reader.u64()?, reader.u32()?);
        record.sections.push(SectionRecord { offset, unfiltered, filter_mask });
    }
    Ok(record)
}

impl Drop for Aside {
    fn drop(&mut self) {
        for &(address, length) in &self.ranges {
            self.medium.free_raw(address, length as u64);
        }
    }
}
