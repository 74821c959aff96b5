//! An open file: its superblock, its living objects and datasets, and the one commit that writes
//! their changes.
//!
//! Every object is loaded once and shared by all handles, so that a change through one handle is
//! seen through the others. An object that no handle holds and that has nothing to write is
//! forgotten.
//!
//! Lock order: `commit`, then the medium's held-back changes, then `datasets`, then `objects`. The
//! last two are not held during I/O or while waiting.

mod closing;
mod commit;
mod create;
mod datasets;
mod keeping;
mod listed;
mod looking;
mod opening;
mod others;
mod refused;
mod swmr;

pub(crate) use keeping::KeptFile;
pub(crate) use opening::find_superblock;

use crate::dataset::{DatasetState, VirtualView};
use crate::extension::Extension;
use crate::file_space::FileSpace;
use crate::object::Object;
use crate::open_files::OpenEntry;
use crate::version::{CreateOptions, LibraryVersion};
use crate::{Error, Result, delete};
use create::{attribute_header, new_header};
use datasets::Forgetting;
use listed::Listed;
use pumice_cache::{CachedFile, ChunkCache};
use pumice_format::messages::{Era, FileSpaceInfo, FileSpaceStrategy};
use pumice_format::object_header::{ObjectHeader, RawMessage};
use pumice_format::superblock::{OPEN_FOR_WRITING, Superblock};
use pumice_layout::DatasetLayout;
use pumice_medium::{METADATA_LIMIT, Medium};
use pumice_store::Locking;
use pumice_structures::fractal_heap::FractalHeap;
use pumice_structures::global_heap::GlobalHeap;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// The cache that all files share, unless they are given one of their own.
pub type Cache = ChunkCache<DatasetLayout>;

/// The settings that a caller asks for when a file is open already, to be checked.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The chunk cache, if it matters which.
    pub cache: Option<&'a Cache>,
    /// How the file is locked, if it matters.
    pub locking: Option<Locking>,
    /// The other options.
    pub options: &'a CreateOptions,
    /// Whether the caller wants to change the file.
    pub writes: bool,
}

/// The most idle objects that are remembered.
const IDLE: usize = 4096;

static NUMBERS: AtomicU64 = AtomicU64::new(0);

/// An open file.
pub struct File {
    medium: Arc<Medium>,
    superblock: Superblock,
    heap: Arc<GlobalHeap>,
    extension: Extension,
    space: Mutex<FileSpace>,
    /// The marks of an open file in the superblock, from opening to closing.
    marks: AtomicU8,
    low: LibraryVersion,
    high: LibraryVersion,
    /// The options of creation or opening.
    options: CreateOptions,
    /// Heaps of shared messages that have been opened, by address.
    shared_heaps: Mutex<BTreeMap<u64, Arc<Mutex<FractalHeap>>>>,
    cache: Cache,
    /// Its place in the cache: its datasets' chunks are written together.
    cached: CachedFile<DatasetLayout>,
    commit: Mutex<()>,
    objects: Mutex<Objects>,
    datasets: Mutex<Listed<DatasetState>>,
    forgetting: Forgetting,
    /// Objects without links that a handle holds: deleted when the last handle is dropped.
    orphans: Mutex<BTreeSet<u64>>,
    /// Bytes of deleted objects that the next commit makes free.
    deleted: AtomicU64,
    /// Datasets that were created while space of deleted objects was not free yet.
    displaced: Mutex<BTreeSet<u64>>,
    /// The length of the file when it was opened.
    opened_length: u64,
    /// Files that links of this one have led to, open for editing.
    outside: Mutex<Vec<Weak<File>>>,
    /// Whether the file is closed with its last user.
    closes: AtomicBool,
    /// Last, so that it is given up when all else is closed.
    place: OnceLock<OpenEntry>,
    /// This file, for those who outlive a call and must not keep it open.
    this: Weak<File>,
    /// A number that no other file of this process has or had.
    number: u64,
}

/// The objects that are in memory.
#[derive(Default)]
struct Objects {
    list: Listed<Object>,
    /// The number of objects that the last pass left.
    kept: usize,
}

