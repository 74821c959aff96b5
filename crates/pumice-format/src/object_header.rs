//! Object headers: the list of messages that make an object a group, a dataset or a datatype.
//!
//! A header begins with a block at the object's address and goes on in continuation blocks, which
//! messages of kind [`CONTINUATION`] name. Version 2 ("OHDR", "OCHK", checksums) and version 1 (no
//! checksums, bodies of multiples of 8 bytes: `old.rs`) are decoded and encoded.
//!
//! ```text
//! version 2: OHDR 02 flags [4 times u32] [2 phase changes u16] size(1,2,4,8) messages gap checksum
//! message:   kind u8 | size u16 | flags u8 | [creation order u16] | body
//! block:     OCHK messages gap checksum
//! ```
//!
//! Room that no message uses is filled with a message of kind 0, or, where it is smaller than a
//! message's envelope, is a gap. A block never has both, and never two such messages side by side:
//! libhdf5 joins neighbours when it reads them, and writes the size of what becomes longer than 64 KiB
//! cut to 16 bits. So a block has [`ObjectHeader::max_spare`] unused bytes at most.
//!
//! Following continuations, and noticing that they run in a circle, is the caller's business.

mod old;

use crate::error::fits;
use crate::{Context, DecodeError, FormatError};
use pumice_bytes::{Reader, Writer};

const STRUCTURE: &str = "object header";
const BLOCK: &str = "object header continuation";

/// Bytes that are enough to [measure](ObjectHeader::measure) any header.
pub const MAX_PREFIX: usize = 34;

/// The kind of messages that name a continuation block.
pub const CONTINUATION: u16 = 0x0010;

/// Message flag: the body never changes.
pub const MESSAGE_CONSTANT: u8 = 0x01;
/// Message flag: the body only says where the message is.
pub const MESSAGE_SHARED: u8 = 0x02;
/// Message flag: whoever does not know the message must not change the object.
pub const MESSAGE_NO_WRITE_IF_UNKNOWN: u8 = 0x08;
/// Message flag: whoever does not know the message must not open the object.
pub const MESSAGE_FAIL_IF_UNKNOWN: u8 = 0x80;
/// Message flag: a program that does not know the message and changes the object sets
/// [`MESSAGE_WAS_UNKNOWN`].
pub const MESSAGE_MARK_IF_UNKNOWN: u8 = 0x10;
/// Message flag: a program that did not know the message has changed the object.
pub const MESSAGE_WAS_UNKNOWN: u8 = 0x20;

/// Message flag: the message is not to be shared with other objects.
pub const MESSAGE_DONT_SHARE: u8 = 0x04;

/// The kind of messages with the time of the last change.
const MODIFICATION_TIME: u16 = 0x0012;

const TRACK_ATTRIBUTE_ORDER: u8 = 0x04;
const INDEX_ATTRIBUTE_ORDER: u8 = 0x08;
const STORE_PHASE_CHANGE: u8 = 0x10;
const STORE_TIMES: u8 = 0x20;

const CHECKSUM: usize = 4;

/// An object header as far as it has been read.
///
/// ```
/// use pumice_format::Context;
/// use pumice_format::object_header::{ObjectHeader, RawMessage};
///
/// let mut header = ObjectHeader::new();
/// header.messages.push(RawMessage::new(0x0016, 0, vec![0, 2, 0, 0, 0]));
/// let mut bytes = Vec::new();
/// header.encode(20, &mut bytes)?;
///
/// assert_eq!(ObjectHeader::measure(&bytes, 0)?, bytes.len() as u64);
/// let back = ObjectHeader::decode(&bytes, &Context::default())?;
/// assert_eq!(back.messages[0].body, header.messages[0].body);
/// assert_eq!(back.spare, 20);
/// # Ok::<(), pumice_format::FormatError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectHeader {
    /// 1 or 2.
    pub version: u8,
    /// The number of hard links to the object, in version 1. (Version 2 has a message for it when
    /// it is not 1.)
    pub reference_count: Option<u32>,
    /// The times of the object, if the header keeps them.
    pub times: Option<Times>,
    /// The limits for moving attributes to dense storage and back, if not 8 and 6.
    pub phase_change: Option<PhaseChange>,
    /// Whether messages carry the order of their creation.
    pub track_attribute_order: bool,
    /// Whether dense attribute storage has an index by creation order.
    pub index_attribute_order: bool,
    /// The messages, without fillers, of all blocks decoded so far.
    pub messages: Vec<RawMessage>,
    /// Bytes of the first block, prefix and checksum included.
    pub length: u64,
    /// Bytes of fillers and gap in the first block.
    pub spare: u64,
}

