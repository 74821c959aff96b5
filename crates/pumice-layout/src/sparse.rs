//! The sparse layout: structured chunks of two sections, locations and values.
//!
//! A chunk on disk is its sections one after another, each through the filters of its own pipeline:
//! section 0 holds the encoded selection of defined cells and its checksum, section 1 the values of
//! those cells in row-major order. The byte format is described in `docs/format/`.
//!
//! Filters are the business of [`Pipeline`]; where the first of section 0 is the location filter, it
//! goes straight between the stored form and a `CellSet`.

mod partial;
mod reading;

use super::announced;
use super::geometry::Geometry;
use super::logged_chunk::LoggedChunk;
use super::request::{ReadRequest, SparseRead, SparseWrite, WriteRequest};
use super::sparse_chunk::{SparseChunk, StoredCells, collect};
use super::sparse_points;
use super::table::ChunkTable;
use super::{Chunk, Hdf5, NOWHERE, recycle, spare};
use pumice_bytes::{DecodeError, Writer};
use pumice_cache::{
    ChunkStore, Direct, Encoded, Fetch, Layout, Outcome, Part, Put, ReadPlan, Stored, WritePlan,
};
use pumice_filter::location::RowCells;
use pumice_filter::{EncodedCells, Pipeline, scratch};
use pumice_format::index::{ChunkRecord, SectionRecord};
use pumice_medium::{Error, Result};
use pumice_space::{CellSet, Dims};
use std::sync::Arc;

/// Section 0: which cells are defined.
pub const LOCATIONS: usize = 0;
/// Section 1: their values.
pub const VALUES: usize = 1;

/// How the sections of a dataset's chunks are stored.
pub struct Sparse {
    geometry: Arc<Geometry>,
    table: Arc<ChunkTable>,
    locations: Pipeline,
    values: Pipeline,
    /// For partial edge chunks, if they are stored unfiltered.
    plain: Option<Pipeline>,
}

/// An encoded chunk and what its index record says of it.
struct EncodedSections {
    /// The stored bytes.
    bytes: Arc<Vec<u8>>,
    /// Values that follow them as they are.
    values: Option<Arc<Vec<u8>>>,
    /// The sections in them.
    sections: [SectionRecord; 2],
    /// Where the chunk is stored, if nothing but its values is to be written anew.
    place: Option<u64>,
}

impl Sparse {
    /// A sparse layout with one pipeline per section.
    pub fn new(
        geometry: Arc<Geometry>,
        locations: Pipeline,
        values: Pipeline,
        dont_filter_partial: bool,
        table: ChunkTable,
    ) -> Self {
        let plain = dont_filter_partial.then(Pipeline::default);
        Self { geometry, table: Arc::new(table), locations, values, plain }
    }

    /// The table of its chunks.
    pub fn table(&self) -> &ChunkTable {
        &self.table
    }

    /// This storage for another extent of the dataset.
    pub fn with_geometry(&self, geometry: Arc<Geometry>) -> Self {
        let (locations, values) = (self.locations.clone(), self.values.clone());
        Self { geometry, table: self.table.clone(), locations, values, plain: self.plain.clone() }
    }

    /// This storage without a comparison of the checksums that filters add. The checksum of the locations is none
    /// of them: without it, values would land on wrong cells.
    fn unverified(&self) -> Self {
        let (locations, values) = (self.locations.unverified(), self.values.unverified());
        Self { locations, values, ..self.with_geometry(Arc::clone(&self.geometry)) }
    }

    /// The filters of a section.
    pub fn pipeline(&self, section: usize) -> &Pipeline {
        if section == LOCATIONS { &self.locations } else { &self.values }
    }

    /// Whether values are stored otherwise than they are.
    pub fn filters_values(&self) -> bool {
        !self.values.is_empty()
    }

    /// Whether partial edge chunks are stored unfiltered.
    pub fn dont_filter_partial(&self) -> bool {
        self.plain.is_some()
    }

    /// The pipelines of both sections for this chunk.
    fn pipelines(&self, key: &Dims) -> (&Pipeline, &Pipeline) {
        match &self.plain {
            Some(plain) if self.geometry.is_partial(key) => (plain, plain),
            _ => (&self.locations, &self.values),
        }
    }

