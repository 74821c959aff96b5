//! Free-space managers: a header ("FSHD") that counts free sections, and the list of them ("FSSE").
//!
//! A file has managers of its own space (client 1, section classes simple, small and large, none of
//! which stores anything beyond place and size); a fractal heap has one for its blocks (client 0).
//!
//! ```text
//! header                                   list
//! 0  "FSHD"                                0  "FSSE"
//! 4  version 0                             4  version 0
//! 5  client                                5  address of the header
//! 6  bytes, sections, sections in the         for every size: how many sections (as wide as the
//!    list, others (4 lengths)                 count of all needs), the size, then each section:
//!    classes, shrink %, expand %,             its offset, its class, what the class adds
//!    bits of an offset (4 x 2 bytes)          checksum
//!    largest section (length)
//!    the list's address, bytes, room
//!    checksum
//! ```

use crate::{Context, DecodeError, Sizes};
use pumice_bytes::Writer;

const HEADER: &str = "free-space manager header";
const SECTIONS: &str = "free-space section list";

/// Percent at which libhdf5 shrinks and expands the room of a list.
const SHRINK: u16 = 80;
const EXPAND: u16 = 120;

/// The largest address that libhdf5's usual file driver knows, and its bits.
const LARGEST: u64 = (1 << 63) - 1;
const LARGEST_BITS: u16 = 63;

/// The owner of the space that a manager manages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// A fractal heap's blocks.
    FractalHeap,
    /// The file.
    File,
}

/// The class of a section: of a file without pages, smaller than a page, of whole pages.
pub const SIMPLE: u8 = 0;
/// A section within a page.
pub const SMALL: u8 = 1;
/// A section of the space for what takes pages.
pub const LARGE: u8 = 2;

/// A free section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Section {
    /// Bytes.
    pub size: u64,
    /// Its address or offset.
    pub offset: u64,
    /// Its class: [`SIMPLE`], [`SMALL`], [`LARGE`] in a file.
    pub class: u8,
}

/// The header of a free-space manager.
///
/// ```
/// use pumice_format::{Context, Sizes};
/// use pumice_format::free_space::{Manager, SIMPLE, Section};
///
/// let sections = [Section { size: 100, offset: 0x800, class: SIMPLE }];
/// let mut manager = Manager::of_file(&sections, Sizes::default());
/// (manager.list_address, manager.list_room) = (0x400, manager.list_length);
/// let (mut header, mut list) = (Vec::new(), Vec::new());
/// manager.encode(Sizes::default(), &mut header);
/// manager.encode_sections(0x300, &sections, Sizes::default(), &mut list);
///
/// let context = Context::default();
/// let found = Manager::decode(&header, &context.at(0x300))?;
/// assert_eq!(found, manager);
/// assert_eq!(found.decode_sections(&list, 0x300, &context.at(0x400))?, sections);
/// # Ok::<(), pumice_format::DecodeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manager {
    /// The owner of the space.
    pub client: Client,
    /// Bytes of all sections.
    pub total: u64,
    /// Sections in the list.
    pub listed: u64,
    /// Sections that are not in the list.
    pub unlisted: u64,
    /// Classes of sections.
    pub classes: u16,
    /// Bits of a section's offset.
    pub offset_bits: u16,
    /// The largest size that a section can have.
    pub largest: u64,
    /// The address of the list, or undefined.
    pub list_address: u64,
    /// Its bytes.
    pub list_length: u64,
    /// Bytes that are there for it.
    pub list_room: u64,
}

impl Manager {
    /// A manager of a file's space with these sections; its list has no address yet.
    pub fn of_file(sections: &[Section], sizes: Sizes) -> Self {
        let largest = LARGEST.min(largest_length(sizes));
        Self::with(Client::File, 3, sections, (LARGEST_BITS, largest), sizes)
    }

    /// A manager of the free ranges of a heap's direct blocks, the largest of which has `largest`
    /// bytes, with offsets of so many bits.
    pub fn of_heap(sections: &[Section], bits: u16, largest: u64, sizes: Sizes) -> Self {
        Self::with(Client::FractalHeap, 4, sections, (bits, largest), sizes)
    }

    fn with(
        client: Client,
        classes: u16,
        sections: &[Section],
        (offset_bits, largest): (u16, u64),
        sizes: Sizes,
    ) -> Self {
        let total = sections.iter().fold(0u64, |sum, section| sum.saturating_add(section.size));
        let mut manager = Self {
            client,
            total,
            listed: sections.len() as u64,
            unlisted: 0,
            classes,
            offset_bits,
            largest,
            list_address: crate::UNDEFINED,
            list_length: 0,
            list_room: 0,
        };
        manager.list_length = manager.length_of(sections, u64::from(sizes.offset));
        manager
    }

    /// Bytes of the header.
    pub fn encoded_length(sizes: Sizes) -> usize {
        18 + 7 * usize::from(sizes.length) + usize::from(sizes.offset)
    }

