//! CSR, CSC and COO to and from sparse datasets, against a dictionary of cells.

use pumice::{Compressed, Coo, Dataset, Duplicates, Element, File, Lines, Points, Section};
use std::collections::BTreeMap;

type Cells = BTreeMap<Vec<u64>, f64>;

fn sparse(file: &File, name: &str, shape: &[u64], chunk: &[u64]) -> Dataset {
    file.new_dataset::<f64>().shape(shape).chunk(chunk).sparse().create(name).unwrap()
}

fn cells(dataset: &Dataset) -> Cells {
    let found = dataset.read_defined::<f64>(..).unwrap();
    found.iter().map(|(at, &value)| (at.to_vec(), value)).collect()
}

/// Scattered cells of an array, some of them zero.
fn scattered(shape: &[u64], count: u64) -> Cells {
    let mixed = (0..count).map(|at| at.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31));
    mixed
        .map(|mut hash| {
            let mut point = Vec::new();
            for &side in shape {
                point.push(hash % side);
                hash = (hash / side).wrapping_mul(0x2545_F491_4F6C_DD1D);
            }
            (point, (hash % 5) as f64)
        })
        .collect()
}

fn coo(shape: &[u64], cells: &[(Vec<u64>, f64)]) -> Coo<f64> {
    let axis = |axis: usize| cells.iter().map(|(point, _)| point[axis]).collect();
    let columns = (0..shape.len()).map(axis).collect();
    Coo { shape: shape.to_vec(), columns, values: cells.iter().map(|(_, value)| *value).collect() }
}

#[test]
fn coordinate_lists_of_every_rank_come_back_in_row_major_order() {
    let file = File::in_memory().unwrap();
    for (shape, chunk) in [
        (vec![97], vec![10]),
        (vec![30, 20], vec![7, 6]),
        (vec![9, 8, 7], vec![4, 3, 2]),
        (vec![5, 6, 4, 7], vec![2, 6, 3, 3]),
    ] {
        let model = scattered(&shape, 60);
        let mut list: Vec<_> = model.clone().into_iter().collect();
        list.reverse();
        let dataset = sparse(&file, &format!("rank {}", shape.len()), &shape, &chunk);
        let blocks: Vec<_> = list.chunks(13).map(|part| coo(&shape, part)).collect();
        dataset.write_coo(&blocks, Duplicates::Error).unwrap();
        assert_eq!(cells(&dataset), model, "zeros are defined");

        let ordered: Vec<_> = model.clone().into_iter().collect();
        assert_eq!(dataset.read_coo::<f64>().unwrap(), coo(&shape, &ordered));
        let mut streamed = Cells::new();
        for block in dataset.coo_blocks::<f64>().unwrap() {
            let block = block.unwrap();
            assert!(!block.is_empty());
            for cell in 0..block.values.len() {
                let point = block.columns.iter().map(|column| column[cell]).collect();
                assert_eq!(streamed.insert(point, block.values[cell]), None);
            }
        }
        assert_eq!(streamed, model);
    }
}

/// All lines of a matrix in one block, by the book.
fn compress(lines: Lines, shape: [u64; 2], cells: &Cells) -> Compressed<f64> {
    let axis = usize::from(lines == Lines::Columns);
    let mut sorted: Vec<_> = cells.iter().collect();
    sorted.sort_by_key(|(point, _)| (point[axis], point[1 - axis]));
    let before = |line: u64| sorted.iter().filter(|(point, _)| point[axis] < line).count() as u64;
    Compressed {
        lines,
        first: 0,
        pointers: (0..=shape[axis]).map(before).collect(),
        indices: sorted.iter().map(|(point, _)| point[1 - axis]).collect(),
        values: sorted.iter().map(|(_, value)| **value).collect(),
    }
}

