//! Shared object header messages: equal messages of several object headers, stored once.
//!
//! A file that shares messages gets a table at creation, with an index for each kind of message.
//! [`messages`] goes through a complete file once: a message that two headers have goes to the
//! index's heap, and the headers name it by its heap id. An index is a list, never a B-tree;
//! messages that do not fit into the longest list stay in their headers.

use crate::extension::Extension;
use crate::file::File;
use crate::file_space::FileSpace;
use crate::object::Object;
use crate::{Error, Result, group};
use pumice_format::fractal_heap::HeapShape;
use pumice_format::messages::{LinkTarget, SharedLocation, kind};
use pumice_format::object_header::{
    MESSAGE_CONSTANT, MESSAGE_DONT_SHARE, MESSAGE_SHARED, ObjectHeader, RawMessage,
};
use pumice_format::shared_message_table::{
    SharedMessageIndex, SharedMessageRecord, SharedMessageTableInfo,
};
use pumice_format::{Context, UNDEFINED};
use pumice_medium::Medium;
use pumice_medium::{DataKind, MetadataIo};
use pumice_structures::fractal_heap::FractalHeap;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The kinds of messages that can be shared: dataspaces, datatypes, fill values, filters, attributes.
pub const KINDS: [u16; 5] =
    [kind::DATASPACE, kind::DATATYPE, kind::FILL_VALUE, kind::PIPELINE, kind::ATTRIBUTE];

/// Bytes from which on messages of each of [`KINDS`] are shared; 0 for never.
pub type LeastSizes = [u32; KINDS.len()];

/// Messages of a list: as many as libhdf5 has by default, and as many as it can have.
const USUAL: usize = 50;
const MOST: usize = 5000;
/// Larger messages stay in their headers.
const LARGEST: usize = 4000;

/// Puts an empty table into a new file, and says so in its superblock extension.
pub(crate) fn begin(
    medium: &Arc<Medium>,
    space: &mut FileSpace,
    header: ObjectHeader,
    least: &LeastSizes,
) -> Result<Extension> {
    let wanted = KINDS.iter().zip(least).filter(|(_, least)| **least > 0);
    let shared_messages: Vec<SharedMessageIndex> = wanted
        .map(|(&kind, &min_size)| SharedMessageIndex {
            kinds: 1 << kind,
            min_size,
            messages: 0,
            index_address: UNDEFINED,
            heap_address: UNDEFINED,
            list_length: Some(list_length(medium, USUAL)),
        })
        .collect();
    let mut extension = Extension::default();
    if shared_messages.is_empty() {
        return Ok(extension);
    }
    let bytes = SharedMessageIndex::encode_table(&shared_messages, medium.sizes());
    let address = medium.allocate(bytes.len() as u64)?;
    medium.stage(address, bytes);
    let info = SharedMessageTableInfo { address, indexes: shared_messages.len() as u8 };
    let flags = MESSAGE_CONSTANT | MESSAGE_DONT_SHARE;
    let message = RawMessage::new(kind::SHARED_MESSAGE_TABLE, flags, info.encode(medium.sizes()));
    space.extend(medium, header, message)?;
    extension.shared_messages = shared_messages;
    extension.shared_table = Some(info);
    Ok(extension)
}

/// Lets the objects of a complete file share messages. The file must be closed after this. Returns
/// the number of messages in the heaps.
pub fn messages(file: &Arc<File>) -> Result<u64> {
    let Some(info) = file.extension().shared_table else { return Ok(0) };
    let table = &file.extension().shared_messages;
    if table.iter().any(|index| index.heap_address != UNDEFINED) {
        return Err(Error::Invalid("the file's objects share messages already".into()));
    }
    let objects = objects(file)?;
    let mut sharing = Sharing { file, table, counts: HashMap::new() };
    for object in &objects {
        sharing.count(&*file.object(*object)?);
    }
    let mut indexes = sharing.fill()?;
    for object in &objects {
        sharing.replace(&*file.object(*object)?, &indexes)?;
    }
    let medium = file.medium();
    let mut new = Vec::new();
    let mut total = 0;
    for (index, built) in table.iter().zip(&mut indexes) {
        total += built.records.len() as u64;
        new.push(built.finish(medium, *index)?);
    }
    medium.stage(info.address, SharedMessageIndex::encode_table(&new, medium.sizes()));
    Ok(total)
}

/// Addresses of all objects that links lead to.
fn objects(file: &Arc<File>) -> Result<Vec<u64>> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    let mut pending = vec![file.superblock().root_address];
    while let Some(address) = pending.pop() {
        if !seen.insert(address) {
            continue;
        }
        found.push(address);
        let object = file.object(address)?;
        if group::is_group(&object) {
            pending.extend(group::links(file, &object)?.into_iter().filter_map(|link| {
                match link.target {
                    LinkTarget::Hard { address } => Some(address),
                    _ => None,
                }
            }));
        }
    }
    Ok(found)
}

