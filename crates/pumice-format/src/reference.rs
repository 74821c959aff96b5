//! References to objects, regions of datasets and attributes, as elements have them.
//!
//! ```text
//! object            address
//! region            global heap id; the object there: address, serialised selection
//! revised, object   type (2), flags, bytes of the token, token (an address)
//! revised, others   type, flags, size (4 bytes), global heap id; the object there, by type and flags:
//!                   bytes of the token, token,
//!                   [length (2 bytes) and name of the file]               flag 1
//!                   [size (4), rank (4), serialised selection]            type 3
//!                   [length (2 bytes) and name of the attribute]          type 4
//! ```

use crate::error::fits;
use crate::{Context, DecodeError, FormatError, Sizes, UNDEFINED};
use pumice_bytes::{Reader, Writer};
use pumice_types::ReferenceKind;

const STRUCTURE: &str = "reference";

const OBJECT: u8 = 2;
const REGION: u8 = 3;
const ATTRIBUTE: u8 = 4;
const IN_OTHER_FILE: u8 = 1;

/// The parts of a reference in an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored<'b> {
    /// A null reference.
    Null,
    /// A reference that the element holds whole.
    Whole(Reference),
    /// The rest is in the global heap.
    InHeap {
        /// Type and flags of a revised reference; none of an older one to a region.
        head: Option<[u8; 2]>,
        /// Address and index in the global heap.
        id: &'b [u8],
    },
}

/// A reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The file of the object, if that is another one.
    pub file: Option<String>,
    /// The address of the object's header.
    pub address: u64,
    /// The part of the object.
    pub target: Target,
}

/// The part of an object that a reference names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// The whole object.
    Object,
    /// Elements of a dataset.
    Region {
        /// The number of the dataset's dimensions; 0 in older references, which do not say.
        rank: u32,
        /// The serialised selection.
        selection: Vec<u8>,
    },
    /// An attribute of it, by name.
    Attribute(String),
}

impl Stored<'_> {
    /// Decodes an element.
    ///
    /// ```
    /// use pumice_format::Context;
    /// use pumice_format::reference::{Stored, Target};
    /// use pumice_types::ReferenceKind;
    ///
    /// let element = 0x320u64.to_le_bytes();
    /// let stored = Stored::decode(ReferenceKind::Object, &element, &Context::default())?;
    /// let Stored::Whole(reference) = stored else { unreachable!() };
    /// assert_eq!((reference.address, reference.target), (0x320, Target::Object));
    /// # Ok::<(), pumice_format::DecodeError>(())
    /// ```
    pub fn decode<'b>(
        kind: ReferenceKind,
        element: &'b [u8],
        context: &Context,
    ) -> Result<Stored<'b>, DecodeError> {
        let mut reader = context.reader(STRUCTURE, element);
        match kind {
            ReferenceKind::Object => {
                let address = reader.offset(context.offset_width())?;
                Ok(if is_null(address) { Stored::Null } else { Stored::Whole(object(address)) })
            }
            ReferenceKind::Region => heap_id(None, element, context),
            _ => decode_revised(reader, element, context),
        }
    }
}

fn is_null(address: u64) -> bool {
    address == 0 || address == UNDEFINED
}

fn object(address: u64) -> Reference {
    Reference { file: None, address, target: Target::Object }
}

fn heap_id<'b>(
    head: Option<[u8; 2]>,
    id: &'b [u8],
    context: &Context,
) -> Result<Stored<'b>, DecodeError> {
    let mut reader = context.reader(STRUCTURE, id);
    let address = reader.offset(context.offset_width())?;
    reader.u32()?;
    Ok(if is_null(address) { Stored::Null } else { Stored::InHeap { head, id } })
}

fn decode_revised<'b>(
    mut reader: Reader<'_>,
    element: &'b [u8],
    context: &Context,
) -> Result<Stored<'b>, DecodeError> {
    let head = reader.array::<2>()?;
    if head == [OBJECT, 0] {
        return Ok(Stored::Whole(object(token(&mut reader, context)?)));
    }
    // Type and flags, then the size of the heap's part, which the heap knows itself.
    heap_id(Some(head), element.get(6..).unwrap_or_default(), context)
}

/// The address in a token, which begins with its own length.
fn token(reader: &mut Reader<'_>, context: &Context) -> Result<u64, DecodeError> {
    let start = reader.clone();
    let length = usize::from(reader.u8()?);
    if length != context.offset_width() {
        return Err(start.error(format!("a token of {} bytes", context.offset_width()), length));
    }
    reader.offset(length)
}

