//! A dataset as a living thing: its description, its layout, its place in the chunk cache.
//!
//! Lock order: `deciding`, `replacing`, `gate` (shared by every transfer, exclusive in a resize),
//! then the locks of the cache, the chunk index and the object header.

mod ahead;
mod apart;
mod asking;
mod cells;
mod describe;
mod direct;
mod duplicate;
mod early;
mod external;
mod filters;
mod following;
mod handle;
mod many;
mod moving;
mod points;
mod reach;
mod refresh;
mod resize;
mod rows;
mod spec;
mod steady;
mod transfer;
mod varlen;
mod virtuality;
mod windows;

pub use apart::ApartChunk;
pub use asking::Defined;
pub use cells::Columns;
pub use direct::StoredChunks;
pub(crate) use filters::{named, refitted};
pub use handle::Handle;
pub use many::{ManyRead, ManyWrite, ReadInto, WriteFrom, read_many, write_many};
pub use pumice_format::messages::{AllocationTime, FillTime};
pub use pumice_format::virtual_mapping::VirtualMapping;
pub(crate) use spec::lacks_unlimited;
pub use spec::{DatasetSpec, LayoutSpec};
pub use transfer::TransferOptions;
pub use varlen::DefinedHeaped;
pub use virtuality::{Virtual, VirtualView};
pub use windows::{LineSink, LinesInto, Window, WindowPlan, WindowRows};

use crate::file::{Cache, File};
use crate::object::Object;
use crate::{Error, Result};
use pumice_cache::{Dataset as Cached, DatasetOptions, Refused};
use pumice_format::UNDEFINED;
use pumice_format::messages::{ChunkIndexInfo, Era, Layout, SingleChunk, dataspace, kind};
use pumice_format::object_header::ObjectHeader;
use pumice_layout::{ChunkTable, DatasetLayout, Hdf5, Place, Storage};
use pumice_medium::Medium;
use pumice_medium::MetadataIo;
use pumice_space::{ChunkGrid, Dims, Extent};
use pumice_structures::global_heap::GlobalHeap;
use pumice_types::{Datatype, Heaped};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// An open dataset, shared by all handles to it.
pub struct DatasetState {
    object: Arc<Object>,
    medium: Arc<Medium>,
    heap: Arc<GlobalHeap>,
    datatype: Datatype,
    null: bool,
    early: bool,
    /// Whether the first write, which is still to come, takes all space.
    late: Mutex<bool>,
    fill: Option<Box<[u8]>>,
    layout: Arc<DatasetLayout>,
    /// The sources of a virtual dataset; most datasets have none.
    sources: Option<Box<Virtual>>,
    /// The layout message, without addresses.
    message: Layout,
    cached: Cached<Hdf5>,
    /// The options that the chunk cache gets unless a handle sets others.
    usual: DatasetOptions,
    /// The number of handles that programs have.
    handles: Mutex<usize>,
    gate: RwLock<()>,
    /// Counts changes of the extent.
    resizes: AtomicU64,
    /// Holds on the extent.
    holds: steady::Holds,
    /// Held from reading cells to a write that depends on them.
    deciding: Mutex<()>,
    /// Held while references to the global heap are replaced, from before the old ones are read.
    replacing: Mutex<()>,
    /// Cells with references to the global heap that were overwritten since the file was opened.
    overwritten: Mutex<Option<Box<moving::Overwritten>>>,
    /// Held from making a layout message to storing it, so that an older one never comes last.
    publish: Mutex<()>,
    /// Whether a handle was given out since the dataset was last found idle.
    handed_out: AtomicBool,
    /// A bit for each axis along whose edge no chunk has cells beyond the extent. Other writers
    /// leave such cells.
    masked: AtomicU32,
}

/// Fails if a file cannot have such a dataset.
pub fn check(file: &File, mut spec: DatasetSpec) -> Result<()> {
    if spec.fill_heap.take().is_some() {
        // It is stored when the dataset is made.
        spec.fill = None;
    }
    spec::create(file, spec).map(drop)
}

impl DatasetState {
    /// Opens the dataset that `object` is.
    pub fn open(file: &File, object: &Arc<Object>) -> Result<Self> {
        let description = describe::read(file, object)?;
        Self::new(file, object.clone(), description)
    }

    /// Makes a new dataset. Something must link to its object.
    pub fn create(file: &File, mut spec: DatasetSpec) -> Result<Self> {
        file.medium().require_writable()?;
        spec.store_fill(file)?;
        let Some(committed) = &spec.committed else { return Self::make(file, spec) };
        let committed = committed.address_in(file)?;
        file.object(committed)?.add_link()?;
        Self::make(file, spec).inspect_err(|_| {
            // The first error says more than one about this.
            let _ = crate::delete::release(file, committed);
        })
    }

