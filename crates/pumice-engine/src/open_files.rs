//! Files opened by path: each is open once in a process, and locked against other programs.
//!
//! Two independent openings of one file would have two states of its metadata. So the second
//! opening shares the first, whatever path led to it, as in libhdf5. It is refused if sharing is
//! not what was asked for: a file open for reading cannot be changed, and an open file cannot be
//! created anew.
//!
//! The last user closes the file. From then on nobody can share it; a caller who opens it waits
//! until it has left the list, which is the last step of closing.
//!
//! A child of a fork does not share the files of its parent: it has a list of its own, opens files for
//! itself and keeps the parent's locks.
//!
//! Lock order: the list of open files before everything else; it is held while a superblock is read.

use crate::file::{Cache, File};
use crate::members::{Form, Several, Unlock};
use crate::version::CreateOptions;
use crate::{Error, Result};
use pumice_cache::PerProcess;
use pumice_store::{ChangedMeanwhile, FileStore, Locking, Store, UnlockedStore};
use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// The longest wait for a stable state of a file that others are changing.
const PATIENCE: Duration = Duration::from_secs(3);

/// The purpose of opening a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// Reading.
    Read,
    /// Reading and changing.
    Edit,
    /// Made, or emptied if it is there.
    Create,
    /// Made; an error if it is there.
    CreateNew,
}

impl Opening {
    fn verb(self) -> &'static str {
        match self {
            Self::Read => "open",
            Self::Edit => "open for editing",
            Self::Create | Self::CreateNew => "create",
        }
    }

    fn creates(self) -> bool {
        matches!(self, Self::Create | Self::CreateNew)
    }

    fn open(self, path: &Path) -> io::Result<FileStore> {
        match self {
            Self::Read => FileStore::open(path),
            Self::Edit => FileStore::open_writable(path),
            Self::Create => FileStore::open_or_create(path),
            Self::CreateNew => FileStore::create_new(path),
        }
    }
}

/// Opens or creates the HDF5 file at `path`, or shares it if this process has it open.
///
/// ```
/// use pumice_cache::{ChunkCache, Config};
/// use pumice_engine::open_files::{Opening, open_path};
/// use pumice_engine::version::CreateOptions;
/// use pumice_store::Locking;
///
/// let folder = tempfile::tempdir().unwrap();
/// let (path, cache) = (folder.path().join("a.h5"), ChunkCache::new(Config::default()));
/// let (locking, options) = (Locking::default(), CreateOptions::default());
/// let file = open_path(&path, Opening::Create, cache.clone(), locking, &options)?;
/// let again = open_path(&path, Opening::Read, cache.clone(), locking, &options)?;
/// assert!(std::sync::Arc::ptr_eq(&file, &again));
/// # Ok::<(), pumice_engine::Error>(())
/// ```
pub fn open_path(
    path: &Path,
    opening: Opening,
    cache: Cache,
    locking: Locking,
    options: &CreateOptions,
) -> Result<Arc<File>> {
    let failed = |source| {
        let action = format!("{} {}", opening.verb(), path.display());
        Error::Io { action, source }
    };
    let at_path = |error: Error| error.at(&path.display().to_string());
    if opening.creates() {
        // Before anything is made or emptied.
        File::check_creation(&cache, options).map_err(at_path)?;
    }
    let (store, several) = find(path, opening, options).map_err(failed)?;
    let store = Arc::new(store);
    let identity = store.identity().map_err(failed)?;
    let (mut files, shared) = open_or_closed(identity);
    if let Some(file) = shared {
        // Ours may have become the last handle: the list must be free when it goes.
        drop(files);
        return share(file, opening).map_err(failed);
    }
    let locked = store.lock(locking, opening != Opening::Read).map_err(failed)?;
    if opening == Opening::Edit {
        store.watch().map_err(failed)?;
    }
    let (file, unlock) =
        match locked || opening != Opening::Read || options.swmr || several.is_some() {
            true => open_locked(&store, several, path, opening, cache, locking, options),
            false => open_unlocked(&store, path, cache, options),
        }
        .map_err(at_path)?;
    let readers = Box::new(move || store.lock(locking, false).map(drop));
    let (process, path) = (std::process::id(), path.to_path_buf());
    file.settle(OpenEntry { identity, process, unlock, readers, path, locking });
    files.insert(identity, Arc::downgrade(&file));
    Ok(file)
}

