//! A matrix in compressed rows goes into a sparse dataset, and comes out in compressed columns, block
//! by block.
//!
//! Run with `cargo run -p pumice --example convert_matrices`.

use pumice::{Compressed, Duplicates, File, Keep, Lines, Result};

pub(crate) fn main() -> Result<()> {
    let file = File::in_memory()?;
    let builder = file.new_dataset::<f64>().shape([6, 5]).chunk([4, 2]).sparse();
    let matrix = builder.create("matrix")?;

    // Two blocks of rows, as they might arrive from somewhere. A cell that repeats is added up.
    let rows = |first, pointers: &[u64], indices: &[u64], values: &[f64]| Compressed {
        lines: Lines::Rows,
        first,
        pointers: pointers.to_vec(),
        indices: indices.to_vec(),
        values: values.to_vec(),
    };
    let blocks = [
        rows(0, &[0, 2, 2, 4], &[0, 4, 1, 1], &[1.0, 2.0, 3.0, 0.5]),
        rows(3, &[0, 1, 1, 2], &[2, 0], &[0.0, 5.0]),
    ];
    matrix.write_compressed(&blocks, Duplicates::Sum)?;
    assert_eq!(matrix.read::<f64>((2, 1))?, [3.5]);
    assert_eq!(matrix.count_defined(..)?, 5, "the zero is one of them");

    for block in matrix.compressed_blocks::<f64>(Lines::Columns)? {
        let block = block?;
        println!("columns from {}: {:?} {:?}", block.first, block.indices, block.values);
    }

    // Into a dense dataset and back. Only an explicit selection tells the zero from no value.
    let dense = matrix.copy_as(file.new_dataset_like(&matrix), "dense", &Keep::Defined)?;
    let sparse = || file.new_dataset_like(&dense).sparse();
    let excluding = dense.copy_as(sparse(), "excluding", &Keep::except(0.0))?;
    let selected = Keep::Selected(matrix.defined(..)?);
    let selecting = dense.copy_as(sparse(), "selecting", &selected)?;
    assert_eq!((excluding.count_defined(..)?, selecting.count_defined(..)?), (4, 5));
    Ok(())
}
