//! The link info message (0x0002): where a new-style group keeps its links when they are many.

use super::dense_info::DenseInfo;
use crate::{Context, DecodeError, Sizes, UNDEFINED};

const STRUCTURE: &str = "link info message";

/// Bytes of the creation order.
const ORDER_WIDTH: usize = 8;

/// The storage of a group's links.
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
        let fields = DenseInfo::decode(STRUCTURE, ORDER_WIDTH, bytes, context)?;
        Ok(Self {
            max_creation_order: fields.max_creation_order,
            heap_address: fields.heap_address,
            name_index_address: fields.name_index_address,
            order_index_address: fields.order_index_address,
        })
    }

    /// Appends the body of a message.
    pub fn encode(&self, sizes: Sizes, out: &mut Vec<u8>) {
        let fields = DenseInfo {
            max_creation_order: self.max_creation_order,
            heap_address: self.heap_address,
            name_index_address: self.name_index_address,
            order_index_address: self.order_index_address,
        };
        fields.encode(ORDER_WIDTH, sizes, out);
    }
}
