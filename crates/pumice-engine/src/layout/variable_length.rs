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

use super::geometry::Geometry;
use super::heap_chunk::HeapChunk;
use super::request::{ReadRequest, WriteRequest, points_of_sparse};
use super::sparse::{check_sections, decode_locations};
use super::sparse_chunk::SparseChunk;
use crate::{Error, Result};
use pumice_bytes::{DecodeError, Writer};
use pumice_cache::{Encoded, Intent, Outcome, Part};
use pumice_filter::heap::HeapObjects;
use pumice_filter::references::{self, ReferencesSection};
use pumice_filter::{EncodedCells, EncodedHeap, HeapSection, Pipeline, scratch};
use pumice_format::heap_set::{HeapSet, PER_COLLECTION, Reference};
use pumice_format::index::{ChunkRecord, SectionRecord};
use pumice_format::{Context, Sizes};
use pumice_space::{CellSet, Dims};
use pumice_types::heaped::{self, ObjectSink, ObjectSource};
use pumice_types::{Datatype, VarLen};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const HEAP: &str = "heap of a structured chunk";
/// Bytes that the references of a new dense chunk may take: as the shape of a chunk is what a file
/// says, it must not decide alone.
const MAX_REFERENCES: u64 = 512 << 20;

/// The share of a heap in memory that may be waste, in percent.
const WASTE: u32 = 25;
/// How many bytes of memory a byte of a section may become before that counts as damage: an object
/// may be referred to more than once, but nobody does so often.
const MULTIPLE: u64 = 64;

/// How chunks with variable-length data are stored.
pub struct VariableLength {
    geometry: Arc<Geometry>,
    datatype: Datatype,
    sizes: Sizes,
    /// Of the locations, if the dataset is sparse.
    locations: Option<Pipeline>,
    references: Pipeline,
    heap: Pipeline,
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
    /// A layout for elements of `datatype`.
    pub fn new(
        geometry: Arc<Geometry>,
        datatype: Datatype,
        sizes: Sizes,
        filters: VariableLengthFilters,
        dont_filter_partial: bool,
    ) -> Result<Self> {
        let mut fill = geometry.fill().to_vec();
        heaped::for_each_reference(&datatype, &mut fill, &mut |_, reference| -> Result<()> {
            if reference.iter().any(|&byte| byte != 0) {
                let what = "a fill value of variable length in structured chunks";
                return Err(Error::Unsupported(what.into()));
            }
            Ok(())
        })?;
        let VariableLengthFilters { locations, references, heap } = filters;
        let plain = dont_filter_partial.then(Pipeline::default);
        let waste = AtomicU32::new(WASTE);
        Ok(Self { geometry, datatype, sizes, locations, references, heap, plain, waste })
    }

