//! The global heap collection ("GCOL"): objects of any size, found by number. Elements of variable
//! length and region references keep their bytes here.
//!
//! A collection is a header and, at multiples of eight bytes from its beginning, objects: index (2),
//! reference count (2), zero (4), size (length width), padding, data, padding. Index 0 is free space,
//! whose size includes its header; fewer bytes than a header at the end are free space too.

use crate::{Context, DecodeError, FormatError};
use pumice_bytes::Writer;
use std::ops::Range;

const STRUCTURE: &str = "global heap collection";
const SIGNATURE: &[u8; 4] = b"GCOL";
/// Headers and objects begin at multiples of this.
const ALIGNMENT: usize = 8;
/// The highest object index.
pub const MAX_INDEX: u16 = u16::MAX;
/// The least bytes that libhdf5 gives a collection: a good first guess when one is read.
pub const MIN_COLLECTION: usize = 4096;

/// The places of objects in a collection's bytes.
///
/// ```
/// use pumice_format::Context;
/// use pumice_format::global_heap::{self, Collection};
///
/// let context = Context::default();
/// let mut bytes = Vec::new();
/// global_heap::encode(&[b"abc", b""], &context, &mut bytes)?;
/// let collection = Collection::decode(&bytes, &context)?;
/// assert_eq!(&bytes[collection.object(1).unwrap()], b"abc");
/// assert_eq!(collection.object(2), Some(56..56));
/// assert_eq!(collection.object(3), None);
/// # Ok::<(), pumice_format::FormatError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Collection {
    /// In ascending order of the index.
    objects: Vec<Object>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Object {
    index: u16,
    start: usize,
    length: usize,
}

impl Collection {
    /// Bytes of a collection's header, which is enough for [`size`](Self::size).
    pub fn header_length(context: &Context) -> usize {
        aligned(8 + context.length_width())
    }

    /// The number of bytes of the collection that begins with `bytes`.
    pub fn size(bytes: &[u8], context: &Context) -> Result<u64, DecodeError> {
        let mut reader = context.reader(STRUCTURE, bytes);
        reader.signature(SIGNATURE)?;
        let start = reader.clone();
        let version = reader.u8()?;
        if version != 1 {
            return Err(start.unknown("version 1", 1u8, version));
        }
        reader.skip(3)?;
        let start = reader.clone();
        let size = reader.uint(context.length_width())?;
        if size < Self::header_length(context) as u64 {
            return Err(start.error("a size that includes the header", size));
        }
        Ok(size)
    }

    /// Finds the objects of a collection. `bytes` begin with it and hold all of it.
    pub fn decode(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let size = Self::size(bytes, context)?;
        let whole = usize::try_from(size).ok().and_then(|size| bytes.get(..size));
        let bytes = whole.ok_or_else(|| {
            let expected = format!("{size} byte(s), as its header says");
            DecodeError::new(STRUCTURE, context.address, expected, bytes.len())
        })?;
        let mut objects = Vec::new();
        let (mut at, mut ascending, mut last) = (Self::header_length(context), true, 0);
        while let Some(object) = Object::decode(bytes, at, context)? {
            if object.index > 0 {
                ascending &= object.index > last;
                last = object.index;
                objects.push(object);
            }
            at = object.start.saturating_add(aligned(object.length));
        }
        if !ascending {
            objects.sort_by_key(|object| object.index);
            if let Some(twice) = objects.windows(2).find_map(same) {
                let expected = "objects with different indexes";
                return Err(DecodeError::new(STRUCTURE, context.address, expected, twice));
            }
        }
        Ok(Self { objects })
    }

    /// The place of the object with an index.
    #[inline]
    pub fn object(&self, index: u16) -> Option<Range<usize>> {
        // Collections that nothing was removed from have objects 1, 2, 3, ...
        let guess = self.objects.get(usize::from(index).wrapping_sub(1));
        let object = match guess {
            Some(object) if object.index == index => object,
            _ => {
                let found = self.objects.binary_search_by_key(&index, |object| object.index);
                self.objects.get(found.ok()?)?
            }
        };
        Some(object.start..object.start.saturating_add(object.length))
    }

