//! Arrays of the crate `ndarray`.

use crate::dataset::steady::bounded;
use crate::{Dataset, DatasetBuilder, Group, H5Type, Select};
use ndarray::{Array, ArrayBase, ArrayD, CowArray, Data, Dimension, IxDyn};
use pumice_engine::{Error, Result};

impl Dataset {
    /// Reads the selected cells as an array: of the selection's shape for ranges, steps, lists and masks of axes, of
    /// one axis for points and other sets. An index drops its axis.
    ///
    /// ```
    /// use ndarray::{Array1, Array2, array};
    ///
    /// let file = pumice::File::in_memory()?;
    /// let squares = file.new_dataset::<i32>().shape([2, 3]).create("squares")?;
    /// squares.write_array(.., &array![[0i32, 1, 4], [9, 16, 25]])?;
    /// let corner: Array2<f64> = squares.read_array((.., 1..))?;
    /// assert_eq!(corner, array![[1.0, 4.0], [16.0, 25.0]]);
    /// let row: Array1<i32> = squares.read_array((1, ..))?;
    /// assert_eq!(row, array![9, 16, 25]);
    /// let ends: Array2<i32> = squares.read_array((.., &[0, 2]))?;
    /// assert_eq!(ends, array![[0, 4], [9, 25]]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn read_array<T: H5Type, D: Dimension>(
        &self,
        selection: impl Select,
    ) -> Result<Array<T, D>> {
        let (shape, values) = self.in_one_extent(|dims| {
            let cells = bounded(&selection.select(dims)?, dims)?;
            Ok((selection.shape(dims, &cells)?, self.read::<T>(&cells)?))
        })?;
        let shape: Vec<usize> = shape.iter().map(|&axis| axis as usize).collect();
        let array = ArrayD::from_shape_vec(IxDyn(&shape), values);
        let array = array.and_then(|array| array.into_dimensionality::<D>());
        array.map_err(|error| {
            let axes = D::NDIM.map_or("other".into(), |axes| axes.to_string());
            let what = format!("cells of shape {shape:?} as an array of {axes} axes: {error}");
            Error::RankMismatch(what).at(self.path())
        })
    }

    /// Writes an array over the selected cells, which must be as many; axes of one cell may be left
    /// out. An array that is not in row-major order is copied first.
    pub fn write_array<T: H5Type + Clone, S: Data<Elem = T>, D: Dimension>(
        &self,
        selection: impl Select,
        array: &ArrayBase<S, D>,
    ) -> Result<()> {
        let ordered: CowArray<'_, T, D> = array.as_standard_layout();
        // In standard layout an array is a slice.
        let values = ordered.as_slice().unwrap_or_default();
        self.in_one_extent(|dims| {
            let cells = bounded(&selection.select(dims)?, dims)?;
            let shape = selection.shape(dims, &cells)?;
            let wanted: Vec<u64> = shape.into_iter().filter(|&axis| axis != 1).collect();
            let given = array.shape().iter().map(|&axis| axis as u64);
            if !given.filter(|&axis| axis != 1).eq(wanted.iter().copied()) {
                let what = format!(
                    "an array of shape {:?} does not fit a selection of {wanted:?} cells",
                    array.shape()
                );
                return Err(Error::RankMismatch(what));
            }
            self.write(&cells, values)
        })
    }
}

impl Group {
    /// Makes a dataset of an array: of its type and shape, with its values.
    ///
    /// ```
    /// use ndarray::array;
    ///
    /// let file = pumice::File::in_memory()?;
    /// let squares = file.create_from("squares", &array![[0i32, 1, 4], [9, 16, 25]])?;
    /// assert_eq!(squares.shape(), [2, 3]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn create_from<T: H5Type + Clone, S: Data<Elem = T>, D: Dimension>(
        &self,
        path: &str,
        array: &ArrayBase<S, D>,
    ) -> Result<Dataset> {
        self.new_dataset::<T>().create_from(path, array)
    }
}

