//! The blocks of a cell set, without a span tree.
//!
//! Levels of flat lists replace linked nodes: entry `i` of one level owns a range of entries of the
//! next. Children of neighbouring entries are neighbours, so two subtrees are compared by comparing
//! stretches of lists, level by level. The result equals the walk of the span tree of the same
//! cells.

use crate::cell_set::coordinates::Ranges;
use crate::selection::axis::Axis;
use crate::{CellSet, Hyperslab, HyperslabAxis};
use smallvec::SmallVec;
use std::ops::Range;

/// The blocks of a set, by dimension.
pub(super) struct FlatTree {
    /// Entries of all dimensions but the last.
    levels: Vec<Vec<Entry>>,
    /// First and last coordinate of each stretch of the last dimension.
    leaves: Vec<(u64, u64)>,
    /// The beginning of the open node of each dimension, the last one included.
    begin: Vec<usize>,
    /// The last box pushed: the path of open nodes.
    path: Ranges,
}

/// A range of one dimension, and the selection below it.
#[derive(Clone, Copy)]
struct Entry {
    low: u64,
    high: u64,
    first_child: usize,
    children: usize,
}

impl FlatTree {
    /// The blocks of a set that is not empty, in a chunk of shape `dims`, of rank one at least.
    pub(super) fn new(set: &CellSet, dims: &[u64]) -> Self {
        let rank = dims.len();
        let mut tree = Self {
            levels: vec![Vec::new(); rank - 1],
            leaves: Vec::new(),
            begin: vec![0; rank],
            path: Ranges::new(),
        };
        set.for_each_box(dims, |ranges, same_row| match ranges.last() {
            // Runs of a row never touch: they would be one run.
            Some(&leaf) if same_row => tree.leaves.push(leaf),
            _ => tree.push(ranges),
        });
        tree.close(0);
        tree
    }

    pub(super) fn block_count(&self) -> u64 {
        self.leaves.len() as u64
    }

    /// The highest coordinate of any dimension.
    pub(super) fn highest(&self) -> u64 {
        let inner = self.levels.iter().flatten().map(|entry| entry.high);
        inner.chain(self.leaves.iter().map(|leaf| leaf.1)).max().unwrap_or(0)
    }

    /// Adds a box that comes after all others in the order of a span tree.
    fn push(&mut self, ranges: &[(u64, u64)]) {
        let mut equal = 0;
        if !self.path.is_empty() {
            equal = self.path.iter().zip(ranges).take_while(|(a, b)| a == b).count();
            self.close(equal);
        }
        self.path.truncate(equal);
        self.path.extend_from_slice(&ranges[equal..]);
        let Some(&(low, high)) = ranges.last() else { return };
        self.leaves.push((low, high));
    }

    /// Ends the nodes of all dimensions after `axis`.
    fn close(&mut self, axis: usize) {
        for depth in (axis + 1..self.begin.len()).rev() {
            let first_child = self.begin[depth];
            let children = self.level_len(depth) - first_child;
            let (low, high) = self.path[depth - 1];
            let entry = Entry { low, high, first_child, children };
            let open = self.begin[depth - 1];
            let before = self.levels[depth - 1][open..].last().copied();
            match before {
                Some(before) if before.high + 1 == low && self.same(depth, &before, &entry) => {
                    if let Some(last) = self.levels[depth - 1].last_mut() {
                        last.high = high;
                    }
                    self.drop_children(depth, first_child);
                }
                _ => self.levels[depth - 1].push(entry),
            }
            self.begin[depth] = self.level_len(depth);
        }
    }

    fn level_len(&self, depth: usize) -> usize {
        self.levels.get(depth).map_or(self.leaves.len(), Vec::len)
    }

    /// Whether the children of two entries of the level above `depth` select the same cells.
    fn same(&self, depth: usize, a: &Entry, b: &Entry) -> bool {
        let mut a = a.first_child..a.first_child + a.children;
        let mut b = b.first_child..b.first_child + b.children;
        for level in &self.levels[depth.min(self.levels.len())..] {
            let (x, y) = (&level[a.clone()], &level[b.clone()]);
            let equal = |(x, y): (&Entry, &Entry)| {
                (x.low, x.high, x.children) == (y.low, y.high, y.children)
            };
            if x.len() != y.len() || !x.iter().zip(y).all(equal) {
                return false;
            }
            a = children_of(x);
            b = children_of(y);
        }
        self.leaves[a] == self.leaves[b]
    }

