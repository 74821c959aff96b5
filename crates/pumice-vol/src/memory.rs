//! Elements in a program's memory, where data of variable length are behind pointers.
//!
//! The engine has elements with what they refer to in one heap. Here that is taken apart into memory of the C library's
//! allocator, as libhdf5 does, so that `H5Treclaim` frees it; and put together again from a program's pointers. Types
//! without pointers never come here: the engine reads and writes the program's memory itself.

use crate::fault::{Fault, Result};
use pumice_space::{Extent, Selection};
use pumice_types::heaped::{put_reference, reference_of};
use pumice_types::{Datatype, Heaped, Member, VarLen, VarLenKind};
use std::ffi::{c_char, c_void};

/// Bytes of a reference into a heap.
const REFERENCE: u32 = 16;

/// The type of the same elements with references into a heap in place of pointers.
pub(crate) fn heaped_type(memory: &Datatype) -> Datatype {
    match memory {
        fixed if !fixed.has_varlen() => fixed.clone(),
        Datatype::VarLen(varlen) => Datatype::VarLen(VarLen {
            size: REFERENCE,
            kind: varlen.kind,
            base: Box::new(heaped_type(&varlen.base)),
        }),
        Datatype::Array(array) => Datatype::array(heaped_type(&array.base), array.dims.clone()),
        Datatype::Compound(compound) => {
            let members = compound.members.iter();
            Datatype::compound(
                members.map(|member| (member.name.clone(), heaped_type(&member.datatype))),
            )
        }
        other => other.clone(),
    }
}

/// Calls `visit` with every run of selected places: which elements of the memory, and which of the values.
pub(crate) fn each_place(
    places: Option<&(Selection, Vec<u64>)>,
    count: usize,
    mut visit: impl FnMut(usize, usize) -> Result<()>,
) -> Result<()> {
    let Some((places, shape)) = places else {
        return (0..count).try_for_each(|at| visit(at, at));
    };
    let mut at = 0;
    if let Some((rank, coordinates)) = places.as_points() {
        for point in coordinates.chunks_exact(rank.max(1)) {
            let place = point.iter().zip(shape).fold(0, |sum, (&one, &side)| sum * side + one);
            visit(place as usize, at)?;
            at += 1;
        }
        return Ok(());
    }
    for run in places.runs(shape) {
        for place in run.start..run.start + run.len {
            visit(place as usize, at)?;
            at += 1;
        }
    }
    Ok(())
}

/// Puts one element into the memory of a program.
///
/// # Safety
/// `to` has room for an element of `memory`, and `from` one of `heaped_type(memory)`.
pub(crate) unsafe fn export(
    memory: &Datatype,
    from: &[u8],
    heap: &[u8],
    to: *mut u8,
) -> Result<()> {
    match memory {
        Datatype::VarLen(varlen) => {
            // SAFETY: the caller's promise.
            unsafe { export_sequence(varlen, from, heap, to) }
        }
        Datatype::Array(array) if array.base.has_varlen() => {
            let (size, step) = (heaped_type(&array.base).size(), array.base.size());
            for (at, one) in from.chunks_exact(size.max(1)).enumerate() {
                // SAFETY: the element has as many of the base as the array says.
                unsafe { export(&array.base, one, heap, to.add(at * step))? };
            }
            Ok(())
        }
        Datatype::Compound(compound) if memory.has_varlen() => {
            // Without gaps there, with gaps here.
            let mut at = 0;
            for Member { datatype, offset, .. } in &compound.members {
                let size = heaped_type(datatype).size();
                let part = from.get(at..at + size).ok_or_else(short)?;
                // SAFETY: a member lies inside of its compound, which was checked when the type was decoded.
                unsafe { export(datatype, part, heap, to.add(*offset as usize))? };
                at += size;
            }
            Ok(())
        }
        other => {
            let part = from.get(..other.size()).ok_or_else(short)?;
            // SAFETY: the caller's promise.
            unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), to, part.len()) };
            Ok(())
        }
    }
}

fn short() -> Fault {
    Fault::Invalid("elements that are too short".into())
}

/// # Safety
/// As [`export`]: `to` has room for a pointer, or for a count and a pointer.
unsafe fn export_sequence(varlen: &VarLen, from: &[u8], heap: &[u8], to: *mut u8) -> Result<()> {
    let base = heaped_type(&varlen.base);
    let inner = VarLen { size: REFERENCE, kind: varlen.kind, base: Box::new(base.clone()) };
    let payload = inner.payload(from, heap).map_err(pumice_engine::Error::from)?;
    if let VarLenKind::String { .. } = varlen.kind {
        let text = match payload {
            None => std::ptr::null_mut(),
            // SAFETY: the block has room for the text and the null byte behind it.
            Some(text) => unsafe {
                let block = allocate(text.len() + 1)?;
                std::ptr::copy_nonoverlapping(text.as_ptr(), block, text.len());
                *block.add(text.len()) = 0;
                block
            },
        };
        // SAFETY: the caller's promise.
        unsafe { to.cast::<*mut u8>().write_unaligned(text) };
        return Ok(());
    }
    let count = payload.map_or(0, |payload| payload.len() / base.size().max(1));
    let mut block = std::ptr::null_mut();
    if let Some(payload) = payload.filter(|_| count > 0) {
        let step = varlen.base.size();
        let bytes = count.checked_mul(step).ok_or_else(short)?;
        // SAFETY: the block has room for all elements; those that fail leave null pointers, which are freed as such.
        unsafe {
            block = allocate(bytes)?;
            std::ptr::write_bytes(block, 0, bytes);
            for (at, one) in payload.chunks_exact(base.size().max(1)).enumerate() {
                export(&varlen.base, one, heap, block.add(at * step))?;
            }
        }
    }
    // SAFETY: the caller's promise.
    unsafe {
        to.cast::<usize>().write_unaligned(count);
        to.add(size_of::<usize>()).cast::<*mut u8>().write_unaligned(block);
    }
    Ok(())
}

