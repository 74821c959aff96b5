//! Files: open, flush, close; and the memory that they share.

use crate::fault::{Status, invalid, run};
use crate::memory::{give_handle, handle, take, text};
use pumice::{Context, File, Result};
use std::ffi::{c_char, c_int};

/// `pumice_file`.
#[derive(Debug)]
pub(crate) struct FileHandle(pub(crate) File);

/// The file of a handle.
///
/// # Safety
/// `file` is null or a file that was not given back.
pub(crate) unsafe fn file<'a>(file: *const FileHandle) -> Result<&'a File> {
    // SAFETY: the caller's promise.
    Ok(unsafe { &handle(file, "file")?.0 })
}

/// `pumice_open`.
///
/// # Safety
/// `path` is a text, `file` a place for a pointer.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_open(
    path: *const c_char,
    mode: c_int,
    file: *mut *mut FileHandle,
) -> Status {
    run(|| {
        if file.is_null() {
            return Err(invalid("there is no place for the file: NULL"));
        }
        // SAFETY: the caller's promise.
        let path = unsafe { text(path, "path")? };
        let opened = match mode {
            0 => File::open(path)?,
            1 => File::edit(path)?,
            2 => File::create(path)?,
            3 => File::create_new(path)?,
            4 => File::edit_or_create(path)?,
            other => return Err(invalid(&format!("{other} is no mode of opening"))),
        };
        // SAFETY: the caller's promise.
        unsafe { give_handle(file, FileHandle(opened), "file") }
    })
}

/// `pumice_flush`.
///
/// # Safety
/// `file` is null or a file that was not given back.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_flush(file: *mut FileHandle) -> Status {
    // SAFETY: the caller's promise.
    run(|| unsafe { crate::file::file(file) }?.flush())
}

/// `pumice_close`.
///
/// # Safety
/// `file` is null or a file that was not given back, and nobody uses it any more.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_close(file: *mut FileHandle) -> Status {
    // SAFETY: the caller's promise.
    run(|| match unsafe { take(file) } {
        Some(handle) => handle.0.close(),
        None => Ok(()),
    })
}

/// `pumice_set_cache_bytes`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn pumice_set_cache_bytes(bytes: u64) -> Status {
    run(|| Context::global().set_cache_bytes(bytes))
}
