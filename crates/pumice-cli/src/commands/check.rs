//! `pumice check`: reads everything that a file has, and tells what is wrong.
//!
//! Every object header, link, attribute, index and heap is decoded with its checksum, every chunk is
//! read through its filters, and places are compared: chunks and object headers that overlap, or lie
//! beyond the end of the file. Bytes that nothing refers to are counted, not held against the file:
//! HDF5 leaves them wherever something was deleted or has grown.

use super::{Outcome, output};
use crate::cells::{self, Hyperslab};
use crate::cli::Check;
use crate::numbers;
use crate::progress::{Progress, Unit};
use crate::style::{Role, Style};
use crate::target::Target;
use crate::walker::{self, Visitor};
use anyhow::Result;
use pumice::{
    Attribute, CommittedDatatype, CopyOptions, Dataset, Error, File, Group, LayoutKind, MemberKind,
    ObjectSpace, Selection,
};
use std::collections::HashSet;
use std::io::Write;

/// Problems that are told one by one.
const SHOWN: usize = 100;

pub(super) fn run(arguments: &Check) -> Result<Outcome> {
    let mut out = output();
    let style = Style::of_output();
    let mut worst = Outcome::Complete;
    for path in &arguments.files {
        let name = path.display().to_string();
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) => {
                let told = style.paint(Role::Failure, "cannot be opened");
                writeln!(out, "{name}: {told}: {error}")?;
                worst = Outcome::Error;
                continue;
            }
        };
        let length = std::fs::metadata(path).map_or(0, |data| data.len());
        let report = examine(&file, length)?;
        report.print(&mut out, &name, style)?;
        if let Some(repaired) = &arguments.repair {
            let target = Target::new(repaired, path, arguments.force)?;
            repair(&mut out, &file, &report, target)?;
        }
        if !report.problems.is_empty() && worst == Outcome::Complete {
            worst = Outcome::Different;
        }
    }
    out.flush()?;
    Ok(worst)
}

fn examine(file: &File, length: u64) -> Result<Report> {
    let mut report = Report { length, ..Report::default() };
    report.user_block = file.info().map_or(0, |info| info.user_block_size);
    match file.space() {
        Ok(space) => {
            let own = space.superblock + space.extension + space.shared_table;
            report.metadata += own + space.shared_index + space.shared_heap + space.free_managers;
            report.free = space.free.iter().sum();
        }
        Err(error) => report.problem("", &error.to_string()),
    }
    let progress = Progress::new(length, Unit::Bytes);
    let mut checker = Checker { report, progress };
    walker::walk(file, &mut checker)?;
    let mut report = checker.report;
    report.compare_places();
    Ok(report)
}

/// What was found.
#[derive(Default)]
struct Report {
    length: u64,
    user_block: u64,
    metadata: u64,
    data: u64,
    free: u64,
    groups: u64,
    datasets: u64,
    chunks: u64,
    links: u64,
    /// Where things are: begin, end, what, whose.
    places: Vec<(u64, u64, &'static str, String)>,
    problems: Vec<String>,
    /// Paths of objects with problems.
    damaged: HashSet<String>,
}

impl Report {
    fn problem(&mut self, path: &str, what: &str) {
        let what = what.replace(['\n', '\r'], " ");
        // Errors begin with the path of their object.
        let told = match what.starts_with(path) {
            true => what,
            false => format!("{path}: {what}"),
        };
        self.damaged.insert(path.to_owned());
        if !self.problems.contains(&told) {
            self.problems.push(told);
        }
    }

    fn place(&mut self, begin: u64, size: u64, what: &'static str, path: &str) {
        match begin.checked_add(size) {
            Some(end) if end <= self.length || self.length == 0 => {
                self.places.push((begin, end, what, path.to_owned()));
            }
            _ => {
                let length = self.length;
                self.problem(
                    path,
                    &format!("{what} of {size} bytes at {begin:#x} is beyond the end of the file at {length:#x}"),
                );
            }
        }
    }

