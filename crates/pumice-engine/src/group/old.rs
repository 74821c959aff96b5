//! Links of old-style groups: a version 1 B-tree of symbol table nodes, names in a local heap.
//!
//! Nodes that were needed stay in memory by address; a commit stages the changed ones. The B-tree's
//! root and the heap's header never move, since the superblock and other groups' entries may name
//! them.
//!
//! Invariant: child i of a B-tree node holds the names that are greater than key i and not greater
//! than key i+1. Every key is the name of an entry, or the empty string in front of all others, so
//! that the name of an entry that is removed is taken out of all keys before its bytes are reused.

mod edit;
#[cfg(test)]
mod tests;

use crate::{Error, Result};
use pumice_bytes::{Budget, DecodeError};
use pumice_format::btree1::GroupNode;
use pumice_format::messages::{Link, LinkTarget, SymbolTable};
use pumice_format::symbol_table_node::{Scratch, SymbolTableEntry, SymbolTableNode};
use pumice_format::{Context, Sizes, UNDEFINED};
use pumice_medium::Medium;
use pumice_medium::MetadataIo;
use pumice_structures::local_heap::LocalHeap;
use std::cmp::Ordering;
use std::collections::HashMap;

const TREE: &str = "B-tree of a group";

/// The links of an open old-style group.
pub(crate) struct OldGroup {
    root: u64,
    names: LocalHeap,
    nodes: HashMap<u64, Changed<GroupNode>>,
    leaves: HashMap<u64, Changed<SymbolTableNode>>,
    sizes: Sizes,
    leaf_k: u16,
    internal_k: u16,
}

/// A block of the file in memory, and whether it was changed.
struct Changed<T> {
    value: T,
    dirty: bool,
}

/// The way from the root to a symbol table node: B-tree nodes and the numbers of their children.
type Way = Vec<(u64, usize)>;

impl OldGroup {
    /// A new group without links.
    pub(crate) fn create(io: &Medium, ranks: (u16, u16)) -> Result<Self> {
        let names = LocalHeap::create(io)?;
        let mut group = Self::new(io, ranks, UNDEFINED, names);
        let (left, right) = (UNDEFINED, UNDEFINED);
        let empty = GroupNode { level: 0, left, right, children: Vec::new(), keys: Vec::new() };
        group.root = group.add_node(io, empty)?;
        Ok(group)
    }

    /// The links behind a symbol table message.
    pub(crate) fn open(io: &Medium, ranks: (u16, u16), table: &SymbolTable) -> Result<Self> {
        let names = LocalHeap::open(io, table.heap_address)?;
        Ok(Self::new(io, ranks, table.btree_address, names))
    }

    fn new(io: &Medium, (leaf_k, internal_k): (u16, u16), root: u64, names: LocalHeap) -> Self {
        let (nodes, leaves) = Default::default();
        let sizes = io.sizes();
        Self { root, names, nodes, leaves, sizes, leaf_k, internal_k }
    }

    /// The addresses of B-tree and heap.
    pub(crate) fn table(&self) -> SymbolTable {
        SymbolTable { btree_address: self.root, heap_address: self.names.address() }
    }

