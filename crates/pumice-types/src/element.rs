//! Elements that are plain old data, and fixed text.

use crate::H5Type;
use half::f16;
use std::fmt;
use std::str::Utf8Error;

/// An [`H5Type`] whose bytes in memory are an element, known to the compiler: the element type of
/// columns and compressed matrices.
///
/// ```
/// use pumice_types::{Datatype, Element, H5Type};
///
/// fn bytes<T: Element>(values: &[T]) -> usize {
///     values.len() * T::datatype().size()
/// }
/// assert_eq!(bytes(&[1.5f64, 2.5]), 16);
/// assert_eq!(u8::datatype(), Datatype::u8());
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not plain: its bytes in memory are no element of an HDF5 datatype",
    note = "numbers, arrays of them, `FixedText` and `Complex` are plain",
    note = "for a struct of your own: `#[derive(pumice::H5Type, Clone, Copy)] #[repr(C)] #[h5(plain)]`"
)]
pub trait Element: H5Type + bytemuck::Pod {}

macro_rules! elements {
    ($($name:ident)*) => {$( impl Element for $name {} )*};
}

elements! { i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 }

impl<T: Element, const N: usize> Element for [T; N] {}

impl<const N: usize> Element for FixedText<N> {}

/// A string of `N` bytes, padded with null bytes; UTF-8.
///
/// ```
/// use pumice_types::{FixedText, H5Type};
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
    /// The text, padded; `None` if it is longer.
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
