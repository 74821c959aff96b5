//! The description of a new dataset, and its header messages.

use super::describe::{Description, check_new_size, describe, is_unallocated, shown};
use super::filters::Filters;
use super::{external, virtuality};
use crate::file::File;
use crate::measure::ExternalPiece;
use crate::object::check_length;
use crate::shared::Committed;
use crate::version::LibraryVersion;
use crate::{Error, Result};
use pumice_filter::{DatasetFacts, FilterSpec, Scaling};
use pumice_format::messages::{
    AllocationTime, ChunkIndexInfo, Era, Fill, FillTime, FillValue, Layout, Message, SPARSE,
    SharedLocation, SingleChunk, dataspace, datatype, kind,
};
use pumice_format::object_header::{MESSAGE_CONSTANT, MESSAGE_SHARED, RawMessage};
use pumice_format::structured::VARIABLE_LENGTH;
use pumice_format::virtual_mapping::VirtualMapping;
use pumice_format::{Sizes, UNDEFINED};
use pumice_layout::Storage;
use pumice_space::{Extent, UNLIMITED};
use pumice_structures::index::{ChunkIndex, IndexKind};
use pumice_types::Datatype;

/// The largest dataset that fits into a message of an object header, behind four bytes: messages of old
/// headers are multiples of eight bytes.
const MAX_COMPACT: u64 = 65_524;
/// A sparse dataset with more chunks than this gets a B-tree even if its extent is limited: a fixed
/// array has an entry for every chunk, and most of them will never be stored.
const MANY_CHUNKS: u64 = 1 << 20;
/// The most chunks of a fixed array. Its data block has a bit for each page of 1024 entries, here
/// 128 MiB, and space for all entries behind them.
const MOST_LISTED: u64 = 1 << 40;
/// Version of the layout message of dense chunks: readable since HDF5 1.10.
const CHUNKED_VERSION: u8 = 4;
/// The layout version for chunks of 4 GiB and more: older releases have 32 bits for the bytes of a
/// chunk.
const LARGE_CHUNKED_VERSION: u8 = 5;
/// The layout version for older releases: chunks in a version 1 B-tree.
const OLD_CHUNKED_VERSION: u8 = 3;

/// The description of a new dataset.
#[derive(Clone, Debug)]
pub struct DatasetSpec {
    /// The type of its elements.
    pub datatype: Datatype,
    /// The committed datatype that it shares, which must be that of its elements.
    pub committed: Option<Committed>,
    /// Its current and maximum dimensions.
    pub extent: Extent,
    /// The storage layout.
    pub layout: LayoutSpec,
    /// Its fill value, one element of its type; zero if not given.
    pub fill: Option<Vec<u8>>,
    /// Whether the dataset has no fill value.
    pub undefined_fill: bool,
    /// The heap objects of a fill value with parts of variable length that is not in the file yet.
    pub fill_heap: Option<Vec<u8>>,
    /// When the fill value is written.
    pub fill_time: FillTime,
    /// When space is allocated; [`AllocationTime::Default`] suits the layout.
    pub allocation: AllocationTime,
    /// Whether the header stores the times of creation and change.
    pub track_times: bool,
    /// Whether attributes store their creation order.
    pub track_attribute_order: bool,
    /// The most attributes in messages, and the fewest in dense storage.
    pub attribute_phase_change: Option<(u16, u16)>,
}

impl DatasetSpec {
    /// Stores the fill value's heap objects in the global heap.
    pub(super) fn store_fill(&mut self, file: &File) -> Result<()> {
        if let (Some(fill), Some(heap)) = (&mut self.fill, self.fill_heap.take()) {
            file.global_heap().store(&self.datatype, fill, &heap)?;
        }
        Ok(())
    }

