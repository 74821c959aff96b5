//! One element as text, in h5dump's manner.
//!
//! A [`Renderer`] is made once per datatype. Compounds and arrays take several lines in a dump and
//! one line in a table; everything else is the same in both. Unlike h5dump, text that is valid
//! UTF-8 is printed as it is.

use crate::atlas::{self, Atlas};
use crate::cells;
use crate::numbers::{self, FloatFormat};
use anyhow::{Result, bail};
use pumice::Group;
use pumice::types::{
    ByteOrder, Conversion, Datatype, Element, Enumeration, Integer, ReferenceKind, StringPadding,
    VarLen, VarLenKind,
};
use std::fmt::Write;
use std::sync::Arc;

/// Columns of one level of indentation.
pub(crate) const INDENT: usize = 3;

/// A place inside an element where a line may be broken, in breakable styles.
pub(crate) const BREAK: char = '\u{1}';

/// The style of values.
#[derive(Clone, Default)]
pub(crate) struct Style {
    /// The style of XML: blanks between values, markup escaped in text.
    pub(crate) xml: bool,
    /// Text in XML stands inside of compounds, arrays or sequences, where h5dump does not escape it.
    pub(crate) inside: bool,
    /// The style of h5ls: everything on one line, which may be broken at [`BREAK`]s.
    pub(crate) breakable: bool,
    /// The style of `h5ls -S`: blanks between values, no brackets around compounds and arrays. With
    /// `breakable`.
    pub(crate) simple: bool,
    /// Members of compounds have their names before them.
    pub(crate) labels: bool,
    /// Bytes as this machine would have them, in hexadecimal.
    pub(crate) raw: bool,
    /// Special characters in text are written as `\n` and the like.
    pub(crate) escape: bool,
    /// Integers of one byte are characters.
    pub(crate) characters: bool,
    /// The format of floats, as C's `printf` takes it.
    pub(crate) float: Option<FloatFormat>,
    /// Bits of integers to print: the lowest one, how many.
    pub(crate) bits: Option<(u32, u32)>,
    /// The name of the file and the paths of its objects, for references.
    pub(crate) names: Option<Arc<(String, Atlas)>>,
    /// The file that references are in.
    pub(crate) file: Option<Group>,
}

impl Style {
    /// The format of floats of this size: h5ls prints doubles with all their certain digits.
    fn float_format(&self, size: usize) -> Option<FloatFormat> {
        let double = self.breakable && (5..=8).contains(&size);
        self.float.clone().or_else(|| double.then(|| FloatFormat::parse("%.15g")).flatten())
    }
}

/// Turns elements of one datatype into text.
pub(crate) struct Renderer {
    size: usize,
    kind: Kind,
    style: Arc<Style>,
}

enum Kind {
    Signed(Conversion),
    Unsigned(Conversion),
    Character,
    Object,
    /// References of other kinds.
    Reference(Datatype),
    Float(Conversion, Option<FloatFormat>),
    Text(StringPadding),
    Enum(Enumeration),
    Hex,
    Raw(Conversion, usize),
    Compound(Vec<Member>),
    Array {
        row: usize,
        holds_arrays: bool,
        base: Box<Renderer>,
    },
    Complex(Conversion, Option<FloatFormat>),
    VariableText(VarLen),
    Sequence(VarLen, Box<Renderer>),
}

/// A member of a compound.
struct Member {
    name: String,
    offset: usize,
    renderer: Renderer,
}

impl Member {
    /// Its bytes in a compound's.
    fn of<'e>(&self, element: &'e [u8]) -> &'e [u8] {
        let end = self.offset.saturating_add(self.renderer.size);
        element.get(self.offset..end).unwrap_or(&[])
    }
}

impl Renderer {
    /// A renderer for elements of `datatype`.
    pub(crate) fn new(datatype: &Datatype) -> Result<Self> {
        Self::styled(datatype, &Style::default())
    }

    /// A renderer for elements of `datatype` in a style.
    pub(crate) fn styled(datatype: &Datatype, style: &Style) -> Result<Self> {
        Self::build(datatype, &Arc::new(style.clone()))
    }

