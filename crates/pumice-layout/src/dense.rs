//! The dense chunked layout: every cell of a chunk is stored, through one filter pipeline.

use super::geometry::Geometry;
use super::request::{ReadRequest, WriteRequest, fill_with, not_sparse};
use super::stretch::Stretch;
use super::table::ChunkTable;
use super::{Chunk, Hdf5, recycle, spare};
use pumice_bytes::DecodeError;
use pumice_cache::{
    ChunkStore, Direct, Encoded, Fetch, Layout, Outcome, Part, Put, ReadPlan, Stored, WritePlan,
};
use pumice_filter::Pipeline;
use pumice_format::index::ChunkRecord;
use pumice_medium::zeroed;
use pumice_medium::{Error, Result};
use pumice_space::{CellSet, Dims};
use std::ops::Deref;
use std::sync::Arc;

/// How the chunks of a dataset are stored.
pub struct Dense {
    geometry: Arc<Geometry>,
    table: Arc<ChunkTable>,
    pipeline: Pipeline,
    dont_filter_partial: bool,
}

impl Dense {
    /// A dense layout with one pipeline.
    pub fn new(
        geometry: Arc<Geometry>,
        pipeline: Pipeline,
        dont_filter_partial: bool,
        table: ChunkTable,
    ) -> Self {
        Self { geometry, table: Arc::new(table), pipeline, dont_filter_partial }
    }

    /// This storage for another extent of the dataset.
    pub fn with_geometry(&self, geometry: Arc<Geometry>) -> Self {
        let (table, pipeline) = (self.table.clone(), self.pipeline.clone());
        Self { geometry, table, pipeline, dont_filter_partial: self.dont_filter_partial }
    }

    /// The table of its chunks.
    pub fn table(&self) -> &ChunkTable {
        &self.table
    }

    /// The filters.
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// Whether partial edge chunks are stored unfiltered.
    pub fn dont_filter_partial(&self) -> bool {
        self.dont_filter_partial
    }

    /// Whether the chunk is stored as it is in memory if its filters skip none.
    pub fn unfiltered(&self, key: &Dims) -> bool {
        self.pipeline.is_empty() || (self.dont_filter_partial && self.geometry.is_partial(key))
    }

    /// Refuses stored bytes that cannot be those of the chunk.
    pub fn check_stored(&self, key: &Dims, size: u64, filter_mask: u32) -> Result<()> {
        let filters = self.pipeline.specs().len();
        if filter_mask.checked_shr(filters as u32).is_some_and(|beyond| beyond != 0) {
            return Err(Error::Invalid(format!(
                "the filter mask {filter_mask:#x} skips filters that a pipeline of {filters} has not"
            )));
        }
        if size == 0 {
            return Err(Error::Invalid("a stored chunk has at least one byte".into()));
        }
        let wanted = self.geometry.chunk_bytes();
        let skipped = filters > 0 && filter_mask.count_ones() as usize == filters;
        if (skipped || self.unfiltered(key)) && size != wanted {
            return Err(Error::Invalid(format!(
                "an unfiltered chunk has {wanted} byte(s), but {size} were given"
            )));
        }
        Ok(())
    }

    fn check_decoded(&self, chunk: Vec<u8>, record: &ChunkRecord) -> Result<Vec<u8>> {
        let wanted = self.geometry.chunk_bytes();
        if chunk.len() as u64 == wanted {
            return Ok(chunk);
        }
        let expected = format!("{wanted} byte(s) once decoded");
        Err(DecodeError::new("chunk", record.address, expected, chunk.len()).into())
    }

    /// Answers a read from a resident chunk.
    fn scatter_cells(&self, chunk: &[u8], request: &mut ReadRequest<'_>) -> Result<()> {
        let (dims, element) = (self.geometry.chunk(), self.geometry.element_size());
        match request {
            ReadRequest::Values { part, target } => {
                let mut segments = part.segments(dims);
                while let Some(line) = segments.next_line() {
                    target.place_line(&line, chunk)?;
                }
                Ok(())
            }
            ReadRequest::Sparse(_) => Err(not_sparse()),
            ReadRequest::Defined { cells, found } => {
                **found = Some(CellSet::from_selection(cells, dims)?);
                Ok(())
            }
            ReadRequest::DefinedValues { cells, found, .. } => {
                let cells = CellSet::from_selection(cells, dims)?;
                let mut values = Vec::with_capacity(cells.len() as usize * element);
                for run in cells.runs() {
                    let start = run.start as usize * element;
                    values.extend_from_slice(&chunk[start..start + run.len as usize * element]);
                }
                **found = Some((cells.into(), values));
                Ok(())
            }
            ReadRequest::DefinedHeaped { .. } => Err(super::without_heap()),
        }
    }

