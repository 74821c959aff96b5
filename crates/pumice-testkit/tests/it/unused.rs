//! Space that nothing refers to: what is found of it in real files can be overwritten, and nobody sees a difference.
//!
//! libhdf5's h5dump tells of every file what is in it, before and after. The files are found through `PUMICE_CORPUS`
//! (default: beside the project).

use pumice_engine::file::{Cache, File};
use pumice_engine::survey;
use pumice_store::MemoryStore;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// One in so many files is tried: all take some minutes.
const STEP: usize = 8;

fn corpus() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/corpora");
    let path = std::env::var_os("PUMICE_CORPUS").map_or_else(|| beside.into(), PathBuf::from);
    let files = path.join("files");
    files.is_dir().then_some(files)
}

/// The output of h5dump for a file, up to a bearable length.
fn dump(path: &Path) -> Option<Vec<u8>> {
    // The name of the file is in the first line.
    let shown = "h5dump -p \"$1\" 2>&1 | head -c 1000000";
    let mut command = Command::new("sh");
    command.args(["-c", shown, "sh"]).arg(path.file_name()?).current_dir(path.parent()?);
    Some(command.output().ok()?.stdout)
}

/// The unused ranges of a file, absolute, if all of it is understood.
fn unused(bytes: &[u8]) -> Option<Vec<(u64, u64)>> {
    let store = Arc::new(MemoryStore::new(bytes.to_vec()));
    let file = File::open(store, Cache::new(Default::default()), false).ok()?;
    let (base, end) = (file.medium().base(), file.superblock().end_of_file);
    let end = end.checked_sub(file.superblock().base_address)?;
    let found = survey::unused(&file, end).ok()?;
    Some(found.into_iter().map(|(address, length)| (address + base, length)).collect())
}

#[test]
fn what_nothing_refers_to_can_be_overwritten() {
    let Some(files) = corpus() else {
        eprintln!("skipped: no corpus");
        return;
    };
    if Command::new("h5dump").arg("-V").output().is_err() {
        eprintln!("skipped: no h5dump");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (mut understood, mut overwritten) = (0, 0);
    let mut paths: Vec<_> =
        std::fs::read_dir(files).unwrap().map(|one| one.unwrap().path()).collect();
    paths.sort();
    for path in paths.into_iter().step_by(STEP) {
        let Ok(mut bytes) = std::fs::read(&path) else { continue };
        let Some(ranges) = unused(&bytes) else { continue };
        understood += 1;
        let ranges: Vec<_> = ranges.into_iter().filter(|(_, length)| *length > 0).collect();
        if ranges.is_empty() || bytes.len() > 4 << 20 {
            continue;
        }
        let copy = folder.path().join("copy.h5");
        std::fs::write(&copy, &bytes).unwrap();
        let before = dump(&copy).unwrap();
        // Of elements that were never written and have no fill value, h5dump prints what is in its memory.
        if dump(&copy).unwrap() != before {
            continue;
        }
        for &(address, length) in &ranges {
            bytes[address as usize..(address + length) as usize].fill(0xA5);
        }
        std::fs::write(&copy, &bytes).unwrap();
        assert!(dump(&copy).unwrap() == before, "{}: {ranges:?}", path.display());
        // The same once more: nothing that was overwritten had a part in it.
        assert_eq!(unused(&bytes).unwrap(), ranges, "{}", path.display());
        overwritten += 1;
    }
    eprintln!("{understood} files understood, {overwritten} with unused space");
    assert!(understood > 40 && overwritten > 20, "{understood}, {overwritten}");
}
