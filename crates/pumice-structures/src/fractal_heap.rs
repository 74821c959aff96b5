//! A fractal heap as a living thing: from an object's id to its bytes, and back.
//!
//! Blocks are read when they are first needed and kept as long as the heap is. A block says itself
//! where in the heap it stands, so that none can appear twice.
//!
//! Heaps with filters are read, not changed: to change one, its objects are moved to a new heap
//! ([`FractalHeap::is_changeable`]). The free bytes of the blocks are found from the ids in use
//! ([`FractalHeap::survey`]), once, before the first change, and stored for libhdf5.
//!
//! | module | what is there |
//! |---|---|
//! | `blocks` | direct and indirect blocks, and where the next one goes |
//! | `space` | free bytes of direct blocks |
//! | `note` | what the file says of them |
//! | `huge` | objects too large for a block |

mod blocks;
mod huge;
mod note;
mod space;
#[cfg(test)]
mod tests;

use crate::btree2::Tree;
use crate::pipeline_of;
use blocks::{Block, Table, UNPLACED};
use note::Note;
use pumice_bytes::DecodeError;
use pumice_filter::Pipeline;
use pumice_format::Context;
use pumice_format::fractal_heap::{HeapChild, HeapHeader, HeapId, HeapShape, HugeObject};
use pumice_medium::Medium;
use pumice_medium::MetadataIo;
use pumice_medium::{Error, Result};
use space::Space;
use std::collections::BTreeMap;
use std::sync::Arc;

const STRUCTURE: &str = "fractal heap";

/// An open heap.
pub struct FractalHeap {
    medium: Arc<Medium>,
    context: Context,
    header: HeapHeader,
    header_dirty: bool,
    pipeline: Pipeline,
    /// Direct blocks that were needed, by their place in the heap.
    blocks: BTreeMap<u64, Block>,
    /// Loaded indirect blocks, by their offset in the heap. Their first child is direct and the
    /// others have higher offsets, so no two blocks have the same offset.
    tables: BTreeMap<u64, Table>,
    /// The free space, known before the first change.
    space: Option<Space>,
    /// The free space as the file states it, once it was written here.
    note: Option<Note>,
    /// Huge objects by key, once one was asked for.
    huge: Option<Tree>,
}

impl FractalHeap {
    /// A new heap. Its header is allocated at once.
    pub fn create(medium: &Arc<Medium>, shape: HeapShape) -> Result<Self> {
        let context = Context::new(medium.sizes());
        let address = medium.allocate(HeapHeader::encoded_length(&context) as u64)?;
        let mut header = HeapHeader::new(address, shape);
        // A length of the file must be able to say it: two bytes do not, of the usual 64 KiB.
        let most = 1 << (8 * u32::from(medium.sizes().length)).min(63).saturating_sub(1);
        header.max_direct_size = header.max_direct_size.min(most);
        let space = Some(Space::default());
        Ok(Self { header_dirty: true, space, ..Self::new(medium, header)? })
    }

    /// The heap whose header is at `address`.
    pub fn open(medium: &Arc<Medium>, address: u64) -> Result<Self> {
        Self::new(medium, read_header(medium, address)?.0)
    }

    fn new(medium: &Arc<Medium>, header: HeapHeader) -> Result<Self> {
        let (context, pipeline) = (Context::new(medium.sizes()), pipeline_of(&header.pipeline)?);
        let (blocks, tables) = Default::default();
        let (medium, header_dirty) = (medium.clone(), false);
        let (space, note, huge) = (None, None, None);
        Ok(Self {
            medium,
            context,
            header,
            header_dirty,
            pipeline,
            blocks,
            tables,
            space,
            note,
            huge,
        })
    }

    /// The address of its header.
    pub fn address(&self) -> u64 {
        self.header.address
    }

    /// Whether objects can be added and removed.
    pub fn is_changeable(&self) -> bool {
        self.header.root_filtered.is_none()
    }

    /// The bytes of an object.
    pub fn object(&mut self, id: &[u8]) -> Result<Vec<u8>> {
        match self.header.decode_id(id, &self.context)? {
            HeapId::Tiny(bytes) => Ok(bytes),
            HeapId::Managed { offset, length } => self.managed(offset, length),
            HeapId::Huge(object) => self.huge_object(object),
            HeapId::HugeKey(key) => {
                let object = self.huge_of_key(key)?;
                self.huge_object(object)
            }
        }
    }

