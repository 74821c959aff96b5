//! The blocks of an object header in the file: which messages go to which, and the room that they leave.

use super::{Object, State};
use crate::{Error, Result};
use pumice_bytes::DecodeError;
use pumice_format::Context;
use pumice_format::object_header::{CONTINUATION, Continuation, ObjectHeader, RawMessage};
use pumice_medium::{Medium, MetadataIo};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Room for messages that come later, when a header is created.
pub(super) const SPARE: usize = 128;
/// The most unused bytes of a block. The format's limit, [`ObjectHeader::max_spare`], is larger:
/// libhdf5 adds bytes to them when it removes a message beside them.
pub(super) const MAX_UNUSED: usize = 32 << 10;
/// The most room for later messages, however many there are.
const MAX_ROOM: usize = 8 << 10;
/// The most bytes that a header may have in all its blocks.
pub(super) const MAX_HEADER: u64 = 256 << 20;

impl Object {
    /// Whether the header fits its blocks, or may get its second block now.
    pub(super) fn keeps_its_blocks(&self, held: bool) -> Result<bool> {
        let state = self.state();
        let first = split(&state.header, state.capacity, self.medium.sizes())?;
        let moved = &state.header.messages[first..];
        let needed = state.header.continuation_length(moved, 0) as u64;
        Ok(moved.is_empty()
            || state.blocks.iter().any(|block| is_good_for(block, needed))
            || (state.blocks.is_empty() && !held))
    }

    /// Stages the changed header, in the blocks that it needs now.
    pub(super) fn stage_header(&self) -> Result<()> {
        let mut state = self.state();
        if !state.dirty || state.freed {
            return Ok(());
        }
        let first = split(&state.header, state.capacity, self.medium.sizes())?;
        let mut whole = state.header.clone();
        whole.messages = state.header.messages[..first].to_vec();
        let old = std::mem::take(&mut state.blocks);
        let mut others = 0;
        if first < state.header.messages.len() {
            let moved = &state.header.messages[first..];
            let (block, count) = self.place_continuation(&state.header, moved, &old)?;
            others = count;
            let mut body = Vec::new();
            block.encode(self.medium.sizes(), &mut body);
            whole.messages.push(RawMessage::new(CONTINUATION, 0, body));
            state.blocks.push(block);
        }
        for block in old.iter().filter(|block| !state.blocks.contains(block)) {
            self.medium.free(block.address, block.length);
        }
        self.shorten(&mut state, whole.messages_length(&whole.messages));
        let mut bytes = Vec::new();
        whole.encode_sized(state.header.length as usize, others, &mut bytes)?;
        self.medium.stage(self.address, bytes);
        state.dirty = false;
        Ok(())
    }

    /// Gives back the unused end of the first block, if it is large.
    fn shorten(&self, state: &mut State, used: usize) {
        let unused = state.capacity.saturating_sub(used);
        if unused <= MAX_UNUSED {
            return;
        }
        let cut = unused - state.header.padded(room(used));
        state.capacity -= cut;
        state.header.length -= cut as u64;
        self.medium.free(self.address + state.header.length, cut as u64);
    }

    /// Stages the messages of the continuation block, in its old place if they fit there. Gives the
    /// block and its number of messages.
    fn place_continuation(
        &self,
        header: &ObjectHeader,
        messages: &[RawMessage],
        old: &[Continuation],
    ) -> Result<(Continuation, usize)> {
        let needed = header.continuation_length(messages, 0) as u64;
        // Readers would find new messages behind an old first block: not where messages can have moved.
        let keeps = !self.medium.writes_swmr() || self.settled.swap(true, Ordering::Relaxed);
        let block = match old.iter().find(|block| keeps && is_good_for(block, needed)) {
            Some(&block) => block,
            None => {
                let length = header.continuation_length(messages, room(needed as usize)) as u64;
                Continuation { address: self.medium.allocate(length)?, length }
            }
        };
        let mut bytes = Vec::new();
        let count = header.encode_continuation(messages, block.length as usize, &mut bytes)?;
        self.medium.stage(block.address, bytes);
        Ok((block, count))
    }

