//! `pumice dump`.

use crate::support::{Place, installed, small};
use pumice::types::{ByteOrder, CharacterSet, Integer, StringPadding};
use pumice::types::{Datatype, Enumeration, FixedString};
use pumice::{Dataset, File, Selection, UNLIMITED};

fn bytes<const N: usize>(values: impl IntoIterator<Item = [u8; N]>) -> Vec<u8> {
    values.into_iter().flatten().collect()
}

fn create(file: &File, name: &str, datatype: Datatype, shape: &[u64], data: &[u8]) -> Dataset {
    let dataset = file.new_dataset_of(datatype).shape(shape).create(name).unwrap();
    dataset.write_bytes(.., data).unwrap();
    dataset
}

/// Numbers of all kinds and shapes.
fn numbers(file: &File) {
    let floats = (0..200).map(|i| (f64::from(i) / 99.5 - 1.0).to_le_bytes());
    create(file, "f64", Datatype::f64_le(), &[4, 50], &bytes(floats));
    let special = [0.0, -0.0, 1e300, 1e5, 1e6, 123456789.0, 1e-5, 0.1, f64::INFINITY, f64::NAN];
    create(file, "special", Datatype::f64_le(), &[10], &bytes(special.map(f64::to_le_bytes)));
    let singles = (0..24).map(|i| (i as f32 / 7.0).to_be_bytes());
    create(file, "f32be", Datatype::f32_be(), &[2, 3, 4], &bytes(singles));
    let cubes = (0..3000i64).map(|i| (i * i * i - 1000).to_le_bytes());
    create(file, "i64", Datatype::i64_le(), &[3000], &bytes(cubes));
    let words = (0..60u16).map(|i| (i * 1000).to_be_bytes());
    create(file, "u16be", Datatype::u16_be(), &[6, 10], &bytes(words));
    create(file, "i8", Datatype::i8(), &[4], &[0, 127, 128, 255]);
    create(file, "column", Datatype::u8(), &[3, 1], &[1, 2, 3]);
    file.new_dataset::<i32>().create("scalar").unwrap().write(.., &[-5]).unwrap();
    file.new_dataset::<i32>().shape([3, 0]).create("none").unwrap();
    let growing = file.new_dataset::<u32>().shape([5, 3]).max_shape([None, Some(9)]);
    let growing = growing.chunk([2, 2]).deflate(1).create("growing").unwrap();
    growing.write((0..3, ..), &[7u32, 8, 9, 10, 11, 12, 13, 14, 15]).unwrap();
}

/// Texts, names and composed elements.
fn composed(file: &File) {
    for (name, padding) in [
        ("terminated", StringPadding::NullTerminate),
        ("padded", StringPadding::NullPad),
        ("spaced", StringPadding::SpacePad),
    ] {
        let string = FixedString { size: 10, padding, charset: CharacterSet::Ascii };
        let data = b"hello\0\0\0\0\0wide world\0\0\0\0\0\0\0\0\0\0a\"b\\c\td\ne\0ends      ";
        create(file, name, Datatype::String(string), &[5], data);
    }
    create(file, "long", Datatype::fixed_string(100), &[2], &[b'x'; 200]);
    let point = Datatype::compound([("x", Datatype::i32_le()), ("y", Datatype::f64_le())]);
    let grid = Datatype::array(Datatype::u8(), vec![2, 3]);
    let nested = Datatype::compound([("p", point.clone()), ("grid", grid.clone())]);
    let data: Vec<u8> = (0..3 * nested.size()).map(|i| i as u8 % 50).collect();
    create(file, "point", point, &[3], &data[..36]);
    create(file, "nested", nested, &[3], &data);
    create(file, "grid", grid.clone(), &[2, 2], &data[..24]);
    create(file, "grids", Datatype::array(grid, vec![2, 2]), &[2], &data[..48]);
    let one = Datatype::compound([("a", Datatype::u8())]);
    create(file, "one", one, &[4], &[1, 2, 3, 4]);
    let colours = Enumeration::new(Integer::new(2, ByteOrder::Little, true));
    let colours = colours.with("RED", &[0, 0]).with("BLUE", &[42, 0]);
    create(file, "colours", Datatype::Enum(colours), &[3], &[0, 0, 42, 0, 9, 1]);
    create(file, "opaque", Datatype::opaque(3, "tag"), &[2], b"abc\0\x01\x02");
}

