//! Elements with references and the heap that these lead to, as the sections of a structured chunk,
//! and back.
//!
//! On both sides a value has no allocation of its own: in memory, elements refer to places in one heap
//! of bytes; in the file, to objects of a [heap set](HeapSet) by number. Mostly objects stand in the
//! order of the elements, and then numbers, lengths and places follow from the counts alone: such
//! sections are made and read without a look at single objects.

use super::heap_chunk::Counts;
use pumice_bytes::{DecodeError, Writer};
use pumice_filter::heap::HeapObjects;
use pumice_filter::references::{self, ReferencesSection};
use pumice_filter::{EncodedCells, HeapSection, Pipeline};
use pumice_format::heap_set::{HeapSet, PER_COLLECTION, Reference};
use pumice_format::index::{ChunkRecord, SectionRecord};
use pumice_format::{Context, Sizes};
use pumice_medium::{Error, Result};
use pumice_types::heaped::{self, ObjectSink, ObjectSource};
use pumice_types::{Datatype, VarLen};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

const HEAP: &str = "heap of a structured chunk";
/// How many bytes of memory a byte of a section may become before that counts as damage. Objects that are
/// referred to more than once stay one, so that only sequences of sequences, whose outer ones are not shared, can
/// become more than they were.
const MULTIPLE: u64 = 64;

/// Elements as they are in memory.
pub(super) struct Decoded {
    /// With references into the heap.
    pub(super) elements: Vec<u8>,
    /// What they refer to.
    pub(super) heap: Vec<u8>,
    /// Whether several refer to the same bytes of it.
    pub(super) shared: bool,
}

/// The last two sections of a chunk with variable-length data.
pub(super) struct HeapSections<'a> {
    /// Of the elements.
    pub(super) datatype: &'a Datatype,
    /// Of the file.
    pub(super) sizes: Sizes,
    /// The filters of the references.
    pub(super) references: &'a Pipeline,
    /// The filters of the heap.
    pub(super) heap: &'a Pipeline,
    /// Whether a heap with lengths of eight bytes is read in any file: they have once been written also where
    /// those of the file are shorter.
    pub(super) lenient: bool,
}

