//! Filters of structured chunks, one pipeline per section: message 0x0019 version 1, and the same
//! bytes as message 0x000B version 3 in older files.
//!
//! ```text
//! version | sections | section number, filter count, list length u16, descriptions | ...
//! ```
//!
//! Sections come in any order; sections without filters are left out.

use super::pipeline::{FilterDescription, decode_filters, encode_filters};
use crate::error::fits;
use crate::structured::{MAX_SECTIONS, PIPELINE_VERSION, PIPELINE_VERSION_IN_FILTER_MESSAGE};
use crate::{Context, DecodeError, FormatError};
use pumice_bytes::{Reader, Writer};

const STRUCTURE: &str = "structured filter pipeline message";

/// The form of the descriptions.
const DESCRIPTION_VERSION: u8 = 2;

/// The filters of each section of structured chunks.
///
/// ```
/// use pumice_format::Context;
/// use pumice_format::messages::{FilterDescription, SectionPipeline, StructuredPipeline};
///
/// let filters = vec![FilterDescription::new(1, &[6])];
/// let pipeline = StructuredPipeline { sections: vec![SectionPipeline { section: 1, filters }] };
/// let mut bytes = Vec::new();
/// pipeline.encode(&mut bytes)?;
/// assert_eq!(StructuredPipeline::decode(&bytes, &Context::default())?, pipeline);
/// # Ok::<(), pumice_format::FormatError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StructuredPipeline {
    /// The sections that have filters, each at most once.
    pub sections: Vec<SectionPipeline>,
}

/// The filters of one section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionPipeline {
    /// 0 for the selection, 1 for fixed-size data, 2 for variable-length data.
    pub section: u8,
    /// The filters, in the order of writing.
    pub filters: Vec<FilterDescription>,
}

impl StructuredPipeline {
    /// The filters of `section`; none if it is not listed.
    pub fn filters(&self, section: u8) -> &[FilterDescription] {
        let found = self.sections.iter().find(|entry| entry.section == section);
        found.map_or(&[], |entry| &entry.filters)
    }

    /// Decodes the body of a message 0x0019.
    pub fn decode(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        Self::decode_version(bytes, context, PIPELINE_VERSION)
    }

    /// Decodes the body of a message 0x000B of version 3. That this message belongs to a dataset
    /// of structured chunks is the caller's to know.
    pub fn decode_in_pipeline(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        Self::decode_version(bytes, context, PIPELINE_VERSION_IN_FILTER_MESSAGE)
    }

    fn decode_version(bytes: &[u8], context: &Context, expected: u8) -> Result<Self, DecodeError> {
        let mut reader = context.reader(STRUCTURE, bytes);
        let start = reader.clone();
        let [version, count] = reader.array()?;
        if version != expected {
            return Err(start.unknown(format!("version {expected}"), expected, version));
        }
        if count > MAX_SECTIONS {
            return Err(start.error("at most 3 sections", count));
        }
        let mut pipeline = Self::default();
        for _ in 0..count {
            let start = reader.clone();
            let section = SectionPipeline::decode(&mut reader)?;
            if pipeline.sections.iter().any(|earlier| earlier.section == section.section) {
                return Err(start.error("each section once", section.section));
            }
            pipeline.sections.push(section);
        }
        Ok(pipeline)
    }

    /// Appends the body of a message 0x0019, sections in ascending order.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), FormatError> {
        let mut sections: Vec<_> = self.sections.iter().collect();
        sections.sort_by_key(|entry| entry.section);
        sections.dedup_by_key(|entry| entry.section);
        if sections.len() != self.sections.len() {
            return Err(FormatError::unencodable(STRUCTURE, "a section twice"));
        }
        out.put_bytes(&[PIPELINE_VERSION, sections.len() as u8]);
        for entry in sections {
            entry.encode(out)?;
        }
        Ok(())
    }
}

impl SectionPipeline {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let start = reader.clone();
        let [section, count] = reader.array()?;
        if section >= MAX_SECTIONS {
            return Err(start.error("a section below 3", section));
        }
        let length = reader.u16()?;
        let address = reader.address();
        let mut list = Reader::new(STRUCTURE, address, reader.take(usize::from(length))?);
        let filters = decode_filters(&mut list, count, DESCRIPTION_VERSION)?;
        Ok(Self { section, filters })
    }

    fn encode(&self, out: &mut Vec<u8>) -> Result<(), FormatError> {
        if self.section >= MAX_SECTIONS {
            let what = format!("filters of section {}", self.section);
            return Err(FormatError::unencodable(STRUCTURE, what));
        }
        let mut list = Vec::new();
        let count = encode_filters(&self.filters, &mut list)?;
        out.put_bytes(&[self.section, count]);
        out.put_uint(fits(STRUCTURE, "bytes of a section's filters", 0xFFFF, list.len())?, 2);
        out.put_bytes(&list);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: [u8; 16] = [1, 1, 1, 1, 10, 0, 1, 0, 1, 0, 1, 0, 6, 0, 0, 0];

    fn example() -> StructuredPipeline {
        let deflate = FilterDescription { flags: 1, ..FilterDescription::new(1, &[6]) };
        StructuredPipeline {
            sections: vec![SectionPipeline { section: 1, filters: vec![deflate] }],
        }
    }

    #[test]
    fn the_worked_example_encodes_byte_for_byte() {
        let mut bytes = Vec::new();
        example().encode(&mut bytes).unwrap();
        assert_eq!(bytes, EXAMPLE);
        let context = Context::default();
        assert_eq!(StructuredPipeline::decode(&EXAMPLE, &context).unwrap(), example());
        let mut older = EXAMPLE;
        older[0] = 3;
        assert_eq!(StructuredPipeline::decode_in_pipeline(&older, &context).unwrap(), example());
        assert!(StructuredPipeline::decode(&older, &context).is_err());
    }

    #[test]
    fn sections_are_found_in_any_order() {
        let mut pipeline = example();
        let filters = vec![FilterDescription::new(2, &[4])];
        pipeline.sections.push(SectionPipeline { section: 0, filters });
        let mut bytes = Vec::new();
        pipeline.encode(&mut bytes).unwrap();
        assert_eq!(bytes[2], 0, "written in ascending order");
        let back = StructuredPipeline::decode(&bytes, &Context::default()).unwrap();
        assert_eq!(back.filters(0)[0].id, 2);
        assert_eq!(back.filters(1)[0].id, 1);
        assert!(back.filters(2).is_empty());
    }

    #[test]
    fn damaged_lists_are_refused() {
        for (at, byte) in [(1, 4), (2, 3), (3, 2), (4, 9), (4, 11)] {
            let mut bytes = EXAMPLE;
            bytes[at] = byte;
            let result = StructuredPipeline::decode(&bytes, &Context::default());
            assert!(result.is_err(), "byte {at} = {byte}");
        }
        let mut twice = EXAMPLE.to_vec();
        twice[1] = 2;
        twice.extend_from_slice(&EXAMPLE[2..]);
        assert!(StructuredPipeline::decode(&twice, &Context::default()).is_err());
    }
}
