//! Strings, sequences and values of any datatype in cells that are named one by one, in every layout that
//! holds them, against a dictionary of cells.

use pumice::{Dataset, DatasetBuilder, Datatype, File, Points, Sequences, Strings, Value};
use std::collections::BTreeMap;

const SHAPE: [u64; 2] = [12, 14];

type Model = BTreeMap<[u64; 2], String>;

/// Layouts that hold variable-length data, in the global heap and in structured chunks.
fn layouts(new: &dyn Fn() -> DatasetBuilder) -> Vec<(&'static str, DatasetBuilder)> {
    let new = || new().shape(SHAPE);
    vec![
        ("contiguous", new()),
        ("chunked", new().chunk([5, 6]).deflate(1)),
        ("variable", new().chunk([5, 6]).variable_length()),
        ("sparse", new().chunk([5, 6]).sparse()),
        ("sparse, in one chunk, without filters", new().chunk(SHAPE).sparse().no_filters()),
    ]
}

fn columns(points: &[[u64; 2]]) -> [Vec<u32>; 2] {
    [0, 1].map(|axis| points.iter().map(|point| point[axis] as u32).collect())
}

/// Some points, with text for each; the text of a point that repeats is that of the last.
fn some(seed: u64) -> (Vec<[u64; 2]>, Vec<String>) {
    let points = (0..40).map(|n| [(seed * 5 + n * n) % SHAPE[0], (seed + n * 7) % SHAPE[1]]);
    let texts = (0..40).map(|n| "x".repeat((n * seed % 9) as usize) + &n.to_string());
    (points.collect(), texts.collect())
}

fn check(dataset: &Dataset, model: &Model, name: &str) {
    let cells: Vec<[u64; 2]> =
        (0..SHAPE[0]).flat_map(|row| (0..SHAPE[1]).map(move |column| [row, column])).collect();
    let wanted: Vec<&str> =
        cells.iter().map(|cell| model.get(cell).map_or("", String::as_str)).collect();
    assert_eq!(texts(dataset.read_values(..).unwrap()), wanted, "{name}");
    let [rows, columns] = columns(&cells);
    let points = Points::columns([&rows[..], &columns[..]]).unwrap();
    assert_eq!(texts(dataset.read_values_at(&points).unwrap()), wanted, "{name}");
    if dataset.is_sparse() {
        assert_eq!(dataset.count_defined(..).unwrap(), model.len() as u64, "{name}");
    }
}

/// Strings, lists of bytes and records as text.
fn texts(values: Vec<Value>) -> Vec<String> {
    let text = |value: Value| match value {
        Value::Null => String::new(),
        Value::Text(text) => String::from_utf8(text).unwrap(),
        Value::Sequence(numbers) => {
            let letter = |number: &Value| match number {
                Value::Integer(number) => *number as u8 as char,
                other => panic!("{other:?}"),
            };
            numbers.iter().map(letter).collect()
        }
        other => panic!("{other:?}"),
    };
    let inner = |value: Value| value.member("text").cloned().unwrap_or(value);
    values.into_iter().map(|value| text(inner(value))).collect()
}

/// One way to write texts to points.
type Form = fn(&Dataset, &[[u64; 2]], &[String]);

/// Writes through every form in turn, and compares after each, and after opening the file again.
fn every_form(new: fn(&File) -> DatasetBuilder, forms: &[Form]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("points.h5");
    let file = File::create(&path).unwrap();
    let mut models = Vec::new();
    for (name, builder) in layouts(&|| new(&file)) {
        let dataset = builder.create(name).unwrap();
        let mut model = Model::new();
        for (number, form) in forms.iter().enumerate() {
            let (points, texts) = some(number as u64 + 1);
            form(&dataset, &points, &texts);
            model.extend(points.into_iter().zip(texts));
            check(&dataset, &model, name);
        }
        models.push((name, model));
    }
    file.close().unwrap();
    let file = File::open(&path).unwrap();
    for (name, model) in &models {
        check(&file.dataset(name).unwrap(), model, name);
    }
}

#[test]
fn strings_are_written_in_every_form() {
    every_form(
        |file| file.new_strings(),
        &[
            |dataset, points, texts| {
                let [rows, columns] = columns(points);
                let points = Points::columns([&rows[..], &columns[..]]).unwrap();
                dataset.write_strings_at(&points, texts).unwrap();
            },
            |dataset, points, texts| {
                let points = Points::list(2, points.as_flattened()).unwrap();
                let strings: Strings = texts.iter().collect();
                dataset.write_packed_strings_at(&points, &strings).unwrap();
                let found = dataset.read_strings_at(&points).unwrap();
                assert_eq!(found.len(), texts.len());
            },
            |dataset, points, texts| dataset.write_string_points(points, texts).unwrap(),
            |dataset, points, texts| {
                dataset.write_string_coordinates(points.as_flattened(), texts).unwrap();
            },
            |dataset, points, texts| {
                dataset.write_string_cells(points.iter().copied().zip(texts)).unwrap();
            },
            |dataset, points, texts| {
                for (point, text) in points.iter().zip(texts) {
                    dataset.write_string_point(point, text).unwrap();
                }
            },
        ],
    );
}

