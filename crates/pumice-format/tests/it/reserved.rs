//! Reserved values are reported as newer than this program, not as damage.

use pumice_format::Context;
use pumice_format::messages::{Message, kind};
use pumice_format::object_header::ObjectHeader;

/// Kind, bytes before the flags, and bits of them that are reserved.
const FLAGS: [(u16, &[u8], u8); 7] = [
    (kind::LINK_INFO, &[0], 0x04),
    (kind::GROUP_INFO, &[0], 0x80),
    (kind::ATTRIBUTE_INFO, &[0], 0x04),
    (kind::ATTRIBUTE, &[3], 0x08),
    (kind::FILL_VALUE, &[3], 0x40),
    (kind::LINK, &[1], 0x20),
    (kind::LAYOUT, &[4, 2], 0x04),
];

/// Whether the message is refused as newer.
fn newer(kind: u16, body: &[u8]) -> bool {
    let error = Message::decode(kind, 0, body, &Context::default()).unwrap_err();
    error.is_newer()
}

#[test]
fn messages_with_reserved_flags_are_newer() {
    for (kind, head, reserved) in FLAGS {
        let with = |flags: u8| [head, &[flags], &[0; 40]].concat();
        assert!(newer(kind, &with(reserved)), "message {kind:#x}, flags {reserved:#x}");
        assert!(!newer(kind, &with(0xFF)), "message {kind:#x}, all flags");
    }
    // A fill value that is there and undefined contradicts itself.
    assert!(!newer(kind::FILL_VALUE, &[3, 0x30, 0, 0, 0, 0]));
}

#[test]
fn object_headers_with_reserved_flags_are_newer() {
    for (flags, newer) in [(0x40, true), (0x80, true), (0xFF, false)] {
        let bytes = [&b"OHDR\x02"[..], &[flags], &[0; 40]].concat();
        let error = ObjectHeader::decode(&bytes, &Context::default()).unwrap_err();
        assert_eq!(error.is_newer(), newer, "{error}");
    }
}

#[test]
fn datatypes_with_reserved_paddings_and_character_sets_are_newer() {
    let string = |flags: u8| [0x13, flags, 0, 0, 4, 0, 0, 0];
    assert!(newer(kind::DATATYPE, &string(0x03)), "padding 3");
    assert!(newer(kind::DATATYPE, &string(0x20)), "character set 2");
    assert!(!newer(kind::DATATYPE, &string(0xF0)), "character set 15");
    // A floating-point number of version 3: the VAX bit without the one of big-endian numbers.
    let float = [0x31, 0x60, 0x1F, 0, 4, 0, 0, 0, 0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0];
    assert!(newer(kind::DATATYPE, &float), "byte order");
}
