//! The version 1 B-tree: the index of every dataset whose layout message is older than version 4.
//!
//! Read only: chunks that keep their place can be written again, but none can move, come or go.
//!
//! Keys are the first cells of chunks, in row-major order. Child `i` of a node holds what lies from
//! key `i` up to key `i + 1`, so one binary search per level finds a chunk. Nodes are read when they
//! are first needed and kept.

use super::Visit;
use super::entries::Claims;
use super::shape::IndexShape;
use crate::metadata::MetadataIo;
use crate::{Error, Result};
use pumice_bytes::DecodeError;
use pumice_format::btree1::{ChunkKey, ChunkNode};
use pumice_format::index::{ChunkRecord, Coord, RecordFormat};
use pumice_format::{Context, UNDEFINED};
use std::ops::ControlFlow;

const STRUCTURE: &str = "version 1 B-tree of chunks";
/// What libhdf5 uses unless it is told otherwise: a node of this rank is read in one piece.
const USUAL_K: u16 = 32;

#[derive(Debug)]
pub(super) struct BTree1 {
    format: RecordFormat,
    chunk: Coord,
    address: u64,
    root: Option<Box<Node>>,
    claims: Claims,
}

/// A node in memory; `nodes` are the children that have been read.
#[derive(Debug)]
struct Node {
    level: u8,
    keys: Vec<ChunkKey>,
    children: Vec<u64>,
    nodes: Vec<Option<Box<Node>>>,
}

impl BTree1 {
    pub(super) fn open(address: u64, format: RecordFormat, shape: &IndexShape) -> Self {
        let chunk = Coord::from_slice(shape.chunk());
        Self { format, chunk, address, root: None, claims: Claims::default() }
    }

    pub(super) fn format(&self) -> &RecordFormat {
        &self.format
    }

    pub(super) fn lookup(
        &mut self,
        io: &dyn MetadataIo,
        coord: &[u64],
    ) -> Result<Option<ChunkRecord>> {
        let first = coord.iter().zip(&self.chunk).map(|(&number, &side)| number.checked_mul(side));
        let Some(first) = first.collect::<Option<Coord>>() else { return Ok(None) };
        if self.address == UNDEFINED {
            return Ok(None);
        }
        let Self { chunk, address, root, claims, .. } = self;
        let mut node = load(root, *address, None, chunk.len(), claims, io)?;
        loop {
            let before = node.keys.partition_point(|key| key.start <= first);
            let Some(place) = before.checked_sub(1) else { return Ok(None) };
            let Some(&child) = node.children.get(place) else { return Ok(None) };
            if node.level == 0 {
                let key = node.keys.get(place).filter(|key| key.start == first);
                return Ok(key.map(|key| record(key, child)));
            }
            let below = Some(node.level - 1);
            // There are as many places for nodes as there are children.
            node = load(&mut node.nodes[place], child, below, chunk.len(), claims, io)?;
        }
    }

    pub(super) fn insert(
        &mut self,
        io: &dyn MetadataIo,
        coord: &[u64],
        record: &ChunkRecord,
    ) -> Result<()> {
        if self.lookup(io, coord)?.as_ref() == Some(record) {
            return Ok(());
        }
        Err(Error::Unsupported("storing a chunk in a version 1 B-tree".into()))
    }

    pub(super) fn remove(
        &mut self,
        io: &dyn MetadataIo,
        coord: &[u64],
    ) -> Result<Option<ChunkRecord>> {
        match self.lookup(io, coord)? {
            None => Ok(None),
            Some(_) => Err(Error::Unsupported("removing a chunk of a version 1 B-tree".into())),
        }
    }

