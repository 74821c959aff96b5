//! Datatypes in numpy's notation.

use anyhow::{Context, Result, bail};
use pumice::types::{
    ByteOrder, CharacterSet, Compound, Datatype, Enumeration, FixedString, Float, Integer, Member,
    StringPadding, VarLenKind,
};
use serde_json::{Value, json};

/// Bytes of a variable-length reference in files with 8-byte addresses.
const REFERENCE: u32 = 16;

/// Parses the notation of a datatype.
pub(crate) fn parse(value: &Value) -> Result<Datatype> {
    match value {
        Value::String(text) => parse_text(text),
        Value::Object(fields) if fields.contains_key("vlen") => match &fields["vlen"] {
            Value::String(text) if text == "string" => Ok(Datatype::varlen_string(REFERENCE)),
            base => Ok(Datatype::varlen(parse(base)?, REFERENCE)),
        },
        Value::Object(fields) if fields.contains_key("enum") => parse_enumeration(value),
        Value::Object(fields) if fields.contains_key("array") => {
            let dims = fields["dims"].as_array().context("no dims")?.iter();
            let dims: Option<Vec<u32>> = dims.map(|n| n.as_u64()?.try_into().ok()).collect();
            Ok(Datatype::array(parse(&fields["array"])?, dims.context("no dims")?))
        }
        Value::Object(fields) if fields.contains_key("fields") => parse_compound(value),
        Value::Object(_) => parse_bits(value),
        other => bail!("no datatype: {other}"),
    }
}

fn parse_text(text: &str) -> Result<Datatype> {
    let mut characters = text.chars();
    let order = match characters.next() {
        Some('<' | '|') => ByteOrder::Little,
        Some('>') => ByteOrder::Big,
        _ => bail!("no byte order in {text}"),
    };
    let class = characters.next().context("no class")?;
    let size: u32 = characters.as_str().parse().with_context(|| format!("no size in {text}"))?;
    Ok(match (class, size) {
        ('i', _) => Datatype::Integer(Integer::new(size, order, true)),
        ('u', _) => Datatype::Integer(Integer::new(size, order, false)),
        ('f', 2) => Datatype::Float(Float::half(order)),
        ('f', 4) => Datatype::Float(Float::single(order)),
        ('f', 8) => Datatype::Float(Float::double(order)),
        ('S', _) => {
            let (padding, charset) = (StringPadding::NullPad, CharacterSet::Ascii);
            Datatype::String(FixedString { size, padding, charset })
        }
        _ => bail!("no datatype: {text}"),
    })
}

fn parse_enumeration(value: &Value) -> Result<Datatype> {
    let Datatype::Integer(base) = parse(&value["base"])? else { bail!("names of no integers") };
    let names = value["enum"].as_object().context("no names")?;
    let size = base.size as usize;
    let mut values = Vec::new();
    for number in names.values() {
        let mut bytes = number.as_i64().context("no number")?.to_le_bytes()[..size].to_vec();
        if base.order == ByteOrder::Big {
            bytes.reverse();
        }
        values.extend(bytes);
    }
    let names = names.keys().cloned().collect();
    Ok(Datatype::Enum(Enumeration { base, names, values }))
}

/// A number that does not fill its bytes.
fn parse_bits(value: &Value) -> Result<Datatype> {
    let number = |name: &str| value[name].as_u64().with_context(|| format!("no {name}"));
    let (precision, bit_offset) = (number("precision")? as u16, number("offset")? as u16);
    match parse(&value["dtype"])? {
        Datatype::Integer(full) => Ok(Datatype::Integer(Integer { precision, bit_offset, ..full })),
        Datatype::Float(full) => Ok(Datatype::Float(Float {
            precision,
            bit_offset,
            sign_location: number("sign")? as u8,
            exponent_location: number("exponent")? as u8,
            exponent_size: number("exponent size")? as u8,
            exponent_bias: number("bias")? as u32,
            mantissa_location: number("mantissa")? as u8,
            mantissa_size: number("mantissa size")? as u8,
            ..full
        })),
        other => bail!("no bits of {other}"),
    }
}

fn parse_compound(value: &Value) -> Result<Datatype> {
    let fields = value["fields"].as_array().context("no fields")?;
    let members = fields.iter().map(|field| {
        Ok(Member {
            name: field["name"].as_str().context("no name")?.into(),
            offset: field["offset"].as_u64().context("no offset")? as u32,
            datatype: parse(&field["dtype"])?,
        })
    });
    let size = value["size"].as_u64().context("no size")? as u32;
    Ok(Datatype::Compound(Compound { size, members: members.collect::<Result<_>>()? }))
}

/// The notation of a datatype.
pub(crate) fn describe(datatype: &Datatype) -> Result<Value> {
    let sign = |size: u32, order: &ByteOrder| match (size, order) {
        (1, _) => "|",
        (_, ByteOrder::Big) => ">",
        _ => "<",
    };
    Ok(match datatype {
        Datatype::Integer(Integer { size, order, signed, .. }) => {
            json!(format!("{}{}{size}", sign(*size, order), if *signed { "i" } else { "u" }))
        }
        Datatype::Float(Float { size, order, .. }) => {
            json!(format!("{}f{size}", sign(*size, order)))
        }
        Datatype::String(FixedString { size, .. }) => json!(format!("|S{size}")),
        Datatype::Opaque(opaque) => json!(format!("|V{}", opaque.size)),
        Datatype::Enum(enumeration) => describe(&Datatype::Integer(enumeration.base.clone()))?,
        Datatype::Compound(Compound { size, members }) => {
            let fields = members.iter().map(|member| {
                let dtype = describe(&member.datatype)?;
                Ok(json!({"name": member.name, "offset": member.offset, "dtype": dtype}))
            });
            json!({"size": size, "fields": fields.collect::<Result<Vec<_>>>()?})
        }
        Datatype::VarLen(varlen) => match varlen.kind {
            VarLenKind::String { .. } => json!({"vlen": "string"}),
            VarLenKind::Sequence => json!({"vlen": describe(&varlen.base)?}),
        },
        Datatype::Array(array) => json!({"array": describe(&array.base)?, "dims": array.dims}),
        other => bail!("{other} has no notation"),
    })
}
