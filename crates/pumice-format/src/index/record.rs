//! The record of a chunk in a chunk index.
//!
//! Four kinds: *plain* (dense, no filter: an address), *filtered* (dense: address, stored size,
//! filter mask), *structured* and *filtered structured* (sections: `docs/format`, chunk metadata
//! record). Fixed and extensible arrays store a record as an **entry**; a version 2 B-tree stores it
//! with the chunk's scaled coordinates inside. All share head and tail:
//!
//! ```text
//!           head                              key (B-tree only)    tail
//! plain     address                           rank x u64
//! filtered  address, size(w), mask u32        rank x u64
//! struct.   address, size(w)                  rank x u64           offsets u64 x (N-1)
//! filt. st. address, size(w)                  rank x u64           offsets u64 x (N-1), sizes u64 x N, masks u32 x N
//! ```
//!
//! Invariants of a decoded record: section offsets ascend from 0 and end within the stored size.
//! An entry whose address is undefined is no record at all ([`RecordFormat::decode_entry`] gives
//! `None`), whatever its other bytes say.

use crate::{DecodeError, Sizes, UNDEFINED};
use pumice_bytes::{Reader, Writer};
use smallvec::SmallVec;

const NAME: &str = "chunk record";

/// The largest number of sections of a structured chunk.
pub const MAX_SECTIONS: u8 = 3;

/// Scaled chunk coordinates (chunk numbers along each axis), slowest axis first.
pub type Coord = SmallVec<[u64; 4]>;

/// The place and size of one stored chunk.
///
/// ```
/// let record = pumice_format::index::ChunkRecord::dense(0x800, 40);
/// assert!(record.sections.is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkRecord {
    /// The address of the chunk's bytes.
    pub address: u64,
    /// The number of stored bytes.
    pub size: u64,
    /// Filters that were skipped for a dense chunk; 0 for a structured one.
    pub filter_mask: u32,
    /// The sections of a structured chunk; empty for a dense one.
    pub sections: SmallVec<[SectionRecord; 3]>,
}

impl ChunkRecord {
    /// A dense chunk that went through every filter there is.
    pub fn dense(address: u64, size: u64) -> Self {
        Self { address, size, filter_mask: 0, sections: SmallVec::new() }
    }

    /// The stored length of section `index`: up to the next section, or to the end.
    ///
    /// ```
    /// use pumice_format::index::{ChunkRecord, SectionRecord};
    /// let mut record = ChunkRecord::dense(0x800, 87);
    /// record.sections.push(SectionRecord { offset: 0, unfiltered: 75, filter_mask: 0 });
    /// record.sections.push(SectionRecord { offset: 75, unfiltered: 12, filter_mask: 0 });
    /// assert_eq!(record.section_length(0), Some(75));
    /// assert_eq!(record.section_length(1), Some(12));
    /// assert_eq!(record.section_length(2), None);
    /// ```
    pub fn section_length(&self, index: usize) -> Option<u64> {
        let start = self.sections.get(index)?.offset;
        let end = self.sections.get(index + 1).map_or(self.size, |next| next.offset);
        end.checked_sub(start)
    }
}

/// One section of a structured chunk.
///
/// ```
/// let section = pumice_format::index::SectionRecord { offset: 75, unfiltered: 12, filter_mask: 0 };
/// assert_eq!(section.offset, 75);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SectionRecord {
    /// Its offset from the start of the chunk.
    pub offset: u64,
    /// Its length before filters, checksum included. Without filters it is the stored length and
    /// takes no room in the record.
    pub unfiltered: u64,
    /// Filters that were skipped.
    pub filter_mask: u32,
}

/// The fields of a record.
///
/// ```
/// use pumice_format::index::RecordKind;
/// assert_eq!(RecordKind::Structured { sections: 2 }.client_id(), 2);
/// assert_eq!(RecordKind::FilteredStructured { sections: 2 }.tree_type(), 13);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// A dense chunk without filters.
    Plain,
    /// A dense chunk with filters.
    Filtered,
    /// A structured chunk without filters.
    Structured {
        /// 1 to 3.
        sections: u8,
    },
    /// A structured chunk with filters on at least one section.
    FilteredStructured {
        /// 1 to 3.
        sections: u8,
    },
}

impl RecordKind {
    /// The highest client id that is known.
    pub(crate) const NEWEST: u8 = 3;
    /// The highest record type of a version 2 B-tree that is known.
    pub const NEWEST_TREE: u8 = 10 + Self::NEWEST;

