//! A store in a file of the operating system, by positional reads and writes.

use crate::lock::unlock;
use crate::{Locking, ReadOp, Store, WriteOp};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// The beginning of errors which say that the file is not the one that was opened.
const CHANGED: &str = "the file was changed while it was open";

/// As many pieces as the system takes in one call (`IOV_MAX` is 1024 on Linux and macOS).
const PIECES: usize = 1024;

/// Bytes for which room is made before they are written.
const MANY: u64 = 512 << 10;

/// A file of the operating system.
///
/// ```
/// use pumice_store::{FileStore, Store};
/// let folder = tempfile::tempdir()?;
/// let store = FileStore::create(folder.path().join("a.bin"))?;
/// store.write_at(10, b"here")?;
/// assert_eq!(store.len()?, 14);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct FileStore {
    file: File,
    /// The time of the last change before the file was watched.
    modified: OnceLock<SystemTime>,
    /// Whether that time was unchanged before this store's first write.
    first_write: OnceLock<Result<(), String>>,
    /// The end of reserved space behind the file's end.
    roomy: AtomicU64,
}

impl FileStore {
    /// Creates a file, or empties the one that is there.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        refuse_irregular(path.as_ref())?;
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(true).open(path)?;
        Ok(Self::new(file))
    }

    /// Opens a file for reading and writing; creates it if there is none.
    pub fn open_or_create(path: impl AsRef<Path>) -> io::Result<Self> {
        refuse_irregular(path.as_ref())?;
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(path)?;
        Ok(Self::new(file))
    }

    /// Opens an external raw data file for reading and writing: a regular file, which is created if
    /// it does not exist, or a device.
    pub(crate) fn open_raw(path: impl AsRef<Path>) -> io::Result<Self> {
        refuse_irregular_but(path.as_ref(), true)?;
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(path)?;
        Ok(Self::new(file))
    }

    /// Creates a file; fails if there is one.
    pub fn create_new(path: impl AsRef<Path>) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        Ok(Self::new(file))
    }

    /// Opens a file for reading. Directories, devices, FIFOs and sockets are refused: opening some
    /// of them would wait for another program.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        refuse_irregular(path.as_ref())?;
        Ok(Self::new(File::open(path)?))
    }

    /// Opens a file for reading and writing.
    pub fn open_writable(path: impl AsRef<Path>) -> io::Result<Self> {
        refuse_irregular(path.as_ref())?;
        Ok(Self::new(OpenOptions::new().read(true).write(true).open(path)?))
    }

    fn new(file: File) -> Self {
        let roomy = AtomicU64::new(0);
        Self { file, modified: OnceLock::new(), first_write: OnceLock::new(), roomy }
    }

    /// Watches for writes of other programs before this store's first write, which then fails.
    /// Later on, this store's own writes hide others.
    pub fn watch(&self) -> io::Result<()> {
        let modified = self.file.metadata()?.modified()?;
        let _ = self.modified.set(modified);
        Ok(())
    }

    /// Refuses to write where another program has written since the file is watched.
    fn check_first_write(&self) -> io::Result<()> {
        let checked = self.first_write.get_or_init(|| {
            let Some(&opened) = self.modified.get() else { return Ok(()) };
            match self.file.metadata().and_then(|metadata| metadata.modified()) {
                Ok(now) if now != opened => Err("another program wrote to it since".to_owned()),
                _ => Ok(()),
            }
        });
        let changed = |what: &String| io::Error::other(format!("{CHANGED}: {what}"));
        checked.as_ref().copied().map_err(changed)
    }

    /// Locks the file until it is closed or unlocked, alone if `exclusive`, otherwise together with
    /// other readers. Never waits; fails with `WouldBlock` and names the holder. Returns whether
    /// the file is locked: not if locks are unwanted, or unavailable and not required.
    pub fn lock(&self, locking: Locking, exclusive: bool) -> io::Result<bool> {
        locking.lock(&self.file, exclusive)
    }

    /// Gives up the lock, if there is one.
    pub fn unlock(&self) {
        unlock(&self.file);
    }

    /// The time of its last change, and its length.
    pub(crate) fn modified(&self) -> io::Result<(SystemTime, u64)> {
        let metadata = self.file.metadata()?;
        Ok((metadata.modified()?, metadata.len()))
    }

    /// The device and inode of the file, equal for every path that leads to it.
    pub fn identity(&self) -> io::Result<(u64, u64)> {
        let metadata = self.file.metadata()?;
        Ok((metadata.dev(), metadata.ino()))
    }
}

/// Fails for anything but a regular file, and says what it is.
fn refuse_irregular(path: &Path) -> io::Result<()> {
    refuse_irregular_but(path, false)
}