    /// Encodes both sections.
    fn encode_sections(&self, key: &Dims, chunk: &SparseChunk) -> Result<EncodedSections> {
        let values = chunk.values.as_ref().ok_or_else(|| {
            Error::Internal("a chunk without resident values was to be written".into())
        })?;
        let (locations, filters) = self.pipelines(key);
        let (cells, place) = match &chunk.stored {
            // Values that are stored as they are take the place of those that were there.
            Some(StoredCells { cells, address }) => {
                (cells.clone(), filters.is_empty().then_some(*address))
            }
            None => (locations.encode_cells(self.geometry.chunk(), &chunk.cells)?, None),
        };
        let encoded = with_values(cells, filters, values)?;
        let [section, behind] = &encoded.sections;
        let (head, tail) = encoded.bytes.split_at(behind.offset as usize);
        let beside = tail.len() + encoded.values.as_ref().map_or(0, |values| values.len());
        check_readable(locations, &chunk.cells, head, section, beside)?;
        Ok(EncodedSections { place, ..encoded })
    }

    /// Bytes that so many values take in memory and in files, before filters.
    pub fn stored_values(&self, count: usize) -> u64 {
        (count as u64).saturating_mul(self.geometry.element_size() as u64)
    }

    /// Encodes a chunk that was written whole.
    fn encode_fresh(&self, cells: &RowCells, values: &Arc<Vec<u8>>) -> Result<EncodedSections> {
        if let Some((bytes, unfiltered)) = self.locations.keep_rows(cells)
            && self.values.is_empty()
        {
            let sections = two_sections(bytes.len(), unfiltered, 0, values.len());
            return Ok(EncodedSections {
                bytes,
                values: Some(values.clone()),
                sections,
                place: None,
            });
        }
        let cells = match self.locations.encode_rows(cells)? {
            Some(encoded) => encoded,
            None => self.locations.encode_cells(self.geometry.chunk(), &cells.to_set()?)?,
        };
        with_values(cells, &self.values, values)
    }

    /// Whether sections that somebody else has made can be stored as a chunk: they must decode, and
    /// define cells inside the extent.
    pub fn check_stored(&self, key: &Dims, bytes: &[u8], record: &ChunkRecord) -> Result<()> {
        let (locations, values) = self.pipelines(key);
        check_sections(record, [locations, values])?;
        let chunk = self.decode_sections(key, bytes, record, Part::All, false)?;
        // Decoding drops cells beyond the extent; their values have been announced all the same.
        let inside = chunk.cells.len().saturating_mul(self.geometry.element_size() as u64);
        let announced = record.sections[VALUES].unfiltered;
        if announced != inside {
            return Err(Error::Invalid(format!(
                "{announced} byte(s) of values were announced, but the cells inside the extent \
                 have {inside}"
            )));
        }
        if chunk.cells.is_empty() {
            return Err(Error::Invalid(
                "a chunk without defined cells is erased, not stored".into(),
            ));
        }
        self.check_locations(key, bytes, record)
    }

    /// Fails unless section 0 is as long before filters as the record says.
    pub fn check_locations(&self, key: &Dims, bytes: &[u8], record: &ChunkRecord) -> Result<()> {
        let ((section, length), _) = sections(record)?;
        let stored = bytes.get(..length).ok_or_else(|| short(0, length, bytes.len()))?;
        announced::check_locations(&self.geometry, self.pipelines(key).0, stored, &section, record)
    }

    /// Decodes the sections that `part` needs. `bytes` has at least those sections. If the chunk may
    /// be `changed` later, its locations are kept as they are stored.
    fn decode_sections(
        &self,
        key: &Dims,
        bytes: &[u8],
        record: &ChunkRecord,
        part: Part,
        changed: bool,
    ) -> Result<SparseChunk> {
        let (locations, values) = sections(record)?;
        let (before, filters) = self.pipelines(key);
        let Some((head, tail)) = bytes.split_at_checked(locations.1) else {
            return Err(short(record.address, locations.1, bytes.len()));
        };
        let section = locations.0;
        let cells = decode_locations(&self.geometry, before, head, &section, record)?;
        if part == Part::Defined {
            return self.mask(key, SparseChunk::new(cells, None));
        }
        if tail.len() != values.1 {
            return Err(short(record.address, locations.1 + values.1, bytes.len()));
        }
        let values = self.decode_values(filters, tail, &values.0, record.address, &cells)?;
        // Partial chunks may have other filters by the time they are stored again.
        let keep = changed && self.plain.is_none() && !head.is_empty();
        let stored = keep.then(|| StoredCells {
            cells: EncodedCells {
                bytes: head.to_vec(),
                unfiltered: section.unfiltered,
                mask: section.filter_mask,
            },
            address: record.address,
        });
        self.mask(key, SparseChunk { stored, ..SparseChunk::new(cells, Some(values)) })
    }

