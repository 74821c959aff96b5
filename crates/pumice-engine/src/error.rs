//! What can go wrong in a living file.

/// The result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Any failure of the engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("{action}: {source}")]
    Io {
        /// What was being done.
        action: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Bytes in the file are not what they should be.
    #[error(transparent)]
    Decode(#[from] pumice_bytes::DecodeError),
    /// The request itself is wrong.
    #[error("{0}")]
    Invalid(String),
    /// The file uses something that is not supported yet.
    #[error("not supported yet: {0}")]
    Unsupported(String),
}
