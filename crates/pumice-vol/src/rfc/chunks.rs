//! Structured chunks as they are stored.

use super::{dataset, run};
use crate::abi::*;
use crate::fault::{Fault, Result};
use crate::space;
use crate::struct_chunk::{SPARSE, VARIABLE_LENGTH};
use pumice::{Dataset, Selection, StoredSection, StructuredChunkInfo};
use std::ffi::{c_int, c_void};

const MAX_SECTIONS: usize = 3;

/// `H5D_struct_chunk_info_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ChunkInfo {
    kind: c_int,
    num_sections: u8,
    filter_mask: [u16; MAX_SECTIONS],
    section_size: [usize; MAX_SECTIONS],
    section_orig_size: [usize; MAX_SECTIONS],
}

/// `H5D_struct_chunk_iter_op_t`.
type Operator =
    unsafe extern "C" fn(*const Hsize, *mut ChunkInfo, *mut u64, *mut Hsize, *mut c_void) -> c_int;

fn kind_of(dataset: &Dataset) -> c_int {
    if dataset.is_sparse() { SPARSE as c_int } else { VARIABLE_LENGTH as c_int }
}

fn info_of(dataset: &Dataset, sections: &[(u64, u64, u32)]) -> ChunkInfo {
    let mut info = ChunkInfo {
        kind: kind_of(dataset),
        num_sections: sections.len().min(MAX_SECTIONS) as u8,
        filter_mask: [0; MAX_SECTIONS],
        section_size: [0; MAX_SECTIONS],
        section_orig_size: [0; MAX_SECTIONS],
    };
    for (at, &(size, original, mask)) in sections.iter().take(MAX_SECTIONS).enumerate() {
        info.section_size[at] = size as usize;
        info.section_orig_size[at] = original as usize;
        info.filter_mask[at] = mask as u16;
    }
    info
}

fn of_stored(dataset: &Dataset, found: &StructuredChunkInfo) -> ChunkInfo {
    let sections = found.sections.iter();
    let sections: Vec<_> =
        sections.map(|one| (one.size, one.unfiltered_size, one.filter_mask)).collect();
    info_of(dataset, &sections)
}

/// The coordinates of a chunk's first element.
///
/// # Safety
/// There are as many as the dataset has dimensions.
unsafe fn coordinates(dataset: &Dataset, offset: *const Hsize) -> Result<Vec<u64>> {
    if offset.is_null() {
        return Err(Fault::Invalid("no offset of a chunk".into()));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(offset, dataset.shape().len()) }.to_vec())
}

/// `H5Dwrite_struct_chunk`.
///
/// # Safety
/// `chunk_info` describes the sections that `buf` leads to, `offset` has as many elements as the dataset dimensions.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn H5Dwrite_struct_chunk(
    dataset_id: Hid,
    _dxpl: Hid,
    chunk_info: *const ChunkInfo,
    offset: *const Hsize,
    buf: *const *const c_void,
) -> Herr {
    run(c"H5Dwrite_struct_chunk", |api| {
        let (handle, dataset) = dataset(api, dataset_id)?;
        handle.changing()?;
        if chunk_info.is_null() || buf.is_null() {
            return Err(Fault::Invalid("no chunk".into()));
        }
        // SAFETY: the caller's promise.
        unsafe {
            let info = *chunk_info;
            let section = |at: usize| StoredSection {
                bytes: match info.section_size[at] {
                    0 => Vec::new(),
                    size => std::slice::from_raw_parts((*buf.add(at)).cast::<u8>(), size).to_vec(),
                },
                unfiltered_size: info.section_orig_size[at] as u64,
                filter_mask: info.filter_mask[at].into(),
            };
            let count = usize::from(info.num_sections).min(MAX_SECTIONS);
            let sections: Vec<StoredSection> = (0..count).map(section).collect();
            Ok(dataset.write_structured_chunk(coordinates(&dataset, offset)?, &sections)?)
        }
    })
}

