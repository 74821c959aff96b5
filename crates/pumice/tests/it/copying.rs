//! `copy_as`: between dense and sparse, other chunks and filters, three ways to say what is kept.

use pumice::types::{Reference, ReferenceKind};
use pumice::{Dataset, Datatype, File, FilterSpec, Keep, RawAttribute, Section, Selection, Value};

/// The sparse matrix of the programming model for sparse data, with the zero that is defined.
fn matrix(file: &File) -> Dataset {
    let builder = file.new_dataset::<i32>().shape([13, 10]).chunk([4, 5]).sparse();
    let matrix = builder.create("matrix").unwrap();
    let block: Vec<i32> = (0..18).map(|at| 66 + at / 6 * 30 + at % 6 * 3).collect();
    matrix.write((2..5, 2..8), &block).unwrap();
    matrix.write((6, 0..3), &[100, 0, -100]).unwrap();
    matrix.write_points(&[[5, 9], [11, 1], [12, 8]], &[2, 1, 3]).unwrap();
    matrix.set_attribute("unit", "counts").unwrap();
    matrix.set_attribute("scale", 2.5f64).unwrap();
    matrix
}

fn cells(dataset: &Dataset) -> Vec<(Vec<u64>, i64)> {
    let found = dataset.read_defined::<i64>(..).unwrap();
    let mut cells: Vec<_> = found.iter().map(|(at, &value)| (at.to_vec(), value)).collect();
    cells.sort();
    cells
}

#[test]
fn sparse_to_sparse_keeps_what_is_defined_exactly() {
    let file = File::in_memory().unwrap();
    let matrix = matrix(&file);
    let filters = [FilterSpec::deflate(9)];
    let builder = file.new_dataset_like(&matrix).sparse().chunk([3, 10]).no_filters();
    let builder = builder.section_filter(Section::Values, filters[0].clone());
    let copy = matrix.copy_as(builder, "a/copy", &Keep::Defined).unwrap();
    assert_eq!(cells(&copy), cells(&matrix));
    assert_eq!(copy.count_defined(..).unwrap(), 24);
    assert_eq!(copy.chunk(), Some(vec![3, 10]));
    assert_eq!(copy.section_filters().of(Section::Values), filters);
    assert_eq!(copy.attribute("unit").unwrap().read_string().unwrap(), "counts");
    assert_eq!(copy.attribute("scale").unwrap().read::<f64>().unwrap(), [2.5]);
}

#[test]
fn sparse_to_dense_and_back_by_an_excluded_value_loses_the_defined_zero() {
    let file = File::in_memory().unwrap();
    let matrix = matrix(&file);
    let dense = matrix.copy_as(file.new_dataset_like(&matrix), "dense", &Keep::Defined).unwrap();
    assert!(!dense.is_sparse());
    assert_eq!(dense.read::<i32>(..).unwrap(), matrix.read::<i32>(..).unwrap());

    let sparse = || file.new_dataset_like(&dense).sparse();
    let excluding = dense.copy_as(sparse(), "excluding", &Keep::except(0u8)).unwrap();
    assert_eq!(excluding.count_defined(..).unwrap(), 23, "as the programming model warns");
    assert!(!excluding.is_defined(&[6, 1]).unwrap());

    // By explicit selection nothing is lost.
    let defined = matrix.defined(..).unwrap();
    let selected = dense.copy_as(sparse(), "selected", &Keep::Selected(defined)).unwrap();
    assert_eq!(cells(&selected), cells(&matrix));

    // Every cell of a dense dataset that is stored is defined: not those of chunks that were never written.
    let all = dense.copy_as(sparse(), "all", &Keep::Defined).unwrap();
    let chunks = dense.chunks().unwrap().list().unwrap().into_iter();
    let stored = chunks.map(|chunk| (13 - chunk.offset[0]).min(4) * (10 - chunk.offset[1]).min(5));
    assert_eq!(all.count_defined(..).unwrap(), stored.sum::<u64>());
    assert_eq!(all.read::<i32>(..).unwrap(), dense.read::<i32>(..).unwrap());
    let whole = file.new_dataset_like(&dense).chunk([13, 10]);
    let whole = dense.copy_as(whole, "whole", &Keep::Defined).unwrap();
    let all = whole.copy_as(sparse(), "all of it", &Keep::Defined).unwrap();
    assert_eq!(all.count_defined(..).unwrap(), 130);
}

