//! Windows of matrices as compressed lines: rows and columns that are picked, in the window's own coordinates.

use super::{Compressed, Lines};
use crate::select::Select;
use crate::{Dataset, Defined};
use pumice_engine::dataset::{LinesInto, Window, WindowRows};
use pumice_engine::{Error, Result};
use pumice_medium::reserved;
use pumice_space::{Dims, Selection};
use pumice_types::Element;
use std::ops::Range;

impl Dataset {
    /// Some rows of a matrix as compressed rows, in the order in which they are named. A row may be named twice.
    ///
    /// ```
    /// use pumice::File;
    ///
    /// let file = File::in_memory()?;
    /// let matrix = file.new_dataset::<f32>().shape([4, 5]).sparse().create("matrix")?;
    /// matrix.write_points(&[[0, 4], [2, 1], [2, 3]], &[1f32, 2.0, 3.0])?;
    /// let rows = matrix.read_rows::<f32>(&[2, 1, 0])?;
    /// assert_eq!(rows.pointers, [0, 2, 2, 3]);
    /// assert_eq!(rows.indices, [1, 3, 4]);
    /// assert_eq!(rows.values, [2.0, 3.0, 1.0]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn read_rows<T: Element>(&self, rows: &[u64]) -> Result<Compressed<T>> {
        let mut found = Compressed::new(Lines::Rows);
        self.read_rows_into(rows, &mut found)?;
        Ok(found)
    }

    /// [`read_rows`](Self::read_rows) into existing lists: their contents are replaced, and they
    /// grow only if they have to.
    ///
    /// ```
    /// use pumice::{Compressed, File, Lines};
    ///
    /// let file = File::in_memory()?;
    /// let matrix = file.new_dataset::<f32>().shape([400, 5]).sparse().create("matrix")?;
    /// matrix.write_points(&[[0, 4], [222, 1]], &[1f32, 2.0])?;
    /// let mut batch = Compressed::<f32>::new(Lines::Rows);
    /// let mut sum = 0.0;
    /// for rows in (0..400).collect::<Vec<u64>>().chunks(32) {
    ///     matrix.read_rows_into(rows, &mut batch)?;
    ///     sum += batch.values.iter().sum::<f32>();
    /// }
    /// assert_eq!(sum, 3.0);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn read_rows_into<T: Element>(
        &self,
        rows: &[u64],
        found: &mut Compressed<T>,
    ) -> Result<()> {
        self.require_matrix()?;
        self.in_one_extent(|shape| {
            self.read_window(window_of_rows(rows, shape)?, shape, Lines::Rows, found)
        })
    }

    /// The defined cells of a window of a matrix as compressed lines. Lines and indices count from
    /// the window's corner: line `n` is the n-th selected row (or column), index `m` the m-th
    /// selected column (or row).
    ///
    /// A window is a range, steps or a list of rows, combined with one of columns; a list of points
    /// is not a window.
    ///
    /// ```
    /// use pumice::{File, Lines};
    ///
    /// let file = File::in_memory()?;
    /// let matrix = file.new_dataset::<f32>().shape([4, 5]).sparse().create("matrix")?;
    /// matrix.write_points(&[[0, 4], [2, 1], [2, 3]], &[1f32, 2.0, 3.0])?;
    /// let window = matrix.read_compressed_of::<f32>((1..4, 2..), Lines::Rows)?;
    /// assert_eq!(window.pointers, [0, 0, 1, 1]);
    /// assert_eq!((window.indices, window.values), (vec![1], vec![3.0]));
    /// let columns = matrix.read_compressed_of::<f32>((1..4, 2..), Lines::Columns)?;
    /// assert_eq!(columns.pointers, [0, 0, 1, 1]);
    /// assert_eq!((columns.indices, columns.values), (vec![1], vec![3.0]));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn read_compressed_of<T: Element>(
        &self,
        selection: impl Select,
        lines: Lines,
    ) -> Result<Compressed<T>> {
        let mut found = Compressed::new(lines);
        self.read_compressed_into(selection, &mut found)?;
        Ok(found)
    }

    /// [`read_compressed_of`](Self::read_compressed_of) into existing lists; `found` says which
    /// lines are compressed.
    ///
    /// ```
    /// use pumice::{Compressed, File, Lines};
    ///
    /// let file = File::in_memory()?;
    /// let matrix = file.new_dataset::<f32>().shape([4, 5]).sparse().create("matrix")?;
    /// matrix.write_points(&[[0, 4], [2, 1], [2, 3]], &[1f32, 2.0, 3.0])?;
    /// let mut window = Compressed::<f64>::new(Lines::Columns);
    /// matrix.read_compressed_into((2, ..), &mut window)?;
    /// assert_eq!(window.pointers, [0, 0, 1, 1, 2, 2]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn read_compressed_into<T: Element>(
        &self,
        selection: impl Select,
        found: &mut Compressed<T>,
    ) -> Result<()> {
        self.require_matrix()?;
        let lines = found.lines;
        self.selected(selection, |selection, shape| {
            self.read_window(window_of(selection, shape)?, shape, lines, found)
        })
    }

    fn read_window<T: Element>(
        &self,
        window: Window,
        shape: &Dims,
        lines: Lines,
        found: &mut Compressed<T>,
    ) -> Result<()> {
        (found.lines, found.first) = (lines, 0);
        if !self.state().read_window(&window, found.room())? {
            *found = self.look_for(&window, shape, lines)?;
        }
        Ok(())
    }

    /// A window of a matrix that has no lists of cells, or too many: cell by cell.
    pub(crate) fn look_for<T: Element>(
        &self,
        window: &Window,
        shape: &Dims,
        lines: Lines,
    ) -> Result<Compressed<T>> {
        let wanted = window.rows.list()?;
        let mut rows = wanted.to_vec();
        rows.sort_unstable();
        rows.dedup();
        let mut blocks = Vec::new();
        for row in ranges(&rows) {
            for column in window.columns.iter().filter(|range| !range.is_empty()) {
                let count = [row.end - row.start, column.end - column.start];
                blocks.push(Selection::block(&[row.start, column.start], &count)?);
            }
        }
        let cells = Selection::union_of(2, blocks, shape)?;
        let mut found = match cells.count(shape) {
            0 => Defined { rank: 2, coordinates: Vec::new(), values: Vec::new() },
            _ => self.read_defined::<T>(&cells)?,
        };
        for point in found.coordinates.chunks_exact_mut(2) {
            point[0] = rows.partition_point(|row| *row < point[0]) as u64;
            point[1] = place(&window.columns, point[1]);
        }
        let count = [rows.len() as u64, window.width()][lines.axis()];
        let once = Compressed::of(lines, 0, count, &found)?;
        if lines == Lines::Columns || window.rows.ascends() {
            return Ok(once);
        }
        let mut all = Compressed::new(lines);
        all.pointers.push(0);
        for row in &*wanted {
            let line = rows.partition_point(|other| other < row);
            let cells = once.pointers[line] as usize..once.pointers[line + 1] as usize;
            all.indices.extend_from_slice(&once.indices[cells.clone()]);
            all.values.extend_from_slice(&once.values[cells]);
            all.pointers.push(all.indices.len() as u64);
        }
        Ok(all)
    }
}

