//! Ranks that work together: the seam between collective I/O and whatever carries its messages.
//!
//! A [`Communicator`] knows its rank and how many there are, sends bytes to another rank and receives
//! them in the order in which they were sent. All else is built on that: [`all_gather`](Communicator::all_gather),
//! [`exclusive_scan`](Communicator::exclusive_scan), [`broadcast`](Communicator::broadcast) and
//! [`barrier`](Communicator::barrier) take as many steps as the number of ranks has binary digits.
//!
//! Nothing waits for ever: each wait ends after [`time_limit`](Communicator::time_limit), or earlier if the
//! rank that is waited for is known to be gone.
//!
//! [`ThreadComm`] is ranks in one process, for tests and for programs without MPI; [`Alone`] is one rank.
//!
//! ```
//! use pumice_comm::{Communicator, ThreadComm, run};
//! use std::time::Duration;
//!
//! let found = run(3, Duration::from_secs(10), |comm: ThreadComm| {
//!     let bytes = [comm.rank() as u8];
//!     let before = comm.exclusive_scan(10 + comm.rank() as u64)?;
//!     Ok::<_, pumice_comm::CommError>((comm.all_gather(&bytes)?, before))
//! });
//! let all = vec![vec![0], vec![1], vec![2]];
//! assert_eq!(*found[2].as_ref().unwrap().as_ref().unwrap(), (all, 21));
//! ```

#![forbid(unsafe_code)]

mod alone;
mod error;
mod threads;

pub use alone::Alone;
pub use error::CommError;
pub use threads::{ThreadComm, run};

use std::time::Duration;

type Result<T> = std::result::Result<T, CommError>;

/// One of several ranks that run the same program on their own data.
///
/// All ranks make the same calls in the same order, but for [`send`](Self::send) and
/// [`receive`](Self::receive), of which each must have its counterpart.
pub trait Communicator: Send + Sync {
    /// The number of this rank, from 0 on.
    fn rank(&self) -> usize;

    /// The number of ranks.
    fn size(&self) -> usize;

    /// The longest time that a call waits for another rank.
    fn time_limit(&self) -> Duration;

    /// Sends a message to another rank. Does not wait until it is received.
    fn send(&self, to: usize, message: Vec<u8>) -> Result<()>;

    /// The next message of another rank: they come in the order in which they were sent.
    fn receive(&self, from: usize) -> Result<Vec<u8>>;

    /// Tells all ranks, as far as that is possible, that this one gives up: their waits end with an error.
    fn abort(&self, reason: &str);

    /// What every rank has handed in, by rank.
    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        let (rank, size) = (self.rank(), self.size());
        // Of the ranks from this one on, wrapping around. Each step brings as many more as are known.
        let mut known = vec![bytes.to_vec()];
        while known.len() < size {
            let step = known.len();
            let count = step.min(size - step);
            self.send((rank + size - step) % size, packed(&known[..count]))?;
            let more = unpacked(&self.receive((rank + step) % size)?)?;
            if more.len() != count {
                return Err(CommError::Garbled);
            }
            known.extend(more);
        }
        known.rotate_right(rank);
        Ok(known)
    }

    /// The sum of what the ranks before this one have handed in.
    fn exclusive_scan(&self, value: u64) -> Result<u64> {
        let (rank, size) = (self.rank(), self.size());
        // Sums of ranks that this one does not ask for may be larger than its answer.
        let (mut before, mut total, mut step) = (0u128, u128::from(value), 1);
        while step < size {
            if rank + step < size {
                self.send(rank + step, total.to_le_bytes().to_vec())?;
            }
            if let Some(from) = rank.checked_sub(step) {
                let found = self.receive(from)?.try_into().map_err(|_| CommError::Garbled)?;
                let found = u128::from_le_bytes(found);
                before = before.checked_add(found).ok_or(CommError::Overflow)?;
                total = total.checked_add(found).ok_or(CommError::Overflow)?;
            }
            step *= 2;
        }
        u64::try_from(before).map_err(|_| CommError::Overflow)
    }

    /// What rank `from` hands in; others hand in nothing.
    fn broadcast(&self, from: usize, bytes: &[u8]) -> Result<Vec<u8>> {
        let (rank, size) = (self.rank(), self.size());
        let distance = (rank + size - from) % size;
        // Rank k, counted from the source, has it from k without its highest bit.
        let mut bit = 1;
        let bytes = match distance.checked_ilog2() {
            None => bytes.to_vec(),
            Some(highest) => {
                bit = 2 << highest;
                self.receive((rank + size - (bit >> 1)) % size)?
            }
        };
        while distance + bit < size {
            self.send((rank + bit) % size, bytes.clone())?;
            bit <<= 1;
        }
        Ok(bytes)
    }

    /// Returns when all ranks have called it.
    fn barrier(&self) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        let mut step = 1;
        while step < size {
            self.send((rank + step) % size, Vec::new())?;
            self.receive((rank + size - step) % size)?;
            step *= 2;
        }
        Ok(())
    }
}

impl<C: Communicator + ?Sized> Communicator for Box<C> {
    fn rank(&self) -> usize {
        (**self).rank()
    }

    fn size(&self) -> usize {
        (**self).size()
    }

    fn time_limit(&self) -> Duration {
        (**self).time_limit()
    }

    fn send(&self, to: usize, message: Vec<u8>) -> Result<()> {
        (**self).send(to, message)
    }

    fn receive(&self, from: usize) -> Result<Vec<u8>> {
        (**self).receive(from)
    }

    fn abort(&self, reason: &str) {
        (**self).abort(reason);
    }

    fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        (**self).all_gather(bytes)
    }

    fn exclusive_scan(&self, value: u64) -> Result<u64> {
        (**self).exclusive_scan(value)
    }

    fn broadcast(&self, from: usize, bytes: &[u8]) -> Result<Vec<u8>> {
        (**self).broadcast(from, bytes)
    }

    fn barrier(&self) -> Result<()> {
        (**self).barrier()
    }
}

/// Blocks of bytes as one message: each behind its length.
fn packed(blocks: &[Vec<u8>]) -> Vec<u8> {
    let mut message = Vec::with_capacity(blocks.iter().map(|block| block.len() + 8).sum());
    for block in blocks {
        message.extend_from_slice(&(block.len() as u64).to_le_bytes());
        message.extend_from_slice(block);
    }
    message
}

fn unpacked(mut message: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut blocks = Vec::new();
    while let Some((length, rest)) = message.split_first_chunk() {
        let length = usize::try_from(u64::from_le_bytes(*length)).ok();
        let cut = length.and_then(|length| rest.split_at_checked(length));
        let (block, rest) = cut.ok_or(CommError::Garbled)?;
        blocks.push(block.to_vec());
        message = rest;
    }
    if message.is_empty() { Ok(blocks) } else { Err(CommError::Garbled) }
}
