//! The index block, super blocks and data blocks of an extensible array: their bytes.
//!
//! [`super::extensible_array`] has the picture and the arithmetic. Entries stay encoded here.

use super::block::{ArrayOwner, CHECKSUM};
use super::extensible_array::ExtensibleArrayGeometry;
use crate::{DecodeError, Sizes};
use pumice_bytes::{Reader, Writer};

/// The root of an extensible array.
///
/// ```
/// # use pumice_format::{Sizes, index::{RecordKind, block::ArrayOwner, extensible_array::*, extensible_block::*}};
/// let sizes = Sizes::default();
/// let geometry = ExtensibleArrayGeometry::new(Default::default(), 8, 8, 0)?;
/// let block = IndexBlock::empty(&geometry, &[0xFF; 8]);
/// let owner = ArrayOwner { header: 0x700, kind: RecordKind::Plain };
/// let mut bytes = Vec::new();
/// block.encode(owner, sizes, &mut bytes);
/// assert_eq!(bytes.len(), geometry.index_block_size());
/// assert_eq!(IndexBlock::decode(&bytes, 0x800, sizes, owner, &geometry)?, block);
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexBlock {
    /// The first entries, encoded.
    pub entries: Vec<u8>,
    /// Data blocks of the first super blocks.
    pub data_blocks: Vec<u64>,
    /// The later super blocks.
    pub super_blocks: Vec<u64>,
}

impl IndexBlock {
    /// A block whose entries are all `unset`, and which refers to nothing.
    pub fn empty(geometry: &ExtensibleArrayGeometry, unset: &[u8]) -> Self {
        Self {
            entries: unset.repeat(usize::from(geometry.parameters.index_entries)),
            data_blocks: vec![crate::UNDEFINED; geometry.direct_blocks],
            super_blocks: vec![crate::UNDEFINED; geometry.super_blocks],
        }
    }

    /// Appends the block.
    pub fn encode(&self, owner: ArrayOwner, sizes: Sizes, out: &mut Vec<u8>) {
        let start = out.len();
        owner.encode(b"EAIB", 0, sizes, out);
        out.put_bytes(&self.entries);
        for &address in self.data_blocks.iter().chain(&self.super_blocks) {
            out.put_uint(address, usize::from(sizes.offset));
        }
        out.put_checksum(start);
    }

    /// Reads the block at `address`.
    pub fn decode(
        bytes: &[u8],
        address: u64,
        sizes: Sizes,
        owner: ArrayOwner,
        geometry: &ExtensibleArrayGeometry,
    ) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("extensible array index block", address, bytes);
        owner.check(&mut reader, b"EAIB", sizes)?;
        let entries = usize::from(geometry.parameters.index_entries) * geometry.entry_size;
        let entries = reader.take(entries)?.to_vec();
        let data_blocks = addresses(&mut reader, geometry.direct_blocks as u64, sizes)?;
        let super_blocks = addresses(&mut reader, geometry.super_blocks as u64, sizes)?;
        reader.checksum()?;
        Ok(Self { entries, data_blocks, super_blocks })
    }
}

/// A super block that is a block of its own.
///
/// ```
/// # use pumice_format::{Sizes, index::{RecordKind, block::ArrayOwner, extensible_array::*, extensible_block::*}};
/// let sizes = Sizes::default();
/// let geometry = ExtensibleArrayGeometry::new(Default::default(), 8, 8, 0)?;
/// let block = SuperBlock::empty(&geometry, 4, 0)?;
/// let owner = ArrayOwner { header: 0x700, kind: RecordKind::Plain };
/// let mut bytes = Vec::new();
/// block.encode(owner, sizes, &geometry, &mut bytes);
/// assert_eq!(bytes.len(), geometry.super_block_size(4, 0)?);
/// assert_eq!(SuperBlock::decode(&bytes, 0x800, sizes, owner, &geometry, 4)?, block);
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuperBlock {
    /// The number of its first entry, those in the index block not counted.
    pub offset: u64,
    /// The bitmap of existing pages of its data blocks; empty if they have none.
    pub bitmap: Vec<u8>,
    /// Its data blocks.
    pub data_blocks: Vec<u64>,
}