/// Memory that `free` gives back.
fn allocate(bytes: usize) -> Result<*mut u8> {
    // SAFETY: a plain call.
    let block = unsafe { libc::malloc(bytes.max(1)) }.cast::<u8>();
    match block.is_null() {
        false => Ok(block),
        true => {
            let what = format!("no memory for {bytes} bytes");
            Err(Fault::Engine(pumice_engine::Error::NoMemory(what)))
        }
    }
}

/// Takes one element out of the memory of a program, and appends it.
///
/// # Safety
/// `from` leads to an element of `memory`, whose pointers lead to what the type says.
pub(crate) unsafe fn import(memory: &Datatype, from: *const u8, to: &mut Heaped) -> Result<()> {
    let mut element = Vec::with_capacity(heaped_type(memory).size());
    // SAFETY: the caller's promise.
    unsafe { take(memory, from, &mut element, &mut to.heap)? };
    to.elements.extend_from_slice(&element);
    Ok(())
}

/// # Safety
/// As [`import`].
unsafe fn take(
    memory: &Datatype,
    from: *const u8,
    element: &mut Vec<u8>,
    heap: &mut Vec<u8>,
) -> Result<()> {
    match memory {
        Datatype::VarLen(varlen) => {
            // SAFETY: the caller's promise.
            unsafe { take_sequence(varlen, from, element, heap) }
        }
        Datatype::Array(array) if array.base.has_varlen() => {
            let count = array.dims.iter().map(|&side| side as usize).product();
            for at in 0..count {
                // SAFETY: the element has as many of the base as the array says.
                unsafe { take(&array.base, from.add(at * array.base.size()), element, heap)? };
            }
            Ok(())
        }
        Datatype::Compound(compound) if memory.has_varlen() => {
            for Member { datatype, offset, .. } in &compound.members {
                // SAFETY: a member lies inside of its compound.
                unsafe { take(datatype, from.add(*offset as usize), element, heap)? };
            }
            Ok(())
        }
        other => {
            // SAFETY: the caller's promise.
            element.extend_from_slice(unsafe { std::slice::from_raw_parts(from, other.size()) });
            Ok(())
        }
    }
}

/// # Safety
/// As [`import`]: `from` leads to a pointer, or to a count and a pointer.
unsafe fn take_sequence(
    varlen: &VarLen,
    from: *const u8,
    element: &mut Vec<u8>,
    heap: &mut Vec<u8>,
) -> Result<()> {
    let mut reference = [0; REFERENCE as usize];
    let put = |reference: &mut [u8], count, place| {
        put_reference(reference, count, place).map_err(pumice_engine::Error::from)
    };
    if let VarLenKind::String { .. } = varlen.kind {
        // SAFETY: the caller's promise: a pointer, to text that ends with a null byte.
        unsafe {
            let text = from.cast::<*const c_char>().read_unaligned();
            if !text.is_null() {
                let length = libc::strlen(text);
                put(&mut reference, length as u64, heap.len() as u64)?;
                heap.extend_from_slice(std::slice::from_raw_parts(text.cast(), length));
            }
        }
        element.extend(reference);
        return Ok(());
    }
    // SAFETY: the caller's promise: a count, and a pointer to so many elements of the base.
    unsafe {
        let count = from.cast::<usize>().read_unaligned();
        let block = from.add(size_of::<usize>()).cast::<*const c_void>().read_unaligned();
        if !block.is_null() && count > 0 {
            let step = varlen.base.size();
            let mut inner = Vec::with_capacity(count * heaped_type(&varlen.base).size());
            for at in 0..count {
                take(&varlen.base, block.cast::<u8>().add(at * step), &mut inner, heap)?;
            }
            put(&mut reference, count as u64, heap.len() as u64)?;
            heap.extend(inner);
        } else {
            // Nothing, which is not null.
            put(&mut reference, 0, heap.len() as u64)?;
        }
    }
    element.extend(reference);
    Ok(())
}

/// How many bytes of pointers' memory elements need: `H5Dvlen_get_buf_size`.
pub(crate) fn needed(memory: &Datatype, values: &Heaped, heaped: &Datatype) -> Result<u64> {
    let bytes = pumice_types::heaped::payload_bytes(heaped, &values.elements, &values.heap)
        .map_err(pumice_engine::Error::from)?;
    let ends = match memory {
        Datatype::VarLen(VarLen { kind: VarLenKind::String { .. }, .. }) => {
            let references = values.elements.chunks_exact(heaped.size().max(1));
            references.filter(|reference| reference_of(reference).is_some()).count()
        }
        _ => 0,
    };
    Ok(bytes + ends as u64)
}

/// An element count that fits memory.
pub(crate) fn cells(extent: &Extent) -> Result<usize> {
    let cells = if extent.is_null() { Some(0) } else { extent.cells() };
    cells.and_then(|cells| usize::try_from(cells).ok()).ok_or_else(short)
}
