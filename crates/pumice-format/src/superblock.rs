//! The superblock: the first structure of a file, which names field widths and the root group.
//!
//! Versions 2 and 3 have a checksum, 3 has consistency flags. Versions 0 and 1 name the root group
//! through a symbol table entry.
//!
//! All addresses in a file but the base address count from the base address, which is where the
//! superblock stands. This module hands them out as they are stored.

use crate::symbol_table_node::SymbolTableEntry;
use crate::{Context, DecodeError, FormatError, Sizes, UNDEFINED};
use pumice_bytes::{Reader, Writer};

const STRUCTURE: &str = "superblock";

/// The eight bytes that an HDF5 file begins with.
pub const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";

/// Bytes that are enough for every version of the superblock.
pub const MAX_LENGTH: usize = 128;

/// libhdf5's rank of chunk index nodes where the superblock does not say.
const DEFAULT_CHUNK_INTERNAL_K: u16 = 32;

/// Consistency flag: a writer has, or had, the file open.
pub const OPEN_FOR_WRITING: u8 = 0x01;
/// Consistency flag: that writer is a single writer with many readers.
pub const OPEN_FOR_SWMR_WRITING: u8 = 0x04;

/// The superblock.
///
/// ```
/// use pumice_format::superblock::Superblock;
///
/// let superblock = Superblock::new(0x30, 0x1000);
/// let mut bytes = Vec::new();
/// superblock.encode(&mut bytes)?;
/// assert_eq!(bytes.len(), 48);
/// assert_eq!(Superblock::decode(&bytes, 0)?, superblock);
/// # Ok::<(), pumice_format::FormatError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// 0 to 3.
    pub version: u8,
    /// Widths of addresses and lengths.
    pub sizes: Sizes,
    /// [`OPEN_FOR_WRITING`] and [`OPEN_FOR_SWMR_WRITING`]; meaningful from version 3 on.
    pub consistency_flags: u8,
    /// The address that all others count from.
    pub base_address: u64,
    /// The superblock extension's object header, or undefined; from version 2 on.
    pub extension_address: u64,
    /// The first byte after the file's own bytes.
    pub end_of_file: u64,
    /// The root group's object header.
    pub root_address: u64,
    /// Fields of versions 0 and 1.
    pub old: Option<OldSuperblock>,
}

/// Fields that versions 0 and 1 have beside the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldSuperblock {
    /// Half the least number of entries of a symbol table node.
    pub group_leaf_k: u16,
    /// Half the least number of children of a group's B-tree node.
    pub group_internal_k: u16,
    /// The rank of B-tree nodes of chunks, in version 1; libhdf5 uses 32 for version 0.
    pub chunk_internal_k: u16,
    /// The address of the file's free space, which no writer ever stored.
    pub free_space_address: u64,
    /// The driver information block, or undefined.
    pub driver_address: u64,
    /// The root group's entry, with its cached B-tree and heap.
    pub root: SymbolTableEntry,
}

impl Superblock {
    /// A version 3 superblock of a file with 8-byte widths that begins at address 0.
    pub fn new(root_address: u64, end_of_file: u64) -> Self {
        Self {
            version: 3,
            sizes: Sizes::default(),
            consistency_flags: 0,
            base_address: 0,
            extension_address: UNDEFINED,
            end_of_file,
            root_address,
            old: None,
        }
    }

    /// The possible addresses of a superblock in a file of `length` bytes: 0, 512, 1024, and so on.
    ///
    /// ```
    /// use pumice_format::superblock::Superblock;
    ///
    /// assert!(Superblock::candidates(2000).eq([0, 512, 1024]));
    /// ```
    pub fn candidates(length: u64) -> impl Iterator<Item = u64> {
        let doubling = std::iter::successors(Some(512u64), |offset| offset.checked_mul(2));
        std::iter::once(0).chain(doubling).take_while(move |&offset| offset < length)
    }

    /// Whether `bytes` begin with the signature.
    pub fn is_signature(bytes: &[u8]) -> bool {
        bytes.starts_with(&SIGNATURE)
    }

