//! `pumice ls`.

use crate::support::{Place, installed, small};
use pumice::File;

/// A file with a bit of everything that this library writes.
fn everything(place: &Place) {
    let file = File::create(place.path("all.h5")).unwrap();
    let growing = file.new_dataset::<u16>().shape([4, 3]).max_shape([None, Some(3)]);
    let growing = growing.chunk([1, 3]).shuffle().deflate(4).fletcher32();
    growing.create("group/growing").unwrap();
    file.new_dataset::<f64>().create("scalar").unwrap();
    file.new_dataset::<f32>().shape([10, 20]).create("group/deeper/plain").unwrap();
    file.new_dataset::<u8>().shape([0]).create("nothing").unwrap();
    file.set_attribute("title", "everything").unwrap();
    file.close().unwrap();
}

#[test]
fn lists_are_those_of_h5ls() {
    let place = Place::new();
    everything(&place);
    if !installed("h5ls") {
        return;
    }
    for line in ["all.h5", "-r all.h5", "all.h5/group", "-r all.h5/group", "all.h5/group/growing"] {
        let expected = place.command("h5ls").args(line.split(' ')).output().unwrap();
        let expected = String::from_utf8(expected.stdout).unwrap();
        assert_eq!(place.succeed(&format!("ls {line}")), expected, "ls {line}");
    }
}

#[test]
fn values_are_those_of_h5ls() {
    let place = Place::new();
    let file = File::options()
        .library_version(pumice::LibraryVersion::Earliest)
        .create(place.path("v.h5"))
        .unwrap();
    let bytes = file.new_dataset::<u8>().shape([12]).create("bytes").unwrap();
    bytes.write(.., b"text\tand\nso.").unwrap();
    let pair = pumice::Datatype::compound([
        ("a", pumice::Datatype::u16_le()),
        ("b", pumice::Datatype::f32_be()),
    ]);
    file.new_dataset_of(pair).shape([3]).create("pairs").unwrap();
    let many: Vec<i32> = (100..130).collect();
    bytes.set_attribute("many", many.as_slice()).unwrap();
    drop(bytes);
    file.close().unwrap();
    if !installed("h5ls") {
        return;
    }
    for line in ["-l -d", "-d", "-v -a", "-v -d", "-r -v -d -w 60"] {
        let line = format!("{line} v.h5");
        let expected = place.command("h5ls").args(line.split(' ')).output().unwrap();
        let expected = String::from_utf8(expected.stdout).unwrap();
        assert_eq!(place.succeed(&format!("ls {line}")), expected, "ls {line}");
    }
    let shown = place.succeed("ls -x -d v.h5/pairs");
    assert!(shown.contains("00:00:00:00:00:00, "), "{shown}");
}

#[test]
fn details_tell_how_data_is_stored() {
    let place = Place::new();
    everything(&place);
    let expected = "\
Opened \"all.h5\" with sec2 driver.
growing                  Dataset {4/Inf, 3/3}
    Location:  ADDRESS
    Links:     1
    Chunks:    {1, 3} 6 bytes
    Storage:   24 logical bytes, 0 allocated bytes
    Filter-0:  shuffle-2 OPT {2}
    Filter-1:  deflate-1 OPT {4}
    Filter-2:  fletcher32-3  {}
    Type:      native unsigned short
";
    let listing = place.succeed("ls -v all.h5/group/growing");
    let address = listing.lines().nth(2).unwrap().rsplit(' ').next().unwrap();
    assert_eq!(listing, expected.replace("ADDRESS", address));
}

#[test]
fn sparse_datasets_are_marked_and_counted() {
    let place = small();
    assert_eq!(place.succeed("ls small.h5"), "matrix                   Dataset {5, 6} sparse\n");
    let listing = place.succeed("ls -v small.h5/matrix");
    assert!(listing.contains("    Defined:   6 cells, density 20 %, "), "{listing}");
    assert!(listing.contains("    Attribute: source_field scalar\n"), "{listing}");
    assert!(listing.contains("    Sparse Chunks: {"), "{listing}");
    let lines: Vec<&str> = listing.lines().map(str::trim_start).collect();
    for (number, name) in ["selection", "values"].iter().enumerate() {
        let title = format!("Section {number} {name}");
        let at = lines.iter().position(|line| **line == title).expect("a section");
        assert!(lines[at + 1].starts_with("Storage:   ") && lines[at + 1].contains(" allocated"));
        assert!(lines[at + 2].starts_with("Filter-0:  "), "{listing}");
    }
    // What the values of six cells take before filters.
    assert!(listing.contains("    Storage:   48 logical bytes, "), "{listing}");
}
