//! A file that is read without a lock, so that another program may be changing it.
//!
//! All reads are of the file as it was when it was opened, or last refreshed by [`Store::renew`]; a
//! read of another state fails with [`ChangedMeanwhile`]. So a reader who goes through a structure
//! block by block never has parts of two states.
//!
//! The length of a file and the time of its last change, which the system sets before it changes a
//! byte, tell whether it has changed. That time advances in steps, and a second change within a
//! step would not show. So a time counts only once it is older than a step; opening waits that
//! long.

use crate::{FileStore, ReadOp, Renewal, Store};
use std::io;
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::ThreadId;
use std::time::{Duration, Instant, SystemTime};

/// The longest step of the time of last change on file systems that note fractions of seconds, and on others.
const STEP: Duration = Duration::from_millis(10);
const WHOLE_SECONDS: Duration = Duration::from_secs(2);

/// The longest wait for a file that changes all the time.
const PATIENCE: Duration = Duration::from_secs(3);

/// The error of a read after another program has changed the file.
#[derive(Debug)]
pub struct ChangedMeanwhile;

impl std::fmt::Display for ChangedMeanwhile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("another program is writing to it, or has")
    }
}

impl std::error::Error for ChangedMeanwhile {}

impl ChangedMeanwhile {
    /// Whether an error is this one, or its cause is.
    pub fn is_cause(error: &io::Error) -> bool {
        let inner = error.get_ref().map(|inner| inner as &dyn std::error::Error);
        inner.is_some_and(|inner| {
            inner.is::<Self>() || inner.source().is_some_and(|own| own.is::<Self>())
        })
    }
}

/// A file that is read without a lock.
///
/// ```
/// use pumice_store::{FileStore, Store, UnlockedStore};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("a.bin");
/// std::fs::write(&path, b"one")?;
/// let store = UnlockedStore::new(FileStore::open(&path)?.into())?;
/// let mut bytes = [0; 3];
/// store.read_at(0, &mut bytes)?;
/// std::fs::write(&path, b"two")?;
/// assert!(store.read_at(0, &mut bytes).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct UnlockedStore {
    file: Arc<FileStore>,
    view: RwLock<View>,
}

#[derive(Debug)]
struct View {
    stamp: Stamp,
    access: Access,
}

/// The readers that are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    All,
    One(ThreadId),
    None,
}

/// The mark of a state of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: SystemTime,
    length: u64,
}

impl UnlockedStore {
    /// The file as it is now. Waits a moment if it was changed just now; fails if it changes all
    /// the time.
    pub fn new(file: Arc<FileStore>) -> io::Result<Self> {
        let view = View { stamp: quiet(&file)?, access: Access::All };
        Ok(Self { file, view: RwLock::new(view) })
    }

    /// Whether the file is in the state that was last taken.
    pub fn is_unchanged(&self) -> bool {
        let view = self.view.read().unwrap_or_else(PoisonError::into_inner);
        stamp(&self.file).is_ok_and(|now| now == view.stamp)
    }

    /// Fails unless the bytes that were read are of the known state.
    fn check(&self) -> io::Result<()> {
        let view = self.view.read().unwrap_or_else(PoisonError::into_inner);
        let allowed = match view.access {
            Access::All => true,
            Access::One(thread) => thread == std::thread::current().id(),
            Access::None => false,
        };
        if allowed && stamp(&self.file)? == view.stamp { Ok(()) } else { Err(changed()) }
    }

    /// A read that counts only if the file has not changed when it is done.
    fn read<T>(&self, read: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let result = read();
        // Where a file was cut, that is the reason.
        self.check()?;
        result
    }
}

fn changed() -> io::Error {
    io::Error::other(ChangedMeanwhile)
}

fn stamp(file: &FileStore) -> io::Result<Stamp> {
    let (modified, length) = file.modified()?;
    Ok(Stamp { modified, length })
}

/// The stamp of the file, once no change could leave it the same.
fn quiet(file: &FileStore) -> io::Result<Stamp> {
    let until = Instant::now() + PATIENCE;
    loop {
        let found = stamp(file)?;
        let fraction = found.modified.duration_since(SystemTime::UNIX_EPOCH);
        let step = match fraction.is_ok_and(|since| since.subsec_nanos() == 0) {
            true => WHOLE_SECONDS,
            false => STEP,
        };
        // A time to come is another than that of any change.
        let age = SystemTime::now().duration_since(found.modified);
        let Some(rest) = age.map_or(None, |age| step.checked_sub(age)) else { return Ok(found) };
        if Instant::now() > until {
            return Err(changed());
        }
        std::thread::sleep(rest + Duration::from_millis(1));
    }
}

impl Store for UnlockedStore {
    fn len(&self) -> io::Result<u64> {
        self.read(|| self.file.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read(|| self.file.read_at(offset, buffer))
    }

    fn read_vectored(&self, ops: &mut [ReadOp<'_>]) -> io::Result<()> {
        self.read(|| self.file.read_vectored(ops))
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn is_unlocked(&self) -> bool {
        true
    }

    fn renew(&self, step: Renewal) -> io::Result<()> {
        let set = |access: Access, stamp: Option<Stamp>| {
            let mut view = self.view.write().unwrap_or_else(PoisonError::into_inner);
            view.access = access;
            view.stamp = stamp.unwrap_or(view.stamp);
        };
        match step {
            Renewal::Stop => set(Access::None, None),
            Renewal::Look => {
                let stamp = quiet(&self.file)?;
                set(Access::One(std::thread::current().id()), Some(stamp));
            }
            Renewal::Done => set(Access::All, None),
        }
        Ok(())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.bin");
        std::fs::write(&path, [1; 100]).unwrap();
        (folder, path)
    }

    #[test]
    fn reads_after_any_change_fail_until_it_is_looked_at_again() {
        let (_folder, path) = place();
        let store = UnlockedStore::new(FileStore::open(&path).unwrap().into()).unwrap();
        let mut bytes = [0; 4];
        for round in 2..6 {
            store.read_at(0, &mut bytes).unwrap();
            std::fs::write(&path, [round; 100]).unwrap();
            let error = store.read_at(0, &mut bytes).unwrap_err();
            assert!(ChangedMeanwhile::is_cause(&error), "{error}");
            assert!(store.len().is_err());
            store.renew(Renewal::Stop).unwrap();
            assert!(store.read_at(0, &mut bytes).is_err());
            store.renew(Renewal::Look).unwrap();
            store.read_at(0, &mut bytes).unwrap();
            let elsewhere = std::thread::scope(|scope| {
                scope.spawn(|| store.read_at(0, &mut [0; 4]).is_err()).join().unwrap()
            });
            assert!(elsewhere, "only who looks at it again may read meanwhile");
            store.renew(Renewal::Done).unwrap();
            assert_eq!(bytes, [round; 4]);
        }
    }
}
