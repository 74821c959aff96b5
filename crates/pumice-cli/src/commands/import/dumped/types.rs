//! Datatypes and dataspaces as h5dump spells them.

use super::lexer::{Lexer, Token};
use anyhow::{Context, Result, bail, ensure};
use pumice::Datatype;
use pumice::types::{
    Bitfield, ByteOrder, CharacterSet, Complex, Enumeration, FixedString, Float, Integer, Opaque,
    StringPadding, VarLen,
};
use std::collections::HashMap;

/// Bytes of a reference to variable-length data in the files that are made.
const REFERENCE: u32 = 16;
/// Types within types, at most.
const DEPTH: usize = 32;

/// Committed datatypes by their paths.
pub(super) type Committed = HashMap<String, Datatype>;

/// Reads a datatype.
pub(super) fn datatype(lexer: &mut Lexer<'_>, known: &Committed, depth: usize) -> Result<Datatype> {
    ensure!(depth < DEPTH, "datatypes within {DEPTH} others");
    let name = match lexer.take()? {
        Token::Text(path) => {
            let path = String::from_utf8_lossy(&path).into_owned();
            let found = known.get(&path).cloned();
            return found.with_context(|| format!("the datatype {path} is not in the text"));
        }
        Token::Word(name) => name,
        other => bail!("expected a datatype, found {other:?}"),
    };
    if let Some(atomic) = atomic(&name) {
        return Ok(atomic);
    }
    ensure!(
        lexer.peek()? == Some(&Token::Mark(b'{')),
        "the datatype {name} cannot be made from its name"
    );
    lexer.expect(b'{')?;
    let datatype = match name.as_str() {
        "H5T_STRING" => return string(lexer),
        "H5T_COMPOUND" => return compound(lexer, known, depth),
        "H5T_ENUM" => return enumeration(lexer),
        "H5T_OPAQUE" => return opaque(lexer),
        "H5T_ARRAY" => {
            let dims = array_dims(lexer)?;
            Datatype::array(datatype(lexer, known, depth + 1)?, dims)
        }
        "H5T_VLEN" => Datatype::varlen(datatype(lexer, known, depth + 1)?, REFERENCE),
        "H5T_COMPLEX" => match datatype(lexer, known, depth + 1)? {
            Datatype::Float(base) => Datatype::Complex(Complex { base }),
            _ => bail!("complex numbers of something else than floats"),
        },
        other => bail!("values of {other} mean nothing in another file"),
    };
    lexer.expect(b'}')?;
    Ok(datatype)
}

/// Numbers and bit fields by name, such as `H5T_STD_I32LE`.
fn atomic(name: &str) -> Option<Datatype> {
    if let Some(float) = narrow(name) {
        return Some(Datatype::Float(float));
    }
    let order = match name {
        _ if name.ends_with("LE") => ByteOrder::Little,
        _ if name.ends_with("BE") => ByteOrder::Big,
        _ => return None,
    };
    let stem = &name[..name.len() - 2];
    let float = |bits: &str| {
        Some(match bits {
            "16" => Float::half(order),
            "32" => Float::single(order),
            "64" => Float::double(order),
            _ => return None,
        })
    };
    if let Some(bits) = stem.strip_prefix("H5T_IEEE_F") {
        return float(bits).map(Datatype::Float);
    }
    if let Some(bits) = stem.strip_prefix("H5T_COMPLEX_IEEE_F") {
        return float(bits).map(|base| Datatype::Complex(Complex { base }));
    }
    if stem == "H5T_FLOAT_BFLOAT16" {
        return Some(Datatype::Float(Float::bfloat16(order)));
    }
    let (kind, bits) = stem.strip_prefix("H5T_STD_")?.split_at_checked(1)?;
    let bytes = bits.parse::<u32>().ok().filter(|bits| matches!(bits, 8 | 16 | 32 | 64))? / 8;
    match kind {
        "I" => Some(Datatype::Integer(Integer::new(bytes, order, true))),
        "U" => Some(Datatype::Integer(Integer::new(bytes, order, false))),
        "B" => Some(Datatype::Bitfield(Bitfield::new(bytes, order))),
        _ => None,
    }
}

/// Floats of one byte, which have no order.
fn narrow(name: &str) -> Option<Float> {
    let (bits, exponent, mantissa) = match name {
        "H5T_FLOAT_F8E4M3" => (8, 4, 3),
        "H5T_FLOAT_F8E5M2" => (8, 5, 2),
        "H5T_FLOAT_F6E2M3" => (6, 2, 3),
        "H5T_FLOAT_F6E3M2" => (6, 3, 2),
        "H5T_FLOAT_F4E2M1" => (4, 2, 1),
        _ => return None,
    };
    Some(Float { precision: bits, ..Float::ieee(1, ByteOrder::Little, exponent, mantissa) })
}

