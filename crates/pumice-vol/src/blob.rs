//! Blobs, which are objects of the global heap, and tokens, which are addresses.

use crate::abi::*;
use crate::fault::{Fault, answer, done};
use crate::handle::{Handle, address, text, token};
use crate::library::c_text;
use std::ffi::{c_char, c_int, c_void};

/// Bytes of a blob's identifier: those of an id in the global heap, and zeros.
const BLOB_ID: usize = 16;

/// `put`.
///
/// # Safety
/// All arguments are as libhdf5 gives them. This holds for every callback of this crate.
pub(crate) unsafe extern "C" fn put(
    object: *mut c_void,
    bytes: *const c_void,
    size: usize,
    blob: *mut c_void,
    _context: *mut c_void,
) -> Herr {
    // SAFETY: as above.
    let handle = unsafe { Handle::at(object) };
    done(handle.api(), c"blob put", || {
        // SAFETY: as above.
        unsafe {
            let bytes = match size {
                0 => &[],
                size => std::slice::from_raw_parts(bytes.cast::<u8>(), size),
            };
            let id = handle.changing()?.global_heap().insert(bytes)?;
            let to = std::slice::from_raw_parts_mut(blob.cast::<u8>(), BLOB_ID);
            to.fill(0);
            let count = id.len().min(BLOB_ID);
            to[..count].copy_from_slice(&id[..count]);
        }
        Ok(())
    })
}

/// `get`.
///
/// # Safety
/// As [`put`].
pub(crate) unsafe extern "C" fn get(
    object: *mut c_void,
    blob: *const c_void,
    bytes: *mut c_void,
    size: usize,
    _context: *mut c_void,
) -> Herr {
    // SAFETY: as for `put`.
    let handle = unsafe { Handle::at(object) };
    done(handle.api(), c"blob get", || {
        let offset = usize::from(handle.engine().superblock().sizes.offset);
        // SAFETY: as for `put`.
        unsafe {
            let id = std::slice::from_raw_parts(blob.cast::<u8>(), BLOB_ID);
            let found = handle.engine().global_heap().object(&id[..(offset + 4).min(BLOB_ID)])?;
            if found.len() < size {
                return Err(Fault::Invalid("a blob that is shorter than was asked for".into()));
            }
            std::ptr::copy_nonoverlapping(found.as_ptr(), bytes.cast(), size);
        }
        Ok(())
    })
}

/// `specific`: delete, is it null, make it null.
///
/// # Safety
/// As [`put`].
pub(crate) unsafe extern "C" fn specific(
    object: *mut c_void,
    blob: *mut c_void,
    args: *mut BlobSpecificArgs,
) -> Herr {
    // SAFETY: as for `put`.
    let (handle, args) = unsafe { (Handle::at(object), &*args) };
    done(handle.api(), c"blob specific", || {
        // SAFETY: as for `put`.
        unsafe {
            let id = std::slice::from_raw_parts_mut(blob.cast::<u8>(), BLOB_ID);
            match args.op {
                // Nobody counts who refers to an object of the global heap: it stays.
                0 => {}
                1 => *args.args.is_null = id.iter().all(|&byte| byte == 0),
                _ => id.fill(0),
            }
        }
        Ok(())
    })
}

/// `cmp`.
///
/// # Safety
/// As [`put`].
pub(crate) unsafe extern "C" fn compare(
    _object: *mut c_void,
    one: *const Token,
    other: *const Token,
    order: *mut c_int,
) -> Herr {
    // SAFETY: as for `put`; tokens may be null.
    unsafe {
        *order = match (one.is_null(), other.is_null()) {
            (false, false) => (*one).0.cmp(&(*other).0) as c_int,
            (one, other) => c_int::from(other) - c_int::from(one),
        };
    }
    OK
}

/// `to_str`: the address as a number.
///
/// # Safety
/// As [`put`].
pub(crate) unsafe extern "C" fn to_text(
    object: *mut c_void,
    _kind: c_int,
    given: *const Token,
    to: *mut *mut c_char,
) -> Herr {
    // SAFETY: as for `put`.
    let handle = unsafe { Handle::at(object) };
    done(handle.api(), c"token to text", || {
        // SAFETY: as for `put`; libhdf5 frees the text as its own memory.
        unsafe {
            let text = c_text(&address(&*given).to_string());
            let bytes = text.as_bytes_with_nul();
            let block = (handle.api().H5allocate_memory)(bytes.len(), false).cast::<u8>();
            if block.is_null() {
                return Err(Fault::Library("H5allocate_memory"));
            }
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), block, bytes.len());
            *to = block.cast();
        }
        Ok(())
    })
}

/// `from_str`.
///
/// # Safety
/// As [`put`].
pub(crate) unsafe extern "C" fn from_text(
    object: *mut c_void,
    _kind: c_int,
    given: *const c_char,
    to: *mut Token,
) -> Herr {
    // SAFETY: as for `put`.
    let handle = unsafe { Handle::at(object) };
    answer(handle.api(), c"token from text", FAIL, || {
        // SAFETY: as for `put`.
        unsafe {
            let address = text(given)?.parse::<u64>();
            let address = address.map_err(|error| Fault::Invalid(error.to_string()))?;
            *to = token(address);
        }
        Ok(OK)
    })
}