    /// Decodes a header.
    pub fn decode(bytes: &[u8], context: &Context) -> Result<Self, DecodeError> {
        let mut reader = context.reader(HEADER, bytes);
        reader.signature(b"FSHD")?;
        let start = reader.clone();
        let version = reader.u8()?;
        if version != 0 {
            return Err(start.unknown("version 0", 0u8, version));
        }
        let start = reader.clone();
        let client = match reader.u8()? {
            0 => Client::FractalHeap,
            1 => Client::File,
            other => return Err(start.error("client 0 or 1", other)),
        };
        let length = context.length_width();
        let total = reader.uint(length)?;
        reader.skip(length)?;
        let (listed, unlisted) = (reader.uint(length)?, reader.uint(length)?);
        let classes = reader.u16()?;
        reader.skip(4)?;
        let start = reader.clone();
        let offset_bits = reader.u16()?;
        if offset_bits == 0 || offset_bits > 64 {
            return Err(start.error("offsets of 1 to 64 bits", offset_bits));
        }
        let largest = reader.uint(length)?;
        let list_address = reader.offset(context.offset_width())?;
        let (list_length, list_room) = (reader.uint(length)?, reader.uint(length)?);
        reader.checksum()?;
        let manager = Self {
            client,
            total,
            listed,
            unlisted,
            classes,
            offset_bits,
            largest,
            list_address,
            list_length,
            list_room,
        };
        Ok(manager)
    }

    /// Appends the header.
    pub fn encode(&self, sizes: Sizes, out: &mut Vec<u8>) {
        let (start, length) = (out.len(), usize::from(sizes.length));
        out.put_bytes(b"FSHD");
        out.put_u8(0);
        out.put_u8(match self.client {
            Client::FractalHeap => 0,
            Client::File => 1,
        });
        out.put_uint(self.total, length);
        out.put_uint(self.listed.saturating_add(self.unlisted), length);
        out.put_uint(self.listed, length);
        out.put_uint(self.unlisted, length);
        out.put_u16(self.classes);
        out.put_u16(SHRINK);
        out.put_u16(EXPAND);
        out.put_u16(self.offset_bits);
        out.put_uint(self.largest, length);
        out.put_uint(self.list_address, usize::from(sizes.offset));
        out.put_uint(self.list_length, length);
        out.put_uint(self.list_room, length);
        out.put_checksum(start);
    }

    /// Decodes the list of sections of the manager at `header`, sorted by size. Classes that store
    /// something of their own are errors.
    ///
    /// In a file with short lengths, libhdf5 cuts the largest size in the header off, but not the
    /// width of sizes in the list that it wrote: both widths are tried.
    pub fn decode_sections(
        &self,
        bytes: &[u8],
        header: u64,
        context: &Context,
    ) -> Result<Vec<Section>, DecodeError> {
        let [count, _, offset] = self.widths();
        let limit = largest_length(context.sizes);
        if context.length_width() < 8
            && let Ok(wide) = self.decode_list(bytes, header, [count, 8, offset], context)
            && wide.iter().all(|section| section.size <= limit)
            && wide.iter().fold(0u64, |sum, one| sum.wrapping_add(one.size)) & limit == self.total
        {
            return Ok(wide);
        }
        self.decode_list(bytes, header, self.widths(), context)
    }

    fn decode_list(
        &self,
        bytes: &[u8],
        header: u64,
        [count_width, size_width, offset_width]: [usize; 3],
        context: &Context,
    ) -> Result<Vec<Section>, DecodeError> {
        let mut reader = context.reader(SECTIONS, bytes);
        reader.signature(b"FSSE")?;
        let start = reader.clone();
        let version = reader.u8()?;
        if version != 0 {
            return Err(start.unknown("version 0", 0u8, version));
        }
        let start = reader.clone();
        let owner = reader.offset(context.offset_width())?;
        if owner != header {
            return Err(start.error(format!("the manager at {header:#x}"), format!("{owner:#x}")));
        }
        let most = reader.count(self.listed, offset_width + 1)?;
        let mut sections = Vec::with_capacity(most);
        while (sections.len() as u64) < self.listed {
            let start = reader.clone();
            let count = reader.uint(count_width)?;
            let size = reader.uint(size_width)?;
            let left = self.listed - sections.len() as u64;
            if count == 0 || count > left || size == 0 {
                return Err(start.error(
                    format!("up to {left} section(s) of a size"),
                    format!("{count} of {size} byte(s)"),
                ));
            }
            for _ in 0..count {
                let offset = reader.uint(offset_width)?;
                let start = reader.clone();
                let class = reader.u8()?;
                if class > LARGE || (self.client == Client::FractalHeap && class != SIMPLE) {
                    return Err(start.error("a class of plain sections", class));
                }
                sections.push(Section { size, offset, class });
            }
        }
        let spare = reader.remaining().saturating_sub(4);
        reader.skip(spare)?;
        reader.checksum()?;
        Ok(sections)
    }

