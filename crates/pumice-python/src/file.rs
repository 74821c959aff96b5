//! Files: opening, creating, closing.

use crate::context::PyContext;
use crate::errors::{invalid, raised};
use crate::group::PyGroup;
use crate::handles::{Keeper, Slot};
use crate::remote;
use crate::stream::Stream;
use numpy::PyArray1;
use pumice::{
    File, FileOptions, FileSpaceStrategy, GroupOptions, LibraryVersion, Locking, MemoryStore, Store,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::Arc;

/// An open file.
#[pyclass(frozen, name = "File", module = "pumice._pumice")]
pub(crate) struct PyFile {
    file: Arc<Slot<File>>,
    keeper: Arc<Keeper>,
    memory: Option<Arc<MemoryStore>>,
}

/// The mode in which a file is opened.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Read,
    Edit,
    Create,
    CreateNew,
    EditOrCreate,
}

fn mode_of(mode: &str) -> PyResult<Mode> {
    match mode {
        "r" => Ok(Mode::Read),
        "r+" => Ok(Mode::Edit),
        "w" => Ok(Mode::Create),
        "w-" | "x" => Ok(Mode::CreateNew),
        "a" => Ok(Mode::EditOrCreate),
        other => {
            Err(invalid(format!("Invalid mode; must be one of r, r+, w, w-, x, a, not {other}")))
        }
    }
}

/// Opens or creates the file at a path.
#[pyfunction]
pub(crate) fn open_file(
    py: Python<'_>,
    path: PathBuf,
    mode: &str,
    options: &Bound<'_, PyDict>,
) -> PyResult<PyFile> {
    let (mode, options) = (mode_of(mode)?, options_of(options)?);
    let file = py.detach(|| match (mode, remote::open(&path, mode == Mode::Read, &options)) {
        (_, Some(file)) => file,
        (Mode::Read, None) => options.open(path),
        (Mode::Edit, None) => options.edit(path),
        (Mode::Create, None) => options.create(path),
        (Mode::CreateNew, None) => options.create_new(path),
        (Mode::EditOrCreate, None) => options.edit_or_create(path),
    });
    Ok(PyFile::new(file.map_err(raised)?, None))
}

/// Opens or creates a file in memory, which may begin with some bytes.
#[pyfunction]
pub(crate) fn open_memory(
    py: Python<'_>,
    image: Option<Vec<u8>>,
    mode: &str,
    options: &Bound<'_, PyDict>,
) -> PyResult<PyFile> {
    let (mode, options) = (mode_of(mode)?, options_of(options)?);
    let image = image.filter(|_| mode != Mode::Create).unwrap_or_default();
    let empty = image.is_empty();
    let store = Arc::new(MemoryStore::new(image));
    let shared = store.clone();
    let file = py.detach(|| match mode {
        Mode::Read => options.open_in(shared),
        Mode::Edit => options.edit_in(shared),
        Mode::EditOrCreate if !empty => options.edit_in(shared),
        _ => options.create_in(shared),
    });
    Ok(PyFile::new(file.map_err(raised)?, Some(store)))
}

/// Opens or creates a file in an object of Python that can read, write and seek.
#[pyfunction]
pub(crate) fn open_stream(
    py: Python<'_>,
    stream: Py<PyAny>,
    mode: &str,
    options: &Bound<'_, PyDict>,
) -> PyResult<PyFile> {
    let (mode, options) = (mode_of(mode)?, options_of(options)?);
    let stream = Arc::new(Stream::new(stream));
    let file = py.detach(|| {
        let empty = stream.is_empty().map_err(|source| {
            let action = "look at the file object".into();
            pumice::Error::Io { action, source }
        })?;
        match mode {
            Mode::Read => options.open_in(stream),
            Mode::Edit => options.edit_in(stream),
            Mode::EditOrCreate if !empty => options.edit_in(stream),
            _ => options.create_in(stream),
        }
    });
    Ok(PyFile::new(file.map_err(raised)?, None))
}

pub(crate) fn options_of(given: &Bound<'_, PyDict>) -> PyResult<FileOptions> {
    let mut options = File::options();
    for (name, value) in given.iter() {
        let name: String = name.extract()?;
        options = match name.as_str() {
            "context" => options.context(&value.cast::<PyContext>()?.get().context()?),
            "locking" => options.locking(match value.extract::<String>()?.as_str() {
                "true" => Locking::Required,
                "false" => Locking::Off,
                _ => Locking::BestEffort,
            }),
            "oldest" => options.library_version(version(&value.extract::<String>()?)?),
            "newest" => options.newest_version(version(&value.extract::<String>()?)?),
            "user_block" => options.user_block(value.extract()?),
            "track_order" => {
                let track = value.extract()?;
                let group = GroupOptions::new().track_order(track).track_attribute_order(track);
                options.root(&group)
            }
            "swmr" => options.swmr(value.extract()?),
            "space_strategy" => options.space_strategy(match value.extract::<u8>()? {
                0 => FileSpaceStrategy::FreeSpaceManagers,
                1 => FileSpaceStrategy::Paged,
                2 => FileSpaceStrategy::Aggregators,
                _ => FileSpaceStrategy::EndOfFile,
            }),
            "persist" => options.persist_free_space(value.extract()?),
            "threshold" => options.free_space_threshold(value.extract()?),
            "page_size" => options.page_size(value.extract()?),
            "alignment" => {
                let (threshold, bytes) = value.extract()?;
                options.alignment(threshold, bytes)
            }
            "metadata_block" => options.metadata_block(value.extract()?),
            "family" => options.family(value.extract()?),
            other => return Err(invalid(format!("{other} is no option of files"))),
        };
    }
    Ok(options)
}

