//! Staging, reading, and the length of the file.

use super::*;
use pumice_store::MemoryStore;

#[test]
fn staged_blocks_are_read_before_and_after_the_commit_that_writes_them() {
    let store = Arc::new(MemoryStore::new(vec![0; 16]));
    let medium = Medium::new(store.clone(), 0, 16, Sizes::default(), true);
    let address = medium.allocate(4).unwrap();
    medium.stage(address, vec![1, 2, 3, 4]);
    assert_eq!(medium.read(address, 4).unwrap(), [1, 2, 3, 4]);
    assert_eq!(store.len().unwrap(), 16, "nothing is written before the commit");
    let snapshot = medium.begin_commit().unwrap().unwrap();
    medium.commit(snapshot, |end, _| Ok(vec![end as u8; 8])).unwrap();
    assert_eq!(medium.read(address, 4).unwrap(), [1, 2, 3, 4]);
    assert_eq!(store.to_vec()[..8], [20; 8]);
    assert!(medium.begin_commit().unwrap().is_none(), "nothing is left to write");
}

#[test]
fn addresses_outside_the_file_are_errors() {
    let medium =
        Medium::new(Arc::new(MemoryStore::new(vec![0; 16])), 0, 16, Sizes::default(), false);
    assert!(medium.read(12, 8).is_err());
    assert!(medium.read(u64::MAX, 1).is_err());
    assert!(medium.read_up_to(16, 1).is_err());
    assert_eq!(medium.read_up_to(12, 100).unwrap().len(), 4);
}

/// A store that lets another thread write to new space whenever its length is asked for.
struct Busy {
    inner: MemoryStore,
    medium: std::sync::Weak<Medium>,
    writers: Mutex<Vec<std::thread::JoinHandle<u64>>>,
}

impl Store for Busy {
    fn len(&self) -> std::io::Result<u64> {
        let len = self.inner.len()?;
        if let Some(medium) = self.medium.upgrade() {
            let (sender, receiver) = std::sync::mpsc::channel();
            self.writers.lock().unwrap().push(std::thread::spawn(move || {
                let offset = medium.allocate(64).unwrap();
                medium.put(&mut [WriteOp { offset, bytes: &[7; 64] }]).unwrap();
                let _ = sender.send(());
                offset
            }));
            let _ = receiver.recv_timeout(std::time::Duration::from_millis(50));
        }
        Ok(len)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        self.inner.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.inner.write_at(offset, bytes)
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.inner.set_len(len)
    }

    fn sync(&self) -> std::io::Result<()> {
        self.inner.sync()
    }
}

#[test]
fn a_commit_never_cuts_off_what_others_write_meanwhile() {
    let mut busy = None;
    let medium = Arc::new_cyclic(|medium| {
        let inner = MemoryStore::new(vec![0; 16]);
        let store = Busy { inner, medium: medium.clone(), writers: Mutex::default() };
        let store = Arc::new(store);
        busy = Some(store.clone());
        Medium::new(store, 0, 16, Sizes::default(), true)
    });
    medium.allocate(32).unwrap();
    let snapshot = medium.begin_commit().unwrap().unwrap();
    medium.commit(snapshot, |_, _| Ok(vec![1; 8])).unwrap();
    let busy = busy.unwrap();
    let writers = std::mem::take(&mut *busy.writers.lock().unwrap());
    assert!(!writers.is_empty());
    for writer in writers {
        let offset = writer.join().unwrap();
        let mut found = [0; 64];
        busy.inner.read_at(offset, &mut found).unwrap();
        assert_eq!(found, [7; 64]);
    }
}

/// A store whose sync with the number `fails` fails.
struct Unsteady {
    inner: Arc<MemoryStore>,
    fails: usize,
    syncs: std::sync::atomic::AtomicUsize,
}

impl Store for Unsteady {
    fn len(&self) -> std::io::Result<u64> {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        self.inner.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.inner.write_at(offset, bytes)
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.inner.set_len(len)
    }

    fn sync(&self) -> std::io::Result<()> {
        match self.syncs.fetch_add(1, Ordering::Relaxed) == self.fails {
            true => Err(std::io::Error::other("the device is gone")),
            false => self.inner.sync(),
        }
    }
}

#[test]
fn after_a_failed_sync_a_file_takes_no_more_commits_until_it_is_opened_again() {
    let commit = |medium: &Medium| {
        let Some(snapshot) = medium.begin_commit()? else { return Ok(()) };
        medium.commit(snapshot, |end, _| Ok(vec![end as u8; 8]))
    };
    let mut failures = 0;
    for fails in 0.. {
        let bytes = Arc::new(MemoryStore::new(vec![0; 16]));
        let store = Unsteady { inner: bytes.clone(), fails, syncs: Default::default() };
        let store = Arc::new(store);
        let medium = Medium::new(store.clone(), 0, 16, Sizes::default(), true)
            .with_durability(Durability::Power);
        let address = medium.allocate(8).unwrap();
        medium.stage(address, vec![1; 8]);
        let first = commit(&medium);
        // Replaces a block: this commit has a journal.
        medium.stage(address, vec![2; 8]);
        let second = commit(&medium);
        if first.is_ok() && second.is_ok() {
            break;
        }
        failures += 1;
        let syncs = store.syncs.load(Ordering::Relaxed);
        assert_eq!(syncs, fails + 1, "the failed sync is the last that is tried");
        let written = bytes.to_vec();
        for refused in [commit(&medium), medium.write_superblock(vec![9; 8])] {
            assert!(matches!(refused, Err(Error::NotSynced(_))), "{refused:?}");
        }
        assert!(matches!(medium.abandon(), Err(Error::NotSynced(_))));
        assert_eq!(bytes.to_vec(), written, "nothing is written any more");
    }
    assert!(failures > 6, "{failures} syncs in two commits");
}

#[test]
fn a_user_block_shifts_every_address() {
    let store = Arc::new(MemoryStore::new((0..32).collect()));
    let medium = Medium::new(store, 16, 16, Sizes::default(), false);
    assert_eq!(medium.read(0, 2).unwrap(), [16, 17]);
}
