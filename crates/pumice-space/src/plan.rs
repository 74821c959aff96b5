//! Splits a transfer between file and memory by chunk.
use crate::{ChunkGrid, Dims, Selection, SpaceError};
use std::marker::PhantomData;

/// Cells that are neighbours both in the chunk and in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Segment {
    /// The first cell, linear in the chunk.
    pub cell: u64,
    /// The first element, linear in the memory buffer.
    pub memory: u64,
    /// How many.
    pub len: u64,
}

/// The part of a transfer that concerns one chunk.
#[derive(Clone, Debug)]
pub struct ChunkPart {
    /// The chunk's coordinates in the grid.
    pub chunk: Dims,
}

impl ChunkPart {
    /// The selected cells, relative to the chunk.
    pub fn cells(&self) -> &Selection {
        todo!()
    }
    /// What to copy where, ascending in cell unless the file selection is points.
    pub fn segments(&self, _chunk_dims: &[u64]) -> Segments<'_> {
        todo!()
    }
    /// How many cells move (points that repeat count each time).
    pub fn count(&self) -> u64 {
        todo!()
    }
    /// Whether every cell of the chunk that lies inside the array is selected.
    pub fn is_whole(&self) -> bool {
        todo!()
    }
}

/// Iterates over the [`Segment`]s of a [`ChunkPart`].
pub struct Segments<'a>(PhantomData<&'a ()>);
impl Iterator for Segments<'_> {
    type Item = Segment;
    fn next(&mut self) -> Option<Segment> {
        todo!()
    }
}

/// The chunks of a transfer, each once, in row-major order.
pub struct Plan(());
impl Plan {
    /// An upper estimate of the chunks still to come (exact unless a stride skips chunks).
    pub fn chunk_count_hint(&self) -> u64 {
        todo!()
    }
}
impl Iterator for Plan {
    type Item = ChunkPart;
    fn next(&mut self) -> Option<ChunkPart> {
        todo!()
    }
}

/// Splits a transfer between `file` (of an array of shape `extent`) and `memory` (of a buffer of
/// shape `memory_dims`) by chunk.
pub fn plan(
    _file: &Selection,
    _extent: &[u64],
    _grid: &ChunkGrid,
    _memory: &Selection,
    _memory_dims: &[u64],
) -> Result<Plan, SpaceError> {
    todo!()
}
