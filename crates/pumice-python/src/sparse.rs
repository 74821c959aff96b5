//! Sparse datasets as scipy has them: compressed rows and columns, coordinates one column per axis.
//!
//! Results go into numpy arrays without conversion; only indices of 64 bits become 32 wide where
//! they fit, as programs for sparse matrices expect. Indices of scipy are written without a copy.

use crate::dataset::PyDataset;
use crate::errors::{invalid, raised};
use crate::kinds::of_kind;
use crate::selection::PySelection;
use numpy::{PyArray1, PyReadonlyArray1};
use pumice::{Compressed, Dataset, Duplicates, Element, Lines, Points, ReadMany};
use pyo3::prelude::*;
use pyo3::types::PyList;

/// Pointers, indices and values.
type Arrays<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// Lines as arrays. Numbers of 32 bits hold counts, indices and the width of the matrix where they can.
fn arrays<'py, T: Element + numpy::Element>(
    py: Python<'py>,
    found: Compressed<T>,
    width: u64,
) -> Arrays<'py> {
    let Compressed { pointers, indices, values, .. } = found;
    let most = width.max(values.len() as u64).max(pointers.len() as u64);
    let values = PyArray1::from_vec(py, values).into_any();
    if most > i32::MAX as u64 {
        let wide = |list: Vec<u64>| PyArray1::from_vec(py, bytemuck::cast_vec::<u64, i64>(list));
        return (wide(pointers).into_any(), wide(indices).into_any(), values);
    }
    let narrow = |list: Vec<u64>| py.detach(|| list.iter().map(|&at| at as i32).collect());
    let array = |list: Vec<u64>| PyArray1::<i32>::from_vec(py, narrow(list)).into_any();
    (array(pointers), array(indices), values)
}

fn lines(columns: bool) -> Lines {
    match columns {
        true => Lines::Columns,
        false => Lines::Rows,
    }
}

fn rule(name: &str) -> PyResult<Duplicates> {
    match name {
        "last" => Ok(Duplicates::Last),
        "first" => Ok(Duplicates::First),
        "sum" => Ok(Duplicates::Sum),
        "error" => Ok(Duplicates::Error),
        other => Err(invalid(format!(
            "{other} is no rule for duplicates; there are last, first, sum and error"
        ))),
    }
}

/// The defined cells of a window of a matrix, or of all of it, as compressed lines.
#[pyfunction]
pub(crate) fn read_compressed<'py>(
    py: Python<'py>,
    dataset: &PyDataset,
    cells: Option<&PySelection>,
    kind: &str,
    columns: bool,
) -> PyResult<Arrays<'py>> {
    let dataset = dataset.dataset()?;
    let width = dataset.shape().iter().copied().max().unwrap_or(0);
    of_kind!(kind, T => {
        let read = || match cells {
            Some(cells) => dataset.read_compressed_of::<T>(&cells.0, lines(columns)),
            None => dataset.read_compressed::<T>(lines(columns)),
        };
        Ok(arrays(py, py.detach(read).map_err(raised)?, width))
    })
}

/// Some rows of a matrix, in any order, as compressed rows.
#[pyfunction]
pub(crate) fn read_rows<'py>(
    py: Python<'py>,
    dataset: &PyDataset,
    rows: PyReadonlyArray1<'py, u64>,
    kind: &str,
) -> PyResult<Arrays<'py>> {
    let (dataset, rows) = (dataset.dataset()?, rows.as_slice()?);
    let width = dataset.shape().iter().copied().max().unwrap_or(0);
    of_kind!(kind, T => {
        let found = py.detach(|| dataset.read_rows::<T>(rows)).map_err(raised)?;
        Ok(arrays(py, found, width))
    })
}

/// Some rows of several matrices of one type, all at the same time.
#[pyfunction]
pub(crate) fn read_many_rows<'py>(
    py: Python<'py>,
    reads: Vec<(PyRef<'py, PyDataset>, PyReadonlyArray1<'py, u64>)>,
    kind: &str,
) -> PyResult<Vec<Arrays<'py>>> {
    let datasets = reads.iter().map(|read| read.0.dataset()).collect::<PyResult<Vec<Dataset>>>()?;
    let rows = reads.iter().map(|read| read.1.as_slice()).collect::<Result<Vec<_>, _>>()?;
    of_kind!(kind, T => {
        let mut all: Vec<_> = rows.iter().map(|_| Compressed::<T>::new(Lines::Rows)).collect();
        py.detach(|| {
            let mut many = ReadMany::new();
            for ((dataset, rows), found) in datasets.iter().zip(&rows).zip(&mut all) {
                many.add_rows(dataset, rows, found)?;
            }
            many.run()
        })
        .map_err(raised)?;
        let width = |dataset: &Dataset| dataset.shape().iter().copied().max().unwrap_or(0);
        let each = all.into_iter().zip(&datasets);
        Ok(each.map(|(found, dataset)| arrays(py, found, width(dataset))).collect())
    })
}

