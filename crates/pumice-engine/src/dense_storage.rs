//! Dense storage: many links of a group or attributes of an object, as messages in a fractal heap,
//! found by version 2 B-trees in order of their names' checksums and, if asked for, of creation.

use crate::file::File;
use crate::{Error, Result, shared};
use pumice_bytes::Budget;
use pumice_format::Context;
use pumice_format::dense::{
    ATTRIBUTES_BY_NAME, ATTRIBUTES_BY_ORDER, AttributeRecord, LINKS_BY_NAME, LINKS_BY_ORDER,
    LinkOrderRecord, LinkRecord, name_hash,
};
use pumice_format::fractal_heap::HeapShape;
use pumice_format::messages::{Attribute, Link, SharedLocation, kind};
use pumice_format::object_header::MESSAGE_SHARED;
use pumice_medium::MetadataIo;
use pumice_structures::btree2::{SMALL_NODES, Tree};
use pumice_structures::fractal_heap::FractalHeap;
use std::cmp::Ordering;
use std::ops::ControlFlow;

/// The most memory for all messages of one listing, beside four times the file's length.
const ALLOWANCE: u64 = 64 << 20;

/// The kind of messages in dense storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Links,
    Attributes,
}

/// The addresses of dense storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) heap: u64,
    pub(crate) names: u64,
    /// Undefined without an index of the creation order.
    pub(crate) orders: u64,
}

/// One stored message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    /// The message's body; that of a shared attribute is the attribute itself.
    pub(crate) body: Vec<u8>,
    /// The flags of its message; links have none.
    pub(crate) flags: u8,
    /// The creation order; 0 for links, whose messages have it.
    pub(crate) creation_order: u32,
}

/// Open dense storage.
pub(crate) struct DenseStorage {
    kind: Kind,
    heap: FractalHeap,
    names: Tree,
    orders: Option<Tree>,
    surveyed: bool,
}

/// A record of the B-tree by name: id, flags and creation order.
struct Record {
    id: Vec<u8>,
    flags: u8,
    creation_order: u32,
}

impl Kind {
    fn shape(self) -> HeapShape {
        match self {
            Self::Links => HeapShape::LINKS,
            Self::Attributes => HeapShape::ATTRIBUTES,
        }
    }

    fn tree_types(self) -> (u8, u8) {
        match self {
            Self::Links => (LINKS_BY_NAME, LINKS_BY_ORDER),
            Self::Attributes => (ATTRIBUTES_BY_NAME, ATTRIBUTES_BY_ORDER),
        }
    }

    /// The checksum of the name in a record: all that most comparisons look at.
    fn hash(self, record: &[u8]) -> u32 {
        let at = match self {
            Self::Links => 0..4,
            Self::Attributes => 13..17,
        };
        let bytes = record.get(at).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_le_bytes)
    }

    fn decode(self, record: &[u8]) -> Result<Record> {
        Ok(match self {
            Self::Links => {
                let LinkRecord { id, .. } = LinkRecord::decode(record)?;
                Record { id: id.to_vec(), flags: 0, creation_order: 0 }
            }
            Self::Attributes => {
                let record = AttributeRecord::decode(record)?;
                let AttributeRecord { id, flags, creation_order, .. } = record;
                Record { id: id.to_vec(), flags, creation_order }
            }
        })
    }

    /// The name in a message's body.
    fn name(self, body: &[u8], context: &Context) -> Result<String> {
        Ok(match self {
            Self::Links => Link::decode(body, context)?.name,
            Self::Attributes => Attribute::decode(body, context)?.name,
        })
    }
}

impl DenseStorage {
    /// New storage. Its place in the file is taken at once.
    pub(crate) fn create(file: &File, kind: Kind, by_order: bool) -> Result<Self> {
        let heap = FractalHeap::create(file.medium(), kind.shape())?;
        let offset = file.superblock().sizes.offset;
        let (name_type, order_type) = kind.tree_types();
        let (name_size, order_size) = match kind {
            Kind::Links => (11, 15),
            Kind::Attributes => (17, 13),
        };
        let tree = |tree_type, size| {
            let mut tree = Tree::create(tree_type, 0, SMALL_NODES, size, offset)?;
            tree.place(&**file.medium())?;
            Ok::<_, Error>(tree)
        };
        let names = tree(name_type, name_size)?;
        let orders = by_order.then(|| tree(order_type, order_size)).transpose()?;
        Ok(Self { kind, heap, names, orders, surveyed: true })
    }

