//! What the layout message says about the chunk index.
//!
//! The parameters here only create an index; an index that exists carries them in its own header.
//! The exception is the single chunk, whose whole record stands in the message.

use super::STRUCTURE;
use crate::{Context, DecodeError, FormatError, Sizes};
use pumice_bytes::{Reader, Writer};

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

/// The record of the only chunk of a dataset. Its address is the layout's.
///
/// ```
/// let chunk = pumice_format::messages::SingleChunk::default();
/// assert!(!chunk.filtered && chunk.sections.is_empty());
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
    pub sections: Vec<SingleSection>,
}

/// A section of the only chunk of a dataset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SingleSection {
    /// Where the section begins, from the start of the chunk. Always 0 for the first.
    pub offset: u64,
    /// Its bytes before filters, checksum included; 0 if the dataset has no filters.
    pub unfiltered: u64,
    /// Filters that were skipped, one bit each.
    pub filter_mask: u32,
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
        Self::BTree2 {
            node_size: 2048,
            split: 100,
            merge: 40,
        }
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
            SINGLE if filtered => Ok(Self::Single(SingleChunk {
                filtered,
                size: reader.uint(context.length_width())?,
                filter_mask: reader.u32()?,
                sections: Vec::new(),
            })),
            SINGLE => Ok(Self::Single(SingleChunk {
                size: chunk_bytes,
                ..Default::default()
            })),
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
                SingleChunk::decode(reader, filtered, chunk_bytes, sections).map(Self::Single)
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
            FIXED_ARRAY => Self::FixedArray {
                page_bits: nonzero(reader)?,
            },
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
            number => return Err(start.error("a chunk index type of this layout", number)),
        };
        Ok(index)
    }

    /// Appends type and parameters for dense chunks.
    pub(super) fn encode_dense(&self, sizes: Sizes, out: &mut Vec<u8>) -> Result<(), FormatError> {
        out.put_u8(self.number());
        match self {
            Self::Single(chunk) if chunk.filtered => {
                out.put_uint(chunk.size, usize::from(sizes.length));
                out.put_u32(chunk.filter_mask);
                Ok(())
            }
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
            Self::Single(chunk) => chunk.encode(chunk_bytes, sections, out),
            Self::Implicit => Err(FormatError::unencodable(STRUCTURE, "an implicit index")),
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
                out.put_bytes(&[
                    max_bits,
                    index_elements,
                    min_pointers,
                    min_elements,
                    page_bits,
                ]);
            }
            Self::BTree2 {
                node_size,
                split,
                merge,
            } => {
                out.put_u32(node_size);
                out.put_bytes(&[split, merge]);
            }
            _ => {
                return Err(FormatError::unencodable(
                    STRUCTURE,
                    "this index at this version",
                ));
            }
        }
        Ok(())
    }
}

impl SingleChunk {
    fn decode(
        reader: &mut Reader<'_>,
        filtered: bool,
        chunk_bytes: u64,
        sections: u8,
    ) -> Result<Self, DecodeError> {
        let size = reader.uint(structured_size_width(chunk_bytes, sections))?;
        let mut records = vec![SingleSection::default(); usize::from(sections)];
        for record in records.iter_mut().skip(1) {
            record.offset = reader.u64()?;
        }
        if filtered {
            for record in &mut records {
                record.unfiltered = reader.u64()?;
            }
            for record in &mut records {
                record.filter_mask = reader.u32()?;
            }
        }
        Ok(Self {
            filtered,
            size,
            filter_mask: 0,
            sections: records,
        })
    }

    fn encode(&self, chunk_bytes: u64, sections: u8, out: &mut Vec<u8>) -> Result<(), FormatError> {
        if self.sections.len() != usize::from(sections) {
            let what = format!("a record of {} section(s)", self.sections.len());
            return Err(FormatError::unencodable(STRUCTURE, what));
        }
        let width = structured_size_width(chunk_bytes, sections);
        if width < 8 && self.size >> (8 * width) != 0 {
            let limit = (1 << (8 * width)) - 1;
            return Err(FormatError::too_large(
                STRUCTURE,
                "chunk size",
                limit,
                self.size,
            ));
        }
        out.put_uint(self.size, width);
        for section in self.sections.iter().skip(1) {
            out.put_u64(section.offset);
        }
        if self.filtered {
            for section in &self.sections {
                out.put_u64(section.unfiltered);
            }
            for section in &self.sections {
                out.put_u32(section.filter_mask);
            }
        }
        Ok(())
    }
}

/// Bytes of the chunk-size field of a structured chunk's record: 8 for chunks of three sections,
/// else one more than the size of a fully defined chunk needs, at most 8.
///
/// ```
/// assert_eq!(pumice_format::messages::structured_size_width(40, 2), 2);
/// assert_eq!(pumice_format::messages::structured_size_width(40, 3), 8);
/// ```
pub fn structured_size_width(chunk_bytes: u64, sections: u8) -> usize {
    if sections >= 3 {
        return 8;
    }
    let bits = chunk_bytes.max(1).ilog2() as usize;
    (1 + (bits + 8) / 8).min(8)
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
