//! Commands that write, and existing files in their way.

use crate::support::{Place, Run, small};
use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::process::Command;

/// Runs pumice under the name of an HDF5 tool.
fn tool(place: &Place, name: &str, line: &str) -> Run {
    let link = place.path(name);
    if !link.exists() {
        symlink(env!("CARGO_BIN_EXE_pumice"), &link).unwrap();
    }
    place.command(link).args(line.split_whitespace()).output().unwrap().into()
}

/// Commands that make a file OUT.
const MAKERS: [&str; 9] = [
    "repack small.h5 OUT",
    "repack -i small.h5 -o OUT",
    "import small.mtx OUT",
    "export --to mtx small.h5 OUT",
    "check small.h5 --repair OUT",
    "spy small.h5 --png OUT",
    "bench small.h5 --seconds 0.01 --trace OUT",
    "dump -o OUT small.h5",
    "dump -O OUT small.h5",
];

fn said(command: &str, name: &str, force: &str) -> String {
    command.replace("OUT", name) + force
}

#[test]
fn a_file_that_exists_is_replaced_only_if_asked_for() {
    let place = small();
    for command in MAKERS {
        place.write("there", "precious");
        let told = place.fail(&said(command, "there", ""));
        assert!(told.contains("there exists already; --force replaces it"), "{command}: {told}");
        assert_eq!(fs::read(place.path("there")).unwrap(), b"precious", "{command}");
        place.succeed(&said(command, "there", " --force"));
        assert_ne!(fs::read(place.path("there")).unwrap(), b"precious", "{command}");
    }
    place.succeed("bench small.h5 --seconds 0.01 --trace run.trace");
    place.write("there", "precious");
    assert!(place.fail("cache replay run.trace --png there").contains("exists already"));
    assert!(place.fail("cache replay run.trace --png run.trace -f").contains("is the input"));
    place.succeed("cache replay run.trace --png there --force");
    assert_ne!(fs::read(place.path("there")).unwrap(), b"precious");
}

#[test]
fn a_symbolic_link_stays_and_what_it_leads_to_is_written() {
    let place = small();
    fs::create_dir(place.path("store")).unwrap();
    for command in MAKERS {
        place.write("store/real", "old");
        fs::set_permissions(place.path("store/real"), fs::Permissions::from_mode(0o640)).unwrap();
        for (link, leads) in [("link", "store/real"), ("second", "link"), ("new", "store/made")] {
            let _ = fs::remove_file(place.path(link));
            symlink(leads, place.path(link)).unwrap();
        }
        assert!(place.fail(&said(command, "second", "")).contains("second exists already"));
        place.succeed(&said(command, "second", " --force"));
        place.succeed(&said(command, "new", ""));
        for (link, real) in [("second", "store/real"), ("new", "store/made")] {
            assert!(place.path(link).is_symlink(), "{command}");
            let bytes = fs::read(place.path(real)).unwrap();
            assert_ne!(bytes, b"old", "{command}");
            assert!(!place.path(real).is_symlink(), "{command}");
        }
        let mode = fs::metadata(place.path("store/real")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640, "{command}");
        fs::remove_file(place.path("store/made")).unwrap();
    }
    let inside: Vec<_> = fs::read_dir(place.path("store")).unwrap().collect();
    assert_eq!(inside.len(), 1, "nothing is left over: {inside:?}");
}

#[test]
fn what_is_no_regular_file_is_never_replaced() {
    let place = small();
    fs::create_dir(place.path("folder")).unwrap();
    let made = Command::new("mkfifo").arg(place.path("fifo")).status().unwrap();
    assert!(made.success());
    let _listener = UnixListener::bind(place.path("socket")).unwrap();
    symlink("fifo", place.path("link")).unwrap();
    let irregular = [
        ("folder", "a directory"),
        ("fifo", "a FIFO"),
        ("socket", "a socket"),
        ("link", "a FIFO"),
        ("/dev/null", "a device"),
    ];
    for (name, kind) in irregular {
        for command in MAKERS.iter().take(5) {
            let told = place.fail(&said(command, name, " --force"));
            assert!(told.contains(&format!("{name} is {kind}, not a file")), "{command}: {told}");
        }
        let run = tool(&place, "h5repack", &format!("small.h5 {name}"));
        assert_eq!(run.code, Some(1), "{name}");
        assert!(run.err.contains(kind), "{}", run.err);
        let line = format!("-i small.h5 -o {name} -s /matrix -d /m");
        let run = tool(&place, "h5copy", &line);
        assert_eq!(run.code, Some(1), "{name}");
        assert!(run.err.contains(kind), "{}", run.err);
    }
    assert!(fs::metadata(place.path("fifo")).unwrap().file_type().is_fifo());
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    // Streams do not replace a device.
    place.succeed("dump -o /dev/null small.h5");
    place.succeed("spy small.h5 --png /dev/null");
    assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
}