    fn decode_values(
        &self,
        pipeline: &Pipeline,
        bytes: &[u8],
        section: &SectionRecord,
        address: u64,
        cells: &CellSet,
    ) -> Result<Vec<u8>> {
        let wanted = cells.len().saturating_mul(self.geometry.element_size() as u64);
        let wrong = |found: u64| -> Error {
            let expected = format!("{wanted} byte(s) for {} defined cell(s)", cells.len());
            DecodeError::new("values of a sparse chunk", address, expected, found).into()
        };
        // More than the filters can have put into so few bytes.
        let possible = pipeline.decoded_bound(bytes.len(), section.filter_mask) as u64;
        if wanted > possible {
            return Err(wrong(possible));
        }
        let values = pipeline.decode_slice(bytes, section.filter_mask, wanted as usize)?;
        if values.len() as u64 == wanted { Ok(values) } else { Err(wrong(values.len() as u64)) }
    }

    /// Drops cells beyond the extent, which other writers may leave in an edge chunk.
    fn mask(&self, key: &Dims, mut chunk: SparseChunk) -> Result<SparseChunk> {
        if !self.geometry.has_all(key, &chunk.cells)
            && let Some(outside) = self.geometry.beyond(key, &chunk.cells)?
        {
            chunk.erase(self.geometry.element_size(), &outside);
        }
        Ok(chunk)
    }

    /// Carries out a write on a resident chunk.
    fn gather_logged(
        &self,
        chunk: &mut LoggedChunk,
        request: &mut WriteRequest<'_>,
    ) -> Result<Outcome> {
        let (dims, total) = (self.geometry.chunk(), self.geometry.cells_per_chunk());
        let (found, source) = match request {
            WriteRequest::Values { part, source } => {
                (collect(total, part.segments(dims), source)?, source)
            }
            WriteRequest::Sparse(SparseWrite::Points { part, source }) => {
                (sparse_points::collect(part, source)?, source)
            }
            WriteRequest::Sparse(SparseWrite::Band { band, source }) => {
                (sparse_points::in_order(total, band, source.element_size())?, source)
            }
            WriteRequest::Sparse(SparseWrite::Rows { part, source, .. }) => {
                let Some((cells, values)) = part.take() else { return Ok(Outcome::Unchanged) };
                if chunk.is_new() && cells.is_final() && source.overwrites() && self.takes_rows() {
                    // A new chunk gets compressed rows as they are.
                    chunk.begin(cells, source.convert(values, Vec::new)?);
                    return Ok(Outcome::Keep);
                }
                ((cells.to_set()?, values), source)
            }
            WriteRequest::Sparse(SparseWrite::Erase { part }) => {
                return Ok(erase(chunk, &sparse_points::cells(part)?));
            }
            WriteRequest::Erase { cells } => {
                let cells = chunk.named(cells, dims)?;
                return Ok(erase(chunk, &cells));
            }
        };
        let (cells, values) = found;
        let fill = self.geometry.fill();
        let values = source.convert(values, || chunk.values_or_fill(&cells, fill))?;
        chunk.define(cells, values);
        Ok(Outcome::Keep)
    }

    /// Whether cells can be stored as the location filter encodes rows of them.
    pub fn takes_rows(&self) -> bool {
        self.plain.is_none() && self.locations.begins_with_location()
    }
}

