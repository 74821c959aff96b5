//! How an array is cut into chunks.
use crate::{Dims, SpaceError};

/// An array of shape `dims` cut into chunks of shape `chunk`; chunks at the far edges may overhang.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkGrid {
    dims: Dims,
    chunk: Dims,
}

impl ChunkGrid {
    /// Cuts `dims` into chunks of shape `chunk`, no size of which may be zero.
    pub fn new(dims: &[u64], chunk: &[u64]) -> Result<Self, SpaceError> {
        Ok(Self {
            dims: dims.into(),
            chunk: chunk.into(),
        })
    }
    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }
    /// The shape of the array.
    pub fn dims(&self) -> &[u64] {
        &self.dims
    }
    /// The shape of a chunk.
    pub fn chunk(&self) -> &[u64] {
        &self.chunk
    }
    /// Chunks along each dimension, including the overhanging ones.
    pub fn counts(&self) -> Dims {
        todo!()
    }
    /// All chunks, or `None` beyond 64 bits.
    pub fn chunk_count(&self) -> Option<u64> {
        todo!()
    }
    /// Cells of one whole chunk.
    pub fn cells_per_chunk(&self) -> u64 {
        todo!()
    }
    /// The chunk that holds `coord`.
    pub fn chunk_of(&self, _coord: &[u64]) -> Dims {
        todo!()
    }
    /// The linear cell inside its chunk of `coord`.
    pub fn cell_of(&self, _coord: &[u64]) -> u64 {
        todo!()
    }
    /// The coordinates of a chunk's first cell.
    pub fn origin(&self, _chunk: &[u64]) -> Dims {
        todo!()
    }
    /// The shape of the part of a chunk that lies inside the array (zeros if none does).
    pub fn clipped(&self, _chunk: &[u64]) -> Dims {
        todo!()
    }
    /// Whether a chunk overhangs the array.
    pub fn is_partial(&self, _chunk: &[u64]) -> bool {
        todo!()
    }
    /// Whether a chunk has a cell inside the array.
    pub fn contains_chunk(&self, _chunk: &[u64]) -> bool {
        todo!()
    }
    /// The row-major number of a chunk in the grid, or `None` if outside or beyond 64 bits.
    pub fn linear(&self, _chunk: &[u64]) -> Option<u64> {
        todo!()
    }
    /// The chunk with row-major number `linear`.
    pub fn chunk_at(&self, _linear: u64) -> Option<Dims> {
        todo!()
    }
}
