//! Filters by section: the filters of HDF5's dataset creation property list.
//!
//! A dense chunk is one section; a structured chunk has several, each with filters of its own. The
//! rules: a filter goes to every section unless one is named; a section keeps its defaults until a
//! filter is added to it; Fletcher-32 is for raw data of fixed size, as the other sections have a
//! checksum anyway. Filters for a selection or a heap are ignored where the dataset has none, as
//! with HDF5's `H5Z_FLAG_SPARSE_SELECTION` and `H5Z_FLAG_SPARSE_VL_DATA`: one list of filters
//! serves dense and sparse datasets, of numbers and of strings.

use pumice_engine::{Error, Result};
use pumice_filter::{FilterSpec, find, registered_name};
use std::fmt;
use std::ops::RangeFull;

/// Level of zstd where none is given.
const ZSTD_LEVEL: u32 = 3;
/// Level of zstd for heaps, where most of the time of writing strings goes: twice as fast as the
/// other for a tenth more bytes.
const HEAP_ZSTD_LEVEL: u32 = 1;
/// Bytes of a string or sequence in the references section.
const REFERENCE_SIZE: u32 = 16;
/// The plain form of a selection is mostly a list of 32-bit numbers.
const SELECTION_WORD: u32 = 4;

/// A part of a chunk that has filters of its own.
///
/// ```
/// use pumice::{File, Section};
///
/// let file = File::in_memory()?;
/// let sparse = file.new_dataset::<i32>().shape([9]).sparse().create("sparse")?;
/// assert_eq!(sparse.sections(), [Section::Selection, Section::Values]);
/// assert_eq!(sparse.sections()[0].name(), "selection");
/// # Ok::<(), pumice::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Section {
    /// A dense chunk, which is one section.
    Chunk,
    /// The selection of defined cells in a sparse chunk.
    Selection,
    /// The defined cells' values, of a fixed size.
    Values,
    /// Lengths and places of variable-length values.
    References,
    /// The bytes of variable-length values.
    Heap,
}

impl Section {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chunk => "chunk",
            Self::Selection => "selection",
            Self::Values => "values",
            Self::References => "references",
            Self::Heap => "heap",
        }
    }

    /// Whether filters for this section are ignored where a dataset lacks it: one that is not
    /// sparse has no selection, one of fixed size no heap. Every chunk has its elements, under one
    /// name or the other.
    fn is_optional(self) -> bool {
        matches!(self, Self::Selection | Self::Heap)
    }

    /// Whether Fletcher-32 makes sense; other sections have a checksum already.
    fn takes_fletcher32(self) -> bool {
        matches!(self, Self::Chunk | Self::Values)
    }

    /// Bytes that belong together, for shuffling.
    fn word(self, element_size: u32) -> u32 {
        match self {
            Self::Chunk | Self::Values | Self::References => element_size,
            Self::Selection => SELECTION_WORD,
            Self::Heap => 1,
        }
    }
}

impl fmt::Display for Section {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// One section, or all of them (`..`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sections {
    /// Every section that the dataset has.
    All,
    /// This one.
    One(Section),
}

impl Sections {
    fn include(self, section: Section) -> bool {
        self == Self::All || self == Self::One(section)
    }
}

impl From<Section> for Sections {
    fn from(section: Section) -> Self {
        Self::One(section)
    }
}

impl From<RangeFull> for Sections {
    fn from(_: RangeFull) -> Self {
        Self::All
    }
}

