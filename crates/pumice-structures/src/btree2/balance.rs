//! Balancing the nodes of a B-tree.
//!
//! Everything here is one operation: the records of neighbouring children, with those between them
//! in the parent, are pooled and distributed again ([`Context::deal`]). Splitting, merging and
//! sharing differ only in the number of nodes and of records for each.
//!
//! A node is split before a record is inserted into it, and filled up before one is removed, so
//! that nothing is left to do on the way back. Nodes of two records ([`is_narrow`]) have to wait:
//! without a third record, one half would be empty, and two nodes of one record with the one
//! between them are too many. They are treated as in a 2-3 tree. Reading neighbours, which may
//! fail, comes before any change.

use super::node::{Child, Node};
use super::{Context, HEADER, Probe, Target, Tree, damaged};
use pumice_bytes::DecodeError;
use pumice_format::UNDEFINED;
use pumice_format::index::tree::{TreeLevel, TreeLevels};
use pumice_medium::MetadataIo;
use pumice_medium::Result;
use std::ops::Range;

/// The capacity of a tree that is high enough: whether it can become higher is not checked
/// beforehand.
const HIGH_ENOUGH: u64 = 1 << 32;

impl Tree {
    /// Makes a root if there is none, and splits it if it is full.
    pub(super) fn grow(&mut self, io: &dyn MetadataIo) -> Result<()> {
        if self.root.is_empty() {
            self.root = Child::Loaded(Box::new(Node::new(UNDEFINED, Vec::new(), Vec::new(), 0)));
        }
        let level = self.context.level(self.context.levels.depth())?;
        let full = self.root.count(&self.context) >= usize::from(level.split);
        match full {
            true if !is_narrow(&level) => self.split_root(io),
            // It may be split once the record is in: whether there can be one more level is asked before.
            true => Ok(self.context.levels.clone().deepen(self.header)?),
            false => Ok(()),
        }
    }

    /// Splits a root of two records that has got a third.
    pub(super) fn grow_after(&mut self, io: &dyn MetadataIo) -> Result<()> {
        let level = self.context.level(self.context.levels.depth())?;
        let over = self.root.count(&self.context) > usize::from(level.split);
        if over && is_narrow(&level) { self.split_root(io) } else { Ok(()) }
    }

    fn split_root(&mut self, io: &dyn MetadataIo) -> Result<()> {
        let context = &mut self.context;
        let depth = context.levels.depth();
        let count = self.root.count(context);
        self.root.load(context, depth, io)?;
        context.levels.deepen(self.header)?;
        let total = self.root.total();
        let old = std::mem::take(&mut self.root);
        let mut root = Node::new(UNDEFINED, Vec::new(), vec![old], total);
        let dealt = context.deal(&mut root, depth + 1, 0, 1, &halves(count), io);
        self.root = Child::Loaded(Box::new(root));
        dealt
    }

    /// Takes a root away that has no record left.
    pub(super) fn shrink(&mut self, io: &dyn MetadataIo) {
        while let Child::Loaded(root) = &mut self.root
            && root.records.is_empty()
            && root.children.len() <= 1
        {
            self.context.free(root.address, io);
            let only = root.children.pop();
            let was_leaf = only.is_none();
            self.root = only.unwrap_or_default();
            if was_leaf {
                return;
            }
            self.context.levels.flatten();
        }
    }
}

impl Context {
    /// Fails if the tree's parameters would let nodes overflow or become empty: both halves of a
    /// full node, without the record between them, must be neither.
    pub(super) fn check_balance(&self, header: u64) -> Result<()> {
        check(&self.levels, header)
    }

    /// Checks the balance for every level that the tree may reach. Pointers get longer from level
    /// to level, so nodes hold fewer records.
    pub(super) fn check_growth(&self, header: u64) -> Result<()> {
        check(&self.levels, header)?;
        let mut levels = self.levels.clone();
        while levels.level(levels.depth()).is_some_and(|top| top.cumulative < HIGH_ENOUGH) {
            levels.deepen(header)?;
        }
        check(&levels, header)
    }

    /// Puts a new record below `child`, a node of `depth` that has room for it or is narrow.
    pub(super) fn insert<P: Probe>(
        &mut self,
        child: &mut Child,
        depth: usize,
        probe: &mut P,
        encoded: &[u8],
        io: &dyn MetadataIo,
    ) -> Result<()> {
        let node = child.load(self, depth, io)?;
        node.mark();
        let Err(mut position) = self.search(node.records(), probe)? else {
            return Err(damaged(node.address, "every record once", "one twice"));
        };
        let Some(below) = depth.checked_sub(1) else {
            let at = position * self.levels.record_size();
            node.records.splice(at..at, encoded.iter().copied());
            node.total = node.total.saturating_add(1);
            return Ok(());
        };
        let level = self.level(below)?;
        let split = usize::from(level.split);
        if node.child(position)?.count(self) >= split && !is_narrow(&level) {
            self.make_room(node, depth, position, io)?;
            position = match self.search(node.records(), probe)? {
                Err(position) => position,
                Ok(_) => return Err(damaged(node.address, "every record once", "one twice")),
            };
        }
        let inserted = self.insert(node.child(position)?, below, probe, encoded, io);
        node.total = node.total.saturating_add(u64::from(inserted.is_ok()));
        // Also if it failed: room may have been made below, for which there was none here.
        let count = node.child(position)?.count(self);
        if count > split {
            self.deal(node, depth, position, 1, &halves(count), io)?;
        }
        inserted
    }