    /// A dataset with the usual properties.
    pub fn new(datatype: Datatype, extent: Extent, layout: LayoutSpec) -> Self {
        let (fill_time, allocation) = (FillTime::IfSet, AllocationTime::Default);
        let (track_times, track_attribute_order) = (false, false);
        Self {
            datatype,
            committed: None,
            extent,
            layout,
            fill: None,
            undefined_fill: false,
            fill_heap: None,
            fill_time,
            allocation,
            track_times,
            track_attribute_order,
            attribute_phase_change: None,
        }
    }

    /// The fill value message.
    fn fill_message(&self) -> Result<Fill> {
        match (&self.fill, self.undefined_fill) {
            (_, false) => Ok(self.fill.clone().map_or(Fill::Default, Fill::Value)),
            (Some(_), true) => Err(Error::Invalid(
                "a dataset cannot have a fill value and no fill value: set one or the other".into(),
            )),
            (None, true) if self.fill_time == FillTime::Allocation => {
                Err(Error::Invalid("space is to be filled, but there is no fill value".into()))
            }
            (None, true) => Ok(Fill::Undefined),
        }
    }

    /// When space is allocated.
    fn allocation(&self) -> AllocationTime {
        match (self.allocation, &self.layout) {
            (AllocationTime::Default, LayoutSpec::Compact) => AllocationTime::Early,
            (AllocationTime::Default, LayoutSpec::Contiguous | LayoutSpec::External { .. }) => {
                AllocationTime::Late
            }
            (AllocationTime::Default, _) => AllocationTime::Incremental,
            (chosen, _) => chosen,
        }
    }

    /// Whether all space is allocated when the dataset is created or extended. With structured
    /// chunks, only that of the index is.
    fn is_early(&self) -> bool {
        let own = matches!(
            self.layout,
            LayoutSpec::Contiguous
                | LayoutSpec::Chunked { .. }
                | LayoutSpec::Sparse { .. }
                | LayoutSpec::VariableLength { .. }
        );
        own && self.allocation() == AllocationTime::Early
    }
}

