//! The functions of the sparse RFC, which C programs call themselves (`include/pumice_hdf5.h`).
//!
//! They work on identifiers of the libhdf5 that the program is linked with, or else of the first that has loaded the
//! connector. Errors are on that library's error stack.

mod cells;
mod chunks;
mod filters;

use crate::abi::*;
use crate::creation;
use crate::fault::{Fault, Result, answer, done};
use crate::handle::Handle;
use crate::introspect::object_of;
use crate::library::Api;
use crate::slots;
use crate::struct_chunk::{SPARSE, StructChunk, set_chunk};
use pumice::Dataset;
use std::ffi::{c_int, c_uint};

/// The library that a program uses, if one is loaded.
pub(crate) fn library() -> Option<&'static Api> {
    slots::linked().or_else(slots::any)
}

/// The dataset behind an identifier.
pub(crate) fn dataset(api: &Api, id: Hid) -> Result<(&'static Handle, Dataset)> {
    let handle = Handle::find(object_of(api, id));
    let handle = handle.ok_or_else(|| {
        Fault::Invalid("not a dataset that the Pumice connector has opened".into())
    })?;
    let state = handle.dataset()?;
    Ok((handle, Dataset::of_engine(handle.engine().clone(), state.clone())))
}

/// Carries out a function that says only whether it succeeded.
pub(crate) fn run(
    name: &'static std::ffi::CStr,
    body: impl FnOnce(&'static Api) -> Result<()>,
) -> Herr {
    match library() {
        Some(api) => done(api, name, || body(api)),
        None => FAIL,
    }
}

/// `H5Pset_struct_chunk`.
///
/// # Safety
/// `dim` has `ndims` elements.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn H5Pset_struct_chunk(
    list: Hid,
    ndims: c_int,
    dim: *const Hsize,
    flag: c_uint,
) -> Herr {
    run(c"H5Pset_struct_chunk", |api| {
        if ndims < 1 || dim.is_null() {
            return Err(Fault::Invalid("chunks without dimensions".into()));
        }
        // SAFETY: the caller's promise.
        let dims = unsafe { std::slice::from_raw_parts(dim, ndims as usize) };
        let property = StructChunk::new(flag, dims)?;
        set_chunk(api, list, dims)?;
        property.put(api, list)
    })
}

/// `H5Pset_sparse_chunk`.
///
/// # Safety
/// `dim` has `ndims` elements.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn H5Pset_sparse_chunk(
    list: Hid,
    ndims: c_int,
    dim: *const Hsize,
) -> Herr {
    // SAFETY: the caller's promise.
    unsafe { H5Pset_struct_chunk(list, ndims, dim, SPARSE) }
}

/// `H5Pget_struct_chunk`: the rank, and as many sides as there is room for.
///
/// # Safety
/// `dim` has room for `max_ndims` elements or is null, `flag` leads to a number or is null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn H5Pget_struct_chunk(
    list: Hid,
    max_ndims: c_int,
    dim: *mut Hsize,
    flag: *mut c_uint,
) -> c_int {
    let Some(api) = library() else { return FAIL };
    answer(api, c"H5Pget_struct_chunk", FAIL, || {
        let found = StructChunk::find(api, list)?;
        let found = found
            .ok_or_else(|| Fault::Invalid("the list does not ask for structured chunks".into()))?;
        let dims = found.dims();
        // SAFETY: the caller's promise.
        unsafe {
            if !dim.is_null() {
                let count = dims.len().min(max_ndims.max(0) as usize);
                std::ptr::copy_nonoverlapping(dims.as_ptr(), dim, count);
            }
            if !flag.is_null() {
                *flag = found.kind;
            }
        }
        Ok(dims.len() as c_int)
    })
}

/// The property of a list, with its ordinary filters among those of the sections.
fn property(api: &Api, list: Hid) -> Result<Box<StructChunk>> {
    let found = StructChunk::find(api, list)?;
    let mut found = found.ok_or_else(|| {
        let what = "filters of sections need structured chunks: call H5Pset_struct_chunk first";
        Fault::Invalid(what.into())
    })?;
    found.take_in(&creation::filters(api, list)?)?;
    Ok(found)
}

/// How often the connector was called by libhdf5, in this process.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn pumice_vol_calls() -> u64 {
    crate::handle::CALLS.load(std::sync::atomic::Ordering::Relaxed)
}
