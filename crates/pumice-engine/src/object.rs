//! An object header as a living thing: its messages in memory, its blocks in the file.
//!
//! The header's first block never moves, because links name its address. Messages that no longer
//! fit into it go to one continuation block, which is allocated anew when it gets too small.
//! Blocks that other writers spread a header over are read in order and merged into that one when
//! the header is changed.
//!
//! Invariant: `header.messages` holds no continuation messages; `blocks` has what they named.

use crate::medium::Medium;
use crate::metadata::MetadataIo;
use crate::{Error, Result};
use pumice_bytes::DecodeError;
use pumice_format::Context;
use pumice_format::messages::{Link, Message, kind};
use pumice_format::object_header::{
    CONTINUATION, Continuation, MAX_PREFIX, MESSAGE_SHARED, ObjectHeader, RawMessage,
};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Room for messages that come later, when a header is created.
const SPARE: usize = 128;
/// The most bytes that a header may have in all its blocks.
const MAX_HEADER: u64 = 256 << 20;
/// The most bytes that one message may have.
const MAX_MESSAGE: usize = 0xFFFF;
/// What is read before the length of a header is known.
const GUESS: usize = 512;

/// A group, a dataset or a committed datatype.
pub struct Object {
    medium: Arc<Medium>,
    address: u64,
    state: Mutex<State>,
}

struct State {
    header: ObjectHeader,
    blocks: Vec<Continuation>,
    /// Bytes for messages in the first block.
    capacity: usize,
    dirty: bool,
    /// Whether its space was given back: nothing may be written there any more.
    freed: bool,
    /// The links of a group, once they were listed, until a message changes.
    links: Option<Arc<Vec<Link>>>,
    /// How often messages have changed.
    changes: u64,
}

impl State {
    fn new(mut header: ObjectHeader, blocks: Vec<Continuation>, capacity: usize) -> Self {
        header.messages.shrink_to_fit();
        Self { header, blocks, capacity, dirty: false, freed: false, links: None, changes: 0 }
    }

    /// Takes note of a change.
    fn touch(&mut self) {
        self.dirty = true;
        self.links = None;
        self.changes += 1;
    }
}

impl Object {
    /// A new object with these messages. It reaches the file with the next commit.
    pub fn create(medium: &Arc<Medium>, messages: Vec<RawMessage>) -> Result<Self> {
        let mut header = ObjectHeader::new();
        header.messages = messages;
        let capacity = header.messages_length(&header.messages) + SPARE;
        let mut bytes = Vec::new();
        header.encode(SPARE, &mut bytes)?;
        header.length = bytes.len() as u64;
        let address = medium.allocate(header.length)?;
        medium.stage(address, bytes);
        let state = State::new(header, Vec::new(), capacity);
        Ok(Self { medium: medium.clone(), address, state: Mutex::new(state) })
    }

    /// The object at `address`, with all blocks of its header.
    pub fn load(medium: &Arc<Medium>, address: u64) -> Result<Self> {
        let context = Context::new(medium.sizes()).at(address);
        let mut bytes = medium.read_up_to(address, GUESS)?;
        let length = ObjectHeader::measure(&bytes[..bytes.len().min(MAX_PREFIX)], address)?;
        if length > MAX_HEADER {
            return Err(too_long(address, length));
        }
        if bytes.len() < length as usize {
            bytes = medium.read(address, length as usize)?;
        }
        bytes.truncate(length as usize);
        let mut header = ObjectHeader::decode(&bytes, &context)?;
        let capacity = header.messages_length(&header.messages) + header.spare as usize;
        let blocks = follow(medium, &mut header, address, length)?;
        header.messages.retain(|message| message.kind != CONTINUATION);
        let state = State::new(header, blocks, capacity);
        Ok(Self { medium: medium.clone(), address, state: Mutex::new(state) })
    }

    /// Where the header begins: what links to the object name.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Version of the header, 1 or 2.
    pub fn version(&self) -> u8 {
        self.state().header.version
    }

    /// The decoding context of a message of this object.
    pub fn context(&self, message: &RawMessage) -> Context {
        Context::new(self.medium.sizes()).at(message.address)
    }

    /// The first message of a kind.
    pub fn message(&self, kind: u16) -> Option<RawMessage> {
        self.state().header.messages.iter().find(|message| message.kind == kind).cloned()
    }

