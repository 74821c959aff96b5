//! The filter pipeline message (0x000B), versions 1 to 3; version 2 is written, and the others where they are asked for.
//!
//! Version 3 is HDF5 2.3's draft. In a dataset of structured chunks, the same number means their per-section form:
//! [`StructuredPipeline`](super::StructuredPipeline).
//!
//! ```text
//! version 1: 01 | count | 6 reserved | filters, with name length always and 8-byte padding
//! version 2: 02 | count | filters
//! version 3: 03 | count | filters, each followed by a length u16 and as many bytes of text
//! filter:    id u16 | [name length u16, if id >= 256] | flags u16 | parameters u16 | name | u32...
//! ```

use super::Era;
use crate::error::fits;
use crate::text::{lossy, until_null};
use crate::{Context, DecodeError, FormatError};
use pumice_bytes::{Reader, Writer};

const STRUCTURE: &str = "filter pipeline message";

/// The largest number of filters in a pipeline.
const MAX_FILTERS: u8 = 32;
/// Filters below this number are HDF5's own, and their names are not stored.
const FIRST_NAMED: u16 = 256;
/// The first version with text configurations of filters.
const CONFIGS: u8 = 3;

/// The name of a filter that is HDF5's own.
fn own_name(id: u16) -> Option<&'static str> {
    let names = ["deflate", "shuffle", "fletcher32", "szip", "nbit", "scaleoffset"];
    names.get(usize::from(id).checked_sub(1)?).copied()
}

/// A filter as a pipeline message describes it.
///
/// ```
/// let deflate = pumice_format::messages::FilterDescription::new(1, &[6]);
/// assert!(!deflate.is_optional());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterDescription {
    /// The registered number of the filter.
    pub id: u16,
    /// Bit 0: the filter may be skipped for a chunk that it cannot handle.
    pub flags: u16,
    /// The filter's name, for filters that are not HDF5's own.
    pub name: Option<String>,
    /// The filter's text configuration, from which its parameters follow; version 3 has it.
    pub config: Option<String>,
    /// The filter's parameters ("client data").
    pub parameters: Vec<u32>,
}

impl FilterDescription {
    /// A mandatory filter without name.
    pub fn new(id: u16, parameters: &[u32]) -> Self {
        Self { id, flags: 0, name: None, config: None, parameters: parameters.to_vec() }
    }

    /// Whether the filter may be skipped for a chunk that it cannot handle.
    pub fn is_optional(&self) -> bool {
        self.flags & 1 != 0
    }

    /// Reads one description as pipelines of `version` have it.
    fn decode(reader: &mut Reader<'_>, version: u8) -> Result<Self, DecodeError> {
        let id = reader.u16()?;
        let start = reader.clone();
        let named = version == 1 || id >= FIRST_NAMED;
        let name_length = if named { reader.u16()? } else { 0 };
        if version == 1 && name_length % 8 != 0 {
            return Err(start.error("a name length that is a multiple of 8", name_length));
        }
        let flags = reader.u16()?;
        let count = reader.u16()?;
        let name = reader.take(usize::from(name_length))?;
        let name = if name.is_empty() { None } else { Some(lossy(until_null(name))) };
        let count = reader.count(u64::from(count), 4)?;
        let mut parameters = Vec::with_capacity(count);
        for _ in 0..count {
            parameters.push(reader.u32()?);
        }
        if version == 1 && count % 2 != 0 {
            reader.skip(4)?;
        }
        let length = if version >= CONFIGS { reader.u16()? } else { 0 };
        let config = lossy(until_null(reader.take(usize::from(length))?));
        let config = Some(config).filter(|config| !config.is_empty());
        Ok(Self { id, flags, name, config, parameters })
    }

    /// Appends a version 1 description: padded, with the name of every filter that has one.
    fn encode_old(&self, out: &mut Vec<u8>) -> Result<(), FormatError> {
        let count = fits(STRUCTURE, "number of parameters", 0xFFFF, self.parameters.len())?;
        let name = self.name.as_deref().or_else(|| own_name(self.id)).unwrap_or_default();
        let length = if name.is_empty() { 0 } else { (name.len() + 1).next_multiple_of(8) };
        out.put_u16(self.id);
        out.put_uint(fits(STRUCTURE, "name length", 0xFFFF, length)?, 2);
        out.put_u16(self.flags);
        out.put_uint(count, 2);
        out.put_bytes(name.as_bytes());
        out.put_zeros(length - name.len());
        for parameter in &self.parameters {
            out.put_u32(*parameter);
        }
        out.put_zeros(4 * (self.parameters.len() % 2));
        Ok(())
    }