#[test]
fn the_input_is_never_the_output() {
    let place = small();
    symlink("small.h5", place.path("soft.h5")).unwrap();
    fs::hard_link(place.path("small.h5"), place.path("hard.h5")).unwrap();
    let before = fs::read(place.path("small.h5")).unwrap();
    for name in ["small.h5", "./small.h5", "soft.h5", "hard.h5"] {
        for command in ["repack small.h5 OUT", "spy small.h5 --png OUT", "dump -o OUT small.h5"] {
            let run = place.pumice(&said(command, name, " --force"));
            assert_ne!(run.code, Some(0), "{command} {name}");
        }
        assert_eq!(tool(&place, "h5repack", &format!("small.h5 {name}")).code, Some(1));
        assert_eq!(tool(&place, "h5dump", &format!("-o {name} small.h5")).code, Some(1));
        assert_eq!(fs::read(place.path("small.h5")).unwrap(), before, "{name}");
    }
}

#[test]
fn the_tools_of_hdf5_replace_files_as_they_always_did() {
    let place = small();
    place.write("there", "old");
    assert_eq!(tool(&place, "h5repack", "small.h5 there").code, Some(0));
    place.succeed("ls there/matrix");
    assert_eq!(tool(&place, "h5dump", "-o there small.h5").code, Some(0));
    assert!(fs::read_to_string(place.path("there")).unwrap().contains("1.5"));
    // What is no HDF5 file is not emptied to become one.
    place.write("notes.txt", "precious");
    let run = tool(&place, "h5copy", "-i small.h5 -o notes.txt -s /matrix -d /m");
    assert_eq!(run.code, Some(1), "{}", run.err);
    let run = tool(&place, "h5import", "small.mtx -d 5,6 -o notes.txt");
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert_eq!(fs::read(place.path("notes.txt")).unwrap(), b"precious");
}

#[test]
fn one_file_is_repacked_in_its_place_through_a_link() {
    let place = small();
    fs::create_dir(place.path("store")).unwrap();
    fs::rename(place.path("small.h5"), place.path("store/real.h5")).unwrap();
    symlink("store/real.h5", place.path("link.h5")).unwrap();
    place.succeed("repack -l SPARSECHUNK=2x2 link.h5");
    assert!(place.path("link.h5").is_symlink());
    let real = place.succeed("ls -v store/real.h5");
    assert!(real.contains("2, 2") || real.contains("{2, 2}"), "{real}");
}

#[test]
fn links_and_pages_replace_nothing_that_was_not_asked_for() {
    let place = Place::new();
    fs::create_dir(place.path("bin")).unwrap();
    place.write("bin/h5stat", "a program");
    assert!(place.fail("install-links bin").contains("h5stat exists already"));
    let inside = fs::read_dir(place.path("bin")).unwrap().count();
    assert_eq!(inside, 1, "all links or none");
    place.succeed("install-links bin --force");
    assert!(place.path("bin/h5stat").is_symlink());
    fs::remove_file(place.path("bin/h5copy")).unwrap();
    fs::create_dir(place.path("bin/h5copy")).unwrap();
    assert!(place.fail("install-links bin --force").contains("not replaced"));

    place.succeed("man pages");
    place.write("pages/pumice-ls.1", "my own");
    assert!(place.fail("man pages").contains("exists already"));
    assert_eq!(fs::read(place.path("pages/pumice-ls.1")).unwrap(), b"my own");
    place.succeed("man pages --force");
}
