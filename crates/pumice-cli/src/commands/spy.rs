//! `pumice spy`: a picture of where an array has values.
//!
//! Two axes are drawn; the others are summed up, or cut by slices.

mod fill;

use super::{Outcome, output};
use crate::cells::{self, Hyperslab};
use crate::cli::{Slice, Spy};
use crate::driver;
use crate::picture::{self, Density};
use crate::style::Style;
use crate::{locate, numbers, target};
use anyhow::{Context, Result, ensure};
use pumice::{Dataset, File, LayoutKind, Selection};
use std::io::{BufWriter, Write};

pub(super) fn run(arguments: &Spy) -> Result<Outcome> {
    if let Some(png) = &arguments.png {
        target::may_stream(png, &[&arguments.file.file], arguments.force)?;
    }
    let file = driver::open(&arguments.file.file)?;
    let dataset = dataset(&file, arguments)?;
    let view = View::new(&dataset, arguments).with_context(|| dataset.path().to_owned())?;
    let (rows, columns) = (view.length(view.row_axis), view.length(view.column_axis));
    let (width, size) = (arguments.width as usize, arguments.size as usize);
    let style = Style::of_output();
    let blocks = style.is_on() && !arguments.ascii && !arguments.braille;
    let screen = match (arguments.ascii, blocks) {
        (true, _) => picture::character_grid(rows, columns, width),
        (_, true) => picture::block_grid(rows, columns, width),
        _ => picture::dot_grid(rows, columns, width),
    };
    let mut grids = vec![screen];
    if arguments.png.is_some() {
        grids.push(Density::new(rows, columns, size, size, 1));
    }
    let count = view.count_into(&mut grids, &dataset)?;

    let mut out = output();
    let text = match (arguments.ascii, blocks) {
        (true, _) => picture::ascii(&grids[0]),
        (_, true) => picture::blocks(&grids[0], width),
        _ => picture::braille(&grids[0], width),
    };
    out.write_all(text.as_bytes())?;
    let kind = if dataset.is_sparse() { "defined" } else { "other than the fill value" };
    let cells = view.slab.count.iter().fold(1u64, |cells, &side| cells.saturating_mul(side));
    writeln!(
        out,
        "{}: {}, {} {kind}, density {}{}",
        dataset.path(),
        numbers::shape(&dataset.shape()),
        numbers::grouped(count),
        numbers::percent(count, cells),
        view.caption()
    )?;
    if arguments.chunks {
        fill::print(&mut out, &dataset, style)?;
    }
    out.flush()?;
    if let Some(path) = &arguments.png {
        let png = target::stream(path, &[&arguments.file.file], arguments.force)?;
        picture::write_png(BufWriter::new(png), &grids[1], size)
            .with_context(|| path.display().to_string())?;
    }
    Ok(Outcome::Complete)
}

/// The dataset that was named, or the only one with two dimensions, or the only one with more.
fn dataset(file: &File, arguments: &Spy) -> Result<Dataset> {
    let name = arguments.file.object(arguments.dataset.as_deref());
    let name = name.as_deref();
    let two: fn(&Dataset) -> bool = |dataset| dataset.shape().len() == 2;
    let more: fn(&Dataset) -> bool = |dataset| dataset.shape().len() >= 2;
    let chosen = arguments.axes.is_some() || !arguments.slice.is_empty();
    if chosen || locate::datasets_at(file, name, two)?.is_empty() {
        return locate::dataset(file, name, "datasets with two or more dimensions", more);
    }
    locate::dataset(file, name, "datasets with two dimensions", two)
}

/// The drawn part of a dataset.
struct View {
    shape: Vec<u64>,
    /// The part of each axis that is looked at.
    slab: Hyperslab,
    row_axis: usize,
    column_axis: usize,
    /// Whether the axes are the default ones.
    chosen: bool,
}

impl View {
    fn new(dataset: &Dataset, arguments: &Spy) -> Result<Self> {
        let shape = dataset.shape();
        let rank = shape.len();
        ensure!(rank >= 2, "spy draws datasets with two dimensions, this one has {rank}");
        let (row_axis, column_axis) = match arguments.axes.as_deref() {
            None => longest(&shape),
            Some(&[rows, columns]) => (rows, columns),
            Some(_) => anyhow::bail!("--axes needs two numbers, as in 0,1"),
        };
        ensure!(
            row_axis < rank && column_axis < rank && row_axis != column_axis,
            "--axes needs two different numbers below {rank}"
        );
        let mut slab = Hyperslab::whole(&shape);
        for Slice { axis, part } in &arguments.slice {
            ensure!(*axis < rank, "--slice: there is no axis {axis}");
            part.narrow(&mut slab, *axis, shape[*axis]).context("--slice")?;
            ensure!(
                slab.count[*axis] > 0 || shape[*axis] == 0,
                "--slice: no cell of axis {axis}, which has {}",
                shape[*axis]
            );
        }
        let chosen = arguments.axes.is_none();
        Ok(Self { shape, slab, row_axis, column_axis, chosen })
    }

    fn length(&self, axis: usize) -> u64 {
        self.slab.count[axis]
    }

