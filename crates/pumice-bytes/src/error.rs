//! The one way in which a decoder refuses its input.

use std::borrow::Cow;
use std::fmt;

/// How many versions ahead a newer program may be.
const NEWER: u64 = 8;

/// Bytes that are not what they should be: which structure, where, what was expected, what was found.
///
/// ```
/// let error = pumice_bytes::DecodeError::new("superblock", 8, "version 2 or 3", 9);
/// assert_eq!(error.to_string(), "superblock at 0x8: expected version 2 or 3, found 9");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{structure} at {address:#x}: expected {expected}, found {found}")]
pub struct DecodeError {
    /// The on-disk structure that was being decoded.
    pub structure: &'static str,
    /// Where in the file (or, for nested blobs, in the blob) the offending field stands.
    pub address: u64,
    /// What a valid file has there.
    pub expected: Cow<'static, str>,
    /// What this one has.
    pub found: String,
}

impl DecodeError {
    /// Builds an error; `found` is anything that can be shown.
    pub fn new(
        structure: &'static str,
        address: u64,
        expected: impl Into<Cow<'static, str>>,
        found: impl fmt::Display,
    ) -> Self {
        Self { structure, address, expected: expected.into(), found: found.to_string() }
    }

    /// Whether a version was found that is somewhat above those that are expected: the file is newer than
    /// this program. One far above them is damage.
    ///
    /// ```
    /// use pumice_bytes::DecodeError;
    ///
    /// assert!(DecodeError::new("superblock", 8, "version 0 to 3", 4).is_newer());
    /// assert!(!DecodeError::new("superblock", 8, "version 0 to 3", 200).is_newer());
    /// assert!(!DecodeError::new("superblock", 8, "an address", 4).is_newer());
    /// ```
    pub fn is_newer(&self) -> bool {
        let Some(at) = self.expected.find("version ") else { return false };
        let words = self.expected[at..].split(|letter: char| !letter.is_ascii_digit());
        let newest = words.filter_map(|word| word.parse::<u64>().ok()).max();
        match (newest, self.found.parse::<u64>()) {
            (Some(newest), Ok(found)) => (newest + 1..=newest + NEWER).contains(&found),
            _ => false,
        }
    }
}
