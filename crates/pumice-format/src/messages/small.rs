//! The messages of one field: comment (0x000D), modification time (0x0012) and reference count
//! (0x0016).

use crate::text::{lossy, until_null};
use crate::{Context, DecodeError, FormatError};
use pumice_bytes::Writer;

/// Decodes a comment. The null byte at its end may be missing.
pub(super) fn decode_comment(bytes: &[u8]) -> String {
    lossy(until_null(bytes))
}

/// Appends a comment.
pub(super) fn encode_comment(text: &str, out: &mut Vec<u8>) -> Result<(), FormatError> {
    if text.contains('\0') {
        return Err(FormatError::unencodable("comment message", "a null byte in a comment"));
    }
    out.put_bytes(text.as_bytes());
    out.put_u8(0);
    Ok(())
}

/// Decodes a modification time, in seconds since 1970.
pub(super) fn decode_time(bytes: &[u8], context: &Context) -> Result<u32, DecodeError> {
    let mut reader = context.reader("modification time message", bytes);
    let start = reader.clone();
    let [version, ..] = reader.array::<4>()?;
    if version != 1 {
        return Err(start.unknown("version 1", 1u8, version));
    }
    reader.u32()
}

/// Appends a modification time.
pub(super) fn encode_time(seconds: u32, out: &mut Vec<u8>) {
    out.put_bytes(&[1, 0, 0, 0]);
    out.put_u32(seconds);
}

/// Decodes the number of hard links to an object.
pub(super) fn decode_count(bytes: &[u8], context: &Context) -> Result<u32, DecodeError> {
    let mut reader = context.reader("reference count message", bytes);
    let start = reader.clone();
    let version = reader.u8()?;
    if version != 0 {
        return Err(start.unknown("version 0", 0u8, version));
    }
    reader.u32()
}

/// Appends the number of hard links to an object.
pub(super) fn encode_count(count: u32, out: &mut Vec<u8>) {
    out.put_u8(0);
    out.put_u32(count);
}