/// Times of an object, in seconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Last read.
    pub access: u32,
    /// Last write of raw data.
    pub modification: u32,
    /// Last change of metadata.
    pub change: u32,
    /// Creation.
    pub birth: u32,
}

/// Numbers of attributes at which their storage changes its form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseChange {
    /// More than this many go to dense storage.
    pub max_compact: u16,
    /// Fewer than this many come back.
    pub min_dense: u16,
}

/// An encoded message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RawMessage {
    /// The kind of message: see [`crate::messages::kind`].
    pub kind: u16,
    /// [`MESSAGE_CONSTANT`], [`MESSAGE_SHARED`] and others.
    pub flags: u8,
    /// Its place in the order of creation, if the header tracks it.
    pub creation_order: Option<u16>,
    /// The address of the body; 0 for a message that has never been written.
    pub address: u64,
    /// The body, in version 1 with padding to a multiple of 8.
    pub body: Vec<u8>,
}

impl RawMessage {
    /// A new message.
    pub fn new(kind: u16, flags: u8, body: Vec<u8>) -> Self {
        Self { kind, flags, creation_order: None, address: 0, body }
    }

    /// Whether the body only has the message's place.
    pub fn is_shared(&self) -> bool {
        self.flags & MESSAGE_SHARED != 0
    }
}

/// The continuation of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Continuation {
    /// The block's place in the file.
    pub address: u64,
    /// Its bytes, signature and checksum included.
    pub length: u64,
}

impl Continuation {
    /// Decodes the body of a message of kind [`CONTINUATION`].
    pub fn decode(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let mut reader = context.reader(BLOCK, bytes);
        let address = reader.offset(context.offset_width())?;
        let length = reader.uint(context.length_width())?;
        Ok(Self { address, length })
    }

    /// Appends the body of the message.
    pub fn encode(&self, sizes: crate::Sizes, out: &mut Vec<u8>) {
        out.put_uint(self.address, usize::from(sizes.offset));
        out.put_uint(self.length, usize::from(sizes.length));
    }
}

impl ObjectHeader {
    /// An empty version 2 header.
    pub fn new() -> Self {
        Self { version: 2, ..Default::default() }
    }

    /// Lets a new header keep the times of its object, which is made at `now`; version 1 keeps only
    /// that of the last change, in a message.
    pub fn keep_times(&mut self, now: u32) {
        if self.version == 1 {
            let mut body = vec![1, 0, 0, 0];
            body.put_u32(now);
            self.messages.push(RawMessage::new(MODIFICATION_TIME, 0, body));
            return;
        }
        self.times = Some(Times { access: now, modification: now, change: now, birth: now });
    }

    /// Bytes of the first block of the header that begins with `bytes`, of which [`MAX_PREFIX`]
    /// are always enough.
    pub fn measure(bytes: &[u8], address: u64) -> Result<u64, DecodeError> {
        let mut reader = Reader::new(STRUCTURE, address, bytes);
        if bytes.first() == Some(&1) {
            return old::measure(&mut reader);
        }
        let (_, size) = Self::decode_prefix(&mut reader)?;
        let prefix = reader.position() + CHECKSUM;
        size.checked_add(prefix as u64).ok_or_else(|| reader.error("a size below 2^64", size))
    }

    /// Decodes the first block. The messages of continuation blocks are added by
    /// [`decode_continuation`](Self::decode_continuation).
    pub fn decode(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let mut reader = context.reader(STRUCTURE, bytes);
        if bytes.first() == Some(&1) {
            return old::decode(&mut reader, context);
        }
        let (mut header, size) = Self::decode_prefix(&mut reader)?;
        let size = reader.count(size, 1)?;
        header.spare = header.decode_block(&mut reader, size)?;
        header.length = reader.position() as u64;
        Ok(header)
    }

    fn decode_prefix(reader: &mut Reader<'_>) -> Result<(Self, u64), DecodeError> {
        reader.signature(b"OHDR")?;
        let start = reader.clone();
        let version = reader.u8()?;
        if version != 2 {
            return Err(start.unknown("version 1 or 2", 2u8, version));
        }
        let start = reader.clone();
        let flags = reader.u8()?;
        if flags & 0xC0 != 0 {
            return Err(start.reserved("header flags of bits 0 to 5", flags));
        }
        let mut header = Self::new();
        header.track_attribute_order = flags & TRACK_ATTRIBUTE_ORDER != 0;
        header.index_attribute_order = flags & INDEX_ATTRIBUTE_ORDER != 0;
        if flags & STORE_TIMES != 0 {
            let [access, modification] = [reader.u32()?, reader.u32()?];
            let [change, birth] = [reader.u32()?, reader.u32()?];
            header.times = Some(Times { access, modification, change, birth });
        }
        if flags & STORE_PHASE_CHANGE != 0 {
            let [max_compact, min_dense] = [reader.u16()?, reader.u16()?];
            header.phase_change = Some(PhaseChange { max_compact, min_dense });
        }
        let size = reader.uint(1 << (flags & 3))?;
        Ok((header, size))
    }

