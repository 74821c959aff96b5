//! A version 2 B-tree as a living thing: records of any kind in the order that a probe gives them.
//!
//! Nodes that were read stay in memory, each owned by its parent. A new record makes room on the way
//! down (a full node shares with a neighbour or is split), a removal fills up on the way down (a thin
//! node takes from a neighbour or is merged), so one insertion or removal touches one path and its
//! neighbours. A commit stages exactly the nodes that changed.
//!
//! Nodes of two records cannot be split before a third comes: they take it and are split on the way
//! back. For the same reason they are filled up on the way back when they are empty.
//!
//! Invariant, for all nodes but the root: after every operation a node has at least the *merge*
//! count of its level and at most the *split* count, as libhdf5 expects. Trees of other writers may
//! have nodes without a record, which libhdf5 makes where nodes have few.

mod balance;
mod node;

use crate::index::Claims;
use node::{Child, Node};
use pumice_bytes::DecodeError;
use pumice_format::UNDEFINED;
use pumice_format::index::RecordKind;
use pumice_format::index::tree::{NodePointer, TreeHeader, TreeLevel, TreeLevels, TreeParameters};
use pumice_medium::{DataKind, MetadataIo};
use pumice_medium::{Error, Result};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::ops::ControlFlow;

/// The parameters of an index of dense links, dense attributes or huge objects.
pub const SMALL_NODES: TreeParameters = TreeParameters { node_size: 512, split: 100, merge: 40 };

/// Memory of a node beside its bytes in the file.
const NODE_OVERHEAD: usize = 256;

/// Compares a record with the one that is searched for: less if the record comes first.
pub trait Probe: FnMut(&[u8]) -> Result<Ordering> {}

impl<F: FnMut(&[u8]) -> Result<Ordering>> Probe for F {}

/// Called with every record in order.
pub type Visit<'a> = dyn FnMut(&[u8]) -> Result<ControlFlow<()>> + 'a;

/// A tree.
#[derive(Debug)]
pub struct Tree {
    context: Context,
    version: u8,
    /// Undefined until the first commit, or until it is placed.
    header: u64,
    header_dirty: bool,
    root: Child,
    /// Whether nodes of every level that the tree may reach can be split and merged.
    changeable: bool,
}

/// The parameters that all nodes of one tree share.
#[derive(Debug)]
struct Context {
    tree_type: u8,
    levels: TreeLevels,
    claims: Claims,
    /// The number of nodes in memory: an upper bound.
    loaded: usize,
}

/// The record to remove.
enum Target<'a, P> {
    Record(&'a mut P),
    First,
}

impl Context {
    /// The layout of a node of `depth`.
    fn level(&self, depth: usize) -> Result<TreeLevel> {
        self.levels.level(depth).copied().ok_or_else(|| damaged(UNDEFINED, "a node", depth))
    }

    /// The position of the searched record among `records`, or where it would be.
    fn search<P: Probe>(&self, records: &[u8], probe: &mut P) -> Result<Result<usize, usize>> {
        let size = self.levels.record_size();
        let (mut low, mut high) = (0, records.len() / size);
        while low < high {
            let middle = low + (high - low) / 2;
            let record = records.get(middle * size..(middle + 1) * size).unwrap_or_default();
            match probe(record)? {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(Ok(middle)),
                Ordering::Greater => high = middle,
            }
        }
        Ok(Err(low))
    }
}

impl Tree {
    /// An empty tree that is not in the file yet.
    pub fn create(
        tree_type: u8,
        version: u8,
        parameters: TreeParameters,
        record_size: usize,
        offset_size: u8,
    ) -> Result<Self> {
        let record_size = u16::try_from(record_size);
        let record_size = record_size.map_err(|_| {
            Error::Invalid("the records of a B-tree are too large for the format".into())
        })?;
        let levels = TreeLevels::new(parameters, record_size, 0, offset_size, UNDEFINED)?;
        Ok(Self::new(tree_type, version, levels, UNDEFINED, NodePointer::default()))
    }

    /// The tree at `address`, which must be of one of `types`.
    pub fn open(address: u64, types: &[u8], io: &dyn MetadataIo) -> Result<Self> {
        let sizes = io.sizes();
        let header =
            TreeHeader::decode(&io.read(address, TreeHeader::size(sizes))?, address, sizes)?;
        if !types.contains(&header.tree_type) {
            let (expected, found) = (format!("type {types:?}"), header.tree_type);
            let newest = RecordKind::NEWEST_TREE;
            return Err(DecodeError::unknown(HEADER, address, expected, newest, found).into());
        }
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
        Ok(Self::new(header.tree_type, header.version, levels, address, header.root))
    }

    fn new(tree_type: u8, version: u8, levels: TreeLevels, header: u64, root: NodePointer) -> Self {
        let context = Context { tree_type, levels, claims: Claims::default(), loaded: 0 };
        let changeable = context.check_growth(header).is_ok();
        let (header_dirty, root) = (header == UNDEFINED, Child::Stored(root));
        Self { context, version, header, header_dirty, root, changeable }
    }

