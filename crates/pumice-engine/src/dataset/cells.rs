//! Defined cells as columns: one column of coordinates per dimension, and the values.
//!
//! How many cells a chunk has is in its index record, so that the columns are made before anything is
//! read, and every chunk is put straight into its place, by the thread that decodes it. Where a chunk
//! turns out to have another number of cells (it was changed and waits in the cache, or only a part of
//! it is asked for), its cells are kept aside and everything is put together in the end.

use super::DatasetState;
use super::transfer::Defined;
use crate::buffer::{Output, zeroed};
use crate::layout::{CellSink, ReadRequest, Storage, Taken, Target};
use crate::{Error, Result};
use pumice_format::index::ChunkRecord;
use pumice_space::{CellSet, Coordinate, Dims, Selection};
use pumice_types::{Conversion, Element};
use std::ops::Range;

/// What stored bytes can hold at most, as a multiple of their number: no more is believed.
const MOST_RATIO: u64 = 1 << 12;

/// Defined cells, one column of coordinates per dimension.
///
/// Cells are ordered by chunk, and within a chunk in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns<C, T> {
    /// The coordinates, slowest dimension first.
    pub coordinates: Vec<Vec<C>>,
    /// The value of each cell; empty if only the coordinates were asked for.
    pub values: Vec<T>,
}

impl<C: Coordinate + bytemuck::Pod, T: Element> Columns<C, T> {
    fn zeroed(rank: usize, count: usize, values: bool) -> Result<Self> {
        let coordinates = (0..rank).map(|_| zeroed(count)).collect::<Result<Vec<_>>>()?;
        Ok(Self { coordinates, values: zeroed(if values { count } else { 0 })? })
    }

    /// How many cells there are.
    fn len(&self) -> usize {
        self.coordinates.first().map_or(self.values.len(), Vec::len)
    }

    /// Copies cells of other columns to the place `to`.
    fn copy(&mut self, to: usize, from: &Self, range: Range<usize>) {
        for (column, other) in self.coordinates.iter_mut().zip(&from.coordinates) {
            column[to..to + range.len()].copy_from_slice(&other[range.clone()]);
        }
        if !self.values.is_empty() {
            self.values[to..to + range.len()].copy_from_slice(&from.values[range]);
        }
    }
}

/// Columns that threads write to side by side.
struct Sink<'a, C> {
    columns: Vec<Output<'a>>,
    values: Option<Target<'a>>,
    coordinate: std::marker::PhantomData<C>,
}

impl<'a, C: Coordinate + bytemuck::Pod> Sink<'a, C> {
    fn new<T: Element>(
        columns: &'a mut Columns<C, T>,
        conversion: Option<Conversion>,
        fill: &[u8],
    ) -> Result<Self> {
        let values = Output::zeroed(bytemuck::cast_slice_mut(&mut columns.values));
        let values = conversion.map(|conversion| Target::new(values, conversion, fill));
        let columns = columns.coordinates.iter_mut();
        let columns = columns.map(|column| Output::zeroed(bytemuck::cast_slice_mut(column)));
        let (columns, values) = (columns.collect(), values.transpose()?);
        Ok(Self { columns, values, coordinate: std::marker::PhantomData })
    }
}

impl<C: Coordinate + bytemuck::Pod> CellSink for Sink<'_, C> {
    fn put(
        &self,
        place: Range<usize>,
        dims: &[u64],
        origin: &[u64],
        cells: &CellSet,
        values: &[u8],
    ) -> Result<()> {
        let (start, len) = (place.start * size_of::<C>(), place.len() * size_of::<C>());
        let columns = self.columns.iter().map(|column| {
            // SAFETY: `places` gives every chunk a range of its own, the same in all columns, and
            // a chunk is placed by one thread.
            bytemuck::cast_slice_mut(unsafe { column.slice(start, len) })
        });
        let mut columns: smallvec::SmallVec<[&mut [C]; 4]> = columns.collect();
        cells.put_coordinates(dims, origin, &mut columns);
        match &self.values {
            Some(target) => target.place(place.start as u64, values),
            None => Ok(()),
        }
    }
}

/// A chunk's share of the answer.
struct Share {
    chunk: Dims,
    cells: Selection,
    /// Whether all of its cells that lie inside the extent are asked for.
    whole: bool,
    origin: Dims,
    /// Where its cells go, if it has as many as its record says.
    place: Option<Range<usize>>,
    taken: Taken,
}

