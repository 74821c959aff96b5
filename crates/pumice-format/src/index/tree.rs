//! The version 2 B-tree: records in order, in nodes of one size.
//!
//! ```text
//! BTHD  signature 4, version, type, node size 4, record size 2, depth 2, split %, merge %,
//!       root O, records in root 2, records in tree L, checksum 4
//! BTIN  signature 4, version, type, records, then for each child: node O, its records, [records below], checksum 4
//! BTLF  signature 4, version, type, records, checksum 4
//! ```
//!
//! Nodes carry no count: it stands with the pointer to the node. The widths of the two counts of a
//! child follow from how much a node can hold at most, which is what [`TreeLevels`] computes. Depth
//! 0 is a leaf; a node of depth `d` points to nodes of depth `d - 1`, so no chain of pointers is
//! longer than the depth in the header.
//!
//! Nothing here depends on the type of records: all trees of a file have this form.

use super::block::{CHECKSUM, check_version};
use crate::{DecodeError, Sizes};
use pumice_bytes::{Reader, Writer};

const HEADER: &str = "version 2 B-tree header";

/// Signature, version, type and checksum of a node.
const NODE_OVERHEAD: usize = 4 + 1 + 1 + CHECKSUM;

/// The parameters of a tree's nodes.
///
/// ```
/// let parameters = pumice_format::index::tree::TreeParameters::default();
/// assert_eq!((parameters.node_size, parameters.split, parameters.merge), (2048, 100, 40));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeParameters {
    /// Bytes of a node.
    pub node_size: u32,
    /// The fill level, in percent, at which a node is split.
    pub split: u8,
    /// The fill level, in percent, at which a node is merged with others.
    pub merge: u8,
}

impl Default for TreeParameters {
    fn default() -> Self {
        Self { node_size: 2048, split: 100, merge: 40 }
    }
}

/// A node, as its parent knows it.
///
/// ```
/// let root = pumice_format::index::tree::NodePointer::default();
/// assert_eq!((root.address, root.records), (pumice_format::UNDEFINED, 0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodePointer {
    /// Its address.
    pub address: u64,
    /// The number of its records.
    pub records: u16,
    /// The number of records in it and below it.
    pub total: u64,
}

impl Default for NodePointer {
    fn default() -> Self {
        Self { address: crate::UNDEFINED, records: 0, total: 0 }
    }
}

/// The header of a tree.
///
/// ```
/// use pumice_format::{Sizes, index::tree::*};
/// let header = TreeHeader {
///     tree_type: 10,
///     version: 0,
///     parameters: TreeParameters::default(),
///     record_size: 24,
///     depth: 0,
///     root: NodePointer::default(),
/// };
/// let mut bytes = Vec::new();
/// header.encode(Sizes::default(), &mut bytes);
/// assert_eq!(bytes.len(), 38);
/// assert_eq!(TreeHeader::decode(&bytes, 0, Sizes::default())?, header);
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeHeader {
    /// The type of the records.
    pub tree_type: u8,
    /// 0, or 1 for trees of structured chunks.
    pub version: u8,
    /// The parameters of the nodes.
    pub parameters: TreeParameters,
    /// Bytes of a record.
    pub record_size: u16,
    /// Levels of nodes above the leaves.
    pub depth: u16,
    /// The root; undefined if the tree is empty.
    pub root: NodePointer,
}

impl TreeHeader {
    /// Bytes of a header.
    pub fn size(sizes: Sizes) -> usize {
        NODE_OVERHEAD + 12 + usize::from(sizes.offset) + usize::from(sizes.length)
    }

    /// Appends the header.
    pub fn encode(&self, sizes: Sizes, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_bytes(b"BTHD");
        out.put_u8(self.version);
        out.put_u8(self.tree_type);
        out.put_u32(self.parameters.node_size);
        out.put_u16(self.record_size);
        out.put_u16(self.depth);
        out.put_u8(self.parameters.split);
        out.put_u8(self.parameters.merge);
        out.put_uint(self.root.address, usize::from(sizes.offset));
        out.put_u16(self.root.records);
        out.put_uint(self.root.total, usize::from(sizes.length));
        out.put_checksum(start);
    }

