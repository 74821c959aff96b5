//! The fractal heap ("FRHP"): where dense links, dense attributes and shared messages are kept.
//!
//! ```text
//! FRHP  header: widths, limits, the doubling table's shape, its root
//! FHIB  indirect block: addresses of the blocks of a part of the heap
//! FHDB  direct block: objects, at offsets that count from the block's first byte
//! ```
//!
//! The *doubling table* cuts the heap's address space into rows of [`width`](HeapHeader::width)
//! blocks. Blocks of the first two rows have the starting size; each further row's are twice as
//! large. Blocks up to the largest direct size are direct, larger ones are tables of their own.
//!
//! Objects are named by a [`HeapId`]: *managed* ones lie in direct blocks, *huge* ones anywhere in
//! the file, *tiny* ones in the id itself.

mod encode;

use crate::messages::Pipeline;
use crate::{Context, DecodeError, UNDEFINED};
use pumice_bytes::{Reader, lookup3};

const HEADER: &str = "fractal heap header";
const INDIRECT: &str = "fractal heap indirect block";
const DIRECT: &str = "fractal heap direct block";
const ID: &str = "fractal heap id";

const KEYS_WRAPPED: u8 = 0x01;
const CHECKSUMMED: u8 = 0x02;
/// Longest id that has a short tiny form: one byte of length and up to 16 of data.
const LONGEST_SHORT_TINY: u16 = 18;
/// The largest exponent of a heap's address space.
const MAX_BITS: u16 = 64;

/// The header of a heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeapHeader {
    /// The address of the header: every block of the heap repeats it.
    pub address: u64,
    /// Bytes of an id.
    pub id_length: u16,
    /// Whether direct blocks have a checksum.
    pub checksummed: bool,
    /// Objects of more bytes are huge.
    pub max_managed_size: u32,
    /// The version 2 B-tree of huge objects, or undefined.
    pub huge_index_address: u64,
    /// The key that the last huge object got.
    pub last_huge_key: u64,
    /// Whether keys of huge objects are used a second time.
    pub keys_wrapped: bool,
    /// The free-space manager of the direct blocks, or undefined.
    pub free_space_address: u64,
    /// Bytes that are free in direct blocks, counting all that the root has room for.
    pub free_space: u64,
    /// Bytes of the heap's space that the root covers.
    pub managed_space: u64,
    /// Bytes of all direct blocks.
    pub allocated_space: u64,
    /// The offset of the next block in the heap's space; 0 while the root is direct.
    pub next_block: u64,
    /// The numbers of managed, huge and tiny objects.
    pub objects: [u64; 3],
    /// Bytes of huge and tiny objects.
    pub object_bytes: [u64; 2],
    /// Blocks in a row.
    pub width: u16,
    /// Bytes of a block of the first two rows, a power of two.
    pub starting_size: u64,
    /// Bytes of the largest direct block, a power of two.
    pub max_direct_size: u64,
    /// Bits of an offset in the heap.
    pub bits: u16,
    /// Rows that an indirect root begins with.
    pub starting_rows: u16,
    /// The root block, or undefined.
    pub root_address: u64,
    /// Rows of the root, if it is indirect; 0 if it is direct.
    pub root_rows: u16,
    /// Stored size and filter mask of a direct root, with filters.
    pub root_filtered: Option<(u64, u32)>,
    /// The filters of blocks and huge objects; empty for none.
    pub pipeline: Pipeline,
}

/// The creation parameters of libhdf5's heaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapShape {
    /// Bytes of an id.
    pub id_length: u16,
    /// Bytes of a block of the first two rows.
    pub starting_size: u64,
    /// Bits of an offset in the heap.
    pub bits: u16,
}

impl HeapShape {
    /// The heap of a group's links.
    pub const LINKS: Self = Self { id_length: 7, starting_size: 512, bits: 32 };
    /// The heap of an object's attributes.
    pub const ATTRIBUTES: Self = Self { id_length: 8, starting_size: 1024, bits: 40 };
    /// The heap of messages that objects share.
    pub const MESSAGES: Self = Self { id_length: 8, starting_size: 1024, bits: 32 };
}

/// A block that an indirect block names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapChild {
    /// Its address, or undefined if it is not stored.
    pub address: u64,
    /// Stored size and filter mask of a direct block, with filters.
    pub filtered: Option<(u64, u32)>,
}

