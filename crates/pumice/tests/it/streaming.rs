//! Sparse forms and copies stream: memory does not grow with the dataset.

use crate::memory;

use pumice::{Compressed, Context, Coo, Dataset, Duplicates, File, Keep, Lines};

/// Cells of the matrix: as coordinates and values, and sorted, they take twice the memory allowed.
const ROWS: u64 = 8192;
const COLUMNS: u64 = 2048;
const STEP: u64 = 4;
const CELLS: u64 = ROWS * COLUMNS / STEP;
/// Lines of a block that is written.
const BLOCK: u64 = 64;
const CACHE: u64 = 1 << 20;
/// A block of at most a million cells, read as coordinates and values, sorted, and a cache.
const MEMORY: u64 = 96 << 20;

fn create(folder: &std::path::Path, name: &str) -> (File, Dataset) {
    // One thread, that of the test, so that all memory is counted.
    let context = Context::builder().cache_bytes(CACHE).threads(1).build().unwrap();
    let file = File::options().context(&context).create(folder.join(name)).unwrap();
    let builder = file.new_dataset::<f64>().shape([ROWS, COLUMNS]).chunk([256, 256]).sparse();
    let dataset = builder.create("matrix").unwrap();
    (file, dataset)
}

fn value(row: u64, column: u64) -> f64 {
    (row * COLUMNS + column) as f64
}

fn rows(first: u64) -> Compressed<f64> {
    let columns = |row: u64| (row % STEP..COLUMNS).step_by(STEP as usize);
    let lines = first..first + BLOCK;
    Compressed {
        lines: Lines::Rows,
        first,
        pointers: (0..=BLOCK).map(|line| line * COLUMNS / STEP).collect(),
        indices: lines.clone().flat_map(columns).collect(),
        values: lines.flat_map(|row| columns(row).map(move |at| value(row, at))).collect(),
    }
}

/// The most memory that `work` needs.
fn peak<T>(work: impl FnOnce() -> T) -> (T, u64) {
    memory::reset();
    let done = work();
    (done, memory::peak())
}

#[test]
fn matrices_larger_than_memory_go_in_and_out() {
    let folder = tempfile::tempdir().unwrap();
    let (file, matrix) = create(folder.path(), "rows.h5");
    // Blocks are made one by one, when they are asked for.
    let blocks = (0..ROWS).step_by(BLOCK as usize).map(rows);
    let (done, written) = peak(|| matrix.write_compressed(blocks, Duplicates::Error));
    done.unwrap();
    file.flush().unwrap();
    assert_eq!(matrix.count_defined(..).unwrap(), CELLS);
    assert!(written < 16 << 20, "writing rows: {written} byte(s)");

    let (count, read) = peak(|| {
        let blocks = matrix.compressed_blocks::<f64>(Lines::Columns).unwrap().map(Result::unwrap);
        blocks.map(|block| block.values.len() as u64).sum::<u64>()
    });
    assert_eq!(count, CELLS);
    assert!(read < MEMORY, "reading columns: {read} byte(s)");

    // From one file to another, by coordinates.
    let (other, copy) = create(folder.path(), "coo.h5");
    let (_, copied) = peak(|| {
        let blocks = matrix.coo_blocks::<f64>().unwrap().map(Result::unwrap);
        copy.write_coo::<f64, Coo<f64>>(blocks, Duplicates::Error).unwrap();
    });
    other.flush().unwrap();
    assert!(copied < MEMORY, "coordinates: {copied} byte(s)");
    assert_eq!(copy.count_defined(..).unwrap(), CELLS);
    assert_eq!(copy.read::<f64>((8191, 3..8)).unwrap()[..1], [value(8191, 3)]);

    let (dense, into_dense) = peak(|| {
        let builder = other.new_dataset::<f64>().shape([ROWS, COLUMNS]).chunk([128, 512]);
        matrix.copy_as(builder.deflate(1), "dense", &Keep::Defined).unwrap()
    });
    assert!(into_dense < MEMORY, "to dense: {into_dense} byte(s)");
    let (again, back) = peak(|| {
        let builder = file.new_dataset_like(&dense).sparse().chunk([256, 256]);
        dense.copy_as(builder, "again", &Keep::except(0u8)).unwrap()
    });
    assert!(back < MEMORY, "back to sparse: {back} byte(s)");
    assert_eq!(again.count_defined(..).unwrap(), CELLS - 1, "the defined zero is lost");
}
