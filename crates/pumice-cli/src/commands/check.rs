//! `pumice check`: reads all of a file, and reports faults.
//!
//! Every object header, link, attribute, index and heap is decoded with its checksum, every chunk
//! is read through its filters, and every byte of the file is accounted for (`check/layout.rs`): no
//! two structures may overlap, none may be in free space or beyond the end of the file. Unused
//! bytes are listed but are no fault: HDF5 leaves them wherever something was deleted or has grown.

mod layout;
mod repair;

use super::{Outcome, output};
use crate::cells::{self, Hyperslab};
use crate::cli::Check;
use crate::driver;
use crate::failure;
use crate::numbers;
use crate::progress::{Progress, Unit};
use crate::style::{Role, Style};
use crate::target::Target;
use crate::walker::{self, Visitor};
use anyhow::{Context, Result, ensure};
use layout::Layout;
use pumice::{
    Attribute, CommittedDatatype, Dataset, Datatype, Error, File, Group, LayoutKind, MemberKind,
    Node, ObjectPath, Place, PlaceKind, Selection,
};
use std::collections::BTreeMap;
use std::io::Write;

/// Problems that are told one by one.
const SHOWN: usize = 100;
/// The unused bytes from which on, if they are a tenth of the file, advice is given.
const WORTH: u64 = 4096;
/// Unreachable pieces that are listed unless all are asked for.
const LISTED: usize = 5;

pub(super) fn run(arguments: &Check) -> Result<Outcome> {
    let mut out = output();
    let style = Style::of_output();
    let mut worst = Outcome::Complete;
    for spot in &arguments.files {
        let (path, inside) = (&spot.file, spot.object(None));
        let name = format!("{}{}", spot.name(), inside.as_deref().unwrap_or_default());
        ensure!(
            inside.is_none() || arguments.repair.is_none(),
            "--repair is for whole files; `pumice copy` copies one object"
        );
        let file = match driver::open(path) {
            Ok(file) => file,
            Err(error) => {
                // In the order in which files were named.
                out.flush()?;
                failure::report(&anyhow::Error::new(error).context(name));
                worst = Outcome::Error;
                continue;
            }
        };
        let length = std::fs::metadata(path).map_or(0, |data| data.len());
        let report = match inside {
            None => examine(&file, length)?,
            Some(_) => examine_object(&spot.node(&file).with_context(|| name.clone())?)?,
        };
        report.print(&mut out, &name, style)?;
        if inside.is_none() {
            report.print_bytes(&mut out, &name, arguments.verbose)?;
        }
        if let Some(repaired) = &arguments.repair {
            let target = Target::new(repaired, path, arguments.force)?;
            repair::run(&mut out, &file, path, &report, target)?;
        }
        if !(report.problems.is_empty() && report.newer.is_empty()) && worst == Outcome::Complete {
            worst = Outcome::Different;
        }
    }
    out.flush()?;
    Ok(worst)
}

fn examine(file: &File, length: u64) -> Result<Report> {
    let mut report = Report { length, ..Report::default() };
    report.user_block = file.info().map_or(0, |info| info.user_block_size);
    // Several files that are one have addresses beyond the length of the one that was named.
    if let Ok(space) = file.space() {
        report.length = length.max(space.length.saturating_add(report.user_block));
    }
    file.watch_global_heap();
    report.places(file.object_path(), file.places());
    let length = report.length;
    let progress = Progress::new(length, Unit::Bytes);
    let mut checker = Checker { report, progress };
    walker::walk(file, &mut checker)?;
    let mut report = checker.report;
    let heap = ObjectPath::from("the global heap".to_owned());
    report.places(&heap, Ok(file.global_heap_places()));
    let has = |address, length| file.has_bytes(address, length).unwrap_or(false);
    for (path, problem) in report.layout.problems(length, has) {
        report.problem(&path, &problem);
    }
    Ok(report)
}

/// Reads an object and everything below it. Bytes are accounted for only in whole files.
fn examine_object(node: &Node) -> Result<Report> {
    let progress = Progress::hidden();
    let mut checker = Checker { report: Report::default(), progress };
    walker::walk_node(node, &mut checker)?;
    Ok(checker.report)
}

/// The findings.
#[derive(Default)]
struct Report {
    length: u64,
    user_block: u64,
    groups: u64,
    datasets: u64,
    chunks: u64,
    links: u64,
    layout: Layout,
    problems: Vec<String>,
    /// Objects that only a newer program knows.
    newer: Vec<String>,
    /// Datasets with unreadable elements, by address, and their paths.
    damaged: BTreeMap<u64, String>,
}

impl Report {
    fn problem(&mut self, path: &str, what: &str) {
        let told = placed(path, what);
        if !self.problems.contains(&told) {
            self.problems.push(told);
        }
    }

    /// Records an error: a problem, unless its object is newer than this program.
    fn error(&mut self, path: &str, error: &Error) {
        if !error.is_newer() {
            return self.problem(path, &error.to_string());
        }
        let told = placed(path, &format!("{error}; {}", failure::NEWER));
        if !self.newer.contains(&told) {
            self.newer.push(told);
        }
    }

