//! Coordinates of cells, one column per dimension.

use super::{CellSet, Form, Overlap};
use crate::{CoordinateWalker, Run};
use std::ops::Range;

/// A number that holds coordinates: `u32` or `u64`.
///
/// ```
/// use pumice_space::Coordinate;
///
/// assert_eq!(u32::narrow(7), 7);
/// assert!(u32::holds(1 << 32) && !u32::holds((1 << 32) + 1));
/// ```
pub trait Coordinate: Copy + Ord + Send + Sync + 'static {
    /// The number of a coordinate that is known to fit.
    fn narrow(at: u64) -> Self;

    /// The sum of two, which is known to fit.
    fn sum(origin: u64, at: u32) -> Self;

    /// Whether all coordinates of a dimension of this size fit.
    fn holds(size: u64) -> bool;
}

impl Coordinate for u32 {
    #[inline(always)]
    fn narrow(at: u64) -> Self {
        at as u32
    }

    #[inline(always)]
    fn sum(origin: u64, at: u32) -> Self {
        (origin as u32).wrapping_add(at)
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

    #[inline(always)]
    fn sum(origin: u64, at: u32) -> Self {
        origin.wrapping_add(u64::from(at))
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
        match &self.form {
            Form::Cells(list) => {
                put_cells(list.cells(), dims, origin, columns);
            }
            _ => {
                let mut writer = RunWriter::new(dims, origin, columns);
                let mut fits = true;
                self.for_each_run(|run| fits &= writer.put(run));
                assert!(fits, "a column is shorter than the set");
            }
        }
    }
}

/// Writes the coordinates of ascending cells of a chunk of shape `dims` that begins at `origin`, one
/// column per dimension, each as long as there are cells or longer.
///
/// ```
/// let (mut rows, mut columns) = ([0u32; 2], [0u32; 2]);
/// pumice_space::put_cells(&[3, 11], &[4, 5], &[8, 0], &mut [&mut rows, &mut columns]);
/// assert_eq!((rows, columns), ([8, 10], [3, 1]));
/// ```
///
/// # Panics
/// If a column is shorter than the list.
#[inline(always)]
pub fn put_cells<C: Coordinate>(
    cells: &[u32],
    dims: &[u64],
    origin: &[u64],
    columns: &mut [&mut [C]],
) {
    match (dims, origin, columns) {
        (&[_, width], &[top, left], [rows, columns])
            if cells.last().is_none_or(|&last| u64::from(last) < Division::MOST) =>
        {
            put_pairs(cells, width, (top, left), rows, columns);
        }
        (&[.., width], _, columns) if width > 0 => put_by_rows(cells, dims, width, origin, columns),
        _ => {}
    }
}

/// Writes coordinates of ascending cells row by row: within a row only the last dimension differs.
fn put_by_rows<C: Coordinate>(
    cells: &[u32],
    dims: &[u64],
    width: u64,
    origin: &[u64],
    columns: &mut [&mut [C]],
) {
    let (Some((fastest, slower)), Some(&left)) = (columns.split_last_mut(), origin.last()) else {
        return;
    };
    let mut walker = CoordinateWalker::new(&dims[..dims.len() - 1]);
    let (mut done, mut rest) = (0, cells);
    while let Some(&first) = rest.first() {
        let row = u64::from(first) / width;
        let begin = row * width;
        let same = rest.iter().take_while(|cell| u64::from(**cell) - begin < width).count();
        let place = done..done + same;
        for ((column, at), from) in slower.iter_mut().zip(walker.seek(row)).zip(origin) {
            column[place.clone()].fill(C::narrow(from + at));
        }
        for (&cell, to) in rest[..same].iter().zip(&mut fastest[place]) {
            *to = C::narrow(left + (u64::from(cell) - begin));
        }
        (done, rest) = (done + same, &rest[same..]);
    }
}

/// Writes the coordinates of ascending runs of cells to columns, one per dimension.
///
/// ```
/// use pumice_space::{Run, RunWriter};
///
/// let (mut rows, mut columns) = ([0u32; 3], [0u32; 3]);
/// let mut both = [&mut rows[..], &mut columns[..]];
/// let mut writer = RunWriter::new(&[4, 5], &[8, 0], &mut both);
/// assert!(writer.put(Run { start: 3, len: 3 }));
/// assert!(!writer.put(Run { start: 10, len: 1 }), "the columns are full");
/// assert_eq!(writer.done(), 3);
/// assert_eq!((rows, columns), ([8, 8, 9], [3, 4, 0]));
/// ```
pub struct RunWriter<'a, 'c, C> {
    origin: &'a [u64],
    columns: &'a mut [&'c mut [C]],
    walker: CoordinateWalker,
    /// The width of a matrix's rows, and the division by it.
    width: u64,
    division: Division,
    /// Runs that end up to here are found by that division.
    near: u64,
    done: usize,
}