    fn make(file: &File, spec: DatasetSpec) -> Result<Self> {
        let track_times = spec.track_times;
        let mut header = file.new_header(spec.track_attribute_order, spec.attribute_phase_change);
        let (messages, description) = spec::create(file, spec)?;
        header.messages = messages;
        if track_times {
            header.keep_times(crate::object::now());
        }
        let object = match old_room(&header) {
            Some(spare) => file.create_sized(header, spare)?,
            None => file.create_with(header)?,
        };
        let dataset = Self::new(file, object, description)?;
        dataset.masked.store(u32::MAX, Ordering::Relaxed);
        dataset.allocate_early()?;
        Ok(dataset)
    }

    fn new(file: &File, object: Arc<Object>, description: describe::Description) -> Result<Self> {
        let describe::Description { datatype, null, early, late, fill, layout, sources, message } =
            description;
        let layout = Arc::new(layout);
        let usual = file.options().chunk_cache.unwrap_or_default();
        let cached = layout.register(file.cached(), usual);
        let (medium, heap) = (file.medium().clone(), file.global_heap().clone());
        let (gate, publish, overwritten) = (RwLock::new(()), Mutex::new(()), Mutex::default());
        Ok(Self {
            object,
            medium,
            heap,
            datatype,
            null,
            early,
            late: Mutex::new(late),
            fill: fill.map(Vec::into_boxed_slice),
            layout,
            sources,
            message,
            cached,
            usual,
            handles: Mutex::new(0),
            gate,
            resizes: AtomicU64::new(0),
            holds: steady::Holds::default(),
            deciding: Mutex::default(),
            replacing: Mutex::default(),
            overwritten,
            publish,
            handed_out: AtomicBool::new(true),
            masked: AtomicU32::new(0),
        })
    }

    /// A handle for a caller who may change the dataset. The caller holds the file's list of
    /// datasets.
    pub(crate) fn handed_out(self: &Arc<Self>) -> Arc<Self> {
        self.handed_out.store(true, Ordering::Relaxed);
        self.clone()
    }

    /// Starts to watch whether a handle is given out. The caller holds the file's list of datasets.
    pub(crate) fn watch(&self) {
        self.handed_out.store(false, Ordering::Relaxed);
    }

    /// Whether a handle was given out since the dataset is [watched](Self::watch). The caller holds
    /// the file's list of datasets.
    pub(crate) fn was_handed_out(&self) -> bool {
        self.handed_out.load(Ordering::Relaxed)
    }

    /// Its object header.
    pub fn object(&self) -> &Arc<Object> {
        &self.object
    }

    /// The type of its elements in the file.
    pub fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    /// The fill value, if one was set, with the heap objects that it refers to.
    pub fn fill_heaped(&self) -> Result<Option<Heaped>> {
        self.fill.clone().map(|fill| self.follow(fill.into())).transpose()
    }

    /// The fill value, if one was set.
    pub fn fill_value(&self) -> Option<&[u8]> {
        self.fill.as_deref()
    }

    /// Its layout.
    pub fn layout(&self) -> &DatasetLayout {
        &self.layout
    }

    /// Its sources, if it is virtual.
    pub fn sources(&self) -> Option<&Virtual> {
        self.sources.as_deref()
    }

    /// The layout message, without addresses.
    pub fn layout_message(&self) -> &Layout {
        &self.message
    }

    /// Its extent.
    pub fn extent(&self) -> Result<Extent> {
        if self.null {
            return Ok(Extent::Null);
        }
        let (dims, max) = (self.dims(), self.layout.geometry.max_dims());
        if dims.is_empty() {
            return Ok(Extent::Scalar);
        }
        Ok(Extent::with_max(&dims, max)?)
    }

    /// Its current dimensions.
    pub fn dims(&self) -> Dims {
        self.layout.geometry.dims()
    }

    /// Counts changes of its extent, failed ones included.
    pub fn resizes(&self) -> u64 {
        self.resizes.load(Ordering::Acquire)
    }

    /// Whether the extent may have changed since [`resizes`](Self::resizes) was read. Waits for a
    /// resize that is under way.
    pub fn was_resized_since(&self, resizes: u64) -> bool {
        let _none_under_way = self.gate();
        self.resizes() != resizes
    }

