//! A dataset that takes the place of a deleted one of the same size does not make the file grow, whatever
//! its layout and the file's strategy, and without a flush in between.

use pumice::{AllocationTime, File, FileOptions, FileSpaceStrategy, LibraryVersion};
use std::path::{Path, PathBuf};

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
    let values: Vec<u32> = (0..COUNT as u32).map(|v| v.wrapping_mul(2_654_435_761)).collect();
    new.create(name).unwrap().write(pumice::Selection::all(), &values).unwrap();
}

fn make_strings(file: &File, name: &str) {
    let strings: Vec<String> = (0..COUNT / 10).map(|at| format!("string {at} of many")).collect();
    let dataset = file.new_strings().shape([COUNT / 10]).create(name).unwrap();
    dataset.write_strings(.., &strings).unwrap();
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
            make(&file, layout, "a");
            file.close().unwrap();
            let now = length(path);
            assert!(now <= before + PIECES, "{message}, time {time}: {before} to {now} bytes");
        }
    });
}

#[test]
fn many_in_one_opening_do_not_either() {
    with_every_file(|path, layout, _, message| {
        // Strings that go leave the global heap with a commit.
        if layout == "strings" {
            return;
        }
        let before = length(path);
        let file = File::edit(path).unwrap();
        for _ in 0..10 {
            file.unlink("a").unwrap();
            make(&file, layout, "a");
        }
        file.close().unwrap();
        let now = length(path);
        assert!(now <= before + PIECES, "{message}: {before} to {now} bytes");
    });
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

/// What another program finds: members of the root group.
fn members(path: &Path) -> Vec<String> {
    let copy = path.with_extension("copy");
    std::fs::copy(path, &copy).unwrap();
    let file = File::open(&copy).unwrap();
    file.members().unwrap().into_iter().map(|member| member.name).collect()
}

fn two_datasets(folder: &tempfile::TempDir, count: u64) -> PathBuf {
    let path = folder.path().join("a.h5");
    let file = File::create(&path).unwrap();
    for name in ["a", "b"] {
        let dataset = file.new_dataset::<u8>().shape([count]).create(name).unwrap();
        dataset.write(.., &vec![1u8; count as usize]).unwrap();
    }
    file.close().unwrap();
    path
}

#[test]
fn a_commit_is_made_for_the_space_of_large_objects_alone_and_never_where_none_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    for (count, options, committed) in [
        (100_000, File::options(), true),
        (1000, File::options(), false),
        (100_000, File::options().metadata_limit(usize::MAX), false),
    ] {
        let path = two_datasets(&folder, count);
        let file = options.edit(&path).unwrap();
        file.unlink("a").unwrap();
        assert_eq!(members(&path), ["a", "b"], "{count}: nothing asks for space");
        let new = file.new_dataset::<u8>().shape([count]).create("c").unwrap();
        let expected: &[&str] = if committed { &["b"] } else { &["a", "b"] };
        assert_eq!(members(&path), expected, "{count}");
        new.write(.., &vec![2u8; count as usize]).unwrap();
        drop(new);
        file.close().unwrap();
        assert_eq!(members(&path), ["b", "c"], "{count}");
    }
}

#[test]
fn a_dataset_that_was_held_when_it_was_deleted_gives_its_space_when_it_is_let_go() {
    let folder = tempfile::tempdir().unwrap();
    let path = two_datasets(&folder, 100_000);
    let before = length(&path);
    let file = File::edit(&path).unwrap();
    let held = file.dataset("a").unwrap();
    file.unlink("a").unwrap();
    assert_eq!(held.read::<u8>(0..3).unwrap(), [1, 1, 1]);
    drop(held);
    let new = file.new_dataset::<u8>().shape([100_000]).create("a").unwrap();
    new.write(.., &[3u8; 100_000]).unwrap();
    drop(new);
    file.close().unwrap();
    assert_eq!(length(&path), before);
}
