//! The hash of elements that does not depend on byte order, padding or gaps: the same that the
//! manifests have.

use pumice::Datatype;
use pumice::types::{ByteOrder, FixedString, Float, StringPadding};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The hash of elements of a type in hexadecimal, or nothing for types that h5py converts. The text
/// of a `scalar` was hashed without its padding.
pub(crate) fn hash(datatype: &Datatype, scalar: bool, elements: &[u8]) -> Option<String> {
    let mut hasher = Sha256::new();
    feed(datatype, scalar, elements, &mut hasher)?;
    let mut text = String::new();
    for byte in hasher.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    Some(text)
}

fn feed(datatype: &Datatype, scalar: bool, elements: &[u8], hasher: &mut Sha256) -> Option<()> {
    let size = datatype.size();
    match datatype {
        Datatype::Integer(integer) if integer.is_full() => {
            feed_numbers(integer.size, integer.order, elements, hasher)
        }
        Datatype::Enum(enumeration) if enumeration.base.is_full() => {
            feed_numbers(enumeration.base.size, enumeration.base.order, elements, hasher)
        }
        Datatype::Float(float) if is_standard(float) => {
            feed_numbers(float.size, float.order, elements, hasher)
        }
        Datatype::Complex(complex) if is_standard(&complex.base) => {
            feed_numbers(complex.base.size, complex.base.order, elements, hasher)
        }
        Datatype::String(string) => {
            let texts = elements.chunks_exact(size);
            texts.for_each(|element| feed_text(string, scalar, element, hasher));
            Some(())
        }
        Datatype::Opaque(_) => {
            hasher.update(elements);
            Some(())
        }
        Datatype::Array(array) => feed(&array.base, false, elements, hasher),
        Datatype::Compound(compound) => {
            // h5py takes two equal floats of these names for a complex number.
            let names: Vec<&str> = compound.members.iter().map(|member| &*member.name).collect();
            let complex = names == ["r", "i"];
            for member in &compound.members {
                if complex {
                    return None;
                }
                hasher.update(&member.name);
                let (start, length) = (member.offset as usize, member.datatype.size());
                let column = elements.chunks_exact(size);
                let column = column.map(|element| element.get(start..start + length));
                let column = column.collect::<Option<Vec<_>>>()?.concat();
                feed(&member.datatype, scalar, &column, hasher)?;
            }
            Some(())
        }
        _ => None,
    }
}

fn is_standard(float: &Float) -> bool {
    let standard = [Float::half, Float::single, Float::double];
    standard.iter().any(|standard| *float == standard(float.order))
}

fn feed_numbers(size: u32, order: ByteOrder, elements: &[u8], hasher: &mut Sha256) -> Option<()> {
    if !matches!(size, 1 | 2 | 4 | 8) {
        return None;
    }
    match order {
        ByteOrder::Little => hasher.update(elements),
        ByteOrder::Big => {
            let mut turned = elements.to_vec();
            turned.chunks_exact_mut(size as usize).for_each(<[u8]>::reverse);
            hasher.update(turned);
        }
        ByteOrder::Vax => return None,
    }
    Some(())
}

/// Text padded with null bytes, or of a scalar without them, but never nothing.
fn feed_text(string: &FixedString, scalar: bool, element: &[u8], hasher: &mut Sha256) {
    let end = match string.padding {
        StringPadding::NullTerminate => element.iter().position(|&byte| byte == 0),
        StringPadding::NullPad => None,
        StringPadding::SpacePad => {
            Some(element.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1))
        }
    };
    let mut padded = element.to_vec();
    padded[end.unwrap_or(element.len())..].fill(0);
    if scalar {
        let end = padded.iter().rposition(|&byte| byte != 0).map_or(1, |last| last + 1);
        padded.truncate(end);
    }
    hasher.update(padded);
}
