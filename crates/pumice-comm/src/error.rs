//! Errors of ranks that work together.

use std::time::Duration;

/// Why a rank could not do what needs the others.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommError {
    /// A rank is gone.
    #[error("rank {0} has ended")]
    Left(usize),
    /// A rank has given up.
    #[error("rank {rank} has given up: {reason}")]
    Aborted {
        /// Which.
        rank: usize,
        /// What it said.
        reason: String,
    },
    /// A rank did not answer in time.
    #[error("rank {rank} has not answered for {limit:?}")]
    Silent {
        /// Which.
        rank: usize,
        /// The time limit.
        limit: Duration,
    },
    /// There is no such rank.
    #[error("there is no rank {0}")]
    NoRank(usize),
    /// A message is not what it should be: ranks make different calls.
    #[error("ranks make different calls: a message has another form")]
    Garbled,
    /// A sum exceeds 64 bits.
    #[error("a sum over ranks exceeds 64 bits")]
    Overflow,
    /// The transport failed.
    #[error("{0}")]
    Transport(String),
}
