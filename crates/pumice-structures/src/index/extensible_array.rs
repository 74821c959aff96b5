//! The extensible array: entries along one axis that grows, in blocks that grow with it.
//!
//! Slots begin in the index block, go on in data blocks that it lists, then in data blocks listed by
//! super blocks ([`pumice_format::index::extensible_array`] has the arithmetic). Blocks are made
//! when the first of their entries is set and never given up again, as the statistics in the header
//! say; an entry that is removed is only reset.

mod blocks;
mod data;

use super::Visit;
use super::entries::{Claims, Entries};
use super::shape::{IndexShape, Slots, outside};
use blocks::Root;
use pumice_format::UNDEFINED;
use pumice_format::index::block::ArrayOwner;
use pumice_format::index::extensible_array::{
    ExtensibleArrayGeometry, ExtensibleArrayHeader, ExtensibleArrayParameters,
    ExtensibleArrayStatistics,
};
use pumice_format::index::{ChunkRecord, RecordFormat};
use pumice_medium::{DataKind, MetadataIo};
use pumice_medium::{Error, Result};
use std::ops::ControlFlow;

#[derive(Debug)]
pub(super) struct ExtensibleArray {
    array: Array,
    root: Link<Root>,
}

/// The parameters that all blocks of one array share.
#[derive(Debug)]
struct Array {
    format: RecordFormat,
    slots: Slots,
    geometry: ExtensibleArrayGeometry,
    /// The address of the header; undefined until the first commit.
    header: u64,
    /// Whether the statistics or the index block's address changed.
    dirty: bool,
    statistics: ExtensibleArrayStatistics,
    claims: Claims,
    /// Bytes of entries in memory, without those of the index block: an upper bound.
    loaded: usize,
}

/// A block that may not exist, or exist only in the file, or only in memory.
#[derive(Debug)]
struct Link<T> {
    /// Undefined if the block is not in the file.
    address: u64,
    block: Option<Box<T>>,
}

impl<T> Link<T> {
    fn to(address: u64) -> Self {
        Self { address, block: None }
    }

    fn exists(&self) -> bool {
        self.block.is_some() || self.address != UNDEFINED
    }

    /// Allocates a new block.
    fn allocate(&mut self, io: &dyn MetadataIo, kind: DataKind, size: u64) -> Result<u64> {
        if self.address == UNDEFINED {
            self.address = io.allocate_for(kind, size)?;
        }
        Ok(self.address)
    }
}

impl Array {
    fn owner(&self) -> ArrayOwner {
        ArrayOwner { header: self.header, kind: self.format.kind }
    }