    /// All messages of a kind.
    pub fn messages(&self, kind: u16) -> Vec<RawMessage> {
        let state = self.state();
        state.header.messages.iter().filter(|message| message.kind == kind).cloned().collect()
    }

    /// Whether there is a message of a kind.
    pub fn has(&self, kind: u16) -> bool {
        self.state().header.messages.iter().any(|message| message.kind == kind)
    }

    /// The place of the first message that `wanted` accepts.
    pub fn find(&self, wanted: impl FnMut(&RawMessage) -> bool) -> Option<usize> {
        self.state().header.messages.iter().position(wanted)
    }

    /// The links of the group that this object is, listed by `list` unless they are known, and the
    /// number of changes so far, for [`push_link`](Self::push_link).
    pub(crate) fn links(
        &self,
        list: impl FnOnce() -> Result<Vec<Link>>,
    ) -> Result<(Arc<Vec<Link>>, u64)> {
        let changes = {
            let state = self.state();
            if let Some(links) = &state.links {
                return Ok((links.clone(), state.changes));
            }
            state.changes
        };
        let links = Arc::new(list()?);
        let mut state = self.state();
        if state.changes == changes {
            state.links = Some(links.clone());
        }
        Ok((links, changes))
    }

    /// Adds a message.
    pub fn push(&self, message: RawMessage) -> Result<()> {
        check_length(&message.body)?;
        self.change(|messages| messages.push(message))
    }

    /// Adds a link and its message, unless there were other changes than these `changes`. Says
    /// whether it did. Links that are known stay known, so that many are added in little time.
    pub(crate) fn push_link(&self, changes: u64, link: &Link, body: &[u8]) -> Result<bool> {
        check_length(body)?;
        let mut state = self.changeable()?;
        if state.changes != changes {
            return Ok(false);
        }
        let known = state.links.take();
        state.touch();
        state.header.messages.push(RawMessage::new(kind::LINK, 0, body.to_vec()));
        state.links = known.map(|mut links| {
            let place = links.partition_point(|other| other.name < link.name);
            Arc::make_mut(&mut links).insert(place, link.clone());
            links
        });
        Ok(true)
    }

    /// How many hard links lead to the object.
    pub fn link_count(&self) -> u32 {
        if let Some(count) = self.state().header.reference_count {
            return count;
        }
        match self.decoded(kind::REFERENCE_COUNT) {
            Some(Message::ReferenceCount(count)) => count,
            _ => 1,
        }
    }

    /// When the object was last changed, in seconds since 1970, if it keeps that.
    pub fn modified(&self) -> Option<u32> {
        if let Some(times) = self.state().header.times {
            return Some(times.change);
        }
        match self.decoded(kind::MODIFICATION_TIME) {
            Some(Message::ModificationTime(time)) => Some(time),
            _ => None,
        }
    }

    /// The first message of a kind, if it is there and makes sense.
    fn decoded(&self, kind: u16) -> Option<Message> {
        let raw = self.message(kind)?;
        Message::from_raw(&raw, &self.context(&raw)).ok()
    }

    /// Takes note that one hard link to the object is gone. Returns how many are left.
    pub fn remove_link(&self) -> Result<u32> {
        let context = Context::new(self.medium.sizes());
        self.change(|messages| {
            let counts = |message: &RawMessage| message.kind == kind::REFERENCE_COUNT;
            let Some(place) = messages.iter().position(counts) else { return Ok(0) };
            let left = match Message::from_raw(&messages[place], &context)? {
                Message::ReferenceCount(count) => count.saturating_sub(1),
                _ => 0,
            };
            if left > 1 {
                let flags = messages[place].flags;
                messages[place] = Message::ReferenceCount(left).to_raw(context.sizes, flags)?;
            } else {
                // One link is what a header without this message has.
                messages.remove(place);
            }
            Ok(left)
        })?
    }

    /// Replaces the body of the first message of a kind, or adds one.
    pub fn set(&self, kind: u16, flags: u8, body: Vec<u8>) -> Result<()> {
        check_length(&body)?;
        let unchanged = self.message(kind).is_some_and(|message| message.body == body);
        if unchanged {
            return Ok(());
        }
        self.change(|messages| match messages.iter_mut().find(|message| message.kind == kind) {
            Some(message) => {
                message.flags &= !MESSAGE_SHARED;
                message.body = body;
            }
            None => messages.push(RawMessage::new(kind, flags, body)),
        })
    }