    pub(super) fn for_each(
        &mut self,
        io: &dyn MetadataIo,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>> {
        if self.address == UNDEFINED {
            return Ok(ControlFlow::Continue(()));
        }
        let Self { chunk, address, root, claims, .. } = self;
        let node = load(root, *address, None, chunk.len(), claims, io)?;
        node.for_each(chunk, claims, io, visit)
    }

    pub(super) fn commit(&mut self, _io: &dyn MetadataIo) -> Result<u64> {
        Ok(self.address)
    }

    /// Leaves the nodes where they are: how much space they take is not known here.
    pub(super) fn delete(&mut self, _io: &dyn MetadataIo) -> Result<()> {
        (self.address, self.root) = (UNDEFINED, None);
        Ok(())
    }

    /// Bytes of all nodes, for the usual rank.
    pub(super) fn storage_size(&mut self, io: &dyn MetadataIo) -> Result<u64> {
        if self.address == UNDEFINED {
            return Ok(0);
        }
        let Self { chunk, address, root, claims, .. } = self;
        let node = load(root, *address, None, chunk.len(), claims, io)?;
        let mut nodes = 0u64;
        node.count(chunk.len(), claims, io, &mut nodes)?;
        let context = Context::new(io.sizes());
        let length = ChunkNode::encoded_length(&context, USUAL_K, self.chunk.len()) as u64;
        Ok(nodes.saturating_mul(length))
    }
}

impl Node {
    fn for_each(
        &mut self,
        chunk: &Coord,
        claims: &mut Claims,
        io: &dyn MetadataIo,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>> {
        for place in 0..self.children.len() {
            let child = self.children[place];
            let next = if self.level == 0 {
                let key = &self.keys[place];
                visit(&number(key, chunk, child)?, &record(key, child))?
            } else {
                let below = Some(self.level - 1);
                let node = load(&mut self.nodes[place], child, below, chunk.len(), claims, io)?;
                node.for_each(chunk, claims, io, visit)?
            };
            if next.is_break() {
                return Ok(next);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Adds this node and all below it.
    fn count(
        &mut self,
        rank: usize,
        claims: &mut Claims,
        io: &dyn MetadataIo,
        nodes: &mut u64,
    ) -> Result<()> {
        *nodes += 1;
        match self.level {
            0 => return Ok(()),
            1 => {
                *nodes += self.children.len() as u64;
                return Ok(());
            }
            _ => {}
        }
        for place in 0..self.children.len() {
            let below = Some(self.level - 1);
            let node = load(&mut self.nodes[place], self.children[place], below, rank, claims, io)?;
            node.count(rank, claims, io, nodes)?;
        }
        Ok(())
    }
}

/// The node of a place, read if it was not yet. Levels fall by one on the way down, so that no
/// file leads in circles.
fn load<'a>(
    place: &'a mut Option<Box<Node>>,
    address: u64,
    level: Option<u8>,
    rank: usize,
    claims: &mut Claims,
    io: &dyn MetadataIo,
) -> Result<&'a mut Node> {
    if place.is_none() {
        let node = claims.claim(address, STRUCTURE, || read(address, rank, io))?;
        if let Some(level) = level.filter(|&level| level != node.level) {
            let expected = format!("a node of level {level}");
            return Err(DecodeError::new(STRUCTURE, address, expected, node.level).into());
        }
        let nodes = match node.level {
            0 => Vec::new(),
            _ => node.children.iter().map(|_| None).collect(),
        };
        let ChunkNode { level, mut keys, children, .. } = node;
        // The key behind the last child need not lie behind the chunk in it: libhdf5 tells them
        // apart by the place inside an element only.
        keys.truncate(children.len());
        *place = Some(Box::new(Node { level, keys, children, nodes }));
    }
    place.as_deref_mut().ok_or_else(|| Error::Internal("a node that was read is not there".into()))
}

/// Reads a node, in one piece if it has the usual length.
fn read(address: u64, rank: usize, io: &dyn MetadataIo) -> Result<ChunkNode> {
    let context = Context::new(io.sizes()).at(address);
    let usual = ChunkNode::encoded_length(&context, USUAL_K, rank);
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
