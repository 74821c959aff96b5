//! Datasets: read, write, ask, erase, resize.

mod ahead;
pub(crate) mod creation;
mod defined;
pub(crate) mod steady;
mod typed;
mod varlen;

pub use defined::Defined;
pub(crate) use defined::coordinates_of;

use crate::Transfer;
use crate::file::Owner;
use crate::filters::{Section, SectionFilters};
use crate::select::Select;
use crate::{Attribute, AttributeValue, ObjectPath};
use pumice_engine::dataset::{DatasetState, Handle};
use pumice_engine::{Error, Result, attribute};
use pumice_filter::FilterSpec;
use pumice_layout::buffer::Output;
use pumice_layout::{Place, Storage};
use pumice_space::{Dims, Extent, Selection};
use pumice_types::{Datatype, Element, Heaped};
use std::sync::Arc;

/// A dataset of a file. Handles are cheap to clone and may be used from many threads.
///
/// Selections are `..`, ranges, tuples of ranges, or a [`Selection`]; see [`Select`].
#[derive(Clone)]
pub struct Dataset {
    pub(crate) state: Handle,
    path: ObjectPath,
    /// Last, so that the file is closed after everything else is dropped.
    owner: Arc<Owner>,
}

/// The storage layout of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayoutKind {
    /// In the object header.
    Compact,
    /// In one piece.
    Contiguous,
    /// In dense chunks.
    Chunked,
    /// In sparse chunks: only defined cells are stored.
    Sparse,
    /// In dense chunks that hold variable-length data themselves.
    VariableLength,
    /// In other files, in one piece.
    External,
    /// In other datasets.
    Virtual,
    /// In a way that cannot be read yet.
    Unreadable,
}

impl Dataset {
    pub(crate) fn new(owner: Arc<Owner>, state: Arc<DatasetState>, path: ObjectPath) -> Self {
        Self { owner, state: Handle::new(state), path }
    }

    /// The dataset of the engine's state of it, for the connector of libhdf5. It does not keep the file's changes: who
    /// has opened the file commits them.
    #[doc(hidden)]
    pub fn of_engine(engine: Arc<pumice_engine::file::File>, state: Arc<DatasetState>) -> Self {
        let path = ObjectPath::root();
        Self::new(Arc::new(Owner::quiet(engine)), state, path)
    }

    /// The engine's state of it, for those who write its chunks by themselves.
    #[doc(hidden)]
    pub fn as_engine(&self) -> &DatasetState {
        &self.state
    }

    pub(crate) fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    pub(crate) fn engine(&self) -> &pumice_engine::file::File {
        &self.owner.0
    }

    pub(crate) fn state(&self) -> &DatasetState {
        &self.state
    }

    /// Its path in the file.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The path of the dataset as a value to keep: it shares its memory with the paths of its groups.
    pub fn object_path(&self) -> &ObjectPath {
        &self.path
    }

    /// The address of its object header: two handles with equal addresses are the same dataset.
    pub fn address(&self) -> u64 {
        self.state.object().address()
    }

    /// Its shape.
    pub fn shape(&self) -> Vec<u64> {
        self.state.dims().to_vec()
    }

    /// The maximum of each axis; `None` for unlimited.
    pub fn max_shape(&self) -> Vec<Option<u64>> {
        let max = self.state.layout().geometry.max_dims();
        max.iter().map(|&axis| (axis != crate::UNLIMITED).then_some(axis)).collect()
    }

    /// Its extent: null, scalar, or current and maximum dimensions.
    pub fn extent(&self) -> Result<Extent> {
        self.at(self.state.extent())
    }

    /// The type of its elements in the file.
    pub fn datatype(&self) -> &Datatype {
        self.state.datatype()
    }

