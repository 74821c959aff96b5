//! Columns of a window from lists of rows: cells are counted by column, and then put down.
//!
//! A column's cells are far apart in the lists, and those of a row far apart in the columns. So many cells are put down
//! some columns at a time ([`AT_ONCE`]), row after row: the lists are read from beginning to end, and the places that are
//! written next stay in the processor's caches. Threads fill columns side by side.

use super::{Index, LinesInto, NOWHERE, Stripe, WORTH_SHARING, WindowPlan, into_inner, run, zeros};
use crate::{Error, Result};
use pumice_cache::Executor;
use pumice_types::{Conversion, Element};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Mutex;

/// So many columns are filled at a time, if there are many cells. Of 5 million cells at 5 %, each took 24 ns with so many,
/// 46 ns with 256, of which a row has few cells, and 48 ns with 5,000, on a busy machine.
const AT_ONCE: u32 = 1024;

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
        let LinesInto { pointers, indices, values, .. } = into;
        let width = usize::try_from(self.shape[1]).ok().and_then(|width| width.checked_add(1));
        let width = width.ok_or_else(|| Error::NoMemory("no memory for so many columns".into()))?;
        zeros(pointers, width)?;
        // The cells of each column are counted one place behind, so that sums are where columns begin.
        let (count, parts) = (self.count(), self.parts());
        let (mut tasks, mut rest) = (Vec::with_capacity(parts.len()), &mut pointers[1..]);
        for part in &parts {
            let (counts, later) = rest.split_at_mut(part.width);
            rest = later;
            tasks.push(Mutex::new((part, counts)));
        }
        run(executor, count, &tasks, |(part, counts)| self.count_cells(part, counts));

        let counted: Vec<_> = tasks.into_iter().map(into_inner).collect();
        let sums: Vec<usize> =
            counted.iter().map(|(_, counts)| counts.iter().sum::<u64>() as usize).collect();
        let elements = self.converted::<T>(conversion)?;
        zeros(indices, sums.iter().sum())?;
        zeros(values, sums.iter().sum())?;
        let (mut indices, mut values) = (&mut indices[..], &mut values[..]);
        let mut tasks = Vec::with_capacity(counted.len());
        for ((part, counts), sum) in counted.into_iter().zip(sums) {
            let (rows, later) = indices.split_at_mut(sum);
            indices = later;
            let (these, later) = values.split_at_mut(sum);
            values = later;
            tasks.push(Mutex::new((part, &*counts, rows, these)));
        }
        run(executor, count, &tasks, |(part, counts, rows, values)| {
            self.fill(part, &elements, counts, rows, values);
        });
        drop(tasks);
        let mut sum = 0;
        for pointer in pointers.iter_mut() {
            sum += *pointer;
            *pointer = sum;
        }
        Ok(())
    }

    /// The columns, as many together as are filled at a time.
    fn parts(&self) -> Vec<Part> {
        let step = if self.count() < WORTH_SHARING { u32::MAX } else { AT_ONCE };
        let mut parts = Vec::new();
        for (number, stripe) in self.stripes.iter().enumerate() {
            let Range { mut start, end } = stripe.columns;
            while start < end {
                let columns = start..start.saturating_add(step).min(end);
                start = columns.end;
                parts.push(Part::new(number, stripe, columns));
            }
        }
        parts
    }

    /// What was found as elements of memory.
    fn converted<T: Element>(&self, conversion: &Conversion) -> Result<Vec<Cow<'_, [u8]>>> {
        let mut all = Vec::with_capacity(self.found.len());
        for found in &self.found {
            let bytes = found.as_ref().map_or(&[][..], |found| &found.values);
            if conversion.is_noop() {
                all.push(Cow::Borrowed(bytes));
                continue;
            }
            let count = bytes.len() / conversion.source_size();
            let mut elements = pumice_medium::zeroed(count * size_of::<T>())?;
            conversion.convert(bytes, &mut elements)?;
            all.push(Cow::Owned(elements));
        }
        Ok(all)
    }

    /// Counts the cells of some columns.
    fn count_cells(&self, part: &Part, counts: &mut [u64]) {
        self.for_each_row(part, |Row { cells, first, .. }| {
            for cell in cells {
                if let Some(count) = counts.get_mut(part.place(cell - first)) {
                    *count += 1;
                }
            }
        });
    }

    /// Puts the cells of some columns, so many in each, to their columns.
    fn fill<T: Element>(
        &self,
        part: &Part,
        elements: &[Cow<'_, [u8]>],
        counts: &[u64],
        rows: &mut [u64],
        values: &mut [T],
    ) {
        let size = size_of::<T>();
        let (mut next, mut sum) = (Vec::with_capacity(counts.len()), 0);
        for count in counts {
            next.push(sum);
            sum += *count as usize;
        }
        self.for_each_row(part, |Row { chunk, number, position, cells, first }| {
            let elements = &elements[chunk][position * size..(position + cells.len()) * size];
            for (at, cell) in cells.iter().enumerate() {
                // Columns that the window has not have no place.
                let Some(place) = next.get_mut(part.place(cell - first)) else { continue };
                rows[*place] = number;
                let element = &elements[at * size..(at + 1) * size];
                values[*place] = bytemuck::pod_read_unaligned(element);
                *place += 1;
            }
        });
    }

    /// Visits what was found in some columns, row by row.
    #[inline]
    fn for_each_row<'a>(&'a self, part: &Part, mut visit: impl FnMut(Row<'a>)) {
        let numbers = (part.stripe..).step_by(self.stripes.len());
        let whole = part.columns == self.stripes[part.stripe].columns;
        for (band, chunk) in self.bands.iter().zip(numbers) {
            let Some(found) = &self.found[chunk] else { continue };
            for at in 0..band.rows.len() {
                let Range { start: mut position, end } = found.row(at);
                // Chunks have fewer than 2^32 cells.
                let first = (self.row(band, at) * self.chunk[1]) as u32 + part.columns.start;
                let mut cells = &found.cells[position..end];
                if !whole {
                    let before = cells.partition_point(|cell| *cell < first);
                    cells = &cells[before..];
                    position += before;
                    let behind = part.columns.len() as u32;
                    cells = &cells[..cells.partition_point(|cell| cell - first < behind)];
                }
                let number = (band.rows.start + at) as u64;
                visit(Row { chunk, number, position, cells, first });
            }
        }
    }
}

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

/// What a chunk has of a row.
struct Row<'a> {
    /// The number of the chunk among those that were asked.
    chunk: usize,
    /// The row, counted in the window.
    number: u64,
    /// Where the first of the cells is among those of the chunk.
    position: usize,
    cells: &'a [u32],
    /// The cell of the row in the first column.
    first: u32,
}
