//! The version 2 B-tree of chunks: records in order of scaled coordinates.
//!
//! Nodes that were read stay in memory, each owned by its parent. A new record makes room on the way
//! down (a full node shares with a neighbour or is split), a removal fills up on the way down (a thin
//! node takes from a neighbour or is merged), so one insertion or removal touches one path and its
//! neighbours. A commit stages exactly the nodes that changed.
//!
//! Invariant, for nodes that are not the root: after every operation a node has at least the
//! *merge* count of its level, and at most the *split* count, as libhdf5 expects of a tree that it
//! is to change.

mod balance;
mod node;

use super::Visit;
use super::entries::Claims;
use super::shape::{IndexShape, outside};
use crate::metadata::MetadataIo;
use crate::{Error, Result};
use node::{Child, Node};
use pumice_bytes::{DecodeError, Reader};
use pumice_format::UNDEFINED;
use pumice_format::index::tree::{NodePointer, TreeHeader, TreeLevel, TreeLevels, TreeParameters};
use pumice_format::index::{ChunkRecord, Coord, RecordFormat};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::ops::ControlFlow;

#[derive(Debug)]
pub(super) struct Tree {
    context: Context,
    maximum: Box<[Option<u64>]>,
    /// Undefined until the first commit.
    header: u64,
    header_dirty: bool,
    root: Child,
}

/// What all nodes of one tree share.
#[derive(Debug)]
struct Context {
    format: RecordFormat,
    rank: usize,
    levels: TreeLevels,
    claims: Claims,
}

/// Which record to take away.
#[derive(Clone, Copy, Debug)]
enum Target<'a> {
    Chunk(&'a [u64]),
    First,
}

impl Context {
    /// What a node of `depth` holds.
    fn level(&self, depth: usize) -> Result<TreeLevel> {
        self.levels.level(depth).copied().ok_or_else(|| damaged(UNDEFINED, "a node", depth))
    }

