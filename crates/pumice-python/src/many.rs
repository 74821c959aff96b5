//! Reads and writes of many datasets in one call, on all threads.

use crate::dataset::PyDataset;
use crate::datatype::PyDatatype;
use crate::errors::raised;
use crate::selection::PySelection;
use numpy::{PyReadonlyArray1, PyReadwriteArray1};
use pumice::{Dataset, ReadMany, Transfer, WriteMany};
use pyo3::prelude::*;

/// A dataset, its cells, the datatype in memory, and memory.
type Read<'py> = (
    PyRef<'py, PyDataset>,
    PyRef<'py, PySelection>,
    PyRef<'py, PyDatatype>,
    PyReadwriteArray1<'py, u8>,
);

/// A dataset, its cells, the datatype in memory, and memory.
type Write<'py> = (
    PyRef<'py, PyDataset>,
    PyRef<'py, PySelection>,
    PyRef<'py, PyDatatype>,
    PyReadonlyArray1<'py, u8>,
);

/// Reads cells of datasets, all at the same time.
#[pyfunction]
pub(crate) fn read_many(py: Python<'_>, mut reads: Vec<Read<'_>>) -> PyResult<()> {
    let datasets = reads.iter().map(|read| read.0.dataset()).collect::<PyResult<Vec<Dataset>>>()?;
    let facts: Vec<_> = reads.iter().map(|read| (read.1.0.clone(), read.2.0.clone())).collect();
    let mut buffers = Vec::with_capacity(reads.len());
    for read in &mut reads {
        buffers.push(read.3.as_slice_mut()?);
    }
    py.detach(|| {
        let (mut many, plain) = (ReadMany::new(), Transfer::new());
        for ((dataset, (cells, datatype)), buffer) in datasets.iter().zip(&facts).zip(buffers) {
            many.add_as(dataset, cells, datatype, buffer, &plain)?;
        }
        many.run()
    })
    .map_err(raised)
}

/// Writes cells of datasets, all at the same time.
#[pyfunction]
pub(crate) fn write_many(py: Python<'_>, writes: Vec<Write<'_>>) -> PyResult<()> {
    let datasets =
        writes.iter().map(|write| write.0.dataset()).collect::<PyResult<Vec<Dataset>>>()?;
    let facts: Vec<_> = writes.iter().map(|write| (write.1.0.clone(), write.2.0.clone())).collect();
    let buffers = writes.iter().map(|write| write.3.as_slice()).collect::<Result<Vec<_>, _>>()?;
    py.detach(|| {
        let (mut many, plain) = (WriteMany::new(), Transfer::new());
        for ((dataset, (cells, datatype)), bytes) in datasets.iter().zip(&facts).zip(buffers) {
            many.add_as(dataset, cells, datatype, bytes, &plain)?;
        }
        many.run()
    })
    .map_err(raised)
}
