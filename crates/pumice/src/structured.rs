//! Stored structured chunks, section by section, past filters and conversion.

use crate::Dataset;
use crate::chunk::Chunks;
use crate::filters::Section;
use crate::select::Select;
use pumice_engine::{Error, Result};
use pumice_filter::Pipeline;
use pumice_format::index::{ChunkRecord, SectionRecord};
use pumice_space::{CellSet, Selection};
use std::ops::ControlFlow;

/// The record of a structured chunk, with its sections.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StructuredChunkInfo {
    /// The chunk's first cell.
    pub offset: Vec<u64>,
    /// The address of its bytes, counted from the start of the file.
    pub address: u64,
    /// The number of stored bytes.
    pub size: u64,
    /// Its sections, in the order in which they are stored.
    pub sections: Vec<SectionInfo>,
}

/// One section of a stored chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SectionInfo {
    /// The kind of the section.
    pub section: Section,
    /// Bytes stored; 0 if it is empty.
    pub size: u64,
    /// Bytes before filters, checksum included.
    pub unfiltered_size: u64,
    /// A bit for each filter that was skipped, the first filter's lowest.
    pub filter_mask: u32,
}

/// The bytes of one section as they are, or will be, stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSection {
    /// The stored bytes: the output of the section's filters.
    pub bytes: Vec<u8>,
    /// Bytes before filters, checksum included.
    pub unfiltered_size: u64,
    /// A bit for each filter that was skipped, the first filter's lowest.
    pub filter_mask: u32,
}

impl StoredSection {
    /// A section that is stored without filters: all of its `filters` are skipped.
    pub fn unfiltered(bytes: Vec<u8>, filters: usize) -> Self {
        let filter_mask = 1u32.checked_shl(filters as u32).map_or(u32::MAX, |next| next - 1);
        Self { unfiltered_size: bytes.len() as u64, bytes, filter_mask }
    }

    /// The bytes of section 0 before filters: which cells of a chunk of shape `chunk` are defined,
    /// in coordinates of the chunk, with the checksum.
    pub fn selection(chunk: &[u64], cells: &Selection) -> Result<Vec<u8>> {
        cells.check(chunk)?;
        let cells = CellSet::from_selection(cells, chunk)?;
        Ok(Pipeline::default().encode_cells(chunk, &cells)?.bytes)
    }
}