#[test]
fn compressed_lines_go_in_and_out_whole_and_in_blocks() {
    let (file, shape) = (File::in_memory().unwrap(), [45, 33]);
    let model = scattered(&shape, 200);
    for (number, lines) in [Lines::Rows, Lines::Columns].into_iter().enumerate() {
        let whole = compress(lines, shape, &model);
        let dataset = sparse(&file, &format!("whole {number}"), &shape, &[10, 9]);
        dataset.write_compressed([&whole], Duplicates::Last).unwrap();
        assert_eq!(cells(&dataset), model);
        for lines in [Lines::Rows, Lines::Columns] {
            let read = dataset.read_compressed::<f64>(lines).unwrap();
            assert_eq!(read, compress(lines, shape, &model));
            let blocks = dataset.compressed_blocks::<f64>(lines).unwrap();
            let blocks: Vec<_> = blocks.map(Result::unwrap).collect();
            assert!(blocks.len() > 3);
            assert_eq!(blocks.iter().map(Compressed::line_count).sum::<u64>(), read.line_count());
            assert_eq!(
                blocks.iter().flat_map(|b| b.indices.clone()).collect::<Vec<_>>(),
                read.indices
            );

            // And the blocks, which do not begin at line 0, make the same matrix.
            let copy = sparse(&file, &format!("copy {number} {lines:?}"), &shape, &[13, 13]);
            copy.write_compressed(&blocks, Duplicates::Error).unwrap();
            assert_eq!(cells(&copy), model);
        }
    }
}

fn repeated(rule: Duplicates, split: usize) -> pumice::Result<Cells> {
    let file = File::in_memory().unwrap();
    let dataset = sparse(&file, "d", &[4, 4], &[2, 2]);
    let list = [([1, 1], 1.0), ([3, 0], 7.0), ([1, 1], 2.0), ([0, 2], 0.0), ([1, 1], 4.0)];
    let list: Vec<_> = list.iter().map(|(point, value)| (point.to_vec(), *value)).collect();
    let (first, second) = list.split_at(split);
    let blocks = [coo(&[4, 4], first), coo(&[4, 4], second)];
    dataset.write_coo(&blocks, rule)?;
    Ok(cells(&dataset))
}

#[test]
fn duplicates_follow_the_named_rule_within_and_between_blocks() {
    for split in 0..=5 {
        let with = |value: f64| -> Cells {
            [(vec![1, 1], value), (vec![3, 0], 7.0), (vec![0, 2], 0.0)].into_iter().collect()
        };
        assert_eq!(repeated(Duplicates::Last, split).unwrap(), with(4.0));
        assert_eq!(repeated(Duplicates::First, split).unwrap(), with(1.0));
        assert_eq!(repeated(Duplicates::Sum, split).unwrap(), with(7.0));
        let error = repeated(Duplicates::Error, split).unwrap_err().to_string();
        assert!(error.contains("[1, 1] is"), "{error}");
    }
}

#[test]
fn a_sum_that_does_not_fit_is_an_error() {
    let file = File::in_memory().unwrap();
    let builder = file.new_dataset::<u8>().shape([4]).sparse();
    let dataset = builder.create("d").unwrap();
    let list = Coo { shape: vec![4], columns: vec![vec![2, 2]], values: vec![200u8, 100] };
    let error = dataset.write_coo([&list], Duplicates::Sum).unwrap_err().to_string();
    assert!(error.contains("the sum at [2] is too large"), "{error}");
}

#[test]
fn forms_that_do_not_fit_the_dataset_are_errors() {
    let file = File::in_memory().unwrap();
    let dataset = sparse(&file, "d", &[4, 5], &[2, 2]);
    let rows = |pointers: &[u64], indices: &[u64]| Compressed {
        lines: Lines::Rows,
        first: 0,
        pointers: pointers.to_vec(),
        indices: indices.to_vec(),
        values: vec![1.0; indices.len()],
    };
    for (wrong, why) in [
        (rows(&[0, 2, 1, 2], &[0, 1]), "pointers go back"),
        (rows(&[0, 1], &[0, 1]), "too few"),
        (rows(&[0, 1], &[5]), "no such column"),
        (rows(&[0, 0, 0, 0, 0, 1], &[0]), "no such row"),
        (Compressed { first: 4, ..rows(&[0, 1], &[0]) }, "no such row"),
        (Compressed { values: vec![], ..rows(&[0, 1], &[0]) }, "no value"),
    ] {
        for rule in [Duplicates::Last, Duplicates::Sum] {
            assert!(dataset.write_compressed([&wrong], rule).is_err(), "{why}");
        }
    }
    assert_eq!(dataset.count_defined(..).unwrap(), 0);
    let other = coo(&[5, 4], &[(vec![0, 0], 1.0)]);
    assert!(dataset.write_coo([&other], Duplicates::Last).is_err());
    let cube = sparse(&file, "cube", &[2, 2, 2], &[2, 2, 2]);
    assert!(cube.read_compressed::<f64>(Lines::Rows).is_err());
    assert!(cube.compressed_blocks::<f64>(Lines::Rows).is_err());
}

