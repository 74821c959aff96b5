//! The attribute message (0x000C), versions 1 to 3; version 3 is written, in files of the oldest format
//! 1, or 2 if something is shared.
//!
//! ```text
//! version | flags | name, datatype, dataspace lengths u16 | [character set] | name | datatype |
//! dataspace | data
//! ```
//!
//! Version 1 pads name, datatype and dataspace to multiples of 8; from version 2 on, datatype and
//! dataspace may be shared; version 3 has the name's character set.

use super::link::decode_charset;
use super::shared::{Shareable, SharedLocation};
use super::{Era, dataspace, datatype};
use crate::error::fits;
use crate::text::{lossy, until_null};
use crate::{Context, DecodeError, FormatError, Sizes};
use pumice_bytes::{Reader, Writer};
use pumice_space::Extent;
use pumice_types::{CharacterSet, Datatype};

const STRUCTURE: &str = "attribute message";

const DATATYPE_SHARED: u8 = 0x01;
const DATASPACE_SHARED: u8 = 0x02;

/// An attribute.
///
/// ```
/// use pumice_format::messages::Attribute;
/// use pumice_format::{Context, Sizes};
/// use pumice_space::Extent;
/// use pumice_types::Datatype;
///
/// let attribute = Attribute::new("scale", Datatype::u8(), Extent::Scalar, vec![7]);
/// let mut bytes = Vec::new();
/// attribute.encode(Sizes::default(), &mut bytes)?;
/// assert_eq!(Attribute::decode(&bytes, &Context::default())?, attribute);
/// # Ok::<(), pumice_format::FormatError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    /// The name.
    pub name: String,
    /// The encoding that the name claims.
    pub charset: CharacterSet,
    /// The type of its elements.
    pub datatype: Shareable<Datatype>,
    /// Its shape.
    pub dataspace: Shareable<Extent>,
    /// Its elements. If datatype or dataspace are shared, this is the rest of the message, which
    /// may be longer than the elements.
    pub data: Vec<u8>,
}

impl Attribute {
    /// An attribute with its own datatype and dataspace; the character set follows the name.
    pub fn new(
        name: impl Into<String>,
        datatype: Datatype,
        dataspace: Extent,
        data: Vec<u8>,
    ) -> Self {
        let name = name.into();
        let charset = if name.is_ascii() { CharacterSet::Ascii } else { CharacterSet::Utf8 };
        let datatype = Shareable::Here(datatype);
        let dataspace = Shareable::Here(dataspace);
        Self { name, charset, datatype, dataspace, data }
    }

    /// Decodes the body of a message, or an object of an object's attribute heap.
    pub fn decode(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let mut reader = context.reader(STRUCTURE, bytes);
        let start = reader.clone();
        let [version, flags] = reader.array()?;
        if !(1..=3).contains(&version) {
            return Err(start.unknown("version 1 to 3", 3u8, version));
        }
        let flags = if version == 1 { 0 } else { flags };
        if flags & !(DATATYPE_SHARED | DATASPACE_SHARED) != 0 {
            return Err(start.reserved("flags of bits 0 and 1", flags));
        }
        let [name, datatype, dataspace] = [reader.u16()?, reader.u16()?, reader.u16()?];
        let charset = if version == 3 { decode_charset(&mut reader)? } else { CharacterSet::Ascii };
        let align = if version == 1 { 8 } else { 1 };
        let (name, _) = part(&mut reader, name, align)?;
        let name = lossy(until_null(name));
        let (bytes, address) = part(&mut reader, datatype, align)?;
        let here = context.at(address);
        let datatype = shareable(flags & DATATYPE_SHARED != 0, bytes, &here, datatype::decode)?;
        let (bytes, address) = part(&mut reader, dataspace, align)?;
        let here = context.at(address);
        let dataspace = shareable(flags & DATASPACE_SHARED != 0, bytes, &here, dataspace::decode)?;
        let data = decode_data(&mut reader, &datatype, &dataspace)?;
        Ok(Self { name, charset, datatype, dataspace, data })
    }

    /// Appends the body of a message in version 3.
    pub fn encode(&self, sizes: Sizes, out: &mut Vec<u8>) -> Result<(), FormatError> {
        self.encode_for(Era::New, sizes, out)
    }

