//! The place of a shared message: in a committed datatype's header, or in the shared message heap.

use crate::{Context, DecodeError, Sizes};
use pumice_bytes::Writer;

const STRUCTURE: &str = "shared message";

const IN_HEAP: u8 = 1;
const COMMITTED: u8 = 2;

/// The place of a message that is stored elsewhere.
///
/// ```
/// use pumice_format::messages::SharedLocation;
/// use pumice_format::{Context, Sizes};
///
/// let location = SharedLocation::Object { address: 0x320 };
/// let mut bytes = Vec::new();
/// location.encode(Sizes::default(), &mut bytes);
/// assert_eq!(SharedLocation::decode(&bytes, &Context::default())?, location);
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedLocation {
    /// The first message of the same kind in another object header, as with committed datatypes.
    Object {
        /// The address of that header.
        address: u64,
    },
    /// An object of the file's shared message heap.
    Heap {
        /// Its fractal heap id.
        id: [u8; 8],
    },
}

impl SharedLocation {
    /// Decodes the body of a message that is flagged as shared, version 1 to 3.
    pub fn decode(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let mut reader = context.reader(STRUCTURE, bytes);
        let start = reader.clone();
        let version = reader.u8()?;
        let kind = reader.u8()?;
        match version {
            1 => reader.skip(6 + context.length_width())?,
            2 => {}
            3 if kind == IN_HEAP => return Ok(Self::Heap { id: reader.array()? }),
            3 => {}
            version => return Err(start.unknown("version 1 to 3", 3u8, version)),
        }
        Ok(Self::Object { address: reader.offset(context.offset_width())? })
    }

    /// Appends the body in version 3.
    pub fn encode(&self, sizes: Sizes, out: &mut Vec<u8>) {
        match self {
            Self::Object { address } => {
                out.put_bytes(&[3, COMMITTED]);
                out.put_uint(*address, usize::from(sizes.offset));
            }
            Self::Heap { id } => {
                out.put_bytes(&[3, IN_HEAP]);
                out.put_bytes(id);
            }
        }
    }
}

/// Something that is either here or stored elsewhere.
///
/// ```
/// use pumice_format::messages::Shareable;
///
/// assert_eq!(Shareable::Here(5).here(), Some(&5));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shareable<T> {
    /// The thing itself.
    Here(T),
    /// The place of the message.
    Shared(SharedLocation),
}

impl<T> Shareable<T> {
    /// The thing, if it is here.
    pub fn here(&self) -> Option<&T> {
        match self {
            Self::Here(thing) => Some(thing),
            Self::Shared(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_is_read() {
        let context = Context::default();
        let mut first = vec![1, 0, 0, 0, 0, 0, 0, 0];
        first.put_u64(0);
        first.put_u64(0x320);
        let second = [2, 0, 0x20, 3, 0, 0, 0, 0, 0, 0];
        let object = SharedLocation::Object { address: 0x320 };
        assert_eq!(SharedLocation::decode(&first, &context).unwrap(), object);
        assert_eq!(SharedLocation::decode(&second, &context).unwrap(), object);
        let heap = [3, 1, 1, 2, 3, 4, 5, 6, 7, 8];
        let expected = SharedLocation::Heap { id: [1, 2, 3, 4, 5, 6, 7, 8] };
        assert_eq!(SharedLocation::decode(&heap, &context).unwrap(), expected);
        assert!(SharedLocation::decode(&[4, 1], &context).is_err());
    }
}
