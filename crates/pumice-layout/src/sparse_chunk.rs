//! A decoded sparse chunk: which cells are defined, and their values in row-major order.
//!
//! Invariant: `values`, when present, has exactly one element per defined cell. It is absent while
//! only the locations are resident.

use super::request::{RowPart, RowsFound, Source, Target};
use pumice_filter::EncodedCells;
use pumice_medium::Result;
use pumice_space::{CellSet, Division, Found, FoundCells, Run, Segment, Selection};
use pumice_wide::{Work, run_widely};
use std::ops::Range;
use std::sync::Arc;

/// [`CellSet::list_within`] of rows, compiled for wide registers. The answer has no values; `visit` gets their positions.
pub(super) struct ListRows<'a, F> {
    pub(super) cells: &'a CellSet,
    pub(super) width: u64,
    pub(super) rows: RowPart<'a>,
    pub(super) columns: Range<u32>,
    /// Gets ascending runs of positions.
    pub(super) visit: F,
}

impl<F: FnMut(Run)> ListRows<'_, F> {
    /// Lists the cells of these rows.
    #[inline(always)]
    fn list(self, rows: impl ExactSizeIterator<Item = u32>) -> RowsFound {
        let Self { cells, width, columns, mut visit, .. } = self;
        let (left, len) = (u64::from(columns.start), columns.len() as u64);
        let mut list = cells.list_for((rows.len() as u64).saturating_mul(len));
        let mut starts = Vec::with_capacity(rows.len() + 1);
        let (mut pending, mut before) = (Run { start: 0, len: 0 }, 0);
        starts.push(0);
        let runs = rows.map(|row| Run { start: u64::from(row) * width + left, len });
        cells.list_within(runs, &mut list, |range| {
            before += range.len() as u32;
            starts.push(before);
            let (start, len) = (range.start as u64, range.len() as u64);
            if len == 0 {
                return;
            }
            // Values of rows that follow each other do so, too.
            if pending.end() == start {
                pending.len += len;
                return;
            }
            visit(std::mem::replace(&mut pending, Run { start, len }));
        });
        visit(pending);
        RowsFound { cells: list, starts, values: Vec::new() }
    }
}

impl<F: FnMut(Run)> Work for ListRows<'_, F> {
    type Output = RowsFound;

    #[inline(always)]
    fn run(self) -> RowsFound {
        match self.rows.clone() {
            RowPart::Range(rows) => self.list(rows),
            RowPart::Listed(rows) => self.list(rows.iter().copied()),
        }
    }
}

/// [`CellSet::list_in_block`], compiled for wide registers.
struct ListBlock<'a> {
    cells: &'a CellSet,
    dims: [u64; 2],
    start: [u64; 2],
    count: [u64; 2],
}

impl Work for ListBlock<'_> {
    type Output = Option<Vec<u32>>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        self.cells.list_in_block(&self.dims, &self.start, &self.count)
    }
}

/// [`CellSet::list_in_rows`], compiled for wide registers.
struct SeekRows<'a> {
    cells: &'a CellSet,
    width: u64,
    rows: Range<u32>,
    columns: Range<u32>,
}

impl Work for SeekRows<'_> {
    type Output = Option<Vec<u32>>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        self.cells.list_in_rows(self.width, self.rows, self.columns)
    }
}

/// Where the cells of each row begin in a list of those of some rows, and where those of the last end.
struct RowStarts<'a> {
    cells: &'a [u32],
    rows: Range<u32>,
    width: u64,
}

impl Work for RowStarts<'_> {
    type Output = Vec<u32>;

    #[inline(always)]
    fn run(self) -> Vec<u32> {
        let Self { cells, rows, width } = self;
        let mut starts = vec![0; rows.len() + 1];
        let division = Division::by(width);
        // The last cell of a row is the last to tell where it ends: nothing has to be decided.
        for (&cell, end) in cells.iter().zip(1..) {
            let row = (division.of(cell).0 as u32).wrapping_sub(rows.start);
            if let Some(start) = starts.get_mut(row as usize + 1) {
                *start = end;
            }
        }
        // Rows without cells end where the one before does.
        starts.iter_mut().fold(0, |before, start| {
            *start = before.max(*start);
            *start
        });
        starts
    }
}

/// The defined cells of a chunk and their values.
#[derive(Clone, Debug)]
pub struct SparseChunk {
    /// Which cells are defined.
    pub cells: CellSet,
    /// Their values, or `None` if they are not resident. They are shared while they are being written.
    pub values: Option<Arc<Vec<u8>>>,
    /// The locations as they are stored, as long as no cell has come or gone: who only changes
    /// values need not encode them again.
    pub stored: Option<StoredCells>,
}

