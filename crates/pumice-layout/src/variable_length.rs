//! The two layouts of structured chunks with variable-length data: sparse (locations, references,
//! heap) and dense (references, heap).
//!
//! The references section holds the elements of the defined cells in row-major order; where a
//! datatype has variable-length parts, an element has references into the heap section, which is a
//! [heap set](pumice_format::heap_set). Every section ends with a checksum and goes through the
//! filters of its own pipeline, except that a heap without objects has no bytes at all. The byte
//! format is described in `docs/format/`.
//!
//! What is written is always the shortest: objects in the order of the cells, without waste.

use super::announced;
use super::geometry::Geometry;
use super::heap_chunk::{HeapChunk, no_heap};
use super::heap_sections::{HeapSections, stored_section};
use super::request::{Piece, ReadRequest, Target, WriteRequest, not_sparse};
use super::sparse::{check_readable, check_sections, decode_locations};
use super::sparse_chunk::SparseChunk;
use super::table::ChunkTable;
use super::{Chunk, Hdf5, MANY};
use pumice_bytes::Writer;
use pumice_cache::{ChunkStore, Encoded, Layout, Outcome, Part, ReadPlan, Stored, WritePlan};
use pumice_filter::{EncodedCells, Pipeline, scratch};
use pumice_format::Sizes;
use pumice_format::index::{ChunkRecord, SectionRecord};
use pumice_medium::{Error, Result};
use pumice_space::{CellSet, Dims, Segment, Selection};
use pumice_types::{Datatype, Heaped, heaped};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes that the references of a new dense chunk may take: as the shape of a chunk is what a file
/// says, it must not decide alone.
const MAX_REFERENCES: u64 = 512 << 20;

/// The share of a heap in memory that may be waste, in percent.
const WASTE: u32 = 25;

/// How chunks with variable-length data are stored.
pub struct VariableLength {
    geometry: Arc<Geometry>,
    table: Arc<ChunkTable>,
    datatype: Datatype,
    sizes: Sizes,
    /// Of the locations, if the dataset is sparse.
    locations: Option<Pipeline>,
    references: Pipeline,
    heap: Pipeline,
    /// The fill value, with what it refers to.
    fill: Heaped,
    /// For partial edge chunks, if they are stored unfiltered.
    plain: Option<Pipeline>,
    waste: AtomicU32,
}

/// The pipelines of the sections: locations only if the dataset is sparse.
#[derive(Clone)]
pub struct VariableLengthFilters {
    /// Of the locations, if the dataset is sparse.
    pub locations: Option<Pipeline>,
    /// Of the references.
    pub references: Pipeline,
    /// Of the heap.
    pub heap: Pipeline,
}

impl VariableLength {
    /// A layout for elements of `datatype`, of which `fill` is one.
    pub fn new(
        geometry: Arc<Geometry>,
        datatype: Datatype,
        sizes: Sizes,
        filters: VariableLengthFilters,
        fill: Heaped,
        dont_filter_partial: bool,
        table: ChunkTable,
    ) -> Self {
        let VariableLengthFilters { locations, references, heap } = filters;
        let plain = dont_filter_partial.then(Pipeline::default);
        let (table, waste) = (Arc::new(table), AtomicU32::new(WASTE));
        Self { geometry, table, datatype, sizes, locations, references, heap, fill, plain, waste }
    }

    /// The table of its chunks.
    pub fn table(&self) -> &ChunkTable {
        &self.table
    }

    /// This storage for another extent of the dataset.
    pub fn with_geometry(&self, geometry: Arc<Geometry>) -> Self {
        Self {
            geometry,
            table: self.table.clone(),
            datatype: self.datatype.clone(),
            sizes: self.sizes,
            locations: self.locations.clone(),
            references: self.references.clone(),
            heap: self.heap.clone(),
            fill: self.fill.clone(),
            plain: self.plain.clone(),
            waste: AtomicU32::new(self.waste.load(Ordering::Relaxed)),
        }
    }

    /// The fill value; what it refers to, if anything, is put down with it by a read.
    pub fn fill(&self) -> &[u8] {
        &self.fill.elements
    }

    /// Whether cells can be undefined.
    pub fn is_sparse(&self) -> bool {
        self.locations.is_some()
    }

