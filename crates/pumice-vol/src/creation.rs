//! Dataset creation property lists: what they ask for, and lists that say how a dataset was made.

use crate::abi::*;
use crate::datatype_map;
use crate::fault::{Fault, Result, checked};
use crate::handle::Handle;
use crate::library::{Api, c_text};
use crate::memory;
use crate::references::Links;
use crate::space;
use crate::struct_chunk::{SPARSE, StructChunk, VARIABLE_LENGTH};
use pumice_engine::dataset::{DatasetSpec, DatasetState, LayoutSpec};
use pumice_engine::file::File as Engine;
use pumice_engine::measure::{ExternalPiece, external_pieces};
use pumice_engine::object::Object;
use pumice_filter::FilterSpec;
use pumice_format::messages::{AllocationTime, FillTime, FillValue, Layout, kind};
use pumice_format::virtual_mapping::VirtualMapping;
use pumice_layout::Storage;
use pumice_space::{Extent, Hyperslab, HyperslabAxis, UNLIMITED};
use pumice_types::{Conversion, Datatype, Heaped, HeapedConversion};
use std::ffi::{c_char, c_int, c_uint};

/// `H5D_layout_t`.
const COMPACT: c_int = 0;
const CONTIGUOUS: c_int = 1;
const CHUNKED: c_int = 2;
const VIRTUAL: c_int = 3;
/// The most dimensions that a dataspace has.
const MAX_RANK: usize = 32;
/// `H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS`.
const DONT_FILTER_PARTIAL: c_uint = 2;
/// `H5Z_FLAG_OPTIONAL`.
const OPTIONAL: c_uint = 1;
/// `H5O_UNLIMITED`-sized external file: `H5F_UNLIMITED`.
const UNLIMITED_PIECE: u64 = u64::MAX;

/// What a new dataset is to be: its type in the file, its extent, and what the list says.
pub(crate) fn spec(
    api: &Api,
    file: &Engine,
    datatype: Datatype,
    extent: Extent,
    list: Hid,
) -> Result<DatasetSpec> {
    if list == DEFAULT {
        return Ok(DatasetSpec::new(datatype, extent, LayoutSpec::Contiguous));
    }
    let layout = match StructChunk::find(api, list)? {
        Some(property) => structured(api, property, &extent, list, &datatype)?,
        None => layout(api, &extent, list)?,
    };
    let mut spec = DatasetSpec::new(datatype, extent, layout);
    put_fill(api, file, list, &mut spec)?;
    // SAFETY: plain calls with a list that is open, and places of the right types.
    unsafe {
        let (mut fill_time, mut allocation) = (0, 0);
        checked((api.H5Pget_fill_time)(list, &mut fill_time), "H5Pget_fill_time")?;
        checked((api.H5Pget_alloc_time)(list, &mut allocation), "H5Pget_alloc_time")?;
        spec.fill_time = match fill_time {
            0 => FillTime::Allocation,
            1 => FillTime::Never,
            _ => FillTime::IfSet,
        };
        spec.allocation = match allocation {
            1 => AllocationTime::Early,
            2 => AllocationTime::Late,
            3 => AllocationTime::Incremental,
            _ => AllocationTime::Default,
        };
        checked(
            (api.H5Pget_obj_track_times)(list, &mut spec.track_times),
            "H5Pget_obj_track_times",
        )?;
    }
    let (track, phase_change) = attribute_properties(api, list)?;
    (spec.track_attribute_order, spec.attribute_phase_change) = (track, phase_change);
    Ok(spec)
}

/// Whether the order of attributes is tracked, and when they move to dense storage if not as usual.
pub(crate) fn attribute_properties(api: &Api, list: Hid) -> Result<(bool, Option<(u16, u16)>)> {
    let (mut order, mut most, mut least) = (0, 0, 0);
    // SAFETY: plain calls with a list that is open, and places of the right types.
    unsafe {
        let got = (api.H5Pget_attr_creation_order)(list, &mut order);
        checked(got, "H5Pget_attr_creation_order")?;
        let got = (api.H5Pget_attr_phase_change)(list, &mut most, &mut least);
        checked(got, "H5Pget_attr_phase_change")?;
    }
    let changed = (most, least) != (8, 6);
    Ok((order & 1 != 0, changed.then_some((most as u16, least as u16))))
}

