//! Writing fractal heaps: header, blocks and ids of heaps without filters.

use super::{CHECKSUMMED, HeapChild, HeapHeader, HugeObject, KEYS_WRAPPED, LONGEST_SHORT_TINY};
use crate::{Context, Sizes};
use pumice_bytes::{Writer, lookup3};

impl HeapHeader {
    /// Appends the header; it must have no filters.
    pub fn encode(&self, sizes: Sizes, out: &mut Vec<u8>) {
        let (offset, length) = (usize::from(sizes.offset), usize::from(sizes.length));
        let start = out.len();
        out.put_bytes(b"FRHP");
        out.put_u8(0);
        out.put_u16(self.id_length);
        out.put_u16(0);
        let wrapped = if self.keys_wrapped { KEYS_WRAPPED } else { 0 };
        out.put_u8(wrapped | if self.checksummed { CHECKSUMMED } else { 0 });
        out.put_u32(self.max_managed_size);
        out.put_uint(self.last_huge_key, length);
        out.put_uint(self.huge_index_address, offset);
        out.put_uint(self.free_space, length);
        out.put_uint(self.free_space_address, offset);
        let ([managed, huge, tiny], [huge_bytes, tiny_bytes]) = (self.objects, self.object_bytes);
        let spaces = [self.managed_space, self.allocated_space, self.next_block];
        for number in spaces.into_iter().chain([managed, huge_bytes, huge, tiny_bytes, tiny]) {
            out.put_uint(number, length);
        }
        out.put_u16(self.width);
        out.put_uint(self.starting_size, length);
        out.put_uint(self.max_direct_size, length);
        out.put_u16(self.bits);
        out.put_u16(self.starting_rows);
        out.put_uint(self.root_address, offset);
        out.put_u16(self.root_rows);
        out.put_checksum(start);
    }

    /// The most rows that the root can have.
    pub fn max_rows(&self) -> u32 {
        (u32::from(self.bits) + 1).saturating_sub(self.first_row_bits())
    }

    /// The first row with direct blocks of at least `size` bytes, a power of two.
    pub fn row_of_size(&self, size: u64) -> u32 {
        match size.max(1).ilog2().saturating_sub(self.starting_size.ilog2()) {
            0 => 0,
            doublings => doublings + 1,
        }
    }

    /// The first byte of a table's row; at the number of rows, the end of the table.
    pub fn row_start(&self, row: u32) -> Option<u64> {
        match row {
            0 => Some(0),
            row => 1u64.checked_shl(self.first_row_bits() + row - 1),
        }
    }

    /// Bytes in front of a direct block's objects.
    pub fn direct_overhead(&self, sizes: Sizes) -> u64 {
        let checksum = if self.checksummed { 4 } else { 0 };
        (5 + usize::from(sizes.offset) + self.offset_width() + checksum) as u64
    }

    /// The bytes that a table of `rows` rows has for objects if all its blocks are there.
    pub fn capacity(&self, rows: u32, sizes: Sizes) -> u64 {
        let each = |row| match self.is_direct(row) {
            true => self.block_size(row).unwrap_or(0).saturating_sub(self.direct_overhead(sizes)),
            // A table has fewer rows than the one it stands in.
            false => match self.rows_below(row).filter(|&below| below < rows) {
                Some(below) => self.capacity(below, sizes),
                None => 0,
            },
        };
        let rows = (0..rows).map(|row| each(row).saturating_mul(u64::from(self.width)));
        rows.fold(0, u64::saturating_add)
    }

    /// Writes the prefix of a direct block that begins at `start` of the heap's space; `block` is
    /// all of it.
    pub fn finish_direct(&self, block: &mut [u8], start: u64, sizes: Sizes) {
        let mut prefix = Vec::new();
        prefix.put_bytes(b"FHDB");
        self.encode_place(start, sizes, &mut prefix);
        let at = prefix.len();
        if self.checksummed {
            prefix.put_zeros(4);
        }
        if let Some(begin) = block.get_mut(..prefix.len()) {
            begin.copy_from_slice(&prefix);
        }
        if self.checksummed {
            let checksum = lookup3(block).to_le_bytes();
            if let Some(place) = block.get_mut(at..at + 4) {
                place.copy_from_slice(&checksum);
            }
        }
    }

    /// Appends the indirect block that begins at `start` of the heap's space.
    pub fn encode_indirect(
        &self,
        children: &[HeapChild],
        start: u64,
        sizes: Sizes,
        out: &mut Vec<u8>,
    ) {
        let begin = out.len();
        out.put_bytes(b"FHIB");
        self.encode_place(start, sizes, out);
        for child in children {
            out.put_uint(child.address, usize::from(sizes.offset));
        }
        out.put_checksum(begin);
    }

    /// Version, heap address and offset of a block.
    fn encode_place(&self, start: u64, sizes: Sizes, out: &mut Vec<u8>) {
        out.put_u8(0);
        out.put_uint(self.address, usize::from(sizes.offset));
        out.put_uint(start, self.offset_width());
    }

    /// The most bytes of an object that its id holds.
    pub fn max_tiny(&self) -> usize {
        match self.id_length <= LONGEST_SHORT_TINY {
            true => usize::from(self.id_length - 1),
            false => usize::from(self.id_length - 2),
        }
    }

