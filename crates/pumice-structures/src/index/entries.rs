//! Encoded entries of an array, in memory: a page, a data block or the first of an index block.
//!
//! Entries stay encoded until they are asked for: loading costs a checksum, writing costs a copy.

use pumice_bytes::{DecodeError, Reader};
use pumice_format::index::{ChunkRecord, RecordFormat};
use pumice_medium::zeroed;
use pumice_medium::{Error, Result};
use std::collections::HashSet;

/// Memory of a page beside its entries.
pub(super) const PAGE_OVERHEAD: usize = 64;

/// Some entries, and whether they differ from the file.
#[derive(Debug, Default)]
pub(super) struct Entries {
    pub(super) bytes: Vec<u8>,
    pub(super) dirty: bool,
}

impl Entries {
    /// Entries as the file has them.
    pub(super) fn loaded(bytes: Vec<u8>) -> Self {
        Self { bytes, dirty: false }
    }

    /// `count` entries of chunks that are not stored.
    pub(super) fn unset(format: &RecordFormat, count: u64) -> Result<Self> {
        let unset = unset_entry(format);
        let size = usize::try_from(count).ok().and_then(|count| count.checked_mul(unset.len()));
        let size = size.ok_or_else(|| Error::NoMemory(format!("no memory for {count} entries")))?;
        let mut bytes = zeroed(size)?;
        bytes.chunks_exact_mut(unset.len().max(1)).for_each(|entry| entry.copy_from_slice(&unset));
        Ok(Self { bytes, dirty: true })
    }

    /// Entry number `entry`.
    pub(super) fn record(&self, format: &RecordFormat, entry: u64) -> Result<Option<ChunkRecord>> {
        let size = format.entry_size();
        let start = usize::try_from(entry).ok().and_then(|entry| entry.checked_mul(size));
        match start.and_then(|start| self.bytes.get(start..start.checked_add(size)?)) {
            Some(bytes) => Ok(format.decode_entry(&mut Reader::new("chunk record", 0, bytes))?),
            None => Err(missing(entry, self.bytes.len() / size).into()),
        }
    }

    /// Replaces entry number `entry`; `None` for a chunk that is no longer stored.
    pub(super) fn set(
        &mut self,
        format: &RecordFormat,
        entry: u64,
        record: Option<&ChunkRecord>,
    ) -> Result<()> {
        let size = format.entry_size();
        let encoded = match record {
            Some(record) => {
                let mut encoded = Vec::with_capacity(size);
                format.encode_entry(record, &mut encoded)?;
                encoded
            }
            None => unset_entry(format),
        };
        let count = self.bytes.len() / size;
        let start = usize::try_from(entry).ok().and_then(|entry| entry.checked_mul(size));
        match start.and_then(|start| self.bytes.get_mut(start..start.checked_add(size)?)) {
            Some(bytes) => bytes.copy_from_slice(&encoded),
            None => return Err(missing(entry, count).into()),
        }
        self.dirty = true;
        Ok(())
    }

    /// The number of entries.
    pub(super) fn count(&self, format: &RecordFormat) -> u64 {
        (self.bytes.len() / format.entry_size()) as u64
    }
}

/// The bytes of the entry of a chunk that is not stored.
pub(super) fn unset_entry(format: &RecordFormat) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(format.entry_size());
    format.encode_unset(&mut bytes);
    bytes
}

fn missing(entry: u64, count: usize) -> DecodeError {
    DecodeError::new("chunk record", 0, format!("an entry below {count}"), entry)
}

/// The blocks of one index that are in memory, by address.
///
/// A block has one parent. A damaged file where two refer to the same block could make a large
/// index of a small file, or a tree without end.
#[derive(Debug, Default)]
pub struct Claims(HashSet<u64>);

impl Claims {
    /// Takes a block while loading it; fails if it was taken before.
    pub fn claim<T>(
        &mut self,
        address: u64,
        structure: &'static str,
        load: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        if !self.0.insert(address) {
            let expected = "a block with one parent";
            return Err(DecodeError::new(structure, address, expected, "two of them").into());
        }
        load().inspect_err(|_| self.release(address))
    }

    /// Gives up the claim to a block that was freed, or could not be loaded.
    pub fn release(&mut self, address: u64) {
        self.0.remove(&address);
    }
}
