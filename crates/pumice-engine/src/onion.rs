//! Onion files: an HDF5 file and, beside it in `NAME.onion`, the pages that later revisions changed.
//! Read only.
//!
//! ```text
//! header    OHDH, version 1, flags (3), page size (4), length of the original (8),
//!           address (8) and size (8) of the history, checksum
//! history   OWHS, version 1, reserved (3), number of revisions (8),
//!           for each the address (8), size (8) and checksum (4) of its record, checksum
//! record    ORRS, version 1, reserved (3), number (8), parent (8), time (16), length of the file (8),
//!           page size (4), number of pages (8), length of the comment (4),
//!           for each page its address in the file (8), its address here (8) and a checksum (4),
//!           comment, checksum
//! ```
//!
//! A page that no entry names is the original's; behind the original's end it is zeros. Checksums
//! are not verified.

use crate::{Error, Result};
use pumice_bytes::{DecodeError, Reader};
use pumice_store::{FileStore, Store};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

const HEADER: &str = "onion header";
const HISTORY: &str = "onion history";
const RECORD: &str = "onion revision";
const HEADER_LENGTH: u64 = 40;
const RECORD_POINTER: usize = 20;
const PAGE_ENTRY: usize = 20;

/// One revision of an onion file.
pub struct OnionStore {
    original: FileStore,
    original_length: u64,
    onion: FileStore,
    page: u64,
    length: u64,
    /// The addresses of pages that this revision does not share with the original.
    pages: HashMap<u64, u64>,
}

impl OnionStore {
    /// Opens a revision of the file at `path`; 0 is the original.
    pub fn open(path: &Path, revision: u64) -> Result<Self> {
        let original = file(path)?;
        let onion = file(&onion_path(path))?;
        let header = Header::read(&onion)?;
        let records = header.records(&onion)?;
        let (length, pages) = match revision {
            0 => (header.original_length, HashMap::new()),
            number => {
                let record = usize::try_from(number - 1).ok().and_then(|place| records.get(place));
                let Some(&(address, size)) = record else {
                    let what = format!("revision {number}; there are {}", records.len());
                    return Err(Error::NotFound(what));
                };
                revision_record(&onion, address, size, header.page)?
            }
        };
        let original_length = header.original_length.min(length_of(&original)?);
        Ok(Self { original, original_length, onion, page: header.page, length, pages })
    }

    /// The number of revisions of the file at `path`, without the original.
    pub fn revisions(path: &Path) -> Result<u64> {
        let onion = file(&onion_path(path))?;
        Ok(Header::read(&onion)?.records(&onion)?.len() as u64)
    }
}

fn onion_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".onion");
    name.into()
}

fn file(path: &Path) -> Result<FileStore> {
    let failed = |source| Error::Io { action: format!("open {}", path.display()), source };
    FileStore::open(path).map_err(failed)
}

fn length_of(store: &FileStore) -> Result<u64> {
    store.len().map_err(|source| Error::Io { action: "measure a file".into(), source })
}

/// `length` bytes of a store, or an error if it is shorter.
fn bytes(store: &FileStore, what: &'static str, address: u64, size: u64) -> Result<Vec<u8>> {
    let room = length_of(store)?.saturating_sub(address);
    if size > room {
        let expected = format!("{size} byte(s)");
        return Err(DecodeError::new(what, address, expected, format!("{room}")).into());
    }
    let mut bytes = pumice_medium::zeroed(usize::try_from(size).unwrap_or(usize::MAX))?;
    let failed = |source| Error::Io { action: format!("read an {what}"), source };
    store.read_at(address, &mut bytes).map_err(failed)?;
    Ok(bytes)
}

struct Header {
    page: u64,
    original_length: u64,
    history: (u64, u64),
}

impl Header {
    fn read(onion: &FileStore) -> Result<Self> {
        let bytes = bytes(onion, HEADER, 0, HEADER_LENGTH)?;
        let mut reader = Reader::new(HEADER, 0, &bytes);
        reader.signature(b"OHDH")?;
        version(&mut reader)?;
        let start = reader.clone();
        let page = reader.u32()?;
        if !page.is_power_of_two() {
            return Err(start.error("a page size that is a power of two", page).into());
        }
        let original_length = reader.u64()?;
        Ok(Self { page: page.into(), original_length, history: (reader.u64()?, reader.u64()?) })
    }

    /// Addresses and sizes of all revision records.
    fn records(&self, onion: &FileStore) -> Result<Vec<(u64, u64)>> {
        let (address, size) = self.history;
        let bytes = bytes(onion, HISTORY, address, size)?;
        let mut reader = Reader::new(HISTORY, address, &bytes);
        reader.signature(b"OWHS")?;
        version(&mut reader)?;
        let count = reader.u64()?;
        let count = reader.count(count, RECORD_POINTER)?;
        let record = |_| -> Result<(u64, u64)> {
            let found = (reader.u64()?, reader.u64()?);
            reader.skip(4)?;
            Ok(found)
        };
        (0..count).map(record).collect()
    }
}

