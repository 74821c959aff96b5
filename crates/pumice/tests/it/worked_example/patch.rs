//! Bytes of a file that Pumice wrote, exchanged for others: messages, blocks, chunks, checksums.

use pumice_bytes::lookup3;

/// Kind, flags and body of a header message.
pub(crate) type Message = (u8, u8, Vec<u8>);

/// Appends the checksum of all bytes before it.
pub(crate) fn put_checksum(bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&lookup3(bytes).to_le_bytes());
}

/// Kind, flags and body of the messages in the first block of a version 2 object header.
pub(crate) fn messages(bytes: &[u8], address: u64) -> Vec<Message> {
    let (mut at, end) = message_area(bytes, address as usize);
    let mut messages = Vec::new();
    while at + 4 <= end {
        let length = usize::from(u16::from_le_bytes([bytes[at + 1], bytes[at + 2]]));
        messages.push((bytes[at], bytes[at + 3], bytes[at + 4..at + 4 + length].to_vec()));
        at += 4 + length;
    }
    messages
}

pub(crate) fn message(bytes: &[u8], address: u64, kind: u8) -> (u8, Vec<u8>) {
    let found = messages(bytes, address).into_iter().find(|message| message.0 == kind);
    let (_, flags, body) = found.expect("the message");
    (flags, body)
}

/// Exchanges a message of an object header, whose spare room takes up the difference.
pub(crate) fn set_message(
    bytes: &mut [u8],
    address: u64,
    old: u8,
    new: u8,
    flags: u8,
    body: &[u8],
) {
    let (start, end) = message_area(bytes, address as usize);
    let mut area = Vec::new();
    for (kind, old_flags, old_body) in messages(bytes, address) {
        let (kind, flags, body) = match kind {
            0 => continue,
            kind if kind == old => (new, flags, body),
            kind => (kind, old_flags, old_body.as_slice()),
        };
        area.extend_from_slice(&[kind, body.len() as u8, (body.len() >> 8) as u8, flags]);
        area.extend_from_slice(body);
    }
    let spare = end - start - area.len() - 4;
    area.extend_from_slice(&[0, spare as u8, (spare >> 8) as u8, 0]);
    area.resize(end - start, 0);
    let header = address as usize;
    patch(bytes, header, end + 4 - header, |block| {
        block[start - header..end - header].copy_from_slice(&area);
    });
}

/// The ranges of a version 2 object header's messages. Pumice stores no times.
fn message_area(bytes: &[u8], address: usize) -> (usize, usize) {
    assert_eq!(bytes[address..address + 5], *b"OHDR\x02");
    let width = 1 << (bytes[address + 5] & 3);
    let start = address + 6 + width;
    let size =
        bytes[address + 6..start].iter().rev().fold(0, |size, &byte| size << 8 | usize::from(byte));
    (start, start + size)
}

/// Changes a block and repairs the checksum at its end.
pub(crate) fn patch(
    bytes: &mut [u8],
    address: usize,
    length: usize,
    change: impl FnOnce(&mut [u8]),
) {
    let (block, checksum) = bytes[address..address + length].split_at_mut(length - 4);
    change(block);
    checksum.copy_from_slice(&lookup3(block).to_le_bytes());
}

/// Makes the file longer by `payload`; gives its address.
pub(crate) fn append(bytes: &mut Vec<u8>, payload: &[u8]) -> u64 {
    let address = bytes.len() as u64;
    bytes.extend_from_slice(payload);
    let end = bytes.len() as u64;
    // The superblock's end of file.
    patch(bytes, 0, 48, |superblock| superblock[28..36].copy_from_slice(&end.to_le_bytes()));
    address
}