fn example(place: &Place) {
    let file = File::create(place.path("all.h5")).unwrap();
    numbers(&file);
    let group = file.create_group("group").unwrap();
    group.set_attribute("unit", "mm").unwrap();
    group.set_attribute("vector", (0..30).collect::<Vec<i64>>().as_slice()).unwrap();
    let deeper = group.new_dataset::<u8>().shape([3]).create("deeper/bytes").unwrap();
    deeper.write(.., &[1u8, 2, 3]).unwrap();
    deeper.set_attribute("scale", 0.5f32).unwrap();
    drop((deeper, group));
    file.close().unwrap();
    let file = File::create(place.path("composed.h5")).unwrap();
    composed(&file);
    file.close().unwrap();
}

#[test]
fn dense_files_are_dumped_byte_for_byte_as_h5dump_does() {
    if !installed("h5dump") {
        return;
    }
    let place = Place::new();
    example(&place);
    let compare = |line: &str| {
        let expected = place.command("h5dump").args(line.split(' ')).output().unwrap();
        assert!(expected.status.success(), "h5dump {line}");
        let expected = String::from_utf8(expected.stdout).unwrap();
        assert_eq!(place.succeed(&format!("dump {line}")), expected, "dump {line}");
    };
    for file in ["all.h5", "composed.h5"] {
        for options in ["", "-H ", "-A "] {
            compare(&format!("{options}{file}"));
        }
    }
    for options in [
        "-d /f64",
        "-d f64 -d i8",
        "-d group/deeper/bytes",
        "-d u16be -s 1,2 -c 2,3 -S 2,2",
        "-d u16be -s 0,0 -c 2,2 -S 3,4 -k 2,3",
        "-d f64 -s 0,2 -c 2,22 -S 2,2",
        "-d f32be -s 0,0,1 -c 2,2,2",
        "-d f32be -c 2,3,4",
        "-d i64 -s 10 -c 200 -S 7",
        "-d i64 -k 20",
        "-d i64",
    ] {
        compare(&format!("{options} all.h5"));
    }
    compare("-d point -s 1 -c 2 composed.h5");
}

#[test]
fn sparse_datasets_are_dumped_by_defined_cells() {
    let place = small();
    let expected = "\
HDF5 \"small.h5\" {
DATASET \"matrix\" {
   DATATYPE  H5T_IEEE_F64LE
   DATASPACE  SIMPLE { ( 5, 6 ) / ( 5, 6 ) }
   SPARSE { DEFINED 6 OF 30 }
   DATA {
   (0,0): 1.5, -2,
   (1,3): 1e-07,
   (2,2): 0,
   (4,4): 3, 1.23457e+08
   }
";
    let dump = place.succeed("dump small.h5 -d matrix");
    assert!(dump.starts_with(expected), "{dump}");
    let header = place.succeed("dump -H small.h5");
    assert!(header.contains("\n      SPARSE\n") && !header.contains("DATA {"), "{header}");
}

#[test]
fn sparse_datasets_can_be_dumped_densely() {
    let place = small();
    let dump = place.succeed("dump small.h5 -d matrix --dense");
    let expected = "   DATA {\n   (0,0): 1.5, -2, 0, 0, 0, 0,\n   (1,0): 0, 0, 0, 1e-07, 0, 0,\n";
    assert!(dump.contains(expected) && !dump.contains("SPARSE"), "{dump}");
}

#[test]
fn sparse_cells_of_other_types_are_dumped_in_order() {
    let place = Place::new();
    let file = File::create(place.path("s.h5")).unwrap();
    let pair = Datatype::compound([("a", Datatype::u8()), ("b", Datatype::i16_be())]);
    let builder = file.new_dataset_of(pair).shape([4, 4]).chunk([2, 2]).sparse();
    let dataset = builder.create("pairs").unwrap();
    let points = pumice::Selection::points(2, vec![3, 3, 0, 2, 0, 1]).unwrap();
    dataset.write_bytes(points, &[1, 0, 2, 3, 0, 4, 5, 0, 6]).unwrap();
    let ones =
        file.new_dataset::<u8>().shape([4, 4]).chunk([2, 2]).sparse().create("ones").unwrap();
    ones.write((0..1, ..), &[1u8; 4]).unwrap();
    drop((dataset, ones));
    file.close().unwrap();
    let dump = place.succeed("dump s.h5 -d pairs -d ones");
    let compact: String = dump.split_whitespace().collect();
    assert!(compact.contains("DATA{(0,1):{5,6},{3,4},(3,3):{1,2}}"), "{dump}");
    assert!(dump.contains("   (0,0): 1, 1, 1, 1\n"), "{dump}");
}

#[test]
fn what_cannot_be_printed_does_not_hide_the_rest() {
    let place = small();
    let run = place.pumice("dump small.h5 -d nowhere -d matrix");
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("nowhere") && run.out.contains("(1,3): 1e-07"), "{}", run.out);
}

