//! Ranks that are processes of MPI, for files of [`pumice_collective`].
//!
//! ```no_run
//! use pumice_collective::CollectiveFile;
//! use pumice_mpi::MpiComm;
//! use std::sync::Arc;
//!
//! let universe = mpi::initialize_with_threading(mpi::Threading::Serialized).unwrap().0;
//! let comm = Arc::new(MpiComm::world(&universe)?);
//! let file = CollectiveFile::create(comm, "a.h5")?;
//! file.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Waits poll, first without pause and then with pauses that grow, so that a rank that waits takes no processor
//! from one that works. That also gives them a time limit, which MPI's own calls do not have.
//!
//! A message is its length, then its bytes in pieces of at most 1 GiB, since MPI counts in 31 bits.

use mpi::environment::Universe;
use mpi::ffi;
use pumice_comm::{CommError, Communicator};
use std::os::raw::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most bytes of a piece.
const PIECE: usize = 1 << 30;

/// What a message is.
const LENGTH: c_int = 1;
const BYTES: c_int = 2;
const ABORT: c_int = 3;

/// How long a rank waits for another unless told otherwise.
const LIMIT: Duration = Duration::from_secs(600);

/// All processes of a program, as ranks.
#[derive(Debug)]
pub struct MpiComm {
    state: Mutex<State>,
    rank: usize,
    size: usize,
    limit: Duration,
}

#[derive(Debug)]
struct State {
    comm: ffi::MPI_Comm,
    sends: Vec<Sending>,
    aborted: Option<(usize, String)>,
}

/// A send under way, with the bytes that MPI reads.
#[derive(Debug)]
struct Sending {
    request: ffi::MPI_Request,
    _bytes: Vec<u8>,
}

// SAFETY: handles of MPI are values without a thread of their own; all calls with them are made under the lock of
// `MpiComm::state`, as `Threading::Serialized` asks for.
unsafe impl Send for State {}

impl MpiComm {
    /// All processes that were started together.
    pub fn world(universe: &Universe) -> Result<Self, CommError> {
        Self::with_limit(universe, LIMIT)
    }

    /// All processes that were started together, which wait for one another so long.
    pub fn with_limit(_universe: &Universe, limit: Duration) -> Result<Self, CommError> {
        if mpi::environment::threading_support() < mpi::Threading::Serialized {
            return Err(CommError::Transport("MPI without support for threads".into()));
        }
        // SAFETY: MPI is initialised, as there is a universe; the places are valid for one value each.
        unsafe {
            let mut comm = ffi::RSMPI_COMM_WORLD;
            checked(ffi::MPI_Comm_dup(ffi::RSMPI_COMM_WORLD, &mut comm))?;
            let (mut rank, mut size) = (0, 0);
            checked(ffi::MPI_Comm_rank(comm, &mut rank))?;
            checked(ffi::MPI_Comm_size(comm, &mut size))?;
            let state = Mutex::new(State { comm, sends: Vec::new(), aborted: None });
            Ok(Self { state, rank: rank as usize, size: size as usize, limit })
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn post(&mut self, to: usize, tag: c_int, bytes: Vec<u8>) -> Result<(), CommError> {
        // SAFETY: the bytes stay where they are until the request is done, since `Sending` keeps the vector.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            checked(ffi::MPI_Isend(
                bytes.as_ptr().cast(),
                bytes.len() as c_int,
                ffi::RSMPI_UINT8_T,
                to as c_int,
                tag,
                self.comm,
                &mut request,
            ))?;
            self.sends.push(Sending { request, _bytes: bytes });
        }
        Ok(())
    }

    /// Lets go of sends that are done.
    fn tidy(&mut self) -> Result<(), CommError> {
        let mut failed = Ok(());
        self.sends.retain_mut(|sending| match tested(&mut sending.request) {
            Ok(done) => !done,
            Err(error) => {
                failed = Err(error);
                true
            }
        });
        failed
    }

    /// Receives exactly `length` bytes.
    fn take(
        &mut self,
        from: usize,
        tag: c_int,
        length: usize,
        limit: Duration,
    ) -> Result<Vec<u8>, CommError> {
        let mut bytes = vec![0u8; length];
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        // SAFETY: the bytes stay where they are until the request is done or cancelled, below.
        unsafe {
            checked(ffi::MPI_Irecv(
                bytes.as_mut_ptr().cast(),
                length as c_int,
                ffi::RSMPI_UINT8_T,
                from as c_int,
                tag,
                self.comm,
                &mut request,
            ))?;
        }
        let (begin, mut pauses) = (Instant::now(), 0u32);
        let failed = loop {
            match tested(&mut request) {
                Ok(true) => return Ok(bytes),
                Ok(false) => {}
                Err(error) => break error,
            }
            self.tidy()?;
            self.look_for_abort()?;
            if let Some((rank, reason)) = self.aborted.clone() {
                break CommError::Aborted { rank, reason };
            }
            if begin.elapsed() > limit {
                break CommError::Silent { rank: from, limit };
            }
            pause(&mut pauses);
        };
        // SAFETY: the request is active; after the wait MPI no longer writes to the bytes.
        unsafe {
            ffi::MPI_Cancel(&mut request);
            ffi::MPI_Wait(&mut request, ffi::RSMPI_STATUS_IGNORE);
        }
        Err(failed)
    }

    fn look_for_abort(&mut self) -> Result<(), CommError> {
        // SAFETY: the places are valid for one value each; the buffer is as long as what is received.
        unsafe {
            let mut flag = 0;
            let mut status: ffi::MPI_Status = std::mem::zeroed();
            let any = ffi::RSMPI_ANY_SOURCE;
            checked(ffi::MPI_Iprobe(any, ABORT, self.comm, &mut flag, &mut status))?;
            if flag == 0 {
                return Ok(());
            }
            let mut length = 0;
            checked(ffi::MPI_Get_count(&status, ffi::RSMPI_UINT8_T, &mut length))?;
            let mut reason = vec![0u8; length as usize];
            checked(ffi::MPI_Recv(
                reason.as_mut_ptr().cast(),
                length,
                ffi::RSMPI_UINT8_T,
                status.MPI_SOURCE,
                ABORT,
                self.comm,
                ffi::RSMPI_STATUS_IGNORE,
            ))?;
            let reason = String::from_utf8_lossy(&reason).into_owned();
            self.aborted.get_or_insert((status.MPI_SOURCE as usize, reason));
        }
        Ok(())
    }
}

