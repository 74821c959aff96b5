//! The extensible array: entries for chunks along one axis that may grow without limit.
//!
//! ```text
//! EAHD  signature 4, version, client id, entry size, maximum bits, index block entries,
//!       data block minimum, super block minimum, page bits, six statistics L, index block O, checksum 4
//! EAIB  signature 4, version, client id, header O, entries, data blocks O.., super blocks O.., checksum 4
//! EASB  signature 4, version, client id, header O, block offset, [page bitmap], data blocks O.., checksum 4
//! EADB  signature 4, version, client id, header O, block offset, entries or nothing, checksum 4
//!       then, if it is larger than a page: pages of (entries, checksum 4)
//! ```
//!
//! The first few entries stand in the index block. All others stand in data blocks, grouped into
//! super blocks: super block `u` has `2^(u/2)` data blocks of `minimum * 2^((u+1)/2)` entries. The
//! data blocks of the first super blocks are listed in the index block itself; of later ones, in a
//! block of their own. [`ExtensibleArrayGeometry`] is that arithmetic; [`super::extensible_block`]
//! has the blocks.

use super::RecordKind;
use super::block::{CHECKSUM, LARGEST_PAGE_BITS, Opening, in_memory};
use crate::{DecodeError, Sizes};
use pumice_bytes::{Reader, Writer};

const HEADER: &str = "extensible array header";

/// The growth of an extensible array.
///
/// ```
/// let parameters = pumice_format::index::extensible_array::ExtensibleArrayParameters::default();
/// assert_eq!((parameters.maximum_bits, parameters.index_entries), (32, 4));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtensibleArrayParameters {
    /// Slots have fewer bits than this.
    pub maximum_bits: u8,
    /// Entries in the index block.
    pub index_entries: u8,
    /// The least number of entries of a data block; a power of two.
    pub data_block_minimum: u8,
    /// The least number of data blocks of a super block that is a block of its own; a power of two.
    pub super_block_minimum: u8,
    /// A page holds two to the power of this many entries.
    pub page_bits: u8,
}

impl Default for ExtensibleArrayParameters {
    fn default() -> Self {
        Self {
            maximum_bits: 32,
            index_entries: 4,
            data_block_minimum: 16,
            super_block_minimum: 4,
            page_bits: 10,
        }
    }
}

/// The counts in the header, all of them since the array was created: blocks are never freed.
///
/// ```
/// let none = pumice_format::index::extensible_array::ExtensibleArrayStatistics::default();
/// assert_eq!(none.slots_set, 0);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtensibleArrayStatistics {
    /// Super blocks that are blocks of their own.
    pub super_blocks: u64,
    /// Their bytes.
    pub super_block_bytes: u64,
    /// Data blocks.
    pub data_blocks: u64,
    /// Their bytes, pages included.
    pub data_block_bytes: u64,
    /// One more than the highest slot ever set; slots from there on are unset.
    pub slots_set: u64,
    /// Entries that have room in some block.
    pub entries: u64,
}

/// The header of an extensible array.
///
/// ```
/// use pumice_format::{Sizes, UNDEFINED, index::{RecordKind, extensible_array::*}};
/// let header = ExtensibleArrayHeader {
///     kind: RecordKind::Plain,
///     entry_size: 8,
///     parameters: ExtensibleArrayParameters::default(),
///     statistics: ExtensibleArrayStatistics::default(),
///     index_block: UNDEFINED,
/// };
/// let mut bytes = Vec::new();
/// header.encode(Sizes::default(), &mut bytes);
/// assert_eq!(bytes.len(), 72);
/// let kind = RecordKind::Plain;
/// assert_eq!(ExtensibleArrayHeader::decode(&bytes, 0, Sizes::default(), kind)?, header);
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensibleArrayHeader {
    /// The kind of the entries.
    pub kind: RecordKind,
    /// Bytes of an entry.
    pub entry_size: u8,
    /// The growth of the array.
    pub parameters: ExtensibleArrayParameters,
    /// The present counts.
    pub statistics: ExtensibleArrayStatistics,
    /// The index block; undefined until an entry is set.
    pub index_block: u64,
}

