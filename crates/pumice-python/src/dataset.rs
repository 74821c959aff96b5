//! Datasets.

use crate::context::counters;
use crate::datatype::PyDatatype;
use crate::errors::{invalid, raised};
use crate::group::{Object, PyObjectHandle};
use crate::handles::Keeper;
use crate::kinds::of_kind;
use crate::selection::{PySelection, simple_axes};
use crate::text::{Form, put_objects, put_strings, strings_of, strings_of_objects};
use crate::values::packed;
use numpy::{
    PyArray1, PyArrayDyn, PyArrayMethods, PyReadonlyArray1, PyReadonlyArrayDyn, PyReadwriteArray1,
    PyReadwriteArrayDyn, PyUntypedArray,
};
use pumice::{
    AllocationTime, Dataset, Fill, FillTime, FilterSpec, Heaped, LayoutKind, PlaceKind, Transfer,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use std::sync::Arc;

/// A dataset.
#[pyclass(frozen, name = "Dataset", module = "pumice._pumice")]
pub(crate) struct PyDataset(PyObjectHandle);

impl PyDataset {
    pub(crate) fn new(dataset: Dataset, keeper: &Arc<Keeper>) -> Self {
        Self(PyObjectHandle::new(Object::Dataset(dataset), keeper))
    }

    /// The dataset, for one call.
    pub(crate) fn dataset(&self) -> PyResult<Dataset> {
        match self.0.object()? {
            Object::Dataset(dataset) => Ok(dataset),
            _ => Err(invalid("not a dataset")),
        }
    }
}

/// The places of elements in memory that are not one after another: the cells, and the shape of
/// their array.
type Memory<'py> = Option<(PyRef<'py, PySelection>, Vec<u64>)>;

fn transfer(memory: &Memory<'_>) -> Transfer {
    match memory {
        None => Transfer::new(),
        Some((cells, shape)) => Transfer::new().memory(cells.0.clone(), shape.clone()),
    }
}

/// Number, name, whether it is optional, parameters.
type FilterFacts = (u16, Option<String>, bool, Vec<u32>);

fn filter_facts(filters: Vec<FilterSpec>) -> Vec<FilterFacts> {
    filters.into_iter().map(|f| (f.id, f.name, f.optional, f.parameters)).collect()
}

/// First cell, filters that were skipped, address, bytes.
type ChunkFacts = (Vec<u64>, u32, u64, u64);

fn chunk_facts(info: pumice::ChunkInfo) -> ChunkFacts {
    (info.offset, info.filter_mask, info.address, info.size)
}

#[pymethods]
impl PyDataset {
    /// The dataset as an object.
    fn object(&self) -> PyObjectHandle {
        self.0.clone()
    }

    /// The size along each axis; `None` for a dataset without elements.
    #[getter]
    fn shape(&self) -> PyResult<Option<Vec<u64>>> {
        let dataset = self.dataset()?;
        match dataset.extent().map_err(raised)?.is_null() {
            true => Ok(None),
            false => Ok(Some(dataset.shape())),
        }
    }

    /// The maximum along each axis; `None` for unlimited.
    #[getter]
    fn max_shape(&self) -> PyResult<Vec<Option<u64>>> {
        Ok(self.dataset()?.max_shape())
    }

    /// The datatype.
    #[getter]
    fn datatype(&self) -> PyResult<PyDatatype> {
        Ok(PyDatatype(self.dataset()?.datatype().clone()))
    }

    /// The address of its committed datatype, if it has one.
    #[getter]
    fn committed(&self) -> PyResult<Option<u64>> {
        Ok(self.dataset()?.committed_datatype())
    }

