//! HDF5 files that consist of several files: families (pieces of one size), split files (metadata
//! and raw data) and multi files (one file for each kind of data). This module has what they share,
//! and families; `members/multi.rs` has the others.
//!
//! They are opened by libhdf5's name for the whole: a family by a pattern such as `run%05d.h5`, a
//! split file `run` by the common part of `run-m.h5` and `run-r.h5` (or `run.meta` and `run.raw`),
//! a multi file `run` by that of `run-s.h5` and its companions. The file's own driver information
//! takes precedence over these names.

pub(crate) mod multi;

use crate::extension::Extension;
use crate::file::{Cache, File, find_superblock};
use crate::file_space::FileSpace;
use crate::version::CreateOptions;
use crate::{Error, Result};
use multi::ByKind;
use pumice_format::driver_info::{DriverInfo, Multi};
use pumice_format::messages::kind;
use pumice_format::object_header::{ObjectHeader, RawMessage};
use pumice_format::superblock::Superblock;
use pumice_medium::Medium;
use pumice_medium::journal::Journal;
use pumice_medium::{DataKind, MetadataIo};
use pumice_store::{FamilyStore, FileStore, Gaps, JoinedStore, Locking, Part, Store};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Digits of a family's numbers that make sense.
const MAX_WIDTH: usize = 100;

/// The kind of a file that consists of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form<'p> {
    /// One file, at a path if it is known.
    Single(Option<&'p Path>),
    /// Pieces of one size, one after another.
    Family,
    /// Files with addresses of their own.
    Multi,
}

/// A file that consists of several.
pub(crate) enum Several {
    /// Pieces of one size, in order.
    Family { pattern: Pattern, members: Vec<PathBuf> },
    /// Files by kind of data.
    Multi { whole: PathBuf, multi: Multi },
}

/// All files of one for editing.
pub(crate) struct Writable {
    pub(crate) store: Arc<dyn Store>,
    /// Gives up their locks.
    pub(crate) unlock: Unlock,
    pub(crate) form: Form<'static>,
}

/// Gives up the locks of an open file.
pub(crate) type Unlock = Box<dyn Fn() + Send + Sync>;

impl Several {
    /// The file that `path` names as a whole, where there is no file of this name.
    pub(crate) fn find(path: &Path) -> Option<Self> {
        if let Some(pattern) = path.to_str().and_then(Pattern::parse) {
            let members = pattern.members();
            return (!members.is_empty()).then_some(Self::Family { pattern, members });
        }
        Some(Self::Multi { whole: path.into(), multi: multi::find(path)? })
    }

    /// The kind of file to create or open; `new` takes it from the options.
    pub(crate) fn made(
        path: &Path,
        new: bool,
        options: &CreateOptions,
    ) -> io::Result<Option<Self>> {
        match (options.member_size, options.by_kind) {
            (None, None) => Ok(None),
            (Some(_), None) => Self::family(path, new).map(Some),
            (None, Some(kind)) => {
                let multi = multi::made(path, kind, new)?;
                Ok(Some(Self::Multi { whole: path.into(), multi }))
            }
            (Some(_), Some(_)) => {
                let what = "a file cannot be a family and a split or multi file: choose one";
                Err(io::Error::new(io::ErrorKind::InvalidInput, what))
            }
        }
    }

