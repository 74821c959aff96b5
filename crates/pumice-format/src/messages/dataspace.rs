//! The dataspace message (0x0001): the extent of a dataset or an attribute.
//!
//! The bytes are `pumice-space`'s, which needs the same encoding inside structured chunks.

use super::Era;
use crate::{Context, DecodeError, FormatError, Sizes};
use pumice_space::{Extent, serial};

const STRUCTURE: &str = "dataspace message";

/// The version that is written: the only one that knows null dataspaces.
const VERSION: u8 = 2;
/// The version that releases before 1.8 read.
const OLD_VERSION: u8 = 1;

/// Decodes the body of a message, version 1 or 2.
pub fn decode(bytes: &[u8], context: &Context) -> Result<Extent, DecodeError> {
    let mut reader = context.reader(STRUCTURE, bytes);
    serial::decode_extent(&mut reader, context.length_width())
}

/// Appends the body of a message as files of an era have it; that of a null dataspace is always new.
pub fn encode_for(
    era: Era,
    extent: &Extent,
    sizes: Sizes,
    out: &mut Vec<u8>,
) -> Result<(), FormatError> {
    let version = if era == Era::Old && !extent.is_null() { OLD_VERSION } else { VERSION };
    serial::encode_extent(extent, version, usize::from(sizes.length), out)
        .map_err(|error| FormatError::unencodable(STRUCTURE, error.to_string()))
}

/// Appends the body of a message.
///
/// ```
/// use pumice_format::messages::dataspace;
/// use pumice_format::{Context, Sizes};
/// use pumice_space::Extent;
///
/// let extent = Extent::simple(&[3, 4]).unwrap();
/// let mut bytes = Vec::new();
/// dataspace::encode(&extent, Sizes::default(), &mut bytes)?;
/// assert_eq!(dataspace::decode(&bytes, &Context::default())?, extent);
/// # Ok::<(), pumice_format::FormatError>(())
/// ```
pub fn encode(extent: &Extent, sizes: Sizes, out: &mut Vec<u8>) -> Result<(), FormatError> {
    encode_for(Era::New, extent, sizes, out)
}
