//! Optional operations that the native connector has: chunks, comments, images, what a file says of itself.

use crate::abi::*;
use crate::creation::chunk_of;
use crate::datatype_map::datatype_of;
use crate::fault::{Fault, Result, done};
use crate::handle::{Handle, count_call, text};
use crate::introspect;
use crate::location::place;
use crate::memory;
use crate::space;
use pumice_engine::dataset::DatasetState;
use pumice_engine::object::Object;
use pumice_format::index::ChunkRecord;
use pumice_format::messages::{ChunkIndexInfo, Layout, Message, kind};
use pumice_space::Selection;
use pumice_types::HeapedConversion;
use std::ffi::{c_char, c_int, c_uint, c_void};

/// Operations on files.
const FILE_IMAGE: c_int = 1;
const FREE_SPACE: c_int = 3;
const FILE_INFO: c_int = 4;
const FILE_SIZE: c_int = 8;
const START_SWMR: c_int = 13;
const END: c_int = 21;
/// All of them.
pub(crate) const FILE_OPERATIONS: [c_int; 6] =
    [FILE_IMAGE, FREE_SPACE, FILE_INFO, FILE_SIZE, START_SWMR, END];

#[repr(C)]
#[derive(Clone, Copy)]
struct ChunkRead {
    offset: *const Hsize,
    filters: u32,
    buf: *mut c_void,
    /// Since 2.0: how large the buffer is, and how large the chunk.
    size: *mut usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct ChunkWrite {
    offset: *const Hsize,
    filters: u32,
    size: usize,
    buf: *const c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Counted {
    space: Hid,
    count: *mut Hsize,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Numbered {
    space: Hid,
    index: Hsize,
    offset: *mut Hsize,
    filter_mask: *mut c_uint,
    address: *mut u64,
    size: *mut Hsize,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Placed {
    offset: *const Hsize,
    filter_mask: *mut c_uint,
    address: *mut u64,
    size: *mut Hsize,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct StorageSize {
    offset: *const Hsize,
    size: *mut Hsize,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct BufferSize {
    datatype: Hid,
    space: Hid,
    size: *mut Hsize,
}

type ChunkOperator = unsafe extern "C" fn(*const Hsize, c_uint, u64, Hsize, *mut c_void) -> c_int;

#[repr(C)]
#[derive(Clone, Copy)]
struct Iterate {
    op: ChunkOperator,
    data: *mut c_void,
}

/// `optional` of datasets.
///
/// # Safety
/// All arguments are as libhdf5 gives them. This holds for every callback of this crate.
pub(crate) unsafe extern "C" fn dataset(
    object: *mut c_void,
    args: *mut OptionalArgs,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> Herr {
    // SAFETY: as above.
    let (handle, args) = unsafe { (Handle::at(object), *args) };
    done(handle.api(), c"dataset optional", || {
        count_call();
        let state = handle.dataset()?;
        // SAFETY: as above: the operation decides what the arguments are.
        unsafe {
            match args.op {
                1 => *args.args.cast::<*mut c_int>().read() = index_type(state)?,
                2 => {
                    let asked = args.args.cast::<StorageSize>().read();
                    let record = state.chunk_record(&first_cell(state, asked.offset)?)?;
                    *asked.size = record.map_or(0, |record| record.size);
                }
                3 => {
                    let asked = args.args.cast::<Counted>().read();
                    *asked.count = count(handle, state, asked.space)?;
                }
                4 => numbered(handle, state, &args.args.cast::<Numbered>().read())?,
                5 => {
                    let asked = args.args.cast::<Placed>().read();
                    let record = state.chunk_record(&first_cell(state, asked.offset)?)?;
                    let (mask, address, size) = stored(state, record.as_ref());
                    put(asked.filter_mask, mask);
                    put(asked.address, address);
                    put(asked.size, size);
                }
                6 => read_chunk(handle, state, args.args.cast::<ChunkRead>())?,
                7 => {
                    handle.changing()?;
                    let asked = args.args.cast::<ChunkWrite>().read();
                    let bytes = std::slice::from_raw_parts(asked.buf.cast::<u8>(), asked.size);
                    let offset = coordinates(state, asked.offset)?;
                    state.write_chunk(&offset, bytes, asked.filters)?;
                }
                8 => {
                    let asked = args.args.cast::<BufferSize>().read();
                    *asked.size = buffer_size(handle, state, &asked)?;
                }
                9 => *args.args.cast::<*mut u64>().read() = offset(handle, state)?,
                10 => each(state, &args.args.cast::<Iterate>().read())?,
                other => return Err(Fault::Unsupported(format!("operation {other} on datasets"))),
            }
        }
        Ok(())
    })
}

/// Puts an answer where the program wants it, if it does.
///
/// # Safety
/// The pointer is null or leads to a place of the type.
unsafe fn put<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: the caller's promise.
        unsafe { to.write(value) };
    }
}

/// The coordinates that a program gives.
///
/// # Safety
/// There are as many as the dataset has dimensions.
unsafe fn coordinates(state: &DatasetState, at: *const Hsize) -> Result<Vec<u64>> {
    let rank = state.extent()?.rank();
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(at, rank) }.to_vec())
}

/// The first cell of the chunk that has a cell.
///
/// # Safety
/// As [`coordinates`].
unsafe fn first_cell(state: &DatasetState, at: *const Hsize) -> Result<Vec<u64>> {
    // SAFETY: the caller's promise.
    let cell = unsafe { coordinates(state, at)? };
    let chunk = chunk_of(state).ok_or_else(no_chunks)?;
    Ok(cell.iter().zip(chunk).map(|(at, side)| at - at % side.max(&1)).collect())
}

fn no_chunks() -> Fault {
    Fault::Invalid("not a chunked dataset".into())
}

fn index_type(state: &DatasetState) -> Result<c_int> {
    let (Layout::Chunked { index, .. } | Layout::Structured { index, .. }) = state.layout_message()
    else {
        return Err(no_chunks());
    };
    Ok(match index {
        ChunkIndexInfo::BTree1 => 0,
        ChunkIndexInfo::Single(_) => 1,
        ChunkIndexInfo::Implicit => 2,
        ChunkIndexInfo::FixedArray { .. } => 3,
        ChunkIndexInfo::ExtensibleArray { .. } => 4,
        _ => 5,
    })
}

/// Filter mask, address and size of a chunk, as libhdf5 gives them where there is none.
fn stored(state: &DatasetState, record: Option<&ChunkRecord>) -> (c_uint, u64, Hsize) {
    match record {
        None => (0, u64::MAX, 0),
        Some(record) => {
            let base = state.medium().base();
            (record.filter_mask, record.address + base, record.size)
        }
    }
}

fn selected(handle: &Handle, space: Hid) -> Result<Selection> {
    match space {
        SPACE_ALL => Ok(Selection::all()),
        space => space::selection(handle.api(), space),
    }
}

/// How many stored chunks a selection touches.
fn count(handle: &Handle, state: &DatasetState, space: Hid) -> Result<u64> {
    chunk_of(state).ok_or_else(no_chunks)?;
    let selection = selected(handle, space)?;
    if selection.is_all() || selection.covers(state.extent()?.dims()) {
        return Ok(state.chunk_totals()?.0);
    }
    let mut index = 0;
    while state.nth_chunk(&selection, index)?.is_some() {
        index += 1;
    }
    Ok(index as u64)
}

/// # Safety
/// The places are those of the program.
unsafe fn numbered(handle: &Handle, state: &DatasetState, asked: &Numbered) -> Result<()> {
    chunk_of(state).ok_or_else(no_chunks)?;
    let selection = selected(handle, asked.space)?;
    let index = usize::try_from(asked.index).unwrap_or(usize::MAX);
    let Some((offset, record)) = state.nth_chunk(&selection, index)? else {
        return Err(Fault::Invalid(format!("chunk index {index} is out of range")));
    };
    let (mask, address, size) = stored(state, Some(&record));
    // SAFETY: the caller's promise.
    unsafe {
        if !asked.offset.is_null() {
            std::ptr::copy_nonoverlapping(offset.as_ptr(), asked.offset, offset.len());
        }
        put(asked.filter_mask, mask);
        put(asked.address, address);
        put(asked.size, size);
    }
    Ok(())
}

/// # Safety
/// The arguments are those of the operation; the buffer has room for the chunk.
unsafe fn read_chunk(handle: &Handle, state: &DatasetState, asked: *mut ChunkRead) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        let offset = coordinates(state, (*asked).offset)?;
        let found = state.read_chunk(&offset)?;
        let Some((bytes, record)) = found else {
            return Err(Fault::Invalid("chunk not found: the chunk is not stored".into()));
        };
        (*asked).filters = record.filter_mask;
        let buffer = (*asked).buf;
        // Before 2.0 there was no such place, and who called knew the size.
        let size = match handle.api().major() {
            0 | 1 => std::ptr::null_mut(),
            _ => (*asked).size,
        };
        let room = match size.is_null() {
            false => std::mem::replace(&mut *size, bytes.len()),
            true => bytes.len(),
        };
        if !buffer.is_null() && room >= bytes.len() {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast(), bytes.len());
        }
    }
    Ok(())
}

