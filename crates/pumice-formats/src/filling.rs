//! Arrays of files become datasets: cells stream through batches of a fixed size (`filling/batch.rs`).

mod batch;
mod sorter;

use crate::{Array, Format, Progress, Source};
use anyhow::{Result, bail};
use batch::Batches;
use pumice::{Dataset, DatasetBuilder, Group};
use std::path::Path;

/// About how many entries a chunk of a vast array shall have, as chunks that the library chooses do.
const CHUNK_ENTRIES: f64 = 16_384.0;
/// An array is vast if chunks of the largest size that the library chooses were more than [`MAX_CHUNKS`]: entries
/// would then have a chunk each.
const VAST_CELLS: f64 = MAX_CHUNKS * (1u64 << 26) as f64;
const MAX_CHUNKS: f64 = (1u64 << 16) as f64;
/// But chunks never have more than this many bytes, if all cells were defined: there are more chunks instead.
const MAX_CHUNK_BYTES: f64 = (1u64 << 50) as f64;
/// The longest side that a sparse chunk can have.
const MAX_CHUNK_SIDE: u64 = u32::MAX as u64;

/// What becomes of several entries for one cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Duplicates {
    /// Their sum counts.
    #[default]
    Sum,
    /// The first one counts.
    First,
    /// The last one counts.
    Last,
    /// They are an error.
    Error,
}

/// Begins a dataset for an array: shape, datatype and chunks. Filters are left to the caller.
///
/// ```
/// use pumice::{Datatype, File, H5Type};
/// use pumice_formats::{Array, dataset_for};
///
/// let file = File::in_memory()?;
/// let array = Array::sparse(vec![1 << 40, 1 << 40], f32::datatype(), 9);
/// let dataset = dataset_for(&file, &array, None).create("d")?;
/// assert!(dataset.is_sparse() && dataset.chunk().unwrap()[0] > 1 << 20);
/// # Ok::<(), pumice::Error>(())
/// ```
pub fn dataset_for(group: &Group, array: &Array, chunk: Option<Vec<u64>>) -> DatasetBuilder {
    let (shape, builder) = (&array.shape, group.new_dataset_of(array.datatype.clone()));
    if shape.is_empty() {
        return builder;
    }
    let cells: f64 = shape.iter().map(|&side| side.max(1) as f64).product();
    let chunk = match chunk {
        None if cells > VAST_CELLS => Some(vast_chunk(shape, array.entries, array.datatype.size())),
        None if array.dense && shape.contains(&0) => Some(vec![1; shape.len()]),
        // Without one the library knows.
        given => given,
    };
    let builder = builder.shape(shape.clone()).expected_density(array.entries as f64 / cells);
    let builder = match chunk {
        Some(chunk) => builder.chunk(chunk),
        None => builder,
    };
    let builder = match shape.contains(&0) {
        // A chunk has cells, also where the array has none, and must fit the largest shape.
        true => builder.max_shape(shape.iter().map(|&length| Some(length.max(1)))),
        false => builder,
    };
    if array.dense { builder } else { builder.sparse() }
}

/// Writes all cells of a source to its dataset; returns how many there are. `temporary` is a path for a file without a
/// name, in which entries are sorted that come in no order.
pub fn fill(
    mut source: Box<dyn Source>,
    dataset: &Dataset,
    duplicates: Duplicates,
    temporary: &Path,
    progress: &dyn Progress,
) -> Result<u64> {
    let array = source.array().clone();
    let mut batches = Batches::new(dataset, &array, duplicates, temporary)?;
    while let Some(part) = source.next_part()? {
        let before = batches.taken();
        batches.write(part, source.as_ref())?;
        progress.add(batches.taken() - before);
        if progress.is_over() {
            bail!("the work was given up");
        }
    }
    batches.finish(source.as_ref(), progress)
}

/// Notes where a dataset comes from: attributes for the file, the format, and what the format says of itself.
pub fn record_origin(
    dataset: &Dataset,
    input: &Path,
    format: &dyn Format,
    array: &Array,
) -> Result<()> {
    let name = input.file_name().unwrap_or(input.as_os_str());
    dataset.set_attribute("source_file", &*name.to_string_lossy())?;
    dataset.set_attribute("source_format", format.title())?;
    for (name, text) in &array.notes {
        dataset.set_attribute(name, text.as_str())?;
    }
    Ok(())
}

/// A chunk of a vast array, with about [`CHUNK_ENTRIES`] entries if these are spread evenly and
/// chunks need not be too large for that. Sides are as equal as the shape allows, and chunks divide
/// the array as evenly as they can.
fn vast_chunk(shape: &[u64], entries: u64, element_size: usize) -> Vec<u64> {
    let cells: f64 = shape.iter().map(|&side| side.max(1) as f64).product();
    let per_entry = (cells / entries.max(1) as f64).max(1.0);
    let most = (cells / MAX_CHUNKS).min(MAX_CHUNK_BYTES / element_size.max(1) as f64).max(1.0);
    let mut wanted = (per_entry * CHUNK_ENTRIES).min(most);
    let mut axes: Vec<usize> = (0..shape.len()).collect();
    axes.sort_by_key(|&axis| shape[axis]);
    let mut chunk = vec![1; shape.len()];
    for (place, &axis) in axes.iter().enumerate() {
        let length = shape[axis].max(1);
        let equal = wanted.powf(1.0 / (axes.len() - place) as f64);
        let side = equal.min(length.min(MAX_CHUNK_SIDE) as f64).max(1.0);
        wanted /= side;
        let pieces = (length as f64 / side).ceil().max(1.0) as u64;
        chunk[axis] = length.div_ceil(pieces).min(MAX_CHUNK_SIDE);
    }
    chunk
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_of_vast_arrays_are_few_and_can_be_stored() {
        assert_eq!(vast_chunk(&[1 << 31, 1 << 31], 9, 8), [1 << 23, 1 << 23]);
        assert_eq!(vast_chunk(&[1 << 40, 1 << 40], 9, 8), [11_863_271, 11_863_271]);
        assert_eq!(vast_chunk(&[u64::MAX, 3], 9, 8), [u64::from(u32::MAX), 3]);
        let vast = vast_chunk(&[u64::MAX, u64::MAX, u64::MAX], 9, 1 << 20);
        assert!((1 << 29..1 << 31).contains(&vast.iter().product::<u64>()), "{vast:?}");
    }
}
