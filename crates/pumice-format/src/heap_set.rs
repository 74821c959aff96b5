//! The heap of a structured chunk with variable-length data ("HGLS"): a directory of slots, and a
//! global heap collection behind each slot that is used.
//!
//! ```text
//! "HGLS" | 01 | 00 00 00 | number of slots u32 | slots: offset (L), length (L) | collections
//! ```
//!
//! Offsets count from the signature; a slot of zeros is unused. The collections follow the directory
//! in the order of their slots, without gaps. A reference to an object is its count of base elements
//! (4 bytes), slot (2), index (2) and zeros; all zeros is null. The section's checksum is not part
//! of what is decoded here.

use crate::global_heap::{Collection, MAX_INDEX};
use crate::{Context, DecodeError};
use pumice_bytes::Reader;
use std::ops::Range;

const STRUCTURE: &str = "heap of a structured chunk";
const SIGNATURE: &[u8; 4] = b"HGLS";
const VERSION: u8 = 1;
/// Bytes before the directory.
const HEAD: usize = 12;
/// The most slots: a reference has two bytes for them.
const MAX_SLOTS: usize = 1 << 16;

/// Objects of a collection that has as many as it can; writers fill one after another.
pub const PER_COLLECTION: usize = MAX_INDEX as usize;

/// The places of objects in a heap's bytes.
///
/// ```
/// use pumice_format::Context;
/// use pumice_format::heap_set::HeapSet;
///
/// let mut image = b"HGLS\x01\0\0\0\x01\0\0\0".to_vec();
/// image.extend([28u64, 40].map(u64::to_le_bytes).concat());
/// image.extend(b"GCOL\x01\0\0\0");
/// image.extend([40u64, 1, 3].map(u64::to_le_bytes).concat());
/// image.extend(b"abc\0\0\0\0\0");
///
/// let heap = HeapSet::decode(&image, &Context::default())?;
/// assert_eq!(&image[heap.object(0, 1).unwrap()], b"abc");
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct HeapSet {
    /// The collection behind each slot, and where it begins.
    slots: Vec<Option<(usize, Collection)>>,
}

impl HeapSet {
    /// Finds the objects of a heap.
    pub fn decode(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let mut reader = context.reader(STRUCTURE, bytes);
        reader.signature(SIGNATURE)?;
        let start = reader.clone();
        let version = reader.u8()?;
        if version != VERSION {
            return Err(start.unknown("version 1", 1u8, version));
        }
        reader.skip(3)?;
        let start = reader.clone();
        let count = u64::from(reader.u32()?);
        let entry = 2 * context.length_width();
        let count = reader.count(count, entry)?;
        if count == 0 || count > MAX_SLOTS {
            return Err(start.error("1 to 65536 slots", count));
        }
        let mut next = HEAD + count * entry;
        let slots = (0..count).map(|_| decode_slot(&mut reader, bytes, &mut next, context));
        let slots = slots.collect::<Result<Vec<_>, _>>()?;
        match next == bytes.len() {
            true => Ok(Self { slots }),
            false => {
                let expected = format!("{next} byte(s), as its directory says");
                Err(DecodeError::new(STRUCTURE, context.address, expected, bytes.len()))
            }
        }
    }

    /// The place of an object.
    #[inline]
    pub fn object(&self, slot: u16, index: u16) -> Option<Range<usize>> {
        let (start, collection) = self.slots.get(usize::from(slot))?.as_ref()?;
        let range = collection.object(index)?;
        Some(start.saturating_add(range.start)..start.saturating_add(range.end))
    }
}

/// The collection of the next slot, which must begin at `next`.
fn decode_slot(
    reader: &mut Reader<'_>,
    bytes: &[u8],
    next: &mut usize,
    context: &Context,
) -> Result<Option<(usize, Collection)>, DecodeError> {
    let at = reader.clone();
    let (offset, length) =
        (reader.uint(context.length_width())?, reader.uint(context.length_width())?);
    if (offset, length) == (0, 0) {
        return Ok(None);
    }
    let end = usize::try_from(length).ok().and_then(|length| next.checked_add(length));
    let image = end.filter(|_| offset == *next as u64).and_then(|end| bytes.get(*next..end));
    let (Some(image), Some(end)) = (image, end) else {
        let expected = format!("a collection at byte {next} that ends before {}", bytes.len());
        return Err(at.error(expected, format!("{length} byte(s) at {offset}")));
    };
    let context = context.at(context.address.saturating_add(*next as u64));
    if Collection::size(image, &context)? != length {
        return Err(at.error("the length of the collection", length));
    }
    let start = std::mem::replace(next, end);
    Ok(Some((start, Collection::decode(image, &context)?)))
}

/// A reference to an object of a heap set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The number of base elements.
    pub count: u32,
    /// The slot of its collection.
    pub slot: u16,
    /// Its index in the collection; never 0.
    pub index: u16,
}

