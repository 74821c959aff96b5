//! The fixed array: one entry for every chunk of the maximum extent.
//!
//! ```text
//! FAHD  signature 4, version, client id, entry size, page bits, entries L, data block O, checksum 4
//! FADB  signature 4, version, client id, header O, [page bitmap], entries or nothing, checksum 4
//!       then, if there are more entries than a page holds: pages of (entries, checksum 4)
//! ```
//!
//! Slots run row-major over the chunk counts of the maximum extent. The last page is as short as
//! its entries; all others are full. This module does the arithmetic and the bytes of one block; it
//! does not know records.

use super::RecordKind;
use super::block::{ArrayOwner, CHECKSUM, LARGEST_PAGE_BITS, Opening, in_memory};
use crate::{DecodeError, Sizes};
use pumice_bytes::{Reader, Writer};

const HEADER: &str = "fixed array header";
const BLOCK: &str = "fixed array data block";

/// The page bits that new arrays get: pages of 1024 entries.
pub const PAGE_BITS: u8 = 10;

/// The header of a fixed array.
///
/// ```
/// use pumice_format::{Sizes, index::{RecordKind, fixed_array::FixedArrayHeader}};
/// let kind = RecordKind::Structured { sections: 2 };
/// let header = FixedArrayHeader { kind, entry_size: 18, page_bits: 10, entries: 2, data_block: 0x71c };
/// let mut bytes = Vec::new();
/// header.encode(Sizes::default(), &mut bytes);
/// assert_eq!(bytes.len(), FixedArrayHeader::size(Sizes::default()));
/// assert_eq!(FixedArrayHeader::decode(&bytes, 0x700, Sizes::default(), kind)?, header);
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedArrayHeader {
    /// The kind of the entries.
    pub kind: RecordKind,
    /// Bytes of an entry.
    pub entry_size: u8,
    /// A page holds two to the power of this many entries.
    pub page_bits: u8,
    /// The number of entries.
    pub entries: u64,
    /// The data block; undefined until an entry is set.
    pub data_block: u64,
}

impl FixedArrayHeader {
    /// Bytes of a header.
    pub fn size(sizes: Sizes) -> usize {
        Opening::SIZE + 2 + usize::from(sizes.length) + usize::from(sizes.offset) + CHECKSUM
    }

    /// Appends the header.
    pub fn encode(&self, sizes: Sizes, out: &mut Vec<u8>) {
        let start = out.len();
        let version = self.kind.header_version();
        Opening { signature: b"FAHD", version, kind: self.kind }.encode(out);
        out.put_u8(self.entry_size);
        out.put_u8(self.page_bits);
        out.put_uint(self.entries, usize::from(sizes.length));
        out.put_uint(self.data_block, usize::from(sizes.offset));
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
        Opening::decode(&mut reader, b"FAHD", kind)?;
        let entry_size = reader.u8()?;
        let page_bits = reader.u8()?;
        let entries = reader.uint(usize::from(sizes.length))?;
        let data_block = reader.offset(usize::from(sizes.offset))?;
        reader.checksum()?;
        Ok(Self { kind, entry_size, page_bits, entries, data_block })
    }
}

/// The offsets in the data block of a fixed array.
///
/// ```
/// use pumice_format::index::fixed_array::FixedArrayGeometry;
/// let small = FixedArrayGeometry::new(10, 18, 10, 8, 0)?;
/// assert_eq!((small.pages, small.block_size), (0, 14 + 10 * 18 + 4));
/// let large = FixedArrayGeometry::new(2500, 8, 10, 8, 0)?;
/// assert_eq!((large.pages, large.page_length(2)), (3, 452));
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedArrayGeometry {
    /// The number of entries.
    pub entries: u64,
    /// Bytes of an entry.
    pub entry_size: usize,
    /// Entries of a full page.
    pub page_entries: u64,
    /// Number of pages; 0 if the entries stand in the block itself.
    pub pages: u64,
    /// Bytes of the page bitmap; 0 without pages.
    pub bitmap_size: usize,
    /// Bytes that are read and checked together at the block's address: everything, or all but the pages.
    pub head_size: usize,
    /// Bytes of the whole block, pages included.
    pub block_size: u64,
}

impl FixedArrayGeometry {
    /// The geometry of an array whose header stands at `address`.
    pub fn new(
        entries: u64,
        entry_size: usize,
        page_bits: u8,
        offset_size: u8,
        address: u64,
    ) -> Result<Self, DecodeError> {
        if page_bits > LARGEST_PAGE_BITS {
            let expected = format!("at most {LARGEST_PAGE_BITS} page bits");
            return Err(DecodeError::new(HEADER, address, expected, page_bits));
        }
        let page_entries = 1 << page_bits;
        let pages = if entries > page_entries { entries.div_ceil(page_entries) } else { 0 };
        let bitmap_size = in_memory(Some(pages.div_ceil(8)), HEADER, address)?;
        let prefix = Opening::SIZE + usize::from(offset_size) + CHECKSUM;
        let prefix = prefix as u64 + bitmap_size as u64;
        let stored = entries.checked_mul(entry_size as u64);
        let sums = pages.checked_mul(CHECKSUM as u64);
        let block_size = stored.zip(sums).and_then(|(a, b)| a.checked_add(b)?.checked_add(prefix));
        let Some(block_size) = block_size.filter(|&size| i64::try_from(size).is_ok()) else {
            return Err(DecodeError::new(HEADER, address, "entries that fit a file", entries));
        };
        let head_size = if pages > 0 { prefix } else { block_size };
        let head_size = in_memory(Some(head_size), HEADER, address)?;
        Ok(Self { entries, entry_size, page_entries, pages, bitmap_size, head_size, block_size })
    }