/// The filters of each section of a dataset.
///
/// It comes from an open dataset ([`Dataset::section_filters`](crate::Dataset::section_filters)) or
/// begins with [`defaults`](Self::defaults), and goes to
/// [`DatasetBuilder::filters`](crate::DatasetBuilder::filters).
///
/// ```
/// use pumice::{File, FilterSpec, Section, SectionFilters};
///
/// let mut filters = SectionFilters::defaults(&[Section::Selection, Section::Values], 4);
/// assert_eq!(filters.count(Section::Values), 2, "shuffle and zstd");
/// filters.modify(.., FilterSpec::zstd(19))?; // the level, wherever zstd is
/// filters.remove(Section::Values, 2)?; // shuffle
///
/// let file = File::in_memory()?;
/// let builder = file.new_dataset::<i32>().shape([100]).sparse();
/// let dataset = builder.filters(filters.clone()).create("d")?;
/// assert_eq!(dataset.section_filters(), filters);
/// assert_eq!(filters.get(Section::Values, 0), filters.by_id(Section::Values, 32015));
/// # Ok::<(), pumice::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SectionFilters {
    entries: Vec<Entry>,
    element_size: u32,
}

#[derive(Clone, Debug)]
struct Entry {
    section: Section,
    filters: Vec<FilterSpec>,
    /// Whether these filters are the section's defaults.
    default: bool,
}

impl SectionFilters {
    /// No filters.
    pub fn none(sections: &[Section], element_size: u32) -> Self {
        let none = sections.iter().map(|&section| Entry::new(section, Vec::new()));
        Self { entries: none.collect(), element_size }
    }

    /// The default filters of these sections: the location filter and zstd for a selection; shuffle
    /// and zstd for values; the references filter and zstd for references of strings or sequences
    /// (shuffle and zstd if they are parts of larger elements); the heap filter and zstd for a
    /// heap; none for dense chunks.
    ///
    /// ```
    /// use pumice::{FilterSpec, Section, SectionFilters};
    ///
    /// let strings = SectionFilters::defaults(&[Section::References, Section::Heap], 16);
    /// assert_eq!(strings.get(Section::References, 0), Some(&FilterSpec::references()));
    /// let compounds = SectionFilters::defaults(&[Section::References, Section::Heap], 24);
    /// assert_eq!(compounds.get(Section::References, 0), Some(&FilterSpec::shuffle(24)));
    /// ```
    pub fn defaults(sections: &[Section], element_size: u32) -> Self {
        let zstd = || FilterSpec::zstd(ZSTD_LEVEL);
        let entries = sections.iter().map(|&section| {
            let filters = match section {
                Section::Chunk => Vec::new(),
                Section::Selection => vec![FilterSpec::location(), zstd()],
                Section::References if element_size == REFERENCE_SIZE => {
                    vec![FilterSpec::references(), zstd()]
                }
                Section::Values | Section::References if element_size > 1 => {
                    vec![FilterSpec::shuffle(element_size), zstd()]
                }
                Section::Values | Section::References => vec![zstd()],
                Section::Heap => vec![FilterSpec::heap(), FilterSpec::zstd(HEAP_ZSTD_LEVEL)],
            };
            Entry { default: true, ..Entry::new(section, filters) }
        });
        Self { entries: entries.collect(), element_size }
    }

    pub(crate) fn stored(entries: Vec<(Section, Vec<FilterSpec>)>, element_size: u32) -> Self {
        let entries = entries.into_iter().map(|(section, filters)| Entry::new(section, filters));
        Self { entries: entries.collect(), element_size }
    }

    /// The sections, in the order in which they are stored.
    pub fn sections(&self) -> impl Iterator<Item = Section> {
        self.entries.iter().map(|entry| entry.section)
    }

    /// All filters of a section, in the order of writing.
    pub fn of(&self, section: Section) -> &[FilterSpec] {
        let entry = self.entries.iter().find(|entry| entry.section == section);
        entry.map_or(&[], |entry| &entry.filters)
    }

    /// The number of a section's filters.
    pub fn count(&self, section: Section) -> usize {
        self.of(section).len()
    }

    /// A filter by its place in a section's list.
    pub fn get(&self, section: Section, index: usize) -> Option<&FilterSpec> {
        self.of(section).get(index)
    }

