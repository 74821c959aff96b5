//! Datasets: create, open, read, write, get, specific, close.

use crate::abi::*;
use crate::convert;
use crate::creation;
use crate::datatype;
use crate::datatype_map::{check_memory, datatype_of, stored};
use crate::fault::{Fault, Result, answer, checked, done};
use crate::file_lists;
use crate::handle::{Handle, Kind, List, OpenFile, check_list, close, count_call};
use crate::library::Api;
use crate::link::insert_new;
use crate::location::place;
use crate::memory;
use crate::references::Links;
use crate::space::{self, Transfer};
use pumice_engine::dataset::{DatasetState, Handle as Held, LayoutSpec, TransferOptions};
use pumice_layout::Storage;
use pumice_layout::buffer::Output;
use pumice_types::{Datatype, Heaped, HeapedConversion, Transform};
use std::ffi::{c_char, c_void};
use std::sync::Arc;

/// `create`: with no name, an object that a link may lead to later.
///
/// # Safety
/// All arguments are as libhdf5 gives them. This holds for every callback of this crate.
pub(crate) unsafe extern "C" fn create(
    object: *mut c_void,
    params: *const LocParams,
    name: *const c_char,
    lcpl: Hid,
    type_id: Hid,
    space_id: Hid,
    dcpl: Hid,
    dapl: Hid,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> *mut c_void {
    // SAFETY: as above.
    let from = unsafe { Handle::at(object) };
    answer(from.api(), c"dataset create", std::ptr::null_mut(), || {
        count_call();
        check_list(from.api(), dapl, c"H5P_CLS_DATASET_ACCESS_ID_g")?;
        // SAFETY: as above.
        let at = unsafe { place(from, params)? }.open()?;
        let api = at.api();
        let engine = at.changing_objects()?;
        let datatype = stored(&datatype_of(api, type_id)?, engine)?;
        let extent = space::extent(api, space_id)?;
        let mut spec = creation::spec(api, engine, datatype, extent, dcpl)?;
        let elsewhere =
            matches!(spec.layout, LayoutSpec::External { .. } | LayoutSpec::Virtual { .. });
        check_access(api, dapl, elsewhere)?;
        spec.committed = datatype::committed(&at, type_id)?;
        let make = || Ok(engine.new_dataset(DatasetState::create(engine, spec)?)?);
        // SAFETY: as above.
        let (state, path) = unsafe { insert_new(&at, name, lcpl, make, |made| made.object())? };
        let held = Held::new(state);
        use_chunk_cache(api, dapl, &held)?;
        let mut handle = Handle::new(at.file.clone(), Kind::Dataset(held), path);
        handle.access = Some(List::copy(api, dapl));
        Ok(handle.give())
    })
}

/// `open`.
///
/// # Safety
/// As [`create`].
pub(crate) unsafe extern "C" fn open(
    object: *mut c_void,
    params: *const LocParams,
    name: *const c_char,
    dapl: Hid,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> *mut c_void {
    // SAFETY: as for `create`.
    let from = unsafe { Handle::at(object) };
    answer(from.api(), c"dataset open", std::ptr::null_mut(), || {
        count_call();
        check_list(from.api(), dapl, c"H5P_CLS_DATASET_ACCESS_ID_g")?;
        // SAFETY: as for `create`.
        let mut found = unsafe { crate::object::named(from, params, name)? };
        let state = found.dataset()?;
        let elsewhere =
            state.sources().is_some() || matches!(state.layout().storage, Storage::External(..));
        check_access(from.api(), dapl, elsewhere)?;
        use_chunk_cache(from.api(), dapl, state)?;
        found.access = Some(List::copy(from.api(), dapl));
        Ok(found.give())
    })
}

/// Takes over what an access list says of the chunk cache, if it says anything: of others the file's list decides.
fn use_chunk_cache(api: &Api, dapl: Hid, state: &DatasetState) -> Result<()> {
    if let Some((bytes, weight)) = file_lists::chunk_cache_of_dataset(api, dapl)? {
        state.set_cache_options(state.cache_options().chunk_cache(bytes, weight));
    }
    Ok(())
}

/// Refuses an access list that says where the other files of a dataset are.
fn check_access(api: &Api, dapl: Hid, elsewhere: bool) -> Result<()> {
    if dapl == DEFAULT || !elsewhere {
        return Ok(());
    }
    // SAFETY: plain calls that give lengths.
    let lengths = unsafe {
        [
            (api.H5Pget_efile_prefix)(dapl, std::ptr::null_mut(), 0),
            (api.H5Pget_virtual_prefix)(dapl, std::ptr::null_mut(), 0),
        ]
    };
    match lengths.iter().any(|&length| length > 0) {
        true => Err(Fault::Unsupported("prefixes of external files and of virtual sources".into())),
        false => check_view(api, dapl),
    }
}

/// Refuses views of virtual datasets other than the usual one: to the last element that a source has, without gaps.
fn check_view(api: &Api, dapl: Hid) -> Result<()> {
    let (mut view, mut gap) = (1, 0);
    // SAFETY: plain calls with a list that is open.
    unsafe {
        checked((api.H5Pget_virtual_view)(dapl, &mut view), "H5Pget_virtual_view")?;
        checked((api.H5Pget_virtual_printf_gap)(dapl, &mut gap), "H5Pget_virtual_printf_gap")?;
    }
    match (view, gap) {
        (1, 0) => Ok(()),
        _ => Err(Fault::Unsupported("views of virtual datasets other than the usual one".into())),
    }
}

/// What a transfer property list asks for.
fn options(api: &Api, dxpl: Hid) -> Result<TransferOptions> {
    let mut options = TransferOptions::default();
    if dxpl <= DEFAULT || dxpl == api.usual_transfer() {
        return Ok(options);
    }
    let mut text = [0u8; 1024];
    // SAFETY: the buffer is as long as is said. A list without a transform gives an error.
    let length = api.quietly(|| unsafe {
        (api.H5Pget_data_transform)(dxpl, text.as_mut_ptr().cast(), text.len())
    });
    if length > 0 {
        let end = text.len().min(length as usize);
        let text = std::str::from_utf8(&text[..end]);
        let text = text.map_err(|_| Fault::Invalid("a transform that is no text".into()))?;
        options.transform = Some(text.trim_end_matches('\0').parse::<Transform>()?);
    }
    Ok(options)
}

/// Transfers of fewer bytes keep the lock of libhdf5: giving it back takes as long.
const WORTH_UNLOCKING: usize = 1 << 14;

/// One read of several at once.
struct Job<'a> {
    api: &'a Api,
    file: &'a Arc<OpenFile>,
    state: &'a Arc<DatasetState>,
    type_id: Hid,
    dxpl: Hid,
    memory_type: Datatype,
    /// Whether the engine converts, and not libhdf5.
    direct: bool,
    transfer: Transfer,
    options: TransferOptions,
}

impl<'a> Job<'a> {
    fn new(handle: &'a Handle, types: Hid, memory: Hid, file: Hid, dxpl: Hid) -> Result<Self> {
        let (api, state) = (handle.api(), handle.dataset()?);
        let memory_type = datatype_of(api, types)?;
        check_memory(&memory_type)?;
        let mut transfer = space::transfer(api, &state.extent()?, file, memory)?;
        // The same type is copied as it is; of another, what lies between members stays as it is.
        let same = memory_type == *state.datatype();
        let direct = (same && !memory::are_walked(&memory_type))
            || (convert::is_known(&memory_type, state.datatype())
                && (same || !convert::has_gaps(&memory_type)));
        let plain = direct && !memory::are_walked(&memory_type) && !state.datatype().has_varlen();
        let memory = if plain { transfer.memory.take() } else { None };
        let options = TransferOptions { memory, ..options(api, dxpl)? };
        Ok(Self {
            api,
            file: &handle.file,
            state,
            type_id: types,
            dxpl,
            memory_type,
            direct,
            transfer,
            options,
        })
    }

    fn bytes(&self) -> Result<usize> {
        let bytes = self.transfer.elements.checked_mul(self.memory_type.size() as u64);
        let bytes = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        bytes.ok_or_else(|| Fault::Invalid("more elements than memory can have".into()))
    }

    fn links(&self) -> Option<Links<'a>> {
        Some(Links(self.file))
    }

    /// Works on the dataset without libhdf5's lock, if that is worth while: the dataset stays even if its identifier is
    /// closed.
    fn apart(&self, bytes: usize, work: impl FnOnce(&DatasetState) -> Result<()>) -> Result<()> {
        if bytes < WORTH_UNLOCKING || !self.file.apart {
            return work(self.state);
        }
        let (_file, state) = (self.file.clone(), self.state.clone());
        self.api.unlocked(|| work(&state))
    }

    fn count(&self) -> usize {
        let dims = self.state.dims();
        self.transfer.selection.count(&dims) as usize
    }

    /// # Safety
    /// The buffer has as many elements of the memory type as the memory's dataspace says.
    unsafe fn read(&self, buffer: *mut u8) -> Result<()> {
        let memory_type = &self.memory_type;
        if self.count() == 0 || self.state.extent()?.is_null() {
            return Ok(());
        }
        if buffer.is_null() {
            return Err(Fault::Invalid("no buffer".into()));
        }
        if !self.direct {
            // SAFETY: the caller's promise.
            return unsafe { self.read_converted(buffer) };
        }
        if !memory::are_walked(memory_type) && !self.state.datatype().has_varlen() {
            // SAFETY: the caller's promise.
            let buffer = unsafe { std::slice::from_raw_parts_mut(buffer, self.bytes()?) };
            let selection = &self.transfer.selection;
            return self.apart(buffer.len(), |state| {
                let output = Output::new(buffer);
                Ok(state.read_with(selection, memory_type, output, &self.options)?)
            });
        }
        let stored = self.state.read_heaped(&self.transfer.selection)?;
        let heaped = memory::heaped_type(memory_type, self.state.datatype());
        let values = HeapedConversion::new(self.state.datatype(), &heaped)?.convert(&stored)?;
        let (from, to) = (heaped.size(), memory_type.size());
        memory::each_place(self.transfer.memory.as_ref(), self.count(), |place, at| {
            let element = values.elements.get(at * from..(at + 1) * from).unwrap_or_default();
            // SAFETY: the caller's promise; a place lies inside the memory's shape.
            unsafe {
                let types = (memory_type, &heaped);
                memory::export(types, element, &values.heap, buffer.add(place * to), self.links())
            }
        })
    }

    /// # Safety
    /// As [`read`](Self::read); pointers in the elements lead to what the type says.
    unsafe fn write(&self, buffer: *const u8) -> Result<()> {
        let memory_type = &self.memory_type;
        if self.count() == 0 || self.state.extent()?.is_null() {
            return Ok(());
        }
        if buffer.is_null() {
            return Err(Fault::Invalid("no buffer".into()));
        }
        if !self.direct {
            // SAFETY: the caller's promise.
            return unsafe { self.write_converted(buffer) };
        }
        if !memory::are_walked(memory_type) && !self.state.datatype().has_varlen() {
            // SAFETY: the caller's promise.
            let buffer = unsafe { std::slice::from_raw_parts(buffer, self.bytes()?) };
            let selection = &self.transfer.selection;
            return self.apart(buffer.len(), |state| {
                Ok(state.write_with(selection, memory_type, buffer, &self.options)?)
            });
        }
        let heaped = memory::heaped_type(memory_type, self.state.datatype());
        let mut values = Heaped::default();
        memory::each_place(self.transfer.memory.as_ref(), self.count(), |place, _| {
            // SAFETY: the caller's promise; a place lies inside the memory's shape.
            unsafe {
                let from = buffer.add(place * memory_type.size());
                memory::import((memory_type, &heaped), from, &mut values, self.links())
            }
        })?;
        let conversion = HeapedConversion::new(&heaped, self.state.datatype())?;
        let stored = match conversion.is_complete() {
            true => conversion.convert(&values)?,
            false => {
                let onto = self.state.read_heaped(&self.transfer.selection)?;
                let mut none = NoObjects;
                conversion.convert_with(&values.elements, &values.heap, Some(onto), &mut none)?
            }
        };
        let selection = &self.transfer.selection;
        Ok(self.state.write_heaped(selection, &stored.elements, &stored.heap)?)
    }
}

