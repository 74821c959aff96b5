//! What a dataset asks of one chunk: the pieces that the cache hands to a layout.
//!
//! A request names cells of the chunk and places in the caller's memory (a [`ChunkPart`]), or only
//! cells. Erasing and asking for defined cells are requests like any other, so that they keep their
//! order among reads and writes.

mod source;
mod target;

pub use source::{Lists, Source};
pub use target::Target;
pub use target::{Piece, piece_of};

use pumice_cache::{Intent, Part};
use pumice_filter::location::{CellVisitor, RowCells};
use pumice_medium::{Error, Result};
use pumice_space::{CellSet, ChunkPart, Dims, FoundCells, PointBand, PointPart, Run, Selection};
use pumice_types::Heaped;
use std::ops::Range;

/// One chunk's share of a read.
pub enum ReadRequest<'a> {
    /// Places values, and the fill value where there is none, into the caller's buffer.
    Values {
        /// Which cells go where.
        part: ChunkPart,
        /// The buffer.
        target: &'a Target<'a>,
    },
    /// As `Values`, for cells that are named one by one. Sparse chunks only.
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
    /// Reports which of the cells are defined.
    Defined {
        /// Which cells of the chunk are asked for.
        cells: &'a Selection,
        /// The answer: cells of the chunk.
        found: &'a mut Option<CellSet>,
    },
    /// Reports which of the cells are defined, and their values in the file's type.
    DefinedValues {
        /// Which cells of the chunk are asked for.
        cells: &'a Selection,
        /// Whether only members of fixed size are wanted, of elements that have others: what these have then is
        /// not to be looked at.
        members: bool,
        /// The answer: cells of the chunk, and the value of each in row-major order.
        found: &'a mut Option<(FoundCells, Vec<u8>)>,
    },
    /// Lists the defined cells of some rows of a matrix's chunk. Sparse chunks of fewer than 2^32 cells only.
    Rows {
        /// Which rows of the chunk.
        rows: RowPart<'a>,
        /// The columns, which are the same in all rows.
        columns: Range<u32>,
        /// The answer.
        found: &'a mut Option<RowsFound>,
    },
    /// As `DefinedValues`, with what the values refer to. Only chunks with variable-length data
    /// have it.
    DefinedHeaped {
        /// Which cells of the chunk are asked for.
        cells: &'a Selection,
        /// The answer: cells of the chunk, and the value of each in row-major order.
        found: &'a mut Option<(CellSet, Heaped)>,
    },
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
    /// Where the cells of each row begin, and where those of the last end.
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

/// One chunk's share of a write.
pub enum WriteRequest<'a> {
    /// Defines cells with values from the caller's buffer.
    Values {
        /// Which cells come from where.
        part: ChunkPart,
        /// The buffer.
        source: &'a Source<'a>,
    },
    /// As `Values`, for cells that are named one by one. Sparse chunks only.
    Points {
        /// Which cells come from where.
        part: PointPart<'a>,
        /// The buffer.
        source: &'a Source<'a>,
    },
    /// As `Points`, with cells and values put together already.
    Band {
        /// The cells and their values in the memory's type; taken by the chunk.
        band: PointBand,
        /// How values are converted.
        source: &'a Source<'a>,
    },
    /// As `Band`, with cells that have been encoded already.
    Rows {
        /// The cells and their values in the memory's type; taken by the chunk.
        part: Option<(RowCells, Vec<u8>)>,
        /// Whether these are all the rows of a chunk, among many: if it is new, it is stored at once.
        whole: bool,
        /// How values are converted.
        source: &'a Source<'a>,
    },
    /// Makes cells undefined that are named one by one. Sparse chunks only.
    ErasePoints {
        /// Which cells.
        part: PointPart<'a>,
    },
    /// Makes cells undefined; where a layout cannot say so, they get the fill value.
    Erase {
        /// Which cells of the chunk, in its coordinates. They may be many more than are defined.
        cells: Selection,
    },
}

impl ReadRequest<'_> {
    /// How much of the chunk it needs.
    pub(super) fn part(&self) -> Part {
        match self {
            Self::Defined { .. } | Self::Cells { values: false, .. } => Part::Defined,
            Self::Values { .. }
            | Self::Points { .. }
            | Self::Cells { .. }
            | Self::DefinedValues { .. }
            | Self::Rows { .. }
            | Self::DefinedHeaped { .. } => Part::All,
        }
    }

    /// The share of the chunk's cells that it takes; 0 if that is not known.
    pub(super) fn share(&self) -> f32 {
        if let Self::Values { part, .. } = self { part.share() } else { 0.0 }
    }

    /// Whether it wants values even if a checksum does not match them.
    pub(super) fn is_unverified(&self) -> bool {
        matches!(self, Self::Values { target, .. } if target.is_unverified())
    }
}

impl WriteRequest<'_> {
    /// What it needs of the chunk as it was. Elements with a `heap` are written whole, unless only
    /// members of fixed size are written.
    pub(super) fn intent(&self, heap: bool) -> Intent {
        match self {
            Self::Values { part, source }
                if part.is_whole() && (heap && !source.has_members() || source.overwrites()) =>
            {
                Intent::Replace
            }
            Self::Values { .. } | Self::Points { .. } | Self::Band { .. } | Self::Rows { .. } => {
                Intent::Update
            }
            Self::Erase { .. } | Self::ErasePoints { .. } => Intent::UpdateExisting,
        }
    }
}

/// What other layouts answer to points, which reach them as segments.
pub(super) fn points_of_sparse() -> Error {
    Error::Internal("points of a layout that takes segments".into())
}

fn outside() -> Error {
    Error::Internal("a cell outside its chunk".into())
}

/// Repeats `element` over `place`.
pub fn fill_with(place: &mut [u8], element: &[u8]) {
    match element {
        [] => {}
        [first, rest @ ..] if rest.iter().all(|byte| byte == first) => place.fill(*first),
        _ => place.chunks_exact_mut(element.len()).for_each(|to| to.copy_from_slice(element)),
    }
}