/// Locations as they are stored.
#[derive(Clone, Debug)]
pub struct StoredCells {
    /// The section.
    pub cells: EncodedCells,
    /// Where the chunk is stored.
    pub address: u64,
}

impl SparseChunk {
    /// A chunk with these cells and their values.
    pub fn new(cells: CellSet, values: Option<Vec<u8>>) -> Self {
        Self { cells, values: values.map(Arc::new), stored: None }
    }

    /// A chunk of `cells` cells, none of them defined.
    pub fn empty(cells: u64) -> Self {
        Self::new(CellSet::empty(cells), Some(Vec::new()))
    }

    /// Bytes in memory, used and allocated.
    pub fn footprint(&self) -> (usize, usize) {
        let (used, allocated) =
            self.values.as_ref().map_or((0, 0), |values| (values.len(), values.capacity()));
        let stored = self.stored.as_ref().map_or(0, |stored| stored.cells.bytes.len());
        let cells = self.cells.heap_bytes() + stored + size_of::<Self>();
        (used + cells, allocated + cells)
    }

    /// The values that are resident.
    pub fn values(&self) -> &[u8] {
        self.values.as_ref().map_or(&[], |values| values.as_slice())
    }

    /// The values, to be changed; if they are being written, a copy of them.
    pub fn values_mut(&mut self) -> Option<&mut Vec<u8>> {
        self.values.as_mut().map(Arc::make_mut)
    }

    /// Gives back memory that is not used.
    pub fn condense(&mut self) {
        self.values.iter_mut().filter_map(Arc::get_mut).for_each(Vec::shrink_to_fit);
    }

    /// Places the defined cells among `segments`; the caller has put the fill value everywhere.
    pub fn scatter(
        &self,
        element: usize,
        segments: impl Iterator<Item = Segment>,
        target: &Target<'_>,
    ) -> Result<()> {
        let values = self.values();
        let mut cursor = self.cells.cursor();
        let mut placed = Ok(());
        for segment in segments {
            let wanted = Run { start: segment.cell, len: segment.len };
            cursor.for_each(wanted, |piece| {
                let start = piece.position as usize * element;
                let found = &values[start..start + piece.len as usize * element];
                let memory = segment.memory + (piece.cell - segment.cell);
                if let Err(error) = target.place(memory, found) {
                    placed = Err(error);
                }
            });
        }
        placed
    }

    /// The part of the chunk that lies in `wanted`.
    pub fn extract(&self, element: usize, wanted: &CellSet) -> (CellSet, Vec<u8>) {
        if wanted.is_full() {
            return (self.cells.clone(), self.values().to_vec());
        }
        let found = self.cells.intersection(wanted);
        let values = self.copy_values(element, &found);
        (found, values)
    }

    /// The part of a chunk of shape `dims` that `wanted` selects, without values if none are wanted.
    pub fn select(
        &self,
        element: usize,
        dims: &[u64],
        wanted: &Selection,
        values: bool,
    ) -> Result<(FoundCells, Vec<u8>)> {
        let Found { cells, positions } = self.cells.find(wanted, dims)?;
        let values = match values {
            true => pieces(self.values(), element, cells.len(), positions),
            false => Vec::new(),
        };
        Ok((cells, values))
    }

    /// The defined cells in `columns` of some rows of a chunk of rows of `width` cells, and their values; if `starts`, also
    /// where each row begins.
    pub fn rows(
        &self,
        element: usize,
        width: u64,
        rows: RowPart<'_>,
        columns: Range<u32>,
        starts: bool,
    ) -> RowsFound {
        if let RowPart::Range(rows) = &rows
            && self.cells.cells() <= Division::MOST
            && let Some(found) = self.rows_together(element, width, rows, &columns, starts)
        {
            return found;
        }
        let (cells, held) = (&self.cells, self.values());
        let among = (rows.count() as u64).saturating_mul(columns.len() as u64);
        let expected = cells.expected_among(among);
        let mut values = Vec::with_capacity(expected * element + FEW);
        let visit = |run: Run| copy_piece(held, element, run, &mut values);
        let found = run_widely(ListRows { cells, width, rows, columns, visit });
        RowsFound { values, ..found }
    }

