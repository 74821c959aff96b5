//! Copies of variable-length data between all layouts to another fill value and another datatype: which
//! cells are kept, and what the others read as, against the rules said in plain loops.

use pumice::{Dataset, DatasetBuilder, Datatype, File, Keep, Selection, Value};

const SHAPE: [u64; 2] = [7, 9];
const CELLS: usize = 63;

/// A kind of elements: their type, and a value for a number.
struct Kind {
    name: &'static str,
    datatype: Datatype,
    value: fn(u64) -> Value,
}

fn kinds() -> Vec<Kind> {
    let string = Datatype::varlen_string(16);
    let list = Datatype::varlen(Datatype::i32_le(), 16);
    let record = Datatype::compound([
        ("id", Datatype::i16_be()),
        ("name", string.clone()),
        ("tags", Datatype::varlen(string.clone(), 16)),
    ]);
    vec![
        Kind { name: "strings", datatype: string, value: text },
        Kind { name: "sequences", datatype: list, value: numbers },
        Kind {
            name: "records",
            datatype: record,
            value: |n| {
                let tags = Value::Sequence((0..n % 3).map(text).collect());
                let id = ("id".into(), Value::Integer(n.into()));
                Value::Compound(vec![id, ("name".into(), text(n)), ("tags".into(), tags)])
            },
        },
    ]
}

fn text(n: u64) -> Value {
    Value::Text(
        "lava "
            .repeat(n as usize % 4)
            .into_bytes()
            .into_iter()
            .chain([b'a' + n as u8 % 26])
            .collect(),
    )
}

fn numbers(n: u64) -> Value {
    Value::Sequence((0..=n % 5).map(|at| Value::Integer((n * 100 + at).into())).collect())
}

/// The layouts: in the global heap, and in structured chunks.
fn layouts(new: &dyn Fn() -> DatasetBuilder) -> Vec<(&'static str, DatasetBuilder)> {
    vec![
        ("contiguous", new()),
        ("chunked", new().chunk([4, 4])),
        ("variable", new().chunk([3, 5]).variable_length()),
        ("sparse", new().chunk([4, 5]).sparse()),
    ]
}

/// A dataset in which some cells were written, and what each cell has: nothing if it is undefined.
fn original(builder: DatasetBuilder, name: &str, kind: &Kind) -> (Dataset, Vec<Option<Value>>) {
    let dataset = builder.fill((kind.value)(1)).create(name).unwrap();
    let mut model = vec![None; CELLS];
    if !dataset.is_sparse() {
        model.fill(Some((kind.value)(1)));
    }
    for at in (0..CELLS as u64).filter(|at| at * at % 5 < 3) {
        // Now and then the fill values of original and copy, which are values like all others.
        let value = (kind.value)(at % 13);
        dataset.write_value_point(&[at / SHAPE[1], at % SHAPE[1]], &value).unwrap();
        model[at as usize] = Some(value);
    }
    (dataset, model)
}

/// Whether a rule keeps a cell that has a value.
type Kept = Box<dyn Fn(usize, &Value) -> bool>;

struct Rule {
    name: &'static str,
    keep: Keep,
    kept: Kept,
}

fn rules(file: &File, kind: &Kind) -> Vec<Rule> {
    let mask = file.new_dataset::<u8>().shape(SHAPE).create(&format!("mask {}", kind.name));
    let mask = mask.unwrap();
    let flags: Vec<u8> = (0..CELLS).map(|at| u8::from(at % 3 == 0)).collect();
    mask.write(.., &flags).unwrap();
    let selected = Selection::hyperslab(&[1, 0], &[2, 4], &[3, 3], &[1, 1]).unwrap();
    let (excluded, also) = ((kind.value)(6), (kind.value)(1));
    let (same, other) = (excluded.clone(), also.clone());
    let inside = |at: usize| (at / 9 % 2 == 1) && (at % 9).is_multiple_of(4);
    vec![
        Rule { name: "defined", keep: Keep::Defined, kept: Box::new(|_, _| true) },
        Rule {
            name: "selected",
            keep: Keep::Selected(selected),
            kept: Box::new(move |at, _| inside(at)),
        },
        Rule {
            name: "except",
            keep: Keep::ExceptValue(excluded),
            kept: Box::new(move |_, value| *value != same),
        },
        Rule {
            name: "except the fill value",
            keep: Keep::ExceptValue(also),
            kept: Box::new(move |_, value| *value != other),
        },
        Rule { name: "where", keep: Keep::Where(mask), kept: Box::new(|at, _| at % 3 == 0) },
    ]
}

