//! Everything that a file holds, read through the public interface.

use pumice::{Attribute, Context, Dataset, File, Group, Member, MemberKind, Node, Selection};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The most bytes of a dataset that are read at once.
const MOST: u64 = 4 << 20;
/// The most groups and datasets that are visited.
const MOST_OBJECTS: usize = 100;

/// Opens files with a cache and no threads of its own.
pub(crate) struct Walker {
    context: Context,
}

/// The contents of a file, by path.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    objects: BTreeMap<String, Object>,
}

/// The contents of an object; nothing where there was an error.
#[derive(Debug, Default)]
struct Object {
    /// Parts that checksums protect: attributes, members, shape, type, defined cells.
    sure: BTreeMap<&'static str, Option<Vec<u8>>>,
    /// Values, which may be stored without checksum.
    values: BTreeMap<&'static str, Option<Vec<u8>>>,
}

impl Walker {
    pub(crate) fn new() -> Self {
        Self { context: Context::builder().threads(1).build().unwrap() }
    }

    /// Reads the contents of a file; `None` if it cannot be opened.
    pub(crate) fn walk(&self, bytes: Vec<u8>) -> Option<Contents> {
        let file = File::options().context(&self.context).open_bytes(bytes).ok()?;
        let mut contents = Contents::default();
        let mut visited = BTreeSet::new();
        let mut pending: Vec<Group> = vec![(*file).clone()];
        while let Some(group) = pending.pop() {
            if !visited.insert(group.address()) || contents.objects.len() >= MOST_OBJECTS {
                continue;
            }
            let members = group.members().ok();
            let mut object = Object::default();
            // A member that cannot be read is an error of its own.
            let readable = |members: &&Vec<Member>| {
                !members.iter().any(|member| matches!(member.kind, MemberKind::Unreadable(_)))
            };
            object.sure.insert("members", members.as_ref().filter(readable).map(text));
            object.sure.insert("attributes", attributes(group.attributes()));
            contents.objects.insert(group.path().into(), object);
            for member in members.unwrap_or_default() {
                match group.node(&member.name) {
                    Ok(Node::Group(group)) => pending.push(group),
                    Ok(Node::Dataset(dataset)) => {
                        contents.objects.insert(dataset.path().into(), read(&dataset));
                    }
                    Ok(Node::Datatype(_)) | Err(_) => {}
                }
            }
        }
        Some(contents)
    }
}

impl Walker {
    /// Changes a file in every way that there is, as far as it can be changed.
    pub(crate) fn edit(&self, path: &Path) -> pumice::Result<()> {
        let file = File::options().context(&self.context).edit(path)?;
        let _ = file.create_group("new/group").map(|group| group.set_attribute("new", 1u8));
        let _ = file.new_dataset::<u8>().shape([9]).sparse().create("new/sparse");
        let _ = file.flush();
        let mut pending: Vec<Group> = vec![(*file).clone()];
        for _ in 0..MOST_OBJECTS {
            let Some(group) = pending.pop() else { break };
            let _ = group.set_attribute("list", [1i32, 2, 3]);
            for member in group.members().unwrap_or_default() {
                match group.node(&member.name) {
                    Ok(Node::Group(group)) => pending.push(group),
                    Ok(Node::Dataset(dataset)) => change(&dataset),
                    Ok(Node::Datatype(_)) | Err(_) => {}
                }
            }
            let _ = file.flush();
        }
        for member in file.members().unwrap_or_default() {
            let _ = file.unlink(&member.name);
        }
        file.close()
    }
}

fn change(dataset: &Dataset) {
    let (shape, element) = (dataset.shape(), dataset.datatype().size());
    // The first cell of a dense dataset or chunk makes room for all others: that is no damage.
    let together = dataset.chunk().unwrap_or_else(|| shape.clone());
    let mut lengths = together.iter();
    let bytes = lengths.try_fold(element as u64, |bytes, &length| bytes.checked_mul(length));
    if bytes.is_none_or(|bytes| bytes > MOST) {
        return;
    }
    let last: Vec<u64> = shape.iter().map(|length| length.saturating_sub(1)).collect();
    let zero = vec![0; last.len()];
    let _ = dataset.set_attribute("new", "value");
    for point in [zero, last] {
        let Ok(point) = Selection::point(&point) else { continue };
        let _ = dataset.write_bytes(&point, &vec![7; element]);
        let _ = dataset.write_strings(&point, &["new"]);
        let _ = dataset.flush();
        let _ = dataset.erase(&point);
    }
    let half: Vec<u64> = shape.iter().map(|length| length / 2).collect();
    let _ = dataset.resize(&half);
    let _ = dataset.resize(&shape);
    let _ = dataset.flush();
}

