//! Values as text, and as serde has them.

use super::Value;
use std::fmt::{self, Display, Formatter, Write as _};

/// Shows values as Rust and JSON do: text inside of something in quotes, members by name, names of
/// enumerations without quotes.
///
/// ```
/// use pumice_types::Value;
///
/// let tags = Value::Sequence(vec!["sea".into(), Value::Null]);
/// let photo = Value::Compound(vec![("id".into(), Value::Integer(7)), ("tags".into(), tags)]);
/// assert_eq!(photo.to_string(), r#"{id: 7, tags: ["sea", null]}"#);
/// assert_eq!(Value::from("sea").to_string(), "sea");
/// assert_eq!(Value::Complex(1.0, -0.5).to_string(), "1-0.5i");
/// ```
impl Display for Value {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => formatter.write_str(&String::from_utf8_lossy(text)),
            other => other.inside(formatter),
        }
    }
}

impl Value {
    /// Shows a value that is part of another.
    fn inside(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => formatter.write_str("null"),
            Self::Integer(number) => Display::fmt(number, formatter),
            Self::Float(number) => Display::fmt(number, formatter),
            Self::Complex(real, imaginary) => write!(formatter, "{real}{imaginary:+}i"),
            Self::Text(text) => write!(formatter, "{:?}", String::from_utf8_lossy(text)),
            Self::Enum(Some(name), _) => formatter.write_str(name),
            Self::Enum(None, number) => Display::fmt(number, formatter),
            Self::Bytes(bytes) | Self::Reference(bytes) => {
                formatter.write_str("0x")?;
                bytes.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
            }
            Self::Compound(members) => {
                let parts = members.iter().map(|(name, value)| (Some(name.as_str()), value));
                list(formatter, ['{', '}'], parts)
            }
            Self::Array(items) | Self::Sequence(items) => {
                list(formatter, ['[', ']'], items.iter().map(|item| (None, item)))
            }
        }
    }
}

fn list<'a>(
    formatter: &mut Formatter<'_>,
    [open, close]: [char; 2],
    parts: impl Iterator<Item = (Option<&'a str>, &'a Value)>,
) -> fmt::Result {
    formatter.write_char(open)?;
    for (at, (name, value)) in parts.enumerate() {
        if at > 0 {
            formatter.write_str(", ")?;
        }
        if let Some(name) = name {
            write!(formatter, "{name}: ")?;
        }
        value.inside(formatter)?;
    }
    formatter.write_char(close)
}

/// Serializes for formats without types of HDF5: compounds are maps, enumerations their names,
/// complex numbers pairs; text that is not UTF-8, and values stored as bytes, are bytes. Numbers
/// beyond 64 bits have 128.
#[cfg(feature = "serde")]
impl serde::Serialize for Value {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_none(),
            Self::Integer(number) => match (i64::try_from(*number), u64::try_from(*number)) {
                (Ok(number), _) => serializer.serialize_i64(number),
                (_, Ok(number)) => serializer.serialize_u64(number),
                _ => serializer.serialize_i128(*number),
            },
            Self::Float(number) => serializer.serialize_f64(*number),
            Self::Complex(real, imaginary) => (real, imaginary).serialize(serializer),
            Self::Text(text) => match std::str::from_utf8(text) {
                Ok(text) => serializer.serialize_str(text),
                Err(_) => serializer.serialize_bytes(text),
            },
            Self::Enum(Some(name), _) => serializer.serialize_str(name),
            Self::Enum(None, number) => Self::Integer(*number).serialize(serializer),
            Self::Bytes(bytes) | Self::Reference(bytes) => serializer.serialize_bytes(bytes),
            Self::Compound(members) => {
                serializer.collect_map(members.iter().map(|(name, value)| (name, value)))
            }
            Self::Array(items) | Self::Sequence(items) => serializer.collect_seq(items),
        }
    }
}

#[cfg(feature = "serde")]
mod read {
    use super::Value;
    use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
    use std::fmt;

    /// Maps become compounds, lists sequences, `true` and `false` names of an enumeration; the
    /// datatype of the target decides about the rest
    /// ([`Heaped::from_values`](crate::Heaped::from_values)).
    impl<'de> Deserialize<'de> for Value {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_any(Any)
        }
    }

    struct Any;

    impl<'de> Visitor<'de> for Any {
        type Value = Value;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a number, text, a list, a map or nothing")
        }

        fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
            let name = if value { "TRUE" } else { "FALSE" };
            Ok(Value::Enum(Some(name.into()), value.into()))
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
            Ok(Value::Integer(number.into()))
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
            Ok(Value::Integer(number.into()))
        }

        fn visit_i128<E: Error>(self, number: i128) -> Result<Value, E> {
            Ok(Value::Integer(number))
        }

        fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
            Ok(Value::Float(number))
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
            Ok(Value::from(text))
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Value, E> {
            Ok(Value::Bytes(bytes.to_vec()))
        }

        fn visit_none<E: Error>(self) -> Result<Value, E> {
            Ok(Value::Null)
        }

        fn visit_unit<E: Error>(self) -> Result<Value, E> {
            Ok(Value::Null)
        }

        fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<Value, D::Error> {
            Value::deserialize(inner)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
            let mut all = Vec::new();
            while let Some(item) = items.next_element()? {
                all.push(item);
            }
            Ok(Value::Sequence(all))
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
            let mut all = Vec::new();
            while let Some(member) = members.next_entry()? {
                all.push(member);
            }
            Ok(Value::Compound(all))
        }
    }

    #[cfg(test)]
    mod tests {
        use crate::{Datatype, H5Type, Heaped, Value};

        #[test]
        fn values_go_through_json() {
            let text = r#"{"id":7,"tags":["sea",null],"valid":true,"wave":[1.5,-2.0],"half":0.5}"#;
            let value: Value = serde_json::from_str(text).unwrap();
            let datatype = Datatype::compound([
                ("id", Datatype::i16_be()),
                ("tags", Vec::<String>::datatype()),
                ("valid", bool::datatype()),
                ("wave", Datatype::compound([("r", f32::datatype()), ("i", f32::datatype())])),
                ("half", f64::datatype()),
            ]);
            let heaped = Heaped::from_values(&datatype, &[value]).unwrap();
            let back = heaped.values(&datatype).unwrap().remove(0);
            let json = serde_json::to_string(&back).unwrap();
            let wanted = r#"{"id":7,"tags":["sea",null],"valid":"TRUE","wave":{"r":1.5,"i":-2.0},"half":0.5}"#;
            assert_eq!(json, wanted);
            let again: Value = serde_json::from_str(&json).unwrap();
            assert_eq!(Heaped::from_values(&datatype, &[again]).unwrap(), heaped);
        }
    }
}