impl Objects {
    /// Forgets idle objects once there are twice as many as after the last time, so that an object
    /// in use is looked at a bounded number of times.
    fn make_room(&mut self) {
        if self.list.len() < IDLE.max(2 * self.kept) {
            return;
        }
        self.forget_idle();
    }

    /// Forgets objects that no handle holds and that have nothing to write.
    fn forget_idle(&mut self) {
        drop(self.list.remove_unused(|object| !object.is_dirty()));
        self.kept = self.list.len();
    }
}

impl File {
    fn new(
        medium: Arc<Medium>,
        superblock: Superblock,
        extension: Extension,
        space: FileSpace,
        cache: Cache,
        options: &CreateOptions,
    ) -> Arc<Self> {
        let (commit, shared_heaps, objects, datasets, place) = Default::default();
        let forgetting = Forgetting::default();
        let low = options.library_version;
        let low = low.unwrap_or(LibraryVersion::of_superblock(superblock.version));
        let marks = if options.mark_open { OPEN_FOR_WRITING } else { 0 };
        let (space, marks) = (Mutex::new(space), AtomicU8::new(marks));
        let orphans = Mutex::default();
        let cached = cache.register_file();
        let heap = Arc::new(GlobalHeap::new(medium.clone()));
        let opened_length = medium.used();
        Arc::new_cyclic(|this| Self {
            medium,
            superblock,
            extension,
            space,
            marks,
            low,
            high: options.newest_version.unwrap_or(LibraryVersion::DRAFT),
            options: *options,
            heap,
            shared_heaps,
            cache,
            cached,
            commit,
            objects,
            datasets,
            forgetting,
            orphans,
            deleted: AtomicU64::new(0),
            displaced: Mutex::default(),
            opened_length,
            outside: Mutex::default(),
            closes: AtomicBool::new(false),
            place,
            this: this.clone(),
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
        })
    }

    /// Sets the file's entry in the list of open files.
    pub(crate) fn settle(&self, place: OpenEntry) {
        self.medium.note_name(place.path());
        // A file is opened once.
        let _ = self.place.set(place);
    }

    /// Closes the file with its last user. Errors are lost then.
    pub fn close_with_last(&self) {
        self.closes.store(true, Ordering::Relaxed);
    }

    /// The file as space.
    pub fn medium(&self) -> &Arc<Medium> {
        &self.medium
    }

    /// The file's global heap.
    pub fn global_heap(&self) -> &Arc<GlobalHeap> {
        &self.heap
    }

    /// The cache that its chunks live in.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Its place in that cache, with which its datasets are registered.
    pub(crate) fn cached(&self) -> &CachedFile<DatasetLayout> {
        &self.cached
    }

    /// The superblock.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Half the number of entries of nodes of older structures: symbol table nodes, B-trees of
    /// groups, B-trees of chunks.
    pub fn ranks(&self) -> [u16; 3] {
        let (leaf, internal) = self.extension.group_ranks(&self.superblock);
        [leaf, internal, self.extension.chunk_rank(&self.superblock)]
    }

    /// The file-space settings.
    pub fn file_space(&self) -> FileSpaceInfo {
        match self.writable() {
            true => self.space().info().clone(),
            false => self.extension.file_space.clone().unwrap_or_default(),
        }
    }

    /// The path that it was opened by, if it was.
    pub fn path(&self) -> Option<&Path> {
        self.place.get().map(OpenEntry::path)
    }

    /// The options of creation or opening.
    pub(crate) fn options(&self) -> &CreateOptions {
        &self.options
    }