/// Structured chunks, of which a list says more in a property of its own.
fn structured(
    api: &Api,
    property: Box<StructChunk>,
    extent: &Extent,
    list: Hid,
    datatype: &Datatype,
) -> Result<LayoutSpec> {
    let mut options = 0;
    // SAFETY: a plain call with a list that is open.
    checked(unsafe { (api.H5Pget_chunk_opts)(list, &mut options) }, "H5Pget_chunk_opts")?;
    if property.dims().len() != extent.rank() {
        let rank = property.dims().len();
        let what = format!("chunks of {rank} dimensions for a dataspace of {}", extent.rank());
        return Err(Fault::Invalid(what));
    }
    property.layout(api, list, datatype, options & DONT_FILTER_PARTIAL != 0)
}

/// Puts what structured chunks are like into a list.
fn put_structured(api: &Api, state: &DatasetState, list: Hid) -> Result<()> {
    let Layout::Structured { chunk, .. } = state.layout_message() else { return Ok(()) };
    let (kind, sections): (u32, Vec<Vec<FilterSpec>>) = match &state.layout().storage {
        Storage::Sparse(sparse) => {
            (SPARSE, (0..2).map(|at| sparse.pipeline(at).specs().to_vec()).collect())
        }
        Storage::VariableLength(layout) => {
            let sections: Vec<_> = layout.pipelines().map(|one| one.specs().to_vec()).collect();
            (if sections.len() > 2 { SPARSE } else { VARIABLE_LENGTH }, sections)
        }
        _ => return Ok(()),
    };
    let mut property = StructChunk::new(kind, chunk)?;
    for (at, filters) in sections.iter().enumerate() {
        property.set_own(at, filters)?;
    }
    property.know(filters_of(state).len());
    property.put(api, list)
}

fn layout(api: &Api, extent: &Extent, list: Hid) -> Result<LayoutSpec> {
    // SAFETY: plain calls with a list that is open.
    let (class, externals) = unsafe {
        let class = checked((api.H5Pget_layout)(list), "H5Pget_layout")?;
        (class, (api.H5Pget_external_count)(list).max(0))
    };
    let filters = filters(api, list)?;
    // libhdf5 ignores filters where there is nothing to filter.
    if !filters.is_empty() && class != CHUNKED && extent.rank() > 0 && !extent.is_null() {
        let what = "filters need chunks: they can only be used with the chunked layout";
        return Err(Fault::Invalid(what.into()));
    }
    match class {
        COMPACT => Ok(LayoutSpec::Compact),
        CONTIGUOUS if externals > 0 => external(api, list, externals as c_uint),
        CONTIGUOUS => Ok(LayoutSpec::Contiguous),
        CHUNKED => {
            let (mut chunk, mut options) = (vec![0; MAX_RANK], 0);
            // SAFETY: the buffer has room for the most dimensions that there are.
            let rank = unsafe {
                checked((api.H5Pget_chunk_opts)(list, &mut options), "H5Pget_chunk_opts")?;
                (api.H5Pget_chunk)(list, MAX_RANK as c_int, chunk.as_mut_ptr())
            };
            chunk.truncate(checked(rank, "H5Pget_chunk")? as usize);
            if chunk.len() != extent.rank() {
                let what = format!(
                    "chunks of {} dimensions for a dataspace of {}",
                    chunk.len(),
                    extent.rank()
                );
                return Err(Fault::Invalid(what));
            }
            for ((&side, &now), &max) in chunk.iter().zip(extent.dims()).zip(extent.max_dims()) {
                if max != u64::MAX && side > max.max(now) {
                    let what =
                        "Chunk size must be <= maximum dimension size for fixed-sized dimensions";
                    return Err(Fault::Invalid(what.into()));
                }
            }
            let dont_filter_partial = options & DONT_FILTER_PARTIAL != 0;
            Ok(LayoutSpec::Chunked { chunk, filters, dont_filter_partial })
        }
        VIRTUAL => Ok(LayoutSpec::Virtual { mappings: mappings(api, list)? }),
        other => Err(Fault::Unsupported(format!("the layout class {other}"))),
    }
}

