//! The B-tree 'K' values message (0x0013) of a superblock extension.

use crate::{Context, DecodeError};
use pumice_bytes::Writer;

/// Ranks of version 1 B-trees, in place of the fields of older superblocks.
///
/// ```
/// use pumice_format::Context;
/// use pumice_format::messages::BTreeK;
///
/// let ranks = BTreeK::decode(&[0, 32, 0, 16, 0, 4, 0], &Context::default())?;
/// assert_eq!((ranks.chunk_internal_k, ranks.group_leaf_k), (32, 4));
/// let mut bytes = Vec::new();
/// ranks.encode(&mut bytes);
/// assert_eq!(bytes, [0, 32, 0, 16, 0, 4, 0]);
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BTreeK {
    /// Half the number of children of a node of a chunk index.
    pub chunk_internal_k: u16,
    /// Half the number of children of a node of a group.
    pub group_internal_k: u16,
    /// Half the number of entries of a symbol table node.
    pub group_leaf_k: u16,
}

impl BTreeK {
    /// Decodes the body of a message.
    pub fn decode(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let mut reader = context.reader("B-tree K values message", bytes);
        let start = reader.clone();
        let version = reader.u8()?;
        if version != 0 {
            return Err(start.unknown("version 0", 0u8, version));
        }
        Ok(Self {
            chunk_internal_k: reader.u16()?,
            group_internal_k: reader.u16()?,
            group_leaf_k: reader.u16()?,
        })
    }

    /// Appends the body of a message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.put_u8(0);
        out.put_u16(self.chunk_internal_k);
        out.put_u16(self.group_internal_k);
        out.put_u16(self.group_leaf_k);
    }
}
