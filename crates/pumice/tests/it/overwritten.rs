//! What is overwritten once per opening does not make the file grow, where free space is not remembered:
//! closing moves it to where the old was.

use pumice::{File, FileOptions, FileSpaceStrategy, LibraryVersion, Selection};
use std::path::Path;

const OPENINGS: u32 = 6;

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

/// Values that take as many bytes each time, compressed or not, but for a few.
fn values(round: u32) -> Vec<u32> {
    let mut state = round.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        // Two of four bytes are noise.
        state & 0x00ff_00ff
    };
    (0..60_000).map(next).collect()
}

fn texts(round: u32) -> Vec<String> {
    (0..3000).map(|number| format!("string {number:6} of round {round:6}, no longer")).collect()
}

fn make(file: &File, layout: &str) {
    let builder = file.new_dataset::<u32>().shape([300, 200]);
    match layout {
        "single" => drop(builder.chunk([300, 200]).fletcher32().create("data").unwrap()),
        "fixed" => drop(builder.chunk([30, 30]).deflate(1).create("data").unwrap()),
        "extensible" => {
            let builder = builder.max_shape([None, Some(200)]).chunk([30, 30]);
            builder.deflate(1).create("data").unwrap();
        }
        "tree" => {
            let builder = builder.max_shape([None, None]).chunk([30, 30]);
            builder.deflate(1).create("data").unwrap();
        }
        "sparse" => drop(builder.chunk([30, 30]).sparse().create("data").unwrap()),
        "strings" => drop(file.new_strings().shape([3000]).create("data").unwrap()),
        "strings in chunks" => {
            file.new_strings().shape([3000]).chunk([700]).create("data").unwrap();
        }
        "compressed strings" => {
            file.new_strings().shape([3000]).chunk([700]).deflate(1).create("data").unwrap();
        }
        other => panic!("no layout {other}"),
    }
}

const LAYOUTS: [&str; 8] = [
    "single",
    "fixed",
    "extensible",
    "tree",
    "sparse",
    "strings",
    "strings in chunks",
    "compressed strings",
];

/// Overwrites all values, in one call or in several.
fn write(file: &File, layout: &str, round: u32) {
    let data = file.dataset("data").unwrap();
    match layout.contains("strings") {
        true if round.is_multiple_of(2) => {
            for (number, texts) in texts(round).chunks(100).enumerate() {
                let first = 100 * number as u64;
                data.write_strings(first..first + 100, texts).unwrap();
            }
        }
        true => data.write_strings(.., &texts(round)).unwrap(),
        false => data.write(Selection::all(), &values(round)).unwrap(),
    }
}

fn check(path: &Path, layout: &str, round: u32) {
    let file = File::open(path).unwrap();
    let data = file.dataset("data").unwrap();
    match layout.contains("strings") {
        true => assert_eq!(data.read_strings(..).unwrap(), texts(round), "{layout}"),
        false => assert_eq!(data.read::<u32>(Selection::all()).unwrap(), values(round), "{layout}"),
    }
    let beside = file.dataset("beside").unwrap().read::<u8>(..).unwrap();
    assert_eq!(beside, [7; 50_000], "{layout}");
}

fn files() -> Vec<(&'static str, FileOptions)> {
    vec![
        ("new format", File::options()),
        ("old format", File::options().library_version(LibraryVersion::Earliest)),
        ("end of file", File::options().space_strategy(FileSpaceStrategy::EndOfFile)),
    ]
}

#[test]
fn a_large_file_that_is_overwritten_grows_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let values = |round: u32| -> Vec<u32> { (0..2_500_000).map(|number| number ^ round).collect() };
    let file = File::create(&path).unwrap();
    let builder = file.new_dataset::<u32>().shape([2_500_000]).chunk([100_000]);
    builder.fletcher32().create("data").unwrap().write(.., &values(0)).unwrap();
    file.close().unwrap();
    let mut lengths = vec![length(&path)];
    for round in 1..=4 {
        let file = File::edit(&path).unwrap();
        file.dataset("data").unwrap().write(.., &values(round)).unwrap();
        file.close().unwrap();
        lengths.push(length(&path));
    }
    let read = File::open(&path).unwrap().dataset("data").unwrap().read::<u32>(..).unwrap();
    assert_eq!(read, values(4));
    // Once there is no time for more than writing; then the room of the old is used.
    assert!(lengths[1] < lengths[0] * 21 / 10, "{lengths:?}");
    assert!(lengths[4] < lengths[1] * 21 / 20, "{lengths:?}");
}

#[test]
fn what_is_overwritten_once_per_opening_does_not_make_the_file_grow() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    for (kind, options) in files() {
        for layout in LAYOUTS {
            if layout == "sparse" && kind == "old format" {
                continue;
            }
            let file = options.clone().create(&path).unwrap();
            make(&file, layout);
            write(&file, layout, 0);
            file.new_dataset::<u8>().shape([50_000]).create("beside").unwrap();
            file.dataset("beside").unwrap().write(.., &[7; 50_000]).unwrap();
            file.close().unwrap();
            let first = length(&path);
            for round in 1..=OPENINGS {
                let file = File::edit(&path).unwrap();
                write(&file, layout, round);
                file.close().unwrap();
                check(&path, layout, round);
            }
            let now = length(&path);
            assert!(now < first * 6 / 5, "{kind}, {layout}: {first} to {now} bytes");
        }
    }
}
