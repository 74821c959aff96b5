//! All rows of a matrix, joined band by band as chunks are decoded.
//!
//! The cells of a chunk wait until those of its whole band are there; then the thread that brings the last ones joins the rows,
//! while the processor's caches still hold them. The memory they waited in goes to chunks of later bands. Beside lists that are put
//! together in the end, 5 million cells in chunks of 148 x 148 take 45 ms of processor time instead of 83, in chunks of
//! 572 x 572 38 instead of 42 (`forms --processor-time --only=everything 0.05` of `bench/`).

use super::rows::{BandPart, reserve};
use super::whole::show;
use super::{Band, WindowPlan};
use crate::{Error, Result};
use pumice_filter::location::CellVisitor;
use pumice_layout::{CellSink, RowsFound};
use pumice_space::{Division, FoundCells};
use pumice_types::{Conversion, Element};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Takes the cells of chunks, and joins the rows of bands.
pub(super) struct BandSink<'a, T> {
    plan: &'a WindowPlan,
    conversion: &'a Conversion,
    bands: Vec<Joining<'a, T>>,
    /// Where the cells of each chunk would begin if chunks were put one after another: a place tells its chunk.
    begins: Vec<usize>,
    /// What chunks wait for, band after band.
    waiting: Vec<Mutex<RowsFound>>,
    /// Memory that nobody uses now.
    spare: Mutex<Vec<RowsFound>>,
}

/// A band on its way.
struct Joining<'a, T> {
    band: &'a Band,
    /// How many cells come before it.
    before: usize,
    /// How many of its chunks are still to come.
    left: AtomicUsize,
    /// Where its rows end, the columns of its cells, and their values; taken when rows are joined.
    places: Mutex<Option<Places<'a, T>>>,
}

type Places<'a, T> = (&'a mut [u64], &'a mut [u64], &'a mut [T]);

impl<'a, T: Element> BandSink<'a, T> {
    /// A sink for chunks with so many cells each, band after band, and the places of all.
    pub(super) fn new(
        plan: &'a WindowPlan,
        conversion: &'a Conversion,
        counts: &[usize],
        mut ends: &'a mut [u64],
        (mut indices, mut values): (&'a mut [u64], &'a mut [T]),
    ) -> Self {
        let across = plan.stripes.len().max(1);
        let mut before = 0;
        let mut bands = Vec::with_capacity(plan.bands.len());
        for (band, counts) in plan.bands.iter().zip(counts.chunks(across)) {
            let count: usize = counts.iter().sum();
            let (own_ends, later_ends) = ends.split_at_mut(band.rows.len());
            let (own_indices, later_indices) = indices.split_at_mut(count);
            let (own_values, later_values) = values.split_at_mut(count);
            (ends, indices, values) = (later_ends, later_indices, later_values);
            // Rows of a band without cells end where they begin.
            own_ends.fill(before as u64);
            let left = AtomicUsize::new(counts.iter().filter(|count| **count > 0).count());
            let places = Mutex::new(Some((own_ends, own_indices, own_values)));
            bands.push(Joining { band, before, left, places });
            before += count;
        }
        let mut sum = 0;
        let begin = |count: &usize| {
            sum += count;
            sum - count
        };
        let begins = counts.iter().map(begin).collect();
        let waiting = counts.iter().map(|_| Mutex::default()).collect();
        Self { plan, conversion, bands, begins, waiting, spare: Mutex::default() }
    }

    /// Whether all rows have been joined.
    pub(super) fn is_done(&self) -> bool {
        self.bands.iter().all(|band| band.left.load(Ordering::Acquire) == 0)
    }

    /// Which chunk has a place.
    fn chunk_at(&self, place: &Range<usize>) -> usize {
        // Chunks without cells begin where the next one does.
        self.begins.partition_point(|begin| *begin <= place.start).saturating_sub(1)
    }