    /// Reads the header at `address`.
    pub fn decode(bytes: &[u8], address: u64, sizes: Sizes) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(HEADER, address, bytes);
        reader.signature(b"BTHD")?;
        let mut version = reader.clone();
        check_version(&mut reader)?;
        let tree_type = reader.u8()?;
        let node_size = reader.u32()?;
        let record_size = reader.u16()?;
        let depth = reader.u16()?;
        let parameters = TreeParameters { node_size, split: reader.u8()?, merge: reader.u8()? };
        let root = NodePointer {
            address: reader.offset(usize::from(sizes.offset))?,
            records: reader.u16()?,
            total: reader.uint(usize::from(sizes.length))?,
        };
        reader.checksum()?;
        Ok(Self { tree_type, version: version.u8()?, parameters, record_size, depth, root })
    }
}

/// The capacity of nodes of one depth.
///
/// ```
/// use pumice_format::index::tree::{TreeLevels, TreeParameters};
/// let levels = TreeLevels::new(TreeParameters::default(), 24, 0, 8, 0)?;
/// let leaf = levels.level(0).unwrap();
/// assert_eq!((leaf.maximum, leaf.split, leaf.merge), (84, 84, 33));
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeLevel {
    /// The most records of a node.
    pub maximum: u16,
    /// A node with as many records is split before another is added.
    pub split: u16,
    /// A node with as few records is merged before one is taken.
    pub merge: u16,
    /// The most records of a node and everything below it.
    pub cumulative: u64,
    /// Bytes of the count of records below a child; 0 for leaves, whose parents do not store it.
    pub cumulative_width: u8,
}

/// The capacity of a tree's nodes, by depth.
///
/// ```
/// use pumice_format::index::tree::{TreeLevels, TreeParameters};
/// let levels = TreeLevels::new(TreeParameters::default(), 24, 2, 8, 0)?;
/// assert_eq!(levels.level(0).map(|level| level.maximum), Some(84));
/// assert_eq!(levels.level(1).map(|level| level.maximum), Some(61));
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeLevels {
    parameters: TreeParameters,
    record_size: u16,
    offset_size: u8,
    count_width: u8,
    levels: Vec<TreeLevel>,
}

impl TreeLevels {
    /// The levels of a tree of depth `depth` whose header stands at `address`.
    pub fn new(
        parameters: TreeParameters,
        record_size: u16,
        depth: u16,
        offset_size: u8,
        address: u64,
    ) -> Result<Self, DecodeError> {
        if record_size == 0 {
            return Err(DecodeError::new(HEADER, address, "records of at least a byte", 0));
        }
        let room = (parameters.node_size as usize).saturating_sub(NODE_OVERHEAD);
        let maximum = room / usize::from(record_size);
        let leaf = level(maximum, None, parameters, address)?;
        let count_width = width_of(u64::from(leaf.maximum));
        let mut levels =
            Self { parameters, record_size, offset_size, count_width, levels: vec![leaf] };
        for _ in 0..depth {
            levels.deepen(address)?;
        }
        Ok(levels)
    }

    /// Adds a level above the highest one. Fails when no count could express what is below it,
    /// which bounds the depth that a header can claim.
    pub fn deepen(&mut self, address: u64) -> Result<(), DecodeError> {
        let Some(&below) = self.levels.last() else { return Ok(()) };
        let pointer = self.pointer_size(&below);
        let room = (self.parameters.node_size as usize).saturating_sub(NODE_OVERHEAD + pointer);
        let maximum = room / (usize::from(self.record_size) + pointer);
        self.levels.push(level(maximum, Some(below), self.parameters, address)?);
        Ok(())
    }

    /// Takes the highest level away again; a leaf always stays.
    pub fn flatten(&mut self) {
        if self.levels.len() > 1 {
            self.levels.pop();
        }
    }

    /// The layout of nodes of `depth`.
    pub fn level(&self, depth: usize) -> Option<&TreeLevel> {
        self.levels.get(depth)
    }

    /// The depth of the root.
    pub fn depth(&self) -> usize {
        self.levels.len().saturating_sub(1)
    }