impl Layout<Hdf5> for Sparse {
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
        let changed = self.table.medium().is_writable();
        let chunk = self.decode_sections(key, &bytes, &stored.tag, part, changed)?;
        recycle(bytes);
        Ok(Chunk::Sparse(LoggedChunk::new(chunk, self.geometry.element_size())))
    }

    /// A chunk without defined cells.
    fn new_chunk(&self, _: &Dims, _: bool) -> Result<Chunk> {
        let chunk = SparseChunk::empty(self.geometry.cells_per_chunk());
        Ok(Chunk::Sparse(LoggedChunk::new(chunk, self.geometry.element_size())))
    }

    fn encode(&self, key: &Dims, chunk: &Chunk) -> Result<Encoded<ChunkRecord>> {
        let chunk = chunk.sparse()?;
        let encoded = match chunk.fresh() {
            Some((cells, values)) => self.encode_fresh(cells, values)?,
            None => self.encode_sections(key, chunk.view())?,
        };
        let mut tag = ChunkRecord::dense(encoded.place.unwrap_or(NOWHERE), 0);
        tag.sections.extend(encoded.sections);
        Ok(Encoded { bytes: encoded.bytes, rest: encoded.values, tag })
    }

    fn plan_read(
        &self,
        key: &Dims,
        stored: Option<&Stored<ChunkRecord>>,
        request: &ReadRequest<'_>,
    ) -> ReadPlan {
        let keep = match request {
            // What was not verified would answer reads that ask for more.
            ReadRequest::Values { target, .. } => !target.is_unverified(),
            // What is put down whole is in the caller's hands, and decoding it again takes hardly longer
            // than putting it down. Kept, a scan would go through memory once more.
            ReadRequest::Sparse(SparseRead::Cells {
                cells: None,
                place: Some(_),
                passes: true,
                ..
            }) => false,
            _ => true,
        };
        let direct = stored.and_then(|stored| self.direct_memory(key, stored, request));
        ReadPlan { part: request.part(), share: request.share(), keep, direct }
    }

    fn plan_write(
        &self,
        key: &Dims,
        stored: Option<&Stored<ChunkRecord>>,
        request: &WriteRequest<'_>,
    ) -> WritePlan {
        let (growth, fresh) = self.growth(request);
        // A write may find all its cells defined. Elements that refer to something may have to wait, and chunks
        // wait as a whole.
        let straight = growth.is_some() && !self.table.refers() && self.is_plain(key);
        let growth = growth.unwrap_or(0);
        let memory = |stored| self.part_bytes(stored).saturating_add(growth);
        let direct = stored.filter(|_| straight).map(memory);
        // Many rows are read from the file as quickly as from the cache, which they would only fill.
        let keep = !matches!(request, WriteRequest::Sparse(SparseWrite::Rows { whole: true, .. }));
        // A sparse chunk is never known to be complete.
        WritePlan { intent: request.intent(false), share: 0.0, growth, fresh, keep, direct }
    }

    fn scatter(
        &self,
        _: &Dims,
        chunk: Option<&Chunk>,
        request: &mut ReadRequest<'_>,
    ) -> Result<()> {
        match chunk {
            Some(chunk) => self.scatter_logged(chunk.sparse()?, request),
            None => self.scatter_absent(request),
        }
    }

    fn gather(
        &self,
        _: &Dims,
        chunk: &mut Chunk,
        request: &mut WriteRequest<'_>,
    ) -> Result<Outcome> {
        self.gather_logged(chunk.sparse_mut()?, request)
    }

    fn scatter_stored(
        &self,
        key: &Dims,
        bytes: &mut Vec<u8>,
        stored: &Stored<ChunkRecord>,
        request: &mut ReadRequest<'_>,
    ) -> Result<bool> {
        let served = self.scatter_bytes(key, bytes, &stored.tag, request)?;
        if served {
            recycle(std::mem::take(bytes));
        }
        Ok(served)
    }

    fn direct_read<'r>(
        &self,
        key: &Dims,
        stored: &Stored<ChunkRecord>,
        request: &'r mut ReadRequest<'_>,
        _: &mut Vec<Fetch<'r>>,
    ) -> Result<Option<Direct>> {
        match self.can_read_whole(key, stored, request) {
            true => self.read_whole(key, stored, request),
            false => self.read_part(key, stored, request),
        }
    }

    fn direct_write<'r>(
        &self,
        key: &Dims,
        stored: &Stored<ChunkRecord>,
        request: &'r mut WriteRequest<'_>,
        _: &mut Vec<Put<'r>>,
    ) -> Result<Option<Direct>> {
        self.write_part(key, stored, request)
    }

    fn successors(&self, recent: &[Dims], now: &[Dims], count: usize) -> Vec<Dims> {
        self.geometry.successors(recent, now, count)
    }

    fn spare(&self, len: usize) -> Option<Vec<u8>> {
        spare(len)
    }
}

/// Puts values behind locations.
fn with_values(
    cells: EncodedCells,
    filters: &Pipeline,
    values: &Arc<Vec<u8>>,
) -> Result<EncodedSections> {
    let EncodedCells { mut bytes, unfiltered, mask } = cells;
    let mut sections = two_sections(bytes.len(), unfiltered, mask, values.len());
    if filters.is_empty() {
        let (bytes, values) = (Arc::new(bytes), Some(Arc::clone(values)));
        return Ok(EncodedSections { bytes, values, sections, place: None });
    }
    let (encoded, filter_mask) = filters.encode_slice(values)?;
    bytes.put_bytes(&encoded);
    scratch::give(encoded);
    sections[VALUES].filter_mask = filter_mask;
    Ok(EncodedSections { bytes: Arc::new(bytes), values: None, sections, place: None })
}

/// Locations of `length` bytes behind filters, and values behind them that have been through no filter.
fn two_sections(
    length: usize,
    unfiltered: u64,
    filter_mask: u32,
    values: usize,
) -> [SectionRecord; 2] {
    let first = SectionRecord { offset: 0, unfiltered, filter_mask };
    let (offset, unfiltered) = (length as u64, values as u64);
    [first, SectionRecord { offset, unfiltered, filter_mask: 0 }]
}

