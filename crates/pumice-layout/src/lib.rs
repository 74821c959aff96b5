//! Storage layouts: how a dataset's elements lie in the file, as the chunk cache sees them.
//!
//! | file | layout |
//! |---|---|
//! | `buffer.rs` | the caller's memory, filled by many threads |
//! | `cached.rs` | what the cache asks of any layout |
//! | `contiguous.rs` | one piece in the file (contiguous) or in the object header (compact) |
//! | `dense.rs` | chunks that store every cell, through one filter pipeline |
//! | `sparse.rs` | structured chunks that store defined cells only, one pipeline per section |
//! | `logged_chunk.rs` | a sparse chunk and a log of small changes to it |
//! | `sparse_points.rs` | cells that are named one by one, as a set and values in its order |
//! | `variable_length.rs` | structured chunks with variable-length data, dense or sparse |
//!
//! [`DatasetLayout`] is the one type that the cache is made for. It joins a storage with the
//! dataset's shape and the table of its chunks; nothing here decides what is resident.

mod announced;
mod blocks;
pub mod buffer;
mod cached;
pub mod contiguous;
pub mod dense;
pub mod geometry;
pub mod heap_chunk;
mod heap_sections;
pub mod listing;
pub mod logged_chunk;
mod pages;
mod recode;
pub mod request;
pub mod sparse;
pub mod sparse_chunk;
mod sparse_points;
pub mod stretch;
mod table;
pub mod variable_length;

pub use contiguous::{Contiguous, Place};
pub use dense::{Dense, DenseChunk};
pub use geometry::Geometry;
pub use heap_chunk::HeapChunk;
pub use listing::Listing;
pub use logged_chunk::LoggedChunk;
pub use pages::{Filled, Pages, TOGETHER};
pub use recode::Recoder;
pub use request::{
    CellSink, Lists, ReadRequest, RowPart, RowsFound, Source, Taken, Target, WriteRequest,
};
pub use sparse::Sparse;
pub use sparse_chunk::SparseChunk;
pub use table::ChunkTable;
pub use variable_length::{VariableLength, VariableLengthFilters};

use pumice_cache::Stored;
use pumice_format::index::ChunkRecord;
use pumice_medium::Medium;
use pumice_medium::{Error, Result};
use std::sync::Arc;

/// Memory of chunks up to this size is used again by the thread that lets them go; it keeps a few.
const RECYCLED: usize = 1 << 20;

/// Fewer bytes that are written at once are left in the cache, where they may be wanted soon.
pub const MANY: usize = 1 << 20;

/// The address of a chunk that has no place yet.
pub const NOWHERE: u64 = 0;

/// A dataset's storage, shape and chunks.
pub struct DatasetLayout {
    /// The dataset's shape.
    pub geometry: Arc<Geometry>,
    /// How elements are stored.
    pub storage: Storage,
}

/// The kinds of storage.
pub enum Storage {
    /// One piece.
    Contiguous(Contiguous),
    /// Dense chunks.
    Dense(Dense, ChunkTable),
    /// Sparse chunks.
    Sparse(Box<Sparse>, ChunkTable),
    /// Chunks with variable-length data, dense or sparse.
    VariableLength(Box<VariableLength>, ChunkTable),
    /// One piece that is in other files; read only.
    External(Contiguous),
    /// Elements of other datasets; never seen by the cache.
    Virtual,
    /// Something that cannot be read yet: what it is.
    Unreadable(String),
}

/// A chunk in memory.
#[derive(Clone)]
pub enum Chunk {
    /// Every cell.
    Dense(DenseChunk),
    /// The defined cells.
    Sparse(LoggedChunk),
    /// Cells with variable-length data.
    Heap(HeapChunk),
}

impl DatasetLayout {
    /// The table of stored chunks, if the layout has chunks.
    pub fn table(&self) -> Option<&ChunkTable> {
        match &self.storage {
            Storage::Contiguous(_)
            | Storage::External(_)
            | Storage::Virtual
            | Storage::Unreadable(_) => None,
            Storage::Dense(_, table)
            | Storage::Sparse(_, table)
            | Storage::VariableLength(_, table) => Some(table),
        }
    }

    /// Whether cells can be undefined.
    pub fn is_sparse(&self) -> bool {
        match &self.storage {
            Storage::Sparse(..) => true,
            Storage::VariableLength(layout, _) => layout.is_sparse(),
            _ => false,
        }
    }

    /// How many cells a sparse chunk has defined according to its record.
    pub fn announced_cells(&self, record: &ChunkRecord) -> Option<u64> {
        let checksum = match &self.storage {
            Storage::Sparse(..) => 0,
            Storage::VariableLength(layout, _) if layout.is_sparse() => 4,
            _ => return None,
        };
        let bytes = record.sections.get(1)?.unfiltered.checked_sub(checksum)?;
        bytes.checked_div(self.geometry.element_size() as u64)
    }

    /// How many cells a chunk has defined, if it need not be all.
    pub fn defined_cells(&self, chunk: &Chunk) -> Option<u64> {
        match chunk {
            Chunk::Dense(_) => None,
            Chunk::Sparse(chunk) => Some(chunk.len()),
            Chunk::Heap(chunk) => Some(chunk.len()),
        }
    }

    /// Where the elements are.
    fn medium(&self) -> Option<&Arc<Medium>> {
        match &self.storage {
            Storage::Contiguous(contiguous) | Storage::External(contiguous) => {
                Some(contiguous.medium())
            }
            _ => self.table().map(ChunkTable::medium),
        }
    }

    fn chunks(&self) -> Result<&ChunkTable> {
        self.table().ok_or_else(|| Error::Internal("contiguous data has no chunks".into()))
    }

    fn mismatch() -> Error {
        Error::Internal("a chunk of another layout".into())
    }
}

impl DatasetLayout {
    /// What the cache needs to know of a stored chunk.
    pub fn stored(&self, record: ChunkRecord) -> Stored<ChunkRecord> {
        let (head, decoded) = match record.sections.as_slice() {
            [] => (record.size, self.geometry.chunk_bytes()),
            [_, values, ..] => (values.offset.min(record.size), structured_bytes(&record)),
            [_] => (record.size, record.size),
        };
        Stored::new(record.address, record.size, record).head(head).decoded(decoded)
    }
}

/// About the bytes of a decoded chunk of several sections, by its record: a file says there what it likes.
fn structured_bytes(record: &ChunkRecord) -> u64 {
    let Some((locations, others)) = record.sections.split_first() else { return record.size };
    let cells = locations.unfiltered.min(record.size.saturating_mul(8));
    others.iter().map(|section| section.unfiltered).fold(cells, u64::saturating_add)
}

/// For a question that only chunks with variable-length data can answer.
fn without_heap() -> Error {
    Error::Internal("values of variable length in a chunk without a heap".into())
}

#[cfg(test)]
mod tests {
    use super::structured_bytes;
    use pumice_format::index::{ChunkRecord, SectionRecord};

    #[test]
    fn sizes_that_a_record_makes_up_have_a_sum() {
        let mut record = ChunkRecord::dense(0x800, 100);
        for offset in [0, 40, 60] {
            let section = SectionRecord { offset, unfiltered: u64::MAX - 1, filter_mask: 0 };
            record.sections.push(section);
        }
        assert_eq!(structured_bytes(&record), u64::MAX);
        record.sections.pop();
        record.sections[1].unfiltered = 12;
        assert_eq!(structured_bytes(&record), 800 + 12);
    }
}
