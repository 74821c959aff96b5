//! How a new dataset is described.

mod guess;

use crate::filters::{Edit, Section, SectionFilters, Sections};
use crate::{Dataset, ExternalPiece, Group};
use pumice_engine::dataset::{AllocationTime, DatasetSpec, FillTime, LayoutSpec, VirtualMapping};
use pumice_engine::shared::Committed;
use pumice_engine::{Error, Result};
use pumice_filter::{BitshuffleCodec, BloscCodec, BloscShuffle, FilterSpec, Scaling, SzipCoding};
use pumice_space::{Extent, Selection, UNLIMITED};
use pumice_types::{Conversion, Datatype, Element, Heaped, Value};

/// About how many bytes a dense chunk has, if its shape is not given: enough for fast filters and
/// few system calls, small enough that a hundred fit into a cache.
const DENSE_CHUNK_BYTES: u64 = 256 << 10;
/// About how many defined cells a sparse chunk has, if its shape is not given: enough that what is
/// stored besides them does not count, and few enough that a row or a column, which passes through
/// many chunks, is read fast.
const SPARSE_CHUNK_DEFINED: f64 = 16384.0;
/// Which share of the cells is defined, if nobody tells.
const DENSITY: f64 = 0.01;
/// No sparse chunk has more or fewer cells by default.
const SPARSE_CHUNK_CELLS: (f64, f64) = ((1u64 << 16) as f64, (1u64 << 26) as f64);
/// A row of a sparse dataset lies in at most so many chunks by default, unless these would have to be so
/// many times as wide as otherwise.
const MOST_ACROSS: u64 = 14;
const MOST_WIDENING: u64 = 4;
/// About how many cells a dense chunk with variable-length data has, if its shape is not given: with short
/// strings that is a megabyte or two.
const HEAP_CHUNK_CELLS: u64 = 1 << 15;
/// About how many defined cells a sparse one has.
const HEAP_CHUNK_DEFINED: f64 = 10_000.0;

/// Describes a dataset, then [creates](Self::create) it.
///
/// Dense datasets are contiguous unless they get a chunk shape, filters or a maximum shape. Sparse
/// datasets store defined cells only; by default their locations go through the location filter
/// and zstd, their values through shuffle and zstd.
///
/// ```
/// use pumice::{File, FilterSpec};
///
/// let file = File::in_memory()?;
/// let dense = file.new_dataset::<f64>().shape([100, 100]).deflate(4).create("dense")?;
/// assert_eq!(dense.chunk(), Some(vec![100, 100]));
///
/// let sparse = file
///     .new_dataset::<f64>()
///     .shape([1000, 1000])
///     .chunk([500, 500])
///     .sparse()
///     .fill_value(f64::NAN)
///     .value_filters(vec![FilterSpec::shuffle(8), FilterSpec::deflate(1)])
///     .create("sparse")?;
/// assert!(sparse.read::<f64>((0..1, 0..1))?[0].is_nan());
/// # Ok::<(), pumice::Error>(())
/// ```
#[derive(Clone)]
pub struct DatasetBuilder {
    group: Group,
    datatype: Datatype,
    committed: Option<Committed>,
    null: bool,
    shape: Vec<u64>,
    max_shape: Option<Vec<u64>>,
    chunk: Option<Vec<u64>>,
    fill: Option<Fill>,
    undefined_fill: bool,
    /// Changes to the default filters, in the order in which they were asked for.
    edits: Vec<Edit>,
    sparse: bool,
    variable_length: bool,
    compact: bool,
    dont_filter_partial: bool,
    density: f64,
    fill_time: FillTime,
    allocation: AllocationTime,
    track_times: bool,
    track_attribute_order: bool,
    attribute_phase_change: Option<(u16, u16)>,
    access: Access,
    external: Vec<ExternalPiece>,
    mappings: Vec<VirtualMapping>,
}

/// A fill value, however it was given.
#[derive(Clone)]
enum Fill {
    /// One element of some type.
    Element(Datatype, Vec<u8>),
    /// One value of the dataset's type.
    Value(Value),
    /// One element of the dataset's type, with what it refers to.
    Heaped(Heaped),
    /// That of another dataset of the same type.
    Of(Dataset),
}