    fn managed(&mut self, offset: u64, length: u64) -> Result<Vec<u8>> {
        let start = self.block_of(offset)?;
        let block = self.blocks.get(&start).map_or(&[][..], |block| &block.bytes);
        let first = usize::try_from(offset - start).unwrap_or(usize::MAX);
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let object = first.checked_add(length).and_then(|end| block.get(first..end));
        let found = block.len();
        object.map(<[u8]>::to_vec).ok_or_else(|| {
            let expected = format!("{length} byte(s) at {first:#x} of a block");
            DecodeError::new(STRUCTURE, self.header.address, expected, found).into()
        })
    }

    /// Finds the free space, from the ids of all objects in the heap.
    pub fn survey(&mut self, ids: &mut dyn Iterator<Item = &[u8]>) -> Result<()> {
        if self.space.is_some() {
            return Ok(());
        }
        let mut used = Vec::new();
        for id in ids {
            if let HeapId::Managed { offset, length } = self.header.decode_id(id, &self.context)? {
                used.push((offset, length));
            }
        }
        used.sort_unstable();
        let mut space = Space::default();
        self.for_each_block(&mut |heap, block, parent| {
            match heap {
                Some(overhead) => space.add_block(block, parent, overhead, &used),
                None => space.add_hole(block),
            }
            Ok(())
        })?;
        self.space = Some(space);
        Ok(())
    }

    /// Adds an object and gives its id.
    pub fn insert(&mut self, object: &[u8]) -> Result<Vec<u8>> {
        if object.is_empty() || !self.is_changeable() {
            return Err(Error::Internal("an object for a heap that takes none".into()));
        }
        self.header_dirty = true;
        let length = object.len() as u64;
        if object.len() <= self.header.max_tiny() {
            self.header.objects[2] += 1;
            self.header.object_bytes[1] += length;
            return Ok(self.header.tiny_id(object));
        }
        let largest = self.header.max_direct_size - self.header.direct_overhead(self.context.sizes);
        if length > u64::from(self.header.max_managed_size).min(largest) {
            return self.insert_huge(object);
        }
        let offset = match self.space()?.take(length) {
            Some(offset) => offset,
            None => {
                self.add_block(length)?;
                let taken = self.space()?.take(length);
                taken.ok_or_else(|| Error::Internal("a new heap block without room".into()))?
            }
        };
        let start = self.block_of(offset)?;
        let first = (offset - start) as usize;
        if let Some(block) = self.blocks.get_mut(&start)
            && let Some(place) = block.bytes.get_mut(first..first + object.len())
        {
            place.copy_from_slice(object);
            block.dirty = true;
        }
        self.header.objects[0] += 1;
        self.header.free_space = self.header.free_space.saturating_sub(length);
        Ok(self.header.managed_id(offset, length))
    }

    /// Removes an object.
    pub fn remove(&mut self, id: &[u8]) -> Result<()> {
        if !self.is_changeable() {
            return Err(Error::Internal("an object of a heap that cannot be changed".into()));
        }
        let id = self.header.decode_id(id, &self.context)?;
        self.header_dirty = true;
        let kind = match id {
            HeapId::Tiny(bytes) => {
                let total = &mut self.header.object_bytes[1];
                *total = total.saturating_sub(bytes.len() as u64);
                2
            }
            HeapId::Managed { offset, length } => {
                let Some(empty) = self.space()?.give(offset, length) else {
                    return Err(self.damaged("an object that is in use", format!("{offset:#x}")));
                };
                self.header.free_space = self.header.free_space.saturating_add(length);
                if let Some(start) = empty {
                    self.drop_block(start)?;
                }
                0
            }
            HeapId::HugeKey(key) | HeapId::Huge(HugeObject { address: key, .. }) => {
                self.remove_huge(key)?;
                1
            }
        };
        self.header.objects[kind] = self.header.objects[kind].saturating_sub(1);
        Ok(())
    }

    /// Stages changed blocks.
    pub fn commit(&mut self) -> Result<()> {
        self.place_root()?;
        self.stage_blocks()?;
        if std::mem::take(&mut self.header_dirty) {
            self.stage_note()?;
            let mut bytes = Vec::new();
            self.header.encode(self.context.sizes, &mut bytes);
            self.medium.stage(self.header.address, bytes);
        }
        Ok(())
    }

