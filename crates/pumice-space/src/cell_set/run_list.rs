//! A set of cells as runs: where each begins and how many cells of the set come before it.
//!
//! Invariants: runs ascend, do not touch, are not empty; the last entry is a sentinel that begins
//! where the chunk ends and counts all cells, so the length of run `i` is always the difference of
//! two counts.

use super::builder::Store;
use crate::Run;

/// An integer that holds cells of a chunk: 32 bits where they suffice, else 64.
pub(super) trait Number: Copy + Ord + std::fmt::Debug {
    /// Narrows a number that is known to fit.
    fn narrow(wide: u64) -> Self;
    fn wide(self) -> u64;
    /// The list of a builder that keeps this width.
    fn entries_of(store: &mut Store) -> Option<&mut Vec<Entry<Self>>>;
}

impl Number for u32 {
    fn narrow(wide: u64) -> Self {
        debug_assert!(wide <= u64::from(u32::MAX));
        wide as u32
    }

    fn entries_of(store: &mut Store) -> Option<&mut Vec<Entry<Self>>> {
        match store {
            Store::Small(entries) => Some(entries),
            _ => None,
        }
    }

    fn wide(self) -> u64 {
        u64::from(self)
    }
}

impl Number for u64 {
    fn narrow(wide: u64) -> Self {
        wide
    }

    fn entries_of(store: &mut Store) -> Option<&mut Vec<Entry<Self>>> {
        match store {
            Store::Large(entries) => Some(entries),
            _ => None,
        }
    }

    fn wide(self) -> u64 {
        self
    }
}

/// The beginning of a run and the cells of the set before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry<T> {
    pub(super) start: T,
    pub(super) before: T,
}

/// Runs with a sentinel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunList<T> {
    entries: Box<[Entry<T>]>,
}

impl<T: Number> RunList<T> {
    /// Closes a list of runs of a chunk of `cells`, `len` of which are in the set.
    pub(super) fn new(mut entries: Vec<Entry<T>>, cells: u64, len: u64) -> Self {
        entries.push(Entry { start: T::narrow(cells), before: T::narrow(len) });
        Self { entries: entries.into_boxed_slice() }
    }

    pub(super) fn count(&self) -> usize {
        self.entries.len() - 1
    }

    pub(super) fn heap_bytes(&self) -> usize {
        std::mem::size_of_val(&*self.entries)
    }

    /// The run at `index` and the position of its first value.
    pub(super) fn get(&self, index: usize) -> Option<(Run, u64)> {
        let [entry, next] = self.entries.get(index..index + 2)? else { return None };
        let before = entry.before.wide();
        Some((Run { start: entry.start.wide(), len: next.before.wide() - before }, before))
    }

    /// The first run that ends after `cell`, or the number of runs.
    pub(super) fn find(&self, cell: u64) -> usize {
        self.find_between(cell, 0, self.count())
    }

    /// Like [`RunList::find`], faster near `hint`: the search doubles its step from there.
    pub(super) fn seek(&self, cell: u64, hint: usize) -> usize {
        let starts = &self.entries[..self.count()];
        let hint = hint.min(starts.len());
        let (low, high) = match starts.get(hint) {
            Some(entry) if entry.start.wide() <= cell => gallop(starts, cell, hint),
            // The usual case of ascending requests: the gap before the run that comes next.
            _ if hint == 0 || starts[hint - 1].start.wide() <= cell => (hint, hint),
            _ => (0, hint),
        };
        self.find_between(cell, low, high)
    }

    /// The first run that ends after `cell`, where the runs that begin after it begin in
    /// `low..=high`.
    fn find_between(&self, cell: u64, low: usize, high: usize) -> usize {
        let within = &self.entries[low..high];
        let after = low + within.partition_point(|entry| entry.start.wide() <= cell);
        // The run before may reach beyond `cell`.
        match after.checked_sub(1).and_then(|index| self.get(index)) {
            Some((run, _)) if cell < run.end() => after - 1,
            _ => after,
        }
    }

    /// The number of cells of the set before `cell`.
    pub(super) fn rank(&self, cell: u64) -> u64 {
        self.rank_in(cell, self.find(cell))
    }

    /// Like [`RunList::rank`], faster near `hint`; gives the next hint too.
    pub(super) fn rank_near(&self, cell: u64, hint: usize) -> (u64, usize) {
        let index = self.seek(cell, hint);
        (self.rank_in(cell, index), index)
    }

    /// The number of cells before `cell`, given the first run that ends after it.
    fn rank_in(&self, cell: u64, index: usize) -> u64 {
        match self.get(index) {
            Some((run, before)) => before + cell.saturating_sub(run.start),
            None => self.entries[self.count()].before.wide(),
        }
    }

    /// The entries of runs, the sentinel included.
    pub(super) fn entries(&self) -> &[Entry<T>] {
        &self.entries
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Run> + '_ {
        self.entries.windows(2).map(|pair| {
            let (entry, next) = (pair[0], pair[1]);
            Run { start: entry.start.wide(), len: next.before.wide() - entry.before.wide() }
        })
    }

    /// The cell that owns the value at `position`, which is in range.
    pub(super) fn select(&self, position: u64) -> Option<u64> {
        let after = self.entries.partition_point(|entry| entry.before.wide() <= position);
        let (run, before) = self.get(after.checked_sub(1)?)?;
        Some(run.start + (position - before))
    }

    pub(super) fn for_each(&self, visit: impl FnMut(Run)) {
        self.iter().for_each(visit);
    }

    /// Visits the parts of runs between `at` and `end`, with positions, beginning the search at
    /// `hint`. Gives the index of the first run that reaches beyond `end`.
    pub(super) fn for_each_within(
        &self,
        at: u64,
        end: u64,
        hint: usize,
        mut visit: impl FnMut(Run, u64),
    ) -> usize {
        let mut index = self.seek(at, hint);
        while let Some((run, before)) = self.get(index) {
            if run.start >= end {
                break;
            }
            let start = run.start.max(at);
            let stop = run.end().min(end);
            visit(Run { start, len: stop - start }, before + (start - run.start));
            if run.end() > end {
                break;
            }
            index += 1;
        }
        index
    }
}

/// Bounds on the number of leading entries that begin at or before `cell`; `hint` is one of them.
fn gallop<T: Number>(starts: &[Entry<T>], cell: u64, hint: usize) -> (usize, usize) {
    let (mut low, mut step) = (hint + 1, 1);
    while starts.get(low + step - 1).is_some_and(|entry| entry.start.wide() <= cell) {
        low += step;
        step *= 2;
    }
    (low, (low + step).min(starts.len()))
}