    /// Keeps other callers of this function out from reading cells to a write that depends on them.
    /// Plain reads, writes and erasures do not wait.
    pub fn deciding(&self) -> MutexGuard<'_, ()> {
        self.deciding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that the elements take in the file. Dirty chunks are written first.
    pub fn storage_size(&self) -> Result<u64> {
        if self.layout.table().is_some() {
            return Ok(self.chunk_totals()?.1);
        }
        Ok(match &self.layout.storage {
            Storage::Contiguous(contiguous) => match contiguous.place() {
                Place::Compact(data) => data.len() as u64,
                Place::File(Some(_)) => self.layout.geometry.chunk_bytes(),
                Place::File(None) => 0,
            },
            Storage::External(_) => {
                let cells =
                    self.dims().iter().fold(1u64, |cells, &side| cells.saturating_mul(side));
                cells.saturating_mul(self.layout.geometry.element_size() as u64)
            }
            _ => 0,
        })
    }

    /// Bytes that its chunk index takes, or will take once it is committed.
    pub fn index_size(&self) -> Result<u64> {
        match self.layout.table() {
            Some(table) => table.index().storage_size(&*self.medium),
            None => Ok(0),
        }
    }

    /// The options of the dataset in the chunk cache.
    pub fn cache_options(&self) -> DatasetOptions {
        self.cached.options()
    }

    /// Sets the options of the dataset in the chunk cache.
    pub fn set_cache_options(&self, options: DatasetOptions) {
        self.cached.set_options(options);
    }

    /// Writes back dirty chunks of the dataset and drops its chunks from memory.
    pub fn evict(&self) -> Result<()> {
        self.write_back(self.cache())?;
        self.cache().flush(&self.cached, true)
    }

    /// The statistics of the dataset in the chunk cache.
    pub fn cache_stats(&self) -> pumice_cache::Stats {
        self.cache().dataset_stats(&self.cached)
    }

    /// The miss-ratio curve of the dataset's chunk requests.
    pub fn miss_ratio_curve(&self) -> Vec<pumice_cache::CurvePoint> {
        self.cache().dataset_miss_ratio_curve(&self.cached)
    }

    /// Writes back its dirty chunks and hands its changed metadata to the next commit.
    pub fn flush(&self, cache: &Cache) -> Result<()> {
        self.write_back(cache)?;
        let _change = self.medium.change();
        self.stage()
    }

    /// Flushes the dataset, and says whether all chunks were stored; chunks that a filter refuses
    /// stay in memory.
    pub(crate) fn flush_all(&self, cache: &Cache) -> Result<bool> {
        let refused = match self.is_changeable() {
            true => cache.flush_apart(&self.cached)?,
            false => None,
        };
        let _change = self.medium.change();
        self.stage()?;
        Ok(refused.is_none())
    }

    /// Whether refused chunks belong to this dataset.
    pub(crate) fn has_refused(&self, refused: &Refused<Hdf5>) -> bool {
        self.cached.has_refused(refused)
    }

    /// Whether a commit may not keep the stored form of any of these chunks: their elements refer
    /// to objects that the global heap is about to lose.
    pub(crate) fn needs_any(&self, chunks: &[Dims]) -> Result<bool> {
        match &self.layout.storage {
            Storage::Dense(dense) if self.datatype.has_varlen() => {
                Ok(dense.table().lookup(chunks)?.iter().any(Option::is_some))
            }
            _ => Ok(false),
        }
    }

    /// Whether files that were written through this dataset wait for its commit.
    pub(crate) fn holds_sources(&self) -> bool {
        self.sources().is_some_and(Virtual::holds_written)
    }

    /// Writes back its dirty chunks.
    pub fn write_back(&self, cache: &Cache) -> Result<()> {
        if self.is_changeable() { cache.flush(&self.cached, false) } else { Ok(()) }
    }

    /// Commits other files that were written to through it.
    pub(crate) fn commit_sources(&self) -> Result<()> {
        self.sources().map_or(Ok(()), Virtual::commit_sources)
    }

    /// Hands its changed metadata to the next commit. The caller holds changes or holds them back.
    pub fn stage(&self) -> Result<()> {
        // A flush may have had it in hand when it was deleted.
        if !self.is_changeable() || self.object.is_deleted() {
            return Ok(());
        }
        let _one_at_a_time = self.publish.lock().unwrap_or_else(PoisonError::into_inner);
        let message = self.current_message()?;
        // Other writers pad messages, and some are of older versions: only real changes count.
        let stored = self.object.message(kind::LAYOUT);
        if stored.is_some_and(|stored| {
            let context = self.object.context(&stored);
            Layout::decode(&stored.body, &context).is_ok_and(|stored| stored == message)
        }) {
            return Ok(());
        }
        let mut body = Vec::new();
        message.encode(self.medium.sizes(), &mut body)?;
        match self.object.set(kind::LAYOUT, 0, body) {
            Err(_) if self.object.is_deleted() => Ok(()),
            set => set,
        }
    }

