//! Moving objects when the file is closed. Collections of which all objects are moved are copied to
//! free space before them; from the last of the other collections, objects are written once more to
//! earlier ones or to new ones.

use super::found::length;
use super::write::{LARGE_COLLECTION, Writing};
use super::{GlobalHeap, parse};
use pumice_format::global_heap::{self, Collection, MIN_COLLECTION};
use pumice_format::{Context, UNDEFINED};
use pumice_medium::Result;
use pumice_medium::{DataKind, MetadataIo};
use pumice_store::WriteOp;
use pumice_types::VarLen;
use std::collections::BTreeMap;

/// The place of an object: its collection, index and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placed {
    /// The address of its collection.
    pub address: u64,
    index: u32,
    /// Its length.
    pub length: usize,
}

/// Collections that were copied: where they are now, and their bytes, by where they were.
#[derive(Default)]
pub struct Copies(BTreeMap<u64, (u64, u64)>);

impl Copies {
    /// Whether no collection was copied.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the collection at `address` was copied.
    pub fn contains(&self, address: u64) -> bool {
        self.0.contains_key(&address)
    }
}

/// The objects to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovePlan {
    /// The first collection that is to be left without them.
    pub from: u64,
    /// Bytes of a new collection, unless one object needs more.
    pub(super) size: usize,
}

impl GlobalHeap {
    /// The place of the object that a reference leads to; `None` for null.
    pub fn place(&self, varlen: &VarLen, reference: &[u8]) -> Result<Option<Placed>> {
        let id = reference.get(4..).unwrap_or_default();
        let (address, index) = parse(id, self.medium.sizes().offset)?;
        let none = address == 0 || address == UNDEFINED;
        Ok((!none).then(|| Placed { address, index, length: length(varlen, reference) }))
    }

    /// Copies collections that have only these objects, which are in order, to free space before
    /// them, the last one first.
    pub fn copy_collections(&self, objects: &[Placed]) -> Result<Copies> {
        let mut writing = self.writing();
        self.close(&mut writing)?;
        let mut copies = Copies::default();
        let same = |one: &Placed, other: &Placed| one.address == other.address;
        for objects in objects.chunk_by(same).rev() {
            let address = objects[0].address;
            let count = objects.chunk_by(|one, other| one.index == other.index).count();
            let bytes = self.closed_bytes(address)?;
            let known = Collection::decode(&bytes, &self.context().at(address))?.len();
            let size = bytes.len() as u64;
            if known != count || !self.medium.has_raw_hole_before(address, size) {
                continue;
            }
            let place = self.medium.allocate_free(DataKind::GlobalHeap, size)?;
            copies.0.insert(address, (place, size));
            // The hole may not be aligned as this has to be.
            if place > address {
                copies.0.remove(&address);
                self.medium.free_raw(place, size);
                continue;
            }
            self.medium.put(&mut [WriteOp { offset: place, bytes: &bytes }])?;
        }
        Ok(copies)
    }

    /// Makes a reference refer to the copy of its object. Returns whether there is one.
    pub fn refer_to_copy(&self, copies: &Copies, reference: &mut [u8]) -> Result<bool> {
        let width = usize::from(self.medium.sizes().offset);
        let id = reference.get_mut(4..).unwrap_or_default();
        let (address, _) = parse(id, self.medium.sizes().offset)?;
        let Some((place, _)) = copies.0.get(&address) else { return Ok(false) };
        id[..width].copy_from_slice(&place.to_le_bytes()[..width]);
        Ok(true)
    }

    /// Gives back the originals of copied collections, when nothing refers to them any more.
    pub fn leave_copied(&self, copies: &Copies) {
        let mut writing = self.writing();
        for (&address, &(_, size)) in &copies.0 {
            self.note_renewed(address);
            writing.roomy.remove(&address);
            writing.freed.insert(address);
            self.medium.free_raw(address, size);
        }
    }

    /// A plan to move as many of these objects, which are in order, as there is room for: those in
    /// the last collections.
    pub fn plan_move(&self, objects: &[Placed]) -> Result<Option<MovePlan>> {
        let starts: Vec<usize> = (0..objects.len())
            .filter(|&at| at == 0 || objects[at - 1].address != objects[at].address)
            .collect();
        let (mut writing, context) = (self.writing(), self.context());
        // The room of this one is room, too.
        self.close(&mut writing)?;
        let plan = |&start: &usize| {
            let from = objects[start].address;
            let fits = |&size: &usize| {
                let mut sizes = new_sizes(&writing, &context, &objects[start..], size);
                sizes.is_empty() || self.medium.has_raw_holes_before(from, &mut sizes)
            };
            let size = [LARGE_COLLECTION, MIN_COLLECTION].into_iter().find(fits)?;
            Some(MovePlan { from, size })
        };
        // The fewer objects are moved, the likelier there is room for them.
        let first = starts.partition_point(|start| plan(start).is_none());
        Ok(starts.get(first).and_then(plan))
    }

    /// Restricts new objects to room before the moved ones, and to new collections, from now on.
    pub fn begin_moving(&self, plan: MovePlan) -> Result<()> {
        let mut writing = self.writing();
        if writing.moving != Some(plan) {
            self.close(&mut writing)?;
            // Collections behind that are where the file is to be cut.
            writing.roomy.retain(|&address, _| address < plan.from);
            writing.moving = Some(plan);
        }
        Ok(())
    }
}

/// Sizes of the new collections that objects need for which there is no room before them.
fn new_sizes(writing: &Writing, context: &Context, objects: &[Placed], usual: usize) -> Vec<u64> {
    let header = Collection::header_length(context);
    let from = objects.first().map_or(0, |first| first.address);
    let mut roomy: Vec<usize> = writing.roomy.range(..from).map(|(_, &room)| room).collect();
    let (mut sizes, mut room) = (Vec::new(), 0);
    for object in objects {
        let need = global_heap::object_length(object.length, context);
        if need > room {
            match roomy.iter().position(|&room| room >= need) {
                Some(at) => room = roomy.remove(at),
                None => {
                    let size = header.saturating_add(need).max(usual);
                    room = size - header;
                    sizes.push(size as u64);
                }
            }
        }
        room -= need;
    }
    sizes
}
