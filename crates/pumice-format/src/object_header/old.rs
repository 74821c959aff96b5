//! Version 1 object headers.
//!
//! ```text
//! 01 00 | message count u16 | reference count u32 | size u32 | 4 bytes of padding | messages
//! message: kind u16 | size u16, a multiple of 8 | flags u8 | 3 reserved | body
//! ```
//!
//! There is no checksum. The message count covers all blocks, fillers included. It adds nothing to
//! the sizes, so it is written but not used.

use super::{ObjectHeader, RawMessage, STRUCTURE, check_spare};
use crate::error::fits;
use crate::{Context, DecodeError, FormatError};
use pumice_bytes::{Reader, Writer};

pub(super) const PREFIX: usize = 16;
pub(super) const ENVELOPE: usize = 8;
/// The most bytes of a body: a multiple of 8 that two bytes express.
pub(super) const MAX_BODY: usize = 0xFFF8;

pub(super) fn measure(reader: &mut Reader<'_>) -> Result<u64, DecodeError> {
    let (_, size) = decode_prefix(reader)?;
    Ok(u64::from(size) + PREFIX as u64)
}

pub(super) fn decode(
    reader: &mut Reader<'_>,
    _context: &Context,
) -> Result<ObjectHeader, DecodeError> {
    let (mut header, size) = decode_prefix(reader)?;
    let size = reader.count(u64::from(size), 1)?;
    let mut inside = Reader::new(reader.structure(), reader.address(), reader.take(size)?);
    header.spare = decode_block(&mut inside, &mut header.messages)?;
    header.length = reader.position() as u64;
    Ok(header)
}

fn decode_prefix(reader: &mut Reader<'_>) -> Result<(ObjectHeader, u32), DecodeError> {
    let start = reader.clone();
    let [version, _reserved] = reader.array()?;
    if version != 1 {
        return Err(start.unknown("version 1 or 2", 2u8, version));
    }
    let _messages = reader.u16()?;
    let reference_count = Some(reader.u32()?);
    let size = reader.u32()?;
    reader.skip(4)?;
    Ok((ObjectHeader { version, reference_count, ..Default::default() }, size))
}

/// Reads messages to the end of the block. Gives the bytes that fillers take.
pub(super) fn decode_block(
    reader: &mut Reader<'_>,
    messages: &mut Vec<RawMessage>,
) -> Result<u64, DecodeError> {
    let mut spare = 0;
    while reader.remaining() >= ENVELOPE {
        let start = reader.clone();
        let kind = reader.u16()?;
        let length = reader.u16()?;
        let flags = reader.u8()?;
        reader.skip(3)?;
        if length % 8 != 0 {
            return Err(start.error("a message of a multiple of 8 bytes", length));
        }
        let address = reader.address();
        let body = reader.take(usize::from(length))?;
        if kind == 0 {
            spare += (ENVELOPE + body.len()) as u64;
            continue;
        }
        let body = body.to_vec();
        messages.push(RawMessage { kind, flags, creation_order: None, address, body });
    }
    if !reader.is_empty() {
        return Err(reader.error("no gap at the end of the block", reader.remaining()));
    }
    Ok(spare)
}

/// Appends the first block so that it takes `length` bytes; the other blocks have `others` messages.
pub(super) fn encode_first(
    header: &ObjectHeader,
    length: usize,
    others: usize,
    out: &mut Vec<u8>,
) -> Result<(), FormatError> {
    let size = length.checked_sub(PREFIX).ok_or_else(|| {
        FormatError::unencodable(STRUCTURE, format!("a header in {length} byte(s)"))
    })?;
    let mut block = Vec::with_capacity(size);
    let count = encode_block(&header.messages, size, &mut block)?.saturating_add(others);
    out.put_bytes(&[1, 0]);
    out.put_u16(fits(STRUCTURE, "messages of a header", 0xFFFF, count)? as u16);
    out.put_u32(header.reference_count.unwrap_or(1));
    out.put_u32(fits(STRUCTURE, "bytes of a header", u64::from(u32::MAX), size)? as u32);
    out.put_zeros(4);
    out.put_bytes(&block);
    Ok(())
}

/// Appends messages and fills the block up to `size` bytes. Returns the number of messages,
/// fillers included.
pub(super) fn encode_block(
    messages: &[RawMessage],
    size: usize,
    out: &mut Vec<u8>,
) -> Result<usize, FormatError> {
    let start = out.len();
    let mut count = messages.len();
    for message in messages {
        let padded = message.body.len().next_multiple_of(8);
        let length = fits(STRUCTURE, "bytes of a message", MAX_BODY as u64, padded)?;
        out.put_u16(message.kind);
        out.put_u16(length as u16);
        out.put_u8(message.flags);
        out.put_zeros(3);
        out.put_bytes(&message.body);
        out.put_zeros(padded - message.body.len());
    }
    let spare = size.checked_sub(out.len() - start).filter(|spare| spare % 8 == 0);
    let spare = spare.ok_or_else(|| {
        FormatError::unencodable(STRUCTURE, format!("these messages in {size} byte(s)"))
    })?;
    check_spare(spare, ENVELOPE + MAX_BODY)?;
    if let Some(length) = spare.checked_sub(ENVELOPE) {
        out.put_u16(0);
        out.put_u16(length as u16);
        out.put_zeros(spare - 4);
        count += 1;
    }
    Ok(count)
}
