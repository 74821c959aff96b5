//! The targets of references: for every element of a dataset, the path of the object and the
//! elements of a region, as JSON.

use anyhow::Result;
use pumice::{File, Node, Reference};
use serde_json::{Value, json};
use std::path::Path;

/// Writes a list with one entry for each element of the dataset at `path`: null, or the path, the
/// kind and, for a region, its cells (counted in row-major
/// order) and their values as 64-bit floats.
pub(crate) fn run(file: &Path, path: &str, out: &Path) -> Result<()> {
    let file = File::open(file)?;
    let references = file.dataset(path)?.read_references(..)?;
    let entries: Vec<Value> = references
        .iter()
        .map(|reference| reference.as_ref().map_or(Ok(Value::Null), |found| entry(&file, found)))
        .collect::<Result<_>>()?;
    std::fs::write(out, serde_json::to_vec(&entries)?)?;
    Ok(())
}

fn entry(file: &File, reference: &Reference) -> Result<Value> {
    let node = file.dereference(reference)?;
    let kind = match node {
        Node::Group(_) => "group",
        Node::Dataset(_) => "dataset",
        Node::Datatype(_) => "datatype",
    };
    let mut entry = json!({ "path": file.path_of(node.address()), "kind": kind });
    if reference.is_region() {
        let (dataset, selection) = file.dereference_region(reference)?;
        let shape = dataset.shape();
        let runs = selection.runs(&shape);
        let cells: Vec<u64> = runs.flat_map(|run| run.start..run.start + run.len).collect();
        entry["cells"] = json!(cells);
        entry["values"] = json!(dataset.read::<f64>(selection)?);
    }
    Ok(entry)
}
