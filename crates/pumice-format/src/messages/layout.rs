//! The data layout message (0x0008): where and how a dataset keeps its elements.
//!
//! | version | classes | decode | encode |
//! |---|---|---|---|
//! | 1, 2 | compact, contiguous, chunked (version 1 B-tree) | yes | as version 3 |
//! | 3 | the same | yes | yes |
//! | 4 | compact, contiguous, chunked with five more index types, virtual | yes | chunked, virtual |
//! | 5 | as 4 (HDF5 2.0), and class 4: structured chunks | yes | chunked, structured |
//!
//! Chunk dimensions are kept without the element size that the message appends to them. The
//! product of all of them, the bytes of one dense chunk, always fits 64 bits: a message for which
//! it does not is refused. Bytes after the last field are ignored, as libhdf5 does.

mod chunk_index;
mod structured;

pub use chunk_index::{ChunkIndexInfo, SingleChunk};

use crate::error::fits;
use crate::structured::LAYOUT_VERSION;
use crate::{Context, DecodeError, FormatError, Sizes};
use pumice_bytes::{Reader, Writer};

const STRUCTURE: &str = "data layout message";

/// The largest number of chunk dimensions in the message: 32 and the element size.
const MAX_DIMENSIONS: u8 = 33;

const COMPACT: u8 = 0;
const CONTIGUOUS: u8 = 1;
const CHUNKED: u8 = 2;
const VIRTUAL: u8 = 3;
const STRUCTURED: u8 = 4;

/// Flag bit of chunked layouts from version 4 on: partial edge chunks are stored unfiltered.
const DONT_FILTER_PARTIAL: u8 = 0x01;
/// Flag bit: the index is a single chunk, and it is filtered.
const SINGLE_FILTERED: u8 = 0x02;

/// The storage layout of a dataset.
///
/// ```
/// use pumice_format::messages::Layout;
/// use pumice_format::{Context, Sizes};
///
/// let layout = Layout::Contiguous { address: 0x1000, size: Some(80) };
/// let mut bytes = Vec::new();
/// layout.encode(Sizes::default(), &mut bytes)?;
/// assert_eq!(Layout::decode(&bytes, &Context::default())?, layout);
/// # Ok::<(), pumice_format::FormatError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// The elements are in the message itself.
    Compact {
        /// The elements.
        data: Vec<u8>,
    },
    /// The elements are in one piece of the file.
    Contiguous {
        /// The address of the elements; undefined if no space is allocated.
        address: u64,
        /// Bytes of the piece. Versions 1 and 2 do not say: it is the extent times the element.
        size: Option<u64>,
    },
    /// The elements are in chunks of equal shape, each stored whole.
    Chunked {
        /// Version of the message, 1 to 5. Below 4, the index is a version 1 B-tree.
        version: u8,
        /// Shape of a chunk, without the element size.
        chunk: Vec<u64>,
        /// Bytes of an element.
        element_size: u64,
        /// The index of the chunks.
        index: ChunkIndexInfo,
        /// Address of the index, or of the chunk itself for [`ChunkIndexInfo::Single`] and of the
        /// first one for [`ChunkIndexInfo::Implicit`]; undefined if nothing is allocated.
        address: u64,
        /// Whether chunks that reach beyond the extent are stored unfiltered.
        dont_filter_partial: bool,
    },
    /// The elements are in structured chunks: only defined cells are stored.
    Structured {
        /// [`SPARSE`](crate::structured::SPARSE) and
        /// [`VARIABLE_LENGTH`](crate::structured::VARIABLE_LENGTH). For information only: `sections` decides.
        kind: u16,
        /// Shape of a chunk, without the element size.
        chunk: Vec<u64>,
        /// Bytes of an element.
        element_size: u64,
        /// Sections in a chunk, 1 to 3.
        sections: u8,
        /// Numbers of the sections that end in a checksum.
        metadata_sections: Vec<u8>,
        /// The index of the chunks.
        index: ChunkIndexInfo,
        /// Address of the index, or of the chunk itself for [`ChunkIndexInfo::Single`]; undefined
        /// if nothing is allocated.
        address: u64,
        /// Whether chunks that reach beyond the extent are stored unfiltered.
        dont_filter_partial: bool,
    },
    /// The elements are those of other datasets; the mapping is an object of the global heap.
    Virtual {
        /// Address of the heap collection; undefined if there is no mapping.
        heap_address: u64,
        /// Index of the object in it.
        heap_index: u32,
    },
}

impl Layout {
    /// Decodes the body of a message.
    pub fn decode(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let mut reader = context.reader(STRUCTURE, bytes);
        let start = reader.clone();
        match reader.u8()? {
            1 | 2 => decode_old(&mut reader, context),
            version @ 3..=5 => decode_new(version, &mut reader, context),
            version => Err(start.unknown("version 1 to 5", 5u8, version)),
        }
    }