/// The place of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeapId {
    /// In a direct block.
    Managed {
        /// Its place in the heap.
        offset: u64,
        /// Its bytes.
        length: u64,
    },
    /// Anywhere in the file.
    Huge(HugeObject),
    /// Anywhere in the file: its key in the B-tree of huge objects.
    HugeKey(u64),
    /// In the id: these are its bytes.
    Tiny(Vec<u8>),
}

/// A huge object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HugeObject {
    /// Its address.
    pub address: u64,
    /// Its stored bytes.
    pub length: u64,
    /// Filters that were skipped, and bytes without filters; for heaps with filters.
    pub filtered: Option<(u32, u64)>,
}

impl HeapHeader {
    /// The header of an empty heap at `address`.
    ///
    /// ```
    /// use pumice_format::Context;
    /// use pumice_format::fractal_heap::{HeapHeader, HeapShape};
    ///
    /// let (context, mut bytes) = (Context::default().at(0x800), Vec::new());
    /// let header = HeapHeader::new(0x800, HeapShape::LINKS);
    /// header.encode(context.sizes, &mut bytes);
    /// assert_eq!(HeapHeader::decode(&bytes, &context)?, header);
    /// # Ok::<(), pumice_format::DecodeError>(())
    /// ```
    pub fn new(address: u64, shape: HeapShape) -> Self {
        Self {
            address,
            id_length: shape.id_length,
            checksummed: true,
            max_managed_size: 4096,
            huge_index_address: UNDEFINED,
            last_huge_key: 0,
            keys_wrapped: false,
            free_space_address: UNDEFINED,
            free_space: 0,
            managed_space: 0,
            allocated_space: 0,
            next_block: 0,
            objects: [0; 3],
            object_bytes: [0; 2],
            width: 4,
            starting_size: shape.starting_size,
            max_direct_size: 65536,
            bits: shape.bits,
            starting_rows: 1,
            root_address: UNDEFINED,
            root_rows: 0,
            root_filtered: None,
            pipeline: Pipeline { filters: Vec::new() },
        }
    }

    /// Bytes of a header without its filters, which are read first.
    pub fn encoded_length(context: &Context) -> usize {
        let (offset, length) = (context.offset_width(), context.length_width());
        26 + 3 * offset + 12 * length
    }

    /// Bytes of the header that begins with `bytes`, filters included.
    pub fn measure(bytes: &[u8], context: &Context) -> Result<usize, DecodeError> {
        let mut reader = context.reader(HEADER, bytes);
        reader.signature(b"FRHP")?;
        reader.skip(3)?;
        let plain = Self::encoded_length(context);
        Ok(match reader.u16()? {
            0 => plain,
            filters => plain + context.length_width() + 4 + usize::from(filters),
        })
    }

    /// Decodes a header.
    pub fn decode(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let (offset, length) = (context.offset_width(), context.length_width());
        let mut reader = context.reader(HEADER, bytes);
        reader.signature(b"FRHP")?;
        version(&mut reader)?;
        let id_length = reader.u16()?;
        let filters_length = reader.u16()?;
        let flags = reader.u8()?;
        let max_managed_size = reader.u32()?;
        let last_huge_key = reader.uint(length)?;
        let huge_index_address = reader.offset(offset)?;
        let free_space = reader.uint(length)?;
        let free_space_address = reader.offset(offset)?;
        let [managed_space, allocated_space] = [reader.uint(length)?, reader.uint(length)?];
        let [next_block, managed] = [reader.uint(length)?, reader.uint(length)?];
        let [huge_bytes, huge] = [reader.uint(length)?, reader.uint(length)?];
        let [tiny_bytes, tiny] = [reader.uint(length)?, reader.uint(length)?];
        let width = reader.u16()?;
        let starting_size = reader.uint(length)?;
        let max_direct_size = reader.uint(length)?;
        let bits = reader.u16()?;
        let starting_rows = reader.u16()?;
        let root_address = reader.offset(offset)?;
        let root_rows = reader.u16()?;
        let (mut root_filtered, mut pipeline) = (None, Pipeline { filters: Vec::new() });
        if filters_length > 0 {
            root_filtered = Some((reader.uint(length)?, reader.u32()?));
            let address = reader.address();
            let message = reader.take(usize::from(filters_length))?;
            pipeline = Pipeline::decode(message, &context.at(address))?;
        }
        reader.checksum()?;
        let header = Self {
            address: context.address,
            id_length,
            checksummed: flags & CHECKSUMMED != 0,
            max_managed_size,
            huge_index_address,
            last_huge_key,
            keys_wrapped: flags & KEYS_WRAPPED != 0,
            free_space_address,
            free_space,
            managed_space,
            allocated_space,
            next_block,
            objects: [managed, huge, tiny],
            object_bytes: [huge_bytes, tiny_bytes],
            width,
            starting_size,
            max_direct_size,
            bits,
            starting_rows,
            root_address,
            root_rows,
            root_filtered,
            pipeline,
        };
        header.check()?;
        Ok(header)
    }

