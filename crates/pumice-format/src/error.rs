//! The errors of encoding and decoding structures.

use crate::DecodeError;

/// Any failure of this crate.
///
/// Decoders return the [`DecodeError`] alone; only encoders have reasons of their own.
///
/// ```
/// use pumice_format::FormatError;
///
/// let error = FormatError::too_large("attribute message", "name length", 65_535, 70_000);
/// assert_eq!(error.to_string(), "attribute message: name length is 70000, the format allows 65535");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The bytes are invalid.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A value that the field meant for it cannot hold.
    #[error("{structure}: {field} is {found}, the format allows {limit}")]
    TooLarge {
        /// The structure being encoded.
        structure: &'static str,
        /// Its field.
        field: &'static str,
        /// The largest value that the field can hold.
        limit: u64,
        /// The value asked for.
        found: u64,
    },
    /// A structure that has no encoding, or whose parts contradict each other.
    #[error("{structure}: cannot encode {what}")]
    Unencodable {
        /// The structure being encoded.
        structure: &'static str,
        /// The fault.
        what: String,
    },
}

impl FormatError {
    /// A value larger than its field.
    pub fn too_large(structure: &'static str, field: &'static str, limit: u64, found: u64) -> Self {
        Self::TooLarge { structure, field, limit, found }
    }

    /// A structure without an encoding.
    pub fn unencodable(structure: &'static str, what: impl Into<String>) -> Self {
        Self::Unencodable { structure, what: what.into() }
    }
}

/// Checks that `value` fits a field of at most `limit`.
pub(crate) fn fits(
    structure: &'static str,
    field: &'static str,
    limit: u64,
    value: usize,
) -> Result<u64, FormatError> {
    let value = value as u64;
    if value > limit {
        return Err(FormatError::too_large(structure, field, limit, value));
    }
    Ok(value)
}