    /// Appends the body of a message.
    pub fn encode(&self, sizes: Sizes, out: &mut Vec<u8>) -> Result<(), FormatError> {
        match self {
            Self::Compact { data } => {
                let length = fits(STRUCTURE, "bytes of compact data", 0xFFFF, data.len())?;
                out.put_bytes(&[3, COMPACT]);
                out.put_uint(length, 2);
                out.put_bytes(data);
                Ok(())
            }
            Self::Contiguous { address, size } => {
                let size = size.ok_or_else(|| {
                    FormatError::unencodable(STRUCTURE, "contiguous storage of unknown size")
                })?;
                out.put_bytes(&[3, CONTIGUOUS]);
                out.put_uint(*address, usize::from(sizes.offset));
                out.put_uint(size, usize::from(sizes.length));
                Ok(())
            }
            Self::Chunked { version, .. } if *version < 4 => self.encode_chunked_old(sizes, out),
            Self::Chunked { .. } => self.encode_chunked(sizes, out),
            Self::Structured { .. } => structured::encode(self, sizes, out),
            Self::Virtual { heap_address, heap_index } => {
                out.put_bytes(&[4, VIRTUAL]);
                out.put_uint(*heap_address, usize::from(sizes.offset));
                out.put_u32(*heap_index);
                Ok(())
            }
        }
    }

    fn encode_chunked_old(&self, sizes: Sizes, out: &mut Vec<u8>) -> Result<(), FormatError> {
        let Self::Chunked { chunk, element_size, index, address, .. } = self else {
            return Err(FormatError::unencodable(STRUCTURE, "another class as chunked"));
        };
        if *index != ChunkIndexInfo::BTree1 {
            return Err(FormatError::unencodable(STRUCTURE, "this index before version 4"));
        }
        let dimensions = encoded_dimensions(chunk, *element_size)?;
        out.put_bytes(&[3, CHUNKED, dimensions.len() as u8]);
        out.put_uint(*address, usize::from(sizes.offset));
        for dimension in dimensions {
            if dimension > u64::from(u32::MAX) {
                let limit = u64::from(u32::MAX);
                return Err(FormatError::too_large(STRUCTURE, "chunk dimension", limit, dimension));
            }
            out.put_u32(dimension as u32);
        }
        Ok(())
    }

    fn encode_chunked(&self, sizes: Sizes, out: &mut Vec<u8>) -> Result<(), FormatError> {
        let Self::Chunked { version, chunk, element_size, index, address, dont_filter_partial } =
            self
        else {
            return Err(FormatError::unencodable(STRUCTURE, "another class as chunked"));
        };
        if *version > 5 || *index == ChunkIndexInfo::BTree1 {
            return Err(FormatError::unencodable(STRUCTURE, "this index at this version"));
        }
        let dimensions = encoded_dimensions(chunk, *element_size)?;
        let width = dimension_width(&dimensions);
        let mut flags = if *dont_filter_partial { DONT_FILTER_PARTIAL } else { 0 };
        if index.is_filtered_single() {
            flags |= SINGLE_FILTERED;
        }
        out.put_bytes(&[*version, CHUNKED, flags, dimensions.len() as u8, width]);
        for dimension in dimensions {
            out.put_uint(dimension, usize::from(width));
        }
        index.encode_dense(sizes, out)?;
        out.put_uint(*address, usize::from(sizes.offset));
        Ok(())
    }
}

fn decode_old(reader: &mut Reader<'_>, context: &Context) -> Result<Layout, DecodeError> {
    let start = reader.clone();
    let count = reader.u8()?;
    if count == 0 || count > MAX_DIMENSIONS {
        return Err(start.error("1 to 33 dimensions", count));
    }
    let at_class = reader.clone();
    let class = reader.u8()?;
    reader.skip(5)?;
    match class {
        COMPACT => {
            reader.skip(4 * usize::from(count))?;
            let length = reader.u32()?;
            let length = reader.count(u64::from(length), 1)?;
            Ok(Layout::Compact { data: reader.take(length)?.to_vec() })
        }
        CONTIGUOUS => {
            let address = reader.offset(context.offset_width())?;
            reader.skip(4 * usize::from(count))?;
            Ok(Layout::Contiguous { address, size: None })
        }
        CHUNKED => {
            let address = reader.offset(context.offset_width())?;
            let (chunk, element_size) = decode_dimensions(reader, count, 4)?;
            Ok(btree1(start_version(&start), chunk, element_size, address))
        }
        class => Err(at_class.unknown("layout class 0, 1 or 2", 2u8, class)),
    }
}

/// The version byte that stands before `reader`'s position.
fn start_version(reader: &Reader<'_>) -> u8 {
    reader.consumed().last().copied().unwrap_or(1)
}