#[test]
fn a_selection_of_a_sparse_dataset_defines_nothing_new() {
    let file = File::in_memory().unwrap();
    let matrix = matrix(&file);
    let builder = file.new_dataset_like(&matrix).sparse();
    let window = Selection::block(&[6, 0], &[7, 5]).unwrap();
    let copy = matrix.copy_as(builder, "copy", &Keep::Selected(window)).unwrap();
    let expected = [(vec![6, 0], 100), (vec![6, 1], 0), (vec![6, 2], -100), (vec![11, 1], 1)];
    assert_eq!(cells(&copy), expected);
}

#[test]
fn an_excluded_value_leaves_a_sparse_dataset_too() {
    let file = File::in_memory().unwrap();
    let matrix = matrix(&file);
    let builder = file.new_dataset_like(&matrix).sparse();
    let copy = matrix.copy_as(builder, "copy", &Keep::except(0)).unwrap();
    assert_eq!(copy.count_defined(..).unwrap(), 23);
}

#[test]
fn undefined_cells_keep_their_value_where_fill_or_type_differ() {
    let file = File::in_memory().unwrap();
    let builder = file.new_dataset::<i16>().shape([7, 5]).chunk([3, 2]).fill_value(-9i16).sparse();
    let from = builder.create("from").unwrap();
    from.write((1..3, 1..4), &[1i16, 2, 3, 4, 5, 6]).unwrap();
    let other_fill = file.new_dataset::<i16>().shape([7, 5]).fill_value(4i16);
    let other_type = file.new_dataset::<f64>().shape([7, 5]).chunk([2, 5]).deflate(1);
    for (name, builder) in [("fill", other_fill), ("type", other_type)] {
        let copy = from.copy_as(builder, name, &Keep::Defined).unwrap();
        assert_eq!(copy.read::<f64>(..).unwrap(), from.read::<f64>(..).unwrap(), "{name}");
    }
}

#[test]
fn scalars_empty_shapes_and_other_ranks_are_copied() {
    let file = File::in_memory().unwrap();
    let scalar = file.new_dataset::<u8>().create("scalar").unwrap();
    scalar.write(.., &[7u8]).unwrap();
    let copy = scalar.copy_as(file.new_dataset_like(&scalar), "scalar2", &Keep::Defined).unwrap();
    assert_eq!(copy.read::<u8>(..).unwrap(), [7]);
    let empty = file.new_dataset::<u8>().shape([0, 3]).max_shape([None, None]).chunk([2, 2]);
    let empty = empty.sparse().create("empty").unwrap();
    let builder = file.new_dataset_like(&empty).sparse();
    let copy = empty.copy_as(builder, "empty2", &Keep::Defined).unwrap();
    assert_eq!((copy.shape(), copy.max_shape()), (vec![0, 3], vec![None, None]));
    let cube = file.new_dataset::<u16>().shape([5, 6, 7]).create("cube").unwrap();
    let values: Vec<u16> = (0..210).map(|at| at % 3).collect();
    cube.write(.., &values).unwrap();
    let builder = file.new_dataset_like(&cube).sparse().chunk([2, 3, 4]);
    let sparse = cube.copy_as(builder, "cube2", &Keep::except(0)).unwrap();
    assert_eq!(sparse.count_defined(..).unwrap(), 140);
    let back = sparse.copy_as(file.new_dataset_like(&sparse), "cube3", &Keep::Defined).unwrap();
    assert_eq!(back.read::<u16>(..).unwrap(), values);
}

#[test]
fn a_copy_that_cannot_be_leaves_nothing_behind() {
    let file = File::in_memory().unwrap();
    let matrix = matrix(&file);
    let builder = file.new_dataset::<i32>().shape([13, 11]);
    assert!(matrix.copy_as(builder, "copy", &Keep::Defined).is_err());
    assert!(!file.contains("copy"));
}

#[test]
fn a_vast_array_is_copied_by_what_is_stored() {
    let file = File::in_memory().unwrap();
    let builder = file.new_dataset::<f32>().shape([1 << 40, 1 << 20]).chunk([1000, 1000]);
    let vast = builder.sparse().create("vast").unwrap();
    let points = [[0, 0], [1 << 39, 7], [(1 << 40) - 1, (1 << 20) - 1]];
    vast.write_points(&points, &[1.0f32, 0.0, 3.0]).unwrap();
    let builder = file.new_dataset_like(&vast).sparse().chunk([4096, 256]);
    let copy = vast.copy_as(builder, "copy", &Keep::Defined).unwrap();
    assert_eq!(cells(&copy), cells(&vast));
}

