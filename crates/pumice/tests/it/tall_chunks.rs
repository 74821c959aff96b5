//! Chunks of many more rows than cells that are defined: what a request costs goes by what is stored, and not by the
//! rows that it names. Requests of 2^30 rows and more would not end otherwise, or take all memory.

use crate::thorough::amount;
use proptest::prelude::*;
use pumice::{Context, Dataset, DatasetBuilder, File, MemoryStore, Selection};
use std::collections::BTreeMap;
use std::sync::Arc;

const ROWS: u64 = 1 << 40;
const CHUNKS: [u64; 3] = [1 << 30, 1 << 31, (1 << 32) - 1];

/// Cells far from each other, in chunks of any of these heights.
const CELLS: [[u64; 2]; 6] = [[0, 0], [0, 2], [1, 1], [1 << 29, 0], [1 << 35, 2], [ROWS - 1, 1]];

fn all_columns(columns: std::ops::Range<u64>) -> Selection {
    let (start, width) = (columns.start, columns.end - columns.start);
    Selection::block(&[0, start], &[ROWS, width]).unwrap()
}

/// Every other row, and one column of two.
fn strided() -> Selection {
    Selection::hyperslab(&[1, 0], &[2, 2], &[ROWS / 2, 2], &[1, 1]).unwrap()
}

/// All but a block in the middle.
fn around() -> Selection {
    let block = Selection::block(&[1, 1], &[ROWS - 2, 1]).unwrap();
    Selection::all().not_b(&block, &[ROWS, 3]).unwrap()
}

/// Selections with as many runs as there are rows, and those of the cells that they have.
fn selections() -> Vec<(Selection, Vec<[u64; 2]>)> {
    let of =
        |is: &dyn Fn(&[u64; 2]) -> bool| CELLS.iter().copied().filter(|cell| is(cell)).collect();
    vec![
        (all_columns(0..2), of(&|cell| cell[1] < 2)),
        (all_columns(1..3), of(&|cell| cell[1] > 0)),
        (Selection::block(&[1, 0], &[ROWS - 1, 2]).unwrap(), of(&|c| c[0] > 0 && c[1] < 2)),
        (strided(), of(&|cell| cell[0] % 2 == 1 && cell[1] != 1)),
        (around(), of(&|cell| cell[1] != 1 || cell[0] == 0 || cell[0] == ROWS - 1)),
    ]
}

fn value(cell: &[u64]) -> f64 {
    (cell[0] % 1000) as f64 + cell[1] as f64 / 4.0
}

fn text(cell: &[u64]) -> String {
    format!("{cell:?}")
}

fn tall(builder: DatasetBuilder, rows: u64) -> DatasetBuilder {
    builder.shape([ROWS, 3]).max_shape([Some(ROWS), Some(4)]).chunk([rows, 3]).sparse()
}

/// Defined cells with their values, numbers or strings.
fn found(dataset: &Dataset, selection: &Selection) -> BTreeMap<Vec<u64>, String> {
    let count = dataset.count_defined(selection).unwrap();
    let dims = dataset.shape();
    assert_eq!(dataset.defined(selection).unwrap().count(&dims), count);
    let pairs: BTreeMap<_, _> = if dataset.datatype().has_varlen() {
        let (coordinates, texts) = dataset.read_defined_strings(selection).unwrap();
        let texts = texts.iter().map(|text| String::from_utf8_lossy(text).into_owned());
        coordinates.chunks_exact(2).map(<[u64]>::to_vec).zip(texts).collect()
    } else {
        let all = dataset.read_defined::<f64>(selection).unwrap();
        let texts = all.values.iter().map(f64::to_string);
        all.coordinates.chunks_exact(2).map(<[u64]>::to_vec).zip(texts).collect()
    };
    assert_eq!(pairs.len() as u64, count);
    pairs
}

fn expected(strings: bool, cells: &[[u64; 2]]) -> BTreeMap<Vec<u64>, String> {
    let shown = |cell: &[u64; 2]| if strings { text(cell) } else { value(cell).to_string() };
    cells.iter().map(|cell| (cell.to_vec(), shown(cell))).collect()
}

/// A dataset with all of the cells, stored or only in memory.
fn with_cells(file: &File, strings: bool, rows: u64, stored: bool) -> Dataset {
    let name = format!("{strings} {rows} {stored}");
    let dataset = if strings {
        let dataset = tall(file.new_strings(), rows).create(&name).unwrap();
        dataset.write_string_points(&CELLS, &CELLS.map(|cell| text(&cell))).unwrap();
        dataset
    } else {
        let dataset = tall(file.new_dataset::<f64>(), rows).create(&name).unwrap();
        dataset.write_coordinates(&CELLS.concat(), &CELLS.map(|cell| value(&cell))).unwrap();
        dataset
    };
    if stored {
        file.flush().unwrap();
    }
    dataset
}

