//! Values of datasets and attributes: as lines of text, or as bytes in a file.

use super::objects::Dumper;
use super::options::Binary;
use super::sink::Stream;
use crate::cells::{self, Defined, Hyperslab};
use crate::ddl::{DataLines, LineStyle};
use crate::value::Renderer;
use anyhow::{Context, Result};
use pumice::{Attribute, Dataset, Extent};
use std::io::Write;

impl Dumper<'_> {
    /// The line that tells a sparse dataset.
    pub(super) fn sparse(&mut self, dataset: &Dataset, extent: &Extent) -> Result<()> {
        if !self.options.values {
            return self.line("SPARSE");
        }
        let defined = cells::count_defined(dataset, &Hyperslab::whole(&dataset.shape()))?;
        let all = extent.cells().map_or("more than 2^64".to_owned(), |all| all.to_string());
        self.line(&format!("SPARSE {{ DEFINED {defined} OF {all} }}"))
    }

    pub(super) fn data(
        &mut self,
        dataset: &Dataset,
        extent: &Extent,
        slab: &Hyperslab,
        subset: bool,
    ) -> Result<()> {
        self.line("DATA {")?;
        let shown = match self.options.binary {
            Some(form) => self.bytes(dataset, slab, form),
            None => self.values(dataset, extent, slab, subset),
        };
        self.line("}")?;
        shown
    }

    fn values(
        &mut self,
        dataset: &Dataset,
        extent: &Extent,
        slab: &Hyperslab,
        subset: bool,
    ) -> Result<()> {
        if extent.is_null() {
            return Ok(());
        }
        let defined_only = dataset.is_sparse() && !self.options.dense;
        let datatype = match defined_only {
            true => cells::value_type(dataset.datatype()),
            false => dataset.datatype().clone(),
        };
        let renderer = Renderer::new(&datatype).with_context(|| dataset.path().to_owned())?;
        let (indent, style) = (self.indent, self.style());
        let mut out = self.stream(Stream::Values)?;
        let mut lines = DataLines::new(&mut out, &renderer, indent, style);
        let printed = if defined_only {
            defined_values(dataset, slab, renderer.size(), &mut lines)
        } else if subset {
            subset_values(dataset, slab, renderer.size(), &mut lines)
        } else {
            all_values(dataset, slab, renderer.size(), &mut lines)
        };
        lines.finish()?;
        printed
    }

    fn bytes(&mut self, dataset: &Dataset, slab: &Hyperslab, form: Binary) -> Result<()> {
        let datatype = dataset.datatype();
        let target = match form {
            Binary::File => datatype.clone(),
            Binary::Native | Binary::Little => cells::with_order(datatype, false),
            Binary::Big => cells::with_order(datatype, true),
        };
        let conversion = pumice::types::Conversion::new(datatype, &target);
        let conversion = conversion.map_err(pumice::Error::from)?;
        let out = self.sinks.of(Stream::Values);
        let mut converted = Vec::new();
        cells::for_each_piece(dataset, slab, |_, _, piece| {
            let bytes = &piece.elements;
            converted.resize(bytes.len() / datatype.size().max(1) * target.size(), 0);
            conversion.convert(bytes, &mut converted).map_err(pumice::Error::from)?;
            Ok(out.write_all(&converted)?)
        })
    }

    pub(super) fn attribute_data(&mut self, attribute: &Attribute) -> Result<()> {
        self.line("DATA {")?;
        let shown = self.attribute_values(attribute);
        self.line("}")?;
        shown
    }

    fn attribute_values(&mut self, attribute: &Attribute) -> Result<()> {
        let renderer = Renderer::new(attribute.datatype())?;
        if attribute.extent().is_null() {
            return Ok(());
        }
        let values = cells::read_attribute(attribute)?;
        let (indent, style) = (self.indent, self.style());
        let mut out = self.stream(Stream::Attributes)?;
        let mut lines = DataLines::new(&mut out, &renderer, indent, style);
        let (dims, mut place) = (attribute.extent().dims(), Vec::new());
        let elements = values.elements.chunks_exact(renderer.size().max(1));
        for (index, element) in elements.enumerate() {
            let row_begins = at(index as u64, dims, &mut place);
            lines.push(&place, row_begins, element, &values.heap)?;
        }
        Ok(lines.finish()?)
    }

    /// Where values go. Those apart from the description begin with the end of a line, as h5dump
    /// has it.
    fn stream(&mut self, stream: Stream) -> Result<&mut dyn Write> {
        let apart = self.sinks.is_apart(stream);
        let out = self.sinks.of(stream);
        if apart {
            writeln!(out)?;
        }
        Ok(out)
    }

    fn style(&self) -> LineStyle {
        LineStyle { columns: self.options.columns, coordinates: self.options.indices }
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
    cells::for_each_piece(dataset, slab, |before, _, piece| {
        for (index, element) in (before..).zip(piece.elements.chunks_exact(size.max(1))) {
            let row_begins = at(index, &shape, &mut place);
            lines.push(&place, row_begins, element, &piece.heap)?;
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
    let outer = slab.block.len().saturating_sub(2);
    if slab.block[..outer].iter().any(|&block| block > 1) {
        return thick_values(dataset, slab, size, lines);
    }
    let (extent, shape) = (dataset.shape(), slab.shape());
    let row = shape.last().copied().unwrap_or(1).max(1);
    let rows = if shape.len() > 2 { shape[shape.len() - 2] } else { u64::MAX };
    let plane = rows.saturating_mul(row);
    let (mut selected, mut place) = (Vec::new(), Vec::new());
    cells::for_each_piece(dataset, slab, |before, _, piece| {
        for (index, element) in (before..).zip(piece.elements.chunks_exact(size.max(1))) {
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
            lines.push(&place, index % row == 0, element, &piece.heap)?;
        }
        Ok(())
    })
}

/// A subset whose blocks are more than one plane thick: h5dump prints a row of all planes of a block
/// together.
fn thick_values<W: Write>(
    dataset: &Dataset,
    slab: &Hyperslab,
    size: usize,
    lines: &mut DataLines<'_, W>,
) -> Result<()> {
    let (rank, extent) = (slab.block.len(), dataset.shape());
    let shape = slab.shape();
    let row_axis = rank - 2;
    let mut counts = slab.count[..row_axis].to_vec();
    counts.push(shape[row_axis]);
    let (mut index, mut place) = (Vec::new(), Vec::new());
    for number in 0..counts.iter().product::<u64>() {
        cells::coordinates(number, &counts, &mut index);
        if number > 0 && index[row_axis] == 0 {
            lines.interrupt()?;
        }
        let mut part = slab.clone();
        for (axis, number) in index[..row_axis].iter().enumerate() {
            part.start[axis] += number * slab.stride[axis];
            part.count[axis] = 1;
        }
        part.start[row_axis] = slab.coordinate(row_axis, index[row_axis]);
        (part.count[row_axis], part.block[row_axis]) = (1, 1);
        let first = part.start.iter().zip(&extent).fold(0u64, |linear, (start, length)| {
            linear.wrapping_mul(*length).wrapping_add(*start)
        });
        let piece = cells::read(dataset, &part.selection()?)?;
        for (cell, element) in (0..).zip(piece.elements.chunks_exact(size.max(1))) {
            cells::coordinates(first.wrapping_add(cell), &extent, &mut place);
            lines.push(&place, cell == 0, element, &piece.heap)?;
        }
    }
    Ok(())
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
        let elements = found.values.elements.chunks_exact(size.max(1));
        for (&linear, element) in found.cells.iter().zip(elements) {
            cells::coordinates(linear, &shape, &mut place);
            let apart = next != Some(linear) || linear % row == 0;
            lines.push(&place, apart, element, &found.values.heap)?;
            next = linear.checked_add(1);
        }
        Ok(())
    })
}