/// Version 1, then three bytes without a meaning here.
fn version(reader: &mut Reader<'_>) -> Result<()> {
    let start = reader.clone();
    let [version, ..] = reader.array::<4>()?;
    match version {
        1 => Ok(()),
        other => Err(start.unknown("version 1", 1u8, other).into()),
    }
}

/// The length of the file in a revision, and its pages.
fn revision_record(
    onion: &FileStore,
    address: u64,
    size: u64,
    page: u64,
) -> Result<(u64, HashMap<u64, u64>)> {
    let bytes = bytes(onion, RECORD, address, size)?;
    let mut reader = Reader::new(RECORD, address, &bytes);
    reader.signature(b"ORRS")?;
    version(&mut reader)?;
    reader.skip(32)?;
    let length = reader.u64()?;
    let start = reader.clone();
    let own_page = reader.u32()?;
    if u64::from(own_page) != page {
        return Err(start.error(format!("pages of {page} bytes"), own_page).into());
    }
    let count = reader.u64()?;
    reader.skip(4)?;
    let count = reader.count(count, PAGE_ENTRY)?;
    let mut pages = HashMap::with_capacity(count);
    for _ in 0..count {
        pages.insert(reader.u64()? / page, reader.u64()?);
        reader.skip(4)?;
    }
    Ok((length, pages))
}

impl Store for OnionStore {
    fn len(&self) -> io::Result<u64> {
        Ok(self.length)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (mut at, mut rest) = (offset, buffer);
        while !rest.is_empty() {
            let inside = at % self.page;
            let part = usize::try_from(self.page - inside).unwrap_or(usize::MAX).min(rest.len());
            let (now, later) = rest.split_at_mut(part);
            match self.pages.get(&(at / self.page)) {
                Some(&place) => {
                    let place = place.checked_add(inside).ok_or(io::ErrorKind::UnexpectedEof)?;
                    self.onion.read_at(place, now)?;
                }
                None => {
                    let have = self.original_length.saturating_sub(at).min(part as u64) as usize;
                    self.original.read_at(at, &mut now[..have])?;
                    now[have..].fill(0);
                }
            }
            at += part as u64;
            rest = later;
        }
        Ok(())
    }

    fn write_at(&self, _offset: u64, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn set_len(&self, _len: u64) -> io::Result<()> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An onion with pages of 4 bytes: the second page of "abcdefgh" changed, a third one is new.
    fn onion(folder: &Path) -> PathBuf {
        let path = folder.join("a.h5");
        std::fs::write(&path, "abcdefgh").unwrap();
        let mut record = b"ORRS\x01\0\0\0".to_vec();
        record.extend([0; 32]);
        record.extend(14u64.to_le_bytes());
        record.extend(4u32.to_le_bytes());
        record.extend(2u64.to_le_bytes());
        record.extend(0u32.to_le_bytes());
        for (page, place) in [(4u64, 44u64), (12, 48)] {
            record.extend(page.to_le_bytes());
            record.extend(place.to_le_bytes());
            record.extend([0; 4]);
        }
        record.extend([0; 4]);
        let mut history = b"OWHS\x01\0\0\0".to_vec();
        history.extend(1u64.to_le_bytes());
        history.extend(52u64.to_le_bytes());
        history.extend((record.len() as u64).to_le_bytes());
        history.extend([0; 8]);
        let mut all = b"OHDH\x01\0\0\0".to_vec();
        all.extend(4u32.to_le_bytes());
        all.extend(8u64.to_le_bytes());
        all.extend((52 + record.len() as u64).to_le_bytes());
        all.extend((history.len() as u64).to_le_bytes());
        all.extend([0; 4]);
        assert_eq!(all.len(), 40);
        all.extend([0; 4]);
        all.extend(b"EFGHmn..");
        all.extend(record);
        all.extend(history);
        std::fs::write(onion_path(&path), all).unwrap();
        path
    }

    #[test]
    fn a_revision_has_its_own_pages_the_originals_and_zeros() {
        let folder = tempfile::tempdir().unwrap();
        let path = onion(folder.path());
        assert_eq!(OnionStore::revisions(&path).unwrap(), 1);
        let mut found = [0; 12];
        let store = OnionStore::open(&path, 1).unwrap();
        store.read_at(2, &mut found).unwrap();
        assert_eq!(&found, b"cdEFGH\0\0\0\0mn");
        assert!(store.read_at(3, &mut found).is_err(), "it has 14 bytes");
        let store = OnionStore::open(&path, 0).unwrap();
        store.read_at(0, &mut found[..8]).unwrap();
        assert_eq!(&found[..8], b"abcdefgh");
        assert!(OnionStore::open(&path, 2).is_err());
    }
}