#[test]
fn virtual_datasets_and_external_links_are_followed_as_h5dump_does() {
    let place = Place::new();
    for number in [0, 1, 3, 6] {
        let file = File::create(place.path(&format!("part-{number}.h5"))).unwrap();
        let part = file.new_dataset::<i32>().shape([2]).create("a").unwrap();
        part.write(.., &[number, number + 10]).unwrap();
        file.create_external_link("back", "all.h5", "/").unwrap();
        file.create_group("g/h").unwrap();
        file.create_hard_link("g/same", "a").unwrap();
        file.close().unwrap();
    }
    let file = File::create(place.path("all.h5")).unwrap();
    let every = Selection::hyperslab(&[0], &[3], &[UNLIMITED], &[2]).unwrap();
    let all = file.new_dataset::<i32>().shape([0]).max_shape([None]).fill_value(-1);
    all.virtual_part(every, "part-%b.h5", "a", Selection::all()).create("v").unwrap();
    file.create_external_link("group", "part-0.h5", "g").unwrap();
    file.create_external_link("group again", "part-0.h5", "g").unwrap();
    file.create_external_link("whole", "part-1.h5", "/").unwrap();
    file.create_external_link("nothing", "part-9.h5", "/").unwrap();
    file.close().unwrap();

    let reached = |flags: &str| {
        let run = place.pumice(&format!("dump -y -w 0 {flags} -d v all.h5"));
        assert_eq!(run.code, Some(0), "{}", run.err);
        let line = run.out.lines().find(|line| line.contains("DATASPACE")).unwrap().to_owned();
        let shape = line.split("( ").nth(1).unwrap().split(' ').next().unwrap();
        shape.parse::<u64>().unwrap()
    };
    assert_eq!(reached(""), 5, "up to the first part that is missing");
    assert_eq!(reached("--vds-gap-size=1"), 11, "part 2 may be missing");
    assert_eq!(reached("--vds-gap-size=2"), 20, "parts 4 and 5, too");
    assert_eq!(reached("--vds-view-first-missing"), 6, "with the cell behind part 1");
    if !installed("h5dump") {
        return;
    }
    for flags in ["", "--vds-gap-size=1", "--vds-gap-size=2", "--vds-view-first-missing"] {
        let words = format!("{flags} all.h5");
        let words: Vec<_> = words.split_whitespace().collect();
        let theirs = place.command("h5dump").args(&words).output().unwrap();
        let ours = place.run(&[&["dump"], words.as_slice()].concat());
        assert_eq!(ours.out, String::from_utf8(theirs.stdout).unwrap(), "{flags}");
    }
}

/// Three sources in turn, of which one is missing: a view up to the first missing one is empty.
#[test]
fn virtual_datasets_end_before_a_source_that_is_missing() {
    let place = Place::new();
    for name in ["one.h5", "three.h5"] {
        let file = File::create(place.path(name)).unwrap();
        let part = file.new_dataset::<i32>().shape([3]).max_shape([None]).chunk([2]);
        part.create("a").unwrap().write(.., &[1, 2, 3]).unwrap();
        file.close().unwrap();
    }
    let all = File::create(place.path("all.h5")).unwrap();
    let endless = Selection::hyperslab(&[0], &[1], &[UNLIMITED], &[1]).unwrap();
    for (name, order) in
        [("second", ["one.h5", "two.h5", "three.h5"]), ("none", ["one.h5", "one.h5", "three.h5"])]
    {
        let mut builder = all.new_dataset::<i32>().shape([0]).max_shape([None]).fill_value(-1);
        for (number, source) in (0..).zip(order) {
            let every = Selection::hyperslab(&[number], &[3], &[UNLIMITED], &[1]).unwrap();
            builder = builder.virtual_part(every, source, "a", endless.clone());
        }
        builder.create(name).unwrap();
    }
    // The third source has fewer cells: the others are cut where it ends.
    let fewer = File::open_rw(place.path("three.h5")).unwrap();
    fewer.dataset("a").unwrap().resize([2]).unwrap();
    fewer.close().unwrap();
    all.close().unwrap();
    let told = place.succeed("dump --vds-view-first-missing all.h5");
    assert!(told.contains("DATASPACE  SIMPLE { ( 0 ) / ( H5S_UNLIMITED ) }"), "{told}");
    assert!(told.contains("(0): 1, 1, 1, 2, 2, 2"), "{told}");
    if installed("h5dump") {
        for flags in ["-v", "", "-G 2", "-v -p"] {
            let words: Vec<_> = flags.split_whitespace().chain(["all.h5"]).collect();
            let theirs = place.command("h5dump").args(&words).output().unwrap();
            let ours = place.run(&[&["dump"], words.as_slice()].concat());
            assert_eq!(ours.out, String::from_utf8(theirs.stdout).unwrap(), "{flags}");
        }
    }
}

