//! Releases of libhdf5: which of them can read a structure, and the format of a new file.

use crate::dataset::VirtualView;
use crate::group::GroupSpec;
pub use crate::members::multi::ByKind;
use crate::share::LeastSizes;
use crate::{Error, Result};
use pumice_cache::DatasetOptions;
use pumice_format::messages::{FileSpaceInfo, FileSpaceStrategy};
use pumice_medium::allocator::Alignment;
use pumice_medium::journal::Durability;

/// A release of libhdf5, as far as it matters for the form in which objects are stored.
///
/// ```
/// use pumice_engine::version::LibraryVersion;
/// assert!(LibraryVersion::Earliest < LibraryVersion::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LibraryVersion {
    /// The oldest form that can express what is stored: superblock 0, version 1 headers, symbol
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
    /// The draft of 2.3, libhdf5's `H5F_LIBVER_V300`: filters store their text configuration. No
    /// release reads that yet, so it must be asked for.
    V300,
}

impl LibraryVersion {
    /// The newest release.
    pub const LATEST: Self = Self::V200;

    /// The newest form known, of a release that is to come.
    pub const DRAFT: Self = Self::V300;

    /// The version of a new file's superblock.
    pub(crate) fn superblock(self) -> u8 {
        match self {
            Self::Earliest => 0,
            Self::V18 => 2,
            _ => 3,
        }
    }

    /// The first release that reads layouts of this version.
    pub(crate) fn of_layout(version: u8) -> Self {
        match version {
            0..=3 => Self::V18,
            4 => Self::V110,
            _ => Self::V200,
        }
    }

    /// The first release that reads datatypes of this version.
    pub(crate) fn of_datatype(version: u8) -> Self {
        match version {
            0..=3 => Self::V18,
            4 => Self::V112,
            _ => Self::V200,
        }
    }

    /// The first release that reads filter pipelines of dense datasets of this version.
    pub(crate) fn of_pipeline(version: u8) -> Self {
        match version {
            0..=2 => Self::V18,
            _ => Self::V300,
        }
    }

    /// The release that a superblock of this version was written for.
    pub(crate) fn of_superblock(version: u8) -> Self {
        match version {
            0 | 1 => Self::Earliest,
            2 => Self::V18,
            _ => Self::V110,
        }
    }
}

impl CreateOptions {
    /// Fails for options that no new file can have, as far as they tell without a store.
    pub(crate) fn check(&self) -> Result<()> {
        let user_block = self.user_block;
        if user_block != 0 && (user_block < 512 || !user_block.is_power_of_two()) {
            let what = format!("a user block has 512, 1024, 2048, ... bytes, not {user_block}");
            return Err(Error::Invalid(what));
        }
        if self.member_size == Some(0) {
            return Err(Error::Invalid(
                "the members of a family of files need at least one byte".into(),
            ));
        }
        if let Some((offset, length)) = self.widths
            && ![offset, length].iter().all(|bytes| matches!(bytes, 2 | 4 | 8))
        {
            let what =
                format!("addresses and lengths have 2, 4 or 8 bytes, not {offset} and {length}");
            return Err(Error::Invalid(what));
        }
        let ranks = self.group_ranks.iter().flat_map(|&(leaf, internal)| [leaf, internal]);
        if let Some(rank) = ranks.chain(self.chunk_rank).find(|rank| !RANKS.contains(rank)) {
            let what = format!("the rank of a B-tree's nodes is one of {RANKS:?}, not {rank}");
            return Err(Error::Invalid(what));
        }
        let (low, high) = (self.library_version.unwrap_or_default(), self.newest_version);
        match high {
            Some(LibraryVersion::Earliest) => Err(Error::Invalid(
                "the newest release cannot be `Earliest`: name a release".into(),
            )),
            Some(high) if low > high => {
                let what =
                    format!("the oldest release, {low:?}, is later than the newest, {high:?}");
                Err(Error::Invalid(what))
            }
            _ => Ok(()),
        }
    }
}

/// Ranks that nodes of B-trees can have: libhdf5 counts their entries in 16 bits.
const RANKS: std::ops::RangeInclusive<u16> = 1..=32_767;

