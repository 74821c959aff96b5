//! A survey of a file: which bytes belong to which structure.
//!
//! A structure names all its blocks when it gives them back. So it is asked to do that, with a
//! `Recorder` in place of the file: nothing changes. Every block of indexes and heaps is read on
//! the way, which finds damage that ordinary reads do not meet.
//!
//! Collections of the global heap are in no list. Only those are known that elements and attributes
//! led to since [`GlobalHeap::watch`](pumice_structures::global_heap::GlobalHeap::watch).

mod unused;

pub use unused::unused;

use crate::dataset::DatasetState;
use crate::dense_storage::{Addresses, DenseStorage, Kind};
use crate::file::File;
use crate::group::Links;
use crate::object::Object;
use crate::{Error, Result, file_space, group, shared};
use pumice_format::cache_image::CacheImageInfo;
use pumice_format::messages::{AttributeInfo, ExternalFiles, Message, kind};
use pumice_format::shared_message_table::SharedMessageTableInfo;
use pumice_format::{Context, Sizes, UNDEFINED};
use pumice_layout::{Place as Contiguous, Storage};
use pumice_medium::Medium;
use pumice_medium::MetadataIo;
use pumice_structures::btree2::Tree;
use pumice_structures::fractal_heap::FractalHeap;
use pumice_structures::index::IndexKind;
use pumice_structures::local_heap::LocalHeap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The type of B-trees of shared messages.
const SHARED_MESSAGES: u8 = 7;

/// A range of a file and its purpose. Addresses count from the base address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The first byte.
    pub address: u64,
    /// Its length in bytes.
    pub length: u64,
    /// The purpose of the range.
    pub kind: PlaceKind,
}

/// The purpose of a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PlaceKind {
    /// The superblock, or the block of the file driver behind it.
    Superblock,
    /// A block of an object header.
    ObjectHeader,
    /// A node or heap block with a group's links.
    Links,
    /// A node or heap block with densely stored attributes.
    Attributes,
    /// A block of a chunk index.
    ChunkIndex,
    /// A stored chunk.
    Chunk,
    /// The elements of a contiguous dataset.
    Elements,
    /// The names of external files.
    ExternalNames,
    /// A collection of the global heap.
    GlobalHeap,
    /// Shared object header messages and their indexes.
    SharedMessages,
    /// A manager of free space.
    FreeSpaceManager,
    /// Free space that a manager lists.
    FreeSpace,
    /// A metadata cache image.
    CacheImage,
}

impl PlaceKind {
    /// Whether the range holds elements or chunks.
    pub fn is_data(self) -> bool {
        matches!(self, Self::Chunk | Self::Elements | Self::GlobalHeap)
    }
}

impl fmt::Display for PlaceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Superblock => "superblock",
            Self::ObjectHeader => "object header",
            Self::Links => "links",
            Self::Attributes => "attributes",
            Self::ChunkIndex => "chunk index",
            Self::Chunk => "chunk",
            Self::Elements => "elements",
            Self::ExternalNames => "names of external files",
            Self::GlobalHeap => "global heap",
            Self::SharedMessages => "shared messages",
            Self::FreeSpaceManager => "free-space manager",
            Self::FreeSpace => "free space",
            Self::CacheImage => "metadata cache image",
        })
    }
}

/// Stands for the file where structures give space back, and takes note of it.
struct Recorder<'a> {
    medium: &'a Medium,
    kind: PlaceKind,
    places: Mutex<Vec<Place>>,
}

impl<'a> Recorder<'a> {
    fn new(medium: &'a Medium, kind: PlaceKind) -> Self {
        Self { medium, kind, places: Mutex::default() }
    }

