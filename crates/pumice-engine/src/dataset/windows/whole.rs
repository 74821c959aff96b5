//! All of a matrix as compressed rows.
//!
//! How many cells a chunk has is in its index record. So a chunk that has whole rows is put straight into its place by the
//! thread that decodes it, and no list of what was found is made. Where rows lie in several chunks, the thread that decodes the
//! last chunk of a band joins the band ([`joined`](super::joined)). Where a chunk turns out to have another number of cells
//! (it was changed meanwhile), nothing of this counts, and the window is read as any other.

use super::joined::BandSink;
use super::rows::ToColumns;
use super::{LinesInto, MANY, Window, WindowRows, fresh, zeros};
use crate::dataset::DatasetState;
use crate::{Error, Result};
use pumice_filter::location::CellVisitor;
use pumice_layout::buffer::Output;
use pumice_layout::{CellSink, SparseRead, Taken, Target};
use pumice_space::{Dims, Division, FoundCells};
use pumice_types::{Conversion, Element};
use pumice_wide::run_widely;
use std::ops::Range;

/// A chunk, and what became of its cells.
struct Part {
    key: Dims,
    origin: Dims,
    /// Where its cells go; `None` if there is nothing of it.
    place: Option<Range<usize>>,
    taken: Taken,
}

impl Part {
    /// Whether all of its places have been written.
    fn is_placed(&self) -> bool {
        match (&self.place, &self.taken) {
            (Some(_), Taken::Placed) | (None, Taken::None) => true,
            (None, Taken::Kept(cells, _)) => cells.is_empty(),
            _ => false,
        }
    }
}

impl DatasetState {
    /// Reads all rows of a matrix. `false` if that is not what is asked for or cannot be done; then what is in the lists
    /// means nothing.
    pub(super) fn read_whole_rows<T: Element>(
        &self,
        window: &Window,
        into: &mut LinesInto<'_, T>,
    ) -> Result<bool> {
        let dims = self.dims();
        let (&[rows, columns], &[height, side]) = (&*dims, self.layout.geometry.chunk()) else {
            return Ok(false);
        };
        let all = matches!(&window.rows, WindowRows::Range(range) if *range == (0..rows))
            && matches!(window.columns.as_slice(), [range] if *range == (0..columns));
        let grid = [rows.div_ceil(height), columns.div_ceil(side)];
        let fits = self.layout.geometry.cells_per_chunk() <= Division::MOST
            && grid[0].saturating_mul(grid[1]) <= MANY;
        if !all || !fits || into.by_columns || self.layout.sparse().is_none() {
            return Ok(false);
        }
        let conversion = Conversion::new(&self.datatype, &T::datatype())?;
        if !conversion.overwrites_target() {
            return Ok(false);
        }
        // What has changed is not in the records.
        if self.medium.writable() && self.cache().dataset_stats(&self.cached).dirty > 0 {
            return Ok(false);
        }
        let Some((parts, total)) = self.all_parts(grid)? else { return Ok(false) };
        match grid[1] {
            1 => self.place_rows([rows, columns], parts, total, conversion, into),
            _ => self.join_rows(window, parts, total, &conversion, into),
        }
    }

    /// Places chunks that have whole rows; whether each has been placed.
    fn place_rows<T: Element>(
        &self,
        array: [u64; 2],
        mut parts: Vec<Part>,
        total: usize,
        conversion: Conversion,
        into: &mut LinesInto<'_, T>,
    ) -> Result<bool> {
        zeros(into.pointers, array[0] as usize + 1)?;
        let (mut indices, mut values) = (fresh(into.indices, total)?, fresh(into.values, total)?);
        // SAFETY: the sink gives every chunk a place of its own.
        let target =
            unsafe { Target::new(values.output(), conversion, self.layout.geometry.fill())? };
        let sink = RowSink {
            counts: Output::new(bytemuck::cast_slice_mut(&mut into.pointers[1..])),
            indices: indices.output(),
            values: target,
            array,
        };
        let placed = self.give(&mut parts, &sink)?;
        drop(sink);
        if !placed {
            return Ok(false);
        }
        // SAFETY: the places of the chunks are all places, and every chunk has been put.
        (*into.indices, *into.values) = unsafe { (indices.into_vec(), values.into_vec()) };
        let mut sum = 0;
        for pointer in into.pointers.iter_mut() {
            sum += *pointer;
            *pointer = sum;
        }
        Ok(true)
    }