    /// All objects in ascending order of the index, with their places.
    pub fn iter(&self) -> impl Iterator<Item = (u16, Range<usize>)> {
        let objects = self.objects.iter();
        objects.map(|object| (object.index, object.start..object.start + object.length))
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Bytes of memory that this takes.
    pub fn heap_bytes(&self) -> usize {
        self.objects.capacity().saturating_mul(size_of::<Object>())
    }
}

impl Object {
    /// The object at byte `at` of a collection, or `None` where only unused bytes are left. Free
    /// space comes as an object with index 0.
    fn decode(bytes: &[u8], at: usize, context: &Context) -> Result<Option<Self>, DecodeError> {
        let header = object_header(context);
        let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= header) else {
            return Ok(None);
        };
        let place = context.at(context.address.saturating_add(at as u64));
        let mut reader = place.reader(STRUCTURE, rest);
        let index = reader.u16()?;
        reader.skip(6)?;
        let start = reader.clone();
        let size = reader.uint(context.length_width())?;
        let room = (rest.len() - header) as u64;
        if index == 0 {
            // Free space counts its own header. One that says less is the rest of the collection.
            return Ok(match size.checked_sub(header as u64) {
                Some(size) if size < room => {
                    Some(Self { index, start: at.saturating_add(header), length: size as usize })
                }
                _ => None,
            });
        }
        if size > room {
            return Err(start.error(format!("an object of at most {room} byte(s)"), size));
        }
        Ok(Some(Self { index, start: at.saturating_add(header), length: size as usize }))
    }
}

fn same(pair: &[Object]) -> Option<String> {
    match pair {
        [a, b] if a.index == b.index => Some(format!("two with index {}", a.index)),
        _ => None,
    }
}

/// Appends a collection of `objects`, which get the indexes 1, 2, 3, ... It has no free space.
pub fn encode(objects: &[&[u8]], context: &Context, out: &mut Vec<u8>) -> Result<(), FormatError> {
    if objects.len() > usize::from(MAX_INDEX) {
        let (limit, found) = (u64::from(MAX_INDEX), objects.len() as u64);
        return Err(FormatError::too_large(STRUCTURE, "number of objects", limit, found));
    }
    let size = objects.iter().fold(Collection::header_length(context), |size, object| {
        size.saturating_add(object_length(object.len(), context))
    });
    out.reserve(size);
    put_header(size as u64, context, out);
    for (index, object) in (1u16..).zip(objects) {
        put_object(index, object, context, out);
    }
    Ok(())
}

/// Appends the header of a collection of `size` bytes.
pub fn put_header(size: u64, context: &Context, out: &mut Vec<u8>) {
    let start = out.len();
    out.put_bytes(SIGNATURE);
    out.put_bytes(&[1, 0, 0, 0]);
    out.put_uint(size, context.length_width());
    out.put_zeros((start + Collection::header_length(context)).saturating_sub(out.len()));
}

/// Appends an object.
pub fn put_object(index: u16, object: &[u8], context: &Context, out: &mut Vec<u8>) {
    let start = out.len();
    out.put_u16(index);
    out.put_zeros(6);
    out.put_uint(object.len() as u64, context.length_width());
    out.put_zeros((start + object_header(context)).saturating_sub(out.len()));
    out.put_bytes(object);
    out.put_zeros(aligned(object.len()) - object.len());
}

/// Appends free space of `length` bytes, header included; fewer than a header have none.
pub fn put_free(length: usize, context: &Context, out: &mut Vec<u8>) {
    let header = object_header(context);
    if length >= header {
        out.put_zeros(8);
        out.put_uint(length as u64, context.length_width());
        out.put_zeros(length - 8 - context.length_width());
    } else {
        out.put_zeros(length);
    }
}

/// Writes an object to the beginning of `room`, which is left as it is if that is too small.
///
/// ```
/// use pumice_format::{Context, global_heap};
///
/// let (context, mut room, mut appended) = (Context::default(), [7; 32], Vec::new());
/// global_heap::write_object(5, b"abc", &context, &mut room);
/// global_heap::put_object(5, b"abc", &context, &mut appended);
/// assert_eq!(room[..24], appended);
/// assert_eq!(room[24..], [7; 8]);
/// ```
#[inline]
pub fn write_object(index: u16, object: &[u8], context: &Context, room: &mut [u8]) {
    let header = object_header(context);
    let Some((head, rest)) = room.split_at_mut_checked(header) else { return };
    let Some(body) = rest.get_mut(..aligned(object.len())) else { return };
    write_header(index, object.len() as u64, context, head);
    let (bytes, padding) = body.split_at_mut(object.len().min(body.len()));
    bytes.copy_from_slice(object);
    padding.fill(0);
}

