//! A family of files: one store in pieces of one size, each of them a file, which is created and
//! removed as the store grows and shrinks.
//!
//! Invariants:
//! - Every member before the last one with bytes is full, so the members' bytes are those of the
//!   store without a gap. A member is filled up before the next one is written, and members are
//!   removed from the last one on.
//! - A file with bytes that this store did not write is never emptied, overwritten or removed,
//!   unless it is known to be a member. A file behind the [end](Store::settle) of the store is a
//!   member only if a program left it that ended while it had the family open. Such a program
//!   leaves a sign: from the first change to [`unlock`](FamilyStore::unlock), an empty file stands
//!   behind the last one with bytes. (libhdf5 leaves empty members, too, where a family has
//!   shrunk.)

use crate::observer::Observer;
use crate::{FileStore, Locking, Store, named};
use std::io;
use std::os::unix::fs::MetadataExt;
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
/// store.unlock();
/// assert!(!name(1).exists());
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct FamilyStore {
    name: Box<dyn Fn(u64) -> PathBuf + Send + Sync>,
    /// Bytes of a member.
    size: u64,
    locking: Locking,
    members: RwLock<Vec<Arc<FileStore>>>,
    /// The number of members, from the first on, that are known to be full.
    full: AtomicUsize,
    /// Whether members were created or removed that their folder may lose with the power.
    made: AtomicBool,
    /// Whether an empty member, made before the first change, is behind the last one, unless its
    /// name is taken.
    spare: AtomicBool,
    /// Whether its name is taken.
    taken: AtomicBool,
    /// Called before every change of a file.
    observer: Observer,
}

