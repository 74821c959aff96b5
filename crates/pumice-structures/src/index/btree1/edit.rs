//! Changing a version 1 B-tree: inserting with splits, removing, staging changed nodes.
//!
//! A change first reads every node that it may touch, then changes them: it happens or does not.

use super::{BTree1, Node, STRUCTURE, read};
use crate::index::shape::outside;
use pumice_bytes::DecodeError;
use pumice_format::btree1::{ChunkKey, ChunkNode};
use pumice_format::index::{ChunkRecord, Coord};
use pumice_format::{Context, UNDEFINED};
use pumice_medium::{DataKind, MetadataIo};
use pumice_medium::{Error, Result};

/// The nodes from the root to a leaf, each with the child that leads on.
type Path = Vec<(u64, usize)>;

impl BTree1 {
    pub(in crate::index) fn insert(
        &mut self,
        io: &dyn MetadataIo,
        coord: &[u64],
        record: &ChunkRecord,
    ) -> Result<()> {
        let start = self.first_cell(coord).filter(|_| self.is_inside(coord));
        let start = start.ok_or_else(|| outside(coord))?;
        let key = key_of(start, record)?;
        if self.address == UNDEFINED {
            return self.plant(io, key, record.address);
        }
        let path = self.path(io, &key.start)?;
        let &(leaf, place) = path.last().ok_or_else(super::unloaded)?;
        let parts = &mut self.node_mut(leaf)?.parts;
        let found = parts.keys.get(place).is_some_and(|found| found.start == key.start);
        if found && place < parts.children.len() {
            (parts.keys[place], parts.children[place]) = (key, record.address);
            self.node_mut(leaf)?.dirty = true;
            return Ok(());
        }
        self.make_room(io, &path)?;
        let path = self.path(io, &key.start)?;
        self.add(&path, key, record.address)
    }

    pub(in crate::index) fn remove(
        &mut self,
        io: &dyn MetadataIo,
        coord: &[u64],
    ) -> Result<Option<ChunkRecord>> {
        let Some(found) = self.lookup(io, coord)? else { return Ok(None) };
        let start = self.first_cell(coord).ok_or_else(|| outside(coord))?;
        let path = self.path(io, &start)?;
        for &(address, _) in &path {
            self.load_neighbours(address, io)?;
        }
        for &(address, place) in path.iter().rev() {
            let root = address == self.address;
            let parts = &mut self.node_mut(address)?.parts;
            parts.children.remove(place);
            // The keys left of the child now belong to the next one, or to none.
            parts.keys.remove(place);
            let empty = parts.children.is_empty();
            if empty && root {
                (parts.level, parts.keys) = (0, Vec::new());
            }
            self.node_mut(address)?.dirty = true;
            if !empty || root {
                break;
            }
            self.unlink(address, io)?;
        }
        Ok(Some(found))
    }

    pub(in crate::index) fn commit(&mut self, io: &dyn MetadataIo) -> Result<u64> {
        let (context, rank) = (Context::new(io.sizes()), self.chunk.len());
        for (&address, node) in self.nodes.iter_mut().filter(|(_, node)| node.dirty) {
            let mut bytes = Vec::new();
            node.parts.encode(&context, io.chunk_node_rank(), rank, &mut bytes)?;
            io.stage(address, bytes);
            node.dirty = false;
        }
        Ok(self.address)
    }

    pub(in crate::index) fn delete(&mut self, io: &dyn MetadataIo) -> Result<()> {
        let length = self.node_length(io);
        for address in self.addresses(io)? {
            io.free(address, length);
        }
        self.nodes.clear();
        self.address = UNDEFINED;
        Ok(())
    }

    /// Allocates a root for a tree without chunks.
    pub(in crate::index) fn place(&mut self, io: &dyn MetadataIo) -> Result<()> {
        if self.address != UNDEFINED {
            return Ok(());
        }
        self.root(io, Vec::new(), Vec::new())
    }

    /// Makes the tree of one chunk.
    fn plant(&mut self, io: &dyn MetadataIo, key: ChunkKey, child: u64) -> Result<()> {
        let behind = self.behind(&key.start);
        self.root(io, vec![child], vec![key, behind])
    }