    /// Appends the body of a message in the version of an era. A name that is not ASCII needs
    /// version 3.
    pub fn encode_for(&self, era: Era, sizes: Sizes, out: &mut Vec<u8>) -> Result<(), FormatError> {
        let mut flags = 0;
        let (mut datatype, mut dataspace) = (Vec::new(), Vec::new());
        match &self.datatype {
            Shareable::Here(here) => datatype::encode_for(era, here, &mut datatype)?,
            Shareable::Shared(location) => {
                flags |= DATATYPE_SHARED;
                location.encode(sizes, &mut datatype);
            }
        }
        match &self.dataspace {
            Shareable::Here(here) => dataspace::encode_for(era, here, sizes, &mut dataspace)?,
            Shareable::Shared(location) => {
                flags |= DATASPACE_SHARED;
                location.encode(sizes, &mut dataspace);
            }
        }
        if self.name.contains('\0') {
            return Err(FormatError::unencodable(STRUCTURE, "a null byte in a name"));
        }
        if let Some(expected) = data_length(&self.datatype, &self.dataspace)
            && expected != Some(self.data.len() as u64)
        {
            let what = format!("{} byte(s) of data for this shape", self.data.len());
            return Err(FormatError::unencodable(STRUCTURE, what));
        }
        let name_length = self.name.len().saturating_add(1);
        let version = match era {
            Era::Old if self.charset == CharacterSet::Ascii => 1 + u8::from(flags != 0),
            Era::Old | Era::New => 3,
        };
        out.put_bytes(&[version, flags]);
        out.put_uint(fits(STRUCTURE, "name length", 0xFFFF, name_length)?, 2);
        out.put_uint(fits(STRUCTURE, "bytes of datatype", 0xFFFF, datatype.len())?, 2);
        out.put_uint(fits(STRUCTURE, "bytes of dataspace", 0xFFFF, dataspace.len())?, 2);
        if version == 3 {
            out.put_u8(u8::from(self.charset == CharacterSet::Utf8));
        }
        let align = if version == 1 { 8 } else { 1 };
        for part in [&[self.name.as_bytes(), &[0]].concat(), &datatype, &dataspace] {
            out.put_bytes(part);
            out.put_zeros(part.len().next_multiple_of(align) - part.len());
        }
        out.put_bytes(&self.data);
        Ok(())
    }
}

/// The next `length` bytes and their address; padding up to a multiple of `align` is passed over.
fn part<'a>(
    reader: &mut Reader<'a>,
    length: u16,
    align: usize,
) -> Result<(&'a [u8], u64), DecodeError> {
    let address = reader.address();
    let length = usize::from(length);
    let bytes = reader.take(length)?;
    reader.skip(length.next_multiple_of(align) - length)?;
    Ok((bytes, address))
}

fn shareable<T>(
    shared: bool,
    bytes: &[u8],
    context: &Context,
    decode: impl Fn(&[u8], &Context) -> Result<T, DecodeError>,
) -> Result<Shareable<T>, DecodeError> {
    if shared {
        return SharedLocation::decode(bytes, context).map(Shareable::Shared);
    }
    decode(bytes, context).map(Shareable::Here)
}

fn decode_data(
    reader: &mut Reader<'_>,
    datatype: &Shareable<Datatype>,
    dataspace: &Shareable<Extent>,
) -> Result<Vec<u8>, DecodeError> {
    let Some(length) = data_length(datatype, dataspace) else {
        return Ok(reader.rest().to_vec());
    };
    let length = length.ok_or_else(|| reader.error("data below 2^64 bytes", "more"))?;
    let length = reader.count(length, 1)?;
    Ok(reader.take(length)?.to_vec())
}

/// The bytes of the elements: `None` if the datatype or dataspace is elsewhere, and `Some(None)` if
/// the length does not fit 64 bits.
fn data_length(
    datatype: &Shareable<Datatype>,
    dataspace: &Shareable<Extent>,
) -> Option<Option<u64>> {
    let (datatype, extent) = (datatype.here()?, dataspace.here()?);
    let cells = extent.cells();
    Some(cells.and_then(|cells| cells.checked_mul(datatype.size() as u64)))
}
