//! Writing to the global heap: objects come and go, collections are made, filled, reused and freed.
//!
//! New objects go to one open collection, which is in memory until it is full or a commit stages it.
//! Objects that elements no longer refer to are *queued*: they leave their collections in the commit
//! whose written chunks no longer refer to them, so that what is committed never refers to nothing.
//! The room that they leave is used again after that; a collection without objects is given back. Objects
//! that came since the last commit leave without one (`recent.rs`), and none leaves while somebody may have
//! a reference to it in hand (`readers.rs`).

use super::open::Open;
use super::recent::Recent;
use super::{GlobalHeap, Kept, Loaded, parse};
use crate::metadata::{DataKind, MetadataIo};
use crate::{Error, Result};
use pumice_bytes::Writer as _;
use pumice_format::global_heap::{self, Collection, MAX_INDEX, MIN_COLLECTION};
use pumice_format::{Context, UNDEFINED};
use pumice_store::WriteOp;
use pumice_types::heaped::{self, ObjectSink};
use pumice_types::{Datatype, VarLen};
use std::collections::{BTreeMap, HashSet};
use std::sync::{MutexGuard, PoisonError};

/// Bytes of a collection when many objects are written.
const LARGE_COLLECTION: usize = 64 << 10;
/// How many collections with room are remembered.
const ROOMY: usize = 64;
/// Less room than this is not worth remembering.
const LEAST_ROOM: usize = 64;

/// What is being written.
#[derive(Default)]
pub(super) struct Writing {
    open: Option<Open>,
    /// Collections with room for more, and how many bytes.
    roomy: BTreeMap<u64, usize>,
    /// What came since the last commit to collections that are not open.
    recent: BTreeMap<u64, Closed>,
    /// Those of them that are new and to which no element refers.
    empty: Vec<u64>,
    /// Whether a commit is under way, which may have written references to anything already.
    committing: bool,
    /// Objects that nothing refers to once the chunks of now are written.
    queued: Vec<Gone>,
    /// Those that the commit under way takes out.
    leaving: Vec<Gone>,
    /// Where collections were that are given back: what is read there, by who has a reference from before, is
    /// another's.
    freed: HashSet<u64>,
    /// How many objects were added, for the size of collections.
    added: usize,
}

/// A commit is under way. If it fails, nothing that it has written is committed: the next one writes again what
/// changed since, and takes out what this one did not.
pub(crate) struct Committing<'h>(&'h GlobalHeap);

impl Drop for Committing<'_> {
    fn drop(&mut self) {
        self.0.writing().committing = false;
    }
}

/// An object to which no element refers: its collection, its index, and the moment it was given back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Gone {
    address: u64,
    index: u32,
    moment: u64,
}

/// An object that elements refer to.
#[derive(Clone, Copy)]
struct Found {
    address: u64,
    index: u32,
    /// Its bytes, as the reference says.
    bytes: usize,
}

/// A collection that was open since the last commit.
struct Closed {
    recent: Recent,
    size: usize,
    /// Bytes that are free in it.
    free: usize,
}

impl GlobalHeap {
    /// Stores everything that heaped elements refer to, and makes their references the file's.
    pub fn store(&self, datatype: &Datatype, elements: &mut [u8], heap: &[u8]) -> Result<()> {
        heaped::store(datatype, elements, heap, &mut Sink { heap: self })
    }

    /// Stores an object and gives its id: address and index.
    pub fn insert(&self, object: &[u8]) -> Result<Vec<u8>> {
        let (address, index) = self.add(object)?;
        let mut id = Vec::new();
        id.put_uint(address, usize::from(self.medium.sizes().offset));
        id.put_u32(index);
        Ok(id)
    }

    /// Notes that nothing refers any more to what elements, as the file has them, refer to. Their
    /// space is free after the next commit.
    pub fn discard(&self, datatype: &Datatype, elements: Vec<u8>) -> Result<()> {
        let found = self.found_in(datatype, elements)?;
        let mut writing = self.writing();
        let moment = self.readers.next();
        writing.queue(found.iter().map(|found| found.gone(moment)));
        Ok(())
    }

    /// The same of elements of which nobody has a copy but those who [read](Self::reading) them: space of
    /// what came since the last commit is free at once. Says whether there was anything else.
    pub fn discard_read(&self, datatype: &Datatype, elements: Vec<u8>) -> Result<bool> {
        let found = self.found_in(datatype, elements)?;
        let mut writing = self.writing();
        let moment = self.readers.next();
        let queued = writing.queued.len();
        for same in found.chunk_by(|one, other| one.address == other.address) {
            writing.give_back(same, moment, &self.context());
        }
        Ok(writing.queued.len() > queued)
    }

