//! A local heap as a living thing: the strings of an old-style group, or of external files.
//!
//! The whole data segment is in memory. Strings take multiples of 8 bytes. A segment that gets too
//! small becomes twice as long, one that is mostly free becomes shorter. It gets its new address
//! with the next commit, so that intermediate lengths leave no holes. The header stays at its
//! address.
//!
//! Invariant: `header.data_size` is the length of the segment in the file.

use pumice_bytes::DecodeError;
use pumice_format::local_heap::LocalHeap as Header;
use pumice_format::{Context, Sizes};
use pumice_medium::Medium;
use pumice_medium::{DataKind, MetadataIo};
use pumice_medium::{Error, Result};
use std::collections::BTreeMap;

/// The largest data segment that is read.
const MAX_HEAP: u64 = 256 << 20;
/// Bytes of a new segment, as libhdf5 makes it for a group.
const FIRST_SEGMENT: u64 = 88;
/// The alignment of strings.
const ALIGN: u64 = 8;

/// The strings of a local heap.
pub struct LocalHeap {
    address: u64,
    header: Header,
    segment: Vec<u8>,
    sizes: Sizes,
    /// Free ranges by their offset, once something is to be changed.
    free: Option<BTreeMap<u64, u64>>,
    dirty: bool,
    /// Whether a commit wrote it since it was opened: space before it may have become free.
    written: bool,
}

impl LocalHeap {
    /// A new heap with the empty string at offset 0.
    pub fn create(io: &dyn MetadataIo) -> Result<Self> {
        let sizes = io.sizes();
        let context = Context::new(sizes);
        let address = io.allocate_for(DataKind::LocalHeap, Header::space(&context))?;
        // As in libhdf5, beside the header: most heaps never need another place.
        let data_address = io.allocate_for(DataKind::LocalHeap, FIRST_SEGMENT)?;
        let header = Header { data_size: FIRST_SEGMENT, free_offset: 0, data_address };
        let free = Some(BTreeMap::from([(ALIGN, FIRST_SEGMENT - ALIGN)]));
        let segment = vec![0; FIRST_SEGMENT as usize];
        Ok(Self { address, header, segment, sizes, free, dirty: true, written: false })
    }

    /// The heap at `address`.
    pub fn open(medium: &Medium, address: u64) -> Result<Self> {
        let context = Context::new(medium.sizes()).at(address);
        let length = Header::encoded_length(&context);
        let header = Header::decode(&medium.read(address, length)?, &context)?;
        if header.data_size > MAX_HEAP {
            let expected = format!("at most {MAX_HEAP} byte(s)");
            return Err(DecodeError::new("local heap", address, expected, header.data_size).into());
        }
        let segment = medium.read(header.data_address, header.data_size as usize)?;
        let (sizes, free, dirty, written) = (medium.sizes(), None, false, false);
        Ok(Self { address, header, segment, sizes, free, dirty, written })
    }

    /// The address of its header.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Bytes of its segment.
    pub fn segment_bytes(&self) -> u64 {
        self.segment.len() as u64
    }

    /// The bytes of the string at an offset.
    pub fn bytes(&self, offset: u64) -> Result<&[u8]> {
        Ok(Header::string(&self.segment, offset, self.header.data_address)?)
    }

    /// The string at an offset.
    pub fn text(&self, offset: u64) -> Result<String> {
        Ok(String::from_utf8_lossy(self.bytes(offset)?).into_owned())
    }

    /// Adds a string and gives its offset.
    pub fn insert(&mut self, text: &str) -> Result<u64> {
        if text.contains('\0') {
            return Err(Error::Invalid("a name cannot have a null byte".into()));
        }
        let needed = (text.len() as u64 + 1).next_multiple_of(ALIGN);
        let offset = match self.take(needed)? {
            Some(offset) => offset,
            None => {
                self.grow(needed)?;
                let taken = self.take(needed)?;
                taken.ok_or_else(|| Error::Internal("a local heap without room".into()))?
            }
        };
        let start = offset as usize;
        if let Some(place) = self.segment.get_mut(start..start + needed as usize) {
            place.fill(0);
            place[..text.len()].copy_from_slice(text.as_bytes());
        }
        self.dirty = true;
        Ok(offset)
    }

    /// Removes the string at an offset. The empty one at 0 stays.
    pub fn remove(&mut self, offset: u64) -> Result<()> {
        if offset == 0 {
            return Ok(());
        }
        let length = (self.bytes(offset)?.len() as u64 + 1).next_multiple_of(ALIGN);
        let end = offset.saturating_add(length).min(self.segment_bytes());
        let ranges = self.ranges()?;
        let (mut first, mut last) = (offset, end);
        if let Some((&before, &free)) = ranges.range(..end).next_back() {
            if before + free > offset {
                // The list of another writer has it free already.
                return Ok(());
            }
            if before + free == offset {
                ranges.remove(&before);
                first = before;
            }
        }
        if let Some(free) = ranges.remove(&end) {
            last = end + free;
        }
        ranges.insert(first, last - first);
        self.dirty = true;
        Ok(())
    }

