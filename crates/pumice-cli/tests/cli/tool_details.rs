//! Details of h5dump and h5ls, beside the tools themselves where these are installed.

use crate::support::{Place, installed};
use pumice::types::{ByteOrder, Enumeration, Float};
use pumice::{Dataset, Datatype, File, LibraryVersion, Selection, UNLIMITED};

fn create(file: &File, name: &str, datatype: Datatype, shape: &[u64], data: &[u8]) -> Dataset {
    let dataset = file.new_dataset_of(datatype).shape(shape).create(name).unwrap();
    dataset.write_bytes(Selection::all(), data).unwrap();
    dataset
}

fn old(place: &Place, name: &str) -> File {
    let options = File::options().library_version(LibraryVersion::Earliest);
    options.create(place.path(name)).unwrap()
}

/// Compares what `pumice COMMAND` and a tool print.
fn compare(place: &Place, command: &str, tool: &str, words: &str) {
    let theirs = place.command(tool).args(words.split(' ')).output().unwrap();
    let theirs = String::from_utf8(theirs.stdout).unwrap();
    let ours = place.pumice(&format!("{command} {words}"));
    assert_eq!(ours.out, theirs, "{tool} {words}\n{}", ours.err);
}

/// Compounds of a double, a float, three small integers and a text, and attributes like them.
fn compounds(place: &Place) {
    let file = old(place, "c.h5");
    let triple = Datatype::array(Datatype::i16_le(), vec![3]);
    let text = Datatype::fixed_string(4);
    let members = [
        ("exact", Datatype::f64_le()),
        ("short", Datatype::f32_le()),
        ("three", triple.clone()),
        ("text", text.clone()),
    ];
    let datatype = Datatype::compound(members);
    let mut bytes = Vec::new();
    for number in 1..9i16 {
        bytes.extend_from_slice(&(1.0 / f64::from(number)).to_le_bytes());
        bytes.extend_from_slice(&(1.0 / f32::from(number)).to_le_bytes());
        (0..3).for_each(|step| bytes.extend_from_slice(&(number * 10 + step).to_le_bytes()));
        bytes.extend_from_slice(if number % 2 == 0 { b"a\"\\b" } else { b"c d\0" });
    }
    create(&file, "pairs", datatype, &[8], &bytes);
    let numbers: Vec<u8> = (0..72i16).flat_map(i16::to_le_bytes).collect();
    create(&file, "triples", triple, &[24], &numbers);
    let plain = create(&file, "plain", Datatype::f64_le(), &[3], &bytes[..24]);
    let numbers: Vec<f64> = (1..20).map(|number| 1.0 / f64::from(number)).collect();
    plain.set_attribute("inverse", numbers.as_slice()).unwrap();
    create(&file, "nothing", Datatype::i32_le(), &[0], &[]);
    create(&file, "texts", text, &[2], b"a\"\\bc d\0");
    drop(plain);
    file.close().unwrap();
}

#[test]
fn h5ls_prints_doubles_in_full_and_breaks_compounds() {
    let place = Place::new();
    compounds(&place);
    let told = place.succeed("ls -d c.h5/plain");
    assert!(told.contains("Data:\n         1, "), "{told}");
    let told = place.succeed("ls -d c.h5/pairs");
    assert!(told.contains("{0.333333333333333, 0.333333, [30,31,32], "), "{told}");
    if installed("h5ls") {
        for flags in ["-d", "-d -w60", "-d -w33", "-d -w0", "-l -d", "-S -d", "-S -l -d", "-v -d"] {
            compare(&place, "ls", "h5ls", &format!("{flags} c.h5"));
        }
    }
}

#[test]
fn h5ls_lists_where_data_is_that_is_elsewhere() {
    let place = Place::new();
    let file = old(&place, "e.h5");
    let outside = file.new_dataset::<i32>().shape([10]);
    outside.external("one file", 8, Some(20)).external("b", 0, None).create("outside").unwrap();
    file.close().unwrap();
    let file = File::create(place.path("v.h5")).unwrap();
    let every = Selection::hyperslab(&[0], &[3], &[UNLIMITED], &[2]).unwrap();
    let all = file.new_dataset::<i32>().shape([0]).max_shape([None]).fill_value(-1);
    all.virtual_part(every, "part-%b.h5", "a b", Selection::all()).create("v").unwrap();
    file.close().unwrap();
    let told = place.succeed("ls -v e.h5");
    assert!(told.contains("    Extern:    2 external files\n"), "{told}");
    assert!(told.contains("        #001         20          0        INF b\n"), "{told}");
    let told = place.succeed("ls -v v.h5");
    let maps =
        "    Maps:      {1} Source {\n                      part-%b.h5   a\\ b\n               }\n";
    assert!(told.contains(maps), "{told}");
    if installed("h5ls") {
        compare(&place, "ls", "h5ls", "-v e.h5");
        compare(&place, "ls", "h5ls", "-v v.h5");
    }
}