    /// Stages blocks that keep their address however the heap grows. Returns about the memory, in
    /// bytes, of the others, which wait for a commit: their old places would be holes in the file.
    pub fn spill(&mut self) -> Result<usize> {
        self.stage_blocks()?;
        if !self.header_dirty {
            return Ok(0);
        }
        let root = self.tables.get(&0).map_or(0, |table| table.children.len());
        let space = self.space.as_ref().map_or(0, Space::footprint);
        Ok(size_of::<Self>() + root * size_of::<HeapChild>() + space)
    }

    /// Stages changed blocks that have a place.
    fn stage_blocks(&mut self) -> Result<()> {
        let sizes = self.context.sizes;
        for (&start, block) in self.blocks.iter_mut().filter(|(_, block)| block.dirty) {
            self.header.finish_direct(&mut block.bytes, start, sizes);
            self.medium.stage(block.address, block.bytes.clone());
            block.dirty = false;
        }
        let placed = |table: &Table| table.dirty && table.address != UNPLACED;
        for (&start, table) in self.tables.iter_mut().filter(|(_, table)| placed(table)) {
            let mut bytes = Vec::new();
            self.header.encode_indirect(&table.children, start, sizes, &mut bytes);
            self.medium.stage(table.address, bytes);
            table.dirty = false;
        }
        if let Some(huge) = self.huge.as_mut().filter(|_| self.header_dirty) {
            huge.commit(&*self.medium)?;
        }
        Ok(())
    }

    /// Forgets blocks that can be read again.
    pub fn trim(&mut self) {
        self.blocks.retain(|_, block| block.dirty);
        self.tables.retain(|_, table| table.dirty || table.address == UNPLACED);
        self.huge.iter_mut().for_each(Tree::trim);
    }

    /// Gives all its space back to `io`; it must not be used any more.
    pub fn delete(&mut self, io: &dyn MetadataIo) -> Result<()> {
        let mut freed = Vec::new();
        self.for_each_block(&mut |kept, block, _| {
            if kept.is_some() {
                freed.push((block.address, block.stored));
            }
            Ok(())
        })?;
        let context = &self.context;
        for table in self.tables.values().filter(|table| table.address != UNPLACED) {
            let length = self.header.indirect_length(table.rows, context);
            freed.push((table.address, length as u64));
        }
        let mut length = HeapHeader::encoded_length(context);
        // A heap of ours may not be in the file yet, and has no filters.
        if self.header.root_filtered.is_some() {
            let bytes = self.medium.read(self.header.address, length)?;
            length = HeapHeader::measure(&bytes, &context.at(self.header.address))?;
        }
        freed.push((self.header.address, length as u64));
        self.delete_huge(io)?;
        // A note of free space that cannot be read is left in the file.
        let note = self.note.or_else(|| self.stored_note().ok());
        freed.extend(note.into_iter().flat_map(Note::blocks));
        for (address, length) in freed {
            io.free(address, length);
        }
        Ok(())
    }

    /// Reads every block, to find damage.
    pub fn verify(&mut self) -> Result<()> {
        let mut starts = Vec::new();
        self.for_each_block(&mut |kept, block, _| {
            starts.extend(kept.map(|_| block.start));
            Ok(())
        })?;
        for start in starts {
            self.block_of(start)?;
            self.blocks.clear();
        }
        self.stored_note().map(drop)
    }

    fn space(&mut self) -> Result<&mut Space> {
        self.space.as_mut().ok_or_else(|| Error::Internal("a heap without a survey".into()))
    }

    fn damaged(&self, expected: &'static str, found: impl std::fmt::Display) -> Error {
        DecodeError::new(STRUCTURE, self.header.address, expected, found).into()
    }
}

/// The header of the heap at `address`, and its bytes.
pub fn read_header(medium: &Medium, address: u64) -> Result<(HeapHeader, Vec<u8>)> {
    let context = Context::new(medium.sizes());
    let at = context.at(address);
    let mut bytes = medium.read(address, HeapHeader::encoded_length(&context))?;
    let length = HeapHeader::measure(&bytes, &at)?;
    if length > bytes.len() {
        bytes = medium.read(address, length)?;
    }
    Ok((HeapHeader::decode(&bytes, &at)?, bytes))
}

fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
