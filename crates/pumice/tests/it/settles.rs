//! What is deleted and made again in one opening, without a `flush` in between, makes the file grow in the first
//! openings at most: then it has a size and keeps it, whatever the layout, the strategy and the version.

use crate::thorough::amount;
use pumice::{
    AllocationTime, Datatype, File, FileOptions, FileSpaceStrategy, Group, LibraryVersion,
};
use pumice::{Sequences, Value, VariableLength};
use std::path::Path;

/// Only the first openings may make the file longer.
const FIRST: usize = 3;

/// The number of openings.
fn openings() -> usize {
    amount(5, 10)
}

/// Names of old groups get a larger place while the old one is still needed: what that costs in an opening.
const NAMES: u64 = 256;

/// Lists of what is free have room for more or fewer pieces: what that costs once.
const LISTS: u64 = 512;

const CASES: [&str; 31] = [
    "compact",
    "small compact",
    "contiguous",
    "small contiguous",
    "single",
    "implicit",
    "fixed",
    "fixed, filtered",
    "extensible",
    "extensible, filtered",
    "tree",
    "tree, filtered",
    "small chunks",
    "sparse",
    "group",
    "few strings",
    "strings",
    "strings in chunks",
    "compressed strings",
    "strings of 4 KiB",
    "strings of 20 KiB",
    "strings of 70 KiB",
    "sequences",
    "nested sequences",
    "sparse strings",
    "attribute, text",
    "attribute, strings",
    "attribute, strings of 4 KiB",
    "attribute, strings of 20 KiB",
    "attribute, sequences",
    "attributes",
];

fn numbers(count: u32, round: u32) -> Vec<u32> {
    (0..count).map(|value| (value + round).wrapping_mul(2_654_435_761)).collect()
}

/// Strings of one length each, whatever the round.
fn texts(case: &str, round: u32) -> Vec<String> {
    let (count, length) = match case {
        _ if case.ends_with("4 KiB") => (10, 4090),
        _ if case.ends_with("20 KiB") => (5, 20_000),
        _ if case.ends_with("70 KiB") => (3, 70_000),
        "attribute, text" => (1, 40),
        _ if case.starts_with("few") || case.starts_with("attribute") => (20, 30),
        _ => (400, 30),
    };
    // What is compressed is to have the same sizes again: holes of other sizes are lost.
    let round = if case == "sparse strings" { 0 } else { round };
    (0..count).map(|at| format!("{at:4}, {round:4} {}", ".".repeat(length - 11))).collect()
}

fn nested() -> Datatype {
    Datatype::varlen(Datatype::varlen(Datatype::u32_le(), 16), 16)
}

fn lists(round: u32) -> Vec<Value> {
    let inner = |n: u32| {
        let numbers = (0..1 + n % 7).map(|i| Value::Integer(i128::from(i + n + round)));
        Value::Sequence(numbers.collect())
    };
    let outer = |n: u32| Value::Sequence((0..1 + n % 5).map(|i| inner(i + n)).collect());
    (0..60).map(outer).collect()
}

fn sequences(round: u32) -> Sequences<u32> {
    (0..200u32).map(|n| numbers(1 + n % 30, round)).collect()
}

fn make(file: &File, case: &str, name: &str, round: u32) {
    let line = |count: u64| file.new_dataset::<u32>().shape([count]);
    let rows = || file.new_dataset::<u32>().shape([100, 40]).max_shape([None, None]);
    let builder = match case {
        "compact" => line(4000).compact(),
        "small compact" => line(40).compact(),
        "contiguous" => line(4000),
        "small contiguous" => line(40),
        "single" => line(4000).chunk([4000]),
        "implicit" => line(4000).chunk([100]).allocation_time(AllocationTime::Early),
        "fixed" => line(4000).chunk([100]),
        "fixed, filtered" => line(4000).chunk([100]).deflate(4),
        "extensible" => line(4000).max_shape([None]).chunk([100]),
        "extensible, filtered" => line(4000).max_shape([None]).chunk([100]).deflate(4),
        "tree" => rows().chunk([10, 10]),
        "tree, filtered" => rows().chunk([10, 10]).deflate(4),
        "small chunks" => line(200).chunk([20]),
        "sparse" => line(4000).chunk([400]).sparse(),
        "group" => return make_group(file, name, round),
        _ if case.starts_with("attribute") => return make_attribute(file, case, name, round),
        "sequences" => {
            let dataset = file.new_sequences(Datatype::u32_le()).shape([200]).create(name).unwrap();
            return dataset.write_sequences(.., &sequences(round)).unwrap();
        }
        "nested sequences" => {
            let dataset = file.new_dataset_of(nested()).shape([60]).create(name).unwrap();
            return dataset.write_values(.., &lists(round)).unwrap();
        }
        _ => return make_strings(file, case, name, round),
    };
    let dataset = builder.create(name).unwrap();
    let count = dataset.shape().iter().product::<u64>() as u32;
    dataset.write(pumice::Selection::all(), &numbers(count, round)).unwrap();
}

fn make_strings(file: &File, case: &str, name: &str, round: u32) {
    let texts = texts(case, round);
    let builder = file.new_strings().shape([texts.len() as u64]);
    let builder = match case {
        "strings in chunks" => builder.chunk([50]),
        "compressed strings" => builder.chunk([50]).deflate(1),
        "sparse strings" => builder.chunk([50]).sparse(),
        _ => builder,
    };
    builder.create(name).unwrap().write_strings(.., &texts).unwrap();
}

fn make_group(file: &File, name: &str, round: u32) {
    let group = file.create_group(name).unwrap();
    for number in 0..20 {
        let inner = group.create_group(&format!("group {number}")).unwrap();
        inner.set_attribute("round", round).unwrap();
    }
}

