//! Files of many levels: every command goes all the way down.

use crate::support::Place;
use pumice::{CopyOptions, File};

/// More than a thread's stack has room for, whose paths take 10 GB together.
const LEVELS: usize = 100_000;

fn place() -> Place {
    let place = Place::new();
    let file = File::create(place.path("deep.h5")).unwrap();
    let mut group = file.group("/").unwrap();
    for _ in 0..LEVELS {
        group = group.create_group("g").unwrap();
    }
    let data = group.new_dataset::<i32>().shape([3]).create("x").unwrap();
    data.write(.., &[4, 5, 6]).unwrap();
    group.create_hard_link("y", "x").unwrap();
    drop((group, data));
    file.close().unwrap();
    place
}

#[test]
fn commands_reach_the_last_of_many_levels() {
    let place = place();
    let told = place.succeed("check deep.h5");
    assert!(told.starts_with("deep.h5: sound; 100,001 groups, 1 dataset, "), "{told}");
    let told = place.succeed("stat deep.h5");
    assert!(told.contains("# of unique groups: 100001\n"), "{told}");
    place.succeed("repack deep.h5 new.h5");
    let told = place.succeed("check new.h5");
    assert!(told.starts_with("new.h5: sound; 100,001 groups, 1 dataset, "), "{told}");
    place.succeed("copy -i deep.h5 -o copy.h5 -s /g -d /h");
    assert!(place.succeed("stat copy.h5").contains("# of unique groups: 100001\n"));
    let json = place.succeed("dump --json deep.h5");
    assert_eq!(json.matches("\"kind\":\"group\"").count(), LEVELS + 1);
    assert!(json.contains("[4,5,6]"), "{}", &json[json.len() - 300..]);
    let tree = place.succeed("ls --tree deep.h5");
    assert_eq!(tree.lines().count(), LEVELS + 4);
    assert!(tree.contains("[+99936] "), "the levels that are not drawn are told");
}

#[test]
fn a_dump_of_many_levels_is_as_long_as_they_are_many() {
    let place = place();
    let dump = place.succeed("dump deep.h5");
    assert_eq!(dump.matches("GROUP \"g\" {").count(), LEVELS);
    assert_eq!(dump.matches('{').count(), dump.matches('}').count());
    assert!(dump.contains("(0): 4,") && dump.contains("(2): 6\n"));
    // Of every group, two lines: indented, but not without end.
    assert!(dump.len() < 2 * LEVELS * 1000, "{} bytes", dump.len());
    let place = Place::new();
    let file = File::create(place.path("shallow.h5")).unwrap();
    file.create_group(&"g/".repeat(40)).unwrap();
    file.copy_object("g", &file, "h", &CopyOptions::new()).unwrap();
    file.close().unwrap();
    let dump = place.succeed("dump shallow.h5");
    let widest = dump.lines().map(|line| line.len() - line.trim_start().len()).max();
    assert_eq!(widest, Some(3 * 40));
}

#[test]
fn files_of_many_levels_are_compared_to_the_last_one() {
    let place = place();
    std::fs::copy(place.path("deep.h5"), place.path("same.h5")).unwrap();
    assert_eq!(place.succeed("diff deep.h5 same.h5"), "");
    let file = File::edit(place.path("same.h5")).unwrap();
    let mut group = file.group("/").unwrap();
    for _ in 0..LEVELS {
        group = group.group("g").unwrap();
    }
    group.dataset("x").unwrap().write(.., &[4, 0, 6]).unwrap();
    drop(group);
    file.close().unwrap();
    let run = place.pumice("diff deep.h5 same.h5");
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert_eq!(run.out.matches("1 differences found").count(), 2, "x and y");
    assert!(run.out.contains("/g/g/g/x>"));
}
