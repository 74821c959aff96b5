//! The declarations of libhdf5's H5PLextern.h and H5Zdevelop.h that filters need.

use std::ffi::{c_char, c_int, c_uint, c_void};

pub(super) const TYPE_FUNCTION: &[u8] = b"H5PLget_plugin_type\0";
pub(super) const INFO_FUNCTION: &[u8] = b"H5PLget_plugin_info\0";
/// `H5PL_TYPE_FILTER`.
pub(super) const FILTER_PLUGIN: c_int = 0;
/// `H5Z_CLASS_T_VERS`.
pub(super) const CLASS_VERSION: c_int = 1;
/// `H5Z_FLAG_REVERSE`.
pub(super) const REVERSE: c_uint = 0x0100;

pub(super) type TypeFunction = unsafe extern "C" fn() -> c_int;
pub(super) type InfoFunction = unsafe extern "C" fn() -> *const c_void;
/// `H5Z_func_t`: flags, parameters, valid bytes, size of the buffer, the buffer; gives valid bytes.
pub(super) type FilterFunction = unsafe extern "C" fn(
    c_uint,
    usize,
    *const c_uint,
    usize,
    *mut usize,
    *mut *mut c_void,
) -> usize;

/// `H5Z_class2_t`.
#[repr(C)]
pub(super) struct Class {
    pub(super) version: c_int,
    pub(super) id: c_int,
    pub(super) encoder_present: c_uint,
    pub(super) decoder_present: c_uint,
    pub(super) name: *const c_char,
    pub(super) can_apply: *const c_void,
    pub(super) set_local: *const c_void,
    pub(super) filter: Option<FilterFunction>,
}

unsafe extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
}

/// Memory from malloc, as plugins expect it. Invariant: `start` is null or was given by malloc (by
/// us or by a plugin) and not freed since.
pub(super) struct Buffer {
    start: *mut c_void,
    size: usize,
}

impl Buffer {
    pub(super) fn copy_of(bytes: &[u8]) -> Option<Self> {
        // malloc of no bytes may give nothing.
        let size = bytes.len().max(1);
        // SAFETY: malloc takes any size.
        let start = unsafe { malloc(size) };
        if start.is_null() {
            return None;
        }
        // SAFETY: `start` has room for `bytes`, which it cannot overlap.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), start.cast(), bytes.len()) };
        Some(Self { start, size })
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// The place of the buffer's address, where a plugin may put another one.
    pub(super) fn place(&mut self) -> *mut *mut c_void {
        &mut self.start
    }

    /// The first `len` bytes.
    ///
    /// # Safety
    /// The present buffer must have `len` bytes, all of them initialised.
    pub(super) unsafe fn bytes(&self, len: usize) -> &[u8] {
        if self.start.is_null() || len == 0 {
            return &[];
        }
        // SAFETY: the caller's promise, and the buffer is ours until it is dropped.
        unsafe { std::slice::from_raw_parts(self.start.cast(), len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the invariant; free takes null.
        unsafe { free(self.start) };
    }
}
