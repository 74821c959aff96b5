//! A file as a tree: each object on a line with type, shape, chunk, filters, stored size and ratio;
//! and the same facts as JSON.

use super::filter_name;
use crate::numbers;
use crate::style::{Role, Style};
use crate::walker::{self, Kind, Visitor};
use anyhow::Result;
use pumice::types::VarLenKind;
use pumice::{
    CommittedDatatype, Dataset, Datatype, Error, Extent, File, FilterSpec, Group, LayoutKind,
    MemberKind, UNLIMITED,
};
use serde_json::{Value, json};
use std::io::Write;

/// Names that are longer than this do not widen the column of names.
const WIDEST_NAME: usize = 48;
/// The levels for which lines are drawn; deeper objects show how many levels are left out.
const DRAWN: usize = 64;

/// Prints the tree below a group, or the one object.
pub(super) fn print(out: &mut impl Write, file: &File, title: &str, inside: &str) -> Result<bool> {
    let style = Style::of_output();
    let entries = entries(file, inside)?;
    let widths = widths(&entries);
    writeln!(out, "{}", style.paint(Role::Group, title))?;
    // The last member of each level has a corner; levels above it that go on have a line.
    let mut open: Vec<bool> = Vec::new();
    for (entry, last) in entries.iter().zip(lasts(&entries)) {
        open.truncate(entry.depth);
        let hidden = open.len().saturating_sub(DRAWN);
        let mut branch = if hidden > 0 { format!("[+{hidden}] ") } else { String::new() };
        branch.extend(open.iter().skip(hidden).map(|&on| if on { "│   " } else { "    " }));
        branch += if last { "└── " } else { "├── " };
        open.push(!last);
        writeln!(out, "{}", line(entry, &branch, &widths, style))?;
    }
    let failures = entries.iter().filter(|entry| entry.role == Role::Failure).count();
    let datasets = entries.iter().filter(|entry| entry.stored.is_some()).count();
    let stored: u64 = entries.iter().filter_map(|entry| entry.stored).sum();
    let told = format!("{} in {} of data", objects(datasets), numbers::bytes(stored));
    writeln!(out, "{}", style.paint(Role::Quiet, &told))?;
    Ok(failures == 0)
}

/// Whether each entry is the last of its group.
fn lasts(entries: &[Entry]) -> Vec<bool> {
    // Of each level, whether something follows in the same group.
    let mut follows: Vec<bool> = Vec::new();
    let mut lasts: Vec<bool> = entries
        .iter()
        .rev()
        .map(|entry| {
            follows.resize(entry.depth + 1, false);
            !std::mem::replace(&mut follows[entry.depth], true)
        })
        .collect();
    lasts.reverse();
    lasts
}

fn objects(count: usize) -> String {
    format!("{} dataset{}", numbers::grouped(count as u64), if count == 1 { "" } else { "s" })
}

fn line(entry: &Entry, branch: &str, widths: &[usize; 5], style: Style) -> String {
    let pad = |text: &str, width: usize| " ".repeat(width.saturating_sub(text.chars().count()));
    let mut text = style.paint(Role::Quiet, branch) + &style.paint(entry.role, &entry.name);
    let shown = branch.chars().count() + entry.name.chars().count();
    let mut gap = " ".repeat(widths[0].saturating_sub(shown));
    for (column, cell) in entry.columns.iter().enumerate() {
        let role = [Role::Number, Role::Dataset, Role::Quiet, Role::Quiet][column];
        let painted = if column == 1 { cell.clone() } else { style.paint(role, cell) };
        if !cell.is_empty() {
            text += &gap;
            text += "  ";
            text += &painted;
            gap = pad(cell, widths[column + 1]);
        } else {
            gap += "  ";
            gap += &pad("", widths[column + 1]);
        }
    }
    if let Some(stored) = entry.stored {
        let size = numbers::bytes(stored);
        text += &format!("{gap}  {size:>10}");
        if let Some(ratio) = &entry.ratio {
            text += &format!("  {}", style.paint(Role::Good, &format!("{ratio:>8}")));
        }
    }
    text
}

/// One line of the tree.
struct Entry {
    depth: usize,
    name: String,
    role: Role,
    /// Type, shape, chunk, filters.
    columns: [String; 4],
    stored: Option<u64>,
    ratio: Option<String>,
}

