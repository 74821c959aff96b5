//! Unknown messages of an object header, and the flags that say how to treat them.
//!
//! libhdf5's rules: an unknown message is skipped, unless its flags forbid opening the object, or
//! opening it in a file that may be changed. Some flags ask for a mark when a program changes the
//! object without knowing the message.

use crate::Result;
use pumice_bytes::DecodeError;
use pumice_format::messages::kind;
use pumice_format::object_header::{
    MESSAGE_FAIL_IF_UNKNOWN, MESSAGE_MARK_IF_UNKNOWN, MESSAGE_NO_WRITE_IF_UNKNOWN,
    MESSAGE_WAS_UNKNOWN, ObjectHeader, RawMessage,
};

/// Fails at an unknown message that must not be skipped, and marks those that ask for it. Changes
/// of the object store the marks.
pub(super) fn heed(header: &mut ObjectHeader, writable: bool) -> Result<()> {
    let unknown = |message: &&mut RawMessage| !kind::is_known(message.kind);
    for message in header.messages.iter_mut().filter(unknown) {
        let forbids = |flag: u8| message.flags & flag != 0;
        let what = match (forbids(MESSAGE_FAIL_IF_UNKNOWN), forbids(MESSAGE_NO_WRITE_IF_UNKNOWN)) {
            (true, _) => "one that must not be ignored",
            (false, true) if writable => {
                "one that must not be ignored in a file that may be changed"
            }
            _ => {
                if writable && forbids(MESSAGE_MARK_IF_UNKNOWN) {
                    message.flags |= MESSAGE_WAS_UNKNOWN;
                }
                continue;
            }
        };
        let found = format!("{:#06x}, {what}", message.kind);
        let expected = "a message of a known type";
        let error = DecodeError::new("object header message", message.address, expected, found);
        return Err(error.newer().into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of `flags` after [`heed`].
    fn heeded(kind: u16, flags: u8, writable: bool) -> Result<u8> {
        let mut header = ObjectHeader::new();
        header.messages.push(RawMessage::new(kind, flags, vec![1, 2, 3]));
        heed(&mut header, writable)?;
        Ok(header.messages[0].flags)
    }

    #[test]
    fn flags_of_unknown_messages_are_obeyed() {
        assert_eq!(heeded(0x1A, 0, true).unwrap(), 0);
        assert_eq!(heeded(0x1A, 0x10, false).unwrap(), 0x10);
        assert_eq!(heeded(0x1A, 0x10, true).unwrap(), 0x30);
        assert_eq!(heeded(0x1A, 0x08, false).unwrap(), 0x08);
        for (flags, writable) in [(0x08, true), (0x80, true), (0x80, false), (0x88, false)] {
            let error = heeded(0x1A, flags, writable).unwrap_err();
            assert!(error.is_newer(), "{error}");
            assert!(error.to_string().contains("found 0x001a, one that must not"), "{error}");
        }
        // Known messages are not checked here.
        assert_eq!(heeded(kind::LINK, 0x98, true).unwrap(), 0x98);
    }
}
