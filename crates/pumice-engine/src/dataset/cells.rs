//! Defined cells as columns: one column of coordinates per dimension, and the values.
//!
//! How many cells a chunk has is in its index record, so that the columns are made before anything is
//! read, and every chunk is put straight into its place, by the thread that decodes it. Where a chunk
//! turns out to have another number of cells (it was changed and waits in the cache, or only a part of
//! it is asked for), its cells are kept aside and everything is put together in the end.

mod receiver;

use self::receiver::{Parts, Receiver};
use super::DatasetState;
use super::asking::{Defined, Touched};
use crate::{Error, Result};
use pumice_filter::location::CellVisitor;
use pumice_format::index::ChunkRecord;
use pumice_layout::buffer::{Output, Room};
use pumice_layout::{CellSink, SparseRead, Taken, Target};
use pumice_space::{Coordinate, Dims, FoundCells, Selection};
use pumice_types::{Conversion, Element};
use std::ops::Range;

/// What stored bytes can hold at most, as a multiple of their number: no more is believed.
const MOST_RATIO: u64 = 1 << 12;

/// So many chunks are put together at a time: what is known of each is small beside most chunks, but not beside
/// millions of tiny ones.
const SHARES: usize = 1 << 15;

/// So many bytes of coordinates are written past the caches: fewer may stay in those that a processor has for
/// itself. With 32 MB, coordinates came in four fifths to two thirds of the time; with 320 MB it took a tenth
/// longer than plain stores do, for reasons that are not known.
const STREAMED: Range<usize> = 2 << 20..64 << 20;

/// A read of so many cells, or of all, goes through the dataset: chunks that it puts down whole are not kept. Those of
/// smaller windows may be asked for again.
const SCAN: usize = 1 << 20;

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

impl<C, T> Columns<C, T> {
    fn empty(rank: usize) -> Self {
        Self { coordinates: (0..rank).map(|_| Vec::new()).collect(), values: Vec::new() }
    }
}

/// Adds columns behind others.
fn append<C: Copy, T: Copy>(all: &mut Option<Columns<C, T>>, more: Columns<C, T>) -> Result<()> {
    let Some(all) = all else {
        *all = Some(more);
        return Ok(());
    };
    for (column, more) in all.coordinates.iter_mut().zip(&more.coordinates) {
        extend(column, more)?;
    }
    extend(&mut all.values, &more.values)
}

fn extend<E: Copy>(column: &mut Vec<E>, more: &[E]) -> Result<()> {
    let none = |_| Error::NoMemory(format!("no memory for {} more cells", more.len()));
    column.try_reserve(more.len()).map_err(none)?;
    column.extend_from_slice(more);
    Ok(())
}

/// Columns that are being filled.
struct Rooms<C, T> {
    coordinates: Vec<Room<C>>,
    values: Option<Room<T>>,
    len: usize,
}

impl<C: Coordinate + bytemuck::Pod, T: Element> Rooms<C, T> {
    /// Room for `len` cells, with values if there is a way to convert them.
    fn new(rank: usize, len: usize, conversion: Option<&Conversion>) -> Result<Self> {
        let coordinates = (0..rank).map(|_| Room::new(len)).collect::<Result<Vec<_>>>()?;
        let values = conversion.map(|conversion| match conversion.overwrites_target() {
            true => Room::new(len),
            // Members of a compound that the file has not stay as they are.
            false => Room::zeroed(len),
        });
        Ok(Self { coordinates, values: values.transpose()?, len })
    }

    /// Copies cells of other columns, which have been written there, to the place `to`.
    fn copy(&mut self, to: usize, from: &mut Self, range: Range<usize>) {
        let columns = self.coordinates.iter_mut().zip(&mut from.coordinates);
        columns.for_each(|(column, other)| copy(column, to, other, range.clone()));
        if let (Some(column), Some(other)) = (&mut self.values, &mut from.values) {
            copy(column, to, other, range);
        }
    }

    /// The columns.
    ///
    /// # Safety
    /// Every cell must have been put or copied.
    unsafe fn into_columns(self) -> Columns<C, T> {
        // SAFETY: the caller's promise; `Sink::put` and `copy` write all columns.
        let coordinates = self.coordinates.into_iter().map(|room| unsafe { room.into_vec() });
        let coordinates = coordinates.collect();
        // SAFETY: as above.
        let values = self.values.map(|room| unsafe { room.into_vec() });
        Columns { coordinates, values: values.unwrap_or_default() }
    }
}

