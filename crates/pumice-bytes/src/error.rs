//! The one way in which a decoder refuses its input.

use std::borrow::Cow;
use std::fmt;

/// How many versions, classes or types above the known ones count as newer.
const NEWER: u64 = 8;

/// Invalid bytes: the structure, its address, what was expected and what was found.
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
    /// The address of the offending field in the file (or, in nested blobs, in the blob).
    pub address: u64,
    /// The expectation.
    pub expected: Cow<'static, str>,
    /// The finding.
    pub found: String,
    /// Whether a newer program would know it.
    newer: bool,
}

impl DecodeError {
    /// Builds an error; `found` is anything that can be shown.
    pub fn new(
        structure: &'static str,
        address: u64,
        expected: impl Into<Cow<'static, str>>,
        found: impl fmt::Display,
    ) -> Self {
        Self {
            structure,
            address,
            expected: expected.into(),
            found: found.to_string(),
            newer: false,
        }
    }

    /// An error of a version, class or type that this program does not know. `newest` is the highest
    /// that it knows.
    pub fn unknown(
        structure: &'static str,
        address: u64,
        expected: impl Into<Cow<'static, str>>,
        newest: impl Into<u64>,
        found: impl Into<u64>,
    ) -> Self {
        let (newest, found) = (newest.into(), found.into());
        let newer = found > newest && found - newest <= NEWER;
        Self { newer, ..Self::new(structure, address, expected, found) }
    }

    /// An error of something that only a newer program can know.
    pub fn newer(self) -> Self {
        Self { newer: true, ..self }
    }

    /// Whether a version, class or type is a little above the known ones: the file is newer than
    /// this program. A value far above them is damage.
    ///
    /// ```
    /// use pumice_bytes::DecodeError;
    ///
    /// let version = |found: u8| DecodeError::unknown("superblock", 8, "version 0 to 3", 3u8, found);
    /// assert!(version(4).is_newer());
    /// assert!(!version(200).is_newer());
    /// assert_eq!(version(4).to_string(), "superblock at 0x8: expected version 0 to 3, found 4");
    /// assert!(!DecodeError::new("superblock", 8, "an address", 4).is_newer());
    /// ```
    pub fn is_newer(&self) -> bool {
        self.newer
    }
}
