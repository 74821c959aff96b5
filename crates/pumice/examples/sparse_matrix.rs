//! The sparse matrix of the programming model for sparse data: 13 x 10 cells in chunks of 4 x 5, of
//! which 24 are defined, one of them as zero. Prints where data is and what it is.
//!
//! Run with `cargo run -p pumice --example sparse_matrix`.

use pumice::{File, Result};

pub(crate) fn main() -> Result<()> {
    let file = File::in_memory()?;
    let matrix = file.new_dataset::<i32>().shape([13, 10]).chunk([4, 5]).sparse();
    let matrix = matrix.create("Sparse")?;

    // Writing defines cells: a block, a row with a zero in it, and single cells.
    #[rustfmt::skip]
    matrix.write((2..5, 2..8), &[
         66,  69,  72,  75,  78,  81,
         96,  99, 102, 105, 108, 111,
        126, 129, 132, 135, 138, 141,
    ])?;
    matrix.write((6, 0..3), &[100, 0, -100])?;
    matrix.write_points(&[[5, 9], [11, 1], [12, 8]], &[2, 1, 3])?;

    // Only chunks with defined cells are stored.
    assert_eq!(matrix.count_defined(..)?, 24);
    assert_eq!(matrix.chunk_count()?, 6, "of eight");
    assert!(matrix.is_defined(&[6, 1])?, "a zero that was written is defined");
    assert!(!matrix.is_defined(&[0, 0])?, "a cell that was not is undefined");

    // Reading gives the fill value where nothing is defined.
    assert_eq!(matrix.read::<i32>((4, ..))?, [0, 0, 126, 129, 132, 135, 138, 141, 0, 0]);

    // The first chunk holds the values 66, 69, 72, 96, 99 and 102 of its cells [2..4] x [2..5].
    let upper_left = matrix.read_defined::<i32>((0..4, 0..5))?;
    assert_eq!(upper_left.values, [66, 69, 72, 96, 99, 102]);

    println!("DATASET \"Sparse\" {:?}", matrix.shape());
    let shape = matrix.shape();
    let mut blocks = Vec::new();
    matrix.defined(..)?.for_each_block(&shape, |start, last| {
        blocks.push((start.to_vec(), last.to_vec()));
    });
    for (start, last) in blocks {
        let ranges: Vec<_> = start.iter().zip(&last).map(|(&at, &last)| at..last + 1).collect();
        let values: Vec<i32> = matrix.read(ranges.as_slice())?;
        println!("   {ranges:?}: {values:?}");
    }
    Ok(())
}
