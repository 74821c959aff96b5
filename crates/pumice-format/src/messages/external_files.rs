//! The external data files message (0x0007): raw data in other files. Names are in a local heap.

use crate::{Context, DecodeError};

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
/// # Ok::<(), pumice_format::DecodeError>(())
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
    /// Where its name stands in the local heap.
    pub name_offset: u64,
    /// Where the piece begins in the file.
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
            return Err(start.error("version 1", version));
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
}
