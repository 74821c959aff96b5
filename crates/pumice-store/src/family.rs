//! A family of files: one store in pieces of one size, each of them a file, which comes and goes as the
//! store grows and shrinks.
//!
//! Invariant: every member before the last one that has bytes has as many as a member can have, so that
//! the members' bytes are those of the store without a gap. A member is filled up before the next one is
//! written, and members go from the last one on.

use crate::{FileStore, Locking, Store};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Files of one size, one after another.
///
/// ```
/// use pumice_store::{FamilyStore, FileStore, Locking, Store};
/// use std::sync::Arc;
///
/// # let folder = tempfile::tempdir()?;
/// let directory = folder.path().to_path_buf();
/// let name = move |number: u64| directory.join(format!("part{number}"));
/// let first = Arc::new(FileStore::create(name(0))?);
/// let store = FamilyStore::open(first, 4, Locking::default(), name.clone())?;
/// store.write_at(0, b"pumice")?;
/// assert_eq!(std::fs::read(name(1))?, b"ce");
/// store.set_len(3)?;
/// assert!(!name(1).exists());
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct FamilyStore {
    name: Box<dyn Fn(u64) -> PathBuf + Send + Sync>,
    /// Bytes of a member.
    size: u64,
    locking: Locking,
    members: RwLock<Vec<Arc<FileStore>>>,
    /// How many members, from the first on, are known to have all of their bytes.
    full: AtomicUsize,
    /// Whether members came or went that their folder may not know of after a loss of power.
    made: AtomicBool,
    /// Whether members behind one that is not full, which are no part of the store, were emptied.
    tidy: AtomicBool,
}