    /// The number of sections; 0 for dense chunks.
    pub fn sections(self) -> usize {
        match self {
            Self::Plain | Self::Filtered => 0,
            Self::Structured { sections } | Self::FilteredStructured { sections } => {
                usize::from(sections)
            }
        }
    }

    /// The client id in the blocks of fixed and extensible arrays.
    pub fn client_id(self) -> u8 {
        match self {
            Self::Plain => 0,
            Self::Filtered => 1,
            Self::Structured { .. } => 2,
            Self::FilteredStructured { .. } => 3,
        }
    }

    /// The record type of a version 2 B-tree.
    pub fn tree_type(self) -> u8 {
        10 + self.client_id()
    }

    /// The version byte that index headers and the data block of a fixed array get.
    pub fn header_version(self) -> u8 {
        u8::from(self.sections() > 0)
    }
}

/// The exact form of a record in one index.
///
/// ```
/// use pumice_format::{Sizes, index::{ChunkRecord, RecordFormat}};
/// use pumice_bytes::Reader;
///
/// let format = RecordFormat::filtered(Sizes::default(), 4, 400);
/// assert_eq!(format.entry_size(), 8 + 3 + 4);
///
/// let record = ChunkRecord { filter_mask: 1, ..ChunkRecord::dense(0x1000, 77) };
/// let mut entry = Vec::new();
/// format.encode_entry(&record, &mut entry)?;
/// assert_eq!(format.decode_entry(&mut Reader::new("entry", 0, &entry))?, Some(record));
/// # Ok::<(), pumice_bytes::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordFormat {
    /// The fields of the records.
    pub kind: RecordKind,
    /// Bytes of an address.
    pub offset_size: u8,
    /// Bytes of the stored size; 0 for plain records, which have none.
    pub size_width: u8,
    /// Bytes of a whole dense chunk: the stored size of plain records.
    pub chunk_bytes: u64,
}

/// The width of the stored size under layout message version 4: one byte more than the chunk's own
/// size needs, at most 8.
///
/// ```
/// use pumice_format::index::size_width;
/// assert_eq!([1, 255, 256, 65_535, 65_536].map(size_width), [2, 2, 3, 3, 4]);
/// ```
pub fn size_width(chunk_bytes: u64) -> u8 {
    let log2 = chunk_bytes.max(1).ilog2();
    // At most 1 + 71 / 8 = 9 before the cap.
    (1 + (log2 + 8) / 8).min(8) as u8
}

impl RecordFormat {
    /// Records of dense chunks without filters.
    pub fn plain(sizes: Sizes, chunk_bytes: u64) -> Self {
        Self { kind: RecordKind::Plain, offset_size: sizes.offset, size_width: 0, chunk_bytes }
    }

    /// Records of dense chunks with filters, under a layout message of version `layout_version`.
    pub fn filtered(sizes: Sizes, layout_version: u8, chunk_bytes: u64) -> Self {
        let size_width = if layout_version >= 5 { sizes.length } else { size_width(chunk_bytes) };
        Self { kind: RecordKind::Filtered, offset_size: sizes.offset, size_width, chunk_bytes }
    }

    /// Records of structured chunks of 1 to 3 sections.
    pub fn structured(sizes: Sizes, sections: u8, filtered: bool, chunk_bytes: u64) -> Self {
        let kind = if filtered {
            RecordKind::FilteredStructured { sections }
        } else {
            RecordKind::Structured { sections }
        };
        let size_width = if sections == 3 { 8 } else { size_width(chunk_bytes) };
        Self { kind, offset_size: sizes.offset, size_width, chunk_bytes }
    }

    /// Bytes of an entry of a fixed or extensible array.
    pub fn entry_size(&self) -> usize {
        self.head_size() + self.tail_size()
    }

    /// Bytes of a record of a version 2 B-tree.
    pub fn tree_record_size(&self, rank: usize) -> usize {
        self.entry_size() + 8 * rank
    }

    /// The format with the width of the stored size that `entry_size` implies: the file takes
    /// precedence over the layout message.
    pub fn with_entry_size(
        self,
        entry_size: usize,
        structure: &'static str,
        address: u64,
    ) -> Result<Self, DecodeError> {
        let fixed = self.entry_size() - usize::from(self.size_width);
        let width = entry_size.checked_sub(fixed).and_then(|width| u8::try_from(width).ok());
        let widths = if self.kind == RecordKind::Plain { 0..=0 } else { 1..=8 };
        match width {
            Some(size_width) if widths.contains(&size_width) => Ok(Self { size_width, ..self }),
            _ => Err(DecodeError::new(
                structure,
                address,
                format!("an entry of {fixed} byte(s) and a size of {widths:?} byte(s)"),
                entry_size,
            )),
        }
    }

