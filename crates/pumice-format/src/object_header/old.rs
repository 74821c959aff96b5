//! Version 1 object headers, read only.
//!
//! ```text
//! 01 00 | message count u16 | reference count u32 | size u32 | 4 bytes of padding | messages
//! message: kind u16 | size u16, a multiple of 8 | flags u8 | 3 reserved | body
//! ```
//!
//! There is no checksum. The message count covers all blocks and adds nothing to the sizes, so
//! it is not used.

use super::{ObjectHeader, RawMessage};
use crate::{Context, DecodeError};
use pumice_bytes::Reader;

const PREFIX: usize = 16;
const ENVELOPE: usize = 8;

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
        return Err(start.error("version 1 or 2", version));
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