/// The filters of a list, in the order of writing.
pub(crate) fn filters(api: &Api, list: Hid) -> Result<Vec<FilterSpec>> {
    // SAFETY: a plain call with a list that is open.
    let count = checked(unsafe { (api.H5Pget_nfilters)(list) }, "H5Pget_nfilters")?;
    let mut filters = Vec::new();
    for at in 0..count as c_uint {
        let (mut flags, mut config) = (0, 0);
        let (mut parameters, mut name) = (vec![0; 64], [0 as c_char; 256]);
        let mut id = 0;
        // Once more if there was no room for all parameters.
        for _ in 0..2 {
            let mut length = parameters.len();
            // SAFETY: the buffers are as long as is said.
            id = unsafe {
                (api.H5Pget_filter2)(
                    list,
                    at,
                    &mut flags,
                    &mut length,
                    parameters.as_mut_ptr(),
                    name.len(),
                    name.as_mut_ptr(),
                    &mut config,
                )
            };
            checked(id, "H5Pget_filter2")?;
            let enough = length <= parameters.len();
            parameters.resize(length, 0);
            if enough {
                break;
            }
        }
        // SAFETY: the library ends the name with a null byte.
        let name = unsafe { std::ffi::CStr::from_ptr(name.as_ptr()) };
        let name =
            Some(name.to_string_lossy().into_owned()).filter(|name| !name.is_empty() && id >= 256);
        let optional = flags & OPTIONAL != 0;
        filters.push(FilterSpec { id: id as u16, optional, name, config: None, parameters });
    }
    Ok(filters)
}

fn external(api: &Api, list: Hid, count: c_uint) -> Result<LayoutSpec> {
    let mut files = Vec::new();
    for at in 0..count {
        let (mut name, mut offset, mut size) = ([0 as c_char; 4096], 0i64, 0);
        // SAFETY: the buffer is as long as is said; one byte stays for the end of a long name.
        let name = unsafe {
            let got = (api.H5Pget_external)(
                list,
                at,
                name.len() - 1,
                name.as_mut_ptr(),
                &mut offset,
                &mut size,
            );
            checked(got, "H5Pget_external")?;
            std::ffi::CStr::from_ptr(name.as_ptr())
        };
        let name = name.to_string_lossy().into_owned();
        files.push(ExternalPiece { name, offset: offset as u64, size });
    }
    Ok(LayoutSpec::External { files })
}

fn mappings(api: &Api, list: Hid) -> Result<Vec<VirtualMapping>> {
    let mut count = 0;
    // SAFETY: a plain call with a list that is open.
    checked(unsafe { (api.H5Pget_virtual_count)(list, &mut count) }, "H5Pget_virtual_count")?;
    let name = |get: unsafe extern "C" fn(Hid, usize, *mut c_char, usize) -> isize, at| {
        let mut name = vec![0u8; 4096];
        // SAFETY: the buffer is as long as is said.
        let length = unsafe { get(list, at, name.as_mut_ptr().cast(), name.len()) };
        name.truncate(checked(length, "H5Pget_virtual_filename")? as usize);
        Ok::<_, Fault>(String::from_utf8_lossy(&name).into_owned())
    };
    let selected = |space: Hid| {
        let selection = space::selection(api, checked(space, "H5Pget_virtual_vspace")?);
        // SAFETY: the dataspace is ours.
        unsafe { (api.H5Sclose)(space) };
        selection
    };
    (0..count)
        .map(|at| {
            // SAFETY: plain calls with a list that is open and has so many mappings.
            let (target, source) = unsafe {
                ((api.H5Pget_virtual_vspace)(list, at), (api.H5Pget_virtual_srcspace)(list, at))
            };
            Ok(VirtualMapping {
                file: name(api.H5Pget_virtual_filename, at)?,
                dataset: name(api.H5Pget_virtual_dsetname, at)?,
                source: selected(source)?,
                target: selected(target)?,
            })
        })
        .collect()
}

/// The fill value that a list has, in the dataset's type.
fn put_fill(api: &Api, file: &Engine, list: Hid, spec: &mut DatasetSpec) -> Result<()> {
    let mut defined = 0;
    // SAFETY: a plain call with a list that is open.
    checked(unsafe { (api.H5Pfill_value_defined)(list, &mut defined) }, "H5Pfill_value_defined")?;
    match defined {
        0 => spec.undefined_fill = true,
        2 => {
            let datatype = spec.datatype.clone();
            let Heaped { elements, heap } = fill_of(api, file, list, &datatype)?;
            spec.fill = Some(elements);
            spec.fill_heap = datatype.has_varlen().then_some(heap);
        }
        _ => {}
    }
    Ok(())
}

