//! `pumice read`: a window of a dataset as a table, or as a list of its defined cells.
//!
//! The last two axes of an array are rows and columns of a table; a dataset of one axis is one
//! column. With more axes, each plane is a table. Rows are read in bands, so that a large window
//! needs little memory; columns are as wide as their band needs. If few cells of a sparse dataset
//! are defined, they are listed instead, with their coordinates.

mod list;

use super::{Outcome, output};
use crate::cells::{self, Hyperslab};
use crate::cli::Read;
use crate::driver;
use crate::value::Renderer;
use crate::{locate, numbers, window};
use anyhow::{Context, Result};
use pumice::Dataset;
use std::io::Write;
use std::ops::Range;

/// Rows and columns that are shown if no window is given.
const ROWS: u64 = 16;
const COLUMNS: u64 = 8;
/// Defined cells that are listed if no window is given.
const LISTED: usize = 20;
/// A table is printed if at least one of this many cells is defined, otherwise a list.
const TABLE_SHARE: u64 = 10;
/// About how many cells are read at once.
const BAND_CELLS: u64 = 1 << 16;

pub(super) fn run(arguments: &Read) -> Result<Outcome> {
    let file = driver::open(&arguments.file.file)?;
    let name = arguments.file.object(arguments.dataset.as_deref());
    let dataset = locate::dataset(&file, name.as_deref(), "datasets", |_| true)?;
    let at_dataset = || dataset.path().to_owned();
    let mut out = output();
    print(&dataset, arguments, &mut out).with_context(at_dataset)?;
    out.flush()?;
    Ok(Outcome::Complete)
}

fn print(dataset: &Dataset, arguments: &Read, out: &mut impl Write) -> Result<()> {
    let shape = dataset.shape();
    let given = arguments.window.as_ref().map(|window| window.slab(&shape)).transpose()?;
    if arguments.defined {
        let slab = given.unwrap_or_else(|| Hyperslab::whole(&shape));
        return list::print(dataset, &slab, usize::MAX, out);
    }
    let slab = given.clone().unwrap_or_else(|| Hyperslab::ranges(&corner(&shape)));
    if arguments.table || !dataset.is_sparse() || is_full(dataset, &slab)? {
        return table(dataset, slab, out);
    }
    match given {
        Some(slab) => list::print(dataset, &slab, usize::MAX, out),
        None => list::print(dataset, &Hyperslab::whole(&shape), LISTED, out),
    }
}

/// Whether enough cells are defined for a table.
fn is_full(dataset: &Dataset, slab: &Hyperslab) -> Result<bool> {
    let cells = slab.shape().iter().fold(1u64, |cells, &side| cells.saturating_mul(side));
    Ok(cells::count_defined(dataset, slab)?.saturating_mul(TABLE_SHARE) >= cells)
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

fn table(dataset: &Dataset, slab: Hyperslab, out: &mut impl Write) -> Result<()> {
    let renderer = Renderer::new(dataset.datatype())?;
    let mut table = Table { dataset, renderer: &renderer, out };
    table.caption(&slab)?;
    // However many rows there are: without columns they have no cells.
    if slab.shape().contains(&0) { Ok(()) } else { table.planes(&slab) }
}

struct Table<'a, W> {
    dataset: &'a Dataset,
    renderer: &'a Renderer,
    out: &'a mut W,
}

impl<W: Write> Table<'_, W> {
    fn caption(&mut self, slab: &Hyperslab) -> Result<()> {
        let (path, shape) = (self.dataset.path(), self.dataset.shape());
        if shape.is_empty() {
            return Ok(writeln!(self.out, "{path}: scalar")?);
        }
        let shape = numbers::shape(&shape);
        Ok(writeln!(self.out, "{path}: {shape}, window {}", window::text(slab))?)
    }

    /// One table for each plane of the last two axes.
    fn planes(&mut self, slab: &Hyperslab) -> Result<()> {
        let shape = slab.shape();
        let counts = &shape[..shape.len().saturating_sub(2)];
        let planes = counts.iter().fold(1u64, |all, &count| all.saturating_mul(count));
        let mut place = Vec::new();
        for index in 0..planes {
            cells::coordinates(index, counts, &mut place);
            let mut plane = slab.clone();
            for (axis, &number) in place.iter().enumerate() {
                plane = plane.narrowed(axis, number, 1).0;
            }
            if !place.is_empty() {
                let fixed: Vec<String> =
                    plane.start[..place.len()].iter().map(u64::to_string).collect();
                writeln!(self.out, "({},:,:)", fixed.join(","))?;
            }
            self.plane(&plane)?;
        }
        Ok(())
    }

    fn plane(&mut self, plane: &Hyperslab) -> Result<()> {
        let shape = plane.shape();
        let rank = shape.len();
        if rank == 0 {
            let texts = self.texts(plane)?;
            return self.band(None, None, &texts, 1);
        }
        let row_axis = rank.saturating_sub(2);
        let columns = (rank > 1).then(|| shape[rank - 1]);
        let width = columns.unwrap_or(1);
        let step = (BAND_CELLS / width).max(1);
        let mut first = 0;
        while first < shape[row_axis] {
            let (band, count) = plane.narrowed(row_axis, first, step.min(shape[row_axis] - first));
            let texts = self.texts(&band)?;
            let places =
                |axis, count| (0..count).map(|index| band.coordinate(axis, index)).collect();
            let labels = places(row_axis, count);
            let heads = columns.filter(|_| first == 0).map(|count| places(rank - 1, count));
            self.band(Some(labels), heads, &texts, width as usize)?;
            first += count;
        }
        Ok(())
    }

    /// The text of each cell of a band, a dot where it is undefined.
    fn texts(&self, band: &Hyperslab) -> Result<Vec<String>> {
        let cells = band.selection()?;
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
        labels: Option<Vec<u64>>,
        heads: Option<Vec<u64>>,
        texts: &[String],
        width: usize,
    ) -> Result<()> {
        let last = labels.as_ref().and_then(|rows| rows.last());
        let margin = last.map_or(0, |last| last.to_string().len());
        let mut widths: Vec<usize> = match &heads {
            Some(heads) => heads.iter().map(|head| head.to_string().len()).collect(),
            None => vec![0; width],
        };
        for (index, text) in texts.iter().enumerate() {
            let column = &mut widths[index % width.max(1)];
            *column = (*column).max(text.chars().count());
        }
        if let Some(heads) = heads {
            write!(self.out, "{:margin$}", "")?;
            for (head, width) in heads.iter().zip(&widths) {
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