    /// The storage layout.
    #[getter]
    fn layout(&self) -> PyResult<&'static str> {
        Ok(match self.dataset()?.layout() {
            LayoutKind::Compact => "compact",
            LayoutKind::Contiguous => "contiguous",
            LayoutKind::Chunked => "chunked",
            LayoutKind::Sparse => "sparse",
            LayoutKind::VariableLength => "variable-length",
            LayoutKind::External => "external",
            LayoutKind::Virtual => "virtual",
            _ => "unreadable",
        })
    }

    /// The shape of its chunks; `None` without chunks.
    #[getter]
    fn chunk(&self) -> PyResult<Option<Vec<u64>>> {
        Ok(self.dataset()?.chunk())
    }

    /// Its filters; of a sparse dataset, the filters of the values.
    #[getter]
    fn filters(&self) -> PyResult<Vec<FilterFacts>> {
        Ok(filter_facts(self.dataset()?.filters()))
    }

    /// The filters of the locations of a sparse dataset.
    #[getter]
    fn location_filters(&self) -> PyResult<Vec<FilterFacts>> {
        Ok(filter_facts(self.dataset()?.location_filters()))
    }

    /// "undefined", "default" or "value"; when it is written, when room is found, and the address of the elements if
    /// they lie in one piece.
    fn creation(&self) -> PyResult<(&'static str, &'static str, &'static str, Option<u64>)> {
        let creation = self.dataset()?.creation().map_err(raised)?;
        let fill = match creation.fill {
            Fill::Undefined => "undefined",
            Fill::Default => "default",
            Fill::Value(_) => "value",
        };
        let time = match creation.fill_time {
            FillTime::Allocation => "alloc",
            FillTime::Never => "never",
            FillTime::IfSet => "ifset",
        };
        let allocation = match creation.allocation_time {
            AllocationTime::Default => "default",
            AllocationTime::Early => "early",
            AllocationTime::Late => "late",
            AllocationTime::Incremental => "incremental",
        };
        Ok((fill, time, allocation, creation.address))
    }

    /// The address of the elements, if they are in one piece of the file.
    fn address(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        let dataset = self.dataset()?;
        if !matches!(dataset.layout(), LayoutKind::Contiguous) {
            return Ok(None);
        }
        let places = py.detach(|| dataset.places()).map_err(raised)?;
        let elements = places.iter().find(|place| place.kind == PlaceKind::Elements);
        Ok(elements.map(|place| place.address))
    }

    /// The stored fill value with its heap.
    #[expect(clippy::type_complexity)]
    fn fill<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<(Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<u8>>)>> {
        let dataset = self.dataset()?;
        let arrays = |found: Heaped| {
            (PyArray1::from_vec(py, found.elements), PyArray1::from_vec(py, found.heap))
        };
        if dataset.datatype().has_varlen() {
            return Ok(dataset.fill_heaped().map_err(raised)?.map(arrays));
        }
        let value = dataset.fill_value().map(<[u8]>::to_vec);
        Ok(value.map(|elements| arrays(Heaped { elements, heap: Vec::new() })))
    }

    /// Reads cells into memory, as elements of a datatype.
    #[pyo3(signature = (cells, datatype, buffer, memory=None))]
    fn read(
        &self,
        py: Python<'_>,
        cells: &PySelection,
        datatype: &PyDatatype,
        mut buffer: PyReadwriteArray1<'_, u8>,
        memory: Memory<'_>,
    ) -> PyResult<()> {
        let (dataset, transfer) = (self.dataset()?, transfer(&memory));
        let bytes = buffer.as_slice_mut()?;
        py.detach(|| dataset.read_as(&cells.0, &datatype.0, bytes, &transfer)).map_err(raised)
    }

    /// The selection of integers, slices and an ellipsis (one, or a tuple of them), as a new array of numbers of a
    /// kind; `None` if the index has anything else, or the dataset has no axes.
    fn get<'py>(
        &self,
        py: Python<'py>,
        index: &Bound<'py, PyAny>,
        kind: &str,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let dataset = self.dataset()?;
        let shape = dataset.shape();
        if shape.is_empty() {
            return Ok(None);
        }
        let axes = match index.cast::<PyTuple>() {
            Ok(index) => simple_axes(&shape, index)?,
            Err(_) => simple_axes(&shape, &PyTuple::new(py, [index])?)?,
        };
        let Some(axes) = axes else { return Ok(None) };
        let cells = axes.selection()?;
        let sides = axes.sides();
        of_kind!(kind, T => {
            // SAFETY: numbers of any bytes are numbers, and every one is written before anybody sees the array: a read
            // that succeeds has written all cells. Filling a window of 64 x 64 with zeros took a tenth of its read.
            let array = unsafe { PyArrayDyn::<T>::new(py, sides.as_slice(), false) };
            // SAFETY: nobody else has the new array. To count who borrows it took some more.
            let memory = unsafe { array.as_slice_mut()? };
            if !axes.is_empty() {
                py.detach(|| dataset.read_into(&cells, memory)).map_err(raised)?;
            }
            match sides.is_empty() {
                true => Ok(Some(array.get_item(())?)),
                false => Ok(Some(array.into_any())),
            }
        })
    }

    /// Reads strings one after another: where each begins and the last ends, and the bytes.
    #[expect(clippy::type_complexity)]
    fn read_packed_strings<'py>(
        &self,
        py: Python<'py>,
        cells: &PySelection,
    ) -> PyResult<(Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u8>>)> {
        let dataset = self.dataset()?;
        let found = py.detach(|| dataset.read_strings(&cells.0)).map_err(raised)?;
        let (offsets, bytes) = found.into_parts();
        Ok((PyArray1::from_vec(py, offsets), PyArray1::from_vec(py, bytes)))
    }

    /// Writes elements of a datatype to cells.
    #[pyo3(signature = (cells, datatype, buffer, memory=None))]
    fn write(
        &self,
        py: Python<'_>,
        cells: &PySelection,
        datatype: &PyDatatype,
        buffer: PyReadonlyArray1<'_, u8>,
        memory: Memory<'_>,
    ) -> PyResult<()> {
        let (dataset, transfer) = (self.dataset()?, transfer(&memory));
        let bytes = buffer.as_slice()?;
        py.detach(|| dataset.write_as(&cells.0, &datatype.0, bytes, &transfer)).map_err(raised)
    }

    /// Writes one stored element to all cells.
    fn write_same(&self, py: Python<'_>, cells: &PySelection, element: &[u8]) -> PyResult<()> {
        let dataset = self.dataset()?;
        py.detach(|| dataset.write_scalar_bytes(&cells.0, element)).map_err(raised)
    }

    /// Reads stored elements with their heap.
    #[expect(clippy::type_complexity)]
    fn read_heaped<'py>(
        &self,
        py: Python<'py>,
        cells: &PySelection,
    ) -> PyResult<(Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<u8>>)> {
        let dataset = self.dataset()?;
        let found = py.detach(|| dataset.read_heaped(&cells.0)).map_err(raised)?;
        Ok((PyArray1::from_vec(py, found.elements), PyArray1::from_vec(py, found.heap)))
    }

    /// Writes elements in their stored form, with their heap.
    fn write_heaped(
        &self,
        py: Python<'_>,
        cells: &PySelection,
        elements: PyReadonlyArray1<'_, u8>,
        heap: PyReadonlyArray1<'_, u8>,
    ) -> PyResult<()> {
        let dataset = self.dataset()?;
        let (elements, heap) = (elements.as_slice()?.to_vec(), heap.as_slice()?.to_vec());
        let values = Heaped { elements, heap };
        py.detach(|| dataset.write_heaped(&cells.0, &values)).map_err(raised)
    }

    /// Reads strings into an array of objects: "bytes", or `str` of "utf-8" or "ascii"; `False`, and the array is as
    /// before, if they are no such text.
    fn read_texts(
        &self,
        py: Python<'_>,
        cells: &PySelection,
        mut array: PyReadwriteArrayDyn<'_, Py<PyAny>>,
        form: &str,
    ) -> PyResult<bool> {
        let (dataset, form) = (self.dataset()?, Form::named(form)?);
        let found = py.detach(|| dataset.read_strings(&cells.0)).map_err(raised)?;
        put_objects(py, array.as_slice_mut()?, &found, form)
    }

    /// Reads strings into a new array of `StringDType`; `False`, and the array is as before, if they are no UTF-8.
    fn read_static_texts(
        &self,
        py: Python<'_>,
        cells: &PySelection,
        array: &Bound<'_, PyUntypedArray>,
    ) -> PyResult<bool> {
        let dataset = self.dataset()?;
        let found = py.detach(|| dataset.read_strings(&cells.0)).map_err(raised)?;
        put_strings(array, &found)
    }

    /// Writes strings of a list.
    fn write_strings(
        &self,
        py: Python<'_>,
        cells: &PySelection,
        items: &Bound<'_, PyList>,
    ) -> PyResult<()> {
        let (dataset, items) = (self.dataset()?, packed(items)?);
        py.detach(|| dataset.write_packed_strings(&cells.0, &items)).map_err(raised)
    }

    /// Writes strings of an array of objects.
    fn write_texts(
        &self,
        py: Python<'_>,
        cells: &PySelection,
        array: PyReadonlyArrayDyn<'_, Py<PyAny>>,
    ) -> PyResult<()> {
        let (dataset, items) = (self.dataset()?, strings_of_objects(py, array.as_slice()?)?);
        py.detach(|| dataset.write_packed_strings(&cells.0, &items)).map_err(raised)
    }

    /// Writes strings of an array of `StringDType`; `False`, and nothing is written, if one is missing.
    fn write_static_texts(
        &self,
        py: Python<'_>,
        cells: &PySelection,
        array: &Bound<'_, PyUntypedArray>,
    ) -> PyResult<bool> {
        let dataset = self.dataset()?;
        let Some(items) = strings_of(array)? else { return Ok(false) };
        py.detach(|| dataset.write_packed_strings(&cells.0, &items)).map_err(raised)?;
        Ok(true)
    }

    /// Changes the size.
    fn resize(&self, py: Python<'_>, shape: Vec<u64>) -> PyResult<()> {
        let dataset = self.dataset()?;
        py.detach(|| dataset.resize(shape)).map_err(raised)
    }

    /// Writes all changes.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        let dataset = self.dataset()?;
        py.detach(|| dataset.flush()).map_err(raised)
    }

    /// Reads again what other programs have written.
    fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        let dataset = self.dataset()?;
        py.detach(|| dataset.refresh()).map_err(raised)
    }

    /// Loads the chunks of cells ahead.
    fn prefetch(&self, py: Python<'_>, cells: &PySelection) -> PyResult<bool> {
        let dataset = self.dataset()?;
        py.detach(|| dataset.prefetch(&cells.0)).map_err(raised)
    }

    /// The bytes that its elements take in the file.
    fn storage_size(&self, py: Python<'_>) -> PyResult<u64> {
        let dataset = self.dataset()?;
        py.detach(|| dataset.storage_size()).map_err(raised)
    }

    /// The number of stored chunks.
    fn chunk_count(&self, py: Python<'_>) -> PyResult<u64> {
        let dataset = self.dataset()?;
        py.detach(|| dataset.flush().and_then(|()| dataset.chunk_count())).map_err(raised)
    }

    /// Every stored chunk.
    fn chunks(&self, py: Python<'_>) -> PyResult<Vec<ChunkFacts>> {
        let dataset = self.dataset()?;
        let found = py.detach(|| {
            dataset.flush()?;
            dataset.chunks()?.list()
        });
        Ok(found.map_err(raised)?.into_iter().map(chunk_facts).collect())
    }

    /// The chunk that begins at a cell.
    fn chunk_info(&self, py: Python<'_>, offset: Vec<u64>) -> PyResult<Option<ChunkFacts>> {
        let dataset = self.dataset()?;
        let found = py.detach(|| {
            dataset.flush()?;
            dataset.chunk_info(offset)
        });
        Ok(found.map_err(raised)?.map(chunk_facts))
    }

    /// A stored chunk, and the mask of skipped filters.
    fn read_chunk<'py>(
        &self,
        py: Python<'py>,
        offset: Vec<u64>,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, u32)>> {
        let dataset = self.dataset()?;
        let found = py.detach(|| dataset.read_chunk(offset)).map_err(raised)?;
        Ok(found.map(|(bytes, mask)| (PyBytes::new(py, &bytes), mask)))
    }

    /// Writes a stored chunk.
    fn write_chunk(
        &self,
        py: Python<'_>,
        offset: Vec<u64>,
        bytes: &[u8],
        mask: u32,
    ) -> PyResult<()> {
        let dataset = self.dataset()?;
        py.detach(|| dataset.write_chunk(offset, bytes, mask)).map_err(raised)
    }

    /// The external files that hold its elements.
    fn external(&self, py: Python<'_>) -> PyResult<Vec<(String, u64, u64)>> {
        let dataset = self.dataset()?;
        let found = py.detach(|| dataset.external_pieces()).map_err(raised)?;
        Ok(found.into_iter().map(|piece| (piece.name, piece.offset, piece.size)).collect())
    }

    /// The parts of a virtual dataset: cells, file, dataset, cells there.
    fn parts(&self) -> PyResult<Vec<(PySelection, String, String, PySelection)>> {
        let dataset = self.dataset()?;
        let part = |part: &pumice::VirtualMapping| {
            let (target, source) = (part.target.clone(), part.source.clone());
            (PySelection(target), part.file.clone(), part.dataset.clone(), PySelection(source))
        };
        Ok(dataset.virtual_mappings().iter().map(part).collect())
    }

    /// The statistics of the dataset in the cache.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        counters(py, &self.dataset()?.cache_stats())
    }

    /// Makes it a scale.
    fn make_scale(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let dataset = self.dataset()?;
        py.detach(|| dataset.make_scale(name)).map_err(raised)
    }

    /// Whether it is a dimension scale.
    fn is_scale(&self, py: Python<'_>) -> PyResult<bool> {
        let dataset = self.dataset()?;
        py.detach(|| dataset.is_scale()).map_err(raised)
    }

    /// Its name as a scale.
    fn scale_name(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let dataset = self.dataset()?;
        py.detach(|| dataset.scale_name()).map_err(raised)
    }

    /// Attaches a dimension scale to an axis.
    fn attach_scale(&self, py: Python<'_>, axis: usize, scale: &Self) -> PyResult<()> {
        let (dataset, scale) = (self.dataset()?, scale.dataset()?);
        py.detach(|| dataset.attach_scale(axis, &scale)).map_err(raised)
    }

    /// Takes a scale from an axis.
    fn detach_scale(&self, py: Python<'_>, axis: usize, scale: &Self) -> PyResult<()> {
        let (dataset, scale) = (self.dataset()?, scale.dataset()?);
        py.detach(|| dataset.detach_scale(axis, &scale)).map_err(raised)
    }

    /// The addresses of the scales of an axis.
    fn scales(&self, py: Python<'_>, axis: usize) -> PyResult<Vec<u64>> {
        let dataset = self.dataset()?;
        let found = py.detach(|| dataset.scales(axis)).map_err(raised)?;
        Ok(found.iter().map(Dataset::address).collect())
    }

    /// The label of an axis.
    fn label(&self, py: Python<'_>, axis: usize) -> PyResult<Option<String>> {
        let dataset = self.dataset()?;
        py.detach(|| dataset.label(axis)).map_err(raised)
    }

    /// Sets the label of an axis.
    fn set_label(&self, py: Python<'_>, axis: usize, label: &str) -> PyResult<()> {
        let dataset = self.dataset()?;
        py.detach(|| dataset.set_label(axis, label)).map_err(raised)
    }

    /// The number of defined cells among `cells`.
    fn count_defined(&self, py: Python<'_>, cells: &PySelection) -> PyResult<u64> {
        let dataset = self.dataset()?;
        py.detach(|| dataset.count_defined(&cells.0)).map_err(raised)
    }

    /// Makes cells undefined.
    fn erase(&self, py: Python<'_>, cells: &PySelection) -> PyResult<()> {
        let dataset = self.dataset()?;
        py.detach(|| dataset.erase(&cells.0)).map_err(raised)
    }

    /// Coordinates and stored values of the defined cells.
    #[expect(clippy::type_complexity)]
    fn read_defined<'py>(
        &self,
        py: Python<'py>,
        cells: &PySelection,
    ) -> PyResult<(Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u8>>)> {
        let dataset = self.dataset()?;
        let found = py.detach(|| dataset.read_defined_bytes(&cells.0)).map_err(raised)?;
        Ok((PyArray1::from_vec(py, found.coordinates), PyArray1::from_vec(py, found.values)))
    }

    /// Coordinates and stored elements of the defined cells, with their heap.
    #[expect(clippy::type_complexity)]
    fn read_defined_heaped<'py>(
        &self,
        py: Python<'py>,
        cells: &PySelection,
    ) -> PyResult<(Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<u8>>)>
    {
        let dataset = self.dataset()?;
        let (places, found) =
            py.detach(|| dataset.read_defined_heaped(&cells.0)).map_err(raised)?;
        let elements = PyArray1::from_vec(py, found.elements);
        Ok((PyArray1::from_vec(py, places), elements, PyArray1::from_vec(py, found.heap)))
    }

    /// Writes values in their stored form to points.
    fn write_at(
        &self,
        py: Python<'_>,
        coordinates: PyReadonlyArray1<'_, u64>,
        values: PyReadonlyArray1<'_, u8>,
    ) -> PyResult<()> {
        let dataset = self.dataset()?;
        let (coordinates, values) = (coordinates.as_slice()?, values.as_slice()?);
        let write = || {
            let points = pumice::Points::list(dataset.shape().len(), coordinates)?;
            dataset.write_bytes_at(&points, values)
        };
        py.detach(write).map_err(raised)
    }
}