/// Bytes of a list for so many messages.
fn list_length(medium: &Medium, messages: usize) -> u64 {
    SharedMessageRecord::list_length(messages as u64, &Context::new(medium.sizes()))
}

/// The kind and the body of a message.
type Body = (u16, Vec<u8>);

/// The state of sharing messages.
struct Sharing<'a> {
    file: &'a Arc<File>,
    table: &'a [SharedMessageIndex],
    /// The number of occurrences of each message.
    counts: HashMap<Body, u32>,
}

/// An index that is being made.
#[derive(Default)]
struct Built {
    heap: Option<FractalHeap>,
    records: Vec<SharedMessageRecord>,
    places: HashMap<Body, [u8; 8]>,
}

impl Sharing<'_> {
    /// The number of the index that may have a message.
    fn index_of(&self, object: &Object, raw: &RawMessage) -> Option<usize> {
        // A committed datatype keeps its message: others refer to it.
        let committed = raw.kind == kind::DATATYPE && !object.has(kind::LAYOUT);
        if raw.flags & (MESSAGE_SHARED | MESSAGE_DONT_SHARE) != 0 || committed {
            return None;
        }
        let fits = |index: &SharedMessageIndex| {
            let length = raw.body.len();
            index.keeps(raw.kind) && length >= index.min_size as usize && length <= LARGEST
        };
        self.table.iter().position(fits)
    }

    fn count(&mut self, object: &Object) {
        for raw in object.all_messages() {
            if self.index_of(object, &raw).is_some() {
                *self.counts.entry((raw.kind, raw.body)).or_default() += 1;
            }
        }
    }

    /// Puts messages that are there several times into heaps.
    fn fill(&mut self) -> Result<Vec<Built>> {
        let mut indexes: Vec<Built> = self.table.iter().map(|_| Built::default()).collect();
        let mut shared: Vec<(&Body, u32)> = self.counts.iter().map(|(key, &n)| (key, n)).collect();
        shared.retain(|(_, count)| *count > 1);
        // The most frequent messages first, so that equal contents give equal files.
        shared.sort_by(|(one, many), (other, more)| more.cmp(many).then_with(|| one.cmp(other)));
        for (body, references) in shared {
            let Some(at) = self.table.iter().position(|index| index.keeps(body.0)) else {
                continue;
            };
            let built = &mut indexes[at];
            if built.records.len() == MOST {
                continue;
            }
            built.add(self.file.medium(), body, references)?;
        }
        Ok(indexes)
    }

    /// Replaces an object's messages that are in the heaps by references to them.
    fn replace(&self, object: &Object, indexes: &[Built]) -> Result<()> {
        let place = |raw: &RawMessage| {
            let built = &indexes[self.index_of(object, raw)?];
            built.places.get(&(raw.kind, raw.body.clone())).copied()
        };
        if !object.all_messages().iter().any(|raw| place(raw).is_some()) {
            return Ok(());
        }
        let places: Vec<Option<[u8; 8]>> = object.all_messages().iter().map(place).collect();
        let sizes = self.file.medium().sizes();
        object.change(|messages| {
            for (raw, id) in messages.iter_mut().zip(places) {
                if let Some(id) = id {
                    raw.flags |= MESSAGE_SHARED;
                    raw.body.clear();
                    SharedLocation::Heap { id }.encode(sizes, &mut raw.body);
                }
            }
        })
    }
}

impl Built {
    fn add(&mut self, medium: &Arc<Medium>, body: &Body, references: u32) -> Result<()> {
        let heap = match &mut self.heap {
            Some(heap) => heap,
            None => self.heap.insert(FractalHeap::create(medium, HeapShape::MESSAGES)?),
        };
        let id = heap.insert(&body.1)?;
        let id: [u8; 8] = id
            .try_into()
            .map_err(|_| Error::Internal("the place of a shared message is not 8 bytes".into()))?;
        self.records.push(SharedMessageRecord::new(body.0, &body.1, references, id));
        self.places.insert(body.clone(), id);
        Ok(())
    }

    /// Hands heap and list to the next commit.
    fn finish(
        &mut self,
        medium: &Arc<Medium>,
        index: SharedMessageIndex,
    ) -> Result<SharedMessageIndex> {
        let Some(heap) = &mut self.heap else { return Ok(index) };
        heap.commit()?;
        let room = self.records.len().max(USUAL);
        let list = SharedMessageRecord::encode_list(&self.records, room, medium.sizes());
        let list_length = list.len() as u64;
        let address = medium.allocate_for(DataKind::Tree, list_length)?;
        medium.stage(address, list);
        Ok(SharedMessageIndex {
            messages: self.records.len() as u16,
            index_address: address,
            heap_address: heap.address(),
            list_length: Some(list_length),
            ..index
        })
    }
}
