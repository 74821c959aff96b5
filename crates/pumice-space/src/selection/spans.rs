//! The span tree: any set of cells, dimension by dimension.
//!
//! A node lists the stretches ("spans") of one dimension, each with the node of the next dimension
//! that describes what is selected at every coordinate of the stretch. Equal subtrees are shared,
//! so a product of a hundred stretches in each of five dimensions is five nodes, not 10^10 blocks.
//!
//! Invariants: the spans of a node ascend and do not overlap; neighbours that touch have different
//! subtrees; no node is empty; exactly the nodes of the last dimension have spans without subtree.
//! A tree is therefore the one description of its set: two trees are equal if and only if their
//! sets are. As nodes are shared, a walk that must not repeat itself remembers where it has been.

use crate::Dims;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A stretch of coordinates with the same cells selected at each of them.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    pub(crate) low: u64,
    /// The last coordinate, included.
    pub(crate) high: u64,
    pub(crate) down: Option<Arc<Tree>>,
}

/// One dimension of a span tree, and everything below it.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) spans: Vec<Span>,
    /// Selected cells, saturating.
    pub(crate) cells: u64,
}

impl Span {
    fn cells(&self) -> u64 {
        let below = self.down.as_ref().map_or(1, |down| down.cells);
        (self.high - self.low).saturating_add(1).saturating_mul(below)
    }
}

impl Tree {
    /// A node of spans that satisfy the invariants; `None` if there are none.
    pub(crate) fn of(spans: Vec<Span>) -> Option<Arc<Self>> {
        if spans.is_empty() {
            return None;
        }
        let cells = spans.iter().fold(0u64, |cells, span| cells.saturating_add(span.cells()));
        Some(Arc::new(Self { spans, cells }))
    }

    /// Whether it consists of exactly these spans, with the same subtrees.
    pub(crate) fn has_spans(&self, spans: &[Span]) -> bool {
        let equal = |(a, b): (&Span, &Span)| {
            let shared = match (&a.down, &b.down) {
                (Some(a), Some(b)) => Arc::ptr_eq(a, b),
                (a, b) => a.is_none() && b.is_none(),
            };
            a.low == b.low && a.high == b.high && shared
        };
        self.spans.len() == spans.len() && self.spans.iter().zip(spans).all(equal)
    }

    pub(crate) fn contains(&self, coord: &[u64]) -> bool {
        let Some((&x, rest)) = coord.split_first() else { return false };
        let at = self.spans.partition_point(|span| span.high < x);
        match self.spans.get(at) {
            Some(Span { low, down, .. }) if *low <= x => match down {
                Some(down) => down.contains(rest),
                None => rest.is_empty(),
            },
            _ => false,
        }
    }

    /// The smallest box around all cells, both corners included.
    pub(crate) fn bounds(self: &Arc<Self>, rank: usize) -> (Dims, Dims) {
        let mut low: Dims = smallvec::smallvec![u64::MAX; rank];
        let mut high: Dims = smallvec::smallvec![0; rank];
        self.for_each_node(0, &mut HashSet::new(), &mut |depth, node| {
            if let (Some(first), Some(last)) = (node.spans.first(), node.spans.last()) {
                low[depth] = low[depth].min(first.low);
                high[depth] = high[depth].max(last.high);
            }
        });
        (low, high)
    }

    /// Visits every node once, with its dimension.
    fn for_each_node(
        self: &Arc<Self>,
        depth: usize,
        seen: &mut HashSet<*const Tree>,
        visit: &mut impl FnMut(usize, &Tree),
    ) {
        visit(depth, self);
        let mut previous: Option<&Arc<Tree>> = None;
        for down in self.spans.iter().filter_map(|span| span.down.as_ref()) {
            let repeated = previous.is_some_and(|previous| Arc::ptr_eq(previous, down));
            previous = Some(down);
            // A node with one owner is reached once, unless its owner is reached again.
            if repeated || (Arc::strong_count(down) > 1 && !seen.insert(Arc::as_ptr(down))) {
                continue;
            }
            down.for_each_node(depth + 1, seen, visit);
        }
    }

    /// The addresses of nodes that have no cell inside `dims`.
    pub(crate) fn nodes_outside(self: &Arc<Self>, dims: &[u64]) -> HashSet<usize> {
        fn has_inside(
            tree: &Arc<Tree>,
            dims: &[u64],
            known: &mut HashMap<*const Tree, bool>,
        ) -> bool {
            let Some((&size, rest)) = dims.split_first() else { return true };
            if let Some(&inside) = known.get(&Arc::as_ptr(tree)) {
                return inside;
            }
            // Every node must be judged, so this does not stop at the first cell.
            let mut inside = false;
            for span in &tree.spans {
                let below = span.down.as_ref().is_none_or(|down| has_inside(down, rest, known));
                inside |= span.low < size && below;
            }
            known.insert(Arc::as_ptr(tree), inside);
            inside
        }
        let mut known = HashMap::new();
        has_inside(self, dims, &mut known);
        known.into_iter().filter(|known| !known.1).map(|known| known.0.addr()).collect()
    }

