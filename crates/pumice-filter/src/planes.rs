//! Numbers in planes: the lowest byte of each, then the next byte of each, and so on; then how many
//! there are, their width, and a checksum of everything before it. Where something else stands before
//! the numbers, the checksum covers it too.

use crate::{FilterError, scratch};
use pumice_bytes::{Lookup3, Writer, lookup3};

/// Bytes behind the planes: count, width, checksum.
pub(crate) const TRAILER: usize = 8 + 1 + CHECKSUM;
const CHECKSUM: usize = 4;

/// Replaces `out` by `before`, numbers, and the checksum of both.
pub(crate) fn put(
    filter: &'static str,
    before: &[u8],
    numbers: &[u32],
    out: &mut Vec<u8>,
) -> Result<(), FilterError> {
    let largest = numbers.iter().copied().max().unwrap_or(0);
    let width = largest.to_le_bytes().iter().rposition(|&byte| byte != 0).map_or(1, |top| top + 1);
    let length = width * numbers.len() + TRAILER;
    scratch::room(filter, out, before.len() + length + 1)?;
    let checksum = Lookup3::append(before, length - CHECKSUM, out);
    for plane in 0..width {
        out.extend(numbers.iter().map(|number| (number >> (8 * plane)) as u8));
    }
    out.put_u64(numbers.len() as u64);
    out.put_u8(width as u8);
    let checksum = checksum.finish(out);
    out.put_u32(checksum);
    Ok(())
}

/// Splits the prefix from the numbers at `expected`.
pub(crate) fn split<'a>(
    filter: &'static str,
    expected: &'static str,
    input: &'a [u8],
) -> Result<(&'a [u8], Vec<u32>), FilterError> {
    let wrong = |found: String| FilterError::corrupt(filter, expected, found);
    let short = || wrong(format!("{} byte(s)", input.len()));
    let (body, stored) = input.split_last_chunk::<4>().ok_or_else(short)?;
    if lookup3(body).to_le_bytes() != *stored {
        return Err(wrong("another checksum".into()));
    }
    let (&width, body) = body.split_last().ok_or_else(short)?;
    let (body, count) = body.split_last_chunk::<8>().ok_or_else(short)?;
    let (count, width) = (u64::from_le_bytes(*count), usize::from(width));
    if !(1..=4).contains(&width) {
        return Err(wrong(format!("numbers of {width} bytes")));
    }
    let planes = usize::try_from(count).ok().and_then(|count| count.checked_mul(width));
    let start = planes.and_then(|planes| body.len().checked_sub(planes));
    let (before, planes) = body.split_at(start.ok_or_else(|| wrong(format!("{count} numbers")))?);
    let mut numbers: Vec<u32> = scratch::zeroed(filter, count as usize)?;
    for (plane, bytes) in planes.chunks_exact(numbers.len().max(1)).enumerate() {
        numbers.iter_mut().zip(bytes).for_each(|(number, &byte)| {
            *number |= u32::from(byte) << (8 * plane);
        });
    }
    Ok((before, numbers))
}
