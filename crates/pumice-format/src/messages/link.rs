//! The link message (0x0006): one link of a new-style group, in its header or in its heap.
//!
//! ```text
//! 01 | flags | [type u8] | [creation order u64] | [character set u8] | name length (1,2,4,8) |
//! name | hard: address; soft: u16, path; external: u16, 00, file NUL, path NUL
//! ```

use crate::error::fits;
use crate::text::{lossy, terminated};
use crate::{Context, DecodeError, FormatError, Sizes};
use pumice_bytes::{Reader, Writer};
use pumice_types::CharacterSet;

const STRUCTURE: &str = "link message";

const HAS_ORDER: u8 = 0x04;
const HAS_TYPE: u8 = 0x08;
const HAS_CHARSET: u8 = 0x10;

const HARD: u8 = 0;
const SOFT: u8 = 1;
const EXTERNAL: u8 = 64;

/// A link.
///
/// ```
/// use pumice_format::messages::{Link, LinkTarget};
/// use pumice_format::{Context, Sizes};
///
/// let link = Link::new("temperature", LinkTarget::Hard { address: 0x320 });
/// let mut bytes = Vec::new();
/// link.encode(Sizes::default(), &mut bytes)?;
/// assert_eq!(Link::decode(&bytes, &Context::default())?, link);
/// # Ok::<(), pumice_format::FormatError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The name, without slashes.
    pub name: String,
    /// The encoding that the name claims.
    pub charset: CharacterSet,
    /// Its place in the order of creation, if the group tracks it.
    pub creation_order: Option<u64>,
    /// The target.
    pub target: LinkTarget,
}

/// The target of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkTarget {
    /// An object of this file.
    Hard {
        /// Its header.
        address: u64,
    },
    /// A path in this file, which need not exist.
    Soft {
        /// The path.
        path: String,
    },
    /// A path in another file.
    External {
        /// The file's name.
        file: String,
        /// The path in it.
        path: String,
    },
    /// A link of a class that its author has registered.
    UserDefined {
        /// The class, 65 to 255.
        class: u8,
        /// The stored bytes.
        data: Vec<u8>,
    },
}

impl Link {
    /// A link without creation order; the character set follows the name.
    pub fn new(name: impl Into<String>, target: LinkTarget) -> Self {
        let name = name.into();
        let charset = if name.is_ascii() { CharacterSet::Ascii } else { CharacterSet::Utf8 };
        Self { name, charset, creation_order: None, target }
    }

    /// Decodes the body of a message, or an object of a group's heap.
    pub fn decode(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let mut reader = context.reader(STRUCTURE, bytes);
        let start = reader.clone();
        let [version, flags] = reader.array()?;
        if version != 1 {
            return Err(start.unknown("version 1", 1u8, version));
        }
        if flags & 0xE0 != 0 {
            return Err(start.reserved("flags of bits 0 to 4", flags));
        }
        let class = if flags & HAS_TYPE != 0 { reader.u8()? } else { HARD };
        let creation_order = if flags & HAS_ORDER != 0 { Some(reader.u64()?) } else { None };
        let charset = if flags & HAS_CHARSET != 0 {
            decode_charset(&mut reader)?
        } else {
            CharacterSet::Ascii
        };
        let before = reader.clone();
        let length = reader.uint(1 << (flags & 3))?;
        if length == 0 {
            return Err(before.error("a name", "none"));
        }
        let length = reader.count(length, 1)?;
        let name = lossy(reader.take(length)?);
        let target = LinkTarget::decode(class, &mut reader, context)?;
        Ok(Self { name, charset, creation_order, target })
    }

    /// Appends the body of a message.
    pub fn encode(&self, sizes: Sizes, out: &mut Vec<u8>) -> Result<(), FormatError> {
        if self.name.is_empty() {
            return Err(FormatError::unencodable(STRUCTURE, "a link without name"));
        }
        let width_bits = match self.name.len() {
            0..=0xFF => 0,
            0x100..=0xFFFF => 1,
            _ => 2,
        };
        let length = fits(STRUCTURE, "name length", u64::from(u32::MAX), self.name.len())?;
        let class = self.target.class();
        let utf8 = self.charset == CharacterSet::Utf8;
        let mut flags = width_bits;
        for (set, flag) in [
            (class != HARD, HAS_TYPE),
            (self.creation_order.is_some(), HAS_ORDER),
            (utf8, HAS_CHARSET),
        ] {
            if set {
                flags |= flag;
            }
        }
        out.put_bytes(&[1, flags]);
        if class != HARD {
            out.put_u8(class);
        }
        if let Some(order) = self.creation_order {
            out.put_u64(order);
        }
        if utf8 {
            out.put_u8(1);
        }
        out.put_uint(length, 1 << width_bits);
        out.put_bytes(self.name.as_bytes());
        self.target.encode(sizes, out)
    }
}

impl LinkTarget {
    fn class(&self) -> u8 {
        match self {
            Self::Hard { .. } => HARD,
            Self::Soft { .. } => SOFT,
            Self::External { .. } => EXTERNAL,
            Self::UserDefined { class, .. } => *class,
        }
    }

