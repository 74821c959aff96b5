//! Filters of the sections of structured chunks.

use super::{library, property, run};
use crate::abi::*;
use crate::fault::{Fault, Result, answer};
use crate::handle::put_text;
use crate::struct_chunk::section;
use pumice::FilterSpec;
use std::ffi::{c_char, c_int, c_uint, c_void};

/// `H5Z_FLAG_OPTIONAL`.
const OPTIONAL: u64 = 1;

/// A filter as a program describes it: numbers of 32 bits one after another.
///
/// # Safety
/// The buffer has as many bytes as is said.
unsafe fn described(
    filter: c_int,
    flags: u64,
    buf_size: usize,
    buf: *const c_void,
) -> Result<FilterSpec> {
    let id = u16::try_from(filter).map_err(|_| Fault::Invalid(format!("the filter {filter}")))?;
    if !buf_size.is_multiple_of(4) {
        let what = format!("{buf_size} bytes of auxiliary data: they must be numbers of 4 bytes");
        return Err(Fault::Invalid(what));
    }
    let parameters = match buf_size {
        0 => Vec::new(),
        // SAFETY: the caller's promise.
        size => unsafe { std::slice::from_raw_parts(buf.cast::<u8>(), size) }
            .chunks_exact(4)
            .map(|bytes| u32::from_ne_bytes(bytes.try_into().unwrap_or_default()))
            .collect(),
    };
    let optional = flags & OPTIONAL != 0;
    Ok(FilterSpec { id, optional, name: None, config: None, parameters })
}

/// `H5Pset_filter2`.
///
/// # Safety
/// `buf` has `buf_size` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn H5Pset_filter2(
    list: Hid,
    section_number: u64,
    filter: c_int,
    flags: u64,
    buf_size: usize,
    buf: *const c_void,
) -> Herr {
    run(c"H5Pset_filter2", |api| {
        let mut property = property(api, list)?;
        let at = section(section_number)?;
        let mut filters = property.own(at);
        // SAFETY: the caller's promise.
        filters.push(unsafe { described(filter, flags, buf_size, buf)? });
        property.set_own(at, &filters)?;
        property.put(api, list)
    })
}

/// `H5Pget_nfilter2`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn H5Pget_nfilter2(list: Hid, section_number: u64) -> c_int {
    let Some(api) = library() else { return FAIL };
    answer(api, c"H5Pget_nfilter2", FAIL, || {
        Ok(property(api, list)?.own(section(section_number)?).len() as c_int)
    })
}

/// `H5Pget_nfilters2`, as the RFC also spells it.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn H5Pget_nfilters2(list: Hid, section_number: u64) -> c_int {
    H5Pget_nfilter2(list, section_number)
}

/// Where what is known of a filter goes.
struct Answer {
    flags: *mut u64,
    buf_size: *mut usize,
    buf: *mut c_void,
    namelen: usize,
    name: *mut c_char,
    config: *mut c_uint,
}

impl Answer {
    /// # Safety
    /// All pointers are null or lead to places of the sizes that are said.
    unsafe fn fill(&self, filter: &FilterSpec) -> c_int {
        // SAFETY: the caller's promise.
        unsafe {
            if !self.flags.is_null() {
                *self.flags = if filter.optional { OPTIONAL } else { 0 };
            }
            if !self.buf_size.is_null() {
                let needed = filter.parameters.len() * 4;
                if !self.buf.is_null() {
                    let count = needed.min(*self.buf_size);
                    let from = filter.parameters.as_ptr().cast::<u8>();
                    std::ptr::copy_nonoverlapping(from, self.buf.cast::<u8>(), count);
                }
                *self.buf_size = needed;
            }
            put_text(filter.name.as_deref().unwrap_or(""), self.name, self.namelen);
            if !self.config.is_null() {
                // Encoding and decoding.
                *self.config = 3;
            }
        }
        c_int::from(filter.id)
    }
}

/// `H5Pget_filter3`.
///
/// # Safety
/// Pointers are null or lead to places of the sizes that are said.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn H5Pget_filter3(
    list: Hid,
    section_number: u64,
    index: c_uint,
    flags: *mut u64,
    buf_size: *mut usize,
    buf: *mut c_void,
    namelen: usize,
    name: *mut c_char,
    filter_config: *mut c_uint,
) -> c_int {
    let Some(api) = library() else { return FAIL };
    answer(api, c"H5Pget_filter3", FAIL, || {
        let filters = property(api, list)?.own(section(section_number)?);
        let found = filters.get(index as usize);
        let found =
            found.ok_or_else(|| Fault::Invalid(format!("the section has no filter {index}")))?;
        let to = Answer { flags, buf_size, buf, namelen, name, config: filter_config };
        // SAFETY: the caller's promise.
        Ok(unsafe { to.fill(found) })
    })
}

/// `H5Pget_filter_by_id3`.
///
/// # Safety
/// As [`H5Pget_filter3`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn H5Pget_filter_by_id3(
    list: Hid,
    section_number: u64,
    filter: c_int,
    flags: *mut u64,
    buf_size: *mut usize,
    buf: *mut c_void,
    namelen: usize,
    name: *mut c_char,
    filter_config: *mut c_uint,
) -> c_int {
    let Some(api) = library() else { return FAIL };
    answer(api, c"H5Pget_filter_by_id3", FAIL, || {
        let filters = property(api, list)?.own(section(section_number)?);
        let found = filters.iter().find(|one| c_int::from(one.id) == filter);
        let found =
            found.ok_or_else(|| Fault::NotFound(format!("the section has no filter {filter}")))?;
        let to = Answer { flags, buf_size, buf, namelen, name, config: filter_config };
        // SAFETY: the caller's promise.
        Ok(unsafe { to.fill(found) })
    })
}

/// `H5Premove_filter2`; the filter 0 (`H5Z_FILTER_ALL`) means all.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn H5Premove_filter2(list: Hid, section_number: u64, filter: c_int) -> Herr {
    run(c"H5Premove_filter2", |api| {
        let mut property = property(api, list)?;
        let at = section(section_number)?;
        let mut filters = property.own(at);
        let before = filters.len();
        filters.retain(|one| filter != 0 && c_int::from(one.id) != filter);
        if filters.len() == before && filter != 0 {
            return Err(Fault::NotFound(format!("the section has no filter {filter}")));
        }
        property.set_own(at, &filters)?;
        property.put(api, list)
    })
}

/// `H5Pmodify_filter2`.
///
/// # Safety
/// `buf` has `buf_size` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn H5Pmodify_filter2(
    list: Hid,
    section_number: u64,
    filter: c_int,
    flags: u64,
    buf_size: usize,
    buf: *const c_void,
) -> Herr {
    run(c"H5Pmodify_filter2", |api| {
        let mut property = property(api, list)?;
        let at = section(section_number)?;
        let mut filters = property.own(at);
        // SAFETY: the caller's promise.
        let new = unsafe { described(filter, flags, buf_size, buf)? };
        match filters.iter_mut().find(|one| one.id == new.id) {
            Some(found) => *found = new,
            None => return Err(Fault::NotFound(format!("the section has no filter {filter}"))),
        }
        property.set_own(at, &filters)?;
        property.put(api, list)
    })
}
