//! Datasets: make, open, read, write, resize.

use crate::fault::{Status, ask, run};
use crate::file::FileHandle;
use crate::memory::{array, give_handle, handle, place, take, text};
use crate::number::{Number, OTHER, TypeNumber};
use crate::window::{Window, selection};
use pumice::{Dataset, DatasetBuilder, Error, Result, Transfer, UNLIMITED};
use std::ffi::{c_char, c_void};

/// `pumice_dataset`.
#[derive(Debug)]
pub(crate) struct DatasetHandle(pub(crate) Dataset);

/// The dataset of a handle.
///
/// # Safety
/// `dataset` is null or a dataset that was not given back.
pub(crate) unsafe fn dataset<'a>(dataset: *const DatasetHandle) -> Result<&'a Dataset> {
    // SAFETY: the caller's promise.
    Ok(unsafe { &handle(dataset, "dataset")?.0 })
}

/// `pumice_options`.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Options {
    sparse: bool,
    shuffle: bool,
    checksum: bool,
    deflate: u32,
    plain: bool,
    chunk: *const u64,
    max_shape: *const u64,
    fill: *const c_void,
}

impl Options {
    /// Asks a builder for what the options say.
    ///
    /// # Safety
    /// The lists have `rank` numbers or are null, the fill value is of type `number` or null.
    unsafe fn apply(
        &self,
        mut builder: DatasetBuilder,
        rank: usize,
        number: Number,
    ) -> Result<DatasetBuilder> {
        if self.sparse {
            builder = builder.sparse();
        }
        if self.plain {
            builder = builder.no_filters();
        }
        if self.shuffle {
            builder = builder.shuffle();
        }
        if self.deflate > 0 {
            builder = builder.deflate(self.deflate);
        }
        if self.checksum {
            builder = builder.fletcher32();
        }
        // SAFETY: the caller's promise.
        unsafe {
            if !self.chunk.is_null() {
                builder = builder.chunk(array(self.chunk, rank, "the chunk's shape")?);
            }
            if !self.max_shape.is_null() {
                let max = array(self.max_shape, rank, "the largest shape")?;
                let limit = |&side: &u64| (side != UNLIMITED).then_some(side);
                builder = builder.max_shape(max.iter().map(limit));
            }
            if !self.fill.is_null() {
                let value = array(self.fill.cast::<u8>(), number.bytes(1)?, "the fill value")?;
                builder = builder.fill_bytes(value.to_vec());
            }
        }
        Ok(builder)
    }
}

/// `pumice_dataset_create`.
///
/// # Safety
/// `file` is null or a file that was not given back, `path` a text; `shape` has `rank` numbers; `options` is null or
/// leads to options as the header describes them; `dataset` is a place for a pointer.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_dataset_create(
    file: *mut FileHandle,
    path: *const c_char,
    number: TypeNumber,
    rank: usize,
    shape: *const u64,
    options: *const Options,
    dataset: *mut *mut DatasetHandle,
) -> Status {
    run(|| {
        let number = Number::new(number)?;
        // SAFETY: the caller's promise.
        unsafe {
            let (file, path) = (crate::file::file(file)?, text(path, "path")?);
            let builder = file.new_dataset_of(number.datatype());
            let mut builder = builder.shape(array(shape, rank, "the shape")?);
            if let Some(options) = options.as_ref() {
                builder = options.apply(builder, rank, number)?;
            }
            give_handle(dataset, DatasetHandle(builder.create(path)?), "dataset")
        }
    })
}

/// `pumice_dataset_open`.
///
/// # Safety
/// `file` is null or a file that was not given back, `path` a text, `dataset` a place for a pointer.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_dataset_open(
    file: *mut FileHandle,
    path: *const c_char,
    dataset: *mut *mut DatasetHandle,
) -> Status {
    run(|| {
        // SAFETY: the caller's promise.
        unsafe {
            let found = crate::file::file(file)?.dataset(text(path, "path")?)?;
            give_handle(dataset, DatasetHandle(found), "dataset")
        }
    })
}

