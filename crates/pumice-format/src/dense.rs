//! Records of the version 2 B-trees that find dense links and attributes: each names an object of
//! a fractal heap, which is a link or attribute message.
//!
//! | type | of | fields |
//! |---|---|---|
//! | 5 | links by name | hash u32, id 7 |
//! | 6 | links by creation order | order u64, id 7 |
//! | 8 | attributes by name | id 8, message flags, order u32, hash u32 |
//! | 9 | attributes by creation order | id 8, message flags, order u32 |

use crate::DecodeError;
use pumice_bytes::{Reader, Writer, lookup3};

/// Type of the B-tree that finds links by name.
pub const LINKS_BY_NAME: u8 = 5;
/// Type of the B-tree that finds links by creation order.
pub const LINKS_BY_ORDER: u8 = 6;
/// Type of the B-tree that finds attributes by name.
pub const ATTRIBUTES_BY_NAME: u8 = 8;
/// Type of the B-tree that finds attributes by creation order.
pub const ATTRIBUTES_BY_ORDER: u8 = 9;

/// The checksum of a name, by which links and attributes are ordered; equal ones by the name.
///
/// ```
/// assert_ne!(pumice_format::dense::name_hash("a"), pumice_format::dense::name_hash("b"));
/// ```
pub fn name_hash(name: &str) -> u32 {
    lookup3(name.as_bytes())
}

/// A record of type 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkRecord {
    /// The name's checksum.
    pub hash: u32,
    /// The link's heap id.
    pub id: [u8; 7],
}

impl LinkRecord {
    /// Decodes a record.
    ///
    /// ```
    /// let record = pumice_format::dense::LinkRecord::decode(&[9, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7])?;
    /// assert_eq!((record.hash, record.id), (9, [1, 2, 3, 4, 5, 6, 7]));
    /// # Ok::<(), pumice_format::DecodeError>(())
    /// ```
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("record of a link", 0, bytes);
        Ok(Self { hash: reader.u32()?, id: reader.array()? })
    }

    /// The record's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.hash.to_le_bytes().to_vec();
        bytes.put_bytes(&self.id);
        bytes
    }
}

/// A record of type 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkOrderRecord {
    /// The link's place in the order of creation.
    pub creation_order: u64,
    /// The link's heap id.
    pub id: [u8; 7],
}

impl LinkOrderRecord {
    /// Decodes a record.
    ///
    /// ```
    /// use pumice_format::dense::LinkOrderRecord;
    ///
    /// let record = LinkOrderRecord { creation_order: 9, id: [1, 2, 3, 4, 5, 6, 7] };
    /// assert_eq!(LinkOrderRecord::decode(&record.encode())?, record);
    /// # Ok::<(), pumice_format::DecodeError>(())
    /// ```
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("record of a link", 0, bytes);
        Ok(Self { creation_order: reader.u64()?, id: reader.array()? })
    }

    /// The record's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.creation_order.to_le_bytes().to_vec();
        bytes.put_bytes(&self.id);
        bytes
    }
}

/// A record of type 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributeRecord {
    /// The attribute's heap id.
    pub id: [u8; 8],
    /// The flags that its message would have in an object header.
    pub flags: u8,
    /// Its place in the order of creation.
    pub creation_order: u32,
    /// The name's checksum.
    pub hash: u32,
}

impl AttributeRecord {
    /// Decodes a record.
    ///
    /// ```
    /// let mut bytes = [0; 17];
    /// (bytes[8], bytes[9]) = (2, 3);
    /// let record = pumice_format::dense::AttributeRecord::decode(&bytes)?;
    /// assert_eq!((record.flags, record.creation_order), (2, 3));
    /// # Ok::<(), pumice_format::DecodeError>(())
    /// ```
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new("record of an attribute", 0, bytes);
        Ok(Self {
            id: reader.array()?,
            flags: reader.u8()?,
            creation_order: reader.u32()?,
            hash: reader.u32()?,
        })
    }

    /// The record's bytes in the B-tree by name, type 8.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.encode_in_order();
        bytes.put_u32(self.hash);
        bytes
    }

    /// The record's bytes in the B-tree by creation order, type 9, which has no checksum.
    pub fn encode_in_order(&self) -> Vec<u8> {
        let mut bytes = self.id.to_vec();
        bytes.put_u8(self.flags);
        bytes.put_u32(self.creation_order);
        bytes
    }
}
