//! Rows of a window from lists of cells.
//!
//! Rows that ascend are put together band by band, on several threads if there are many cells. Where one chunk has all of
//! a row, its list is the answer but for the numbers of its cells, which become columns all at once: rows of a narrow
//! window have a cell or two, and a loop for each row would take longer than the cells.

use super::{Band, Index, LinesInto, NOWHERE, Stripe, WindowPlan};
use super::{converted, fresh, into_inner, run, zeros};
use crate::{Error, Result};
use pumice_cache::Executor;
use pumice_layout::RowsFound;
use pumice_layout::buffer::Room;
use pumice_space::Division;
use pumice_types::{Conversion, Element};
use pumice_wide::{Work, run_widely};
use std::borrow::Cow;
use std::sync::Mutex;

/// A band's part of the answer.
struct BandPart<'a, T> {
    band: &'a Band,
    found: &'a [Option<RowsFound>],
    /// How many cells of the window come before it.
    before: u64,
    /// Where its rows end.
    ends: &'a mut [u64],
    indices: &'a mut [u64],
    values: &'a mut [T],
}

impl WindowPlan {
    /// Puts rows together, in the order in which they are wanted.
    pub(super) fn put_rows<T: Element>(
        self,
        conversion: &Conversion,
        executor: &dyn Executor,
        into: &mut LinesInto<'_, T>,
    ) -> Result<()> {
        let listed = self.stripes.iter().any(|stripe| matches!(stripe.index, Index::Listed(_)));
        match (&self.places, listed) {
            (None, false) => self.put_bands(conversion, executor, into),
            _ => self.put_row_by_row(conversion, into),
        }
    }

    /// Puts rows together that ascend and have all that was found in them, bands side by side.
    fn put_bands<T: Element>(
        &self,
        conversion: &Conversion,
        executor: &dyn Executor,
        into: &mut LinesInto<'_, T>,
    ) -> Result<()> {
        let LinesInto { pointers, indices, values, .. } = into;
        let count = self.count();
        zeros(pointers, self.shape[0] as usize + 1)?;
        let mut numbers = fresh(indices, count)?;
        let mut elements = match conversion.overwrites_target() {
            true => fresh(values, count)?,
            // Members of a compound that the file has not stay as they are.
            false => Room::zeroed(count)?,
        };
        // SAFETY: they are only written to.
        let (mut indices_left, mut values_left) = unsafe { (numbers.places(), elements.places()) };
        let across = self.stripes.len().max(1);
        let (mut before, mut tasks) = (0, Vec::with_capacity(self.bands.len()));
        let mut ends_left = &mut pointers[1..];
        for (number, band) in self.bands.iter().enumerate() {
            let found = self.found.get(number * across..(number + 1) * across).unwrap_or_default();
            let count = found.iter().flatten().map(|found| found.cells.len()).sum();
            let (ends, later) = ends_left.split_at_mut(band.rows.len());
            ends_left = later;
            let (indices, later) = indices_left.split_at_mut(count);
            indices_left = later;
            let (values, later) = values_left.split_at_mut(count);
            values_left = later;
            let part = BandPart { band, found, before, ends, indices, values };
            tasks.push(Mutex::new((part, Ok(()))));
            before += count as u64;
        }
        run(executor, count, &tasks, |(part, done)| *done = self.put_band(part, conversion));
        tasks.into_iter().try_for_each(|task| into_inner(task).1)?;
        // SAFETY: the parts of the bands are all of it, and each has been put as a whole.
        (**indices, **values) = unsafe { (numbers.into_vec(), elements.into_vec()) };
        Ok(())
    }

    /// Puts the rows of a band: every place of its part, or an error.
    fn put_band<T: Element>(
        &self,
        part: &mut BandPart<'_, T>,
        conversion: &Conversion,
    ) -> Result<()> {
        let (found, before) = (part.found, part.before);
        let cells = self.chunk[0].saturating_mul(self.chunk[1]);
        if let ([Some(found)], [stripe]) = (found, self.stripes.as_slice())
            && let Index::From(index) = stripe.index
            && cells <= Division::MOST
        {
            // One chunk has all of a row, and its rows come one after another.
            conversion.convert(&found.values, bytemuck::cast_slice_mut(part.values))?;
            let shift = index.wrapping_sub(u64::from(stripe.columns.start));
            let (cells, indices) = (&found.cells, &mut *part.indices);
            run_widely(ToColumns { cells, width: self.chunk[1], shift, indices });
            for (end, &start) in part.ends.iter_mut().zip(&found.starts[1..]) {
                *end = before + u64::from(start);
            }
            return Ok(());
        }
        let elements = converted::<T>(found, conversion)?;
        let done = run_widely(JoinRows { plan: self, part, elements: &elements });
        match done == part.indices.len() {
            true => Ok(()),
            false => Err(Error::Internal("cells in no row of a window".into())),
        }
    }

