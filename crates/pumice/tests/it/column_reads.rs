//! Cells of sparse chunks as columns, in every form that a set of cells takes, with stored values of
//! every kind, against a list of cells.

use pumice::{Dataset, File, FilterSpec, Points, Selection};

const EDGE: u64 = 230;
const CHUNK: u64 = 100;

/// Row, column and value of each defined cell, in order of rows.
type Cells = Vec<(u32, u32, i32)>;

/// A number that looks random.
fn hash(row: u64, column: u64) -> u64 {
    (row * EDGE + column + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40
}

/// Cells that are scattered, one in so many.
fn scattered(one_in: u64) -> Cells {
    cells(|row, column| hash(row, column).is_multiple_of(one_in))
}

/// Filled rectangles, so that rows repeat.
fn clustered() -> Cells {
    cells(|row, column| hash(row / 9, column / 7).is_multiple_of(5) && !column.is_multiple_of(7))
}

fn cells(is_defined: impl Fn(u64, u64) -> bool) -> Cells {
    let all = (0..EDGE * EDGE).map(|at| (at / EDGE, at % EDGE));
    let chosen = all.filter(|&(row, column)| is_defined(row, column));
    chosen.map(|(row, column)| (row as u32, column as u32, hash(column, row) as i32)).collect()
}

fn create(file: &File, name: &str, cells: &Cells, values: Vec<FilterSpec>, plain: bool) {
    let builder = file.new_dataset::<i32>().shape([EDGE, EDGE]).chunk([CHUNK, CHUNK]).sparse();
    let mut builder = builder.value_filters(values);
    if plain {
        builder = builder.location_filters(vec![FilterSpec::location()]);
    }
    let dataset = builder.create(name).unwrap();
    let rows: Vec<u32> = cells.iter().map(|cell| cell.0).collect();
    let columns: Vec<u32> = cells.iter().map(|cell| cell.1).collect();
    let values: Vec<i32> = cells.iter().map(|cell| cell.2).collect();
    dataset.write_at(&Points::columns([&rows, &columns]).unwrap(), &values).unwrap();
}

/// The contents of columns, in order of rows.
fn found(dataset: &Dataset, selection: &Selection) -> Cells {
    let all = dataset.read_columns::<u32, i32>(selection).unwrap();
    assert_eq!(dataset.defined_columns::<u32>(selection).unwrap(), all.coordinates);
    let converted = dataset.read_columns::<u64, f64>(selection).unwrap();
    assert!(converted.values.iter().zip(&all.values).all(|(a, b)| *a == f64::from(*b)));
    let (rows, columns) = (&all.coordinates[0], &all.coordinates[1]);
    let mut cells: Cells =
        (0..all.values.len()).map(|at| (rows[at], columns[at], all.values[at])).collect();
    cells.sort_unstable();
    cells
}

fn check(dataset: &Dataset, cells: &Cells) {
    let block = |start: [u64; 2], count: [u64; 2]| Selection::block(&start, &count).unwrap();
    let strided = Selection::hyperslab(&[3, 1], &[7, 5], &[30, 40], &[2, 3]).unwrap();
    let points = Selection::points(2, vec![200, 7, 3, 9, 150, 150, 3, 8, 99, 100]).unwrap();
    let parts = [
        Selection::all(),
        block([120, 0], [1, EDGE]),
        block([0, 77], [EDGE, 1]),
        block([60, 90], [80, 75]),
        block([100, 100], [CHUNK, CHUNK]),
        block([229, 229], [1, 1]),
        strided,
        points,
    ];
    for part in parts {
        let mut asked = vec![false; (EDGE * EDGE) as usize];
        for run in part.runs(&[EDGE, EDGE]) {
            asked[run.start as usize..run.end() as usize].fill(true);
        }
        let at = |cell: &(u32, u32, i32)| cell.0 as usize * EDGE as usize + cell.1 as usize;
        let expected: Cells = cells.iter().filter(|cell| asked[at(cell)]).copied().collect();
        assert_eq!(found(dataset, &part), expected, "{part:?}");
    }
}

#[test]
fn columns_hold_the_cells_that_are_asked_for_whatever_the_form_of_a_chunk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("columns.h5");
    let patterns = [scattered(1000), scattered(90), scattered(9), scattered(2), clustered()];
    let pipelines = [
        (vec![], true),
        (vec![FilterSpec::shuffle(4), FilterSpec::zstd(1)], true),
        (vec![FilterSpec::shuffle(4), FilterSpec::zstd(1)], false),
        (vec![], false),
    ];
    let file = File::create(&path).unwrap();
    for (number, cells) in patterns.iter().enumerate() {
        for (kind, (values, plain)) in pipelines.iter().enumerate() {
            create(&file, &format!("{number}-{kind}"), cells, values.clone(), *plain);
        }
    }
    file.close().unwrap();
    for (number, cells) in patterns.iter().enumerate() {
        for kind in 0..pipelines.len() {
            let file = File::open(&path).unwrap();
            let dataset = file.dataset(&format!("{number}-{kind}")).unwrap();
            check(&dataset, cells);
            // Some chunks are in the cache now.
            assert_eq!(&found(&dataset, &Selection::all()), cells);
        }
    }
}