    /// Finds places that overlap.
    fn compare_places(&mut self) {
        let mut places = std::mem::take(&mut self.places);
        places.sort();
        let mut last: Option<(u64, u64, &str, String)> = None;
        for (begin, end, what, path) in places {
            if let Some((other, other_end, other_what, other_path)) = &last
                && begin < *other_end
                && begin < end
            {
                let overlap = format!(
                    "{what} at {begin:#x} overlaps {other_what} of {other_path}, from {other:#x} to {other_end:#x}"
                );
                self.problem(&path, &overlap);
            }
            if last.as_ref().is_none_or(|last| end > last.1) {
                last = Some((begin, end, what, path));
            }
        }
    }

    fn print(&self, out: &mut impl Write, name: &str, style: Style) -> Result<()> {
        for problem in self.problems.iter().take(SHOWN) {
            writeln!(out, "{name}: {} {problem}", style.paint(Role::Failure, "problem:"))?;
        }
        if self.problems.len() > SHOWN {
            writeln!(out, "{name}: {} more problems", self.problems.len() - SHOWN)?;
        }
        let verdict = match self.problems.len() {
            0 => style.paint(Role::Good, "sound"),
            1 => style.paint(Role::Failure, "1 problem"),
            count => style.paint(Role::Failure, &format!("{count} problems")),
        };
        let known = self.user_block + self.metadata + self.data + self.free;
        writeln!(
            out,
            "{name}: {verdict}; {}, {}, {} and {} read",
            counted(self.groups, "group"),
            counted(self.datasets, "dataset"),
            counted(self.chunks, "chunk"),
            counted(self.links, "link")
        )?;
        writeln!(
            out,
            "{name}: {} bytes: {} metadata, {} data, {} known to be free, {} that nothing here refers to",
            numbers::grouped(self.length),
            numbers::grouped(self.metadata),
            numbers::grouped(self.data),
            numbers::grouped(self.free),
            numbers::grouped(self.length.saturating_sub(known))
        )?;
        Ok(())
    }
}

/// A number of things.
fn counted(count: u64, thing: &str) -> String {
    format!("{} {thing}{}", numbers::grouped(count), if count == 1 { "" } else { "s" })
}

struct Checker {
    report: Report,
    progress: Progress,
}

impl Checker {
    fn attributes(&mut self, path: &str, attributes: pumice::Result<Vec<Attribute>>) {
        match attributes {
            Ok(attributes) => {
                for attribute in &attributes {
                    if let Err(error) = cells::read_attribute(attribute) {
                        let what = format!("attribute {}: {error:#}", attribute.name());
                        self.report.problem(path, &what);
                    }
                }
            }
            Err(error) => self.report.problem(path, &error.to_string()),
        }
    }

    fn space(&mut self, path: &str, address: u64, space: pumice::Result<ObjectSpace>) {
        match space {
            Ok(space) => {
                let attributes = space.attribute_index + space.attribute_heap;
                self.report.metadata += space.header + space.index + space.heap + attributes;
                // Of a header in several blocks, only the beginning of the first is sure.
                let place = address + self.report.user_block;
                self.report.place(place, 16.min(space.header), "the object header", path);
            }
            Err(error) => self.report.problem(path, &error.to_string()),
        }
    }

