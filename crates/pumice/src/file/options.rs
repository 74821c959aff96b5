//! Options for creating and opening files.

use super::File;
use crate::{
    ByKind, CacheOptions, Context, Durability, FileSpaceStrategy, GroupOptions, VirtualView,
};
use pumice_engine::file::{Asked, File as Engine};
use pumice_engine::onion::OnionStore;
use pumice_engine::open_files::{Opening, open_path};
use pumice_engine::version::{CreateOptions, LibraryVersion};
use pumice_engine::{Error, ErrorKind, Result};
use pumice_medium::allocator::Alignment;
use pumice_store::{Locking, MemoryStore, Store};
use std::path::Path;
use std::sync::Arc;

/// A kind of message in object headers that objects can share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedKind {
    /// Shapes of datasets.
    Dataspace,
    /// Datatypes of datasets.
    Datatype,
    /// Fill values.
    FillValue,
    /// Filters of chunks.
    Filters,
    /// Attributes, with their names and values.
    Attribute,
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
#[derive(Clone, Debug)]
pub struct FileOptions {
    context: Option<Context>,
    locking: Option<Locking>,
    creation: CreateOptions,
}

impl FileOptions {
    pub(super) fn new() -> Self {
        Self { context: None, locking: None, creation: CreateOptions::default() }
    }

    /// Uses the threads and the cache of this context instead of the process's.
    pub fn context(mut self, context: &Context) -> Self {
        self.context = Some(context.clone());
        self
    }