/// The fill value of a list as an element of a file's type.
fn fill_of(api: &Api, _file: &Engine, list: Hid, datatype: &Datatype) -> Result<Heaped> {
    // libhdf5 converts to the type in memory, whose sizes may differ from those in the file.
    let id = datatype_map::identifier(api, datatype)?;
    let memory = datatype_map::datatype_of(api, id)?;
    let mut element = vec![0u8; memory.size()];
    // SAFETY: the buffer has room for an element of the type.
    let got = unsafe { (api.H5Pget_fill_value)(list, id, element.as_mut_ptr().cast()) };
    // SAFETY: the identifier is ours.
    unsafe { (api.H5Tclose)(id) };
    checked(got, "H5Pget_fill_value")?;
    if !memory.has_varlen() {
        let mut converted = vec![0; datatype.size()];
        Conversion::new(&memory, datatype)?.convert(&element, &mut converted)?;
        return Ok(Heaped { elements: converted, heap: Vec::new() });
    }
    let (heaped, mut value) = (memory::heaped_type(&memory, datatype), Heaped::default());
    // SAFETY: libhdf5 made the element, with pointers that lead to copies.
    unsafe { memory::import((&memory, &heaped), element.as_ptr(), &mut value, None)? };
    let conversion = HeapedConversion::new(&heaped, datatype)?;
    Ok(conversion.convert(&value)?)
}

/// A list that says how a dataset was made.
pub(crate) fn list_of(handle: &Handle, state: &DatasetState) -> Result<Hid> {
    let api = handle.api();
    let list = checked(api.new_list(c"H5P_CLS_DATASET_CREATE_ID_g"), "H5Pcreate")?;
    match fill_list(handle, state, list) {
        Ok(()) => Ok(list),
        Err(fault) => {
            // SAFETY: the list is ours.
            unsafe { (api.H5Pclose)(list) };
            Err(fault)
        }
    }
}

fn fill_list(handle: &Handle, state: &DatasetState, list: Hid) -> Result<()> {
    let (api, object) = (handle.api(), state.object());
    let message = fill_message(object)?;
    put_layout(handle, state, list)?;
    for filter in filters_of(state) {
        let flags = if filter.optional { OPTIONAL } else { 0 };
        let (id, parameters) = (c_int::from(filter.id), &filter.parameters);
        // SAFETY: the list is open, the parameters are as many as is said.
        let set =
            unsafe { (api.H5Pset_filter)(list, id, flags, parameters.len(), parameters.as_ptr()) };
        checked(set, "H5Pset_filter")?;
    }
    put_structured(api, state, list)?;
    put_fill_value(handle, state, &message, list)?;
    let fill_time = match message.write {
        FillTime::Allocation => 0,
        FillTime::Never => 1,
        FillTime::IfSet => 2,
    };
    let allocation = match (message.allocation, state.layout_message()) {
        (AllocationTime::Early, _) | (AllocationTime::Default, Layout::Compact { .. }) => 1,
        (AllocationTime::Late, _) | (AllocationTime::Default, Layout::Contiguous { .. }) => 2,
        _ => 3,
    };
    // SAFETY: plain calls with a list that is open.
    unsafe {
        checked((api.H5Pset_fill_time)(list, fill_time), "H5Pset_fill_time")?;
        checked((api.H5Pset_alloc_time)(list, allocation), "H5Pset_alloc_time")?;
    }
    put_object_properties(api, object, list)
}

/// What all objects have: times, and how attributes are kept.
pub(crate) fn put_object_properties(api: &Api, object: &Object, list: Hid) -> Result<()> {
    let (tracked, indexed) = object.attribute_order();
    let order = c_uint::from(tracked) | c_uint::from(indexed) << 1;
    let (most, least) = object.attribute_phase_change();
    let times = object.modified().is_some();
    // SAFETY: plain calls with a list that is open.
    unsafe {
        checked((api.H5Pset_attr_creation_order)(list, order), "H5Pset_attr_creation_order")?;
        let set = (api.H5Pset_attr_phase_change)(list, most.into(), least.into());
        checked(set, "H5Pset_attr_phase_change")?;
        checked((api.H5Pset_obj_track_times)(list, times), "H5Pset_obj_track_times")?;
    }
    Ok(())
}

