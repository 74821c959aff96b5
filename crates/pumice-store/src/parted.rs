//! Several files as one store, each with a place and an end of its own: split and multi files, changed in
//! place.
//!
//! The length of the store is that of its first file. The gap between the end of one file and the
//! beginning of the next is neither read nor written, unless the file grows there.

use crate::observer::Observer;
use crate::{FileStore, Locking, ReadOp, Store, WriteOp, named};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Files that each begin at an offset of their own.
///
/// ```
/// use pumice_store::{FileStore, Locking, PartedStore, Store};
/// use std::sync::Arc;
///
/// # let folder = tempfile::tempdir()?;
/// let [first, second] = ["meta", "raw"].map(|name| folder.path().join(name));
/// let meta = Arc::new(FileStore::create(&first)?);
/// let others = vec![(1 << 60, second.clone())];
/// let store = PartedStore::create(meta, &first, others, Locking::default())?;
/// store.write_at((1 << 60) + 2, b"pumice")?;
/// assert_eq!(std::fs::read(&second)?, b"\0\0pumice");
/// store.set_len((1 << 60) + 4)?;
/// assert_eq!((store.len()?, store.room(1 << 60)?), (0, 4));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct PartedStore {
    /// In order; the first one begins at 0.
    parts: Vec<Part>,
    /// Whether files were created that their folder may lose with the power.
    made: AtomicBool,
    /// Called before every change of a file.
    observer: Observer,
}

struct Part {
    start: u64,
    /// The offset where the next one begins.
    limit: u64,
    path: PathBuf,
    file: Arc<FileStore>,
}

impl PartedStore {
    /// Opens the existing files: the first one is open (and locked if wanted); the others are
    /// opened, locked and watched.
    pub fn open(
        first: Arc<FileStore>,
        path: &Path,
        others: Vec<(u64, PathBuf)>,
        locking: Locking,
    ) -> io::Result<Self> {
        let open = |path: &Path| {
            let file = FileStore::open_writable(path)?;
            file.lock(locking, true)?;
            file.watch()?;
            Ok(file)
        };
        Self::new(first, path, others, false, open)
    }

    /// Opens the files, created or emptied, the first one included.
    pub fn create(
        first: Arc<FileStore>,
        path: &Path,
        others: Vec<(u64, PathBuf)>,
        locking: Locking,
    ) -> io::Result<Self> {
        let make = |path: &Path| {
            let file = FileStore::open_or_create(path)?;
            file.lock(locking, true)?;
            Ok(file)
        };
        // Nothing is emptied before all are known to be different and not in use.
        let store = Self::new(first, path, others, true, make)?;
        for part in store.parts.iter().filter(|part| !part.file.is_empty().unwrap_or(false)) {
            part.file.set_len(0).map_err(|error| named(&part.path, error))?;
        }
        Ok(store)
    }

    fn new(
        first: Arc<FileStore>,
        path: &Path,
        others: Vec<(u64, PathBuf)>,
        made: bool,
        open: impl Fn(&Path) -> io::Result<FileStore>,
    ) -> io::Result<Self> {
        let mut seen = vec![first.identity()?];
        let path = path.to_path_buf();
        let mut parts = vec![Part { start: 0, limit: u64::MAX, path, file: first }];
        for (start, path) in others {
            let file = open(&path).map_err(|error| named(&path, error))?;
            let identity = file.identity()?;
            let taken = parts.iter().any(|part| part.start == start);
            if taken || seen.contains(&identity) {
                let what = "one file, or one place, for two parts of a file";
                return Err(named(&path, io::Error::new(io::ErrorKind::InvalidInput, what)));
            }
            seen.push(identity);
            parts.push(Part { start, limit: u64::MAX, path, file: Arc::new(file) });
        }
        parts.sort_by_key(|part| part.start);
        let starts: Vec<u64> = parts.iter().skip(1).map(|part| part.start).collect();
        parts.iter_mut().zip(starts).for_each(|(part, next)| part.limit = next);
        Ok(Self { parts, made: AtomicBool::new(made), observer: Observer::default() })
    }

