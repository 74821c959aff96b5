//! Datatypes in h5ls's words.

use super::escaped;
use crate::ddl::memory_size;
use crate::value::Renderer;
use pumice::types::{
    BitPadding, ByteOrder, CharacterSet, Compound, Datatype, Enumeration, Float, Integer,
    MantissaNormalization, ReferenceKind, StringPadding, VarLenKind,
};
use std::fmt::Write;

/// The text of a datatype; further lines are set in by `indent`. Native types have names of their
/// own, unless the words shall be `portable`.
pub(super) fn words(datatype: &Datatype, indent: usize, portable: bool) -> String {
    let mut out = String::new();
    push(&mut out, datatype, indent, portable);
    out
}

// Writing to a string does not fail.
fn push(out: &mut String, datatype: &Datatype, indent: usize, portable: bool) {
    if !portable && let Some(name) = native(datatype) {
        out.push_str(name);
        return;
    }
    match datatype {
        Datatype::Integer(integer) => push_integer(out, integer, indent),
        Datatype::Float(float) => push_float(out, datatype, float, indent),
        Datatype::Bitfield(bits) => {
            let order = order(bits.order, bits.size);
            let _ = write!(out, "{}-bit{order} bitfield", bits.size * 8);
            let padding = (bits.low_padding, bits.high_padding);
            push_precision(out, (bits.size, bits.bit_offset, bits.precision), padding, indent);
        }
        Datatype::Compound(compound) => {
            out.push_str("struct {");
            for member in &compound.members {
                let name = member.name.replace('\\', "\\\\").replace('"', "\\\"");
                let gap = 16usize.saturating_sub(name.len());
                let _ = write!(
                    out,
                    "\n{:1$}\"{name}\"{2:3$} +{4:<4} ",
                    "",
                    indent + 4,
                    "",
                    gap,
                    offset_in_memory(compound, member.offset)
                );
                push(out, &member.datatype, indent + 4, portable);
            }
            let _ = write!(
                out,
                "\n{:1$}}} {2}",
                "",
                indent,
                counted(memory_size(datatype) as usize, "byte")
            );
        }
        Datatype::Enum(enumeration) => push_enum(out, enumeration, indent, portable),
        Datatype::String(string) => {
            let words = string_words(string.padding, string.charset);
            let _ = write!(out, "{}-byte {words}", datatype.size());
        }
        Datatype::VarLen(varlen) => match &varlen.kind {
            VarLenKind::String { padding, charset } => {
                let _ = write!(out, "variable-length {}", string_words(*padding, *charset));
            }
            VarLenKind::Sequence => {
                let _ = write!(out, "variable length of\n{:1$}", "", indent + 4);
                push(out, &varlen.base, indent + 4, portable);
            }
        },
        Datatype::Reference(reference) => out.push_str(match reference.kind {
            ReferenceKind::Object => "object reference",
            ReferenceKind::Region => "dataset region reference",
            _ => "standard reference",
        }),
        Datatype::Array(array) => {
            let dims: Vec<_> = array.dims.iter().map(u32::to_string).collect();
            let _ = write!(out, "[{}] ", dims.join(","));
            push(out, &array.base, indent + 4, portable);
        }
        Datatype::Opaque(opaque) => {
            let _ = write!(out, "{}-byte opaque type", datatype.size());
            let tag = opaque.tag.replace('\\', "\\\\").replace('"', "\\\"");
            let _ = write!(out, "\n{:1$}(tag = \"{tag}\")", "", indent);
        }
        Datatype::Time(_) => {
            let _ = write!(out, "{}-byte class-2 unknown", datatype.size());
        }
        other => {
            let _ = write!(out, "{}-byte {} unknown", other.size(), other.class_name());
        }
    }
}

fn native(datatype: &Datatype) -> Option<&'static str> {
    let known = [
        (Datatype::i8(), "native signed char"),
        (Datatype::u8(), "native unsigned char"),
        (Datatype::i32_le(), "native int"),
        (Datatype::u32_le(), "native unsigned int"),
        (Datatype::i16_le(), "native short"),
        (Datatype::u16_le(), "native unsigned short"),
        (Datatype::i64_le(), "native long"),
        (Datatype::u64_le(), "native unsigned long"),
        (Datatype::f16_le(), "native _Float16"),
        (Datatype::f32_le(), "native float"),
        (Datatype::f64_le(), "native double"),
    ];
    let found = known.iter().find(|(kind, _)| kind == datatype).map(|(_, name)| *name);
    found.or_else(|| match datatype {
        Datatype::Bitfield(bits)
            if bits.order == ByteOrder::Little && u32::from(bits.precision) == bits.size * 8 =>
        {
            match bits.size {
                1 => Some("native 8-bit field"),
                2 => Some("native 16-bit field"),
                4 => Some("native 32-bit field"),
                8 => Some("native 64-bit field"),
                _ => None,
            }
        }
        _ => None,
    })
}