    /// The parameters of the nodes.
    pub fn parameters(&self) -> TreeParameters {
        self.parameters
    }

    /// Bytes of a record.
    pub fn record_size(&self) -> usize {
        usize::from(self.record_size)
    }

    /// Bytes of a pointer to a node of the level `below`.
    fn pointer_size(&self, below: &TreeLevel) -> usize {
        usize::from(self.offset_size + self.count_width + below.cumulative_width)
    }
}

fn level(
    maximum: usize,
    below: Option<TreeLevel>,
    parameters: TreeParameters,
    address: u64,
) -> Result<TreeLevel, DecodeError> {
    let refuse = |expected, found| Err(DecodeError::new(HEADER, address, expected, found));
    let Some(maximum) = u16::try_from(maximum).ok().filter(|&maximum| maximum > 0) else {
        return refuse("nodes of 1 to 65535 records", maximum.to_string());
    };
    let percent = |part: u8| (u32::from(maximum) * u32::from(part.min(100)) / 100) as u16;
    let (cumulative, cumulative_width) = match below {
        None => (Some(u64::from(maximum)), 0),
        Some(below) => {
            let children = below.cumulative.checked_mul(u64::from(maximum) + 1);
            let all = children.and_then(|children| children.checked_add(u64::from(maximum)));
            (all, all.map_or(0, width_of))
        }
    };
    let Some(cumulative) = cumulative else {
        return refuse("a depth whose records can be counted", "a deeper tree".into());
    };
    let (split, merge) = (percent(parameters.split), percent(parameters.merge));
    Ok(TreeLevel { maximum, split, merge, cumulative, cumulative_width })
}

/// Bytes that a count of up to `limit` takes.
fn width_of(limit: u64) -> u8 {
    (limit.max(1).ilog2() / 8 + 1) as u8
}

/// One node: its records, encoded, and its children (none in a leaf).
///
/// ```
/// use pumice_format::index::tree::*;
/// let levels = TreeLevels::new(TreeParameters::default(), 24, 1, 8, 0)?;
/// let child = NodePointer { address: 0x800, records: 3, total: 3 };
/// let node = TreeNode { records: vec![5; 24], children: vec![child; 2] };
/// let mut bytes = Vec::new();
/// node.encode(&levels, 1, 10, &mut bytes);
/// assert_eq!(bytes.len(), 2048);
/// let pointer = NodePointer { address: 0x100, records: 1, total: 7 };
/// assert_eq!(TreeNode::decode(&bytes, &levels, 1, 10, pointer)?, node);
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeNode {
    /// The records, one after another.
    pub records: Vec<u8>,
    /// One more than there are records; none in a leaf.
    pub children: Vec<NodePointer>,
}

impl TreeNode {
    /// Appends a node of `depth`, filled up with zeros.
    pub fn encode(&self, levels: &TreeLevels, depth: usize, tree_type: u8, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_bytes(if depth == 0 { b"BTLF" } else { b"BTIN" });
        out.put_u8(0);
        out.put_u8(tree_type);
        out.put_bytes(&self.records);
        let below = depth.checked_sub(1).and_then(|below| levels.level(below));
        let below_width = below.map_or(0, |below| usize::from(below.cumulative_width));
        for child in &self.children {
            out.put_uint(child.address, usize::from(levels.offset_size));
            out.put_uint(u64::from(child.records), usize::from(levels.count_width));
            if below_width > 0 {
                out.put_uint(child.total, below_width);
            }
        }
        out.put_checksum(start);
        let used = out.len() - start;
        out.put_zeros((levels.parameters.node_size as usize).saturating_sub(used));
    }