/// Does something with datasets of both kinds, with chunks of all heights, in memory and stored.
fn for_each_dataset(act: impl Fn(bool, &File, Dataset)) {
    for strings in [false, true] {
        for rows in CHUNKS {
            for stored in [false, true] {
                let file = File::in_memory().unwrap();
                let dataset = with_cells(&file, strings, rows, stored);
                act(strings, &file, dataset);
            }
        }
    }
}

#[test]
fn reads_of_defined_cells_do_not_go_through_rows() {
    for_each_dataset(|strings, _, dataset| {
        for (selection, cells) in selections() {
            assert_eq!(found(&dataset, &selection), expected(strings, &cells));
        }
    });
}

#[test]
fn erasing_does_not_go_through_rows() {
    for number in 0..selections().len() {
        for_each_dataset(|strings, file, dataset| {
            let (selection, cells) = selections().swap_remove(number);
            dataset.erase(&selection).unwrap();
            let left: Vec<_> = CELLS.into_iter().filter(|cell| !cells.contains(cell)).collect();
            assert_eq!(found(&dataset, &Selection::all()), expected(strings, &left));
            file.flush().unwrap();
            assert_eq!(found(&dataset, &Selection::all()), expected(strings, &left));
        });
    }
}

#[test]
fn resizing_does_not_go_through_rows() {
    for_each_dataset(|strings, _, dataset| {
        for shape in [[ROWS, 2], [ROWS, 3], [ROWS, 4], [ROWS - 1, 4], [1 << 30, 1]] {
            dataset.resize(shape).unwrap();
            // What was cut off stays away.
            let last = [[0, 0], [1, 1], [1 << 29, 0], [ROWS - 1, 1]];
            let inside = |cell: &[u64; 2]| cell[0] < shape[0] && cell[1] < shape[1];
            let left: Vec<_> = last.into_iter().filter(inside).collect();
            assert_eq!(found(&dataset, &Selection::all()), expected(strings, &left), "{shape:?}");
        }
    });
}

/// Steps of the model below; blocks are given by two corners.
#[derive(Clone, Debug)]
enum Step {
    Write(Vec<(u64, u64)>),
    /// A block of columns, of every row or of one of so many.
    Erase((u64, u64), (u64, u64), u64),
    /// All cells but a block.
    EraseAround((u64, u64), (u64, u64)),
    Resize(u64, u64),
    Flush,
}

/// Three chunks of more rows than a selection may have without being a long one.
const TALL: u64 = 9000;
const CHUNK: u64 = 4000;
const WIDTH: u64 = 5;

fn step() -> impl Strategy<Value = Step> {
    let range = |end: u64| (0..end, 0..end).prop_map(|(a, b)| (a.min(b), a.max(b) + 1));
    let cells = prop::collection::vec((0..TALL, 0..WIDTH), 1..40);
    prop_oneof![
        4 => cells.prop_map(Step::Write),
        3 => (range(TALL), range(WIDTH), 1u64..4).prop_map(|(rows, columns, step)| {
            Step::Erase(rows, columns, step)
        }),
        1 => (range(TALL), range(WIDTH)).prop_map(|(r, c)| Step::EraseAround(r, c)),
        2 => (1..=TALL, 1..=WIDTH).prop_map(|(rows, columns)| Step::Resize(rows, columns)),
        1 => Just(Step::Flush),
    ]
}

/// Erases a selection, which is cut to the extent, and cells that are in it.
fn erase(
    dataset: &Dataset,
    model: &mut BTreeMap<Vec<u64>, String>,
    selection: Selection,
    has: impl Fn(&[u64]) -> bool,
) {
    let selection = selection.clip(&dataset.shape()).unwrap();
    let inside: BTreeMap<_, _> =
        model.iter().filter(|(cell, _)| has(cell)).map(|(c, v)| (c.clone(), v.clone())).collect();
    assert_eq!(found(dataset, &selection), inside);
    dataset.erase(&selection).unwrap();
    model.retain(|cell, _| !has(cell));
}

