//! The objects behind external links. Objects of another file are printed at the link; links back
//! into the first file are not followed, and nothing is printed twice.

use super::objects::Dumper;
use crate::atlas::Atlas;
use crate::failure;
use crate::value::INDENT;
use anyhow::Result;
use pumice::{File, Node};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

/// The most links from file to file that are followed.
const MAX_DEPTH: usize = 64;

/// The files that were entered.
#[derive(Default)]
pub(super) struct Outside {
    /// The number of links that were followed to this file.
    depth: usize,
    /// The file that was asked for.
    first: Option<PathBuf>,
    visited: HashMap<PathBuf, Visited>,
}

/// The state of a file.
#[derive(Default)]
struct Visited {
    shown: HashSet<u64>,
    names: Option<Arc<(String, Atlas)>>,
}

impl Dumper<'_> {
    /// Prints the object behind an external link at `path`.
    pub(super) fn follow(&mut self, path: &str, file: &str, target: &str) -> Result<()> {
        let node = match self.file.node(path) {
            Ok(node) => node,
            Err(error) => {
                if self.options.error_stack {
                    failure::warn(&format!(
                        "unable to open external file, external link file name = '{file}': {error}"
                    ));
                }
                return Ok(());
            }
        };
        let other = node.file()?;
        let (own, there) = (place(self.file), place(&other));
        let first = self.outside.first.get_or_insert_with(|| own.clone());
        if there == *first || self.outside.depth >= MAX_DEPTH {
            return Ok(());
        }
        // Links from there may lead back here.
        let here = self.leave();
        self.outside.visited.insert(own.clone(), here);
        let mut dumper = Dumper::new(&other, file, self.options, self.sinks);
        dumper.indent = self.indent + INDENT;
        dumper.outside = std::mem::take(&mut self.outside);
        dumper.outside.depth += 1;
        let known = dumper.outside.visited.remove(&there).unwrap_or_default();
        dumper.enter(known);
        let shown = dumper.found_outside(target, &node);
        let known = dumper.leave();
        dumper.outside.visited.insert(there, known);
        let outcome = dumper.outcome;
        self.outside = dumper.outside;
        self.outside.depth -= 1;
        let known = self.outside.visited.remove(&own).unwrap_or_default();
        self.enter(known);
        self.note(outcome);
        shown
    }

    fn enter(&mut self, known: Visited) {
        (self.shown, self.names) = (known.shown, known.names);
    }

    fn leave(&mut self) -> Visited {
        Visited { shown: std::mem::take(&mut self.shown), names: self.names.take() }
    }

    fn found_outside(&mut self, name: &str, node: &Node) -> Result<()> {
        // Opened by its path in its own file, so that the names below it are right.
        let path = self.names().1.path(node.address()).map(str::to_owned);
        let node = match &path {
            Some(path) => &self.file.node(path)?,
            None => node,
        };
        match node {
            Node::Group(group) => self.show_group(name, group),
            Node::Dataset(dataset) => self.show_dataset(name, dataset, None),
            Node::Datatype(datatype) => self.show_datatype(name, datatype),
        }
    }
}

fn place(file: &File) -> PathBuf {
    let path = file.file_path().unwrap_or("".as_ref());
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
