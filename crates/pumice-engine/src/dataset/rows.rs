//! Compressed rows on their way to a sparse dataset: split by chunk and encoded in one pass.
//!
//! A band of chunks side by side is one task. It reads its rows once, in order, in portions. The
//! differences between columns are computed for a whole portion and then copied with the values,
//! piece by piece, to the growing chunks. A new chunk takes both as they are.

use super::DatasetState;
use crate::{Error, Result};
use pumice_bytes::append_some;
use pumice_cache::WriteInParts;
use pumice_filter::location::{Aim, RowBreaks, RowCells, RowEncoder, RowSteps, RunEncoder};
use pumice_layout::sparse::{LOCATIONS, Sparse};
use pumice_layout::{Hdf5, MANY, Source, SparseWrite, WriteRequest};
use pumice_space::{ChunkGrid, Dims, Points, RowGrid, TakeRows};
use pumice_wide::{Work, run_widely};
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
    /// Writes compressed rows. Returns `false`, and writes nothing, if the points are no compressed
    /// rows or the chunks cannot take them.
    ///
    /// Bands are written one by one, as one request. The bands of a large write are stored as soon
    /// as they are encoded, while another thread encodes the next.
    pub(super) fn write_rows(
        &self,
        sparse: &Sparse,
        points: &Points<'_>,
        grid: &ChunkGrid,
        source: &Source<'_>,
    ) -> Result<bool> {
        if !sparse.takes_rows() {
            return Ok(false);
        }
        let table = sparse.table();
        let (filtered, aim) = (sparse.filters_values(), sparse.pipeline(LOCATIONS).location_aim());
        let Some(rows) = RowGrid::new(points, grid) else { return Ok(false) };
        let executor = self.cache().executor();
        let cells = |band| rows.cells(rows.lines(band)).len();
        if grid.counts()[1] > MOST_CHUNKS || (0..rows.bands()).any(|band| cells(band) > MOST_CELLS)
        {
            return Ok(false);
        }
        let many = source.bytes().len() >= MANY;
        let full = (0..rows.bands()).filter(|&band| cells(band) > 0);
        let chunk = |band, number| Dims::from_slice(&[band as u64, number]);
        let chunks: Vec<Dims> = full
            .flat_map(|band| (0..grid.counts()[1]).map(move |number| chunk(band, number)))
            .collect();
        let new = many && !filtered && table.lookup(&chunks)?.iter().all(Option::is_none);
        let write = self.cache().begin_write(&self.cached, chunks)?;
        let line = Line { write, outcome: Mutex::new(Ok(())) };
        let look = Look::new(&rows);
        // The first band makes room; no other waits for that.
        let made = AtomicBool::new(!new);
        executor.run(rows.bands(), &|band| {
            let Some(neighbours) = look.finish() else { return };
            if !made.swap(true, Ordering::Relaxed) {
                self.medium.expect(sparse.stored_values(rows.columns().len()));
            }
            if line.has_failed() {
                return;
            }
            let runs = 2 * neighbours > rows.columns().len();
            let whole = many && rows.is_whole(band);
            let request = |Encoded { chunk, cells, values }| {
                (
                    chunk,
                    sparse.change(SparseWrite::Rows { part: Some((cells, values)), whole, source }),
                )
            };
            let parts = run_widely(Band { rows: &rows, number: band, grid, source, aim, runs });
            line.add(parts.map(|parts| parts.into_iter().map(request).collect()), filtered);
        });
        let outcome = line.outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
        outcome.map(|()| look.finish().is_some())
    }
}

/// The write requests of a band.
type Requests<'s> = Vec<(Dims, WriteRequest<'s>)>;

/// The line in which bands are written.
struct Line<'s> {
    write: WriteInParts<'s, Hdf5>,
    /// The first error.
    outcome: Mutex<Result<()>>,
}

impl<'s> Line<'s> {
    /// Writes a band on the thread that made it, whose processor cache holds it. Idle threads may
    /// help with filters; without filters, few system calls matter more.
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

/// A look at all rows before any is written, by as many threads as come.
struct Look<'a> {
    rows: &'a RowGrid<'a>,
    /// The next band to check, and how many are checked.
    next: AtomicUsize,
    done: AtomicUsize,
    /// The number of cells that follow a neighbour in their row.
    neighbours: AtomicUsize,
    wrong: AtomicBool,
}

impl<'a> Look<'a> {
    fn new(rows: &'a RowGrid<'a>) -> Self {
        let zero = AtomicUsize::default;
        let (next, done, neighbours, wrong) = (zero(), zero(), zero(), AtomicBool::default());
        Self { rows, next, done, neighbours, wrong }
    }

    /// Checks bands until none is left, and waits for the threads that check the last ones; those
    /// wait for nobody. Returns how many cells follow a neighbour; `None` if columns do not ascend
    /// inside the array.
    fn finish(&self) -> Option<usize> {
        loop {
            let band = self.next.fetch_add(1, Ordering::Relaxed);
            if band >= self.rows.bands() {
                break;
            }
            let mut looked = Looked { look: self, found: None };
            looked.found = run_widely(Neighbours(self.rows, band));
        }
        while self.done.load(Ordering::Acquire) < self.rows.bands() {
            std::hint::spin_loop();
            std::thread::yield_now();
        }
        let wrong = self.wrong.load(Ordering::Relaxed);
        (!wrong).then(|| self.neighbours.load(Ordering::Relaxed))
    }
}