    /// Decodes a continuation block, appends its messages, and says how many of its bytes no
    /// message uses.
    pub fn decode_continuation(
        &mut self,
        bytes: &[u8],
        context: &Context,
    ) -> Result<u64, DecodeError> {
        let mut reader = context.reader(BLOCK, bytes);
        if self.version == 1 {
            return old::decode_block(&mut reader, &mut self.messages);
        }
        reader.signature(b"OCHK")?;
        let size = reader.remaining().saturating_sub(CHECKSUM);
        self.decode_block(&mut reader, size)
    }

    /// Reads `size` bytes of messages and the checksum behind them. Gives the unused bytes.
    fn decode_block(&mut self, reader: &mut Reader<'_>, size: usize) -> Result<u64, DecodeError> {
        let block = reader.clone();
        let mut inside = Reader::new(reader.structure(), reader.address(), reader.take(size)?);
        reader.checksum()?;
        let envelope = self.envelope();
        let mut spare = 0;
        while inside.remaining() >= envelope {
            let kind = u16::from(inside.u8()?);
            let length = usize::from(inside.u16()?);
            let flags = inside.u8()?;
            let order = if self.track_attribute_order { Some(inside.u16()?) } else { None };
            let address = inside.address();
            let body = inside.take(length)?;
            if kind == 0 {
                spare += (envelope + length) as u64;
                continue;
            }
            self.messages.push(RawMessage {
                kind,
                flags,
                creation_order: order,
                address,
                body: body.to_vec(),
            });
        }
        if size > 0 && size < envelope {
            return Err(block.error("room for a message", size));
        }
        Ok(spare + inside.remaining() as u64)
    }

    /// The continuation blocks that the messages decoded so far name, in their order.
    pub fn continuations(&self, context: &Context) -> Result<Vec<Continuation>, DecodeError> {
        let messages = self.messages.iter().filter(|message| message.kind == CONTINUATION);
        messages
            .map(|message| Continuation::decode(&message.body, &context.at(message.address)))
            .collect()
    }

    /// Bytes in front of a message's body.
    fn envelope(&self) -> usize {
        match (self.version, self.track_attribute_order) {
            (1, _) => old::ENVELOPE,
            (_, true) => 6,
            (_, false) => 4,
        }
    }

    /// Bytes of a block that may be unused at most: what one filler covers.
    pub fn max_spare(&self) -> usize {
        let body = if self.version == 1 { old::MAX_BODY } else { 0xFFFF };
        self.envelope() + body
    }

    /// Bytes that a body of `length` bytes takes.
    pub fn padded(&self, length: usize) -> usize {
        if self.version == 1 { length.next_multiple_of(8) } else { length }
    }

    /// Bytes of the prefix in front of the size field.
    fn prefix_length(&self) -> usize {
        let times = if self.times.is_some() { 16 } else { 0 };
        let phase_change = if self.phase_change.is_some() { 4 } else { 0 };
        6 + times + phase_change
    }

    /// Bytes that `messages` take in a block of this header.
    pub fn messages_length(&self, messages: &[RawMessage]) -> usize {
        let bodies: usize = messages.iter().map(|message| self.padded(message.body.len())).sum();
        bodies + messages.len() * self.envelope()
    }

    /// Appends the first block with all messages and `spare` unused bytes behind them, in version 1
    /// a multiple of 8, and at most [`max_spare`](Self::max_spare).
    pub fn encode(&self, spare: usize, out: &mut Vec<u8>) -> Result<(), FormatError> {
        let size = self.messages_length(&self.messages) + spare;
        if self.version == 1 {
            return self.encode_sized(old::PREFIX + size, 0, out);
        }
        self.encode_first(size, size_width_bits(size as u64), out)
    }

