//! The text h5dump writes for a datatype, in its data description language.
//!
//! Line breaks and indentation are h5dump's: a level is three columns, strings, compounds,
//! enumerations and opaque types take several lines, everything else one. Names and tags are
//! written as they are, without escapes, as h5dump does. What precedes the datatype on its line and
//! what follows it is the caller's.

use std::fmt::{self, Display, Write};

use crate::conversion::integer_value;
use crate::model::{
    Bitfield, ByteOrder, CharacterSet, Complex, Datatype, Enumeration, Float, Integer,
    MantissaNormalization, ReferenceKind, StringPadding, VarLenKind,
};

/// Columns of one level of indentation.
pub const INDENT: usize = 3;

/// Shows a datatype whose first line starts in a line indented by `indent` columns.
///
/// ```
/// use pumice_types::{Datatype, ddl};
///
/// let pair = Datatype::compound([("a", Datatype::i32_le()), ("b", Datatype::f32_be())]);
/// assert_eq!(
///     ddl::indented(&pair, 3).to_string(),
///     "H5T_COMPOUND {\n      H5T_STD_I32LE \"a\";\n      H5T_IEEE_F32BE \"b\";\n   }",
/// );
/// ```
pub fn indented(datatype: &Datatype, indent: usize) -> impl Display + '_ {
    Ddl { datatype, layout: Layout::Lines(indent) }
}

/// Shows a datatype in one line, with spaces in place of line breaks.
///
/// ```
/// use pumice_types::{Datatype, ddl};
///
/// let name = ddl::inline(&Datatype::compound([("a", Datatype::i32_le())])).to_string();
/// assert_eq!(name, "H5T_COMPOUND { H5T_STD_I32LE \"a\"; }");
/// ```
pub fn inline(datatype: &Datatype) -> impl Display + '_ {
    Ddl { datatype, layout: Layout::Inline }
}

impl Display for Datatype {
    /// The datatype as h5dump writes it in a line without indentation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_datatype(f, self, Layout::Lines(0))
    }
}

struct Ddl<'a> {
    datatype: &'a Datatype,
    layout: Layout,
}

impl Display for Ddl<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_datatype(f, self.datatype, self.layout)
    }
}

/// The separators between parts of a datatype.
#[derive(Debug, Clone, Copy)]
enum Layout {
    /// On lines of their own, with this many columns in front of the current one.
    Lines(usize),
    /// A space.
    Inline,
}

impl Layout {
    fn deeper(self) -> Self {
        match self {
            Self::Lines(indent) => Self::Lines(indent.saturating_add(INDENT)),
            Self::Inline => Self::Inline,
        }
    }

    fn break_line(self, out: &mut dyn Write) -> fmt::Result {
        match self {
            Self::Lines(indent) => write!(out, "\n{:indent$}", ""),
            Self::Inline => out.write_char(' '),
        }
    }
}

fn write_datatype(out: &mut dyn Write, datatype: &Datatype, layout: Layout) -> fmt::Result {
    match datatype {
        Datatype::Integer(integer) => write_integer(out, integer),
        Datatype::Float(float) => write_float(out, float),
        Datatype::Time(_) => out.write_str("H5T_TIME: not yet implemented"),
        Datatype::String(string) => {
            write_string(out, Some(string.size), string.padding, string.charset, layout)
        }
        Datatype::Bitfield(bitfield) => write_bitfield(out, bitfield),
        Datatype::Opaque(opaque) => {
            out.write_str("H5T_OPAQUE {")?;
            layout.deeper().break_line(out)?;
            write!(out, "OPAQUE_TAG \"{}\";", opaque.tag)?;
            close(out, layout)
        }
        Datatype::Compound(compound) => {
            out.write_str("H5T_COMPOUND {")?;
            for member in &compound.members {
                layout.deeper().break_line(out)?;
                write_datatype(out, &member.datatype, layout.deeper())?;
                write!(out, " \"{}\";", member.name)?;
            }
            close(out, layout)
        }
        Datatype::Reference(reference) => {
            write!(out, "H5T_REFERENCE {{ {} }}", reference_name(reference.kind))
        }
        Datatype::Enum(enumeration) => write_enum(out, enumeration, layout),
        Datatype::VarLen(varlen) => match varlen.kind {
            VarLenKind::String { padding, charset } => {
                write_string(out, None, padding, charset, layout)
            }
            VarLenKind::Sequence => {
                out.write_str("H5T_VLEN { ")?;
                write_datatype(out, &varlen.base, layout)?;
                out.write_str(" }")
            }
        },
        Datatype::Array(array) => {
            out.write_str("H5T_ARRAY { ")?;
            for dim in &array.dims {
                write!(out, "[{dim}]")?;
            }
            out.write_char(' ')?;
            write_datatype(out, &array.base, layout)?;
            out.write_str(" }")
        }
        Datatype::Complex(complex) => write_complex(out, complex),
    }
}