impl ExtensibleArrayHeader {
    /// Bytes of a header.
    pub fn size(sizes: Sizes) -> usize {
        Opening::SIZE + 6 + 6 * usize::from(sizes.length) + usize::from(sizes.offset) + CHECKSUM
    }

    /// Appends the header.
    pub fn encode(&self, sizes: Sizes, out: &mut Vec<u8>) {
        let start = out.len();
        let version = self.kind.header_version();
        Opening { signature: b"EAHD", version, kind: self.kind }.encode(out);
        let parameters = &self.parameters;
        out.put_u8(self.entry_size);
        out.put_u8(parameters.maximum_bits);
        out.put_u8(parameters.index_entries);
        out.put_u8(parameters.data_block_minimum);
        out.put_u8(parameters.super_block_minimum);
        out.put_u8(parameters.page_bits);
        let statistics = &self.statistics;
        for count in [
            statistics.super_blocks,
            statistics.super_block_bytes,
            statistics.data_blocks,
            statistics.data_block_bytes,
            statistics.slots_set,
            statistics.entries,
        ] {
            out.put_uint(count, usize::from(sizes.length));
        }
        out.put_uint(self.index_block, usize::from(sizes.offset));
        out.put_checksum(start);
    }

    /// Reads the header at `address`, which must hold entries of `kind`.
    pub fn decode(
        bytes: &[u8],
        address: u64,
        sizes: Sizes,
        kind: RecordKind,
    ) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(HEADER, address, bytes);
        Opening::decode(&mut reader, b"EAHD", kind)?;
        let entry_size = reader.u8()?;
        let parameters = ExtensibleArrayParameters {
            maximum_bits: reader.u8()?,
            index_entries: reader.u8()?,
            data_block_minimum: reader.u8()?,
            super_block_minimum: reader.u8()?,
            page_bits: reader.u8()?,
        };
        let length = usize::from(sizes.length);
        let statistics = ExtensibleArrayStatistics {
            super_blocks: reader.uint(length)?,
            super_block_bytes: reader.uint(length)?,
            data_blocks: reader.uint(length)?,
            data_block_bytes: reader.uint(length)?,
            slots_set: reader.uint(length)?,
            entries: reader.uint(length)?,
        };
        let index_block = reader.offset(usize::from(sizes.offset))?;
        reader.checksum()?;
        Ok(Self { kind, entry_size, parameters, statistics, index_block })
    }
}

/// The place of an entry.
///
/// ```
/// # use pumice_format::index::extensible_array::*;
/// let geometry = ExtensibleArrayGeometry::new(Default::default(), 8, 8, 0)?;
/// assert_eq!(geometry.place(3), Some(EntryPlace::Index { entry: 3 }));
/// let place = EntryPlace::Data { super_block: 1, data_block: 0, entry: 2 };
/// assert_eq!(geometry.place(4 + 16 + 2), Some(place));
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryPlace {
    /// In the index block.
    Index {
        /// The number of the entry in it.
        entry: usize,
    },
    /// In a data block.
    Data {
        /// The super block, counted from the first one, whether it is a block of its own or not.
        super_block: usize,
        /// The data block in the super block.
        data_block: usize,
        /// The entry in the data block.
        entry: u64,
    },
}

/// The arithmetic of blocks, from the parameters alone.
///
/// ```
/// # use pumice_format::index::extensible_array::*;
/// let geometry = ExtensibleArrayGeometry::new(Default::default(), 18, 8, 0)?;
/// assert_eq!((geometry.direct_blocks, geometry.super_blocks), (6, 25));
/// assert_eq!(geometry.index_block_size(), 18 + 4 * 18 + 6 * 8 + 25 * 8);
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtensibleArrayGeometry {
    /// The parameters it follows from.
    pub parameters: ExtensibleArrayParameters,
    /// Bytes of an entry.
    pub entry_size: usize,
    /// Entries of a page.
    pub page_entries: u64,
    /// Super blocks whose data blocks are listed in the index block.
    pub direct_super_blocks: usize,
    /// Data blocks listed in the index block.
    pub direct_blocks: usize,
    /// Super blocks that are blocks of their own.
    pub super_blocks: usize,
    offset_size: u8,
}

