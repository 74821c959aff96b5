//! The native part of the Python package `pumice`: its classes are handles, its functions move bytes.
//!
//! Nothing here knows h5py or numpy's dtypes: the programs' interface is written in Python, in
//! `python/pumice`. Datatypes are trees (`datatype.rs`), elements arrays of bytes, selections
//! objects. Every call that may wait for a file, a lock or a thread lets other threads of Python
//! run meanwhile.

mod attributes;
mod collective;
mod communicator;
mod context;
mod convert;
mod create;
mod dataset;
mod datatype;
mod errors;
mod file;
mod group;
mod handles;
mod kinds;
mod many;
mod parcel;
mod reference;
mod remote;
mod selection;
mod sparse;
mod stream;
mod text;
mod values;

use pyo3::prelude::*;

/// HDF5 for Python: handles and bytes. Use `pumice`.
#[pymodule(gil_used = false)]
fn _pumice(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // The process that loads the module is no child of a fork.
    context::has_forked();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("ConversionError", module.py().get_type::<errors::ConversionError>())?;
    module.add("CollectiveError", module.py().get_type::<collective::CollectiveError>())?;
    module.add("ReadOnlyError", module.py().get_type::<errors::ReadOnlyError>())?;
    module.add_class::<attributes::PyAttributes>()?;
    module.add_class::<collective::PyCollectiveDataset>()?;
    module.add_class::<collective::PyCollectiveFile>()?;
    module.add_class::<context::PyContext>()?;
    module.add_class::<dataset::PyDataset>()?;
    module.add_class::<datatype::PyDatatype>()?;
    module.add_class::<file::PyFile>()?;
    module.add_class::<group::PyGroup>()?;
    module.add_class::<group::PyObjectHandle>()?;
    module.add_class::<reference::PyReference>()?;
    module.add_class::<selection::PySelection>()?;
    module.add_function(wrap_pyfunction!(convert::converted, module)?)?;
    module.add_function(wrap_pyfunction!(file::open_file, module)?)?;
    module.add_function(wrap_pyfunction!(file::open_memory, module)?)?;
    module.add_function(wrap_pyfunction!(file::open_stream, module)?)?;
    module.add_function(wrap_pyfunction!(many::read_many, module)?)?;
    module.add_function(wrap_pyfunction!(many::write_many, module)?)?;
    module.add_function(wrap_pyfunction!(parcel::pack_chunks, module)?)?;
    module.add_function(wrap_pyfunction!(parcel::remove_chunks, module)?)?;
    module.add_function(wrap_pyfunction!(parcel::template, module)?)?;
    module.add_function(wrap_pyfunction!(parcel::unpack_chunks, module)?)?;
    module.add_function(wrap_pyfunction!(selection::simple_index, module)?)?;
    module.add_function(wrap_pyfunction!(sparse::defined_columns, module)?)?;
    module.add_function(wrap_pyfunction!(sparse::erase_points, module)?)?;
    module.add_function(wrap_pyfunction!(sparse::read_columns, module)?)?;
    module.add_function(wrap_pyfunction!(sparse::read_compressed, module)?)?;
    module.add_function(wrap_pyfunction!(sparse::read_many_rows, module)?)?;
    module.add_function(wrap_pyfunction!(sparse::read_points, module)?)?;
    module.add_function(wrap_pyfunction!(sparse::read_rows, module)?)?;
    module.add_function(wrap_pyfunction!(sparse::write_columns, module)?)?;
    module.add_function(wrap_pyfunction!(sparse::write_compressed, module)?)?;
    module.add_function(wrap_pyfunction!(values::heap_places, module)?)?;
    module.add_function(wrap_pyfunction!(values::heap_references, module)?)?;
    module.add_function(wrap_pyfunction!(values::heap_strings, module)?)?;
    module.add_function(wrap_pyfunction!(values::pack_strings, module)?)?;
    Ok(())
}
