//! `pumice ls`: names, kinds and shapes in h5ls's manner.

use super::{Outcome, output};
use crate::cells::{self, Hyperslab};
use crate::cli::Ls;
use crate::value::Renderer;
use crate::walker::{self, Kind, Visitor};
use crate::{failure, locate, numbers};
use anyhow::{Result, bail};
use pumice::types::ddl::inline;
use pumice::{
    Attribute, Dataset, Error, Extent, File, FilterSpec, Group, LayoutKind, MemberKind, Node,
    UNLIMITED,
};
use std::io::Write;

/// Attributes with more elements are listed without their values.
const FEW: usize = 8;

pub(super) fn run(arguments: &Ls) -> Result<Outcome> {
    let (path, inside) = locate::split_target(&arguments.target);
    let file = File::open(path)?;
    let mut out = output();
    let mut lister = Lister {
        out: &mut out,
        recursive: arguments.recursive,
        verbose: arguments.verbose,
        root: String::new(),
        outcome: Outcome::Complete,
    };
    lister.list(&file, inside.trim_matches('/'))?;
    let outcome = lister.outcome;
    out.flush()?;
    Ok(outcome)
}

/// Prints a line, or several, for each object.
struct Lister<'a, W> {
    out: &'a mut W,
    recursive: bool,
    verbose: bool,
    /// The path of the group that is listed; names are relative to it.
    root: String,
    outcome: Outcome,
}

impl<W: Write> Lister<'_, W> {
    fn list(&mut self, file: &File, inside: &str) -> Result<()> {
        if let Some(target) = soft_target(file, inside) {
            return self.line(walker::name(inside), &format!("Soft Link {{{target}}}"));
        }
        let group = match (inside, file.node(inside)) {
            ("", _) => Group::clone(file),
            (_, Ok(Node::Group(group))) => group,
            (_, Ok(Node::Dataset(dataset))) => {
                return self.show_dataset(walker::name(inside), &dataset);
            }
            (_, Ok(Node::Datatype(_))) => {
                return self.other(inside, &MemberKind::Datatype);
            }
            (_, Err(error)) => bail!(error),
        };
        self.root = group.path().trim_end_matches('/').to_owned();
        walker::walk(&group, self)
    }

    fn show_dataset(&mut self, name: &str, dataset: &Dataset) -> Result<()> {
        let sparse = if dataset.is_sparse() { " sparse" } else { "" };
        let extent = dims(&dataset.extent()?, self.verbose);
        self.line(name, &format!("Dataset {{{extent}}}{sparse}"))?;
        if !self.verbose {
            return Ok(());
        }
        self.show_attributes(dataset.attributes())?;
        match self.show_storage(dataset) {
            Err(error) if !failure::is_broken_pipe(&error) => {
                self.note(&error);
                Ok(())
            }
            done => done,
        }
    }

    fn show_storage(&mut self, dataset: &Dataset) -> Result<()> {
        self.detail("Location", &dataset.address().to_string())?;
        self.detail("Layout", layout(dataset.layout()))?;
        let size = dataset.datatype().size() as u64;
        if let Some(chunk) = dataset.chunk() {
            let cells = chunk.iter().fold(size, |bytes, &side| bytes.saturating_mul(side));
            let chunk: Vec<String> = chunk.iter().map(u64::to_string).collect();
            self.detail("Chunks", &format!("{{{}}} {cells} bytes", chunk.join(", ")))?;
        }
        let stored = dataset.storage_size()?;
        let all = dataset.extent()?.cells();
        let logical = all.and_then(|cells| cells.checked_mul(size));
        let logical = logical.map_or("more than 2^64".to_owned(), |bytes| bytes.to_string());
        self.detail("Storage", &format!("{logical} logical bytes, {stored} allocated bytes"))?;
        if dataset.is_sparse() {
            let defined = cells::count_defined(dataset, &Hyperslab::whole(&dataset.shape()))?;
            let density = numbers::percent(defined, all.unwrap_or(u64::MAX));
            let each = numbers::per_cell(stored, defined);
            self.detail(
                "Defined",
                &format!("{defined} cells, density {density}, {each} bytes per cell"),
            )?;
            self.show_filters("Location filter", &dataset.location_filters())?;
            self.show_filters("Value filter", &dataset.filters())?;
        } else {
            self.show_filters("Filter", &dataset.filters())?;
        }
        self.detail("Type", &inline(dataset.datatype()).to_string())
    }

    fn show_filters(&mut self, what: &str, filters: &[FilterSpec]) -> Result<()> {
        for (index, filter) in filters.iter().enumerate() {
            let parameters: Vec<String> = filter.parameters.iter().map(u32::to_string).collect();
            let optional = if filter.optional { "OPT" } else { "" };
            let name = filter_name(filter);
            self.detail(
                &format!("{what}-{index}"),
                &format!("{name}-{} {optional} {{{}}}", filter.id, parameters.join(", ")),
            )?;
        }
        Ok(())
    }

    fn show_attributes(&mut self, attributes: pumice::Result<Vec<Attribute>>) -> Result<()> {
        let attributes = match attributes {
            Ok(attributes) => attributes,
            Err(error) => {
                self.note(&error.into());
                return Ok(());
            }
        };
        for attribute in &attributes {
            let extent = match attribute.extent() {
                Extent::Null => "null".to_owned(),
                Extent::Scalar => "scalar".to_owned(),
                extent => format!("{{{}}}", dims(extent, false)),
            };
            writeln!(self.out, "    Attribute: {} {extent}", escaped(attribute.name()))?;
            writeln!(self.out, "        {:<10} {}", "Type:", inline(attribute.datatype()))?;
            if let Some(values) = few_values(attribute) {
                writeln!(self.out, "        {:<10} {values}", "Data:")?;
            }
        }
        Ok(())
    }

    /// The name under which a path is printed.
    fn shown<'p>(&self, path: &'p str) -> &'p str {
        if self.recursive {
            path.strip_prefix(self.root.as_str()).filter(|rest| !rest.is_empty()).unwrap_or(path)
        } else {
            walker::name(path)
        }
    }

    fn line(&mut self, name: &str, text: &str) -> Result<()> {
        Ok(writeln!(self.out, "{:<24} {text}", escaped(name))?)
    }

    fn detail(&mut self, name: &str, text: &str) -> Result<()> {
        Ok(writeln!(self.out, "    {:<10} {text}", format!("{name}:"))?)
    }

    /// Tells a failure and goes on.
    fn note(&mut self, error: &anyhow::Error) {
        failure::report(error);
        self.outcome = Outcome::Incomplete;
    }
}

