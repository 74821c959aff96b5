//! Rows of a window from lists of cells.
//!
//! Rows that ascend are put together band by band, on several threads if there are many cells. Where one chunk has all of
//! a row, its list is the answer but for the numbers of its cells, which become columns all at once: rows of a narrow
//! window have a cell or two, and a loop for each row would take longer than the cells.

use super::{Band, Few, Index, LinesInto, NOWHERE, Stripe, WindowPlan};
use super::{converted, fresh, into_inner, run, zeros};
use crate::{Error, Result};
use pumice_cache::Executor;
use pumice_layout::RowsFound;
use pumice_layout::buffer::Room;
use pumice_space::Division;
use pumice_types::{Conversion, Element};
use pumice_wide::{Work, run_widely};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::sync::Mutex;

/// A band's part of the answer.
pub(super) struct BandPart<'a, T> {
    pub(super) band: &'a Band,
    pub(super) found: &'a [Option<RowsFound>],
    /// How many cells of the window come before it.
    pub(super) before: u64,
    /// Where its rows end.
    pub(super) ends: &'a mut [u64],
    pub(super) indices: &'a mut [u64],
    pub(super) values: &'a mut [T],
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
        let (mut before, mut tasks) = (0, Few::with_capacity(self.bands.len()));
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
    pub(super) fn put_band<T: Element>(
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

/// Joins the rows of a band that several chunks have parts of; says how many cells were put. Where a row ends in the list of a
/// chunk's cells, the cells themselves tell.
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
        let mut cursors: SmallVec<[usize; 16]> = SmallVec::from_elem(0, plan.stripes.len());
        for (at, end) in part.ends.iter_mut().enumerate() {
            let row = plan.row(part.band, at) * plan.chunk[1];
            let chunks = plan.stripes.iter().zip(part.found).zip(elements);
            for (((stripe, one), elements), cursor) in chunks.zip(&mut cursors) {
                let (Some(one), Index::From(index)) = (one, &stripe.index) else { continue };
                let shift = index.wrapping_sub(row + u64::from(stripe.columns.start));
                // Chunks have fewer than 2^32 cells.
                let end = (row + u64::from(stripe.columns.end)) as u32;
                let from = (&one.cells[*cursor..], &elements[*cursor * size..]);
                let to = (&mut part.indices[done..], &mut values[done * size..]);
                let count = put_row::<T>(from, end, shift, to);
                *cursor += count;
                done += count;
            }
            *end = part.before + done as u64;
        }
        done
    }
}

/// Cells that are put at once, though fewer may be wanted: then the next ones overwrite the excess.
const AT_ONCE: usize = 16;

/// Puts the cells before `end`, and their elements; says how many. Rows of a chunk have a few cells mostly, for which there is
/// no decision.
#[inline(always)]
fn put_row<T>(
    (cells, elements): (&[u32], &[u8]),
    end: u32,
    shift: u64,
    (indices, values): (&mut [u64], &mut [u8]),
) -> usize {
    let size = size_of::<T>();
    let mut done = 0;
    while let Some(few) = cells[done..].first_chunk::<AT_ONCE>()
        && let Some(to) = indices[done..].first_chunk_mut::<AT_ONCE>()
        && let Some(element) = elements.get(done * size..(done + AT_ONCE) * size)
        && let Some(value) = values.get_mut(done * size..(done + AT_ONCE) * size)
    {
        for (to, &cell) in to.iter_mut().zip(few) {
            *to = u64::from(cell).wrapping_add(shift);
        }
        value.copy_from_slice(element);
        let inside = few.iter().map(|&cell| u32::from(cell < end)).sum::<u32>() as usize;
        done += inside;
        if inside < AT_ONCE {
            return done;
        }
    }
    let rest = cells[done..].iter().take_while(|cell| **cell < end).count();
    let places = done..done + rest;
    for (to, &cell) in indices[places.clone()].iter_mut().zip(&cells[places.clone()]) {
        *to = u64::from(cell).wrapping_add(shift);
    }
    let bytes = places.start * size..places.end * size;
    values[bytes.clone()].copy_from_slice(&elements[bytes]);
    places.end
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
pub(super) fn reserve<E>(list: &mut Vec<E>, count: usize) -> Result<()> {
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