    /// Reads every element, chunk by chunk where there are chunks.
    fn elements(&mut self, path: &str, dataset: &Dataset) -> Result<()> {
        let shape = dataset.shape();
        let chunks = match dataset.layout() {
            LayoutKind::Sparse => dataset.structured_chunks().map(|chunks| {
                chunks.into_iter().map(|chunk| (chunk.offset, chunk.address, chunk.size)).collect()
            }),
            LayoutKind::Chunked => dataset.chunks().map(|chunks| {
                chunks.into_iter().map(|chunk| (chunk.offset, chunk.address, chunk.size)).collect()
            }),
            _ => {
                let slab = Hyperslab::whole(&shape);
                if dataset.extent()?.is_null() {
                    return Ok(());
                }
                return cells::for_each_piece(dataset, &slab, |_, _, piece| {
                    self.progress.add(piece.elements.len() as u64);
                    Ok(())
                });
            }
        };
        let chunks: Vec<(Vec<u64>, u64, u64)> = chunks?;
        let side = dataset.chunk().unwrap_or_default();
        for (offset, address, size) in chunks {
            self.report.chunks += 1;
            self.report.place(address, size, "a chunk", path);
            self.progress.add(size);
            let axes = offset.iter().zip(&side).zip(&shape);
            let count: Vec<u64> =
                axes.map(|((&at, &side), &end)| side.min(end.saturating_sub(at))).collect();
            if count.contains(&0) {
                self.report
                    .problem(path, &format!("the chunk at {offset:?} lies outside of {shape:?}"));
                continue;
            }
            let block = Selection::block(&offset, &count).map_err(Error::from)?;
            let read = match (dataset.is_sparse(), dataset.datatype().has_varlen()) {
                (true, false) => dataset.read_defined_bytes(&block).map(|_| ()),
                (true, true) => dataset.read_defined_heaped(&block).map(|_| ()),
                (false, true) => dataset.read_heaped(&block).map(|_| ()),
                (false, false) => dataset.read_bytes(&block).map(|_| ()),
            };
            if let Err(error) = read {
                let what =
                    format!("the chunk at {offset:?} ({size} bytes at {address:#x}): {error}");
                self.report.problem(path, &what);
            }
        }
        Ok(())
    }
}

impl Visitor for Checker {
    fn enter_group(&mut self, path: &str, group: &Group) -> Result<bool> {
        self.report.groups += 1;
        self.attributes(path, group.attributes());
        self.space(path, group.address(), group.space());
        Ok(true)
    }

    fn dataset(&mut self, path: &str, dataset: &Dataset) -> Result<()> {
        self.report.datasets += 1;
        self.attributes(path, dataset.attributes());
        self.space(path, dataset.address(), dataset.space());
        match dataset.storage_size() {
            Ok(bytes) => self.report.data += bytes,
            Err(error) => self.report.problem(path, &error.to_string()),
        }
        if let Err(error) = self.elements(path, dataset) {
            self.report.problem(path, &format!("{error:#}"));
        }
        Ok(())
    }

    fn datatype(&mut self, path: &str, datatype: &CommittedDatatype) -> Result<()> {
        self.attributes(path, datatype.attributes());
        self.space(path, datatype.address(), datatype.space());
        Ok(())
    }

    fn other(&mut self, _path: &str, _kind: &MemberKind) -> Result<()> {
        self.report.links += 1;
        Ok(())
    }

    fn failed(&mut self, path: &str, error: Error) -> Result<()> {
        self.report.problem(path, &error.to_string());
        Ok(())
    }
}

/// Copies what has no problems into a new file; the old one stays as it is.
fn repair(out: &mut impl Write, file: &File, report: &Report, target: Target) -> Result<()> {
    let new = File::create(&target.partial)?;
    let (mut copied, mut left) = (0, Vec::new());
    // A group with a problem inside is entered, so that only what is damaged stays behind.
    let mut pending = vec![String::new()];
    while let Some(path) = pending.pop() {
        let group = match path.as_str() {
            "" => Group::clone(file),
            path => file.group(path)?,
        };
        let Ok(members) = group.members() else {
            left.push(if path.is_empty() { "/".to_owned() } else { path });
            continue;
        };
        for member in members {
            let full = format!("{path}/{}", member.name);
            let inside =
                |damaged: &String| damaged == &full || damaged.starts_with(&format!("{full}/"));
            if !report.damaged.iter().any(inside) {
                match file.copy_object(&full, &new, &full, &CopyOptions::new()) {
                    Ok(_) => copied += 1,
                    Err(_) => left.push(full),
                }
            } else if member.kind == MemberKind::Group && !report.damaged.contains(&full) {
                new.create_group(&full)?;
                pending.push(full);
            } else {
                left.push(full);
            }
        }
    }
    new.close()?;
    let path = target.path.display().to_string();
    target.publish()?;
    writeln!(out, "{path}: {copied} objects copied, with what is in them")?;
    for path_left in left {
        writeln!(out, "{path}: left behind: {path_left}")?;
    }
    Ok(())
}
