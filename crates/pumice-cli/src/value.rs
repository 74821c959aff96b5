//! One element as text, in h5dump's manner.
//!
//! A [`Renderer`] is made once per datatype. Compounds and arrays take several lines in a dump and
//! one line in a table; everything else is the same in both. Unlike h5dump, text that is valid
//! UTF-8 is printed as it is.

use crate::numbers;
use anyhow::{Result, bail};
use pumice::types::{
    ByteOrder, Conversion, Datatype, Element, Enumeration, Integer, StringPadding, VarLen,
    VarLenKind,
};
use std::fmt::Write;

/// Columns of one level of indentation.
pub(crate) const INDENT: usize = 3;

/// Turns elements of one datatype into text.
pub(crate) struct Renderer {
    size: usize,
    kind: Kind,
}

enum Kind {
    Signed(Conversion),
    Unsigned(Conversion),
    Float(Conversion),
    Text(StringPadding),
    Enum(Enumeration),
    Hex,
    Compound(Vec<(usize, Renderer)>),
    Array { row: usize, holds_arrays: bool, base: Box<Renderer> },
    Complex(Conversion),
    VariableText(VarLen),
    Sequence(VarLen, Box<Renderer>),
}

impl Renderer {
    /// How elements of `datatype` are printed.
    pub(crate) fn new(datatype: &Datatype) -> Result<Self> {
        let kind = match datatype {
            Datatype::Integer(Integer { signed: true, .. }) => Kind::Signed(to::<i64>(datatype)?),
            Datatype::Integer(_) => Kind::Unsigned(to::<u64>(datatype)?),
            Datatype::Float(_) => Kind::Float(to::<f64>(datatype)?),
            Datatype::String(string) => Kind::Text(string.padding),
            Datatype::Enum(enumeration) => Kind::Enum(enumeration.clone()),
            Datatype::Bitfield(_) | Datatype::Opaque(_) | Datatype::Time(_) => Kind::Hex,
            Datatype::Compound(compound) => {
                let members = compound
                    .members
                    .iter()
                    .map(|member| Ok((member.offset as usize, Renderer::new(&member.datatype)?)));
                Kind::Compound(members.collect::<Result<_>>()?)
            }
            Datatype::Array(array) => Kind::Array {
                row: array.dims.last().map_or(1, |&length| length as usize).max(1),
                holds_arrays: holds_arrays(&array.base),
                base: Box::new(Renderer::new(&array.base)?),
            },
            Datatype::Complex(complex) => {
                Kind::Complex(to::<f64>(&Datatype::Float(complex.base.clone()))?)
            }
            Datatype::VarLen(varlen) => match varlen.kind {
                VarLenKind::String { .. } => Kind::VariableText(varlen.clone()),
                VarLenKind::Sequence => {
                    Kind::Sequence(varlen.clone(), Box::new(Renderer::new(&varlen.base)?))
                }
            },
            other => bail!("values of class {} cannot be printed yet", other.class_name()),
        };
        Ok(Self { size: datatype.size(), kind })
    }

    /// Bytes of an element.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Appends an element on one line.
    pub(crate) fn push_inline(&self, out: &mut String, element: &[u8], heap: &[u8]) {
        self.push(out, element, heap, None);
    }

    /// Appends an element that may take several lines, at this level of indentation.
    pub(crate) fn push_lines(&self, out: &mut String, element: &[u8], heap: &[u8], level: usize) {
        self.push(out, element, heap, Some(level));
    }

    // Writing to a string does not fail.
    fn push(&self, out: &mut String, element: &[u8], heap: &[u8], level: Option<usize>) {
        match &self.kind {
            Kind::Signed(conversion) => {
                let _ = write!(out, "{}", i64::from_ne_bytes(convert(conversion, element)));
            }
            Kind::Unsigned(conversion) => {
                let _ = write!(out, "{}", u64::from_ne_bytes(convert(conversion, element)));
            }
            Kind::Float(conversion) => push_float(out, conversion, element),
            Kind::Text(padding) => push_text(out, element, *padding),
            Kind::Enum(enumeration) => push_enum(out, enumeration, element),
            Kind::Hex => push_hex(out, element.iter()),
            Kind::Compound(members) => push_compound(out, members, element, heap, level),
            Kind::Array { row, holds_arrays, base } => {
                push_array(out, (*row, *holds_arrays), base, (element, heap), level);
            }
            Kind::Complex(conversion) => {
                let (real, imaginary) = element.split_at(element.len() / 2);
                push_float(out, conversion, real);
                let start = out.len();
                push_float(out, conversion, imaginary);
                if !out[start..].starts_with('-') {
                    out.insert(start, '+');
                }
                out.push('i');
            }
            Kind::VariableText(varlen) => match varlen.payload(element, heap) {
                Ok(Some(text)) => push_text(out, text, StringPadding::NullTerminate),
                // What leads out of the heap was refused when it was read.
                _ => out.push_str("NULL"),
            },
            Kind::Sequence(varlen, base) => {
                let payload = varlen.payload(element, heap).ok().flatten().unwrap_or_default();
                out.push('(');
                for (index, part) in payload.chunks_exact(base.size.max(1)).enumerate() {
                    out.push_str(if index > 0 { ", " } else { "" });
                    base.push(out, part, heap, level.map(|level| level + 1));
                }
                out.push(')');
            }
        }
    }
}

fn to<T: Element>(datatype: &Datatype) -> Result<Conversion> {
    Ok(Conversion::new(datatype, &T::datatype()).map_err(pumice::Error::from)?)
}

fn convert(conversion: &Conversion, element: &[u8]) -> [u8; 8] {
    let mut converted = [0; 8];
    // The sizes are those that the conversion was made for; on others the number stays 0.
    let _ = conversion.convert(element, &mut converted);
    converted
}