#[test]
fn empty_matrices_have_pointers_and_no_cells() {
    let file = File::in_memory().unwrap();
    let dataset = sparse(&file, "d", &[3, 5], &[2, 2]);
    let rows = dataset.read_compressed::<f64>(Lines::Rows).unwrap();
    assert_eq!((rows.pointers.as_slice(), rows.is_empty()), (&[0, 0, 0, 0][..], true));
    assert_eq!(dataset.coo_blocks::<f64>().unwrap().count(), 0);
}

#[test]
fn blocks_stay_small_where_lines_are_full() {
    let file = File::in_memory().unwrap();
    let builder = file.new_dataset::<u8>().shape([3000, 1000]).chunk([3000, 1000]).sparse();
    let dataset = builder.create("d").unwrap();
    dataset.write(.., &vec![1u8; 3_000_000]).unwrap();
    for block in dataset.compressed_blocks::<u8>(Lines::Rows).unwrap() {
        assert!(block.unwrap().len() <= 1 << 20);
    }
    let counts = dataset.coo_blocks::<u8>().unwrap().map(|block| block.unwrap().len());
    let counts: Vec<u64> = counts.collect();
    assert!(counts.iter().all(|&count| count <= 1 << 20));
    assert_eq!(counts.iter().sum::<u64>(), 3_000_000);
}

#[test]
fn rows_that_nobody_has_looked_at_survive_a_smaller_extent() {
    let context = pumice::Context::builder().build().unwrap();
    let store = std::sync::Arc::new(pumice::MemoryStore::default());
    let file = File::options().context(&context).create_in(store).unwrap();
    for plain in [false, true] {
        let new = file.new_dataset::<f32>().shape([64, 64]).max_shape([None, None]).chunk([32, 32]);
        let new = new.sparse();
        let new = if plain { new.clear_filters(Section::Values) } else { new };
        let dataset = new.create(if plain { "plain" } else { "packed" }).unwrap();
        // Every third column of the first forty: none of them is cut off.
        let columns: Vec<u32> = (0..64).flat_map(|_| (0..40).step_by(3)).collect();
        let pointers: Vec<u32> = (0..=64).map(|row| row * 14).collect();
        let values: Vec<f32> = (0..columns.len()).map(|n| n as f32 + 1.0).collect();
        let points = Points::compressed_rows(&pointers[..], &columns[..]).unwrap();
        dataset.write_at(&points, &values).unwrap();
        dataset.resize([64, 50]).unwrap();
        context.evict().unwrap();
        let read = dataset.read::<f32>(..).unwrap();
        for (cell, value) in read.iter().enumerate() {
            let (row, column) = (cell / 50, cell % 50);
            let defined = column < 40 && column % 3 == 0;
            let wanted = if defined { (row * 14 + column / 3) as f32 + 1.0 } else { 0.0 };
            assert_eq!(*value, wanted, "row {row}, column {column}");
        }
        assert_eq!(dataset.count_defined(..).unwrap(), 64 * 14);
    }
}

#[test]
fn a_sum_that_the_dataset_cannot_hold_is_an_error() {
    let file = File::in_memory().unwrap();
    let dataset = file.new_dataset::<u8>().shape([4]).sparse().create("d").unwrap();
    let twice =
        |value: i64| Coo { shape: vec![4], columns: vec![vec![1, 1]], values: vec![value; 2] };
    dataset.write_coo([twice(60)], Duplicates::Sum).unwrap();
    dataset.write_coo([twice(67)], Duplicates::Sum).unwrap();
    assert_eq!(dataset.read::<u8>(1).unwrap(), [254]);
    let error = dataset.write_coo([twice(1)], Duplicates::Sum).unwrap_err().to_string();
    assert!(error.contains("the sum at [1] is too large"), "{error}");
    assert_eq!(dataset.read::<u8>(1).unwrap(), [254]);
}

