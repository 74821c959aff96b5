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
            (&[_, width], &[top, left], [rows, columns], Form::Cells(list)) => {
                put_pairs(list.cells(), width, (top, left), rows, columns);
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

/// Coordinates of scattered cells in rows of `width`.
fn put_pairs<C: Coordinate>(
    cells: &[u32],
    width: u64,
    (top, left): (u64, u64),
    rows: &mut [C],
    columns: &mut [C],
) {
    let (rows, columns) = (&mut rows[..cells.len()], &mut columns[..cells.len()]);
    // The row that the last cell was in, and where it begins.
    let (mut row, mut begin) = (top, 0u64);
    for ((&cell, to_row), to_column) in cells.iter().zip(rows).zip(columns) {
        let mut at = u64::from(cell) - begin;
        if at >= width {
            let passed = if at < 2 * width { 1 } else { at / width };
            row += passed;
            begin += passed * width;
            at = u64::from(cell) - begin;
        }
        *to_row = C::narrow(row);
        *to_column = C::narrow(left + at);
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
