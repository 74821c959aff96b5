//! Groups, datasets, attributes, links and committed datatypes in the data description language.

mod finder;
mod named;

pub(super) use self::finder::split_attribute;
use self::finder::{Finder, Found, is_link};
use self::named::Named;
use super::options::{Options, Wanted};
use super::outside::Outside;
use super::sink::Sinks;
use crate::atlas::Atlas;
use crate::cells::Hyperslab;
use crate::commands::Outcome;
use crate::ddl::dataspace;
use crate::failure;
use crate::subset::Subset;
use crate::value::INDENT;
use crate::walker::{self, Kind, Visitor};
use anyhow::{Context, Result, anyhow};
use pumice::types::ddl::indented;
use pumice::{
    Attribute, CommittedDatatype, Dataset, Datatype, Error, File, Group, MemberKind, Node,
};
use std::collections::HashSet;
use std::sync::Arc;

/// Columns that lines are indented by at most: in files of many levels, indentation would be nearly all there is.
pub(super) const WIDEST: usize = 256 * INDENT;

/// Prints the objects that it visits.
pub(super) struct Dumper<'a> {
    pub(super) file: &'a File,
    name: &'a str,
    /// Names and paths of other files that references lead to.
    pub(super) other_files: Vec<Arc<(String, Atlas)>>,
    /// The bits of integers that are being printed.
    pub(super) bits: Option<(u32, u32)>,
    /// The number of references that were followed to this object.
    pub(super) depth: usize,
    pub(super) options: &'a Options,
    pub(super) sinks: &'a mut Sinks,
    pub(super) indent: usize,
    /// Levels that are not indented.
    beyond: usize,
    pub(super) outcome: Outcome,
    /// Addresses of objects that were printed.
    pub(super) shown: HashSet<u64>,
    /// The file's name and the first path of each object in it, once they are needed.
    pub(super) names: Option<Arc<(String, Atlas)>>,
    /// Other files that external links led to.
    pub(super) outside: Outside,
}

impl<'a> Dumper<'a> {
    pub(super) fn new(
        file: &'a File,
        name: &'a str,
        options: &'a Options,
        sinks: &'a mut Sinks,
    ) -> Self {
        let (shown, outcome) = (HashSet::new(), Outcome::Complete);
        Self {
            file,
            name,
            options,
            sinks,
            indent: 0,
            beyond: 0,
            outcome,
            shown,
            names: None,
            bits: None,
            depth: 0,
            other_files: Vec::new(),
            outside: Outside::default(),
        }
    }

    pub(super) fn run(&mut self) -> Result<()> {
        if self.options.wanted.is_empty() {
            let (file, order) = (self.file, self.options.order());
            return walker::walk_in_order(file, order, self);
        }
        for wanted in &self.options.wanted {
            let shown = match wanted {
                Wanted::Dataset(path, subset) => self.wanted_dataset(path, subset.as_ref()),
                Wanted::Group(path) => self.wanted_group(path),
                Wanted::Attribute(path) => self.wanted_attribute(path),
                Wanted::Link(path) => self.wanted_link(path),
                Wanted::Datatype(path) => self.wanted_datatype(path),
                Wanted::Any(path) => self.wanted_any(path),
            };
            self.survive(shown)?;
        }
        Ok(())
    }

    fn wanted_dataset(&mut self, path: &str, subset: Option<&Subset>) -> Result<()> {
        if let Some((_, kind)) = self.member(path)
            && matches!(kind, MemberKind::SoftLink(_))
            && self.file.dataset(path).is_err()
        {
            self.link(path, None, &kind)?;
            // The link is an answer, too.
            failure::report(&anyhow!("{path}: component not found"));
            return Ok(());
        }
        let dataset = self.file.dataset(path).with_context(|| match self.member(path) {
            Some((_, kind)) if !is_link(&kind) => format!("\"{path}\" is a hard link"),
            _ => format!("unable to get link info from \"{path}\""),
        })?;
        self.show_dataset(path, &dataset, subset)
    }