/// The storage layout of a new dataset.
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
    /// In one piece, in other files.
    External {
        /// The pieces, one after another; the last may be of `u64::MAX` bytes: any number.
        files: Vec<ExternalPiece>,
    },
    /// In other datasets.
    Virtual {
        /// The mappings to sources.
        mappings: Vec<VirtualMapping>,
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

/// The messages of a new dataset, and its description.
pub(super) fn create(file: &File, mut spec: DatasetSpec) -> Result<(Vec<RawMessage>, Description)> {
    let sizes = file.superblock().sizes;
    let structured =
        matches!(spec.layout, LayoutSpec::Sparse { .. } | LayoutSpec::VariableLength { .. });
    if !structured && spec.committed.is_none() && spec.fill.is_none() {
        spec.datatype = file.global_heap().with_own_references(spec.datatype);
    }
    check_references(sizes, &spec.datatype)?;
    if let Some(fill) = &spec.fill
        && fill.len() != spec.datatype.size()
    {
        return Err(Error::Invalid(format!(
            "the fill value has {} byte(s), an element {}",
            fill.len(),
            spec.datatype.size()
        )));
    }
    check_new_size(file, &spec.datatype)?;
    let (message, filters) = layout_message(file, &spec)?;
    let value = spec.fill_message()?;
    let mut bodies = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    let era = file.era();
    dataspace::encode_for(era, &spec.extent, sizes, &mut bodies[0])?;
    datatype::encode_for(era, &spec.datatype, &mut bodies[1])?;
    let (allocation, write) = (spec.allocation(), spec.fill_time);
    let fill = FillValue { value, allocation, write };
    fill.encode_for(era, &mut bodies[2])?;
    message.encode(sizes, &mut bodies[3])?;
    file.check_datatype(&spec.datatype)?;
    let version = bodies[3].first().copied().unwrap_or(0);
    let what =
        if structured { "a layout of structured chunks, sparse or not," } else { "a layout" };
    file.require_version(LibraryVersion::of_layout(version), what)?;
    let [space, element, fill_value, layout] = bodies;
    let mut messages = vec![
        RawMessage::new(kind::DATASPACE, 0, space),
        datatype_message(&spec, element, sizes)?,
        RawMessage::new(kind::FILL_VALUE, MESSAGE_CONSTANT, fill_value),
        RawMessage::new(kind::LAYOUT, 0, layout),
    ];
    let mut old = Vec::new();
    if era == Era::Old && fill.encode_old(&mut old)? {
        messages.push(RawMessage::new(kind::FILL_VALUE_OLD, MESSAGE_CONSTANT, old));
    }
    for message in &messages {
        check_length(message.kind, &message.body)?;
    }
    messages.extend(filters.message(file)?);
    if let LayoutSpec::External { files } = &spec.layout {
        messages.push(external::message(file, files, &spec.extent, &spec.datatype)?);
    }
    let external = messages.iter().find(|message| message.kind == kind::EXTERNAL_FILES).cloned();
    let (extent, early) = (spec.extent.clone(), spec.is_early());
    let late = spec.allocation() == AllocationTime::Late && is_unallocated(&message);
    let shown = shown(spec.fill.clone(), spec.fill_time, &message);
    let mut description = describe(file, spec.datatype, &extent, shown, message, filters)?;
    (description.fill, description.early, description.late) = (spec.fill, early, late);
    let layout = &mut description.layout;
    if let Some(raw) = external {
        layout.storage = external::storage(file, &layout.geometry, &raw)?;
    } else if let LayoutSpec::Virtual { mappings } = spec.layout {
        let sources = virtuality::Virtual::new(file, mappings);
        (layout.storage, description.sources) = (Storage::Virtual, Some(sources.into()));
    }
    Ok((messages, description))
}

/// The datatype in a message of its own, or where the committed one is.
fn datatype_message(spec: &DatasetSpec, element: Vec<u8>, sizes: Sizes) -> Result<RawMessage> {
    let Some(committed) = &spec.committed else {
        return Ok(RawMessage::new(kind::DATATYPE, MESSAGE_CONSTANT, element));
    };
    let location = SharedLocation::Object { address: committed.address };
    let message = Message::Shared { kind: kind::DATATYPE, location };
    Ok(message.to_raw(sizes, MESSAGE_CONSTANT | MESSAGE_SHARED)?)
}

/// The layout message of a new dataset, without addresses, and its filters.
fn layout_message(file: &File, spec: &DatasetSpec) -> Result<(Layout, Filters)> {
    let element_size = spec.datatype.size() as u64;
    let bytes = spec.extent.cells().and_then(|cells| cells.checked_mul(element_size));
    let bytes = bytes.ok_or_else(|| {
        Error::Invalid(format!(
            "{:?} elements of {element_size} byte(s) in one piece are more than 2^64 bytes, the most that a file can \
             have: give the dataset chunks with `chunk`, or make it sparse with `sparse`",
            spec.extent.dims()
        ))
    });
    let sizes = file.superblock().sizes;
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
        LayoutSpec::Virtual { mappings } => {
            Ok((virtuality::store(file, mappings, &spec.extent)?, Filters::none()))
        }
        LayoutSpec::Contiguous | LayoutSpec::External { .. } => {
            let (dims, max) = (spec.extent.dims(), spec.extent.max_dims());
            let grows = |from: usize| max.iter().zip(dims).skip(from).any(|(max, now)| max != now);
            if let LayoutSpec::External { .. } = spec.layout {
                if grows(1) {
                    let what = "external data can grow along the first axis only";
                    return Err(Error::Invalid(what.into()));
                }
            } else if grows(0) {
                return Err(Error::Invalid(
                    "contiguous datasets cannot grow: give the dataset chunks".into(),
                ));
            }
            Ok((Layout::Contiguous { address: UNDEFINED, size: Some(bytes?) }, Filters::none()))
        }
        LayoutSpec::Chunked { chunk, filters, dont_filter_partial } => {
            let mut index = index_info(spec, sizes, chunk, 0, !filters.is_empty())?;
            let small = is_small(chunk, element_size);
            let mut version = if small { CHUNKED_VERSION } else { LARGE_CHUNKED_VERSION };
            let old = file.library_version() < LibraryVersion::V110;
            if small && old && !dont_filter_partial {
                (version, index) = (OLD_CHUNKED_VERSION, ChunkIndexInfo::BTree1);
            }
            let sections = vec![local(filters, spec, chunk, false, sizes)?];
            let filters = Filters { sections, structured: false };
            let message = Layout::Chunked {
                version,
                chunk: chunk.clone(),
                element_size,
                index,
                address: UNDEFINED,
                dont_filter_partial: *dont_filter_partial,
            };
            Ok((message, filters))
        }
        LayoutSpec::Sparse { chunk, locations, values, dont_filter_partial } => {
            check_sides(chunk)?;
            let values = local(values, spec, chunk, true, sizes)?;
            let filters = Filters::structured(vec![bytewise(locations, chunk, sizes), values]);
            let message = Layout::Structured {
                kind: SPARSE,
                chunk: chunk.clone(),
                element_size,
                sections: 2,
                metadata_sections: vec![0],
                index: index_info(spec, sizes, chunk, 2, !filters.is_empty())?,
                address: UNDEFINED,
                dont_filter_partial: *dont_filter_partial,
            };
            Ok((message, filters))
        }
        LayoutSpec::VariableLength { chunk, locations, references, heap, dont_filter_partial } => {
            check_varlen(spec)?;
            check_sides(chunk)?;
            let kind = VARIABLE_LENGTH | if locations.is_some() { SPARSE } else { 0 };
            let sections = locations.iter().chain([references, heap]);
            let sections = sections.map(|filters| bytewise(filters, chunk, sizes)).collect();
            let filters = Filters::structured(sections);
            let count = filters.sections.len() as u8;
            let message = Layout::Structured {
                kind,
                chunk: chunk.clone(),
                element_size,
                sections: count,
                metadata_sections: (0..count).collect(),
                index: index_info(spec, sizes, chunk, count, !filters.is_empty())?,
                address: UNDEFINED,
                dont_filter_partial: *dont_filter_partial,
            };
            Ok((message, filters))
        }
    }
}

