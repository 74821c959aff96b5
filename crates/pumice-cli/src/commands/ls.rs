//! `pumice ls`, and h5ls: names, kinds and shapes, one line for each object.
//!
//! Takes h5ls's flags and prints its output. Sparse datasets are marked, and with -v their defined
//! cells are counted.

mod elsewhere;
mod options;
mod tree;
mod types;
mod values;

use super::{Outcome, answered, output, understood};
use crate::cells::{self, Hyperslab};
use crate::ddl::memory_size;
use crate::failure;
use crate::walker::{self, Kind, Visitor};
use crate::{flags, locate, numbers, sections};
use anyhow::{Context, Result, bail};
pub(super) use options::FLAGS;
use options::Options;
use pumice::types::VarLenKind;
use pumice::{
    Attribute, ChunkInfo, CommittedDatatype, Dataset, Datatype, Error, Extent, File, FilterSpec,
    Group, LayoutKind, MemberKind, Node, UNLIMITED,
};
use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{self, IsTerminal, Write};

/// Runs with the words behind the command's name.
pub(super) fn run(arguments: &[String], program: &str) -> Result<Outcome> {
    let options = understood(Options::parse(arguments), program)?;
    if answered(program, options.help.then_some(help), options.version) {
        return Ok(Outcome::Complete);
    }
    let mut out = output();
    let mut outcome = Outcome::Complete;
    for target in &options.targets {
        let (path, inside) = locate::split_target(target);
        let opened =
            options.driver.open(path).with_context(|| format!("{target}: unable to open file"));
        let file = match opened {
            Ok(file) => file,
            Err(error) => {
                failure::report(&error);
                outcome = Outcome::Incomplete;
                continue;
            }
        };
        // h5ls prints no trees of its own accord.
        let watched = options.plain && !program.starts_with("h5") && io::stdout().is_terminal();
        if options.json || options.tree || watched {
            let inside = inside.trim_matches('/');
            let complete = match options.json {
                true => tree::print_json(&mut out, &file, path, inside)?,
                false => tree::print(&mut out, &file, target, inside)?,
            };
            if !complete {
                outcome = Outcome::Incomplete;
            }
            continue;
        }
        if options.verbose {
            writeln!(out, "Opened \"{path}\" with sec2 driver.")?;
        }
        let mut lister = Lister::new(&mut out, &options, &file);
        lister.list(inside.trim_matches('/'))?;
        if lister.outcome == Outcome::Incomplete {
            outcome = Outcome::Incomplete;
        }
    }
    out.flush()?;
    Ok(outcome)
}

/// Prints a line, or several, for each object.
struct Lister<'a, W> {
    out: &'a mut W,
    options: &'a Options,
    file: &'a File,
    /// The path of the group that is listed; names are relative to it.
    root: String,
    /// Links that were followed.
    followed: HashSet<String>,
    /// The path of a link that is being followed: its line is there already.
    entering: Option<String>,
    /// libhdf5's number of the file that is listed.
    number: u32,
    outcome: Outcome,
}

impl<'a, W: Write> Lister<'a, W> {
    fn new(out: &'a mut W, options: &'a Options, file: &'a File) -> Self {
        let (root, followed) = (String::new(), HashSet::new());
        let (entering, number, outcome) = (None, 1, Outcome::Complete);
        Self { out, options, file, root, followed, entering, number, outcome }
    }

    fn list(&mut self, inside: &str) -> Result<()> {
        if let Some(kind) = self.link_at(inside) {
            write!(self.out, "{:<24} ", escaped(inside))?;
            self.root = format!("/{inside}");
            let path = self.root.clone();
            return self.link(&path, &kind);
        }
        let group = match (inside, self.file.node(inside)) {
            ("", _) => Group::clone(self.file),
            (_, Ok(Node::Group(group))) => group,
            (_, Ok(Node::Dataset(dataset))) => return self.dataset(dataset.path(), &dataset),
            (_, Ok(Node::Datatype(datatype))) => return self.datatype(datatype.path(), &datatype),
            (_, Err(error)) => bail!(error),
        };
        if self.options.literal {
            self.name(group.path())?;
            return self.group_lines(&group);
        }
        self.root = group.path().trim_end_matches('/').to_owned();
        walker::walk(&group, self)
    }