impl DatasetState {
    /// The defined cells among the selected ones, as columns; with their values if `values`.
    pub fn read_columns<C: Coordinate + bytemuck::Pod, T: Element>(
        &self,
        selection: &Selection,
        values: bool,
    ) -> Result<Columns<C, T>> {
        let dims = self.dims();
        if let Some(axis) = dims.iter().position(|&size| !C::holds(size)) {
            let bits = 8 * size_of::<C>();
            return Err(Error::Invalid(format!(
                "coordinates up to {} of dimension {axis} do not fit {bits} bits",
                dims[axis] - 1
            )));
        }
        let conversion = match values {
            true => Some(Conversion::new(&self.datatype, &T::datatype())?),
            false => None,
        };
        if !matches!(self.layout.storage, Storage::Sparse(..)) {
            return self.columns_of_others(selection, conversion);
        }
        let _no_resize = self.gate();
        let mut shares = self.shares(selection)?;
        let total = self.places(&mut shares)?;
        let mut columns = Columns::zeroed(dims.len(), total, values)?;
        let fill = self.layout.geometry.fill();
        let sink = Sink::new(&mut columns, conversion.clone(), fill)?;
        let requests = shares.iter_mut().map(|share| {
            let Share { chunk, cells, whole, origin, place, taken } = share;
            let cells = (!*whole).then(|| cells.clone());
            let origin = origin.clone();
            let place = place.clone();
            (chunk.clone(), ReadRequest::Cells { cells, origin, place, values, sink: &sink, taken })
        });
        self.cache().read(&self.cached, requests)?;
        drop(sink);
        self.put_together(shares, columns, conversion)
    }

    /// [`read_columns`](Self::read_columns) of layouts that have no lists of cells.
    fn columns_of_others<C: Coordinate + bytemuck::Pod, T: Element>(
        &self,
        selection: &Selection,
        conversion: Option<Conversion>,
    ) -> Result<Columns<C, T>> {
        let found = match conversion {
            Some(_) => self.read_defined(selection)?,
            None => self.defined(selection)?,
        };
        let sides = self.layout.geometry.chunk();
        let share = |Defined { chunk, cells, values }: Defined| {
            let origin = chunk.iter().zip(sides).map(|(number, side)| number * side).collect();
            let taken = Taken::Kept(cells, values);
            let cells = Selection::none();
            Share { chunk, cells, whole: false, origin, place: None, taken }
        };
        let shares = found.into_iter().map(share).collect();
        self.put_together(shares, Columns::zeroed(sides.len(), 0, false)?, conversion)
    }

    fn shares(&self, selection: &Selection) -> Result<Vec<Share>> {
        let touched = self.touched_checked(selection)?;
        let grid = self.grid(&self.dims())?;
        let share = |(chunk, cells): (Dims, Selection)| {
            let (origin, inside) = (grid.origin(&chunk), grid.clipped(&chunk));
            let block = cells.as_block(grid.chunk());
            let whole = cells.covers(grid.chunk())
                || block.is_some_and(|(start, count)| {
                    start.iter().all(|&at| at == 0) && count == inside
                });
            Share { chunk, cells, whole, origin, place: None, taken: Taken::None }
        };
        Ok(touched.into_iter().map(share).collect())
    }

    /// Gives places to chunks that are asked for as a whole; returns how many places there are.
    fn places(&self, shares: &mut [Share]) -> Result<usize> {
        let Some(table) = self.layout.table() else { return Ok(0) };
        let mut whole: Vec<&mut Share> = shares.iter_mut().filter(|share| share.whole).collect();
        let keys: Vec<Dims> = whole.iter().map(|share| share.chunk.clone()).collect();
        let mut total = 0;
        for (share, record) in whole.iter_mut().zip(table.lookup(&keys)?) {
            let count = record.and_then(|record| self.recorded(&record)).unwrap_or(0);
            if count > 0 {
                share.place = Some(total..total + count);
                total += count;
            }
        }
        Ok(total)
    }

    /// How many cells a chunk has according to its record, if that can be.
    fn recorded(&self, record: &ChunkRecord) -> Option<usize> {
        let geometry = &self.layout.geometry;
        let bytes = record.sections.get(1)?.unfiltered;
        let count = bytes.checked_div(geometry.element_size() as u64)?;
        let possible = bytes <= record.size.saturating_mul(MOST_RATIO);
        let fits = count <= geometry.cells_per_chunk() && possible;
        fits.then_some(usize::try_from(count).ok()).flatten()
    }

    /// Columns without gaps. If every chunk is in its place, they are that already.
    fn put_together<C: Coordinate + bytemuck::Pod, T: Element>(
        &self,
        shares: Vec<Share>,
        columns: Columns<C, T>,
        conversion: Option<Conversion>,
    ) -> Result<Columns<C, T>> {
        let count = |share: &Share| match (&share.taken, &share.place) {
            (Taken::Kept(cells, _), _) => cells.len() as usize,
            (Taken::Placed, Some(place)) => place.len(),
            _ => 0,
        };
        let placed = |share: &Share| matches!(share.taken, Taken::Placed) || count(share) == 0;
        let total = shares.iter().map(count).sum();
        if total == columns.len() && shares.iter().all(placed) {
            return Ok(columns);
        }
        let rank = columns.coordinates.len();
        let mut all = Columns::zeroed(rank, total, conversion.is_some())?;
        let mut at = 0;
        let mut places = Vec::with_capacity(shares.len());
        for share in &shares {
            places.push(at..at + count(share));
            if let (Taken::Placed, Some(place)) = (&share.taken, &share.place) {
                all.copy(at, &columns, place.clone());
            }
            at += count(share);
        }
        let sink = Sink::new(&mut all, conversion, self.layout.geometry.fill())?;
        for (share, place) in shares.iter().zip(places) {
            if let Taken::Kept(cells, values) = &share.taken {
                sink.put(place, self.layout.geometry.chunk(), &share.origin, cells, values)?;
            }
        }
        drop(sink);
        Ok(all)
    }
}
