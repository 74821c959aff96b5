//! Windows of sparse matrices as compressed rows or columns.
//!
//! A chunk keeps its cells row by row, and the values of a row's cells follow each other. So a chunk lists the cells
//! of the rows that are asked for, with where each row begins, and the lists of the chunks that lie beside each other
//! are put together row by row. Columns are the same lists, sorted by column.

mod cells;
mod columns;
mod joined;
mod rows;
mod whole;
mod window;

pub use self::window::{Window, WindowRows};

use super::DatasetState;
use crate::{Error, Result};
use pumice_cache::Executor;
use pumice_layout::buffer::Room;
use pumice_layout::{ReadRequest, RowPart, RowsFound, Sparse, SparseRead, Storage};
use pumice_space::{Dims, Division};
use pumice_types::{Conversion, Element};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// As small windows lie in few chunks, what is kept for each takes no memory of its own.
type Few<E> = SmallVec<[E; 2]>;

/// More chunks than that are not asked one by one, whether they are stored or not.
const MANY: u64 = 1 << 16;

/// So many cells are worth waking other threads.
const WORTH_SHARING: usize = 1 << 17;

/// Whether a window up to these rows and columns lies inside an array of shape `dims`.
fn check_extent(end: [u64; 2], dims: &[u64]) -> Result<()> {
    if dims.len() != 2 {
        return Err(Error::RankMismatch(format!(
            "compressed lines are those of a matrix, not of an array of rank {}",
            dims.len()
        )));
    }
    for ((end, size), what) in end.into_iter().zip(dims).zip(["row", "column"]) {
        if end > *size {
            let last = end - 1;
            return Err(Error::OutOfBounds(format!("{what} {last} of a matrix of {size} {what}s")));
        }
    }
    Ok(())
}

/// Compressed lines that are being filled; memory that they have is used again.
#[derive(Debug)]
pub struct LinesInto<'a, T> {
    /// Whether columns are compressed.
    pub by_columns: bool,
    /// Where each line begins, and where the last ends.
    pub pointers: &'a mut Vec<u64>,
    /// The place of each cell in its line, counted in the window.
    pub indices: &'a mut Vec<u64>,
    /// The value of each cell.
    pub values: &'a mut Vec<T>,
}

/// Takes what was found in a window, converted from the dataset's type.
pub trait LineSink: Send {
    /// Puts lines together.
    fn put(&mut self, plan: WindowPlan, dataset: &DatasetState) -> Result<()>;
}

impl<T: Element> LineSink for LinesInto<'_, T> {
    fn put(&mut self, plan: WindowPlan, dataset: &DatasetState) -> Result<()> {
        let conversion = Conversion::new(&dataset.datatype, &T::datatype())?;
        match self.by_columns {
            true => plan.put_columns(&conversion, &*dataset.cache().executor(), self),
            false => plan.put_rows(&conversion, &*dataset.cache().executor(), self),
        }
    }
}

/// The chunks that a window touches, and what was found there.
pub struct WindowPlan {
    /// What the chunks are.
    sparse: Arc<Sparse>,
    /// How many rows and columns the window has.
    shape: [u64; 2],
    /// Up to which rows and columns of the matrix it reaches.
    end: [u64; 2],
    /// Bands of chunks that have rows of the window.
    bands: Few<Band>,
    /// Columns of chunks that have columns of the window.
    stripes: Few<Stripe>,
    /// Rows of a chunk that are asked for, band after band.
    rows: PlannedRows,
    /// For each row of the window its band and its number there, unless rows ascend.
    places: Option<Vec<(u32, u32)>>,
    /// The answers, band by band.
    found: Few<Option<RowsFound>>,
    /// Rows of a chunk, and cells in a row.
    chunk: [u64; 2],
    /// Whether chunks have to say where each row begins.
    starts: bool,
}

/// The rows of a plan, ascending.
enum PlannedRows {
    /// All from a row of the matrix on.
    From(u64),
    /// The number of each within its chunk.
    Listed(Vec<u32>),
}

/// Chunks that lie beside each other.
struct Band {
    chunk: u64,
    /// Which of the rows are theirs.
    rows: Range<usize>,
}

/// Chunks that lie below each other, or some columns of them.
struct Stripe {
    chunk: u64,
    /// From the first to the last column that is asked for, within a chunk.
    columns: Range<u32>,
    /// Where columns of the chunk are in the window.
    index: Index,
}

/// From columns of a chunk to those of the window.
enum Index {
    /// Behind so many of the window, from the first that is asked for on.
    From(u64),
    /// For each column from the first that is asked for on; [`NOWHERE`] if it is not.
    Listed(Vec<u64>),
}

const NOWHERE: u64 = u64::MAX;