    /// The caption of a picture of less than everything, or of more than two axes.
    fn caption(&self) -> String {
        let whole = self.slab == Hyperslab::whole(&self.shape);
        if self.shape.len() == 2 && whole && self.row_axis == 0 {
            return String::new();
        }
        let (down, across) = (self.row_axis, self.column_axis);
        let axes = (0..self.shape.len()).filter(|axis| ![down, across].contains(axis));
        let (single, counted): (Vec<_>, Vec<_>) = axes.partition(|&axis| self.length(axis) == 1);
        let sliced = (0..self.shape.len()).filter(|axis| !single.contains(axis));
        let sliced = sliced
            .filter(|&axis| self.slab.stride[axis] > 1 || self.length(axis) != self.shape[axis]);
        let sliced = sliced.map(|axis| {
            let (first, step) = (self.slab.start[axis], self.slab.stride[axis]);
            let end = first + (self.length(axis).max(1) - 1) * step + 1;
            let steps = if step > 1 { format!(" in steps of {step}") } else { String::new() };
            format!(", axis {axis} from {first} to {end}{steps}")
        });
        let single =
            single.iter().map(|&axis| format!(", axis {axis} at {}", self.slab.start[axis]));
        let parts: String = single.chain(sliced).collect();
        let counted: Vec<String> = counted.iter().map(usize::to_string).collect();
        let through = match counted.as_slice() {
            [] => String::new(),
            [axis] => format!(", cells counted along axis {axis}"),
            axes => format!(", cells counted along axes {}", axes.join(" and ")),
        };
        let advice = match self.chosen && self.shape.len() > 2 {
            true => "; --axes and --slice choose others",
            false => "",
        };
        format!(" (axis {down} down, axis {across} across{parts}{through}{advice})")
    }

    /// Counts the cells to draw into all grids; returns how many there are.
    fn count_into(&self, grids: &mut [Density], dataset: &Dataset) -> Result<u64> {
        let shape = &self.shape;
        let slab = &self.slab;
        let mut count = 0;
        let mut add = |start: u64, length: u64| {
            count += length;
            self.add(grids, start, length);
        };
        let size = dataset.datatype().size();
        let fill = dataset.fill_value().map_or_else(|| vec![0; size], <[u8]>::to_vec);
        let mut add_filled = |cells: &Selection, bytes: &[u8]| {
            let cells = cells.runs(shape).flat_map(|run| run.start..run.start + run.len);
            let elements = bytes.chunks_exact(size.max(1));
            let filled = cells.zip(elements).filter(|(_, element)| *element != fill);
            filled.for_each(|(cell, _)| add(cell, 1));
        };
        match dataset.layout() {
            LayoutKind::Sparse => cells::for_each_band(dataset, slab, |band| {
                cells::for_each_defined_run(dataset, band, &mut add)
            }),
            // Chunks that are not stored have the fill value only.
            LayoutKind::Chunked => {
                let chunk = dataset.chunk().unwrap_or_default();
                dataset.chunks()?.try_for_each(|stored| {
                    let stored = stored?;
                    let Some(part) = slab.within(&stored.offset, &chunk) else { return Ok(()) };
                    let cells = part.selection()?;
                    add_filled(&cells, &dataset.read_bytes(&cells)?);
                    Ok(())
                })
            }
            _ => cells::for_each_piece(dataset, slab, |_, cells, piece| {
                add_filled(cells, &piece.elements);
                Ok(())
            }),
        }?;
        Ok(count)
    }

    /// The number of a coordinate among the drawn indices.
    fn place(&self, axis: usize, coordinate: u64) -> u64 {
        (coordinate - self.slab.start[axis]) / self.slab.stride[axis]
    }

    /// Adds cells that follow each other in row-major order, of which all are looked at.
    fn add(&self, grids: &mut [Density], start: u64, length: u64) {
        let last = self.shape.len() - 1;
        let (mut next, mut left) = (start, length);
        while left > 0 {
            let mut rest = next;
            let mut point = [0, 0, 0];
            for axis in (0..=last).rev() {
                let coordinate = rest % self.shape[axis].max(1);
                rest /= self.shape[axis].max(1);
                if axis == last {
                    point[2] = coordinate;
                }
                if axis == self.row_axis {
                    point[0] = self.place(axis, coordinate);
                }
                if axis == self.column_axis {
                    point[1] = self.place(axis, coordinate);
                }
            }
            let here = left.min(self.shape[last] - point[2]);
            for grid in grids.iter_mut() {
                if self.column_axis == last {
                    grid.add_in_row(point[0], point[1], here);
                } else if self.row_axis == last {
                    (0..here).for_each(|step| grid.add_at(point[0] + step, point[1], 1));
                } else {
                    grid.add_at(point[0], point[1], here);
                }
            }
            next += here;
            left -= here;
        }
    }
}

/// The two longest axes, in their order; of equal ones the last.
fn longest(shape: &[u64]) -> (usize, usize) {
    let mut axes: Vec<usize> = (0..shape.len()).collect();
    axes.sort_by_key(|&axis| (shape[axis], axis));
    let [.., one, other] = axes[..] else { return (0, 1) };
    (one.min(other), one.max(other))
}