/// How a dataset will mostly be read, for the default shape of its chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// In blocks of any kind: sides as equal as the shape allows.
    #[default]
    Blocks,
    /// In lines along an axis, such as time series of single cells: as long as can be along it.
    Along(usize),
    /// In slices across an axis, such as the images of a film: one cell along it.
    Across(usize),
}

impl DatasetBuilder {
    pub(crate) fn new(group: Group, datatype: Datatype) -> Self {
        Self {
            group,
            datatype,
            committed: None,
            null: false,
            shape: Vec::new(),
            max_shape: None,
            chunk: None,
            fill: None,
            undefined_fill: false,
            edits: Vec::new(),
            sparse: false,
            variable_length: false,
            compact: false,
            dont_filter_partial: false,
            density: DENSITY,
            fill_time: FillTime::IfSet,
            allocation: AllocationTime::Default,
            track_times: false,
            track_attribute_order: false,
            attribute_phase_change: None,
            access: Access::default(),
            external: Vec::new(),
            mappings: Vec::new(),
        }
    }

    /// Shares a committed datatype.
    pub(crate) fn committed(mut self, datatype: Committed) -> Self {
        self.committed = Some(datatype);
        self
    }

    pub(crate) fn group(&self) -> &Group {
        &self.group
    }

    pub(crate) fn like(group: Group, other: &Dataset) -> Self {
        let shape = other.shape();
        let max = other.max_shape();
        let grows = max.iter().zip(&shape).any(|(&max, &now)| max != Some(now));
        let mut builder = Self::new(group, other.datatype().clone()).shape(shape);
        if grows {
            builder = builder.max_shape(max);
        }
        builder.chunk = other.chunk();
        builder.fill = other.fill_value().is_some().then(|| Fill::Of(other.clone()));
        builder
    }

    /// The shape. Without it the dataset is a scalar.
    pub fn shape(mut self, shape: impl Into<Vec<u64>>) -> Self {
        self.shape = shape.into();
        self
    }

    /// How far each axis can grow; `None` for without limit.
    pub fn max_shape(mut self, max: impl IntoIterator<Item = Option<u64>>) -> Self {
        self.max_shape = Some(max.into_iter().map(|axis| axis.unwrap_or(UNLIMITED)).collect());
        self
    }

    /// The shape of a chunk.
    pub fn chunk(mut self, chunk: impl Into<Vec<u64>>) -> Self {
        self.chunk = Some(chunk.into());
        self
    }

    /// What cells that were never written read as; zero if not given.
    pub fn fill_value<T: Element>(mut self, value: T) -> Self {
        self.fill = Some(Fill::Element(T::datatype(), bytemuck::bytes_of(&value).to_vec()));
        self
    }

    /// As [`fill_value`](Self::fill_value), given as one element of the dataset's own type.
    pub fn fill_bytes(mut self, element: Vec<u8>) -> Self {
        self.fill = Some(Fill::Element(self.datatype.clone(), element));
        self
    }

    /// As [`fill_value`](Self::fill_value), given as one element of another type.
    pub fn fill_bytes_of(mut self, datatype: Datatype, element: Vec<u8>) -> Self {
        self.fill = Some(Fill::Element(datatype, element));
        self
    }

