//! A file that another program changes while it is open: the next commit says so and writes nothing.

use pumice::{File, Locking};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

fn made() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let file = File::create(&path).unwrap();
    file.new_dataset::<i32>().shape([100]).create("x").unwrap().write(.., &[7; 100]).unwrap();
    file.close().unwrap();
    (folder, path)
}

/// Opened without a lock, as others must be able to get at it.
fn edit(path: &Path) -> File {
    File::options().locking(Locking::Off).edit(path).unwrap()
}

/// The commit fails for this reason, again and again, and the file stays as it is.
fn refused(file: &File, path: &Path, reason: &str) {
    let before = std::fs::read(path).unwrap();
    for _ in 0..2 {
        let error = file.flush().unwrap_err().to_string();
        assert!(error.contains("changed while it was open"), "{error}");
        assert!(error.contains(reason), "{error}");
    }
    assert_eq!(std::fs::read(path).unwrap(), before);
}

#[test]
fn a_file_that_was_replaced_or_deleted_is_not_committed_to() {
    let (folder, path) = made();
    let file = edit(&path);
    file.create_group("mine").unwrap();
    let other = folder.path().join("other.h5");
    std::fs::copy(&path, &other).unwrap();
    std::fs::rename(&other, &path).unwrap();
    refused(&file, &path, "put in its place");
    drop(file);

    let file = edit(&path);
    file.create_group("mine").unwrap();
    std::fs::remove_file(&path).unwrap();
    let error = file.flush().unwrap_err().to_string();
    assert!(error.contains("deleted"), "{error}");
}

#[test]
fn a_file_that_was_moved_is_committed_to_where_it_is() {
    let (folder, path) = made();
    let file = edit(&path);
    file.create_group("mine").unwrap();
    let moved = folder.path().join("moved.h5");
    std::fs::rename(&path, &moved).unwrap();
    file.close().unwrap();
    assert!(File::open(&moved).unwrap().contains("mine"));
}

#[test]
fn a_file_that_was_written_to_before_our_first_write_is_not_touched() {
    let (_folder, path) = made();
    let file = edit(&path);
    let data = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    // The clock of a file system may not have ticked since it was opened.
    data.set_modified(SystemTime::now() + Duration::from_secs(1)).unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = file.dataset("x").unwrap().write(.., &[1; 100]).and_then(|()| file.flush());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("another program wrote to it"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    file.set_attribute("a", 1i32).unwrap();
    refused(&file, &path, "another program wrote to it");
}

#[test]
fn a_file_that_was_cut_after_a_commit_is_refused() {
    let (_folder, path) = made();
    let file = edit(&path);
    file.set_attribute("a", 1i32).unwrap();
    file.flush().unwrap();
    file.set_attribute("b", 2i32).unwrap();
    let length = std::fs::metadata(&path).unwrap().len();
    let data = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    data.set_len(length - 10).unwrap();
    refused(&file, &path, "byte(s) instead of");
}

#[test]
fn a_file_whose_superblock_another_program_wrote_is_refused() {
    let (_folder, path) = made();
    let file = edit(&path);
    file.set_attribute("a", 1i32).unwrap();
    file.flush().unwrap();
    file.set_attribute("b", 2i32).unwrap();
    // Another program has made the file longer.
    let mut data = std::fs::OpenOptions::new().write(true).append(false).open(&path).unwrap();
    data.write_all(&{
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[28] ^= 8;
        bytes[..48].to_vec()
    })
    .unwrap();
    refused(&file, &path, "superblock");
}

#[test]
fn our_own_openings_one_after_another_do_not_count() {
    let (_folder, path) = made();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let path = &path;
            scope.spawn(move || {
                for number in 0..25 {
                    let file = File::edit(path).unwrap();
                    file.set_attribute(&format!("{thread}-{number}"), number).unwrap();
                    file.close().unwrap();
                }
            });
        }
    });
    assert_eq!(File::open(&path).unwrap().attributes().unwrap().len(), 100);
}