/// Stored structured chunks. A chunk is named by its first cell.
///
/// Reading writes back a dirty chunk first; writing replaces the chunk in file and cache.
/// Concurrent requests of the dataset come before or after.
impl Dataset {
    /// Stores sections as the chunk at `offset`, in the order of
    /// [`sections`](Self::sections).
    ///
    /// They are decoded once to see that they can be: damaged sections, wrong sizes and cells
    /// outside the extent are refused.
    ///
    /// ```
    /// use pumice::{File, Selection, StoredSection};
    ///
    /// let file = File::in_memory()?;
    /// let builder = file.new_dataset::<u8>().shape([10, 10]).chunk([5, 5]).sparse();
    /// let dataset = builder.no_filters().create("d")?;
    /// let cells = Selection::block(&[3, 2], &[2, 3])?; // of the chunk
    /// let sections = [
    ///     StoredSection::unfiltered(StoredSection::selection(&[5, 5], &cells)?, 0),
    ///     StoredSection::unfiltered(vec![32, 33, 34, 42, 43, 44], 0),
    /// ];
    /// dataset.write_structured_chunk([5, 0], &sections)?;
    /// assert_eq!(dataset.read::<u8>((8, 2..5))?, [32, 33, 34]);
    /// assert_eq!(dataset.read_structured_chunk([5, 0])?.unwrap(), sections);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn write_structured_chunk(
        &self,
        offset: impl AsRef<[u64]>,
        sections: &[StoredSection],
    ) -> Result<()> {
        self.require_structured()?;
        let wanted = self.sections().len();
        if sections.len() != wanted {
            let found = sections.len();
            let what = format!("the dataset's chunks have {wanted} sections, not {found}");
            return self.at(Err(Error::Invalid(what)));
        }
        let mut record = ChunkRecord::dense(0, 0);
        let mut bytes = Vec::with_capacity(sections.iter().map(|part| part.bytes.len()).sum());
        for part in sections {
            record.sections.push(SectionRecord {
                offset: bytes.len() as u64,
                unfiltered: part.unfiltered_size,
                filter_mask: part.filter_mask,
            });
            bytes.extend_from_slice(&part.bytes);
        }
        record.size = bytes.len() as u64;
        self.make_room()?;
        self.at(self.state.write_sections(offset.as_ref(), record, &bytes))
    }

    /// Fails if the chunk at `offset`, of a sparse dataset, states a wrong size of its selection
    /// before filters. Reads do not need that size, but other programs may. `pumice check` calls
    /// this.
    ///
    /// ```
    /// # let file = pumice::File::in_memory()?;
    /// let dataset = file.new_dataset::<u8>().shape([9]).chunk([9]).sparse().create("d")?;
    /// dataset.write(2..5, &[1u8, 2, 3])?;
    /// dataset.check_structured_chunk([0])?;
    ///
    /// let mut sections = dataset.read_structured_chunk([0])?.unwrap();
    /// sections[0].unfiltered_size += 1;
    /// assert!(dataset.write_structured_chunk([0], &sections).is_err(), "the same is looked at");
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn check_structured_chunk(&self, offset: impl AsRef<[u64]>) -> Result<()> {
        self.require_structured()?;
        self.at(self.state.check_locations(offset.as_ref()))
    }

    /// The stored sections of the chunk at `offset`; `None` if it is not stored.
    pub fn read_structured_chunk(
        &self,
        offset: impl AsRef<[u64]>,
    ) -> Result<Option<Vec<StoredSection>>> {
        self.require_structured()?;
        let found = self.at(self.state.read_chunk(offset.as_ref()))?;
        let Some((mut bytes, record)) = found else { return Ok(None) };
        let mut sections = Vec::new();
        for (at, section) in record.sections.iter().enumerate().rev() {
            let stored = usize::try_from(section.offset).ok().filter(|&at| at <= bytes.len());
            let Some(start) = stored.filter(|_| record.section_length(at).is_some()) else {
                return self.at(Err(Error::Internal("sections out of order".into())));
            };
            sections.push(StoredSection {
                bytes: bytes.split_off(start),
                unfiltered_size: section.unfiltered,
                filter_mask: section.filter_mask,
            });
        }
        sections.reverse();
        Ok(Some(sections))
    }

    /// Iterates over all stored chunks in row-major order.
    ///
    /// ```
    /// # let file = pumice::File::in_memory()?;
    /// let dataset = file.new_dataset::<u8>().shape([9]).chunk([3]).sparse().create("d")?;
    /// dataset.write(4, &[1u8])?;
    /// let chunks = dataset.structured_chunks()?.list()?;
    /// assert_eq!(chunks[0].offset, [3]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn structured_chunks(&self) -> Result<Chunks<'_, StructuredChunkInfo>> {
        self.require_structured()?;
        Chunks::new(self, Dataset::structured_info)
    }

    /// The chunk with number `index` among the stored ones that the selection touches, in row-major
    /// order; `None` if there are fewer.
    ///
    /// Asking for one after another costs no more than
    /// [`structured_chunks`](Self::structured_chunks), as long as nothing is written in between:
    /// the list is kept until the last one was asked for.
    pub fn structured_chunk_info(
        &self,
        selection: impl Select,
        index: usize,
    ) -> Result<Option<StructuredChunkInfo>> {
        self.require_structured()?;
        let found =
            self.selected(selection, |selection, _| self.state.nth_chunk(selection, index))?;
        Ok(found.map(|(offset, record)| self.structured_info(&offset, &record)))
    }

    /// The chunk whose first cell is at `offset`; `None` if it is not stored.
    pub fn structured_chunk_info_at(
        &self,
        offset: impl AsRef<[u64]>,
    ) -> Result<Option<StructuredChunkInfo>> {
        self.require_structured()?;
        let offset = offset.as_ref();
        let record = self.at(self.state.chunk_record(offset))?;
        Ok(record.map(|record| self.structured_info(offset, &record)))
    }

    /// Passes every stored chunk to `visit` until it breaks, and returns the value of the break.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    ///
    /// # let file = pumice::File::in_memory()?;
    /// let dataset = file.new_dataset::<u8>().shape([9]).chunk([3]).sparse().create("d")?;
    /// dataset.write(.., &[1u8; 9])?;
    /// let first = dataset.for_each_structured_chunk(|chunk| match chunk.offset[0] {
    ///     0 => ControlFlow::Continue(()),
    ///     at => ControlFlow::Break(at),
    /// })?;
    /// assert_eq!(first, Some(3));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn for_each_structured_chunk<B>(
        &self,
        mut visit: impl FnMut(&StructuredChunkInfo) -> ControlFlow<B>,
    ) -> Result<Option<B>> {
        for chunk in self.structured_chunks()? {
            if let ControlFlow::Break(answer) = visit(&chunk?) {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }

    fn require_structured(&self) -> Result<()> {
        if self.sections().len() > 1 {
            return Ok(());
        }
        self.at(Err(Error::WrongKind("the dataset is not stored in structured chunks".into())))
    }

    fn structured_info(&self, offset: &[u64], record: &ChunkRecord) -> StructuredChunkInfo {
        let sections = self.sections().into_iter().zip(&record.sections).enumerate();
        let sections = sections.map(|(at, (section, part))| SectionInfo {
            section,
            size: record.section_length(at).unwrap_or(0),
            unfiltered_size: part.unfiltered,
            filter_mask: part.filter_mask,
        });
        StructuredChunkInfo {
            offset: offset.to_vec(),
            address: self.state.medium().base().saturating_add(record.address),
            size: record.size,
            sections: sections.collect(),
        }
    }
}
