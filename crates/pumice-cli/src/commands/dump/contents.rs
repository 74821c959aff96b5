//! The list of a file's contents: one line for each object or link, with its path.

use super::options::Options;
use crate::atlas::Atlas;
use crate::failure;
use crate::walker::{self, Kind, Visitor};
use anyhow::Result;
use pumice::{Attribute, CommittedDatatype, Dataset, Error, File, Group, MemberKind};
use std::io::Write;

pub(super) fn list(file: &File, options: &Options, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "FILE_CONTENTS {{")?;
    let (attributes, order) = (options.contents_attributes, options.order());
    let mut lister = Lister { out: &mut *out, attributes, descending: order.descending };
    for (address, _) in Atlas::of(file).nameless_types() {
        lister.line("datatype", &format!("/#{address}"))?;
    }
    walker::walk_in_order(file, order, &mut lister)?;
    writeln!(out, " }}")?;
    Ok(())
}

struct Lister<'a> {
    out: &'a mut dyn Write,
    attributes: bool,
    descending: bool,
}

impl Lister<'_> {
    fn line(&mut self, kind: &str, path: &str) -> Result<()> {
        Ok(writeln!(self.out, " {kind:<10} {path}")?)
    }

    fn attributes(&mut self, path: &str, found: pumice::Result<Vec<Attribute>>) -> Result<()> {
        if self.attributes {
            let mut names: Vec<_> = found?.iter().map(|one| one.name().to_owned()).collect();
            names.sort();
            if self.descending {
                names.reverse();
            }
            let path = path.trim_end_matches('/');
            for name in names {
                self.line("attribute", &format!("{path}/{name}"))?;
            }
        }
        Ok(())
    }
}

impl Visitor for Lister<'_> {
    fn enter_group(&mut self, path: &str, group: &Group) -> Result<bool> {
        self.line("group", path)?;
        self.attributes(path, group.attributes())?;
        Ok(true)
    }

    fn dataset(&mut self, path: &str, dataset: &Dataset) -> Result<()> {
        self.line("dataset", path)?;
        self.attributes(path, dataset.attributes())
    }

    fn datatype(&mut self, path: &str, datatype: &CommittedDatatype) -> Result<()> {
        self.line("datatype", path)?;
        self.attributes(path, datatype.attributes())
    }

    fn other(&mut self, path: &str, kind: &MemberKind) -> Result<()> {
        match kind {
            MemberKind::SoftLink(target) => self.line("link", &format!("{path} -> {target}")),
            MemberKind::ExternalLink(file, target) => {
                self.line("ext link", &format!("{path} -> {file} {target}"))
            }
            _ => self.line("unknown type of UD link", &format!("{path} -> ???")),
        }
    }

    fn again(&mut self, path: &str, kind: Kind, first: &str) -> Result<()> {
        let kind = match kind {
            Kind::Group => "group",
            Kind::Dataset => "dataset",
            Kind::Datatype => "datatype",
        };
        self.line(kind, &format!("{path} -> {first}"))
    }

    fn failed(&mut self, _path: &str, error: Error) -> Result<()> {
        failure::report(&error.into());
        Ok(())
    }
}