fn text(reader: &mut Reader<'_>) -> Result<String, DecodeError> {
    let start = reader.clone();
    let length = usize::from(reader.u16()?);
    let bytes = reader.take(length)?;
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.trim_end_matches('\0').into()),
        Err(_) => Err(start.error("a name in UTF-8", bytes.escape_ascii())),
    }
}

impl Reference {
    /// Decodes the global heap's part of a reference whose element has `head`.
    pub fn decode_heaped(
        head: Option<[u8; 2]>,
        bytes: &[u8],
        context: &Context,
    ) -> Result<Self, DecodeError> {
        let mut reader = context.reader(STRUCTURE, bytes);
        let Some([kind, flags]) = head else {
            let address = reader.offset(context.offset_width())?;
            let selection = bytes.get(context.offset_width()..).unwrap_or_default().to_vec();
            let target = Target::Region { rank: 0, selection };
            return Ok(Self { file: None, address, target });
        };
        let start = reader.clone();
        let address = token(&mut reader, context)?;
        let file = match flags & IN_OTHER_FILE {
            0 => None,
            _ => Some(text(&mut reader)?),
        };
        let target = match kind {
            OBJECT => Target::Object,
            REGION => {
                let size = reader.u32()? as usize;
                let rank = reader.u32()?;
                Target::Region { rank, selection: reader.take(size)?.to_vec() }
            }
            ATTRIBUTE => Target::Attribute(text(&mut reader)?),
            other => return Err(start.unknown("a reference of type 2, 3 or 4", 4u8, other)),
        };
        Ok(Self { file, address, target })
    }
}

/// A reference on its way to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Encoded {
    /// The element, all of it.
    Whole(Vec<u8>),
    /// A part for the global heap, and the bytes of the element before the heap id.
    InHeap {
        /// Type, flags and size of a revised reference; empty for an older one to a region.
        head: Vec<u8>,
        /// The object in the heap.
        object: Vec<u8>,
    },
}

impl Reference {
    /// Encodes it as an element of a reference type.
    ///
    /// ```
    /// use pumice_format::reference::{Encoded, Reference, Target};
    /// use pumice_types::ReferenceKind;
    ///
    /// let reference = Reference { file: None, address: 0x320, target: Target::Object };
    /// let encoded = reference.encode(ReferenceKind::Object, Default::default())?;
    /// assert_eq!(encoded, Encoded::Whole(0x320u64.to_le_bytes().to_vec()));
    /// # Ok::<(), pumice_format::FormatError>(())
    /// ```
    pub fn encode(&self, kind: ReferenceKind, sizes: Sizes) -> Result<Encoded, FormatError> {
        let width = usize::from(sizes.offset);
        let mut object = Vec::new();
        match (kind, &self.target, &self.file) {
            (ReferenceKind::Object, Target::Object, None) => {
                object.put_uint(self.address, width);
                Ok(Encoded::Whole(object))
            }
            (ReferenceKind::Region, Target::Region { selection, .. }, None) => {
                object.put_uint(self.address, width);
                object.put_bytes(selection);
                Ok(Encoded::InHeap { head: Vec::new(), object })
            }
            (ReferenceKind::Object | ReferenceKind::Region, ..) => {
                let what = "what a reference of this type cannot mean";
                Err(FormatError::unencodable(STRUCTURE, what))
            }
            _ => self.encode_revised(width),
        }
    }

    fn encode_revised(&self, width: usize) -> Result<Encoded, FormatError> {
        let mut object = vec![width as u8];
        object.put_uint(self.address, width);
        let flags = if self.file.is_some() { IN_OTHER_FILE } else { 0 };
        if (&self.target, flags) == (&Target::Object, 0) {
            let mut element = vec![OBJECT, 0];
            element.put_bytes(&object);
            return Ok(Encoded::Whole(element));
        }
        if let Some(file) = &self.file {
            put_text(file, &mut object)?;
        }
        let kind = match &self.target {
            Target::Object => OBJECT,
            Target::Region { rank, selection } => {
                object.put_uint(fits(STRUCTURE, "selection", 0xFFFF_FFFF, selection.len())?, 4);
                object.put_u32(*rank);
                object.put_bytes(selection);
                REGION
            }
            Target::Attribute(name) => {
                put_text(name, &mut object)?;
                ATTRIBUTE
            }
        };
        let mut head = vec![kind, flags];
        head.put_uint(fits(STRUCTURE, "reference", 0xFFFF_FFFF, object.len())?, 4);
        Ok(Encoded::InHeap { head, object })
    }
}