/// Whether a copy has what the rules say: kept cells as they are, others undefined, or as the original
/// shows cells that nobody has written.
fn check(copy: &Dataset, model: &[Option<Value>], rule: &Rule, fills: [&Value; 2], name: &str) {
    let kept: Vec<Option<&Value>> = model
        .iter()
        .enumerate()
        .map(|(at, value)| value.as_ref().filter(|value| (rule.kept)(at, value)))
        .collect();
    let [old, new] = fills;
    let left_out = if copy.is_sparse() { new } else { old };
    let wanted: Vec<&Value> = kept.iter().map(|value| value.unwrap_or(left_out)).collect();
    assert!(copy.read_values(..).unwrap().iter().eq(wanted.into_iter()), "{name}");
    if copy.is_sparse() {
        let found = copy.read_defined_values(..).unwrap();
        let mut cells: Vec<u64> = found.iter().map(|(at, _)| at[0] * SHAPE[1] + at[1]).collect();
        cells.sort_unstable();
        let wanted = (0..CELLS).filter(|&at| kept[at].is_some()).map(|at| at as u64);
        assert!(cells.into_iter().eq(wanted), "{name}");
    }
}

#[test]
fn copies_with_another_fill_value_keep_what_the_rules_say() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copies.h5");
    for kind in kinds() {
        let file = File::in_memory().unwrap();
        let other = File::create(&path).unwrap();
        let rules = rules(&file, &kind);
        let (old, new) = ((kind.value)(1), (kind.value)(7));
        let from = || file.new_dataset_of(kind.datatype.clone()).shape(SHAPE);
        let to = || other.new_dataset_of(kind.datatype.clone()).shape(SHAPE).fill(new.clone());
        let mut models = Vec::new();
        for (source, builder) in layouts(&from) {
            let (dataset, model) = original(builder, source, &kind);
            for (number, rule) in rules.iter().enumerate() {
                for (target, builder) in layouts(&to) {
                    let name = format!("{}: {source} to {target}, {}", kind.name, rule.name);
                    let copy = dataset.copy_as(builder, &name, &rule.keep).unwrap();
                    check(&copy, &model, rule, [&old, &new], &name);
                    models.push((name, model.clone(), number));
                }
            }
        }
        other.close().unwrap();
        let other = File::open(&path).unwrap();
        for (name, model, rule) in &models {
            let copy = other.dataset(name).unwrap();
            check(&copy, model, &rules[*rule], [&old, &new], name);
        }
    }
}

#[test]
fn a_copy_without_a_fill_value_shows_that_of_the_original_unless_it_is_sparse() {
    let file = File::in_memory().unwrap();
    let builder = file.new_strings().shape([5]).chunk([2]).sparse().fill("unknown".into());
    let names = builder.create("names").unwrap();
    names.write_string_cells([([1], "tuff"), ([4], "")]).unwrap();
    let copy = |builder: DatasetBuilder, name: &str| {
        let copy = names.copy_as(builder, name, &Keep::Defined).unwrap();
        copy.read_strings(..).unwrap().to_vec()
    };
    let new = || file.new_strings().shape([5]);
    let shown = ["unknown", "tuff", "unknown", "unknown", ""];
    assert_eq!(copy(new(), "contiguous"), shown);
    assert_eq!(copy(new().chunk([3]).variable_length(), "variable"), shown);
    assert_eq!(copy(new().sparse(), "sparse"), ["", "tuff", "", "", ""]);
    // And the other way round: what was null is null, not the new fill value.
    let plain = file.new_strings().shape([3]).sparse().create("plain").unwrap();
    plain.write_string_point(&[0], "basalt").unwrap();
    let filled = file.new_strings().shape([3]).fill("unknown".into());
    let filled = plain.copy_as(filled, "filled", &Keep::Defined).unwrap();
    assert_eq!(filled.read_strings(..).unwrap(), ["basalt", "", ""]);
}