impl DatasetState {
    /// Reads a window of a matrix as compressed lines. `false` if its layout has no such lists, or if the window
    /// touches too many chunks: nothing has been read then.
    pub fn read_window<T: Element>(
        &self,
        window: &Window,
        mut into: LinesInto<'_, T>,
    ) -> Result<bool> {
        let _no_resize = self.gate();
        check_extent(window.end()?, &self.dims())?;
        if self.read_whole_rows(window, &mut into)? {
            return Ok(true);
        }
        let plan = self.plan_window(window)?;
        let Some(mut plan) = plan else { return Ok(false) };
        plan.starts = plan.needs_starts(into.by_columns);
        self.cache().read(&self.cached, plan.requests())?;
        into.put(plan, self)?;
        Ok(true)
    }

    /// The chunks that a window touches; `None` if the layout has no lists of cells,
    /// or if there are too many chunks.
    pub fn plan_window(&self, window: &Window) -> Result<Option<WindowPlan>> {
        let end = window.end()?;
        check_extent(end, &self.dims())?;
        let (Storage::Sparse(sparse), &[height, side]) =
            (&self.layout.storage, self.layout.geometry.chunk())
        else {
            return Ok(None);
        };
        if self.layout.geometry.cells_per_chunk() > u64::from(u32::MAX) {
            return Ok(None);
        }
        WindowPlan::new(sparse.clone(), window, end, [height, side])
    }
}

impl WindowPlan {
    /// Checks the window against the extent that the matrix has now.
    pub(super) fn check(&self, dims: &[u64]) -> Result<()> {
        check_extent(self.end, dims)
    }

    /// The plan of a window of a matrix with chunks of this shape.
    fn new(
        sparse: Arc<Sparse>,
        window: &Window,
        end: [u64; 2],
        chunk: [u64; 2],
    ) -> Result<Option<Self>> {
        let [height, side] = chunk;
        let mut sorted = Vec::new();
        let (bands, rows) = match &window.rows {
            WindowRows::Range(rows) => (bands_of(rows, height), PlannedRows::From(rows.start)),
            WindowRows::Listed(rows) if window.rows.ascends() => listed_bands(rows, height)?,
            WindowRows::Listed(rows) => {
                sorted.clone_from(rows);
                sorted.sort_unstable();
                sorted.dedup();
                listed_bands(&sorted, height)?
            }
        };
        let across: u64 = window
            .columns
            .iter()
            .filter(|range| !range.is_empty())
            .map(|range| (range.end - 1) / side - range.start / side + 1)
            .sum();
        if across.saturating_mul(bands.len() as u64) > MANY {
            return Ok(None);
        }
        let stripes = stripes(&window.columns, side);
        let places = match &window.rows {
            WindowRows::Listed(rows) if !sorted.is_empty() => {
                let place = |row: &u64| {
                    let at = sorted.binary_search(row).unwrap_or_default();
                    let band = bands.partition_point(|band| band.rows.end <= at);
                    (band as u32, (at - bands[band].rows.start) as u32)
                };
                Some(rows.iter().map(place).collect())
            }
            _ => None,
        };
        let mut found = Few::new();
        found.resize_with(bands.len() * stripes.len(), || None);
        let shape = [window.rows.len() as u64, window.width()];
        let starts = true;
        Ok(Some(Self { sparse, shape, end, bands, stripes, rows, places, found, chunk, starts }))
    }

    /// What is asked of the chunks.
    pub(super) fn requests(&mut self) -> impl Iterator<Item = (Dims, ReadRequest<'_>)> {
        let Self { sparse, bands, stripes, rows, found, chunk, starts, .. } = self;
        let (sparse, stripes, rows, height) = (&*sparse, &*stripes, &*rows, chunk[0]);
        let starts = *starts;
        let across = stripes.len().max(1);
        bands.iter().zip(found.chunks_mut(across)).flat_map(move |(band, found)| {
            let part = match rows {
                PlannedRows::Listed(rows) => RowPart::Listed(&rows[band.rows.clone()]),
                PlannedRows::From(first) => {
                    let top = (first + band.rows.start as u64 - band.chunk * height) as u32;
                    RowPart::Range(top..top + band.rows.len() as u32)
                }
            };
            stripes.iter().zip(found).map(move |(stripe, found)| {
                let key = Dims::from_slice(&[band.chunk, stripe.chunk]);
                let (rows, columns) = (part.clone(), stripe.columns.clone());
                (key, sparse.ask(SparseRead::Rows { rows, columns, starts, found }))
            })
        })
    }

    /// Whether rows are found by where they begin in the list of a chunk's cells, and not by the numbers of the cells.
    fn lists_rows(&self) -> bool {
        let cells = self.chunk[0].saturating_mul(self.chunk[1]);
        matches!(self.rows, PlannedRows::Listed(_)) || cells > Division::MOST
    }

    /// Whether chunks have to say where rows begin. Where rows are joined, cells tell.
    fn needs_starts(&self, by_columns: bool) -> bool {
        let joined = self.places.is_none()
            && self.stripes.len() > 1
            && self.stripes.iter().all(|stripe| matches!(stripe.index, Index::From(_)));
        if by_columns { self.lists_rows() } else { !joined }
    }

    /// Which row of its chunks a row of a band is.
    #[inline]
    fn row(&self, band: &Band, at: usize) -> u64 {
        match &self.rows {
            PlannedRows::Listed(rows) => u64::from(rows[band.rows.start + at]),
            PlannedRows::From(first) => {
                first + (band.rows.start + at) as u64 - band.chunk * self.chunk[0]
            }
        }
    }

