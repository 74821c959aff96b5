//! Columns of a window from lists of rows: cells are counted by column, and then put down.
//!
//! A column's cells are far apart in the lists, and those of a row far apart in the columns. So chunks are asked for some
//! columns at a time ([`AT_ONCE`]), and these are filled row after row: the lists are read from beginning to end, and the
//! places that are written next stay in the processor's caches. Threads fill columns side by side.

use super::{Index, LinesInto, NOWHERE, Stripe, WindowPlan, into_inner, run, zeros};
use crate::{Error, Result};
use pumice_cache::Executor;
use pumice_types::{Conversion, Element};
use std::borrow::Cow;
use std::sync::Mutex;

/// So many columns are filled at a time. Of 5 million cells, each took 24 ns with so many, 46 ns with 256, of which a row
/// has few cells, and 48 ns with 5,000, on a busy machine.
pub(super) const AT_ONCE: u64 = 1024;

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
        let (mut tasks, mut rest) = (Vec::with_capacity(self.stripes.len()), &mut pointers[1..]);
        for (number, stripe) in self.stripes.iter().enumerate() {
            let (counts, later) = rest.split_at_mut(stripe.width());
            rest = later;
            tasks.push(Mutex::new((number, counts)));
        }
        run(executor, self.count(), &tasks, |(number, counts)| self.count_cells(*number, counts));

        let counted: Vec<_> = tasks.into_iter().map(into_inner).collect();
        let sums: Vec<usize> =
            counted.iter().map(|(_, counts)| counts.iter().sum::<u64>() as usize).collect();
        let elements = self.converted::<T>(conversion)?;
        zeros(indices, sums.iter().sum())?;
        zeros(values, sums.iter().sum())?;
        let (mut indices, mut values) = (&mut indices[..], &mut values[..]);
        let mut tasks = Vec::with_capacity(counted.len());
        for ((number, counts), sum) in counted.into_iter().zip(sums) {
            let (rows, later) = indices.split_at_mut(sum);
            indices = later;
            let (these, later) = values.split_at_mut(sum);
            values = later;
            tasks.push(Mutex::new((number, &*counts, rows, these)));
        }
        run(executor, self.count(), &tasks, |(number, counts, rows, values)| {
            self.fill(*number, &elements, counts, rows, values);
        });
        drop(tasks);
        let mut sum = 0;
        for pointer in pointers.iter_mut() {
            sum += *pointer;
            *pointer = sum;
        }
        Ok(())
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
            let mut elements = crate::buffer::zeroed(count * size_of::<T>())?;
            conversion.convert(bytes, &mut elements)?;
            all.push(Cow::Owned(elements));
        }
        Ok(all)
    }

    /// Counts the cells of the columns of a stripe.
    fn count_cells(&self, stripe: usize, counts: &mut [u64]) {
        let places = Places::of(&self.stripes[stripe]);
        self.for_each_row(stripe, |Row { cells, first, .. }| {
            for cell in cells {
                if let Some(count) = counts.get_mut(places.at(cell - first)) {
                    *count += 1;
                }
            }
        });
    }

    /// Puts the cells of a stripe, so many in each column, to their columns.
    fn fill<T: Element>(
        &self,
        stripe: usize,
        elements: &[Cow<'_, [u8]>],
        counts: &[u64],
        rows: &mut [u64],
        values: &mut [T],
    ) {
        let (places, size) = (Places::of(&self.stripes[stripe]), size_of::<T>());
        let (mut next, mut sum) = (Vec::with_capacity(counts.len()), 0);
        for count in counts {
            next.push(sum);
            sum += *count as usize;
        }
        self.for_each_row(stripe, |Row { chunk, number, position, cells, first }| {
            let elements = &elements[chunk][position * size..(position + cells.len()) * size];
            for (at, cell) in cells.iter().enumerate() {
                // Columns that the window has not have no place.
                let Some(place) = next.get_mut(places.at(cell - first)) else { continue };
                rows[*place] = number;
                let element = &elements[at * size..(at + 1) * size];
                values[*place] = bytemuck::pod_read_unaligned(element);
                *place += 1;
            }
        });
    }

    /// Visits what was found in a stripe, row by row.
    #[inline]
    fn for_each_row<'a>(&'a self, stripe: usize, mut visit: impl FnMut(Row<'a>)) {
        let numbers = (stripe..).step_by(self.stripes.len());
        let left = self.stripes[stripe].columns.start;
        for (band, chunk) in self.bands.iter().zip(numbers) {
            let Some(found) = &self.found[chunk] else { continue };
            for (at, &row) in self.rows[band.rows.clone()].iter().enumerate() {
                let (position, end) = (found.starts[at], found.starts[at + 1]);
                // Chunks have fewer than 2^32 cells.
                let first = (u64::from(row) * self.side) as u32 + left;
                let (cells, number) = (&found.cells[position..end], (band.rows.start + at) as u64);
                visit(Row { chunk, number, position, cells, first });
            }
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
    /// The cell of the row in the first column that is asked for.
    first: u32,
}

/// Where the columns of a stripe, from the first that is asked for on, are among those that the window has.
struct Places(Option<Vec<u32>>);

impl Places {
    fn of(stripe: &Stripe) -> Self {
        let Index::Listed(all) = &stripe.index else { return Self(None) };
        let mut before = 0;
        let place = |column: &u64| match *column {
            NOWHERE => u32::MAX,
            _ => {
                before += 1;
                before - 1
            }
        };
        Self(Some(all.iter().map(place).collect()))
    }

    /// The place of a column; beyond all of them if the window has it not.
    #[inline]
    fn at(&self, column: u32) -> usize {
        match &self.0 {
            None => column as usize,
            Some(listed) => listed[column as usize] as usize,
        }
    }
}
