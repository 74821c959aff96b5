//! Windows of sparse matrices as compressed rows or columns.
//!
//! A chunk keeps its cells row by row, and the values of a row's cells follow each other. So a chunk lists the cells
//! of the rows that are asked for, with where each row begins, and the lists of the chunks that lie beside each other
//! are put together row by row. Columns are the same lists, sorted by column.

mod columns;

use super::DatasetState;
use crate::layout::{ReadRequest, RowsFound, Storage};
use crate::{Error, Result};
use pumice_cache::Executor;
use pumice_space::Dims;
use pumice_types::{Conversion, Element};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// More chunks than that are not asked one by one, whether they are stored or not.
const MANY: u64 = 1 << 16;

/// So many cells are worth waking other threads.
const WORTH_SHARING: usize = 1 << 17;

/// Which part of a matrix is read.
#[derive(Clone, Debug)]
pub struct Window {
    /// The rows, in the order in which they are wanted. One may be there several times.
    pub rows: Vec<u64>,
    /// The columns, ascending.
    pub columns: Vec<Range<u64>>,
}

impl Window {
    /// How many columns there are.
    pub fn width(&self) -> u64 {
        self.columns.iter().map(|range| range.end - range.start).sum()
    }

    /// Up to which rows and columns it reaches; an error if its columns do not ascend.
    fn end(&self) -> Result<[u64; 2]> {
        let mut before = 0;
        for range in &self.columns {
            if range.start < before || range.end < range.start {
                return Err(Error::Invalid(format!("columns {range:?} behind column {before}")));
            }
            before = range.end;
        }
        Ok([self.rows.iter().max().map_or(0, |row| row.saturating_add(1)), before])
    }
}

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
    /// How many rows and columns the window has.
    shape: [u64; 2],
    /// Up to which rows and columns of the matrix it reaches.
    end: [u64; 2],
    /// Bands of chunks that have rows of the window.
    bands: Vec<Band>,
    /// Columns of chunks that have columns of the window.
    stripes: Vec<Stripe>,
    /// Rows of a chunk that are asked for, band after band.
    rows: Vec<u32>,
    /// For each row of the window its band and its number there, unless rows ascend.
    places: Option<Vec<(u32, u32)>>,
    /// The answers, band by band.
    found: Vec<Option<RowsFound>>,
    /// Cells in a row of a chunk.
    side: u64,
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
        let plan = self.plan_window(window, into.by_columns)?;
        let Some(mut plan) = plan else { return Ok(false) };
        self.cache().read(&self.cached, plan.requests())?;
        into.put(plan, self)?;
        Ok(true)
    }

    /// The chunks that a window touches, to be read by rows or by columns; `None` if the layout has no lists of cells,
    /// or if there are too many chunks.
    pub fn plan_window(&self, window: &Window, by_columns: bool) -> Result<Option<WindowPlan>> {
        let end = window.end()?;
        check_extent(end, &self.dims())?;
        let (Storage::Sparse(..), &[height, side]) =
            (&self.layout.storage, self.layout.geometry.chunk())
        else {
            return Ok(None);
        };
        if self.layout.geometry.cells_per_chunk() > u64::from(u32::MAX) {
            return Ok(None);
        }
        WindowPlan::new(window, end, [height, side], by_columns)
    }
}

impl WindowPlan {
    /// Checks the window against the extent that the matrix has now.
    pub(super) fn check(&self, dims: &[u64]) -> Result<()> {
        check_extent(self.end, dims)
    }