/// Writes the header of free space to the beginning of `room`, which is all free; fewer bytes than a header become zero.
#[inline]
pub fn write_free(context: &Context, room: &mut [u8]) {
    let length = room.len() as u64;
    match room.get_mut(..object_header(context)) {
        Some(head) => write_header(0, length, context, head),
        None => room.fill(0),
    }
}

/// The header of an object, or of free space, with index 0.
#[inline]
fn write_header(index: u16, length: u64, context: &Context, head: &mut [u8]) {
    let [low, high] = index.to_le_bytes();
    let mut all = [low, high, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let width = context.length_width().min(8);
    for (to, from) in all.iter_mut().skip(8).zip(length.to_le_bytes()).take(width) {
        *to = from;
    }
    let count = head.len().min(all.len());
    head.iter_mut().zip(all).take(count).for_each(|(to, from)| *to = from);
}

/// Bytes of an object of `length` bytes in a collection, with header and padding.
pub fn object_length(length: usize, context: &Context) -> usize {
    object_header(context).saturating_add(aligned(length))
}

fn object_header(context: &Context) -> usize {
    aligned(8 + context.length_width())
}

fn aligned(length: usize) -> usize {
    length.checked_next_multiple_of(ALIGNMENT).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> Context {
        Context::default().at(0x100)
    }

    fn collection(parts: &[(u16, &[u8])], free: usize) -> Vec<u8> {
        let mut body = Vec::new();
        for &(index, object) in parts {
            put_object(index, object, &context(), &mut body);
        }
        put_free(free, &context(), &mut body);
        let mut bytes = Vec::new();
        put_header(16 + body.len() as u64, &context(), &mut bytes);
        bytes.extend(body);
        bytes
    }

    #[test]
    fn objects_are_found_in_any_order_with_and_without_free_space() {
        for free in [0, 8, 16, 100 * 8] {
            let bytes = collection(&[(7, b"seven"), (2, b"two"), (65535, b"")], free);
            let found = Collection::decode(&bytes, &context()).unwrap();
            assert_eq!(found.len(), 3);
            assert_eq!(&bytes[found.object(7).unwrap()], b"seven");
            assert_eq!(&bytes[found.object(2).unwrap()], b"two");
            assert!(found.object(65535).unwrap().is_empty());
            assert_eq!(found.object(0), None);
            assert_eq!(found.object(1), None);
        }
    }

    #[test]
    fn short_lengths_still_align_to_eight() {
        let context = Context::new(crate::Sizes { offset: 4, length: 4 });
        let mut bytes = Vec::new();
        encode(&[b"x", b"yz"], &context, &mut bytes).unwrap();
        let found = Collection::decode(&bytes, &context).unwrap();
        assert_eq!(&bytes[found.object(2).unwrap()], b"yz");
        assert_eq!(bytes.len(), 16 + 2 * 24);
    }

    #[test]
    fn damage_is_an_error_that_names_the_collection() {
        let good = collection(&[(1, b"abc"), (2, b"defg")], 0);
        let mut long = good.clone();
        long[24] = 200;
        let error = Collection::decode(&long, &context()).unwrap_err();
        assert_eq!((error.structure, error.address), (STRUCTURE, 0x100 + 24));
        let mut twice = good.clone();
        twice[40] = 1;
        assert!(Collection::decode(&twice, &context()).is_err());
        assert!(Collection::decode(&good[..good.len() - 1], &context()).is_err());
        let mut tiny = good.clone();
        tiny[8] = 8;
        assert!(Collection::decode(&tiny, &context()).is_err());
    }

    #[test]
    fn every_prefix_and_every_flipped_byte_is_answered() {
        let good = collection(&[(1, b"abc"), (2, b"defg"), (3, &[9; 40])], 40);
        for end in 0..good.len() {
            assert!(Collection::decode(&good[..end], &context()).is_err());
        }
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                if let Ok(found) = Collection::decode(&bad, &context()) {
                    for index in 0..=MAX_INDEX {
                        assert!(found.object(index).is_none_or(|range| range.end <= bad.len()));
                    }
                }
            }
        }
    }
}
