//! Common parts of the blocks of fixed and extensible arrays: their first bytes, pages of entries,
//! and the bitmap of existing pages.
//!
//! A page is entries followed by a checksum, without signature: only the bitmap tells whether it
//! was ever written, so a page whose bit is clear must not be read.

use super::RecordKind;
use crate::{DecodeError, Sizes};
use pumice_bytes::{Reader, Writer};

/// Bytes of a checksum.
pub(crate) const CHECKSUM: usize = 4;

/// The array that a block belongs to: every block names its header.
///
/// ```
/// use pumice_format::index::{RecordKind, block::ArrayOwner};
/// let owner = ArrayOwner { header: 0x700, kind: RecordKind::Plain };
/// assert_eq!(owner.kind.client_id(), 0);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayOwner {
    /// The address of its header.
    pub header: u64,
    /// The kind of its entries.
    pub kind: RecordKind,
}

impl ArrayOwner {
    /// Appends opening and owner of a block.
    pub(crate) fn encode(
        self,
        signature: &'static [u8; 4],
        version: u8,
        sizes: Sizes,
        out: &mut Vec<u8>,
    ) {
        Opening { signature, version, kind: self.kind }.encode(out);
        out.put_uint(self.header, usize::from(sizes.offset));
    }

    /// Checks opening and owner of a block.
    pub(crate) fn check(
        self,
        reader: &mut Reader<'_>,
        signature: &'static [u8; 4],
        sizes: Sizes,
    ) -> Result<(), DecodeError> {
        Opening::decode(reader, signature, self.kind)?;
        let before = reader.clone();
        let found = reader.offset(usize::from(sizes.offset))?;
        if found == self.header {
            return Ok(());
        }
        Err(before.error(format!("header address {:#x}", self.header), format!("{found:#x}")))
    }
}

/// The first bytes of every block of an array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    pub(crate) signature: &'static [u8; 4],
    pub(crate) version: u8,
    pub(crate) kind: RecordKind,
}

impl Opening {
    /// Bytes of signature, version and client id.
    pub(crate) const SIZE: usize = 6;

    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        out.put_bytes(self.signature);
        out.put_u8(self.version);
        out.put_u8(self.kind.client_id());
    }

    /// Checks an opening; versions 0 and 1 mean the same.
    pub(crate) fn decode(
        reader: &mut Reader<'_>,
        signature: &'static [u8; 4],
        kind: RecordKind,
    ) -> Result<(), DecodeError> {
        reader.signature(signature)?;
        check_version(reader)?;
        let before = reader.clone();
        match reader.u8()? {
            client if client == kind.client_id() => Ok(()),
            found => Err(before.unknown(
                format!("client id {}", kind.client_id()),
                RecordKind::NEWEST,
                found,
            )),
        }
    }
}

/// Checks the version byte of any index block: 0 and 1 mean the same.
pub(crate) fn check_version(reader: &mut Reader<'_>) -> Result<(), DecodeError> {
    let before = reader.clone();
    match reader.u8()? {
        0 | 1 => Ok(()),
        found => Err(before.unknown("version 0 or 1", 1u8, found)),
    }
}

/// Appends a page: entries and their checksum.
///
/// ```
/// use pumice_format::index::block::{decode_page, encode_page};
/// let mut page = Vec::new();
/// encode_page(&[7; 16], &mut page);
/// assert_eq!(decode_page(&page, 0x100)?, [7; 16]);
/// page[3] ^= 1;
/// assert!(decode_page(&page, 0x100).is_err());
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
pub fn encode_page(entries: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.put_bytes(entries);
    out.put_checksum(start);
}

/// The entries of a page, whose bytes include the checksum.
pub fn decode_page(bytes: &[u8], address: u64) -> Result<&[u8], DecodeError> {
    let mut reader = Reader::new("page of chunk records", address, bytes);
    let entries = reader.take(bytes.len().saturating_sub(CHECKSUM))?;
    reader.checksum()?;
    Ok(entries)
}

/// Whether page `page` was ever written. The first page is the highest bit of the first byte.
///
/// ```
/// use pumice_format::index::block::{page_exists, set_page};
/// let mut bitmap = vec![0; 2];
/// set_page(&mut bitmap, 9);
/// assert_eq!(bitmap, [0, 0b0100_0000]);
/// assert!(page_exists(&bitmap, 9) && !page_exists(&bitmap, 8) && !page_exists(&bitmap, 99));
/// ```
pub fn page_exists(bitmap: &[u8], page: u64) -> bool {
    let byte = usize::try_from(page / 8).ok().and_then(|index| bitmap.get(index));
    byte.is_some_and(|byte| byte & (0x80 >> (page % 8)) != 0)
}

/// The first page from `from` on that was ever written.
///
/// ```
/// use pumice_format::index::block::next_page;
/// let bitmap = [0, 0b0100_0001];
/// assert_eq!((next_page(&bitmap, 0), next_page(&bitmap, 10)), (Some(9), Some(15)));
/// assert_eq!(next_page(&bitmap, 16), None);
/// ```
pub fn next_page(bitmap: &[u8], from: u64) -> Option<u64> {
    let first = usize::try_from(from / 8).ok()?;
    let mut wanted = 0xFFu8 >> (from % 8);
    for (number, byte) in bitmap.iter().enumerate().skip(first) {
        let left = byte & wanted;
        if left != 0 {
            return Some(number as u64 * 8 + u64::from(left.leading_zeros()));
        }
        wanted = 0xFF;
    }
    None
}

/// Marks page `page` as written; a page beyond the bitmap is left alone.
pub fn set_page(bitmap: &mut [u8], page: u64) {
    if let Some(byte) = usize::try_from(page / 8).ok().and_then(|index| bitmap.get_mut(index)) {
        *byte |= 0x80 >> (page % 8);
    }
}

/// The most bytes of an index block that is read or written at once. Real ones have kilobytes; this
/// bounds what the numbers of a damaged file, or of an absurd extent, can make us allocate.
const LARGEST_BLOCK: u64 = 1 << 30;

/// The largest page: pages of real files have 2^10 entries.
pub(crate) const LARGEST_PAGE_BITS: u8 = 20;

/// A length that follows from counts, as a size in memory.
pub(crate) fn in_memory(
    length: Option<u64>,
    structure: &'static str,
    address: u64,
) -> Result<usize, DecodeError> {
    match length.map(usize::try_from) {
        Some(Ok(size)) if size as u64 <= LARGEST_BLOCK => Ok(size),
        _ => {
            let found =
                length.map_or("more than can be counted".into(), |length| length.to_string());
            let expected = format!("a block of at most {LARGEST_BLOCK} byte(s)");
            Err(DecodeError::new(structure, address, expected, found))
        }
    }
}
