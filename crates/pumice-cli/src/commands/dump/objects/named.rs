//! A group that was asked for by its path, with everything in it.

use super::Dumper;
use crate::walker::{self, Kind, Visitor};
use anyhow::Result;
use pumice::{CommittedDatatype, Dataset, Error, Group, MemberKind};

/// A group that was asked for by its path keeps that path as its name.
pub(super) struct Named<'a, 'b> {
    pub(super) path: String,
    pub(super) dumper: &'a mut Dumper<'b>,
}

impl Visitor for Named<'_, '_> {
    fn enter_group(&mut self, path: &str, group: &Group) -> Result<bool> {
        if self.path.is_empty() && self.dumper.shown.contains(&group.address()) {
            self.again(path, Kind::Group, path)?;
            return Ok(false);
        }
        if self.path.is_empty() {
            return self.dumper.enter_group(path, group);
        }
        let name = std::mem::take(&mut self.path);
        self.dumper.open("GROUP", &name)?;
        if name == "/" {
            self.dumper.nameless_types()?;
        }
        if self.dumper.options.attributes {
            self.dumper.attributes(group.attributes())?;
        }
        Ok(true)
    }

    fn leave_group(&mut self, path: &str) -> Result<()> {
        self.dumper.leave_group(path)
    }

    fn dataset(&mut self, path: &str, dataset: &Dataset) -> Result<()> {
        let address = dataset.address();
        let name = walker::name(path);
        self.dumper
            .show_once("DATASET", name, address, |dumper| dumper.dataset_with(name, dataset, None))
    }

    fn datatype(&mut self, path: &str, datatype: &CommittedDatatype) -> Result<()> {
        self.dumper.datatype(path, datatype)
    }

    fn other(&mut self, path: &str, kind: &MemberKind) -> Result<()> {
        self.dumper.other(path, kind)
    }

    fn again(&mut self, path: &str, kind: Kind, first: &str) -> Result<()> {
        let address = self.dumper.file.node(path)?.address();
        let first = self.dumper.first_path(address).unwrap_or_else(|| first.to_owned());
        self.dumper.again(path, kind, &first)
    }

    fn failed(&mut self, path: &str, error: Error) -> Result<()> {
        self.dumper.failed(path, error)
    }
}
