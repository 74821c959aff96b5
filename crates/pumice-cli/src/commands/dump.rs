//! `pumice dump`: a file in h5dump's language.
//!
//! Dense data is printed as h5dump 1.10 prints it, its habits included: in a subset, coordinates of
//! continued lines count cells without regard to the stride, and no comma stands between planes.
//! Defined cells of sparse datasets are printed with their own coordinates.

use super::{Outcome, output};
use crate::cells::{self, Defined, Hyperslab};
use crate::cli::Dump;
use crate::ddl::{DataLines, dataspace};
use crate::failure;
use crate::value::{INDENT, Renderer};
use crate::walker::{self, Kind, Visitor};
use anyhow::{Context, Result, ensure};
use pumice::types::ddl::indented;
use pumice::{Attribute, Dataset, Error, Extent, File, Group, MemberKind};
use std::io::Write;

pub(super) fn run(arguments: &Dump) -> Result<Outcome> {
    let subset = [&arguments.start, &arguments.count, &arguments.stride, &arguments.block];
    let subset = subset.iter().any(|list| list.is_some());
    ensure!(
        !subset || arguments.dataset.len() == 1,
        "a selection (-s, -c, -S, -k) needs exactly one dataset (-d)"
    );
    let file = File::open(&arguments.file)?;
    let mut out = output();
    let mut dumper =
        Dumper { out: &mut out, arguments, subset, indent: 0, outcome: Outcome::Complete };
    writeln!(dumper.out, "HDF5 \"{}\" {{", arguments.file.display())?;
    if arguments.dataset.is_empty() {
        walker::walk(&file, &mut dumper)?;
    }
    for name in &arguments.dataset {
        let dataset = file.dataset(name);
        match dataset.map_err(anyhow::Error::from).and_then(|found| dumper.show(name, &found)) {
            Err(error) if failure::is_broken_pipe(&error) => return Err(error),
            Err(error) => dumper.note(&error),
            Ok(()) => {}
        }
    }
    let outcome = dumper.outcome;
    writeln!(out, "}}")?;
    out.flush()?;
    Ok(outcome)
}

/// Prints what it visits.
struct Dumper<'a, W> {
    out: &'a mut W,
    arguments: &'a Dump,
    /// Whether only a part of the dataset is wanted.
    subset: bool,
    indent: usize,
    outcome: Outcome,
}

impl<W: Write> Visitor for Dumper<'_, W> {
    fn enter_group(&mut self, path: &str, group: &Group) -> Result<bool> {
        self.open("GROUP", if path == "/" { path } else { walker::name(path) })?;
        self.attributes(group.attributes())?;
        Ok(true)
    }

    fn leave_group(&mut self, _path: &str) -> Result<()> {
        self.close()
    }

    fn dataset(&mut self, path: &str, dataset: &Dataset) -> Result<()> {
        match self.show(walker::name(path), dataset) {
            Err(error) if !failure::is_broken_pipe(&error) => {
                self.note(&error);
                Ok(())
            }
            done => done,
        }
    }

    fn other(&mut self, path: &str, kind: &MemberKind) -> Result<()> {
        let name = walker::name(path);
        match kind {
            MemberKind::SoftLink(target) => {
                self.open("SOFTLINK", name)?;
                self.line(&format!("LINKTARGET \"{target}\""))?;
                self.close()
            }
            MemberKind::ExternalLink(file, target) => {
                self.open("EXTERNAL_LINK", name)?;
                self.line(&format!("TARGETFILE \"{file}\""))?;
                self.line(&format!("TARGETPATH \"{target}\""))?;
                self.close()
            }
            MemberKind::Datatype => {
                self.note(&anyhow::anyhow!("{path}: committed datatypes are not printed yet"));
                Ok(())
            }
            _ => {
                self.open("USERDEFINED_LINK", name)?;
                self.close()
            }
        }
    }

    fn again(&mut self, path: &str, kind: Kind, first: &str) -> Result<()> {
        let keyword = match kind {
            Kind::Group => "GROUP",
            Kind::Dataset => "DATASET",
        };
        self.open(keyword, walker::name(path))?;
        self.line(&format!("HARDLINK \"{first}\""))?;
        self.close()
    }

    fn failed(&mut self, _path: &str, error: Error) -> Result<()> {
        self.note(&error.into());
        Ok(())
    }
}

