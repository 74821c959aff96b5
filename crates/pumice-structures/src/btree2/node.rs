//! One node of a B-tree in memory, and the pointer to a node that may not be there yet.
//!
//! A loaded node knows its own counts; for other nodes, the parent stores them. Records stay
//! encoded.

use super::{Context, Probe, Visit, damaged};
use pumice_format::UNDEFINED;
use pumice_format::index::tree::{NodePointer, TreeNode};
use pumice_medium::Result;
use pumice_medium::{DataKind, MetadataIo};
use std::ops::ControlFlow;

/// A node, as its parent holds it.
#[derive(Debug)]
pub(super) enum Child {
    /// Only in the file; an undefined address is an empty tree.
    Stored(NodePointer),
    /// In memory.
    Loaded(Box<Node>),
}

#[derive(Debug)]
pub(super) struct Node {
    /// Undefined until the first commit.
    pub(super) address: u64,
    /// The records, encoded, one after another.
    pub(super) records: Vec<u8>,
    /// One more child than records; none in a leaf.
    pub(super) children: Vec<Child>,
    /// Records here and below.
    pub(super) total: u64,
    /// Whether the node differs from the file.
    pub(super) dirty: bool,
    /// Whether this node or one below it does.
    pub(super) touched: bool,
}

impl Default for Child {
    fn default() -> Self {
        Self::Stored(NodePointer::default())
    }
}

