//! What a file driver stored about a file that consists of several: in a block of its own
//! (superblocks 0 and 1) or in message 0x0014 of the superblock extension.
//!
//! ```text
//! block                        message
//! 0  version (0)               0  version (0)
//! 1  reserved, 3 bytes         1  driver, 8 bytes
//! 4  size, 4 bytes             9  size, 2 bytes
//! 8  driver, 8 bytes           11 the driver's own data
//! 16 the driver's own data
//! ```
//!
//! That of a family is the size of its members, 8 bytes. That of a multi file (a split file is one):
//!
//! ```text
//! 0  for each kind of data: the kind whose member has it, from 1 on, or 0 for its own, 6 bytes
//! 6  reserved, 2 bytes
//! 8  for each member, in the order of the first kind that it has: where it begins, 8 bytes, and how many
//!    of its bytes are in use, 8 bytes
//!    their names, in the same order, each with a zero behind it and filled up to a multiple of 8 bytes
//! ```

use crate::{Context, DecodeError};
use pumice_bytes::{Reader, Writer as _};

/// Bytes of a block before the driver's own data.
pub const BLOCK_PREFIX: usize = 16;

/// Bytes of a driver's data that are believed: the names of six files and some numbers.
const MAX_SIZE: usize = 1 << 16;

/// The kinds of data in a multi file: superblock, B-trees, raw data, global heaps, local heaps,
/// object headers.
const KINDS: usize = 6;

/// The driver of families.
const FAMILY: &[u8; 8] = b"NCSAfami";

/// The driver of multi and split files.
const MULTI: &[u8; 8] = b"NCSAmult";

/// Driver information.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DriverInfo {
    /// Members of one size, one after another.
    Family {
        /// Bytes of every member but the last.
        member_size: u64,
    },
    /// Members by kind of data; a split file has two, metadata and raw data.
    Multi(Multi),
    /// Another driver, such as one of a single file: its name.
    Other(String),
}

/// The kinds of data in a multi file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataKind {
    /// The superblock and the driver information.
    Superblock,
    /// B-trees.
    Tree,
    /// Elements.
    Raw,
    /// Global heaps.
    GlobalHeap,
    /// Local heaps and similar structures: blocks of fractal heaps and of arrays.
    LocalHeap,
    /// Object headers, and headers of other structures.
    Header,
}

/// The members of a multi file, by kind of data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multi {
    /// For each kind, the kind whose member has it, from 1 on, or 0 for its own.
    pub map: [u8; KINDS],
    /// The members, in the order of the first kind that they have: the first one has the superblock.
    pub members: Vec<MultiMember>,
}

impl Multi {
    /// The number of the member that has data of a kind.
    ///
    /// ```
    /// use pumice_format::driver_info::{DataKind, Multi};
    ///
    /// let split = Multi { map: [1, 1, 3, 3, 1, 1], members: Vec::new() };
    /// assert_eq!(split.member(DataKind::Header), 0);
    /// assert_eq!(split.member(DataKind::GlobalHeap), 1);
    /// let multi = Multi { map: [0; 6], members: Vec::new() };
    /// assert_eq!(multi.member(DataKind::GlobalHeap), 3);
    /// ```
    pub fn member(&self, kind: DataKind) -> usize {
        let owner = self.owner(kind as usize);
        let others = (0..KINDS).map(|kind| self.owner(kind));
        let mut before: Vec<usize> = Vec::with_capacity(KINDS);
        for other in others.take_while(|&other| other != owner) {
            if !before.contains(&other) {
                before.push(other);
            }
        }
        before.len()
    }

    /// The kind that stands for the member of this one.
    fn owner(&self, kind: usize) -> usize {
        let mapped = self.map.get(kind).copied().unwrap_or(0);
        usize::from(mapped).checked_sub(1).unwrap_or(kind)
    }

    /// The number of members that the map names.
    fn count(&self) -> usize {
        let mut seen = [false; KINDS];
        for kind in 0..KINDS {
            if let Some(seen) = seen.get_mut(self.owner(kind)) {
                *seen = true;
            }
        }
        seen.iter().filter(|&&seen| seen).count()
    }
}

/// A member of a multi file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultiMember {
    /// The address of its first byte.
    pub start: u64,
    /// Its bytes in use.
    pub used: u64,
    /// Its name, with `%s` for the name of the whole.
    pub name: String,
}

