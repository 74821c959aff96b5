//! Types of Rust that are not plain: they come back from every layout, and what does not fit is refused.

use pumice::types::{ByteOrder, Integer};
use pumice::{
    Complex, Dataset, DatasetBuilder, Datatype, File, FixedText, H5Type, Reference, Value,
};

#[derive(H5Type, Clone, Copy, Debug, PartialEq)]
#[repr(u16)]
enum Kind {
    Rock = 1,
    Sand = 700,
}

#[derive(H5Type, Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Padded {
    small: u8,
    large: f64,
    flag: bool,
}

#[derive(H5Type, Clone, Debug, PartialEq)]
struct Sample {
    name: String,
    kinds: [Kind; 2],
    place: Padded,
    // A field may have any name.
    heap: Vec<Vec<String>>,
    wave: Complex<f64>,
    note: Option<String>,
}

fn sample(seed: u8) -> Sample {
    let place = Padded { small: seed, large: f64::from(seed) / 8.0, flag: seed.is_multiple_of(2) };
    let lists = (0..seed % 4).map(|list| (0..list).map(|at| format!("{seed}.{at}")).collect());
    Sample {
        name: "stone ".repeat(usize::from(seed % 3)),
        kinds: [Kind::Rock, Kind::Sand],
        place,
        heap: lists.collect(),
        wave: Complex::new(f64::from(seed), -1.0),
        note: seed.is_multiple_of(3).then(|| seed.to_string()),
    }
}

fn layouts(file: &File) -> Vec<(&'static str, DatasetBuilder)> {
    let make = || file.new_dataset::<Sample>().shape([12]);
    vec![
        ("contiguous", make()),
        ("chunked", make().chunk([5])),
        ("filtered", make().chunk([5]).deflate(1)),
        ("sparse", make().chunk([5]).sparse()),
        ("variable-length", make().chunk([5]).variable_length()),
    ]
}

#[test]
fn structs_with_everything_in_them_come_back_from_every_layout() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("samples.h5");
    let values: Vec<Sample> = (0..12).map(sample).collect();
    let file = File::create(&path).unwrap();
    for (name, builder) in layouts(&file) {
        let dataset = builder.create(name).unwrap();
        dataset.write(.., &values).unwrap();
        dataset.write_points(&[[3], [7]], &[sample(13), sample(17)]).unwrap();
    }
    file.close().unwrap();
    let mut wanted = values;
    (wanted[3], wanted[7]) = (sample(13), sample(17));
    let file = File::open(&path).unwrap();
    for name in ["contiguous", "chunked", "filtered", "sparse", "variable-length"] {
        let dataset = file.dataset(name).unwrap();
        assert_eq!(dataset.read::<Sample>(..).unwrap(), wanted, "{name}");
        assert_eq!(dataset.read::<Sample>(7).unwrap(), wanted[7..8], "{name}");
        let mut place = [sample(0), sample(1)];
        dataset.read_into(2..4, &mut place).unwrap();
        assert_eq!(place, wanted[2..4], "{name}");
        assert!(dataset.read_into(2..5, &mut place).is_err(), "{name}");
        let found = dataset.read_defined::<Sample>(2..9).unwrap();
        assert_eq!((found.coordinates, found.values), ((2..9).collect(), wanted[2..9].to_vec()));
    }
}

#[derive(H5Type, Clone, Debug, PartialEq)]
struct Name {
    name: String,
}

#[derive(H5Type, Clone, Copy, Debug, PartialEq)]
struct Places {
    place: Padded,
}

#[test]
fn members_that_a_type_does_not_have_stay_as_they_are() {
    let file = File::in_memory().unwrap();
    for (layout, builder) in layouts(&file) {
        let dataset = builder.create(layout).unwrap();
        let mut wanted: Vec<Sample> = (0..12).map(sample).collect();
        dataset.write(.., &wanted).unwrap();
        dataset.write(4..6, &["new", "newer"].map(|name| Name { name: name.into() })).unwrap();
        (wanted[4].name, wanted[5].name) = ("new".into(), "newer".into());
        dataset.write(5, &[Places { place: sample(30).place }]).unwrap();
        wanted[5].place = sample(30).place;
        assert_eq!(dataset.read::<Sample>(..).unwrap(), wanted, "{layout}");
        assert_eq!(dataset.read::<Name>(5).unwrap(), [Name { name: "newer".into() }], "{layout}");
        assert_eq!(dataset.read::<Places>(4).unwrap(), [Places { place: wanted[4].place }]);
        assert!(dataset.write(4..6, &[Name { name: "one for two".into() }]).is_err(), "{layout}");
        assert_eq!(dataset.read::<Sample>(..).unwrap(), wanted, "{layout}: nothing was written");
    }
}

