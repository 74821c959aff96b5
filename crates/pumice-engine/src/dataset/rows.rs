//! Compressed rows on their way to a sparse dataset: split by chunk and encoded in one pass.
//!
//! A band of chunks side by side is one task. It reads its rows once, in order; gaps are packed as they
//! come, and values are appended to those of their chunk. A chunk that is new takes both as they are.

use super::DatasetState;
use crate::layout::sparse::LOCATIONS;
use crate::layout::{DatasetLayout, MANY, Source, Storage, WriteRequest};
use crate::{Error, Result};
use pumice_cache::{Executor, WriteInParts};
use pumice_filter::location::{Aim, RowCells, RowEncoder, RowSteps, RunEncoder, append_some};
use pumice_filter::{Work, run_widely};
use pumice_space::{ChunkGrid, Dims, Points, RowGrid, TakeRows};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of values that are copied as a block.
const BLOCK: usize = 128;

/// The most chunks side by side: each has some memory of its own while rows come.
const MOST_CHUNKS: u64 = 1 << 12;

/// The most cells of a chunk: the location filter writes no more runs.
const MOST_CELLS: usize = 1 << 22;

/// The cells of a chunk and their values, in the memory's type.
struct Encoded {
    chunk: Dims,
    cells: RowCells,
    values: Vec<u8>,
}

impl DatasetState {
    /// Writes compressed rows; `false` if points are no such rows, or chunks would not take them, and
    /// nothing is written.
    ///
    /// Bands of chunks are written one by one, as one request. Many rows that are all there will be of a band are
    /// stored as soon as they are encoded, while another thread encodes the next band.
    pub(super) fn write_rows(
        &self,
        points: &Points<'_>,
        grid: &ChunkGrid,
        source: &Source<'_>,
    ) -> Result<bool> {
        let sparse = match &self.layout.storage {
            Storage::Sparse(sparse, _) if sparse.takes_rows() => sparse,
            _ => return Ok(false),
        };
        let (filtered, aim) = (sparse.filters_values(), sparse.pipeline(LOCATIONS).location_aim());
        let Some(rows) = RowGrid::new(points, grid) else { return Ok(false) };
        let executor = self.cache().executor();
        let cells = |band| rows.cells(rows.lines(band)).len();
        if grid.counts()[1] > MOST_CHUNKS || (0..rows.bands()).any(|band| cells(band) > MOST_CELLS)
        {
            return Ok(false);
        }
        let Some(neighbours) = neighbours(&rows, &*executor) else { return Ok(false) };
        let runs = 2 * neighbours > rows.columns().len();
        let many = source.bytes().len() >= MANY;
        let full = (0..rows.bands()).filter(|&band| cells(band) > 0);
        let chunk = |band, number| Dims::from_slice(&[band as u64, number]);
        let chunks =
            full.flat_map(|band| (0..grid.counts()[1]).map(move |number| chunk(band, number)));
        let write = self.cache().begin_write(&self.cached, chunks)?;
        let line = Line { write, outcome: Mutex::new(Ok(())) };
        executor.run(rows.bands(), &|band| {
            if line.has_failed() {
                return;
            }
            let whole = many && rows.is_whole(band);
            let request = |Encoded { chunk, cells, values }| {
                (chunk, WriteRequest::Rows { part: Some((cells, values)), whole, source })
            };
            let parts = run_widely(Band { rows: &rows, number: band, grid, source, aim, runs });
            line.add(parts.map(|parts| parts.into_iter().map(request).collect()), filtered);
        });
        line.outcome.into_inner().unwrap_or_else(PoisonError::into_inner).map(|()| true)
    }
}

/// What is to be written of a band.
type Requests<'s> = Vec<(Dims, WriteRequest<'s>)>;

/// Where bands are written.
struct Line<'s> {
    write: WriteInParts<'s, DatasetLayout>,
    /// With the first error.
    outcome: Mutex<Result<()>>,
}

impl<'s> Line<'s> {
    /// Writes a band, with what the thread has in its cache of it. Those that wait for a filter may be helped by
    /// threads that are idle; where values are stored as they are, few calls to the system count for more.
    fn add(&self, band: Result<Requests<'s>>, filtered: bool) {
        let written = band.and_then(|band| match filtered {
            true => self.write.write(band),
            false => self.write.write_alone(band),
        });
        if let Err(error) = written {
            let mut outcome = lock(&self.outcome);
            if outcome.is_ok() {
                *outcome = Err(error);
            }
        }
    }

