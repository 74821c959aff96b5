//! The symbol table message (0x0011): the B-tree and local heap of an old-style group.

use crate::{Context, DecodeError, Sizes};
use pumice_bytes::Writer;

/// The addresses of an old-style group's links.
///
/// ```
/// use pumice_format::Context;
/// use pumice_format::messages::SymbolTable;
///
/// let bytes = [0x88, 0, 0, 0, 0, 0, 0, 0, 0xA8, 2, 0, 0, 0, 0, 0, 0];
/// let table = SymbolTable::decode(&bytes, &Context::default())?;
/// assert_eq!((table.btree_address, table.heap_address), (0x88, 0x2A8));
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SymbolTable {
    /// The version 1 B-tree.
    pub btree_address: u64,
    /// The local heap with the names.
    pub heap_address: u64,
}

impl SymbolTable {
    /// Decodes the body of a message.
    pub fn decode(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let mut reader = context.reader("symbol table message", bytes);
        Ok(Self {
            btree_address: reader.offset(context.offset_width())?,
            heap_address: reader.offset(context.offset_width())?,
        })
    }

    /// Appends the body of a message.
    pub fn encode(&self, sizes: Sizes, out: &mut Vec<u8>) {
        out.put_uint(self.btree_address, usize::from(sizes.offset));
        out.put_uint(self.heap_address, usize::from(sizes.offset));
    }
}
