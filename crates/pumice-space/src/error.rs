//! The errors of shapes and selections.

/// Any failure of this crate except undecodable bytes, which are a
/// [`DecodeError`](pumice_bytes::DecodeError).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpaceError {
    /// Two arguments must have the same number of dimensions.
    #[error("expected rank {expected}, found {found}")]
    RankMismatch {
        /// The rank that was needed.
        expected: usize,
        /// The rank that was given.
        found: usize,
    },
    /// More dimensions than HDF5 allows.
    #[error("rank {0} is larger than 32")]
    RankTooLarge(usize),
    /// A selection reaches beyond the extent.
    #[error("coordinate {coordinate} of dimension {axis} is outside its size {size}")]
    OutOfBounds {
        /// The dimension.
        axis: usize,
        /// The coordinate that lies outside.
        coordinate: u64,
        /// The size of the dimension.
        size: u64,
    },
    /// A hyperslab whose parameters contradict each other.
    #[error("hyperslab, dimension {axis}: {reason}")]
    InvalidHyperslab {
        /// The dimension.
        axis: usize,
        /// The fault.
        reason: &'static str,
    },
    /// A shape that cannot be: a maximum below the size, or a chunk of size zero.
    #[error("shape, dimension {axis}: {reason}")]
    InvalidShape {
        /// The dimension.
        axis: usize,
        /// The fault.
        reason: &'static str,
    },
    /// A number of cells or coordinates beyond 64 bits.
    #[error("{0} exceeds 64 bits")]
    Overflow(&'static str),
    /// File and memory selections of different sizes.
    #[error("{file} cell(s) selected in the file, {memory} in memory")]
    CountMismatch {
        /// Cells selected in the file.
        file: u64,
        /// Cells selected in memory.
        memory: u64,
    },
    /// Runs or cells that must ascend without overlap do not.
    #[error("cell {cell} does not ascend, or lies outside a chunk of {cells} cell(s)")]
    UnorderedCells {
        /// The first offending cell.
        cell: u64,
        /// Cells of the chunk.
        cells: u64,
    },
    /// An operation whose result would take unreasonably much memory.
    #[error("the selection needs more than {limit} pieces")]
    TooComplex {
        /// The limit that was met.
        limit: u64,
    },
    /// An axis that is longer than the sizes of a file can say.
    #[error("an axis of {size} cells, where this file takes {most} at most")]
    TooLong {
        /// Its cells, now or one day.
        size: u64,
        /// The most that can be said.
        most: u64,
    },
    /// An encoding cannot express its argument.
    #[error("{0} cannot be expressed in the requested encoding")]
    Inexpressible(&'static str),
}
