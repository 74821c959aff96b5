//! No file makes Pumice panic, abort, hang or take memory without measure: damaged files of others,
//! and two thousand made of good ones by flipping, cutting and splicing, walked and read completely
//! by a process that has 4 GiB of address space.
//!
//! The files are found through `PUMICE_CORPUS` (default: beside the project).

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Address space of the process that reads, in KiB.
const ADDRESS_SPACE: u64 = 4 << 20;
/// The longest that one file may take, in milliseconds.
const TIME: u64 = 10_000;
const SEED: u64 = 20_261_115;
const CASES: u64 = 2000;
const BATCH: u64 = 100;
/// Files of up to this many bytes are damaged.
const SMALL: u64 = 64 << 10;

#[test]
fn damaged_files_of_others_end_in_an_answer_or_an_error() {
    let Some(corpus) = corpus() else { return };
    let mut arguments = vec!["as-they-are".to_owned()];
    arguments.extend(names(files_below(&corpus.join("bad"))));
    let files = check(&run(&arguments)).unwrap();
    println!("{files} damaged files of others");
    assert!(files > 0);
}

#[test]
fn files_damaged_at_random_end_in_an_answer_or_an_error() {
    let Some(corpus) = corpus() else { return };
    let small = |path: &PathBuf| path.metadata().is_ok_and(|data| data.len() <= SMALL);
    let files = files_below(&corpus.join("files")).into_iter().filter(small);
    let originals = names(files.collect());
    let (next, failures) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let walked = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let first = next.fetch_add(BATCH, Ordering::Relaxed);
                    if first >= CASES {
                        break;
                    }
                    let numbers = [SEED, first, BATCH.min(CASES - first)];
                    let mut arguments: Vec<String> = numbers.map(|n| n.to_string()).to_vec();
                    arguments.extend(originals.iter().cloned());
                    match check(&run(&arguments)) {
                        Ok(files) => _ = walked.fetch_add(files, Ordering::Relaxed),
                        Err(failure) => failures.lock().unwrap().push(failure),
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    println!("{} damaged files made of {}", walked.load(Ordering::Relaxed), originals.len());
    assert_eq!(walked.into_inner(), CASES);
}

fn corpus() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpora");
    let path = std::env::var_os("PUMICE_CORPUS").map_or_else(|| beside.into(), PathBuf::from);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: no corpus at {}", path.display());
    None
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_path_buf()];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { pending.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

fn names(paths: Vec<PathBuf>) -> Vec<String> {
    paths.into_iter().map(|path| path.to_string_lossy().into_owned()).collect()
}

/// Runs the walker under a limit of address space, and of time in all.
fn run(arguments: &[String]) -> Output {
    let limited = format!("ulimit -v {ADDRESS_SPACE}; exec timeout 300 \"$0\" \"$@\"");
    let program = env!("CARGO_BIN_EXE_walk-damaged");
    Command::new("bash").args(["-c", &limited, program]).args(arguments).output().unwrap()
}

/// The number of files walked, if all went well.
fn check(output: &Output) -> Result<u64, String> {
    let (text, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let (mut last, mut files) = ("", 0);
    for line in text.lines() {
        let Some(done) = line.strip_prefix("done ") else {
            last = line;
            continue;
        };
        files += 1;
        let time: u64 = done.split(' ').next().and_then(|time| time.parse().ok()).unwrap_or(0);
        if time > TIME {
            return Err(format!("{last}: took {time} ms"));
        }
    }
    // The cache turns a panic of a chunk into an error; it is one all the same.
    if !output.status.success() || errors.contains("panicked") {
        return Err(format!("{last}: {}, {errors}", output.status));
    }
    Ok(files)
}