    /// Fails if the file, which may have been open before, does not have the settings that were
    /// asked for.
    pub fn check_asked(&self, asked: &Asked<'_>) -> Result<()> {
        let CreateOptions { durability, virtual_view, mark_open, .. } = self.options;
        let (usual, wanted) = (CreateOptions::default(), asked.options);
        let cached = self.options.chunk_cache.unwrap_or_default();
        let limit = self.options.metadata_limit.unwrap_or(METADATA_LIMIT);
        let writes = asked.writes;
        let other = [
            ("context", asked.cache.is_some_and(|cache| !self.cache.is(cache))),
            ("locking", asked.locking.is_some_and(|locking| locking != self.locking())),
            ("options of the chunk cache", wanted.chunk_cache.is_some_and(|one| one != cached)),
            ("view of virtual datasets", {
                wanted.virtual_view != usual.virtual_view && wanted.virtual_view != virtual_view
            }),
            ("durability", {
                writes && wanted.durability != usual.durability && wanted.durability != durability
            }),
            ("memory for metadata", writes && wanted.metadata_limit.is_some_and(|n| n != limit)),
            ("mark", writes && wanted.mark_open && !mark_open),
            ("way of sharing (SWMR)", wanted.swmr && !self.is_swmr()),
            ("alignment", {
                writes && wanted.alignment.is_some() && wanted.alignment != self.options.alignment
            }),
            ("oldest release", writes && wanted.library_version.is_some_and(|v| v != self.low)),
            ("newest release", writes && wanted.newest_version.is_some_and(|v| v != self.high)),
        ];
        match other.into_iter().find(|(_, other)| *other) {
            None => Ok(()),
            Some((what, _)) => Err(Error::Invalid(format!(
                "this process has the file open with another {what}: close it first, or do without"
            ))),
        }
    }

    /// How this file is locked, and the files that its links lead to.
    pub(crate) fn locking(&self) -> Locking {
        self.place.get().map_or_else(Locking::from_environment, OpenEntry::locking)
    }

    /// The extent of its virtual datasets without end.
    pub(crate) fn virtual_view(&self) -> VirtualView {
        self.options.virtual_view
    }

    /// A handle that does not keep the file open.
    pub(crate) fn weak(&self) -> Weak<Self> {
        self.this.clone()
    }

    /// A number that no other file of this process has or had.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The superblock extension.
    pub(crate) fn extension(&self) -> &Extension {
        &self.extension
    }

    /// Whether new groups have symbol tables, and new objects version 1 headers.
    pub(crate) fn makes_old_groups(&self) -> bool {
        self.low == LibraryVersion::Earliest
    }

    /// Fails if `needed` is later than the file's newest release.
    pub(crate) fn require_version(&self, needed: LibraryVersion, what: &str) -> Result<()> {
        if needed <= self.high {
            return Ok(());
        }
        let high = self.high;
        Err(Error::Invalid(format!(
            "{what} of {needed:?}, in a file that is to have forms of up to {high:?}"
        )))
    }

    /// Fails for datatypes that no release, or only one later than the file's newest, can read.
    pub fn check_datatype(&self, datatype: &pumice_types::Datatype) -> Result<()> {
        let empty = match datatype {
            pumice_types::Datatype::Enum(all) => all.names.is_empty(),
            pumice_types::Datatype::Compound(all) => all.members.is_empty(),
            _ => false,
        };
        if empty {
            return Err(Error::Invalid(format!("{datatype}, a datatype without members")));
        }
        if datatype.has_unnamed_members() {
            let what = format!("the datatype {datatype} has a member without a name");
            return Err(Error::Invalid(what));
        }
        let needed =
            LibraryVersion::of_datatype(pumice_format::messages::datatype::version(datatype));
        self.require_version(needed, "a datatype")
    }

    /// The versions of messages that new objects get.
    pub fn era(&self) -> Era {
        match self.library_version() < LibraryVersion::V18 {
            true => Era::Old,
            false => Era::New,
        }
    }

    /// The oldest release of libhdf5 that is to read new objects.
    pub fn library_version(&self) -> LibraryVersion {
        self.low
    }

    /// The heap of shared messages at `address`.
    pub(crate) fn shared_heap(&self, address: u64) -> Result<Arc<Mutex<FractalHeap>>> {
        let mut heaps = self.shared_heaps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(heap) = heaps.get(&address) {
            return Ok(heap.clone());
        }
        let heap = Arc::new(Mutex::new(FractalHeap::open(&self.medium, address)?));
        heaps.insert(address, heap.clone());
        Ok(heap)
    }

    /// Whether changes are allowed.
    pub fn writable(&self) -> bool {
        self.medium.writable()
    }

    /// The root group's object.
    pub fn root(&self) -> Result<Arc<Object>> {
        self.object(self.superblock.root_address)
    }

