//! Matrices of the crate `sprs`.

use super::compressed::window::window_of;
use super::{Compressed, Duplicates, Lines};
use crate::Dataset;
use crate::select::Select;
use pumice_engine::dataset::Window;
use pumice_engine::{Error, Result};
use pumice_space::Points;
use pumice_types::Element;
use sprs::{CompressedStorage, CsMat, CsMatView};

impl Dataset {
    /// Defines the cells of a matrix of the crate `sprs`, by rows or columns.
    pub fn write_sprs<T: Element>(&self, matrix: CsMatView<'_, T>) -> Result<()> {
        let shape = [matrix.rows() as u64, matrix.cols() as u64];
        if self.shape() != shape {
            let what = format!(
                "a matrix of shape {shape:?} does not fit a dataset of shape {:?}",
                self.shape()
            );
            return self.at(Err(Error::Invalid(what)));
        }
        let pointers = matrix.proper_indptr();
        let pointers: Vec<u64> = pointers.iter().map(|&pointer| pointer as u64).collect();
        let indices: Vec<u64> = matrix.indices().iter().map(|&index| index as u64).collect();
        let points = match matrix.storage() {
            CompressedStorage::CSR => Points::compressed_rows(&pointers, &indices),
            CompressedStorage::CSC => Points::compressed_columns(&pointers, &indices),
        };
        let points = self.at(points.map_err(Error::from))?;
        self.write_by_rule(&points, matrix.data(), Duplicates::Last)
    }

    /// The defined cells as a matrix of the crate `sprs`.
    pub fn read_sprs<T: Element>(&self, lines: Lines) -> Result<CsMat<T>> {
        let (shape, compressed) = self.compressed::<T>(lines)?;
        self.matrix_of(compressed, [shape[0], shape[1]])
    }

    /// The defined cells of a window, as [`read_compressed_of`](Self::read_compressed_of) picks them, as a matrix of
    /// the crate `sprs` that has the window's shape.
    ///
    /// ```
    /// use pumice::{File, Lines};
    ///
    /// let file = File::in_memory()?;
    /// let matrix = file.new_dataset::<f32>().shape([4, 5]).sparse().create("matrix")?;
    /// matrix.write_points(&[[0, 4], [2, 1], [2, 3]], &[1f32, 2.0, 3.0])?;
    /// let window = matrix.read_sprs_of::<f32>((1..4, 2..), Lines::Rows)?;
    /// assert_eq!((window.shape(), window.get(1, 1)), ((3, 3), Some(&3.0)));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn read_sprs_of<T: Element>(
        &self,
        selection: impl Select,
        lines: Lines,
    ) -> Result<CsMat<T>> {
        self.require_matrix()?;
        let (shape, compressed) = self.selected(selection, |selection, shape| {
            let Window { rows, columns } = window_of(selection, shape)?;
            let width = columns.iter().map(|range| range.end - range.start).sum();
            Ok(([rows.len() as u64, width], self.read_compressed_of::<T>(selection, lines)?))
        })?;
        self.matrix_of(compressed, shape)
    }

    /// Some rows, in the order in which they are named, as a matrix of the crate `sprs`.
    ///
    /// ```
    /// use pumice::File;
    ///
    /// let file = File::in_memory()?;
    /// let matrix = file.new_dataset::<f32>().shape([4, 5]).sparse().create("matrix")?;
    /// matrix.write_points(&[[0, 4], [2, 1]], &[1f32, 2.0])?;
    /// let rows = matrix.read_sprs_rows::<f32>(&[2, 0, 1])?;
    /// assert_eq!((rows.shape(), rows.get(0, 1)), ((3, 5), Some(&2.0)));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn read_sprs_rows<T: Element>(&self, rows: &[u64]) -> Result<CsMat<T>> {
        self.require_matrix()?;
        let (width, compressed) =
            self.in_one_extent(|shape| Ok((shape[1], self.read_rows::<T>(rows)?)))?;
        self.matrix_of(compressed, [rows.len() as u64, width])
    }

    /// Compressed lines as a matrix of this shape.
    fn matrix_of<T: Element>(
        &self,
        compressed: Compressed<T>,
        shape: [u64; 2],
    ) -> Result<CsMat<T>> {
        let Compressed { lines, pointers, indices, values, .. } = compressed;
        let narrow = |numbers: Vec<u64>| -> Result<Vec<usize>> {
            let small = numbers.into_iter().map(usize::try_from).collect::<Result<_, _>>();
            small.map_err(|_| Error::NoMemory("a matrix too large for this machine".into()))
        };
        let shape = self.at(narrow(shape.to_vec()))?;
        let (pointers, indices) = (self.at(narrow(pointers))?, self.at(narrow(indices))?);
        let made = match lines {
            Lines::Rows => CsMat::try_new((shape[0], shape[1]), pointers, indices, values),
            Lines::Columns => CsMat::try_new_csc((shape[0], shape[1]), pointers, indices, values),
        };
        self.at(made.map_err(|(.., error)| Error::Invalid(error.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::File;
    use sprs::TriMat;

    #[test]
    fn matrices_come_back_by_rows_and_by_columns() {
        let mut triplets = TriMat::new((7, 9));
        for at in 0..7 {
            triplets.add_triplet(at, at * 4 % 9, at as f64);
        }
        let (rows, columns) = (triplets.to_csr::<usize>(), triplets.to_csc::<usize>());
        let file = File::in_memory().unwrap();
        for (name, matrix) in [("rows", &rows), ("columns", &columns)] {
            let builder = file.new_dataset::<f64>().shape([7, 9]).chunk([3, 4]).sparse();
            let dataset = builder.create(name).unwrap();
            dataset.write_sprs(matrix.view()).unwrap();
            assert_eq!(dataset.count_defined(..).unwrap(), 7, "the zero is defined");
            assert_eq!(dataset.read_sprs::<f64>(Lines::Rows).unwrap(), rows);
            assert_eq!(dataset.read_sprs::<f64>(Lines::Columns).unwrap(), columns);
        }
        let other = file.new_dataset::<f64>().shape([9, 7]).sparse().create("other").unwrap();
        assert!(other.write_sprs(rows.view()).is_err());
    }
}
