//! A store that takes no more writes after a failure, so that a file that is dropped in the middle of
//! something, by an error or a panic, stays as at its last commit.

use pumice_store::{ReadOp, Renewal, Store, WriteOp};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

pub(crate) struct Gate {
    store: RwLock<Option<Arc<dyn Store>>>,
    shut: AtomicBool,
}

impl Gate {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self { store: RwLock::new(Some(store)), shut: AtomicBool::new(false) }
    }

    /// From now on every write fails.
    pub(crate) fn shut(&self) {
        self.shut.store(true, Ordering::SeqCst);
    }

    /// Lets the file go, with its lock, though there may still be handles of datasets.
    pub(crate) fn release(&self) {
        self.shut();
        self.store.write().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn store(&self) -> io::Result<Arc<dyn Store>> {
        let store = self.store.read().unwrap_or_else(PoisonError::into_inner).clone();
        store.ok_or_else(|| io::Error::other("the file is closed"))
    }

    fn open(&self) -> io::Result<Arc<dyn Store>> {
        if std::thread::panicking() {
            self.shut();
        }
        match self.shut.load(Ordering::SeqCst) {
            false => self.store(),
            true => Err(io::Error::other("a collective call has failed")),
        }
    }
}

impl Store for Gate {
    fn len(&self) -> io::Result<u64> {
        self.store()?.len()
    }

    fn room(&self, offset: u64) -> io::Result<u64> {
        self.store()?.room(offset)
    }

    fn volume(&self) -> io::Result<u64> {
        self.store()?.volume()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.store()?.read_at(offset, buffer)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.open()?.write_at(offset, bytes)
    }

    fn read_vectored(&self, ops: &mut [ReadOp<'_>]) -> io::Result<()> {
        self.store()?.read_vectored(ops)
    }

    fn write_vectored(&self, ops: &[WriteOp<'_>]) -> io::Result<()> {
        self.open()?.write_vectored(ops)
    }

    fn expect(&self, offset: u64, len: u64) {
        if let Ok(store) = self.open() {
            store.expect(offset, len);
        }
    }

    fn settle(&self, end: u64) -> io::Result<()> {
        self.store()?.settle(end)
    }

    fn beside(&self, other: Arc<dyn Store>) -> Arc<dyn Store> {
        match self.store() {
            Ok(store) => store.beside(other),
            Err(_) => other,
        }
    }

    fn check(&self) -> io::Result<()> {
        self.store()?.check()
    }

    fn is_unlocked(&self) -> bool {
        self.store().is_ok_and(|store| store.is_unlocked())
    }

    fn renew(&self, step: Renewal) -> io::Result<()> {
        self.store()?.renew(step)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.open()?.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.open()?.sync()
    }
}
