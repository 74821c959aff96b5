//! One writer, many readers: what can be done meanwhile, what cannot, and who is let in.

use pumice::{File, FileOptions, LibraryVersion, Locking, Selection};
use std::path::{Path, PathBuf};

struct Place {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

/// A file with datasets that grow.
fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let file = File::create(&path).unwrap();
    file.create_group("group").unwrap().set_attribute("unit", 1u8).unwrap();
    let rows = file.new_dataset::<i32>().shape([0, 3]).max_shape([None, Some(3)]).chunk([4, 2]);
    rows.create("rows").unwrap();
    file.new_strings().shape([2]).create("names").unwrap();
    file.close().unwrap();
    Place { _folder: folder, path }
}

fn reading() -> FileOptions {
    File::options().swmr(true)
}

/// Opens the file by other means than its path: an open file of this process would be shared.
fn copy_of(path: &Path) -> PathBuf {
    let copy = path.with_extension("copy");
    std::fs::copy(path, &copy).unwrap();
    copy
}

#[test]
fn objects_links_and_attributes_stay_as_they_are_meanwhile() {
    let Place { path, .. } = &place();
    let file = File::edit(path).unwrap();
    let (rows, group) = (file.dataset("rows").unwrap(), file.group("group").unwrap());
    rows.resize([5, 3]).unwrap();
    file.start_swmr_write().unwrap();
    assert!(file.is_swmr());
    let refusals = [
        file.create_group("new").map(drop),
        file.new_dataset::<u8>().shape([1]).create("new").map(drop),
        file.unlink("rows"),
        file.create_soft_link("soft", "/rows"),
        group.set_attribute("new", 1u8),
        group.set_attribute("unit", 2u8),
        group.remove_attribute("unit"),
        rows.set_attribute("new", 1u8),
        rows.set_comment(Some("new")),
        rows.resize([4, 3]),
        file.dataset("names").unwrap().write_strings(.., &["a", "b"]),
        file.start_swmr_write(),
    ];
    for (number, refusal) in refusals.into_iter().enumerate() {
        let message = refusal.expect_err(&format!("number {number}")).to_string();
        assert!(message.contains("SWMR"), "{number}: {message}");
    }
    rows.resize([7, 3]).unwrap();
    rows.write(.., &[7i32; 21]).unwrap();
    rows.write((0, ..), &[1i32, 2, 3]).unwrap();
    file.flush().unwrap();
    drop((rows, group));
    file.close().unwrap();
    let file = File::edit(path).unwrap();
    assert!(!file.is_swmr());
    assert_eq!(file.dataset("rows").unwrap().read::<i32>((0..2, ..)).unwrap(), [1, 2, 3, 7, 7, 7]);
    assert!(file.group("group").unwrap().attribute("new").is_err());
    file.create_group("new").unwrap();
    file.close().unwrap();
}

#[test]
fn files_that_are_written_are_opened_as_such_only() {
    let Place { path, .. } = &place();
    let file = reading().edit(path).unwrap();
    // As another program has it before it, and as one that was killed leaves it.
    let copy = &copy_of(path);
    let refused = File::open(copy).err().unwrap();
    assert!(refused.is_being_written() && refused.to_string().contains("swmr(true)"), "{refused}");
    assert!(File::edit(copy).is_err());
    assert!(reading().edit(copy).is_err());
    assert_eq!(reading().open(copy).unwrap().dataset("rows").unwrap().shape(), [0, 3]);
    File::options().ignore_mark(true).open(copy).unwrap();
    File::options().ignore_mark(true).edit(copy).unwrap().close().unwrap();
    File::edit(copy).unwrap().close().unwrap();
    file.close().unwrap();
    File::open(path).unwrap();
    assert!(!reading().open(path).unwrap().is_writable(), "nobody writes it any more");
}