fn version(name: &str) -> PyResult<LibraryVersion> {
    Ok(match name {
        "earliest" => LibraryVersion::Earliest,
        "v108" => LibraryVersion::V18,
        "v110" => LibraryVersion::V110,
        "v112" => LibraryVersion::V112,
        "v114" => LibraryVersion::V114,
        "v200" | "latest" => LibraryVersion::V200,
        other => return Err(invalid(format!("{other} is no version of HDF5"))),
    })
}

impl PyFile {
    fn new(file: File, memory: Option<Arc<MemoryStore>>) -> Self {
        let keeper = Arc::new(Keeper::default());
        Self { file: keeper.slot(file), keeper, memory }
    }

    /// The file, for one call.
    pub(crate) fn handle(&self) -> PyResult<File> {
        self.file.handle()
    }

    /// Takes the handles out of all objects that were opened through it.
    pub(crate) fn emptied(&self) -> impl Send + use<> {
        (self.file.take(), self.keeper.emptied())
    }

    /// The file of an object, which an external link may have led to.
    pub(crate) fn of(file: File) -> Self {
        Self::new(file, None)
    }
}

#[pymethods]
impl PyFile {
    /// The root group.
    fn root(&self) -> PyResult<PyGroup> {
        Ok(PyGroup::new((*self.file.handle()?).clone(), &self.keeper))
    }

    /// The path, if the file has one.
    #[getter]
    fn path(&self) -> PyResult<Option<PathBuf>> {
        Ok(self.file.handle()?.file_path().map(PathBuf::from))
    }

    /// Whether the file is open.
    #[getter]
    fn is_open(&self) -> bool {
        self.file.is_open()
    }

    /// Whether it can be changed.
    #[getter]
    fn is_writable(&self) -> PyResult<bool> {
        Ok(self.file.handle()?.is_writable())
    }

    /// Writes everything that has changed.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let file = self.file.handle()?;
        py.detach(|| file.flush()).map_err(raised)
    }

    /// Reads again what other programs have written.
    fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        let file = self.file.handle()?;
        py.detach(|| file.refresh()).map_err(raised)
    }

    /// Lets readers open the file while it is written.
    fn start_swmr_write(&self, py: Python<'_>) -> PyResult<()> {
        let file = self.file.handle()?;
        py.detach(|| file.start_swmr_write()).map_err(raised)
    }

    /// Whether it is written beside readers, or read beside a writer.
    #[getter]
    fn is_swmr(&self) -> PyResult<bool> {
        Ok(self.file.handle()?.is_swmr())
    }

    /// Writes everything and closes the file, with all handles that were opened through it.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let handles = self.keeper.emptied();
        py.detach(|| {
            drop(handles);
            file.close()
        })
        .map_err(raised)
    }

    /// In a child of a fork: leaves the file to the parent, and opens it for reading with threads and cache of its own
    /// if there is a path.
    fn after_fork(
        &self,
        py: Python<'_>,
        path: Option<PathBuf>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<()> {
        let options = options_of(options)?;
        py.detach(|| {
            let file = path.map(|path| options.open(path)).transpose();
            self.keeper.replace(file.as_ref().ok().and_then(Option::as_ref));
            file.map(|_| ())
        })
        .map_err(raised)
    }

    /// Version of the superblock, widths of offsets and lengths, bytes of the user block.
    fn facts(&self) -> PyResult<(u8, u8, u8, u64)> {
        let info = self.file.handle()?.info().map_err(raised)?;
        Ok((info.superblock_version, info.offset_size, info.length_size, info.user_block_size))
    }

    /// The settings of file space: strategy, whether free space is stored, threshold, bytes of a
    /// page.
    fn space_facts(&self) -> PyResult<(u8, bool, u64, u64)> {
        let space = self.file.handle()?.info().map_err(raised)?.file_space;
        let strategy = match space.strategy {
            FileSpaceStrategy::FreeSpaceManagers => 0,
            FileSpaceStrategy::Paged => 1,
            FileSpaceStrategy::Aggregators => 2,
            FileSpaceStrategy::EndOfFile => 3,
        };
        Ok((strategy, space.persist, space.threshold, space.page_size))
    }

    /// The bytes of a file in memory, as of the last flush.
    fn image<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<u8>>> {
        let store = self.memory.clone().ok_or_else(|| invalid("the file is not in memory"))?;
        let file = self.file.handle()?;
        let bytes = py.detach(|| -> pumice::Result<Vec<u8>> {
            file.flush()?;
            Ok(store.to_vec())
        });
        Ok(PyArray1::from_vec(py, bytes.map_err(raised)?))
    }
}
