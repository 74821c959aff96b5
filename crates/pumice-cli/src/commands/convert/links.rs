//! Links to objects that became sparse datasets.
//!
//! Objects that are made anew are not copied, nor are links to them. Links to a group that a
//! dataset has replaced, or to a dataset that became sparse, are made again; links to arrays of a
//! matrix would lead nowhere, and are reported.

use crate::walker::{self, Kind, Visitor};
use anyhow::Result;
use pumice::{Dataset, Error, File, Group, MemberKind};
use std::collections::HashMap;

/// Makes links to new datasets; `places` has their paths by their old addresses. Reports the links
/// that are left out.
pub(super) fn make(
    old: &File,
    new: &File,
    places: &HashMap<u64, String>,
    parts: &HashMap<u64, u64>,
) -> Result<Vec<String>> {
    let mut links = Links { old, new, places, parts, left: Vec::new() };
    walker::walk(old, &mut links)?;
    Ok(links.left)
}

struct Links<'a> {
    old: &'a File,
    new: &'a File,
    places: &'a HashMap<u64, String>,
    /// The groups of the arrays of matrices, by the arrays' addresses.
    parts: &'a HashMap<u64, u64>,
    left: Vec<String>,
}

impl Links<'_> {
    /// A name of the object at an address.
    fn name(&mut self, path: &str, address: u64) -> Result<()> {
        match self.places.get(&address) {
            Some(place) if place == path => {}
            Some(place) => self.new.create_hard_link(path, place)?,
            None => {
                if self.parts.get(&address).is_some_and(|&group| !self.is_own(path, group)) {
                    self.left.push(format!("{path} (an array of a sparse matrix)"));
                }
            }
        }
        Ok(())
    }

    /// Whether a path is that of an array in its own group.
    fn is_own(&self, path: &str, group: u64) -> bool {
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        match parent {
            "" => self.old.address() == group,
            _ => self.old.group(parent).is_ok_and(|parent| parent.address() == group),
        }
    }
}

impl Visitor for Links<'_> {
    fn enter_group(&mut self, path: &str, group: &Group) -> Result<bool> {
        self.name(path, group.address())?;
        Ok(!self.places.contains_key(&group.address()))
    }

    fn dataset(&mut self, path: &str, dataset: &Dataset) -> Result<()> {
        self.name(path, dataset.address())
    }

    fn again(&mut self, path: &str, kind: Kind, _first: &str) -> Result<()> {
        match kind {
            Kind::Group => self.name(path, self.old.group(path)?.address()),
            Kind::Dataset => self.name(path, self.old.dataset(path)?.address()),
            Kind::Datatype => Ok(()),
        }
    }

    fn other(&mut self, path: &str, kind: &MemberKind) -> Result<()> {
        if let MemberKind::SoftLink(target) = kind
            && self.old.node(path).is_ok()
            && self.new.node(path).is_err()
        {
            self.left
                .push(format!("what {path} leads to, {target}: it is a part of a sparse matrix"));
        }
        Ok(())
    }

    fn failed(&mut self, _path: &str, _error: Error) -> Result<()> {
        // Copying told it.
        Ok(())
    }
}
