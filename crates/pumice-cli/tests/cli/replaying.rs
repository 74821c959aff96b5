//! `pumice cache replay`.

use crate::support::Place;
use pumice::trace::{Access, Trace};

/// A loop over five chunks of 1 MiB, a hundred times.
fn place() -> Place {
    let place = Place::new();
    let mut trace = Trace::new();
    for _ in 0..100 {
        (0..5).for_each(|chunk| trace.push(chunk, Access { bytes: 1 << 20, ..Access::default() }));
    }
    let mut bytes = Vec::new();
    trace.write(&mut bytes).expect("write");
    place.write("a.trace", bytes);
    place
}

#[test]
fn every_policy_and_the_optimum_are_told_for_every_size() {
    let run = place().pumice("cache replay a.trace --sizes 4MiB,8MiB");
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    assert!(
        run.out.starts_with("a.trace: 500 accesses (0 writes) to 5 chunks of 5.0 MiB in all\n")
    );
    let line = |size: &str, name: &str| {
        let mut lines = run.out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let found = lines.find(|words| words[..3].join(" ") == format!("{size} MiB {name}"));
        found.unwrap_or_else(|| panic!("{size} {name}: {}", run.out))[3..].join(" ")
    };
    assert_eq!(line("4.0", "optimum"), "396 104 79.20 104.0 MiB");
    assert_eq!(line("4.0", "LRU"), "0 500 0.00 500.0 MiB");
    assert_eq!(line("8.0", "LRU"), "495 5 99.00 5.0 MiB");
    assert_eq!(run.out.lines().count(), 2 + 2 * 7 + 1);
}

#[test]
fn a_picture_is_written_and_its_colours_are_told() {
    let place = place();
    let run = place.pumice("cache replay a.trace --png a.png");
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.out.ends_with("W-TinyLFU orange, random grey\n"), "{}", run.out);
    let decoder = png::Decoder::new(std::io::BufReader::new(
        std::fs::File::open(place.path("a.png")).expect("the picture"),
    ));
    assert_eq!(decoder.read_info().expect("a picture").info().width, 1040);
}

#[test]
fn a_benchmark_leaves_a_trace_to_replay() {
    let place = crate::support::small();
    let told = place.succeed("bench small.h5 matrix --seconds 0.05 --trace run.trace");
    for kind in ["row", "column", "window", "whole"] {
        assert!(told.contains(&format!("\n{kind} ")), "{told}");
    }
    let told = place.succeed("cache replay run.trace --png run.png");
    assert!(told.contains(" W-TinyLFU ") && told.contains("run.png: misses"), "{told}");
    assert!(place.path("run.png").is_file());
}

#[test]
fn what_is_no_trace_is_refused() {
    let place = Place::new();
    place.write("a.trace", "HDF5");
    let run = place.pumice("cache replay a.trace");
    assert_eq!(run.code, Some(1));
    assert!(run.err.contains("a.trace: not a cache trace"), "{}", run.err);
    assert_eq!(place.pumice("cache replay a.trace --sizes 3X").code, Some(2));
}