    /// Decodes a superblock from the first [`MAX_LENGTH`] bytes (or all there are) at `address`.
    pub fn decode(bytes: &[u8], address: u64) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(STRUCTURE, address, bytes);
        let start = reader.clone();
        let signature = reader.array::<8>()?;
        if signature != SIGNATURE {
            return Err(start.error("the HDF5 signature", signature.escape_ascii()));
        }
        let start = reader.clone();
        match reader.u8()? {
            version @ 0..=1 => decode_old(version, &mut reader),
            version @ 2..=3 => decode_new(version, &mut reader),
            version => Err(start.unknown("version 0 to 3", 3u8, version)),
        }
    }

    /// A version 0 superblock with libhdf5's ranks, whose root group is an old-style one.
    pub fn new_old(root: SymbolTableEntry, end_of_file: u64) -> Self {
        let old = OldSuperblock {
            group_leaf_k: 4,
            group_internal_k: 16,
            chunk_internal_k: DEFAULT_CHUNK_INTERNAL_K,
            free_space_address: UNDEFINED,
            driver_address: UNDEFINED,
            root,
        };
        let root_address = old.root.header_address;
        Self { version: 0, old: Some(old), ..Self::new(root_address, end_of_file) }
    }

    /// The bytes that it takes.
    pub fn encoded_length(&self) -> usize {
        let width = usize::from(self.sizes.offset);
        match self.version {
            0..=1 => {
                let entry = SymbolTableEntry::encoded_length(&Context::new(self.sizes));
                24 + 4 * usize::from(self.version) + 4 * width + entry
            }
            _ => 16 + 4 * width,
        }
    }

    /// Appends the superblock.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), FormatError> {
        if let Some(old) = self.old.as_ref().filter(|_| self.version < 2) {
            self.encode_old(old, out);
            return Ok(());
        }
        if !(2..=3).contains(&self.version) {
            let what = format!("version {}", self.version);
            return Err(FormatError::unencodable(STRUCTURE, what));
        }
        let start = out.len();
        let width = usize::from(self.sizes.offset);
        out.put_bytes(&SIGNATURE);
        out.put_bytes(&[self.version, self.sizes.offset, self.sizes.length]);
        out.put_u8(self.consistency_flags);
        out.put_uint(self.base_address, width);
        out.put_uint(self.extension_address, width);
        out.put_uint(self.end_of_file, width);
        out.put_uint(self.root_address, width);
        out.put_checksum(start);
        Ok(())
    }

    fn encode_old(&self, old: &OldSuperblock, out: &mut Vec<u8>) {
        let width = usize::from(self.sizes.offset);
        out.put_bytes(&SIGNATURE);
        out.put_bytes(&[self.version, 0, 0, 0, 0, self.sizes.offset, self.sizes.length, 0]);
        out.put_u16(old.group_leaf_k);
        out.put_u16(old.group_internal_k);
        out.put_u32(u32::from(self.consistency_flags));
        if self.version == 1 {
            out.put_u16(old.chunk_internal_k);
            out.put_zeros(2);
        }
        out.put_uint(self.base_address, width);
        out.put_uint(old.free_space_address, width);
        out.put_uint(self.end_of_file, width);
        out.put_uint(old.driver_address, width);
        old.root.encode(self.sizes, out);
    }
}

fn decode_new(version: u8, reader: &mut Reader<'_>) -> Result<Superblock, DecodeError> {
    let sizes = decode_sizes(reader)?;
    let width = usize::from(sizes.offset);
    let superblock = Superblock {
        version,
        sizes,
        consistency_flags: reader.u8()?,
        base_address: reader.offset(width)?,
        extension_address: reader.offset(width)?,
        end_of_file: reader.offset(width)?,
        root_address: reader.offset(width)?,
        old: None,
    };
    reader.checksum()?;
    Ok(superblock)
}

fn decode_old(version: u8, reader: &mut Reader<'_>) -> Result<Superblock, DecodeError> {
    let start = reader.clone();
    let [free_space, root_group, _, shared_header] = reader.array()?;
    let highest = free_space.max(root_group).max(shared_header);
    if highest > 0 {
        let expected = "versions 0 of free space, root and shared header";
        return Err(start.unknown(expected, 0u8, highest));
    }
    let sizes = decode_sizes(reader)?;
    let width = usize::from(sizes.offset);
    reader.skip(1)?;
    let ([group_leaf_k, group_internal_k, chunk_internal_k], consistency_flags) =
        decode_ranks(version, reader)?;
    let base_address = reader.offset(width)?;
    let free_space_address = reader.offset(width)?;
    let end_of_file = reader.offset(width)?;
    let driver_address = reader.offset(width)?;
    let root = SymbolTableEntry::decode(reader, &Context::new(sizes))?;
    Ok(Superblock {
        version,
        sizes,
        consistency_flags,
        base_address,
        extension_address: UNDEFINED,
        end_of_file,
        root_address: root.header_address,
        old: Some(OldSuperblock {
            group_leaf_k,
            group_internal_k,
            chunk_internal_k,
            free_space_address,
            driver_address,
            root,
        }),
    })
}

