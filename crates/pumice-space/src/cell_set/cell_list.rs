//! A set of cells as a list: the form for scattered cells.
//!
//! Invariant: cells ascend without repetition. The index of a cell is the position of its value.
//! Only chunks of up to 2^32 - 1 cells are kept this way.

use crate::Run;
use pumice_wide::{Work, run_widely};
use std::ops::Range;

/// Cells that are compared at once at the end of a search.
const SOUGHT: usize = 64;

/// Cells that are copied at once, though fewer may be wanted.
const FEW: usize = 8;

/// Ascending cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CellList {
    cells: Box<[u32]>,
    /// The number of runs.
    runs: u64,
}

impl CellList {
    pub(super) fn new(cells: Vec<u32>, runs: u64) -> Self {
        debug_assert_eq!(Ascent::of(&cells), Ascent { strict: true, runs });
        Self { cells: cells.into_boxed_slice(), runs }
    }

    pub(super) fn run_count(&self) -> u64 {
        self.runs
    }

    pub(super) fn cells(&self) -> &[u32] {
        &self.cells
    }

    pub(super) fn heap_bytes(&self) -> usize {
        std::mem::size_of_val(&*self.cells)
    }

    pub(super) fn position(&self, cell: u64) -> Option<u64> {
        let cell = u32::try_from(cell).ok()?;
        self.cells.binary_search(&cell).ok().map(|position| position as u64)
    }

    /// The number of cells before `cell`.
    pub(super) fn rank(&self, cell: u64) -> u64 {
        self.cells.partition_point(|&at| u64::from(at) < cell) as u64
    }

    pub(super) fn select(&self, position: u64) -> Option<u64> {
        self.cells.get(position as usize).map(|&cell| u64::from(cell))
    }

    /// [`rank`](Self::rank), faster near `hint`: the search doubles its step from there, and the
    /// last [`SOUGHT`] cells are compared all at once. Reads of small windows seek every row this
    /// way.
    #[inline(always)]
    pub(super) fn seek(&self, cell: u64, hint: usize) -> usize {
        let cells = &*self.cells;
        let Ok(cell) = u32::try_from(cell) else { return cells.len() };
        let hint = hint.min(cells.len());
        if hint > 0 && cells[hint - 1] >= cell {
            return cells[..hint].partition_point(|&at| at < cell);
        }
        if cells.get(hint).is_none_or(|&at| at >= cell) {
            return hint;
        }
        let low = self.near(cell, hint);
        let before = match cells[low..].first_chunk::<SOUGHT>() {
            Some(near) => near.iter().map(|&at| u32::from(at < cell)).sum::<u32>() as usize,
            None => cells[low..].partition_point(|&at| at < cell),
        };
        low + before
    }

    /// [`seek`](Self::seek) of the first and of the end of a run: the cells that are compared for one serve the other.
    #[inline(always)]
    pub(super) fn seek_run(&self, start: u64, end: u64, hint: usize) -> Range<usize> {
        let cells = &*self.cells;
        let (Ok(first), Ok(last)) = (u32::try_from(start), u32::try_from(end)) else {
            return self.seek(start, hint)..self.seek(end, hint);
        };
        let hint = hint.min(cells.len());
        if hint > 0 && cells[hint - 1] >= first {
            let from = cells[..hint].partition_point(|&at| at < first);
            return from..self.seek(end, from);
        }
        let low = self.near(first, hint);
        let Some(near) = cells[low..].first_chunk::<SOUGHT>() else {
            let from = low + cells[low..].partition_point(|&at| at < first);
            return from..from + cells[from..].partition_point(|&at| at < last);
        };
        let (mut before, mut inside) = (0u32, 0u32);
        for &at in near {
            before += u32::from(at < first);
            inside += u32::from(at < last);
        }
        let (from, to) = (low + before as usize, low + inside as usize);
        from..if inside as usize == SOUGHT { self.seek(end, to) } else { to }
    }

