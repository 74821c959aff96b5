//! Values of datasets and attributes, as `h5ls -d` prints them.

use super::Lister;
use super::options::NO_LIMIT;
use crate::atlas::{self, Atlas};
use crate::cells::{self, Hyperslab};
use crate::ddl::{CharacterLines, DataLines, LineStyle, dataspace};
use crate::value::{INDENT, Renderer, Style};
use crate::{failure, region};
use anyhow::Result;
use pumice::types::ddl::indented;
use pumice::types::{Heaped, Integer};
use pumice::{Attribute, Dataset, Datatype, Group, Node, Reference, Selection};
use std::io::Write;
use std::sync::Arc;

/// Columns before values of datasets, and before those of attributes.
const DATASET: usize = 9;
const ATTRIBUTE: usize = 15;
/// Columns before the text for values that cannot be printed.
const EXCUSE: usize = 17;
/// Columns of a list of blocks or points.
const COLUMNS: usize = 80;

impl<W: Write> Lister<'_, W> {
    pub(super) fn values(&mut self, dataset: &Dataset) -> Result<()> {
        writeln!(self.out, "    Data:")?;
        let shown = self.dataset_values(dataset, DATASET);
        self.or_excuse(shown)?;
        // h5ls ends the line of values that are not there, and that of the last reference once more.
        let empty = dataset.extent()?.is_null() || dataset.shape().contains(&0);
        let refers = matches!(dataset.datatype(), Datatype::Reference(_));
        if empty || refers { Ok(writeln!(self.out)?) } else { Ok(()) }
    }

    /// Prints, in place of values, that they cannot be printed.
    fn or_excuse(&mut self, shown: Result<()>) -> Result<()> {
        if shown.as_ref().is_err_and(|error| !failure::is_broken_pipe(error)) {
            writeln!(self.out, "{:1$}Unable to print data.", "", EXCUSE)?;
        }
        shown
    }

    /// The values of a dataset, from a column on.
    fn dataset_values(&mut self, dataset: &Dataset, indent: usize) -> Result<()> {
        let slab = Hyperslab::whole(&dataset.shape());
        if dataset.extent()?.is_null() || slab.shape().contains(&0) {
            return Ok(());
        }
        if matches!(dataset.datatype(), Datatype::Reference(_)) {
            return self.references(&dataset.read_references(..)?, indent);
        }
        let renderer = self.renderer(dataset.datatype())?;
        if self.is_text(dataset.datatype()) {
            let mut lines = CharacterLines::new(self.out, &renderer, indent, self.text_columns());
            cells::for_each_piece(dataset, &slab, |_, _, piece| {
                let mut bytes = piece.elements.chunks_exact(1);
                Ok(bytes.try_for_each(|byte| lines.push(false, byte))?)
            })?;
            return Ok(lines.finish()?);
        }
        let mut lines = DataLines::new(self.out, &renderer, indent - INDENT, self.line_style());
        cells::for_each_piece(dataset, &slab, |_, _, piece| push(&mut lines, &renderer, piece))?;
        Ok(lines.finish()?)
    }

    pub(super) fn attribute_values(&mut self, attribute: &Attribute) -> Result<()> {
        writeln!(self.out, "        Data:")?;
        if attribute.extent().is_null() || attribute.extent().dims().contains(&0) {
            return Ok(writeln!(self.out)?);
        }
        if matches!(attribute.datatype(), Datatype::Reference(_)) {
            self.references(&attribute.read_references()?, ATTRIBUTE)?;
            return Ok(writeln!(self.out)?);
        }
        let shown = self.attribute_elements(attribute);
        self.or_excuse(shown)
    }

    fn attribute_elements(&mut self, attribute: &Attribute) -> Result<()> {
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
        style.hanging = usize::from(!self.options.portable);
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
            characters: self.is_text(datatype),
            escape: true,
            simple: self.options.portable,
            ..Style::default()
        };
        Renderer::styled(datatype, &style)
    }

    fn file_name(&self) -> String {
        self.file.file_path().map_or(String::new(), |path| path.display().to_string())
    }

    fn line_style(&self) -> LineStyle {
        let (simple, columns) = (self.options.portable, self.options.columns);
        let plain = LineStyle { columns, coordinates: false, ..LineStyle::default() };
        match simple {
            true => {
                let columns = usize::MAX / 2;
                LineStyle { columns, apart: true, comma: " ", outdent: 1, ..plain }
            }
            false => LineStyle { apart: columns == NO_LIMIT, ..plain },
        }
    }

    /// Columns for text: h5ls does not count the prefix that h5dump counts.
    fn text_columns(&self) -> usize {
        self.options.columns + INDENT + 1
    }

    /// Whether values are characters of a text.
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
            writeln!(self.out, "{:indent$}{kind} \"{name}{path}\"", "")?;
            return self.referred(reference, indent + INDENT);
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

    /// The values of a dataset that a reference leads to, unless these are references, too.
    fn referred(&mut self, reference: &Reference, indent: usize) -> Result<()> {
        let Ok(Node::Dataset(dataset)) = self.file.dereference(reference) else { return Ok(()) };
        if reference.attribute().is_some() || matches!(dataset.datatype(), Datatype::Reference(_)) {
            return Ok(());
        }
        writeln!(self.out, "{:indent$}DATA {{", "")?;
        let shown = self.dataset_values(&dataset, indent + INDENT);
        writeln!(self.out, "{:indent$}}}", "")?;
        shown
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
