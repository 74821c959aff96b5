//! h5import on what h5dump prints: sparse stays sparse, defined stays defined.

use crate::support::{Place, Run};
use pumice::types::{ByteOrder, Enumeration, Float, Integer, Value};
use pumice::{Dataset, Datatype, File, Selection};

/// A folder in which the tools have their names.
fn tools() -> Place {
    let place = Place::new();
    place.succeed("install-links bin");
    place
}

fn tool(place: &Place, line: &str) -> Run {
    let mut words = line.split_whitespace();
    let name = words.next().expect("a tool");
    place.command(place.path("bin").join(name)).args(words).output().expect("run").into()
}

/// What a dataset is: everything that a round trip keeps.
fn described(dataset: &Dataset) -> String {
    let creation = dataset.creation().unwrap();
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        dataset.is_sparse(),
        dataset.shape(),
        dataset.max_shape(),
        dataset.datatype(),
        dataset.chunk(),
        creation.fill,
        dataset.section_filters()
    )
}

/// The defined cells in row-major order, with their values.
fn cells(dataset: &Dataset) -> Vec<(Vec<u64>, Value)> {
    let found = dataset.read_defined_values(..).unwrap();
    let mut cells: Vec<_> = found.iter().map(|(at, value)| (at.to_vec(), value.clone())).collect();
    cells.sort_by(|one, other| one.0.cmp(&other.0));
    cells
}

fn text(bytes: &str) -> Value {
    Value::Text(bytes.into())
}

/// Types of elements, a fill value of each, and a value for a number.
fn kinds() -> Vec<(&'static str, Datatype, Value, fn(i128) -> Value)> {
    let pair = Datatype::compound([
        ("n", Datatype::Integer(Integer::new(2, ByteOrder::Little, true))),
        ("x", Datatype::Float(Float::double(ByteOrder::Big))),
    ]);
    let fill_pair = Value::Compound(vec![
        ("n".into(), Value::Integer(-3)),
        ("x".into(), Value::Float(0.25)),
    ]);
    let base = Integer::new(1, ByteOrder::Little, true);
    let names = ["a", "b", "c", "d"].map(String::from).to_vec();
    let letters = Datatype::Enum(Enumeration { base, names, values: vec![0, 1, 2, 3] });
    let whole = |bytes: u32, order: ByteOrder, signed: bool| {
        Datatype::Integer(Integer::new(bytes, order, signed))
    };
    let (little, big) = (ByteOrder::Little, ByteOrder::Big);
    vec![
        ("i8", whole(1, little, true), Value::Integer(-1), |n| Value::Integer(n % 100 - 40)),
        ("u16", whole(2, big, false), Value::Integer(9), |n| Value::Integer(n * 600)),
        ("i32", whole(4, big, true), Value::Integer(7), |n| Value::Integer(-n * 1_000_000)),
        ("u64", whole(8, little, false), Value::Integer(7), |n| {
            Value::Integer(i128::from(u64::MAX) - n)
        }),
        ("f32", Datatype::Float(Float::single(big)), Value::Float(-0.5), |n| Value::Float(n as f64 / 8.0)),
        ("f64", Datatype::Float(Float::double(little)), Value::Float(1e30), |n| Value::Float(-n as f64 / 4.0)),
        ("pair", pair, fill_pair, |n| {
            Value::Compound(vec![
                ("n".into(), Value::Integer(n)),
                ("x".into(), Value::Float(n as f64)),
            ])
        }),
        ("enum", letters, Value::Enum(Some("b".into()), 1), |n| {
            let n = n % 4;
            Value::Enum(Some(["a", "b", "c", "d"][n as usize].into()), n)
        }),
        ("fixed", Datatype::fixed_string(5), text("none"), |n| text(&format!("t{}", n % 100))),
        (
            "list",
            Datatype::array(whole(4, little, true), vec![2]),
            Value::Array(vec![Value::Integer(1), Value::Integer(2)]),
            |n| Value::Array(vec![Value::Integer(n), Value::Integer(0)]),
        ),
        ("text", Datatype::varlen_string(16), text("none"), |n| text(&format!("a \"{n}\" b"))),
        (
            "sequence",
            Datatype::varlen(whole(4, little, true), 16),
            Value::Sequence(vec![Value::Integer(5)]),
            |n| Value::Sequence((0..n % 4).map(Value::Integer).collect()),
        ),
    ]
}