    /// Answers a read from a chunk that is not stored: every cell has the fill value.
    fn scatter_absent(&self, request: &mut ReadRequest<'_>) -> Result<()> {
        let dims = self.geometry.chunk();
        match request {
            ReadRequest::Values { part, target } => target.fill_all(part.segments(dims)),
            ReadRequest::Sparse(_) => {
                return Err(not_sparse());
            }
            ReadRequest::Defined { cells, found } => {
                **found = Some(CellSet::from_selection(cells, dims)?);
            }
            ReadRequest::DefinedValues { cells, found, .. } => {
                let cells = CellSet::from_selection(cells, dims)?;
                let mut values = zeros(cells.len() * self.geometry.element_size() as u64)?;
                fill_with(&mut values, self.geometry.fill());
                **found = Some((cells.into(), values));
            }
            ReadRequest::DefinedHeaped { .. } => return Err(super::without_heap()),
        }
        Ok(())
    }

    /// Whether a chunk is stored as it is in memory.
    pub fn is_plain(&self, key: &Dims, stored: &Stored<ChunkRecord>) -> bool {
        self.unfiltered(key) && stored.len == self.geometry.chunk_bytes()
    }

    fn stretch(&self, stored: &Stored<ChunkRecord>) -> Stretch<'_> {
        Stretch::new(self.table.medium(), stored.offset, self.geometry.element_size())
    }

    /// Carries out a write on a resident chunk.
    fn gather_cells(&self, chunk: &mut [u8], request: &mut WriteRequest<'_>) -> Result<Outcome> {
        let (dims, element) = (self.geometry.chunk(), self.geometry.element_size());
        match request {
            WriteRequest::Values { part, source } => {
                let mut segments = part.segments(dims);
                while let Some(line) = segments.next_line() {
                    source.copy_line(&line, chunk)?;
                }
            }
            WriteRequest::Sparse(_) => {
                return Err(not_sparse());
            }
            WriteRequest::Erase { cells } => cells.runs(dims).for_each(|run| {
                let start = run.start as usize * element;
                let place = &mut chunk[start..start + run.len as usize * element];
                fill_with(place, self.geometry.fill());
            }),
        }
        Ok(Outcome::Keep)
    }
}

impl Layout<Hdf5> for Dense {
    fn chunks(&self) -> &dyn ChunkStore<Hdf5> {
        &*self.table
    }

    fn decode(
        &self,
        key: &Dims,
        bytes: Vec<u8>,
        stored: &Stored<ChunkRecord>,
        _: Part,
    ) -> Result<Chunk> {
        let record = &stored.tag;
        let limit = usize::try_from(self.geometry.chunk_bytes()).unwrap_or(usize::MAX);
        let cells = match self.unfiltered(key) {
            true => bytes,
            false => self.pipeline.decode(bytes, record.filter_mask, limit)?,
        };
        Ok(Chunk::Dense(self.check_decoded(cells, record)?.into()))
    }

    /// A chunk with the fill value everywhere, or with zeros if all will be overwritten. Cells beyond the
    /// extent hold the fill value as well, in case the extent grows.
    fn new_chunk(&self, key: &Dims, fill: bool) -> Result<Chunk> {
        let mut chunk = zeros(self.geometry.chunk_bytes())?;
        let fill = fill || self.geometry.is_partial(key);
        if fill && self.geometry.fill().iter().any(|&byte| byte != 0) {
            fill_with(&mut chunk, self.geometry.fill());
        }
        Ok(Chunk::Dense(chunk.into()))
    }

    fn encode(&self, key: &Dims, chunk: &Chunk) -> Result<Encoded<ChunkRecord>> {
        let cells = chunk.dense()?;
        if self.unfiltered(key) {
            let rest = Some(cells.share());
            return Ok(Encoded { bytes: Arc::default(), rest, tag: ChunkRecord::dense(0, 0) });
        }
        let (bytes, filter_mask) = self.pipeline.encode_slice(cells)?;
        Ok(Encoded::new(bytes, ChunkRecord { filter_mask, ..ChunkRecord::dense(0, 0) }))
    }

    fn plan_read(
        &self,
        key: &Dims,
        stored: Option<&Stored<ChunkRecord>>,
        request: &ReadRequest<'_>,
    ) -> ReadPlan {
        let usual = ReadPlan { part: request.part(), ..ReadPlan::default() };
        let ReadRequest::Values { part, target } = request else { return usual };
        // A chunk that is read whole and as it is stored comes from the system's own cache as quickly.
        let passes = part.is_whole() && target.is_noop() && self.unfiltered(key);
        // What was not verified would answer reads that ask for more.
        let keep = !passes && !target.is_unverified();
        let direct = stored.filter(|stored| self.is_plain(key, stored)).map(|_| 0);
        ReadPlan { share: part.share(), keep, direct, ..usual }
    }

    fn plan_write(
        &self,
        key: &Dims,
        stored: Option<&Stored<ChunkRecord>>,
        request: &WriteRequest<'_>,
    ) -> WritePlan {
        let (intent, fresh) = (request.intent(false), self.geometry.chunk_bytes());
        let usual = WritePlan { intent, fresh, ..WritePlan::default() };
        let WriteRequest::Values { part, .. } = request else { return usual };
        // Elements that refer to something may have to wait, and chunks wait as a whole.
        let stays = || self.table.is_in_place() && !self.table.refers();
        let direct = stored.filter(|stored| stays() && self.is_plain(key, stored)).map(|_| 0);
        WritePlan { share: part.share(), direct, ..usual }
    }

