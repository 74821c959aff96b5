//! References to objects and regions.

use pumice::Reference;
use pyo3::prelude::*;

/// A reference as a file has it.
#[pyclass(frozen, name = "Reference", module = "pumice._pumice")]
#[derive(Clone)]
pub(crate) struct PyReference(pub(crate) Reference);

#[pymethods]
impl PyReference {
    /// The address of the object's header.
    #[getter]
    fn address(&self) -> u64 {
        self.0.address()
    }

    /// Whether it refers to elements of a dataset.
    #[getter]
    fn is_region(&self) -> bool {
        self.0.is_region()
    }

    /// The attribute that it means, if it means one.
    #[getter]
    fn attribute(&self) -> Option<&str> {
        self.0.attribute()
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    fn __hash__(&self) -> u64 {
        self.0.address()
    }
}
