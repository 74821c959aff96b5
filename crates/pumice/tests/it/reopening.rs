//! Threads that open, change and close one file by its path: each opening shares the file or waits until
//! it is closed, so that none finds or leaves it half closed. Closing moves data to space that deleted
//! datasets have left.

use pumice::{File, FileOptions, LibraryVersion};
use std::path::Path;
use std::thread;

const THREADS: usize = 4;
const ROUNDS: usize = 400;
/// Enough that what is deleted is worth moving data to where it was.
const CELLS: usize = 3000;

fn values(thread: usize, round: usize) -> Vec<i32> {
    (0..CELLS).map(|cell| (thread * 1_000_000 + round * 10_000 + cell) as i32).collect()
}

fn name(thread: usize, round: usize) -> String {
    format!("of {thread}, {}", round % 2)
}

fn create(file: &File, thread: usize, round: usize) -> pumice::Result<()> {
    let new = file.new_dataset::<i32>().shape([CELLS as u64]);
    let new = match (thread + round) % 3 {
        0 => new,
        1 => new.chunk([500]),
        _ => new.chunk([700]).deflate(1),
    };
    new.create(&name(thread, round))?.write(.., &values(thread, round))
}

/// Whether the superblock, of version 3, says that somebody is writing.
fn is_marked(path: &Path) -> bool {
    const FLAGS: usize = 11;
    std::fs::read(path).unwrap()[FLAGS] & 1 == 1
}

/// One thread: finds what it left, deletes it and leaves something else.
fn replace(path: &Path, thread: usize, options: &FileOptions, marked: bool) -> pumice::Result<()> {
    for round in 1..=ROUNDS {
        let file = options.clone().edit(path)?;
        assert!(!marked || is_marked(path), "{thread} in round {round}");
        let before = file.dataset(&name(thread, round - 1))?;
        assert_eq!(before.read::<i32>(..)?, values(thread, round - 1), "{thread} in round {round}");
        drop(before);
        file.unlink(&name(thread, round - 1))?;
        create(&file, thread, round)?;
        let again = file.dataset(&name(thread, round))?.read::<i32>(..)?;
        assert_eq!(again, values(thread, round), "{thread} in round {round}");
        assert!(!marked || is_marked(path), "{thread} in round {round}");
        match round % 3 {
            0 => drop(file),
            _ => file.close()?,
        }
    }
    Ok(())
}

fn check(options: FileOptions, marked: bool) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shared.h5");
    let file = options.clone().create(&path).unwrap();
    (0..THREADS).for_each(|thread| create(&file, thread, 0).unwrap());
    file.close().unwrap();
    thread::scope(|scope| {
        let run = |thread| {
            let (path, options) = (&path, &options);
            scope.spawn(move || replace(path, thread, options, marked))
        };
        let threads: Vec<_> = (0..THREADS).map(run).collect();
        for thread in threads {
            thread.join().unwrap().unwrap();
        }
    });
    assert!(!marked || !is_marked(&path));
    // Nobody has it open: it can be edited, and has all that was written.
    let file = options.edit(&path).unwrap();
    assert_eq!(file.members().unwrap().len(), THREADS);
    for thread in 0..THREADS {
        let found = file.dataset(&name(thread, ROUNDS)).unwrap().read::<i32>(..).unwrap();
        assert_eq!(found, values(thread, ROUNDS), "{thread}");
    }
}

#[test]
fn threads_open_change_and_close_one_file() {
    check(File::options(), false);
}

#[test]
fn threads_open_change_and_close_one_file_that_remembers_free_space() {
    check(File::options().persist_free_space(true), false);
}

#[test]
fn a_file_is_marked_as_open_until_the_last_thread_has_closed_it() {
    check(File::options().library_version(LibraryVersion::V110).mark_open(true), true);
}
