//! Files that others wrote: no file makes Pumice panic, hang or take memory without measure, and
//! what it claims to have read is what h5py reads.
//!
//! The files are found through `PUMICE_CORPUS` (default: beside the project). What is in them is
//! known from manifests that were made with h5py: shapes, and a hash of every dataset and attribute.

#[path = "corpus/canonical.rs"]
mod canonical;
#[path = "corpus/manifest.rs"]
mod manifest;
#[path = "damage/memory.rs"]
mod memory;
#[path = "corpus/survey.rs"]
mod survey;

use manifest::Manifest;
use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use survey::Survey;

/// The longest that one file may take.
const TIME: Duration = Duration::from_secs(10);
/// The most memory that one file may take.
const MEMORY: u64 = 1 << 30;

#[test]
fn what_is_read_of_good_files_is_what_h5py_reads() {
    let Some(corpus) = corpus() else { return };
    let mut report = Report::default();
    for (path, manifest) in manifest::indexed(&corpus) {
        report.add(&path, examine(&path, manifest));
    }
    report.print("files");
    assert!(report.failures.is_empty(), "{}", report.failures.join("\n"));
}

#[test]
fn files_of_real_programs_are_walked() {
    let Some(corpus) = corpus() else { return };
    let mut report = Report::default();
    for folder in ["real", "sparse/h5"] {
        for path in files_below(&corpus.join(folder)) {
            report.add(&path, examine(&path, Manifest::default()));
        }
    }
    report.print("real");
    assert!(report.failures.is_empty(), "{}", report.failures.join("\n"));
}

#[test]
fn damaged_files_of_others_end_in_an_answer_or_an_error() {
    let Some(corpus) = corpus() else { return };
    let mut report = Report::default();
    for path in files_below(&corpus.join("bad")) {
        report.add(&path, examine(&path, Manifest::default()));
    }
    report.print("bad");
    assert!(report.failures.is_empty(), "{}", report.failures.join("\n"));
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

/// What came of one file.
struct Outcome {
    /// Nothing if its thread panicked or did not end in time.
    survey: Option<Survey>,
    memory: u64,
    time: Duration,
}

/// Walks a file on a thread of its own, whose memory is counted and which may be left behind.
fn examine(path: &Path, manifest: Manifest) -> Outcome {
    let (start, path) = (Instant::now(), path.to_path_buf());
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        memory::reset();
        let survey = survey::walk(&path, &manifest);
        let _ = sender.send((survey, memory::peak()));
    });
    let (survey, memory) = match receiver.recv_timeout(TIME) {
        Ok((survey, memory)) => (Some(survey), memory),
        Err(_) => (None, 0),
    };
    Outcome { survey, memory, time: start.elapsed() }
}

/// All files together.
#[derive(Default)]
struct Report {
    files: usize,
    total: Survey,
    slowest: Vec<(Duration, String)>,
    largest: (u64, String),
    failures: Vec<String>,
    /// What h5py reads and Pumice does not.
    missed: Vec<String>,
}

impl Report {
    fn add(&mut self, path: &Path, outcome: Outcome) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Outcome { survey, memory, time } = outcome;
        self.files += 1;
        if memory > MEMORY {
            self.failures.push(format!("{name}: took {memory} byte(s)"));
        }
        self.largest = std::mem::take(&mut self.largest).max((memory, name.clone()));
        match survey {
            None if time < TIME => self.failures.push(format!("{name}: panicked")),
            None => self.failures.push(format!("{name}: still running after {time:?}")),
            Some(survey) => {
                let wrong = survey.wrong.iter().map(|wrong| format!("{name}: {wrong}"));
                self.failures.extend(wrong);
                self.missed.extend(survey.missed.iter().map(|missed| format!("{name}: {missed}")));
                self.total.add(survey);
            }
        }
        self.slowest.push((time, name));
        self.slowest.sort_by(|a, b| b.cmp(a));
        self.slowest.truncate(5);
    }

    fn print(&self, what: &str) {
        let total = &self.total;
        println!(
            "{what}: {} file(s), {} opened, {} refused",
            self.files, total.opened, total.refused
        );
        println!("  {} group(s), {} that cannot be listed", total.groups, total.unlisted);
        println!(
            "  {} dataset(s): {} right by hash, {} read and not compared, {} in part, {} not supported yet, {} other errors",
            total.datasets,
            total.right,
            total.uncompared,
            total.partly,
            total.unsupported,
            total.failed
        );
        println!(
            "  {} attribute(s): {} right by hash, {} not compared; {} object(s) whose attributes cannot be read",
            total.attributes,
            total.attributes_right,
            total.attributes_uncompared,
            total.attributes_failed
        );
        println!("  most memory: {} MiB for {}", self.largest.0 >> 20, self.largest.1);
        for (time, name) in &self.slowest {
            println!("  slow: {time:?} {name}");
        }
        let mut reasons: Vec<_> = total.reasons.iter().collect();
        reasons.sort_by_key(|(_, count)| Reverse(**count));
        for (reason, count) in reasons.iter().take(25) {
            println!("  {count:5} {reason}");
        }
        for missed in &self.missed {
            println!("  h5py reads {missed}");
        }
    }
}
