//! Datatypes from bytes.

use super::{
    ARRAY, BIG_ENDIAN, BITFIELD, COMPLEX, COMPOUND, ENUM, FLOAT, HIGH_PADDING, INTEGER,
    INTERNAL_PADDING, LOW_PADDING, OPAQUE, REFERENCE, SIGNED, STRING, STRUCTURE, TIME, VARLEN, VAX,
    member_offset_width,
};
use crate::text::{lossy, terminated, until_null};
use crate::{Context, DecodeError};
use pumice_bytes::Reader;
use pumice_types::{
    Array, BitPadding, Bitfield, ByteOrder, CharacterSet, Complex, Compound, Datatype, Enumeration,
    FixedString, Float, Integer, MantissaNormalization, Member, Opaque, Reference, ReferenceKind,
    StringPadding, Time, VarLen, VarLenKind,
};

/// The deepest nesting of datatypes.
const MAX_DEPTH: u8 = 32;
/// The least bytes that a member of a compound takes: name, offset, type.
const MIN_MEMBER: usize = 10;
/// The largest rank of an array.
const MAX_RANK: u8 = 32;

/// Decodes the body of a message. Bytes after the datatype are ignored.
///
/// ```
/// use pumice_format::Context;
/// use pumice_format::messages::datatype;
/// use pumice_types::Datatype;
///
/// let bytes = [0x10, 0x08, 0, 0, 4, 0, 0, 0, 0, 0, 32, 0];
/// assert_eq!(datatype::decode(&bytes, &Context::default())?, Datatype::i32_le());
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
pub fn decode(bytes: &[u8], context: &Context) -> Result<Datatype, DecodeError> {
    let mut reader = context.reader(STRUCTURE, bytes);
    let start = reader.clone();
    let datatype = decode_nested(&mut reader, 0)?;
    match datatype.validate() {
        Ok(()) => Ok(datatype),
        Err(error) => Err(start.error("a datatype that does not contradict itself", error)),
    }
}

/// The first bytes of every datatype.
struct Head<'a> {
    /// The reader at the head, for errors.
    start: Reader<'a>,
    version: u8,
    flags: u32,
    size: u32,
    depth: u8,
}

impl Head<'_> {
    fn bit(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    fn order(&self) -> ByteOrder {
        if self.bit(BIG_ENDIAN) { ByteOrder::Big } else { ByteOrder::Little }
    }

    fn padding(&self, flag: u32) -> BitPadding {
        if self.bit(flag) { BitPadding::One } else { BitPadding::Zero }
    }

    /// Names of members are padded to multiples of this before version 3.
    fn name_align(&self) -> usize {
        if self.version < 3 { 8 } else { 1 }
    }

    /// The type inside this one.
    fn base(&self, reader: &mut Reader<'_>) -> Result<Datatype, DecodeError> {
        decode_nested(reader, self.depth + 1)
    }
}

fn decode_nested(reader: &mut Reader<'_>, depth: u8) -> Result<Datatype, DecodeError> {
    let start = reader.clone();
    if depth >= MAX_DEPTH {
        return Err(start.error("at most 32 nested datatypes", "more"));
    }
    let word = reader.u32()?;
    let size = reader.u32()?;
    let (class, version) = ((word & 0x0F) as u8, (word >> 4 & 0x0F) as u8);
    if !(1..=5).contains(&version) {
        return Err(start.unknown("version 1 to 5", 5u8, version));
    }
    if size == 0 {
        return Err(start.error("elements of at least one byte", size));
    }
    let head = Head { start, version, flags: word >> 8, size, depth };
    match class {
        INTEGER => integer(&head, reader).map(Datatype::Integer),
        FLOAT => float(&head, reader).map(Datatype::Float),
        TIME => {
            let precision = reader.u16()?;
            Ok(Datatype::Time(Time { size, order: head.order(), precision }))
        }
        STRING => {
            let padding = string_padding(&head, head.flags & 0x0F)?;
            let charset = charset(&head, head.flags >> 4 & 0x0F)?;
            Ok(Datatype::String(FixedString { size, padding, charset }))
        }
        BITFIELD => bitfield(&head, reader).map(Datatype::Bitfield),
        OPAQUE => opaque(&head, reader).map(Datatype::Opaque),
        COMPOUND => compound(&head, reader).map(Datatype::Compound),
        REFERENCE => reference(&head).map(Datatype::Reference),
        ENUM => enumeration(&head, reader).map(Datatype::Enum),
        VARLEN => varlen(&head, reader).map(Datatype::VarLen),
        ARRAY => array(&head, reader).map(Datatype::Array),
        COMPLEX => complex(&head, reader).map(Datatype::Complex),
        class => Err(head.start.unknown("datatype class 0 to 11", 11u8, class)),
    }
}

