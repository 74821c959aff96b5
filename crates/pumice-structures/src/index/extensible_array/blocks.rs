//! The index block and the super blocks of an extensible array, in memory.
//!
//! Both list data blocks; a block that is made or moved marks the one that lists it as changed.

use super::data::{Data, Number};
use super::{Array, Link};
use crate::index::Visit;
use crate::index::entries::{Entries, unset_entry};
use pumice_format::UNDEFINED;
use pumice_format::index::block::{page_exists, set_page};
use pumice_format::index::extensible_array::EntryPlace;
use pumice_format::index::extensible_block::{IndexBlock, SuperBlock};
use pumice_medium::Result;
use pumice_medium::{DataKind, MetadataIo};
use std::ops::ControlFlow;

/// The index block.
#[derive(Debug)]
pub(super) struct Root {
    entries: Entries,
    /// Data blocks of the first super blocks, one after another.
    direct: Vec<Link<Data>>,
    /// Super blocks that are blocks of their own.
    supers: Vec<Link<Super>>,
    /// Whether an address above changed.
    dirty: bool,
}

/// A super block.
#[derive(Debug)]
pub(super) struct Super {
    number: usize,
    offset: u64,
    /// The bitmap of existing pages, for all data blocks without gaps between them.
    bitmap: Vec<u8>,
    blocks: Vec<Link<Data>>,
    /// Whether the bitmap or an address changed.
    dirty: bool,
}

impl Root {
    /// A new index block, counted in the statistics.
    pub(super) fn create(array: &mut Array) -> Self {
        let block = IndexBlock::empty(&array.geometry, &unset_entry(&array.format));
        let entries = u64::from(array.geometry.parameters.index_entries);
        array.statistics.entries = array.statistics.entries.saturating_add(entries);
        array.dirty = true;
        let mut root = Self::new(block);
        root.dirty = true;
        root
    }

    fn new(block: IndexBlock) -> Self {
        Self {
            entries: Entries::loaded(block.entries),
            direct: block.data_blocks.into_iter().map(Link::to).collect(),
            supers: block.super_blocks.into_iter().map(Link::to).collect(),
            dirty: false,
        }
    }