fn widths(entries: &[Entry]) -> [usize; 5] {
    let mut widths = [0; 5];
    for entry in entries.iter().filter(|entry| entry.stored.is_some()) {
        let name = entry.name.chars().count().min(WIDEST_NAME) + 4 * (entry.depth.min(DRAWN) + 1);
        widths[0] = widths[0].max(name);
        for (width, cell) in widths[1..].iter_mut().zip(&entry.columns) {
            *width = (*width).max(cell.chars().count());
        }
    }
    widths
}

fn entries(file: &File, inside: &str) -> Result<Vec<Entry>> {
    let mut collector = Collector { entries: Vec::new(), level: 0, root: String::new() };
    match inside {
        "" => walker::walk(file, &mut collector)?,
        path => match file.node(path)? {
            pumice::Node::Group(group) => {
                collector.root = group.path().trim_end_matches('/').to_owned();
                walker::walk(&group, &mut collector)?;
            }
            pumice::Node::Dataset(dataset) => {
                collector.dataset(dataset.path(), &dataset)?;
            }
            pumice::Node::Datatype(datatype) => {
                collector.datatype(datatype.path(), &datatype)?;
            }
        },
    }
    Ok(collector.entries)
}

struct Collector {
    entries: Vec<Entry>,
    /// The number of groups above the visited object, the listed one included.
    level: usize,
    root: String,
}

impl Collector {
    fn push(&mut self, path: &str, role: Role, suffix: &str, about: String) {
        let depth = self.level.saturating_sub(1);
        let name = walker::name(path).escape_debug().to_string() + suffix;
        let columns = [about, String::new(), String::new(), String::new()];
        self.entries.push(Entry { depth, name, role, columns, stored: None, ratio: None });
    }
}

impl Visitor for Collector {
    fn enter_group(&mut self, path: &str, _group: &Group) -> Result<bool> {
        if path.trim_end_matches('/') != self.root {
            self.push(path, Role::Group, "/", String::new());
        }
        self.level += 1;
        Ok(true)
    }

    fn leave_group(&mut self, _path: &str) -> Result<()> {
        self.level = self.level.saturating_sub(1);
        Ok(())
    }

    fn dataset(&mut self, path: &str, dataset: &Dataset) -> Result<()> {
        let role = if dataset.is_sparse() { Role::Sparse } else { Role::Dataset };
        self.push(path, role, "", type_name(dataset.datatype()));
        let Some(entry) = self.entries.last_mut() else { return Ok(()) };
        let facts = (dataset.extent(), dataset.storage_size());
        let (Ok(extent), Ok(stored)) = facts else {
            let error = facts.0.err().or(facts.1.err());
            entry.role = Role::Failure;
            entry.columns[1] = error.map_or(String::new(), |error| error.to_string());
            return Ok(());
        };
        let chunk = dataset
            .chunk()
            .map_or(String::new(), |chunk| format!("chunk {}", numbers::shape(&chunk)));
        let sparse = if dataset.is_sparse() { " sparse" } else { "" };
        entry.columns =
            [type_name(dataset.datatype()), shape(&extent) + sparse, chunk, filters(dataset)];
        entry.stored = Some(stored);
        entry.ratio = ratio(logical(&extent, dataset), stored);
        Ok(())
    }

    fn datatype(&mut self, path: &str, datatype: &CommittedDatatype) -> Result<()> {
        self.push(path, Role::Link, "", format!("type {}", type_name(datatype.datatype())));
        Ok(())
    }

    fn other(&mut self, path: &str, kind: &MemberKind) -> Result<()> {
        let about = match kind {
            MemberKind::SoftLink(target) => format!("-> {target}"),
            MemberKind::ExternalLink(file, target) => format!("-> {file}:{target}"),
            _ => "a link of the user's own kind".to_owned(),
        };
        self.push(path, Role::Link, "", about);
        Ok(())
    }

    fn again(&mut self, path: &str, kind: Kind, first: &str) -> Result<()> {
        let suffix = if kind == Kind::Group { "/" } else { "" };
        self.push(path, Role::Link, suffix, format!("same as {first}"));
        Ok(())
    }

    fn failed(&mut self, path: &str, error: Error) -> Result<()> {
        self.push(path, Role::Failure, "", error.to_string());
        Ok(())
    }
}