impl Communicator for MpiComm {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn time_limit(&self) -> Duration {
        self.limit
    }

    fn send(&self, to: usize, mut message: Vec<u8>) -> Result<(), CommError> {
        if to >= self.size {
            return Err(CommError::NoRank(to));
        }
        let mut state = self.state();
        state.tidy()?;
        state.post(to, LENGTH, (message.len() as u64).to_le_bytes().to_vec())?;
        while message.len() > PIECE {
            let rest = message.split_off(PIECE);
            state.post(to, BYTES, std::mem::replace(&mut message, rest))?;
        }
        if message.is_empty() { Ok(()) } else { state.post(to, BYTES, message) }
    }

    fn receive(&self, from: usize) -> Result<Vec<u8>, CommError> {
        if from >= self.size {
            return Err(CommError::NoRank(from));
        }
        let mut state = self.state();
        let length = state.take(from, LENGTH, 8, self.limit)?;
        let length =
            u64::from_le_bytes(length.try_into().map_err(|_| CommError::Garbled)?) as usize;
        let mut message = Vec::new();
        while message.len() < length {
            let piece = state.take(from, BYTES, (length - message.len()).min(PIECE), self.limit)?;
            if message.is_empty() {
                message = piece;
            } else {
                message.extend_from_slice(&piece);
            }
        }
        Ok(message)
    }

    fn abort(&self, reason: &str) {
        let mut state = self.state();
        let told = state.aborted.replace((self.rank, reason.to_owned())).is_some();
        for to in (0..self.size).filter(|&to| to != self.rank && !told) {
            // Who cannot be told finds out by the time limit.
            let _ = state.post(to, ABORT, reason.as_bytes().to_vec());
        }
    }
}

impl Drop for MpiComm {
    fn drop(&mut self) {
        let limit = self.limit.min(Duration::from_secs(5));
        let mut state = self.state();
        let (begin, mut pauses) = (Instant::now(), 0);
        while state.tidy().is_ok() && !state.sends.is_empty() && begin.elapsed() < limit {
            pause(&mut pauses);
        }
        // MPI may still read what nobody has received.
        std::mem::forget(std::mem::take(&mut state.sends));
    }
}

/// Whether a request is done.
fn tested(request: &mut ffi::MPI_Request) -> Result<bool, CommError> {
    let mut flag = 0;
    // SAFETY: the request is one of ours, and the places are valid for one value each.
    unsafe { checked(ffi::MPI_Test(request, &mut flag, ffi::RSMPI_STATUS_IGNORE))? };
    Ok(flag != 0)
}

fn checked(code: c_int) -> Result<(), CommError> {
    match code {
        0 => Ok(()),
        code => Err(CommError::Transport(format!("MPI: error {code}"))),
    }
}

/// Waits a little: not at all at first, then up to a fifth of a millisecond.
fn pause(count: &mut u32) {
    *count += 1;
    match *count {
        0..64 => std::hint::spin_loop(),
        64..256 => std::thread::yield_now(),
        _ => std::thread::sleep(Duration::from_micros(u64::from(*count / 32).min(200))),
    }
}
