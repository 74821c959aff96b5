//! Start and end, what the connector can do, and how old functions are made to work.
//!
//! Sixteen old functions (`H5Lget_info1`, `H5Oget_info1`, `H5Rcreate`, ...), which h5py, PyTables and netCDF still call,
//! refuse connectors that are not the native one, because they turn tokens into addresses with the help of a native
//! object. Apart from that they use the connector as all functions do, and its tokens are addresses. So the
//! connector answers their question with the native connector's name, and `get_object` gives them native objects that
//! know how wide an address is: those of a hidden file in memory ([`hidden`]), one for each library.
//!
//! `get_object` has other callers, which must get the handle itself: the connector when it looks an identifier up
//! ([`object_of`]), and libhdf5 when it looks for the identifier of a file that `object get` has just named
//! ([`expect_file`]).

use crate::abi::*;
use crate::datatype_map::identifier;
use crate::fault::{Fault, Result, checked, done};
use crate::handle::{CALLS, Handle};
use crate::library::Api;
use crate::slots::{self, CAPABILITIES, SLOTS};
use pumice_types::Datatype;
use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

/// `H5VL_SUBCLS_*`.
const OF_DATASETS: c_int = 4;
const OF_FILES: c_int = 6;
const OF_GROUPS: c_int = 7;
const OF_OBJECTS: c_int = 9;
/// `H5VL_OPT_QUERY_SUPPORTED`.
const SUPPORTED: u64 = 1;

/// The number of the operation `pumice.calls` on files, which gives a counter.
static CALLS_OPERATION: [AtomicI32; SLOTS] = [const { AtomicI32::new(-1) }; SLOTS];

/// `initialize`.
///
/// # Safety
/// All arguments are as libhdf5 gives them. This holds for every callback of this crate.
pub(crate) unsafe extern "C" fn initialize<const SLOT: usize>(_vipl: Hid) -> Herr {
    let Some(api) = slots::api(SLOT) else { return FAIL };
    done(api, c"initialize", || {
        let mut number = -1;
        // SAFETY: the name ends with a null byte.
        let registered = unsafe {
            (api.H5VLregister_opt_operation)(OF_FILES, c"pumice.calls".as_ptr(), &mut number)
        };
        checked(registered, "H5VLregister_opt_operation")?;
        CALLS_OPERATION[SLOT].store(number, Ordering::Relaxed);
        Ok(())
    })
}

/// `terminate`: files were closed before. Where `PUMICE_VOL_CALLS` names a file, the counter is added to it, so that tests
/// of programs that cannot ask for it see that the connector did the work.
pub(crate) extern "C" fn terminate() -> Herr {
    if let Some(path) = std::env::var_os("PUMICE_VOL_CALLS") {
        let mut options = std::fs::OpenOptions::new();
        let written = options
            .create(true)
            .append(true)
            .open(path)
            .and_then(|mut file| writeln!(file, "{}", CALLS.load(Ordering::Relaxed)));
        return if written.is_ok() { OK } else { FAIL };
    }
    OK
}

/// Carries out an operation of the connector's own on a file; `false` if it is none.
///
/// # Safety
/// The arguments are those of the operation.
pub(crate) unsafe fn own_operation(api: &Api, args: &OptionalArgs) -> bool {
    if args.op != CALLS_OPERATION[api.slot].load(Ordering::Relaxed) {
        return false;
    }
    // SAFETY: the caller's promise: a place for the counter.
    unsafe { *args.args.cast::<u64>() = CALLS.load(Ordering::Relaxed) };
    true
}

/// `get_cap_flags`.
///
/// # Safety
/// As [`initialize`].
pub(crate) unsafe extern "C" fn get_cap_flags(_info: *const c_void, flags: *mut u64) -> Herr {
    // SAFETY: as for `initialize`.
    unsafe { *flags = CAPABILITIES };
    OK
}

/// `opt_query`: which optional operations there are.
///
/// # Safety
/// As [`initialize`].
pub(crate) unsafe extern "C" fn opt_query(
    object: *mut c_void,
    class: c_int,
    operation: c_int,
    flags: *mut u64,
) -> Herr {
    // SAFETY: as for `initialize`.
    let own = unsafe {
        let slot = Handle::at(object).api().slot;
        CALLS_OPERATION[slot].load(Ordering::Relaxed)
    };
    let known = match class {
        OF_DATASETS => (1..=10).contains(&operation),
        OF_FILES => operation == own || crate::native::FILE_OPERATIONS.contains(&operation),
        OF_GROUPS => matches!(operation, 0 | 1),
        OF_OBJECTS => matches!(operation, 0 | 1 | 5),
        _ => false,
    };
    // SAFETY: as for `initialize`.
    unsafe { *flags = if known { SUPPORTED } else { 0 } };
    OK
}

