//! The form that chunks will have in another extent.

use super::cached::{encode_dense, encode_sparse};
use super::{Chunk, DatasetLayout, Dense, Sparse, Storage, VariableLength};
use pumice_cache::Encoded;
use pumice_format::index::ChunkRecord;
use pumice_medium::Result;
use pumice_space::Dims;
use std::sync::Arc;

/// Encodes chunks of a layout for another extent than it has now: where partial edge chunks are
/// stored unfiltered, that decides their form.
pub enum Recoder {
    /// Of dense chunks.
    Dense(Dense),
    /// Of sparse chunks.
    Sparse(Sparse),
    /// Of chunks with variable-length data.
    VariableLength(VariableLength),
}

impl Recoder {
    /// For the chunks of `layout` in an extent of `dims`.
    pub fn new(layout: &DatasetLayout, dims: &[u64]) -> Result<Self> {
        let geometry = Arc::new(layout.geometry.with_dims(dims));
        match &layout.storage {
            Storage::Dense(dense, _) => Ok(Self::Dense(dense.with_geometry(geometry))),
            Storage::Sparse(sparse, _) => Ok(Self::Sparse(sparse.with_geometry(geometry))),
            Storage::VariableLength(layout, _) => {
                Ok(Self::VariableLength(layout.with_geometry(geometry)))
            }
            Storage::Contiguous(_)
            | Storage::External(_)
            | Storage::Virtual
            | Storage::Unreadable(_) => Err(DatasetLayout::mismatch()),
        }
    }

    /// The bytes to store for a chunk.
    pub fn encode(&self, key: &Dims, chunk: &Chunk) -> Result<Encoded<ChunkRecord>> {
        match (self, chunk) {
            (Self::Dense(dense), Chunk::Dense(cells)) => encode_dense(dense, key, cells),
            (Self::Sparse(sparse), Chunk::Sparse(chunk)) => encode_sparse(sparse, key, chunk),
            (Self::VariableLength(layout), Chunk::Heap(chunk)) => layout.encode(key, chunk),
            _ => Err(DatasetLayout::mismatch()),
        }
    }
}