    fn build(datatype: &Datatype, style: &Arc<Style>) -> Result<Self> {
        let nested = match style.xml && !style.inside {
            true => Arc::new(Style { inside: true, ..Style::clone(style) }),
            false => style.clone(),
        };
        let kind = match datatype {
            _ if style.raw && !datatype.has_varlen() && !datatype.has_references() => {
                let native = cells::with_order(datatype, cfg!(target_endian = "big"));
                let conversion = Conversion::new(datatype, &native).map_err(pumice::Error::from)?;
                Kind::Raw(conversion, native.size())
            }
            Datatype::Integer(Integer { size: 1, .. }) if style.characters => Kind::Character,
            Datatype::Integer(Integer { signed: true, .. }) => Kind::Signed(to::<i64>(datatype)?),
            Datatype::Integer(_) => Kind::Unsigned(to::<u64>(datatype)?),
            Datatype::Float(_) => {
                Kind::Float(to::<f64>(datatype)?, style.float_format(datatype.size()))
            }
            Datatype::String(string) => Kind::Text(string.padding),
            Datatype::Enum(enumeration) => Kind::Enum(enumeration.clone()),
            Datatype::Bitfield(_) | Datatype::Opaque(_) | Datatype::Time(_) => Kind::Hex,
            Datatype::Compound(compound) => {
                let members = compound.members.iter().map(|member| {
                    let (name, offset) = (member.name.clone(), member.offset as usize);
                    Ok(Member { name, offset, renderer: Self::build(&member.datatype, &nested)? })
                });
                Kind::Compound(members.collect::<Result<_>>()?)
            }
            Datatype::Array(array) => Kind::Array {
                row: array.dims.last().map_or(1, |&length| length as usize).max(1),
                holds_arrays: holds_arrays(&array.base),
                base: Box::new(Self::build(&array.base, &nested)?),
            },
            Datatype::Complex(complex) => {
                let base = Datatype::Float(complex.base.clone());
                Kind::Complex(to::<f64>(&base)?, style.float_format(base.size()))
            }
            Datatype::VarLen(varlen) => match varlen.kind {
                VarLenKind::String { .. } => Kind::VariableText(varlen.clone()),
                VarLenKind::Sequence => {
                    Kind::Sequence(varlen.clone(), Box::new(Self::build(&varlen.base, &nested)?))
                }
            },
            Datatype::Reference(reference) if reference.kind == ReferenceKind::Object => {
                Kind::Object
            }
            Datatype::Reference(_) => Kind::Reference(datatype.clone()),
            other => bail!("values of class {} cannot be printed yet", other.class_name()),
        };
        Ok(Self { size: datatype.size(), kind, style: style.clone() })
    }

    /// Bytes of an element.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Appends elements, and notes the end of each one's text. Only for elements of one line.
    pub(crate) fn push_each(&self, out: &mut String, ends: &mut Vec<usize>, elements: &[u8]) {
        let elements = elements.chunks_exact(self.size.max(1));
        if let Kind::Float(conversion, None) = &self.kind
            && conversion.is_noop()
        {
            for element in elements {
                let value = f64::from_ne_bytes(element.try_into().unwrap_or_default());
                numbers::push_general(out, value);
                ends.push(out.len());
            }
            return;
        }
        for element in elements {
            self.push(out, element, &[], None);
            ends.push(out.len());
        }
    }

