//! Values of datasets and attributes, as `h5ls -d` prints them.

use super::Lister;
use crate::atlas::{self, Atlas};
use crate::cells::{self, Hyperslab};
use crate::ddl::{CharacterLines, DataLines, LineStyle, dataspace};
use crate::region;
use crate::value::{INDENT, Renderer, Style};
use anyhow::Result;
use pumice::types::ddl::indented;
use pumice::types::{Heaped, Integer};
use pumice::{Attribute, Dataset, Datatype, Group, Reference, Selection};
use std::io::Write;
use std::sync::Arc;

/// Columns before values of datasets, and before those of attributes.
const DATASET: usize = 9;
const ATTRIBUTE: usize = 15;
/// Columns of a list of blocks or points.
const COLUMNS: usize = 80;

impl<W: Write> Lister<'_, W> {
    pub(super) fn values(&mut self, dataset: &Dataset) -> Result<()> {
        writeln!(self.out, "    Data:")?;
        if dataset.extent()?.is_null() {
            return Ok(());
        }
        if matches!(dataset.datatype(), Datatype::Reference(_)) {
            return self.references(&dataset.read_references(..)?, DATASET);
        }
        let (renderer, slab) = (self.renderer(dataset.datatype())?, dataset.shape());
        let slab = Hyperslab::whole(&slab);
        if self.is_text(dataset.datatype()) {
            let mut lines = CharacterLines::new(self.out, &renderer, DATASET, self.text_columns());
            cells::for_each_piece(dataset, &slab, |_, _, piece| {
                let mut bytes = piece.elements.chunks_exact(1);
                Ok(bytes.try_for_each(|byte| lines.push(false, byte))?)
            })?;
            return Ok(lines.finish()?);
        }
        let mut lines = DataLines::new(self.out, &renderer, DATASET - INDENT, self.line_style());
        cells::for_each_piece(dataset, &slab, |_, _, piece| push(&mut lines, &renderer, piece))?;
        Ok(lines.finish()?)
    }

    pub(super) fn attribute_values(&mut self, attribute: &Attribute) -> Result<()> {
        writeln!(self.out, "        Data:")?;
        if attribute.extent().is_null() {
            return Ok(());
        }
        if matches!(attribute.datatype(), Datatype::Reference(_)) {
            return self.references(&attribute.read_references()?, ATTRIBUTE);
        }
        let values = cells::read_attribute(attribute)?;
        let renderer = self.renderer(attribute.datatype())?;
        if self.is_text(attribute.datatype()) {
            let columns = self.text_columns();
            let mut lines = CharacterLines::new(self.out, &renderer, ATTRIBUTE, columns);
            values.elements.chunks_exact(1).try_for_each(|byte| lines.push(false, byte))?;
            return Ok(lines.finish()?);
        }
        // h5ls counts one level more than it indents.
        let mut style = self.line_style();
        style.columns = style.columns.saturating_sub(INDENT);
        let mut lines = DataLines::new(self.out, &renderer, ATTRIBUTE - INDENT, style);
        push(&mut lines, &renderer, &values)?;
        Ok(lines.finish()?)
    }

    fn renderer(&self, datatype: &Datatype) -> Result<Renderer> {
        let refers = datatype.has_references();
        let style = Style {
            names: refers.then(|| Arc::new((self.file_name(), Atlas::of(self.file)))),
            file: refers.then(|| Group::clone(self.file)),
            breakable: true,
            labels: self.options.labels,
            raw: self.options.raw,
            characters: self.options.characters && !self.options.raw,
            escape: self.options.characters,
            ..Style::default()
        };
        Renderer::styled(datatype, &style)
    }

    fn file_name(&self) -> String {
        self.file.file_path().map_or(String::new(), |path| path.display().to_string())
    }

    fn line_style(&self) -> LineStyle {
        LineStyle { columns: self.options.columns, coordinates: false, ..LineStyle::default() }
    }

    /// Columns for text: h5ls does not count what h5dump counts before it.
    fn text_columns(&self) -> usize {
        self.options.columns + INDENT + 1
    }

    /// Whether values are letters of a text.
    fn is_text(&self, datatype: &Datatype) -> bool {
        let byte = matches!(datatype, Datatype::Integer(Integer { size: 1, .. }));
        byte && self.options.characters && !self.options.raw
    }

    /// A line or a block for each reference.
    fn references(&mut self, references: &[Option<Reference>], indent: usize) -> Result<()> {
        let atlas = Atlas::of(self.file);
        for reference in references {
            match reference {
                None => writeln!(self.out, "{:indent$}NULL", "")?,
                Some(reference) => {
                    let shown = self.reference(reference, &atlas, indent);
                    self.survive(shown)?;
                }
            }
        }
        Ok(())
    }

    fn reference(&mut self, reference: &Reference, atlas: &Atlas, indent: usize) -> Result<()> {
        let Some(path) = atlas.path(reference.address()) else {
            return Ok(writeln!(self.out, "{:indent$}NULL", "")?);
        };
        let name = self.file_name();
        let kind = match atlas.kind(reference.address()) {
            Some(atlas::Kind::Group) => "GROUP",
            Some(atlas::Kind::Datatype) => "DATATYPE",
            _ => "DATASET",
        };
        if !reference.is_region() {
            return Ok(writeln!(self.out, "{:indent$}{kind} \"{name}{path}\"", "")?);
        }
        let (dataset, region) = self.file.dereference_region(reference)?;
        writeln!(self.out, "{:indent$}DATASET \"{name}{path}\" {{", "")?;
        let inner = indent + INDENT;
        self.region(&region, &dataset.shape(), inner)?;
        let datatype = indented(dataset.datatype(), inner).to_string();
        writeln!(self.out, "{:inner$}DATATYPE  {datatype}", "")?;
        writeln!(self.out, "{:inner$}DATASPACE  {}", "", dataspace(&dataset.extent()?))?;
        Ok(writeln!(self.out, "{:indent$}}}", "")?)
    }

    /// The numbered blocks or points of a region.
    fn region(&mut self, region: &Selection, shape: &[u64], indent: usize) -> Result<()> {
        let (word, parts) = region::parts(region, shape);
        let short = if word == "POINT" { "Pt" } else { "Blk" };
        let mut line = format!("{:indent$}REGION_TYPE {word}  ", "");
        for (index, part) in parts.iter().enumerate() {
            let comma = if index + 1 < parts.len() { "," } else { "" };
            let gap = if index > 0 { " " } else { "" };
            let text = format!("{gap}{short}{index}: {part}");
            // As h5dump, it counts one level more than it indents.
            if index > 0 && line.len() + INDENT + text.len() + 1 > COLUMNS {
                writeln!(self.out, "{line}")?;
                line = format!("{:indent$}", "");
            }
            line += &format!("{text}{comma}");
        }
        Ok(writeln!(self.out, "{line}")?)
    }
}

fn push<W: Write>(
    lines: &mut DataLines<'_, W>,
    renderer: &Renderer,
    values: &Heaped,
) -> Result<()> {
    for element in values.elements.chunks_exact(renderer.size().max(1)) {
        lines.push(&[], false, element, &values.heap)?;
    }
    Ok(())
}