    pub(super) fn show_dataset(
        &mut self,
        name: &str,
        dataset: &Dataset,
        subset: Option<&Subset>,
    ) -> Result<()> {
        self.show_once("DATASET", name, dataset.address(), |dumper| {
            dumper.dataset_with(name, dataset, subset)
        })
    }

    fn wanted_group(&mut self, path: &str) -> Result<()> {
        match self.file.group(path) {
            Ok(group) => self.show_group(path, &group),
            Err(error) => {
                self.line(&format!("GROUP \"{path}\" {{"))?;
                self.line_at(INDENT, "}")?;
                Err(error).with_context(|| format!("unable to open group \"{path}\""))
            }
        }
    }

    pub(super) fn show_group(&mut self, name: &str, group: &Group) -> Result<()> {
        let order = self.options.order();
        self.show_once("GROUP", name, group.address(), |dumper| {
            let mut named = Named { path: name.to_owned(), dumper };
            walker::walk_in_order(group, order, &mut named)
        })
    }

    /// Prints an object that has no place in a walk, or that it was printed already.
    fn show_once(
        &mut self,
        keyword: &str,
        path: &str,
        address: u64,
        show: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        if self.shown.insert(address) {
            return show(self);
        }
        let first = self.first_path(address).unwrap_or_else(|| path.to_owned());
        self.open(keyword, path)?;
        self.line(&format!("HARDLINK \"{first}\""))?;
        self.end()
    }

    fn wanted_attribute(&mut self, path: &str) -> Result<()> {
        let (object, name) = split_attribute(path);
        let owner = self.file.node(&object);
        self.open("ATTRIBUTE", if owner.is_ok() { &name } else { path })?;
        let found = match owner {
            Ok(Node::Group(group)) => group.attribute(&name),
            Ok(Node::Dataset(dataset)) => dataset.attribute(&name),
            Ok(Node::Datatype(datatype)) => datatype.attribute(&name),
            Err(error) => Err(error),
        };
        let shown = match found {
            Ok(attribute) => self.attribute_body(&attribute),
            Err(error) => {
                Err(error).with_context(|| format!("unable to open attribute \"{name}\""))
            }
        };
        self.end()?;
        shown
    }

    fn wanted_link(&mut self, path: &str) -> Result<()> {
        match self.member(path) {
            Some((_, kind)) if is_link(&kind) => self.link(path, None, &kind),
            Some(_) => Err(anyhow!("\"{path}\" is a hard link")),
            None => Err(anyhow!("unable to get link info from \"{path}\"")),
        }
    }

    fn wanted_datatype(&mut self, path: &str) -> Result<()> {
        match self.file.committed_datatype(path) {
            Ok(found) => self.show_datatype(path, &found),
            Err(_) if let Some((address, dataset)) = self.nameless_type(path) => {
                if self.options.error_stack {
                    failure::warn(&format!(
                        "object '{}' doesn't exist",
                        path.trim_start_matches('/')
                    ));
                }
                let datatype = self.file.dataset(&dataset)?.datatype().clone();
                self.show_once("DATATYPE", path, address, |dumper| {
                    dumper.named_type(path, &datatype)
                })
            }
            Err(error) => {
                self.line(&format!("DATATYPE \"{path}\" "))?;
                self.line_at(INDENT, "")?;
                Err(error).with_context(|| format!("unable to open datatype \"{path}\""))
            }
        }
    }

    pub(super) fn show_datatype(&mut self, name: &str, found: &CommittedDatatype) -> Result<()> {
        let address = found.address();
        self.show_once("DATATYPE", name, address, |dumper| dumper.committed(name, found))
    }

    /// A committed datatype and its attributes.
    fn committed(&mut self, name: &str, committed: &CommittedDatatype) -> Result<()> {
        self.named_type(name, committed.datatype())?;
        self.indent += INDENT;
        if self.options.attributes {
            self.attributes(committed.attributes())?;
        }
        self.indent -= INDENT;
        Ok(())
    }