    /// Whether bytes are a list of sections of any class, by signature and checksum.
    pub fn check_list(&self, bytes: &[u8], context: &Context) -> Result<(), DecodeError> {
        let mut reader = context.reader(SECTIONS, bytes);
        reader.signature(b"FSSE")?;
        reader.skip(reader.remaining().saturating_sub(4))?;
        reader.checksum()
    }

    /// Appends the list of sections, sorted by size, of the manager at `header`: as long as it says,
    /// with zeros before the checksum where the sections need less.
    pub fn encode_sections(
        &self,
        header: u64,
        sections: &[Section],
        sizes: Sizes,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        out.put_bytes(b"FSSE");
        out.put_u8(0);
        out.put_uint(header, usize::from(sizes.offset));
        let [count_width, size_width, offset_width] = self.widths();
        for same in sections.chunk_by(|a, b| a.size == b.size) {
            out.put_uint(same.len() as u64, count_width);
            out.put_uint(same.first().map_or(0, |section| section.size), size_width);
            for section in same {
                out.put_uint(section.offset, offset_width);
                out.put_u8(section.class);
            }
        }
        let written = (out.len() - start + 4) as u64;
        out.put_zeros(self.list_length.saturating_sub(written) as usize);
        out.put_checksum(start);
    }

    /// Bytes of a count, of a size and of an offset in the list.
    fn widths(&self) -> [usize; 3] {
        let limit = |value: u64| (value.max(1).ilog2() / 8 + 1) as usize;
        [limit(self.listed), limit(self.largest), usize::from(self.offset_bits.div_ceil(8))]
    }

    fn length_of(&self, sections: &[Section], address: u64) -> u64 {
        let [count_width, size_width, offset_width] = self.widths();
        let different = sections.chunk_by(|a, b| a.size == b.size).count();
        let per_section = offset_width + 1;
        let all = different * (count_width + size_width) + sections.len() * per_section;
        9 + address + all as u64
    }
}

/// The largest number that a length of the file holds.
fn largest_length(sizes: Sizes) -> u64 {
    u64::MAX >> (64 - 8 * u32::from(sizes.length.clamp(1, 8)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sections(count: u64) -> Vec<Section> {
        let one = |number| Section { size: 8 + number / 3, offset: number * 1000, class: SIMPLE };
        (1..=count).map(one).collect()
    }

    #[test]
    fn lists_of_any_length_come_back_and_have_the_length_that_was_said() {
        for count in [0, 1, 2, 255, 256, 257, 1000] {
            let sections = sections(count);
            let manager = Manager::of_file(&sections, Sizes::default());
            let mut bytes = Vec::new();
            manager.encode_sections(7, &sections, Sizes::default(), &mut bytes);
            assert_eq!(bytes.len() as u64, manager.list_length);
            let context = Context::default();
            assert_eq!(manager.decode_sections(&bytes, 7, &context).unwrap(), sections);
            assert!(manager.decode_sections(&bytes, 8, &context).is_err());
        }
    }

    #[test]
    fn short_lengths_have_sizes_of_either_width_in_lists() {
        let sections = sections(5);
        for length in [2, 4] {
            let sizes = Sizes { offset: 8, length };
            let narrow = Manager::of_file(&sections, sizes);
            // As libhdf5 does.
            let wide = Manager { largest: LARGEST, ..Manager::of_file(&sections, sizes) };
            let context = Context::new(sizes);
            for manager in [narrow, wide] {
                let (mut header, mut list) = (Vec::new(), Vec::new());
                manager.encode(sizes, &mut header);
                manager.encode_sections(7, &sections, sizes, &mut list);
                let found = Manager::decode(&header, &context).unwrap();
                assert_eq!(found.decode_sections(&list, 7, &context).unwrap(), sections);
            }
        }
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_an_error() {
        let sections = sections(20);
        let manager = Manager::of_file(&sections, Sizes::default());
        let (mut header, mut list) = (Vec::new(), Vec::new());
        manager.encode(Sizes::default(), &mut header);
        assert_eq!(header.len(), Manager::encoded_length(Sizes::default()));
        manager.encode_sections(7, &sections, Sizes::default(), &mut list);
        let context = Context::default();
        for place in 0..header.len() {
            let mut damaged = header.clone();
            damaged[place] ^= 1;
            assert!(Manager::decode(&damaged, &context).is_err(), "{place}");
            assert!(Manager::decode(&header[..place], &context).is_err(), "{place}");
        }
        for place in 0..list.len() {
            let mut damaged = list.clone();
            damaged[place] ^= 1;
            assert!(manager.decode_sections(&damaged, 7, &context).is_err(), "{place}");
            assert!(manager.decode_sections(&list[..place], 7, &context).is_err(), "{place}");
        }
    }
}