impl<W: Write> Dumper<'_, W> {
    fn show(&mut self, name: &str, dataset: &Dataset) -> Result<()> {
        let extent = dataset.extent()?;
        let slab = self.slab(dataset).with_context(|| dataset.path().to_owned())?;
        self.open("DATASET", name)?;
        let shown = self.body(dataset, &extent, &slab);
        self.attributes(dataset.attributes())?;
        self.close()?;
        shown
    }

    fn body(&mut self, dataset: &Dataset, extent: &Extent, slab: &Hyperslab) -> Result<()> {
        self.line(&format!("DATATYPE  {}", indented(dataset.datatype(), self.indent)))?;
        self.line(&format!("DATASPACE  {}", dataspace(extent)))?;
        let values = !(self.arguments.header || self.arguments.onlyattr);
        if dataset.is_sparse() && !self.arguments.dense {
            self.sparse(dataset, extent, values)?;
        }
        if !values {
            return Ok(());
        }
        if self.subset {
            self.line("SUBSET {")?;
            self.indent += INDENT;
            for (name, list) in [
                ("START", &slab.start),
                ("STRIDE", &slab.stride),
                ("COUNT", &slab.count),
                ("BLOCK", &slab.block),
            ] {
                let list: Vec<String> = list.iter().map(u64::to_string).collect();
                self.line(&format!("{name} ( {} );", list.join(", ")))?;
            }
        }
        self.line("DATA {")?;
        let printed = self.values(dataset, extent, slab);
        self.line("}")?;
        if self.subset {
            self.close()?;
        }
        printed
    }

    /// The line that tells a sparse dataset.
    fn sparse(&mut self, dataset: &Dataset, extent: &Extent, values: bool) -> Result<()> {
        if !values {
            return self.line("SPARSE");
        }
        let defined = cells::count_defined(dataset, &Hyperslab::whole(&dataset.shape()))?;
        let all = extent.cells().map_or("more than 2^64".to_owned(), |all| all.to_string());
        self.line(&format!("SPARSE {{ DEFINED {defined} OF {all} }}"))
    }

    fn values(&mut self, dataset: &Dataset, extent: &Extent, slab: &Hyperslab) -> Result<()> {
        if extent.is_null() {
            return Ok(());
        }
        let defined_only = dataset.is_sparse() && !self.arguments.dense;
        let datatype = match defined_only {
            true => cells::value_type(dataset.datatype()),
            false => dataset.datatype().clone(),
        };
        let renderer = Renderer::new(&datatype).with_context(|| dataset.path().to_owned())?;
        let mut lines = DataLines::new(self.out, &renderer, self.indent);
        let printed = if defined_only {
            defined_values(dataset, slab, renderer.size(), &mut lines)
        } else if self.subset {
            subset_values(dataset, slab, renderer.size(), &mut lines)
        } else {
            all_values(dataset, slab, renderer.size(), &mut lines)
        };
        lines.finish()?;
        printed
    }

    fn attributes(&mut self, attributes: pumice::Result<Vec<Attribute>>) -> Result<()> {
        match attributes {
            Ok(attributes) => attributes.iter().try_for_each(|attribute| self.attribute(attribute)),
            Err(error) => {
                self.note(&error.into());
                Ok(())
            }
        }
    }

    fn attribute(&mut self, attribute: &Attribute) -> Result<()> {
        self.open("ATTRIBUTE", attribute.name())?;
        self.line(&format!("DATATYPE  {}", indented(attribute.datatype(), self.indent)))?;
        self.line(&format!("DATASPACE  {}", dataspace(attribute.extent())))?;
        if !self.arguments.header {
            self.line("DATA {")?;
            match Renderer::new(attribute.datatype()) {
                Ok(renderer) if !attribute.extent().is_null() => {
                    let mut lines = DataLines::new(self.out, &renderer, self.indent);
                    let (dims, mut place) = (attribute.extent().dims(), Vec::new());
                    let elements = attribute.bytes().chunks_exact(renderer.size().max(1));
                    for (index, element) in elements.enumerate() {
                        let row_begins = at(index as u64, dims, &mut place);
                        lines.push(&place, row_begins, element)?;
                    }
                    lines.finish()?;
                }
                Ok(_) => {}
                Err(error) => {
                    let name = attribute.name().to_owned();
                    self.note(&error.context(format!("attribute \"{name}\"")));
                }
            }
            self.line("}")?;
        }
        self.close()
    }

    /// What to print of a dataset.
    fn slab(&self, dataset: &Dataset) -> Result<Hyperslab> {
        let shape = dataset.shape();
        if !self.subset {
            return Ok(Hyperslab::whole(&shape));
        }
        let given = |list: &Option<Vec<u64>>, default| {
            list.clone().unwrap_or_else(|| vec![default; shape.len()])
        };
        let slab = Hyperslab {
            start: given(&self.arguments.start, 0),
            stride: given(&self.arguments.stride, 1),
            count: given(&self.arguments.count, 1),
            block: given(&self.arguments.block, 1),
        };
        ensure!(!shape.is_empty(), "a scalar has no parts to select");
        slab.check(&shape)?;
        Ok(slab)
    }

    fn open(&mut self, keyword: &str, name: &str) -> Result<()> {
        self.line(&format!("{keyword} \"{name}\" {{"))?;
        self.indent += INDENT;
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        self.indent = self.indent.saturating_sub(INDENT);
        self.line("}")
    }

    fn line(&mut self, text: &str) -> Result<()> {
        Ok(writeln!(self.out, "{:1$}{text}", "", self.indent)?)
    }

    /// Tells a failure and goes on.
    fn note(&mut self, error: &anyhow::Error) {
        failure::report(error);
        self.outcome = Outcome::Incomplete;
    }
}

