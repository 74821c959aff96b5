//! Windows of matrices as compressed lines, against a plain list of cells.

use proptest::prelude::*;
use pumice::{
    CacheOptions, Compressed, Context, Dataset, File, FilterSpec, Lines, Points, ReadMany,
    Selection,
};
use std::collections::BTreeMap;
use std::ops::Range;

type Cells = BTreeMap<(u64, u64), i32>;

/// How a matrix is stored and read.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Sparse, with the default filters.
    Sparse,
    /// Sparse and without filters, past the cache.
    Direct,
    /// All cells are defined.
    Dense,
}

#[derive(Clone, Debug)]
struct Case {
    shape: [u64; 2],
    chunk: [u64; 2],
    cells: Cells,
    /// Cells that come after the file was written, and are not stored yet.
    late: Cells,
    rows: Vec<u64>,
    windows: Vec<[(u64, u64, u64); 2]>,
    kind: Kind,
}

fn cells(shape: [u64; 2]) -> impl Strategy<Value = Cells> {
    let [rows, columns] = shape;
    let scattered = prop::collection::btree_map((0..rows, 0..columns), any::<i32>(), 0..60);
    let full = (0..=rows, any::<i32>()).prop_map(move |(end, value)| {
        let cells = (0..end).flat_map(|row| (0..columns).map(move |column| (row, column)));
        cells.filter(|(row, column)| (row * 7 + column) % 5 > 1).map(|at| (at, value)).collect()
    });
    prop_oneof![scattered, full]
}

fn case() -> impl Strategy<Value = Case> {
    let kinds = prop::sample::select(vec![Kind::Sparse, Kind::Direct, Kind::Dense]);
    let shapes = ([1u64..40, 1u64..90], [1u64..20, 1u64..90]);
    (shapes, kinds).prop_flat_map(|((shape, chunk), kind)| {
        let chunk = [0, 1].map(|axis| chunk[axis].min(shape[axis]));
        let [rows, columns] = shape;
        let axis = |size: u64| (0..size, 1u64..4, 0..=size);
        let late = prop::collection::btree_map((0..rows, 0..columns), any::<i32>(), 0..3);
        let parts = (
            cells(shape),
            late,
            prop::collection::vec(0..rows, 0..30),
            prop::collection::vec([axis(rows), axis(columns)], 1..4),
        );
        parts.prop_map(move |(cells, late, rows, windows)| Case {
            shape,
            chunk,
            cells,
            late,
            rows,
            windows,
            kind,
        })
    })
}

/// First, step and number of an axis, cut to its size.
fn picked((start, step, count): (u64, u64, u64), size: u64) -> Vec<u64> {
    (0..count).map(|at| start + at * step).take_while(|at| *at < size).collect()
}

/// The lines that a plain list of cells has.
fn naive(cells: &Cells, lines: Lines, rows: &[u64], columns: &[u64]) -> Compressed<i32> {
    let mut found = Compressed::new(lines);
    found.pointers.push(0);
    let (outer, inner) = match lines {
        Lines::Rows => (rows, columns),
        Lines::Columns => (columns, rows),
    };
    for &line in outer {
        for (index, &across) in inner.iter().enumerate() {
            let at = if lines == Lines::Rows { (line, across) } else { (across, line) };
            if let Some(value) = cells.get(&at) {
                found.indices.push(index as u64);
                found.values.push(*value);
            }
        }
        found.pointers.push(found.indices.len() as u64);
    }
    found
}

fn create(file: &File, case: &Case) -> Dataset {
    let builder = file.new_dataset::<i32>().shape(case.shape).chunk(case.chunk);
    let builder = match case.kind {
        Kind::Sparse => builder.sparse(),
        Kind::Direct => {
            builder.sparse().value_filters(vec![]).location_filters(vec![FilterSpec::location()])
        }
        Kind::Dense => builder,
    };
    let dataset = builder.create("matrix").unwrap();
    write(&dataset, &case.cells);
    dataset
}

fn write(dataset: &Dataset, cells: &Cells) {
    let cells = cells.iter().map(|(&(row, column), &value)| ([row, column], value));
    dataset.write_cells(cells).unwrap();
}