/// A type in a word or two.
pub(super) fn type_name(datatype: &Datatype) -> String {
    use pumice::types::ByteOrder;
    let ordered = |name: String, order: ByteOrder, size: u32| match order {
        ByteOrder::Big if size > 1 => name + "be",
        _ => name,
    };
    match datatype {
        Datatype::Integer(integer) => {
            let sign = if integer.signed { 'i' } else { 'u' };
            ordered(format!("{sign}{}", integer.size * 8), integer.order, integer.size)
        }
        Datatype::Float(float) => ordered(format!("f{}", float.size * 8), float.order, float.size),
        Datatype::String(string) => format!("string[{}]", string.size),
        Datatype::VarLen(varlen) if varlen.kind != VarLenKind::Sequence => "string".to_owned(),
        Datatype::VarLen(varlen) => format!("sequence of {}", type_name(&varlen.base)),
        Datatype::Compound(compound) => {
            let names: Vec<&str> =
                compound.members.iter().take(3).map(|member| member.name.as_str()).collect();
            let more = if compound.members.len() > 3 { ", ..." } else { "" };
            format!("{{{}{more}}}", names.join(", "))
        }
        Datatype::Array(array) => {
            let sides: Vec<_> = array.dims.iter().map(u32::to_string).collect();
            format!("{}[{}]", type_name(&array.base), sides.join("x"))
        }
        Datatype::Opaque(opaque) => format!("opaque[{}]", opaque.size),
        Datatype::Bitfield(bits) => format!("bits{}", bits.size * 8),
        other => other.class_name().to_owned(),
    }
}

fn shape(extent: &Extent) -> String {
    match extent {
        Extent::Null => return "null".to_owned(),
        Extent::Scalar => return "scalar".to_owned(),
        _ => {}
    }
    let axes = extent.dims().iter().zip(extent.max_dims()).map(|(&now, &max)| match max {
        UNLIMITED => format!("{}/∞", numbers::grouped(now)),
        max if max != now => format!("{}/{}", numbers::grouped(now), numbers::grouped(max)),
        _ => numbers::grouped(now),
    });
    axes.collect::<Vec<_>>().join(" x ")
}

fn filters(dataset: &Dataset) -> String {
    let names = |filters: &[FilterSpec]| {
        let named: Vec<String> = filters.iter().map(short_name).collect();
        named.join(" ")
    };
    match dataset.is_sparse() {
        true => {
            let (places, values) = (names(&dataset.location_filters()), names(&dataset.filters()));
            if places.is_empty() { values } else { format!("{places} | {values}") }
        }
        false => match (dataset.layout(), names(&dataset.filters())) {
            (LayoutKind::Compact, _) => "compact".to_owned(),
            (LayoutKind::Virtual, _) => "virtual".to_owned(),
            (LayoutKind::External, _) => "external".to_owned(),
            (_, names) => names,
        },
    }
}

fn short_name(filter: &FilterSpec) -> String {
    let name = filter_name(filter);
    let name = if name == "method" { format!("filter {}", filter.id) } else { name.to_lowercase() };
    let name = name.split([':', ';', ',', '(']).next().unwrap_or_default().trim().to_owned();
    match (filter.id, filter.parameters.first()) {
        (1, Some(level)) => format!("{name}-{level}"),
        _ => name,
    }
}

fn logical(extent: &Extent, dataset: &Dataset) -> Option<u64> {
    extent.cells()?.checked_mul(dataset.datatype().size() as u64)
}

/// The bytes of elements divided by stored bytes.
fn ratio(logical: Option<u64>, stored: u64) -> Option<String> {
    if stored == 0 {
        return None;
    }
    let ratio = logical.map_or(f64::INFINITY, |logical| logical as f64 / stored as f64);
    Some(match ratio {
        ratio if ratio >= 1000.0 => format!("{}x", numbers::grouped(ratio as u64)),
        ratio if ratio >= 100.0 => format!("{ratio:.0}x"),
        ratio => format!("{ratio:.1}x"),
    })
}