    /// Visits the entries of one block or page, whose first slot is `first`, from the slot `start` on.
    fn visit(
        &self,
        entries: &Entries,
        first: u64,
        start: u64,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>> {
        let limit = self.statistics.slots_set.saturating_sub(first);
        for entry in start.saturating_sub(first)..entries.count(&self.format).min(limit) {
            let Some(record) = entries.record(&self.format, entry)? else { continue };
            let Some(coord) = self.slots.coord(first + entry) else { continue };
            if visit(&coord, &record)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl ExtensibleArray {
    pub(super) fn create(
        format: RecordFormat,
        shape: &IndexShape,
        parameters: ExtensibleArrayParameters,
    ) -> Result<Self> {
        Self::new(format, shape, parameters, UNDEFINED)
    }

    pub(super) fn parameters(&self) -> ExtensibleArrayParameters {
        self.array.geometry.parameters
    }

    pub(super) fn open(
        address: u64,
        format: RecordFormat,
        shape: &IndexShape,
        io: &dyn MetadataIo,
    ) -> Result<Self> {
        let sizes = io.sizes();
        let bytes = io.read(address, ExtensibleArrayHeader::size(sizes))?;
        let header = ExtensibleArrayHeader::decode(&bytes, address, sizes, format.kind)?;
        let entry_size = usize::from(header.entry_size);
        let format = format.with_entry_size(entry_size, "extensible array header", address)?;
        let mut array = Self::new(format, shape, header.parameters, address)?;
        array.array.statistics = header.statistics;
        array.root = Link::to(header.index_block);
        Ok(array)
    }

    fn new(
        format: RecordFormat,
        shape: &IndexShape,
        parameters: ExtensibleArrayParameters,
        header: u64,
    ) -> Result<Self> {
        let slots = Slots::new(shape)?;
        if slots.count().is_some() {
            return Err(Error::Invalid("an extensible array needs an unlimited axis".into()));
        }
        let size = format.entry_size();
        let geometry = ExtensibleArrayGeometry::new(parameters, size, format.offset_size, header)?;
        let array = Array {
            format,
            slots,
            geometry,
            header,
            dirty: header == UNDEFINED,
            statistics: ExtensibleArrayStatistics::default(),
            claims: Claims::default(),
            loaded: 0,
        };
        Ok(Self { array, root: Link::to(UNDEFINED) })
    }

    pub(super) fn format(&self) -> &RecordFormat {
        &self.array.format
    }

    pub(super) fn lookup(
        &mut self,
        io: &dyn MetadataIo,
        coord: &[u64],
    ) -> Result<Option<ChunkRecord>> {
        let format = self.array.format;
        match self.find(io, coord)? {
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
        let slot = self.array.slots.slot_to_set(coord)?;
        let place = self.array.geometry.place(slot).ok_or_else(|| outside(coord))?;
        let format = self.array.format;
        if !self.root.exists() {
            self.root.block = Some(Box::new(Root::create(&mut self.array)));
        }
        let Some(root) = Root::load(&mut self.root, &mut self.array, io)? else {
            return Err(outside(coord));
        };
        match root.entries(&mut self.array, io, place, true)? {
            Some((entries, entry)) => entries.set(&format, entry, Some(record))?,
            None => return Err(outside(coord)),
        }
        if slot >= self.array.statistics.slots_set {
            self.array.statistics.slots_set = slot + 1;
            self.array.dirty = true;
        }
        Ok(())
    }

    pub(super) fn remove(
        &mut self,
        io: &dyn MetadataIo,
        coord: &[u64],
    ) -> Result<Option<ChunkRecord>> {
        let format = self.array.format;
        let Some((entries, entry)) = self.find(io, coord)? else { return Ok(None) };
        let record = entries.record(&format, entry)?;
        if record.is_some() {
            entries.set(&format, entry, None)?;
        }
        Ok(record)
    }

    /// The entries that hold a chunk's, if they exist.
    fn find(&mut self, io: &dyn MetadataIo, coord: &[u64]) -> Result<Option<(&mut Entries, u64)>> {
        let slots_set = self.array.statistics.slots_set;
        let slot = self.array.slots.slot(coord).filter(|&slot| slot < slots_set);
        let Some(place) = slot.and_then(|slot| self.array.geometry.place(slot)) else {
            return Ok(None);
        };
        match Root::load(&mut self.root, &mut self.array, io)? {
            Some(root) => root.entries(&mut self.array, io, place, false),
            None => Ok(None),
        }
    }

    pub(super) fn for_each(
        &mut self,
        io: &dyn MetadataIo,
        after: Option<&[u64]>,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>> {
        let start = self.array.slots.behind(after);
        match Root::load(&mut self.root, &mut self.array, io)? {
            Some(root) => root.for_each(&mut self.array, io, start, visit),
            None => Ok(ControlFlow::Continue(())),
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.array.loaded
    }

    pub(super) fn trim(&mut self) {
        self.array.loaded = 0;
        if let Some(root) = &mut self.root.block {
            root.trim(&mut self.array);
        }
    }

    pub(super) fn place(&mut self, io: &dyn MetadataIo) -> Result<()> {
        if self.array.header == UNDEFINED {
            self.array.header = io.allocate(ExtensibleArrayHeader::size(io.sizes()) as u64)?;
        }
        Ok(())
    }

    pub(super) fn commit(&mut self, io: &dyn MetadataIo) -> Result<u64> {
        let sizes = io.sizes();
        if self.array.header == UNDEFINED && !self.root.exists() {
            return Ok(UNDEFINED);
        }
        self.place(io)?;
        if self.root.block.is_some() {
            self.root.allocate(
                io,
                DataKind::Header,
                self.array.geometry.index_block_size() as u64,
            )?;
        }
        if let Some(root) = &mut self.root.block {
            root.commit(self.root.address, &self.array, io)?;
        }
        if self.array.dirty {
            let header = ExtensibleArrayHeader {
                kind: self.array.format.kind,
                // Entries have at most 8 + 8 + 16 + 36 bytes.
                entry_size: self.array.format.entry_size() as u8,
                parameters: self.array.geometry.parameters,
                statistics: self.array.statistics,
                index_block: self.root.address,
            };
            let mut bytes = Vec::with_capacity(ExtensibleArrayHeader::size(sizes));
            header.encode(sizes, &mut bytes);
            io.stage(self.array.header, bytes);
            self.array.dirty = false;
        }
        Ok(self.array.header)
    }

    pub(super) fn delete(&mut self, io: &dyn MetadataIo) -> Result<()> {
        if let Some(root) = Root::load(&mut self.root, &mut self.array, io)? {
            root.delete(&mut self.array, io)?;
        }
        if self.root.address != UNDEFINED {
            io.free(self.root.address, self.array.geometry.index_block_size() as u64);
        }
        if self.array.header != UNDEFINED {
            io.free(self.array.header, ExtensibleArrayHeader::size(io.sizes()) as u64);
        }
        self.root = Link::to(UNDEFINED);
        self.array.header = UNDEFINED;
        self.array.dirty = true;
        self.array.statistics = ExtensibleArrayStatistics::default();
        self.array.claims = Claims::default();
        Ok(())
    }

    pub(super) fn storage_size(&mut self, io: &dyn MetadataIo) -> Result<u64> {
        if self.array.header == UNDEFINED && !self.root.exists() {
            return Ok(0);
        }
        let mut size = ExtensibleArrayHeader::size(io.sizes()) as u64;
        if self.root.exists() {
            size += self.array.geometry.index_block_size() as u64;
        }
        let statistics = &self.array.statistics;
        let size = size.saturating_add(statistics.super_block_bytes);
        Ok(size.saturating_add(statistics.data_block_bytes))
    }
}