/// Coordinates that are written at a time. Most runs are shorter, and the next run overwrites the
/// excess.
const STRIDE: usize = 16;

impl<C> RunWriter<'_, '_, C> {
    /// The most cells of a short run.
    pub const SHORT: usize = STRIDE;
}

impl<'a, 'c, C: Coordinate> RunWriter<'a, 'c, C> {
    /// A writer of cells of a chunk of shape `dims` that begins at `origin`.
    pub fn new(dims: &[u64], origin: &'a [u64], columns: &'a mut [&'c mut [C]]) -> Self {
        let (width, near) = match (dims, origin, &*columns) {
            (&[_, width], [_, _], [_, _]) if width > 0 => (width, Division::MOST),
            _ => (1, 0),
        };
        let (walker, division) = (CoordinateWalker::new(dims), Division::by(width));
        Self { origin, columns, walker, width, division, near, done: 0 }
    }

    /// The number of written cells.
    pub fn done(&self) -> usize {
        self.done
    }

    /// Writes the cells of a run that begins no earlier than the last one ended; `false` if there is
    /// no room for them.
    #[inline(always)]
    pub fn put(&mut self, run: Run) -> bool {
        // Nothing here depends on where the run before was, and hardly anything has to be decided.
        let ([rows, columns], &[top, left]) = (&mut *self.columns, self.origin) else {
            return self.put_any(run);
        };
        let (row, column) = self.division.of(run.start as u32);
        let short = run.len <= STRIDE as u64 && column + run.len <= self.width;
        if short
            && run.start + run.len <= self.near
            && let Some(rows) =
                rows.get_mut(self.done..).and_then(|to| to.first_chunk_mut::<STRIDE>())
            && let Some(columns) =
                columns.get_mut(self.done..).and_then(|to| to.first_chunk_mut::<STRIDE>())
        {
            *rows = [C::sum(top, row as u32); STRIDE];
            *columns = std::array::from_fn(|at| C::sum(left, column as u32 + at as u32));
            self.done += run.len as usize;
            return true;
        }
        self.put_any(run)
    }

    /// [`put`](Self::put) for many runs, each given as its first cell and the cell after its last.
    ///
    /// ```
    /// use pumice_space::RunWriter;
    ///
    /// let (mut rows, mut columns) = ([0u32; 5], [0u32; 5]);
    /// let mut both = [&mut rows[..], &mut columns[..]];
    /// let mut writer = RunWriter::new(&[4, 5], &[8, 0], &mut both);
    /// assert!(writer.put_all(&[[3, 6], [10, 12]]));
    /// assert_eq!((rows, columns), ([8, 8, 9, 10, 10], [3, 4, 0, 0, 1]));
    /// ```
    #[inline(always)]
    pub fn put_all(&mut self, mut runs: &[[u64; 2]]) -> bool {
        loop {
            runs = runs.get(self.put_short(runs)..).unwrap_or_default();
            let Some((&[start, end], rest)) = runs.split_first() else { return true };
            if !self.put_any(Run { start, len: end - start }) {
                return false;
            }
            runs = rest;
        }
    }

    /// Writes short runs inside rows of a matrix, until a run is another or there is no more room
    /// than one may take; returns how many. The places behind them, as many as a short run may
    /// take, are overwritten.
    ///
    /// ```
    /// use pumice_space::RunWriter;
    ///
    /// let (mut rows, mut columns) = ([0u32; 20], [0u32; 20]);
    /// let mut both = [&mut rows[..], &mut columns[..]];
    /// let mut writer = RunWriter::new(&[4, 5], &[8, 0], &mut both);
    /// assert_eq!(writer.put_short(&[[2, 5], [6, 8], [9, 12], [13, 14]]), 2);
    /// assert_eq!(writer.done(), 5);
    /// assert_eq!((&rows[..5], &columns[..5]), (&[8, 8, 8, 9, 9][..], &[2, 3, 4, 1, 2][..]));
    /// ```
    #[inline(always)]
    pub fn put_short(&mut self, runs: &[[u64; 2]]) -> usize {
        let Self { width, division, near, .. } = *self;
        let ([rows, columns], &[top, left]) = (&mut *self.columns, self.origin) else { return 0 };
        let (mut done, mut taken) = (self.done, 0);
        for &[start, end] in runs {
            let (row, column) = division.of(start as u32);
            let len = end - start;
            let short = len <= STRIDE as u64 && column + len <= width && end <= near;
            let to = done..done + STRIDE;
            let (Some(rows), Some(columns), true) =
                (rows.get_mut(to.clone()), columns.get_mut(to), short)
            else {
                break;
            };
            rows.fill(C::sum(top, row as u32));
            for (at, to) in columns.iter_mut().enumerate() {
                *to = C::sum(left, column as u32 + at as u32);
            }
            done += len as usize;
            taken += 1;
        }
        self.done = done;
        taken
    }

    /// Writes any run, and no more than that.
    #[cold]
    fn put_any(&mut self, run: Run) -> bool {
        let room = |column: &&mut [C]| (column.len() - self.done.min(column.len())) as u64;
        if self.columns.iter().any(|column| room(column) < run.len) {
            return false;
        }
        put_run(run, &mut self.walker, self.origin, self.columns, self.done);
        self.done += run.len as usize;
        true
    }
}

impl CellSet {
    /// Whether all cells of a chunk of shape `dims`, of rank one or more, lie in its corner of
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
        if let (&[_, width], &[rows, columns]) = (dims, inside) {
            // Cells ascend, so that the last is in the highest row.
            let last = self.len.checked_sub(1).and_then(|last| self.select(last));
            let below = last.is_none_or(|last| last < rows.saturating_mul(width));
            if !below || columns >= width {
                return below;
            }
        }
        match (dims, inside, &self.form) {
            (&[_, width], &[_, columns], Form::Cells(list)) if self.cells <= Division::MOST => {
                let division = Division::by(width);
                // All are looked at, so that many are compared at once, and in halves of numbers.
                let (width, columns) = (width as u32, columns as u32);
                list.cells().iter().fold(true, |all, &cell| {
                    let row = division.of(cell).0 as u32;
                    all & (cell.wrapping_sub(row.wrapping_mul(width)) < columns)
                })
            }
            (&[_, width], &[_, columns], Form::Small(runs)) if self.cells <= Division::MOST => {
                let (division, mut all) = (Division::by(width), true);
                // One that goes on in another row has the margin of its first in it.
                runs.for_each(|run| {
                    all &= division.of(run.start as u32).1 + run.len <= columns;
                });
                all
            }
            (&[all, width], &[rows, columns], Form::Bitmap(bits)) => {
                (0..rows.min(all)).all(|row| {
                    let end = ((row + 1) * width).min(self.cells);
                    bits.next_run(row * width + columns, end).is_none()
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

/// Cells of a list that are compared at once.
const COMPARED: usize = 64;

/// The cells of a list that are compared in the time of one search, and the runs.
const SOUGHT: u64 = 48;
const SOUGHT_RUNS: u64 = 8;

impl CellSet {
    /// The positions of the cells that lie in a block of a matrix of shape `dims`, given by its first
    /// cell and its shape; `None` if the set's form is no list, or if the block is wide
    /// or its rows are better sought one by one.
    ///
    /// ```
    /// use pumice_space::CellSet;
    ///
    /// let set = CellSet::from_list(40_000, vec![3, 510, 531, 580, 1015])?;
    /// assert_eq!(set.list_in_block(&[80, 500], &[1, 10], &[70, 6]), Some(vec![1, 4]));
    /// assert_eq!(set.list_in_block(&[80, 500], &[1, 10], &[70, 400]), None);
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    #[inline(always)]
    pub fn list_in_block(&self, dims: &[u64], start: &[u64], count: &[u64]) -> Option<Vec<u32>> {
        let (Form::Cells(list), &[_, width]) = (&self.form, dims) else { return None };
        let (&[top, left], &[height, across]) = (start, count) else { return None };
        let list = list.cells();
        // Of a wide block, cells that are compared at once have some in it, which are then looked at one by one.
        let narrow = across.saturating_mul(COMPARED as u64) <= width;
        if self.cells > Division::MOST || width == 0 || !narrow {
            return None;
        }
        // Cells of the block's rows, whatever their column.
        let (above, below) =
            (top.saturating_mul(width), top.saturating_add(height).saturating_mul(width));
        let first = list.partition_point(|cell| u64::from(*cell) < above);
        let end = first + list[first..].partition_point(|cell| u64::from(*cell) < below);
        if height.saturating_mul(SOUGHT) < (end - first) as u64 {
            return None;
        }
        let division = Division::by(width);
        let [top, left, height, across] =
            [top, left, height, across].map(|at| at.min(1 << 31) as u32);
        let narrow = width as u32;
        let inside = |cell: u32| {
            let row = division.of(cell).0 as u32;
            let column = cell.wrapping_sub(row.wrapping_mul(narrow));
            (row.wrapping_sub(top) < height) & (column.wrapping_sub(left) < across)
        };
        let mut found = Vec::new();
        for (part, at) in list[first..end].chunks(COMPARED).zip((first as u32..).step_by(COMPARED))
        {
            // All are looked at, so that many are compared at once; few parts have any.
            if part.iter().fold(false, |any, cell| any | inside(*cell)) {
                found.extend(
                    part.iter().zip(at..).filter(|(cell, _)| inside(**cell)).map(|(_, at)| at),
                );
            }
        }
        Some(found)
    }
}

/// At most one of so many rows is expected to have a cell in a window that [`CellSet::list_in_rows`] looks for.
const RARE: u64 = 4;

impl CellSet {
    /// The positions of the cells that lie in some columns of rows that follow each other, which are sought row by row in a
    /// matrix with rows of `width` cells; `None` if the set's form is no list, or if a row in four or more is expected to have
    /// such a cell.
    ///
    /// ```
    /// use pumice_space::CellSet;
    ///
    /// let set = CellSet::from_list(40_000, vec![3, 510, 531, 580, 1015])?;
    /// assert_eq!(set.list_in_rows(500, 1..71, 10..16), Some(vec![1, 4]));
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    #[inline(always)]
    pub fn list_in_rows(
        &self,
        width: u64,
        rows: Range<u32>,
        columns: Range<u32>,
    ) -> Option<Vec<u32>> {
        let Form::Cells(list) = &self.form else { return None };
        let (left, across) = (u64::from(columns.start), columns.len() as u64);
        if across.saturating_mul(self.len).saturating_mul(RARE) > self.cells {
            return None;
        }
        let cells = list.cells();
        let seek = |row: u32, hint: usize, found: &mut Vec<u32>| {
            let start = u64::from(row) * width + left;
            let first = list.seek(start, hint);
            let inside =
                |at: &usize| cells.get(*at).is_some_and(|&at| u64::from(at) < start + across);
            found.extend((first..).take_while(inside).map(|at| at as u32));
            first
        };
        // Where a row is found, the next is sought from. Two halves of the rows have no need to wait for each other.
        let half = rows.len() as u32 / 2;
        let middle = rows.start + half;
        let (mut upper, mut lower) = (Vec::new(), Vec::new());
        let [mut above, mut below] =
            [rows.start, middle].map(|row| list.rank(u64::from(row) * width) as usize);
        for row in 0..half {
            above = seek(rows.start + row, above, &mut upper);
            below = seek(middle + row, below, &mut lower);
        }
        if !rows.len().is_multiple_of(2) {
            seek(rows.end - 1, below, &mut lower);
        }
        upper.append(&mut lower);
        Some(upper)
    }

    /// For rows of `width` cells that follow each other where the cells of each begin among those of all, and where those of
    /// the last end; `None` if the set's form does not tell that at once.
    ///
    /// ```
    /// use pumice_space::CellSet;
    ///
    /// let full = CellSet::full(12);
    /// assert_eq!(full.row_starts(4, 1..3), Some(vec![0, 4, 8]));
    /// ```
    pub fn row_starts(&self, width: u64, rows: Range<u32>) -> Option<Vec<u32>> {
        if !matches!(self.form, Form::Full | Form::Bitmap(_)) {
            return None;
        }
        let first = self.rank(u64::from(rows.start) * width);
        let rows = rows.start..=rows.end;
        Some(rows.map(|row| (self.rank(u64::from(row) * width) - first) as u32).collect())
    }
}

impl CellSet {
    /// The pieces of the set that lie in a block of a matrix of shape `dims`, given by its first cell and its
    /// shape; `None` if the set's form is no list of runs, or if the block's rows are better sought one by
    /// one.
    ///
    /// ```
    /// use pumice_space::{CellSet, Overlap, Run};
    ///
    /// let runs = (0..80).map(|row| Run { start: 500 * row + 7, len: 4 });
    /// let set = CellSet::from_runs(40_000, runs)?;
    /// let found = set.runs_in_block(&[80, 500], &[1, 10], &[70, 1]).unwrap();
    /// assert_eq!((found.len(), found[0]), (70, Overlap { cell: 510, position: 7, len: 1 }));
    /// # Ok::<(), pumice_space::SpaceError>(())
    /// ```
    pub fn runs_in_block(
        &self,
        dims: &[u64],
        start: &[u64],
        count: &[u64],
    ) -> Option<Vec<Overlap>> {
        let (Form::Small(runs), &[_, width]) = (&self.form, dims) else { return None };
        let (&[top, left], &[height, across]) = (start, count) else { return None };
        let first = runs.find(top.saturating_mul(width));
        let end = runs.find(top.saturating_add(height).saturating_mul(width)) + 1;
        let entries = runs.entries().get(first..(end + 1).min(runs.entries().len()))?;
        if self.cells > Division::MOST
            || width == 0
            || height.saturating_mul(SOUGHT_RUNS) < entries.len() as u64
        {
            return None;
        }
        let (division, right) = (Division::by(width), left.saturating_add(across).min(width));
        let rows = top..top.saturating_add(height);
        let mut found = Vec::new();
        for pair in entries.windows(2) {
            let (begin, before) = (pair[0].start, u64::from(pair[0].before));
            let (mut row, mut column) = division.of(begin);
            let mut position = before;
            // Hardly any run goes on in the next row.
            while position < u64::from(pair[1].before) {
                let len = (u64::from(pair[1].before) - position).min(width - column);
                let (from, to) = (column.max(left), (column + len).min(right));
                if from < to && rows.contains(&row) {
                    let position = position + (from - column);
                    found.push(Overlap { cell: row * width + from, position, len: to - from });
                }
                (row, column, position) = (row + 1, 0, position + len);
            }
        }
        Some(found)
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
    factor: u32,
    shift: u32,
}

impl Division {
    /// All numbers below this can be divided.
    pub const MOST: u64 = 1 << 31;

    /// A division by `by`, which is not zero.
    pub fn by(by: u64) -> Self {
        // Larger divisors give quotient 0 for all such numbers.
        let by = by.min(Self::MOST);
        let shift = 31 + by.next_power_of_two().trailing_zeros();
        // Below 2^32: the divisor is more than half of the power of two.
        Self { by, factor: (1u64 << shift).div_ceil(by) as u32, shift }
    }

    /// Quotient and remainder.
    #[inline(always)]
    pub fn of(self, number: u32) -> (u64, u64) {
        let quotient = (u64::from(number) * u64::from(self.factor)) >> self.shift;
        (quotient, u64::from(number) - quotient * self.by)
    }
}

/// Coordinates of scattered cells below 2^31 in rows of `width`.
#[inline(always)]
fn put_pairs<C: Coordinate>(
    cells: &[u32],
    width: u64,
    (top, left): (u64, u64),
    rows: &mut [C],
    columns: &mut [C],
) {
    let division = Division::by(width);
    // The lower halves of products and differences need the lower halves only, of which a register
    // takes twice as many.
    let width = width as u32;
    let places = rows[..cells.len()].iter_mut().zip(&mut columns[..cells.len()]);
    for (&cell, (to_row, to_column)) in cells.iter().zip(places) {
        let row = division.of(cell).0 as u32;
        let column = cell.wrapping_sub(row.wrapping_mul(width));
        (*to_row, *to_column) = (C::sum(top, row), C::sum(left, column));
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
    use crate::Selection;

    #[test]
    fn pieces_of_runs_in_a_block_are_those_that_its_rows_give() {
        let dims = [600, 47];
        let (mut random, mut at, mut runs) = (1u64, 0, Vec::new());
        while at < 600 * 47 - 200 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let len = if random >> 60 == 0 { 150 } else { 4 + (random >> 40) % 9 };
            runs.push(Run { start: at, len });
            at += len + 1 + (random >> 50) % 250;
        }
        let set = CellSet::from_runs(600 * 47, runs).unwrap();
        assert!(matches!(set.form, Form::Small(_)));
        let mut asked = 0;
        for start in [[0, 0], [0, 46], [70, 13], [599, 3], [300, 0]] {
            for count in [[1, 1], [600, 1], [200, 5], [600, 47], [90, 47]] {
                let count = [count[0].min(600 - start[0]), count[1].min(47 - start[1])];
                let block = Selection::block(&start, &count).unwrap();
                if let Some(found) = set.runs_in_block(&dims, &start, &count) {
                    let cells = |pieces: Vec<Overlap>| -> Vec<(u64, u64)> {
                        let all = pieces.into_iter().flat_map(|piece| {
                            (0..piece.len).map(move |at| (piece.cell + at, piece.position + at))
                        });
                        all.collect()
                    };
                    assert_eq!(cells(found), cells(set.overlaps(block.runs(&dims)).collect()));
                    asked += 1;
                }
            }
        }
        assert!(asked > 10, "most blocks are tall enough: {asked}");
    }

    #[test]
    fn cells_that_are_sought_row_by_row_are_those_that_a_look_at_each_finds() {
        let (mut random, mut list) = (1u64, Vec::new());
        for cell in 0..83 * 500 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Some rows have none, and some have many.
            if random >> 57 < (cell / 500) % 7 {
                list.push(cell as u32);
            }
        }
        let set = CellSet::from_list(83 * 500, list.clone()).unwrap();
        for rows in [0..83, 0..0, 5..6, 5..8, 12..82] {
            for columns in [0..1, 7..8, 250..252, 499..500] {
                let inside =
                    |cell: u32| rows.contains(&(cell / 500)) && columns.contains(&(cell % 500));
                let expected: Vec<u32> =
                    (0..).zip(&list).filter(|(_, cell)| inside(**cell)).map(|(at, _)| at).collect();
                let found = set.list_in_rows(500, rows.clone(), columns.clone());
                assert_eq!(found, Some(expected), "{rows:?}, {columns:?}");
            }
            assert_eq!(set.list_in_rows(500, rows.clone(), 0..300), None);
            assert_eq!(set.row_starts(500, rows.clone()), None);
            let bits = CellSet::from_sorted_cells(83 * 500, (0..83 * 500).filter(|at| at % 3 > 0));
            let bits = bits.unwrap();
            let starts = bits.row_starts(500, rows.clone()).unwrap();
            for (row, start) in rows.clone().zip(&starts) {
                let before =
                    bits.rank(u64::from(row) * 500) - bits.rank(u64::from(rows.start) * 500);
                assert_eq!(u64::from(*start), before);
            }
            assert_eq!(starts.len(), rows.len() + 1);
        }
    }

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
