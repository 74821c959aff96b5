//! The table of shared messages ("SMTB"): which kinds of messages the file keeps once for all
//! objects, and in which fractal heap.
//!
//! The table's indexes (lists and B-trees by hash) serve writers only: an object header names a
//! shared message by its heap id. Lists are written, not read.

use crate::{Context, DecodeError, Sizes};
use pumice_bytes::{Lookup3, Writer};

const STRUCTURE: &str = "shared message table";
const MESSAGE: &str = "shared message table message";
/// Signature and checksum of a list.
const LIST_FRAME: u64 = 8;
/// The number of messages below which a B-tree becomes a list again: libhdf5's default.
const LEAST_OF_TREE: u16 = 40;

/// Bytes of a message in a list: a location, a hash, and a heap id or an address.
fn place(context: &Context) -> u64 {
    5 + 12.max(4 + context.offset_width() as u64)
}

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
    /// The number of its indexes.
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
            version => Err(start.unknown("version 0", 0u8, version)),
        }
    }

    /// The body of a message.
    pub fn encode(&self, sizes: Sizes) -> Vec<u8> {
        let mut out = vec![0];
        out.put_uint(self.address, usize::from(sizes.offset));
        out.put_u8(self.indexes);
        out
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
    /// The number of messages.
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

    /// A table of indexes that are lists.
    pub fn encode_table(table: &[Self], sizes: Sizes) -> Vec<u8> {
        let width = usize::from(sizes.offset);
        let mut out = b"SMTB".to_vec();
        for index in table {
            let list = index.list_length.unwrap_or(LIST_FRAME);
            let most = list.saturating_sub(LIST_FRAME) / place(&Context::new(sizes));
            out.put_bytes(&[0, 0]);
            out.put_u16(index.kinds);
            out.put_u32(index.min_size);
            out.put_u16(most as u16);
            out.put_u16(LEAST_OF_TREE);
            out.put_u16(index.messages);
            out.put_uint(index.index_address, width);
            out.put_uint(index.heap_address, width);
        }
        out.put_checksum(0);
        out
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
                return Err(start.unknown("version 0", 0u8, version));
            }
            let kinds = reader.u16()?;
            let min_size = reader.u32()?;
            let most = reader.u16()?; // up to how many messages the index is a list
            reader.skip(2)?; // from how many messages on it is one again
            let list_length =
                (form == 0).then(|| SharedMessageRecord::list_length(most.into(), context));
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

/// A message in the list of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedMessageRecord {
    /// The hash by which writers find it.
    pub hash: u32,
    /// The number of object headers that name it.
    pub references: u32,
    /// Its id in the heap.
    pub id: [u8; 8],
}

impl SharedMessageRecord {
    /// A message of a kind that is in the heap.
    pub fn new(kind: u16, body: &[u8], references: u32, id: [u8; 8]) -> Self {
        Self { hash: Lookup3::seeded(body, kind.into()).finish(), references, id }
    }

    /// Bytes of a list with room for so many messages.
    pub fn list_length(messages: u64, context: &Context) -> u64 {
        LIST_FRAME + messages * place(context)
    }

    /// A list ("SMLI") with room for `room` messages. Its checksum is behind the last of those that are
    /// there.
    pub fn encode_list(records: &[Self], room: usize, sizes: Sizes) -> Vec<u8> {
        let context = Context::new(sizes);
        let mut out = b"SMLI".to_vec();
        for record in records {
            let end = out.len() + place(&context) as usize;
            out.put_u8(0); // in the heap
            out.put_u32(record.hash);
            out.put_u32(record.references);
            out.put_bytes(&record.id);
            out.resize(end, 0);
        }
        out.put_checksum(0);
        out.resize(Self::list_length(room.max(records.len()) as u64, &context) as usize, 0);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pumice_bytes::Writer;

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let index = SharedMessageIndex {
            kinds: 0b1000,
            min_size: 50,
            messages: 3,
            index_address: 0x300,
            heap_address: 0x400,
            list_length: Some(SharedMessageRecord::list_length(50, &Context::default())),
        };
        let bytes = SharedMessageIndex::encode_table(&[index, index], Sizes::default());
        let found = SharedMessageIndex::decode_table(&bytes, 2, &Context::default()).unwrap();
        assert_eq!(found, [index, index]);
        let info = SharedMessageTableInfo { address: 0x500, indexes: 2 };
        let body = info.encode(Sizes::default());
        assert_eq!(SharedMessageTableInfo::decode(&body, &Context::default()).unwrap(), info);
    }

    #[test]
    fn a_list_has_its_checksum_behind_what_is_there() {
        let record = SharedMessageRecord::new(3, b"a datatype", 7, [1; 8]);
        let list = SharedMessageRecord::encode_list(&[record; 2], 50, Sizes::default());
        assert_eq!(list.len(), 8 + 50 * 17);
        let sum = u32::from_le_bytes(list[38..42].try_into().unwrap());
        assert_eq!(sum, pumice_bytes::lookup3(&list[..38]));
        assert!(list[42..].iter().all(|&byte| byte == 0));
    }

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
