//! `pumice spy`: a picture of where a matrix has values.

use super::{Outcome, output};
use crate::cells::{self, Hyperslab};
use crate::cli::Spy;
use crate::picture::{self, Density};
use crate::{locate, numbers};
use anyhow::{Result, ensure};
use pumice::{Dataset, File, LayoutKind, Selection};
use std::io::Write;

pub(super) fn run(arguments: &Spy) -> Result<Outcome> {
    let file = File::open(&arguments.file)?;
    let wanted = |dataset: &Dataset| dataset.shape().len() == 2;
    let what = "datasets with two dimensions";
    let dataset = locate::dataset(&file, arguments.dataset.as_deref(), what, wanted)?;
    let shape = dataset.shape();
    ensure!(
        shape.len() == 2,
        "{}: spy draws datasets with two dimensions, this one has {}",
        dataset.path(),
        shape.len()
    );
    let (rows, columns) = (shape[0], shape[1]);
    let (width, size) = (arguments.width as usize, arguments.size as usize);
    let screen = match arguments.ascii {
        true => picture::character_grid(rows, columns, width),
        false => picture::dot_grid(rows, columns, width),
    };
    let mut grids = vec![screen];
    if arguments.png.is_some() {
        grids.push(Density::new(rows, columns, size, size, 1));
    }
    let count = count_into(&mut grids, &dataset)?;

    let mut out = output();
    let text = match arguments.ascii {
        true => picture::ascii(&grids[0]),
        false => picture::braille(&grids[0], width),
    };
    out.write_all(text.as_bytes())?;
    let kind = if dataset.is_sparse() { "defined" } else { "other than the fill value" };
    let density = numbers::percent(count, rows.saturating_mul(columns));
    writeln!(
        out,
        "{}: {}, {} {kind}, density {density}",
        dataset.path(),
        numbers::shape(&shape),
        numbers::grouped(count),
    )?;
    out.flush()?;
    if let Some(path) = &arguments.png {
        picture::write_png(path, &grids[1], size)?;
    }
    Ok(Outcome::Complete)
}

/// Counts the cells to draw into all grids; returns how many there are.
fn count_into(grids: &mut [Density], dataset: &Dataset) -> Result<u64> {
    let shape = dataset.shape();
    let slab = Hyperslab::whole(&shape);
    let mut count = 0;
    let mut add = |start: u64, length: u64| {
        count += length;
        grids.iter_mut().for_each(|grid| grid.add(start, length));
    };
    let size = dataset.datatype().size();
    let fill = dataset.fill_value().map_or_else(|| vec![0; size], <[u8]>::to_vec);
    let mut add_filled = |cells: &Selection, bytes: &[u8]| {
        let cells = cells.runs(&shape).flat_map(|run| run.start..run.start + run.len);
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
            dataset.chunks()?.iter().try_for_each(|stored| {
                let axes = stored.offset.iter().zip(&chunk).zip(&shape);
                let ranges: Vec<_> = axes
                    .map(|((&start, &length), &end)| start..end.min(start.saturating_add(length)))
                    .collect();
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