    /// Refuses a doubling table that cannot be computed with.
    fn check(&self) -> Result<(), DecodeError> {
        let refuse = |expected, found: u64| {
            Err(DecodeError::new(HEADER, self.address, expected, format!("{found:#x}")))
        };
        if !self.width.is_power_of_two() {
            return refuse("a table width that is a power of two", self.width.into());
        }
        if !self.starting_size.is_power_of_two() || self.starting_size > self.max_direct_size {
            return refuse("a starting size that is a power of two", self.starting_size);
        }
        if !self.max_direct_size.is_power_of_two() {
            return refuse("a direct size that is a power of two", self.max_direct_size);
        }
        if self.bits == 0 || self.bits > MAX_BITS {
            return refuse("offsets of 1 to 64 bits", self.bits.into());
        }
        if self.id_length == 0 {
            return refuse("ids of at least a byte", 0);
        }
        if self.first_row_bits() + u32::from(self.root_rows) > 64 {
            return refuse("fewer rows in the root", self.root_rows.into());
        }
        Ok(())
    }

    /// Bytes of an offset in the heap.
    fn offset_width(&self) -> usize {
        usize::from(self.bits).div_ceil(8)
    }

    /// Bytes of a managed object's length in its id.
    fn length_width(&self) -> usize {
        let by_block = self.max_direct_size.ilog2().div_ceil(8).max(1);
        let by_limit = self.max_managed_size.max(1).ilog2() / 8 + 1;
        by_block.min(by_limit) as usize
    }

    fn first_row_bits(&self) -> u32 {
        self.starting_size.ilog2() + u32::from(self.width).ilog2()
    }

    /// Rows of direct blocks that an indirect block can have.
    fn direct_rows(&self) -> u32 {
        self.max_direct_size.ilog2() - self.starting_size.ilog2() + 2
    }

    /// Whether the blocks of a row are direct.
    pub fn is_direct(&self, row: u32) -> bool {
        row < self.direct_rows()
    }

    /// Bytes that a block of `row` stands for.
    pub fn block_size(&self, row: u32) -> Option<u64> {
        1u64.checked_shl(self.starting_size.ilog2() + row.saturating_sub(1))
    }

    /// Rows of an indirect block that stands in `row` of another.
    pub fn rows_below(&self, row: u32) -> Option<u32> {
        (self.starting_size.ilog2() + row.saturating_sub(1) + 1).checked_sub(self.first_row_bits())
    }

    /// The row and column of the block that has `offset`, and the block's first byte; all offsets
    /// count from the table's first byte.
    pub fn find(&self, offset: u64) -> Option<(u32, u32, u64)> {
        let row = (offset.max(1).ilog2() + 1).saturating_sub(self.first_row_bits());
        let first = match row {
            0 => 0,
            row => 1u64.checked_shl(self.first_row_bits() + row - 1)?,
        };
        let size = self.block_size(row)?;
        let column = (offset - first) / size;
        Some((row, u32::try_from(column).ok()?, first.checked_add(column.checked_mul(size)?)?))
    }

    /// Bytes of an indirect block of `rows` rows.
    pub fn indirect_length(&self, rows: u32, context: &Context) -> usize {
        let offset = context.offset_width();
        let direct = rows.min(self.direct_rows()) as usize * usize::from(self.width);
        let indirect = rows.saturating_sub(self.direct_rows()) as usize * usize::from(self.width);
        let each = match self.root_filtered {
            Some(_) => offset + context.length_width() + 4,
            None => offset,
        };
        5 + offset + self.offset_width() + direct * each + indirect * offset + 4
    }

