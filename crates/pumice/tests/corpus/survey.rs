//! One file walked through the public interface, and held against its manifest.

use crate::canonical;
use crate::manifest::{Manifest, lengths};
use pumice::{
    Attribute, Context, Dataset, Datatype, Error, Extent, File, Group, LayoutKind, MemberKind,
    Node, Result, Select,
};
use pumice_filter::FilterError;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Datasets of up to this many bytes are read whole.
const MOST: u64 = 4 << 20;
/// The most objects of a file that are visited.
const MOST_OBJECTS: usize = 20_000;

/// What was met, and what was wrong.
#[derive(Default)]
pub(crate) struct Survey {
    pub(crate) opened: usize,
    pub(crate) refused: usize,
    pub(crate) groups: usize,
    pub(crate) unlisted: usize,
    pub(crate) datasets: usize,
    pub(crate) right: usize,
    pub(crate) uncompared: usize,
    pub(crate) partly: usize,
    pub(crate) unsupported: usize,
    pub(crate) failed: usize,
    pub(crate) attributes: usize,
    pub(crate) attributes_right: usize,
    pub(crate) attributes_uncompared: usize,
    pub(crate) attributes_failed: usize,
    /// What h5py reads and Pumice does not, apart from what it knows it cannot.
    pub(crate) missed: Vec<String>,
    /// How often each error was met.
    pub(crate) reasons: BTreeMap<String, usize>,
    pub(crate) wrong: Vec<String>,
}

/// Walks a file.
pub(crate) fn walk(path: &Path, manifest: &Manifest) -> Survey {
    let mut survey = Survey::default();
    let context = Context::builder().threads(1).build().expect("no threads to start");
    let file = match File::options().context(&context).open(path) {
        Ok(file) => file,
        Err(error) => {
            survey.refused += 1;
            survey.note("file", &error);
            survey.miss(&error, manifest.object("/"));
            return survey;
        }
    };
    survey.opened += 1;
    let mut visited = BTreeSet::new();
    let mut pending: Vec<Group> = vec![(*file).clone()];
    while let Some(group) = pending.pop() {
        if visited.len() >= MOST_OBJECTS || !visited.insert(group.address()) {
            continue;
        }
        survey.group(&group, manifest);
        let members = match group.members() {
            Ok(members) => members,
            Err(error) => {
                survey.unlisted += 1;
                survey.note("group", &error);
                survey.miss(&error, manifest.object(group.path()));
                continue;
            }
        };
        for member in members {
            if !matches!(member.kind, MemberKind::Group | MemberKind::Dataset) {
                continue;
            }
            match group.node(&member.name) {
                Ok(Node::Group(group)) => pending.push(group),
                Ok(Node::Dataset(dataset)) if visited.insert(dataset.address()) => {
                    survey.dataset(&dataset, manifest);
                }
                Ok(Node::Dataset(_)) => {}
                Err(error) => {
                    let path = format!("{}/{}", group.path().trim_end_matches('/'), member.name);
                    survey.datasets += 1;
                    survey.count(&error, manifest.object(&path));
                }
            }
        }
    }
    survey
}

impl Survey {
    fn group(&mut self, group: &Group, manifest: &Manifest) {
        self.groups += 1;
        self.attributes(group.path(), group.attributes(), manifest.object(group.path()));
    }

    fn dataset(&mut self, dataset: &Dataset, manifest: &Manifest) {
        self.datasets += 1;
        let known = manifest.object(dataset.path());
        self.attributes(dataset.path(), dataset.attributes(), known);
        let known = known.filter(|known| known["type"] == "dataset");
        let (shape, element) = (dataset.shape(), dataset.datatype().size() as u64);
        let bytes = shape.iter().try_fold(element, |bytes, &length| bytes.checked_mul(length));
        let small = bytes.is_some_and(|bytes| bytes <= MOST);
        let read = if small { dataset.read_bytes(..) } else { read_corner(dataset) };
        let read = match read {
            Ok(read) => read,
            Err(error) => return self.count(&error, known),
        };
        if let Some(known) = known {
            self.compare_shape(dataset, known);
        }
        let expected = known.and_then(|known| known["sha256"].as_str());
        match (small, expected, canonical::hash(dataset.datatype(), shape.is_empty(), &read)) {
            (false, ..) => self.partly += 1,
            (_, Some(expected), Some(found)) if expected == found => self.right += 1,
            (_, Some(_), Some(_)) => {
                let (path, datatype) = (dataset.path(), dataset.datatype());
                self.wrong.push(format!("{path}: wrong values of {datatype}"));
            }
            _ => self.uncompared += 1,
        }
    }