    /// Appends a version 3 description.
    fn encode_with_config(&self, out: &mut Vec<u8>) -> Result<(), FormatError> {
        self.encode(out)?;
        let config = self.config.as_deref().unwrap_or_default();
        out.put_uint(
            fits(STRUCTURE, "length of a filter's configuration", 0xFFFF, config.len())?,
            2,
        );
        out.put_bytes(config.as_bytes());
        Ok(())
    }

    /// Appends a version 2 description.
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), FormatError> {
        let count = fits(STRUCTURE, "number of parameters", 0xFFFF, self.parameters.len())?;
        let name = self.name.as_deref().filter(|_| self.id >= FIRST_NAMED);
        out.put_u16(self.id);
        if self.id >= FIRST_NAMED {
            let length = name.map_or(0, |name| name.len().saturating_add(1));
            out.put_uint(fits(STRUCTURE, "name length", 0xFFFF, length)?, 2);
        }
        out.put_u16(self.flags);
        out.put_uint(count, 2);
        if let Some(name) = name {
            out.put_bytes(name.as_bytes());
            out.put_u8(0);
        }
        for parameter in &self.parameters {
            out.put_u32(*parameter);
        }
        Ok(())
    }
}

/// Reads a number of filters and that many descriptions.
pub(super) fn decode_filters(
    reader: &mut Reader<'_>,
    count: u8,
    version: u8,
) -> Result<Vec<FilterDescription>, DecodeError> {
    if count > MAX_FILTERS {
        return Err(reader.error("at most 32 filters", count));
    }
    (0..count).map(|_| FilterDescription::decode(reader, version)).collect()
}

/// Appends descriptions, and gives their number.
pub(super) fn encode_filters(
    filters: &[FilterDescription],
    out: &mut Vec<u8>,
) -> Result<u8, FormatError> {
    let limit = u64::from(MAX_FILTERS);
    let count = fits(STRUCTURE, "number of filters", limit, filters.len())? as u8;
    for filter in filters {
        filter.encode(out)?;
    }
    Ok(count)
}

/// The filters that every chunk of a dataset passes, in the order of writing.
///
/// ```
/// use pumice_format::Context;
/// use pumice_format::messages::{FilterDescription, Pipeline};
///
/// let filters = vec![FilterDescription::new(2, &[4]), FilterDescription::new(1, &[6])];
/// let pipeline = Pipeline { filters };
/// let mut bytes = Vec::new();
/// pipeline.encode(&mut bytes)?;
/// assert_eq!(Pipeline::decode(&bytes, &Context::default())?, pipeline);
/// # Ok::<(), pumice_format::FormatError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pipeline {
    /// The filters.
    pub filters: Vec<FilterDescription>,
}

impl Pipeline {
    /// Decodes the body of a message of a dataset that has no structured chunks.
    pub fn decode(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let mut reader = context.reader(STRUCTURE, bytes);
        let start = reader.clone();
        let [version, count] = reader.array()?;
        match version {
            1 => reader.skip(6)?,
            2 | CONFIGS => {}
            version => return Err(start.unknown("version 1 to 3", 3u8, version)),
        }
        Ok(Self { filters: decode_filters(&mut reader, count, version)? })
    }

    /// Appends the body of a message as files of an era have it: version 1 or 2.
    pub fn encode_for(&self, era: Era, out: &mut Vec<u8>) -> Result<(), FormatError> {
        if era == Era::New {
            return self.encode(out);
        }
        let limit = u64::from(MAX_FILTERS);
        let count = fits(STRUCTURE, "number of filters", limit, self.filters.len())? as u8;
        out.put_bytes(&[1, count]);
        out.put_zeros(6);
        self.filters.iter().try_for_each(|filter| filter.encode_old(out))
    }

    /// Whether a filter has a text configuration.
    pub fn has_config(&self) -> bool {
        self.filters.iter().any(|filter| filter.config.is_some())
    }