    /// Whether the tree covers every cell of `dims`, perhaps more.
    pub(crate) fn covers(&self, dims: &[u64]) -> bool {
        let Some((&size, rest)) = dims.split_first() else { return true };
        match self.spans.as_slice() {
            [Span { low: 0, high, down }] => {
                size.saturating_sub(1) <= *high
                    && down.as_ref().is_none_or(|down| down.covers(rest))
            }
            _ => false,
        }
    }

    /// Moved by `offset`, or `None` if a coordinate leaves 64 bits.
    pub(crate) fn translate(self: &Arc<Self>, offset: &[i64]) -> Option<Arc<Self>> {
        self.translate_shared(offset, &mut HashMap::new())
    }

    fn translate_shared(
        self: &Arc<Self>,
        offset: &[i64],
        done: &mut HashMap<*const Tree, Arc<Tree>>,
    ) -> Option<Arc<Self>> {
        let (&by, rest) = offset.split_first()?;
        if by == 0 && rest.iter().all(|&by| by == 0) {
            return Some(self.clone());
        }
        if let Some(moved) = done.get(&Arc::as_ptr(self)) {
            return Some(moved.clone());
        }
        let mut spans = Vec::with_capacity(self.spans.len());
        for Span { low, high, down } in &self.spans {
            let low = low.checked_add_signed(by)?;
            let high = high.checked_add_signed(by).filter(|&high| high != u64::MAX)?;
            let down = match down {
                Some(down) => Some(down.translate_shared(rest, done)?),
                None => None,
            };
            spans.push(Span { low, high, down });
        }
        let moved = Arc::new(Self { spans, cells: self.cells });
        done.insert(Arc::as_ptr(self), moved.clone());
        Some(moved)
    }

    /// Blocks (leaves) of the tree, saturating.
    pub(crate) fn block_count(self: &Arc<Self>) -> u64 {
        fn count(tree: &Arc<Tree>, done: &mut HashMap<*const Tree, u64>) -> u64 {
            if tree.spans.first().is_none_or(|span| span.down.is_none()) {
                return tree.spans.len() as u64;
            }
            if let Some(&blocks) = done.get(&Arc::as_ptr(tree)) {
                return blocks;
            }
            let below = tree.spans.iter().filter_map(|span| span.down.as_ref());
            let blocks = below.fold(0u64, |sum, down| sum.saturating_add(count(down, done)));
            done.insert(Arc::as_ptr(tree), blocks);
            blocks
        }
        count(self, &mut HashMap::new())
    }

    /// Visits the blocks in order: first and last corner, both included.
    pub(crate) fn for_each_block(&self, rank: usize, visit: &mut impl FnMut(&[u64], &[u64])) {
        fn walk(
            tree: &Tree,
            depth: usize,
            low: &mut Dims,
            high: &mut Dims,
            visit: &mut impl FnMut(&[u64], &[u64]),
        ) {
            for span in &tree.spans {
                low[depth] = span.low;
                high[depth] = span.high;
                match &span.down {
                    Some(down) => walk(down, depth + 1, low, high, visit),
                    None => visit(low, high),
                }
            }
        }
        let mut low: Dims = smallvec::smallvec![0; rank];
        let mut high: Dims = smallvec::smallvec![0; rank];
        walk(self, 0, &mut low, &mut high, visit);
    }
}

/// Whether two subtrees select the same cells.
pub(crate) fn same(a: &Option<Arc<Tree>>, b: &Option<Arc<Tree>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => same_tree(a, b, &mut HashSet::new()),
        (None, None) => true,
        _ => false,
    }
}

/// Comparison that remembers pairs found equal: an unequal pair ends it at once.
fn same_tree(
    a: &Arc<Tree>,
    b: &Arc<Tree>,
    equal: &mut HashSet<(*const Tree, *const Tree)>,
) -> bool {
    if Arc::ptr_eq(a, b) {
        return true;
    }
    if a.cells != b.cells || a.spans.len() != b.spans.len() {
        return false;
    }
    let ends = |a: &Span, b: &Span| (a.low, a.high) == (b.low, b.high);
    if !a.spans.iter().zip(&b.spans).all(|(a, b)| ends(a, b)) {
        return false;
    }
    if a.spans.first().is_none_or(|span| span.down.is_none()) {
        return true;
    }
    if equal.contains(&(Arc::as_ptr(a), Arc::as_ptr(b))) {
        return true;
    }
    let below = a.spans.iter().zip(&b.spans);
    let all = below.into_iter().all(|(a, b)| match (&a.down, &b.down) {
        (Some(a), Some(b)) => same_tree(a, b, equal),
        _ => false,
    });
    if all {
        equal.insert((Arc::as_ptr(a), Arc::as_ptr(b)));
    }
    all
}

/// Adds a span beyond all others, joining it with the last one where that is the same set.
pub(crate) fn push_span(spans: &mut Vec<Span>, span: Span) {
    if let Some(last) = spans.last_mut() {
        debug_assert!(last.high < span.low);
        if last.high + 1 == span.low && same(&last.down, &span.down) {
            last.high = span.high;
            return;
        }
    }
    spans.push(span);
}
