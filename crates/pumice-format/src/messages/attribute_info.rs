//! The attribute info message (0x0015): where an object keeps its attributes when they are many.

use super::dense_info::DenseInfo;
use crate::{Context, DecodeError, Sizes, UNDEFINED};

const STRUCTURE: &str = "attribute info message";

/// Bytes of the creation order.
const ORDER_WIDTH: usize = 2;

/// The storage of an object's attributes.
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
        let fields = DenseInfo::decode(STRUCTURE, ORDER_WIDTH, bytes, context)?;
        Ok(Self {
            max_creation_order: fields.max_creation_order.map(|order| order as u16),
            heap_address: fields.heap_address,
            name_index_address: fields.name_index_address,
            order_index_address: fields.order_index_address,
        })
    }

    /// Appends the body of a message.
    pub fn encode(&self, sizes: Sizes, out: &mut Vec<u8>) {
        let fields = DenseInfo {
            max_creation_order: self.max_creation_order.map(u64::from),
            heap_address: self.heap_address,
            name_index_address: self.name_index_address,
            order_index_address: self.order_index_address,
        };
        fields.encode(ORDER_WIDTH, sizes, out);
    }
}
