//! A chunk in memory, whatever storage it is of, and the types that all storages have in common.

use super::{DenseChunk, HeapChunk, LoggedChunk, ReadRequest, WriteRequest};
use pumice_cache::{ChunkMemory, Family, Footprint, Part, Trim};
use pumice_format::index::ChunkRecord;
use pumice_medium::{Error, Result};
use pumice_space::Dims;

/// What all datasets of HDF5 files have in common for the cache.
#[derive(Debug)]
pub enum Hdf5 {}

impl Family for Hdf5 {
    type Key = Dims;
    type Chunk = Chunk;
    type Tag = ChunkRecord;
    type Read<'a> = ReadRequest<'a>;
    type Write<'a> = WriteRequest<'a>;
    type Error = Error;
}

/// A chunk in memory.
#[derive(Clone)]
pub enum Chunk {
    /// Every cell.
    Dense(DenseChunk),
    /// The defined cells.
    Sparse(LoggedChunk),
    /// Cells with variable-length data.
    Heap(HeapChunk),
}

impl Chunk {
    /// How many cells it has defined, if it need not be all.
    pub fn defined_cells(&self) -> Option<u64> {
        match self {
            Self::Dense(_) => None,
            Self::Sparse(chunk) => Some(chunk.len()),
            Self::Heap(chunk) => Some(chunk.len()),
        }
    }

    pub(super) fn dense(&self) -> Result<&DenseChunk> {
        if let Self::Dense(cells) = self { Ok(cells) } else { Err(mismatch()) }
    }

    pub(super) fn dense_mut(&mut self) -> Result<&mut DenseChunk> {
        if let Self::Dense(cells) = self { Ok(cells) } else { Err(mismatch()) }
    }

    pub(super) fn sparse(&self) -> Result<&LoggedChunk> {
        if let Self::Sparse(chunk) = self { Ok(chunk) } else { Err(mismatch()) }
    }

    pub(super) fn sparse_mut(&mut self) -> Result<&mut LoggedChunk> {
        if let Self::Sparse(chunk) = self { Ok(chunk) } else { Err(mismatch()) }
    }

    pub(super) fn heap(&self) -> Result<&HeapChunk> {
        if let Self::Heap(chunk) = self { Ok(chunk) } else { Err(mismatch()) }
    }

    pub(super) fn heap_mut(&mut self) -> Result<&mut HeapChunk> {
        if let Self::Heap(chunk) = self { Ok(chunk) } else { Err(mismatch()) }
    }
}

/// The cache hands a layout only chunks that the layout has made.
fn mismatch() -> Error {
    Error::Internal("a chunk of another layout".into())
}

impl ChunkMemory for Chunk {
    fn footprint(&self) -> Footprint {
        let ((used, allocated), values) = match self {
            Self::Dense(cells) => ((cells.len(), cells.capacity()), true),
            Self::Sparse(chunk) => (chunk.footprint(), chunk.has_values()),
            Self::Heap(chunk) => (chunk.footprint(), chunk.has_values()),
        };
        let part = if values { Part::All } else { Part::Defined };
        Footprint { used: used as u64, allocated: allocated as u64, part }
    }

    fn trim(&mut self, what: Trim) {
        match (self, what) {
            (Self::Dense(cells), Trim::Slack) => cells.condense(),
            (Self::Dense(_), Trim::Values) => {}
            (Self::Sparse(chunk), Trim::Slack) => chunk.condense(),
            (Self::Sparse(chunk), Trim::Values) => chunk.settle().values = None,
            (Self::Heap(chunk), Trim::Slack) => chunk.condense(),
            (Self::Heap(chunk), Trim::Values) => chunk.drop_values(),
        }
    }
}