    /// The link of a name.
    pub(crate) fn find(&mut self, io: &Medium, name: &str) -> Result<Option<Link>> {
        let Some((way, leaf)) = self.way_to(io, name)? else { return Ok(None) };
        drop(way);
        match self.position(io, leaf, name)? {
            Ok(place) => self.entry_link(io, leaf, place).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// All links in order of their names.
    pub(crate) fn list(&mut self, io: &Medium) -> Result<Vec<Link>> {
        // Many entries may name one long string, which would take more memory than the file has.
        let mut budget = Budget::new(self.names.segment_bytes().saturating_mul(4).max(1 << 20));
        let mut links = Vec::new();
        let mut visited = std::collections::HashSet::new();
        for leaf in self.leaf_addresses(io)? {
            if !visited.insert(leaf) {
                return Err(DecodeError::new(TREE, leaf, "a new node", "one met again").into());
            }
            for place in 0..self.leaf(io, leaf)?.entries.len() {
                let link = self.entry_link(io, leaf, place)?;
                budget.spend(link.name.len() as u64, "local heap", self.names.address())?;
                links.push(link);
            }
        }
        Ok(links)
    }

    /// The symbol table nodes, left to right.
    fn leaf_addresses(&mut self, io: &Medium) -> Result<Vec<u64>> {
        let mut leaves = Vec::new();
        let mut visited = std::collections::HashSet::new();
        let mut pending = vec![(self.root, None)];
        while let Some((address, level)) = pending.pop() {
            if !visited.insert(address) {
                return Err(DecodeError::new(TREE, address, "a new node", "one met again").into());
            }
            let node = self.node(io, address, level)?;
            match node.level {
                0 => leaves.extend_from_slice(&node.children),
                level => {
                    let children = node.children.iter().rev();
                    pending.extend(children.map(|&child| (child, Some(level - 1))));
                }
            }
        }
        Ok(leaves)
    }

    fn entry_link(&mut self, io: &Medium, leaf: u64, place: usize) -> Result<Link> {
        let entry = self.leaf(io, leaf)?.entries.get(place).cloned();
        let entry = entry.ok_or_else(|| Error::Internal("a symbol that is not there".into()))?;
        let target = match entry.scratch {
            Scratch::SoftLink { value_offset } => {
                LinkTarget::Soft { path: self.names.text(u64::from(value_offset))? }
            }
            _ => LinkTarget::Hard { address: entry.header_address },
        };
        Ok(Link::new(self.names.text(entry.name_offset)?, target))
    }

    /// The symbol table node that has a name if anyone has, and the way there.
    fn way_to(&mut self, io: &Medium, name: &str) -> Result<Option<(Way, u64)>> {
        let mut way = Vec::new();
        let (mut address, mut level) = (self.root, None);
        loop {
            self.node(io, address, level)?;
            let Some(Changed { value: node, .. }) = self.nodes.get(&address) else {
                return Err(Error::Internal("a node that is not there".into()));
            };
            let Some(last) = node.children.len().checked_sub(1) else { return Ok(None) };
            // The first child whose right key is not less than the name.
            let (mut low, mut high) = (0, last);
            while low < high {
                let middle = (low + high) / 2;
                let key = node.keys.get(middle + 1).copied().unwrap_or_default();
                match self.names.bytes(key)?.cmp(name.as_bytes()) {
                    Ordering::Less => low = middle + 1,
                    _ => high = middle,
                }
            }
            way.push((address, low));
            let child = node.children[low];
            if node.level == 0 {
                return Ok(Some((way, child)));
            }
            (address, level) = (child, Some(node.level - 1));
        }
    }

    /// The position of a name in a symbol table node, or where it would be.
    fn position(&mut self, io: &Medium, leaf: u64, name: &str) -> Result<Result<usize, usize>> {
        self.leaf(io, leaf)?;
        let entries = self.leaves.get(&leaf).map_or(&[][..], |leaf| &leaf.value.entries);
        let (mut low, mut high) = (0, entries.len());
        while low < high {
            let middle = (low + high) / 2;
            match self.names.bytes(entries[middle].name_offset)?.cmp(name.as_bytes()) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(Ok(middle)),
                Ordering::Greater => high = middle,
            }
        }
        Ok(Err(low))
    }

    /// The B-tree node at an address, which must be on the given level.
    fn node(&mut self, io: &Medium, address: u64, level: Option<u8>) -> Result<&mut GroupNode> {
        if !self.nodes.contains_key(&address) {
            let context = Context::new(self.sizes).at(address);
            let length = GroupNode::encoded_length(&context, self.internal_k);
            let value = GroupNode::decode(&io.read_up_to(address, length)?, &context)?;
            self.nodes.insert(address, Changed { value, dirty: false });
        }
        let node = self.nodes.get_mut(&address).map(|node| &mut node.value);
        let node = node.ok_or_else(|| Error::Internal("a node that is not there".into()))?;
        if let Some(level) = level.filter(|&level| level != node.level) {
            let expected = format!("level {level}");
            return Err(DecodeError::new(TREE, address, expected, node.level).into());
        }
        Ok(node)
    }

    fn leaf(&mut self, io: &Medium, address: u64) -> Result<&mut SymbolTableNode> {
        if !self.leaves.contains_key(&address) {
            let context = Context::new(self.sizes).at(address);
            let length = SymbolTableNode::encoded_length(&context, self.leaf_k);
            let value = SymbolTableNode::decode(&io.read_up_to(address, length)?, &context)?;
            self.leaves.insert(address, Changed { value, dirty: false });
        }
        let leaf = self.leaves.get_mut(&address).map(|leaf| &mut leaf.value);
        leaf.ok_or_else(|| Error::Internal("a symbol table node that is not there".into()))
    }

    fn entry(&mut self, link: &Link) -> Result<SymbolTableEntry> {
        let (header_address, scratch) = match &link.target {
            LinkTarget::Hard { address } => (*address, Scratch::None),
            LinkTarget::Soft { path } => {
                let offset = self.names.insert(path)?;
                let value_offset = u32::try_from(offset)
                    .map_err(|_| Error::Unsupported("names of more than 4 GiB".into()))?;
                (UNDEFINED, Scratch::SoftLink { value_offset })
            }
            _ => return Err(Error::Internal("a link that old-style groups cannot have".into())),
        };
        let name_offset = self.names.insert(&link.name)?;
        Ok(SymbolTableEntry { name_offset, header_address, scratch })
    }

    /// Stages changed blocks.
    pub(crate) fn commit(&mut self, io: &Medium) -> Result<()> {
        self.stage_nodes(io);
        self.names.commit(io)
    }

    /// Stages blocks that keep their address. Returns about how many bytes of memory wait for a
    /// commit.
    pub(crate) fn spill(&mut self, io: &Medium) -> Result<usize> {
        self.stage_nodes(io);
        self.names.spill(io)
    }

    /// Moves names that a commit placed behind the space that it freed. Returns whether any were.
    pub(crate) fn move_down(&mut self, io: &Medium) -> Result<bool> {
        self.names.move_down(io)
    }

    fn stage_nodes(&mut self, io: &Medium) {
        for (&address, node) in self.nodes.iter_mut().filter(|(_, node)| node.dirty) {
            let mut bytes = Vec::new();
            node.value.encode(self.sizes, self.internal_k, &mut bytes);
            io.stage(address, bytes);
            node.dirty = false;
        }
        for (&address, leaf) in self.leaves.iter_mut().filter(|(_, leaf)| leaf.dirty) {
            let mut bytes = Vec::new();
            leaf.value.encode(self.sizes, self.leaf_k, &mut bytes);
            io.stage(address, bytes);
            leaf.dirty = false;
        }
    }

    /// Forgets nodes that can be read again.
    pub(crate) fn trim(&mut self) {
        self.nodes.retain(|_, node| node.dirty);
        self.leaves.retain(|_, leaf| leaf.dirty);
    }

    /// Gives all its space back to `io`.
    pub(crate) fn delete(mut self, medium: &Medium, io: &dyn MetadataIo) -> Result<()> {
        let leaf_length = self.leaf_length();
        for leaf in self.leaf_addresses(medium)? {
            io.free(leaf, leaf_length);
        }
        // Listing the leaves has loaded every node.
        for &address in self.nodes.keys() {
            io.free(address, self.node_length());
        }
        self.names.delete(io);
        Ok(())
    }

    fn node_length(&self) -> u64 {
        GroupNode::encoded_length(&Context::new(self.sizes), self.internal_k) as u64
    }

    fn leaf_length(&self) -> u64 {
        SymbolTableNode::encoded_length(&Context::new(self.sizes), self.leaf_k) as u64
    }
}