#[test]
fn what_has_no_mark_or_consists_of_several_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for version in [LibraryVersion::Earliest, LibraryVersion::V18] {
        let options = File::options().library_version(version);
        let file = options.create(folder.path().join("old.h5")).unwrap();
        let message = file.start_swmr_write().unwrap_err().to_string();
        assert!(message.contains("1.10"), "{message}");
        file.create_group("still").unwrap();
    }
    let file = File::options().family(4096).create(folder.path().join("f%d.h5")).unwrap();
    assert!(file.start_swmr_write().is_err());
    let message = reading().create(folder.path().join("new.h5")).err().unwrap().to_string();
    assert!(message.contains("start_swmr_write"), "{message}");
    assert!(!folder.path().join("new.h5").exists());
    let file = File::in_memory().unwrap();
    file.start_swmr_write().unwrap();
    // A program that has it open for writing, and for nobody else.
    let path = folder.path().join("alone.h5");
    let alone = File::options().mark_open(true).create(&path).unwrap();
    let message = reading().locking(Locking::Off).open(copy_of(&path)).err().unwrap().to_string();
    assert!(message.contains("not beside readers"), "{message}");
    drop(alone);
}

#[test]
fn virtual_datasets_follow_their_sources() {
    let Place { path, .. } = &place();
    let view = path.with_file_name("view.h5");
    let file = File::create(&view).unwrap();
    let (source, all) = (path.display().to_string(), [None, Some(3)]);
    let endless = Selection::hyperslab(&[0, 0], &[1, 1], &[pumice::UNLIMITED, 1], &[1, 3]).unwrap();
    let builder = file.new_dataset::<i32>().shape([0, 3]).max_shape(all);
    builder.virtual_part(endless.clone(), &source, "rows", endless).create("view").unwrap();
    file.close().unwrap();

    let writer = reading().edit(path).unwrap();
    let rows = writer.dataset("rows").unwrap();
    let copy = |number: i32| {
        rows.resize([number as u64, 3]).unwrap();
        rows.write((number as u64 - 1, ..), &[number; 3]).unwrap();
        writer.flush().unwrap();
    };
    copy(1);
    let seen = reading().open(&view).unwrap();
    let seen = seen.dataset("view").unwrap();
    assert_eq!(seen.shape(), [1, 3]);
    copy(2);
    seen.refresh().unwrap();
    assert_eq!(seen.shape(), [2, 3]);
    assert_eq!(seen.read::<i32>((1, ..)).unwrap(), [2; 3]);
}

#[test]
fn refreshing_beside_threads_that_read_shows_them_one_state_or_another() {
    let Place { path, .. } = &place();
    let copy = path.with_extension("copy");
    let writer = reading().edit(path).unwrap();
    let rows = writer.dataset("rows").unwrap();
    // Hard links of one file would be one file to this process: the reader is told of each state by a copy over it.
    std::fs::copy(path, &copy).unwrap();
    let reader = reading().open(&copy).unwrap();
    let seen = reader.dataset("rows").unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let cells: Vec<i32> = match seen.read(..) {
                        Ok(cells) => cells,
                        Err(error) => panic!("{error}"),
                    };
                    assert!(
                        cells.chunks(3).zip(1..).all(|(row, number)| row == [number; 3]),
                        "{cells:?}"
                    );
                }
            });
        }
        for number in 1..200u64 {
            rows.resize([number, 3]).unwrap();
            rows.write((number - 1, ..), &[number as i32; 3]).unwrap();
            writer.flush().unwrap();
            overwrite(path, &copy);
            match number % 2 {
                0 => seen.refresh().unwrap(),
                _ => reader.refresh().unwrap(),
            }
            assert_eq!(seen.shape(), [number, 3]);
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

/// Writes one file over another from its end to its beginning, so that headers come last.
fn overwrite(from: &Path, to: &Path) {
    use std::os::unix::fs::FileExt;
    let bytes = std::fs::read(from).unwrap();
    let to = std::fs::OpenOptions::new().write(true).open(to).unwrap();
    for (number, block) in bytes.chunks(4096).enumerate().rev() {
        to.write_all_at(block, number as u64 * 4096).unwrap();
    }
}
