//! Set algebra on span trees.
//!
//! One sweep over two lists of spans serves all operations; they differ in which of "in the first",
//! "in the second" and "in both" is kept. Pairs of shared subtrees are combined once and
//! remembered, so the cost is linear in the nodes of both trees and of the result. Parts that an
//! operation does not keep are skipped in growing steps: a block of a large tree costs its own
//! cells and a logarithm.

use super::spans::{Span, Tree, push_span};
use crate::SpaceError;
use std::collections::HashMap;
use std::sync::Arc;

/// A set operation on two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Or,
    And,
    Xor,
    /// In the first, not in the second.
    Minus,
}

impl Operation {
    pub(crate) fn keeps_first(self) -> bool {
        self != Self::And
    }

    pub(crate) fn keeps_second(self) -> bool {
        matches!(self, Self::Or | Self::Xor)
    }

    pub(crate) fn keeps_both(self) -> bool {
        matches!(self, Self::Or | Self::And)
    }
}

/// An operation under way: the pairs that it has combined, and how many spans it may still make.
pub(crate) struct Combine {
    operation: Operation,
    limit: u64,
    made: u64,
    // The key's pointers stay valid: the operands outlive the call to `apply` that fills the map.
    done: HashMap<(*const Tree, *const Tree), Option<Arc<Tree>>>,
}

impl Combine {
    /// Will make at most `limit` spans in all calls of [`Combine::apply`] together.
    pub(crate) fn new(operation: Operation, limit: u64) -> Self {
        Self { operation, limit, made: 0, done: HashMap::new() }
    }

    /// The combination of two trees of equal rank; `None` if it is empty.
    pub(crate) fn apply(
        &mut self,
        a: &Arc<Tree>,
        b: &Arc<Tree>,
    ) -> Result<Option<Arc<Tree>>, SpaceError> {
        self.done.clear();
        self.nodes(a, b)
    }

    fn nodes(&mut self, a: &Arc<Tree>, b: &Arc<Tree>) -> Result<Option<Arc<Tree>>, SpaceError> {
        if Arc::ptr_eq(a, b) {
            return Ok(self.operation.keeps_both().then(|| a.clone()));
        }
        let leaf = a.spans.first().is_none_or(|span| span.down.is_none());
        let shared = Arc::strong_count(a) > 1 || Arc::strong_count(b) > 1;
        let key = (Arc::as_ptr(a), Arc::as_ptr(b));
        if let Some(known) = shared.then(|| self.done.get(&key)).flatten() {
            return Ok(known.clone());
        }
        let result = self.sweep(a, b, leaf)?;
        if shared {
            self.done.insert(key, result.clone());
        }
        Ok(result)
    }

    fn sweep(&mut self, a: &Tree, b: &Tree, leaf: bool) -> Result<Option<Arc<Tree>>, SpaceError> {
        let mut out = Vec::new();
        let (mut first, mut second) = (Rest::new(&a.spans), Rest::new(&b.spans));
        let (keeps_first, keeps_second) =
            (self.operation.keeps_first(), self.operation.keeps_second());
        loop {
            let (span, next) = match (first.get(), second.get()) {
                (None, None) => break,
                (_, None) if !keeps_first => break,
                (None, _) if !keeps_second => break,
                (Some((low, _)), Some((from, _))) if low < from && !keeps_first => {
                    first.seek(from);
                    continue;
                }
                (Some((from, _)), Some((low, _))) if low < from && !keeps_second => {
                    second.seek(from);
                    continue;
                }
                (Some((low, span)), other) if other.is_none_or(|(from, _)| low < from) => {
                    let high = other.map_or(span.high, |(from, _)| span.high.min(from - 1));
                    let kept = keeps_first.then(|| span.down.clone());
                    first.pass(high);
                    (low..=high, kept)
                }
                (other, Some((low, span))) if other.is_none_or(|(from, _)| low < from) => {
                    let high = other.map_or(span.high, |(from, _)| span.high.min(from - 1));
                    let kept = keeps_second.then(|| span.down.clone());
                    second.pass(high);
                    (low..=high, kept)
                }
                (Some((low, a)), Some((_, b))) => {
                    let high = a.high.min(b.high);
                    let kept = self.both(a, b, leaf)?;
                    first.pass(high);
                    second.pass(high);
                    (low..=high, kept)
                }
                // Not reached: the guards above hold when the other side is exhausted.
                (Some(_), None) | (None, Some(_)) => break,
            };
            let Some(down) = next else { continue };
            self.made += 1;
            if self.made > self.limit {
                return Err(SpaceError::TooComplex { limit: self.limit });
            }
            push_span(&mut out, Span { low: *span.start(), high: *span.end(), down });
        }
        Ok(Tree::of(out))
    }