    /// The filters of all sections, in the order of the sections.
    pub fn pipelines(&self) -> impl Iterator<Item = &Pipeline> {
        self.locations.iter().chain([&self.references, &self.heap])
    }

    /// Whether partial edge chunks are stored unfiltered.
    pub fn dont_filter_partial(&self) -> bool {
        self.plain.is_some()
    }

    /// Sets the share of a heap in memory that may be waste, in percent.
    pub fn set_waste(&self, percent: u32) {
        self.waste.store(percent, Ordering::Relaxed);
    }

    /// The pipeline of a section for this chunk.
    fn pipeline<'a>(&'a self, key: &Dims, usual: &'a Pipeline) -> &'a Pipeline {
        match &self.plain {
            Some(plain) if self.geometry.is_partial(key) => plain,
            _ => usual,
        }
    }

    /// The sections of elements and heap for this chunk.
    fn sections(&self, key: &Dims) -> HeapSections<'_> {
        HeapSections {
            references: self.pipeline(key, &self.references),
            heap: self.pipeline(key, &self.heap),
            ..self.whole_sections()
        }
    }

    /// The same for a chunk that is not at the edge.
    fn whole_sections(&self) -> HeapSections<'_> {
        HeapSections {
            datatype: &self.datatype,
            sizes: self.sizes,
            references: &self.references,
            heap: &self.heap,
            lenient: true,
        }
    }

    /// A chunk without defined cells; of a dense dataset, with the fill value everywhere if `fill`: without,
    /// it is about to get all its values.
    fn make_chunk(&self, fill: bool) -> Result<HeapChunk> {
        let cells = self.geometry.cells_per_chunk();
        if self.is_sparse() || !fill {
            let size = self.datatype.size();
            return Ok(HeapChunk::new(SparseChunk::empty(cells), size, Vec::new()));
        }
        let bytes = self.geometry.chunk_bytes();
        if bytes > MAX_REFERENCES {
            return Err(Error::Invalid(format!(
                "a chunk of {cells} variable-length cells needs {bytes} bytes for references alone, \
                 at most {MAX_REFERENCES} are taken: choose smaller chunks"
            )));
        }
        let mut values = super::dense::zeros(bytes)?;
        super::request::fill_with(&mut values, &self.fill.elements);
        let entries = SparseChunk::new(CellSet::full(cells), Some(values));
        let mut chunk = HeapChunk::new(entries, self.datatype.size(), self.fill.heap.clone());
        chunk.share_fill(&self.fill, cells);
        Ok(chunk)
    }

    /// Encodes all sections.
    fn encode_sections(&self, key: &Dims, chunk: &HeapChunk) -> Result<Encoded<ChunkRecord>> {
        if !chunk.has_values() {
            let what = "a chunk without resident values was to be written";
            return Err(Error::Internal(what.into()));
        }
        let mut tag = ChunkRecord::dense(0, 0);
        let mut bytes = Vec::new();
        if let Some(locations) = &self.locations {
            let locations = self.pipeline(key, locations);
            let EncodedCells { bytes: encoded, unfiltered, mask } =
                locations.encode_cells(self.geometry.chunk(), chunk.cells())?;
            bytes = encoded;
            tag.sections.push(SectionRecord { offset: 0, unfiltered, filter_mask: mask });
        }
        let sections = self.sections(key);
        let counts = chunk.counts().map(|counts| sections.encode_counts(counts, &chunk.heap));
        let encoded = match counts.transpose()?.flatten() {
            Some(encoded) => encoded,
            None => sections.encode(chunk.entries().values(), &chunk.heap, chunk.is_shared())?,
        };
        for encoded in encoded {
            let (offset, unfiltered) = (bytes.len() as u64, encoded.unfiltered);
            let filter_mask = encoded.mask;
            tag.sections.push(SectionRecord { offset, unfiltered, filter_mask });
            bytes.put_bytes(&encoded.bytes);
            scratch::give(encoded.bytes);
        }
        if let (Some(locations), [section, behind, ..]) = (&self.locations, &*tag.sections) {
            let (head, tail) = bytes.split_at(behind.offset as usize);
            let pipeline = self.pipeline(key, locations);
            check_readable(pipeline, chunk.cells(), head, section, tail.len())?;
        }
        Ok(Encoded::new(bytes, tag))
    }

    /// Whether sections that somebody else has made can be stored as a chunk: they must decode, and
    /// define cells inside the extent.
    pub fn check_stored(&self, key: &Dims, bytes: &[u8], record: &ChunkRecord) -> Result<()> {
        let pipelines = self.pipelines().map(|pipeline| self.pipeline(key, pipeline));
        check_sections(record, pipelines)?;
        let sections = HeapSections { lenient: false, ..self.sections(key) };
        let cells = self.decode_with(sections, key, bytes, record, Part::All)?.cells().len();
        let references = record.sections[usize::from(self.is_sparse())].unfiltered;
        // Decoding drops cells beyond the extent; their references have been announced all the same.
        let inside = cells.saturating_mul(self.geometry.element_size() as u64).saturating_add(4);
        if references != inside {
            return Err(Error::Invalid(format!(
                "{references} byte(s) of references were announced, but the cells inside the extent \
                 have {inside}"
            )));
        }
        if cells == 0 {
            return Err(Error::Invalid(
                "a chunk without defined cells is erased, not stored".into(),
            ));
        }
        self.check_locations(key, bytes, record)
    }

    /// Fails unless section 0, if it has locations, is as long before filters as the record says.
    pub fn check_locations(&self, key: &Dims, bytes: &[u8], record: &ChunkRecord) -> Result<()> {
        let Some(locations) = &self.locations else { return Ok(()) };
        let (section, stored) = stored_section(record, 0, bytes)?;
        let pipeline = self.pipeline(key, locations);
        announced::check_locations(&self.geometry, pipeline, stored, section, record)
    }

    /// Decodes the sections that `part` needs. `bytes` has at least those sections.
    fn decode_with(
        &self,
        sections: HeapSections<'_>,
        key: &Dims,
        bytes: &[u8],
        record: &ChunkRecord,
        part: Part,
    ) -> Result<HeapChunk> {
        let cells = match &self.locations {
            None => CellSet::full(self.geometry.cells_per_chunk()),
            Some(locations) => {
                let (section, stored) = stored_section(record, 0, bytes)?;
                let pipeline = self.pipeline(key, locations);
                decode_locations(&self.geometry, pipeline, stored, section, record)?
            }
        };
        if part == Part::Defined {
            let entries = SparseChunk::new(cells, None);
            return self.mask(key, HeapChunk::new(entries, self.datatype.size(), Vec::new()));
        }
        let first = usize::from(self.is_sparse());
        let element = self.geometry.element_size() as u64;
        let wanted = cells.len().saturating_mul(element).saturating_add(4);
        let decoded = sections.decode(record, first, bytes, wanted)?;
        let entries = SparseChunk::new(cells, Some(decoded.elements));
        let chunk = HeapChunk::new(entries, self.datatype.size(), decoded.heap);
        self.mask(key, chunk.sharing(decoded.shared))
    }

    /// Drops cells beyond the extent, which other writers may leave in an edge chunk.
    fn mask(&self, key: &Dims, mut chunk: HeapChunk) -> Result<HeapChunk> {
        if self.is_sparse()
            && let Some(outside) = self.geometry.beyond(key, chunk.cells())?
        {
            chunk.erase(&self.datatype, &outside)?;
        }
        Ok(chunk)
    }

    /// A request for defined cells, their values and what these refer to.
    pub fn ask<'a>(
        &self,
        cells: &'a Selection,
        found: &'a mut Option<(CellSet, Heaped)>,
    ) -> ReadRequest<'a> {
        ReadRequest::DefinedHeaped { cells, found }
    }

    /// Answers a read from a resident chunk.
    fn scatter_chunk(&self, chunk: &HeapChunk, request: &mut ReadRequest<'_>) -> Result<()> {
        let dims = self.geometry.chunk();
        match request {
            ReadRequest::Values { part, target } => {
                if self.is_sparse() {
                    self.put_fill(part.segments(dims), target)?;
                }
                chunk.scatter(&self.datatype, part.count(), part.segments(dims), target)
            }
            ReadRequest::Sparse(_) => Err(not_sparse()),
            ReadRequest::Defined { cells, found } => {
                let wanted = chunk.named(cells, dims)?;
                **found = Some(chunk.defined_among(&wanted));
                Ok(())
            }
            ReadRequest::DefinedValues { members: false, .. } => Err(no_heap()),
            ReadRequest::DefinedValues { cells, found, .. } => {
                let wanted = CellSet::from_selection(cells, dims)?;
                let (cells, values) = chunk.extract_members(&wanted);
                **found = Some((cells.into(), values));
                Ok(())
            }
            ReadRequest::DefinedHeaped { cells, found } => {
                let wanted = chunk.named(cells, dims)?;
                **found = Some(chunk.extract(&self.datatype, &wanted)?);
                Ok(())
            }
        }
    }

    /// Answers a read from a chunk that is not stored: nothing is defined there if the dataset is sparse,
    /// and every cell has the fill value otherwise.
    fn scatter_absent(&self, request: &mut ReadRequest<'_>) -> Result<()> {
        let dims = self.geometry.chunk();
        match request {
            ReadRequest::Values { part, target } => self.put_fill(part.segments(dims), target)?,
            ReadRequest::Defined { cells, found } if !self.is_sparse() => {
                **found = Some(CellSet::from_selection(cells, dims)?);
            }
            ReadRequest::DefinedValues { cells, members: true, found } if !self.is_sparse() => {
                let cells = CellSet::from_selection(cells, dims)?;
                let elements = self.fill_elements(&cells)?;
                **found = Some((cells.into(), elements));
            }
            ReadRequest::DefinedHeaped { cells, found } if !self.is_sparse() => {
                let cells = CellSet::from_selection(cells, dims)?;
                let mut elements = self.fill_elements(&cells)?;
                let mut heap = Vec::new();
                heaped::adopt(&self.datatype, &mut elements, &mut heap, 0, &self.fill.heap)?;
                **found = Some((cells, Heaped { elements, heap }));
            }
            _ => {}
        }
        Ok(())
    }

    /// The fill value for each of the cells, without what it refers to.
    fn fill_elements(&self, cells: &CellSet) -> Result<Vec<u8>> {
        let mut elements = super::dense::zeros(cells.len() * self.datatype.size() as u64)?;
        super::request::fill_with(&mut elements, &self.fill.elements);
        Ok(elements)
    }

    /// Puts the fill value wherever `segments` go, with what it refers to.
    fn put_fill(&self, segments: impl Iterator<Item = Segment>, target: &Target<'_>) -> Result<()> {
        if self.fill.heap.is_empty() || target.takes_members() {
            target.fill_all(segments);
            return Ok(());
        }
        let base = target.open_piece().ok_or_else(no_heap)?;
        let mut piece = Piece { first: u64::MAX, bytes: Vec::new() };
        for segment in segments {
            piece.first = piece.first.min(segment.memory);
            let mut elements = self.fill.elements.repeat(segment.len as usize);
            let (heap, from) = (&mut piece.bytes, &self.fill.heap);
            heaped::adopt(&self.datatype, &mut elements, heap, base, from)?;
            target.place(segment.memory, &elements)?;
        }
        target.put_piece(base, piece);
        Ok(())
    }

    /// Carries out a write on a resident chunk.
    fn gather_chunk(
        &self,
        chunk: &mut HeapChunk,
        request: &mut WriteRequest<'_>,
    ) -> Result<Outcome> {
        if !self.may_outgrow(chunk, request) {
            return self.change(chunk, request);
        }
        let before = chunk.clone();
        let done = self.change(chunk, request).and_then(|outcome| {
            let elements = chunk.entries().values();
            self.whole_sections().check(elements, &chunk.heap, chunk.is_shared())?;
            Ok(outcome)
        });
        if done.is_err() {
            // What was there can be stored, and must not get lost with what is refused.
            *chunk = before;
        }
        done
    }

    /// Whether the heap of a chunk could be larger after a write than lengths of the file can say: where these are
    /// of eight bytes, it cannot.
    fn may_outgrow(&self, chunk: &HeapChunk, request: &WriteRequest<'_>) -> bool {
        let most = match self.sizes.length {
            8.. => return false,
            width => (1u64 << (8 * width)) - 1,
        };
        let (cells, bytes) = match request {
            WriteRequest::Values { part, source } => {
                (part.count(), source.heap().map_or(0, |heap| heap.len()))
            }
            WriteRequest::Erase { .. } if self.is_sparse() => return false,
            WriteRequest::Erase { cells } => (cells.count(self.geometry.chunk()), 0),
            _ => return false,
        };
        let cells = chunk.len().saturating_add(cells);
        let elements = cells.saturating_mul(self.datatype.size() as u64);
        let fill = cells.saturating_mul(self.fill.heap.len() as u64);
        let bytes = (chunk.heap.len() as u64).saturating_add(bytes as u64).saturating_add(fill);
        // A reference has more than eight bytes, and what it refers to a header of sixteen and padding.
        elements.saturating_add(bytes).saturating_mul(4).saturating_add(1 << 10) > most
    }

    fn change(&self, chunk: &mut HeapChunk, request: &mut WriteRequest<'_>) -> Result<Outcome> {
        match request {
            WriteRequest::Values { part, source } => {
                let segments = part.segments(self.geometry.chunk());
                match source.has_members() {
                    true => chunk.define_members(&self.datatype, segments, source, &self.fill)?,
                    false => chunk.define(&self.datatype, segments, source)?,
                }
            }
            WriteRequest::Sparse(_) => {
                return Err(not_sparse());
            }
            WriteRequest::Erase { cells } if self.is_sparse() => {
                let cells = chunk.named(cells, self.geometry.chunk())?;
                let changed = chunk.erase(&self.datatype, &cells)?;
                if chunk.is_empty() {
                    return Ok(Outcome::Delete);
                }
                if !changed {
                    return Ok(Outcome::Unchanged);
                }
            }
            WriteRequest::Erase { cells } => {
                let cells = CellSet::from_selection(cells, self.geometry.chunk())?;
                chunk.fill(&self.datatype, &cells, &self.fill)?;
            }
        }
        chunk.compact(&self.datatype, self.waste.load(Ordering::Relaxed))?;
        Ok(Outcome::Keep)
    }
}