/// The sum of what is stored and what is added, in a dataset of another type.
fn summed<S: Element, T: Element>(stored: S, added: &[T]) -> pumice::Result<S> {
    let file = File::in_memory().unwrap();
    let dataset = file.new_dataset::<S>().shape([4]).sparse().create("d").unwrap();
    dataset.write(2, &[stored]).unwrap();
    let list = Coo { shape: vec![4], columns: vec![vec![2; added.len()]], values: added.to_vec() };
    let written = dataset.write_coo([&list], Duplicates::Sum);
    let found = dataset.read::<S>(2).unwrap()[0];
    match written {
        Ok(()) => Ok(found),
        Err(error) => {
            assert_eq!(bytemuck::bytes_of(&found), bytemuck::bytes_of(&stored), "is as it was");
            Err(error)
        }
    }
}

#[test]
fn sums_lose_nothing_of_what_is_stored() {
    let large = (1i64 << 53) + 1;
    assert_eq!(summed(large, &[1.0f64]).unwrap(), large + 1);
    assert_eq!(summed(1_000_000_000_003i64, &[-1i32, -2]).unwrap(), 1_000_000_000_000);
    assert_eq!(summed(u64::MAX - 1, &[i8::MIN, 127, 2]).unwrap(), u64::MAX);
    assert_eq!(summed(0i64, &[i32::MAX, i32::MAX]).unwrap(), 2 * i64::from(i32::MAX));
    assert_eq!(summed(1.0f64 + 1e-12, &[1.0f32]).unwrap(), 2.0 + 1e-12);
    assert_eq!(summed(0.5f32, &[u64::MAX]).unwrap(), u64::MAX as f32);
}

#[test]
fn sums_that_cannot_be_stored_are_errors() {
    for error in [
        summed(250u8, &[6i64]).unwrap_err(),
        summed(0u32, &[-1i8]).unwrap_err(),
        summed(u64::MAX, &[1u8]).unwrap_err(),
        summed(i64::MIN, &[-1.0f32]).unwrap_err(),
    ] {
        assert!(error.to_string().contains("the sum at [2] is too large"), "{error}");
    }
    for odd in [0.5, f64::NAN, f64::INFINITY] {
        let error = summed(1i32, &[odd]).unwrap_err().to_string();
        assert!(error.contains("cannot be added to integers"), "{error}");
    }
    let error = summed([1u8, 2], &[[1u8, 1]]).unwrap_err().to_string();
    assert!(error.contains("sums of"), "{error}");
}

#[test]
fn other_rules_take_elements_of_any_type() {
    let file = File::in_memory().unwrap();
    let dataset = file.new_dataset::<[i16; 2]>().shape([4]).sparse().create("d").unwrap();
    let list = |values: [[i16; 2]; 2]| Coo {
        shape: vec![4],
        columns: vec![vec![1, 1]],
        values: values.to_vec(),
    };
    dataset.write_coo([list([[1, 2], [3, 4]])], Duplicates::Last).unwrap();
    assert_eq!(dataset.read::<[i16; 2]>(1).unwrap(), [[3, 4]]);
    dataset.write_coo([list([[5, 6], [7, 8]])], Duplicates::First).unwrap();
    assert_eq!(dataset.read::<[i16; 2]>(1).unwrap(), [[3, 4]]);
    assert!(dataset.write_coo([list([[1, 2]; 2])], Duplicates::Error).is_err());
}

#[test]
fn pointers_of_a_vast_matrix_are_an_error_not_the_end() {
    let file = File::in_memory().unwrap();
    let matrix = file.new_dataset::<f32>().shape([1 << 42, 1 << 42]).sparse().create("m").unwrap();
    matrix.write_point(&[1 << 41, 7], 1.5f32).unwrap();
    for lines in [Lines::Rows, Lines::Columns] {
        let error = matrix.read_compressed::<f32>(lines).unwrap_err().to_string();
        assert!(error.contains("no memory"), "{error}");
    }
    assert_eq!(matrix.read_coo::<f32>().unwrap().columns, [[1 << 41], [7]]);
}