    /// Stages a changed heap.
    pub fn commit(&mut self, io: &dyn MetadataIo) -> Result<()> {
        if !self.dirty {
            return Ok(());
        }
        self.shorten()?;
        if self.header.data_size != self.segment_bytes() {
            self.place(io)?;
        }
        (self.dirty, self.written) = (false, true);
        let least = Header::min_free(self.sizes);
        let ranges = self.ranges()?;
        // A block too small for a list entry cannot be listed; it is lost at the close.
        let listed: Vec<_> =
            ranges.iter().map(|(&o, &l)| (o, l)).filter(|r| r.1 >= least).collect();
        self.header.free_offset = Header::write_free_blocks(&mut self.segment, &listed, self.sizes);
        io.stage(self.header.data_address, self.segment.clone());
        let mut bytes = Vec::new();
        self.header.encode(self.sizes, &mut bytes);
        io.stage(self.address, bytes);
        Ok(())
    }

    /// Stages the heap before a commit, unless its segment has to move. Returns about the memory,
    /// in bytes, that waits for the commit.
    pub fn spill(&mut self, io: &dyn MetadataIo) -> Result<usize> {
        let length = self.segment_bytes();
        if self.dirty && self.header.data_size != length {
            let is_empty = self.ranges()?.get(&ALIGN) == Some(&(length - ALIGN));
            if !is_empty {
                return Ok(self.segment.len());
            }
        }
        self.commit(io)?;
        Ok(0)
    }

    /// Moves a segment that was changed before a commit that freed most of the file. Returns
    /// whether it did.
    pub fn move_down(&mut self, io: &Medium) -> Result<bool> {
        let place = (self.header.data_address, self.header.data_size);
        if !std::mem::take(&mut self.written) || !io.is_mostly_free_before(place.0, place.1) {
            return Ok(false);
        }
        self.place(io)?;
        self.dirty = true;
        self.commit(io)?;
        Ok(true)
    }

    /// Gives its space back.
    pub fn delete(&self, io: &dyn MetadataIo) {
        io.free(self.header.data_address, self.header.data_size);
        let context = Context::new(self.sizes);
        let space = Header::space(&context);
        // Older files of ours have the segment, or another block, where the header's fields end:
        // the padding is given back only if it is known to exist.
        let padded = self.header.data_address.checked_sub(self.address) == Some(space);
        io.free(self.address, if padded { space } else { Header::encoded_length(&context) as u64 });
    }

    fn ranges(&mut self) -> Result<&mut BTreeMap<u64, u64>> {
        if self.free.is_none() {
            let context = Context::new(self.sizes).at(self.address);
            let mut ranges = BTreeMap::new();
            let mut end = 0;
            let mut listed = self.header.free_blocks(&self.segment, &context)?;
            listed.sort_unstable();
            for (offset, length) in listed {
                if offset < end {
                    let expected = "free blocks that do not overlap";
                    return Err(
                        DecodeError::new("local heap", self.address, expected, offset).into()
                    );
                }
                end = offset + length;
                ranges.insert(offset, length);
            }
            self.free = Some(ranges);
        }
        self.free.as_mut().ok_or_else(|| Error::Internal("a local heap without ranges".into()))
    }

    /// The first free range that fits.
    fn take(&mut self, needed: u64) -> Result<Option<u64>> {
        let ranges = self.ranges()?;
        // Ranges are few and grow at the end: the last ones are looked at first.
        let found = ranges.iter().rev().take(64).find(|&(_, &length)| length >= needed);
        let Some((&offset, &length)) = found else { return Ok(None) };
        ranges.remove(&offset);
        if length > needed {
            ranges.insert(offset + needed, length - needed);
        }
        Ok(Some(offset))
    }

    /// Allocates a new place for the segment.
    fn place(&mut self, io: &dyn MetadataIo) -> Result<()> {
        let address = io.allocate_for(DataKind::LocalHeap, self.segment_bytes())?;
        io.free(self.header.data_address, self.header.data_size);
        (self.header.data_address, self.header.data_size) = (address, self.segment_bytes());
        Ok(())
    }

    /// Cuts a segment whose strings are all in its first quarter.
    fn shorten(&mut self) -> Result<()> {
        let old = self.segment_bytes();
        let last = self.ranges()?.last_key_value().map(|(&offset, &length)| (offset, length));
        let Some((used, _)) = last.filter(|&(offset, length)| offset + length == old) else {
            return Ok(());
        };
        let size = (2 * used).next_multiple_of(ALIGN).max(FIRST_SEGMENT);
        if used > old / 4 || size >= old {
            return Ok(());
        }
        self.segment.truncate(size as usize);
        self.ranges()?.insert(used, size - used);
        Ok(())
    }

    /// Makes the segment longer.
    fn grow(&mut self, needed: u64) -> Result<()> {
        let old = self.segment_bytes();
        let size = (2 * old).max(old + needed).next_multiple_of(ALIGN);
        if size > MAX_HEAP {
            return Err(Error::Unsupported(format!("names of more than {MAX_HEAP} bytes")));
        }
        self.segment.resize(size as usize, 0);
        let ranges = self.ranges()?;
        let last = ranges.last_key_value().map(|(&offset, &length)| (offset, length));
        match last {
            Some((offset, length)) if offset + length == old => {
                ranges.insert(offset, length + size - old);
            }
            _ => drop(ranges.insert(old, size - old)),
        }
        self.dirty = true;
        Ok(())
    }
}
