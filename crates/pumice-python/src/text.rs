//! Arrays of strings: numpy's `StringDType` and arrays of objects, filled and read without a list between.
//!
//! `StringDType` is reached through four functions of numpy's C interface (numpy 2.0 and later), whose places in its table
//! never change. Everything here needs the interpreter; files are read and written before or after.

use crate::errors::{invalid, raised};
use crate::values::bytes_of;
use numpy::npyffi::PyArray_Descr;
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pumice::Strings;
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyCapsule, PyString};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::NonNull;

/// The number of numpy's `StringDType`.
const STRING_DTYPE: c_int = 2056;

/// Bytes that an element of such an array takes.
const PACKED: usize = 16;

/// What keeps the strings of an array; only numpy looks inside.
#[repr(C)]
struct Allocator([u8; 0]);

/// A string where numpy has it.
#[repr(C)]
struct Found {
    size: usize,
    bytes: *const c_char,
}

/// numpy's functions for arrays of strings.
struct Functions {
    load: unsafe extern "C" fn(*mut Allocator, *const c_void, *mut Found) -> c_int,
    pack: unsafe extern "C" fn(*mut Allocator, *mut c_void, *const c_char, usize) -> c_int,
    acquire: unsafe extern "C" fn(*const PyArray_Descr) -> *mut Allocator,
    release: unsafe extern "C" fn(*mut Allocator),
}

