//! One rank, which needs no messages.

use crate::{CommError, Communicator};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The only rank.
///
/// ```
/// use pumice_comm::{Alone, Communicator};
/// let alone = Alone::default();
/// assert_eq!((alone.rank(), alone.size()), (0, 1));
/// assert_eq!(alone.all_gather(b"pumice")?, [b"pumice"]);
/// # Ok::<(), pumice_comm::CommError>(())
/// ```
#[derive(Debug, Default)]
pub struct Alone {
    to_itself: Mutex<VecDeque<Vec<u8>>>,
}

impl Communicator for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn size(&self) -> usize {
        1
    }

    fn time_limit(&self) -> Duration {
        Duration::ZERO
    }

    fn send(&self, to: usize, message: Vec<u8>) -> Result<(), CommError> {
        if to != 0 {
            return Err(CommError::NoRank(to));
        }
        self.to_itself.lock().unwrap_or_else(PoisonError::into_inner).push_back(message);
        Ok(())
    }

    fn receive(&self, from: usize) -> Result<Vec<u8>, CommError> {
        if from != 0 {
            return Err(CommError::NoRank(from));
        }
        let next = self.to_itself.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        next.ok_or(CommError::Silent { rank: 0, limit: Duration::ZERO })
    }

    fn abort(&self, _reason: &str) {}
}
