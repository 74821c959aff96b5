//! Finding files, and objects in them, by the words of a command line.
//!
//! `FILE/PATH` names an object of a file wherever a file is named. The file is the longest beginning that is one.

use crate::driver;
use crate::remote;
use crate::walker::{self, Visitor};
use anyhow::{Result, bail};
use pumice::{Dataset, File, Group, Node};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// How names of HDF5 files end.
const ENDINGS: [&str; 7] = [".h5", ".hdf5", ".hdf", ".he5", ".nc", ".nc4", ".h5ad"];

/// A file, and perhaps an object in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) file: PathBuf,
    /// The object's path, without slashes at its ends; empty if none was named.
    inside: String,
}

impl From<OsString> for Spot {
    fn from(typed: OsString) -> Self {
        match typed.to_str() {
            Some(text) => Self::of(text),
            // Objects have names that are text.
            None => Self { file: typed.into(), inside: String::new() },
        }
    }
}

impl Spot {
    /// `FILE` or `FILE/PATH`.
    pub(crate) fn of(typed: &str) -> Self {
        let (file, inside) = split_target(typed);
        Self { file: file.into(), inside: inside.trim_matches('/').to_owned() }
    }

    /// `FILE` or `FILE/PATH`; HDF5's tools know files alone.
    pub(crate) fn asked(typed: &str, program: &str) -> Self {
        match program.starts_with("h5") {
            true => Self { file: typed.into(), inside: String::new() },
            false => Self::of(typed),
        }
    }

    /// `FILE` or `FILE/PATH`, where the file may be a new one: then its name is the first that ends as those of HDF5 files
    /// do, or else the one behind the last existing folder.
    pub(crate) fn to_make(typed: &str) -> Self {
        let there = Self::of(typed);
        if there.file.exists() {
            return there;
        }
        let cuts = typed.match_indices('/').map(|(at, _)| at).filter(|&at| at > 0);
        let news: Vec<usize> =
            cuts.filter(|&end| !Path::new(&typed[..end]).is_dir()).chain([typed.len()]).collect();
        let is_named = |end: &&usize| ENDINGS.iter().any(|ending| typed[..**end].ends_with(ending));
        let end = news.iter().find(is_named).or(news.first()).copied().unwrap_or(typed.len());
        Self { file: typed[..end].into(), inside: typed[end..].trim_matches('/').to_owned() }
    }

    /// [`to_make`](Self::to_make) for a path, which may be no text.
    pub(crate) fn new(typed: &Path) -> Self {
        match typed.to_str() {
            Some(text) => Self::to_make(text),
            None => Self { file: typed.into(), inside: String::new() },
        }
    }

    /// Whether an object was named behind the file.
    pub(crate) fn names_an_object(&self) -> bool {
        !self.inside.is_empty()
    }

    /// The file's name as text.
    pub(crate) fn name(&self) -> String {
        self.file.display().to_string()
    }

    /// The path of an object that was named behind the file, or behind a space, or both: one below the other.
    pub(crate) fn object(&self, named: Option<&str>) -> Option<String> {
        match (self.inside.as_str(), named) {
            ("", named) => named.map(str::to_owned),
            (inside, None) => Some(format!("/{inside}")),
            (inside, Some(name)) => Some(
                format!("/{inside}/{}", name.trim_matches('/')).trim_end_matches('/').to_owned(),
            ),
        }
    }

    /// The object that was named, or the root group.
    pub(crate) fn node(&self, file: &File) -> Result<Node> {
        node(file, &self.inside)
    }
}

/// The object at a path; "/" and the empty path are the root group.
fn node(file: &File, path: &str) -> Result<Node> {
    Ok(match path.trim_matches('/') {
        "" => Node::Group(Group::clone(file)),
        _ => file.node(path)?,
    })
}

/// Splits `FILE/path` at the end of the file's name. Without a path in the file, the path is empty.
pub(crate) fn split_target(target: &str) -> (&str, &str) {
    if remote::is_address(target) {
        return remote::split(target);
    }
    let cuts = target.char_indices().filter(|&(_, letter)| letter == '/').map(|(at, _)| at);
    let mut ends = std::iter::once(target.len()).chain(cuts.collect::<Vec<_>>().into_iter().rev());
    // The longest beginning that is a file; what does not exist fails when it is opened.
    let end = ends.find(|&end| is_file(&target[..end])).unwrap_or(target.len());
    (&target[..end], &target[end..])
}