    /// The store with `before` called before every change of a file, for tests of what an ended
    /// program leaves.
    pub fn observed(mut self, before: impl Fn() + Send + Sync + 'static) -> Self {
        self.observer = Observer::new(before);
        self
    }

    /// Gives up the locks.
    pub fn unlock(&self) {
        self.parts.iter().for_each(|part| part.file.unlock());
    }

    /// The part that the byte at `offset` is in.
    fn part(&self, offset: u64) -> &Part {
        // The first one begins at 0.
        &self.parts[self.parts.partition_point(|part| part.start <= offset) - 1]
    }

    /// The part that all of `length` bytes at `offset` are in.
    fn whole(&self, offset: u64, length: usize) -> io::Result<&Part> {
        let part = self.part(offset);
        let fits = offset.checked_add(length as u64).is_some_and(|end| end <= part.limit);
        if fits { Ok(part) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

impl Store for PartedStore {
    fn len(&self) -> io::Result<u64> {
        self.room(0)
    }

    fn room(&self, offset: u64) -> io::Result<u64> {
        let part = self.part(offset);
        let length = part.file.len()?.min(part.limit - part.start);
        Ok(length.saturating_sub(offset - part.start))
    }

    fn volume(&self) -> io::Result<u64> {
        let mut sum: u64 = 0;
        for part in &self.parts {
            sum = sum.saturating_add(part.file.len()?);
        }
        Ok(sum)
    }

    fn starts(&self) -> Vec<u64> {
        self.parts.iter().map(|part| part.start).collect()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let part = self.whole(offset, buffer.len())?;
        part.file.read_at(offset - part.start, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let part = self.whole(offset, bytes.len())?;
        self.observer.before_change();
        part.file.write_at(offset - part.start, bytes)
    }

    fn read_vectored(&self, ops: &mut [ReadOp<'_>]) -> io::Result<()> {
        let mut rest = ops;
        while let [first, ..] = &mut *rest {
            let part = self.part(first.offset);
            let here = |op: &ReadOp<'_>| {
                self.whole(op.offset, op.buffer.len()).is_ok_and(|at| at.start == part.start)
            };
            let count = rest.iter().take_while(|op| here(op)).count();
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let (now, later) = rest.split_at_mut(count);
            now.iter_mut().for_each(|op| op.offset -= part.start);
            let read = part.file.read_vectored(now);
            now.iter_mut().for_each(|op| op.offset += part.start);
            read?;
            rest = later;
        }
        Ok(())
    }

    fn write_vectored(&self, ops: &[WriteOp<'_>]) -> io::Result<()> {
        // One by one, so that an observer sees every change.
        if self.observer.is_there() {
            return ops.iter().try_for_each(|op| self.write_at(op.offset, op.bytes));
        }
        let mut rest = ops;
        while let [first, ..] = rest {
            let part = self.part(first.offset);
            let mut here = Vec::new();
            for op in rest {
                let at = self.whole(op.offset, op.bytes.len())?;
                if at.start != part.start {
                    break;
                }
                here.push(WriteOp { offset: op.offset - part.start, bytes: op.bytes });
            }
            part.file.write_vectored(&here)?;
            rest = &rest[here.len()..];
        }
        Ok(())
    }

    fn check(&self) -> io::Result<()> {
        let check = |part: &Part| part.file.check().map_err(|error| named(&part.path, error));
        self.parts.iter().try_for_each(check)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let part = self.part(len);
        self.observer.before_change();
        part.file.set_len(len - part.start)
    }

    fn sync(&self) -> io::Result<()> {
        self.parts.iter().try_for_each(|part| part.file.sync())?;
        if self.made.swap(false, Ordering::Relaxed) {
            for part in &self.parts {
                let folder = part.path.parent().filter(|folder| !folder.as_os_str().is_empty());
                std::fs::File::open(folder.unwrap_or(".".as_ref()))?.sync_all()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: u64 = 1 << 40;

    fn made(folder: &tempfile::TempDir) -> PartedStore {
        let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
        let first = Arc::new(FileStore::open_or_create(&a).unwrap());
        PartedStore::create(first, &a, vec![(FAR, b)], Locking::Required).unwrap()
    }

    fn opened(folder: &tempfile::TempDir) -> io::Result<PartedStore> {
        let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
        let first = Arc::new(FileStore::open_writable(&a)?);
        PartedStore::open(first, &a, vec![(FAR, b)], Locking::Required)
    }

    #[test]
    fn vectored_calls_go_to_the_part_that_each_piece_is_in() {
        let folder = tempfile::tempdir().unwrap();
        let store = made(&folder);
        let ops = [(FAR, &b"ra"[..]), (0, b"me"), (2, b"ta"), (FAR + 2, b"w")];
        let ops = ops.map(|(offset, bytes)| WriteOp { offset, bytes });
        store.write_vectored(&ops).unwrap();
        assert_eq!(std::fs::read(folder.path().join("a")).unwrap(), b"meta");
        assert_eq!(std::fs::read(folder.path().join("b")).unwrap(), b"raw");
        let (mut one, mut two) = ([0; 3], [0; 2]);
        let mut ops =
            [ReadOp { offset: 1, buffer: &mut one }, ReadOp { offset: FAR + 1, buffer: &mut two }];
        store.read_vectored(&mut ops).unwrap();
        assert_eq!(ops.map(|op| op.offset), [1, FAR + 1], "as they were asked for");
        assert_eq!((&one, &two), (b"eta", b"aw"));
        assert_eq!((store.len().unwrap(), store.volume().unwrap()), (4, 7));
        assert_eq!((store.room(FAR + 1).unwrap(), store.room(9).unwrap()), (2, 0));
        assert_eq!(store.starts(), [0, FAR]);
    }

    #[test]
    fn nothing_reaches_from_one_part_into_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let store = made(&folder);
        store.set_len(4).unwrap();
        store.set_len(FAR + 4).unwrap();
        assert!(store.read_at(2, &mut [0; 3]).is_err());
        assert!(store.read_at(FAR - 1, &mut [0; 2]).is_err());
        assert!(store.write_at(FAR - 1, b"ab").is_err());
        assert!(store.write_vectored(&[WriteOp { offset: FAR - 1, bytes: b"ab" }]).is_err());
        let mut two = [0; 2];
        assert!(store.read_vectored(&mut [ReadOp { offset: FAR - 1, buffer: &mut two }]).is_err());
        assert!(store.read_at(u64::MAX, &mut [0; 2]).is_err());
    }

    #[test]
    fn all_parts_are_locked_and_must_be_there() {
        let folder = tempfile::tempdir().unwrap();
        let store = made(&folder);
        let other = FileStore::open(folder.path().join("b")).unwrap();
        assert!(other.lock(Locking::Required, false).is_err());
        let error = opened(&folder).err().unwrap().to_string();
        assert!(error.contains("b: "), "{error}");
        store.unlock();
        other.lock(Locking::Required, true).unwrap();
        drop((store, other));
        std::fs::remove_file(folder.path().join("b")).unwrap();
        let error = opened(&folder).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("b: "), "{error}");
    }

    #[test]
    fn one_file_cannot_be_two_parts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "mine").unwrap();
        let first = Arc::new(FileStore::open_writable(&path).unwrap());
        let others = vec![(FAR, path.clone())];
        assert!(PartedStore::create(first, &path, others, Locking::Off).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    }

    #[test]
    fn a_part_that_others_wrote_since_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        made(&folder).write_at(FAR, b"1234").unwrap();
        let store = opened(&folder).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        std::fs::write(folder.path().join("b"), "x").unwrap();
        let error = store.check().unwrap_err();
        assert!(error.to_string().contains("changed while it was open"), "{error}");
        assert!(store.write_at(FAR, b"y").is_err());
    }
}
