//! A file as JSON. The schema is in docs/tools.md.

use super::objects::split_attribute;
use super::options::{Options, Wanted};
use crate::cells::{self, Hyperslab};
use crate::commands::Outcome;
use crate::subset::Subset;
use crate::{ddl, failure};
use anyhow::{Context, Result};
use pumice::types::Value;
use pumice::{Attribute, CommittedDatatype, Dataset, File, Group, Member, MemberKind, Node};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{self, Write};

/// Prints a file, or the objects of it that were asked for.
pub(super) fn print(
    file: &File,
    name: &str,
    options: &Options,
    out: &mut dyn Write,
) -> Result<Outcome> {
    let (seen, outcome) = (HashSet::new(), Outcome::Complete);
    let mut printer = Printer { options, out, seen, outcome };
    write!(printer.out, "{{\"file\":{}", text(name))?;
    if options.wanted.is_empty() {
        write!(printer.out, ",\"root\":")?;
        printer.tree(Group::clone(file))?;
    } else {
        write!(printer.out, ",\"objects\":[")?;
        for (index, wanted) in options.wanted.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(printer.out, "{comma}{{\"path\":{},\"object\":", text(wanted.path()))?;
            printer.wanted(file, wanted)?;
            write!(printer.out, "}}")?;
        }
        write!(printer.out, "]")?;
    }
    writeln!(printer.out, "}}")?;
    Ok(printer.outcome)
}

/// Bytes of values that are buffered, so that an unreadable object is reported as such.
const WAITING: usize = 1 << 20;

struct Printer<'a> {
    options: &'a Options,
    out: &'a mut dyn Write,
    /// Addresses of objects that were printed.
    seen: HashSet<u64>,
    outcome: Outcome,
}