/// The object stays, and the attribute is replaced.
fn make_attribute(file: &File, case: &str, name: &str, round: u32) {
    let group = match file.group(name) {
        Ok(group) => group,
        Err(_) => file.create_group(name).unwrap(),
    };
    let set = |name: &str, value: VariableLength| group.set_attribute(name, value).unwrap();
    match case {
        "attribute, text" => set("text", VariableLength::text(&texts(case, round)[0]).unwrap()),
        "attribute, sequences" => {
            set("lists", VariableLength::sequences(&sequences(round)).unwrap());
        }
        "attributes" => {
            for number in 0..30 {
                let texts = texts(case, round + number);
                set(&format!("texts {number}"), VariableLength::strings(texts).unwrap());
            }
        }
        _ => set("texts", VariableLength::strings(texts(case, round)).unwrap()),
    }
}

fn check(path: &Path, case: &str, message: &str, round: u32) {
    let file = File::open(path).unwrap();
    for (name, round) in [("before", 0), ("a", round), ("after", 0)] {
        let message = format!("{message}: {name}");
        match case {
            "group" => {
                let found = file.group(name).unwrap().group("group 7").unwrap();
                let found = found.attribute("round").unwrap().read::<u32>().unwrap();
                assert_eq!(found, [round], "{message}");
            }
            _ if case.starts_with("attribute") => {
                let group = file.group(name).unwrap();
                check_attribute(&group, case, &message, round);
            }
            "sequences" => {
                let found = file.dataset(name).unwrap().read_sequences::<u32>(..).unwrap();
                assert!(found == sequences(round), "{message}");
            }
            "nested sequences" => {
                let found = file.dataset(name).unwrap().read_values(..).unwrap();
                assert_eq!(found, lists(round), "{message}");
            }
            _ if case.contains("strings") => {
                let found = file.dataset(name).unwrap().read_strings(..).unwrap();
                assert_eq!(found, texts(case, round), "{message}");
            }
            _ => {
                let dataset = file.dataset(name).unwrap();
                let found = dataset.read::<u32>(pumice::Selection::all()).unwrap();
                assert_eq!(found, numbers(found.len() as u32, round), "{message}");
            }
        }
    }
}

fn check_attribute(group: &Group, case: &str, message: &str, round: u32) {
    let attribute = |name: &str| group.attribute(name).unwrap();
    match case {
        "attribute, text" => {
            let found = attribute("text").read_string().unwrap();
            assert_eq!(found, texts(case, round)[0], "{message}");
        }
        "attribute, sequences" => {
            let found = attribute("lists").read_sequences::<u32>().unwrap();
            assert!(found == sequences(round), "{message}");
        }
        "attributes" => {
            let found = attribute("texts 17").read_strings().unwrap();
            assert_eq!(found, texts(case, round + 17), "{message}");
        }
        _ => {
            let found = attribute("texts").read_strings().unwrap();
            assert_eq!(found, texts(case, round), "{message}");
        }
    }
}

fn strategies() -> Vec<(&'static str, FileOptions)> {
    let with = |strategy| File::options().space_strategy(strategy);
    let managers = FileSpaceStrategy::FreeSpaceManagers;
    vec![
        ("managers", with(managers)),
        ("managers, remembered", with(managers).persist_free_space(true)),
        ("pages", with(FileSpaceStrategy::Paged)),
        ("pages, remembered", with(FileSpaceStrategy::Paged).persist_free_space(true)),
        ("small pages", with(FileSpaceStrategy::Paged).page_size(512)),
        ("aggregators", with(FileSpaceStrategy::Aggregators)),
        ("end of file", with(FileSpaceStrategy::EndOfFile)),
    ]
}

/// Lengths of a file, after it was made and after every opening in which something was replaced so many times.
fn lengths(path: &Path, options: &FileOptions, case: &str, times: u32, message: &str) -> Vec<u64> {
    let length = || std::fs::metadata(path).unwrap().len();
    let file = options.clone().create(path).unwrap();
    ["before", "a", "after"].iter().for_each(|name| make(&file, case, name, 0));
    file.close().unwrap();
    let mut lengths = vec![length()];
    for opening in 1..=openings() as u32 {
        let file = File::edit(path).unwrap();
        for time in 0..times {
            if !case.starts_with("attribute") {
                file.unlink("a").unwrap();
            }
            make(&file, case, "a", times * opening + time);
        }
        file.close().unwrap();
        check(path, case, message, times * opening + times - 1);
        lengths.push(length());
    }
    lengths
}

#[test]
fn what_is_replaced_in_every_opening_makes_the_file_grow_in_the_first_at_most() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    for (number, case) in CASES.into_iter().enumerate() {
        for (place, (strategy, options)) in strategies().into_iter().enumerate() {
            for version in [LibraryVersion::Earliest, LibraryVersion::LATEST] {
                // Once or several times in an opening: each case and each strategy has both.
                let times = 1 + (number + place) as u32 % 2 * 2;
                {
                    let options = options.clone().library_version(version);
                    let message = format!("{case}, {strategy}, {version:?}, {times} times");
                    let lengths = lengths(&path, &options, case, times, &message);
                    let first = lengths[..=FIRST].iter().copied().max().unwrap_or(0);
                    let more = match strategy.contains("remembered") {
                        true => LISTS,
                        false if case == "group" => NAMES * openings() as u64,
                        false => 0,
                    };
                    let most = lengths.iter().copied().max().unwrap_or(0);
                    assert!(most <= first + more, "{message}: {lengths:?}");
                }
            }
        }
    }
}
