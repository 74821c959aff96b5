//! The heap section of a structured chunk through a pipeline.
//!
//! The section is the plain form of [`heap`], with its checksum. If the heap filter comes first in the
//! pipeline, objects go to and from its encoded side directly.

use crate::heap::{self, Decoded, HeapObjects};
use crate::{Filter, FilterError, Pipeline, scratch};
use pumice_bytes::Reader;
use std::borrow::Cow;

/// The name of the section in errors.
const SECTION: &str = "heap section";

/// A stored section with its entry in the chunk's record.
pub type EncodedHeap = crate::EncodedCells;

/// The contents of a heap section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeapSection {
    /// A list of objects, numbered in their order: 65,535 in each collection but the last.
    Objects(HeapObjects),
    /// The section without its checksum, which was right.
    Plain(Vec<u8>),
}

impl Pipeline {
    /// Encodes objects, which lie one after another in `bytes`, as a heap section, with its checksum,
    /// and filters it. No objects make an empty section, which has neither. The file has lengths of
    /// `width` bytes; a heap filter that comes first knows better.
    ///
    /// ```
    /// use pumice_filter::{FilterSpec, HeapSection, Pipeline};
    ///
    /// let pipeline = Pipeline::new(vec![FilterSpec::heap(), FilterSpec::zstd(3)])?;
    /// let stored = pipeline.encode_heap(&[3, 0, 2], b"abcde", 8)?;
    /// let back = pipeline.decode_heap(&stored.bytes, stored.mask, stored.unfiltered)?;
    /// let HeapSection::Objects(objects) = back else { panic!("not the direct way") };
    /// assert_eq!((objects.lengths, objects.bytes), (vec![3, 0, 2], b"abcde".to_vec()));
    /// # Ok::<(), pumice_filter::FilterError>(())
    /// ```
    pub fn encode_heap(
        &self,
        lengths: &[u32],
        bytes: &[u8],
        width: u8,
    ) -> Result<EncodedHeap, FilterError> {
        if lengths.is_empty() {
            return Ok(EncodedHeap { bytes: Vec::new(), unfiltered: 0, mask: 0 });
        }
        let width = self.heap_width(width)?;
        let unfiltered = heap::plain_length(lengths, width);
        heap::check_fits(unfiltered, width)?;
        let (bytes, mask) = if self.begins_with_heap() {
            let mut encoded = scratch::take(bytes.len() + lengths.len() + 32);
            heap::encode_objects(lengths, bytes, &mut encoded)?;
            // Behind the bytes are lengths, mostly far fewer, with other statistics.
            let plane = match bytes.len() > encoded.len() / 2 {
                true => bytes.len(),
                false => usize::MAX,
            };
            self.encode_planes_from(1, Cow::Owned(encoded), plane)?
        } else {
            self.encode(heap::image(lengths, bytes, width)?)?
        };
        Ok(EncodedHeap { bytes, unfiltered, mask })
    }

    /// Undoes [`encode_heap`](Self::encode_heap). `unfiltered` is the section's length before filters
    /// as the index has it.
    pub fn decode_heap(
        &self,
        input: &[u8],
        mask: u32,
        unfiltered: u64,
    ) -> Result<HeapSection, FilterError> {
        if input.is_empty() {
            return Ok(HeapSection::Objects(HeapObjects::default()));
        }
        let limit = usize::try_from(unfiltered)
            .map_err(|_| FilterError::too_large(heap::NAME, usize::MAX, unfiltered))?;
        let mut plain = if self.begins_with_heap() && mask & 1 == 0 {
            let bound = heap::Heap.encoded_bound(limit);
            let encoded = self.decode_until(1, Cow::Borrowed(input), mask, bound)?;
            match heap::decode_objects(encoded)? {
                Decoded::Objects(objects) => {
                    let width = heap::width_of(&self.specs()[0].parameters)?;
                    let length = heap::plain_length(&objects.lengths, width);
                    return match length == unfiltered {
                        true => Ok(HeapSection::Objects(objects)),
                        false => Err(wrong_length(unfiltered, length)),
                    };
                }
                Decoded::Plain(plain) => plain,
            }
        } else {
            self.decode_until(0, Cow::Borrowed(input), mask, limit)?
        };
        if plain.len() as u64 != unfiltered || plain.len() < 4 {
            return Err(wrong_length(unfiltered, plain.len() as u64));
        }
        let mut reader = Reader::new(SECTION, 0, &plain);
        let checked = reader.skip(plain.len() - 4).and_then(|()| reader.checksum());
        checked.map_err(|error| FilterError::corrupt(SECTION, error.expected, error.found))?;
        plain.truncate(plain.len() - 4);
        Ok(HeapSection::Plain(plain))
    }

    /// The width of lengths in the plain form of a heap section, in a file that has lengths of `width`
    /// bytes: datasets that were made before the heap filter knew of widths have always eight.
    pub fn heap_width(&self, width: u8) -> Result<usize, FilterError> {
        match self.begins_with_heap() {
            true => heap::width_of(&self.specs()[0].parameters),
            false => Ok(usize::from(width)),
        }
    }

    /// Fails where [`encode_heap`](Self::encode_heap) does so as lengths of `width` bytes are too narrow.
    pub fn check_heap(&self, lengths: &[u32], width: u8) -> Result<(), FilterError> {
        let width = self.heap_width(width)?;
        heap::check_fits(heap::plain_length(lengths, width), width)
    }

    fn begins_with_heap(&self) -> bool {
        self.specs().first().is_some_and(|spec| spec.id == heap::ID)
    }
}

fn wrong_length(expected: u64, found: u64) -> FilterError {
    FilterError::corrupt(SECTION, format!("{expected} byte(s) before filters"), found)
}