    /// The plan of a window of a matrix with chunks of `height` rows of `side` cells.
    fn new(
        window: &Window,
        end: [u64; 2],
        [height, side]: [u64; 2],
        by_columns: bool,
    ) -> Result<Option<Self>> {
        let ascends = window.rows.is_sorted_by(|one, next| one < next);
        let mut sorted = Vec::new();
        if !ascends {
            sorted.clone_from(&window.rows);
            sorted.sort_unstable();
            sorted.dedup();
        }
        let wanted = if ascends { &window.rows } else { &sorted };
        let mut bands: Vec<Band> = Vec::new();
        let mut rows = crate::buffer::reserved(wanted.len())?;
        for &row in wanted {
            let at = rows.len();
            match bands.last_mut() {
                // As rows ascend, most are in the band of the one before, which takes no division.
                Some(band) if row - band.chunk * height < height => band.rows.end = at + 1,
                _ => bands.push(Band { chunk: row / height, rows: at..at + 1 }),
            }
            rows.push((row - bands[bands.len() - 1].chunk * height) as u32);
        }
        let across: u64 = window
            .columns
            .iter()
            .filter(|range| !range.is_empty())
            .map(|range| (range.end - 1) / side - range.start / side + 1)
            .sum();
        let requests = |across: u64| across.saturating_mul(bands.len() as u64);
        if requests(across) > MANY {
            return Ok(None);
        }
        let parts = across + window.width() / columns::AT_ONCE;
        let at_once = match by_columns && requests(parts) <= MANY {
            true => columns::AT_ONCE,
            false => u64::MAX,
        };
        let stripes = stripes(&window.columns, side, at_once);
        let places = (!ascends).then(|| {
            let place = |row: &u64| {
                let at = sorted.binary_search(row).unwrap_or_default();
                let band = bands.partition_point(|band| band.rows.end <= at);
                (band as u32, (at - bands[band].rows.start) as u32)
            };
            window.rows.iter().map(place).collect()
        });
        let mut found = Vec::new();
        found.resize_with(bands.len() * stripes.len(), || None);
        let shape = [window.rows.len() as u64, window.width()];
        Ok(Some(Self { shape, end, bands, stripes, rows, places, found, side }))
    }

    /// What is asked of the chunks.
    pub(super) fn requests(&mut self) -> impl Iterator<Item = (Dims, ReadRequest<'_>)> {
        let Self { bands, stripes, rows, found, .. } = self;
        let (stripes, rows) = (&*stripes, &*rows);
        let across = stripes.len().max(1);
        bands.iter().zip(found.chunks_mut(across)).flat_map(move |(band, found)| {
            stripes.iter().zip(found).map(move |(stripe, found)| {
                let key = Dims::from_slice(&[band.chunk, stripe.chunk]);
                let (rows, columns) = (&rows[band.rows.clone()], stripe.columns.clone());
                (key, ReadRequest::Rows { rows, columns, found })
            })
        })
    }

    /// How many cells were found.
    fn count(&self) -> usize {
        self.found.iter().flatten().map(|found| found.cells.len()).sum()
    }

    /// Puts rows together, in the order in which they are wanted.
    fn put_rows<T: Element>(
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
        zeros(pointers, self.shape[0] as usize + 1)?;
        zeros(indices, self.count())?;
        zeros(values, self.count())?;
        let across = self.stripes.len().max(1);
        let (mut before, mut tasks) = (0, Vec::with_capacity(self.bands.len()));
        let (mut pointers, mut indices, mut values) =
            (&mut pointers[1..], &mut indices[..], &mut values[..]);
        for (number, band) in self.bands.iter().enumerate() {
            let found = self.found.get(number * across..(number + 1) * across).unwrap_or_default();
            let count = found.iter().flatten().map(|found| found.cells.len()).sum();
            let (ends, later) = pointers.split_at_mut(band.rows.len());
            pointers = later;
            let (columns, later) = indices.split_at_mut(count);
            indices = later;
            let (these, later) = values.split_at_mut(count);
            values = later;
            tasks.push(Mutex::new((band, found, before, ends, columns, these, Ok(()))));
            before += count as u64;
        }
        run(
            executor,
            self.count(),
            &tasks,
            |(band, found, before, ends, columns, values, done)| {
                *done = self.put_band(band, found, *before, conversion, ends, columns, values);
            },
        );
        tasks.into_iter().try_for_each(|task| into_inner(task).6)
    }

