//! Files that several ranks write and read together.
//!
//! Every rank makes the same calls. What each rank does before a call, and what can fail there, is handed to
//! `agree`, so that no rank waits for one that has raised an exception.

use crate::communicator::PyMessages;
use crate::context::PyContext;
use crate::create::{NewDataset, built};
use crate::dataset::PyDataset;
use crate::datatype::PyDatatype;
use crate::errors::{invalid, raised};
use crate::file::{PyFile, options_of};
use crate::handles::Keeper;
use crate::selection::PySelection;
use numpy::PyReadonlyArray1;
use pumice::{Heaped, Locking};
use pumice_collective::{
    CollectiveDataset, CollectiveError as Error, CollectiveFile, CollectiveOptions,
};
use pumice_comm::{CommError, Communicator};
use pyo3::exceptions::{PyFileExistsError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

pyo3::create_exception!(
    _pumice,
    CollectiveError,
    PyOSError,
    "A collective call that failed on another rank, or between ranks."
);

/// The exception for an error of a call that ranks make together.
pub(crate) fn raised_together(error: Error) -> PyErr {
    match error {
        Error::File(error) => raised(error),
        other => CollectiveError::new_err(other.to_string()),
    }
}

/// A file that several ranks have open.
#[pyclass(frozen, name = "CollectiveFile", module = "pumice._pumice")]
pub(crate) struct PyCollectiveFile {
    file: Mutex<Option<CollectiveFile>>,
    keeper: Arc<Keeper>,
}

impl PyCollectiveFile {
    fn file(&self) -> PyResult<CollectiveFile> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner).clone();
        file.ok_or_else(|| invalid("the file is closed"))
    }

    fn dataset_of(&self, dataset: CollectiveDataset) -> PyCollectiveDataset {
        PyCollectiveDataset { dataset, keeper: self.keeper.clone() }
    }
}

/// Whether rank 0 finds that the file is to be created; an error on all if it is not to be there.
fn creates(comm: &dyn Communicator, path: &std::path::Path, mode: &str) -> PyResult<bool> {
    let there = match comm.rank() {
        0 => vec![u8::from(path.exists())],
        _ => Vec::new(),
    };
    let failed = |error: CommError| raised_together(error.into());
    let there = comm.broadcast(0, &there).map_err(failed)? == [1];
    match mode {
        "w" => Ok(true),
        "r+" => Ok(false),
        "a" => Ok(!there),
        "w-" | "x" if there => {
            let what = format!("the file exists: {}", path.display());
            Err(PyFileExistsError::new_err((17, what)))
        }
        "w-" | "x" => Ok(true),
        other => Err(invalid(format!("mode {other} of a file that ranks write together"))),
    }
}

fn collective_options(given: &Bound<'_, PyDict>) -> PyResult<CollectiveOptions> {
    let mut options = CollectiveOptions::new().file(options_of(given)?);
    if let Some(context) = given.get_item("context")? {
        options = options.context(&context.cast::<PyContext>()?.get().context()?);
    }
    if let Some(locking) = given.get_item("locking")? {
        options = options.locking(match locking.extract::<String>()?.as_str() {
            "true" => Locking::Required,
            "false" => Locking::Off,
            _ => Locking::BestEffort,
        });
    }
    Ok(options)
}

#[pymethods]
impl PyCollectiveFile {
    /// Opens or creates a file together with the other ranks of `messages`.
    #[new]
    fn new(
        py: Python<'_>,
        messages: &Bound<'_, PyAny>,
        path: PathBuf,
        mode: &str,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let comm: Arc<dyn Communicator> = Arc::new(PyMessages::new(messages)?);
        let options = collective_options(options)?;
        let file = py.detach(|| -> PyResult<_> {
            match creates(&*comm, &path, mode)? {
                true => CollectiveFile::create_with(comm, &path, options),
                false => CollectiveFile::open_with(comm, &path, options),
            }
            .map_err(raised_together)
        })?;
        Ok(Self { file: Mutex::new(Some(file)), keeper: Arc::default() })
    }

