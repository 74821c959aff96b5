//! The global heap as a living thing: finds the objects behind the variable-length references of a
//! file, and keeps new ones (`write`).
//!
//! Collections that were read are kept for a while, within a limit of bytes, because the next piece
//! of a dataset mostly uses the same ones. Collections that lie close together are read in one
//! call.

mod found;
mod leaving;
mod moving;
mod open;
mod readers;
mod recent;
mod renewals;
mod write;

pub use moving::{Copies, MovePlan, Placed};
pub use readers::Reading;

use pumice_bytes::{DecodeError, Reader};
use pumice_format::global_heap::{Collection, MIN_COLLECTION};
use pumice_format::{Context, UNDEFINED};
use pumice_medium::Medium;
use pumice_medium::MetadataIo;
use pumice_medium::zeroed;
use pumice_medium::{Error, Result};
use pumice_store::ReadOp;
use pumice_types::heaped::{self, ObjectSource};
use pumice_types::{Datatype, Heaped};
use readers::Readers;
use renewals::{Counts, Renewals};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const STRUCTURE: &str = "variable-length reference";
/// Bytes of collections that are kept at most.
const KEPT: usize = 8 << 20;
/// Collections are read together if no more than this lies between them.
const GAP: u64 = 32 << 10;
/// The most that is read in one go on a guess.
const PIECE: u64 = 1 << 20;
/// Bytes of elements whose collections are looked up at once.
const BATCH: usize = 256 << 10;
/// An object may be referred to more than once: how many bytes a byte of the file, or of references,
/// may become before that counts as damage.
const MULTIPLE: u64 = 64;

/// The global heap of a file.
pub struct GlobalHeap {
    medium: Arc<Medium>,
    kept: Mutex<Kept>,
    writing: Mutex<write::Writing>,
    readers: Readers,
    /// Counts rewrites of collections in the file: a read of one during a rewrite may mix old and
    /// new bytes.
    renewed: Renewals,
    /// Addresses and lengths of all collections that were read, if they are watched.
    seen: Mutex<Option<BTreeMap<u64, u64>>>,
}

#[derive(Default)]
struct Kept {
    collections: HashMap<u64, Arc<Loaded>>,
    /// Oldest first.
    order: VecDeque<u64>,
    bytes: usize,
    /// Counts how often each collection changed: what was read before a change is not kept after
    /// it.
    changes: Counts,
}

/// A collection in memory.
struct Loaded {
    bytes: Vec<u8>,
    objects: Collection,
}

impl GlobalHeap {
    /// The heap of a file.
    pub fn new(medium: Arc<Medium>) -> Self {
        let (kept, writing, readers, renewed, seen) = Default::default();
        Self { medium, kept, writing, readers, renewed, seen }
    }

