//! Builds a [`CellSet`] from ascending runs, in the form that is smallest in the end.

use super::bitmap::{Bitmap, set_run};
use super::cell_list::CellList;
use super::run_list::{Entry, Number, RunList};
use super::{CellSet, Form};
use crate::Run;
use std::ops::Range;

/// Collects runs whose first cells ascend; they may touch or overlap.
///
/// Begins with a list of runs and turns to a bitmap as soon as the list would be larger.
pub(super) struct Builder {
    cells: u64,
    /// Cells of all finished runs.
    len: u64,
    /// The run that may still grow: begin and end.
    open: (u64, u64),
    store: Store,
    /// Runs and cells from which on a bitmap is smaller.
    most_runs: usize,
    most_cells: u64,
}

/// Finished runs.
pub(super) enum Store {
    Small(Vec<Entry<u32>>),
    Large(Vec<Entry<u64>>),
    Bits(Vec<u64>),
}

/// Whether cells of a chunk of `cells` fit 32 bits.
pub(super) fn is_small(cells: u64) -> bool {
    cells <= u64::from(u32::MAX)
}

/// The most runs for which a list of them is not larger than a bitmap.
pub(super) fn most_runs(cells: u64) -> usize {
    if !is_small(cells) {
        return usize::MAX;
    }
    let entry = size_of::<Entry<u32>>() as u64;
    (Bitmap::bytes(cells) / entry).saturating_sub(1) as usize
}

/// The most cells for which a list of them is not larger than a bitmap.
fn most_cells(cells: u64) -> u64 {
    Bitmap::bytes(cells) / size_of::<u32>() as u64
}

/// The smallest form of a set of a chunk whose cells fit 32 bits.
pub(super) enum Smallest {
    Cells,
    Runs,
    Bitmap,
}

impl Smallest {
    /// The smallest form of `len` cells of `cells` in `runs` runs.
    pub(super) fn of(cells: u64, len: u64, runs: u64) -> Self {
        if len > most_cells(cells) && runs > most_runs(cells) as u64 {
            Self::Bitmap
        } else if len <= 2 * (runs + 1) {
            Self::Cells
        } else {
            Self::Runs
        }
    }
}

impl Builder {
    pub(super) fn new(cells: u64) -> Self {
        let small = is_small(cells);
        let store = if small { Store::Small(Vec::new()) } else { Store::Large(Vec::new()) };
        let (most_runs, most_cells) = (most_runs(cells), most_cells(cells));
        Self { cells, len: 0, open: (0, 0), store, most_runs, most_cells }
    }

    /// The set of runs, each given as its first cell and the cell after its last. `None` if they do
    /// not ascend apart from each other inside the chunk, or need another form than a list.
    pub(super) fn known(cells: u64, bounds: &[[u64; 2]]) -> Option<CellSet> {
        if !is_small(cells) || bounds.len() > most_runs(cells) {
            return None;
        }
        let mut entries = Vec::with_capacity(bounds.len() + 1);
        let (mut right, mut next, mut len) = (true, 0, 0u64);
        // Without early exit: the caller, who takes them one by one, finds the fault.
        entries.extend(bounds.iter().map(|&[start, end]| {
            right &= next <= start && start < end;
            next = end.saturating_add(1);
            let before = len as u32;
            len = len.wrapping_add(end.wrapping_sub(start));
            Entry { start: start as u32, before }
        }));
        let inside = bounds.last().is_none_or(|[_, end]| *end <= cells);
        if !right || !inside {
            return None;
        }
        let open = (0, 0);
        let builder = Self { store: Store::Small(entries), len, open, ..Self::new(cells) };
        Some(builder.finish())
    }

    /// Makes room for about `runs` runs.
    pub(super) fn reserve(&mut self, runs: usize) {
        let runs = runs.min(self.most_runs.saturating_add(1)).saturating_add(1);
        match &mut self.store {
            Store::Small(entries) => entries.reserve(runs),
            Store::Large(entries) => entries.reserve(runs),
            Store::Bits(_) => {}
        }
    }

    /// The end of the cells taken so far.
    pub(super) fn end(&self) -> u64 {
        self.open.1
    }