    fn named_type(&mut self, name: &str, datatype: &Datatype) -> Result<()> {
        let end = if matches!(datatype, Datatype::Compound(_)) { "" } else { ";" };
        let text = indented(datatype, self.indent).to_string();
        self.named_as(name, &format!("{text}{end}"))
    }

    /// A committed datatype's name, on a line of its own if the line is too narrow.
    fn named_as(&mut self, name: &str, text: &str) -> Result<()> {
        let beginning = format!("DATATYPE \"{name}\" ");
        let first = text.lines().next().unwrap_or_default();
        if self.exceeds(self.indent + beginning.len() + first.len()) {
            self.line(&beginning)?;
            return self.line(text);
        }
        self.line(&format!("{beginning}{text}"))
    }

    /// Whether a line with this many columns, and possible further text, is too long.
    fn exceeds(&self, columns: usize) -> bool {
        // h5dump counts one level more than it indents.
        self.options.columns > 0 && columns + INDENT + 1 > self.options.columns
    }

    /// Committed datatypes that lost their names: h5dump calls them by their addresses.
    fn nameless_types(&mut self) -> Result<()> {
        let names = self.names();
        for (address, path) in names.1.nameless_types() {
            self.shown.insert(address);
            let datatype = self.file.dataset(path)?.datatype().clone();
            self.named_type(&format!("#{address}"), &datatype)?;
        }
        Ok(())
    }

    /// The nameless datatype that a path like `/#800` stands for, and a dataset that has it.
    fn nameless_type(&mut self, path: &str) -> Option<(u64, String)> {
        let wanted: u64 = path.trim_start_matches('/').strip_prefix('#')?.parse().ok()?;
        let names = self.names();
        let found = names.1.nameless_types().find(|(address, _)| *address == wanted);
        found.map(|(address, path)| (address, path.to_owned()))
    }

    /// The line of a datatype: its path if it has one of its own.
    fn datatype_line(&mut self, datatype: &Datatype, committed: Option<u64>) -> Result<()> {
        let path = committed.map(|address| match self.first_path(address) {
            Some(path) => format!("\"{path}\""),
            None => format!("\"/#{address}\""),
        });
        let text = path.unwrap_or_else(|| indented(datatype, self.indent).to_string());
        self.line(&format!("DATATYPE  {text}"))
    }

    /// Prints everything with a path, and attributes whose path ends with it.
    fn wanted_any(&mut self, wanted: &str) -> Result<()> {
        let mut finder = Finder { wanted: wanted.to_owned(), found: Vec::new() };
        walker::walk(self.file, &mut finder)?;
        if finder.found.is_empty() {
            failure::warn(&format!("nothing in the file has the path {wanted}"));
        }
        for (path, kind) in finder.found {
            let shown = match kind {
                Found::Dataset => self.wanted_dataset(&path, None),
                Found::Group => self.wanted_group(&path),
                Found::Datatype => self.wanted_datatype(&path),
                Found::Attribute => self.wanted_attribute(&path),
                Found::Link => self.link(wanted, None, &self.member(&path).context("a link")?.1),
            };
            self.survive(shown)?;
        }
        Ok(())
    }

    /// The member at a path, links not followed.
    fn member(&self, path: &str) -> Option<(String, MemberKind)> {
        let (group, name) = path.trim_end_matches('/').rsplit_once('/').unwrap_or(("", path));
        let group =
            if group.is_empty() { (**self.file).clone() } else { self.file.group(group).ok()? };
        let found = group.members().ok()?.into_iter().find(|member| member.name == name)?;
        Some((found.name, found.kind))
    }

    fn first_path(&mut self, address: u64) -> Option<String> {
        self.names().1.path(address).map(str::to_owned)
    }

