//! An estimate of the new file's size, from a sample of each dataset.

use super::plan::{Fate, Planner};
use super::{Kind, Table};
use crate::cells::{self, Hyperslab};
use crate::numbers;
use anyhow::Result;
use pumice::{Dataset, File, Keep, Remade};

/// The number of sampled blocks of a dataset.
const BLOCKS: u64 = 4;

/// Prints the estimate for each dataset.
pub(super) fn print(planner: &Planner<'_>, input: &File, table: &Table) -> Result<()> {
    let (mut before, mut after) = (0u64, 0u64);
    println!("{:>12} {:>12}  dataset", "now", "about");
    for path in table.paths(Kind::Dataset) {
        let dataset = input.dataset(&path)?;
        let now = dataset.storage_size()?;
        let scratch = File::in_memory()?;
        let size = match planner.remade(&scratch, &dataset)? {
            Some(remade) => estimate(&dataset, remade, &scratch)?,
            None => now,
        };
        let remark = match planner.fate(&path) {
            Some(Fate::TooSmall) => "  (too small, as it is)",
            Some(Fate::Impossible) => "  (not possible, as it is)",
            _ => "",
        };
        println!("{:>12} {:>12}  {path}{remark}", numbers::bytes(now), numbers::bytes(size));
        (before, after) = (before.saturating_add(now), after.saturating_add(size));
    }
    println!("{:>12} {:>12}  all datasets", numbers::bytes(before), numbers::bytes(after));
    Ok(())
}

/// Stores a few blocks in the new way.
fn estimate(dataset: &Dataset, remade: Remade, scratch: &File) -> Result<u64> {
    let shape = dataset.shape();
    let all = shape.iter().fold(1, |all: u64, &side| all.saturating_mul(side));
    if all == 0 || dataset.datatype().has_references() {
        return Ok(dataset.storage_size()?);
    }
    let trial = remade.builder.create("trial")?;
    let row = all / shape.first().copied().unwrap_or(1).max(1);
    let side = trial.chunk().or_else(|| dataset.chunk()).and_then(|chunk| chunk.first().copied());
    let side = side.unwrap_or(1).min(shape.first().copied().unwrap_or(1)).max(1);
    let rows = shape.first().copied().unwrap_or(1);
    let step = rows.div_ceil(BLOCKS).checked_next_multiple_of(side).unwrap_or(rows);
    let (mut taken, mut start) = (0u64, 0);
    while start < rows {
        let count = side.min(rows - start);
        let mut ranges: Vec<_> = shape.iter().map(|&length| 0..length).collect();
        if let Some(first) = ranges.first_mut() {
            *first = start..start + count;
        }
        let slab = Hyperslab::ranges(&ranges);
        let cells = slab.selection()?;
        keep(dataset, &trial, &remade.keep, &cells)?;
        taken = taken.saturating_add(count.saturating_mul(row));
        start = start.saturating_add(step);
    }
    scratch.flush()?;
    let stored = trial.storage_size()?;
    Ok((stored as f64 * (all as f64 / taken.max(1) as f64)) as u64)
}

/// Copies the cells of a block that would be copied.
fn keep(dataset: &Dataset, trial: &Dataset, keep: &Keep, cells: &pumice::Selection) -> Result<()> {
    let shape = dataset.shape();
    let cells = match keep {
        Keep::Selected(selection) => selection.and(cells, &shape)?,
        _ if dataset.is_sparse() => dataset.defined(cells)?,
        _ => cells.clone(),
    };
    if let Keep::Except(..) = keep {
        cells::require_numbers(&shape)?;
    }
    let values = cells::read(dataset, &cells)?;
    trial.write_bytes(&cells, &values.elements)?;
    if let Keep::Except(datatype, value) = keep {
        let mut element = vec![0; dataset.datatype().size()];
        let conversion = pumice::types::Conversion::new(datatype, dataset.datatype());
        let converted = conversion.and_then(|conversion| conversion.convert(value, &mut element));
        converted.map_err(pumice::Error::from)?;
        let runs = cells.runs(&shape).flat_map(|run| run.start..run.start + run.len);
        let excluded = runs.zip(values.elements.chunks_exact(element.len().max(1)));
        let mut place = Vec::new();
        let mut points = Vec::new();
        for (linear, _) in excluded.filter(|(_, value)| *value == element) {
            cells::coordinates(linear, &shape, &mut place);
            points.extend_from_slice(&place);
        }
        trial.erase(pumice::Selection::points(shape.len(), points)?)?;
    }
    Ok(())
}
