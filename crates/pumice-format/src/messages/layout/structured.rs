//! Layout class 4: structured chunks, in which only defined cells take space.
//!
//! ```text
//! 05 04 00 | type u16 | flags | rank+1 | e | dimensions, e bytes each | 08 | N | K | K section
//! numbers | index type | index parameters | address
//! ```
//!
//! Writers before September 2025 put the composition (`08 N K ...`) after the address. The two are
//! told apart by the byte after the dimensions: the composition begins with an offset size of 8,
//! which is no index type. The older order is accepted only if all of it decodes.

use super::{
    ChunkIndexInfo, DONT_FILTER_PARTIAL, Layout, SINGLE_FILTERED, STRUCTURE, STRUCTURED,
    decode_dimensions, decode_flags, dimension_width, encoded_dimensions,
};
use crate::structured::{
    LAYOUT_PROPERTY_VERSION, LAYOUT_VERSION, MAX_SECTIONS, SECTION_OFFSET_SIZE,
};
use crate::{Context, DecodeError, FormatError, Sizes};
use pumice_bytes::{Reader, Writer};

struct Composition {
    sections: u8,
    metadata_sections: Vec<u8>,
}

/// The fields before the composition.
struct Head {
    kind: u16,
    flags: u8,
    chunk: Vec<u64>,
    element_size: u64,
}

impl Head {
    fn filtered(&self) -> bool {
        self.flags & SINGLE_FILTERED != 0
    }

    fn chunk_bytes(&self) -> u64 {
        self.chunk.iter().product::<u64>() * self.element_size
    }

    fn into_layout(self, composition: Composition, index: ChunkIndexInfo, address: u64) -> Layout {
        Layout::Structured {
            kind: self.kind,
            chunk: self.chunk,
            element_size: self.element_size,
            sections: composition.sections,
            metadata_sections: composition.metadata_sections,
            index,
            address,
            dont_filter_partial: self.flags & DONT_FILTER_PARTIAL != 0,
        }
    }
}

/// Decodes the bytes behind the class byte.
pub(super) fn decode(reader: &mut Reader<'_>, context: &Context) -> Result<Layout, DecodeError> {
    let head = decode_head(reader)?;
    if reader.clone().u8()? != SECTION_OFFSET_SIZE {
        return decode_older(head, reader, context);
    }
    let composition = decode_composition(reader)?;
    let (filtered, sections) = (head.filtered(), composition.sections);
    let metadata = &composition.metadata_sections;
    let bytes = size_basis(head.chunk_bytes(), sections, metadata);
    let index = ChunkIndexInfo::decode_structured(reader, filtered, bytes, sections)?;
    let address = reader.offset(context.offset_width())?;
    Ok(head.into_layout(composition, index, address))
}

/// The size from which the width of a single chunk's size follows: that of a dense chunk, unless
/// there is variable-length data, which may have any size. All sections are then metadata.
fn size_basis(chunk_bytes: u64, sections: u8, metadata_sections: &[u8]) -> u64 {
    let varlen = sections > 1 && metadata_sections.len() == usize::from(sections);
    if varlen { u64::MAX } else { chunk_bytes }
}

fn decode_head(reader: &mut Reader<'_>) -> Result<Head, DecodeError> {
    let start = reader.clone();
    let property_version = reader.u8()?;
    if property_version != LAYOUT_PROPERTY_VERSION {
        return Err(start.unknown("structured chunk property version 0", 0u8, property_version));
    }
    let kind = reader.u16()?;
    let flags = decode_flags(reader)?;
    let count = reader.u8()?;
    let width = reader.u8()?;
    let (chunk, element_size) = decode_dimensions(reader, count, usize::from(width))?;
    Ok(Head { kind, flags, chunk, element_size })
}

fn decode_composition(reader: &mut Reader<'_>) -> Result<Composition, DecodeError> {
    let start = reader.clone();
    let offset_size = reader.u8()?;
    if offset_size != SECTION_OFFSET_SIZE {
        return Err(start.error("section offsets of 8 bytes", offset_size));
    }
    let start = reader.clone();
    let sections = reader.u8()?;
    if !(1..=MAX_SECTIONS).contains(&sections) {
        return Err(start.error("1 to 3 sections", sections));
    }
    let start = reader.clone();
    let count = reader.u8()?;
    if count > sections {
        return Err(start.error(format!("at most {sections} metadata section(s)"), count));
    }
    let start = reader.clone();
    let metadata_sections = reader.take(usize::from(count))?.to_vec();
    match metadata_sections.iter().find(|&&number| number >= sections) {
        Some(number) => Err(start.error(format!("section numbers below {sections}"), number)),
        None => Ok(Composition { sections, metadata_sections }),
    }
}

/// Composition after the address. The record of a single chunk depends on the number of sections,
/// which only the composition behind it tells: each possible number is tried.
fn decode_older(
    head: Head,
    reader: &mut Reader<'_>,
    context: &Context,
) -> Result<Layout, DecodeError> {
    let (filtered, bytes) = (head.filtered(), head.chunk_bytes());
    let start = reader.clone();
    for sections in [2, 3, 1] {
        let mut attempt = start.clone();
        let index = ChunkIndexInfo::decode_structured(&mut attempt, filtered, bytes, sections);
        let (Ok(index), Ok(address)) = (index, attempt.offset(context.offset_width())) else {
            continue;
        };
        match decode_composition(&mut attempt) {
            Ok(found)
                if found.sections == sections || !matches!(index, ChunkIndexInfo::Single(_)) =>
            {
                return Ok(head.into_layout(found, index, address));
            }
            _ => continue,
        }
    }
    Err(start.error("the composition of a structured chunk", "none before or after the address"))
}

/// Appends the whole message.
pub(super) fn encode(layout: &Layout, sizes: Sizes, out: &mut Vec<u8>) -> Result<(), FormatError> {
    let Layout::Structured {
        kind,
        chunk,
        element_size,
        sections,
        metadata_sections,
        index,
        address,
        dont_filter_partial,
    } = layout
    else {
        return Err(FormatError::unencodable(STRUCTURE, "another class as structured"));
    };
    if !(1..=MAX_SECTIONS).contains(sections)
        || metadata_sections.len() > usize::from(*sections)
        || metadata_sections.iter().any(|number| number >= sections)
    {
        return Err(FormatError::unencodable(STRUCTURE, "this composition of sections"));
    }
    let dimensions = encoded_dimensions(chunk, *element_size)?;
    let width = dimension_width(&dimensions);
    let bytes = size_basis(dimensions.iter().product::<u64>(), *sections, metadata_sections);
    let mut flags = if *dont_filter_partial { DONT_FILTER_PARTIAL } else { 0 };
    if index.is_filtered_single() {
        flags |= SINGLE_FILTERED;
    }
    out.put_bytes(&[LAYOUT_VERSION, STRUCTURED, LAYOUT_PROPERTY_VERSION]);
    out.put_u16(*kind);
    out.put_bytes(&[flags, dimensions.len() as u8, width]);
    for dimension in dimensions {
        out.put_uint(dimension, usize::from(width));
    }
    out.put_bytes(&[SECTION_OFFSET_SIZE, *sections, metadata_sections.len() as u8]);
    out.put_bytes(metadata_sections);
    index.encode_structured(bytes, *sections, out)?;
    out.put_uint(*address, usize::from(sizes.offset));
    Ok(())
}