/// Fails for anything but a regular file or, if allowed, a device, and says what it is.
fn refuse_irregular_but(path: &Path, devices: bool) -> io::Result<()> {
    // Opening a missing or inaccessible file reports the error.
    let Ok(there) = std::fs::metadata(path) else { return Ok(()) };
    let kind = there.file_type();
    if kind.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
    }
    let what = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_fifo() => "it is a FIFO",
        kind if kind.is_socket() => "it is a socket",
        kind if kind.is_block_device() || kind.is_char_device() => match devices {
            true => return Ok(()),
            false => "it is a device",
        },
        _ => "it is no regular file",
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{what}, not a regular file")))
}

impl Store for FileStore {
    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.check_first_write()?;
        self.file.write_all_at(bytes, offset)
    }

    fn read_vectored(&self, ops: &mut [ReadOp<'_>]) -> io::Result<()> {
        let mut rest = ops;
        while !rest.is_empty() {
            let pieces = neighbours(rest.iter().map(|op| (op.offset, op.buffer.len())));
            let (now, later) = rest.split_at_mut(pieces);
            self.read_neighbours(now)?;
            rest = later;
        }
        Ok(())
    }

    fn write_vectored(&self, ops: &[WriteOp<'_>]) -> io::Result<()> {
        self.check_first_write()?;
        let mut rest = ops;
        while !rest.is_empty() {
            let pieces = neighbours(rest.iter().map(|op| (op.offset, op.bytes.len())));
            let (now, later) = rest.split_at(pieces);
            self.write_neighbours(now)?;
            rest = later;
        }
        Ok(())
    }

    fn expect(&self, offset: u64, len: u64) {
        if self.check_first_write().is_ok() {
            self.make_room(offset, len);
        }
    }

    fn check(&self) -> io::Result<()> {
        if self.file.metadata()?.nlink() == 0 {
            let what = "it was deleted, or another file was put in its place";
            return Err(io::Error::other(format!("{CHANGED}: {what}")));
        }
        self.check_first_write()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.check_first_write()?;
        // If anything is cut off, there is no room behind it any more.
        self.roomy.fetch_min(len, Ordering::Relaxed);
        self.file.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

impl FileStore {
    /// Reads in one system call if possible; the rest of a short read is read piece by piece.
    fn read_neighbours(&self, ops: &mut [ReadOp<'_>]) -> io::Result<()> {
        let [first, _, ..] = ops else {
            return ops.iter_mut().try_for_each(|op| self.read_at(op.offset, op.buffer));
        };
        let offset = first.offset;
        let mut slices: Vec<_> =
            ops.iter_mut().map(|op| IoSliceMut::new(&mut *op.buffer)).collect();
        let mut done = match rustix::io::preadv(&self.file, &mut slices, offset) {
            Err(Errno::INTR) => 0,
            answer => answer?,
        };
        for op in ops {
            let have = done.min(op.buffer.len());
            done -= have;
            if have < op.buffer.len() {
                self.read_at(op.offset + have as u64, &mut op.buffer[have..])?;
            }
        }
        Ok(())
    }

    fn write_neighbours(&self, ops: &[WriteOp<'_>]) -> io::Result<()> {
        if let Some(first) = ops.first() {
            self.make_room(first.offset, ops.iter().map(|op| op.bytes.len() as u64).sum());
        }
        let [first, _, ..] = ops else {
            return ops.iter().try_for_each(|op| self.write_at(op.offset, op.bytes));
        };
        let slices: Vec<_> = ops.iter().map(|op| IoSlice::new(op.bytes)).collect();
        let mut done = match rustix::io::pwritev(&self.file, &slices, first.offset) {
            Err(Errno::INTR) => 0,
            answer => answer?,
        };
        for op in ops {
            let have = done.min(op.bytes.len());
            done -= have;
            if have < op.bytes.len() {
                self.write_at(op.offset + have as u64, &op.bytes[have..])?;
            }
        }
        Ok(())
    }

    /// Asks the system for blocks for many bytes behind the end of the file at once: finding them
    /// one by one takes half as long as copying the bytes. An error here is left to the write
    /// itself.
    #[cfg(target_os = "linux")]
    fn make_room(&self, offset: u64, len: u64) {
        use rustix::fs::{FallocateFlags, fallocate};

        let end = offset.saturating_add(len);
        let known = end <= self.roomy.load(Ordering::Relaxed);
        if len >= MANY && !known && self.len().is_ok_and(|end| end <= offset) {
            let done = fallocate(&self.file, FallocateFlags::KEEP_SIZE, offset, len);
            if done.is_ok() {
                self.roomy.fetch_max(end, Ordering::Relaxed);
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn make_room(&self, _: u64, _: u64) {}
}

/// The number of leading pieces that follow one another without a gap.
fn neighbours(mut pieces: impl Iterator<Item = (u64, usize)>) -> usize {
    let Some((offset, len)) = pieces.next() else {
        return 0;
    };
    let mut end = offset.checked_add(len as u64);
    let mut count = 1;
    for (offset, len) in pieces.take(PIECES - 1) {
        if end != Some(offset) {
            break;
        }
        end = offset.checked_add(len as u64);
        count += 1;
    }
    count
}
