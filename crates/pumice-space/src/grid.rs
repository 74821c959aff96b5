//! An array divided into chunks.
//!
//! Invariants: array and chunk have the same rank, no chunk size is zero, the cells of one chunk
//! fit 64 bits. The number of chunks may not: [`ChunkGrid::linear`] then has no answer.

use crate::extent::{check_rank, product, same_rank};
use crate::{Dims, SpaceError};

/// An array of shape `dims` cut into chunks of shape `chunk`; those at the far edges may overhang.
///
/// ```
/// let grid = pumice_space::ChunkGrid::new(&[10, 10], &[4, 5])?;
/// assert_eq!(grid.counts().as_slice(), [3, 2]);
/// assert_eq!(grid.chunk_of(&[9, 4]).as_slice(), [2, 0]);
/// assert_eq!(grid.clipped(&[2, 0]).as_slice(), [2, 5]);
/// assert!(grid.is_partial(&[2, 0]));
/// # Ok::<(), pumice_space::SpaceError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkGrid {
    dims: Dims,
    chunk: Dims,
    cells: u64,
}

impl ChunkGrid {
    /// Cuts `dims` into chunks of shape `chunk`, no size of which may be zero.
    pub fn new(dims: &[u64], chunk: &[u64]) -> Result<Self, SpaceError> {
        check_rank(dims.len())?;
        same_rank(dims.len(), chunk.len())?;
        if let Some(axis) = chunk.iter().position(|&size| size == 0) {
            return Err(SpaceError::InvalidShape { axis, reason: "chunk of size zero" });
        }
        let cells = product(chunk).ok_or(SpaceError::Overflow("number of cells of a chunk"))?;
        Ok(Self { dims: Dims::from_slice(dims), chunk: Dims::from_slice(chunk), cells })
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
        self.dims.iter().zip(&self.chunk).map(|(size, chunk)| size.div_ceil(*chunk)).collect()
    }

    /// The number of all chunks; `None` beyond 64 bits.
    pub fn chunk_count(&self) -> Option<u64> {
        product(&self.counts())
    }

    /// Cells of one whole chunk.
    pub fn cells_per_chunk(&self) -> u64 {
        self.cells
    }

    /// The chunk that holds `coord`.
    pub fn chunk_of(&self, coord: &[u64]) -> Dims {
        coord.iter().zip(&self.chunk).map(|(at, chunk)| at / chunk).collect()
    }

    /// The linear position of `coord` inside its chunk.
    pub fn cell_of(&self, coord: &[u64]) -> u64 {
        let steps = coord.iter().zip(&self.chunk);
        steps.fold(0, |cell, (at, chunk)| cell * chunk + at % chunk)
    }

    /// The coordinates of a chunk's first cell (saturating).
    pub fn origin(&self, chunk: &[u64]) -> Dims {
        chunk.iter().zip(&self.chunk).map(|(at, size)| at.saturating_mul(*size)).collect()
    }

    /// The shape of the part of a chunk that lies inside the array: zeros where none does.
    pub fn clipped(&self, chunk: &[u64]) -> Dims {
        let origin = self.origin(chunk);
        let sizes = self.dims.iter().zip(&self.chunk).zip(&origin);
        sizes.map(|((size, chunk), origin)| size.saturating_sub(*origin).min(*chunk)).collect()
    }

    /// Whether a chunk overhangs the array.
    pub fn is_partial(&self, chunk: &[u64]) -> bool {
        self.clipped(chunk) != self.chunk
    }

    /// Whether a chunk has a cell inside the array.
    pub fn contains_chunk(&self, chunk: &[u64]) -> bool {
        chunk.len() == self.rank() && !self.clipped(chunk).contains(&0)
    }

    /// The row-major number of a chunk in the grid, or `None` if it lies outside or beyond 64 bits.
    pub fn linear(&self, chunk: &[u64]) -> Option<u64> {
        if chunk.len() != self.rank() {
            return None;
        }
        let mut linear = 0u64;
        for (&at, count) in chunk.iter().zip(self.counts()) {
            if at >= count {
                return None;
            }
            linear = linear.checked_mul(count)?.checked_add(at)?;
        }
        Some(linear)
    }

    /// The chunk with row-major number `linear`, or `None` if there are fewer chunks.
    ///
    /// ```
    /// let grid = pumice_space::ChunkGrid::new(&[10, 10], &[4, 5])?;
    /// assert_eq!(grid.chunk_at(5).unwrap().as_slice(), [2, 1]);
    /// assert_eq!(grid.linear(&[2, 1]), Some(5));
    /// assert_eq!(grid.chunk_at(6), None);
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn chunk_at(&self, linear: u64) -> Option<Dims> {
        let mut chunk = self.counts();
        let mut rest = linear;
        for at in chunk.iter_mut().rev() {
            let count = *at;
            *at = rest.checked_rem(count)?;
            rest /= count;
        }
        (rest == 0).then_some(chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_outside_the_array_have_no_cells() {
        let grid = ChunkGrid::new(&[10], &[4]).unwrap();
        assert!(grid.contains_chunk(&[2]) && !grid.contains_chunk(&[3]));
        assert!(!grid.contains_chunk(&[u64::MAX]));
        assert_eq!(grid.linear(&[3]), None);
    }

    #[test]
    fn an_empty_array_has_no_chunks() {
        let grid = ChunkGrid::new(&[0, 5], &[2, 2]).unwrap();
        assert_eq!(grid.chunk_count(), Some(0));
        assert_eq!(grid.chunk_at(0), None);
    }

    #[test]
    fn a_scalar_has_one_chunk() {
        let grid = ChunkGrid::new(&[], &[]).unwrap();
        assert_eq!((grid.chunk_count(), grid.cells_per_chunk()), (Some(1), 1));
        assert_eq!(grid.chunk_at(0).unwrap().len(), 0);
    }

    #[test]
    fn grids_too_large_to_number_still_answer() {
        let grid = ChunkGrid::new(&[u64::MAX, u64::MAX], &[2, 2]).unwrap();
        assert_eq!(grid.chunk_count(), None);
        assert_eq!(grid.chunk_of(&[7, u64::MAX - 1]).as_slice(), [3, u64::MAX / 2]);
        assert!(grid.is_partial(&[0, u64::MAX / 2]));
    }

    #[test]
    fn impossible_chunks_are_refused() {
        assert!(ChunkGrid::new(&[4], &[0]).is_err());
        assert!(ChunkGrid::new(&[4], &[1, 1]).is_err());
        assert!(ChunkGrid::new(&[4, 4], &[1 << 40, 1 << 40]).is_err());
        assert!(ChunkGrid::new(&[1; 33], &[1; 33]).is_err());
    }
}