    /// The objects that elements refer to.
    fn found_in(&self, datatype: &Datatype, mut elements: Vec<u8>) -> Result<Vec<Found>> {
        let mut found = Vec::new();
        collect(self, datatype, &mut elements, self.medium.sizes().offset, &mut found)?;
        Ok(found)
    }

    /// Whether the next new object needs a new collection as far as is known.
    pub(crate) fn knows_no_room(&self) -> bool {
        let writing = self.writing();
        writing.open.is_none() && writing.roomy.is_empty()
    }

    /// Whether objects of these lengths would all get new collections in free space, if those with room
    /// were [left alone](Self::begin_anew), and one of them before `address`.
    pub(crate) fn fits_before(&self, address: u64, lengths: impl Iterator<Item = usize>) -> bool {
        let (size, context) = (self.writing().usual(), self.context());
        let empty = size - Collection::header_length(&context);
        let (mut count, mut room) = (0, 0);
        for length in lengths {
            let need = global_heap::object_length(length, &context);
            if need > empty {
                return false;
            }
            if need > room {
                (count, room) = (count + 1, empty);
            }
            room -= need;
        }
        self.medium.has_raw_holes_before(address, size as u64, count)
    }

    /// The collection that a reference leads to, if it leads anywhere, and the length of the object.
    pub(crate) fn place(&self, varlen: &VarLen, reference: &[u8]) -> Result<Option<(u64, usize)>> {
        let id = reference.get(4..).unwrap_or_default();
        let (address, _) = parse(id, self.medium.sizes().offset)?;
        let none = address == 0 || address == UNDEFINED;
        Ok((!none).then(|| (address, length(varlen, reference))))
    }

    /// Lets the next objects have new collections.
    pub(crate) fn begin_anew(&self) -> Result<()> {
        let mut writing = self.writing();
        self.close(&mut writing)?;
        writing.roomy.clear();
        Ok(())
    }

    /// Notes that nothing refers any more to an object.
    pub(crate) fn discard_object(&self, address: u64, index: u32) {
        let mut writing = self.writing();
        let moment = self.readers.next();
        writing.queue([Gone { address, index, moment }].into_iter());
    }

    /// Notes that a collection that was read has room, so that later objects find it.
    pub(super) fn note_room(&self, address: u64, loaded: &Loaded) {
        if !self.medium.writable() {
            return;
        }
        let context = self.context();
        let objects = loaded.objects.iter();
        let (last, used) = objects.fold((0, Collection::header_length(&context)), |sum, object| {
            let (index, range) = object;
            (index.max(sum.0), sum.1 + global_heap::object_length(range.len(), &context))
        });
        let room = loaded.bytes.len().saturating_sub(used);
        let mut writing = self.writing();
        let length = loaded.bytes.len() as u64;
        if writing.freed.contains(&address) || self.medium.is_given_back(address, length) {
            return;
        }
        // Of what was open just now, more is known.
        let known = writing.recent.contains_key(&address);
        if !known && writing.open.as_ref().is_none_or(|open| open.address != address) {
            writing.remember(address, room, u32::from(last) + 1);
        }
    }