impl Printer<'_> {
    fn wanted(&mut self, file: &File, wanted: &Wanted) -> Result<()> {
        match wanted {
            Wanted::Attribute(path) => {
                let (object, name) = split_attribute(path);
                let found = file.node(&object).and_then(|node| match node {
                    Node::Group(group) => group.attribute(&name),
                    Node::Dataset(dataset) => dataset.attribute(&name),
                    Node::Datatype(datatype) => datatype.attribute(&name),
                });
                match found {
                    Ok(attribute) => {
                        let array = self.array(&attribute)?;
                        Ok(write!(self.out, "{{{array}}}")?)
                    }
                    Err(error) => self.error(&error.into(), ""),
                }
            }
            Wanted::Link(path) => {
                let (folder, name) =
                    path.trim_end_matches('/').rsplit_once('/').unwrap_or(("", path));
                let folder =
                    if folder.is_empty() { Ok(Group::clone(file)) } else { file.group(folder) };
                let found = folder.and_then(|folder| folder.members());
                let found = found.map(|all| all.into_iter().find(|member| member.name == name));
                match found.map(|found| found.and_then(|member| link(&member.kind))) {
                    Ok(Some(text)) => Ok(write!(self.out, "{text}")?),
                    Ok(None) => self.error(&anyhow::anyhow!("{path}: not a link"), ""),
                    Err(error) => self.error(&error.into(), ""),
                }
            }
            Wanted::Dataset(path, subset) => match file.dataset(path) {
                Ok(dataset) => self.dataset(&dataset, subset.as_ref()),
                Err(error) => self.error(&error.into(), ""),
            },
            _ => match file.node(wanted.path()) {
                Ok(Node::Group(group)) => self.tree(group),
                node => self.leaf(node),
            },
        }
    }

    /// A group and all that is in it.
    fn tree(&mut self, group: Group) -> Result<()> {
        // No recursion: groups may be nested deeply.
        let mut path = vec![self.begin_group(group)?];
        while let Some((group, members, first)) = path.last_mut() {
            let Some(member) = members.next() else {
                write!(self.out, "}}}}")?;
                path.pop();
                continue;
            };
            let comma = if std::mem::take(first) { "" } else { "," };
            write!(self.out, "{comma}{}:", text(&member.name))?;
            if let Some(text) = link(&member.kind) {
                write!(self.out, "{text}")?;
                continue;
            }
            match group.node(&member.name) {
                Ok(Node::Group(group)) if !self.seen.contains(&group.address()) => {
                    path.push(self.begin_group(group)?);
                }
                node => self.leaf(node)?,
            }
        }
        Ok(())
    }

    /// The text before the members of a group, and the members.
    fn begin_group(&mut self, group: Group) -> Result<(Group, std::vec::IntoIter<Member>, bool)> {
        self.seen.insert(group.address());
        let mut fields = format!(",\"address\":{}", group.address());
        let attributes = self.attributes(group.attributes(), &mut fields);
        let members = attributes.and_then(|()| Ok(group.members()?));
        self.begin("group", members.as_ref().err(), &fields)?;
        write!(self.out, ",\"members\":{{")?;
        Ok((group, members.unwrap_or_default().into_iter(), true))
    }

    /// The beginning of an object, with its kind and known fields.
    fn begin(&mut self, kind: &str, error: Option<&anyhow::Error>, fields: &str) -> Result<()> {
        match error {
            None => write!(self.out, "{{\"kind\":\"{kind}\"{fields}")?,
            Some(error) => {
                self.tell(error)?;
                let error = text(&failure::chain(error));
                write!(self.out, "{{\"kind\":\"error\",\"error\":{error}{fields}")?;
            }
        }
        Ok(())
    }

    /// The text for an unreadable object, with its known fields.
    fn error(&mut self, error: &anyhow::Error, fields: &str) -> Result<()> {
        self.begin("", Some(error), fields)?;
        Ok(write!(self.out, "}}")?)
    }

    /// Records a failure, unless the reader has gone away.
    fn tell(&mut self, error: &anyhow::Error) -> Result<()> {
        if failure::is_broken_pipe(error) {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe).into());
        }
        failure::report(error);
        self.outcome = Outcome::Incomplete;
        Ok(())
    }

    /// An object that has no members to show.
    fn leaf(&mut self, node: pumice::Result<Node>) -> Result<()> {
        match node {
            Ok(node) if self.seen.contains(&node.address()) => {
                Ok(write!(self.out, "{{\"kind\":\"hard link\",\"address\":{}}}", node.address())?)
            }
            Ok(Node::Group(group)) => self.tree(group),
            Ok(Node::Dataset(dataset)) => self.dataset(&dataset, None),
            Ok(Node::Datatype(datatype)) => self.datatype(&datatype),
            Err(error) => self.error(&error.into(), ""),
        }
    }

    fn datatype(&mut self, datatype: &CommittedDatatype) -> Result<()> {
        self.seen.insert(datatype.address());
        let name = text(&datatype.datatype().to_string());
        let mut fields = format!(",\"address\":{},\"type\":{name}", datatype.address());
        let found = self.attributes(datatype.attributes(), &mut fields);
        self.begin("datatype", found.err().as_ref(), &fields)?;
        Ok(write!(self.out, "}}")?)
    }

    fn dataset(&mut self, dataset: &Dataset, subset: Option<&Subset>) -> Result<()> {
        self.seen.insert(dataset.address());
        let mut fields = String::new();
        let known = self.facts(dataset, subset, &mut fields);
        let (slab, shown) = match known {
            Ok(slab) => (slab, self.options.values),
            Err(error) => return self.error(&error, &fields),
        };
        if !shown {
            self.begin("dataset", None, &fields)?;
            return Ok(write!(self.out, "}}")?);
        }
        let beginning = format!("{{\"kind\":\"dataset\"{fields}");
        let mut waiting =
            Waiting { out: &mut *self.out, beginning, bytes: Vec::new(), open: false };
        let found = values(dataset, &slab, self.options, &mut waiting);
        match (found, waiting.open) {
            (Ok(()), _) => waiting.release()?,
            (Err(error), true) => {
                // The text printed so far stays.
                waiting.release()?;
                self.tell(&error)?;
                write!(self.out, "],\"error\":{}", text(&failure::chain(&error)))?;
            }
            (Err(error), false) => return self.error(&error, &fields),
        }
        Ok(write!(self.out, "}}")?)
    }

    /// All fields of a dataset but its values, and the part of it whose values are wanted.
    fn facts(
        &mut self,
        dataset: &Dataset,
        subset: Option<&Subset>,
        out: &mut String,
    ) -> Result<Hyperslab> {
        let max = dataset.max_shape().into_iter();
        let max: Vec<String> =
            max.map(|side| side.map_or("null".into(), |side| side.to_string())).collect();
        let layout = format!("{:?}", dataset.layout()).to_lowercase();
        let (address, shape) = (dataset.address(), dataset.shape());
        let datatype = text(&dataset.datatype().to_string());
        // Writing to a string does not fail.
        let _ = write!(out, ",\"address\":{address},\"type\":{datatype}");
        let space = text(&ddl::dataspace(&dataset.extent()?));
        let _ = write!(out, ",\"space\":{space},\"shape\":{shape:?}");
        let _ = write!(out, ",\"max_shape\":[{}],\"layout\":\"{layout}\"", max.join(","));
        let _ = write!(out, ",\"stored\":{}", dataset.storage_size()?);
        if let Some(chunk) = dataset.chunk() {
            let _ = write!(out, ",\"chunk\":{chunk:?}");
        }
        let _ = write!(out, ",\"filters\":{{{}}}", filters(dataset));
        self.attributes(dataset.attributes(), out)?;
        let Some(subset) = subset else { return Ok(Hyperslab::whole(&shape)) };
        let slab = subset.slab(&shape).with_context(|| dataset.path().to_owned())?;
        let Hyperslab { start, stride, count, block } = &slab;
        let _ = write!(out, ",\"subset\":{{\"start\":{start:?},\"stride\":{stride:?}");
        let _ = write!(out, ",\"count\":{count:?},\"block\":{block:?}}}");
        Ok(slab)
    }

    fn attributes(
        &mut self,
        attributes: pumice::Result<Vec<Attribute>>,
        out: &mut String,
    ) -> Result<()> {
        if !self.options.attributes {
            return Ok(());
        }
        out.push_str(",\"attributes\":{");
        let all = attributes.as_ref().map_or(&[][..], Vec::as_slice);
        for (index, attribute) in all.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let array = self.array(attribute)?;
            let _ = write!(out, "{comma}{}:{{{array}}}", text(attribute.name()));
        }
        out.push('}');
        Ok(attributes.map(drop)?)
    }

    /// The fields of an attribute.
    fn array(&mut self, attribute: &Attribute) -> Result<String> {
        let datatype = text(&attribute.datatype().to_string());
        let space = text(&ddl::dataspace(attribute.extent()));
        let mut fields = format!("\"type\":{datatype},\"space\":{space}");
        if !self.options.attribute_values || attribute.extent().is_null() {
            return Ok(fields);
        }
        let found = attribute.read_values().with_context(|| attribute.name().to_owned());
        match found {
            Ok(values) => {
                let values: Vec<String> = values.iter().map(json).collect();
                let _ = write!(fields, ",\"values\":[{}]", values.join(","));
            }
            Err(error) => {
                self.tell(&error)?;
                let _ = write!(fields, ",\"error\":{}", text(&failure::chain(&error)));
            }
        }
        Ok(fields)
    }
}

