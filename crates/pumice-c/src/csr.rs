//! Compressed rows of matrices.

use crate::dataset::DatasetHandle;
use crate::fault::{Status, ask, invalid, run};
use crate::memory::{array, give_handle, take};
use crate::number::{Number, TypeNumber, Values, with_number};
use crate::window::{Window, selection};
use pumice::{Compressed, Duplicates, Lines, Points};
use std::ffi::c_void;

/// `pumice_csr`.
pub(crate) struct Csr {
    pointers: Vec<u64>,
    indices: Vec<u64>,
    values: Values,
}

/// `pumice_write_csr`.
///
/// # Safety
/// `dataset` is null or a dataset that was not given back; `pointers` has `row_count` + 1 numbers, `indices` and
/// `values` have as many elements as the last of them says.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_write_csr(
    dataset: *mut DatasetHandle,
    first_row: u64,
    row_count: usize,
    pointers: *const u64,
    indices: *const u64,
    number: TypeNumber,
    values: *const c_void,
) -> Status {
    run(|| {
        let number = Number::new(number)?;
        let ends = row_count.checked_add(1).ok_or_else(|| invalid("more rows than memory has"))?;
        // SAFETY: the caller's promise.
        let (dataset, pointers, indices, bytes) = unsafe {
            let dataset = crate::dataset::dataset(dataset)?;
            let pointers = array(pointers, ends, "pointers")?;
            let count = usize::try_from(pointers[row_count]).unwrap_or(usize::MAX);
            let bytes = array(values.cast::<u8>(), number.bytes(count)?, "values")?;
            (dataset, pointers, array(indices, count, "indices")?, bytes)
        };
        with_number!(number, T => {
            let values = crate::number::values::<T>(bytes);
            if first_row == 0 {
                return dataset.write_at(&Points::compressed_rows(pointers, indices)?, &values);
            }
            let (pointers, indices) = (pointers.to_vec(), indices.to_vec());
            let (lines, values) = (Lines::Rows, values.into_owned());
            let block = Compressed { lines, first: first_row, pointers, indices, values };
            dataset.write_compressed([block], Duplicates::Last)
        })
    })
}

/// `pumice_read_csr`.
///
/// # Safety
/// `dataset` is null or a dataset that was not given back, `window` is null or a window, `csr` is a place for a
/// pointer.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_read_csr(
    dataset: *mut DatasetHandle,
    window: *const Window,
    number: TypeNumber,
    csr: *mut *mut Csr,
) -> Status {
    run(|| {
        let number = Number::new(number)?;
        // SAFETY: the caller's promise.
        let (dataset, selection) =
            unsafe { (crate::dataset::dataset(dataset)?, selection(window)?) };
        let found = with_number!(number, T => {
            let found = match window.is_null() {
                true => dataset.read_compressed::<T>(Lines::Rows)?,
                false => dataset.read_compressed_of::<T>(selection, Lines::Rows)?,
            };
            let (pointers, indices) = (found.pointers, found.indices);
            Csr { pointers, indices, values: found.values.into() }
        });
        // SAFETY: the caller's promise.
        unsafe { give_handle(csr, found, "compressed rows") }
    })
}

/// `pumice_csr_rows`.
///
/// # Safety
/// `csr` is null or was not given back.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_csr_rows(csr: *const Csr) -> usize {
    // SAFETY: the caller's promise.
    ask(0, || unsafe { csr.as_ref() }.map_or(0, |csr| csr.pointers.len().saturating_sub(1)))
}

/// `pumice_csr_count`.
///
/// # Safety
/// `csr` is null or was not given back.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_csr_count(csr: *const Csr) -> usize {
    // SAFETY: the caller's promise.
    ask(0, || unsafe { csr.as_ref() }.map_or(0, |csr| csr.indices.len()))
}

/// `pumice_csr_pointers`.
///
/// # Safety
/// `csr` is null or was not given back.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_csr_pointers(csr: *const Csr) -> *const u64 {
    ask(std::ptr::null(), || {
        // SAFETY: the caller's promise.
        unsafe { csr.as_ref() }.map_or(std::ptr::null(), |csr| csr.pointers.as_ptr())
    })
}

/// `pumice_csr_indices`.
///
/// # Safety
/// `csr` is null or was not given back.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_csr_indices(csr: *const Csr) -> *const u64 {
    ask(std::ptr::null(), || {
        // SAFETY: the caller's promise.
        unsafe { csr.as_ref() }.map_or(std::ptr::null(), |csr| csr.indices.as_ptr())
    })
}

/// `pumice_csr_values`.
///
/// # Safety
/// `csr` is null or was not given back.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_csr_values(csr: *const Csr) -> *const c_void {
    ask(std::ptr::null(), || {
        // SAFETY: the caller's promise.
        unsafe { csr.as_ref() }.map_or(std::ptr::null(), |csr| csr.values.as_ptr())
    })
}

/// `pumice_csr_free`.
///
/// # Safety
/// `csr` is null or was not given back, and nobody uses it any more.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_csr_free(csr: *mut Csr) {
    // SAFETY: the caller's promise.
    ask((), || drop(unsafe { take(csr) }));
}
