//! A description and its values in two files, as h5import takes them; and undoing an import.

use super::outside::Outside;
use super::{Made, Reader};
use crate::formats::Input;
use crate::progress::{Progress, Unit};
use crate::target;
use anyhow::{Result, bail, ensure};
use pumice::File;
use std::path::Path;

/// The objects made in a file, for undoing.
#[derive(Default)]
pub(in crate::commands) struct Undo {
    /// The highest of the new objects; `None` if there is no undoing.
    paths: Option<Vec<String>>,
}

impl Undo {
    /// An undo list for a file that is to be restored after a failure.
    pub(in crate::commands) fn wanted() -> Self {
        Self { paths: Some(Vec::new()) }
    }

    /// Something is about to be made at `path`.
    pub(in crate::commands) fn note(&mut self, file: &File, path: &str) {
        let Some(paths) = &mut self.paths else { return };
        let mut top = String::new();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            top = top + "/" + part;
            // Members of a new object go with it.
            if paths.contains(&top) {
                return;
            }
            if !exists(file, &top) {
                paths.push(top);
                return;
            }
        }
    }

    /// Removes the new objects.
    pub(in crate::commands) fn all(self, file: &File) -> pumice::Result<()> {
        let made = self.paths.unwrap_or_default();
        made.iter().rev().filter(|path| exists(file, path)).try_for_each(|path| file.unlink(path))
    }
}

/// Whether there is a link of this name, wherever it leads.
fn exists(file: &File, path: &str) -> bool {
    if file.contains(path) {
        return true;
    }
    let (group, name) = path.rsplit_once('/').unwrap_or(("", path));
    let group = if group.is_empty() { "/" } else { group };
    let members = file.group(group).and_then(|group| group.members()).unwrap_or_default();
    members.iter().any(|member| member.name == name)
}

/// Makes the objects of `description`, with the values of `data`. Both may be the same file.
pub(in crate::commands) fn import_apart(
    description: &Path,
    data: &Path,
    file: &File,
    undo: &mut Undo,
) -> Result<Made> {
    let input = Input { path: description, shape: None, one_based: false };
    let progress = Progress::new(0, Unit::Entries);
    let mut reader = Reader::new(&input, file, &progress, undo)?;
    reader.strict = true;
    if !target::same_file(description, data) {
        if crate::formats::is_dump(data) {
            bail!("{} has a description of its own: name it after -c as well", data.display());
        }
        reader.outside = Some(Outside::Unknown(data.to_owned()));
    }
    let made = reader.run()?;
    ensure!(made.datasets > 0, "{} describes no dataset", description.display());
    Ok(made)
}
