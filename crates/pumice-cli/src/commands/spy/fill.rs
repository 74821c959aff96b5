//! The fill level of a dataset's chunks.

use crate::numbers;
use crate::style::{Role, Style};
use anyhow::Result;
use pumice::{Dataset, Selection};
use std::io::Write;

/// Columns of the longest bar.
const BAR: u64 = 40;

/// Prints how many chunks are stored, how full they are, and their bytes.
pub(super) fn print(out: &mut impl Write, dataset: &Dataset, style: Style) -> Result<()> {
    let Some(chunk) = dataset.chunk() else {
        return Ok(writeln!(out, "{}: it has no chunks", dataset.path())?);
    };
    let shape = dataset.shape();
    let all = shape
        .iter()
        .zip(&chunk)
        .fold(1u64, |all, (&length, &side)| all.saturating_mul(length.div_ceil(side.max(1))));
    let chunks = stored(dataset)?;
    let count = chunks.len() as u64;
    writeln!(
        out,
        "chunks of {}: {} stored of {}",
        numbers::shape(&chunk),
        numbers::grouped(count),
        numbers::grouped(all)
    )?;
    if chunks.is_empty() || !dataset.is_sparse() {
        return Ok(());
    }
    let mut fills = Vec::with_capacity(chunks.len());
    for (offset, size) in &chunks {
        let axes = offset.iter().zip(&chunk).zip(&shape);
        let sides: Vec<u64> = axes.map(|((&at, &side), &end)| side.min(end - at)).collect();
        let block = Selection::block(offset, &sides).map_err(pumice::Error::from)?;
        let cells = sides.iter().product::<u64>();
        fills.push((dataset.count_defined(&block)?, cells, *size));
    }
    let mut counts: Vec<u64> = fills.iter().map(|fill| fill.0).collect();
    counts.sort_unstable();
    let defined: u64 = counts.iter().sum();
    let bytes: u64 = fills.iter().map(|fill| fill.2).sum();
    writeln!(
        out,
        "cells per chunk: least {}, median {}, most {}; {} bytes per cell",
        numbers::grouped(counts[0]),
        numbers::grouped(counts[counts.len() / 2]),
        numbers::grouped(counts[counts.len() - 1]),
        numbers::per_cell(bytes, defined)
    )?;
    histogram(out, &fills, style)
}

/// Offsets and stored bytes of all chunks.
fn stored(dataset: &Dataset) -> Result<Vec<(Vec<u64>, u64)>> {
    Ok(match dataset.is_sparse() {
        true => {
            let chunks = dataset.structured_chunks()?;
            chunks
                .map(|chunk| chunk.map(|chunk| (chunk.offset, chunk.size)))
                .collect::<Result<_, _>>()?
        }
        false => {
            let chunks = dataset.chunks()?;
            chunks
                .map(|chunk| chunk.map(|chunk| (chunk.offset, chunk.size)))
                .collect::<Result<_, _>>()?
        }
    })
}

/// Chunks by the power of ten of their density.
fn histogram(out: &mut impl Write, fills: &[(u64, u64, u64)], style: Style) -> Result<()> {
    const NAMES: [&str; 7] =
        ["below 0.001 %", "to 0.01 %", "to 0.1 %", "to 1 %", "to 10 %", "below 100 %", "full"];
    let mut bins = [0u64; NAMES.len()];
    for &(defined, cells, _) in fills {
        let share = defined as f64 / cells.max(1) as f64;
        let bin = match defined == cells {
            true => NAMES.len() - 1,
            false => ((share.log10() + 6.0).floor().max(0.0) as usize).min(NAMES.len() - 2),
        };
        bins[bin] += 1;
    }
    let most = bins.iter().copied().max().unwrap_or(1).max(1);
    for (name, count) in NAMES.iter().zip(bins).filter(|(_, count)| *count > 0) {
        let bar = "█".repeat((count * BAR).div_ceil(most) as usize);
        let bar = style.paint(Role::Number, &bar);
        writeln!(out, "{name:>14} {:>9} {bar}", numbers::grouped(count))?;
    }
    Ok(())
}
