//! One entry of a filter pipeline message: which filter, how it is to be run.

use crate::{location, registry};

/// A filter as a file describes it: id, flags, name and parameters ("client data values").
///
/// ```
/// let spec = pumice_filter::FilterSpec::deflate(4);
/// assert_eq!((spec.id, spec.parameters.as_slice()), (1, &[4][..]));
/// assert!(spec.optional);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FilterSpec {
    /// The filter's registered id.
    pub id: u16,
    /// Whether data that the filter cannot encode is stored without it.
    pub optional: bool,
    /// A name for people; ids below 256 are stored without.
    pub name: Option<String>,
    /// What the filter's encoder and decoder are given.
    pub parameters: Vec<u32>,
}

impl FilterSpec {
    /// Groups the bytes of equal significance of elements of `element_size` bytes.
    pub fn shuffle(element_size: u32) -> Self {
        Self { id: registry::SHUFFLE, optional: true, name: None, parameters: vec![element_size] }
    }

    /// Compresses with zlib's format at `level` 0 to 9.
    pub fn deflate(level: u32) -> Self {
        Self { id: registry::DEFLATE, optional: true, name: None, parameters: vec![level] }
    }

    /// Appends a checksum. Never optional, as in libhdf5.
    pub fn fletcher32() -> Self {
        Self { id: registry::FLETCHER32, optional: false, name: None, parameters: Vec::new() }
    }

    /// Compresses with Zstandard at `level` 1 to 22 (3 is its default).
    pub fn zstd(level: u32) -> Self {
        let name = Some("zstd".to_owned());
        Self { id: registry::ZSTD, optional: true, name, parameters: vec![level] }
    }

    /// Rewrites the cell locations of a sparse chunk (section 0) compactly; see [`location`].
    pub fn location() -> Self {
        let name = Some(location::NAME.to_owned());
        Self { id: location::ID, optional: true, name, parameters: Vec::new() }
    }
}
