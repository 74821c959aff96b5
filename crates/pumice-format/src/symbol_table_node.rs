//! Symbol table entries and nodes ("SNOD"): the leaves of an old-style group's B-tree.

use crate::{Context, DecodeError, Sizes};
use pumice_bytes::{Reader, Writer};

const STRUCTURE: &str = "symbol table node";

/// One link of an old-style group.
///
/// ```
/// use pumice_format::symbol_table_node::{Scratch, SymbolTableEntry};
///
/// let entry = SymbolTableEntry { name_offset: 8, header_address: 0x320, scratch: Scratch::None };
/// assert!(!entry.is_soft_link());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolTableEntry {
    /// The offset of the name in the group's local heap.
    pub name_offset: u64,
    /// The object header that the link points at; undefined for soft links.
    pub header_address: u64,
    /// The cached part of the object.
    pub scratch: Scratch,
}

/// The part of an object that a symbol table entry caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scratch {
    /// Nothing.
    None,
    /// The object is an old-style group, with this B-tree and this local heap.
    Group {
        /// Its B-tree.
        btree_address: u64,
        /// Its local heap.
        heap_address: u64,
    },
    /// There is no object: the link is soft, and its target stands in the local heap.
    SoftLink {
        /// The offset of the target's path in the local heap.
        value_offset: u32,
    },
}

impl SymbolTableEntry {
    /// Bytes of an entry in the file.
    pub fn encoded_length(context: &Context) -> usize {
        context.length_width() + context.offset_width() + 24
    }

    /// Reads one entry.
    pub fn decode(reader: &mut Reader<'_>, context: &Context) -> Result<Self, DecodeError> {
        let width = context.offset_width();
        let name_offset = reader.uint(context.length_width())?;
        let header_address = reader.offset(width)?;
        let start = reader.clone();
        let kind = reader.u32()?;
        reader.skip(4)?;
        let mut scratch = Reader::new(reader.structure(), reader.address(), reader.take(16)?);
        let scratch = match kind {
            0 => Scratch::None,
            1 => Scratch::Group {
                btree_address: scratch.offset(width)?,
                heap_address: scratch.offset(width)?,
            },
            2 => Scratch::SoftLink { value_offset: scratch.u32()? },
            kind => return Err(start.error("cache type 0, 1 or 2", kind)),
        };
        Ok(Self { name_offset, header_address, scratch })
    }

    /// Appends the entry.
    pub fn encode(&self, sizes: Sizes, out: &mut Vec<u8>) {
        let width = usize::from(sizes.offset);
        out.put_uint(self.name_offset, usize::from(sizes.length));
        out.put_uint(self.header_address, width);
        let kind = match self.scratch {
            Scratch::None => 0,
            Scratch::Group { .. } => 1,
            Scratch::SoftLink { .. } => 2,
        };
        out.put_u32(kind);
        out.put_zeros(4);
        let end = out.len() + 16;
        match self.scratch {
            Scratch::None => {}
            Scratch::Group { btree_address, heap_address } => {
                out.put_uint(btree_address, width);
                out.put_uint(heap_address, width);
            }
            Scratch::SoftLink { value_offset } => out.put_u32(value_offset),
        }
        out.put_zeros(end - out.len());
    }

    /// Whether this is a soft link.
    pub fn is_soft_link(&self) -> bool {
        matches!(self.scratch, Scratch::SoftLink { .. })
    }
}

/// The entries of a node, in the order of their names.
///
/// The node's place in the file has room for twice the superblock's `group_leaf_k` entries; only
/// the first of them, as many as the node says, are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolTableNode {
    /// The entries in use.
    pub entries: Vec<SymbolTableEntry>,
}

impl SymbolTableNode {
    /// Bytes of a node in the file, for the superblock's `group_leaf_k`.
    pub fn encoded_length(context: &Context, group_leaf_k: u16) -> usize {
        8 + 2 * usize::from(group_leaf_k) * SymbolTableEntry::encoded_length(context)
    }

    /// Decodes a node; `bytes` may be cut after its last entry in use.
    pub fn decode(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let mut reader = context.reader(STRUCTURE, bytes);
        reader.signature(b"SNOD")?;
        let start = reader.clone();
        let version = reader.u8()?;
        if version != 1 {
            return Err(start.unknown("version 1", 1u8, version));
        }
        reader.skip(1)?;
        let count = reader.u16()?;
        let count = reader.count(u64::from(count), SymbolTableEntry::encoded_length(context))?;
        let mut entries = Vec::with_capacity(count);
        for _ in 0..count {
            entries.push(SymbolTableEntry::decode(&mut reader, context)?);
        }
        Ok(Self { entries })
    }

    /// Appends the node, filled up to the room for twice `group_leaf_k` entries.
    pub fn encode(&self, sizes: Sizes, group_leaf_k: u16, out: &mut Vec<u8>) {
        let end = out.len() + Self::encoded_length(&Context::new(sizes), group_leaf_k);
        out.put_bytes(b"SNOD");
        out.put_bytes(&[1, 0]);
        // A node has at most twice a u16 of entries only where nobody splits it.
        out.put_u16(self.entries.len() as u16);
        for entry in &self.entries {
            entry.encode(sizes, out);
        }
        out.put_zeros(end.saturating_sub(out.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UNDEFINED;
    use pumice_bytes::Writer;

    #[test]
    fn a_node_lists_its_entries_in_use() {
        let mut bytes = b"SNOD\x01\x00\x02\x00".to_vec();
        for (name, header, kind, low, high) in
            [(8, 0x320, 1u32, 0x88, 0x2A8), (16, UNDEFINED, 2, 24, 0)]
        {
            bytes.put_u64(name);
            bytes.put_u64(header);
            bytes.put_u32(kind);
            bytes.put_u32(0);
            bytes.put_u64(low);
            bytes.put_u64(high);
        }
        bytes.put_zeros(40);
        let node = SymbolTableNode::decode(&bytes, &Context::default()).unwrap();
        let group = Scratch::Group { btree_address: 0x88, heap_address: 0x2A8 };
        assert_eq!(node.entries[0].scratch, group);
        assert_eq!(node.entries[1].scratch, Scratch::SoftLink { value_offset: 24 });
        assert!(node.entries[1].is_soft_link());
        assert_eq!(node.entries.len(), 2);
        let mut again = Vec::new();
        node.encode(Sizes::default(), 2, &mut again);
        assert_eq!(again.len(), SymbolTableNode::encoded_length(&Context::default(), 2));
        assert_eq!(again[..bytes.len()], bytes);
    }

    #[test]
    fn a_node_with_more_entries_than_bytes_is_refused() {
        let mut bytes = b"SNOD\x01\x00\xFF\xFF".to_vec();
        bytes.put_zeros(80);
        assert!(SymbolTableNode::decode(&bytes, &Context::default()).is_err());
    }
}
