//! Attributes: numbers and texts.

use crate::fault::{Status, run};
use crate::file::FileHandle;
use crate::memory::{array, give, give_handle, place, text};
use crate::names::{ATTRIBUTE, Names};
use crate::number::{Number, TypeNumber, with_number};
use pumice::{Attribute, AttributeValue, Error, Node, RawAttribute, Result};
use std::ffi::{c_char, c_void};

/// The object at a path.
///
/// # Safety
/// `file` is null or a file that was not given back, `path` a text.
unsafe fn object(file: *const FileHandle, path: *const c_char) -> Result<Node> {
    // SAFETY: the caller's promise.
    unsafe { crate::file::file(file)?.node(text(path, "path")?) }
}

/// An attribute of the object at a path.
///
/// # Safety
/// As [`object`]; `name` is a text.
unsafe fn attribute(
    file: *const FileHandle,
    path: *const c_char,
    name: *const c_char,
) -> Result<Attribute> {
    // SAFETY: the caller's promise.
    let (object, name) = unsafe { (object(file, path)?, text(name, "name")?) };
    match object {
        Node::Group(group) => group.attribute(name),
        Node::Dataset(dataset) => dataset.attribute(name),
        Node::Datatype(datatype) => datatype.attribute(name),
    }
}

fn set(object: &Node, name: &str, value: impl AttributeValue) -> Result<()> {
    match object {
        Node::Group(group) => group.set_attribute(name, value),
        Node::Dataset(dataset) => dataset.set_attribute(name, value),
        Node::Datatype(datatype) => datatype.set_attribute(name, value),
    }
}

/// `pumice_attribute_set`.
///
/// # Safety
/// `file` is null or a file that was not given back, `path` and `name` are texts; `shape` has `rank` numbers, `values`
/// has a value of the type for each element.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_attribute_set(
    file: *mut FileHandle,
    path: *const c_char,
    name: *const c_char,
    number: TypeNumber,
    rank: usize,
    shape: *const u64,
    values: *const c_void,
) -> Status {
    run(|| {
        let number = Number::new(number)?;
        // SAFETY: the caller's promise.
        unsafe {
            let (object, name) = (object(file, path)?, text(name, "name")?);
            let shape = array(shape, rank, "the shape")?;
            let count = shape.iter().try_fold(1usize, |all, &side| {
                usize::try_from(side).ok().and_then(|side| all.checked_mul(side))
            });
            let bytes = number.bytes(count.unwrap_or(usize::MAX))?;
            let values = array(values.cast::<u8>(), bytes, "values")?;
            set(&object, name, RawAttribute::new(number.datatype(), shape, values.to_vec())?)
        }
    })
}

/// `pumice_attribute_get`.
///
/// # Safety
/// `file` is null or a file that was not given back, `path` and `name` are texts; `values` has room for `count` values
/// of the type, which nobody else uses meanwhile.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_attribute_get(
    file: *mut FileHandle,
    path: *const c_char,
    name: *const c_char,
    number: TypeNumber,
    count: usize,
    values: *mut c_void,
) -> Status {
    run(|| {
        let number = Number::new(number)?;
        // SAFETY: the caller's promise.
        let (attribute, values) = unsafe {
            let values = place(values.cast(), number.bytes(count)?, "values")?;
            (attribute(file, path, name)?, values)
        };
        with_number!(number, T => {
            let found = attribute.read::<T>()?;
            if found.len() != count {
                let there = found.len();
                let what = format!("room for {count} value(s) of an attribute with {there}");
                return Err(Error::CountMismatch(what));
            }
            values.copy_from_slice(bytemuck::cast_slice(&found));
        });
        Ok(())
    })
}

/// `pumice_attribute_info`.
///
/// # Safety
/// `file` is null or a file that was not given back, `path` and `name` are texts; `number` and `count` are places for
/// the answers, or null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_attribute_info(
    file: *mut FileHandle,
    path: *const c_char,
    name: *const c_char,
    number: *mut TypeNumber,
    count: *mut usize,
) -> Status {
    run(|| {
        // SAFETY: the caller's promise.
        let found = unsafe { attribute(file, path, name)? };
        let cells = found.extent().cells().and_then(|cells| usize::try_from(cells).ok());
        let cells = cells.ok_or_else(|| Error::NoMemory("a number of values".into()))?;
        // SAFETY: the caller's promise.
        unsafe {
            if !number.is_null() {
                give(number, Number::of(found.datatype()), "type")?;
            }
            if !count.is_null() {
                give(count, cells, "number of values")?;
            }
        }
        Ok(())
    })
}

/// `pumice_attribute_set_text`.
///
/// # Safety
/// `file` is null or a file that was not given back, `path`, `name` and `value` are texts.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_attribute_set_text(
    file: *mut FileHandle,
    path: *const c_char,
    name: *const c_char,
    value: *const c_char,
) -> Status {
    // SAFETY: the caller's promise.
    run(|| unsafe { set(&object(file, path)?, text(name, "name")?, text(value, "text")?) })
}

/// `pumice_attribute_get_text`.
///
/// # Safety
/// `file` is null or a file that was not given back, `path` and `name` are texts; `value` has room for `size` bytes,
/// which nobody else uses meanwhile; `length` is a place for a number, or null.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_attribute_get_text(
    file: *mut FileHandle,
    path: *const c_char,
    name: *const c_char,
    size: usize,
    value: *mut c_char,
    length: *mut usize,
) -> Status {
    run(|| {
        // SAFETY: the caller's promise.
        let (found, room) = unsafe {
            let room = place(value.cast(), size, "the text")?;
            (attribute(file, path, name)?.read_string()?, room)
        };
        if let Some((end, room)) = room.split_last_mut() {
            let cut = found.floor_char_boundary(room.len());
            room[..cut].copy_from_slice(&found.as_bytes()[..cut]);
            // The text ends where it was cut, which may be before the last byte.
            *room.get_mut(cut).unwrap_or(end) = 0;
        }
        if !length.is_null() {
            // SAFETY: the caller's promise.
            unsafe { give(length, found.len(), "length")? };
        }
        Ok(())
    })
}

/// `pumice_attribute_remove`.
///
/// # Safety
/// `file` is null or a file that was not given back, `path` and `name` are texts.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_attribute_remove(
    file: *mut FileHandle,
    path: *const c_char,
    name: *const c_char,
) -> Status {
    run(|| {
        // SAFETY: the caller's promise.
        let (object, name) = unsafe { (object(file, path)?, text(name, "name")?) };
        match object {
            Node::Group(group) => group.remove_attribute(name),
            Node::Dataset(dataset) => dataset.remove_attribute(name),
            Node::Datatype(datatype) => datatype.remove_attribute(name),
        }
    })
}

/// `pumice_attributes`.
///
/// # Safety
/// `file` is null or a file that was not given back, `path` a text, `names` a place for a pointer.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pumice_attributes(
    file: *mut FileHandle,
    path: *const c_char,
    names: *mut *mut Names,
) -> Status {
    run(|| {
        // SAFETY: the caller's promise.
        let found = unsafe { object(file, path)? }.attribute_names()?;
        let found = Names::new(found.into_iter().map(|name| (name, ATTRIBUTE)));
        // SAFETY: the caller's promise.
        unsafe { give_handle(names, found, "names") }
    })
}
