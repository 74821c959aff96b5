//! An object header as a living thing: its messages in memory, its blocks in the file.
//!
//! The header's first block never moves, because links name its address. Messages that no longer
//! fit into it go to one continuation block, which is allocated anew when it gets too small.
//! Blocks that other writers spread a header over are read in order and merged into that one when
//! the header is changed. A block of which much is unused gives that back.
//!
//! Invariant: `header.messages` has no continuation messages; `blocks` has the blocks that they
//! named.

mod blocks;
mod unknown;

use self::blocks::{MAX_HEADER, MAX_UNUSED, SPARE, continuation_room, follow, too_long};
use crate::dense_storage::DenseStorage;
use crate::file::File;
use crate::group::Links;
use crate::{Error, Result};
use pumice_format::Context;
use pumice_format::messages::{Message, kind};
use pumice_format::object_header::{
    CONTINUATION, Continuation, MAX_PREFIX, MESSAGE_CONSTANT, MESSAGE_SHARED, ObjectHeader,
    PhaseChange, RawMessage,
};
use pumice_medium::Medium;
use pumice_medium::MetadataIo;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLockReadGuard};

/// The most bytes that one message may have, in headers of either version.
pub(crate) const MAX_MESSAGE: usize = 0xFFF8;
/// About the memory that one change adds: a message, or a node of an index of messages.
const BLOCK: usize = 512;
/// Bytes that are read before the length of a header is known.
const GUESS: usize = 512;

/// A group, a dataset or a committed datatype.
///
/// Lock order: links and attributes before the state.
pub struct Object {
    medium: Arc<Medium>,
    address: u64,
    state: Mutex<State>,
    links: Mutex<Links>,
    attributes: Mutex<Option<Box<DenseStorage>>>,
    /// Whether its blocks were written in the form that they keep while other programs read them.
    settled: AtomicBool,
}

struct State {
    header: ObjectHeader,
    blocks: Vec<Continuation>,
    /// Bytes for messages in the first block.
    capacity: usize,
    dirty: bool,
    /// Whether its space was given back: nothing may be written there any more.
    freed: bool,
}

impl State {
    fn new(mut header: ObjectHeader, blocks: Vec<Continuation>, capacity: usize) -> Self {
        header.messages.shrink_to_fit();
        Self { header, blocks, capacity, dirty: false, freed: false }
    }

    /// Marks the object as changed, and updates its time if the header keeps times.
    fn touch(&mut self) {
        self.dirty = true;
        if let Some(times) = &mut self.header.times {
            times.change = now();
        }
        let kept = |message: &&mut RawMessage| message.kind == kind::MODIFICATION_TIME;
        if let Some(message) = self.header.messages.iter_mut().find(kept)
            && let Some(seconds) = message.body.get_mut(4..8)
        {
            seconds.copy_from_slice(&now().to_le_bytes());
        }
    }
}

impl Object {
    /// A new object with this header. It reaches the file with the next commit.
    pub fn create(medium: &Arc<Medium>, header: ObjectHeader) -> Result<Self> {
        Self::create_sized(medium, header, SPARE)
    }

    /// Creates an object whose header has room for `spare` bytes of further messages, at least for
    /// a continuation message. Very long messages get a block of their own.
    pub(crate) fn create_sized(
        medium: &Arc<Medium>,
        mut header: ObjectHeader,
        spare: usize,
    ) -> Result<Self> {
        let used = header.messages_length(&header.messages);
        let spare = if spare > MAX_UNUSED { 0 } else { spare };
        let capacity = (used + spare).max(continuation_room(&header, medium.sizes()));
        let mut bytes = Vec::new();
        header.encode(capacity - used, &mut bytes)?;
        header.length = bytes.len() as u64;
        let address = medium.allocate(header.length)?;
        medium.stage(address, bytes);
        Ok(Self::new(medium, address, State::new(header, Vec::new(), capacity)))
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
        unknown::heed(&mut header, medium.writable())?;
        Ok(Self::new(medium, address, State::new(header, blocks, capacity)))
    }

    /// Reads the header again, which another program may have changed, and forgets links and attributes.
    pub(crate) fn refresh(&self) -> Result<()> {
        let now = self.medium.steady(|| Self::load(&self.medium, self.address))?;
        self.follow(&now);
        Ok(())
    }

    /// Takes the messages of the same object, read again.
    pub(crate) fn follow(&self, now: &Self) {
        let (mut links, mut attributes) = (self.links(), self.dense_attributes());
        (*links, *attributes) = Default::default();
        std::mem::swap(&mut *self.state(), &mut *now.state());
    }