#[test]
fn padding_is_left_out_of_the_file() {
    assert_eq!(size_of::<Padded>(), 24);
    assert_eq!(Padded::datatype().size(), 10);
    const { assert!(!Padded::PLAIN && !Sample::PLAIN && <[u8; 3]>::PLAIN) };
    let file = File::in_memory().unwrap();
    let dataset = file.new_dataset::<Padded>().shape([3]).create("d").unwrap();
    dataset.write(.., &[sample(1).place, sample(2).place, sample(3).place]).unwrap();
    assert_eq!(dataset.storage_size().unwrap(), 30);
    assert_eq!(dataset.read::<Padded>(1).unwrap(), [sample(2).place]);
}

/// A struct of that size without padding: every byte belongs to a field.
#[derive(H5Type, Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Full {
    large: f64,
    small: u8,
    text: FixedText<7>,
}

#[derive(H5Type, Clone, Copy, Debug, PartialEq)]
#[repr(C, packed)]
struct Tight {
    small: u8,
    large: f64,
}

#[test]
fn structs_without_padding_are_plain() {
    const { assert!(Full::PLAIN && Tight::PLAIN && <[Full; 2]>::PLAIN) };
    let file = File::in_memory().unwrap();
    let dataset = file.new_dataset::<Tight>().shape([2]).create("d").unwrap();
    let values = [Tight { small: 1, large: 0.5 }, Tight { small: 2, large: 1.5 }];
    dataset.write(.., &values).unwrap();
    assert_eq!(dataset.read::<Tight>(..).unwrap(), values);
    assert_eq!(dataset.read_bytes(0).unwrap()[0], 1);
    let full = Full { large: 2.5, small: 3, text: FixedText::new("text").unwrap() };
    let lists = file.new_dataset::<Vec<Full>>().shape([2]).create("lists").unwrap();
    lists.write(1, &[vec![full; 3]]).unwrap();
    assert_eq!(lists.read::<Vec<Full>>(..).unwrap(), [vec![], vec![full; 3]]);
}

#[test]
fn text_of_a_fixed_length_is_read_and_written_as_strings() {
    let file = File::in_memory().unwrap();
    let fixed = file.new_dataset_of(Datatype::fixed_string(6)).shape([2]).create("fixed").unwrap();
    fixed.write(.., &["tuff", "basalt"]).unwrap();
    assert_eq!(fixed.read::<String>(..).unwrap(), ["tuff", "basalt"]);
    let error = fixed.write(0, &["obsidian"]).unwrap_err();
    assert!(error.to_string().contains("8 byte(s)"), "{error}");
    let strings = file.new_dataset::<String>().shape([2]).create("strings").unwrap();
    strings.write(.., &["ab", "abcdef"]).unwrap();
    let text = |text: &str| FixedText::<6>::new(text).unwrap();
    assert_eq!(strings.read::<FixedText<6>>(..).unwrap(), [text("ab"), text("abcdef")]);
    strings.write(0, &[text("short")]).unwrap();
    assert_eq!(strings.read::<String>(0).unwrap(), ["short"]);
    let error = strings.write(0, &["a\0b"]).unwrap_err();
    assert!(error.to_string().contains("null byte"), "{error}");
    fixed.write_bytes(0, b"\xff\xfe\0\0\0\0").unwrap();
    let error = fixed.read::<String>(0).unwrap_err();
    assert!(error.to_string().contains("UTF-8"), "{error}");
}

#[test]
fn truth_is_an_enumeration_and_is_read_from_numbers() {
    let file = File::in_memory().unwrap();
    let flags = file.new_dataset::<bool>().shape([3]).create("flags").unwrap();
    flags.write(.., &[true, false, true]).unwrap();
    assert_eq!(flags.read_bytes(..).unwrap(), [1, 0, 1]);
    assert_eq!(flags.read::<u8>(..).unwrap(), [1, 0, 1]);
    assert_eq!(flags.read::<bool>(..).unwrap(), [true, false, true]);
    flags.write_bytes(0, &[9]).unwrap();
    assert!(flags.read::<bool>(0).is_err());
    let numbers = file.new_dataset::<i64>().shape([2]).create("numbers").unwrap();
    numbers.write(.., &[0, -256]).unwrap();
    assert_eq!(numbers.read::<bool>(..).unwrap(), [false, true]);
    let floats = file.new_dataset::<f32>().shape([2]).create("floats").unwrap();
    assert!(floats.read::<bool>(..).is_err());
}

#[test]
fn variants_that_nobody_knows_are_errors() {
    let file = File::in_memory().unwrap();
    let kinds = file.new_dataset::<Kind>().shape([2]).fill_value(Kind::Sand).create("k").unwrap();
    assert_eq!(kinds.read::<Kind>(..).unwrap(), [Kind::Sand, Kind::Sand]);
    kinds.write_bytes(1, &8u16.to_ne_bytes()).unwrap();
    let error = kinds.read::<Kind>(..).unwrap_err();
    assert!(error.to_string().contains("no variant"), "{error}");
    let other = pumice::types::Enumeration::new(Integer::new(1, ByteOrder::Little, false));
    let other = other.with("Sand", &[3]).with("Rock", &[4]);
    let others = file.new_dataset_of(Datatype::Enum(other)).shape([2]).create("o").unwrap();
    others.write(.., &[Kind::Rock, Kind::Sand]).unwrap();
    assert_eq!(others.read_bytes(..).unwrap(), [4, 3], "by name");
    assert_eq!(others.read::<Kind>(..).unwrap(), [Kind::Rock, Kind::Sand]);
}