    fn into_places(self) -> Vec<Place> {
        self.places.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MetadataIo for Recorder<'_> {
    fn sizes(&self) -> Sizes {
        self.medium.sizes()
    }

    fn chunk_node_rank(&self) -> u16 {
        self.medium.chunk_node_rank()
    }

    fn read(&self, address: u64, length: usize) -> Result<Vec<u8>> {
        self.medium.read(address, length)
    }

    fn allocate(&self, _length: u64) -> Result<u64> {
        Err(Error::Internal("new space while looking for used space".into()))
    }

    fn free(&self, address: u64, length: u64) {
        let place = Place { address, length, kind: self.kind };
        self.places.lock().unwrap_or_else(PoisonError::into_inner).push(place);
    }

    fn stage(&self, _address: u64, _bytes: Vec<u8>) {}
}

/// Everything that belongs to a group, a dataset or a committed datatype. Decodes every message of its header.
pub fn object(file: &File, object: &Arc<Object>) -> Result<Vec<Place>> {
    let mut places = header(object);
    if group::is_group(object) {
        links(file, object, &mut places)?;
    }
    if object.has(kind::LAYOUT) {
        elements(file, object, &mut places)?;
    }
    attributes(file, object, &mut places)?;
    // Including messages that were not needed so far.
    for raw in object.all_messages() {
        Message::from_raw(&raw, &object.context(&raw))?;
    }
    Ok(places)
}

fn header(object: &Object) -> Vec<Place> {
    let blocks = object.blocks().into_iter();
    let kind = PlaceKind::ObjectHeader;
    blocks.map(|(address, length)| Place { address, length, kind }).collect()
}

fn links(file: &File, object: &Object, places: &mut Vec<Place>) -> Result<()> {
    let medium = file.medium();
    let recorder = Recorder::new(medium, PlaceKind::Links);
    match group::open(file, object)? {
        Links::Unread | Links::Compact(_) => {}
        Links::Dense(mut dense) => {
            dense.verify(&**medium)?;
            dense.delete(&recorder)?;
        }
        Links::Old(old) => old.delete(medium, &recorder)?,
    }
    places.extend(recorder.into_places());
    Ok(())
}

fn attributes(file: &File, object: &Object, places: &mut Vec<Place>) -> Result<()> {
    let Some(raw) = object.message(kind::ATTRIBUTE_INFO) else { return Ok(()) };
    let info = AttributeInfo::decode(&raw.body, &object.context(&raw))?;
    if info.heap_address == UNDEFINED {
        return Ok(());
    }
    let addresses = Addresses {
        heap: info.heap_address,
        names: info.name_index_address,
        orders: info.order_index_address.unwrap_or(UNDEFINED),
    };
    let recorder = Recorder::new(file.medium(), PlaceKind::Attributes);
    let mut dense = DenseStorage::open(file, Kind::Attributes, addresses)?;
    dense.verify(&**file.medium())?;
    dense.delete(&recorder)?;
    places.extend(recorder.into_places());
    Ok(())
}

/// Elements of a dataset, its chunk index and the names of its external files.
fn elements(file: &File, object: &Arc<Object>, places: &mut Vec<Place>) -> Result<()> {
    let medium = file.medium();
    // An instance of its own: giving back the index of the shared one would empty it.
    let dataset = DatasetState::open(file, object)?;
    let layout = dataset.layout();
    if let Some(table) = layout.table() {
        let chunks = table.all()?.into_iter().map(|(_, record)| Place {
            address: record.address,
            length: record.size,
            kind: PlaceKind::Chunk,
        });
        places.extend(chunks);
        let recorder = Recorder::new(medium, PlaceKind::ChunkIndex);
        let kind = table.index().kind();
        // An index without blocks of its own would give back its chunks.
        if kind != IndexKind::Implicit {
            table.index().delete(&recorder)?;
        }
        places.extend(recorder.into_places());
    } else if let Storage::Contiguous(contiguous) = &layout.storage
        && let Contiguous::File(Some(address)) = contiguous.place()
    {
        let length = layout.geometry.chunk_bytes();
        places.push(Place { address, length, kind: PlaceKind::Elements });
    }
    if let Some(raw) = object.message(kind::EXTERNAL_FILES) {
        let raw = shared::here(file, raw)?;
        let files = ExternalFiles::decode(&raw.body, &shared::context(file, &raw))?;
        let recorder = Recorder::new(medium, PlaceKind::ExternalNames);
        LocalHeap::open(medium, files.heap_address)?.delete(&recorder);
        places.extend(recorder.into_places());
    }
    Ok(())
}

/// Everything that belongs to no object, and the collections of the global heap that were seen.
pub fn file(file: &File) -> Result<Vec<Place>> {
    let (medium, superblock) = (file.medium(), file.superblock());
    let length = superblock.encoded_length() as u64;
    let mut places = vec![Place { address: 0, length, kind: PlaceKind::Superblock }];
    if let Some((address, length)) = file.extension().driver_place {
        places.push(Place { address, length, kind: PlaceKind::Superblock });
    }
    if superblock.extension_address != UNDEFINED {
        let extension = Object::load(medium, superblock.extension_address)?;
        places.extend(header(&extension));
        of_extension(file, &extension, &mut places)?;
    }
    for (number, address) in file.file_space().managers.into_iter().enumerate() {
        if address != UNDEFINED {
            free_space(medium, number, address, &mut places)?;
        }
    }
    Ok(places)
}

/// The collections of the global heap that elements led to since they are watched.
pub fn global_heap(file: &File) -> Vec<Place> {
    let collections = file.global_heap().watched().into_iter();
    let kind = PlaceKind::GlobalHeap;
    collections.map(|(address, length)| Place { address, length, kind }).collect()
}

/// The structures that the superblock extension names.
fn of_extension(file: &File, extension: &Object, places: &mut Vec<Place>) -> Result<()> {
    let medium = file.medium();
    if let Some(raw) = extension.message(kind::CACHE_IMAGE) {
        let image = CacheImageInfo::decode(&raw.body, &extension.context(&raw))?;
        if image.address != UNDEFINED {
            let (address, length) = (image.address, image.length);
            places.push(Place { address, length, kind: PlaceKind::CacheImage });
        }
    }
    let Some(raw) = extension.message(kind::SHARED_MESSAGE_TABLE) else { return Ok(()) };
    let info = SharedMessageTableInfo::decode(&raw.body, &extension.context(&raw))?;
    let recorder = Recorder::new(medium, PlaceKind::SharedMessages);
    let context = Context::new(medium.sizes()).at(info.address);
    recorder.free(info.address, info.table_length(&context) as u64);
    for index in &file.extension().shared_messages {
        match index.list_length {
            _ if index.index_address == UNDEFINED => {}
            Some(length) => recorder.free(index.index_address, length),
            None => {
                let types = [SHARED_MESSAGES];
                Tree::open(index.index_address, &types, &**medium)?.delete(&recorder)?;
            }
        }
        if index.heap_address != UNDEFINED {
            let mut heap = FractalHeap::open(medium, index.heap_address)?;
            heap.verify()?;
            heap.delete(&recorder)?;
        }
    }
    places.extend(recorder.into_places());
    Ok(())
}

fn free_space(medium: &Medium, number: usize, address: u64, places: &mut Vec<Place>) -> Result<()> {
    let (mut free, mut stored) = (Vec::new(), Vec::new());
    file_space::load(medium, number, address, &mut free, &mut stored)?;
    let kind = PlaceKind::FreeSpaceManager;
    places.extend(stored.into_iter().map(|(address, length)| Place { address, length, kind }));
    let kind = PlaceKind::FreeSpace;
    let sections = free.into_iter();
    places.extend(sections.map(|free| Place { address: free.address, length: free.length, kind }));
    Ok(())
}