    /// What was queued so far leaves with the commit that now begins: its chunks are yet to be
    /// written. To be held until it has succeeded or failed.
    pub(crate) fn begin_commit(&self) -> Committing<'_> {
        let mut writing = self.writing();
        let mut leaving = std::mem::take(&mut writing.queued);
        leaving.append(&mut writing.leaving);
        writing.take_dead(&mut leaving);
        writing.leaving = leaving;
        writing.committing = true;
        Committing(self)
    }

    /// Hands changed collections to the commit.
    pub(crate) fn stage(&self) -> Result<()> {
        let mut writing = self.writing();
        let leaving = self.leaving_now(&mut writing);
        for same in leaving.chunk_by(|one, other| one.address == other.address) {
            // An object that is not there, in a damaged file, leaves nothing.
            let _ = self.take_out(&mut writing, same[0].address, same);
        }
        if let Some(open) = writing.open.as_mut().filter(|open| open.dirty) {
            self.note_renewed(open.address);
            self.medium.stage(open.address, open.bytes.clone());
            (open.committed, open.dirty) = (true, false);
        }
        // From now on, nothing that there is came since the last commit.
        writing.recent.clear();
        writing.empty.clear();
        if let Some(open) = &mut writing.open {
            open.recent = Recent::new(open.next, false);
        }
        writing.committing = false;
        Ok(())
    }

    /// The objects that go now, in order. Those that somebody may have a reference to go with a later
    /// commit.
    fn leaving_now(&self, writing: &mut Writing) -> Vec<Gone> {
        let mut leaving = std::mem::take(&mut writing.leaving);
        // Given back by two, an object is gone since the first.
        leaving.sort_unstable();
        leaving.dedup_by_key(|gone| (gone.address, gone.index));
        let done = self.readers.done();
        if leaving.iter().any(|gone| gone.moment > done) {
            let (now, later) = leaving.into_iter().partition(|gone| gone.moment <= done);
            leaving = now;
            writing.queued.extend::<Vec<Gone>>(later);
        }
        let id = |gone: &Gone| (gone.address, gone.index);
        writing.queued.retain(|gone| leaving.binary_search_by_key(&id(gone), id).is_err());
        leaving
    }

    /// The bytes of a collection that differs from what the file has.
    pub(super) fn changed(&self, address: u64) -> Option<Vec<u8>> {
        let writing = self.writing();
        match &writing.open {
            Some(open) if open.address == address => Some(open.bytes.clone()),
            _ => self.medium.staged(address),
        }
    }

    /// A collection as it is, while nobody changes any.
    pub(super) fn read_alone(&self, address: u64) -> Result<Loaded> {
        let writing = self.writing();
        match &writing.open {
            Some(open) if open.address == address => self.decoded(address, open.bytes.clone()),
            _ => self.decoded(address, self.closed_bytes(address)?),
        }
    }

    /// The bytes of a collection that is not open.
    fn closed_bytes(&self, address: u64) -> Result<Vec<u8>> {
        match self.medium.staged(address) {
            Some(bytes) => Ok(bytes),
            None => self.read_bytes(address, &[]),
        }
    }

    /// Takes note that a collection that the file has is about to be made anew, or to go. Whoever reads it
    /// has asked whether it has [changed](Self::changed), and so waited for what was written before.
    fn note_renewed(&self, address: u64) {
        self.renewed.add(address);
        self.kept().drop_one(address);
    }

    fn writing(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn context(&self) -> Context {
        Context::new(self.medium.sizes())
    }

    /// Adds an object; tells its collection and index.
    pub(crate) fn add(&self, object: &[u8]) -> Result<(u64, u32)> {
        let context = self.context();
        let need = global_heap::object_length(object.len(), &context);
        let mut writing = self.writing();
        if !writing.open.as_ref().is_some_and(|open| open.has_room(need)) {
            self.make_room(&mut writing, need)?;
        }
        writing.added += 1;
        let open = writing.open.as_mut().ok_or_else(lost)?;
        let added = open.add(object, &context);
        open.recent.live += 1;
        let address = open.address;
        drop(writing);
        // Whoever read the collection before does not know the object.
        self.kept().drop_one(address);
        Ok((address, added))
    }

    /// Lets the open collection have room for an object that takes `need` bytes: without objects that
    /// nobody needs, or another one.
    fn make_room(&self, writing: &mut Writing, need: usize) -> Result<()> {
        let done = self.readers.done();
        if let Some(open) = &mut writing.open
            && open.recent.is_worth(open.bytes.len())
        {
            open.compact(&open.recent.removable(done), &self.context())?;
            self.kept().drop_one(open.address);
            if open.has_room(need) {
                return Ok(());
            }
        }
        self.close(writing)?;
        self.free_empty(writing, done);
        writing.open = Some(self.open(writing, need, done)?);
        Ok(())
    }

    /// Gives back new collections to which no element refers.
    fn free_empty(&self, writing: &mut Writing, done: u64) {
        // A commit that is under way takes care of what is in them.
        if writing.committing {
            return;
        }
        let Writing { recent, roomy, empty, freed, .. } = writing;
        empty.retain(|address| {
            let Some(closed) = recent.get(address) else { return false };
            if !closed.recent.is_empty(done) {
                return true;
            }
            self.note_renewed(*address);
            self.medium.free_raw(*address, closed.size as u64);
            freed.insert(*address);
            recent.remove(address);
            roomy.remove(address);
            false
        });
    }

    /// A collection with room for an object that takes `need` bytes: one that has it, or a new one.
    fn open(&self, writing: &mut Writing, need: usize, done: u64) -> Result<Open> {
        let roomy = writing.roomy.iter().find(|&(_, &room)| room >= need);
        if let Some(address) = roomy.map(|(&address, _)| address) {
            writing.roomy.remove(&address);
            if let Ok(open) = self.reopen(writing, address, need, done) {
                return Ok(open);
            }
        }
        let context = self.context();
        let size = Collection::header_length(&context).saturating_add(need).max(writing.usual());
        let address = self.medium.allocate_for(DataKind::GlobalHeap, size as u64)?;
        writing.freed.remove(&address);
        let mut bytes = Vec::with_capacity(size);
        global_heap::put_header(size as u64, &context, &mut bytes);
        let used = bytes.len();
        global_heap::put_free(size - used, &context, &mut bytes);
        let recent = Recent::new(1, true);
        Ok(Open { address, bytes, used, next: 1, committed: false, dirty: true, recent })
    }

    /// A collection of the file, its objects put together so that all free space is behind them, if that
    /// gives the room that is needed.
    fn reopen(&self, writing: &mut Writing, address: u64, need: usize, done: u64) -> Result<Open> {
        let bytes = self.closed_bytes(address)?;
        let known = writing.recent.get(&address);
        let gone = known.map(|closed| closed.recent.removable(done)).unwrap_or_default();
        let mut open = Open::without(address, &bytes, &gone, &self.context().at(address))?;
        if !open.has_room(need) {
            return Err(lost());
        }
        if let Some(Closed { mut recent, .. }) = writing.recent.remove(&address) {
            recent.remove(&gone);
            open.committed = !recent.whole;
            open.recent = recent;
        }
        Ok(open)
    }

    /// Writes the open collection: straight to the file if nothing committed can know of it.
    fn close(&self, writing: &mut Writing) -> Result<()> {
        let Some(open) = writing.open.take() else { return Ok(()) };
        self.note_renewed(open.address);
        if open.dirty && open.committed {
            self.medium.stage(open.address, open.bytes.clone());
        } else if open.dirty {
            let write = WriteOp { offset: open.address, bytes: &open.bytes };
            if let Err(error) = self.medium.put(&mut [write]) {
                writing.open = Some(open);
                return Err(error);
            }
        }
        let (size, free) = (open.bytes.len(), open.bytes.len() - open.used);
        writing.remember(open.address, free, open.next);
        writing.note_closed(open.address, Closed { recent: open.recent, size, free });
        Ok(())
    }

    /// Takes objects out of a collection.
    fn take_out(&self, writing: &mut Writing, address: u64, ids: &[Gone]) -> Result<()> {
        if writing.freed.contains(&address) {
            return Ok(());
        }
        let is_open = writing.open.as_ref().is_some_and(|open| open.address == address);
        let bytes = match &writing.open {
            Some(open) if is_open => open.bytes.clone(),
            _ => self.closed_bytes(address)?,
        };
        let gone: Vec<u16> = ids.iter().filter_map(|gone| gone.index.try_into().ok()).collect();
        let mut left = Open::without(address, &bytes, &gone, &self.context().at(address))?;
        self.note_renewed(address);
        writing.roomy.remove(&address);
        if left.used == Collection::header_length(&self.context()) {
            if is_open {
                writing.open = None;
            }
            self.medium.free_raw(address, left.bytes.len() as u64);
            writing.freed.insert(address);
            return Ok(());
        }
        if is_open {
            left.committed = writing.open.as_ref().is_some_and(|open| open.committed);
            writing.open = Some(left);
            return Ok(());
        }
        writing.remember(address, left.bytes.len() - left.used, left.next);
        self.medium.stage(address, left.bytes);
        Ok(())
    }
}

