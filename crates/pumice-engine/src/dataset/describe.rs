//! Between the messages of a dataset's object header and its living layout.

use super::external;
use super::filters::Filters;
use super::virtuality::{self, Virtual};
use crate::attribute::{object_datatype, required};
use crate::file::File;
use crate::object::Object;
use crate::shared::{context, here};
use crate::{Error, Result};
use pumice_format::index::RecordFormat;
use pumice_format::index::extensible_array::ExtensibleArrayParameters;
use pumice_format::index::tree::TreeParameters;
use pumice_format::messages::{
    AllocationTime, ChunkIndexInfo, Fill, FillTime, FillValue, Layout, dataspace, kind,
};
use pumice_format::object_header::RawMessage;
use pumice_format::{Sizes, UNDEFINED};
use pumice_layout::{
    ChunkTable, Contiguous, DatasetLayout, Dense, Geometry, Place, Sparse, Storage, VariableLength,
    VariableLengthFilters,
};
use pumice_medium::zeroed;
use pumice_space::{Dims, Extent};
use pumice_structures::index::{ChunkIndex, IndexKind, IndexParameters, IndexShape};
use pumice_types::Datatype;
use std::sync::Arc;

/// Element size up to which a datatype is trusted; larger elements must be smaller than the file.
const LARGE_ELEMENT: u64 = 512 << 20;

/// Everything that a dataset needs to come alive.
pub(super) struct Description {
    pub(super) datatype: Datatype,
    pub(super) null: bool,
    /// Whether all space is allocated when the dataset is created or extended.
    pub(super) early: bool,
    /// Whether the first write, which is still to come, allocates all space.
    pub(super) late: bool,
    /// The fill value, if one was set.
    pub(super) fill: Option<Vec<u8>>,
    pub(super) layout: DatasetLayout,
    /// The sources of a virtual dataset.
    pub(super) sources: Option<Box<Virtual>>,
    pub(super) message: Layout,
}

/// Reads the description of an existing dataset.
pub(super) fn read(file: &File, object: &Arc<Object>) -> Result<Description> {
    let space = here(file, required(object, kind::DATASPACE, "dataspace")?)?;
    let extent = dataspace::decode(&space.body, &context(file, &space))?;
    let datatype = object_datatype(file, object)?;
    let Filling { value: fill, time: fill_time, allocation } =
        read_fill(file, object, datatype.size())?;
    let raw = here(file, required(object, kind::LAYOUT, "layout")?)?;
    let message = Layout::decode(&raw.body, &context(file, &raw))?;
    let filters = Filters::read(file, object, &message)?;
    let (kept, fill) = (fill.clone(), shown(fill, fill_time, &message));
    let (extent, parts) = match &message {
        Layout::Virtual { heap_address, heap_index } => {
            let rank = extent.dims().len();
            let parts = Virtual::load(file, *heap_address, *heap_index, rank)?;
            let dims = parts.dims(&Dims::from_slice(extent.dims()))?;
            (virtuality::extent(&extent, &dims)?, Some(parts))
        }
        _ => (extent, None),
    };
    let mut description = describe(file, datatype, &extent, fill, message, filters)?;
    description.fill = kept;
    description.early = allocation == AllocationTime::Early;
    description.late = allocation == AllocationTime::Late && is_unallocated(&description.message);
    let layout = &mut description.layout;
    if let Storage::Unreadable(_) = layout.storage {
        return Ok(description);
    }
    if let Some(parts) = parts {
        (layout.storage, description.sources) = (Storage::Virtual, Some(parts.into()));
    } else if let Some(raw) = object.message(kind::EXTERNAL_FILES) {
        layout.storage = external::storage(file, &layout.geometry, &raw)?;
    }
    Ok(description)
}

pub(super) fn optional(file: &File, object: &Object, kind: u16) -> Result<Option<RawMessage>> {
    object.message(kind).map(|message| here(file, message)).transpose()
}

/// The contents of a fill value message.
struct Filling {
    /// The fill value, if one was set.
    value: Option<Vec<u8>>,
    /// When the fill value is written.
    time: FillTime,
    /// When space is allocated.
    allocation: AllocationTime,
}

