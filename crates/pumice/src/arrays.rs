//! Arrays of the crate `ndarray`.

use crate::dataset::steady::bounded;
use crate::{Dataset, Element, Select};
use ndarray::{Array, ArrayBase, ArrayD, CowArray, Data, Dimension, IxDyn};
use pumice_engine::{Error, Result};

impl Dataset {
    /// Reads the selected cells as an array: of the selection's shape for boxes and regular
    /// hyperslabs, of one axis for points and other sets. An index keeps its axis, with one cell.
    ///
    /// ```
    /// use ndarray::{Array2, array};
    ///
    /// let file = pumice::File::in_memory()?;
    /// let squares = file.new_dataset::<i32>().shape([2, 3]).create("squares")?;
    /// squares.write_array(.., &array![[0i32, 1, 4], [9, 16, 25]])?;
    /// let corner: Array2<f64> = squares.read_array((.., 1..))?;
    /// assert_eq!(corner, array![[1.0, 4.0], [16.0, 25.0]]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn read_array<T: Element, D: Dimension>(
        &self,
        selection: impl Select,
    ) -> Result<Array<T, D>> {
        let (shape, values) = self.selected(selection, |selection, dims| {
            let selection = bounded(selection, dims)?;
            Ok((selection.shape(dims), self.read::<T>(&selection)?))
        })?;
        let shape: Vec<usize> = shape.iter().map(|&axis| axis as usize).collect();
        let array = ArrayD::from_shape_vec(IxDyn(&shape), values);
        let array = array.and_then(|array| array.into_dimensionality::<D>());
        array.map_err(|error| {
            let axes = D::NDIM.map_or("other".into(), |axes| axes.to_string());
            let what = format!("cells of shape {shape:?} as an array of {axes} axes: {error}");
            Error::Invalid(what).at(self.path())
        })
    }

    /// Writes an array over the selected cells, of which there must be as many; axes of one cell may
    /// be left out. An array that is not in row-major order is copied first.
    pub fn write_array<T: Element, S: Data<Elem = T>, D: Dimension>(
        &self,
        selection: impl Select,
        array: &ArrayBase<S, D>,
    ) -> Result<()> {
        let ordered: CowArray<'_, T, D> = array.as_standard_layout();
        // In standard layout an array is a slice.
        let values = ordered.as_slice().unwrap_or_default();
        self.selected(selection, |selection, dims| {
            let selection = bounded(selection, dims)?;
            let wanted: Vec<u64> =
                selection.shape(dims).into_iter().filter(|&axis| axis != 1).collect();
            let given = array.shape().iter().map(|&axis| axis as u64);
            if !given.filter(|&axis| axis != 1).eq(wanted.iter().copied()) {
                let what = format!("an array of shape {:?} for {wanted:?} cells", array.shape());
                return Err(Error::Invalid(what));
            }
            self.write(&selection, values)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{File, Selection};
    use ndarray::{Array1, Array2, Array3, ArrayD, array};

    #[test]
    fn arrays_of_any_order_and_rank_go_through_a_file() {
        let file = File::in_memory().unwrap();
        let dataset = file.new_dataset::<i16>().shape([3, 4]).chunk([2, 2]).create("d").unwrap();
        let array = Array2::from_shape_fn((3, 4), |(row, column)| (10 * row + column) as i16);
        dataset.write_array(.., &array.t().to_owned().t()).unwrap();
        assert_eq!(dataset.read_array::<i16, _>(..).unwrap(), array);
        assert_eq!(dataset.read_array::<i32, _>(..).unwrap(), array.mapv(i32::from).into_dyn());
        let column: Array2<i16> = dataset.read_array((.., 2)).unwrap();
        assert_eq!(column.into_raw_vec_and_offset().0, array.column(2).to_vec());
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
