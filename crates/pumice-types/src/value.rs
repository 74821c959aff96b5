//! One element as an owned value of any datatype: convenient, and as slow as many small allocations
//! are. Numbers in bulk are the business of [`Conversion`], strings and sequences in bulk that of
//! [`Heaped`].

use crate::conversion::integer_value;
use crate::model::{Datatype, Integer, StringPadding, VarLenKind};
use crate::{Conversion, Element, Heaped, TypeError};

/// An element of any datatype.
///
/// ```
/// use pumice_types::{Datatype, Heaped, Value};
///
/// let names = Heaped::strings(16, ["ab", "cde"])?;
/// let values = names.values(&Datatype::varlen_string(16))?;
/// assert_eq!(values, [Value::Text(b"ab".to_vec()), Value::Text(b"cde".to_vec())]);
/// assert_eq!(values[1].as_str(), Some("cde"));
/// # Ok::<(), pumice_types::TypeError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A null reference: a string or sequence that is not there.
    Null,
    /// A fixed-point number.
    Integer(i128),
    /// A floating-point number.
    Float(f64),
    /// A complex number: real and imaginary part.
    Complex(f64, f64),
    /// A string without its padding; any bytes.
    Text(Vec<u8>),
    /// A name for a number, and the number; no name if the enumeration has none for it.
    Enum(Option<String>, i128),
    /// Bit fields, opaque elements, times and numbers of more than 8 bytes, as they are stored.
    Bytes(Vec<u8>),
    /// A reference to an object or region, as it is stored.
    Reference(Vec<u8>),
    /// Members in the order of their definition.
    Compound(Vec<(String, Value)>),
    /// An array of fixed shape, in row-major order.
    Array(Vec<Value>),
    /// A sequence of variable length.
    Sequence(Vec<Value>),
}

impl Value {
    /// The text, if it is one and UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// The values of a sequence or an array.
    pub fn items(&self) -> Option<&[Value]> {
        match self {
            Self::Array(items) | Self::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// The member of a compound.
    pub fn member(&self, name: &str) -> Option<&Value> {
        match self {
            Self::Compound(members) => {
                members.iter().find(|(known, _)| known == name).map(|(_, value)| value)
            }
            _ => None,
        }
    }
}

impl Heaped {
    /// The elements as values.
    pub fn values(&self, datatype: &Datatype) -> Result<Vec<Value>, TypeError> {
        values(datatype, &self.elements, &self.heap)
    }
}

/// Packed elements as values.
fn values(datatype: &Datatype, elements: &[u8], heap: &[u8]) -> Result<Vec<Value>, TypeError> {
    let size = datatype.size();
    if size == 0 || !elements.len().is_multiple_of(size) {
        return Err(TypeError::SourceLength { element: size, found: elements.len() });
    }
    let each = |value: &dyn Fn(&[u8]) -> Value| elements.chunks_exact(size).map(value).collect();
    Ok(match datatype {
        Datatype::Integer(integer) => each(&|element| number(integer, element)),
        Datatype::Float(_) => floats(datatype, elements)?.into_iter().map(Value::Float).collect(),
        Datatype::Complex(complex) => {
            let parts = floats(&Datatype::Float(complex.base.clone()), elements)?;
            let (pairs, _) = parts.as_chunks::<2>();
            pairs.iter().map(|&[real, imaginary]| Value::Complex(real, imaginary)).collect()
        }
        Datatype::String(string) => {
            each(&|element| Value::Text(trimmed(element, string.padding).to_vec()))
        }
        Datatype::Enum(enumeration) => each(&|element| match number(&enumeration.base, element) {
            Value::Integer(value) => {
                Value::Enum(enumeration.name_of(element).map(str::to_owned), value)
            }
            other => other,
        }),
        Datatype::Bitfield(_) | Datatype::Opaque(_) | Datatype::Time(_) => {
            each(&|element| Value::Bytes(element.to_vec()))
        }
        Datatype::Reference(_) => each(&|element| Value::Reference(element.to_vec())),
        Datatype::Compound(_) | Datatype::Array(_) | Datatype::VarLen(_) => {
            let elements = elements.chunks_exact(size);
            elements.map(|element| composite(datatype, element, heap)).collect::<Result<_, _>>()?
        }
    })
}

fn composite(datatype: &Datatype, element: &[u8], heap: &[u8]) -> Result<Value, TypeError> {
    match datatype {
        Datatype::Compound(compound) => {
            let members = compound.members.iter().map(|member| {
                let start = member.offset as usize;
                let part = element.get(start..start.saturating_add(member.datatype.size()));
                let part = part.ok_or_else(|| {
                    TypeError::invalid("compound", format!("member \"{}\" outside", member.name))
                })?;
                let value = values(&member.datatype, part, heap)?.pop().unwrap_or(Value::Null);
                Ok((member.name.clone(), value))
            });
            Ok(Value::Compound(members.collect::<Result<_, _>>()?))
        }
        Datatype::Array(array) => Ok(Value::Array(values(&array.base, element, heap)?)),
        Datatype::VarLen(varlen) => match (varlen.payload(element, heap)?, varlen.kind) {
            (None, _) => Ok(Value::Null),
            (Some(text), VarLenKind::String { .. }) => {
                Ok(Value::Text(trimmed(text, StringPadding::NullTerminate).to_vec()))
            }
            (Some(payload), VarLenKind::Sequence) => {
                Ok(Value::Sequence(values(&varlen.base, payload, heap)?))
            }
        },
        other => Err(TypeError::invalid(other.class_name(), "no parts")),
    }
}

fn number(integer: &Integer, element: &[u8]) -> Value {
    match integer_value(integer, element) {
        Some(value) => Value::Integer(value),
        None => Value::Bytes(element.to_vec()),
    }
}

fn floats(datatype: &Datatype, elements: &[u8]) -> Result<Vec<f64>, TypeError> {
    let conversion = Conversion::new(datatype, &f64::datatype())?;
    let mut values = vec![0f64; elements.len() / datatype.size().max(1)];
    conversion.convert(elements, bytemuck::cast_slice_mut(&mut values))?;
    Ok(values)
}

/// A string without what is no part of it. Strings of variable length end as null-terminated ones.
///
/// ```
/// use pumice_types::{StringPadding, trimmed};
///
/// assert_eq!(trimmed(b"ab\0c\0", StringPadding::NullTerminate), b"ab");
/// assert_eq!(trimmed(b"ab\0c\0", StringPadding::NullPad), b"ab\0c");
/// assert_eq!(trimmed(b"ab  ", StringPadding::SpacePad), b"ab");
/// ```
pub fn trimmed(bytes: &[u8], padding: StringPadding) -> &[u8] {
    let end = match padding {
        StringPadding::SpacePad => bytes.iter().rposition(|&byte| byte != b' '),
        StringPadding::NullPad => bytes.iter().rposition(|&byte| byte != 0),
        _ => bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len()).checked_sub(1),
    };
    &bytes[..end.map_or(0, |last| last + 1)]
}