    fn is_changeable(&self) -> bool {
        let fixed = matches!(
            self.layout.storage,
            Storage::External(_) | Storage::Virtual | Storage::Unreadable(_)
        );
        self.medium.writable() && !fixed
    }

    /// Drops its data and index from the file. The object header is the caller's.
    pub fn free(&self) -> Result<()> {
        let _alone = self.gate_exclusively();
        let exclusive = self.cache().exclusive(&self.cached);
        for key in exclusive.resident_keys() {
            exclusive.discard(&key);
        }
        match &self.layout.storage {
            Storage::Contiguous(contiguous) => contiguous.free(),
            _ => self.layout.table().map_or(Ok(()), ChunkTable::free)?,
        }
        Ok(())
    }

    /// Moves data to free space nearer to the start of the file, if there is any, and says whether
    /// it did. Changes are held back, and all is committed.
    pub(crate) fn move_down(&self) -> Result<bool> {
        match &self.layout.storage {
            Storage::Contiguous(contiguous) => contiguous.move_down(),
            _ => self.layout.table().map_or(Ok(false), ChunkTable::move_down),
        }
    }

    /// Moves chunks that were rewritten elsewhere to free space nearer to the start of the file,
    /// and says whether it did. Changes are held back, and all is committed.
    pub(crate) fn move_displaced(&self) -> Result<bool> {
        self.layout.table().map_or(Ok(false), ChunkTable::move_displaced)
    }

    /// The layout message with the addresses of now. Stages the index.
    fn current_message(&self) -> Result<Layout> {
        let mut message = self.message.clone();
        match (&mut message, &self.layout.storage) {
            (_, Storage::Contiguous(contiguous)) => {
                return Ok(match contiguous.place() {
                    Place::Compact(data) => Layout::Compact { data },
                    Place::File(address) => Layout::Contiguous {
                        address: address.unwrap_or(UNDEFINED),
                        size: Some(self.layout.geometry.chunk_bytes()),
                    },
                });
            }
            (
                Layout::Chunked { index: info, address, .. }
                | Layout::Structured { index: info, address, .. },
                _,
            ) => {
                let table = self.layout.table().ok_or_else(another_layout)?;
                let mut index = table.index();
                *address = index.commit(&*self.medium)?;
                if let ChunkIndexInfo::Single(single) = info {
                    *single = match index.single() {
                        Some(record) => SingleChunk::from_record(record, single.filtered),
                        None => SingleChunk::unset(single.sections.len() as u8, single.filtered),
                    };
                }
            }
            _ => return Err(another_layout()),
        }
        Ok(message)
    }

    /// Records a new extent in the object header.
    fn set_extent(&self, extent: &Extent) -> Result<()> {
        let stored = self.object.message(kind::DATASPACE);
        let old = stored.is_some_and(|stored| stored.body.first() == Some(&1));
        let era = if old { Era::Old } else { Era::New };
        let mut body = Vec::new();
        dataspace::encode_for(era, extent, self.medium.sizes(), &mut body)?;
        self.object.set(kind::DATASPACE, 0, body)
    }

    /// The file as space.
    pub fn medium(&self) -> &Medium {
        &self.medium
    }

    fn cache(&self) -> &Cache {
        self.cached.cache()
    }

    fn grid(&self, dims: &Dims) -> Result<ChunkGrid> {
        match &self.layout.storage {
            Storage::Unreadable(reason) => return Err(Error::Unsupported(reason.clone())),
            Storage::Virtual => {
                return Err(Error::Unsupported("anything but reading a virtual dataset".into()));
            }
            _ => {}
        }
        Ok(ChunkGrid::new(dims, self.layout.geometry.chunk())?)
    }

    fn gate(&self) -> RwLockReadGuard<'_, ()> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn gate_exclusively(&self) -> RwLockWriteGuard<'_, ()> {
        self.gate.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The room for messages in a new header of version 1, as libhdf5 makes it.
fn old_room(header: &ObjectHeader) -> Option<usize> {
    const ROOM: usize = 256;
    let used = header.messages_length(&header.messages);
    (header.version == 1).then(|| ROOM.checked_sub(used)).flatten()
}

fn another_layout() -> Error {
    Error::Internal("layout message of another layout".into())
}
