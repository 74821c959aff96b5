//! A virtual dataset that is open reads the sources that have the names of its mapping now.

use pumice::{File, Selection};

#[test]
fn sources_that_are_made_anew_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("source.h5");
    let all = || Selection::block(&[0], &[3]).unwrap();
    let make = |value: i32| {
        let file = File::create(&path).unwrap();
        file.new_dataset::<i32>().shape([3]).create("d").unwrap().write(.., &[value; 3]).unwrap();
        file.close().unwrap();
    };
    make(1);
    let file = File::create(folder.path().join("view.h5")).unwrap();
    let view = file.new_dataset::<i32>().shape([3]).virtual_part(all(), "source.h5", "d", all());
    let view = view.create("view").unwrap();
    assert_eq!(view.read::<i32>(..).unwrap(), [1; 3]);

    // Another dataset of the name, in the same file.
    let source = File::edit(&path).unwrap();
    source.unlink("d").unwrap();
    source.flush().unwrap();
    assert_eq!(view.read::<i32>(..).unwrap(), [0; 3]);
    source.new_dataset::<i32>().shape([3]).create("d").unwrap().write(.., &[2; 3]).unwrap();
    assert_eq!(view.read::<i32>(..).unwrap(), [2; 3]);
    source.close().unwrap();

    // Another file of the name, while the old one is open.
    std::fs::remove_file(&path).unwrap();
    make(3);
    assert_eq!(view.read::<i32>(..).unwrap(), [3; 3]);
    view.write(.., &[4; 3]).unwrap();
    file.flush().unwrap();
    assert_eq!(view.read::<i32>(..).unwrap(), [4; 3]);
}