impl DriverInfo {
    /// The block that says this, in a file with an older superblock.
    ///
    /// ```
    /// use pumice_format::Context;
    /// use pumice_format::driver_info::DriverInfo;
    ///
    /// let family = DriverInfo::Family { member_size: 4096 };
    /// assert_eq!(DriverInfo::decode_block(&family.to_block(), &Context::default())?, family);
    /// # Ok::<(), pumice_format::DecodeError>(())
    /// ```
    pub fn to_block(&self) -> Vec<u8> {
        let (name, data) = self.encode();
        let mut out = vec![0; 4];
        out.put_u32(data.len() as u32);
        out.put_bytes(&name);
        out.put_bytes(&data);
        out
    }

    /// The body of the message that says this.
    ///
    /// ```
    /// use pumice_format::Context;
    /// use pumice_format::driver_info::DriverInfo;
    ///
    /// let family = DriverInfo::Family { member_size: 4096 };
    /// assert_eq!(DriverInfo::decode_message(&family.to_message(), &Context::default())?, family);
    /// # Ok::<(), pumice_format::DecodeError>(())
    /// ```
    pub fn to_message(&self) -> Vec<u8> {
        let (name, data) = self.encode();
        let mut out = vec![0];
        out.put_bytes(&name);
        out.put_u16(data.len() as u16);
        out.put_bytes(&data);
        out
    }

    /// The driver's name and its data; the data of an unknown driver are unknown.
    fn encode(&self) -> ([u8; 8], Vec<u8>) {
        match self {
            Self::Family { member_size } => (*FAMILY, member_size.to_le_bytes().to_vec()),
            Self::Multi(multi) => (*MULTI, encode_multi(multi)),
            Self::Other(other) => {
                let mut name = [0; 8];
                name.iter_mut().zip(other.bytes()).for_each(|(to, from)| *to = from);
                (name, Vec::new())
            }
        }
    }

    /// The bytes of a block that begins with `bytes`.
    pub fn block_length(bytes: &[u8], context: &Context) -> Result<usize, DecodeError> {
        let mut reader = context.reader("driver information block", bytes);
        expect_version(&mut reader)?;
        reader.skip(3)?;
        let start = reader.clone();
        let size = reader.u32()? as usize;
        if size > MAX_SIZE {
            return Err(start.error(format!("at most {MAX_SIZE} bytes"), size));
        }
        Ok(BLOCK_PREFIX + size)
    }

    /// Decodes a block of [`block_length`](Self::block_length) bytes.
    ///
    /// ```
    /// use pumice_format::Context;
    /// use pumice_format::driver_info::DriverInfo;
    ///
    /// let mut block = vec![0, 0, 0, 0, 8, 0, 0, 0];
    /// block.extend(b"NCSAfami\x00\x04\0\0\0\0\0\0");
    /// let info = DriverInfo::decode_block(&block, &Context::default())?;
    /// assert_eq!(info, DriverInfo::Family { member_size: 1024 });
    /// # Ok::<(), pumice_format::DecodeError>(())
    /// ```
    pub fn decode_block(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let mut reader = context.reader("driver information block", bytes);
        expect_version(&mut reader)?;
        reader.skip(7)?;
        let name = reader.array::<8>()?;
        decode_data(&name, reader)
    }

    /// Decodes the body of a message.
    pub fn decode_message(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let mut reader = context.reader("driver info message", bytes);
        expect_version(&mut reader)?;
        let name = reader.array::<8>()?;
        reader.skip(2)?;
        decode_data(&name, reader)
    }
}

fn expect_version(reader: &mut Reader<'_>) -> Result<(), DecodeError> {
    let start = reader.clone();
    match reader.u8()? {
        0 => Ok(()),
        version => Err(start.unknown("version 0", 0u8, version)),
    }
}

fn decode_data(name: &[u8; 8], mut reader: Reader<'_>) -> Result<DriverInfo, DecodeError> {
    match name {
        FAMILY => {
            let start = reader.clone();
            match reader.u64()? {
                0 => Err(start.error("members of at least one byte", 0)),
                member_size => Ok(DriverInfo::Family { member_size }),
            }
        }
        MULTI => decode_multi(&mut reader),
        other => {
            let name = String::from_utf8_lossy(other).trim_end_matches('\0').to_string();
            Ok(DriverInfo::Other(name))
        }
    }
}

fn encode_multi(multi: &Multi) -> Vec<u8> {
    let mut out = multi.map.to_vec();
    out.put_u16(0);
    for member in &multi.members {
        out.put_u64(member.start);
        out.put_u64(member.used);
    }
    for member in &multi.members {
        out.put_bytes(member.name.as_bytes());
        let filled = (member.name.len() + 1).next_multiple_of(8);
        out.put_bytes(&vec![0; filled - member.name.len()]);
    }
    out
}

