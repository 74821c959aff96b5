//! The version 1 B-tree: the index of every chunked dataset whose layout message is older than
//! version 4.
//!
//! Keys are the first cells of chunks, in row-major order. Child `i` of a node holds the chunks
//! from key `i` up to key `i + 1`, so one binary search per level finds a chunk. Nodes are read
//! when they are first needed, kept by address, and written where they were read from. As in
//! libhdf5, the root never moves, a full node is split (unevenly at either end, where appending
//! goes on), a node without children is freed unless it is the root, and nodes of one level know
//! their neighbours.

mod edit;

use super::Visit;
use super::shape::IndexShape;
use super::tree::check_order;
use pumice_bytes::DecodeError;
use pumice_format::btree1::{ChunkKey, ChunkNode};
use pumice_format::index::{ChunkRecord, Coord, RecordFormat};
use pumice_format::{Context, UNDEFINED};
use pumice_medium::{Error, Result};
use pumice_medium::{MetadataIo, USUAL_CHUNK_NODE_RANK};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::ops::ControlFlow;

/// The usual capacity of a node, in children, and its memory beside them.
const MOST_CHILDREN: usize = 2 * USUAL_CHUNK_NODE_RANK as usize;
const NODE_OVERHEAD: usize = 192;

const STRUCTURE: &str = "version 1 B-tree of chunks";

#[derive(Debug)]
pub(super) struct BTree1 {
    format: RecordFormat,
    chunk: Coord,
    /// The most chunks along each axis.
    maximum: SmallVec<[Option<u64>; 4]>,
    address: u64,
    /// Nodes in memory, by address.
    nodes: HashMap<u64, Node>,
}

/// A node in memory.
#[derive(Debug)]
struct Node {
    parts: ChunkNode,
    /// The node that led to this one: a node has one parent, or the file is damaged.
    parent: Option<u64>,
    dirty: bool,
}

impl BTree1 {
    pub(super) fn open(address: u64, format: RecordFormat, shape: &IndexShape) -> Self {
        let chunk = Coord::from_slice(shape.chunk());
        let maximum = SmallVec::from_slice(shape.maximum());
        Self { format, chunk, maximum, address, nodes: HashMap::new() }
    }

    pub(super) fn format(&self) -> &RecordFormat {
        &self.format
    }

    pub(super) fn lookup(
        &mut self,
        io: &dyn MetadataIo,
        coord: &[u64],
    ) -> Result<Option<ChunkRecord>> {
        let Some(first) = self.first_cell(coord) else { return Ok(None) };
        if self.address == UNDEFINED {
            return Ok(None);
        }
        let mut address = self.address;
        self.load(address, None, io)?;
        loop {
            let node = self.node(address)?;
            let Some(place) = node.place_of(&first) else { return Ok(None) };
            let Some(&child) = node.parts.children.get(place) else { return Ok(None) };
            if node.parts.level == 0 {
                let key = node.parts.keys.get(place).filter(|key| key.start == first);
                return Ok(key.map(|key| record(key, child)));
            }
            self.load(child, Some(address), io)?;
            address = child;
        }
    }