    /// The storage at these addresses.
    pub(crate) fn open(file: &File, kind: Kind, addresses: Addresses) -> Result<Self> {
        let medium = file.medium();
        let heap = FractalHeap::open(medium, addresses.heap)?;
        let (name_type, order_type) = kind.tree_types();
        let names = Tree::open(addresses.names, &[name_type], &**medium)?;
        let orders = match addresses.orders {
            pumice_format::UNDEFINED => None,
            address => Some(Tree::open(address, &[order_type], &**medium)?),
        };
        Ok(Self { kind, heap, names, orders, surveyed: false })
    }

    /// The addresses of the heap and the indexes.
    pub(crate) fn addresses(&mut self, file: &File) -> Result<Addresses> {
        let io = &**file.medium();
        let orders = match &mut self.orders {
            Some(orders) => orders.place(io)?,
            None => pumice_format::UNDEFINED,
        };
        Ok(Addresses { heap: self.heap.address(), names: self.names.place(io)?, orders })
    }

    /// The number of messages.
    pub(crate) fn count(&self) -> u64 {
        self.names.count()
    }

    /// The message of a name.
    pub(crate) fn find(&mut self, file: &File, name: &str) -> Result<Option<Stored>> {
        let Self { kind, heap, names, .. } = self;
        let found = names.lookup(&**file.medium(), by_name(file, *kind, heap, name))?;
        let Some(record) = found else { return Ok(None) };
        let record = kind.decode(&record)?;
        stored(file, heap, record).map(Some)
    }