impl DatasetBuilder {
    /// Creates a dataset of the shape of an array, with its values; see [`create`](Self::create).
    ///
    /// ```
    /// use ndarray::array;
    ///
    /// let file = pumice::File::in_memory()?;
    /// let builder = file.new_dataset::<f32>().deflate(4);
    /// let squares = builder.create_from("squares", &array![[0i32, 1, 4], [9, 16, 25]])?;
    /// assert_eq!(squares.read::<f32>((1, 2))?, [25.0]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn create_from<T: H5Type + Clone, S: Data<Elem = T>, D: Dimension>(
        self,
        path: &str,
        array: &ArrayBase<S, D>,
    ) -> Result<Dataset> {
        let shape: Vec<u64> = array.shape().iter().map(|&axis| axis as u64).collect();
        let group = self.group().clone();
        let absent = group.absent_groups(path);
        let dataset =
            self.shape(shape).create(path).inspect_err(|_| group.remove_empty(&absent))?;
        match dataset.write_array(.., array) {
            Ok(()) => Ok(dataset),
            Err(error) => {
                // The first error says more than one about this.
                let _ = group.unlink(path);
                group.remove_empty(&absent);
                Err(error)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{File, Selection};
    use ndarray::{Array0, Array1, Array2, Array3, ArrayD, array};

    #[test]
    fn arrays_of_any_order_and_rank_go_through_a_file() {
        let file = File::in_memory().unwrap();
        let dataset = file.new_dataset::<i16>().shape([3, 4]).chunk([2, 2]).create("d").unwrap();
        let array = Array2::from_shape_fn((3, 4), |(row, column)| (10 * row + column) as i16);
        dataset.write_array(.., &array.t().to_owned().t()).unwrap();
        assert_eq!(dataset.read_array::<i16, _>(..).unwrap(), array);
        assert_eq!(dataset.read_array::<i32, _>(..).unwrap(), array.mapv(i32::from).into_dyn());
        let column: Array1<i16> = dataset.read_array((.., 2)).unwrap();
        assert_eq!(column, array.column(2));
        let one: Array2<i16> = dataset.read_array((.., 2..3)).unwrap();
        assert_eq!(one, array.slice(ndarray::s![.., 2..3]));
        let cell: Array0<i16> = dataset.read_array((1, 2)).unwrap();
        assert_eq!(cell.into_scalar(), 12);
        let steps: Array2<i16> = dataset.read_array((&[0, 2], (1..4).step_by(2))).unwrap();
        assert_eq!(steps, array![[1, 3], [21, 23]]);
        dataset.write_array((1, ..), &array![7i16, 8, 9, 10]).unwrap();
        let points = Selection::points(2, vec![1, 3, 0, 0]).unwrap();
        assert_eq!(dataset.read_array::<i16, _>(points).unwrap(), array![10, 0]);
        let every: ArrayD<i16> = dataset
            .read_array(Selection::hyperslab(&[0, 0], &[2, 2], &[2, 2], &[1, 1]).unwrap())
            .unwrap();
        assert_eq!(every, array![[0, 2], [20, 22]].into_dyn());
    }

    #[test]
    fn wrong_shapes_are_errors() {
        let file = File::in_memory().unwrap();
        let dataset = file.new_dataset::<i16>().shape([3, 4]).create("d").unwrap();
        let error = dataset.read_array::<i16, ndarray::Ix3>(..).unwrap_err();
        assert!(error.to_string().contains("3 axes"), "{error}");
        assert!(dataset.write_array(.., &Array1::<i16>::zeros(12)).is_err());
        assert!(dataset.write_array(.., &Array2::<i16>::zeros((4, 3))).is_err());
        assert!(dataset.write_array(.., &Array3::<i16>::zeros((1, 3, 4))).is_ok());
    }
}
