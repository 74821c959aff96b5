//! The chunk index in the layout message.
//!
//! The parameters here only create an index; an index that exists carries them in its own header.
//! The exception is the single chunk, whose whole record stands in the message.

use super::STRUCTURE;
use crate::index::{ChunkRecord, RecordFormat, SectionRecord};
use crate::{Context, DecodeError, FormatError, Sizes, UNDEFINED};
use pumice_bytes::{Reader, Writer};
use smallvec::SmallVec;

const BTREE1: u8 = 0;
const SINGLE: u8 = 1;
const IMPLICIT: u8 = 2;
const FIXED_ARRAY: u8 = 3;
const EXTENSIBLE_ARRAY: u8 = 4;
const BTREE2: u8 = 5;

/// The kind of a chunk index, and its creation parameters.
///
/// ```
/// use pumice_format::messages::ChunkIndexInfo;
///
/// let index = ChunkIndexInfo::fixed_array();
/// assert_eq!(index, ChunkIndexInfo::FixedArray { page_bits: 10 });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChunkIndexInfo {
    /// A version 1 B-tree, the only index before version 4 of the message.
    BTree1,
    /// There is one chunk, and this is its record.
    Single(SingleChunk),
    /// All chunks lie in the file one after another.
    Implicit,
    /// A fixed array.
    FixedArray {
        /// Data blocks of more than 2 to this many elements are paged.
        page_bits: u8,
    },
    /// An extensible array.
    ExtensibleArray {
        /// Bits of the largest number of elements.
        max_bits: u8,
        /// Elements in the index block.
        index_elements: u8,
        /// The least number of data block pointers of a secondary block.
        min_pointers: u8,
        /// The least number of elements of a data block.
        min_elements: u8,
        /// Data blocks of more than 2 to this many elements are paged.
        page_bits: u8,
    },
    /// A version 2 B-tree.
    BTree2 {
        /// Bytes of a node. Some writers store 0 here; the B-tree's header decides.
        node_size: u32,
        /// A node fuller than this many percent is split.
        split: u8,
        /// A node emptier than this many percent is merged.
        merge: u8,
    },
}

/// The record of the only chunk of a dataset, without its address, which is the layout's.
///
/// ```
/// use pumice_format::index::ChunkRecord;
/// use pumice_format::messages::SingleChunk;
///
/// let record = ChunkRecord::dense(0x800, 40);
/// let chunk = SingleChunk::from_record(&record, false);
/// assert_eq!(chunk.record(0x800), Some(record));
/// assert_eq!(chunk.record(pumice_format::UNDEFINED), None);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SingleChunk {
    /// Whether the dataset has filters.
    pub filtered: bool,
    /// Bytes that the chunk takes in the file. A dense chunk without filters takes its full size,
    /// and the message does not repeat it.
    pub size: u64,
    /// Filters that were skipped, one bit each; for dense chunks.
    pub filter_mask: u32,
    /// The sections of a structured chunk; empty for dense chunks.
    pub sections: SmallVec<[SectionRecord; 3]>,
}

impl SingleChunk {
    /// The record of a chunk of `sections` sections (0 for dense) that is not stored yet.
    pub fn unset(sections: u8, filtered: bool) -> Self {
        let sections = SmallVec::from_elem(SectionRecord::default(), usize::from(sections));
        Self { filtered, size: 0, filter_mask: 0, sections }
    }

    /// The part of `record` that the message keeps.
    pub fn from_record(record: &ChunkRecord, filtered: bool) -> Self {
        Self {
            filtered,
            size: record.size,
            filter_mask: record.filter_mask,
            sections: record.sections.clone(),
        }
    }

    /// The record of the chunk at `address`; `None` if that is undefined.
    pub fn record(&self, address: u64) -> Option<ChunkRecord> {
        (address != UNDEFINED).then(|| self.at(address))
    }

    fn at(&self, address: u64) -> ChunkRecord {
        ChunkRecord {
            address,
            size: self.size,
            filter_mask: self.filter_mask,
            sections: self.sections.clone(),
        }
    }

    fn decode(
        reader: &mut Reader<'_>,
        filtered: bool,
        format: RecordFormat,
    ) -> Result<Self, DecodeError> {
        let record = format.decode_body(0, reader)?;
        Ok(Self::from_record(&record, filtered))
    }

    fn encode(&self, format: RecordFormat, out: &mut Vec<u8>) -> Result<(), FormatError> {
        Ok(format.encode_body(&self.at(0), out)?)
    }
}

impl ChunkIndexInfo {
    /// A fixed array with libhdf5's parameters.
    pub fn fixed_array() -> Self {
        Self::FixedArray { page_bits: 10 }
    }

    /// An extensible array with libhdf5's parameters.
    pub fn extensible_array() -> Self {
        Self::ExtensibleArray {
            max_bits: 32,
            index_elements: 4,
            min_pointers: 4,
            min_elements: 16,
            page_bits: 10,
        }
    }

    /// A version 2 B-tree with libhdf5's parameters.
    pub fn btree2() -> Self {
        Self::BTree2 { node_size: 2048, split: 100, merge: 40 }
    }

    /// Whether this is a single chunk of a filtered dataset.
    pub fn is_filtered_single(&self) -> bool {
        matches!(self, Self::Single(chunk) if chunk.filtered)
    }

