//! Elements in a program's memory, where data of variable length are behind pointers.
//!
//! The engine has elements with what they refer to in one heap. Here that is taken apart into memory of the C library's
//! allocator, as libhdf5 does, so that `H5Treclaim` frees it; and put together again from a program's pointers. Types
//! without pointers never come here: the engine reads and writes the program's memory itself.

use crate::fault::{Fault, Result};
use crate::references::{self, Links};
use pumice_space::{Extent, Selection};
use pumice_types::heaped::{put_reference, reference_of};
use pumice_types::{Compound, Datatype, Heaped, Member, VarLen, VarLenKind};
use std::ffi::{c_char, c_void};

/// Bytes of a reference into a heap.
const REFERENCE: u32 = 16;

/// Whether elements cannot be copied between a program and the engine as bytes.
pub(crate) fn are_walked(memory: &Datatype) -> bool {
    memory.has_varlen() || references::are_in(memory)
}

/// The type of elements in memory as the engine has them, if a file has them by the type `file`: references into a heap in
/// place of pointers, and the file's references in place of those of HDF5 1.12.
pub(crate) fn heaped_type(memory: &Datatype, file: &Datatype) -> Datatype {
    match (memory, file) {
        (Datatype::Reference(class), Datatype::Reference(_)) if references::is_in_memory(class) => {
            file.clone()
        }
        (Datatype::VarLen(varlen), _) => {
            let inner = match file {
                Datatype::VarLen(file) => &file.base,
                _ => &varlen.base,
            };
            let base = Box::new(heaped_type(&varlen.base, inner));
            Datatype::VarLen(VarLen { size: REFERENCE, kind: varlen.kind, base })
        }
        (Datatype::Array(array), _) if are_walked(memory) => {
            let inner = match file {
                Datatype::Array(file) => &file.base,
                _ => &array.base,
            };
            Datatype::array(heaped_type(&array.base, inner), array.dims.clone())
        }
        (Datatype::Compound(compound), _) if are_walked(memory) => {
            let there = |name: &str| match file {
                Datatype::Compound(file) => file.members.iter().find(|member| member.name == name),
                _ => None,
            };
            Datatype::compound(compound.members.iter().map(|member| {
                let inner = there(&member.name).map_or(&member.datatype, |there| &there.datatype);
                (member.name.clone(), heaped_type(&member.datatype, inner))
            }))
        }
        (other, _) => other.clone(),
    }
}

/// Members of a compound in memory beside those that the engine has.
fn members<'a>(
    compound: &'a Compound,
    heaped: &'a Datatype,
) -> Result<impl Iterator<Item = (&'a Member, &'a Datatype)>> {
    match heaped {
        Datatype::Compound(heaped) if heaped.members.len() == compound.members.len() => {
            let types = heaped.members.iter().map(|member| &member.datatype);
            Ok(compound.members.iter().zip(types))
        }
        _ => Err(short()),
    }
}

/// The type of an array's or a sequence's elements as the engine has them.
fn base(heaped: &Datatype) -> Result<&Datatype> {
    match heaped {
        Datatype::Array(array) => Ok(&array.base),
        Datatype::VarLen(varlen) => Ok(&varlen.base),
        _ => Err(short()),
    }
}

