//! Messages about files that are not regular, are newer, or cannot be written.

use crate::support::{Place, Run, small};
use pumice::File;

/// Runs a line of the shell, which is given up if it waits for somebody.
fn shell(place: &Place, line: &str) -> Run {
    let program = env!("CARGO_BIN_EXE_pumice");
    let line = line.replace("pumice ", &format!("timeout 60 {program} "));
    place.command("sh").args(["-c", &line]).output().expect("run").into()
}

#[test]
fn what_is_no_file_is_named_and_never_waited_for() {
    let place = small();
    assert_eq!(shell(&place, "mkfifo fifo && mkdir folder").code, Some(0));
    for command in [
        "ls X",
        "dump X",
        "stat X",
        "check X",
        "repack X new.h5",
        "export X new.npz",
        "read X matrix",
        "spy X",
        "recover X",
        "convert X new.h5",
        "bench X",
        "erase X matrix --window 0:1,0:1",
        "copy -i X -o new.h5 -s /matrix -d /m",
        "diff small.h5 X",
        "dump --json X",
        "cache replay X",
        "repack -e X small.h5 new.h5",
        "repack -l matrix:SPARSECHUNK=2x2 --defined-elements @X small.h5 new.h5",
    ] {
        for (name, what) in
            [("folder", "a directory"), ("fifo", "a FIFO"), ("/dev/null", "a device")]
        {
            let line = command.replace('X', name);
            let run = shell(&place, &format!("pumice {line}"));
            assert!(matches!(run.code, Some(1 | 2)), "{line}: {:?}", run.code);
            assert!(run.err.contains(what) && run.err.contains(name), "{line}: {}", run.err);
        }
    }
    place.write("conf", "INPUT-CLASS TEXTIN INPUT-SIZE 32 RANK 1 DIMENSION-SIZES 2");
    place.write("data", "1 2");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_pumice"), place.path("h5import")).unwrap();
    for (name, what) in [("folder", "a directory"), ("fifo", "a FIFO"), ("/dev/null", "a device")] {
        for words in [format!("{name} -c conf"), format!("data -c {name}"), name.to_owned()] {
            let run = shell(&place, &format!("timeout 60 ./h5import {words} -o new.h5"));
            assert_eq!(run.code, Some(1), "{words}");
            assert!(run.err.contains(what) && run.err.contains(name), "{words}: {}", run.err);
            assert!(!place.path("new.h5").exists(), "{words}");
        }
    }
    // Text may come from a FIFO.
    let run = shell(&place, "cat small.mtx > fifo & pumice import fifo piped.h5");
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    let table = |file: &str| place.succeed(&format!("read {file} matrix"));
    assert_eq!(table("piped.h5"), table("small.h5"));
}

#[test]
fn a_newer_file_is_called_newer() {
    let place = small();
    let mut bytes = std::fs::read(place.path("small.h5")).unwrap();
    let newest = bytes[8];
    assert!((2..=3).contains(&newest));
    bytes[8] = 4;
    place.write("newer.h5", &bytes);
    let error = place.fail("ls newer.h5");
    assert!(error.contains("found 4; it is newer than this program"), "{error}");
    bytes[8] = 200;
    place.write("damaged.h5", &bytes);
    let error = place.fail("ls damaged.h5");
    assert!(error.contains("found 200; `pumice check` tells"), "{error}");
}

/// A file with the datasets a, b and c, of which b is of a layout that nobody knows yet.
fn with_newer_dataset() -> Place {
    let place = Place::new();
    let oldest = pumice::LibraryVersion::Earliest;
    let file = File::options().library_version(oldest).create(place.path("mixed.h5")).unwrap();
    let group = file.create_group("group").unwrap();
    for name in ["a", "b", "c"] {
        group.new_dataset::<i32>().shape([3]).create(name).unwrap().write(.., &[1, 2, 3]).unwrap();
    }
    let header = group.dataset("b").unwrap().address() as usize;
    drop(group);
    file.close().unwrap();
    let mut bytes = std::fs::read(place.path("mixed.h5")).unwrap();
    // Messages of an object header of version 1: kind, size, flags.
    let mut at = header + 16;
    let number =
        |bytes: &[u8], at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    while number(&bytes, at) != 8 {
        at += 8 + number(&bytes, at + 2);
    }
    assert_eq!(bytes[at + 8], 3, "the version of a layout message");
    bytes[at + 8] = 7;
    place.write("mixed.h5", &bytes);
    place
}

