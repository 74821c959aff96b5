//! The external data files message (0x0007): raw data in other files. Names are in a local heap.

use crate::error::fits;
use crate::{Context, DecodeError, FormatError, Sizes};
use pumice_bytes::Writer;

const STRUCTURE: &str = "external files message";

/// The files that hold a dataset's elements, in order.
///
/// ```
/// use pumice_format::Context;
/// use pumice_format::messages::ExternalFiles;
///
/// let mut bytes = vec![1, 0, 0, 0, 1, 0, 1, 0];
/// for field in [0x500u64, 8, 0, 4096] {
///     bytes.extend_from_slice(&field.to_le_bytes());
/// }
/// let files = ExternalFiles::decode(&bytes, &Context::default())?;
/// assert_eq!((files.heap_address, files.slots[0].size), (0x500, 4096));
/// let mut again = Vec::new();
/// files.encode(Default::default(), &mut again)?;
/// assert_eq!(again, bytes);
/// # Ok::<(), pumice_format::FormatError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalFiles {
    /// The local heap with the names.
    pub heap_address: u64,
    /// The pieces.
    pub slots: Vec<ExternalFile>,
}

/// A piece of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalFile {
    /// The offset of its name in the local heap.
    pub name_offset: u64,
    /// The offset of the piece in the file.
    pub offset: u64,
    /// Bytes of the piece; all bits set (at the width of lengths) for unlimited.
    pub size: u64,
}

impl ExternalFiles {
    /// Decodes the body of a message.
    pub fn decode(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let mut reader = context.reader(STRUCTURE, bytes);
        let start = reader.clone();
        let [version, ..] = reader.array::<4>()?;
        if version != 1 {
            return Err(start.unknown("version 1", 1u8, version));
        }
        let start = reader.clone();
        let (allocated, used) = (reader.u16()?, reader.u16()?);
        if used > allocated {
            return Err(start.error(format!("at most {allocated} slot(s) in use"), used));
        }
        let heap_address = reader.offset(context.offset_width())?;
        let width = context.length_width();
        let count = reader.count(u64::from(used), 3 * width)?;
        let mut slots = Vec::with_capacity(count);
        for _ in 0..count {
            slots.push(ExternalFile {
                name_offset: reader.uint(width)?,
                offset: reader.uint(width)?,
                size: reader.offset(width)?,
            });
        }
        Ok(Self { heap_address, slots })
    }

    /// Appends the body of the message.
    pub fn encode(&self, sizes: Sizes, out: &mut Vec<u8>) -> Result<(), FormatError> {
        let count = fits(STRUCTURE, "files", 0xFFFF, self.slots.len())?;
        let width = usize::from(sizes.length);
        out.put_bytes(&[1, 0, 0, 0]);
        out.put_uint(count, 2);
        out.put_uint(count, 2);
        out.put_uint(self.heap_address, usize::from(sizes.offset));
        for slot in &self.slots {
            for field in [slot.name_offset, slot.offset, slot.size] {
                out.put_uint(field, width);
            }
        }
        Ok(())
    }
}