#[test]
fn a_group_itself_is_not_listed_recursively() {
    let place = Place::new();
    compounds(&place);
    let run = place.pumice("ls -g -r c.h5");
    assert!(run.code != Some(0) && run.err.contains("--recursive"), "{}", run.err);
}

#[test]
fn xml_has_enumerations_and_nested_texts_as_h5dump_prints_them() {
    let place = Place::new();
    let file = old(&place, "x.h5");
    let Datatype::Integer(base) = Datatype::i16_le() else { panic!("an integer") };
    let values = Enumeration::new(base).with("R<", &[0, 0]).with("G\"", &[1, 0]);
    let colour = Datatype::Enum(values.with("B", &(-2i16).to_le_bytes()));
    let bytes: Vec<u8> = [0i16, 1, -2, 7].iter().flat_map(|number| number.to_le_bytes()).collect();
    create(&file, "colours", colour.clone(), &[4], &bytes);
    let pair = Datatype::compound([("a&b", colour), ("text", Datatype::fixed_string(4))]);
    create(&file, "pairs", pair, &[1], b"\x01\0q&\"\0");
    create(&file, "texts", Datatype::fixed_string(4), &[1], b"q&\"\0");
    file.close().unwrap();
    let told = place.succeed("dump -d colours x.h5");
    assert!(told.contains("(0): R<, G\\\", B, "), "{told}");
    let told = place.succeed("dump -x x.h5");
    let nested = "            <hdf5:EnumType Nelems=\"3\">\n            <hdf5:DataType>\n            <hdf5:AtomicType>\n";
    assert!(told.contains(nested), "{told}");
    if installed("h5dump") {
        for flags in ["-x", "-u", "-d colours", "-d pairs"] {
            compare(&place, "dump", "h5dump", &format!("{flags} x.h5"));
        }
    }
}

#[test]
fn bits_that_integers_do_not_have_are_told() {
    let place = Place::new();
    let file = old(&place, "b.h5");
    create(&file, "bytes", Datatype::u8(), &[2], &[255, 7]);
    file.close().unwrap();
    let run = place.pumice("dump -d bytes -M 6,4 b.h5");
    let told = "Packed Bit offset+length value(10) too large. Max is 8";
    assert!(run.code == Some(0) && run.err.contains(told), "{}", run.err);
    let run = place.pumice("dump -d bytes -M 0,1,2 b.h5");
    assert!(run.err.contains("missing expected comma separator."), "{}", run.err);
    if installed("h5dump") {
        compare(&place, "dump", "h5dump", "-d bytes -M 6,4 b.h5");
    }
}

#[test]
fn floats_of_vax_are_written_as_ieee_has_them() {
    let place = Place::new();
    let file = old(&place, "vax.h5");
    let plain = Float::ieee(8, ByteOrder::Vax, 11, 52);
    let vax = Float { exponent_bias: plain.exponent_bias + 2, ..plain };
    let dataset = file.new_dataset_of(Datatype::Float(vax)).shape([3]).create("d").unwrap();
    let values = [1.0f64, -2.5, 0.0];
    dataset.write(.., &values).unwrap();
    drop(dataset);
    file.close().unwrap();
    for (form, turn) in [("LE", false), ("BE", true), ("NATIVE", false)] {
        place.succeed(&format!("dump -d d -o out.bin -b {form} --force vax.h5"));
        let bytes = std::fs::read(place.path("out.bin")).unwrap();
        let wanted =
            values.map(|value| if turn { value.to_be_bytes() } else { value.to_le_bytes() });
        assert_eq!(bytes, wanted.concat(), "{form}");
        std::fs::remove_file(place.path("out.bin")).unwrap();
        if installed("h5dump") {
            let words = ["-d", "d", "-o", "theirs.bin", "-b", form, "vax.h5"];
            assert!(place.command("h5dump").args(words).output().unwrap().status.success());
            assert_eq!(std::fs::read(place.path("theirs.bin")).unwrap(), bytes, "{form}");
        }
    }
}

#[test]
fn the_second_link_that_leads_nowhere_is_called_visited() {
    let place = Place::new();
    let file = old(&place, "links.h5");
    file.create_external_link("one", "absent.h5", "/").unwrap();
    file.create_external_link("two", "absent.h5", "/").unwrap();
    file.close().unwrap();
    let listed = place.succeed("ls -r --follow-symlinks links.h5");
    assert_eq!(listed.matches("{Already Visited}").count(), 1, "{listed}");
    if installed("h5ls") {
        compare(&place, "ls", "h5ls", "-r --follow-symlinks links.h5");
    }
}