    /// The link at a path, if it is one.
    fn link_at(&self, path: &str) -> Option<MemberKind> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let root = || Group::clone(self.file);
        let folder = if folder.is_empty() { root() } else { self.file.group(folder).ok()? };
        let member = folder.members().ok()?.into_iter().find(|member| member.name == name)?;
        match member.kind {
            MemberKind::Group | MemberKind::Dataset | MemberKind::Datatype => None,
            link => Some(link),
        }
    }

    /// The beginning of a line.
    fn name(&mut self, path: &str) -> Result<()> {
        let relative = path.strip_prefix(self.root.as_str()).filter(|rest| !rest.is_empty());
        let shown = match self.options.recursive || self.options.full {
            true => relative.unwrap_or(path),
            false => walker::name(path),
        };
        Ok(write!(self.out, "{:<24} ", escaped(shown))?)
    }

    fn group_lines(&mut self, group: &Group) -> Result<()> {
        writeln!(self.out, "Group")?;
        if self.options.verbose { self.group_details(group) } else { Ok(()) }
    }

    fn group_details(&mut self, group: &Group) -> Result<()> {
        let modified = group.modified().filter(|_| group.header_version() > 1);
        let facts = (group.address(), group.link_count(), modified, group.comment());
        self.common(group.attributes(), facts)
    }

    fn dataset_lines(&mut self, dataset: &Dataset) -> Result<()> {
        let title = self.dataset_title(dataset)?;
        writeln!(self.out, "{title}")?;
        if self.options.verbose {
            self.dataset_details(dataset)?;
        }
        if self.options.data {
            let shown = self.values(dataset);
            self.survive(shown)?;
        }
        Ok(())
    }

    fn dataset_title(&self, dataset: &Dataset) -> Result<String> {
        let sparse = if dataset.is_sparse() { " sparse" } else { "" };
        let extent = dims(&dataset.extent()?, self.options.verbose);
        Ok(format!("Dataset {{{extent}}}{sparse}"))
    }

    fn dataset_details(&mut self, dataset: &Dataset) -> Result<()> {
        let (address, links) = (dataset.address(), dataset.link_count());
        // h5ls tells the time that the header keeps, not that of a message.
        let modified = dataset.modified().filter(|_| dataset.header_version() > 1);
        let facts = (address, links, modified, dataset.comment());
        self.common(dataset.attributes(), facts)?;
        let shown = self.storage(dataset);
        self.survive(shown)
    }

    fn datatype_lines(&mut self, datatype: &CommittedDatatype) -> Result<()> {
        writeln!(self.out, "Type")?;
        if self.options.verbose { self.datatype_details(datatype) } else { Ok(()) }
    }

    fn datatype_details(&mut self, datatype: &CommittedDatatype) -> Result<()> {
        let (address, links) = (datatype.address(), datatype.link_count());
        let modified = datatype.modified().filter(|_| datatype.header_version() > 1);
        let facts = (address, links, modified, datatype.comment());
        self.common(datatype.attributes(), facts)?;
        let text = self.type_words(datatype.datatype(), Some(address));
        self.detail("Type", &text)
    }

    /// The lines common to all kinds of objects.
    fn common(
        &mut self,
        attributes: pumice::Result<Vec<Attribute>>,
        (address, links, modified, comment): (u64, u32, Option<u32>, Option<String>),
    ) -> Result<()> {
        match attributes {
            Ok(attributes) => {
                for attribute in &attributes {
                    self.attribute(attribute)?;
                }
            }
            Err(error) => self.survive(Err(error.into()))?,
        }
        self.detail("Location", &format!("{}:{address}", self.number))?;
        self.detail("Links", &links.to_string())?;
        if let Some(seconds) = modified.filter(|seconds| *seconds > 0) {
            self.detail("Modified", &numbers::time(seconds.into()))?;
        }
        if let Some(comment) = comment {
            let comment = comment.replace('\\', "\\\\").replace('"', "\\\"");
            self.detail("Comment", &format!("\"{comment}\""))?;
        }
        Ok(())
    }

    fn attribute(&mut self, attribute: &Attribute) -> Result<()> {
        let extent = match attribute.extent() {
            Extent::Null => "null".to_owned(),
            Extent::Scalar => "scalar".to_owned(),
            extent => {
                let axes: Vec<_> = extent.dims().iter().map(u64::to_string).collect();
                format!("{{{}}}", axes.join(", "))
            }
        };
        writeln!(self.out, "    Attribute: {} {extent}", escaped(attribute.name()))?;
        let text = self.type_words(attribute.datatype(), attribute.committed_datatype());
        writeln!(self.out, "        {:<10} {text}", "Type:")?;
        if self.options.data {
            let shown = self.attribute_values(attribute);
            self.survive(shown)?;
        }
        Ok(())
    }

    fn storage(&mut self, dataset: &Dataset) -> Result<()> {
        let size = memory_size(dataset.datatype());
        if let Some(chunk) = dataset.chunk() {
            let bytes = chunk.iter().fold(size, |bytes, &side| bytes.saturating_mul(side));
            let chunk: Vec<String> = chunk.iter().map(u64::to_string).collect();
            let name = match dataset.sections().len() {
                _ if dataset.is_sparse() => "Sparse Chunks",
                0 | 1 => "Chunks",
                _ => "Structured Chunks",
            };
            self.detail(name, &format!("{{{}}} {bytes} bytes", chunk.join(", ")))?;
        }
        self.elsewhere(dataset)?;
        let all = dataset.extent()?.cells();
        let stored = dataset.storage_size()?;
        let text = match dataset.datatype() {
            Datatype::VarLen(varlen) if varlen.kind == VarLenKind::Sequence => {
                "information not available".into()
            }
            Datatype::Reference(_) => "reference information not available".into(),
            _ => used(all.and_then(|cells| cells.checked_mul(size)), stored),
        };
        self.detail("Storage", &text)?;
        if dataset.is_sparse() {
            self.defined(dataset, all, stored)?;
        }
        self.sections(dataset)?;
        let text = self.type_words(dataset.datatype(), dataset.committed_datatype());
        self.detail("Type", &text)?;
        if self.options.address {
            self.addresses(dataset)?;
        }
        Ok(())
    }

    /// Where elements are, as the file counts: one address, or that of the chunk index, and all chunks.
    fn addresses(&mut self, dataset: &Dataset) -> Result<()> {
        let creation = dataset.creation()?;
        let shown = |address: Option<u64>| address.unwrap_or(u64::MAX).to_string();
        if dataset.chunk().is_none() {
            return match dataset.layout() {
                LayoutKind::Contiguous | LayoutKind::External => {
                    self.detail("Address", &shown(creation.address))
                }
                _ => Ok(()),
            };
        }
        writeln!(self.out, "    Address: {}", shown(creation.index_address))?;
        if creation.index_address.is_none() || dataset.is_sparse() {
            return Ok(());
        }
        writeln!(self.out, "           Flags    Bytes     Address          Logical Offset")?;
        writeln!(
            self.out,
            "        ========== ======== ========== =============================="
        )?;
        let base = self.file.info()?.user_block_size;
        for chunk in dataset.chunks()? {
            let ChunkInfo { offset, address, size, filter_mask, .. } = chunk?;
            let offset: String = offset.iter().map(|at| format!("{at}, ")).collect();
            let address = address.saturating_sub(base);
            writeln!(self.out, "        {filter_mask:#010x} {size:8} {address:10} [{offset}0]")?;
        }
        Ok(())
    }

    fn defined(&mut self, dataset: &Dataset, all: Option<u64>, stored: u64) -> Result<()> {
        let defined = cells::count_defined(dataset, &Hyperslab::whole(&dataset.shape()))?;
        let density = numbers::percent(defined, all.unwrap_or(u64::MAX));
        let each = numbers::per_cell(stored, defined);
        let text = format!("{defined} cells, density {density}, {each} bytes per cell");
        self.detail("Defined", &text)
    }

    /// The bytes and filters of each section of structured chunks; of other chunks, the filters
    /// alone.
    fn sections(&mut self, dataset: &Dataset) -> Result<()> {
        if dataset.sections().len() < 2 {
            return self.filters(&dataset.filters());
        }
        let filters = dataset.section_filters();
        for (number, sizes) in sections::sizes(dataset)?.iter().enumerate() {
            writeln!(self.out, "    Section {number} {}", sizes.section.name())?;
            self.detail("Storage", &used(Some(sizes.plain), sizes.stored))?;
            self.filters(filters.of(sizes.section))?;
        }
        Ok(())
    }

    fn filters(&mut self, filters: &[FilterSpec]) -> Result<()> {
        for (index, filter) in filters.iter().enumerate() {
            let parameters: Vec<String> = filter.parameters.iter().map(u32::to_string).collect();
            let optional = if filter.optional { "OPT" } else { "" };
            let name = filter_name(filter);
            self.detail(
                &format!("Filter-{index}"),
                &format!("{name}-{} {optional} {{{}}}", filter.id, parameters.join(", ")),
            )?;
        }
        Ok(())
    }

    fn type_words(&self, datatype: &Datatype, committed: Option<u64>) -> String {
        let shared = committed.map_or(String::new(), |address| format!("shared-1:{address}"));
        // h5ls writes the two without a space between them.
        format!("{shared}{}", types::words(datatype, 15, self.options.portable))
    }

    fn detail(&mut self, name: &str, text: &str) -> Result<()> {
        Ok(writeln!(self.out, "    {:<10} {text}", format!("{name}:"))?)
    }

    /// A link, and its target if that is wanted.
    fn link(&mut self, path: &str, kind: &MemberKind) -> Result<()> {
        let (text, follow) = match kind {
            MemberKind::SoftLink(target) => {
                (format!("Soft Link {{{target}}}"), self.options.follow_soft)
            }
            MemberKind::ExternalLink(file, target) => {
                let separator = if target.starts_with('/') { "/" } else { "//" };
                let text = format!("External Link {{{file}{separator}{target}}}");
                (text, self.options.follow_external)
            }
            _ => ("UD Link {cannot follow UD links}".to_owned(), false),
        };
        write!(self.out, "{text}")?;
        if !follow {
            return Ok(writeln!(self.out)?);
        }
        let outer = self.number;
        if matches!(kind, MemberKind::ExternalLink(..)) {
            // libhdf5 numbers files as they are opened, and h5ls follows a link four times.
            self.number += 4;
        }
        let done = self.follow(path, &text);
        self.number = outer;
        done
    }

    /// The target of a followed link, in braces, and its members.
    fn follow(&mut self, path: &str, link: &str) -> Result<()> {
        if !self.followed.insert(link.to_owned()) {
            return Ok(writeln!(self.out, " {{Already Visited}}")?);
        }
        let node = self.file.node(path);
        let title = match &node {
            Ok(Node::Group(_)) => "Group".to_owned(),
            Ok(Node::Dataset(dataset)) => self.dataset_title(dataset)?,
            Ok(Node::Datatype(_)) => "Type".to_owned(),
            Err(_) => {
                if self.options.no_dangling {
                    self.outcome = Outcome::Incomplete;
                }
                return Ok(writeln!(self.out, " {{**NOT FOUND**}}")?);
            }
        };
        write!(self.out, " {{{title}")?;
        if self.options.verbose {
            writeln!(self.out)?;
            match &node {
                Ok(Node::Group(group)) => self.group_details(group)?,
                Ok(Node::Dataset(dataset)) => self.dataset_details(dataset)?,
                Ok(Node::Datatype(datatype)) => self.datatype_details(datatype)?,
                Err(_) => {}
            }
        }
        writeln!(self.out, "}}")?;
        match node {
            Ok(Node::Group(group)) if self.options.recursive => {
                let outer = self.entering.replace(path.to_owned());
                let done = walker::walk_at(&group, path, walker::Order::default(), self);
                self.entering = outer;
                done
            }
            _ => Ok(()),
        }
    }

    /// Reports a failure and goes on, unless the reader has gone away.
    fn survive(&mut self, done: Result<()>) -> Result<()> {
        self.outcome.survive(done)
    }
}

