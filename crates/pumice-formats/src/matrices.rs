//! Sparse matrices that are groups of arrays in files of HDF5: which arrays they have, and what becomes of them.
//!
//! If the group has nothing else, a dataset takes its place and its attributes; otherwise it takes the place of the array
//! of values.

use crate::{Format, Found, Input, Label, Source};
use anyhow::{Result, bail, ensure};
use pumice::{
    Attribute, Dataset, DatasetBuilder, Datatype, File, Group, Keep, RawAttribute, VariableLength,
};
use std::path::Path;

/// A sparse matrix and its parts.
pub struct Matrix {
    /// The path of the dataset that takes its place.
    pub path: String,
    /// Its cells.
    pub source: Box<dyn Source>,
    /// What attributes the dataset gets.
    pub attributes: Vec<Attribute>,
    /// The path of the group.
    pub group: String,
    /// The names of its arrays in the group.
    pub arrays: Vec<String>,
    /// The addresses of its arrays, each with that of their group.
    pub parts: Vec<(u64, u64)>,
    /// The address of the group, if the dataset replaces it.
    pub taken: Option<u64>,
    /// Names of its lines, by axis and field.
    pub names: Vec<(usize, &'static str, String)>,
}

/// The sparse matrices of a file, or those that are at the `wanted` paths or below them.
pub fn matrices(
    format: &dyn Format,
    path: &Path,
    file: &File,
    wanted: &[&str],
) -> Result<Vec<Matrix>> {
    let found = format.open(&Input { path, shape: None, one_based: false })?;
    for name in wanted {
        ensure!(
            found.iter().any(|found| is_at(&found.name, name) && found.group.is_some()),
            "it has no sparse matrix {name}"
        );
    }
    let mut matrices = Vec::new();
    for found in found {
        let chosen = wanted.is_empty() || wanted.iter().any(|name| is_at(&found.name, name));
        if let Some(group) = found.group.clone().filter(|_| chosen) {
            matrices.push(matrix(found, format, &file.group(&group)?)?);
        }
    }
    Ok(matrices)
}

/// Whether an array is the one of a path, or one below it.
pub fn is_at(array: &str, path: &str) -> bool {
    array.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn matrix(found: Found, format: &dyn Format, group: &Group) -> Result<Matrix> {
    let (known, values) = (format.arrays(), format.values());
    let members = group.members()?;
    let is_array = |name: &str| known.contains(&name);
    let alone = group.path() != "/" && members.iter().all(|member| is_array(&member.name));
    let (mut arrays, mut parts) = (Vec::new(), Vec::new());
    for member in members.iter().filter(|member| is_array(&member.name)) {
        parts.push((group.dataset(&member.name)?.address(), group.address()));
        arrays.push(member.name.clone());
    }
    let path = match (alone, group.path()) {
        (true, path) => path.to_owned(),
        // Nothing else can have the name of the values, which go away.
        (false, path) => format!("{}/{values}", path.trim_end_matches('/')),
    };
    let attributes = match alone {
        true => group.attributes()?,
        false => group.dataset(values).map_or(Ok(Vec::new()), |values| values.attributes())?,
    };
    let named = |label: &Label| (label.axis, label.field, label.strings.path().to_owned());
    let names = found.labels.iter().map(named).collect();
    let (taken, group) = (alone.then(|| group.address()), group.path().to_owned());
    Ok(Matrix { path, source: found.source, attributes, group, arrays, parts, taken, names })
}

/// Gives a dataset an attribute of another object.
pub fn copy_attribute(attribute: &Attribute, dataset: &Dataset) -> Result<()> {
    let datatype = attribute.datatype().clone();
    if datatype.refers_to_objects() {
        bail!("references to objects stay with the object that has them");
    }
    if attribute.extent().is_null() {
        return Ok(dataset.set_attribute(attribute.name(), RawAttribute::null(datatype))?);
    }
    let values = attribute.read_heaped()?;
    let value = VariableLength::heaped(datatype, attribute.extent().dims(), values)?;
    Ok(dataset.set_attribute(attribute.name(), value)?)
}

/// Makes a sparse dataset of a dense one of numbers: cells that are zero are undefined.
pub fn thin(
    dataset: &Dataset,
    new: &Group,
    path: &str,
    describe: impl FnOnce(DatasetBuilder) -> DatasetBuilder,
) -> Result<Dataset> {
    let number = matches!(
        dataset.datatype(),
        Datatype::Integer(_) | Datatype::Float(_) | Datatype::Complex(_) | Datatype::Enum(_)
    );
    ensure!(
        number && !dataset.shape().is_empty() && !dataset.is_sparse(),
        "{}: it is no dense array of numbers",
        dataset.path()
    );
    let zero = vec![0; dataset.datatype().size()];
    let keep = Keep::Except(dataset.datatype().clone(), zero);
    Ok(dataset.copy_as(describe(new.new_dataset_like(dataset).sparse()), path, &keep)?)
}
