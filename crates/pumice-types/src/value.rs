//! One element as an owned value of any datatype: convenient, and as slow as many small
//! allocations. For numbers in bulk use [`Conversion`], for strings and sequences in bulk
//! [`Heaped`].

mod show;

use crate::conversion::integer_value;
use crate::heaped::claimed_bytes;
use crate::model::{Datatype, Integer, StringPadding, VarLenKind};
use crate::{Conversion, Element, H5Type, Heaped, TypeError};

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
    /// A null reference: an absent string or sequence.
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
    /// The stored bytes of bit fields, opaque elements, times and numbers of more than 8 bytes.
    Bytes(Vec<u8>),
    /// The stored bytes of a reference to an object or region.
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

    /// The number, if it is one.
    ///
    /// ```
    /// use pumice_types::Value;
    ///
    /// assert_eq!(Value::Integer(7).as_f64(), Some(7.0));
    /// assert_eq!(Value::from("7").as_f64(), None);
    /// ```
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Float(number) => Some(*number),
            Self::Integer(number) => Some(*number as f64),
            _ => None,
        }
    }

    /// Both parts of a complex number, or of a list of two numbers.
    fn pair(&self) -> Option<[f64; 2]> {
        match self {
            Self::Complex(real, imaginary) => Some([*real, *imaginary]),
            other => match other.items()? {
                [real, imaginary] => Some([real.as_f64()?, imaginary.as_f64()?]),
                _ => None,
            },
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
    /// Fails if the objects of elements, each counted for itself, need more memory than there is:
    /// many elements may refer to one object.
    pub fn check_claims(&self, datatype: &Datatype) -> Result<(), TypeError> {
        if !datatype.has_varlen() {
            return Ok(());
        }
        let claimed = claimed_bytes(datatype, &mut self.elements.clone())?.unwrap_or(0);
        let claimed = usize::try_from(claimed).unwrap_or(usize::MAX);
        if claimed > self.heap.len() && Vec::<u8>::new().try_reserve_exact(claimed).is_err() {
            let reason = format!("no memory for {claimed} byte(s) of values");
            return Err(TypeError::invalid(datatype.class_name(), reason));
        }
        Ok(())
    }

    /// The elements as values.
    ///
    /// Each value has a copy of its object. If many elements refer to one object, there may not be
    /// enough memory, which is an error.
    pub fn values(&self, datatype: &Datatype) -> Result<Vec<Value>, TypeError> {
        self.check_claims(datatype)?;
        values(datatype, &self.elements, &self.heap)
    }
}

impl Heaped {
    /// The opposite of [`values`](Self::values): elements of `datatype` for values of its class.
    /// Numbers are converted, strings padded.
    ///
    /// ```
    /// use pumice_types::{Datatype, Heaped, Value};
    ///
    /// let list = Datatype::varlen(Datatype::varlen_string(16), 16);
    /// let value = Value::Sequence(vec![Value::from("ab"), Value::Null]);
    /// let heaped = Heaped::from_values(&list, &[value.clone()])?;
    /// assert_eq!(heaped.values(&list)?, [value]);
    /// # Ok::<(), pumice_types::TypeError>(())
    /// ```
    pub fn from_values(datatype: &Datatype, values: &[Value]) -> Result<Self, TypeError> {
        let mut heaped = Self::default();
        let mut elements = vec![0; values.len().saturating_mul(datatype.size())];
        for (value, place) in values.iter().zip(elements.chunks_exact_mut(datatype.size().max(1))) {
            put(datatype, value, place, &mut heaped)?;
        }
        heaped.elements = elements;
        Ok(heaped)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

/// Writes a value over `place`, and its parts of variable length onto the heap.
fn put(
    datatype: &Datatype,
    value: &Value,
    place: &mut [u8],
    heaped: &mut Heaped,
) -> Result<(), TypeError> {
    let wrong = || TypeError::invalid(datatype.class_name(), format!("no place for {value:?}"));
    match (datatype, value) {
        (Datatype::Integer(_), Value::Integer(number)) => {
            // Beyond these only the nearest end of the range is right anyway.
            let number = *number;
            match i64::try_from(number) {
                Ok(number) => convert(datatype, number, place),
                Err(_) => {
                    convert(datatype, u64::try_from(number.max(0)).unwrap_or(u64::MAX), place)
                }
            }
        }
        (Datatype::Float(_), Value::Float(_) | Value::Integer(_)) => {
            convert(datatype, value.as_f64().ok_or_else(wrong)?, place)
        }
        (Datatype::Complex(_), Value::Complex(..) | Value::Array(_) | Value::Sequence(_))
        | (Datatype::Compound(_), Value::Complex(..) | Value::Array(_) | Value::Sequence(_)) => {
            // As compounds of two parts have complex numbers of all kinds.
            let [real, imaginary] = value.pair().ok_or_else(wrong)?;
            let parts = Datatype::compound([("r", f64::datatype()), ("i", f64::datatype())]);
            let bytes = [real.to_ne_bytes(), imaginary.to_ne_bytes()].concat();
            let conversion = Conversion::new(&parts, datatype).ok();
            let conversion = conversion.filter(Conversion::overwrites_target).ok_or_else(wrong)?;
            conversion.convert(&bytes, place)
        }
        (Datatype::String(string), Value::Text(text)) => {
            let room = match string.padding {
                StringPadding::NullTerminate => place.len().saturating_sub(1),
                _ => place.len(),
            };
            let text = text.get(..room).unwrap_or(text);
            place.fill(if string.padding == StringPadding::SpacePad { b' ' } else { 0 });
            place[..text.len()].copy_from_slice(text);
            Ok(())
        }
        (Datatype::Enum(enumeration), Value::Enum(_, number)) => {
            let base = Datatype::Integer(enumeration.base.clone());
            put(&base, &Value::Integer(*number), place, heaped)
        }
        (Datatype::Enum(enumeration), Value::Text(name)) => {
            let name = std::str::from_utf8(name).ok();
            let known = name.and_then(|name| enumeration.value_of(name)).ok_or_else(wrong)?;
            place.copy_from_slice(known);
            Ok(())
        }
        (_, Value::Bytes(bytes) | Value::Reference(bytes)) if bytes.len() == place.len() => {
            place.copy_from_slice(bytes);
            Ok(())
        }
        (Datatype::Compound(compound), Value::Compound(parts)) => {
            for (name, part) in parts {
                let member = compound.member(name).ok_or_else(wrong)?;
                let start = member.offset as usize;
                let place = place.get_mut(start..start.saturating_add(member.datatype.size()));
                put(&member.datatype, part, place.ok_or_else(wrong)?, heaped)?;
            }
            Ok(())
        }
        (Datatype::Array(array), Value::Array(parts) | Value::Sequence(parts))
            if parts.len() == array.count() =>
        {
            let places = place.chunks_exact_mut(array.base.size().max(1));
            parts.iter().zip(places).try_for_each(|(part, at)| put(&array.base, part, at, heaped))
        }
        (Datatype::VarLen(varlen), value) => {
            let payload = match (value, varlen.kind) {
                (Value::Null, _) => {
                    place.fill(0);
                    return Ok(());
                }
                (Value::Text(text), VarLenKind::String { .. }) => text.clone(),
                (Value::Sequence(parts), VarLenKind::Sequence) => {
                    let mut payload = vec![0; parts.len().saturating_mul(varlen.base.size())];
                    let places = payload.chunks_exact_mut(varlen.base.size().max(1));
                    for (part, at) in parts.iter().zip(places) {
                        put(&varlen.base, part, at, heaped)?;
                    }
                    payload
                }
                _ => return Err(wrong()),
            };
            let count = (payload.len() / varlen.base.size().max(1)) as u64;
            place.copy_from_slice(&heaped.push(&payload, count, varlen.size)?);
            Ok(())
        }
        _ => Err(wrong()),
    }
}

fn convert<T: Element>(datatype: &Datatype, value: T, place: &mut [u8]) -> Result<(), TypeError> {
    Conversion::new(&T::datatype(), datatype)?.convert(bytemuck::bytes_of(&value), place)
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

/// A string without its padding. Strings of variable length end like null-terminated ones.
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