fn put_text(text: &str, out: &mut Vec<u8>) -> Result<(), FormatError> {
    out.put_uint(fits(STRUCTURE, "name", 0xFFFF, text.len())?, 2);
    out.put_bytes(text.as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revised_references_name_files_regions_and_attributes() {
        let context = Context::default();
        let mut bytes = vec![8];
        bytes.extend(0x99u64.to_le_bytes());
        let plain = bytes.clone();
        bytes.extend(b"\x04\0a.h5");
        let mut named = bytes.clone();
        named.extend(b"\x03\0abc");
        let found = Reference::decode_heaped(Some([4, 1]), &named, &context).unwrap();
        assert_eq!((found.address, found.file.as_deref()), (0x99, Some("a.h5")));
        assert_eq!(found.target, Target::Attribute("abc".into()));
        let mut region = plain.clone();
        region.extend([2, 0, 0, 0, 1, 0, 0, 0, 7, 7]);
        let found = Reference::decode_heaped(Some([3, 0]), &region, &context).unwrap();
        assert_eq!(found.target, Target::Region { rank: 1, selection: vec![7, 7] });
        for end in 0..region.len() {
            assert!(Reference::decode_heaped(Some([3, 0]), &region[..end], &context).is_err());
        }
        assert!(Reference::decode_heaped(Some([9, 0]), &plain, &context).is_err());
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let (context, revised) = (Context::default(), ReferenceKind::Object2 { version: 1 });
        let targets = [
            Target::Object,
            Target::Region { rank: 2, selection: vec![1, 2, 3] },
            Target::Attribute("a".into()),
        ];
        for target in targets {
            for file in [None, Some("b.h5".to_string())] {
                let reference = Reference { file, address: 0x123, target: target.clone() };
                let back = match reference.encode(revised, context.sizes).unwrap() {
                    Encoded::Whole(mut element) => {
                        element.resize(18, 0);
                        match Stored::decode(revised, &element, &context).unwrap() {
                            Stored::Whole(found) => found,
                            other => panic!("{other:?}"),
                        }
                    }
                    Encoded::InHeap { head, object } => {
                        assert_eq!(head[2..], (object.len() as u32).to_le_bytes());
                        Reference::decode_heaped(Some([head[0], head[1]]), &object, &context)
                            .unwrap()
                    }
                };
                assert_eq!(back, reference);
            }
        }
        let region = Target::Region { rank: 0, selection: vec![9] };
        let reference = Reference { file: None, address: 7, target: region };
        let encoded = reference.encode(ReferenceKind::Region, context.sizes).unwrap();
        let Encoded::InHeap { head, object } = encoded else { panic!("{encoded:?}") };
        assert!(head.is_empty());
        assert_eq!(Reference::decode_heaped(None, &object, &context).unwrap(), reference);
        assert!(reference.encode(ReferenceKind::Object, context.sizes).is_err());
    }

    #[test]
    fn elements_hold_objects_themselves_and_the_rest_in_the_heap() {
        let (context, kind) = (Context::default(), ReferenceKind::Object2 { version: 1 });
        let mut element = vec![2, 0, 8];
        element.extend(0x77u64.to_le_bytes());
        element.extend([0; 7]);
        assert_eq!(Stored::decode(kind, &element, &context).unwrap(), Stored::Whole(object(0x77)));
        // The same in another file: a size and an id in the heap follow.
        (element[1], element[6]) = (1, 0x40);
        let stored = Stored::decode(kind, &element, &context).unwrap();
        assert!(matches!(stored, Stored::InHeap { head: Some([2, 1]), id } if id.len() == 12));
        assert_eq!(Stored::decode(kind, &[0; 18], &context).unwrap(), Stored::Null);
        assert_eq!(Stored::decode(ReferenceKind::Object, &[0; 8], &context).unwrap(), Stored::Null);
        assert_eq!(
            Stored::decode(ReferenceKind::Region, &[0; 12], &context).unwrap(),
            Stored::Null
        );
        assert!(Stored::decode(ReferenceKind::Region, &[1; 11], &context).is_err());
    }
}