    /// As [`fill_value`](Self::fill_value), for datasets of any type: strings, sequences, compounds.
    ///
    /// ```
    /// use pumice::{File, Value};
    ///
    /// let file = File::in_memory()?;
    /// let names = file.new_strings().shape([3]).sparse().fill(Value::from("unknown")).create("n")?;
    /// names.write_strings(1..2, &["basalt"])?;
    /// assert_eq!(names.read_strings(..)?, ["unknown", "basalt", "unknown"]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn fill(mut self, value: Value) -> Self {
        self.fill = Some(Fill::Value(value));
        self
    }

    /// As [`fill`](Self::fill), given as one element with what it refers to.
    pub fn fill_heaped(mut self, fill: Heaped) -> Self {
        self.fill = Some(Fill::Heaped(fill));
        self
    }

    /// Gives the dataset no fill value, not even zeros: libhdf5's `H5Pset_fill_value` of nothing. Cells that were
    /// never written read as anything, here as zeros.
    ///
    /// ```
    /// use pumice::{File, Fill};
    ///
    /// let file = File::in_memory()?;
    /// let dataset = file.new_dataset::<f32>().shape([9]).no_fill_value().create("d")?;
    /// assert_eq!(dataset.creation()?.fill, Fill::Undefined);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn no_fill_value(mut self) -> Self {
        (self.fill, self.undefined_fill) = (None, true);
        self
    }

    /// Whether such a dataset can be made.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// let builder = file.new_dataset::<f32>().shape([100]).chunk([10]);
    /// assert!(builder.check().is_ok());
    /// assert!(builder.compact().check().is_err(), "compact datasets have no chunks");
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn check(&self) -> Result<()> {
        pumice_engine::dataset::check(self.group.engine(), self.spec()?)
    }

    /// When the fill value is written to space that is taken. What is never filled reads as
    /// anything; undefined cells of a sparse dataset take no space and read as the fill value.
    pub fn fill_time(mut self, time: FillTime) -> Self {
        self.fill_time = time;
        self
    }

    /// When space is taken: with the dataset (early), with the first write (late), or chunk by chunk
    /// (incremental). Without it, as the layout has it.
    ///
    /// ```
    /// use pumice::{AllocationTime, File};
    ///
    /// let file = File::in_memory()?;
    /// let builder = file.new_dataset::<f32>().shape([100]).chunk([10]);
    /// let dataset = builder.allocation_time(AllocationTime::Early).create("d")?;
    /// assert_eq!(dataset.storage_size()?, 400);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn allocation_time(mut self, time: AllocationTime) -> Self {
        self.allocation = time;
        self
    }

    /// Stores defined cells only.
    ///
    /// The file must not be bound to releases of libhdf5 before 2.0
    /// ([`FileOptions::newest_version`](crate::FileOptions::newest_version)), or the dataset is refused;
    /// the oldest release that is to read other objects of the file does not matter.
    ///
    /// ```
    /// use pumice::{File, LibraryVersion, MemoryStore};
    ///
    /// let options = File::options().library_version(LibraryVersion::Earliest);
    /// let create = |options: pumice::FileOptions| {
    ///     let file = options.create_in(std::sync::Arc::new(MemoryStore::default()))?;
    ///     file.new_dataset::<f32>().shape([100]).sparse().create("d").map(drop)
    /// };
    /// assert!(create(options.clone()).is_ok());
    /// assert!(create(options.newest_version(LibraryVersion::V114)).is_err());
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn sparse(mut self) -> Self {
        self.sparse = true;
        self
    }

    /// Stores strings and sequences in the chunks that they belong to, where they compress well and
    /// vanish when they are overwritten, instead of in the global heap of the file. Sparse datasets
    /// do so anyway.
    ///
    /// ```
    /// use pumice::File;
    ///
    /// let file = File::in_memory()?;
    /// let names = file.new_strings().shape([3]).variable_length().create("names")?;
    /// names.write_strings(.., &["ab", "", "cde"])?;
    /// assert_eq!(names.read_strings(1..)?, ["", "cde"]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn variable_length(mut self) -> Self {
        self.variable_length = true;
        self
    }

    /// Says which share of the cells of a sparse dataset will be defined, for the default chunk
    /// shape: about 16,384 defined cells a chunk (10,000 of variable length), with sides as equal as the
    /// shape allows, but wider where a row would lie in more than fourteen chunks. Without it, one cell in
    /// a hundred.
    ///
    /// An axis that can grow counts as at least 1024 cells long, however short it is now, or as long as it
    /// takes that a chunk has its cells, within its maximum: what is not there yet takes no space.
    ///
    /// ```
    /// # let file = pumice::File::in_memory()?;
    /// let matrix = file.new_dataset::<f32>().shape([20_000, 20_000]).sparse();
    /// let thin = matrix.clone().expected_density(0.001).create("thin")?;
    /// assert_eq!(thin.chunk(), Some(vec![4048, 4047]));
    /// let thick = matrix.clone().expected_density(0.1).create("thick")?;
    /// assert_eq!(thick.chunk(), Some(vec![114, 1429]));
    /// assert_eq!(matrix.create("usual")?.chunk(), Some(vec![1146, 1429]));
    ///
    /// let events = file.new_dataset::<f32>().shape([0]).max_shape([None]).sparse().create("events")?;
    /// assert_eq!(events.chunk(), Some(vec![1_638_400]));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn expected_density(mut self, share: f64) -> Self {
        self.density = if share > 0.0 { share.min(1.0) } else { DENSITY };
        self
    }

    /// Stores the elements in the object header: for at most 64,000 bytes.
    pub fn compact(mut self) -> Self {
        self.compact = true;
        self
    }

    /// Says how the dataset will mostly be read, for the default chunk shape.
    ///
    /// ```
    /// use pumice::{Access, File};
    ///
    /// let file = File::in_memory()?;
    /// let film = file.new_dataset::<u16>().shape([1000, 256, 512]).shuffle();
    /// let images = film.clone().expected_access(Access::Across(0)).create("images")?;
    /// assert_eq!(images.chunk(), Some(vec![1, 256, 512]));
    /// let series = film.expected_access(Access::Along(0)).create("series")?;
    /// assert_eq!(series.chunk(), Some(vec![1000, 11, 11]));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn expected_access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Makes a dataset without elements: its dataspace is null, it has a datatype and attributes.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// let empty = file.new_dataset::<f32>().null().create("empty")?;
    /// assert!(empty.extent()?.is_null());
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn null(mut self) -> Self {
        self.null = true;
        self
    }

    /// Keeps the times of creation and of changes in the dataset's header.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// let dataset = file.new_dataset::<u8>().shape([4]).track_times(true).create("d")?;
    /// assert!(dataset.modified().is_some());
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn track_times(mut self, track: bool) -> Self {
        self.track_times = track;
        self
    }

    /// Keeps the order in which attributes are made.
    pub fn track_attribute_order(mut self, track: bool) -> Self {
        self.track_attribute_order = track;
        self
    }

    /// More attributes than `max_compact` (8 unless set) are kept in a heap of their own, fewer than
    /// `min_dense` (6) in the dataset's header: libhdf5's `H5Pset_attr_phase_change`.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// let builder = file.new_dataset::<u8>().shape([4]).attribute_phase_change(0, 0);
    /// let dataset = builder.create("d")?;
    /// dataset.set_attribute("unit", "K")?;
    /// file.flush()?;
    /// assert!(dataset.space()?.attribute_heap > 0);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn attribute_phase_change(mut self, max_compact: u16, min_dense: u16) -> Self {
        self.attribute_phase_change = Some((max_compact, min_dense.min(max_compact)));
        self
    }

    /// Stores the elements in another file, from byte `offset` on: as many bytes as `size` says, or
    /// any number. More than one file hold the elements one after another. The files are made when
    /// elements are written.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("raw.bin");
    /// # let name = path.to_str().unwrap();
    /// let file = pumice::File::in_memory()?;
    /// let dataset = file.new_dataset::<u8>().shape([4]).external(name, 2, None).create("d")?;
    /// dataset.write(.., &[1u8, 2, 3, 4])?;
    /// assert_eq!(std::fs::read(name).unwrap(), [0, 0, 1, 2, 3, 4]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn external(mut self, path: &str, offset: u64, size: Option<u64>) -> Self {
        let size = size.unwrap_or(u64::MAX);
        self.external.push(ExternalPiece { name: path.into(), offset, size });
        self
    }

    /// Lets the cells `part` be those that `source` selects of a dataset of another file, or of this
    /// one (`.`), in the same order. What no part covers reads as the fill value. Selections may be
    /// unlimited, and `%b` in names stands for the number of a block.
    ///
    /// ```
    /// use pumice::{File, Selection};
    ///
    /// let file = File::in_memory()?;
    /// file.new_dataset::<i32>().shape([4]).create("a")?.write(.., &[1, 2, 3, 4])?;
    /// let part = Selection::block(&[1], &[2])?;
    /// let builder = file.new_dataset::<i32>().shape([5]).fill_value(-1);
    /// let all = builder.virtual_part(part, ".", "a", Selection::block(&[2], &[2])?).create("v")?;
    /// assert_eq!(all.read::<i32>(..)?, [-1, 3, 4, -1, -1]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn virtual_part(
        mut self,
        part: Selection,
        file: &str,
        dataset: &str,
        source: Selection,
    ) -> Self {
        let (file, dataset) = (file.into(), dataset.into());
        self.mappings.push(VirtualMapping { file, dataset, source, target: part });
        self
    }

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

    /// Adds a filter to one section of a chunk, which loses its default filters. One for the selection
    /// is ignored if the dataset is not sparse, one for the heap if it has no variable-length data.
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

    /// Changes a filter that is there, by default or because it was added: the one of the same id.
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
    fn filters_of(&self, sections: &[Section]) -> Result<SectionFilters> {
        let mut filters = SectionFilters::defaults(sections, self.datatype.size() as u32);
        for edit in &self.edits {
            filters.apply(edit.clone())?;
        }
        filters.check()?;
        Ok(filters)
    }

    /// Makes the dataset, and the groups on the way to it.
    pub fn create(self, path: &str) -> Result<Dataset> {
        let spec = self.spec().map_err(|error| error.at(path))?;
        self.group.link_dataset(path, spec)
    }

    pub(crate) fn spec(&self) -> Result<DatasetSpec> {
        let extent = match (&self.max_shape, self.shape.as_slice()) {
            _ if self.null => self.null_extent()?,
            (None, []) => Extent::Scalar,
            (None, shape) => Extent::simple(shape)?,
            (Some(max), shape) => Extent::with_max(shape, max)?,
        };
        let mut spec = DatasetSpec {
            fill_time: self.fill_time,
            allocation: self.allocation,
            track_times: self.track_times,
            track_attribute_order: self.track_attribute_order,
            attribute_phase_change: self.attribute_phase_change,
            undefined_fill: self.undefined_fill,
            committed: self.committed.clone(),
            ..DatasetSpec::new(self.datatype.clone(), extent, self.layout()?)
        };
        self.put_fill(&mut spec)?;
        Ok(spec)
    }

    fn null_extent(&self) -> Result<Extent> {
        let stored = self.layout()?;
        let plain = matches!(stored, LayoutSpec::Contiguous | LayoutSpec::Compact);
        match plain && self.shape.is_empty() {
            true => Ok(Extent::Null),
            false => Err(Error::Invalid("a null dataspace has no shape and no chunks".into())),
        }
    }

    /// Sets the fill value, and what it refers to unless it refers to the file.
    fn put_fill(&self, spec: &mut DatasetSpec) -> Result<()> {
        let heaped = match &self.fill {
            None => None,
            Some(Fill::Element(datatype, value)) => {
                let mut converted = vec![0; self.datatype.size()];
                Conversion::new(datatype, &self.datatype)?.convert(value, &mut converted)?;
                spec.fill = Some(converted);
                None
            }
            Some(Fill::Value(value)) => {
                Some(Heaped::from_values(&self.datatype, std::slice::from_ref(value))?)
            }
            Some(Fill::Heaped(fill)) => Some(fill.clone()),
            Some(Fill::Of(other)) => other.fill_heaped()?,
        };
        if let Some(Heaped { elements, heap }) = heaped {
            spec.fill = Some(elements);
            spec.fill_heap = self.datatype.has_varlen().then_some(heap);
        }
        Ok(())
    }

    fn layout(&self) -> Result<LayoutSpec> {
        if !self.external.is_empty() || !self.mappings.is_empty() {
            return self.elsewhere();
        }
        if self.variable_length || (self.sparse && self.datatype.has_varlen()) {
            return self.variable_length_layout();
        }
        if self.sparse {
            return self.sparse_layout();
        }
        let filters = self.filters_of(&[Section::Chunk])?.of(Section::Chunk).to_vec();
        let chunked = self.chunk.is_some() || !filters.is_empty() || self.max_shape.is_some();
        match (chunked, self.compact) {
            (true, true) => Err(Error::Invalid("compact datasets have no chunks".into())),
            (false, true) => Ok(LayoutSpec::Compact),
            (false, false) => Ok(LayoutSpec::Contiguous),
            (true, false) => {
                let cells = DENSE_CHUNK_BYTES / self.datatype.size().max(1) as u64;
                let chunk = self.chunk.clone().unwrap_or_else(|| self.default_chunk(cells));
                let dont_filter_partial = self.dont_filter_partial;
                Ok(LayoutSpec::Chunked { chunk, filters, dont_filter_partial })
            }
        }
    }

    /// Elements that are in other files or datasets.
    fn elsewhere(&self) -> Result<LayoutSpec> {
        let chunked = self.chunk.is_some() || self.sparse || self.variable_length;
        let own = chunked || !self.edits.is_empty() || self.compact;
        match (self.external.is_empty(), self.mappings.is_empty()) {
            (false, true) if !own => Ok(LayoutSpec::External { files: self.external.clone() }),
            (true, false) if !own => Ok(LayoutSpec::Virtual { mappings: self.mappings.clone() }),
            _ => Err(Error::Invalid(
                "elements in other files or datasets, which have another layout as well".into(),
            )),
        }
    }

    fn sparse_layout(&self) -> Result<LayoutSpec> {
        if self.shape.is_empty() || self.compact {
            return Err(Error::Invalid("a sparse dataset needs a shape and chunks".into()));
        }
        let chunk = self.chunk.clone();
        let chunk = chunk.unwrap_or_else(|| self.default_sparse_chunk(SPARSE_CHUNK_DEFINED));
        let filters = self.filters_of(&[Section::Selection, Section::Values])?;
        let locations = filters.of(Section::Selection).to_vec();
        let values = filters.of(Section::Values).to_vec();
        let dont_filter_partial = self.dont_filter_partial;
        Ok(LayoutSpec::Sparse { chunk, locations, values, dont_filter_partial })
    }

    fn variable_length_layout(&self) -> Result<LayoutSpec> {
        if self.shape.is_empty() || self.compact {
            return Err(Error::Invalid("variable-length chunks need a shape".into()));
        }
        let chunk = self.chunk.clone().unwrap_or_else(|| match self.sparse {
            true => self.default_sparse_chunk(HEAP_CHUNK_DEFINED),
            false => self.default_chunk(HEAP_CHUNK_CELLS),
        });
        let mut sections = vec![Section::References, Section::Heap];
        if self.sparse {
            sections.insert(0, Section::Selection);
        }
        let filters = self.filters_of(&sections)?;
        Ok(LayoutSpec::VariableLength {
            chunk,
            locations: self.sparse.then(|| filters.of(Section::Selection).to_vec()),
            references: filters.of(Section::References).to_vec(),
            heap: filters.of(Section::Heap).to_vec(),
            dont_filter_partial: self.dont_filter_partial,
        })
    }

    /// A chunk of about so many `defined` cells with sides as equal as they can be while a row lies in at
    /// most [`MOST_ACROSS`] chunks: of an array with many defined cells, a row has few of them, and each
    /// chunk that it lies in is decoded whole.
    fn default_sparse_chunk(&self, defined: f64) -> Vec<u64> {
        let cells = (defined / self.density).clamp(SPARSE_CHUNK_CELLS.0, SPARSE_CHUNK_CELLS.1);
        let max = self.max_shape.as_deref().unwrap_or(&self.shape);
        let mut chunk = guess::sparse_chunk_shape(&self.shape, max, cells as u64, self.access);
        if let (Access::Blocks, [.., high, wide], [.., width]) =
            (self.access, &mut *chunk, &*self.shape)
        {
            let wider =
                (width.div_ceil(MOST_ACROSS)).clamp(*wide, *wide * (*high).min(MOST_WIDENING));
            *high = (*high * *wide / wider).max(1);
            *wide = wider;
        }
        chunk
    }

    fn default_chunk(&self, cells: u64) -> Vec<u64> {
        let max = self.max_shape.as_deref().unwrap_or(&self.shape);
        guess::chunk_shape(&self.shape, max, cells, self.access)
    }
}