    /// A filter by its id.
    pub fn by_id(&self, section: Section, id: u16) -> Option<&FilterSpec> {
        self.of(section).iter().find(|filter| filter.id == id)
    }

    /// Adds a filter to the end of one section's list, or of every section's, instead of its
    /// defaults. Fletcher-32 for every section goes to those that can have it.
    ///
    /// A selection or a heap that the dataset lacks is ignored, here as in the other methods: a
    /// dataset that is not sparse has no selection, one without variable-length data no heap. Any
    /// other missing section is an error.
    ///
    /// ```
    /// use pumice::{FilterSpec, Section, SectionFilters};
    ///
    /// let mut dense = SectionFilters::none(&[Section::Chunk], 4);
    /// dense.add(Section::Selection, FilterSpec::deflate(9))?;
    /// assert_eq!(dense.count(Section::Chunk), 0);
    /// assert!(dense.add(Section::Values, FilterSpec::deflate(9)).is_err());
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn add(&mut self, sections: impl Into<Sections>, filter: FilterSpec) -> Result<()> {
        self.add_each(sections.into(), filter.id, |_| filter.clone())
    }

    /// Adds shuffle to every section, with the size of the section's elements.
    pub(crate) fn add_shuffle(&mut self) -> Result<()> {
        let size = self.element_size;
        let id = FilterSpec::shuffle(size).id;
        self.add_each(Sections::All, id, |section| FilterSpec::shuffle(section.word(size)))
    }

    fn add_each(
        &mut self,
        sections: Sections,
        id: u16,
        filter: impl Fn(Section) -> FilterSpec,
    ) -> Result<()> {
        if !self.has(sections)? {
            return Ok(());
        }
        let checksum = id == FilterSpec::fletcher32().id;
        let suits = |section: Section| !checksum || section.takes_fletcher32();
        let mut added = false;
        for entry in &mut self.entries {
            if sections.include(entry.section) && suits(entry.section) {
                let filter = filter(entry.section);
                entry.filters_asked_for().push(filter);
                added = true;
            }
        }
        if added || !checksum { Ok(()) } else { Err(no_fletcher32(sections)) }
    }

    /// Replaces the filter of the same id, keeping its place, wherever the sections have it.
    pub fn modify(&mut self, sections: impl Into<Sections>, filter: FilterSpec) -> Result<()> {
        let sections = sections.into();
        let mut found = !self.has(sections)?;
        for entry in self.entries.iter_mut().filter(|entry| sections.include(entry.section)) {
            for place in entry.filters.iter_mut().filter(|place| place.id == filter.id) {
                place.clone_from(&filter);
                found = true;
            }
        }
        if found { Ok(()) } else { Err(no_such(sections, filter.id)) }
    }

    /// Removes the filter of this id, wherever the sections have it.
    pub fn remove(&mut self, sections: impl Into<Sections>, id: u16) -> Result<()> {
        let sections = sections.into();
        let mut found = !self.has(sections)?;
        for entry in self.entries.iter_mut().filter(|entry| sections.include(entry.section)) {
            let before = entry.filters.len();
            entry.filters.retain(|filter| filter.id != id);
            found |= entry.filters.len() < before;
        }
        if found { Ok(()) } else { Err(no_such(sections, id)) }
    }

    /// Removes all filters, defaults included.
    pub fn clear(&mut self, sections: impl Into<Sections>) -> Result<()> {
        let sections = sections.into();
        self.has(sections)?;
        for entry in self.entries.iter_mut().filter(|entry| sections.include(entry.section)) {
            (entry.filters, entry.default) = (Vec::new(), false);
        }
        Ok(())
    }

    /// Fails if a dataset cannot be created with these filters.
    pub(crate) fn check(&self) -> Result<()> {
        let id = FilterSpec::fletcher32().id;
        let checksum = |entry: &&Entry| entry.filters.iter().any(|filter| filter.id == id);
        let unsuited = |entry: &&Entry| !entry.section.takes_fletcher32();
        match self.entries.iter().filter(unsuited).find(checksum) {
            Some(entry) => Err(no_fletcher32(Sections::One(entry.section))),
            None => Ok(()),
        }
    }

