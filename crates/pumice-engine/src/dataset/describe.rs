//! Between the messages of a dataset's object header and its living layout.

use super::external;
use super::virtuality::{self, Virtual};
use crate::attribute::{object_datatype, required};
use crate::file::File;
use crate::index::{ChunkIndex, IndexKind, IndexShape};
use crate::layout::{
    ChunkTable, Contiguous, DatasetLayout, Dense, Geometry, Place, Sparse, Storage, VariableLength,
    VariableLengthFilters,
};
use crate::object::Object;
use crate::shared::{context, here};
use crate::{Error, Result};
use pumice_filter::{DatasetFacts, FilterSpec, Pipeline};
use pumice_format::index::RecordFormat;
use pumice_format::messages::{
    self, AllocationTime, ChunkIndexInfo, Fill, FillTime, FillValue, FilterDescription, Layout,
    SPARSE, SectionPipeline, SingleChunk, StructuredPipeline, dataspace, datatype, kind,
};
use pumice_format::object_header::{MESSAGE_CONSTANT, RawMessage};
use pumice_format::structured::VARIABLE_LENGTH;
use pumice_format::{Sizes, UNDEFINED};
use pumice_space::{Dims, Extent, UNLIMITED};
use pumice_types::Datatype;
use std::sync::Arc;

/// The largest dataset that fits into an object header.
const MAX_COMPACT: u64 = 64_000;
/// Elements up to this size are taken as they are; larger ones must be smaller than the file.
const LARGE_ELEMENT: u64 = 512 << 20;
/// A sparse dataset of more chunks than this gets a B-tree even if its extent is limited: a fixed
/// array has an entry for every chunk, and most of them will never be stored.
const MANY_CHUNKS: u64 = 1 << 20;
/// Version of the layout message of dense chunks: readable since HDF5 1.10.
const CHUNKED_VERSION: u8 = 4;

/// What a new dataset shall be.
#[derive(Clone, Debug)]
pub struct DatasetSpec {
    /// The type of its elements.
    pub datatype: Datatype,
    /// Its current and maximum dimensions.
    pub extent: Extent,
    /// How it is stored.
    pub layout: LayoutSpec,
    /// Its fill value, one element of its type; zero if not given.
    pub fill: Option<Vec<u8>>,
    /// When the fill value is written.
    pub fill_time: FillTime,
    /// When space is taken; [`AllocationTime::Default`] is what suits the layout.
    pub allocation: AllocationTime,
}

impl DatasetSpec {
    /// A dataset with the usual properties.
    pub fn new(datatype: Datatype, extent: Extent, layout: LayoutSpec) -> Self {
        let (fill_time, allocation) = (FillTime::IfSet, AllocationTime::Default);
        Self { datatype, extent, layout, fill: None, fill_time, allocation }
    }

    /// When space is taken.
    fn allocation(&self) -> AllocationTime {
        match (self.allocation, &self.layout) {
            (AllocationTime::Default, LayoutSpec::Compact) => AllocationTime::Early,
            (AllocationTime::Default, LayoutSpec::Contiguous) => AllocationTime::Late,
            (AllocationTime::Default, _) => AllocationTime::Incremental,
            (chosen, _) => chosen,
        }
    }

    /// Whether all space is taken when the dataset is made or grows.
    fn is_early(&self) -> bool {
        let dense = matches!(self.layout, LayoutSpec::Contiguous | LayoutSpec::Chunked { .. });
        dense && self.allocation() == AllocationTime::Early
    }
}

/// How a new dataset is stored.
#[derive(Clone, Debug)]
pub enum LayoutSpec {
    /// In the object header.
    Compact,
    /// In one piece of the file.
    Contiguous,
    /// In dense chunks.
    Chunked {
        /// Shape of a chunk.
        chunk: Vec<u64>,
        /// Filters, in the order of writing.
        filters: Vec<FilterSpec>,
        /// Whether chunks that reach beyond the extent are stored unfiltered.
        dont_filter_partial: bool,
    },
    /// In sparse chunks.
    Sparse {
        /// Shape of a chunk.
        chunk: Vec<u64>,
        /// Filters of the locations (section 0), in the order of writing.
        locations: Vec<FilterSpec>,
        /// Filters of the values (section 1), in the order of writing.
        values: Vec<FilterSpec>,
        /// Whether chunks that reach beyond the extent are stored unfiltered.
        dont_filter_partial: bool,
    },
    /// In chunks with variable-length data.
    VariableLength {
        /// Shape of a chunk.
        chunk: Vec<u64>,
        /// Filters of the locations (section 0), if cells can be undefined.
        locations: Option<Vec<FilterSpec>>,
        /// Filters of the references (the section after the locations).
        references: Vec<FilterSpec>,
        /// Filters of the heap (the last section).
        heap: Vec<FilterSpec>,
        /// Whether chunks that reach beyond the extent are stored unfiltered.
        dont_filter_partial: bool,
    },
}

