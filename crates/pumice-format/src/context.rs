//! The context of a decoder: the file's field widths, and the address of the bytes.

use crate::Sizes;
use pumice_bytes::Reader;

/// Field widths of the file, and the file address of the bytes being decoded (for errors only).
///
/// ```
/// use pumice_format::{Context, Sizes};
///
/// let context = Context::new(Sizes::default()).at(0x800);
/// assert_eq!(context.address, 0x800);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Context {
    /// Widths of addresses and lengths.
    pub sizes: Sizes,
    /// The address of the bytes.
    pub address: u64,
}

impl Context {
    /// A context at address 0.
    pub fn new(sizes: Sizes) -> Self {
        Self { sizes, address: 0 }
    }

    /// The same widths at another address.
    pub fn at(self, address: u64) -> Self {
        Self { address, ..self }
    }

    /// Bytes of an address.
    pub fn offset_width(&self) -> usize {
        usize::from(self.sizes.offset)
    }

    /// Bytes of a length.
    pub fn length_width(&self) -> usize {
        usize::from(self.sizes.length)
    }

    /// A reader of `bytes`, which begin at this context's address.
    pub fn reader<'a>(&self, structure: &'static str, bytes: &'a [u8]) -> Reader<'a> {
        Reader::new(structure, self.address, bytes)
    }
}