    /// [`with_entry_size`](Self::with_entry_size) for the records of a B-tree.
    pub fn with_tree_record_size(
        self,
        rank: usize,
        record_size: usize,
        address: u64,
    ) -> Result<Self, DecodeError> {
        let key = rank.saturating_mul(8);
        match record_size.checked_sub(key) {
            Some(entry) => self.with_entry_size(entry, "version 2 B-tree header", address),
            None => Err(DecodeError::new(
                "version 2 B-tree header",
                address,
                format!("records of more than {key} byte(s)"),
                record_size,
            )),
        }
    }

    /// The offset of the scaled coordinates in a record of a B-tree.
    pub fn key_offset(&self) -> usize {
        self.head_size()
    }

    /// Appends an entry of an array.
    pub fn encode_entry(&self, record: &ChunkRecord, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        self.encode_tree_record(&[], record, out)
    }

    /// Appends the entry of a chunk that is not stored.
    pub fn encode_unset(&self, out: &mut Vec<u8>) {
        out.put_uint(UNDEFINED, usize::from(self.offset_size));
        out.put_zeros(self.entry_size() - usize::from(self.offset_size));
    }

    /// Reads an entry of an array; `None` for a chunk that is not stored.
    pub fn decode_entry(
        &self,
        reader: &mut Reader<'_>,
    ) -> Result<Option<ChunkRecord>, DecodeError> {
        let (_, record) = self.decode_tree_record(0, reader)?;
        Ok(record)
    }

    /// Appends a record of a B-tree.
    pub fn encode_tree_record(
        &self,
        coord: &[u64],
        record: &ChunkRecord,
        out: &mut Vec<u8>,
    ) -> Result<(), DecodeError> {
        self.check(record)?;
        out.put_uint(record.address, usize::from(self.offset_size));
        self.encode_head(record, out);
        for &index in coord {
            out.put_u64(index);
        }
        self.encode_tail(record, out);
        Ok(())
    }

    /// Reads a record of a B-tree: the chunk's coordinates, and where it is if it is stored.
    pub fn decode_tree_record(
        &self,
        rank: usize,
        reader: &mut Reader<'_>,
    ) -> Result<(Coord, Option<ChunkRecord>), DecodeError> {
        let address = reader.offset(usize::from(self.offset_size))?;
        let mut record = self.decode_head(address, reader)?;
        let mut coord = Coord::new();
        for _ in 0..reader.count(rank as u64, 8)? {
            coord.push(reader.u64()?);
        }
        if address == UNDEFINED {
            reader.skip(self.tail_size())?;
            return Ok((coord, None));
        }
        self.decode_tail(&mut record, reader)?;
        Ok((coord, Some(record)))
    }

    /// Appends all fields but the address: a single-chunk index in a layout message.
    pub fn encode_body(&self, record: &ChunkRecord, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        self.check(record)?;
        self.encode_head(record, out);
        self.encode_tail(record, out);
        Ok(())
    }

    /// Reads all fields but the address, which a layout message stores after them.
    pub fn decode_body(
        &self,
        address: u64,
        reader: &mut Reader<'_>,
    ) -> Result<ChunkRecord, DecodeError> {
        let mut record = self.decode_head(address, reader)?;
        self.decode_tail(&mut record, reader)?;
        Ok(record)
    }

    fn head_size(&self) -> usize {
        let mask = if self.kind == RecordKind::Filtered { 4 } else { 0 };
        usize::from(self.offset_size) + usize::from(self.size_width) + mask
    }

    fn tail_size(&self) -> usize {
        let sections = self.kind.sections();
        let filtered = matches!(self.kind, RecordKind::FilteredStructured { .. });
        8 * sections.saturating_sub(1) + if filtered { 12 * sections } else { 0 }
    }

    /// Refuses a record that this format cannot express.
    fn check(&self, record: &ChunkRecord) -> Result<(), DecodeError> {
        let refuse = |expected: String, found: u64| {
            Err(DecodeError::new(NAME, record.address, expected, found))
        };
        // One more than the address, so that the undefined one (all bits set) is refused too.
        if !record.address.checked_add(1).is_some_and(|next| fits(next, self.offset_size)) {
            return refuse(format!("an address of {} byte(s)", self.offset_size), record.address);
        }
        if self.kind == RecordKind::Plain && record.size != self.chunk_bytes {
            return refuse(format!("a whole chunk of {} byte(s)", self.chunk_bytes), record.size);
        }
        if self.kind != RecordKind::Plain && !fits(record.size, self.size_width) {
            return refuse(format!("a size of {} byte(s)", self.size_width), record.size);
        }
        if record.sections.len() != self.kind.sections() {
            let found = record.sections.len() as u64;
            return refuse(format!("{} section(s)", self.kind.sections()), found);
        }
        check_order(record).or_else(|offset| refuse("ascending section offsets".into(), offset))
    }