    /// The object whose header is at `address`.
    pub fn object(&self, address: u64) -> Result<Arc<Object>> {
        if let Some(object) = self.objects().list.get(address) {
            return Ok(object.clone());
        }
        let loaded = Arc::new(self.medium.steady(|| Object::load(&self.medium, address))?);
        let mut objects = self.objects();
        objects.make_room();
        // Another thread may have loaded it meanwhile: there must be only one.
        Ok(objects.list.entry(address).or_insert(loaded).clone())
    }

    /// Makes a new object; something must link to it.
    /// In files of the older format its header is of version 1, unless it is to track the creation
    /// order of its attributes.
    pub fn create_object(
        &self,
        messages: Vec<RawMessage>,
        track_attribute_order: bool,
    ) -> Result<Arc<Object>> {
        let header = self.new_header(track_attribute_order, None);
        self.create_with(ObjectHeader { messages, ..header })
    }

    /// The header of a new object, still without messages.
    pub(crate) fn new_header(
        &self,
        track_attribute_order: bool,
        attribute_phase_change: Option<(u16, u16)>,
    ) -> ObjectHeader {
        match track_attribute_order || attribute_phase_change.is_some() {
            true => attribute_header(track_attribute_order, attribute_phase_change),
            false => new_header(self.low),
        }
    }

    /// Makes a new object with this header; something must link to it.
    pub(crate) fn create_with(&self, header: ObjectHeader) -> Result<Arc<Object>> {
        self.insert(Object::create(&self.medium, header)?)
    }

    /// Creates an object whose header has `spare` bytes for further messages.
    pub(crate) fn create_sized(&self, header: ObjectHeader, spare: usize) -> Result<Arc<Object>> {
        self.insert(Object::create_sized(&self.medium, header, spare)?)
    }

    fn insert(&self, object: Object) -> Result<Arc<Object>> {
        self.medium.refuse_in_swmr("no object can be made")?;
        let object = Arc::new(object);
        let mut objects = self.objects();
        objects.make_room();
        objects.list.insert(object.address(), object.clone());
        Ok(object)
    }

    /// Whether a handle holds an object, beside this file and the caller.
    pub(crate) fn is_held(&self, address: u64) -> bool {
        let datasets = self.datasets();
        // A dataset that is in memory has a handle of its object.
        let ours = usize::from(datasets.contains(address));
        datasets.is_used(address, 0) || self.objects().list.is_used(address, ours)
    }

    /// Notes that space of deleted objects becomes free with the next commit.
    pub(crate) fn note_deleted(&self, bytes: u64) {
        self.deleted.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Notes that an object is to be deleted with its last handle.
    pub(crate) fn abandon(&self, address: u64) {
        self.orphans().insert(address);
    }

    /// Whether an object has no links and waits for its last handle.
    pub(crate) fn is_abandoned(&self, address: u64) -> bool {
        self.orphans().contains(&address)
    }

    /// Deletes objects without links that no handle holds.
    fn delete_orphans(&self) -> Result<()> {
        loop {
            let all: Vec<u64> = self.orphans().iter().copied().collect();
            let Some(free) = all.into_iter().find(|&address| !self.is_held(address)) else {
                return Ok(());
            };
            self.orphans().remove(&free);
            delete::delete_abandoned(self, free)?;
        }
    }

    fn orphans(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.orphans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // Nothing under these locks panics half-way through a change: poisoning carries no meaning.
    fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn space(&self) -> MutexGuard<'_, FileSpace> {
        self.space.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // Nobody shares it any more; an opener waits until its entry leaves the list.
        if self.closes.load(Ordering::Relaxed) {
            let _ = self.finish();
        }
    }
}

fn with_options(medium: Medium, options: &CreateOptions) -> Medium {
    let limit = options.metadata_limit.unwrap_or(METADATA_LIMIT);
    // Pages are aligned anyway, and the first one begins before the file is known to be paged.
    let paged = options.space.strategy == FileSpaceStrategy::Paged;
    if let Some(alignment) = options.alignment.filter(|_| !paged) {
        medium.align(alignment);
    }
    medium.with_durability(options.durability).with_metadata_limit(limit)
}