fn functions(py: Python<'_>) -> PyResult<&'static Functions> {
    static FUNCTIONS: PyOnceLock<Functions> = PyOnceLock::new();
    FUNCTIONS.get_or_try_init(py, || {
        let module = py.import("numpy._core._multiarray_umath")?;
        let capsule = module.getattr("_ARRAY_API")?.cast_into::<PyCapsule>()?;
        let table = capsule.pointer_checked(None)?.cast::<*const c_void>();
        // SAFETY: numpy 2 has these functions at these places of its table, which lives as long as the process.
        unsafe {
            Ok(Functions {
                load: table.add(313).cast().read(),
                pack: table.add(314).cast().read(),
                acquire: table.add(316).cast().read(),
                release: table.add(318).cast().read(),
            })
        }
    })
}

/// The strings of an array of `StringDType` that lies in one piece, while nobody else can change them.
struct Held {
    functions: &'static Functions,
    allocator: *mut Allocator,
    elements: *mut u8,
    count: usize,
}

impl Held {
    fn new(array: &Bound<'_, PyUntypedArray>) -> PyResult<Self> {
        let dtype = array.dtype();
        if dtype.num() != STRING_DTYPE || dtype.itemsize() != PACKED || !array.is_c_contiguous() {
            return Err(invalid("an array of StringDType in one piece is needed"));
        }
        let functions = functions(array.py())?;
        // SAFETY: the number of the dtype says that its descriptor is one of StringDType. The array lives, and lies in
        // one piece, so that `count` elements of 16 bytes begin at `data`.
        unsafe {
            let fields = array.as_array_ptr();
            let allocator = (functions.acquire)((*fields).fields.descr);
            let elements = (*fields).fields.data.cast();
            Ok(Self { functions, allocator, elements, count: array.len() })
        }
    }

    /// The bytes of a string; `None` for a missing one.
    fn get(&self, at: usize) -> PyResult<Option<&[u8]>> {
        assert!(at < self.count, "a string behind the last");
        let mut found = Found { size: 0, bytes: std::ptr::null() };
        // SAFETY: the element is within the array, and its allocator is held.
        let state = unsafe {
            (self.functions.load)(self.allocator, self.elements.add(at * PACKED).cast(), &mut found)
        };
        match (state, NonNull::new(found.bytes.cast_mut())) {
            (0, None) => Ok(Some(&[])),
            (0, Some(bytes)) => {
                let bytes = bytes.as_ptr().cast_const().cast();
                // SAFETY: numpy has put that many bytes there, which stay while the allocator is held.
                Ok(Some(unsafe { std::slice::from_raw_parts(bytes, found.size) }))
            }
            (1, _) => Ok(None),
            _ => Err(PyMemoryError::new_err("a string that numpy cannot load")),
        }
    }

    fn set(&mut self, at: usize, text: &str) -> PyResult<()> {
        assert!(at < self.count, "a string behind the last");
        // SAFETY: the element is within the array, and its allocator is held; numpy copies the bytes.
        let state = unsafe {
            let element = self.elements.add(at * PACKED).cast();
            (self.functions.pack)(self.allocator, element, text.as_ptr().cast(), text.len())
        };
        match state {
            0 => Ok(()),
            _ => Err(PyMemoryError::new_err("numpy has no memory for a string")),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: it was acquired when this was made, and nothing uses it any more.
        unsafe { (self.functions.release)(self.allocator) }
    }
}

/// The strings of an array of `StringDType`; `None` if one is missing.
pub(crate) fn strings_of(array: &Bound<'_, PyUntypedArray>) -> PyResult<Option<Strings>> {
    let held = Held::new(array)?;
    let mut strings = Packed::new(held.count);
    for at in 0..held.count {
        match held.get(at)? {
            Some(text) => strings.push(text),
            None => return Ok(None),
        }
    }
    strings.done().map(Some)
}

/// Puts strings into a new array of `StringDType`; `false`, and nothing is done, if they are no UTF-8.
pub(crate) fn put_strings(array: &Bound<'_, PyUntypedArray>, strings: &Strings) -> PyResult<bool> {
    let Ok(text) = std::str::from_utf8(strings.bytes()) else { return Ok(false) };
    let places = strings.offsets().windows(2);
    let parts = places.map(|ends| text.get(ends[0] as usize..ends[1] as usize));
    let Some(parts) = parts.collect::<Option<Vec<&str>>>() else { return Ok(false) };
    let mut held = Held::new(array)?;
    if held.count != parts.len() {
        return Err(invalid("an array of another length than the strings"));
    }
    for (at, part) in parts.into_iter().enumerate() {
        held.set(at, part)?;
    }
    Ok(true)
}

/// The strings of Python's objects: `str`, `bytes` or None.
pub(crate) fn strings_of_objects(py: Python<'_>, objects: &[Py<PyAny>]) -> PyResult<Strings> {
    let mut strings = Packed::new(objects.len());
    let mut place = Vec::new();
    for object in objects {
        let object = object.bind(py);
        if let Ok(text) = object.cast::<PyString>()
            && let Ok(text) = text.to_str()
        {
            strings.push(text.as_bytes());
        } else if let Ok(bytes) = object.cast::<PyBytes>() {
            strings.push(bytes.as_bytes());
        } else {
            strings.push(bytes_of(object, &mut place)?);
        }
    }
    strings.done()
}

/// What the objects of strings are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `bytes`.
    Bytes,
    /// `str`, of any UTF-8.
    Text,
    /// `str`, of ASCII.
    Ascii,
}

impl Form {
    pub(crate) fn named(name: &str) -> PyResult<Self> {
        match name {
            "bytes" => Ok(Self::Bytes),
            "utf-8" => Ok(Self::Text),
            "ascii" => Ok(Self::Ascii),
            other => Err(invalid(format!("{other} is no form of strings"))),
        }
    }
}

/// Equal strings become one object if they come again before this many others have taken its place.
const REMEMBERED: usize = 1024;

/// Puts strings as objects into an array of objects; `false`, and nothing is done, if they are no text of that form.
pub(crate) fn put_objects(
    py: Python<'_>,
    array: &mut [Py<PyAny>],
    strings: &Strings,
    form: Form,
) -> PyResult<bool> {
    if array.len() != strings.len() {
        return Err(invalid("an array of another length than the strings"));
    }
    let fits = match form {
        Form::Bytes => true,
        Form::Text => strings.iter().all(|text| std::str::from_utf8(text).is_ok()),
        Form::Ascii => strings.bytes().is_ascii(),
    };
    if !fits {
        return Ok(false);
    }
    // Where the object of a string is, by the string's hash; the first is asked in vain once.
    let mut known = [0_u32; REMEMBERED];
    for (at, text) in strings.iter().enumerate() {
        let slot = &mut known[slot_of(text)];
        let earlier = *slot as usize;
        if earlier < at && strings.get(earlier) == Some(text) {
            let object = array[earlier].clone_ref(py);
            array[at] = object;
            continue;
        }
        *slot = at as u32;
        array[at] = match form {
            Form::Bytes => PyBytes::new(py, text).into_any().unbind(),
            _ => PyString::from_bytes(py, text)?.into_any().unbind(),
        };
    }
    Ok(true)
}

/// Where a string is remembered: from its length, its beginning and its end.
fn slot_of(text: &[u8]) -> usize {
    let eight = |part: &[u8]| {
        let mut bytes = [0; 8];
        bytes[..part.len()].copy_from_slice(part);
        u64::from_le_bytes(bytes)
    };
    let (first, last) = (text.len().min(8), text.len().saturating_sub(8));
    let mixed = eight(&text[..first]) ^ eight(&text[last..]).rotate_left(23) ^ text.len() as u64;
    (mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54) as usize
}

/// Strings that are put one after another.
struct Packed {
    offsets: Vec<u64>,
    bytes: Vec<u8>,
}

impl Packed {
    fn new(count: usize) -> Self {
        let mut offsets = Vec::with_capacity(count + 1);
        offsets.push(0);
        Self { offsets, bytes: Vec::new() }
    }

    fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.offsets.push(self.bytes.len() as u64);
    }

    fn done(self) -> PyResult<Strings> {
        if self.bytes.contains(&0) {
            return Err(PyValueError::new_err("VLEN strings do not support embedded NULLs"));
        }
        Strings::from_parts(self.offsets, self.bytes).map_err(|error| raised(error.into()))
    }
}