impl<W: Write> Visitor for Lister<'_, W> {
    fn enter_group(&mut self, path: &str, group: &Group) -> Result<bool> {
        let listed = path.trim_end_matches('/') == self.root;
        // The listed group has a line of its own only if it is the root of a recursive listing.
        if !listed || (self.recursive && path == "/") {
            self.line(self.shown(path), "Group")?;
            if self.verbose {
                self.show_attributes(group.attributes())?;
                self.detail("Location", &group.address().to_string())?;
            }
        }
        Ok(listed || self.recursive)
    }

    fn dataset(&mut self, path: &str, dataset: &Dataset) -> Result<()> {
        self.show_dataset(self.shown(path), dataset)
    }

    fn other(&mut self, path: &str, kind: &MemberKind) -> Result<()> {
        let text = match kind {
            MemberKind::SoftLink(target) => format!("Soft Link {{{target}}}"),
            MemberKind::ExternalLink(file, target) => {
                let separator = if target.starts_with('/') { "/" } else { "//" };
                format!("External Link {{{file}{separator}{target}}}")
            }
            MemberKind::Datatype => "Type".to_owned(),
            _ => "UD Link {cannot follow UD links}".to_owned(),
        };
        self.line(self.shown(path), &text)
    }

    fn again(&mut self, path: &str, kind: Kind, first: &str) -> Result<()> {
        let kind = match kind {
            Kind::Group => "Group",
            Kind::Dataset => "Dataset",
        };
        self.line(self.shown(path), &format!("{kind}, same as {}", escaped(first)))
    }

    fn failed(&mut self, path: &str, error: Error) -> Result<()> {
        self.line(self.shown(path), "*ERROR*")?;
        self.note(&error.into());
        Ok(())
    }
}

/// A name as h5ls prints it, so that it can be told from what follows. Letters beyond ASCII stay.
fn escaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            '"' | '\\' | ' ' => text.extend(['\\', letter]),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            control if control.is_ascii_control() => {
                text.push_str(&format!("\\{:03o}", u32::from(control)));
            }
            letter => text.push(letter),
        }
    }
    text
}

/// Where the soft link at `path` leads, if it is one.
fn soft_target(file: &File, path: &str) -> Option<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let folder = if folder.is_empty() { Group::clone(file) } else { file.group(folder).ok()? };
    let member = folder.members().ok()?.into_iter().find(|member| member.name == name)?;
    match member.kind {
        MemberKind::SoftLink(target) => Some(target),
        _ => None,
    }
}

/// Dimensions in h5ls's manner: the maximum follows where it differs, or always.
fn dims(extent: &Extent, always: bool) -> String {
    match extent {
        Extent::Null => return "NULL".into(),
        Extent::Scalar => return "SCALAR".into(),
        _ => {}
    }
    let axes = extent.dims().iter().zip(extent.max_dims()).map(|(&now, &max)| match max {
        UNLIMITED => format!("{now}/Inf"),
        max if max != now || always => format!("{now}/{max}"),
        _ => now.to_string(),
    });
    axes.collect::<Vec<_>>().join(", ")
}

/// The values of an attribute, if they are few and can be printed.
fn few_values(attribute: &Attribute) -> Option<String> {
    let renderer = Renderer::new(attribute.datatype()).ok()?;
    let values = cells::read_attribute(attribute).ok()?;
    let elements = values.elements.chunks_exact(renderer.size().max(1));
    if elements.len() == 0 || elements.len() > FEW {
        return None;
    }
    let mut text = String::new();
    for (index, element) in elements.enumerate() {
        text.push_str(if index > 0 { ", " } else { "" });
        renderer.push_inline(&mut text, element, &values.heap);
    }
    Some(text)
}

fn layout(kind: LayoutKind) -> &'static str {
    match kind {
        LayoutKind::Compact => "compact",
        LayoutKind::Contiguous => "contiguous",
        LayoutKind::Chunked => "chunked",
        LayoutKind::Sparse => "sparse chunks",
        _ => "not supported yet",
    }
}

fn filter_name(filter: &FilterSpec) -> &str {
    match filter.id {
        1 => "deflate",
        2 => "shuffle",
        3 => "fletcher32",
        4 => "szip",
        5 => "nbit",
        6 => "scaleoffset",
        _ => filter.name.as_deref().unwrap_or("user"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_escaped_as_in_h5ls() {
        assert_eq!(super::escaped("a b\"c\\d\n\u{1}\u{e9}"), "a\\ b\\\"c\\\\d\\n\\001\u{e9}");
    }
}
