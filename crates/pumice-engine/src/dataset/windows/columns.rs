//! Columns of a window from lists of rows: cells are counted by column, and then put down.
//!
//! A column's cells are far apart in the lists, and those of a row far apart in the columns. So many cells are put down
//! some columns at a time ([`AT_ONCE`]), row after row: each row is read on where it was left, and the places that are
//! written next stay in the processor's caches. Threads count rows side by side, and fill columns side by side.

use super::{Band, Index, LinesInto, NOWHERE, PlannedRows, Stripe, WORTH_SHARING, WindowPlan};
use super::{converted, fresh, into_inner, run, zeros};
use crate::{Error, Result};
use pumice_cache::Executor;
use pumice_layout::RowsFound;
use pumice_space::Division;
use pumice_types::{Conversion, Element};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Mutex;

/// So many columns are filled at a time, if there are many cells. Of 5 million cells at 5 %, each took 19 ns of processor
/// time with so many, 29 ns with 256, of which a row has few cells, and 42 ns with 5,000, on a busy machine.
const AT_ONCE: u32 = 1024;

/// Rows of fewer cells than that in a chunk are not visited one by one.
const THIN: usize = 8;

impl WindowPlan {
    /// Puts columns together, in ascending order; rows, too, have to ascend.
    pub(super) fn put_columns<T: Element>(
        self,
        conversion: &Conversion,
        executor: &dyn Executor,
        into: &mut LinesInto<'_, T>,
    ) -> Result<()> {
        if self.places.is_some() {
            return Err(Error::Internal("columns of rows that do not ascend".into()));
        }
        let width = usize::try_from(self.shape[1]).ok().and_then(|width| width.checked_add(1));
        let width = width.ok_or_else(|| Error::NoMemory("no memory for so many columns".into()))?;
        zeros(into.pointers, width)?;
        let threads = match self.count() {
            count if count < WORTH_SHARING => 1,
            _ => executor.threads().max(1),
        };
        // The cells of each column are counted one place behind, so that sums are where columns begin.
        self.count_cells(threads, executor, &mut into.pointers[1..])?;
        let mut sum = 0;
        for pointer in into.pointers.iter_mut() {
            sum += *pointer;
            *pointer = sum;
        }
        let elements = converted::<T>(&self.found, conversion)?;
        let (mut rows, mut values) =
            (fresh(into.indices, sum as usize)?, fresh(into.values, sum as usize)?);
        // SAFETY: they are only written to.
        let (to_rows, to_values) = unsafe { (rows.places(), values.places()) };
        let parts = self.parts(threads);
        let tasks = shares(&parts, threads, into.pointers, to_rows, to_values);
        let tasks: Vec<_> = tasks.into_iter().map(Mutex::new).collect();
        run(executor, self.count(), &tasks, |share| self.fill(share, &elements));
        let filled = tasks.into_iter().all(|task| into_inner(task).is_filled());
        if !filled {
            return Err(Error::Internal("cells were counted and not found".into()));
        }
        // SAFETY: every column has been filled, and columns lie side by side.
        (*into.indices, *into.values) = unsafe { (rows.into_vec(), values.into_vec()) };
        Ok(())
    }

    /// The columns, as many together as are filled at a time.
    fn parts(&self, threads: usize) -> Vec<Part> {
        let mut parts = Vec::new();
        for (number, stripe) in self.stripes.iter().enumerate() {
            let Range { mut start, end } = stripe.columns;
            // As many for each thread, where there are several.
            let step = match threads {
                1 if self.count() < WORTH_SHARING => u32::MAX,
                _ => {
                    let count = stripe.columns.len().div_ceil(AT_ONCE as usize);
                    let count = count.next_multiple_of(threads);
                    stripe.columns.len().div_ceil(count).max(1) as u32
                }
            };
            while start < end {
                let columns = start..start.saturating_add(step).min(end);
                start = columns.end;
                parts.push(Part::new(number, stripe, columns));
            }
        }
        parts
    }

    /// Counts the cells of each column; some bands on each thread.
    fn count_cells(
        &self,
        threads: usize,
        executor: &dyn Executor,
        counts: &mut [u64],
    ) -> Result<()> {
        // What the threads count takes no more memory than the cells.
        let threads = threads.min(self.count() / counts.len().max(1)).max(1);
        if threads == 1 {
            self.count_bands(0..self.bands.len(), counts);
            return Ok(());
        }
        let size = self.bands.len().div_ceil(threads).max(1);
        let mut tasks = Vec::with_capacity(threads);
        for first in (0..self.bands.len()).step_by(size) {
            let bands = first..(first + size).min(self.bands.len());
            tasks.push(Mutex::new((bands, pumice_medium::zeroed::<u64>(counts.len())?)));
        }
        run(executor, self.count(), &tasks, |(bands, counts)| {
            self.count_bands(bands.clone(), counts);
        });
        for (_, more) in tasks.into_iter().map(into_inner) {
            counts.iter_mut().zip(more).for_each(|(count, more)| *count += more);
        }
        Ok(())
    }

