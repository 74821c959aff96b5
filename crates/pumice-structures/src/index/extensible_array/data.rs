//! Data blocks of an extensible array, in memory: entries, or pages of them.
//!
//! Which pages exist stands in the super block's bitmap. A block listed in the index block never
//! has pages.

use super::{Array, Link};
use crate::index::entries::{Entries, PAGE_OVERHEAD};
use pumice_bytes::DecodeError;
use pumice_format::UNDEFINED;
use pumice_format::index::block::{decode_page, encode_page};
use pumice_format::index::extensible_block::DataBlock;
use pumice_medium::MetadataIo;
use pumice_medium::Result;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The number of a data block, and of its super block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number {
    pub(super) super_block: usize,
    pub(super) data_block: usize,
}

#[derive(Debug)]
pub(super) struct Data {
    /// Whether the part before the pages was never staged.
    new: bool,
    /// All entries, if they are not in pages.
    whole: Entries,
    pages: BTreeMap<u64, Entries>,
}

impl Data {
    /// A new block without entries, counted in the statistics.
    pub(super) fn create(array: &mut Array, number: Number) -> Result<Self> {
        let geometry = &array.geometry;
        // Checks that what is allocated below can be.
        geometry.block_head_size(number.super_block, UNDEFINED)?;
        let entries = geometry.block_entries(number.super_block).unwrap_or_default();
        let size = geometry.block_size(number.super_block).unwrap_or_default();
        let paged = geometry.block_pages(number.super_block) > 0;
        let whole = Entries::unset(&array.format, if paged { 0 } else { entries })?;
        let statistics = &mut array.statistics;
        statistics.data_blocks = statistics.data_blocks.saturating_add(1);
        statistics.data_block_bytes = statistics.data_block_bytes.saturating_add(size);
        statistics.entries = statistics.entries.saturating_add(entries);
        array.dirty = true;
        array.loaded += whole.bytes.len() + PAGE_OVERHEAD;
        Ok(Self { new: true, whole, pages: BTreeMap::new() })
    }

    /// The block behind `link`, loaded if it was not; `None` if it does not exist.
    pub(super) fn load<'a>(
        link: &'a mut Link<Self>,
        array: &mut Array,
        io: &dyn MetadataIo,
        number: Number,
    ) -> Result<Option<&'a mut Self>> {
        if link.block.is_none() && link.address != UNDEFINED {
            let (address, owner, geometry) = (link.address, array.owner(), &array.geometry);
            let super_block = number.super_block;
            let block = array.claims.claim(address, "extensible array data block", || {
                let bytes = io.read(address, geometry.block_head_size(super_block, address)?)?;
                let sizes = io.sizes();
                Ok(DataBlock::decode(&bytes, address, sizes, owner, geometry, super_block)?)
            })?;
            let whole = Entries::loaded(block.entries);
            array.loaded += whole.bytes.len() + PAGE_OVERHEAD;
            link.block = Some(Box::new(Self { new: false, whole, pages: BTreeMap::new() }));
        }
        Ok(link.block.as_deref_mut())
    }

    /// All entries of a block without pages.
    pub(super) fn whole(&mut self) -> &mut Entries {
        &mut self.whole
    }

    /// A page that the bitmap says does not exist yet.
    pub(super) fn create_page(&mut self, array: &mut Array, page: u64) -> Result<()> {
        let entries = Entries::unset(&array.format, array.geometry.page_entries)?;
        array.loaded += entries.bytes.len() + PAGE_OVERHEAD;
        self.pages.insert(page, entries);
        Ok(())
    }

    /// A page that the bitmap says exists. `address` is the block's.
    pub(super) fn page(
        &mut self,
        array: &mut Array,
        io: &dyn MetadataIo,
        address: u64,
        page: u64,
    ) -> Result<&mut Entries> {
        match self.pages.entry(page) {
            Entry::Occupied(loaded) => Ok(loaded.into_mut()),
            Entry::Vacant(missing) => {
                let address = page_address(array, address, page)?;
                let bytes = io.read(address, array.geometry.page_size(address)?)?;
                let entries = Entries::loaded(decode_page(&bytes, address)?.to_vec());
                array.loaded += entries.bytes.len() + PAGE_OVERHEAD;
                Ok(missing.insert(entries))
            }
        }
    }

    /// Bytes of its entries in memory.
    pub(super) fn memory(&self) -> usize {
        let pages = self.pages.values().map(|page| page.bytes.len() + PAGE_OVERHEAD);
        self.whole.bytes.len() + PAGE_OVERHEAD + pages.sum::<usize>()
    }

    /// Drops pages that have not changed.
    pub(super) fn trim(&mut self) {
        self.pages.retain(|_, page| page.dirty);
    }

    pub(super) fn is_dirty(&self) -> bool {
        self.new || self.whole.dirty || self.pages.values().any(|page| page.dirty)
    }

    /// Stages changed parts of the block at `address`.
    pub(super) fn commit(
        &mut self,
        address: u64,
        array: &Array,
        io: &dyn MetadataIo,
        number: Number,
    ) -> Result<()> {
        for (&page, entries) in self.pages.iter_mut().filter(|(_, entries)| entries.dirty) {
            let mut bytes = Vec::with_capacity(entries.bytes.len() + 4);
            encode_page(&entries.bytes, &mut bytes);
            io.stage(page_address(array, address, page)?, bytes);
            entries.dirty = false;
        }
        if self.new || self.whole.dirty {
            let offset = array.geometry.block_offset(number.super_block, number.data_block);
            let size = array.geometry.block_head_size(number.super_block, address)?;
            let mut bytes = Vec::with_capacity(size);
            // Lent to the encoder, not copied.
            let block = DataBlock { offset, entries: std::mem::take(&mut self.whole.bytes) };
            block.encode(array.owner(), io.sizes(), &array.geometry, &mut bytes);
            io.stage(address, bytes);
            self.whole.bytes = block.entries;
            (self.new, self.whole.dirty) = (false, false);
        }
        Ok(())
    }
}

/// The address of a page of the block at `address`.
fn page_address(array: &Array, address: u64, page: u64) -> Result<u64> {
    let place = array.geometry.page_offset(page);
    place.and_then(|place| address.checked_add(place)).ok_or_else(|| {
        DecodeError::new("extensible array data block", address, "pages in a file", page).into()
    })
}
