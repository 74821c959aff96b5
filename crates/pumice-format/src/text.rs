//! Names and strings inside structures.
//!
//! HDF5 promises ASCII or UTF-8, and old files keep neither promise: bytes that are no UTF-8
//! become the replacement character. Structures that are passed on unchanged keep their bytes.

use crate::DecodeError;
use pumice_bytes::Reader;

/// `bytes` as text.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `bytes` up to the first null byte, or all of them.
pub(crate) fn until_null(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Reads a null-terminated string that takes a multiple of `align` bytes, null byte included.
pub(crate) fn terminated(reader: &mut Reader<'_>, align: usize) -> Result<String, DecodeError> {
    let rest = reader.clone().rest();
    let text = until_null(rest);
    if text.len() == rest.len() {
        return Err(reader.error("a null-terminated string", "the end"));
    }
    reader.skip((text.len() + 1).next_multiple_of(align))?;
    Ok(lossy(text))
}