fn links<'a>(links: Option<Links<'a>>) -> Result<Links<'a>> {
    links.ok_or_else(|| Fault::Unsupported("references in fill values".into()))
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
/// `to` has room for an element of `memory`, and `from` is one of `heaped`, which is [`heaped_type`] of it.
pub(crate) unsafe fn export(
    (memory, heaped): (&Datatype, &Datatype),
    from: &[u8],
    heap: &[u8],
    to: *mut u8,
    file: Option<Links<'_>>,
) -> Result<()> {
    match memory {
        Datatype::VarLen(varlen) => {
            // SAFETY: the caller's promise.
            unsafe { export_sequence((varlen, heaped), from, heap, to, file) }
        }
        Datatype::Array(array) if are_walked(&array.base) => {
            let (inner, step) = (base(heaped)?, array.base.size());
            for (at, one) in from.chunks_exact(inner.size().max(1)).enumerate() {
                // SAFETY: the element has as many of the base as the array says.
                unsafe { export((&array.base, inner), one, heap, to.add(at * step), file)? };
            }
            Ok(())
        }
        Datatype::Compound(compound) if are_walked(memory) => {
            // Without gaps there, with gaps here.
            let mut at = 0;
            for (Member { datatype, offset, .. }, inner) in members(compound, heaped)? {
                let part = from.get(at..at + inner.size()).ok_or_else(short)?;
                // SAFETY: a member lies inside of its compound, which was checked when the type was decoded.
                unsafe { export((datatype, inner), part, heap, to.add(*offset as usize), file)? };
                at += inner.size();
            }
            Ok(())
        }
        Datatype::Reference(class) if references::is_in_memory(class) && memory != heaped => {
            // SAFETY: the caller's promise.
            unsafe { links(file)?.export(heaped, from, to) }
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
unsafe fn export_sequence(
    (varlen, heaped): (&VarLen, &Datatype),
    from: &[u8],
    heap: &[u8],
    to: *mut u8,
    file: Option<Links<'_>>,
) -> Result<()> {
    let Datatype::VarLen(inner) = heaped else { return Err(short()) };
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
    let base = base(heaped)?;
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
                export((&varlen.base, base), one, heap, block.add(at * step), file)?;
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
/// `from` leads to an element of `memory`, whose pointers lead to what the type says; `heaped` is [`heaped_type`] of it.
pub(crate) unsafe fn import(
    (memory, heaped): (&Datatype, &Datatype),
    from: *const u8,
    to: &mut Heaped,
    file: Option<Links<'_>>,
) -> Result<()> {
    let mut element = Vec::with_capacity(heaped.size());
    // SAFETY: the caller's promise.
    unsafe { take((memory, heaped), from, (&mut element, &mut to.heap), file)? };
    to.elements.extend_from_slice(&element);
    Ok(())
}

/// # Safety
/// As [`import`].
unsafe fn take(
    (memory, heaped): (&Datatype, &Datatype),
    from: *const u8,
    (element, heap): (&mut Vec<u8>, &mut Vec<u8>),
    file: Option<Links<'_>>,
) -> Result<()> {
    match memory {
        Datatype::VarLen(varlen) => {
            // SAFETY: the caller's promise.
            unsafe { take_sequence((varlen, heaped), from, (element, heap), file) }
        }
        Datatype::Array(array) if are_walked(&array.base) => {
            let count = array.dims.iter().map(|&side| side as usize).product();
            let types = (&*array.base, base(heaped)?);
            for at in 0..count {
                // SAFETY: the element has as many of the base as the array says.
                unsafe { take(types, from.add(at * types.0.size()), (element, heap), file)? };
            }
            Ok(())
        }
        Datatype::Compound(compound) if are_walked(memory) => {
            for (Member { datatype, offset, .. }, inner) in members(compound, heaped)? {
                // SAFETY: a member lies inside of its compound.
                unsafe {
                    take((datatype, inner), from.add(*offset as usize), (element, heap), file)?;
                }
            }
            Ok(())
        }
        Datatype::Reference(class) if references::is_in_memory(class) && memory != heaped => {
            let Datatype::Reference(stored) = heaped else { return Err(short()) };
            let at = element.len();
            element.resize(at + heaped.size(), 0);
            // SAFETY: the caller's promise.
            unsafe { links(file)?.import(from, stored, &mut element[at..]) }
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
    (varlen, heaped): (&VarLen, &Datatype),
    from: *const u8,
    (element, heap): (&mut Vec<u8>, &mut Vec<u8>),
    file: Option<Links<'_>>,
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
            let types = (&*varlen.base, base(heaped)?);
            let mut inner = Vec::with_capacity(count.saturating_mul(types.1.size()));
            for at in 0..count {
                let one = block.cast::<u8>().add(at * types.0.size());
                take(types, one, (&mut inner, heap), file)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use pumice_types::{CharacterSet, StringPadding};

    /// A compound of a number, a text and a sequence of texts, as C has it.
    fn memory_type() -> Datatype {
        let text = || {
            Datatype::VarLen(VarLen::string(8, StringPadding::NullTerminate, CharacterSet::Utf8))
        };
        let member = |name: &str, offset, datatype| Member { name: name.into(), offset, datatype };
        Datatype::Compound(pumice_types::Compound {
            size: 32,
            members: vec![
                member("number", 0, Datatype::i32_le()),
                member("text", 8, text()),
                member("list", 16, Datatype::varlen(text(), 16)),
            ],
        })
    }

    #[repr(C)]
    struct Element {
        number: i32,
        text: *const c_char,
        count: usize,
        list: *const *const c_char,
    }

    #[test]
    fn what_pointers_lead_to_goes_to_a_heap_and_back() {
        let datatype = memory_type();
        let list = [c"one".as_ptr(), std::ptr::null(), c"".as_ptr()];
        let element = Element { number: 7, text: c"text".as_ptr(), count: 3, list: list.as_ptr() };
        let (inner, mut heaped) = (heaped_type(&datatype, &datatype), Heaped::default());
        // SAFETY: the element is of this type, its pointers lead to what the type says.
        unsafe {
            import((&datatype, &inner), std::ptr::from_ref(&element).cast(), &mut heaped, None)
                .unwrap();
        }
        assert_eq!(heaped.elements.len(), inner.size());

        let mut back = std::mem::MaybeUninit::<Element>::zeroed();
        // SAFETY: there is room for one element, and all of it is written but for the gap.
        let back = unsafe {
            let to = back.as_mut_ptr().cast();
            export((&datatype, &inner), &heaped.elements, &heaped.heap, to, None).unwrap();
            back.assume_init()
        };
        // SAFETY: what was made has the form of what was given; each block is freed once.
        unsafe {
            let text = |at: *const c_char| std::ffi::CStr::from_ptr(at).to_bytes();
            assert_eq!((back.number, text(back.text), back.count), (7, &b"text"[..], 3));
            let list = std::slice::from_raw_parts(back.list, 3);
            assert_eq!((text(list[0]), text(list[2])), (&b"one"[..], &b""[..]));
            assert!(list[1].is_null());
            for block in
                [back.text.cast(), list[0].cast(), list[2].cast(), back.list.cast::<c_void>()]
            {
                libc::free(block.cast_mut());
            }
        }
    }
}
