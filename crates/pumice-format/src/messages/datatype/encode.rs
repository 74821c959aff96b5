//! Datatypes to bytes.

use super::{
    BIG_ENDIAN, HIGH_PADDING, HOMOGENEOUS, INTERNAL_PADDING, LOW_PADDING, SIGNED, STRUCTURE, VAX,
    member_offset_width,
};
use crate::FormatError;
use crate::error::fits;
use crate::messages::Era;
use pumice_bytes::Writer;
use pumice_types::{
    Array, BitPadding, Bitfield, ByteOrder, CharacterSet, Compound, Datatype, Enumeration, Float,
    Integer, MantissaNormalization, Opaque, ReferenceKind, StringPadding, VarLen, VarLenKind,
};

/// The longest tag of opaque bytes that libhdf5 reads back whole.
const MAX_TAG: u64 = 248;
/// As deep as the decoder goes.
const MAX_DEPTH: u8 = 32;

/// Appends the body of a message.
///
/// ```
/// use pumice_format::Context;
/// use pumice_format::messages::datatype;
/// use pumice_types::Datatype;
///
/// let point = Datatype::compound([("x", Datatype::f64_le()), ("y", Datatype::f64_le())]);
/// let mut bytes = Vec::new();
/// datatype::encode(&point, &mut bytes)?;
/// assert_eq!(datatype::decode(&bytes, &Context::default())?, point);
/// # Ok::<(), pumice_format::FormatError>(())
/// ```
pub fn encode(datatype: &Datatype, out: &mut Vec<u8>) -> Result<(), FormatError> {
    // Depth first: everything else walks the whole tree.
    if !shallow(datatype, MAX_DEPTH) {
        return Err(FormatError::unencodable(STRUCTURE, "more than 32 nested datatypes"));
    }
    if let Err(error) = datatype.validate() {
        return Err(FormatError::unencodable(STRUCTURE, error.to_string()));
    }
    encode_nested(datatype, Era::New, out)
}

/// Appends the body of a message in the version of an era. Later types have one version only.
pub fn encode_for(era: Era, datatype: &Datatype, out: &mut Vec<u8>) -> Result<(), FormatError> {
    if era == Era::New || version(datatype) > 3 {
        return encode(datatype, out);
    }
    let mut checked = Vec::new();
    encode(datatype, &mut checked)?;
    encode_nested(datatype, Era::Old, out)
}

fn shallow(datatype: &Datatype, depth: u8) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    match datatype {
        Datatype::Compound(compound) => {
            compound.members.iter().all(|member| shallow(&member.datatype, depth))
        }
        Datatype::VarLen(varlen) => shallow(&varlen.base, depth),
        Datatype::Array(array) => shallow(&array.base, depth),
        Datatype::Enum(_) | Datatype::Complex(_) => depth > 0,
        _ => true,
    }
}

/// The version that `datatype` is written in.
///
/// ```
/// use pumice_format::messages::datatype::version;
/// use pumice_types::Datatype;
///
/// assert_eq!(version(&Datatype::u8()), 1);
/// assert_eq!(version(&Datatype::array(Datatype::u8(), [3])), 3);
/// ```
pub fn version(datatype: &Datatype) -> u8 {
    match datatype {
        Datatype::Float(float) if float.order == ByteOrder::Vax => 3,
        Datatype::Compound(compound) => {
            let members = compound.members.iter().map(|member| version(&member.datatype));
            members.fold(3, u8::max)
        }
        Datatype::Enum(_) => 3,
        Datatype::Array(array) => version(&array.base).max(3),
        Datatype::VarLen(varlen) => version(&varlen.base),
        Datatype::Reference(reference) => match reference.kind {
            ReferenceKind::Object | ReferenceKind::Region => 1,
            _ => 4,
        },
        Datatype::Complex(_) => 5,
        _ => 1,
    }
}