fn btree1(version: u8, chunk: Vec<u64>, element_size: u64, address: u64) -> Layout {
    let index = ChunkIndexInfo::BTree1;
    Layout::Chunked { version, chunk, element_size, index, address, dont_filter_partial: false }
}

fn decode_new(
    version: u8,
    reader: &mut Reader<'_>,
    context: &Context,
) -> Result<Layout, DecodeError> {
    let start = reader.clone();
    match reader.u8()? {
        COMPACT => {
            let length = reader.u16()?;
            Ok(Layout::Compact { data: reader.take(usize::from(length))?.to_vec() })
        }
        CONTIGUOUS => {
            let address = reader.offset(context.offset_width())?;
            let size = Some(reader.uint(context.length_width())?);
            Ok(Layout::Contiguous { address, size })
        }
        CHUNKED if version == 3 => {
            let count = reader.u8()?;
            let address = reader.offset(context.offset_width())?;
            let (chunk, element_size) = decode_dimensions(reader, count, 4)?;
            Ok(btree1(3, chunk, element_size, address))
        }
        CHUNKED => decode_chunked(version, reader, context),
        VIRTUAL if version >= 4 => {
            let heap_address = reader.offset(context.offset_width())?;
            Ok(Layout::Virtual { heap_address, heap_index: reader.u32()? })
        }
        STRUCTURED if version == LAYOUT_VERSION => structured::decode(reader, context),
        class => {
            let expected = format!("a layout class of version {version}");
            Err(start.unknown(expected, STRUCTURED, class))
        }
    }
}

fn decode_chunked(
    version: u8,
    reader: &mut Reader<'_>,
    context: &Context,
) -> Result<Layout, DecodeError> {
    let flags = decode_flags(reader)?;
    let count = reader.u8()?;
    let width = reader.u8()?;
    let (chunk, element_size) = decode_dimensions(reader, count, usize::from(width))?;
    let bytes = chunk.iter().product::<u64>() * element_size;
    let index = ChunkIndexInfo::decode_dense(reader, context, flags & SINGLE_FILTERED != 0, bytes)?;
    let address = reader.offset(context.offset_width())?;
    let dont_filter_partial = flags & DONT_FILTER_PARTIAL != 0;
    Ok(Layout::Chunked { version, chunk, element_size, index, address, dont_filter_partial })
}

fn decode_flags(reader: &mut Reader<'_>) -> Result<u8, DecodeError> {
    let start = reader.clone();
    let flags = reader.u8()?;
    if flags & !(DONT_FILTER_PARTIAL | SINGLE_FILTERED) != 0 {
        return Err(start.reserved("chunk flags of bits 0 and 1", flags));
    }
    Ok(flags)
}

/// Reads `count` dimensions and splits the element size off their end. Their product, which is the
/// number of bytes of a dense chunk, is known to fit.
fn decode_dimensions(
    reader: &mut Reader<'_>,
    count: u8,
    width: usize,
) -> Result<(Vec<u64>, u64), DecodeError> {
    let start = reader.clone();
    if !(2..=MAX_DIMENSIONS).contains(&count) {
        return Err(start.error("2 to 33 dimensions", count));
    }
    let mut bytes = 1u64;
    let mut dimensions = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        let before = reader.clone();
        let dimension = reader.uint(width)?;
        match bytes.checked_mul(dimension) {
            Some(product) if product > 0 => bytes = product,
            _ => return Err(before.error("a chunk of 1 to 2^64-1 bytes", dimension)),
        }
        dimensions.push(dimension);
    }
    let element_size = dimensions.pop().unwrap_or(1);
    Ok((dimensions, element_size))
}

/// Chunk shape and element size, as they stand in the message.
fn encoded_dimensions(chunk: &[u64], element_size: u64) -> Result<Vec<u64>, FormatError> {
    let limit = usize::from(MAX_DIMENSIONS) - 1;
    if chunk.is_empty() {
        return Err(FormatError::unencodable(STRUCTURE, "a chunk without dimensions"));
    }
    fits(STRUCTURE, "rank", limit as u64, chunk.len())?;
    let mut dimensions = chunk.to_vec();
    dimensions.push(element_size);
    let bytes = dimensions.iter().try_fold(1u64, |bytes, &dimension| bytes.checked_mul(dimension));
    match bytes {
        Some(bytes) if bytes > 0 => Ok(dimensions),
        _ => Err(FormatError::unencodable(STRUCTURE, "a chunk of no or more than 2^64-1 bytes")),
    }
}

/// The bytes that the largest dimension needs.
fn dimension_width(dimensions: &[u64]) -> u8 {
    let largest = dimensions.iter().copied().max().unwrap_or(1).max(1);
    (largest.ilog2() / 8 + 1) as u8
}

#[cfg(test)]
mod tests;