    /// Entries of page `page`: fewer in the last one.
    pub fn page_length(&self, page: u64) -> u64 {
        let before = page.saturating_mul(self.page_entries);
        self.entries.saturating_sub(before).min(self.page_entries)
    }

    /// The offset of `page` from the start of the block.
    pub fn page_offset(&self, page: u64) -> u64 {
        let full = self.page_entries.saturating_mul(self.entry_size as u64) + CHECKSUM as u64;
        page.saturating_mul(full).saturating_add(self.head_size as u64)
    }

    /// Bytes of page `page`, its checksum included.
    pub fn page_size(&self, page: u64, address: u64) -> Result<usize, DecodeError> {
        let entries = self.page_length(page).checked_mul(self.entry_size as u64);
        in_memory(entries.and_then(|bytes| bytes.checked_add(CHECKSUM as u64)), BLOCK, address)
    }
}

/// The part of a data block that is not pages.
///
/// ```
/// # use pumice_format::{Sizes, index::{RecordKind, block::ArrayOwner, fixed_array::*}};
/// let geometry = FixedArrayGeometry::new(2, 8, 10, 8, 0x700)?;
/// let block = FixedArrayBlock { bitmap: Vec::new(), entries: vec![0xFF; 16] };
/// let mut bytes = Vec::new();
/// let owner = ArrayOwner { header: 0x700, kind: RecordKind::Plain };
/// block.encode(owner, Sizes::default(), &mut bytes);
/// assert_eq!(FixedArrayBlock::decode(&bytes, 0x71c, Sizes::default(), owner, &geometry)?, block);
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FixedArrayBlock {
    /// The bitmap of existing pages; empty without pages.
    pub bitmap: Vec<u8>,
    /// The entries, encoded; empty with pages.
    pub entries: Vec<u8>,
}

impl FixedArrayBlock {
    /// Appends the block, without pages.
    pub fn encode(&self, owner: ArrayOwner, sizes: Sizes, out: &mut Vec<u8>) {
        let start = out.len();
        owner.encode(b"FADB", owner.kind.header_version(), sizes, out);
        out.put_bytes(&self.bitmap);
        out.put_bytes(&self.entries);
        out.put_checksum(start);
    }

    /// Reads the first [`head_size`](FixedArrayGeometry::head_size) bytes of the block at `address`.
    pub fn decode(
        bytes: &[u8],
        address: u64,
        sizes: Sizes,
        owner: ArrayOwner,
        geometry: &FixedArrayGeometry,
    ) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(BLOCK, address, bytes);
        owner.check(&mut reader, b"FADB", sizes)?;
        let bitmap = reader.take(geometry.bitmap_size)?.to_vec();
        let entries = match geometry.pages {
            0 => reader.take(geometry.page_size(0, address)?.saturating_sub(CHECKSUM))?.to_vec(),
            _ => Vec::new(),
        };
        reader.checksum()?;
        Ok(Self { bitmap, entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_the_bitmap_and_the_last_is_short() {
        let geometry = FixedArrayGeometry::new(2500, 8, 10, 8, 0).unwrap();
        assert_eq!((geometry.bitmap_size, geometry.head_size), (1, 14 + 1 + 4));
        assert_eq!(geometry.page_offset(2), 19 + 2 * (1024 * 8 + 4));
        assert_eq!(geometry.page_size(2, 0).unwrap(), 452 * 8 + 4);
        assert_eq!(geometry.block_size, 19 + 2500 * 8 + 3 * 4);
        let exact = FixedArrayGeometry::new(1024, 8, 10, 8, 0).unwrap();
        assert_eq!((exact.pages, exact.head_size as u64), (0, exact.block_size));
    }

    #[test]
    fn arrays_larger_than_files_are_refused() {
        assert!(FixedArrayGeometry::new(u64::MAX, 8, 10, 8, 0).is_err());
        assert!(FixedArrayGeometry::new(1 << 60, 8, 10, 8, 0).is_err());
        assert!(FixedArrayGeometry::new(1 << 30, 8, 30, 8, 0).is_err());
    }

    #[test]
    fn a_header_of_another_kind_or_version_is_refused() {
        let kind = RecordKind::Filtered;
        let header =
            FixedArrayHeader { kind, entry_size: 14, page_bits: 10, entries: 5, data_block: 9 };
        let sizes = Sizes { offset: 4, length: 4 };
        let mut bytes = Vec::new();
        header.encode(sizes, &mut bytes);
        assert_eq!(bytes.len(), 20);
        assert_eq!(bytes[4], 0, "dense arrays have version 0");
        assert_eq!(FixedArrayHeader::decode(&bytes, 0, sizes, kind).unwrap(), header);
        assert!(FixedArrayHeader::decode(&bytes, 0, sizes, RecordKind::Plain).is_err());
        assert!(FixedArrayHeader::decode(&bytes[..19], 0, sizes, kind).is_err());
        bytes[4] = 2;
        let error = FixedArrayHeader::decode(&bytes, 0x40, sizes, kind).unwrap_err();
        assert_eq!(
            error.to_string(),
            "fixed array header at 0x44: expected version 0 or 1, found 2"
        );
    }
}
