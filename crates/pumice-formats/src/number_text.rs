//! Numbers as text that reads back as the same numbers.

use super::arithmetic::complex_part;
use anyhow::{Result, bail};
use pumice::types::{Conversion, Float};
use pumice::{Datatype, H5Type};
use std::fmt::Write;

/// Elements as text that reads back as the same elements.
pub(super) struct NumberText {
    kind: NumberKind,
    conversion: Conversion,
    wide: usize,
    separator: char,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum NumberKind {
    Signed,
    Unsigned,
    Single,
    Double,
    Complex,
}

impl NumberText {
    /// `separator` stands between the parts of complex numbers.
    pub(super) fn new(datatype: &Datatype, separator: char) -> Result<Self> {
        let (kind, wide) = match datatype {
            Datatype::Integer(integer) if integer.signed => (NumberKind::Signed, i64::datatype()),
            Datatype::Integer(_) => (NumberKind::Unsigned, u64::datatype()),
            Datatype::Enum(enumeration) if enumeration.base.size == 1 => {
                // Truth values: their numbers count.
                let integer = Datatype::Integer(enumeration.base.clone());
                return Self::new(&integer, separator);
            }
            Datatype::Float(Float { size: 2 | 4, .. }) => (NumberKind::Single, f32::datatype()),
            Datatype::Float(_) => (NumberKind::Double, f64::datatype()),
            other => match complex_part(other) {
                Some(part) => {
                    let conversion = Conversion::new(&part, &f64::datatype())?;
                    return Ok(Self { kind: NumberKind::Complex, conversion, wide: 16, separator });
                }
                None => bail!("elements that are {} are no numbers", other.class_name()),
            },
        };
        let size = wide.size();
        Ok(Self { kind, conversion: Conversion::new(datatype, &wide)?, wide: size, separator })
    }

    pub(super) fn field(&self) -> &'static str {
        match self.kind {
            NumberKind::Signed => "integer",
            NumberKind::Unsigned => "unsigned-integer",
            NumberKind::Single | NumberKind::Double => "real",
            NumberKind::Complex => "complex",
        }
    }

    pub(super) fn push(&self, text: &mut String, element: &[u8]) -> Result<()> {
        let mut wide = [0; 16];
        self.conversion.convert(element, &mut wide[..self.wide])?;
        let mut eight = [0; 8];
        eight.copy_from_slice(&wide[..8]);
        let single = f32::from_ne_bytes([wide[0], wide[1], wide[2], wide[3]]);
        // Formatting into a string does not fail.
        let _ = match self.kind {
            NumberKind::Signed => write!(text, "{}", i64::from_ne_bytes(eight)),
            NumberKind::Unsigned => write!(text, "{}", u64::from_ne_bytes(eight)),
            NumberKind::Single => write!(text, "{single:?}"),
            NumberKind::Double => write!(text, "{:?}", f64::from_ne_bytes(eight)),
            NumberKind::Complex => {
                let real = f64::from_ne_bytes(eight);
                eight.copy_from_slice(&wide[8..]);
                write!(text, "{real:?}{}{:?}", self.separator, f64::from_ne_bytes(eight))
            }
        };
        Ok(())
    }
}
