//! `pumice erase`: cells become undefined, and their space free.

use super::{Outcome, output};
use crate::cells::{self, Hyperslab};
use crate::cli::Erase;
use crate::{locate, numbers};
use anyhow::{Context, Result};
use pumice::{Dataset, File, StructuredChunkInfo};
use std::cmp::Reverse;
use std::collections::HashSet;
use std::fs;
use std::io::Write;
use std::path::Path;

pub(super) fn run(arguments: &Erase) -> Result<Outcome> {
    let file = File::edit(&arguments.file.file)?;
    let name = arguments.file.object(arguments.dataset.as_deref());
    let dataset = locate::dataset(&file, name.as_deref(), "datasets", |_| true)?;
    let shape = dataset.shape();
    let at_dataset = || dataset.path().to_owned();
    let slab = arguments.window.slab(&shape).with_context(at_dataset)?;
    let whole = Hyperslab::whole(&shape);
    let sparse = dataset.is_sparse();
    let count = || if sparse { cells::count_defined(&dataset, &whole) } else { Ok(0) };

    let (before, stored_before) = (count()?, dataset.storage_size()?);
    let old = if sparse { dataset.structured_chunks()?.list()? } else { Vec::new() };
    dataset.reset(slab.selection()?)?;
    file.flush()?;
    if sparse {
        settle(&dataset, &old)?;
        file.flush()?;
    }
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
        let erased = slab.shape().iter().fold(1u64, |all, &side| all.saturating_mul(side));
        write!(out, "{path}: {} cells have the fill value now, ", numbers::grouped(erased))?;
    }
    match stored_before.checked_sub(stored_after) {
        Some(freed) => write!(out, "{} bytes given back", numbers::grouped(freed))?,
        // The rest of a chunk can compress worse than the chunk.
        None => write!(out, "{} bytes more", numbers::grouped(stored_after - stored_before))?,
    }
    let size = numbers::grouped(file_size(&arguments.file.file)?);
    writeln!(out, ", the file has {size} bytes")?;
    out.flush()?;
    Ok(Outcome::Complete)
}

/// Moves chunks from the end of the file to where `old` ones were, so that the file ends earlier:
/// chunks that changed have new places.
fn settle(dataset: &Dataset, old: &[StructuredChunkInfo]) -> Result<()> {
    let mut chunks = dataset.structured_chunks()?.list()?;
    let used: HashSet<u64> = chunks.iter().map(|chunk| chunk.address).collect();
    let gone = old.iter().filter(|chunk| !used.contains(&chunk.address));
    let mut room: Vec<(u64, u64)> = gone.map(|chunk| (chunk.address, chunk.size)).collect();
    room.sort_unstable();
    // Neighbours are one piece of room.
    room.dedup_by(|later, earlier| {
        let adjacent = earlier.0 + earlier.1 == later.0;
        earlier.1 += if adjacent { later.1 } else { 0 };
        adjacent
    });
    chunks.sort_unstable_by_key(|chunk| Reverse(chunk.address));
    for chunk in chunks {
        let fits = |&(at, length): &(u64, u64)| at < chunk.address && length >= chunk.size;
        if !room.iter().any(fits) {
            continue;
        }
        let Some(sections) = dataset.read_structured_chunk(&chunk.offset)? else { continue };
        dataset.write_structured_chunk(&chunk.offset, &sections)?;
        let moved = dataset.structured_chunk_info_at(&chunk.offset)?;
        let Some(address) = moved.map(|moved| moved.address) else { break };
        let taken = room.iter_mut().find(|(at, length)| (*at..at + *length).contains(&address));
        let Some((at, length)) = taken else { break };
        // The rest of it, at one of its ends.
        let behind = (*at + *length).saturating_sub(address + chunk.size);
        (*at, *length) = match behind >= address - *at {
            true => (address + chunk.size, behind),
            false => (*at, address - *at),
        };
    }
    Ok(())
}

fn file_size(path: &Path) -> Result<u64> {
    let size = fs::metadata(path).map(|data| data.len());
    size.with_context(|| format!("read the size of {}", path.display()))
}