    /// The cache options of every dataset of the file when it is opened: HDF5's `H5Pset_cache`,
    /// whose values [`CacheOptions::chunk_cache`] takes.
    /// [`Dataset::set_cache_options`](crate::Dataset::set_cache_options) changes those of one
    /// dataset.
    ///
    /// ```
    /// use pumice::{CacheOptions, File};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("a.h5");
    /// let options = CacheOptions::default().chunk_cache(4 << 20, 0.5);
    /// let file = File::options().cache_options(options).create(&path)?;
    /// let dataset = file.new_dataset::<u8>().shape([100]).chunk([10]).create("d")?;
    /// assert_eq!(dataset.cache_options(), options);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn cache_options(mut self, options: CacheOptions) -> Self {
        self.creation.chunk_cache = Some(options);
        self
    }

    /// Sets whether the file is locked while it is open; the default is `HDF5_USE_FILE_LOCKING`.
    /// The locks are libhdf5's: many readers, or one writer.
    ///
    /// A file that is read without a lock is read as it was when it was opened: if another program changes it,
    /// reads fail until [`File::refresh`].
    ///
    /// Within a process locks do not matter: opening an open file gives another handle to it, as it
    /// is. Options that cannot take effect then, such as another context or other cache options,
    /// are an error.
    pub fn locking(mut self, locking: Locking) -> Self {
        self.locking = Some(locking);
        self
    }

    /// The oldest release of libhdf5 that is to read new objects: by default
    /// [`LibraryVersion::V110`] in a new file, and in an existing file the one that it was made
    /// for.
    ///
    /// ```
    /// use pumice::{File, LibraryVersion, MemoryStore};
    ///
    /// let options = File::options().library_version(LibraryVersion::Earliest);
    /// let file = options.create_in(std::sync::Arc::new(MemoryStore::default()))?;
    /// assert_eq!(file.info()?.superblock_version, 0);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn library_version(mut self, oldest: LibraryVersion) -> Self {
        self.creation.library_version = Some(oldest);
        self
    }

    /// The newest release of libhdf5 whose storage forms may be used, the upper of
    /// `H5Pset_libver_bounds`: features that need a later one are refused. No limit by default.
    ///
    /// ```
    /// use pumice::{File, LibraryVersion, MemoryStore, Selection};
    ///
    /// let options = File::options().library_version(LibraryVersion::Earliest);
    /// let options = options.newest_version(LibraryVersion::V18);
    /// let file = options.create_in(std::sync::Arc::new(MemoryStore::default()))?;
    /// file.new_dataset::<i32>().shape([4]).create("plain")?;
    /// let all = Selection::all();
    /// let view = file.new_dataset::<i32>().shape([4]).virtual_part(all.clone(), ".", "plain", all);
    /// assert!(view.create("view").is_err());
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn newest_version(mut self, newest: LibraryVersion) -> Self {
        self.creation.newest_version = Some(newest);
        self
    }

    /// Leaves room at the beginning of a new file that is the user's: 0 bytes, or a power of two
    /// from 512 on.
    pub fn user_block(mut self, bytes: u64) -> Self {
        self.creation.user_block = bytes;
        self
    }

    /// The properties of a new file's root group.
    pub fn root(mut self, options: &GroupOptions) -> Self {
        self.creation.root = options.spec;
        self
    }

    /// Sets the file-space strategy of a new file, as h5py's `fs_strategy`; libhdf5's default
    /// unless set.
    ///
    /// Freed space is used again as long as the file is open, whatever the strategy.
    ///
    /// ```
    /// use pumice::{File, FileSpaceStrategy, MemoryStore};
    ///
    /// let options = File::options().space_strategy(FileSpaceStrategy::Paged).page_size(8192);
    /// let file = options.create_in(std::sync::Arc::new(MemoryStore::default()))?;
    /// assert_eq!(file.info()?.file_space.page_size, 8192);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn space_strategy(mut self, strategy: FileSpaceStrategy) -> Self {
        self.creation.space.strategy = strategy;
        self
    }

    /// Bytes of a page of a new file with [`FileSpaceStrategy::Paged`]: 4096 unless set.
    pub fn page_size(mut self, bytes: u64) -> Self {
        self.creation.space.page_size = bytes;
        self
    }

    /// Sets whether a new file stores its free space when it is closed, so that later openings use
    /// it; only with [`FileSpaceStrategy::FreeSpaceManagers`] and [`FileSpaceStrategy::Paged`].
    /// With pages of less than 4096 bytes, only the largest free sections of metadata are stored.
    pub fn persist_free_space(mut self, persist: bool) -> Self {
        self.creation.space.persist = persist;
        self
    }

    /// The smallest free section that a new file remembers: 1 byte unless set.
    pub fn free_space_threshold(mut self, bytes: u64) -> Self {
        self.creation.space.threshold = bytes;
        self
    }

    /// Makes a new file a family: files of `member_bytes` each, which are one HDF5 file together, as with
    /// h5py's `driver="family"`. It is named by a pattern for their numbers, then and later.
    ///
    /// ```
    /// use pumice::File;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// let pattern = folder.path().join("run%03d.h5");
    /// let file = File::options().family(4096).create(&pattern)?;
    /// file.new_dataset::<u8>().shape([10_000]).create("a")?.write(.., &[7u8; 10_000])?;
    /// file.close()?;
    /// assert!(folder.path().join("run002.h5").exists());
    /// File::edit(&pattern)?.unlink("a")?;
    /// assert!(!folder.path().join("run001.h5").exists());
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn family(mut self, member_bytes: u64) -> Self {
        self.creation.member_size = Some(member_bytes);
        self
    }

    /// Creates an HDF5 file of several files, one for each kind of data: metadata and raw data
    /// ([`ByKind::Split`], as with h5py's `driver="split"`), or more kinds. Its name is the common
    /// beginning of their names, then and later. Pages and stored free space are not for such
    /// files.
    ///
    /// ```
    /// use pumice::{ByKind, File};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// let path = folder.path().join("run");
    /// let file = File::options().by_kind(ByKind::Split).create(&path)?;
    /// file.new_dataset::<u8>().shape([10_000]).create("a")?.write(.., &[7u8; 10_000])?;
    /// file.close()?;
    /// assert_eq!(folder.path().join("run-r.h5").metadata().unwrap().len(), 10_000);
    /// File::edit(&path)?.unlink("a")?;
    /// assert_eq!(folder.path().join("run-r.h5").metadata().unwrap().len(), 0);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn by_kind(mut self, kind: ByKind) -> Self {
        self.creation.by_kind = Some(kind);
        self
    }

    /// The events that a commit survives; by default the end of the program at any instruction.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.creation.durability = durability;
        self
    }

    /// Bounds the memory of changed metadata (headers, links, attributes, indexes, heaps), about:
    /// 32 MiB by default. Above it, new blocks are written to space that nothing refers to; if that
    /// is not enough, the changes up to now are committed, as [`File::flush`] does.
    ///
    /// ```
    /// use pumice::{File, MemoryStore};
    ///
    /// let options = File::options().metadata_limit(1 << 20);
    /// let file = options.create_in(std::sync::Arc::new(MemoryStore::default()))?;
    /// for number in 0..10_000 {
    ///     file.create_group(&number.to_string())?;
    /// }
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn metadata_limit(mut self, bytes: usize) -> Self {
        self.creation.metadata_limit = Some(bytes);
        self
    }

    /// Marks the file as open for writing from opening to closing it, as libhdf5 does with a
    /// superblock of version 3. Other programs then refuse it, even where file locks do not work,
    /// but also after this program ended without closing it, until `h5clear -s` removes the mark.
    ///
    /// Without this the mark is there only while a commit replaces metadata.
    pub fn mark_open(mut self, mark: bool) -> Self {
        self.creation.mark_open = mark;
        self
    }

    /// Edits a file even if it is marked as open for writing, and removes the mark. Only for files
    /// that no program has open.
    pub fn ignore_mark(mut self, ignore: bool) -> Self {
        self.creation.ignore_mark = ignore;
        self
    }

    /// Allows one writer and many readers at a time (SWMR), as h5py's `swmr=True`.
    ///
    /// With [`open`](Self::open), another program may be writing the file, by libhdf5's SWMR or
    /// [`File::start_swmr_write`]; [`Dataset::refresh`](crate::Dataset::refresh) shows what it has
    /// written since. Without this option such a file is refused. With [`edit`](Self::edit), SWMR
    /// is started at once.
    ///
    /// ```
    /// use pumice::File;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("a.h5");
    /// # File::create(&path)?.new_dataset::<i32>().shape([0]).max_shape([None]).chunk([100]).create("counts")?;
    /// let file = File::options().swmr(true).open(&path)?;
    /// let counts = file.dataset("counts")?;
    /// counts.refresh()?;
    /// assert_eq!(counts.shape(), [0]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn swmr(mut self, swmr: bool) -> Self {
        self.creation.swmr = swmr;
        self
    }

    /// Aligns everything of `threshold` bytes and more to multiples of `bytes` in the file, as
    /// libhdf5's `H5Pset_alignment`; for file systems that read whole blocks. Pages
    /// ([`page_size`](Self::page_size)) are aligned anyway.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// let path = folder.path().join("a.h5");
    /// let file = pumice::File::options().alignment(1000, 4096).create(&path)?;
    /// file.new_dataset::<u8>().shape([5000]).create("a")?.write(.., &[1u8; 5000])?;
    /// file.close()?;
    /// let dataset = pumice::File::open(&path)?.dataset("a")?;
    /// assert_eq!(dataset.creation()?.address.unwrap() % 4096, 0);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn alignment(mut self, threshold: u64, bytes: u64) -> Self {
        self.creation.alignment = Some(Alignment { threshold, bytes });
        self
    }

    /// Sets aside blocks of this many bytes for metadata, so that it lies together: libhdf5's
    /// `H5Pset_meta_block_size`. By default files of [`LibraryVersion::Earliest`] have blocks of
    /// 2048 bytes, others none. Closing the file gives back the rest of the last block.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// let path = folder.path().join("a.h5");
    /// let file = pumice::File::options().metadata_block(8192).create(&path)?;
    /// file.new_dataset::<u8>().shape([100]).create("a")?.write(.., &[1u8; 100])?;
    /// file.close()?;
    /// let dataset = pumice::File::open(&path)?.dataset("a")?;
    /// assert_eq!(dataset.creation()?.address, Some(8192));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn metadata_block(mut self, bytes: u64) -> Self {
        self.creation.metadata_block = Some(bytes);
        self
    }

    /// Sets the widths of addresses and lengths of a new file to 2, 4 or 8 bytes (8 unless set):
    /// libhdf5's `H5Pset_sizes`. A file is full where its addresses end. (Of files with lengths of
    /// 2 bytes, libhdf5 reads groups and objects with few members and attributes only, unless they
    /// are of [`LibraryVersion::Earliest`].)
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// let file = pumice::File::options().widths(4, 4).create(folder.path().join("a.h5"))?;
    /// assert_eq!((file.info()?.offset_size, file.info()?.length_size), (4, 4));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn widths(mut self, offset: u8, length: u8) -> Self {
        self.creation.widths = Some((offset, length));
        self
    }

    /// Sets the nodes of a new file's symbol tables to `2 * leaf` links (4 unless set), and those
    /// of their B-trees to `2 * internal` children (16): libhdf5's `H5Pset_sym_k`. Groups of files
    /// from HDF5 1.8 on have none.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// use pumice::{File, LibraryVersion};
    ///
    /// let options = File::options().library_version(LibraryVersion::Earliest).group_ranks(8, 32);
    /// let file = options.create(folder.path().join("a.h5"))?;
    /// assert_eq!((file.info()?.group_leaf_k, file.info()?.group_internal_k), (8, 32));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn group_ranks(mut self, leaf: u16, internal: u16) -> Self {
        self.creation.group_ranks = Some((leaf, internal));
        self
    }

    /// Sets the nodes of a new file's version 1 chunk indexes to `2 * rank` chunks (32 unless set):
    /// libhdf5's `H5Pset_istore_k`. Datasets of files from HDF5 1.10 on have other indexes.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// use pumice::{File, LibraryVersion};
    ///
    /// let options = File::options().library_version(LibraryVersion::Earliest).chunk_rank(100);
    /// let file = options.create(folder.path().join("a.h5"))?;
    /// assert_eq!(file.info()?.chunk_internal_k, 100);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn chunk_rank(mut self, rank: u16) -> Self {
        self.creation.chunk_rank = Some(rank);
        self
    }

    /// Lets the objects of a new file share messages of a kind that have at least this many bytes,
    /// once [`File::share_messages`] is called: libhdf5's `H5Pset_shared_mesg_index`, with an index
    /// for each kind. Such files need HDF5 1.8.
    ///
    /// ```
    /// use pumice::{File, SharedKind};
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// let path = folder.path().join("a.h5");
    /// let file = File::options().shared_messages(SharedKind::Datatype, 1).create(&path)?;
    /// for name in ["a", "b", "c"] {
    ///     file.new_dataset::<f64>().shape([3]).create(name)?.write(.., &[1.0, 2.0, 3.0])?;
    /// }
    /// assert_eq!(file.share_messages()?, 1, "three datatypes that are one");
    /// file.close()?;
    /// assert_eq!(File::open(&path)?.dataset("b")?.read::<f64>(..)?, [1.0, 2.0, 3.0]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn shared_messages(mut self, kind: SharedKind, bytes: u32) -> Self {
        self.creation.shared_messages[kind as usize] = bytes;
        self
    }

    /// Sets the extent of virtual datasets with unlimited sources: libhdf5's virtual view and gap
    /// of numbered sources.
    pub fn virtual_view(mut self, view: VirtualView) -> Self {
        self.creation.virtual_view = view;
        self
    }

    /// Creates a file, or empties the one that is there.
    pub fn create(self, path: impl AsRef<Path>) -> Result<File> {
        self.open_as(path.as_ref(), Opening::Create)
    }

    /// Creates a file; fails if there is one.
    pub fn create_new(self, path: impl AsRef<Path>) -> Result<File> {
        self.open_as(path.as_ref(), Opening::CreateNew)
    }

    /// Opens a file for reading.
    pub fn open(self, path: impl AsRef<Path>) -> Result<File> {
        self.open_as(path.as_ref(), Opening::Read)
    }

    /// Opens a file for reading and changing.
    pub fn edit(self, path: impl AsRef<Path>) -> Result<File> {
        self.open_as(path.as_ref(), Opening::Edit)
    }

    /// Opens a file for reading and changing, or creates it if there is none.
    pub fn edit_or_create(self, path: impl AsRef<Path>) -> Result<File> {
        let path = path.as_ref();
        // Another program may create it, or take it away, between the two.
        for _ in 0..2 {
            match self.clone().edit(path) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                done => return done,
            }
            match self.clone().create_new(path) {
                Err(error) if error.kind() == ErrorKind::Exists => {}
                done => return done,
            }
        }
        self.edit(path)
    }

    /// Opens one revision of an onion file, whose changes are in `PATH.onion`, for reading; 0 is
    /// the original.
    pub fn open_revision(self, path: impl AsRef<Path>, revision: u64) -> Result<File> {
        let store = OnionStore::open(path.as_ref(), revision);
        let engine = store.and_then(|store| Engine::open(Arc::new(store), self.cache(), false));
        File::new(engine.map_err(|error| error.at(&path.as_ref().display().to_string()))?)
    }

    fn open_as(self, path: &Path, opening: Opening) -> Result<File> {
        let locking = self.locking.unwrap_or_else(Locking::from_environment);
        let writes_swmr = self.creation.swmr && opening != Opening::Read;
        if writes_swmr && opening != Opening::Edit {
            let what = "a new file has no objects yet that could be written beside readers (SWMR): create them, then \
                        call `start_swmr_write`";
            return Err(Error::Invalid(what.into()).at(&path.display().to_string()));
        }
        let engine = open_path(path, opening, self.cache(), locking, &self.creation)?;
        if writes_swmr && !engine.is_swmr() {
            engine.start_swmr_write().map_err(|error| error.at(&path.display().to_string()))?;
        }
        let cache = self.context.as_ref().map(Context::cache);
        let asked = Asked {
            cache: cache.as_ref(),
            locking: self.locking,
            options: &self.creation,
            writes: opening != Opening::Read,
        };
        engine.check_asked(&asked).map_err(|error| error.at(&path.display().to_string()))?;
        if opening == Opening::Read { File::reading(engine) } else { File::new(engine) }
    }

    /// Opens an HDF5 file in memory for reading.
    pub fn open_bytes(self, bytes: Vec<u8>) -> Result<File> {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(bytes));
        let engine = Engine::open(store, self.cache(), false);
        File::new(engine.map_err(|error| error.at("<memory>"))?)
    }

    /// Creates a file in a store of the program's own, which must be empty.
    ///
    /// ```
    /// use pumice::{File, MemoryStore};
    /// use std::sync::Arc;
    ///
    /// let store = Arc::new(MemoryStore::default());
    /// File::options().create_in(store.clone())?.create_group("run1")?;
    /// let file = File::options().open_in(store)?;
    /// assert_eq!(file.members()?[0].name, "run1");
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn create_in(self, store: Arc<dyn Store>) -> Result<File> {
        if self.creation.member_size != store.member_size() {
            let what = "the store is not a family, or has members of another size";
            return Err(Error::Invalid(what.into()));
        }
        if self.creation.by_kind.map_or(vec![0], ByKind::starts) != store.starts() {
            let what = "the store does not consist of the members that the file is to have";
            return Err(Error::Invalid(what.into()));
        }
        File::new(Engine::create(store, self.cache(), &self.creation)?)
    }

    /// Opens the file in a store of the program's own for reading.
    pub fn open_in(self, store: Arc<dyn Store>) -> Result<File> {
        File::new(Engine::open_for(store, self.cache(), false, &self.creation)?)
    }

    /// Opens the file in a store of the program's own for reading and changing.
    pub fn edit_in(self, store: Arc<dyn Store>) -> Result<File> {
        let engine = Engine::open_for(store, self.cache(), true, &self.creation)?;
        if self.creation.swmr {
            engine.start_swmr_write()?;
        }
        File::new(engine)
    }

    fn cache(&self) -> pumice_engine::file::Cache {
        self.context.clone().unwrap_or_else(Context::global).cache()
    }
}