impl<'a> Job<'a> {
    /// A transfer of the same elements in the file's own type, packed in memory.
    fn own(&self, own: &convert::OwnType<'_>) -> Self {
        let Transfer { selection, .. } = &self.transfer;
        let elements = self.count() as u64;
        let transfer = Transfer { selection: selection.clone(), memory: None, elements };
        let options = TransferOptions { memory: None, ..self.options.clone() };
        let (type_id, memory_type) = (own.id, own.datatype.clone());
        Self { type_id, memory_type, direct: true, transfer, options, ..*self }
    }

    /// Where elements are in memory: the transfer's own memory, which the engine was not given.
    fn places(&self) -> Option<&(pumice_space::Selection, Vec<u64>)> {
        self.transfer.memory.as_ref()
    }

    /// Reads elements that libhdf5 converts.
    ///
    /// # Safety
    /// As [`read`](Self::read).
    unsafe fn read_converted(&self, buffer: *mut u8) -> Result<()> {
        let own = convert::OwnType::new(self.api, self.state.datatype())?;
        let (count, size) = (self.count(), self.memory_type.size());
        let widest = size.max(own.datatype.size());
        let (mut elements, mut background) =
            (convert::room(count, widest)?, convert::room(count, widest)?);
        // SAFETY: the rooms are large enough; the caller's promise about the buffer.
        unsafe {
            memory::each_place(self.places(), count, |place, at| {
                let from = buffer.add(place * size);
                std::ptr::copy_nonoverlapping(from, background.as_mut_ptr().add(at * size), size);
                Ok(())
            })?;
            self.own(&own).read(elements.as_mut_ptr())?;
            let types = (own.id, self.type_id);
            convert::in_place(self.api, types, count, &mut elements, &mut background, self.dxpl)?;
            memory::each_place(self.places(), count, |place, at| {
                let to = buffer.add(place * size);
                std::ptr::copy_nonoverlapping(elements.as_ptr().add(at * size), to, size);
                Ok(())
            })
        }
    }

