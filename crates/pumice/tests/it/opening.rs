//! A file that is open: shared within a process, locked against others.

use pumice::{File, Locking};

fn made() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    let file = File::create(&path).unwrap();
    file.new_dataset::<i32>().shape([10]).create("x").unwrap();
    file.close().unwrap();
    (folder, path)
}

#[test]
fn a_second_opening_sees_what_the_first_has_not_written_yet() {
    let (_folder, path) = made();
    let first = File::edit(&path).unwrap();
    first.dataset("x").unwrap().write(3..4, &[7]).unwrap();
    let second = File::open(&path).unwrap();
    assert_eq!(second.dataset("x").unwrap().read::<i32>(3..4).unwrap(), [7]);
    let third = File::edit(&path).unwrap();
    third.create_group("new").unwrap();
    assert!(first.group("new").is_ok());
}

#[test]
fn what_is_open_is_found_by_any_of_its_paths() {
    let (folder, path) = made();
    let other = folder.path().join("b.h5");
    std::fs::hard_link(&path, &other).unwrap();
    let first = File::edit(&path).unwrap();
    first.create_group("new").unwrap();
    assert!(File::open(&other).unwrap().group("new").is_ok());
}

#[test]
fn an_open_file_is_not_emptied_and_one_open_for_reading_not_changed() {
    let (_folder, path) = made();
    let reader = File::open(&path).unwrap();
    for refused in [File::create(&path), File::edit(&path)] {
        let Err(error) = refused else { panic!("must be refused") };
        assert!(error.to_string().contains("this process has it open"), "{error}");
    }
    assert_eq!(reader.members().unwrap().len(), 1);
    drop(reader);
    File::edit(&path).unwrap();
    assert!(File::create_new(&path).is_err());
    File::create(&path).unwrap();
    assert_eq!(File::open(&path).unwrap().members().unwrap().len(), 0);
}

#[test]
fn the_lock_of_another_program_is_respected_unless_locking_is_off() {
    let (_folder, path) = made();
    let other = pumice_store::FileStore::open_writable(&path).unwrap();
    other.lock(Locking::Required, true).unwrap();
    let Err(error) = File::open(&path) else { panic!("must be refused") };
    assert!(error.to_string().contains("locked"), "{error}");
    assert!(File::options().locking(Locking::Off).open(&path).is_ok());
    other.unlock();
    let reader = File::open(&path).unwrap();
    assert!(other.lock(Locking::Required, true).is_err());
    other.lock(Locking::Required, false).unwrap();
    drop(reader);
    assert!(File::edit(&path).is_err(), "the other one reads");
    other.unlock();
    File::edit(&path).unwrap();
}

#[test]
fn opening_and_closing_from_many_threads_never_finds_the_file_locked() {
    let (_folder, path) = made();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let path = &path;
            scope.spawn(move || {
                for _ in 0..50 {
                    let file = File::edit(path).unwrap();
                    file.dataset("x").unwrap().write(thread..thread + 1, &[1]).unwrap();
                }
            });
        }
    });
    assert_eq!(File::open(&path).unwrap().dataset("x").unwrap().read::<i32>(0..4).unwrap(), [1; 4]);
}

/// A bit of everything, through the interface that files in memory and on disk share.
fn fill(file: &File) {
    file.set_attribute("title", "a title").unwrap();
    let rows = file.new_dataset::<f32>().shape([10, 6]).max_shape([None, Some(6)]).chunk([4, 3]);
    let rows = rows.deflate(3).create("group/rows").unwrap();
    rows.write(.., &(0..60).map(|n| n as f32).collect::<Vec<_>>()).unwrap();
    rows.resize([13, 6]).unwrap();
    for number in 0..30 {
        file.create_group(&format!("many/{number}")).unwrap();
    }
    file.new_strings().shape([2]).create("names").unwrap().write_strings(.., &["a", "bc"]).unwrap();
    file.flush().unwrap();
    file.unlink("many/7").unwrap();
}

#[test]
fn a_file_in_memory_has_the_bytes_of_one_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    for version in [pumice::LibraryVersion::Earliest, pumice::LibraryVersion::V110] {
        let path = folder.path().join("disk.h5");
        let options = File::options().library_version(version);
        let disk = options.clone().create(&path).unwrap();
        let store = std::sync::Arc::new(pumice::MemoryStore::default());
        let memory = options.create_in(store.clone()).unwrap();
        for file in [disk, memory] {
            fill(&file);
            file.close().unwrap();
        }
        assert!(std::fs::read(&path).unwrap() == store.to_vec(), "{version:?}");
    }
}