/// The coordinates of an element, and whether a row begins with it.
fn at(index: u64, dims: &[u64], place: &mut Vec<u64>) -> bool {
    if dims.is_empty() {
        place.clear();
        place.push(0);
        return false;
    }
    cells::coordinates(index, dims, place);
    place.last() == Some(&0)
}

fn all_values<W: Write>(
    dataset: &Dataset,
    slab: &Hyperslab,
    size: usize,
    lines: &mut DataLines<'_, W>,
) -> Result<()> {
    let (shape, mut place) = (dataset.shape(), Vec::new());
    cells::for_each_piece(dataset, slab, |before, _, bytes| {
        for (index, element) in (before..).zip(bytes.chunks_exact(size.max(1))) {
            let row_begins = at(index, &shape, &mut place);
            lines.push(&place, row_begins, element)?;
        }
        Ok(())
    })
}

fn subset_values<W: Write>(
    dataset: &Dataset,
    slab: &Hyperslab,
    size: usize,
    lines: &mut DataLines<'_, W>,
) -> Result<()> {
    let (extent, shape) = (dataset.shape(), slab.shape());
    let row = shape.last().copied().unwrap_or(1).max(1);
    let rows = if shape.len() > 2 { shape[shape.len() - 2] } else { u64::MAX };
    let plane = rows.saturating_mul(row);
    let (mut selected, mut place) = (Vec::new(), Vec::new());
    cells::for_each_piece(dataset, slab, |before, _, bytes| {
        for (index, element) in (before..).zip(bytes.chunks_exact(size.max(1))) {
            if index > 0 && index % plane == 0 {
                lines.interrupt()?;
            }
            cells::coordinates(index - index % row, &shape, &mut selected);
            let first = selected.iter().enumerate();
            let first = first.map(|(axis, &number)| slab.coordinate(axis, number));
            // Counted on from the row's first cell, as h5dump does.
            let linear = first.zip(&extent).fold(0u64, |linear, (coordinate, &length)| {
                linear.wrapping_mul(length).wrapping_add(coordinate)
            });
            cells::coordinates(linear.wrapping_add(index % row), &extent, &mut place);
            lines.push(&place, index % row == 0, element)?;
        }
        Ok(())
    })
}

fn defined_values<W: Write>(
    dataset: &Dataset,
    slab: &Hyperslab,
    size: usize,
    lines: &mut DataLines<'_, W>,
) -> Result<()> {
    let (shape, mut place) = (dataset.shape(), Vec::new());
    let row = shape.last().copied().unwrap_or(1).max(1);
    // Neighbours share a line, also where a piece ends between them.
    let mut next = None;
    cells::for_each_band(dataset, slab, |band| {
        let found = Defined::read(dataset, band)?;
        let elements = found.values.chunks_exact(size.max(1));
        for (&linear, element) in found.cells.iter().zip(elements) {
            cells::coordinates(linear, &shape, &mut place);
            let apart = next != Some(linear) || linear % row == 0;
            lines.push(&place, apart, element)?;
            next = linear.checked_add(1);
        }
        Ok(())
    })
}
