//! Coordinates of cells, one column per dimension.

use super::{CellSet, Form};
use crate::{CoordinateWalker, Run};

/// A number that holds coordinates: `u32` or `u64`.
///
/// ```
/// use pumice_space::Coordinate;
///
/// assert_eq!(u32::narrow(7), 7);
/// assert!(u32::holds(1 << 32) && !u32::holds((1 << 32) + 1));
/// ```
pub trait Coordinate: Copy + Send + Sync + 'static {
    /// The number of a coordinate that is known to fit.
    fn narrow(at: u64) -> Self;

    /// Whether all coordinates of a dimension of this size fit.
    fn holds(size: u64) -> bool;
}

impl Coordinate for u32 {
    #[inline(always)]
    fn narrow(at: u64) -> Self {
        at as u32
    }

    fn holds(size: u64) -> bool {
        size <= 1 << 32
    }
}

impl Coordinate for u64 {
    #[inline(always)]
    fn narrow(at: u64) -> Self {
        at
    }

    fn holds(_size: u64) -> bool {
        true
    }
}

impl CellSet {
    /// Writes the coordinates of all cells of a chunk of shape `dims` that begins at `origin`, one
    /// column per dimension, each as long as the set.
    ///
    /// ```
    /// use pumice_space::CellSet;
    ///
    /// let (mut rows, mut columns) = ([0u32; 3], [0u32; 3]);
    /// let set = CellSet::from_sorted_cells(20, [3, 11, 12])?;
    /// set.put_coordinates(&[4, 5], &[8, 0], &mut [&mut rows, &mut columns]);
    /// assert_eq!((rows, columns), ([8, 10, 10], [3, 1, 2]));
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    ///
    /// # Panics
    /// If a column is shorter than the set.
    pub fn put_coordinates<C: Coordinate>(
        &self,
        dims: &[u64],
        origin: &[u64],
        columns: &mut [&mut [C]],
    ) {
        match (dims, origin, columns, &self.form) {
            (&[_, width], &[top, left], [rows, columns], Form::Cells(list))
                if self.cells <= Division::MOST =>
            {
                put_pairs(list.cells(), width, (top, left), rows, columns);
            }
            (&[_, width], &[top, left], [rows, columns], Form::Bitmap(bits)) => {
                let mut pairs = Pairs::new(width, top);
                let mut places = rows.iter_mut().zip(columns.iter_mut());
                bits.for_each(|cell| {
                    let (row, column) = pairs.locate(cell);
                    if let Some((to_row, to_column)) = places.next() {
                        (*to_row, *to_column) = (C::narrow(row), C::narrow(left + column));
                    }
                });
            }
            (_, _, columns, _) => {
                let mut walker = CoordinateWalker::new(dims);
                let mut done = 0;
                self.for_each_run(|run| {
                    put_run(run, &mut walker, origin, columns, done);
                    done += run.len as usize;
                });
            }
        }
    }
}

impl CellSet {
    /// Whether all cells of a chunk of shape `dims`, which has an axis at least, lie in its corner of
    /// shape `inside`.
    ///
    /// ```
    /// use pumice_space::CellSet;
    ///
    /// let set = CellSet::from_sorted_cells(20, [3, 11, 12])?;
    /// assert!(set.is_inside(&[4, 5], &[3, 4]));
    /// assert!(!set.is_inside(&[4, 5], &[2, 5]) && !set.is_inside(&[4, 5], &[4, 3]));
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn is_inside(&self, dims: &[u64], inside: &[u64]) -> bool {
        match (dims, inside, &self.form) {
            (&[_, width], &[rows, columns], Form::Cells(list)) if self.cells <= Division::MOST => {
                let division = Division::by(width);
                // All are looked at, so that many are compared at once.
                list.cells().iter().fold(true, |all, &cell| {
                    let (row, column) = division.of(cell);
                    all & (row < rows) & (column < columns)
                })
            }
            _ => {
                let mut all = true;
                self.for_each_box(dims, |ranges, _| {
                    all &= ranges.iter().zip(inside).all(|((_, last), size)| last < size);
                });
                all
            }
        }
    }
}

