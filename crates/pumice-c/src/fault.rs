//! Errors: a status for the caller, and a message of the thread.

use pumice::{Error, ErrorKind};
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// `pumice_status`.
pub(crate) type Status = c_int;

/// `PUMICE_OK`.
const OK: Status = 0;
/// `PUMICE_INTERNAL`.
const INTERNAL: Status = 22;

/// The kinds of the Rust API, their numbers in C and their names.
pub(crate) const KINDS: [(ErrorKind, Status, &CStr); 22] = [
    (ErrorKind::Io, 1, c"input or output"),
    (ErrorKind::NoSpace, 2, c"no space"),
    (ErrorKind::NoMemory, 3, c"no memory"),
    (ErrorKind::Locked, 4, c"locked"),
    (ErrorKind::Changed, 5, c"changed"),
    (ErrorKind::Damaged, 6, c"damaged"),
    (ErrorKind::TooNew, 7, c"too new"),
    (ErrorKind::NotFound, 8, c"not found"),
    (ErrorKind::Exists, 9, c"exists"),
    (ErrorKind::ReadOnly, 10, c"read-only"),
    (ErrorKind::WrongKind, 11, c"wrong kind"),
    (ErrorKind::OutOfBounds, 12, c"out of bounds"),
    (ErrorKind::RankMismatch, 13, c"rank mismatch"),
    (ErrorKind::CountMismatch, 14, c"count mismatch"),
    (ErrorKind::TypeMismatch, 15, c"type mismatch"),
    (ErrorKind::WrongValue, 16, c"wrong value"),
    (ErrorKind::FilterMissing, 17, c"filter missing"),
    (ErrorKind::Filter, 18, c"filter"),
    (ErrorKind::NotStored, 19, c"not stored"),
    (ErrorKind::Invalid, 20, c"invalid"),
    (ErrorKind::Unsupported, 21, c"unsupported"),
    (ErrorKind::Internal, INTERNAL, c"internal"),
];

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// An argument that makes no sense.
pub(crate) fn invalid(what: &str) -> Error {
    Error::Invalid(what.into())
}

/// Runs the body of a function: the status of what it says, its message kept.
pub(crate) fn run(body: impl FnOnce() -> pumice::Result<()>) -> Status {
    // What a panic leaves half done is inside the engine, whose locks carry no meaning when poisoned.
    let error = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return OK,
        Ok(Err(error)) => error,
        Err(panic) => Error::Internal(format!("a defect of Pumice: {}", text_of(&*panic))),
    };
    keep(&error.to_string());
    let kind = error.kind();
    // Kinds that are newer than this table are none that C programs know.
    KINDS.iter().find(|known| known.0 == kind).map_or(INTERNAL, |known| known.1)
}

/// Runs the body of a function without a status: what it says, or `otherwise` if it panics.
pub(crate) fn ask<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        keep(&format!("a defect of Pumice: {}", text_of(&*panic)));
        otherwise
    })
}

fn text_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown")
}

fn keep(text: &str) {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    // While a thread ends there may be no place any more.
    let _ = MESSAGE.try_with(|message| message.replace(text));
}

/// `pumice_error_message`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn pumice_error_message() -> *const c_char {
    MESSAGE.try_with(|message| message.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// `pumice_status_name`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn pumice_status_name(status: Status) -> *const c_char {
    let known = KINDS.iter().find(|known| known.1 == status);
    let name = known.map_or(if status == OK { c"ok" } else { c"unknown" }, |known| known.2);
    name.as_ptr()
}

/// `pumice_version`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn pumice_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_status_and_a_message() {
        assert_eq!(run(|| panic!("for \0 the test")), INTERNAL);
        // SAFETY: it ends with a null byte and lives as long as the thread has no other failure.
        let message = unsafe { CStr::from_ptr(pumice_error_message()) };
        assert_eq!(
            message.to_str(),
            Ok("internal error, please report it: a defect of Pumice: for   the test")
        );
        assert_eq!(ask(3, || panic!("again")), 3);
    }

    #[test]
    fn each_kind_has_a_number_of_its_own() {
        assert!(KINDS.iter().enumerate().all(|(at, known)| known.1 == at as Status + 1));
        assert_eq!(run(|| Err(Error::NotFound("no".into()))), 8);
    }
}