impl Layout<Hdf5> for VariableLength {
    fn chunks(&self) -> &dyn ChunkStore<Hdf5> {
        &*self.table
    }

    fn decode(
        &self,
        key: &Dims,
        bytes: Vec<u8>,
        stored: &Stored<ChunkRecord>,
        part: Part,
    ) -> Result<Chunk> {
        let chunk = self.decode_with(self.sections(key), key, &bytes, &stored.tag, part)?;
        Ok(Chunk::Heap(chunk))
    }

    fn new_chunk(&self, key: &Dims, fill: bool) -> Result<Chunk> {
        let fill = fill || self.geometry.is_partial(key);
        Ok(Chunk::Heap(self.make_chunk(fill)?))
    }

    fn encode(&self, key: &Dims, chunk: &Chunk) -> Result<Encoded<ChunkRecord>> {
        self.encode_sections(key, chunk.heap()?)
    }

    fn plan_read(
        &self,
        _: &Dims,
        _: Option<&Stored<ChunkRecord>>,
        request: &ReadRequest<'_>,
    ) -> ReadPlan {
        ReadPlan { part: request.part(), share: request.share(), ..ReadPlan::default() }
    }

    fn plan_write(
        &self,
        _: &Dims,
        _: Option<&Stored<ChunkRecord>>,
        request: &WriteRequest<'_>,
    ) -> WritePlan {
        let usual = WritePlan { intent: request.intent(true), ..WritePlan::default() };
        let WriteRequest::Values { part, source } = request else { return usual };
        let elements = part.count().saturating_mul(self.geometry.element_size() as u64 + 8);
        let bytes = elements.saturating_add(source.heap_share(part.count()));
        // Many lists are read from the file as quickly as from the cache, which they would only fill.
        let lists = source.as_lists().and(source.heap());
        let keep = !(lists.is_some_and(|heap| heap.len() >= MANY) && part.is_whole());
        WritePlan { growth: bytes, fresh: bytes, keep, ..usual }
    }

    fn scatter(
        &self,
        _: &Dims,
        chunk: Option<&Chunk>,
        request: &mut ReadRequest<'_>,
    ) -> Result<()> {
        match chunk {
            Some(chunk) => self.scatter_chunk(chunk.heap()?, request),
            None => self.scatter_absent(request),
        }
    }

    fn gather(
        &self,
        _: &Dims,
        chunk: &mut Chunk,
        request: &mut WriteRequest<'_>,
    ) -> Result<Outcome> {
        self.gather_chunk(chunk.heap_mut()?, request)
    }

    fn successors(&self, recent: &[Dims], now: &[Dims], count: usize) -> Vec<Dims> {
        self.geometry.successors(recent, now, count)
    }
}
