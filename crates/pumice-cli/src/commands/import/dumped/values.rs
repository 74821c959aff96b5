//! Elements as h5dump spells them.

use super::lexer::{Lexer, Token};
use anyhow::{Context, Result, bail, ensure};
use pumice::Datatype;
use pumice::types::{ByteOrder, Enumeration, Value, VarLenKind};

/// Reads one element.
pub(super) fn value(lexer: &mut Lexer<'_>, datatype: &Datatype) -> Result<Value> {
    Ok(match datatype {
        Datatype::Integer(_) => {
            let word = lexer.name()?;
            let number = word.parse().with_context(|| format!("not a whole number: {word}"))?;
            Value::Integer(number)
        }
        Datatype::Float(_) => Value::Float(float(&lexer.name()?)?),
        Datatype::Complex(_) => complex(&lexer.name()?)?,
        Datatype::String(string) => {
            let mut text = text(lexer)?;
            text.truncate(string.size as usize);
            // A text that leaves no room for the null behind it is kept as it is.
            match text.len() == string.size as usize {
                true => Value::Bytes(text),
                false => Value::Text(text),
            }
        }
        Datatype::Bitfield(field) => {
            let mut bytes = bytes(&lexer.name()?)?;
            ensure!(bytes.len() == field.size as usize, "a bit field of another size");
            // As memory has it, which begins with the least.
            if field.order == ByteOrder::Big {
                bytes.reverse();
            }
            Value::Bytes(bytes)
        }
        Datatype::Opaque(opaque) => {
            let bytes = bytes(&lexer.name()?)?;
            ensure!(bytes.len() == opaque.size as usize, "opaque elements of several sizes");
            Value::Bytes(bytes)
        }
        Datatype::Enum(enumeration) => named(&word_or_text(lexer)?, enumeration)?,
        Datatype::Compound(compound) => {
            lexer.expect(b'{')?;
            let mut members = Vec::new();
            for member in &compound.members {
                members.push((member.name.clone(), value(lexer, &member.datatype)?));
                lexer.passes(b',')?;
            }
            lexer.expect(b'}')?;
            Value::Compound(members)
        }
        Datatype::Array(array) => {
            lexer.expect(b'[')?;
            let count = array.dims.iter().map(|&side| u64::from(side)).product::<u64>();
            let mut items = Vec::new();
            for _ in 0..count {
                items.push(value(lexer, &array.base)?);
                lexer.passes(b',')?;
            }
            lexer.expect(b']')?;
            Value::Array(items)
        }
        Datatype::VarLen(varlen) => match varlen.kind {
            VarLenKind::String { .. } => match lexer.peek()? {
                Some(Token::Word(word)) if word == "NULL" => {
                    lexer.take()?;
                    Value::Null
                }
                _ => Value::Text(text(lexer)?),
            },
            VarLenKind::Sequence => {
                lexer.expect(b'(')?;
                let mut items = Vec::new();
                while !lexer.passes(b')')? {
                    items.push(value(lexer, &varlen.base)?);
                    lexer.passes(b',')?;
                }
                Value::Sequence(items)
            }
        },
        other => bail!("elements that are {} cannot be read from text", other.class_name()),
    })
}

/// The datatype with the size that the first opaque element has, which only that tells.
pub(super) fn sized(lexer: &mut Lexer<'_>, datatype: Datatype) -> Result<Datatype> {
    let Datatype::Opaque(mut opaque) = datatype else { return Ok(datatype) };
    if let Some(Token::Word(word)) = lexer.peek()? {
        opaque.size = u32::try_from(bytes(word)?.len()).context("an opaque element too large")?;
    }
    Ok(Datatype::Opaque(opaque))
}

fn word_or_text(lexer: &mut Lexer<'_>) -> Result<String> {
    match lexer.take()? {
        Token::Word(word) => Ok(word),
        Token::Text(text) => Ok(String::from_utf8_lossy(&text).into_owned()),
        other => bail!("expected a name, found {other:?}"),
    }
}

