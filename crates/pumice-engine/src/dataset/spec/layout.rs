//! The layout message of a new dataset, and its filters.

use super::index::index_info;
use super::{DatasetSpec, LayoutSpec};
use crate::dataset::filters::Filters;
use crate::dataset::virtuality;
use crate::file::File;
use crate::version::LibraryVersion;
use crate::{Error, Result};
use pumice_filter::{DatasetFacts, FilterSpec, Scaling};
use pumice_format::messages::{ChunkIndexInfo, Layout, SPARSE};
use pumice_format::structured::VARIABLE_LENGTH;
use pumice_format::{Sizes, UNDEFINED};
use pumice_types::Datatype;

/// The largest dataset that fits into a message of an object header, behind four bytes: messages of old
/// headers are multiples of eight bytes.
const MAX_COMPACT: u64 = 65_524;
/// Version of the layout message of dense chunks: readable since HDF5 1.10.
const CHUNKED_VERSION: u8 = 4;
/// The layout version for chunks of 4 GiB and more: older releases have 32 bits for the bytes of a
/// chunk.
const LARGE_CHUNKED_VERSION: u8 = 5;
/// The layout version for older releases: chunks in a version 1 B-tree.
const OLD_CHUNKED_VERSION: u8 = 3;

/// The layout message, without addresses, and the filters.
pub(super) fn layout_message(file: &File, spec: &DatasetSpec) -> Result<(Layout, Filters)> {
    let sizes = file.superblock().sizes;
    match &spec.layout {
        LayoutSpec::Compact => Ok((compact(spec)?, Filters::none())),
        LayoutSpec::Virtual { mappings } => {
            Ok((virtuality::store(file, mappings, &spec.extent)?, Filters::none()))
        }
        LayoutSpec::Contiguous | LayoutSpec::External { .. } => {
            check_growth(spec)?;
            let size = Some(bytes_in_one_piece(spec)?);
            Ok((Layout::Contiguous { address: UNDEFINED, size }, Filters::none()))
        }
        LayoutSpec::Chunked { chunk, filters, dont_filter_partial } => {
            chunked(file, spec, chunk, filters, *dont_filter_partial)
        }
        LayoutSpec::Sparse { chunk, locations, values, dont_filter_partial } => {
            let values = local(values, spec, chunk, true, sizes)?;
            let sections = Sections {
                kind: SPARSE,
                filters: vec![bytewise(locations, chunk, sizes), values],
                metadata: 1,
                dont_filter_partial: *dont_filter_partial,
            };
            structured(spec, chunk, sections, sizes)
        }
        LayoutSpec::VariableLength { chunk, locations, references, heap, dont_filter_partial } => {
            check_varlen(spec)?;
            let sections = locations.iter().chain([references, heap]);
            let filters: Vec<_> = sections.map(|list| bytewise(list, chunk, sizes)).collect();
            let sections = Sections {
                kind: VARIABLE_LENGTH | if locations.is_some() { SPARSE } else { 0 },
                metadata: filters.len() as u8,
                filters,
                dont_filter_partial: *dont_filter_partial,
            };
            structured(spec, chunk, sections, sizes)
        }
    }
}

/// Data in the object header, which are there from the start.
fn compact(spec: &DatasetSpec) -> Result<Layout> {
    let bytes = bytes_in_one_piece(spec)?;
    if bytes > MAX_COMPACT {
        let what = format!("compact storage holds at most {MAX_COMPACT} bytes, not {bytes}");
        return Err(Error::Invalid(what));
    }
    let element_size = spec.datatype.size();
    let fill = spec.fill.clone().unwrap_or_else(|| vec![0; element_size]);
    Ok(Layout::Compact { data: fill.repeat(bytes as usize / element_size.max(1)) })
}

/// The bytes of all elements.
fn bytes_in_one_piece(spec: &DatasetSpec) -> Result<u64> {
    let element_size = spec.datatype.size() as u64;
    let bytes = spec.extent.cells().and_then(|cells| cells.checked_mul(element_size));
    bytes.ok_or_else(|| {
        Error::Invalid(format!(
            "{:?} elements of {element_size} byte(s) in one piece are more than 2^64 bytes, the most that a file can \
             have: give the dataset chunks with `chunk`, or make it sparse with `sparse`",
            spec.extent.dims()
        ))
    })
}

/// Fails if data in one piece are to grow where they cannot.
fn check_growth(spec: &DatasetSpec) -> Result<()> {
    let axes = spec.extent.max_dims().iter().zip(spec.extent.dims());
    let grows = |from: usize| axes.clone().skip(from).any(|(max, now)| max != now);
    let external = matches!(spec.layout, LayoutSpec::External { .. });
    match external {
        true if grows(1) => {
            Err(Error::Invalid("external data can grow along the first axis only".into()))
        }
        false if grows(0) => {
            Err(Error::Invalid("contiguous datasets cannot grow: give the dataset chunks".into()))
        }
        _ => Ok(()),
    }
}

/// Dense chunks.
fn chunked(
    file: &File,
    spec: &DatasetSpec,
    chunk: &[u64],
    filters: &[FilterSpec],
    dont_filter_partial: bool,
) -> Result<(Layout, Filters)> {
    let sizes = file.superblock().sizes;
    let element_size = spec.datatype.size() as u64;
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
        chunk: chunk.to_vec(),
        element_size,
        index,
        address: UNDEFINED,
        dont_filter_partial,
    };
    Ok((message, filters))
}

/// The sections of structured chunks.
struct Sections {
    /// The kind of chunks, as the layout message has it.
    kind: u16,
    /// The filters of each section.
    filters: Vec<Vec<FilterSpec>>,
    /// How many sections have metadata; they come first.
    metadata: u8,
    dont_filter_partial: bool,
}

/// Structured chunks.
fn structured(
    spec: &DatasetSpec,
    chunk: &[u64],
    sections: Sections,
    sizes: Sizes,
) -> Result<(Layout, Filters)> {
    check_sides(chunk)?;
    let Sections { kind, filters, metadata, dont_filter_partial } = sections;
    let filters = Filters::structured(filters);
    let sections = filters.sections.len() as u8;
    let message = Layout::Structured {
        kind,
        chunk: chunk.to_vec(),
        element_size: spec.datatype.size() as u64,
        sections,
        metadata_sections: (0..metadata).collect(),
        index: index_info(spec, sizes, chunk, sections, !filters.is_empty())?,
        address: UNDEFINED,
        dont_filter_partial,
    };
    Ok((message, filters))
}

/// Whether 32 bits can count the bytes of a chunk.
fn is_small(chunk: &[u64], element_size: u64) -> bool {
    let bytes = chunk.iter().try_fold(element_size, |bytes, &side| bytes.checked_mul(side));
    bytes.is_some_and(|bytes| bytes <= u64::from(u32::MAX))
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