/// Whose class a library asks for: the one that it talks to, or the one at the end of a chain.
const LAST: c_int = 1;

/// `get_conn_cls`.
///
/// # Safety
/// As [`initialize`].
pub(crate) unsafe extern "C" fn get_conn_cls<const SLOT: usize>(
    _object: *mut c_void,
    level: c_int,
    class: *mut *const Class,
) -> Herr {
    let own = slots::class(SLOT);
    let Some(api) = slots::api(SLOT) else { return FAIL };
    let found = match level == LAST && hidden(api).is_some() {
        true => Some(native_class()),
        false => own,
    };
    // SAFETY: as for `initialize`.
    unsafe { *class = found.map_or(std::ptr::null(), std::ptr::from_ref) };
    OK
}

/// What libhdf5 compares to see whether a connector is the native one.
fn native_class() -> &'static Class {
    static NATIVE: OnceLock<Class> = OnceLock::new();
    NATIVE.get_or_init(|| {
        // SAFETY: all callbacks may be null, and are never called: the structure is only compared.
        let empty: Class = unsafe { std::mem::zeroed() };
        Class { version: 3, value: 0, name: c"native".as_ptr(), ..empty }
    })
}

/// Native objects of each kind.
struct Hidden {
    file: usize,
    group: usize,
    dataset: usize,
    datatype: usize,
    attribute: usize,
}

/// The native objects of each library.
static HIDDEN_OBJECTS: [OnceLock<Option<Hidden>>; SLOTS] = [const { OnceLock::new() }; SLOTS];

/// The native objects of a library; none if they could not be made.
fn hidden(api: &Api) -> Option<&'static Hidden> {
    HIDDEN_OBJECTS[api.slot].get()?.as_ref()
}

/// Makes the native objects of a library, before the connector has any object there: when libhdf5 flushes a native
/// file, it looks at all datasets that are open and takes what `get_object` gives for native ones.
pub(crate) fn prepare(api: &Api) {
    if HIDDEN_OBJECTS[api.slot].get().is_none() {
        let made = api.quietly(|| make_hidden(api).ok());
        // Who was faster has objects of the same kind.
        let _ = HIDDEN_OBJECTS[api.slot].set(made);
    }
}

fn make_hidden(api: &Api) -> Result<Hidden> {
    // SAFETY: plain calls with identifiers that were just made. Those of the file that is opened stay open until the
    // library ends.
    unsafe {
        let native = (api.H5VLget_connector_id_by_name)(c"native".as_ptr());
        let native = checked(native, "H5VLget_connector_id_by_name")?;
        let fapl = checked(api.new_list(c"H5P_CLS_FILE_ACCESS_ID_g"), "H5Pcreate")?;
        checked((api.H5Pset_fapl_core)(fapl, 1 << 12, false), "H5Pset_fapl_core")?;
        checked((api.H5Pset_vol)(fapl, native, std::ptr::null()), "H5Pset_vol")?;
        let mut image = hidden_image(api, fapl)?;
        // Opened for reading, so that nothing can be put into it: a reference to a region would be.
        let set = (api.H5Pset_file_image)(fapl, image.as_mut_ptr().cast(), image.len());
        checked(set, "H5Pset_file_image")?;
        let file = (api.H5Fopen)(HIDDEN.as_ptr(), 0, fapl);
        (api.H5Pclose)(fapl);
        let file = checked(file, "H5Fopen")?;
        let group = (api.H5Gopen2)(file, c"group".as_ptr(), DEFAULT);
        let dataset = (api.H5Dopen2)(file, c"dataset".as_ptr(), DEFAULT);
        let datatype = (api.H5Topen2)(file, c"type".as_ptr(), DEFAULT);
        let attribute = (api.H5Aopen)(dataset, c"attribute".as_ptr(), DEFAULT);
        let pointer = |id: Hid| {
            let pointer = (api.H5VLobject)(checked(id, "H5Gopen2")?) as usize;
            if pointer == 0 { Err(Fault::Library("H5VLobject")) } else { Ok(pointer) }
        };
        Ok(Hidden {
            file: pointer(file)?,
            group: pointer(group)?,
            dataset: pointer(dataset)?,
            datatype: pointer(datatype)?,
            attribute: pointer(attribute)?,
        })
    }
}