/// The filters of a dense dataset, or those of the values of a structured one.
pub(crate) fn filters_of(state: &DatasetState) -> Vec<FilterSpec> {
    match &state.layout().storage {
        Storage::Dense(dense) => dense.pipeline().specs().to_vec(),
        Storage::Sparse(sparse) => sparse.pipeline(1).specs().to_vec(),
        Storage::VariableLength(layout) => {
            layout.pipelines().last().map_or(Vec::new(), |heap| heap.specs().to_vec())
        }
        _ => Vec::new(),
    }
}

/// The shape of a dataset's chunks, if it has any.
pub(crate) fn chunk_of(state: &DatasetState) -> Option<&[u64]> {
    match state.layout_message() {
        Layout::Chunked { chunk, .. } | Layout::Structured { chunk, .. } => Some(chunk),
        _ => None,
    }
}

fn put_layout(handle: &Handle, state: &DatasetState, list: Hid) -> Result<()> {
    let api = handle.api();
    if let Some(chunk) = chunk_of(state) {
        // SAFETY: the list is open, the chunk has as many sides as is said.
        let set = unsafe { (api.H5Pset_chunk)(list, chunk.len() as c_int, chunk.as_ptr()) };
        checked(set, "H5Pset_chunk")?;
        if let Layout::Chunked { dont_filter_partial: true, .. } = state.layout_message() {
            // SAFETY: as above.
            let set = unsafe { (api.H5Pset_chunk_opts)(list, DONT_FILTER_PARTIAL) };
            checked(set, "H5Pset_chunk_opts")?;
        }
        return Ok(());
    }
    if let Some(sources) = state.sources() {
        return put_mappings(handle, state, sources.mappings(), list);
    }
    let class =
        if let Layout::Compact { .. } = state.layout_message() { COMPACT } else { CONTIGUOUS };
    // SAFETY: a plain call with a list that is open.
    checked(unsafe { (api.H5Pset_layout)(list, class) }, "H5Pset_layout")?;
    for piece in external_pieces(handle.engine(), state.object())? {
        let size = if piece.size == u64::MAX { UNLIMITED_PIECE } else { piece.size };
        let name = c_text(&piece.name);
        // SAFETY: the name ends with a null byte.
        let set = unsafe { (api.H5Pset_external)(list, name.as_ptr(), piece.offset as i64, size) };
        checked(set, "H5Pset_external")?;
    }
    Ok(())
}

fn put_mappings(
    handle: &Handle,
    state: &DatasetState,
    mappings: &[VirtualMapping],
    list: Hid,
) -> Result<()> {
    let api = handle.api();
    let extent = state.extent()?;
    if mappings.is_empty() {
        // SAFETY: a plain call with a list that is open.
        return checked(unsafe { (api.H5Pset_layout)(list, VIRTUAL) }, "H5Pset_layout").map(drop);
    }
    for mapping in mappings {
        let target = space::made(api, &extent)?;
        let blocks = numbered_blocks(mapping);
        match &blocks {
            Some(axes) => space::select_regular(api, target, axes)?,
            None => space::select(api, target, &mapping.target, extent.dims())?,
        }
        let source = source_space(api, mapping, blocks.as_ref(), extent.dims())?;
        let (file, dataset) = (c_text(&mapping.file), c_text(&mapping.dataset));
        // SAFETY: both dataspaces are ours, the names end with null bytes.
        let set = unsafe {
            let set = (api.H5Pset_virtual)(list, target, file.as_ptr(), dataset.as_ptr(), source);
            (api.H5Sclose)(target);
            (api.H5Sclose)(source);
            set
        };
        checked(set, "H5Pset_virtual")?;
    }
    Ok(())
}

/// What a mapping to numbered sources (`%b`) fills, a block for each source: to the engine, blocks that touch are one.
fn numbered_blocks(mapping: &VirtualMapping) -> Option<Hyperslab> {
    let names = [&mapping.file, &mapping.dataset];
    if !names.iter().any(|name| name.contains("%b")) {
        return None;
    }
    let mut axes = mapping.target.regular()?;
    if axes.iter().any(|axis| axis.count == UNLIMITED) {
        // As programs write it: one block has no stride.
        axes.iter_mut().filter(|axis| axis.count == 1).for_each(|axis| axis.stride = 1);
        return Some(axes);
    }
    let source = mapping.source.regular()?;
    let cells = |axes: &[HyperslabAxis]| {
        axes.iter().try_fold(1u64, |all, axis| all.checked_mul(axis.count.checked_mul(axis.block)?))
    };
    let at = axes.iter().position(|axis| axis.block == UNLIMITED)?;
    let beside = cells(&axes[..at])?.checked_mul(cells(&axes[at + 1..])?)?;
    let block = cells(&source)?.checked_div(beside)?;
    axes[at] = HyperslabAxis { start: axes[at].start, stride: block, count: UNLIMITED, block };
    Some(axes)
}

