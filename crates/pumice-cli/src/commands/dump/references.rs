//! The objects of references: objects, regions of datasets, attributes.

use super::objects::Dumper;
use super::sink::Stream;
use crate::atlas::{self, Atlas};
use crate::cells::{self, Hyperslab};
use crate::ddl::{DataLines, LineStyle, dataspace};
use crate::failure;
use crate::region;
use crate::value::INDENT;
use anyhow::Result;
use pumice::types::ddl::indented;
use pumice::{Attribute, Dataset, File, Node, Reference, Selection};
use std::sync::Arc;

/// References that lead to references are followed this far.
const MAX_DEPTH: usize = 8;
/// Columns of a list of blocks or points.
const COLUMNS: usize = 80;

impl Dumper<'_> {
    /// A line or a block for each reference.
    pub(super) fn references(&mut self, references: &[Option<Reference>]) -> Result<()> {
        self.indent += INDENT;
        for reference in references {
            let shown = match reference {
                None => {
                    if self.options.regions && self.options.error_stack {
                        failure::warn("NULL token size");
                    }
                    self.line("NULL")
                }
                Some(reference) => self.reference(reference),
            };
            self.survive(shown)?;
        }
        self.indent -= INDENT;
        Ok(())
    }

    fn reference(&mut self, reference: &Reference) -> Result<()> {
        let names = self.names_of(reference);
        let (file, address) = (&names.0, reference.address());
        let Some(path) = names.1.path(address) else { return self.line("NULL") };
        let place = format!("{file}{path}");
        if let Some(name) = reference.attribute() {
            let place = format!("{}/{name}", place.trim_end_matches('/'));
            return self.attribute_reference(reference, &place);
        }
        let word = match names.1.kind(address) {
            Some(atlas::Kind::Group) => "GROUP",
            Some(atlas::Kind::Datatype) => "DATATYPE",
            _ => "DATASET",
        };
        if reference.is_region() {
            let (dataset, region) = self.file.dereference_region(reference)?;
            if region.is_all() {
                return self.line(&format!("{word} \"{place}\""));
            }
            return self.region(&place, &dataset, &region);
        }
        self.line(&format!("{word} \"{place}\""))?;
        let Node::Dataset(dataset) = self.file.dereference(reference)? else { return Ok(()) };
        if self.depth >= MAX_DEPTH {
            return Ok(());
        }
        let (extent, slab) = (dataset.extent()?, Hyperslab::whole(&dataset.shape()));
        self.indent += INDENT;
        self.depth += 1;
        let shown = self.data(&dataset, &extent, &slab, false);
        self.depth -= 1;
        self.indent -= INDENT;
        shown
    }

    /// The name and the paths of the file that a reference leads to.
    fn names_of(&mut self, reference: &Reference) -> Arc<(String, Atlas)> {
        let Some(name) = reference.file() else { return self.names() };
        if let Some(known) = self.other_files.iter().find(|known| known.0 == name) {
            return known.clone();
        }
        let atlas = File::open(name).map_or_else(|_| Atlas::default(), |file| Atlas::of(&file));
        let names = Arc::new((name.to_owned(), atlas));
        self.other_files.push(names.clone());
        names
    }

    fn attribute_reference(&mut self, reference: &Reference, place: &str) -> Result<()> {
        self.begin(&format!("ATTRIBUTE \"{place}\" {{"))?;
        let shown = match self.file.dereference_attribute(reference) {
            Ok(attribute) => self.attribute_of_reference(&attribute),
            Err(_) => self.line("NULL"),
        };
        self.end()?;
        shown
    }

    fn attribute_of_reference(&mut self, attribute: &Attribute) -> Result<()> {
        let datatype = indented(attribute.datatype(), self.indent).to_string();
        self.line(&format!("DATATYPE  {datatype}"))?;
        self.line(&format!("DATASPACE  {}", dataspace(attribute.extent())))?;
        self.attribute_data(attribute)
    }

    /// A region of a dataset, and its values if these are wanted.
    fn region(&mut self, place: &str, dataset: &Dataset, region: &Selection) -> Result<()> {
        self.begin(&format!("DATASET \"{place}\" {{"))?;
        let shape = dataset.shape();
        let (word, parts) = region::parts(region, &shape);
        self.wrapped(&format!("REGION_TYPE {word}  "), &parts, COLUMNS)?;
        let datatype = indented(dataset.datatype(), self.indent).to_string();
        self.line(&format!("DATATYPE  {datatype}"))?;
        self.line(&format!("DATASPACE  {}", dataspace(&dataset.extent()?)))?;
        let mut shown = Ok(());
        if self.options.regions {
            self.line("DATA {")?;
            shown = self.region_values(dataset, region, word == "POINT");
            self.line("}")?;
        }
        self.end()?;
        shown
    }

    fn region_values(&mut self, dataset: &Dataset, region: &Selection, points: bool) -> Result<()> {
        let values = cells::read(dataset, region)?;
        let renderer = self.renderer(dataset.datatype())?;
        let row = region.bounds(&dataset.shape()).and_then(|(low, high)| {
            let (low, high) = (low.last().copied()?, high.last().copied()?);
            Some(high.saturating_sub(low) + 1)
        });
        let row = row.unwrap_or(u64::MAX).max(1);
        let style = LineStyle { coordinates: false, apart: points, ..self.line_style() };
        let indent = self.indent;
        let apart = self.sinks.is_apart(Stream::Values);
        let mut out = self.stream(Stream::Values)?;
        let mut lines = DataLines::new(&mut out, &renderer, indent, style).open_ended(apart);
        let elements = values.elements.chunks_exact(renderer.size().max(1));
        for (index, element) in (0u64..).zip(elements) {
            lines.push(&[], index % row == 0, element, &values.heap)?;
        }
        Ok(lines.finish()?)
    }

    /// A list that goes on in the next line where one is full.
    pub(super) fn wrapped(&mut self, begin: &str, parts: &[String], most: usize) -> Result<()> {
        let mut line = begin.to_owned();
        for (index, part) in parts.iter().enumerate() {
            let comma = if index + 1 < parts.len() { "," } else { "" };
            let gap = if index > 0 { " " } else { "" };
            // h5dump counts one level more than it indents.
            let columns = self.indent + INDENT + line.len() + gap.len() + part.len() + 1;
            if index > 0 && columns > most {
                self.line(&line)?;
                line = String::new();
            }
            line += &format!("{gap}{part}{comma}");
        }
        self.line(&line)
    }
}