/// Whether a name is that of a file, or of several that are one.
fn is_file(name: &str) -> bool {
    Path::new(name).is_file() || (name.contains('%') && driver::open(name).is_ok())
}

/// The dataset of a name, or the only one in the group of that name, or in the file, that `wanted` accepts.
pub(crate) fn dataset(
    file: &File,
    name: Option<&str>,
    what: &str,
    wanted: fn(&Dataset) -> bool,
) -> Result<Dataset> {
    let (group, within) = match node(file, name.unwrap_or_default())? {
        Node::Dataset(dataset) => return Ok(dataset),
        Node::Group(group) if group.path() == "/" => (group, "the file".to_owned()),
        Node::Group(group) => {
            let path = group.path().to_owned();
            (group, path)
        }
        Node::Datatype(datatype) => bail!("{} is a datatype, not a dataset", datatype.path()),
    };
    let mut found = datasets(&group, wanted)?;
    match (found.pop(), found.len()) {
        (None, _) => bail!("{within} has no {what}"),
        (Some(dataset), 0) => Ok(dataset),
        (Some(last), _) => {
            let names: Vec<&str> = found.iter().chain([&last]).map(Dataset::path).take(8).collect();
            let more = if found.len() + 1 > names.len() { ", ..." } else { "" };
            bail!("{within} has several {what}, name one: {}{more}", names.join(", "))
        }
    }
}

/// All datasets at a path or below it that `wanted` accepts; a dataset that was named itself is accepted.
pub(crate) fn datasets_at(
    file: &File,
    name: Option<&str>,
    wanted: fn(&Dataset) -> bool,
) -> Result<Vec<Dataset>> {
    match node(file, name.unwrap_or_default())? {
        Node::Dataset(dataset) => Ok(vec![dataset]),
        Node::Group(group) => datasets(&group, wanted),
        Node::Datatype(datatype) => bail!("{} is a datatype, not a dataset", datatype.path()),
    }
}

/// All datasets below a group that `wanted` accepts.
fn datasets(group: &Group, wanted: fn(&Dataset) -> bool) -> Result<Vec<Dataset>> {
    let mut candidates = Candidates { wanted, found: Vec::new() };
    walker::walk(group, &mut candidates)?;
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
        // A file that cannot be opened cannot be meant.
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Spot;

    #[test]
    fn the_file_is_the_longest_beginning_that_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.h5");
        std::fs::write(&path, "").unwrap();
        let path = path.to_str().unwrap();
        let spot = Spot::of(&format!("{path}/run1/hits/"));
        assert_eq!(
            (spot.name().as_str(), spot.object(None).as_deref()),
            (path, Some("/run1/hits"))
        );
        assert_eq!(spot.object(Some("more")).as_deref(), Some("/run1/hits/more"));
        assert_eq!(Spot::of(path).object(None), None);
        assert_eq!(Spot::of(path).object(Some("x")).as_deref(), Some("x"));
        assert_eq!(Spot::of("missing.h5/x").name(), "missing.h5/x");
    }

    #[test]
    fn a_file_to_make_follows_the_last_folder() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().to_str().unwrap();
        let spot = Spot::to_make(&format!("{folder}/new.h5/run1/hits"));
        assert_eq!(spot.name(), format!("{folder}/new.h5"));
        assert_eq!(spot.object(None).as_deref(), Some("/run1/hits"));
        assert_eq!(Spot::to_make("new.h5").name(), "new.h5");
        // A folder that is not there is none to make a file of.
        let lost = format!("{folder}/absent/new.nc/run1");
        assert_eq!(Spot::to_make(&lost).name(), format!("{folder}/absent/new.nc"));
        let plain = Spot::to_make(&format!("{folder}/plain/run1"));
        assert_eq!(plain.name(), format!("{folder}/plain"));
    }
}