    /// Reads the node of `depth` that `pointer` points to; its counts must add up.
    pub fn decode(
        bytes: &[u8],
        levels: &TreeLevels,
        depth: usize,
        tree_type: u8,
        pointer: NodePointer,
    ) -> Result<Self, DecodeError> {
        let (name, signature) = match depth {
            0 => ("version 2 B-tree leaf", b"BTLF"),
            _ => ("version 2 B-tree internal node", b"BTIN"),
        };
        let mut reader = Reader::new(name, pointer.address, bytes);
        reader.signature(signature)?;
        check_version(&mut reader)?;
        let before = reader.clone();
        let found = reader.u8()?;
        if found != tree_type {
            return Err(before.error(format!("type {tree_type}"), found));
        }
        let records = usize::from(pointer.records) * usize::from(levels.record_size);
        let records = reader.take(records)?.to_vec();
        let mut children = Vec::new();
        if let Some(below) = depth.checked_sub(1).and_then(|below| levels.level(below)) {
            children.reserve_exact(usize::from(pointer.records) + 1);
            for _ in 0..=pointer.records {
                children.push(decode_child(&mut reader, levels, below)?);
            }
        }
        reader.checksum()?;
        let below = children.iter().try_fold(0u64, |sum, child| sum.checked_add(child.total));
        let total = below.and_then(|below| below.checked_add(u64::from(pointer.records)));
        if total != Some(pointer.total) {
            let found = total.map_or("more".into(), |total| total.to_string());
            return Err(before.error(format!("{} record(s) in all", pointer.total), found));
        }
        Ok(Self { records, children })
    }
}

fn decode_child(
    reader: &mut Reader<'_>,
    levels: &TreeLevels,
    below: &TreeLevel,
) -> Result<NodePointer, DecodeError> {
    let before = reader.clone();
    let address = reader.offset(usize::from(levels.offset_size))?;
    let records = reader.uint(usize::from(levels.count_width))?;
    let total = match below.cumulative_width {
        0 => records,
        width => reader.uint(usize::from(width))?,
    };
    match u16::try_from(records) {
        Ok(records) if records <= below.maximum => Ok(NodePointer { address, records, total }),
        _ => Err(before.error(format!("a child of at most {} record(s)", below.maximum), records)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_hold_what_libhdf5_says() {
        // Plain records of rank 2: 84 in a leaf; pointers of 9 and 8 + 1 + 2 bytes above.
        let levels = TreeLevels::new(TreeParameters::default(), 24, 3, 8, 0).unwrap();
        let maximum = |depth| levels.level(depth).map(|level| level.maximum);
        assert_eq!([0, 1, 2, 3].map(maximum), [Some(84), Some(61), Some(57), Some(56)]);
        let width = |depth| levels.level(depth).map(|level| level.cumulative_width);
        assert_eq!([0, 1, 2].map(width), [Some(0), Some(2), Some(3)]);
        let first = levels.level(1).unwrap();
        assert_eq!((first.cumulative, first.split, first.merge), (62 * 84 + 61, 61, 24));
    }

    #[test]
    fn a_depth_that_cannot_be_counted_is_refused() {
        assert!(TreeLevels::new(TreeParameters::default(), 24, u16::MAX, 8, 0).is_err());
        let tiny = TreeParameters { node_size: 40, ..TreeParameters::default() };
        assert!(TreeLevels::new(tiny, 24, 1, 8, 0).is_err());
        assert!(TreeLevels::new(TreeParameters::default(), 0, 0, 8, 0).is_err());
        assert!(TreeLevels::new(TreeParameters::default(), 3000, 0, 8, 0).is_err());
    }

    #[test]
    fn counts_that_do_not_add_up_are_refused() {
        let levels = TreeLevels::new(TreeParameters::default(), 24, 1, 8, 0).unwrap();
        let child = NodePointer { address: 0x800, records: 3, total: 3 };
        let node = TreeNode { records: vec![5; 24], children: vec![child; 2] };
        let mut bytes = Vec::new();
        node.encode(&levels, 1, 10, &mut bytes);
        let pointer = NodePointer { address: 0x100, records: 1, total: 7 };
        assert!(TreeNode::decode(&bytes, &levels, 1, 10, pointer).is_ok());
        let more = NodePointer { total: 8, ..pointer };
        assert!(TreeNode::decode(&bytes, &levels, 1, 10, more).is_err());
        assert!(TreeNode::decode(&bytes, &levels, 1, 11, pointer).is_err());
        assert!(TreeNode::decode(&bytes, &levels, 0, 10, pointer).is_err());
    }
}
