//! Two sets side by side: the pieces that a merge of their values copies.

use super::{CellRuns, CellSet};
use crate::Run;

/// A piece of the union of two sets: cells that are all in the first, the second, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergePiece {
    /// The first cell.
    pub cell: u64,
    /// The position of its value in the first set, if it is there.
    pub a: Option<u64>,
    /// The position of its value in the second set, if it is there.
    pub b: Option<u64>,
    /// Its length.
    pub len: u64,
}

/// Walks the union of two sets; made by [`CellSet::merge`].
#[derive(Clone, Debug)]
pub struct Merge<'a> {
    a: Side<'a>,
    b: Side<'a>,
}

/// The rest of one set: the rest of a run, and the position of its first value.
#[derive(Clone, Debug)]
struct Side<'a> {
    runs: CellRuns<'a>,
    current: Option<Run>,
    position: u64,
}

impl<'a> Side<'a> {
    fn new(set: &'a CellSet) -> Self {
        let mut runs = set.runs();
        let current = runs.next();
        Self { runs, current, position: 0 }
    }

    /// Takes `len` cells off the current run; gives the position of the first.
    fn take(&mut self, len: u64) -> u64 {
        let position = self.position;
        self.position += len;
        if let Some(run) = &mut self.current {
            run.start += len;
            run.len -= len;
            if run.len == 0 {
                self.current = self.runs.next();
            }
        }
        position
    }
}

impl<'a> Merge<'a> {
    pub(super) fn new(a: &'a CellSet, b: &'a CellSet) -> Self {
        Self { a: Side::new(a), b: Side::new(b) }
    }
}

impl Iterator for Merge<'_> {
    type Item = MergePiece;

    fn next(&mut self) -> Option<MergePiece> {
        let (cell, in_a, in_b, len) = match (self.a.current, self.b.current) {
            (None, None) => return None,
            (Some(run), None) => (run.start, true, false, run.len),
            (None, Some(run)) => (run.start, false, true, run.len),
            (Some(a), Some(b)) if a.start < b.start => {
                (a.start, true, false, a.len.min(b.start - a.start))
            }
            (Some(a), Some(b)) if b.start < a.start => {
                (b.start, false, true, b.len.min(a.start - b.start))
            }
            (Some(a), Some(b)) => (a.start, true, true, a.len.min(b.len)),
        };
        let a = in_a.then(|| self.a.take(len));
        let b = in_b.then(|| self.b.take(len));
        Some(MergePiece { cell, a, b, len })
    }
}