    /// As [`rows`](Self::rows), for rows that follow each other and are not sought one by one: all columns are wanted,
    /// so that their cells follow each other, too, or so few cells are in each row that all of them are looked at.
    fn rows_together(
        &self,
        element: usize,
        width: u64,
        rows: &Range<u32>,
        columns: &Range<u32>,
        starts: bool,
    ) -> Option<RowsFound> {
        let held = self.values();
        let [first, last] = [rows.start, rows.end].map(|row| u64::from(row) * width);
        let (mut cells, mut values) = (Vec::new(), Vec::new());
        let whole = columns.start == 0 && u64::from(columns.end) >= width;
        if whole && let Some(list) = self.cells.as_list() {
            let [start, end] = [first, last].map(|cell| self.cells.rank(cell) as usize);
            cells.extend_from_slice(&list[start..end]);
            values.extend_from_slice(&held[start * element..end * element]);
        } else if whole {
            cells = self.cells.list_for(last - first);
            let run = Run { start: first, len: last - first };
            self.cells.list_within([run], &mut cells, |range| {
                values.extend_from_slice(&held[range.start * element..range.end * element]);
            });
        } else {
            let list = self.cells.as_list()?;
            let found = self.find_in_rows(list.len() as u64, width, rows, columns)?;
            cells.extend(found.iter().map(|at| list[*at as usize]));
            values.reserve(found.len() * element + FEW);
            for at in found {
                copy_piece(held, element, Run { start: u64::from(at), len: 1 }, &mut values);
            }
        }
        let starts = match starts {
            true if whole => self.cells.row_starts(width, rows.clone()),
            true => None,
            false => Some(Vec::new()),
        };
        let starts = starts
            .unwrap_or_else(|| run_widely(RowStarts { cells: &cells, rows: rows.clone(), width }));
        Some(RowsFound { cells, starts, values })
    }

    /// The positions of a list's cells in some columns of rows that follow each other, if hardly any row has one.
    fn find_in_rows(
        &self,
        count: u64,
        width: u64,
        rows: &Range<u32>,
        columns: &Range<u32>,
    ) -> Option<Vec<u32>> {
        let (cells, dims) = (&self.cells, [self.cells.cells() / width.max(1), width]);
        if count > FEW_IN_ROW.saturating_mul(dims[0]) {
            let (rows, columns) = (rows.clone(), columns.clone());
            return run_widely(SeekRows { cells, width, rows, columns });
        }
        let start = [u64::from(rows.start), u64::from(columns.start)];
        let count = [rows.len() as u64, columns.len() as u64];
        run_widely(ListBlock { cells, dims, start, count })
    }

    /// Defines `cells` with `values` (one element each, in row-major order of `cells`).
    pub fn define(&mut self, element: usize, cells: CellSet, values: Vec<u8>) {
        if self.cells.is_empty() || cells.is_full() {
            *self = Self::new(cells, Some(values));
            return;
        }
        if !self.overwrite(element, &cells, &values) {
            *self = self.with(element, &cells, &values);
        }
    }

    /// The chunk with `cells` defined with `values`.
    pub fn with(&self, element: usize, cells: &CellSet, values: &[u8]) -> Self {
        let held = self.values();
        let union = self.cells.union(cells);
        let mut merged = Vec::with_capacity(union.len() as usize * element);
        for piece in self.cells.splice(cells) {
            let from = if piece.new { values } else { held };
            let start = piece.position as usize * element;
            merged.extend_from_slice(&from[start..start + piece.len as usize * element]);
        }
        note_moved(union.len());
        Self::new(union, Some(merged))
    }

    /// Replaces the values of those of `cells` that are defined already. Returns whether all are.
    pub fn overwrite(&mut self, element: usize, cells: &CellSet, values: &[u8]) -> bool {
        let held = Arc::make_mut(self.values.get_or_insert_default());
        let mut cursor = self.cells.cursor();
        let (mut before, mut known) = (0, 0);
        cells.for_each_run(|run| {
            cursor.for_each(run, |piece| {
                let from = (before + piece.cell - run.start) as usize * element;
                let (to, len) = (piece.position as usize * element, piece.len as usize * element);
                held[to..to + len].copy_from_slice(&values[from..from + len]);
                known += piece.len;
            });
            before += run.len;
        });
        known == before
    }

    /// Makes `cells` undefined. Returns whether any of them was defined.
    pub fn erase(&mut self, element: usize, cells: &CellSet) -> bool {
        let (left, kept) = self.cells.without(cells);
        if left.len() == self.cells.len() {
            return false;
        }
        note_moved(left.len());
        if let Some(values) = &mut self.values {
            match Arc::get_mut(values) {
                // Where they are, values need no memory but what is in the processor's cache by then.
                Some(values) => keep_only(values, element, &kept),
                None => *values = Arc::new(pieces(values, element, left.len(), kept)),
            }
        }
        (self.cells, self.stored) = (left, None);
        true
    }