    /// The family that is to be made by this pattern.
    fn family(path: &Path, new: bool) -> io::Result<Self> {
        let Some(pattern) = path.to_str().and_then(Pattern::parse) else {
            let what = "a family is named by a pattern for its files' numbers, such as run%05d.h5";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        };
        let members = [0, 1].map(|number| PathBuf::from(pattern.name(number)));
        if let Some(other) = members.iter().find(|path| new && path.exists()) {
            let what = format!("{} is there", other.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
        }
        Ok(Self::Family { pattern, members: members.into_iter().take(1).collect() })
    }

    /// The file with the superblock.
    pub(crate) fn first(&self) -> PathBuf {
        match self {
            Self::Family { members, .. } => members.first().cloned().unwrap_or_default(),
            Self::Multi { whole, multi } => {
                let first = multi.members.first();
                first.map_or(whole.clone(), |member| member_path(whole, &member.name))
            }
        }
    }

    /// Opens it for reading.
    pub(crate) fn open(self, cache: Cache, options: &CreateOptions) -> Result<Arc<File>> {
        match self {
            Self::Family { pattern, .. } => {
                // Listed again: the last user may have added or removed members when it closed the
                // family.
                let members = pattern.members();
                let store = family_store(&members, member_size(&members)?);
                File::open_store(store, cache, false, Form::Family, options)
            }
            Self::Multi { whole, multi } => {
                let (multi, _) = multi::stored(&whole, &multi)?;
                let store = multi::reading(&whole, &multi);
                File::open_store(store, cache, false, Form::Multi, options)
            }
        }
    }

    /// Opens all members for editing, the first one locked. With options for a new file, the others
    /// are created or replaced.
    pub(crate) fn writable(
        self,
        first: Arc<FileStore>,
        new: Option<&CreateOptions>,
        locking: Locking,
    ) -> Result<Writable> {
        match self {
            Self::Family { pattern, .. } => {
                let size = new.and_then(|options| options.member_size);
                let store = writable_family(pattern, first, size, locking)?;
                let family = store.clone();
                let unlock: Unlock = Box::new(move || family.unlock());
                Ok(Writable { store, unlock, form: Form::Family })
            }
            Self::Multi { whole, multi } => {
                let (multi, said) = match new {
                    Some(_) => (multi, true),
                    None => multi::stored(&whole, &multi)?,
                };
                if !said {
                    let what = "changing a split or multi file that does not say of which files it \
                                consists; `pumice repack` makes one file of it, which can be changed";
                    return Err(Error::Unsupported(what.into()));
                }
                let store = multi::writing(first, &whole, &multi, new.is_some(), locking)?;
                let parts = store.clone();
                let unlock: Unlock = Box::new(move || parts.unlock());
                Ok(Writable { store, unlock, form: Form::Multi })
            }
        }
    }
}

/// Opens all members of a family for editing; a new family has members of `size` bytes.
fn writable_family(
    pattern: Pattern,
    first: Arc<FileStore>,
    new_size: Option<u64>,
    locking: Locking,
) -> Result<Arc<FamilyStore>> {
    let members = pattern.members();
    let Some(size) = new_size else {
        return family(first, member_size(&members)?, locking, pattern);
    };
    // The old family is removed as far as its superblock states its end; files behind that, or
    // beside another file, are not its members.
    let (old, end) = match stored_size(&members).ok().flatten() {
        Some(old) => {
            let found = find_superblock(&*family_store(&members, old));
            (old, found.map_or(0, |(_, total, superblock)| superblock.end_of_file.min(total)))
        }
        None => (size, 0),
    };
    let replaced = family(first.clone(), old, locking, pattern.clone())?;
    let emptied = replaced.settle(end).and_then(|()| replaced.set_len(0));
    emptied.map_err(|source| Error::Io { action: "empty the family".into(), source })?;
    drop(replaced);
    family(first, size, locking, pattern)
}

fn family(
    first: Arc<FileStore>,
    size: u64,
    locking: Locking,
    pattern: Pattern,
) -> Result<Arc<FamilyStore>> {
    let name = move |number| PathBuf::from(pattern.name(number));
    let opened = FamilyStore::open(first, size, locking, name);
    let failed = |source| Error::Io { action: "open the files of a family".into(), source };
    Ok(Arc::new(opened.map_err(failed)?))
}

/// The size of a family's members: from the file, or the length of the first one.
fn member_size(members: &[PathBuf]) -> Result<u64> {
    Ok(stored_size(members)?.unwrap_or(first_length(members)))
}

fn first_length(members: &[PathBuf]) -> u64 {
    let first = members.first().and_then(|first| first.metadata().ok());
    first.map_or(0, |metadata| metadata.len()).max(1)
}

/// Bytes of a family's members, if the file says that it is one.
fn stored_size(members: &[PathBuf]) -> Result<Option<u64>> {
    let size = first_length(members);
    match driver(family_store(members, size)) {
        Ok(Some(DriverInfo::Family { member_size })) => return Ok(Some(member_size)),
        Ok(Some(DriverInfo::Multi(_))) => return Err(wrong_driver("a family", "a multi file")),
        _ => {}
    }
    // Where a commit was not finished, the file may not say, but then its journal does. It is at the end
    // of all members if the first one is full, or else at the end of that.
    for members in [members, members.get(..1).unwrap_or_default()] {
        let store = family_store(members, size);
        if let Ok(Some(journal)) = Journal::find(&*store)
            && let Ok(Some(DriverInfo::Family { member_size })) =
                driver(journal.seen_through(store))
        {
            return Ok(Some(member_size));
        }
    }
    Ok(None)
}

fn family_store(members: &[PathBuf], size: u64) -> Arc<JoinedStore> {
    let part = |(place, path): (usize, &PathBuf)| Part {
        start: (place as u64).saturating_mul(size),
        length: size,
        path: path.clone(),
        offset: 0,
    };
    Arc::new(JoinedStore::new(members.iter().enumerate().map(part).collect(), Gaps::Errors))
}

/// The driver information of the file in this store.
fn driver(store: Arc<dyn Store>) -> Result<Option<DriverInfo>> {
    let (base, total, superblock) = find_superblock(&*store)?;
    let medium = Medium::new(store, base, total, superblock.sizes, false);
    Ok(Extension::load(&Arc::new(medium), &superblock)?.driver)
}

fn wrong_driver(named: &str, found: &str) -> Error {
    Error::Invalid(format!("named as {named}, but it is part of {found}"))
}

/// The driver information, and the place of its block in an older file.
type Driver = (Option<DriverInfo>, Option<(u64, u64)>);

/// Stores the driver information in a new file that consists of several. An extension of the
/// superblock gets this header.
pub(crate) fn begin(
    medium: &Arc<Medium>,
    superblock: &mut Superblock,
    space: &mut FileSpace,
    header: ObjectHeader,
    options: &CreateOptions,
) -> Result<Driver> {
    let driver = match (options.member_size, options.by_kind.map(ByKind::members)) {
        (Some(member_size), _) => DriverInfo::Family { member_size },
        (None, Some(multi)) => DriverInfo::Multi(multi),
        (None, None) => return Ok((None, None)),
    };
    if let Some(old) = &mut superblock.old {
        let block = driver.to_block();
        let (address, length) =
            (medium.allocate_for(DataKind::Superblock, block.len() as u64)?, block.len() as u64);
        medium.stage(address, block);
        old.driver_address = address;
        return Ok((Some(driver), Some((address, length))));
    }
    let message = RawMessage::new(kind::DRIVER_INFO, 0, driver.to_message());
    space.extend(medium, header, message)?;
    Ok((Some(driver), None))
}

/// Fails if the driver information says that the file is one of several, and names what to open.
pub(crate) fn refuse(driver: &DriverInfo, path: Option<&Path>) -> Result<()> {
    let name = path.and_then(Path::to_str).unwrap_or_default();
    let (what, whole) = match driver {
        DriverInfo::Family { .. } => ("a family of files", pattern_of(name)),
        DriverInfo::Multi(multi) => {
            let what = if multi.members.len() == 2 { "a split file" } else { "a multi file" };
            let ending = multi.members.first().and_then(|first| first.name.strip_prefix("%s"));
            (what, ending.and_then(|ending| name.strip_suffix(ending)).map(String::from))
        }
        _ => return Ok(()),
    };
    let advice = match whole {
        Some(whole) => format!("open the whole of it as \"{whole}\""),
        None if matches!(driver, DriverInfo::Family { .. }) => {
            "open the whole of it by a pattern such as \"name%05d.h5\"".into()
        }
        None => "open the whole of it by the name that its files begin with".into(),
    };
    Err(Error::Invalid(format!("one member of {what}: {advice}")))
}

/// The name of a member, whose template has `%s` for the whole.
fn member_path(whole: &Path, template: &str) -> PathBuf {
    match template.split_once("%s") {
        Some((before, after)) => {
            let mut name = std::ffi::OsString::from(before);
            name.push(whole);
            name.push(after);
            name.into()
        }
        None => template.into(),
    }
}

/// A family's pattern for the name of its first member.
fn pattern_of(name: &str) -> Option<String> {
    let end = name.rfind("0")? + 1;
    let digits = name[..end].bytes().rev().take_while(|&byte| byte == b'0').count();
    Some(format!("{}%0{digits}d{}", &name[..end - digits], &name[end..]))
}

/// A name with a number in it, as in C's `printf`: `%d`, `%5d`, `%05d`.
#[derive(Clone)]
pub(crate) struct Pattern {
    before: String,
    zeros: bool,
    width: usize,
    after: String,
}

impl Pattern {
    /// `None` if there is not exactly one number.
    fn parse(text: &str) -> Option<Self> {
        let (before, rest) = text.split_once('%')?;
        let zeros = rest.starts_with('0');
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let width = if digits == 0 { 0 } else { rest[..digits].parse().ok()? };
        let rest = rest[digits..].trim_start_matches('l');
        let after = rest.strip_prefix(['d', 'i', 'u'])?;
        if after.contains('%') || width > MAX_WIDTH {
            return None;
        }
        Some(Self { before: before.into(), zeros, width, after: after.into() })
    }