/// `STRSIZE 5; STRPAD H5T_STR_NULLTERM; CSET H5T_CSET_ASCII; CTYPE H5T_C_S1; }`.
fn string(lexer: &mut Lexer<'_>) -> Result<Datatype> {
    let (mut size, mut padding, mut charset) =
        (None, StringPadding::NullTerminate, CharacterSet::Ascii);
    while !lexer.passes(b'}')? {
        let (key, value) = (lexer.name()?, lexer.name()?);
        lexer.expect(b';')?;
        match (key.as_str(), value.as_str()) {
            ("STRSIZE", "H5T_VARIABLE") => {}
            ("STRSIZE", bytes) => size = Some(bytes.parse().context("the size of a string")?),
            ("STRPAD", "H5T_STR_NULLPAD") => padding = StringPadding::NullPad,
            ("STRPAD", "H5T_STR_SPACEPAD") => padding = StringPadding::SpacePad,
            ("CSET", "H5T_CSET_UTF8") => charset = CharacterSet::Utf8,
            _ => {}
        }
    }
    Ok(match size {
        Some(size) => Datatype::String(FixedString { size, padding, charset }),
        None => Datatype::VarLen(VarLen::string(REFERENCE, padding, charset)),
    })
}

/// Members follow each other without gaps: the text does not say where they are.
fn compound(lexer: &mut Lexer<'_>, known: &Committed, depth: usize) -> Result<Datatype> {
    let mut members = Vec::new();
    while !lexer.passes(b'}')? {
        let member = datatype(lexer, known, depth + 1)?;
        members.push((lexer.quoted()?, member));
        lexer.expect(b';')?;
    }
    Ok(Datatype::compound(members.iter().map(|(name, member)| (name.as_str(), member.clone()))))
}

fn enumeration(lexer: &mut Lexer<'_>) -> Result<Datatype> {
    let base = match atomic(&lexer.name()?) {
        Some(Datatype::Integer(base)) => base,
        _ => bail!("an enumeration of something else than integers"),
    };
    lexer.expect(b';')?;
    let (mut names, mut values) = (Vec::new(), Vec::new());
    while !lexer.passes(b'}')? {
        names.push(lexer.quoted()?);
        let value: i128 = lexer.name()?.parse().context("the value of a name")?;
        lexer.expect(b';')?;
        let bytes = &value.to_le_bytes()[..base.size as usize];
        match base.order {
            ByteOrder::Big => values.extend(bytes.iter().rev()),
            _ => values.extend(bytes),
        }
    }
    Ok(Datatype::Enum(Enumeration { base, names, values }))
}

/// An opaque type; the text does not have its size, see `values.rs`.
fn opaque(lexer: &mut Lexer<'_>) -> Result<Datatype> {
    let mut tag = String::new();
    while !lexer.passes(b'}')? {
        if let Token::Text(text) = lexer.take()? {
            tag = String::from_utf8_lossy(&text).into_owned();
        }
    }
    Ok(Datatype::Opaque(Opaque { size: 0, tag }))
}

/// `[4][2]`.
fn array_dims(lexer: &mut Lexer<'_>) -> Result<Vec<u32>> {
    let mut dims = Vec::new();
    while lexer.passes(b'[')? {
        dims.push(lexer.name()?.parse().context("the size of an array")?);
        lexer.expect(b']')?;
        ensure!(dims.len() <= 32, "an array of more than 32 dimensions");
    }
    Ok(dims)
}

/// A dataspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Space {
    pub(super) shape: Vec<u64>,
    pub(super) max: Vec<Option<u64>>,
    pub(super) null: bool,
}

impl Space {
    /// The number of elements.
    pub(super) fn cells(&self) -> u64 {
        match self.null {
            true => 0,
            false => self.shape.iter().fold(1, |cells, &side| cells.saturating_mul(side)),
        }
    }
}

/// `SCALAR`, `NULL` or `SIMPLE { ( 3, 4 ) / ( 3, H5S_UNLIMITED ) }`.
pub(super) fn dataspace(lexer: &mut Lexer<'_>) -> Result<Space> {
    let mut space = Space { shape: Vec::new(), max: Vec::new(), null: false };
    match lexer.name()?.as_str() {
        "SCALAR" => {}
        "NULL" => space.null = true,
        "SIMPLE" => {
            lexer.expect(b'{')?;
            let sizes = sizes(lexer)?.into_iter().collect::<Option<_>>();
            space.shape = sizes.context("a size without limit")?;
            ensure!(lexer.name()? == "/", "expected the largest sizes");
            space.max = self::sizes(lexer)?;
            lexer.expect(b'}')?;
        }
        other => bail!("expected a dataspace, found {other}"),
    }
    Ok(space)
}

/// `( 3, H5S_UNLIMITED )`.
pub(super) fn sizes(lexer: &mut Lexer<'_>) -> Result<Vec<Option<u64>>> {
    lexer.expect(b'(')?;
    let mut sizes = Vec::new();
    while !lexer.passes(b')')? {
        sizes.push(match lexer.name()?.as_str() {
            "H5S_UNLIMITED" => None,
            size => Some(size.parse().with_context(|| format!("not a size: {size}"))?),
        });
        ensure!(sizes.len() <= 32, "more than 32 dimensions");
        lexer.passes(b',')?;
    }
    Ok(sizes)
}
