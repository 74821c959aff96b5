//! Help, wrong usage, errors and exit codes of all commands.

use crate::support::{Place, small};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

const COMMANDS: [&str; 18] = [
    "stat",
    "diff",
    "repack",
    "copy",
    "cache",
    "install-links",
    "import",
    "export",
    "ls",
    "dump",
    "spy",
    "read",
    "erase",
    "check",
    "recover",
    "bench",
    "completions",
    "man",
];

#[test]
fn help_of_every_command_has_examples() {
    let place = Place::new();
    let help = place.succeed("--help");
    for command in COMMANDS {
        assert!(help.contains(&format!("\n  {command} ")), "{help}");
        for option in ["--help", "-h"] {
            let help = place.succeed(&format!("{command} {option}"));
            assert!(help.contains("Examples:\n  pumice "), "{help}");
            assert!(help.contains(&format!("Usage: pumice {command}")), "{help}");
        }
    }
}

#[test]
fn the_version_is_told() {
    let expected = format!("pumice {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(Place::new().succeed("--version"), expected);
}

#[test]
fn wrong_usage_ends_with_2() {
    let place = Place::new();
    for line in [
        "",
        "frobnicate",
        "import only-one",
        "import a b --chunk x,y",
        "import a b --duplicates maybe",
        "spy a --width 0",
        "spy a --size 100000",
        "read a b --window x",
        "erase a b",
        "dump a -s 1,z",
        "dump a -s 0,0",
    ] {
        let run = place.pumice(line);
        assert_eq!(run.code, Some(2), "pumice {line}");
        if line.is_empty() {
            // All that can be asked.
            assert!(run.err.contains("Usage: pumice"), "{}", run.err);
            continue;
        }
        assert_eq!(run.err.lines().count(), 1, "{}", run.err);
        assert!(run.err.contains("--help` tells what can be asked"), "{}", run.err);
    }
}

#[test]
fn files_that_are_missing_or_no_hdf5_fail_with_1() {
    let place = Place::new();
    place.write("text.h5", "this is no HDF5 file\n");
    place.write("empty.h5", "");
    for line in ["ls FILE", "dump FILE", "spy FILE", "read FILE d", "erase FILE d --window 0:1"] {
        for file in ["missing.h5", "text.h5", "empty.h5"] {
            let error = place.fail(&line.replace("FILE", file));
            assert!(error.contains(file), "{error}");
            assert_eq!(error.matches("No such file").count(), usize::from(file == "missing.h5"));
        }
    }
}

#[test]
fn names_that_lead_nowhere_are_told() {
    let place = small();
    for line in [
        "ls small.h5/nowhere",
        "dump small.h5 -d nowhere",
        "spy small.h5 nowhere",
        "read small.h5 nowhere",
        "erase small.h5 nowhere --window 0:1,0:1",
    ] {
        let error = place.fail(line);
        assert!(error.contains("nowhere"), "{error}");
    }
}

#[test]
fn windows_and_selections_that_do_not_fit_are_told() {
    let place = small();
    for (line, expected) in [
        ("read small.h5 matrix --window 9,0", "/matrix: the index 9 is beyond axis 0"),
        ("read small.h5 matrix --window 0:1,0:1,0:1", "the window has 3 range(s), the dataset 2"),
        ("erase small.h5 matrix --window 0:1,9", "the index 9 is beyond axis 1"),
        ("dump small.h5 -d matrix -s 0,0 -c 6,1", "the selection does not fit axis 0"),
        ("dump small.h5 -d matrix -s 0,0,0", "number of start dims (3) exceed dataset dims (2)"),
        ("dump small.h5 -d matrix -c 2,2 -k 2,2", "blocks overlap on axis 0"),
    ] {
        let error = place.fail(line);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_reader_that_stops_listening_ends_the_command_quietly() {
    let place = Place::new();
    let file = pumice::File::create(place.path("long.h5")).unwrap();
    let values: Vec<u32> = (0..500_000).collect();
    let dataset = file.new_dataset::<u32>().shape([500_000]).create("long").unwrap();
    dataset.write(.., &values).unwrap();
    drop(dataset);
    file.close().unwrap();
    for line in [["dump", "long.h5"].as_slice(), &["read", "long.h5", "long", "--window", ":"]] {
        let mut command = place.command(env!("CARGO_BIN_EXE_pumice"));
        command.args(line).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        assert!(!first.is_empty());
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""));
    }
}
