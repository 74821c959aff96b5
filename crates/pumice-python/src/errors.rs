//! Errors of the library as exceptions of Python.
//!
//! The classes are those that h5py raises for the same fault, as far as the kind of an error
//! decides. If the place decides (an existing name is a `ValueError` in one function and an
//! `OSError` in another), the Python part of the package does it.

use pumice::{Error, ErrorKind};
use pyo3::PyErr;
use pyo3::exceptions::{
    PyIndexError, PyKeyError, PyMemoryError, PyNotImplementedError, PyOSError, PyRuntimeError,
    PyTypeError, PyValueError,
};

pyo3::create_exception!(
    _pumice,
    ReadOnlyError,
    PyOSError,
    "A change of a file that was opened for reading."
);

pyo3::create_exception!(
    _pumice,
    ConversionError,
    PyTypeError,
    "Elements of one datatype that do not become those of another."
);

/// The exception for an error.
pub(crate) fn raised(error: Error) -> PyErr {
    let text = error.to_string();
    if let Some(number) = error.io().and_then(std::io::Error::raw_os_error) {
        // With two arguments, Python chooses the class: FileNotFoundError, PermissionError, ...
        return PyOSError::new_err((number, text));
    }
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::WrongKind => PyKeyError::new_err(text),
        ErrorKind::OutOfBounds => PyIndexError::new_err(text),
        ErrorKind::Exists
        | ErrorKind::RankMismatch
        | ErrorKind::CountMismatch
        | ErrorKind::WrongValue
        | ErrorKind::Invalid => PyValueError::new_err(text),
        ErrorKind::TypeMismatch => ConversionError::new_err(text),
        ErrorKind::NoMemory => PyMemoryError::new_err(text),
        ErrorKind::ReadOnly => ReadOnlyError::new_err(text),
        ErrorKind::Unsupported => PyNotImplementedError::new_err(text),
        ErrorKind::Internal => PyRuntimeError::new_err(text),
        _ => PyOSError::new_err(text),
    }
}

/// A `ValueError`.
pub(crate) fn invalid(text: impl Into<String>) -> PyErr {
    PyValueError::new_err(text.into())
}