fn is_sparse(layout: &LayoutSpec) -> bool {
    use LayoutSpec::{Sparse, VariableLength};
    matches!(layout, Sparse { .. } | VariableLength { locations: Some(_), .. })
}

/// Whether 32 bits can count the bytes of a chunk.
fn is_small(chunk: &[u64], element_size: u64) -> bool {
    let bytes = chunk.iter().try_fold(element_size, |bytes, &side| bytes.checked_mul(side));
    bytes.is_some_and(|bytes| bytes <= u64::from(u32::MAX))
}

/// Fails unless the references of strings and sequences are as long as the file's.
fn check_references(sizes: Sizes, datatype: &Datatype) -> Result<()> {
    let size = 8 + u32::from(sizes.offset);
    let right = datatype.clone().with_references(size);
    if !datatype.has_varlen() || right == *datatype {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "{datatype} has {} bytes, and {} with references of {size} bytes, which strings and sequences have in this \
         file: see `File::reference_size`",
        datatype.size(),
        right.size()
    )))
}

/// Fails unless the sides of a structured chunk can be counted in 32 bits, which is all that HDF5 has for them.
fn check_sides(chunk: &[u64]) -> Result<()> {
    match chunk.iter().find(|&&side| side > u64::from(u32::MAX)) {
        None => Ok(()),
        Some(side) => Err(Error::Invalid(format!(
            "chunks of {chunk:?}, with a side of {side}: a structured chunk has {} cells along an axis at most",
            u32::MAX
        ))),
    }
}

/// Fails unless elements have variable-length parts.
fn check_varlen(spec: &DatasetSpec) -> Result<()> {
    if spec.datatype.has_varlen() {
        return Ok(());
    }
    Err(Error::Invalid(format!("{} has no parts of variable length", spec.datatype)))
}

