//! Values of datasets and attributes: as lines of text, or as bytes in a file.

use super::objects::Dumper;
use super::options::Binary;
use super::sink::Stream;
use crate::cells::{self, Defined, Hyperslab};
use crate::ddl::{CharacterLines, DataLines, LineStyle};
use crate::failure;
use crate::value::{INDENT, Renderer, Style};
use anyhow::{Context, Result, anyhow};
use pumice::types::{Heaped, StringPadding};
use pumice::{Attribute, Dataset, Datatype, Extent, Group};
use std::io::Write;

/// A place where no integer has bits.
const NO_BITS: u32 = 64;

impl Dumper<'_> {
    /// The line that tells a sparse dataset, and how many cells of a part of it are defined.
    pub(super) fn sparse(&mut self, dataset: &Dataset, slab: &Hyperslab) -> Result<()> {
        if !self.options.values {
            return self.line("SPARSE");
        }
        let defined = cells::count_defined(dataset, slab)?;
        let all = slab.shape().into_iter().try_fold(1u64, u64::checked_mul);
        let all = all.map_or("more than 2^64".to_owned(), |all| all.to_string());
        self.line(&format!("SPARSE {{ DEFINED {defined} OF {all} }}"))
    }

    pub(super) fn data(
        &mut self,
        dataset: &Dataset,
        extent: &Extent,
        slab: &Hyperslab,
        subset: bool,
    ) -> Result<()> {
        for index in 0..self.options.bits.len().max(1) {
            self.bits = self.options.bits.get(index).copied();
            if let Some((low, count)) = self.bits {
                if exceeds(dataset.datatype(), low + count) {
                    self.bits = Some((NO_BITS, count));
                }
                self.line(&format!("PACKED_BITS OFFSET={low} LENGTH={count}"))?;
            }
            self.data_once(dataset, extent, slab, subset)?;
        }
        // Later elements are printed like the last of them, as in h5dump.
        Ok(())
    }

    fn data_once(
        &mut self,
        dataset: &Dataset,
        extent: &Extent,
        slab: &Hyperslab,
        subset: bool,
    ) -> Result<()> {
        self.line("DATA {")?;
        let shown = match self.options.binary {
            Some(form) => self.bytes(dataset, form, |write| {
                cells::for_each_piece(dataset, slab, |_, _, piece| write(piece))
            }),
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
        if matches!(dataset.datatype(), Datatype::Reference(_)) {
            // h5dump prints all of them, whatever part was asked for.
            let references = dataset.read_references(..)?;
            return self.references(&references);
        }
        // A part is printed as that of a dense dataset.
        let defined_only = dataset.is_sparse() && !self.options.dense && !subset;
        let datatype = match defined_only {
            true => cells::value_type(dataset.datatype()),
            false => dataset.datatype().clone(),
        };
        let renderer = self.renderer(&datatype).with_context(|| dataset.path().to_owned())?;
        let (indent, style) = (self.indent, self.line_style());
        let characters = self.prints_characters(&datatype) && !defined_only;
        let apart = self.sinks.is_apart(Stream::Values);
        let mut out = self.stream(Stream::Values)?;
        if characters {
            let shape = slab.shape();
            let row = shape.last().copied().unwrap_or(1).max(1);
            let mut lines =
                CharacterLines::new(&mut out, &renderer, indent + INDENT, style.columns);
            let printed = cells::for_each_piece(dataset, slab, |before, _, piece| {
                for (index, byte) in (before..).zip(piece.elements.chunks_exact(1)) {
                    lines.push(index % row == 0, byte)?;
                }
                Ok(())
            });
            lines.finish()?;
            return printed;
        }
        let mut lines =
            DataLines::new(&mut out, &renderer, indent, style).in_array(&dataset.shape());
        lines = lines.open_ended(apart);
        let printed = if defined_only {
            defined_values(dataset, slab, renderer.size(), &mut lines)
        } else if subset {
            subset_values(dataset, slab, renderer.size(), &mut lines)
        } else {
            all_values(dataset, slab, &mut lines)
        };
        lines.finish()?;
        printed
    }

    /// The renderer for values of a datatype.
    pub(super) fn renderer(&mut self, datatype: &Datatype) -> Result<Renderer> {
        let refers = datatype.has_references();
        let names = refers.then(|| self.names());
        let file = refers.then(|| Group::clone(self.file));
        let characters = self.prints_characters(datatype);
        let style = Style { names, file, characters, bits: self.bits, ..self.options.style() };
        Renderer::styled(datatype, &style)
    }

    fn prints_characters(&self, datatype: &Datatype) -> bool {
        let byte = matches!(datatype, Datatype::Integer(integer) if integer.size == 1);
        self.options.characters && byte
    }

    /// Writes elements as bytes. `feed` passes all of them, piece by piece.
    pub(super) fn bytes(
        &mut self,
        dataset: &Dataset,
        form: Binary,
        feed: impl FnOnce(&mut dyn FnMut(&Heaped) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let datatype = dataset.datatype();
        let target = match form {
            Binary::File => datatype.clone(),
            Binary::Native | Binary::Little => cells::with_order(datatype, false),
            Binary::Big => cells::with_order(datatype, true),
        };
        let conversion = pumice::types::Conversion::new(datatype, &target);
        let conversion = conversion.map_err(pumice::Error::from)?;
        let terminated = match datatype {
            Datatype::String(text) => text.padding == StringPadding::NullTerminate,
            _ => false,
        };
        let out = self.sinks.of(Stream::Values);
        let mut converted = Vec::new();
        feed(&mut |piece: &Heaped| {
            let bytes = &piece.elements;
            if terminated {
                // h5dump writes texts up to their ends, one behind the other.
                for text in bytes.chunks_exact(datatype.size().max(1)) {
                    let end = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
                    out.write_all(&text[..end])?;
                }
                return Ok(());
            }
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
        if attribute.extent().is_null() {
            return Ok(());
        }
        if matches!(attribute.datatype(), Datatype::Reference(_)) {
            let references = attribute.read_references()?;
            return self.references(&references);
        }
        let values = cells::read_attribute(attribute)?;
        let renderer = self.renderer(attribute.datatype())?;
        let (indent, style) = (self.indent, self.line_style());
        let characters = self.prints_characters(attribute.datatype());
        let apart = self.sinks.is_apart(Stream::Attributes);
        let mut out = self.stream(Stream::Attributes)?;
        let (dims, mut place) = (attribute.extent().dims(), Vec::new());
        let elements = values.elements.chunks_exact(renderer.size().max(1));
        if characters {
            let mut lines =
                CharacterLines::new(&mut out, &renderer, indent + INDENT, style.columns);
            for (index, element) in elements.enumerate() {
                lines.push(at(index as u64, dims, &mut place), element)?;
            }
            return Ok(lines.finish()?);
        }
        let mut lines = DataLines::new(&mut out, &renderer, indent, style).open_ended(apart);
        for (index, element) in elements.enumerate() {
            let row_begins = at(index as u64, dims, &mut place);
            lines.push(&place, row_begins, element, &values.heap)?;
        }
        Ok(lines.finish()?)
    }

    /// The stream for values. Values apart from the description begin with a line break, as in
    /// h5dump.
    pub(super) fn stream(&mut self, stream: Stream) -> Result<&mut dyn Write> {
        let apart = self.sinks.is_apart(stream);
        let out = self.sinks.of(stream);
        if apart {
            writeln!(out)?;
        }
        Ok(out)
    }

    pub(super) fn line_style(&self) -> LineStyle {
        let apart = self.options.columns == 0;
        let columns = if apart { 65_535 } else { self.options.columns };
        LineStyle { columns, coordinates: self.options.indices, apart, ..LineStyle::default() }
    }
}

/// Whether requested bits are beyond the integers of a type, which is reported: h5dump prints zeros
/// then.
fn exceeds(datatype: &Datatype, end: u32) -> bool {
    let Datatype::Integer(integer) = datatype else { return false };
    let most = integer.size.saturating_mul(8);
    if end > most {
        let text = format!("Packed Bit offset+length value({end}) too large. Max is {most}");
        failure::report(&anyhow!(text));
    }
    end > most
}

/// Computes the coordinates of an element; returns whether it begins a row.
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
    lines: &mut DataLines<'_, W>,
) -> Result<()> {
    // A scalar's value begins no row.
    let row = dataset.shape().last().copied().unwrap_or(u64::MAX).max(1);
    cells::for_each_piece(dataset, slab, |before, _, piece| {
        Ok(lines.push_cells(before, row, &piece.elements, &piece.heap)?)
    })
}

/// The cells of a subset as h5dump orders them: a block that is several planes thick is printed row
/// by row of all its planes, with coordinates counted on from the first cell of that row.
pub(super) fn subset_values<W: Write>(
    dataset: &Dataset,
    slab: &Hyperslab,
    size: usize,
    lines: &mut DataLines<'_, W>,
) -> Result<()> {
    let (rank, extent) = (slab.block.len(), dataset.shape());
    let outer = rank.saturating_sub(2);
    let thick = slab.block[..outer].iter().any(|&block| block > 1);
    let mut place = Vec::new();
    let mut row = |part: &Hyperslab, length: u64, lines: &mut DataLines<'_, W>| {
        cells::for_each_piece(dataset, part, |before, _, piece| {
            for (index, element) in (before..).zip(piece.elements.chunks_exact(size.max(1))) {
                let (number, cell) = (index / length, index % length);
                let first = match thick {
                    true => part.start.clone(),
                    false => part.coordinates(number * length),
                };
                cells::coordinates(
                    cells::linear(&first, &extent).wrapping_add(cell),
                    &extent,
                    &mut place,
                );
                lines.push(&place, cell == 0, element, &piece.heap)?;
            }
            Ok(())
        })
    };
    let shape = slab.shape();
    if outer == 0 {
        return row(slab, shape.last().copied().unwrap_or(1).max(1), lines);
    }
    // The parts: one for each block of the outer axes, and of thick ones for each row.
    let mut counts = match thick {
        true => slab.count[..outer].to_vec(),
        false => shape[..outer].to_vec(),
    };
    if thick {
        counts.push(shape[outer]);
    }
    let mut index = Vec::new();
    for number in 0..counts.iter().product::<u64>() {
        cells::coordinates(number, &counts, &mut index);
        if number > 0 && (!thick || index[outer] == 0) {
            lines.interrupt()?;
        }
        let mut part = slab.clone();
        for (axis, &number) in index[..outer].iter().enumerate() {
            part.count[axis] = 1;
            if thick {
                part.start[axis] += number * slab.stride[axis];
            } else {
                (part.start[axis], part.block[axis]) = (slab.coordinate(axis, number), 1);
            }
        }
        if thick {
            part.start[outer] = slab.coordinate(outer, index[outer]);
            (part.count[outer], part.block[outer]) = (1, 1);
            row(&part, u64::MAX, lines)?;
        } else {
            row(&part, shape[rank - 1].max(1), lines)?;
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
