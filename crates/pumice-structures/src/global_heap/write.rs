//! Writing to the global heap: objects come and go, collections are made, filled, reused and freed.
//!
//! New objects go to one open collection, which is in memory until it is full or a commit stages
//! it. Objects that elements no longer refer to are *queued*: they leave their collections in the
//! commit whose chunks no longer refer to them, so that committed elements never refer to nothing.
//! Their room is used again after that, or in that very commit (`leaving.rs`); a collection without
//! objects is given back. Objects that are new since the last commit leave without one
//! (`recent.rs`), and no object leaves while a reader may have a reference to it (`readers.rs`).

use super::found::{Found, Sink, collect};
use super::leaving::Gone;
use super::moving::MovePlan;
use super::open::Open;
use super::recent::Recent;
use super::{GlobalHeap, Kept, Loaded};
use pumice_bytes::Writer as _;
use pumice_format::Context;
use pumice_format::global_heap::{self, Collection, MAX_INDEX, MIN_COLLECTION};
use pumice_medium::{DataKind, MetadataIo};
use pumice_medium::{Error, Result};
use pumice_store::WriteOp;
use pumice_types::Datatype;
use pumice_types::heaped;
use std::collections::{BTreeMap, HashSet};
use std::sync::{MutexGuard, PoisonError};

/// Bytes of a collection when many objects are written.
pub(super) const LARGE_COLLECTION: usize = 64 << 10;
/// The most collections with room that are remembered.
const ROOMY: usize = 64;
/// Free room of fewer bytes is not remembered.
const LEAST_ROOM: usize = 64;

/// The state of writing.
#[derive(Default)]
pub(super) struct Writing {
    pub(super) open: Option<Open>,
    /// Collections with room for more, and how many bytes.
    pub(super) roomy: BTreeMap<u64, usize>,
    /// New objects in collections that are not open.
    pub(super) recent: BTreeMap<u64, Closed>,
    /// New collections to whose objects no element refers.
    pub(super) empty: Vec<u64>,
    /// Whether a commit is under way, which may have written references to any object.
    pub(super) committing: bool,
    /// Whether a commit is still writing: its chunks may refer to objects that were given back
    /// meanwhile.
    pub(super) fixing: bool,
    /// Objects to which nothing refers once the present chunks are written.
    pub(super) queued: Vec<Gone>,
    /// New objects that stay until a commit: by collection and index, the moment when they were
    /// given back.
    pub(super) staying: BTreeMap<(u64, u32), u64>,
    /// Objects that the commit under way removes.
    pub(super) leaving: Vec<Gone>,
    /// Addresses of collections that are given back: a reader with an old reference would find
    /// another object there.
    pub(super) freed: HashSet<u64>,
    /// Bytes of collections that objects were taken out of since the last commit.
    pub(super) early: usize,
    /// The plan of moving objects, while they are moved.
    pub(super) moving: Option<MovePlan>,
    /// The number of added objects, for the size of collections.
    added: usize,
}

/// A collection that was open since the last commit.
pub(super) struct Closed {
    pub(super) recent: Recent,
    pub(super) size: usize,
    /// Bytes that are free in it.
    pub(super) free: usize,
}

impl GlobalHeap {
    /// Stores everything that heaped elements refer to, and makes their references the file's.
    pub fn store(&self, datatype: &Datatype, elements: &mut [u8], heap: &[u8]) -> Result<()> {
        heaped::store(datatype, elements, heap, &mut Sink::new(self)?)
    }

    /// Stores an object and gives its id: address and index.
    pub fn insert(&self, object: &[u8]) -> Result<Vec<u8>> {
        let (address, index) = self.add(object)?;
        let mut id = Vec::new();
        id.put_uint(address, usize::from(self.medium.sizes().offset));
        id.put_u32(index);
        Ok(id)
    }

    /// Gives back the objects that elements in the file's form refer to. Only holders of
    /// [`reading`](Self::reading) may have copies of the elements. The room of new objects is free
    /// at once. Returns whether there were other objects.
    pub fn discard(&self, datatype: &Datatype, mut elements: Vec<u8>) -> Result<bool> {
        let mut found = Vec::new();
        collect(self, datatype, &mut elements, self.medium.sizes().offset, &mut found)?;
        let mut writing = self.writing();
        let moment = self.readers.next();
        let queued = writing.queued.len();
        for same in found.chunk_by(|one, other| one.address == other.address) {
            writing.give_back(same, moment, &self.context());
        }
        Ok(writing.queued.len() > queued)
    }

