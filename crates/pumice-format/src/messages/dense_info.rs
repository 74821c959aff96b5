//! The form that the link info and attribute info messages share: where many small things are kept
//! once they no longer fit into messages, and in which orders they can be found.
//!
//! Only the width of the creation order differs: 8 bytes for links, 2 for attributes.

use crate::{Context, DecodeError, Sizes};
use pumice_bytes::Writer;

const TRACK_ORDER: u8 = 0x01;
const INDEX_ORDER: u8 = 0x02;

/// The fields of both messages.
pub(super) struct DenseInfo {
    pub(super) max_creation_order: Option<u64>,
    pub(super) heap_address: u64,
    pub(super) name_index_address: u64,
    pub(super) order_index_address: Option<u64>,
}

impl DenseInfo {
    /// Decodes the body of `structure`, whose creation order takes `order_width` bytes.
    pub(super) fn decode(
        structure: &'static str,
        order_width: usize,
        bytes: &[u8],
        context: &Context,
    ) -> Result<Self, DecodeError> {
        let mut reader = context.reader(structure, bytes);
        let start = reader.clone();
        let [version, flags] = reader.array()?;
        if version != 0 {
            return Err(start.unknown("version 0", 0u8, version));
        }
        if flags & !(TRACK_ORDER | INDEX_ORDER) != 0 {
            return Err(start.reserved("flags of bits 0 and 1", flags));
        }
        let width = context.offset_width();
        let track = flags & TRACK_ORDER != 0;
        let index = flags & INDEX_ORDER != 0;
        Ok(Self {
            max_creation_order: if track { Some(reader.uint(order_width)?) } else { None },
            heap_address: reader.offset(width)?,
            name_index_address: reader.offset(width)?,
            order_index_address: if index { Some(reader.offset(width)?) } else { None },
        })
    }

    /// Appends the body.
    pub(super) fn encode(&self, order_width: usize, sizes: Sizes, out: &mut Vec<u8>) {
        let width = usize::from(sizes.offset);
        let track = if self.max_creation_order.is_some() { TRACK_ORDER } else { 0 };
        let index = if self.order_index_address.is_some() { INDEX_ORDER } else { 0 };
        out.put_bytes(&[0, track | index]);
        if let Some(order) = self.max_creation_order {
            out.put_uint(order, order_width);
        }
        out.put_uint(self.heap_address, width);
        out.put_uint(self.name_index_address, width);
        if let Some(address) = self.order_index_address {
            out.put_uint(address, width);
        }
    }
}
