//! Errors on their way to HDF5's error stack, and the border that no panic crosses.

use crate::abi::{DEFAULT, FAIL, Herr, Hid};
use crate::library::{Api, c_text};
use pumice_engine::{Error, ErrorKind};
use std::ffi::{CStr, c_char, c_uint, c_void};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a callback gives, or why it does not.
pub(crate) type Result<T> = std::result::Result<T, Fault>;

/// Why a callback failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The engine says so.
    Engine(Error),
    /// A function of libhdf5 failed, and has said why on the error stack.
    Library(&'static str),
    /// The connector does not do this.
    Unsupported(String),
    /// What was asked for makes no sense.
    Invalid(String),
    /// There is no such thing.
    NotFound(String),
    /// There is one already.
    Exists(String),
    /// A callback of the program asked for the end of an iteration, with this value.
    Stopped(Herr),
}

impl<E: Into<Error>> From<E> for Fault {
    fn from(error: E) -> Self {
        Self::Engine(error.into())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(error) => {
                write!(out, "{error}")?;
                // By this h5py chooses among the subclasses of OSError.
                match error.io().and_then(|io| io.raw_os_error()) {
                    Some(number) => write!(out, " (errno = {number})"),
                    None => Ok(()),
                }
            }
            Self::Library(what) => write!(out, "{what} failed"),
            Self::Unsupported(what) => write!(out, "the Pumice connector does not support {what}"),
            Self::Invalid(what) | Self::NotFound(what) | Self::Exists(what) => out.write_str(what),
            Self::Stopped(value) => write!(out, "an operator returned {value}"),
        }
    }
}

impl Fault {
    /// The names of the variables that hold the major and the minor number.
    fn numbers(&self) -> (&'static CStr, &'static CStr) {
        match self {
            Self::Engine(error) => match error.kind() {
                ErrorKind::NotFound => (c"H5E_SYM_g", c"H5E_NOTFOUND_g"),
                ErrorKind::Exists => (c"H5E_LINK_g", c"H5E_EXISTS_g"),
                ErrorKind::WrongKind => (c"H5E_ARGS_g", c"H5E_BADTYPE_g"),
                ErrorKind::TypeMismatch => (c"H5E_DATATYPE_g", c"H5E_CANTCONVERT_g"),
                ErrorKind::OutOfBounds => (c"H5E_DATASPACE_g", c"H5E_BADRANGE_g"),
                ErrorKind::RankMismatch | ErrorKind::CountMismatch | ErrorKind::Invalid => {
                    (c"H5E_ARGS_g", c"H5E_BADVALUE_g")
                }
                ErrorKind::WrongValue => (c"H5E_ARGS_g", c"H5E_BADVALUE_g"),
                ErrorKind::NoMemory => (c"H5E_RESOURCE_g", c"H5E_NOSPACE_g"),
                ErrorKind::ReadOnly => (c"H5E_FILE_g", c"H5E_WRITEERROR_g"),
                ErrorKind::Unsupported => (c"H5E_VOL_g", c"H5E_UNSUPPORTED_g"),
                _ => (c"H5E_IO_g", c"H5E_CANTOPENFILE_g"),
            },
            Self::Library(_) => (c"H5E_VOL_g", c"H5E_CALLBACK_g"),
            Self::Unsupported(_) => (c"H5E_VOL_g", c"H5E_UNSUPPORTED_g"),
            Self::Invalid(_) => (c"H5E_ARGS_g", c"H5E_BADVALUE_g"),
            Self::NotFound(_) => (c"H5E_SYM_g", c"H5E_NOTFOUND_g"),
            Self::Exists(_) => (c"H5E_LINK_g", c"H5E_EXISTS_g"),
            Self::Stopped(_) => (c"H5E_VOL_g", c"H5E_BADITER_g"),
        }
    }

    /// Puts it on the error stack.
    fn push(&self, api: &Api, callback: &'static CStr) {
        let (major, minor) = self.numbers();
        let text = c_text(&self.to_string());
        let class = api.constant(c"H5E_ERR_CLS_g");
        let (major, minor) = (api.constant(major), api.constant(minor));
        // SAFETY: this is the function's signature: any arguments may follow the format.
        let push =
            unsafe { std::mem::transmute::<*const c_void, Push>(api.H5Epush2 as *const c_void) };
        // SAFETY: texts end with a null byte; the format takes the one argument that is given.
        unsafe {
            push(
                DEFAULT,
                c"pumice_vol".as_ptr(),
                callback.as_ptr(),
                0,
                class,
                major,
                minor,
                c"%s".as_ptr(),
                text.as_ptr(),
            );
        }
    }
}

/// The signature of `H5Epush2`.
type Push = unsafe extern "C" fn(
    Hid,
    *const c_char,
    *const c_char,
    c_uint,
    Hid,
    Hid,
    Hid,
    *const c_char,
    ...
) -> Herr;

/// Runs the body of a callback. An error and a panic become an error on the stack and `failed`.
pub(crate) fn answer<T>(
    api: &Api,
    callback: &'static CStr,
    failed: T,
    body: impl FnOnce() -> Result<T>,
) -> T {
    // What a panic leaves half done is inside the engine, whose locks carry no meaning when poisoned.
    let fault = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(done)) => return done,
        Ok(Err(fault)) => fault,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
            Fault::Engine(Error::Internal(format!("a defect of the connector: {text}")))
        }
    };
    // An operator that failed has said why.
    if !matches!(fault, Fault::Stopped(_)) {
        fault.push(api, callback);
    }
    failed
}

/// As [`answer`], for callbacks that say only whether they succeeded, or what an operator of the program returned.
pub(crate) fn done(api: &Api, callback: &'static CStr, body: impl FnOnce() -> Result<()>) -> Herr {
    answer(api, callback, FAIL, || match body() {
        Ok(()) => Ok(0),
        Err(Fault::Stopped(value)) if value > 0 => Ok(value),
        Err(fault) => Err(fault),
    })
}

/// Fails with the name of a function of libhdf5 unless its answer is one.
pub(crate) fn checked<T: PartialOrd + Default>(answer: T, what: &'static str) -> Result<T> {
    if answer < T::default() { Err(Fault::Library(what)) } else { Ok(answer) }
}