/// The facts as JSON: a list of objects in the order of the tree.
pub(super) fn print_json(
    out: &mut impl Write,
    file: &File,
    title: &str,
    inside: &str,
) -> Result<bool> {
    struct Objects(Vec<Value>, bool);
    impl Visitor for Objects {
        fn enter_group(&mut self, path: &str, group: &Group) -> Result<bool> {
            let attributes = group.attributes().map_or(0, |attributes| attributes.len());
            self.0.push(json!({ "path": path, "kind": "group", "attributes": attributes }));
            Ok(true)
        }
        fn dataset(&mut self, path: &str, dataset: &Dataset) -> Result<()> {
            self.0.push(describe(path, dataset).unwrap_or_else(|error| {
                self.1 = false;
                json!({ "path": path, "kind": "dataset", "error": error.to_string() })
            }));
            Ok(())
        }
        fn datatype(&mut self, path: &str, datatype: &CommittedDatatype) -> Result<()> {
            let text = pumice::types::ddl::inline(datatype.datatype()).to_string();
            self.0.push(json!({ "path": path, "kind": "datatype", "type": text }));
            Ok(())
        }
        fn other(&mut self, path: &str, kind: &MemberKind) -> Result<()> {
            self.0.push(match kind {
                MemberKind::SoftLink(to) => {
                    json!({ "path": path, "kind": "soft link", "target": to })
                }
                MemberKind::ExternalLink(file, to) => {
                    json!({ "path": path, "kind": "external link", "file": file, "target": to })
                }
                _ => json!({ "path": path, "kind": "other" }),
            });
            Ok(())
        }
        fn again(&mut self, path: &str, _kind: Kind, first: &str) -> Result<()> {
            self.0.push(json!({ "path": path, "kind": "hard link", "target": first }));
            Ok(())
        }
        fn failed(&mut self, path: &str, error: Error) -> Result<()> {
            self.1 = false;
            self.0.push(json!({ "path": path, "kind": "unknown", "error": error.to_string() }));
            Ok(())
        }
    }
    let mut objects = Objects(Vec::new(), true);
    match inside {
        "" => walker::walk(file, &mut objects)?,
        path => match file.node(path)? {
            pumice::Node::Group(group) => walker::walk(&group, &mut objects)?,
            pumice::Node::Dataset(dataset) => objects.dataset(dataset.path(), &dataset)?,
            pumice::Node::Datatype(datatype) => objects.datatype(datatype.path(), &datatype)?,
        },
    }
    let document = json!({ "file": title, "objects": objects.0 });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)?;
    Ok(objects.1)
}

fn describe(path: &str, dataset: &Dataset) -> Result<Value> {
    let extent = dataset.extent()?;
    let maximum: Vec<Option<u64>> =
        extent.max_dims().iter().map(|&side| (side != UNLIMITED).then_some(side)).collect();
    let names = |filters: Vec<FilterSpec>| -> Vec<Value> {
        let describe = |filter: &FilterSpec| json!({ "id": filter.id, "name": filter_name(filter), "parameters": filter.parameters });
        filters.iter().map(describe).collect()
    };
    let mut value = json!({
        "path": path,
        "kind": "dataset",
        "type": pumice::types::ddl::inline(dataset.datatype()).to_string(),
        "element_bytes": dataset.datatype().size(),
        "shape": if extent.is_null() { Value::Null } else { json!(extent.dims()) },
        "max_shape": maximum,
        "layout": format!("{:?}", dataset.layout()).to_lowercase(),
        "chunk": dataset.chunk(),
        "filters": names(dataset.filters()),
        "logical_bytes": logical(&extent, dataset),
        "stored_bytes": dataset.storage_size()?,
        "attributes": dataset.attributes()?.len(),
    });
    if dataset.is_sparse() {
        value["location_filters"] = json!(names(dataset.location_filters()));
        value["defined_cells"] = json!(dataset.count_defined(..)?);
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_show_how_objects_hang_together() {
        let file = File::in_memory().unwrap();
        file.new_dataset::<f32>().shape([10, 20]).create("a/b/plain").unwrap();
        file.create_group("a/c").unwrap();
        let matrix = file.new_dataset::<i16>().shape([1000, 1000]).chunk([500, 500]).sparse();
        let matrix = matrix.create("z").unwrap();
        matrix.write_points(&[[1, 2]], &[3i16]).unwrap();
        let mut out = Vec::new();
        assert!(print(&mut out, &file, "x.h5", "").unwrap());
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "x.h5");
        assert_eq!(lines[1], "├── a/");
        assert_eq!(lines[2], "│   ├── b/");
        assert!(lines[3].starts_with("│   │   └── plain  f32  10 x 20"), "{text}");
        assert_eq!(lines[4], "│   └── c/");
        assert!(
            lines[5].starts_with("└── z              i16  1,000 x 1,000 sparse  chunk 500 x 500"),
            "{text}"
        );
        assert_eq!(Style::plain().paint(Role::Group, "x"), "x");
    }
}