impl HeapSections<'_> {
    /// The references section and the heap section of elements that refer to `heap`; if several refer to the
    /// same bytes of it, as `shared` says, that stays so.
    pub(super) fn encode(
        &self,
        elements: &[u8],
        heap: &[u8],
        shared: bool,
    ) -> Result<[EncodedCells; 2]> {
        let direct = self.by_counts().and_then(|varlen| counts_of(varlen, elements, heap));
        let (references, objects) = match direct {
            Some((counts, objects)) => (self.references.encode_references(&counts)?, objects),
            None => {
                let mut references = elements.to_vec();
                let objects = objects_of(self.datatype, &mut references, heap, shared)?;
                references.put_checksum(0);
                let unfiltered = references.len() as u64;
                let (bytes, mask) = self.references.encode(references)?;
                (EncodedCells { bytes, unfiltered, mask }, objects)
            }
        };
        let heap = self.heap.encode_heap(&objects.lengths, &objects.bytes, self.sizes.length)?;
        Ok([references, heap])
    }

    /// The type of the elements, if they can be stored by their counts: the filter for that knows references of
    /// one length, which files with short addresses do not have.
    fn by_counts(&self) -> Option<&VarLen> {
        let varlen = self.datatype.as_flat_varlen()?;
        let suits = varlen.size as usize == references::SIZE;
        (suits && self.references.begins_with_references()).then_some(varlen)
    }

    /// The same of lists that fill `heap`, if they can be stored by their counts alone.
    pub(super) fn encode_counts(
        &self,
        Counts { counts, base, .. }: &Counts,
        heap: &[u8],
    ) -> Result<Option<[EncodedCells; 2]>> {
        let small = heap.len() as u64 <= u64::from(u32::MAX);
        let few = counts.len() <= PER_COLLECTION << 16;
        if !(small && few && self.by_counts().is_some()) {
            return Ok(None);
        }
        let references = self.references.encode_references(counts)?;
        let lengths: Vec<u32> = counts.iter().map(|count| (count - 1) * base).collect();
        Ok(Some([references, self.heap.encode_heap(&lengths, heap, self.sizes.length)?]))
    }

    /// Fails if the heap of elements that refer to `heap` is larger than lengths of the file can say.
    pub(super) fn check(&self, elements: &[u8], heap: &[u8], shared: bool) -> Result<()> {
        let objects = objects_of(self.datatype, &mut elements.to_vec(), heap, shared)?;
        Ok(self.heap.check_heap(&objects.lengths, self.sizes.length)?)
    }

    /// Elements and the heap that they refer to, from the sections `first` and `first + 1` of a chunk.
    /// `wanted` is the length of the references before filters.
    pub(super) fn decode(
        &self,
        record: &ChunkRecord,
        first: usize,
        bytes: &[u8],
        wanted: u64,
    ) -> Result<Decoded> {
        let references = decode_references(self.references, record, first, bytes, wanted)?;
        let heap = decode_heap(self.heap, record, first + 1, bytes)?;
        let direct = match (&references, &heap, self.by_counts()) {
            (ReferencesSection::Counts(counts), HeapSection::Objects(objects), Some(varlen)) => {
                elements_of(varlen, counts, &objects.lengths)
            }
            _ => None,
        };
        let plain = || match references {
            ReferencesSection::Counts(counts) => numbered(&counts),
            ReferencesSection::Plain(elements) => elements,
        };
        let (elements, (heap, shared)) = match (direct, heap) {
            (Some(elements), HeapSection::Objects(objects)) => (elements, (objects.bytes, false)),
            (_, HeapSection::Objects(objects)) => {
                let mut elements = plain();
                let loaded = self.load_objects(&mut elements, objects, record.address)?;
                (elements, loaded)
            }
            (_, HeapSection::Plain(image)) => {
                let mut elements = plain();
                let loaded = self.load(&mut elements, &image, record.address)?;
                (elements, loaded)
            }
        };
        Ok(Decoded { elements, heap, shared })
    }

    /// Lets elements refer to the objects of a heap section. Mostly these are in the order of the
    /// elements: then their bytes stay as they are.
    fn load_objects(
        &self,
        elements: &mut [u8],
        objects: HeapObjects,
        address: u64,
    ) -> Result<(Vec<u8>, bool)> {
        if let Some(varlen) = self.datatype.as_flat_varlen()
            && follow_in_order(varlen, elements, &objects.lengths, address)?
        {
            return Ok((objects.bytes, false));
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
    fn load(&self, elements: &mut [u8], image: &[u8], address: u64) -> Result<(Vec<u8>, bool)> {
        let context = Context::new(self.sizes).at(address);
        let objects = match image {
            [] => HeapSet::default(),
            image => match HeapSet::decode(image, &context) {
                Err(error) if self.lenient && self.sizes.length < 8 => {
                    let wide = Context::new(Sizes { length: 8, ..self.sizes }).at(address);
                    HeapSet::decode(image, &wide).map_err(|_| error)?
                }
                found => found?,
            },
        };
        self.load_from(elements, image, &|slot, index| objects.object(slot, index), address)
    }

    fn load_from(
        &self,
        elements: &mut [u8],
        image: &[u8],
        find: &dyn Fn(u16, u16) -> Option<Range<usize>>,
        address: u64,
    ) -> Result<(Vec<u8>, bool)> {
        let all = (image.len() as u64).saturating_add(elements.len() as u64);
        let budget = all.saturating_mul(MULTIPLE);
        let mut heap = Vec::with_capacity(image.len().saturating_sub(elements.len()));
        // Only if more is referred to than there is, somebody has to remember where everything is.
        let claimed = heaped::claimed_bytes(self.datatype, elements)?;
        let repeats = claimed.is_none_or(|bytes| bytes > image.len() as u64);
        let places = repeats.then(HashMap::new);
        let mut source = Objects { image, find, address, budget, places, shared: false };
        heaped::load(self.datatype, elements, &mut heap, &mut source)?;
        if heap.capacity() > heap.len() + heap.len() / 4 + 256 {
            heap.shrink_to_fit();
        }
        Ok((heap, source.shared))
    }
}

/// A section of a chunk: what the index says of it, and its stored bytes.
pub(super) fn stored_section<'a>(
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

/// Refuses a length that the filters cannot have put into so few bytes.
fn check_possible(
    pipeline: &Pipeline,
    record: &ChunkRecord,
    mask: u32,
    stored: &[u8],
    unfiltered: u64,
) -> Result<()> {
    let possible = pipeline.decoded_bound(stored.len(), mask) as u64;
    if unfiltered <= possible {
        return Ok(());
    }
    let expected = format!("at most {possible} byte(s) before filters");
    Err(DecodeError::new("section of a structured chunk", record.address, expected, unfiltered)
        .into())
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
    check_possible(pipeline, record, section.filter_mask, stored, wanted)?;
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
    let elements = elements.as_chunks::<{ references::SIZE }>().0;
    let mut counts = vec![0u32; elements.len()];
    let mut lengths = vec![0u32; elements.len()];
    let (mut next, mut objects) = (0u64, 0);
    for (element, place_of_count) in elements.iter().zip(&mut counts) {
        let Some((count, place)) = heaped::reference_of(element) else { continue };
        let length = count.checked_mul(base)?;
        if place != next || length > u64::from(u32::MAX) || count == u64::from(u32::MAX) {
            return None;
        }
        next += length;
        *place_of_count = count as u32 + 1;
        lengths[objects] = length as u32;
        objects += 1;
    }
    lengths.truncate(objects);
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
    check_possible(pipeline, record, section.filter_mask, stored, unfiltered)?;
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
    shared: bool,
) -> Result<Numbered<'a>> {
    let in_order = datatype
        .as_flat_varlen()
        .filter(|varlen| heaped::run_of(varlen, elements) == Some(0..heap.len() as u64));
    let mut sink = Sink { numbers: shared.then(HashMap::new), ..Sink::default() };
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
    /// Where objects were put, by reference, if that is to be remembered.
    places: Option<HashMap<Key, u64>>,
    /// Whether any was referred to again.
    shared: bool,
}

