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
