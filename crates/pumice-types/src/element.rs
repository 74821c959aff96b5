//! The number types of Rust that are elements as they lie in memory.

use half::f16;

use crate::Datatype;
use crate::model::{ByteOrder, CharacterSet, FixedString, Float, Integer, StringPadding};
use std::fmt;
use std::str::Utf8Error;

/// A Rust type whose bytes are an element of [`Element::datatype`].
///
/// ```
/// use pumice_types::{Datatype, Element};
///
/// assert_eq!(u8::datatype(), Datatype::u8());
/// assert_eq!(<f64 as Element>::datatype().size(), 8);
/// ```
pub trait Element: bytemuck::Pod + Send + Sync + 'static {
    /// The datatype in this machine's byte order.
    fn datatype() -> Datatype;
}

macro_rules! integer_elements {
    ($($name:ident $signed:literal)*) => {
        $(
            impl Element for $name {
                fn datatype() -> Datatype {
                    let size = size_of::<$name>() as u32;
                    Datatype::Integer(Integer::new(size, ByteOrder::NATIVE, $signed))
                }
            }
        )*
    };
}

macro_rules! float_elements {
    ($($name:ident $layout:ident)*) => {
        $(
            impl Element for $name {
                fn datatype() -> Datatype {
                    Datatype::Float(Float::$layout(ByteOrder::NATIVE))
                }
            }
        )*
    };
}

integer_elements! { i8 true i16 true i32 true i64 true u8 false u16 false u32 false u64 false }
float_elements! { f16 half f32 single f64 double }

/// An array of fixed length as one element. Arrays of arrays are one array of more dimensions.
impl<T: Element, const N: usize> Element for [T; N] {
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
}

/// A string of `N` bytes, padded with null bytes; UTF-8.
///
/// ```
/// use pumice_types::{Element, FixedText};
///
/// let name = FixedText::<8>::new("pumice").expect("it fits");
/// assert_eq!(name.as_str(), Ok("pumice"));
/// assert!(FixedText::<3>::new("pumice").is_none());
/// assert_eq!(FixedText::<8>::datatype().size(), 8);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct FixedText<const N: usize>([u8; N]);

impl<const N: usize> FixedText<N> {
    /// The text, padded; nothing if it is longer.
    pub fn new(text: &str) -> Option<Self> {
        let mut bytes = [0; N];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(Self(bytes))
    }

    /// The bytes before the padding.
    pub fn as_bytes(&self) -> &[u8] {
        let end = self.0.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        &self.0[..end]
    }

    /// The text, if it is UTF-8.
    pub fn as_str(&self) -> Result<&str, Utf8Error> {
        std::str::from_utf8(self.as_bytes())
    }
}

impl<const N: usize> fmt::Debug for FixedText<N> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", String::from_utf8_lossy(self.as_bytes()))
    }
}

impl<const N: usize> Element for FixedText<N> {
    fn datatype() -> Datatype {
        let (padding, charset) = (StringPadding::NullPad, CharacterSet::Utf8);
        Datatype::String(FixedString { size: N as u32, padding, charset })
    }
}

/// A C-like enum whose variants are the names of an enumeration; see `pumice::H5Type`.
///
/// It is no [`Element`], because not every integer is one of its variants.
pub trait Enumerated: Sized {
    /// The integer of its representation.
    type Integer: Element;

    /// The enumeration, in this machine's byte order.
    fn datatype() -> Datatype;

    /// A variant's integer.
    fn to_integer(&self) -> Self::Integer;

    /// The variant of an integer.
    fn from_integer(integer: Self::Integer) -> Option<Self>;
}