    /// The existing files with such names, from the first on.
    fn members(&self) -> Vec<PathBuf> {
        let names = (0..).map(|number| PathBuf::from(self.name(number)));
        names.take_while(|name| name.is_file()).collect()
    }

    fn name(&self, number: u64) -> String {
        let Self { before, zeros, width, after } = self;
        match zeros {
            true => format!("{before}{number:0width$}{after}"),
            false => format!("{before}{number:width$}{after}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::{self, Attribute};
    use crate::open_files::{Opening, open_path};
    use crate::version::LibraryVersion;
    use pumice_cache::{ChunkCache, Config};
    use pumice_medium::journal;
    use pumice_space::Extent;
    use pumice_types::H5Type;

    fn opened(path: &Path, opening: Opening, options: &CreateOptions) -> Result<Arc<File>> {
        open_path(path, opening, ChunkCache::new(Config::default()), Locking::default(), options)
    }

    #[test]
    fn a_commit_of_a_family_that_was_not_finished_is_finished_by_the_next_opening() {
        let folder = tempfile::tempdir().unwrap();
        let pattern = folder.path().join("%d.h5");
        let options = CreateOptions { member_size: Some(100), ..CreateOptions::default() };
        drop(opened(&pattern, Opening::Create, &options).unwrap());
        // The superblock and the block behind it, as if the commit had been about to replace them.
        let Some(several) = Several::find(&pattern) else { panic!("no family") };
        let first = Arc::new(FileStore::open_writable(several.first()).unwrap());
        let store = several.writable(first, None, Locking::Off).unwrap().store;
        let length = store.len().unwrap();
        assert!(length > 200, "several members");
        let mut whole = vec![0; length as usize];
        store.read_at(0, &mut whole).unwrap();
        let (head, tail) = whole.split_at(150);
        journal::write(&*store, length, &[(0, head), (150, tail)]).unwrap();
        store.write_at(20, &[0xee; 170]).unwrap();
        drop(store);
        let file = opened(&pattern, Opening::Read, &CreateOptions::default()).unwrap();
        assert_eq!(file.superblock().end_of_file, length, "as it is seen");
        drop(file);
        drop(opened(&pattern, Opening::Edit, &CreateOptions::default()).unwrap());
        let members =
            (0..).map_while(|at| std::fs::read(folder.path().join(format!("{at}.h5"))).ok());
        assert_eq!(members.flatten().collect::<Vec<u8>>(), whole, "for good");
    }

    #[test]
    fn members_have_the_size_that_a_journal_says_where_the_superblock_is_torn() {
        for (number, old) in
            [LibraryVersion::Earliest, LibraryVersion::V110].into_iter().enumerate()
        {
            let folder = tempfile::tempdir().unwrap();
            let pattern = folder.path().join("%d.h5");
            let (size, library_version) = (Some(5000), Some(old));
            let options =
                CreateOptions { member_size: size, library_version, ..Default::default() };
            drop(opened(&pattern, Opening::Create, &options).unwrap());
            // One member that is not full, whose superblock a commit was about to replace.
            let path = folder.path().join("0.h5");
            let store = FileStore::open_writable(&path).unwrap();
            let (length, mut whole) = (store.len().unwrap(), std::fs::read(&path).unwrap());
            assert!(length < 5000 && !folder.path().join("1.h5").exists());
            whole.truncate(length as usize);
            journal::write(&store, length, &[(0, &whole)]).unwrap();
            store.write_at(4, &[0xee; 40]).unwrap();
            if number > 0 {
                // A foreign file makes no difference.
                std::fs::write(folder.path().join("1.h5"), "mine").unwrap();
            }
            let read = opened(&pattern, Opening::Read, &CreateOptions::default()).unwrap();
            assert_eq!(read.superblock().end_of_file, length);
            drop(read);
            let file = opened(&pattern, Opening::Edit, &CreateOptions::default()).unwrap();
            let address = file.medium().allocate_zeroed(9000);
            if number > 0 {
                let refused = address.unwrap_err().to_string();
                assert!(
                    refused.contains("1.h5") && refused.contains("move or delete"),
                    "{refused}"
                );
                assert_eq!(std::fs::read(folder.path().join("1.h5")).unwrap(), b"mine");
                continue;
            }
            address.unwrap();
            let sizes =
                [0, 1].map(|at| folder.path().join(format!("{at}.h5")).metadata().unwrap().len());
            assert_eq!(sizes[0], 5000, "{sizes:?}");
        }
    }

    #[test]
    fn a_family_that_is_replaced_goes_and_what_stands_behind_it_stays() {
        let folder = tempfile::tempdir().unwrap();
        let pattern = folder.path().join("%d.h5");
        let options = |size| CreateOptions { member_size: Some(size), ..CreateOptions::default() };
        drop(opened(&pattern, Opening::Create, &options(80)).unwrap());
        let exists = |number: usize| folder.path().join(format!("{number}.h5")).exists();
        let count = (0..).take_while(|&number| exists(number)).count();
        assert!(count > 2);
        let other = folder.path().join(format!("{count}.h5"));
        std::fs::write(&other, "mine").unwrap();
        drop(opened(&pattern, Opening::Create, &options(1 << 20)).unwrap());
        assert!(exists(0) && (1..count).all(|number| !exists(number)));
        assert_eq!(std::fs::read(&other).unwrap(), b"mine");
        // A file that is no family has no members, however much of it is missing.
        let single = CreateOptions::default();
        drop(opened(&folder.path().join("0.h5"), Opening::Create, &single).unwrap());
        let whole = FileStore::open_writable(folder.path().join("0.h5")).unwrap();
        whole.set_len(whole.len().unwrap() - 10).unwrap();
        std::fs::write(folder.path().join("1.h5"), "mine, too").unwrap();
        drop(opened(&pattern, Opening::Create, &options(1 << 20)).unwrap());
        assert_eq!(std::fs::read(folder.path().join("1.h5")).unwrap(), b"mine, too");
    }

    #[test]
    fn a_family_that_somebody_else_changed_since_it_was_found_is_opened_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let pattern = folder.path().join("%d.h5");
        let options = CreateOptions { member_size: Some(500), ..CreateOptions::default() };
        drop(opened(&pattern, Opening::Create, &options).unwrap());
        let cache = || ChunkCache::new(Config::default());
        let count =
            || (0..).take_while(|at| folder.path().join(format!("{at}.h5")).exists()).count();
        let read = |found: Several| {
            let file = found.open(cache(), &CreateOptions::default());
            file.map(|file| file.superblock().end_of_file)
        };
        for length in [3000, 0] {
            // Found while another user has it open, who then closes it.
            let [read_later, edited_later] = [(); 2].map(|()| Several::find(&pattern).unwrap());
            let before = count();
            let file = opened(&pattern, Opening::Edit, &CreateOptions::default()).unwrap();
            let root = file.root().unwrap();
            match length {
                0 => attribute::remove(&file, &root, "a").unwrap(),
                _ => {
                    let bytes = Extent::simple(&[length]).unwrap();
                    let long = Attribute::new("a", u8::datatype(), bytes, vec![7; length as usize]);
                    attribute::set(&file, &root, long).unwrap();
                }
            }
            drop(root);
            file.close().unwrap();
            assert_ne!(count(), before, "members came or went");
            let end = read(read_later).unwrap();
            assert_eq!(end.div_ceil(500), count() as u64);
            let first = Arc::new(FileStore::open_writable(edited_later.first()).unwrap());
            let store = edited_later.writable(first, None, Locking::Off).unwrap().store;
            assert_eq!(store.len().unwrap(), end);
        }
    }

    #[test]
    fn a_family_is_made_where_none_of_it_is_there_and_by_a_pattern_alone() {
        let folder = tempfile::tempdir().unwrap();
        let options = CreateOptions { member_size: Some(1000), ..CreateOptions::default() };
        let (pattern, member) = (folder.path().join("%d.h5"), folder.path().join("1.h5"));
        std::fs::write(&member, "mine").unwrap();
        let message = |made: Result<Arc<File>>| made.err().unwrap().to_string();
        let refused = message(opened(&pattern, Opening::CreateNew, &options));
        assert!(refused.contains("1.h5"), "{refused}");
        assert_eq!(std::fs::read(&member).unwrap(), b"mine");
        assert!(!folder.path().join("0.h5").exists());
        let refused = message(opened(&folder.path().join("one.h5"), Opening::Create, &options));
        assert!(refused.contains("run%05d.h5"), "{refused}");
        let none = CreateOptions { member_size: Some(0), ..CreateOptions::default() };
        assert!(opened(&folder.path().join("none%d.h5"), Opening::Create, &none).is_err());
    }

    #[test]
    fn patterns_are_those_of_printf() {
        let name = |pattern: &str, number| Pattern::parse(pattern).map(|found| found.name(number));
        assert_eq!(name("a%05d.h5", 12).unwrap(), "a00012.h5");
        assert_eq!(name("a%3d.h5", 12).unwrap(), "a 12.h5");
        assert_eq!(name("a-%lld", 123).unwrap(), "a-123");
        for other in ["a.h5", "a%s", "a%d%d", "a%", "a%99999999999999999999d", "a%1000d"] {
            assert!(Pattern::parse(other).is_none(), "{other}");
        }
    }

    #[test]
    fn the_pattern_of_a_first_member_gives_its_name() {
        for name in ["folder.0/family_00000.h5", "a0", "run-000-x.h5", "00"] {
            let pattern = pattern_of(name).unwrap();
            assert_eq!(Pattern::parse(&pattern).unwrap().name(0), name);
        }
        assert_eq!(pattern_of("none.h5"), None);
    }
}