fn sequences(texts: &[String]) -> Sequences<u8> {
    texts.iter().map(String::as_bytes).collect()
}

#[test]
fn sequences_are_written_in_every_form_and_converted() {
    every_form(
        |file| file.new_sequences(Datatype::i16_be()),
        &[
            |dataset, points, texts| {
                let [rows, columns] = columns(points);
                let points = Points::columns([&rows[..], &columns[..]]).unwrap();
                dataset.write_sequences_at(&points, &sequences(texts)).unwrap();
                let found = dataset.read_sequences_at::<f32>(&points).unwrap();
                let last = texts.last().unwrap().bytes().map(f32::from);
                assert!(found[texts.len() - 1].iter().copied().eq(last));
            },
            |dataset, points, texts| {
                dataset.write_sequence_points(points, &sequences(texts)).unwrap();
            },
            |dataset, points, texts| {
                let sequences = &sequences(texts);
                dataset.write_sequence_coordinates(points.as_flattened(), sequences).unwrap();
            },
            |dataset, points, texts| {
                let wide = |text: &String| text.bytes().map(i64::from).collect::<Vec<_>>();
                let cells = points.iter().copied().zip(texts.iter().map(wide));
                dataset.write_sequence_cells(cells).unwrap();
            },
            |dataset, points, texts| {
                for (point, text) in points.iter().zip(texts) {
                    dataset.write_sequence_point(point, text.as_bytes()).unwrap();
                }
            },
        ],
    );
}

fn record(text: &str) -> Value {
    let id = ("id".into(), Value::Integer(text.len() as i128));
    Value::Compound(vec![id, ("text".into(), text.into())])
}

#[test]
fn records_with_strings_are_written_in_every_form() {
    every_form(
        |file| {
            let fields = [("id", Datatype::i32_le()), ("text", Datatype::varlen_string(16))];
            file.new_dataset_of(Datatype::compound(fields))
        },
        &[
            |dataset, points, texts| {
                let values: Vec<Value> = texts.iter().map(|text| record(text)).collect();
                let points = Points::list(2, points.as_flattened()).unwrap();
                dataset.write_values_at(&points, &values).unwrap();
            },
            |dataset, points, texts| {
                let values: Vec<Value> = texts.iter().map(|text| record(text)).collect();
                dataset.write_value_points(points, &values).unwrap();
            },
            |dataset, points, texts| {
                let values: Vec<Value> = texts.iter().map(|text| record(text)).collect();
                dataset.write_value_coordinates(points.as_flattened(), &values).unwrap();
            },
            |dataset, points, texts| {
                let cells = points.iter().copied().zip(texts.iter().map(|text| record(text)));
                dataset.write_value_cells(cells).unwrap();
            },
            |dataset, points, texts| {
                for (point, text) in points.iter().zip(texts) {
                    dataset.write_value_point(point, &record(text)).unwrap();
                }
            },
        ],
    );
}

#[test]
fn one_point_as_often_as_a_chunk_has_cells_leaves_the_others() {
    let file = File::in_memory().unwrap();
    for (name, builder) in layouts(&|| file.new_strings()) {
        let dataset = builder.create(name).unwrap();
        let all: Vec<String> = (0..12 * 14).map(|n| format!("cell {n}")).collect();
        dataset.write_strings(.., &all).unwrap();
        let words: Vec<String> = (0..30).map(|n| format!("word {n}")).collect();
        dataset.write_string_points(&[[1, 2]; 30], &words).unwrap();
        let mut wanted = all;
        wanted[14 + 2] = "word 29".into();
        assert!(dataset.read_strings(..).unwrap().iter().eq(wanted.iter().map(String::as_bytes)));
    }
}

#[test]
fn text_that_is_replaced_within_one_write_takes_no_space_and_frees_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("repeated.h5");
    let file = File::create(&path).unwrap();
    let dataset = file.new_strings().shape([8]).create("d").unwrap();
    dataset.write_strings(.., &["neighbour"; 8]).unwrap();
    file.flush().unwrap();
    let mut lengths = Vec::new();
    for round in 0..40 {
        let long = |n: u32| format!("{round} {n} ").repeat(100);
        let texts: Vec<String> = (0..20).map(long).collect();
        dataset.write_string_points(&[[3]; 20], &texts).unwrap();
        dataset.write_string_point(&[5], "other").unwrap();
        file.flush().unwrap();
        let found = dataset.read_strings(..).unwrap();
        let mut wanted = ["neighbour"; 8].map(String::from);
        (wanted[3], wanted[5]) = (long(19), "other".into());
        assert_eq!(found.to_vec(), wanted, "round {round}");
        lengths.push(std::fs::metadata(&path).unwrap().len());
    }
    assert_eq!(lengths[10], lengths[39], "{lengths:?}");
}