fn close(out: &mut dyn Write, layout: Layout) -> fmt::Result {
    layout.break_line(out)?;
    out.write_char('}')
}

fn write_string(
    out: &mut dyn Write,
    size: Option<u32>,
    padding: StringPadding,
    charset: CharacterSet,
    layout: Layout,
) -> fmt::Result {
    out.write_str("H5T_STRING {")?;
    layout.deeper().break_line(out)?;
    match size {
        Some(size) => write!(out, "STRSIZE {size};")?,
        None => out.write_str("STRSIZE H5T_VARIABLE;")?,
    }
    layout.deeper().break_line(out)?;
    let padding = match padding {
        StringPadding::NullTerminate => "H5T_STR_NULLTERM",
        StringPadding::NullPad => "H5T_STR_NULLPAD",
        StringPadding::SpacePad => "H5T_STR_SPACEPAD",
    };
    write!(out, "STRPAD {padding};")?;
    layout.deeper().break_line(out)?;
    let charset = match charset {
        CharacterSet::Ascii => "H5T_CSET_ASCII",
        CharacterSet::Utf8 => "H5T_CSET_UTF8",
    };
    write!(out, "CSET {charset};")?;
    layout.deeper().break_line(out)?;
    out.write_str("CTYPE H5T_C_S1;")?;
    close(out, layout)
}

fn write_enum(out: &mut dyn Write, enumeration: &Enumeration, layout: Layout) -> fmt::Result {
    out.write_str("H5T_ENUM {")?;
    layout.deeper().break_line(out)?;
    write_integer(out, &enumeration.base)?;
    out.write_char(';')?;
    for (name, value) in enumeration.members() {
        layout.deeper().break_line(out)?;
        // h5dump counts the name's bytes, not its characters.
        let gap = 16usize.saturating_sub(name.len());
        write!(out, "\"{name}\"{:gap$} ", "")?;
        match integer_value(&enumeration.base, value) {
            Some(value) => write!(out, "{value};")?,
            None => {
                out.write_str("0x")?;
                value.iter().try_for_each(|byte| write!(out, "{byte:02x}"))?;
                out.write_char(';')?;
            }
        }
    }
    close(out, layout)
}

fn write_integer(out: &mut dyn Write, integer: &Integer) -> fmt::Result {
    let sign = if integer.signed { 'I' } else { 'U' };
    let standard = *integer == Integer::new(integer.size, integer.order, integer.signed);
    if standard
        && matches!(integer.size, 1 | 2 | 4 | 8)
        && let Some(suffix) = suffix(integer.order)
    {
        return write!(out, "H5T_STD_{sign}{}{suffix}", integer.size * 8);
    }
    let order = order_words(integer.size, integer.order);
    let sign = if integer.signed { "" } else { " unsigned" };
    let bits = u64::from(integer.size) * 8;
    write!(out, "{bits}-bit{order}{sign} integer {}-bit precision", integer.precision)
}

