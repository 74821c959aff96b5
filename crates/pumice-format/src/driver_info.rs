//! What a file driver stored about a file that consists of several: in a block of its own
//! (superblocks 0 and 1) or in message 0x0014 of the superblock extension. Families are written, too.
//!
//! ```text
//! block                        message
//! 0  version (0)               0  version (0)
//! 1  reserved, 3 bytes         1  driver, 8 bytes
//! 4  size, 4 bytes             9  size, 2 bytes
//! 8  driver, 8 bytes           11 the driver's own data
//! 16 the driver's own data
//! ```

use crate::{Context, DecodeError};
use pumice_bytes::{Reader, Writer as _};

/// Bytes of a block before the driver's own data.
pub const BLOCK_PREFIX: usize = 16;

/// Bytes of a driver's data that are believed: the names of six files and some numbers.
const MAX_SIZE: usize = 1 << 16;

/// What is stored by kind in a file of several: superblock, B-trees, raw data, global heaps, local
/// heaps, object headers.
const KINDS: usize = 6;

/// The driver of families.
const FAMILY: &[u8; 8] = b"NCSAfami";
/// Bytes of its data.
const FAMILY_SIZE: u8 = 8;

/// The block of a family whose members have `member_size` bytes.
///
/// ```
/// use pumice_format::Context;
/// use pumice_format::driver_info::{DriverInfo, family_block};
///
/// let info = DriverInfo::decode_block(&family_block(4096), &Context::default())?;
/// assert_eq!(info, DriverInfo::Family { member_size: 4096 });
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
pub fn family_block(member_size: u64) -> Vec<u8> {
    let mut out = vec![0; 4];
    out.put_u32(FAMILY_SIZE.into());
    out.put_bytes(FAMILY);
    out.put_u64(member_size);
    out
}

/// The body of such a family's message.
///
/// ```
/// use pumice_format::Context;
/// use pumice_format::driver_info::{DriverInfo, family_message};
///
/// let info = DriverInfo::decode_message(&family_message(4096), &Context::default())?;
/// assert_eq!(info, DriverInfo::Family { member_size: 4096 });
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
pub fn family_message(member_size: u64) -> Vec<u8> {
    let mut out = vec![0];
    out.put_bytes(FAMILY);
    out.put_u16(FAMILY_SIZE.into());
    out.put_u64(member_size);
    out
}

/// What a file driver stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DriverInfo {
    /// Members of one size, one after another.
    Family {
        /// Bytes of every member but the last.
        member_size: u64,
    },
    /// Members by kind of what they hold; a split file has two, metadata and raw data. The first is
    /// the one with the superblock.
    Multi(Vec<MultiMember>),
    /// Of a driver that keeps one file, or an unknown one: its name.
    Other(String),
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
        version => Err(start.error("version 0", version)),
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
        b"NCSAmult" => decode_multi(&mut reader),
        other => {
            let name = String::from_utf8_lossy(other).trim_end_matches('\0').to_string();
            Ok(DriverInfo::Other(name))
        }
    }
}

fn decode_multi(reader: &mut Reader<'_>) -> Result<DriverInfo, DecodeError> {
    let count = count_members(reader)?;
    let mut members = Vec::with_capacity(count);
    for _ in 0..count {
        members.push(MultiMember {
            start: reader.u64()?,
            used: reader.u64()?,
            name: String::new(),
        });
    }
    for member in &mut members {
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
    Ok(DriverInfo::Multi(members))
}

/// How many members the map from kinds to members names. Kind 0 stands for the kind itself.
fn count_members(reader: &mut Reader<'_>) -> Result<usize, DecodeError> {
    let start = reader.clone();
    let map = reader.array::<KINDS>()?;
    reader.skip(2)?;
    let mut seen = [false; KINDS];
    for (kind, &mapped) in map.iter().enumerate() {
        let member = if mapped == 0 { kind } else { usize::from(mapped) - 1 };
        match seen.get_mut(member) {
            Some(seen) => *seen = true,
            None => return Err(start.error("kinds of data from 0 to 6", mapped)),
        }
    }
    Ok(seen.iter().filter(|&&seen| seen).count())
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
        assert_eq!(info, DriverInfo::Multi(vec![member(0, 0x800, "%s-m.h5"), raw]));
        let mut message = b"\0NCSAmult\0\0".to_vec();
        message.extend(split());
        assert_eq!(DriverInfo::decode_message(&message, &context).unwrap(), info);
        for end in 0..message.len() - 8 {
            assert!(DriverInfo::decode_message(&message[..end], &context).is_err(), "{end}");
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