impl Child {
    /// Whether there is no node at all.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Stored(pointer) if pointer.address == UNDEFINED)
    }

    /// The number of the node's records, loaded or not.
    pub(super) fn count(&self, context: &Context) -> usize {
        match self {
            Self::Stored(pointer) => usize::from(pointer.records),
            Self::Loaded(node) => node.count(context),
        }
    }

    /// Records of the node and below it.
    pub(super) fn total(&self) -> u64 {
        match self {
            Self::Stored(pointer) => pointer.total,
            Self::Loaded(node) => node.total,
        }
    }

    /// The pointer that the parent stores for the node.
    pub(super) fn pointer(&self, context: &Context) -> NodePointer {
        match self {
            Self::Stored(pointer) => *pointer,
            Self::Loaded(node) => NodePointer {
                address: node.address,
                // A node has at most as many records as its level, which is a u16.
                records: node.count(context) as u16,
                total: node.total,
            },
        }
    }

    /// The node, read if it was not yet.
    pub(super) fn load(
        &mut self,
        context: &mut Context,
        depth: usize,
        io: &dyn MetadataIo,
    ) -> Result<&mut Node> {
        if let Self::Stored(pointer) = *self {
            let (levels, tree_type) = (&context.levels, context.tree_type);
            let node = context.claims.claim(pointer.address, "version 2 B-tree node", || {
                let bytes = io.read(pointer.address, levels.parameters().node_size as usize)?;
                Ok(TreeNode::decode(&bytes, levels, depth, tree_type, pointer)?)
            })?;
            *self = Self::Loaded(Box::new(Node {
                address: pointer.address,
                records: node.records,
                children: node.children.into_iter().map(Self::Stored).collect(),
                total: pointer.total,
                dirty: false,
                touched: false,
            }));
            context.loaded += 1;
        }
        match self {
            Self::Loaded(node) => Ok(node),
            Self::Stored(pointer) => Err(damaged(pointer.address, "a node", "none")),
        }
    }

    /// Marks the nodes on `way`, from this one down.
    pub(super) fn touch(&mut self, way: &[usize]) {
        let mut child = self;
        for &position in way {
            let Self::Loaded(node) = child else { return };
            node.touched = true;
            let Some(next) = node.children.get_mut(position) else { return };
            child = next;
        }
    }

    pub(super) fn for_each(
        &mut self,
        context: &mut Context,
        depth: usize,
        io: &dyn MetadataIo,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>> {
        let node = self.load(context, depth, io)?;
        for position in 0..=node.count(context) {
            if depth > 0 {
                let child = node.child(position)?;
                if child.for_each(context, depth - 1, io, visit)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            if position == node.count(context) {
                break;
            }
            if visit(node.record(context, position))?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// [`for_each`](Self::for_each) for records behind the one that `probe` searches for.
    pub(super) fn for_each_after<P: Probe>(
        &mut self,
        context: &mut Context,
        depth: usize,
        io: &dyn MetadataIo,
        probe: &mut P,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>> {
        let node = self.load(context, depth, io)?;
        // On the left of a record that is found, nothing comes behind it.
        let (first, through) = match context.search(node.records(), probe)? {
            Ok(position) => (position + 1, false),
            Err(position) => (position, true),
        };
        for position in first..=node.count(context) {
            if depth > 0 {
                let child = node.child(position)?;
                let next = match through && position == first {
                    true => child.for_each_after(context, depth - 1, io, probe, visit)?,
                    false => child.for_each(context, depth - 1, io, visit)?,
                };
                if next.is_break() {
                    return Ok(next);
                }
            }
            if position == node.count(context) {
                break;
            }
            if visit(node.record(context, position))?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Calls `visit` with the address of this node and of all below it, without loading leaves.
    pub(super) fn for_each_address(
        &mut self,
        context: &mut Context,
        depth: usize,
        io: &dyn MetadataIo,
        visit: &mut dyn FnMut(u64),
    ) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        visit(self.pointer(context).address);
        if depth > 0 {
            for child in &mut self.load(context, depth, io)?.children {
                child.for_each_address(context, depth - 1, io, visit)?;
            }
        }
        Ok(())
    }

    /// Stages changed nodes, children first. Returns whether this node has a new address.
    pub(super) fn commit(
        &mut self,
        context: &mut Context,
        depth: usize,
        io: &dyn MetadataIo,
    ) -> Result<bool> {
        let Self::Loaded(node) = self else { return Ok(false) };
        if !node.touched {
            return Ok(false);
        }
        for child in &mut node.children {
            node.dirty |= child.commit(context, depth.saturating_sub(1), io)?;
        }
        let mut moved = false;
        if node.dirty {
            let size = context.levels.parameters().node_size;
            if node.address == UNDEFINED {
                node.address = io.allocate_for(DataKind::Tree, u64::from(size))?;
            } else if let Some(place) = io.place_anew(node.address, u64::from(size))? {
                context.claims.release(node.address);
                node.address = place;
                moved = true;
            }
            // Lent to the encoder, not copied.
            let records = std::mem::take(&mut node.records);
            let children = node.children.iter().map(|child| child.pointer(context)).collect();
            let encoded = TreeNode { records, children };
            let mut bytes = Vec::with_capacity(size as usize);
            encoded.encode(&context.levels, depth, context.tree_type, &mut bytes);
            io.stage(node.address, bytes);
            node.records = encoded.records;
        }
        (node.dirty, node.touched) = (false, false);
        Ok(moved)
    }
}

impl Node {
    /// Drops unchanged nodes below this one, and counts those that stay.
    pub(super) fn forget_unchanged(&mut self, context: &mut Context) {
        context.loaded += 1;
        for child in &mut self.children {
            let Child::Loaded(node) = child else { continue };
            if node.touched {
                node.forget_unchanged(context);
                continue;
            }
            node.release(context);
            *child = Child::Stored(child.pointer(context));
        }
    }

    /// Gives up the claims of a node that is forgotten, and of all that are in memory below it.
    fn release(&self, context: &mut Context) {
        context.claims.release(self.address);
        for child in &self.children {
            if let Child::Loaded(node) = child {
                node.release(context);
            }
        }
    }

    /// A new, dirty node.
    pub(super) fn new(address: u64, records: Vec<u8>, children: Vec<Child>, total: u64) -> Self {
        Self { address, records, children, total, dirty: true, touched: true }
    }

    pub(super) fn records(&self) -> &[u8] {
        &self.records
    }

    pub(super) fn count(&self, context: &Context) -> usize {
        self.records.len() / context.levels.record_size()
    }

    /// Record number `position`, encoded; empty if there is none.
    pub(super) fn record(&self, context: &Context, position: usize) -> &[u8] {
        let size = context.levels.record_size();
        self.records.get(position * size..(position + 1) * size).unwrap_or_default()
    }

    pub(super) fn replace(&mut self, context: &Context, position: usize, encoded: &[u8]) {
        let size = context.levels.record_size();
        if let Some(record) = self.records.get_mut(position * size..(position + 1) * size) {
            record.copy_from_slice(encoded);
        }
        self.mark();
    }

    pub(super) fn child(&mut self, position: usize) -> Result<&mut Child> {
        let count = self.children.len();
        self.children.get_mut(position).ok_or_else(|| damaged(self.address, "more children", count))
    }

    pub(super) fn mark(&mut self) {
        (self.dirty, self.touched) = (true, true);
    }
}
