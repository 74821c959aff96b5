//! Files: create, open, edit, flush, close.

use crate::{Context, Group};
use pumice_engine::file::File as Engine;
use pumice_engine::{Error, Result};
use pumice_store::{FileStore, MemoryStore, Store};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open HDF5 file. It is its own root group: all methods of [`Group`] are there.
///
/// Changes reach the file with [`flush`](Self::flush) and [`close`](Self::close). Dropping the last
/// handle flushes too, but cannot report an error: call `close` where that matters.
///
/// ```
/// use pumice::File;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("a.h5");
/// let file = File::create(&path)?;
/// file.create_group("run1")?;
/// file.close()?;
///
/// let file = File::open(&path)?;
/// assert_eq!(file.members()?[0].name, "run1");
/// assert!(file.create_group("run2").is_err(), "open for reading only");
/// # Ok::<(), pumice::Error>(())
/// ```
#[derive(Clone)]
pub struct File {
    root: Group,
}

impl File {
    /// Creates a file, or empties the one that is there.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().create(path)
    }

    /// Opens a file for reading.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path)
    }

    /// Opens a file for reading and changing.
    pub fn edit(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().edit(path)
    }

    /// A new file that lives in memory.
    pub fn in_memory() -> Result<Self> {
        let engine = Engine::create(Arc::new(MemoryStore::default()), Context::global().cache())?;
        Self::new(engine)
    }

    /// More ways to open a file.
    pub fn options() -> FileOptions {
        FileOptions { context: None }
    }

    /// Writes all changes.
    pub fn flush(&self) -> Result<()> {
        self.root.engine().commit()
    }

    /// Writes all changes and says how it went. Other handles to the file stay usable.
    pub fn close(self) -> Result<()> {
        self.flush()
    }

    /// Whether changes are allowed.
    pub fn is_writable(&self) -> bool {
        self.root.engine().writable()
    }

    fn new(engine: Arc<Engine>) -> Result<Self> {
        let owner = Arc::new(Owner(engine));
        Ok(Self { root: Group::root(owner)? })
    }
}

impl Deref for File {
    type Target = Group;

    fn deref(&self) -> &Group {
        &self.root
    }
}

/// Keeps a file open as long as any handle lives, and flushes when the last one goes.
pub(crate) struct Owner(pub(crate) Arc<Engine>);

impl Drop for Owner {
    fn drop(&mut self) {
        // The last handle is gone and nobody can be told; `File::close` reports errors.
        let _ = self.0.commit();
    }
}

/// Settings for opening a file.
///
/// ```
/// use pumice::{Context, File};
///
/// # let folder = tempfile::tempdir().unwrap();
/// let context = Context::builder().cache_bytes(1 << 20).build()?;
/// let file = File::options().context(&context).create(folder.path().join("a.h5"))?;
/// # Ok::<(), pumice::Error>(())
/// ```
#[derive(Clone)]
pub struct FileOptions {
    context: Option<Context>,
}

impl FileOptions {
    /// Uses other threads and another cache than those of the process.
    pub fn context(mut self, context: &Context) -> Self {
        self.context = Some(context.clone());
        self
    }

    /// Creates a file, or empties the one that is there.
    pub fn create(self, path: impl AsRef<Path>) -> Result<File> {
        let path = path.as_ref();
        let store = FileStore::create(path).map_err(|source| failed("create", path, source))?;
        File::new(Engine::create(Arc::new(store), self.cache())?)
    }

    /// Opens a file for reading.
    pub fn open(self, path: impl AsRef<Path>) -> Result<File> {
        let path = path.as_ref();
        let store = FileStore::open(path).map_err(|source| failed("open", path, source))?;
        self.open_store(path, Arc::new(store), false)
    }

    /// Opens a file for reading and changing.
    pub fn edit(self, path: impl AsRef<Path>) -> Result<File> {
        let path = path.as_ref();
        let store = FileStore::open_writable(path);
        let store = store.map_err(|source| failed("open for editing", path, source))?;
        self.open_store(path, Arc::new(store), true)
    }

    /// Opens the HDF5 file in these bytes for reading.
    pub fn open_bytes(self, bytes: Vec<u8>) -> Result<File> {
        self.open_store(Path::new("<memory>"), Arc::new(MemoryStore::new(bytes)), false)
    }

    fn open_store(self, path: &Path, store: Arc<dyn Store>, writable: bool) -> Result<File> {
        let engine = Engine::open(store, self.cache(), writable);
        File::new(engine.map_err(|error| error.at(&path.display().to_string()))?)
    }

    fn cache(&self) -> pumice_engine::file::Cache {
        self.context.clone().unwrap_or_else(Context::global).cache()
    }
}

fn failed(what: &str, path: &Path, source: std::io::Error) -> Error {
    let path: PathBuf = path.into();
    Error::Io { action: format!("{what} {}", path.display()), source }
}