    /// Appends the body of a message in version 3, with the text configurations of filters.
    ///
    /// ```
    /// use pumice_format::Context;
    /// use pumice_format::messages::{FilterDescription, Pipeline};
    ///
    /// let config = Some("level = 6".to_owned());
    /// let deflate = FilterDescription { config, ..FilterDescription::new(1, &[6]) };
    /// let pipeline = Pipeline { filters: vec![deflate] };
    /// let mut bytes = Vec::new();
    /// pipeline.encode_with_configs(&mut bytes)?;
    /// assert_eq!(Pipeline::decode(&bytes, &Context::default())?, pipeline);
    /// # Ok::<(), pumice_format::FormatError>(())
    /// ```
    pub fn encode_with_configs(&self, out: &mut Vec<u8>) -> Result<(), FormatError> {
        let limit = u64::from(MAX_FILTERS);
        let count = fits(STRUCTURE, "number of filters", limit, self.filters.len())? as u8;
        out.put_bytes(&[CONFIGS, count]);
        self.filters.iter().try_for_each(|filter| filter.encode_with_config(out))
    }

    /// Appends the body of a message in version 2.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), FormatError> {
        let mut filters = Vec::new();
        let count = encode_filters(&self.filters, &mut filters)?;
        out.put_bytes(&[2, count]);
        out.put_bytes(&filters);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_1_pads_names_and_parameters() {
        let mut bytes = vec![1, 1, 0, 0, 0, 0, 0, 0];
        bytes.put_bytes(&[1, 0, 8, 0, 1, 0, 1, 0]);
        bytes.put_bytes(b"deflate\0");
        bytes.put_bytes(&[6, 0, 0, 0, 0, 0, 0, 0]);
        let pipeline = Pipeline::decode(&bytes, &Context::default()).unwrap();
        let expected = FilterDescription {
            flags: 1,
            name: Some("deflate".into()),
            ..FilterDescription::new(1, &[6])
        };
        assert_eq!(pipeline.filters, [expected]);
        bytes.truncate(bytes.len() - 1);
        assert!(Pipeline::decode(&bytes, &Context::default()).is_err());
    }

    #[test]
    fn only_foreign_filters_store_their_names() {
        let named =
            FilterDescription { name: Some("zstd".into()), ..FilterDescription::new(32015, &[]) };
        let pipeline = Pipeline { filters: vec![FilterDescription::new(3, &[]), named] };
        let mut bytes = Vec::new();
        pipeline.encode(&mut bytes).unwrap();
        let expected = [2, 2, 3, 0, 0, 0, 0, 0, 15, 125, 5, 0, 0, 0, 0, 0];
        assert_eq!(bytes[..16], expected);
        assert_eq!(&bytes[16..], b"zstd\0");
        assert_eq!(Pipeline::decode(&bytes, &Context::default()).unwrap(), pipeline);
    }

    #[test]
    fn version_3_has_a_text_behind_the_parameters_of_each_filter() {
        let mut bytes = vec![3, 2];
        bytes.put_bytes(&[1, 0, 1, 0, 1, 0, 6, 0, 0, 0, 9, 0]);
        bytes.put_bytes(b"level = 6");
        bytes.put_bytes(&[15, 125, 5, 0, 0, 0, 0, 0]);
        bytes.put_bytes(b"zstd\0");
        bytes.put_bytes(&[0, 0]);
        let pipeline = Pipeline::decode(&bytes, &Context::default()).unwrap();
        let config = Some("level = 6".to_owned());
        let deflate = FilterDescription { flags: 1, config, ..FilterDescription::new(1, &[6]) };
        let zstd =
            FilterDescription { name: Some("zstd".into()), ..FilterDescription::new(32015, &[]) };
        assert_eq!(pipeline.filters, [deflate, zstd]);
        let mut again = Vec::new();
        pipeline.encode_with_configs(&mut again).unwrap();
        assert_eq!(again, bytes);
        for end in 2..bytes.len() {
            assert!(Pipeline::decode(&bytes[..end], &Context::default()).is_err(), "{end}");
        }
        let long = FilterDescription {
            config: Some("x".repeat(1 << 16)),
            ..FilterDescription::new(1, &[])
        };
        assert!(Pipeline { filters: vec![long] }.encode_with_configs(&mut again).is_err());
    }

    #[test]
    fn more_than_32_filters_are_refused() {
        let bytes = [&[2u8, 33][..], &[0; 300]].concat();
        assert!(Pipeline::decode(&bytes, &Context::default()).is_err());
        let pipeline = Pipeline { filters: vec![FilterDescription::new(1, &[]); 33] };
        assert!(pipeline.encode(&mut Vec::new()).is_err());
    }
}