    /// Changes the list of messages.
    pub fn change<T>(&self, change: impl FnOnce(&mut Vec<RawMessage>) -> T) -> Result<T> {
        let mut state = self.changeable()?;
        state.touch();
        Ok(change(&mut state.header.messages))
    }

    fn changeable(&self) -> Result<MutexGuard<'_, State>> {
        self.medium.require_writable()?;
        let state = self.state();
        if state.header.version != 2 {
            return Err(Error::Unsupported(format!(
                "changing the version 1 object header at {:#x}",
                self.address
            )));
        }
        Ok(state)
    }

    /// Whether it has changes that no commit has seen.
    pub fn is_dirty(&self) -> bool {
        self.state().dirty
    }

    /// Hands the changed blocks to the next commit.
    pub fn stage(&self) -> Result<()> {
        let mut state = self.state();
        if !state.dirty || state.freed {
            return Ok(());
        }
        let first = split(&state.header, state.capacity, self.medium.sizes())?;
        let mut whole = state.header.clone();
        whole.messages = state.header.messages[..first].to_vec();
        let old = std::mem::take(&mut state.blocks);
        if first < state.header.messages.len() {
            let moved = &state.header.messages[first..];
            let block = self.place_continuation(&state.header, moved, &old)?;
            let mut body = Vec::new();
            block.encode(self.medium.sizes(), &mut body);
            whole.messages.push(RawMessage::new(CONTINUATION, 0, body));
            state.blocks.push(block);
        }
        for block in old.iter().filter(|block| !state.blocks.contains(block)) {
            self.medium.free(block.address, block.length);
        }
        let mut bytes = Vec::new();
        whole.encode_sized(state.header.length as usize, &mut bytes)?;
        self.medium.stage(self.address, bytes);
        state.dirty = false;
        Ok(())
    }

    /// Stages the messages of the continuation block, in its old place if they fit there.
    fn place_continuation(
        &self,
        header: &ObjectHeader,
        messages: &[RawMessage],
        old: &[Continuation],
    ) -> Result<Continuation> {
        let needed = header.continuation_length(messages, 0) as u64;
        let block = match old.iter().find(|block| block.length >= needed) {
            Some(&block) => block,
            None => {
                let spare = (needed / 2) as usize + SPARE;
                let length = header.continuation_length(messages, spare) as u64;
                Continuation { address: self.medium.allocate(length)?, length }
            }
        };
        let mut bytes = Vec::new();
        header.encode_continuation(messages, block.length as usize, &mut bytes)?;
        self.medium.stage(block.address, bytes);
        Ok(block)
    }

    /// Gives back the space of all blocks; the object must not be used any more.
    pub fn free(&self) {
        let _change = self.medium.change();
        let mut state = self.state();
        if std::mem::replace(&mut state.freed, true) {
            return;
        }
        for block in std::mem::take(&mut state.blocks) {
            self.medium.free(block.address, block.length);
        }
        self.medium.free(self.address, state.header.length);
        state.dirty = false;
    }

    // Nothing under the lock panics half-way through a change: poisoning carries no meaning.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses a message that no header can hold, before it makes a commit fail.
pub(crate) fn check_length(body: &[u8]) -> Result<()> {
    if body.len() <= MAX_MESSAGE {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "an object header holds at most {MAX_MESSAGE} bytes in one piece, not {}",
        body.len()
    )))
}

/// How many messages stay in the first block; if not all, there is room for a continuation
/// message behind them.
fn split(header: &ObjectHeader, capacity: usize, sizes: pumice_format::Sizes) -> Result<usize> {
    if header.messages_length(&header.messages) <= capacity {
        return Ok(header.messages.len());
    }
    let body = vec![0; usize::from(sizes.offset) + usize::from(sizes.length)];
    let mut used = header.messages_length(&[RawMessage::new(CONTINUATION, 0, body)]);
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
fn follow(
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

fn too_long(address: u64, length: u64) -> Error {
    let expected = format!("at most {MAX_HEADER} byte(s)");
    DecodeError::new("object header", address, expected, length).into()
}
