//! Split and multi files: one file for each of several kinds of data, each with a range of
//! addresses and an end of its own. The driver information (names, starts and ends of the members)
//! is written by every commit.
//!
//! Invariants:
//! - The member with the superblock begins at address 0.
//! - The end of a member in the driver information lies behind all that committed metadata refers
//!   to, and the member is at least that long.

use super::{driver, member_path, wrong_driver};
use crate::{Error, Result};
use pumice_format::driver_info::{DataKind, DriverInfo, Multi, MultiMember};
use pumice_format::messages::{FileSpaceInfo, FileSpaceStrategy};
use pumice_medium::Medium;
use pumice_medium::allocator::PartSpace;
use pumice_medium::journal::Journal;
use pumice_store::{FileStore, Gaps, JoinedStore, Locking, Part, PartedStore, Store};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The members of a new file, by kind of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ByKind {
    /// Metadata in `NAME-m.h5`, raw data in `NAME-r.h5`: as h5py and the HDF5 tools name them.
    Split,
    /// Metadata in `NAME.meta`, raw data in `NAME.raw`: as libhdf5 names them unless told otherwise.
    SplitMetaRaw,
    /// A file for each kind of data: superblock (`NAME-s.h5`), B-trees (`-b`), raw data (`-r`), global heap
    /// (`-g`), local heaps (`-l`) and object headers (`-o`).
    Multi,
}

/// The endings of members' names, the one with the superblock first.
const NAMES: [(ByKind, &[&str]); 3] = [
    (ByKind::Split, &["-m.h5", "-r.h5"]),
    (ByKind::SplitMetaRaw, &[".meta", ".raw"]),
    (ByKind::Multi, &["-s.h5", "-b.h5", "-r.h5", "-g.h5", "-l.h5", "-o.h5"]),
];

/// The last address, of which libhdf5 gives each member an equal share unless told otherwise.
const LAST_ADDRESS: u64 = u64::MAX - 1;

/// Raw data and global heaps in a member of their own.
const SPLIT_MAP: [u8; 6] = [1, 1, 3, 3, 1, 1];

const KINDS: [DataKind; 6] = [
    DataKind::Superblock,
    DataKind::Tree,
    DataKind::Raw,
    DataKind::GlobalHeap,
    DataKind::LocalHeap,
    DataKind::Header,
];

impl ByKind {
    /// The members as libhdf5 makes them, empty.
    pub(crate) fn members(self) -> Multi {
        let named = NAMES.iter().find(|(kind, _)| *kind == self);
        let endings = named.map_or(&[][..], |(_, endings)| endings);
        let share = LAST_ADDRESS / endings.len().max(1) as u64;
        let member = |(place, ending): (usize, &&str)| MultiMember {
            start: place as u64 * share,
            used: 0,
            name: format!("%s{ending}"),
        };
        let map = if self == Self::Multi { [0; 6] } else { SPLIT_MAP };
        Multi { map, members: endings.iter().enumerate().map(member).collect() }
    }

    /// The first address of each member.
    pub fn starts(self) -> Vec<u64> {
        self.members().members.iter().map(|member| member.start).collect()
    }
}

/// The members of a file of this name, judged by the files that exist.
pub(super) fn find(whole: &Path) -> Option<Multi> {
    let there = |ending: &&str| member_path(whole, &format!("%s{ending}")).is_file();
    let found = NAMES.iter().find(|(_, endings)| endings.first().is_some_and(there));
    found.map_or_else(|| find_said(whole), |(kind, _)| Some(kind.members()))
}

/// The members where names have other endings, from the driver information of a file whose name
/// begins so.
fn find_said(whole: &Path) -> Option<Multi> {
    // A file that is missing mostly has an extension, as sources of virtual datasets do: no folder is
    // searched for each of them.
    if whole.extension().is_some() {
        return None;
    }
    let name = whole.file_name()?.as_encoded_bytes();
    let folder = whole.parent().filter(|folder| !folder.as_os_str().is_empty());
    for entry in folder.unwrap_or(".".as_ref()).read_dir().ok()?.flatten() {
        let begins_so = entry.file_name().as_encoded_bytes().starts_with(name);
        let path = whole.with_file_name(entry.file_name());
        if !begins_so || !path.is_file() {
            continue;
        }
        let Ok(store) = FileStore::open(&path) else { continue };
        if let Ok(Some(DriverInfo::Multi(multi))) = said(Arc::new(store))
            && multi.members.first().is_some_and(|first| member_path(whole, &first.name) == path)
        {
            return Some(multi);
        }
    }
    None
}

/// The driver information of a file. A commit that is not finished may have replaced half of it.
fn said(store: Arc<dyn Store>) -> Result<Option<DriverInfo>> {
    let failed = |source| Error::Io { action: "look for an unfinished commit".into(), source };
    match Journal::find(&*store).map_err(failed)? {
        Some(journal) => driver(journal.seen_through(store)),
        None => driver(store),
    }
}