    /// The same for another extent.
    pub fn with_geometry(&self, geometry: Arc<Geometry>) -> Self {
        Self {
            geometry,
            datatype: self.datatype.clone(),
            sizes: self.sizes,
            locations: self.locations.clone(),
            references: self.references.clone(),
            heap: self.heap.clone(),
            plain: self.plain.clone(),
            waste: AtomicU32::new(self.waste.load(Ordering::Relaxed)),
        }
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

    /// A chunk without defined cells; of a dense dataset, with the fill value everywhere.
    pub fn new_chunk(&self) -> Result<HeapChunk> {
        let cells = self.geometry.cells_per_chunk();
        if self.is_sparse() {
            return Ok(HeapChunk::new(SparseChunk::empty(cells), Vec::new()));
        }
        let bytes = self.geometry.chunk_bytes();
        if bytes > MAX_REFERENCES {
            return Err(Error::Invalid(format!(
                "a chunk of {cells} variable-length cells needs {bytes} bytes for references alone, \
                 at most {MAX_REFERENCES} are taken: choose smaller chunks"
            )));
        }
        let mut values = super::dense::zeros(bytes)?;
        super::request::fill_with(&mut values, self.geometry.fill());
        let entries = SparseChunk::new(CellSet::full(cells), Some(values));
        Ok(HeapChunk::new(entries, Vec::new()))
    }

    /// Encodes all sections.
    pub fn encode(&self, key: &Dims, chunk: &HeapChunk) -> Result<Encoded<ChunkRecord>> {
        let elements = chunk.entries.values.as_deref().ok_or_else(|| {
            Error::Internal("a chunk without resident values was to be written".into())
        })?;
        let mut tag = ChunkRecord::dense(0, 0);
        let mut bytes = Vec::new();
        if let Some(locations) = &self.locations {
            let locations = self.pipeline(key, locations);
            let EncodedCells { bytes: encoded, unfiltered, mask } =
                locations.encode_cells(self.geometry.chunk(), &chunk.entries.cells)?;
            bytes = encoded;
            tag.sections.push(SectionRecord { offset: 0, unfiltered, filter_mask: mask });
        }
        let pipeline = self.pipeline(key, &self.references);
        let direct = match self.datatype.as_flat_varlen() {
            Some(varlen) if pipeline.begins_with_references() => {
                counts_of(varlen, elements, &chunk.heap)
            }
            _ => None,
        };
        let (encoded, objects) = match direct {
            Some((counts, objects)) => (pipeline.encode_references(&counts)?, objects),
            None => {
                let mut references = elements.to_vec();
                let objects = objects_of(&self.datatype, &mut references, &chunk.heap)?;
                references.put_checksum(0);
                let unfiltered = references.len() as u64;
                let (bytes, mask) = pipeline.encode(references)?;
                (EncodedCells { bytes, unfiltered, mask }, objects)
            }
        };
        let (offset, unfiltered, filter_mask) =
            (bytes.len() as u64, encoded.unfiltered, encoded.mask);
        bytes.put_bytes(&encoded.bytes);
        scratch::give(encoded.bytes);
        tag.sections.push(SectionRecord { offset, unfiltered, filter_mask });
        let (offset, heap) = (bytes.len() as u64, self.pipeline(key, &self.heap));
        let EncodedHeap { bytes: encoded, unfiltered, mask } =
            heap.encode_heap(&objects.lengths, &objects.bytes)?;
        bytes.put_bytes(&encoded);
        scratch::give(encoded);
        tag.sections.push(SectionRecord { offset, unfiltered, filter_mask: mask });
        Ok(Encoded { bytes, tag })
    }

    /// Whether sections that somebody else has made can be stored as a chunk: they must decode, and
    /// define cells inside the extent.
    pub fn check_stored(&self, key: &Dims, bytes: &[u8], record: &ChunkRecord) -> Result<()> {
        let pipelines = self.pipelines().map(|pipeline| self.pipeline(key, pipeline));
        check_sections(record, pipelines)?;
        let cells = self.decode(key, bytes.to_vec(), record, Part::All)?.entries.cells.len();
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
        Ok(())
    }

    /// Decodes the sections that `part` needs. `bytes` has at least those sections.
    pub fn decode(
        &self,
        key: &Dims,
        bytes: Vec<u8>,
        record: &ChunkRecord,
        part: Part,
    ) -> Result<HeapChunk> {
        let cells = match &self.locations {
            None => CellSet::full(self.geometry.cells_per_chunk()),
            Some(locations) => {
                let (section, stored) = stored_section(record, 0, &bytes)?;
                let pipeline = self.pipeline(key, locations);
                decode_locations(&self.geometry, pipeline, stored, section, record.address)?
            }
        };
        if part == Part::Defined {
            let entries = SparseChunk::new(cells, None);
            return self.mask(key, HeapChunk::new(entries, Vec::new()));
        }
        let first = usize::from(self.is_sparse());
        let element = self.geometry.element_size() as u64;
        let wanted = cells.len().saturating_mul(element).saturating_add(4);
        let references = self.pipeline(key, &self.references);
        let references = decode_references(references, record, first, &bytes, wanted)?;
        let heap = decode_heap(self.pipeline(key, &self.heap), record, first + 1, &bytes)?;
        let direct = match (&references, &heap, self.datatype.as_flat_varlen()) {
            (ReferencesSection::Counts(counts), HeapSection::Objects(objects), Some(varlen)) => {
                elements_of(varlen, counts, &objects.lengths)
            }
            _ => None,
        };
        let (elements, heap) = match (direct, heap) {
            (Some(elements), HeapSection::Objects(objects)) => (elements, objects.bytes),
            (_, heap) => {
                let mut elements = match references {
                    ReferencesSection::Counts(counts) => numbered(&counts),
                    ReferencesSection::Plain(elements) => elements,
                };
                let heap = match heap {
                    HeapSection::Objects(objects) => {
                        self.load_objects(&mut elements, objects, record.address)?
                    }
                    HeapSection::Plain(image) => {
                        self.load(&mut elements, &image, record.address)?
                    }
                };
                (elements, heap)
            }
        };
        let entries = SparseChunk::new(cells, Some(elements));
        self.mask(key, HeapChunk::new(entries, heap))
    }

    /// Lets elements refer to the objects of a heap section. Mostly these are in the order of the
    /// elements: then their bytes stay as they are.
    fn load_objects(
        &self,
        elements: &mut [u8],
        objects: HeapObjects,
        address: u64,
    ) -> Result<Vec<u8>> {
        if let Some(varlen) = self.datatype.as_flat_varlen()
            && follow_in_order(varlen, elements, &objects.lengths, address)?
        {
            return Ok(objects.bytes);
        }
        let HeapObjects { lengths, bytes } = objects;
        let mut ends = Vec::with_capacity(lengths.len());
        let mut end = 0;
        for length in lengths {
            end += length as usize;
            ends.push(end);
        }
        let find = |slot: u16, index: u16| {
            let number = usize::from(slot) * PER_COLLECTION + usize::from(index).checked_sub(1)?;
            let start = number.checked_sub(1).map_or(Some(&0), |before| ends.get(before))?;
            Some(*start..*ends.get(number)?)
        };
        self.load_from(elements, &bytes, &find, address)
    }

    /// Lets elements refer to what their references into a heap section lead to.
    fn load(&self, elements: &mut [u8], image: &[u8], address: u64) -> Result<Vec<u8>> {
        let context = Context::new(self.sizes).at(address);
        let objects = match image {
            [] => HeapSet::default(),
            image => HeapSet::decode(image, &context)?,
        };
        self.load_from(elements, image, &|slot, index| objects.object(slot, index), address)
    }

    fn load_from(
        &self,
        elements: &mut [u8],
        image: &[u8],
        find: &dyn Fn(u16, u16) -> Option<Range<usize>>,
        address: u64,
    ) -> Result<Vec<u8>> {
        let all = (image.len() as u64).saturating_add(elements.len() as u64);
        let budget = all.saturating_mul(MULTIPLE);
        let mut heap = Vec::with_capacity(image.len().saturating_sub(elements.len()));
        let mut source = Objects { image, find, address, budget };
        heaped::load(&self.datatype, elements, &mut heap, &mut source)?;
        if heap.capacity() > heap.len() + heap.len() / 4 + 256 {
            heap.shrink_to_fit();
        }
        Ok(heap)
    }

    /// Drops cells beyond the extent, which other writers may leave in an edge chunk.
    fn mask(&self, key: &Dims, mut chunk: HeapChunk) -> Result<HeapChunk> {
        if self.is_sparse()
            && let Some(outside) = self.geometry.outside(key)?
        {
            chunk.erase(&self.datatype, &outside)?;
        }
        Ok(chunk)
    }

    /// Answers a read from a resident chunk.
    pub fn scatter(&self, chunk: &HeapChunk, request: &mut ReadRequest<'_>) -> Result<()> {
        let dims = self.geometry.chunk();
        match request {
            ReadRequest::Values { part, target } => {
                target.fill_all(part.segments(dims));
                chunk.scatter(&self.datatype, part.segments(dims), target)
            }
            ReadRequest::Points { .. } | ReadRequest::Cells { .. } => Err(points_of_sparse()),
            ReadRequest::Defined { cells, found } => {
                let wanted = CellSet::from_selection(cells, dims)?;
                **found = Some(chunk.entries.cells.intersection(&wanted));
                Ok(())
            }
            ReadRequest::DefinedValues { .. } => Err(Error::Invalid(
                "values of variable length are read as strings, sequences or values".into(),
            )),
            ReadRequest::DefinedHeaped { cells, found } => {
                let wanted = CellSet::from_selection(cells, dims)?;
                **found = Some(chunk.extract(&self.datatype, &wanted)?);
                Ok(())
            }
        }
    }

    /// Answers a read from a chunk that is not stored: nothing is defined there.
    pub fn scatter_absent(&self, request: &mut ReadRequest<'_>) -> Result<()> {
        if let ReadRequest::Values { part, target } = request {
            target.fill_all(part.segments(self.geometry.chunk()));
        }
        Ok(())
    }

    /// Carries out a write on a resident chunk.
    pub fn gather(&self, chunk: &mut HeapChunk, request: &mut WriteRequest<'_>) -> Result<Outcome> {
        match request {
            WriteRequest::Values { part, source } => {
                let segments = part.segments(self.geometry.chunk());
                chunk.define(&self.datatype, segments, source)?;
            }
            WriteRequest::Points { .. }
            | WriteRequest::Band { .. }
            | WriteRequest::ErasePoints { .. } => {
                return Err(points_of_sparse());
            }
            WriteRequest::Erase { cells } if self.is_sparse() => {
                chunk.erase(&self.datatype, cells)?;
                if chunk.entries.cells.is_empty() {
                    return Ok(Outcome::Delete);
                }
            }
            WriteRequest::Erase { cells } => {
                chunk.fill(&self.datatype, cells, self.geometry.fill())?;
            }
        }
        chunk.compact(&self.datatype, self.waste.load(Ordering::Relaxed))?;
        Ok(Outcome::Keep)
    }

    /// Whether a write needs what is stored.
    pub fn intent(&self, request: &WriteRequest<'_>) -> Intent {
        match request {
            WriteRequest::Values { part, .. } if part.is_whole() => Intent::Replace,
            WriteRequest::Values { .. }
            | WriteRequest::Points { .. }
            | WriteRequest::Band { .. } => Intent::Update,
            WriteRequest::Erase { .. } | WriteRequest::ErasePoints { .. } => Intent::UpdateExisting,
        }
    }
}

/// A section of a chunk: what the index says of it, and its stored bytes.
fn stored_section<'a>(
    record: &'a ChunkRecord,
    index: usize,
    bytes: &'a [u8],
) -> Result<(&'a SectionRecord, &'a [u8])> {
    let found = record.sections.get(index).zip(record.section_length(index));
    let stored = found.and_then(|(section, length)| {
        let start = usize::try_from(section.offset).ok()?;
        let end = start.checked_add(usize::try_from(length).ok()?)?;
        Some((section, bytes.get(start..end)?))
    });
    stored.ok_or_else(|| {
        let found = format!("{:?} in {} byte(s)", record.sections, bytes.len());
        let expected = format!("section {index} inside the chunk");
        DecodeError::new("structured chunk", record.address, expected, found).into()
    })
}