    fn scatter(
        &self,
        _: &Dims,
        chunk: Option<&Chunk>,
        request: &mut ReadRequest<'_>,
    ) -> Result<()> {
        match chunk {
            Some(chunk) => self.scatter_cells(chunk.dense()?, request),
            None => self.scatter_absent(request),
        }
    }

    fn gather(
        &self,
        _: &Dims,
        chunk: &mut Chunk,
        request: &mut WriteRequest<'_>,
    ) -> Result<Outcome> {
        self.gather_cells(chunk.dense_mut()?.to_mut(), request)
    }

    /// Serves a read whether or not checksums match the bytes, if it wants that. Such a chunk is not kept: it
    /// would answer reads that ask for more.
    fn scatter_stored(
        &self,
        key: &Dims,
        bytes: &mut Vec<u8>,
        stored: &Stored<ChunkRecord>,
        request: &mut ReadRequest<'_>,
    ) -> Result<bool> {
        if !request.is_unverified() || self.unfiltered(key) {
            return Ok(false);
        }
        let record = &stored.tag;
        let limit = usize::try_from(self.geometry.chunk_bytes()).unwrap_or(usize::MAX);
        let cells = self.pipeline.unverified().decode_slice(bytes, record.filter_mask, limit)?;
        self.scatter_cells(&self.check_decoded(cells, record)?, request)?;
        recycle(std::mem::take(bytes));
        Ok(true)
    }

    /// Reads cells of a chunk that is stored as it is in memory.
    fn direct_read<'r>(
        &self,
        _: &Dims,
        stored: &Stored<ChunkRecord>,
        request: &'r mut ReadRequest<'_>,
        extents: &mut Vec<Fetch<'r>>,
    ) -> Result<Option<Direct>> {
        let ReadRequest::Values { part, target } = request else { return Ok(None) };
        let segments = || part.segments(self.geometry.chunk());
        self.stretch(stored).read(segments, target, extents).map(Some)
    }

    /// Writes cells of a chunk that is stored as it is in memory and stays where it is.
    fn direct_write<'r>(
        &self,
        _: &Dims,
        stored: &Stored<ChunkRecord>,
        request: &'r mut WriteRequest<'_>,
        extents: &mut Vec<Put<'r>>,
    ) -> Result<Option<Direct>> {
        let WriteRequest::Values { part, source } = request else { return Ok(None) };
        let segments = || part.segments(self.geometry.chunk());
        self.stretch(stored).write(segments, source, extents).map(Some)
    }

    /// What is stored as it is read need not be decoded: the system reads it ahead as well.
    fn successors(&self, recent: &[Dims], now: &[Dims], count: usize) -> Vec<Dims> {
        match self.pipeline.is_empty() {
            true => Vec::new(),
            false => self.geometry.successors(recent, now, count),
        }
    }

    /// What is not decoded becomes the chunk, which must not be too large.
    fn spare(&self, len: usize) -> Option<Vec<u8>> {
        if self.pipeline.is_empty() { None } else { spare(len) }
    }
}

/// Every cell of a chunk in memory; shared with its stored form, while that is being written, if no filter
/// changes it.
#[derive(Clone)]
pub struct DenseChunk(Arc<Vec<u8>>);

impl DenseChunk {
    /// The cells, to be changed.
    pub(super) fn to_mut(&mut self) -> &mut [u8] {
        Arc::<Vec<u8>>::make_mut(&mut self.0)
    }

    /// The cells, for as long as they are being written.
    pub(super) fn share(&self) -> Arc<Vec<u8>> {
        Arc::clone(&self.0)
    }

    /// Bytes of memory that it takes.
    pub(super) fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Gives back memory that is not used. While the chunk is being stored, it stays as it is.
    pub(super) fn condense(&mut self) {
        if let Some(cells) = Arc::get_mut(&mut self.0) {
            cells.shrink_to_fit();
        }
    }
}

impl From<Vec<u8>> for DenseChunk {
    fn from(cells: Vec<u8>) -> Self {
        Self(Arc::new(cells))
    }
}

impl Deref for DenseChunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for DenseChunk {
    fn drop(&mut self) {
        if let Some(cells) = Arc::get_mut(&mut self.0) {
            recycle(std::mem::take(cells));
        }
    }
}

/// Zeroed memory, or an error where there is not enough.
pub fn zeros(bytes: u64) -> Result<Vec<u8>> {
    let too_large = || Error::NoMemory(format!("not enough memory for a chunk of {bytes} bytes"));
    let len = usize::try_from(bytes).map_err(|_| too_large())?;
    // A chunk shape from a damaged file must not abort the program.
    zeroed(len).map_err(|_| too_large())
}
