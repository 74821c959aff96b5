//! The parts of a request that are in a set, and the positions of their values.
//!
//! Requests that ascend are answered by a walk that skips what is not asked for: from one answer to
//! the next it doubles its step, so a few requests against many runs cost a logarithm each, and a
//! request for everything is a plain merge. Any other order is answered too, by binary search.

use super::{CellSet, Form};
use crate::{Run, Segment};

/// A piece of a request that is in the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// The first cell.
    pub cell: u64,
    /// The position of its value.
    pub position: u64,
    /// Its length.
    pub len: u64,
}

/// A piece of a transfer that is in the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The first cell.
    pub cell: u64,
    /// The position of its value.
    pub position: u64,
    /// The first element in memory.
    pub memory: u64,
    /// Its length.
    pub len: u64,
}

/// Answers one request at a time and remembers where it stands; made by [`CellSet::cursor`].
///
/// ```
/// use pumice_space::{CellSet, Run};
///
/// let set = CellSet::from_sorted_cells(100, [3, 4, 50])?;
/// let mut cursor = set.cursor();
/// let mut found = Vec::new();
/// cursor.for_each(Run { start: 4, len: 90 }, |piece| found.push((piece.cell, piece.position)));
/// assert_eq!(found, [(4, 1), (50, 2)]);
/// # Ok::<(), pumice_space::SpaceError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    set: &'a CellSet,
    /// The run (of a list: the cell) that the last answer ended in.
    hint: usize,
}

/// The rest of a request.
#[derive(Clone, Copy, Debug)]
struct Pending {
    at: u64,
    end: u64,
    /// The position of the first value at or after `at`; kept by bitmaps only.
    position: u64,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(set: &'a CellSet) -> Self {
        Self { set, hint: 0 }
    }

    /// Visits the pieces of `request` that are in the set, ascending. Cells beyond the chunk are
    /// in no set.
    #[inline]
    pub fn for_each(&mut self, request: Run, mut visit: impl FnMut(Overlap)) {
        let (at, end) = (request.start, request.end().min(self.set.cells));
        if at >= end {
            return;
        }
        let mut emit = |run: Run, position| {
            visit(Overlap { cell: run.start, position, len: run.len });
        };
        match &self.set.form {
            Form::Full => emit(Run { start: at, len: end - at }, at),
            Form::Cells(list) => self.hint = list.for_each_within(at, end, self.hint, emit),
            Form::Small(runs) => self.hint = runs.for_each_within(at, end, self.hint, emit),
            Form::Large(runs) => self.hint = runs.for_each_within(at, end, self.hint, emit),
            Form::Bitmap(bits) => {
                let mut position = bits.rank(at);
                bits.for_each_run(at, end, |run| {
                    emit(run, position);
                    position += run.len;
                });
            }
        }
    }

    fn begin(&mut self, request: Run) -> Pending {
        let (at, end) = (request.start, request.end().min(self.set.cells));
        let mut position = 0;
        if at < end {
            match &self.set.form {
                Form::Full => {}
                Form::Cells(list) => self.hint = list.seek(at, self.hint),
                Form::Small(runs) => self.hint = runs.seek(at, self.hint),
                Form::Large(runs) => self.hint = runs.seek(at, self.hint),
                Form::Bitmap(bits) => position = bits.rank(at),
            }
        }
        Pending { at, end, position }
    }

    #[inline]
    fn step(&mut self, pending: &mut Pending) -> Option<Overlap> {
        if pending.at >= pending.end {
            return None;
        }
        let found = match &self.set.form {
            Form::Full => {
                let (at, end) = (pending.at, pending.end);
                Some(Overlap { cell: at, position: at, len: end - at })
            }
            Form::Cells(list) => list.run_at(self.hint, pending.end).map(|run| {
                let position = self.hint as u64;
                self.hint += run.len as usize;
                Overlap { cell: run.start, position, len: run.len }
            }),
            Form::Small(runs) => step_runs(runs.get(self.hint), &mut self.hint, pending),
            Form::Large(runs) => step_runs(runs.get(self.hint), &mut self.hint, pending),
            Form::Bitmap(bits) => bits.next_run(pending.at, pending.end).map(|run| {
                let position = pending.position;
                pending.position += run.len;
                Overlap { cell: run.start, position, len: run.len }
            }),
        };
        pending.at = found.map_or(pending.end, |found| found.cell + found.len);
        found
    }
}

/// The part of the current run that the request asks for; moves on if the run ends inside it.
#[inline]
fn step_runs(current: Option<(Run, u64)>, hint: &mut usize, pending: &Pending) -> Option<Overlap> {
    let (run, before) = current.filter(|(run, _)| run.start < pending.end)?;
    let cell = run.start.max(pending.at);
    let stop = run.end().min(pending.end);
    if run.end() <= pending.end {
        *hint += 1;
    }
    Some(Overlap { cell, position: before + (cell - run.start), len: stop - cell })
}

/// The pieces of requested runs that are in a set; made by [`CellSet::overlaps`].
#[derive(Clone, Debug)]
pub struct Overlaps<'a, I> {
    cursor: Cursor<'a>,
    request: I,
    pending: Pending,
}

impl<'a, I: Iterator<Item = Run>> Overlaps<'a, I> {
    pub(super) fn new(set: &'a CellSet, request: I) -> Self {
        let pending = Pending { at: 0, end: 0, position: 0 };
        Self { cursor: Cursor::new(set), request, pending }
    }
}

impl<I: Iterator<Item = Run>> Iterator for Overlaps<'_, I> {
    type Item = Overlap;

    #[inline]
    fn next(&mut self) -> Option<Overlap> {
        loop {
            if let Some(found) = self.cursor.step(&mut self.pending) {
                return Some(found);
            }
            self.pending = self.cursor.begin(self.request.next()?);
        }
    }
}

/// The pieces of a transfer that are in a set; made by [`CellSet::placements`].
#[derive(Clone, Debug)]
pub struct Placements<'a, I> {
    cursor: Cursor<'a>,
    segments: I,
    pending: Pending,
    /// The segment under way; wrapping, so that memory may precede the cell.
    shift: u64,
}

impl<'a, I: Iterator<Item = Segment>> Placements<'a, I> {
    pub(super) fn new(set: &'a CellSet, segments: I) -> Self {
        let pending = Pending { at: 0, end: 0, position: 0 };
        Self { cursor: Cursor::new(set), segments, pending, shift: 0 }
    }
}

impl<I: Iterator<Item = Segment>> Iterator for Placements<'_, I> {
    type Item = Placement;

    #[inline]
    fn next(&mut self) -> Option<Placement> {
        loop {
            if let Some(Overlap { cell, position, len }) = self.cursor.step(&mut self.pending) {
                let memory = cell.wrapping_add(self.shift);
                return Some(Placement { cell, position, memory, len });
            }
            let segment = self.segments.next()?;
            self.shift = segment.memory.wrapping_sub(segment.cell);
            self.pending = self.cursor.begin(Run { start: segment.cell, len: segment.len });
        }
    }
}