    /// Takes a record from below `child`, a node of `depth` that can spare one.
    pub(super) fn remove<P: Probe>(
        &mut self,
        child: &mut Child,
        depth: usize,
        target: &mut Target<'_, P>,
        io: &dyn MetadataIo,
    ) -> Result<Vec<u8>> {
        let node = child.load(self, depth, io)?;
        node.mark();
        let Some(below) = depth.checked_sub(1) else {
            return self.remove_from_leaf(node, target);
        };
        let (_, position) = self.way_to(node, target)?;
        let level = self.level(below)?;
        let merge = spare(&level);
        if node.child(position)?.count(self) <= merge {
            self.fill_up(node, depth, position, merge, io)?;
        }
        // Records may have moved between the node and its children.
        let (here, position) = self.way_to(node, target)?;
        if let Some((neighbour, _)) = self.fuller(node, position).filter(|_| is_narrow(&level)) {
            node.child(neighbour)?.load(self, below, io)?;
        }
        let removed = match here {
            None => self.remove(node.child(position)?, below, target, io)?,
            Some(here) => {
                let first = &mut Target::<P>::First;
                let next = self.remove(node.child(position)?, below, first, io)?;
                let removed = node.record(self, here).to_vec();
                node.replace(self, here, &next);
                removed
            }
        };
        node.total = node.total.saturating_sub(1);
        if is_narrow(&level) && node.child(position)?.count(self) == 0 {
            self.fill_up(node, depth, position, merge, io)?;
        }
        Ok(removed)
    }

    fn remove_from_leaf<P: Probe>(
        &self,
        node: &mut Node,
        target: &mut Target<'_, P>,
    ) -> Result<Vec<u8>> {
        let position = match target {
            Target::First => 0,
            Target::Record(probe) => self.search(node.records(), *probe)?.unwrap_or(usize::MAX),
        };
        if position >= node.count(self) {
            return Err(damaged(node.address, "the record that was found before", "none"));
        }
        let size = self.levels.record_size();
        let at = position * size;
        node.total = node.total.saturating_sub(1);
        Ok(node.records.drain(at..at + size).collect())
    }

    /// The child that leads to a record, and the record's position if it is in the node itself;
    /// then the child is the one whose first record can replace it.
    fn way_to<P: Probe>(
        &self,
        node: &Node,
        target: &mut Target<'_, P>,
    ) -> Result<(Option<usize>, usize)> {
        Ok(match target {
            Target::First => (None, 0),
            Target::Record(probe) => match self.search(node.records(), *probe)? {
                Ok(here) => (Some(here), here + 1),
                Err(position) => (None, position),
            },
        })
    }

    /// Makes room in a full child: shares with the emptier neighbour if both have room afterwards,
    /// else splits it.
    fn make_room(
        &mut self,
        node: &mut Node,
        depth: usize,
        position: usize,
        io: &dyn MetadataIo,
    ) -> Result<()> {
        let split = usize::from(self.level(depth.saturating_sub(1))?.split);
        let count = node.child(position)?.count(self);
        let neighbour = self.neighbours(node, position).min_by_key(|&(_, count)| count);
        if let Some((neighbour, other)) = neighbour
            && count + other + 2 <= 2 * split
        {
            let all = count + other;
            let shares = [all / 2, all - all / 2];
            return self.deal(node, depth, position.min(neighbour), 2, &shares, io);
        }
        self.deal(node, depth, position, 1, &halves(count), io)
    }

    /// Fills a thin child up: takes from the fuller neighbour if both can spare one afterwards, else
    /// merges the two. Where that would be too many, which are as many as the two need and one: the child
    /// gets that one.
    fn fill_up(
        &mut self,
        node: &mut Node,
        depth: usize,
        position: usize,
        merge: usize,
        io: &dyn MetadataIo,
    ) -> Result<()> {
        let count = node.child(position)?.count(self);
        let Some((neighbour, other)) = self.fuller(node, position) else { return Ok(()) };
        let all = count + other;
        let first = position.min(neighbour);
        if all >= 2 * merge + 2 {
            return self.deal(node, depth, first, 2, &[all / 2, all - all / 2], io);
        }
        if all < usize::from(self.level(depth.saturating_sub(1))?.split) {
            return self.deal(node, depth, first, 2, &[all + 1], io);
        }
        let mut shares = [all - (merge + 1), all - (merge + 1)];
        shares[position - first] = merge + 1;
        self.deal(node, depth, first, 2, &shares, io)
    }

