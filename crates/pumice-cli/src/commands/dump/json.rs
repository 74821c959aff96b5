//! A file as JSON. The schema is in docs/tools.md.

use super::options::Options;
use crate::cells::{self, Hyperslab};
use crate::ddl;
use anyhow::Result;
use pumice::types::Value;
use pumice::{Attribute, Dataset, Datatype, File, Group, MemberKind, Node};
use std::collections::HashSet;
use std::io::Write;

/// Prints a file.
pub(super) fn print(file: &File, name: &str, options: &Options, out: &mut dyn Write) -> Result<()> {
    let mut printer = Printer { options, out, seen: HashSet::new() };
    write!(printer.out, "{{\"file\":{},\"root\":", text(name))?;
    printer.group(file, 0)?;
    Ok(writeln!(printer.out, "}}")?)
}

/// Groups nested deeper than this are not entered.
const MAX_DEPTH: usize = 256;

struct Printer<'a> {
    options: &'a Options,
    out: &'a mut dyn Write,
    /// Addresses of objects that were printed.
    seen: HashSet<u64>,
}

impl Printer<'_> {
    fn group(&mut self, group: &Group, depth: usize) -> Result<()> {
        write!(self.out, "{{\"kind\":\"group\",\"address\":{}", group.address())?;
        self.seen.insert(group.address());
        self.attributes(group.attributes())?;
        write!(self.out, ",\"members\":{{")?;
        let members = if depth < MAX_DEPTH { group.members()? } else { Vec::new() };
        for (index, member) in members.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(self.out, "{comma}{}:", text(&member.name))?;
            match &member.kind {
                MemberKind::SoftLink(target) => {
                    write!(self.out, "{{\"kind\":\"soft link\",\"target\":{}}}", text(target))?;
                }
                MemberKind::ExternalLink(file, target) => write!(
                    self.out,
                    "{{\"kind\":\"external link\",\"file\":{},\"target\":{}}}",
                    text(file),
                    text(target)
                )?,
                _ => self.node(group.node(&member.name), depth)?,
            }
        }
        Ok(write!(self.out, "}}}}")?)
    }

    fn node(&mut self, node: pumice::Result<Node>, depth: usize) -> Result<()> {
        match node {
            Ok(node) if self.seen.contains(&node.address()) => {
                Ok(write!(self.out, "{{\"kind\":\"hard link\",\"address\":{}}}", node.address())?)
            }
            Ok(Node::Group(group)) => self.group(&group, depth + 1),
            Ok(Node::Dataset(dataset)) => self.dataset(&dataset),
            Ok(Node::Datatype(datatype)) => {
                self.seen.insert(datatype.address());
                let name = text(&datatype.datatype().to_string());
                write!(self.out, "{{\"kind\":\"datatype\",\"address\":{}", datatype.address())?;
                write!(self.out, ",\"type\":{name}")?;
                self.attributes(datatype.attributes())?;
                Ok(write!(self.out, "}}")?)
            }
            Err(error) => Ok(write!(
                self.out,
                "{{\"kind\":\"error\",\"error\":{}}}",
                text(&error.to_string())
            )?),
        }
    }

    fn dataset(&mut self, dataset: &Dataset) -> Result<()> {
        self.seen.insert(dataset.address());
        let max = dataset.max_shape().into_iter();
        let max: Vec<String> =
            max.map(|side| side.map_or("null".into(), |side| side.to_string())).collect();
        let layout = format!("{:?}", dataset.layout()).to_lowercase();
        write!(
            self.out,
            "{{\"kind\":\"dataset\",\"address\":{},\"type\":{},\"space\":{},\"shape\":{:?},\
             \"max_shape\":[{}],\"layout\":\"{layout}\",\"stored\":{}",
            dataset.address(),
            text(&dataset.datatype().to_string()),
            text(&ddl::dataspace(&dataset.extent()?)),
            dataset.shape(),
            max.join(","),
            dataset.storage_size()?
        )?;
        if let Some(chunk) = dataset.chunk() {
            write!(self.out, ",\"chunk\":{chunk:?}")?;
        }
        let filters = dataset.section_filters();
        let sections: Vec<String> = dataset
            .sections()
            .into_iter()
            .map(|section| {
                let list = filters.of(section).iter();
                let list: Vec<String> = list
                    .map(|filter| {
                        format!("{{\"id\":{},\"parameters\":{:?}}}", filter.id, filter.parameters)
                    })
                    .collect();
                format!("\"{}\":[{}]", section.name(), list.join(","))
            })
            .collect();
        write!(self.out, ",\"filters\":{{{}}}", sections.join(","))?;
        self.attributes(dataset.attributes())?;
        if self.options.values {
            self.values(dataset)?;
        }
        Ok(write!(self.out, "}}")?)
    }

    fn values(&mut self, dataset: &Dataset) -> Result<()> {
        if dataset.extent()?.is_null() {
            return Ok(());
        }
        let slab = Hyperslab::whole(&dataset.shape());
        if dataset.is_sparse() && !self.options.dense {
            return self.defined(dataset, &slab);
        }
        write!(self.out, ",\"values\":[")?;
        let mut first = true;
        cells::for_each_piece(dataset, &slab, |_, _, piece| {
            let values = piece.values(dataset.datatype()).map_err(pumice::Error::from)?;
            write_all(self.out, &values, &mut first)
        })?;
        Ok(write!(self.out, "]")?)
    }

    /// Defined cells: coordinates and values.
    fn defined(&mut self, dataset: &Dataset, slab: &Hyperslab) -> Result<()> {
        let shape = dataset.shape();
        let mut place = Vec::new();
        write!(self.out, ",\"defined\":[")?;
        let mut comma = "";
        cells::for_each_band(dataset, slab, |band| {
            let found = cells::Defined::read(dataset, band)?;
            let datatype = cells::value_type(dataset.datatype());
            let values = found.values.values(&datatype).map_err(pumice::Error::from)?;
            for (&linear, value) in found.cells.iter().zip(&values) {
                cells::coordinates(linear, &shape, &mut place);
                write!(self.out, "{comma}[{place:?},{}]", json(value))?;
                comma = ",";
            }
            Ok(())
        })?;
        Ok(write!(self.out, "]")?)
    }

    fn attributes(&mut self, attributes: pumice::Result<Vec<Attribute>>) -> Result<()> {
        if !self.options.attributes {
            return Ok(());
        }
        write!(self.out, ",\"attributes\":{{")?;
        for (index, attribute) in attributes?.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let (kind, space) = (attribute.datatype(), ddl::dataspace(attribute.extent()));
            write!(
                self.out,
                "{comma}{}:{{\"type\":{}",
                text(attribute.name()),
                text(&kind.to_string())
            )?;
            write!(self.out, ",\"space\":{}", text(&space))?;
            if self.options.attribute_values && !attribute.extent().is_null() {
                self.attribute_values(attribute, kind)?;
            }
            write!(self.out, "}}")?;
        }
        Ok(write!(self.out, "}}")?)
    }

    fn attribute_values(&mut self, attribute: &Attribute, _datatype: &Datatype) -> Result<()> {
        write!(self.out, ",\"values\":[")?;
        write_all(self.out, &attribute.read_values()?, &mut true)?;
        Ok(write!(self.out, "]")?)
    }
}

fn write_all(out: &mut dyn Write, values: &[Value], first: &mut bool) -> Result<()> {
    for value in values {
        let comma = if std::mem::take(first) { "" } else { "," };
        write!(out, "{comma}{}", json(value))?;
    }
    Ok(())
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