    /// Writes elements that libhdf5 converts.
    ///
    /// # Safety
    /// As [`write`](Self::write).
    unsafe fn write_converted(&self, buffer: *const u8) -> Result<()> {
        let own = convert::OwnType::new(self.api, self.state.datatype())?;
        let (count, size) = (self.count(), self.memory_type.size());
        let widest = size.max(own.datatype.size());
        let (mut elements, mut background) =
            (convert::room(count, widest)?, convert::room(count, widest)?);
        // SAFETY: the rooms are large enough; the caller's promise about the buffer.
        unsafe {
            memory::each_place(self.places(), count, |place, at| {
                let from = buffer.add(place * size);
                std::ptr::copy_nonoverlapping(from, elements.as_mut_ptr().add(at * size), size);
                Ok(())
            })?;
            let own_job = self.own(&own);
            if matches!(own.datatype, Datatype::Compound(_)) {
                // Members that memory does not have stay as they are.
                own_job.read(background.as_mut_ptr())?;
            }
            let types = (self.type_id, own.id);
            convert::in_place(self.api, types, count, &mut elements, &mut background, self.dxpl)?;
            let written = own_job.write(elements.as_ptr());
            own.reclaim(&mut elements, count);
            written
        }
    }
}

/// References to objects are bytes here.
struct NoObjects;