    /// How many cells were found.
    fn count(&self) -> usize {
        self.found.iter().flatten().map(|found| found.cells.len()).sum()
    }
}

/// The bands of chunks of so many rows that rows which follow each other lie in.
fn bands_of(rows: &Range<u64>, height: u64) -> Few<Band> {
    if rows.is_empty() {
        return Few::new();
    }
    let band = |chunk: u64| {
        let first = rows.start.max(chunk * height) - rows.start;
        let end = rows.end.min((chunk + 1).saturating_mul(height)) - rows.start;
        Band { chunk, rows: first as usize..end as usize }
    };
    (rows.start / height..=(rows.end - 1) / height).map(band).collect()
}

/// The bands of chunks of so many rows that ascending rows lie in, and the number of each row within its chunk.
fn listed_bands(wanted: &[u64], height: u64) -> Result<(Few<Band>, PlannedRows)> {
    let mut bands: Few<Band> = Few::new();
    let mut rows = pumice_medium::reserved(wanted.len())?;
    for &row in wanted {
        let at = rows.len();
        match bands.last_mut() {
            // As rows ascend, most are in the band of the one before, which takes no division.
            Some(band) if row - band.chunk * height < height => band.rows.end = at + 1,
            _ => bands.push(Band { chunk: row / height, rows: at..at + 1 }),
        }
        rows.push((row - bands[bands.len() - 1].chunk * height) as u32);
    }
    Ok((bands, PlannedRows::Listed(rows)))
}

/// The columns of chunks of rows of `side` cells that have some of these columns.
fn stripes(columns: &[Range<u64>], side: u64) -> Few<Stripe> {
    let mut stripes: Few<Stripe> = Few::new();
    let mut before = 0;
    for range in columns.iter().filter(|range| !range.is_empty()) {
        for chunk in range.start / side..=(range.end - 1) / side {
            let origin = chunk * side;
            let start = range.start.max(origin);
            let end = range.end.min(origin.saturating_add(side));
            let part = (start - origin) as u32..(end - origin) as u32;
            let here = before;
            before += part.len() as u64;
            match stripes.last_mut().filter(|stripe| stripe.chunk == chunk) {
                Some(stripe) => stripe.add(part, here),
                None => stripes.push(Stripe { chunk, columns: part, index: Index::From(here) }),
            }
        }
    }
    stripes
}

impl Stripe {
    /// Adds columns behind those that are there, `before` of the window before them.
    fn add(&mut self, part: Range<u32>, before: u64) {
        let mut listed = match std::mem::replace(&mut self.index, Index::From(0)) {
            Index::From(index) => (index..).take(self.columns.len()).collect(),
            Index::Listed(listed) => listed,
        };
        listed.resize((part.start - self.columns.start) as usize, NOWHERE);
        listed.extend((before..).take(part.len()));
        (self.columns.end, self.index) = (part.end, Index::Listed(listed));
    }
}

/// What each chunk has, as elements of memory.
fn converted<'a, T: Element>(
    found: &'a [Option<RowsFound>],
    conversion: &Conversion,
) -> Result<Few<Cow<'a, [u8]>>> {
    let one = |found: &'a Option<RowsFound>| {
        let bytes = found.as_ref().map_or(&[][..], |found| &found.values);
        if conversion.is_noop() {
            return Ok(Cow::Borrowed(bytes));
        }
        let count = bytes.len() / conversion.source_size();
        let mut elements = pumice_medium::zeroed(count * size_of::<T>())?;
        conversion.convert(bytes, &mut elements)?;
        Ok(Cow::Owned(elements))
    };
    found.iter().map(one).collect()
}

/// Room for so many elements, all of which will be written, in the memory that a list has if that is enough.
fn fresh<E: bytemuck::Pod>(list: &mut Vec<E>, count: usize) -> Result<Room<E>> {
    Room::reusing(std::mem::take(list), count)
}

/// Makes a list one of so many zeros. Memory that is fresh from the system is zero, and left to whoever fills it first.
fn zeros<E: bytemuck::Pod>(list: &mut Vec<E>, count: usize) -> Result<()> {
    if list.capacity() < count {
        *list = pumice_medium::zeroed(count)?;
        return Ok(());
    }
    list.clear();
    list.resize(count, E::zeroed());
    Ok(())
}

/// Does some work for each task, on several threads if there are many cells.
fn run<F: Send>(
    executor: &dyn Executor,
    cells: usize,
    tasks: &[Mutex<F>],
    work: impl Fn(&mut F) + Sync,
) {
    let work =
        |number: usize| work(&mut tasks[number].lock().unwrap_or_else(PoisonError::into_inner));
    match cells < WORTH_SHARING {
        true => (0..tasks.len()).for_each(work),
        false => executor.run(tasks.len(), &work),
    }
}

fn into_inner<F>(task: Mutex<F>) -> F {
    task.into_inner().unwrap_or_else(PoisonError::into_inner)
}
