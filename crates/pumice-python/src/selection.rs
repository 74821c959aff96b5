//! Selections: which cells of a dataset.

use crate::errors::{invalid, raised};
use numpy::{PyArray1, PyReadonlyArray1};
use pumice::Selection;
use pyo3::exceptions::{PyIndexError, PyOverflowError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyEllipsis, PyInt, PySlice, PyTuple};
use smallvec::SmallVec;

/// Some cells of an array.
#[pyclass(frozen, name = "Selection", module = "pumice._pumice")]
#[derive(Clone)]
pub(crate) struct PySelection(pub(crate) Selection);

/// Start, stride, count and block along each axis.
type Slabs = (Vec<u64>, Vec<u64>, Vec<u64>, Vec<u64>);

fn made<E: Into<pumice::Error>>(selection: Result<Selection, E>) -> PyResult<PySelection> {
    selection.map(PySelection).map_err(|error| raised(error.into()))
}

#[pymethods]
impl PySelection {
    /// Every cell.
    #[staticmethod]
    fn all() -> Self {
        Self(Selection::all())
    }

    /// No cell.
    #[staticmethod]
    fn none() -> Self {
        Self(Selection::none())
    }

    /// Along each axis `count` blocks of `block` cells, `stride` apart.
    #[staticmethod]
    fn hyperslab(
        start: Vec<u64>,
        stride: Vec<u64>,
        count: Vec<u64>,
        block: Vec<u64>,
    ) -> PyResult<Self> {
        made(Selection::hyperslab(&start, &stride, &count, &block))
    }

    /// The cells whose index along each axis is in the axis's ascending list.
    #[staticmethod]
    fn outer(axes: Vec<PyReadonlyArray1<'_, u64>>) -> PyResult<Self> {
        let axes: Vec<_> =
            axes.iter().map(|axis| axis.as_slice().map(spans)).collect::<Result<_, _>>()?;
        if axes.iter().any(Vec::is_empty) {
            return Ok(Self(Selection::none()));
        }
        made(Selection::product(&axes))
    }

    /// Cells by their coordinates, one point after another, in that order.
    #[staticmethod]
    fn points(rank: usize, coordinates: PyReadonlyArray1<'_, u64>) -> PyResult<Self> {
        made(Selection::points(rank, coordinates.as_slice()?.to_vec()))
    }

    /// The number of selected cells in an array of this shape.
    fn count(&self, shape: Vec<u64>) -> u64 {
        self.0.count(&shape)
    }

    /// The first and the last corner of the box around the cells.
    fn bounds(&self, shape: Vec<u64>) -> Option<(Vec<u64>, Vec<u64>)> {
        self.0.bounds(&shape).map(|(low, high)| (low.to_vec(), high.to_vec()))
    }

    /// The shape of the cells, if they form an array.
    fn shape(&self, shape: Vec<u64>) -> Vec<u64> {
        self.0.shape(&shape).to_vec()
    }

    /// Complains of a selection that does not fit into the shape.
    fn check(&self, shape: Vec<u64>) -> PyResult<()> {
        self.0.check(&shape).map_err(|error| raised(error.into()))
    }

    /// "all", "none", "points" or "hyperslab".
    #[getter]
    fn kind(&self) -> &'static str {
        match &self.0 {
            all if all.is_all() => "all",
            none if none.is_none() => "none",
            points if points.as_points().is_some() => "points",
            _ => "hyperslab",
        }
    }

    /// Start, stride, count and block of each axis, if it is one regular hyperslab.
    fn regular(&self) -> Option<Slabs> {
        let axes = self.0.regular()?;
        let all = |field: fn(&pumice::HyperslabAxis) -> u64| axes.iter().map(field).collect();
        Some((all(|a| a.start), all(|a| a.stride), all(|a| a.count), all(|a| a.block)))
    }

    /// The coordinates, one point after another, if it is a list of points.
    fn coordinates<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<u64>>> {
        self.0.as_points().map(|(_, list)| PyArray1::from_slice(py, list))
    }

    /// The boxes that the cells consist of: first corners and lengths.
    fn blocks(&self, shape: Vec<u64>) -> Vec<(Vec<u64>, Vec<u64>)> {
        let mut blocks = Vec::new();
        self.0.for_each_block(&shape, |start, count| blocks.push((start.into(), count.into())));
        blocks
    }

    /// The cells of both ("and"), of either ("or"), of one of them ("xor"), of this one alone
    /// ("notb") or of the other alone ("nota").
    fn combine(&self, how: &str, other: &Self, shape: Vec<u64>) -> PyResult<Self> {
        let (one, two) = (&self.0, &other.0);
        made(match how {
            "and" => one.and(two, &shape),
            "or" => one.or(two, &shape),
            "xor" => one.xor(two, &shape),
            "notb" => one.not_b(two, &shape),
            "nota" => two.not_b(one, &shape),
            other => return Err(invalid(format!("{other} is no way to combine selections"))),
        })
    }
}

/// Ascending numbers as spans: first and last.
fn spans(list: &[u64]) -> Vec<(u64, u64)> {
    let mut spans: Vec<(u64, u64)> = Vec::new();
    for &at in list {
        match spans.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(at) => *last = at,
            _ => spans.push((at, at)),
        }
    }
    spans
}

/// A selection, its count along each axis, and which axes an integer has fixed.
pub(crate) type Simple = (PySelection, Vec<u64>, Vec<bool>);

/// One axis of a simple index.
#[derive(Clone, Copy)]
struct Axis {
    start: u64,
    step: u64,
    count: u64,
    scalar: bool,
}

