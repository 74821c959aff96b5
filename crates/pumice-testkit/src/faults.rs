//! A store that counts its calls, those of external raw data included, and fails at one of them.

use pumice_store::{ReadOp, Store, WriteOp};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A read fails.
    ReadError,
    /// A read gives half of what was asked for.
    ShortRead,
    /// Half of a write is done.
    WriteError,
    /// Every write fails from here on, until the store is [healed](FaultyStore::heal).
    DiskFull,
}

/// The kind of a call, as far as faults are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Reads, or asks for the length.
    Read,
    /// Writes, or changes the length.
    Write,
}

impl Call {
    /// The faults that a call can have.
    pub fn faults(self) -> [Fault; 2] {
        match self {
            Call::Read => [Fault::ReadError, Fault::ShortRead],
            Call::Write => [Fault::WriteError, Fault::DiskFull],
        }
    }
}

/// Another store, a record of all calls, and a fault to come.
///
/// ```
/// use pumice_store::{MemoryStore, Store};
/// use pumice_testkit::faults::{Fault, FaultyStore};
/// use std::sync::Arc;
///
/// let store = FaultyStore::new(Arc::new(MemoryStore::new(vec![1, 2, 3, 4])));
/// store.fail_at(1, Fault::ReadError);
/// assert!(store.read_at(0, &mut [0; 2]).is_ok());
/// assert!(store.read_at(0, &mut [0; 2]).is_err());
/// assert!(store.read_at(0, &mut [0; 2]).is_ok(), "once only");
/// ```
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    /// Shared with stores [beside](Store::beside) it.
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    calls: Vec<Call>,
    next: Option<(usize, Fault)>,
    full: bool,
}

impl FaultyStore {
    /// A store without faults over `inner`.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, state: Arc::default() }
    }

    /// Forgets the calls made so far, and lets call number `call` from here on (from 0) fail, or the
    /// first after it that can have this fault.
    pub fn fail_at(&self, call: usize, fault: Fault) {
        *self.state() = State { next: Some((call, fault)), ..State::default() };
    }

    /// Forgets the calls made so far.
    pub fn forget(&self) {
        *self.state() = State::default();
    }

    /// The calls so far.
    pub fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    /// Whether the fault is still to come.
    pub fn is_waiting(&self) -> bool {
        self.state().next.is_some()
    }

    /// There is room on the disk again, and no fault to come.
    pub fn heal(&self) {
        let mut state = self.state();
        (state.full, state.next) = (false, None);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a call, and returns its fault.
    fn note(&self, call: Call) -> Option<Fault> {
        let mut state = self.state();
        let number = state.calls.len();
        state.calls.push(call);
        if state.full && call == Call::Write {
            return Some(Fault::DiskFull);
        }
        let (_, fault) =
            state.next.take_if(|(at, fault)| *at <= number && call.faults().contains(fault))?;
        state.full = fault == Fault::DiskFull;
        Some(fault)
    }
}

fn failed(fault: Fault) -> io::Error {
    match fault {
        Fault::ReadError => io::Error::other("injected read error"),
        Fault::ShortRead => io::Error::new(io::ErrorKind::UnexpectedEof, "injected short read"),
        Fault::WriteError => io::Error::other("injected write error"),
        Fault::DiskFull => io::Error::new(io::ErrorKind::StorageFull, "injected full disk"),
    }
}

/// Half of a length, in whole elements of up to eight bytes.
fn half(len: usize) -> usize {
    len / 2 / 8 * 8
}

impl Store for FaultyStore {
    fn len(&self) -> io::Result<u64> {
        match self.note(Call::Read) {
            Some(fault) => Err(failed(fault)),
            None => self.inner.len(),
        }
    }

    fn room(&self, offset: u64) -> io::Result<u64> {
        match self.note(Call::Read) {
            Some(fault) => Err(failed(fault)),
            None => self.inner.room(offset),
        }
    }

    fn volume(&self) -> io::Result<u64> {
        self.inner.volume()
    }

    fn starts(&self) -> Vec<u64> {
        self.inner.starts()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read_vectored(&mut [ReadOp { offset, buffer }])
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_vectored(&[WriteOp { offset, bytes }])
    }

    fn read_vectored(&self, ops: &mut [ReadOp<'_>]) -> io::Result<()> {
        let fault = self.note(Call::Read);
        if fault == Some(Fault::ShortRead)
            && let Some(ReadOp { offset, buffer }) = ops.first_mut()
        {
            let some = half(buffer.len());
            self.inner.read_at(*offset, &mut buffer[..some])?;
        }
        match fault {
            Some(fault) => Err(failed(fault)),
            None => ops.iter_mut().try_for_each(|op| self.inner.read_at(op.offset, op.buffer)),
        }
    }

    fn write_vectored(&self, ops: &[WriteOp<'_>]) -> io::Result<()> {
        let fault = self.note(Call::Write);
        if fault == Some(Fault::WriteError) {
            let (done, left) = ops.split_at(ops.len() / 2);
            done.iter().try_for_each(|op| self.inner.write_at(op.offset, op.bytes))?;
            if let Some(op) = left.first() {
                self.inner.write_at(op.offset, &op.bytes[..half(op.bytes.len())])?;
            }
        }
        match fault {
            Some(fault) => Err(failed(fault)),
            None => ops.iter().try_for_each(|op| self.inner.write_at(op.offset, op.bytes)),
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        match self.note(Call::Write) {
            Some(fault) => Err(failed(fault)),
            None => self.inner.set_len(len),
        }
    }

    fn beside(&self, other: Arc<dyn Store>) -> Arc<dyn Store> {
        Arc::new(Self { inner: other, state: self.state.clone() })
    }

    fn sync(&self) -> io::Result<()> {
        match self.note(Call::Write) {
            Some(fault) => Err(failed(fault)),
            None => self.inner.sync(),
        }
    }
}
