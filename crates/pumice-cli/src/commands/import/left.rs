//! The parts of an HDF5 file that importing its matrices leaves out.

use crate::formats::{self, Format, Found};
use anyhow::Result;
use pumice::File;
use std::collections::{BTreeMap, HashSet};

/// Reports what is left out: groups without a matrix, and other datasets.
pub(super) fn out(file: &File, found: &[Found], format: &dyn Format) -> Result<Vec<String>> {
    let mut taken: HashSet<u64> = HashSet::new();
    for found in found {
        let names = format.arrays().iter().chain(&["shape"]);
        match &found.group {
            Some(group) => {
                let group = file.group(group)?;
                let arrays = names.filter_map(|name| group.dataset(name).ok());
                taken.extend(arrays.map(|array| array.address()));
            }
            None => taken.extend(file.dataset(&found.name).map(|array| array.address()).ok()),
        }
        taken.extend(found.labels.iter().map(|label| label.strings.address()));
    }
    let mut tree = Tree::default();
    for dataset in formats::objects(file).1 {
        tree.add(dataset.path(), taken.contains(&dataset.address()));
    }
    let mut told = Vec::new();
    tree.tell("", &mut told);
    Ok(told)
}

/// Groups and datasets by name.
#[derive(Default)]
struct Tree {
    members: BTreeMap<String, Tree>,
    left: u64,
    taken: u64,
}

impl Tree {
    fn add(&mut self, path: &str, taken: bool) {
        let mut here = self;
        here.note(taken);
        for part in path.split('/').filter(|part| !part.is_empty()) {
            here = here.members.entry(part.to_owned()).or_default();
            here.note(taken);
        }
    }

    fn note(&mut self, taken: bool) {
        match taken {
            true => self.taken += 1,
            false => self.left += 1,
        }
    }

    fn tell(&self, path: &str, told: &mut Vec<String>) {
        for (name, member) in &self.members {
            let path = format!("{path}/{name}");
            match (member.left, member.taken, member.members.is_empty()) {
                (0, ..) => {}
                (_, _, true) => told.push(path),
                (1, 0, _) => told.push(format!("{path} (1 dataset)")),
                (left, 0, _) => told.push(format!("{path} ({left} datasets)")),
                _ => member.tell(&path, told),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_which_nothing_is_taken_are_named_once() {
        let mut tree = Tree::default();
        for (path, taken) in [
            ("/X", true),
            ("/obs/_index", true),
            ("/obs/age", false),
            ("/obs/kind/codes", false),
            ("/uns/a/b", false),
            ("/uns/c", false),
            ("/note", false),
        ] {
            tree.add(path, taken);
        }
        let mut told = Vec::new();
        tree.tell("", &mut told);
        assert_eq!(told, ["/note", "/obs/age", "/obs/kind (1 dataset)", "/uns (2 datasets)"]);
    }
}