#[test]
fn full_chunks_larger_than_a_block_are_copied_in_parts() {
    let file = File::in_memory().unwrap();
    let builder = file.new_dataset::<u8>().shape([1500, 1500]).sparse();
    let from = builder.create("from").unwrap();
    let values: Vec<u8> = (0..1500u32 * 1500).map(|at| (at % 251) as u8).collect();
    from.write(.., &values).unwrap();
    let builder = file.new_dataset_like(&from).sparse().chunk([400, 300]);
    let copy = from.copy_as(builder, "copy", &Keep::except(7u8)).unwrap();
    let left = values.iter().filter(|&&value| value != 7).count() as u64;
    assert_eq!(copy.count_defined(..).unwrap(), left);
    let dense = copy
        .copy_as(file.new_dataset::<u8>().shape([1500, 1500]).fill_value(7u8), "d", &Keep::Defined)
        .unwrap();
    let filled: Vec<u8> = values.iter().map(|&value| if value == 7 { 0 } else { value }).collect();
    assert_eq!(dense.read::<u8>(..).unwrap(), filled);
}

#[test]
fn strings_are_copied_between_dense_and_sparse_and_between_files() {
    let (file, other) = (File::in_memory().unwrap(), File::in_memory().unwrap());
    let names = file.new_strings().shape([40]).chunk([7]).sparse().create("names").unwrap();
    names.write_strings(3..6, &["one", "", "three"]).unwrap();
    names.write_strings(30, &["thirty"]).unwrap();
    let titles = file.new_strings().shape([2]).create("titles").unwrap();
    titles.write_strings(.., &["a longer title", "b"]).unwrap();
    let elements = titles.read_bytes(..).unwrap();
    let alias = RawAttribute::new(titles.datatype().clone(), &[2], elements).unwrap();
    titles.set_attribute("alias", alias).unwrap();

    let same = file.new_dataset_like(&names).sparse().chunk([16]);
    let same = names.copy_as(same, "same", &Keep::Defined).unwrap();
    assert_eq!(same.read_defined_strings(..).unwrap(), names.read_defined_strings(..).unwrap());
    assert_eq!(same.count_defined(..).unwrap(), 4, "an empty string is defined");

    let dense = names.copy_as(other.new_dataset_like(&names), "dense", &Keep::Defined).unwrap();
    assert!(!dense.is_sparse());
    assert_eq!(dense.read_strings(..).unwrap(), names.read_strings(..).unwrap());

    let defined = names.defined(..).unwrap();
    let back = other.new_dataset_like(&dense).sparse();
    let back = dense.copy_as(back, "back", &Keep::Selected(defined)).unwrap();
    assert_eq!(back.read_defined_strings(..).unwrap(), names.read_defined_strings(..).unwrap());

    let packed = other.new_dataset_like(&titles).variable_length().chunk([2]);
    let packed = titles.copy_as(packed, "packed", &Keep::Defined).unwrap();
    assert_eq!(packed.read_strings(..).unwrap(), ["a longer title", "b"]);
    let alias = packed.attribute("alias").unwrap();
    assert_eq!(alias.read_strings().unwrap(), ["a longer title", "b"]);
}