    /// All messages, in order of their names' checksums.
    pub(crate) fn list(&mut self, file: &File) -> Result<Vec<Stored>> {
        let allowed = file.medium().volume()?.saturating_mul(4).saturating_add(ALLOWANCE);
        let mut budget = Budget::new(allowed);
        let Self { kind, heap, names, .. } = self;
        let mut all = Vec::new();
        let _ = names.for_each(&**file.medium(), &mut |record| {
            let message = stored(file, heap, kind.decode(record)?)?;
            budget.spend(message.body.len() as u64, "dense storage", heap.address())?;
            all.push(message);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    /// Whether the storage can be changed in place. If not, its messages are moved to new storage.
    pub(crate) fn is_changeable(&self) -> bool {
        self.heap.is_changeable()
    }

    /// Adds a message. There must be none of that name.
    pub(crate) fn insert(
        &mut self,
        file: &File,
        name: &str,
        order: u64,
        message: &Stored,
    ) -> Result<()> {
        self.survey(file)?;
        let Self { kind, heap, names, orders, .. } = self;
        let io = &**file.medium();
        let id = heap.insert(&message.body)?;
        let hash = name_hash(name);
        let (record, in_order) = match kind {
            Kind::Links => {
                let id = fixed(&id)?;
                let record = LinkRecord { hash, id }.encode();
                (record, LinkOrderRecord { creation_order: order, id }.encode())
            }
            Kind::Attributes => {
                let (flags, creation_order) = (message.flags, message.creation_order);
                let record = AttributeRecord { id: fixed(&id)?, flags, creation_order, hash };
                (record.encode(), record.encode_in_order())
            }
        };
        names.insert(io, by_name(file, *kind, heap, name), &record)?;
        if let Some(orders) = orders {
            orders.insert(io, by_order(*kind, order), &in_order)?;
        }
        Ok(())
    }

    /// Removes the message of a name and gives it.
    pub(crate) fn remove(
        &mut self,
        file: &File,
        name: &str,
        order: impl FnOnce(&Stored) -> Result<u64>,
    ) -> Result<Option<Stored>> {
        self.survey(file)?;
        let Self { kind, heap, names, orders, .. } = self;
        let io = &**file.medium();
        let Some(record) = names.remove(io, by_name(file, *kind, heap, name))? else {
            return Ok(None);
        };
        let record = kind.decode(&record)?;
        let (id, in_heap) = (record.id.clone(), record.flags & MESSAGE_SHARED == 0);
        let removed = stored(file, heap, record)?;
        if let Some(orders) = orders {
            orders.remove(io, by_order(*kind, order(&removed)?))?;
        }
        if in_heap {
            heap.remove(&id)?;
        }
        Ok(Some(removed))
    }

    /// Stages changed blocks.
    pub(crate) fn commit(&mut self, file_medium: &pumice_medium::Medium) -> Result<()> {
        self.heap.commit()?;
        self.names.commit(file_medium)?;
        if let Some(orders) = &mut self.orders {
            orders.commit(file_medium)?;
        }
        Ok(())
    }

    /// Stages blocks that keep their address. Returns about how many bytes of memory wait for a
    /// commit.
    pub(crate) fn spill(&mut self, medium: &pumice_medium::Medium) -> Result<usize> {
        let waiting = self.heap.spill()?;
        self.names.commit(medium)?;
        if let Some(orders) = &mut self.orders {
            orders.commit(medium)?;
        }
        Ok(waiting)
    }

    /// Drops blocks that can be read again.
    pub(crate) fn trim(&mut self) {
        self.heap.trim();
        self.names.trim();
        self.orders.iter_mut().for_each(Tree::trim);
    }

    /// Gives all its space back.
    pub(crate) fn delete(mut self, io: &dyn MetadataIo) -> Result<()> {
        self.heap.delete(io)?;
        self.names.delete(io)?;
        self.orders.as_mut().map_or(Ok(()), |orders| orders.delete(io))
    }

    /// Reads every block and record, to find damage.
    pub(crate) fn verify(&mut self, io: &dyn MetadataIo) -> Result<()> {
        for tree in [Some(&mut self.names), self.orders.as_mut()].into_iter().flatten() {
            let _ = tree.for_each(io, &mut |_| Ok(ControlFlow::Continue(())))?;
        }
        self.heap.verify()
    }

    /// Tells the heap its free space, before its first change.
    fn survey(&mut self, file: &File) -> Result<()> {
        if self.surveyed {
            return Ok(());
        }
        let (kind, mut ids) = (self.kind, Vec::new());
        let _ = self.names.for_each(&**file.medium(), &mut |record| {
            let record = kind.decode(record)?;
            if record.flags & MESSAGE_SHARED == 0 {
                ids.push(record.id);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        self.heap.survey(&mut ids.iter().map(Vec::as_slice))?;
        self.surveyed = true;
        Ok(())
    }
}

/// The message that a record names.
fn stored(file: &File, heap: &mut FractalHeap, record: Record) -> Result<Stored> {
    let Record { id, flags, creation_order, .. } = record;
    let body = match flags & MESSAGE_SHARED {
        0 => heap.object(&id)?,
        _ => {
            let location = SharedLocation::Heap { id: fixed(&id)? };
            shared::message(file, kind::ATTRIBUTE, &location)?.body
        }
    };
    Ok(Stored { body, flags, creation_order })
}

/// Compares records with a name: by checksum, then by the name itself.
fn by_name<'a>(
    file: &'a File,
    kind: Kind,
    heap: &'a mut FractalHeap,
    name: &'a str,
) -> impl FnMut(&[u8]) -> Result<Ordering> + 'a {
    let hash = name_hash(name);
    let context = Context::new(file.superblock().sizes).at(heap.address());
    move |record| match kind.hash(record).cmp(&hash) {
        Ordering::Equal => {
            let message = stored(file, heap, kind.decode(record)?)?;
            let found = kind.name(&message.body, &context)?;
            Ok(found.as_bytes().cmp(name.as_bytes()))
        }
        other => Ok(other),
    }
}

fn by_order(kind: Kind, order: u64) -> impl FnMut(&[u8]) -> Result<Ordering> {
    move |record| {
        let found = match kind {
            Kind::Links => LinkOrderRecord::decode(record)?.creation_order,
            Kind::Attributes => {
                let at = record.get(9..13).and_then(|bytes| bytes.try_into().ok());
                u64::from(at.map_or(0, u32::from_le_bytes))
            }
        };
        Ok(found.cmp(&order))
    }
}

fn fixed<const N: usize>(id: &[u8]) -> Result<[u8; N]> {
    id.try_into().map_err(|_| Error::Internal(format!("a heap id of {} byte(s)", id.len())))
}