    /// Whether `run` begins no earlier than the one before it.
    pub(super) fn takes(&self, run: Run) -> bool {
        run.start >= self.open.0
    }

    /// Adds a run that lies inside the chunk and begins no earlier than the one before it.
    #[inline]
    pub(super) fn add(&mut self, run: Run) {
        debug_assert!(self.takes(run) && run.end() <= self.cells);
        if run.start <= self.open.1 {
            self.open.1 = self.open.1.max(run.end());
            return;
        }
        self.close();
        self.open = (run.start, run.end());
    }

    /// Adds the runs of `list` with these indexes, in one copy where nothing overlaps them.
    pub(super) fn add_list<T: Number>(&mut self, list: &RunList<T>, range: Range<usize>) {
        let mut at = range.start;
        while at < range.end
            && let Some((run, _)) = list.get(at)
            && (run.start <= self.open.1 || range.end - at < 4)
        {
            self.add(run);
            at += 1;
        }
        let Some((last, _)) = range.end.checked_sub(1).and_then(|last| list.get(last)) else {
            return;
        };
        if at >= range.end {
            return;
        }
        self.close();
        let copied = &list.entries()[at..range.end - 1];
        let (from, len) = (list.entries()[at].before.wide(), self.len);
        if let Some(entries) = T::entries_of(&mut self.store) {
            entries.extend(copied.iter().map(|entry| Entry {
                start: entry.start,
                before: T::narrow(entry.before.wide() - from + len),
            }));
            self.len += list.entries()[range.end - 1].before.wide() - from;
            self.limit_runs();
        } else {
            self.open = (0, 0);
            (at..range.end - 1)
                .filter_map(|index| list.get(index))
                .for_each(|(run, _)| self.add(run));
            self.close();
        }
        self.open = (last.start, last.end());
    }

    fn close(&mut self) {
        let (start, end) = self.open;
        if start == end {
            return;
        }
        match &mut self.store {
            Store::Small(entries) => push(entries, start, self.len),
            Store::Large(entries) => push(entries, start, self.len),
            Store::Bits(words) => set_run(words, Run { start, len: end - start }),
        }
        self.len += end - start;
        self.limit_runs();
    }

    /// Turns to a bitmap if lists of runs and of cells have grown larger than one.
    #[inline]
    fn limit_runs(&mut self) {
        let Store::Small(entries) = &self.store else { return };
        if entries.len() <= self.most_runs || self.len <= self.most_cells {
            return;
        }
        let mut words = vec![0; self.cells.div_ceil(64) as usize];
        let ends = entries.iter().skip(1).map(|entry| u64::from(entry.before));
        for (entry, end) in entries.iter().zip(ends.chain([self.len])) {
            let len = end - u64::from(entry.before);
            set_run(&mut words, Run { start: u64::from(entry.start), len });
        }
        self.store = Store::Bits(words);
    }

    pub(super) fn finish(mut self) -> CellSet {
        self.close();
        let (cells, len) = (self.cells, self.len);
        if len == cells {
            return CellSet::full(cells);
        }
        let form = match self.store {
            Store::Small(entries) => match Smallest::of(cells, len, entries.len() as u64) {
                Smallest::Cells => Form::Cells(expand(&entries, len)),
                _ => Form::Small(RunList::new(entries, cells, len)),
            },
            Store::Large(entries) => Form::Large(RunList::new(entries, cells, len)),
            Store::Bits(words) => Form::Bitmap(Bitmap::new(words)),
        };
        CellSet { cells, len, form }
    }
}

/// The cells of runs, `len` in all.
fn expand(entries: &[Entry<u32>], len: u64) -> CellList {
    let mut list = Vec::with_capacity(len as usize);
    let ends = entries.iter().skip(1).map(|entry| entry.before).chain([len as u32]);
    for (entry, end) in entries.iter().zip(ends) {
        list.extend(entry.start..entry.start + (end - entry.before));
    }
    CellList::new(list, entries.len() as u64)
}

#[inline]
fn push<T: Number>(entries: &mut Vec<Entry<T>>, start: u64, before: u64) {
    entries.push(Entry { start: T::narrow(start), before: T::narrow(before) });
}
