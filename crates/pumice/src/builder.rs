//! The description of a new dataset.

mod filters;
mod guess;
mod spec;

use crate::filters::Edit;
use crate::{Dataset, ExternalPiece, Group};
use pumice_engine::Result;
use pumice_engine::dataset::{AllocationTime, FillTime, VirtualMapping};
use pumice_engine::shared::Committed;
use pumice_space::{Selection, UNLIMITED};
use pumice_types::{Datatype, H5Type, Heaped, TypeError, Value};

/// The share of defined cells, unless the caller states it.
const DENSITY: f64 = 0.01;

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
    /// The parts of a virtual dataset; `None` for another.
    mappings: Option<Vec<VirtualMapping>>,
}

/// A fill value, however it was given.
#[derive(Clone)]
enum Fill {
    /// One element of some type.
    Element(Datatype, Vec<u8>),
    /// One value of a Rust type with the objects that it refers to, or the reason why it has no
    /// datatype.
    Typed(Datatype, Result<Heaped, TypeError>),
    /// One value of the dataset's type.
    Value(Value),
    /// One element of the dataset's type, with the objects that it refers to.
    Heaped(Heaped),
    /// The fill value of another dataset of the same type.
    Of(Dataset),
}

/// The usual way of reading a dataset, for the default shape of its chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// In blocks of any kind: sides as equal as the shape allows.
    #[default]
    Blocks,
    /// Reads of lines along an axis, such as time series of single cells: chunks are as long as
    /// possible along it.
    Along(usize),
    /// Reads of slices across an axis, such as the images of a film: chunks have one cell along it.
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
            mappings: None,
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

    /// Sets the maximum of each axis; `None` for unlimited.
    pub fn max_shape(mut self, max: impl IntoIterator<Item = Option<u64>>) -> Self {
        self.max_shape = Some(max.into_iter().map(|axis| axis.unwrap_or(UNLIMITED)).collect());
        self
    }

    /// The shape of a chunk.
    pub fn chunk(mut self, chunk: impl Into<Vec<u64>>) -> Self {
        self.chunk = Some(chunk.into());
        self
    }

    /// The value that unwritten cells read as; zero if not set.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// let names = file.new_dataset::<String>().shape([2]).fill_value("unknown").create("names")?;
    /// assert_eq!(names.read::<String>(..)?, ["unknown", "unknown"]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn fill_value<T: H5Type>(mut self, value: T) -> Self {
        let elements = pumice_types::to_elements(std::slice::from_ref(&value));
        let heaped = elements.map(|(elements, heap)| Heaped { elements, heap: heap.bytes });
        self.fill = Some(Fill::Typed(T::datatype(), heaped));
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

    /// [`fill`](Self::fill) with one element and the objects that it refers to.
    pub fn fill_heaped(mut self, fill: Heaped) -> Self {
        self.fill = Some(Fill::Heaped(fill));
        self
    }

    /// Gives the dataset no fill value, not even zeros: libhdf5's `H5Pset_fill_value` of nothing.
    /// Unwritten cells have no defined value; Pumice reads zeros.
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

    /// Fails if such a dataset cannot be created.
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

    /// Sets when the fill value is written to allocated space. If it never is, unwritten cells have
    /// no defined value; undefined cells of a sparse dataset take no space and read as the fill
    /// value.
    pub fn fill_time(mut self, time: FillTime) -> Self {
        self.fill_time = time;
        self
    }

    /// Sets when space is allocated: with the dataset (early), with the first write (late), or
    /// chunk by chunk (incremental). The default is that of the layout.
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

    /// States the share of cells that will be defined, for the default chunk shape of a sparse
    /// dataset: about 16,384 defined cells a chunk (10,000 of variable length), with sides as equal
    /// as the shape allows, but wider where a row would lie in more than fourteen chunks. If values
    /// have no filters they are not decoded, so chunks are larger: 24,576 defined cells, and two
    /// and a half times as wide as high, so that rows are written in fewer pieces. The default is
    /// one cell in a hundred.
    ///
    /// An axis that can grow counts as at least 1024 cells long, or as long as a chunk needs for
    /// its cells, within its maximum: absent cells take no space.
    ///
    /// ```
    /// # let file = pumice::File::in_memory()?;
    /// let matrix = file.new_dataset::<f32>().shape([20_000, 20_000]).sparse();
    /// let thin = matrix.clone().expected_density(0.001).create("thin")?;
    /// assert_eq!(thin.chunk(), Some(vec![4048, 4047]));
    /// let thick = matrix.clone().expected_density(0.1).create("thick")?;
    /// assert_eq!(thick.chunk(), Some(vec![114, 1429]));
    /// assert_eq!(matrix.clone().create("usual")?.chunk(), Some(vec![1146, 1429]));
    /// assert_eq!(matrix.value_filters(vec![]).create("plain")?.chunk(), Some(vec![1000, 2500]));
    ///
    /// let events = file.new_dataset::<f32>().shape([0]).max_shape([None]).sparse().create("events")?;
    /// assert_eq!(events.chunk(), Some(vec![1_638_400]));
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn expected_density(mut self, share: f64) -> Self {
        self.density = if share > 0.0 { share.min(1.0) } else { DENSITY };
        self
    }

    /// Stores the elements in the object header: for at most 65,524 bytes.
    pub fn compact(mut self) -> Self {
        self.compact = true;
        self
    }

    /// Sets the usual way of reading, for the default chunk shape.
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

    /// Maps the cells `part` to those that `source` selects of a dataset of another file, or of
    /// this one (`.`), in the same order. Cells that no part covers read as the fill value.
    /// Selections may be unlimited, and `%b` in names stands for the number of a block.
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
        let mapping = VirtualMapping { file, dataset, source, target: part };
        self.mappings.get_or_insert_default().push(mapping);
        self
    }

    /// Makes the dataset virtual, even without [parts](Self::virtual_part): then every cell has the fill value.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// let none = file.new_dataset::<i32>().shape([3]).fill_value(7).virtual_dataset().create("none")?;
    /// assert_eq!(none.read::<i32>(..)?, [7, 7, 7]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn virtual_dataset(mut self) -> Self {
        self.mappings.get_or_insert_default();
        self
    }
}