impl ExtensibleArrayGeometry {
    /// The geometry of the array whose header stands at `address`; refuses parameters that make none.
    pub fn new(
        parameters: ExtensibleArrayParameters,
        entry_size: usize,
        offset_size: u8,
        address: u64,
    ) -> Result<Self, DecodeError> {
        let refuse = |expected: &'static str, found: u8| {
            Err(DecodeError::new(HEADER, address, expected, found))
        };
        let ExtensibleArrayParameters { maximum_bits, page_bits, .. } = parameters;
        if !(1..=64).contains(&maximum_bits) {
            return refuse("1 to 64 bits of slots", maximum_bits);
        }
        if !parameters.data_block_minimum.is_power_of_two() {
            return refuse("a power of two of entries", parameters.data_block_minimum);
        }
        let pointers = parameters.super_block_minimum;
        if pointers < 2 || !pointers.is_power_of_two() {
            return refuse("a power of two of data blocks", pointers);
        }
        if page_bits > LARGEST_PAGE_BITS {
            return refuse("at most 20 page bits", page_bits);
        }
        let bits = usize::from(maximum_bits);
        let all = (bits + 1).checked_sub(parameters.data_block_minimum.ilog2() as usize);
        let direct = 2 * pointers.ilog2() as usize;
        let Some(super_blocks) = all.and_then(|all| all.checked_sub(direct)) else {
            return refuse("more bits of slots", maximum_bits);
        };
        // The index block has no bitmap of pages, so its data blocks must not have pages.
        let geometry = Self {
            parameters,
            entry_size,
            page_entries: 1 << page_bits,
            direct_super_blocks: direct,
            direct_blocks: 2 * (usize::from(pointers) - 1),
            super_blocks,
            offset_size,
        };
        if geometry.block_pages(direct) > 0 {
            return refuse("larger pages", page_bits);
        }
        Ok(geometry)
    }

    /// The place of the entry for `slot`; `None` beyond the largest array.
    pub fn place(&self, slot: u64) -> Option<EntryPlace> {
        if self.parameters.maximum_bits < 64 && slot >> self.parameters.maximum_bits > 0 {
            return None;
        }
        let Some(slot) = slot.checked_sub(u64::from(self.parameters.index_entries)) else {
            return Some(EntryPlace::Index { entry: usize::try_from(slot).ok()? });
        };
        let minimum = u64::from(self.parameters.data_block_minimum);
        let super_block = (slot / minimum).checked_add(1)?.ilog2() as usize;
        if super_block >= self.direct_super_blocks + self.super_blocks {
            return None;
        }
        let within = slot.checked_sub(self.first_entry(super_block)?)?;
        let entries = self.block_entries(super_block)?;
        let data_block = usize::try_from(within / entries).ok()?;
        Some(EntryPlace::Data { super_block, data_block, entry: within % entries })
    }

    /// The first slot of a data block.
    pub fn first_slot(&self, super_block: usize, data_block: usize) -> Option<u64> {
        let before = self.block_entries(super_block)?.checked_mul(data_block as u64)?;
        let first = self.first_entry(super_block)?.checked_add(before)?;
        first.checked_add(u64::from(self.parameters.index_entries))
    }

    /// The number of the super block's first entry, those in the index block not counted.
    pub fn first_entry(&self, super_block: usize) -> Option<u64> {
        let blocks = 1u64.checked_shl(u32::try_from(super_block).ok()?)? - 1;
        blocks.checked_mul(u64::from(self.parameters.data_block_minimum))
    }

    /// The number of data blocks of a super block.
    pub fn blocks(&self, super_block: usize) -> Option<u64> {
        1u64.checked_shl(u32::try_from(super_block / 2).ok()?)
    }

    /// The number of data blocks before those of a super block.
    pub fn blocks_before(&self, super_block: usize) -> u64 {
        (0..super_block).filter_map(|before| self.blocks(before)).fold(0, u64::saturating_add)
    }

    /// The number of entries in each data block of a super block.
    pub fn block_entries(&self, super_block: usize) -> Option<u64> {
        let factor = 1u64.checked_shl(u32::try_from(super_block.div_ceil(2)).ok()?)?;
        factor.checked_mul(u64::from(self.parameters.data_block_minimum))
    }

    /// The number of pages in each data block of a super block; 0 if it is no larger than a page.
    pub fn block_pages(&self, super_block: usize) -> u64 {
        match self.block_entries(super_block) {
            Some(entries) if entries > self.page_entries => entries / self.page_entries,
            _ => 0,
        }
    }

    /// The offset field of a data block.
    ///
    /// Libraries in use count data blocks of the index block from the first of all, not from the
    /// first of their super block, and nobody reads the field: so do we, to write the same bytes.
    pub fn block_offset(&self, super_block: usize, data_block: usize) -> u64 {
        let direct = super_block < self.direct_super_blocks;
        let before = if direct { self.blocks_before(super_block) } else { 0 };
        let number = before.saturating_add(data_block as u64);
        let entries = self.block_entries(super_block).unwrap_or_default();
        self.first_entry(super_block)
            .unwrap_or_default()
            .saturating_add(number.saturating_mul(entries))
    }

    /// Bytes of the index block.
    pub fn index_block_size(&self) -> usize {
        let addresses = self.direct_blocks + self.super_blocks;
        self.prefix_size()
            + usize::from(self.parameters.index_entries) * self.entry_size
            + addresses * usize::from(self.offset_size)
    }

    /// Bytes of the page bitmap in a super block: whole bytes for each of its data blocks, though
    /// the bits of all blocks follow each other without gaps.
    pub fn bitmap_size(&self, super_block: usize) -> Option<u64> {
        self.blocks(super_block)?.checked_mul(self.block_pages(super_block).div_ceil(8))
    }

    /// Bytes of a super block.
    pub fn super_block_size(&self, super_block: usize, address: u64) -> Result<usize, DecodeError> {
        let size = || {
            let addresses = self.blocks(super_block)?.checked_mul(u64::from(self.offset_size))?;
            let prefix = (self.prefix_size() + self.offset_width()) as u64;
            addresses.checked_add(self.bitmap_size(super_block)?)?.checked_add(prefix)
        };
        in_memory(size(), "extensible array super block", address)
    }

    /// Bytes that are read and checked together at a data block's address: all, or all but the pages.
    pub fn block_head_size(&self, super_block: usize, address: u64) -> Result<usize, DecodeError> {
        let prefix = self.prefix_size() + self.offset_width();
        if self.block_pages(super_block) > 0 {
            return Ok(prefix);
        }
        let entries = self.block_entries(super_block);
        let bytes = entries.and_then(|entries| entries.checked_mul(self.entry_size as u64));
        let bytes = bytes.and_then(|bytes| bytes.checked_add(prefix as u64));
        in_memory(bytes, "extensible array data block", address)
    }

    /// Bytes of a whole data block, pages included.
    pub fn block_size(&self, super_block: usize) -> Option<u64> {
        let prefix = (self.prefix_size() + self.offset_width()) as u64;
        let entries = self.block_entries(super_block)?.checked_mul(self.entry_size as u64)?;
        let sums = self.block_pages(super_block).checked_mul(CHECKSUM as u64)?;
        entries.checked_add(sums)?.checked_add(prefix)
    }

    /// Bytes of a page, its checksum included.
    pub fn page_size(&self, address: u64) -> Result<usize, DecodeError> {
        let entries = self.page_entries.checked_mul(self.entry_size as u64);
        let size = entries.and_then(|bytes| bytes.checked_add(CHECKSUM as u64));
        in_memory(size, "extensible array data block", address)
    }

    /// The offset of `page` from the start of its data block.
    pub fn page_offset(&self, page: u64) -> Option<u64> {
        let entries = self.page_entries.checked_mul(self.entry_size as u64)?;
        let pages = page.checked_mul(entries.checked_add(CHECKSUM as u64)?)?;
        pages.checked_add((self.prefix_size() + self.offset_width()) as u64)
    }

    /// Bytes of the offset field in super blocks and data blocks.
    pub fn offset_width(&self) -> usize {
        usize::from(self.parameters.maximum_bits.div_ceil(8))
    }

    /// Bytes of opening, owner and checksum.
    fn prefix_size(&self) -> usize {
        Opening::SIZE + usize::from(self.offset_size) + CHECKSUM
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual() -> ExtensibleArrayGeometry {
        ExtensibleArrayGeometry::new(ExtensibleArrayParameters::default(), 8, 8, 0).unwrap()
    }

    #[test]
    fn places_follow_each_other_without_gaps() {
        let geometry = usual();
        let mut expected = 0;
        for super_block in 0..12 {
            for data_block in 0..geometry.blocks(super_block).unwrap() as usize {
                let first = geometry.first_slot(super_block, data_block).unwrap();
                assert_eq!(first, 4 + expected);
                let place = EntryPlace::Data { super_block, data_block, entry: 0 };
                assert_eq!(geometry.place(first), Some(place));
                expected += geometry.block_entries(super_block).unwrap();
            }
        }
    }

    #[test]
    fn the_largest_slot_has_as_many_bits_as_allowed() {
        let geometry = usual();
        assert!(geometry.place((1 << 32) - 1).is_some());
        assert_eq!(geometry.place(1 << 32), None);
        let parameters = ExtensibleArrayParameters { maximum_bits: 64, ..Default::default() };
        let wide = ExtensibleArrayGeometry::new(parameters, 8, 8, 0).unwrap();
        // Either an answer or none, never an overflow.
        for slot in [u64::MAX, u64::MAX / 2, 1 << 63, 1 << 60] {
            let _ = wide.place(slot);
        }
        let last = wide.direct_super_blocks + wide.super_blocks;
        assert!(wide.super_block_size(last, 0).is_err());
        let _ =
            (wide.block_size(last), wide.block_offset(last, usize::MAX), wide.first_entry(last));
    }

    #[test]
    fn data_blocks_of_more_than_a_page_have_pages() {
        let geometry = usual();
        assert_eq!(geometry.block_pages(12), 0);
        assert_eq!((geometry.block_pages(13), geometry.blocks(13)), (2, Some(64)));
        assert_eq!(geometry.bitmap_size(13), Some(64));
        assert_eq!(geometry.page_offset(1), Some(22 + 1024 * 8 + 4));
        assert_eq!(geometry.block_size(13), Some(22 + 2 * (1024 * 8 + 4)));
    }

    #[test]
    fn impossible_parameters_are_refused() {
        let usual = ExtensibleArrayParameters::default();
        for bad in [
            ExtensibleArrayParameters { maximum_bits: 0, ..usual },
            ExtensibleArrayParameters { maximum_bits: 65, ..usual },
            ExtensibleArrayParameters { maximum_bits: 3, ..usual },
            ExtensibleArrayParameters { data_block_minimum: 0, ..usual },
            ExtensibleArrayParameters { data_block_minimum: 12, ..usual },
            ExtensibleArrayParameters { super_block_minimum: 1, ..usual },
            ExtensibleArrayParameters { super_block_minimum: 6, ..usual },
            ExtensibleArrayParameters { page_bits: 63, ..usual },
            ExtensibleArrayParameters { page_bits: 3, ..usual },
        ] {
            assert!(ExtensibleArrayGeometry::new(bad, 8, 8, 0).is_err(), "{bad:?}");
        }
    }
}