    /// Fails if the tree has nodes too small to be changed.
    pub fn check_changeable(&self) -> Result<()> {
        match self.changeable {
            true => Ok(()),
            false => self.context.check_growth(self.header),
        }
    }

    /// The parameters of the tree.
    pub fn parameters(&self) -> TreeParameters {
        self.context.levels.parameters()
    }

    /// Bytes of a record.
    pub fn record_size(&self) -> usize {
        self.context.levels.record_size()
    }

    /// The number of records.
    pub fn count(&self) -> u64 {
        if self.root.is_empty() { 0 } else { self.root.total() }
    }

    /// Allocates the header now, so that others can refer to it before the commit.
    pub fn place(&mut self, io: &dyn MetadataIo) -> Result<u64> {
        if self.header == UNDEFINED {
            self.header = io.allocate_for(DataKind::Tree, TreeHeader::size(io.sizes()) as u64)?;
        }
        Ok(self.header)
    }

    /// The record that is looked for.
    pub fn lookup<P: Probe>(
        &mut self,
        io: &dyn MetadataIo,
        mut probe: P,
    ) -> Result<Option<Vec<u8>>> {
        let mut found = None;
        self.find(io, &mut probe, |context, node, position| {
            found = Some(node.record(context, position).to_vec());
            Ok(false)
        })?;
        Ok(found)
    }

    /// Puts a record in the place that `probe` finds, or replaces the one that is there.
    pub fn insert<P: Probe>(
        &mut self,
        io: &dyn MetadataIo,
        mut probe: P,
        encoded: &[u8],
    ) -> Result<()> {
        let replaced = self.find(io, &mut probe, |context, node, position| {
            node.replace(context, position, encoded);
            Ok(true)
        })?;
        if replaced {
            return Ok(());
        }
        self.check_changeable()?;
        self.context.check_balance(self.header)?;
        self.header_dirty = true;
        self.grow(io)?;
        let depth = self.context.levels.depth();
        let inserted = self.context.insert(&mut self.root, depth, &mut probe, encoded, io);
        self.grow_after(io)?;
        inserted
    }

    /// Takes the record away that is looked for, and gives it.
    pub fn remove<P: Probe>(
        &mut self,
        io: &dyn MetadataIo,
        mut probe: P,
    ) -> Result<Option<Vec<u8>>> {
        if !self.find(io, &mut probe, |_, _, _| Ok(false))? {
            return Ok(None);
        }
        self.context.check_balance(self.header)?;
        self.header_dirty = true;
        let depth = self.context.levels.depth();
        let target = &mut Target::Record(&mut probe);
        let removed = self.context.remove(&mut self.root, depth, target, io)?;
        self.shrink(io);
        Ok(Some(removed))
    }

    /// Calls `act` with the node and position of a record, and returns whether there is one. If
    /// `act` says that it changed the node, the way there is marked for the next commit.
    fn find<P: Probe>(
        &mut self,
        io: &dyn MetadataIo,
        probe: &mut P,
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
            match (self.context.search(node.records(), probe)?, depth) {
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

    /// Calls `visit` with every record in order.
    pub fn for_each(
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

    /// Stages changed nodes. Returns the address of the tree: undefined if it is empty and was
    /// never placed.
    pub fn commit(&mut self, io: &dyn MetadataIo) -> Result<u64> {
        let sizes = io.sizes();
        if self.header == UNDEFINED && self.root.is_empty() {
            return Ok(UNDEFINED);
        }
        self.place(io)?;
        let depth = self.context.levels.depth();
        self.header_dirty |= self.root.commit(&mut self.context, depth, io)?;
        if self.header_dirty {
            let header = TreeHeader {
                tree_type: self.context.tree_type,
                version: self.version,
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

    /// Visits the records behind the one that `probe` searches for, in order.
    pub fn for_each_after<P: Probe>(
        &mut self,
        io: &dyn MetadataIo,
        mut probe: P,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>> {
        if self.root.is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let depth = self.context.levels.depth();
        self.root.for_each_after(&mut self.context, depth, io, &mut probe, visit)
    }

    /// About how many bytes its nodes take in memory.
    pub fn memory(&self) -> usize {
        self.context.loaded * (self.context.levels.parameters().node_size as usize + NODE_OVERHEAD)
    }

    /// Drops all nodes below the root that have not changed since they were read or staged.
    pub fn forget_unchanged(&mut self) {
        self.context.loaded = 0;
        if let Child::Loaded(root) = &mut self.root {
            root.forget_unchanged(&mut self.context);
        }
    }

    /// Forgets nodes that can be read again, if all that changed is staged.
    pub fn trim(&mut self) {
        let Child::Loaded(root) = &self.root else { return };
        if !root.touched {
            self.root = Child::Stored(self.root.pointer(&self.context));
            self.context.claims = Claims::default();
            self.context.loaded = 0;
        }
    }

    /// Gives all its space back and leaves it empty.
    pub fn delete(&mut self, io: &dyn MetadataIo) -> Result<()> {
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

    /// Bytes of all its nodes and its header.
    pub fn storage_size(&mut self, io: &dyn MetadataIo) -> Result<u64> {
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