/// Refuses a length that the best compression there is cannot have put into so few bytes.
fn check_possible(record: &ChunkRecord, stored: &[u8], unfiltered: u64) -> Result<usize> {
    let possible = (stored.len() as u64 + 1).saturating_mul(1 << 17);
    let length = usize::try_from(unfiltered).ok().filter(|_| unfiltered <= possible);
    length.ok_or_else(|| {
        let expected = format!("at most {possible} byte(s) before filters");
        DecodeError::new("section of a structured chunk", record.address, expected, unfiltered)
            .into()
    })
}

/// The references section without filters and checksum, which was verified.
fn decode_references(
    pipeline: &Pipeline,
    record: &ChunkRecord,
    index: usize,
    bytes: &[u8],
    wanted: u64,
) -> Result<ReferencesSection> {
    let (section, stored) = stored_section(record, index, bytes)?;
    check_possible(record, stored, wanted)?;
    Ok(pipeline.decode_references(stored, section.filter_mask, wanted)?)
}

/// References to objects in their order, as the file has them.
fn numbered(counts: &[u32]) -> Vec<u8> {
    let mut elements = vec![0; counts.len() * references::SIZE];
    let mut sink = Sink::default();
    for (count, place) in counts.iter().zip(elements.chunks_exact_mut(references::SIZE)) {
        // There are no more than a heap can have: the filter has seen to that.
        if let Some(count) = count.checked_sub(1)
            && sink.number(0, count, place).is_err()
        {
            break;
        }
    }
    elements
}

