//! The error of a collective call.

use pumice_comm::CommError;

/// Why a collective call failed. All ranks get an error, if any does.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CollectiveError {
    /// The file, on this rank.
    #[error(transparent)]
    File(#[from] pumice::Error),
    /// Another rank cannot be reached, or has given up.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// Another rank could not do its part.
    #[error("rank {rank}: {reason}")]
    Elsewhere {
        /// Which.
        rank: usize,
        /// What it said.
        reason: String,
    },
    /// Ranks make different calls, or hand in different descriptions.
    #[error("ranks do not agree: {0}")]
    Disagree(String),
    /// Two ranks have changed one chunk, each for itself.
    #[error(
        "chunk {chunk:?} of {dataset} was changed by ranks {ranks:?}, one of them for itself alone"
    )]
    Shared {
        /// The dataset's path.
        dataset: String,
        /// The chunk's coordinates in the grid.
        chunk: Vec<u64>,
        /// Who.
        ranks: [usize; 2],
    },
    /// An earlier call failed in its middle. The file is as at its last commit.
    #[error("no more can be done with this file, which is as at its last commit: {0}")]
    Broken(String),
    /// The operating system, when this rank wrote its chunks.
    #[error("write chunks: {0}")]
    Write(#[from] std::io::Error),
}

impl CollectiveError {
    /// Whether nothing more can be done with the open file.
    pub fn is_fatal(&self) -> bool {
        matches!(self, Self::Comm(_) | Self::Broken(_) | Self::Disagree(_))
    }
}

impl From<pumice_space::SpaceError> for CollectiveError {
    fn from(error: pumice_space::SpaceError) -> Self {
        Self::File(error.into())
    }
}

impl From<pumice_types::TypeError> for CollectiveError {
    fn from(error: pumice_types::TypeError) -> Self {
        Self::File(error.into())
    }
}
