//! Files that others wrote hold what h5py finds in them: every object, shape, chunk shape, filter,
//! value and attribute, by manifests that were made with h5py.
//!
//! The files are found through `PUMICE_CORPUS` (default: beside the project).

use pumice_testkit::manifest::{Comparison, compare, of_file};
use serde_json::Value;
use std::collections::HashMap;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A file of the corpus.
struct Case {
    path: PathBuf,
    /// Nothing if h5py does not open it.
    manifest: Option<PathBuf>,
}

/// The result for a file.
enum Outcome {
    Compared(Comparison),
    /// h5py does not open it; we do.
    Read,
    /// h5py does not open it, and we do not either: why.
    Refused(String),
    /// We should have read it.
    Failed(String),
}

#[test]
fn files_of_others_hold_what_h5py_finds_in_them() {
    let Some(corpus) = corpus() else { return };
    let folder = tempfile::tempdir().unwrap();
    let cases = stage(cases(&corpus), folder.path());
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = examine(case);
                    outcomes.lock().unwrap().push((case, outcome));
                }
            });
        }
    });
    let unexplained = report(outcomes.into_inner().unwrap());
    assert!(unexplained.is_empty(), "{}", unexplained.join("\n"));
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

fn cases(corpus: &Path) -> Vec<Case> {
    let index = std::fs::read_to_string(corpus.join("manifest_index.jsonl")).unwrap();
    let entries = index.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let case = |entry: Value| Case {
        path: corpus.join(entry["stored"].as_str().unwrap()),
        manifest: entry["manifest"].as_str().map(|name| corpus.join(name)),
    };
    let wanted = std::env::var("PUMICE_FILES").unwrap_or_default();
    let cases = entries.map(case);
    cases.filter(|case| case.path.to_string_lossy().contains(&wanted)).collect()
}

/// Gives files the names that they had where those are unique, so that one finds another that it
/// refers to.
fn stage(cases: Vec<Case>, folder: &Path) -> Vec<Case> {
    let name = |case: &Case| -> Option<String> {
        let stored = case.path.file_name()?.to_str()?;
        stored.split_once("__").map(|(_, name)| name.to_owned())
    };
    let mut counts = HashMap::new();
    cases.iter().filter_map(name).for_each(|name| *counts.entry(name).or_insert(0) += 1);
    let staged = |case: Case| match name(&case).filter(|name| counts.get(name) == Some(&1)) {
        Some(name) => {
            let path = folder.join(name);
            let stored = case.path.canonicalize().unwrap();
            std::os::unix::fs::symlink(stored, &path).unwrap();
            Case { path, ..case }
        }
        None => case,
    };
    cases.into_iter().map(staged).collect()
}

fn examine(case: &Case) -> Outcome {
    let ours = match catch_unwind(|| of_file(&case.path)) {
        Ok(ours) => ours,
        Err(_) => return Outcome::Failed("panicked".into()),
    };
    match (ours, &case.manifest) {
        (Ok(ours), Some(manifest)) => {
            let text = std::fs::read_to_string(manifest).unwrap();
            Outcome::Compared(compare(&ours, &serde_json::from_str(&text).unwrap()))
        }
        (Err(error), Some(_)) => Outcome::Failed(error.to_string()),
        (Ok(_), None) => Outcome::Read,
        (Err(error), None) => Outcome::Refused(error.to_string()),
    }
}

/// Whether a difference comes of a filter that is not built in, which the error must name.
fn lacks_filter(difference: &str) -> bool {
    difference.contains(": filter ") && difference.contains("is not available")
}

/// Prints what came of all files; returns the differences for which there is no excuse.
fn report(mut outcomes: Vec<(&Case, Outcome)>) -> Vec<String> {
    outcomes.sort_by(|(a, _), (b, _)| a.path.cmp(&b.path));
    let (mut equal, mut filtered, mut different, mut read, mut refused) = (0, 0, 0, 0, 0);
    let mut unexplained = Vec::new();
    let mut total = Comparison::default();
    for (case, outcome) in &outcomes {
        let name = case.path.file_name().unwrap_or_default().to_string_lossy();
        match outcome {
            Outcome::Compared(comparison) => {
                total.datasets += comparison.datasets;
                total.attributes += comparison.attributes;
                total.beyond_h5py += comparison.beyond_h5py;
                let differences = &comparison.differences;
                let others = differences.iter().filter(|difference| !lacks_filter(difference));
                let before = unexplained.len();
                unexplained.extend(others.map(|difference| format!("{name}: {difference}")));
                match differences.is_empty() {
                    true => equal += 1,
                    false if unexplained.len() == before => filtered += 1,
                    false => different += 1,
                }
                for difference in differences {
                    println!("  {name}: {difference}");
                }
            }
            Outcome::Failed(reason) => {
                different += 1;
                unexplained.push(format!("{name}: {reason}"));
                println!("  {name}: {reason}");
            }
            Outcome::Read => read += 1,
            Outcome::Refused(reason) => {
                refused += 1;
                println!("  refused like by h5py: {name}: {reason}");
            }
        }
    }
    println!(
        "{} file(s): {equal} equal, {filtered} equal but for filters that are not built in, {different} different",
        outcomes.len()
    );
    println!("  h5py refuses {} of them: {read} read, {refused} refused", read + refused);
    println!(
        "  {} dataset(s) and {} attribute(s) have the same hash, h5py cannot read {} more",
        total.datasets, total.attributes, total.beyond_h5py
    );
    unexplained
}
