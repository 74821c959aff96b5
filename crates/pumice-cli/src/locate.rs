//! Finding files and datasets by what was typed.

use crate::walker::{self, Visitor};
use anyhow::{Result, bail};
use pumice::{Dataset, File, Group};
use std::path::Path;

/// Splits `FILE/path` at the end of the file's name. Without a path in the file, the path is empty.
pub(crate) fn split_target(target: &str) -> (&str, &str) {
    let cuts = target.char_indices().filter(|&(_, letter)| letter == '/').map(|(at, _)| at);
    let mut ends = std::iter::once(target.len()).chain(cuts.collect::<Vec<_>>().into_iter().rev());
    // The longest beginning that is a file; what does not exist fails when it is opened.
    let end = ends.find(|&end| Path::new(&target[..end]).is_file()).unwrap_or(target.len());
    (&target[..end], &target[end..])
}

/// The dataset of a name, or the only one that `wanted` accepts.
pub(crate) fn dataset(
    file: &File,
    name: Option<&str>,
    what: &str,
    wanted: fn(&Dataset) -> bool,
) -> Result<Dataset> {
    if let Some(name) = name {
        return Ok(file.dataset(name)?);
    }
    let mut found = datasets(file, wanted)?;
    match (found.pop(), found.len()) {
        (None, _) => bail!("the file has no {what}"),
        (Some(dataset), 0) => Ok(dataset),
        (Some(last), _) => {
            let names: Vec<&str> = found.iter().chain([&last]).map(Dataset::path).take(8).collect();
            let more = if found.len() + 1 > names.len() { ", ..." } else { "" };
            bail!("the file has several {what}, name one: {}{more}", names.join(", "))
        }
    }
}

/// All datasets that `wanted` accepts.
pub(crate) fn datasets(file: &File, wanted: fn(&Dataset) -> bool) -> Result<Vec<Dataset>> {
    let mut candidates = Candidates { wanted, found: Vec::new() };
    walker::walk(file, &mut candidates)?;
    Ok(candidates.found)
}

/// Collects datasets that may be meant.
struct Candidates {
    wanted: fn(&Dataset) -> bool,
    found: Vec<Dataset>,
}

impl Visitor for Candidates {
    fn enter_group(&mut self, _path: &str, _group: &Group) -> Result<bool> {
        Ok(true)
    }

    fn dataset(&mut self, _path: &str, dataset: &Dataset) -> Result<()> {
        if (self.wanted)(dataset) {
            self.found.push(dataset.clone());
        }
        Ok(())
    }

    fn failed(&mut self, _path: &str, _error: pumice::Error) -> Result<()> {
        // What cannot be opened cannot be meant.
        Ok(())
    }
}
