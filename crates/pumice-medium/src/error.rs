//! The error of an open file.

/// The result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Any failure of the engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("{action}: {source}")]
    Io {
        /// The action that failed.
        action: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Another program changed the file while it was open. Nothing was written; data that was read
    /// before may be of another state than the file has now.
    #[error("the file was changed while it was open: {0}; refresh it, or open it again")]
    Changed(String),
    /// The device did not take what a commit wrote. The file takes no more commits until it is opened again.
    #[error(
        "the device did not take what was written ({0}); the file takes no more commits: close it, open it again, and look \
         which of the last changes are there"
    )]
    NotSynced(String),
    /// A program writes the file beside readers (SWMR), or ended without closing it.
    #[error("{0}")]
    BeingWritten(&'static str),
    /// Bytes in the file are invalid.
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
        /// Which changes, and what happens to them.
        what: String,
        /// The cause for the first of them.
        source: Box<Error>,
    },
    /// A name leads nowhere.
    #[error("{0}")]
    NotFound(String),
    /// A name is taken.
    #[error("{0}")]
    Exists(String),
    /// The file or object cannot be changed.
    #[error("{0}")]
    ReadOnly(String),
    /// An object is of another kind than the one that was asked for.
    #[error("{0}")]
    WrongKind(String),
    /// An index lies outside.
    #[error("{0}")]
    OutOfBounds(String),
    /// Something has another number of dimensions, or another shape.
    #[error("{0}")]
    RankMismatch(String),
    /// There are more or fewer values than cells.
    #[error("{0}")]
    CountMismatch(String),
    /// No conversion leads from one datatype to the other.
    #[error("{0}")]
    TypeMismatch(String),
    /// A value does not exist in its datatype.
    #[error("{0}")]
    WrongValue(String),
    /// Another program writes the file, or ended without closing it.
    #[error("{0}")]
    Locked(String),
    /// Parts of the file contradict each other.
    #[error("{0}")]
    Damaged(String),
    /// A filter is not part of this build, and no plugin was found.
    #[error("{0}")]
    FilterMissing(String),
    /// The file has no room for more.
    #[error("{0}")]
    NoSpace(String),
    /// There is not enough memory.
    #[error("{0}")]
    NoMemory(String),
    /// A failure, and the object at which it happened.
    #[error("{path}: {source}")]
    At {
        /// The object's path in the file.
        path: String,
        /// The cause.
        source: Box<Error>,
    },
    /// The request itself is wrong.
    #[error("{0}")]
    Invalid(String),
    /// The file uses a feature that is not supported yet.
    #[error("not supported yet: {0}")]
    Unsupported(String),
    /// A rule inside the engine does not hold: a defect of Pumice.
    #[error("internal error, please report it: {0}")]
    Internal(String),
}

/// The kind of a fault, the same whatever part of the program found it.
///
/// ```
/// use pumice_medium::{Error, ErrorKind};
///
/// let error = Error::NotFound("no link \"a\"".into()).at("/group");
/// assert_eq!(error.kind(), ErrorKind::NotFound);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system refused; [`Error::io`] has its answer.
    Io,
    /// There is no room on the disk, or in the addresses of the file.
    NoSpace,
    /// There is not enough memory.
    NoMemory,
    /// Another program has the file open, or writes it.
    Locked,
    /// The file was changed by another program while it was open.
    Changed,
    /// Bytes in the file are invalid.
    Damaged,
    /// The file has something of a version that this program does not know.
    TooNew,
    /// A name leads nowhere: no object, link, attribute or file.
    NotFound,
    /// A name is taken.
    Exists,
    /// The file is open for reading only, or the object can only be read.
    ReadOnly,
    /// An object is of another kind, such as a group where a dataset was asked for.
    WrongKind,
    /// An index or a selection reaches beyond the extent.
    OutOfBounds,
    /// A selection, a point or an array has another number of dimensions, or another shape.
    RankMismatch,
    /// There are more or fewer values than cells.
    CountMismatch,
    /// No conversion leads from one datatype to the other.
    TypeMismatch,
    /// A value that its type or the file's cannot have.
    WrongValue,
    /// A filter is not part of this build, and no plugin was found.
    FilterMissing,
    /// A filter failed, or its parameters make no sense.
    Filter,
    /// Some changes cannot be encoded and are not stored.
    NotStored,
    /// The request contradicts itself or its object.
    Invalid,
    /// This feature is not written yet.
    Unsupported,
    /// A defect of Pumice.
    Internal,
}