    /// Whether elements are numbers, whose texts depend on nothing else.
    pub(crate) fn is_number(&self) -> bool {
        matches!(self.kind, Kind::Signed(_) | Kind::Unsigned(_) | Kind::Float(..))
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
                let value = i64::from_ne_bytes(convert(conversion, element));
                numbers::push_integer(out, self.bits(value));
            }
            Kind::Unsigned(conversion) => {
                let value = u64::from_ne_bytes(convert(conversion, element));
                let _ = write!(out, "{}", self.bits(value as i64) as u64);
            }
            Kind::Character => self.push_character(out, element.first().copied().unwrap_or(0)),
            Kind::Object => self.push_object(out, element),
            Kind::Reference(datatype) => self.push_reference(out, datatype, element),
            Kind::Float(conversion, format) => push_float(out, conversion, format, element),
            Kind::Text(padding) => self.push_text(out, element, *padding),
            Kind::Enum(enumeration) => push_enum(out, enumeration, element),
            Kind::Hex => push_hex(out, element.iter()),
            Kind::Raw(conversion, size) => {
                let mut native = vec![0; *size];
                // The sizes are those that the conversion was made for.
                let _ = conversion.convert(element, &mut native);
                push_hex(out, native.iter());
            }
            Kind::Compound(members) => self.push_compound(out, members, element, heap, level),
            Kind::Array { row, holds_arrays, base } => {
                self.push_array(out, (*row, *holds_arrays), base, (element, heap), level);
            }
            Kind::Complex(conversion, format) => {
                let (real, imaginary) = element.split_at(element.len() / 2);
                push_float(out, conversion, format, real);
                let start = out.len();
                push_float(out, conversion, format, imaginary);
                if !out[start..].starts_with('-') {
                    out.insert(start, '+');
                }
                out.push('i');
            }
            Kind::VariableText(varlen) => match varlen.payload(element, heap) {
                Ok(Some(text)) => self.push_text(out, text, StringPadding::NullTerminate),
                // References out of the heap were refused when it was read.
                _ => out.push_str("NULL"),
            },
            Kind::Sequence(varlen, base) => {
                let payload = varlen.payload(element, heap).ok().flatten().unwrap_or_default();
                if self.style.breakable {
                    let parts = payload.chunks_exact(base.size.max(1));
                    return self.push_list(out, "()", ",", parts.map(|part| (&**base, part)), heap);
                }
                let (before, between, after) = match self.style.xml {
                    true => (" ", " ", ""),
                    false => ("(", ", ", ")"),
                };
                out.push_str(before);
                for (index, part) in payload.chunks_exact(base.size.max(1)).enumerate() {
                    out.push_str(if index > 0 { between } else { "" });
                    base.push(out, part, heap, level.map(|level| level + 1));
                }
                out.push_str(after);
            }
        }
    }

    /// The bits of an integer that are wanted.
    fn bits(&self, value: i64) -> i64 {
        let Some((low, count)) = self.style.bits else { return value };
        let width = self.size as u32 * 8;
        if low >= width.min(64) {
            return 0;
        }
        let mask = if count >= 64 { u64::MAX } else { (1 << count) - 1 };
        let bits = (value >> low) as u64 & mask;
        let unused = 64u32.saturating_sub(width);
        match self.kind {
            Kind::Signed(_) => (bits << unused) as i64 >> unused,
            _ => (bits << unused >> unused) as i64,
        }
    }

    /// A reference to an object: the object's kind, address and path.
    fn push_object(&self, out: &mut String, element: &[u8]) {
        let mut address = [0; 8];
        let size = element.len().min(8);
        address[..size].copy_from_slice(&element[..size]);
        let address = u64::from_le_bytes(address);
        let Some(names) = &self.style.names else {
            let _ = write!(out, "{address}");
            return;
        };
        let (_, atlas) = &**names;
        let kind = match atlas.kind(address) {
            Some(atlas::Kind::Group) => "GROUP",
            Some(atlas::Kind::Dataset) => "DATASET",
            Some(atlas::Kind::Datatype) => "DATATYPE",
            None => return out.push_str("NULL"),
        };
        let path = atlas.path(address).unwrap_or_default();
        // h5ls tells the number of the file, too.
        let number = if self.style.breakable { "-1:" } else { " " };
        let _ = write!(out, "{kind}{number}{address} \"{path}\"");
    }

    /// A reference to a region, or a revised one: its object. As in h5dump, only revised ones name
    /// their file.
    fn push_reference(&self, out: &mut String, datatype: &Datatype, element: &[u8]) {
        let (Some(file), Some(names)) = (&self.style.file, &self.style.names) else {
            return push_hex(out, element.iter());
        };
        let Ok(found) = file.references(datatype, element) else {
            return out.push_str("<unknown>");
        };
        let Some(reference) = found.into_iter().next().flatten() else {
            return out.push_str("NULL");
        };
        let (own, atlas) = &**names;
        let address = reference.address();
        let kind = match atlas.kind(address) {
            _ if reference.attribute().is_some() => "ATTRIBUTE",
            _ if reference.is_region() => "DATASET",
            Some(atlas::Kind::Group) => "GROUP",
            Some(atlas::Kind::Datatype) => "DATATYPE",
            _ => "DATASET",
        };
        let old =
            matches!(datatype, Datatype::Reference(kind) if kind.kind == ReferenceKind::Region);
        let place = if old { "" } else { reference.file().unwrap_or(own) };
        let path = if reference.file().is_some() { None } else { atlas.path(address) };
        let _ = write!(out, "{kind} \"{place}{}", path.unwrap_or_default());
        if let Some(name) = reference.attribute() {
            let _ = write!(out, "/{name}");
        }
        out.push('"');
    }

    fn push_character(&self, out: &mut String, byte: u8) {
        match byte {
            _ if self.style.simple => match byte.is_ascii_graphic() {
                true => out.push(byte as char),
                false => {
                    let _ = write!(out, "%{byte:02x}");
                }
            },
            b'\n' | b'\r' if !self.style.escape => {
                // h5dump sets continued lines in by eleven columns.
                let _ = write!(out, "{}{:11}", byte as char, "");
            }
            b'"' | b'\\' if self.style.escape => out.extend(['\\', byte as char]),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' if self.style.escape => out.push_str("\\t"),
            0x08 if self.style.escape => out.push_str("\\b"),
            0x0c if self.style.escape => out.push_str("\\f"),
            b'\t' | 0x08 | 0x0c | 0x20..0x7f => out.push(byte as char),
            // A C compiler's `char` has a sign.
            byte => {
                let _ = write!(out, "\\{:03o}", i32::from(byte as i8));
            }
        }
    }

    fn push_text(&self, out: &mut String, element: &[u8], padding: StringPadding) {
        let end = match padding {
            StringPadding::NullTerminate => element.iter().position(|&byte| byte == 0),
            _ if self.style.xml && !self.style.inside => element.iter().position(|&byte| byte == 0),
            _ => None,
        };
        let text = &element[..end.unwrap_or(element.len())];
        let counts = self.style.breakable && !self.style.simple;
        if counts && text.chunk_by(|one, other| one == other).any(repeats) {
            return self.push_repeating(out, text);
        }
        out.push('"');
        if self.style.xml && !self.style.inside {
            out.push_str(&xml_text(&String::from_utf8_lossy(text)));
        } else {
            for piece in text.utf8_chunks() {
                for letter in piece.valid().chars() {
                    match u8::try_from(letter) {
                        Ok(byte @ 0..0x80) => self.push_character(out, byte),
                        _ => out.push(letter),
                    }
                }
                for byte in piece.invalid() {
                    let _ = write!(out, "\\{byte:03o}");
                }
            }
        }
        out.push('"');
    }

    /// Text in which letters that repeat are counted.
    fn push_repeating(&self, out: &mut String, text: &[u8]) {
        let mut quoted = false;
        for (number, same) in text.chunk_by(|one, other| one == other).enumerate() {
            let counted = repeats(same);
            if counted && quoted {
                out.push('"');
            }
            if counted || !quoted {
                out.push_str(if number > 0 { " " } else { "" });
                out.push(if counted { '\'' } else { '"' });
            }
            quoted = !counted;
            let shown = if counted { &same[..1] } else { same };
            shown.iter().for_each(|&byte| self.push_character(out, byte));
            if counted {
                let _ = write!(out, "' repeats {} times", same.len() - 1);
            }
        }
        if quoted {
            out.push('"');
        }
    }

    fn push_compound(
        &self,
        out: &mut String,
        members: &[Member],
        element: &[u8],
        heap: &[u8],
        level: Option<usize>,
    ) {
        if self.style.breakable {
            let (simple, braces) = (self.style.simple, !self.style.simple || self.style.labels);
            out.push_str(if braces { "{" } else { "" });
            for (index, member) in members.iter().enumerate() {
                match index > 0 {
                    true if simple => out.push(' '),
                    true => out.extend([',', ' ', BREAK]),
                    false => {}
                }
                if self.style.labels {
                    let _ = write!(out, "{}=", member.name);
                }
                member.renderer.push(out, member.of(element), heap, None);
            }
            return out.push_str(if braces { "}" } else { "" });
        }
        let (xml, mut first) = (self.style.xml, true);
        if !xml {
            out.push('{');
        }
        for member in members {
            if !first {
                out.push_str(if xml { " " } else { "," });
            }
            match level {
                _ if xml => {}
                Some(level) => push_line(out, level + 1),
                None if !first => out.push(' '),
                None => {}
            }
            first = false;
            member.renderer.push(out, member.of(element), heap, level.map(|level| level + 1));
        }
        if xml {
            return;
        }
        if let Some(level) = level {
            push_line(out, level);
        }
        out.push('}');
    }

    /// Parts of an element between brackets, each but the last followed by a separator and a place to
    /// break the line.
    fn push_list<'r>(
        &self,
        out: &mut String,
        brackets: &str,
        separator: &str,
        parts: impl Iterator<Item = (&'r Renderer, &'r [u8])>,
        heap: &[u8],
    ) {
        out.push_str(&brackets[..1]);
        for (index, (renderer, part)) in parts.enumerate() {
            if index > 0 {
                out.push_str(separator);
                out.extend((!self.style.simple).then_some(BREAK));
            }
            renderer.push(out, part, heap, None);
        }
        out.push_str(&brackets[1..]);
    }

    fn push_array(
        &self,
        out: &mut String,
        (row, holds_arrays): (usize, bool),
        base: &Renderer,
        (element, heap): (&[u8], &[u8]),
        level: Option<usize>,
    ) {
        if self.style.simple {
            for (index, part) in element.chunks_exact(base.size.max(1)).enumerate() {
                match index > 0 {
                    // h5ls goes on in another line, set in by seven columns.
                    true if holds_arrays => out.push_str(" \n       "),
                    true => out.push_str("  "),
                    false => {}
                }
                base.push(out, part, heap, None);
            }
            return;
        }
        if self.style.breakable {
            let parts = element.chunks_exact(base.size.max(1)).map(|part| (base, part));
            return self.push_list(out, "[]", ",", parts, heap);
        }
        let xml = self.style.xml;
        out.push_str(if xml { "" } else { "[ " });
        for (index, part) in element.chunks_exact(base.size.max(1)).enumerate() {
            if index > 0 {
                out.push_str(if xml { "" } else { "," });
                match level {
                    Some(level) if index % row == 0 && !xml => push_line(out, level + 1),
                    Some(level) if holds_arrays => {
                        out.push_str("\n ");
                        let _ = write!(out, "{:1$}", "", (level + 1) * INDENT);
                    }
                    _ => out.push(' '),
                }
            }
            base.push(out, part, heap, level.map(|level| level + 1));
        }
        out.push_str(if xml { "" } else { " ]" });
    }
}

