//! Which releases of libhdf5 can read what is written, and what a new file is to be like.

use crate::group::GroupSpec;

/// A release of libhdf5, as far as it matters for the form in which objects are stored.
///
/// ```
/// use pumice_engine::version::LibraryVersion;
/// assert!(LibraryVersion::Earliest < LibraryVersion::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LibraryVersion {
    /// The oldest form that can express what is stored: superblock 0, headers of version 1, symbol
    /// tables, version 1 B-trees.
    Earliest,
    /// 1.8: superblock 2, headers of version 2, links in messages and heaps.
    V18,
    /// 1.10: superblock 3, chunk indexes by the shape of a dataset.
    #[default]
    V110,
    /// 1.12.
    V112,
    /// 1.14.
    V114,
    /// 2.0.
    V200,
}

impl LibraryVersion {
    /// The newest release known.
    pub const LATEST: Self = Self::V200;

    /// The version of a new file's superblock.
    pub(crate) fn superblock(self) -> u8 {
        match self {
            Self::Earliest => 0,
            Self::V18 => 2,
            _ => 3,
        }
    }

    /// What a file with a superblock of this version was made for.
    pub(crate) fn of_superblock(version: u8) -> Self {
        match version {
            0 | 1 => Self::Earliest,
            2 => Self::V18,
            _ => Self::V110,
        }
    }
}

/// What a new file is to be like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreateOptions {
    /// The oldest release that is to read new objects. For a file that is there, what its superblock
    /// was made for, unless set.
    pub library_version: Option<LibraryVersion>,
    /// Bytes before the superblock that are the user's: 0, or a power of two from 512 on.
    pub user_block: u64,
    /// What the root group is like.
    pub root: GroupSpec,
}