/// All cells of a dense matrix, those that were never written as zero.
fn filled(cells: &Cells, [rows, columns]: [u64; 2]) -> Cells {
    let all = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    all.map(|at| (at, cells.get(&at).copied().unwrap_or(0))).collect()
}

/// Some rows of a matrix, in any order and with repetitions, as a selection.
fn rows_of(rows: &[u64], shape: [u64; 2]) -> Selection {
    let row = |row: &u64| Selection::block(&[*row, 0], &[1, shape[1]]).unwrap();
    Selection::union_of(2, rows.iter().map(row), &shape).unwrap()
}

/// Cells one by one, in every form in which they are read.
fn check_cells(dataset: &Dataset, cells: &Cells, selection: &Selection) {
    let inside = |&(&(row, column), _): &(&(u64, u64), &i32)| selection.contains(&[row, column]);
    let expected: Cells = cells.iter().filter(inside).map(|(at, value)| (*at, *value)).collect();
    let found = dataset.read_defined::<i32>(selection).unwrap();
    let listed = found.iter().map(|(at, value)| ((at[0], at[1]), *value));
    assert_eq!(listed.collect::<Cells>(), expected);
    assert_eq!(found.len(), expected.len(), "each once");
    let columns = dataset.read_columns::<u32, i32>(selection).unwrap();
    let [rows, across] =
        [0, 1].map(|axis| columns.coordinates[axis].iter().map(|&at| u64::from(at)));
    let listed = rows.clone().zip(across.clone()).zip(columns.values.iter().copied());
    assert_eq!(listed.collect::<Cells>(), expected);
    // Cells of other datasets come in the order of a read, and in columns chunk by chunk.
    if dataset.is_sparse() {
        assert_eq!(columns.values, found.values, "in the same order");
        assert!(rows.zip(across).eq(found.iter().map(|(at, _)| (at[0], at[1]))));
    }
    let wide = dataset.read_columns::<u64, f64>(selection).unwrap();
    assert!(wide.values.iter().zip(&columns.values).all(|(one, other)| *one == f64::from(*other)));
    assert_eq!(dataset.count_defined(selection).unwrap(), expected.len() as u64);
    let defined = dataset.defined(selection).unwrap();
    assert!(expected.keys().all(|(row, column)| defined.contains(&[*row, *column])));
}

