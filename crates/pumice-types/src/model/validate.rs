//! Validity of datatypes: the checks that libhdf5 makes when it builds one.

use super::{Array, Bitfield, ByteOrder, Compound, Datatype, Enumeration, Float, Integer};
use crate::TypeError;

/// Arrays of more axes than this are refused, as by libhdf5.
const MAX_RANK: usize = 32;

impl Datatype {
    /// Checks that the datatype does not contradict itself: no element of zero bytes, numbers
    /// inside their bytes, members inside their compound and apart from each other, arrays that fit
    /// 32 bits.
    ///
    /// ```
    /// use pumice_types::{Compound, Datatype, Member};
    ///
    /// let outside = Member { name: "x".into(), offset: 2, datatype: Datatype::i32_le() };
    /// let compound = Compound { size: 4, members: vec![outside] };
    /// assert!(Datatype::Compound(compound).validate().is_err());
    /// ```
    pub fn validate(&self) -> Result<(), TypeError> {
        if self.size() == 0 {
            return Err(TypeError::invalid(self.class_name(), "elements of zero bytes"));
        }
        match self {
            Self::Integer(integer) => validate_integer(integer),
            Self::Float(float) => validate_float(float),
            Self::Bitfield(bitfield) => validate_bitfield(bitfield),
            Self::Compound(compound) => validate_compound(compound),
            Self::Enum(enumeration) => validate_enum(enumeration),
            Self::VarLen(varlen) => varlen.base.validate(),
            Self::Array(array) => validate_array(array),
            Self::Complex(complex) => validate_float(&complex.base),
            Self::Time(_) | Self::String(_) | Self::Opaque(_) | Self::Reference(_) => Ok(()),
        }
    }
}

fn validate_bits(
    class: &'static str,
    size: u32,
    offset: u16,
    precision: u16,
) -> Result<(), TypeError> {
    if precision == 0 {
        return Err(TypeError::invalid(class, "precision of zero bits"));
    }
    let end = u64::from(offset) + u64::from(precision);
    if end > u64::from(size) * 8 {
        return Err(TypeError::invalid(
            class,
            format!("bits {offset}..{end} lie outside its {size} bytes"),
        ));
    }
    Ok(())
}

fn validate_integer(integer: &Integer) -> Result<(), TypeError> {
    if integer.order == ByteOrder::Vax {
        return Err(TypeError::invalid("integer", "VAX byte order"));
    }
    validate_bits("integer", integer.size, integer.bit_offset, integer.precision)
}

fn validate_bitfield(bitfield: &Bitfield) -> Result<(), TypeError> {
    if bitfield.order == ByteOrder::Vax {
        return Err(TypeError::invalid("bitfield", "VAX byte order"));
    }
    validate_bits("bitfield", bitfield.size, bitfield.bit_offset, bitfield.precision)
}

fn validate_float(float: &Float) -> Result<(), TypeError> {
    validate_bits("float", float.size, float.bit_offset, float.precision)?;
    let bits = u64::from(float.size) * 8;
    let exponent = u64::from(float.exponent_location)
        ..u64::from(float.exponent_location) + u64::from(float.exponent_size);
    let mantissa = u64::from(float.mantissa_location)
        ..u64::from(float.mantissa_location) + u64::from(float.mantissa_size);
    let sign = u64::from(float.sign_location);
    if exponent.is_empty() || mantissa.is_empty() {
        return Err(TypeError::invalid("float", "exponent or mantissa of zero bits"));
    }
    if exponent.end > bits || mantissa.end > bits || sign >= bits {
        return Err(TypeError::invalid("float", "a part lies outside its bytes"));
    }
    let overlapping = exponent.start < mantissa.end && mantissa.start < exponent.end;
    if overlapping || exponent.contains(&sign) || mantissa.contains(&sign) {
        return Err(TypeError::invalid("float", "sign, exponent and mantissa overlap"));
    }
    if float.order == ByteOrder::Vax && !float.size.is_multiple_of(2) {
        return Err(TypeError::invalid("float", "VAX byte order with an odd size"));
    }
    Ok(())
}

fn validate_compound(compound: &Compound) -> Result<(), TypeError> {
    let mut spans = Vec::with_capacity(compound.members.len());
    let mut names = Vec::with_capacity(compound.members.len());
    for member in &compound.members {
        member.datatype.validate()?;
        let end = member.offset as usize as u64 + member.datatype.size() as u64;
        if end > u64::from(compound.size) {
            let reason =
                format!("member {:?} ends at byte {end} of {}", member.name, compound.size);
            return Err(TypeError::invalid("compound", reason));
        }
        spans.push((u64::from(member.offset), end, member.name.as_str()));
        names.push(member.name.as_str());
    }
    spans.sort_unstable();
    if let Some(pair) = spans.windows(2).find(|pair| pair[0].1 > pair[1].0) {
        let reason = format!("members {:?} and {:?} overlap", pair[0].2, pair[1].2);
        return Err(TypeError::invalid("compound", reason));
    }
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(TypeError::invalid("compound", format!("two members named {:?}", pair[0])));
    }
    Ok(())
}

fn validate_enum(enumeration: &Enumeration) -> Result<(), TypeError> {
    validate_integer(&enumeration.base)?;
    let expected = enumeration.names.len().saturating_mul(enumeration.base.size as usize);
    if enumeration.values.len() != expected {
        let reason = format!("{} bytes of values, expected {expected}", enumeration.values.len());
        return Err(TypeError::invalid("enum", reason));
    }
    Ok(())
}

fn validate_array(array: &Array) -> Result<(), TypeError> {
    array.base.validate()?;
    if array.dims.is_empty() || array.dims.len() > MAX_RANK {
        return Err(TypeError::invalid("array", format!("rank {}", array.dims.len())));
    }
    if u32::try_from(array.size()).is_err() {
        return Err(TypeError::invalid("array", "its size does not fit 32 bits"));
    }
    Ok(())
}