/// Count, slot and index of a reference.
type Key = (u32, u16, u16);

impl Objects<'_> {
    fn key(&self, reference: &[u8]) -> Option<Key> {
        let Reference { count, slot, index } =
            Reference::decode(reference, self.address).ok()??;
        Some((count, slot, index))
    }
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
            bad("references to different sequences".into(), "many to the same".into())
        })?;
        Ok(Some(object))
    }

    #[inline]
    fn place(&mut self, reference: &[u8]) -> Option<u64> {
        let place = self.places.as_ref()?.get(&self.key(reference)?).copied();
        self.shared |= place.is_some();
        place
    }

    #[inline]
    fn put(&mut self, reference: &[u8], place: u64) {
        if self.places.is_some()
            && let Some(key) = self.key(reference)
            && let Some(places) = &mut self.places
        {
            places.insert(key, place);
        }
    }
}

/// The objects of a heap section that is being made.
#[derive(Default)]
struct Sink {
    lengths: Vec<u32>,
    bytes: Vec<u8>,
    /// References to objects by count and place in memory, if several may lead to one.
    numbers: Option<HashMap<(u64, u64), Reference>>,
}

impl Sink {
    /// Gives the next object its number, and makes `reference` refer to it.
    #[inline]
    fn number(&mut self, length: u64, count: u32, reference: &mut [u8]) -> Result<Reference> {
        let (slot, index) =
            (self.lengths.len() / PER_COLLECTION, self.lengths.len() % PER_COLLECTION + 1);
        let (Ok(length), Ok(slot)) = (u32::try_from(length), u16::try_from(slot)) else {
            let what = "more objects, or larger ones, than the heap of a chunk can have";
            return Err(Error::Invalid(what.into()));
        };
        self.lengths.push(length);
        let made = Reference { count, slot, index: index as u16 };
        made.encode(reference);
        Ok(made)
    }
}

impl ObjectSink for Sink {
    type Error = Error;

    #[inline]
    fn put(&mut self, object: &[u8], count: u32, reference: &mut [u8]) -> Result<()> {
        let led = heaped::reference_of(reference);
        let made = self.number(object.len() as u64, count, reference)?;
        self.bytes.extend_from_slice(object);
        if let (Some(numbers), Some(led)) = (&mut self.numbers, led) {
            numbers.insert(led, made);
        }
        Ok(())
    }

    #[inline]
    fn put_again(&mut self, reference: &mut [u8]) -> bool {
        let Some(numbers) = &self.numbers else { return false };
        let known = heaped::reference_of(reference).and_then(|led| numbers.get(&led));
        known.inspect(|known| known.encode(reference)).is_some()
    }
}