    /// Records the ranges of an object.
    fn places(&mut self, path: &ObjectPath, places: pumice::Result<Vec<Place>>) {
        match places {
            Ok(places) => self.layout.add(path.clone(), &places),
            Err(error) => self.error(path, &error),
        }
    }

    fn print(&self, out: &mut impl Write, name: &str, style: Style) -> Result<()> {
        for problem in self.problems.iter().take(SHOWN) {
            writeln!(out, "{name}: {} {problem}", style.paint(Role::Failure, "problem:"))?;
        }
        if self.problems.len() > SHOWN {
            writeln!(out, "{name}: {} more problems", self.problems.len() - SHOWN)?;
        }
        for newer in self.newer.iter().take(SHOWN) {
            writeln!(out, "{name}: {} {newer}", style.paint(Role::Failure, "newer:"))?;
        }
        let verdict = match self.problems.len() {
            0 if !self.newer.is_empty() => {
                style.paint(Role::Failure, "not read whole, it is newer than this program")
            }
            0 => style.paint(Role::Good, "sound"),
            1 => style.paint(Role::Failure, "1 problem"),
            count => style.paint(Role::Failure, &format!("{count} problems")),
        };
        writeln!(
            out,
            "{name}: {verdict}; {}, {}, {} and {} read",
            counted(self.groups, "group"),
            counted(self.datasets, "dataset"),
            counted(self.chunks, "chunk"),
            counted(self.links, "link")
        )?;
        Ok(())
    }

    /// Prints the use of every byte of the file.
    fn print_bytes(&self, out: &mut impl Write, name: &str, verbose: bool) -> Result<()> {
        let sum = |wanted: fn(PlaceKind) -> bool| {
            let kinds = self.layout.bytes_by_kind();
            kinds.iter().filter(|(kind, _)| wanted(**kind)).map(|(_, bytes)| bytes).sum::<u64>()
        };
        let free = sum(|kind| kind == PlaceKind::FreeSpace);
        let data = sum(PlaceKind::is_data);
        let metadata = sum(|kind| kind != PlaceKind::FreeSpace && !kind.is_data());
        let unreachable = self.layout.unreachable(self.user_block, self.length);
        let lost: u64 = unreachable.iter().map(|(_, length)| length).sum();
        writeln!(
            out,
            "{name}: {} bytes: {} metadata, {} data, {} known to be free, {} that nothing refers to",
            numbers::grouped(self.length),
            numbers::grouped(metadata),
            numbers::grouped(data),
            numbers::grouped(free),
            numbers::grouped(lost)
        )?;
        if verbose {
            for (kind, bytes) in self.layout.bytes_by_kind() {
                writeln!(out, "{name}:   {kind}: {} bytes", numbers::grouped(bytes))?;
            }
        }
        let shown = if verbose { usize::MAX } else { LISTED };
        for (address, length) in unreachable.iter().take(shown) {
            let (end, length) = (address + length, numbers::grouped(*length));
            writeln!(
                out,
                "{name}: nothing refers to {length} bytes from {address:#x} to {end:#x}"
            )?;
        }
        if unreachable.len() > shown {
            let more = unreachable.len() - shown;
            writeln!(out, "{name}: and to {more} more pieces; --verbose lists them all")?;
        }
        // Newer objects may refer to them.
        if self.newer.is_empty() && lost >= WORTH && lost >= self.length / 10 {
            writeln!(
                out,
                "{name}: `pumice repack` leaves these bytes out; with `-P 1`, or `persist_free_space`, the new file \
                 remembers what becomes free, and uses it in later openings"
            )?;
        }
        Ok(())
    }
}

/// The line about an object, with its path once: errors begin with it.
fn placed(path: &str, what: &str) -> String {
    let what = failure::one_line(what);
    if what.starts_with(path) { what } else { format!("{path}: {what}") }
}