#[test]
fn strings_and_records_are_copied_without_a_value_and_by_a_mask() {
    let file = File::in_memory().unwrap();
    let words = ["", "sea", "sun", "", "sea", "a longer word"];
    let text = |word: &str| Value::Text(word.into());
    let kept = |dataset: &Dataset| -> Vec<(u64, Value)> {
        let found = dataset.read_defined_values(..).unwrap();
        found.iter().map(|(at, value)| (at[0], value.clone())).collect()
    };
    let dense = file.new_strings().shape([9]).create("dense").unwrap();
    dense.write_strings(2..8, &words).unwrap();
    let sparse = file.new_strings().shape([9]).chunk([4]).sparse().create("sparse").unwrap();
    sparse.write_strings(2..8, &words).unwrap();
    let mask = file.new_dataset::<u8>().shape([9]).create("mask").unwrap();
    mask.write(.., &[1u8, 0, 0, 7, 0, 1, 0, 1, 0]).unwrap();
    for (number, from) in [&dense, &sparse].into_iter().enumerate() {
        let copy = |name: &str, keep: Keep| {
            let builder = file.new_dataset_like(from).sparse().chunk([3]);
            from.copy_as(builder, &format!("{name} {number}"), &keep).unwrap()
        };
        // What was never written and what is empty are the same here.
        let full = kept(&copy("full", Keep::ExceptValue(text(""))));
        assert_eq!(
            full,
            [(3, "sea"), (4, "sun"), (6, "sea"), (7, words[5])].map(|(at, word)| (at, text(word)))
        );
        let others = copy("others", Keep::ExceptValue(text("sea")));
        assert_eq!(others.count_defined(..).unwrap(), if number == 0 { 7 } else { 4 });
        assert_eq!(others.read_strings(2..8).unwrap(), ["", "", "sun", "", "", words[5]]);
        let masked = kept(&copy("masked", Keep::Where(mask.clone())));
        let wanted = [(3, text("sea")), (5, text("")), (7, text(words[5]))];
        assert_eq!(masked[masked.len() - 3..], wanted);
        assert_eq!(masked.len(), if number == 0 { 4 } else { 3 });
        let builder = file.new_dataset_like(from).sparse();
        assert!(from.copy_as(builder, "number", &Keep::except(0u8)).is_err());
    }

    let fields = [("id", Datatype::i32_le()), ("tags", Datatype::varlen(string(), 16))];
    let builder = file.new_dataset_of(Datatype::compound(fields)).shape([4]).chunk([4]);
    let records = builder.variable_length().create("records").unwrap();
    let record = |id: i128, tags: &[&str]| {
        let tags = Value::Sequence(tags.iter().map(|&tag| text(tag)).collect());
        Value::Compound(vec![("id".into(), Value::Integer(id)), ("tags".into(), tags)])
    };
    let values = [record(1, &["a", ""]), record(0, &[]), record(1, &["a"]), record(1, &["a", ""])];
    records.write_values(.., &values).unwrap();
    let without = |value: &Value, name: &str| {
        let builder = file.new_dataset_like(&records).sparse();
        kept(&records.copy_as(builder, name, &Keep::ExceptValue(value.clone())).unwrap())
    };
    let left = without(&values[0], "left");
    assert_eq!(left.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(without(&record(0, &[]), "not blank").len(), 3);

    // And numbers, by value.
    let numbers = file.new_dataset::<f32>().shape([4]).create("numbers").unwrap();
    numbers.write(.., &[1.5f32, -2.0, 1.5, 0.0]).unwrap();
    let builder = file.new_dataset_like(&numbers).sparse();
    let rest = numbers.copy_as(builder, "rest", &Keep::ExceptValue(Value::Float(1.5))).unwrap();
    assert_eq!(rest.read_defined::<f32>(..).unwrap().coordinates, [1, 3]);
}

fn string() -> Datatype {
    Datatype::varlen_string(16)
}

#[test]
fn compounds_with_strings_and_nested_sequences_are_copied() {
    let (file, other) = (File::in_memory().unwrap(), File::in_memory().unwrap());
    let inner = Datatype::varlen(Datatype::i32_le(), 16);
    let record = [
        ("id", Datatype::i32_le()),
        ("name", Datatype::varlen_string(16)),
        ("lists", Datatype::varlen(inner, 16)),
    ];
    let builder = file.new_dataset_of(Datatype::compound(record)).shape([6, 6]).chunk([4, 4]);
    let records = builder.sparse().create("records").unwrap();
    let list = |values: &[i32]| {
        Value::Sequence(values.iter().map(|&v| Value::Integer(v.into())).collect())
    };
    let value = |id: i32, name: &str, lists: Vec<Value>| {
        let id = ("id".into(), Value::Integer(id.into()));
        let name = ("name".into(), Value::Text(name.into()));
        Value::Compound(vec![id, name, ("lists".into(), Value::Sequence(lists))])
    };
    let values =
        [value(1, "first", vec![list(&[1, 2]), list(&[])]), value(2, "", vec![list(&[7])])];
    let points = Selection::points(2, vec![0, 5, 5, 1]).unwrap();
    records.write_values(points, &values).unwrap();
    let builder = other.new_dataset_like(&records).sparse().chunk([6, 2]);
    let copy = records.copy_as(builder, "copy", &Keep::Defined).unwrap();
    assert_eq!(copy.count_defined(..).unwrap(), 2);
    assert_eq!(copy.read_values((0, 5)).unwrap(), values[..1]);
    assert_eq!(copy.read_values((5, 1)).unwrap(), values[1..]);
}

#[test]
fn references_to_objects_stay_within_their_file() {
    let (file, other) = (File::in_memory().unwrap(), File::in_memory().unwrap());
    let reference = Datatype::Reference(Reference { size: 8, kind: ReferenceKind::Object });
    let places = file.new_dataset_of(reference).shape([9]).chunk([4]).create("places").unwrap();
    places.write_bytes(2..4, &[[7u8; 8], [9; 8]].concat()).unwrap();
    let builder = file.new_dataset_like(&places).sparse().chunk([5]);
    let selection = Selection::block(&[2], &[2]).unwrap();
    let copy = places.copy_as(builder, "copy", &Keep::Selected(selection)).unwrap();
    assert_eq!(copy.count_defined(..).unwrap(), 2);
    assert_eq!(copy.read_bytes(..).unwrap(), places.read_bytes(..).unwrap());
    let builder = other.new_dataset_like(&places);
    let error = places.copy_as(builder, "copy", &Keep::Defined).err().unwrap();
    assert!(error.to_string().contains("into another file"), "{error}");
    assert!(other.dataset("copy").is_err());
}

#[test]
fn a_value_that_no_element_can_have_excludes_nothing() {
    let file = File::in_memory().unwrap();
    let bytes = file.new_dataset::<u8>().shape([5]).create("bytes").unwrap();
    bytes.write(.., &[0u8, 1, 255, 3, 44]).unwrap();
    let texts = file.new_dataset_of(Datatype::fixed_string(2)).shape([2]).create("texts").unwrap();
    texts.write_values(.., &[Value::from("ab"), Value::from("c")]).unwrap();
    let count = |from: &Dataset, keep: Keep| {
        let builder = file.new_dataset_like(from).sparse().chunk([2]);
        let copy = from.copy_as(builder, "copy", &keep).unwrap();
        let count = copy.count_defined(..).unwrap();
        drop(copy);
        file.unlink("copy").unwrap();
        count
    };
    for absent in [300, -1] {
        assert_eq!(count(&bytes, Keep::except(absent)), 5, "{absent}");
        assert_eq!(count(&bytes, Keep::ExceptValue(Value::Integer(absent.into()))), 5, "{absent}");
    }
    for absent in [0.5, 255.1, f64::NAN] {
        assert_eq!(count(&bytes, Keep::except(absent)), 5, "{absent}");
    }
    for present in [0.0, 255.0, 44.0] {
        assert_eq!(count(&bytes, Keep::except(present)), 4, "{present}");
        assert_eq!(count(&bytes, Keep::except(present as i64)), 4, "{present}");
        let present = Value::Integer(present as i128);
        assert_eq!(count(&bytes, Keep::ExceptValue(present.clone())), 4, "{present:?}");
    }
    assert_eq!(count(&texts, Keep::ExceptValue(Value::from("abc"))), 2);
    assert_eq!(count(&texts, Keep::ExceptValue(Value::from("ab"))), 1);

    let floats = file.new_dataset::<f32>().shape([6]).create("floats").unwrap();
    floats.write(.., &[0.0f32, f32::INFINITY, 0.1, f32::NAN, -0.0, 16_777_216.0]).unwrap();
    for absent in [1e300, -1e300, 1e-50, 0.2] {
        assert_eq!(count(&floats, Keep::except(absent)), 6, "{absent}");
        assert_eq!(count(&floats, Keep::ExceptValue(Value::Float(absent))), 6, "{absent}");
    }
    for present in [0.0, -0.0, f64::INFINITY, 0.1, f64::NAN] {
        assert_eq!(count(&floats, Keep::except(present)), 5, "{present}");
        assert_eq!(count(&floats, Keep::ExceptValue(Value::Float(present))), 5, "{present}");
    }
    for (number, left) in [(16_777_216, 5), (16_777_217, 6)] {
        assert_eq!(count(&floats, Keep::except(number)), left, "{number}");
    }
}

#[test]
fn masks_of_any_numbers_keep_what_is_not_zero() {
    let file = File::in_memory().unwrap();
    let from = file.new_dataset::<u8>().shape([6]).create("from").unwrap();
    let signed = file.new_dataset::<i32>().shape([6]).create("signed").unwrap();
    signed.write(.., &[0, -1, 256, 0, 7, i32::MIN]).unwrap();
    let wide = file.new_dataset::<u64>().shape([6]).create("wide").unwrap();
    wide.write(.., &[0, 1 << 63, 1 << 32, 0, u64::MAX, 1]).unwrap();
    let float = file.new_dataset::<f32>().shape([6]).create("float").unwrap();
    float.write(.., &[0.0, -0.25, 0.25, 0.0, f32::NAN, 1e-30]).unwrap();
    for mask in [signed, wide, float] {
        let builder = file.new_dataset_like(&from).sparse().chunk([4]);
        let name = format!("by {}", mask.path());
        let copy = from.copy_as(builder, &name, &Keep::Where(mask)).unwrap();
        assert_eq!(copy.defined_columns::<u64>(..).unwrap(), [[1, 2, 4, 5]], "{name}");
    }
    let builder = file.new_dataset_like(&from).sparse().chunk([4]);
    let outside = Keep::Selected(Selection::point(&[6]).unwrap());
    assert!(from.copy_as(builder, "outside", &outside).is_err());
}

#[test]
fn a_scalar_is_copied_only_if_it_is_kept() {
    let file = File::in_memory().unwrap();
    let number = file.new_dataset::<i32>().fill_value(-7).create("number").unwrap();
    number.write(.., &[5]).unwrap();
    let word = file.new_strings().fill(Value::from("none")).create("word").unwrap();
    word.write_strings(.., &["tuff"]).unwrap();
    let [yes, no] = [1u8, 0].map(|flag| {
        let mask = file.new_dataset::<u8>().create(&format!("mask {flag}")).unwrap();
        mask.write(.., &[flag]).unwrap();
        mask
    });
    let rules = [
        (Keep::Defined, true),
        (Keep::Selected(Selection::all()), true),
        (Keep::Selected(Selection::none()), false),
        (Keep::Where(yes), true),
        (Keep::Where(no), false),
    ];
    let except = |five, tuff| [five, tuff].map(|(value, kept)| (Keep::ExceptValue(value), kept));
    let numbers = except((Value::Integer(5), false), (Value::Integer(6), true));
    let words = except((Value::from("tuff"), false), (Value::from("tuf"), true));
    for (at, (keep, kept)) in rules.iter().chain(&numbers).enumerate() {
        for (layout, builder) in
            [("same", file.new_dataset_like(&number)), ("other", file.new_dataset::<f64>())]
        {
            let copy = number.copy_as(builder, &format!("{layout} {at}"), keep).unwrap();
            let wanted = if *kept { 5.0 } else { -7.0 };
            assert_eq!(copy.read::<f64>(..).unwrap(), [wanted], "{layout}, rule {at}");
        }
    }
    for (at, (keep, kept)) in rules.iter().chain(&words).enumerate() {
        for (layout, builder) in
            [("same word", file.new_dataset_like(&word)), ("other word", file.new_strings())]
        {
            let copy = word.copy_as(builder, &format!("{layout} {at}"), keep).unwrap();
            let wanted = if *kept { "tuff" } else { "none" };
            assert_eq!(copy.read_strings(..).unwrap(), [wanted], "{layout}, rule {at}");
        }
    }
}

#[test]
fn a_dense_copy_of_another_datatype_has_only_the_chunks_of_cells_that_are_defined() {
    let file = File::in_memory().unwrap();
    let (shape, chunk) = ([1 << 13, 1 << 10], [1 << 8, 1 << 8]);
    let sparse = file.new_dataset::<i32>().shape(shape).chunk(chunk).fill_value(-7).sparse();
    let sparse = sparse.create("sparse").unwrap();
    sparse.write_point(&[5000, 7], 5).unwrap();
    let builder = file.new_dataset::<f64>().shape(shape).chunk(chunk).fill_value(-7.0).deflate(1);
    let dense = sparse.copy_as(builder, "dense", &Keep::Defined).unwrap();
    assert_eq!(dense.chunk_count().unwrap(), 1);
    assert_eq!(dense.read::<f64>((5000, 7..9)).unwrap(), [5.0, -7.0]);

    let [from, to] =
        [Datatype::i16_le(), Datatype::i32_le()].map(|base| Datatype::varlen(base, 16));
    let fill = Value::Sequence(vec![Value::Integer(3)]);
    let lists = file.new_dataset_of(from).shape(shape).chunk(chunk).fill(fill.clone()).sparse();
    let lists = lists.create("lists").unwrap();
    lists.write_sequence_point(&[5000, 7], &[1i16, 2]).unwrap();
    let builder = file.new_dataset_of(to).shape(shape).chunk(chunk).fill(fill).variable_length();
    let dense = lists.copy_as(builder, "dense lists", &Keep::Defined).unwrap();
    assert_eq!(dense.chunk_count().unwrap(), 1);
    assert_eq!(&dense.read_sequences::<i32>((5000, 7..9)).unwrap()[1], &[3]);
}

/// Copies of what is hardly written are as small, and read the same.
#[test]
fn what_was_never_written_takes_no_room_in_a_copy() {
    let file = File::in_memory().unwrap();
    let chunked = || file.new_dataset::<i32>().shape([1000, 1000]).chunk([10, 10]);
    let mostly = chunked().fill_value(-5).create("mostly").unwrap();
    mostly.write((500, 495..505), &[7; 10]).unwrap();
    let alike = |builder: pumice::DatasetBuilder| builder.fill_value(-5).shape([1000, 1000]);
    let new = || alike(file.new_dataset::<i32>());
    for (name, builder, chunks) in [
        ("filtered", new().chunk([10, 10]).deflate(1), 2),
        ("plain", new().chunk([7, 3]), 2 * 8),
        ("sparse", new().sparse().chunk([10, 10]), 2),
        ("wide", alike(file.new_dataset::<f64>()).chunk([10, 10]), 2),
    ] {
        for (keep, kind) in [(Keep::Defined, "all"), (Keep::except(3), "but 3")] {
            let path = format!("{name} {kind}");
            let copy = mostly.copy_as(builder.clone(), &path, &keep).unwrap();
            assert!(copy.chunk_count().unwrap() <= chunks, "{path}");
            assert_eq!(copy.read::<i32>(..).unwrap(), mostly.read::<i32>(..).unwrap(), "{path}");
        }
    }
    // Cells that are selected are wanted, written or not.
    let chosen = Keep::Selected(pumice::Selection::block(&[0, 0], &[3, 3]).unwrap());
    let copy = mostly.copy_as(new().sparse().chunk([10, 10]), "chosen", &chosen).unwrap();
    assert_eq!(copy.count_defined(..).unwrap(), 9);
    // With another fill value, they have to be written.
    let other = file.new_dataset::<i32>().shape([1000, 1000]).chunk([100, 100]);
    let copy = mostly.copy_as(other, "other", &Keep::Defined).unwrap();
    assert_eq!(copy.chunk_count().unwrap(), 100);
    assert_eq!(copy.read::<i32>(..).unwrap(), mostly.read::<i32>(..).unwrap());
    let other = file.new_dataset::<i32>().shape([1000, 1000]).sparse().chunk([100, 100]);
    let copy = mostly.copy_as(other, "other sparse", &Keep::Defined).unwrap();
    assert_eq!(copy.read::<i32>(..).unwrap(), mostly.read::<i32>(..).unwrap());

    let never = file.new_dataset::<i32>().shape([1000, 1000]).create("never").unwrap();
    let strings = file.new_strings().shape([1000, 1000]).create("strings").unwrap();
    let some = file.new_strings().shape([1000, 1000]).chunk([10, 10]).create("some").unwrap();
    some.write_strings((3, 3), &["tuff"]).unwrap();
    for (original, chunks) in [(&never, 0), (&strings, 0), (&some, 1)] {
        let name = original.path().to_owned();
        for (kind, builder) in [
            ("one piece", file.new_dataset_like(original)),
            ("chunks", file.new_dataset_like(original).chunk([10, 10]).deflate(1)),
            ("sparse", file.new_dataset_like(original).sparse().chunk([10, 10])),
        ] {
            let path = format!("{name} in {kind}");
            let copy = original.copy_as(builder, &path, &Keep::Defined).unwrap();
            match copy.chunk() {
                Some(_) => assert_eq!(copy.chunk_count().unwrap(), chunks, "{path}"),
                None => assert_eq!(copy.storage_size().unwrap() > 0, chunks > 0, "{path}"),
            }
            match original.datatype().has_varlen() {
                true => assert_eq!(
                    copy.read_strings((..9, ..)).unwrap(),
                    original.read_strings((..9, ..)).unwrap()
                ),
                false => assert_eq!(copy.read::<i32>(..).unwrap(), vec![0; 1_000_000]),
            }
        }
    }
}
