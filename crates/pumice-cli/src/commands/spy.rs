//! `pumice spy`: a picture of where an array has values.
//!
//! Two axes are drawn; the others are looked through, or cut by slices.

mod fill;

use super::{Outcome, output};
use crate::cells::{self, Hyperslab};
use crate::cli::{Slice, Spy};
use crate::driver;
use crate::picture::{self, Density};
use crate::style::Style;
use crate::{locate, numbers, target};
use anyhow::{Context, Result, ensure};
use pumice::{Dataset, LayoutKind, Selection};
use std::io::{BufWriter, Write};
use std::ops::Range;

pub(super) fn run(arguments: &Spy) -> Result<Outcome> {
    if let Some(png) = &arguments.png {
        target::may_stream(png, &[&arguments.file], arguments.force)?;
    }
    let file = driver::open(&arguments.file)?;
    let chosen = arguments.axes.is_some() || !arguments.slice.is_empty();
    let (wanted, what): (fn(&Dataset) -> bool, _) = match chosen {
        true => (|dataset| dataset.shape().len() >= 2, "datasets with two or more dimensions"),
        false => (|dataset| dataset.shape().len() == 2, "datasets with two dimensions"),
    };
    let dataset = locate::dataset(&file, arguments.dataset.as_deref(), what, wanted)?;
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
    let cells = view.ranges.iter().fold(1u64, |cells, r| cells.saturating_mul(r.end - r.start));
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
        let png = target::stream(path, &[&arguments.file], arguments.force)?;
        picture::write_png(BufWriter::new(png), &grids[1], size)
            .with_context(|| path.display().to_string())?;
    }
    Ok(Outcome::Complete)
}

/// What is looked at, and from where.
struct View {
    shape: Vec<u64>,
    /// The part of each axis that is looked at.
    ranges: Vec<Range<u64>>,
    row_axis: usize,
    column_axis: usize,
}

impl View {
    fn new(dataset: &Dataset, arguments: &Spy) -> Result<Self> {
        let shape = dataset.shape();
        let rank = shape.len();
        ensure!(rank >= 2, "spy draws datasets with two dimensions, this one has {rank}");
        let (row_axis, column_axis) = match arguments.axes.as_deref() {
            None => (rank - 2, rank - 1),
            Some(&[rows, columns]) => (rows, columns),
            Some(_) => anyhow::bail!("--axes needs two numbers, as in 0,1"),
        };
        ensure!(
            row_axis < rank && column_axis < rank && row_axis != column_axis,
            "--axes needs two different numbers below {rank}"
        );
        let mut ranges: Vec<Range<u64>> = shape.iter().map(|&length| 0..length).collect();
        for Slice { axis, from, to } in &arguments.slice {
            ensure!(*axis < rank, "--slice: there is no axis {axis}");
            let to = to.unwrap_or(shape[*axis]);
            ensure!(
                *from < to && to <= shape[*axis],
                "--slice: {from}:{to} does not fit axis {axis}, which has {} cell(s)",
                shape[*axis]
            );
            ranges[*axis] = *from..to;
        }
        Ok(Self { shape, ranges, row_axis, column_axis })
    }

    fn length(&self, axis: usize) -> u64 {
        self.ranges[axis].end - self.ranges[axis].start
    }

    /// What a picture of less than everything shows.
    fn caption(&self) -> String {
        let whole =
            self.ranges.iter().zip(&self.shape).all(|(range, &length)| *range == (0..length));
        if self.shape.len() == 2 && whole && self.row_axis == 0 {
            return String::new();
        }
        let sliced = self
            .ranges
            .iter()
            .enumerate()
            .filter(|(axis, range)| **range != (0..self.shape[*axis]));
        let sliced: String = sliced
            .map(|(axis, range)| format!(", axis {axis} from {} to {}", range.start, range.end))
            .collect();
        format!(" (axis {} down, axis {} across{sliced})", self.row_axis, self.column_axis)
    }

    /// Counts the cells to draw into all grids; returns how many there are.
    fn count_into(&self, grids: &mut [Density], dataset: &Dataset) -> Result<u64> {
        let shape = &self.shape;
        let slab = Hyperslab::ranges(&self.ranges);
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
            LayoutKind::Sparse => cells::for_each_band(dataset, &slab, |band| {
                cells::for_each_defined_run(dataset, band, &mut add)
            }),
            // Chunks that are not stored have the fill value only.
            LayoutKind::Chunked => {
                let chunk = dataset.chunk().unwrap_or_default();
                dataset.chunks()?.try_for_each(|stored| {
                    let stored = stored?;
                    let axes = stored.offset.iter().zip(&chunk).zip(&self.ranges);
                    let ranges: Vec<_> = axes
                        .map(|((&start, &length), range)| {
                            let end = range.end.min(start.saturating_add(length));
                            start.max(range.start)..end
                        })
                        .collect();
                    if ranges.iter().any(|range| range.is_empty()) {
                        return Ok(());
                    }
                    let cells = Hyperslab::ranges(&ranges).selection()?;
                    add_filled(&cells, &dataset.read_bytes(&cells)?);
                    Ok(())
                })
            }
            _ => cells::for_each_piece(dataset, &slab, |_, cells, piece| {
                add_filled(cells, &piece.elements);
                Ok(())
            }),
        }?;
        Ok(count)
    }

    /// Adds cells that follow each other in row-major order.
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
                    point[0] = coordinate - self.ranges[axis].start;
                }
                if axis == self.column_axis {
                    point[1] = coordinate - self.ranges[axis].start;
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
