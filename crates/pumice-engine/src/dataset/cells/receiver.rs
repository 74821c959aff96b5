//! Puts the cells of a chunk into columns as they are decoded.
//!
//! Large columns are written past the caches, whole lines at a time: cells are put
//! together on a small stage, from which lines are copied as soon as there are enough of them. What has
//! begun a line waits there for the rest of it. Other columns are written as they come.

use pumice_filter::location::CellVisitor;
use pumice_filter::{stream_copy, stream_fence};
use pumice_space::{Coordinate, Run, RunWriter, put_cells};
use pumice_wide::{Work, run_widely};
use smallvec::SmallVec;

/// The part of each column that is one chunk's.
pub(super) type Parts<'a, C> = SmallVec<[&'a mut [C]; 4]>;

/// Cells that the stage has room for; with fewer, more calls took longer.
const STAGE: usize = 4096;

/// Cells for which there is always room on a stage from which all whole lines have been copied.
const STEP: usize = 256;

/// Bytes of a cache line.
const LINE: usize = 64;

/// Takes the cells of one chunk.
pub(super) struct Receiver<'a, C: Coordinate + bytemuck::Pod> {
    dims: &'a [u64],
    origin: &'a [u64],
    columns: Parts<'a, C>,
    /// How many cells have come.
    done: usize,
    /// For every column, if they are written past the caches.
    stages: SmallVec<[Stage<C>; 2]>,
    /// Whether what left the stages lies inside the array.
    inside: bool,
}

/// Coordinates that have come and are not in their column yet.
struct Stage<C> {
    memory: Vec<C>,
    len: usize,
    /// How many are in the column.
    copied: usize,
    /// The last coordinate that lies inside the array, if the chunk ends beyond it.
    limit: Option<C>,
}

impl<'a, C: Coordinate + bytemuck::Pod> Receiver<'a, C> {
    /// A receiver of the cells of a chunk of shape `dims` at `origin` in an array of shape `array`: one for
    /// every place in `columns`, which are written past the caches if `streams`.
    pub(super) fn new(
        dims: &'a [u64],
        origin: &'a [u64],
        columns: Parts<'a, C>,
        array: &[u64],
        streams: bool,
    ) -> Self {
        let stage = |limit| Stage { memory: vec![C::narrow(0); STAGE], len: 0, copied: 0, limit };
        let stages = match streams {
            true => limits(dims, origin, array).map(stage).collect(),
            false => SmallVec::new(),
        };
        Self { dims, origin, columns, done: 0, stages, inside: !array.contains(&0) }
    }

    /// Whether every place has been written, with cells of an array of shape `array`.
    pub(super) fn finish(mut self, array: &[u64]) -> bool {
        if self.columns.iter().any(|column| column.len() != self.done) {
            return false;
        }
        if self.stages.is_empty() {
            let limits = limits(self.dims, self.origin, array);
            let mut columns = self.columns.iter().zip(limits);
            return self.inside && columns.all(|(column, limit)| are_inside(column, limit));
        }
        self.flush(true);
        self.inside
    }

    /// Whether the columns have room for so many more cells.
    fn has_room(&self, count: usize) -> bool {
        self.columns.iter().all(|column| column.len() - self.done >= count)
    }

    /// Works with what is left of the stages, or of the columns if there are none.
    fn with_rest<R>(&mut self, work: impl FnOnce(&mut [&mut [C]]) -> R) -> R {
        let done = self.done;
        match (&mut self.stages[..], &mut self.columns[..]) {
            ([rows, columns], _) => work(&mut [rows.rest(), columns.rest()]),
            ([], [rows, columns]) => work(&mut [&mut rows[done..], &mut columns[done..]]),
            ([], columns) => {
                let mut rest: Parts<'_, C> = columns.iter_mut().map(|it| &mut it[done..]).collect();
                work(&mut rest)
            }
            (stages, _) => {
                let mut rest: Parts<'_, C> = stages.iter_mut().map(Stage::rest).collect();
                work(&mut rest)
            }
        }
    }

    /// Notes that so many cells have been put.
    fn put(&mut self, count: usize) {
        self.done += count;
        self.stages.iter_mut().for_each(|stage| stage.len += count);
    }