impl FamilyStore {
    /// The family whose first member is open (and locked, where it is to be): the others that are there
    /// are opened, locked and watched. `name` gives the path of each.
    pub fn open(
        first: Arc<FileStore>,
        size: u64,
        locking: Locking,
        name: impl Fn(u64) -> PathBuf + Send + Sync + 'static,
    ) -> io::Result<Self> {
        if size == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "members without bytes"));
        }
        let mut members = vec![first];
        loop {
            let path = name(members.len() as u64);
            if !path.is_file() {
                break;
            }
            let member = FileStore::open_writable(&path).and_then(|member| {
                member.lock(locking, true)?;
                member.watch()?;
                Ok(member)
            });
            members.push(Arc::new(member.map_err(|error| named(&path, error))?));
        }
        Ok(Self {
            name: Box::new(name),
            size,
            locking,
            members: RwLock::new(members),
            full: AtomicUsize::new(0),
            made: AtomicBool::new(false),
            tidy: AtomicBool::new(false),
        })
    }

    /// Gives up the locks of all members.
    pub fn unlock(&self) {
        self.all().iter().for_each(|member| member.unlock());
    }

    fn all(&self) -> Vec<Arc<FileStore>> {
        self.members.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn found(&self, place: usize) -> Option<Arc<FileStore>> {
        self.members.read().unwrap_or_else(PoisonError::into_inner).get(place).cloned()
    }

    /// A member, made with all before it if it is not there.
    fn member(&self, place: usize) -> io::Result<Arc<FileStore>> {
        if let Some(member) = self.found(place) {
            return Ok(member);
        }
        let mut members = self.members.write().unwrap_or_else(PoisonError::into_inner);
        while members.len() <= place {
            let path = (self.name)(members.len() as u64);
            let made = FileStore::open_or_create(&path).and_then(|member| {
                member.lock(self.locking, true)?;
                // A file that stood behind a gap was no member.
                if !member.is_empty()? {
                    member.set_len(0)?;
                }
                Ok(member)
            });
            members.push(Arc::new(made.map_err(|error| named(&path, error))?));
            self.made.store(true, Ordering::Relaxed);
        }
        Ok(members[place].clone())
    }

    /// Before the first change: empties members behind one that is not full. What grows over them reads as
    /// zeros where it is not written.
    fn tidy(&self) -> io::Result<()> {
        if self.tidy.load(Ordering::Acquire) {
            return Ok(());
        }
        let members = self.members.write().unwrap_or_else(PoisonError::into_inner);
        let mut behind = false;
        for member in members.iter() {
            let length = member.len()?;
            if behind && length > 0 {
                member.set_len(0)?;
            }
            behind |= length < self.size;
        }
        self.tidy.store(true, Ordering::Release);
        Ok(())
    }

    /// Gives the first `count` members all of their bytes.
    fn fill(&self, count: usize) -> io::Result<()> {
        self.tidy()?;
        for place in self.full.load(Ordering::Relaxed)..count {
            let member = self.member(place)?;
            if member.len()? < self.size {
                member.set_len(self.size)?;
            }
        }
        self.full.fetch_max(count, Ordering::Relaxed);
        Ok(())
    }

    /// The member that has the byte at `offset`, and where in it that is.
    fn place(&self, offset: u64) -> io::Result<(usize, u64)> {
        let place = usize::try_from(offset / self.size);
        Ok((place.map_err(|_| io::ErrorKind::InvalidInput)?, offset % self.size))
    }

    /// How many of `length` bytes are in the member in which they begin at `inside`.
    fn here(&self, inside: u64, length: usize) -> usize {
        usize::try_from(self.size - inside).unwrap_or(usize::MAX).min(length)
    }

    /// Takes all members behind the first `count` away, the last one first.
    fn cut(&self, count: usize) -> io::Result<()> {
        let mut members = self.members.write().unwrap_or_else(PoisonError::into_inner);
        self.full.fetch_min(count.saturating_sub(1), Ordering::Relaxed);
        for place in (count.max(1)..members.len()).rev() {
            members[place].set_len(0)?;
            // An empty member is as good as none, should it have to stay.
            if place + 1 == members.len() && std::fs::remove_file((self.name)(place as u64)).is_ok()
            {
                members.pop();
                self.made.store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

fn named(path: &std::path::Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

impl Store for FamilyStore {
    fn len(&self) -> io::Result<u64> {
        let mut total: u64 = 0;
        for member in self.all() {
            let length = member.len()?.min(self.size);
            total = total.saturating_add(length);
            if length < self.size {
                break;
            }
        }
        Ok(total)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < buffer.len() {
            let at = offset.checked_add(done as u64).ok_or(io::ErrorKind::UnexpectedEof)?;
            let (place, inside) = self.place(at)?;
            let length = self.here(inside, buffer.len() - done);
            let member = self.found(place).ok_or(io::ErrorKind::UnexpectedEof)?;
            member.read_at(inside, &mut buffer[done..done + length])?;
            done += length;
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset.checked_add(done as u64).ok_or(io::ErrorKind::InvalidInput)?;
            let (place, inside) = self.place(at)?;
            let length = self.here(inside, bytes.len() - done);
            self.fill(place)?;
            self.member(place)?.write_at(inside, &bytes[done..done + length])?;
            done += length;
        }
        Ok(())
    }

    fn check(&self) -> io::Result<()> {
        self.all().iter().try_for_each(|member| member.check())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let (full, rest) = self.place(len)?;
        self.cut(full + usize::from(rest > 0))?;
        self.fill(full)?;
        if rest > 0 || full == 0 {
            self.member(full)?.set_len(rest)?;
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.all().iter().try_for_each(|member| member.sync())?;
        if self.made.swap(false, Ordering::Relaxed) {
            let first = (self.name)(0);
            let folder = first.parent().filter(|folder| !folder.as_os_str().is_empty());
            std::fs::File::open(folder.unwrap_or(".".as_ref()))?.sync_all()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn family(folder: &tempfile::TempDir, size: u64) -> FamilyStore {
        let directory = folder.path().to_path_buf();
        let name = move |number: u64| directory.join(number.to_string());
        let first = Arc::new(FileStore::open_or_create(name(0)).unwrap());
        FamilyStore::open(first, size, Locking::Required, name).unwrap()
    }

    fn lengths(folder: &tempfile::TempDir) -> Vec<u64> {
        let length = |place: u64| std::fs::metadata(folder.path().join(place.to_string()));
        (0..).map_while(|place| length(place).ok()).map(|found| found.len()).collect()
    }

    #[test]
    fn members_come_full_and_go_from_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let store = family(&folder, 4);
        store.write_at(13, b"ab").unwrap();
        assert_eq!(lengths(&folder), [4, 4, 4, 3]);
        assert_eq!(store.len().unwrap(), 15);
        store.set_len(8).unwrap();
        assert_eq!(lengths(&folder), [4, 4]);
        store.set_len(11).unwrap();
        assert_eq!(lengths(&folder), [4, 4, 3]);
        store.write_at(12, b"c").unwrap();
        assert_eq!(lengths(&folder), [4, 4, 4, 1]);
        store.sync().unwrap();
        drop(store);
        let store = family(&folder, 4);
        assert_eq!(store.len().unwrap(), 13);
        store.set_len(0).unwrap();
        assert_eq!(lengths(&folder), [0]);
    }

    #[test]
    fn all_members_are_locked_and_new_ones_too() {
        let folder = tempfile::tempdir().unwrap();
        family(&folder, 4).write_at(0, b"12345").unwrap();
        let store = family(&folder, 4);
        store.write_at(8, b"9").unwrap();
        for place in [1, 2] {
            let path = folder.path().join(place.to_string());
            let other = FileStore::open(&path).unwrap();
            assert!(other.lock(Locking::Required, false).is_err(), "{place}");
        }
        store.unlock();
        let other = FileStore::open(folder.path().join("2")).unwrap();
        other.lock(Locking::Required, true).unwrap();
    }

    #[test]
    fn what_stands_behind_a_gap_is_no_member() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("2"), "old").unwrap();
        let store = family(&folder, 4);
        assert_eq!(store.len().unwrap(), 0);
        store.write_at(11, b"x").unwrap();
        let mut bytes = [1; 4];
        store.read_at(8, &mut bytes).unwrap();
        assert_eq!(&bytes, b"\0\0\0x");
    }

    #[test]
    fn a_member_that_is_short_is_the_end() {
        let folder = tempfile::tempdir().unwrap();
        family(&folder, 4).write_at(0, b"123456789").unwrap();
        std::fs::write(folder.path().join("1"), "56").unwrap();
        let store = family(&folder, 4);
        assert_eq!(store.len().unwrap(), 6);
        assert!(store.read_at(0, &mut [0; 9]).is_err());
    }

    #[test]
    fn a_member_that_others_wrote_since_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        family(&folder, 4).write_at(0, b"12345").unwrap();
        let store = family(&folder, 4);
        std::thread::sleep(std::time::Duration::from_millis(20));
        std::fs::write(folder.path().join("1"), "x").unwrap();
        let error = store.check().unwrap_err();
        assert!(error.to_string().contains("changed while it was open"), "{error}");
        assert!(store.write_at(4, b"y").is_err());
    }

    #[test]
    fn what_a_member_has_behind_one_that_is_not_full_is_no_part_of_the_store() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("0"), b"pu").unwrap();
        std::fs::write(folder.path().join("1"), b"mice").unwrap();
        let store = family(&folder, 4);
        assert_eq!(store.len().unwrap(), 2);
        store.write_at(9, b"!").unwrap();
        let mut all = [7; 10];
        store.read_at(0, &mut all).unwrap();
        assert_eq!(&all, b"pu\0\0\0\0\0\0\0!");
    }
}