impl FamilyStore {
    /// Opens a family whose first member is open (and locked if wanted). The other existing members
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
        let mut full = first.len()? >= size;
        let mut members = vec![first];
        loop {
            let path = name(members.len() as u64);
            let Some(length) = length_of(&path) else { break };
            // Behind a member that is not full, only empty ones are members.
            if !full && length > 0 {
                break;
            }
            let member = FileStore::open_writable(&path).and_then(|member| {
                member.lock(locking, true)?;
                member.watch()?;
                Ok(member)
            });
            members.push(Arc::new(member.map_err(|error| named(&path, error))?));
            full &= length >= size;
        }
        Ok(Self {
            name: Box::new(name),
            size,
            locking,
            members: RwLock::new(members),
            full: AtomicUsize::new(0),
            made: AtomicBool::new(false),
            spare: AtomicBool::new(false),
            taken: AtomicBool::new(false),
            observer: Observer::default(),
        })
    }

    /// The store with `before` called before every change of a file, for tests of what an ended
    /// program leaves.
    pub fn observed(mut self, before: impl Fn() + Send + Sync + 'static) -> Self {
        self.observer = Observer::new(before);
        self
    }

    /// Removes empty members at the end if anything was changed, and gives up the locks of all
    /// others.
    pub fn unlock(&self) {
        self.remove_spare();
        self.all().iter().for_each(|member| member.unlock());
    }

    fn remove_spare(&self) {
        if !self.spare.swap(false, Ordering::Relaxed) {
            return;
        }
        let mut members = self.members.write().unwrap_or_else(PoisonError::into_inner);
        let empty = |member: &Arc<FileStore>| member.is_empty().unwrap_or(false);
        // An empty member is as good as none, should it have to stay.
        while members.len() > 1
            && members.last().is_some_and(empty)
            && self.remove_last(&mut members).is_ok()
        {}
    }

    fn remove_last(&self, members: &mut Vec<Arc<FileStore>>) -> io::Result<()> {
        let path = (self.name)(members.len() as u64 - 1);
        let ours = members.last().map(|last| last.identity()).transpose()?;
        // Another file may have taken its place, and stays.
        if path.metadata().is_ok_and(|found| Some((found.dev(), found.ino())) == ours) {
            self.observer.before_change();
            std::fs::remove_file(path)?;
        }
        members.pop();
        self.made.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn all(&self) -> Vec<Arc<FileStore>> {
        self.members.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn found(&self, place: usize) -> Option<Arc<FileStore>> {
        self.members.read().unwrap_or_else(PoisonError::into_inner).get(place).cloned()
    }

    /// A member to be changed, created with all before it if it does not exist. The last one stays
    /// empty if possible.
    fn member(&self, place: usize) -> io::Result<Arc<FileStore>> {
        let members = self.members.read().unwrap_or_else(PoisonError::into_inner);
        let room = members.len() + usize::from(self.taken.load(Ordering::Relaxed));
        if self.spare.load(Ordering::Relaxed)
            && place + 1 < room
            && let Some(member) = members.get(place)
        {
            return Ok(member.clone());
        }
        drop(members);
        let mut members = self.members.write().unwrap_or_else(PoisonError::into_inner);
        while members.len() <= place {
            self.add(&mut members)?;
        }
        let last = members.len() - 1;
        if last == place || !members[last].is_empty()? {
            // It is only a sign: without it the store can still be written.
            let taken = self.add(&mut members).is_err();
            self.taken.store(taken, Ordering::Relaxed);
        }
        self.spare.store(true, Ordering::Relaxed);
        Ok(members[place].clone())
    }

    /// Makes the next member, which is empty.
    fn add(&self, members: &mut Vec<Arc<FileStore>>) -> io::Result<()> {
        let path = (self.name)(members.len() as u64);
        let taken = || {
            let what = "the family needs this name to grow, but the file is no part of it: move or delete \
                        the file, then try again";
            io::Error::new(io::ErrorKind::AlreadyExists, what)
        };
        // Before it is touched, and once nobody else can write it.
        if length_of(&path).is_some_and(|length| length > 0) {
            return Err(named(&path, taken()));
        }
        self.observer.before_change();
        let made = FileStore::open_or_create(&path).and_then(|member| {
            member.lock(self.locking, true)?;
            member.watch()?;
            if member.is_empty()? { Ok(member) } else { Err(taken()) }
        });
        members.push(Arc::new(made.map_err(|error| named(&path, error))?));
        self.made.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Fills the first `count` members.
    fn fill(&self, count: usize) -> io::Result<()> {
        for place in self.full.load(Ordering::Relaxed)..count {
            let member = self.member(place)?;
            if member.len()? < self.size {
                self.observer.before_change();
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

    /// How many of `length` bytes from the offset `inside` on are in this member.
    fn here(&self, inside: u64, length: usize) -> usize {
        usize::try_from(self.size - inside).unwrap_or(usize::MAX).min(length)
    }

    /// Takes all members behind the first `count` away, the last one first, but for an empty one.
    fn cut(&self, count: usize) -> io::Result<()> {
        let count = count.max(1);
        // With the empty one behind those that go.
        self.member(0)?;
        let mut members = self.members.write().unwrap_or_else(PoisonError::into_inner);
        self.full.fetch_min(count - 1, Ordering::Relaxed);
        for member in members.iter().skip(count).rev() {
            if !member.is_empty()? {
                self.observer.before_change();
                member.set_len(0)?;
            }
        }
        while members.len() > count + 1 && self.remove_last(&mut members).is_ok() {}
        self.taken.store(false, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for FamilyStore {
    fn drop(&mut self) {
        self.remove_spare();
    }
}

/// Bytes of the file at a path, if there is one.
fn length_of(path: &std::path::Path) -> Option<u64> {
    path.metadata().ok().filter(std::fs::Metadata::is_file).map(|found| found.len())
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
            let member = self.member(place)?;
            self.observer.before_change();
            member.write_at(inside, &bytes[done..done + length])?;
            done += length;
        }
        Ok(())
    }

    fn member_size(&self) -> Option<u64> {
        Some(self.size)
    }

    /// Forgets files that are behind the end and bear no sign of belonging to it.
    fn settle(&self, end: u64) -> io::Result<()> {
        let (first, inside) = self.place(end)?;
        let first = (first + usize::from(inside > 0)).max(1);
        let mut members = self.members.write().unwrap_or_else(PoisonError::into_inner);
        let lengths: Vec<u64> =
            members.iter().map(|member| member.len()).collect::<io::Result<_>>()?;
        let Some(last) = lengths.iter().rposition(|&length| length > 0) else { return Ok(()) };
        let left = lengths.len() > last + 1
            && lengths.iter().skip(first).all(|&length| length <= self.size);
        if last >= first && !left {
            members.truncate(first);
        }
        Ok(())
    }

    fn check(&self) -> io::Result<()> {
        // An empty file has nothing to lose, so it may have been removed.
        let bytes = |member: &&Arc<FileStore>| !member.is_empty().unwrap_or(false);
        let members = self.all();
        let last = members.iter().rposition(|member| bytes(&member)).unwrap_or(0);
        members.iter().take(last + 1).try_for_each(|member| member.check())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let (full, rest) = self.place(len)?;
        self.cut(full + usize::from(rest > 0))?;
        self.fill(full)?;
        if rest > 0 || full == 0 {
            let member = self.member(full)?;
            self.observer.before_change();
            member.set_len(rest)?;
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
        assert_eq!(lengths(&folder), [4, 4, 4, 3, 0]);
        assert_eq!(store.len().unwrap(), 15);
        store.set_len(8).unwrap();
        assert_eq!(lengths(&folder), [4, 4, 0]);
        store.set_len(11).unwrap();
        assert_eq!(lengths(&folder), [4, 4, 3, 0]);
        store.write_at(12, b"c").unwrap();
        assert_eq!(lengths(&folder), [4, 4, 4, 1, 0]);
        store.sync().unwrap();
        drop(store);
        assert_eq!(lengths(&folder), [4, 4, 4, 1]);
        let store = family(&folder, 4);
        assert_eq!(store.len().unwrap(), 13);
        drop(store);
        assert_eq!(lengths(&folder), [4, 4, 4, 1], "nothing was changed");
        let store = family(&folder, 4);
        store.set_len(0).unwrap();
        store.unlock();
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

    /// Checks that the store does not grow over the file of this number, which stays as it is.
    fn refused(folder: &tempfile::TempDir, store: &FamilyStore, number: u64) {
        let path = folder.path().join(number.to_string());
        let before = std::fs::read(&path).unwrap();
        let error = store.write_at(4 * number, b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        let text = error.to_string();
        assert!(text.contains(path.to_str().unwrap()) && text.contains("move or delete"), "{text}");
        store.set_len(1).unwrap();
        store.unlock();
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }

    #[test]
    fn a_file_behind_a_gap_is_neither_overwritten_nor_taken_away() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("2"), "old").unwrap();
        let store = family(&folder, 4);
        assert_eq!(store.len().unwrap(), 0);
        store.write_at(7, b"x").unwrap();
        refused(&folder, &store, 2);
        assert_eq!(lengths(&folder), [1]);
        std::fs::remove_file(folder.path().join("2")).unwrap();
        family(&folder, 4).write_at(11, b"x").unwrap();
        assert_eq!(lengths(&folder), [4, 4, 4]);
    }

    #[test]
    fn a_file_behind_the_end_is_neither_overwritten_nor_taken_away() {
        // Behind a member that is not full, and behind one that is.
        for (first, foreign) in
            [("pu", "mice"), ("pumi", "ce"), ("pumi", "ce, and more than a member")]
        {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("0"), first).unwrap();
            std::fs::write(folder.path().join("1"), foreign).unwrap();
            let store = family(&folder, 4);
            store.settle(first.len() as u64).unwrap();
            assert_eq!(store.len().unwrap(), first.len() as u64);
            refused(&folder, &store, 1);
        }
    }

    #[test]
    fn what_a_program_left_that_was_ended_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        for (number, bytes) in ["pumi", "ce", ""].iter().enumerate() {
            std::fs::write(folder.path().join(number.to_string()), bytes).unwrap();
        }
        let store = family(&folder, 4);
        store.settle(4).unwrap();
        store.set_len(4).unwrap();
        store.write_at(7, b"!").unwrap();
        let mut all = [7; 8];
        store.read_at(0, &mut all).unwrap();
        assert_eq!(&all, b"pumi\0\0\0!");
        drop(store);
        assert_eq!(lengths(&folder), [4, 4]);
    }

    #[test]
    fn a_file_that_takes_the_place_of_the_empty_one_stays_and_one_that_is_missing_does_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        let (other, spare) = (folder.path().join("other"), folder.path().join("1"));
        for replaced in [true, false] {
            let store = family(&folder, 4);
            store.write_at(0, b"ab").unwrap();
            assert_eq!(lengths(&folder), [2, 0]);
            match replaced {
                true => {
                    std::fs::write(&other, "").unwrap();
                    std::fs::rename(&other, &spare).unwrap();
                }
                false => std::fs::remove_file(&spare).unwrap(),
            }
            store.check().unwrap();
            store.write_at(1, b"c").unwrap();
            store.unlock();
            assert_eq!(spare.exists(), replaced);
            drop(store);
            let _ = std::fs::remove_file(&spare);
        }
    }

    #[test]
    fn a_member_with_bytes_always_has_another_file_behind_it_while_it_can_be_left() {
        let folder = tempfile::tempdir().unwrap();
        let store = family(&folder, 4);
        let directory = folder.path().to_path_buf();
        let calls = Arc::new(AtomicUsize::new(0));
        let count = calls.clone();
        let store = store.observed(move || {
            let length = |place: u64| length_of(&directory.join(place.to_string()));
            let lengths: Vec<u64> = (0..).map_while(length).collect();
            let last = lengths.iter().rposition(|&length| length > 0);
            assert!(last.is_none_or(|last| lengths.len() > last + 1), "{lengths:?}");
            count.fetch_add(1, Ordering::Relaxed);
        });
        for length in [3, 4, 9, 30, 8, 7, 1, 12, 0, 5] {
            store.set_len(length).unwrap();
            store.write_at(length, b"12345").unwrap();
        }
        assert!(calls.load(Ordering::Relaxed) > 60);
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
}