/// The version in files of the oldest format: 2 with arrays, which came with it.
fn old_version(datatype: &Datatype) -> u8 {
    match datatype {
        Datatype::Float(float) if float.order == ByteOrder::Vax => 3,
        Datatype::Compound(compound) => {
            // Not `max().unwrap_or(1)`: optimised by rustc 1.95, whoever calls the function then takes it for
            // certain that it is never 1.
            let members = compound.members.iter().map(|member| old_version(&member.datatype));
            members.fold(1, u8::max)
        }
        Datatype::Array(array) => old_version(&array.base).max(2),
        Datatype::VarLen(varlen) => old_version(&varlen.base),
        _ => 1,
    }
}

fn encode_nested(datatype: &Datatype, era: Era, out: &mut Vec<u8>) -> Result<(), FormatError> {
    let version = match era {
        Era::Old => old_version(datatype),
        Era::New => version(datatype),
    };
    let size = fits(STRUCTURE, "bytes of an element", u64::from(u32::MAX), datatype.size())?;
    out.put_u8(version << 4 | datatype.class());
    out.put_uint(u64::from(flags(datatype)?), 3);
    out.put_uint(size, 4);
    match datatype {
        Datatype::Integer(Integer { bit_offset, precision, .. })
        | Datatype::Bitfield(Bitfield { bit_offset, precision, .. }) => {
            out.put_u16(*bit_offset);
            out.put_u16(*precision);
        }
        Datatype::Float(float) => encode_float(float, out),
        Datatype::Time(time) => out.put_u16(time.precision),
        Datatype::Opaque(opaque) => {
            out.put_bytes(opaque.tag.as_bytes());
            out.put_zeros(tag_length(opaque) - opaque.tag.len());
        }
        Datatype::Compound(compound) => encode_members(compound, era, version, out)?,
        Datatype::Enum(enumeration) => encode_enum(enumeration, era, version, out)?,
        Datatype::VarLen(VarLen { base, .. }) => encode_nested(base, era, out)?,
        Datatype::Array(Array { dims, base }) => {
            out.put_u8(dims.len() as u8); // validated: at most 32
            out.put_zeros(if version < 3 { 3 } else { 0 });
            for dim in dims {
                out.put_u32(*dim);
            }
            if version < 3 {
                // The order of the axes, which was never anything else.
                (0..dims.len() as u32).for_each(|axis| out.put_u32(axis));
            }
            encode_nested(base, era, out)?;
        }
        Datatype::Complex(complex) => {
            encode_nested(&Datatype::Float(complex.base.clone()), era, out)?;
        }
        _ => {}
    }
    Ok(())
}

fn flags(datatype: &Datatype) -> Result<u32, FormatError> {
    let flags = match datatype {
        Datatype::Integer(integer) => {
            let padding = pads(integer.low_padding, integer.high_padding);
            order(integer.order)? | padding | if integer.signed { SIGNED } else { 0 }
        }
        Datatype::Bitfield(field) => {
            order(field.order)? | pads(field.low_padding, field.high_padding)
        }
        Datatype::Time(time) => order(time.order)?,
        Datatype::Float(float) => float_flags(float)?,
        Datatype::String(string) => padding(string.padding) | charset(string.charset) << 4,
        Datatype::Opaque(opaque) => {
            fits(STRUCTURE, "tag length", MAX_TAG, opaque.tag.len())?;
            tag_length(opaque) as u32
        }
        Datatype::Compound(compound) => {
            fits(STRUCTURE, "number of members", 0xFFFF, compound.members.len())? as u32
        }
        Datatype::Enum(enumeration) => {
            fits(STRUCTURE, "number of names", 0xFFFF, enumeration.names.len())? as u32
        }
        Datatype::Reference(reference) => match reference.kind {
            ReferenceKind::Object => 0,
            ReferenceKind::Region => 1,
            ReferenceKind::Object2 { version } => 2 | u32::from(version & 0x0F) << 4,
            ReferenceKind::Region2 { version } => 3 | u32::from(version & 0x0F) << 4,
            ReferenceKind::Attribute { version } => 4 | u32::from(version & 0x0F) << 4,
        },
        Datatype::VarLen(varlen) => match varlen.kind {
            VarLenKind::Sequence => 0,
            VarLenKind::String { padding: pad, charset: set } => {
                1 | padding(pad) << 4 | charset(set) << 8
            }
        },
        Datatype::Complex(_) => HOMOGENEOUS,
        Datatype::Array(_) => 0,
        _ => return Err(FormatError::unencodable(STRUCTURE, datatype.class_name())),
    };
    Ok(flags)
}

