//! h5clear, h5format_convert and h5mkgrp, beside HDF5's own tools where these are installed.

use crate::support::{Place, Run, installed};
use pumice::{File, LibraryVersion};

/// Runs a tool: this program under its name, or HDF5's.
fn tool(place: &Place, name: &str, foreign: bool, line: &str) -> Run {
    let path = place.path(name);
    if !path.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pumice"), &path).unwrap();
    }
    let mut command = place.command(if foreign { name.into() } else { path });
    command.args(line.split_whitespace()).output().unwrap().into()
}

/// A file of some version of the superblock, with a user block or without.
fn make(place: &Place, name: &str, version: LibraryVersion, user_block: u64) {
    let options = File::options().library_version(version).user_block(user_block);
    let file = options.create(place.path(name)).unwrap();
    let grown = file.new_dataset::<i32>().shape([40]).max_shape([None]).chunk([8]);
    grown.create("g/grown").unwrap().write(.., &(0..40).collect::<Vec<i32>>()).unwrap();
    file.new_dataset::<i32>().shape([3]).create("plain").unwrap().write(.., &[1, 2, 3]).unwrap();
    file.close().unwrap();
}

/// The offset of a superblock's flags, by its version.
fn mark(place: &Place, name: &str, at: usize) {
    let mut bytes = std::fs::read(place.path(name)).unwrap();
    bytes[at + 11] = 5;
    let sum = pumice_bytes::lookup3(&bytes[at..at + 44]);
    bytes[at + 44..at + 48].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(place.path(name), bytes).unwrap();
}

#[test]
fn marks_of_killed_programs_are_removed() {
    let place = Place::new();
    for (version, at) in [(LibraryVersion::V110, 0), (LibraryVersion::LATEST, 512)] {
        make(&place, "a.h5", version, at as u64);
        mark(&place, "a.h5", at);
        for refused in ["--filesize a.h5", "--increment a.h5"] {
            let run = tool(&place, "h5clear", false, refused);
            assert_eq!(run.code, Some(1), "{refused}: {}", run.err);
        }
        assert!(File::edit(place.path("a.h5")).is_err());
        assert_eq!(tool(&place, "h5clear", false, "-s a.h5").code, Some(0));
        let file = File::edit(place.path("a.h5")).unwrap();
        assert_eq!(file.dataset("plain").unwrap().read::<i32>(..).unwrap(), [1, 2, 3]);
    }
    std::fs::write(place.path("junk.h5"), "junk").unwrap();
    let run = tool(&place, "h5clear", false, "-s junk.h5");
    assert!(run.code == Some(1) && run.err.starts_with("h5clear error"), "{}", run.err);
    for wrong in ["-s", "a.h5", "--filesize -s a.h5", "--increment=-1 a.h5", "-k a.h5"] {
        assert_eq!(tool(&place, "h5clear", false, wrong).code, Some(1), "{wrong}");
    }
}

#[test]
fn files_end_where_they_are_told_to() {
    let place = Place::new();
    let foreign = installed("h5clear");
    for version in [LibraryVersion::Earliest, LibraryVersion::V18, LibraryVersion::V110] {
        for user_block in [0, 512] {
            make(&place, "a.h5", version, user_block);
            // A writer that was killed left bytes behind the end.
            let file = std::fs::OpenOptions::new().write(true).open(place.path("a.h5")).unwrap();
            let end = file.metadata().unwrap().len();
            file.set_len(end + 100).unwrap();
            let told = |line: &str, ours: bool| {
                let run = tool(&place, "h5clear", !ours, line);
                assert_eq!(run.code, Some(0), "{line}: {}", run.err);
                run.out
            };
            let expected = format!("EOA is {end}; EOF is {} \n", end + 100);
            assert_eq!(told("--filesize a.h5", true), expected);
            if foreign {
                assert_eq!(told("--filesize a.h5", false), expected);
            }
            assert_eq!(told("--increment=512 a.h5", true), "");
            let after = format!("EOA is {0}; EOF is {0} \n", end + 612);
            assert_eq!(told("--filesize a.h5", true), after);
            if foreign {
                assert_eq!(told("--filesize a.h5", false), after);
            }
            let image = tool(&place, "h5clear", false, "-m a.h5");
            assert_eq!(image.code, Some(0));
            assert!(image.err.contains("h5clear warning: No cache image in the file"));
            let file = File::open(place.path("a.h5")).unwrap();
            assert_eq!(file.dataset("g/grown").unwrap().read::<i32>(38..).unwrap(), [38, 39]);
        }
    }
}

#[test]
fn older_programs_read_what_is_converted() {
    let place = Place::new();
    make(&place, "a.h5", LibraryVersion::LATEST, 0);
    let idle = tool(&place, "h5format_convert", false, "-v -n a.h5");
    assert!(idle.out.contains("It is noop...\nOpen the file a.h5\n"), "{}", idle.out);
    let kept = "type is not version 1 B-tree\nNot converting the dataset\n";
    assert!(idle.out.contains(kept), "{}", idle.out);
    assert_eq!(File::open(place.path("a.h5")).unwrap().info().unwrap().superblock_version, 3);
    let done = tool(&place, "h5format_convert", false, "-v -d /g/grown a.h5");
    assert_eq!((done.code, done.err.as_str()), (Some(0), ""));
    assert!(done.out.contains("Going to process dataset: /g/grown...\n"), "{}", done.out);
    let file = File::open(place.path("a.h5")).unwrap();
    assert_eq!(file.info().unwrap().superblock_version, 2);
    assert_eq!(file.dataset("g/grown").unwrap().read::<i32>(38..).unwrap(), [38, 39]);
    drop(file);
    let bytes = std::fs::read(place.path("a.h5")).unwrap();
    let has = |signature: &[u8]| bytes.windows(4).any(|four| four == signature);
    assert!(has(b"TREE") && ![b"EAHD", b"FAHD", b"BTHD"].into_iter().any(|newer| has(newer)));
    let again = tool(&place, "h5format_convert", false, "-v a.h5");
    assert!(again.out.contains("already version 1 B-tree: no further action"), "{}", again.out);
    let missing = tool(&place, "h5format_convert", false, "-d /nothing a.h5");
    assert!(
        missing.err.contains("h5format_convert error: unable to open dataset"),
        "{}",
        missing.err
    );
    if installed("h5dump") {
        let dumped = place.command("h5dump").args(["-d", "/g/grown", "a.h5"]).output().unwrap();
        assert!(dumped.status.success());
    }
}

#[test]
fn groups_are_made_as_by_h5mkgrp() {
    if !installed("h5mkgrp") {
        return;
    }
    for line in
        ["a.h5 x y", "-v a.h5 x", "-v -p a.h5 x/y/z w", "-v -l a.h5 x", "a.h5 x/y", "-p a.h5 /x/y"]
    {
        let run = |foreign| {
            let place = Place::new();
            let run = tool(&place, "h5mkgrp", foreign, line);
            let listed = File::open(place.path("a.h5")).and_then(|file| file.members());
            let names =
                listed.map_or(Vec::new(), |all| all.into_iter().map(|one| one.name).collect());
            (run.code, run.out, names)
        };
        assert_eq!(run(false), run(true), "{line}");
    }
}
