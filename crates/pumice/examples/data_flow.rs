//! The two reads of "HDF5 Data Flow Pipeline for H5Dread": the same part of a filtered dataset, once
//! with arithmetic into a small buffer, once into every other column of a larger one.
//!
//! Dataset D has 32 x 64 integers of 32 bits, little-endian, in chunks of 4 x 4 that go through
//! deflate and get a Fletcher-32 checksum. The region of 4 x 4 elements at <1, 1> touches four
//! chunks. In memory, elements are integers of 64 bits, big-endian.
//!
//! Each chunk takes the path of ARCHITECTURE.md: lookup, fetch, verify the checksum, undo deflate,
//! keep in the cache; then the selected elements are gathered, converted, transformed and put into
//! their places.
//!
//! ```text
//! cargo run --example data_flow
//! ```

use pumice::{Datatype, File, Result, Selection, Transfer};

pub(crate) fn main() -> Result<()> {
    let file = File::in_memory()?;
    let dataset = file
        .new_dataset_of(Datatype::i32_le())
        .shape([32, 64])
        .chunk([4, 4])
        .deflate(6)
        .fletcher32()
        .create("D")?;
    // The elements of the region are a, b, c ... p, and c is 65.
    let cells: Vec<i32> =
        (0..32 * 64).map(|cell| 63 + 4 * (cell / 64 - 1) + cell % 64 - 1).collect();
    dataset.write(.., &cells)?;

    let region = (1..5, 1..5);
    let memory_type = Datatype::i64_be();

    // Example A: a buffer of 4 x 4, filled whole, with 2 added to every element.
    let mut a = vec![0; 4 * 4 * 8];
    let transfer = Transfer::new().transform("x+2")?;
    dataset.read_as(region.clone(), &memory_type, &mut a, &transfer)?;
    print("Example A", &a, 4);

    // Example B: a buffer of 2 x 16 of which every other column is filled.
    let mut b = vec![0xFF; 2 * 16 * 8];
    let columns = Selection::hyperslab(&[0, 0], &[2, 2], &[1, 8], &[2, 1])?;
    let transfer = Transfer::new().memory(columns, [2, 16]);
    dataset.read_as(region, &memory_type, &mut b, &transfer)?;
    print("Example B", &b, 16);
    Ok(())
}

fn print(title: &str, bytes: &[u8], width: usize) {
    println!("{title}");
    for row in bytes.as_chunks::<8>().0.chunks(width) {
        let numbers = row.iter().map(|bytes| format!("{:4}", i64::from_be_bytes(*bytes)));
        println!("{}", numbers.collect::<String>());
    }
}