fn push_integer(out: &mut String, integer: &Integer, indent: usize) {
    let order = order(integer.order, integer.size);
    let sign = if integer.signed { "" } else { " unsigned" };
    let _ = write!(out, "{}-bit{order}{sign} integer", integer.size * 8);
    let padding = (integer.low_padding, integer.high_padding);
    push_precision(out, (integer.size, integer.bit_offset, integer.precision), padding, indent);
}

fn push_float(out: &mut String, datatype: &Datatype, float: &Float, indent: usize) {
    let standard = [
        (Datatype::f32_be(), "IEEE 32-bit big-endian float"),
        (Datatype::f32_le(), "IEEE 32-bit little-endian float"),
        (Datatype::f64_be(), "IEEE 64-bit big-endian float"),
        (Datatype::f64_le(), "IEEE 64-bit little-endian float"),
    ];
    if let Some((_, name)) = standard.iter().find(|(kind, _)| kind == datatype) {
        out.push_str(name);
        return;
    }
    let order = order(float.order, float.size);
    let _ = write!(out, "{}-bit{order} floating-point", float.size * 8);
    let padding = (float.low_padding, float.high_padding);
    push_precision(out, (float.size, float.bit_offset, float.precision), padding, indent);
    let leading = match float.normalization {
        MantissaNormalization::Implied => ", msb implied",
        MantissaNormalization::MsbSet => ", msb always set",
        MantissaNormalization::None => ", no normalization",
    };
    let _ = write!(
        out,
        "\n{:indent$}(significant for {} at bit {}{leading})",
        "",
        counted(float.mantissa_size.into(), "bit"),
        float.mantissa_location
    );
    let _ = write!(
        out,
        "\n{:indent$}(exponent for {} at bit {}, bias is 0x{:x})",
        "",
        counted(float.exponent_size.into(), "bit"),
        float.exponent_location,
        float.exponent_bias
    );
    let _ = write!(out, "\n{:indent$}(sign bit at {})", "", float.sign_location);
    if 1 + u16::from(float.exponent_size) + u16::from(float.mantissa_size) < float.precision {
        let bits = padding_name(float.internal_padding);
        let _ = write!(out, "\n{:indent$}(internal padding bits are {bits})", "");
    }
}

fn push_precision(
    out: &mut String,
    (size, offset, precision): (u32, u16, u16),
    (low, high): (BitPadding, BitPadding),
    indent: usize,
) {
    let (all, offset, precision) = (size as usize * 8, usize::from(offset), usize::from(precision));
    if all == precision {
        return;
    }
    let bits = counted(precision, "bit");
    let _ = write!(out, "\n{:indent$}({bits} of precision beginning at bit {offset})", "");
    let above = all.saturating_sub(offset + precision);
    let mut parts = Vec::new();
    for (count, padding, place) in [(offset, low, 0), (above, high, all - above)] {
        if count > 0 {
            let plural = if count == 1 { "" } else { "s" };
            parts.push(format!("{count} {} bit{plural} at bit {place}", padding_name(padding)));
        }
    }
    if !parts.is_empty() {
        let _ = write!(out, "\n{:indent$}({})", "", parts.join(", "));
    }
}

/// The offset of a member in libhdf5's memory: texts of variable length before it are pointers
/// there.
fn offset_in_memory(compound: &Compound, offset: u32) -> u64 {
    let before = compound.members.iter().filter(|member| member.offset < offset);
    let less = before.map(|member| member.datatype.size() as u64 - memory_size(&member.datatype));
    u64::from(offset).saturating_sub(less.sum())
}

fn push_enum(out: &mut String, enumeration: &Enumeration, indent: usize, portable: bool) {
    out.push_str("enum ");
    push(out, &Datatype::Integer(enumeration.base.clone()), indent + 4, portable);
    out.push_str(" {");
    let base = Renderer::new(&Datatype::Integer(enumeration.base.clone()));
    for (name, bytes) in enumeration.members() {
        let mut value = String::new();
        if let Ok(base) = &base {
            base.push_inline(&mut value, bytes, &[]);
        }
        let name = escaped(name);
        let _ = write!(out, "\n{:1$}{name:<16} = {value}", "", indent + 4);
    }
    if enumeration.members().count() == 0 {
        let _ = write!(out, "\n{:1$} <empty>", "", indent + 4);
    }
    let _ = write!(out, "\n{:1$}}}", "", indent);
}

fn string_words(padding: StringPadding, charset: CharacterSet) -> String {
    let padding = match padding {
        StringPadding::NullTerminate => "null-terminated",
        StringPadding::NullPad => "null-padded",
        StringPadding::SpacePad => "space-padded",
    };
    let charset = match charset {
        CharacterSet::Ascii => "ASCII",
        CharacterSet::Utf8 => "UTF-8",
    };
    format!("{padding} {charset} string")
}

fn order(order: ByteOrder, size: u32) -> &'static str {
    match order {
        _ if size == 1 => "",
        ByteOrder::Little => " little-endian",
        ByteOrder::Big => " big-endian",
        ByteOrder::Vax => " mixed-endian",
    }
}

fn padding_name(padding: BitPadding) -> &'static str {
    match padding {
        BitPadding::Zero => "zero",
        BitPadding::One => "one",
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