/// `H5Dread_struct_chunk`: a section that has a null pointer is only described.
///
/// # Safety
/// `buf` has a pointer for every section, to room for it or null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn H5Dread_struct_chunk(
    dataset_id: Hid,
    _dxpl: Hid,
    offset: *const Hsize,
    chunk_info: *mut ChunkInfo,
    buf: *const *mut c_void,
) -> Herr {
    run(c"H5Dread_struct_chunk", |api| {
        let (_, dataset) = dataset(api, dataset_id)?;
        // SAFETY: the caller's promise.
        unsafe {
            let offset = coordinates(&dataset, offset)?;
            let Some(found) = dataset.read_structured_chunk(&offset)? else {
                return Err(Fault::NotFound(format!("no chunk is stored at {offset:?}")));
            };
            for (at, section) in found.iter().enumerate() {
                let to = if buf.is_null() { std::ptr::null_mut() } else { *buf.add(at) };
                if !to.is_null() {
                    let bytes = &section.bytes;
                    std::ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast(), bytes.len());
                }
            }
            if !chunk_info.is_null() {
                let sections = found.iter();
                let sections: Vec<_> = sections
                    .map(|one| (one.bytes.len() as u64, one.unfiltered_size, one.filter_mask))
                    .collect();
                *chunk_info = info_of(&dataset, &sections);
            }
        }
        Ok(())
    })
}

/// Puts what is known of a chunk where the program wants it.
///
/// # Safety
/// Pointers are null or lead to places of their types.
unsafe fn put(
    dataset: &Dataset,
    found: Option<&StructuredChunkInfo>,
    (info, address, size): (*mut ChunkInfo, *mut u64, *mut Hsize),
) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(found) = found
            && !info.is_null()
        {
            *info = of_stored(dataset, found);
        }
        if !address.is_null() {
            *address = found.map_or(u64::MAX, |found| found.address);
        }
        if !size.is_null() {
            *size = found.map_or(0, |found| found.size);
        }
    }
}

/// `H5Dget_struct_chunk_info`.
///
/// # Safety
/// Pointers are null or lead to places of their types; `offset` has room for as many elements as the dataset dimensions.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn H5Dget_struct_chunk_info(
    dataset_id: Hid,
    file_space: Hid,
    chunk_idx: Hsize,
    offset: *mut Hsize,
    chunk_info: *mut ChunkInfo,
    addr: *mut u64,
    chunk_size: *mut Hsize,
) -> Herr {
    run(c"H5Dget_struct_chunk_info", |api| {
        let (_, dataset) = dataset(api, dataset_id)?;
        let selection = match file_space {
            SPACE_ALL => Selection::all(),
            space => space::selection(api, space)?,
        };
        let index = usize::try_from(chunk_idx).unwrap_or(usize::MAX);
        let found = dataset.structured_chunk_info(selection, index)?;
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(found) = &found
                && !offset.is_null()
            {
                std::ptr::copy_nonoverlapping(found.offset.as_ptr(), offset, found.offset.len());
            }
            put(&dataset, found.as_ref(), (chunk_info, addr, chunk_size));
        }
        Ok(())
    })
}

/// `H5Dget_struct_chunk_info_by_coord`.
///
/// # Safety
/// As [`H5Dget_struct_chunk_info`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn H5Dget_struct_chunk_info_by_coord(
    dataset_id: Hid,
    offset: *const Hsize,
    chunk_info: *mut ChunkInfo,
    addr: *mut u64,
    chunk_size: *mut Hsize,
) -> Herr {
    run(c"H5Dget_struct_chunk_info_by_coord", |api| {
        let (_, dataset) = dataset(api, dataset_id)?;
        // SAFETY: the caller's promise.
        unsafe {
            let found = dataset.structured_chunk_info_at(coordinates(&dataset, offset)?)?;
            put(&dataset, found.as_ref(), (chunk_info, addr, chunk_size));
        }
        Ok(())
    })
}

/// `H5Dstruct_chunk_iter`: zero when all chunks have been seen, else what the operator returned.
///
/// # Safety
/// The operator can be called with its data.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn H5Dstruct_chunk_iter(
    dataset_id: Hid,
    _dxpl: Hid,
    cb: Option<Operator>,
    op_data: *mut c_void,
) -> Herr {
    run(c"H5Dstruct_chunk_iter", |api| {
        let (_, dataset) = dataset(api, dataset_id)?;
        let cb = cb.ok_or_else(|| Fault::Invalid("no operator".into()))?;
        for found in dataset.structured_chunks()? {
            let found = found?;
            let mut info = of_stored(&dataset, &found);
            let (mut address, mut size) = (found.address, found.size);
            // SAFETY: the caller's promise.
            let answer =
                unsafe { cb(found.offset.as_ptr(), &mut info, &mut address, &mut size, op_data) };
            if answer != 0 {
                return Err(Fault::Stopped(answer));
            }
        }
        Ok(())
    })
}
