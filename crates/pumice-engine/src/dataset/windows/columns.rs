//! Columns of a window from lists of rows: cells are counted by column, and then put down.
//!
//! A column's cells are far apart in the lists, and those of a row far apart in the columns. Many cells are therefore put
//! down in blocks ([`BLOCK`]): the cells of some bands are brought into columns in memory that the processor's caches hold,
//! and the pieces of columns that come of it are copied to where they belong. Threads count and put blocks side by side.

use super::{Band, Few, Index, LinesInto, PlannedRows, Stripe, WORTH_SHARING, WindowPlan};
use super::{converted, fresh, into_inner, run};
use crate::{Error, Result};
use pumice_cache::Executor;
use pumice_layout::RowsFound;
use pumice_layout::buffer::Output;
use pumice_space::Division;
use pumice_types::{Conversion, Element};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// So many cells are brought into columns at a time, if there are many. Of 20 million cells each took 6.7 ns of processor time
/// with so many, 8 ns with half as many, 10 ns with a quarter, and 8.7 ns in one piece (`forms` of `bench/`, a busy machine).
const BLOCK: usize = 1 << 18;

/// A block has so many cells for each column, or its columns are not worth counting apart.
const IN_COLUMN: usize = 4;

/// Some of the chunks of a stripe, whose cells are put into columns together.
struct Block {
    stripe: usize,
    /// Which of the stripe's blocks it is, and how many there are.
    number: usize,
    of: usize,
    bands: Range<usize>,
    cells: usize,
    /// Which of the window's columns the stripe has.
    columns: Range<usize>,
}

/// A block while it is counted and put down.
struct Work<'a> {
    block: &'a Block,
    /// For each column its cells; then the place of the next, counted from the block's first cell.
    next: &'a mut [u32],
    done: Result<()>,
}

/// What is filled, and where in it things belong.
struct Lists<'a> {
    rows: Output<'a>,
    values: Output<'a>,
    /// Where each column begins, and where the last ends.
    pointers: &'a [u64],
    /// For each stripe of several blocks where each block's part of each column begins, block after block, and where columns
    /// end.
    places: Vec<Vec<u64>>,
}

