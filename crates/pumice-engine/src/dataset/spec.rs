//! The description of a new dataset, and its header messages.

mod index;
mod layout;

pub(crate) use index::lacks_unlimited;

use self::layout::layout_message;
use super::describe::{Description, check_new_size, describe, is_unallocated, shown};
use super::filters::Filters;
use super::{external, virtuality};
use crate::file::File;
use crate::measure::ExternalPiece;
use crate::object::check_length;
use crate::shared::Committed;
use crate::version::LibraryVersion;
use crate::{Error, Result};
use pumice_filter::FilterSpec;
use pumice_format::Sizes;
use pumice_format::messages::{
    AllocationTime, Era, Fill, FillTime, FillValue, Layout, Message, SharedLocation, dataspace,
    datatype, kind,
};
use pumice_format::object_header::{MESSAGE_CONSTANT, MESSAGE_SHARED, RawMessage};
use pumice_format::virtual_mapping::VirtualMapping;
use pumice_layout::Storage;
use pumice_space::Extent;
use pumice_types::Datatype;

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
    check_filters(&spec)?;
    check_fill(&spec)?;
    check_new_size(file, &spec.datatype)?;
    let (message, filters) = layout_message(file, &spec)?;
    file.check_datatype(&spec.datatype)?;
    let messages = messages(file, &spec, &message, &filters)?;
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

/// The header messages of a new dataset.
fn messages(
    file: &File,
    spec: &DatasetSpec,
    layout: &Layout,
    filters: &Filters,
) -> Result<Vec<RawMessage>> {
    let (era, sizes) = (file.era(), file.superblock().sizes);
    let [mut space, mut element, mut value, mut storage] = [const { Vec::new() }; 4];
    dataspace::encode_for(era, &spec.extent, sizes, &mut space)?;
    datatype::encode_for(era, &spec.datatype, &mut element)?;
    let (allocation, write) = (spec.allocation(), spec.fill_time);
    let fill = FillValue { value: spec.fill_message()?, allocation, write };
    fill.encode_for(era, &mut value)?;
    layout.encode(sizes, &mut storage)?;
    require_layout(file, layout, storage.first().copied().unwrap_or(0))?;
    let mut messages = vec![
        RawMessage::new(kind::DATASPACE, 0, space),
        datatype_message(spec, element, sizes)?,
        RawMessage::new(kind::FILL_VALUE, MESSAGE_CONSTANT, value),
        RawMessage::new(kind::LAYOUT, 0, storage),
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
    Ok(messages)
}

/// Fails if releases that shall read the file do not know this version of the layout.
fn require_layout(file: &File, layout: &Layout, version: u8) -> Result<()> {
    let what = match layout {
        Layout::Structured { .. } => "a layout of structured chunks, sparse or not,",
        _ => "a layout",
    };
    file.require_version(LibraryVersion::of_layout(version), what)
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

/// Fails if the chunks would keep a checksum of references to strings or sequences: libhdf5 makes no such dataset.
fn check_filters(spec: &DatasetSpec) -> Result<()> {
    let checksum = FilterSpec::fletcher32().id;
    match (&spec.layout, &spec.datatype) {
        (LayoutSpec::Chunked { filters, .. }, Datatype::VarLen(_))
            if filters.iter().any(|filter| filter.id == checksum) =>
        {
            Err(Error::Invalid(format!(
                "the Fletcher-32 checksum does not suit {}: their chunks have references, not what these lead to",
                spec.datatype
            )))
        }
        _ => Ok(()),
    }
}

/// Fails unless the fill value is one element.
fn check_fill(spec: &DatasetSpec) -> Result<()> {
    let size = spec.datatype.size();
    match spec.fill.as_ref().map(Vec::len) {
        Some(found) if found != size => {
            Err(Error::Invalid(format!("the fill value has {found} byte(s), an element {size}")))
        }
        _ => Ok(()),
    }
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