impl Writing {
    /// Bytes of a new collection, unless one object needs more.
    fn usual(&self) -> usize {
        if self.added > 64 { LARGE_COLLECTION } else { MIN_COLLECTION }
    }

    /// Takes note that no element refers to objects of one collection any more: those that came since the
    /// last commit make room at once, unless one is under way.
    fn give_back(&mut self, found: &[Found], moment: u64, context: &Context) {
        let address = found[0].address;
        if self.committing {
            return self.queue(found.iter().map(|found| found.gone(moment)));
        }
        let Some(recent) = recent_in(&mut self.open, &mut self.recent, address) else {
            self.queued.extend(found.iter().map(|found| found.gone(moment)));
            return;
        };
        for found in found {
            match found.index >= recent.from {
                true => {
                    let bytes = global_heap::object_length(found.bytes, context);
                    recent.give_back(found.index, moment, bytes);
                }
                false => self.queued.push(found.gone(moment)),
            }
        }
        if let Some(closed) = self.recent.remove(&address) {
            self.note_closed(address, closed);
        }
    }

    /// Lets objects leave with a commit.
    fn queue(&mut self, gone: impl Iterator<Item = Gone>) {
        for gone in gone {
            if let Some(recent) = recent_in(&mut self.open, &mut self.recent, gone.address) {
                recent.queue(gone.index);
            }
            self.queued.push(gone);
        }
    }