    fn encode_head(&self, record: &ChunkRecord, out: &mut Vec<u8>) {
        if self.size_width > 0 {
            out.put_uint(record.size, usize::from(self.size_width));
        }
        if self.kind == RecordKind::Filtered {
            out.put_u32(record.filter_mask);
        }
    }

    fn decode_head(
        &self,
        address: u64,
        reader: &mut Reader<'_>,
    ) -> Result<ChunkRecord, DecodeError> {
        let mut record = ChunkRecord::dense(address, self.chunk_bytes);
        if self.size_width > 0 {
            record.size = reader.uint(usize::from(self.size_width))?;
        }
        if self.kind == RecordKind::Filtered {
            record.filter_mask = reader.u32()?;
        }
        Ok(record)
    }

    fn encode_tail(&self, record: &ChunkRecord, out: &mut Vec<u8>) {
        for section in record.sections.iter().skip(1) {
            out.put_u64(section.offset);
        }
        if matches!(self.kind, RecordKind::FilteredStructured { .. }) {
            for section in &record.sections {
                out.put_u64(section.unfiltered);
            }
            for section in &record.sections {
                out.put_u32(section.filter_mask);
            }
        }
    }

    fn decode_tail(
        &self,
        record: &mut ChunkRecord,
        reader: &mut Reader<'_>,
    ) -> Result<(), DecodeError> {
        let start = reader.clone();
        record.sections.resize(self.kind.sections(), SectionRecord::default());
        for section in record.sections.iter_mut().skip(1) {
            section.offset = reader.u64()?;
        }
        check_order(record).map_err(|offset| {
            start.error(format!("section offsets that ascend to {}", record.size), offset)
        })?;
        if matches!(self.kind, RecordKind::FilteredStructured { .. }) {
            for section in &mut record.sections {
                section.unfiltered = reader.u64()?;
            }
            for section in &mut record.sections {
                section.filter_mask = reader.u32()?;
            }
            return Ok(());
        }
        for index in 0..record.sections.len() {
            let length = record.section_length(index).unwrap_or_default();
            if let Some(section) = record.sections.get_mut(index) {
                section.unfiltered = length;
            }
        }
        Ok(())
    }
}

/// Whether `value` fits into `width` bytes.
fn fits(value: u64, width: u8) -> bool {
    width >= 8 || value >> (8 * width) == 0
}

