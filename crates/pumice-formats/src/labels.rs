//! Names of rows and columns, beside the matrix that they belong to.
//!
//! Imported names become datasets of strings in the group `names`; an attribute of the matrix, such
//! as `axis0_index`, has the path of each. An export looks for them there, and numbers the lines if
//! there are none.

use anyhow::Result;
use pumice::types::VarLenKind;
use pumice::{Dataset, Datatype, File, Group};
use std::collections::HashMap;

/// Strings that are read and written at once.
const BATCH: u64 = 1 << 16;
/// The group of names.
const GROUP: &str = "names";

/// Names of the lines along an axis, in the file that is imported.
pub struct Label {
    /// The axis whose lines have these names.
    pub axis: usize,
    /// The kind of names: `index`, `id`, `barcode` and so on.
    pub field: &'static str,
    /// The names.
    pub strings: Dataset,
}

impl Label {
    /// The strings that a group has under a name, if it has any.
    pub(crate) fn find(
        group: &Group,
        name: &str,
        axis: usize,
        field: &'static str,
    ) -> Option<Self> {
        let strings = group.dataset(name).ok()?;
        let one = strings.shape().len() == 1;
        (one && is_text(strings.datatype())).then_some(Self { axis, field, strings })
    }
}

fn is_text(datatype: &Datatype) -> bool {
    match datatype {
        Datatype::String(_) => true,
        Datatype::VarLen(varlen) => matches!(varlen.kind, VarLenKind::String { .. }),
        _ => false,
    }
}

/// Copies names to where they are looked for, each list once.
#[derive(Default)]
pub struct Keeper {
    kept: HashMap<String, String>,
}

impl Keeper {
    /// Keeps the names of a dataset's lines.
    pub fn keep(&mut self, file: &File, dataset: &Dataset, labels: &[Label]) -> Result<()> {
        let shape = dataset.shape();
        for label in labels {
            if shape.get(label.axis).copied() != label.strings.shape().first().copied() {
                continue;
            }
            let source = label.strings.path().to_owned();
            let path = match self.kept.get(&source) {
                Some(path) => path.clone(),
                None => {
                    let path = format!("/{GROUP}{source}");
                    copy(&label.strings, file, &path)?;
                    self.kept.insert(source, path.clone());
                    path
                }
            };
            let Label { axis, field, .. } = label;
            dataset.set_attribute(&format!("axis{axis}_{field}"), path.as_str())?;
        }
        Ok(())
    }
}

/// The names along an axis of a dataset: the first of `fields` that it has.
pub(super) fn of(file: &File, dataset: &Dataset, axis: usize, fields: &[&str]) -> Option<Dataset> {
    let length = dataset.shape().get(axis).copied();
    fields.iter().find_map(|field| {
        let path = dataset.attribute(&format!("axis{axis}_{field}")).ok()?.read_string().ok()?;
        let names = file.dataset(&path).ok()?;
        (names.shape().first().copied() == length && is_text(names.datatype())).then_some(names)
    })
}

/// Copies strings into a new dataset of strings of variable length.
fn copy(from: &Dataset, file: &File, path: &str) -> Result<()> {
    let length = from.shape().first().copied().unwrap_or(0);
    let to = file.new_strings().shape([length]).create(path)?;
    for_each_batch(length, Some(from), "", |first, names| {
        Ok(to.write_strings(first..first + names.len() as u64, names)?)
    })
}

/// Visits names in batches: those of a dataset, or a stem and a number.
pub(super) fn for_each_batch(
    length: u64,
    names: Option<&Dataset>,
    stem: &str,
    mut visit: impl FnMut(u64, &[String]) -> Result<()>,
) -> Result<()> {
    let mut first = 0;
    while first < length {
        let end = (first + BATCH).min(length);
        let batch: Vec<String> = match names {
            Some(names) => {
                let strings = names.read_strings(first..end)?;
                strings.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect()
            }
            None => (first..end).map(|number| format!("{stem}{number}")).collect(),
        };
        visit(first, &batch)?;
        first = end;
    }
    Ok(())
}
