//! Strings and sequences of variable length.

use super::{H5Type, Heap, OrNull, REFERENCE, plain};
use crate::{Datatype, TypeError};

// SAFETY: it is not plain.
unsafe impl H5Type for String {
    const PLAIN: bool = false;
    const OWNED: bool = true;
    const SIZE: usize = REFERENCE;

    fn datatype() -> Datatype {
        Datatype::varlen_string(REFERENCE as u32)
    }

    fn put(&self, place: &mut [u8], heap: &mut Heap) -> Result<(), TypeError> {
        self.as_str().put(place, heap)
    }

    fn take(place: &[u8], heap: &Heap) -> Result<Self, TypeError> {
        let text = heap.list(place, 1)?;
        // Fortran and C leave a null byte at the end, which is not of the text.
        let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
        let text = &text[..end];
        std::str::from_utf8(text).map(str::to_owned).map_err(|_| {
            let shown: String = String::from_utf8_lossy(text).chars().take(40).collect();
            let reason = format!("{shown:?} is not UTF-8: read it as bytes, as `Strings`");
            TypeError::value(reason)
        })
    }
}

/// Text for writing; it is read as a `String`.
// SAFETY: it is not plain.
unsafe impl H5Type for &str {
    const PLAIN: bool = false;
    const OWNED: bool = false;
    const SIZE: usize = REFERENCE;

    fn datatype() -> Datatype {
        String::datatype()
    }

    fn put(&self, place: &mut [u8], heap: &mut Heap) -> Result<(), TypeError> {
        if self.as_bytes().contains(&0) {
            let reason = "a string with a null byte, which HDF5 takes for its end";
            return Err(TypeError::value(reason));
        }
        heap.push(self.as_bytes(), self.len(), place)
    }

    fn take(_: &[u8], _: &Heap) -> Result<Self, TypeError> {
        Err(TypeError::value("text is read as `String`"))
    }
}

// SAFETY: it is not plain.
unsafe impl<T: H5Type> H5Type for Vec<T> {
    const PLAIN: bool = false;
    const OWNED: bool = T::OWNED;
    // The size of an item is asked for so that a type that has sequences of itself does not compile.
    const SIZE: usize = {
        let _ = T::SIZE;
        REFERENCE
    };

    fn datatype() -> Datatype {
        Datatype::varlen(T::datatype(), REFERENCE as u32)
    }

    fn put(&self, place: &mut [u8], heap: &mut Heap) -> Result<(), TypeError> {
        self.as_slice().put(place, heap)
    }

    fn take(place: &[u8], heap: &Heap) -> Result<Self, TypeError> {
        let elements = heap.list(place, T::SIZE)?;
        if let Some(values) = plain::zeroed::<T>(elements.len() / T::SIZE.max(1)) {
            let mut values = values?;
            if let Some(bytes) = plain::bytes_mut(&mut values) {
                bytes.copy_from_slice(elements);
            }
            return Ok(values);
        }
        super::from_elements(elements, heap)
    }
}

/// A sequence for writing; it is read as a `Vec`.
// SAFETY: it is not plain.
unsafe impl<T: H5Type> H5Type for &[T] {
    const PLAIN: bool = false;
    const OWNED: bool = false;
    const SIZE: usize = REFERENCE;

    fn datatype() -> Datatype {
        Vec::<T>::datatype()
    }

    fn put(&self, place: &mut [u8], heap: &mut Heap) -> Result<(), TypeError> {
        if let Some(bytes) = plain::bytes(self) {
            return heap.push(bytes, self.len(), place);
        }
        // The objects of the items come first.
        let mut payload = vec![0; self.len() * T::SIZE];
        for (item, place) in self.iter().zip(payload.chunks_exact_mut(T::SIZE.max(1))) {
            item.put(place, heap)?;
        }
        heap.push(&payload, self.len(), place)
    }

    fn take(_: &[u8], _: &Heap) -> Result<Self, TypeError> {
        Err(TypeError::value("a sequence is read as `Vec`"))
    }
}

impl OrNull for String {}
impl<T: H5Type> OrNull for Vec<T> {}

/// Null, which differs from an empty text or sequence.
// SAFETY: it is not plain.
unsafe impl<T: OrNull> H5Type for Option<T> {
    const PLAIN: bool = false;
    const OWNED: bool = T::OWNED;
    const SIZE: usize = T::SIZE;

    fn datatype() -> Datatype {
        T::datatype()
    }

    fn put(&self, place: &mut [u8], heap: &mut Heap) -> Result<(), TypeError> {
        match self {
            Some(value) => value.put(place, heap)?,
            None => place.fill(0),
        }
        Ok(())
    }

    fn take(place: &[u8], heap: &Heap) -> Result<Self, TypeError> {
        match place.iter().all(|&byte| byte == 0) {
            true => Ok(None),
            false => T::take(place, heap).map(Some),
        }
    }
}