    /// Appends the first block so that it takes exactly `length` bytes: for a header that is
    /// written over its older self. `others` is how many messages, fillers included, its other
    /// blocks have, which only version 1 stores.
    pub fn encode_sized(
        &self,
        length: usize,
        others: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FormatError> {
        if self.version == 1 {
            return old::encode_first(self, length, others, out);
        }
        let rest = length.saturating_sub(self.prefix_length() + CHECKSUM);
        for bits in 0..=3u8 {
            let width = 1 << bits;
            let Some(size) = rest.checked_sub(width) else { break };
            if size_width_bits(size as u64) <= bits {
                return self.encode_first(size, bits, out);
            }
        }
        Err(FormatError::unencodable(STRUCTURE, format!("a header in {length} byte(s)")))
    }

    fn encode_first(&self, size: usize, bits: u8, out: &mut Vec<u8>) -> Result<(), FormatError> {
        let start = out.len();
        let mut flags = bits;
        for (set, flag) in [
            (self.track_attribute_order, TRACK_ATTRIBUTE_ORDER),
            (self.index_attribute_order, INDEX_ATTRIBUTE_ORDER),
            (self.phase_change.is_some(), STORE_PHASE_CHANGE),
            (self.times.is_some(), STORE_TIMES),
        ] {
            if set {
                flags |= flag;
            }
        }
        out.put_bytes(b"OHDR");
        out.put_bytes(&[2, flags]);
        if let Some(Times { access, modification, change, birth }) = self.times {
            for time in [access, modification, change, birth] {
                out.put_u32(time);
            }
        }
        if let Some(PhaseChange { max_compact, min_dense }) = self.phase_change {
            out.put_u16(max_compact);
            out.put_u16(min_dense);
        }
        out.put_uint(size as u64, 1 << bits);
        self.encode_block(&self.messages, size, out)?;
        out.put_checksum(start);
        Ok(())
    }

    /// Appends a continuation block of exactly `length` bytes with these messages. Returns how many
    /// messages, fillers included, it has in version 1.
    pub fn encode_continuation(
        &self,
        messages: &[RawMessage],
        length: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize, FormatError> {
        if self.version == 1 {
            return old::encode_block(messages, length, out);
        }
        let start = out.len();
        out.put_bytes(b"OCHK");
        let size = length.checked_sub(4 + CHECKSUM).ok_or_else(|| {
            FormatError::unencodable(BLOCK, format!("a block of {length} byte(s)"))
        })?;
        self.encode_block(messages, size, out)?;
        out.put_checksum(start);
        Ok(messages.len())
    }

    /// Bytes of a continuation block with these messages and at least `spare` unused bytes.
    pub fn continuation_length(&self, messages: &[RawMessage], spare: usize) -> usize {
        let size = self.messages_length(messages) + self.padded(spare);
        if self.version == 1 { size } else { 4 + size + CHECKSUM }
    }

    /// Appends messages and fills the block up to `size` bytes.
    fn encode_block(
        &self,
        messages: &[RawMessage],
        size: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FormatError> {
        let spare = size.checked_sub(self.messages_length(messages)).ok_or_else(|| {
            FormatError::unencodable(STRUCTURE, format!("these messages in {size} byte(s)"))
        })?;
        if size > 0 && size < self.envelope() {
            return Err(FormatError::unencodable(STRUCTURE, format!("a block of {size} byte(s)")));
        }
        check_spare(spare, self.max_spare())?;
        for message in messages {
            let kind = fits(STRUCTURE, "message kind", 0xFF, usize::from(message.kind))?;
            let length = fits(STRUCTURE, "bytes of a message", 0xFFFF, message.body.len())?;
            out.put_u8(kind as u8);
            out.put_u16(length as u16);
            out.put_u8(message.flags);
            if self.track_attribute_order {
                out.put_u16(message.creation_order.unwrap_or_default());
            }
            out.put_bytes(&message.body);
        }
        self.encode_spare(spare, out);
        Ok(())
    }

    /// Fills `spare` bytes with a message of kind 0, or with a gap where none fits.
    fn encode_spare(&self, spare: usize, out: &mut Vec<u8>) {
        let Some(length) = spare.checked_sub(self.envelope()) else {
            out.put_zeros(spare);
            return;
        };
        out.put_u8(0);
        out.put_u16(length as u16);
        out.put_zeros(spare - 3);
    }
}

/// Refuses more unused bytes than one filler covers.
fn check_spare(spare: usize, most: usize) -> Result<(), FormatError> {
    if spare <= most {
        return Ok(());
    }
    Err(FormatError::unencodable(STRUCTURE, format!("{spare} unused byte(s), more than {most}")))
}

/// The logarithm of the width that a block's size needs.
fn size_width_bits(size: u64) -> u8 {
    match size {
        0..=0xFF => 0,
        0x100..=0xFFFF => 1,
        0x1_0000..=0xFFFF_FFFF => 2,
        _ => 3,
    }
}

#[cfg(test)]
mod tests;
