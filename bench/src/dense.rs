//! Operations on a dense square array of 32-bit floats in chunks, dataset `d`.

use pumice::{Dataset, File};

use crate::{Input, Outcome};

fn open(path: &str) -> Outcome<(File, Dataset)> {
    let file = File::open(path)?;
    let dataset = file.dataset("d")?;
    Ok((file, dataset))
}

/// Writes the whole array through shuffle and deflate.
pub fn write(input: &Input, path: &str, chunk: u64, level: u64) -> Outcome<Vec<f32>> {
    let file = File::create(path)?;
    let dataset = file
        .new_dataset::<f32>()
        .shape([input.edge, input.edge])
        .chunk([chunk, chunk])
        .shuffle()
        .deflate(u32::try_from(level)?)
        .create("d")?;
    dataset.write(.., &input.values)?;
    drop(dataset);
    file.close()?;
    Ok(Vec::new())
}

/// Reads the whole array in one call.
pub fn read_all(path: &str) -> Outcome<Vec<f32>> {
    let (_file, dataset) = open(path)?;
    Ok(dataset.read::<f32>(..)?)
}

/// Reads neighbouring rows, one call each; returns the first element of each.
pub fn read_rows(path: &str, first: u64, count: u64) -> Outcome<Vec<f32>> {
    let (_file, dataset) = open(path)?;
    (first..first + count).map(|row| Ok(dataset.read::<f32>((row..row + 1, ..))?[0])).collect()
}

/// Reads neighbouring columns, one call each; returns the first element of each.
pub fn read_columns(path: &str, first: u64, count: u64) -> Outcome<Vec<f32>> {
    let (_file, dataset) = open(path)?;
    (first..first + count)
        .map(|column| Ok(dataset.read::<f32>((.., column..column + 1))?[0]))
        .collect()
}

/// Reads square windows at the loaded places, one call each; returns the first element of each.
pub fn read_windows(input: &Input, path: &str, edge: u64) -> Outcome<Vec<f32>> {
    let (_file, dataset) = open(path)?;
    input
        .windows
        .chunks_exact(2)
        .map(|corner| {
            let (row, column) = (corner[0], corner[1]);
            Ok(dataset.read::<f32>((row..row + edge, column..column + edge))?[0])
        })
        .collect()
}

/// Reads what stands behind `offset` bytes of a file, as the system does it: the limit.
pub fn read_plain(path: &str, offset: u64) -> Outcome<Vec<f32>> {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::open(path)?;
    let count = (file.metadata()?.len() - offset) as usize / size_of::<f32>();
    let mut values = vec![0f32; count];
    file.read_exact_at(bytemuck::cast_slice_mut(&mut values), offset)?;
    Ok(values)
}