fn copy<E: bytemuck::Pod>(to: &mut Room<E>, place: usize, from: &mut Room<E>, range: Range<usize>) {
    let (size, len) = (size_of::<E>(), range.len() * size_of::<E>());
    let (to, from) = (to.output(), from.output());
    // SAFETY: both rooms are borrowed exclusively, and each has one slice.
    let (to, from) = unsafe { (to.slice(place * size, len), from.slice(range.start * size, len)) };
    to.copy_from_slice(from);
}

/// Columns that threads write to side by side.
struct Sink<'a, C> {
    columns: Vec<Output<'a>>,
    values: Option<Target<'a>>,
    /// The shape of the array.
    dims: Dims,
    /// Whether the columns are written past the caches.
    streams: bool,
    coordinate: std::marker::PhantomData<C>,
}

impl<'a, C: Coordinate + bytemuck::Pod> Sink<'a, C> {
    fn new<T: Element>(
        rooms: &'a mut Rooms<C, T>,
        conversion: Option<Conversion>,
        dims: Dims,
        fill: &'a [u8],
    ) -> Result<Self> {
        let values = match (rooms.values.as_mut(), conversion) {
            (Some(room), Some(conversion)) => {
                // SAFETY: the sink gives every chunk a place of its own.
                Some(unsafe { Target::new(room.output(), conversion, fill)? })
            }
            _ => None,
        };
        let columns: Vec<_> = rooms.coordinates.iter_mut().map(Room::output).collect();
        let bytes: usize = columns.iter().map(Output::len).sum();
        let streams = STREAMED.contains(&bytes);
        Ok(Self { columns, values, dims, streams, coordinate: std::marker::PhantomData })
    }

    /// The columns of a chunk's place, which is given to it alone.
    fn columns(&self, place: &Range<usize>) -> Parts<'_, C> {
        let (start, len) = (place.start * size_of::<C>(), place.len() * size_of::<C>());
        let columns = self.columns.iter().map(|column| {
            // SAFETY: `places` gives every chunk a range of its own, the same in all columns, and
            // a chunk is placed by one thread, which is done with one slice before it asks again.
            bytemuck::cast_slice_mut(unsafe { column.slice(start, len) })
        });
        columns.collect()
    }
}

