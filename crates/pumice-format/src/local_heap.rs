//! The local heap ("HEAP"): the names of an old-style group's links, or of external files.
//!
//! A header names a data segment elsewhere in the file; the segment holds null-terminated strings
//! at byte offsets, and a list of free blocks that only a writer needs. The header's space is a multiple
//! of 8 bytes, as everything in a local heap, so that short addresses and lengths leave a gap behind it.

use crate::{Context, DecodeError, Sizes};
use pumice_bytes::{Reader, Writer};

const STRUCTURE: &str = "local heap";

const ALIGNMENT: usize = 8;

/// The offset that ends the free list.
const END_OF_LIST: u64 = 1;

/// The header of a local heap.
///
/// ```
/// use pumice_format::Context;
/// use pumice_format::local_heap::LocalHeap;
///
/// let mut bytes = b"HEAP\0\0\0\0".to_vec();
/// for field in [88u64, 16, 0x2C8] {
///     bytes.extend_from_slice(&field.to_le_bytes());
/// }
/// let heap = LocalHeap::decode(&bytes, &Context::default())?;
/// assert_eq!((heap.data_size, heap.data_address), (88, 0x2C8));
/// assert_eq!(LocalHeap::string(b"\0\0name\0", 2, 0)?, b"name");
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalHeap {
    /// Bytes of the data segment.
    pub data_size: u64,
    /// The offset of the first free block in the segment.
    pub free_offset: u64,
    /// The address of the segment.
    pub data_address: u64,
}

impl LocalHeap {
    /// Bytes of the header's fields.
    pub fn encoded_length(context: &Context) -> usize {
        8 + 2 * context.length_width() + context.offset_width()
    }

    /// Bytes of the file that the header takes, and gives back when it is deleted.
    pub fn space(context: &Context) -> u64 {
        Self::encoded_length(context).next_multiple_of(ALIGNMENT) as u64
    }

    /// Decodes the header.
    pub fn decode(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let mut reader = context.reader(STRUCTURE, bytes);
        reader.signature(b"HEAP")?;
        let start = reader.clone();
        let version = reader.u8()?;
        if version != 0 {
            return Err(start.unknown("version 0", 0u8, version));
        }
        reader.skip(3)?;
        Ok(Self {
            data_size: reader.uint(context.length_width())?,
            free_offset: reader.uint(context.length_width())?,
            data_address: reader.offset(context.offset_width())?,
        })
    }

    /// Appends the header.
    pub fn encode(&self, sizes: Sizes, out: &mut Vec<u8>) {
        out.put_bytes(b"HEAP");
        out.put_zeros(4);
        out.put_uint(self.data_size, usize::from(sizes.length));
        out.put_uint(self.free_offset, usize::from(sizes.length));
        out.put_uint(self.data_address, usize::from(sizes.offset));
    }

    /// Bytes that a free block takes at least.
    pub fn min_free(sizes: Sizes) -> u64 {
        2 * u64::from(sizes.length)
    }

    /// The free blocks of a data segment, as offsets and lengths, in the order of the list. A block
    /// outside the segment, or a list with more blocks than the segment could have, is an error.
    pub fn free_blocks(
        &self,
        segment: &[u8],
        context: &Context,
    ) -> Result<Vec<(u64, u64)>, DecodeError> {
        let mut blocks = Vec::new();
        let mut next = self.free_offset;
        let most = segment.len() / Self::min_free(context.sizes).max(1) as usize;
        while next != END_OF_LIST && next != crate::UNDEFINED {
            let found = usize::try_from(next).ok().and_then(|next| segment.get(next..));
            let address = self.data_address.saturating_add(next);
            let mut reader = Reader::new(STRUCTURE, address, found.unwrap_or_default());
            let before = reader.clone();
            let following = reader.offset(context.length_width())?;
            let length = reader.uint(context.length_width())?;
            let end = next.checked_add(length).filter(|&end| end <= segment.len() as u64);
            if end.is_none() || blocks.len() >= most {
                return Err(before.error("a free block inside the heap", length));
            }
            blocks.push((next, length));
            next = following;
        }
        Ok(blocks)
    }

    /// Writes a list of free blocks into a segment. Returns where it begins.
    pub fn write_free_blocks(segment: &mut [u8], blocks: &[(u64, u64)], sizes: Sizes) -> u64 {
        let mut next = END_OF_LIST;
        for &(offset, length) in blocks.iter().rev() {
            let mut bytes = Vec::new();
            bytes.put_uint(next, usize::from(sizes.length));
            bytes.put_uint(length, usize::from(sizes.length));
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let Some(place) =
                start.checked_add(bytes.len()).and_then(|end| segment.get_mut(start..end))
            else {
                continue;
            };
            place.copy_from_slice(&bytes);
            next = offset;
        }
        next
    }

    /// The string at `offset` of the data segment, which begins at file address `address`.
    pub fn string(segment: &[u8], offset: u64, address: u64) -> Result<&[u8], DecodeError> {
        let found = usize::try_from(offset).ok().and_then(|offset| segment.get(offset..));
        let text =
            found.and_then(|tail| tail.split(|&byte| byte == 0).next().map(|text| (tail, text)));
        match text {
            Some((tail, text)) if text.len() < tail.len() => Ok(text),
            _ => Err(DecodeError::new(
                STRUCTURE,
                address.saturating_add(offset),
                "a null-terminated string inside the heap",
                "the heap's end",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LocalHeap;
    use crate::{Context, Sizes};

    #[test]
    fn free_blocks_are_read_as_they_were_written() {
        let (mut segment, sizes) = (vec![7; 88], Sizes::default());
        let blocks = [(8, 16), (64, 24)];
        let free_offset = LocalHeap::write_free_blocks(&mut segment, &blocks, sizes);
        let heap = LocalHeap { data_size: 88, free_offset, data_address: 0x100 };
        assert_eq!(heap.free_blocks(&segment, &Context::default()).unwrap(), blocks);
        let none = LocalHeap { free_offset: 1, ..heap };
        assert_eq!(none.free_blocks(&segment, &Context::default()).unwrap(), []);
        LocalHeap::write_free_blocks(&mut segment, &[(8, 16), (64, 25)], sizes);
        assert!(heap.free_blocks(&segment, &Context::default()).is_err());
        segment[8..16].copy_from_slice(&8u64.to_le_bytes());
        assert!(heap.free_blocks(&segment, &Context::default()).is_err(), "a circle");
        let mut bytes = Vec::new();
        heap.encode(sizes, &mut bytes);
        assert_eq!(LocalHeap::decode(&bytes, &Context::default()).unwrap(), heap);
    }

    #[test]
    fn a_header_takes_a_multiple_of_8_bytes_in_all_widths() {
        // H5HL_SIZEOF_HDR of libhdf5.
        for (offset, length, space) in
            [(8, 8, 32), (4, 4, 24), (4, 8, 32), (8, 4, 24), (2, 2, 16), (2, 4, 24), (8, 2, 24)]
        {
            let context = Context::new(Sizes { offset, length });
            assert_eq!(LocalHeap::space(&context), space, "{offset} {length}");
        }
    }

    #[test]
    fn strings_end_inside_the_heap() {
        let segment = b"\0abc\0de";
        assert_eq!(LocalHeap::string(segment, 0, 0).unwrap(), b"");
        assert_eq!(LocalHeap::string(segment, 1, 0).unwrap(), b"abc");
        assert!(LocalHeap::string(segment, 5, 0).is_err());
        assert!(LocalHeap::string(segment, 7, 0).is_err());
        assert!(LocalHeap::string(segment, u64::MAX, u64::MAX).is_err());
    }
}