    /// The name of the file and the paths of its objects.
    pub(super) fn names(&mut self) -> Arc<(String, Atlas)> {
        let (file, name) = (self.file, self.name);
        self.names.get_or_insert_with(|| Arc::new((name.to_owned(), Atlas::of(file)))).clone()
    }

    fn dataset_with(
        &mut self,
        name: &str,
        dataset: &Dataset,
        subset: Option<&Subset>,
    ) -> Result<()> {
        let slab = subset.map(|subset| subset.slab(&dataset.shape())).transpose();
        let slab = slab.with_context(|| dataset.path().to_owned())?;
        let header = format!("DATASET \"{name}\" {{");
        if self.exceeds(self.indent + header.len()) {
            self.line("")?;
        }
        self.begin(&header)?;
        if let Some(comment) = dataset.comment() {
            let indent = self.indent - INDENT;
            self.line_at(indent, &format!("COMMENT \"{comment}\""))?;
        }
        let shown = self.dataset_body(dataset, slab.as_ref());
        self.survive(shown)?;
        if self.options.attributes && self.options.binary.is_none() {
            self.attributes(dataset.attributes())?;
        }
        self.end()
    }

    fn dataset_body(&mut self, dataset: &Dataset, slab: Option<&Hyperslab>) -> Result<()> {
        let extent = dataset.extent()?;
        self.datatype_line(dataset.datatype(), dataset.committed_datatype())?;
        self.line(&format!("DATASPACE  {}", dataspace(&extent)))?;
        if self.options.identifiers {
            self.line(&format!("OBJECTID {{ {} }}", dataset.address()))?;
        }
        if self.options.properties {
            self.properties(dataset)?;
        }
        let whole = Hyperslab::whole(&dataset.shape());
        let part = slab.unwrap_or(&whole);
        if self.options.sparse_locations && !extent.is_null() {
            return self.regions(dataset, part);
        }
        // The layout says it where it is printed.
        let said = self.options.properties && !self.options.values;
        if dataset.is_sparse() && !self.options.dense && !said {
            self.sparse(dataset, part)?;
            // Bytes do not tell which cells are defined.
            if self.options.values && self.options.binary.is_some() {
                self.regions(dataset, part)?;
            }
        }
        if !self.options.values {
            return Ok(());
        }
        let Some(slab) = slab else {
            return self.data(dataset, &extent, &whole, false);
        };
        self.begin("SUBSET {")?;
        for (name, list) in [
            ("START", &slab.start),
            ("STRIDE", &slab.stride),
            ("COUNT", &slab.count),
            ("BLOCK", &slab.block),
        ] {
            let list: Vec<String> = list.iter().map(u64::to_string).collect();
            self.line(&format!("{name} ( {} );", list.join(", ")))?;
        }
        let shown = self.data(dataset, &extent, slab, true);
        self.end()?;
        shown
    }

    fn attributes(&mut self, attributes: pumice::Result<Vec<Attribute>>) -> Result<()> {
        let attributes = match attributes {
            Ok(attributes) => self.options.sorted(attributes),
            Err(error) => return self.survive(Err(error.into())),
        };
        for attribute in &attributes {
            self.open("ATTRIBUTE", attribute.name())?;
            let shown = self.attribute_body(attribute);
            let shown = shown.with_context(|| format!("attribute \"{}\"", attribute.name()));
            self.survive(shown)?;
            self.end()?;
        }
        Ok(())
    }

    fn attribute_body(&mut self, attribute: &Attribute) -> Result<()> {
        self.datatype_line(attribute.datatype(), attribute.committed_datatype())?;
        self.line(&format!("DATASPACE  {}", dataspace(attribute.extent())))?;
        if !self.options.attribute_values {
            return Ok(());
        }
        self.attribute_data(attribute)
    }