    /// Puts rows together that come in any order, or of which some columns are wanted.
    fn put_row_by_row<T: Element>(
        &self,
        conversion: &Conversion,
        into: &mut LinesInto<'_, T>,
    ) -> Result<()> {
        let LinesInto { pointers, indices, values, .. } = into;
        reserve(pointers, self.shape[0] as usize + 1)?;
        pointers.push(0);
        // Rows that are wanted twice come on top.
        reserve(indices, self.count())?;
        reserve(values, self.count())?;
        let across = self.stripes.len();
        let mut put = |band: usize, at: usize| -> Result<()> {
            let row = self.row(&self.bands[band], at);
            let found = &self.found[band * across..(band + 1) * across];
            for (stripe, found) in self.stripes.iter().zip(found) {
                let Some(found) = found else { continue };
                stripe.put_row(row * self.chunk[1], at, found, conversion, indices, values)?;
            }
            pointers.push(indices.len() as u64);
            Ok(())
        };
        match &self.places {
            Some(places) => {
                places.iter().try_for_each(|&(band, at)| put(band as usize, at as usize))
            }
            None => {
                let mut bands = self.bands.iter().enumerate();
                bands.try_for_each(|(band, Band { rows, .. })| {
                    (0..rows.len()).try_for_each(|at| put(band, at))
                })
            }
        }
    }
}

impl Stripe {
    /// Appends what a chunk has of a row that begins with cell `first`.
    fn put_row<T: Element>(
        &self,
        first: u64,
        at: usize,
        found: &RowsFound,
        conversion: &Conversion,
        indices: &mut Vec<u64>,
        values: &mut Vec<T>,
    ) -> Result<()> {
        let range = found.row(at);
        let (cells, size) = (&found.cells[range.clone()], conversion.source_size());
        let first = first + u64::from(self.columns.start);
        match &self.index {
            Index::From(index) => {
                let shift = index.wrapping_sub(first);
                indices.extend(cells.iter().map(|&cell| u64::from(cell).wrapping_add(shift)));
                append(conversion, &found.values[range.start * size..range.end * size], values)
            }
            Index::Listed(index) => cells.iter().zip(range).try_for_each(|(&cell, at)| {
                let column = index[(u64::from(cell) - first) as usize];
                if column == NOWHERE {
                    return Ok(());
                }
                indices.push(column);
                append(conversion, &found.values[at * size..(at + 1) * size], values)
            }),
        }
    }
}

/// Joins the rows of a band that several chunks have parts of; says how many cells were put.
struct JoinRows<'a, 'p, T> {
    plan: &'a WindowPlan,
    part: &'a mut BandPart<'p, T>,
    /// What each chunk has, as elements of memory.
    elements: &'a [Cow<'a, [u8]>],
}

impl<T: Element> Work for JoinRows<'_, '_, T> {
    type Output = usize;

    #[inline(always)]
    fn run(self) -> usize {
        let Self { plan, part, elements } = self;
        let (size, mut done) = (size_of::<T>(), 0);
        let values = bytemuck::cast_slice_mut::<T, u8>(part.values);
        for (at, end) in part.ends.iter_mut().enumerate() {
            let row = plan.row(part.band, at) * plan.chunk[1];
            let chunks = plan.stripes.iter().zip(part.found).zip(elements);
            for ((stripe, one), elements) in chunks {
                let (Some(one), Index::From(index)) = (one, &stripe.index) else { continue };
                let range = one.row(at);
                let shift = index.wrapping_sub(row + u64::from(stripe.columns.start));
                let place = done..done + range.len();
                let cells = one.cells[range.clone()].iter();
                for (to, &cell) in part.indices[place.clone()].iter_mut().zip(cells) {
                    *to = u64::from(cell).wrapping_add(shift);
                }
                let to = &mut values[place.start * size..place.end * size];
                to.copy_from_slice(&elements[range.start * size..range.end * size]);
                done += range.len();
            }
            *end = part.before + done as u64;
        }
        done
    }
}

/// From cells of a chunk with rows of `width` cells to columns of the window.
pub(super) struct ToColumns<'a> {
    pub(super) cells: &'a [u32],
    pub(super) width: u64,
    pub(super) shift: u64,
    pub(super) indices: &'a mut [u64],
}

impl Work for ToColumns<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let division = Division::by(self.width);
        for (to, &cell) in self.indices.iter_mut().zip(self.cells) {
            *to = division.of(cell).1.wrapping_add(self.shift);
        }
    }
}

/// Empties a list and makes room in it, or says that there is not enough memory.
fn reserve<E>(list: &mut Vec<E>, count: usize) -> Result<()> {
    list.clear();
    let none = |_| Error::NoMemory(format!("no memory for {count} cells"));
    list.try_reserve(count).map_err(none)
}

/// Appends elements of the file's type as those of another.
fn append<T: Element>(conversion: &Conversion, bytes: &[u8], values: &mut Vec<T>) -> Result<()> {
    let (at, count) = (values.len(), bytes.len() / conversion.source_size());
    values.resize(at + count, T::zeroed());
    Ok(conversion.convert(bytes, bytemuck::cast_slice_mut(&mut values[at..]))?)
}