/// Offsets ascend from 0 to at most the stored size; the first that does not is the error.
fn check_order(record: &ChunkRecord) -> Result<(), u64> {
    let mut last = 0;
    for (index, section) in record.sections.iter().enumerate() {
        let misplaced = index == 0 && section.offset != 0;
        if misplaced || section.offset < last || section.offset > record.size {
            return Err(section.offset);
        }
        last = section.offset;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn structured(filtered: bool) -> (RecordFormat, ChunkRecord) {
        let format = RecordFormat::structured(Sizes::default(), 2, filtered, 40);
        let mut record = ChunkRecord::dense(0x800, 0x57);
        record.sections.push(SectionRecord { offset: 0, unfiltered: 0x4b, filter_mask: 0 });
        record.sections.push(SectionRecord { offset: 0x4b, unfiltered: 12, filter_mask: 0 });
        (format, record)
    }

    #[test]
    fn entries_have_the_documented_sizes() {
        assert_eq!(structured(false).0.entry_size(), 18);
        assert_eq!(structured(true).0.entry_size(), 42);
        let wide = RecordFormat::structured(Sizes::default(), 3, true, 40);
        assert_eq!((wide.size_width, wide.entry_size()), (8, 8 + 8 + 16 + 36));
        assert_eq!(RecordFormat::filtered(Sizes::default(), 4, 40).entry_size(), 14);
        assert_eq!(RecordFormat::filtered(Sizes::default(), 5, 40).entry_size(), 20);
        let narrow = Sizes { offset: 4, length: 4 };
        assert_eq!(RecordFormat::filtered(narrow, 5, 40).entry_size(), 12);
        assert_eq!(RecordFormat::plain(narrow, 40).tree_record_size(3), 28);
    }

    #[test]
    fn the_width_of_the_size_grows_with_the_chunk_and_ends_at_eight() {
        let widths = [1, 255, 256, 1 << 16, 1 << 24, 1 << 32, 1 << 40, 1 << 48, 1 << 56, u64::MAX];
        assert_eq!(widths.map(size_width), [2, 2, 3, 4, 5, 6, 7, 8, 8, 8]);
        assert_eq!(size_width(0), 2);
    }

    #[test]
    fn the_width_in_the_file_wins() {
        let format = RecordFormat::filtered(Sizes::default(), 5, 40);
        assert_eq!(format.with_entry_size(14, "header", 0).unwrap().size_width, 2);
        assert!(format.with_entry_size(12, "header", 0).is_err());
        assert!(format.with_entry_size(21, "header", 0).is_err());
        assert!(RecordFormat::plain(Sizes::default(), 40).with_entry_size(9, "header", 0).is_err());
        let in_tree = structured(true).0.with_tree_record_size(2, 48 + 16, 0).unwrap();
        assert_eq!(in_tree.size_width, 8);
        assert!(format.with_tree_record_size(9, 10, 0).is_err());
    }

    #[test]
    fn a_tree_record_has_its_coordinates_behind_the_size() {
        let (format, record) = structured(false);
        let mut bytes = Vec::new();
        format.encode_tree_record(&[3, 4], &record, &mut bytes).unwrap();
        let expected: [&[u8]; 5] = [
            &0x800u64.to_le_bytes(),
            &[0x57, 0],
            &3u64.to_le_bytes(),
            &4u64.to_le_bytes(),
            &0x4bu64.to_le_bytes(),
        ];
        assert_eq!(bytes, expected.concat());
        assert_eq!(bytes.len(), format.tree_record_size(2));
        assert_eq!(format.key_offset(), 10);
        let decoded = format.decode_tree_record(2, &mut Reader::new("record", 0, &bytes)).unwrap();
        assert_eq!(decoded, (Coord::from_slice(&[3, 4]), Some(record)));
    }

    #[test]
    fn the_mask_of_a_dense_record_comes_before_its_coordinates() {
        let format = RecordFormat::filtered(Sizes::default(), 4, 40);
        let record = ChunkRecord { filter_mask: 9, ..ChunkRecord::dense(0x800, 7) };
        let mut bytes = Vec::new();
        format.encode_tree_record(&[5], &record, &mut bytes).unwrap();
        assert_eq!(bytes, [0, 8, 0, 0, 0, 0, 0, 0, 7, 0, 9, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn an_undefined_address_is_no_record_whatever_follows() {
        let (format, _) = structured(true);
        let mut unset = Vec::new();
        format.encode_unset(&mut unset);
        assert_eq!(unset.len(), format.entry_size());
        assert_eq!(format.decode_entry(&mut Reader::new("entry", 0, &unset)).unwrap(), None);
        unset[8..].fill(0xAB);
        assert_eq!(format.decode_entry(&mut Reader::new("entry", 0, &unset)).unwrap(), None);
    }

    #[test]
    fn sections_out_of_order_are_refused_both_ways() {
        let (format, record) = structured(true);
        let mut bytes = Vec::new();
        format.encode_entry(&record, &mut bytes).unwrap();
        bytes[10] = 0x58;
        assert!(format.decode_entry(&mut Reader::new("entry", 0, &bytes)).is_err());
        let mut late = record.clone();
        late.sections[1].offset = 0x58;
        assert!(format.encode_entry(&late, &mut Vec::new()).is_err());
        let mut missing = record;
        missing.sections.pop();
        assert!(format.encode_entry(&missing, &mut Vec::new()).is_err());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let narrow = Sizes { offset: 4, length: 4 };
        let format = RecordFormat::filtered(narrow, 4, 40);
        let encode = |address, size| {
            format.encode_entry(&ChunkRecord::dense(address, size), &mut Vec::new())
        };
        assert!(encode(0xFFFF_FFFE, 65_535).is_ok());
        assert!(encode(0xFFFF_FFFF, 1).is_err(), "all bits set mean undefined");
        assert!(encode(UNDEFINED, 1).is_err());
        assert!(encode(1, 65_536).is_err());
        let plain = RecordFormat::plain(narrow, 40);
        assert!(plain.encode_entry(&ChunkRecord::dense(1, 39), &mut Vec::new()).is_err());
    }
}
