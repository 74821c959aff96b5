//! The link info message (0x0002): where a new-style group keeps its links when they are many.

use crate::{Context, DecodeError, Sizes, UNDEFINED};
use pumice_bytes::Writer;

const STRUCTURE: &str = "link info message";

const TRACK_ORDER: u8 = 0x01;
const INDEX_ORDER: u8 = 0x02;

/// How a group keeps its links.
///
/// ```
/// use pumice_format::messages::LinkInfo;
/// use pumice_format::{Context, Sizes};
///
/// let info = LinkInfo { max_creation_order: Some(7), ..LinkInfo::default() };
/// let mut bytes = Vec::new();
/// info.encode(Sizes::default(), &mut bytes);
/// assert_eq!(LinkInfo::decode(&bytes, &Context::default())?, info);
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkInfo {
    /// The creation order that the next link gets; `None` if it is not tracked.
    pub max_creation_order: Option<u64>,
    /// The fractal heap of densely stored links; undefined while they are messages.
    pub heap_address: u64,
    /// The version 2 B-tree that finds them by name.
    pub name_index_address: u64,
    /// The version 2 B-tree that finds them by creation order; `None` if there is to be none.
    pub order_index_address: Option<u64>,
}

impl Default for LinkInfo {
    /// Links in messages, without creation order.
    fn default() -> Self {
        Self {
            max_creation_order: None,
            heap_address: UNDEFINED,
            name_index_address: UNDEFINED,
            order_index_address: None,
        }
    }
}

impl LinkInfo {
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
            max_creation_order: if track { Some(reader.u64()?) } else { None },
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
            out.put_u64(order);
        }
        out.put_uint(self.heap_address, width);
        out.put_uint(self.name_index_address, width);
        if let Some(address) = self.order_index_address {
            out.put_uint(address, width);
        }
    }
}
