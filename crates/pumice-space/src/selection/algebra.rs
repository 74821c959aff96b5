//! Set algebra on span trees.
//!
//! One sweep over two lists of spans serves all operations: what differs is only which of "in the
//! first", "in the second" and "in both" is kept. Pairs of shared subtrees are combined once and
//! remembered, so the cost is linear in the nodes of both trees and of the result.

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

/// One operation under way: what it has combined already, and how many spans it may still make.
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
        loop {
            let (span, next) = match (first.get(), second.get()) {
                (None, None) => break,
                (Some((low, span)), other) if other.is_none_or(|(from, _)| low < from) => {
                    let high = other.map_or(span.high, |(from, _)| span.high.min(from - 1));
                    let kept = self.operation.keeps_first().then(|| span.down.clone());
                    first.pass(high);
                    (low..=high, kept)
                }
                (other, Some((low, span))) if other.is_none_or(|(from, _)| low < from) => {
                    let high = other.map_or(span.high, |(from, _)| span.high.min(from - 1));
                    let kept = self.operation.keeps_second().then(|| span.down.clone());
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

    /// What is kept where two spans meet: `None` for nothing, else the subtree.
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

/// What a sweep has not passed yet of a list of spans.
struct Rest<'a> {
    spans: std::slice::Iter<'a, Span>,
    current: Option<&'a Span>,
    from: u64,
}

impl<'a> Rest<'a> {
    fn new(spans: &'a [Span]) -> Self {
        let mut spans = spans.iter();
        let current = spans.next();
        Self { spans, current, from: current.map_or(0, |span| span.low) }
    }

    /// The next coordinate and the span that it belongs to.
    fn get(&self) -> Option<(u64, &'a Span)> {
        self.current.map(|span| (self.from, span))
    }

    /// Leaves everything up to `high` behind.
    fn pass(&mut self, high: u64) {
        match self.current {
            Some(span) if high < span.high => self.from = high + 1,
            _ => {
                self.current = self.spans.next();
                self.from = self.current.map_or(0, |span| span.low);
            }
        }
    }
}

/// Adds the cells of `other`, all of which come after those of `tree` in row-major order of blocks,
/// without copying `tree`; gives `false` and changes nothing if they do not, or if `tree` is shared.
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