/// The members of a new file. None may be there if it is to be `new`.
pub(super) fn made(whole: &Path, kind: ByKind, new: bool) -> io::Result<Multi> {
    let multi = kind.members();
    let mut paths = multi.members.iter().map(|member| member_path(whole, &member.name));
    if let Some(other) = paths.find(|path| new && path.exists()) {
        let what = format!("{} is there", other.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
    }
    Ok(multi)
}

/// The members by the driver information, found through the guessed ones, and whether the file has
/// such information.
pub(super) fn stored(whole: &Path, guessed: &Multi) -> Result<(Multi, bool)> {
    match said(reading(whole, guessed))? {
        Some(DriverInfo::Multi(multi)) => match multi.members.first() {
            Some(first) if first.start == 0 => Ok((multi, true)),
            _ => {
                let what = "a multi file whose superblock is not at address 0";
                Err(Error::Unsupported(what.into()))
            }
        },
        Some(DriverInfo::Family { .. }) => Err(wrong_driver("a multi file", "a family")),
        _ => Ok((guessed.clone(), false)),
    }
}

/// Opens all members for reading. A missing one is an error only when something in it is read.
pub(super) fn reading(whole: &Path, multi: &Multi) -> Arc<JoinedStore> {
    let part = |member: &MultiMember| {
        let path = member_path(whole, &member.name);
        Part { start: member.start, length: limit(multi, member) - member.start, path, offset: 0 }
    };
    Arc::new(JoinedStore::new(multi.members.iter().map(part).collect(), Gaps::Errors))
}

/// The address where the next member begins.
fn limit(multi: &Multi, member: &MultiMember) -> u64 {
    let starts = multi.members.iter().map(|other| other.start);
    starts.filter(|&start| start > member.start).min().unwrap_or(u64::MAX)
}

/// Opens all members for editing, the first one locked. Those of a `new` file are created or
/// emptied.
pub(super) fn writing(
    first: Arc<FileStore>,
    whole: &Path,
    multi: &Multi,
    new: bool,
    locking: Locking,
) -> Result<Arc<PartedStore>> {
    let place = |member: &MultiMember| (member.start, member_path(whole, &member.name));
    let mut places = multi.members.iter().map(place);
    let (_, path) = places.next().unwrap_or_default();
    let others: Vec<(u64, PathBuf)> = places.collect();
    let opened = match new {
        true => PartedStore::create(first, &path, others, locking),
        false => PartedStore::open(first, &path, others, locking),
    };
    let failed = |source| Error::Io { action: "open the members of the file".into(), source };
    Ok(Arc::new(opened.map_err(failed)?))
}

/// Tells a medium of the members of its file, which is edited.
pub(crate) fn divide(medium: &Medium, starts: &[u64], multi: &Multi) -> Result<()> {
    let mut members: Vec<&MultiMember> = multi.members.iter().collect();
    members.sort_by_key(|member| member.start);
    if members.iter().map(|member| member.start).ne(starts.iter().copied()) {
        let what = "the file's members begin elsewhere than the store's parts";
        return Err(Error::Invalid(what.into()));
    }
    // The bytes before the superblock are not addressed.
    let relative = |place: u64| place.saturating_sub(medium.base());
    let space = |member: &&MultiMember| {
        let (start, limit) = (member.start, limit(multi, member));
        let end = start.checked_add(member.used).filter(|&end| end <= limit)?;
        Some(PartSpace { start: relative(start), end: relative(end), limit: relative(limit) })
    };
    let Some(spaces) = members.iter().map(space).collect::<Option<Vec<_>>>() else {
        let what = "a member of the file uses more than its range of addresses";
        return Err(Error::Invalid(what.into()));
    };
    let place = |kind| {
        let start = multi.members.get(multi.member(kind)).map(|member| member.start);
        members.iter().position(|other| Some(other.start) == start).unwrap_or_default()
    };
    medium.divide(&spaces, KINDS.map(place));
    Ok(())
}

/// Fails if a member is shorter than its used part.
pub(crate) fn check_lengths(store: &dyn Store, multi: &Multi) -> Result<()> {
    for MultiMember { start, used, name } in &multi.members {
        let failed = |source| Error::Io { action: "find the file's size".into(), source };
        let found = store.room(*start).map_err(failed)?;
        if found < *used {
            let name = name.replace("%s", "NAME");
            let what = format!("its member {name} has {found} byte(s) of {used}: it is truncated");
            return Err(Error::Invalid(what));
        }
    }
    Ok(())
}

/// The driver information for members whose used parts end at these addresses.
pub(crate) fn with_ends(multi: &Multi, base: u64, ends: &[u64]) -> DriverInfo {
    let mut multi = multi.clone();
    let mut members: Vec<&mut MultiMember> = multi.members.iter_mut().collect();
    members.sort_by_key(|member| member.start);
    for (member, end) in members.into_iter().zip(ends) {
        member.used = end.saturating_add(base).saturating_sub(member.start);
    }
    DriverInfo::Multi(multi)
}

/// Fails for file-space settings that libhdf5 does not have in such files.
pub(crate) fn check_space(info: &FileSpaceInfo) -> Result<()> {
    if info.strategy != FileSpaceStrategy::Paged && !info.persist {
        return Ok(());
    }
    let what = "pages, or free space that is remembered, in a split or multi file: libhdf5 has neither \
                there; leave `space_strategy` and `persist_free_space` as they are, or make one file";
    Err(Error::Unsupported(what.into()))
}
