//! Where the objects of a file are: the first path of each, by its address.

use crate::walker::{self, Visitor};
use anyhow::Result;
use pumice::{CommittedDatatype, Dataset, Error, File, Group};
use std::collections::HashMap;

/// What an object with a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Group,
    Dataset,
    Datatype,
}

/// The first path of every object of a file.
#[derive(Debug, Default)]
pub(crate) struct Atlas(HashMap<u64, (Kind, String)>);

impl Atlas {
    /// Walks through a file. What cannot be read has no path.
    pub(crate) fn of(file: &File) -> Self {
        let mut atlas = Self::default();
        // The walk itself does not fail: nothing below answers with an error.
        let _ = walker::walk(file, &mut atlas);
        atlas
    }

    /// The path of the object at an address.
    pub(crate) fn path(&self, address: u64) -> Option<&str> {
        self.0.get(&address).map(|(_, path)| path.as_str())
    }

    /// What the object at an address is.
    pub(crate) fn kind(&self, address: u64) -> Option<Kind> {
        self.0.get(&address).map(|(kind, _)| *kind)
    }
}

impl Visitor for Atlas {
    fn enter_group(&mut self, path: &str, group: &Group) -> Result<bool> {
        self.0.insert(group.address(), (Kind::Group, path.to_owned()));
        Ok(true)
    }

    fn dataset(&mut self, path: &str, dataset: &Dataset) -> Result<()> {
        self.0.insert(dataset.address(), (Kind::Dataset, path.to_owned()));
        Ok(())
    }

    fn datatype(&mut self, path: &str, datatype: &CommittedDatatype) -> Result<()> {
        self.0.insert(datatype.address(), (Kind::Datatype, path.to_owned()));
        Ok(())
    }

    fn failed(&mut self, _path: &str, _error: Error) -> Result<()> {
        Ok(())
    }
}
