//! Sparse cells: write, read, ask, erase.

use crate::dataset::DatasetHandle;
use crate::fault::{Status, ask, invalid, run};
use crate::memory::{array, give, give_handle, take};
use crate::number::{Number, TypeNumber, Values, with_number};
use crate::window::{Window, selection};
use pumice::{Dataset, Points, Result};
use std::ffi::c_void;

/// `pumice_cells`.
pub(crate) struct Cells {
    count: usize,
    coordinates: Vec<u64>,
    values: Option<Values>,
}

/// Cells of a dataset that a program lists.
///
/// # Safety
/// `coordinates` has a number for each cell and dimension, or is null.
unsafe fn points<'a>(
    dataset: &Dataset,
    count: usize,
    coordinates: *const u64,
) -> Result<Points<'a>> {
    let rank = dataset.shape().len();
    let numbers = count.checked_mul(rank).ok_or_else(|| invalid("more cells than memory has"))?;
    // SAFETY: the caller's promise.
    Ok(Points::list(rank, unsafe { array(coordinates, numbers, "coordinates")? })?)
}

/// `pumice_write_cells`.
///
/// # Safety
/// `dataset` is null or a dataset that was not given back; `coordinates` has a number for each cell and dimension,
/// `values` has `count` values of the type.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_write_cells(
    dataset: *mut DatasetHandle,
    count: usize,
    coordinates: *const u64,
    number: TypeNumber,
    values: *const c_void,
) -> Status {
    run(|| {
        let number = Number::new(number)?;
        // SAFETY: the caller's promise.
        let (dataset, points, bytes) = unsafe {
            let dataset = crate::dataset::dataset(dataset)?;
            let bytes = array(values.cast::<u8>(), number.bytes(count)?, "values")?;
            (dataset, points(dataset, count, coordinates)?, bytes)
        };
        with_number!(number, T => dataset.write_at(&points, &crate::number::values::<T>(bytes)))
    })
}

/// `pumice_read_defined`.
///
/// # Safety
/// `dataset` is null or a dataset that was not given back, `window` is null or a window, `cells` is a place for a
/// pointer.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_read_defined(
    dataset: *mut DatasetHandle,
    window: *const Window,
    number: TypeNumber,
    cells: *mut *mut Cells,
) -> Status {
    run(|| {
        let number = Number::new(number)?;
        // SAFETY: the caller's promise.
        let (dataset, selection) =
            unsafe { (crate::dataset::dataset(dataset)?, selection(window)?) };
        let found = with_number!(number, T => {
            let found = dataset.read_defined::<T>(selection)?;
            let (count, coordinates) = (found.values.len(), found.coordinates);
            Cells { count, coordinates, values: Some(found.values.into()) }
        });
        // SAFETY: the caller's promise.
        unsafe { give_handle(cells, found, "cells") }
    })
}

/// `pumice_defined`.
///
/// # Safety
/// As [`pumice_read_defined`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_defined(
    dataset: *mut DatasetHandle,
    window: *const Window,
    cells: *mut *mut Cells,
) -> Status {
    run(|| {
        // SAFETY: the caller's promise.
        let (dataset, selection) =
            unsafe { (crate::dataset::dataset(dataset)?, selection(window)?) };
        let rank = dataset.shape().len();
        let columns = dataset.defined_columns::<u64>(selection)?;
        let count = columns.first().map_or(0, Vec::len);
        let mut coordinates = Vec::new();
        let reserved = coordinates.try_reserve_exact(count.saturating_mul(rank));
        reserved.map_err(|_| pumice::Error::NoMemory(format!("no memory for {count} cells")))?;
        (0..count).for_each(|at| coordinates.extend(columns.iter().map(|column| column[at])));
        // SAFETY: the caller's promise.
        unsafe { give_handle(cells, Cells { count, coordinates, values: None }, "cells") }
    })
}

/// `pumice_count_defined`.
///
/// # Safety
/// `dataset` is null or a dataset that was not given back, `window` is null or a window, `count` is a place for a
/// number.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_count_defined(
    dataset: *mut DatasetHandle,
    window: *const Window,
    count: *mut u64,
) -> Status {
    run(|| {
        // SAFETY: the caller's promise.
        unsafe {
            let found = crate::dataset::dataset(dataset)?.count_defined(selection(window)?)?;
            give(count, found, "number of cells")
        }
    })
}

/// `pumice_erase`.
///
/// # Safety
/// `dataset` is null or a dataset that was not given back, `window` is null or a window.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_erase(
    dataset: *mut DatasetHandle,
    window: *const Window,
) -> Status {
    // SAFETY: the caller's promise.
    run(|| unsafe { crate::dataset::dataset(dataset)?.erase(selection(window)?) })
}

/// `pumice_erase_cells`.
///
/// # Safety
/// `dataset` is null or a dataset that was not given back, `coordinates` has a number for each cell and dimension.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_erase_cells(
    dataset: *mut DatasetHandle,
    count: usize,
    coordinates: *const u64,
) -> Status {
    run(|| {
        // SAFETY: the caller's promise.
        unsafe {
            let dataset = crate::dataset::dataset(dataset)?;
            dataset.erase_at(&points(dataset, count, coordinates)?)
        }
    })
}

/// `pumice_cells_count`.
///
/// # Safety
/// `cells` is null or was not given back.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_cells_count(cells: *const Cells) -> usize {
    // SAFETY: the caller's promise.
    ask(0, || unsafe { cells.as_ref() }.map_or(0, |cells| cells.count))
}

/// `pumice_cells_coordinates`.
///
/// # Safety
/// `cells` is null or was not given back.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_cells_coordinates(cells: *const Cells) -> *const u64 {
    ask(std::ptr::null(), || {
        // SAFETY: the caller's promise.
        unsafe { cells.as_ref() }.map_or(std::ptr::null(), |cells| cells.coordinates.as_ptr())
    })
}

/// `pumice_cells_values`.
///
/// # Safety
/// `cells` is null or was not given back.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_cells_values(cells: *const Cells) -> *const c_void {
    ask(std::ptr::null(), || {
        // SAFETY: the caller's promise.
        let values = unsafe { cells.as_ref() }.and_then(|cells| cells.values.as_ref());
        values.map_or(std::ptr::null(), Values::as_ptr)
    })
}

/// `pumice_cells_free`.
///
/// # Safety
/// `cells` is null or was not given back, and nobody uses it any more.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_cells_free(cells: *mut Cells) {
    // SAFETY: the caller's promise.
    ask((), || drop(unsafe { take(cells) }));
}
