//! What is asked of a sparse chunk alone: cells that are named one by one, columns of cells, rows.
//!
//! Only a [`Sparse`] storage makes these requests, so that no program can send them to another one.

use super::{ReadRequest, Source, Target, WriteRequest};
use crate::Sparse;
use pumice_filter::location::{CellVisitor, RowCells};
use pumice_medium::Result;
use pumice_space::{CellSet, Dims, FoundCells, PointBand, PointPart, Run, Selection};
use std::ops::Range;

/// A read that sparse chunks answer.
pub enum SparseRead<'a> {
    /// Places the values of cells that are named one by one, and the fill value where there is none.
    Points {
        /// Which cells go where.
        part: PointPart<'a>,
        /// The buffer.
        target: &'a Target<'a>,
    },
    /// Places the defined cells into columns.
    Cells {
        /// Which cells of the chunk are asked for; `None` for all.
        cells: Option<&'a Selection>,
        /// The coordinates of the chunk's first cell.
        origin: Dims,
        /// The place of the chunk's cells if it has as many, and all are asked for.
        place: Option<Range<usize>>,
        /// Whether values are asked for.
        values: bool,
        /// Whether so much is read that a chunk which is put into its place is not worth keeping.
        passes: bool,
        /// The columns.
        sink: &'a dyn CellSink,
        /// What became of it.
        taken: &'a mut Taken,
    },
    /// Lists the defined cells of some rows of a matrix's chunk, which has fewer than 2^32 cells.
    Rows {
        /// Which rows of the chunk.
        rows: RowPart<'a>,
        /// The columns, which are the same in all rows.
        columns: Range<u32>,
        /// Whether it has to be said where each row begins.
        starts: bool,
        /// The answer.
        found: &'a mut Option<RowsFound>,
    },
}

/// A change of sparse chunks: cells that are named one by one, in the form in which they could be split by
/// chunk (`pumice-engine/src/dataset/batch.rs`).
pub enum SparseWrite<'a> {
    /// Defines cells with values from the caller's buffer.
    Points {
        /// Which cells come from where.
        part: PointPart<'a>,
        /// The buffer.
        source: &'a Source<'a>,
    },
    /// Defines cells that have been put together with their values.
    Band {
        /// The cells and their values in the memory's type; taken by the chunk.
        band: PointBand,
        /// How values are converted.
        source: &'a Source<'a>,
    },
    /// Defines cells that have been encoded.
    Rows {
        /// The cells and their values in the memory's type; taken by the chunk.
        part: Option<(RowCells, Vec<u8>)>,
        /// Whether these are all the rows of a chunk, among many: if it is new, it is stored at once.
        whole: bool,
        /// How values are converted.
        source: &'a Source<'a>,
    },
    /// Makes cells undefined.
    Erase {
        /// Which cells.
        part: PointPart<'a>,
    },
}

impl Sparse {
    /// A request to read a chunk of this storage.
    pub fn ask<'a>(&self, read: SparseRead<'a>) -> ReadRequest<'a> {
        ReadRequest::Sparse(read)
    }

    /// A request to change a chunk of this storage.
    pub fn change<'a>(&self, write: SparseWrite<'a>) -> WriteRequest<'a> {
        WriteRequest::Sparse(write)
    }
}

/// Rows of a chunk, ascending.
#[derive(Clone, Debug)]
pub enum RowPart<'a> {
    /// Those that follow each other.
    Range(Range<u32>),
    /// Any others.
    Listed(&'a [u32]),
}

impl RowPart<'_> {
    /// How many rows there are.
    pub fn count(&self) -> usize {
        match self {
            Self::Range(rows) => rows.len(),
            Self::Listed(rows) => rows.len(),
        }
    }

    /// Some columns of these rows, as cells of a chunk of `total` cells with rows of `width`.
    pub fn cells(&self, total: u64, width: u64, columns: &Range<u32>) -> Result<CellSet> {
        let (left, len) = (u64::from(columns.start), columns.len() as u64);
        let run = |row: u32| Run { start: u64::from(row) * width + left, len };
        Ok(match self {
            Self::Range(rows) => CellSet::from_runs(total, rows.clone().map(run))?,
            Self::Listed(rows) => CellSet::from_runs(total, rows.iter().copied().map(run))?,
        })
    }
}

/// The defined cells of some rows of a chunk, row by row.
#[derive(Debug, Default)]
pub struct RowsFound {
    /// The cells, by their number in the chunk.
    pub cells: Vec<u32>,
    /// Where the cells of each row begin, and where those of the last end; perhaps empty if nobody has asked for it.
    pub starts: Vec<u32>,
    /// The value of each cell, in the file's type.
    pub values: Vec<u8>,
}

impl RowsFound {
    /// Which of the cells are those of a row.
    #[inline]
    pub fn row(&self, at: usize) -> Range<usize> {
        self.starts[at] as usize..self.starts[at + 1] as usize
    }
}

/// Columns of coordinates and values that take the cells of a chunk.
pub trait CellSink: Sync {
    /// Puts cells of a chunk of shape `dims` at `origin`, and their values in the file's type, into
    /// `place`, which is theirs alone.
    fn put(
        &self,
        place: Range<usize>,
        dims: &[u64],
        origin: &[u64],
        cells: &FoundCells,
        values: &[u8],
    ) -> Result<()>;

    /// Lets `send` show the cells of a chunk to a visitor that puts them into `place`, which is theirs
    /// alone. Whether that has happened: not if there is another number of cells, or if some lie
    /// outside the array, and then what was put means nothing.
    fn receive(
        &self,
        place: Range<usize>,
        dims: &[u64],
        origin: &[u64],
        send: &mut dyn FnMut(&mut dyn CellVisitor) -> Result<bool>,
    ) -> Result<bool>;

    /// Puts the values of cells that have been received, in the file's type.
    fn put_values(&self, place: Range<usize>, values: &[u8]) -> Result<()>;

    /// Lets `read` write the values of cells to where they belong, if they arrive there as they are in
    /// the file; whether they do.
    fn read_values(
        &self,
        place: Range<usize>,
        read: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<bool>;
}

/// What became of the cells of a chunk.
#[derive(Debug)]
pub enum Taken {
    /// There are none.
    None,
    /// They are in their place.
    Placed,
    /// They had no place: cells and values, in the file's type.
    Kept(FoundCells, Vec<u8>),
}