    /// Joins the rows of chunks that have parts of them; whether all have been joined.
    fn join_rows<T: Element>(
        &self,
        window: &Window,
        mut parts: Vec<Part>,
        total: usize,
        conversion: &Conversion,
        into: &mut LinesInto<'_, T>,
    ) -> Result<bool> {
        let Some(plan) = self.plan_window(window)? else { return Ok(false) };
        zeros(into.pointers, plan.shape[0] as usize + 1)?;
        let (mut indices, mut values) = (fresh(into.indices, total)?, fresh(into.values, total)?);
        // SAFETY: they are only written to.
        let places = unsafe { (indices.places(), values.places()) };
        let counts: Vec<usize> =
            parts.iter().map(|part| part.place.as_ref().map_or(0, Range::len)).collect();
        let sink = BandSink::new(&plan, conversion, &counts, &mut into.pointers[1..], places);
        let placed = self.give(&mut parts, &sink)?;
        if !(placed && sink.is_done()) {
            return Ok(false);
        }
        // SAFETY: the bands are all places, and each has been joined as a whole.
        (*into.indices, *into.values) = unsafe { (indices.into_vec(), values.into_vec()) };
        Ok(true)
    }

    /// Reads chunks into a sink; whether each is in its place.
    fn give(&self, parts: &mut [Part], sink: &dyn CellSink) -> Result<bool> {
        let Some(sparse) = self.layout.sparse() else { return Ok(false) };
        let requests = parts.iter_mut().map(|Part { key, origin, place, taken }| {
            let (origin, place) = (origin.clone(), place.clone());
            let (cells, values, passes) = (None, true, true);
            let read = SparseRead::Cells { cells, origin, place, values, passes, sink, taken };
            (key.clone(), sparse.ask(read))
        });
        self.cache().read(&self.cached, requests)?;
        Ok(parts.iter().all(Part::is_placed))
    }

    /// The chunks of a matrix of so many by so many, band after band, and how many cells they have together.
    fn all_parts(&self, grid: [u64; 2]) -> Result<Option<(Vec<Part>, usize)>> {
        let (Some(table), &[height, side]) = (self.layout.table(), self.layout.geometry.chunk())
        else {
            return Ok(None);
        };
        let [down, across] = grid;
        let keys: Vec<Dims> = (0..down)
            .flat_map(|band| (0..across).map(move |stripe| Dims::from_slice(&[band, stripe])))
            .collect();
        let records = table.lookup(&keys)?;
        let (mut parts, mut total) = (Vec::with_capacity(keys.len()), 0usize);
        for (key, record) in keys.into_iter().zip(records) {
            let count = record.and_then(|record| self.recorded(&record)).unwrap_or(0);
            let Some(end) = total.checked_add(count) else { return Ok(None) };
            let place = Some(total..end).filter(|place| !place.is_empty());
            total = end;
            let origin = Dims::from_slice(&[key[0] * height, key[1] * side]);
            parts.push(Part { key, origin, place, taken: Taken::None });
        }
        Ok(Some((parts, total)))
    }
}

/// Rows that threads write to side by side.
struct RowSink<'a> {
    /// How many cells each row has.
    counts: Output<'a>,
    indices: Output<'a>,
    values: Target<'a>,
    /// The shape of the array.
    array: [u64; 2],
}

impl RowSink<'_> {
    /// Lets a visitor take the cells of a chunk at `origin`; whether all places have been written, with cells of the array.
    fn take(
        &self,
        place: &Range<usize>,
        dims: &[u64],
        origin: &[u64],
        send: &mut dyn FnMut(&mut dyn CellVisitor) -> Result<bool>,
    ) -> Result<bool> {
        let (&[height, width], &[top, _]) = (dims, origin) else { return Ok(false) };
        const BYTES: usize = size_of::<u64>();
        let rows = height.min(self.array[0].saturating_sub(top)) as usize;
        // SAFETY: every chunk has a place and rows of its own, and is placed by one thread, which is done with one slice
        // before it asks again.
        let (indices, counts) = unsafe {
            let indices = self.indices.slice(place.start * BYTES, place.len() * BYTES);
            (indices, self.counts.slice(top as usize * BYTES, rows * BYTES))
        };
        let (indices, counts) =
            (bytemuck::cast_slice_mut(indices), bytemuck::cast_slice_mut(counts));
        counts.fill(0);
        let mut receiver = RowReceiver { dims, width, indices, done: 0, counts };
        if !send(&mut receiver)? || receiver.done != place.len() {
            return Ok(false);
        }
        // All are looked at, so that many are compared at once.
        let last = self.array[1];
        let inside = |indices: &[u64]| indices.iter().fold(true, |all, at| all & (*at < last));
        Ok(width <= last || inside(receiver.indices))
    }
}

