//! Operations on a sparse square matrix of 32-bit floats, dataset `d`.

use pumice::{File, FilterSpec, Points};

use crate::{Input, Outcome};

/// Writes all cells at once, from compressed rows; nothing is read, so nothing is returned.
///
/// Without filters, values are stored as they are; locations still go through the location filter,
/// as the plain form of scattered cells is larger than what compressed rows take.
pub fn write(input: &Input, path: &str, filtered: bool) -> Outcome<Vec<f32>> {
    let file = File::create(path)?;
    let cells = input.edge as f64 * input.edge as f64;
    let density = input.values.len() as f64 / cells;
    let builder = file.new_dataset::<f32>().shape([input.edge, input.edge]).sparse();
    let builder = builder.expected_density(density);
    let builder = match filtered {
        true => builder,
        false => builder.value_filters(vec![]).location_filters(vec![FilterSpec::location()]),
    };
    let dataset = builder.create("d")?;
    dataset.write_at(&Points::compressed_rows(&input.pointers, &input.columns)?, &input.values)?;
    drop(dataset);
    file.close()?;
    Ok(Vec::new())
}

/// Coordinates and values of every defined cell.
pub fn read_all(path: &str) -> Outcome<Vec<f32>> {
    let file = File::open(path)?;
    let defined = file.dataset("d")?.read_columns::<u32, f32>(..)?;
    // The coordinates are part of what was asked for: they must not be optimised away.
    std::hint::black_box(&defined.coordinates);
    Ok(defined.values)
}

/// Coordinates of every defined cell: rows and columns.
pub fn defined(path: &str) -> Outcome<Vec<Vec<u32>>> {
    let file = File::open(path)?;
    Ok(file.dataset("d")?.defined_columns::<u32>(..)?)
}

/// Coordinates and values of the defined cells of a box; a row and a column are boxes too.
pub fn read_box(path: &str, start: [u64; 2], count: [u64; 2]) -> Outcome<Vec<f32>> {
    let file = File::open(path)?;
    let rows = start[0]..start[0] + count[0];
    let columns = start[1]..start[1] + count[1];
    let defined = file.dataset("d")?.read_columns::<u32, f32>((rows, columns))?;
    std::hint::black_box(&defined.coordinates);
    Ok(defined.values)
}

/// The values of scattered cells, zero where none is defined.
pub fn points(input: &Input, path: &str) -> Outcome<Vec<f32>> {
    let file = File::open(path)?;
    Ok(file.dataset("d")?.read_at(&pairs(&input.points)?)?)
}

/// Writes new values to scattered cells that are defined.
pub fn update(input: &Input, path: &str) -> Outcome<Vec<f32>> {
    let file = File::edit(path)?;
    let values = vec![1.0f32; input.changed.len() / 2];
    file.dataset("d")?.write_at(&pairs(&input.changed)?, &values)?;
    file.close()?;
    Ok(Vec::new())
}

/// Makes scattered cells undefined.
pub fn erase(input: &Input, path: &str) -> Outcome<Vec<f32>> {
    let file = File::edit(path)?;
    file.dataset("d")?.erase_at(&pairs(&input.erased)?)?;
    file.close()?;
    Ok(Vec::new())
}

/// All rows, then all columns, as points.
fn pairs(both: &[u32]) -> Outcome<Points<'_>> {
    let (rows, columns) = both.split_at(both.len() / 2);
    Ok(Points::columns([rows, columns])?)
}
