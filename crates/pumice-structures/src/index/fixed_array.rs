//! The fixed array: a header and one data block with an entry for every chunk that can exist.
//!
//! More entries than a page holds stand in pages behind the block, each with its own checksum, and
//! a bitmap in the block says which pages were ever written. Only the pages that are asked for are
//! read; only the ones that change are staged.

use super::Visit;
use super::entries::{Entries, PAGE_OVERHEAD};
use super::shape::{IndexShape, Slots};
use pumice_bytes::DecodeError;
use pumice_format::UNDEFINED;
use pumice_format::index::block::{
    ArrayOwner, decode_page, encode_page, next_page, page_exists, set_page,
};
use pumice_format::index::fixed_array::{FixedArrayBlock, FixedArrayGeometry, FixedArrayHeader};
use pumice_format::index::{ChunkRecord, RecordFormat};
use pumice_medium::zeroed;
use pumice_medium::{DataKind, MetadataIo};
use pumice_medium::{Error, Result};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::ControlFlow;

#[derive(Debug)]
pub(super) struct FixedArray {
    format: RecordFormat,
    slots: Slots,
    page_bits: u8,
    geometry: FixedArrayGeometry,
    /// Undefined until the first commit.
    header: u64,
    header_dirty: bool,
    /// The address of the data block; undefined if there is none, or none was committed yet.
    data_block: u64,
    /// `None` if there is none, or it was not loaded yet.
    block: Option<Block>,
}

/// A data block in memory.
#[derive(Debug)]
struct Block {
    bitmap: Vec<u8>,
    /// Whether `bitmap` changed.
    dirty: bool,
    /// All entries, if they are not in pages.
    whole: Entries,
    /// The pages that were loaded or created; each has its bit in `bitmap`.
    pages: BTreeMap<u64, Entries>,
}

impl FixedArray {
    pub(super) fn create(format: RecordFormat, shape: &IndexShape, page_bits: u8) -> Result<Self> {
        Self::new(format, shape, page_bits, UNDEFINED)
    }

    pub(super) fn page_bits(&self) -> u8 {
        self.page_bits
    }

    pub(super) fn open(
        address: u64,
        format: RecordFormat,
        shape: &IndexShape,
        io: &dyn MetadataIo,
    ) -> Result<Self> {
        let sizes = io.sizes();
        let bytes = io.read(address, FixedArrayHeader::size(sizes))?;
        let header = FixedArrayHeader::decode(&bytes, address, sizes, format.kind)?;
        let entry_size = usize::from(header.entry_size);
        let format = format.with_entry_size(entry_size, "fixed array header", address)?;
        let mut array = Self::new(format, shape, header.page_bits, address)?;
        if header.entries != array.geometry.entries {
            let expected = format!("{} entries", array.geometry.entries);
            let found = header.entries;
            return Err(DecodeError::new("fixed array header", address, expected, found).into());
        }
        array.data_block = header.data_block;
        Ok(array)
    }

    fn new(format: RecordFormat, shape: &IndexShape, page_bits: u8, header: u64) -> Result<Self> {
        let slots = Slots::new(shape)?;
        let Some(entries) = slots.count() else {
            return Err(Error::Invalid(
                "a fixed array cannot index a dataset with an unlimited axis".into(),
            ));
        };
        let size = format.entry_size();
        let geometry =
            FixedArrayGeometry::new(entries, size, page_bits, format.offset_size, header)?;
        Ok(Self {
            format,
            slots,
            page_bits,
            geometry,
            header,
            header_dirty: header == UNDEFINED,
            data_block: UNDEFINED,
            block: None,
        })
    }

    pub(super) fn format(&self) -> &RecordFormat {
        &self.format
    }

    pub(super) fn lookup(
        &mut self,
        io: &dyn MetadataIo,
        coord: &[u64],
    ) -> Result<Option<ChunkRecord>> {
        let Some(slot) = self.slots.slot(coord) else { return Ok(None) };
        let format = self.format;
        match self.entries(io, slot)? {
            Some((entries, entry)) => entries.record(&format, entry),
            None => Ok(None),
        }
    }

    pub(super) fn insert(
        &mut self,
        io: &dyn MetadataIo,
        coord: &[u64],
        record: &ChunkRecord,
    ) -> Result<()> {
        let slot = self.slots.slot_to_set(coord)?;
        let format = self.format;
        self.create_entries(io, slot)?;
        match self.entries(io, slot)? {
            Some((entries, entry)) => entries.set(&format, entry, Some(record)),
            None => Err(super::shape::outside(coord)),
        }
    }

