//! Members of fixed size of compounds with strings and sequences, of the cells that are defined: whoever reads these
//! reads them in every layout, and finds what a map of cells says.

use pumice::{
    Context, Dataset, DatasetBuilder, Datatype, File, H5Type, Lines, MemoryStore, Selection, Value,
};
use std::collections::BTreeMap;
use std::sync::Arc;

const SHAPE: [u64; 2] = [6, 7];

#[derive(H5Type, Clone, Copy, Debug, PartialEq)]
#[repr(C)]
#[h5(plain)]
struct Part {
    weight: f64,
}

/// What is read: in another order and of other types than in the file, some of it beside strings in an array.
#[derive(H5Type, Clone, Copy, Debug, PartialEq)]
#[repr(C)]
#[h5(plain)]
struct Row {
    parts: [Part; 2],
    size: i64,
}

fn datatype() -> Datatype {
    let part = [("label", Datatype::varlen_string(16)), ("weight", Datatype::f32_le())];
    Datatype::compound([
        ("name", Datatype::varlen_string(16)),
        ("size", Datatype::i32_le()),
        ("list", Datatype::varlen(Datatype::i16_le(), 16)),
        ("parts", Datatype::array(Datatype::compound(part), [2])),
    ])
}

fn compound<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Compound(members.map(|(name, value)| (name.into(), value)).into())
}

/// An element of the file, with much beside what is read.
fn value(number: i32) -> Value {
    let part = |label: &str, weight: f64| {
        compound([
            ("label", format!("{label} {number}").as_str().into()),
            ("weight", Value::Float(weight)),
        ])
    };
    let list = (0..number % 5).map(|item| Value::Integer(item.into())).collect();
    let weight = f64::from(number) / 4.0;
    compound([
        ("name", "x".repeat(number as usize % 9).as_str().into()),
        ("size", Value::Integer(number.into())),
        ("list", Value::Sequence(list)),
        ("parts", Value::Array(vec![part("left", weight), part("right", -weight)])),
    ])
}

/// The members to read.
fn row(number: i32) -> Row {
    let weight = f64::from(number) / 4.0;
    Row { parts: [Part { weight }, Part { weight: -weight }], size: number.into() }
}

type Cells = BTreeMap<[u64; 2], i32>;
type Change = fn(DatasetBuilder) -> DatasetBuilder;
type Found = Vec<([u64; 2], Row)>;

fn sorted(mut found: Found) -> Found {
    found.sort_by_key(|(point, _)| *point);
    found
}

fn expected(cells: &Cells, asked: impl Fn([u64; 2]) -> bool) -> Found {
    let cells = cells.iter().filter(|(point, _)| asked(**point));
    cells.map(|(&point, &number)| (point, row(number))).collect()
}

/// Compares every reader of defined cells with the cells that are defined.
fn check(name: &str, dataset: &Dataset, cells: &Cells) {
    let points = [[5, 6], [0, 1], [3, 3], [2, 2], [4, 0]];
    type Asked = fn([u64; 2]) -> bool;
    let selections: [(Selection, Asked); 5] = [
        (Selection::all(), |_| true),
        (Selection::block(&[1, 2], &[4, 3]).unwrap(), |[i, j]| {
            (1..5).contains(&i) && (2..5).contains(&j)
        }),
        (Selection::block(&[3, 4], &[3, 3]).unwrap(), |[i, j]| i >= 3 && j >= 4),
        (Selection::hyperslab(&[0, 1], &[2, 3], &[3, 2], &[1, 2]).unwrap(), |[i, j]| {
            i % 2 == 0 && [1, 2, 4, 5].contains(&j)
        }),
        (Selection::points(2, points.concat()).unwrap(), |point| {
            [[5, 6], [0, 1], [3, 3], [2, 2], [4, 0]].contains(&point)
        }),
    ];
    for (number, (selection, asked)) in selections.iter().enumerate() {
        let expected = expected(cells, asked);
        let found = dataset.read_defined::<Row>(selection).unwrap();
        let places = found.coordinates.as_chunks().0.iter().copied();
        let found = places.zip(found.values).collect();
        assert_eq!(sorted(found), expected, "{name}, {number}: read_defined");
        let found = dataset.read_columns::<u32, Row>(selection).unwrap();
        let [first, second] = &found.coordinates[..] else { panic!("not two columns") };
        let places = first.iter().zip(second).map(|(&i, &j)| [i.into(), j.into()]);
        let found = places.zip(found.values).collect();
        assert_eq!(sorted(found), expected, "{name}, {number}: read_columns");
    }
    let expected = expected(cells, |_| true);
    let whole = dataset.read_coo::<Row>().unwrap();
    let blocks = dataset.coo_blocks::<Row>().unwrap().map(Result::unwrap);
    let (mut listed, mut collected) = (Vec::new(), Vec::new());
    for (coo, to) in blocks.map(|coo| (coo, true)).chain([(whole, false)]) {
        let places = coo.columns[0].iter().zip(&coo.columns[1]).map(|(&i, &j)| [i, j]);
        let to = if to { &mut listed } else { &mut collected };
        to.extend(places.zip(coo.values));
    }
    assert_eq!(sorted(listed), expected, "{name}: coo_blocks");
    assert_eq!(collected, expected, "{name}: read_coo");
    for lines in [Lines::Rows, Lines::Columns] {
        let whole = dataset.read_compressed::<Row>(lines).unwrap();
        let blocks = dataset.compressed_blocks::<Row>(lines).unwrap();
        let values = blocks.flat_map(|block| block.unwrap().values).collect::<Vec<_>>();
        assert_eq!(values, whole.values, "{name}: compressed_blocks");
        let mut expected = expected.clone();
        if lines == Lines::Columns {
            expected.sort_by_key(|([i, j], _)| [*j, *i]);
        }
        let rows: Vec<Row> = expected.iter().map(|(_, row)| *row).collect();
        assert_eq!(whole.values, rows, "{name}: read_compressed");
    }
}

