//! The dataspace message, versions 1 and 2.
//!
//! ```text
//! version 1: 01, rank, flags, 5 zero bytes, sizes, [maximum sizes]
//! version 2: 02, rank, flags, type, sizes, [maximum sizes]
//! ```
//! Flag bit 0: maximum sizes are there (all ones: unlimited). Type: 0 scalar, 1 simple, 2 null.

use crate::{Dims, Extent, MAX_RANK, SpaceError, UNLIMITED};
use pumice_bytes::{DecodeError, Reader, Writer};

const FLAG_MAXIMUM: u8 = 1;
const CLASS_SCALAR: u8 = 0;
const CLASS_SIMPLE: u8 = 1;
const CLASS_NULL: u8 = 2;

/// Writes a dataspace message of `version` 1 or 2 with sizes of `length_size` bytes.
///
/// ```
/// use pumice_space::{Extent, serial};
///
/// let mut out = Vec::new();
/// serial::encode_extent(&Extent::simple(&[10])?, 1, 8, &mut out)?;
/// assert_eq!(out, [1, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0]);
/// # Ok::<(), pumice_space::SpaceError>(())
/// ```
pub fn encode_extent(
    extent: &Extent,
    version: u8,
    length_size: usize,
    out: &mut Vec<u8>,
) -> Result<(), SpaceError> {
    if !(1..=2).contains(&version) || !(1..=8).contains(&length_size) {
        return Err(SpaceError::Inexpressible("an extent"));
    }
    let class = match extent {
        Extent::Null if version == 1 => return Err(SpaceError::Inexpressible("a null extent")),
        Extent::Null => CLASS_NULL,
        Extent::Scalar => CLASS_SCALAR,
        Extent::Simple { .. } => CLASS_SIMPLE,
    };
    let all_ones = all_ones(length_size);
    let most = all_ones - 1;
    if let Some(&size) = extent.dims().iter().find(|&&size| size > most) {
        return Err(SpaceError::TooLong { size, most });
    }
    let max = match extent {
        Extent::Simple { max: Some(max), .. } => max.as_slice(),
        _ => &[],
    };
    if let Some(&size) = max.iter().find(|&&size| size > most && size != UNLIMITED) {
        return Err(SpaceError::TooLong { size, most });
    }
    out.put_u8(version);
    out.put_u8(extent.rank() as u8);
    out.put_u8(if max.is_empty() { 0 } else { FLAG_MAXIMUM });
    match version {
        1 => out.put_zeros(5),
        _ => out.put_u8(class),
    }
    for &size in extent.dims().iter().chain(max) {
        out.put_uint(size, length_size);
    }
    Ok(())
}

/// Reads a dataspace message of version 1 or 2 with sizes of `length_size` bytes.
///
/// ```
/// use pumice_bytes::Reader;
/// use pumice_space::{Extent, serial};
///
/// let bytes = [2, 1, 1, 1, 7, 0, 0xFF, 0xFF];
/// let extent = serial::decode_extent(&mut Reader::new("dataspace", 0, &bytes), 2)?;
/// assert_eq!(extent, Extent::with_max(&[7], &[u64::MAX]).unwrap());
/// # Ok::<(), pumice_bytes::DecodeError>(())
/// ```
pub fn decode_extent(reader: &mut Reader<'_>, length_size: usize) -> Result<Extent, DecodeError> {
    let (extent, max) = decode_lenient(reader, length_size)?;
    let Some(max) = max else { return Ok(extent) };
    Extent::with_max(extent.dims(), &max)
        .map_err(|_| reader.error("maximum sizes not below the sizes", format!("{max:?}")))
}

/// Reads a dataspace message; the maximum, if there is one, comes apart and unchecked.
pub(super) fn decode_lenient(
    reader: &mut Reader<'_>,
    length_size: usize,
) -> Result<(Extent, Option<Dims>), DecodeError> {
    let version = reader.u8()?;
    if !(1..=2).contains(&version) {
        return Err(reader.unknown("dataspace version 1 or 2", 2u8, version));
    }
    let rank = usize::from(reader.u8()?);
    if rank > MAX_RANK {
        return Err(reader.error("rank of at most 32", rank));
    }
    let flags = reader.u8()?;
    let mut class = if rank == 0 { CLASS_SCALAR } else { CLASS_SIMPLE };
    match version {
        1 => reader.skip(5)?,
        _ => class = reader.u8()?,
    }
    if class > CLASS_NULL || (class != CLASS_SIMPLE && rank != 0) {
        return Err(reader.error("a dataspace type that fits the rank", class));
    }
    let mut dims = Dims::new();
    for _ in 0..rank {
        let size = reader.uint(length_size)?;
        if size >= all_ones(length_size) {
            return Err(reader.error("a size with an end", size));
        }
        dims.push(size);
    }
    let mut max = None;
    if flags & FLAG_MAXIMUM != 0 {
        let sizes: Result<Dims, _> = (0..rank).map(|_| reader.offset(length_size)).collect();
        max = Some(sizes?);
    }
    Ok(match class {
        CLASS_NULL => (Extent::Null, None),
        _ if rank == 0 => (Extent::Scalar, None),
        _ => (Extent::Simple { dims, max: None }, max),
    })
}

/// The largest number of `width` bytes, 1 to 8: it stands for "unlimited".
pub(super) fn all_ones(width: usize) -> u64 {
    u64::MAX >> (64 - 8 * width.clamp(1, 8))
}