fn check(dataset: &Dataset, case: &Case, cells: &Cells) {
    let [height, width] = case.shape;
    let all: Vec<u64> = (0..width).collect();
    let expected = naive(cells, Lines::Rows, &case.rows, &all);
    assert_eq!(dataset.read_rows::<i32>(&case.rows).unwrap(), expected);
    check_cells(dataset, cells, &rows_of(&case.rows, case.shape));
    let mut kept = Compressed::<i32>::new(Lines::Rows);
    for window in &case.windows {
        let [down, across] = *window;
        let (rows, columns) = (picked(down, height), picked(across, width));
        let slab = Selection::hyperslab(
            &[down.0, across.0],
            &[down.1, across.1],
            &[rows.len() as u64, columns.len() as u64],
            &[1, 1],
        )
        .unwrap();
        check_cells(dataset, cells, &slab);
        for lines in [Lines::Rows, Lines::Columns] {
            if rows.is_empty() || columns.is_empty() {
                // Nothing is selected, of whatever shape.
                let found = dataset.read_compressed_of::<i32>(&slab, lines).unwrap();
                assert!(found.is_empty());
                continue;
            }
            let expected = naive(cells, lines, &rows, &columns);
            assert_eq!(dataset.read_compressed_of::<i32>(&slab, lines).unwrap(), expected);
            // What was there before does not matter.
            kept.lines = lines;
            dataset.read_compressed_into(&slab, &mut kept).unwrap();
            assert_eq!(kept, expected);
            let converted = dataset.read_compressed_of::<f64>(&slab, lines).unwrap();
            assert_eq!(converted.indices, expected.indices);
            let same = converted.values.iter().zip(&expected.values);
            assert!(same.into_iter().all(|(one, other)| *one == f64::from(*other)));
        }
    }
    let every: Vec<u64> = (0..height).collect();
    for lines in [Lines::Rows, Lines::Columns] {
        let expected = naive(cells, lines, &every, &all);
        assert_eq!(dataset.read_compressed::<i32>(lines).unwrap(), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]
    #[test]
    fn windows_have_the_cells_of_a_plain_list(case in case()) {
        let limit = if matches!(case.kind, Kind::Direct) { 4096 } else { 1 << 20 };
        let context = Context::builder().cache_bytes(limit).threads(2).build().unwrap();
        let store = std::sync::Arc::new(pumice::MemoryStore::default());
        let file = File::options().context(&context).create_in(store).unwrap();
        let dataset = create(&file, &case);
        let mut cells = case.cells.clone();
        let seen = |cells: &Cells| match case.kind {
            Kind::Dense => filled(cells, case.shape),
            _ => cells.clone(),
        };
        check(&dataset, &case, &seen(&cells));
        file.flush().unwrap();
        dataset.evict().unwrap();
        if let Kind::Direct = case.kind {
            dataset.set_cache_options(CacheOptions::default().direct(true));
        }
        check(&dataset, &case, &seen(&cells));
        write(&dataset, &case.late);
        cells.extend(case.late.clone());
        check(&dataset, &case, &seen(&cells));
        if let Kind::Dense = case.kind {
            return Ok(());
        }
        // Some that were stored, and some that came late.
        let gone: Vec<[u64; 2]> =
            cells.keys().step_by(3).map(|&(row, column)| [row, column]).take(4).collect();
        dataset.erase_at(&Points::list(2, gone.as_flattened()).unwrap()).unwrap();
        cells.retain(|&(row, column), _| !gone.contains(&[row, column]));
        check(&dataset, &case, &cells);
    }
}

/// A matrix of so many cells that threads put them together, in blocks of which a column of chunks has several.
#[test]
fn wide_windows_with_many_cells_have_those_of_a_plain_table() {
    const SHAPE: [u64; 2] = [430, 3100];
    let value = |row: u64, column: u64| {
        let drawn = (row * SHAPE[1] + column + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        (drawn % 9 < 4).then_some(drawn as i32)
    };
    let context = Context::builder().cache_bytes(64 << 20).threads(2).build().unwrap();
    for chunk in [[65, 3100], [200, 1300], [430, 700]] {
        let store = std::sync::Arc::new(pumice::MemoryStore::default());
        let file = File::options().context(&context).create_in(store).unwrap();
        let dataset = file.new_dataset::<i32>().shape(SHAPE).chunk(chunk).sparse();
        let dataset = dataset.create("matrix").unwrap();
        for row in 0..SHAPE[0] {
            let cells = (0..SHAPE[1]).filter_map(|at| Some(([row, at], value(row, at)?)));
            dataset.write_cells(cells).unwrap();
        }
        // First, step and number of columns, and the step of rows.
        let windows = [
            (0, 1, 3100, 1),
            (7, 3, 1000, 1),
            (1020, 1, 1500, 1),
            (1023, 2, 2, 1),
            (0, 1, 3100, 2),
        ];
        for (first, step, count, down) in windows {
            let rows: Vec<u64> = (3..SHAPE[0]).step_by(down).collect();
            let columns: Vec<u64> = (0..count).map(|at| first + at * step).collect();
            let (steps, counts) = ([down as u64, step], [rows.len() as u64, count]);
            let slab = Selection::hyperslab(&[3, first], &steps, &counts, &[1, 1]).unwrap();
            for lines in [Lines::Rows, Lines::Columns] {
                let found = dataset.read_compressed_of::<i32>(&slab, lines).unwrap();
                let by_rows = lines == Lines::Rows;
                let (outer, inner) = if by_rows { (&rows, &columns) } else { (&columns, &rows) };
                let mut expected = Compressed::new(lines);
                expected.pointers.push(0);
                for &line in outer {
                    for (index, &across) in (0..).zip(inner) {
                        let at = if by_rows { (line, across) } else { (across, line) };
                        let Some(value) = value(at.0, at.1) else { continue };
                        expected.indices.push(index);
                        expected.values.push(value);
                    }
                    expected.pointers.push(expected.indices.len() as u64);
                }
                assert!(
                    found == expected,
                    "{chunk:?}, {lines:?}, {first}, {step}, {count}, {down}"
                );
                let wide = dataset.read_compressed_of::<f64>(&slab, lines).unwrap();
                assert!(wide.pointers == expected.pointers && wide.indices == expected.indices);
                let mut values = wide.values.iter().zip(&expected.values);
                assert!(values.all(|(one, other)| *one == f64::from(*other)));
            }
        }
    }
}

/// Chunks that have whole rows or parts of them, in the cache and stored, scattered cells and runs, before and after columns
/// and rows were cut off.
#[test]
fn all_rows_are_those_of_a_plain_table_however_they_come() {
    let context = Context::builder().cache_bytes(64 << 20).threads(2).build().unwrap();
    for (share, length) in [(60, 1), (300, 23), (1000, 1), (0, 1)] {
        let value = |row: u64, column: u64| {
            let drawn = ((row * 300 + column) / length + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            ((drawn >> 40) % 1000 < share).then_some((row * 300 + column) as i32)
        };
        for (filters, width) in [(true, 300), (false, 300), (true, 64), (false, 64)] {
            let store = std::sync::Arc::new(pumice::MemoryStore::default());
            let file = File::options().context(&context).create_in(store).unwrap();
            let builder = file.new_dataset::<i32>().shape([401, 300]).chunk([70, width]).sparse();
            let builder = match filters {
                true => builder,
                false => builder.value_filters(vec![]).location_filters(vec![]),
            };
            let dataset = builder.create("matrix").unwrap();
            for row in (0..401).filter(|row| row / 70 != 3) {
                let cells = (0..300).filter_map(|at| Some(([row, at], value(row, at)?)));
                dataset.write_cells(cells).unwrap();
            }
            for (rows, columns) in [(401, 300), (350, 300), (349, 211)] {
                dataset.resize([rows, columns]).unwrap();
                file.flush().unwrap();
                let mut expected = Compressed::new(Lines::Rows);
                expected.pointers.push(0);
                for row in 0..rows {
                    let cells = (0..columns).filter_map(|at| Some((at, value(row, at)?)));
                    for (index, value) in cells.filter(|_| row / 70 != 3) {
                        expected.indices.push(index);
                        expected.values.push(value);
                    }
                    expected.pointers.push(expected.indices.len() as u64);
                }
                for evicted in [false, true] {
                    if evicted {
                        dataset.evict().unwrap();
                    }
                    let found = dataset.read_compressed::<i32>(Lines::Rows).unwrap();
                    assert!(
                        found == expected,
                        "{share}, {length}, {width}, {rows}, {columns}, {evicted}"
                    );
                    let wide = dataset.read_compressed::<f64>(Lines::Rows).unwrap();
                    assert!(wide.pointers == expected.pointers && wide.indices == expected.indices);
                    let mut values = wide.values.iter().zip(&expected.values);
                    assert!(values.all(|(one, other)| *one == f64::from(*other)));
                    // Loads all chunks, so that they are read from the cache.
                    dataset.read::<i32>(..).unwrap();
                    let again = dataset.read_compressed::<i32>(Lines::Rows).unwrap();
                    assert!(
                        again == expected,
                        "{share}, {length}, {width}, {rows}, {columns}, resident"
                    );
                }
            }
        }
    }
}

fn small() -> Dataset {
    let file = File::in_memory().unwrap();
    let matrix = file.new_dataset::<i32>().shape([6, 8]).chunk([4, 3]).sparse().create("m");
    let matrix = matrix.unwrap();
    matrix.write_points(&[[0, 0], [1, 7], [4, 2], [4, 3], [5, 5]], &[1, 2, 3, 4, 5]).unwrap();
    matrix
}

#[test]
fn rows_and_columns_of_unions_are_windows_if_each_row_has_the_same_columns() {
    let matrix = small();
    let block = |rows: Range<u64>, columns: Range<u64>| {
        let count = [rows.end - rows.start, columns.end - columns.start];
        Selection::block(&[rows.start, columns.start], &count).unwrap()
    };
    let union = |parts: Vec<Selection>| Selection::union_of(2, parts, &[6, 8]).unwrap();
    let corners =
        union(vec![block(0..1, 0..3), block(0..1, 7..8), block(4..6, 0..3), block(4..6, 7..8)]);
    let found = matrix.read_compressed_of::<i32>(&corners, Lines::Rows).unwrap();
    assert_eq!(found.pointers, [0, 1, 2, 2]);
    assert_eq!((found.indices, found.values), (vec![0, 2], vec![1, 3]));
    let columns = matrix.read_compressed_of::<i32>(&corners, Lines::Columns).unwrap();
    assert_eq!(columns.pointers, [0, 1, 1, 2, 2]);
    assert_eq!((columns.indices, columns.values), (vec![0, 1], vec![1, 3]));

    let ragged = union(vec![block(0..1, 0..3), block(4..5, 0..4)]);
    let refused = matrix.read_compressed_of::<i32>(&ragged, Lines::Rows).unwrap_err();
    assert!(refused.to_string().contains("some rows and some columns"), "{refused}");
    let points = matrix.read_compressed_of::<i32>(&[[0u64, 0], [1, 1]][..], Lines::Rows);
    assert!(points.is_err());
}

#[test]
fn rows_outside_a_matrix_and_arrays_of_other_ranks_are_refused() {
    let matrix = small();
    let refused = matrix.read_rows::<i32>(&[0, 6]).unwrap_err();
    assert!(refused.to_string().contains("row 6"), "{refused}");
    assert_eq!(matrix.read_rows::<i32>(&[]).unwrap().pointers, [0]);
    let file = File::in_memory().unwrap();
    let cube = file.new_dataset::<i32>().shape([2, 2, 2]).sparse().create("cube").unwrap();
    assert!(cube.read_rows::<i32>(&[0]).unwrap_err().to_string().contains("rank 3"));
}

#[test]
fn few_rows_of_a_matrix_without_end_cost_what_is_there() {
    let file = File::in_memory().unwrap();
    let edge = 1 << 40;
    let matrix = file.new_dataset::<i32>().shape([edge, edge]).chunk([1000, 1000]).sparse();
    let matrix = matrix.create("matrix").unwrap();
    matrix.write_points(&[[5, 7], [edge - 1, edge - 1]], &[1, 2]).unwrap();
    let found = matrix.read_rows::<i32>(&[edge - 1, 5, 6, edge - 1]).unwrap();
    assert_eq!(found.pointers, [0, 1, 2, 2, 3]);
    assert_eq!((found.indices, found.values), (vec![edge - 1, 7, edge - 1], vec![2, 1, 2]));
    let column = matrix.read_compressed_of::<i32>((5..9, 7), Lines::Columns).unwrap();
    assert_eq!((column.indices, column.values), (vec![0], vec![1]));
}

#[test]
fn many_windows_are_read_in_one_call() {
    let matrix = small();
    let (mut one, mut two) = (Compressed::new(Lines::Rows), Compressed::new(Lines::Columns));
    let (mut values, mut wide) = ([0; 6], Compressed::<f64>::new(Lines::Rows));
    let mut reads = ReadMany::new();
    reads.add_rows(&matrix, &[4, 1], &mut one).unwrap();
    reads.add(&matrix, (.., 2..3), &mut values).unwrap();
    reads.add_compressed(&matrix, (4.., 2..4), &mut two).unwrap();
    reads.add_compressed(&matrix, (.., ..), &mut wide).unwrap();
    reads.run().unwrap();
    assert_eq!(
        (one.pointers, one.indices, one.values),
        (vec![0, 2, 3], vec![2, 3, 7], vec![3, 4, 2])
    );
    assert_eq!((two.pointers, two.indices, two.values), (vec![0, 1, 2], vec![0, 0], vec![3, 4]));
    assert_eq!(values, [0, 0, 0, 0, 3, 0]);
    assert_eq!(wide, matrix.read_compressed::<f64>(Lines::Rows).unwrap());
}