    fn new(medium: &Arc<Medium>, address: u64, state: State) -> Self {
        let (links, attributes) = Default::default();
        let settled = AtomicBool::new(false);
        let state = Mutex::new(state);
        Self { medium: medium.clone(), address, state, links, attributes, settled }
    }

    /// The address of the header, which links name.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Fails unless the object is in this file; its address means nothing in another.
    pub(crate) fn require_in(&self, file: &File) -> Result<()> {
        if Arc::ptr_eq(&self.medium, file.medium()) {
            return Ok(());
        }
        Err(Error::Internal(format!("the object at {:#x} of another file", self.address)))
    }

    /// Version of the header, 1 or 2.
    pub fn version(&self) -> u8 {
        self.state().header.version
    }

    /// Whether messages store their creation order, and whether dense attributes are indexed by it.
    pub fn attribute_order(&self) -> (bool, bool) {
        let state = self.state();
        (state.header.track_attribute_order, state.header.index_attribute_order)
    }

    /// The most attributes in messages, and the fewest in dense storage.
    pub fn attribute_phase_change(&self) -> (u16, u16) {
        match self.state().header.phase_change {
            Some(PhaseChange { max_compact, min_dense }) => (max_compact, min_dense),
            None => (8, 6),
        }
    }

    /// The links of the group that this is, where they are stored.
    pub(crate) fn links(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its attributes, if they were needed and are in dense storage.
    pub(crate) fn dense_attributes(&self) -> MutexGuard<'_, Option<Box<DenseStorage>>> {
        self.attributes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the object as changed by its dense links or attributes.
    pub(crate) fn mark(&self) -> Result<()> {
        self.change(|_| ())
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

    /// All messages.
    pub fn all_messages(&self) -> Vec<RawMessage> {
        self.state().header.messages.clone()
    }

    /// A header like its own, but for the messages and the links that lead to it.
    pub fn empty_header(&self) -> ObjectHeader {
        let state = self.state();
        let header = &state.header;
        ObjectHeader {
            version: header.version,
            reference_count: header.reference_count.map(|_| 1),
            times: header.times,
            phase_change: header.phase_change,
            track_attribute_order: header.track_attribute_order,
            index_attribute_order: header.index_attribute_order,
            ..ObjectHeader::default()
        }
    }

    /// Whether there is a message of a kind.
    pub fn has(&self, kind: u16) -> bool {
        self.state().header.messages.iter().any(|message| message.kind == kind)
    }

    /// The place of the first message that `wanted` accepts.
    pub fn find(&self, wanted: impl FnMut(&RawMessage) -> bool) -> Option<usize> {
        self.state().header.messages.iter().position(wanted)
    }

    /// Adds a message.
    pub fn push(&self, message: RawMessage) -> Result<()> {
        check_length(message.kind, &message.body)?;
        self.change(|messages| messages.push(message))
    }

    /// The number of hard links to the object.
    pub fn link_count(&self) -> u32 {
        if let Some(count) = self.state().header.reference_count {
            return count;
        }
        match self.decoded(kind::REFERENCE_COUNT) {
            Some(Message::ReferenceCount(count)) => count,
            _ => 1,
        }
    }

    /// The time of the last change in seconds since 1970, if the object keeps it.
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

    /// Counts one more hard link to the object.
    pub fn add_link(&self) -> Result<()> {
        let count = self.link_count().checked_add(1);
        self.set_link_count(
            count.ok_or_else(|| {
                Error::Invalid("an object cannot have more than 2^32 links".into())
            })?,
        )
    }

    /// Counts one hard link less to the object. Returns how many are left.
    pub fn remove_link(&self) -> Result<u32> {
        let left = self.link_count().saturating_sub(1);
        self.set_link_count(left)?;
        Ok(left)
    }

    fn set_link_count(&self, count: u32) -> Result<()> {
        self.medium.refuse_in_swmr("no link can be made or removed")?;
        let mut state = self.changeable()?;
        state.touch();
        if state.header.version == 1 {
            state.header.reference_count = Some(count);
            return Ok(());
        }
        let messages = &mut state.header.messages;
        let place = messages.iter().position(|message| message.kind == kind::REFERENCE_COUNT);
        // One link is what a header without this message has.
        let message = match count {
            0 | 1 => None,
            count => Some(Message::ReferenceCount(count).to_raw(self.medium.sizes(), 0)?),
        };
        match (place, message) {
            (Some(place), Some(message)) => messages[place].body = message.body,
            (Some(place), None) => drop(messages.remove(place)),
            (None, Some(message)) => messages.push(message),
            (None, None) => {}
        }
        Ok(())
    }

    /// Replaces the body of the first message of a kind, or adds one.
    pub fn set(&self, kind: u16, flags: u8, body: Vec<u8>) -> Result<()> {
        check_length(kind, &body)?;
        let unchanged = self.message(kind).is_some_and(|message| message.body == body);
        if unchanged {
            return Ok(());
        }
        // Of these, readers beside the writer know how to follow.
        if !matches!(kind, kind::LAYOUT | kind::DATASPACE) {
            self.medium.refuse_in_swmr("no object can be changed")?;
        }
        self.change_any(|messages| match messages.iter_mut().find(|message| message.kind == kind) {
            Some(message) => {
                // libhdf5 takes the layout of storage that is allocated early for constant, and
                // would refuse to change it back.
                message.flags &= !(MESSAGE_SHARED | MESSAGE_CONSTANT);
                message.body = body;
            }
            None => messages.push(RawMessage::new(kind, flags, body)),
        })
    }

    /// Changes the list of messages.
    pub fn change<T>(&self, change: impl FnOnce(&mut Vec<RawMessage>) -> T) -> Result<T> {
        self.medium.refuse_in_swmr("no object can be changed")?;
        self.change_any(change)
    }

    fn change_any<T>(&self, change: impl FnOnce(&mut Vec<RawMessage>) -> T) -> Result<T> {
        let mut state = self.changeable()?;
        state.touch();
        Ok(change(&mut state.header.messages))
    }

    fn changeable(&self) -> Result<MutexGuard<'_, State>> {
        self.medium.require_writable()?;
        let state = self.state();
        let header = if state.dirty { 0 } else { state.header.length as usize };
        self.medium.note_change(header + BLOCK);
        match state.freed {
            true => Err(Error::NotFound("the object has been deleted".into())),
            false => Ok(state),
        }
    }

    /// Whether its space has been given back.
    pub(crate) fn is_deleted(&self) -> bool {
        self.state().freed
    }

    /// Whether it has changes that are not staged.
    pub fn is_dirty(&self) -> bool {
        self.state().dirty
    }

    /// Hands the changed blocks to the next commit.
    pub fn stage(&self) -> Result<()> {
        if !self.is_dirty() {
            return Ok(());
        }
        self.links().commit(&self.medium)?;
        if let Some(dense) = &mut *self.dense_attributes() {
            dense.commit(&self.medium)?;
        }
        self.stage_header()
    }

    /// Stages the object before a commit. Blocks that would leave a hole when they grow again wait,
    /// and the object stays dirty; returns about how many bytes of memory that takes. Of a `held`
    /// object, a header that needs another block waits.
    pub(crate) fn spill(&self, held: bool) -> Result<usize> {
        if !self.is_dirty() {
            return Ok(0);
        }
        let mut waiting = self.links().spill(&self.medium)?;
        if let Some(dense) = &mut *self.dense_attributes() {
            waiting += dense.spill(&self.medium)?;
        }
        if waiting == 0 && self.keeps_its_blocks(held)? {
            self.stage_header()?;
            return Ok(0);
        }
        let state = self.state();
        Ok(waiting + size_of::<Self>() + state.header.messages_length(&state.header.messages))
    }

    /// Moves blocks that a commit placed behind the space that it freed. Returns whether any were.
    pub(crate) fn move_down(&self) -> Result<bool> {
        match &mut *self.links() {
            Links::Old(old) => old.move_down(&self.medium),
            _ => Ok(false),
        }
    }

    /// Drops links and attributes that can be read again.
    pub(crate) fn trim(&self) {
        self.links().trim();
        if let Some(dense) = &mut *self.dense_attributes() {
            dense.trim();
        }
    }

    /// Gives back the space of all blocks; the object must not be used any more.
    pub fn free(&self, _change: &RwLockReadGuard<'_, ()>) {
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

/// The time, in seconds since 1970.
pub(crate) fn now() -> u32 {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}

/// Refuses a message that no header can hold, before it makes a commit fail.
pub(crate) fn check_length(kind: u16, body: &[u8]) -> Result<()> {
    if body.len() <= MAX_MESSAGE {
        return Ok(());
    }
    let (what, instead) = match kind {
        kind::ATTRIBUTE => (
            "an attribute",
            "store a dataset, or take a file of `LibraryVersion::V18` or later, whose attributes can be larger",
        ),
        kind::DATATYPE => ("a datatype", "take fewer members, or shorter names"),
        kind::FILL_VALUE | kind::FILL_VALUE_OLD => {
            ("a fill value", "take smaller elements, or no fill value")
        }
        kind::COMMENT => ("a comment", "make it shorter"),
        kind::LINK => ("a link", "make its name or target shorter"),
        _ => ("a message", "make it smaller"),
    };
    let length = body.len();
    Err(Error::Invalid(format!(
        "{what} takes {length} bytes of an object header, which has at most {MAX_MESSAGE} in one piece: {instead}"
    )))
}