/// Elements that refer to objects in their order, if these have the lengths that the counts say.
fn elements_of(varlen: &VarLen, counts: &[u32], lengths: &[u32]) -> Option<Vec<u8>> {
    let base = varlen.base.size() as u64;
    let mut lengths = lengths.iter();
    let mut elements = vec![0; counts.len() * references::SIZE];
    let mut place = 0;
    for (count, element) in counts.iter().zip(elements.chunks_exact_mut(references::SIZE)) {
        let Some(count) = count.checked_sub(1) else { continue };
        let length = u64::from(count).checked_mul(base)?;
        if lengths.next().map(|&length| u64::from(length)) != Some(length) {
            return None;
        }
        heaped::put_reference(element, u64::from(count), place).ok()?;
        place += length;
    }
    lengths.next().is_none().then_some(elements)
}

/// One more than the count of each element, 0 for null, and the objects, if these lie one after
/// another in the heap and fill it.
fn counts_of<'a>(
    varlen: &VarLen,
    elements: &[u8],
    heap: &'a [u8],
) -> Option<(Vec<u32>, Numbered<'a>)> {
    let base = varlen.base.size() as u64;
    let mut counts = Vec::with_capacity(elements.len() / references::SIZE);
    let mut lengths = Vec::with_capacity(counts.capacity());
    let mut next = 0;
    for element in elements.chunks_exact(references::SIZE) {
        let Some((count, place)) = heaped::reference_of(element) else {
            counts.push(0);
            continue;
        };
        if place != next {
            return None;
        }
        let length = count.checked_mul(base)?;
        next += length;
        counts.push(u32::try_from(count).ok()?.checked_add(1)?);
        lengths.push(u32::try_from(length).ok()?);
    }
    let fits = next == heap.len() as u64 && lengths.len() <= PER_COLLECTION << 16;
    fits.then_some((counts, Numbered { lengths, bytes: Cow::Borrowed(heap) }))
}