impl Contents {
    /// Whether there was no error.
    pub(crate) fn is_complete(&self) -> bool {
        let whole = |object: &Object| {
            object.sure.values().all(Option::is_some) && object.values.values().all(Option::is_some)
        };
        self.objects.len() > 1 && self.objects.values().all(whole)
    }

    /// What is here and not in `truth`; with `exposed` values, they do not count.
    pub(crate) fn differences(&self, truth: &Self, exposed: bool) -> Vec<String> {
        let mut differences = Vec::new();
        for (path, object) in &self.objects {
            let Some(truth) = truth.objects.get(path) else {
                differences.push(format!("{path} is new"));
                continue;
            };
            for (what, found) in object.sure.iter().filter(|(_, found)| found.is_some()) {
                if truth.sure.get(what) != Some(found) {
                    differences.push(format!("{path}: wrong {what}"));
                }
            }
            for (what, found) in object.values.iter().filter(|(_, found)| found.is_some()) {
                if truth.values.get(what) != Some(found) && !exposed {
                    differences.push(format!("{path}: wrong {what}"));
                }
            }
        }
        differences
    }
}

fn attributes(attributes: pumice::Result<Vec<Attribute>>) -> Option<Vec<u8>> {
    let attributes = attributes.ok()?;
    for attribute in &attributes {
        // Conversions must be total, too.
        let _ = attribute.read::<f64>();
        let _ = attribute.read_string();
    }
    Some(text(&attributes))
}

fn text(found: &impl std::fmt::Debug) -> Vec<u8> {
    format!("{found:?}").into_bytes()
}

fn numbers(found: &[u64]) -> Vec<u8> {
    found.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn read(dataset: &Dataset) -> Object {
    let mut object = Object::default();
    let mut sure = |what, found: Option<Vec<u8>>| drop(object.sure.insert(what, found));
    let (shape, element) = (dataset.shape(), dataset.datatype().size() as u64);
    sure("attributes", attributes(dataset.attributes()));
    sure("description", Some(description(dataset).into_bytes()));
    sure("stored bytes", dataset.storage_size().ok().map(|count| numbers(&[count])));
    let bytes = shape.iter().try_fold(element, |bytes, &length| bytes.checked_mul(length));
    let small = bytes.is_some_and(|bytes| bytes <= MOST);
    // A large sparse dataset has few cells; of a dense one, every cell is defined.
    if dataset.is_sparse() || small {
        sure("number of cells", dataset.count_defined(..).ok().map(|count| numbers(&[count])));
        let selection = dataset.defined(..).ok();
        sure("selection", selection.map(|cells| numbers(&[cells.count(&shape)])));
    }
    if (dataset.is_sparse() || small) && !dataset.datatype().has_varlen() {
        let found = dataset.read_defined_bytes(..).ok();
        sure("cells", found.as_ref().map(|found| numbers(&found.coordinates)));
        object.values.insert("defined values", found.map(|found| found.values));
    }
    if dataset.datatype().has_varlen() {
        return varlen(dataset, object, small);
    }
    // The last cell alone is at another place than everything.
    let last: Vec<u64> = shape.iter().map(|length| length.saturating_sub(1)).collect();
    if element <= MOST && !last.is_empty() {
        let last = Selection::point(&last).ok().and_then(|last| dataset.read_bytes(last).ok());
        object.values.insert("last value", last);
    }
    if small {
        let converted = dataset.read::<f64>(..).ok();
        let converted = converted.map(|values| values.into_iter().flat_map(f64::to_le_bytes));
        object.values.insert("values", dataset.read_bytes(..).ok());
        object.values.insert("converted values", converted.map(Iterator::collect));
    }
    object
}

/// Values of variable length. Every section of their chunks has a checksum.
fn varlen(dataset: &Dataset, mut object: Object, small: bool) -> Object {
    if dataset.is_sparse() || small {
        let found = dataset.read_defined_values(..).ok();
        object.sure.insert("defined values", found.map(|found| text(&found)));
    }
    if small {
        let _ = dataset.read_strings(..);
        let _ = dataset.read_sequences::<f64>(..);
        let _ = dataset.read_bytes(..);
        object.sure.insert("values", dataset.read_values(..).ok().map(|found| text(&found)));
    }
    object
}

fn description(dataset: &Dataset) -> String {
    format!(
        "{:?} {:?} {:?} {} {:?} {:?} {:?} {:?} {:?}",
        dataset.layout(),
        dataset.shape(),
        dataset.max_shape(),
        dataset.datatype(),
        dataset.extent(),
        dataset.chunk(),
        dataset.filters(),
        dataset.location_filters(),
        dataset.fill_value(),
    )
}