fn order(order: ByteOrder) -> Result<u32, FormatError> {
    match order {
        ByteOrder::Little => Ok(0),
        ByteOrder::Big => Ok(BIG_ENDIAN),
        ByteOrder::Vax => Err(FormatError::unencodable(STRUCTURE, "VAX order of integers")),
    }
}

fn pads(low: BitPadding, high: BitPadding) -> u32 {
    let low = if low == BitPadding::One { LOW_PADDING } else { 0 };
    let high = if high == BitPadding::One { HIGH_PADDING } else { 0 };
    low | high
}

fn padding(padding: StringPadding) -> u32 {
    match padding {
        StringPadding::NullTerminate => 0,
        StringPadding::NullPad => 1,
        StringPadding::SpacePad => 2,
    }
}

fn charset(charset: CharacterSet) -> u32 {
    match charset {
        CharacterSet::Ascii => 0,
        CharacterSet::Utf8 => 1,
    }
}

fn float_flags(float: &Float) -> Result<u32, FormatError> {
    let order = match float.order {
        ByteOrder::Vax => BIG_ENDIAN | VAX,
        other => order(other)?,
    };
    let normalization = match float.normalization {
        MantissaNormalization::None => 0,
        MantissaNormalization::MsbSet => 0x10,
        MantissaNormalization::Implied => 0x20,
    };
    let internal = float.internal_padding == BitPadding::One;
    let internal = if internal { INTERNAL_PADDING } else { 0 };
    let sign = u32::from(float.sign_location) << 8;
    Ok(order | pads(float.low_padding, float.high_padding) | internal | normalization | sign)
}

fn encode_float(float: &Float, out: &mut Vec<u8>) {
    out.put_u16(float.bit_offset);
    out.put_u16(float.precision);
    out.put_bytes(&[
        float.exponent_location,
        float.exponent_size,
        float.mantissa_location,
        float.mantissa_size,
    ]);
    out.put_u32(float.exponent_bias);
}

/// Bytes of a tag, padded.
fn tag_length(opaque: &Opaque) -> usize {
    opaque.tag.len().next_multiple_of(8)
}

/// A name; before version 3 it is padded.
fn encode_name(name: &str, version: u8, out: &mut Vec<u8>) -> Result<(), FormatError> {
    if name.contains('\0') {
        return Err(FormatError::unencodable(STRUCTURE, "a null byte in a name"));
    }
    out.put_bytes(name.as_bytes());
    out.put_u8(0);
    let length = name.len() + 1;
    out.put_zeros(if version < 3 { length.next_multiple_of(8) - length } else { 0 });
    Ok(())
}

fn encode_members(
    compound: &Compound,
    era: Era,
    version: u8,
    out: &mut Vec<u8>,
) -> Result<(), FormatError> {
    if compound.members.is_empty() {
        return Err(FormatError::unencodable(STRUCTURE, "a compound without members"));
    }
    let width = if version < 3 { 4 } else { member_offset_width(compound.size) };
    for member in &compound.members {
        encode_name(&member.name, version, out)?;
        out.put_uint(u64::from(member.offset), width);
        // Dimensions of the member; since version 2 an array type has them.
        out.put_zeros(if version == 1 { 28 } else { 0 });
        encode_nested(&member.datatype, era, out)?;
    }
    Ok(())
}

fn encode_enum(
    enumeration: &Enumeration,
    era: Era,
    version: u8,
    out: &mut Vec<u8>,
) -> Result<(), FormatError> {
    encode_nested(&Datatype::Integer(enumeration.base.clone()), era, out)?;
    for name in &enumeration.names {
        encode_name(name, version, out)?;
    }
    out.put_bytes(&enumeration.values);
    Ok(())
}
