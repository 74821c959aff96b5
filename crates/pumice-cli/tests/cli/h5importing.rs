//! h5import on what h5dump prints: sparse stays sparse, defined stays defined.

use crate::support::{Place, Run};
use pumice::types::{ByteOrder, Enumeration, Float, Integer, Value};
use pumice::{Dataset, Datatype, File, FilterSpec, LibraryVersion, Selection};

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

/// The properties of a dataset that a round trip keeps.
fn described(dataset: &Dataset) -> String {
    let fill = match dataset.datatype().has_varlen() {
        // Where it is differs from file to file.
        true => format!("{:?}", dataset.fill_heaped().unwrap().map(|fill| fill.heap)),
        false => format!("{:?}", dataset.creation().unwrap().fill),
    };
    format!(
        "{:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        dataset.is_sparse(),
        dataset.shape(),
        dataset.max_shape(),
        dataset.datatype(),
        dataset.chunk(),
        fill,
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

/// A name, a type of elements, a fill value, and a value for a number.
type Kind = (&'static str, Datatype, Value, fn(i128) -> Value);

/// Types of elements.
fn kinds() -> Vec<Kind> {
    let pair = Datatype::compound([
        ("n", Datatype::Integer(Integer::new(2, ByteOrder::Little, true))),
        ("x", Datatype::Float(Float::double(ByteOrder::Big))),
    ]);
    let fill_pair =
        Value::Compound(vec![("n".into(), Value::Integer(-3)), ("x".into(), Value::Float(0.25))]);
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
        ("f32", Datatype::Float(Float::single(big)), Value::Float(-0.5), |n| {
            Value::Float(n as f64 / 8.0)
        }),
        ("f64", Datatype::Float(Float::double(little)), Value::Float(1e30), |n| {
            Value::Float(-n as f64 / 4.0)
        }),
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

/// A shape, the largest one, and which cells are defined, by their numbers.
type Shape = (Vec<u64>, Vec<Option<u64>>, fn(u64) -> bool);

/// Shapes that are filled in several ways.
fn shapes() -> Vec<Shape> {
    vec![
        (vec![40], vec![None], |cell| cell % 7 < 3),
        (vec![13, 10], vec![Some(13), Some(10)], |cell| cell % 11 == 0 || (22..48).contains(&cell)),
        (vec![4, 5, 6], vec![None, Some(5), Some(9)], |cell| cell % 3 != 1),
        (vec![2, 3, 4, 5], vec![Some(2), Some(3), Some(4), Some(5)], |cell| cell / 20 % 2 == 1),
        (vec![6, 6], vec![Some(6), Some(6)], |_| true),
        (vec![6, 6], vec![Some(6), Some(6)], |_| false),
    ]
}

/// A dataset of every third value equal to the fill value, which is defined all the same.
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
        values.push(if own_fill && number % 3 == 0 { fill.clone() } else { value(number) });
    }
    dataset.write_values(Selection::points(dims.len(), points).unwrap(), &values).unwrap();
    dataset
}

/// Options of h5dump, the file with the values, and whether the text tells how the dataset is stored.
const FORMS: [(&str, &str, bool); 10] = [
    ("-p -o values", "values", true),
    ("-o values", "values", false),
    ("-p --sparse -o values", "values", true),
    ("-p -y --sparse -o values", "values", true),
    ("-p", "description", true),
    ("--sparse", "description", false),
    ("-p --sparse", "description", true),
    ("-p -b -o values", "values", true),
    ("-p -b LE --sparse -o values", "values", true),
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
            let own_fill = (kind + shape / 2) % 2 == 0;
            let old = File::create(place.path("old.h5")).unwrap();
            let dataset = make(&old, kind, shape, own_fill);
            let (name, expected) = (dataset.path().to_owned(), cells(&dataset));
            let told = described(&dataset);
            let varies = dataset.datatype().has_varlen();
            drop(dataset);
            old.close().unwrap();
            for (form, (options, values, properties)) in FORMS.into_iter().enumerate() {
                // Every second one: each type meets each form.
                if (options.contains("-b") && varies) || (kind + shape + form) % 2 == 0 {
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

#[test]
fn a_part_becomes_a_dataset_of_its_own() {
    let place = tools();
    for kind in [2, 5, 8] {
        let old = File::create(place.path("old.h5")).unwrap();
        let dataset = make(&old, kind, 2, true);
        let (name, all) = (dataset.path().to_owned(), cells(&dataset));
        drop(dataset);
        old.close().unwrap();
        let taken = "-p -s 1,0,1 -S 2,3,2 -c 2,2,2 -k 1,2,1";
        // Where a cell of the part is in it, by axis.
        let inside = |place: &[u64]| -> Option<Vec<u64>> {
            let axes = [(1, 2, 2, 1), (0, 3, 2, 2), (1, 2, 2, 1)];
            let axes = place.iter().zip(axes).map(|(&at, (start, stride, count, block))| {
                let from = at.checked_sub(start)?;
                let fits = from / stride < count && from % stride < block;
                fits.then_some(from / stride * block + from % stride)
            });
            axes.collect()
        };
        let part: Vec<_> =
            all.iter().filter_map(|(at, value)| Some((inside(at)?, value))).collect();
        assert!(!part.is_empty());
        let run = round_trip(&place, &name, &format!("{taken} -b -o values"), "values");
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
        let new = File::open(place.path("new.h5")).unwrap();
        let made = new.dataset(&name).unwrap();
        assert!(made.is_sparse());
        assert_eq!(made.shape(), [2, 4, 2]);
        let found = cells(&made);
        assert_eq!(found.iter().map(|(at, value)| (at.clone(), value)).collect::<Vec<_>>(), part);
        // A text with fill values cannot tell which of these are defined, and says so.
        let fill = kinds().swap_remove(kind).2;
        let run = round_trip(&place, &name, &format!("{taken} -o values"), "values");
        let hidden = part.iter().filter(|(_, value)| **value == fill).count();
        assert!(hidden > 0);
        let expected = format!("{hidden} of {} cells may be defined", part.len());
        assert_eq!(run.code, Some(0));
        assert!(run.err.contains(&expected), "{}", run.err);
        let new = File::open(place.path("new.h5")).unwrap();
        let found = cells(&new.dataset(&name).unwrap());
        let told = part.into_iter().filter(|(_, value)| **value != fill);
        assert_eq!(found, told.map(|(at, value)| (at, value.clone())).collect::<Vec<_>>());
        // With --sparse, cells stay where they were.
        let run = round_trip(&place, &name, &format!("{taken} --sparse -o values"), "values");
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
        let new = File::open(place.path("new.h5")).unwrap();
        let kept = all.iter().filter(|(at, _)| inside(at).is_some()).cloned().collect::<Vec<_>>();
        assert_eq!(cells(&new.dataset(&name).unwrap()), kept);
    }
}

#[test]
fn a_dump_without_data_says_so_and_leaves_nothing_behind() {
    let place = tools();
    let old = File::create(place.path("old.h5")).unwrap();
    drop(make(&old, 2, 1, false));
    old.close().unwrap();
    let fails = |options: &str, line: &str, expected: &str| {
        let run = tool(&place, &format!("h5dump {options} old.h5"));
        place.write("description", run.out);
        for output in ["new.h5", "there.h5"] {
            place.write("there.h5", "");
            let kept = File::create(place.path("there.h5")).unwrap();
            kept.new_dataset::<i8>().shape([3]).create("kept/x").unwrap();
            kept.close().unwrap();
            let before = std::fs::read(place.path("there.h5")).unwrap();
            let listed = tool(&place, "h5ls -r there.h5").out;
            let run = tool(&place, &format!("h5import {line} -o {output}"));
            assert_eq!(run.code, Some(1), "{options}");
            assert!(run.err.contains(expected), "{options}: {}", run.err);
            assert!(!place.path("new.h5").exists());
            assert_eq!(tool(&place, "h5ls -r there.h5").out, listed);
            let after = std::fs::read(place.path("there.h5")).unwrap();
            assert!(after.len() <= before.len() + 8192, "{} {}", before.len(), after.len());
            assert!(!place.path("values.bin").exists());
        }
    };
    let none = "the text has no data of it";
    fails("-p -H", "description -c description", none);
    fails("-H", "description -c description", none);
    fails("-p --sparse-locations", "description -c description", none);
    fails("-p -o values", "description -c description", none);
    fails("-p -y -o values", "values -c description", "does not say where its cells are");
    place.write("short", [0u8; 100]);
    fails("-p -H", "short -c description", "it ends too early: it has 100 bytes");
    place.write("text", "\n  (0,0): 5, 6\n");
    fails("-p -o values", "text -c description", "cells are told, 2 found");
    fails("-p -o values", "missing -c description", "missing");
    fails("-p", "values -c missing", "missing");
    fails("-p -o values", "old.h5 -d 99999 -t IN -p kept/new/y", "ends too early");
    place.write(
        "outside",
        "PATH z INPUT-CLASS IN RANK 1 DIMENSION-SIZES 99999 \
                            EXTERNAL-STORAGE values.bin",
    );
    fails("-p -o values", "old.h5 -c outside", "ends too early");
}

#[test]
fn a_whole_dump_needs_no_configuration() {
    let place = tools();
    let old = File::create(place.path("old.h5")).unwrap();
    drop(make(&old, 0, 1, true));
    old.new_dataset::<u16>()
        .shape([2, 3])
        .create("g/dense")
        .unwrap()
        .write(.., &[1u16; 6])
        .unwrap();
    old.close().unwrap();
    for options in ["-p", "-p --sparse", "-p -m %.17g"] {
        place.write("all.ddl", tool(&place, &format!("h5dump {options} old.h5")).out);
        let run = tool(&place, "h5import all.ddl -o new.h5");
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{options}");
        let same = tool(&place, "h5diff -v old.h5 new.h5");
        assert_eq!(same.code, Some(0), "{}", same.out);
        assert_eq!(place.succeed("diff --defined old.h5 new.h5"), "");
        std::fs::remove_file(place.path("new.h5")).unwrap();
    }
}

#[test]
fn narrow_floats_and_words_of_filters_come_back_from_a_dump() {
    let place = tools();
    let newest = LibraryVersion::V300;
    let options = File::options().library_version(newest).newest_version(newest);
    let file = options.create(place.path("old.h5")).unwrap();
    for (bits, exponent, mantissa) in [(8, 4, 3), (8, 5, 2), (6, 2, 3), (6, 3, 2), (4, 2, 1)] {
        let float = Float::ieee(1, ByteOrder::Little, exponent, mantissa);
        let float = Datatype::Float(Float { precision: bits, ..float });
        let name = format!("f{bits}e{exponent}m{mantissa}");
        let data = file.new_dataset_of(float).shape([4]).create(&name).unwrap();
        data.write(.., &[0.0f32, 1.0, -1.5, 3.0]).unwrap();
    }
    let words = "level = 3, \"fast\"";
    let zstd = FilterSpec { config: Some(words.to_owned()), ..FilterSpec::zstd(3) };
    let data = file.new_dataset::<i32>().shape([64]).chunk([32]).filter(zstd).create("z").unwrap();
    data.write(.., &[7; 64]).unwrap();
    drop(data);
    file.close().unwrap();
    let dumped = tool(&place, "h5dump -p old.h5").out;
    assert!(dumped.contains(r#"PARAMS_STRING "level = 3, \"fast\"""#), "{dumped}");
    place.write("all.ddl", dumped);
    let run = tool(&place, "h5import all.ddl -o new.h5");
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    let [old, new] = ["old.h5", "new.h5"].map(|name| File::open(place.path(name)).unwrap());
    for name in ["f8e4m3", "f8e5m2", "f6e2m3", "f6e3m2", "f4e2m1", "z"] {
        let (old, new) = (old.dataset(name).unwrap(), new.dataset(name).unwrap());
        assert_eq!(new.datatype(), old.datatype(), "{name}");
        assert_eq!(new.read::<f32>(..).unwrap(), old.read::<f32>(..).unwrap(), "{name}");
        assert_eq!(new.filters().len(), old.filters().len(), "{name}");
    }
}