#[test]
fn members_of_fixed_size_of_defined_cells_are_read_in_every_layout() {
    let context = Context::builder().build().unwrap();
    let store = Arc::new(MemoryStore::default());
    let file = File::options().context(&context).create_in(store.clone()).unwrap();
    let layouts: [(&str, Change); 5] = [
        ("contiguous", |new| new),
        ("chunked", |new| new.chunk([3, 4])),
        ("structured", |new| new.chunk([3, 4]).variable_length()),
        ("sparse", |new| new.chunk([3, 4]).sparse()),
        ("sparse in one chunk", |new| new.chunk([6, 7]).sparse()),
    ];
    let mut model = BTreeMap::new();
    for (name, change) in layouts {
        for fill in [None, Some(77)] {
            let new = change(file.new_dataset_of(datatype()).shape(SHAPE));
            let new = fill.iter().fold(new, |new, &fill| new.fill(value(fill)));
            let path = format!("{name}, fill {fill:?}");
            let dataset = new.create(&path).unwrap();
            let mut cells = Cells::new();
            if !dataset.is_sparse() {
                let all = (0..6).flat_map(|i| (0..7).map(move |j| [i, j]));
                cells.extend(all.map(|point| (point, fill.unwrap_or(0))));
            }
            check(&format!("{path}, never written"), &dataset, &cells);
            for number in 1..15u64 {
                let point = [number * 5 % 6, number * 3 % 7];
                let number = number as i32;
                put(&dataset, point, number);
                cells.insert(point, number);
            }
            check(&path, &dataset, &cells);
            if dataset.is_sparse() {
                dataset.erase((3.., 2..4)).unwrap();
                cells.retain(|[i, j], _| *i < 3 || !(2..4).contains(j));
                check(&format!("{path}, erased"), &dataset, &cells);
            }
            model.insert(path, cells);
        }
    }
    file.close().unwrap();
    let file = File::options().context(&context).open_in(store).unwrap();
    for (path, cells) in &model {
        check(&format!("{path}, reopened"), &file.dataset(path).unwrap(), cells);
    }
}

fn put(dataset: &Dataset, point: [u64; 2], number: i32) {
    let place = Selection::points(2, point.to_vec()).unwrap();
    dataset.write_values(&place, &[value(number)]).unwrap();
}

#[test]
fn virtual_datasets_have_members_of_fixed_size_of_their_sources() {
    let file = File::in_memory().unwrap();
    let layouts: [(&str, Change); 3] = [
        ("chunked", |new| new.chunk([3, 4])),
        ("structured", |new| new.chunk([3, 4]).variable_length()),
        ("sparse", |new| new.chunk([3, 4]).sparse()),
    ];
    for (name, change) in layouts {
        let source = change(file.new_dataset_of(datatype()).shape(SHAPE)).create(name).unwrap();
        put(&source, [2, 3], 9);
        let part = Selection::block(&[0, 0], &[4, 7]).unwrap();
        let new = file.new_dataset_of(datatype()).shape(SHAPE).fill(value(12));
        let view = new.virtual_part(part.clone(), ".", name, part);
        let view = view.create(&format!("view of {name}")).unwrap();
        let all = (0..6).flat_map(|i| (0..7).map(move |j| [i, j]));
        let mut cells: Cells = all.map(|[i, j]| ([i, j], if i < 4 { 0 } else { 12 })).collect();
        cells.insert([2, 3], 9);
        check(&format!("view of {name}"), &view, &cells);
    }
}

#[test]
fn what_has_no_members_of_fixed_size_is_refused() {
    let file = File::in_memory().unwrap();
    let strings = file.new_strings().shape([4]).sparse().create("strings").unwrap();
    strings.write_strings(1..3, &["a", "b"]).unwrap();
    assert!(strings.read_defined::<i32>(..).is_err());
    assert!(strings.read_columns::<u32, i32>(..).is_err());
    let rows = file.new_dataset_of(datatype()).shape([4]).sparse().create("rows").unwrap();
    rows.write_values(1..2, &[value(3)]).unwrap();
    let error = rows.read_defined_bytes(..).unwrap_err().to_string();
    assert!(error.contains("members of fixed size alone"), "{error}");
}
