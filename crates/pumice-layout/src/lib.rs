//! Storage layouts: how a dataset's elements lie in the file, as the chunk cache sees them.
//!
//! | file | layout |
//! |---|---|
//! | `buffer.rs` | the caller's memory, filled by many threads |
//! | `chunk.rs` | a chunk in memory, of any storage |
//! | `contiguous.rs` | one piece in the file (contiguous) or in the object header (compact) |
//! | `dense.rs` | chunks that store every cell, through one filter pipeline |
//! | `sparse.rs` | structured chunks that store defined cells only, one pipeline per section |
//! | `logged_chunk.rs` | a sparse chunk and a log of small changes to it |
//! | `sparse_points.rs` | cells that are named one by one, as a set and values in its order |
//! | `variable_length.rs` | structured chunks with variable-length data, dense or sparse |
//! | `table.rs` | which chunks are stored, and where |
//!
//! `dense.rs`, `sparse.rs` and `variable_length.rs` each implement the cache's [`Layout`]; the table of
//! chunks is its [`ChunkStore`](pumice_cache::ChunkStore), and `contiguous.rs` is
//! [`Unchunked`]. Nothing here decides what is resident.

mod announced;
mod blocks;
pub mod buffer;
mod chunk;
pub mod contiguous;
pub mod dense;
pub mod geometry;
pub mod heap_chunk;
mod heap_sections;
pub mod listing;
pub mod logged_chunk;
mod pages;
pub mod request;
pub mod sparse;
pub mod sparse_chunk;
mod sparse_points;
pub mod stretch;
mod table;
pub mod variable_length;

pub use chunk::{Chunk, Hdf5};
pub use contiguous::{Contiguous, Place};
pub use dense::{Dense, DenseChunk};
pub use geometry::Geometry;
pub use heap_chunk::HeapChunk;
pub use listing::Listing;
pub use logged_chunk::LoggedChunk;
pub use pages::{Filled, Pages, TOGETHER};
pub use request::{
    CellSink, Lists, ReadRequest, RowPart, RowsFound, Source, SparseRead, SparseWrite, Taken,
    Target, WriteRequest,
};
pub use sparse::Sparse;
pub use sparse_chunk::SparseChunk;
pub use table::{ChunkTable, NewChunk, Room};
pub use variable_length::{VariableLength, VariableLengthFilters};

use pumice_cache::{
    ByteStore, CachedFile, Dataset, DatasetOptions, Direct, Fetch, Layout, Put, Unchunked,
};
use pumice_filter::scratch;
use pumice_format::index::ChunkRecord;
use pumice_medium::{Error, Result};
use pumice_space::Dims;
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
    Contiguous(Arc<Contiguous>),
    /// Dense chunks.
    Dense(Arc<Dense>),
    /// Sparse chunks.
    Sparse(Arc<Sparse>),
    /// Chunks with variable-length data, dense or sparse.
    VariableLength(Arc<VariableLength>),
    /// One piece that is in other files; read only.
    External(Arc<Contiguous>),
    /// Elements of other datasets; never seen by the cache.
    Virtual,
    /// Something that cannot be read yet: what it is.
    Unreadable(String),
}

impl DatasetLayout {
    /// What the chunks are, if the elements are in chunks.
    pub fn chunked(&self) -> Option<&dyn Layout<Hdf5>> {
        match &self.storage {
            Storage::Dense(dense) => Some(&**dense),
            Storage::Sparse(sparse) => Some(&**sparse),
            Storage::VariableLength(layout) => Some(&**layout),
            Storage::Contiguous(_)
            | Storage::External(_)
            | Storage::Virtual
            | Storage::Unreadable(_) => None,
        }
    }

    /// What the chunks are in another extent: where partial edge chunks are stored unfiltered, that decides
    /// their form.
    pub fn chunked_in(&self, dims: &[u64]) -> Option<Box<dyn Layout<Hdf5>>> {
        let geometry = Arc::new(self.geometry.with_dims(dims));
        match &self.storage {
            Storage::Dense(dense) => Some(Box::new(dense.with_geometry(geometry))),
            Storage::Sparse(sparse) => Some(Box::new(sparse.with_geometry(geometry))),
            Storage::VariableLength(layout) => Some(Box::new(layout.with_geometry(geometry))),
            Storage::Contiguous(_)
            | Storage::External(_)
            | Storage::Virtual
            | Storage::Unreadable(_) => None,
        }
    }