/// The file at a path, or the first one where it names several.
fn find(
    path: &Path,
    opening: Opening,
    options: &CreateOptions,
) -> io::Result<(FileStore, Option<Several>)> {
    if opening.creates()
        && let Some(several) = Several::made(path, opening == Opening::CreateNew, options)?
    {
        return Ok((opening.open(&several.first())?, Some(several)));
    }
    match opening.open(path) {
        Ok(store) => Ok((store, None)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match Several::find(path) {
            // The file with the superblock stands for all.
            Some(several) => Ok((opening.open(&several.first())?, Some(several))),
            None => Err(error),
        },
        Err(error) => Err(error),
    }
}

/// Opens or creates the file in a locked store, with its other members.
fn open_locked(
    store: &Arc<FileStore>,
    several: Option<Several>,
    path: &Path,
    opening: Opening,
    cache: Cache,
    locking: Locking,
    options: &CreateOptions,
) -> Result<(Arc<File>, Unlock)> {
    let (first, one) = (store.clone(), Form::Single(Some(path)));
    let unlock: Unlock = Box::new(move || first.unlock());
    let file = match (opening, several) {
        (Opening::Read, Some(several)) => several.open(cache, options)?,
        (Opening::Read, None) => File::open_store(store.clone(), cache, false, one, options)?,
        (Opening::Edit, None) => File::open_store(store.clone(), cache, true, one, options)?,
        (Opening::Create | Opening::CreateNew, None) => create(store.clone(), cache, options)?,
        (_, Some(several)) => {
            let new = opening.creates().then_some(options);
            let all = several.writable(store.clone(), new, locking)?;
            let file = match new {
                Some(_) => create(all.store, cache, options)?,
                None => File::open_store(all.store, cache, true, all.form, options)?,
            };
            return Ok((file, all.unlock));
        }
    };
    Ok((file, unlock))
}

/// Opens a file for reading without a lock, as of one moment. Tries again if the file changed
/// meanwhile.
fn open_unlocked(
    store: &Arc<FileStore>,
    path: &Path,
    cache: Cache,
    options: &CreateOptions,
) -> Result<(Arc<File>, Unlock)> {
    let until = Instant::now() + PATIENCE;
    loop {
        let unlocked = UnlockedStore::new(store.clone()).map_err(|source| {
            let changed = ChangedMeanwhile::is_cause(&source);
            let action = "open".into();
            if changed { Error::Changed(source.to_string()) } else { Error::Io { action, source } }
        })?;
        let unlocked = Arc::new(unlocked);
        let one = Form::Single(Some(path));
        let opened = File::open_store(unlocked.clone(), cache.clone(), false, one, options);
        match opened {
            Err(_) if !unlocked.is_unchanged() && Instant::now() < until => {}
            opened => return Ok((opened?, Box::new(|| ()))),
        }
    }
}

/// Creates a file in place of a store's contents.
fn create(store: Arc<dyn Store>, cache: Cache, options: &CreateOptions) -> Result<Arc<File>> {
    let failed = |source| Error::Io { action: "empty the file".into(), source };
    // Truncating a file, be it empty, makes some systems write it out when it is closed.
    if !store.is_empty().map_err(failed)? || options.member_size.is_some() {
        store.set_len(0).map_err(failed)?;
    }
    File::create(store, cache, options)
}

fn share(file: Arc<File>, opening: Opening) -> io::Result<Arc<File>> {
    let refusal = match opening {
        Opening::Read => return Ok(file),
        Opening::Edit if file.writable() => return Ok(file),
        Opening::Edit => "this process has it open for reading; close that first",
        Opening::Create | Opening::CreateNew => "this process has it open; close that first",
    };
    Err(io::Error::new(io::ErrorKind::WouldBlock, refusal))
}

type Identity = (u64, u64);
type Files = HashMap<Identity, Weak<File>>;

/// The list, and who waits for a file to leave it.
static OPEN: PerProcess<(Mutex<Files>, Condvar)> = PerProcess::new();

/// The open files, and the one with this identity if it is among them; one that is just being closed is
/// waited for.
fn open_or_closed(identity: Identity) -> (MutexGuard<'static, Files>, Option<Arc<File>>) {
    let (files, closed) = OPEN.here();
    let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let Some(listed) = files.get(&identity) else { return (files, None) };
        // Its last user may drop it at any moment, even while the list is held.
        match listed.upgrade() {
            Some(file) => return (files, Some(file)),
            None => files = closed.wait(files).unwrap_or_else(PoisonError::into_inner),
        }
    }
}

/// A file's entry in the list of open files; dropping it gives up the lock.
pub(crate) struct OpenEntry {
    identity: Identity,
    /// The process that opened it.
    process: u32,
    unlock: Unlock,
    readers: Box<dyn Fn() -> io::Result<()> + Send + Sync>,
    path: PathBuf,
    locking: Locking,
}

impl OpenEntry {
    /// The path that the file was first opened by.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the path still names this file. Also true for deleted files and files of several
    /// members.
    pub(crate) fn is_at_its_path(&self) -> bool {
        std::fs::metadata(&self.path)
            .map_or(true, |found| (found.dev(), found.ino()) == self.identity)
    }

    /// Lets other programs share the lock for reading, not for writing.
    pub(crate) fn let_readers_in(&self) -> Result<()> {
        let failed = |source| Error::Io { action: "share the lock".into(), source };
        (self.readers)().map_err(failed)
    }

    /// How the file is locked.
    pub(crate) fn locking(&self) -> Locking {
        self.locking
    }
}

impl Drop for OpenEntry {
    fn drop(&mut self) {
        if std::process::id() != self.process {
            return;
        }
        // A thread that reads ahead, for example, may hold the store for a moment longer.
        (self.unlock)();
        let (files, closed) = OPEN.here();
        files.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.identity);
        closed.notify_all();
    }
}