impl Error {
    /// The kind of the fault.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::At { source, .. } => source.kind(),
            Self::NotStored { source, .. } => match source.kind() {
                // The disk is to blame, not the values.
                kind @ (ErrorKind::NoSpace | ErrorKind::Io | ErrorKind::FilterMissing) => kind,
                _ => ErrorKind::NotStored,
            },
            Self::Io { source, .. } => kind_of_io(source),
            Self::NotSynced(_) => ErrorKind::Io,
            Self::Changed(_) => ErrorKind::Changed,
            Self::BeingWritten(_) => ErrorKind::Locked,
            Self::Decode(error) => kind_of_decode(error),
            Self::Format(pumice_format::FormatError::Decode(error)) => kind_of_decode(error),
            Self::Format(_) => ErrorKind::Invalid,
            Self::Space(error) => kind_of_space(error),
            Self::Type(error) => kind_of_type(error),
            Self::Filter(pumice_filter::FilterError::Missing { .. }) => ErrorKind::FilterMissing,
            Self::Filter(pumice_filter::FilterError::Memory { .. }) => ErrorKind::NoMemory,
            Self::Filter(
                pumice_filter::FilterError::Corrupt { .. }
                | pumice_filter::FilterError::TooLarge { .. },
            ) => ErrorKind::Damaged,
            Self::Filter(_) => ErrorKind::Filter,
            Self::Cache(pumice_cache::CacheError::OutOfMemory { .. }) => ErrorKind::NoMemory,
            Self::Cache(_) => ErrorKind::Internal,
            Self::NotFound(_) => ErrorKind::NotFound,
            Self::Exists(_) => ErrorKind::Exists,
            Self::ReadOnly(_) => ErrorKind::ReadOnly,
            Self::WrongKind(_) => ErrorKind::WrongKind,
            Self::OutOfBounds(_) => ErrorKind::OutOfBounds,
            Self::RankMismatch(_) => ErrorKind::RankMismatch,
            Self::CountMismatch(_) => ErrorKind::CountMismatch,
            Self::TypeMismatch(_) => ErrorKind::TypeMismatch,
            Self::WrongValue(_) => ErrorKind::WrongValue,
            Self::Locked(_) => ErrorKind::Locked,
            Self::Damaged(_) => ErrorKind::Damaged,
            Self::FilterMissing(_) => ErrorKind::FilterMissing,
            Self::NoSpace(_) => ErrorKind::NoSpace,
            Self::NoMemory(_) => ErrorKind::NoMemory,
            Self::Invalid(_) => ErrorKind::Invalid,
            Self::Unsupported(_) => ErrorKind::Unsupported,
            Self::Internal(_) => ErrorKind::Internal,
        }
    }

    /// The operating system's answer, if it refused.
    pub fn io(&self) -> Option<&std::io::Error> {
        match self.cause() {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }

    /// The path of the object at which it happened, if that is known.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::At { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Adds the path of the object. An inner path stays.
    pub fn at(self, path: &str) -> Self {
        match self {
            Self::At { .. } => self,
            other => Self::At { path: path.into(), source: Box::new(other) },
        }
    }

    /// Adds the name of the other file.
    pub fn in_file(self, file: &str) -> Self {
        match self {
            Self::At { path, source } => Self::At { path: format!("{file}: {path}"), source },
            other => other.at(file),
        }
    }

    /// The first cause, without the object at which it happened.
    pub fn cause(&self) -> &Self {
        match self {
            Self::At { source, .. } | Self::NotStored { source, .. } => source.cause(),
            other => other,
        }
    }

    /// Whether everything was stored except for changes that filters refuse.
    pub fn is_not_stored(&self) -> bool {
        match self {
            Self::At { source, .. } => source.is_not_stored(),
            other => matches!(other, Self::NotStored { .. }),
        }
    }

    /// Whether the file must be opened for SWMR reading.
    pub fn is_being_written(&self) -> bool {
        matches!(self.cause(), Self::BeingWritten(_))
    }

    /// Whether another program changed the file; refresh it or open it again.
    pub fn is_changed(&self) -> bool {
        matches!(self.cause(), Self::Changed(_))
    }

    /// Whether the file uses a version, class or type that only a newer program knows; it is not
    /// damaged.
    pub fn is_newer(&self) -> bool {
        matches!(self.cause(), Self::Decode(error) if error.is_newer())
    }

    /// Whether the only fault is a filter that this build does not have.
    pub fn is_missing_filter(&self) -> bool {
        self.cause().kind() == ErrorKind::FilterMissing
    }
}

fn kind_of_io(error: &std::io::Error) -> ErrorKind {
    use std::io::ErrorKind as Io;
    match error.kind() {
        Io::StorageFull | Io::QuotaExceeded | Io::FileTooLarge => ErrorKind::NoSpace,
        Io::OutOfMemory => ErrorKind::NoMemory,
        Io::WouldBlock => ErrorKind::Locked,
        Io::NotFound => ErrorKind::NotFound,
        Io::AlreadyExists => ErrorKind::Exists,
        Io::ReadOnlyFilesystem => ErrorKind::ReadOnly,
        _ => ErrorKind::Io,
    }
}

fn kind_of_decode(error: &pumice_bytes::DecodeError) -> ErrorKind {
    if error.is_newer() { ErrorKind::TooNew } else { ErrorKind::Damaged }
}

fn kind_of_space(error: &pumice_space::SpaceError) -> ErrorKind {
    use pumice_space::SpaceError as Space;
    match error {
        Space::RankMismatch { .. } => ErrorKind::RankMismatch,
        Space::OutOfBounds { .. } => ErrorKind::OutOfBounds,
        Space::CountMismatch { .. } => ErrorKind::CountMismatch,
        _ => ErrorKind::Invalid,
    }
}

fn kind_of_type(error: &pumice_types::TypeError) -> ErrorKind {
    use pumice_types::TypeError as Type;
    match error {
        Type::NoConversion { .. } => ErrorKind::TypeMismatch,
        Type::SourceLength { .. } | Type::TargetLength { .. } => ErrorKind::CountMismatch,
        Type::Value(_) => ErrorKind::WrongValue,
        _ => ErrorKind::Invalid,
    }
}