impl<C: Coordinate + bytemuck::Pod> CellSink for Sink<'_, C> {
    fn put(
        &self,
        place: Range<usize>,
        dims: &[u64],
        origin: &[u64],
        cells: &FoundCells,
        values: &[u8],
    ) -> Result<()> {
        // Who owns the columns counts on every place being written.
        let wanted = self.values.as_ref().map_or(values.len(), |to| place.len() * to.stored_size());
        if cells.len() != place.len() as u64 || values.len() != wanted {
            return Err(Error::Internal("cells without values, or without a place".into()));
        }
        cells.put_coordinates(dims, origin, &mut self.columns(&place));
        match &self.values {
            Some(target) => target.place(place.start as u64, values),
            None => Ok(()),
        }
    }

    fn receive(
        &self,
        place: Range<usize>,
        dims: &[u64],
        origin: &[u64],
        send: &mut dyn FnMut(&mut dyn CellVisitor) -> Result<bool>,
    ) -> Result<bool> {
        let (columns, array) = (self.columns(&place), &self.dims);
        let mut receiver = Receiver::new(dims, origin, columns, array, self.streams);
        // Every place must have been written before it is looked at.
        Ok(send(&mut receiver)? && receiver.finish(&self.dims))
    }

    fn put_values(&self, place: Range<usize>, values: &[u8]) -> Result<()> {
        match &self.values {
            Some(target) if values.len() == place.len() * target.stored_size() => {
                match self.streams {
                    true => target.stream(place.start as u64, values),
                    false => target.place(place.start as u64, values),
                }
            }
            _ => Err(Error::Internal("values without cells, or without a place".into())),
        }
    }

    fn read_values(
        &self,
        place: Range<usize>,
        read: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<bool> {
        match &self.values {
            Some(target) => target.read_into(place.start as u64, place.len(), read),
            None => Ok(false),
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
        let Some(sparse) = self.layout.sparse() else {
            return self.columns_of_others(selection, conversion);
        };
        let _no_resize = self.gate();
        if values && let Some(found) = self.read_window_cells(selection)? {
            let shares = found.into_iter().map(|part| self.kept(part)).collect();
            return self.put_together(shares, Rooms::new(dims.len(), 0, None)?, conversion);
        }
        let mut all = None;
        self.ask_many(selection, SHARES, |turn, touched| {
            let mut shares = self.shares(touched)?;
            let total = self.places(&mut shares)?;
            let mut rooms = Rooms::new(dims.len(), total, conversion.as_ref())?;
            let passes = total >= SCAN || selection.covers(&dims);
            let fill = self.layout.geometry.fill();
            let sink = Sink::new(&mut rooms, conversion.clone(), self.dims(), fill)?;
            let requests = shares.iter_mut().map(|share| {
                let Share { chunk, cells, whole, origin, place, taken } = share;
                let cells = (!*whole).then_some(&*cells);
                let (origin, place, sink) = (origin.clone(), place.clone(), &sink);
                let read = SparseRead::Cells { cells, origin, place, values, passes, sink, taken };
                (chunk.clone(), sparse.ask(read))
            });
            turn.read(requests)?;
            drop(sink);
            append(&mut all, self.put_together(shares, rooms, conversion.clone())?)
        })?;
        Ok(all.unwrap_or_else(|| Columns::empty(dims.len())))
    }

    /// [`read_columns`](Self::read_columns) of layouts that have no lists of cells.
    fn columns_of_others<C: Coordinate + bytemuck::Pod, T: Element>(
        &self,
        selection: &Selection,
        conversion: Option<Conversion>,
    ) -> Result<Columns<C, T>> {
        let rank = self.layout.geometry.chunk().len();
        let mut all = None;
        let visit = |found: Vec<Defined>| {
            let shares = found.into_iter().map(|part| self.kept(part)).collect();
            let rooms = Rooms::new(rank, 0, None)?;
            append(&mut all, self.put_together(shares, rooms, conversion.clone())?)
        };
        match conversion {
            Some(_) => self.read_defined_each(selection, &T::datatype(), visit)?,
            None => self.defined_each(selection, visit)?,
        }
        Ok(all.unwrap_or_else(|| Columns::empty(rank)))
    }

    /// The share of a chunk whose cells are there.
    fn kept(&self, Defined { chunk, cells, values }: Defined) -> Share {
        let sides = self.layout.geometry.chunk();
        let origin = chunk.iter().zip(sides).map(|(number, side)| number * side).collect();
        let (taken, cells) = (Taken::Kept(cells, values), Selection::none());
        Share { chunk, cells, whole: false, origin, place: None, taken }
    }

    fn shares(&self, touched: Touched) -> Result<Vec<Share>> {
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
        let mut total = 0usize;
        for (share, record) in whole.iter_mut().zip(table.lookup(&keys)?) {
            let count = record.and_then(|record| self.recorded(&record)).unwrap_or(0);
            if count > 0 {
                let none = || Error::NoMemory(format!("no memory for {total} + {count} cells"));
                let end = total.checked_add(count).ok_or_else(none)?;
                share.place = Some(total..end);
                total = end;
            }
        }
        Ok(total)
    }

    /// How many cells a chunk has according to its record, if that can be.
    pub(super) fn recorded(&self, record: &ChunkRecord) -> Option<usize> {
        let count = self.layout.announced_cells(record)?;
        let bytes = record.sections.get(1)?.unfiltered;
        let possible = bytes <= record.size.saturating_mul(MOST_RATIO);
        let fits = count <= self.layout.geometry.cells_per_chunk() && possible;
        fits.then_some(usize::try_from(count).ok()).flatten()
    }

    /// Columns without gaps. If every chunk is in its place, they are that already.
    fn put_together<C: Coordinate + bytemuck::Pod, T: Element>(
        &self,
        shares: Vec<Share>,
        mut rooms: Rooms<C, T>,
        conversion: Option<Conversion>,
    ) -> Result<Columns<C, T>> {
        let count = |share: &Share| match (&share.taken, &share.place) {
            (Taken::Kept(cells, _), _) => cells.len() as usize,
            (Taken::Placed, Some(place)) => place.len(),
            _ => 0,
        };
        let placed = |share: &Share| matches!(share.taken, Taken::Placed) || count(share) == 0;
        let total = shares.iter().map(count).sum();
        if total == rooms.len && shares.iter().all(placed) {
            // SAFETY: the places of the chunks are all places, and every chunk has been put.
            return Ok(unsafe { rooms.into_columns() });
        }
        let rank = rooms.coordinates.len();
        let mut all = Rooms::new(rank, total, conversion.as_ref())?;
        let mut at = 0;
        let mut places = Vec::with_capacity(shares.len());
        for share in &shares {
            places.push(at..at + count(share));
            if let (Taken::Placed, Some(place)) = (&share.taken, &share.place) {
                all.copy(at, &mut rooms, place.clone());
            }
            at += count(share);
        }
        let sink = Sink::new(&mut all, conversion, self.dims(), self.layout.geometry.fill())?;
        for (share, place) in shares.iter().zip(places) {
            if let Taken::Kept(cells, values) = &share.taken {
                sink.put(place, self.layout.geometry.chunk(), &share.origin, cells, values)?;
            }
        }
        drop(sink);
        // SAFETY: each share has as many places as cells, one after another, and was copied or put.
        Ok(unsafe { all.into_columns() })
    }
}