fn integer(head: &Head<'_>, reader: &mut Reader<'_>) -> Result<Integer, DecodeError> {
    Ok(Integer {
        size: head.size,
        order: head.order(),
        signed: head.bit(SIGNED),
        bit_offset: reader.u16()?,
        precision: reader.u16()?,
        low_padding: head.padding(LOW_PADDING),
        high_padding: head.padding(HIGH_PADDING),
    })
}

fn bitfield(head: &Head<'_>, reader: &mut Reader<'_>) -> Result<Bitfield, DecodeError> {
    Ok(Bitfield {
        size: head.size,
        order: head.order(),
        bit_offset: reader.u16()?,
        precision: reader.u16()?,
        low_padding: head.padding(LOW_PADDING),
        high_padding: head.padding(HIGH_PADDING),
    })
}

fn float(head: &Head<'_>, reader: &mut Reader<'_>) -> Result<Float, DecodeError> {
    let order = match (head.bit(VAX), head.bit(BIG_ENDIAN)) {
        (true, true) if head.version >= 3 => ByteOrder::Vax,
        (true, false) if head.version >= 3 => {
            return Err(head.start.error("a byte order", "a reserved one").newer());
        }
        _ => head.order(),
    };
    let normalization = match head.flags >> 4 & 3 {
        0 => MantissaNormalization::None,
        1 => MantissaNormalization::MsbSet,
        2 => MantissaNormalization::Implied,
        other => return Err(head.start.unknown("mantissa normalization 0 to 2", 2u8, other)),
    };
    Ok(Float {
        size: head.size,
        order,
        bit_offset: reader.u16()?,
        precision: reader.u16()?,
        low_padding: head.padding(LOW_PADDING),
        high_padding: head.padding(HIGH_PADDING),
        internal_padding: head.padding(INTERNAL_PADDING),
        normalization,
        sign_location: (head.flags >> 8) as u8,
        exponent_location: reader.u8()?,
        exponent_size: reader.u8()?,
        mantissa_location: reader.u8()?,
        mantissa_size: reader.u8()?,
        exponent_bias: reader.u32()?,
    })
}

fn string_padding(head: &Head<'_>, number: u32) -> Result<StringPadding, DecodeError> {
    match number {
        0 => Ok(StringPadding::NullTerminate),
        1 => Ok(StringPadding::NullPad),
        2 => Ok(StringPadding::SpacePad),
        other => Err(head.start.unknown("string padding 0 to 2", 2u8, other)),
    }
}

fn charset(head: &Head<'_>, number: u32) -> Result<CharacterSet, DecodeError> {
    match number {
        0 => Ok(CharacterSet::Ascii),
        1 => Ok(CharacterSet::Utf8),
        other => Err(head.start.unknown("character set 0 or 1", 1u8, other)),
    }
}

fn opaque(head: &Head<'_>, reader: &mut Reader<'_>) -> Result<Opaque, DecodeError> {
    let tag = reader.take((head.flags & 0xFF) as usize)?;
    Ok(Opaque { size: head.size, tag: lossy(until_null(tag)) })
}

fn reference(head: &Head<'_>) -> Result<Reference, DecodeError> {
    let version = (head.flags >> 4 & 0x0F) as u8;
    let kind = match head.flags & 0x0F {
        0 => ReferenceKind::Object,
        1 => ReferenceKind::Region,
        2 => ReferenceKind::Object2 { version },
        3 => ReferenceKind::Region2 { version },
        4 => ReferenceKind::Attribute { version },
        other => return Err(head.start.unknown("reference type 0 to 4", 4u8, other)),
    };
    Ok(Reference { size: head.size, kind })
}