impl<T> Compressed<T> {
    /// The lists that the engine fills.
    pub(crate) fn room(&mut self) -> LinesInto<'_, T> {
        let by_columns = self.lines == Lines::Columns;
        let Self { pointers, indices, values, .. } = self;
        LinesInto { by_columns, pointers, indices, values }
    }
}

/// The window of some rows of a matrix.
pub(crate) fn window_of_rows(rows: &[u64], shape: &[u64]) -> Result<Window> {
    let mut wanted = reserved(rows.len())?;
    wanted.extend_from_slice(rows);
    let width = shape.get(1).copied().unwrap_or(0);
    let columns = std::iter::once(0..width).filter(|range| !range.is_empty()).collect();
    Ok(Window { rows: WindowRows::Listed(wanted), columns })
}

/// The window that a selection of a matrix is; an error if it is none.
pub(crate) fn window_of(selection: &Selection, shape: &[u64]) -> Result<Window> {
    Window::of(selection, shape)?.ok_or_else(|| {
        let what = "compressed lines are those of some rows and some columns, not of any cells";
        Error::Invalid(what.into())
    })
}

/// Ascending numbers as ranges.
fn ranges(numbers: &[u64]) -> Vec<Range<u64>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    for &number in numbers {
        match ranges.last_mut().filter(|range| range.end == number) {
            Some(range) => range.end += 1,
            None => ranges.push(number..number + 1),
        }
    }
    ranges
}

/// The number of indices before `number` in ascending ranges.
fn place(ranges: &[Range<u64>], number: u64) -> u64 {
    ranges.iter().map(|range| number.clamp(range.start, range.end) - range.start).sum()
}