impl pumice_types::Links for NoObjects {
    fn read(
        &mut self,
        _kind: &pumice_types::Reference,
        _element: &[u8],
        _place: &mut [u8],
    ) -> std::result::Result<(), pumice_types::TypeError> {
        Err(pumice_types::TypeError::Value("references".into()))
    }

    fn write(
        &mut self,
        _place: &[u8],
        _kind: &pumice_types::Reference,
        _element: &mut [u8],
    ) -> std::result::Result<(), pumice_types::TypeError> {
        Err(pumice_types::TypeError::Value("references".into()))
    }
}

/// `read`, of one or several datasets.
///
/// # Safety
/// As [`create`].
pub(crate) unsafe extern "C" fn read(
    count: usize,
    datasets: *const *mut c_void,
    types: *const Hid,
    memories: *const Hid,
    files: *const Hid,
    dxpl: Hid,
    buffers: *const *mut c_void,
    _req: *mut *mut c_void,
) -> Herr {
    if count == 0 {
        return OK;
    }
    // SAFETY: as for `create`: the lists have `count` elements.
    let first = unsafe { Handle::at(*datasets) };
    done(first.api(), c"dataset read", || {
        count_call();
        for at in 0..count {
            // SAFETY: as above, and the buffers are as large as the program has promised libhdf5.
            unsafe {
                let handle = Handle::at(*datasets.add(at));
                let (file, memory) = (*files.add(at), *memories.add(at));
                let job = Job::new(handle, *types.add(at), memory, file, dxpl)?;
                job.read((*buffers.add(at)).cast())?;
            }
        }
        Ok(())
    })
}

/// `write`, of one or several datasets.
///
/// # Safety
/// As [`create`].
pub(crate) unsafe extern "C" fn write(
    count: usize,
    datasets: *const *mut c_void,
    types: *const Hid,
    memories: *const Hid,
    files: *const Hid,
    dxpl: Hid,
    buffers: *const *const c_void,
    _req: *mut *mut c_void,
) -> Herr {
    if count == 0 {
        return OK;
    }
    // SAFETY: as for `read`.
    let first = unsafe { Handle::at(*datasets) };
    done(first.api(), c"dataset write", || {
        count_call();
        for at in 0..count {
            // SAFETY: as for `read`.
            unsafe {
                let handle = Handle::at(*datasets.add(at));
                handle.changing()?;
                let (file, memory) = (*files.add(at), *memories.add(at));
                let job = Job::new(handle, *types.add(at), memory, file, dxpl)?;
                job.write((*buffers.add(at)).cast())?;
            }
        }
        Ok(())
    })
}

