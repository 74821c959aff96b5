//! Parts of several files as one store: external raw data, families of files, split files.
//!
//! Only external raw data ([`Gaps::Zeros`]) can be written: its files are made, and grow, as needed.
//! A family that is changed is a [`FamilyStore`](crate::FamilyStore), a split file a
//! [`PartedStore`](crate::PartedStore).

use crate::{FileStore, Store};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The treatment of gaps between and behind the files' bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gaps {
    /// Gaps read as zeros, as far as there is a part.
    Zeros,
    /// A gap is the end of the store: reading there is an error.
    Errors,
}

/// A part of a file, and where in the store it stands.
#[derive(Debug)]
pub struct Part {
    /// Its offset in the store.
    pub start: u64,
    /// Its bytes.
    pub length: u64,
    /// The file.
    pub path: PathBuf,
    /// Its offset in the file.
    pub offset: u64,
}

/// Parts of files, opened when they are first needed.
///
/// ```
/// use pumice_store::{Gaps, JoinedStore, Part, Store};
///
/// # let folder = tempfile::tempdir()?;
/// let [a, b] = ["a", "b"].map(|name| folder.path().join(name));
/// std::fs::write(&a, "pumi")?;
/// std::fs::write(&b, "--ce")?;
/// let part = |start, path, offset| Part { start, length: 4, path, offset };
/// let store = JoinedStore::new(vec![part(0, a, 0), part(4, b, 2)], Gaps::Zeros);
/// let mut bytes = [1; 8];
/// store.read_at(0, &mut bytes)?;
/// assert_eq!(&bytes, b"pumice\0\0");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct JoinedStore {
    parts: Vec<(Part, OnceLock<FileStore>)>,
    /// The files of parts that were written to.
    written: Vec<OnceLock<FileStore>>,
    gaps: Gaps,
}

impl JoinedStore {
    /// A store of parts that do not overlap.
    pub fn new(mut parts: Vec<Part>, gaps: Gaps) -> Self {
        parts.sort_by_key(|part| part.start);
        let written = parts.iter().map(|_| OnceLock::new()).collect();
        let parts = parts.into_iter().map(|part| (part, OnceLock::new())).collect();
        Self { parts, written, gaps }
    }

    /// Creates the missing files of the first `length` bytes, so that unwritten bytes can be read.
    pub fn make(&self, length: u64) -> io::Result<()> {
        for (place, (part, _)) in self.parts.iter().enumerate() {
            if part.start < length {
                self.writable(place)?;
            }
        }
        Ok(())
    }

    /// The file of a part, created if it does not exist.
    fn writable(&self, place: usize) -> io::Result<&FileStore> {
        let (part, _) = &self.parts[place];
        let written = &self.written[place];
        if let Some(file) = written.get() {
            return Ok(file);
        }
        let opened = FileStore::open_raw(&part.path).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", part.path.display()))
        })?;
        Ok(written.get_or_init(|| opened))
    }

    /// Writes as much of `bytes` as the part at `place` has room for; gives how much that is.
    fn write_part(&self, place: usize, offset: u64, bytes: &[u8]) -> io::Result<usize> {
        let (part, _) = &self.parts[place];
        let inside = offset - part.start;
        let length = bytes.len().min(usize::try_from(part.length - inside).unwrap_or(usize::MAX));
        let file = self.writable(place)?;
        let at = part.offset.checked_add(inside).ok_or(io::ErrorKind::InvalidInput)?;
        file.write_at(at, &bytes[..length])?;
        Ok(length)
    }

    /// The part that has the byte at `offset`.
    fn part_at(&self, offset: u64) -> io::Result<usize> {
        let before = self.parts.partition_point(|(part, _)| part.start <= offset);
        let place = before.checked_sub(1).ok_or(io::ErrorKind::UnexpectedEof)?;
        let (part, _) = &self.parts[place];
        if offset - part.start >= part.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(place)
    }

    /// The length of a part.
    fn part_length(&self, place: usize) -> io::Result<u64> {
        let (part, file) = &self.parts[place];
        if self.gaps == Gaps::Zeros {
            return Ok(part.length);
        }
        let have = opened(part, file)?.len()?.saturating_sub(part.offset);
        Ok(have.min(part.length))
    }

    /// Reads as much of `buffer` as the part at `place` has; gives how much that is.
    fn read_part(&self, place: usize, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let (part, file) = &self.parts[place];
        let inside = offset - part.start;
        let wanted = buffer.len().min(usize::try_from(part.length - inside).unwrap_or(usize::MAX));
        let file = opened(part, file)?;
        let at = part.offset.checked_add(inside).ok_or(io::ErrorKind::UnexpectedEof)?;
        let have = usize::try_from(file.len()?.saturating_sub(at)).unwrap_or(usize::MAX);
        let read = wanted.min(have);
        file.read_at(at, &mut buffer[..read])?;
        if read < wanted && self.gaps == Gaps::Errors {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer[read..wanted].fill(0);
        Ok(wanted)
    }
}

