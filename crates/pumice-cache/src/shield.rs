//! Keeps a layout's panics from unwinding through the cache.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::CacheError;

/// Calls `callback` and turns a panic into an error.
///
/// What the callback was given may be half changed: the caller sees to it that it is dropped, or
/// that half a change is as good as a failed one.
pub(crate) fn shield<T, E: From<CacheError>>(
    callback: impl FnOnce() -> Result<T, E>,
) -> Result<T, E> {
    catch_unwind(AssertUnwindSafe(callback)).unwrap_or_else(|panic| {
        Err(CacheError::Panicked { message: message(panic.as_ref()) }.into())
    })
}

fn message(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        return (*text).to_owned();
    }
    panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_with_its_message() {
        let results: [Result<(), CacheError>; 3] = [
            shield(|| panic!("plain")),
            shield(|| panic!("number {}", 7)),
            shield(|| std::panic::panic_any(7)),
        ];
        let messages = results.map(|result| result.unwrap_err().to_string());
        for (message, end) in messages.iter().zip(["plain", "number 7", "no message"]) {
            assert!(message.ends_with(end));
        }
    }
}
