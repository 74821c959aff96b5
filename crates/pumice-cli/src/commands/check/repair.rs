//! Copying the sound parts of a file into a new one; the old one stays.
//!
//! A dataset with unreadable elements is left out, with the links to it: invented elements would
//! look like sound ones. Everything else is copied piece by piece; parts that cannot be copied are
//! reported.

use super::{Report, counted, placed};
use crate::commands::repack;
use crate::target::Target;
use crate::walker::{self, Visitor};
use anyhow::Result;
use pumice::{CommittedDatatype, Dataset, Error, File, Group};
use std::io::Write;
use std::path::Path;

pub(super) fn run(
    out: &mut impl Write,
    file: &File,
    path: &Path,
    report: &Report,
    target: Target,
) -> Result<()> {
    let new = repack::create_like(file, path, &target.partial)?;
    let mut left: Vec<String> = report.damaged.values().cloned().collect();
    file.salvage(
        &new,
        |address| report.damaged.contains_key(&address),
        |path, error| left.push(placed(path, &error.to_string())),
    )?;
    let mut count = Count::default();
    walker::walk(&new, &mut count)?;
    new.close()?;
    repack::copy_user_block(file, path, &target.partial)?;
    let name = target.path.display().to_string();
    target.publish()?;
    writeln!(
        out,
        "{name}: {}, {} and {} copied",
        counted(count.groups, "group"),
        counted(count.datasets, "dataset"),
        counted(count.datatypes, "committed datatype")
    )?;
    for what in left {
        writeln!(out, "{name}: left behind: {what}")?;
    }
    Ok(())
}

/// Counts copied objects.
#[derive(Default)]
struct Count {
    groups: u64,
    datasets: u64,
    datatypes: u64,
}

impl Visitor for Count {
    fn enter_group(&mut self, _path: &str, _group: &Group) -> Result<bool> {
        self.groups += 1;
        Ok(true)
    }

    fn dataset(&mut self, _path: &str, _dataset: &Dataset) -> Result<()> {
        self.datasets += 1;
        Ok(())
    }

    fn datatype(&mut self, _path: &str, _datatype: &CommittedDatatype) -> Result<()> {
        self.datatypes += 1;
        Ok(())
    }

    fn failed(&mut self, _path: &str, _error: Error) -> Result<()> {
        Ok(())
    }
}