fn compound(head: &Head<'_>, reader: &mut Reader<'_>) -> Result<Compound, DecodeError> {
    let count = reader.count(u64::from(head.flags & 0xFFFF), MIN_MEMBER)?;
    let mut members = Vec::with_capacity(count);
    for _ in 0..count {
        members.push(member(head, reader)?);
    }
    if members.is_empty() {
        return Err(head.start.error("a compound with members", "none"));
    }
    Ok(Compound { size: head.size, members })
}

fn member(head: &Head<'_>, reader: &mut Reader<'_>) -> Result<Member, DecodeError> {
    let name = terminated(reader, head.name_align())?;
    let width = if head.version < 3 { 4 } else { member_offset_width(head.size) };
    let offset = reader.uint(width)? as u32;
    let dims = if head.version == 1 { member_dims(reader)? } else { Vec::new() };
    let base = head.base(reader)?;
    let datatype = if dims.is_empty() { base } else { Datatype::array(base, dims) };
    Ok(Member { name, offset, datatype })
}

/// Members of version 1 are arrays of up to four dimensions in themselves.
fn member_dims(reader: &mut Reader<'_>) -> Result<Vec<u32>, DecodeError> {
    let start = reader.clone();
    let rank = reader.u8()?;
    if rank > 4 {
        return Err(start.error("at most 4 dimensions", rank));
    }
    reader.skip(3 + 4 + 4)?;
    let mut dims = Vec::new();
    for axis in 0..4 {
        let dim = reader.u32()?;
        if axis < rank {
            dims.push(dim);
        }
    }
    Ok(dims)
}

fn enumeration(head: &Head<'_>, reader: &mut Reader<'_>) -> Result<Enumeration, DecodeError> {
    let start = reader.clone();
    let base = match head.base(reader)? {
        Datatype::Integer(base) if base.size == head.size => base,
        other => {
            let expected = format!("an integer of {} byte(s)", head.size);
            return Err(start.error(expected, other.class_name()));
        }
    };
    // A name takes at least its null byte, and each name has a value.
    let each = usize::try_from(base.size).unwrap_or(usize::MAX).saturating_add(1);
    let count = reader.count(u64::from(head.flags & 0xFFFF), each)?;
    let mut names = Vec::with_capacity(count);
    for _ in 0..count {
        names.push(terminated(reader, head.name_align())?);
    }
    let values = reader.take(count.saturating_mul(each - 1))?.to_vec();
    Ok(Enumeration { base, names, values })
}

fn varlen(head: &Head<'_>, reader: &mut Reader<'_>) -> Result<VarLen, DecodeError> {
    let kind = match head.flags & 0x0F {
        0 => VarLenKind::Sequence,
        1 => VarLenKind::String {
            padding: string_padding(head, head.flags >> 4 & 0x0F)?,
            charset: charset(head, head.flags >> 8 & 0x0F)?,
        },
        other => return Err(head.start.unknown("variable-length type 0 or 1", 1u8, other)),
    };
    Ok(VarLen { size: head.size, kind, base: Box::new(head.base(reader)?) })
}

fn array(head: &Head<'_>, reader: &mut Reader<'_>) -> Result<Array, DecodeError> {
    let start = reader.clone();
    let rank = reader.u8()?;
    if rank == 0 || rank > MAX_RANK {
        return Err(start.error("an array of rank 1 to 32", rank));
    }
    if head.version < 3 {
        reader.skip(3)?;
    }
    let mut dims = Vec::with_capacity(usize::from(rank));
    for _ in 0..rank {
        dims.push(reader.u32()?);
    }
    if head.version < 3 {
        reader.skip(4 * usize::from(rank))?; // a permutation that was never used
    }
    let array = Array { dims, base: Box::new(head.base(reader)?) };
    if array.size() as u64 != u64::from(head.size) {
        return Err(start.error(format!("an array of {} byte(s)", head.size), array.size()));
    }
    Ok(array)
}

fn complex(head: &Head<'_>, reader: &mut Reader<'_>) -> Result<Complex, DecodeError> {
    let start = reader.clone();
    if head.flags & !1 != 0 {
        return Err(head.start.error("a complex number in rectangular form", head.flags).newer());
    }
    match head.base(reader)? {
        Datatype::Float(base) if u64::from(base.size) * 2 == u64::from(head.size) => {
            Ok(Complex { base })
        }
        other => {
            let expected = format!("a float of half of {} byte(s)", head.size);
            Err(start.error(expected, other.class_name()))
        }
    }
}
