//! `pumice-interop read`: everything in a file, one JSON object a line.

use super::{datatype, packed};
use anyhow::{Context, Result};
use pumice::{Attribute, Dataset, Extent, File, Group, Heaped, MemberKind, Select};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) fn run(file: &Path, out: &Path) -> Result<()> {
    if !file.is_dir() {
        return one(file, out);
    }
    // Every file of a folder, each into a folder of its own.
    for entry in std::fs::read_dir(file)? {
        let path = entry?.path();
        let stem = path.file_stem().context("no file name")?;
        one(&path, &out.join(stem)).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn one(file: &Path, out: &Path) -> Result<()> {
    let file = File::open(file)?;
    std::fs::create_dir_all(out)?;
    let manifest = std::fs::File::create(out.join("manifest.jsonl"))?;
    let mut describer = Describer { out: out.into(), manifest, files: 0, depth: 0 };
    describer.group(&file)
}

/// Writes the manifest and the data files that it names.
struct Describer {
    out: PathBuf,
    manifest: std::fs::File,
    files: usize,
    depth: usize,
}

impl Describer {
    fn group(&mut self, group: &Group) -> Result<()> {
        let members = match group.members() {
            Ok(members) => members,
            Err(error) => return self.failed(group.path(), &error.into()),
        };
        let attributes = self.attributes(group.attributes())?;
        self.line(&json!({"path": group.path(), "kind": "group", "attributes": attributes}))?;
        // Hard links can form circles; no test file is as deep as this.
        if self.depth > 50 {
            return Ok(());
        }
        self.depth += 1;
        for member in members {
            let path = format!("{}/{}", group.path().trim_end_matches('/'), member.name);
            let done = match member.kind {
                MemberKind::Group => {
                    group.group(&member.name).map_err(Into::into).and_then(|g| self.group(&g))
                }
                MemberKind::Dataset => self.dataset(group, &member.name),
                _ => Ok(()),
            };
            if let Err(error) = done {
                self.failed(&path, &error)?;
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn failed(&mut self, path: &str, error: &anyhow::Error) -> Result<()> {
        self.line(&json!({"path": path, "kind": "error", "message": format!("{error:#}")}))
    }

    fn dataset(&mut self, group: &Group, name: &str) -> Result<()> {
        let dataset = group.dataset(name)?;
        let shape = shape(&dataset.extent()?);
        let mut line = json!({
            "path": dataset.path(),
            "kind": if dataset.is_sparse() { "sparse" } else { "dense" },
            "dtype": datatype::describe(dataset.datatype())?,
            "shape": shape,
            "maxshape": if shape.is_null() { Value::Null } else { json!(dataset.max_shape()) },
            "chunks": dataset.chunk(),
            "fill": fill(&dataset)?,
            "attributes": self.attributes(dataset.attributes())?,
        });
        if dataset.is_sparse() {
            let (coords, values) = defined(&dataset)?;
            line["coords"] = self.data(&coords)?;
            line["values"] = self.data(&values)?;
        } else if !shape.is_null() {
            let heaped = dataset.read_heaped(..)?;
            line["data"] = self.data(&packed::pack(dataset.datatype(), &heaped)?)?;
        }
        self.line(&line)
    }

    fn attributes(&mut self, attributes: pumice::Result<Vec<Attribute>>) -> Result<Vec<Value>> {
        let attributes = match attributes {
            Ok(attributes) => attributes,
            Err(error) => return Ok(vec![json!({"name": "", "error": error.to_string()})]),
        };
        let describe = |attribute: Attribute| -> Result<Value> {
            let shape = shape(attribute.extent());
            Ok(match datatype::describe(attribute.datatype()) {
                Ok(dtype) => json!({
                    "name": attribute.name(), "dtype": dtype, "shape": shape,
                    "data": self.data(&packed::pack(attribute.datatype(), &attribute.read_heaped()?)?)?,
                }),
                Err(error) => json!({"name": attribute.name(), "error": error.to_string()}),
            })
        };
        attributes.into_iter().map(describe).collect()
    }

    /// Writes a data file and gives its name.
    fn data(&mut self, bytes: &[u8]) -> Result<Value> {
        self.files += 1;
        let name = format!("{}.bin", self.files);
        std::fs::write(self.out.join(&name), bytes)?;
        Ok(json!(name))
    }

    fn line(&mut self, value: &Value) -> Result<()> {
        writeln!(self.manifest, "{value}").context("manifest")
    }
}

/// Coordinates and values of all defined cells in row-major order, as bytes.
fn defined(dataset: &Dataset) -> Result<(Vec<u8>, Vec<u8>)> {
    let (rank, size) = (dataset.shape().len(), dataset.datatype().size());
    let (coordinates, found) = dataset.read_defined_heaped((..).select(&[])?)?;
    let mut order: Vec<usize> = (0..found.elements.len() / size).collect();
    order.sort_by_key(|&cell| &coordinates[cell * rank..(cell + 1) * rank]);
    let (mut coords, mut values) = (Vec::new(), Vec::new());
    for cell in order {
        for coordinate in &coordinates[cell * rank..(cell + 1) * rank] {
            coords.extend_from_slice(&coordinate.to_le_bytes());
        }
        values.extend_from_slice(&found.elements[cell * size..(cell + 1) * size]);
    }
    let values = Heaped { elements: values, heap: found.heap };
    Ok((coords, packed::pack(dataset.datatype(), &values)?))
}

fn shape(extent: &Extent) -> Value {
    match extent {
        Extent::Null => Value::Null,
        other => json!(other.dims().to_vec()),
    }
}

/// The fill value, packed where it has variable-length parts.
fn fill(dataset: &Dataset) -> Result<Option<String>> {
    let pack = |fill| packed::pack(dataset.datatype(), &fill).map(|bytes| hex(&bytes));
    dataset.fill_heaped()?.map(pack).transpose()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
