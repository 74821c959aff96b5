//! Nodes of version 1 B-trees ("TREE"): the links of old-style groups and the chunks of datasets
//! whose layout message is older than version 4.
//!
//! A node of n children has n+1 keys around them: child i holds what lies between keys i and i+1.
//! For groups a key is the local-heap offset of a name; for chunks it is stored size, filter mask
//! and the chunk's first cell, and the leaf's child is the chunk itself.

use crate::error::fits;
use crate::{Context, DecodeError, FormatError, Sizes};
use pumice_bytes::{Reader, Writer};
use smallvec::SmallVec;

const STRUCTURE: &str = "version 1 B-tree node";

/// A node of either kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node<K> {
    /// 0 for leaves.
    pub level: u8,
    /// The node to the left on the same level, or undefined.
    pub left: u64,
    /// The node to the right on the same level, or undefined.
    pub right: u64,
    /// Addresses of the children: nodes, symbol table nodes or chunks.
    pub children: Vec<u64>,
    /// The keys around them, one more than children. (None for an empty node.)
    pub keys: Vec<K>,
}

/// A node of an old-style group: its keys are name offsets in the group's local heap.
pub type GroupNode = Node<u64>;

/// A node of a chunk index.
pub type ChunkNode = Node<ChunkKey>;

/// The key of a chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChunkKey {
    /// Bytes that the chunk takes in the file.
    pub size: u32,
    /// Filters that were skipped, one bit each.
    pub filter_mask: u32,
    /// The chunk's first cell: its place in the dataset, not its number.
    pub start: SmallVec<[u64; 4]>,
    /// The place inside an element: 0, but in a key behind the last chunk.
    pub within: u64,
}

impl Node<u64> {
    /// Bytes of a node, for the superblock's `group_internal_k`.
    pub fn encoded_length(context: &Context, group_internal_k: u16) -> usize {
        let children = 2 * usize::from(group_internal_k);
        let (offset, length) = (context.offset_width(), context.length_width());
        header_length(context) + children * (offset + length) + length
    }

    /// Decodes a node of a group; `bytes` may be cut after the last key in use.
    ///
    /// ```
    /// use pumice_format::Context;
    /// use pumice_format::btree1::GroupNode;
    ///
    /// let mut bytes = b"TREE\x00\x00\x01\x00".to_vec();
    /// for field in [u64::MAX, u64::MAX, 0, 0x400, 8] {
    ///     bytes.extend_from_slice(&field.to_le_bytes());
    /// }
    /// let node = GroupNode::decode(&bytes, &Context::default())?;
    /// assert_eq!((node.children, node.keys), (vec![0x400], vec![0, 8]));
    /// # Ok::<(), pumice_format::DecodeError>(())
    /// ```
    pub fn decode(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let length = context.length_width();
        decode(bytes, context, 0, length, |reader| reader.uint(length))
    }

    /// Appends a node of a group, filled up to the room for twice `group_internal_k` children.
    pub fn encode(&self, sizes: Sizes, group_internal_k: u16, out: &mut Vec<u8>) {
        let context = Context::new(sizes);
        let end = out.len() + Self::encoded_length(&context, group_internal_k);
        out.put_bytes(b"TREE");
        out.put_bytes(&[0, self.level]);
        // A node has at most twice a u16 of children only where nobody splits it.
        out.put_u16(self.children.len() as u16);
        out.put_uint(self.left, context.offset_width());
        out.put_uint(self.right, context.offset_width());
        for (place, key) in self.keys.iter().enumerate() {
            out.put_uint(*key, context.length_width());
            if let Some(child) = self.children.get(place) {
                out.put_uint(*child, context.offset_width());
            }
        }
        out.put_zeros(end.saturating_sub(out.len()));
    }
}

impl Node<ChunkKey> {
    /// Bytes of a node, for the superblock's `chunk_internal_k` and a dataset of `rank`.
    pub fn encoded_length(context: &Context, chunk_internal_k: u16, rank: usize) -> usize {
        let children = 2 * usize::from(chunk_internal_k);
        let key = chunk_key_length(rank);
        header_length(context) + children * (context.offset_width() + key) + key
    }

    /// Bytes of a node up to the last key in use, from its first bytes, of which there must be as
    /// many as an empty node has.
    pub fn measure(bytes: &[u8], context: &Context, rank: usize) -> Result<usize, DecodeError> {
        let mut reader = context.reader(STRUCTURE, bytes);
        reader.signature(b"TREE")?;
        reader.skip(2)?;
        let count = usize::from(reader.u16()?);
        let key = chunk_key_length(rank);
        let each = key.saturating_add(context.offset_width());
        Ok(header_length(context).saturating_add(count.saturating_mul(each)).saturating_add(key))
    }

    /// Decodes a node of a chunk index of a dataset of `rank`; `bytes` may be cut after the last
    /// key in use.
    pub fn decode(bytes: &[u8], context: &Context, rank: usize) -> Result<Self, DecodeError> {
        decode(bytes, context, 1, chunk_key_length(rank), |reader| {
            let (size, filter_mask) = (reader.u32()?, reader.u32()?);
            let mut start = SmallVec::new();
            for _ in 0..reader.count(rank as u64, 8)? {
                start.push(reader.u64()?);
            }
            Ok(ChunkKey { size, filter_mask, start, within: reader.u64()? })
        })
    }