/// Everything that a dataset needs to come alive.
pub(super) struct Description {
    pub(super) datatype: Datatype,
    pub(super) null: bool,
    /// Whether all space is taken when the dataset is made or grows.
    pub(super) early: bool,
    /// The fill value, if one was set.
    pub(super) fill: Option<Vec<u8>>,
    pub(super) layout: DatasetLayout,
    pub(super) message: Layout,
}

/// Reads the description of an existing dataset.
pub(super) fn read(file: &File, object: &Arc<Object>) -> Result<Description> {
    let space = here(file, required(object, kind::DATASPACE, "dataspace")?)?;
    let extent = dataspace::decode(&space.body, &context(file, &space))?;
    let datatype = object_datatype(file, object)?;
    let Filling { value: fill, time: fill_time, early } = read_fill(file, object, datatype.size())?;
    let raw = here(file, required(object, kind::LAYOUT, "layout")?)?;
    let message = Layout::decode(&raw.body, &context(file, &raw))?;
    let filters = Filters::read(file, object, &message)?;
    // What was never filled is not read as the fill value either.
    let (kept, fill) = match fill_time {
        FillTime::Never => (fill, None),
        _ => (fill.clone(), fill),
    };
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
    (description.fill, description.early) = (kept, early);
    let layout = &mut description.layout;
    if let Storage::Unreadable(_) = layout.storage {
        return Ok(description);
    }
    if let Some(parts) = parts {
        layout.storage = Storage::Virtual(parts);
    } else if let Some(raw) = object.message(kind::EXTERNAL_FILES) {
        layout.storage = external::storage(file, &layout.geometry, &raw)?;
    }
    Ok(description)
}

fn optional(file: &File, object: &Object, kind: u16) -> Result<Option<RawMessage>> {
    object.message(kind).map(|message| here(file, message)).transpose()
}

/// The messages of a new dataset, and its description.
pub(super) fn create(file: &File, spec: DatasetSpec) -> Result<(Vec<RawMessage>, Description)> {
    let sizes = file.superblock().sizes;
    if let Some(fill) = &spec.fill
        && fill.len() != spec.datatype.size()
    {
        return Err(Error::Invalid(format!(
            "the fill value has {} byte(s), an element {}",
            fill.len(),
            spec.datatype.size()
        )));
    }
    let (message, filters) = layout_message(&spec)?;
    let value = spec.fill.clone().map_or(Fill::Default, Fill::Value);
    let mut bodies = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    dataspace::encode(&spec.extent, sizes, &mut bodies[0])?;
    datatype::encode(&spec.datatype, &mut bodies[1])?;
    let (allocation, write) = (spec.allocation(), spec.fill_time);
    FillValue { value, allocation, write }.encode(&mut bodies[2])?;
    message.encode(sizes, &mut bodies[3])?;
    let [space, element, fill_value, layout] = bodies;
    let mut messages = vec![
        RawMessage::new(kind::DATASPACE, 0, space),
        RawMessage::new(kind::DATATYPE, MESSAGE_CONSTANT, element),
        RawMessage::new(kind::FILL_VALUE, MESSAGE_CONSTANT, fill_value),
        RawMessage::new(kind::LAYOUT, 0, layout),
    ];
    messages.extend(filters.message()?);
    let (extent, early) = (spec.extent.clone(), spec.is_early());
    let shown = spec.fill.clone().filter(|_| spec.fill_time != FillTime::Never);
    let mut description = describe(file, spec.datatype, &extent, shown, message, filters)?;
    (description.fill, description.early) = (spec.fill, early);
    Ok((messages, description))
}

/// The filters of a dataset: of its chunks, or of each of their sections.
struct Filters {
    /// By the number of the section; a dense chunk has one.
    sections: Vec<Vec<FilterSpec>>,
    structured: bool,
}

impl Filters {
    fn none() -> Self {
        Self { sections: Vec::new(), structured: false }
    }

    fn structured(sections: Vec<Vec<FilterSpec>>) -> Self {
        Self { sections, structured: true }
    }

