//! A dataset that takes the place of a deleted one of the same size does not make the file grow, whatever
//! its layout and the file's strategy.

use pumice::{
    AllocationTime, CopyOptions, File, FileOptions, FileSpaceStrategy, LibraryVersion, Selection,
};
use std::path::Path;

const COUNT: u64 = 4000;
/// What pieces of other sizes in the hole of a dataset may cost: a page, or two nodes of a B-tree. A quarter of
/// what a dataset takes.
const PIECES: u64 = 4096;

const LAYOUTS: [&str; 12] = [
    "compact",
    "contiguous",
    "single",
    "implicit",
    "fixed",
    "fixed, filtered",
    "extensible",
    "extensible, filtered",
    "tree",
    "tree, filtered",
    "sparse",
    "strings",
];

fn values() -> Vec<u32> {
    (0..COUNT as u32).map(|value| value.wrapping_mul(2_654_435_761)).collect()
}

fn make(file: &File, layout: &str, name: &str) {
    let line = || file.new_dataset::<u32>().shape([COUNT]);
    let new = match layout {
        "compact" => line().compact(),
        "contiguous" => line(),
        "single" => line().chunk([COUNT]),
        "implicit" => line().chunk([100]).allocation_time(AllocationTime::Early),
        "fixed" => line().chunk([100]),
        "fixed, filtered" => line().chunk([100]).deflate(4),
        "extensible" => line().max_shape([None]).chunk([100]),
        "extensible, filtered" => line().max_shape([None]).chunk([100]).deflate(4),
        "tree" | "tree, filtered" => {
            let rows = file.new_dataset::<u32>().shape([COUNT / 40, 40]);
            rows.max_shape([None, None]).chunk([10, 10])
        }
        "sparse" => line().chunk([400]).sparse(),
        "strings" => return make_strings(file, name),
        other => panic!("no layout {other}"),
    };
    let new = if layout == "tree, filtered" { new.deflate(4) } else { new };
    new.create(name).unwrap().write(Selection::all(), &values()).unwrap();
}

fn strings() -> Vec<String> {
    (0..COUNT / 10).map(|at| format!("string {at} of many")).collect()
}

fn make_strings(file: &File, name: &str) {
    let dataset = file.new_strings().shape([COUNT / 10]).create(name).unwrap();
    dataset.write_strings(.., &strings()).unwrap();
}

fn length(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

fn strategies() -> Vec<(&'static str, FileOptions, bool)> {
    let with = |strategy| File::options().space_strategy(strategy);
    let managers = FileSpaceStrategy::FreeSpaceManagers;
    vec![
        ("managers", with(managers), false),
        ("managers, remembered", with(managers).persist_free_space(true), true),
        ("pages", with(FileSpaceStrategy::Paged), false),
        ("pages, remembered", with(FileSpaceStrategy::Paged).persist_free_space(true), true),
        ("aggregators", with(FileSpaceStrategy::Aggregators), false),
        ("end of file", with(FileSpaceStrategy::EndOfFile), false),
    ]
}

/// Calls `check` with a file of three datasets for every layout, strategy and version, and whether the file
/// remembers free space.
fn with_every_file(check: impl Fn(&Path, &str, bool, &str)) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    for (strategy, options, remembers) in strategies() {
        for version in [LibraryVersion::Earliest, LibraryVersion::V110] {
            for layout in LAYOUTS {
                let file = options.clone().library_version(version).create(&path).unwrap();
                ["before", "a", "after"].iter().for_each(|name| make(&file, layout, name));
                file.close().unwrap();
                check(&path, layout, remembers, &format!("{layout}, {strategy}, {version:?}"));
            }
        }
    }
}

#[test]
fn a_dataset_in_place_of_a_deleted_one_does_not_make_the_file_grow() {
    with_every_file(|path, layout, _, message| {
        let before = length(path);
        for time in 0..4 {
            let file = File::edit(path).unwrap();
            file.unlink("a").unwrap();
            file.flush().unwrap();
            make(&file, layout, "a");
            file.close().unwrap();
            let now = length(path);
            assert!(now <= before + PIECES, "{message}, time {time}: {before} to {now} bytes");
            check(path, layout);
        }
    });
}

#[test]
fn without_a_flush_in_between_it_does_not_make_the_file_grow_either() {
    with_every_file(|path, layout, _, message| {
        let before = length(path);
        for time in 0..6 {
            let file = File::edit(path).unwrap();
            for _ in 0..3 {
                file.unlink("a").unwrap();
                make(&file, layout, "a");
            }
            file.close().unwrap();
            let now = length(path);
            assert!(now <= before + PIECES, "{message}, time {time}: {before} to {now} bytes");
            check(path, layout);
        }
    });
}

/// More than may be kept in memory for a commit: that is moved when the file is closed.
#[test]
fn much_of_it_is_moved_when_the_file_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    for version in [LibraryVersion::Earliest, LibraryVersion::V110] {
        // What is in a header stays where it is.
        for layout in LAYOUTS.into_iter().filter(|&layout| layout != "compact") {
            let options = File::options().library_version(version).metadata_limit(20_000);
            let file = options.clone().create(&path).unwrap();
            ["before", "a", "after"].iter().for_each(|name| make(&file, layout, name));
            file.close().unwrap();
            let before = length(&path);
            for time in 0..6 {
                let file = options.clone().edit(&path).unwrap();
                file.unlink("a").unwrap();
                make(&file, layout, "a");
                file.close().unwrap();
                // A header, and parts of an index, in every opening.
                let now = length(&path);
                let most = before + PIECES * (time + 2);
                assert!(now <= most, "{layout}, {version:?}, time {time}: {before} to {now} bytes");
                check(&path, layout);
            }
        }
    }
}