    /// Copies whole lines, or in the end everything, from the stages to the columns.
    fn flush(&mut self, everything: bool) {
        for (column, stage) in self.columns.iter_mut().zip(&mut self.stages) {
            let to = &mut column[stage.copied..stage.copied + stage.len];
            let ready = if everything { to.len() } else { whole_lines(to) };
            let (staged, to) = (&stage.memory[..ready], &mut to[..ready]);
            self.inside &= are_inside(staged, stage.limit);
            // SAFETY: nobody has access to the columns as long as the receiver has them, which comes back
            // to no place, and ends with a fence.
            unsafe { stream_copy(bytemuck::cast_slice(staged), bytemuck::cast_slice_mut(to)) };
            stage.memory.copy_within(ready..stage.len, 0);
            stage.copied += ready;
            stage.len -= ready;
        }
    }

    /// Whether so many cells have room on the stages.
    fn stages_have_room(&self, count: usize) -> bool {
        self.stages.iter().all(|stage| stage.len + count <= STAGE)
    }

    /// Puts runs on the stages; `false` if the columns have no room for them.
    fn stage_runs(&mut self, mut runs: &[[u64; 2]]) -> bool {
        let (dims, origin) = (self.dims, self.origin);
        loop {
            let (taken, count) = self.with_rest(|columns| {
                let mut writer = RunWriter::new(dims, origin, columns);
                (run_widely(PutShort { runs, writer: &mut writer }), writer.done())
            });
            if !self.has_room(count) {
                return false;
            }
            self.put(count);
            runs = &runs[taken..];
            let Some((run, later)) = runs.split_first() else { return true };
            if !self.stages_have_room(RunWriter::<C>::SHORT) {
                self.flush(false);
            } else if self.stage_run(*run) {
                runs = later;
            } else {
                return false;
            }
        }
    }

    /// Puts a run of any length on the stages; `false` if the columns have no room for it.
    fn stage_run(&mut self, [start, end]: [u64; 2]) -> bool {
        let (dims, origin) = (self.dims, self.origin);
        (start..end).step_by(STEP).all(|start| {
            let run = Run { start, len: (end - start).min(STEP as u64) };
            if !self.stages_have_room(STEP) {
                self.flush(false);
            }
            let fits = self.has_room(run.len as usize)
                && self.with_rest(|columns| RunWriter::new(dims, origin, columns).put(run));
            if fits {
                self.put(run.len as usize);
            }
            fits
        })
    }
}

impl<C> Stage<C> {
    fn rest(&mut self) -> &mut [C] {
        &mut self.memory[self.len..]
    }
}

impl<C: Coordinate + bytemuck::Pod> Drop for Receiver<'_, C> {
    fn drop(&mut self) {
        if !self.stages.is_empty() {
            stream_fence();
        }
    }
}

impl<C: Coordinate + bytemuck::Pod> CellVisitor for Receiver<'_, C> {
    fn begin(&mut self, dims: &[u64]) -> bool {
        dims == self.dims
    }

    fn cells(&mut self, cells: &[u32]) -> bool {
        let (dims, origin) = (self.dims, self.origin);
        let step = if self.stages.is_empty() { cells.len().max(1) } else { STEP };
        for cells in cells.chunks(step) {
            if !self.has_room(cells.len()) {
                return false;
            }
            if !self.stages_have_room(cells.len()) {
                self.flush(false);
            }
            self.with_rest(|columns| run_widely(PutCells { cells, dims, origin, columns }));
            self.put(cells.len());
        }
        true
    }

    fn runs(&mut self, runs: &[[u64; 2]]) -> bool {
        if !self.stages.is_empty() {
            return self.stage_runs(runs);
        }
        let (dims, origin) = (self.dims, self.origin);
        let (fits, count) = self.with_rest(|columns| {
            let mut writer = RunWriter::new(dims, origin, columns);
            (run_widely(PutRuns { runs, writer: &mut writer }), writer.done())
        });
        self.put(count);
        fits
    }
}

/// How many elements go up to the last end of a cache line.
fn whole_lines<C>(to: &[C]) -> usize {
    match to.len().checked_sub(to.as_ptr().align_offset(LINE)) {
        Some(behind) => to.len() - behind % (LINE / size_of::<C>()),
        None => 0,
    }
}

/// The last coordinates inside an array of shape `array`, of a chunk that ends beyond it.
fn limits<C: Coordinate>(
    dims: &[u64],
    origin: &[u64],
    array: &[u64],
) -> impl Iterator<Item = Option<C>> {
    let sides = origin.iter().zip(dims).zip(array);
    let limit = |((origin, side), &size): ((&u64, &u64), &u64)| {
        let within = origin.checked_add(*side).is_some_and(|end| end <= size);
        (!within).then(|| C::narrow(size.saturating_sub(1)))
    };
    sides.map(limit)
}

