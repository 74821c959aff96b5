//! The functions of the libhdf5 that called: found by a return address, never linked.
//!
//! A program may have several libhdf5 (those inside the wheels of h5py and of netCDF4, say), loaded under names of
//! their own and invisible to each other. Each that loads the connector gets an [`Api`] of its own; objects
//! remember theirs. Pointers to functions are looked up once, constants (identifiers of classes and of errors)
//! when they are needed: the library sets them while it starts.

use crate::abi::*;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

/// Declares the table of functions and how it is filled.
macro_rules! api {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions of one libhdf5.
        #[expect(non_snake_case)]
        pub(crate) struct Api {
            /// The number of the slot whose callbacks belong to it.
            pub(crate) slot: usize,
            handle: usize,
            lock: Option<Lock>,
            usual_transfer: OnceLock<Hid>,
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Api {
            /// Looks all functions up in a library that is loaded.
            fn load(slot: usize, handle: usize) -> Result<Self, String> {
                Ok(Self {
                    slot,
                    handle,
                    lock: Lock::of(handle),
                    usual_transfer: OnceLock::new(),
                    $($name: {
                        let mut found = symbol(handle, concat!(stringify!($name), "\0"));
                        if found.is_null() {
                            // A function whose name got a number when a newer one came.
                            found = symbol(handle, concat!(stringify!($name), "1\0"));
                        }
                        if found.is_null() {
                            return Err(concat!(stringify!($name), " is not there").into());
                        }
                        // SAFETY: the function has this signature in all releases that have version 3 of the
                        // interface; others do not load the connector.
                        unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) $(-> $result)?>(found)
                        }
                    },)*
                })
            }
        }
    };
}

type Operator = unsafe extern "C" fn(Hid, *mut c_void) -> Herr;