    pub(super) fn remove(
        &mut self,
        io: &dyn MetadataIo,
        coord: &[u64],
    ) -> Result<Option<ChunkRecord>> {
        let Some(slot) = self.slots.slot(coord) else { return Ok(None) };
        let format = self.format;
        let Some((entries, entry)) = self.entries(io, slot)? else { return Ok(None) };
        let record = entries.record(&format, entry)?;
        if record.is_some() {
            entries.set(&format, entry, None)?;
        }
        Ok(record)
    }

    pub(super) fn for_each(
        &mut self,
        io: &dyn MetadataIo,
        after: Option<&[u64]>,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>> {
        let start = self.slots.behind(after);
        if start >= self.geometry.entries || !self.load_block(io)? {
            return Ok(ControlFlow::Continue(()));
        }
        let paged = self.geometry.pages > 0;
        let mut next = self.page_from(if paged { start / self.geometry.page_entries } else { 0 });
        while let Some(page) = next {
            let first = page * self.geometry.page_entries;
            if self.entries(io, first)?.is_some()
                && self.visit_page(page, first, start, visit)?.is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
            next = self.page_from(page + 1);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The first page from `page` on that exists; entries without pages count as one.
    fn page_from(&self, page: u64) -> Option<u64> {
        let block = self.block.as_ref()?;
        match self.geometry.pages {
            0 => (page == 0).then_some(0),
            pages => next_page(&block.bitmap, page).filter(|&page| page < pages),
        }
    }

    /// Visits the entries of a page that is loaded, or of the whole block, from a slot on.
    fn visit_page(
        &self,
        page: u64,
        first: u64,
        start: u64,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>> {
        let Some(block) = &self.block else { return Ok(ControlFlow::Continue(())) };
        let entries = block.pages.get(&page).unwrap_or(&block.whole);
        for entry in start.saturating_sub(first)..entries.count(&self.format) {
            let Some(record) = entries.record(&self.format, entry)? else { continue };
            let Some(coord) = self.slots.coord(first + entry) else { continue };
            if visit(&coord, &record)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    pub(super) fn place(&mut self, io: &dyn MetadataIo) -> Result<()> {
        if self.header == UNDEFINED {
            self.header = io.allocate(FixedArrayHeader::size(io.sizes()) as u64)?;
        }
        Ok(())
    }

    pub(super) fn commit(&mut self, io: &dyn MetadataIo) -> Result<u64> {
        let sizes = io.sizes();
        if self.header == UNDEFINED && self.block.is_none() {
            return Ok(UNDEFINED);
        }
        self.place(io)?;
        if self.data_block == UNDEFINED && self.block.is_some() {
            self.data_block = io.allocate_for(DataKind::LocalHeap, self.geometry.block_size)?;
            self.header_dirty = true;
        }
        self.stage_block(io);
        if self.header_dirty {
            let header = FixedArrayHeader {
                kind: self.format.kind,
                // Entries have at most 8 + 8 + 16 + 36 bytes.
                entry_size: self.format.entry_size() as u8,
                page_bits: self.page_bits,
                entries: self.geometry.entries,
                data_block: self.data_block,
            };
            let mut bytes = Vec::with_capacity(FixedArrayHeader::size(sizes));
            header.encode(sizes, &mut bytes);
            io.stage(self.header, bytes);
            self.header_dirty = false;
        }
        Ok(self.header)
    }

    fn stage_block(&mut self, io: &dyn MetadataIo) {
        let Some(block) = &mut self.block else { return };
        for (&page, entries) in block.pages.iter_mut().filter(|(_, entries)| entries.dirty) {
            let mut bytes = Vec::with_capacity(entries.bytes.len() + 4);
            encode_page(&entries.bytes, &mut bytes);
            io.stage(self.data_block + self.geometry.page_offset(page), bytes);
            entries.dirty = false;
        }
        if block.dirty || block.whole.dirty {
            // Lent to the encoder, not copied.
            let head = FixedArrayBlock {
                bitmap: std::mem::take(&mut block.bitmap),
                entries: std::mem::take(&mut block.whole.bytes),
            };
            let owner = ArrayOwner { header: self.header, kind: self.format.kind };
            let mut bytes = Vec::with_capacity(self.geometry.head_size);
            head.encode(owner, io.sizes(), &mut bytes);
            io.stage(self.data_block, bytes);
            (block.bitmap, block.whole.bytes) = (head.bitmap, head.entries);
            (block.dirty, block.whole.dirty) = (false, false);
        }
    }

    pub(super) fn delete(&mut self, io: &dyn MetadataIo) -> Result<()> {
        if self.data_block != UNDEFINED {
            io.free(self.data_block, self.geometry.block_size);
        }
        if self.header != UNDEFINED {
            io.free(self.header, FixedArrayHeader::size(io.sizes()) as u64);
        }
        self.header = UNDEFINED;
        self.data_block = UNDEFINED;
        self.block = None;
        self.header_dirty = true;
        Ok(())
    }

    pub(super) fn storage_size(&mut self, io: &dyn MetadataIo) -> Result<u64> {
        let block = self.block.is_some() || self.data_block != UNDEFINED;
        if !block && self.header == UNDEFINED {
            return Ok(0);
        }
        let header = FixedArrayHeader::size(io.sizes()) as u64;
        Ok(header + if block { self.geometry.block_size } else { 0 })
    }

    pub(super) fn memory(&self) -> usize {
        let Some(block) = &self.block else { return 0 };
        let page = self.geometry.page_entries as usize * self.format.entry_size() + PAGE_OVERHEAD;
        block.pages.len() * page
    }

    pub(super) fn trim(&mut self) {
        if let Some(block) = &mut self.block {
            block.pages.retain(|_, entries| entries.dirty);
        }
    }

    /// The entries that hold `slot`, and its place there; `None` if they were never written.
    fn entries(&mut self, io: &dyn MetadataIo, slot: u64) -> Result<Option<(&mut Entries, u64)>> {
        if !self.load_block(io)? {
            return Ok(None);
        }
        let Some(block) = &mut self.block else { return Ok(None) };
        let geometry = &self.geometry;
        if geometry.pages == 0 {
            return Ok(Some((&mut block.whole, slot)));
        }
        let (page, entry) = (slot / geometry.page_entries, slot % geometry.page_entries);
        if !page_exists(&block.bitmap, page) {
            return Ok(None);
        }
        let entries = match block.pages.entry(page) {
            Entry::Occupied(loaded) => loaded.into_mut(),
            Entry::Vacant(missing) => {
                let address = self.data_block.saturating_add(geometry.page_offset(page));
                let bytes = io.read(address, geometry.page_size(page, address)?)?;
                missing.insert(Entries::loaded(decode_page(&bytes, address)?.to_vec()))
            }
        };
        Ok(Some((entries, entry)))
    }

    /// Creates the block and the page of `slot`, if they do not exist.
    fn create_entries(&mut self, io: &dyn MetadataIo, slot: u64) -> Result<()> {
        if !self.load_block(io)? {
            let in_block = if self.geometry.pages == 0 { self.geometry.entries } else { 0 };
            self.block = Some(Block {
                bitmap: zeroed(self.geometry.bitmap_size)?,
                dirty: true,
                whole: Entries::unset(&self.format, in_block)?,
                pages: BTreeMap::new(),
            });
        }
        let geometry = &self.geometry;
        let Some(block) = self.block.as_mut().filter(|_| geometry.pages > 0) else {
            return Ok(());
        };
        let page = slot / geometry.page_entries;
        if !page_exists(&block.bitmap, page) {
            let entries = Entries::unset(&self.format, geometry.page_length(page))?;
            set_page(&mut block.bitmap, page);
            block.dirty = true;
            block.pages.insert(page, entries);
        }
        Ok(())
    }

    /// Loads the data block; `false` if there is none.
    fn load_block(&mut self, io: &dyn MetadataIo) -> Result<bool> {
        if self.block.is_some() {
            return Ok(true);
        }
        if self.data_block == UNDEFINED {
            return Ok(false);
        }
        let owner = ArrayOwner { header: self.header, kind: self.format.kind };
        let bytes = io.read(self.data_block, self.geometry.head_size)?;
        let block =
            FixedArrayBlock::decode(&bytes, self.data_block, io.sizes(), owner, &self.geometry)?;
        self.block = Some(Block {
            bitmap: block.bitmap,
            dirty: false,
            whole: Entries::loaded(block.entries),
            pages: BTreeMap::new(),
        });
        Ok(true)
    }
}
