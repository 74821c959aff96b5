//! Adding and removing links of an old-style group.

use super::{Changed, OldGroup, Way};
use crate::{Error, Result};
use pumice_format::UNDEFINED;
use pumice_format::btree1::GroupNode;
use pumice_format::messages::Link;
use pumice_format::symbol_table_node::{Scratch, SymbolTableNode};
use pumice_medium::Medium;
use pumice_medium::{DataKind, MetadataIo};

impl OldGroup {
    /// Adds a link. There must be none of that name.
    pub(crate) fn insert(&mut self, io: &Medium, link: &Link) -> Result<()> {
        let entry = self.entry(link)?;
        let name_offset = entry.name_offset;
        let Some((way, leaf)) = self.way_to(io, &link.name)? else {
            // The first link of all.
            let leaf = self.add_leaf(io, SymbolTableNode { entries: vec![entry] })?;
            let root = self.changed_node(io, self.root)?;
            root.children = vec![leaf];
            root.keys = vec![0, name_offset];
            return Ok(());
        };
        let place = match self.position(io, leaf, &link.name)? {
            Ok(_) => return Err(Error::Internal("a link that is there already".into())),
            Err(place) => place,
        };
        let most = 2 * usize::from(self.leaf_k);
        let entries = &mut self.changed_leaf(io, leaf)?.entries;
        entries.insert(place, entry);
        if place + 1 == entries.len() {
            self.raise_right_keys(io, &way, name_offset)?;
        }
        let entries = &mut self.changed_leaf(io, leaf)?.entries;
        if entries.len() <= most {
            return Ok(());
        }
        let right = entries.split_off(entries.len() / 2);
        let separator = entries.last().map_or(0, |entry| entry.name_offset);
        let right = self.add_leaf(io, SymbolTableNode { entries: right })?;
        self.add_child(io, way, separator, right)
    }

    /// Raises the keys to the right of `name`, now the last name below a way. This is needed only
    /// at the right edge of the tree; elsewhere the way would have led further right.
    fn raise_right_keys(&mut self, io: &Medium, way: &Way, name: u64) -> Result<()> {
        let new = self.names.bytes(name)?.to_vec();
        for &(address, child) in way.iter().rev() {
            let key = self.node(io, address, None)?.keys.get(child + 1).copied().unwrap_or(0);
            if self.names.bytes(key)? >= new.as_slice() {
                break;
            }
            if let Some(key) = self.changed_node(io, address)?.keys.get_mut(child + 1) {
                *key = name;
            }
        }
        Ok(())
    }

    /// Puts a new child behind the last one of a way, splitting nodes that get too full.
    fn add_child(&mut self, io: &Medium, mut way: Way, separator: u64, child: u64) -> Result<()> {
        let (mut separator, mut child) = (separator, child);
        let most = 2 * usize::from(self.internal_k);
        while let Some((address, number)) = way.pop() {
            let is_root = address == self.root;
            let node = self.changed_node(io, address)?;
            node.children.insert(number + 1, child);
            node.keys.insert(number + 1, separator);
            if node.children.len() <= most {
                return Ok(());
            }
            if is_root {
                return self.split_root(io);
            }
            let half = node.children.len() / 2;
            let (level, old_right) = (node.level, node.right);
            let children = node.children.split_off(half);
            let keys = node.keys.split_off(half);
            separator = keys.first().copied().unwrap_or(0);
            node.keys.push(separator);
            let right = GroupNode { level, left: address, right: old_right, children, keys };
            child = self.add_node(io, right)?;
            self.changed_node(io, address)?.right = child;
            if old_right != UNDEFINED {
                self.changed_node(io, old_right)?.left = child;
            }
        }
        Ok(())
    }

    /// Moves the two halves of the root below it.
    fn split_root(&mut self, io: &Medium) -> Result<()> {
        let root = self.changed_node(io, self.root)?;
        let level = root.level;
        let above = level.checked_add(1);
        let above = above.ok_or_else(|| Error::Unsupported("a deeper B-tree".into()))?;
        let half = root.children.len() / 2;
        let (mut left, mut right) = (root.clone(), root.clone());
        right.children = left.children.split_off(half);
        right.keys = left.keys.split_off(half);
        let separator = right.keys.first().copied().unwrap_or(0);
        left.keys.push(separator);
        let ends = [left.keys.first(), right.keys.last()].map(|key| key.copied().unwrap_or(0));
        let left_address = self.add_node(io, left)?;
        right.left = left_address;
        let right_address = self.add_node(io, right)?;
        self.changed_node(io, left_address)?.right = right_address;
        let root = self.changed_node(io, self.root)?;
        root.level = above;
        root.children = vec![left_address, right_address];
        root.keys = vec![ends[0], separator, ends[1]];
        Ok(())
    }

