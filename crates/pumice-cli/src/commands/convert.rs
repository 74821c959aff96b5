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
use crate::formats::{self, Format, Matrix};
use crate::numbers;
use crate::progress::{Progress, Unit};
use anyhow::{Context, Result, ensure};
use pumice::{Dataset, Datatype, File};
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::Path;

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
    let wanted: Vec<&str> = arguments.object.iter().map(|name| name.trim_matches('/')).collect();
    let found = formats::matrices(format, path, file, &wanted)
        .with_context(|| arguments.input.display().to_string())?;
    for matrix in &found {
        omitted.extend(matrix.parts.iter().map(|(array, _)| *array).chain(matrix.taken));
    }
    Ok(found)
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
        formats::copy_attribute(attribute, &dataset).with_context(told)?;
    }
    for (axis, field, strings) in names {
        dataset.set_attribute(&format!("axis{axis}_{field}"), strings.as_str())?;
    }
    Ok(summary)
}

/// Makes a sparse dataset of a dense one: cells that are zero are undefined.
fn thin(dataset: &Dataset, new: &File) -> Result<Summary> {
    let copy = formats::thin(dataset, new, dataset.path(), |builder| builder)?;
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
