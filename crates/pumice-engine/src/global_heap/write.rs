//! Writing to the global heap: objects come and go, collections are made, filled, reused and freed.
//!
//! New objects go to one open collection, which is in memory until it is full or a commit stages it.
//! Objects that elements no longer refer to are *queued*: they leave their collections in the commit
//! whose written chunks no longer refer to them, so that what is committed never refers to nothing.
//! The room that they leave is used again after that; a collection without objects is given back.

use super::{GlobalHeap, Kept, Loaded, parse};
use crate::metadata::MetadataIo;
use crate::{Error, Result};
use pumice_bytes::Writer as _;
use pumice_format::global_heap::{self, Collection, MAX_INDEX, MIN_COLLECTION};
use pumice_format::{Context, UNDEFINED};
use pumice_store::WriteOp;
use pumice_types::Datatype;
use pumice_types::heaped::{self, ObjectSink};
use std::collections::BTreeMap;
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
    /// Objects that nothing refers to once the chunks of now are written: collection and index.
    queued: Vec<(u64, u32)>,
    /// Those that the commit under way takes out.
    leaving: Vec<(u64, u32)>,
    /// How many objects were added, for the size of collections.
    added: usize,
}

/// The collection that objects are added to.
struct Open {
    address: u64,
    bytes: Vec<u8>,
    /// Where its free space begins.
    used: usize,
    /// The index of the next object.
    next: u32,
    /// Whether committed metadata may know of it.
    committed: bool,
    dirty: bool,
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
        let width = self.medium.sizes().offset;
        let mut ids = Vec::new();
        let mut elements = elements;
        collect(self, datatype, &mut elements, width, &mut ids)?;
        self.writing().queued.append(&mut ids);
        Ok(())
    }

    /// Whether the next new object needs a new collection as far as is known.
    pub(crate) fn knows_no_room(&self) -> bool {
        let writing = self.writing();
        writing.open.is_none() && writing.roomy.is_empty()
    }

    /// Notes that nothing refers any more to an object.
    pub(crate) fn discard_object(&self, address: u64, index: u32) {
        self.writing().queued.push((address, index));
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
        if writing.open.as_ref().is_none_or(|open| open.address != address) {
            writing.remember(address, room, u32::from(last) + 1);
        }
    }

    /// What was queued so far leaves with the commit that now begins: its chunks are yet to be
    /// written.
    pub(crate) fn begin_commit(&self) {
        let mut writing = self.writing();
        let mut queued = std::mem::take(&mut writing.queued);
        writing.leaving.append(&mut queued);
    }

    /// Hands changed collections to the commit.
    pub(crate) fn stage(&self) -> Result<()> {
        let mut writing = self.writing();
        let mut leaving = std::mem::take(&mut writing.leaving);
        leaving.sort_unstable();
        leaving.dedup();
        let mut rest = leaving.as_slice();
        while let Some(&(address, _)) = rest.first() {
            let count = rest.iter().take_while(|&&(other, _)| other == address).count();
            let (here, later) = rest.split_at(count);
            rest = later;
            // An object that is not there, in a damaged file, leaves nothing.
            let _ = self.take_out(&mut writing, address, here);
        }
        if let Some(open) = writing.open.as_mut().filter(|open| open.dirty) {
            self.medium.stage(open.address, open.bytes.clone());
            (open.committed, open.dirty) = (true, false);
        }
        Ok(())
    }

    /// The bytes of a collection that differs from what the file has.
    pub(super) fn changed(&self, address: u64) -> Option<Vec<u8>> {
        let writing = self.writing();
        match &writing.open {
            Some(open) if open.address == address => Some(open.bytes.clone()),
            _ => self.medium.staged(address),
        }
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
            self.close(&mut writing)?;
            writing.open = Some(self.open(&mut writing, need)?);
        }
        writing.added += 1;
        let open = writing.open.as_mut().ok_or_else(lost)?;
        let added = open.add(object, &context);
        let address = open.address;
        drop(writing);
        // Whoever read the collection before does not know the object.
        self.kept().drop_one(address);
        Ok((address, added))
    }

    /// A collection with room for an object that takes `need` bytes: one that has it, or a new one.
    fn open(&self, writing: &mut Writing, need: usize) -> Result<Open> {
        let roomy = writing.roomy.iter().find(|&(_, &room)| room >= need);
        if let Some(address) = roomy.map(|(&address, _)| address) {
            writing.roomy.remove(&address);
            if let Ok(open) = self
                .reopen(address)
                .and_then(|open| if open.has_room(need) { Ok(open) } else { Err(lost()) })
            {
                return Ok(open);
            }
        }
        let context = self.context();
        let usual = if writing.added > 64 { LARGE_COLLECTION } else { MIN_COLLECTION };
        let size = Collection::header_length(&context).saturating_add(need).max(usual);
        let address = self.medium.allocate_raw(size as u64)?;
        let mut bytes = Vec::with_capacity(size);
        global_heap::put_header(size as u64, &context, &mut bytes);
        let used = bytes.len();
        global_heap::put_free(size - used, &context, &mut bytes);
        Ok(Open { address, bytes, used, next: 1, committed: false, dirty: true })
    }

    /// A collection of the file, its objects put together so that all free space is behind them.
    fn reopen(&self, address: u64) -> Result<Open> {
        let bytes = match self.medium.staged(address) {
            Some(bytes) => bytes,
            None => self.read_stored(address, &[])?.bytes,
        };
        Open::without(address, &bytes, &[], &self.context().at(address))
    }

    /// Writes the open collection: straight to the file if nothing committed can know of it.
    fn close(&self, writing: &mut Writing) -> Result<()> {
        let Some(open) = writing.open.take() else { return Ok(()) };
        self.kept().drop_one(open.address);
        if open.dirty && open.committed {
            self.medium.stage(open.address, open.bytes.clone());
        } else if open.dirty {
            let write = WriteOp { offset: open.address, bytes: &open.bytes };
            if let Err(error) = self.medium.put(&mut [write]) {
                writing.open = Some(open);
                return Err(error);
            }
        }
        writing.remember(open.address, open.bytes.len() - open.used, open.next);
        Ok(())
    }

    /// Takes objects out of a collection.
    fn take_out(&self, writing: &mut Writing, address: u64, ids: &[(u64, u32)]) -> Result<()> {
        let is_open = writing.open.as_ref().is_some_and(|open| open.address == address);
        let bytes = match &writing.open {
            Some(open) if is_open => open.bytes.clone(),
            _ => match self.medium.staged(address) {
                Some(bytes) => bytes,
                None => self.read_stored(address, &[])?.bytes,
            },
        };
        let gone: Vec<u16> = ids.iter().filter_map(|&(_, index)| index.try_into().ok()).collect();
        let mut left = Open::without(address, &bytes, &gone, &self.context().at(address))?;
        self.kept().drop_one(address);
        writing.roomy.remove(&address);
        if left.used == Collection::header_length(&self.context()) {
            if is_open {
                writing.open = None;
            }
            self.medium.free_raw(address, left.bytes.len() as u64);
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

impl Open {
    /// A collection without some of its objects, the others put together at its beginning.
    fn without(address: u64, bytes: &[u8], gone: &[u16], context: &Context) -> Result<Self> {
        let objects = Collection::decode(bytes, context)?;
        let header = global_heap::object_length(0, context);
        let mut kept = Vec::with_capacity(bytes.len());
        global_heap::put_header(bytes.len() as u64, context, &mut kept);
        let mut last = 0;
        for (index, range) in objects.iter().filter(|(index, _)| !gone.contains(index)) {
            let length = global_heap::object_length(range.len(), context);
            let start = range.start.saturating_sub(header);
            let whole = bytes.get(start..).unwrap_or_default();
            let part = &whole[..length.min(whole.len())];
            kept.put_bytes(part);
            kept.put_zeros(length - part.len());
            last = last.max(index);
        }
        let used = kept.len();
        let free = bytes.len().checked_sub(used).ok_or_else(lost)?;
        global_heap::put_free(free, context, &mut kept);
        let next = u32::from(last) + 1;
        Ok(Self { address, bytes: kept, used, next, committed: true, dirty: true })
    }

    fn has_room(&self, need: usize) -> bool {
        self.next <= u32::from(MAX_INDEX) && self.bytes.len() - self.used >= need
    }

    /// Adds an object, for which there is room.
    fn add(&mut self, object: &[u8], context: &Context) -> u32 {
        let (index, size) = (self.next, self.bytes.len());
        let mut encoded = Vec::with_capacity(object.len() + 32);
        global_heap::put_object(index as u16, object, context, &mut encoded);
        let end = self.used + encoded.len();
        // Behind it, the header of what is free; the rest is not looked at.
        let header = global_heap::object_length(0, context);
        if size - end >= header {
            encoded.put_zeros(8);
            encoded.put_uint((size - end) as u64, usize::from(context.sizes.length));
        } else {
            encoded.put_zeros(size - end);
        }
        self.bytes[self.used..self.used + encoded.len()].copy_from_slice(&encoded);
        (self.used, self.dirty) = (end, true);
        self.next += 1;
        index
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

/// Lists the objects that elements refer to, and those that these refer to.
fn collect(
    heap: &GlobalHeap,
    datatype: &Datatype,
    elements: &mut [u8],
    width: u8,
    ids: &mut Vec<(u64, u32)>,
) -> Result<()> {
    heaped::for_each_reference(datatype, elements, &mut |varlen, reference| -> Result<()> {
        let id = reference.get(4..).unwrap_or_default();
        let (address, index) = parse(id, width)?;
        if address == 0 || address == UNDEFINED {
            return Ok(());
        }
        ids.push((address, index));
        if varlen.base.has_varlen() {
            // What cannot be read cannot be given back either.
            if let Ok(mut object) = heap.object(id) {
                let size = varlen.base.size().max(1);
                let whole = object.len() / size * size;
                collect(heap, &varlen.base, &mut object[..whole], width, ids)?;
            }
        }
        Ok(())
    })
}

impl Kept {
    /// Forgets one collection.
    fn drop_one(&mut self, address: u64) {
        if let Some(gone) = self.collections.remove(&address) {
            self.bytes -= gone.footprint();
            self.order.retain(|&other| other != address);
        }
    }
}

fn lost() -> Error {
    Error::Internal("a collection of the global heap that was open".into())
}