    /// The result where two spans meet: `None` for nothing, otherwise the subtree.
    fn both(
        &mut self,
        a: &Span,
        b: &Span,
        leaf: bool,
    ) -> Result<Option<Option<Arc<Tree>>>, SpaceError> {
        match (&a.down, &b.down) {
            (Some(a), Some(b)) if !leaf => Ok(self.nodes(a, b)?.map(Some)),
            _ => Ok(self.operation.keeps_both().then_some(None)),
        }
    }
}

/// The part of a list of spans that a sweep has not passed.
struct Rest<'a> {
    spans: &'a [Span],
    /// The first coordinate of the first span that is left.
    from: u64,
}

impl<'a> Rest<'a> {
    fn new(spans: &'a [Span]) -> Self {
        Self { spans, from: spans.first().map_or(0, |span| span.low) }
    }

    /// The next coordinate and the span that it belongs to.
    fn get(&self) -> Option<(u64, &'a Span)> {
        self.spans.first().map(|span| (self.from, span))
    }

    /// Leaves everything up to `high` behind, which lies in the first span.
    fn pass(&mut self, high: u64) {
        match self.spans {
            [span, ..] if high < span.high => self.from = high + 1,
            [_, rest @ ..] => *self = Self::new(rest),
            [] => {}
        }
    }

    /// Leaves everything before `from` behind.
    fn seek(&mut self, from: u64) {
        let passed = passed(self.spans, |span| span.high < from);
        self.spans = self.spans.get(passed..).unwrap_or_default();
        self.from = self.spans.first().map_or(0, |span| span.low.max(from));
    }
}

/// The number of leading items that are `before`, found in growing steps: all such items stand
/// first.
pub(super) fn passed<T>(items: &[T], before: impl Fn(&T) -> bool) -> usize {
    let mut step = 1;
    while items.get(step).is_some_and(&before) {
        step *= 2;
    }
    let near = items.get(..step + 1).unwrap_or(items);
    near.partition_point(before)
}

/// Adds the cells of `other` without copying `tree`. All of them must come after those of `tree` in
/// row-major order of blocks, and `tree` must not be shared; otherwise returns `false` and changes
/// nothing.
pub(crate) fn append(tree: &mut Arc<Tree>, other: &Arc<Tree>) -> bool {
    let Some(tree) = Arc::get_mut(tree) else { return false };
    let (Some(last), [head, ..]) = (tree.spans.last_mut(), other.spans.as_slice()) else {
        return false;
    };
    if head.low > last.high {
        for span in &other.spans {
            push_span(&mut tree.spans, span.clone());
        }
        tree.cells = tree.cells.saturating_add(other.cells);
        return true;
    }
    let one = other.spans.len() == 1 && (head.low, head.high) == (last.low, last.high);
    let (Some(down), Some(new)) = (&mut last.down, &head.down) else { return false };
    if !one || !append(down, new) {
        return false;
    }
    tree.cells = tree.cells.saturating_add(other.cells);
    if let Some(last) = tree.spans.pop() {
        push_span(&mut tree.spans, last);
    }
    true
}
