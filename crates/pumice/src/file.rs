//! Files: create, open, edit, flush, close.

mod options;

pub use self::options::{FileOptions, SharedKind};

use crate::Group;
use pumice_engine::file::File as Engine;
use pumice_engine::onion::OnionStore;
use pumice_engine::{Error, Result, share};
use pumice_store::MemoryStore;
use std::ops::Deref;
use std::path::Path;
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

    /// Creates a file; fails if there is one.
    pub fn create_new(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().create_new(path)
    }

    /// Opens a file for reading.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().open(path)
    }

    /// Opens a file for reading and changing.
    pub fn edit(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().edit(path)
    }

    /// Opens a file for reading and changing, or creates it if there is none.
    ///
    /// ```
    /// use pumice::File;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("log.h5");
    /// for run in 0..2 {
    ///     let file = File::edit_or_create(&path)?;
    ///     file.create_group(&format!("run{run}"))?;
    ///     assert_eq!(file.members()?.len(), run + 1);
    /// }
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn edit_or_create(path: impl AsRef<Path>) -> Result<Self> {
        Self::options().edit_or_create(path)
    }

    /// Opens a file for reading and changing: [`edit`](Self::edit) under the name that other
    /// libraries have for it.
    pub fn open_rw(path: impl AsRef<Path>) -> Result<Self> {
        Self::edit(path)
    }

    /// A new file that lives in memory.
    pub fn in_memory() -> Result<Self> {
        Self::options().create_in(Arc::new(MemoryStore::default()))
    }

    /// The number of revisions of an onion file, without the original.
    pub fn revisions(path: impl AsRef<Path>) -> Result<u64> {
        OnionStore::revisions(path.as_ref())
    }

    /// More ways to open a file.
    pub fn options() -> FileOptions {
        FileOptions::new()
    }

    /// Writes all changes, also those of open files that its links have led to.
    ///
    /// Chunks that a filter refuses cannot be written: their stored form stays, and they stay in
    /// memory, where they can be changed or erased. All else is written, and [`Error::NotStored`]
    /// names their datasets. (If such a chunk is stored already and has strings or sequences in the
    /// global heap, nothing is written, because the stored chunk may need overwritten ones.)
    pub fn flush(&self) -> Result<()> {
        self.root.engine().commit()
    }

    /// Lets other programs read the file while this one goes on writing (SWMR): HDF5's `H5Fstart_swmr_write`.
    ///
    /// All objects must exist. From now on elements can be written and datasets can grow; objects,
    /// links and attributes cannot be created, changed or deleted, datasets cannot shrink, and
    /// strings and sequences cannot be written to the global heap. [`flush`](Self::flush) shows
    /// readers the changes: they never see an extent without its elements. SWMR ends when the file
    /// is closed.
    ///
    /// Readers are h5py with `swmr=True`, other programs with libhdf5, and [`FileOptions::swmr`].
    /// The file must have the format of HDF5 1.10 or later, as new files do.
    ///
    /// ```
    /// use pumice::File;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("a.h5");
    /// let file = File::create(&path)?;
    /// let counts = file.new_dataset::<i32>().shape([0]).max_shape([None]).chunk([100]).create("counts")?;
    /// file.start_swmr_write()?;
    /// for count in 0..10 {
    ///     counts.resize(&[count + 1])?;
    ///     counts.write(count..count + 1, &[count as i32])?;
    ///     file.flush()?;
    /// }
    /// assert!(file.create_group("late").is_err());
    /// file.close()?;
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn start_swmr_write(&self) -> Result<()> {
        self.root.owner().begin_change()?;
        self.root.engine().start_swmr_write()
    }

    /// Whether another program may be writing the file while it is read here, or reading it while it is written here.
    pub fn is_swmr(&self) -> bool {
        self.root.engine().is_swmr()
    }

    /// Takes the present state of a file that another program may have changed: handles to the
    /// file, its groups and datasets show it, and later reads are of it. Does nothing in a file
    /// that is open for editing.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("a.h5");
    /// # pumice::File::create(&path)?.close()?;
    /// let file = pumice::File::options().swmr(true).open(&path)?;
    /// file.refresh()?;
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn refresh(&self) -> Result<()> {
        self.root.engine().refresh()
    }

    /// Stores equal messages of several object headers once, as [`FileOptions::shared_messages`]
    /// asked when the file was created. It is for complete files: close the file afterwards.
    /// Returns the number of shared messages.
    pub fn share_messages(&self) -> Result<u64> {
        self.root.changing()?;
        self.flush()?;
        share::messages(&self.owner().0)
    }

    /// Writes all changes and returns the outcome, as [`flush`](Self::flush) does; changes that
    /// filters refuse are lost when the file is closed. Other handles, to the file, its groups and
    /// datasets, stay usable and keep the file open and locked until the last one is dropped:
    /// libhdf5's weak close.
    pub fn close(self) -> Result<()> {
        self.root.into_owner().close()
    }

    /// Whether changes are allowed.
    pub fn is_writable(&self) -> bool {
        self.root.owner().may_change()
    }

    /// The path that it was opened by; none for a file in memory.
    pub fn file_path(&self) -> Option<&Path> {
        self.root.engine().path()
    }

    fn new(engine: Arc<Engine>) -> Result<Self> {
        Self::of(Arc::new(Owner::new(engine)))
    }

    fn reading(engine: Arc<Engine>) -> Result<Self> {
        Self::of(Arc::new(Owner::with(engine, Access::Reading)))
    }

    pub(crate) fn of(owner: Arc<Owner>) -> Result<Self> {
        Ok(Self { root: Group::root(owner)? })
    }
}

