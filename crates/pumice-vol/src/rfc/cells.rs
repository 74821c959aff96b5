//! Which elements are defined, and making them undefined again.

use super::{dataset, library, run};
use crate::abi::*;
use crate::fault::{Result, answer};
use crate::library::Api;
use crate::space;
use pumice::Selection;

/// The selection of a file dataspace.
fn selected(api: &Api, space: Hid) -> Result<Selection> {
    match space {
        SPACE_ALL => Ok(Selection::all()),
        space => space::selection(api, space),
    }
}

/// `H5Dget_defined`: a new dataspace with the defined ones of the selected elements selected.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn H5Dget_defined(dataset_id: Hid, file_space: Hid, _dxpl: Hid) -> Hid {
    let Some(api) = library() else { return INVALID };
    answer(api, c"H5Dget_defined", INVALID, || {
        let (handle, dataset) = dataset(api, dataset_id)?;
        let extent = handle.dataset()?.extent()?;
        let selection = selected(api, file_space)?;
        let made = space::made(api, &extent)?;
        let found = match dataset.is_sparse() {
            true => dataset.defined(selection)?,
            // Of others, all are.
            false => selection,
        };
        space::select(api, made, &found, extent.dims())?;
        Ok(made)
    })
}

/// `H5Derase`.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn H5Derase(dataset_id: Hid, file_space: Hid, _dxpl: Hid) -> Herr {
    run(c"H5Derase", |api| {
        let (handle, dataset) = dataset(api, dataset_id)?;
        handle.changing()?;
        Ok(dataset.erase(selected(api, file_space)?)?)
    })
}
