//! AnnData's files (.h5ad) and MuData's (.h5mu): sparse matrices wherever they are, dense ones in
//! the places that are for matrices.
//!
//! Older files have attributes of other names (`h5sparse_format`). Names of observations and
//! variables come along (`labels.rs`); where there are none, a file that is made gets numbers, as
//! AnnData itself gives them. The columns of obs and var stay behind; `pumice convert` keeps them.

use super::container::{self, SCIPY, Types, compressed, numbers, text, write_compressed};
use super::dense::{Blocks, DatasetSource, selection};
use super::labels::{self, Label};
use super::{Form, Format, Found, Input, Output, Probe, bands};
use anyhow::{Result, ensure};
use pumice::{Dataset, Datatype, File, Group, RawAttribute};

/// The matrix before variables were chosen, which has variables of its own.
const RAW: &str = "raw/X";
/// The groups whose datasets are matrices.
const PLACES: [&str; 5] = ["layers", "obsm", "varm", "obsp", "varp"];

pub(crate) struct AnnData;

impl Format for AnnData {
    fn name(&self) -> &'static str {
        "h5ad"
    }

    fn title(&self) -> &'static str {
        "AnnData (HDF5)"
    }

    fn endings(&self) -> &'static [&'static str] {
        &[".h5ad", ".h5mu"]
    }

    fn recognises(&self, probe: &Probe) -> bool {
        let Some(file) = &probe.file else { return false };
        let kind = text(file.attribute("encoding-type"));
        kind.is_some_and(|kind| kind == "anndata" || kind == "MuData")
            || (file.contains("X") && file.contains("obs") && file.contains("var"))
            || container::objects(file).0.iter().any(|group| sparse_axis(group).is_some())
    }

    fn open(&self, input: &Input<'_>) -> Result<Vec<Found>> {
        let file = container::open(input.path)?;
        let (groups, datasets) = container::objects(&file);
        let mut found = Vec::new();
        for group in groups {
            let Some((axis, shape)) = sparse_axis(&group) else { continue };
            let name = group.path().trim_start_matches('/').to_owned();
            let labels = names_of(&file, &name);
            found.push(Found {
                labels,
                group: Some(group.path().to_owned()),
                ..Found::new(name, compressed(&group, SCIPY, shape, axis)?)
            });
        }
        for dataset in datasets.into_iter().filter(is_dense_matrix) {
            let name = dataset.path().trim_start_matches('/').to_owned();
            let labels = names_of(&file, &name);
            found.push(Found { labels, ..Found::new(name, Box::new(DatasetSource::new(dataset))) });
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }

    fn export(&self, output: &Output<'_>) -> Result<()> {
        let datasets = output.datasets;
        let main = datasets.iter().find(|dataset| dataset.path() == "/X");
        let main = main.or(datasets.first()).filter(|dataset| dataset.shape().len() == 2);
        let Some(main) = main else {
            anyhow::bail!("an AnnData file needs a matrix for X; --dataset names it");
        };
        let shape = main.shape();
        let file = File::create(output.path)?;
        mark(&file, "anndata", "0.1.0")?;
        for place in PLACES.iter().chain(&["uns"]) {
            mark(&file.create_group(place)?, "dict", "0.1.0")?;
        }
        let names = |axis| labels::of(output.file, main, axis, &["index", "barcode", "id"]);
        write_names(&file, "obs", shape[0], names(0).as_ref())?;
        write_names(&file, "var", shape[1], names(1).as_ref())?;
        for dataset in datasets {
            let path = match dataset.address() == main.address() {
                true => "X".to_owned(),
                false => place_of(dataset, &shape)?,
            };
            if path == RAW {
                write_raw(&file, dataset, output)?;
            }
            write_matrix(&file, &path, dataset, output)?;
        }
        Ok(file.close()?)
    }

    fn holds_several(&self) -> bool {
        true
    }
}

/// The axis of the lines of a sparse matrix that a group holds, and the matrix's shape.
fn sparse_axis(group: &Group) -> Option<(usize, Vec<u64>)> {
    let kind = text(group.attribute("encoding-type")).or(text(group.attribute("h5sparse_format")));
    let axis = match kind?.as_str() {
        "csr_matrix" | "csr" => 0,
        "csc_matrix" | "csc" => 1,
        _ => return None,
    };
    let shape = numbers(group.attribute("shape")).or(numbers(group.attribute("h5sparse_shape")))?;
    (shape.len() == 2).then_some((axis, shape))
}

fn is_dense_matrix(dataset: &Dataset) -> bool {
    let path = dataset.path().trim_start_matches('/');
    // A modality of a MuData file is an AnnData file of its own.
    let path = match path.strip_prefix("mod/") {
        Some(rest) => rest.split_once('/').map_or("", |(_, path)| path),
        None => path,
    };
    let placed = matches!(path, "X" | "raw/X" | "raw.X")
        || path
            .split_once('/')
            .is_some_and(|(place, name)| PLACES.contains(&place) && !name.contains('/'));
    let number =
        matches!(dataset.datatype(), Datatype::Integer(_) | Datatype::Float(_) | Datatype::Enum(_));
    placed && number && dataset.shape().len() >= 2
}