    /// Fails if a filter that is not optional is unavailable. Only asked for new datasets: their
    /// chunks must be encoded, while others are copied as stored.
    pub(crate) fn check_available(&self) -> Result<()> {
        let mut filters = self.entries.iter().flat_map(|entry| &entry.filters);
        let encodes = |id| find(id).is_some_and(|filter| filter.encodes());
        let absent = |filter: &&FilterSpec| !filter.optional && !encodes(filter.id);
        let Some(FilterSpec { id, name, .. }) = filters.find(absent) else { return Ok(()) };
        let own = name.as_deref().filter(|name| !name.is_empty());
        let name = registered_name(*id).or(own).unwrap_or("unregistered");
        Err(Error::FilterMissing(format!(
            "filter {id} ({name}) is not available and not optional, so that nothing could be stored: register \
             it first (register_filter, or HDF5_PLUGIN_PATH with the feature `plugins`), or make it optional"
        )))
    }

    /// Whether the dataset has these sections; an error if it must.
    fn has(&self, sections: Sections) -> Result<bool> {
        match sections {
            Sections::One(section) if self.sections().all(|own| own != section) => {
                let error = || Error::Invalid(format!("the dataset has no section of {section}"));
                section.is_optional().then_some(false).ok_or_else(error)
            }
            _ => Ok(true),
        }
    }
}

impl Entry {
    fn new(section: Section, filters: Vec<FilterSpec>) -> Self {
        Self { section, filters, default: false }
    }

    /// The list without defaults.
    fn filters_asked_for(&mut self) -> &mut Vec<FilterSpec> {
        if std::mem::take(&mut self.default) {
            self.filters.clear();
        }
        &mut self.filters
    }
}

/// Equal if the same filters run over the same sections.
impl PartialEq for SectionFilters {
    fn eq(&self, other: &Self) -> bool {
        let list = |filters: &Self| -> Vec<_> {
            filters.entries.iter().map(|e| (e.section, e.filters.clone())).collect()
        };
        list(self) == list(other)
    }
}

impl Eq for SectionFilters {}

fn no_fletcher32(sections: Sections) -> Error {
    let place = match sections {
        Sections::All => "any of its sections".into(),
        Sections::One(section) => format!("the section of {section}"),
    };
    Error::Invalid(format!(
        "Fletcher-32 is for raw data of fixed size, not for {place}, which has a checksum anyway"
    ))
}

fn no_such(sections: Sections, id: u16) -> Error {
    match sections {
        Sections::All => Error::NotFound(format!("no section has a filter {id}")),
        Sections::One(section) => {
            Error::NotFound(format!("the section of {section} has no filter {id}"))
        }
    }
}

/// A change of filters that waits until the layout is known.
#[derive(Clone, Debug)]
pub(crate) enum Edit {
    Add(Sections, FilterSpec),
    Shuffle,
    Modify(Sections, FilterSpec),
    Remove(Sections, u16),
    Clear(Sections),
    Use(SectionFilters),
}

impl SectionFilters {
    pub(crate) fn apply(&mut self, edit: Edit) -> Result<()> {
        match edit {
            Edit::Add(sections, filter) => self.add(sections, filter),
            Edit::Shuffle => self.add_shuffle(),
            Edit::Modify(sections, filter) => self.modify(sections, filter),
            Edit::Remove(sections, id) => self.remove(sections, id),
            Edit::Clear(sections) => self.clear(sections),
            Edit::Use(filters) => {
                if !filters.sections().eq(self.sections()) {
                    let sections: Vec<_> = self.sections().collect();
                    return Err(Error::Invalid(format!(
                        "filters for other sections than the dataset's {sections:?}"
                    )));
                }
                *self = filters;
                Ok(())
            }
        }
    }
}