    /// Takes note of what came since the last commit to a collection that is not open.
    fn note_closed(&mut self, address: u64, closed: Closed) {
        if closed.recent.whole && closed.recent.live == 0 {
            self.empty.push(address);
        } else if closed.recent.is_worth(closed.size) {
            self.remember(address, closed.free + closed.recent.room, closed.recent.from);
        }
        self.recent.insert(address, closed);
    }

    /// Adds what makes room at once to those that leave with a commit.
    fn take_dead(&mut self, leaving: &mut Vec<Gone>) {
        let open = self.open.iter_mut().map(|open| (open.address, &mut open.recent));
        let closed = self.recent.iter_mut().map(|(&at, closed)| (at, &mut closed.recent));
        for (address, recent) in open.chain(closed) {
            let dead = recent.take();
            leaving.extend(dead.map(|(index, moment)| Gone { address, index, moment }));
        }
    }

    /// Remembers that a collection has room.
    fn remember(&mut self, address: u64, room: usize, next: u32) {
        if room < LEAST_ROOM || next > u32::from(MAX_INDEX) {
            return;
        }
        self.roomy.insert(address, room);
        if self.roomy.len() > ROOMY
            && let Some(least) = self.roomy.iter().min_by_key(|&(_, &room)| room).map(|(&a, _)| a)
        {
            self.roomy.remove(&least);
        }
    }
}

/// What came to a collection since the last commit, if anything did.
fn recent_in<'w>(
    open: &'w mut Option<Open>,
    closed: &'w mut BTreeMap<u64, Closed>,
    address: u64,
) -> Option<&'w mut Recent> {
    match open {
        Some(open) if open.address == address => Some(&mut open.recent),
        _ => closed.get_mut(&address).map(|closed| &mut closed.recent),
    }
}

impl Found {
    fn gone(&self, moment: u64) -> Gone {
        Gone { address: self.address, index: self.index, moment }
    }
}

/// Where heaped objects go.
struct Sink<'a> {
    heap: &'a GlobalHeap,
}

impl ObjectSink for Sink<'_> {
    type Error = Error;

    fn put(&mut self, object: &[u8], count: u32, reference: &mut [u8]) -> Result<()> {
        let (address, index) = self.heap.add(object)?;
        let width = usize::from(self.heap.medium.sizes().offset);
        let mut bytes = Vec::with_capacity(reference.len());
        bytes.put_u32(count);
        bytes.put_uint(address, width);
        bytes.put_u32(index);
        if bytes.len() != reference.len() {
            return Err(Error::Invalid(format!(
                "variable-length references of {} byte(s), where this file has {}",
                reference.len(),
                bytes.len()
            )));
        }
        reference.copy_from_slice(&bytes);
        Ok(())
    }
}

/// The length of the object that a reference leads to.
fn length(varlen: &VarLen, reference: &[u8]) -> usize {
    let count = reference.get(..4).and_then(|count| count.try_into().ok());
    let count = u32::from_le_bytes(count.unwrap_or_default()) as usize;
    count.saturating_mul(varlen.base.size())
}

/// Lists the objects that elements refer to, and those that these refer to.
fn collect(
    heap: &GlobalHeap,
    datatype: &Datatype,
    elements: &mut [u8],
    width: u8,
    found: &mut Vec<Found>,
) -> Result<()> {
    heaped::for_each_reference(datatype, elements, &mut |varlen, reference| -> Result<()> {
        let id = reference.get(4..).unwrap_or_default();
        let (address, index) = parse(id, width)?;
        if address == 0 || address == UNDEFINED {
            return Ok(());
        }
        found.push(Found { address, index, bytes: length(varlen, reference) });
        if varlen.base.has_varlen() {
            // What cannot be read cannot be given back either.
            if let Ok(mut object) = heap.object(id) {
                let size = varlen.base.size().max(1);
                let whole = object.len() / size * size;
                collect(heap, &varlen.base, &mut object[..whole], width, found)?;
            }
        }
        Ok(())
    })
}

impl Kept {
    /// Forgets one collection.
    fn drop_one(&mut self, address: u64) {
        self.changes.add(address);
        if let Some(gone) = self.collections.remove(&address) {
            self.bytes -= gone.footprint();
            self.order.retain(|&other| other != address);
        }
    }
}

pub(super) fn lost() -> Error {
    Error::Internal("a collection of the global heap that was open".into())
}