    pub(super) fn for_each(
        &mut self,
        io: &dyn MetadataIo,
        after: Option<&[u64]>,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>> {
        if self.address == UNDEFINED {
            return Ok(ControlFlow::Continue(()));
        }
        let mut last = after.map(Coord::from_slice);
        let after = match after {
            // Behind the last chunk that there can be, there is none.
            Some(after) => match self.first_cell(after) {
                Some(first) => Some(first),
                None => return Ok(ControlFlow::Continue(())),
            },
            None => None,
        };
        self.load(self.address, None, io)?;
        self.visit_below(self.address, after.as_ref(), io, &mut |coord, record| {
            let coord = Coord::from_slice(coord);
            check_order(last.as_ref(), &coord)?;
            let next = visit(&coord, record);
            last = Some(coord);
            next
        })
    }

    fn visit_below(
        &mut self,
        address: u64,
        after: Option<&Coord>,
        io: &dyn MetadataIo,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>> {
        let node = self.node(address)?;
        // Children before the chunk's place are not behind it.
        let first = after.map_or(0, |after| node.place_of(after).unwrap_or(0));
        if node.parts.level == 0 {
            let children = node.parts.keys.iter().zip(&node.parts.children);
            let behind = |key: &ChunkKey| after.is_none_or(|after| key.start > *after);
            for (key, &child) in children.skip(first).filter(|(key, _)| behind(key)) {
                let next = visit(&number(key, &self.chunk, child)?, &record(key, child))?;
                if next.is_break() {
                    return Ok(next);
                }
            }
            return Ok(ControlFlow::Continue(()));
        }
        let children = node.parts.children.get(first..).unwrap_or_default().to_vec();
        for (at, child) in children.into_iter().enumerate() {
            self.load(child, Some(address), io)?;
            let next = self.visit_below(child, after.filter(|_| at == 0), io, visit)?;
            if next.is_break() {
                return Ok(next);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    pub(super) fn memory(&self) -> usize {
        self.nodes.len() * (MOST_CHILDREN * size_of::<(ChunkKey, u64)>() + NODE_OVERHEAD)
    }

    pub(super) fn trim(&mut self) {
        let root = self.address;
        self.nodes.retain(|&address, node| node.dirty || address == root);
    }

    /// The addresses of all nodes. Leaves are not read.
    fn addresses(&mut self, io: &dyn MetadataIo) -> Result<Vec<u64>> {
        if self.address == UNDEFINED {
            return Ok(Vec::new());
        }
        self.load(self.address, None, io)?;
        let mut all = vec![self.address];
        let mut next = 0;
        while let Some(&address) = all.get(next) {
            next += 1;
            // Levels come one after another: those below a node of level 1 are leaves.
            let Some(node) = self.nodes.get(&address) else { continue };
            let (level, children) = (node.parts.level, node.parts.children.clone());
            if level == 0 {
                continue;
            }
            if level > 1 {
                for &child in &children {
                    self.load(child, Some(address), io)?;
                }
            }
            all.extend(children);
        }
        Ok(all)
    }

    /// Bytes of all nodes.
    pub(super) fn storage_size(&mut self, io: &dyn MetadataIo) -> Result<u64> {
        let nodes = self.addresses(io)?.len() as u64;
        Ok(nodes.saturating_mul(self.node_length(io)))
    }

    fn node_length(&self, io: &dyn MetadataIo) -> u64 {
        let context = Context::new(io.sizes());
        ChunkNode::encoded_length(&context, io.chunk_node_rank(), self.chunk.len()) as u64
    }

    /// The first cell of a chunk, if there can be one.
    fn first_cell(&self, coord: &[u64]) -> Option<Coord> {
        let cells = coord.iter().zip(&self.chunk).map(|(&number, &side)| number.checked_mul(side));
        cells.collect()
    }

    /// Whether a chunk lies inside the maximum extent.
    fn is_inside(&self, coord: &[u64]) -> bool {
        let mut axes = coord.iter().zip(&self.maximum);
        axes.all(|(&number, limit)| limit.is_none_or(|limit| number < limit))
    }

    fn node(&self, address: u64) -> Result<&Node> {
        self.nodes.get(&address).ok_or_else(unloaded)
    }

    fn node_mut(&mut self, address: u64) -> Result<&mut Node> {
        self.nodes.get_mut(&address).ok_or_else(unloaded)
    }

    /// Reads the node at `address`, unless it is in memory. Levels fall by one on the way down, so
    /// that no file leads in circles.
    fn load(&mut self, address: u64, parent: Option<u64>, io: &dyn MetadataIo) -> Result<()> {
        if let Some(known) = self.nodes.get_mut(&address) {
            if known.parent.is_some() && known.parent != parent {
                let expected = "a node with one parent";
                return Err(DecodeError::new(STRUCTURE, address, expected, "two of them").into());
            }
            known.parent = parent;
            let level = known.parts.level;
            return self.check_level(address, parent, level);
        }
        let parts = read(address, self.chunk.len(), io)?;
        self.check_level(address, parent, parts.level)?;
        let mut children = parts.children.clone();
        children.sort_unstable();
        if parts.level > 0 && children.windows(2).any(|pair| pair[0] == pair[1]) {
            let expected = "children that are named once";
            return Err(DecodeError::new(STRUCTURE, address, expected, "one named twice").into());
        }
        self.nodes.insert(address, Node { parts, parent, dirty: false });
        Ok(())
    }

    fn check_level(&self, address: u64, parent: Option<u64>, level: u8) -> Result<()> {
        let above = parent.and_then(|parent| self.nodes.get(&parent));
        let Some(wanted) = above.map(|node| node.parts.level.saturating_sub(1)) else {
            return Ok(());
        };
        if wanted == level {
            return Ok(());
        }
        let expected = format!("a node of level {wanted}");
        Err(DecodeError::new(STRUCTURE, address, expected, level).into())
    }
}

impl Node {
    /// The last child whose key is not beyond `first`.
    fn place_of(&self, first: &Coord) -> Option<usize> {
        // The key behind the last child is no place.
        let keys = &self.parts.keys[..self.parts.children.len().min(self.parts.keys.len())];
        keys.partition_point(|key| key.start <= *first).checked_sub(1)
    }
}

/// Reads a node, in one piece if it has the length that the file's nodes have.
fn read(address: u64, rank: usize, io: &dyn MetadataIo) -> Result<ChunkNode> {
    let context = Context::new(io.sizes()).at(address);
    let usual = ChunkNode::encoded_length(&context, io.chunk_node_rank(), rank);
    if let Ok(bytes) = io.read(address, usual) {
        let needed = ChunkNode::measure(&bytes, &context, rank)?;
        if needed <= bytes.len() {
            return Ok(ChunkNode::decode(&bytes, &context, rank)?);
        }
    }
    let head = io.read(address, ChunkNode::encoded_length(&context, 0, 0))?;
    let needed = ChunkNode::measure(&head, &context, rank)?;
    Ok(ChunkNode::decode(&io.read(address, needed)?, &context, rank)?)
}

fn unloaded() -> Error {
    Error::Internal("a node that was read is not there".into())
}

fn record(key: &ChunkKey, address: u64) -> ChunkRecord {
    let filter_mask = key.filter_mask;
    ChunkRecord { filter_mask, ..ChunkRecord::dense(address, u64::from(key.size)) }
}

/// The number of the chunk that a key names.
fn number(key: &ChunkKey, chunk: &Coord, address: u64) -> Result<Coord> {
    let axes = key.start.iter().zip(chunk);
    if axes.clone().any(|(&start, &side)| start % side != 0) {
        let expected = format!("the first cell of a chunk of {chunk:?}");
        let found = format!("{:?}", key.start);
        return Err(DecodeError::new(STRUCTURE, address, expected, found).into());
    }
    Ok(axes.map(|(&start, &side)| start / side).collect())
}
