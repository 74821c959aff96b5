//! Cells that are named one by one: write, read and erase them; defined cells as columns.
//!
//! [`Points`] borrows coordinates in the form an application has them: one column per axis (COO),
//! compressed rows or columns (CSR, CSC), or one after another. Nothing is copied or sorted
//! needlessly; points in row-major order are fastest.

mod varlen;

use crate::typed::is_unconvertible;
use crate::{Columns, Dataset, Select};
use pumice_engine::{Error, Result};
use pumice_layout::buffer::Output;
use pumice_space::{Coordinate, Points};
use pumice_types::{Element, H5Type, plain};

impl Dataset {
    /// Writes one value to each of the points, in any order; where a point repeats, its last value
    /// counts.
    ///
    /// ```
    /// use pumice::{File, Points};
    ///
    /// # let file = File::in_memory()?;
    /// let matrix = file.new_dataset::<f32>().shape([3, 5]).sparse().create("matrix")?;
    /// // Compressed rows: row 0 has columns 1 and 4, row 2 has column 3.
    /// let (pointers, columns) = ([0u32, 2, 2, 3], [1u32, 4, 3]);
    /// matrix.write_at(&Points::compressed_rows(&pointers[..], &columns[..])?, &[1.5f32, 2.5, 3.5])?;
    ///
    /// let points = Points::columns([&[0u64, 1][..], &[4, 4]])?;
    /// assert_eq!(matrix.read_at::<f32>(&points)?, [2.5, 0.0]);
    /// matrix.erase_at(&points)?;
    /// assert_eq!(matrix.count_defined(..)?, 2);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn write_at<T: H5Type>(&self, points: &Points<'_>, values: &[T]) -> Result<()> {
        if let Some(bytes) = plain::bytes(values) {
            self.make_room()?;
            let written = self.at(self.state().write_points(points, &T::datatype(), bytes));
            match written {
                Err(error) if is_unconvertible(&error) => {}
                done => return done,
            }
        }
        self.write(self.cells_of(points)?, values)
    }

    /// Writes elements of the dataset's own type to points; see [`write_at`](Self::write_at).
    pub fn write_bytes_at(&self, points: &Points<'_>, bytes: &[u8]) -> Result<()> {
        self.make_room()?;
        self.at(self.state().write_points(points, self.datatype(), bytes))
    }

    /// The value of each of the points, the fill value where none is defined.
    pub fn read_at<T: H5Type>(&self, points: &Points<'_>) -> Result<Vec<T>> {
        if let Some(values) = plain::zeroed::<T>(points.len()) {
            let mut values = self.at(values.map_err(Error::from))?;
            let output = Output::zeroed(plain::bytes_mut(&mut values).unwrap_or_default());
            match self.at(self.state().read_points(points, &T::datatype(), output)) {
                Err(error) if is_unconvertible(&error) => {}
                done => return done.map(|()| values),
            }
        }
        self.read(self.cells_of(points)?)
    }

    /// Makes the points of a sparse dataset undefined. Other layouts cannot say so: an error.
    pub fn erase_at(&self, points: &Points<'_>) -> Result<()> {
        self.require_erasable()?;
        self.make_room()?;
        self.at(self.state().erase_points(points))
    }

    /// Writes values to points, in any order; where a point repeats, its last value counts.
    pub fn write_points<T: H5Type, const N: usize>(
        &self,
        points: &[[u64; N]],
        values: &[T],
    ) -> Result<()> {
        self.write_at(&self.listed(N, points.as_flattened())?, values)
    }

    /// Writes one cell.
    pub fn write_point<T: H5Type>(&self, point: &[u64], value: T) -> Result<()> {
        self.require_rank(point)?;
        match point {
            // The one cell of a scalar.
            [] => self.write(.., &[value]),
            _ => self.write_coordinates(point, &[value]),
        }
    }

    /// Writes pairs of coordinates and value; see [`write_points`](Self::write_points).
    ///
    /// ```
    /// # let file = pumice::File::in_memory()?;
    /// let hits = file.new_dataset::<f32>().shape([9, 9]).sparse().create("hits")?;
    /// hits.write_cells([([2, 3], 1.5f32), ([7, 0], 0.0)])?;
    /// assert_eq!(hits.count_defined(..)?, 2, "a zero that was written is defined");
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn write_cells<T: H5Type, const N: usize>(
        &self,
        cells: impl IntoIterator<Item = ([u64; N], T)>,
    ) -> Result<()> {
        let (points, values): (Vec<[u64; N]>, Vec<T>) = cells.into_iter().unzip();
        self.write_points(&points, &values)
    }

    /// Writes values to points whose coordinates are one after another; see
    /// [`write_points`](Self::write_points).
    pub fn write_coordinates<T: H5Type>(&self, coordinates: &[u64], values: &[T]) -> Result<()> {
        self.write_at(&self.listed(self.state().dims().len(), coordinates)?, values)
    }
}

impl Dataset {
    /// Coordinates and values of the selected cells that are defined, one column per dimension.
    ///
    /// The fastest way to read many cells: the thread that decodes a chunk puts its cells straight
    /// into their places. `C` is `u32` (where the shape allows it) or `u64`. All cells of datasets
    /// that are not sparse are defined; unwritten ones have the fill value.
    ///
    /// ```
    /// # let file = pumice::File::in_memory()?;
    /// let matrix = file.new_dataset::<f32>().shape([3, 5]).sparse().create("matrix")?;
    /// matrix.write_points(&[[2, 3], [0, 4]], &[1.5f32, 2.5])?;
    /// let cells = matrix.read_columns::<u32, f32>(..)?;
    /// assert_eq!(cells.coordinates, [[0, 2], [4, 3]]);
    /// assert_eq!(cells.values, [2.5, 1.5]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn read_columns<C: Coordinate + bytemuck::Pod, T: Element>(
        &self,
        selection: impl Select,
    ) -> Result<Columns<C, T>> {
        self.selected(selection, |selection, _| self.state().read_columns(selection, true))
    }

    /// Coordinates of the selected cells that are defined, one column per dimension; values are not
    /// read.
    ///
    /// ```
    /// # let file = pumice::File::in_memory()?;
    /// let matrix = file.new_dataset::<f32>().shape([3, 5]).sparse().create("matrix")?;
    /// matrix.write_points(&[[2, 3], [0, 4]], &[1.5f32, 2.5])?;
    /// assert_eq!(matrix.defined_columns::<u64>((1.., ..))?, [[2], [3]]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn defined_columns<C: Coordinate + bytemuck::Pod>(
        &self,
        selection: impl Select,
    ) -> Result<Vec<Vec<C>>> {
        let columns: Columns<C, u8> =
            self.selected(selection, |selection, _| self.state().read_columns(selection, false))?;
        Ok(columns.coordinates)
    }
}
