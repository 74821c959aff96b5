//! The filters of a new dataset.

use super::DatasetBuilder;
use crate::filters::{Edit, Section, SectionFilters, Sections};
use pumice_engine::Result;
use pumice_filter::{BitshuffleCodec, BloscCodec, BloscShuffle, FilterSpec, Scaling, SzipCoding};

impl DatasetBuilder {
    /// Stores chunks that reach beyond the shape without filters: quicker to append to, as a chunk
    /// that is filled bit by bit is compressed once, when it is whole.
    ///
    /// ```
    /// # let file = pumice::File::in_memory()?;
    /// let builder = file.new_dataset::<u8>().shape([60]).max_shape([None]).chunk([40]).deflate(9);
    /// let log = builder.dont_filter_partial_chunks().create("log")?;
    /// log.write(.., &[0u8; 60])?;
    /// assert_eq!(log.chunk_info([40])?.unwrap().size, 40, "as it is in memory");
    /// log.resize([80])?;
    /// assert!(log.chunk_info([40])?.unwrap().size < 40, "compressed");
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn dont_filter_partial_chunks(mut self) -> Self {
        self.dont_filter_partial = true;
        self
    }

    /// Groups bytes of equal significance, which helps the filters after it.
    pub fn shuffle(self) -> Self {
        self.edit(Edit::Shuffle)
    }

    /// Compresses with deflate (gzip), level 0 to 9.
    pub fn deflate(self, level: u32) -> Self {
        self.filter(FilterSpec::deflate(level))
    }

    /// Compresses with Zstandard.
    pub fn zstd(self, level: u32) -> Self {
        self.filter(FilterSpec::zstd(level))
    }

    /// Compresses numbers by Rice coding in blocks of an even number of at most 32 samples.
    pub fn szip(self, coding: SzipCoding, block: u32) -> Self {
        self.filter(FilterSpec::szip(coding, block))
    }

    /// Stores only the significant bits of numbers that do not fill their bytes.
    pub fn nbit(self) -> Self {
        self.filter(FilterSpec::nbit())
    }

    /// Stores numbers as their distance from the smallest of a chunk, in few bits.
    pub fn scale_offset(self, scaling: Scaling) -> Self {
        self.filter(FilterSpec::scale_offset(scaling))
    }

    /// Compresses with LZF: fast, in every h5py.
    pub fn lzf(self) -> Self {
        self.filter(FilterSpec::lzf())
    }

    /// Compresses shuffled blocks with one of Blosc's codecs, level 0 to 9.
    pub fn blosc(self, codec: BloscCodec, level: u32, shuffle: BloscShuffle) -> Self {
        self.filter(FilterSpec::blosc(codec, level, shuffle))
    }

    /// Compresses with LZ4.
    pub fn lz4(self) -> Self {
        self.filter(FilterSpec::lz4(0))
    }

    /// Compresses with bzip2, level 1 to 9.
    pub fn bzip2(self, level: u32) -> Self {
        self.filter(FilterSpec::bzip2(level))
    }

    /// Groups bits of equal significance, and compresses them.
    pub fn bitshuffle(self, codec: BitshuffleCodec) -> Self {
        self.filter(FilterSpec::bitshuffle(codec))
    }

    /// Adds a checksum to each chunk; of sparse chunks, to the values, as their other section has
    /// one anyway.
    pub fn fletcher32(self) -> Self {
        self.filter(FilterSpec::fletcher32())
    }

    /// Adds a filter to every section of a chunk. A section that gets a filter loses its default
    /// filters.
    pub fn filter(self, filter: FilterSpec) -> Self {
        self.edit(Edit::Add(Sections::All, filter))
    }

    /// Adds a filter to one section of a chunk, which loses its default filters. A filter for the
    /// selection is ignored if the dataset is not sparse, one for the heap if it has no
    /// variable-length data.
    ///
    /// ```
    /// use pumice::{File, FilterSpec, Section};
    ///
    /// let file = File::in_memory()?;
    /// let builder = file.new_dataset::<i32>().shape([32, 64]).chunk([5, 9]).sparse();
    /// let dataset = builder.section_filter(Section::Values, FilterSpec::deflate(9)).create("d")?;
    /// assert_eq!(dataset.section_filters().of(Section::Values), [FilterSpec::deflate(9)]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn section_filter(self, section: Section, filter: FilterSpec) -> Self {
        self.edit(Edit::Add(Sections::One(section), filter))
    }

    /// Replaces the filter with the same id, be it a default or added.
    pub fn modify_filter(self, sections: impl Into<Sections>, filter: FilterSpec) -> Self {
        self.edit(Edit::Modify(sections.into(), filter))
    }

    /// Takes out the filter of this id.
    pub fn remove_filter(self, sections: impl Into<Sections>, id: u16) -> Self {
        self.edit(Edit::Remove(sections.into(), id))
    }

    /// Uses exactly these filters.
    pub fn filters(self, filters: SectionFilters) -> Self {
        self.edit(Edit::Use(filters))
    }

    /// Replaces the filters of a sparse dataset's locations (section 0).
    pub fn location_filters(self, filters: Vec<FilterSpec>) -> Self {
        self.replace(Section::Selection, filters)
    }

    /// Replaces the filters of a sparse dataset's values (section 1).
    pub fn value_filters(self, filters: Vec<FilterSpec>) -> Self {
        self.replace(Section::Values, filters)
    }

    /// Leaves out the filters of one section.
    pub fn clear_filters(self, section: Section) -> Self {
        self.edit(Edit::Clear(Sections::One(section)))
    }

    /// Leaves out all filters.
    pub fn no_filters(self) -> Self {
        self.edit(Edit::Clear(Sections::All))
    }

    fn replace(self, section: Section, filters: Vec<FilterSpec>) -> Self {
        let cleared = self.edit(Edit::Clear(Sections::One(section)));
        filters.into_iter().fold(cleared, |builder, filter| builder.section_filter(section, filter))
    }

    fn edit(mut self, edit: Edit) -> Self {
        self.edits.push(edit);
        self
    }

    /// The filters that were asked for, for a chunk of these sections.
    pub(super) fn filters_of(&self, sections: &[Section]) -> Result<SectionFilters> {
        let mut filters = SectionFilters::defaults(sections, self.datatype.size() as u32);
        for edit in &self.edits {
            filters.apply(edit.clone())?;
        }
        filters.check()?;
        filters.check_available()?;
        Ok(filters)
    }
}
