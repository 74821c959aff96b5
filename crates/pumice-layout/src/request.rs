//! What a dataset asks of one chunk: the pieces that the cache hands to a layout.
//!
//! A request names cells of the chunk and places in the caller's memory (a [`ChunkPart`]), or only
//! cells. Erasing and asking for defined cells are requests like any other, so that they keep their
//! order among reads and writes.

mod source;
mod sparse;
mod target;

pub use source::{Lists, Source};
pub use sparse::{CellSink, RowPart, RowsFound, SparseRead, SparseWrite, Taken};
pub use target::Target;
pub use target::{Piece, piece_of};

use pumice_cache::{Intent, Part};
use pumice_medium::Error;
use pumice_space::{CellSet, ChunkPart, FoundCells, Selection};
use pumice_types::Heaped;

/// One chunk's share of a read.
pub enum ReadRequest<'a> {
    /// Places values, and the fill value where there is none, into the caller's buffer.
    Values {
        /// Which cells go where.
        part: ChunkPart,
        /// The buffer.
        target: &'a Target<'a>,
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
    /// Reports which of the cells are defined, their values, and what these refer to. Only chunks with variable-length
    /// data have it: [`VariableLength::ask`](crate::VariableLength::ask) makes it, and nobody else can.
    #[non_exhaustive]
    DefinedHeaped {
        /// Which cells of the chunk are asked for.
        cells: &'a Selection,
        /// The answer: cells of the chunk, and the value of each in row-major order.
        found: &'a mut Option<(CellSet, Heaped)>,
    },
    /// What only sparse chunks answer: [`Sparse::ask`](crate::Sparse::ask) makes it, and nobody else can.
    #[non_exhaustive]
    Sparse(SparseRead<'a>),
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
    /// Makes cells undefined; where a layout cannot say so, they get the fill value.
    Erase {
        /// Which cells of the chunk, in its coordinates. They may be many more than are defined.
        cells: Selection,
    },
    /// What only sparse chunks take: [`Sparse::change`](crate::Sparse::change) makes it, and nobody else can.
    #[non_exhaustive]
    Sparse(SparseWrite<'a>),
}

impl ReadRequest<'_> {
    /// How much of the chunk it needs.
    pub(super) fn part(&self) -> Part {
        match self {
            Self::Defined { .. } | Self::Sparse(SparseRead::Cells { values: false, .. }) => {
                Part::Defined
            }
            Self::Values { .. }
            | Self::DefinedValues { .. }
            | Self::DefinedHeaped { .. }
            | Self::Sparse(_) => Part::All,
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
            Self::Erase { .. } | Self::Sparse(SparseWrite::Erase { .. }) => Intent::UpdateExisting,
            Self::Values { .. } | Self::Sparse(_) => Intent::Update,
        }
    }
}

/// For a request that only sparse chunks take. Only their storage makes it, so no other ever sees one.
pub(super) fn not_sparse() -> Error {
    Error::Internal("a request of sparse chunks to other storage".into())
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