    /// Bytes of all blocks of the header, and how many of them are unused.
    pub fn space(&self) -> (u64, u64) {
        let state = self.state();
        let blocks = state.blocks.iter();
        let total = blocks.clone().fold(state.header.length, |sum, block| sum + block.length);
        let sizes = self.medium.sizes();
        let link = u64::from(sizes.offset) + u64::from(sizes.length);
        let (frame, envelope, room) =
            match (state.header.version, state.header.track_attribute_order) {
                (1, _) => (0, 8, state.header.length.saturating_sub(16)),
                // A block of version 2 has a signature and a checksum.
                (_, true) => (8, 6, state.capacity as u64),
                (_, false) => (8, 4, state.capacity as u64),
            };
        let room = blocks.fold(room, |sum, block| sum + block.length.saturating_sub(frame));
        let messages = state.header.messages.iter();
        let used: u64 = messages.map(|message| message.body.len() as u64 + envelope).sum();
        let used = used + state.blocks.len() as u64 * (link + envelope);
        (total, room.saturating_sub(used))
    }

    /// The addresses and lengths of its blocks.
    pub fn blocks(&self) -> Vec<(u64, u64)> {
        let state = self.state();
        let first = (self.address, state.header.length);
        let others = state.blocks.iter().map(|block| (block.address, block.length));
        std::iter::once(first).chain(others).collect()
    }
}

/// Room for later messages, for a block whose messages take `used` bytes.
fn room(used: usize) -> usize {
    (used / 8).min(MAX_ROOM) + SPARE
}

/// Whether a block has room for `needed` bytes, and not much more.
fn is_good_for(block: &Continuation, needed: u64) -> bool {
    block.length.checked_sub(needed).is_some_and(|unused| unused <= MAX_UNUSED as u64)
}

/// Bytes of a message that says where a header goes on.
pub(super) fn continuation_room(header: &ObjectHeader, sizes: pumice_format::Sizes) -> usize {
    let body = vec![0; usize::from(sizes.offset) + usize::from(sizes.length)];
    header.messages_length(&[RawMessage::new(CONTINUATION, 0, body)])
}

/// The number of messages that stay in the first block; if not all, it has room for a continuation
/// message behind them.
fn split(header: &ObjectHeader, capacity: usize, sizes: pumice_format::Sizes) -> Result<usize> {
    if header.messages_length(&header.messages) <= capacity {
        return Ok(header.messages.len());
    }
    let mut used = continuation_room(header, sizes);
    if used > capacity {
        return Err(Error::Unsupported("an object header too small for a continuation".into()));
    }
    let mut first = 0;
    for message in &header.messages {
        used += header.messages_length(std::slice::from_ref(message));
        if used > capacity {
            break;
        }
        first += 1;
    }
    Ok(first)
}

/// Reads all continuation blocks. Every block is read once: one that is named twice is an error.
pub(super) fn follow(
    medium: &Arc<Medium>,
    header: &mut ObjectHeader,
    address: u64,
    length: u64,
) -> Result<Vec<Continuation>> {
    let context = Context::new(medium.sizes());
    let mut blocks: Vec<Continuation> = Vec::new();
    let mut visited = HashSet::from([address]);
    let mut total = length;
    let mut next = 0;
    while let Some(message) = header.messages.get(next) {
        next += 1;
        if message.kind != CONTINUATION {
            continue;
        }
        let block = Continuation::decode(&message.body, &context.at(message.address))?;
        if !visited.insert(block.address) {
            let (expected, found) = ("a block that is named once", "one that is named again");
            let structure = "object header continuation";
            return Err(DecodeError::new(structure, block.address, expected, found).into());
        }
        total = total.saturating_add(block.length);
        if total > MAX_HEADER {
            return Err(too_long(address, total));
        }
        let bytes = medium.read(block.address, block.length as usize)?;
        header.decode_continuation(&bytes, &context.at(block.address))?;
        blocks.push(block);
    }
    Ok(blocks)
}

pub(super) fn too_long(address: u64, length: u64) -> Error {
    let expected = format!("at most {MAX_HEADER} byte(s)");
    DecodeError::new("object header", address, expected, length).into()
}