/// Coordinates, an array for each axis, and values of defined cells; chunk after chunk.
#[pyfunction]
pub(crate) fn read_columns<'py>(
    py: Python<'py>,
    dataset: &PyDataset,
    cells: &PySelection,
    kind: &str,
) -> PyResult<(Bound<'py, PyList>, Bound<'py, PyAny>)> {
    let dataset = dataset.dataset()?;
    let wide = dataset.shape().iter().any(|&side| side > i32::MAX as u64);
    of_kind!(kind, T => {
        if wide {
            let found = py.detach(|| dataset.read_columns::<u64, T>(&cells.0)).map_err(raised)?;
            let axes = found.coordinates.into_iter().map(bytemuck::cast_vec::<u64, i64>);
            let axes = PyList::new(py, axes.map(|axis| PyArray1::from_vec(py, axis)).collect::<Vec<_>>())?;
            return Ok((axes, PyArray1::from_vec(py, found.values).into_any()));
        }
        let found = py.detach(|| dataset.read_columns::<u32, T>(&cells.0)).map_err(raised)?;
        let axes = found.coordinates.into_iter().map(bytemuck::cast_vec::<u32, i32>);
        let axes = PyList::new(py, axes.map(|axis| PyArray1::from_vec(py, axis)).collect::<Vec<_>>())?;
        Ok((axes, PyArray1::from_vec(py, found.values).into_any()))
    })
}

/// Coordinates of defined cells, an array for each axis; chunk after chunk.
#[pyfunction]
pub(crate) fn defined_columns<'py>(
    py: Python<'py>,
    dataset: &PyDataset,
    cells: &PySelection,
) -> PyResult<Bound<'py, PyList>> {
    let dataset = dataset.dataset()?;
    if dataset.shape().iter().any(|&side| side > i32::MAX as u64) {
        let found = py.detach(|| dataset.defined_columns::<u64>(&cells.0)).map_err(raised)?;
        let axes = found.into_iter().map(bytemuck::cast_vec::<u64, i64>);
        return PyList::new(py, axes.map(|axis| PyArray1::from_vec(py, axis)).collect::<Vec<_>>());
    }
    let found = py.detach(|| dataset.defined_columns::<u32>(&cells.0)).map_err(raised)?;
    let axes = found.into_iter().map(bytemuck::cast_vec::<u32, i32>);
    PyList::new(py, axes.map(|axis| PyArray1::from_vec(py, axis)).collect::<Vec<_>>())
}

/// The values of cells by their coordinates, an array for each axis.
#[pyfunction]
pub(crate) fn read_points<'py>(
    py: Python<'py>,
    dataset: &PyDataset,
    axes: Vec<Numbers<'py>>,
    kind: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let dataset = dataset.dataset()?;
    let points = points_of(&axes)?;
    of_kind!(kind, T => {
        let found: Vec<T> = py.detach(|| dataset.read_at(&points)).map_err(raised)?;
        Ok(PyArray1::from_vec(py, found).into_any())
    })
}

/// Makes cells undefined by their coordinates, an array for each axis.
#[pyfunction]
pub(crate) fn erase_points(
    py: Python<'_>,
    dataset: &PyDataset,
    axes: Vec<Numbers<'_>>,
) -> PyResult<()> {
    let dataset = dataset.dataset()?;
    let points = points_of(&axes)?;
    py.detach(|| dataset.erase_at(&points)).map_err(raised)
}

fn points_of<'a>(axes: &'a [Numbers<'_>]) -> PyResult<Points<'a>> {
    let columns = axes.iter().map(Numbers::column).collect::<PyResult<Vec<_>>>()?;
    Points::columns(columns).map_err(|error| raised(error.into()))
}

/// Numbers as scipy has them: 32 or 64 bits.
#[derive(FromPyObject)]
pub(crate) enum Numbers<'py> {
    #[pyo3(transparent)]
    Narrow(PyReadonlyArray1<'py, u32>),
    #[pyo3(transparent)]
    Wide(PyReadonlyArray1<'py, u64>),
}

impl Numbers<'_> {
    fn column(&self) -> PyResult<pumice::Column<'_>> {
        Ok(match self {
            Self::Narrow(list) => list.as_slice()?.into(),
            Self::Wide(list) => list.as_slice()?.into(),
        })
    }
}

/// Writes values of a numpy type to points, by a rule for those that repeat or are defined.
fn write(
    py: Python<'_>,
    dataset: &Dataset,
    points: &Points<'_>,
    values: &Bound<'_, PyAny>,
    kind: &str,
    duplicates: &str,
) -> PyResult<()> {
    let duplicates = rule(duplicates)?;
    of_kind!(kind, T => {
        let values: PyReadonlyArray1<'_, T> = values.extract()?;
        let values = values.as_slice()?;
        py.detach(|| dataset.write_by_rule(points, values, duplicates)).map_err(raised)
    })
}

/// Defines the cells of compressed lines.
#[pyfunction]
#[expect(clippy::too_many_arguments)]
pub(crate) fn write_compressed(
    py: Python<'_>,
    dataset: &PyDataset,
    pointers: Numbers<'_>,
    indices: Numbers<'_>,
    values: &Bound<'_, PyAny>,
    kind: &str,
    columns: bool,
    duplicates: &str,
) -> PyResult<()> {
    let dataset = dataset.dataset()?;
    let (pointers, indices) = (pointers.column()?, indices.column()?);
    let points = match columns {
        true => Points::compressed_columns(pointers, indices),
        false => Points::compressed_rows(pointers, indices),
    };
    let points = points.map_err(|error| raised(error.into()))?;
    write(py, &dataset, &points, values, kind, duplicates)
}

/// Defines cells by their coordinates, an array for each axis.
#[pyfunction]
pub(crate) fn write_columns(
    py: Python<'_>,
    dataset: &PyDataset,
    axes: Vec<Numbers<'_>>,
    values: &Bound<'_, PyAny>,
    kind: &str,
    duplicates: &str,
) -> PyResult<()> {
    let dataset = dataset.dataset()?;
    write(py, &dataset, &points_of(&axes)?, values, kind, duplicates)
}