/// A division by multiplication: exact for numbers below [`MOST`](Self::MOST), without branches, many
/// at once.
///
/// ```
/// use pumice_space::Division;
///
/// assert_eq!(Division::by(1280).of(4000), (3, 160));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Division {
    by: u64,
    factor: u64,
    shift: u32,
}

impl Division {
    /// All numbers below this can be divided.
    pub const MOST: u64 = 1 << 31;

    /// A division by `by`, which is not zero.
    pub fn by(by: u64) -> Self {
        // Larger divisors leave all such numbers as they are.
        let by = by.min(Self::MOST);
        let shift = 31 + by.next_power_of_two().trailing_zeros();
        Self { by, factor: (1u64 << shift).div_ceil(by), shift }
    }

    /// Quotient and remainder.
    #[inline(always)]
    pub fn of(self, number: u32) -> (u64, u64) {
        let quotient = (u64::from(number) * self.factor) >> self.shift;
        (quotient, u64::from(number) - quotient * self.by)
    }
}

/// Coordinates of scattered cells below 2^31 in rows of `width`.
fn put_pairs<C: Coordinate>(
    cells: &[u32],
    width: u64,
    (top, left): (u64, u64),
    rows: &mut [C],
    columns: &mut [C],
) {
    let division = Division::by(width);
    let places = rows[..cells.len()].iter_mut().zip(&mut columns[..cells.len()]);
    for (&cell, (to_row, to_column)) in cells.iter().zip(places) {
        let (row, column) = division.of(cell);
        (*to_row, *to_column) = (C::narrow(top + row), C::narrow(left + column));
    }
}

/// Rows and columns of cells that ascend.
struct Pairs {
    width: u64,
    /// The row that the last cell was in, and where it begins.
    row: u64,
    begin: u64,
}

impl Pairs {
    fn new(width: u64, top: u64) -> Self {
        Self { width, row: top, begin: 0 }
    }

    /// The row of a cell, and its place in the row.
    #[inline(always)]
    fn locate(&mut self, cell: u64) -> (u64, u64) {
        let at = cell - self.begin;
        if at < self.width {
            return (self.row, at);
        }
        let passed = if at < 2 * self.width { 1 } else { at / self.width };
        self.row += passed;
        self.begin += passed * self.width;
        (self.row, cell - self.begin)
    }
}

/// Coordinates of a run, from place `done` on.
fn put_run<C: Coordinate>(
    run: Run,
    walker: &mut CoordinateWalker,
    origin: &[u64],
    columns: &mut [&mut [C]],
    mut done: usize,
) {
    walker.for_each_row(run, |at, len| {
        let place = done..done + len as usize;
        done = place.end;
        let Some((fastest, slower)) = columns.split_last_mut() else { return };
        for ((column, at), from) in slower.iter_mut().zip(at).zip(origin) {
            column[place.clone()].fill(C::narrow(from + at));
        }
        let (at, from) = (at.last().copied().unwrap_or(0), origin.last().copied().unwrap_or(0));
        for (number, to) in (from + at..).zip(&mut fastest[place]) {
            *to = C::narrow(number);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_any_width_are_found_without_division() {
        for width in [1u64, 2, 3, 7, 1280, 4047, 65_535, 65_537, 1 << 30, (1 << 31) - 1, 1 << 31] {
            let near = (0..40).map(|n| n * width).flat_map(|at| [at.saturating_sub(1), at, at + 1]);
            let cells: Vec<u32> = near
                .chain([(1 << 31) - 1])
                .filter(|at| *at < 1 << 31)
                .map(|at| at as u32)
                .collect();
            let (mut rows, mut columns) = (vec![0u64; cells.len()], vec![0u64; cells.len()]);
            put_pairs(&cells, width, (5, 9), &mut rows, &mut columns);
            for ((cell, row), column) in cells.iter().zip(rows).zip(columns) {
                let cell = u64::from(*cell);
                assert_eq!((row, column), (5 + cell / width, 9 + cell % width), "{width}");
            }
        }
    }
}