    /// Makes a root that is a leaf.
    fn root(&mut self, io: &dyn MetadataIo, children: Vec<u64>, keys: Vec<ChunkKey>) -> Result<()> {
        let address = io.allocate_for(DataKind::Tree, self.node_length(io))?;
        let (left, right) = (UNDEFINED, UNDEFINED);
        let parts = ChunkNode { level: 0, left, right, children, keys };
        self.nodes.insert(address, Node { parts, parent: None, dirty: true });
        self.address = address;
        Ok(())
    }

    /// The way to where a chunk is or would be; at the leaf, the place of the chunk or that of the
    /// last one before it (0 if there is none).
    fn path(&mut self, io: &dyn MetadataIo, start: &Coord) -> Result<Path> {
        let (mut path, mut address) = (Path::new(), self.address);
        self.load(address, None, io)?;
        loop {
            let node = self.node(address)?;
            let place = node.place_of(start).unwrap_or(0);
            path.push((address, place));
            if node.parts.level == 0 {
                return Ok(path);
            }
            let child = node.parts.children.get(place).copied();
            let child = child.ok_or_else(|| damaged(address, "children", "none"))?;
            self.load(child, Some(address), io)?;
            address = child;
        }
    }

    /// Splits every full node on the way, from the root down, so that a chunk has room in the leaf.
    fn make_room(&mut self, io: &dyn MetadataIo, path: &Path) -> Result<()> {
        let most = 2 * usize::from(io.chunk_node_rank());
        let sizes = path.iter().map(|&(address, _)| Ok(self.node(address)?.parts.children.len()));
        let sizes: Vec<usize> = sizes.collect::<Result<_>>()?;
        if let Some((&(address, _), &size)) =
            path.iter().zip(&sizes).find(|&(_, &size)| size > most || most < 2)
        {
            return Err(damaged(address, format!("at most {most} children"), size).into());
        }
        // Only full nodes from the leaf up, without a gap, must be split.
        let full = sizes.iter().rev().take_while(|&&size| size == most).count();
        for &(address, place) in &path[path.len() - full..] {
            self.load_neighbours(address, io)?;
            self.split(io, address, place)?;
        }
        Ok(())
    }

    /// Splits a node that is the root, or whose parent has room. The next chunk goes to `place`.
    fn split(&mut self, io: &dyn MetadataIo, address: u64, place: usize) -> Result<()> {
        let address = if address == self.address { self.raise_root(io)? } else { address };
        let fresh = io.allocate_for(DataKind::Tree, self.node_length(io))?;
        let Node { parts, parent, dirty } = self.node_mut(address)?;
        *dirty = true;
        let parent = parent.ok_or_else(super::unloaded)?;
        let count = parts.children.len();
        // Where chunks are appended, the left node stays nearly full.
        let at = match (parts.left, parts.right) {
            (_, UNDEFINED) if place + 1 >= count => count * 9 / 10,
            (UNDEFINED, _) if place == 0 => count / 10 + 1,
            _ => count / 2,
        };
        let keys = parts.keys[at..].to_vec();
        parts.keys.truncate(at + 1);
        let children = parts.children.split_off(at);
        let (level, right) = (parts.level, parts.right);
        parts.right = fresh;
        let between = keys[0].clone();
        for child in children.iter().filter(|_| level > 0) {
            if let Some(child) = self.nodes.get_mut(child) {
                child.parent = Some(fresh);
            }
        }
        let parts = ChunkNode { level, left: address, right, children, keys };
        self.nodes.insert(fresh, Node { parts, parent: Some(parent), dirty: true });
        self.neighbour(right, |parts| parts.left = fresh);
        let above = self.node_mut(parent)?;
        let at = above.parts.children.iter().position(|&child| child == address);
        let at = at.ok_or_else(super::unloaded)? + 1;
        above.parts.children.insert(at, fresh);
        above.parts.keys.insert(at, between);
        above.dirty = true;
        Ok(())
    }

    /// Moves the root's contents into a new node, its only child. Returns the address of that.
    fn raise_root(&mut self, io: &dyn MetadataIo) -> Result<u64> {
        let (root, fresh) = (self.address, io.allocate_for(DataKind::Tree, self.node_length(io))?);
        let mut node = self.nodes.remove(&root).ok_or_else(super::unloaded)?;
        let ends = [node.parts.keys.first(), node.parts.keys.last()];
        let keys: Vec<ChunkKey> = ends.into_iter().flatten().cloned().collect();
        let (left, right) = (UNDEFINED, UNDEFINED);
        let level = node.parts.level.checked_add(1);
        let level = level.ok_or_else(|| damaged(root, "fewer levels", 256))?;
        let parts = ChunkNode { level, left, right, children: vec![fresh], keys };
        self.nodes.insert(root, Node { parts, parent: None, dirty: true });
        for child in node.parts.children.iter().filter(|_| node.parts.level > 0) {
            if let Some(child) = self.nodes.get_mut(child) {
                child.parent = Some(fresh);
            }
        }
        (node.parent, node.dirty) = (Some(root), true);
        self.nodes.insert(fresh, node);
        Ok(fresh)
    }

