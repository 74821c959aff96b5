//! Values in and out of a packed list: which stay, which are replaced, which come in between.
//!
//! Unlike [`Merge`](super::Merge), which speaks of cells, this speaks of values alone: values that
//! follow each other move together however far apart their cells are.

use super::{CellRuns, CellSet, Form};
use crate::Run;

/// Values to copy next, from the old or from the new list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplicePiece {
    /// Whether the values come from the new list.
    pub new: bool,
    /// The first one's position in its list.
    pub position: u64,
    /// Its length.
    pub len: u64,
}

/// Walks the values of a union; made by [`CellSet::splice`].
#[derive(Clone, Debug)]
pub struct Splice<'a> {
    old: RankCursor<'a>,
    runs: CellRuns<'a>,
    /// The next run of the new set, and the old values before it.
    next: Option<(Run, u64)>,
    /// Old values copied or replaced so far.
    old_done: u64,
    new_done: u64,
}

impl<'a> Splice<'a> {
    pub(super) fn new(old: &'a CellSet, new: &'a CellSet) -> Self {
        let old = RankCursor::new(old);
        let mut splice = Self { old, runs: new.runs(), next: None, old_done: 0, new_done: 0 };
        splice.fetch();
        splice
    }

    fn fetch(&mut self) {
        self.next = self.runs.next().map(|run| (run, self.old.rank(run.start)));
    }
}

impl Iterator for Splice<'_> {
    type Item = SplicePiece;

    fn next(&mut self) -> Option<SplicePiece> {
        let position = self.old_done;
        let before = self.next.map_or(self.old.set.len(), |next| next.1);
        if before > position {
            self.old_done = before;
            return Some(SplicePiece { new: false, position, len: before - position });
        }
        let position = self.new_done;
        // New runs with no old value between them go together.
        while let Some((run, _)) = self.next.filter(|next| next.1 <= self.old_done) {
            self.new_done += run.len;
            self.old_done = self.old.rank(run.end());
            self.fetch();
        }
        let len = self.new_done - position;
        (len > 0).then_some(SplicePiece { new: true, position, len })
    }
}

/// Walks the positions that are left; made by [`CellSet::kept`].
#[derive(Clone, Debug)]
pub struct Kept<'a> {
    set: RankCursor<'a>,
    removed: CellRuns<'a>,
    /// Positions kept or removed so far.
    done: u64,
}

impl<'a> Kept<'a> {
    pub(super) fn new(set: &'a CellSet, removed: &'a CellSet) -> Self {
        Self { set: RankCursor::new(set), removed: removed.runs(), done: 0 }
    }
}

impl Iterator for Kept<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        for run in self.removed.by_ref() {
            let (from, to) = (self.set.rank(run.start), self.set.rank(run.end()));
            if from == to {
                continue;
            }
            let start = std::mem::replace(&mut self.done, to);
            if from > start {
                return Some(Run { start, len: from - start });
            }
        }
        let start = std::mem::replace(&mut self.done, self.set.set.len());
        (self.done > start).then(|| Run { start, len: self.done - start })
    }
}

/// Counts the cells before a cell, quickly if questions ascend.
#[derive(Clone, Debug)]
struct RankCursor<'a> {
    set: &'a CellSet,
    hint: usize,
}

impl<'a> RankCursor<'a> {
    fn new(set: &'a CellSet) -> Self {
        Self { set, hint: 0 }
    }

    fn rank(&mut self, cell: u64) -> u64 {
        let cell = cell.min(self.set.cells);
        let (found, hint) = match &self.set.form {
            Form::Cells(list) => {
                let index = list.seek(cell, self.hint);
                (index as u64, index)
            }
            Form::Small(runs) => runs.rank_near(cell, self.hint),
            Form::Large(runs) => runs.rank_near(cell, self.hint),
            _ => (self.set.rank(cell), 0),
        };
        self.hint = hint;
        found
    }
}