fn write_bitfield(out: &mut dyn Write, bitfield: &Bitfield) -> fmt::Result {
    if *bitfield == Bitfield::new(bitfield.size, bitfield.order)
        && matches!(bitfield.size, 1 | 2 | 4 | 8)
        && let Some(suffix) = suffix(bitfield.order)
    {
        return write!(out, "H5T_STD_B{}{suffix}", bitfield.size * 8);
    }
    out.write_str("undefined bitfield")
}

fn write_float(out: &mut dyn Write, float: &Float) -> fmt::Result {
    if let Some(name) = float_name(float) {
        return out.write_str(name);
    }
    let order = order_words(float.size, float.order);
    let bits = u64::from(float.size) * 8;
    write!(out, "{bits}-bit{order} floating-point {}-bit precision", float.precision)
}

fn write_complex(out: &mut dyn Write, complex: &Complex) -> fmt::Result {
    if let Some(name) = float_name(&complex.base)
        && let Some(part) = name.strip_prefix("H5T_IEEE_")
    {
        return write!(out, "H5T_COMPLEX_IEEE_{part}");
    }
    out.write_str("H5T_COMPLEX { ")?;
    write_float(out, &complex.base)?;
    out.write_str(" }")
}

fn float_name(float: &Float) -> Option<&'static str> {
    use ByteOrder::{Big, Little};
    let named = [
        (Float::half(Little), "H5T_IEEE_F16LE"),
        (Float::half(Big), "H5T_IEEE_F16BE"),
        (Float::single(Little), "H5T_IEEE_F32LE"),
        (Float::single(Big), "H5T_IEEE_F32BE"),
        (Float::double(Little), "H5T_IEEE_F64LE"),
        (Float::double(Big), "H5T_IEEE_F64BE"),
        (vax(Float::ieee(4, ByteOrder::Vax, 8, 23)), "H5T_VAX_F32"),
        (vax(Float::ieee(8, ByteOrder::Vax, 11, 52)), "H5T_VAX_F64"),
        (Float::bfloat16(Little), "H5T_FLOAT_BFLOAT16LE"),
        (Float::bfloat16(Big), "H5T_FLOAT_BFLOAT16BE"),
        (Float::ieee(1, Little, 4, 3), "H5T_FLOAT_F8E4M3"),
        (Float::ieee(1, Little, 5, 2), "H5T_FLOAT_F8E5M2"),
        (narrow(6, 2, 3), "H5T_FLOAT_F6E2M3"),
        (narrow(6, 3, 2), "H5T_FLOAT_F6E3M2"),
        (narrow(4, 2, 1), "H5T_FLOAT_F4E2M1"),
    ];
    named.iter().find(|(known, _)| known == float).map(|(_, name)| *name)
}

/// A float of a few bits of one byte.
fn narrow(bits: u16, exponent: u8, mantissa: u8) -> Float {
    Float { precision: bits, ..Float::ieee(1, ByteOrder::Little, exponent, mantissa) }
}

/// A VAX float has its binary point one place further left: its bias is larger by two.
fn vax(float: Float) -> Float {
    debug_assert_eq!(float.normalization, MantissaNormalization::Implied);
    Float { exponent_bias: float.exponent_bias + 2, ..float }
}

fn reference_name(kind: ReferenceKind) -> &'static str {
    match kind {
        ReferenceKind::Object => "H5T_STD_REF_OBJECT",
        ReferenceKind::Region => "H5T_STD_REF_DSETREG",
        ReferenceKind::Object2 { .. } => "H5T_STD_REF",
        ReferenceKind::Region2 { .. } | ReferenceKind::Attribute { .. } => "UNDEFINED",
    }
}

fn suffix(order: ByteOrder) -> Option<&'static str> {
    match order {
        ByteOrder::Little => Some("LE"),
        ByteOrder::Big => Some("BE"),
        ByteOrder::Vax => None,
    }
}

fn order_words(size: u32, order: ByteOrder) -> &'static str {
    if size <= 1 {
        return "";
    }
    match order {
        ByteOrder::Little => " little-endian",
        ByteOrder::Big => " big-endian",
        ByteOrder::Vax => " mixed-endian",
    }
}