    /// Whether the next new object needs a new collection, as far as is known.
    pub fn knows_no_room(&self) -> bool {
        let writing = self.writing();
        writing.open.is_none() && writing.roomy.is_empty()
    }

    /// Lets the next objects use room of objects that were given back, if the last one made a new
    /// collection necessary. Returns the argument for [`return_to`](Self::return_to).
    pub fn leave_new(&self) -> Result<Option<Vec<(u64, usize)>>> {
        let mut writing = self.writing();
        let new = writing.open.as_ref().is_some_and(|open| self.medium.is_fresh(open.address));
        if !new || writing.queued.is_empty() {
            return Ok(None);
        }
        self.close(&mut writing)?;
        let roomy = std::mem::take(&mut writing.roomy).into_iter();
        let (new, old): (Vec<_>, Vec<_>) =
            roomy.partition(|&(address, _)| self.medium.is_fresh(address));
        writing.roomy.extend(old);
        Ok(Some(new))
    }

    /// Lets objects use the collections again that [`leave_new`](Self::leave_new) put aside, as far
    /// as they exist.
    pub fn return_to(&self, left: Vec<(u64, usize)>) {
        let mut writing = self.writing();
        for (address, room) in left {
            if writing.recent.contains_key(&address) {
                writing.roomy.entry(address).or_insert(room);
            }
        }
    }

    /// Gives back an object to which no reader has a reference.
    pub fn discard_object(&self, address: u64, index: u32) {
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
        if writing.moving.is_some() {
            return;
        }
        // Readers do not wait for that: then the room stays unknown.
        if writing.freed.contains(&address) || self.medium.is_kept(address, length) != Some(true) {
            return;
        }
        // More is known of the collection that was open just now.
        let known = writing.recent.contains_key(&address);
        if !known && writing.open.as_ref().is_none_or(|open| open.address != address) {
            writing.remember(address, room, u32::from(last) + 1);
        }
    }

    /// The bytes of a collection that differs from the file.
    pub(super) fn changed(&self, address: u64) -> Option<Vec<u8>> {
        let writing = self.writing();
        match &writing.open {
            Some(open) if open.address == address => Some(open.bytes.clone()),
            _ => self.medium.staged(address),
        }
    }

    /// The present collection; the caller keeps writers out.
    pub(super) fn read_alone(&self, address: u64) -> Result<Loaded> {
        let writing = self.writing();
        match &writing.open {
            Some(open) if open.address == address => self.decoded(address, open.bytes.clone()),
            _ => self.decoded(address, self.closed_bytes(address)?),
        }
    }

    /// The bytes of a collection that is not open.
    pub(super) fn closed_bytes(&self, address: u64) -> Result<Vec<u8>> {
        match self.medium.staged(address) {
            Some(bytes) => Ok(bytes),
            None => self.read_bytes(address, &[]),
        }
    }

    /// Notes that a collection in the file is about to be rewritten or freed. A reader has asked
    /// whether it has [changed](Self::changed), and so waited for earlier writes.
    pub(super) fn note_renewed(&self, address: u64) {
        self.renewed.add(address);
        self.kept().drop_one(address);
    }

    pub(super) fn writing(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn context(&self) -> Context {
        Context::new(self.medium.sizes())
    }

    /// Adds an object; tells its collection and index.
    pub fn add(&self, object: &[u8]) -> Result<(u64, u32)> {
        self.refuse_in_swmr()?;
        self.add_to(&mut self.writing(), object)
    }

    pub(super) fn refuse_in_swmr(&self) -> Result<()> {
        self.medium.refuse_in_swmr("no value of variable length can be written")
    }

    /// Adds an object, for which SWMR was asked already. What readers keep was dropped when the collection was opened, and
    /// nobody keeps an open one.
    pub(super) fn add_to(&self, writing: &mut Writing, object: &[u8]) -> Result<(u64, u32)> {
        let context = self.context();
        let need = global_heap::object_length(object.len(), &context);
        if !writing.open.as_ref().is_some_and(|open| open.has_room(need)) {
            self.make_room(writing, need)?;
        }
        writing.added += 1;
        let open = writing.open.as_mut().ok_or_else(lost)?;
        let added = open.add(object, need, &context);
        open.recent.live += 1;
        Ok((open.address, added))
    }

    /// Makes room for an object of `need` bytes in the open collection: removes unneeded objects,
    /// or opens another collection.
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
        let open = self.open(writing, need, done)?;
        // A reader of the old collection does not know the objects to come.
        self.kept().drop_one(open.address);
        writing.open = Some(open);
        Ok(())
    }

