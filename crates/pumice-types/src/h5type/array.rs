//! Arrays of a fixed length as one element.

use super::{H5Type, Heap, plain};
use crate::{Datatype, TypeError};

/// An array of fixed length as one element. Arrays of arrays are one array of more dimensions.
// SAFETY: an array has its elements one after another and nothing else: it is plain if they are.
unsafe impl<T: H5Type, const N: usize> H5Type for [T; N] {
    const PLAIN: bool = T::PLAIN;
    const SIZE: usize = N * T::SIZE;
    const OWNED: bool = T::OWNED;

    fn datatype() -> Datatype {
        let mut dims = vec![N as u32];
        let base = match T::datatype() {
            Datatype::Array(inner) => {
                dims.extend(&inner.dims);
                *inner.base
            }
            other => other,
        };
        Datatype::array(base, dims)
    }

    fn put(&self, place: &mut [u8], heap: &mut Heap) -> Result<(), TypeError> {
        if Self::PLAIN {
            return plain::put(self, place);
        }
        let places = place.chunks_exact_mut(T::SIZE.max(1));
        self.iter().zip(places).try_for_each(|(item, place)| item.put(place, heap))
    }

    fn take(place: &[u8], heap: &Heap) -> Result<Self, TypeError> {
        if Self::PLAIN {
            return plain::take(place);
        }
        let items = super::from_elements::<T>(place, heap)?;
        let missing = |items: Vec<T>| TypeError::value(format!("{} elements for {N}", items.len()));
        items.try_into().map_err(missing)
    }
}