/// Makes cells undefined.
fn erase(chunk: &mut LoggedChunk, cells: &CellSet) -> Outcome {
    let changed = chunk.erase(cells);
    match changed {
        _ if chunk.is_empty() => Outcome::Delete,
        true => Outcome::Keep,
        false => Outcome::Unchanged,
    }
}

/// The defined cells of a chunk, from the stored bytes of section 0.
pub(super) fn decode_locations(
    geometry: &Geometry,
    pipeline: &Pipeline,
    bytes: &[u8],
    section: &SectionRecord,
    record: &ChunkRecord,
) -> Result<CellSet> {
    let total = geometry.cells_per_chunk();
    if bytes.is_empty() {
        // An empty section 0 says that every cell is defined.
        return Ok(CellSet::full(total));
    }
    let SectionRecord { filter_mask, unfiltered, .. } = *section;
    // The file has as many bytes as the record says, or nobody would have got it from the index.
    let beside = record.size.saturating_sub(bytes.len() as u64);
    let (dims, cells) =
        pipeline.decode_cells_beside(bytes, filter_mask, unfiltered, total, beside)?;
    if dims.as_slice() == geometry.chunk() {
        return Ok(cells);
    }
    let expected = format!("a selection over a chunk of {:?}", geometry.chunk());
    let (what, found) = ("locations of a sparse chunk", format!("{dims:?}"));
    Err(DecodeError::new(what, record.address, expected, found).into())
}

/// So many cells can always be read again: filters let locations take 512 MiB whatever their length, and a cell takes 32 bytes
/// at most.
const ALWAYS_READABLE: u64 = 1 << 24;

/// Fails if locations that have just been encoded, with so many bytes `beside` them, would be refused by who reads them, as
/// taking too much memory for what is there: such a chunk must not be stored.
pub(super) fn check_readable(
    pipeline: &Pipeline,
    cells: &CellSet,
    bytes: &[u8],
    section: &SectionRecord,
    beside: usize,
) -> Result<()> {
    let SectionRecord { unfiltered, filter_mask, .. } = *section;
    // Only a regular selection has less than a byte for two cells.
    if cells.len() <= ALWAYS_READABLE || unfiltered >= cells.len() / 2 || bytes.is_empty() {
        return Ok(());
    }
    let all = cells.cells();
    match pipeline.decode_cells_beside(bytes, filter_mask, unfiltered, all, beside as u64) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::Invalid(format!(
            "{} defined cells of one chunk in {} byte(s) of locations and values, which readers refuse ({error}): \
             choose smaller chunks",
            cells.len(),
            bytes.len() + beside
        ))),
    }
}

/// Whether sizes and masks of sections that somebody else has made fit the pipelines.
pub(super) fn check_sections<'a>(
    record: &ChunkRecord,
    pipelines: impl IntoIterator<Item = &'a Pipeline>,
) -> Result<()> {
    for (at, pipeline) in pipelines.into_iter().enumerate() {
        let (Some(section), Some(length)) = (record.sections.get(at), record.section_length(at))
        else {
            return Err(Error::Invalid(format!("section {at} is missing")));
        };
        let (filters, mask) = (pipeline.specs().len() as u32, section.filter_mask);
        if mask.checked_shr(filters).is_some_and(|beyond| beyond != 0) {
            return Err(Error::Invalid(format!(
                "the filter mask {mask:#x} of section {at} skips filters that a pipeline of \
                 {filters} has not"
            )));
        }
        if mask.count_ones() == filters && section.unfiltered != length {
            return Err(Error::Invalid(format!(
                "section {at} has {length} byte(s) unfiltered, but {} were announced",
                section.unfiltered
            )));
        }
    }
    Ok(())
}

/// Both sections with their stored lengths.
fn sections(record: &ChunkRecord) -> Result<((SectionRecord, usize), (SectionRecord, usize))> {
    let section = |index: usize| {
        let section = record.sections.get(index)?;
        let length = usize::try_from(record.section_length(index)?).ok()?;
        Some((*section, length))
    };
    match (section(LOCATIONS), section(VALUES), record.sections.len()) {
        (Some(locations), Some(values), 2) => Ok((locations, values)),
        _ => Err(DecodeError::new(
            "sparse chunk",
            record.address,
            "two sections in ascending order",
            format!("{:?} in {} byte(s)", record.sections, record.size),
        )
        .into()),
    }
}

fn short(address: u64, expected: usize, found: usize) -> Error {
    DecodeError::new("sparse chunk", address, format!("{expected} byte(s)"), found).into()
}
