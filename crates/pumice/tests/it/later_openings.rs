//! What is deleted in one opening makes room for what is made in another, in files that remember free space.

use pumice::File;

/// Deletes and makes in openings of their own, one of two datasets in turn, so that the hole is never at the end.
#[test]
fn a_file_that_remembers_free_space_does_not_grow_over_openings() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("turns.h5");
    let make = |file: &File, round: u8| {
        let data = file.new_dataset::<u8>().shape([50_000]);
        let data = data.create(&format!("d{}", round % 2)).unwrap();
        data.write(.., &vec![round; 50_000]).unwrap();
    };
    let file = File::options().persist_free_space(true).create(&path).unwrap();
    make(&file, 0);
    make(&file, 1);
    file.close().unwrap();
    let mut lengths = Vec::new();
    for round in 2..102 {
        let file = File::edit(&path).unwrap();
        file.unlink(&format!("d{}", round % 2)).unwrap();
        file.close().unwrap();
        let file = File::edit(&path).unwrap();
        make(&file, round);
        file.close().unwrap();
        lengths.push(path.metadata().unwrap().len());
    }
    // One more of them may be there than are in use, and lists of what is free.
    assert!(lengths.iter().all(|&length| length < 160_000), "{lengths:?}");
    assert_eq!(lengths[50], lengths[99]);
}