fn push_float(
    out: &mut String,
    conversion: &Conversion,
    format: &Option<FloatFormat>,
    element: &[u8],
) {
    let value = f64::from_ne_bytes(convert(conversion, element));
    match format {
        Some(format) => format.push(out, value),
        None => numbers::push_general(out, value),
    }
}

/// Whether h5ls counts equal letters instead of repeating them.
fn repeats(same: &[u8]) -> bool {
    same.len() > 8
}

/// Text between quotes in XML.
pub(crate) fn xml_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\'' => out.push_str("&apos;"),
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            letter => out.push(letter),
        }
    }
    out
}

fn to<T: Element>(datatype: &Datatype) -> Result<Conversion> {
    Ok(Conversion::new(datatype, &T::datatype()).map_err(pumice::Error::from)?)
}

fn convert(conversion: &Conversion, element: &[u8]) -> [u8; 8] {
    let mut converted = [0; 8];
    if conversion.is_noop() && element.len() == 8 {
        converted.copy_from_slice(element);
        return converted;
    }
    // The sizes are those that the conversion was made for; on others the number stays 0.
    let _ = conversion.convert(element, &mut converted);
    converted
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

/// A name with special letters behind backslashes. As in h5dump, the letter behind a backslash is
/// not checked.
fn push_escaped(out: &mut String, name: &str) {
    let mut before = false;
    for letter in name.chars() {
        let known = match letter {
            _ if before => None,
            '\'' | '"' | '\\' | '?' => Some(letter),
            '\u{7}' => Some('a'),
            '\u{8}' => Some('b'),
            '\u{c}' => Some('f'),
            '\n' => Some('n'),
            '\r' => Some('r'),
            '\t' => Some('t'),
            '\u{b}' => Some('v'),
            _ => None,
        };
        let control = !before && letter.is_ascii_control();
        before = known.is_some() || control;
        match known {
            Some(known) => out.extend(['\\', known]),
            None if control => {
                let _ = write!(out, "\\{:03o}", u32::from(letter));
            }
            None => out.push(letter),
        }
    }
}

fn push_enum(out: &mut String, enumeration: &Enumeration, element: &[u8]) {
    match (enumeration.name_of(element), enumeration.base.order) {
        (Some(name), _) => push_escaped(out, name),
        // The bytes of the number as this machine has it.
        (None, order) if order == ByteOrder::NATIVE => push_hex(out, element.iter()),
        (None, _) => push_hex(out, element.iter().rev()),
    }
}

fn push_line(out: &mut String, level: usize) {
    let _ = write!(out, "\n{:1$}", "", level * INDENT);
}

fn holds_arrays(datatype: &Datatype) -> bool {
    match datatype {
        Datatype::Array(_) => true,
        Datatype::VarLen(varlen) => holds_arrays(&varlen.base),
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