#[test]
fn open_rw_changes_what_is_there_and_create_new_makes_what_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.h5");
    assert!(File::open_rw(&path).is_err(), "nothing is there");
    File::create_new(&path).unwrap().create_group("first").unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = File::create_new(&path).err().unwrap().to_string();
    assert!(error.contains("a.h5") && error.contains("exists"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    File::open_rw(&path).unwrap().create_group("second").unwrap();
    let names: Vec<_> = File::open(&path).unwrap().members().unwrap();
    assert_eq!(
        names.iter().map(|member| member.name.as_str()).collect::<Vec<_>>(),
        ["first", "second"]
    );
    assert!(File::create(&path).unwrap().members().unwrap().is_empty(), "emptied");
}

#[test]
fn a_refused_creation_makes_and_changes_nothing() {
    use pumice::{FileSpaceStrategy, LibraryVersion};
    let (folder, path) = made();
    let absent = folder.path().join("absent.h5");
    let family = folder.path().join("family%d.h5");
    let paged = || File::options().space_strategy(FileSpaceStrategy::Paged);
    let refused = [
        File::options().user_block(1000),
        File::options().user_block(256),
        File::options().newest_version(LibraryVersion::Earliest),
        File::options().library_version(LibraryVersion::V114).newest_version(LibraryVersion::V110),
        paged().page_size(0),
        paged().page_size(100),
        paged().page_size(2 << 30),
    ];
    let before = std::fs::read(&path).unwrap();
    for options in refused {
        assert!(options.clone().create(&path).is_err());
        assert!(options.clone().create(&absent).is_err());
        assert!(options.clone().create_new(&absent).is_err());
        assert!(options.family(4096).create(&family).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
    assert!(File::options().family(0).create(&family).is_err());
    assert!(File::options().family(4096).create(&path).is_err(), "no pattern");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");

    // What others use stays, too.
    let other = pumice_store::FileStore::open(&path).unwrap();
    other.lock(Locking::Required, false).unwrap();
    assert!(File::create(&path).is_err());
    other.unlock();
    let reader = File::open(&path).unwrap();
    assert!(File::create(&path).is_err());
    drop(reader);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    File::create(&path).unwrap();
}

#[test]
fn a_user_block_that_came_or_went_without_the_superblock_is_none_of_its_business() {
    for version in [pumice::LibraryVersion::Earliest, pumice::LibraryVersion::LATEST] {
        for (before, after) in [(0, 512), (1024, 0), (512, 2048), (0, 0)] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.h5");
            let options = File::options().library_version(version).user_block(before);
            let file = options.create(&path).unwrap();
            file.new_dataset::<i32>()
                .shape([3])
                .create("x")
                .unwrap()
                .write(.., &[1, 2, 3])
                .unwrap();
            file.close().unwrap();
            let bytes = std::fs::read(&path).unwrap();
            let mut moved = vec![b'u'; after];
            moved.extend_from_slice(&bytes[before as usize..]);
            std::fs::write(&path, moved).unwrap();

            let file = File::open(&path).unwrap();
            assert_eq!(file.info().unwrap().user_block_size, after as u64);
            assert_eq!(file.dataset("x").unwrap().read::<i32>(..).unwrap(), [1, 2, 3]);
            file.close().unwrap();
            // New elements come behind the old ones, not over the last of them.
            let file = File::edit(&path).unwrap();
            let more: Vec<i32> = (0..1000).collect();
            file.new_dataset::<i32>().shape([1000]).create("y").unwrap().write(.., &more).unwrap();
            file.close().unwrap();
            let file = File::open(&path).unwrap();
            assert_eq!(file.dataset("x").unwrap().read::<i32>(..).unwrap(), [1, 2, 3]);
            assert_eq!(file.dataset("y").unwrap().read::<i32>(..).unwrap(), more);
            let bytes = std::fs::read(&path).unwrap();
            assert!(bytes[..after].iter().all(|&byte| byte == b'u'));
        }
    }
}
