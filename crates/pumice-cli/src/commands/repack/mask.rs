//! Masks of defined cells, for dense datasets that were sparse.
//!
//! The mask of `/a/b` is `/a/b.defined`: bytes of the same shape, 1 where a cell is defined, with an
//! attribute that names the dataset.

use super::plan::Planner;
use super::{Kind, Table};
use crate::cells::{self, Hyperslab};
use anyhow::Result;
use pumice::{Dataset, File};

/// The attribute that makes a dataset a mask.
const ATTRIBUTE: &str = "mask_of_defined_cells_of";

/// The path of a mask.
fn path_of(path: &str) -> String {
    format!("{path}.defined")
}

/// The mask of the dataset at a path, if there is one.
pub(super) fn of(file: &File, path: &str) -> Option<Dataset> {
    let mask = file.dataset(&path_of(path)).ok()?;
    let named = mask.attribute(ATTRIBUTE).and_then(|attribute| attribute.read_string()).ok()?;
    let shape = file.dataset(path).ok()?.shape();
    (named.trim_end_matches('\0') == path && mask.shape() == shape).then_some(mask)
}

/// Whether a dataset is a mask.
pub(super) fn is_mask(dataset: &Dataset) -> bool {
    dataset.attribute(ATTRIBUTE).is_ok()
}

/// Writes masks of datasets that became dense, and takes out those of datasets that became sparse.
pub(super) fn finish(
    planner: &Planner<'_>,
    input: &File,
    file: &File,
    table: &Table,
) -> Result<()> {
    if !planner.options.keep_defined {
        return Ok(());
    }
    for path in table.paths(Kind::Dataset) {
        let path = path.as_str();
        let old = input.dataset(path)?;
        if is_mask(&old) {
            continue;
        }
        let new = file.dataset(path)?;
        match (old.is_sparse(), new.is_sparse()) {
            (true, false) => write(&old, file)?,
            (false, true) if of(input, path).is_some() => file.unlink(&path_of(path))?,
            _ => {}
        }
    }
    Ok(())
}

fn write(sparse: &Dataset, file: &File) -> Result<()> {
    let builder = file.new_dataset::<u8>().shape(sparse.shape()).deflate(1);
    let mask = builder.create(&path_of(sparse.path()))?;
    mask.set_attribute(ATTRIBUTE, sparse.path())?;
    cells::for_each_band(sparse, &Hyperslab::whole(&sparse.shape()), |band| {
        let defined = sparse.defined(band)?;
        let count = defined.count(&sparse.shape()) as usize;
        Ok(mask.write(&defined, &vec![1u8; count])?)
    })
}