/// Whether no coordinate is beyond the last one that may be.
fn are_inside<C: Coordinate>(column: &[C], limit: Option<C>) -> bool {
    // All are looked at, so that many are compared at once.
    limit.is_none_or(|last| column.iter().fold(true, |all, at| all & (*at <= last)))
}

/// Work that is too much for a closure to be compiled for wide registers.
struct PutCells<'a, 'c, C> {
    cells: &'a [u32],
    dims: &'a [u64],
    origin: &'a [u64],
    columns: &'a mut [&'c mut [C]],
}

impl<C: Coordinate> Work for PutCells<'_, '_, C> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        put_cells(self.cells, self.dims, self.origin, self.columns);
    }
}

struct PutRuns<'a, 'w, 'c, C> {
    runs: &'a [[u64; 2]],
    writer: &'a mut RunWriter<'w, 'c, C>,
}

impl<C: Coordinate> Work for PutRuns<'_, '_, '_, C> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        self.writer.put_all(self.runs)
    }
}

struct PutShort<'a, 'w, 'c, C> {
    runs: &'a [[u64; 2]],
    writer: &'a mut RunWriter<'w, 'c, C>,
}

impl<C: Coordinate> Work for PutShort<'_, '_, '_, C> {
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        self.writer.put_short(self.runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIMS: [u64; 2] = [3000, 1500];
    const ORIGIN: [u64; 2] = [6000, 4500];

    /// Columns as they come of what `send` shows, and whether all is well.
    fn received<C: Coordinate + bytemuck::Pod>(
        count: usize,
        array: &[u64],
        streams: bool,
        send: impl Fn(&mut dyn CellVisitor) -> bool,
    ) -> (bool, [Vec<C>; 2]) {
        // From an odd place on, which is another in each column.
        let (mut rows, mut columns) =
            (vec![C::narrow(7); count + 3], vec![C::narrow(7); count + 8]);
        let parts = [&mut rows[3..], &mut columns[8..]].into_iter().collect();
        let mut receiver = Receiver::new(&DIMS, &ORIGIN, parts, array, streams);
        let sent = receiver.begin(&DIMS) && send(&mut receiver);
        let all = receiver.finish(array) && sent;
        assert!(rows[..3].iter().chain(&columns[..8]).all(|at| *at == C::narrow(7)));
        (all, [rows.split_off(3), columns.split_off(8)])
    }

    fn same<C: Coordinate + bytemuck::Pod + std::fmt::Debug>(
        count: usize,
        send: impl Fn(&mut dyn CellVisitor) -> bool,
    ) {
        for (array, inside) in [([9000, 6000], true), ([8999, 6000], false), ([9000, 5999], false)]
        {
            let direct = received::<C>(count, &array, false, &send);
            let streamed = received::<C>(count, &array, true, &send);
            assert_eq!((direct.0, streamed.0), (inside, inside));
            assert_eq!(direct.1, streamed.1);
        }
        for count in [count - 1, count + 1] {
            assert!(!received::<C>(count, &[9000, 6000], false, &send).0);
            assert!(!received::<C>(count, &[9000, 6000], true, &send).0);
        }
    }

    #[test]
    fn cells_arrive_past_the_caches_as_they_do_otherwise() {
        let mut cells: Vec<u32> = (0..7000).map(|n| n * 600 + n % 599).collect();
        cells.push(3000 * 1500 - 1);
        for size in [1, 100, 256, 1024, 5000] {
            let send =
                |visitor: &mut dyn CellVisitor| cells.chunks(size).all(|part| visitor.cells(part));
            same::<u32>(cells.len(), send);
            same::<u64>(cells.len(), send);
        }
    }

    #[test]
    fn runs_arrive_past_the_caches_as_they_do_otherwise() {
        let mut runs: Vec<[u64; 2]> =
            (0..1500).map(|n| [n * 2000 + n % 37, n * 2000 + n % 37 + 1 + n % 23]).collect();
        // Longer than the stage, also where it is not empty, and from row to row.
        runs.extend([[3_100_000, 3_101_024], [3_200_000, 3_201_025], [3_300_000, 3_305_000]]);
        runs.extend([[4_000_000, 4_000_001], [4_000_001, 4_002_100], [4_499_990, 4_500_000]]);
        let count: u64 = runs.iter().map(|[start, end]| end - start).sum();
        for size in [1, 100, 256, 5000] {
            let send =
                |visitor: &mut dyn CellVisitor| runs.chunks(size).all(|part| visitor.runs(part));
            same::<u32>(count as usize, send);
            same::<u64>(count as usize, send);
        }
    }
}
