//! The objects of a file by address, with the first path of each.

use crate::walker::{self, Visitor};
use anyhow::Result;
use pumice::{CommittedDatatype, Dataset, Error, File, Group, ObjectPath};
use std::collections::{HashMap, HashSet};

/// The kind of an object with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Group,
    Dataset,
    Datatype,
}

/// The first path of every object of a file.
#[derive(Debug, Default)]
pub(crate) struct Atlas {
    objects: HashMap<u64, (Kind, ObjectPath)>,
    /// Committed datatypes and the first dataset that has each, in the order of the walk.
    types: Vec<(u64, ObjectPath)>,
    known: HashSet<u64>,
}

impl Atlas {
    /// Walks through a file. An unreadable object has no path.
    pub(crate) fn of(file: &File) -> Self {
        let mut atlas = Self::default();
        // The walk itself does not fail: nothing below answers with an error.
        let _ = walker::walk(file, &mut atlas);
        atlas
    }

    /// The path of the object at an address.
    pub(crate) fn path(&self, address: u64) -> Option<&str> {
        self.objects.get(&address).map(|(_, path)| &**path)
    }

    /// The kind of the object at an address.
    pub(crate) fn kind(&self, address: u64) -> Option<Kind> {
        self.objects.get(&address).map(|(kind, _)| *kind)
    }

    /// Committed datatypes that have no path any more, each with a dataset that it is the type of.
    pub(crate) fn nameless_types(&self) -> impl Iterator<Item = (u64, &str)> {
        let nameless = self.types.iter().filter(|(address, _)| self.path(*address).is_none());
        nameless.map(|(address, path)| (*address, &**path))
    }
}

impl Visitor for Atlas {
    fn enter_group(&mut self, _path: &str, group: &Group) -> Result<bool> {
        self.objects.insert(group.address(), (Kind::Group, group.object_path().clone()));
        Ok(true)
    }

    fn dataset(&mut self, _path: &str, dataset: &Dataset) -> Result<()> {
        self.objects.insert(dataset.address(), (Kind::Dataset, dataset.object_path().clone()));
        if let Some(committed) = dataset.committed_datatype()
            && self.known.insert(committed)
        {
            self.types.push((committed, dataset.object_path().clone()));
        }
        Ok(())
    }

    fn datatype(&mut self, _path: &str, datatype: &CommittedDatatype) -> Result<()> {
        self.objects.insert(datatype.address(), (Kind::Datatype, datatype.object_path().clone()));
        Ok(())
    }

    fn failed(&mut self, _path: &str, _error: Error) -> Result<()> {
        Ok(())
    }
}