/// The name of the hidden file, which is in memory alone.
const HIDDEN: &CStr = c"pumice: objects of no file";

/// The bytes of a file with an object of each kind.
///
/// # Safety
/// The list is for files in memory, with the native connector.
unsafe fn hidden_image(api: &Api, fapl: Hid) -> Result<Vec<u8>> {
    // SAFETY: plain calls with identifiers that were just made, and are closed again.
    unsafe {
        let file = (api.H5Fcreate)(HIDDEN.as_ptr(), file_flags::TRUNC, DEFAULT, fapl);
        let file = checked(file, "H5Fcreate")?;
        let group = (api.H5Gcreate2)(file, c"group".as_ptr(), DEFAULT, DEFAULT, DEFAULT);
        let datatype = identifier(api, &Datatype::i8())?;
        let space = (api.H5Screate)(0);
        let name = c"dataset".as_ptr();
        let dataset = (api.H5Dcreate2)(file, name, datatype, space, DEFAULT, DEFAULT, DEFAULT);
        let name = c"attribute".as_ptr();
        let attribute = (api.H5Acreate2)(dataset, name, datatype, space, DEFAULT, DEFAULT);
        let name = c"type".as_ptr();
        let commit = (api.H5Tcommit2)(file, name, datatype, DEFAULT, DEFAULT, DEFAULT);
        (api.H5Sclose)(space);
        for id in [attribute, dataset, group, datatype] {
            (api.H5Idec_ref)(id);
        }
        checked(commit, "H5Tcommit2")?;
        (api.H5Fflush)(file, 0);
        let length = (api.H5Fget_file_image)(file, std::ptr::null_mut(), 0);
        let mut image = vec![0u8; checked(length, "H5Fget_file_image")? as usize];
        let got = (api.H5Fget_file_image)(file, image.as_mut_ptr().cast(), image.len());
        (api.H5Idec_ref)(file);
        checked(got, "H5Fget_file_image")?;
        Ok(image)
    }
}

thread_local! {
    /// Whether the connector itself is asking for an object.
    static ASKING: Cell<bool> = const { Cell::new(false) };
    /// The handle of a file whose identifier libhdf5 is looking for, or null.
    static WANTED: Cell<*mut c_void> = const { Cell::new(std::ptr::null_mut()) };
    /// The handle in whose place a native object was given last.
    static LAST_GIVEN: Cell<*mut c_void> = const { Cell::new(std::ptr::null_mut()) };
}

/// The handle behind an identifier, if it is one of this connector.
pub(crate) fn object_of(api: &Api, id: Hid) -> *mut c_void {
    ASKING.set(true);
    // SAFETY: a plain call; an identifier of something else gives null.
    let found = unsafe { (api.H5VLobject)(id) };
    ASKING.set(false);
    found
}

/// Takes note that libhdf5 will look for the identifier of a file whose handle this is.
pub(crate) fn expect_file(handle: *mut c_void) {
    WANTED.set(handle);
}

/// The handle that libhdf5 means by an object that `get_object` gave: a native one stands for the last.
pub(crate) fn meant(pointer: *mut c_void) -> *mut c_void {
    if Handle::find(pointer).is_some() { pointer } else { LAST_GIVEN.get() }
}

/// `get_object`.
///
/// # Safety
/// As [`initialize`].
pub(crate) unsafe extern "C" fn get_object(object: *const c_void) -> *mut c_void {
    let object = object.cast_mut();
    if ASKING.get() {
        return object;
    }
    // SAFETY: as for `initialize`.
    let handle = unsafe { Handle::at(object) };
    let wanted = WANTED.get();
    if !wanted.is_null() && handle.id_type() == id::FILE {
        if wanted == object {
            WANTED.set(std::ptr::null_mut());
        }
        return object;
    }
    let Some(hidden) = hidden(handle.api()) else { return object };
    LAST_GIVEN.set(object);
    let native = match handle.id_type() {
        id::FILE => hidden.file,
        id::GROUP => hidden.group,
        id::DATASET => hidden.dataset,
        id::DATATYPE => hidden.datatype,
        _ => hidden.attribute,
    };
    native as *mut c_void
}
