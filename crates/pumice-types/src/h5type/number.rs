//! Numbers, truth values, complex numbers and fixed text.

use super::{H5Type, Heap};
use crate::model::{
    ByteOrder, CharacterSet, Enumeration, FixedString, Float, Integer, StringPadding,
};
use crate::{Datatype, FixedText, TypeError};
use half::f16;

/// `put` and `take` of types that are `Pod`.
macro_rules! copied {
    ($type:ty) => {
        const PLAIN: bool = true;
        const SIZE: usize = size_of::<$type>();
        const OWNED: bool = true;

        #[inline]
        fn put(&self, place: &mut [u8], _: &mut Heap) -> Result<(), TypeError> {
            place.copy_from_slice(bytemuck::bytes_of(self));
            Ok(())
        }

        #[inline]
        fn take(place: &[u8], _: &Heap) -> Result<Self, TypeError> {
            Ok(bytemuck::pod_read_unaligned(place))
        }
    };
}

macro_rules! integers {
    ($($name:ident $signed:literal)*) => {$(
        // SAFETY: it is `Pod`, and its datatype has its size.
        unsafe impl H5Type for $name {
            copied!($name);

            fn datatype() -> Datatype {
                let size = size_of::<$name>() as u32;
                Datatype::Integer(Integer::new(size, ByteOrder::NATIVE, $signed))
            }
        }
    )*};
}

macro_rules! floats {
    ($($name:ident $layout:ident)*) => {$(
        // SAFETY: it is `Pod`, and its datatype has its size.
        unsafe impl H5Type for $name {
            copied!($name);

            fn datatype() -> Datatype {
                Datatype::Float(Float::$layout(ByteOrder::NATIVE))
            }
        }
    )*};
}

integers! { i8 true i16 true i32 true i64 true u8 false u16 false u32 false u64 false }
floats! { f16 half f32 single f64 double }

// SAFETY: it is `Pod`, and its datatype has its size.
unsafe impl<const N: usize> H5Type for FixedText<N> {
    copied!(Self);

    fn datatype() -> Datatype {
        let (padding, charset) = (StringPadding::NullPad, CharacterSet::Utf8);
        Datatype::String(FixedString { size: N as u32, padding, charset })
    }
}

/// Stored as by h5py: an enumeration of a byte with the names `FALSE` and `TRUE`.
// SAFETY: it is not plain.
unsafe impl H5Type for bool {
    const PLAIN: bool = false;
    const SIZE: usize = 1;
    const OWNED: bool = true;

    fn datatype() -> Datatype {
        let byte = Enumeration::new(Integer::new(1, ByteOrder::Little, true));
        Datatype::Enum(byte.with("FALSE", &[0]).with("TRUE", &[1]))
    }

    #[inline]
    fn put(&self, place: &mut [u8], _: &mut Heap) -> Result<(), TypeError> {
        place.fill(u8::from(*self));
        Ok(())
    }

    #[inline]
    fn take(place: &[u8], _: &Heap) -> Result<Self, TypeError> {
        match place {
            [0] => Ok(false),
            [1] => Ok(true),
            other => Err(TypeError::value(format!("{other:?} is neither FALSE nor TRUE"))),
        }
    }
}

/// Stored as by h5py: a compound of `r` and `i`.
#[cfg(feature = "complex")]
mod complex {
    use super::*;
    use num_complex::Complex;

    macro_rules! complex {
        ($($part:ident)*) => {$(
            // SAFETY: it is `Pod`, two parts one after the other, and its datatype says so.
            unsafe impl H5Type for Complex<$part> {
                copied!(Self);

                fn datatype() -> Datatype {
                    Datatype::compound([("r", <$part>::datatype()), ("i", <$part>::datatype())])
                }
            }

            impl crate::Element for Complex<$part> {}
        )*};
    }

    complex! { f32 f64 }
}