    /// The fuller neighbour of a child, and how many records it has.
    fn fuller(&self, node: &Node, position: usize) -> Option<(usize, usize)> {
        self.neighbours(node, position).max_by_key(|&(_, count)| count)
    }

    /// The children on both sides of one, and how many records they have.
    fn neighbours<'a>(
        &'a self,
        node: &'a Node,
        position: usize,
    ) -> impl Iterator<Item = (usize, usize)> + 'a {
        let sides = [position.checked_sub(1), position.checked_add(1)];
        sides.into_iter().flatten().filter_map(|side| {
            let child = node.children.get(side)?;
            Some((side, child.count(self)))
        })
    }

    /// Deals the records of `old` children from `first` on out to nodes of `shares` records, with
    /// one record of the parent between each two. `shares` must add up.
    fn deal(
        &mut self,
        node: &mut Node,
        depth: usize,
        first: usize,
        old: usize,
        shares: &[usize],
        io: &dyn MetadataIo,
    ) -> Result<()> {
        let below = depth.saturating_sub(1);
        for position in first..first + old {
            node.child(position)?.load(self, below, io)?;
        }
        // From here on nothing can fail.
        let size = self.levels.record_size();
        let separators = first * size..(first + old).saturating_sub(1) * size;
        let pool = Pool::of(node, first..first + old, separators.clone(), size);
        let mut records = pool.records.as_slice();
        let (mut children, mut addresses) = (pool.children.into_iter(), pool.addresses.into_iter());
        let (mut nodes, mut between) = (Vec::new(), Vec::new());
        for (number, &share) in shares.iter().enumerate() {
            let (own, rest) = records.split_at_checked(share * size).unwrap_or((records, &[]));
            let last = number + 1 == shares.len();
            let (separator, rest) =
                rest.split_at_checked(if last { 0 } else { size }).unwrap_or((rest, &[]));
            records = rest;
            between.extend_from_slice(separator);
            let own_children = if below > 0 { share + 1 } else { 0 };
            let own_children: Vec<_> = children.by_ref().take(own_children).collect();
            let totals = own_children.iter().map(Child::total);
            let total = totals.fold(share as u64, u64::saturating_add);
            let address = addresses.next().unwrap_or(UNDEFINED);
            let dealt = Node::new(address, own.to_vec(), own_children, total);
            nodes.push(Child::Loaded(Box::new(dealt)));
            self.loaded += 1;
        }
        for address in addresses {
            self.free(address, io);
        }
        node.records.splice(separators, between);
        node.children.splice(first..first, nodes);
        node.mark();
        Ok(())
    }

    /// Gives the space of a node back, if it has any.
    fn free(&mut self, address: u64, io: &dyn MetadataIo) {
        if address != UNDEFINED {
            io.free(address, u64::from(self.levels.parameters().node_size));
            self.claims.release(address);
        }
    }
}

/// The pooled contents of neighbouring children.
struct Pool {
    /// The records in order, with those between the children in the parent.
    records: Vec<u8>,
    children: Vec<Child>,
    /// The old addresses.
    addresses: Vec<u64>,
}

impl Pool {
    /// Takes loaded children out of `node`; the records between them stay there.
    fn of(node: &mut Node, taken: Range<usize>, separators: Range<usize>, size: usize) -> Self {
        let mut between = node.records.get(separators).unwrap_or_default().chunks_exact(size);
        let mut pool = Self { records: Vec::new(), children: Vec::new(), addresses: Vec::new() };
        for child in node.children.drain(taken) {
            let Child::Loaded(part) = child else { continue };
            pool.records.extend_from_slice(&part.records);
            pool.records.extend_from_slice(between.next().unwrap_or_default());
            pool.children.extend(part.children);
            pool.addresses.push(part.address);
        }
        pool
    }
}

/// Fails for levels whose nodes would overflow or become empty.
fn check(levels: &TreeLevels, header: u64) -> Result<()> {
    for (depth, level) in (0..).map_while(|depth| Some((depth, levels.level(depth)?))) {
        let few = usize::from(level.merge.max(1));
        let halved = if is_narrow(level) { 3 } else { usize::from(level.split) };
        if level.split < 2 || 2 * few + 1 > halved {
            let found = format!(
                "nodes of at most {} record(s) at depth {depth}, split at {} and merged at {}",
                level.maximum, level.split, level.merge
            );
            let expected = "nodes that can be split and merged, as changes need it";
            return Err(DecodeError::new(HEADER, header, expected, found).into());
        }
    }
    Ok(())
}

/// Whether nodes have at most two records.
fn is_narrow(level: &TreeLevel) -> bool {
    level.split < 3
}

/// A node with so few records is filled up before one is taken.
fn spare(level: &TreeLevel) -> usize {
    if is_narrow(level) { 0 } else { usize::from(level.merge.max(1)) }
}

/// The counts of the two halves of a split node, with one record between them.
fn halves(count: usize) -> [usize; 2] {
    let left = count / 2;
    [left, count.saturating_sub(left + 1)]
}