    /// Puts the rows of a band, `before` cells behind the first of the window.
    #[allow(clippy::too_many_arguments)]
    fn put_band<T: Element>(
        &self,
        band: &Band,
        found: &[Option<RowsFound>],
        before: u64,
        conversion: &Conversion,
        ends: &mut [u64],
        indices: &mut [u64],
        values: &mut [T],
    ) -> Result<()> {
        let (size, mut done) = (conversion.source_size(), 0);
        if let [Some(found)] = found {
            // One chunk has all of a row, and its rows come one after another.
            conversion.convert(&found.values, bytemuck::cast_slice_mut(values))?;
        }
        for (at, (&row, end)) in self.rows[band.rows.clone()].iter().zip(ends).enumerate() {
            for (stripe, one) in self.stripes.iter().zip(found) {
                let (Some(one), Index::From(index)) = (one, &stripe.index) else { continue };
                let range = one.starts[at]..one.starts[at + 1];
                let first = u64::from(row) * self.side + u64::from(stripe.columns.start);
                let shift = index.wrapping_sub(first);
                let place = done..done + range.len();
                let cells = one.cells[range.clone()].iter();
                for (to, &cell) in indices[place.clone()].iter_mut().zip(cells) {
                    *to = u64::from(cell).wrapping_add(shift);
                }
                if found.len() > 1 {
                    let bytes = &one.values[range.start * size..range.end * size];
                    conversion.convert(bytes, bytemuck::cast_slice_mut(&mut values[place]))?;
                }
                done += range.len();
            }
            *end = before + done as u64;
        }
        Ok(())
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
            let row = u64::from(self.rows[self.bands[band].rows.start + at]);
            let found = &self.found[band * across..(band + 1) * across];
            for (stripe, found) in self.stripes.iter().zip(found) {
                let Some(found) = found else { continue };
                stripe.put_row(row * self.side, at, found, conversion, indices, values)?;
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
        let range = found.starts[at]..found.starts[at + 1];
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

/// The columns of chunks of rows of `side` cells that have some of these columns, up to `at_once` of them in each.
fn stripes(columns: &[Range<u64>], side: u64, at_once: u64) -> Vec<Stripe> {
    let mut stripes: Vec<Stripe> = Vec::new();
    let mut before = 0;
    for range in columns.iter().filter(|range| !range.is_empty()) {
        for chunk in range.start / side..=(range.end - 1) / side {
            let origin = chunk * side;
            let start = range.start.max(origin);
            let end = range.end.min(origin.saturating_add(side));
            let mut rest = (start - origin) as u32..(end - origin) as u32;
            while !rest.is_empty() {
                let reach = |first: u32| at_once.saturating_add(u64::from(first)).min(side) as u32;
                let last = stripes.last_mut().filter(|stripe| {
                    stripe.chunk == chunk && rest.start < reach(stripe.columns.start)
                });
                let first = last.as_ref().map_or(rest.start, |stripe| stripe.columns.start);
                let part = rest.start..rest.end.min(reach(first));
                rest.start = part.end;
                let here = before;
                before += part.len() as u64;
                match last {
                    Some(stripe) => stripe.add(part, here),
                    None => stripes.push(Stripe { chunk, columns: part, index: Index::From(here) }),
                }
            }
        }
    }
    stripes
}

impl Stripe {
    /// How many columns of the window they have.
    fn width(&self) -> usize {
        match &self.index {
            Index::From(_) => self.columns.len(),
            Index::Listed(listed) => listed.iter().filter(|column| **column != NOWHERE).count(),
        }
    }

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

/// Makes a list one of so many zeros. Memory that is fresh from the system is zero, and left to whoever fills it first.
fn zeros<E: bytemuck::Pod>(list: &mut Vec<E>, count: usize) -> Result<()> {
    if list.capacity() < count {
        *list = crate::buffer::zeroed(count)?;
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
