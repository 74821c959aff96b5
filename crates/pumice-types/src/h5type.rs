//! Rust types as elements of datatypes: which datatype each has, and how values become bytes.
//!
//! Most are *plain*: their bytes in memory are an element, and slices of them are copied between
//! file and memory. Others are converted value by value to elements without gaps and a heap for
//! data of variable length; these bytes have a datatype like any others.
//!
//! `unsafe` is here and nowhere else in the crate. The compiler knows from the types of its fields
//! whether a struct is plain, but a macro sees only their names; so plainness is a constant and not
//! a trait. A slice of plain values is written without a copy, which saves 2 ms for a million
//! structs of 24 bytes (`cargo run --release -p pumice-types --example plain_structs`). Reads take
//! about as long either way.
#![allow(unsafe_code)]

mod array;
mod number;
mod sequence;

use crate::heaped::{put_reference, reference_of};
use crate::{Datatype, TypeError};
use std::any::Any;

/// Bytes of a reference into a heap, in memory.
pub(crate) const REFERENCE: usize = 16;

/// A Rust type whose values are elements of a datatype.
///
/// Numbers, `bool`, `String`, `Vec` of other such types, arrays, fixed text and complex numbers are; for structs
/// and enums, `derive(H5Type)` of the crate `pumice` writes it.
///
/// ```
/// use pumice_types::{Datatype, H5Type};
///
/// assert_eq!(u8::datatype(), Datatype::u8());
/// assert_eq!(<[f64; 3]>::datatype().size(), 24);
/// assert_eq!(String::datatype(), Datatype::varlen_string(16));
/// assert!(u8::PLAIN && !String::PLAIN);
/// ```
///
/// # Safety
/// Where [`PLAIN`](Self::PLAIN) is true, a value has no byte that belongs to none of its parts, any bytes are
/// a value, `size_of::<Self>()` is [`SIZE`](Self::SIZE), and a value's bytes in memory are an element of
/// [`datatype`](Self::datatype).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no element of an HDF5 datatype",
    note = "numbers, `bool`, `String`, `Vec`, arrays, `FixedText` and `Complex` are; `usize` has no fixed size: use `u64`",
    note = "for a struct or an enum of your own, `#[derive(pumice::H5Type)]`"
)]
pub unsafe trait H5Type: Sized + Send + Sync {
    /// Whether its bytes in memory are an element.
    const PLAIN: bool;

    /// Bytes of an element of [`datatype`](Self::datatype).
    const SIZE: usize;

    /// Whether it can be read. Types that borrow, such as `&str`, are written only.
    const OWNED: bool;

    /// The datatype of its elements in memory, in this machine's byte order.
    fn datatype() -> Datatype;

    /// Writes the value over `place`, the bytes of one element, and puts its parts of variable
    /// length onto the heap.
    fn put(&self, place: &mut [u8], heap: &mut Heap) -> Result<(), TypeError>;

    /// The value of an element.
    fn take(place: &[u8], heap: &Heap) -> Result<Self, TypeError>;
}

/// An [`H5Type`] whose element may be null, that is, all zeros: `Option` of it is one too.
///
/// ```
/// use pumice_types::{from_elements, to_elements};
///
/// let (elements, heap) = to_elements(&[Some(String::new()), None])?;
/// assert_eq!(from_elements::<Option<String>>(&elements, &heap)?, [Some(String::new()), None]);
/// # Ok::<(), pumice_types::TypeError>(())
/// ```
pub trait OrNull: H5Type {}

/// The data that elements in memory refer to: bytes of strings and sequences, and values without
/// bytes, such as references to objects of a file.
#[derive(Default)]
pub struct Heap {
    /// The bytes that references lead to, as in [`Heaped`](crate::Heaped).
    pub bytes: Vec<u8>,
    things: Vec<Box<dyn Any + Send + Sync>>,
}

impl Heap {
    /// A heap of bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, things: Vec::new() }
    }

    /// Puts something on the heap and its number, from 1, over `place`.
    pub fn push_thing(&mut self, thing: impl Any + Send + Sync, place: &mut [u8]) {
        self.things.push(Box::new(thing));
        put_number(place, self.things.len() as u64);
    }

    /// The value with the number at `place`; `None` for 0.
    pub fn thing<T: Any>(&self, place: &[u8]) -> Option<&T> {
        let number = usize::try_from(number(place)).ok()?.checked_sub(1)?;
        self.things.get(number)?.downcast_ref()
    }

    /// Puts a list of `count` elements on the heap and a reference to it over `place`.
    fn push(&mut self, payload: &[u8], count: usize, place: &mut [u8]) -> Result<(), TypeError> {
        put_reference(place, count as u64, self.bytes.len() as u64)?;
        self.bytes.extend_from_slice(payload);
        Ok(())
    }

    /// The elements, of `size` bytes each, that a reference leads to; none for null.
    fn list(&self, place: &[u8], size: usize) -> Result<&[u8], TypeError> {
        let Some((count, start)) = reference_of(place) else { return Ok(&[]) };
        let end = count.checked_mul(size as u64).and_then(|length| length.checked_add(start));
        let range = end.and_then(|end| Some(start as usize..usize::try_from(end).ok()?));
        range.and_then(|range| self.bytes.get(range)).ok_or_else(|| {
            let length = self.bytes.len();
            let reason =
                format!("a reference to {count} element(s) at byte {start} of a heap of {length}");
            TypeError::value(reason)
        })
    }
}