/// The options of a new file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreateOptions {
    /// The oldest release that is to read new objects. In an existing file, unless set, the one of
    /// its superblock.
    pub library_version: Option<LibraryVersion>,
    /// The newest release whose forms new objects may have. Unless set, the newest known one,
    /// drafts included.
    pub newest_version: Option<LibraryVersion>,
    /// Bytes before the superblock that are the user's: 0, or a power of two from 512 on.
    pub user_block: u64,
    /// The properties of the root group.
    pub root: GroupSpec,
    /// The file-space settings.
    pub space: SpaceOptions,
    /// Bytes of each file of a family, if the file is to be one.
    pub member_size: Option<u64>,
    /// The members of the file by kind of data, if it is not one file.
    pub by_kind: Option<ByKind>,
    /// The events that commits survive; also for an existing file.
    pub durability: Durability,
    /// The cache options of each dataset that is opened; also for an existing file.
    pub chunk_cache: Option<DatasetOptions>,
    /// The memory for changed metadata, if not the default.
    pub metadata_limit: Option<usize>,
    /// Whether the file is marked as open for writing from opening to closing.
    pub mark_open: bool,
    /// Whether a file with that mark is edited all the same.
    pub ignore_mark: bool,
    /// Whether there is one writer and many readers: a file that is read may be written elsewhere,
    /// one that is edited may be read.
    pub swmr: bool,
    /// The alignment of larger ranges; also for an existing file.
    pub alignment: Option<Alignment>,
    /// Bytes that are set aside for metadata at a time, if not the default.
    pub metadata_block: Option<u64>,
    /// The messages that a new file's objects can share.
    pub shared_messages: LeastSizes,
    /// The extent of virtual datasets without end; also for an existing file.
    pub virtual_view: VirtualView,
    /// Bytes of addresses and of lengths in a new file, if not 8.
    pub widths: Option<(u8, u8)>,
    /// Ranks of symbol table nodes and of a group's B-tree nodes in a new file, if not the usual ones.
    pub group_ranks: Option<(u16, u16)>,
    /// The rank of nodes of version 1 chunk indexes in a new file, if not the usual one.
    pub chunk_rank: Option<u16>,
}

/// Bytes that libhdf5 sets aside at a time, for metadata and for raw data.
const USUAL_BLOCK: u64 = 2048;

impl CreateOptions {
    /// The options that apply to other files which this one names.
    pub(crate) fn for_others(&self) -> Self {
        Self {
            library_version: self.library_version,
            newest_version: self.newest_version,
            durability: self.durability,
            metadata_limit: self.metadata_limit,
            mark_open: self.mark_open,
            alignment: self.alignment,
            chunk_cache: self.chunk_cache,
            virtual_view: self.virtual_view,
            swmr: false,
            ..Self::default()
        }
    }

    /// Bytes that a new file sets aside at a time, for metadata and for raw data.
    ///
    /// Files of the older format are laid out as libhdf5 does it. For others this must be asked
    /// for: it would only make them larger.
    pub(crate) fn blocks(&self) -> Option<(u64, u64)> {
        let managed = matches!(
            self.space.strategy,
            FileSpaceStrategy::FreeSpaceManagers | FileSpaceStrategy::Aggregators
        );
        let old = self.library_version == Some(LibraryVersion::Earliest);
        let usual = old.then_some(USUAL_BLOCK);
        let metadata = self.metadata_block.or(usual).filter(|_| managed)?;
        Some((metadata, USUAL_BLOCK))
    }
}

/// The file-space settings of a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpaceOptions {
    /// The strategy.
    pub strategy: FileSpaceStrategy,
    /// Whether free space is stored when the file is closed.
    pub persist: bool,
    /// The smallest free section that is remembered.
    pub threshold: u64,
    /// Bytes of a page.
    pub page_size: u64,
}

impl Default for SpaceOptions {
    fn default() -> Self {
        let FileSpaceInfo { strategy, persist, threshold, page_size, .. } = Default::default();
        Self { strategy, persist, threshold, page_size }
    }
}

impl From<SpaceOptions> for FileSpaceInfo {
    fn from(options: SpaceOptions) -> Self {
        let SpaceOptions { strategy, persist, threshold, page_size } = options;
        Self { strategy, persist, threshold, page_size, ..Self::default() }
    }
}