impl<W: Write> Visitor for Lister<'_, W> {
    fn enter_group(&mut self, path: &str, group: &Group) -> Result<bool> {
        if self.entering.take_if(|entering| entering == path).is_some() {
            return Ok(true);
        }
        let listed = path.trim_end_matches('/') == self.root;
        // The listed group has a line of its own only if it is the root of a recursive listing.
        if !listed || (self.options.recursive && path == "/") {
            self.name(path)?;
            self.group_lines(group)?;
        }
        Ok(listed || self.options.recursive)
    }

    fn dataset(&mut self, path: &str, dataset: &Dataset) -> Result<()> {
        self.name(path)?;
        self.dataset_lines(dataset)
    }

    fn datatype(&mut self, path: &str, datatype: &CommittedDatatype) -> Result<()> {
        self.name(path)?;
        self.datatype_lines(datatype)
    }

    fn other(&mut self, path: &str, kind: &MemberKind) -> Result<()> {
        self.name(path)?;
        self.link(path, kind)
    }

    fn again(&mut self, path: &str, kind: Kind, first: &str) -> Result<()> {
        let kind = match kind {
            Kind::Group => "Group",
            Kind::Dataset => "Dataset",
            Kind::Datatype => "Type",
        };
        self.name(path)?;
        Ok(writeln!(self.out, "{kind}, same as {}", escaped(first))?)
    }

    fn failed(&mut self, path: &str, error: Error) -> Result<()> {
        self.name(path)?;
        writeln!(self.out, "*ERROR*")?;
        self.survive(Err(error.into()))
    }
}

