//! The attribute info message (0x0015): where an object keeps its attributes when they are many.

use crate::{Context, DecodeError, Sizes, UNDEFINED};
use pumice_bytes::Writer;

const STRUCTURE: &str = "attribute info message";

const TRACK_ORDER: u8 = 0x01;
const INDEX_ORDER: u8 = 0x02;

/// How an object keeps its attributes.
///
/// ```
/// use pumice_format::messages::AttributeInfo;
/// use pumice_format::{Context, Sizes};
///
/// let info = AttributeInfo { heap_address: 0x500, ..AttributeInfo::default() };
/// let mut bytes = Vec::new();
/// info.encode(Sizes::default(), &mut bytes);
/// assert_eq!(AttributeInfo::decode(&bytes, &Context::default())?, info);
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributeInfo {
    /// The creation order that the next attribute gets; `None` if it is not tracked.
    pub max_creation_order: Option<u16>,
    /// The fractal heap of densely stored attributes; undefined while they are messages.
    pub heap_address: u64,
    /// The version 2 B-tree that finds them by name.
    pub name_index_address: u64,
    /// The version 2 B-tree that finds them by creation order; `None` if there is to be none.
    pub order_index_address: Option<u64>,
}

impl Default for AttributeInfo {
    /// Attributes in messages, without creation order.
    fn default() -> Self {
        Self {
            max_creation_order: None,
            heap_address: UNDEFINED,
            name_index_address: UNDEFINED,
            order_index_address: None,
        }
    }
}

impl AttributeInfo {
    /// Decodes the body of a message.
    pub fn decode(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let mut reader = context.reader(STRUCTURE, bytes);
        let start = reader.clone();
        let [version, flags] = reader.array()?;
        if version != 0 {
            return Err(start.error("version 0", version));
        }
        if flags & !(TRACK_ORDER | INDEX_ORDER) != 0 {
            return Err(start.error("flags of bits 0 and 1", format!("{flags:#04x}")));
        }
        let width = context.offset_width();
        let track = flags & TRACK_ORDER != 0;
        let index = flags & INDEX_ORDER != 0;
        Ok(Self {
            max_creation_order: if track { Some(reader.u16()?) } else { None },
            heap_address: reader.offset(width)?,
            name_index_address: reader.offset(width)?,
            order_index_address: if index { Some(reader.offset(width)?) } else { None },
        })
    }

    /// Appends the body of a message.
    pub fn encode(&self, sizes: Sizes, out: &mut Vec<u8>) {
        let width = usize::from(sizes.offset);
        let track = if self.max_creation_order.is_some() { TRACK_ORDER } else { 0 };
        let index = if self.order_index_address.is_some() { INDEX_ORDER } else { 0 };
        out.put_bytes(&[0, track | index]);
        if let Some(order) = self.max_creation_order {
            out.put_u16(order);
        }
        out.put_uint(self.heap_address, width);
        out.put_uint(self.name_index_address, width);
        if let Some(address) = self.order_index_address {
            out.put_uint(address, width);
        }
    }
}
