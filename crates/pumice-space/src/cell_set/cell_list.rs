//! A set of cells as a list of them: the form of cells that are scattered.
//!
//! Invariant: cells ascend without repetition. The index of a cell is the position of its value.
//! Only chunks of up to 2^32 - 1 cells are kept this way.

use crate::Run;

/// Ascending cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CellList {
    cells: Box<[u32]>,
}

impl CellList {
    pub(super) fn new(cells: Vec<u32>) -> Self {
        Self { cells: cells.into_boxed_slice() }
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
const COUNTED: usize = 1 << 16;

/// How many runs ascending cells form.
pub(super) fn count_runs(cells: &[u32]) -> u64 {
    let (lower, upper) = (cells, cells.get(1..).unwrap_or_default());
    let parts = lower.chunks(COUNTED).zip(upper.chunks(COUNTED));
    let breaks = parts.map(|(lower, upper)| {
        let pairs = lower.iter().zip(upper);
        u64::from(
            pairs.map(|(lower, upper)| u32::from(*upper != lower.wrapping_add(1))).sum::<u32>(),
        )
    });
    breaks.sum::<u64>() + u64::from(!cells.is_empty())
}