#[test]
fn one_object_that_is_newer_does_not_keep_commands_from_the_others() {
    let place = with_newer_dataset();
    let run = place.pumice("stat mixed.h5");
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.out.contains("# of unique datasets: 2"), "{}", run.out);
    assert!(run.err.contains("/group/b") && run.err.contains("newer"), "{}", run.err);

    let run = place.pumice("repack mixed.h5 new.h5");
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("/group/b") && run.err.contains("stays behind"), "{}", run.err);
    for name in ["a", "c"] {
        assert!(place.succeed(&format!("read new.h5 group/{name}")).contains('3'));
    }
    place.succeed("check new.h5");

    let run = place.pumice("copy -i mixed.h5 -o copy.h5 -s /group -d /other");
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("/group/b") && run.err.contains("stays behind"), "{}", run.err);
    assert!(place.succeed("read copy.h5 other/c").contains('3'));
    place.succeed("check copy.h5");
    place.succeed("copy -i mixed.h5 -o copy.h5 -s /group/a -d /a");
    assert_eq!(place.pumice("copy -i mixed.h5 -o copy.h5 -s /group/b -d /b").code, Some(1));
    assert!(!File::open(place.path("copy.h5")).unwrap().contains("b"));

    // The only file is not replaced by less.
    let before = std::fs::read(place.path("mixed.h5")).unwrap();
    let error = place.fail("repack mixed.h5");
    assert!(error.contains("/group/b") && error.contains("name a second file"), "{error}");
    assert_eq!(std::fs::read(place.path("mixed.h5")).unwrap(), before);
    // What is compared is compared; the rest is an error.
    let run = place.pumice("diff mixed.h5 new.h5");
    assert_eq!(run.code, Some(2), "{} {}", run.out, run.err);
    assert!(run.err.contains("/group/b"), "{}", run.err);
}

#[test]
fn a_flush_that_fails_names_its_file() {
    let place = small();
    // Files of at most a few kilobytes: the system refuses to write more.
    let entries: String = (1..=20_000).map(|n| format!("{n} 1 {}\n", n * 7919 % 10_007)).collect();
    let header = "%%MatrixMarket matrix coordinate integer general";
    place.write("many.mtx", format!("{header}\n20000 1 20000\n{entries}"));
    let run = shell(&place, "trap '' XFSZ; ulimit -f 8; pumice import many.mtx many.h5");
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("many.h5") && run.err.contains("File too large"), "{}", run.err);
    assert_eq!(place.names(), ["many.mtx", "small.h5", "small.mtx"]);
}

#[test]
fn a_limited_address_space_ends_no_dump() {
    let place = small();
    let file = File::create(place.path("bytes.h5")).unwrap();
    let values: Vec<u8> = (0..600_000u64).map(|n| ((n * 7919) >> 5) as u8).collect();
    let data = file.new_dataset::<u8>().shape([600_000]).create("d").unwrap();
    data.write(.., &values).unwrap();
    drop(data);
    file.close().unwrap();
    let whole = shell(&place, "pumice dump bytes.h5");
    assert_eq!(whole.code, Some(0), "{}", whole.err);
    // Threads reserve 64 MiB each: somewhere on the way there is room for them and for nothing else.
    for limit in (60_000..240_000).step_by(4000) {
        let run = shell(&place, &format!("ulimit -v {limit}; pumice dump bytes.h5"));
        assert_eq!(run.code, Some(0), "{limit}: {}", run.err);
        assert!(run.out == whole.out, "{limit}: {} bytes", run.out.len());
    }
}

#[test]
fn a_limited_address_space_ends_no_check() {
    const CELLS: u64 = 24 << 20;
    let place = Place::new();
    let file = File::create(place.path("large.h5")).unwrap();
    let builder = file.new_dataset::<u64>().shape([CELLS]).chunk([1 << 13]);
    let data = builder.deflate(1).create("d").unwrap();
    data.write(.., &vec![7u64; CELLS as usize]).unwrap();
    drop(data);
    file.close().unwrap();
    for limit in [120_000, 160_000, 200_000] {
        let run = shell(&place, &format!("ulimit -v {limit}; pumice check large.h5"));
        assert_eq!(run.code, Some(0), "{limit}: {}", run.err);
    }
}