    /// Counts the cells that some bands have in each column.
    fn count_bands(&self, bands: Range<usize>, counts: &mut [u64]) {
        let across = self.stripes.len();
        for at in bands {
            for (stripe, number) in self.stripes.iter().zip(at * across..) {
                let Some(found) = &self.found[number] else { continue };
                let first = stripe.columns.start;
                match &stripe.index {
                    Index::From(before) => {
                        let counts = counts.get_mut(*before as usize..).unwrap_or_default();
                        self.for_each_cell(&self.bands[at], found, |_, column, _| {
                            if let Some(count) = counts.get_mut((column - first) as usize) {
                                *count += 1;
                            }
                        });
                    }
                    Index::Listed(index) => {
                        self.for_each_cell(&self.bands[at], found, |_, column, _| {
                            // Columns that the window has not have no place.
                            let place = index[(column - first) as usize];
                            if let Some(count) = counts.get_mut(place as usize) {
                                *count += 1;
                            }
                        });
                    }
                }
            }
        }
    }

    /// Visits the cells of a chunk: its row in the window, its column in the chunk, and which one it is.
    #[inline(always)]
    fn for_each_cell(
        &self,
        band: &Band,
        found: &RowsFound,
        mut visit: impl FnMut(u64, u32, usize),
    ) {
        let cells = self.chunk[0].saturating_mul(self.chunk[1]);
        if let PlannedRows::From(first) = self.rows
            && cells <= Division::MOST
        {
            // Many rows of a narrow window have no cell: nobody looks at them.
            let division = Division::by(self.chunk[1]);
            let top = (band.chunk * self.chunk[0]).wrapping_sub(first);
            for (at, &cell) in found.cells.iter().enumerate() {
                let (row, column) = division.of(cell);
                visit(top.wrapping_add(row), column as u32, at);
            }
            return;
        }
        for at in 0..band.rows.len() {
            let number = (band.rows.start + at) as u64;
            // Chunks have fewer than 2^32 cells.
            let first = (self.row(band, at) * self.chunk[1]) as u32;
            for at in found.row(at) {
                visit(number, found.cells[at] - first, at);
            }
        }
    }

    /// Fills the columns of a share.
    fn fill<T: Element>(&self, share: &mut Share<'_, T>, elements: &[Cow<'_, [u8]>]) {
        let Share { parts, next, rows, values, .. } = share;
        let size = size_of::<T>().max(1);
        let pieces = (self.shape[0] as usize).saturating_mul(self.stripes.len());
        let thin = self.count() < pieces.saturating_mul(THIN);
        let mut cursors = Vec::new();
        let mut before = None;
        let mut rest = &mut next[..];
        for part in *parts {
            let (next, later) = rest.split_at_mut(part.width);
            rest = later;
            let mut put = |row: u64, place: Option<&mut usize>, element: &[u8]| {
                if let Some(place) = place
                    && let (Some(to), Some(value)) = (rows.get_mut(*place), values.get_mut(*place))
                {
                    *to = row;
                    *value = bytemuck::pod_read_unaligned(element);
                    *place += 1;
                }
            };
            let stripe = &self.stripes[part.stripe];
            // Rows of many cells are better read one by one.
            if part.columns == stripe.columns && thin {
                self.fill_stripe(part, (elements, size), next, &mut put);
                continue;
            }
            if before != Some(part.stripe) {
                self.seek(part, &mut cursors);
            }
            before = Some(part.stripe);
            self.fill_some(part, (elements, size), &mut cursors, next, &mut put);
        }
    }

    /// Fills all columns of a stripe at once.
    #[inline(always)]
    fn fill_stripe(
        &self,
        part: &Part,
        (elements, size): Elements<'_, '_>,
        next: &mut [usize],
        put: &mut impl FnMut(u64, Option<&mut usize>, &[u8]),
    ) {
        for (band, number) in self.bands.iter().zip((part.stripe..).step_by(self.stripes.len())) {
            let Some(found) = &self.found[number] else { continue };
            let elements = &elements[number];
            self.for_each_cell(band, found, |row, column, at| {
                let place = next.get_mut(part.place(column - part.columns.start));
                put(row, place, &elements[at * size..(at + 1) * size]);
            });
        }
    }

    /// Fills some columns of a stripe; the cells of every row from its cursor on, which is moved behind them.
    #[inline(always)]
    fn fill_some(
        &self,
        part: &Part,
        (elements, size): Elements<'_, '_>,
        cursors: &mut [u32],
        next: &mut [usize],
        put: &mut impl FnMut(u64, Option<&mut usize>, &[u8]),
    ) {
        let width = part.columns.len() as u32;
        for (band, number) in self.bands.iter().zip((part.stripe..).step_by(self.stripes.len())) {
            let Some(found) = &self.found[number] else { continue };
            let elements = &elements[number];
            for at in 0..band.rows.len() {
                let row = band.rows.start + at;
                // Chunks have fewer than 2^32 cells.
                let first = (self.row(band, at) * self.chunk[1]) as u32 + part.columns.start;
                let start = cursors[row] as usize;
                let cells = &found.cells[start..found.starts[at + 1] as usize];
                let elements = &elements[start * size..];
                let mut taken = 0;
                for (&cell, element) in cells.iter().zip(elements.chunks_exact(size)) {
                    let column = cell - first;
                    if column >= width {
                        break;
                    }
                    put(row as u64, next.get_mut(part.place(column)), element);
                    taken += 1;
                }
                cursors[row] = (start + taken) as u32;
            }
        }
    }

    /// Moves the cursors of all rows to the first cell in some columns.
    fn seek(&self, part: &Part, cursors: &mut Vec<u32>) {
        cursors.clear();
        let whole = part.columns.start == self.stripes[part.stripe].columns.start;
        for (band, number) in self.bands.iter().zip((part.stripe..).step_by(self.stripes.len())) {
            let Some(found) = &self.found[number] else {
                cursors.resize(band.rows.end, 0);
                continue;
            };
            cursors.extend((0..band.rows.len()).map(|at| {
                let range = found.row(at);
                let start = range.start as u32;
                if whole {
                    return start;
                }
                let first = (self.row(band, at) * self.chunk[1]) as u32 + part.columns.start;
                start + found.cells[range].partition_point(|cell| *cell < first) as u32
            }));
        }
    }
}

