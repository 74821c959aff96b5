//! `pumice convert`: a file of another program anew, its sparse matrices as sparse datasets, all else as it was.
//!
//! In such files a sparse matrix is a group of arrays. If the group has nothing else, the dataset
//! takes its place and its attributes; otherwise it takes the place of the array of values.
//! Everything that is no part of a matrix is copied as it is stored. The formats of `formats/` that
//! are HDF5 find the matrices.

mod links;

use super::import::{self, Asked, Summary};
use super::{Outcome, output, repack};
use crate::cli::{Convert, Duplicates};
use crate::driver;
use crate::formats::{self, Format, Found, Input, Source};
use crate::numbers;
use crate::progress::{Progress, Unit};
use anyhow::{Context, Result, bail, ensure};
use pumice::{Attribute, Dataset, Datatype, File, Group, Keep, RawAttribute, VariableLength};
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::Path;

/// A matrix and its parts.
struct Matrix {
    /// The path of the dataset.
    path: String,
    source: Box<dyn Source>,
    /// The object whose attributes the dataset gets.
    attributes: Vec<Attribute>,
    /// The addresses of its arrays, each with that of their group.
    parts: Vec<(u64, u64)>,
    /// The address of the group that the dataset replaces.
    taken: Option<u64>,
    /// Names of its lines, by axis and field.
    names: Vec<(usize, &'static str, String)>,
}

pub(super) fn run(arguments: &Convert) -> Result<Outcome> {
    let unpacked = import::unpacked_container(&arguments.input)?;
    let path = unpacked.path();
    let file = driver::open(path).with_context(|| arguments.input.display().to_string())?;
    let format = match &arguments.from {
        Some(name) => Some(formats::named(name)?),
        None => formats::recognised(path).ok(),
    };
    let target = import::target(&arguments.storing, &arguments.input)?;
    let mut omitted = HashSet::new();
    let matrices = match format {
        Some(format) => matrices(arguments, format, path, &file, &mut omitted)?,
        None => Vec::new(),
    };
    let dense = dense(arguments, &file, &mut omitted)?;
    ensure!(
        !matrices.is_empty() || !dense.is_empty(),
        "{}: no sparse matrix that is known here; --dense makes datasets sparse",
        arguments.input.display()
    );
    let taken = matrices.iter().filter_map(|matrix| Some((matrix.taken?, matrix.path.clone())));
    let parts: HashMap<u64, u64> =
        matrices.iter().flat_map(|matrix| matrix.parts.iter().copied()).collect();
    let thinned = dense.iter().map(|dataset| (dataset.address(), dataset.path().to_owned()));
    let places: HashMap<u64, String> = taken.chain(thinned).collect();
    let new = repack::create_like(&file, path, &target.partial)?;
    let mut failure = None;
    file.salvage(
        &new,
        |address| omitted.contains(&address),
        |path, error| {
            failure.get_or_insert_with(|| anyhow::Error::new(error).context(path.to_owned()));
        },
    )?;
    if let Some(failure) = failure {
        return Err(
            failure.context("not everything can be kept; `pumice check --repair` copies the rest")
        );
    }
    let total = matrices.iter().map(|matrix| matrix.source.array().entries).sum();
    let progress = Progress::new(total, Unit::Entries);
    let mut summaries = Vec::new();
    let temporary = target.partial.with_extension("sorted");
    for matrix in matrices {
        // There are matrices only if there is a format.
        let Some(format) = format else { break };
        summaries.push(make(arguments, format, matrix, &new, &temporary, &progress)?);
    }
    for dataset in &dense {
        summaries.push(thin(dataset, &new)?);
    }
    let left = links::make(&file, &new, &places, &parts)?;
    new.close()?;
    repack::copy_user_block(&file, path, &target.partial)?;
    drop(progress);
    let bytes = target.length()?;
    target.publish()?;
    tell(&summaries, bytes, &left)
}

/// The requested sparse matrices. Their parts are not copied.
fn matrices(
    arguments: &Convert,
    format: &dyn Format,
    path: &Path,
    file: &File,
    omitted: &mut HashSet<u64>,
) -> Result<Vec<Matrix>> {
    let input = Input { path, shape: None, one_based: false };
    let found = format.open(&input)?;
    let wanted: Vec<&str> = arguments.object.iter().map(|name| name.trim_matches('/')).collect();
    for name in &wanted {
        ensure!(
            found.iter().any(|found| import::is_at(&found.name, name) && found.group.is_some()),
            "{}: it has no sparse matrix {name}",
            arguments.input.display()
        );
    }
    let mut matrices = Vec::new();
    for found in found {
        let chosen =
            wanted.is_empty() || wanted.iter().any(|name| import::is_at(&found.name, name));
        if let Some(group) = found.group.clone().filter(|_| chosen) {
            matrices.push(matrix(found, format, &file.group(&group)?, omitted)?);
        }
    }
    Ok(matrices)
}

fn matrix(
    found: Found,
    format: &dyn Format,
    group: &Group,
    omitted: &mut HashSet<u64>,
) -> Result<Matrix> {
    let (arrays, values) = (format.arrays(), format.values());
    let members = group.members()?;
    let is_array = |name: &str| arrays.contains(&name);
    let alone = group.path() != "/" && members.iter().all(|member| is_array(&member.name));
    let mut parts = Vec::new();
    for member in members.iter().filter(|member| is_array(&member.name)) {
        parts.push((group.dataset(&member.name)?.address(), group.address()));
    }
    omitted.extend(parts.iter().map(|(array, _)| *array));
    let path = match (alone, group.path()) {
        (true, path) => path.to_owned(),
        // Nothing else can have the name of the values, which go away.
        (false, path) => format!("{}/{values}", path.trim_end_matches('/')),
    };
    let attributes = match alone {
        true => {
            omitted.insert(group.address());
            group.attributes()?
        }
        false => group.dataset(values).map_or(Ok(Vec::new()), |values| values.attributes())?,
    };
    let named = |label: &formats::Label| (label.axis, label.field, label.strings.path().to_owned());
    let names = found.labels.iter().map(named).collect();
    let taken = alone.then(|| group.address());
    Ok(Matrix { path, source: found.source, attributes, parts, taken, names })
}

/// The dense datasets that shall be sparse.
fn dense(arguments: &Convert, file: &File, omitted: &mut HashSet<u64>) -> Result<Vec<Dataset>> {
    let mut found = Vec::new();
    for path in &arguments.dense {
        let dataset = file.dataset(path)?;
        let number = matches!(
            dataset.datatype(),
            Datatype::Integer(_) | Datatype::Float(_) | Datatype::Complex(_) | Datatype::Enum(_)
        );
        ensure!(
            number && !dataset.shape().is_empty() && !dataset.is_sparse(),
            "{path}: it is no dense array of numbers"
        );
        omitted.insert(dataset.address());
        found.push(dataset);
    }
    Ok(found)
}

/// Makes a matrix in the new file.
fn make(
    arguments: &Convert,
    format: &dyn Format,
    matrix: Matrix,
    new: &File,
    temporary: &Path,
    progress: &Progress,
) -> Result<Summary> {
    let Matrix { path, source, attributes, names, .. } = matrix;
    let asked =
        Asked { input: &arguments.input, storing: &arguments.storing, duplicates: Duplicates::Sum };
    let summary = import::copy(&asked, format, source, new, &path, temporary, progress)?;
    let dataset = new.dataset(&path)?;
    for attribute in &attributes {
        let told = || format!("{path}@{}", attribute.name());
        copy_attribute(attribute, &dataset).with_context(told)?;
    }
    for (axis, field, strings) in names {
        dataset.set_attribute(&format!("axis{axis}_{field}"), strings.as_str())?;
    }
    Ok(summary)
}

fn copy_attribute(attribute: &Attribute, dataset: &Dataset) -> Result<()> {
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

/// Makes a sparse dataset of a dense one: cells that are zero are undefined.
fn thin(dataset: &Dataset, new: &File) -> Result<Summary> {
    let zero = vec![0; dataset.datatype().size()];
    let keep = Keep::Except(dataset.datatype().clone(), zero);
    let builder = new.new_dataset_like(dataset).sparse();
    let copy = dataset.copy_as(builder, dataset.path(), &keep)?;
    let entries = copy.count_defined(..)?;
    Ok(Summary { path: dataset.path().to_owned(), shape: dataset.shape(), entries })
}

fn tell(summaries: &[Summary], bytes: u64, left: &[String]) -> Result<Outcome> {
    let mut out = output();
    for summary in summaries {
        summary.tell(&mut out)?;
        writeln!(out)?;
    }
    for left in left {
        writeln!(out, "left out: {left}")?;
    }
    let count = summaries.len();
    let matrices = if count == 1 { "1 matrix".to_owned() } else { format!("{count} matrices") };
    let rest = if left.is_empty() { "all else" } else { "all other" };
    writeln!(out, "{matrices} sparse, {rest} as it was, {} bytes", numbers::grouped(bytes))?;
    out.flush()?;
    Ok(Outcome::Complete)
}