impl Deref for File {
    type Target = Group;

    fn deref(&self) -> &Group {
        &self.root
    }
}

/// Keeps a file open as long as any handle lives, and commits when the last one is dropped. A file
/// that was opened several times is closed with the last.
pub(crate) struct Owner(pub(crate) Arc<Engine>, Goes, Access);

/// The access that a handle was opened with; others may have the same file open with more.
#[derive(Clone, Copy, PartialEq)]
enum Access {
    Whatever,
    Reading,
}

/// The one who commits when an owner is dropped.
#[derive(PartialEq)]
enum Goes {
    Committing,
    Quietly,
}

impl Owner {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        Self::with(engine, Access::Whatever)
    }

    /// An owner that commits nothing when it goes.
    pub(crate) fn quiet(engine: Arc<Engine>) -> Self {
        Self(engine, Goes::Quietly, Access::Whatever)
    }

    fn with(engine: Arc<Engine>, access: Access) -> Self {
        engine.close_with_last();
        Self(engine, Goes::Committing, access)
    }

    /// The owner of a file that something in this one leads to.
    pub(crate) fn beside(&self, engine: Arc<Engine>) -> Self {
        Self::with(engine, self.2)
    }

    fn may_change(&self) -> bool {
        self.2 == Access::Whatever && self.0.writable()
    }

    /// Prepares a change: fails if changes are not allowed, and bounds the memory of earlier ones.
    pub(crate) fn begin_change(&self) -> Result<()> {
        if self.2 == Access::Reading && self.0.writable() {
            let path = self.0.path().map_or("the file".into(), |path| path.display().to_string());
            let what = format!(
                "{path} was opened for reading only; change it by the handle that edits it"
            );
            return Err(Error::Invalid(what));
        }
        self.0.relieve()
    }

    /// Before a change of objects, links or attributes: fails if it may not be.
    pub(crate) fn begin_object_change(&self) -> Result<()> {
        self.begin_change()?;
        self.0.refuse_in_swmr("no object, link or attribute can be made, changed or deleted")
    }

    /// Commits, and closes the file if this is the last handle.
    pub(crate) fn close(self: Arc<Self>) -> Result<()> {
        let engine = self.0.clone();
        if let Some(mut owner) = Arc::into_inner(self) {
            owner.1 = Goes::Quietly;
        }
        engine.close()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // An error has no receiver here; `File::close` returns it. The engine commits when it is
        // closed.
        if self.1 == Goes::Committing && Arc::strong_count(&self.0) > 1 {
            let _ = self.0.commit();
        }
    }
}