/// Records the result of checking a band, also if the check ended early.
struct Looked<'a> {
    look: &'a Look<'a>,
    found: Option<usize>,
}

impl Drop for Looked<'_> {
    fn drop(&mut self) {
        match self.found {
            Some(found) => {
                self.look.neighbours.fetch_add(found, Ordering::Relaxed);
            }
            None => self.look.wrong.store(true, Ordering::Relaxed),
        }
        self.look.done.fetch_add(1, Ordering::Release);
    }
}

/// Checks the rows of a band.
struct Neighbours<'a>(&'a RowGrid<'a>, usize);

impl Work for Neighbours<'_> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        self.0.neighbours(self.1)
    }
}

/// A chunk that gets rows.
struct Growing<E> {
    encoder: E,
    values: Vec<u8>,
}

/// Encodes the cells of a chunk.
trait Encoder: Sized {
    /// The form of columns before they are split by chunk.
    type Known<'a>;

    /// An encoder for a chunk of `dims` cells that begins at column `first` and will have about
    /// `count` cells.
    fn new(dims: [u64; 2], first: u32, count: usize, aim: Aim) -> Option<Self>;

    fn look_at(columns: &[u32], range: Range<usize>) -> Self::Known<'_>;

    fn put(&mut self, row: u32, known: &Self::Known<'_>, range: Range<usize>);

    fn finish_all(encoders: Vec<Self>) -> Vec<RowCells>;
}

/// Encodes scattered cells.
impl Encoder for RowEncoder {
    type Known<'a> = RowSteps<'a>;

    fn new(dims: [u64; 2], first: u32, count: usize, aim: Aim) -> Option<Self> {
        RowEncoder::new(dims, first, count, aim)
    }

    #[inline(always)]
    fn look_at(columns: &[u32], range: Range<usize>) -> RowSteps<'_> {
        RowSteps::new(columns, range)
    }

    #[inline(always)]
    fn put(&mut self, row: u32, known: &RowSteps<'_>, range: Range<usize>) {
        self.row(row, known, range);
    }

    fn finish_all(encoders: Vec<Self>) -> Vec<RowCells> {
        RowEncoder::finish_all(encoders)
    }
}

/// Encodes cells that mostly stand in runs.
impl Encoder for RunEncoder {
    type Known<'a> = RowBreaks<'a>;

    fn new(dims: [u64; 2], first: u32, _: usize, aim: Aim) -> Option<Self> {
        RunEncoder::new(dims, first, aim)
    }

    #[inline(always)]
    fn look_at(columns: &[u32], range: Range<usize>) -> RowBreaks<'_> {
        RowBreaks::new(columns, range)
    }

    #[inline(always)]
    fn put(&mut self, row: u32, known: &RowBreaks<'_>, range: Range<usize>) {
        self.row(row, known, range);
    }

    fn finish_all(encoders: Vec<Self>) -> Vec<RowCells> {
        RunEncoder::finish_all(encoders)
    }
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
        let encoded = match self.runs {
            true => encode_band::<RunEncoder>(self),
            false => encode_band::<RowEncoder>(self),
        };
        encoded.ok_or_else(|| Error::Internal("rows of chunks with too many cells".into()))
    }
}

#[inline(always)]
fn encode_band<E: Encoder>(band: Band<'_>) -> Option<Vec<Encoded>> {
    let Band { rows, number: band, grid, source, aim, .. } = band;
    let (&[height, side], &[_, across]) = (grid.chunk(), &*grid.counts()) else { return None };
    let element = source.element_size();
    let mut chunks = Vec::new();
    for (chunk, count) in (0..across).zip(rows.counts(band)) {
        // A little more than each gets.
        let room = (count + count / 8).min(rows.cells(rows.lines(band)).len());
        let first = u32::try_from(chunk.checked_mul(side)?).ok()?;
        let encoder = E::new([height, side], first, room, aim)?;
        chunks.push(Growing { encoder, values: Vec::with_capacity(room * element + BLOCK) });
    }
    let (columns, bytes) = (rows.columns(), source.bytes());
    for lines in rows.stretches(band) {
        let known = E::look_at(columns, rows.cells(lines.clone()));
        rows.split(lines, Pieces { known, bytes, element, chunks: &mut chunks });
    }
    let (mut encoders, mut numbers) = (Vec::new(), Vec::new());
    for (number, Growing { encoder, values }) in chunks.into_iter().enumerate() {
        if !values.is_empty() {
            encoders.push(encoder);
            numbers.push((Dims::from_slice(&[band as u64, number as u64]), values));
        }
    }
    let pairs = E::finish_all(encoders).into_iter().zip(numbers);
    Some(pairs.map(|(cells, (chunk, values))| Encoded { chunk, cells, values }).collect())
}

/// The chunks that pieces of rows go to.
struct Pieces<'a, 'k, E: Encoder> {
    known: E::Known<'k>,
    bytes: &'a [u8],
    element: usize,
    chunks: &'a mut [Growing<E>],
}

impl<E: Encoder> TakeRows for Pieces<'_, '_, E> {
    #[inline(always)]
    fn take(&mut self, chunk: usize, row: u32, range: Range<usize>) {
        let Growing { encoder, values } = &mut self.chunks[chunk];
        let (from, to) = (range.start * self.element, range.end * self.element);
        encoder.put(row, &self.known, range);
        append_some::<_, BLOCK>(values, self.bytes, from..to);
    }
}
