//! h5mkgrp, h5jam and h5unjam, beside the tools that are installed.

use crate::support::{Place, Run, installed, small};
use std::fs;

/// Runs a tool of this program, or the one that is installed.
fn tool(place: &Place, foreign: bool, name: &str, line: &str) -> Run {
    let path = place.path(&format!("bin/{name}"));
    if !path.exists() {
        let _ = fs::create_dir(place.path("bin"));
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pumice"), &path).unwrap();
    }
    let program = if foreign { name.into() } else { path };
    place.command(program).args(line.split_whitespace()).output().expect("run").into()
}

#[test]
fn groups_are_made_as_h5mkgrp_makes_them() {
    for (foreign, form) in [(false, "-l "), (false, ""), (true, "")] {
        if foreign && !installed("h5mkgrp") {
            continue;
        }
        let place = Place::new();
        let run = |line: &str| tool(&place, foreign, "h5mkgrp", line);
        let made = run(&format!("{form}-v a.h5 one two"));
        assert_eq!(made.code, Some(0), "{}", made.err);
        let latest = "h5mkgrp: Creating groups with latest version of the format\n";
        let form_told = if form.is_empty() { "" } else { latest };
        let created = "h5mkgrp: created group 'one'\nh5mkgrp: created group 'two'\n";
        assert_eq!(made.out, format!("{form_told}{created}"));
        let nested = run(&format!("{form}-pv a.h5 /three/four"));
        assert_eq!(nested.code, Some(0), "{}", nested.err);
        assert!(nested.out.ends_with("created group '/three/four'\n"));
        for (line, told) in [
            ("a.h5 one", "Could not create group 'one'"),
            ("a.h5 five/six", "Could not create group 'five/six'"),
            ("a.h5", "missing group name(s)"),
        ] {
            let refused = run(line);
            assert_eq!(refused.code, Some(1), "{line}");
            assert!(refused.err.contains(told), "{line}: {}", refused.err);
        }
        fs::write(place.path("text"), "no HDF5").unwrap();
        assert_eq!(run("text one").code, Some(1));
        assert_eq!(fs::read(place.path("text")).unwrap(), b"no HDF5");
        let file = pumice::File::open(place.path("a.h5")).unwrap();
        let names: Vec<String> = file.members().unwrap().into_iter().map(|m| m.name).collect();
        assert_eq!(names, ["one", "three", "two"]);
        assert!(file.group("three/four").is_ok());
        assert_eq!(file.header_version() == 2, !form.is_empty(), "old-style unless asked");
    }
}

#[test]
fn user_blocks_come_and_go_as_with_h5jam() {
    let foreign = installed("h5jam") && installed("h5unjam");
    let place = small();
    place.write("first", "first");
    place.write("second", "s".repeat(600));
    let bytes = |name: &str| fs::read(place.path(name)).unwrap();
    let original = bytes("small.h5");
    let lines = [
        ("h5jam", "-u first -i small.h5 -o X1.h5", "X1.h5"),
        ("h5jam", "-u second -i X1.h5 -o X2.h5", "X2.h5"),
        ("h5jam", "-u first -i X2.h5 -o X3.h5 --clobber", "X3.h5"),
        ("h5jam", "-u second -i X1.h5 -o X4.h5 --clobber", "X4.h5"),
        ("h5unjam", "-i X2.h5 -o X5.h5 -u X.txt", "X5.h5"),
        ("h5unjam", "-i X4.h5 -o X6.h5 --delete", "X6.h5"),
    ];
    for (name, line, made) in lines {
        let run = tool(&place, false, name, &line.replace('X', "o"));
        assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{line}");
        let ours = made.replace('X', "o");
        place.succeed(&format!("check {ours}"));
        assert!(place.succeed(&format!("diff small.h5 {ours}")).is_empty(), "{line}");
        // libhdf5 does not know sparse datasets, but what the tools move are bytes.
        if foreign {
            let run = tool(&place, true, name, &line.replace('X', "f"));
            assert_eq!(run.code, Some(0), "{line}: {}", run.err);
            assert_eq!(bytes(&ours), bytes(&made.replace('X', "f")), "{line}");
        }
    }
    assert_eq!(bytes("o5.h5"), original);
    assert_eq!(bytes("o6.h5"), original);
    if foreign {
        assert_eq!(bytes("o.txt"), bytes("f.txt"));
    }
}

#[test]
fn what_h5jam_refuses_stays_as_it_is() {
    let place = small();
    place.write("first", "first");
    let original = fs::read(place.path("small.h5")).unwrap();
    for (name, line) in [
        ("h5jam", "-u small.h5 -i small.h5 -o new.h5"),
        ("h5jam", "-u first -i small.mtx -o new.h5"),
        ("h5jam", "-u first -i small.h5 -o small.h5"),
        ("h5jam", "-u none -i small.h5 -o new.h5"),
        ("h5jam", "-i small.h5"),
        ("h5unjam", "-i small.h5 -u text --delete"),
        ("h5unjam", "-o new.h5"),
    ] {
        let run = tool(&place, false, name, line);
        assert_eq!(run.code, Some(1), "{line}");
        assert!(run.err.starts_with(&format!("{name} error: ")), "{line}: {}", run.err);
        assert_eq!(fs::read(place.path("small.h5")).unwrap(), original, "{line}");
        assert!(!place.path("new.h5").exists(), "{line}");
    }
    // In place, and back.
    assert_eq!(tool(&place, false, "h5jam", "-u first -i small.h5").code, Some(0));
    assert!(fs::read(place.path("small.h5")).unwrap().starts_with(b"first\0"));
    let run = tool(&place, false, "h5unjam", "-i small.h5");
    assert_eq!((run.code, run.out.trim_end_matches('\0')), (Some(0), "first"));
    assert_eq!(fs::read(place.path("small.h5")).unwrap(), original);
}