/// Operations of `get`.
const GET_DAPL: i32 = 0;
const GET_DCPL: i32 = 1;
const GET_SPACE: i32 = 2;
const GET_SPACE_STATUS: i32 = 3;
const GET_STORAGE_SIZE: i32 = 4;
const GET_TYPE: i32 = 5;

/// `get`.
///
/// # Safety
/// As [`create`].
pub(crate) unsafe extern "C" fn get(
    object: *mut c_void,
    args: *mut DatasetGetArgs,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> Herr {
    // SAFETY: as for `create`.
    let (handle, args) = unsafe { (Handle::at(object), &mut *args) };
    done(handle.api(), c"dataset get", || {
        let (api, state) = (handle.api(), handle.dataset()?);
        let given = &mut args.args;
        match args.op {
            GET_DAPL => {
                let none = List::owned(api, INVALID);
                let list = handle.access.as_ref().unwrap_or(&none);
                given.dapl = list.given(c"H5P_CLS_DATASET_ACCESS_ID_g")?;
            }
            GET_DCPL => given.dcpl = creation::list_of(handle, state)?,
            GET_SPACE => given.space = space::made(api, &state.extent()?)?,
            GET_SPACE_STATUS => {
                let status = space_status(state)?;
                // SAFETY: the operation has a place for it.
                unsafe { *given.space_status = status };
            }
            GET_STORAGE_SIZE => {
                let size = state.storage_size()?;
                // SAFETY: the operation has a place for it.
                unsafe { *given.storage_size = size };
            }
            GET_TYPE => {
                let committed =
                    pumice_engine::attribute::committed_datatype(handle.engine(), state.object());
                given.datatype = datatype::given(handle, committed, state.datatype())?;
            }
            other => return Err(Fault::Unsupported(format!("question {other} about datasets"))),
        }
        Ok(())
    })
}

/// `H5D_space_status_t`: whether none, some or all space is allocated.
fn space_status(state: &DatasetState) -> Result<i32> {
    let stored = state.storage_size()?;
    let extent = state.extent()?;
    let all = extent.cells().unwrap_or(0).saturating_mul(state.datatype().size() as u64);
    if creation::chunk_of(state).is_some() {
        let (chunks, _) = state.chunk_totals()?;
        let grid = creation::chunk_of(state).unwrap_or_default().iter().zip(extent.dims());
        let wanted =
            grid.fold(1u64, |all, (&side, &now)| all.saturating_mul(now.div_ceil(side.max(1))));
        return Ok(match chunks {
            0 => 0,
            chunks if chunks >= wanted => 2,
            _ => 1,
        });
    }
    Ok(if stored == 0 && all > 0 { 0 } else { 2 })
}

/// `specific`: extent, flush, refresh.
///
/// # Safety
/// As [`create`].
pub(crate) unsafe extern "C" fn specific(
    object: *mut c_void,
    args: *mut DatasetSpecificArgs,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> Herr {
    // SAFETY: as for `create`.
    let (handle, args) = unsafe { (Handle::at(object), &mut *args) };
    done(handle.api(), c"dataset specific", || {
        count_call();
        let state = handle.dataset()?;
        match args.op {
            0 => {
                handle.changing()?;
                let rank = state.extent()?.rank();
                // SAFETY: the list has as many sizes as the dataset has dimensions.
                let size = unsafe { std::slice::from_raw_parts(args.args.size, rank) };
                Ok(state.resize(size)?)
            }
            1 => Ok(handle.engine().commit()?),
            2 => Ok(handle.engine().refresh_dataset(state)?),
            other => Err(Fault::Unsupported(format!("operation {other} on datasets"))),
        }
    })
}

/// `close`.
///
/// # Safety
/// As [`create`].
pub(crate) unsafe extern "C" fn close_dataset(
    object: *mut c_void,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> Herr {
    // SAFETY: as for `create`.
    let api = unsafe { Handle::at(object) }.api();
    done(api, c"close", || {
        // SAFETY: libhdf5 does not use the pointer again.
        unsafe { close(object) };
        Ok(())
    })
}
