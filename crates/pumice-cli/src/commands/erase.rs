//! `pumice erase`: cells become undefined, and their space free.

use super::{Outcome, output};
use crate::cells::{self, Hyperslab};
use crate::cli::Erase;
use crate::{numbers, window};
use anyhow::{Context, Result};
use pumice::File;
use std::fs;
use std::io::Write;
use std::path::Path;

pub(super) fn run(arguments: &Erase) -> Result<Outcome> {
    let file = File::edit(&arguments.file)?;
    let dataset = file.dataset(&arguments.dataset)?;
    let shape = dataset.shape();
    let at_dataset = || dataset.path().to_owned();
    let ranges = arguments.window.ranges(&shape).with_context(at_dataset)?;
    let whole = Hyperslab::whole(&shape);
    let sparse = dataset.is_sparse();
    let count = || if sparse { cells::count_defined(&dataset, &whole) } else { Ok(0) };

    let (before, stored_before) = (count()?, dataset.storage_size()?);
    dataset.reset(Hyperslab::ranges(&ranges).selection()?)?;
    file.flush()?;
    let (after, stored_after) = (count()?, dataset.storage_size()?);

    let mut out = output();
    let path = dataset.path();
    if sparse {
        write!(
            out,
            "{path}: {} cells defined before, {} after, ",
            numbers::grouped(before),
            numbers::grouped(after)
        )?;
    } else {
        let erased =
            window::shape(&ranges).iter().fold(1u64, |all, &side| all.saturating_mul(side));
        write!(out, "{path}: {} cells have the fill value now, ", numbers::grouped(erased))?;
    }
    match stored_before.checked_sub(stored_after) {
        Some(freed) => write!(out, "{} bytes given back", numbers::grouped(freed))?,
        // What is left of a chunk can compress worse than the chunk.
        None => write!(out, "{} bytes more", numbers::grouped(stored_after - stored_before))?,
    }
    let size = numbers::grouped(file_size(&arguments.file)?);
    writeln!(out, ", the file has {size} bytes")?;
    out.flush()?;
    Ok(Outcome::Complete)
}

fn file_size(path: &Path) -> Result<u64> {
    let size = fs::metadata(path).map(|data| data.len());
    size.with_context(|| format!("read the size of {}", path.display()))
}