    /// The index block, loaded if it was not; `None` if it does not exist.
    pub(super) fn load<'a>(
        link: &'a mut Link<Self>,
        array: &mut Array,
        io: &dyn MetadataIo,
    ) -> Result<Option<&'a mut Self>> {
        if link.block.is_none() && link.address != UNDEFINED {
            let bytes = io.read(link.address, array.geometry.index_block_size())?;
            let (sizes, owner) = (io.sizes(), array.owner());
            let block = IndexBlock::decode(&bytes, link.address, sizes, owner, &array.geometry)?;
            link.block = Some(Box::new(Self::new(block)));
        }
        Ok(link.block.as_deref_mut())
    }

    /// The block of entries at `place`, and which of its entries; `None` if it does not exist and
    /// is not to be created.
    pub(super) fn entries(
        &mut self,
        array: &mut Array,
        io: &dyn MetadataIo,
        place: EntryPlace,
        create: bool,
    ) -> Result<Option<(&mut Entries, u64)>> {
        let (number, entry) = match place {
            EntryPlace::Index { entry } => return Ok(Some((&mut self.entries, entry as u64))),
            EntryPlace::Data { super_block, data_block, entry } => {
                (Number { super_block, data_block }, entry)
            }
        };
        if let Some(own) = number.super_block.checked_sub(array.geometry.direct_super_blocks) {
            let Some(link) = self.supers.get_mut(own) else { return Ok(None) };
            if create && !link.exists() {
                link.block = Some(Box::new(Super::create(array, number.super_block)?));
                self.dirty = true;
            }
            return match Super::load(link, array, io, number.super_block)? {
                Some(block) => block.entries(array, io, number, entry, create),
                None => Ok(None),
            };
        }
        let before = array.geometry.blocks_before(number.super_block) as usize;
        let Some(link) = self.direct.get_mut(before + number.data_block) else { return Ok(None) };
        if create && !link.exists() {
            link.block = Some(Box::new(Data::create(array, number)?));
            self.dirty = true;
        }
        let block = Data::load(link, array, io, number)?;
        Ok(block.map(|block| (block.whole(), entry)))
    }

    pub(super) fn for_each(
        &mut self,
        array: &mut Array,
        io: &dyn MetadataIo,
        start: u64,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>> {
        if array.visit(&self.entries, 0, start, visit)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let numbers = direct_numbers(array);
        for (link, number) in self.direct.iter_mut().zip(numbers) {
            if is_before(array, number, start) {
                continue;
            }
            let Some(block) = Data::load(link, array, io, number)? else { continue };
            let first = array.geometry.first_slot(number.super_block, number.data_block);
            let first = first.unwrap_or(u64::MAX);
            if array.visit(block.whole(), first, start, visit)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        let first = array.geometry.direct_super_blocks;
        for (link, number) in self.supers.iter_mut().zip(first..) {
            let last = array.geometry.blocks(number).unwrap_or_default().saturating_sub(1);
            if is_before(array, Number { super_block: number, data_block: last as usize }, start) {
                continue;
            }
            let Some(block) = Super::load(link, array, io, number)? else { continue };
            if block.for_each(array, io, start, visit)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Drops data blocks and pages that have not changed, and counts the others.
    pub(super) fn trim(&mut self, array: &mut Array) {
        self.direct.iter_mut().for_each(|link| trim_data(link, array));
        let supers = self.supers.iter_mut().filter_map(|link| link.block.as_mut());
        supers.for_each(|block| block.blocks.iter_mut().for_each(|link| trim_data(link, array)));
    }

    /// Stages changed blocks from the one at `address` down.
    pub(super) fn commit(
        &mut self,
        address: u64,
        array: &Array,
        io: &dyn MetadataIo,
    ) -> Result<()> {
        for (link, number) in self.direct.iter_mut().zip(direct_numbers(array)) {
            commit_data(link, array, io, number)?;
        }
        for (link, number) in self.supers.iter_mut().zip(array.geometry.direct_super_blocks..) {
            if link.block.is_some() {
                let size = array.geometry.super_block_size(number, address)? as u64;
                link.allocate(io, DataKind::Tree, size)?;
            }
            if let Some(block) = &mut link.block {
                block.commit(link.address, array, io)?;
            }
        }
        if !self.dirty && !self.entries.dirty {
            return Ok(());
        }
        let block = IndexBlock {
            entries: self.entries.bytes.clone(),
            data_blocks: self.direct.iter().map(|link| link.address).collect(),
            super_blocks: self.supers.iter().map(|link| link.address).collect(),
        };
        let mut bytes = Vec::with_capacity(array.geometry.index_block_size());
        block.encode(array.owner(), io.sizes(), &mut bytes);
        io.stage(address, bytes);
        (self.dirty, self.entries.dirty) = (false, false);
        Ok(())
    }

    /// Frees everything below the block.
    pub(super) fn delete(&mut self, array: &mut Array, io: &dyn MetadataIo) -> Result<()> {
        let numbers = direct_numbers(array);
        for (link, number) in self.direct.iter_mut().zip(numbers) {
            free_data(link, array, io, number.super_block);
        }
        let first = array.geometry.direct_super_blocks;
        for (link, number) in self.supers.iter_mut().zip(first..) {
            let Some(block) = Super::load(link, array, io, number)? else { continue };
            for link in &mut block.blocks {
                free_data(link, array, io, number);
            }
            if link.address != UNDEFINED {
                let size = array.geometry.super_block_size(number, link.address)?;
                io.free(link.address, size as u64);
            }
        }
        Ok(())
    }
}

impl Super {
    /// A new super block, counted in the statistics.
    fn create(array: &mut Array, number: usize) -> Result<Self> {
        let block = SuperBlock::empty(&array.geometry, number, UNDEFINED)?;
        let size = array.geometry.super_block_size(number, UNDEFINED)? as u64;
        let statistics = &mut array.statistics;
        statistics.super_blocks = statistics.super_blocks.saturating_add(1);
        statistics.super_block_bytes = statistics.super_block_bytes.saturating_add(size);
        array.dirty = true;
        Ok(Self { dirty: true, ..Self::new(block, number) })
    }

    fn new(block: SuperBlock, number: usize) -> Self {
        Self {
            number,
            offset: block.offset,
            bitmap: block.bitmap,
            blocks: block.data_blocks.into_iter().map(Link::to).collect(),
            dirty: false,
        }
    }

    fn load<'a>(
        link: &'a mut Link<Self>,
        array: &mut Array,
        io: &dyn MetadataIo,
        number: usize,
    ) -> Result<Option<&'a mut Self>> {
        if link.block.is_none() && link.address != UNDEFINED {
            let (address, owner, geometry) = (link.address, array.owner(), &array.geometry);
            let block = array.claims.claim(address, "extensible array super block", || {
                let bytes = io.read(address, geometry.super_block_size(number, address)?)?;
                Ok(SuperBlock::decode(&bytes, address, io.sizes(), owner, geometry, number)?)
            })?;
            link.block = Some(Box::new(Self::new(block, number)));
        }
        Ok(link.block.as_deref_mut())
    }

    fn entries(
        &mut self,
        array: &mut Array,
        io: &dyn MetadataIo,
        number: Number,
        entry: u64,
        create: bool,
    ) -> Result<Option<(&mut Entries, u64)>> {
        let Some(link) = self.blocks.get_mut(number.data_block) else { return Ok(None) };
        if create && !link.exists() {
            link.block = Some(Box::new(Data::create(array, number)?));
            self.dirty = true;
        }
        let address = link.address;
        let Some(block) = Data::load(link, array, io, number)? else { return Ok(None) };
        let pages = array.geometry.block_pages(self.number);
        if pages == 0 {
            return Ok(Some((block.whole(), entry)));
        }
        let (page, entry) =
            (entry / array.geometry.page_entries, entry % array.geometry.page_entries);
        let bit = number.data_block as u64 * pages + page;
        if !page_exists(&self.bitmap, bit) {
            if !create {
                return Ok(None);
            }
            block.create_page(array, page)?;
            set_page(&mut self.bitmap, bit);
            self.dirty = true;
        }
        Ok(Some((block.page(array, io, address, page)?, entry)))
    }

    fn for_each(
        &mut self,
        array: &mut Array,
        io: &dyn MetadataIo,
        start: u64,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>> {
        let pages = array.geometry.block_pages(self.number);
        for (data_block, link) in self.blocks.iter_mut().enumerate() {
            let number = Number { super_block: self.number, data_block };
            if is_before(array, number, start) {
                continue;
            }
            let address = link.address;
            let Some(block) = Data::load(link, array, io, number)? else { continue };
            let first = array.geometry.first_slot(self.number, data_block).unwrap_or(u64::MAX);
            if pages == 0 && array.visit(block.whole(), first, start, visit)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            for page in 0..pages {
                if !page_exists(&self.bitmap, data_block as u64 * pages + page) {
                    continue;
                }
                let first = first.saturating_add(page * array.geometry.page_entries);
                if first.saturating_add(array.geometry.page_entries) <= start {
                    continue;
                }
                let entries = block.page(array, io, address, page)?;
                if array.visit(entries, first, start, visit)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn commit(&mut self, address: u64, array: &Array, io: &dyn MetadataIo) -> Result<()> {
        for (data_block, link) in self.blocks.iter_mut().enumerate() {
            let number = Number { super_block: self.number, data_block };
            commit_data(link, array, io, number)?;
        }
        if !self.dirty {
            return Ok(());
        }
        let block = SuperBlock {
            offset: self.offset,
            bitmap: self.bitmap.clone(),
            data_blocks: self.blocks.iter().map(|link| link.address).collect(),
        };
        let mut bytes = Vec::new();
        block.encode(array.owner(), io.sizes(), &array.geometry, &mut bytes);
        io.stage(address, bytes);
        self.dirty = false;
        Ok(())
    }
}

/// Whether all slots of a data block come before a slot.
fn is_before(array: &Array, Number { super_block, data_block }: Number, slot: u64) -> bool {
    let first = array.geometry.first_slot(super_block, data_block);
    let entries = array.geometry.block_entries(super_block);
    let end = first.zip(entries).and_then(|(first, entries)| first.checked_add(entries));
    end.is_some_and(|end| end <= slot)
}

/// Drops unchanged parts of a data block.
fn trim_data(link: &mut Link<Data>, array: &mut Array) {
    let Some(block) = &mut link.block else { return };
    block.trim();
    if block.is_dirty() {
        array.loaded += block.memory();
        return;
    }
    array.claims.release(link.address);
    link.block = None;
}

/// The data blocks that the index block lists.
fn direct_numbers(array: &Array) -> impl Iterator<Item = Number> + use<> {
    let geometry = array.geometry;
    (0..geometry.direct_super_blocks).flat_map(move |super_block| {
        let blocks = geometry.blocks(super_block).unwrap_or_default() as usize;
        (0..blocks).map(move |data_block| Number { super_block, data_block })
    })
}

fn commit_data(
    link: &mut Link<Data>,
    array: &Array,
    io: &dyn MetadataIo,
    number: Number,
) -> Result<()> {
    if !link.block.as_ref().is_some_and(|block| block.is_dirty()) {
        return Ok(());
    }
    let size = array.geometry.block_size(number.super_block).unwrap_or(u64::MAX);
    let address = link.allocate(io, DataKind::LocalHeap, size)?;
    match &mut link.block {
        Some(block) => block.commit(address, array, io, number),
        None => Ok(()),
    }
}

fn free_data(link: &mut Link<Data>, array: &Array, io: &dyn MetadataIo, super_block: usize) {
    if let (true, Some(size)) = (link.address != UNDEFINED, array.geometry.block_size(super_block))
    {
        io.free(link.address, size);
    }
    *link = Link::to(UNDEFINED);
}
