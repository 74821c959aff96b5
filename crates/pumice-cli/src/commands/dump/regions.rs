//! The defined cells of a sparse dataset as blocks and points, with their values if wanted.
//!
//! The form is that of the RFC on sparse data: values stand a level deeper than in dense datasets, behind
//! coordinates without a colon, each point on a line of its own.
//!
//! Cells that fill a block are printed as one, whatever its axes; a single cell is a point. Many
//! blocks and points are printed in several turns. All cells of a dense dataset are defined.

mod merger;

use self::merger::{Block, Merger};
use super::objects::Dumper;
use super::options::Binary;
use super::sink::Stream;
use super::values::subset_values;
use crate::cells::{self, Hyperslab};
use crate::ddl::{DataLines, LineStyle};
use crate::value::INDENT;
use anyhow::Result;
use pumice::types::ReferenceKind;
use pumice::{Dataset, Datatype, Selection};

impl Dumper<'_> {
    /// Prints all defined cells of `slab`.
    pub(super) fn regions(&mut self, dataset: &Dataset, slab: &Hyperslab) -> Result<()> {
        let shape = dataset.shape();
        if shape.is_empty() {
            // A scalar has no place to tell.
            let values = self.options.sparse_values;
            return if values {
                self.data(dataset, &dataset.extent()?, slab, false)
            } else {
                Ok(())
            };
        }
        cells::require_numbers(&shape)?;
        let mut merger = Merger::new(&shape);
        if dataset.is_sparse() {
            let mut any = false;
            cells::for_each_band(dataset, slab, |band| {
                let defined = dataset.defined(band)?;
                any |= defined.count(&shape) > 0;
                self.runs(dataset, &defined, &mut merger)
            })?;
            if !any && self.options.sparse_locations {
                // Nothing at all would look like a description without data.
                return self.sparse(dataset, slab);
            }
        } else {
            self.runs(dataset, &slab.selection()?, &mut merger)?;
        }
        merger.finish();
        self.regions_of(dataset, &mut merger)
    }

    fn runs(&mut self, dataset: &Dataset, cells: &Selection, merger: &mut Merger) -> Result<()> {
        for run in cells.runs(&dataset.shape()) {
            merger.push(run.start..run.start + run.len);
            if merger.is_full() {
                self.regions_of(dataset, merger)?;
            }
        }
        Ok(())
    }

    /// Prints the merged regions.
    fn regions_of(&mut self, dataset: &Dataset, merger: &mut Merger) -> Result<()> {
        let (blocks, points) = merger.take();
        for block in blocks {
            let text = format!("{}-{}", tuple(&block.first), tuple(&block.last));
            self.line(&format!("REGION_TYPE BLOCK  {text}"))?;
            if self.options.sparse_values {
                self.block_values(dataset, &block)?;
            }
        }
        if points.is_empty() {
            return Ok(());
        }
        let list: Vec<String> = points.iter().map(|point| tuple(point)).collect();
        let columns = self.line_style().columns;
        self.wrapped("REGION_TYPE POINT  ", &list, columns)?;
        if self.options.sparse_values {
            self.point_values(dataset, &points)?;
        }
        Ok(())
    }

    fn block_values(&mut self, dataset: &Dataset, block: &Block) -> Result<()> {
        let ranges = block.first.iter().zip(&block.last).map(|(first, last)| *first..last + 1);
        let slab = Hyperslab::ranges(&ranges.collect::<Vec<_>>());
        if leads_to_regions(dataset.datatype()) {
            return self.led_to(dataset, &slab.selection()?);
        }
        if let Some(form) = self.options.binary {
            return self.region_bytes(dataset, &slab.selection()?, form);
        }
        let renderer = self.renderer(dataset.datatype())?;
        self.line("DATA {")?;
        let style = LineStyle { separator: "  ", ..self.line_style() };
        let indent = self.indent + INDENT;
        let mut out = self.stream(Stream::Values)?;
        let lines = DataLines::new(&mut out, &renderer, indent, style);
        let mut lines = lines.in_array(&dataset.shape());
        let shown = subset_values(dataset, &slab, renderer.size(), &mut lines);
        lines.finish()?;
        self.line("}")?;
        shown
    }

    fn point_values(&mut self, dataset: &Dataset, points: &[Vec<u64>]) -> Result<()> {
        let cells = Selection::points(dataset.shape().len(), points.concat())?;
        if leads_to_regions(dataset.datatype()) {
            return self.led_to(dataset, &cells);
        }
        if let Some(form) = self.options.binary {
            return self.region_bytes(dataset, &cells, form);
        }
        let values = cells::read(dataset, &cells)?;
        let renderer = self.renderer(dataset.datatype())?;
        self.line("DATA {")?;
        let style = LineStyle { separator: " ", ..self.line_style() };
        let indent = self.indent + INDENT;
        let mut out = self.stream(Stream::Values)?;
        let mut lines = DataLines::new(&mut out, &renderer, indent, style);
        let elements = values.elements.chunks_exact(renderer.size().max(1));
        for (point, element) in points.iter().zip(elements) {
            lines.interrupt()?;
            lines.push(point, true, element, &values.heap)?;
        }
        lines.finish()?;
        self.line("}")
    }

    /// Values as bytes, beside the description.
    fn region_bytes(&mut self, dataset: &Dataset, cells: &Selection, form: Binary) -> Result<()> {
        self.line("DATA {")?;
        let written = self.bytes(dataset, form, |write| write(&cells::read(dataset, cells)?));
        self.line("}")?;
        written
    }

    /// Prints the objects of references, cell by cell.
    fn led_to(&mut self, dataset: &Dataset, cells: &Selection) -> Result<()> {
        let references = dataset.read_references(cells)?;
        self.line("DATA {")?;
        let shown = self.references(&references);
        self.line("}")?;
        shown
    }
}

/// Whether elements are references that take more than a line each.
fn leads_to_regions(datatype: &Datatype) -> bool {
    matches!(datatype, Datatype::Reference(reference) if reference.kind != ReferenceKind::Object)
}

fn tuple(cell: &[u64]) -> String {
    let list: Vec<String> = cell.iter().map(u64::to_string).collect();
    format!("({})", list.join(","))
}
