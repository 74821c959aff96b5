//! The table of shared messages ("SMTB"): which kinds of messages the file keeps once for all
//! objects, and in which fractal heap. Read only.
//!
//! The table's indexes (lists and B-trees by hash) serve writers only: an object header names a
//! shared message by its heap id.

use crate::{Context, DecodeError};

const STRUCTURE: &str = "shared message table";
const MESSAGE: &str = "shared message table message";

/// The shared message table message (0x000F) of a superblock extension: where the table is.
///
/// ```
/// use pumice_format::Context;
/// use pumice_format::shared_message_table::SharedMessageTableInfo;
///
/// let bytes = [0, 0x40, 0, 0, 0, 0, 0, 0, 0, 2];
/// let info = SharedMessageTableInfo::decode(&bytes, &Context::default())?;
/// assert_eq!((info.address, info.indexes), (0x40, 2));
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedMessageTableInfo {
    /// The table.
    pub address: u64,
    /// How many indexes it has.
    pub indexes: u8,
}

impl SharedMessageTableInfo {
    /// Decodes the body of a message.
    pub fn decode(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let mut reader = context.reader(MESSAGE, bytes);
        let start = reader.clone();
        match reader.u8()? {
            0 => {
                Ok(Self { address: reader.offset(context.offset_width())?, indexes: reader.u8()? })
            }
            version => Err(start.error("version 0", version)),
        }
    }

    /// Bytes of the table.
    pub fn table_length(&self, context: &Context) -> usize {
        8 + usize::from(self.indexes) * (14 + 2 * context.offset_width())
    }
}

/// One index of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedMessageIndex {
    /// Bit `n` is set if messages of kind `n` are kept here.
    pub kinds: u16,
    /// Messages of fewer bytes are not shared.
    pub min_size: u32,
    /// How many messages there are.
    pub messages: u16,
    /// The list or B-tree of the messages.
    pub index_address: u64,
    /// The fractal heap with their bodies, or undefined.
    pub heap_address: u64,
    /// Bytes of the index, if it is a list.
    pub list_length: Option<u64>,
}

impl SharedMessageIndex {
    /// Whether messages of a kind are kept here.
    pub fn keeps(&self, kind: u16) -> bool {
        1u16.checked_shl(kind.into()).is_some_and(|bit| self.kinds & bit != 0)
    }

    /// Decodes a table.
    pub fn decode_table(
        bytes: &[u8],
        indexes: u8,
        context: &Context,
    ) -> Result<Vec<Self>, DecodeError> {
        let mut reader = context.reader(STRUCTURE, bytes);
        reader.signature(b"SMTB")?;
        let mut table = Vec::new();
        for _ in 0..indexes {
            let start = reader.clone();
            let [version, form] = reader.array()?;
            if version != 0 {
                return Err(start.error("version 0", version));
            }
            let kinds = reader.u16()?;
            let min_size = reader.u32()?;
            let most = reader.u16()?; // up to how many messages the index is a list
            reader.skip(2)?; // from how many messages on it is one again
            // Signature, checksum; for each place a location, a hash, and a heap id or an address.
            let place = 5 + 12.max(4 + context.offset_width() as u64);
            let list_length = (form == 0).then(|| 8 + u64::from(most) * place);
            let messages = reader.u16()?;
            table.push(Self {
                kinds,
                min_size,
                messages,
                index_address: reader.offset(context.offset_width())?,
                heap_address: reader.offset(context.offset_width())?,
                list_length,
            });
        }
        reader.checksum()?;
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pumice_bytes::Writer;

    #[test]
    fn a_table_names_the_heap_of_each_kind() {
        let mut bytes = b"SMTB".to_vec();
        for (kinds, heap) in [(0b10u16, 0x100u64), (0b1000, 0x200)] {
            bytes.put_bytes(&[0, 0]);
            bytes.put_u16(kinds);
            bytes.put_u32(50);
            bytes.put_bytes(&[50, 0, 40, 0, 3, 0]);
            bytes.put_u64(0x80);
            bytes.put_u64(heap);
        }
        bytes.put_checksum(0);
        let context = Context::default();
        let info = SharedMessageTableInfo { address: 0, indexes: 2 };
        assert_eq!(info.table_length(&context), bytes.len());
        let table = SharedMessageIndex::decode_table(&bytes, 2, &context).unwrap();
        let heaps: Vec<_> =
            table.iter().map(|index| (index.keeps(3), index.heap_address)).collect();
        assert_eq!(heaps, [(false, 0x100), (true, 0x200)]);
        assert!(!table[0].keeps(99));
        bytes[6] ^= 1;
        assert!(SharedMessageIndex::decode_table(&bytes, 2, &context).is_err());
    }
}
