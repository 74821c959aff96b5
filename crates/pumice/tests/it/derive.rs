//! derive(H5Type): datatypes of structs and enums, and elements that go by them.
use pumice::types::{Enumeration, FixedText, Member};
use pumice::{Datatype, File, H5Type};

#[derive(H5Type, Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Inner {
    a: i16,
    b: [u8; 2],
}

#[derive(H5Type, Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Outer {
    x: f64,
    #[h5(rename = "the inner one")]
    inner: Inner,
    grid: [[i16; 3]; 2],
    text: FixedText<8>,
    r#type: u32,
    last: [Inner; 1],
}

#[derive(H5Type, Clone, Copy, Debug, PartialEq)]
#[repr(i16)]
enum Color {
    Red = -1,
    Green,
    #[h5(rename = "dark blue")]
    Blue = 300,
}

fn outer(seed: u8) -> Outer {
    let inner = Inner { a: -i16::from(seed), b: [seed, seed + 1] };
    let text = FixedText::new(&format!("text {seed}")).unwrap();
    let grid = [[1, 2, 3], [i16::from(seed); 3]];
    Outer { x: f64::from(seed) / 3.0, inner, grid, text, r#type: u32::from(seed), last: [inner] }
}

#[test]
fn a_struct_is_a_compound_at_the_offsets_of_its_fields() {
    let Datatype::Compound(compound) = Outer::datatype() else { panic!() };
    assert_eq!(compound.size as usize, size_of::<Outer>());
    let names: Vec<_> = compound.members.iter().map(|Member { name, .. }| name.as_str()).collect();
    assert_eq!(names, ["x", "the inner one", "grid", "text", "type", "last"]);
    let offsets: Vec<_> = compound.members.iter().map(|member| member.offset).collect();
    assert_eq!(offsets, [0, 8, 12, 24, 32, 36]);
    assert_eq!(compound.members[2].datatype, Datatype::array(i16::datatype(), [2, 3]));
    assert_eq!(compound.members[5].datatype, Datatype::array(Inner::datatype(), [1]));
}

#[test]
fn structs_come_back_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("structs.h5");
    let values: Vec<Outer> = (0..20).map(outer).collect();
    {
        let file = File::create(&path).unwrap();
        let dataset = file.new_dataset::<Outer>().shape([4, 5]).chunk([3, 3]).deflate(1);
        dataset.create("d").unwrap().write(.., &values).unwrap();
        file.close().unwrap();
    }
    let dataset = File::open(&path).unwrap().dataset("d").unwrap();
    assert_eq!(dataset.read::<Outer>(..).unwrap(), values);
}

#[test]
fn an_enum_is_an_enumeration_and_goes_by_name() {
    let Datatype::Enum(names) = Color::datatype() else { panic!() };
    let wanted = [("Red", -1i16), ("Green", 0), ("dark blue", 300)];
    let wanted: Vec<_> = wanted.iter().map(|(name, n)| (*name, n.to_ne_bytes())).collect();
    let found: Vec<_> = names.members().map(|(name, bytes)| (name, [bytes[0], bytes[1]])).collect();
    assert_eq!(found, wanted);

    let file = File::in_memory().unwrap();
    let dataset = file.new_dataset::<Color>().shape([2]).create("colors").unwrap();
    dataset.write(.., &[Color::Blue, Color::Green]).unwrap();
    assert_eq!(dataset.read::<i16>(..).unwrap(), [300, 0]);
    assert_eq!(dataset.read::<Color>(..).unwrap(), [Color::Blue, Color::Green]);
    dataset.write(1..2, &[7i16]).unwrap_err();
    dataset.write_bytes(1..2, &7i16.to_ne_bytes()).unwrap();
    assert!(dataset.read::<Color>(..).is_err(), "7 has no name");
}

#[test]
fn an_enumeration_with_other_numbers_is_read_by_name() {
    let byte = pumice::types::Integer::new(1, pumice::types::ByteOrder::Little, false);
    let known = Enumeration::new(byte).with("dark blue", &[1]).with("Red", &[2]);
    let file = File::in_memory().unwrap();
    let create = |names: Enumeration, path: &str| {
        let dataset = file.new_dataset_of(Datatype::Enum(names)).shape([2]).create(path).unwrap();
        dataset.write_bytes(.., &[2, 1]).unwrap();
        dataset
    };
    let read = create(known.clone(), "known").read::<Color>(..);
    assert_eq!(read.unwrap(), [Color::Red, Color::Blue]);
    // As in libhdf5, every name must be known, whether or not it is met.
    assert!(create(known.with("Sun", &[3]), "more").read::<Color>(..).is_err());
}