/// A dataspace for the source of a mapping, whose extent the file does not say: as large as the selection needs, or as one of
/// `blocks` if each has a source of its own.
fn source_space(
    api: &Api,
    mapping: &VirtualMapping,
    blocks: Option<&Hyperslab>,
    dims: &[u64],
) -> Result<Hid> {
    let selection = &mapping.source;
    let (shape, whole) = match selection.regular() {
        _ if selection.is_all() => {
            let side = |axis: &HyperslabAxis| match axis.count {
                UNLIMITED => axis.block,
                count => count.saturating_mul(axis.block),
            };
            let shape = match blocks {
                Some(axes) => axes.iter().map(side).collect(),
                None => mapping.target.shape(dims).to_vec(),
            };
            (if shape.is_empty() { vec![mapping.target.count(dims)] } else { shape }, true)
        }
        Some(axes) => {
            let end = |axis: &HyperslabAxis| match (axis.count, axis.block) {
                (u64::MAX, _) | (_, u64::MAX) => axis.start + 1,
                (0, _) => axis.start.max(1),
                (count, block) => axis.start + (count - 1) * axis.stride + block,
            };
            (axes.iter().map(end).collect(), false)
        }
        None => {
            let rank = selection.rank().unwrap_or(dims.len());
            let vast = vec![1 << 40; rank];
            let bounds = selection.bounds(&vast);
            (
                bounds.map_or(vec![1; rank], |(_, last)| last.iter().map(|at| at + 1).collect()),
                false,
            )
        }
    };
    let max = vec![u64::MAX; shape.len()];
    let space = space::made(api, &Extent::with_max(&shape, &max)?)?;
    if !whole {
        space::select(api, space, selection, &shape)?;
    }
    Ok(space)
}

/// What the header says of the fill value.
pub(crate) fn fill_message(object: &Object) -> Result<FillValue> {
    if let Some(raw) = object.message(kind::FILL_VALUE) {
        return Ok(FillValue::decode(&raw.body, &object.context(&raw))?);
    }
    match object.message(kind::FILL_VALUE_OLD) {
        Some(raw) => Ok(FillValue::decode_old(&raw.body, &object.context(&raw))?),
        None => Ok(FillValue { allocation: AllocationTime::Default, ..FillValue::default() }),
    }
}

fn put_fill_value(
    handle: &Handle,
    state: &DatasetState,
    message: &FillValue,
    list: Hid,
) -> Result<()> {
    use pumice_format::messages::Fill;
    let api = handle.api();
    match &message.value {
        Fill::Default => return Ok(()),
        Fill::Undefined => {
            // SAFETY: without a value there is no fill value.
            let set = unsafe { (api.H5Pset_fill_value)(list, DEFAULT, std::ptr::null()) };
            return checked(set, "H5Pset_fill_value").map(drop);
        }
        Fill::Value(_) => {}
    }
    let Some(fill) = state.fill_heaped()? else { return Ok(()) };
    let id = datatype_map::identifier(api, state.datatype())?;
    let memory_type = datatype_map::datatype_of(api, id)?;
    let heaped = memory::heaped_type(&memory_type, state.datatype());
    let value = HeapedConversion::new(state.datatype(), &heaped)?.convert(&fill)?;
    let mut element = vec![0u8; memory_type.size()];
    // SAFETY: the buffer has room for an element. What its pointers lead to, libhdf5 copies; it is small and is
    // not freed where a type has pointers.
    let set = unsafe {
        let (types, to) = ((&memory_type, &heaped), element.as_mut_ptr());
        let file = Some(Links(&handle.file));
        memory::export(types, &value.elements, &value.heap, to, file)?;
        let set = (api.H5Pset_fill_value)(list, id, element.as_ptr().cast());
        (api.H5Tclose)(id);
        set
    };
    checked(set, "H5Pset_fill_value").map(drop)
}