    /// The byte that names the index.
    fn number(&self) -> u8 {
        match self {
            Self::BTree1 => BTREE1,
            Self::Single(_) => SINGLE,
            Self::Implicit => IMPLICIT,
            Self::FixedArray { .. } => FIXED_ARRAY,
            Self::ExtensibleArray { .. } => EXTENSIBLE_ARRAY,
            Self::BTree2 { .. } => BTREE2,
        }
    }

    /// Decodes type and parameters for dense chunks of `chunk_bytes`.
    pub(super) fn decode_dense(
        reader: &mut Reader<'_>,
        context: &Context,
        filtered: bool,
        chunk_bytes: u64,
    ) -> Result<Self, DecodeError> {
        let start = reader.clone();
        match reader.u8()? {
            SINGLE if filtered => {
                let format = dense_format(context.sizes);
                SingleChunk::decode(reader, filtered, format).map(Self::Single)
            }
            SINGLE => {
                let chunk = SingleChunk { size: chunk_bytes, ..SingleChunk::unset(0, false) };
                Ok(Self::Single(chunk))
            }
            IMPLICIT => Ok(Self::Implicit),
            number => Self::decode_shared(number, &start, reader),
        }
    }

    /// Decodes type and parameters for structured chunks.
    pub(super) fn decode_structured(
        reader: &mut Reader<'_>,
        filtered: bool,
        chunk_bytes: u64,
        sections: u8,
    ) -> Result<Self, DecodeError> {
        let start = reader.clone();
        match reader.u8()? {
            SINGLE => {
                let format = structured_format(filtered, chunk_bytes, sections);
                SingleChunk::decode(reader, filtered, format).map(Self::Single)
            }
            number => Self::decode_shared(number, &start, reader),
        }
    }

    /// The index types that dense and structured chunks describe in the same way.
    fn decode_shared(
        number: u8,
        start: &Reader<'_>,
        reader: &mut Reader<'_>,
    ) -> Result<Self, DecodeError> {
        let index = match number {
            FIXED_ARRAY => Self::FixedArray { page_bits: nonzero(reader)? },
            EXTENSIBLE_ARRAY => Self::ExtensibleArray {
                max_bits: nonzero(reader)?,
                index_elements: nonzero(reader)?,
                min_pointers: nonzero(reader)?,
                min_elements: nonzero(reader)?,
                page_bits: nonzero(reader)?,
            },
            BTREE2 => Self::BTree2 {
                node_size: reader.u32()?,
                split: percentage(reader)?,
                merge: percentage(reader)?,
            },
            number => {
                return Err(start.unknown("a chunk index type of this layout", BTREE2, number));
            }
        };
        Ok(index)
    }

    /// Appends type and parameters for dense chunks.
    pub(super) fn encode_dense(&self, sizes: Sizes, out: &mut Vec<u8>) -> Result<(), FormatError> {
        out.put_u8(self.number());
        match self {
            Self::Single(chunk) if chunk.filtered => chunk.encode(dense_format(sizes), out),
            Self::Single(_) | Self::Implicit => Ok(()),
            other => other.encode_shared(out),
        }
    }

    /// Appends type and parameters for structured chunks.
    pub(super) fn encode_structured(
        &self,
        chunk_bytes: u64,
        sections: u8,
        out: &mut Vec<u8>,
    ) -> Result<(), FormatError> {
        out.put_u8(self.number());
        match self {
            Self::Single(chunk) => {
                chunk.encode(structured_format(chunk.filtered, chunk_bytes, sections), out)
            }
            other => other.encode_shared(out),
        }
    }

    fn encode_shared(&self, out: &mut Vec<u8>) -> Result<(), FormatError> {
        match *self {
            Self::FixedArray { page_bits } => out.put_u8(page_bits),
            Self::ExtensibleArray {
                max_bits,
                index_elements,
                min_pointers,
                min_elements,
                page_bits,
            } => {
                out.put_bytes(&[max_bits, index_elements, min_pointers, min_elements, page_bits]);
            }
            Self::BTree2 { node_size, split, merge } => {
                out.put_u32(node_size);
                out.put_bytes(&[split, merge]);
            }
            _ => {
                return Err(FormatError::unencodable(STRUCTURE, "this index for this layout"));
            }
        }
        Ok(())
    }
}

/// A dense, filtered single chunk has its size in a field as wide as lengths, at every version.
fn dense_format(sizes: Sizes) -> RecordFormat {
    // Only records without filters take their size from the chunk.
    RecordFormat { size_width: sizes.length, ..RecordFormat::filtered(sizes, 5, 0) }
}

fn structured_format(filtered: bool, chunk_bytes: u64, sections: u8) -> RecordFormat {
    RecordFormat::structured(Sizes::default(), sections, filtered, chunk_bytes)
}

fn nonzero(reader: &mut Reader<'_>) -> Result<u8, DecodeError> {
    let start = reader.clone();
    match reader.u8()? {
        0 => Err(start.error("a chunk index parameter above 0", 0)),
        value => Ok(value),
    }
}

fn percentage(reader: &mut Reader<'_>) -> Result<u8, DecodeError> {
    let start = reader.clone();
    match reader.u8()? {
        value @ 1..=100 => Ok(value),
        value => Err(start.error("1 to 100 percent", value)),
    }
}