    /// [`seek_run`](Self::seek_run) of a run that has hardly more than [`FEW`] cells: these are compared without another
    /// search for its end.
    #[inline(always)]
    pub(super) fn seek_few(&self, start: u64, end: u64, hint: usize) -> Range<usize> {
        let from = self.seek(start, hint);
        let few = self.cells.get(from..).and_then(|cells| cells.first_chunk::<FEW>());
        let (Some(few), Ok(last)) = (few, u32::try_from(end)) else {
            return from..self.seek(end, from);
        };
        let inside = few.iter().map(|&at| u32::from(at < last)).sum::<u32>() as usize;
        from..if inside == FEW { self.seek(end, from + FEW) } else { from + inside }
    }

    /// An index at most [`SOUGHT`] cells before the first cell that is not before `cell`. All cells
    /// below the index are smaller than `cell`, as are those below `hint`. The search doubles its
    /// step from `hint` on.
    #[inline(always)]
    fn near(&self, cell: u32, hint: usize) -> usize {
        let cells = &*self.cells;
        let (mut low, mut step) = (hint, SOUGHT);
        while cells.get(low + step - 1).is_some_and(|&at| at < cell) {
            low += step;
            step *= 2;
        }
        let mut high = (low + step - 1).min(cells.len());
        while high - low > SOUGHT {
            let middle = low + (high - low) / 2;
            match cells[middle] < cell {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }

    /// Puts the cells of a range into a list from `place` on. A few cells are copied at once,
    /// without a decision for each; entries behind them have no meaning.
    #[inline(always)]
    pub(super) fn put(&self, range: Range<usize>, place: usize, list: &mut Vec<u32>) {
        let count = range.len();
        let few = self.cells.get(range.start..).and_then(|cells| cells.first_chunk::<FEW>());
        if let Some(few) = few
            && count <= FEW
            && let Some(to) = list.get_mut(place..).and_then(|to| to.first_chunk_mut::<FEW>())
        {
            *to = *few;
            return;
        }
        if list.len() < place + count + FEW {
            list.resize((place + count + FEW).max(list.capacity()), 0);
        }
        list[place..place + count].copy_from_slice(&self.cells[range]);
    }

    /// The run that begins with the cell at `index`, cut at `end`.
    #[inline]
    pub(super) fn run_at(&self, index: usize, end: u64) -> Option<Run> {
        let start = u64::from(*self.cells.get(index)?);
        if start >= end {
            return None;
        }
        let follows = |(step, &at): (u64, &u32)| u64::from(at) == start + step;
        let more = (1..).zip(&self.cells[index + 1..]).take_while(|pair| follows(*pair)).count();
        Some(Run { start, len: (1 + more as u64).min(end - start) })
    }

    /// Visits the parts of runs between `at` and `end`, with positions, beginning the search at
    /// `hint`. Gives the next hint.
    #[inline]
    pub(super) fn for_each_within(
        &self,
        at: u64,
        end: u64,
        hint: usize,
        mut visit: impl FnMut(Run, u64),
    ) -> usize {
        let mut index = self.seek(at, hint);
        while let Some(run) = self.run_at(index, end) {
            visit(run, index as u64);
            index += run.len as usize;
        }
        index
    }
}

/// Cells that are compared at a time: few enough for counters of 32 bits, many of which fit a register.
const COMPARED: usize = 1 << 16;

/// The properties of a list of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ascent {
    /// Whether each cell is greater than the one before it.
    pub(super) strict: bool,
    /// The number of runs, if the cells ascend.
    pub(super) runs: u64,
}

impl Ascent {
    pub(super) fn of(cells: &[u32]) -> Self {
        run_widely(Look(cells))
    }
}

struct Look<'a>(&'a [u32]);

impl Work for Look<'_> {
    type Output = Ascent;

    #[inline(always)]
    fn run(self) -> Ascent {
        let (lower, upper) = (self.0, self.0.get(1..).unwrap_or_default());
        let mut ascent = Ascent { strict: true, runs: u64::from(!lower.is_empty()) };
        for (lower, upper) in lower.chunks(COMPARED).zip(upper.chunks(COMPARED)) {
            // Without early exit, so that many are compared at once.
            let (mut descents, mut breaks) = (0u32, 0u32);
            for (&lower, &upper) in lower.iter().zip(upper) {
                descents += u32::from(upper <= lower);
                breaks += u32::from(upper.wrapping_sub(lower) != 1);
            }
            ascent.strict &= descents == 0;
            ascent.runs += u64::from(breaks);
        }
        ascent
    }
}