    /// Decodes the indirect block of `rows` rows that begins at `start` of the heap's space: its
    /// children, row after row.
    pub fn decode_indirect(
        &self,
        bytes: &[u8],
        start: u64,
        rows: u32,
        context: &Context,
    ) -> Result<Vec<HeapChild>, DecodeError> {
        let mut reader = context.reader(INDIRECT, bytes);
        reader.signature(b"FHIB")?;
        self.check_block(&mut reader, start, context)?;
        let count = u64::from(rows) * u64::from(self.width);
        let count = reader.count(count, context.offset_width())?;
        let mut children = Vec::with_capacity(count);
        for row in 0..rows {
            for _ in 0..self.width {
                let address = reader.offset(context.offset_width())?;
                let filtered = match self.root_filtered {
                    Some(_) if self.is_direct(row) => {
                        Some((reader.uint(context.length_width())?, reader.u32()?))
                    }
                    _ => None,
                };
                children.push(HeapChild { address, filtered });
            }
        }
        reader.checksum()?;
        Ok(children)
    }

    /// Checks the direct block that begins at `start` of the heap's space, filters undone. Objects
    /// are found in it at their offset less `start`.
    pub fn check_direct(
        &self,
        bytes: &[u8],
        start: u64,
        context: &Context,
    ) -> Result<(), DecodeError> {
        let mut reader = context.reader(DIRECT, bytes);
        reader.signature(b"FHDB")?;
        self.check_block(&mut reader, start, context)?;
        if !self.checksummed {
            return Ok(());
        }
        let before = reader.clone();
        let stored = reader.u32()?;
        // The checksum is that of the block with zeros in its place.
        let mut zeroed = before.consumed().to_vec();
        zeroed.extend_from_slice(&[0; 4]);
        zeroed.extend_from_slice(reader.rest());
        let computed = lookup3(&zeroed);
        if stored == computed {
            return Ok(());
        }
        Err(before.error(format!("checksum {computed:#010x}"), format!("{stored:#010x}")))
    }

    /// Version, heap address and offset of a block.
    fn check_block(
        &self,
        reader: &mut Reader<'_>,
        start: u64,
        context: &Context,
    ) -> Result<(), DecodeError> {
        version(reader)?;
        let before = reader.clone();
        let heap = reader.offset(context.offset_width())?;
        if heap != self.address {
            return Err(
                before.error(format!("the heap at {:#x}", self.address), format!("{heap:#x}"))
            );
        }
        let before = reader.clone();
        let found = reader.uint(self.offset_width())?;
        if found != start {
            return Err(before.error(format!("offset {start:#x}"), format!("{found:#x}")));
        }
        Ok(())
    }

    /// Decodes an id of this heap.
    ///
    /// Ids of huge objects hold address and length if there is room for them, else a key.
    pub fn decode_id(&self, bytes: &[u8], context: &Context) -> Result<HeapId, DecodeError> {
        let mut reader = context.reader(ID, bytes);
        let start = reader.clone();
        let flags = reader.u8()?;
        if flags >> 6 != 0 {
            return Err(start.unknown("version 0", 0u8, flags >> 6));
        }
        match (flags >> 4) & 3 {
            0 => Ok(HeapId::Managed {
                offset: reader.uint(self.offset_width())?,
                length: reader.uint(self.length_width())?,
            }),
            1 if self.has_direct_huge_ids(context) => {
                Ok(HeapId::Huge(self.decode_huge(&mut reader, context)?))
            }
            1 => Ok(HeapId::HugeKey(reader.uint(reader.remaining().min(8))?)),
            2 => {
                let length = match self.id_length <= LONGEST_SHORT_TINY {
                    true => usize::from(flags & 0x0F),
                    false => usize::from(flags & 0x0F) << 8 | usize::from(reader.u8()?),
                };
                Ok(HeapId::Tiny(reader.take(length + 1)?.to_vec()))
            }
            kind => Err(start.unknown("an object that is managed, huge or tiny", 2u8, kind)),
        }
    }

    /// Whether ids of huge objects hold address and length.
    pub fn has_direct_huge_ids(&self, context: &Context) -> bool {
        let (offset, length) = (context.offset_width(), context.length_width());
        let needed = offset + length + self.root_filtered.map_or(0, |_| length);
        usize::from(self.id_length) > needed
    }