    /// The pipeline of a section; of a dense chunk, 0.
    fn pipeline(&self, section: usize) -> Result<Pipeline> {
        Ok(Pipeline::new(self.sections.get(section).cloned().unwrap_or_default())?)
    }

    fn read(file: &File, object: &Object, layout: &Layout) -> Result<Self> {
        let mut filters = Self::none();
        if let Layout::Structured { sections, .. } = layout {
            filters.structured = true;
            let pipeline = if let Some(raw) = optional(file, object, kind::STRUCTURED_PIPELINE)? {
                StructuredPipeline::decode(&raw.body, &context(file, &raw))?
            } else if let Some(raw) = optional(file, object, kind::PIPELINE)? {
                StructuredPipeline::decode_in_pipeline(&raw.body, &context(file, &raw))?
            } else {
                return Ok(filters);
            };
            let section = |number| pipeline.filters(number).iter().map(spec_of).collect();
            filters.sections = (0..*sections).map(section).collect();
        } else if let Some(raw) = optional(file, object, kind::PIPELINE)? {
            let pipeline = messages::Pipeline::decode(&raw.body, &context(file, &raw))?;
            filters.sections = vec![pipeline.filters.iter().map(spec_of).collect()];
        }
        Ok(filters)
    }

    fn is_empty(&self) -> bool {
        self.sections.iter().all(Vec::is_empty)
    }

    /// The message that describes them, if there are any.
    fn message(&self) -> Result<Option<RawMessage>> {
        if self.is_empty() {
            return Ok(None);
        }
        let mut body = Vec::new();
        if !self.structured {
            let filters = self.sections.iter().flatten().map(description_of).collect();
            messages::Pipeline { filters }.encode(&mut body)?;
            return Ok(Some(RawMessage::new(kind::PIPELINE, MESSAGE_CONSTANT, body)));
        }
        let mut sections = Vec::new();
        for (section, filters) in (0..).zip(&self.sections) {
            if !filters.is_empty() {
                let filters = filters.iter().map(description_of).collect();
                sections.push(SectionPipeline { section, filters });
            }
        }
        StructuredPipeline { sections }.encode(&mut body)?;
        Ok(Some(RawMessage::new(kind::STRUCTURED_PIPELINE, MESSAGE_CONSTANT, body)))
    }
}

/// The filters of a pipeline message, ready to run.
pub(crate) fn pipeline_of(message: &messages::Pipeline) -> Result<Pipeline> {
    Ok(Pipeline::new(message.filters.iter().map(spec_of).collect())?)
}

fn spec_of(description: &FilterDescription) -> FilterSpec {
    FilterSpec {
        id: description.id,
        optional: description.is_optional(),
        name: description.name.clone(),
        parameters: description.parameters.clone(),
    }
}

fn description_of(spec: &FilterSpec) -> FilterDescription {
    let mut description = FilterDescription::new(spec.id, &spec.parameters);
    description.flags = u16::from(spec.optional);
    description.name.clone_from(&spec.name);
    description
}

/// What a fill value message says.
struct Filling {
    /// The fill value, if one was set.
    value: Option<Vec<u8>>,
    /// When it is written.
    time: FillTime,
    /// Whether all space is taken when the dataset is made or grows.
    early: bool,
}

fn read_fill(file: &File, object: &Object, size: usize) -> Result<Filling> {
    let message = if let Some(raw) = optional(file, object, kind::FILL_VALUE)? {
        FillValue::decode(&raw.body, &context(file, &raw))?
    } else if let Some(raw) = optional(file, object, kind::FILL_VALUE_OLD)? {
        FillValue::decode_old(&raw.body, &context(file, &raw))?
    } else {
        FillValue::default()
    };
    let (time, early) = (message.write, message.allocation == AllocationTime::Early);
    match message.value {
        Fill::Value(value) if value.len() == size => {
            Ok(Filling { value: Some(value), time, early })
        }
        Fill::Value(value) => Err(Error::Invalid(format!(
            "the fill value has {} byte(s), an element {size}",
            value.len()
        ))),
        Fill::Default | Fill::Undefined => Ok(Filling { value: None, time, early }),
    }
}