/// Filters of elements with the parameters that depend on the dataset.
fn local(
    filters: &[FilterSpec],
    spec: &DatasetSpec,
    chunk: &[u64],
    sparse: bool,
    sizes: Sizes,
) -> Result<Vec<FilterSpec>> {
    let zeros = vec![0; spec.datatype.size()];
    let fill = Some(spec.fill.as_deref().unwrap_or(&zeros));
    let length_width = sizes.length;
    let facts = DatasetFacts { datatype: &spec.datatype, chunk, fill, sparse, length_width };
    Ok(filters.iter().map(|filter| filter.for_dataset(&facts)).collect::<Result<_, _>>()?)
}

/// Fits filters to a section of bytes. Shuffle keeps its word size. Filters for numbers keep their
/// parameters, with which they cannot run; as they are optional, they are skipped.
fn bytewise(filters: &[FilterSpec], chunk: &[u64], sizes: Sizes) -> Vec<FilterSpec> {
    let numbers = [FilterSpec::nbit().id, FilterSpec::scale_offset(Scaling::Integer).id];
    let keeps = |id: u16| numbers.contains(&id) || id == FilterSpec::shuffle(1).id;
    let facts = DatasetFacts {
        datatype: &Datatype::u8(),
        chunk,
        fill: None,
        sparse: true,
        length_width: sizes.length,
    };
    let suited = |filter: &FilterSpec| match keeps(filter.id) {
        true => filter.clone(),
        false => filter.for_dataset(&facts).unwrap_or_else(|_| filter.clone()),
    };
    filters.iter().map(suited).collect()
}

/// Whether libhdf5 takes unlimited axes for limited ones. It does in files with short lengths, and
/// then finds no axis for an extensible array.
pub(crate) fn lacks_unlimited(sizes: Sizes) -> bool {
    sizes.length < 8
}

/// The index for a new dataset's dimensions.
fn index_info(
    spec: &DatasetSpec,
    sizes: Sizes,
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
        return Err(Error::Invalid(format!(
            "chunks of {chunk:?} exceed the shape {max:?}: take smaller ones, or let the dataset grow with `max_shape`"
        )));
    }
    let size = spec.datatype.size() as u64;
    if chunk.iter().try_fold(size, |bytes, &side| bytes.checked_mul(side)).is_none() {
        return Err(Error::Invalid(format!(
            "chunks of {chunk:?} elements of {size} byte(s) are more than 2^64 bytes: take smaller ones"
        )));
    }
    let now = dims.iter().zip(chunk).map(|(&length, &chunk)| length.div_ceil(chunk));
    // A sparse dataset needs no numbers: a B-tree finds chunks by coordinates.
    if !is_sparse(&spec.layout) && now.into_iter().try_fold(1u64, u64::checked_mul).is_none() {
        let what = format!(
            "{dims:?} cells in chunks of {chunk:?}: more than 2^64 of them; take larger ones, a smaller shape, or a \
             sparse dataset, which can have more"
        );
        return Err(Error::Invalid(what));
    }
    // Arrays have room for the maximum extent, as far as it has an end.
    let longest = max.iter().zip(dims).map(|(&max, &now)| if max == UNLIMITED { now } else { max });
    let counts = longest.zip(chunk).map(|(length, &chunk)| length.div_ceil(chunk));
    let chunks = counts.fold(1u64, u64::saturating_mul);
    if sections > 0 && chunks > MANY_CHUNKS {
        return Ok(ChunkIndexInfo::btree2());
    }
    let kind = ChunkIndex::choose(dims, max, chunk);
    if kind == IndexKind::FixedArray && chunks > MOST_LISTED {
        return Err(Error::Invalid(format!(
            "{dims:?} cells in chunks of {chunk:?}: {chunks} of them, where an index of a limited shape has at most \
             2^40; take larger ones, or a sparse dataset"
        )));
    }
    Ok(match kind {
        IndexKind::ExtensibleArray if lacks_unlimited(sizes) => ChunkIndexInfo::btree2(),
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