#[test]
fn parts_of_another_datatype_are_converted() {
    let file = File::in_memory().unwrap();
    let lists = file.new_sequences(Datatype::i16_be()).shape([9]).chunk([4]).sparse();
    let lists = lists.create("lists").unwrap();
    lists.write_sequence_cells([([2], vec![1i16, -2]), ([7], vec![])]).unwrap();
    let sparse = file.new_sequences(Datatype::f64_le()).shape([9]).sparse();
    let sparse = lists.copy_as(sparse, "sparse", &Keep::Defined).unwrap();
    let (cells, found) = sparse.read_defined_sequences::<f64>(..).unwrap();
    assert_eq!((cells, &found[0], found.len()), (vec![2, 7], &[1.0, -2.0][..], 2));
    let dense = file.new_sequences(Datatype::i64_le()).shape([9]);
    let dense = lists.copy_as(dense, "dense", &Keep::Defined).unwrap();
    assert_eq!(dense.read_sequences::<i64>(2).unwrap()[0], [1, -2]);

    let record =
        |id: Datatype| Datatype::compound([("id", id), ("name", Datatype::varlen_string(16))]);
    let records =
        file.new_dataset_of(record(Datatype::u8())).shape([3]).sparse().create("r").unwrap();
    let value = |id: i128, name: &str| {
        Value::Compound(vec![("id".into(), Value::Integer(id)), ("name".into(), name.into())])
    };
    records.write_values(1..3, &[value(7, "tuff"), value(200, "")]).unwrap();
    let wide = file.new_dataset_of(record(Datatype::i32_le())).shape([3]).sparse();
    let wide = records.copy_as(wide, "wide", &Keep::ExceptValue(value(200, ""))).unwrap();
    assert_eq!(wide.read_defined_values(..).unwrap().values, [value(7, "tuff")]);
    assert_eq!(wide.datatype(), &record(Datatype::i32_le()));

    for builder in [file.new_strings(), file.new_dataset::<i32>()] {
        let builder = builder.shape([9]);
        assert!(lists.copy_as(builder, "no", &Keep::Defined).is_err());
        assert!(file.dataset("no").is_err(), "half a copy is none");
    }
}

#[test]
fn elements_of_variable_length_are_excluded_by_bytes_that_say_what_they_are() {
    use pumice::Datatype;
    let file = File::in_memory().unwrap();
    let words = file.new_strings().shape([4]).create("words").unwrap();
    words.write_strings(.., &["sea", "", "sun", "sea"]).unwrap();
    let copy = |name: &str, keep: &Keep| {
        let builder = file.new_dataset_like(&words).sparse().chunk([4]);
        words.copy_as(builder, name, keep).map(|copy| copy.defined(..).unwrap().count(&[4]))
    };
    let text = Keep::Except(Datatype::fixed_string(5), b"sea\0\0".to_vec());
    assert_eq!(copy("text", &text).unwrap(), 2);
    // Null is one of its own type, and the same as an empty string.
    let null = Keep::Except(words.datatype().clone(), vec![0; words.datatype().size()]);
    assert_eq!(copy("null", &null).unwrap(), 3);
    // What a reference of the file leads to is not known here; and a number is no string.
    let reference = Keep::Except(words.datatype().clone(), words.read_bytes(0..1).unwrap());
    let short = Keep::Except(words.datatype().clone(), vec![0; 3]);
    for keep in [reference, short, Keep::except(0u8)] {
        let error = copy("none", &keep).unwrap_err().to_string();
        assert!(error.contains("Keep::ExceptValue"), "{error}");
        assert!(!file.contains("none"));
    }
}

#[test]
fn bytes_of_another_type_exclude_what_they_are_in_the_dataset() {
    use pumice::{Datatype, Value};
    let file = File::in_memory().unwrap();
    let own = [("x", Datatype::f32_le()), ("name", Datatype::varlen_string(16))];
    let pairs = file.new_dataset_of(Datatype::compound(own)).shape([3]).create("pairs").unwrap();
    let pair = |x: f64, name: &str| {
        let text = Value::Text(name.as_bytes().to_vec());
        Value::Compound(vec![("x".into(), Value::Float(x)), ("name".into(), text)])
    };
    pairs.write_values(.., &[pair(0.1, "sea"), pair(0.1, "sun"), pair(2.0, "sea")]).unwrap();
    let members = [("name", Datatype::fixed_string(4)), ("x", Datatype::f64_le())];
    let element = [&b"sea\0"[..], &0.1f64.to_le_bytes()].concat();
    let keep = Keep::Except(Datatype::compound(members), element);
    let builder = file.new_dataset_like(&pairs).sparse().chunk([3]);
    let copy = pairs.copy_as(builder, "copy", &keep).unwrap();
    assert_eq!(copy.defined(..).unwrap().count(&[3]), 2);
}