    /// Appends a node of the length that [`encoded_length`](Self::encoded_length) gives. There must
    /// be no more than `2 * chunk_internal_k` children and one key more than children.
    pub fn encode(
        &self,
        context: &Context,
        chunk_internal_k: u16,
        rank: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FormatError> {
        let most = 2 * u64::from(chunk_internal_k);
        let count = fits(STRUCTURE, "children", most, self.children.len())?;
        let end = out.len() + Self::encoded_length(context, chunk_internal_k, rank);
        out.put_bytes(b"TREE");
        out.put_bytes(&[1, self.level]);
        out.put_uint(count, 2);
        out.put_uint(self.left, context.offset_width());
        out.put_uint(self.right, context.offset_width());
        let mut children = self.children.iter();
        for key in &self.keys {
            if key.start.len() != rank {
                return Err(FormatError::unencodable(STRUCTURE, "a key of another rank"));
            }
            out.put_u32(key.size);
            out.put_u32(key.filter_mask);
            key.start.iter().chain([&key.within]).for_each(|&place| out.put_u64(place));
            if let Some(&child) = children.next() {
                out.put_uint(child, context.offset_width());
            }
        }
        out.resize(end.max(out.len()), 0);
        Ok(())
    }
}

fn header_length(context: &Context) -> usize {
    8 + 2 * context.offset_width()
}

fn chunk_key_length(rank: usize) -> usize {
    rank.saturating_add(2).saturating_mul(8)
}

fn decode<K>(
    bytes: &[u8],
    context: &Context,
    kind: u8,
    key_length: usize,
    mut key: impl FnMut(&mut Reader<'_>) -> Result<K, DecodeError>,
) -> Result<Node<K>, DecodeError> {
    let mut reader = context.reader(STRUCTURE, bytes);
    reader.signature(b"TREE")?;
    let start = reader.clone();
    let found = reader.u8()?;
    if found != kind {
        return Err(start.error(format!("node type {kind}"), found));
    }
    let level = reader.u8()?;
    let count = reader.u16()?;
    let left = reader.offset(context.offset_width())?;
    let right = reader.offset(context.offset_width())?;
    let each = key_length.saturating_add(context.offset_width());
    let count = reader.count(u64::from(count), each)?;
    let mut node = Node { level, left, right, children: Vec::new(), keys: Vec::new() };
    if count == 0 {
        return Ok(node);
    }
    node.children.reserve_exact(count);
    node.keys.reserve_exact(count + 1);
    for _ in 0..count {
        node.keys.push(key(&mut reader)?);
        node.children.push(reader.offset(context.offset_width())?);
    }
    node.keys.push(key(&mut reader)?);
    Ok(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_node_is_read_as_it_was_written() {
        let (children, keys) = (vec![0x400, 0x800], vec![0, 8, 24]);
        let node = GroupNode { level: 1, left: 0x10, right: crate::UNDEFINED, children, keys };
        let mut bytes = Vec::new();
        node.encode(Sizes::default(), 16, &mut bytes);
        assert_eq!(bytes.len(), 544);
        assert_eq!(GroupNode::decode(&bytes, &Context::default()).unwrap(), node);
    }

    #[test]
    fn a_chunk_node_gives_size_mask_and_place() {
        let mut bytes = b"TREE\x01\x00\x01\x00".to_vec();
        bytes.put_zeros(16);
        bytes.put_u32(96);
        bytes.put_u32(1);
        for start in [20, 30, 0] {
            bytes.put_u64(start);
        }
        bytes.put_u64(0x1000);
        bytes.put_zeros(8 + 24);
        let node = ChunkNode::decode(&bytes, &Context::default(), 2).unwrap();
        assert_eq!(node.children, [0x1000]);
        let start = SmallVec::from_slice(&[20, 30]);
        let expected = ChunkKey { size: 96, filter_mask: 1, start, within: 0 };
        assert_eq!(node.keys[0], expected);
        assert_eq!(node.keys.len(), 2);
        let mut encoded = Vec::new();
        node.encode(&Context::default(), 32, 2, &mut encoded).unwrap();
        assert_eq!(encoded.len(), ChunkNode::encoded_length(&Context::default(), 32, 2));
        assert_eq!(encoded[..bytes.len()], bytes);
        assert!(node.encode(&Context::default(), 0, 2, &mut encoded).is_err(), "too many");
        assert!(node.encode(&Context::default(), 1, 3, &mut encoded).is_err(), "another rank");
        assert!(GroupNode::decode(&bytes, &Context::default()).is_err(), "another type");
    }

    #[test]
    fn node_lengths_follow_the_ranks() {
        let context = Context::default();
        assert_eq!(GroupNode::encoded_length(&context, 16), 544);
        assert_eq!(ChunkNode::encoded_length(&context, 32, 2), 24 + 64 * 40 + 32);
    }

    #[test]
    fn counts_beyond_the_bytes_are_refused() {
        let mut bytes = b"TREE\x01\x00\xFF\xFF".to_vec();
        bytes.put_zeros(200);
        assert!(ChunkNode::decode(&bytes, &Context::default(), 2).is_err());
        assert!(ChunkNode::decode(&bytes, &Context::default(), usize::MAX).is_err());
    }
}