    /// A link, and the object behind an external one if its path is given.
    fn link(&mut self, name: &str, path: Option<&str>, kind: &MemberKind) -> Result<()> {
        match kind {
            MemberKind::SoftLink(target) => {
                self.open("SOFTLINK", name)?;
                self.line(&format!("LINKTARGET \"{target}\""))?;
            }
            MemberKind::ExternalLink(file, target) => {
                self.open("EXTERNAL_LINK", name)?;
                self.line(&format!("TARGETFILE \"{file}\""))?;
                self.line(&format!("TARGETPATH \"{target}\""))?;
                if let Some(path) = path {
                    self.follow(path, file, target)?;
                }
            }
            MemberKind::UserDefinedLink(class) => {
                self.open("USERDEFINED_LINK", name)?;
                self.line(&format!("LINKCLASS {class}"))?;
            }
            _ => self.open("USERDEFINED_LINK", name)?,
        }
        self.end()
    }

    fn open(&mut self, keyword: &str, name: &str) -> Result<()> {
        self.begin(&format!("{keyword} \"{name}\" {{"))
    }

    pub(super) fn begin(&mut self, text: &str) -> Result<()> {
        self.line(text)?;
        match self.indent < WIDEST {
            true => self.indent += INDENT,
            false => self.beyond += 1,
        }
        Ok(())
    }

    pub(super) fn end(&mut self) -> Result<()> {
        match self.beyond {
            0 => self.indent = self.indent.saturating_sub(INDENT),
            beyond => self.beyond = beyond - 1,
        }
        self.line("}")
    }

    pub(super) fn line(&mut self, text: &str) -> Result<()> {
        self.line_at(self.indent, text)
    }

    fn line_at(&mut self, indent: usize, text: &str) -> Result<()> {
        Ok(writeln!(self.sinks.text(), "{:1$}{text}", "", indent)?)
    }

    /// Notes how a part of the work went.
    pub(super) fn note(&mut self, outcome: Outcome) {
        if outcome == Outcome::Incomplete {
            self.outcome = outcome;
        }
    }

    /// Reports a failure and goes on, unless the reader has gone away.
    pub(super) fn survive(&mut self, done: Result<()>) -> Result<()> {
        self.outcome.survive(done)
    }
}

impl Visitor for Dumper<'_> {
    fn enter_group(&mut self, path: &str, group: &Group) -> Result<bool> {
        self.shown.insert(group.address());
        self.open("GROUP", if path == "/" { path } else { walker::name(path) })?;
        if path == "/" {
            self.nameless_types()?;
        }
        if self.options.identifiers {
            self.line(&format!("OBJECTID {{ {} }}", group.address()))?;
        }
        if let Some(comment) = group.comment() {
            self.line(&format!("COMMENT \"{comment}\""))?;
        }
        if self.options.attributes {
            self.attributes(group.attributes())?;
        }
        Ok(true)
    }

    fn leave_group(&mut self, _path: &str) -> Result<()> {
        self.end()
    }

    fn dataset(&mut self, path: &str, dataset: &Dataset) -> Result<()> {
        self.shown.insert(dataset.address());
        self.dataset_with(walker::name(path), dataset, None)
    }

    fn other(&mut self, path: &str, kind: &MemberKind) -> Result<()> {
        self.link(walker::name(path), Some(path), kind)
    }

    fn datatype(&mut self, path: &str, datatype: &CommittedDatatype) -> Result<()> {
        self.shown.insert(datatype.address());
        self.committed(walker::name(path), datatype)
    }

    fn again(&mut self, path: &str, kind: Kind, first: &str) -> Result<()> {
        let keyword = match kind {
            Kind::Group => "GROUP",
            Kind::Dataset => "DATASET",
            Kind::Datatype => "DATATYPE",
        };
        if kind == Kind::Datatype {
            let name = walker::name(path);
            return self.named_as(name, &format!("HARDLINK \"{first}\""));
        }
        self.open(keyword, walker::name(path))?;
        self.line(&format!("HARDLINK \"{first}\""))?;
        self.end()
    }

    fn failed(&mut self, _path: &str, error: Error) -> Result<()> {
        self.survive(Err(error.into()))
    }
}