fn take(dataset: &Dataset, strings: bool, model: &mut BTreeMap<Vec<u64>, String>, step: &Step) {
    let shape = dataset.shape();
    match step {
        Step::Write(cells) => {
            let fits = |(row, column): &&(u64, u64)| *row < shape[0] && *column < shape[1];
            let cells: Vec<[u64; 2]> = cells.iter().filter(fits).map(|c| [c.0, c.1]).collect();
            if strings {
                let texts: Vec<_> = cells.iter().map(|cell| text(cell)).collect();
                dataset.write_string_points(&cells, &texts).unwrap();
            } else {
                let values: Vec<_> = cells.iter().map(|cell| value(cell)).collect();
                dataset.write_coordinates(&cells.concat(), &values).unwrap();
            }
            model.extend(expected(strings, &cells));
        }
        Step::Erase(rows, columns, every) => {
            let count = (rows.1 - rows.0).div_ceil(*every);
            let (start, stride) = ([rows.0, columns.0], [*every, columns.1 - columns.0]);
            let block = [1, columns.1 - columns.0];
            let slab = Selection::hyperslab(&start, &stride, &[count, 1], &block).unwrap();
            erase(dataset, model, slab, |cell| {
                let row = (rows.0..rows.1).contains(&cell[0]) && (cell[0] - rows.0) % every == 0;
                row && (columns.0..columns.1).contains(&cell[1])
            });
        }
        Step::EraseAround(rows, columns) => {
            let size = [rows.1 - rows.0, columns.1 - columns.0];
            let block = Selection::block(&[rows.0, columns.0], &size).unwrap();
            let around = Selection::all().not_b(&block, &shape).unwrap();
            erase(dataset, model, around, |cell| {
                !(rows.0..rows.1).contains(&cell[0]) || !(columns.0..columns.1).contains(&cell[1])
            });
        }
        Step::Resize(rows, columns) => {
            dataset.resize([*rows, *columns]).unwrap();
            model.retain(|cell, _| cell[0] < *rows && cell[1] < *columns);
        }
        Step::Flush => dataset.flush().unwrap(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn tall_chunks_do_what_a_dictionary_does(
        strings: bool,
        steps in prop::collection::vec(step(), 1..20),
    ) {
        let store = Arc::new(MemoryStore::default());
        let file = File::options().create_in(store.clone()).unwrap();
        let builder = if strings { file.new_strings() } else { file.new_dataset::<f64>() };
        let builder = builder.shape([TALL, WIDTH]).max_shape([None, Some(WIDTH)]);
        let dataset = builder.chunk([CHUNK, WIDTH]).sparse().create("d").unwrap();
        let mut model = BTreeMap::new();
        for step in &steps {
            take(&dataset, strings, &mut model, step);
            prop_assert_eq!(&found(&dataset, &Selection::all()), &model, "after {:?}", step);
        }
        drop(dataset);
        file.close().unwrap();
        let file = File::options().open_in(store).unwrap();
        prop_assert_eq!(found(&file.dataset("d").unwrap(), &Selection::all()), model);
    }
}

#[test]
fn a_chunk_that_could_not_be_read_again_is_not_stored() {
    // As above, with values that take next to nothing: whoever reads has no reason to believe that there are so many.
    const LONG: u64 = 17_000_000;
    // A cache of its own, with room enough: in one that others fill, the chunk may have to leave during the write.
    let context = Context::builder().cache_bytes(1 << 30).build().unwrap();
    let store = Arc::new(MemoryStore::default());
    let file = File::options().context(&context).create_in(store).unwrap();
    let tall = file.new_dataset::<u8>().shape([LONG, 1000]).chunk([LONG, 1000]).sparse();
    let tall = tall.create("tall").unwrap();
    tall.write((..100, 3), &[7u8; 100]).unwrap();
    file.flush().unwrap();
    tall.write((.., 3), &vec![7u8; LONG as usize]).unwrap();
    let error = file.flush().unwrap_err().to_string();
    assert!(error.contains("smaller chunks"), "{error}");
    // What was stored is still there, and what is in memory can be made less.
    tall.erase((200.., ..)).unwrap();
    file.flush().unwrap();
    assert_eq!(tall.count_defined(..).unwrap(), 200);
}

#[test]
fn a_long_column_of_a_chunk_is_read_again_though_its_locations_are_a_few_bytes() {
    const LONG: u64 = 17_000_000;
    let context = Context::builder().build().unwrap();
    let store = Arc::new(MemoryStore::default());
    let file = File::options().context(&context).create_in(store).unwrap();
    let all = [("filtered", true), ("plain", false)];
    for &(name, filters) in amount(&all[..1], &all) {
        let builder = file.new_dataset::<u8>().shape([LONG, 1000]).chunk([LONG, 1000]).sparse();
        let builder = if filters { builder } else { builder.no_filters() };
        let tall = builder.create(name).unwrap();
        let value = |row: u64| (row.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8;
        tall.write((.., 3), &(0..LONG).map(value).collect::<Vec<u8>>()).unwrap();
        context.evict().unwrap();
        let stored = tall.structured_chunks().unwrap().list().unwrap();
        assert!(stored[0].sections[0].size < 100, "{stored:?}");
        assert_eq!(tall.count_defined(..).unwrap(), LONG, "{name}");
        context.evict().unwrap();
        let all = tall.read_columns::<u32, u8>(..).unwrap();
        assert_eq!((all.values.len() as u64, all.coordinates[1][7]), (LONG, 3), "{name}");
        let last = LONG - 2..LONG;
        assert_eq!(tall.read::<u8>((last, 3)).unwrap(), [value(LONG - 2), value(LONG - 1)]);
        tall.write_point(&[5, 5], 1u8).unwrap();
        assert_eq!(tall.count_defined((..10, ..)).unwrap(), 11, "{name}");
    }
}