api! {
    H5get_libversion: fn(*mut c_uint, *mut c_uint, *mut c_uint) -> Herr;
    H5Idec_ref: fn(Hid) -> c_int;
    H5Iiterate: fn(c_int, Operator, *mut c_void) -> Herr;
    H5VLobject: fn(Hid) -> *mut c_void;
    H5VLwrap_register: fn(*mut c_void, c_int) -> Hid;
    H5VLregister_opt_operation: fn(c_int, *const c_char, *mut c_int) -> Herr;
    H5VLget_connector_id_by_name: fn(*const c_char) -> Hid;
    H5Eget_auto2: fn(Hid, *mut *mut c_void, *mut *mut c_void) -> Herr;
    H5Eset_auto2: fn(Hid, *mut c_void, *mut c_void) -> Herr;
    H5Eget_current_stack: fn() -> Hid;
    H5Eset_current_stack: fn(Hid) -> Herr;
    H5Epush2: fn() -> Herr;
    H5Tencode: fn(Hid, *mut c_void, *mut usize) -> Herr;
    H5Tdecode: fn(*const c_void) -> Hid;
    H5Tcommitted: fn(Hid) -> c_int;
    H5Tconvert: fn(Hid, Hid, usize, *mut c_void, *mut c_void, Hid) -> Herr;
    H5Treclaim: fn(Hid, Hid, Hid, *mut c_void) -> Herr;
    H5FDopen: fn(*const c_char, c_uint, Hid, u64) -> *mut c_void;
    H5FDclose: fn(*mut c_void) -> Herr;
    H5FDget_eof: fn(*mut c_void, c_int) -> u64;
    H5FDset_eoa: fn(*mut c_void, c_int, u64) -> Herr;
    H5FDread: fn(*mut c_void, c_int, Hid, u64, usize, *mut c_void) -> Herr;
    H5FDwrite: fn(*mut c_void, c_int, Hid, u64, usize, *const c_void) -> Herr;
    H5FDtruncate: fn(*mut c_void, Hid, bool) -> Herr;
    H5FDflush: fn(*mut c_void, Hid, bool) -> Herr;
    H5Tclose: fn(Hid) -> Herr;
    H5Tvlen_create: fn(Hid) -> Hid;
    H5Sencode2: fn(Hid, *mut c_void, *mut usize, Hid) -> Herr;
    H5Rget_type: fn(*const c_void) -> c_int;
    H5Rcreate_object: fn(Hid, *const c_char, Hid, *mut c_void) -> Herr;
    H5Rcreate_region: fn(Hid, *const c_char, Hid, Hid, *mut c_void) -> Herr;
    H5Rcreate_attr: fn(Hid, *const c_char, *const c_char, Hid, *mut c_void) -> Herr;
    H5Ropen_object: fn(*mut c_void, Hid, Hid) -> Hid;
    H5Ropen_region: fn(*mut c_void, Hid, Hid) -> Hid;
    H5Rget_attr_name: fn(*const c_void, *mut c_char, usize) -> isize;
    H5Sclose: fn(Hid) -> Herr;
    H5Screate: fn(c_int) -> Hid;
    H5Screate_simple: fn(c_int, *const Hsize, *const Hsize) -> Hid;
    H5Sget_simple_extent_type: fn(Hid) -> c_int;
    H5Sget_simple_extent_ndims: fn(Hid) -> c_int;
    H5Sget_simple_extent_dims: fn(Hid, *mut Hsize, *mut Hsize) -> c_int;
    H5Sget_select_type: fn(Hid) -> c_int;
    H5Sis_regular_hyperslab: fn(Hid) -> c_int;
    H5Sget_regular_hyperslab: fn(Hid, *mut Hsize, *mut Hsize, *mut Hsize, *mut Hsize) -> Herr;
    H5Sget_select_bounds: fn(Hid, *mut Hsize, *mut Hsize) -> Herr;
    H5Sget_select_elem_npoints: fn(Hid) -> i64;
    H5Sget_select_elem_pointlist: fn(Hid, Hsize, Hsize, *mut Hsize) -> Herr;
    H5Sselect_hyperslab: fn(Hid, c_int, *const Hsize, *const Hsize, *const Hsize, *const Hsize) -> Herr;
    H5Sselect_none: fn(Hid) -> Herr;
    H5Sselect_elements: fn(Hid, c_int, usize, *const Hsize) -> Herr;
    H5Pcreate: fn(Hid) -> Hid;
    H5Pisa_class: fn(Hid, Hid) -> c_int;
    H5Pcopy: fn(Hid) -> Hid;
    H5Pclose: fn(Hid) -> Herr;
    H5Pexist: fn(Hid, *const c_char) -> c_int;
    H5Pget: fn(Hid, *const c_char, *mut c_void) -> Herr;
    H5Pset: fn(Hid, *const c_char, *const c_void) -> Herr;
    H5Pinsert2: fn(Hid, *const c_char, usize, *mut c_void, *const c_void, *const c_void, *const c_void, *const c_void, *const c_void, *const c_void) -> Herr;
    H5Pset_vol: fn(Hid, Hid, *const c_void) -> Herr;
    H5Pget_vol_info: fn(Hid, *mut *mut c_void) -> Herr;
    H5VLregister_connector: fn(*const c_void, Hid) -> Hid;
    H5Pget_cache: fn(Hid, *mut c_int, *mut usize, *mut usize, *mut f64) -> Herr;
    H5Pget_chunk_cache: fn(Hid, *mut usize, *mut usize, *mut f64) -> Herr;
    H5Pget_layout: fn(Hid) -> c_int;
    H5Pset_layout: fn(Hid, c_int) -> Herr;
    H5Pget_chunk: fn(Hid, c_int, *mut Hsize) -> c_int;
    H5Pset_chunk: fn(Hid, c_int, *const Hsize) -> Herr;
    H5Pget_chunk_opts: fn(Hid, *mut c_uint) -> Herr;
    H5Pset_chunk_opts: fn(Hid, c_uint) -> Herr;
    H5Pget_nfilters: fn(Hid) -> c_int;
    H5Pget_filter2: fn(Hid, c_uint, *mut c_uint, *mut usize, *mut c_uint, usize, *mut c_char, *mut c_uint) -> c_int;
    H5Pset_filter: fn(Hid, c_int, c_uint, usize, *const c_uint) -> Herr;
    H5Pfill_value_defined: fn(Hid, *mut c_int) -> Herr;
    H5Pget_fill_value: fn(Hid, Hid, *mut c_void) -> Herr;
    H5Pset_fill_value: fn(Hid, Hid, *const c_void) -> Herr;
    H5Pget_fill_time: fn(Hid, *mut c_int) -> Herr;
    H5Pset_fill_time: fn(Hid, c_int) -> Herr;
    H5Pget_alloc_time: fn(Hid, *mut c_int) -> Herr;
    H5Pset_alloc_time: fn(Hid, c_int) -> Herr;
    H5Pget_external_count: fn(Hid) -> c_int;
    H5Pget_external: fn(Hid, c_uint, usize, *mut c_char, *mut i64, *mut Hsize) -> Herr;
    H5Pset_external: fn(Hid, *const c_char, i64, Hsize) -> Herr;
    H5Pget_virtual_count: fn(Hid, *mut usize) -> Herr;
    H5Pget_virtual_vspace: fn(Hid, usize) -> Hid;
    H5Pget_virtual_srcspace: fn(Hid, usize) -> Hid;
    H5Pget_virtual_filename: fn(Hid, usize, *mut c_char, usize) -> isize;
    H5Pget_virtual_dsetname: fn(Hid, usize, *mut c_char, usize) -> isize;
    H5Pset_virtual: fn(Hid, Hid, *const c_char, *const c_char, Hid) -> Herr;
    H5Pget_obj_track_times: fn(Hid, *mut bool) -> Herr;
    H5Pset_obj_track_times: fn(Hid, bool) -> Herr;
    H5Pget_attr_creation_order: fn(Hid, *mut c_uint) -> Herr;
    H5Pset_attr_creation_order: fn(Hid, c_uint) -> Herr;
    H5Pget_attr_phase_change: fn(Hid, *mut c_uint, *mut c_uint) -> Herr;
    H5Pset_attr_phase_change: fn(Hid, c_uint, c_uint) -> Herr;
    H5Pget_link_creation_order: fn(Hid, *mut c_uint) -> Herr;
    H5Pset_link_creation_order: fn(Hid, c_uint) -> Herr;
    H5Pget_link_phase_change: fn(Hid, *mut c_uint, *mut c_uint) -> Herr;
    H5Pset_link_phase_change: fn(Hid, c_uint, c_uint) -> Herr;
    H5Pget_est_link_info: fn(Hid, *mut c_uint, *mut c_uint) -> Herr;
    H5Pset_est_link_info: fn(Hid, c_uint, c_uint) -> Herr;
    H5Pget_create_intermediate_group: fn(Hid, *mut c_uint) -> Herr;
    H5Pget_char_encoding: fn(Hid, *mut c_int) -> Herr;
    H5Pset_char_encoding: fn(Hid, c_int) -> Herr;
    H5Pget_userblock: fn(Hid, *mut Hsize) -> Herr;
    H5Pset_userblock: fn(Hid, Hsize) -> Herr;
    H5Pget_sizes: fn(Hid, *mut usize, *mut usize) -> Herr;
    H5Pset_sizes: fn(Hid, usize, usize) -> Herr;
    H5Pget_sym_k: fn(Hid, *mut c_uint, *mut c_uint) -> Herr;
    H5Pset_sym_k: fn(Hid, c_uint, c_uint) -> Herr;
    H5Pget_istore_k: fn(Hid, *mut c_uint) -> Herr;
    H5Pset_istore_k: fn(Hid, c_uint) -> Herr;
    H5Pget_file_space_strategy: fn(Hid, *mut c_int, *mut bool, *mut Hsize) -> Herr;
    H5Pset_file_space_strategy: fn(Hid, c_int, bool, Hsize) -> Herr;
    H5Pget_file_space_page_size: fn(Hid, *mut Hsize) -> Herr;
    H5Pset_file_space_page_size: fn(Hid, Hsize) -> Herr;
    H5Pget_libver_bounds: fn(Hid, *mut c_int, *mut c_int) -> Herr;
    H5Pget_alignment: fn(Hid, *mut Hsize, *mut Hsize) -> Herr;
    H5Pget_meta_block_size: fn(Hid, *mut Hsize) -> Herr;
    H5Pget_file_locking: fn(Hid, *mut bool, *mut bool) -> Herr;
    H5Pget_driver: fn(Hid) -> Hid;
    H5Pget_fapl_core: fn(Hid, *mut usize, *mut bool) -> Herr;
    H5Pset_fapl_core: fn(Hid, usize, bool) -> Herr;
    H5Pget_fapl_family: fn(Hid, *mut Hsize, *mut Hid) -> Herr;
    H5Pget_file_image: fn(Hid, *mut *mut c_void, *mut usize) -> Herr;
    H5Pget_copy_object: fn(Hid, *mut c_uint) -> Herr;
    H5Pget_data_transform: fn(Hid, *mut c_char, usize) -> isize;
    H5Pget_shared_mesg_nindexes: fn(Hid, *mut c_uint) -> Herr;
    H5Pget_shared_mesg_index: fn(Hid, c_uint, *mut c_uint, *mut c_uint) -> Herr;
    H5Fcreate: fn(*const c_char, c_uint, Hid, Hid) -> Hid;
    H5Fopen: fn(*const c_char, c_uint, Hid) -> Hid;
    H5Fflush: fn(Hid, c_int) -> Herr;
    H5Fget_file_image: fn(Hid, *mut c_void, usize) -> isize;
    H5Pset_file_image: fn(Hid, *mut c_void, usize) -> Herr;
    H5Pget_efile_prefix: fn(Hid, *mut c_char, usize) -> isize;
    H5Pget_virtual_view: fn(Hid, *mut c_int) -> Herr;
    H5Pget_virtual_printf_gap: fn(Hid, *mut Hsize) -> Herr;
    H5Pget_elink_acc_flags: fn(Hid, *mut c_uint) -> Herr;
    H5Pget_virtual_prefix: fn(Hid, *mut c_char, usize) -> isize;
    H5Gopen2: fn(Hid, *const c_char, Hid) -> Hid;
    H5Dopen2: fn(Hid, *const c_char, Hid) -> Hid;
    H5Topen2: fn(Hid, *const c_char, Hid) -> Hid;
    H5Aopen: fn(Hid, *const c_char, Hid) -> Hid;
    H5Gcreate2: fn(Hid, *const c_char, Hid, Hid, Hid) -> Hid;
    H5Dcreate2: fn(Hid, *const c_char, Hid, Hid, Hid, Hid, Hid) -> Hid;
    H5Acreate2: fn(Hid, *const c_char, Hid, Hid, Hid, Hid) -> Hid;
    H5Tcommit2: fn(Hid, *const c_char, Hid, Hid, Hid, Hid) -> Herr;
    H5free_memory: fn(*mut c_void) -> Herr;
    H5allocate_memory: fn(usize, bool) -> *mut c_void;
}