/// The heap section without filters, its checksum verified. An empty section has neither.
fn decode_heap(
    pipeline: &Pipeline,
    record: &ChunkRecord,
    index: usize,
    bytes: &[u8],
) -> Result<HeapSection> {
    let (section, stored) = stored_section(record, index, bytes)?;
    // An index without filters says nothing of the length before them.
    let unfiltered = match pipeline.is_empty() {
        true => stored.len() as u64,
        false => section.unfiltered,
    };
    check_possible(record, stored, unfiltered)?;
    Ok(pipeline.decode_heap(stored, section.filter_mask, unfiltered)?)
}

/// Lets references follow objects, if they lead to them one after another; otherwise leaves them as
/// they are.
fn follow_in_order(
    varlen: &VarLen,
    elements: &mut [u8],
    lengths: &[u32],
    address: u64,
) -> Result<bool> {
    let (size, base) = ((varlen.size as usize).max(1), varlen.base.size() as u64);
    let mut next = 0;
    for reference in elements.chunks_exact(size) {
        let Some(found) = Reference::decode(reference, address)? else { continue };
        let number = usize::from(found.slot) * PER_COLLECTION + usize::from(found.index);
        let length = lengths.get(next).copied();
        if number != next + 1 || length.map(u64::from) != Some(u64::from(found.count) * base) {
            return Ok(false);
        }
        next += 1;
    }
    if next != lengths.len() {
        return Ok(false);
    }
    let mut place = 0;
    for reference in elements.chunks_exact_mut(size) {
        if let Some(found) = Reference::decode(reference, address)? {
            heaped::put_reference(reference, u64::from(found.count), place)?;
            place += u64::from(found.count) * base;
        }
    }
    Ok(true)
}