/// The first cell of a stored chunk, its address and its bytes.
type Stored = (Vec<u64>, u64, u64);

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
                    if attribute.name().is_empty() {
                        self.report.problem(path, "an attribute without a name");
                    }
                    let within = format!("attribute {}", attribute.name());
                    self.datatype_names(path, &within, attribute.datatype());
                    if let Err(error) = cells::read_attribute(attribute) {
                        let what = format!("attribute {}: {error:#}", attribute.name());
                        self.report.problem(path, &what);
                    }
                }
            }
            Err(error) => self.report.error(path, &error),
        }
    }

    /// Reports members of a datatype that libhdf5 would not have made.
    fn datatype_names(&mut self, path: &str, within: &str, datatype: &Datatype) {
        if datatype.has_unnamed_members() {
            self.report
                .problem(path, &format!("{within}: a member without a name in its datatype"));
        }
    }

    /// Reads every element, chunk by chunk where there are chunks.
    fn elements(&mut self, path: &str, dataset: &Dataset) -> Result<()> {
        let shape = dataset.shape();
        let chunks = match dataset.layout() {
            LayoutKind::Sparse => dataset.structured_chunks().map(|chunks| {
                let chunks = chunks
                    .map(|chunk| chunk.map(|chunk| (chunk.offset, chunk.address, chunk.size)));
                Box::new(chunks) as Box<dyn Iterator<Item = pumice::Result<Stored>>>
            }),
            LayoutKind::Chunked => dataset.chunks().map(|chunks| {
                let chunks = chunks
                    .map(|chunk| chunk.map(|chunk| (chunk.offset, chunk.address, chunk.size)));
                Box::new(chunks) as Box<dyn Iterator<Item = pumice::Result<Stored>>>
            }),
            _ => {
                let slab = Hyperslab::whole(&shape);
                // Elements that were never written take no space, however many there are.
                let absent =
                    dataset.layout() == LayoutKind::Contiguous && dataset.storage_size()? == 0;
                if absent || dataset.extent()?.is_null() {
                    return Ok(());
                }
                return cells::for_each_piece(dataset, &slab, |_, _, piece| {
                    self.progress.add(piece.elements.len() as u64);
                    Ok(())
                });
            }
        };
        let side = dataset.chunk().unwrap_or_default();
        let mut failures: Vec<(String, String, u64)> = Vec::new();
        for chunk in chunks? {
            let (offset, address, size) = chunk?;
            self.report.chunks += 1;
            self.progress.add(size);
            let axes = offset.iter().zip(&side).zip(&shape);
            let count: Vec<u64> =
                axes.map(|((&at, &side), &end)| side.min(end.saturating_sub(at))).collect();
            // Chunks that were taken before their elements came, or that a smaller shape left.
            if count.contains(&0) {
                continue;
            }
            let block = Selection::block(&offset, &count).map_err(Error::from)?;
            let read = match (dataset.is_sparse(), dataset.datatype().has_varlen()) {
                (true, false) => dataset.read_defined_bytes(&block).map(|_| ()),
                (true, true) => dataset.read_defined_heaped(&block).map(|_| ()),
                (false, true) => dataset.read_heaped(&block).map(|_| ()),
                (false, false) => dataset.read_bytes(&block).map(|_| ()),
            };
            // Values that cannot be decoded here may be sound; chunks are copied as stored.
            if read.as_ref().is_err_and(|error| !error.is_missing_filter()) {
                self.report.damaged.insert(dataset.address(), path.to_owned());
            }
            // Of what can be read, others may still think otherwise.
            let told = read.and_then(|()| match dataset.is_sparse() {
                true => dataset.check_structured_chunk(&offset),
                false => Ok(()),
            });
            if let Err(error) = told {
                let reason = error.to_string();
                match failures.iter_mut().find(|failure| failure.1 == reason) {
                    Some(failure) => failure.2 += 1,
                    None => {
                        let place =
                            format!("the chunk at {offset:?} ({size} bytes at {address:#x})");
                        failures.push((place, reason, 0));
                    }
                }
            }
        }
        for (place, reason, more) in failures {
            let more = match more {
                0 => String::new(),
                more => format!(" and {}", counted(more, "more chunk")),
            };
            self.report.problem(path, &format!("{place}{more}: {reason}"));
        }
        Ok(())
    }
}

impl Visitor for Checker {
    fn enter_group(&mut self, path: &str, group: &Group) -> Result<bool> {
        self.report.groups += 1;
        // Unreadable objects are reported when they are visited.
        if group.members().is_ok_and(|all| all.iter().any(|member| member.name.is_empty())) {
            self.report.problem(path, "a link without a name");
        }
        self.attributes(path, group.attributes());
        self.report.places(group.object_path(), group.places());
        Ok(true)
    }

    fn dataset(&mut self, path: &str, dataset: &Dataset) -> Result<()> {
        self.report.datasets += 1;
        self.datatype_names(path, "elements", dataset.datatype());
        self.attributes(path, dataset.attributes());
        self.report.places(dataset.object_path(), dataset.places());
        if let Err(error) = self.elements(path, dataset) {
            match error.downcast_ref::<Error>() {
                Some(error) => self.report.error(path, error),
                None => self.report.problem(path, &error.to_string()),
            }
            self.report.damaged.insert(dataset.address(), path.to_owned());
        }
        Ok(())
    }

    fn datatype(&mut self, path: &str, datatype: &CommittedDatatype) -> Result<()> {
        self.datatype_names(path, "elements", datatype.datatype());
        self.attributes(path, datatype.attributes());
        self.report.places(datatype.object_path(), datatype.places());
        Ok(())
    }

    fn other(&mut self, _path: &str, _kind: &MemberKind) -> Result<()> {
        self.report.links += 1;
        Ok(())
    }

    fn failed(&mut self, path: &str, error: Error) -> Result<()> {
        self.report.error(path, &error);
        Ok(())
    }
}