/// Shapes, the largest ones, and how much of them is defined, by the number of a cell.
fn shapes() -> Vec<(Vec<u64>, Vec<Option<u64>>, fn(u64) -> bool)> {
    vec![
        (vec![40], vec![None], |cell| cell % 7 < 3),
        (vec![13, 10], vec![Some(13), Some(10)], |cell| cell % 11 == 0 || (22..48).contains(&cell)),
        (vec![4, 5, 6], vec![None, Some(5), Some(9)], |cell| cell % 3 != 1),
        (vec![2, 3, 4, 5], vec![Some(2), Some(3), Some(4), Some(5)], |cell| cell / 20 % 2 == 1),
        (vec![6, 6], vec![Some(6), Some(6)], |_| true),
        (vec![6, 6], vec![Some(6), Some(6)], |_| false),
    ]
}

/// A dataset of every fourth value equal to the fill value, which is defined all the same.
fn make(file: &File, kind: usize, shape: usize, own_fill: bool) -> Dataset {
    let (name, datatype, fill, value) = kinds().swap_remove(kind);
    let (dims, max, defined) = shapes().swap_remove(shape);
    let builder = file.new_dataset_of(datatype).shape(dims.clone()).max_shape(max).sparse();
    let builder = builder.chunk(dims.iter().map(|side| side.div_ceil(2)).collect::<Vec<_>>());
    let builder = if own_fill { builder.fill(fill.clone()) } else { builder };
    let dataset = builder.create(name).unwrap();
    let (mut points, mut values) = (Vec::new(), Vec::new());
    for cell in (0..dims.iter().product()).filter(|&cell| defined(cell)) {
        let mut rest = cell;
        let mut place: Vec<u64> = dims
            .iter()
            .rev()
            .map(|side| {
                let at = rest % side;
                rest /= side;
                at
            })
            .collect();
        place.reverse();
        points.extend(place);
        let number = i128::from(values.len() as u64 + 1);
        values.push(if own_fill && number % 4 == 0 { fill.clone() } else { value(number) });
    }
    dataset.write_values(Selection::points(dims.len(), points).unwrap(), &values).unwrap();
    dataset
}

/// Options of h5dump, the file with the values, and whether the text tells how the dataset is stored.
const FORMS: [(&str, &str, bool); 8] = [
    ("-p -o values", "values", true),
    ("-o values", "values", false),
    ("-p --sparse -o values", "values", true),
    ("-p -y --sparse -o values", "values", true),
    ("-p", "description", true),
    ("--sparse", "description", false),
    ("-p --sparse", "description", true),
    // ("-p -b -o values", "values", true),
    // ("-p -b LE --sparse -o values", "values", true),
    ("-p -O values", "description", true),
];

/// Dumps a dataset and makes it again.
fn round_trip(place: &Place, name: &str, options: &str, values: &str) -> Run {
    for left in ["values", "description", "new.h5"] {
        let _ = std::fs::remove_file(place.path(left));
    }
    let run = tool(place, &format!("h5dump -d {name} {options} old.h5"));
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{options}");
    place.write("description", run.out);
    // With -O, the description is in the file, the values are printed.
    match options.contains("-O") {
        true => tool(place, "h5import description -c values -o new.h5"),
        false => tool(place, &format!("h5import {values} -c description -o new.h5")),
    }
}

#[test]
fn sparse_stays_sparse_and_defined_stays_defined() {
    let place = tools();
    for kind in 0..kinds().len() {
        for shape in 0..shapes().len() {
            let own_fill = (kind + shape) % 2 == 0;
            let old = File::create(place.path("old.h5")).unwrap();
            let dataset = make(&old, kind, shape, own_fill);
            let (name, expected) = (dataset.path().to_owned(), cells(&dataset));
            let told = described(&dataset);
            let varies = dataset.datatype().has_varlen();
            drop(dataset);
            old.close().unwrap();
            for (options, values, properties) in FORMS {
                if options.contains("-b") && varies {
                    continue;
                }
                let run = round_trip(&place, &name, options, values);
                let what = format!("{name}, shape {shape}, {options}");
                assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{what}");
                let new = File::open(place.path("new.h5")).unwrap();
                let made = new.dataset(&name).unwrap();
                assert!(made.is_sparse(), "{what}");
                if properties {
                    assert_eq!(described(&made), told, "{what}");
                }
                assert_eq!(cells(&made), expected, "{what}");
            }
        }
    }
}
