//! Everything in a file, as h5py sees it: every object by path, its shape, maximum shape, chunks,
//! filters, and a hash of its elements and of each attribute.
//!
//! Objects are visited group by group, members in order of their names' bytes; an object that was
//! met before is named by its first path. Elements of a hash are canonical: `canonical.rs`.

mod canonical;
mod compare;

pub use compare::{Comparison, compare};

use canonical::Elements;
use pumice::{
    Attribute, CommittedDatatype, Context, Dataset, Error, Extent, File, Group, Locking, Member,
    MemberKind, Node, Result,
};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

/// Datasets of more elements are described, but not hashed.
const MOST_ELEMENTS: u64 = 60_000_000;

/// The manifest of the file at `path`.
pub fn of_file(path: &Path) -> Result<Value> {
    let context = Context::builder().threads(1).build()?;
    let options = File::options().context(&context).locking(Locking::Off);
    of(&options.open(path)?)
}

/// The manifest of an open file.
pub fn of(file: &File) -> Result<Value> {
    let mut walk = Walk::default();
    let root: &Group = file;
    let attributes = attributes(root.attributes());
    walk.found.insert("/".into(), json!({ "type": "group", "attrs": attributes }));
    walk.seen.insert(root.address(), "/".into());
    walk.pending.push_back(root.clone());
    while let Some(group) = walk.pending.pop_front() {
        walk.group(&group);
    }
    Ok(Value::Object(walk.found))
}

#[derive(Default)]
struct Walk {
    found: Map<String, Value>,
    seen: BTreeMap<u64, String>,
    pending: VecDeque<Group>,
}

impl Walk {
    fn group(&mut self, group: &Group) {
        let members = match group.members() {
            Ok(members) => members,
            Err(error) => {
                if let Some(entry) = self.found.get_mut(group.path()) {
                    entry["error"] = json!(error.to_string());
                }
                return;
            }
        };
        for member in members {
            let path = format!("{}/{}", group.path().trim_end_matches('/'), member.name);
            let entry = self.member(group, &member, &path);
            self.found.insert(path, entry);
        }
    }

    fn member(&mut self, group: &Group, member: &Member, path: &str) -> Value {
        match &member.kind {
            MemberKind::SoftLink(target) => return json!({ "type": "soft", "target": target }),
            MemberKind::ExternalLink(file, target) => {
                return json!({ "type": "external", "file": file, "target": target });
            }
            MemberKind::UserDefinedLink(class) => {
                return failed(&format!("a user-defined link of class {class}"));
            }
            MemberKind::Unreadable(reason) => return failed(reason),
            _ => {}
        }
        let node = match group.node(&member.name) {
            Ok(node) => node,
            Err(error) => return failed(&error),
        };
        if let Some(first) = self.seen.get(&node.address()) {
            return json!({ "type": "hard", "same_as": first });
        }
        self.seen.insert(node.address(), path.to_owned());
        match node {
            Node::Group(group) => {
                let entry = json!({ "type": "group", "attrs": attributes(group.attributes()) });
                self.pending.push_back(group);
                entry
            }
            Node::Dataset(dataset) => describe(&dataset),
            Node::Datatype(datatype) => committed(&datatype),
        }
    }
}

fn failed(error: &impl ToString) -> Value {
    json!({ "error": error.to_string() })
}

fn committed(datatype: &CommittedDatatype) -> Value {
    json!({ "type": "datatype", "attrs": attributes(datatype.attributes()) })
}

fn describe(dataset: &Dataset) -> Value {
    let filters: Vec<u16> = dataset.filters().iter().map(|filter| filter.id).collect();
    let mut entry = json!({
        "type": "dataset",
        "chunks": dataset.chunk(),
        "filters": filters,
        "attrs": attributes(dataset.attributes()),
    });
    let (shape, max_shape) = match dataset.extent() {
        Ok(Extent::Null) => (Value::Null, Value::Null),
        Ok(_) => (json!(dataset.shape()), json!(dataset.max_shape())),
        Err(error) => return failed(&error),
    };
    entry["shape"] = shape;
    entry["maxshape"] = max_shape;
    let cells = dataset.shape().iter().try_fold(1u64, |cells, &side| cells.checked_mul(side));
    if entry["shape"].is_null() || cells.is_none_or(|cells| cells >= MOST_ELEMENTS) {
        return entry;
    }
    match hash(dataset) {
        Ok(hash) => entry["sha256"] = json!(hash),
        Err(error) => entry["error"] = json!(error.to_string()),
    }
    entry
}

fn hash(dataset: &Dataset) -> Result<String> {
    let heaped = match dataset.datatype().has_varlen() {
        true => dataset.read_heaped(..)?,
        false => pumice::Heaped { elements: dataset.read_bytes(..)?, heap: Vec::new() },
    };
    let scalar = dataset.shape().is_empty();
    let elements = Elements::new(dataset.datatype(), heaped).of_scalar(scalar);
    elements.hash().map_err(|error| Error::from(error).at(dataset.path()))
}

fn attributes(read: Result<Vec<Attribute>>) -> Value {
    let attributes = match read {
        Ok(attributes) => attributes,
        Err(error) => return json!({ "": failed(&error) }),
    };
    let entries = attributes.iter().map(|attribute| {
        let entry = match attribute.extent() {
            Extent::Null => json!({ "null": true }),
            extent => match attribute_hash(attribute) {
                Ok(hash) => json!({ "shape": extent.dims(), "sha256": hash }),
                Err(error) => failed(&error),
            },
        };
        (attribute.name().to_owned(), entry)
    });
    Value::Object(entries.collect())
}

fn attribute_hash(attribute: &Attribute) -> Result<String> {
    let elements = Elements::new(attribute.datatype(), attribute.read_heaped()?);
    Ok(elements.of_attribute(attribute.extent().dims().is_empty()).hash()?)
}