/// The elements of each chunk in memory's type, and how many bytes one has.
type Elements<'a, 'b> = (&'a [Cow<'b, [u8]>], usize);

/// Columns that are filled together.
struct Part {
    /// Which stripe they are in.
    stripe: usize,
    /// From the first to the last, within a chunk.
    columns: Range<u32>,
    /// Where each is among those that the window has; beyond all of them if the window has it not. `None` if it has all.
    places: Option<Vec<u32>>,
    /// How many of them the window has.
    width: usize,
}

impl Part {
    fn new(number: usize, stripe: &Stripe, columns: Range<u32>) -> Self {
        let Index::Listed(all) = &stripe.index else {
            let width = columns.len();
            return Self { stripe: number, columns, places: None, width };
        };
        let first = (columns.start - stripe.columns.start) as usize;
        let mut before = 0;
        let place = |column: &u64| match *column {
            NOWHERE => u32::MAX,
            _ => {
                before += 1;
                before - 1
            }
        };
        let places = all[first..first + columns.len()].iter().map(place).collect();
        Self { stripe: number, columns, places: Some(places), width: before as usize }
    }

    /// The place of a column, counted from the first.
    #[inline]
    fn place(&self, column: u32) -> usize {
        match &self.places {
            None => column as usize,
            Some(listed) => listed[column as usize] as usize,
        }
    }
}

/// Columns that one thread fills.
struct Share<'a, T> {
    parts: &'a [Part],
    /// Where the next cell of each column goes.
    next: Vec<usize>,
    /// The place of the share's first cell, and where each column ends, among all cells.
    first: u64,
    ends: &'a [u64],
    rows: &'a mut [u64],
    values: &'a mut [T],
}

impl<T> Share<'_, T> {
    /// Whether every place of every column has been written: each column begins where the one before it ends.
    fn is_filled(&self) -> bool {
        self.next.iter().zip(self.ends).all(|(&next, &end)| self.first + next as u64 == end)
    }
}

/// Gives columns to threads; `pointers` says where each column begins.
fn shares<'a, T>(
    parts: &'a [Part],
    threads: usize,
    pointers: &'a [u64],
    mut rows: &'a mut [u64],
    mut values: &'a mut [T],
) -> Vec<Share<'a, T>> {
    let mut shares = Vec::with_capacity(threads);
    let mut pointers = pointers;
    for parts in parts.chunks(parts.len().div_ceil(threads).max(1)) {
        let width = parts.iter().map(|part| part.width).sum();
        let (columns, later) = pointers.split_at(width);
        let (first, end, ends) = (pointers[0], later[0], &pointers[1..=width]);
        pointers = later;
        let next = columns.iter().map(|start| (start - first) as usize).collect();
        let count = (end - first) as usize;
        let (these, later) = rows.split_at_mut(count);
        rows = later;
        let (elements, later) = values.split_at_mut(count);
        values = later;
        shares.push(Share { parts, next, first, ends, rows: these, values: elements });
    }
    shares
}