    fn has_failed(&self) -> bool {
        lock(&self.outcome).is_err()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many cells follow a neighbour in their row; `None` if columns do not ascend inside the array.
fn neighbours(rows: &RowGrid<'_>, executor: &dyn Executor) -> Option<usize> {
    let (neighbours, wrong) = (AtomicUsize::new(0), AtomicBool::new(false));
    executor.run(rows.bands(), &|band| match run_widely(Neighbours(rows, band)) {
        Some(found) => {
            neighbours.fetch_add(found, Ordering::Relaxed);
        }
        None => wrong.store(true, Ordering::Relaxed),
    });
    (!wrong.into_inner()).then(|| neighbours.into_inner())
}

/// Looks at the rows of a band.
struct Neighbours<'a>(&'a RowGrid<'a>, usize);

impl Work for Neighbours<'_> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        self.0.neighbours(self.1)
    }
}

/// A chunk whose rows are coming.
struct Growing {
    encoder: Encoder,
    values: Vec<u8>,
}

/// Cells that are scattered, or mostly stand in runs.
#[allow(clippy::large_enum_variant, reason = "all of a band are of one kind")]
enum Encoder {
    Cells(RowEncoder),
    Runs(RunEncoder),
}

/// The rows of chunks side by side.
struct Band<'a> {
    rows: &'a RowGrid<'a>,
    number: usize,
    grid: &'a ChunkGrid,
    source: &'a Source<'a>,
    aim: Aim,
    runs: bool,
}

impl Work for Band<'_> {
    type Output = Result<Vec<Encoded>>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        encode_band(self)
            .ok_or_else(|| Error::Internal("rows of chunks with too many cells".into()))
    }
}

#[inline(always)]
fn encode_band(band: Band<'_>) -> Option<Vec<Encoded>> {
    let Band { rows, number: band, grid, source, aim, runs } = band;
    let (&[height, side], &[_, across]) = (grid.chunk(), &*grid.counts()) else { return None };
    let element = source.element_size();
    let mut chunks = Vec::new();
    for (chunk, count) in (0..across).zip(rows.counts(band)) {
        // A little more than each gets.
        let room = (count + count / 8).min(rows.cells(rows.lines(band)).len());
        let first = u32::try_from(chunk.checked_mul(side)?).ok()?;
        let dims = [height, side];
        let encoder = match runs {
            true => Encoder::Runs(RunEncoder::new(dims, first, aim)?),
            false => Encoder::Cells(RowEncoder::new(dims, first, room, aim)?),
        };
        chunks.push(Growing { encoder, values: Vec::with_capacity(room * element + BLOCK) });
    }
    let (columns, bytes) = (rows.columns(), source.bytes());
    for lines in rows.stretches(band) {
        let steps = RowSteps::new(columns, rows.cells(lines.clone()));
        let chunks = &mut chunks;
        rows.split(lines, Pieces { columns, steps: &steps, bytes, element, chunks });
    }
    let mut encoded = Vec::with_capacity(chunks.len());
    let (mut numbers, mut encoders) = (Vec::new(), Vec::new());
    for (number, Growing { encoder, values }) in chunks.into_iter().enumerate() {
        if values.is_empty() {
            continue;
        }
        let chunk = Dims::from_slice(&[band as u64, number as u64]);
        match encoder {
            Encoder::Cells(encoder) => {
                encoders.push(encoder);
                numbers.push((chunk, values));
            }
            Encoder::Runs(encoder) => {
                encoded.push(Encoded { chunk, cells: encoder.finish(), values });
            }
        }
    }
    let pairs = RowEncoder::finish_all(encoders).into_iter().zip(numbers);
    encoded.extend(pairs.map(|(cells, (chunk, values))| Encoded { chunk, cells, values }));
    Some(encoded)
}

/// The chunks that pieces of rows go to.
struct Pieces<'a> {
    columns: &'a [u32],
    steps: &'a RowSteps<'a>,
    bytes: &'a [u8],
    element: usize,
    chunks: &'a mut [Growing],
}

impl TakeRows for Pieces<'_> {
    #[inline(always)]
    fn take(&mut self, chunk: usize, row: u32, range: Range<usize>) {
        let Growing { encoder, values } = &mut self.chunks[chunk];
        let (from, to) = (range.start * self.element, range.end * self.element);
        match encoder {
            Encoder::Cells(encoder) => encoder.row(row, self.steps, range),
            Encoder::Runs(encoder) => encoder.row(row, self.columns, range),
        }
        append_some::<_, BLOCK>(values, self.bytes, from..to);
    }
}
