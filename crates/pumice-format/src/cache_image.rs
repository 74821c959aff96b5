//! The image of libhdf5's metadata cache ("MDCI"): blocks of metadata that the writer kept together
//! when it closed the file, and may not have written to their own places. Read only.

use crate::{Context, DecodeError};

const STRUCTURE: &str = "metadata cache image";

/// The cache image message (0x0018) of a superblock extension: where the image is.
///
/// ```
/// use pumice_format::Context;
/// use pumice_format::cache_image::CacheImageInfo;
///
/// let bytes = [0, 0x40, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, 0, 0, 0, 0];
/// let info = CacheImageInfo::decode(&bytes, &Context::default())?;
/// assert_eq!((info.address, info.length), (0x40, 100));
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheImageInfo {
    /// Its address, or undefined.
    pub address: u64,
    /// Its bytes.
    pub length: u64,
}

impl CacheImageInfo {
    /// Decodes the body of a message.
    pub fn decode(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let mut reader = context.reader("metadata cache image message", bytes);
        let start = reader.clone();
        match reader.u8()? {
            0 => Ok(Self {
                address: reader.offset(context.offset_width())?,
                length: reader.uint(context.length_width())?,
            }),
            version => Err(start.unknown("version 0", 0u8, version)),
        }
    }
}

/// A block of metadata in an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedBlock {
    /// Its place in the file.
    pub address: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Decodes the blocks of an image.
pub fn decode(bytes: &[u8], context: &Context) -> Result<Vec<CachedBlock>, DecodeError> {
    let mut reader = context.reader(STRUCTURE, bytes);
    reader.signature(b"MDCI")?;
    let start = reader.clone();
    let [version, flags] = reader.array()?;
    if version != 0 {
        return Err(start.unknown("version 0", 0u8, version));
    }
    if flags != 0 {
        return Err(start.reserved("no flags", flags));
    }
    reader.skip(context.length_width())?;
    let count = reader.u32()?;
    let head = 14 + context.offset_width() + context.length_width();
    let count = reader.count(u64::from(count), head)?;
    let mut blocks = Vec::with_capacity(count);
    for _ in 0..count {
        reader.skip(8)?; // type, flags, ring, age, counts of dependent blocks
        let parents = reader.u16()?;
        reader.skip(4)?; // place in the order of use
        let address = reader.offset(context.offset_width())?;
        let length = reader.uint(context.length_width())?;
        reader.skip(usize::from(parents).saturating_mul(context.offset_width()))?;
        let length = reader.count(length, 1)?;
        blocks.push(CachedBlock { address, bytes: reader.take(length)?.to_vec() });
    }
    reader.checksum()?;
    Ok(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pumice_bytes::Writer;

    #[test]
    fn blocks_come_with_their_places() {
        let mut bytes = b"MDCI\0\0".to_vec();
        bytes.put_u64(0);
        bytes.put_u32(2);
        for (address, parents) in [(0x100u64, 0u16), (0x200, 2)] {
            bytes.put_zeros(8);
            bytes.put_u16(parents);
            bytes.put_u32(0);
            bytes.put_u64(address);
            bytes.put_u64(3);
            bytes.put_zeros(8 * usize::from(parents));
            bytes.put_bytes(b"abc");
        }
        bytes.put_checksum(0);
        let context = Context::default();
        let blocks = decode(&bytes, &context).unwrap();
        let found: Vec<_> = blocks.iter().map(|block| (block.address, &*block.bytes)).collect();
        assert_eq!(found, [(0x100, &b"abc"[..]), (0x200, b"abc")]);
        bytes[14] = 255;
        assert!(decode(&bytes, &context).is_err(), "more blocks than bytes");
    }
}