    fn decode_huge(
        &self,
        reader: &mut Reader<'_>,
        context: &Context,
    ) -> Result<HugeObject, DecodeError> {
        let address = reader.offset(context.offset_width())?;
        let length = reader.uint(context.length_width())?;
        let filtered = match self.root_filtered {
            Some(_) => Some((reader.u32()?, reader.uint(context.length_width())?)),
            None => None,
        };
        Ok(HugeObject { address, length, filtered })
    }

    /// Decodes a record of the B-tree of huge objects that are named by a key: type 1, or 2 with
    /// filters; or by their address, which then is the key: type 3, or 4 with filters.
    pub fn decode_huge_record(
        &self,
        bytes: &[u8],
        context: &Context,
    ) -> Result<(u64, HugeObject), DecodeError> {
        let mut reader = context.reader("record of a huge object", bytes);
        let object = self.decode_huge(&mut reader, context)?;
        match self.has_direct_huge_ids(context) {
            true => Ok((object.address, object)),
            false => Ok((reader.uint(context.length_width())?, object)),
        }
    }
}

fn version(reader: &mut Reader<'_>) -> Result<(), DecodeError> {
    let before = reader.clone();
    match reader.u8()? {
        0 => Ok(()),
        version => Err(before.unknown("version 0", 0u8, version)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> HeapHeader {
        HeapHeader { root_address: 0x200, ..HeapHeader::new(0x100, HeapShape::LINKS) }
    }

    #[test]
    fn offsets_are_found_in_rows_of_doubling_size() {
        let header = header();
        assert_eq!(header.find(0), Some((0, 0, 0)));
        assert_eq!(header.find(2047), Some((0, 3, 1536)));
        assert_eq!(header.find(2048), Some((1, 0, 2048)));
        assert_eq!(header.find(4096), Some((2, 0, 4096)));
        assert_eq!(header.find(4096 + 1024), Some((2, 1, 5120)));
        assert_eq!(header.find(u64::MAX).map(|(row, column, _)| (row, column)), Some((53, 3)));
        assert_eq!(header.direct_rows(), 9);
        assert_eq!(header.block_size(8), Some(65536));
        assert_eq!(header.rows_below(9), Some(7));
    }

    #[test]
    fn every_kind_of_id_is_read() {
        let (header, context) = (header(), Context::default());
        let managed = header.decode_id(&[0, 0x10, 0x20, 0, 0, 9, 0], &context).unwrap();
        assert_eq!(managed, HeapId::Managed { offset: 0x2010, length: 9 });
        let tiny = header.decode_id(&[0x22, b'a', b'b', b'c', 0, 0, 0], &context).unwrap();
        assert_eq!(tiny, HeapId::Tiny(b"abc".to_vec()));
        let huge = header.decode_id(&[0x10, 5, 0, 0, 0, 0, 0], &context).unwrap();
        assert_eq!(huge, HeapId::HugeKey(5));
        let long = HeapHeader { id_length: 20, ..header.clone() };
        let mut id = vec![0x10, 0, 8];
        id.extend_from_slice(&[0; 6]);
        id.extend_from_slice(&[7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let huge = HugeObject { address: 0x800, length: 7, filtered: None };
        assert_eq!(long.decode_id(&id, &context).unwrap(), HeapId::Huge(huge));
        let mut id = vec![0x20, 17];
        id.extend_from_slice(&[b'x'; 18]);
        assert_eq!(long.decode_id(&id, &context).unwrap(), HeapId::Tiny(vec![b'x'; 18]));
        assert!(header.decode_id(&[0x40, 0, 0, 0, 0, 0, 0], &context).is_err());
        assert!(header.decode_id(&[0x30, 0, 0, 0, 0, 0, 0], &context).is_err());
        assert!(header.decode_id(&[], &context).is_err());
    }

    #[test]
    fn tables_that_cannot_be_computed_with_are_refused() {
        assert!(header().check().is_ok());
        assert!(HeapHeader { width: 3, ..header() }.check().is_err());
        assert!(HeapHeader { starting_size: 0, ..header() }.check().is_err());
        assert!(HeapHeader { starting_size: 1 << 20, ..header() }.check().is_err());
        assert!(HeapHeader { max_direct_size: 65535, ..header() }.check().is_err());
        assert!(HeapHeader { bits: 65, ..header() }.check().is_err());
        assert!(HeapHeader { root_rows: 60, ..header() }.check().is_err());
        assert!(HeapHeader { id_length: 0, ..header() }.check().is_err());
    }
}
