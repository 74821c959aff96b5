//! Files: create, open, get, specific, close.

use crate::abi::*;
use crate::driver_store::DriverStore;
use crate::fault::{Fault, Result, answer, checked, done};
use crate::file_lists::{self, Driver};
use crate::handle::{Handle, Kind, List, OpenFile, close, count_call, put_text, text};
use crate::introspect;
use crate::library::Api;
use crate::settings::Settings;
use crate::slots;
use pumice_engine::file::File as Engine;
use pumice_engine::open_files::{Opening, open_path};
use pumice_engine::version::CreateOptions;
use pumice_engine::{Error, ErrorKind};
use pumice_store::{MemoryStore, Store};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::sync::Arc;

fn failed(action: &str, name: &str) -> impl FnOnce(std::io::Error) -> Fault {
    let action = format!("{action} {name}");
    move |source| Fault::Engine(Error::Io { action, source })
}

/// `create`.
///
/// # Safety
/// All arguments are as libhdf5 gives them. This holds for every callback of this crate.
pub(crate) unsafe extern "C" fn create<const SLOT: usize>(
    name: *const c_char,
    flags: c_uint,
    fcpl: Hid,
    fapl: Hid,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> *mut c_void {
    let Some(api) = slots::api(SLOT) else { return std::ptr::null_mut() };
    answer(api, c"file create", std::ptr::null_mut(), || {
        count_call();
        introspect::prepare(api);
        // SAFETY: as above.
        let name = unsafe { text(name)? };
        let options = file_lists::creation(api, fcpl, fapl)?;
        let settings = Settings::of(api, fapl)?;
        let flags = flags | file_flags::RDWR;
        let opening = match flags & file_flags::TRUNC != 0 {
            true => Opening::Create,
            false => Opening::CreateNew,
        };
        let mut memory = None;
        let engine = match file_lists::driver(api, fapl)? {
            Driver::Memory { saved: true } => on_path(api, name, opening, fapl, &options)?,
            Driver::Memory { saved: false } => {
                let store = Arc::new(MemoryStore::default());
                memory = Some(store.clone());
                Engine::create(store, settings.cache()?, &options)?
            }
            Driver::Path => on_path(api, name, opening, fapl, &options)?,
            Driver::Other => {
                let store = Arc::new(DriverStore::open(api, name, flags, fapl)?);
                Engine::create(store, settings.cache_without_threads()?, &options)?
            }
            Driver::Family(bytes) => {
                let options = CreateOptions { member_size: Some(bytes), ..options };
                on_path(api, name, opening, fapl, &options)?
            }
        };
        let flags = flags & (file_flags::RDWR | file_flags::SWMR_WRITE);
        Ok(given(api, engine, name, flags, fapl, memory))
    })
}

fn on_path(
    api: &Api,
    name: &str,
    opening: Opening,
    fapl: Hid,
    options: &CreateOptions,
) -> Result<Arc<Engine>> {
    let locking = file_lists::locking(api, fapl)?;
    let cache = Settings::of(api, fapl)?.cache()?;
    let engine = open_path(Path::new(name), opening, cache, locking, options);
    Ok(engine.map_err(|error| match error.kind() {
        // The path is in the message already; libhdf5 says it like this.
        ErrorKind::Io => error,
        _ => error,
    })?)
}

fn given(
    api: &'static Api,
    engine: Arc<Engine>,
    name: &str,
    flags: c_uint,
    fapl: Hid,
    memory: Option<Arc<MemoryStore>>,
) -> *mut c_void {
    let mut file = OpenFile::new(api, engine, name.to_owned(), flags, List::copy(api, fapl));
    file.memory = memory;
    if let Ok(Driver::Other) = file_lists::driver(api, fapl) {
        file.close_at_once();
        file.apart = false;
    }
    Handle::new(Arc::new(file), Kind::File, Some("/".into())).give()
}

/// `open`.
///
/// # Safety
/// As [`create`].
pub(crate) unsafe extern "C" fn open<const SLOT: usize>(
    name: *const c_char,
    flags: c_uint,
    fapl: Hid,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> *mut c_void {
    let Some(api) = slots::api(SLOT) else { return std::ptr::null_mut() };
    answer(api, c"file open", std::ptr::null_mut(), || {
        count_call();
        introspect::prepare(api);
        // SAFETY: as for `create`.
        let name = unsafe { text(name)? };
        let writes = flags & file_flags::RDWR != 0;
        let mut options = file_lists::access(api, fapl)?;
        let settings = Settings::of(api, fapl)?;
        options.swmr = flags & (file_flags::SWMR_READ | file_flags::SWMR_WRITE) != 0;
        let mut memory = None;
        let engine = match file_lists::driver(api, fapl)? {
            Driver::Other => {
                let store = Arc::new(DriverStore::open(api, name, flags, fapl)?);
                Engine::open_for(store, settings.cache_without_threads()?, writes, &options)?
            }
            Driver::Memory { saved }
                if !(saved && writes) || file_lists::image(api, fapl)?.is_some() =>
            {
                let bytes = match file_lists::image(api, fapl)? {
                    Some(bytes) => bytes,
                    None => std::fs::read(name).map_err(failed("open", name))?,
                };
                let store = Arc::new(MemoryStore::new(bytes));
                memory = Some(store.clone());
                let store: Arc<dyn Store> = store;
                Engine::open_for(store, settings.cache()?, writes, &options)?
            }
            _ => {
                let opening = if writes { Opening::Edit } else { Opening::Read };
                let engine = on_path(api, name, opening, fapl, &options)?;
                if options.swmr && writes && !engine.is_swmr() {
                    engine.start_swmr_write()?;
                }
                engine
            }
        };
        Ok(given(api, engine, name, flags, fapl, memory))
    })
}

/// Operations of `get`.
const GET_CONTAINER: i32 = 0;
const GET_FAPL: i32 = 1;
const GET_FCPL: i32 = 2;
const GET_FILENO: i32 = 3;
const GET_INTENT: i32 = 4;
const GET_NAME: i32 = 5;
const GET_OBJ_COUNT: i32 = 6;
const GET_OBJ_IDS: i32 = 7;

/// `get`.
///
/// # Safety
/// As [`create`].
pub(crate) unsafe extern "C" fn get(
    object: *mut c_void,
    args: *mut FileGetArgs,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> Herr {
    // SAFETY: as for `create`.
    let (handle, args) = unsafe { (Handle::at(object), &mut *args) };
    done(handle.api(), c"file get", || {
        let api = handle.api();
        // SAFETY: as for `create`: each operation has its arguments and places for its answer.
        unsafe {
            match args.op {
                GET_CONTAINER => {
                    let to = &mut *args.args.container;
                    (to.version, to.feature_flags) = (1, 0);
                    (to.token_size, to.blob_id_size) = (8, 16);
                }
                GET_FAPL => {
                    args.args.fapl = handle.file.fapl.given(c"H5P_CLS_FILE_ACCESS_ID_g")?;
                }
                GET_FCPL => args.args.fcpl = file_lists::creation_list(handle)?,
                GET_FILENO => *args.args.fileno = crate::object::file_number(handle),
                GET_INTENT => {
                    let mut flags = handle.file.flags;
                    if handle.engine().is_swmr() {
                        flags |= match flags & file_flags::RDWR {
                            0 => file_flags::SWMR_READ,
                            _ => file_flags::SWMR_WRITE,
                        };
                    }
                    *args.args.intent = flags;
                }
                GET_NAME => {
                    let (to, name) = (args.args.name, &handle.file.name);
                    put_text(name, to.buf, to.buf_size);
                    *to.len = name.len();
                }
                GET_OBJ_COUNT => {
                    let asked = args.args.obj_count;
                    *asked.count = identifiers(api, handle, asked.types)?.len();
                }
                GET_OBJ_IDS => {
                    let asked = args.args.obj_ids;
                    let found = identifiers(api, handle, asked.types)?;
                    let count = found.len().min(asked.max);
                    std::ptr::copy_nonoverlapping(found.as_ptr(), asked.list, count);
                    *asked.count = count;
                }
                other => return Err(Fault::Unsupported(format!("question {other} about files"))),
            }
        }
        Ok(())
    })
}

/// What a walk over identifiers looks for.
struct Search<'a> {
    api: &'a Api,
    file: &'a OpenFile,
    local: bool,
    /// The kind of identifiers that is being looked at.
    kind: c_int,
    found: Vec<Hid>,
}

/// The identifiers of a file's objects that programs have.
fn identifiers(api: &Api, handle: &Handle, types: c_uint) -> Result<Vec<Hid>> {
    let local = types & file_flags::OBJ_LOCAL != 0;
    let mut search = Search { api, file: &handle.file, local, kind: 0, found: Vec::new() };
    let kinds = [
        (file_flags::OBJ_FILE, id::FILE),
        (file_flags::OBJ_DATASET, id::DATASET),
        (file_flags::OBJ_GROUP, id::GROUP),
        (file_flags::OBJ_DATATYPE, id::DATATYPE),
        (file_flags::OBJ_ATTR, id::ATTR),
    ];
    for (_, kind) in kinds.into_iter().filter(|(flag, _)| types & flag != 0) {
        search.kind = kind;
        let data: *mut Search<'_> = &mut search;
        // SAFETY: the operator gets the search back, which lives until the call returns.
        let done = unsafe { (api.H5Iiterate)(kind, note, data.cast()) };
        checked(done, "H5Iiterate")?;
    }
    Ok(search.found)
}

/// Notes an identifier if it is of the file.
unsafe extern "C" fn note(id: Hid, data: *mut c_void) -> Herr {
    // SAFETY: the data is that of `identifiers`.
    let search = unsafe { &mut *data.cast::<Search<'_>>() };
    let (api, kind) = (search.api, search.kind);
    // SAFETY: a plain call. Datatypes without a name have no object.
    if kind == id::DATATYPE && unsafe { (api.H5Tcommitted)(id) } <= 0 {
        return 0;
    }
    let pointer = introspect::object_of(api, id);
    // Others may be of another connector.
    if let Some(handle) = Handle::find(pointer) {
        let same = match search.local {
            true => std::ptr::eq(&*handle.file, search.file),
            false => Arc::ptr_eq(&handle.file.engine, &search.file.engine),
        };
        if same {
            search.found.push(id);
        }
    }
    0
}

/// Operations of `specific`.
const FLUSH: i32 = 0;
const REOPEN: i32 = 1;
const IS_ACCESSIBLE: i32 = 2;
const DELETE: i32 = 3;
const IS_EQUAL: i32 = 4;

/// `specific`.
///
/// # Safety
/// As [`create`].
pub(crate) unsafe extern "C" fn specific<const SLOT: usize>(
    object: *mut c_void,
    args: *mut FileSpecificArgs,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> Herr {
    let Some(api) = slots::api(SLOT) else { return FAIL };
    done(api, c"file specific", || {
        count_call();
        // SAFETY: as for `create`: questions about names have no object, all others have one.
        unsafe {
            let args = &*args;
            match args.op {
                FLUSH => Ok(Handle::at(object).engine().commit()?),
                REOPEN => {
                    let handle = Handle::at(object);
                    let file = handle.file.clone();
                    let kind = Kind::File;
                    *args.args.reopen = Handle::new(file, kind, Some("/".into())).give();
                    Ok(())
                }
                IS_ACCESSIBLE => {
                    let asked = args.args.accessible;
                    let name = text(asked.name)?;
                    *asked.accessible = match look(api, name, asked.fapl) {
                        Ok(_) => true,
                        Err(Fault::Engine(error)) if error.io().is_none() => false,
                        Err(fault) => return Err(fault),
                    };
                    Ok(())
                }
                DELETE => {
                    let asked = args.args.accessible;
                    let name = text(asked.name)?;
                    drop(look(api, name, asked.fapl)?);
                    std::fs::remove_file(name).map_err(failed("delete", name))
                }
                IS_EQUAL => {
                    let asked = args.args.equal;
                    let one = Handle::at(object);
                    let other = Handle::find(introspect::meant(asked.other));
                    *asked.same =
                        other.is_some_and(|other| Arc::ptr_eq(one.engine(), other.engine()));
                    Ok(())
                }
                other => Err(Fault::Unsupported(format!("operation {other} on files"))),
            }
        }
    })
}

/// Opens a file for reading, to see whether it is one.
fn look(api: &Api, name: &str, fapl: Hid) -> Result<Arc<Engine>> {
    on_path(api, name, Opening::Read, fapl, &CreateOptions::default())
}

/// `close`: writes what has changed, and closes the file if nothing of it is open.
///
/// # Safety
/// As [`create`].
pub(crate) unsafe extern "C" fn close_file(
    object: *mut c_void,
    _dxpl: Hid,
    _req: *mut *mut c_void,
) -> Herr {
    // SAFETY: as for `create`.
    let (api, file) = unsafe {
        let handle = Handle::at(object);
        (handle.api(), handle.file.clone())
    };
    let closed = done(api, c"file close", || {
        count_call();
        // libhdf5 keeps the identifier of what could not be closed: the first failure leaves all as it is.
        if file.engine.writable() && !file.gives_up() {
            file.engine.commit()?;
        }
        Ok(())
    });
    if closed < 0 {
        return closed;
    }
    // Of an error from here on the stack tells; the identifier must go.
    done(api, c"file close", || {
        // SAFETY: libhdf5 does not use the pointer again.
        unsafe { close(object) };
        let engine = file.engine.clone();
        // Gives up what never got a name, and lets go of the file unless objects are open.
        drop(file);
        Ok(engine.close()?)
    });
    OK
}