/// Whether a chunked dataset has neither chunks nor an index.
pub(super) fn is_unallocated(message: &Layout) -> bool {
    matches!(message, Layout::Chunked { address, .. } if *address == UNDEFINED)
}

fn read_fill(file: &File, object: &Object, size: usize) -> Result<Filling> {
    let message = if let Some(raw) = optional(file, object, kind::FILL_VALUE)? {
        FillValue::decode(&raw.body, &context(file, &raw))?
    } else if let Some(raw) = optional(file, object, kind::FILL_VALUE_OLD)? {
        FillValue::decode_old(&raw.body, &context(file, &raw))?
    } else {
        FillValue::default()
    };
    let (time, allocation) = (message.write, message.allocation);
    match message.value {
        Fill::Value(value) if value.len() == size => {
            Ok(Filling { value: Some(value), time, allocation })
        }
        Fill::Value(value) => Err(Error::Damaged(format!(
            "the fill value has {} byte(s), an element {size}",
            value.len()
        ))),
        Fill::Default | Fill::Undefined => Ok(Filling { value: None, time, allocation }),
    }
}

/// The fill value that reads return: none if it is never written, except in structured chunks,
/// where undefined cells are known.
pub(super) fn shown(fill: Option<Vec<u8>>, time: FillTime, message: &Layout) -> Option<Vec<u8>> {
    fill.filter(|_| time != FillTime::Never || matches!(message, Layout::Structured { .. }))
}

/// Brings a layout message to life.
pub(super) fn describe(
    file: &File,
    datatype: Datatype,
    extent: &Extent,
    fill: Option<Vec<u8>>,
    message: Layout,
    filters: Filters,
) -> Result<Description> {
    let (dims, max) = (Dims::from_slice(extent.dims()), Dims::from_slice(extent.max_dims()));
    let chunk = match &message {
        Layout::Chunked { chunk, .. } | Layout::Structured { chunk, .. } => chunk.clone(),
        _ => whole(&dims, &max, datatype.size()),
    };
    let chunked = matches!(message, Layout::Chunked { .. } | Layout::Structured { .. });
    if chunk.len() != dims.len() || (chunked && chunk.contains(&0)) {
        return Err(Error::Damaged(format!("chunks of {chunk:?} for a dataset of {dims:?}")));
    }
    check_size(file, &datatype)?;
    let element = match &fill {
        Some(fill) => fill.clone(),
        // A file may say that elements are far larger than it is itself.
        None => zeroed(datatype.size())?,
    };
    let null = extent.is_null();
    let bytes = extent.cells().and_then(|cells| cells.checked_mul(datatype.size() as u64));
    if bytes.is_none() && !chunked {
        // It has a shape, but nothing is stored: no file could be so large.
        let geometry = Arc::new(Geometry::new(&dims, &max, &vec![0; dims.len()], element)?);
        let storage = Storage::Unreadable("more than 2^64 bytes in one piece".into());
        let layout = DatasetLayout { geometry, storage };
        let (early, late) = (false, false);
        return Ok(Description {
            datatype,
            null,
            early,
            late,
            fill,
            layout,
            sources: None,
            message,
        });
    }
    let geometry = Arc::new(Geometry::new(&dims, &max, &chunk, element)?);
    let storage = storage(file, &geometry, &datatype, &message, filters)?;
    let layout = DatasetLayout { geometry, storage };
    let (early, late) = (false, false);
    Ok(Description { datatype, null, early, late, fill, layout, sources: None, message })
}

/// The shape of a dataset in one piece as the chunk that it is. Data in external files may grow along
/// the first axis, which leaves all of it in its place: the chunk is as long as it can become.
fn whole(dims: &[u64], max: &[u64], element: usize) -> Vec<u64> {
    let mut chunk = dims.to_vec();
    if let (Some(first), Some(&most)) = (chunk.first_mut(), max.first())
        && most > *first
        && !dims[1..].contains(&0)
    {
        let row = dims[1..].iter().try_fold(element.max(1) as u64, |row, &n| row.checked_mul(n));
        *first = row.map_or(*first, |row| most.min(u64::MAX / 2 / row)).max(*first);
    }
    chunk
}