/// Copies are made in memory then, and are read, changed and copied from there.
#[test]
fn copies_in_the_place_of_what_was_deleted_are_there_before_a_commit() {
    with_every_file(|path, layout, _, message| {
        let file = File::edit(path).unwrap();
        file.unlink("after").unwrap();
        file.copy_object("before", &file, "first", &CopyOptions::new()).unwrap();
        file.unlink("a").unwrap();
        file.copy_object("first", &file, "a", &CopyOptions::new()).unwrap();
        file.unlink("first").unwrap();
        file.copy_object("a", &file, "after", &CopyOptions::new()).unwrap();
        check_in(&file, layout, message);
        for name in ["a", "after"] {
            let dataset = file.dataset(name).unwrap();
            match layout {
                "strings" => {
                    dataset.write_strings(7..9, &["one", "two"]).unwrap();
                    dataset.write_strings(7..9, &strings()[7..9]).unwrap();
                }
                _ if layout.starts_with("tree") => dataset.write(.., &values()).unwrap(),
                _ => {
                    dataset.write(7..9, &[1u32, 2]).unwrap();
                    dataset.write(7..9, &values()[7..9]).unwrap();
                }
            }
        }
        check_in(&file, layout, message);
        file.close().unwrap();
        check(path, layout);
    });
}

/// Long arrays of chunks are staged page by page: none of them comes after what has taken their place.
#[test]
fn pages_of_an_index_that_was_deleted_are_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    // A fixed array, and an extensible one, with and without what is committed of it.
    for (max, length) in [(Some(4000), 4000), (None, 70_000)] {
        for committed in [false, true] {
            let mut file = File::create(&path).unwrap();
            let new = file.new_dataset::<u32>().shape([length]).max_shape([max]).chunk([1]);
            let paged = new.deflate(1).create("a").unwrap();
            let cells = || (0..length).rev().step_by(if max.is_some() { 1 } else { 7_000 });
            cells().for_each(|cell| paged.write(cell..cell + 1, &[7u32]).unwrap());
            let mut paged = Some(paged);
            if committed {
                drop(paged.take());
                file.close().unwrap();
                file = File::edit(&path).unwrap();
                let found = file.dataset("a").unwrap();
                cells().for_each(|cell| found.write(cell..cell + 1, &[cell as u32]).unwrap());
                paged = Some(found);
            }
            paged.take().unwrap().flush().unwrap();
            file.unlink("a").unwrap();
            let bytes: Vec<u8> = (0..100_000_u32).map(|number| (number % 251) as u8).collect();
            for number in 0..200 {
                let group = file.create_group(&format!("groups/{number}")).unwrap();
                group.set_attribute("number", number).unwrap();
            }
            let next = file.new_dataset::<u8>().shape([100_000]).create("b").unwrap();
            next.write(.., &bytes).unwrap();
            drop(next);
            file.close().unwrap();
            let file = File::open(&path).unwrap();
            assert!(file.dataset("b").unwrap().read::<u8>(..).unwrap() == bytes);
            for number in 0..200 {
                let group = file.group(&format!("groups/{number}")).unwrap();
                let found = group.attribute("number").unwrap().read::<i32>().unwrap();
                assert_eq!(found, [number], "{max:?}, {committed}");
            }
        }
    }
}

/// Checks moved data, and the data beside it.
fn check(path: &Path, layout: &str) {
    check_in(&File::open(path).unwrap(), layout, layout);
}

fn check_in(file: &File, layout: &str, message: &str) {
    for name in ["before", "a", "after"] {
        if layout == "strings" {
            let found = file.dataset(name).unwrap().read_strings(..).unwrap();
            assert_eq!(found, strings(), "{message}: {name}");
            continue;
        }
        let found = file.dataset(name).unwrap().read::<u32>(Selection::all()).unwrap();
        assert_eq!(found, values(), "{message}: {name}");
    }
}

#[test]
fn where_free_space_is_remembered_it_is_used_after_reopening() {
    with_every_file(|path, layout, remembers, message| {
        // Room in a collection of the global heap is found where it was read.
        if !remembers || layout == "strings" {
            return;
        }
        let before = length(path);
        for time in 0..4 {
            File::edit(path).unwrap().unlink("a").unwrap();
            let file = File::edit(path).unwrap();
            make(&file, layout, "a");
            file.close().unwrap();
            let now = length(path);
            assert!(now <= before + PIECES, "{message}, time {time}: {before} to {now} bytes");
        }
    });
}

#[test]
fn a_dataset_that_was_held_when_it_was_deleted_gives_its_space_when_it_is_let_go() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let file = File::create(&path).unwrap();
    ["a", "b"].iter().for_each(|name| make(&file, "contiguous", name));
    file.close().unwrap();
    let before = length(&path);
    let file = File::edit(&path).unwrap();
    let held = file.dataset("a").unwrap();
    file.unlink("a").unwrap();
    assert_eq!(held.read::<u32>(0..3).unwrap(), values()[..3]);
    drop(held);
    make(&file, "contiguous", "a");
    file.close().unwrap();
    assert!(length(&path) <= before + PIECES, "{before} to {} bytes", length(&path));
}