impl SuperBlock {
    /// Super block number `number` without data blocks.
    pub fn empty(
        geometry: &ExtensibleArrayGeometry,
        number: usize,
        address: u64,
    ) -> Result<Self, DecodeError> {
        // The size holds the counts below, so both fit in memory if it does.
        geometry.super_block_size(number, address)?;
        let blocks = geometry.blocks(number).unwrap_or_default();
        Ok(Self {
            offset: geometry.first_entry(number).unwrap_or_default(),
            bitmap: vec![0; geometry.bitmap_size(number).unwrap_or_default() as usize],
            data_blocks: vec![crate::UNDEFINED; blocks as usize],
        })
    }

    /// Appends the block.
    pub fn encode(
        &self,
        owner: ArrayOwner,
        sizes: Sizes,
        geometry: &ExtensibleArrayGeometry,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        owner.encode(b"EASB", 0, sizes, out);
        out.put_uint(self.offset, geometry.offset_width());
        out.put_bytes(&self.bitmap);
        for &address in &self.data_blocks {
            out.put_uint(address, usize::from(sizes.offset));
        }
        out.put_checksum(start);
    }

    /// Reads super block number `number`, which stands at `address`.
    pub fn decode(
        bytes: &[u8],
        address: u64,
        sizes: Sizes,
        owner: ArrayOwner,
        geometry: &ExtensibleArrayGeometry,
        number: usize,
    ) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("extensible array super block", address, bytes);
        owner.check(&mut reader, b"EASB", sizes)?;
        let offset = reader.uint(geometry.offset_width())?;
        let bitmap = geometry.bitmap_size(number).unwrap_or(u64::MAX);
        let bitmap = reader.take(reader.count(bitmap, 1)?)?.to_vec();
        let blocks = geometry.blocks(number).unwrap_or(u64::MAX);
        let data_blocks = addresses(&mut reader, blocks, sizes)?;
        reader.checksum()?;
        Ok(Self { offset, bitmap, data_blocks })
    }
}

/// The part of a data block that is not pages.
///
/// ```
/// # use pumice_format::{Sizes, index::{RecordKind, block::ArrayOwner, extensible_array::*, extensible_block::*}};
/// let sizes = Sizes::default();
/// let geometry = ExtensibleArrayGeometry::new(Default::default(), 8, 8, 0)?;
/// let block = DataBlock { offset: 0, entries: vec![0xFF; 16 * 8] };
/// let owner = ArrayOwner { header: 0x700, kind: RecordKind::Plain };
/// let mut bytes = Vec::new();
/// block.encode(owner, sizes, &geometry, &mut bytes);
/// assert_eq!(bytes.len() as u64, geometry.block_size(0).unwrap());
/// assert_eq!(DataBlock::decode(&bytes, 0x800, sizes, owner, &geometry, 0)?, block);
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataBlock {
    /// The value of [`ExtensibleArrayGeometry::block_offset`]; not checked on reading.
    pub offset: u64,
    /// The entries, encoded; empty with pages.
    pub entries: Vec<u8>,
}

impl DataBlock {
    /// Appends the block, without pages.
    pub fn encode(
        &self,
        owner: ArrayOwner,
        sizes: Sizes,
        geometry: &ExtensibleArrayGeometry,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        owner.encode(b"EADB", 0, sizes, out);
        out.put_uint(self.offset, geometry.offset_width());
        out.put_bytes(&self.entries);
        out.put_checksum(start);
    }

    /// Reads the first [`block_head_size`](ExtensibleArrayGeometry::block_head_size) bytes of a data
    /// block of super block number `super_block`.
    pub fn decode(
        bytes: &[u8],
        address: u64,
        sizes: Sizes,
        owner: ArrayOwner,
        geometry: &ExtensibleArrayGeometry,
        super_block: usize,
    ) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("extensible array data block", address, bytes);
        owner.check(&mut reader, b"EADB", sizes)?;
        let offset = reader.uint(geometry.offset_width())?;
        let entries = match geometry.block_pages(super_block) {
            0 => {
                let all = geometry.block_head_size(super_block, address)?;
                reader.take(all.saturating_sub(reader.position() + CHECKSUM))?
            }
            _ => &[],
        };
        reader.checksum()?;
        Ok(Self { offset, entries: entries.to_vec() })
    }
}

fn addresses(reader: &mut Reader<'_>, count: u64, sizes: Sizes) -> Result<Vec<u64>, DecodeError> {
    let width = usize::from(sizes.offset);
    (0..reader.count(count, width)?).map(|_| reader.offset(width)).collect()
}
