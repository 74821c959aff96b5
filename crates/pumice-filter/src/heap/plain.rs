//! The canonical plain form of a list of objects: a heap set ("HGLS") whose collections ("GCOL") are
//! full but for the last, objects numbered from 1 in each collection, zeros in all padding, and the
//! section's checksum. Its lengths are as wide as those of the file: headers of collections and objects
//! are padded to sixteen bytes whatever that is, so that only the directory depends on it.

use super::{HeapObjects, NAME};
use crate::{FilterError, scratch};
use pumice_bytes::{Writer, lookup3};

/// Objects of a full collection.
const FULL: usize = u16::MAX as usize;
/// Bytes before the directory.
const HEAD: usize = 12;
/// Bytes of a collection's header and of an object's, padding included.
const HEADER: usize = 16;
/// Bytes of the checksum.
const CHECKSUM: usize = 4;

/// The length of the plain form of objects of these lengths, with lengths of `width` bytes; `None`
/// for no objects.
pub(crate) fn plain_length(lengths: &[u32], width: usize) -> u64 {
    if lengths.is_empty() {
        return 0;
    }
    let slots = lengths.len().div_ceil(FULL);
    let objects: u64 = lengths.iter().map(|&length| (HEADER + padded(length)) as u64).sum();
    (HEAD + slots * (2 * width + HEADER) + CHECKSUM) as u64 + objects
}

/// Fails if a plain form of this length has offsets, or collections, that `width` bytes cannot
/// hold.
pub(crate) fn check_fits(plain: u64, width: usize) -> Result<(), FilterError> {
    let most = u64::MAX >> (64 - 8 * width.clamp(1, 8));
    if plain <= most {
        return Ok(());
    }
    Err(FilterError::encode(
        NAME,
        format!(
            "the strings and sequences of a chunk take {plain} bytes with their headers, and lengths of \
             {width} bytes, which this file has, count {most} at most: choose smaller chunks, or a \
             file with wider lengths"
        ),
    ))
}

/// The plain form of objects, one after another in `bytes`, with lengths of `width` bytes, which can hold
/// them.
pub(crate) fn image(lengths: &[u32], bytes: &[u8], width: usize) -> Result<Vec<u8>, FilterError> {
    let mut out = Vec::new();
    if lengths.is_empty() {
        return Ok(out);
    }
    let length = usize::try_from(plain_length(lengths, width)).unwrap_or(usize::MAX);
    scratch::room(NAME, &mut out, length)?;
    let collections = lengths.chunks(FULL);
    out.put_bytes(b"HGLS\x01\0\0\0");
    out.put_u32(collections.len() as u32);
    let mut offset = (HEAD + collections.len() * 2 * width) as u64;
    for objects in collections.clone() {
        let size = collection_size(objects);
        out.put_uint(offset, width);
        out.put_uint(size, width);
        offset += size;
    }
    let mut rest = bytes;
    for objects in collections {
        out.put_bytes(b"GCOL\x01\0\0\0");
        out.put_u64(collection_size(objects));
        for (index, &length) in (1u64..).zip(objects) {
            let (object, later) = rest.split_at((length as usize).min(rest.len()));
            rest = later;
            out.put_u64(index);
            out.put_u64(u64::from(length));
            out.put_bytes(object);
            out.put_zeros(padded(length) - length as usize);
        }
    }
    out.put_checksum(0);
    Ok(out)
}

/// The objects of a plain form with lengths of `width` bytes, if it is the canonical one.
pub(super) fn objects(plain: &[u8], width: usize) -> Result<Option<HeapObjects>, FilterError> {
    let mut found = HeapObjects::default();
    // No more bytes than the plain form has, and a header for every length.
    scratch::room(NAME, &mut found.bytes, plain.len())?;
    scratch::room(NAME, &mut found.lengths, plain.len() / HEADER)?;
    let candidate = list_objects(plain, width, &mut found).is_some();
    let canonical = candidate && image(&found.lengths, &found.bytes, width)? == plain;
    Ok(canonical.then_some(found))
}

/// Lists the objects of a plain form that may be canonical. Comparing it with its image finds
/// everything that is not checked here.
fn list_objects(plain: &[u8], width: usize, found: &mut HeapObjects) -> Option<()> {
    let (body, checksum) = plain.split_at_checked(plain.len().checked_sub(CHECKSUM)?)?;
    let mut rest = body.strip_prefix(b"HGLS\x01\0\0\0")?;
    let slots = take_number::<4>(&mut rest)? as usize;
    rest = rest.get(slots.checked_mul(2 * width)?..)?;
    while let Some(after) = rest.strip_prefix(b"GCOL\x01\0\0\0") {
        rest = after.get(8..)?;
        for index in 1..=FULL as u64 {
            if rest.is_empty() || rest.starts_with(b"GCOL") {
                break;
            }
            if take_number::<8>(&mut rest)? != index {
                return None;
            }
            let length = u32::try_from(take_number::<8>(&mut rest)?).ok()?;
            let (object, later) = rest.split_at_checked(padded(length))?;
            rest = later;
            found.lengths.push(length);
            found.bytes.extend_from_slice(object.get(..length as usize)?);
        }
    }
    let right = rest.is_empty()
        && !found.lengths.is_empty()
        && checksum == lookup3(body).to_le_bytes()
        && check_fits(plain.len() as u64, width).is_ok();
    right.then_some(())
}

fn take_number<const N: usize>(rest: &mut &[u8]) -> Option<u64> {
    let (bytes, later) = rest.split_first_chunk::<N>()?;
    *rest = later;
    Some(bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

fn collection_size(lengths: &[u32]) -> u64 {
    lengths.iter().fold(HEADER as u64, |size, &length| size + (HEADER + padded(length)) as u64)
}

fn padded(length: u32) -> usize {
    (length as usize).next_multiple_of(8)
}