/// An address in a library that is loaded; null if it has no such name. The name ends with a null byte.
fn symbol(handle: usize, name: &'static str) -> *mut c_void {
    debug_assert!(name.ends_with('\0'));
    // SAFETY: the handle is one of `dlopen` that is never closed, the name ends with a null byte.
    unsafe { libc::dlsym(handle as *mut c_void, name.as_ptr().cast()) }
}

/// The functions that give back the lock of a library for a while; only builds with the lock have them.
#[derive(Clone, Copy)]
struct Lock {
    release: unsafe extern "C" fn(*mut c_uint) -> Herr,
    acquire: unsafe extern "C" fn(c_uint, *mut bool) -> Herr,
}

impl Lock {
    fn of(handle: usize) -> Option<Self> {
        let release = symbol(handle, "H5TSmutex_release\0");
        let acquire = symbol(handle, "H5TSmutex_acquire\0");
        if release.is_null() || acquire.is_null() {
            return None;
        }
        // SAFETY: functions of these names have these signatures.
        unsafe {
            Some(Self {
                release: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut c_uint) -> Herr,
                >(release),
                acquire: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(c_uint, *mut bool) -> Herr,
                >(acquire),
            })
        }
    }

    /// Takes the lock so many times, as soon as nobody has it.
    fn take(self, count: c_uint) {
        for attempt in 0u32.. {
            let mut taken = false;
            // SAFETY: a plain call with a place for the answer; it does not wait.
            if unsafe { (self.acquire)(count, &mut taken) } < 0 || taken {
                return;
            }
            match attempt {
                0..64 => std::thread::yield_now(),
                _ => std::thread::sleep(std::time::Duration::from_micros(20)),
            }
        }
    }
}

