//! `pumice read`: a window of a dataset as a table.
//!
//! The last two axes are rows and columns; a dataset of one axis is one column. Of more axes, each
//! plane is a table of its own. Rows are read in bands, so that a large window needs little memory;
//! columns are as wide as their band needs.

use super::{Outcome, output};
use crate::cells::{self, Hyperslab};
use crate::cli::Read;
use crate::driver;
use crate::value::Renderer;
use crate::{numbers, window};
use anyhow::{Context, Result};
use pumice::Dataset;
use std::io::Write;
use std::ops::Range;

/// Rows and columns that are shown if no window is given.
const ROWS: u64 = 16;
const COLUMNS: u64 = 8;
/// About how many cells are read at once.
const BAND_CELLS: u64 = 1 << 16;

pub(super) fn run(arguments: &Read) -> Result<Outcome> {
    let file = driver::open(&arguments.file)?;
    let dataset = file.dataset(&arguments.dataset)?;
    let shape = dataset.shape();
    let at_dataset = || dataset.path().to_owned();
    let ranges = match &arguments.window {
        Some(window) => window.ranges(&shape).with_context(at_dataset)?,
        None => corner(&shape),
    };
    let renderer = Renderer::new(dataset.datatype()).with_context(at_dataset)?;
    let mut out = output();
    let mut table = Table { dataset: &dataset, renderer: &renderer, out: &mut out };
    table.caption(&shape, &ranges)?;
    table.planes(&ranges)?;
    out.flush()?;
    Ok(Outcome::Complete)
}

/// The first rows and columns of the first plane.
fn corner(shape: &[u64]) -> Vec<Range<u64>> {
    let axes = shape.len();
    let most = |axis: usize| match axes - axis {
        1 if axes > 1 => COLUMNS,
        1 | 2 => ROWS,
        _ => 1,
    };
    shape.iter().enumerate().map(|(axis, &length)| 0..length.min(most(axis))).collect()
}

struct Table<'a, W> {
    dataset: &'a Dataset,
    renderer: &'a Renderer,
    out: &'a mut W,
}

impl<W: Write> Table<'_, W> {
    fn caption(&mut self, shape: &[u64], ranges: &[Range<u64>]) -> Result<()> {
        let path = self.dataset.path();
        if shape.is_empty() {
            return Ok(writeln!(self.out, "{path}: scalar")?);
        }
        let window: Vec<String> =
            ranges.iter().map(|range| format!("{}:{}", range.start, range.end)).collect();
        let shape = numbers::shape(shape);
        Ok(writeln!(self.out, "{path}: {shape}, window {}", window.join(","))?)
    }

    /// One table for each plane of the last two axes.
    fn planes(&mut self, ranges: &[Range<u64>]) -> Result<()> {
        let (leading, plane) = ranges.split_at(ranges.len().saturating_sub(2));
        let counts = window::shape(leading);
        let planes = counts.iter().fold(1u64, |all, &count| all.saturating_mul(count));
        let mut place = Vec::new();
        for index in 0..planes {
            cells::coordinates(index, &counts, &mut place);
            let fixed = place.iter().zip(leading);
            let fixed: Vec<u64> = fixed.map(|(&number, range)| range.start + number).collect();
            if !fixed.is_empty() {
                let fixed: Vec<String> = fixed.iter().map(u64::to_string).collect();
                writeln!(self.out, "({},:,:)", fixed.join(","))?;
            }
            let fixed: Vec<Range<u64>> = fixed.into_iter().map(|at| at..at + 1).collect();
            self.plane(&fixed, plane)?;
        }
        Ok(())
    }

    fn plane(&mut self, fixed: &[Range<u64>], plane: &[Range<u64>]) -> Result<()> {
        let rows = plane.first().cloned().unwrap_or(0..1);
        let columns = plane.get(1).cloned();
        let width = columns.as_ref().map_or(1, |columns| columns.end - columns.start);
        let step = (BAND_CELLS / width.max(1)).max(1);
        let mut first = rows.start;
        while first < rows.end {
            let band = first..rows.end.min(first.saturating_add(step));
            let mut ranges = fixed.to_vec();
            if !plane.is_empty() {
                ranges.push(band.clone());
            }
            ranges.extend(columns.clone());
            let texts = self.texts(&ranges)?;
            let labels = (!plane.is_empty()).then_some(band.clone());
            let heads = columns.clone().filter(|_| first == rows.start);
            self.band(labels, heads, &texts, width as usize)?;
            first = band.end;
        }
        Ok(())
    }

    /// The text of each cell of a band, a dot where it is undefined.
    fn texts(&self, ranges: &[Range<u64>]) -> Result<Vec<String>> {
        let cells = Hyperslab::ranges(ranges).selection()?;
        let piece = cells::read(self.dataset, &cells)?;
        let elements = piece.elements.chunks_exact(self.renderer.size().max(1));
        if !self.dataset.is_sparse() {
            return Ok(elements.map(|element| self.text(element, &piece.heap)).collect());
        }
        let shape = self.dataset.shape();
        cells::require_numbers(&shape)?;
        let defined = self.dataset.defined(&cells)?;
        let mut defined = defined.runs(&shape).peekable();
        let wanted = cells.runs(&shape).flat_map(|run| run.start..run.start + run.len);
        let texts = wanted.zip(elements).map(|(cell, element)| {
            while defined.next_if(|run| run.start + run.len <= cell).is_some() {}
            match defined.peek() {
                Some(run) if run.start <= cell => self.text(element, &piece.heap),
                _ => ".".to_owned(),
            }
        });
        Ok(texts.collect())
    }

    fn text(&self, element: &[u8], heap: &[u8]) -> String {
        let mut text = String::new();
        self.renderer.push_inline(&mut text, element, heap);
        text
    }

    fn band(
        &mut self,
        labels: Option<Range<u64>>,
        heads: Option<Range<u64>>,
        texts: &[String],
        width: usize,
    ) -> Result<()> {
        let margin = labels.as_ref().map_or(0, |rows| (rows.end - 1).to_string().len());
        let mut widths: Vec<usize> = match &heads {
            Some(heads) => heads.clone().map(|head| head.to_string().len()).collect(),
            None => vec![0; width],
        };
        for (index, text) in texts.iter().enumerate() {
            let column = &mut widths[index % width.max(1)];
            *column = (*column).max(text.chars().count());
        }
        if let Some(heads) = heads {
            write!(self.out, "{:margin$}", "")?;
            for (head, width) in heads.zip(&widths) {
                write!(self.out, "  {head:>width$}")?;
            }
            writeln!(self.out)?;
        }
        let mut label = labels.into_iter().flatten();
        for row in texts.chunks(width.max(1)) {
            if let Some(label) = label.next() {
                write!(self.out, "{label:>margin$}  ")?;
            }
            let cells = row.iter().zip(&widths).enumerate();
            for (column, (text, width)) in cells {
                let gap = if column > 0 { "  " } else { "" };
                write!(self.out, "{gap}{text:>width$}")?;
            }
            writeln!(self.out)?;
        }
        Ok(())
    }
}