    /// The chunk with `cells` undefined; `None` if none of them is defined.
    pub fn without(&self, element: usize, cells: &CellSet) -> Option<Self> {
        let (left, kept) = self.cells.without(cells);
        if left.len() == self.cells.len() {
            return None;
        }
        note_moved(left.len());
        let values = self.values.as_ref().map(|held| pieces(held, element, left.len(), kept));
        Some(Self::new(left, values))
    }

    /// The values of a subset of the defined cells.
    fn copy_values(&self, element: usize, subset: &CellSet) -> Vec<u8> {
        let found = self.cells.overlaps(subset.runs());
        let runs = found.map(|piece| Run { start: piece.position, len: piece.len });
        pieces(self.values(), element, subset.len(), runs)
    }
}

/// So many cells of a row are looked at in less time than one is sought. With 13, a column took four fifths of the time of a
/// dense read that seeks them, with 50 more than twice as long (`forms` of `bench/`, a busy machine).
const FEW_IN_ROW: u64 = 16;

/// Bytes that are copied at once, though fewer may be wanted.
const FEW: usize = 32;

/// The bytes of those elements, `count` in all, that runs name.
fn pieces(
    values: &[u8],
    element: usize,
    count: u64,
    runs: impl IntoIterator<Item = Run>,
) -> Vec<u8> {
    let mut found = Vec::with_capacity(count as usize * element + FEW);
    runs.into_iter().for_each(|run| copy_piece(values, element, run, &mut found));
    found
}

/// Appends the bytes of a run of elements.
#[inline(always)]
fn copy_piece(values: &[u8], element: usize, run: Run, found: &mut Vec<u8>) {
    let (start, len) = (run.start as usize * element, run.len as usize * element);
    // Rows of narrow windows have short runs of any length: a copy of fixed length takes no decision for each.
    match values[start..].first_chunk::<FEW>() {
        Some(few) if len <= FEW => {
            let end = found.len() + len;
            found.extend_from_slice(few);
            found.truncate(end);
        }
        _ => found.extend_from_slice(&values[start..start + len]),
    }
}

/// Leaves those elements that ascending runs name.
fn keep_only(values: &mut Vec<u8>, element: usize, kept: &[Run]) {
    let mut len = 0;
    for run in kept {
        let start = run.start as usize * element;
        let end = start + run.len as usize * element;
        values.copy_within(start..end, len);
        len += end - start;
    }
    values.truncate(len);
    if len < values.capacity() / 2 {
        values.shrink_to_fit();
    }
}

/// Counts cells that are moved in memory because others came or went, for tests of how often that is.
#[cfg(not(test))]
pub(super) fn note_moved(_cells: u64) {}

#[cfg(test)]
pub(super) fn note_moved(cells: u64) {
    MOVED.set(MOVED.get() + cells);
}

#[cfg(test)]
thread_local! {
    /// Cells that this thread has moved.
    pub(super) static MOVED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// The cells and values that `segments` bring, in row-major order of the chunk and in the memory's
/// type. Where a cell is named more than once, the last segment wins.
pub fn collect(
    cells: u64,
    segments: impl Iterator<Item = Segment> + Clone,
    source: &Source<'_>,
) -> Result<(CellSet, Vec<u8>)> {
    let (mut ascending, mut next, mut count) = (true, 0, 0);
    for segment in segments.clone() {
        ascending &= segment.cell >= next;
        next = segment.cell + segment.len;
        count += segment.len;
    }
    if !ascending {
        return collect_unordered(cells, segments, source);
    }
    let mut collected = Vec::with_capacity(source.bytes_of(count));
    for segment in segments.clone() {
        source.append(segment.memory, segment.len, &mut collected)?;
    }
    let runs = segments.map(|segment| Run { start: segment.cell, len: segment.len });
    Ok((CellSet::from_runs(cells, runs)?, collected))
}

fn collect_unordered(
    cells: u64,
    segments: impl Iterator<Item = Segment>,
    source: &Source<'_>,
) -> Result<(CellSet, Vec<u8>)> {
    let mut places: Vec<(u64, u64)> = segments
        .flat_map(|segment| (0..segment.len).map(move |i| (segment.cell + i, segment.memory + i)))
        .collect();
    // Stable, so that of equal cells the one that came last stays last.
    places.sort_by_key(|&(cell, _)| cell);
    let mut last = Vec::with_capacity(places.len());
    for place in places {
        match last.last_mut() {
            Some((cell, memory)) if *cell == place.0 => *memory = place.1,
            _ => last.push(place),
        }
    }
    let mut collected = Vec::with_capacity(source.bytes_of(last.len() as u64));
    for &(_, memory) in &last {
        source.append(memory, 1, &mut collected)?;
    }
    let set = CellSet::from_sorted_cells(cells, last.into_iter().map(|(cell, _)| cell))?;
    Ok((set, collected))
}