    fn decode(class: u8, reader: &mut Reader<'_>, context: &Context) -> Result<Self, DecodeError> {
        let start = reader.clone();
        if class == HARD {
            return Ok(Self::Hard { address: reader.offset(context.offset_width())? });
        }
        let length = reader.u16()?;
        let address = reader.address();
        let value = reader.take(usize::from(length))?;
        match class {
            SOFT if value.is_empty() => Err(start.error("a path", "none")),
            SOFT => Ok(Self::Soft { path: lossy(value) }),
            EXTERNAL => decode_external(&mut Reader::new(STRUCTURE, address, value)),
            65.. => Ok(Self::UserDefined { class, data: value.to_vec() }),
            // Classes below 64 are reserved for HDF5.
            class => Err(start.unknown("link type 0, 1 or 64 to 255", SOFT, class)),
        }
    }

    fn encode(&self, sizes: Sizes, out: &mut Vec<u8>) -> Result<(), FormatError> {
        let field = "bytes of the target";
        match self {
            Self::Hard { address } => out.put_uint(*address, usize::from(sizes.offset)),
            Self::Soft { path } => {
                if path.is_empty() {
                    return Err(FormatError::unencodable(STRUCTURE, "a soft link without path"));
                }
                out.put_uint(fits(STRUCTURE, field, 0xFFFF, path.len())?, 2);
                out.put_bytes(path.as_bytes());
            }
            Self::External { file, path } => {
                if file.contains('\0') || path.contains('\0') {
                    return Err(FormatError::unencodable(STRUCTURE, "null bytes in a name"));
                }
                let length = file.len().saturating_add(path.len()).saturating_add(3);
                out.put_uint(fits(STRUCTURE, field, 0xFFFF, length)?, 2);
                for bytes in [&[0], file.as_bytes(), &[0], path.as_bytes(), &[0]] {
                    out.put_bytes(bytes);
                }
            }
            Self::UserDefined { class, data } => {
                if *class <= EXTERNAL {
                    return Err(FormatError::unencodable(STRUCTURE, format!("class {class}")));
                }
                out.put_uint(fits(STRUCTURE, field, 0xFFFF, data.len())?, 2);
                out.put_bytes(data);
            }
        }
        Ok(())
    }
}

fn decode_external(reader: &mut Reader<'_>) -> Result<LinkTarget, DecodeError> {
    let start = reader.clone();
    let head = reader.u8()?;
    if head >> 4 != 0 {
        return Err(start.unknown("version 0 of an external link", 0u8, head >> 4));
    }
    let file = terminated(reader, 1)?;
    let path = terminated(reader, 1)?;
    Ok(LinkTarget::External { file, path })
}

/// A byte that names a character set.
pub(super) fn decode_charset(reader: &mut Reader<'_>) -> Result<CharacterSet, DecodeError> {
    let start = reader.clone();
    match reader.u8()? {
        0 => Ok(CharacterSet::Ascii),
        1 => Ok(CharacterSet::Utf8),
        charset => Err(start.unknown("character set 0 or 1", 1u8, charset)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_hard_link_has_the_documented_bytes() {
        let bytes = [1, 0, 3, b'a', b'b', b'c', 0x20, 3, 0, 0, 0, 0, 0, 0];
        let link = Link::new("abc", LinkTarget::Hard { address: 0x320 });
        assert_eq!(Link::decode(&bytes, &Context::default()).unwrap(), link);
        let mut out = Vec::new();
        link.encode(Sizes::default(), &mut out).unwrap();
        assert_eq!(out, bytes);
    }

    #[test]
    fn an_external_link_has_the_documented_bytes() {
        let mut bytes = vec![1, 0x18, 64, 1, 1, b'x', 8, 0];
        bytes.extend_from_slice(b"\0f.h5\0/\0");
        let target = LinkTarget::External { file: "f.h5".into(), path: "/".into() };
        let link = Link { charset: CharacterSet::Utf8, ..Link::new("x", target) };
        assert_eq!(Link::decode(&bytes, &Context::default()).unwrap(), link);
        let mut out = Vec::new();
        link.encode(Sizes::default(), &mut out).unwrap();
        assert_eq!(out, bytes);
    }

    #[test]
    fn wide_name_lengths_are_read() {
        for bits in 0..4u8 {
            let mut bytes = vec![1, bits];
            bytes.put_uint(1, 1 << bits);
            bytes.put_u8(b'n');
            bytes.put_u64(0x10);
            let link = Link::decode(&bytes, &Context::default()).unwrap();
            assert_eq!(link.name, "n");
        }
        let huge = [1, 3, 255, 255, 255, 255, 255, 255, 255, 255, b'n'];
        assert!(Link::decode(&huge, &Context::default()).is_err());
    }

    fn target() -> impl Strategy<Value = LinkTarget> {
        prop_oneof![
            (0u64..1 << 60).prop_map(|address| LinkTarget::Hard { address }),
            "[a-z/]{1,300}".prop_map(|path| LinkTarget::Soft { path }),
            ("[a-z]{0,9}", "[a-zé/]{0,9}")
                .prop_map(|(file, path)| LinkTarget::External { file, path }),
            (65u8.., prop::collection::vec(any::<u8>(), 0..9))
                .prop_map(|(class, data)| LinkTarget::UserDefined { class, data }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn links_survive_a_round_trip(
            name in "[a-zä ]{1,300}",
            target in target(),
            creation_order in prop::option::of(any::<u64>()),
        ) {
            let link = Link { creation_order, ..Link::new(name, target) };
            let mut bytes = Vec::new();
            link.encode(Sizes::default(), &mut bytes).unwrap();
            prop_assert_eq!(Link::decode(&bytes, &Context::default()).unwrap(), link);
        }
    }
}
