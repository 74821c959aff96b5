//! Undefined, defined as zero, and erased: three states of a cell.
//!
//! Run with `cargo run -p pumice --example erase_and_defined`.

use pumice::{File, Result};

pub(crate) fn main() -> Result<()> {
    let file = File::in_memory()?;
    let builder = file.new_dataset::<f32>().shape([100, 100]).chunk([10, 10]).sparse();
    let dataset = builder.fill_value(-1.0f32).create("d")?;
    dataset.write((0..20, 0..20), &[2.0f32; 400])?;
    dataset.write_point(&[50, 50], 0.0f32)?;

    // Which cells are defined is a selection, also within a box.
    let defined = dataset.defined((15..60, 15..60))?;
    assert_eq!(defined.count(&[100, 100]), 26);

    // Erased cells read as the fill value and are not defined any more.
    dataset.erase((0..20, 5..20))?;
    assert_eq!(dataset.read::<f32>((3, 3..7))?, [2.0, 2.0, -1.0, -1.0]);
    assert_eq!(dataset.count_defined((0..20, ..))?, 100);

    // Chunks in which nothing is left give their space back.
    let before = (dataset.chunk_count()?, dataset.storage_size()?);
    dataset.erase((0..20, ..))?;
    let after = (dataset.chunk_count()?, dataset.storage_size()?);
    assert_eq!((before.0, after.0), (3, 1));
    assert!(after.1 < before.1);

    // A zero that was written stays defined.
    assert!(dataset.is_defined(&[50, 50])?);
    assert_eq!(dataset.read::<f32>((50, 49..52))?, [-1.0, 0.0, -1.0]);

    // Erasing what is undefined does nothing; and every cell of a dense dataset is defined.
    dataset.erase((0..20, ..))?;
    let dense = file.new_dataset::<f32>().shape([10]).create("dense")?;
    assert_eq!(dense.count_defined(..)?, 10);
    assert!(dense.erase(..).is_err(), "a dense dataset cannot say that a cell is undefined");
    println!("{} chunk(s), {} bytes left", after.0, after.1);
    Ok(())
}
