//! Every cell of a dataset that is not sparse is defined, whether it was ever written or not, and whoever asks:
//! all questions about defined cells give as many cells, with the values that a read gives.

use pumice::{Dataset, DatasetBuilder, Datatype, File, Lines, Selection, Value};

const SHAPE: [u64; 2] = [5, 4];

/// The result of reading each of the cells, in the order of the coordinates.
fn values_at(dataset: &Dataset, coordinates: &[u64]) -> Vec<Value> {
    let rank = dataset.shape().len();
    let points = Selection::points(rank, coordinates.to_vec()).unwrap();
    dataset.read_values(points).unwrap()
}

fn rows(coordinates: &[u64], rank: usize) -> Vec<Vec<u64>> {
    let mut rows: Vec<_> = coordinates.chunks_exact(rank).map(<[u64]>::to_vec).collect();
    rows.sort();
    rows
}

/// All questions about numbers, of the whole and of some rows.
fn check_numbers(name: &str, dataset: &Dataset) {
    for selection in [
        Selection::all(),
        Selection::block(&[1, 1], &[3, 3]).unwrap(),
        Selection::points(2, vec![4, 3, 0, 0, 2, 2]).unwrap(),
    ] {
        let count = selection.count(&SHAPE);
        let points: Vec<Vec<u64>> = {
            let mut points = Vec::new();
            selection.for_each_block(&SHAPE, |first, last| {
                for row in first[0]..=last[0] {
                    points.extend((first[1]..=last[1]).map(|column| vec![row, column]));
                }
            });
            points.sort();
            points
        };
        assert_eq!(points.len() as u64, count);
        let all = |what: &str, coordinates: &[u64], values: &[i64]| {
            assert_eq!(rows(coordinates, 2), points, "{name}: {what}");
            let read: Vec<i64> = values_at(dataset, coordinates)
                .into_iter()
                .map(|value| match value {
                    Value::Integer(value) => value as i64,
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(values, read, "{name}: {what}");
        };
        assert_eq!(dataset.count_defined(&selection).unwrap(), count, "{name}");
        assert!(dataset.defined(&selection).unwrap().same_cells(&selection, &SHAPE).unwrap());
        let found = dataset.read_defined::<i64>(&selection).unwrap();
        all("read_defined", &found.coordinates, &found.values);
        let found = dataset.read_columns::<u64, i64>(&selection).unwrap();
        let joined = |columns: &[Vec<u64>]| -> Vec<u64> {
            (0..columns[0].len()).flat_map(|at| [columns[0][at], columns[1][at]]).collect()
        };
        all("read_columns", &joined(&found.coordinates), &found.values);
        let columns = dataset.defined_columns::<u64>(&selection).unwrap();
        assert_eq!(joined(&columns), joined(&found.coordinates), "{name}: defined_columns");
        let found = dataset.read_defined_values(&selection).unwrap();
        assert_eq!(found.values, values_at(dataset, &found.coordinates), "{name}");
        assert_eq!(rows(&found.coordinates, 2), points, "{name}: read_defined_values");
        let (coordinates, heaped) = dataset.read_defined_heaped(&selection).unwrap();
        let values = heaped.values(dataset.datatype()).unwrap();
        assert_eq!(values, values_at(dataset, &coordinates), "{name}: read_defined_heaped");
        assert_eq!(rows(&coordinates, 2), points, "{name}: read_defined_heaped");
    }
    assert_eq!(dataset.read_coo::<i64>().unwrap().len(), 20, "{name}");
    assert_eq!(dataset.read_compressed::<i64>(Lines::Rows).unwrap().len(), 20, "{name}");
}

type Change = fn(DatasetBuilder) -> DatasetBuilder;

#[test]
fn all_cells_of_numbers_are_defined_in_every_layout() {
    let file = File::in_memory().unwrap();
    let layouts: [(&str, Change); 7] = [
        ("contiguous", |new| new),
        ("compact", |new| new.compact()),
        ("chunked", |new| new.chunk([2, 3])),
        ("with a fill value", |new| new.chunk([2, 3]).fill_value(9)),
        ("in one piece with a fill value", |new| new.fill_value(9)),
        ("that can grow", |new| new.chunk([2, 3]).max_shape([None, None])),
        ("with filters", |new| new.chunk([2, 3]).deflate(1).max_shape([None, Some(4)])),
    ];
    for (name, change) in layouts {
        let dataset = change(file.new_dataset::<i32>().shape(SHAPE)).create(name).unwrap();
        check_numbers(&format!("{name}, never written"), &dataset);
        dataset.write((0, 1), &[5]).unwrap();
        check_numbers(name, &dataset);
        file.flush().unwrap();
        check_numbers(&format!("{name}, stored"), &dataset);
    }
    let whole = Selection::block(&[0, 0], &[3, 4]).unwrap();
    let part = Selection::block(&[1, 0], &[3, 4]).unwrap();
    let new = file.new_dataset::<i32>().shape(SHAPE).fill_value(-1);
    let views = new.virtual_part(part, ".", "chunked", whole).create("virtual").unwrap();
    check_numbers("virtual", &views);
}

/// More chunks than are visited one by one where only what is stored counts.
#[test]
fn many_chunks_that_were_never_written_are_defined() {
    let file = File::in_memory().unwrap();
    let new = file.new_dataset::<u8>().shape([5000]).chunk([2]).fill_value(3u8);
    let dataset = new.create("many").unwrap();
    dataset.write(4000, &[1u8]).unwrap();
    let found = dataset.read_columns::<u32, u8>(..).unwrap();
    assert_eq!(found.coordinates[0], (0..5000).collect::<Vec<u32>>());
    assert_eq!(found.values.iter().filter(|&&value| value == 3).count(), 4999);
    assert_eq!(dataset.read_defined_values(1..4999).unwrap().len(), 4998);
}

#[test]
fn all_strings_and_sequences_are_defined_in_every_layout() {
    let file = File::in_memory().unwrap();
    let layouts: [(&str, Change); 3] = [
        ("contiguous", |new| new),
        ("chunked", |new| new.chunk([2])),
        ("structured", |new| new.chunk([2]).variable_length()),
    ];
    for (name, change) in layouts {
        for fill in [None, Some("none")] {
            let new = change(file.new_strings().shape([5]));
            let new = fill.iter().fold(new, |new, text| new.fill(Value::from(*text)));
            let strings = new.create(&format!("{name} {fill:?}")).unwrap();
            let mut expected = [fill.unwrap_or(""); 5];
            let check = |expected: &[&str]| {
                let (cells, found) = strings.read_defined_strings(..).unwrap();
                assert_eq!(cells, [0, 1, 2, 3, 4], "{name} {fill:?}");
                assert_eq!(found, expected.to_vec(), "{name} {fill:?}");
                assert_eq!(strings.count_defined(..).unwrap(), 5);
            };
            check(&expected);
            strings.write_strings(1..2, &["x"]).unwrap();
            expected[1] = "x";
            check(&expected);
            file.flush().unwrap();
            check(&expected);
        }
        let new = change(file.new_sequences(Datatype::i32_le()).shape([5]));
        let lists = new.create(&format!("lists {name}")).unwrap();
        let (cells, found) = lists.read_defined_sequences::<i32>(..).unwrap();
        assert_eq!((cells.as_slice(), found.len()), (&[0, 1, 2, 3, 4][..], 5), "{name}");
    }
}

/// Each of several cells has the whole of a fill value that refers to what refers further.
#[test]
fn a_nested_fill_value_stands_in_every_cell() {
    let file = File::in_memory().unwrap();
    let nested = Datatype::varlen(Datatype::varlen_string(16), 16);
    let fill = Value::Sequence(vec!["sea".into(), "sun".into()]);
    let new = file.new_dataset_of(nested).shape([4]).chunk([2]).variable_length();
    let dataset = new.fill(fill.clone()).create("nested").unwrap();
    let other = Value::Sequence(vec!["sand".into()]);
    dataset.write_values(1, std::slice::from_ref(&other)).unwrap();
    let found = dataset.read_defined_values(..).unwrap();
    assert_eq!(found.coordinates, [0, 1, 2, 3]);
    assert_eq!(found.values, [fill.clone(), other, fill.clone(), fill]);
}

/// A cell that a list of points has twice is one cell, of whatever layout it is.
#[test]
fn a_point_that_repeats_counts_once_in_every_layout() {
    let file = File::in_memory().unwrap();
    let layouts: [(&str, Change); 4] = [
        ("contiguous", |new| new),
        ("chunked", |new| new.chunk([4])),
        ("in one chunk", |new| new.chunk([10])),
        ("sparse", |new| new.chunk([4]).sparse()),
    ];
    let points = Selection::points(1, vec![9, 1, 9, 5]).unwrap();
    for (name, change) in layouts {
        let dataset = change(file.new_dataset::<i32>().shape([10])).create(name).unwrap();
        dataset.write(.., &(0..10).collect::<Vec<i32>>()).unwrap();
        assert_eq!(dataset.read::<i32>(&points).unwrap(), [9, 1, 9, 5], "{name}");
        assert_eq!(dataset.count_defined(&points).unwrap(), 3, "{name}");
        assert_eq!(dataset.defined(&points).unwrap().count(&[10]), 3, "{name}");
        let mut found = dataset.read_defined::<i32>(&points).unwrap();
        if !dataset.is_sparse() {
            assert_eq!(found.coordinates, [9, 1, 5], "{name}: in the order of a read");
            found.coordinates.sort_unstable();
            assert_eq!(found.values, [9, 1, 5], "{name}");
            found.values.sort_unstable();
        }
        assert_eq!((found.coordinates, found.values), (vec![1, 5, 9], vec![1, 5, 9]), "{name}");
        let found = dataset.read_columns::<u64, i32>(&points).unwrap();
        assert_eq!(
            (found.coordinates, found.values),
            (vec![vec![1, 5, 9]], vec![1, 5, 9]),
            "{name}"
        );
        assert_eq!(dataset.read_defined_bytes(&points).unwrap().values.len(), 12, "{name}");
        assert_eq!(dataset.read_defined_values(&points).unwrap().coordinates, [1, 5, 9], "{name}");
        assert!(dataset.count_defined(vec![[3], [10]]).is_err(), "{name}: outside");
    }
}