    /// Where a chunk's record is among `records`, or where it would be.
    fn search(&self, records: &[u8], coord: &[u64]) -> Result<usize, usize> {
        let size = self.levels.record_size();
        let (mut low, mut high) = (0, records.len() / size);
        while low < high {
            let middle = low + (high - low) / 2;
            let record = records.get(middle * size..).unwrap_or_default();
            match self.compare(record, coord) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// Compares the chunk of an encoded record with another chunk.
    fn compare(&self, record: &[u8], coord: &[u64]) -> Ordering {
        let key = record.get(self.format.key_offset()..).unwrap_or_default();
        let indexes = key.chunks_exact(8).map(|bytes| {
            let mut array = [0; 8];
            array.copy_from_slice(bytes);
            u64::from_le_bytes(array)
        });
        indexes.take(self.rank).cmp(coord.iter().copied())
    }

    fn decode(&self, record: &[u8]) -> Result<(Coord, Option<ChunkRecord>)> {
        let mut reader = Reader::new("chunk record", 0, record);
        Ok(self.format.decode_tree_record(self.rank, &mut reader)?)
    }
}

impl Tree {
    pub(super) fn create(format: RecordFormat, shape: &IndexShape) -> Result<Self> {
        let record_size = u16::try_from(format.tree_record_size(shape.rank()));
        let record_size =
            record_size.map_err(|_| Error::Invalid("a B-tree of such a rank".into()))?;
        let parameters = TreeParameters::default();
        let levels = TreeLevels::new(parameters, record_size, 0, format.offset_size, UNDEFINED)?;
        Ok(Self::new(format, shape, levels, UNDEFINED, NodePointer::default()))
    }

    pub(super) fn open(
        address: u64,
        format: RecordFormat,
        shape: &IndexShape,
        io: &dyn MetadataIo,
    ) -> Result<Self> {
        let sizes = io.sizes();
        let header =
            TreeHeader::decode(&io.read(address, TreeHeader::size(sizes))?, address, sizes)?;
        let tree_type = format.kind.tree_type();
        if header.tree_type != tree_type {
            let (expected, found) = (format!("type {tree_type}"), header.tree_type);
            return Err(DecodeError::new(HEADER, address, expected, found).into());
        }
        let record_size = usize::from(header.record_size);
        let format = format.with_tree_record_size(shape.rank(), record_size, address)?;
        let levels = TreeLevels::new(
            header.parameters,
            header.record_size,
            header.depth,
            sizes.offset,
            address,
        )?;
        let most = levels.level(levels.depth()).map_or(0, |level| level.maximum);
        if header.root.records > most {
            let expected = format!("a root of at most {most} record(s)");
            return Err(DecodeError::new(HEADER, address, expected, header.root.records).into());
        }
        Ok(Self::new(format, shape, levels, address, header.root))
    }

    fn new(
        format: RecordFormat,
        shape: &IndexShape,
        levels: TreeLevels,
        header: u64,
        root: NodePointer,
    ) -> Self {
        Self {
            context: Context { format, rank: shape.rank(), levels, claims: Claims::default() },
            maximum: shape.maximum().into(),
            header,
            header_dirty: header == UNDEFINED,
            root: Child::Stored(root),
        }
    }

    pub(super) fn format(&self) -> &RecordFormat {
        &self.context.format
    }

    pub(super) fn lookup(
        &mut self,
        io: &dyn MetadataIo,
        coord: &[u64],
    ) -> Result<Option<ChunkRecord>> {
        let mut found = None;
        self.find(io, coord, |context, node, position| {
            found = context.decode(node.record(context, position))?.1;
            Ok(false)
        })?;
        Ok(found)
    }

    pub(super) fn insert(
        &mut self,
        io: &dyn MetadataIo,
        coord: &[u64],
        record: &ChunkRecord,
    ) -> Result<()> {
        let limits = self.maximum.iter().zip(coord);
        if limits.into_iter().any(|(limit, &index)| limit.is_some_and(|limit| index >= limit)) {
            return Err(outside(coord));
        }
        let mut encoded = Vec::with_capacity(self.context.levels.record_size());
        self.context.format.encode_tree_record(coord, record, &mut encoded)?;
        let replaced = self.find(io, coord, |context, node, position| {
            node.replace(context, position, &encoded);
            Ok(true)
        })?;
        if replaced {
            return Ok(());
        }
        self.context.check_balance(self.header)?;
        self.header_dirty = true;
        self.grow(io)?;
        let depth = self.context.levels.depth();
        self.context.insert(&mut self.root, depth, coord, &encoded, io)
    }

    pub(super) fn remove(
        &mut self,
        io: &dyn MetadataIo,
        coord: &[u64],
    ) -> Result<Option<ChunkRecord>> {
        if !self.find(io, coord, |_, _, _| Ok(false))? {
            return Ok(None);
        }
        self.context.check_balance(self.header)?;
        self.header_dirty = true;
        let depth = self.context.levels.depth();
        let target = Target::Chunk(coord);
        let removed = self.context.remove(&mut self.root, depth, target, io)?;
        self.shrink(io);
        Ok(self.context.decode(&removed)?.1)
    }

    /// Calls `act` with the node and position of a chunk's record, and says whether there is one.
    /// If `act` says that it changed the node, the way there is marked for the next commit.
    fn find(
        &mut self,
        io: &dyn MetadataIo,
        coord: &[u64],
        act: impl FnOnce(&Context, &mut Node, usize) -> Result<bool>,
    ) -> Result<bool> {
        if self.root.is_empty() {
            return Ok(false);
        }
        let mut way = SmallVec::<[usize; 8]>::new();
        let mut child = &mut self.root;
        let mut depth = self.context.levels.depth();
        loop {
            let node = child.load(&mut self.context, depth, io)?;
            match (self.context.search(node.records(), coord), depth) {
                (Ok(position), _) => {
                    let changed = act(&self.context, node, position)?;
                    if changed {
                        self.root.touch(&way);
                    }
                    return Ok(true);
                }
                (Err(_), 0) => return Ok(false),
                (Err(position), _) => {
                    way.push(position);
                    child = node.child(position)?;
                    depth -= 1;
                }
            }
        }
    }

    pub(super) fn for_each(
        &mut self,
        io: &dyn MetadataIo,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>> {
        if self.root.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let depth = self.context.levels.depth();
        self.root.for_each(&mut self.context, depth, io, visit)
    }

    pub(super) fn commit(&mut self, io: &dyn MetadataIo) -> Result<u64> {
        let sizes = io.sizes();
        if self.header == UNDEFINED {
            if self.root.is_empty() {
                return Ok(UNDEFINED);
            }
            self.header = io.allocate(TreeHeader::size(sizes) as u64)?;
        }
        let depth = self.context.levels.depth();
        self.root.commit(&self.context, depth, io)?;
        if self.header_dirty {
            let kind = self.context.format.kind;
            let header = TreeHeader {
                tree_type: kind.tree_type(),
                version: kind.header_version(),
                parameters: self.context.levels.parameters(),
                // Both were u16 when the levels were made, and no tree grows past the depth of 64.
                record_size: self.context.levels.record_size() as u16,
                depth: depth as u16,
                root: self.root.pointer(&self.context),
            };
            let mut bytes = Vec::with_capacity(TreeHeader::size(sizes));
            header.encode(sizes, &mut bytes);
            io.stage(self.header, bytes);
            self.header_dirty = false;
        }
        Ok(self.header)
    }

    pub(super) fn delete(&mut self, io: &dyn MetadataIo) -> Result<()> {
        let size = u64::from(self.context.levels.parameters().node_size);
        let depth = self.context.levels.depth();
        self.root.for_each_address(&mut self.context, depth, io, &mut |address| {
            if address != UNDEFINED {
                io.free(address, size);
            }
        })?;
        if self.header != UNDEFINED {
            io.free(self.header, TreeHeader::size(io.sizes()) as u64);
        }
        while self.context.levels.depth() > 0 {
            self.context.levels.flatten();
        }
        self.context.claims = Claims::default();
        self.root = Child::default();
        self.header = UNDEFINED;
        self.header_dirty = true;
        Ok(())
    }

    pub(super) fn storage_size(&mut self, io: &dyn MetadataIo) -> Result<u64> {
        if self.header == UNDEFINED && self.root.is_empty() {
            return Ok(0);
        }
        let mut nodes = 0u64;
        let depth = self.context.levels.depth();
        self.root.for_each_address(&mut self.context, depth, io, &mut |_| nodes += 1)?;
        let size = u64::from(self.context.levels.parameters().node_size);
        Ok(nodes.saturating_mul(size).saturating_add(TreeHeader::size(io.sizes()) as u64))
    }
}

const HEADER: &str = "version 2 B-tree header";

/// The error for a tree whose parts contradict each other.
fn damaged(address: u64, expected: &'static str, found: impl std::fmt::Display) -> Error {
    DecodeError::new("version 2 B-tree node", address, expected, found).into()
}