fn buffer_size(handle: &Handle, state: &DatasetState, asked: &BufferSize) -> Result<u64> {
    let memory_type = datatype_of(handle.api(), asked.datatype)?;
    let stored = state.read_heaped(&selected(handle, asked.space)?)?;
    let heaped = memory::heaped_type(&memory_type, state.datatype());
    let values = HeapedConversion::new(state.datatype(), &heaped)?.convert(&stored)?;
    memory::needed(&memory_type, &values, &heaped)
}

/// Where the elements of a contiguous dataset begin.
fn offset(handle: &Handle, state: &DatasetState) -> Result<u64> {
    if handle.engine().writable() {
        // The header learns where they are when it is staged.
        state.flush(handle.engine().cache())?;
    }
    let object = state.object();
    let Some(raw) = object.message(kind::LAYOUT) else { return Ok(u64::MAX) };
    Ok(match Layout::decode(&raw.body, &object.context(&raw))? {
        Layout::Contiguous { address, .. } if address != u64::MAX => {
            address + state.medium().base()
        }
        _ => u64::MAX,
    })
}

/// # Safety
/// The operator is the program's.
unsafe fn each(state: &DatasetState, asked: &Iterate) -> Result<()> {
    chunk_of(state).ok_or_else(no_chunks)?;
    let mut chunks = state.stored_chunks()?;
    while let Some((offset, record)) = state.next_stored(&mut chunks)? {
        let (mask, address, size) = stored(state, Some(&record));
        // SAFETY: the caller's promise.
        match unsafe { (asked.op)(offset.as_ptr(), mask, address, size, asked.data) } {
            0 => {}
            answer => return Err(Fault::Stopped(answer)),
        }
    }
    Ok(())
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Image {
    room: usize,
    buf: *mut c_void,
    length: *mut usize,
}

/// `H5F_info2_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FileInfo {
    super_version: c_uint,
    super_size: Hsize,
    super_ext_size: Hsize,
    free_version: c_uint,
    free_size: Hsize,
    free_space: Hsize,
    shared_version: c_uint,
    shared_size: Hsize,
    shared_messages: [Hsize; 2],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct AskedInfo {
    id_type: c_int,
    info: *mut FileInfo,
}

/// `optional` of files.
///
/// # Safety
/// As [`dataset`].
pub(crate) unsafe extern "C" fn file(
    object: *mut c_void,
    args: *mut OptionalArgs,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> Herr {
    // SAFETY: as for `dataset`.
    let (handle, args) = unsafe { (Handle::at(object), *args) };
    done(handle.api(), c"file optional", || {
        let engine = handle.engine();
        // SAFETY: as for `dataset`.
        unsafe {
            if introspect::own_operation(handle.api(), &args) {
                return Ok(());
            }
            count_call();
            match args.op {
                FILE_IMAGE => {
                    let asked = args.args.cast::<Image>().read();
                    let bytes = image(handle)?;
                    put(asked.length, bytes.len());
                    if !asked.buf.is_null() {
                        if asked.room < bytes.len() {
                            return Err(Fault::Invalid("supplied buffer too small".into()));
                        }
                        std::ptr::copy_nonoverlapping(
                            bytes.as_ptr(),
                            asked.buf.cast(),
                            bytes.len(),
                        );
                    }
                }
                FREE_SPACE => {
                    let free = pumice_engine::measure::file(engine)?.free.iter().sum();
                    *args.args.cast::<*mut Hsize>().read() = free;
                }
                FILE_INFO => {
                    let asked = args.args.cast::<AskedInfo>().read();
                    let superblock = engine.superblock();
                    let length = superblock.encoded_length() as u64;
                    *asked.info = FileInfo {
                        super_version: superblock.version.into(),
                        super_size: length,
                        ..FileInfo::default()
                    };
                }
                FILE_SIZE => {
                    if engine.writable() {
                        engine.commit()?;
                    }
                    let size = match handle.file.memory.as_ref() {
                        Some(store) => store.to_vec().len() as u64,
                        None => std::fs::metadata(&handle.file.name)
                            .map(|found| found.len())
                            .map_err(|source| {
                                let action = format!("measure {}", handle.file.name);
                                Fault::Engine(pumice_engine::Error::Io { action, source })
                            })?,
                    };
                    *args.args.cast::<*mut Hsize>().read() = size;
                }
                START_SWMR => handle.changing()?.start_swmr_write()?,
                END => *args.args.cast::<*mut u64>().read() = engine.medium().used(),
                other => {
                    let what = format!("operation {other} on files (of the native file format)");
                    return Err(Fault::Unsupported(what));
                }
            }
        }
        Ok(())
    })
}

/// The bytes of a file after a flush.
fn image(handle: &Handle) -> Result<Vec<u8>> {
    if handle.engine().writable() {
        handle.engine().commit()?;
    }
    if let Some(store) = &handle.file.memory {
        return Ok(store.to_vec());
    }
    let name = &handle.file.name;
    std::fs::read(name).map_err(|source| {
        Fault::Engine(pumice_engine::Error::Io { action: format!("read {name}"), source })
    })
}

#[repr(C)]
#[derive(Clone, Copy)]
struct GetComment {
    room: usize,
    buf: *mut c_char,
    length: *mut usize,
}

/// `H5O_native_info_t`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct NativeInfo {
    version: c_uint,
    messages: c_uint,
    blocks: c_uint,
    flags: c_uint,
    total: Hsize,
    meta: Hsize,
    message_bytes: Hsize,
    free: Hsize,
    present: u64,
    shared: u64,
    /// Index and heap of the object, then of its attributes.
    structures: [Hsize; 4],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct AskedNative {
    fields: c_uint,
    info: *mut NativeInfo,
}

/// `optional` of objects.
///
/// # Safety
/// As [`dataset`].
pub(crate) unsafe extern "C" fn object(
    object: *mut c_void,
    params: *const LocParams,
    args: *mut OptionalArgs,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> Herr {
    // SAFETY: as for `dataset`.
    let (handle, args) = unsafe { (Handle::at(object), *args) };
    done(handle.api(), c"object optional", || {
        count_call();
        // SAFETY: as for `dataset`.
        unsafe {
            let found = place(handle, params)?;
            match args.op {
                0 => {
                    let asked = args.args.cast::<GetComment>().read();
                    let comment = comment(&found.object).unwrap_or_default();
                    put_bytes(&comment, asked.buf, asked.room);
                    put(asked.length, comment.len());
                }
                1 => {
                    handle.changing_objects()?;
                    let given = args.args.cast::<*const c_char>().read();
                    let given = if given.is_null() { "" } else { text(given)? };
                    set_comment(&found.object, given)?;
                }
                5 => {
                    let asked = args.args.cast::<AskedNative>().read();
                    *asked.info = native_info(&found.object)?;
                }
                other => return Err(Fault::Unsupported(format!("operation {other} on objects"))),
            }
        }
        Ok(())
    })
}

/// Puts a comment where a program wants it, with a null byte behind it if there is room: h5ls asks for exactly the text.
///
/// # Safety
/// The buffer is null or has `size` bytes.
unsafe fn put_bytes(text: &str, buffer: *mut c_char, size: usize) {
    if !buffer.is_null() {
        let bytes = text.bytes().chain([0]).take(size);
        // SAFETY: the caller's promise.
        bytes.enumerate().for_each(|(at, byte)| unsafe { *buffer.add(at) = byte as c_char });
    }
}

fn comment(object: &Object) -> Option<String> {
    let raw = object.message(kind::COMMENT)?;
    match Message::from_raw(&raw, &object.context(&raw)) {
        Ok(Message::Comment(text)) => Some(text),
        _ => None,
    }
}

fn set_comment(object: &Object, text: &str) -> Result<()> {
    if text.is_empty() {
        return Ok(object.change(|all| all.retain(|message| message.kind != kind::COMMENT))?);
    }
    let raw = Message::Comment(text.into()).to_raw(Default::default(), 0);
    let raw = raw.map_err(|error| Fault::Invalid(error.to_string()))?;
    Ok(object.set(raw.kind, 0, raw.body)?)
}

fn native_info(object: &Object) -> Result<NativeInfo> {
    let (total, free) = object.space();
    let messages = object.all_messages();
    let bytes: u64 = messages.iter().map(|message| message.body.len() as u64).sum();
    let present = messages.iter().fold(0, |bits, message| bits | 1u64 << (message.kind & 63));
    Ok(NativeInfo {
        version: object.version().into(),
        messages: messages.len() as c_uint,
        blocks: object.blocks().len() as c_uint,
        total,
        meta: total.saturating_sub(bytes).saturating_sub(free),
        message_bytes: bytes,
        free,
        present,
        ..NativeInfo::default()
    })
}