#[test]
fn fill_values_are_printed_with_what_they_refer_to() {
    let place = Place::new();
    let file = File::create(place.path("fill.h5")).unwrap();
    let new = || file.new_strings().shape([4, 5]).fill(pumice::Value::from("none"));
    new().create("plain").unwrap().write_strings((0, 0), &["a"]).unwrap();
    new().chunk([2, 2]).create("chunked").unwrap();
    drop(file);
    let file = File::create(place.path("sparse.h5")).unwrap();
    let list = pumice::Value::Sequence(vec![pumice::Value::Integer(1), pumice::Value::Integer(2)]);
    file.new_strings()
        .shape([4])
        .sparse()
        .fill(pumice::Value::from("unknown"))
        .create("s")
        .unwrap();
    file.new_sequences(Datatype::i16_le()).shape([4]).fill(list).create("q").unwrap();
    drop(file);
    let told = place.succeed("dump -p -H sparse.h5");
    assert!(told.contains("VALUE  \"unknown\""), "{told}");
    assert!(told.contains("VALUE  (1, 2)"), "{told}");
    let told = place.succeed("dump -p -H fill.h5");
    assert_eq!(told.matches("VALUE  \"none\"").count(), 2, "{told}");
    if installed("h5dump") {
        let theirs = place.command("h5dump").args(["-p", "-H", "fill.h5"]).output().unwrap();
        assert_eq!(told, String::from_utf8(theirs.stdout).unwrap());
    }
}

#[test]
fn sparse_references_to_regions_are_printed_as_what_they_lead_to() {
    use pumice::types::{Reference, ReferenceKind};
    let place = Place::new();
    let file = File::create(place.path("regions.h5")).unwrap();
    let data = file.new_dataset::<i32>().shape([3, 4]).create("a").unwrap();
    data.write(.., &(0..12).collect::<Vec<i32>>()).unwrap();
    let region = Datatype::Reference(Reference { size: 12, kind: ReferenceKind::Region });
    let regions = file.new_dataset_of(region).shape([9]).sparse().create("b").unwrap();
    let block = file.region_reference("a", (0..2, 1..3)).unwrap();
    regions.write_references(1..3, &[Some(block.clone()), None]).unwrap();
    regions.write_references(7, &[Some(block)]).unwrap();
    file.new_dataset::<i32>().shape([2]).sparse().create("c").unwrap();
    drop((data, regions, file));
    let told = place.succeed("dump --sparse regions.h5");
    for part in ["REGION_TYPE BLOCK  (1)-(2)\n", "REGION_TYPE POINT  (7)\n", "DATASET \"c\" {"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let led = "DATASET \"regions.h5/a\" {";
    assert_eq!(told.matches(led).count(), 2, "{told}");
    assert_eq!(told.matches("REGION_TYPE BLOCK  (0,1)-(1,2)\n").count(), 2, "{told}");
    assert_eq!(told.matches("NULL\n").count(), 1, "{told}");
    assert_eq!(told.matches('{').count(), told.matches('}').count(), "{told}");
}

/// Cells are shown in the order of their numbers, and compared by them.
#[test]
fn arrays_whose_cells_have_no_numbers_are_refused_by_what_needs_these() {
    let place = Place::new();
    let file = File::create(place.path("vast.h5")).unwrap();
    let far = u64::MAX - 2;
    let vast = file.new_dataset::<i32>().shape([far + 1; 2]).sparse().create("d").unwrap();
    vast.write_points(&[[0, 0], [far, far], [5, far]], &[1, 2, 3]).unwrap();
    drop(vast);
    file.close().unwrap();
    assert_eq!(place.pumice("check vast.h5").code, Some(0));
    let listed = place.pumice("ls -v vast.h5");
    assert!(listed.out.contains("3 cells"), "{}{}", listed.out, listed.err);
    assert_eq!(place.pumice("repack vast.h5 copy.h5").code, Some(0));
    let copy = File::open(place.path("copy.h5")).unwrap().dataset("d").unwrap();
    assert_eq!(copy.read::<i32>((far, far)).unwrap(), [2]);
    for line in ["dump vast.h5", "dump --sparse vast.h5", "diff vast.h5 copy.h5", "spy vast.h5"] {
        let run = place.pumice(line);
        assert_ne!(run.code, Some(0), "{line}: {}", run.out);
        assert!(run.err.contains("more than 2^64 cells"), "{line}: {}", run.err);
    }
}