fn push_float(out: &mut String, conversion: &Conversion, element: &[u8]) {
    numbers::push_general(out, f64::from_ne_bytes(convert(conversion, element)));
}

fn push_hex<'a>(out: &mut String, bytes: impl ExactSizeIterator<Item = &'a u8>) {
    if bytes.len() == 1 {
        out.push_str("0x");
    }
    for (index, byte) in bytes.enumerate() {
        let separator = if index > 0 { ":" } else { "" };
        let _ = write!(out, "{separator}{byte:02x}");
    }
}

fn push_enum(out: &mut String, enumeration: &Enumeration, element: &[u8]) {
    match (enumeration.name_of(element), enumeration.base.order) {
        (Some(name), _) => out.push_str(name),
        // The bytes of the number as this machine has it.
        (None, order) if order == ByteOrder::NATIVE => push_hex(out, element.iter()),
        (None, _) => push_hex(out, element.iter().rev()),
    }
}

fn push_text(out: &mut String, element: &[u8], padding: StringPadding) {
    let end = match padding {
        StringPadding::NullTerminate => element.iter().position(|&byte| byte == 0),
        _ => None,
    };
    let text = &element[..end.unwrap_or(element.len())];
    out.push('"');
    for piece in text.utf8_chunks() {
        for letter in piece.valid().chars() {
            match letter {
                // h5dump sets continued lines in by eleven columns.
                '\n' | '\r' => {
                    let _ = write!(out, "{letter}{:11}", "");
                }
                '\t' | '\u{8}' | '\u{c}' => out.push(letter),
                control if control.is_ascii_control() => {
                    let _ = write!(out, "\\{:03o}", control as u32);
                }
                letter => out.push(letter),
            }
        }
        for byte in piece.invalid() {
            let _ = write!(out, "\\{byte:03o}");
        }
    }
    out.push('"');
}

fn push_compound(
    out: &mut String,
    members: &[(usize, Renderer)],
    element: &[u8],
    heap: &[u8],
    level: Option<usize>,
) {
    out.push('{');
    for (index, (offset, renderer)) in members.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        match level {
            Some(level) => push_line(out, level + 1),
            None if index > 0 => out.push(' '),
            None => {}
        }
        let member = element.get(*offset..offset.saturating_add(renderer.size));
        renderer.push(out, member.unwrap_or(&[]), heap, level.map(|level| level + 1));
    }
    if let Some(level) = level {
        push_line(out, level);
    }
    out.push('}');
}

fn push_array(
    out: &mut String,
    (row, holds_arrays): (usize, bool),
    base: &Renderer,
    (element, heap): (&[u8], &[u8]),
    level: Option<usize>,
) {
    out.push_str("[ ");
    for (index, part) in element.chunks_exact(base.size.max(1)).enumerate() {
        if index > 0 {
            out.push(',');
            match level {
                Some(level) if index % row == 0 => push_line(out, level + 1),
                Some(level) if holds_arrays => {
                    out.push_str("\n ");
                    let _ = write!(out, "{:1$}", "", (level + 1) * INDENT);
                }
                _ => out.push(' '),
            }
        }
        base.push(out, part, heap, level.map(|level| level + 1));
    }
    out.push_str(" ]");
}

fn push_line(out: &mut String, level: usize) {
    let _ = write!(out, "\n{:1$}", "", level * INDENT);
}

fn holds_arrays(datatype: &Datatype) -> bool {
    match datatype {
        Datatype::Array(_) => true,
        Datatype::Compound(compound) => {
            compound.members.iter().any(|member| holds_arrays(&member.datatype))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inline(datatype: &Datatype, element: &[u8]) -> String {
        let mut text = String::new();
        Renderer::new(datatype).unwrap().push_inline(&mut text, element, &[]);
        text
    }

    #[test]
    fn numbers_of_any_order_are_printed() {
        assert_eq!(inline(&Datatype::i16_be(), &[0xff, 0xfe]), "-2");
        assert_eq!(inline(&Datatype::u64_le(), &[0xff; 8]), "18446744073709551615");
        assert_eq!(inline(&Datatype::f32_be(), &0.1f32.to_be_bytes()), "0.1");
    }

    #[test]
    fn text_keeps_its_padding_visible() {
        let text = Datatype::fixed_string(8);
        assert_eq!(inline(&text, b"ab\0\0\x01\xff\"\\"), "\"ab\\000\\000\\001\\377\"\\\"");
        assert_eq!(inline(&text, "caf\u{e9}   ".as_bytes()), "\"caf\u{e9}   \"");
    }

    #[test]
    fn compounds_and_arrays_take_one_line_or_several() {
        let array = Datatype::array(Datatype::u8(), vec![2, 2]);
        let pair = Datatype::compound([("a", Datatype::u8()), ("b", array)]);
        let bytes = [1, 2, 3, 4, 5];
        assert_eq!(inline(&pair, &bytes), "{1, [ 2, 3, 4, 5 ]}");
        let mut text = String::new();
        Renderer::new(&pair).unwrap().push_lines(&mut text, &bytes, &[], 1);
        assert_eq!(text, "{\n      1,\n      [ 2, 3,\n         4, 5 ]\n   }");
    }

    #[test]
    fn what_is_on_a_heap_is_printed() {
        let words = pumice::Heaped::strings(16, ["ab", ""]).unwrap();
        let text = Renderer::new(&Datatype::varlen_string(16)).unwrap();
        let mut out = String::new();
        for element in words.elements.chunks_exact(16).chain([&[0; 16][..]]) {
            text.push_inline(&mut out, element, &words.heap);
        }
        assert_eq!(out, "\"ab\"\"\"NULL");
    }
}