    /// A collection with room for an object that takes `need` bytes: one that has it, or a new one.
    fn open(&self, writing: &mut Writing, need: usize, done: u64) -> Result<Open> {
        if let Some(open) = self.open_roomy(writing, need, done) {
            return Ok(open);
        }
        if !writing.queued.is_empty() {
            self.take_out_early(writing, done);
            if let Some(open) = self.open_roomy(writing, need, done) {
                return Ok(open);
            }
        }
        let context = self.context();
        let size = Collection::header_length(&context).saturating_add(need).max(writing.usual());
        let address = match writing.moving {
            Some(_) => self.medium.allocate_free(DataKind::GlobalHeap, size as u64)?,
            None => self.medium.allocate_staged(DataKind::GlobalHeap, size as u64)?,
        };
        let committed = !self.medium.is_fresh(address);
        writing.freed.remove(&address);
        let mut bytes = Vec::with_capacity(size);
        global_heap::put_header(size as u64, &context, &mut bytes);
        let used = bytes.len();
        global_heap::put_free(size - used, &context, &mut bytes);
        let recent = Recent::new(1, true);
        Ok(Open { address, bytes, used, next: 1, committed, dirty: true, recent })
    }

    /// A collection that is known to have the room.
    fn open_roomy(&self, writing: &mut Writing, need: usize, done: u64) -> Option<Open> {
        let roomy = writing.roomy.iter().find(|&(_, &room)| room >= need);
        let address = roomy.map(|(&address, _)| address)?;
        writing.roomy.remove(&address);
        self.reopen(writing, address, need, done).ok()
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
            open.next = open.next.max(recent.from);
            open.committed = !recent.whole || !self.medium.is_fresh(address);
            open.recent = recent;
        }
        Ok(open)
    }

    /// Writes the open collection; directly to the file if nothing committed can refer to it.
    pub(super) fn close(&self, writing: &mut Writing) -> Result<()> {
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
}

impl Writing {
    /// Bytes of a new collection, unless one object needs more.
    fn usual(&self) -> usize {
        let usual = if self.added > 64 { LARGE_COLLECTION } else { MIN_COLLECTION };
        self.moving.map_or(usual, |plan| plan.size)
    }

    /// Notes that no element refers to these objects of one collection. New objects make room at
    /// once, unless a commit is under way.
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

    /// Queues objects to leave with a commit.
    fn queue(&mut self, gone: impl Iterator<Item = Gone>) {
        for gone in gone {
            if let Some(recent) = recent_in(&mut self.open, &mut self.recent, gone.address) {
                recent.queue(gone.index);
            }
            self.queued.push(gone);
        }
    }

    /// Notes new objects in a collection that is not open.
    fn note_closed(&mut self, address: u64, closed: Closed) {
        if closed.recent.whole && closed.recent.live == 0 {
            self.empty.push(address);
        } else if closed.recent.is_worth(closed.size) {
            self.remember(address, closed.free + closed.recent.room, closed.recent.from);
        }
        self.recent.insert(address, closed);
    }

    /// Remembers that a collection has room.
    pub(super) fn remember(&mut self, address: u64, room: usize, next: u32) {
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

/// The new objects of a collection, if it has any.
pub(super) fn recent_in<'w>(
    open: &'w mut Option<Open>,
    closed: &'w mut BTreeMap<u64, Closed>,
    address: u64,
) -> Option<&'w mut Recent> {
    match open {
        Some(open) if open.address == address => Some(&mut open.recent),
        _ => closed.get_mut(&address).map(|closed| &mut closed.recent),
    }
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