/// A lock that is taken again, whatever happens meanwhile.
struct Lent(Lock, c_uint);

impl Drop for Lent {
    fn drop(&mut self) {
        self.0.take(self.1);
    }
}

impl Api {
    /// Works without the library's lock, so that other threads of the program get into it. The work calls no function of
    /// the library, and uses nothing that the program could close meanwhile.
    pub(crate) fn unlocked<T>(&self, work: impl FnOnce() -> T) -> T {
        let Some(lock) = self.lock else { return work() };
        let mut count = 0;
        // SAFETY: a plain call with a place for how often the lock was taken; this thread has it, as a callback runs.
        let released = unsafe { (lock.release)(&mut count) };
        let _lent = (released >= 0 && count > 0).then(|| Lent(lock, count));
        work()
    }

    /// The library that a return address lies in.
    pub(crate) fn of_caller(slot: usize, caller: usize) -> Result<Self, String> {
        let (handle, _) = library_at(caller)?;
        Self::load(slot, handle)
    }

    /// Calls the library without its printing errors, and leaves the error stack as it is.
    pub(crate) fn quietly<T>(&self, call: impl FnOnce() -> T) -> T {
        let (mut print, mut data) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: plain calls; what was set for printing is set again afterwards.
        unsafe {
            let stack = (self.H5Eget_current_stack)();
            (self.H5Eget_auto2)(DEFAULT, &mut print, &mut data);
            (self.H5Eset_auto2)(DEFAULT, std::ptr::null_mut(), std::ptr::null_mut());
            let answer = call();
            (self.H5Eset_auto2)(DEFAULT, print, data);
            (self.H5Eset_current_stack)(stack);
            answer
        }
    }