    /// What waits of a chunk, with memory that was used before.
    fn memory(&self, chunk: usize) -> MutexGuard<'_, RowsFound> {
        let mut waiting = lock(&self.waiting[chunk]);
        if waiting.values.capacity() == 0 {
            *waiting = lock(&self.spare).pop().unwrap_or_default();
        }
        waiting
    }

    /// Takes the values of a chunk.
    fn take_values(&self, chunk: usize, values: &[u8]) -> Result<()> {
        let mut waiting = self.memory(chunk);
        reserve(&mut waiting.values, values.len())?;
        waiting.values.extend_from_slice(values);
        Ok(())
    }

    /// Takes the cells of a chunk whose values are there, and joins its band if they were the last; whether all its places
    /// have cells of the array.
    fn take_cells(
        &self,
        chunk: usize,
        count: usize,
        dims: &[u64],
        send: &mut dyn FnMut(&mut dyn CellVisitor) -> Result<bool>,
    ) -> Result<bool> {
        let mut waiting = self.memory(chunk);
        reserve(&mut waiting.cells, count)?;
        let mut receiver = Receiver { dims, count, cells: &mut waiting.cells };
        let taken = send(&mut receiver)? && waiting.cells.len() == count;
        if !taken || !self.lie_inside(chunk, &waiting.cells) {
            return Ok(false);
        }
        drop(waiting);
        let across = self.plan.stripes.len().max(1);
        let Some(band) = self.bands.get(chunk / across) else { return Ok(false) };
        // The one that finds nothing left sees what the others have put.
        if band.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.join(band, chunk / across * across)?;
        }
        Ok(true)
    }

    /// Whether cells of a chunk are cells of the array.
    fn lie_inside(&self, chunk: usize, cells: &[u32]) -> bool {
        let across = self.plan.stripes.len().max(1);
        let (band, stripe) = (&self.bands[chunk / across].band, &self.plan.stripes[chunk % across]);
        let (height, width) = (band.rows.len() as u64, self.plan.chunk[1]);
        let end = u64::from(stripe.columns.end);
        let division = Division::by(width);
        let inside = |all, &cell: &u32| {
            let (row, column) = division.of(cell);
            all & (row < height) & (column < end)
        };
        (height == self.plan.chunk[0] && end == width) || cells.iter().fold(true, inside)
    }

    /// Joins the rows of a band from chunk `first` on.
    fn join(&self, joining: &Joining<'_, T>, first: usize) -> Result<()> {
        let across = self.plan.stripes.len();
        let twice = || Error::Internal("rows that were joined before".into());
        let (ends, indices, values) = lock(&joining.places).take().ok_or_else(twice)?;
        let waiting = &self.waiting[first..first + across];
        let found: Vec<_> =
            waiting.iter().map(|waiting| Some(std::mem::take(&mut *lock(waiting)))).collect();
        let before = joining.before as u64;
        let mut part =
            BandPart { band: joining.band, found: &found, before, ends, indices, values };
        self.plan.put_band(&mut part, self.conversion)?;
        lock(&self.spare).extend(found.into_iter().flatten().filter(|one| !one.cells.is_empty()));
        Ok(())
    }
}

impl<T: Element> CellSink for BandSink<'_, T> {
    fn put(
        &self,
        place: Range<usize>,
        dims: &[u64],
        _origin: &[u64],
        cells: &FoundCells,
        values: &[u8],
    ) -> Result<()> {
        let chunk = self.chunk_at(&place);
        self.put_values(place.clone(), values)?;
        let taken =
            self.take_cells(chunk, place.len(), dims, &mut |visitor| Ok(show(cells, visitor)))?;
        // The owner of the rows relies on every place being written.
        if taken { Ok(()) } else { Err(Error::Internal("cells without a place".into())) }
    }

    fn receive(
        &self,
        place: Range<usize>,
        dims: &[u64],
        _origin: &[u64],
        send: &mut dyn FnMut(&mut dyn CellVisitor) -> Result<bool>,
    ) -> Result<bool> {
        self.take_cells(self.chunk_at(&place), place.len(), dims, send)
    }

    fn put_values(&self, place: Range<usize>, values: &[u8]) -> Result<()> {
        if values.len() != place.len() * self.conversion.source_size() {
            return Err(Error::Internal("values without cells, or without a place".into()));
        }
        self.take_values(self.chunk_at(&place), values)
    }

    fn read_values(
        &self,
        place: Range<usize>,
        read: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<bool> {
        let mut waiting = self.memory(self.chunk_at(&place));
        let len = place.len() * self.conversion.source_size();
        reserve(&mut waiting.values, len)?;
        waiting.values.resize(len, 0);
        read(&mut waiting.values)?;
        Ok(true)
    }
}

fn lock<E>(mutex: &Mutex<E>) -> MutexGuard<'_, E> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes the cells of one chunk, at most as many as its record says.
struct Receiver<'a> {
    dims: &'a [u64],
    count: usize,
    cells: &'a mut Vec<u32>,
}

impl CellVisitor for Receiver<'_> {
    fn begin(&mut self, dims: &[u64]) -> bool {
        dims == self.dims
    }

    fn cells(&mut self, cells: &[u32]) -> bool {
        let fits = cells.len() <= self.count - self.cells.len();
        if fits {
            self.cells.extend_from_slice(cells);
        }
        fits
    }

    fn runs(&mut self, runs: &[[u64; 2]]) -> bool {
        runs.iter().all(|&[start, end]| {
            let len = end.saturating_sub(start);
            let fits = len <= (self.count - self.cells.len()) as u64;
            if fits {
                // Chunks have fewer than 2^32 cells.
                self.cells.extend((start..end).map(|cell| cell as u32));
            }
            fits
        })
    }
}