/// `pumice_dataset_close`.
///
/// # Safety
/// `dataset` is null or a dataset that was not given back, and nobody uses it any more.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_dataset_close(dataset: *mut DatasetHandle) {
    // SAFETY: the caller's promise.
    ask((), || drop(unsafe { take(dataset) }));
}

/// `pumice_dataset_rank`.
///
/// # Safety
/// `dataset` is null or a dataset that was not given back.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_dataset_rank(dataset: *const DatasetHandle) -> usize {
    // SAFETY: the caller's promise.
    ask(0, || unsafe { dataset.as_ref() }.map_or(0, |dataset| dataset.0.shape().len()))
}

/// `pumice_dataset_shape`.
///
/// # Safety
/// `dataset` is null or a dataset that was not given back, `shape` has room for `rank` numbers.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_dataset_shape(
    dataset: *const DatasetHandle,
    rank: usize,
    shape: *mut u64,
) -> Status {
    run(|| {
        // SAFETY: the caller's promise.
        let found = unsafe { self::dataset(dataset)? }.shape();
        if found.len() != rank {
            let what = format!("room for a rank of {rank}, where the shape is {found:?}");
            return Err(Error::RankMismatch(what));
        }
        let bytes: &[u8] = bytemuck::cast_slice(&found);
        // SAFETY: the caller's promise.
        unsafe { place(shape.cast(), bytes.len(), "the shape")? }.copy_from_slice(bytes);
        Ok(())
    })
}

/// `pumice_dataset_type`.
///
/// # Safety
/// `dataset` is null or a dataset that was not given back.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_dataset_type(dataset: *const DatasetHandle) -> TypeNumber {
    ask(OTHER, || {
        // SAFETY: the caller's promise.
        unsafe { dataset.as_ref() }.map_or(OTHER, |dataset| Number::of(dataset.0.datatype()))
    })
}

/// `pumice_dataset_is_sparse`.
///
/// # Safety
/// `dataset` is null or a dataset that was not given back.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_dataset_is_sparse(dataset: *const DatasetHandle) -> bool {
    // SAFETY: the caller's promise.
    ask(false, || unsafe { dataset.as_ref() }.is_some_and(|dataset| dataset.0.is_sparse()))
}

/// `pumice_dataset_resize`.
///
/// # Safety
/// `dataset` is null or a dataset that was not given back, `shape` has `rank` numbers.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_dataset_resize(
    dataset: *mut DatasetHandle,
    rank: usize,
    shape: *const u64,
) -> Status {
    // SAFETY: the caller's promise.
    run(|| unsafe { self::dataset(dataset)?.resize(array(shape, rank, "the shape")?) })
}

/// `pumice_read`.
///
/// # Safety
/// `dataset` is null or a dataset that was not given back, `window` is null or a window; `values` has room for `count`
/// values of the type, which nobody else uses meanwhile.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_read(
    dataset: *mut DatasetHandle,
    window: *const Window,
    number: TypeNumber,
    count: usize,
    values: *mut c_void,
) -> Status {
    run(|| {
        let number = Number::new(number)?;
        // SAFETY: the caller's promise.
        unsafe {
            let (dataset, selection) = (self::dataset(dataset)?, selection(window)?);
            let values = place(values.cast(), number.bytes(count)?, "values")?;
            dataset.read_as(selection, &number.datatype(), values, &Transfer::default())
        }
    })
}

/// `pumice_write`.
///
/// # Safety
/// `dataset` is null or a dataset that was not given back, `window` is null or a window; `values` has `count` values of
/// the type.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_write(
    dataset: *mut DatasetHandle,
    window: *const Window,
    number: TypeNumber,
    count: usize,
    values: *const c_void,
) -> Status {
    run(|| {
        let number = Number::new(number)?;
        // SAFETY: the caller's promise.
        unsafe {
            let (dataset, selection) = (self::dataset(dataset)?, selection(window)?);
            let values = array(values.cast::<u8>(), number.bytes(count)?, "values")?;
            dataset.write_as(selection, &number.datatype(), values, &Transfer::default())
        }
    })
}
