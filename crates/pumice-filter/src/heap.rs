//! The heap filter: the objects of a structured chunk's heap, as lengths and bytes.
//!
//! The plain side is the heap section of a structured chunk with variable-length data, its checksum
//! included: sixteen bytes and padding around each object, which a compressor finds between any two
//! strings. The encoded side has the bytes of all objects one after another, then their lengths; `docs/format/heap-filter.md` has every byte.
//!
//! Any bytes go through and come back. Those that are not *canonical*, that is, not what Pumice writes
//! for a list of objects, are carried verbatim. [`Pipeline::encode_heap`](crate::Pipeline::encode_heap)
//! and [`Pipeline::decode_heap`](crate::Pipeline::decode_heap) go between objects and the encoded side
//! without the plain form; both ways give the same bytes, and both verify a checksum.

mod plain;

use crate::{Filter, FilterError};
use pumice_bytes::{Writer, lookup3};

pub(crate) use plain::{image, plain_length};

/// The filter's id. HDF5 leaves 256 to 511 to applications; this one is in no known file.
pub const ID: u16 = 303;

/// The filter's name in files and errors.
pub const NAME: &str = "pumice-heap";

/// The last byte of bytes that are carried as they are.
const VERBATIM: u8 = 0;
/// The last byte of a list of objects.
const COMPACT: u8 = 1;
/// Bytes behind the lengths: number of objects, width of lengths, checksum, mode.
const TRAILER: usize = 8 + 1 + 4 + 1;

/// The objects of a heap, in the order in which they are numbered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeapObjects {
    /// The length of each.
    pub lengths: Vec<u32>,
    /// Their bytes, one after another.
    pub bytes: Vec<u8>,
}

/// Replaces `out` by the encoded side of objects: `lengths` of them, one after another in `bytes`.
pub(crate) fn encode_objects(lengths: &[u32], bytes: &[u8], out: &mut Vec<u8>) {
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let width = longest.to_le_bytes().iter().rposition(|&byte| byte != 0).map_or(1, |top| top + 1);
    out.clear();
    out.reserve(bytes.len() + width * lengths.len() + TRAILER);
    // At the end, so that a reader has the bytes where it needs them.
    out.put_bytes(bytes);
    for plane in 0..width {
        out.extend(lengths.iter().map(|length| (length >> (8 * plane)) as u8));
    }
    out.put_u64(lengths.len() as u64);
    out.put_u8(width as u8);
    out.put_checksum(0);
    out.put_u8(COMPACT);
}

/// What the encoded side is.
pub(crate) enum Decoded {
    Objects(HeapObjects),
    /// The plain form, carried verbatim.
    Plain(Vec<u8>),
}

/// Takes the encoded side apart.
pub(crate) fn decode_objects(mut input: Vec<u8>) -> Result<Decoded, FilterError> {
    match input.pop() {
        Some(COMPACT) => {}
        Some(VERBATIM) => return Ok(Decoded::Plain(input)),
        Some(other) => return Err(corrupt("mode 0 or 1", other)),
        None => return Err(corrupt("a mode", "no bytes")),
    }
    let lengths = lengths(&input)?;
    let total: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
    // No more than there are: that was checked.
    input.truncate(total as usize);
    Ok(Decoded::Objects(HeapObjects { lengths, bytes: input }))
}

/// The lengths in a compact form without its mode; they add up to the bytes before them.
fn lengths(input: &[u8]) -> Result<Vec<u32>, FilterError> {
    let short = || corrupt("a list of objects", format!("{} byte(s)", input.len()));
    let (body, stored) = input.split_last_chunk::<4>().ok_or_else(short)?;
    if lookup3(body).to_le_bytes() != *stored {
        return Err(corrupt("the checksum of all bytes", "another"));
    }
    let (&width, body) = body.split_last().ok_or_else(short)?;
    let (body, count) = body.split_last_chunk::<8>().ok_or_else(short)?;
    let (count, width) = (u64::from_le_bytes(*count), usize::from(width));
    if !(1..=4).contains(&width) {
        return Err(corrupt("lengths of 1 to 4 bytes", width));
    }
    let planes = usize::try_from(count).ok().and_then(|count| count.checked_mul(width));
    let start = planes.and_then(|planes| body.len().checked_sub(planes));
    let (bytes, planes) = body.split_at(start.ok_or_else(|| corrupt("fewer objects", count))?);
    let mut lengths = vec![0u32; count as usize];
    for (plane, bytes) in planes.chunks_exact(lengths.len().max(1)).enumerate() {
        lengths.iter_mut().zip(bytes).for_each(|(length, &byte)| {
            *length |= u32::from(byte) << (8 * plane);
        });
    }
    let total: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
    match total == bytes.len() as u64 {
        true => Ok(lengths),
        false => Err(corrupt(format!("{total} byte(s) of objects"), bytes.len())),
    }
}

pub(crate) struct Heap;

impl Filter for Heap {
    fn id(&self) -> u16 {
        ID
    }

    fn name(&self) -> &'static str {
        NAME
    }

    fn encode(
        &self,
        _parameters: &[u32],
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        match plain::objects(input) {
            Some(HeapObjects { lengths, bytes }) => encode_objects(&lengths, &bytes, out),
            None => {
                out.clear();
                out.reserve(input.len() + 1);
                out.extend_from_slice(input);
                out.push(VERBATIM);
            }
        }
        Ok(())
    }

    fn decode(
        &self,
        _parameters: &[u32],
        input: &[u8],
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), FilterError> {
        out.clear();
        match decode_objects(input.to_vec())? {
            Decoded::Plain(plain) if plain.len() <= limit => *out = plain,
            Decoded::Plain(plain) => return Err(FilterError::too_large(NAME, limit, plain.len())),
            Decoded::Objects(HeapObjects { lengths, bytes }) => {
                let length = plain_length(&lengths);
                if length > limit as u64 {
                    return Err(FilterError::too_large(NAME, limit, length));
                }
                *out = image(&lengths, &bytes);
            }
        }
        Ok(())
    }

    fn encoded_bound(&self, len: usize) -> usize {
        // A list of objects is shorter than their plain form.
        len.saturating_add(1)
    }

    fn is_gain(&self, input: &[u8], encoded: &[u8]) -> bool {
        encoded.len() < input.len()
    }
}

fn corrupt(
    expected: impl Into<std::borrow::Cow<'static, str>>,
    found: impl std::fmt::Display,
) -> FilterError {
    FilterError::corrupt(NAME, expected, found)
}