    /// The storage layout.
    pub fn layout(&self) -> LayoutKind {
        match &self.state.layout().storage {
            Storage::Contiguous(contiguous) => match contiguous.place() {
                Place::Compact(_) => LayoutKind::Compact,
                Place::File(_) => LayoutKind::Contiguous,
            },
            Storage::Dense(..) => LayoutKind::Chunked,
            Storage::Sparse(..) => LayoutKind::Sparse,
            Storage::VariableLength(layout) if layout.is_sparse() => LayoutKind::Sparse,
            Storage::VariableLength(..) => LayoutKind::VariableLength,
            Storage::External(_) => LayoutKind::External,
            Storage::Virtual => LayoutKind::Virtual,
            Storage::Unreadable(_) => LayoutKind::Unreadable,
        }
    }

    /// Whether only defined cells are stored.
    pub fn is_sparse(&self) -> bool {
        self.layout() == LayoutKind::Sparse
    }

    /// The shape of a chunk, if it has chunks.
    pub fn chunk(&self) -> Option<Vec<u64>> {
        match self.layout() {
            LayoutKind::Chunked | LayoutKind::Sparse | LayoutKind::VariableLength => {
                Some(self.state.layout().geometry.chunk().to_vec())
            }
            _ => None,
        }
    }

    /// The filters of its chunks: of the values in a sparse dataset, of the heap for strings and
    /// sequences in structured chunks, where the heap has the bytes of the values.
    /// [`section_filters`](Self::section_filters) has those of all sections.
    ///
    /// ```
    /// use pumice::{File, Section};
    ///
    /// let file = File::in_memory()?;
    /// let notes = file.new_strings().shape([9]).sparse().create("notes")?;
    /// assert_eq!(notes.filters(), notes.section_filters().of(Section::Heap));
    /// assert_eq!(notes.filters().len(), 2);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn filters(&self) -> Vec<FilterSpec> {
        match &self.state.layout().storage {
            Storage::Dense(dense) => dense.pipeline().specs().to_vec(),
            Storage::Sparse(sparse) => sparse.pipeline(1).specs().to_vec(),
            Storage::VariableLength(layout) => {
                layout.pipelines().last().map_or(Vec::new(), |heap| heap.specs().to_vec())
            }
            _ => Vec::new(),
        }
    }

    /// The filters of a sparse dataset's locations.
    pub fn location_filters(&self) -> Vec<FilterSpec> {
        match &self.state.layout().storage {
            Storage::Sparse(sparse) => sparse.pipeline(0).specs().to_vec(),
            Storage::VariableLength(layout) if layout.is_sparse() => {
                layout.pipelines().next().map_or(Vec::new(), |first| first.specs().to_vec())
            }
            _ => Vec::new(),
        }
    }

    /// The sections of its chunks, in the order in which they are stored; none if it has no chunks.
    pub fn sections(&self) -> Vec<Section> {
        match &self.state.layout().storage {
            Storage::Dense(..) => vec![Section::Chunk],
            Storage::Sparse(..) => vec![Section::Selection, Section::Values],
            Storage::VariableLength(layout) if layout.is_sparse() => {
                vec![Section::Selection, Section::References, Section::Heap]
            }
            Storage::VariableLength(..) => vec![Section::References, Section::Heap],
            _ => Vec::new(),
        }
    }

    /// The filters of each section, as the file has them.
    pub fn section_filters(&self) -> SectionFilters {
        let sections = self.sections().into_iter();
        let filters = match &self.state.layout().storage {
            Storage::VariableLength(layout) => {
                let filters = layout.pipelines().map(|pipeline| pipeline.specs().to_vec());
                sections.zip(filters).collect()
            }
            _ => sections
                .map(|section| match section {
                    Section::Selection => (section, self.location_filters()),
                    _ => (section, self.filters()),
                })
                .collect(),
        };
        SectionFilters::stored(filters, self.datatype().size() as u32)
    }

    /// The fill value, if one was set, with the objects that it refers to.
    pub fn fill_heaped(&self) -> Result<Option<Heaped>> {
        self.at(self.state.fill_heaped())
    }

    /// Its fill value, one element of its type, if one was set; otherwise it is zero.
    pub fn fill_value(&self) -> Option<&[u8]> {
        self.state.fill_value()
    }

    /// Bytes that its chunk index takes in the file; 0 if it has none or the header holds it.
    ///
    /// ```
    /// # let file = pumice::File::in_memory()?;
    /// let dataset = file.new_dataset::<i32>().shape([50]).chunk([5]).sparse().create("d")?;
    /// assert_eq!(dataset.index_size()?, 0, "nothing is stored yet");
    /// dataset.write(0..5, &[1, 2, 3, 4, 5])?;
    /// assert_eq!(dataset.index_size()?, 466, "a fixed array of ten filtered chunks");
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn index_size(&self) -> Result<u64> {
        self.at(self.flush())?;
        self.at(self.state.index_size())
    }

    /// Reads the selected cells into `buffer` as packed elements of any datatype that theirs
    /// converts to.
    pub fn read_as(
        &self,
        selection: impl Select,
        datatype: &Datatype,
        buffer: &mut [u8],
        transfer: &Transfer,
    ) -> Result<()> {
        self.selected(selection, |selection, _| {
            self.state.read_with(selection, datatype, Output::new(buffer), &transfer.0)
        })
    }

    /// Writes packed elements of any datatype that converts to the dataset's.
    pub fn write_as(
        &self,
        selection: impl Select,
        datatype: &Datatype,
        bytes: &[u8],
        transfer: &Transfer,
    ) -> Result<()> {
        self.make_room()?;
        self.selected(selection, |selection, _| {
            self.state.write_with(selection, datatype, bytes, &transfer.0)
        })
    }

    /// Reads the stored bytes of the selected cells.
    pub fn read_bytes(&self, selection: impl Select) -> Result<Vec<u8>> {
        let datatype = self.datatype();
        self.selected(selection, |selection, dims| {
            let count = self.count(selection, dims, datatype.size())?;
            let mut bytes = self.buffer(count * datatype.size())?;
            self.state.read(selection, datatype, Output::zeroed(&mut bytes))?;
            Ok(bytes)
        })
    }

    /// Writes elements of the dataset's own type to the selected cells.
    pub fn write_bytes(&self, selection: impl Select, bytes: &[u8]) -> Result<()> {
        self.make_room()?;
        self.selected(selection, |selection, _| self.state.write(selection, self.datatype(), bytes))
    }

    /// Makes the selected cells of a sparse dataset undefined. An empty chunk gives its space back.
    /// In other layouts no cell can be undefined: that is an error; see [`reset`](Self::reset).
    pub fn erase(&self, selection: impl Select) -> Result<()> {
        self.require_erasable()?;
        self.reset(selection)
    }

    pub(crate) fn require_erasable(&self) -> Result<()> {
        if self.is_sparse() {
            return Ok(());
        }
        self.at(Err(Error::WrongKind(
            "only cells of sparse datasets can be erased: reset them, or write the fill value"
                .into(),
        )))
    }

    /// Makes the selected cells read as the fill value: erases them in a sparse dataset, writes the
    /// fill value in others. In a virtual dataset, its own fill value is written to the sources
    /// that have the cells; cells without a source read as it anyway.
    pub fn reset(&self, selection: impl Select) -> Result<()> {
        self.make_room()?;
        self.selected(selection, |selection, _| self.state.reset(selection))
    }

    /// Changes the shape within the maximum. Cells outside are lost, also if it grows again.
    pub fn resize(&self, shape: impl AsRef<[u64]>) -> Result<()> {
        self.make_room()?;
        self.at(self.state.resize(shape.as_ref()))
    }

    /// Writes its dirty chunks. The file's metadata follows with [`File::flush`](crate::File::flush).
    pub fn flush(&self) -> Result<()> {
        self.at(self.state.flush(self.owner.0.cache()))
    }

    /// Reads the dataset's metadata again, which another program may have changed: HDF5's
    /// `H5Drefresh`. Extent, elements and attributes are then those of the file. Does nothing in a
    /// file that is open for editing.
    ///
    /// It is for files that are written while they are read: see
    /// [`FileOptions::swmr`](crate::FileOptions::swmr). Reads that are under way are waited for. Of a file that is read
    /// without a lock, all datasets are of one state, and this is [`File::refresh`](crate::File::refresh).
    pub fn refresh(&self) -> Result<()> {
        self.at(self.engine().refresh_dataset(&self.state))
    }

    /// Whether it has an attribute with this name.
    ///
    /// ```
    /// let file = pumice::File::in_memory()?;
    /// let dataset = file.new_dataset::<u8>().create("d")?;
    /// dataset.set_attribute("unit", "K")?;
    /// assert!(dataset.has_attribute("unit")? && !dataset.has_attribute("scale")?);
    /// assert_eq!(dataset.attribute_names()?, ["unit"]);
    /// # Ok::<(), pumice::Error>(())
    /// ```
    pub fn has_attribute(&self, name: &str) -> Result<bool> {
        self.at(attribute::has(&self.owner.0, self.state.object(), name))
    }

    /// The names of its attributes, in order.
    pub fn attribute_names(&self) -> Result<Vec<String>> {
        self.at(attribute::names(&self.owner.0, self.state.object()))
    }

    /// Its attributes, in order of their names.
    pub fn attributes(&self) -> Result<Vec<Attribute>> {
        Attribute::all(&self.owner, self.state.object(), &self.path)
    }

    /// The attribute of a name.
    pub fn attribute(&self, name: &str) -> Result<Attribute> {
        Attribute::find(&self.owner, self.state.object(), &self.path, name)
    }

    /// Adds or replaces an attribute.
    pub fn set_attribute(&self, name: &str, value: impl AttributeValue) -> Result<()> {
        self.changing_object()?;
        self.at(crate::attribute::set(&self.owner.0, self.state.object(), name, &value))
    }

    /// Sets the dataset's comment, or removes it.
    pub fn set_comment(&self, text: Option<&str>) -> Result<()> {
        self.changing_object()?;
        self.at(creation::set_comment(self.state.object(), text))
    }

    /// Renames an attribute.
    pub fn rename_attribute(&self, name: &str, new_name: &str) -> Result<()> {
        self.changing_object()?;
        self.at(attribute::rename(&self.owner.0, self.state.object(), name, new_name))
    }

    /// Removes an attribute.
    pub fn remove_attribute(&self, name: &str) -> Result<()> {
        self.changing_object()?;
        self.at(attribute::remove(&self.owner.0, self.state.object(), name))
    }

    /// Prepares a change: fails if changes are not allowed, and bounds the memory of earlier ones.
    pub(crate) fn make_room(&self) -> Result<()> {
        self.at(self.owner.begin_change())
    }

    /// Before a change of the object itself, not of its elements: fails if it may not be.
    fn changing_object(&self) -> Result<()> {
        self.at(self.owner.begin_object_change())
    }

    pub(crate) fn selection(&self, selection: impl Select) -> Result<Selection> {
        self.at(selection.select(&self.state.dims()))
    }

    /// The number of selected cells, if a buffer for them can exist.
    fn count(&self, selection: &Selection, dims: &Dims, size: usize) -> Result<usize> {
        self.at(selection.check(dims).map_err(Error::from))?;
        let null = matches!(self.extent()?, Extent::Null);
        let count = if null { 0 } else { selection.count(dims) };
        let bytes = count.checked_mul(size.max(1) as u64);
        match bytes.filter(|&bytes| bytes <= isize::MAX as u64) {
            Some(_) => Ok(count as usize),
            None => self.at(Err(Error::NoMemory(format!("{count} cells do not fit into memory")))),
        }
    }

    /// Zeroed memory, or an error if there is not enough.
    pub(crate) fn buffer<T: Element>(&self, count: usize) -> Result<Vec<T>> {
        self.at(pumice_medium::zeroed(count))
    }

    pub(crate) fn at<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| error.at(&self.path))
    }
}
