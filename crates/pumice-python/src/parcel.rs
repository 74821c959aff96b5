//! Chunks that other processes encode and one process stores.

use crate::collective::raised_together;
use crate::dataset::PyDataset;
use pumice_collective::parcel;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The bytes of a file whose dataset `bench` has the description of a dataset, and no chunk.
#[pyfunction]
pub(crate) fn template<'py>(py: Python<'py>, dataset: &PyDataset) -> PyResult<Bound<'py, PyBytes>> {
    let dataset = dataset.dataset()?;
    let bytes = py.detach(|| parcel::template(&dataset)).map_err(raised_together)?;
    Ok(PyBytes::new(py, &bytes))
}

/// The stored chunks of a dataset as bytes.
#[pyfunction]
pub(crate) fn pack_chunks<'py>(
    py: Python<'py>,
    dataset: &PyDataset,
) -> PyResult<Bound<'py, PyBytes>> {
    let dataset = dataset.dataset()?;
    let bytes = py.detach(|| parcel::pack(&dataset)).map_err(raised_together)?;
    Ok(PyBytes::new(py, &bytes))
}

/// Stores chunks that are bytes; tells how many there were.
#[pyfunction]
pub(crate) fn unpack_chunks(py: Python<'_>, dataset: &PyDataset, chunks: &[u8]) -> PyResult<usize> {
    let dataset = dataset.dataset()?;
    py.detach(|| parcel::unpack(&dataset, chunks)).map_err(raised_together)
}

/// Removes the chunks that begin in a box.
#[pyfunction]
pub(crate) fn remove_chunks(
    py: Python<'_>,
    dataset: &PyDataset,
    start: Vec<u64>,
    shape: Vec<u64>,
) -> PyResult<()> {
    let dataset = dataset.dataset()?;
    py.detach(|| parcel::remove(&dataset, &start, &shape)).map_err(raised_together)
}
