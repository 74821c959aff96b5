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
    /// Another program changed the file while it was open. Nothing was written; what was read before is of another
    /// state than what could be read now.
    #[error("the file was changed while it was open: {0}; refresh it, or open it again")]
    Changed(String),
    /// A program writes the file beside readers (SWMR), or ended without closing it.
    #[error("{0}")]
    BeingWritten(&'static str),
    /// Bytes in the file are not what they should be.
    #[error(transparent)]
    Decode(#[from] pumice_bytes::DecodeError),
    /// Something cannot be written in HDF5's format.
    #[error(transparent)]
    Format(#[from] pumice_format::FormatError),
    /// A selection or shape does not fit.
    #[error(transparent)]
    Space(#[from] pumice_space::SpaceError),
    /// Values cannot be converted.
    #[error(transparent)]
    Type(#[from] pumice_types::TypeError),
    /// A filter failed or is missing.
    #[error(transparent)]
    Filter(#[from] pumice_filter::FilterError),
    /// The chunk cache could not serve the request.
    #[error(transparent)]
    Cache(#[from] pumice_cache::CacheError),
    /// Changes that cannot be stored, because they cannot be encoded: mostly, a filter refuses them. All other changes of the file are.
    #[error("{what}: {source}")]
    NotStored {
        /// Which, and what becomes of them.
        what: String,
        /// Why the first of them cannot be stored.
        source: Box<Error>,
    },
    /// A name leads nowhere.
    #[error("{0}")]
    NotFound(String),
    /// A failure, and the object at which it happened.
    #[error("{path}: {source}")]
    At {
        /// The object's path in the file.
        path: String,
        /// What went wrong there.
        source: Box<Error>,
    },
    /// The request itself is wrong.
    #[error("{0}")]
    Invalid(String),
    /// The file uses something that is not supported yet.
    #[error("not supported yet: {0}")]
    Unsupported(String),
    /// A rule inside the engine does not hold: a defect of Pumice.
    #[error("internal error, please report it: {0}")]
    Internal(String),
}

impl Error {
    /// Says at which object it happened. The innermost path stays.
    pub fn at(self, path: &str) -> Self {
        match self {
            Self::At { .. } => self,
            other => Self::At { path: path.into(), source: Box::new(other) },
        }
    }

    /// Says in which other file it happened.
    pub(crate) fn in_file(self, file: &str) -> Self {
        match self {
            Self::At { path, source } => Self::At { path: format!("{file}: {path}"), source },
            other => other.at(file),
        }
    }

    /// What went wrong first, without the object at which it happened.
    pub fn cause(&self) -> &Self {
        match self {
            Self::At { source, .. } | Self::NotStored { source, .. } => source.cause(),
            other => other,
        }
    }

    /// Whether all is stored but changes that filters refuse.
    pub fn is_not_stored(&self) -> bool {
        match self {
            Self::At { source, .. } => source.is_not_stored(),
            other => matches!(other, Self::NotStored { .. }),
        }
    }

    /// Whether the file could be read as one that is being written (SWMR).
    pub fn is_being_written(&self) -> bool {
        matches!(self.cause(), Self::BeingWritten(_))
    }

    /// Whether another program changed the file: what is there now is found by reading it again, or opening it.
    pub fn is_changed(&self) -> bool {
        matches!(self.cause(), Self::Changed(_))
    }

    /// Whether it uses a version, class or type that only a newer program can know: it is not damaged.
    pub fn is_newer(&self) -> bool {
        matches!(self.cause(), Self::Decode(error) if error.is_newer())
    }

    /// Whether a filter that this build does not have is all that is missing.
    pub fn is_missing_filter(&self) -> bool {
        matches!(self.cause(), Self::Filter(pumice_filter::FilterError::Missing { .. }))
    }
}