/// Shows a visitor all cells; whether it took them.
pub(super) fn show(cells: &FoundCells, visitor: &mut dyn CellVisitor) -> bool {
    match cells {
        FoundCells::Listed(list) => visitor.cells(list),
        FoundCells::Set(set) => set.runs().all(|run| visitor.runs(&[[run.start, run.end()]])),
    }
}

impl CellSink for RowSink<'_> {
    fn put(
        &self,
        place: Range<usize>,
        dims: &[u64],
        origin: &[u64],
        cells: &FoundCells,
        values: &[u8],
    ) -> Result<()> {
        let taken = self.take(&place, dims, origin, &mut |visitor| Ok(show(cells, visitor)))?;
        // The owner of the rows relies on every place being written.
        if !taken {
            return Err(Error::Internal("cells without a place".into()));
        }
        self.put_values(place, values)
    }

    fn receive(
        &self,
        place: Range<usize>,
        dims: &[u64],
        origin: &[u64],
        send: &mut dyn FnMut(&mut dyn CellVisitor) -> Result<bool>,
    ) -> Result<bool> {
        self.take(&place, dims, origin, send)
    }

    fn put_values(&self, place: Range<usize>, values: &[u8]) -> Result<()> {
        if values.len() != place.len() * self.values.stored_size() {
            return Err(Error::Internal("values without cells, or without a place".into()));
        }
        self.values.place(place.start as u64, values)
    }

    fn read_values(
        &self,
        place: Range<usize>,
        read: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<bool> {
        self.values.read_into(place.start as u64, place.len(), read)
    }
}

/// Takes the cells of one chunk, row by row.
struct RowReceiver<'a> {
    dims: &'a [u64],
    width: u64,
    indices: &'a mut [u64],
    /// How many cells have come.
    done: usize,
    counts: &'a mut [u64],
}

impl RowReceiver<'_> {
    /// Counts cells of a row; `false` if the array has it not.
    fn count(&mut self, row: u64, cells: u64) -> bool {
        let count = usize::try_from(row).ok().and_then(|row| self.counts.get_mut(row));
        count.map(|count| *count += cells).is_some()
    }
}

impl CellVisitor for RowReceiver<'_> {
    fn begin(&mut self, dims: &[u64]) -> bool {
        dims == self.dims
    }

    fn cells(&mut self, cells: &[u32]) -> bool {
        let Some(indices) = self.indices.get_mut(self.done..self.done + cells.len()) else {
            return false;
        };
        run_widely(ToColumns { cells, width: self.width, shift: 0, indices });
        self.done += cells.len();
        let mut rest = cells;
        while let Some(&first) = rest.first() {
            let row = u64::from(first) / self.width;
            let end = (row + 1) * self.width;
            let same = rest.iter().take_while(|cell| u64::from(**cell) < end).count();
            if !self.count(row, same as u64) {
                return false;
            }
            rest = &rest[same..];
        }
        true
    }

    fn runs(&mut self, runs: &[[u64; 2]]) -> bool {
        for &[mut start, end] in runs {
            while start < end {
                let row = start / self.width;
                let stop = end.min((row + 1) * self.width);
                let len = (stop - start) as usize;
                let place = self.indices.get_mut(self.done..).and_then(|rest| rest.get_mut(..len));
                let Some(place) = place else { return false };
                let first = start - row * self.width;
                place.iter_mut().zip(first..).for_each(|(to, column)| *to = column);
                self.done += len;
                if !self.count(row, len as u64) {
                    return false;
                }
                start = stop;
            }
        }
        true
    }
}