fn decode_multi(reader: &mut Reader<'_>) -> Result<DriverInfo, DecodeError> {
    let start = reader.clone();
    let map = reader.array::<KINDS>()?;
    if let Some(mapped) = map.iter().find(|&&mapped| usize::from(mapped) > KINDS) {
        return Err(start.error("kinds of data from 0 to 6", mapped));
    }
    reader.skip(2)?;
    let mut multi = Multi { map, members: Vec::with_capacity(KINDS) };
    for _ in 0..multi.count() {
        let (start, used) = (reader.u64()?, reader.u64()?);
        multi.members.push(MultiMember { start, used, name: String::new() });
    }
    for member in &mut multi.members {
        let start = reader.clone();
        let mut name = Vec::new();
        // Names end with a zero and fill whole groups of eight.
        loop {
            let group = reader.array::<8>()?;
            name.extend(group.iter().take_while(|&&byte| byte != 0));
            if group.contains(&0) {
                break;
            }
        }
        member.name = String::from_utf8(name)
            .map_err(|error| start.error("a name in UTF-8", error.as_bytes().escape_ascii()))?;
    }
    Ok(DriverInfo::Multi(multi))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split() -> Vec<u8> {
        let mut data = vec![1, 1, 3, 1, 1, 1, 0, 0];
        for number in [0u64, 0x800, i64::MAX as u64, 0x400] {
            data.extend(number.to_le_bytes());
        }
        data.extend(b"%s-m.h5\0%s-raw.h5\0\0\0\0\0\0\0");
        data
    }

    #[test]
    fn members_of_a_split_file_have_names_and_places() {
        let mut block = vec![0, 0, 0, 0, split().len() as u8, 0, 0, 0];
        block.extend(b"NCSAmult");
        block.extend(split());
        let context = Context::default();
        assert_eq!(DriverInfo::block_length(&block, &context).unwrap(), block.len());
        let info = DriverInfo::decode_block(&block, &context).unwrap();
        let member = |start, used, name: &str| MultiMember { start, used, name: name.into() };
        let raw = member(i64::MAX as u64, 0x400, "%s-raw.h5");
        let members = vec![member(0, 0x800, "%s-m.h5"), raw];
        assert_eq!(info, DriverInfo::Multi(Multi { map: [1, 1, 3, 1, 1, 1], members }));
        assert_eq!(info.to_block(), block);
        let mut message = b"\0NCSAmult\x40\0".to_vec();
        message.extend(split());
        assert_eq!(info.to_message(), message);
        assert_eq!(DriverInfo::decode_message(&message, &context).unwrap(), info);
        for end in 0..message.len() - 8 {
            assert!(DriverInfo::decode_message(&message[..end], &context).is_err(), "{end}");
        }
    }

    #[test]
    fn every_kind_of_data_has_a_member() {
        use DataKind::*;
        let kinds = [Superblock, Tree, Raw, GlobalHeap, LocalHeap, Header];
        for (map, found) in [
            ([1, 1, 3, 1, 1, 1], [0, 0, 1, 0, 0, 0]),
            ([1, 1, 3, 3, 1, 1], [0, 0, 1, 1, 0, 0]),
            ([0; 6], [0, 1, 2, 3, 4, 5]),
            ([0, 1, 0, 0, 2, 2], [0, 0, 1, 2, 3, 3]),
            ([6, 6, 6, 6, 6, 6], [0; 6]),
        ] {
            let multi = Multi { map, members: Vec::new() };
            assert_eq!(kinds.map(|kind| multi.member(kind)), found, "{map:?}");
            assert_eq!(multi.count(), found.iter().max().unwrap() + 1, "{map:?}");
        }
    }

    #[test]
    fn impossible_members_are_refused_and_unknown_drivers_named() {
        let context = Context::default();
        let decode = |bytes: &[u8]| DriverInfo::decode_message(bytes, &context);
        assert!(decode(b"\0NCSAmult\0\0\x07\0\0\0\0\0\0\0").is_err());
        assert!(decode(b"\0NCSAfami\x08\0\0\0\0\0\0\0\0\0").is_err());
        assert!(decode(b"\x01NCSAfami\x08\0\0\0\0\0\0\0\0\0").is_err());
        assert_eq!(decode(b"\0H5FDsub\0\0\0").unwrap(), DriverInfo::Other("H5FDsub".into()));
    }
}
