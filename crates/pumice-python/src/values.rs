//! Strings and sequences of variable length, between Python's objects and heaps.

use crate::errors::{invalid, raised};
use numpy::{PyArray1, PyReadonlyArray1};
use pumice::types::heaped::{put_reference, reference_of};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyString};

/// Strings as Python has them: `bytes`, or `str` where an encoding is named. Bytes that are no UTF-8 become surrogates
/// ("surrogateescape") unless `errors` says otherwise.
pub(crate) fn strings<'a, 'py>(
    py: Python<'py>,
    all: impl ExactSizeIterator<Item = &'a [u8]>,
    text: bool,
) -> PyResult<Bound<'py, PyList>> {
    let one = |bytes: &[u8]| match std::str::from_utf8(bytes).ok().filter(|_| text) {
        Some(text) => Ok(PyString::new(py, text).into_any()),
        None if text => {
            let bytes = PyBytes::new(py, bytes);
            bytes.call_method1("decode", ("utf-8", "surrogateescape"))
        }
        None => Ok(PyBytes::new(py, bytes).into_any()),
    };
    if !text {
        return PyList::new(py, all.map(|bytes| PyBytes::new(py, bytes)));
    }
    let list = all.map(one).collect::<PyResult<Vec<_>>>()?;
    PyList::new(py, list)
}

/// The bytes of one string.
pub(crate) fn bytes_of<'a>(
    item: &'a Bound<'_, PyAny>,
    place: &'a mut Vec<u8>,
) -> PyResult<&'a [u8]> {
    if let Ok(text) = item.cast::<PyString>() {
        return match text.to_cow() {
            Ok(text) => {
                place.clear();
                place.extend_from_slice(text.as_bytes());
                Ok(place)
            }
            Err(_) => {
                let bytes = text.call_method1("encode", ("utf-8", "surrogateescape"))?;
                *place = bytes.extract()?;
                Ok(place)
            }
        };
    }
    if let Ok(bytes) = item.cast::<PyBytes>() {
        return Ok(bytes.as_bytes());
    }
    if let Ok(bytes) = item.cast::<PyByteArray>() {
        *place = bytes.to_vec();
        return Ok(place);
    }
    if item.is_none() {
        return Ok(&[]);
    }
    Err(PyTypeError::new_err(format!(
        "Can't implicitly convert non-string objects to strings (found {})",
        item.get_type().name()?
    )))
}

/// Strings of Python one after another.
pub(crate) fn packed(items: &Bound<'_, PyList>) -> PyResult<pumice::Strings> {
    let (mut offsets, mut all) = (Vec::with_capacity(items.len() + 1), Vec::new());
    let mut place = Vec::new();
    offsets.push(0);
    for item in items.iter() {
        let bytes = bytes_of(&item, &mut place)?;
        if bytes.contains(&0) {
            return Err(PyValueError::new_err("VLEN strings do not support embedded NULLs"));
        }
        all.extend_from_slice(bytes);
        offsets.push(all.len() as u64);
    }
    pumice::Strings::from_parts(offsets, all).map_err(|error| raised(error.into()))
}

/// The strings that references of `size` bytes lead to in a heap.
#[pyfunction]
pub(crate) fn heap_strings<'py>(
    py: Python<'py>,
    references: PyReadonlyArray1<'py, u8>,
    size: usize,
    heap: PyReadonlyArray1<'py, u8>,
    text: bool,
) -> PyResult<Bound<'py, PyList>> {
    let (references, heap) = (references.as_slice()?, heap.as_slice()?);
    let payload = |reference: &[u8]| -> Option<&[u8]> {
        let Some((count, start)) = reference_of(reference) else { return Some(&[]) };
        let end = start.checked_add(count)?;
        heap.get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
    };
    let found: Option<Vec<&[u8]>> = references.chunks_exact(size.max(1)).map(payload).collect();
    let found = found.ok_or_else(|| invalid("a string that lies outside its heap"))?;
    strings(py, found.into_iter().map(ended), text)
}

/// A string up to the null byte that ends it.
fn ended(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|&byte| byte == 0);
    end.map_or(bytes, |end| &bytes[..end])
}

/// Count and position of each reference of `size` bytes; a null reference has count 0.
#[pyfunction]
#[expect(clippy::type_complexity)]
pub(crate) fn heap_places<'py>(
    py: Python<'py>,
    references: PyReadonlyArray1<'py, u8>,
    size: usize,
) -> PyResult<(Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u64>>)> {
    let found = references.as_slice()?.chunks_exact(size.max(1));
    let found = found.map(|reference| reference_of(reference).unwrap_or_default());
    let (counts, places): (Vec<u64>, Vec<u64>) = found.unzip();
    Ok((PyArray1::from_vec(py, counts), PyArray1::from_vec(py, places)))
}

/// References of `size` bytes to so many elements at such places.
#[pyfunction]
pub(crate) fn heap_references<'py>(
    py: Python<'py>,
    counts: PyReadonlyArray1<'py, u64>,
    places: PyReadonlyArray1<'py, u64>,
    size: usize,
) -> PyResult<Bound<'py, PyArray1<u8>>> {
    let (counts, places) = (counts.as_slice()?, places.as_slice()?);
    let mut references = vec![0; counts.len() * size];
    let each = references.chunks_exact_mut(size.max(1)).zip(counts.iter().zip(places));
    for (reference, (&count, &place)) in each {
        put_reference(reference, count, place).map_err(|error| raised(error.into()))?;
    }
    Ok(PyArray1::from_vec(py, references))
}

/// Strings one after another, and where each ends.
#[pyfunction]
#[expect(clippy::type_complexity)]
pub(crate) fn pack_strings<'py>(
    py: Python<'py>,
    items: &Bound<'py, PyList>,
) -> PyResult<(Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u8>>)> {
    let (offsets, bytes) = packed(items)?.into_parts();
    Ok((PyArray1::from_vec(py, offsets), PyArray1::from_vec(py, bytes)))
}