    /// Adds a chunk to a leaf that has room, and lets the keys on the way include it.
    fn add(&mut self, path: &Path, key: ChunkKey, child: u64) -> Result<()> {
        // The key behind a node: the next node's first key, or the one after the chunk.
        let mut behind = self.behind(&key.start);
        for &(address, place) in path {
            let node = self.node_mut(address)?;
            let ChunkNode { level, children, keys, .. } = &mut node.parts;
            if keys.len() != children.len() + 1 {
                (*keys, node.dirty) = (vec![behind.clone()], true);
            }
            if let Some(last) = keys.last_mut().filter(|last| last.start <= key.start) {
                (*last, node.dirty) = (behind.clone(), true);
            }
            let first = !children.is_empty() && key.start < keys[0].start;
            if *level > 0 {
                if first {
                    (keys[0], node.dirty) = (key.clone(), true);
                }
                behind.clone_from(&keys[(place + 1).min(children.len())]);
                continue;
            }
            let at = if first || children.is_empty() { 0 } else { place + 1 };
            keys.insert(at, key.clone());
            children.insert(at, child);
            node.dirty = true;
        }
        Ok(())
    }

    /// Forgets a node that has no children any more, and lets its neighbours know each other.
    fn unlink(&mut self, address: u64, io: &dyn MetadataIo) -> Result<()> {
        let node = self.nodes.remove(&address).ok_or_else(super::unloaded)?;
        let (left, right) = (node.parts.left, node.parts.right);
        self.neighbour(left, |parts| parts.right = right);
        self.neighbour(right, |parts| parts.left = left);
        io.free(address, self.node_length(io));
        Ok(())
    }

    /// Reads the neighbours of a node. A neighbour that is none, in a damaged file, is ignored.
    fn load_neighbours(&mut self, address: u64, io: &dyn MetadataIo) -> Result<()> {
        let ChunkNode { level, left, right, .. } = self.node(address)?.parts;
        for (side, is_left) in [(left, true), (right, false)] {
            if side == UNDEFINED || self.nodes.contains_key(&side) {
                continue;
            }
            let Ok(parts) = read(side, self.chunk.len(), io) else { continue };
            let back = if is_left { parts.right } else { parts.left };
            if parts.level == level && back == address {
                self.nodes.insert(side, Node { parts, parent: None, dirty: false });
            }
        }
        Ok(())
    }

    fn neighbour(&mut self, address: u64, change: impl FnOnce(&mut ChunkNode)) {
        if let Some(node) = self.nodes.get_mut(&address).filter(|_| address != UNDEFINED) {
            change(&mut node.parts);
            node.dirty = true;
        }
    }

    /// The key behind a chunk that is the last, as libhdf5 has it: one further along all axes, that
    /// inside the element included.
    fn behind(&self, start: &Coord) -> ChunkKey {
        let cells = self.chunk.iter().product::<u64>().max(1);
        let next = start.iter().zip(&self.chunk).map(|(&start, &side)| start.saturating_add(side));
        let within = self.format.chunk_bytes / cells;
        ChunkKey { size: 0, filter_mask: 0, start: next.collect(), within }
    }
}

fn key_of(start: Coord, record: &ChunkRecord) -> Result<ChunkKey> {
    let size = u32::try_from(record.size).ok().filter(|_| record.address != UNDEFINED);
    let Some(size) = size.filter(|_| record.sections.is_empty()) else {
        return Err(Error::Invalid(format!(
            "a version 1 B-tree cannot name a chunk of {} bytes at {:#x}",
            record.size, record.address
        )));
    };
    Ok(ChunkKey { size, filter_mask: record.filter_mask, start, within: 0 })
}

fn damaged(
    address: u64,
    expected: impl Into<std::borrow::Cow<'static, str>>,
    found: impl std::fmt::Display,
) -> DecodeError {
    DecodeError::new(STRUCTURE, address, expected, found)
}