impl Lists<'_> {
    /// Some places of both lists.
    ///
    /// # Safety
    /// As for [`Output::slice`].
    #[allow(clippy::mut_from_ref)]
    #[inline(always)]
    unsafe fn slices<T: Element>(&self, start: usize, count: usize) -> (&mut [u64], &mut [T]) {
        let (wide, size) = (size_of::<u64>(), size_of::<T>());
        // SAFETY: the caller's promise.
        let (rows, values) = unsafe {
            (
                self.rows.slice(start * wide, count * wide),
                self.values.slice(start * size, count * size),
            )
        };
        (bytemuck::cast_slice_mut(rows), bytemuck::cast_slice_mut(values))
    }
}

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
        let total = self.count();
        let blocks = self.blocks(total);
        let mut counts =
            pumice_medium::zeroed(blocks.iter().map(|block| block.columns.len()).sum())?;
        let mut rest = counts.as_mut_slice();
        let mut tasks = Few::with_capacity(blocks.len());
        for block in &blocks {
            let (next, later) = rest.split_at_mut(block.columns.len());
            rest = later;
            tasks.push(Mutex::new(Work { block, next, done: Ok(()) }));
        }
        run(executor, total, &tasks, |work| self.count_block(work));
        let places = self.place_columns(&mut tasks, into.pointers)?;

        let elements = converted::<T>(&self.found, conversion)?;
        let wanted = into.pointers.last().map_or(0, |end| *end as usize);
        let (mut rows, mut values) = (fresh(into.indices, wanted)?, fresh(into.values, wanted)?);
        let (to_rows, to_values) = (rows.output(), values.output());
        let to = Lists { rows: to_rows, values: to_values, pointers: into.pointers, places };
        run(executor, total, &tasks, |work| {
            work.done = match work.block.of {
                1 => self.put_stripe::<T>(work, &elements, &to),
                _ => self.put_block::<T>(work, &elements, &to),
            };
        });
        drop(to);
        tasks.into_iter().try_for_each(|task| into_inner(task).done)?;
        // SAFETY: every column of every stripe has been filled, and columns lie side by side.
        (*into.indices, *into.values) = unsafe { (rows.into_vec(), values.into_vec()) };
        Ok(())
    }

    /// The blocks of a window of so many cells, stripe by stripe: one of each unless there are many cells.
    fn blocks(&self, total: usize) -> Few<Block> {
        let (mut blocks, mut first) = (Few::new(), 0);
        for (stripe, of) in self.stripes.iter().enumerate() {
            let columns = first..first + of.width();
            first = columns.end;
            let most = match total {
                // Chunks have fewer than 2^32 cells, and so have blocks.
                0..WORTH_SHARING => u32::MAX as usize,
                _ => BLOCK.max(columns.len() * IN_COLUMN).min(u32::MAX as usize),
            };
            let before = blocks.len();
            let (mut bands, mut cells) = (0..0, 0);
            for band in 0..=self.bands.len() {
                let found = self.found.get(band * self.stripes.len() + stripe);
                let here = found.and_then(Option::as_ref).map_or(0, |found| found.cells.len());
                let last = band == self.bands.len();
                if last || cells > 0 && (cells + here > most || self.is_tall(&bands, band)) {
                    let (number, columns) = (blocks.len() - before, columns.clone());
                    blocks.push(Block { stripe, number, of: 0, bands, cells, columns });
                    (bands, cells) = (band..band, 0);
                }
                (bands.end, cells) = (band + 1, cells + here);
            }
            let of = blocks.len() - before;
            blocks[before..].iter_mut().for_each(|block| block.of = of);
        }
        blocks
    }

    /// Whether some bands and another one together have more rows than 32 bits count.
    fn is_tall(&self, bands: &Range<usize>, band: usize) -> bool {
        let rows = self.bands[bands.start].rows.start..self.bands[band].rows.end;
        u32::try_from(rows.len()).is_err()
    }

    /// Counts the cells of each column of a block.
    fn count_block(&self, work: &mut Work<'_>) {
        for (band, number) in self.chunks_of(work.block) {
            self.for_each_cell(work.block, band, number, |_, column, _| {
                // Columns that the window has not have no place.
                if let Some(count) = work.next.get_mut(column) {
                    *count += 1;
                }
            });
        }
    }

    /// Says where each column begins, and where the last ends. In each block, counts become places.
    fn place_columns(
        &self,
        tasks: &mut [Mutex<Work<'_>>],
        pointers: &mut Vec<u64>,
    ) -> Result<Vec<Vec<u64>>> {
        let none = || Error::NoMemory("no memory for so many columns".into());
        let width = usize::try_from(self.shape[1]).ok().and_then(|width| width.checked_add(1));
        pointers.clear();
        pointers.try_reserve(width.ok_or_else(none)?).map_err(|_| none())?;
        pointers.push(0);
        let (mut places, mut before) = (Vec::new(), 0);
        let mut rest = tasks;
        while let Some(task) = rest.first_mut() {
            let of = into_mut(task).block.of;
            let (here, later) = rest.split_at_mut(of);
            rest = later;
            let [only] = here else {
                places.push(place_blocks(here, &mut before, pointers)?);
                continue;
            };
            let mut sum = 0;
            pointers.extend(into_mut(only).next.iter_mut().map(|next| {
                sum += std::mem::replace(next, sum);
                before + u64::from(sum)
            }));
            before += u64::from(sum);
            places.push(Vec::new());
        }
        Ok(places)
    }

    /// Puts the cells of a stripe that is one block to their place.
    fn put_stripe<T: Element>(
        &self,
        work: &mut Work<'_>,
        elements: &[Cow<'_, [u8]>],
        to: &Lists<'_>,
    ) -> Result<()> {
        let pointers = &to.pointers[work.block.columns.start..=work.block.columns.end];
        let (begin, end) = (pointers[0], pointers[pointers.len() - 1]);
        // SAFETY: the stripe's columns lie side by side, and no other task puts them.
        let (rows, values) = unsafe { to.slices(begin as usize, (end - begin) as usize) };
        self.put_cells::<u64, T>(work, elements, (rows, values), |row| row);
        let ends = pointers[1..].iter().zip(&*work.next);
        let filled = ends.fold(true, |all, (end, next)| all & (end - begin == u64::from(*next)));
        if filled { Ok(()) } else { Err(lost()) }
    }

    /// Puts the cells of a block to their place, by way of memory of their own.
    fn put_block<T: Element>(
        &self,
        work: &mut Work<'_>,
        elements: &[Cow<'_, [u8]>],
        to: &Lists<'_>,
    ) -> Result<()> {
        let Block { stripe, number, cells, ref bands, ref columns, .. } = *work.block;
        let top = self.bands[bands.start].rows.start as u64;
        let mut rows = pumice_medium::zeroed::<u32>(cells)?;
        let mut values = pumice_medium::zeroed::<T>(cells)?;
        let lists = (rows.as_mut_slice(), values.as_mut_slice());
        self.put_cells::<u32, T>(work, elements, lists, |row| (row - top) as u32);
        let places = &to.places[stripe][number * columns.len()..];
        let (begins, ends) = places.split_at(columns.len());
        let mut from = 0;
        for ((&next, &begin), &end) in work.next.iter().zip(begins).zip(ends) {
            let (here, count) = (from..next as usize, (end - begin) as usize);
            from = here.end;
            if here.len() != count {
                return Err(lost());
            }
            // SAFETY: each block has places of its own in each column.
            let (to_rows, to_values) = unsafe { to.slices(begin as usize, count) };
            for (to, &row) in to_rows.iter_mut().zip(&rows[here.clone()]) {
                *to = top + u64::from(row);
            }
            to_values.copy_from_slice(&values[here]);
        }
        Ok(())
    }

    /// Puts the cells of a block to the places that are next in their columns.
    fn put_cells<R, T: Element>(
        &self,
        work: &mut Work<'_>,
        elements: &[Cow<'_, [u8]>],
        (rows, values): (&mut [R], &mut [T]),
        number_of: impl Fn(u64) -> R,
    ) {
        let Work { block, next, .. } = work;
        let size = size_of::<T>().max(1);
        for (band, number) in self.chunks_of(block) {
            let elements = &*elements[number];
            self.for_each_cell(block, band, number, |row, column, at| {
                let Some(next) = next.get_mut(column) else { return };
                let place = *next as usize;
                if let (Some(to), Some(value)) = (rows.get_mut(place), values.get_mut(place)) {
                    *to = number_of(row);
                    *value = bytemuck::pod_read_unaligned(&elements[at * size..(at + 1) * size]);
                    *next += 1;
                }
            });
        }
    }

    /// The bands of a block, and where in the list of what was found its part of each is.
    fn chunks_of(&self, block: &Block) -> impl Iterator<Item = (&Band, usize)> {
        let (bands, across) = (block.bands.clone(), self.stripes.len());
        let numbers = (bands.start * across + block.stripe..).step_by(across);
        self.bands[bands].iter().zip(numbers)
    }

    /// Visits the cells of a chunk: its row in the window, its column counted from the block's first, and which one it is.
    #[inline(always)]
    fn for_each_cell(
        &self,
        block: &Block,
        band: &Band,
        number: usize,
        mut visit: impl FnMut(u64, usize, usize),
    ) {
        let Some(found) = &self.found[number] else { return };
        let stripe = &self.stripes[block.stripe];
        let first = u64::from(stripe.columns.start);
        match &stripe.index {
            Index::From(_) => self.for_each_of(band, found, |row, column, at| {
                visit(row, column.wrapping_sub(first) as usize, at);
            }),
            Index::Listed(index) => self.for_each_of(band, found, |row, column, at| {
                let place = index.get(column.wrapping_sub(first) as usize);
                let place = place.map_or(usize::MAX, |place| *place as usize);
                visit(row, place.wrapping_sub(block.columns.start), at);
            }),
        }
    }

    /// Visits the cells of a chunk: its row in the window, its column in the chunk, and which one it is.
    #[inline(always)]
    fn for_each_of(&self, band: &Band, found: &RowsFound, mut visit: impl FnMut(u64, u64, usize)) {
        if let PlannedRows::From(first) = self.rows
            && !self.lists_rows()
        {
            // Many rows of a narrow window have no cell: nobody looks at them.
            let division = Division::by(self.chunk[1]);
            let top = (band.chunk * self.chunk[0]).wrapping_sub(first);
            for (at, &cell) in found.cells.iter().enumerate() {
                let (row, column) = division.of(cell);
                visit(top.wrapping_add(row), column, at);
            }
            return;
        }
        for at in 0..band.rows.len() {
            let number = (band.rows.start + at) as u64;
            let first = self.row(band, at) * self.chunk[1];
            for at in found.row(at) {
                visit(number, u64::from(found.cells[at]).wrapping_sub(first), at);
            }
        }
    }
}

impl Stripe {
    /// How many of the window's columns it has.
    fn width(&self) -> usize {
        match &self.index {
            Index::From(_) => self.columns.len(),
            Index::Listed(index) => index.iter().filter(|place| **place != super::NOWHERE).count(),
        }
    }
}

/// Says where the columns of a stripe of several blocks begin, and where in them each block's part does.
fn place_blocks(
    tasks: &mut [Mutex<Work<'_>>],
    before: &mut u64,
    pointers: &mut Vec<u64>,
) -> Result<Vec<u64>> {
    let width = tasks.first_mut().map_or(0, |task| into_mut(task).next.len());
    let mut ends: Vec<u64> = pumice_medium::zeroed(width)?;
    let mut places = pumice_medium::reserved(width.saturating_mul(tasks.len() + 1))?;
    for task in tasks {
        // Counted from the beginning of each column, which is not known yet.
        places.extend_from_slice(&ends);
        let mut sum = 0;
        for (next, end) in into_mut(task).next.iter_mut().zip(&mut ends) {
            *end += u64::from(*next);
            sum += std::mem::replace(next, sum);
        }
    }
    places.extend_from_slice(&ends);
    let first = pointers.len() - 1;
    pointers.extend(ends.iter().map(|count| {
        *before += count;
        *before
    }));
    for places in places.chunks_exact_mut(width.max(1)) {
        places.iter_mut().zip(&pointers[first..]).for_each(|(place, begin)| *place += begin);
    }
    Ok(places)
}

fn into_mut<'t, 'w>(task: &'t mut Mutex<Work<'w>>) -> &'t mut Work<'w> {
    task.get_mut().unwrap_or_else(PoisonError::into_inner)
}

fn lost() -> Error {
    Error::Internal("cells were counted and not found".into())
}