    /// A guard to hold from reading elements until their references are followed, or their objects
    /// are given back.
    pub fn reading(&self) -> Reading<'_> {
        self.readers.begin()
    }

    /// A datatype with references as this file has them: their length depends on that of addresses.
    pub fn with_own_references(&self, datatype: Datatype) -> Datatype {
        match datatype.has_varlen() {
            true => datatype.with_references(u32::from(self.medium.sizes().offset) + 8),
            false => datatype,
        }
    }

    /// Notes every collection that is read from now on.
    pub fn watch(&self) {
        self.seen().get_or_insert_default();
    }

    /// Places and lengths of the collections that were read since they are [watched](Self::watch).
    pub fn watched(&self) -> Vec<(u64, u64)> {
        self.seen().iter().flatten().map(|(&address, &length)| (address, length)).collect()
    }

    fn seen(&self) -> MutexGuard<'_, Option<BTreeMap<u64, u64>>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows all references in `elements`, which are as the file has them.
    pub fn load(&self, datatype: &Datatype, mut elements: Vec<u8>) -> Result<Heaped> {
        let heap = self.load_part(datatype, &mut elements)?;
        Ok(Heaped { elements, heap })
    }

    /// Follows all references in `elements`, which then lead into the heap that is returned.
    pub fn load_part(&self, datatype: &Datatype, elements: &mut [u8]) -> Result<Vec<u8>> {
        let _reading = self.reading();
        let mut heap = Vec::new();
        let mut objects = Objects::new(self, elements.len())?;
        let size = datatype.size().max(1);
        for batch in elements.chunks_mut((BATCH / size).max(1) * size) {
            objects.expect(datatype, batch)?;
            heaped::load(datatype, batch, &mut heap, &mut objects)?;
        }
        Ok(heap)
    }

    /// The object that the global heap id `id` (address and index) names.
    pub fn object(&self, id: &[u8]) -> Result<Vec<u8>> {
        let (address, index) = parse(id, self.medium.sizes().offset)?;
        self.object_at(address, index)
    }

    /// The object of an index in the collection at `address`.
    pub fn object_at(&self, address: u64, index: u32) -> Result<Vec<u8>> {
        let _reading = self.reading();
        let known = self.kept().collections.get(&address).cloned();
        let loaded = match known {
            Some(loaded) => loaded,
            None => self.read(address)?,
        };
        Ok(loaded.object(address, index)?.to_vec())
    }

    /// Forgets collections that were read, because another program may have changed them.
    pub fn forget_read(&self) {
        *self.kept() = Kept::default();
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a collection as it was when it had changed so often, unless it has again.
    fn keep(&self, address: u64, loaded: Loaded, changes: u64) -> Arc<Loaded> {
        if let Some(seen) = &mut *self.seen() {
            seen.insert(address, loaded.bytes.len() as u64);
        }
        let loaded = Arc::new(loaded);
        let size = loaded.footprint();
        if size > KEPT {
            return loaded;
        }
        let mut kept = self.kept();
        if kept.changes.of(address) != changes {
            return loaded;
        }
        while kept.bytes + size > KEPT {
            let Some(oldest) = kept.order.pop_front() else { break };
            if let Some(gone) = kept.collections.remove(&oldest) {
                kept.bytes -= gone.footprint();
            }
        }
        if kept.collections.insert(address, loaded.clone()).is_none() {
            kept.order.push_back(address);
            kept.bytes += size;
        }
        loaded
    }

    /// The collection at `address`. It is kept if it is the same in the file.
    fn read(&self, address: u64) -> Result<Arc<Loaded>> {
        self.read_from(address, &[], self.renewed.of(address))
    }

    /// Reads the collection at `address`. `start` may have its first bytes, as of the rewrite with
    /// the number `renewed`.
    fn read_from(&self, address: u64, start: &[u8], renewed: u64) -> Result<Arc<Loaded>> {
        let changes = self.kept().changes.of(address);
        if let Some(bytes) = self.changed(address) {
            return self.decoded(address, bytes).map(Arc::new);
        }
        let loaded = self.read_stored(address, start);
        if self.renewed.of(address) != renewed {
            // Once more, while nobody changes it.
            return self.read_alone(address).map(Arc::new);
        }
        let loaded = loaded?;
        self.note_room(address, &loaded);
        Ok(self.keep(address, loaded, changes))
    }

    fn decoded(&self, address: u64, bytes: Vec<u8>) -> Result<Loaded> {
        let objects = Collection::decode(&bytes, &Context::new(self.medium.sizes()).at(address))?;
        Ok(Loaded { bytes, objects })
    }

    fn read_stored(&self, address: u64, start: &[u8]) -> Result<Loaded> {
        self.decoded(address, self.read_bytes(address, start)?)
    }

    /// The bytes of a collection as the file has them.
    fn read_bytes(&self, address: u64, start: &[u8]) -> Result<Vec<u8>> {
        let context = Context::new(self.medium.sizes()).at(address);
        let room = self.medium.room(address)?;
        let mut known = start.to_vec();
        if known.len() < Collection::header_length(&context) {
            let guess = room.min(MIN_COLLECTION as u64) as usize;
            known = vec![0; guess];
            self.medium.fetch(&mut [ReadOp { offset: address, buffer: &mut known }])?;
        }
        let size = Collection::size(&known, &context)?;
        if size > room {
            let expected = format!("a collection of at most {room} byte(s)");
            return Err(DecodeError::new("global heap collection", address, expected, size).into());
        }
        let mut bytes = zeroed(usize::try_from(size).unwrap_or(usize::MAX))?;
        let count = known.len().min(bytes.len());
        let (head, rest) = bytes.split_at_mut(count);
        head.copy_from_slice(&known[..count]);
        if !rest.is_empty() {
            self.medium.fetch(&mut [ReadOp { offset: address + count as u64, buffer: rest }])?;
        }
        Ok(bytes)
    }

    /// Reads the collections at all of `addresses`, which ascend, into `found`.
    fn read_all(&self, addresses: &[u64], found: &mut HashMap<u64, Arc<Loaded>>) -> Result<()> {
        // Before it is asked which have changed, and so before anything is read.
        let renewed = self.renewed.now();
        let (changed, addresses): (Vec<u64>, Vec<u64>) =
            addresses.iter().partition(|&&address| self.changed(address).is_some());
        for address in changed {
            found.insert(address, self.read(address)?);
        }
        let mut rest = addresses.as_slice();
        while let Some(&first) = rest.first() {
            let near = |pair: &[u64]| pair[1] - pair[0] <= GAP && pair[1] - first <= PIECE;
            let count = 1 + rest.windows(2).take_while(|pair| near(pair)).count();
            let (group, later) = rest.split_at(count);
            rest = later;
            let last = group.last().copied().unwrap_or(first);
            let end = first.saturating_add(self.medium.room(first)?);
            let end = end.min(last.saturating_add(MIN_COLLECTION as u64));
            let mut bytes = vec![0; end.saturating_sub(first) as usize];
            self.medium.fetch(&mut [ReadOp { offset: first, buffer: &mut bytes }])?;
            for (&address, next) in group.iter().zip(group[1..].iter().chain([&end])) {
                let from = (address - first) as usize;
                let upto = (next - first) as usize;
                let start = bytes.get(from..upto).unwrap_or_default();
                found.insert(address, self.read_from(address, start, renewed.of(address))?);
            }
        }
        Ok(())
    }
}

