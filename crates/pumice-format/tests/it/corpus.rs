//! Files that others wrote: every structure of the good ones decodes, and nothing in the damaged
//! ones makes a decoder panic or run for ever.
//!
//! The files are found through `PUMICE_CORPUS` (default: beside the project).

mod walker;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use walker::walk;

fn corpus() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpora");
    let path = std::env::var_os("PUMICE_CORPUS").map_or_else(|| beside.into(), PathBuf::from);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: no corpus at {}", path.display());
    None
}

/// The value of a string field in a line of JSON.
fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!("\"{name}\": \""))?;
    rest.split('"').next()
}

fn files_below(directory: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            files_below(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn every_structure_of_good_files_decodes() {
    let Some(corpus) = corpus() else { return };
    let index = std::fs::read_to_string(corpus.join("manifest_index.jsonl")).unwrap_or_default();
    let mut skipped = BTreeMap::new();
    let mut messages = BTreeMap::new();
    let (mut files, mut objects) = (0, 0);
    let mut failures = Vec::new();
    for line in index.lines().filter(|line| !line.contains("refused_by_h5py")) {
        let Some(stored) = field(line, "stored") else { continue };
        let Ok(bytes) = std::fs::read(corpus.join(stored)) else { continue };
        let report = walk(&bytes);
        files += 1;
        objects += report.objects;
        for (structure, count) in report.skipped {
            *skipped.entry(structure).or_insert(0) += count;
        }
        for (kind, count) in report.messages {
            *messages.entry(kind).or_insert(0) += count;
        }
        let errors = report.errors.into_iter().map(|error| format!("{stored}: {error}"));
        if line.contains("\"errors\": 0,") {
            failures.extend(errors);
        } else {
            errors.for_each(|error| println!("refused, as by libhdf5: {error}"));
        }
    }
    println!("{files} files, {objects} objects, messages by kind: {messages:x?}");
    println!("not supported yet: {skipped:?}");
    assert!(files > 0 && objects > 0, "a corpus without files tells nothing");
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn damaged_files_never_panic_and_always_end() {
    let Some(corpus) = corpus() else { return };
    let mut files = Vec::new();
    files_below(&corpus.join("bad"), &mut files);
    assert!(!files.is_empty(), "a corpus without damaged files tells nothing");
    for path in files {
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let report = walk(&bytes);
        println!("{}: {} objects, {} errors", path.display(), report.objects, report.errors.len());
    }
}

#[test]
fn files_cut_or_flipped_anywhere_never_panic() {
    let Some(corpus) = corpus() else { return };
    let mut files = Vec::new();
    files_below(&corpus.join("files"), &mut files);
    assert!(!files.is_empty(), "a corpus without files tells nothing");
    files.sort();
    let mut state = 0x2545_F491_4F6C_DD1Du64;
    let mut random = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    for path in files {
        let Ok(bytes) = std::fs::read(&path) else { continue };
        if bytes.len() > 100_000 {
            continue;
        }
        for _ in 0..4 {
            let mut damaged = bytes.clone();
            for _ in 0..1 + random(8) {
                let at = random(damaged.len().min(8192));
                if let Some(byte) = damaged.get_mut(at) {
                    *byte = random(256) as u8;
                }
            }
            walk(&damaged);
            damaged.truncate(random(damaged.len()));
            walk(&damaged);
        }
    }
}
