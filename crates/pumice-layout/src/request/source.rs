//! Where a write takes its values from: the caller's bytes, or lists that lie one after another.

use super::outside;
use pumice_medium::zeroed;
use pumice_medium::{Error, Result};
use pumice_space::{Line, Segment};
use pumice_types::{Conversion, append_references};

/// Where a write takes its values from.
pub struct Source<'a> {
    bytes: &'a [u8],
    conversion: Conversion,
    /// What the elements refer to, if they have variable-length parts.
    heap: Option<&'a [u8]>,
    /// In place of `bytes`: what the elements refer to lies one after another.
    lists: Option<Lists<'a>>,
    /// Whether the memory has only the members of fixed size of elements with other members.
    members: bool,
    /// How many bytes go through a buffer at a time, if not as many as usual.
    piece: Option<u64>,
}

/// Strings or sequences one after another in a heap.
#[derive(Clone, Copy)]
pub struct Lists<'a> {
    /// Where each begins, counted in values, and where the last ends.
    pub offsets: &'a [u64],
    /// Bytes of a value.
    pub base: usize,
    /// Bytes of a reference.
    pub size: u32,
}

impl Lists<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where `len` of them begin, from number `first` on, and where the last ends.
    fn ends(&self, first: u64, len: u64) -> Result<&[u64]> {
        let ends = self.offsets.get(first as usize..=(first + len) as usize);
        ends.ok_or_else(|| {
            let (held, needed) = (self.len(), first + len);
            Error::CountMismatch(format!("{held} list(s), but the selection needs {needed}"))
        })
    }

    /// Where the lists at a segment's place begin and end, and their values, which lie in `from`.
    pub fn slice<'b>(&self, segment: &Segment, from: &'b [u8]) -> Result<(&[u64], &'b [u8])> {
        let ends = self.ends(segment.memory, segment.len)?;
        let byte = |end: u64| usize::try_from(end).ok()?.checked_mul(self.base);
        let (first, last) = (ends[0], ends[ends.len() - 1]);
        let range = byte(first).zip(byte(last));
        let bytes = range.and_then(|(start, end)| from.get(start..end)).ok_or_else(|| {
            Error::CountMismatch(format!("{last} value(s) of lists, but {} byte(s)", from.len()))
        })?;
        Ok((ends, bytes))
    }

    /// Adds the lists at a segment's place, which lie in `from`, to `heap`; gives references to them.
    pub fn append(&self, segment: &Segment, from: &[u8], heap: &mut Vec<u8>) -> Result<Vec<u8>> {
        let (ends, bytes) = self.slice(segment, from)?;
        let mut elements = Vec::new();
        append_references(ends, self.base, self.size, heap.len() as u64, &mut elements)?;
        heap.extend_from_slice(bytes);
        Ok(elements)
    }
}

impl<'a> Source<'a> {
    /// A source of `bytes`; `conversion` goes from the memory's type to the file's.
    pub fn new(bytes: &'a [u8], conversion: Conversion) -> Self {
        Self { bytes, conversion, heap: None, lists: None, members: false, piece: None }
    }

    /// Sets the size of the conversion buffer in bytes; `None`: the usual size.
    pub fn in_pieces(self, piece: Option<u64>) -> Self {
        Self { piece, ..self }
    }

    /// How many bytes go through a buffer at a time, if not as many as usual.
    pub fn piece(&self) -> Option<u64> {
        self.piece
    }

    /// Says whether the memory has only the members of fixed size of elements with other members.
    pub fn members(self, members: bool) -> Self {
        Self { members, ..self }
    }

    /// Whether the memory has only the members of fixed size of elements with other members.
    pub fn has_members(&self) -> bool {
        self.members
    }

    /// A source of elements as the file has them, with references into `heap`.
    pub fn heaped(bytes: &'a [u8], conversion: Conversion, heap: &'a [u8]) -> Self {
        Self { bytes, conversion, heap: Some(heap), lists: None, members: false, piece: None }
    }

    /// A source of references to what lies one after another in `heap`; they are made when they are
    /// asked for. `conversion` goes from the file's type to itself.
    pub fn lists(lists: Lists<'a>, conversion: Conversion, heap: &'a [u8]) -> Self {
        Self {
            bytes: &[],
            conversion,
            heap: Some(heap),
            lists: Some(lists),
            members: false,
            piece: None,
        }
    }