    /// Removes the link of a name and gives it.
    pub(crate) fn remove(&mut self, io: &Medium, name: &str) -> Result<Option<Link>> {
        let Some((way, leaf)) = self.way_to(io, name)? else { return Ok(None) };
        let Ok(place) = self.position(io, leaf, name)? else { return Ok(None) };
        let link = self.entry_link(io, leaf, place)?;
        let entries = &mut self.changed_leaf(io, leaf)?.entries;
        let removed = entries.remove(place);
        let gone = removed.name_offset;
        let last = entries.last().map(|entry| entry.name_offset);
        if place == entries.len() {
            // It was the last: keys that name it become the one that is now, or that before.
            let new = match (last, way.last()) {
                (Some(last), _) => last,
                (None, Some(&(address, number))) => {
                    self.node(io, address, None)?.keys.get(number).copied().unwrap_or(0)
                }
                (None, None) => 0,
            };
            self.replace_key(io, &way, gone, new)?;
        }
        if last.is_none() {
            self.leaves.remove(&leaf);
            io.free(leaf, self.leaf_length());
            self.drop_child(io, way)?;
        }
        self.names.remove(gone)?;
        if let Scratch::SoftLink { value_offset } = removed.scratch {
            self.names.remove(u64::from(value_offset))?;
        }
        Ok(Some(link))
    }

    /// Replaces a key on the way to a leaf, and at the left edge of the next subtree.
    fn replace_key(&mut self, io: &Medium, way: &Way, gone: u64, new: u64) -> Result<()> {
        for &(address, number) in way.iter().rev() {
            let node = self.node(io, address, None)?;
            if node.keys.get(number + 1) != Some(&gone) {
                return Ok(());
            }
            let next = node.children.get(number + 1).copied();
            let mut level = node.level;
            if let Some(key) = self.changed_node(io, address)?.keys.get_mut(number + 1) {
                *key = new;
            }
            let Some(mut next) = next else { continue };
            while level > 0 {
                level -= 1;
                let node = self.node(io, next, Some(level))?;
                let Some(&first) = node.children.first() else { break };
                if node.keys.first() == Some(&gone)
                    && let Some(key) = self.changed_node(io, next)?.keys.first_mut()
                {
                    *key = new;
                }
                next = first;
            }
            return Ok(());
        }
        Ok(())
    }

    /// Takes the last child of a way out of its node, and nodes that have none left out of theirs.
    fn drop_child(&mut self, io: &Medium, mut way: Way) -> Result<()> {
        while let Some((address, number)) = way.pop() {
            let is_root = address == self.root;
            let node = self.changed_node(io, address)?;
            node.children.remove(number);
            node.keys.remove(number + 1);
            if !node.children.is_empty() {
                return Ok(());
            }
            if is_root {
                node.level = 0;
                node.keys.clear();
                return Ok(());
            }
            let (left, right) = (node.left, node.right);
            if left != UNDEFINED {
                self.changed_node(io, left)?.right = right;
            }
            if right != UNDEFINED {
                self.changed_node(io, right)?.left = left;
            }
            self.nodes.remove(&address);
            io.free(address, self.node_length());
        }
        Ok(())
    }

    fn changed_node(&mut self, io: &Medium, address: u64) -> Result<&mut GroupNode> {
        self.node(io, address, None)?;
        let node = self.nodes.get_mut(&address);
        let node = node.ok_or_else(|| Error::Internal("a node that is not there".into()))?;
        node.dirty = true;
        Ok(&mut node.value)
    }

    fn changed_leaf(&mut self, io: &Medium, address: u64) -> Result<&mut SymbolTableNode> {
        self.leaf(io, address)?;
        let leaf = self.leaves.get_mut(&address);
        let leaf = leaf.ok_or_else(|| Error::Internal("a leaf that is not there".into()))?;
        leaf.dirty = true;
        Ok(&mut leaf.value)
    }

    pub(super) fn add_node(&mut self, io: &Medium, value: GroupNode) -> Result<u64> {
        let address = io.allocate_for(DataKind::Tree, self.node_length())?;
        self.nodes.insert(address, Changed { value, dirty: true });
        Ok(address)
    }

    fn add_leaf(&mut self, io: &Medium, value: SymbolTableNode) -> Result<u64> {
        let address = io.allocate_for(DataKind::Tree, self.leaf_length())?;
        self.leaves.insert(address, Changed { value, dirty: true });
        Ok(address)
    }
}