    /// The id of an object of at most [`max_tiny`](Self::max_tiny) bytes, and of at least one.
    pub fn tiny_id(&self, object: &[u8]) -> Vec<u8> {
        let length = object.len().saturating_sub(1);
        let mut id = match self.id_length <= LONGEST_SHORT_TINY {
            true => vec![0x20 | length as u8],
            false => vec![0x20 | (length >> 8) as u8 & 0x0F, length as u8],
        };
        id.put_bytes(object);
        id.resize(usize::from(self.id_length), 0);
        id
    }

    /// The id of a managed object.
    pub fn managed_id(&self, offset: u64, length: u64) -> Vec<u8> {
        let mut id = vec![0];
        id.put_uint(offset, self.offset_width());
        id.put_uint(length, self.length_width());
        id.resize(usize::from(self.id_length), 0);
        id
    }

    /// The largest key of a huge object that an id can hold.
    pub fn max_huge_key(&self) -> u64 {
        match u32::from(self.id_length).saturating_sub(1) * 8 {
            bits @ 0..64 => (1 << bits) - 1,
            _ => u64::MAX,
        }
    }

    /// The id of a huge object that is named by a key.
    pub fn huge_id(&self, key: u64) -> Vec<u8> {
        let mut id = vec![0x10];
        id.put_uint(key, usize::from(self.id_length).saturating_sub(1).min(8));
        id.resize(usize::from(self.id_length), 0);
        id
    }

    /// The id of a huge object that is named by its address.
    pub fn direct_huge_id(&self, object: &HugeObject, context: &Context) -> Vec<u8> {
        let mut id = vec![0x10];
        id.extend(Self::encode_huge_record(object, None, context));
        id.resize(usize::from(self.id_length), 0);
        id
    }

    /// The record of the B-tree of huge objects without filters: type 1 if they are named by a key, type 3 if by
    /// their address.
    pub fn encode_huge_record(object: &HugeObject, key: Option<u64>, context: &Context) -> Vec<u8> {
        let mut record = Vec::new();
        record.put_uint(object.address, context.offset_width());
        record.put_uint(object.length, context.length_width());
        if let Some(key) = key {
            record.put_uint(key, context.length_width());
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use super::super::{HeapId, HeapShape};
    use super::*;
    use crate::UNDEFINED;

    #[test]
    fn every_kind_of_id_is_read_as_it_was_written() {
        let context = Context::default();
        for shape in [HeapShape::LINKS, HeapShape::ATTRIBUTES] {
            let header = HeapHeader::new(0x100, shape);
            let id = header.managed_id(0x1234, 0x567);
            assert_eq!(id.len(), usize::from(shape.id_length));
            let managed = HeapId::Managed { offset: 0x1234, length: 0x567 };
            assert_eq!(header.decode_id(&id, &context).unwrap(), managed);
            let id = header.huge_id(header.max_huge_key());
            let huge = HeapId::HugeKey(header.max_huge_key());
            assert_eq!(header.decode_id(&id, &context).unwrap(), huge);
            for length in 1..=header.max_tiny() {
                let id = header.tiny_id(&vec![7; length]);
                assert_eq!(id.len(), usize::from(shape.id_length));
                let tiny = HeapId::Tiny(vec![7; length]);
                assert_eq!(header.decode_id(&id, &context).unwrap(), tiny);
            }
        }
    }

    #[test]
    fn blocks_are_read_as_they_were_written() {
        let (context, sizes) = (Context::default(), Sizes::default());
        let header = HeapHeader::new(0x100, HeapShape::ATTRIBUTES);
        assert_eq!(header.direct_overhead(sizes), 22);
        let mut block = vec![9; 1024];
        header.finish_direct(&mut block, 4096, sizes);
        header.check_direct(&block, 4096, &context).unwrap();
        assert!(header.check_direct(&block, 0, &context).is_err());
        block[500] ^= 1;
        assert!(header.check_direct(&block, 4096, &context).is_err());
        let children: Vec<HeapChild> = (0..8)
            .map(|number| HeapChild {
                address: if number == 3 { UNDEFINED } else { number },
                filtered: None,
            })
            .collect();
        let mut bytes = Vec::new();
        header.encode_indirect(&children, 0, sizes, &mut bytes);
        assert_eq!(bytes.len(), header.indirect_length(2, &context));
        assert_eq!(header.decode_indirect(&bytes, 0, 2, &context).unwrap(), children);
    }

    #[test]
    fn rows_and_capacities_are_those_of_libhdf5() {
        let (header, sizes) = (HeapHeader::new(0, HeapShape::LINKS), Sizes::default());
        assert_eq!(header.max_rows(), 22);
        assert_eq!([512, 1024, 2048, 65536].map(|size| header.row_of_size(size)), [0, 2, 3, 8]);
        assert_eq!([0, 1, 2, 3].map(|row| header.row_start(row).unwrap()), [0, 2048, 4096, 8192]);
        assert_eq!(header.capacity(1, sizes), 4 * (512 - 21));
        let direct = header.capacity(9, sizes);
        let first_tables = header.capacity(7, sizes);
        assert_eq!(header.capacity(10, sizes), direct + 4 * first_tables);
    }
}