    /// What the elements refer to, if they have variable-length parts.
    pub fn heap(&self) -> Option<&'a [u8]> {
        self.heap
    }

    /// The lists, if what the elements refer to lies one after another.
    pub fn as_lists(&self) -> Option<&Lists<'a>> {
        self.lists.as_ref()
    }

    /// Bytes of heap that `count` elements refer to, on average.
    pub fn heap_share(&self, count: u64) -> u64 {
        let all = match &self.lists {
            Some(lists) => lists.len(),
            None => self.bytes.len() / self.conversion.source_size(),
        };
        let all = all.max(1) as u128;
        let heap = self.heap.map_or(0, <[u8]>::len) as u128;
        u64::try_from(heap * u128::from(count) / all).unwrap_or(u64::MAX)
    }

    /// Whether values go to the file as they are.
    pub fn is_noop(&self) -> bool {
        self.conversion.is_noop()
    }

    /// Bytes of `count` elements in memory.
    pub fn bytes_of(&self, count: u64) -> usize {
        let all = match &self.lists {
            Some(lists) => lists.len().saturating_mul(lists.size as usize),
            None => self.bytes.len(),
        };
        (count as usize).saturating_mul(self.conversion.source_size()).min(all)
    }

    /// The bytes that values are taken from.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Whether every byte of an element is written: not so if a compound lacks members.
    pub fn overwrites(&self) -> bool {
        self.conversion.overwrites_target()
    }

    /// Bytes of an element in memory.
    pub fn element_size(&self) -> usize {
        self.conversion.source_size()
    }

    /// The elements of the memory's type at a segment's place.
    #[inline]
    pub fn slice(&self, memory: u64, len: u64) -> Result<&'a [u8]> {
        let size = self.conversion.source_size();
        let start = memory as usize * size;
        self.bytes.get(start..start + len as usize * size).ok_or_else(|| {
            Error::CountMismatch(format!(
                "the buffer has {} byte(s), but the selection needs element {}",
                self.bytes.len(),
                memory + len
            ))
        })
    }

    /// Appends the elements of the memory's type at a segment's place to `to`.
    #[inline]
    pub fn append(&self, memory: u64, len: u64, to: &mut Vec<u8>) -> Result<()> {
        let Some(lists) = &self.lists else {
            to.extend_from_slice(self.slice(memory, len)?);
            return Ok(());
        };
        let ends = lists.ends(memory, len)?;
        let place = ends[0].saturating_mul(lists.base as u64);
        Ok(append_references(ends, lists.base, lists.size, place, to)?)
    }

    /// Writes the values of a line, converted, to its cells in `chunk`.
    pub fn copy_line(&self, line: &Line, chunk: &mut [u8]) -> Result<()> {
        if line.count > 1 && line.first.len == 1 && self.conversion.is_noop() {
            match self.conversion.source_size() {
                1 => return self.copy_apart::<1>(line, chunk),
                2 => return self.copy_apart::<2>(line, chunk),
                4 => return self.copy_apart::<4>(line, chunk),
                8 => return self.copy_apart::<8>(line, chunk),
                _ => {}
            }
        }
        let element = self.conversion.target_size();
        line.segments().try_for_each(|segment| {
            let start = segment.cell as usize * element;
            let place = chunk.get_mut(start..start + segment.len as usize * element);
            self.copy_to(segment.memory, segment.len, place.ok_or_else(outside)?)
        })
    }

    /// Elements of `N` bytes at equal distances.
    fn copy_apart<const N: usize>(&self, line: &Line, chunk: &mut [u8]) -> Result<()> {
        for Segment { cell, memory, .. } in line.segments() {
            let place = chunk.get_mut(cell as usize * N..);
            let place = place.and_then(|rest| rest.first_chunk_mut::<N>()).ok_or_else(outside)?;
            place.copy_from_slice(self.slice(memory, 1)?);
        }
        Ok(())
    }

    /// Writes a segment's values, converted, into `place`.
    #[inline]
    pub fn copy_to(&self, memory: u64, len: u64, place: &mut [u8]) -> Result<()> {
        let from = self.slice(memory, len)?;
        if self.conversion.is_noop() {
            place.copy_from_slice(from);
            return Ok(());
        }
        Ok(self.conversion.convert(from, place)?)
    }

    /// Converts elements that were collected from [`slice`](Self::slice)s. Bytes that the
    /// conversion leaves alone are those of `old`, which is made only if there are any.
    pub fn convert(&self, collected: Vec<u8>, old: impl FnOnce() -> Vec<u8>) -> Result<Vec<u8>> {
        if self.conversion.is_noop() {
            return Ok(collected);
        }
        let count = collected.len() / self.conversion.source_size();
        let mut converted = match self.overwrites() {
            true => zeroed(count.saturating_mul(self.conversion.target_size()))?,
            false => old(),
        };
        self.conversion.convert(&collected, &mut converted)?;
        Ok(converted)
    }
}
