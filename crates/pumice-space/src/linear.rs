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
    /// The number of cells.
    pub len: u64,
}

impl Run {
    /// One past the last cell.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.len)
    }
}

/// Turns linear positions into coordinates, without divisions as long as they ascend within a row.
///
/// ```
/// let mut walker = pumice_space::CoordinateWalker::new(&[4, 10]);
/// assert_eq!(walker.seek(13), [1, 3]);
/// assert_eq!(walker.seek(20), [2, 0]);
/// ```
#[derive(Clone, Debug)]
pub struct CoordinateWalker {
    dims: Dims,
    coords: Dims,
    at: u64,
}

impl CoordinateWalker {
    /// A walker over an array of shape `dims`, standing at the first cell.
    pub fn new(dims: &[u64]) -> Self {
        Self { dims: dims.into(), coords: smallvec::smallvec![0; dims.len()], at: 0 }
    }

    /// Moves to linear position `cell` and gives its coordinates.
    ///
    /// Positions beyond the array wrap around.
    pub fn seek(&mut self, cell: u64) -> &[u64] {
        if cell < self.at {
            self.coords.fill(0);
            self.at = 0;
        }
        // No sum below overflows: at each dimension it is at most `cell` over the cells of a step.
        let mut carry = cell - self.at;
        self.at = cell;
        for (at, &size) in self.coords.iter_mut().zip(&self.dims).rev() {
            let sum = *at + carry;
            if sum < size {
                *at = sum;
                break;
            }
            let size = size.max(1);
            *at = sum % size;
            carry = sum / size;
        }
        &self.coords
    }

    /// Visits a run row by row: the coordinates of a row's first cell, and how many cells of the
    /// run follow from there along the last dimension.
    ///
    /// ```
    /// use pumice_space::{CoordinateWalker, Run};
    ///
    /// let mut rows = Vec::new();
    /// let run = Run { start: 3, len: 6 };
    /// CoordinateWalker::new(&[3, 5]).for_each_row(run, |at, len| rows.push((at[0], at[1], len)));
    /// assert_eq!(rows, [(0, 3, 2), (1, 0, 4)]);
    /// ```
    pub fn for_each_row(&mut self, run: Run, mut visit: impl FnMut(&[u64], u64)) {
        let width = self.dims.last().copied().unwrap_or(1);
        let (mut start, mut left) = (run.start, run.end() - run.start);
        while left > 0 {
            let coords = self.seek(start);
            let in_row = width - coords.last().copied().unwrap_or(0);
            // A row of no cells has none to visit; the step keeps the loop finite.
            let len = in_row.clamp(1, left);
            visit(coords, len);
            start += len;
            left -= len;
        }
    }
}

/// Row-major strides: how many cells one step along each dimension passes. `None` beyond 64 bits.
pub(crate) fn strides(dims: &[u64]) -> Option<Dims> {
    let mut strides: Dims = smallvec::smallvec![1; dims.len()];
    let mut cells = 1u64;
    for (stride, &size) in strides.iter_mut().zip(dims).rev() {
        *stride = cells;
        cells = cells.checked_mul(size.max(1))?;
    }
    Some(strides)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walking_matches_division_in_any_order() {
        let dims = [3, 4, 5];
        let mut walker = CoordinateWalker::new(&dims);
        for cell in (0..60).chain([7, 59, 0, 21, 20]) {
            let expected = [cell / 20, cell / 5 % 4, cell % 5];
            assert_eq!(walker.seek(cell), expected);
        }
    }

    #[test]
    fn a_scalar_is_one_row() {
        let mut rows = Vec::new();
        let run = Run { start: 0, len: 1 };
        CoordinateWalker::new(&[]).for_each_row(run, |at, len| rows.push((at.len(), len)));
        assert_eq!(rows, [(0, 1)]);
    }

    #[test]
    fn strides_refuse_more_than_64_bits() {
        assert_eq!(strides(&[2, 3, 4]).unwrap().as_slice(), [12, 4, 1]);
        assert!(strides(&[2, u64::MAX, u64::MAX]).is_none());
    }
}