    /// The table of stored chunks, if the layout has chunks.
    pub fn table(&self) -> Option<&ChunkTable> {
        match &self.storage {
            Storage::Dense(dense) => Some(dense.table()),
            Storage::Sparse(sparse) => Some(sparse.table()),
            Storage::VariableLength(layout) => Some(layout.table()),
            Storage::Contiguous(_)
            | Storage::External(_)
            | Storage::Virtual
            | Storage::Unreadable(_) => None,
        }
    }

    /// Gives the dataset its place in the cache.
    pub fn register(&self, file: &CachedFile<Hdf5>, options: DatasetOptions) -> Dataset<Hdf5> {
        match &self.storage {
            Storage::Dense(dense) => file.register(dense.clone(), options),
            Storage::Sparse(sparse) => file.register(sparse.clone(), options),
            Storage::VariableLength(layout) => file.register(layout.clone(), options),
            Storage::Contiguous(contiguous) | Storage::External(contiguous) => {
                file.register_unchunked(contiguous.clone(), options)
            }
            Storage::Virtual | Storage::Unreadable(_) => {
                file.register_unchunked(Arc::new(Nowhere), options)
            }
        }
    }

    /// The storage of sparse chunks, if these are the chunks.
    pub fn sparse(&self) -> Option<&Sparse> {
        if let Storage::Sparse(sparse) = &self.storage { Some(sparse) } else { None }
    }

    /// Whether cells can be undefined.
    pub fn is_sparse(&self) -> bool {
        match &self.storage {
            Storage::Sparse(_) => true,
            Storage::VariableLength(layout) => layout.is_sparse(),
            _ => false,
        }
    }

    /// How many cells a sparse chunk has defined according to its record.
    pub fn announced_cells(&self, record: &ChunkRecord) -> Option<u64> {
        let checksum = match &self.storage {
            Storage::Sparse(_) => 0,
            Storage::VariableLength(layout) if layout.is_sparse() => 4,
            _ => return None,
        };
        let bytes = record.sections.get(1)?.unfiltered.checked_sub(checksum)?;
        bytes.checked_div(self.geometry.element_size() as u64)
    }
}

/// Data that the cache never moves: it keeps the order of requests alone.
struct Nowhere;

impl ByteStore<Hdf5> for Nowhere {
    fn fetch(&self, _: &mut [Fetch<'_>]) -> Result<()> {
        Err(nowhere())
    }

    fn put(&self, _: &[Put<'_>]) -> Result<()> {
        Err(nowhere())
    }
}

impl Unchunked<Hdf5> for Nowhere {
    fn read<'r>(
        &self,
        _: &Dims,
        _: &'r mut ReadRequest<'_>,
        _: &mut Vec<Fetch<'r>>,
    ) -> Result<Direct> {
        Err(nowhere())
    }

    fn write<'r>(
        &self,
        _: &Dims,
        _: &'r mut WriteRequest<'_>,
        _: &mut Vec<Put<'r>>,
    ) -> Result<Direct> {
        Err(nowhere())
    }
}

fn nowhere() -> Error {
    Error::Internal("data that the cache does not know".into())
}

/// For a question that only chunks with variable-length data can answer.
fn without_heap() -> Error {
    Error::Internal("values of variable length in a chunk without a heap".into())
}

/// Memory of the thread for `len` stored bytes, which [`recycle`] gets back when they are decoded.
fn spare(len: usize) -> Option<Vec<u8>> {
    (len <= RECYCLED).then(|| scratch::take_sized(len).ok()).flatten()
}

/// Keeps memory for the next chunk that this thread decodes, which is likely to be as large.
fn recycle(bytes: Vec<u8>) {
    if bytes.capacity() <= RECYCLED {
        scratch::give(bytes);
    }
}