fn storage(
    file: &File,
    geometry: &Arc<Geometry>,
    datatype: &Datatype,
    message: &Layout,
    filters: Filters,
) -> Result<Storage> {
    let refers = datatype.has_references();
    let contiguous = |place| {
        let medium = file.medium().clone();
        let contiguous = Contiguous::new(geometry.clone(), medium, place, refers);
        Storage::Contiguous(Arc::new(contiguous))
    };
    Ok(match message {
        Layout::Compact { data } if data.len() as u64 >= geometry.chunk_bytes() => {
            contiguous(Place::Compact(data.clone()))
        }
        Layout::Compact { data } => {
            return Err(Error::Damaged(format!(
                "compact storage has {} byte(s) for {}",
                data.len(),
                geometry.chunk_bytes()
            )));
        }
        Layout::Contiguous { address: UNDEFINED, .. } => contiguous(Place::File(None)),
        Layout::Contiguous { address, .. } => contiguous(Place::File(Some(*address))),
        Layout::Chunked { index, element_size, address, version, dont_filter_partial, .. } => {
            check_element(geometry, *element_size)?;
            let filtered = !filters.is_empty();
            let format = match filtered {
                true => RecordFormat::filtered(sizes(file), *version, geometry.chunk_bytes()),
                false => RecordFormat::plain(sizes(file), geometry.chunk_bytes()),
            };
            let index = open_index(file, geometry, index, *address, format)?;
            let pipeline = filters.pipeline(0)?;
            let table = ChunkTable::new(file.medium().clone(), geometry.clone(), index, !filtered);
            let table = table.referring(refers);
            let dense = Dense::new(geometry.clone(), pipeline, *dont_filter_partial, table);
            Storage::Dense(Arc::new(dense))
        }
        Layout::Structured { sections: 2 | 3, .. } if datatype.has_varlen() => {
            variable_length(file, geometry, datatype, message, &filters)?
        }
        Layout::Structured { sections, .. } if *sections != 2 => {
            Storage::Unreadable(format!("structured chunks of {sections} sections"))
        }
        Layout::Structured { index, element_size, address, dont_filter_partial, .. } => {
            check_element(geometry, *element_size)?;
            let filtered = !filters.is_empty();
            let bytes = geometry.chunk_bytes();
            let format = RecordFormat::structured(sizes(file), 2, filtered, bytes);
            let index = open_index(file, geometry, index, *address, format)?;
            let (locations, values) = (filters.pipeline(0)?, filters.pipeline(1)?);
            let table = ChunkTable::new(file.medium().clone(), geometry.clone(), index, false);
            let (geometry, table) = (geometry.clone(), table.referring(refers));
            let sparse = Sparse::new(geometry, locations, values, *dont_filter_partial, table);
            Storage::Sparse(Arc::new(sparse))
        }
        // The reader of the mapping replaces it.
        Layout::Virtual { .. } => contiguous(Place::File(None)),
    })
}

/// Structured chunks with variable-length data: sparse if they have three sections.
fn variable_length(
    file: &File,
    geometry: &Arc<Geometry>,
    datatype: &Datatype,
    message: &Layout,
    filters: &Filters,
) -> Result<Storage> {
    let Layout::Structured { sections, index, element_size, address, dont_filter_partial, .. } =
        message
    else {
        return Err(Error::Internal("structured chunks in another layout".into()));
    };
    check_element(geometry, *element_size)?;
    // Chunks may be of any size: see the page on structured chunks in docs/format.
    let format = RecordFormat::structured(sizes(file), *sections, !filters.is_empty(), u64::MAX);
    let format = RecordFormat { chunk_bytes: geometry.chunk_bytes(), ..format };
    let index = open_index(file, geometry, index, *address, format)?;
    let first = usize::from(*sections == 3);
    let locations = if first == 1 { Some(filters.pipeline(0)?) } else { None };
    let (references, heap) = (filters.pipeline(first)?, filters.pipeline(first + 1)?);
    let pipelines = VariableLengthFilters { locations, references, heap };
    let fill = file.global_heap().load(datatype, geometry.fill().to_vec())?;
    let layout = VariableLength::new(
        geometry.clone(),
        datatype.clone(),
        sizes(file),
        pipelines,
        fill,
        *dont_filter_partial,
        ChunkTable::new(file.medium().clone(), geometry.clone(), index, false),
    );
    Ok(Storage::VariableLength(Arc::new(layout)))
}

