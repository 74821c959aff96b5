//! Finding objects, links and attributes by path or name.

use crate::walker::{Kind, Visitor};
use anyhow::Result;
use pumice::{Attribute, CommittedDatatype, Dataset, Error, Group, MemberKind};

/// An object, link or attribute with the name.
pub(super) enum Found {
    Group,
    Dataset,
    Datatype,
    Attribute,
    Link,
}

/// Finds everything with a name.
pub(super) struct Finder {
    pub(super) wanted: String,
    pub(super) found: Vec<(String, Found)>,
}

impl Finder {
    /// Objects and links are found by their paths.
    fn matches(&self, path: &str) -> bool {
        path == self.wanted
    }

    fn matches_link(&self, path: &str) -> bool {
        path.trim_start_matches('/') == self.wanted.trim_start_matches('/')
    }

    /// Attributes are found by their names, too, whatever object they belong to.
    fn matches_attribute(&self, owner: &str, name: &str) -> bool {
        let (object, wanted) = split_attribute(&self.wanted);
        wanted == name && (object == owner || !self.wanted.starts_with('/'))
    }

    fn attributes(&mut self, path: &str, attributes: pumice::Result<Vec<Attribute>>) {
        for attribute in attributes.unwrap_or_default() {
            if self.matches_attribute(path, attribute.name()) {
                let path = path.trim_end_matches('/');
                let name = attribute.name().replace('/', "\\/");
                self.found.push((format!("{path}/{name}"), Found::Attribute));
            }
        }
    }
}

impl Visitor for Finder {
    fn enter_group(&mut self, path: &str, group: &Group) -> Result<bool> {
        if self.matches(path) {
            self.found.push((path.to_owned(), Found::Group));
        }
        self.attributes(path, group.attributes());
        Ok(true)
    }

    fn dataset(&mut self, path: &str, dataset: &Dataset) -> Result<()> {
        if self.matches(path) {
            self.found.push((path.to_owned(), Found::Dataset));
        }
        self.attributes(path, dataset.attributes());
        Ok(())
    }

    fn again(&mut self, path: &str, kind: Kind, _first: &str) -> Result<()> {
        if self.matches(path) {
            let found = match kind {
                Kind::Group => Found::Group,
                Kind::Dataset => Found::Dataset,
                Kind::Datatype => Found::Datatype,
            };
            self.found.push((path.to_owned(), found));
        }
        Ok(())
    }

    fn datatype(&mut self, path: &str, datatype: &CommittedDatatype) -> Result<()> {
        if self.matches(path) {
            self.found.push((path.to_owned(), Found::Datatype));
        }
        self.attributes(path, datatype.attributes());
        Ok(())
    }

    fn other(&mut self, path: &str, kind: &MemberKind) -> Result<()> {
        if self.matches_link(path) && is_link(kind) {
            self.found.push((path.to_owned(), Found::Link));
        }
        Ok(())
    }

    fn failed(&mut self, _path: &str, _error: Error) -> Result<()> {
        Ok(())
    }
}

/// Whether a member is no object.
pub(super) fn is_link(kind: &MemberKind) -> bool {
    !matches!(
        kind,
        MemberKind::Group | MemberKind::Dataset | MemberKind::Datatype | MemberKind::Unreadable(_)
    )
}

/// The object and the name of an attribute's path; slashes in the name are behind backslashes.
pub(in crate::commands::dump) fn split_attribute(path: &str) -> (String, String) {
    let bytes = path.as_bytes();
    let cut =
        (0..bytes.len()).rev().find(|&at| bytes[at] == b'/' && (at == 0 || bytes[at - 1] != b'\\'));
    let (object, name) = cut.map_or(("", path), |at| (&path[..at], &path[at + 1..]));
    let object = if object.is_empty() { "/" } else { object };
    (object.to_owned(), name.replace("\\/", "/"))
}