#[test]
fn lines_that_a_matrix_does_not_have_are_refused_also_if_they_are_empty() {
    let file = File::in_memory().unwrap();
    let matrix = sparse(&file, "matrix", &[10, 20], &[5, 5]);
    let empty = |lines: Lines, first: u64, count: usize| {
        let pointers = vec![0; count + 1];
        let block =
            Compressed::<f64> { lines, first, pointers, indices: Vec::new(), values: Vec::new() };
        matrix.write_compressed([&block], Duplicates::Last)
    };
    empty(Lines::Rows, 0, 10).unwrap();
    empty(Lines::Rows, 9, 1).unwrap();
    empty(Lines::Columns, 10, 10).unwrap();
    for (lines, first, count) in [
        (Lines::Rows, 0, 11),
        (Lines::Rows, 10, 1),
        (Lines::Rows, 1000, 1),
        (Lines::Columns, 15, 6),
        (Lines::Rows, u64::MAX, 1),
    ] {
        let error = empty(lines, first, count).unwrap_err().to_string();
        assert!(error.contains("of a matrix of"), "{error}");
    }
}

#[test]
fn blocks_of_lines_are_those_of_the_shape_at_the_beginning() {
    let file = File::in_memory().unwrap();
    let builder = file.new_dataset::<f64>().shape([6, 6]).max_shape([None, None]);
    let matrix = builder.chunk([2, 2]).sparse().create("matrix").unwrap();
    matrix.write_points(&[[0, 0], [3, 5], [5, 1]], &[1.0, 2.0, 3.0]).unwrap();
    for (shape, left) in [([9, 9], 3), ([4, 5], 1), ([1, 1], 1)] {
        let rows = matrix.compressed_blocks::<f64>(Lines::Rows).unwrap();
        let (lines, lists) = (matrix.shape()[0], matrix.coo_blocks::<f64>().unwrap());
        matrix.resize(shape).unwrap();
        if shape == [9, 9] {
            matrix.write_points(&[[8, 0], [0, 8]], &[4.0, 5.0]).unwrap();
        }
        let rows: Vec<_> = rows.map(Result::unwrap).collect();
        assert_eq!(rows.iter().map(Compressed::line_count).sum::<u64>(), lines);
        assert_eq!(rows.iter().map(Compressed::len).sum::<u64>(), left, "{shape:?}");
        assert_eq!(lists.map(|list| list.unwrap().len()).sum::<u64>(), left, "{shape:?}");
        if shape == [9, 9] {
            matrix.erase((8, ..)).unwrap();
            matrix.erase((.., 8)).unwrap();
        }
    }
}

#[test]
fn blocks_of_lines_visit_stored_chunks_alone() {
    const SIDE: u64 = 1 << 10;
    let file = File::in_memory().unwrap();
    // 4096 rows of 64 chunks, and three chunks in them. One is stored, two wait in the cache.
    let (rows, columns) = (SIDE << 12, SIDE << 6);
    let matrix = sparse(&file, "matrix", &[rows, columns], &[SIDE, SIDE]);
    let points = [[5, 7], [SIDE * 3000 + 1, SIDE * 9 + 2], [SIDE * 3000 + 1, SIDE * 60]];
    matrix.write_points(&points[..1], &[1.0]).unwrap();
    file.flush().unwrap();
    matrix.write_points(&points[1..], &[2.0, 3.0]).unwrap();
    for (lines, count) in [(Lines::Rows, rows), (Lines::Columns, columns)] {
        let stats = || matrix.cache_stats();
        let visits = || stats().hits + stats().misses + stats().direct + stats().known_absent;
        let before = visits();
        let blocks = matrix.compressed_blocks::<f64>(lines).unwrap();
        let blocks: Vec<_> = blocks.map(Result::unwrap).collect();
        // Each stored chunk is asked for its cells, and then for their values.
        assert_eq!(visits() - before, 2 * points.len() as u64, "{lines:?}");
        // Blocks with cells, before and behind which lines are empty, a million in a block.
        assert!(blocks.len() as u64 <= 2 * 3 + 1 + (count >> 20), "{} blocks", blocks.len());
        let mut next = 0;
        for block in &blocks {
            assert_eq!(block.first, next, "{lines:?}");
            next += block.line_count();
        }
        assert_eq!(next, count);
        let copy = sparse(&file, &format!("{lines:?}"), &[rows, columns], &[SIDE, SIDE]);
        copy.write_compressed(&blocks, Duplicates::Error).unwrap();
        assert_eq!(cells(&copy), cells(&matrix));
    }
}
