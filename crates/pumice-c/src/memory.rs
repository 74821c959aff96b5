//! Pointers of the program: texts, arrays, handles and places for results.
//!
//! Null pointers and misaligned ones are errors. That a pointer leads to what the header says is the caller's promise.

use crate::fault::invalid;
use pumice::Result;
use std::ffi::{CStr, c_char};

/// A text.
///
/// # Safety
/// `text` is null or ends with a null byte, and stays as it is for `'a`.
pub(crate) unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str> {
    if text.is_null() {
        return Err(invalid(&format!("the {what} is NULL")));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| invalid(&format!("the {what} is not UTF-8")))
}

fn check<T>(array: *const T, count: usize, what: &str) -> Result<()> {
    if array.is_null() {
        return Err(invalid(&format!("{what}: NULL, where {count} are needed")));
    }
    if !array.is_aligned() {
        return Err(invalid(&format!("{what}: not aligned to {} bytes", align_of::<T>())));
    }
    // A slice cannot be larger.
    match count.checked_mul(size_of::<T>()).is_some_and(|bytes| bytes <= isize::MAX as usize) {
        true => Ok(()),
        false => Err(invalid(&format!("{what}: {count} are more than memory has"))),
    }
}

/// An array of the program. Null is an array of none.
///
/// # Safety
/// `array` leads to `count` elements, or is null; they stay as they are for `'a`.
pub(crate) unsafe fn array<'a, T>(array: *const T, count: usize, what: &str) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    check(array, count, what)?;
    // SAFETY: not null, aligned, not too large; the rest is the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(array, count) })
}

/// Memory of the program for bytes that are to be written.
///
/// # Safety
/// `place` leads to `count` bytes that nobody else uses for `'a`, or is null.
pub(crate) unsafe fn place<'a>(place: *mut u8, count: usize, what: &str) -> Result<&'a mut [u8]> {
    if count == 0 {
        return Ok(&mut []);
    }
    check(place.cast_const(), count, what)?;
    // SAFETY: not null, not too large. What it holds was written elsewhere, if at all, so that any bytes do.
    Ok(unsafe { std::slice::from_raw_parts_mut(place, count) })
}

/// What a handle stands for.
///
/// # Safety
/// `handle` is null or a handle of this kind that was not given back.
pub(crate) unsafe fn handle<'a, T>(handle: *const T, what: &str) -> Result<&'a T> {
    // SAFETY: the caller's promise.
    unsafe { handle.as_ref() }.ok_or_else(|| invalid(&format!("the {what} is NULL")))
}

/// Puts a result where the program wants it.
///
/// # Safety
/// `to` is null or may be written to.
pub(crate) unsafe fn give<T>(to: *mut T, value: T, what: &str) -> Result<()> {
    if to.is_null() {
        return Err(invalid(&format!("there is no place for the {what}: NULL")));
    }
    // SAFETY: the caller's promise.
    unsafe { to.write(value) };
    Ok(())
}

/// Makes a new handle and puts it where the program wants it.
///
/// # Safety
/// As [`give`].
pub(crate) unsafe fn give_handle<T>(to: *mut *mut T, value: T, what: &str) -> Result<()> {
    if to.is_null() {
        return Err(invalid(&format!("there is no place for the {what}: NULL")));
    }
    // SAFETY: the caller's promise.
    unsafe { to.write(Box::into_raw(Box::new(value))) };
    Ok(())
}

/// Takes a handle back.
///
/// # Safety
/// `handle` is null or a handle of this kind that was not given back, and nobody uses it any more.
pub(crate) unsafe fn take<T>(handle: *mut T) -> Option<Box<T>> {
    // SAFETY: handles are boxes (`give_handle`); the rest is the caller's promise.
    (!handle.is_null()).then(|| unsafe { Box::from_raw(handle) })
}