/// A link that is not followed.
fn link(kind: &MemberKind) -> Option<String> {
    Some(match kind {
        MemberKind::SoftLink(target) => {
            format!("{{\"kind\":\"soft link\",\"target\":{}}}", text(target))
        }
        MemberKind::ExternalLink(file, target) => {
            let (file, target) = (text(file), text(target));
            format!("{{\"kind\":\"external link\",\"file\":{file},\"target\":{target}}}")
        }
        MemberKind::UserDefinedLink(class) => {
            format!("{{\"kind\":\"user-defined link\",\"class\":{class}}}")
        }
        _ => return None,
    })
}

/// The filters of each section.
fn filters(dataset: &Dataset) -> String {
    let filters = dataset.section_filters();
    let section = |section: pumice::Section| {
        let list = filters.of(section).iter().map(|filter| {
            format!("{{\"id\":{},\"parameters\":{:?}}}", filter.id, filter.parameters)
        });
        format!("\"{}\":[{}]", section.name(), list.collect::<Vec<_>>().join(","))
    };
    dataset.sections().into_iter().map(section).collect::<Vec<_>>().join(",")
}

/// Buffered values: the first of them wait for errors.
struct Waiting<'a> {
    out: &'a mut dyn Write,
    /// The text before the values.
    beginning: String,
    bytes: Vec<u8>,
    /// Whether something was written.
    open: bool,
}