impl Loaded {
    fn footprint(&self) -> usize {
        self.bytes.capacity() + self.objects.heap_bytes() + size_of::<Self>()
    }

    fn object(&self, address: u64, index: u32) -> Result<&[u8]> {
        let range = u16::try_from(index).ok().and_then(|index| self.objects.object(index));
        range.and_then(|range| self.bytes.get(range)).ok_or_else(|| {
            let expected = format!("an object of index {index} among {}", self.objects.len());
            DecodeError::new("global heap collection", address, expected, "none").into()
        })
    }
}

/// Address and index of a global heap id.
fn parse(id: &[u8], offset: u8) -> Result<(u64, u32), DecodeError> {
    let mut reader = Reader::new(STRUCTURE, 0, id);
    Ok((reader.offset(usize::from(offset))?, reader.u32()?))
}

/// The objects that one load needs.
struct Objects<'a> {
    heap: &'a GlobalHeap,
    /// The collections of the current batch.
    found: HashMap<u64, Arc<Loaded>>,
    /// The one used last.
    last: Option<(u64, Arc<Loaded>)>,
    /// The bytes that are still believable.
    budget: u64,
    /// Positions of copied objects that are not short, by reference: unwritten cells all refer to
    /// the fill value's object. Also the smallest count of these, and the length of the object that
    /// was found last.
    placed: HashMap<Vec<u8>, u64>,
    least: u32,
    length: u64,
}

/// Objects of at least this length are copied once, however often they are referred to.
const NOT_SHORT: u64 = 256;