/// Many in one chunk, in no order, against a dictionary: they wait in the chunk's log.
#[test]
fn cells_that_come_one_by_one_are_those_of_a_dictionary() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.h5");
    let file = File::create(&path).unwrap();
    let new = || file.new_strings().shape([1000, 1000]);
    let sparse = new().sparse().create("sparse").unwrap();
    assert_eq!(sparse.chunk(), Some(vec![1000, 1000]), "all in one chunk by default");
    let mut model = BTreeMap::new();
    let mut state = 1u64;
    for step in 0..30_000u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let point = [(state >> 33) % 200 * 5, (state >> 45) % 100 * 7];
        if step % 7 == 6 {
            sparse.erase_at(&Points::list(2, &point).unwrap()).unwrap();
            model.remove(&point);
        } else {
            let text = format!("{step}");
            sparse.write_string_point(&point, &text).unwrap();
            model.insert(point, text);
        }
    }
    let compare = |dataset: &Dataset| {
        let (cells, texts) = dataset.read_defined_strings(..).unwrap();
        assert!(cells.chunks(2).eq(model.keys().map(|point| &point[..])));
        assert!(texts.iter().eq(model.values().map(String::as_bytes)));
    };
    compare(&sparse);
    drop(sparse);
    file.close().unwrap();
    compare(&File::open(&path).unwrap().dataset("sparse").unwrap());
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let file = File::in_memory().unwrap();
    for (name, builder) in layouts(&|| file.new_strings()) {
        let dataset = builder.create(name).unwrap();
        dataset.write_string_point(&[1, 2], "kept").unwrap();
        assert!(dataset.write_string_point(&[1], "rank").is_err(), "{name}");
        assert!(dataset.write_string_point(&[1, 14], "outside").is_err(), "{name}");
        assert!(dataset.write_string_point(&[1, 3], "nul\0nul").is_err(), "{name}");
        assert!(dataset.write_string_points(&[[1, 2]], &["two", "for one"]).is_err(), "{name}");
        assert!(dataset.write_string_points(&[[1, 2], [1, 3]], &["one"]).is_err(), "{name}");
        assert!(dataset.write_sequence_point(&[1, 2], &[1.5f32]).is_err(), "{name}");
        assert!(dataset.write_value_point(&[1, 2], &Value::Integer(1)).is_err(), "{name}");
        let nothing: [([u64; 2], &str); 0] = [];
        dataset.write_string_cells(nothing).unwrap();
        check(&dataset, &Model::from([([1, 2], "kept".into())]), name);
    }
    let numbers = file.new_dataset::<i32>().shape(SHAPE).sparse().create("numbers").unwrap();
    assert!(numbers.write_string_point(&[1, 2], "text").is_err());
    assert!(numbers.write_sequence_point(&[1, 2], &[1]).is_err());
    numbers.write_value_point(&[1, 2], &Value::Integer(7)).unwrap();
    assert_eq!(numbers.read::<i32>([1, 2]).unwrap(), [7]);
}

#[test]
fn strings_of_a_fixed_length_are_written_as_they_are_read() {
    use pumice::types::{CharacterSet, FixedString, StringPadding};
    use pumice::{Datatype, File, Points};
    let file = File::in_memory().unwrap();
    for (padding, longest) in [
        (StringPadding::NullPad, "basalt"),
        (StringPadding::SpacePad, "basalt"),
        (StringPadding::NullTerminate, "slate"),
    ] {
        let string = FixedString { size: 6, padding, charset: CharacterSet::Ascii };
        for sparse in [false, true] {
            let name = format!("{padding:?} {sparse}");
            let builder = file.new_dataset_of(Datatype::String(string.clone())).shape([3, 4]);
            let builder = if sparse { builder.chunk([2, 2]).sparse() } else { builder };
            let rocks = builder.create(&name).unwrap();
            rocks.write_strings((1, 0..2), &[longest, ""]).unwrap();
            assert_eq!(rocks.read_strings((1, 0..2)).unwrap(), [longest, ""], "{name}");
            let points = Points::list(2, &[2, 3, 0, 0]).unwrap();
            rocks
                .write_strings_at(&points, &["tuff", "gneiss".get(..longest.len()).unwrap()])
                .unwrap();
            rocks.write_string_point(&[2, 0], "opal").unwrap();
            assert_eq!(rocks.read_strings_at(&points).unwrap().to_vec()[0], "tuff", "{name}");
            assert_eq!(rocks.read_strings((2, 0)).unwrap(), ["opal"], "{name}");
            if sparse {
                assert_eq!(rocks.count_defined(..).unwrap(), 5, "{name}");
            }
            let long = format!("{longest}!");
            let error = rocks.write_strings((1, 0..2), &["a", &long]).unwrap_err().to_string();
            let wanted = format!("\"{long}\" has {} byte(s)", long.len());
            assert!(error.contains(&wanted), "{error}");
            assert_eq!(rocks.read_strings((1, 0)).unwrap(), [longest], "nothing was written");
            assert!(rocks.write_strings((1, 0..2), &["one"]).is_err(), "too few");
        }
    }
    let numbers = file.new_dataset::<u8>().shape([2]).create("numbers").unwrap();
    assert!(numbers.write_strings(.., &["a", "b"]).is_err());
}