/// The axes of a simple index: integers, slices and an ellipsis.
pub(crate) struct Axes(SmallVec<[Axis; 4]>);

impl Axes {
    fn each<T>(&self, field: fn(&Axis) -> T) -> SmallVec<[T; 4]>
    where
        [T; 4]: smallvec::Array<Item = T>,
    {
        self.0.iter().map(field).collect()
    }

    /// Whether no cell is selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().any(|axis| axis.count == 0)
    }

    /// The cells.
    pub(crate) fn selection(&self) -> PyResult<Selection> {
        if self.0.is_empty() {
            return Ok(Selection::all());
        }
        if self.is_empty() {
            return Ok(Selection::none());
        }
        let (start, count) = (self.each(|axis| axis.start), self.each(|axis| axis.count));
        let made = match self.0.iter().all(|axis| axis.step == 1) {
            true => Selection::block(&start, &count),
            false => {
                let step = self.each(|axis| axis.step);
                Selection::hyperslab(&start, &step, &count, &self.each(|_| 1))
            }
        };
        made.map_err(|error| raised(error.into()))
    }

    /// The shape of the array of the cells: integers leave no axis.
    pub(crate) fn sides(&self) -> SmallVec<[usize; 4]> {
        self.0.iter().filter(|axis| !axis.scalar).map(|axis| axis.count as usize).collect()
    }
}

/// The selection of integers, slices and an ellipsis, the count along each axis, and which axes an
/// integer has fixed; `None` if the index has anything else.
#[pyfunction]
pub(crate) fn simple_index(
    shape: Vec<u64>,
    index: &Bound<'_, PyTuple>,
) -> PyResult<Option<Simple>> {
    let Some(axes) = simple_axes(&shape, index)? else { return Ok(None) };
    let counts = axes.0.iter().map(|axis| axis.count).collect();
    let scalars = axes.0.iter().map(|axis| axis.scalar).collect();
    Ok(Some((PySelection(axes.selection()?), counts, scalars)))
}

/// The axes of an index of integers, slices and an ellipsis; `None` if it has anything else.
pub(crate) fn simple_axes(shape: &[u64], index: &Bound<'_, PyTuple>) -> PyResult<Option<Axes>> {
    let mut axes: SmallVec<[Axis; 4]> = SmallVec::new();
    let (mut rest, given) = (false, index.len());
    for (at, item) in index.iter_borrowed().enumerate() {
        if is_ellipsis(&item) {
            if rest {
                return Err(PyValueError::new_err("Only one ellipsis may be used."));
            }
            rest = true;
            let behind = given - at - 1;
            while axes.len() + behind < shape.len() {
                axes.push(whole(shape[axes.len()]));
            }
            continue;
        }
        let Some(&length) = shape.get(axes.len()) else {
            return match is_simple(&item) {
                true => Err(too_many(index, shape.len())),
                false => Ok(None),
            };
        };
        match axis(&item, length)? {
            Some(axis) => axes.push(axis),
            None => return Ok(None),
        }
    }
    while axes.len() < shape.len() {
        axes.push(whole(shape[axes.len()]));
    }
    Ok(Some(Axes(axes)))
}

fn is_ellipsis(item: &Bound<'_, PyAny>) -> bool {
    item.is_instance_of::<PyEllipsis>()
}

fn whole(length: u64) -> Axis {
    Axis { start: 0, step: 1, count: length, scalar: false }
}

fn is_simple(item: &Bound<'_, PyAny>) -> bool {
    item.is_instance_of::<PyInt>() || item.is_instance_of::<PySlice>()
}

fn too_many(index: &Bound<'_, PyTuple>, rank: usize) -> PyErr {
    let given = index.iter_borrowed().filter(|item| !is_ellipsis(item)).count();
    PyValueError::new_err(format!("{given} indexing arguments for {rank} dimensions"))
}

/// The selection of one item along an axis; `None` if it is neither integer nor slice.
fn axis(item: &Bound<'_, PyAny>, length: u64) -> PyResult<Option<Axis>> {
    if let Ok(slice) = item.cast::<PySlice>() {
        return sliced(slice, length).map(Some);
    }
    let out = |index: &str| match length {
        0 => PyIndexError::new_err(format!("Index ({index}) out of range for empty dimension")),
        _ => PyIndexError::new_err(format!("Index ({index}) out of range for (0-{})", length - 1)),
    };
    let index = match item.extract::<i64>() {
        Ok(index) => i128::from(index),
        Err(error) if error.is_instance_of::<PyOverflowError>(item.py()) => {
            return Err(out(&item.to_string()));
        }
        Err(_) => return Ok(None),
    };
    let index = if index < 0 { index + i128::from(length) } else { index };
    let start = u64::try_from(index).ok().filter(|&index| index < length);
    let start = start.ok_or_else(|| out(&index.to_string()))?;
    Ok(Some(Axis { start, step: 1, count: 1, scalar: true }))
}

fn sliced(slice: &Bound<'_, PySlice>, length: u64) -> PyResult<Axis> {
    let long = isize::try_from(length).map_err(|_| invalid("an axis that is too long"))?;
    let found = slice.indices(long)?;
    if found.step < 1 {
        return Err(PyValueError::new_err(format!("Step must be >= 1 (got {})", found.step)));
    }
    let (start, stop) = (found.start, found.stop);
    if stop < start {
        // numpy gives nothing, and so does this.
        return Ok(Axis { start: 0, step: 1, count: 0, scalar: false });
    }
    let count = ((stop - start) as u64).div_ceil(found.step as u64);
    let step = if count <= 1 { 1 } else { found.step as u64 };
    Ok(Axis { start: start as u64, step, count, scalar: false })
}