/// The place of a matrix that is not X.
fn place_of(dataset: &Dataset, main: &[u64]) -> Result<String> {
    let path = dataset.path().trim_start_matches('/');
    let known = path
        .split_once('/')
        .is_some_and(|(place, name)| PLACES.contains(&place) && !name.contains('/'));
    let raw = path == RAW && dataset.shape().len() == 2 && dataset.shape()[0] == main[0];
    if known || raw {
        return Ok(path.to_owned());
    }
    ensure!(
        dataset.shape() == main,
        "{}: only matrices of X's shape, or in layers, obsm, varm, obsp and varp, fit an AnnData file; --dataset names what to export",
        dataset.path()
    );
    Ok(format!("layers/{}", path.replace('/', "_")))
}

fn write_matrix(file: &File, path: &str, dataset: &Dataset, output: &Output<'_>) -> Result<()> {
    if !dataset.is_sparse() || dataset.shape().len() != 2 {
        return write_dense(file, path, dataset, output);
    }
    let group = file.create_group(path)?;
    let (axis, kind) = match output.plain_form()? {
        Some(Form::Csc) => (1, "csc_matrix"),
        _ => (0, "csr_matrix"),
    };
    mark(&group, kind, "0.1.0")?;
    group.set_attribute("shape", dataset.shape().iter().map(|&n| n as i64).collect::<Vec<_>>())?;
    let types = Types::scipy(dataset, bands::count(dataset)?);
    write_compressed(&group, SCIPY, dataset, axis, &types, output)?;
    Ok(())
}

fn write_dense(file: &File, path: &str, dataset: &Dataset, output: &Output<'_>) -> Result<()> {
    let builder = file.new_dataset_of(dataset.datatype().clone()).shape(dataset.shape());
    let target = builder.create(path)?;
    target.set_attribute("encoding-type", "array")?;
    target.set_attribute("encoding-version", "0.2.0")?;
    for (start, count) in Blocks::new(dataset.shape(), dataset.datatype().size()) {
        let block = selection(&start, &count)?;
        let values = dataset.read_bytes(&block)?;
        output.progress.add(values.len() as u64);
        target.write_bytes(&block, &values)?;
    }
    Ok(())
}

/// Writes the variables' names beside `raw/X`.
fn write_raw(file: &File, dataset: &Dataset, output: &Output<'_>) -> Result<()> {
    mark(&file.create_group("raw")?, "raw", "0.1.0")?;
    mark(&file.create_group("raw/varm")?, "dict", "0.1.0")?;
    let names = labels::of(output.file, dataset, 1, &["index", "barcode", "id"]);
    write_names(file, "raw/var", dataset.shape()[1], names.as_ref())
}

/// A table without columns whose rows have these names, or numbers.
fn write_names(file: &File, name: &str, count: u64, names: Option<&Dataset>) -> Result<()> {
    let group = file.create_group(name)?;
    mark(&group, "dataframe", "0.2.0")?;
    group.set_attribute("_index", "_index")?;
    let none = RawAttribute::new(Datatype::f64_le(), &[0], Vec::new())?;
    group.set_attribute("column-order", none)?;
    let index = group.new_strings().shape([count]).create("_index")?;
    index.set_attribute("encoding-type", "string-array")?;
    index.set_attribute("encoding-version", "0.2.0")?;
    labels::for_each_batch(count, names, "", |first, names| {
        Ok(index.write_strings(first..first + names.len() as u64, names)?)
    })
}

/// The names of the rows and columns of the matrix at a path.
fn names_of(file: &File, path: &str) -> Vec<Label> {
    // A modality of a MuData file is an AnnData file of its own.
    let (prefix, path) = match path.strip_prefix("mod/").and_then(|rest| rest.split_once('/')) {
        Some((modality, path)) => (format!("mod/{modality}/"), path),
        None => (String::new(), path),
    };
    let axes: [Option<&str>; 2] = match path.split('/').next().unwrap_or("") {
        "X" | "layers" => [Some("obs"), Some("var")],
        "raw" => [Some("obs"), Some("raw/var")],
        "obsm" => [Some("obs"), None],
        "obsp" => [Some("obs"), Some("obs")],
        "varm" => [Some("var"), None],
        "varp" => [Some("var"), Some("var")],
        _ => [None, None],
    };
    let mut labels = Vec::new();
    for (axis, table) in axes.into_iter().enumerate() {
        let Some(table) = table else { continue };
        if let Ok(group) = file.group(&format!("{prefix}{table}")) {
            let index = text(group.attribute("_index")).unwrap_or_else(|| "_index".to_owned());
            labels.extend(Label::find(&group, &index, axis, "index"));
        }
    }
    labels
}

fn mark(group: &Group, kind: &str, version: &str) -> Result<()> {
    group.set_attribute("encoding-type", kind)?;
    Ok(group.set_attribute("encoding-version", version)?)
}