/// A name as h5ls prints it, so that it is distinct from the text behind it. Letters beyond ASCII
/// stay.
fn escaped(name: &str) -> Cow<'_, str> {
    let plain = |byte: u8| !matches!(byte, b'"' | b'\\' | b' ') && !byte.is_ascii_control();
    if name.bytes().all(plain) {
        return Cow::Borrowed(name);
    }
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
    Cow::Owned(text)
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

/// Logical and stored bytes.
fn used(logical: Option<u64>, stored: u64) -> String {
    let plural = |bytes: u64| if bytes == 1 { "" } else { "s" };
    let Some(logical) = logical else {
        return format!("more than 2^64 logical bytes, {stored} allocated bytes");
    };
    let mut text = format!(
        "{logical} logical byte{}, {stored} allocated byte{}",
        plural(logical),
        plural(stored)
    );
    if stored > 0 {
        text += &format!(", {:.2}% utilization", logical as f64 * 100.0 / stored as f64);
    }
    text
}

fn filter_name(filter: &FilterSpec) -> &str {
    match filter.id {
        1 => "deflate",
        2 => "shuffle",
        3 => "fletcher32",
        4 => "szip",
        5 => "nbit",
        6 => "scaleoffset",
        _ => filter.name.as_deref().unwrap_or("method"),
    }
}

fn help(program: &str) -> String {
    format!(
        "List groups, datasets, datatypes and links.

Usage: {program} [OPTIONS] FILE[/PATH]...

On a terminal, without options, a coloured tree with type, shape, chunk, filters, stored size and
ratio of sizes. Else one line for each object, as h5ls prints it; \"sparse\" marks datasets of which only defined cells are
stored. -v adds attributes, chunk shape, filters, stored bytes, and the number of defined cells of
sparse datasets.

Options:
{}
Examples:
  {program} matrix.h5                  a tree on a terminal, else what is in the root group
  {program} --tree matrix.h5 | less    a tree anywhere
  {program} --json matrix.h5           for programs
  {program} -r matrix.h5               all groups
  {program} -v matrix.h5/runs/first    all about one dataset

Exit codes: 0 success, 1 failure.
",
        flags::describe(FLAGS)
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_are_escaped_as_in_h5ls() {
        assert_eq!(super::escaped("a b\"c\\d\n\u{1}\u{e9}"), "a\\ b\\\"c\\\\d\\n\\001\u{e9}");
    }
}