    /// Whether it is open.
    #[getter]
    fn is_open(&self) -> bool {
        self.file.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Creates a dataset.
    fn create_dataset(
        &self,
        py: Python<'_>,
        path: &str,
        datatype: &PyDatatype,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<PyCollectiveDataset> {
        let (file, new) = (self.file()?, NewDataset::parse(options)?);
        let made = py.detach(|| {
            file.create_dataset(path, |file| built(file.new_dataset_of(datatype.0.clone()), &new))
        });
        Ok(self.dataset_of(made.map_err(raised_together)?))
    }

    /// Opens a dataset.
    fn dataset(&self, py: Python<'_>, path: &str) -> PyResult<PyCollectiveDataset> {
        let file = self.file()?;
        let found = py.detach(|| file.dataset(path)).map_err(raised_together)?;
        Ok(self.dataset_of(found))
    }

    /// Lets rank 0 call a function with the file; others learn of its outcome.
    fn change(&self, py: Python<'_>, change: &Bound<'_, PyAny>) -> PyResult<()> {
        let (file, change) = (self.file()?, change.clone().unbind());
        let mut raised = None;
        let done = py.detach(|| {
            file.change(|file| {
                let called = Python::attach(|py| {
                    let handle = Py::new(py, PyFile::of(file.clone()))?;
                    let called = change.call1(py, (handle.clone_ref(py),));
                    drop(handle.get().emptied());
                    called
                });
                called.map(drop).map_err(|error| {
                    let text = error.to_string();
                    raised = Some(error);
                    pumice::Error::Invalid(text)
                })
            })
        });
        match (raised, done) {
            (Some(error), _) => Err(error),
            (None, done) => done.map_err(raised_together),
        }
    }

    /// Fails on all ranks if one gives a reason.
    fn agree(&self, py: Python<'_>, reason: Option<String>) -> PyResult<()> {
        let file = self.file()?;
        let own = reason.map_or(Ok(()), |reason| Err(pumice::Error::Invalid(reason)));
        py.detach(|| file.agree(own)).map_err(raised_together)
    }

    /// The file as all ranks' changes leave it, for reading.
    fn reader(&self, py: Python<'_>) -> PyResult<PyFile> {
        let file = self.file()?;
        Ok(PyFile::of(py.detach(|| file.reader()).map_err(raised_together)?))
    }

    /// Stores everything in one commit.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let file = self.file()?;
        py.detach(|| file.flush()).map_err(raised_together)
    }

    /// Stores everything and closes the file.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (Some(file), handles) = (file, self.keeper.emptied()) else { return Ok(()) };
        py.detach(|| {
            drop(handles);
            file.close()
        })
        .map_err(raised_together)
    }

    /// Leaves the file as it was at the last commit; the other ranks get an error.
    fn abandon(&self, py: Python<'_>, reason: &str) {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner).take();
        let handles = self.keeper.emptied();
        py.detach(|| {
            drop(handles);
            if let Some(file) = file {
                file.abandon(reason);
            }
        });
    }
}

/// A dataset of a file that several ranks have open.
#[pyclass(frozen, name = "CollectiveDataset", module = "pumice._pumice")]
pub(crate) struct PyCollectiveDataset {
    dataset: CollectiveDataset,
    keeper: Arc<Keeper>,
}

#[pymethods]
impl PyCollectiveDataset {
    /// Its path.
    #[getter]
    fn path(&self) -> PyResult<String> {
        self.dataset.path().map_err(raised_together)
    }

    /// Its shape.
    #[getter]
    fn shape(&self) -> PyResult<Vec<u64>> {
        self.dataset.shape().map_err(raised_together)
    }

    /// Writes elements of a datatype to this rank's cells.
    fn write(
        &self,
        py: Python<'_>,
        cells: &PySelection,
        datatype: &PyDatatype,
        buffer: PyReadonlyArray1<'_, u8>,
    ) -> PyResult<()> {
        let bytes = buffer.as_slice()?;
        py.detach(|| self.dataset.write_as(&cells.0, &datatype.0, bytes)).map_err(raised_together)
    }

    /// Writes elements in their stored form, with their heap.
    fn write_heaped(
        &self,
        py: Python<'_>,
        cells: &PySelection,
        elements: PyReadonlyArray1<'_, u8>,
        heap: PyReadonlyArray1<'_, u8>,
    ) -> PyResult<()> {
        let (elements, heap) = (elements.as_slice()?.to_vec(), heap.as_slice()?.to_vec());
        let values = Heaped { elements, heap };
        py.detach(|| self.dataset.write_heaped(&cells.0, values)).map_err(raised_together)
    }

    /// Writes elements of a datatype to chunks that no other rank changes before the next flush.
    fn write_alone(
        &self,
        py: Python<'_>,
        cells: &PySelection,
        datatype: &PyDatatype,
        buffer: PyReadonlyArray1<'_, u8>,
    ) -> PyResult<()> {
        let bytes = buffer.as_slice()?;
        py.detach(|| self.dataset.write_alone_as(&cells.0, &datatype.0, bytes))
            .map_err(raised_together)
    }

    /// Makes this rank's cells undefined.
    fn erase(&self, py: Python<'_>, cells: &PySelection) -> PyResult<()> {
        py.detach(|| self.dataset.erase(&cells.0)).map_err(raised_together)
    }

    /// Changes the size.
    fn resize(&self, py: Python<'_>, shape: Vec<u64>) -> PyResult<()> {
        py.detach(|| self.dataset.resize(shape)).map_err(raised_together)
    }

    /// The dataset as all ranks' changes leave it, for reading.
    fn reader(&self, py: Python<'_>) -> PyResult<PyDataset> {
        let reader = py.detach(|| self.dataset.reader()).map_err(raised_together)?;
        Ok(PyDataset::new(reader, &self.keeper))
    }
}