#[derive(H5Type, Clone, Debug, PartialEq)]
struct Row {
    label: String,
    object: Option<Reference>,
    #[h5(region)]
    parts: Vec<Reference>,
    #[h5(any)]
    any: [Option<Reference>; 2],
}

fn rows(file: &File) -> Dataset {
    file.new_dataset::<i32>().shape([9]).create("data").unwrap().write(.., &[7; 9]).unwrap();
    file.dataset("data").unwrap().set_attribute("unit", "K").unwrap();
    let table = file.new_dataset::<Row>().shape([2]).create("rows").unwrap();
    let row = Row {
        label: "all".into(),
        object: Some(file.reference("data").unwrap()),
        parts: vec![file.region_reference("data", 2..5).unwrap(); 2],
        any: [Some(file.attribute_reference("data", "unit").unwrap()), None],
    };
    table.write(0, &[row]).unwrap();
    table
}

#[test]
fn references_are_fields_like_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("references.h5");
    let file = File::create(&path).unwrap();
    rows(&file);
    file.close().unwrap();
    let file = File::open(&path).unwrap();
    let found = file.dataset("rows").unwrap().read::<Row>(..).unwrap();
    assert_eq!(found[0].object, Some(file.reference("data").unwrap()));
    let (data, part) = file.dereference_region(&found[0].parts[1]).unwrap();
    assert_eq!(data.read::<i32>(part).unwrap(), [7; 3]);
    let unit = file.dereference_attribute(found[0].any[0].as_ref().unwrap()).unwrap();
    assert_eq!(unit.read_string().unwrap(), "K");
    assert_eq!((&found[1].object, found[1].parts.len(), &found[1].any), (&None, 0, &[None, None]));
}

#[test]
fn references_of_another_file_are_refused_in_fields_too() {
    let (file, other) = (File::in_memory().unwrap(), File::in_memory().unwrap());
    let table = rows(&file);
    other.create_group("g").unwrap();
    let mut row = table.read::<Row>(0).unwrap().remove(0);
    row.object = Some(other.reference("g").unwrap());
    let error = table.write(1, &[row]).unwrap_err();
    assert!(error.to_string().contains("another file"), "{error}");
}

#[test]
fn references_go_into_values_and_back() {
    let file = File::in_memory().unwrap();
    let table = rows(&file);
    let value = table.read_values(0).unwrap().remove(0);
    let object = file.reference_of(value.member("object").unwrap()).unwrap();
    assert_eq!(object, Some(file.reference("data").unwrap()));
    let part = file.reference_of(&value.member("parts").unwrap().items().unwrap()[0]).unwrap();
    let (data, cells) = file.dereference_region(&part.unwrap()).unwrap();
    assert_eq!(data.read::<i32>(cells).unwrap(), [7; 3]);
    assert!(file.reference_of(&Value::Integer(1)).is_err());
    // A region inside of a compound, made without a word about sizes.
    let region = file.region_reference("data", 0..1).unwrap();
    let regions = file.reference_value(&region, pumice::ReferenceType::Region).unwrap();
    let row = Value::Compound(vec![
        ("label".into(), "made".into()),
        ("parts".into(), Value::Sequence(vec![regions])),
    ]);
    table.write_values(1, &[row]).unwrap();
    let row = table.read::<Row>(1).unwrap().remove(0);
    assert_eq!((row.label.as_str(), row.parts.len(), row.object), ("made", 1, None));
    let (data, cells) = file.dereference_region(&row.parts[0]).unwrap();
    assert_eq!(data.read::<i32>(cells).unwrap(), [7]);
}

#[test]
fn what_has_no_counterpart_is_refused() {
    let file = File::in_memory().unwrap();
    let numbers = file.new_dataset::<i32>().shape([2]).create("numbers").unwrap();
    for error in [
        numbers.read::<String>(..).unwrap_err(),
        numbers.read::<Vec<i32>>(..).unwrap_err(),
        numbers.read::<Sample>(..).unwrap_err(),
        numbers.write(.., &["a", "b"]).unwrap_err(),
    ] {
        assert!(error.to_string().contains("no conversion"), "{error}");
    }
    // As libhdf5 has it, an enumeration is a number.
    numbers.write(.., &[true, false]).unwrap();
    assert_eq!(numbers.read::<i32>(..).unwrap(), [1, 0]);
}