    /// The first number of the library's version.
    pub(crate) fn major(&self) -> u32 {
        let (mut major, mut minor, mut release) = (0, 0, 0);
        // SAFETY: a plain call with places for three numbers.
        unsafe { (self.H5get_libversion)(&mut major, &mut minor, &mut release) };
        major
    }

    /// The list of transfers that programs mean by `H5P_DEFAULT`.
    pub(crate) fn usual_transfer(&self) -> Hid {
        *self.usual_transfer.get_or_init(|| self.constant(c"H5P_LST_DATASET_XFER_ID_g"))
    }

    /// The value of a variable that holds an identifier, such as `H5E_VOL_g`; [`INVALID`] if there is none.
    pub(crate) fn constant(&self, name: &'static CStr) -> Hid {
        let find = |handle: *mut c_void| -> Hid {
            // SAFETY: `dlsym` gives null, or the address of a variable of this type that lives as long as the library.
            unsafe {
                let found = libc::dlsym(handle, name.as_ptr()).cast::<Hid>();
                if found.is_null() { INVALID } else { *found }
            }
        };
        match find(self.handle as *mut c_void) {
            // In programs that are linked with the library, the variable may have been copied into the program.
            INVALID | 0 => find(libc::RTLD_DEFAULT),
            found => found,
        }
    }

    /// The identifier of a file driver: a variable's value, or what a function answers that makes it.
    pub(crate) fn driver(&self, variable: &'static CStr, start: &'static str) -> Hid {
        match self.constant(variable) {
            INVALID => {}
            known => return known,
        }
        let found = symbol(self.handle, start);
        if found.is_null() {
            return INVALID;
        }
        // SAFETY: functions of these names have this signature.
        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> Hid>(found)() }
    }

    /// A class of property lists, by the name of its variable.
    pub(crate) fn new_list(&self, class: &'static CStr) -> Hid {
        // SAFETY: a plain call of the library.
        unsafe { (self.H5Pcreate)(self.constant(class)) }
    }
}

/// An address in the libhdf5 that the program is linked with, if it is.
pub(crate) fn linked() -> Option<usize> {
    // SAFETY: the name ends with a null byte.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"H5open".as_ptr()) };
    (!found.is_null()).then_some(found as usize)
}

/// Where the library begins that an address lies in: two calls are by one library if this is the same.
pub(crate) fn base_of(address: usize) -> Result<usize, String> {
    Ok(library_at(address)?.1)
}

/// The handle and the first address of the library that an address lies in.
fn library_at(address: usize) -> Result<(usize, usize), String> {
    // SAFETY: the structure is plain data that `dladdr` fills in.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: `dladdr` takes any address.
    if unsafe { libc::dladdr(address as *const c_void, &mut info) } == 0 || info.dli_fname.is_null()
    {
        return Err("the calling library was not found".into());
    }
    let base = info.dli_fbase as usize;
    // SAFETY: `dladdr` gave a name that ends with a null byte. The library is loaded: nothing of it runs.
    let handle = unsafe { libc::dlopen(info.dli_fname, libc::RTLD_NOLOAD | libc::RTLD_LAZY) };
    if !handle.is_null() && !symbol(handle as usize, "H5open\0").is_null() {
        return Ok((handle as usize, base));
    }
    // A program that libhdf5 is a part of.
    // SAFETY: without a name, `dlopen` gives the program itself.
    let program = unsafe { libc::dlopen(std::ptr::null(), libc::RTLD_LAZY) };
    if !program.is_null() && !symbol(program as usize, "H5open\0").is_null() {
        return Ok((program as usize, base));
    }
    // SAFETY: as above, the name ends with a null byte.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Err(format!("{} is no libhdf5 whose functions can be found", name.to_string_lossy()))
}

/// Text for C; bytes behind a null byte are left out.
pub(crate) fn c_text(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}