impl Waiting<'_> {
    fn release(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.open, true) {
            self.out.write_all(self.beginning.as_bytes())?;
        }
        self.out.write_all(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }

    fn push(&mut self, text: &str) -> io::Result<()> {
        self.bytes.extend_from_slice(text.as_bytes());
        if self.bytes.len() < WAITING { Ok(()) } else { self.release() }
    }
}

fn values(
    dataset: &Dataset,
    slab: &Hyperslab,
    options: &Options,
    out: &mut Waiting<'_>,
) -> Result<()> {
    if dataset.extent()?.is_null() {
        return Ok(());
    }
    if dataset.is_sparse() && !options.dense {
        return defined(dataset, slab, out);
    }
    out.push(",\"values\":[")?;
    let mut comma = "";
    cells::for_each_piece(dataset, slab, |_, _, piece| {
        for value in piece.values(dataset.datatype()).map_err(pumice::Error::from)? {
            out.push(comma)?;
            out.push(&json(&value))?;
            comma = ",";
        }
        Ok(())
    })?;
    Ok(out.push("]")?)
}

/// Defined cells: coordinates and values.
fn defined(dataset: &Dataset, slab: &Hyperslab, out: &mut Waiting<'_>) -> Result<()> {
    let shape = dataset.shape();
    let mut place = Vec::new();
    out.push(",\"defined\":[")?;
    let mut comma = "";
    cells::for_each_band(dataset, slab, |band| {
        let found = cells::Defined::read(dataset, band)?;
        let datatype = cells::value_type(dataset.datatype());
        let values = found.values.values(&datatype).map_err(pumice::Error::from)?;
        for (&linear, value) in found.cells.iter().zip(&values) {
            cells::coordinates(linear, &shape, &mut place);
            out.push(&format!("{comma}[{place:?},{}]", json(value)))?;
            comma = ",";
        }
        Ok(())
    })?;
    Ok(out.push("]")?)
}

/// A value: numbers as numbers, other than finite ones as text, texts as text.
fn json(value: &Value) -> String {
    let list = |values: &[Value]| {
        let values: Vec<String> = values.iter().map(json).collect();
        format!("[{}]", values.join(","))
    };
    let float = |number: f64| match number.is_finite() {
        true => format!("{number:?}"),
        false => format!("\"{number}\""),
    };
    let hex = |bytes: &[u8]| {
        let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        text(&digits)
    };
    match value {
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => float(*number),
        Value::Complex(real, imaginary) => format!("[{},{}]", float(*real), float(*imaginary)),
        Value::Text(bytes) => text(&String::from_utf8_lossy(bytes)),
        Value::Enum(Some(name), _) => text(name),
        Value::Enum(None, number) => number.to_string(),
        Value::Bytes(bytes) | Value::Reference(bytes) => hex(bytes),
        Value::Compound(members) => {
            let members =
                members.iter().map(|(name, value)| format!("{}:{}", text(name), json(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        Value::Array(values) | Value::Sequence(values) => list(values),
        _ => "null".to_owned(),
    }
}

/// Text in quotes.
fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            letter if letter < ' ' => out.push_str(&format!("\\u{:04x}", letter as u32)),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_json() {
        assert_eq!(text("a\"\\\n\u{1}é"), "\"a\\\"\\\\\\n\\u0001é\"");
        assert_eq!(json(&Value::Float(0.1)), "0.1");
        assert_eq!(json(&Value::Float(f64::NAN)), "\"NaN\"");
        let compound =
            Value::Compound(vec![("x".into(), Value::Integer(1)), ("y".into(), Value::Null)]);
        assert_eq!(json(&Value::Array(vec![compound])), "[{\"x\":1,\"y\":null}]");
    }
}