    fn compare_shape(&mut self, dataset: &Dataset, known: &Value) {
        let extent = dataset.extent();
        let found = match &extent {
            Ok(Extent::Null) => None,
            _ => Some(dataset.shape()),
        };
        if lengths(&known["shape"]) != found {
            let (path, expected) = (dataset.path(), &known["shape"]);
            self.wrong.push(format!("{path}: shape {extent:?} instead of {expected}"));
        }
        if dataset.layout() != LayoutKind::Unreadable
            && lengths(&known["chunks"]) != dataset.chunk()
        {
            let (path, found, expected) = (dataset.path(), dataset.chunk(), &known["chunks"]);
            self.wrong.push(format!("{path}: chunks {found:?} instead of {expected}"));
        }
    }

    fn attributes(&mut self, path: &str, read: Result<Vec<Attribute>>, known: Option<&Value>) {
        let attributes = match read {
            Ok(attributes) => attributes,
            Err(error) => {
                self.attributes_failed += 1;
                self.note("attributes", &error);
                return self.miss(&error, known);
            }
        };
        for attribute in attributes {
            self.attributes += 1;
            let known = known.and_then(|known| known["attrs"][attribute.name()]["sha256"].as_str());
            // The manifests repeat an array as often as it has elements.
            let array = matches!(attribute.datatype(), Datatype::Array(_));
            let known = known.filter(|_| !array);
            match (known, canonical::hash(attribute.datatype(), false, attribute.bytes())) {
                (Some(expected), Some(found)) if expected == found => self.attributes_right += 1,
                (Some(_), Some(_)) => {
                    let (name, datatype) = (attribute.name(), attribute.datatype());
                    let wrong = format!("{path}: wrong attribute \"{name}\" of {datatype}");
                    self.wrong.push(wrong);
                }
                _ => self.attributes_uncompared += 1,
            }
        }
    }

    /// Counts a dataset that cannot be read.
    fn count(&mut self, error: &Error, known: Option<&Value>) {
        match cause(error) {
            Error::Unsupported(_) => self.unsupported += 1,
            _ => self.failed += 1,
        }
        self.note("dataset", error);
        self.miss(error, known);
    }

    /// Takes down an error at an object that h5py reads without one.
    fn miss(&mut self, error: &Error, known: Option<&Value>) {
        let expected = matches!(
            cause(error),
            Error::Unsupported(_) | Error::Filter(FilterError::Missing { .. })
        );
        if !expected && known.is_some_and(|known| known["error"].is_null()) {
            self.missed.push(error.to_string());
        }
    }

    fn note(&mut self, what: &str, error: &Error) {
        // Addresses and numbers differ from file to file.
        let text = cause(error).to_string();
        let text: String = text.chars().take(90).collect();
        let text = text.split(" at 0x").next().unwrap_or_default().to_owned();
        let panicked = error.to_string().contains("panicked");
        if panicked {
            self.wrong.push(error.to_string());
        }
        *self.reasons.entry(format!("{what}: {text}")).or_default() += 1;
    }

    /// Adds what was met elsewhere.
    pub(crate) fn add(&mut self, other: Self) {
        self.opened += other.opened;
        self.refused += other.refused;
        self.groups += other.groups;
        self.unlisted += other.unlisted;
        self.datasets += other.datasets;
        self.right += other.right;
        self.uncompared += other.uncompared;
        self.partly += other.partly;
        self.unsupported += other.unsupported;
        self.failed += other.failed;
        self.attributes += other.attributes;
        self.attributes_right += other.attributes_right;
        self.attributes_uncompared += other.attributes_uncompared;
        self.attributes_failed += other.attributes_failed;
        for (reason, count) in other.reasons {
            *self.reasons.entry(reason).or_default() += count;
        }
    }
}

/// Reads the first cells of a dataset that is too large to be read whole.
fn read_corner(dataset: &Dataset) -> Result<Vec<u8>> {
    let element = dataset.datatype().size() as u64;
    let mut left = (MOST / element.max(1)).max(1);
    let shape = dataset.shape();
    let mut counts = vec![1; shape.len()];
    for (count, &length) in counts.iter_mut().zip(&shape).rev() {
        *count = length.min(left);
        left /= (*count).max(1);
    }
    if element > MOST || shape.is_empty() {
        return Err(Error::Invalid("elements too large for this test".into()));
    }
    let corner: Vec<_> = counts.into_iter().map(|count| 0..count).collect();
    dataset.read_bytes(corner.as_slice().select(&shape)?)
}

/// The innermost error.
fn cause(error: &Error) -> &Error {
    match error {
        Error::At { source, .. } => cause(source),
        other => other,
    }
}