    /// Removes the entries from `first` on, and everything below them.
    fn drop_children(&mut self, depth: usize, first: usize) {
        let mut first = first;
        for (level, begin) in self.levels.iter_mut().zip(&mut self.begin).skip(depth) {
            let below = level.get(first).map_or(0, |entry| entry.first_child);
            level.truncate(first);
            *begin = first;
            first = below;
        }
        self.leaves.truncate(first);
        if let Some(begin) = self.begin.last_mut() {
            *begin = first;
        }
    }

    /// The set as a regular hyperslab, if it is one: every node of a level equals the first.
    pub(super) fn regular(&self) -> Option<Hyperslab> {
        let mut axes = Hyperslab::new();
        let mut count = self.level_len(0);
        for level in &self.levels {
            let (node, rest) = level.split_at_checked(count)?;
            let first = node.first()?;
            axes.push(regular_axis(node.iter().map(|entry| (entry.low, entry.high)))?);
            let same = |(x, y): (&Entry, &Entry)| {
                (x.low, x.high, x.children) == (y.low, y.high, first.children)
            };
            let even = node.iter().all(|entry| entry.children == first.children);
            let repeats = rest.len() % count == 0 && rest.iter().zip(node.iter().cycle()).all(same);
            if !even || !repeats {
                return None;
            }
            count = first.children;
        }
        let (node, rest) = self.leaves.split_at_checked(count)?;
        axes.push(regular_axis(node.iter().copied())?);
        rest.iter().zip(node.iter().cycle()).all(|(x, y)| x == y).then_some(axes)
    }

    /// Writes first and last corner of every block, in numbers of `width` bytes.
    pub(super) fn put_corners(&self, width: usize, out: &mut Vec<u8>) {
        match width {
            2 => self.put_all(|at| (at as u16).to_le_bytes(), out),
            4 => self.put_all(|at| (at as u32).to_le_bytes(), out),
            _ => self.put_all(u64::to_le_bytes, out),
        }
    }

    fn put_all<const N: usize>(&self, number: impl Fn(u64) -> [u8; N], out: &mut Vec<u8>) {
        let mut block: SmallVec<[[u8; N]; 8]> = smallvec::smallvec![[0; N]; 2 * self.begin.len()];
        out.reserve(self.leaves.len() * block.len() * N);
        self.put_level(0, 0..self.level_len(0), &number, &mut block, out);
    }

    /// Writes the blocks below some entries; `block` holds the corners of the slower dimensions.
    fn put_level<const N: usize>(
        &self,
        depth: usize,
        range: Range<usize>,
        number: &impl Fn(u64) -> [u8; N],
        block: &mut [[u8; N]],
        out: &mut Vec<u8>,
    ) {
        let rank = self.begin.len();
        let Some(level) = self.levels.get(depth) else {
            for &(low, high) in &self.leaves[range] {
                block[depth] = number(low);
                block[rank + depth] = number(high);
                out.extend_from_slice(block.as_flattened());
            }
            return;
        };
        for entry in &level[range] {
            block[depth] = number(entry.low);
            block[rank + depth] = number(entry.high);
            let children = entry.first_child..entry.first_child + entry.children;
            self.put_level(depth + 1, children, number, block, out);
        }
    }
}

fn children_of(entries: &[Entry]) -> Range<usize> {
    match (entries.first(), entries.last()) {
        (Some(first), Some(last)) => first.first_child..last.first_child + last.children,
        _ => 0..0,
    }
}

/// The parameters of stretches of equal length at equal distance.
fn regular_axis(spans: impl Iterator<Item = (u64, u64)> + Clone) -> Option<HyperslabAxis> {
    let mut rest = spans.clone();
    let (start, end) = rest.next()?;
    let block = end - start + 1;
    let Some((second, _)) = rest.clone().next() else {
        return Axis::span(start, end).parameters();
    };
    let stride = second - start;
    let mut count = 1;
    for (low, high) in rest {
        if high - low + 1 != block || low - start != stride.checked_mul(count)? {
            return None;
        }
        count += 1;
    }
    Some(HyperslabAxis { start, stride, count, block })
}