impl std::fmt::Debug for Heap {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (bytes, things) = (self.bytes.len(), self.things.len());
        formatter.debug_struct("Heap").field("bytes", &bytes).field("things", &things).finish()
    }
}

fn number(place: &[u8]) -> u64 {
    place.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn put_number(place: &mut [u8], number: u64) {
    if let Some(bytes) = place.first_chunk_mut() {
        *bytes = number.to_le_bytes();
    }
}

/// The bytes of plain values; `None` for others.
///
/// ```
/// use pumice_types::plain;
///
/// assert_eq!(plain::bytes(&[1u8, 2]), Some(&[1u8, 2][..]));
/// assert_eq!(plain::bytes(&[true]), None);
/// ```
pub mod plain {
    use super::H5Type;
    use crate::TypeError;

    /// The bytes of plain values.
    pub fn bytes<T: H5Type>(values: &[T]) -> Option<&[u8]> {
        // SAFETY: plain values have no bytes that were never written, as the trait promises; there are as
        // many bytes as the slice has, and they live as long.
        T::PLAIN.then(|| unsafe {
            std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), size_of_val(values))
        })
    }

    /// The bytes of plain values, to be written.
    pub fn bytes_mut<T: H5Type>(values: &mut [T]) -> Option<&mut [u8]> {
        // SAFETY: as above, and any bytes are plain values, as the trait promises.
        T::PLAIN.then(|| unsafe {
            std::slice::from_raw_parts_mut(values.as_mut_ptr().cast::<u8>(), size_of_val(values))
        })
    }

    /// Plain values whose bytes are all zero; `None` for other types. Lack of memory is an error.
    pub fn zeroed<T: H5Type>(count: usize) -> Option<Result<Vec<T>, TypeError>> {
        T::PLAIN.then(|| {
            let missing = || TypeError::value(format!("no memory for {count} of them"));
            let layout = std::alloc::Layout::array::<T>(count).map_err(|_| missing())?;
            let memory = match layout.size() {
                0 => std::ptr::NonNull::<T>::dangling().as_ptr(),
                // SAFETY: the layout is not of zero bytes.
                _ => unsafe { std::alloc::alloc_zeroed(layout) }.cast::<T>(),
            };
            if memory.is_null() {
                return Err(missing());
            }
            // SAFETY: the memory is of the global allocator, with the layout of so many values, or there are no
            // bytes at all; and any bytes are values of a plain type.
            Ok(unsafe { Vec::from_raw_parts(memory, count, count) })
        })
    }

    /// Writes the bytes of a plain value over `place`, which has as many.
    pub fn put<T: H5Type>(value: &T, place: &mut [u8]) -> Result<(), TypeError> {
        match bytes(std::slice::from_ref(value)) {
            Some(bytes) if bytes.len() == place.len() => place.copy_from_slice(bytes),
            _ => return Err(TypeError::value("they are not plain")),
        }
        Ok(())
    }

    /// The plain value of bytes, of which there are as many.
    pub fn take<T: H5Type>(place: &[u8]) -> Result<T, TypeError> {
        if !T::PLAIN || place.len() != size_of::<T>() {
            return Err(TypeError::value("they are not plain"));
        }
        // SAFETY: there are as many bytes, and any are a value of a plain type.
        Ok(unsafe { place.as_ptr().cast::<T>().read_unaligned() })
    }
}

/// Converts values to elements of their datatype, with a heap.
///
/// ```
/// use pumice_types::{from_elements, to_elements};
///
/// let (elements, heap) = to_elements(&["ab", "", "cde"])?;
/// assert_eq!((elements.len(), heap.bytes.as_slice()), (48, &b"abcde"[..]));
/// assert_eq!(from_elements::<String>(&elements, &heap)?, ["ab", "", "cde"]);
/// # Ok::<(), pumice_types::TypeError>(())
/// ```
pub fn to_elements<T: H5Type>(values: &[T]) -> Result<(Vec<u8>, Heap), TypeError> {
    let mut heap = Heap::default();
    if let Some(bytes) = plain::bytes(values) {
        return Ok((bytes.to_vec(), heap));
    }
    let mut elements = reserved(values.len().saturating_mul(T::SIZE))?;
    elements.resize(values.len() * T::SIZE, 0);
    for (value, place) in values.iter().zip(elements.chunks_exact_mut(T::SIZE.max(1))) {
        value.put(place, &mut heap)?;
    }
    Ok((elements, heap))
}

/// The values of elements; see [`to_elements`].
pub fn from_elements<T: H5Type>(elements: &[u8], heap: &Heap) -> Result<Vec<T>, TypeError> {
    const { assert!(T::OWNED, "`&str` is read as `String`, a slice as `Vec`: they belong to nobody") };
    let mut values = reserved(elements.len() / T::SIZE.max(1))?;
    for place in elements.chunks_exact(T::SIZE.max(1)) {
        values.push(T::take(place, heap)?);
    }
    Ok(values)
}

/// A list with room for `count` elements, or an error if there is not enough memory.
fn reserved<T>(count: usize) -> Result<Vec<T>, TypeError> {
    let mut values = Vec::new();
    match values.try_reserve_exact(count) {
        Ok(()) => Ok(values),
        Err(_) => Err(TypeError::value(format!("no memory for {count} of them"))),
    }
}