impl<'a> Objects<'a> {
    fn new(heap: &'a GlobalHeap, references: usize) -> Result<Self> {
        let all = heap.medium.volume()?.saturating_add(references as u64);
        let budget = all.saturating_mul(MULTIPLE);
        let (found, placed) = Default::default();
        Ok(Self { heap, found, last: None, budget, placed, least: u32::MAX, length: 0 })
    }

    /// Brings the collections that a batch of elements refers to.
    fn expect(&mut self, datatype: &Datatype, batch: &mut [u8]) -> Result<()> {
        let width = self.heap.medium.sizes().offset;
        let mut addresses: Vec<u64> = Vec::new();
        heaped::for_each_reference(datatype, batch, &mut |_, reference| -> Result<()> {
            let (address, _) = parse(reference.get(4..).unwrap_or_default(), width)?;
            if address != 0 && address != UNDEFINED && addresses.last() != Some(&address) {
                addresses.push(address);
            }
            Ok(())
        })?;
        addresses.sort_unstable();
        addresses.dedup();
        // Collections that are kept stay here even if they are dropped meanwhile.
        let mut found: HashMap<u64, Arc<Loaded>> = HashMap::new();
        {
            let kept = self.heap.kept();
            addresses.retain(|address| {
                let known = self.found.get(address).or_else(|| kept.collections.get(address));
                known.is_none_or(|loaded| found.insert(*address, loaded.clone()).is_some())
            });
        }
        // An address that leads nowhere is an error of the element that has it.
        addresses.retain(|&address| self.heap.medium.reaches(address, 1).unwrap_or(false));
        self.heap.read_all(&addresses, &mut found)?;
        self.found = found;
        Ok(())
    }

    fn collection(&mut self, address: u64) -> Result<&Arc<Loaded>> {
        if self.last.as_ref().is_none_or(|(last, _)| *last != address) {
            let known = self.found.get(&address).cloned();
            let known = known.or_else(|| self.heap.kept().collections.get(&address).cloned());
            let loaded = match known {
                Some(loaded) => loaded,
                None => self.heap.read(address)?,
            };
            self.last = Some((address, loaded));
        }
        let missing = || Error::Internal("a collection that was just read".into());
        self.last.as_ref().map(|(_, loaded)| loaded).ok_or_else(missing)
    }
}

fn count_of(reference: &[u8]) -> u32 {
    reference.first_chunk().map_or(0, |count| u32::from_le_bytes(*count))
}

impl ObjectSource for Objects<'_> {
    type Error = Error;

    fn place(&mut self, reference: &[u8]) -> Option<u64> {
        let may_be = count_of(reference) >= self.least;
        may_be.then(|| self.placed.get(reference).copied()).flatten()
    }

    fn put(&mut self, reference: &[u8], place: u64) {
        if self.length >= NOT_SHORT {
            self.least = self.least.min(count_of(reference));
            self.placed.insert(reference.to_vec(), place);
        }
    }

    fn object(&mut self, reference: &[u8], length: u64) -> Result<Option<&[u8]>> {
        let width = self.heap.medium.sizes().offset;
        let (address, index) = parse(reference.get(4..).unwrap_or_default(), width)?;
        // As in libhdf5, address 0 is null whatever the count says.
        if address == 0 || (address == UNDEFINED && length == 0) {
            return Ok(None);
        }
        if length == 0 {
            return Ok(Some(&[]));
        }
        self.budget = self.budget.checked_sub(length).ok_or_else(|| {
            let expected = "objects that fit into the file";
            Error::from(DecodeError::new(STRUCTURE, address, expected, "far more"))
        })?;
        self.length = length;
        let object = self.collection(address)?.object(address, index)?;
        let wanted = usize::try_from(length).ok().and_then(|length| object.get(..length));
        wanted.map(Some).ok_or_else(|| {
            let expected = format!("an object of {length} byte(s)");
            DecodeError::new(STRUCTURE, address, expected, object.len()).into()
        })
    }
}