/// The file of a part, opened if it is not.
fn opened<'s>(part: &Part, file: &'s OnceLock<FileStore>) -> io::Result<&'s FileStore> {
    if let Some(file) = file.get() {
        return Ok(file);
    }
    let opened = open(&part.path)?;
    Ok(file.get_or_init(|| opened))
}

/// Opens a file, but no pipe or device, which may never answer.
fn open(path: &Path) -> io::Result<FileStore> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    if !path.metadata().map_err(named)?.is_file() {
        return Err(named(io::Error::other("not a regular file")));
    }
    FileStore::open(path).map_err(named)
}

impl Store for JoinedStore {
    fn len(&self) -> io::Result<u64> {
        match (self.gaps, self.parts.last()) {
            (_, None) => Ok(0),
            (Gaps::Zeros, Some((last, _))) => Ok(last.start.saturating_add(last.length)),
            (Gaps::Errors, _) => self.room(0),
        }
    }

    fn room(&self, offset: u64) -> io::Result<u64> {
        let first = self.parts.partition_point(|(part, _)| part.start <= offset).saturating_sub(1);
        let mut end = offset;
        for place in first..self.parts.len() {
            let start = self.parts[place].0.start;
            if start > end {
                break;
            }
            let stop = start.saturating_add(self.part_length(place)?);
            if stop <= end {
                break;
            }
            end = stop;
        }
        Ok(end - offset)
    }

    fn volume(&self) -> io::Result<u64> {
        let lengths = (0..self.parts.len()).map(|place| self.part_length(place));
        // A part that is not there has no bytes.
        Ok(lengths.fold(0, |sum: u64, length| sum.saturating_add(length.unwrap_or(0))))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < buffer.len() {
            let at = offset.checked_add(done as u64).ok_or(io::ErrorKind::UnexpectedEof)?;
            done += self.read_part(self.part_at(at)?, at, &mut buffer[done..])?;
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if self.gaps == Gaps::Errors {
            return Err(read_only());
        }
        let mut done = 0;
        while done < bytes.len() {
            let at = offset.checked_add(done as u64).ok_or(io::ErrorKind::InvalidInput)?;
            done += self.write_part(self.part_at(at)?, at, &bytes[done..])?;
        }
        Ok(())
    }

    fn set_len(&self, _len: u64) -> io::Result<()> {
        Err(read_only())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

fn read_only() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "parts of several files are only read")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(gaps: Gaps) -> (tempfile::TempDir, JoinedStore) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "0123").unwrap();
        std::fs::write(folder.path().join("b"), "xx45").unwrap();
        let part = |start, length, name, offset| Part {
            start,
            length,
            path: folder.path().join(name),
            offset,
        };
        let parts = vec![part(4, 6, "b", 2), part(0, 4, "a", 0), part(20, 4, "missing", 0)];
        let store = JoinedStore::new(parts, gaps);
        (folder, store)
    }

    #[test]
    fn writes_cross_parts_and_make_files() {
        let (folder, store) = store(Gaps::Zeros);
        store.write_at(2, b"abcdef").unwrap();
        store.write_at(21, b"z").unwrap();
        let mut bytes = [9; 10];
        store.read_at(0, &mut bytes).unwrap();
        assert_eq!(&bytes, b"01abcdef\0\0");
        let read = |name| std::fs::read(folder.path().join(name)).unwrap();
        assert_eq!((read("a"), read("b")), (b"01ab".to_vec(), b"xxcdef".to_vec()));
        assert_eq!(read("missing"), b"\0z");
        assert!(store.write_at(9, b"12").is_err(), "between parts");
        let (_folder, store) = super::tests::store(Gaps::Errors);
        assert!(store.write_at(0, b"a").is_err());
    }

    #[test]
    fn reads_cross_parts_and_short_files_end_in_zeros() {
        let (_folder, store) = store(Gaps::Zeros);
        let mut bytes = [9; 10];
        store.read_at(0, &mut bytes).unwrap();
        assert_eq!(&bytes, b"012345\0\0\0\0");
        assert_eq!(store.len().unwrap(), 24);
    }

    #[test]
    fn missing_files_and_places_without_a_part_are_errors() {
        let (_folder, store) = store(Gaps::Zeros);
        let error = store.read_at(20, &mut [0; 2]).unwrap_err();
        assert!(error.to_string().contains("missing"), "{error}");
        assert!(store.read_at(12, &mut [0]).is_err());
        assert!(store.read_at(u64::MAX, &mut [0; 2]).is_err());
    }

    #[test]
    fn short_files_can_be_errors() {
        let (_folder, store) = store(Gaps::Errors);
        assert!(store.read_at(4, &mut [0; 2]).is_ok());
        assert!(store.read_at(4, &mut [0; 3]).is_err());
    }

    #[test]
    fn the_room_ends_where_bytes_end() {
        let (_folder, store) = store(Gaps::Errors);
        assert_eq!((store.len().unwrap(), store.volume().unwrap()), (6, 6));
        assert_eq!(store.room(3).unwrap(), 3);
        assert_eq!(store.room(5).unwrap(), 1);
        assert_eq!(store.room(6).unwrap(), 0);
        assert!(store.room(20).is_err(), "a file is missing");
    }
}