/// The objects that elements refer to in `heap`, numbered in their order; the elements get references
/// to them. Mostly they lie one after another in the heap already.
fn objects_of<'a>(
    datatype: &Datatype,
    elements: &mut [u8],
    heap: &'a [u8],
) -> Result<Numbered<'a>> {
    let in_order = datatype
        .as_flat_varlen()
        .filter(|varlen| heaped::run_of(varlen, elements) == Some(0..heap.len() as u64));
    let mut sink = Sink::default();
    let Some(varlen) = in_order else {
        heaped::store(datatype, elements, heap, &mut sink)?;
        return Ok(Numbered { lengths: sink.lengths, bytes: Cow::Owned(sink.bytes) });
    };
    let (size, base) = ((varlen.size as usize).max(1), varlen.base.size() as u64);
    sink.lengths.reserve(elements.len() / size);
    for reference in elements.chunks_exact_mut(size) {
        if let Some((count, _)) = heaped::reference_of(reference) {
            sink.number(count * base, count as u32, reference)?;
        }
    }
    Ok(Numbered { lengths: sink.lengths, bytes: Cow::Borrowed(heap) })
}

/// Objects that are to be stored.
struct Numbered<'a> {
    lengths: Vec<u32>,
    bytes: Cow<'a, [u8]>,
}

/// The objects of a heap section.
struct Objects<'a> {
    image: &'a [u8],
    /// Where the object of a slot and an index lies in the image.
    find: &'a dyn Fn(u16, u16) -> Option<Range<usize>>,
    address: u64,
    /// How many more bytes are believable.
    budget: u64,
}

impl ObjectSource for Objects<'_> {
    type Error = Error;

    #[inline]
    fn object(&mut self, reference: &[u8], length: u64) -> Result<Option<&[u8]>> {
        let Some(reference) = Reference::decode(reference, self.address)? else {
            return Ok(None);
        };
        let Reference { slot, index, .. } = reference;
        let bad = |expected: String, found: String| -> Error {
            DecodeError::new(HEAP, self.address, expected, found).into()
        };
        let range = (self.find)(slot, index);
        let object = range.and_then(|range| self.image.get(range)).ok_or_else(|| {
            bad(format!("an object of index {index} in slot {slot}"), "none".into())
        })?;
        if object.len() as u64 != length {
            return Err(bad(format!("an object of {length} byte(s)"), object.len().to_string()));
        }
        self.budget = self.budget.checked_sub(length).ok_or_else(|| {
            bad("references to different objects".into(), "many to the same".into())
        })?;
        Ok(Some(object))
    }
}

/// The objects of a heap section that is being made.
#[derive(Default)]
struct Sink {
    lengths: Vec<u32>,
    bytes: Vec<u8>,
}

impl Sink {
    /// Gives the next object its number, and makes `reference` refer to it.
    #[inline]
    fn number(&mut self, length: u64, count: u32, reference: &mut [u8]) -> Result<()> {
        let (slot, index) =
            (self.lengths.len() / PER_COLLECTION, self.lengths.len() % PER_COLLECTION + 1);
        let (Ok(length), Ok(slot)) = (u32::try_from(length), u16::try_from(slot)) else {
            let what = "more objects, or larger ones, than the heap of a chunk can have";
            return Err(Error::Invalid(what.into()));
        };
        self.lengths.push(length);
        Reference { count, slot, index: index as u16 }.encode(reference);
        Ok(())
    }
}

impl ObjectSink for Sink {
    type Error = Error;

    #[inline]
    fn put(&mut self, object: &[u8], count: u32, reference: &mut [u8]) -> Result<()> {
        self.number(object.len() as u64, count, reference)?;
        self.bytes.extend_from_slice(object);
        Ok(())
    }
}