/// The layout message of a new dataset, with nothing allocated, and its filters.
fn layout_message(spec: &DatasetSpec) -> Result<(Layout, Filters)> {
    let element_size = spec.datatype.size() as u64;
    let bytes = spec.extent.cells().and_then(|cells| cells.checked_mul(element_size));
    let bytes = bytes.ok_or_else(|| {
        Error::Invalid(format!("a dataset of {:?} is too large", spec.extent.dims()))
    });
    match &spec.layout {
        LayoutSpec::Compact => {
            let bytes = bytes?;
            if bytes > MAX_COMPACT {
                return Err(Error::Invalid(format!(
                    "compact storage holds at most {MAX_COMPACT} bytes, not {bytes}"
                )));
            }
            let fill = spec.fill.clone().unwrap_or_else(|| vec![0; element_size as usize]);
            Ok((
                Layout::Compact { data: fill.repeat((bytes / element_size.max(1)) as usize) },
                Filters::none(),
            ))
        }
        LayoutSpec::Contiguous => {
            if spec.extent.max_dims() != spec.extent.dims() {
                return Err(Error::Invalid(
                    "contiguous datasets cannot grow: give the dataset chunks".into(),
                ));
            }
            Ok((Layout::Contiguous { address: UNDEFINED, size: Some(bytes?) }, Filters::none()))
        }
        LayoutSpec::Chunked { chunk, filters, dont_filter_partial } => {
            let index = index_info(spec, chunk, 0, !filters.is_empty())?;
            let sections = vec![local(filters, spec, chunk)?];
            let filters = Filters { sections, structured: false };
            let message = Layout::Chunked {
                version: CHUNKED_VERSION,
                chunk: chunk.clone(),
                element_size,
                index,
                address: UNDEFINED,
                dont_filter_partial: *dont_filter_partial,
            };
            Ok((message, filters))
        }
        LayoutSpec::Sparse { chunk, locations, values, dont_filter_partial } => {
            let filters = Filters::structured(vec![locations.clone(), local(values, spec, chunk)?]);
            let message = Layout::Structured {
                kind: SPARSE,
                chunk: chunk.clone(),
                element_size,
                sections: 2,
                metadata_sections: vec![0],
                index: index_info(spec, chunk, 2, !filters.is_empty())?,
                address: UNDEFINED,
                dont_filter_partial: *dont_filter_partial,
            };
            Ok((message, filters))
        }
        LayoutSpec::VariableLength { chunk, locations, references, heap, dont_filter_partial } => {
            check_varlen(spec)?;
            let kind = VARIABLE_LENGTH | if locations.is_some() { SPARSE } else { 0 };
            let sections = locations.iter().chain([references, heap]).cloned().collect();
            let filters = Filters::structured(sections);
            let count = filters.sections.len() as u8;
            let message = Layout::Structured {
                kind,
                chunk: chunk.clone(),
                element_size,
                sections: count,
                metadata_sections: (0..count).collect(),
                index: index_info(spec, chunk, count, !filters.is_empty())?,
                address: UNDEFINED,
                dont_filter_partial: *dont_filter_partial,
            };
            Ok((message, filters))
        }
    }
}

/// Fails unless elements have variable-length parts.
fn check_varlen(spec: &DatasetSpec) -> Result<()> {
    if spec.datatype.has_varlen() {
        return Ok(());
    }
    Err(Error::Invalid(format!("{} has no parts of variable length", spec.datatype)))
}

/// Filters with the parameters that depend on the dataset.
fn local(filters: &[FilterSpec], spec: &DatasetSpec, chunk: &[u64]) -> Result<Vec<FilterSpec>> {
    let zeros = vec![0; spec.datatype.size()];
    let fill = Some(spec.fill.as_deref().unwrap_or(&zeros));
    let facts = DatasetFacts { datatype: &spec.datatype, chunk, fill };
    Ok(filters.iter().map(|filter| filter.for_dataset(&facts)).collect::<Result<_, _>>()?)
}