/// Ranks of B-trees (leaf and node of groups, node of chunk indexes) and the flags among them.
fn decode_ranks(version: u8, reader: &mut Reader<'_>) -> Result<([u16; 3], u8), DecodeError> {
    let start = reader.clone();
    let (group_leaf_k, group_internal_k) = (reader.u16()?, reader.u16()?);
    let flags = reader.u32()?;
    let mut chunk_internal_k = DEFAULT_CHUNK_INTERNAL_K;
    if version == 1 {
        chunk_internal_k = reader.u16()?;
        reader.skip(2)?;
    }
    let ranks = [group_leaf_k, group_internal_k, chunk_internal_k];
    if ranks.contains(&0) {
        return Err(start.error("B-tree ranks above 0", 0));
    }
    Ok((ranks, flags as u8))
}

/// Widths of 2, 4 or 8 bytes. The format knows 16 and 32 too, which no address needs.
fn decode_sizes(reader: &mut Reader<'_>) -> Result<Sizes, DecodeError> {
    let start = reader.clone();
    let sizes = Sizes { offset: reader.u8()?, length: reader.u8()? };
    for width in [sizes.offset, sizes.length] {
        if ![2, 4, 8].contains(&width) {
            return Err(start.error("addresses and lengths of 2, 4 or 8 bytes", width));
        }
    }
    Ok(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbol_table_node::Scratch;

    #[test]
    fn version_3_has_the_documented_bytes() {
        let mut superblock = Superblock::new(0x30, 0x1234);
        superblock.consistency_flags = OPEN_FOR_WRITING;
        let mut bytes = Vec::new();
        superblock.encode(&mut bytes).unwrap();
        let mut expected = SIGNATURE.to_vec();
        expected.extend_from_slice(&[3, 8, 8, 1]);
        expected.extend_from_slice(&[0; 8]);
        expected.extend_from_slice(&[0xFF; 8]);
        expected.extend_from_slice(&[0x34, 0x12, 0, 0, 0, 0, 0, 0, 0x30, 0, 0, 0, 0, 0, 0, 0]);
        expected.put_checksum(0);
        assert_eq!(bytes, expected);
        assert_eq!(Superblock::decode(&bytes, 0).unwrap(), superblock);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let mut bytes = Vec::new();
        Superblock::new(0x30, 0x1234).encode(&mut bytes).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Superblock::decode(&damaged, 0).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn every_shorter_superblock_is_refused() {
        let mut bytes = Vec::new();
        Superblock::new(0x30, 0x1234).encode(&mut bytes).unwrap();
        for end in 0..bytes.len() {
            assert!(Superblock::decode(&bytes[..end], 0).is_err(), "{end}");
        }
    }

    #[test]
    fn version_0_names_the_root_group_and_its_cache() {
        let mut bytes = SIGNATURE.to_vec();
        bytes.put_bytes(&[0, 0, 0, 0, 0, 8, 8, 0]);
        bytes.put_u16(4);
        bytes.put_u16(16);
        bytes.put_u32(0);
        bytes.put_u64(0);
        bytes.put_u64(UNDEFINED);
        bytes.put_u64(0x800);
        bytes.put_u64(UNDEFINED);
        bytes.put_u64(0); // name offset
        bytes.put_u64(0x60);
        bytes.put_u32(1);
        bytes.put_u32(0);
        bytes.put_u64(0x88);
        bytes.put_u64(0x2A8);
        let superblock = Superblock::decode(&bytes, 0).unwrap();
        assert_eq!((superblock.root_address, superblock.end_of_file), (0x60, 0x800));
        let old = superblock.old.unwrap();
        assert_eq!((old.group_leaf_k, old.group_internal_k, old.chunk_internal_k), (4, 16, 32));
        let scratch = Scratch::Group { btree_address: 0x88, heap_address: 0x2A8 };
        assert_eq!(old.root.scratch, scratch);
    }

    #[test]
    fn old_versions_are_written_as_they_are_read() {
        let scratch = Scratch::Group { btree_address: 0x88, heap_address: 0x2A8 };
        let root = SymbolTableEntry { name_offset: 0, header_address: 0x60, scratch };
        for version in 0..2 {
            let superblock = Superblock { version, ..Superblock::new_old(root.clone(), 0x800) };
            let mut bytes = Vec::new();
            superblock.encode(&mut bytes).unwrap();
            assert_eq!(bytes.len(), superblock.encoded_length());
            assert_eq!(Superblock::decode(&bytes, 0).unwrap(), superblock);
        }
    }

    #[test]
    fn superblocks_are_looked_for_at_doubling_offsets() {
        assert!(Superblock::candidates(0).eq([]));
        assert!(Superblock::candidates(1).eq([0]));
        assert!(Superblock::candidates(513).eq([0, 512]));
        assert_eq!(Superblock::candidates(u64::MAX).last(), Some(1 << 63));
    }
}