/// Refuses elements so large that only damage explains them: one is made in memory when a dataset
/// is opened.
fn check_size(file: &File, datatype: &Datatype) -> Result<()> {
    if is_plausible(file, datatype)? {
        return Ok(());
    }
    Err(Error::Damaged(format!("elements of {} bytes, more than the file has", datatype.size())))
}

/// Fails if a new dataset's elements are larger than a file could be opened with.
pub(super) fn check_new_size(file: &File, datatype: &Datatype) -> Result<()> {
    if is_plausible(file, datatype)? {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "elements of {} bytes, in a new dataset of a file that is smaller: {LARGE_ELEMENT} are taken at most, so \
         make elements smaller and the shape larger, such as axes of arrays axes of the dataset",
        datatype.size()
    )))
}

fn is_plausible(file: &File, datatype: &Datatype) -> Result<bool> {
    let size = datatype.size() as u64;
    Ok(size <= LARGE_ELEMENT || size <= file.medium().volume()?)
}

fn sizes(file: &File) -> Sizes {
    file.superblock().sizes
}

fn check_element(geometry: &Geometry, size: u64) -> Result<()> {
    if size == geometry.element_size() as u64 {
        return Ok(());
    }
    Err(Error::Damaged(format!(
        "the layout has elements of {size} byte(s), the datatype of {}",
        geometry.element_size()
    )))
}

/// The living index.
fn open_index(
    file: &File,
    geometry: &Geometry,
    info: &ChunkIndexInfo,
    address: u64,
    format: RecordFormat,
) -> Result<ChunkIndex> {
    let shape = IndexShape::new(&geometry.dims(), geometry.max_dims(), geometry.chunk())?;
    let kind = match info {
        ChunkIndexInfo::BTree1 => IndexKind::BTree1,
        ChunkIndexInfo::Single(single) => {
            let mut record = single.record(address);
            if let Some(record) = &mut record
                && !single.filtered
                && record.sections.is_empty()
            {
                record.size = geometry.chunk_bytes();
            }
            return ChunkIndex::open_single(record, format, shape);
        }
        ChunkIndexInfo::Implicit => IndexKind::Implicit,
        ChunkIndexInfo::FixedArray { .. } => IndexKind::FixedArray,
        ChunkIndexInfo::ExtensibleArray { .. } => IndexKind::ExtensibleArray,
        ChunkIndexInfo::BTree2 { .. } => IndexKind::BTree2,
    };
    if address == UNDEFINED && kind != IndexKind::Implicit {
        let made = ChunkIndex::create_with(kind, parameters(info), format, shape.clone());
        // Parameters that no index can have must not make the dataset unreadable: it gets the usual
        // ones.
        return made.or_else(|_| ChunkIndex::create(kind, format, shape));
    }
    ChunkIndex::open(kind, address, format, shape, &**file.medium())
}

/// The parameters in the layout message for an index that is not in the file yet.
fn parameters(info: &ChunkIndexInfo) -> IndexParameters {
    let mut parameters = IndexParameters::default();
    match *info {
        ChunkIndexInfo::FixedArray { page_bits } => parameters.page_bits = page_bits,
        ChunkIndexInfo::ExtensibleArray {
            max_bits,
            index_elements,
            min_pointers,
            min_elements,
            page_bits,
        } => {
            parameters.extensible = ExtensibleArrayParameters {
                maximum_bits: max_bits,
                index_entries: index_elements,
                data_block_minimum: min_elements,
                super_block_minimum: min_pointers,
                page_bits,
            };
        }
        // Without a size, the header that is to come decides.
        ChunkIndexInfo::BTree2 { node_size, split, merge } if node_size > 0 => {
            parameters.tree = TreeParameters { node_size, split, merge };
        }
        _ => {}
    }
    parameters
}