/// The index for a new dataset's dimensions.
fn index_info(
    spec: &DatasetSpec,
    chunk: &[u64],
    sections: u8,
    filtered: bool,
) -> Result<ChunkIndexInfo> {
    let (dims, max) = (spec.extent.dims(), spec.extent.max_dims());
    if dims.is_empty() || chunk.len() != dims.len() || chunk.contains(&0) {
        return Err(Error::Invalid(format!("chunks of {chunk:?} do not suit a shape of {dims:?}")));
    }
    // As in libhdf5, an axis without cells may have chunks of any length.
    let mut axes = chunk.iter().zip(max).zip(dims);
    if axes.any(|((&chunk, &max), &now)| now > 0 && chunk > max) {
        return Err(Error::Invalid(format!("chunks of {chunk:?} exceed the shape {max:?}")));
    }
    // Arrays have room for the maximum extent, as far as it has an end.
    let longest = max.iter().zip(dims).map(|(&max, &now)| if max == UNLIMITED { now } else { max });
    let counts = longest.zip(chunk).map(|(length, &chunk)| length.div_ceil(chunk));
    let chunks = counts.fold(1u64, u64::saturating_mul);
    if sections > 0 && chunks > MANY_CHUNKS {
        return Ok(ChunkIndexInfo::btree2());
    }
    Ok(match ChunkIndex::choose(dims, max, chunk) {
        IndexKind::Single => ChunkIndexInfo::Single(SingleChunk::unset(sections, filtered)),
        IndexKind::ExtensibleArray => ChunkIndexInfo::extensible_array(),
        IndexKind::BTree2 => ChunkIndexInfo::btree2(),
        // Chunks that are all there from the start and never move need no index.
        IndexKind::FixedArray if sections == 0 && !filtered && spec.is_early() => {
            ChunkIndexInfo::Implicit
        }
        IndexKind::FixedArray | IndexKind::Implicit | IndexKind::BTree1 => {
            ChunkIndexInfo::fixed_array()
        }
    })
}

/// Brings a layout message to life.
fn describe(
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
        _ => dims.to_vec(),
    };
    let chunked = matches!(message, Layout::Chunked { .. } | Layout::Structured { .. });
    if chunk.len() != dims.len() || (chunked && chunk.contains(&0)) {
        return Err(Error::Invalid(format!("chunks of {chunk:?} for a dataset of {dims:?}")));
    }
    check_size(file, &datatype)?;
    let element = fill.clone().unwrap_or_else(|| vec![0; datatype.size()]);
    let null = extent.is_null();
    let bytes = extent.cells().and_then(|cells| cells.checked_mul(datatype.size() as u64));
    if bytes.is_none() && !chunked {
        // It has a shape all the same, and nothing stored: as large as no file can be.
        let geometry = Arc::new(Geometry::new(&dims, &max, &vec![0; dims.len()], element)?);
        let storage = Storage::Unreadable("more than 2^64 bytes in one piece".into());
        let layout = DatasetLayout { geometry, storage };
        return Ok(Description { datatype, null, early: false, fill, layout, message });
    }
    let geometry = Arc::new(Geometry::new(&dims, &max, &chunk, element)?);
    let storage = storage(file, &geometry, &datatype, &message, filters)?;
    let layout = DatasetLayout { geometry, storage };
    Ok(Description { datatype, null, early: false, fill, layout, message })
}

fn storage(
    file: &File,
    geometry: &Arc<Geometry>,
    datatype: &Datatype,
    message: &Layout,
    filters: Filters,
) -> Result<Storage> {
    let contiguous = |place| {
        Storage::Contiguous(Contiguous::new(geometry.clone(), file.medium().clone(), place))
    };
    Ok(match message {
        Layout::Compact { data } if data.len() as u64 >= geometry.chunk_bytes() => {
            contiguous(Place::Compact(data.clone()))
        }
        Layout::Compact { data } => {
            return Err(Error::Invalid(format!(
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
            let dense = Dense::new(geometry.clone(), pipeline, *dont_filter_partial);
            Storage::Dense(dense, ChunkTable::new(file.medium().clone(), index, !filtered))
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
            let sparse = Sparse::new(geometry.clone(), locations, values, *dont_filter_partial);
            Storage::Sparse(Box::new(sparse), ChunkTable::new(file.medium().clone(), index, false))
        }
        // Replaced by whoever has read the mapping.
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
    let layout = VariableLength::new(
        geometry.clone(),
        datatype.clone(),
        sizes(file),
        pipelines,
        *dont_filter_partial,
    )?;
    Ok(Storage::VariableLength(
        Box::new(layout),
        ChunkTable::new(file.medium().clone(), index, false),
    ))
}

/// Refuses elements so large that only damage explains them: one is made in memory when a dataset
/// is opened.
fn check_size(file: &File, datatype: &Datatype) -> Result<()> {
    let size = datatype.size() as u64;
    if size <= LARGE_ELEMENT || size <= file.medium().volume()? {
        return Ok(());
    }
    Err(Error::Invalid(format!("elements of {} bytes, more than the file has", datatype.size())))
}

fn sizes(file: &File) -> Sizes {
    file.superblock().sizes
}

fn check_element(geometry: &Geometry, size: u64) -> Result<()> {
    if size == geometry.element_size() as u64 {
        return Ok(());
    }
    Err(Error::Invalid(format!(
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
    ChunkIndex::open(kind, address, format, shape, &**file.medium())
}
