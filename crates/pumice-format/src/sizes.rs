//! The two field widths that a superblock fixes for its whole file.

/// Widths in bytes of addresses ("size of offsets") and of lengths ("size of lengths").
///
/// ```
/// assert_eq!(pumice_format::Sizes::default().offset, 8);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes of an address.
    pub offset: u8,
    /// Bytes of a length.
    pub length: u8,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { offset: 8, length: 8 }
    }
}