impl Reference {
    /// Decodes a reference; `None` for null.
    #[inline]
    pub fn decode(bytes: &[u8], address: u64) -> Result<Option<Self>, DecodeError> {
        let bad = |expected: &'static str| {
            let found = bytes.escape_ascii().to_string();
            DecodeError::new(
                "reference into the heap of a structured chunk",
                address,
                expected,
                found,
            )
        };
        let Some((&[a, b, c, d, e, f, g, h], rest)) = bytes.split_first_chunk::<8>() else {
            return Err(bad("at least 8 bytes"));
        };
        let count = u32::from_le_bytes([a, b, c, d]);
        let (slot, index) = (u16::from_le_bytes([e, f]), u16::from_le_bytes([g, h]));
        if rest.iter().any(|&byte| byte != 0) {
            return Err(bad("zeros after the index"));
        }
        match (index, slot, count) {
            (0, 0, 0) => Ok(None),
            (0, 0, _) => Err(bad("an object, as it has a length")),
            (0, ..) => Err(bad("an index, as it has a slot")),
            _ => Ok(Some(Self { count, slot, index })),
        }
    }

    /// Writes the reference over `bytes`, which has at least 8.
    #[inline]
    pub fn encode(&self, bytes: &mut [u8]) {
        bytes.fill(0);
        if let Some(head) = bytes.first_chunk_mut::<8>() {
            let value =
                u64::from(self.count) | u64::from(self.slot) << 32 | u64::from(self.index) << 48;
            *head = value.to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> Context {
        Context::default()
    }

    /// The heap of these objects as stored without filters.
    fn image(objects: &[impl AsRef<[u8]>]) -> Vec<u8> {
        let lengths: Vec<u32> = objects.iter().map(|one| one.as_ref().len() as u32).collect();
        let bytes: Vec<u8> = objects.iter().flat_map(|one| one.as_ref().to_vec()).collect();
        let stored = pumice_filter::Pipeline::default().encode_heap(&lengths, &bytes, 8).unwrap();
        let checksum = stored.bytes.len() - 4;
        stored.bytes[..checksum].to_vec()
    }

    #[test]
    fn the_documented_heap_of_one_string_has_its_bytes() {
        let mut wanted = b"HGLS\x01\0\0\0\x01\0\0\0".to_vec();
        wanted.extend(28u64.to_le_bytes());
        wanted.extend(40u64.to_le_bytes());
        wanted.extend(b"GCOL\x01\0\0\0");
        wanted.extend(40u64.to_le_bytes());
        wanted.extend(1u64.to_le_bytes());
        wanted.extend(3u64.to_le_bytes());
        wanted.extend(b"abc\0\0\0\0\0");
        assert_eq!(image(&[b"abc"]), wanted);
        let heap = HeapSet::decode(&wanted, &context()).unwrap();
        assert_eq!(heap.object(0, 1), Some(60..63));
    }

    #[test]
    fn objects_beyond_the_highest_index_open_another_collection() {
        let objects: Vec<_> =
            (0..70_000u32).map(|n| n.to_le_bytes()[..(n % 5) as usize].to_vec()).collect();
        let image = image(&objects);
        let heap = HeapSet::decode(&image, &context()).unwrap();
        for (n, object) in objects.iter().enumerate() {
            let (slot, index) = (n / PER_COLLECTION, n % PER_COLLECTION + 1);
            let place = heap.object(slot as u16, index as u16).unwrap();
            assert_eq!(&image[place], object);
        }
        assert_eq!(heap.object(2, 1), None);
        assert_eq!(heap.object(1, 4466), None);
    }

    #[test]
    fn unused_slots_are_accepted_and_gaps_are_not() {
        let image = image(&[b"abc"]);
        let mut two = image[..12].to_vec();
        two[8] = 2;
        two.extend([0; 16]);
        two.extend(44u64.to_le_bytes());
        two.extend(&image[20..]);
        let heap = HeapSet::decode(&two, &context()).unwrap();
        assert_eq!(heap.object(0, 1), None);
        assert_eq!(&two[heap.object(1, 1).unwrap()], b"abc");
        let mut gap = two.clone();
        gap[28] += 8;
        assert!(HeapSet::decode(&gap, &context()).is_err());
        two.push(0);
        assert!(HeapSet::decode(&two, &context()).is_err());
    }

    #[test]
    fn references_that_contradict_themselves_are_refused() {
        let mut bytes = [0; 16];
        assert_eq!(Reference::decode(&bytes, 0).unwrap(), None);
        let reference = Reference { count: 70_000, slot: 3, index: 65_535 };
        reference.encode(&mut bytes);
        assert_eq!(Reference::decode(&bytes, 0).unwrap(), Some(reference));
        for (place, what) in [(0, "length"), (4, "slot"), (15, "rest")] {
            let mut bad = [0; 16];
            bad[place] = 1;
            assert!(Reference::decode(&bad, 0).is_err(), "{what}");
        }
        assert!(Reference::decode(&bytes[..7], 0).is_err());
    }

    #[test]
    fn every_flipped_bit_and_every_prefix_is_answered() {
        let image = image(&[&b"abc"[..], b"", b"defghijkl"]);
        for end in 0..image.len() {
            assert!(HeapSet::decode(&image[..end], &context()).is_err());
        }
        for at in 0..image.len() * 8 {
            let mut bad = image.clone();
            bad[at / 8] ^= 1 << (at % 8);
            if let Ok(heap) = HeapSet::decode(&bad, &context()) {
                for index in 0..=MAX_INDEX {
                    assert!(heap.object(0, index).is_none_or(|range| range.end <= bad.len()));
                }
            }
        }
    }
}
