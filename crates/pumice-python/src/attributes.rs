//! Attributes of groups, datasets and committed datatypes.

use crate::datatype::PyDatatype;
use crate::errors::{invalid, raised};
use crate::group::{Object, PyObjectHandle};
use numpy::ndarray::arr0;
use numpy::{PyArray0, PyArray1};
use pumice::{
    AttributeValue, CommittedDatatype, Extent, H5Type, Heaped, RawAttribute, Result, VariableLength,
};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyInt;

/// A stored attribute: datatype, shape (`None` without a value), elements, their heap, and the
/// address of the committed datatype if it has one.
type Stored<'py> =
    (PyDatatype, Option<Vec<u64>>, Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<u8>>, Option<u64>);

/// Something that attributes can be given to.
trait Holder {
    fn names(&self) -> Result<Vec<String>>;
    fn has(&self, name: &str) -> Result<bool>;
    fn find(&self, name: &str) -> Result<pumice::Attribute>;
    fn set(&self, name: &str, value: impl AttributeValue) -> Result<()>;
    fn rename(&self, name: &str, new_name: &str) -> Result<()>;
    fn remove(&self, name: &str) -> Result<()>;
}

macro_rules! each {
    ($object:expr, $it:ident => $act:expr) => {
        match $object {
            Object::Group($it) => $act,
            Object::Dataset($it) => $act,
            Object::Datatype($it) => $act,
        }
    };
}

impl Holder for Object {
    fn names(&self) -> Result<Vec<String>> {
        let mut names = self.node().attribute_names()?;
        if let Some(first) = names.first()
            && self.find(first)?.creation_order().is_none()
        {
            names.sort_unstable();
        }
        Ok(names)
    }

    fn has(&self, name: &str) -> Result<bool> {
        each!(self, it => it.has_attribute(name))
    }

    fn find(&self, name: &str) -> Result<pumice::Attribute> {
        each!(self, it => it.attribute(name))
    }

    fn set(&self, name: &str, value: impl AttributeValue) -> Result<()> {
        each!(self, it => it.set_attribute(name, value))
    }

    fn rename(&self, name: &str, new_name: &str) -> Result<()> {
        each!(self, it => it.rename_attribute(name, new_name))
    }

    fn remove(&self, name: &str) -> Result<()> {
        each!(self, it => it.remove_attribute(name))
    }
}

/// The attributes of an object.
#[pyclass(frozen, name = "Attributes", module = "pumice._pumice")]
pub(crate) struct PyAttributes(pub(crate) PyObjectHandle);

#[pymethods]
impl PyAttributes {
    /// The names, in the order in which they were made if the object keeps that.
    fn names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let object = self.0.object()?;
        py.detach(|| object.names()).map_err(raised)
    }

    /// Whether there is an attribute with this name.
    fn has(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        let object = self.0.object()?;
        py.detach(|| object.has(name)).map_err(raised)
    }

    /// The stored attribute.
    fn read<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Stored<'py>> {
        let object = self.0.object()?;
        let read = || -> Result<_> {
            let found = object.find(name)?;
            let heaped = found.read_heaped()?;
            Ok((found, heaped))
        };
        let (found, heaped) = py.detach(read).map_err(raised)?;
        let shape = match found.extent() {
            Extent::Null => None,
            extent => Some(extent.dims().to_vec()),
        };
        let elements = PyArray1::from_vec(py, heaped.elements);
        let heap = PyArray1::from_vec(py, heaped.heap);
        let datatype = PyDatatype(found.datatype().clone());
        Ok((datatype, shape, elements, heap, found.committed_datatype()))
    }

    /// A number as a numpy scalar if the attribute is one, otherwise the result of `read`.
    fn get<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let object = self.0.object()?;
        let found = py.detach(|| object.find(name)).map_err(raised)?;
        if !found.extent().is_null()
            && found.extent().dims().is_empty()
            && let Some(number) = number(py, &found)?
        {
            return Ok(number);
        }
        self.read(py, name)?.into_bound_py_any(py)
    }

    /// Makes an attribute of an integer or a floating-point number, or replaces it.
    fn write_number(&self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let object = self.0.object()?;
        if value.is_instance_of::<PyInt>() {
            let value: i64 = value.extract()?;
            return py.detach(|| object.set(name, value)).map_err(raised);
        }
        let value: f64 = value.extract()?;
        py.detach(|| object.set(name, value)).map_err(raised)
    }

    /// The datatype of an attribute, and its shape if it has a value.
    fn describe(&self, py: Python<'_>, name: &str) -> PyResult<(PyDatatype, Option<Vec<u64>>)> {
        let object = self.0.object()?;
        let found = py.detach(|| object.find(name)).map_err(raised)?;
        let shape = (!found.extent().is_null()).then(|| found.extent().dims().to_vec());
        Ok((PyDatatype(found.datatype().clone()), shape))
    }

    /// Creates or replaces an attribute: without a shape it has no value, with a heap its elements
    /// refer to that.
    #[pyo3(signature = (name, datatype, shape, elements, heap=None, committed=None))]
    #[expect(clippy::too_many_arguments)]
    fn write(
        &self,
        py: Python<'_>,
        name: &str,
        datatype: &PyDatatype,
        shape: Option<Vec<u64>>,
        elements: Vec<u8>,
        heap: Option<Vec<u8>>,
        committed: Option<&PyObjectHandle>,
    ) -> PyResult<()> {
        let object = self.0.object()?;
        let committed = match committed.map(PyObjectHandle::object).transpose()? {
            None => None,
            Some(Object::Datatype(committed)) => Some(committed),
            Some(_) => return Err(invalid("only a committed datatype can be an attribute's type")),
        };
        let datatype = datatype.0.clone();
        let write = || -> Result<()> {
            let Some(shape) = shape else {
                return put(&object, name, RawAttribute::null(datatype), committed);
            };
            match heap {
                None => {
                    put(&object, name, RawAttribute::new(datatype, &shape, elements)?, committed)
                }
                Some(heap) => {
                    let values = Heaped { elements, heap };
                    let value = VariableLength::heaped(datatype, &shape, values)?;
                    put(&object, name, value, committed)
                }
            }
        };
        py.detach(write).map_err(raised)
    }

    /// Renames an attribute.
    fn rename(&self, py: Python<'_>, name: &str, new_name: &str) -> PyResult<()> {
        let object = self.0.object()?;
        py.detach(|| object.rename(name, new_name)).map_err(raised)
    }

    /// Takes an attribute away.
    fn remove(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let object = self.0.object()?;
        py.detach(|| object.remove(name)).map_err(raised)
    }
}

/// The value of a scalar attribute, if it is a number that numpy has.
fn number<'py>(py: Python<'py>, found: &pumice::Attribute) -> PyResult<Option<Bound<'py, PyAny>>> {
    macro_rules! each_type {
        ($($type:ty)*) => {$(
            if *found.datatype() == <$type as H5Type>::datatype() {
                let value: $type = py.detach(|| found.read_scalar()).map_err(raised)?;
                return Ok(Some(PyArray0::from_owned_array(py, arr0(value)).get_item(())?));
            }
        )*};
    }
    each_type!(i64 f64 i32 f32 u8 u16 u32 u64 i8 i16);
    Ok(None)
}

fn put(
    object: &Object,
    name: &str,
    value: impl AttributeValue,
    committed: Option<CommittedDatatype>,
) -> Result<()> {
    match committed {
        Some(committed) => object.set(name, committed.value(value)),
        None => object.set(name, value),
    }
}
