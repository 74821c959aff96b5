//! Operations on a sparse square matrix of 32-bit floats, dataset `d`.

use pumice::File;

use crate::{Input, Outcome};

/// Writes all cells at once; nothing is read, so nothing is returned.
pub fn write(input: &Input, path: &str, filtered: bool) -> Outcome<Vec<f32>> {
    let file = File::create(path)?;
    let builder = file.new_dataset::<f32>().shape([input.edge, input.edge]).sparse();
    let builder = if filtered { builder } else { builder.no_filters() };
    let dataset = builder.create("d")?;
    dataset.write_coordinates(&input.coordinates, &input.values)?;
    drop(dataset);
    file.close()?;
    Ok(Vec::new())
}

/// Coordinates and values of every defined cell.
pub fn read_all(path: &str) -> Outcome<Vec<f32>> {
    let file = File::open(path)?;
    let defined = file.dataset("d")?.read_defined::<f32>(..)?;
    // The coordinates are part of what was asked for: they must not be optimised away.
    std::hint::black_box(&defined.coordinates);
    Ok(defined.values)
}

/// Coordinates and values of the defined cells of a box; a row and a column are boxes too.
pub fn read_box(path: &str, start: [u64; 2], count: [u64; 2]) -> Outcome<Vec<f32>> {
    let file = File::open(path)?;
    let rows = start[0]..start[0] + count[0];
    let columns = start[1]..start[1] + count[1];
    let defined = file.dataset("d")?.read_defined::<f32>((rows, columns))?;
    std::hint::black_box(&defined.coordinates);
    Ok(defined.values)
}
