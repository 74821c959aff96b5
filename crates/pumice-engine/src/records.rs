//! All records of a version 2 B-tree, in their order, for trees that are only ever read whole: the
//! indexes of dense links and attributes, and of huge objects.

use crate::metadata::MetadataIo;
use crate::{Error, Result};
use pumice_bytes::DecodeError;
use pumice_format::UNDEFINED;
use pumice_format::index::tree::{NodePointer, TreeHeader, TreeLevels, TreeNode};
use std::collections::HashSet;

const STRUCTURE: &str = "version 2 B-tree";

/// Calls `visit` with every record of the tree at `address`, which must be of one of `types`.
pub(crate) fn for_each_record(
    io: &dyn MetadataIo,
    address: u64,
    types: &[u8],
    visit: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let sizes = io.sizes();
    let bytes = io.read(address, TreeHeader::size(sizes))?;
    let header = TreeHeader::decode(&bytes, address, sizes)?;
    if !types.contains(&header.tree_type) {
        let expected = format!("a tree of type {types:?}");
        return Err(DecodeError::new(STRUCTURE, address, expected, header.tree_type).into());
    }
    if header.root.address == UNDEFINED {
        return Ok(());
    }
    let (parameters, record_size) = (header.parameters, header.record_size);
    let levels = TreeLevels::new(parameters, record_size, header.depth, sizes.offset, address)?;
    let tree_type = header.tree_type;
    let mut walk = Walk { io, levels, tree_type, visited: HashSet::new(), visit };
    walk.node(header.root, usize::from(header.depth))
}

struct Walk<'a> {
    io: &'a dyn MetadataIo,
    levels: TreeLevels,
    tree_type: u8,
    visited: HashSet<u64>,
    visit: &'a mut dyn FnMut(&[u8]) -> Result<()>,
}

impl Walk<'_> {
    fn node(&mut self, pointer: NodePointer, depth: usize) -> Result<()> {
        if !self.visited.insert(pointer.address) {
            let found = "one that is met again";
            return Err(Error::from(DecodeError::new(
                STRUCTURE,
                pointer.address,
                "a node with one parent",
                found,
            )));
        }
        let bytes = self.io.read(pointer.address, self.levels.parameters().node_size as usize)?;
        let node = TreeNode::decode(&bytes, &self.levels, depth, self.tree_type, pointer)?;
        let mut records = node.records.chunks_exact(self.levels.record_size());
        if depth == 0 {
            return records.try_for_each(|record| (self.visit)(record));
        }
        for child in node.children {
            self.node(child, depth - 1)?;
            if let Some(record) = records.next() {
                (self.visit)(record)?;
            }
        }
        Ok(())
    }
}
