//! A set of cells as a list of them: the form of cells that are scattered.
//!
//! Invariant: cells ascend without repetition. The index of a cell is the position of its value.
//! Only chunks of up to 2^32 - 1 cells are kept this way.

use crate::Run;
use pumice_wide::{Work, run_widely};

/// Ascending cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CellList {
    cells: Box<[u32]>,
    /// How many runs they form.
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

    /// How many cells come before `cell`.
    pub(super) fn rank(&self, cell: u64) -> u64 {
        self.cells.partition_point(|&at| u64::from(at) < cell) as u64
    }

    pub(super) fn select(&self, position: u64) -> Option<u64> {
        self.cells.get(position as usize).map(|&cell| u64::from(cell))
    }

    /// As [`rank`](Self::rank), faster near `hint`: the search doubles its step from there.
    pub(super) fn seek(&self, cell: u64, hint: usize) -> usize {
        let hint = hint.min(self.cells.len());
        let is_before = |&at: &u32| u64::from(at) < cell;
        if hint > 0 && !is_before(&self.cells[hint - 1]) {
            return self.cells[..hint].partition_point(is_before);
        }
        let (mut low, mut step) = (hint, 1);
        while self.cells.get(low + step - 1).is_some_and(is_before) {
            low += step;
            step *= 2;
        }
        let high = (low + step - 1).min(self.cells.len());
        low + self.cells[low..high].partition_point(is_before)
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

/// What a look at a list of cells tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ascent {
    /// Whether each cell lies behind the one before it.
    pub(super) strict: bool,
    /// How many runs they form, if that is so.
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
