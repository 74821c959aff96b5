//! The local heap ("HEAP"): the names of an old-style group's links, or of external files.
//!
//! A header names a data segment elsewhere in the file; the segment holds null-terminated strings
//! at byte offsets, and a list of free blocks that only a writer needs. Read only.

use crate::{Context, DecodeError};

const STRUCTURE: &str = "local heap";

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
    /// Where the first free block stands in the segment.
    pub free_offset: u64,
    /// Where the segment stands in the file.
    pub data_address: u64,
}

impl LocalHeap {
    /// Bytes of the header.
    pub fn encoded_length(context: &Context) -> usize {
        8 + 2 * context.length_width() + context.offset_width()
    }

    /// Decodes the header.
    pub fn decode(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let mut reader = context.reader(STRUCTURE, bytes);
        reader.signature(b"HEAP")?;
        let start = reader.clone();
        let version = reader.u8()?;
        if version != 0 {
            return Err(start.error("version 0", version));
        }
        reader.skip(3)?;
        Ok(Self {
            data_size: reader.uint(context.length_width())?,
            free_offset: reader.uint(context.length_width())?,
            data_address: reader.offset(context.offset_width())?,
        })
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
