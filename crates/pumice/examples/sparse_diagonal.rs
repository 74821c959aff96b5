//! The diagonal of a large matrix: as points, as a selection of defined cells, and what it costs.
//!
//! Run with `cargo run -p pumice --example sparse_diagonal`.

use pumice::{File, Result};

/// Cells along each axis; a dense matrix would have 80 GB.
const SIDE: u64 = 100_000;

pub(crate) fn main() -> Result<()> {
    let file = File::in_memory()?;
    let builder = file.new_dataset::<f64>().shape([SIDE, SIDE]).sparse();
    let diagonal = builder.create("diagonal")?;
    let points: Vec<[u64; 2]> = (0..SIDE).map(|at| [at, at]).collect();
    let values: Vec<f64> = (0..SIDE).map(|at| at as f64 / 2.0).collect();
    diagonal.write_points(&points, &values)?;

    // What is defined is a selection like any other, so it can be read by, too.
    let defined = diagonal.defined((500..503, ..))?;
    assert_eq!(defined.count(&diagonal.shape()), 3);
    assert_eq!(diagonal.read::<f64>(&defined)?, [250.0, 250.5, 251.0]);
    assert_eq!(diagonal.read::<f64>((700, 699..702))?, [0.0, 350.0, 0.0]);

    // Coordinates and values together, without a second look-up.
    let window = diagonal.read_defined::<f64>((99_998.., ..))?;
    assert_eq!(window.point(1), [99_999, 99_999]);
    assert_eq!(window.values, [49_999.0, 49_999.5]);

    let stored = diagonal.storage_size()?;
    assert!(stored < 8 * SIDE, "less than the values alone");
    println!(
        "{SIDE} cells of {SIDE} x {SIDE} take {stored} bytes, indexes {} more",
        diagonal.index_size()?
    );
    Ok(())
}