/// Texts that follow each other without a comma are one: letters that repeat are set apart. Among defined
/// cells, another element begins on another line.
fn text(lexer: &mut Lexer<'_>) -> Result<Vec<u8>> {
    let Token::Text(mut text) = lexer.take()? else { bail!("expected a text in quotes") };
    let line = lexer.line();
    while let Some(Token::Text(_)) = lexer.peek()? {
        if lexer.in_places && lexer.line() != line {
            break;
        }
        if let Token::Text(more) = lexer.take()? {
            text.extend(more);
        }
    }
    Ok(text)
}

fn named(name: &str, enumeration: &Enumeration) -> Result<Value> {
    let size = enumeration.base.size as usize;
    let place = enumeration.names.iter().position(|known| known == name);
    if let Some(bytes) = place.and_then(|at| enumeration.values.get(at * size..(at + 1) * size)) {
        let mut wide = [0u8; 16];
        match enumeration.base.order {
            ByteOrder::Big => bytes.iter().rev().zip(&mut wide).for_each(|(from, to)| *to = *from),
            _ => wide[..size].copy_from_slice(bytes),
        }
        let shift = 128 - 8 * size as u32;
        let number = match enumeration.base.signed {
            true => (i128::from_le_bytes(wide) << shift) >> shift,
            false => i128::from_le_bytes(wide),
        };
        return Ok(Value::Enum(Some(name.to_owned()), number));
    }
    let number = match name.strip_prefix("0x") {
        Some(digits) => i128::from_str_radix(digits, 16).ok(),
        // Bytes, as memory has them.
        None if name.contains(':') => {
            let bytes = bytes(name)?;
            let wide =
                bytes.iter().rev().fold(0i128, |number, byte| number << 8 | i128::from(*byte));
            let shift = 128 - 8 * bytes.len().min(15) as u32;
            Some(if enumeration.base.signed { wide << shift >> shift } else { wide })
        }
        None => name.parse().ok(),
    };
    let number = number.with_context(|| format!("the enumeration has no name {name}"))?;
    Ok(Value::Enum(None, number))
}

/// A float as C prints it.
fn float(word: &str) -> Result<f64> {
    let plain = word.trim_start_matches(['+', '-']);
    let sign = if word.starts_with('-') { -1.0 } else { 1.0 };
    match plain.to_ascii_lowercase().as_str() {
        "inf" | "infinity" => Ok(sign * f64::INFINITY),
        name if name.starts_with("nan") => Ok(f64::NAN.copysign(sign)),
        _ => word.parse().with_context(|| format!("not a number: {word}")),
    }
}

/// `1.5-2i`.
fn complex(word: &str) -> Result<Value> {
    let inner = word.strip_suffix('i').with_context(|| format!("not a complex number: {word}"))?;
    let signs = inner
        .char_indices()
        .skip(1)
        .filter(|(at, letter)| matches!(letter, '+' | '-') && !inner[..*at].ends_with(['e', 'E']));
    let at = signs.last().map(|(at, _)| at);
    let at = at.with_context(|| format!("not a complex number: {word}"))?;
    Ok(Value::Complex(float(&inner[..at])?, float(&inner[at..])?))
}

/// `0x1f` or `1f:20:21`.
fn bytes(word: &str) -> Result<Vec<u8>> {
    let digits = word.strip_prefix("0x").unwrap_or(word);
    let byte = |text: &str| u8::from_str_radix(text, 16).ok();
    let bytes: Option<Vec<u8>> = match digits.contains(':') {
        true => digits.split(':').map(byte).collect(),
        false if digits.len().is_multiple_of(2) && digits.is_ascii() => {
            (0..digits.len()).step_by(2).map(|at| byte(&digits[at..at + 2])).collect()
        }
        false => None,
    };
    bytes.with_context(|| format!("not bytes: {word}"))
}
